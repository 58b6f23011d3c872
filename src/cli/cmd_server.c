/* status, doctor: the server itself. */
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/here.h"
#include "cli/text.h"
#include "cli/words.h"
#include "sys/term.h"

struct plain_opts {
    struct common common;
};

static const struct opt plain_opts[] = {
    OPTS_OUTPUT(struct plain_opts),
    OPTS_COMMON(struct plain_opts),
};

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
    bool has_role = role.n && !str_is(role, "none");
    buf_printf(b, "%-9s%.*s%s%.*s%s\n%-9s", "you", STR_ARG(user), has_role ? " (" : "",
               has_role ? (int)role.n : 0, role.p, has_role ? ")" : "", "tenants");
    words_add_pairs(b, json_find(me, "roles"));
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

struct doctor_opts {
    struct common common;
    bool confirm_clock;
};

static const struct opt doctor_opts[] = {
    { "confirm-clock", OPT_FLAG, offsetof(struct doctor_opts, confirm_clock), NULL,
      "the server's clock is right, although it jumped: go by it, and remove what is old", 0, 0 },
    OPTS_OUTPUT(struct doctor_opts),
    OPTS_COMMON(struct doctor_opts),
};

static int run_doctor(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct doctor_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(answer_free) struct answer confirmed = { 0 };
    (void)args;
    if (o->confirm_clock &&
        cli_call(c, &(struct call){ .method = "POST", .path = "/v1/server/confirm-clock" },
                 &confirmed, e) < 0)
        return -1;
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
    COMMAND_OPTS(doctor_opts, struct doctor_opts),
    .run = run_doctor,
};
