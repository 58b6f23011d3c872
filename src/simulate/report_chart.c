/* The charts of the page: a frame and a summary in words for each, and the data for page.js. */
#include "simulate/report_parts.h"

#include <math.h>

#define POLICIES PAGE_COLOURS /* that have a line of their own; more than we have */
#define BUSY 0.98             /* of the GPUs held: all of them, but for what does not fit */

static double point(const float *v, uint32_t i)
{
    return v && isfinite(v[i]) ? (double)v[i] : 0;
}

/* The part of the points at or above `bound`. */
static double part_from(const float *v, uint32_t n, double bound)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        found += point(v, i) >= bound;
    return n ? found / (double)n : 0;
}

static double mean_of(const float *v, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += point(v, i);
    return n ? sum / n : 0;
}

static uint32_t peak_of(const float *v, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < n; i++)
        if (point(v, i) > point(v, at))
            at = i;
    return at;
}

/* The summary stands under the heading and is also the chart's name for those who cannot see it;
 * where it says little without the chart, both are left out when there is no script. */
void page_frame(struct buf *out, const char *kind, const char *heading, struct buf *summary,
                bool worth_alone)
{
    const char *text = buf_str(summary).p;
    buf_printf(out,
               "<section%s>\n<h2>%s</h2>\n<p>%s</p>\n"
               "<div class=\"legend\"></div>\n"
               "<div class=\"plot\" data-chart=\"%s\" tabindex=\"0\" role=\"img\" aria-label=\"%s: "
               "%s Arrow keys move through time.\"></div>\n</section>\n",
               worth_alone ? "" : " class=\"drawn\"", heading, text, kind, heading, text);
    buf_truncate(summary, 0);
}

static void put_use(const struct report *r, struct buf *summary, struct buf *out)
{
    char a[TEXT_MAX], b[TEXT_MAX];
    uint32_t peak = peak_of(r->demand, r->points);
    buf_printf(summary, "On average %s of %s GPUs were held",
               text_count(mean_of(r->used, r->points), a), text_count(r->gpus, b));
    if (r->gpus > 0)
        buf_printf(summary, ", for %s of the time all of them",
                   text_percent(part_from(r->used, r->points, r->gpus * BUSY), a));
    buf_printf(summary, ". Demand was highest on %s: %s GPUs.",
               text_moment(r, r->begin_ms + peak * r->step_ms, a),
               text_count(point(r->demand, peak), b));
    if (report_has_weekdays(r))
        buf_addz(summary, " Nights (20:00 to 8:00) and weekends are shaded.");
    page_frame(out, "use", "GPUs in use", summary, true);
}

static void put_queue(const struct report *r, struct buf *summary, struct buf *out)
{
    char a[TEXT_MAX], b[TEXT_MAX], c[TEXT_MAX];
    uint32_t peak = peak_of(r->waiting, r->points);
    double empty = 1 - part_from(r->waiting, r->points, 0.5);
    buf_printf(summary, "On average %s jobs waited, about %s at the peak (%s). ",
               text_count(mean_of(r->waiting, r->points), a),
               text_count(round(point(r->waiting, peak)), b),
               text_moment(r, r->begin_ms + peak * r->step_ms, c));
    buf_printf(summary, "For %s of the time nobody did.", text_percent(empty, a));
    page_frame(out, "queue", "Jobs waiting", summary, true);
}

static void put_multiple(const struct report *r, uint32_t slot, uint32_t tenant, struct buf *out)
{
    const struct report_tenant *t = &r->tenant[tenant];
    char a[TEXT_MAX], b[TEXT_MAX], c[TEXT_MAX];
    buf_addz(out, "<div>\n<h3>");
    html_text(out, t->name);
    buf_printf(out,
               "<span>%s</span></h3>\n<div class=\"legend\"></div>\n<div class=\"plot small\" ",
               text_percent(report_got(t), a));
    buf_printf(out,
               "data-chart=\"tenant\" data-slot=\"%u\" tabindex=\"0\" role=\"img\" aria-label=\"",
               slot);
    html_text(out, t->name);
    buf_printf(out,
               " got %s of the %s GPU-hours it was entitled to, %s. Arrow keys move through "
               "time.\"></div>\n</div>\n",
               text_count(t->gpu_hours, a), text_count(t->entitled_hours, b),
               text_percent(report_got(t), c));
}

static void put_shares(const struct report *r, struct buf *summary, struct buf *out)
{
    struct page_tenants shown = page_tenants(r);
    if (!r->tenants)
        return;
    buf_addz(summary, "GPUs held by each tenant, one on top of the other.");
    if (shown.rest)
        buf_printf(summary, " The %u smallest are summed up.", shown.rest);
    page_frame(out, "share", "Share of each tenant", summary, false);
    buf_addz(out, "<section class=\"drawn\">\n<h2>Held and entitled</h2>\n"
                  "<p>Filled: the GPUs a tenant held. Line: what it was entitled to at that "
                  "moment. Beside the name: what it got of it in all.</p>\n"
                  "<div class=\"multiples\">\n");
    for (uint32_t i = 0; i < shown.n; i++)
        put_multiple(r, i, shown.shown[i], out);
    buf_addz(out, "</div>\n</section>\n");
}

void page_charts(const struct report *r, struct buf *out)
{
    AUTO(buf_free) struct buf summary = BUF(4096);
    if (!r->points)
        return;
    put_use(r, &summary, out);
    put_queue(r, &summary, out);
    put_shares(r, &summary, out);
}

static bool is_best(const struct report *r, size_t n, size_t i, const struct figure *f)
{
    double mine = figure_of(f, &r[i]);
    for (size_t j = 0; j < n; j++) {
        double other = figure_of(f, &r[j]);
        if (f->more_is_better ? other > mine : other < mine)
            return false;
    }
    return isfinite(mine);
}

static void put_policy(const struct report *r, size_t n, size_t i, struct figures of,
                       struct buf *out)
{
    char text[TEXT_MAX];
    buf_printf(out, "<tr%s><th scope=\"row\"><i class=\"dot\" style=\"color:var(--%c%zu)\"></i>",
               i + 1 == n ? " class=\"main\"" : "", i + 1 == n ? 'a' : 't',
               i + 1 == n ? 0 : (i + 1) % PAGE_COLOURS);
    html_text(out, r[i].policy);
    buf_addz(out, "</th>");
    for (size_t k = 0; k < of.n; k++) {
        const struct figure *f = &of.at[k];
        buf_printf(out, "<td data-k=\"%s\"%s>%s</td>", f->words,
                   is_best(r, n, i, f) ? " class=\"best\"" : "",
                   f->text(figure_of(f, &r[i]), text));
    }
    buf_addz(out, "</tr>\n");
}

static void put_policies_table(const struct report *r, size_t n, struct figures of, struct buf *out)
{
    buf_addz(out, "<table class=\"policies\">\n<thead><tr><th scope=\"col\">Policy</th>");
    for (size_t k = 0; k < of.n; k++)
        buf_printf(out, "<th scope=\"col\">%s</th>", of.at[k].words);
    buf_addz(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < n; i++)
        put_policy(r, n, i, of, out);
    buf_addz(out, "</tbody>\n</table>\n");
}

void page_comparison(const struct report *r, size_t n, struct buf *out)
{
    AUTO(buf_free) struct buf summary = BUF(4096);
    buf_addz(out, "<section>\n<h2>Policies compared</h2>\n<p>The same jobs on the same machines; "
                  "the best figure of each column is bold.</p>\n");
    put_policies_table(r, n, report_speed(), out);
    put_policies_table(r, n, report_fairness(&r[n - 1]), out);
    buf_addz(out, "</section>\n");
    if (!r[n - 1].points)
        return;
    buf_addz(&summary, "GPUs held, one line a policy.");
    page_frame(out, "policies-use", "GPUs in use, by policy", &summary, false);
    buf_addz(&summary, "Jobs in the queue, one line a policy.");
    page_frame(out, "policies-queue", "Jobs waiting, by policy", &summary, false);
}

/* ---- the data ---- */

static void put_rest(struct json_out *w, const struct report *r, const struct page_tenants *shown)
{
    static const char *const keys[] = { "held", "entitled" };
    uint32_t points = MIN(r->points, (uint32_t)REPORT_POINTS);
    float sum[REPORT_POINTS];
    AUTO(buf_free) struct buf name = BUF(64);
    buf_printf(&name, "%u others", shown->rest);
    json_begin(w, NULL, '{');
    json_put_str(w, "name", buf_str(&name));
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        memset(sum, 0, sizeof sum);
        for (uint32_t i = 0; i < r->tenants; i++) {
            const float *v = k ? r->tenant[i].entitled : r->tenant[i].held;
            if (page_colour(shown, i) != PAGE_COLOURS)
                continue;
            for (uint32_t p = 0; p < points; p++)
                sum[p] += (float)point(v, p);
        }
        json_put_points(w, keys[k], sum, points);
    }
    json_end(w, '}');
}

static void put_tenants(struct json_out *w, const struct report *r)
{
    struct page_tenants shown = page_tenants(r);
    json_begin(w, "tenants", '[');
    for (uint32_t i = 0; i < shown.n; i++) {
        const struct report_tenant *t = &r->tenant[shown.shown[i]];
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(t->name ? t->name : ""));
        json_put_points(w, "held", t->held, r->points);
        json_put_points(w, "entitled", t->entitled, r->points);
        json_end(w, '}');
    }
    if (shown.rest)
        put_rest(w, r, &shown);
    json_end(w, ']');
}

/* Of the tenants that are drawn, in their order. */
static void put_held(struct json_out *w, const struct report *r, const struct report *last)
{
    struct page_tenants shown = page_tenants(last);
    json_begin(w, "held", '[');
    for (uint32_t i = 0; i < shown.n; i++) {
        const struct report_tenant *t = tenant_named(r, last->tenant[shown.shown[i]].name);
        json_put_points(w, NULL, t ? t->held : NULL, r->points);
    }
    json_end(w, ']');
}

static void put_policies(struct json_out *w, const struct report *r, size_t n)
{
    json_begin(w, "policies", '[');
    for (size_t i = n > POLICIES ? n - POLICIES : 0; n > 1 && i < n; i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(r[i].policy ? r[i].policy : ""));
        json_put_u64(w, "colour", (i + 1) % PAGE_COLOURS);
        json_put_i64(w, "begin", r[i].begin_ms);
        json_put_i64(w, "step", r[i].step_ms);
        json_put_points(w, "used", r[i].used, r[i].points);
        json_put_points(w, "waiting", r[i].waiting, r[i].points);
        put_held(w, &r[i], &r[n - 1]);
        json_end(w, '}');
    }
    json_end(w, ']');
}

void page_data(const struct report *r, size_t n, struct buf *out)
{
    const struct report *last = &r[n - 1];
    AUTO(buf_free) struct buf text = BUF(out->limit);
    struct json_out w = { .b = &text };
    json_begin(&w, NULL, '{');
    json_put_f64(&w, "gpus", last->gpus, 2);
    json_put_bool(&w, "weekdays", report_has_weekdays(last));
    json_put_i64(&w, "begin", last->begin_ms);
    json_put_i64(&w, "step", last->step_ms);
    json_put_points(&w, "used", last->used, last->points);
    json_put_points(&w, "waiting", last->waiting, last->points);
    json_put_points(&w, "demand", last->demand, last->points);
    put_tenants(&w, last);
    put_policies(&w, r, n);
    json_end(&w, '}');
    /* In JSON '<' stands only inside strings; escaped there, no name can end the script. */
    buf_addz(out, "<script type=\"application/json\" id=\"data\">");
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '<')
            buf_addz(out, "\\u003c");
        else
            buf_addc(out, text.p[i]);
    if (text.full)
        out->full = true;
    buf_addz(out, "</script>\n");
}
