/* pools: machines that are lent at times. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/lent.h"
#include "cli/text.h"

struct pools_opts {
    struct common common;
    const char *window, *nodes, *stage;
    struct lent_times times;
};

#define PATH "/v1/pools"

#define AT(field) offsetof(struct pools_opts, field)

static const struct opt opts[] = {
    { "window", OPT_TEXT, AT(window), "TEXT", "set: when its machines are lent; '': always", 0, 0 },
    { "stage", OPT_CHOICE, AT(stage), "all|beta|alpha|enrolled",
      "set: whose machines they are while they are rolled out", 0, 0 },
    { "nodes", OPT_TEXT, AT(nodes), "LIST", "set: which they are: pc1,lab[01-12]", 0, 0 },
    { "from", OPT_TEXT, AT(times.from), "TIME", "open, close: from then on (now)", 0, 0 },
    { "until", OPT_TEXT, AT(times.until), "TIME", "open, close: 22:00, '2026-03-01 22:00'", 0, 0 },
    { "for", OPT_TEXT, AT(times.for_time), "TIME", "open, close: so long: 3h", 0, 0 },
    OPTS_OUTPUT(struct pools_opts),
    OPTS_COMMON(struct pools_opts),
};
#undef AT

static const struct column columns[] = {
    { "POOL", false, true }, { "NODES", true, false },  { "GPUS", true, false },
    { "NOW", false, false }, { "UNTIL", false, false }, { "WINDOW", false, true },
};

static size_t length(const struct json *list)
{
    return json_is_array(list) ? json_len(list) : 0;
}

/* ---- the table ---- */

static void add_pool(struct table *t, const struct json *p)
{
    char at[24];
    bool open = field_bool(p, "open");
    struct str window = field_str(p, "window");
    table_add(t, field_str(p, "name"));
    table_printf(t, "%zu", length(json_find(p, "nodes")));
    table_printf(t, "%llu", (unsigned long long)field_u64(p, "gpus"));
    table_add_tinted(t, open ? STR("open") : STR("closed"), open ? TINT_GOOD : TINT_WAIT);
    table_addz(t, text_soon(field_i64(p, "until_ms", 0), cli_now_ms(), at));
    table_add(t, window.n ? window : STR("always"));
}

static int print_pools(const struct pools_opts *o, const struct json *pools, struct err *e)
{
    AUTO(table_free_p) struct table *t = table_new(columns, ARRAY_LEN(columns));
    AUTO(buf_free) struct buf names = BUF(8u << 20);
    for (const struct json *p = json_is_array(pools) ? json_first(pools) : NULL; p;
         p = json_next(pools, p)) {
        struct str name = field_str(p, "name");
        buf_printf(&names, "%.*s\n", STR_ARG(name));
        add_pool(t, p);
    }
    return cli_output(&o->common) == OUT_NAME ? cli_print(&names, e)
                                              : cli_print_table(t, &o->common, e);
}

static int list_pools(struct cli *c, const struct pools_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, &(struct call){ .path = PATH }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    return doc ? print_pools(o, json_find(json_root(doc), "pools"), e) : -1;
}

/* ---- one of them ---- */

static void add_now(struct buf *b, const struct json *p)
{
    char at[24];
    int64_t until_ms = field_i64(p, "until_ms", 0);
    buf_printf(b, "%-9s%s", "now", field_bool(p, "open") ? "open" : "closed");
    if (until_ms)
        buf_printf(b, " until %s", text_soon(until_ms, cli_now_ms(), at));
    buf_addc(b, '\n');
}

/* The next times at which it opens or closes, and how long it stays so. */
static void add_stretches(struct buf *b, const char *title, const struct json *list, bool open_only)
{
    for (const struct json *s = json_is_array(list) ? json_first(list) : NULL; s;
         s = json_next(list, s)) {
        char from[24], until[24], lasts[24];
        int64_t from_ms = field_i64(s, "from_ms", 0), until_ms = field_i64(s, "until_ms", 0);
        if (open_only && !field_bool(s, "open"))
            continue;
        text_soon(from_ms, cli_now_ms(), from);
        text_soon(until_ms, cli_now_ms(), until);
        buf_printf(b, "%-9s%s%s to %s (%s)\n", title,
                   open_only               ? ""
                   : field_bool(s, "open") ? "open "
                                           : "closed ",
                   from, until, text_duration(until_ms - from_ms, lasts));
        title = "";
    }
}

/* A typing error looks just so. */
static void add_absent(struct buf *b, const struct json *nodes)
{
    for (const struct json *n = json_is_array(nodes) ? json_first(nodes) : NULL; n;
         n = json_next(nodes, n))
        if (str_is(field_str(n, "state"), "unknown")) {
            text_add_clean(b, field_str(n, "name"));
            buf_addz(b, " has not come yet\n");
        }
}

static void print_pool(const struct json *p, struct buf *b)
{
    struct str window = field_str(p, "window");
    lent_add_line(b, "pool", field_str(p, "name"));
    if (str_is(field_str(p, "owner"), "settings"))
        lent_add_line(b, "owner", STR("the settings file"));
    lent_add_line(b, "window", window.n ? window : STR("always"));
    add_now(b, p);
    add_stretches(b, "besides", json_find(p, "exceptions"), false);
    add_stretches(b, "open", json_find(p, "week"), true);
    lent_add_nodes(b, json_find(p, "nodes"));
    lent_add_jobs(b, json_find(p, "jobs"), false);
}

static int show_pool(struct cli *c, const struct pools_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048);
    if (lent_path(PATH, name, NULL, &path, e) < 0)
        return -1;
    return cli_ask(c, &o->common, &(struct call){ .path = path.p }, print_pool, e);
}

/* ---- changing ---- */

/* What follows from a change: which jobs stay on. */
static void print_change(const struct json *p, struct buf *b)
{
    AUTO(buf_free) struct buf now = BUF(256);
    text_add_clean(b, field_str(p, "name"));
    buf_addz(b, ": ");
    add_now(&now, p);
    buf_add(b, (struct str){ now.p + 9, now.n - 9 }); /* without its title */
    lent_add_jobs(b, json_find(p, "jobs"), true);
}

static void print_set(const struct json *p, struct buf *b)
{
    print_change(p, b);
    add_absent(b, json_find(p, "nodes"));
}

static int set_pool(struct cli *c, const struct pools_opts *o, const char *name, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), body = BUF(2u << 20);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    if (o->window)
        json_put_str(&w, "window", str_of(o->window));
    if (o->stage)
        json_put_str(&w, "stage", str_of(o->stage));
    if (o->nodes) {
        json_begin(&w, "nodes", '[');
        if (o->nodes[0])
            json_put_str(&w, NULL, str_of(o->nodes));
        json_end(&w, ']');
    }
    json_end(&w, '}');
    if (lent_path(PATH, name, NULL, &path, e) < 0 || buf_check(&body, e) < 0)
        return -1;
    return cli_ask(c, &o->common,
                   &(struct call){ .method = "PUT", .path = path.p, .body = buf_str(&body) },
                   print_set, e);
}

static int put_while(const struct pools_opts *o, struct json_out *w, struct err *e)
{
    if (o->times.until || o->times.for_time)
        return lent_put_times(&o->times, w, e);
    err_set(e, ERR_INVALID, "until when? Either --until or --for is needed");
    return err_hint(e, "nightshift pools close desks --for 3h");
}

static int pool_verb(struct cli *c, const struct pools_opts *o, const char *verb, const char *name,
                     struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), body = BUF(4096);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    if (strcmp(verb, "regular") != 0 && put_while(o, &w, e) < 0)
        return -1;
    json_end(&w, '}');
    if (lent_path(PATH, name, verb, &path, e) < 0 || buf_check(&body, e) < 0)
        return -1;
    return cli_ask(c, &o->common,
                   &(struct call){ .method = "POST", .path = path.p, .body = buf_str(&body) },
                   print_change, e);
}

static int run_pools(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct pools_opts *o = opts_p;
    const char *verb = args.n ? args.v[0] : "list";
    static const char *const whiles[] = { "open", "close", "regular" };
    if (strcmp(verb, "list") == 0 && args.n <= 1)
        return list_pools(c, o, e);
    if (strcmp(verb, "show") == 0 && args.n == 2)
        return show_pool(c, o, args.v[1], e);
    if (strcmp(verb, "set") == 0 && args.n == 2)
        return set_pool(c, o, args.v[1], e);
    bool removes = strcmp(verb, "rm") == 0 || strcmp(verb, "delete") == 0; /* as tokens has it */
    if (removes && args.n == 2)
        return lent_remove(c, PATH, args.v[1], "these machines may always work now", e);
    for (size_t i = 0; i < ARRAY_LEN(whiles) && args.n == 2; i++)
        if (strcmp(verb, whiles[i]) == 0)
            return pool_verb(c, o, verb, args.v[1], e);
    err_set(e, ERR_INVALID,
            "pools takes list, or show, set, open, close, regular or rm with a NAME");
    return err_hint(e, "nightshift pools close desks --for 3h");
}

const struct command command_pools = {
    .name = "pools",
    .args = "[list | show NAME | set NAME | open NAME | close NAME | regular NAME | rm NAME]",
    .help = "machines that are lent at times",
    .more =
        "    nightshift pools set desks --nodes pc1,lab[01-12] \\\n"
        "        --window 'zone=Europe/Berlin; Mon-Sun 20:00-08:00; Sat-Sun 00:00-24:00'\n"
        "    nightshift pools close desks --from 18:00 --for 5h     # a tournament tonight\n"
        "    nightshift pools regular desks                         # as its window says again\n",
    .group = GROUP_CLUSTER,
    .word = WORD_POOL,
    COMMAND_OPTS(opts, struct pools_opts),
    .max_args = 2,
    .run = run_pools,
};
