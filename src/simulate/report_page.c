/* The report as one HTML file: headline, tables and text are written here and need no script; the
 * charts are drawn by page.js from the data that report_chart.c embeds. */
#include "simulate/report_parts.h"

#include <math.h>

#define TENANT_ROWS 200u
#define BAR_FULL 1.5 /* got / entitled at the right end of a bar; page.css marks 1 at two thirds */

/* Made from page.css and page.js by the build, a string literal a line. */
static const char style[] =
#include "page.css.inc"
    ;
static const char script[] =
#include "page.js.inc"
    ;

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n";

void page_begin(const struct report *r, struct buf *out)
{
    buf_addz(out, head);
    buf_addz(out, "<title>");
    html_text(out, r ? r->trace : NULL);
    buf_addz(out, " · Nightshift</title>\n<style>\n");
    buf_addz(out, style);
    buf_addz(out, "</style>\n<script>document.documentElement.className = 'js'</script>\n"
                  "</head>\n<body>\n<main>\n");
}

void page_plural(struct buf *out, double n, const char *one)
{
    char text[TEXT_MAX];
    buf_printf(out, "%s %s%s", text_count(n, text), one, n > 0.99 && n < 1.01 ? "" : "s");
}

static void put_span(const struct report *r, struct buf *out)
{
    char text[TEXT_MAX];
    double s = (double)(r->end_ms - r->begin_ms) / 1000;
    buf_addz(out, " in ");
    if (s >= 86400)
        page_plural(out, s / 86400, "day");
    else
        buf_addz(out, text_duration(s, text));
    buf_addz(out, ", on ");
}

static void put_title(const struct report *r, struct buf *out)
{
    buf_addz(out, "<header>\n<p class=\"brand\">Nightshift</p>\n<h1>");
    html_text(out, r->trace);
    if (r->simulated)
        buf_addz(out, " <span class=\"tag\">simulated</span>");
    buf_addz(out, "</h1>\n<p class=\"lead\">");
    page_plural(out, (double)r->jobs, "job");
    buf_addz(out, " of ");
    page_plural(out, r->tenants, "tenant");
    put_span(r, out);
    page_plural(out, r->nodes, "machine");
    buf_addz(out, " with ");
    page_plural(out, r->gpus, "GPU");
    buf_addz(out, ", scheduled by <strong>");
    html_text(out, r->policy);
    buf_addz(out, "</strong>.");
    if (r->simulated)
        buf_addz(out, " The jobs are simulated: a generator made them, nobody submitted them.");
    buf_addz(out, "</p>\n</header>\n");
}

static void put_tile(struct buf *out, const char *name, const char *value, const char *note)
{
    buf_printf(out, "<div><dt>%s</dt><dd>%s</dd><dd class=\"note\">%s</dd></div>\n", name, value,
               note);
}

static void put_headline(const struct report *r, struct buf *out)
{
    char a[TEXT_MAX], b[TEXT_MAX], note[TEXT_MAX * 3];
    struct buf line = BUF(sizeof note);
    buf_addz(out, "<dl class=\"tiles\">\n");
    buf_printf(&line, "%s of %s, on average", text_count(r->utilisation * r->gpus, a),
               text_count(r->gpus, b));
    put_tile(out, "GPUs in use", text_percent(r->utilisation, a), buf_str(&line).p);
    buf_truncate(&line, 0);
    if (r->unfinished)
        buf_printf(&line, "%s unfinished", text_count((double)r->unfinished, a));
    else
        buf_addz(&line, "all finished");
    put_tile(out, "Jobs", text_count((double)r->jobs, a), buf_str(&line).p);
    put_tile(out, "Started at once", text_percent(r->started_at_once, a), "of the jobs");
    put_tile(out, "Median wait", text_duration(r->p50_queue_s, a), "half waited less");
    put_tile(out, "Longest waits", text_duration(r->p99_queue_s, a), "1 in 100 waited longer");
    buf_addz(out, "</dl>\n");
    buf_free(&line);
}

/* The bar is decoration; the figure beside it says the same. */
static void put_ratio(struct buf *out, double got)
{
    char text[TEXT_MAX];
    double part = isfinite(got) ? fmin(fmax(got / BAR_FULL, 0), 1) : 0;
    buf_printf(out,
               "<td data-k=\"Got / entitled\"><span class=\"ratio\"><span class=\"bar\" "
               "aria-hidden=\"true\"><i style=\"width:%ld%%\"></i></span>"
               "<span>%s</span></span></td>",
               lround(part * 100), text_percent(got, text));
}

static void put_cell(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "<td data-k=\"%s\">%s</td>", name, value);
}

static void put_tenant(const struct report_tenant *t, uint32_t colour, struct buf *out)
{
    char text[TEXT_MAX];
    buf_printf(out, "<tr><th scope=\"row\"><i class=\"dot\" style=\"color:var(--t%u)\"></i>",
               MIN(colour, PAGE_COLOURS - 1));
    html_text(out, t->name);
    buf_addz(out, "</th>");
    put_cell(out, "Weight", text_weight(t->weight_milli, text));
    put_cell(out, "Jobs", text_count((double)t->jobs, text));
    put_cell(out, "Entitled, GPU-h", text_count(t->entitled_hours, text));
    put_cell(out, "Got, GPU-h", text_count(t->gpu_hours, text));
    put_ratio(out, report_got(t));
    put_cell(out, "Wait, mean", text_duration(t->avg_queue_s, text));
    put_cell(out, "Wait, 99 of 100", text_duration(t->p99_queue_s, text));
    buf_addz(out, "</tr>\n");
}

/* The figures of the main policy in words; a comparison shows them side by side as well. */
static void put_fair_words(const struct report *r, struct buf *out)
{
    char all[TEXT_MAX], worst[TEXT_MAX], text[TEXT_MAX];
    buf_printf(out,
               "<p>Hour by hour, the tenants had <strong>%s</strong> of what they were entitled "
               "to, the one with the least <strong>%s</strong>. ",
               text_percent(r->satisfaction, all), text_percent(r->worst_tenant, worst));
    if (r->freezes_max)
        buf_printf(out, "A job was frozen %s times on average, at most %u times.</p>\n",
                   text_ratio(r->freezes, text), r->freezes_max);
    else
        buf_addz(out, "No job was frozen.</p>\n");
    if (!r->rho_note)
        return;
    buf_printf(out, "<p>Worst rho <strong>%s</strong>, ", text_ratio(r->worst_rho, text));
    buf_printf(out, "unfair to <strong>%s</strong> of the jobs. ",
               text_of_100(r->unfair_pct, text));
    html_text(out, r->rho_note);
    buf_addz(out, "</p>\n");
}

static void put_fairness(const struct report *r, struct buf *out)
{
    struct page_tenants shown = page_tenants(r);
    if (!r->tenants)
        return;
    buf_addz(out,
             "<section>\n<h2>Who got what</h2>\n<p>A tenant is entitled to its weighted share of "
             "the GPUs, moment by moment, but never to more than it asks for; what one leaves idle "
             "is shared among the others. 100 % is exactly that; more was due to "
             "others.</p>\n");
    put_fair_words(r, out);
    buf_addz(out,
             "<table class=\"tenants\">\n<thead><tr><th scope=\"col\">Tenant</th><th "
             "scope=\"col\">Weight</th>"
             "<th scope=\"col\">Jobs</th><th scope=\"col\">Entitled, GPU-h</th>"
             "<th scope=\"col\">Got, GPU-h</th><th scope=\"col\">Got / entitled</th>"
             "<th scope=\"col\">Wait, mean</th><th scope=\"col\">Wait, 99 of 100</th></tr></thead>"
             "\n<tbody>\n");
    for (uint32_t i = 0; i < MIN(r->tenants, TENANT_ROWS); i++)
        put_tenant(&r->tenant[i], page_colour(&shown, i), out);
    buf_addz(out, "</tbody>\n</table>\n");
    if (r->tenants > TENANT_ROWS)
        buf_printf(out, "<p>… and %u more.</p>\n", r->tenants - TENANT_ROWS);
    buf_addz(out, "</section>\n");
}

void page_end(const struct report *r, size_t n, struct buf *out)
{
    char text[TEXT_MAX];
    buf_printf(out, "<footer>Replayed in %s of real time.</footer>\n</main>\n",
               text_duration(r[n - 1].wall_s, text));
    page_data(r, n, out);
    buf_addz(out, "<script>\n");
    buf_addz(out, script);
    buf_addz(out, "</script>\n</body>\n</html>\n");
}

void report_page(const struct report *r, size_t n, struct buf *out)
{
    const struct report *last = n ? &r[n - 1] : NULL;
    page_begin(last, out);
    if (!last) {
        buf_addz(out, "<p>There is nothing to report.</p>\n</main>\n</body>\n</html>\n");
        return;
    }
    put_title(last, out);
    put_headline(last, out);
    buf_addz(out, "<noscript><p>The charts are drawn by a script; the figures and tables are "
                  "complete without it.</p></noscript>\n");
    page_charts(last, out);
    put_fairness(last, out);
    if (n > 1)
        page_comparison(r, n, out);
    page_end(r, n, out);
}
