/* quota: who may have how much, and has. */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"

struct quota_opts {
    struct common common;
    bool users;
};

static const struct opt quota_opts[] = {
    { "users", OPT_FLAG, offsetof(struct quota_opts, users), NULL, "with a line for each user", 0,
      0 },
    OPTS_OUTPUT(struct quota_opts),
    OPTS_COMMON(struct quota_opts),
};

/* The last three with -o wide. */
static const struct column quota_columns[] = {
    { "TENANT", false, true },    { "WEIGHT", true, false },    { "SHARE", true, false },
    { "GUARANTEE", true, false }, { "GPUS", true, false },      { "CPUS", true, false },
    { "MEM", true, false },       { "JOBS", true, false },      { "WAITING", true, false },
    { "BUDGET", true, false },    { "NOTEBOOKS", true, false }, { "STORAGE", true, false },
    { "MODELS", false, true },
};
#define QUOTA_NARROW (ARRAY_LEN(quota_columns) - 3)

/* "1.5", or "1.5/6" where there is a limit. */
static void add_used(struct table *t, const struct json *used, const struct json *limit,
                     const char *key)
{
    double have = json_is_object(used) ? field_f64(used, key) : 0;
    bool bounded = json_is_object(limit) && field_known(limit, key);
    if (bounded)
        table_printf(t, "%g/%g", have, field_f64(limit, key));
    else
        table_printf(t, "%g", have);
}

static void add_size(struct table *t, const struct json *used, const struct json *limit,
                     const char *key)
{
    char a[24], b[24];
    text_mib(json_is_object(used) ? field_u64(used, key) : 0, a);
    if (json_is_object(limit) && field_known(limit, key))
        table_printf(t, "%s/%s", a, text_mib(field_u64(limit, key), b));
    else
        table_addz(t, a);
}

/* GPU-hours of this period. */
static void add_budget(struct table *t, const struct json *v)
{
    const struct json *b = json_find(v, "budget");
    if (json_is_object(b))
        table_printf(t, "%.6g/%.6gh", field_f64(b, "used_gpu_hours"), field_f64(b, "gpu_hours"));
    else
        table_addz(t, "-");
}

/* "H100 1/2, A100 0/4" */
static void add_models(struct table *t, const struct json *v)
{
    AUTO(buf_free) struct buf text = BUF(1u << 16);
    const struct json *list = json_find(v, "models");
    for (const struct json *m = json_is_array(list) ? json_first(list) : NULL; m;
         m = json_next(list, m)) {
        struct str models = field_str(m, "models");
        buf_printf(&text, "%s%.*s %g/%g", text.n ? ", " : "", STR_ARG(models), field_f64(m, "used"),
                   field_f64(m, "limit"));
    }
    table_add(t, text.n ? buf_str(&text) : STR("-"));
}

static void add_share(struct table *t, const struct json *v, const char *indent, bool wide)
{
    const struct json *used = json_find(v, "used"), *limit = json_find(v, "limit");
    struct str name = field_str(v, "name");
    table_printf(t, "%s%.*s", indent, STR_ARG(name));
    table_printf(t, field_known(v, "weight") ? "%g" : "-", field_f64(v, "weight"));
    if (field_known(v, "share"))
        table_printf(t, "%.0f%%", field_f64(v, "share") * 100);
    else
        table_addz(t, "-");
    table_printf(t, field_known(v, "guarantee") ? "%g" : "-", field_f64(v, "guarantee"));
    add_used(t, used, limit, "gpus");
    add_used(t, used, limit, "cpus");
    add_size(t, used, limit, "memory_mib");
    add_used(t, used, limit, "jobs");
    if (field_known(v, "waiting"))
        table_printf(t, "%llu", (unsigned long long)field_u64(v, "waiting"));
    else
        table_addz(t, "-");
    add_budget(t, v);
    if (!wide)
        return;
    add_used(t, used, limit, "notebooks");
    add_size(t, used, limit, "storage_mib");
    add_models(t, v);
}

static int print_quota(const struct quota_opts *o, const struct json *tenants, struct err *e)
{
    bool wide = cli_output(&o->common) == OUT_WIDE;
    AUTO(table_free_p)
    struct table *t = table_new(quota_columns, wide ? ARRAY_LEN(quota_columns) : QUOTA_NARROW);
    for (const struct json *v = json_is_array(tenants) ? json_first(tenants) : NULL; v;
         v = json_next(tenants, v)) {
        add_share(t, v, "", wide);
        const struct json *users = json_find(v, "users");
        for (const struct json *u = o->users && json_is_array(users) ? json_first(users) : NULL; u;
             u = json_next(users, u))
            add_share(t, u, "  ", wide);
    }
    return cli_print_table(t, &o->common, e);
}

static int run_quota(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct quota_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    (void)args;
    if (cli_call(c, &(struct call){ .path = "/v1/quota" }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    return doc ? print_quota(o, json_find(json_root(doc), "tenants"), e) : -1;
}

const struct command command_quota = {
    .name = "quota",
    .args = "",
    .help = "shares, guarantees and limits of the groups, and what they use",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(quota_opts, struct quota_opts),
    .run = run_quota,
};
