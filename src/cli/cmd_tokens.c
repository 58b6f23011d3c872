/* tokens: keys for programs and for other machines. */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"
#include "cli/words.h"

struct token_opts {
    struct common common;
    const char *user, *expires, *scopes, *tenants;
};

static const struct opt token_opts[] = {
    { "user", OPT_TEXT, offsetof(struct token_opts, user), "NAME", "for this user (admins)", 0, 0 },
    { "expires", OPT_TEXT, offsetof(struct token_opts, expires), "TIME", "30d, or never (a year)",
      0, 0 },
    { "scopes", OPT_TEXT, offsetof(struct token_opts, scopes), "LIST",
      "what it may be used for: read, jobs, manage (read,jobs)", 0, 0 },
    { "tenants", OPT_TEXT, offsetof(struct token_opts, tenants), "LIST",
      "good for these only (all of yours)", 0, 0 },
    OPTS_OUTPUT(struct token_opts),
    OPTS_COMMON(struct token_opts),
};

static const struct column token_columns[] = {
    { "NAME", false, true },     { "USER", false, false },    { "SCOPES", false, false },
    { "CREATED", false, false }, { "EXPIRES", false, false },
};

static int list_tokens(struct cli *c, const struct token_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, &(struct call){ .path = "/v1/tokens" }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    AUTO(table_free_p) struct table *t = table_new(token_columns, ARRAY_LEN(token_columns));
    const struct json *list = json_find(json_root(doc), "tokens");
    for (const struct json *k = json_is_array(list) ? json_first(list) : NULL; k;
         k = json_next(list, k)) {
        char when[24];
        table_add(t, field_str(k, "name"));
        AUTO(buf_free) struct buf scopes = BUF(1024);
        words_add(&scopes, json_find(k, "scopes"));
        table_add(t, field_str(k, "user"));
        table_add(t, buf_str(&scopes));
        table_addz(t, text_time(field_i64(k, "created_ms", 0), when));
        table_addz(t, text_time(field_i64(k, "expires_ms", 0), when));
    }
    return cli_print_table(t, &o->common, e);
}

static int create_token(struct cli *c, const struct token_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(8192);
    AUTO(answer_free) struct answer a = { 0 };
    struct json_out w = { .b = &body };
    struct str token;
    enum output form = cli_output(&o->common);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", str_of(name));
    if (o->user)
        json_put_str(&w, "user", str_of(o->user));
    if (o->expires)
        json_put_str(&w, "expires", str_of(o->expires));
    words_put_list(&w, "scopes", o->scopes);
    words_put_list(&w, "tenants", o->tenants);
    json_end(&w, '}');
    struct call call = { .method = "POST", .path = "/v1/tokens", .body = buf_str(&body) };
    if (buf_check(&body, e) < 0 || cli_call(c, &call, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc || json_need_str(json_root(doc), "token", 4096, &token, e) < 0)
        return -1;
    cli_note(c, "keep it: it is shown this once");
    return cli_print_line(arena_strndup(&c->arena, token.p, token.n), e);
}

static int delete_token(struct cli *c, const struct token_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048);
    AUTO(answer_free) struct answer a = { 0 };
    buf_addz(&path, "/v1/tokens");
    path_add(&path, name);
    if (o->user)
        query_add(&path, "user", o->user);
    if (buf_check(&path, e) < 0)
        return -1;
    if (cli_call(c, &(struct call){ .method = "DELETE", .path = path.p }, &a, e) < 0)
        return -1;
    return cli_print_line("deleted", e);
}

static int run_tokens(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const char *verb = args.n ? args.v[0] : "list";
    if (strcmp(verb, "list") == 0 && args.n <= 1)
        return list_tokens(c, opts_p, e);
    if (strcmp(verb, "create") == 0 && args.n == 2)
        return create_token(c, opts_p, args.v[1], e);
    if (strcmp(verb, "delete") == 0 && args.n == 2)
        return delete_token(c, opts_p, args.v[1], e);
    err_set(e, ERR_INVALID, "tokens takes list, create NAME or delete NAME");
    return err_hint(e, "nightshift tokens create laptop --expires 30d");
}

const struct command command_tokens = {
    .name = "tokens",
    .args = "[list | create NAME | delete NAME]",
    .help = "keys for using the server over the network",
    .more = "A token goes into NIGHTSHIFT_TOKEN, the server's address into NIGHTSHIFT_SERVER.\n",
    .group = GROUP_PEOPLE,
    COMMAND_OPTS(token_opts, struct token_opts),
    .max_args = 2,
    .run = run_tokens,
};
