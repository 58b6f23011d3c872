#include "simulate/report.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "tests/lib/test.h"

#define LIMIT (4u << 20)
#define HOSTILE "</script><script>alert(1)</script>\"'&"

/* A week of a small lab, drawn from plain arithmetic; the same arrays serve every tenant. */
struct world {
    float used[REPORT_POINTS], waiting[REPORT_POINTS], demand[REPORT_POINTS], held[REPORT_POINTS];
    struct report_tenant tenant[64];
    struct report r[3];
};

static void fill_report(struct world *w, struct report *r, uint32_t tenants)
{
    *r = (struct report){ .trace = "lab", .policy = "nightshift", .simulated = true };
    r->jobs = 1843;
    r->unfinished = 3;
    r->nodes = 11;
    r->gpus = 18;
    r->end_ms = 7 * 86400000LL;
    r->step_ms = r->end_ms / REPORT_POINTS;
    r->avg_jct_s = 6200;
    r->avg_queue_s = 1300;
    r->p50_queue_s = 38.25;
    r->p90_queue_s = 5000;
    r->p99_queue_s = 22980;
    r->max_queue_s = 80000;
    r->utilisation = 0.7577;
    r->started_at_once = 0.61;
    r->satisfaction = 0.931;
    r->worst_tenant = 0.884;
    r->jain = 0.99;
    r->worst_rho = 1.78;
    r->unfair_pct = 5;
    r->makespan_s = 600000;
    r->freezes = 0.23;
    r->freezes_max = 4;
    r->wall_s = 0.5;
    r->used = w->used;
    r->waiting = w->waiting;
    r->demand = w->demand;
    r->tenant = w->tenant;
    r->tenants = tenants;
    r->points = REPORT_POINTS;
}

static struct world *world_new(uint32_t tenants)
{
    static const char *const names[] = { "vision", "language", "robotics", "teaching", "theory" };
    struct world *w = xcalloc(1, sizeof *w);
    for (uint32_t i = 0; i < REPORT_POINTS; i++) {
        float hour = (float)(i % 144) / 6;
        w->demand[i] = hour < 12 ? hour * 2.37f : (24 - hour) * 2.37f;
        w->used[i] = MIN(w->demand[i], 18.0f);
        w->waiting[i] = (w->demand[i] - w->used[i]) * 1.7f;
        w->held[i] = w->used[i] / (float)(tenants ? tenants : 1);
    }
    for (uint32_t i = 0; i < tenants; i++)
        w->tenant[i] = (struct report_tenant){ .name = names[i % ARRAY_LEN(names)],
                                               .weight_milli = 500 * (i + 1),
                                               .jobs = 100 + i,
                                               .gpu_hours = 90 + i,
                                               .entitled_hours = 100,
                                               .avg_queue_s = 61,
                                               .p99_queue_s = 4320,
                                               .avg_jct_s = 900,
                                               .held = w->held,
                                               .entitled = w->held };
    for (size_t i = 0; i < ARRAY_LEN(w->r); i++)
        fill_report(w, &w->r[i], tenants);
    w->r[0].policy = "fifo";
    w->r[1].policy = "sjf";
    return w;
}

static bool has(const struct buf *b, const char *text)
{
    return strstr(buf_str(b).p, text) != NULL;
}

static struct json_doc *parsed(const struct buf *b)
{
    struct err e = { 0 };
    struct json_doc *d = json_read(buf_str(b), &e);
    if (!d)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return d;
}

/* The data that the page's script reads. */
static struct json_doc *embedded(const struct buf *page)
{
    const char *from = strstr(buf_str(page).p, "id=\"data\">");
    CHECK(from);
    from += strlen("id=\"data\">");
    const char *to = strstr(from, "</script>");
    CHECK(to);
    struct err e = { 0 };
    struct json_doc *d = json_read((struct str){ from, (size_t)(to - from) }, &e);
    if (!d)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return d;
}

static void table_has_a_row_a_policy_and_a_tenant(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_table(w->r, 3, &b);
    CHECK(has(&b, "lab (simulated): 1,843 jobs in 7d on 11 nodes with 18 GPUs"));
    CHECK(has(&b, "\nfifo ") && has(&b, "\nsjf ") && has(&b, "\nnightshift "));
    CHECK(has(&b, "1h 43m") && has(&b, "6h 23m") && has(&b, "38s") && has(&b, "75.8 %"));
    CHECK(has(&b, "\nvision ") && has(&b, "0.5") && has(&b, "1h 12m") && has(&b, "91.0 %"));
    w->r[2].simulated = false;
    w->r[2].trace = "philly, pooled, jitter 100 %, shift 8784 h, seed 4294967295";
    buf_truncate(&b, 0);
    report_table(w->r, 3, &b);
    CHECK(!has(&b, "simulated") && has(&b, "shift 8784 h, seed 4294967295: 1,843 jobs"));
}

static void fairness_is_shown_and_rho_only_with_its_note(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_table(w->r, 3, &b);
    CHECK(has(&b, "satisfaction") && has(&b, "93.1 %") && has(&b, "88.4 %") && has(&b, "0.23"));
    CHECK(!has(&b, "rho") && !has(&b, "1.78"));
    report_page(w->r, 3, &b);
    CHECK(has(&b, "had <strong>93.1 %</strong>") && has(&b, "least <strong>88.4 %</strong>"));
    CHECK(has(&b, "frozen 0.23 times on average, at most 4 times") && !has(&b, "Worst rho"));
    for (int i = 0; i < 3; i++)
        w->r[i].rho_note = "mind <this>";
    buf_truncate(&b, 0);
    report_table(w->r, 3, &b);
    CHECK(has(&b, "worst rho") && has(&b, "1.78") && has(&b, "5.0 %") && has(&b, "mind <this>"));
    buf_truncate(&b, 0);
    report_page(w->r, 1, &b);
    CHECK(has(&b, "Worst rho <strong>1.78</strong>") && has(&b, "mind &lt;this&gt;"));
    buf_truncate(&b, 0);
    report_json(&w->r[2], &b);
    CHECK(has(&b, "\"rho_note\":\"mind <this>\""));
}

static void a_terminal_lists_a_hundred_tenants_at_most(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    struct report_tenant many[101];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = w->tenant[0];
    w->r[2].tenant = many;
    w->r[2].tenants = 100;
    report_table(w->r, 3, &b);
    CHECK(has(&b, "\nvision ") && !has(&b, "too many"));
    buf_truncate(&b, 0);
    w->r[2].tenants = 101;
    report_table(w->r, 3, &b);
    CHECK(!has(&b, "\nvision ") && has(&b, "101 tenants are too many to list here"));
}

static void table_lines_end_in_one_column(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    w->tenant[1].name = "Straße 4 – Löwe";
    w->tenant[2].name = "a name that is much longer than any column ought to be";
    w->tenant[3].name = "esc\033[2J\xc2\x9b\xff";
    w->tenant[4].name = NULL;
    report_table(w->r, 3, &b);
    CHECK(has(&b, "a name that is much longer …") && has(&b, "esc?[2J?"));
    CHECK(!has(&b, "\033") && !has(&b, "\xc2\x9b") && !has(&b, "\xff"));
    struct str rest = buf_str(&b), line;
    size_t width = 0;
    while (str_next_line(&rest, &line)) {
        size_t columns = 0;
        for (size_t i = 0; i < line.n; i++)
            columns += ((unsigned char)line.p[i] & 0xc0) != 0x80;
        if (width && columns && memchr(line.p, ':', line.n) == NULL)
            CHECK_INT(columns, width);
        width = memchr(line.p, ':', line.n) ? 0 : columns;
    }
}

static double number_at(const struct json *o, const char *key)
{
    struct err e = { 0 };
    double v = -1;
    CHECK(json_find(o, key));
    CHECK(json_get_f64(o, key, -1e18, 1e18, &v, &e) == 0);
    return v;
}

static void json_has_every_figure_as_a_number(void)
{
    static const char *const keys[] = {
        "jobs",         "unfinished",   "nodes",           "gpus",
        "avg_jct_s",    "avg_queue_s",  "p50_queue_s",     "p90_queue_s",
        "p99_queue_s",  "max_queue_s",  "utilisation",     "wall_s",
        "satisfaction", "jain",         "started_at_once", "makespan_s",
        "freezes",      "worst_tenant", "worst_rho",       "unfair_pct",
        "freezes_max",  "p50_cover",    "p90_cover",       "interval_width_ratio",
    };
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    w->tenant[0].name = HOSTILE;
    report_json(&w->r[2], &b);
    AUTO(json_free_p) struct json_doc *d = parsed(&b);
    const struct json *o = json_root(d), *tenants = json_find(o, "tenants");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        CHECK(number_at(o, keys[i]) >= 0);
    CHECK(fabs(number_at(o, "p50_queue_s") - 38.25) < 1e-9);
    CHECK_INT(json_len(tenants), 5);
    struct err e;
    struct str name = { 0 };
    bool simulated = false;
    CHECK(json_get_str(json_first(tenants), "name", 100, &name, &e) == 0 && str_is(name, HOSTILE));
    CHECK(json_get_bool(o, "simulated", &simulated, &e) == 0 && simulated);
    CHECK(fabs(number_at(json_first(tenants), "weight") - 0.5) < 1e-9);
}

static void json_series_has_every_point(void)
{
    AUTO(free_p) struct world *w = world_new(2);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_json_series(&w->r[2], &b);
    AUTO(json_free_p) struct json_doc *d = parsed(&b);
    const struct json *o = json_root(d);
    CHECK_INT(json_len(json_find(o, "used")), REPORT_POINTS);
    CHECK_INT(json_len(json_find(json_first(json_find(o, "tenants")), "entitled")), REPORT_POINTS);
}

static void what_is_not_finite_is_unknown(void)
{
    AUTO(free_p) struct world *w = world_new(2);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    struct report *r = &w->r[2];
    r->avg_queue_s = r->p99_queue_s = r->utilisation = NAN;
    r->avg_jct_s = INFINITY;
    r->worst_rho = r->p90_cover = r->satisfaction = NAN;
    w->tenant[0].entitled_hours = 0;
    w->used[3] = NAN;
    w->demand[4] = -INFINITY;
    w->held[5] = INFINITY;
    report_table(w->r, 3, &b);
    report_json(r, &b);
    report_json_series(r, &b);
    report_page(w->r, 3, &b);
    CHECK(has(&b, "\"avg_jct_s\":null") && has(&b, "–"));
    CHECK(has(&b, "\"p90_cover\":null") && has(&b, "\"worst_rho\":null"));
    static const char *const leaks[] = { ":nan", ",nan", " nan", ">nan",
                                         ":inf", ",inf", ">inf", "-inf" };
    for (size_t i = 0; i < ARRAY_LEN(leaks); i++)
        CHECK(!has(&b, leaks[i]));
    AUTO(json_free_p) struct json_doc *d = embedded(&b);
    CHECK_INT(json_len(json_find(json_root(d), "used")), REPORT_POINTS);
}

static void writes_reports_that_hold_nothing(void)
{
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    struct report none = { 0 }, empty = { .trace = "empty", .policy = "fifo" };
    report_table(NULL, 0, &b);
    CHECK_INT(b.n, 0);
    report_page(NULL, 0, &b);
    CHECK(has(&b, "nothing to report") && has(&b, "</html>"));
    for (int i = 0; i < 2; i++) {
        const struct report *r = i ? &empty : &none;
        report_table(r, 1, &b);
        report_json_series(r, &b);
        buf_truncate(&b, 0);
        report_page(r, 1, &b);
        AUTO(json_free_p) struct json_doc *data = embedded(&b);
        CHECK_INT(json_len(json_find(json_root(data), "used")), 0);
        CHECK(has(&b, "</html>") && !has(&b, "data-chart=\"use\""));
        buf_truncate(&b, 0);
        report_json(r, &b);
        AUTO(json_free_p) struct json_doc *d = parsed(&b);
        CHECK_INT(json_len(json_find(json_root(d), "tenants")), 0);
    }
}

static void page_has_headline_tables_and_charts(void)
{
    static const char *const wanted[] = {
        "<h1>lab <span class=\"tag\">simulated</span></h1>",
        "1,843 jobs of 5 tenants in 7 days, on 11 machines with 18 GPUs",
        "<dd>75.8 %</dd>",
        "<dd>6h 23m</dd>",
        "data-chart=\"use\"",
        "data-chart=\"queue\"",
        "data-chart=\"share\"",
        "data-slot=\"4\"",
        "<table class=\"tenants\">",
        "<table class=\"policies\">",
        "prefers-color-scheme: dark",
        "<noscript>",
    };
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_page(w->r, 3, &b);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!has(&b, wanted[i]))
            test_fail(__FILE__, __LINE__, "no '%s'", wanted[i]);
    CHECK(b.n < 600000);
    buf_truncate(&b, 0);
    report_page(&w->r[2], 1, &b);
    CHECK(!has(&b, "<table class=\"policies\">") && !has(&b, "data-chart=\"policies"));
}

static void page_asks_nobody_for_anything(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_page(w->r, 3, &b);
    CHECK(has(&b, "default-src 'none'"));
    CHECK(!has(&b, "src=") && !has(&b, "href=") && !has(&b, "@import") && !has(&b, "url(http"));
    CHECK(!has(&b, "fetch(") && !has(&b, "https:"));
}

static size_t count(const struct buf *b, const char *text)
{
    size_t n = 0;
    for (const char *p = buf_str(b).p; (p = strstr(p, text)); p++)
        n++;
    return n;
}

static void no_name_becomes_markup(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    AUTO(buf_free) struct buf plain = BUF(LIMIT), b = BUF(LIMIT);
    report_page(w->r, 3, &plain);
    w->tenant[2].name = HOSTILE;
    for (size_t i = 0; i < 3; i++)
        w->r[i].trace = w->r[i].policy = "<!--" HOSTILE;
    report_page(w->r, 3, &b);
    CHECK(!has(&b, "<script>alert") && !has(&b, "<!--"));
    CHECK(has(&b, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
    CHECK_INT(count(&b, "<script"), count(&plain, "<script"));
    CHECK_INT(count(&b, "</script"), count(&plain, "</script"));
    AUTO(json_free_p) struct json_doc *d = embedded(&b);
    const struct json *t = json_at(json_find(json_root(d), "tenants"), 2);
    struct str name = { 0 };
    struct err e;
    CHECK(json_get_str(t, "name", 100, &name, &e) == 0 && str_is(name, HOSTILE));
}

static void many_tenants_are_summed_up_in_charts(void)
{
    AUTO(free_p) struct world *w = world_new(64);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_page(w->r, 3, &b);
    AUTO(json_free_p) struct json_doc *d = embedded(&b);
    const struct json *tenants = json_find(json_root(d), "tenants");
    struct str name = { 0 };
    struct err e;
    CHECK_INT(json_len(tenants), 8);
    CHECK(json_get_str(json_at(tenants, 7), "name", 100, &name, &e) == 0);
    CHECK(str_is(name, "57 others"));
    CHECK_INT(count(&b, "data-k=\"Weight\""), 64);
    CHECK(b.n < 600000);
}

static void long_replays_count_days(void)
{
    AUTO(free_p) struct world *w = world_new(1);
    AUTO(buf_free) struct buf b = BUF(LIMIT);
    report_page(&w->r[2], 1, &b);
    CHECK(has(&b, "highest on Mon 12:00") && has(&b, "\"weekdays\":true"));
    w->r[2].end_ms = 28 * 86400000LL;
    w->r[2].step_ms *= 4;
    buf_truncate(&b, 0);
    report_page(&w->r[2], 1, &b);
    CHECK(has(&b, "highest on day 3, 00:00") && has(&b, "\"weekdays\":false"));
}

static void too_small_a_buffer_is_noticed(void)
{
    AUTO(free_p) struct world *w = world_new(5);
    struct err e;
    AUTO(buf_free) struct buf b = BUF(40000);
    report_page(w->r, 3, &b);
    CHECK(buf_check(&b, &e) < 0 && e.code == ERR_TOO_LARGE);
}

/* ---- two worlds ---- */

static void two_worlds_stand_side_by_side(void)
{
    AUTO(free_p) struct world *w = world_new(3);
    AUTO(buf_free) struct buf table = BUF(LIMIT), json = BUF(LIMIT), page = BUF(LIMIT);
    static const char *const changes[] = { "nodes+=2*rtx4090", HOSTILE };
    const struct report_whatif x = { w->r, changes, HOSTILE, 2 };
    struct err e;
    fill_report(w, &w->r[0], 3);
    fill_report(w, &w->r[1], 3);
    w->r[1].avg_queue_s = 650;
    w->r[1].satisfaction = 0.951;
    w->r[1].gpus = 20;
    whatif_table(&x, &table);
    CHECK(strstr(buf_str(&table).p, "what if: nodes+=2*rtx4090\n"));
    CHECK(strstr(buf_str(&table).p, "−50 %") && strstr(buf_str(&table).p, "+2.0 points"));
    whatif_json(&x, &json);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&json), &e);
    CHECK(doc && json_is_object(json_find(json_root(doc), "before")) &&
          json_is_object(json_find(json_root(doc), "after")));
    whatif_page(&x, &page);
    CHECK(buf_check(&page, &e) == 0 && !strstr(buf_str(&page).p, "alert(1)</script>"));
    CHECK(strstr(buf_str(&page).p, "data-chart=\"tenant-both\""));
}

/* A figure that is not known, or was 0, has no change in percent. */
static void what_cannot_be_compared_is_shown_as_unknown(void)
{
    AUTO(free_p) struct world *w = world_new(1);
    AUTO(buf_free) struct buf table = BUF(LIMIT);
    static const char *const changes[] = { "load=2" };
    const struct report_whatif x = { w->r, changes, "", 1 };
    fill_report(w, &w->r[0], 0);
    fill_report(w, &w->r[1], 0);
    w->r[0].satisfaction = NAN;
    w->r[0].p50_queue_s = 0;
    whatif_table(&x, &table);
    CHECK(strstr(buf_str(&table).p, "–   93.1 %    ") && !strstr(buf_str(&table).p, " inf"));
}

static const struct test tests[] = {
    { "two worlds stand side by side", two_worlds_stand_side_by_side },
    { "what cannot be compared is shown as unknown", what_cannot_be_compared_is_shown_as_unknown },
    { "a table has a row a policy and a row a tenant", table_has_a_row_a_policy_and_a_tenant },
    { "fairness is shown, and rho only with its note",
      fairness_is_shown_and_rho_only_with_its_note },
    { "a terminal lists a hundred tenants at most", a_terminal_lists_a_hundred_tenants_at_most },
    { "a table is aligned whatever the names", table_lines_end_in_one_column },
    { "JSON has every figure as a number", json_has_every_figure_as_a_number },
    { "JSON series have every point", json_series_has_every_point },
    { "what is not finite is shown as unknown", what_is_not_finite_is_unknown },
    { "a report may hold nothing", writes_reports_that_hold_nothing },
    { "a page has its headline, tables and charts, and is small",
      page_has_headline_tables_and_charts },
    { "a page asks nobody for anything", page_asks_nobody_for_anything },
    { "no name becomes markup", no_name_becomes_markup },
    { "many tenants are summed up in charts and listed in the table",
      many_tenants_are_summed_up_in_charts },
    { "a week has weekdays, a month has numbered days", long_replays_count_days },
    { "too small a buffer is noticed", too_small_a_buffer_is_noticed },
};
TEST_CASES(tests)
