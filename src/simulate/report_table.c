/* The report for a terminal. */
#include <math.h>

#include "simulate/report_grid.h"

#define TENANT_ROWS 100u

static void print_title(const struct report *r, struct buf *out)
{
    char span[TEXT_MAX], gpus[TEXT_MAX], jobs[TEXT_MAX], nodes[TEXT_MAX];
    AUTO(grid_free) struct grid name = grid_new(1, 1);
    grid_put_title(&name, 0, r->trace);
    buf_printf(out, "%s%s: %s jobs in %s on %s nodes with %s GPUs\n\n", name.cell[0],
               r->simulated ? " (simulated)" : "", text_count((double)r->jobs, jobs),
               text_duration((double)(r->end_ms - r->begin_ms) / 1000, span),
               text_count(r->nodes, nodes), text_count(r->gpus, gpus));
}

static void put_policy(struct grid *g, size_t row, const struct report *r, struct figures of)
{
    char text[TEXT_MAX];
    grid_put_name(g, row, r->policy);
    for (size_t f = 0; f < of.n; f++)
        grid_put(g, row, f + 1, of.at[f].text(figure_of(&of.at[f], r), text));
}

static void print_speed(const struct report *r, size_t n, struct buf *out)
{
    char text[TEXT_MAX];
    struct figures of = report_speed();
    AUTO(grid_free) struct grid g = grid_new(n + 1, of.n + 2);
    grid_put(&g, 0, 0, "policy");
    grid_put(&g, 0, of.n + 1, "unfinished");
    for (size_t f = 0; f < of.n; f++)
        grid_put(&g, 0, f + 1, of.at[f].name);
    for (size_t i = 0; i < n; i++) {
        put_policy(&g, i + 1, &r[i], of);
        grid_put(&g, i + 1, of.n + 1, text_count((double)r[i].unfinished, text));
    }
    grid_print(&g, out);
}

static void print_fairness(const struct report *r, size_t n, struct buf *out)
{
    struct figures of = report_fairness(&r[n - 1]);
    AUTO(grid_free) struct grid g = grid_new(n + 1, of.n + 1);
    grid_put(&g, 0, 0, "policy");
    for (size_t f = 0; f < of.n; f++)
        grid_put(&g, 0, f + 1, of.at[f].name);
    for (size_t i = 0; i < n; i++)
        put_policy(&g, i + 1, &r[i], of);
    buf_addc(out, '\n');
    grid_print(&g, out);
    if (r[n - 1].rho_note)
        buf_printf(out, "\nrho: %s\n", r[n - 1].rho_note);
}

static void print_tenants(const struct report *r, struct buf *out)
{
    static const char *const heads[] = { "tenant",       "weight",    "jobs",
                                         "GPU-hours",    "entitled",  "got / entitled",
                                         "satisfaction", "avg queue", "p99 queue" };
    char text[TEXT_MAX];
    AUTO(grid_free) struct grid g = grid_new((size_t)r->tenants + 1, ARRAY_LEN(heads));
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        grid_put(&g, 0, i, heads[i]);
    for (uint32_t i = 0; i < r->tenants; i++) {
        const struct report_tenant *t = &r->tenant[i];
        grid_put_name(&g, i + 1, t->name);
        grid_put(&g, i + 1, 1, text_weight(t->weight_milli, text));
        grid_put(&g, i + 1, 2, text_count((double)t->jobs, text));
        grid_put(&g, i + 1, 3, text_count(t->gpu_hours, text));
        grid_put(&g, i + 1, 4, text_count(t->entitled_hours, text));
        grid_put(&g, i + 1, 5, text_percent(report_got(t), text));
        grid_put(&g, i + 1, 6, text_percent(t->satisfaction, text));
        grid_put(&g, i + 1, 7, text_duration(t->avg_queue_s, text));
        grid_put(&g, i + 1, 8, text_duration(t->p99_queue_s, text));
    }
    buf_addc(out, '\n');
    grid_print(&g, out);
}

static void print_lent(const struct report *r, struct buf *out)
{
    char most[TEXT_MAX], part[TEXT_MAX], got[TEXT_MAX], outside[TEXT_MAX];
    if (!isfinite(r->harvest))
        return;
    buf_printf(out,
               "\nlent machines: %s GPU-hours worked, %s of the %s of a clairvoyant schedule; "
               "%s held outside their windows\n",
               text_count(r->harvest, got), text_percent(r->harvest_ratio, part),
               text_count(r->harvest_most, most), text_duration(r->outside_window_s, outside));
}

void report_table(const struct report *r, size_t n, struct buf *out)
{
    if (n == 0)
        return;
    print_title(&r[n - 1], out);
    print_speed(r, n, out);
    print_fairness(r, n, out);
    print_lent(&r[n - 1], out);
    if (r[n - 1].tenants > TENANT_ROWS)
        buf_printf(out, "\n%u tenants are too many to list here; --json has them.\n",
                   r[n - 1].tenants);
    else if (r[n - 1].tenants)
        print_tenants(&r[n - 1], out);
}
