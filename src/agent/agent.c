#include "agent/agent.h"

#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/act.h"
#include "agent/hold.h"
#include "agent/listen.h"
#include "agent/page.h"
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
    bool urgent; /* the next sample is told at once */
    int64_t asked_ns, next_post_ns;
    uint64_t backoff_ms;
    struct act *act;
    struct report_hold hold;
    char hold_file[300], act_file[300];
    struct listen *page, *control;
    struct report_sample *last; /* for its own page; NULL: it has none */
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

static void tell_now(struct agent *a);

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
    if (json_is_array(commands) && json_len(commands)) {
        act_take(a->act, commands, a->hold.since_ms > 0);
        tell_now(a);
    }
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

static void add_sample(struct agent *a, struct report_sample *s)
{
    s->hold = a->hold;
    act_put_acks(a->act, s);
    if (a->last)
        report_sample_copy(a->last, s);
    queue_add(a->queue, a->sampling.head, s);
    if (a->urgent || queue_samples(a->queue) >= samples_a_report(a)) {
        a->urgent = false;
        post_next(a);
    }
}

/* What was measured last once more, with what is new: nobody waits for the next sample. */
static void tell_now(struct agent *a)
{
    a->urgent = true;
    if (a->busy || a->sampling.sample->t_ms == 0)
        return;
    a->sampling.sample->t_ms = MAX(clock_now_ms(&a->config.clock), a->sampling.sample->t_ms);
    add_sample(a, a->sampling.sample);
}

/* ---- the owner's hold ---- */

static void end_hold(struct agent *a)
{
    struct err e;
    if (a->hold.until_ms <= 0 || clock_now_ms(&a->config.clock) < a->hold.until_ms)
        return;
    a->hold = (struct report_hold){ 0 };
    if (hold_save(a->hold_file, &a->hold, &e) < 0)
        log_event(a->log, LOG_WARN_, "agent.hold", "why=%s", e.msg);
    log_plain(a->log, LOG_INFO_, "agent.hold_over");
    a->urgent = true;
}

static const char *name_of(uint32_t uid, char out[static 40])
{
    struct passwd entry, *found = NULL;
    char space[4096];
    if (getpwuid_r(uid, &entry, space, sizeof space, &found) == 0 && found)
        snprintf(out, 40, "%.39s", entry.pw_name);
    else
        snprintf(out, 40, "uid-%u", uid);
    return out;
}

static void on_control(void *ctx, uint32_t uid, struct str request, struct buf *out)
{
    struct agent *a = ctx;
    struct report_hold h = a->hold;
    struct err e;
    char by[40];
    if (!hold_request(request, name_of(uid, by), clock_now_ms(&a->config.clock), &h, out))
        return;
    if (hold_save(a->hold_file, &h, &e) < 0) { /* it would be forgotten */
        buf_truncate(out, 0);
        buf_printf(out, "error %s\n", e.msg);
        return;
    }
    a->hold = h;
    log_event(a->log, LOG_INFO_, "agent.hold", "held=%s by=%s", h.since_ms ? "yes" : "no", by);
    tell_now(a);
}

static void on_page(void *ctx, uint32_t uid, struct str request, struct buf *out)
{
    struct agent *a = ctx;
    (void)uid;
    page_answer(&(struct page_facts){ .head = a->sampling.head,
                                      .sample = a->last->t_ms ? a->last : NULL,
                                      .away = a->away,
                                      .lost = queue_lost(a->queue),
                                      .waiting_bytes = queue_bytes(a->queue) },
                request, out);
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
    end_hold(a);
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

/* Measuring goes on without them: a machine whose owner cannot say hold is worse, one without figures more so. */
static void open_control(struct agent *a)
{
    const struct agent_config *c = &a->config;
    struct err e = { 0 };
    char folder[300];
    snprintf(a->hold_file, sizeof a->hold_file, "%.250s/hold", c->keep);
    snprintf(a->act_file, sizeof a->act_file, "%.250s/paused", c->keep);
    mkdir(c->keep, 0700);
    if (hold_load(a->hold_file, &a->hold, &e) < 0)
        log_event(a->log, LOG_WARN_, "agent.hold", "why=%s", e.msg);
    a->act = act_new(
        &(struct act_places){ c->load.cgroup_root, c->load.cgroup, a->act_file, c->load.state });
    if (!c->control || !c->control[0])
        return;
    snprintf(folder, sizeof folder, "%.*s",
             (int)(strrchr(c->control, '/') ? strrchr(c->control, '/') - c->control : 0),
             c->control);
    mkdir(folder, 0755);
    a->control = listen_new(&(struct listen_config){ .loop = a->loop,
                                                     .address = c->control,
                                                     .group = c->control_group,
                                                     .end = "\n",
                                                     .answer = on_control,
                                                     .ctx = a },
                            &e);
    if (!a->control)
        log_event(a->log, LOG_WARN_, "agent.control", "why=%s", e.msg);
}

static int open_page(struct agent *a, struct err *e)
{
    if (!a->config.metrics)
        return 0;
    a->last = report_sample_new();
    a->page = listen_new(&(struct listen_config){ .loop = a->loop,
                                                  .address = a->config.metrics,
                                                  .end = "\r\n\r\n",
                                                  .answer = on_page,
                                                  .ctx = a },
                         e);
    if (!a->page)
        return err_wrap(e, "--metrics");
    log_event(a->log, LOG_INFO_, "agent.metrics", "port=%d", listen_port(a->page));
    return 0;
}

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
    if (!a->posting.post || open_page(a, e) < 0)
        return agent_free(a);
    open_control(a);
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
    listen_free(a->page);
    listen_free(a->control);
    /* A thread that the driver or the network holds cannot be waited for; the process ends with it. */
    if (a->busy || a->posts) {
        log_plain(a->log, LOG_INFO_, "agent.stopped");
        _exit(0);
    }
    if (a->sampler)
        worker_free(a->sampler);
    if (a->sender)
        worker_free(a->sender);
    act_free(a->act);
    free(a->last);
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
