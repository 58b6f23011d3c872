/* What changes between two worlds: for a terminal, and as a page for those who decide. */
#include <math.h>
#include <stdio.h>

#include "simulate/report_grid.h"

#define TENANT_ROWS 100u
#define NOTHING 0.0005 /* of a figure: too little to call it a change */

/* ---- the figures ---- */

size_t report_changes(const struct report *a, const struct report *b,
                      struct change out[static CHANGES_MAX])
{
    const struct change all[] = {
        { "GPUs", a->gpus, b->gpus, text_count, 0 },
        { "Jobs", (double)a->jobs, (double)b->jobs, text_count, 0 },
        { "Wait, mean", a->avg_queue_s, b->avg_queue_s, text_duration, -1 },
        { "Wait, median", a->p50_queue_s, b->p50_queue_s, text_duration, -1 },
        { "Wait, 9 of 10", a->p90_queue_s, b->p90_queue_s, text_duration, -1 },
        { "Wait, 99 of 100", a->p99_queue_s, b->p99_queue_s, text_duration, -1 },
        { "Started at once", a->started_at_once, b->started_at_once, text_percent, 1 },
        { "Submit to end, mean", a->avg_jct_s, b->avg_jct_s, text_duration, -1 },
        { "GPUs in use", a->utilisation, b->utilisation, text_percent, 0 },
        { "Had of what was due", a->satisfaction, b->satisfaction, text_percent, 1 },
        { "The same, worst tenant", a->worst_tenant, b->worst_tenant, text_percent, 1 },
        { "Freezes a job", a->freezes, b->freezes, text_ratio, -1 },
        { "First submit to last end", a->makespan_s, b->makespan_s, text_duration, -1 },
        { "Unfinished jobs", (double)a->unfinished, (double)b->unfinished, text_count, -1 },
    };
    _Static_assert(ARRAY_LEN(all) <= CHANGES_MAX, "the callers have room for them");
    memcpy(out, all, sizeof all);
    return ARRAY_LEN(all);
}

size_t tenant_changes(const struct report_tenant *before, const struct report_tenant *after,
                      struct change out[static CHANGES_MAX])
{
    static const struct report_tenant none = { .satisfaction = NAN };
    const struct report_tenant *a = before ? before : &none, *b = after ? after : &none;
    const struct change all[] = {
        { "Wait, mean", a->avg_queue_s, b->avg_queue_s, text_duration, -1 },
        { "Wait, 9 of 10", a->p90_queue_s, b->p90_queue_s, text_duration, -1 },
        { "Got, GPU-h", a->gpu_hours, b->gpu_hours, text_count, 0 },
        { "Entitled, GPU-h", a->entitled_hours, b->entitled_hours, text_count, 0 },
        { "Had of what was due", a->satisfaction, b->satisfaction, text_percent, 1 },
        { "Freezes", a->freezes, b->freezes, text_count, -1 },
    };
    _Static_assert(ARRAY_LEN(all) <= CHANGES_MAX, "the callers have room for them");
    memcpy(out, all, sizeof all);
    return ARRAY_LEN(all);
}

const struct report_tenant *tenant_named(const struct report *r, const char *name)
{
    for (uint32_t i = 0; name && i < r->tenants; i++)
        if (r->tenant[i].name && strcmp(r->tenant[i].name, name) == 0)
            return &r->tenant[i];
    return NULL;
}

static bool unchanged(const struct change *c)
{
    return fabs(c->after - c->before) <= NOTHING * fmax(fabs(c->before), fabs(c->after));
}

int change_verdict(const struct change *c)
{
    if (!isfinite(c->before) || !isfinite(c->after) || unchanged(c))
        return 0;
    return c->after > c->before ? c->better : -c->better;
}

const char *text_change(const struct change *c, char out[static TEXT_MAX])
{
    bool points = c->text == text_percent;
    double by = points ? (c->after - c->before) * 100 : 100 * (c->after / c->before - 1);
    if (isfinite(c->before) && isfinite(c->after) && unchanged(c))
        snprintf(out, TEXT_MAX, "none");
    else if (!isfinite(by) || fabs(by) > 1e6)
        snprintf(out, TEXT_MAX, "%s", TEXT_UNKNOWN);
    else {
        long long tenths = llround(fabs(by) * 10);
        const char *sign = by < 0 ? "−" : "+";
        if (points || tenths < 100)
            snprintf(out, TEXT_MAX, "%s%lld.%lld%s", sign, tenths / 10, tenths % 10,
                     points ? " points" : " %");
        else
            snprintf(out, TEXT_MAX, "%s%lld %%", sign, (tenths + 5) / 10);
    }
    return out;
}

/* ---- for a terminal ---- */

static void put_row(struct grid *g, size_t row, size_t col, const struct change *c)
{
    char text[TEXT_MAX];
    grid_put(g, row, col, c->text(c->before, text));
    grid_put(g, row, col + 1, c->text(c->after, text));
    grid_put(g, row, col + 2, text_change(c, text));
}

static void print_figures(const struct report_whatif *x, struct buf *out)
{
    struct change c[CHANGES_MAX];
    size_t n = report_changes(&x->world[0], &x->world[1], c);
    AUTO(grid_free) struct grid g = grid_new(n + 1, 4);
    grid_put(&g, 0, 1, "before");
    grid_put(&g, 0, 2, "after");
    grid_put(&g, 0, 3, "change");
    for (size_t i = 0; i < n; i++) {
        grid_put(&g, i + 1, 0, c[i].words);
        put_row(&g, i + 1, 1, &c[i]);
    }
    grid_print(&g, out);
}

static void print_tenant(const struct report_whatif *x, const struct report_tenant *after,
                         struct buf *out)
{
    struct change c[CHANGES_MAX];
    size_t n = tenant_changes(tenant_named(&x->world[0], after->name), after, c);
    AUTO(grid_free) struct grid g = grid_new(n + 1, 4);
    grid_put_name(&g, 0, after->name);
    for (size_t i = 0; i < n; i++) {
        char words[CELL_BYTES];
        snprintf(words, sizeof words, "    %s", c[i].words);
        grid_put(&g, i + 1, 0, words);
        put_row(&g, i + 1, 1, &c[i]);
    }
    buf_addc(out, '\n');
    grid_print(&g, out);
}

void whatif_table(const struct report_whatif *x, struct buf *out)
{
    const struct report *after = &x->world[1];
    AUTO(grid_free) struct grid name = grid_new(1, 1);
    grid_put_title(&name, 0, x->world[0].trace);
    buf_printf(out, "%s%s\n", name.cell[0], after->simulated ? " (simulated)" : "");
    for (size_t i = 0; i < x->changes; i++) {
        grid_put_title(&name, 0, x->change[i]);
        buf_printf(out, "what if: %s\n", name.cell[0]);
    }
    buf_addc(out, '\n');
    print_figures(x, out);
    if (after->tenants > TENANT_ROWS)
        buf_printf(out, "\n%u tenants are too many to list here; --json has them.\n",
                   after->tenants);
    for (uint32_t i = 0; i < after->tenants && after->tenants <= TENANT_ROWS; i++)
        print_tenant(x, &after->tenant[i], out);
}

/* ---- as a page ---- */

static void put_change_cells(struct buf *out, const struct change *c)
{
    static const char *const verdicts[] = { " class=\"bad\"", "", " class=\"good\"" };
    static const char *const words[] = { " worse", "", " better" };
    char text[TEXT_MAX];
    int verdict = change_verdict(c) + 1;
    buf_printf(out, "<td data-k=\"Before\">%s</td>", c->text(c->before, text));
    buf_printf(out, "<td data-k=\"After\">%s</td>", c->text(c->after, text));
    buf_printf(out, "<td data-k=\"Change\"%s>%s%s</td></tr>\n", verdicts[verdict],
               text_change(c, text), words[verdict]);
}

static const char table_head[] =
    "<th scope=\"col\">Before</th><th scope=\"col\">After</th><th scope=\"col\">Change</th>"
    "</tr></thead>\n<tbody>\n";

static void put_figures(const struct report_whatif *x, struct buf *out)
{
    struct change c[CHANGES_MAX];
    size_t n = report_changes(&x->world[0], &x->world[1], c);
    buf_addz(out, "<section>\n<h2>What changes</h2>\n<p>The same jobs, replayed twice: with the "
                  "machines and rules as they were, and with the changes.</p>\n"
                  "<table class=\"changes\">\n<thead><tr><th scope=\"col\">Figure</th>");
    buf_addz(out, table_head);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "<tr><th scope=\"row\">%s</th>", c[i].words);
        put_change_cells(out, &c[i]);
    }
    buf_addz(out, "</tbody>\n</table>\n</section>\n");
}

static void put_tenants(const struct report_whatif *x, struct buf *out)
{
    const struct report *after = &x->world[1];
    struct change c[CHANGES_MAX];
    buf_addz(out, "<section>\n<h2>For each tenant</h2>\n<p>A tenant is entitled to its weighted "
                  "share of the GPUs, moment by moment, but never to more than it asks for.</p>\n"
                  "<table class=\"changes\">\n<thead><tr><th scope=\"col\">Tenant</th>");
    buf_addz(out, table_head);
    for (uint32_t i = 0; i < MIN(after->tenants, TENANT_ROWS); i++) {
        const struct report_tenant *t = &after->tenant[i];
        size_t n = tenant_changes(tenant_named(&x->world[0], t->name), t, c);
        buf_addz(out, "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"4\">");
        html_text(out, t->name);
        buf_addz(out, "</th></tr>\n");
        for (size_t k = 0; k < n; k++) {
            buf_printf(out, "<tr><th scope=\"row\">%s</th>", c[k].words);
            put_change_cells(out, &c[k]);
        }
    }
    buf_addz(out, "</tbody>\n</table>\n");
    if (after->tenants > TENANT_ROWS)
        buf_printf(out, "<p>… and %u more.</p>\n", after->tenants - TENANT_ROWS);
    buf_addz(out, "</section>\n");
}

static void put_title(const struct report_whatif *x, struct buf *out)
{
    const struct report *b = &x->world[0], *a = &x->world[1];
    char was[TEXT_MAX], is[TEXT_MAX];
    buf_addz(out, "<header>\n<p class=\"brand\">Nightshift</p>\n<h1>What if ");
    html_text(out, x->words);
    buf_addz(out, "?</h1>\n<p class=\"lead\">");
    html_text(out, b->trace);
    if (a->simulated)
        buf_addz(out, " <span class=\"tag\">simulated</span>");
    buf_addz(out, ": ");
    page_plural(out, (double)a->jobs, "job");
    buf_addz(out, " of ");
    page_plural(out, a->tenants, "tenant");
    buf_printf(out, ". On average a job would wait <strong>%s</strong> instead of %s; ",
               text_duration(a->avg_queue_s, is), text_duration(b->avg_queue_s, was));
    buf_printf(out, "9 of 10 would wait less than <strong>%s</strong> instead of %s. ",
               text_duration(a->p90_queue_s, is), text_duration(b->p90_queue_s, was));
    buf_printf(out,
               "The tenants would have <strong>%s</strong> of what is due to them instead of %s, "
               "and the GPUs would be in use for ",
               text_percent(a->satisfaction, is), text_percent(b->satisfaction, was));
    buf_printf(out, "<strong>%s</strong> of the time instead of %s.</p>\n</header>\n",
               text_percent(a->utilisation, is), text_percent(b->utilisation, was));
}

static void put_asked(const struct report_whatif *x, struct buf *out)
{
    buf_addz(out, "<p class=\"asked\">Asked as ");
    for (size_t i = 0; i < x->changes; i++) {
        buf_addz(out, i ? ", <code>" : "<code>");
        html_text(out, x->change[i]);
        buf_addz(out, "</code>");
    }
    buf_addz(out, ". More GPUs tend to bring more jobs; this shows the same jobs.</p>\n");
}

static void put_charts(const struct report *after, struct buf *out)
{
    AUTO(buf_free) struct buf summary = BUF(4096);
    struct page_tenants shown = page_tenants(after);
    if (!after->points)
        return;
    buf_addz(&summary, "Thin: before. Thick: with the changes.");
    page_frame(out, "policies-queue", "Jobs waiting", &summary, false);
    buf_addz(&summary, "GPUs held, before and with the changes.");
    page_frame(out, "policies-use", "GPUs in use", &summary, false);
    buf_addz(out, "<section class=\"drawn\">\n<h2>GPUs of each tenant</h2>\n"
                  "<p>Filled: with the changes. Line: before.</p>\n<div class=\"multiples\">\n");
    for (uint32_t i = 0; i < shown.n; i++) {
        const char *name = after->tenant[shown.shown[i]].name;
        buf_addz(out, "<div>\n<h3>");
        html_text(out, name);
        buf_printf(out,
                   "</h3>\n<div class=\"legend\"></div>\n<div class=\"plot small\" "
                   "data-chart=\"tenant-both\" data-slot=\"%u\" tabindex=\"0\" role=\"img\" "
                   "aria-label=\"GPUs held by ",
                   i);
        html_text(out, name);
        buf_addz(out, " before and with the changes. Arrow keys move through time.\"></div>\n"
                      "</div>\n");
    }
    buf_addz(out, "</div>\n</section>\n");
}

void whatif_page(const struct report_whatif *x, struct buf *out)
{
    struct report world[2] = { x->world[0], x->world[1] };
    world[0].policy = "before";
    world[1].policy = "after";
    page_begin(&world[1], out);
    put_title(x, out);
    buf_addz(out, "<noscript><p>The charts are drawn by a script; the figures and tables are "
                  "complete without it.</p></noscript>\n");
    put_figures(x, out);
    put_asked(x, out);
    put_charts(&world[1], out);
    if (world[1].tenants)
        put_tenants(x, out);
    page_end(world, 2, out);
}
