#include "core/later.h"

#include "core/state.h"

static bool due_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct later *x = &((const struct laters *)ctx)->at[a];
    const struct later *y = &((const struct laters *)ctx)->at[b];
    return x->begin_ms != y->begin_ms ? x->begin_ms < y->begin_ms : x->job < y->job;
}

static bool id_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct laters *l = ctx;
    return l->at[a].job < l->at[b].job;
}

void laters_init(struct laters *l)
{
    *l = (struct laters){
        .unused = NONE, .watch_unused = NONE, .link_unused = NONE, .member_unused = NONE
    };
    l->due = (struct heap){ .before = due_before, .ctx = l };
    l->never = (struct heap){ .before = id_before, .ctx = l };
}

void laters_free(struct laters *l)
{
    heap_free(&l->due);
    heap_free(&l->never);
    map_free(&l->by_job);
    map_free(&l->watch_by_first);
    map_free(&l->member_by_job);
    free(l->at);
    free(l->pos);
    free(l->watch);
    free(l->link);
    free(l->member);
}

static uint32_t find(const struct laters *l, uint64_t id)
{
    uint64_t i;
    return map_get(&l->by_job, id, &i) ? (uint32_t)i : NONE;
}

const struct later *later_of(const struct core *c, uint64_t id)
{
    uint32_t i = find(&c->laters, id);
    return i != NONE ? &c->laters.at[i] : NULL;
}

static uint32_t find_watch(const struct laters *l, const struct after *a)
{
    uint64_t i;
    uint32_t w = map_get(&l->watch_by_first, a->first.v, &i) ? (uint32_t)i : NONE;
    while (w != NONE && l->watch[w].n != a->n)
        w = l->watch[w].same;
    return w;
}

/* ---- what may be asked for ---- */

static bool any_alive(const struct core *c, const struct after *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (queue_find(&c->queue, a->first.v + i) != NONE)
            return true;
    return false;
}

static int check_after(const struct core *c, const struct after *a, uint64_t id, struct err *e)
{
    unsigned long long first = a->first.v;
    if (a->when >= AFTER_COUNT)
        return err_set(e, ERR_INVALID, "after: job %llu: unknown way to end", first);
    if (a->when == AFTER_NEVER)
        return 0;
    if (a->n < 1 || a->n > AFTER_JOBS_MAX)
        return err_set(e, ERR_INVALID, "after: %u jobs from %llu on; it must be 1 to %d", a->n,
                       first, AFTER_JOBS_MAX);
    if (a->first.v >= id || a->n > id - a->first.v)
        return err_set(e, ERR_NOT_FOUND, "after: there is no job %llu", first + a->n - 1);
    if (find_watch(&c->laters, a) == NONE && !any_alive(c, a))
        return err_set(e, ERR_CONFLICT, "after: job %llu has ended", first);
    return 0;
}

int later_check(const struct core *c, const struct event_submit *s, struct err *e)
{
    if (s->begin_ms < 0 || s->begin_ms > TIME_MAX_MS || s->since_ms < -TIME_MAX_MS ||
        s->since_ms > TIME_MAX_MS) {
        err_set(e, ERR_INVALID, "begin: %lld ms, since %lld ms: not a time", (long long)s->begin_ms,
                (long long)s->since_ms);
        return err_about(e, "begin");
    }
    if (s->frozen && (s->begin_ms || s->afters))
        return err_set(e, ERR_INVALID, "frozen: a job that has run waits for no time and no job");
    if (s->afters > AFTER_MAX) {
        err_set(e, ERR_INVALID, "after: %u jobs; at most %d", s->afters, AFTER_MAX);
        return err_about(e, "after");
    }
    for (uint32_t i = 0; i < s->afters; i++)
        if (check_after(c, &s->after[i], s->id.v, e) < 0)
            return err_about(e, "after");
    return 0;
}

/* ---- watches ---- */

static void member_add(struct laters *l, uint64_t id, uint32_t watch)
{
    uint64_t head = NONE;
    uint32_t m = l->member_unused;
    if (m != NONE) {
        l->member_unused = l->member[m].next;
    } else {
        vec_grow(l->member, l->members, l->member_cap);
        m = l->members++;
    }
    map_get(&l->member_by_job, id, &head);
    l->member[m] = (struct member){ .watch = watch, .next = (uint32_t)head };
    map_set(&l->member_by_job, id, m);
}

static uint32_t watch_of(struct core *c, const struct after *a)
{
    struct laters *l = &c->laters;
    uint64_t same = NONE;
    uint32_t w = find_watch(l, a);
    if (w != NONE)
        return w;
    w = l->watch_unused;
    if (w != NONE) {
        l->watch_unused = l->watch[w].same;
    } else {
        vec_grow(l->watch, l->watches, l->watch_cap);
        w = l->watches++;
    }
    map_get(&l->watch_by_first, a->first.v, &same);
    struct watch made = {
        .first = a->first.v, .n = a->n, .links = NONE, .last = NONE, .same = (uint32_t)same
    };
    for (uint32_t i = 0; i < a->n; i++)
        if (queue_find(&c->queue, a->first.v + i) != NONE) {
            member_add(l, a->first.v + i, w);
            made.alive++;
        }
    l->watch[w] = made;
    map_set(&l->watch_by_first, a->first.v, w);
    return w;
}

static void watch_free(struct laters *l, uint32_t watch)
{
    struct watch *w = &l->watch[watch];
    uint64_t head = NONE;
    map_get(&l->watch_by_first, w->first, &head);
    uint32_t at = (uint32_t)head;
    if (at == watch && w->same == NONE) {
        map_remove(&l->watch_by_first, w->first);
    } else if (at == watch) {
        map_set(&l->watch_by_first, w->first, w->same);
    } else {
        while (l->watch[at].same != watch)
            at = l->watch[at].same;
        l->watch[at].same = w->same;
    }
    w->n = 0;
    w->same = l->watch_unused;
    l->watch_unused = watch;
}

/* ---- links ---- */

static void link_add(struct core *c, uint32_t later, const struct after *a)
{
    struct laters *l = &c->laters;
    uint32_t watch = watch_of(c, a), i = l->link_unused;
    struct watch *w = &l->watch[watch];
    if (i != NONE) {
        l->link_unused = l->link[i].also;
    } else {
        vec_grow(l->link, l->link_n, l->link_cap);
        i = l->link_n++;
    }
    l->link[i] = (struct link){ .later = later,
                                .watch = watch,
                                .prev = w->last,
                                .next = NONE,
                                .also = l->at[later].links,
                                .when = a->when };
    *(w->last == NONE ? &w->links : &l->link[w->last].next) = i;
    w->last = i;
    w->picky += a->when != AFTER_ANY;
    l->at[later].links = i;
    l->at[later].open++;
}

static void unlink_watch(struct laters *l, uint32_t link)
{
    struct link *k = &l->link[link];
    if (k->watch == NONE)
        return;
    struct watch *w = &l->watch[k->watch];
    *(k->prev == NONE ? &w->links : &l->link[k->prev].next) = k->next;
    *(k->next == NONE ? &w->last : &l->link[k->next].prev) = k->prev;
    k->watch = NONE;
}

/* ---- one job ---- */

static void later_free(struct laters *l, uint32_t later)
{
    struct later *at = &l->at[later];
    for (uint32_t k = at->links, next; k != NONE; k = next) {
        next = l->link[k].also;
        unlink_watch(l, k);
        l->link[k].also = l->link_unused;
        l->link_unused = k;
    }
    heap_remove(at->never ? &l->never : &l->due, later);
    map_remove(&l->by_job, at->job);
    at->links = l->unused;
    l->unused = later;
}

void later_drop(struct core *c, uint32_t job)
{
    struct job *j = &c->queue.job[job];
    if (!j->later)
        return;
    j->later = false;
    later_free(&c->laters, find(&c->laters, j->id));
}

/* Nothing keeps it any more; somebody's hold may. */
static void release(struct core *c, uint32_t later, int64_t since_ms)
{
    uint32_t job = queue_find(&c->queue, c->laters.at[later].job);
    struct job *j = &c->queue.job[job];
    j->later = false;
    j->since_ms = MAX(since_ms, j->submit_ms);
    later_free(&c->laters, later);
    ledger_note(c, j);
    if (j->state == JOB_QUEUED)
        core_wait(c, job);
}

static void can_never(struct laters *l, uint32_t later, const struct after *cause, uint64_t by)
{
    struct later *at = &l->at[later];
    if (at->never)
        return;
    heap_remove(&l->due, later);
    at->never = true;
    at->cause = *cause;
    at->cause_job = by;
    heap_push(&l->never, later);
}

static uint32_t later_new(struct laters *l, const struct later *from)
{
    uint32_t i = l->unused, cap = l->cap;
    if (i != NONE) {
        l->unused = l->at[i].links;
    } else {
        vec_grow(l->at, l->n, l->cap);
        if (cap != l->cap)
            l->due.pos = l->never.pos = l->pos = xrealloc(l->pos, l->cap, sizeof *l->pos);
        i = l->n++;
    }
    l->at[i] = *from;
    l->pos[i] = HEAP_OUT;
    map_set(&l->by_job, from->job, i);
    return i;
}

void later_submit(struct core *c, uint32_t job, const struct event_submit *s, int64_t t_ms)
{
    struct laters *l = &c->laters;
    /* What a snapshot says of a known job was so when it was made. */
    bool not_yet = s->begin_ms && (s->begin_ms > t_ms || s->known);
    if (!not_yet && s->afters == 0)
        return;
    c->queue.job[job].later = true;
    uint32_t later =
        later_new(l, &(struct later){ .job = s->id.v, .begin_ms = s->begin_ms, .links = NONE });
    if (not_yet)
        heap_push(&l->due, later);
    for (uint32_t i = 0; i < s->afters; i++)
        if (s->after[i].when == AFTER_NEVER)
            can_never(l, later, &s->after[i], s->after[i].first.v);
        else
            link_add(c, later, &s->after[i]);
}

/* ---- what lets them go ---- */

void later_due(struct core *c, int64_t t_ms)
{
    struct laters *l = &c->laters;
    while (l->due.n && l->at[heap_top(&l->due)].begin_ms <= t_ms) {
        uint32_t later = heap_pop(&l->due);
        if (l->at[later].open == 0)
            release(c, later, l->at[later].begin_ms);
    }
}

/* One of the span failed: `ok` cannot be met any more, and `bad` is once the others have ended. */
static void watch_spoiled(struct laters *l, uint32_t watch, uint64_t id)
{
    struct watch *w = &l->watch[watch];
    for (uint32_t k = w->links; k != NONE && w->picky; k = l->link[k].next) {
        struct after a = { { w->first }, w->n, l->link[k].when };
        if (a.when == AFTER_OK)
            can_never(l, l->link[k].later, &a, id);
        l->link[k].when = AFTER_ANY;
    }
    w->picky = 0;
}

static void watch_over(struct core *c, uint32_t watch, uint64_t id, int64_t now_ms)
{
    struct laters *l = &c->laters;
    for (uint32_t k; (k = l->watch[watch].links) != NONE;) {
        struct after a = { { l->watch[watch].first }, l->watch[watch].n, l->link[k].when };
        uint32_t later = l->link[k].later;
        unlink_watch(l, k);
        l->at[later].open--;
        if (a.when == AFTER_BAD)
            can_never(l, later, &a, id);
        else if (l->at[later].open == 0 && l->pos[later] == HEAP_OUT)
            release(c, later, now_ms);
    }
    watch_free(l, watch);
}

void later_ended(struct core *c, uint64_t id, bool ok, int64_t now_ms)
{
    struct laters *l = &c->laters;
    uint64_t head;
    if (!map_get(&l->member_by_job, id, &head))
        return;
    map_remove(&l->member_by_job, id);
    for (uint32_t m = (uint32_t)head, next; m != NONE; m = next) {
        uint32_t watch = l->member[m].watch;
        next = l->member[m].next;
        l->member[m].next = l->member_unused;
        l->member_unused = m;
        if (!ok)
            watch_spoiled(l, watch, id);
        if (--l->watch[watch].alive == 0)
            watch_over(c, watch, id, now_ms);
    }
}

/* ---- looking ---- */

int64_t core_wake_ms(const struct core *c)
{
    const struct laters *l = &c->laters;
    int64_t due_ms = l->due.n ? l->at[heap_top(&l->due)].begin_ms : INT64_MAX;
    bool reviews = c->queue.waiting && c->cluster.holding && (c->policy.take_back || c->claims);
    int64_t wake_ms = MIN(due_ms, windows_wake_ms(c));
    wake_ms = MIN(wake_ms, rules_wake_ms(c));
    return reviews ? MIN(wake_ms, c->review_ms) : wake_ms;
}

bool core_never(const struct core *c, struct never *out)
{
    const struct laters *l = &c->laters;
    if (l->never.n == 0)
        return false;
    const struct later *at = &l->at[heap_top(&l->never)];
    *out = (struct never){ .job = { at->job }, .by = { at->cause_job }, .after = at->cause };
    return true;
}

uint32_t later_alive(const struct core *c, const struct after *a)
{
    uint32_t w = find_watch(&c->laters, a);
    return w != NONE ? c->laters.watch[w].alive : 0;
}

bool later_is_early(const struct core *c, const struct later *at)
{
    return !at->never && c->laters.pos[at - c->laters.at] != HEAP_OUT;
}

uint32_t later_open(const struct core *c, const struct later *at, struct after out[AFTER_MAX])
{
    const struct laters *l = &c->laters;
    uint32_t n = 0;
    for (uint32_t k = at->links; k != NONE; k = l->link[k].also)
        n += l->link[k].watch != NONE;
    uint32_t left = n;
    for (uint32_t k = at->links; k != NONE; k = l->link[k].also) /* the last one asked for first */
        if (l->link[k].watch != NONE) {
            const struct watch *w = &l->watch[l->link[k].watch];
            out[--left] = (struct after){ { w->first }, w->n, l->link[k].when };
        }
    return n;
}

uint32_t core_job_after(const struct core *c, job_id id, struct after out[AFTER_MAX])
{
    const struct later *at = later_of(c, id.v);
    return at && !at->never ? later_open(c, at, out) : 0; /* what can never start waits no more */
}

/* ---- the audit ---- */

static int audit_watch(const struct core *c, const struct watch *w, struct err *e)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < w->n; i++)
        alive += queue_find(&c->queue, w->first + i) != NONE;
    if (w->n && (alive == 0 || alive != w->alive))
        return err_set(e, ERR_INTERNAL, "%u of the jobs from %llu on live, not %u", alive,
                       (unsigned long long)w->first, w->alive);
    return 0;
}

static int audit_later(const struct core *c, const struct job *j, struct err *e)
{
    struct after open[AFTER_MAX];
    const struct later *at = later_of(c, j->id);
    bool right = at && j->group == NONE && (j->state == JOB_QUEUED || j->state == JOB_HELD);
    if (right) {
        bool kept = at->never || at->open || later_is_early(c, at);
        right = kept && later_open(c, at, open) == at->open;
    }
    if (!right)
        return err_set(e, ERR_INTERNAL, "job %llu is kept from the queue by nothing",
                       (unsigned long long)j->id);
    return 0;
}

int later_audit(const struct core *c, struct err *e)
{
    size_t kept = 0;
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (!j->later || queue_find(&c->queue, j->id) != i)
            continue;
        kept++;
        if (audit_later(c, j, e) < 0)
            return -1;
    }
    for (uint32_t w = 0; w < c->laters.watches; w++)
        if (audit_watch(c, &c->laters.watch[w], e) < 0)
            return -1;
    if (kept != c->laters.by_job.n)
        return err_set(e, ERR_INTERNAL, "%zu jobs are kept from the queue, not %zu", kept,
                       c->laters.by_job.n);
    return 0;
}
