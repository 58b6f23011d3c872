#include "simulate/scale.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/json.h"
#include "base/rng.h"
#include "core/core.h"
#include "sys/clock.h"
#include "sys/progress.h"

/* The cluster of the benchmark: nodes of 8 GPUs in 4 models, 200 tenants in a two-level tree. */
#define TOPS 20
#define TENANTS 200
#define USERS 3
#define GPUS 8
#define NODES_A_SWITCH 32
#define CHANGES 500 /* small changes measured of each sort */
#define WHYS 200    /* waiting jobs that are asked why, from the first to the last */
#define YARD_WORDS (1u << 22)
#define YARD_JUMPS (1u << 20)
#define YARD_SORTED (1u << 18)

static const char *const models[] = { "a100", "h100", "l40s", "rtx4090" };

struct bench {
    struct core *core;
    struct arena arena;
    struct rng rng;
    uint64_t last_job;
    uint64_t *running;
    size_t runs, run_cap;
    uint32_t gang_max; /* replicas of a whole node that the nodes of one model hold */
    char tenant[TENANTS][16];
};

static void bench_free(struct bench *b)
{
    core_free(b->core);
    arena_free(&b->arena);
    free(b->running);
}

static int apply(struct bench *b, const struct event *ev, struct err *e)
{
    return core_apply(b->core, ev, e);
}

static int build(struct bench *b, uint32_t nodes, struct err *e)
{
    b->gang_max = MAX(nodes / (uint32_t)ARRAY_LEN(models), 1u);
    for (uint32_t t = 0; t < TENANTS; t++) {
        struct event ev = { .kind = EVENT_TENANT };
        snprintf(b->tenant[t], sizeof b->tenant[t], "tenant%u", t);
        ev.tenant = (struct event_tenant){
            .name = str_of(b->tenant[t]),
            .parent = t < TOPS ? STR("") : str_of(b->tenant[t % TOPS]),
            .weight_milli = 1000 + t % 5 * 500,
            .limit = AMOUNTS_NO_LIMIT,
            .user_limit = AMOUNTS_NO_LIMIT,
        };
        if (apply(b, &ev, e) < 0)
            return -1;
    }
    for (uint32_t n = 0; n < nodes; n++) {
        struct event ev = { .kind = EVENT_NODE };
        char name[16], sw[16];
        snprintf(name, sizeof name, "node%u", n);
        snprintf(sw, sizeof sw, "switch%u", n / NODES_A_SWITCH);
        ev.node = (struct event_node){
            .name = str_of(name),
            .model = str_of(models[n % ARRAY_LEN(models)]),
            .net_switch = str_of(sw),
            .gpus = GPUS,
            .gpu_mem_mib = 81920,
            .cpu_milli = 128000,
            .mem_mib = 1u << 20,
        };
        if (apply(b, &ev, e) < 0)
            return -1;
    }
    return 0;
}

/* 20 % shares of a GPU, 10 % gangs of 16 to 64 GPUs over nodes, else 1 to 8 GPUs on one node;
 * CPUs and memory go with the GPUs, in many proportions. */
static struct event make_job(struct bench *b)
{
    static const uint32_t cpus[] = { 2, 4, 6, 8, 12 }, mem_gib[] = { 8, 16, 32, 64 };
    struct rng *r = &b->rng;
    uint32_t sort = rng_below(r, 10), cpu = cpus[rng_below(r, 5)], mem = mem_gib[rng_below(r, 4)];
    struct request q = { .replicas = 1 };
    if (sort < 2) {
        q.gpu_milli = (uint16_t)(rng_between(r, 1, 9) * 100);
        q.cpu_milli = cpu * 500;
        q.mem_mib = mem * 512;
    } else {
        q.replicas = sort == 2 ? MIN(rng_between(r, 2, 8), b->gang_max) : 1;
        q.gpus = (uint16_t)(sort == 2 ? GPUS : 1u << rng_below(r, 4));
        q.cpu_milli = cpu * 1000 * q.gpus;
        q.mem_mib = mem * 1024 * q.gpus;
    }
    struct event ev = { .t_ms = (int64_t)b->last_job, .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){
        .id = { ++b->last_job },
        .tenant = str_of(b->tenant[TOPS + rng_below(r, TENANTS - TOPS)]),
        .user = str_of((const char *[]){ "ann", "bob", "eve" }[rng_below(r, USERS)]),
        .models = rng_below(r, 2) ? STR("") : str_of(models[rng_below(r, ARRAY_LEN(models))]),
        .request = q,
        .priority = rng_below(r, 10) ? PRIO_NORMAL : PRIO_HIGH,
        .thaw_cost_ms = 30000,
    };
    return ev;
}

static int job_event(struct bench *b, uint64_t job, enum job_event what, struct err *e)
{
    struct event ev = { .t_ms = (int64_t)b->last_job, .kind = EVENT_JOB };
    ev.job = (struct event_job){ { job }, what };
    return apply(b, &ev, e);
}

/* What the pass placed runs; what it takes back is being frozen for as long as we look. */
static int start_placed(struct bench *b, const struct plan *p, struct err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct action *a = &p->action[i];
        if (a->kind == ACT_TAKE || a->kind == ACT_PROMISE)
            continue;
        if (job_event(b, a->job.v, JOB_EV_STARTED, e) < 0)
            return -1;
        vec_grow(b->running, b->runs, b->run_cap);
        b->running[b->runs++] = a->job.v;
    }
    return 0;
}

static int pass(struct bench *b, bool full, struct plan *out, struct err *e)
{
    arena_reset(&b->arena);
    (full ? core_pass_full : core_pass)(b->core, (int64_t)b->last_job, &b->arena, out);
    return start_placed(b, out, e);
}

static int end_one(struct bench *b, struct err *e)
{
    uint32_t i = rng_below(&b->rng, (uint32_t)b->runs);
    uint64_t job = b->running[i];
    b->running[i] = b->running[--b->runs];
    return job_event(b, job, JOB_EV_EXITED_OK, e);
}

/* Fills the cluster and ends jobs at random until half of it is free again: holes everywhere. */
static int fill_half(struct bench *b, uint32_t nodes, struct err *e)
{
    struct plan p;
    struct core_totals t = core_totals(b->core);
    for (uint32_t i = 0; i < nodes * 4; i++) {
        struct event ev = make_job(b);
        if (apply(b, &ev, e) < 0)
            return -1;
    }
    if (pass(b, false, &p, e) < 0)
        return -1;
    for (uint64_t job = 1; job <= b->last_job; job++) { /* the queue starts empty */
        struct job_view v;
        if (core_job(b->core, (job_id){ job }, &v) && v.state == JOB_QUEUED &&
            job_event(b, job, JOB_EV_CANCEL, e) < 0)
            return -1;
    }
    while (t.free.of[RES_GPU] = core_totals(b->core).free.of[RES_GPU],
           t.free.of[RES_GPU] < t.total.of[RES_GPU] / 2 && b->runs)
        if (end_one(b, e) < 0)
            return -1;
    return pass(b, false, &p, e);
}

static double heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One change, then the pass after it; only those two are timed. */
static int measure_changes(struct bench *b, bool submit, double *out_mean_ms, double *out_p99_ms,
                           struct err *e)
{
    double ms[CHANGES], sum = 0;
    for (int i = 0; i < CHANGES; i++) {
        struct plan p;
        struct event ev = make_job(b);
        int64_t begin = clock_cpu_ns();
        int rc = submit ? apply(b, &ev, e) : end_one(b, e);
        arena_reset(&b->arena);
        core_pass(b->core, (int64_t)b->last_job, &b->arena, &p);
        ms[i] = (double)(clock_cpu_ns() - begin) / 1e6;
        sum += ms[i];
        if (rc < 0)
            return -1;
        if (start_placed(b, &p, e) < 0)
            return -1;
    }
    qsort(ms, CHANGES, sizeof *ms, by_value);
    *out_mean_ms = sum / CHANGES;
    *out_p99_ms = ms[CHANGES * 99 / 100];
    return 0;
}

static int drain_one(struct bench *b, struct err *e)
{
    struct node_view n;
    struct event ev = { .t_ms = (int64_t)b->last_job, .kind = EVENT_NODE_STATE };
    if (!core_node(b->core, (node_id){ 0 }, &n))
        return 0;
    ev.node_state = (struct event_node_state){ str_of(n.name), NODE_DRAIN };
    return apply(b, &ev, e);
}

/* Why a job waits, when it starts and what would help; of the waiting ones, the worst.  With a machine
 * that takes nothing it is also asked whether that is in the way. */
static double measure_why(struct bench *b, uint64_t first)
{
    double worst_ms = 0;
    for (uint64_t i = 0; i < WHYS; i++) {
        job_id id = { first + (b->last_job - first) * i / (WHYS - 1) };
        struct advice ad[ADVICE_MAX];
        struct explanation x;
        struct err e;
        int64_t begin = clock_cpu_ns();
        if (core_explain(b->core, id, (int64_t)b->last_job, &x, &e) < 0)
            continue;
        core_advise(b->core, id, ad);
        worst_ms = MAX(worst_ms, (double)(clock_cpu_ns() - begin) / 1e6);
    }
    return worst_ms;
}

static int submit_queue(struct bench *b, uint32_t jobs, struct err *e)
{
    AUTO(progress_done_p) struct progress *bar = progress_begin("filling the queue", jobs);
    for (uint32_t i = 0; i < jobs; i++) {
        struct event ev = make_job(b);
        if (apply(b, &ev, e) < 0)
            return -1;
        progress_set(bar, i + 1);
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

double scale_yardstick_ms(void)
{
    struct rng rng = { 1 };
    uint32_t *next = xcalloc(YARD_WORDS, sizeof *next), at = 0;
    uint64_t *sorted = xcalloc(YARD_SORTED, sizeof *sorted);
    for (uint32_t i = 0; i < YARD_WORDS; i++)
        next[i] = i;
    for (uint32_t i = YARD_WORDS - 1; i > 0; i--) { /* one ring through all of them (Sattolo) */
        uint32_t k = rng_below(&rng, i), old = next[i];
        next[i] = next[k];
        next[k] = old;
    }
    for (uint32_t i = 0; i < YARD_SORTED; i++)
        sorted[i] = rng_u64(&rng);
    int64_t begin = clock_cpu_ns();
    for (uint32_t i = 0; i < YARD_JUMPS; i++)
        at = next[at];
    sorted[0] += at; /* so that the jumps are made */
    qsort(sorted, YARD_SORTED, sizeof *sorted, by_number);
    double ms = (double)(clock_cpu_ns() - begin) / 1e6;
    free(next);
    free(sorted);
    return ms;
}

int scale_run(uint32_t nodes, uint32_t jobs, uint64_t seed, struct scale_result *out, struct err *e)
{
    AUTO(bench_free)
    struct bench b = { .core = core_new(), .rng = { seed }, .arena = { .limit = 1u << 30 } };
    struct scale_result r = { .nodes = nodes, .jobs = jobs };
    struct plan p;
    if (build(&b, nodes, e) < 0 || fill_half(&b, nodes, e) < 0)
        return -1;
    double before = heap_bytes();
    uint64_t first = b.last_job + 1;
    if (submit_queue(&b, jobs, e) < 0)
        return -1;
    r.bytes_per_job = (heap_bytes() - before) / jobs;
    struct core_totals t = core_totals(b.core);
    r.cells = t.cells;
    r.shapes = t.shapes;
    int64_t begin = clock_cpu_ns();
    core_pass_full(b.core, (int64_t)b.last_job, &b.arena, &p);
    r.full_pass_ms = (double)(clock_cpu_ns() - begin) / 1e6;
    r.considered = p.considered;
    r.placed = p.n;
    r.considered_per_s = (double)jobs / r.full_pass_ms * 1e3;
    r.placed_per_s = (double)p.n / r.full_pass_ms * 1e3;
    if (start_placed(&b, &p, e) < 0 ||
        measure_changes(&b, true, &r.submit_ms, &r.submit_p99_ms, e) < 0 ||
        measure_changes(&b, false, &r.end_ms, &r.end_p99_ms, e) < 0 || drain_one(&b, e) < 0)
        return -1;
    r.why_ms = measure_why(&b, first);
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    r.rss_mib = (double)ru.ru_maxrss / 1024;
    *out = r;
    return 0;
}

void scale_json(const struct scale_result *r, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "nodes", r->nodes);
    json_put_u64(&w, "jobs", r->jobs);
    json_put_f64(&w, "full_pass_ms", r->full_pass_ms, 3);
    json_put_f64(&w, "incremental_submit_ms", r->submit_ms, 5);
    json_put_f64(&w, "incremental_end_ms", r->end_ms, 5);
    json_put_f64(&w, "rss_mib", r->rss_mib, 1);
    json_put_f64(&w, "yardstick_ms", r->yardstick_ms, 3);
    json_put_f64(&w, "incremental_submit_p99_ms", r->submit_p99_ms, 5);
    json_put_f64(&w, "incremental_end_p99_ms", r->end_p99_ms, 5);
    json_put_f64(&w, "why_ms", r->why_ms, 3);
    json_put_f64(&w, "bytes_per_pending_job", r->bytes_per_job, 1);
    json_put_u64(&w, "placed", r->placed);
    json_put_f64(&w, "considered_per_s", r->considered_per_s, 0);
    json_put_f64(&w, "placed_per_s", r->placed_per_s, 0);
    json_put_u64(&w, "cells", r->cells);
    json_put_u64(&w, "shapes", r->shapes);
    json_end(&w, '}');
    buf_addc(out, '\n');
}
