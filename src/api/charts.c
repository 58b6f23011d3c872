/* Charts: of a machine, and of the runs of a job. */
#include <math.h>

#include "api/load.h"
#include "store/life.h"

/* Of one answer: each reads a stretch of a ring, and nobody else is served meanwhile. */
#define JOB_CHARTS_MAX 8
#define JOB_RUNS_MAX 20
#define JOB_POINTS 360

/* As people want them; the rings have integers' units. */
static const struct {
    const char *name;
    double unit;
    int digits;
} gpu_series[] = {
    [HISTORY_GPU_UTIL] = { "util_percent", 10, 1 }, [HISTORY_GPU_JOBS] = { "jobs_percent", 10, 1 },
    [HISTORY_GPU_MEM] = { "mem_used_mib", 1, 0 },   [HISTORY_GPU_POWER] = { "power_w", 1000, 1 },
    [HISTORY_GPU_TEMP] = { "temp_c", 1, 1 },        [HISTORY_GPU_CLOCK] = { "sm_mhz", 1, 0 },
};
_Static_assert(ARRAY_LEN(gpu_series) == HISTORY_GPU_COUNT, "a column was added without its row");

static void put_series(struct json_out *w, const char *name, const float *v, size_t n, double unit,
                       int digits)
{
    json_begin(w, name, '[');
    for (size_t i = 0; i < n; i++)
        json_put_f64(w, NULL, isfinite(v[i]) ? (double)v[i] / unit : (double)NAN, digits);
    json_end(w, ']');
}

static void put_chart(struct json_out *w, const struct history_chart *chart,
                      const struct history_node *n)
{
    const float *v = chart->v;
    json_begin(w, NULL, '{');
    json_put_i64(w, "from_ms", chart->from_ms);
    json_put_i64(w, "step_ms", chart->step_ms);
    json_put_u64(w, "points", chart->points);
    json_put_bool(w, "simulated", n && n->head->simulated);
    json_begin(w, "node", '{');
    for (int k = 0; k < HISTORY_NODE_COUNT; k++, v = v ? v + chart->points : NULL)
        put_series(w, history_node_column_name((enum history_node_column)k), v, chart->points, 1,
                   0);
    json_end(w, '}');
    json_begin(w, "gpus", '[');
    for (uint32_t g = 0; g < chart->gpus; g++) {
        json_begin(w, NULL, '{');
        json_put_u64(w, "index", n->head->gpu[g].index);
        json_put_str(w, "uuid", str_of(n->head->gpu[g].uuid));
        for (int k = 0; k < HISTORY_GPU_COUNT; k++, v += chart->points)
            put_series(w, gpu_series[k].name, v, chart->points, gpu_series[k].unit,
                       gpu_series[k].digits);
        json_end(w, '}');
    }
    json_end(w, ']');
    json_end(w, '}');
}

int api_node_history(struct call *c, struct err *e)
{
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    struct history_ask ask = { .to_ms = (int64_t)query_number(c, "to_ms", (uint64_t)now_ms) };
    struct history_chart chart = { .step_ms = 1000 };
    struct history_node n = { 0 };
    struct node_view v;
    uint32_t i;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    ask.from_ms =
        (int64_t)query_number(c, "from_ms", (uint64_t)MAX(ask.to_ms - 3600000, INT64_C(0)));
    ask.step_ms = (int64_t)query_number(
        c, "step_ms", (uint64_t)MAX((ask.to_ms - ask.from_ms) / 360, INT64_C(1000)));
    if (!find_node(c->api, c->param[0], &i, &v))
        return no_node(c->param[0], e);
    bool known = load_of(c->api, c->param[0], &n);
    if (known && history_chart(c->api->config.history, c->param[0], &ask, http_arena(c->rq), &chart,
                               e) < 0) {
        c->field = "step_ms";
        return -1;
    }
    put_chart(&w, &chart, known ? &n : NULL);
    if (buf_check(&b, e) < 0)
        return -1;
    reply_json(c, 200, &b);
    return 0;
}

/* ---- of a job ---- */

/* One answer on its way. */
struct job_charts {
    struct call *c;
    struct json_out *w;
    const struct store_place *run; /* whose part is being written */
    int64_t from_ms, to_ms, now_ms, step_ms;
    size_t charts;
    uint64_t left_out;
    struct {
        struct str node;
        struct history_chart chart;
        struct history_node at;
        bool known;
    } last; /* replicas of one machine share it */
};

/* What is known of the machine over that time; several replicas may be there. */
static int chart_of(struct job_charts *j, struct str node, struct err *e)
{
    int64_t to_ms = MIN(j->run->to_ms ? j->run->to_ms : j->now_ms, j->to_ms);
    struct history_ask ask = { .from_ms = MAX(j->run->from_ms, j->from_ms), .to_ms = to_ms };
    if (j->last.node.n && str_eq(j->last.node, node))
        return 0;
    ask.step_ms =
        j->step_ms ? j->step_ms : MAX((ask.to_ms - ask.from_ms) / JOB_POINTS, INT64_C(1000));
    j->charts++;
    j->last.node = node;
    j->last.chart = (struct history_chart){ .from_ms = ask.from_ms, .step_ms = ask.step_ms };
    j->last.known = load_of(j->c->api, node, &j->last.at);
    if (j->last.known && history_chart(j->c->api->config.history, node, &ask, http_arena(j->c->rq),
                                       &j->last.chart, e) < 0) {
        j->c->field = "step_ms";
        return -1;
    }
    return 0;
}

/* Which of the chart's GPUs it is; by its number where the machine is not known any more. */
static bool place_of_gpu(struct job_charts *j, uint32_t gpu, uint32_t *out)
{
    struct control_node cn = { 0 };
    const struct report_head *head = j->last.at.head;
    bool known = control_node(j->c->api->config.control, j->last.node, &cn) && gpu < cn.gpus;
    for (uint32_t i = 0; j->last.known && i < j->last.chart.gpus; i++)
        if (known ? strcmp(head->gpu[i].uuid, cn.gpu_uuid[gpu]) == 0 : head->gpu[i].index == gpu) {
            *out = i;
            return true;
        }
    return false;
}

static void put_job_gpu(struct job_charts *j, uint32_t gpu, uint64_t milli)
{
    const struct history_chart *chart = &j->last.chart;
    struct json_out *w = j->w;
    uint32_t at = 0;
    bool known = place_of_gpu(j, gpu, &at);
    const float *v =
        known ? chart->v + (HISTORY_NODE_COUNT + (size_t)at * HISTORY_GPU_COUNT) * chart->points
              : NULL;
    json_begin(w, NULL, '{');
    json_put_u64(w, "index", gpu);
    json_put_u64(w, "milli", milli);
    json_put_bool(w, "whole", milli >= 1000);
    for (int k = 0; k < HISTORY_GPU_COUNT; k++, v = v ? v + chart->points : NULL)
        put_series(w, gpu_series[k].name, v, v ? chart->points : 0, gpu_series[k].unit,
                   gpu_series[k].digits);
    json_end(w, '}');
}

static void put_gpus(struct job_charts *j, const struct json *where)
{
    const struct json *gpus = json_find(where, "gpus");
    uint64_t milli = 0, gpu;
    struct err ignored;
    if (json_get_u64(where, "milli", 1000, &milli, &ignored) < 0)
        milli = 0;
    json_begin(j->w, "gpus", '[');
    for (const struct json *g = json_is_array(gpus) ? json_first(gpus) : NULL; g;
         g = json_next(gpus, g))
        if (json_as_u64(g, GPUS_PER_NODE_MAX, &gpu, &ignored) == 0)
            put_job_gpu(j, (uint32_t)gpu, milli);
    json_end(j->w, ']');
}

static const struct {
    const char *name;
    double unit;
    int digits;
} task_series[] = {
    [HISTORY_TASK_CPU] = { "cpu_milli", 1, 0 },
    [HISTORY_TASK_MEM] = { "mem_mib", 1, 0 },
    [HISTORY_TASK_GPU] = { "gpu_percent", 10, 1 },
    [HISTORY_TASK_GPU_MEM] = { "gpu_mem_mib", 1, 0 },
};
_Static_assert(ARRAY_LEN(task_series) == HISTORY_TASK_COUNT, "a column was added without its row");

/* What the task itself used. */
static void put_own(struct job_charts *j, uint32_t replica)
{
    struct history_task which = { j->c->job.fixed.id, j->run->run, replica };
    struct history *h = j->c->api->config.history;
    struct history_trail t;
    if (!h || !history_trail(h, which, &t)) {
        json_put_null(j->w, "own");
        return;
    }
    size_t from = 0, to = t.points;
    while (from < to && t.from_ms + (int64_t)(from + 1) * t.step_ms <= j->from_ms)
        from++;
    while (to > from && t.from_ms + (int64_t)(to - 1) * t.step_ms >= j->to_ms)
        to--;
    json_begin(j->w, "own", '{');
    json_put_i64(j->w, "from_ms", t.from_ms + (int64_t)from * t.step_ms);
    json_put_i64(j->w, "step_ms", t.step_ms);
    json_put_u64(j->w, "points", to - from);
    for (int k = 0; k < HISTORY_TASK_COUNT; k++)
        put_series(j->w, task_series[k].name, t.v[k] + from, to - from, task_series[k].unit,
                   task_series[k].digits);
    json_end(j->w, '}');
}

static int put_replica(struct job_charts *j, uint32_t replica, const struct json *where,
                       struct err *e)
{
    struct str node = STR("");
    if (json_need_str(where, "node", NAME_MAX_BYTES, &node, e) < 0)
        return -1;
    bool shares = j->last.node.n && str_eq(j->last.node, node);
    if (!shares && j->charts == JOB_CHARTS_MAX) {
        j->left_out++;
        return 0;
    }
    if (chart_of(j, node, e) < 0)
        return -1;
    json_begin(j->w, NULL, '{');
    json_put_u64(j->w, "replica", replica);
    json_put_str(j->w, "node", node);
    json_put_bool(j->w, "simulated", j->last.known && j->last.at.head->simulated);
    json_put_i64(j->w, "from_ms", j->last.chart.from_ms);
    json_put_i64(j->w, "step_ms", j->last.chart.step_ms);
    json_put_u64(j->w, "points", j->last.chart.points);
    put_gpus(j, where);
    put_own(j, replica);
    json_end(j->w, '}');
    return 0;
}

static int put_run(struct job_charts *j, uint64_t first, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(j->run->where, e);
    const struct json *list = d ? json_root(d) : NULL;
    uint32_t replica = 0;
    if (!json_is_array(list))
        return d ? 0 : -1;
    json_begin(j->w, NULL, '{');
    json_put_u64(j->w, "run", j->run->run);
    json_put_i64(j->w, "from_ms", j->run->from_ms);
    if (j->run->to_ms)
        json_put_i64(j->w, "to_ms", j->run->to_ms);
    else
        json_put_null(j->w, "to_ms");
    json_begin(j->w, "replicas", '[');
    j->last.node = STR("");
    for (const struct json *o = json_first(list); o; o = json_next(list, o), replica++)
        if (replica >= first && put_replica(j, replica, o, e) < 0)
            return -1;
    json_end(j->w, ']');
    json_end(j->w, '}');
    j->last.node = STR(""); /* it lay in the document */
    return 0;
}

/* Of a run from before there were steps only the job's row tells. */
static void add_from_row(const struct store_job *row, struct store_places *runs,
                         struct store_place *one)
{
    if (runs->n || !row->now.where.n || !row->now.started_ms)
        return;
    *one = (struct store_place){ .run = row->now.run,
                                 .from_ms = row->now.started_ms,
                                 .to_ms = row->now.ended_ms,
                                 .where = row->now.where };
    *runs = (struct store_places){ one, 1 };
}

/* Runs of that time, the newest first. */
int api_job_history(struct call *c, struct err *e)
{
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct job_charts j = { .c = c,
                            .w = &w,
                            .now_ms = now_ms,
                            .from_ms = (int64_t)query_number(c, "from_ms", 0),
                            .to_ms = (int64_t)query_number(c, "to_ms", (uint64_t)now_ms),
                            .step_ms = (int64_t)query_number(c, "step_ms", 0) };
    uint64_t run = query_number(c, "run", 0), first = query_number(c, "replica", 0);
    struct store_places runs;
    struct store_place before;
    struct store_life of = { .job = c->job.fixed.id, .limit = JOB_RUNS_MAX };
    if (store_job_places(c->api->config.store, &c->scope, &of, http_arena(c->rq), &runs, e) < 0)
        return -1;
    add_from_row(&c->job, &runs, &before);
    json_begin(&w, NULL, '{');
    json_begin(&w, "runs", '[');
    for (size_t i = 0; i < runs.n; i++) {
        j.run = &runs.v[i];
        int64_t end_ms = j.run->to_ms ? j.run->to_ms : now_ms;
        if ((run && run != j.run->run) || j.run->from_ms >= j.to_ms || end_ms < j.from_ms)
            continue;
        if (j.charts == JOB_CHARTS_MAX)
            j.left_out++;
        else if (put_run(&j, first, e) < 0)
            return -1;
    }
    json_end(&w, ']');
    json_put_u64(&w, "left_out", j.left_out);
    json_end(&w, '}');
    if (buf_check(&b, e) < 0)
        return -1;
    reply_json(c, 200, &b);
    return 0;
}
