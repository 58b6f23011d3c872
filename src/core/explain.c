/* Why a job waits, in sentences with figures; computed when somebody asks. */
#include <stdarg.h>
#include <stdio.h>

#include "base/date.h"
#include "base/parse.h"
#include "core/state.h"

static void say(struct explanation *x, enum reason why, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void say(struct explanation *x, enum reason why, const char *fmt, ...)
{
    va_list ap;
    if (x->n == EXPLAIN_LINES)
        return;
    va_start(ap, fmt);
    vsnprintf(x->line[x->n].text, sizeof x->line[x->n].text, fmt, ap);
    va_end(ap);
    x->line[x->n++].why = why;
}

static void say_limit(const struct core *c, const struct job *j, struct explanation *x)
{
    struct amounts a = core_amounts(c, &c->shapes.at[j->shape].request);
    enum resource which;
    uint32_t over = shares_over_limit(&c->shares, j->leaf, &a, &which);
    if (over == NONE)
        return;
    const struct share *s = &c->shares.at[over];
    double unit = which == RES_GPU || which == RES_CPU ? 1e3 : 1;
    say(x, s->is_user ? WHY_LIMIT_USER : WHY_LIMIT_TENANT,
        "%s '%s' uses %.6g of the %.6g %s it may use at a time; this job needs %.6g",
        s->is_user ? "user" : "tenant", s->name, (double)s->used.of[which] / unit,
        (double)s->limit.of[which] / unit,
        which == RES_MEM ? "MiB of memory" : resource_name(which), (double)a.of[which] / unit);
}

/* What is free now on the machines that could run one replica. */
struct supply {
    uint32_t nodes_up, kept;
    uint64_t free_milli, other_milli; /* GPU parts free there, and on models not asked for */
    uint32_t most_whole;              /* on one machine */
    uint32_t most_part;               /* on one GPU, thousandths */
    uint64_t whole;
    uint32_t closed, closing;    /* machines whose window is closed, or ends too soon for the job */
    int64_t opens_ms, closes_ms; /* the first of those, the last of these */
};

/* When its machines are there for the job, or will be gone for it: by their window, or because they
 * are reserved. */
static int64_t change_of(const struct core *c, const struct kind *k, const struct request *r,
                         bool *out_closed)
{
    const struct reservation *mine = reservation_at(c, r->reservation);
    const struct reservation *has = reservation_at(c, k->reserved);
    bool reserved = !r->reservation && has && (k->free_ms < k->left_ms || k->free_ms < 0);
    *out_closed = k->left_ms < 0 || (reserved && k->free_ms < 0) || mine;
    if (k->left_ms < 0 || (!reserved && !mine))
        return c->cluster.pool[k->pool].change_ms;
    if (reserved)
        return k->free_ms < 0 ? has->until_ms : has->from_ms;
    return mine == has || mine->from_ms > c->wall_ms ? mine->from_ms : mine->until_ms;
}

/* Is its window in the way?  Then it is counted. */
static bool count_window(const struct core *c, const struct kind *k, const struct request *r,
                         struct supply *s)
{
    bool allows = kind_allows(k, r);
    if (k->left_ms >= 0 && (!allows || kind_takes(k, r)))
        return false;
    bool closed;
    int64_t change_ms = change_of(c, k, r, &closed);
    if (closed && allows) {
        s->opens_ms = s->closed++ ? MIN(s->opens_ms, change_ms) : change_ms;
    } else if (allows) {
        s->closes_ms = s->closing++ ? MAX(s->closes_ms, change_ms) : change_ms;
    }
    return true;
}

static struct supply count_supply(const struct core *c, const struct request *r)
{
    struct supply s = { 0 };
    for (uint32_t i = 0; i < c->cluster.nodes; i++) {
        const struct node *n = &c->cluster.node[i];
        const struct kind *k = &c->cluster.kind[n->kind];
        uint32_t whole = 0;
        uint64_t milli = 0;
        if (n->state != NODE_UP || count_window(c, k, r, &s))
            continue;
        for (int g = 0; g < k->gpus; g++) {
            whole += n->offer.gpu[g] == GPU_MILLI;
            milli += n->offer.gpu[g];
            if (kind_allows(k, r))
                s.most_part = MAX(s.most_part, n->offer.gpu[g]);
        }
        if (!kind_allows(k, r)) {
            s.other_milli += milli;
            continue;
        }
        s.nodes_up++;
        s.kept += n->kept.job != NONE;
        s.free_milli += milli;
        s.whole += whole;
        s.most_whole = MAX(s.most_whole, whole);
    }
    return s;
}

static bool fits_without(struct core *c, const struct request *r, bool cpu, bool mem)
{
    struct request less = *r;
    struct gang_scratch g = { 0 };
    AUTO(free_p) struct slot *slots = xcalloc(r->replicas, sizeof *slots);
    if (cpu)
        less.cpu_milli = 0;
    if (mem)
        less.mem_mib = 0;
    bool fits = place_find(&c->cluster, &c->demand, &less, &g, slots);
    gang_scratch_free(&g);
    return fits;
}

static void say_gpus(const struct request *r, const struct supply *s, struct explanation *x)
{
    uint64_t need = (uint64_t)r->replicas * r->gpus;
    if (request_shares_gpu(r)) {
        say(x, WHY_GPUS_BUSY,
            "needs a part of a GPU on each of %u replicas; the largest free part is %.3g of one "
            "GPU",
            r->replicas, s->most_part / 1e3);
        return;
    }
    if (s->whole >= need) {
        say(x, WHY_SCATTERED,
            "%llu GPUs are free, but no machine has the %u%s that a replica needs (most on one: "
            "%u)",
            (unsigned long long)s->whole, r->gpus, r->linked ? " linked ones" : "", s->most_whole);
        return;
    }
    say(x, r->models ? WHY_MODEL_BUSY : WHY_GPUS_BUSY,
        "needs %llu GPU%s%s; %llu free now, at most %u on one machine", (unsigned long long)need,
        need == 1 ? "" : "s", r->models ? " of the models it asks for" : "",
        (unsigned long long)s->whole, s->most_whole);
    if (r->models && s->other_milli >= GPU_MILLI)
        say(x, WHY_MODEL_BUSY,
            "%.6g GPUs of other models are free: a job that takes any model could use them",
            (double)s->other_milli / 1e3);
}

/* Why it does not start on machines that are given back soon. */
static const char *why_not_there(const struct job *j)
{
    if (j->thaw_cost_ms && !j->restarts)
        return "that is too soon to start it there";
    if (j->thaw_cost_ms)
        return "it may run longer, and a freeze would throw it back to its start";
    return j->limit_ms ? "it may run longer, and cannot be frozen"
                       : "it has no time limit, and cannot be frozen";
}

static void say_windows(const struct job *j, const struct supply *s, struct explanation *x)
{
    char at[32];
    if (s->closed && s->opens_ms == INT64_MAX)
        say(x, WHY_WINDOW, "%u machine%s that could run it %s not lent any more", s->closed,
            s->closed == 1 ? "" : "s", s->closed == 1 ? "is" : "are");
    else if (s->closed)
        say(x, WHY_WINDOW, "%u machine%s that could run it %s lent from %s on", s->closed,
            s->closed == 1 ? "" : "s", s->closed == 1 ? "is" : "are", date_format(s->opens_ms, at));
    if (s->closing)
        say(x, WHY_WINDOW, "%u machine%s that could run it %s given back at %s: %s", s->closing,
            s->closing == 1 ? "" : "s", s->closing == 1 ? "is" : "are",
            date_format(s->closes_ms, at), why_not_there(j));
}

static void say_room(struct core *c, const struct job *j, struct explanation *x)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    struct supply s = count_supply(c, r);
    struct err never;
    if (place_check_possible(&c->cluster, r, &never) < 0) { /* it was taken when one was larger */
        say(x, WHY_TOO_LARGE, "it fits on no machine here any more: %s", never.msg);
        return;
    }
    if (s.nodes_up == 0 && (s.closed || s.closing)) {
        say_windows(j, &s, x);
        return;
    }
    if (s.nodes_up == 0) {
        say(x, WHY_NO_NODE, "none of the machines that could run it is up");
        return;
    }
    if (fits_without(c, r, false, false))
        return;
    if (fits_without(c, r, true, false))
        say(x, WHY_CPU_BUSY,
            "machines with free GPUs have fewer than the %.3g CPUs a replica needs",
            r->cpu_milli / 1e3);
    else if (fits_without(c, r, false, true))
        say(x, WHY_MEM_BUSY,
            "machines with free GPUs have less than the %u MiB of memory a replica needs",
            r->mem_mib);
    else if (fits_without(c, r, true, true))
        say(x, WHY_CPU_BUSY,
            "machines with free GPUs have too few CPUs and too little memory free");
    else
        say_gpus(r, &s, x);
    say_windows(j, &s, x);
    if (s.kept)
        say(x, WHY_KEPT, "room on %u machines is kept for jobs that have waited longer", s.kept);
}

static void say_begin(const struct later *l, int64_t now_ms, struct explanation *x)
{
    char at[32], left[32];
    int64_t ms = l->begin_ms - now_ms;
    if (ms <= 0)
        say(x, WHY_BEGIN, "its time to begin has come: the next pass looks at it");
    else
        say(x, WHY_BEGIN, "it begins not before %s, in %s", date_format(l->begin_ms, at),
            format_duration_ms(MAX(ms / 1000, INT64_C(1)) * 1000, left));
}

static void say_after(const struct core *c, const struct later *l, struct explanation *x)
{
    static const char *const one[] = {
        [AFTER_OK] = "has succeeded", [AFTER_ANY] = "has ended", [AFTER_BAD] = "has failed"
    };
    static const char *const all[] = { [AFTER_OK] = "have all succeeded",
                                       [AFTER_ANY] = "have all ended",
                                       [AFTER_BAD] = "have all ended and one of them failed" };
    struct after a[AFTER_MAX];
    uint32_t n = later_open(c, l, a);
    for (uint32_t i = 0; i < n; i++) {
        unsigned long long first = a[i].first.v;
        char more[32] = "";
        if (x->n == EXPLAIN_LINES - 1 && i + 1 < n)
            snprintf(more, sizeof more, ", and after %u more", n - i - 1);
        if (a[i].n == 1)
            say(x, WHY_AFTER, "it starts after job %llu %s%s", first, one[a[i].when], more);
        else
            say(x, WHY_AFTER, "it starts after jobs %llu to %llu %s: %u have not ended%s", first,
                first + a[i].n - 1, all[a[i].when], later_alive(c, &a[i]), more);
    }
}

/* What keeps it from the queue, beside somebody's hold. */
static void say_later(const struct core *c, const struct later *l, int64_t now_ms,
                      struct explanation *x)
{
    if (l->never) {
        say(x, WHY_AFTER,
            "it can never start: it was to start after job %llu, which ended "
            "otherwise",
            (unsigned long long)l->cause_job);
        return;
    }
    if (later_is_early(c, l))
        say_begin(l, now_ms, x);
    say_after(c, l, x);
}

int core_explain(struct core *c, job_id id, int64_t now_ms, struct explanation *out, struct err *e)
{
    uint32_t job = queue_find(&c->queue, id.v);
    if (job == NONE)
        return err_set(e, ERR_NOT_FOUND, "no job %llu waits or runs", (unsigned long long)id.v);
    const struct job *j = &c->queue.job[job];
    struct explanation x = { .waited_ms = MAX(now_ms - j->submit_ms, INT64_C(0)) };
    if (job_state_holds(j->state))
        return err_set(e, ERR_CONFLICT, "job %llu does not wait: it is %s",
                       (unsigned long long)id.v, job_state_name(j->state));
    if (j->promised) {
        say(&x, WHY_PROMISED, "%s", reason_text(WHY_PROMISED));
    } else if (j->group == NONE) {
        enum reason why = j->state == JOB_HELD ? WHY_HELD : WHY_FROZEN;
        if (j->state != JOB_QUEUED)
            say(&x, why, "%s", reason_text(why));
        if (j->later)
            say_later(c, later_of(c, id.v), now_ms, &x);
    } else {
        say_limit(c, j, &x);
        say_room(c, j, &x);
        if (j->has_claim)
            say(&x, WHY_KEPT,
                "room is being kept for it: it starts when enough of what runs there has ended");
        if (x.n == 0)
            say(&x, WHY_NEW, "there is room: the next pass starts it");
    }
    x.has_eta = core_eta(c, id, now_ms, &x.eta);
    *out = x;
    return 0;
}
