#include "base/map.h"
#include "base/parse.h"
#include "simulate/trace.h"
#include "sys/file.h"

#define TEXT_MAX ((size_t)512 << 20)
#define ARENA_MAX ((size_t)1 << 30)
#define LINE_MAX_BYTES 4096
#define PROCS_MAX 4000000 /* as thousandths they still fit 32 bits */
#define SECONDS_MAX INT64_C(100000000000)
#define ID_MAX INT64_C(1000000000)

/* The eighteen fields of a line, named as in the definition of the format. */
static const struct field {
    const char *name;
    bool fraction; /* may have one: some logs write averages */
    int64_t max;
} fields[] = {
    { "Job Number", false, INT64_MAX },
    { "Submit Time", false, SECONDS_MAX },
    { "Wait Time", true, SECONDS_MAX },
    { "Run Time", false, SECONDS_MAX },
    { "Number of Allocated Processors", false, PROCS_MAX },
    { "Average CPU Time Used", true, SECONDS_MAX },
    { "Used Memory", true, INT64_MAX },
    { "Requested Number of Processors", false, PROCS_MAX },
    { "Requested Time", false, SECONDS_MAX },
    { "Requested Memory", true, INT64_MAX },
    { "Status", false, 5 },
    { "User ID", false, ID_MAX },
    { "Group ID", false, ID_MAX },
    { "Executable (Application) Number", false, ID_MAX },
    { "Queue Number", false, ID_MAX },
    { "Partition Number", false, ID_MAX },
    { "Preceding Job Number", false, INT64_MAX },
    { "Think Time from Preceding Job", true, SECONDS_MAX },
};
enum {
    F_ID = 0,
    F_SUBMIT = 1,
    F_RUN = 3,
    F_PROCS = 4,
    F_ASKED_PROCS = 7,
    F_ASKED_TIME = 8,
    F_STATUS = 10,
    F_USER = 11,
    F_GROUP = 12,
    F_EXECUTABLE = 13,
    FIELDS = ARRAY_LEN(fields)
};

struct reading {
    struct trace t;
    const char *file;
    size_t line;
    uint32_t gpus_per_node;
    int64_t nodes, procs; /* of the header; 0 = not said */
    struct trace_rack rack[2];
    struct map ids, groups,
        users; /* numbers of the file to lines, to tenants, to indexes of user */
    const char **user;
    size_t users_n, users_cap;
};

static void reading_free(struct reading *r)
{
    trace_free(&r->t);
    map_free(&r->ids);
    map_free(&r->groups);
    map_free(&r->users);
    free(r->user);
}

static int fail(const struct reading *r, const char *field, struct err *e)
{
    return csv_wrap(r->file, r->line, field, e);
}

static bool is_comment(struct str line)
{
    return line.n && line.p[0] == ';';
}

/* ---- the header and the machine ---- */

/* "; MaxNodes: 128" */
static int read_header_line(struct reading *r, struct str line, struct err *e)
{
    struct str key, value, word;
    if (!str_cut((struct str){ line.p + 1, line.n - 1 }, ':', &key, &value))
        return 0;
    key = str_trim(key);
    bool is_nodes = str_is(key, "MaxNodes");
    if (!is_nodes && !str_is(key, "MaxProcs"))
        return 0;
    if (!str_next_word(&value, &word))
        word = STR("");
    if (parse_i64(word, 1, PROCS_MAX, is_nodes ? &r->nodes : &r->procs, e) < 0)
        return fail(r, is_nodes ? "MaxNodes" : "MaxProcs", e);
    return 0;
}

static int read_header(struct reading *r, struct str text, struct err *e)
{
    struct str line;
    size_t machine_line = 1;
    while (str_next_line(&text, &line)) {
        r->line++;
        int64_t nodes = r->nodes, procs = r->procs;
        if (is_comment(line) && read_header_line(r, line, e) < 0)
            return -1;
        if (nodes != r->nodes || procs != r->procs)
            machine_line = r->line;
    }
    r->line = machine_line;
    if (r->nodes == 0 && r->procs == 0) {
        err_set(e, ERR_INVALID, "the header does not say how large the machine is");
        fail(r, "MaxProcs", e);
        return err_hint(e, "add a line like '; MaxProcs: 128', and '; MaxNodes: 16' if known");
    }
    if (r->procs == 0)
        r->procs = r->nodes;
    if (r->nodes == 0)
        r->nodes = 1;
    if (r->procs < r->nodes) {
        err_set(e, ERR_INVALID, "%lld processors on %lld nodes", (long long)r->procs,
                (long long)r->nodes);
        fail(r, "MaxProcs", e);
        return err_hint(e, "each node has at least one processor");
    }
    return 0;
}

/* Nodes as equal as the processors allow: the first rack holds one more each. */
static void size_racks(struct reading *r)
{
    uint32_t procs = (uint32_t)r->procs, nodes = (uint32_t)r->nodes, per = r->gpus_per_node;
    if (per) {
        r->rack[0] = (struct trace_rack){ procs / per, per };
        r->rack[1] = (struct trace_rack){ procs % per > 0, procs % per };
    } else {
        r->rack[0] = (struct trace_rack){ procs % nodes, procs / nodes + 1 };
        r->rack[1] = (struct trace_rack){ nodes - procs % nodes, procs / nodes };
    }
}

static int make_nodes(struct reading *r, struct err *e)
{
    size_racks(r);
    uint32_t total = r->rack[0].nodes + r->rack[1].nodes;
    if (total > TRACE_NODES_MAX) {
        err_set(e, ERR_INVALID, "%u nodes; at most %u can be replayed", total, TRACE_NODES_MAX);
        fail(r, r->gpus_per_node ? "MaxProcs" : "MaxNodes", e);
        return err_hint(e, "choose more GPUs for each node, or a smaller log");
    }
    r->t.node = arena_array(&r->t.arena, struct event_node, total);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < r->rack[k].nodes; i++) {
            uint32_t units = r->rack[k].units;
            char *name = arena_printf(&r->t.arena, "node-%03u", r->t.nodes + 1);
            r->t.node[r->t.nodes++] = (struct event_node){
                .name = str_of(name),
                .model = r->gpus_per_node ? STR("gpu") : STR(""),
                .gpus = r->gpus_per_node ? units : 0,
                .cpu_milli = r->gpus_per_node ? 1 : units * 1000,
                .mem_mib = 1,
            };
        }
    return 0;
}

/* ---- jobs ---- */

static int read_fields(const struct reading *r, struct str line, int64_t v[static FIELDS],
                       struct err *e)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        struct str word;
        double d;
        if (!str_next_word(&line, &word)) {
            err_set(e, ERR_INVALID, "missing: a line has %zu fields, this one %zu",
                    FIELDS + (size_t)0, i);
            fail(r, f->name, e);
            return err_hint(e, "write -1 for what is not known");
        }
        if (f->fraction ? parse_f64(word, -1, (double)f->max, &d, e) < 0
                        : parse_i64(word, -1, f->max, &v[i], e) < 0)
            return fail(r, f->name, e);
    }
    struct str more;
    if (str_next_word(&line, &more)) {
        err_set(e, ERR_INVALID, "'%.*s' follows it, and a line ends there",
                (int)MIN(more.n, (size_t)40), more.p);
        fail(r, fields[FIELDS - 1].name, e);
        return err_hint(e, "a line has 18 fields; comments begin with ';' on a line of their own");
    }
    return 0;
}

/* Groups in the order they come; the unknown group (-1) is one of them. */
static int find_tenant(struct reading *r, int64_t group, uint32_t *out, struct err *e)
{
    uint64_t at;
    if (map_get(&r->groups, (uint64_t)group, &at)) {
        *out = (uint32_t)at;
        return 0;
    }
    if (r->t.tenants == TRACE_TENANTS_MAX) {
        err_set(e, ERR_INVALID, "more than %u groups", TRACE_TENANTS_MAX);
        fail(r, fields[F_GROUP].name, e);
        return err_hint(e, "cut the log into smaller ones");
    }
    map_set(&r->groups, (uint64_t)group, r->t.tenants);
    r->t.tenant[r->t.tenants] = (struct trace_tenant){
        .name =
            group < 0 ? "group-unknown" : arena_printf(&r->t.arena, "group-%lld", (long long)group),
        .parent = "",
        .weight_milli = 1000,
        .limit = AMOUNTS_NO_LIMIT,
    };
    *out = r->t.tenants++;
    return 0;
}

static const char *find_user(struct reading *r, int64_t user)
{
    uint64_t at;
    if (user < 0)
        return "user-unknown";
    if (map_get(&r->users, (uint64_t)user, &at))
        return r->user[at];
    map_set(&r->users, (uint64_t)user, r->users_n);
    vec_grow(r->user, r->users_n, r->users_cap);
    return r->user[r->users_n++] = arena_printf(&r->t.arena, "user-%lld", (long long)user);
}

static int cut_job(const struct reading *r, int64_t procs, int which, struct trace_job *j,
                   struct err *e)
{
    uint32_t each;
    if (!trace_split((uint32_t)procs, r->rack, &j->request.replicas, &each)) {
        err_set(e, ERR_INVALID, "%lld processors do not fit the machine of %lld in %u nodes",
                (long long)procs, (long long)r->procs, r->t.nodes);
        fail(r, fields[which].name, e);
        return err_hint(e, "the job could never start; is '; MaxProcs:' right?");
    }
    if (r->gpus_per_node) {
        j->gpus = (uint32_t)procs;
        j->request.gpus = (uint16_t)each;
        j->request.layout = j->request.replicas > 1 ? LAYOUT_FEWEST : LAYOUT_PACK;
    } else {
        j->request.cpu_milli = each * 1000;
    }
    return 0;
}

/* Statuses 2 to 4 are parts of a checkpointed job that has a line for the whole as well. */
static bool is_part(int64_t status)
{
    return status >= 2 && status <= 4;
}

static int read_job(struct reading *r, struct str line, struct err *e)
{
    int64_t v[FIELDS] = { 0 };
    uint64_t first;
    if (read_fields(r, line, v, e) < 0)
        return -1;
    int which = v[F_PROCS] > 0 ? F_PROCS : F_ASKED_PROCS;
    if (v[F_RUN] <= 0 || v[which] <= 0 || is_part(v[F_STATUS])) {
        r->t.skipped++;
        return 0;
    }
    for (int i = F_ID; i <= F_SUBMIT; i++)
        if (v[i] < 0) {
            err_set(e, ERR_INVALID, "'-1' is not a value of a job that ran");
            fail(r, fields[i].name, e);
            return err_hint(e, "every job needs its number and the time it was submitted");
        }
    if (map_get(&r->ids, (uint64_t)v[F_ID], &first)) {
        err_set(e, ERR_INVALID, "job %lld is on line %llu already", (long long)v[F_ID],
                (unsigned long long)first);
        fail(r, fields[F_ID].name, e);
        return err_hint(e, "give each job its own number");
    }
    map_set(&r->ids, (uint64_t)v[F_ID], r->line);
    struct trace_job j = {
        .id = (uint64_t)v[F_ID],
        .submit_ms = v[F_SUBMIT] * 1000,
        .duration_ms = v[F_RUN] * 1000,
        .estimate_ms = MAX(v[F_ASKED_TIME], 0) * 1000,
        .models = "",
        .priority = PRIO_NORMAL,
        .user = find_user(r, v[F_USER]),
        .family = (uint32_t)MAX(v[F_EXECUTABLE], 0),
    };
    if (find_tenant(r, v[F_GROUP], &j.tenant, e) < 0 || cut_job(r, v[which], which, &j, e) < 0)
        return -1;
    r->t.job[r->t.jobs++] = j;
    return 0;
}

/* Lines that may be jobs, up to one more than allowed. */
static size_t count_jobs(struct str text)
{
    struct str line;
    size_t n = 0;
    while (n <= TRACE_JOBS_MAX && str_next_line(&text, &line))
        n += !is_comment(line) && str_trim(line).n > 0;
    return n;
}

static int read_jobs(struct reading *r, struct str text, struct err *e)
{
    size_t n = count_jobs(text);
    r->line = 0;
    r->t.job = arena_array(&r->t.arena, struct trace_job, MIN(n, TRACE_JOBS_MAX));
    r->t.tenant = arena_array(&r->t.arena, struct trace_tenant, MIN(n, TRACE_TENANTS_MAX));
    struct str line;
    while (str_next_line(&text, &line)) {
        r->line++;
        if (is_comment(line) || str_trim(line).n == 0)
            continue;
        if (line.n > LINE_MAX_BYTES) {
            err_set(e, ERR_INVALID, "the line is longer than %d bytes", LINE_MAX_BYTES);
            fail(r, fields[F_ID].name, e);
            return err_hint(e, "a line has 18 numbers");
        }
        if (r->t.jobs == TRACE_JOBS_MAX) {
            err_set(e, ERR_INVALID, "more than %u jobs", TRACE_JOBS_MAX);
            fail(r, fields[F_ID].name, e);
            return err_hint(e, "cut the log into smaller ones");
        }
        if (read_job(r, line, e) < 0)
            return -1;
    }
    return 0;
}

int trace_parse_swf(const struct csv_source *from, uint32_t gpus_per_node, struct trace *out,
                    struct err *e)
{
    AUTO(reading_free)
    struct reading r = { .file = from->file, .gpus_per_node = gpus_per_node };
    const char *slash = strrchr(from->file, '/'), *base = slash ? slash + 1 : from->file;
    r.t.arena.limit = ARENA_MAX;
    r.t.name = arena_strndup(&r.t.arena, base, strlen(base));
    if (gpus_per_node > GPUS_PER_NODE_MAX) {
        err_set(e, ERR_INVALID, "%u GPUs on one machine", gpus_per_node);
        return err_hint(e, "at most %d", GPUS_PER_NODE_MAX);
    }
    if (read_header(&r, from->text, e) < 0 || make_nodes(&r, e) < 0 ||
        read_jobs(&r, from->text, e) < 0 || trace_finish(&r.t, e) < 0)
        return -1;
    *out = r.t;
    r.t = (struct trace){ 0 };
    return 0;
}

int trace_read_swf(const char *file, uint32_t gpus_per_node, struct trace *out, struct err *e)
{
    AUTO(buf_free) struct buf text = { 0 };
    if (file_read(file, TEXT_MAX, &text, e) < 0)
        return -1;
    const struct csv_source from = { file, buf_str(&text) };
    return trace_parse_swf(&from, gpus_per_node, out, e);
}
