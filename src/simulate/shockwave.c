/* Each job is a tenant of its own, all of one weight: finish-time fairness compares a job with an
 * equal part of the cluster, and that is what a tenant is entitled to.  As users of one tenant
 * they would share alike, but no figure of tenants would say anything. */
#include <math.h>

#include "base/map.h"
#include "simulate/trace.h"
#include "sys/file.h"

#define TEXT_MAX ((size_t)64 << 20)
#define ARENA_MAX ((size_t)1 << 30)
#define SECONDS_MAX 1e11 /* 3,000 years; its milliseconds still fit */

static const struct csv_column columns[] = {
    { "job_id", 0 },
    { "submit_s", 0 },
    { "num_gpus", 0 },
    { "exclusive_s", 0 },
};
enum {
    JOB_ID,
    JOB_SUBMIT,
    JOB_GPUS,
    JOB_EXCLUSIVE
};

struct reading {
    struct trace t;
    struct trace_rack rack[2]; /* full machines, and one with the rest */
    struct trace_pool pool;
    struct map ids;
};

static void reading_free(struct reading *r)
{
    trace_free(&r->t);
    map_free(&r->ids);
}

static int make_nodes(struct reading *r, struct err *e)
{
    const struct trace_pool *p = &r->pool;
    if (p->per_node < 1 || p->per_node > GPUS_PER_NODE_MAX || p->gpus < 1 ||
        p->gpus > TRACE_NODES_MAX) {
        err_set(e, ERR_INVALID, "%u GPUs, %u on a machine", p->gpus, p->per_node);
        return err_hint(e, "1 to %u GPUs, 1 to %d on a machine", TRACE_NODES_MAX,
                        GPUS_PER_NODE_MAX);
    }
    uint32_t rest = p->gpus % p->per_node;
    r->rack[0] = (struct trace_rack){ p->gpus / p->per_node, p->per_node };
    r->rack[1] = (struct trace_rack){ rest ? 1 : 0, rest };
    r->t.node = arena_array(&r->t.arena, struct event_node, r->rack[0].nodes + r->rack[1].nodes);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < r->rack[k].nodes; i++) {
            char *name = arena_printf(&r->t.arena, "node-%03u", r->t.nodes + 1);
            r->t.node[r->t.nodes++] = (struct event_node){
                .name = str_of(name),
                .model = STR("gpu"),
                .gpus = r->rack[k].units,
                .cpu_milli = 1,
                .mem_mib = 1,
            };
        }
    return 0;
}

static int cut_job(const struct reading *r, const struct csv *c, struct trace_job *j, struct err *e)
{
    uint32_t each;
    if (!trace_split(j->gpus, r->rack, &j->request.replicas, &each)) {
        csv_fail(c, JOB_GPUS, e, "%u GPUs do not fit the %u, %u on a machine", j->gpus,
                 r->pool.gpus, r->pool.per_node);
        return err_hint(e, "the job could never start: give it fewer GPUs or the cluster more");
    }
    j->request.gpus = (uint16_t)each;
    if (j->request.replicas > 1)
        j->request.layout = LAYOUT_FEWEST;
    return 0;
}

static int take_id(struct reading *r, const struct csv *c, uint64_t id, struct err *e)
{
    uint64_t first;
    if (map_get(&r->ids, id, &first)) {
        csv_fail(c, JOB_ID, e, "job %llu is on line %llu already", (unsigned long long)id,
                 (unsigned long long)first);
        return err_hint(e, "give each job its own number");
    }
    map_set(&r->ids, id, c->line);
    return 0;
}

static int read_job(struct reading *r, const struct csv *c, struct err *e)
{
    int64_t id;
    double submit_s, exclusive_s;
    struct trace_job j = { .models = "", .priority = PRIO_NORMAL, .tenant = r->t.tenants };
    if (csv_i64(c, JOB_ID, 0, INT64_MAX, &id, e) < 0 ||
        csv_f64(c, JOB_SUBMIT, 0, SECONDS_MAX, &submit_s, e) < 0 ||
        csv_u32(c, JOB_GPUS, 1, TRACE_NODES_MAX, &j.gpus, e) < 0 ||
        csv_f64(c, JOB_EXCLUSIVE, 0.001, SECONDS_MAX, &exclusive_s, e) < 0 ||
        take_id(r, c, (uint64_t)id, e) < 0 || cut_job(r, c, &j, e) < 0)
        return -1;
    j.id = (uint64_t)id;
    j.submit_ms = llround(submit_s * 1000);
    j.duration_ms = llround(exclusive_s * 1000);
    j.user = arena_printf(&r->t.arena, "job-%lld", (long long)id);
    r->t.tenant[r->t.tenants++] = (struct trace_tenant){
        .name = j.user,
        .parent = "",
        .weight_milli = 1000,
        .limit = AMOUNTS_NO_LIMIT,
    };
    r->t.job[r->t.jobs++] = j;
    return 0;
}

static int read_jobs(struct reading *r, const struct csv_source *from, struct err *e)
{
    const struct csv_table table = { columns, ARRAY_LEN(columns), TRACE_TENANTS_MAX };
    struct csv c;
    if (csv_open(&c, from, &table, e) < 0)
        return -1;
    r->t.job = arena_array(&r->t.arena, struct trace_job, c.room);
    r->t.tenant = arena_array(&r->t.arena, struct trace_tenant, c.room);
    int rc;
    while ((rc = csv_next(&c, e)) > 0)
        if (read_job(r, &c, e) < 0)
            return -1;
    return rc;
}

int trace_parse_shockwave(const struct csv_source *from, struct trace_pool pool, struct trace *out,
                          struct err *e)
{
    AUTO(reading_free) struct reading r = { .pool = pool };
    r.t.arena.limit = ARENA_MAX;
    r.t.name = "shockwave";
    r.t.rho_note = "submit to end, by run time × jobs / GPUs; a job above 1.05 is unfair. In the "
                   "published runs jobs change their batch size while they run; these do not, "
                   "which is an easier task.";
    if (make_nodes(&r, e) < 0 || read_jobs(&r, from, e) < 0 || trace_finish(&r.t, e) < 0)
        return -1;
    *out = r.t;
    r.t = (struct trace){ 0 };
    return 0;
}

int trace_read_shockwave(const char *dir, const char *file, struct trace_pool pool,
                         struct trace *out, struct err *e)
{
    AUTO(csv_file_free) struct csv_file in_dir = { 0 };
    AUTO(buf_free) struct buf text = { 0 };
    if (file) {
        if (file_read(file, TEXT_MAX, &text, e) < 0)
            return -1;
        const struct csv_source from = { file, buf_str(&text) };
        return trace_parse_shockwave(&from, pool, out, e);
    }
    const struct csv_folder in = { dir, "shockwave" };
    if (csv_load(&in, "tacc32_120jobs.csv", TEXT_MAX, &in_dir, e) < 0)
        return -1;
    const struct csv_source from = csv_file_source(&in_dir);
    return trace_parse_shockwave(&from, pool, out, e);
}
