/* The reference policies that preempt.
 *
 * In a pass all jobs, waiting and running, stand in one order, and each may have its GPUs while
 * there are GPUs left; a job that asks for more than that is passed over.  Jobs that run and may
 * not are preempted and pay for it, then those that wait and may are placed.  Nobody is moved: a job
 * that may run but finds no place, because what is free lies scattered, waits on.
 *
 * The authors' simulators go second by second.  A pass changes nothing unless a job came, ended or
 * changed its class since the last one: time only brings running jobs before waiting ones, and
 * two neighbours in the order that both have their GPUs, or of which the waiting one has none, may
 * change places without a difference.  So passes are made at those times only.
 */
#include "base/heap.h"
#include "simulate/stage.h"
#include "sys/progress.h"

/* What a job has done is counted at each second; that it is done is seen at the next. */
#define SEEN_MS 1000

struct preempt;

/* What comes first in the order: the least. */
struct key {
    int64_t major, minor;
};

struct preempt_policy {
    const char *name;
    int64_t tick_ms;    /* passes are made at multiples of it */
    bool running_first; /* of equal keys */
    struct key (*key)(const struct preempt *r, uint32_t i, int64_t now_ms);
    /* When the key of a running job changes of itself against those of other running jobs. */
    int64_t (*turns_ms)(const struct preempt *r, uint32_t i, int64_t now_ms);
};

/* A job that has come and not ended. */
struct live {
    uint32_t job;
    struct key key;
    bool runs;
    uint64_t turn; /* grows with each arrival, start and preemption */
};

struct state {
    int64_t left_ms;   /* of its work and of what preemption cost, when it last got or lost GPUs */
    int64_t served_ms; /* how long it had GPUs, until then */
    int64_t since_ms;  /* it has GPUs since; NEVER: it waits */
    uint64_t turn;
};

struct preempt {
    struct stage stage;
    const struct preempt_policy *policy;
    const struct replay_options *options;
    const struct part *p;
    struct outcome *out;
    struct replay_meter *meter;
    struct state *state; /* of each job of the part */
    struct live *live;   /* in the order of the last pass, then those that came since */
    uint32_t lives;
    uint32_t *start, *stop; /* of the pass; scratch */
    struct heap ends;
    uint32_t *ends_pos;
    uint64_t turns;
    int64_t due_ms; /* the next pass */
};

static void preempt_free(struct preempt *r)
{
    free(r->state);
    free(r->live);
    free(r->start);
    free(r->stop);
    free(r->ends_pos);
    heap_free(&r->ends);
    stage_close(&r->stage);
}

static bool ends_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct preempt *r = ctx;
    int64_t x = r->out->end_ms[r->p->job[a]], y = r->out->end_ms[r->p->job[b]];
    return x != y ? x < y : a < b;
}

/* How long it has had GPUs since it last got them; the second in which its end is seen is none. */
static int64_t ran_ms(const struct state *s, int64_t now_ms)
{
    return s->since_ms == NEVER ? 0 : MIN(now_ms - s->since_ms, s->left_ms);
}

/* ---- SRTF: the shortest remaining time first ---- */

static struct key srtf_key(const struct preempt *r, uint32_t i, int64_t now_ms)
{
    const struct state *s = &r->state[i];
    return (struct key){ .major = s->left_ms - ran_ms(s, now_ms) };
}

static int64_t srtf_turns_ms(const struct preempt *r, uint32_t i, int64_t now_ms)
{
    (void)r, (void)i, (void)now_ms;
    return NEVER;
}

/* ---- Tiresias: two classes by GPU time had, in each the order of arrival ---- */

#define TIRESIAS_TICK_MS 60000
#define TIRESIAS_CLASS_GPU_S 18000 /* 5 GPU-hours */

/* How long a job of so many GPUs stays in the first class. */
static int64_t first_class_ms(const struct preempt *r, uint32_t i)
{
    uint64_t milli = stage_wants_milli(&r->stage, i);
    return milli ? (int64_t)(UINT64_C(1000) * GPU_MILLI * TIRESIAS_CLASS_GPU_S / milli) : NEVER;
}

static struct key tiresias_key(const struct preempt *r, uint32_t i, int64_t now_ms)
{
    const struct state *s = &r->state[i];
    return (struct key){
        .major = s->served_ms + ran_ms(s, now_ms) > first_class_ms(r, i),
        .minor = stage_job(&r->stage, i)->submit_ms,
    };
}

static int64_t tiresias_turns_ms(const struct preempt *r, uint32_t i, int64_t now_ms)
{
    const struct state *s = &r->state[i];
    int64_t had_ms = s->served_ms + ran_ms(s, now_ms), first_ms = first_class_ms(r, i);
    return had_ms > first_ms || first_ms == NEVER ? NEVER : now_ms + first_ms - had_ms + 1;
}

static const struct preempt_policy policies[] = {
    { "srtf", 1, false, srtf_key, srtf_turns_ms },
    { "tiresias", TIRESIAS_TICK_MS, true, tiresias_key, tiresias_turns_ms },
};

/* ---- one pass ---- */

static bool live_before(const struct preempt *r, const struct live *a, const struct live *b)
{
    if (a->key.major != b->key.major)
        return a->key.major < b->key.major;
    if (a->key.minor != b->key.minor)
        return a->key.minor < b->key.minor;
    if (a->runs != b->runs)
        return a->runs == r->policy->running_first;
    return a->turn < b->turn;
}

/* Insertion: from one pass to the next few of them change places. */
static void order(struct preempt *r, int64_t now_ms)
{
    for (uint32_t k = 0; k < r->lives; k++) {
        uint32_t i = r->live[k].job, at = k;
        struct live one = { .job = i,
                            .key = r->policy->key(r, i, now_ms),
                            .runs = r->state[i].since_ms != NEVER,
                            .turn = r->state[i].turn };
        for (; at > 0 && live_before(r, &one, &r->live[at - 1]); at--)
            r->live[at] = r->live[at - 1];
        r->live[at] = one;
    }
}

static void stop(struct preempt *r, uint32_t i, int64_t now_ms)
{
    struct state *s = &r->state[i];
    uint32_t job = r->p->job[i];
    int64_t ran = ran_ms(s, now_ms);
    outcome_hold(r->p->t, r->out, job, s->since_ms, now_ms);
    stage_give(&r->stage, i);
    heap_remove(&r->ends, i);
    r->out->end_ms[job] = NEVER;
    r->out->freezes[job]++;
    *s = (struct state){ .left_ms = s->left_ms - ran +
                                    replay_freeze_ms(r->options, stage_job(&r->stage, i)),
                         .served_ms = s->served_ms + ran,
                         .since_ms = NEVER,
                         .turn = r->turns++ };
}

static void start(struct preempt *r, uint32_t i, int64_t now_ms)
{
    struct state *s = &r->state[i];
    uint32_t job = r->p->job[i];
    s->since_ms = now_ms;
    s->turn = r->turns++;
    if (r->out->start_ms[job] == NEVER)
        r->out->start_ms[job] = now_ms;
    r->out->gpus[job] = stage_gpus(&r->stage, i);
    r->out->end_ms[job] = now_ms + s->left_ms + SEEN_MS;
    heap_push(&r->ends, i);
}

/* Something changes then: a pass is due. */
static void changes(struct preempt *r, int64_t when_ms)
{
    int64_t tick = r->policy->tick_ms, over = when_ms % tick;
    if (when_ms == NEVER)
        return;
    int64_t wait_ms = over > 0 ? tick - over : -over; /* a trace may begin before time 0 */
    r->due_ms = MIN(r->due_ms, when_ms + wait_ms);
}

static void pass(struct preempt *r, int64_t now_ms)
{
    uint64_t left = stage_total_milli(&r->stage);
    uint32_t starts = 0, stops = 0;
    order(r, now_ms);
    for (uint32_t k = 0; k < r->lives; k++) {
        uint64_t wants = stage_wants_milli(&r->stage, r->live[k].job);
        if (wants <= left) {
            left -= wants;
            if (!r->live[k].runs)
                r->start[starts++] = r->live[k].job;
        } else if (r->live[k].runs) {
            r->stop[stops++] = r->live[k].job;
        }
    }
    for (uint32_t k = 0; k < stops; k++)
        stop(r, r->stop[k], now_ms);
    for (uint32_t k = 0; k < starts; k++)
        if (stage_take(&r->stage, r->start[k]))
            start(r, r->start[k], now_ms);
    r->due_ms = NEVER;
    for (uint32_t k = 0; k < r->lives; k++)
        if (r->state[r->live[k].job].since_ms != NEVER)
            changes(r, r->policy->turns_ms(r, r->live[k].job, now_ms));
}

/* ---- the loop ---- */

static int arrive(struct preempt *r, uint32_t i, struct err *e)
{
    const struct trace_job *j = stage_job(&r->stage, i);
    if (stage_admit(&r->stage, i, e) < 0)
        return -1;
    r->state[i] =
        (struct state){ .left_ms = j->duration_ms, .since_ms = NEVER, .turn = r->turns++ };
    r->live[r->lives++] = (struct live){ .job = i };
    changes(r, j->submit_ms);
    return 0;
}

static void finish(struct preempt *r, uint32_t i, int64_t now_ms)
{
    uint32_t kept = 0;
    outcome_hold(r->p->t, r->out, r->p->job[i], r->state[i].since_ms, now_ms);
    stage_give(&r->stage, i);
    for (uint32_t k = 0; k < r->lives; k++)
        if (r->live[k].job != i)
            r->live[kept++] = r->live[k];
    r->lives = kept;
    changes(r, now_ms);
    progress_set(r->meter->bar, ++r->meter->done);
}

static int step(struct preempt *r, int64_t now_ms, uint32_t *next, struct err *e)
{
    while (r->ends.n && r->out->end_ms[r->p->job[heap_top(&r->ends)]] <= now_ms)
        finish(r, heap_pop(&r->ends), now_ms);
    for (; *next < r->p->jobs && stage_job(&r->stage, *next)->submit_ms <= now_ms; ++*next)
        if (arrive(r, *next, e) < 0)
            return -1;
    if (r->due_ms <= now_ms)
        pass(r, now_ms);
    return 0;
}

static const struct preempt_policy *find_policy(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    return NULL;
}

int replay_preempt(const struct part *p, const struct replay_options *o, struct outcome *out,
                   struct replay_meter *m, struct err *e)
{
    AUTO(preempt_free)
    struct preempt r = {
        .policy = find_policy(o->policy),
        .options = o,
        .p = p,
        .out = out,
        .meter = m,
        .due_ms = NEVER,
    };
    uint32_t next = 0;
    if (!r.policy)
        return err_set(e, ERR_INTERNAL, "'%s' is no policy that preempts", o->policy);
    r.state = xcalloc((size_t)p->jobs + 1, sizeof *r.state);
    r.live = xcalloc((size_t)p->jobs + 1, sizeof *r.live);
    r.start = xcalloc((size_t)p->jobs + 1, sizeof *r.start);
    r.stop = xcalloc((size_t)p->jobs + 1, sizeof *r.stop);
    r.ends_pos = heap_positions(p->jobs);
    r.ends = (struct heap){ .pos = r.ends_pos, .before = ends_before, .ctx = &r };
    if (stage_open(&r.stage, p, STAGE_CONSOLIDATE, e) < 0)
        return -1;
    while (next < p->jobs || r.ends.n || r.due_ms != NEVER) {
        int64_t now_ms = r.due_ms;
        if (r.ends.n)
            now_ms = MIN(now_ms, out->end_ms[p->job[heap_top(&r.ends)]]);
        if (next < p->jobs)
            now_ms = MIN(now_ms, stage_job(&r.stage, next)->submit_ms);
        if (step(&r, now_ms, &next, e) < 0)
            return -1;
    }
    return 0;
}
