/* reservations, reserve: machines that are one tenant's for a time. */
#include <stdio.h>

#include "base/hostlist.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/lent.h"
#include "cli/text.h"

#define PATH "/v1/reservations"
#define LIST_MAX (1u << 20)

struct reservations_opts {
    struct common common;
};

static const struct opt opts[] = {
    OPTS_OUTPUT(struct reservations_opts),
    OPTS_COMMON(struct reservations_opts),
};

static const struct column columns[] = {
    { "NAME", false, true },   { "TENANT", false, true },   { "FROM", false, false },
    { "UNTIL", false, false }, { "MACHINES", false, true }, { "GPUS", true, false },
    { "NOW", false, false },
};

/* pc[01-12] */
static void add_machines(const struct json *nodes, struct buf *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    size_t n = 0, most = json_is_array(nodes) ? json_len(nodes) : 0;
    const char **name = arena_array(&a, const char *, most + 1);
    for (const struct json *m = most ? json_first(nodes) : NULL; m; m = json_next(nodes, m)) {
        struct str s = field_str(m, "name");
        name[n++] = arena_strndup(&a, s.p, s.n);
    }
    hostlist_fold(name, n, out);
}

/* "in 3h", or "open, ends 12:00". */
static const char *now_text(const struct json *r, char out[static 48])
{
    char text[24];
    int64_t now_ms = cli_now_ms(), from_ms = field_i64(r, "from_ms", 0);
    if (field_bool(r, "open"))
        snprintf(out, 48, "open, ends %s", text_soon(field_i64(r, "until_ms", 0), now_ms, text));
    else
        snprintf(out, 48, "in %s", text_duration(MAX(from_ms - now_ms, INT64_C(0)), text));
    return out;
}

/* ---- the table ---- */

static void add_row(struct table *t, const struct json *r, bool wide)
{
    AUTO(buf_free) struct buf machines = BUF(LIST_MAX);
    char now[48], from[24], until[24];
    int64_t now_ms = cli_now_ms(), from_ms = field_i64(r, "from_ms", 0),
            until_ms = field_i64(r, "until_ms", 0);
    bool open = field_bool(r, "open");
    add_machines(json_find(r, "nodes"), &machines);
    table_add(t, field_str(r, "name"));
    table_add(t, field_str(r, "tenant"));
    table_addz(t, wide ? text_time(from_ms, from) : text_soon(from_ms, now_ms, from));
    table_addz(t, wide ? text_time(until_ms, until) : text_soon(until_ms, now_ms, until));
    table_add(t, buf_str(&machines));
    table_printf(t, "%llu", (unsigned long long)field_u64(r, "gpus"));
    table_add_tinted(t, str_of(now_text(r, now)), open ? TINT_GOOD : TINT_WAIT);
}

static int print_list(const struct common *o, const struct json *list, struct err *e)
{
    AUTO(table_free_p) struct table *t = table_new(columns, ARRAY_LEN(columns));
    AUTO(buf_free) struct buf names = BUF(8u << 20);
    for (const struct json *r = json_is_array(list) ? json_first(list) : NULL; r;
         r = json_next(list, r)) {
        buf_printf(&names, "%.*s\n", STR_ARG(field_str(r, "name")));
        add_row(t, r, cli_output(o) == OUT_WIDE);
    }
    return cli_output(o) == OUT_NAME ? cli_print(&names, e) : cli_print_table(t, o, e);
}

/* ---- one of them ---- */

static void print_one(const struct json *r, struct buf *b)
{
    char from[24], until[24], lasts[24], now[48];
    int64_t now_ms = cli_now_ms(), from_ms = field_i64(r, "from_ms", 0),
            until_ms = field_i64(r, "until_ms", 0);
    text_soon(from_ms, now_ms, from);
    text_soon(until_ms, now_ms, until);
    lent_add_line(b, "name", field_str(r, "name"));
    lent_add_line(b, "tenant", field_str(r, "tenant"));
    buf_printf(b, "%-9s%s to %s (%s)\n", "time", from, until,
               text_duration(until_ms - from_ms, lasts));
    buf_printf(b, "%-9s%s\n", "now", now_text(r, now));
    lent_add_nodes(b, json_find(r, "nodes"));
    lent_add_jobs(b, json_find(r, "jobs"), false);
}

/* What was made of it: also which machines were chosen, and what may still run on them. */
static void print_made(const struct json *r, struct buf *b)
{
    char from[24], until[24];
    int64_t now_ms = cli_now_ms();
    uint64_t gpus = field_u64(r, "gpus");
    AUTO(buf_free) struct buf machines = BUF(LIST_MAX);
    add_machines(json_find(r, "nodes"), &machines);
    text_add_clean(b, field_str(r, "name"));
    buf_addz(b, ": ");
    text_add_clean(b, buf_str(&machines));
    buf_printf(b, " (%llu GPU%s) for ", (unsigned long long)gpus, gpus == 1 ? "" : "s");
    text_add_clean(b, field_str(r, "tenant"));
    buf_printf(b, ", %s to %s\n", text_soon(field_i64(r, "from_ms", 0), now_ms, from),
               text_soon(field_i64(r, "until_ms", 0), now_ms, until));
    lent_add_jobs(b, json_find(r, "jobs"), true);
}

/* ---- calls ---- */

static int list(struct cli *c, const struct common *o, struct err *e)
{
    enum output form = cli_output(o);
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, &(struct call){ .path = PATH }, &a, e) < 0)
        return -1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    return doc ? print_list(o, json_find(json_root(doc), "reservations"), e) : -1;
}

static int run_reservations(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct reservations_opts *o = opts_p;
    const char *verb = args.n ? args.v[0] : "list";
    AUTO(buf_free) struct buf path = BUF(2048);
    if (strcmp(verb, "list") == 0 && args.n <= 1)
        return list(c, &o->common, e);
    if (strcmp(verb, "rm") == 0 && args.n == 2)
        return lent_remove(c, PATH, args.v[1], "these machines are everybody's now", e);
    if (strcmp(verb, "show") == 0 && args.n == 2) {
        if (lent_path(PATH, args.v[1], NULL, &path, e) < 0)
            return -1;
        return cli_ask(c, &o->common, &(struct call){ .path = path.p }, print_one, e);
    }
    err_set(e, ERR_INVALID, "reservations takes list, or show or rm with a NAME");
    return err_hint(e, "nightshift reservations show class");
}

const struct command command_reservations = {
    .name = "reservations",
    .args = "[list | show NAME | rm NAME]",
    .help = "machines that are reserved, now or later",
    .more =
        "    nightshift reservations show class      # its machines, and what may still run there\n"
        "    nightshift run --reservation class -g 1 python train.py\n",
    .group = GROUP_CLUSTER,
    .word = WORD_RESERVATION,
    COMMAND_OPTS(opts, struct reservations_opts),
    .max_args = 2,
    .run = run_reservations,
};

/* ---- reserve ---- */

struct reserve_opts {
    struct common common;
    const char *tenant, *nodes, *gpu_type;
    uint64_t gpus;
    struct lent_times times;
};

#define AT(field) offsetof(struct reserve_opts, field)
#define GPUS_MAX 1000000

static const struct opt reserve_opts[] = {
    { "tenant", OPT_TEXT, AT(tenant), "NAME", "whose jobs may run there then", 0, 0 },
    { "from", OPT_TEXT, AT(times.from), "TIME",
      "22:00, 'tue 10:00', '2026-11-17 10:00', now+2h (now)", 0, 0 },
    { "until", OPT_TEXT, AT(times.until), "TIME", "likewise; 12:00 is the next after --from", 0,
      0 },
    { "for", OPT_TEXT, AT(times.for_time), "TIME", "so long: 2h", 0, 0 },
    { "nodes", OPT_TEXT, AT(nodes), "LIST", "which machines: pc1,lab[01-12]", 0, 0 },
    { "gpus", OPT_NUMBER, AT(gpus), "N", "or whole machines with so many GPUs, chosen now", 1,
      GPUS_MAX },
    { "gpu-type", OPT_TEXT, AT(gpu_type), "MODELS", "of these models, separated by |", 0, 0 },
    OPTS_OUTPUT(struct reserve_opts),
    OPTS_COMMON(struct reserve_opts),
};
#undef AT

static int run_reserve(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct reserve_opts *o = opts_p;
    AUTO(buf_free) struct buf path = BUF(2048), body = BUF(2u << 20);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    if (o->tenant)
        json_put_str(&w, "tenant", str_of(o->tenant));
    if (lent_put_times(&o->times, &w, e) < 0)
        return -1;
    if (o->nodes) {
        json_begin(&w, "nodes", '[');
        if (o->nodes[0])
            json_put_str(&w, NULL, str_of(o->nodes));
        json_end(&w, ']');
    }
    if (o->gpus)
        json_put_u64(&w, "gpus", o->gpus);
    if (o->gpu_type)
        json_put_str(&w, "gpu_type", str_of(o->gpu_type));
    json_end(&w, '}');
    if (lent_path(PATH, args.v[0], NULL, &path, e) < 0 || buf_check(&body, e) < 0)
        return -1;
    struct call put = { .method = "PUT", .path = path.p, .body = buf_str(&body) };
    return cli_ask(c, &o->common, &put, print_made, e);
}

const struct command command_reserve = {
    .name = "reserve",
    .args = "NAME",
    .help = "reserve machines for a tenant in advance, or change that",
    .more = "    nightshift reserve class --tenant course --from 'tue 10:00' --for 2h --nodes "
            "pc[01-12]\n"
            "    nightshift reserve demo --tenant vision --for 1h --gpus 4 --gpu-type 'RTX 4090'\n"
            "    nightshift reserve class --for 3h              # the rest stays as it is\n",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(reserve_opts, struct reserve_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_reserve,
};
