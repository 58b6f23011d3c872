/* tenants: who shares the machines, what they may have, who is in them. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/lent.h"
#include "cli/text.h"
#include "cli/words.h"

#define PATH "/v1/tenants"

struct tenants_opts {
    struct common common;
    const char *help_text, *parent, *weight, *guarantee, *limit, *user_limit, *budget, *pools;
    const char *profiles, *priority, *stage, *expires, *role;
    struct opt_list model_limit, group;
};

#define AT(field) offsetof(struct tenants_opts, field)

static const struct opt opts[] = {
    { "parent", OPT_TEXT, AT(parent), "NAME", "set: the tenant it is a part of", 0, 0 },
    { "weight", OPT_TEXT, AT(weight), "N", "set: its part next to its siblings (1)", 0, 0 },
    { "guarantee", OPT_TEXT, AT(guarantee), "N", "set: GPUs that it comes first for", 0, 0 },
    { "limit", OPT_TEXT, AT(limit), "LIST", "set: at once: gpus=8,cpus=64,memory=512Gi,jobs=100", 0,
      0 },
    { "model-limit", OPT_LIST, AT(model_limit), "M=N", "set: GPUs of a model: H100=2", 0, 0 },
    { "user-limit", OPT_TEXT, AT(user_limit), "LIST", "set: at once, each of its users", 0, 0 },
    { "budget", OPT_TEXT, AT(budget), "N/PERIOD", "set: GPU-hours: 1000/month", 0, 0 },
    { "pools", OPT_TEXT, AT(pools), "LIST", "set: whose machines it uses; -: those in none", 0, 0 },
    { "profiles", OPT_TEXT, AT(profiles), "LIST", "set: its jobs take one of these", 0, 0 },
    { "priority", OPT_TEXT, AT(priority), "P", "set: the highest of its jobs", 0, 0 },
    { "stage", OPT_TEXT, AT(stage), "STAGE", "set: all, beta or alpha", 0, 0 },
    { "expires", OPT_TEXT, AT(expires), "DAY", "set: its last day: 2027-02-28", 0, 0 },
    { "group", OPT_LIST, AT(group), "G=ROLE", "set: a group whose people are in it", 0, 0 },
    { "help-text", OPT_TEXT, AT(help_text), "TEXT", "set: what it is, for people", 0, 0 },
    { "role", OPT_CHOICE, AT(role), "lead|member|viewer", "add: as what (member)", 0, 0 },
    OPTS_OUTPUT(struct tenants_opts),
    OPTS_COMMON(struct tenants_opts),
};
#undef AT

/* ---- the tree ---- */

static const struct column columns[] = {
    { "TENANT", false, true }, { "WEIGHT", true, false }, { "GUARANTEE", true, false },
    { "LIMIT", false, true },  { "BUDGET", false, true }, { "EXPIRES", false, false },
    { "ABOUT", false, true },
};

static void add_budget(struct buf *b, const struct json *spec)
{
    const struct json *budget = json_find(spec, "budget");
    if (!json_is_object(budget))
        return;
    struct str period = field_str(budget, "period");
    buf_printf(b, "%g GPU-hours/%.*s", field_f64(budget, "gpu_hours"), STR_ARG(period));
}

static void add_tenant(struct table *t, const struct json *x, unsigned depth)
{
    const struct json *spec = json_find(x, "spec");
    AUTO(buf_free) struct buf limit = BUF(1u << 16), budget = BUF(1024);
    struct str name = field_str(x, "name"), expires = field_str(spec, "expires");
    words_add_pairs(&limit, json_find(spec, "limit"));
    add_budget(&budget, spec);
    table_printf(t, "%*s%.*s", (int)depth * 2, "", STR_ARG(name));
    table_printf(t, "%g", field_known(spec, "weight") ? field_f64(spec, "weight") : 1.0);
    table_printf(t, field_known(spec, "guarantee") ? "%g" : "-", field_f64(spec, "guarantee"));
    table_add(t, limit.n ? buf_str(&limit) : STR("-"));
    table_add(t, budget.n ? buf_str(&budget) : STR("-"));
    table_add(t, expires.n ? (struct str){ expires.p, MIN(expires.n, (size_t)10) } : STR("-"));
    table_add(t, field_str(spec, "help"));
}

static bool is_listed(const struct json *list, struct str name)
{
    for (const struct json *x = json_first(list); x; x = json_next(list, x))
        if (str_eq(field_str(x, "name"), name))
            return true;
    return false;
}

/* Children under their parents; one whose parent is not for us to see stands at the top. */
static void add_below(struct table *t, const struct json *list, struct str parent, unsigned depth)
{
    for (const struct json *x = json_first(list); x && depth < 32; x = json_next(list, x)) {
        struct str up = field_str(json_find(x, "spec"), "parent");
        bool here = parent.n ? str_eq(up, parent) : up.n == 0 || !is_listed(list, up);
        if (!here)
            continue;
        add_tenant(t, x, depth);
        add_below(t, list, field_str(x, "name"), depth + 1);
    }
}

static int list_tenants(struct cli *c, const struct tenants_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(buf_free) struct buf names = BUF(8u << 20);
    if (cli_call(c, &(struct call){ .path = PATH }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    const struct json *list = doc ? json_find(json_root(doc), "tenants") : NULL;
    if (!doc)
        return -1;
    AUTO(table_free_p) struct table *t = table_new(columns, ARRAY_LEN(columns));
    if (json_is_array(list))
        add_below(t, list, STR(""), 0);
    for (const struct json *x = json_is_array(list) ? json_first(list) : NULL;
         x && form == OUT_NAME; x = json_next(list, x)) {
        text_add_clean(&names, field_str(x, "name"));
        buf_addc(&names, '\n');
    }
    return form == OUT_NAME ? cli_print(&names, e) : cli_print_table(t, &o->common, e);
}

/* ---- one of them ---- */

static void add_value(struct buf *b, const char *title, const struct json *v)
{
    AUTO(buf_free) struct buf text = BUF(1u << 20);
    struct err e;
    struct str s;
    if (json_is_object(v))
        words_add_pairs(&text, v);
    else if (json_is_array(v))
        words_add(&text, v);
    else if (json_is_string(v) && json_as_str(v, 4096, &s, &e) == 0)
        text_add_clean(&text, s);
    else if (json_is_number(v))
        words_add_number(&text, v);
    if (text.n)
        buf_printf(b, "%-12s%s\n", title, text.p);
}

static void print_members(const struct json *x, struct buf *b)
{
    const struct json *list = json_find(x, "members");
    const char *title = "members";
    for (const struct json *m = json_is_array(list) ? json_first(list) : NULL; m;
         m = json_next(list, m), title = "") {
        struct str role = field_str(m, "role"), by = field_str(m, "by");
        buf_printf(b, "%-12s", title);
        text_add_clean(b, field_str(m, "user"));
        buf_printf(b, " (%.*s%s%.*s)\n", STR_ARG(role), str_is(by, "said") ? "" : ", by ",
                   (int)(str_is(by, "said") ? 0 : by.n), by.p);
    }
}

static void print_tenant(const struct json *x, struct buf *b)
{
    static const char *const rows[] = { "help",       "parent",  "weight", "guarantee", "limit",
                                        "user_limit", "budget",  "pools",  "profiles",  "priority",
                                        "stage",      "expires", "groups" };
    const struct json *spec = json_find(x, "spec");
    add_value(b, "tenant", json_find(x, "name"));
    if (field_bool(x, "of_settings"))
        buf_printf(b, "%-12s%s\n", "owner", "the settings file");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        add_value(b, rows[i], json_find(spec, rows[i]));
    print_members(x, b);
}

static const struct column member_columns[] = {
    { "USER", false, true },
    { "ROLE", false, false },
    { "BY", false, true },
};

static int list_members(struct cli *c, const struct tenants_opts *o, const char *name,
                        struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048);
    AUTO(table_free_p) struct table *t = table_new(member_columns, ARRAY_LEN(member_columns));
    if (lent_path(PATH, name, NULL, &path, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = cli_get(c, path.p, e);
    if (!doc)
        return -1;
    const struct json *list = json_find(json_root(doc), "members");
    for (const struct json *m = json_is_array(list) ? json_first(list) : NULL; m;
         m = json_next(list, m)) {
        table_add(t, field_str(m, "user"));
        table_add(t, field_str(m, "role"));
        table_add(t, field_str(m, "by"));
    }
    return cli_print_table(t, &o->common, e);
}

static int show_tenant(struct cli *c, const struct tenants_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048);
    if (lent_path(PATH, name, NULL, &path, e) < 0)
        return -1;
    return cli_ask(c, &o->common, &(struct call){ .path = path.p }, print_tenant, e);
}

/* ---- changing ---- */

static int put_budget(struct json_out *w, const char *text, struct err *e)
{
    struct str hours, period;
    if (!text)
        return 0;
    if (!text[0]) {
        json_put_null(w, "budget");
        return 0;
    }
    bool has = str_cut(str_of(text), '/', &hours, &period);
    AUTO(arena_free) struct arena a = { 0 };
    json_begin(w, "budget", '{');
    if (words_put_number(w, "gpu_hours", arena_strndup(&a, hours.p, hours.n), e) < 0) {
        err_set(e, ERR_INVALID, "--budget: '%.60s' is not a number of GPU-hours in a period", text);
        return err_hint(e, "e.g. --budget 1000/month; day, week, month, quarter, year or once");
    }
    if (has)
        json_put_str(w, "period", period);
    json_end(w, '}');
    return 0;
}

static int put_limit(struct json_out *w, const struct tenants_opts *o, struct err *e)
{
    if (!o->limit && o->model_limit.n == 0)
        return 0;
    if (o->limit && !o->limit[0] && o->model_limit.n == 0) {
        json_put_null(w, "limit");
        return 0;
    }
    json_begin(w, "limit", '{');
    if (o->limit && words_put_pairs(w, "limit", o->limit, e) < 0)
        return -1;
    if (o->model_limit.n)
        json_begin(w, "gpus_by_model", '{');
    for (size_t i = 0; i < o->model_limit.n; i++)
        if (words_put_pairs(w, "model-limit", o->model_limit.item[i], e) < 0)
            return -1;
    if (o->model_limit.n)
        json_end(w, '}');
    json_end(w, '}');
    return 0;
}

static int put_object(struct json_out *w, const char *key, const char *option,
                      const char *const *item, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (n == 1 && !item[0][0]) {
        json_put_null(w, key);
        return 0;
    }
    json_begin(w, key, '{');
    for (size_t i = 0; i < n; i++)
        if (words_put_pairs(w, option, item[i], e) < 0)
            return -1;
    json_end(w, '}');
    return 0;
}

static int put_change(const struct tenants_opts *o, struct json_out *w, struct err *e)
{
    const char *user_limit[] = { o->user_limit };
    words_put_text(w, "help", o->help_text);
    words_put_text(w, "parent", o->parent);
    words_put_text(w, "priority", o->priority);
    words_put_text(w, "stage", o->stage);
    words_put_text(w, "expires", o->expires);
    words_put_list(w, "pools", o->pools);
    words_put_list(w, "profiles", o->profiles);
    if (words_put_number(w, "weight", o->weight, e) < 0 ||
        words_put_number(w, "guarantee", o->guarantee, e) < 0 || put_limit(w, o, e) < 0 ||
        put_object(w, "user_limit", "user-limit", user_limit, o->user_limit ? 1 : 0, e) < 0 ||
        put_object(w, "groups", "group", o->group.item, o->group.n, e) < 0)
        return -1;
    return put_budget(w, o->budget, e);
}

static int set_tenant(struct cli *c, const struct tenants_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), body = BUF(2u << 20);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    if (put_change(o, &w, e) < 0)
        return -1;
    json_end(&w, '}');
    if (lent_path(PATH, name, NULL, &path, e) < 0 || buf_check(&body, e) < 0)
        return -1;
    return cli_ask(c, &o->common,
                   &(struct call){ .method = "PUT", .path = path.p, .body = buf_str(&body) },
                   print_tenant, e);
}

static int remove_tenant(struct cli *c, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), said = BUF(2048);
    AUTO(answer_free) struct answer a = { 0 };
    if (lent_path(PATH, name, NULL, &path, e) < 0 ||
        cli_call(c, &(struct call){ .method = "DELETE", .path = path.p }, &a, e) < 0)
        return -1;
    text_add_clean(&said, str_of(name));
    buf_addz(&said, ": removed\n");
    return cli_print(&said, e);
}

/* One call each: those before one that is refused are done, and said. */
static int change_members(struct cli *c, const struct tenants_opts *o, struct words args,
                          struct err *e)
{
    bool add = strcmp(args.v[0], "add") == 0;
    AUTO(buf_free) struct buf body = BUF(256);
    buf_printf(&body, "{\"role\":\"%s\"}", o->role ? o->role : "member");
    for (size_t i = 2; i < args.n; i++) {
        AUTO(buf_free) struct buf path = BUF(2048), said = BUF(4096);
        AUTO(answer_free) struct answer a = { 0 };
        struct call call = { .method = add ? "PUT" : "DELETE",
                             .body = add ? buf_str(&body) : STR("") };
        if (lent_path(PATH, args.v[1], "members", &path, e) < 0)
            return -1;
        path_add(&path, args.v[i]);
        call.path = path.p;
        if (buf_check(&path, e) < 0 || cli_call(c, &call, &a, e) < 0)
            return err_wrap(e, "%.60s", args.v[i]);
        text_add_clean(&said, str_of(args.v[i]));
        buf_printf(&said, add ? ": %s of " : ": no more in ", o->role ? o->role : "member");
        text_add_clean(&said, str_of(args.v[1]));
        buf_addc(&said, '\n');
        if (cli_print(&said, e) < 0)
            return -1;
    }
    return 0;
}

/* Where one's own jobs go that name no tenant: told, or chosen. */
static int default_tenant(struct cli *c, struct words args, struct err *e)
{
    AUTO(buf_free) struct buf said = BUF(2048), body = BUF(1024);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct json_out w = { .b = &body };
    struct str name = str_of(args.n == 2 ? args.v[1] : "");
    if (args.n == 2) {
        json_begin(&w, NULL, '{');
        json_put_str(&w, "tenant", name);
        json_end(&w, '}');
        if (buf_check(&body, e) < 0 ||
            cli_call(c,
                     &(struct call){
                         .method = "PUT", .path = "/v1/whoami/tenant", .body = buf_str(&body) },
                     &a, e) < 0)
            return -1;
    } else {
        doc = cli_get(c, "/v1/whoami", e);
        if (!doc)
            return -1;
        name = field_str(json_root(doc), "default_tenant");
    }
    text_add_clean(&said, name);
    buf_addz(&said, name.n ? ": jobs that name no tenant are for it\n"
                           : "not chosen: a job names its tenant, unless you are in one only\n");
    return cli_print(&said, e);
}

static int run_tenants(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct tenants_opts *o = opts_p;
    const char *verb = args.n ? args.v[0] : "list";
    if (strcmp(verb, "list") == 0 && args.n <= 1)
        return list_tenants(c, o, e);
    if (strcmp(verb, "show") == 0 && args.n == 2)
        return show_tenant(c, o, args.v[1], e);
    if (strcmp(verb, "members") == 0 && args.n == 2)
        return list_members(c, o, args.v[1], e);
    if (strcmp(verb, "set") == 0 && args.n == 2)
        return set_tenant(c, o, args.v[1], e);
    if (strcmp(verb, "rm") == 0 && args.n == 2)
        return remove_tenant(c, args.v[1], e);
    if (strcmp(verb, "default") == 0 && args.n <= 2)
        return default_tenant(c, args, e);
    if ((strcmp(verb, "add") == 0 || strcmp(verb, "remove") == 0) && args.n >= 3)
        return change_members(c, o, args, e);
    err_set(e, ERR_INVALID,
            "tenants takes list, default, or show, members, set, rm or default with a NAME, or add "
            "or remove with a NAME and USERs");
    return err_hint(e, "nightshift tenants add vision ada grace --role lead");
}

const struct command command_tenants = {
    .name = "tenants",
    .args =
        "[list | show NAME | members NAME | set NAME | rm NAME | add NAME USER... | remove NAME "
        "USER... | default [NAME]]",
    .help = "who shares the machines, what they may have, who is in them",
    .more = "An empty value is as if it had never been said: --parent '', --limit memory=.\n\n"
            "    nightshift tenants set ml --weight 2 --guarantee 4\n"
            "    nightshift tenants set course --parent ml --limit gpus=8,memory=512Gi \\\n"
            "        --model-limit H100=2 --user-limit gpus=1 --budget 1000/month \\\n"
            "        --expires 2027-02-28 --group ml-staff=lead\n"
            "    nightshift tenants add course ada --role lead\n"
            "    nightshift tenants default ml      where my jobs go that name no tenant\n",
    .group = GROUP_PEOPLE,
    .word = WORD_TENANT,
    COMMAND_OPTS(opts, struct tenants_opts),
    .max_args = 256,
    .run = run_tenants,
};
