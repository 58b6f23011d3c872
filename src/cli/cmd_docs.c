/* docs: tables of the server as pages. */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"

struct docs_opts {
    struct common common;
};

static const struct opt opts[] = {
    OPTS_OUTPUT(struct docs_opts),
    OPTS_COMMON(struct docs_opts),
};

#define ROLES_MAX 16

static void print_words(const struct json *list, struct buf *b)
{
    for (const struct json *x = json_is_array(list) ? json_first(list) : NULL; x;
         x = json_next(list, x)) {
        struct str name = field_str(x, "name");
        buf_printf(b, "    %-10.*s", STR_ARG(name));
        text_add_clean(b, field_str(x, "help"));
        buf_addc(b, '\n');
    }
}

static void add_call(struct table *t, const struct json *call, const struct json *roles)
{
    const struct json *reach = json_find(call, "reach");
    struct str method = field_str(call, "method"), path = field_str(call, "path");
    table_printf(t, "%.*s %.*s", STR_ARG(method), STR_ARG(path));
    for (const struct json *r = json_first(roles); r; r = json_next(roles, r)) {
        AUTO(arena_free) struct arena a = { 0 };
        struct str name = field_str(r, "name");
        struct str how = field_str(reach, arena_strndup(&a, name.p, name.n));
        table_add(t, how.n ? how : STR("-"));
    }
    table_add(t, field_bool(call, "public") ? STR("public") : field_str(call, "scope"));
}

static int print_permissions(const struct docs_opts *o, const struct json *root, struct err *e)
{
    const struct json *roles = json_find(root, "roles"), *calls = json_find(root, "calls");
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    struct column columns[ROLES_MAX + 2] = { { "CALL", false, false } };
    size_t n = 1;
    if (!json_is_array(roles) || json_len(roles) > ROLES_MAX)
        return err_set(e, ERR_INTERNAL, "the server's answer has no roles");
    for (const struct json *r = json_first(roles); r; r = json_next(roles, r)) {
        struct str name = field_str(r, "name");
        columns[n++].title = arena_strndup(&a, name.p, name.n);
    }
    columns[n++].title = "SCOPE";
    AUTO(table_free_p) struct table *t = table_new(columns, n);
    for (const struct json *x = json_is_array(calls) ? json_first(calls) : NULL; x;
         x = json_next(calls, x))
        add_call(t, x, roles);
    if (!o->common.no_headers) {
        buf_addz(&b, "roles:\n");
        print_words(roles, &b);
        buf_addz(&b, "\nhow far a role reaches:\n");
        print_words(json_find(root, "reaches"), &b);
        buf_addc(&b, '\n');
        if (cli_print(&b, e) < 0)
            return -1;
    }
    return cli_print_table(t, &o->common, e);
}

static int run_docs(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct docs_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    if (strcmp(args.v[0], "permissions") != 0) {
        err_set(e, ERR_NOT_FOUND, "there is no page '%s'", args.v[0]);
        return err_hint(e, "nightshift docs permissions; the rest: docs/ and man nightshift");
    }
    if (cli_call(c, &(struct call){ .path = "/v1/permissions" }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    return doc ? print_permissions(o, json_root(doc), e) : -1;
}

const struct command command_docs = {
    .name = "docs",
    .args = "permissions",
    .help = "who may do what: every call, role by role",
    .group = GROUP_OTHER,
    COMMAND_OPTS(opts, struct docs_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_docs,
};
