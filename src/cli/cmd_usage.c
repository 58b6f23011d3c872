/* usage: who had how much, and whether the machines were shared as was agreed. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"
#include "cli/when.h"
#include "sys/term.h"

struct usage_opts {
    struct common common;
    const char *from, *to, *by;
    uint64_t days;
    bool fairness;
};

static const struct opt usage_opts[] = {
    { "by", OPT_TEXT, offsetof(struct usage_opts, by), "WHAT",
      "sums by day, tenant, user, model, with commas between", 0, 0 },
    { "fairness", OPT_FLAG, offsetof(struct usage_opts, fairness), NULL,
      "what tenants were entitled to, got, lent and borrowed", 0, 0 },
    { "from", OPT_TEXT, offsetof(struct usage_opts, from), "TIME", "2026-03-01, 12:30, 3d (ago)", 0,
      0 },
    { "to", OPT_TEXT, offsetof(struct usage_opts, to), "TIME", "until then (now)", 0, 0 },
    { "days", OPT_NUMBER, offsetof(struct usage_opts, days), "N", "the last N days (30)", 1, 3660 },
    { "output,o", OPT_CHOICE, offsetof(struct usage_opts, common.output),
      "table|wide|json|yaml|csv", "how to print", 0, 0 },
    { "no-headers", OPT_FLAG, offsetof(struct usage_opts, common.no_headers), NULL, "no titles", 0,
      0 },
    OPTS_COMMON(struct usage_opts),
};

/* ---- what is asked for ---- */

static const char *const bys[] = { "day", "tenant", "user", "model" };
#define BY_DAY 1u
#define BY_TENANT 2u
#define BY_DEFAULT 14u /* all but the day */

static int parse_by(const char *text, unsigned *out, struct err *e)
{
    struct str rest = str_of(text), word;
    bool more = true;
    unsigned by = 0;
    while (more) {
        more = str_cut(rest, ',', &word, &rest);
        size_t i = 0;
        while (i < ARRAY_LEN(bys) && !str_is(word, bys[i]))
            i++;
        if (i == ARRAY_LEN(bys)) {
            err_set(e, ERR_INVALID, "--by: '%.*s' is not known", STR_ARG(word));
            return err_hint(e, "some of day, tenant, user, model, with commas between");
        }
        by |= 1u << i;
    }
    *out = by;
    return 0;
}

/* What was not said is left to the server, which has the clock that counts. */
static int write_span(const struct usage_opts *o, struct buf *path, struct err *e)
{
    int64_t now = cli_now_ms(), to = now, from = 0;
    if (o->days && o->from)
        return err_set(e, ERR_INVALID, "--days and --from exclude each other");
    if (o->to && when_parse(o->to, now, &to, e) < 0)
        return -1;
    from = to - (int64_t)(o->days ? o->days : 30) * 86400000;
    if (o->from && when_parse(o->from, now, &from, e) < 0)
        return -1;
    if (from > to)
        return err_set(e, ERR_INVALID, "--from is after --to");
    if (o->from || o->days || o->to)
        buf_printf(path, "&from_ms=%lld", (long long)from);
    if (o->to)
        buf_printf(path, "&to_ms=%lld", (long long)to);
    return 0;
}

static const struct json *first_of(const struct json *list)
{
    return json_is_array(list) ? json_first(list) : NULL;
}

/* ---- hours ---- */

static int print_usage(const struct usage_opts *o, unsigned by, const struct json *rows,
                       struct err *e)
{
    static const struct column all[] = {
        { "DAY", false, false },  { "TENANT", false, true },    { "USER", false, true },
        { "MODEL", false, true }, { "GPU HOURS", true, false }, { "CPU HOURS", true, false },
        { "RUNS", true, false },
    };
    struct column shown[ARRAY_LEN(all)];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (i >= ARRAY_LEN(bys) || (by & (1u << i)))
            shown[n++] = all[i];
    AUTO(table_free_p) struct table *t = table_new(shown, n);
    for (const struct json *r = first_of(rows); r; r = json_next(rows, r)) {
        for (size_t i = 0; i < ARRAY_LEN(bys); i++) {
            struct str text = field_str(r, bys[i]);
            if (by & (1u << i))
                table_add(t, text.n ? text : STR("-"));
        }
        table_printf(t, "%.2f", field_f64(r, "gpu_hours"));
        table_printf(t, "%.2f", field_f64(r, "cpu_hours"));
        table_printf(t, "%llu", (unsigned long long)field_u64(r, "runs"));
    }
    return cli_print_table(t, &o->common, e);
}

/* ---- fairness ---- */

#define BAR 12u
#define BAR_FROM 100u /* columns of a terminal that has room for it */
#define SAME 0.005    /* hours: what the table would not show */

static const struct {
    const char *title, *field;
} fair_columns[] = {
    { "ENTITLED", "entitled_gpu_hours" }, { "GOT", "got_gpu_hours" },
    { "LENT", "lent_gpu_hours" },         { "BORROWED", "borrowed_gpu_hours" },
    { "FROZEN", "frozen_gpu_hours" },     { "WANTED", "wanted_gpu_hours" },
};
enum {
    ENTITLED,
    GOT,
    LENT,
    BORROWED,
    FAIR_COLUMNS = ARRAY_LEN(fair_columns)
};

struct fair_sums {
    double tenants[FAIR_COLUMNS];
    double got, idle, away, total, capacity;
};

static struct fair_sums sum_up(const struct json *root)
{
    const struct json *tenants = json_find(root, "tenants"),
                      *machines = json_find(root, "machines");
    struct fair_sums s = { 0 };
    for (const struct json *r = first_of(tenants); r; r = json_next(tenants, r))
        for (size_t i = 0; i < FAIR_COLUMNS; i++)
            s.tenants[i] += field_f64(r, fair_columns[i].field);
    for (const struct json *r = first_of(machines); r; r = json_next(machines, r)) {
        s.got += field_f64(r, "got_gpu_hours");
        s.idle += field_f64(r, "idle_gpu_hours");
        s.away += field_f64(r, "away_gpu_hours");
        s.total += field_f64(r, "total_gpu_hours");
        s.capacity += field_f64(r, "capacity_gpu_hours");
    }
    return s;
}

static bool about(double a, double b)
{
    return a - b < SAME && b - a < SAME;
}

/* What it got of what it was entitled to. */
static void add_part(struct table *t, double got, double entitled, bool bar)
{
    AUTO(buf_free) struct buf b = BUF(256);
    if (entitled < SAME) {
        table_addz(t, "-");
        return;
    }
    if (bar) {
        text_add_bar(&b, (uint64_t)(got * 1000), (uint64_t)(entitled * 1000), BAR);
        buf_addc(&b, ' ');
    }
    buf_printf(&b, "%3.0f%%", got / entitled * 100);
    table_add(t, buf_str(&b));
}

struct fair_look {
    bool by_day, bar;
};

static void add_fair(struct table *t, const struct json *r, const struct fair_look *look)
{
    double v[FAIR_COLUMNS];
    for (size_t i = 0; i < FAIR_COLUMNS; i++)
        v[i] = field_f64(r, fair_columns[i].field);
    if (look->by_day)
        table_add(t, field_str(r, "day"));
    table_add(t, field_str(r, "tenant"));
    for (size_t i = 0; i < FAIR_COLUMNS; i++) {
        table_printf(t, "%.2f", v[i]);
        if (i == GOT)
            add_part(t, v[GOT], v[ENTITLED], look->bar);
    }
}

/* What is not ours to see, together: the machines' sums less what was shown. */
static void add_others(struct table *t, const struct fair_sums *s, const struct fair_look *look)
{
    double entitled = s->capacity - s->tenants[ENTITLED], got = s->got - s->tenants[GOT];
    if (entitled < SAME && got < SAME)
        return;
    if (look->by_day)
        table_addz(t, "");
    table_addz(t, "(others)");
    table_printf(t, "%.2f", entitled);
    table_printf(t, "%.2f", got);
    add_part(t, got, entitled, look->bar);
    for (size_t i = LENT; i < FAIR_COLUMNS; i++)
        table_addz(t, "-");
}

static int print_sums(const struct fair_sums *s, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    bool all = about(s->tenants[ENTITLED], s->capacity) && about(s->tenants[GOT], s->got);
    bool right = about(s->total, s->got + s->idle + s->away) &&
                 about(s->capacity, s->got + s->idle) &&
                 (!all || about(s->tenants[LENT], s->tenants[BORROWED]));
    buf_printf(&b, "\n%s: %.2f GPU-hours of the machines = %.2f got + %.2f idle + %.2f away.\n",
               right ? "It sums up" : "It does not sum up", s->total, s->got, s->idle, s->away);
    buf_printf(&b, "All are entitled to what was got or idle, %.2f", s->capacity);
    if (all)
        buf_printf(&b, "; %.2f were borrowed, and %.2f lent", s->tenants[BORROWED],
                   s->tenants[LENT]);
    buf_addz(&b, ".\n");
    return cli_print(&b, e);
}

static int print_fairness(const struct usage_opts *o, unsigned by, const struct json *root,
                          struct err *e)
{
    const struct json *rows = json_find(root, "tenants");
    bool wide = cli_output(&o->common) == OUT_WIDE;
    struct fair_look look = { by & BY_DAY, wide || (term_is_tty(STDOUT_FILENO) &&
                                                    term_columns(STDOUT_FILENO) >= BAR_FROM) };
    struct column columns[FAIR_COLUMNS + 3];
    size_t n = 0;
    if (look.by_day)
        columns[n++] = (struct column){ "DAY", false, false };
    columns[n++] = (struct column){ "TENANT", false, true };
    for (size_t i = 0; i < FAIR_COLUMNS; i++) {
        columns[n++] = (struct column){ fair_columns[i].title, true, false };
        if (i == GOT)
            columns[n++] = (struct column){ "OF ENTITLED", !look.bar, false };
    }
    AUTO(table_free_p) struct table *t = table_new(columns, n);
    struct fair_sums s = sum_up(root);
    for (const struct json *r = first_of(rows); r; r = json_next(rows, r))
        add_fair(t, r, &look);
    add_others(t, &s, &look);
    return cli_print_table(t, &o->common, e) < 0 ? -1 : print_sums(&s, e);
}

/* ---- the command ---- */

static int write_path(const struct usage_opts *o, unsigned by, struct buf *out, struct err *e)
{
    buf_printf(out, "/v1/%s?format=%s", o->fairness ? "fairness" : "usage",
               cli_output(&o->common) == OUT_CSV ? "csv" : "json");
    if (o->fairness && (by & BY_DAY))
        buf_addz(out, "&by=day");
    for (size_t i = 0, n = 0; i < ARRAY_LEN(bys) && !o->fairness && o->by; i++)
        if (by & (1u << i))
            buf_printf(out, "%s%s", n++ ? "," : "&group=", bys[i]);
    return write_span(o, out, e);
}

static int run_usage(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct usage_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    unsigned by = o->fairness ? BY_TENANT : BY_DEFAULT;
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(buf_free) struct buf path = BUF(512);
    (void)args;
    if (o->by && parse_by(o->by, &by, e) < 0)
        return -1;
    if (o->fairness && (by & ~(BY_DAY | BY_TENANT)))
        return err_set(e, ERR_INVALID, "--fairness is of tenants: --by may be day or tenant");
    if (write_path(o, by, &path, e) < 0 ||
        cli_call(c, &(struct call){ .path = buf_str(&path).p }, &a, e) < 0)
        return -1;
    if (form == OUT_CSV)
        return cli_print(&a.body, e);
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    return o->fairness ? print_fairness(o, by, json_root(doc), e)
                       : print_usage(o, by, json_find(json_root(doc), "rows"), e);
}

const struct command command_usage = {
    .name = "usage",
    .args = "",
    .help = "GPU and CPU hours of groups and users, and whether that was fair",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(usage_opts, struct usage_opts),
    .run = run_usage,
};
