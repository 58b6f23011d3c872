/* users: people, their roles on the site, the machines they own. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/lent.h"
#include "cli/text.h"
#include "cli/tty.h"
#include "cli/words.h"

#define PATH "/v1/users"

struct users_opts {
    struct common common;
    const char *role, *full_name, *mail, *kind;
};

#define AT(field) offsetof(struct users_opts, field)

static const struct opt opts[] = {
    { "role", OPT_CHOICE, AT(role), "admin|operator|viewer|none", "set: on the whole site", 0, 0 },
    { "full-name", OPT_TEXT, AT(full_name), "TEXT", "set: as people call them", 0, 0 },
    { "mail", OPT_TEXT, AT(mail), "TEXT", "set: where messages go", 0, 0 },
    { "kind", OPT_CHOICE, AT(kind), "local|pam|ldap|oidc|service|machine",
      "set: how they are known; service: a program", 0, 0 },
    OPTS_OUTPUT(struct users_opts),
    OPTS_COMMON(struct users_opts),
};
#undef AT

/* ---- looking ---- */

static const struct column columns[] = {
    { "USER", false, true },      { "ROLE", false, false },    { "KIND", false, false },
    { "TENANTS", false, true },   { "MACHINES", false, true }, { "SEEN", false, false },
    { "FULL NAME", false, true },
};

static void add_user(struct table *t, const struct json *x)
{
    AUTO(buf_free) struct buf tenants = BUF(1u << 16), machines = BUF(1u << 16);
    char when[24];
    bool off = field_bool(x, "disabled");
    words_add_pairs(&tenants, json_find(x, "tenants"));
    words_add(&machines, json_find(x, "machines"));
    table_add(t, field_str(x, "name"));
    if (off)
        table_add_tinted(t, STR("disabled"), TINT_BAD);
    else
        table_add(t, field_str(x, "role"));
    table_add(t, field_str(x, "kind"));
    table_add(t, tenants.n ? buf_str(&tenants) : STR("-"));
    table_add(t, machines.n ? buf_str(&machines) : STR("-"));
    table_addz(t, text_time(field_i64(x, "seen_ms", 0), when));
    table_add(t, field_str(x, "full_name"));
}

static int list_users(struct cli *c, const struct users_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(buf_free) struct buf names = BUF(8u << 20);
    if (cli_call(c, &(struct call){ .path = PATH }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    AUTO(table_free_p) struct table *t = table_new(columns, ARRAY_LEN(columns));
    const struct json *list = json_find(json_root(doc), "users");
    for (const struct json *x = json_is_array(list) ? json_first(list) : NULL; x;
         x = json_next(list, x)) {
        add_user(t, x);
        text_add_clean(&names, field_str(x, "name"));
        buf_addc(&names, '\n');
    }
    return form == OUT_NAME ? cli_print(&names, e) : cli_print_table(t, &o->common, e);
}

static void add_line(struct buf *b, const char *title, struct str text)
{
    if (text.n == 0)
        return;
    buf_printf(b, "%-11s", title);
    text_add_clean(b, text);
    buf_addc(b, '\n');
}

static void print_user(const struct json *x, struct buf *b)
{
    AUTO(buf_free)
    struct buf tenants = BUF(1u << 16), machines = BUF(1u << 16), groups = BUF(1u << 20);
    char when[24];
    words_add_pairs(&tenants, json_find(x, "tenants"));
    words_add(&machines, json_find(x, "machines"));
    words_add(&groups, json_find(x, "groups"));
    add_line(b, "user", field_str(x, "name"));
    add_line(b, "full name", field_str(x, "full_name"));
    add_line(b, "mail", field_str(x, "mail"));
    add_line(b, "kind", field_str(x, "kind"));
    add_line(b, "role", field_str(x, "role"));
    if (field_bool(x, "disabled"))
        add_line(b, "disabled", STR("yes: nothing lets them in"));
    add_line(b, "tenants", buf_str(&tenants));
    add_line(b, "groups", buf_str(&groups));
    add_line(b, "machines", buf_str(&machines));
    add_line(b, "seen", str_of(text_time(field_i64(x, "seen_ms", 0), when)));
}

/* ---- changing ---- */

static int change_user(struct cli *c, const struct users_opts *o, const char *name,
                       const struct buf *body, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048);
    if (lent_path(PATH, name, NULL, &path, e) < 0 || buf_check(body, e) < 0)
        return -1;
    struct call call = { .path = path.p };
    if (body->n)
        call = (struct call){ .method = "PUT", .path = path.p, .body = buf_str(body) };
    return cli_ask(c, &o->common, &call, print_user, e);
}

static int set_user(struct cli *c, const struct users_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(1u << 16);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    if (o->role)
        json_put_str(&w, "role", str_of(o->role));
    if (o->kind)
        json_put_str(&w, "kind", str_of(o->kind));
    if (o->full_name)
        json_put_str(&w, "full_name", str_of(o->full_name));
    if (o->mail)
        json_put_str(&w, "mail", str_of(o->mail));
    json_end(&w, '}');
    return change_user(c, o, name, &body, e);
}

static int disable_user(struct cli *c, const struct users_opts *o, const char *name, bool disable,
                        struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(64), path = BUF(2048);
    /* A name that nobody has is a typing error here, not a new user. */
    if (lent_path(PATH, name, NULL, &path, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *there = cli_get(c, path.p, e);
    if (!there)
        return -1;
    buf_addz(&body, disable ? "{\"disabled\":true}" : "{\"disabled\":false}");
    return change_user(c, o, name, &body, e);
}

static int remove_user(struct cli *c, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), said = BUF(2048);
    AUTO(answer_free) struct answer a = { 0 };
    if (lent_path(PATH, name, NULL, &path, e) < 0 ||
        cli_call(c, &(struct call){ .method = "DELETE", .path = path.p }, &a, e) < 0)
        return -1;
    text_add_clean(&said, str_of(name));
    buf_addz(&said, ": removed, with their tokens and places; what they ran stays\n");
    return cli_print(&said, e);
}

static int change_owner(struct cli *c, struct words args, struct err *e)
{
    bool own = strcmp(args.v[0], "own") == 0;
    for (size_t i = 2; i < args.n; i++) {
        AUTO(buf_free) struct buf path = BUF(2048), said = BUF(4096);
        AUTO(answer_free) struct answer a = { 0 };
        struct call call = { .method = own ? "PUT" : "DELETE" };
        if (lent_path("/v1/nodes", args.v[i], "owners", &path, e) < 0)
            return -1;
        path_add(&path, args.v[1]);
        call.path = path.p;
        if (buf_check(&path, e) < 0 || cli_call(c, &call, &a, e) < 0)
            return err_wrap(e, "%.60s", args.v[i]);
        text_add_clean(&said, str_of(args.v[1]));
        buf_addz(&said, own ? " owns " : " owns no more: ");
        text_add_clean(&said, str_of(args.v[i]));
        buf_addc(&said, '\n');
        if (cli_print(&said, e) < 0)
            return -1;
    }
    return 0;
}

/* One's own needs the old one, except on the machine itself as root. */
static int needs_old(struct cli *c, const char *name, bool *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *me = cli_get(c, "/v1/whoami", e);
    if (!me)
        return -1;
    bool root = str_is(field_str(json_root(me), "via"), "socket") &&
                str_is(field_str(json_root(me), "role"), "admin");
    *out = str_is(field_str(json_root(me), "user"), name) && !root;
    return 0;
}

static int set_password(struct cli *c, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), body = BUF(16 << 10);
    AUTO(answer_free) struct answer a = { 0 };
    struct json_out w = { .b = &body };
    char old[1025], new[1025], again[1025];
    bool ask_old = false;
    if (needs_old(c, name, &ask_old, e) < 0 ||
        (ask_old && tty_read_secret("old password", old, sizeof old, e) < 0) ||
        tty_read_secret("new password", new, sizeof new, e) < 0)
        return -1;
    if (isatty(STDIN_FILENO) &&
        (tty_read_secret("again", again, sizeof again, e) < 0 || strcmp(new, again) != 0))
        return err_set(e, ERR_INVALID, "the two are not the same: nothing was changed");
    json_begin(&w, NULL, '{');
    json_put_str(&w, "password", str_of(new));
    if (ask_old)
        json_put_str(&w, "old", str_of(old));
    json_end(&w, '}');
    explicit_bzero(old, sizeof old);
    explicit_bzero(new, sizeof new);
    explicit_bzero(again, sizeof again);
    struct call call = { .method = "POST", .body = buf_str(&body) };
    int rc = lent_path(PATH, name, "password", &path, e);
    call.path = path.p;
    rc = rc < 0 || buf_check(&body, e) < 0 ? -1 : cli_call(c, &call, &a, e);
    explicit_bzero(body.p, body.n);
    return rc < 0 ? -1 : cli_print_line("the password is set", e);
}

static int run_users(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct users_opts *o = opts_p;
    const char *verb = args.n ? args.v[0] : "list";
    AUTO(buf_free) struct buf nothing = BUF(16);
    if (strcmp(verb, "list") == 0 && args.n <= 1)
        return list_users(c, o, e);
    if (strcmp(verb, "show") == 0 && args.n == 2)
        return change_user(c, o, args.v[1], &nothing, e);
    if (strcmp(verb, "set") == 0 && args.n == 2)
        return set_user(c, o, args.v[1], e);
    if ((strcmp(verb, "disable") == 0 || strcmp(verb, "enable") == 0) && args.n == 2)
        return disable_user(c, o, args.v[1], verb[0] == 'd', e);
    if (strcmp(verb, "password") == 0 && args.n == 2)
        return set_password(c, args.v[1], e);
    if (strcmp(verb, "rm") == 0 && args.n == 2)
        return remove_user(c, args.v[1], e);
    if ((strcmp(verb, "own") == 0 || strcmp(verb, "disown") == 0) && args.n >= 3)
        return change_owner(c, args, e);
    err_set(e, ERR_INVALID,
            "users takes list, or show, set, password, disable, enable or rm with a NAME, or "
            "own or disown with a NAME and MACHINEs");
    return err_hint(e, "nightshift users set ada --role operator");
}

const struct command command_users = {
    .name = "users",
    .args = "[list | show NAME | set NAME | password NAME | disable NAME | enable NAME | rm NAME | "
            "own NAME "
            "MACHINE... | disown NAME MACHINE...]",
    .help = "people: their roles on the site, the machines they own",
    .more = "Roles in a tenant are said with: nightshift tenants add TENANT USER --role ROLE\n\n"
            "    nightshift users set ada --role operator --full-name 'Ada Lovelace'\n"
            "    nightshift users set ci --kind service\n"
            "    nightshift users own grace pc12         # she may take it back: drain pc12\n",
    .group = GROUP_PEOPLE,
    .word = WORD_USER,
    COMMAND_OPTS(opts, struct users_opts),
    .max_args = 256,
    .run = run_users,
};
