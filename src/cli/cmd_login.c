/* login, logout: a token for this command line, by way of a browser. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/keyring.h"
#include "cli/text.h"

struct login_opts {
    struct common common;
    const char *name;
    bool manage, provider;
};

static const struct opt login_opts[] = {
    { "name", OPT_TEXT, offsetof(struct login_opts, name), "TEXT",
      "what this machine is called there (its own name)", 0, 0 },
    { "manage", OPT_FLAG, offsetof(struct login_opts, manage), NULL,
      "the token may also change tenants, people, machines: what you may", 0, 0 },
    { "provider", OPT_FLAG, offsetof(struct login_opts, provider), NULL,
      "say yes at the identity provider, not on the server's page", 0, 0 },
    OPTS_COMMON(struct login_opts),
};

static struct json_doc *begin(struct cli *c, const struct login_opts *o, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(1024);
    struct json_out w = { .b = &body };
    char host[41] = "";
    if (gethostname(host, sizeof host - 1) < 0)
        snprintf(host, sizeof host, "a machine");
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", str_of(o->name ? o->name : host));
    json_put_bool(&w, "manage", o->manage);
    json_put_bool(&w, "provider", o->provider);
    json_end(&w, '}');
    return cli_post(c, "/v1/login", buf_str(&body), e);
}

static void wait_s(int64_t s)
{
    struct timespec t = { .tv_sec = s };
    nanosleep(&t, NULL);
}

/* Asks until somebody said yes; the answer has the token then. */
static struct json_doc *await_yes(struct cli *c, const struct json *begun, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(1024);
    struct json_out w = { .b = &body };
    int64_t interval = MAX(field_i64(begun, "interval", 5), INT64_C(1));
    int64_t until_ms = cli_now_ms() + field_i64(begun, "expires_in", 600) * 1000;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "device_code", field_str(begun, "device_code"));
    json_end(&w, '}');
    while (cli_now_ms() < until_ms) {
        wait_s(interval);
        struct json_doc *d = cli_post(c, "/v1/login/poll", buf_str(&body), e);
        if (!d)
            return NULL;
        struct str state = field_str(json_root(d), "state");
        if (str_is(state, "done"))
            return d;
        interval += str_is(state, "slow_down") ? 5 : 0;
        json_free(d);
    }
    err_set(e, ERR_UNAVAILABLE, "nobody said yes in time");
    err_hint(e, "run it again; the code is good for ten minutes");
    return NULL;
}

static int run_login(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct login_opts *o = opts_p;
    AUTO(buf_free) struct buf said = BUF(8192);
    if (args.n)
        c->server = args.v[0];
    c->fresh = true; /* a token of before must not stand in the way */
    struct client *client = cli_client(c, e);
    if (!client)
        return -1;
    const char *server = client_address(client)->text;
    if (client_address(client)->kind == ADDRESS_UNIX) {
        err_set(e, ERR_INVALID,
                "on this machine you are known by your account: nothing to sign in to");
        return err_hint(e, "for another server: nightshift login https://HOST");
    }
    AUTO(json_free_p) struct json_doc *begun = begin(c, o, e);
    if (!begun)
        return -1;
    buf_addz(&said, "Open this page and say yes:\n\n    ");
    text_add_clean(&said, field_str(json_root(begun), "verification_uri_complete"));
    buf_addz(&said, "\n\nIt shows the code ");
    text_add_clean(&said, field_str(json_root(begun), "user_code"));
    buf_addz(&said, ".  Waiting; Ctrl-C ends it.\n");
    if (cli_print(&said, e) < 0)
        return -1;
    fflush(stdout);
    AUTO(json_free_p) struct json_doc *done = await_yes(c, json_root(begun), e);
    if (!done)
        return -1;
    struct str token = field_str(json_root(done), "token"),
               user = field_str(json_root(done), "user");
    struct keyring_entry k = { .server = server,
                               .token = arena_strndup(&c->arena, token.p, token.n),
                               .user = arena_strndup(&c->arena, user.p, user.n),
                               .expires_ms = field_i64(json_root(done), "expires_ms", 0) };
    if (keyring_put(&k, e) < 0)
        return -1;
    char when[24];
    AUTO(buf_free) struct buf in = BUF(4096);
    buf_addz(&in, "Signed in to ");
    text_add_clean(&in, str_of(server));
    buf_addz(&in, " as ");
    text_add_clean(&in, user);
    buf_printf(&in, ", until %s.\n", text_time(k.expires_ms, when));
    return cli_print(&in, e);
}

const struct command command_login = {
    .name = "login",
    .args = "[SERVER]",
    .help = "sign this command line in to a server, by way of a browser",
    .more = "It shows an address and a code; open the address anywhere, sign in, say yes.  The\n"
            "token is kept in ~/.config/nightshift/servers.json, and the server is the one that\n"
            "is used from then on.\n\n"
            "    nightshift login https://gpu.example.org\n",
    .group = GROUP_OTHER,
    COMMAND_OPTS(login_opts, struct login_opts),
    .max_args = 1,
    .run = run_login,
};

struct logout_opts {
    struct common common;
};

static const struct opt logout_opts[] = { OPTS_COMMON(struct logout_opts) };

/* The server forgets the token too, when it can be reached. */
static int run_logout(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    struct keyring_entry k;
    struct address at;
    AUTO(answer_free) struct answer a = { 0 };
    struct err why;
    (void)opts_p;
    if (args.n)
        c->server = args.v[0];
    if (c->server && address_parse(c->server, &at, e) < 0)
        return -1;
    if (!keyring_find(c->server ? at.text : NULL, &c->arena, &k)) {
        err_set(e, ERR_NOT_FOUND, "you are not signed in%s%s", c->server ? " to " : "",
                c->server ? at.text : "");
        return err_hint(e, "sign in with: nightshift login SERVER");
    }
    c->server = k.server;
    bool told =
        cli_call(c, &(struct call){ .method = "DELETE", .path = "/v1/token" }, &a, &why) == 0;
    if (keyring_drop(k.server, e) < 0)
        return -1;
    if (!told)
        cli_note(c, "the server could not be told (%s): delete the token there when you can",
                 why.msg);
    return cli_print_line("signed out", e);
}

const struct command command_logout = {
    .name = "logout",
    .args = "[SERVER]",
    .help = "sign this command line out of a server",
    .group = GROUP_OTHER,
    COMMAND_OPTS(logout_opts, struct logout_opts),
    .max_args = 1,
    .run = run_logout,
};
