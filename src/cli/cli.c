#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/field.h"
#include "cli/text.h"
#include "cli/yaml_out.h"
#include "sys/clock.h"
#include "sys/term.h"

#define PRINT_MAX (512u << 20)

struct client *cli_client(struct cli *c, struct err *e)
{
    if (!c->client)
        c->client = client_new(c->server, c->fresh ? "" : NULL, e);
    return c->client;
}

void answer_free(struct answer *a)
{
    buf_free(&a->body);
}

int cli_call(struct cli *c, const struct call *call, struct answer *out, struct err *e)
{
    struct client *client = cli_client(c, e);
    return client ? client_call(client, call, out, e) : -1;
}

static struct json_doc *call_json(struct cli *c, const struct call *call, struct err *e)
{
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, call, &a, e) < 0)
        return NULL;
    struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc) {
        err_wrap(e, "the server's answer to %s", call->path);
        e->code = ERR_UNAVAILABLE;
    }
    return doc;
}

struct json_doc *cli_get(struct cli *c, const char *path, struct err *e)
{
    return call_json(c, &(struct call){ .path = path }, e);
}

struct json_doc *cli_post(struct cli *c, const char *path, struct str body, struct err *e)
{
    return call_json(c, &(struct call){ .method = "POST", .path = path, .body = body }, e);
}

const char *cli_whoami(struct cli *c, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = cli_get(c, "/v1/whoami", e);
    struct str user = doc ? field_str(json_root(doc), "user") : (struct str){ "", 0 };
    return doc ? arena_strndup(&c->arena, user.p, user.n) : NULL;
}

int64_t cli_now_ms(void)
{
    struct clock wall = clock_wall();
    return clock_now_ms(&wall);
}

enum output cli_output(const struct common *o)
{
    static const char *const words[] = { "table", "wide", "json", "yaml", "name", "csv" };
    for (size_t i = 0; o->output && i < ARRAY_LEN(words); i++)
        if (strcmp(o->output, words[i]) == 0)
            return (enum output)i;
    return OUT_TABLE;
}

int cli_print(const struct buf *b, struct err *e)
{
    if (buf_check(b, e) < 0)
        return -1;
    if (b->n && (fwrite(b->p, 1, b->n, stdout) != b->n || fflush(stdout) != 0))
        return err_set(e, ERR_UNAVAILABLE, "cannot write the result: %s", strerror(errno));
    return 0;
}

int cli_print_line(const char *text, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    buf_addz(&b, text);
    buf_addc(&b, '\n');
    return cli_print(&b, e);
}

int cli_print_table(const struct table *t, const struct common *o, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(PRINT_MAX);
    bool fit = term_is_tty(STDOUT_FILENO) && cli_output(o) != OUT_WIDE;
    struct table_look look = { .columns = fit ? term_columns(STDOUT_FILENO) : 0,
                               .headers = !o->no_headers,
                               .colour = term_colour(STDOUT_FILENO) };
    table_print(t, &look, &b);
    return cli_print(&b, e);
}

int cli_print_raw(struct str json, enum output form, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(PRINT_MAX);
    if (form == OUT_YAML) {
        AUTO(json_free_p) struct json_doc *doc = json_read(json, e);
        if (!doc)
            return -1;
        yaml_print(json_root(doc), &b);
    } else {
        buf_add(&b, json);
        if (json.n && json.p[json.n - 1] != '\n')
            buf_addc(&b, '\n');
    }
    return cli_print(&b, e);
}

int cli_ask(struct cli *c, const struct common *o, const struct call *call, cli_print_fn *print,
            struct err *e)
{
    enum output form = cli_output(o);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(buf_free) struct buf b = BUF(PRINT_MAX);
    if (cli_call(c, call, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    struct str name = field_str(json_root(doc), "name");
    if (form == OUT_NAME && name.n)
        buf_printf(&b, "%.*s\n", STR_ARG(name));
    else
        print(json_root(doc), &b);
    return cli_print(&b, e);
}

/* One write, so that it does not mix with what a job prints. */
static void to_stderr(const struct buf *b)
{
    struct str s = buf_str(b);
    while (s.n) {
        ssize_t n = write(STDERR_FILENO, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        s = (struct str){ s.p + n, s.n - (size_t)n };
    }
}

void cli_note(const struct cli *c, const char *fmt, ...)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_printf(&b, "%s: ", c->program);
    text_add_clean(&b, str_of(text));
    buf_addc(&b, '\n');
    to_stderr(&b);
}

void cli_print_error(const struct cli *c, const struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    bool colour = term_colour(STDERR_FILENO);
    buf_printf(&b, "%s%s:%s ", colour ? tint_begin(TINT_BAD) : "", c->program,
               colour ? TINT_END : "");
    text_add_clean(&b, str_of(e->msg));
    if (e->hint[0]) {
        buf_addz(&b, "\n  hint: ");
        text_add_clean(&b, str_of(e->hint));
    }
    buf_addc(&b, '\n');
    to_stderr(&b);
}
