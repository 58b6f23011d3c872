/* status, doctor, tokens: the server itself. */
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/here.h"
#include "cli/text.h"
#include "sys/term.h"

struct plain_opts {
    struct common common;
};

static const struct opt plain_opts[] = {
    OPTS_OUTPUT(struct plain_opts),
    OPTS_COMMON(struct plain_opts),
};

static void add_list(struct buf *b, const struct json *list)
{
    struct err e;
    struct str s;
    const char *comma = "";
    for (const struct json *i = json_is_array(list) ? json_first(list) : NULL; i;
         i = json_next(list, i), comma = ", ") {
        if (json_as_str(i, 4096, &s, &e) < 0)
            continue;
        buf_addz(b, comma);
        text_add_clean(b, s);
    }
}

static void add_line(struct buf *b, const char *title, struct str text)
{
    if (text.n == 0)
        return;
    buf_printf(b, "%-9s", title);
    text_add_clean(b, text);
    buf_addc(b, '\n');
}

/* Those that somebody changed; times as people write them. */
static void add_policy(struct buf *b, const struct json *policy)
{
    AUTO(buf_free) struct buf changed = BUF(1u << 16);
    for (const struct json *k = json_is_array(policy) ? json_first(policy) : NULL; k;
         k = json_next(policy, k)) {
        struct str name = field_str(k, "name"), unit = STR("_ms");
        int64_t value = field_i64(k, "value", 0);
        char text[32];
        if (value == field_i64(k, "default", 0))
            continue;
        bool is_time = name.n > unit.n && memcmp(name.p + name.n - unit.n, unit.p, unit.n) == 0;
        name.n -= is_time ? unit.n : 0;
        if (!is_time)
            snprintf(text, sizeof text, "%lld", (long long)value);
        buf_printf(&changed, "%s%.*s %s", changed.n ? ", " : "", STR_ARG(name),
                   is_time ? format_duration_ms(value, text) : text);
    }
    add_line(b, "policy", buf_str(&changed));
}

static void print_status(struct cli *c, const struct json *server, const struct json *me,
                         struct buf *b)
{
    char up[24];
    int64_t started = field_i64(server, "started_ms", 0);
    struct str engine = field_str(server, "engine"), mode = field_str(server, "mode");
    add_line(b, "server", str_of(client_address(c->client)->text));
    add_line(b, "version", field_str(server, "version"));
    add_line(b, "node", field_str(server, "node"));
    buf_printf(b, "%-9s%.*s%s%.*s\n", "engine", STR_ARG(engine), mode.n ? ", " : "", STR_ARG(mode));
    if (started)
        add_line(b, "up", str_of(text_duration(cli_now_ms() - started, up)));
    if (field_bool(server, "simulated"))
        add_line(b, "GPUs", STR("simulated"));
    add_line(b, "note", field_str(server, "message"));
    add_policy(b, json_find(server, "policy"));
    struct str user = field_str(me, "user"), role = field_str(me, "role");
    buf_printf(b, "%-9s%.*s (%.*s)\n%-9s", "you", STR_ARG(user), STR_ARG(role), "tenants");
    add_list(b, json_find(me, "tenants"));
    buf_addc(b, '\n');
}

static int run_status(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct plain_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    (void)args;
    AUTO(json_free_p) struct json_doc *server = cli_get(c, "/v1/server", e);
    if (!server)
        return -1;
    AUTO(json_free_p) struct json_doc *me = cli_get(c, "/v1/whoami", e);
    if (!me)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML) {
        struct json_out w = { .b = &b };
        json_begin(&w, NULL, '{');
        json_put(&w, "server", json_root(server));
        json_put(&w, "whoami", json_root(me));
        json_end(&w, '}');
        return cli_print_raw(buf_str(&b), form, e);
    }
    print_status(c, json_root(server), json_root(me), &b);
    return cli_print(&b, e);
}

const struct command command_status = {
    .name = "status",
    .args = "",
    .help = "which server this is, and who you are to it",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(plain_opts, struct plain_opts),
    .run = run_status,
};

/* ---- doctor ---- */

struct check {
    const struct json *ok; /* true, false, null: cannot be told */
    struct str name, found, fix;
};

static void print_check(struct buf *b, const struct check *c, int verdict)
{
    const struct {
        const char *sign;
        enum tint tint;
    } signs[] = { { text_mark(MARK_BAD), TINT_BAD },
                  { text_mark(MARK_GOOD), TINT_GOOD },
                  { "-", TINT_FAINT } };
    bool colour = term_colour(STDOUT_FILENO);
    buf_printf(b, "%s%s%s ", colour ? tint_begin(signs[verdict].tint) : "", signs[verdict].sign,
               colour ? TINT_END : "");
    text_add_clean(b, c->name);
    buf_addz(b, c->found.n ? ": " : "");
    text_add_clean(b, c->found);
    buf_addc(b, '\n');
    if (verdict == 0 && c->fix.n) {
        buf_addz(b, "    fix: ");
        text_add_clean(b, c->fix);
        buf_addc(b, '\n');
    }
}

static size_t print_checks(const struct json *checks, struct buf *b)
{
    size_t failed = 0;
    for (const struct json *k = json_is_array(checks) ? json_first(checks) : NULL; k;
         k = json_next(checks, k)) {
        struct check c = { json_find(k, "ok"), field_str(k, "name"), field_str(k, "found"),
                           field_str(k, "fix") };
        int verdict = json_kind(c.ok) != JSON_BOOL ? 2 : field_bool(k, "ok") ? 1 : 0;
        failed += verdict == 0;
        print_check(b, &c, verdict);
    }
    return failed;
}

/* What can be told from this side: does the server answer, and as whom? */
static size_t print_own_checks(struct cli *c, struct buf *b)
{
    struct err why = { 0 };
    struct client *client = cli_client(c, &why);
    AUTO(json_free_p) struct json_doc *me = client ? cli_get(c, "/v1/whoami", &why) : NULL;
    struct check reach = { .name = STR("the server can be reached"),
                           .found = client ? str_of(client_address(client)->text) : STR("") };
    if (!me) {
        reach.found = str_of(why.msg);
        reach.fix = str_of(why.hint);
    }
    print_check(b, &reach, me ? 1 : 0);
    if (me)
        print_check(b,
                    &(struct check){ .name = STR("it knows you"),
                                     .found = field_str(json_root(me), "user") },
                    1);
    return me ? 0 : 1;
}

static int run_doctor(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct plain_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    AUTO(answer_free) struct answer a = { 0 };
    (void)args;
    if (form == OUT_JSON || form == OUT_YAML) {
        if (cli_call(c, &(struct call){ .path = "/v1/doctor" }, &a, e) < 0)
            return -1;
        return cli_print_raw(buf_str(&a.body), form, e);
    }
    size_t failed = print_own_checks(c, &b);
    if (failed == 0) {
        AUTO(json_free_p) struct json_doc *doc = cli_get(c, "/v1/doctor", e);
        if (!doc && e->code != ERR_DENIED)
            return -1;
        if (doc)
            failed += print_checks(json_find(json_root(doc), "checks"), &b);
        else
            print_check(&b, &(struct check){ .name = STR("the rest is for administrators") }, 2);
    } else { /* no server: what its program says of this machine */
        AUTO(json_free_p) struct json_doc *doc = here_check(e);
        if (doc)
            failed += print_checks(json_find(json_root(doc), "checks"), &b);
        else
            print_check(&b, &(struct check){ .name = STR("this machine"), .found = str_of(e->msg) },
                        2);
    }
    buf_printf(&b, failed ? "\n%zu to fix\n" : "\nall is well\n", failed);
    c->exit_code = failed ? 1 : 0;
    return cli_print(&b, e);
}

const struct command command_doctor = {
    .name = "doctor",
    .args = "",
    .help = "is everything in order here, and how to fix what is not",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(plain_opts, struct plain_opts),
    .run = run_doctor,
};

/* ---- tokens ---- */

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
        add_list(&scopes, json_find(k, "scopes"));
        table_add(t, field_str(k, "user"));
        table_add(t, buf_str(&scopes));
        table_addz(t, text_time(field_i64(k, "created_ms", 0), when));
        table_addz(t, text_time(field_i64(k, "expires_ms", 0), when));
    }
    return cli_print_table(t, &o->common, e);
}

/* "a,b" as a list */
static void put_words(struct json_out *w, const char *key, const char *text)
{
    struct str rest = str_of(text ? text : ""), word;
    if (!text)
        return;
    json_begin(w, key, '[');
    while (rest.n) {
        str_cut(rest, ',', &word, &rest);
        json_put_str(w, NULL, str_trim(word));
    }
    json_end(w, ']');
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
    put_words(&w, "scopes", o->scopes);
    put_words(&w, "tenants", o->tenants);
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
    .group = GROUP_OTHER,
    COMMAND_OPTS(token_opts, struct token_opts),
    .max_args = 2,
    .run = run_tokens,
};
