/* notices: what one is told by mail or webhook. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"

struct notice_opts {
    struct common common;
    const char *mail, *webhook, *log;
    struct opt_list on, off;
    bool new_secret;
};

static const struct opt notice_opts[] = {
    { "mail", OPT_TEXT, offsetof(struct notice_opts, mail), "ADDRESS",
      "set: where mail goes; me: the address that the server knows; off: no mail", 0, 0 },
    { "webhook", OPT_TEXT, offsetof(struct notice_opts, webhook), "URL",
      "set: where events are posted; off: nowhere", 0, 0 },
    { "on", OPT_LIST, offsetof(struct notice_opts, on), "KIND[:WAY]",
      "set: tell of this, by mail, webhook or both", 0, 0 },
    { "off", OPT_LIST, offsetof(struct notice_opts, off), "KIND[:WAY]", "set: do not", 0, 0 },
    { "log", OPT_TEXT, offsetof(struct notice_opts, log), "yes|no",
      "set: with the last lines of a job's output", 0, 0 },
    { "new-secret", OPT_FLAG, offsetof(struct notice_opts, new_secret), NULL,
      "set: a new secret for the webhook", 0, 0 },
    OPTS_OUTPUT(struct notice_opts),
    OPTS_COMMON(struct notice_opts),
};

static const struct column kind_columns[] = {
    { "KIND", false, false },
    { "MAIL", false, false },
    { "WEBHOOK", false, false },
    { "WHEN", false, true },
};

static const struct column log_columns[] = {
    { "TIME", false, false }, { "WAY", false, false },    { "STATE", false, false },
    { "TRIES", true, false }, { "SUBJECT", false, true }, { "WHY", false, true },
};

/* ---- show ---- */

static int print_kinds(struct str body, const struct notice_opts *o, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(body, e);
    if (!doc)
        return -1;
    const struct json *root = json_root(doc), *kinds = json_find(root, "kinds");
    const struct json *about = json_find(root, "about");
    struct str mail = field_str(root, "mail_address"), hook = field_str(root, "webhook");
    AUTO(buf_free) struct buf head = BUF(8192);
    AUTO(table_free_p) struct table *t = table_new(kind_columns, ARRAY_LEN(kind_columns));
    struct json_member m = { 0 };
    buf_printf(&head, "mail     %.*s\n", STR_ARG(mail.n ? mail : STR("off")));
    buf_printf(&head, "webhook  %.*s\n", STR_ARG(hook.n ? hook : STR("off")));
    while (json_is_object(kinds) && json_next_member(kinds, &m)) {
        table_add(t, m.key);
        table_addz(t, field_bool(m.value, "mail") ? "on" : "off");
        table_addz(t, field_bool(m.value, "webhook") ? "on" : "off");
        table_add(t, field_str(about, m.key.p));
    }
    if (cli_print_line(head.p, e) < 0)
        return -1;
    return cli_print_table(t, &o->common, e);
}

static int show(struct cli *c, const struct notice_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, &(struct call){ .path = "/v1/notices" }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    return print_kinds(buf_str(&a.body), o, e);
}

/* ---- set ---- */

static void put_place(struct json_out *w, const char *key, const char *value)
{
    if (!value)
        return;
    if (strcmp(value, "off") == 0)
        json_put_null(w, key);
    else
        json_put_str(w, key, str_of(value));
}

static bool in_list(const struct opt_list *l, struct str kind, size_t before)
{
    for (size_t i = 0; i < before; i++) {
        struct str k, way;
        str_cut(str_of(l->item[i]), ':', &k, &way);
        if (str_eq(k, kind))
            return true;
    }
    return false;
}

static bool names_way(const struct opt_list *l, struct str kind, const char *way)
{
    for (size_t i = 0; i < l->n; i++) {
        struct str name, of;
        str_cut(str_of(l->item[i]), ':', &name, &of);
        if (str_eq(name, kind) && (!of.n || str_is(of, way)))
            return true;
    }
    return false;
}

static void put_ways(struct json_out *w, const struct notice_opts *o, struct str kind)
{
    static const char *const ways[] = { "mail", "webhook" };
    for (size_t k = 0; k < ARRAY_LEN(ways); k++) {
        bool on = names_way(&o->on, kind, ways[k]);
        if (on || names_way(&o->off, kind, ways[k]))
            json_put_bool(w, ways[k], on);
    }
}

static int check_ways(const struct opt_list *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        struct str kind, way;
        if (str_cut(str_of(l->item[i]), ':', &kind, &way) && !str_is(way, "mail") &&
            !str_is(way, "webhook")) {
            err_set(e, ERR_INVALID, "'%.*s' is neither mail nor webhook", STR_ARG(way));
            return err_hint(e, "e.g. --off job_succeeded:mail");
        }
    }
    return 0;
}

static void put_kinds(struct json_out *w, const struct notice_opts *o, struct arena *a)
{
    const struct opt_list *lists[] = { &o->on, &o->off };
    json_begin(w, "kinds", '{');
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++) {
            struct str kind, way;
            str_cut(str_of(lists[l]->item[i]), ':', &kind, &way);
            if (in_list(lists[l], kind, i) || (l == 1 && in_list(&o->on, kind, o->on.n)))
                continue;
            json_begin(w, arena_strndup(a, kind.p, kind.n), '{');
            put_ways(w, o, kind);
            json_end(w, '}');
        }
    json_end(w, '}');
}

static int set(struct cli *c, const struct notice_opts *o, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(16384);
    AUTO(answer_free) struct answer a = { 0 };
    struct json_out w = { .b = &body };
    enum output form = cli_output(&o->common);
    if (check_ways(&o->on, e) < 0 || check_ways(&o->off, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    put_place(&w, "mail", o->mail);
    put_place(&w, "webhook", o->webhook);
    if (o->log)
        json_put_bool(&w, "log", strcmp(o->log, "no") != 0);
    if (o->new_secret)
        json_put_bool(&w, "new_secret", true);
    if (o->on.n || o->off.n)
        put_kinds(&w, o, &c->arena);
    json_end(&w, '}');
    struct call call = { .method = "PUT", .path = "/v1/notices", .body = buf_str(&body) };
    if (buf_check(&body, e) < 0 || cli_call(c, &call, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    struct str secret = doc ? field_str(json_root(doc), "secret") : STR("");
    if (!doc || print_kinds(buf_str(&a.body), o, e) < 0)
        return -1;
    if (!secret.n)
        return 0;
    cli_note(c, "the webhook's secret, by which a receiver knows us: it is shown this once");
    return cli_print_line(arena_strndup(&c->arena, secret.p, secret.n), e);
}

/* ---- test ---- */

static int try_way(struct cli *c, const char *way, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(256);
    AUTO(answer_free) struct answer a = { 0 };
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "way", str_of(way));
    json_end(&w, '}');
    struct call call = { .method = "POST", .path = "/v1/notices/test", .body = buf_str(&body) };
    if (cli_call(c, &call, &a, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    if (field_bool(json_root(doc), "ok"))
        return cli_print_line(arena_printf(&c->arena, "%s: it was taken", way), e);
    struct str why = field_str(json_root(doc), "error"), hint = field_str(json_root(doc), "hint");
    err_set(e, ERR_UNAVAILABLE, "%s: %.*s", way, STR_ARG(why));
    return err_hint(e, "%.*s", STR_ARG(hint));
}

/* Each that is set, or the one that is named. */
static int test(struct cli *c, const char *way, struct err *e)
{
    AUTO(answer_free) struct answer a = { 0 };
    if (way)
        return try_way(c, way, e);
    if (cli_call(c, &(struct call){ .path = "/v1/notices" }, &a, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    bool mail = field_known(json_root(doc), "mail"), hook = field_known(json_root(doc), "webhook");
    if (!mail && !hook) {
        err_set(e, ERR_CONFLICT, "neither mail nor a webhook is set");
        return err_hint(e, "nightshift notices set --mail you@lab.example");
    }
    int rc = mail ? try_way(c, "mail", e) : 0;
    return hook && rc == 0 ? try_way(c, "webhook", e) : rc;
}

/* ---- log ---- */

static int print_log(struct cli *c, const struct notice_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, &(struct call){ .path = "/v1/notices/log" }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    AUTO(table_free_p) struct table *t = table_new(log_columns, ARRAY_LEN(log_columns));
    const struct json *list = json_find(json_root(doc), "notices");
    for (const struct json *n = json_is_array(list) ? json_first(list) : NULL; n;
         n = json_next(list, n)) {
        char when[24];
        table_addz(t, text_time(field_i64(n, "made_ms", 0), when));
        table_add(t, field_str(n, "way"));
        table_add(t, field_str(n, "state"));
        table_printf(t, "%llu", (unsigned long long)field_u64(n, "tries"));
        table_add(t, field_str(n, "subject"));
        table_add(t, field_str(n, "why"));
    }
    return cli_print_table(t, &o->common, e);
}

static int run_notices(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const char *verb = args.n ? args.v[0] : "show";
    if (strcmp(verb, "show") == 0 && args.n <= 1)
        return show(c, opts_p, e);
    if (strcmp(verb, "set") == 0 && args.n == 1)
        return set(c, opts_p, e);
    if (strcmp(verb, "test") == 0)
        return test(c, args.n == 2 ? args.v[1] : NULL, e);
    if (strcmp(verb, "log") == 0 && args.n == 1)
        return print_log(c, opts_p, e);
    err_set(e, ERR_INVALID, "notices takes show, set, test [mail|webhook] or log");
    return err_hint(e, "nightshift notices set --mail you@lab.example");
}

const struct command command_notices = {
    .name = "notices",
    .args = "[show | set | test [mail|webhook] | log]",
    .help = "what you are told by mail or webhook",
    .more = "Nothing is sent until an address or a URL is set:\n"
            "  nightshift notices set --mail you@lab.example --off job_succeeded\n"
            "  nightshift notices test\n",
    .group = GROUP_PEOPLE,
    COMMAND_OPTS(notice_opts, struct notice_opts),
    .max_args = 2,
    .run = run_notices,
};
