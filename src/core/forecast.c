/* When a waiting job will start: from how long jobs like it have waited lately, as an interval.
 *
 * Jobs are alike by tenant and size; the middle one of their latest waits says how things go now.
 * It grows with the root of what the same user has before it.  How many times that is stated is
 * learnt from what became of earlier statements, so that half of the starts come before the first
 * time and nine in ten before the second, whatever the cluster does.
 * Waits of less than a minute are not waits. */
#include "core/forecast.h"

#include "core/state.h"

#define STEP 0.2                     /* of the correction, each start and each miss */
#define FIRST_WAIT_MS (5 * SHORT_MS) /* of a job with one GPU before it, when nothing is known */
#define TIMES_MIN 0.01
#define TIMES_MAX 1e4
#define STATE_MAX 16 /* statements of one pass; the rest is for the next */

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
    for (uint32_t k = 0; k < FORECAST_CLASSES; k++) {
        f->times[k][0] = 1;
        f->times[k][1] = 4;
    }
}

void forecast_free(struct forecast *f)
{
    map_free(&f->row_by_key);
    heap_free(&f->next);
    free(f->due_pos);
    free(f->due);
    free(f->row);
    free(f->fresh);
}

/* ---- waits of the past ---- */

static void row_add(struct forecast_row *r, int64_t ms)
{
    r->wait_ms[r->n++ % FORECAST_WAITS] = ms;
}

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

static int64_t row_middle(const struct forecast_row *r)
{
    int64_t sorted[FORECAST_WAITS];
    uint32_t n = MIN(r->n, FORECAST_WAITS);
    memcpy(sorted, r->wait_ms, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return sorted[n / 2];
}

static uint64_t key_of(uint32_t tenant, uint32_t size)
{
    return (uint64_t)tenant * HISTORY_SIZES + size;
}

static const struct forecast_row *find_row(const struct forecast *f, uint32_t tenant, uint32_t size)
{
    uint64_t hit;
    return map_get(&f->row_by_key, key_of(tenant, size), &hit) ? &f->row[hit] : NULL;
}

void forecast_learn(struct forecast *f, uint32_t tenant, uint32_t size, int64_t wait_ms)
{
    uint64_t hit;
    if (!map_get(&f->row_by_key, key_of(tenant, size), &hit)) {
        vec_grow(f->row, f->rows, f->row_cap);
        f->row[f->rows] = (struct forecast_row){ .tenant = tenant, .size = size };
        map_set(&f->row_by_key, key_of(tenant, size), f->rows);
        hit = f->rows++;
    }
    row_add(&f->row[hit], wait_ms);
    row_add(&f->by_size[size], wait_ms);
    row_add(&f->all, wait_ms);
}

static int64_t usual_ms(const struct forecast *f, uint32_t tenant, uint32_t size)
{
    const struct forecast_row *own = find_row(f, tenant, size);
    if (own && own->n >= FORECAST_FEW)
        return row_middle(own);
    if (f->by_size[size].n >= FORECAST_FEW)
        return row_middle(&f->by_size[size]);
    return f->all.n >= FORECAST_FEW ? row_middle(&f->all) : FIRST_WAIT_MS;
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
static double root(double x)
{
    double y = x > 1 ? x : 1;
    for (int i = 0; i < 40; i++)
        y = (y + x / y) / 2;
    return y;
}

static uint32_t class_of(double ahead)
{
    uint32_t class = 0;
    for (double most = 2 * GPU_MILLI; class < FORECAST_CLASSES - 1 && ahead > most; most *= 4)
        class ++;
    return class;
}

/* What waits for its reservation or for a window teaches nothing about waiting for room. */
static bool waits_for_room(const struct core *c, const struct job *j)
{
    return window_opens_ms(c, &c->shapes.at[j->shape].request) == INT64_MIN;
}

/* A job that needs machines for longer than any is lent may never start. */
static bool may_start(const struct core *c, const struct job *j)
{
    return window_opens_ms(c, &c->shapes.at[j->shape].request) != INT64_MAX;
}

/* Of a job that has waited for so long already: what is left of the same interval, but never less
 * than a part of it. */
static struct eta interval(const struct core *c, const struct job *j, double ahead, int64_t now_ms)
{
    const struct forecast *f = &c->forecast;
    uint32_t size = history_size(&c->shapes.at[j->shape].request);
    double usual = (double)usual_ms(f, core_tenant(c, j), size) * root(ahead / GPU_MILLI);
    int64_t waited_ms = MAX(now_ms - j->wait_ms, INT64_C(0)), at[2];
    int64_t opens_ms = window_opens_ms(c, &c->shapes.at[j->shape].request);
    for (int i = 0; i < 2; i++) {
        int64_t all_ms = SHORT_MS + (int64_t)(usual * f->times[class_of(ahead)][i]);
        int64_t left_ms = MAX(all_ms - waited_ms, all_ms / 4);
        at[i] = MAX(now_ms + left_ms, opens_ms);
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

static void correct(struct forecast *f, uint32_t class, int which, bool came_in_time)
{
    double *times = &f->times[class][which];
    *times *= 1 + STEP * (wanted[which] - (came_in_time ? 1 : 0));
    *times = *times < TIMES_MIN ? TIMES_MIN : *times > TIMES_MAX ? TIMES_MAX : *times;
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
            correct(f, class_of((double)j->ahead), f->due[i].which, false);
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
            correct(f, class_of((double)j->ahead), i, true);
    forecast_learn(f, core_tenant(c, j), history_size(&c->shapes.at[j->shape].request),
                   (int64_t)((double)waited_ms / root((double)j->ahead / GPU_MILLI)));
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
