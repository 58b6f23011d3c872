/* audit: who did what; shown, exported, verified. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/audit_file.h"
#include "cli/change.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"
#include "cli/tty.h"
#include "cli/when.h"
#include "sys/term.h"

#define PATH "/v1/audit"
#define LIMIT_DEFAULT 100
#define LIMIT_MAX 100000
#define PAGE_MAX 1000
#define ROWS_MAX (256u << 20)

struct audit_opts {
    struct common common;
    const char *who, *what, *subject, *tenant, *since, *until, *head;
    uint64_t limit, number;
};

#define AT(field) offsetof(struct audit_opts, field)
static const struct opt opts[] = {
    { "who", OPT_TEXT, AT(who), "USER", "what this user did", 0, 0 },
    { "what", OPT_TEXT, AT(what), "VERB", "node.drain, or how it begins: pool.", 0, 0 },
    { "subject", OPT_TEXT, AT(subject), "NAME", "what was done to this machine, pool, job, …", 0,
      0 },
    { "tenant", OPT_TEXT, AT(tenant), "NAME", "what was done to something of this tenant", 0, 0 },
    { "since", OPT_TEXT, AT(since), "TIME", "from then on: 2026-03-01, 12:30, 3d (ago)", 0, 0 },
    { "until", OPT_TEXT, AT(until), "TIME", "before then", 0, 0 },
    { "limit", OPT_NUMBER, AT(limit), "N", "at most so many, the newest (100)", 1, LIMIT_MAX },
    { "head", OPT_TEXT, AT(head), "HASH", "verify: this row must be in it, as the log noted it", 0,
      0 },
    { "number", OPT_NUMBER, AT(number), "N", "verify: that row's number", 1, INT64_MAX },
    OPTS_OUTPUT(struct audit_opts),
    OPTS_COMMON(struct audit_opts),
};
#undef AT

/* ---- lists ---- */

static const struct column columns[] = {
    { "N", true, false },      { "TIME", false, false }, { "WHO", false, true },
    { "FROM", false, true },   { "WHAT", false, false }, { "SUBJECT", false, true },
    { "CHANGE", false, true },
};
static const struct column wide_columns[] = {
    { "N", true, false },      { "TIME", false, false },   { "WHO", false, true },
    { "VIA", false, true },    { "FROM", false, true },    { "WHAT", false, false },
    { "TENANT", false, true }, { "SUBJECT", false, true }, { "CHANGE", false, true },
    { "REASON", false, true },
};

static void add_row(struct table *t, const struct json *r, bool wide)
{
    AUTO(buf_free) struct buf change = BUF(1u << 20);
    struct str reason = field_str(r, "reason");
    char when[24];
    change_add_summary(&change, field_str(r, "before"), field_str(r, "after"));
    table_printf(t, "%llu", (unsigned long long)field_u64(r, "number"));
    table_addz(t, text_time_seconds(field_i64(r, "t_ms", 0), when));
    table_add(t, field_str(r, "who"));
    if (wide)
        table_add(t, field_str(r, "via"));
    table_add(t, field_str(r, "address"));
    table_add(t, field_str(r, "what"));
    if (wide)
        table_add(t, field_str(r, "tenant"));
    table_add(t, field_str(r, "subject"));
    if (!wide && reason.n) {
        buf_addz(&change, change.n ? ": " : "");
        buf_add(&change, reason);
    }
    table_add(t, buf_str(&change));
    if (wide)
        table_add(t, reason);
}

static int print_rows(const struct common *o, const struct json *list, struct err *e)
{
    bool wide = cli_output(o) == OUT_WIDE;
    AUTO(table_free_p)
    struct table *t = wide ? table_new(wide_columns, ARRAY_LEN(wide_columns))
                           : table_new(columns, ARRAY_LEN(columns));
    AUTO(buf_free) struct buf names = BUF(8u << 20);
    for (const struct json *r = json_is_array(list) ? json_first(list) : NULL; r;
         r = json_next(list, r)) {
        buf_printf(&names, "%llu\n", (unsigned long long)field_u64(r, "number"));
        add_row(t, r, wide);
    }
    return cli_output(o) == OUT_NAME ? cli_print(&names, e) : cli_print_table(t, o, e);
}

static void add_number(struct buf *path, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    query_add(path, key, text);
}

static int add_time(struct buf *path, const char *key, const char *option, const char *text,
                    struct err *e)
{
    int64_t ms;
    if (!text)
        return 0;
    if (when_parse(text, cli_now_ms(), &ms, e) < 0)
        return err_wrap(e, "%s", option);
    add_number(path, key, (uint64_t)MAX(ms, INT64_C(0)));
    return 0;
}

static int list_path(const struct audit_opts *o, uint64_t before, uint64_t limit, struct buf *path,
                     struct err *e)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        { "who", o->who }, { "what", o->what }, { "subject", o->subject }, { "tenant", o->tenant }
    };
    buf_addz(path, PATH);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].text)
            query_add(path, texts[i].key, texts[i].text);
    if (add_time(path, "since_ms", "--since", o->since, e) < 0 ||
        add_time(path, "until_ms", "--until", o->until, e) < 0)
        return -1;
    if (before)
        add_number(path, "before", before);
    add_number(path, "limit", limit);
    return buf_check(path, e);
}

/* Page by page: one may be empty and others follow. */
static int fetch(struct cli *c, const struct audit_opts *o, uint64_t before, struct buf *out,
                 struct err *e)
{
    struct json_out w = { .b = out };
    uint64_t left = o->limit ? o->limit : LIMIT_DEFAULT;
    json_begin(&w, NULL, '{');
    json_begin(&w, "rows", '[');
    do {
        AUTO(buf_free) struct buf path = BUF(8192);
        if (list_path(o, before, MIN(left, (uint64_t)PAGE_MAX), &path, e) < 0)
            return -1;
        AUTO(json_free_p) struct json_doc *doc = cli_get(c, path.p, e);
        if (!doc)
            return -1;
        const struct json *rows = json_find(json_root(doc), "rows");
        size_t n = json_is_array(rows) ? json_len(rows) : 0;
        for (const struct json *r = n ? json_first(rows) : NULL; r; r = json_next(rows, r))
            json_put(&w, NULL, r);
        before = field_u64(json_root(doc), "next");
        left -= MIN(left, (uint64_t)n);
    } while (left && before);
    json_end(&w, ']');
    if (before)
        json_put_u64(&w, "next", before);
    else
        json_put_null(&w, "next");
    json_end(&w, '}');
    return buf_check(out, e);
}

static int list(struct cli *c, const struct audit_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf all = BUF(ROWS_MAX);
    if (fetch(c, o, 0, &all, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&all), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&all), e);
    return doc ? print_rows(&o->common, json_find(json_root(doc), "rows"), e) : -1;
}

/* ---- one row ---- */

static void add_field(struct buf *b, const char *title, struct str text)
{
    if (text.n == 0)
        return;
    buf_printf(b, "%-9s", title);
    text_add_clean(b, text);
    buf_addc(b, '\n');
}

static void print_row(const struct json *r, struct buf *b)
{
    char text[24];
    buf_printf(b, "%-9s%llu\n", "row", (unsigned long long)field_u64(r, "number"));
    add_field(b, "time", str_of(text_time_seconds(field_i64(r, "t_ms", 0), text)));
    add_field(b, "who", field_str(r, "who"));
    add_field(b, "via", field_str(r, "via"));
    add_field(b, "from", field_str(r, "address"));
    add_field(b, "what", field_str(r, "what"));
    add_field(b, "subject", field_str(r, "subject"));
    add_field(b, "tenant", field_str(r, "tenant"));
    add_field(b, "reason", field_str(r, "reason"));
    add_field(b, "hash", field_str(r, "hash"));
    change_add_lines(b, field_str(r, "before"), field_str(r, "after"), term_colour(STDOUT_FILENO));
}

static int show(struct cli *c, const struct audit_opts *o, const char *text, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf all = BUF(ROWS_MAX), out = BUF(1u << 20);
    struct json_out w = { .b = &out };
    uint64_t number;
    if (parse_u64(str_of(text), INT64_MAX - 1, &number, e) < 0) {
        err_set(e, ERR_INVALID, "'%s' is not the number of a row", text);
        return err_hint(e, "numbers are in the list: nightshift audit");
    }
    if (fetch(c, &(struct audit_opts){ .limit = 1 }, number + 1, &all, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&all), e);
    if (!doc)
        return -1;
    const struct json *r = json_first(json_find(json_root(doc), "rows"));
    if (!r || field_u64(r, "number") != number)
        return err_set(e, ERR_NOT_FOUND, "there is no row %llu, or it is kept no longer",
                       (unsigned long long)number);
    if (form == OUT_JSON || form == OUT_YAML) {
        json_put(&w, NULL, r);
        return cli_print_raw(buf_str(&out), form, e);
    }
    print_row(r, &out);
    return cli_print(&out, e);
}

/* ---- exporting ---- */

/* The last line, of which the end may be still to come: a failure is told there. */
static void keep_last_line(struct buf *last, struct str bytes)
{
    const char *end = bytes.n > 1 ? memrchr(bytes.p, '\n', bytes.n - 1) : NULL;
    if (end)
        bytes = (struct str){ end + 1, (size_t)(bytes.p + bytes.n - end - 1) };
    if (end || (last->n && last->p[last->n - 1] == '\n'))
        buf_truncate(last, 0);
    buf_add(last, bytes);
}

static int check_last_line(const struct buf *last, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(last), e);
    struct str failure =
        doc && json_is_object(json_root(doc)) ? field_str(json_root(doc), "error") : STR("");
    if (doc && !failure.n)
        return 0;
    err_set(e, ERR_CONFLICT, "the export is not whole: %.*s",
            STR_ARG(failure.n ? failure : STR("the connection ended early")));
    return err_hint(e, "try it again");
}

static int export(struct cli *c, struct err *e)
{
    struct client *client = cli_client(c, e);
    AUTO(feed_free_p) struct feed *feed = client ? feed_open(client, PATH "/export", e) : NULL;
    AUTO(buf_free) struct buf last = BUF(4u << 20);
    struct str bytes;
    enum feed_is is = FEED_NOTHING;
    if (!feed)
        return -1;
    while (is != FEED_END) {
        is = feed_read(feed, &bytes, e);
        if (is == FEED_FAILED)
            return -1;
        if (is == FEED_NOTHING)
            poll(&(struct pollfd){ .fd = feed_fd(feed), .events = POLLIN }, 1, -1);
        if (is != FEED_BYTES)
            continue;
        keep_last_line(&last, bytes);
        if (tty_write(STDOUT_FILENO, bytes) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot write the result: %s", strerror(errno));
    }
    return check_last_line(&last, e);
}

/* ---- verifying ---- */

static int read_noted(const struct audit_opts *o, struct audit_link *out, struct err *e)
{
    *out = (struct audit_link){ .number = o->number };
    if (o->head && !audit_hash_parse(str_of(o->head), &out->hash)) {
        err_set(e, ERR_INVALID, "--head: '%.80s' is no hash", o->head);
        return err_hint(e, "64 hex digits, as the log has them: audit.head number=… hash=…");
    }
    if (o->number && !o->head)
        return err_set(e, ERR_INVALID, "--number needs --head");
    return 0;
}

struct verdict {
    bool ok;
    uint64_t rows, row, head;
    struct str message, hash;
};

static int print_verdict(struct cli *c, const struct verdict *v, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    c->exit_code = v->ok ? 0 : 1;
    buf_printf(&b, "%s ", text_mark(v->ok ? MARK_GOOD : MARK_BAD));
    if (v->ok)
        buf_printf(&b, "%llu row%s; the last is %llu ", (unsigned long long)v->rows,
                   v->rows == 1 ? "" : "s", (unsigned long long)v->head);
    else
        buf_printf(&b, "row %llu: ", (unsigned long long)v->row);
    text_add_clean(&b, v->ok ? v->hash : v->message);
    buf_addc(&b, '\n');
    return cli_print(&b, e);
}

static int verify_file(struct cli *c, const struct audit_opts *o, const char *name, struct err *e)
{
    bool is_input = strcmp(name, "-") == 0;
    struct audit_link noted;
    struct audit_chain chain;
    struct stat st;
    char hash[AUDIT_HASH_TEXT];
    if (read_noted(o, &noted, e) < 0)
        return -1;
    FILE *from = is_input ? stdin : fopen(name, "re");
    if (!from)
        return err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "cannot open '%s': %s",
                       name, strerror(errno));
    bool sized = fstat(fileno(from), &st) == 0 && S_ISREG(st.st_mode);
    struct audit_file f = { .from = from,
                            .name = name,
                            .bytes = sized ? (uint64_t)st.st_size : 0,
                            .noted = o->head ? &noted : NULL };
    int rc = audit_file_verify(&f, &chain, e);
    if (!is_input)
        fclose(from);
    if (rc < 0)
        return -1;
    struct verdict v = { .ok = !chain.fault,
                         .rows = chain.rows,
                         .row = chain.fault_at,
                         .head = chain.at.number,
                         .message = str_of(audit_fault_help(chain.fault)),
                         .hash = str_of(audit_hash_format(&chain.at.hash, hash)) };
    return print_verdict(c, &v, e);
}

static int verify_server(struct cli *c, const struct audit_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf path = BUF(512);
    AUTO(answer_free) struct answer a = { 0 };
    struct audit_link noted;
    if (read_noted(o, &noted, e) < 0)
        return -1;
    buf_addz(&path, PATH "/verify");
    if (o->head)
        query_add(&path, "head", o->head);
    if (o->number)
        add_number(&path, "number", o->number);
    if (cli_call(c, &(struct call){ .path = path.p }, &a, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    const struct json *root = json_root(doc), *head = json_find(root, "head");
    struct verdict v = { .ok = field_bool(root, "ok"),
                         .rows = field_u64(root, "rows"),
                         .row = field_u64(root, "row"),
                         .head = json_is_object(head) ? field_u64(head, "number") : 0,
                         .message = field_str(root, "message"),
                         .hash = json_is_object(head) ? field_str(head, "hash") : STR("") };
    c->exit_code = v.ok ? 0 : 1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    return print_verdict(c, &v, e);
}

static int run_audit(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct audit_opts *o = opts_p;
    const char *verb = args.n ? args.v[0] : "list";
    if (strcmp(verb, "list") == 0 && args.n <= 1)
        return list(c, o, e);
    if (strcmp(verb, "show") == 0 && args.n == 2)
        return show(c, o, args.v[1], e);
    if (strcmp(verb, "export") == 0 && args.n == 1)
        return export(c, e);
    if (strcmp(verb, "verify") == 0)
        return args.n == 2 ? verify_file(c, o, args.v[1], e) : verify_server(c, o, e);
    err_set(e, ERR_INVALID, "audit takes list, show N, export, or verify with or without a FILE");
    return err_hint(e, "nightshift audit --who ana --since 3d");
}

const struct command command_audit = {
    .name = "audit",
    .args = "[list | show N | export | verify [FILE]]",
    .help = "who did what, and is that as it was written? (administrators)",
    .more = "    nightshift audit --what pool. --since 7d\n"
            "    nightshift audit show 17                       # before and after\n"
            "    nightshift audit export > audit.ndjson\n"
            "    nightshift audit verify audit.ndjson           # without a server\n"
            "    nightshift audit verify --head 9f86d081…       # as the log noted it\n",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(opts, struct audit_opts),
    .max_args = 2,
    .run = run_audit,
};
