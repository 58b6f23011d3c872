/* Why a job waits, in sentences with figures; computed when somebody asks. */
#include <stdarg.h>
#include <stdio.h>

#include "base/date.h"
#include "base/parse.h"
#include "core/lift.h"

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

/* Goes on with the last sentence. */
static void say_more(struct explanation *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say_more(struct explanation *x, const char *fmt, ...)
{
    char *text = x->line[x->n - 1].text;
    size_t used = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + used, sizeof x->line->text - used, fmt, ap);
    va_end(ap);
}

static void say_limit(const struct core *c, uint32_t share, enum resource which,
                      const struct amounts *a, struct explanation *x)
{
    const struct share *s = &c->shares.at[share];
    double unit = resource_unit(which);
    say(x, s->is_user ? WHY_LIMIT_USER : WHY_LIMIT_TENANT,
        "%s '%s' uses %.6g of the %.6g %s it may use at a time; this job needs %.6g",
        s->is_user ? "user" : "tenant", s->name, (double)s->used.of[which] / unit,
        (double)s->limit.of[which] / unit, resource_words(which), (double)a->of[which] / unit);
    x->line[x->n - 1].share.v = share;
    x->line[x->n - 1].which = which;
}

/* ---- limits ---- */

static const struct promise *promise_of(const struct core *c, const struct job *j)
{
    for (uint32_t i = 0; j->promised && i < c->promises; i++)
        if (&c->queue.job[c->promise[i].job] == j)
            return &c->promise[i];
    return NULL;
}

/* What leaves for the job, from the machines that are promised to it; `out` has room for all that
 * hold something.  Each is in the list once. */
static struct gone leavers(const struct core *c, const struct job *j, uint32_t *out)
{
    const struct promise *p = promise_of(c, j);
    struct gone g = { .job = out };
    for (uint32_t i = 0; p && i < c->queue.holders; i++) {
        const struct job *l = &c->queue.job[c->queue.holder[i]];
        bool there = false;
        for (uint32_t k = 0; job_leaves(l) && k < l->held->n && !there; k++)
            there = slots_on(p->slot, p->n, l->held->slot[k].node) > 0;
        if (there)
            out[g.n++] = c->queue.holder[i];
    }
    return g;
}

/* The share, once they have left. */
static struct share share_then(const struct core *c, uint32_t share, struct gone gone)
{
    struct share s = c->shares.at[share];
    for (uint32_t i = 0; i < gone.n; i++) {
        const struct job *l = &c->queue.job[gone.job[i]];
        for (int r = 0; r < RES_COUNT && share_is_below(&c->shares, l->leaf, share); r++)
            s.used.of[r] -= l->held->charged.of[r];
    }
    return s;
}

/* Its time has ended, its budget is spent, or both. */
static void say_closed(const struct core *c, uint32_t share, struct explanation *x)
{
    const struct share *s = &c->shares.at[share];
    const double hour = 3600.0 * 1000 * GPU_MILLI;
    char at[32];
    if (s->closed && rules_are_over(s->rules, c->wall_ms)) {
        say(x, WHY_EXPIRED, "the time of tenant '%s' ended at %s: nothing of it starts any more",
            s->name, date_format(s->rules->until_ms, at));
        x->line[x->n - 1].share.v = share;
    }
    if (s->closed && rules_are_spent(s->rules, c->now_ms, c->wall_ms)) {
        say(x, WHY_BUDGET,
            "tenant '%s' has used %.6g of its %.6g GPU-hours; its next period begins at %s",
            s->name, (double)rules_spent(s->rules, c->now_ms) / hour,
            (double)s->rules->budget.most / hour, date_format(s->rules->budget.until_ms, at));
        x->line[x->n - 1].share.v = share;
    }
}

static void say_cap(const struct core *c, uint32_t share, uint32_t cap, const struct job *j,
                    struct explanation *x)
{
    const struct share *s = &c->shares.at[share];
    const struct model_cap *m = &s->rules->cap[cap];
    struct request r = c->shapes.at[j->shape].request;
    r.models = request_models(c, &r) & m->models;
    say(x, WHY_LIMIT_TENANT,
        "tenant '%s' uses %.6g of the %.6g GPUs of %s it may use at a time; this job needs %.6g",
        s->name, (double)m->used_milli / GPU_MILLI, (double)m->limit_milli / GPU_MILLI, m->names,
        (double)core_gpu_milli(c, &r) / GPU_MILLI);
    x->line[x->n - 1].share.v = share;
    x->line[x->n - 1].which = RES_COUNT;
}

/* One obstacle, though there may be several: with one of them gone it has a model that it may take. */
static void say_caps(const struct core *c, const struct job *j, struct gone gone,
                     struct explanation *x)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    uint32_t n = 0;
    for (uint32_t i = j->leaf; i != NONE; i = c->shares.at[i].parent)
        for (uint32_t k = 0; c->shares.at[i].rules && k < c->shares.at[i].rules->caps; k++)
            if (core_cap_is_full(c, i, k, r, gone) && ++n == 1)
                say_cap(c, i, k, j, x);
    if (n > 1)
        say_more(x, "; and %u limits of GPU models more", n - 1);
}

/* Of a job that has a promise: its slots are fixed, and so are the models. */
static bool keeps_from_slots(const struct core *c, const struct job *j, struct gone gone)
{
    const struct promise *p = promise_of(c, j);
    const struct request *r = &c->shapes.at[j->shape].request;
    uint32_t by;
    if (!p || c->shares.ruled == 0)
        return false;
    uint64_t open = core_open_models(c, j->leaf, r, gone, &by);
    for (uint32_t i = 0; i < p->n && core_gpu_milli(c, r); i++)
        if (!(open >> c->cluster.kind[c->cluster.node[p->slot[i].node].kind].model & 1))
            return true;
    return false;
}

static void say_limits(const struct core *c, const struct job *j, struct explanation *x)
{
    struct amounts a = core_amounts(c, &c->shapes.at[j->shape].request);
    AUTO(free_p) uint32_t *list = xcalloc(c->queue.holders + 1, sizeof *list);
    struct gone gone = leavers(c, j, list);
    uint32_t n = 0;
    for (uint32_t i = j->leaf; i != NONE; i = c->shares.at[i].parent) {
        struct share then = share_then(c, i, gone);
        say_closed(c, i, x);
        for (int r = 0; r < RES_COUNT; r++)
            if (share_is_over(&then, (enum resource)r, &a) && ++n <= EXPLAIN_LIMITS)
                say_limit(c, i, (enum resource)r, &a, x);
    }
    if (n > EXPLAIN_LIMITS)
        say_more(x, "; and %u limits more", n - EXPLAIN_LIMITS);
    if (keeps_from_slots(c, j, gone))
        say_caps(c, j, gone, x);
}

/* What is free now on the machines that could run one replica. */
struct supply {
    uint32_t nodes_up, nodes_not_up, kept;
    uint32_t most_whole; /* on one machine */
    uint32_t most_part;  /* on one GPU, thousandths */
    uint64_t whole;
    uint32_t held;               /* machines that their owners hold */
    uint32_t closed, closing;    /* machines whose window is closed, or ends too soon for the job */
    int64_t opens_ms, closes_ms; /* the first of those, the last of these */
    uint32_t reserved;           /* a reservation that some of them are for; 0: none */
};

/* Is its window in the way, or a reservation?  Then it is counted. */
static bool count_window(const struct core *c, const struct kind *k, const struct request *r,
                         struct supply *s)
{
    const struct reservation *of = reservation_at(c, k->reserved);
    bool reserved = of && k->left_ms >= 0 && (k->free_ms < 0 || k->free_ms <= k->left_ms);
    if (kind_takes(k, r) || r->reservation)
        return !kind_takes(k, r);
    int64_t change_ms = !reserved      ? c->cluster.pool[k->pool].change_ms
                      : k->free_ms < 0 ? of->until_ms
                                       : of->from_ms;
    if (reserved)
        s->reserved = k->reserved;
    if (!reserved && strcmp(names_get(&c->cluster.pool_names, k->pool), POOL_HELD) == 0)
        s->held++;
    else if (k->left_ms < 0 || (reserved && k->free_ms < 0))
        s->opens_ms = s->closed++ ? MIN(s->opens_ms, change_ms) : change_ms;
    else
        s->closes_ms = s->closing++ ? MAX(s->closes_ms, change_ms) : change_ms;
    return true;
}

static struct supply count_supply(const struct core *c, const struct request *r)
{
    struct supply s = { 0 };
    for (uint32_t i = 0; i < c->cluster.nodes; i++) {
        const struct node *n = &c->cluster.node[i];
        const struct kind *k = &c->cluster.kind[n->kind];
        uint32_t whole = 0;
        if (!kind_allows(k, r) || !kind_in_zone(k, r))
            continue;
        bool shut = count_window(c, k, r, &s);
        s.nodes_not_up += n->state != NODE_UP;
        if (n->state != NODE_UP || shut)
            continue;
        for (int g = 0; g < k->gpus; g++) {
            whole += n->offer.gpu[g] == GPU_MILLI;
            s.most_part = MAX(s.most_part, n->offer.gpu[g]);
        }
        s.nodes_up++;
        s.kept += n->kept.job != NONE || n->promises;
        s.whole += whole;
        s.most_whole = MAX(s.most_whole, whole);
    }
    return s;
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
}

static void say_down(const struct supply *s, struct explanation *x)
{
    if (s->nodes_up == 0)
        say(x, WHY_NO_NODE, "none of the machines that could run it is up");
    else
        say(x, WHY_NO_NODE,
            "%u of the machines that could run it %s drained or down, and the others do not have "
            "the room",
            s->nodes_not_up, s->nodes_not_up == 1 ? "is" : "are");
}

static void say_kept(const struct supply *s, struct explanation *x)
{
    say(x, WHY_KEPT, "room on %u machine%s is kept for jobs that go before it", s->kept,
        s->kept == 1 ? "" : "s");
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

/* One obstacle, though machines may be of both sorts; what an owner has to say is a sentence of its own. */
static void say_windows(const struct job *j, const struct supply *s, struct explanation *x)
{
    const char *are = s->closed == 1 ? "is" : "are", *many = s->closed == 1 ? "" : "s";
    char at[32];
    if (s->held == 1)
        say(x, WHY_WINDOW, "1 machine that could run it is held by its owner until released");
    else if (s->held)
        say(x, WHY_WINDOW, "%u machines that could run it are held by their owners until released",
            s->held);
    if (s->closed && s->opens_ms == INT64_MAX)
        say(x, WHY_WINDOW, "%u machine%s that could run it %s not lent any more", s->closed, many,
            are);
    else if (s->closed)
        say(x, WHY_WINDOW, "%u machine%s that could run it %s %s from %s on", s->closed, many, are,
            s->reserved ? "free" : "lent", date_format(s->opens_ms, at));
    if (!s->closing)
        return;
    if (s->closed)
        say_more(x, "; ");
    else
        say(x, WHY_WINDOW, "%s", "");
    say_more(x, "%u machine%s that could run it %s %s at %s: %s", s->closing,
             s->closing == 1 ? "" : "s", s->closing == 1 ? "is" : "are",
             s->reserved ? "taken" : "given back", date_format(s->closes_ms, at), why_not_there(j));
}

/* It runs in its reservation only. */
static void say_reservation(const struct core *c, const struct reservation *r,
                            struct explanation *x)
{
    char at[32];
    if (r->from_ms > c->wall_ms)
        say(x, WHY_RESERVED, "its reservation '%s' begins at %s", r->name,
            date_format(r->from_ms, at));
    else
        say(x, WHY_WINDOW, "the machines of its reservation '%s', which ends at %s, are not enough",
            r->name, date_format(r->until_ms, at));
}

static void say_pools(const struct core *c, const struct job *j, struct explanation *x)
{
    uint32_t owner = core_zone_owner(c, j->leaf);
    char pools[160];
    say(x, WHY_POOLS, "tenant '%s' may use %s: none of them could run it",
        owner == NONE ? "" : c->shares.at[owner].name,
        core_zone_words(c, c->shares.at[j->leaf].zone, sizeof pools, pools));
}

static uint32_t count_matches(const struct core *c, const struct request *r)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->cluster.kinds; k++)
        n += kind_matches(&c->cluster.kind[k], r) ? c->cluster.kind[k].nodes : 0;
    return n;
}

static void say_no_match(const struct core *c, const struct job *j, struct explanation *x)
{
    uint32_t n = count_matches(c, &c->shapes.at[j->shape].request);
    if (n == 0)
        say(x, WHY_NO_MATCH, "%s", reason_text(WHY_NO_MATCH));
    else
        say(x, WHY_NO_MATCH,
            "%u machine%s what it asks for of its machine (labels, taints), and cannot hold it", n,
            n == 1 ? " matches" : "s match");
}

static void say_matches(const struct core *c, const struct request *r, struct explanation *x)
{
    uint32_t n = count_matches(c, r);
    say_more(x, " (of the %u machine%s)", n, n == 1 ? " that matches" : "s that match");
}

/* What it may ask for, but for what is in its way. */
static struct request wanted_now(const struct core *c, const struct job *j, unsigned lifts)
{
    struct request r = window_request(c, j), narrowed = r;
    uint32_t by;
    if (lifts & (LIFT_POOLS | LIFT_NEVER))
        r.zone = 0;
    if (lifts & (LIFT_TRAITS | LIFT_NEVER))
        r.traits = 0;
    narrowed.models = core_open_models(c, j->leaf, &r, (struct gone){ 0 }, &by);
    bool narrow = c->shares.ruled && !(lifts & (LIFT_MODELS | LIFT_NEVER)) && narrowed.models &&
                  narrowed.models != request_models(c, &r);
    r.models = narrow ? narrowed.models : r.models;
    return r;
}

/* Devices that no machine has enough of free; else those that are free are not where the rest is. */
static void say_devices(const struct core *c, const struct request *r, const char *where,
                        struct explanation *x)
{
    uint32_t i = devices_short(&c->cluster, r, true);
    if (i != NONE)
        say(x, WHY_DEVICE_BUSY, "needs %u of %s; the largest machine has %u free", r->device_n[i],
            device_name(&c->cluster, r, i), devices_most(&c->cluster, r, i, true));
    else
        say(x, WHY_DEVICE_BUSY, "%s have too few devices free: a replica needs %u of %s%s", where,
            r->device_n[0], device_name(&c->cluster, r, 0), r->device[1] ? ", and others" : "");
}

static void say_room(struct core *c, const struct job *j, struct explanation *x)
{
    unsigned lifts = lift_least(c, j);
    struct request wanted = wanted_now(c, j, lifts), *r = &wanted;
    const char *where = r->gpus || request_shares_gpu(r) ? "machines with free GPUs" : "machines";
    struct supply s = count_supply(c, r);
    struct err never;
    if (lifts & LIFT_TRAITS)
        say_no_match(c, j, x);
    if (lifts & LIFT_POOLS)
        say_pools(c, j, x);
    if (lifts & LIFT_MODELS)
        say_caps(c, j, (struct gone){ 0 }, x);
    if (lifts & LIFT_NEVER && place_check_possible(&c->cluster, r, &never) < 0)
        say(x, WHY_TOO_LARGE, "it fits on no machine here any more: %s", never.msg);
    if (lifts & LIFT_DOWN)
        say_down(&s, x);
    if (lifts & LIFT_WINDOW && r->reservation)
        say_reservation(c, reservation_at(c, r->reservation), x);
    else if (lifts & LIFT_WINDOW)
        say_windows(j, &s, x);
    if (lifts & LIFT_WINDOW && s.reserved)
        x->line[x->n - 1].reservation = s.reserved;
    if (lifts & LIFT_BUSY)
        say_gpus(r, &s, x);
    if (lifts & LIFT_CPU)
        say(x, WHY_CPU_BUSY, "%s have fewer than the %.3g CPUs a replica needs", where,
            r->cpu_milli / 1e3);
    if (lifts & LIFT_MEM)
        say(x, WHY_MEM_BUSY, "%s have less than the %u MiB of memory a replica needs", where,
            r->mem_mib);
    if (lifts & LIFT_DEVICE)
        say_devices(c, r, where, x);
    if (lifts & (LIFT_BUSY | LIFT_CPU | LIFT_MEM | LIFT_DEVICE) && r->traits)
        say_matches(c, r, x);
    if (lifts & LIFT_KEPT)
        say_kept(&s, x);
    if (lifts && j->has_claim)
        say_more(x, "; room is being kept for it");
}

/* Once its time has come that is no obstacle any more, though no pass has looked since. */
static void say_begin(const struct later *l, int64_t now_ms, struct explanation *x)
{
    char at[32], left[32];
    int64_t ms = l->begin_ms - now_ms;
    if (ms > 0)
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
        if (i == EXPLAIN_AFTERS)
            return;
        if (i == EXPLAIN_AFTERS - 1 && i + 1 < n)
            snprintf(more, sizeof more, ", and after %u more", n - i - 1);
        if (a[i].n == 1)
            say(x, WHY_AFTER, "it starts after job %llu %s%s", first, one[a[i].when], more);
        else
            say(x, WHY_AFTER, "it starts after jobs %llu to %llu %s: %u have not ended%s", first,
                first + a[i].n - 1, all[a[i].when], later_alive(c, &a[i]), more);
    }
}

/* Its time, and what it starts after. */
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

/* What keeps it from the queue. */
static void say_gates(const struct core *c, const struct job *j, int64_t now_ms,
                      struct explanation *x)
{
    enum reason why = j->state == JOB_HELD ? WHY_HELD : WHY_FROZEN;
    const struct promise *p = promise_of(c, j);
    const struct request *r = &c->shapes.at[j->shape].request;
    if (p && !cluster_has_room(&c->cluster, r, p->slot, p->n)) /* what leaves has not left */
        say(x, WHY_PROMISED, "%s", reason_text(WHY_PROMISED));
    if (!j->promised && j->group == NONE && j->state != JOB_QUEUED)
        say(x, why, "%s", reason_text(why));
    if (j->later)
        say_later(c, later_of(c, j->id), now_ms, x);
}

int core_explain(struct core *c, job_id id, int64_t now_ms, struct explanation *out, struct err *e)
{
    core_close_pass(c); /* of a journal that is told up to here */
    uint32_t job = queue_find(&c->queue, id.v);
    if (job == NONE)
        return err_set(e, ERR_NOT_FOUND, "no job %llu waits or runs", (unsigned long long)id.v);
    const struct job *j = &c->queue.job[job];
    struct explanation x = { .waited_ms = MAX(now_ms - j->submit_ms, INT64_C(0)) };
    if (job_state_holds(j->state))
        return err_set(e, ERR_CONFLICT, "job %llu does not wait: it is %s",
                       (unsigned long long)id.v, job_state_name(j->state));
    say_gates(c, j, now_ms, &x);
    say_limits(c, j, &x);
    if (!j->promised)
        say_room(c, j, &x);
    if (j->group != NONE)
        x.before = core_before(c, job, now_ms, NULL);
    if (x.n == 0)
        say(&x, WHY_NEW, "there is room: the next pass %s",
            x.before.own || x.before.users ? "starts it, unless others take that first"
                                           : "starts it");
    x.has_eta = core_eta(c, id, now_ms, &x.eta);
    *out = x;
    return 0;
}
