#include "core/window.h"

#include "core/state.h"

#define SURELY 0.9 /* of the cases */
/* What no machine that is lent can run goes first on the others, inside its user: what they can run
 * has them at times, and so they find work. */
#define ONLY_HERE 10.0
#define WORTH_COSTS 2 /* a start is worth so many times what its freeze costs */

/* Steps of at most a half, and whole nights and weekends. */
static const int32_t stay_min[] = {
    INT32_MAX, 1,   2,   3,   5,    7,    10,   15,   20,   25,   30,   35,   40,   45,    50,
    60,        75,  90,  105, 120,  150,  180,  210,  240,  300,  360,  420,  480,  540,   600,
    660,       720, 840, 960, 1200, 1440, 1800, 2160, 2880, 3600, 4320, 5760, 7200, 10080, 20160,
};
_Static_assert(ARRAY_LEN(stay_min) <= UINT8_MAX, "a class is one byte of a request");

int64_t window_stay_ms(uint8_t stay)
{
    return stay ? stay_min[stay] * INT64_C(60000) : INT64_MAX;
}

uint8_t window_stay_of(int64_t ms)
{
    uint32_t i = 1;
    while (i < ARRAY_LEN(stay_min) && ms > window_stay_ms((uint8_t)i))
        i++;
    return i < ARRAY_LEN(stay_min) ? (uint8_t)i : 0;
}

uint8_t window_stay_in(int64_t ms)
{
    uint8_t stay = 0;
    while (stay + 1u < ARRAY_LEN(stay_min) && window_stay_ms((uint8_t)(stay + 1)) <= ms)
        stay++;
    return stay;
}

bool window_ever_takes(const struct cluster *c, const struct kind *k, const struct request *r)
{
    return kind_in_zone(k, r) && (k->pool == NONE || c->pool[k->pool].always || r->stay);
}

bool window_takes_in(const struct kind *k, const struct request *r, int64_t ms)
{
    int64_t left_ms = k->left_ms;
    if (!kind_in_zone(k, r))
        return false;
    if (!r->reservation)
        left_ms = MIN(left_ms, k->free_ms);
    else if (r->reservation != k->reserved || k->free_ms >= 0)
        return false;
    return left_ms == INT64_MAX || left_ms - ms >= window_stay_ms(r->stay);
}

/* ---- what a job needs ---- */

/* What a freeze and a thaw cost is what they take in the middle; a freeze alone may take that long twice,
 * and the machine has to be free even then. */
static int64_t hand_back_ms(const struct core *c, const struct job *j)
{
    int64_t ms = MAX(2 * (int64_t)j->thaw_cost_ms + WINDOW_SPARE_MS, WINDOW_BACK_MS);
    return MIN(ms, c->policy.window_lead_ms);
}

static int64_t needs_ms(const struct core *c, const struct job *j)
{
    int64_t back_ms = hand_back_ms(c, j), need_ms = INT64_MAX;
    if (j->limit_ms)
        need_ms = MAX(j->limit_ms - j->ran_ms, INT64_C(0)) + back_ms; /* a stop takes time, too */
    if (j->thaw_cost_ms == 0)
        return need_ms;
    int64_t left_ms = history_left_ms(history_row(&c->history, core_of(c, j)), j->ran_ms, SURELY);
    need_ms = MIN(need_ms, left_ms + back_ms);
    if (j->restarts)
        return need_ms;
    int64_t worth_ms = WORTH_COSTS * (int64_t)j->thaw_cost_ms + back_ms;
    worth_ms = MAX(worth_ms, c->policy.window_lead_ms);
    return MIN(need_ms, worth_ms);
}

void core_set_request(struct core *c, uint32_t job, const struct request *r)
{
    struct job *j = &c->queue.job[job];
    uint32_t was = j->shape;
    bool waits = j->group != NONE;
    if (waits)
        queue_remove(&c->queue, &c->shapes, &c->shares, job);
    j->shape = shapes_ref(&c->shapes, r);
    shapes_unref(&c->shapes, was);
    if (waits)
        queue_add(&c->queue, &c->shapes, &c->shares, job);
}

static uint8_t stay_of(const struct core *c, const struct job *j)
{
    bool asked = c->cluster.windows || c->cluster.reservations;
    return asked ? window_stay_of(needs_ms(c, j)) : 0;
}

/* What it needs is a part of its shape. */
static void set_stay(struct core *c, uint32_t job)
{
    const struct job *j = &c->queue.job[job];
    struct request r = c->shapes.at[j->shape].request;
    uint8_t was = r.stay;
    r.stay = stay_of(c, j);
    if (r.stay != was)
        core_set_request(c, job, &r);
}

struct request window_request(const struct core *c, const struct job *j)
{
    struct request r = c->shapes.at[j->shape].request;
    if (j->group == NONE)
        r.stay = stay_of(c, j);
    return r;
}

void core_wait(struct core *c, uint32_t job)
{
    set_stay(c, job);
    queue_add(&c->queue, &c->shapes, &c->shares, job);
}

void windows_learn(struct core *c)
{
    if (!c->windows_changed)
        return;
    c->windows_changed = false;
    for (uint32_t i = 0; i < c->queue.jobs && c->windows_used; i++)
        if (c->queue.job[i].group != NONE)
            set_stay(c, i);
    c->windows_used = c->cluster.windows || c->cluster.reservations;
}

double window_worth(const struct core *c, const struct request *r)
{
    const struct cluster *cl = &c->cluster;
    for (uint32_t k = 0; k < cl->kinds && cl->windows; k++)
        if (cl->kind[k].pool != NONE && !cl->pool[cl->kind[k].pool].always &&
            kind_in_zone(&cl->kind[k], r) && kind_allows(&cl->kind[k], r))
            return 1;
    return cl->windows ? ONLY_HERE : 1;
}

/* ---- windows and the clock ---- */

static void refresh(struct core *c, uint32_t pool, int64_t wall_ms)
{
    struct pool *p = &c->cluster.pool[pool];
    if (wall_ms < p->from_ms || wall_ms >= p->change_ms) {
        p->from_ms = wall_ms;
        p->change_ms = calendar_next_change(&p->calendar, wall_ms);
        p->open = calendar_is_open(&p->calendar, wall_ms);
        cluster_wake_pool(&c->cluster, pool); /* it may have been closed in between */
    }
    int64_t left_ms = p->change_ms == INT64_MAX ? INT64_MAX : p->change_ms - wall_ms;
    cluster_set_left(&c->cluster, pool, p->open ? left_ms : -1);
}

void window_set(struct core *c, uint32_t pool, const struct calendar *calendar, int64_t t_ms)
{
    struct pool *p = &c->cluster.pool[pool];
    c->cluster.windows += !!calendar;
    c->cluster.windows -= !p->always;
    p->always = !calendar;
    p->calendar = calendar ? *calendar : calendar_always();
    p->from_ms = p->change_ms = INT64_MIN; /* unknown */
    refresh(c, pool, t_ms);
    c->windows_changed = true;
    c->windows_used = c->windows_used || calendar;
}

void windows_review(struct core *c, int64_t wall_ms)
{
    for (uint32_t i = 0; i < c->cluster.pool_names.n; i++) {
        if (c->cluster.pool[i].always)
            continue;
        refresh(c, i, wall_ms);
        if (wall_ms < c->wall_ms) /* more is left than before */
            cluster_wake_pool(&c->cluster, i);
    }
    c->wall_ms = wall_ms;
}

/* When a kind that does not take it now will next, as far as can be told. */
static int64_t kind_opens_ms(const struct core *c, const struct kind *k, const struct request *r)
{
    const struct reservation *has = reservation_at(c, k->reserved);
    int64_t opens_ms = c->wall_ms;
    if (k->pool != NONE && k->left_ms != INT64_MAX) {
        const struct pool *p = &c->cluster.pool[k->pool];
        if (!r->stay)
            return INT64_MAX;
        opens_ms = p->open ? calendar_next_change(&p->calendar, p->change_ms) : p->change_ms;
    }
    return !r->reservation && has ? MAX(opens_ms, has->until_ms) : opens_ms;
}

int64_t window_opens_ms(const struct core *c, const struct request *r)
{
    const struct reservation *in = reservation_at(c, r->reservation);
    int64_t opens_ms = INT64_MAX;
    if (in)
        return in->from_ms;
    for (uint32_t k = 0; k < c->cluster.kinds; k++) {
        const struct kind *kind = &c->cluster.kind[k];
        if (kind->nodes == 0 || !kind_allows(kind, r) || !kind_in_zone(kind, r))
            continue;
        if (kind_takes(kind, r))
            return INT64_MIN;
        opens_ms = MIN(opens_ms, kind_opens_ms(c, kind, r));
    }
    return opens_ms;
}

/* ---- the end of a window ---- */

int64_t window_leave_ms(const struct core *c, const struct job *j, int64_t closes_ms)
{
    return closes_ms - hand_back_ms(c, j);
}

static bool can_leave(const struct job *j)
{
    return j->state == JOB_RUNNING && j->thaw_cost_ms;
}

struct closing window_closing(const struct pool *p)
{
    return (
        struct closing){ .left_ms = p->left_ms, .at_ms = p->change_ms, .node = p->node, .n = p->n };
}

bool closing_is_near(const struct core *c, const struct closing *at)
{
    return at->left_ms <= c->policy.window_lead_ms;
}

static bool has_to_leave(const struct core *c, const struct closing *at, const struct job *j)
{
    bool stays = at->stays && c->shapes.at[j->shape].request.reservation == at->stays;
    return at->left_ms != INT64_MAX && can_leave(j) && !stays;
}

bool closing_is_due(const struct core *c, const struct closing *at, const struct job *j)
{
    return has_to_leave(c, at, j) &&
           (at->left_ms < 0 || window_leave_ms(c, j, at->at_ms) <= c->wall_ms);
}

/* The next of its jobs that has to leave before it closes. */
static int64_t next_leave_ms(const struct core *c, const struct closing *at)
{
    int64_t next_ms = at->at_ms;
    for (uint32_t i = 0; i < at->n; i++) {
        const struct node *n = &c->cluster.node[at->node[i]];
        for (uint32_t k = 0; k < n->jobs; k++) {
            const struct job *j = &c->queue.job[n->job[k]];
            if (has_to_leave(c, at, j))
                next_ms = MIN(next_ms, window_leave_ms(c, j, at->at_ms));
        }
    }
    return next_ms;
}

static int64_t closing_wake_ms(const struct core *c, const struct closing *at)
{
    if (at->at_ms == INT64_MAX || at->left_ms < 0)
        return at->at_ms;
    return closing_is_near(c, at) ? next_leave_ms(c, at) : at->at_ms - c->policy.window_lead_ms;
}

int64_t windows_wake_ms(const struct core *c)
{
    int64_t wake_ms = INT64_MAX;
    for (uint32_t i = 0; i < c->cluster.pool_names.n; i++) {
        struct closing at = window_closing(&c->cluster.pool[i]);
        wake_ms = MIN(wake_ms, closing_wake_ms(c, &at));
    }
    for (uint32_t i = 0; i < c->reservations && c->cluster.reservations; i++) {
        const struct reservation *r = &c->reservation[i];
        struct closing at = reservation_closing(c, r);
        if (r->name)
            wake_ms = MIN(wake_ms, at.left_ms < 0 ? r->until_ms : closing_wake_ms(c, &at));
    }
    return wake_ms;
}

/* When the first window of its machines ends; now where one is closed, INT64_MAX: none ends. */
static int64_t closes_ms(const struct core *c, const struct job *j)
{
    int64_t ms = INT64_MAX;
    for (uint32_t i = 0; i < j->held->n; i++) {
        const struct kind *k = &c->cluster.kind[c->cluster.node[j->held->slot[i].node].kind];
        if (k->pool == NONE || k->left_ms == INT64_MAX)
            continue;
        ms = MIN(ms, k->left_ms < 0 ? c->wall_ms : c->cluster.pool[k->pool].change_ms);
    }
    return ms;
}

bool core_leave(const struct core *c, job_id id, int64_t by_ms, struct leave *out)
{
    uint32_t job = queue_find(&c->queue, id.v);
    const struct job *j = job == NONE ? NULL : &c->queue.job[job];
    if (!j || !j->held)
        return false;
    int64_t end_ms = INT64_MAX, close_ms = by_ms == LEAVE_BY_WINDOW ? closes_ms(c, j) : by_ms;
    if (j->limit_ms)
        end_ms = c->wall_ms + MAX(j->limit_ms - core_ran_ms(j, c->now_ms), INT64_C(0));
    if (close_ms == INT64_MAX)
        *out = (struct leave){ LEAVE_NEVER, INT64_MAX };
    else if (end_ms <= window_leave_ms(c, j, close_ms))
        *out = (struct leave){ LEAVE_ENDS, end_ms };
    else if (j->thaw_cost_ms && (can_leave(j) || j->leaving))
        *out = (struct leave){ j->restarts ? LEAVE_ANEW : LEAVE_FROZEN,
                               MAX(window_leave_ms(c, j, close_ms), c->wall_ms) };
    else
        *out = (struct leave){ end_ms <= close_ms ? LEAVE_ENDS : LEAVE_STAYS, end_ms };
    return true;
}
