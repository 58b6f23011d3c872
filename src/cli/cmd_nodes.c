/* nodes, drain, resume: the machines. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/job.h"
#include "cli/lent.h"
#include "cli/text.h"

struct nodes_opts {
    struct common common;
};

static const struct opt opts[] = {
    OPTS_OUTPUT(struct nodes_opts),
    OPTS_COMMON(struct nodes_opts),
};

static const struct column columns[] = {
    { "NAME", false, true },     { "STATE", false, false },   { "GPU MODEL", false, true },
    { "GPUS", false, false },    { "FREE", true, false },     { "CPUS FREE", true, false },
    { "MEM FREE", true, false }, { "JOBS", true, false },     { "POOL", false, true },
    { "WINDOW", false, false },  { "RESERVED", false, true }, { "DEVICES FREE", false, true },
};
enum {
    COLUMN_POOL = 8,      /* it and the next: only where a machine is in a pool */
    COLUMN_RESERVED = 10, /* only where one is reserved */
    COLUMN_DEVICES = 11,  /* only where one has something beyond GPUs */
};
struct shown {
    bool lent, reserved, devices;
};

static const struct column gpu_columns[] = {
    { "NODE", false, true }, { "GPU", true, false },  { "MODEL", false, true },
    { "MEM", true, false },  { "UTIL", true, false }, { "FREE", true, false },
    { "JOBS", false, true },
};

/* One block a GPU: full, shared, free. */
static void add_gpu_bar(const struct json *gpus, struct buf *out)
{
    for (const struct json *g = json_first(gpus); g; g = json_next(gpus, g)) {
        uint64_t milli = field_u64(g, "free_milli");
        buf_addz(out, text_mark(milli >= 1000 ? MARK_EMPTY : milli ? MARK_PART : MARK_FULL));
    }
}

static enum tint state_tint(struct str state)
{
    return str_is(state, "up") ? TINT_GOOD : str_is(state, "down") ? TINT_BAD : TINT_WAIT;
}

/* Its pool, and "closed until Mon 20:00". */
static void add_window(struct table *t, const struct json *n)
{
    char at[24];
    bool open = field_bool(n, "open");
    int64_t until_ms = field_i64(n, "until_ms", 0);
    if (!field_known(n, "pool")) {
        table_addz(t, "-");
        table_addz(t, "-");
        return;
    }
    table_add(t, field_str(n, "pool"));
    if (field_known(n, "held"))
        table_addz(t, "held by its owner");
    else if (until_ms)
        table_printf(t, "%s until %s", open ? "open" : "closed",
                     text_soon(until_ms, cli_now_ms(), at));
    else
        table_addz(t, open ? "open" : "closed");
}

/* "class until 12:00", or "class from Tue 10:00". */
static void add_reserved(struct table *t, const struct json *n)
{
    char at[24];
    const struct json *r = json_find(n, "reserved");
    if (!field_known(n, "reserved")) {
        table_addz(t, "-");
        return;
    }
    int64_t now_ms = cli_now_ms(), from_ms = field_i64(r, "from_ms", 0);
    bool open = from_ms <= now_ms;
    struct str name = field_known(r, "name") ? field_str(r, "name") : STR("reserved");
    table_printf(t, "%.*s %s %s", STR_ARG(name), open ? "until" : "from",
                 text_soon(open ? field_i64(r, "until_ms", 0) : from_ms, now_ms, at));
}

static bool has_devices(const struct json *n)
{
    const struct json *devices = json_find(n, "devices");
    return json_is_object(devices) && json_members(devices) > 0;
}

/* "nvidia.com/mig-1g.5gb 4/7, rdma/hca 1/2" */
static void add_devices(struct table *t, const struct json *n)
{
    AUTO(buf_free) struct buf text = BUF(8192);
    const struct json *devices = json_find(n, "devices");
    for (struct json_member m = { 0 }; has_devices(n) && json_next_member(devices, &m);)
        buf_printf(&text, "%s%.*s %llu/%llu", text.n ? ", " : "", STR_ARG(m.key),
                   (unsigned long long)field_u64(m.value, "free"),
                   (unsigned long long)field_u64(m.value, "total"));
    table_addz(t, text.n ? buf_str(&text).p : "-");
}

static void add_node(struct table *t, const struct json *n, struct shown shown)
{
    AUTO(buf_free) struct buf bar = BUF(4096);
    char a[24], b[24];
    const struct json *gpus = json_find(n, "gpus");
    size_t total = 0, jobs = 0;
    uint64_t milli = 0;
    gpus = json_is_array(gpus) ? gpus : NULL;
    for (const struct json *g = gpus ? json_first(gpus) : NULL; g; g = json_next(gpus, g)) {
        const struct json *on = json_find(g, "jobs");
        milli += field_u64(g, "free_milli");
        jobs += json_is_array(on) ? json_len(on) : 0;
        total++;
    }
    if (gpus)
        add_gpu_bar(gpus, &bar);
    for (uint64_t i = 0; i < field_u64(n, "gpus_of_others"); i++, total++)
        buf_addz(&bar, text_mark(MARK_FULL));
    struct str state = field_str(n, "state"), model = field_str(n, "model");
    table_add(t, field_str(n, "name"));
    table_add_tinted(t, state, state_tint(state));
    table_printf(t, "%.*s%s", STR_ARG(model), field_bool(n, "simulated") ? " (simulated)" : "");
    table_add(t, buf_str(&bar));
    table_printf(t, "%s/%zu", text_milli(milli, a), total);
    table_printf(t, "%s/%s", text_milli(field_u64(n, "cpu_free_milli"), a),
                 text_milli(field_u64(n, "cpu_milli"), b));
    table_printf(t, "%s/%s", text_mib(field_u64(n, "mem_free_mib"), a),
                 text_mib(field_u64(n, "mem_mib"), b));
    table_printf(t, "%zu", jobs);
    if (shown.lent)
        add_window(t, n);
    if (shown.reserved)
        add_reserved(t, n);
    if (shown.devices)
        add_devices(t, n);
}

/* "40Gi/80Gi", or how much it has when nobody measures it. */
static void add_memory(struct table *t, const struct json *g)
{
    char used[24], all[24];
    if (!field_known(g, "mem_mib"))
        table_addz(t, "-");
    else if (field_known(g, "mem_used_mib"))
        table_printf(t, "%s/%s", text_mib(field_u64(g, "mem_used_mib"), used),
                     text_mib(field_u64(g, "mem_mib"), all));
    else
        table_addz(t, text_mib(field_u64(g, "mem_mib"), all));
}

/* -o wide: a row for each GPU, with who has it. */
static void add_gpus(struct table *t, const struct json *n)
{
    const struct json *gpus = json_find(n, "gpus");
    char text[24];
    for (const struct json *g = json_is_array(gpus) ? json_first(gpus) : NULL; g;
         g = json_next(gpus, g)) {
        AUTO(buf_free) struct buf who = BUF(1u << 16);
        const struct json *jobs = json_find(g, "jobs");
        for (const struct json *j = json_is_array(jobs) ? json_first(jobs) : NULL; j;
             j = json_next(jobs, j)) {
            buf_addz(&who, who.n ? ", " : "");
            job_add_holder(j, &who);
        }
        table_add(t, field_str(n, "name"));
        table_printf(t, "%llu", (unsigned long long)field_u64(g, "index"));
        table_add(t, field_str(field_known(g, "model") ? g : n, "model"));
        add_memory(t, g);
        if (field_known(g, "util_percent"))
            table_printf(t, "%.0f%%", field_f64(g, "util_percent"));
        else
            table_addz(t, "-");
        table_addz(t, text_milli(field_u64(g, "free_milli"), text));
        table_add(t, buf_str(&who));
    }
    for (uint64_t i = 0; i < field_u64(n, "gpus_of_others"); i++) {
        table_add(t, field_str(n, "name"));
        table_addz(t, "-");
        table_add(t, field_str(n, "model"));
        table_addz(t, "-");
        table_addz(t, "-");
        table_addz(t, "0");
        table_addz(t, "(a pod of others)");
    }
}

static size_t choose_columns(struct shown shown, struct column out[static ARRAY_LEN(columns)])
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (i < COLUMN_POOL || (i < COLUMN_RESERVED  ? shown.lent
                                : i < COLUMN_DEVICES ? shown.reserved
                                                     : shown.devices))
            out[n++] = columns[i];
    return n;
}

/* Below the table: why a machine is drained. */
static int print_reasons(const struct json *nodes, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    for (const struct json *n = json_is_array(nodes) ? json_first(nodes) : NULL; n;
         n = json_next(nodes, n)) {
        if (field_known(n, "held"))
            lent_add_held(&b, field_str(n, "name"), json_find(n, "held"));
        if (field_known(n, "drained_because")) {
            text_add_clean(&b, field_str(n, "name"));
            buf_addz(&b, " is drained: ");
            text_add_clean(&b, field_str(n, "drained_because"));
            buf_addc(&b, '\n');
        }
    }
    return b.n ? cli_print(&b, e) : 0;
}

static int print_nodes(const struct nodes_opts *o, const struct json *nodes, struct err *e)
{
    enum output form = cli_output(&o->common);
    struct column used[ARRAY_LEN(columns)];
    struct shown shown = { 0 };
    for (const struct json *n = json_is_array(nodes) ? json_first(nodes) : NULL; n;
         n = json_next(nodes, n)) {
        shown.lent |= field_known(n, "pool");
        shown.reserved |= field_known(n, "reserved");
        shown.devices |= has_devices(n);
    }
    size_t width = choose_columns(shown, used);
    AUTO(table_free_p)
    struct table *t =
        form == OUT_WIDE ? table_new(gpu_columns, ARRAY_LEN(gpu_columns)) : table_new(used, width);
    AUTO(buf_free) struct buf names = BUF(8u << 20);
    for (const struct json *n = json_is_array(nodes) ? json_first(nodes) : NULL; n;
         n = json_next(nodes, n)) {
        struct str name = field_str(n, "name");
        buf_printf(&names, "%.*s\n", STR_ARG(name));
        if (form == OUT_WIDE)
            add_gpus(t, n);
        else
            add_node(t, n, shown);
    }
    if (form == OUT_NAME)
        return cli_print(&names, e);
    if (cli_print_table(t, &o->common, e) < 0)
        return -1;
    return o->common.no_headers ? 0 : print_reasons(nodes, e);
}

static int run_nodes(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct nodes_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    (void)args;
    if (cli_call(c, &(struct call){ .path = "/v1/nodes" }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    return doc ? print_nodes(o, json_find(json_root(doc), "nodes"), e) : -1;
}

const struct command command_nodes = {
    .name = "nodes",
    .args = "",
    .help = "the machines, and what is free (-o wide: every GPU and who has it)",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(opts, struct nodes_opts),
    .run = run_nodes,
};

/* ---- drain, resume ---- */

struct verb_opts {
    struct common common;
    const char *reason;
};

static int node_verb(struct cli *c, const char *name, const char *verb, const char *reason,
                     struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), body = BUF(8192);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    if (reason)
        json_put_str(&w, "reason", str_of(reason));
    json_end(&w, '}');
    buf_addz(&path, "/v1/nodes");
    path_add(&path, name);
    path_add(&path, verb);
    if (buf_check(&path, e) < 0 || buf_check(&body, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = cli_post(c, path.p, buf_str(&body), e);
    if (!doc)
        return -1;
    AUTO(buf_free) struct buf said = BUF(4096);
    text_add_clean(&said, str_of(name));
    buf_addz(&said, ": ");
    text_add_clean(&said, field_str(json_root(doc), "state"));
    buf_addc(&said, '\n');
    return cli_print(&said, e);
}

static int node_verbs(struct cli *c, const struct verb_opts *o, struct words args, const char *verb,
                      struct err *e)
{
    for (size_t i = 0; i < args.n; i++)
        if (node_verb(c, args.v[i], verb, o->reason, e) < 0)
            return -1;
    return 0;
}

static int run_drain(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    return node_verbs(c, opts_p, args, "drain", e);
}

static int run_resume(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    return node_verbs(c, opts_p, args, "resume", e);
}

static const struct opt verb_opts[] = {
    { "reason", OPT_TEXT, offsetof(struct verb_opts, reason), "TEXT", "why: kept in the audit", 0,
      0 },
    OPTS_COMMON(struct verb_opts),
};

const struct command command_drain = {
    .name = "drain",
    .args = "NODE...",
    .help = "start nothing more on a machine; what runs goes on",
    .group = GROUP_CLUSTER,
    .word = WORD_NODE,
    COMMAND_OPTS(verb_opts, struct verb_opts),
    .min_args = 1,
    .max_args = SIZE_MAX,
    .run = run_drain,
};

const struct command command_resume = {
    .name = "resume",
    .args = "NODE...",
    .help = "use a drained machine again",
    .group = GROUP_CLUSTER,
    .word = WORD_NODE,
    COMMAND_OPTS(verb_opts, struct verb_opts),
    .min_args = 1,
    .max_args = SIZE_MAX,
    .run = run_resume,
};
