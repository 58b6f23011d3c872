#include "base/map.h"
#include "simulate/trace.h"

#define TEXT_MAX ((size_t)256 << 20)
#define ARENA_MAX ((size_t)1 << 30)
#define GPUS_PER_NODE 8u
#define SECONDS_MAX INT64_C(100000000000) /* 3,000 years; its milliseconds still fit */

static const struct csv_column vc_columns[] = {
    { "vc", 0 },
    { "node num", 0 },
};
enum {
    VC_NAME,
    VC_NODES
};

static const struct csv_column job_columns[] = {
    { "job_id", 0 },   { "submit_s", 0 },   { "vc", 0 },
    { "num_gpus", 0 }, { "duration_s", 0 }, { "noisy_est_s", CSV_OPTIONAL },
};
enum {
    JOB_ID,
    JOB_SUBMIT,
    JOB_VC,
    JOB_GPUS,
    JOB_DURATION,
    JOB_ESTIMATE
};

/* What a reading holds besides the trace it makes. */
struct reading {
    struct trace t;
    struct names vcs;
    struct map ids;
    uint32_t *vc_nodes; /* of each tenant */
    uint32_t pooled;
};

static void reading_free(struct reading *r)
{
    trace_free(&r->t);
    names_free(&r->vcs);
    map_free(&r->ids);
    free(r->vc_nodes);
}

static int read_vc(struct reading *r, const struct csv *c, struct err *e)
{
    struct str name = csv_text(c, VC_NAME);
    uint32_t nodes;
    if (name.n > NAME_MAX_BYTES - 16) { /* its nodes are named after it */
        csv_fail(c, VC_NAME, e, "a name of %zu bytes", name.n);
        return err_hint(e, "at most %d bytes", NAME_MAX_BYTES - 16);
    }
    if (csv_u32(c, VC_NODES, 1, TRACE_NODES_MAX, &nodes, e) < 0)
        return -1;
    if (r->t.nodes + nodes > TRACE_NODES_MAX) {
        csv_fail(c, VC_NODES, e, "more than %u nodes in all", TRACE_NODES_MAX);
        return err_hint(e, "cut the trace into smaller ones");
    }
    if (names_intern(&r->vcs, name) != r->t.tenants) {
        csv_fail(c, VC_NAME, e, "'%.*s' is there twice", (int)name.n, name.p);
        return err_hint(e, "give each virtual cluster one line with all its nodes");
    }
    r->vc_nodes[r->t.tenants] = nodes;
    r->t.tenant[r->t.tenants++] = (struct trace_tenant){
        .name = arena_strndup(&r->t.arena, name.p, name.n),
        .parent = "",
        .weight_milli = nodes * 1000,
        .limit = AMOUNTS_NO_LIMIT,
    };
    r->t.nodes += nodes;
    return 0;
}

static int read_vcs(struct reading *r, const struct csv_source *from, struct err *e)
{
    const struct csv_table table = { vc_columns, ARRAY_LEN(vc_columns), TRACE_TENANTS_MAX };
    struct csv c;
    if (csv_open(&c, from, &table, e) < 0)
        return -1;
    r->t.tenant = arena_array(&r->t.arena, struct trace_tenant, c.room);
    r->vc_nodes = xcalloc(c.room + 1, sizeof *r->vc_nodes);
    int rc;
    while ((rc = csv_next(&c, e)) > 0)
        if (read_vc(r, &c, e) < 0)
            return -1;
    if (rc == 0 && r->t.tenants == 0) {
        csv_fail(&c, VC_NAME, e, "there is no virtual cluster in the table");
        return err_hint(e, "a line is like: 6214e9,64");
    }
    return rc;
}

static struct event_node make_node(char *name)
{
    return (struct event_node){
        .name = str_of(name),
        .model = STR("gpu"), /* the trace does not say which */
        .gpus = GPUS_PER_NODE,
        .cpu_milli = 1,
        .mem_mib = 1,
    };
}

static void make_nodes(struct reading *r)
{
    struct arena *a = &r->t.arena;
    if (r->pooled)
        r->t.nodes = r->pooled;
    else
        r->t.node_tenant = arena_array(a, uint32_t, r->t.nodes);
    r->t.node = arena_array(a, struct event_node, r->t.nodes);
    uint32_t n = 0;
    for (; n < r->pooled; n++)
        r->t.node[n] = make_node(arena_printf(a, "pool-%03u", n + 1));
    for (uint32_t v = 0; v < r->t.tenants && !r->pooled; v++)
        for (uint32_t i = 1; i <= r->vc_nodes[v]; i++) {
            r->t.node[n] = make_node(arena_printf(a, "%s-%02u", r->t.tenant[v].name, i));
            r->t.node_tenant[n++] = v;
        }
}

/* The job's GPUs as a gang on the nodes it may use. */
static int cut_job(const struct reading *r, const struct csv *c, struct trace_job *j, struct err *e)
{
    uint32_t nodes = r->pooled ? r->pooled : r->vc_nodes[j->tenant], each;
    const struct trace_rack racks[2] = { { nodes, GPUS_PER_NODE } };
    if (!trace_split(j->gpus, racks, &j->request.replicas, &each)) {
        csv_fail(c, JOB_GPUS, e, "%u GPUs do not fit %s, which has %u nodes of %u", j->gpus,
                 r->pooled ? "the pool" : r->t.tenant[j->tenant].name, nodes, GPUS_PER_NODE);
        return err_hint(e, "the job could never start: give it fewer GPUs or the cluster more");
    }
    j->request.gpus = (uint16_t)each;
    if (j->request.replicas > 1)
        j->request.layout = LAYOUT_FEWEST;
    return 0;
}

static int read_job(struct reading *r, const struct csv *c, struct err *e)
{
    int64_t id, submit_s, duration_s, estimate_s = 0;
    uint64_t first;
    struct str vc = csv_text(c, JOB_VC);
    struct trace_job j = { .models = "",
                           .priority = PRIO_NORMAL,
                           .tenant = names_find(&r->vcs, vc) };
    if (csv_i64(c, JOB_ID, 0, INT64_MAX, &id, e) < 0 ||
        csv_i64(c, JOB_SUBMIT, -SECONDS_MAX, SECONDS_MAX, &submit_s, e) < 0 ||
        csv_u32(c, JOB_GPUS, 1, TRACE_NODES_MAX * GPUS_PER_NODE, &j.gpus, e) < 0 ||
        csv_i64(c, JOB_DURATION, 1, SECONDS_MAX, &duration_s, e) < 0)
        return -1;
    if (csv_has(c, JOB_ESTIMATE) &&
        csv_i64(c, JOB_ESTIMATE, -SECONDS_MAX, SECONDS_MAX, &estimate_s, e) < 0)
        return -1;
    if (j.tenant == NAME_NONE) {
        csv_fail(c, JOB_VC, e, "there is no virtual cluster '%.*s'", (int)MIN(vc.n, (size_t)60),
                 vc.p);
        return err_hint(e, "philly_vc_nodes.csv lists them");
    }
    if (map_get(&r->ids, (uint64_t)id, &first)) {
        csv_fail(c, JOB_ID, e, "job %lld is on line %llu already", (long long)id,
                 (unsigned long long)first);
        return err_hint(e, "give each job its own number");
    }
    map_set(&r->ids, (uint64_t)id, c->line);
    j.id = (uint64_t)id;
    j.submit_ms = submit_s * 1000;
    j.duration_ms = duration_s * 1000;
    j.estimate_ms = estimate_s * 1000;
    j.user = r->t.tenant[j.tenant].name; /* the trace names no users */
    if (cut_job(r, c, &j, e) < 0)
        return -1;
    r->t.job[r->t.jobs++] = j;
    return 0;
}

static int read_jobs(struct reading *r, const struct csv_source *from, struct err *e)
{
    const struct csv_table table = { job_columns, ARRAY_LEN(job_columns), TRACE_JOBS_MAX };
    struct csv c;
    if (csv_open(&c, from, &table, e) < 0)
        return -1;
    r->t.job = arena_array(&r->t.arena, struct trace_job, c.room);
    int rc;
    while ((rc = csv_next(&c, e)) > 0)
        if (read_job(r, &c, e) < 0)
            return -1;
    return rc;
}

int trace_parse_philly(const struct csv_source *vcs, const struct csv_source *jobs,
                       uint32_t pooled_nodes, struct trace *out, struct err *e)
{
    AUTO(reading_free) struct reading r = { .pooled = pooled_nodes };
    r.t.arena.limit = ARENA_MAX;
    r.t.name = pooled_nodes ? "philly, pooled" : "philly";
    if (pooled_nodes > TRACE_NODES_MAX) {
        err_set(e, ERR_INVALID, "a pool of %u nodes", pooled_nodes);
        return err_hint(e, "at most %u nodes", TRACE_NODES_MAX);
    }
    if (read_vcs(&r, vcs, e) < 0)
        return -1;
    make_nodes(&r);
    if (read_jobs(&r, jobs, e) < 0 || trace_finish(&r.t, e) < 0)
        return -1;
    *out = r.t;
    r.t = (struct trace){ 0 };
    return 0;
}

int trace_read_philly(const char *dir, uint32_t pooled_nodes, struct trace *out, struct err *e)
{
    const struct csv_folder in = { dir, "philly" };
    AUTO(csv_file_free) struct csv_file vcs = { 0 };
    AUTO(csv_file_free) struct csv_file jobs = { 0 };
    if (csv_load(&in, "philly_vc_nodes.csv", TEXT_MAX, &vcs, e) < 0)
        return -1;
    int rc = csv_load(&in, "s2_window_jobs.csv", TEXT_MAX, &jobs, e);
    if (rc < 0 && e->code == ERR_NOT_FOUND)
        rc = csv_load(&in, "philly_jobs.csv", TEXT_MAX, &jobs, e);
    if (rc < 0)
        return -1;
    struct csv_source vcs_text = csv_file_source(&vcs), jobs_text = csv_file_source(&jobs);
    return trace_parse_philly(&vcs_text, &jobs_text, pooled_nodes, out, e);
}
