#include "agent/agent.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "node/health.h"
#include "sys/worker.h"

#define HANG_MS 30000        /* a sample that takes longer: the driver hangs */
#define BACKOFF_MAX_MS 15000 /* between tries while the control plane is away */
#define STOP_WAIT_MS 3000

struct sampling {
    struct worker_item item;
    struct load *load;
    struct load_time now;
    struct report_head *head;
    struct report_sample *sample;
};

struct posting {
    struct worker_item item;
    struct post *post;
    const char *path;
    uint64_t number;
    struct buf bytes, answer;
    int rc, status;
    struct err e;
};

struct agent {
    struct agent_config config;
    struct loop *loop;
    struct log *log;
    struct queue *queue;
    struct worker *sampler, *sender;
    struct sampling sampling;
    struct posting posting;
    struct loop_watch *timer, *leave;
    struct report_sample *hung; /* what is told while the driver hangs */
    char path[128];
    bool busy, posts, stopping, away;
    int64_t asked_ns, next_post_ns;
    uint64_t backoff_ms, unknown_commands;
};

/* ---- on the threads ---- */

static void sample_thread(void *ctx, struct worker *w)
{
    (void)ctx;
    for (struct worker_item *i; (i = worker_take(w, true));) {
        struct sampling *s = (struct sampling *)i;
        load_sample(s->load, s->now, s->sample);
        *s->head = *load_head(s->load);
        worker_return(w, i);
    }
}

static void post_thread(void *ctx, struct worker *w)
{
    (void)ctx;
    for (struct worker_item *i; (i = worker_take(w, true));) {
        struct posting *p = (struct posting *)i;
        p->rc = post_send(p->post, p->path, buf_str(&p->bytes), &p->answer, &p->status, &p->e);
        worker_return(w, i);
    }
}

/* ---- sending ---- */

static uint64_t samples_a_report(const struct agent *a)
{
    return MAX(a->config.report_ms / a->config.interval_ms, (uint64_t)1);
}

static void post_next(struct agent *a)
{
    uint64_t number;
    struct str bytes;
    if (a->posts || (clock_mono_ns() < a->next_post_ns && !a->stopping) ||
        !queue_front(a->queue, &number, &bytes))
        return;
    buf_truncate(&a->posting.bytes, 0);
    buf_add(&a->posting.bytes, bytes);
    a->posting.number = number;
    a->posts = true;
    worker_give(a->sender, &a->posting.item);
}

/* Commands are the control plane's way to ask for something at once: throttle, pause, hand back.  None is
 * known yet; one that comes is told in the log, and that it was not done is seen by what is reported. */
static void take_answer(struct agent *a, struct str body)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *d = json_read(body, &e);
    uint64_t ack = 0;
    if (!d || json_need_u64(json_root(d), "ack", UINT64_MAX, &ack, &e) < 0) {
        log_event(a->log, LOG_WARN_, "agent.answer", "why=%s", e.msg);
        return;
    }
    queue_ack(a->queue, ack);
    const struct json *commands = json_find(json_root(d), "commands");
    size_t n = json_is_array(commands) ? json_len(commands) : 0;
    if (n && a->unknown_commands++ == 0)
        log_event(a->log, LOG_WARN_, "agent.commands", "not_known=%zu", n);
}

static void note_away(struct agent *a, const char *why)
{
    if (!a->away)
        log_event(a->log, LOG_WARN_, "agent.away", "why=%s", why);
    a->away = true;
    a->backoff_ms = MAX(a->backoff_ms * 2, a->config.report_ms);
    a->backoff_ms = MIN(a->backoff_ms, (uint64_t)BACKOFF_MAX_MS);
    a->next_post_ns = clock_mono_ns() + (int64_t)a->backoff_ms * 1000000;
}

static void on_posted(void *ctx, struct worker_item *item)
{
    struct agent *a = ctx;
    struct posting *p = (struct posting *)item;
    a->posts = false;
    if (p->rc < 0) {
        note_away(a, p->e.msg);
    } else if (p->status == 200) {
        if (a->away)
            log_event(a->log, LOG_INFO_, "agent.back", "samples=%zu lost=%llu",
                      queue_samples(a->queue), (unsigned long long)queue_lost(a->queue));
        a->away = false;
        a->backoff_ms = 0;
        a->next_post_ns = 0; /* what has gathered follows at once, then with the next sample */
        take_answer(a, buf_str(&p->answer));
    } else {
        char why[400];
        snprintf(why, sizeof why, "status %d: %.300s", p->status, p->answer.p ? p->answer.p : "");
        note_away(a, why);
        if (p->status == 400 || p->status == 413) /* sent again it would be refused again */
            queue_refused(a->queue);
    }
    if (a->stopping)
        loop_stop(a->loop);
    else if (!a->away && queue_samples(a->queue) >= samples_a_report(a))
        post_next(a);
}

/* ---- sampling ---- */

static void add_sample(struct agent *a, const struct report_sample *s)
{
    queue_add(a->queue, a->sampling.head, s);
    if (queue_samples(a->queue) >= samples_a_report(a))
        post_next(a);
}

static void on_sampled(void *ctx, struct worker_item *item)
{
    struct agent *a = ctx;
    (void)item;
    a->busy = false;
    add_sample(a, a->sampling.sample);
}

static void tell_hang(struct agent *a)
{
    char text[120];
    if (!a->hung)
        a->hung = report_sample_new();
    a->hung->t_ms = clock_now_ms(&a->config.clock);
    a->hung->findings = 0;
    snprintf(text, sizeof text, "the GPU driver has not answered for more than %d s",
             HANG_MS / 1000);
    health_add(a->hung, HEALTH_HANGS, -1, text);
    add_sample(a, a->hung);
}

static void on_time(void *ctx)
{
    struct agent *a = ctx;
    if (a->stopping)
        return;
    if (a->busy) {
        if (clock_mono_ns() - a->asked_ns > (int64_t)HANG_MS * 1000000)
            tell_hang(a);
        return;
    }
    a->busy = true;
    a->asked_ns = clock_mono_ns();
    a->sampling.now =
        (struct load_time){ .wall_ms = clock_now_ms(&a->config.clock), .mono_ns = a->asked_ns };
    worker_give(a->sampler, &a->sampling.item);
}

/* ---- life ---- */

struct agent *agent_new(const struct agent_config *c, struct loop *l, struct log *log,
                        struct err *e)
{
    struct agent *a = xcalloc(1, sizeof *a);
    a->config = *c;
    a->loop = l;
    a->log = log;
    a->queue = queue_new(&c->bounds);
    a->sampling.load = load_new(&c->load, e);
    a->posting.post = a->sampling.load ? post_new(&c->post, e) : NULL;
    if (!a->posting.post)
        return agent_free(a);
    a->sampling.head = report_head_new();
    a->sampling.sample = report_sample_new();
    *a->sampling.head = *load_head(a->sampling.load);
    a->posting.bytes = BUF(REPORT_BYTES_MAX + 4096);
    a->posting.answer = BUF(64u << 10);
    snprintf(a->path, sizeof a->path, "/v1/nodes/%s/report", a->sampling.head->node);
    a->posting.path = a->path;
    a->sampler = worker_new(l, sample_thread, NULL, on_sampled, a);
    a->sender = worker_new(l, post_thread, NULL, on_posted, a);
    a->timer = loop_timer(l, on_time, a);
    uint64_t past = (uint64_t)(clock_now_ms(&c->clock) % (int64_t)c->interval_ms);
    loop_timer_set(a->timer, c->interval_ms - past, c->interval_ms);
    log_event(log, LOG_INFO_, "agent.started", "node=%s gpus=%u simulated=%s server=%s",
              a->sampling.head->node, a->sampling.head->gpus,
              a->sampling.head->simulated ? "yes" : "no", c->post.server);
    return a;
}

static void leave(void *ctx)
{
    struct agent *a = ctx;
    loop_stop(a->loop);
}

void agent_stop(struct agent *a)
{
    if (a->stopping) {
        loop_stop(a->loop);
        return;
    }
    a->stopping = true;
    a->leave = loop_timer(a->loop, leave, a);
    loop_timer_set(a->leave, STOP_WAIT_MS, 0);
    post_next(a);
    if (!a->posts)
        loop_stop(a->loop);
}

struct agent *agent_free(struct agent *a)
{
    if (!a)
        return NULL;
    /* A thread that the driver or the network holds cannot be waited for; the process ends with it. */
    if (a->busy || a->posts) {
        log_plain(a->log, LOG_INFO_, "agent.stopped");
        _exit(0);
    }
    worker_free(a->sampler);
    worker_free(a->sender);
    load_free(a->sampling.load);
    post_free(a->posting.post);
    free(a->sampling.head);
    free(a->sampling.sample);
    free(a->hung);
    buf_free(&a->posting.bytes);
    buf_free(&a->posting.answer);
    queue_free(a->queue);
    free(a);
    return NULL;
}
