/* When a waiting job will start, as an interval.
 *
 * Waits are looked at as logarithms (of 2, of seconds), less half the logarithm of the GPUs that the
 * same user has before the job.  Jobs that begin to wait in the same hour are one burst: how bursts
 * differ from one another, and jobs inside one, gives a mean and a spread for the next; P90 lies the
 * further from the mean the fewer bursts are known (Student's quantiles).  What is then left is learnt
 * from what became of earlier statements, slowly, so that one burst does not undo what all others
 * taught: half of the starts come before the first time and nine in ten before the second.
 * Waits of less than a minute are not waits. */
#include "core/forecast.h"

#include "base/date.h"
#include "base/decay.h"
#include "core/state.h"

#define HOUR_MS (60 * SHORT_MS)
#define STEP 0.013        /* of the correction, in spreads, each start and each miss */
#define FIRST_MEAN 8.23   /* 300 s: of a job with one GPU before it, when nothing is known */
#define FIRST_SPREAD 1.44 /* a factor of e */
#define FIRST_WEIGHT 0.2  /* of that, next to the mean burst */
#define SPREAD_MIN 0.43
#define WAIT_LOG_MAX 28.0 /* eight years */
#define STATE_MAX 16      /* statements of one pass; the rest is for the next */

static const double wanted[] = { 0.5, 0.9 };

static bool falls_due_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct due *x = &((const struct forecast *)ctx)->due[a];
    const struct due *y = &((const struct forecast *)ctx)->due[b];
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms;
    return x->job != y->job ? x->job < y->job : x->which < y->which;
}

void forecast_init(struct forecast *f)
{
    *f = (struct forecast){ .due_unused = NONE };
    f->next = (struct heap){ .before = falls_due_before, .ctx = f };
}

void forecast_free(struct forecast *f)
{
    heap_free(&f->next);
    free(f->due_pos);
    free(f->due);
    free(f->fresh);
}

/* ---- waits of the past ---- */

static struct burst *burst_at(const struct forecast *f, uint64_t i)
{
    return (struct burst *)&f->burst[i % FORECAST_BURSTS];
}

static uint64_t oldest(const struct forecast *f)
{
    return f->bursts > FORECAST_BURSTS ? f->bursts - FORECAST_BURSTS : 0;
}

void forecast_learn(struct forecast *f, const struct burst *seen)
{
    struct burst *b = NULL;
    for (uint64_t i = f->bursts; i-- > oldest(f) && !b;)
        if (burst_at(f, i)->tenant == seen->tenant && burst_at(f, i)->hour == seen->hour)
            b = burst_at(f, i);
    if (!b) {
        b = burst_at(f, f->bursts++);
        *b = (struct burst){ .tenant = seen->tenant, .hour = seen->hour };
    }
    b->jobs += seen->jobs;
    b->sum += seen->sum;
    b->squares += seen->squares;
}

/* The tenant's latest bursts, or everybody's (NONE); how many. */
static uint32_t recent(const struct forecast *f, uint32_t tenant,
                       const struct burst *out[FORECAST_RECENT])
{
    uint32_t n = 0;
    for (uint64_t i = f->bursts; i-- > oldest(f) && n < FORECAST_RECENT;)
        if (tenant == NONE || burst_at(f, i)->tenant == tenant)
            out[n++] = burst_at(f, i);
    return n;
}

static double root(double x)
{
    double y = x > 1 ? x : 1;
    for (int i = 0; i < 60; i++)
        y = (y + x / y) / 2;
    return y;
}

/* 90 % of Student's distribution with so many degrees of freedom. */
static double student_90(double freedom)
{
    static const double of[] = { 3.08, 3.08, 1.89, 1.64, 1.53, 1.48, 1.44, 1.41, 1.40, 1.38, 1.37 };
    uint32_t n = (uint32_t)(freedom + 0.5);
    return n < ARRAY_LEN(of) ? of[n] : n < 15 ? 1.36 : 1.33;
}

/* What the next wait is like: its mean, its spread, and P90 in spreads above the mean. */
struct outlook {
    double mean, spread, p90;
};

static struct outlook look_out(const struct forecast *f, uint32_t tenant)
{
    const struct burst *b[FORECAST_RECENT];
    uint32_t n = recent(f, tenant, b);
    if (n < 2)
        n = recent(f, NONE, b);
    double jobs = 0;
    for (uint32_t i = 0; i < n; i++)
        jobs += b[i]->jobs;
    double first = n ? FIRST_WEIGHT * jobs / n : 1, all = first + jobs, mean = first * FIRST_MEAN;
    for (uint32_t i = 0; i < n; i++)
        mean += b[i]->sum;
    mean /= all;
    double between = first * (FIRST_MEAN - mean) * (FIRST_MEAN - mean), weights = first * first;
    double within = first * FIRST_SPREAD * FIRST_SPREAD;
    for (uint32_t i = 0; i < n; i++) {
        double own = b[i]->sum / b[i]->jobs, inside = b[i]->squares / b[i]->jobs - own * own;
        between += b[i]->jobs * (own - mean) * (own - mean);
        within += b[i]->jobs * MAX(inside, 0.0);
        weights += b[i]->jobs * b[i]->jobs;
    }
    double bursts = all * all / weights; /* as many equal ones would say as much */
    double spread = root(between / all * (1 + 1 / bursts) + within / all);
    return (struct outlook){ mean, MAX(spread, SPREAD_MIN), student_90(bursts) };
}

/* ---- statements ---- */

/* GPU thousandths of the same user's jobs that go before it, itself included. */
static double ahead_of(const struct core *c, const struct job *j)
{
    const struct user_groups *u = &c->shares.at[j->leaf].groups;
    const struct group *own = &c->queue.group[j->group];
    struct rows_seen seen = { 0 };
    double worth = core_worth(c, &seen, j->leaf, own->shape, &u->at[own->leaf_at]), ahead = 0;
    for (uint32_t i = 0; i < u->n && i < AHEAD_GROUPS; i++) {
        const struct group *g = &c->queue.group[u->at[i].group];
        bool before = u->at[i].priority != own->priority
                        ? u->at[i].priority > own->priority
                        : g == own || core_worth(c, &seen, j->leaf, g->shape, &u->at[i]) >= worth;
        if (before)
            ahead += (double)core_amounts(c, &c->shapes.at[g->shape].request).of[RES_GPU] * g->n;
    }
    return MAX(ahead, 1.0);
}

/* The more stands before it, the longer it waits, but not in proportion: what runs ends, and what
 * came later is passed. */
static double ahead_log(double ahead)
{
    return decay_log2(MAX(ahead / GPU_MILLI, 0.25)) / 2;
}

/* When its machines and its tenants next let it start; INT64_MIN: they do now. */
static int64_t opens_ms(const struct core *c, const struct job *j)
{
    int64_t windows_ms = window_opens_ms(c, &c->shapes.at[j->shape].request);
    return MAX(windows_ms, core_opens_ms(c, j->leaf));
}

/* What waits for its reservation, a window or a budget teaches nothing about waiting for room. */
static bool waits_for_room(const struct core *c, const struct job *j)
{
    return opens_ms(c, j) == INT64_MIN;
}

/* A job that needs machines for longer than any is lent may never start; so what its tenant's end
 * keeps back. */
static bool may_start(const struct core *c, const struct job *j)
{
    return opens_ms(c, j) != INT64_MAX;
}

/* Of a job that has waited for so long already: what is left of the same interval, but never less
 * than a part of it, nor of what it has waited: waits are spread by factors, so whoever is still
 * there when the time has passed is one of those who wait for long. */
static struct eta interval(const struct core *c, const struct job *j, double ahead, int64_t now_ms)
{
    struct outlook o = look_out(&c->forecast, core_tenant(c, j));
    int64_t waited_ms = MAX(now_ms - j->wait_ms, INT64_C(0)), at[2];
    int64_t first_ms = opens_ms(c, j);
    for (int i = 0; i < 2; i++) {
        double spreads = c->forecast.shift[i] + (i ? o.p90 : 0);
        double log = MIN(o.mean + ahead_log(ahead) + spreads * o.spread, WAIT_LOG_MAX);
        int64_t all_ms = MAX((int64_t)(decay_pow2(log) * 1000), SHORT_MS);
        int64_t least_ms = MAX(all_ms / 4, i ? waited_ms : waited_ms / 3);
        int64_t left_ms = MAX(all_ms - waited_ms, least_ms);
        at[i] = MAX(now_ms + left_ms, first_ms);
    }
    return (struct eta){ at[0], MAX(at[0], at[1]) };
}

void forecast_waits(struct core *c, uint32_t job)
{
    struct forecast *f = &c->forecast;
    if (c->queue.job[job].ran_ms || c->queue.job[job].taken)
        return;
    if (f->first > f->n / 2) { /* what is done makes room */
        f->n -= f->first;
        memmove(f->fresh, f->fresh + f->first, f->n * sizeof *f->fresh);
        f->first = 0;
    }
    vec_grow(f->fresh, f->n, f->cap);
    f->fresh[f->n++] = c->queue.job[job].id;
}

static void correct(struct forecast *f, int which, bool came_in_time)
{
    double shift = f->shift[which] + STEP * (wanted[which] - (came_in_time ? 1 : 0));
    shift = MIN(shift, FORECAST_SHIFT_MAX);
    f->shift[which] = MAX(shift, -FORECAST_SHIFT_MAX);
}

static void expect(struct forecast *f, uint64_t job, uint8_t which, int64_t at_ms)
{
    uint32_t i = f->due_unused;
    if (i != NONE) {
        f->due_unused = f->due[i].unused;
    } else {
        uint32_t cap = f->due_cap;
        vec_grow(f->due, f->dues, f->due_cap);
        if (cap != f->due_cap)
            f->due_pos = xrealloc(f->due_pos, f->due_cap, sizeof *f->due_pos);
        i = f->dues++;
        f->due_pos[i] = HEAP_OUT;
    }
    f->due[i] = (struct due){ .at_ms = at_ms, .job = job, .which = which };
    f->next.pos = f->due_pos;
    heap_push(&f->next, i);
}

/* A job that still waits after what was said is a miss: it is known now, not when it starts. */
void forecast_miss(struct core *c)
{
    struct forecast *f = &c->forecast;
    while (f->next.n && f->due[heap_top(&f->next)].at_ms < c->now_ms) {
        uint32_t i = heap_pop(&f->next), job = queue_find(&c->queue, f->due[i].job);
        const struct job *j = job == NONE ? NULL : &c->queue.job[job];
        f->due[i].unused = f->due_unused;
        f->due_unused = i;
        if (j && j->is_stated && !j->held && !j->ran_ms)
            correct(f, f->due[i].which, false);
    }
}

/* Those that came and still wait after the pass get their statement; once. */
void forecast_state(struct core *c)
{
    struct forecast *f = &c->forecast;
    for (uint32_t stated = 0; f->first < f->n && stated < STATE_MAX; f->first++) {
        uint32_t job = queue_find(&c->queue, f->fresh[f->first]);
        struct job *j = job == NONE ? NULL : &c->queue.job[job];
        if (!j || j->group == NONE || j->is_stated || !waits_for_room(c, j))
            continue;
        j->ahead = (float)ahead_of(c, j);
        j->is_stated = true;
        j->stated_ms = c->now_ms;
        j->eta = interval(c, j, (double)j->ahead, c->now_ms);
        expect(f, j->id, 0, j->eta.p50_ms);
        expect(f, j->id, 1, j->eta.p90_ms);
        stated++;
    }
    if (f->first == f->n)
        f->first = f->n = 0;
}

void forecast_starts(struct core *c, struct job *j, int64_t now_ms)
{
    struct forecast *f = &c->forecast;
    const int64_t stated[] = { j->eta.p50_ms, j->eta.p90_ms };
    int64_t waited_ms = now_ms - j->wait_ms;
    if (j->ran_ms || j->taken || waited_ms <= SHORT_MS || !j->is_stated)
        return;
    for (int i = 0; i < 2; i++)
        if (now_ms <= stated[i])
            correct(f, i, true);
    double log = decay_log2((double)waited_ms / 1000) - ahead_log((double)j->ahead);
    forecast_learn(
        f, &(struct burst){ core_tenant(c, j), floor_div(j->wait_ms, HOUR_MS), 1, log, log * log });
}

bool core_eta(const struct core *c, job_id id, int64_t now_ms, struct eta *out)
{
    uint32_t job = queue_find(&c->queue, id.v);
    if (job == NONE || c->queue.job[job].group == NONE || !may_start(c, &c->queue.job[job]))
        return false;
    const struct job *j = &c->queue.job[job];
    *out = interval(c, j, j->is_stated ? (double)j->ahead : ahead_of(c, j), now_ms);
    return true;
}
