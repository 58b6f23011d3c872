#include "simulate/report_parts.h"

static struct str name_of(const char *z)
{
    return z ? str_of(z) : STR("");
}

static void put_tenant(struct json_out *w, const struct report_tenant *t)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "name", name_of(t->name));
    json_put_f64(w, "weight", t->weight_milli / 1000.0, 3);
    json_put_u64(w, "jobs", t->jobs);
    json_put_f64(w, "gpu_hours", t->gpu_hours, 3);
    json_put_f64(w, "entitled_hours", t->entitled_hours, 3);
    json_put_f64(w, "avg_queue_s", t->avg_queue_s, 3);
    json_put_f64(w, "p90_queue_s", t->p90_queue_s, 3);
    json_put_f64(w, "p99_queue_s", t->p99_queue_s, 3);
    json_put_f64(w, "avg_jct_s", t->avg_jct_s, 3);
    json_put_f64(w, "freezes", t->freezes, 0);
    json_put_f64(w, "satisfaction", t->satisfaction, 6);
    json_end(w, '}');
}

static void put_fairness(struct json_out *w, const struct report *r)
{
    json_put_f64(w, "satisfaction", r->satisfaction, 6);
    json_put_f64(w, "worst_tenant", r->worst_tenant, 6);
    json_put_f64(w, "jain", r->jain, 6);
    json_put_f64(w, "worst_rho", r->worst_rho, 4);
    json_put_f64(w, "unfair_pct", r->unfair_pct, 2);
    if (r->rho_note)
        json_put_str(w, "rho_note", str_of(r->rho_note));
    json_put_f64(w, "makespan_s", r->makespan_s, 3);
    json_put_f64(w, "freezes", r->freezes, 4);
    json_put_u64(w, "freezes_max", r->freezes_max);
    json_put_f64(w, "p50_cover", r->p50_cover, 4);
    json_put_f64(w, "p90_cover", r->p90_cover, 4);
    json_put_f64(w, "interval_width_ratio", r->interval_width_ratio, 4);
    json_put_f64(w, "harvest", r->harvest, 3);
    json_put_f64(w, "harvest_most", r->harvest_most, 3);
    json_put_f64(w, "harvest_ratio", r->harvest_ratio, 6);
    json_put_f64(w, "outside_window_s", r->outside_window_s, 3);
}

static void put_report(struct json_out *w, const char *key, const struct report *r)
{
    json_begin(w, key, '{');
    json_put_str(w, "trace", name_of(r->trace));
    json_put_str(w, "policy", name_of(r->policy));
    json_put_bool(w, "simulated", r->simulated);
    json_put_u64(w, "jobs", r->jobs);
    json_put_u64(w, "unfinished", r->unfinished);
    json_put_u64(w, "nodes", r->nodes);
    json_put_f64(w, "gpus", r->gpus, 3);
    json_put_f64(w, "avg_jct_s", r->avg_jct_s, 3);
    json_put_f64(w, "avg_queue_s", r->avg_queue_s, 3);
    json_put_f64(w, "p50_queue_s", r->p50_queue_s, 3);
    json_put_f64(w, "p90_queue_s", r->p90_queue_s, 3);
    json_put_f64(w, "p99_queue_s", r->p99_queue_s, 3);
    json_put_f64(w, "max_queue_s", r->max_queue_s, 3);
    json_put_f64(w, "utilisation", r->utilisation, 6);
    json_put_f64(w, "started_at_once", r->started_at_once, 6);
    put_fairness(w, r);
    json_put_f64(w, "wall_s", r->wall_s, 3);
    json_begin(w, "tenants", '[');
    for (uint32_t i = 0; i < r->tenants; i++)
        put_tenant(w, &r->tenant[i]);
    json_end(w, ']');
    json_end(w, '}');
}

void report_json(const struct report *r, struct buf *out)
{
    struct json_out w = { .b = out };
    put_report(&w, NULL, r);
    buf_addc(out, '\n');
}

void whatif_json(const struct report_whatif *x, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_begin(&w, "what_if", '[');
    for (size_t i = 0; i < x->changes; i++)
        json_put_str(&w, NULL, name_of(x->change[i]));
    json_end(&w, ']');
    put_report(&w, "before", &x->world[0]);
    put_report(&w, "after", &x->world[1]);
    json_end(&w, '}');
    buf_addc(out, '\n');
}

void report_json_series(const struct report *r, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "trace", name_of(r->trace));
    json_put_str(&w, "policy", name_of(r->policy));
    json_put_bool(&w, "simulated", r->simulated);
    json_put_f64(&w, "gpus", r->gpus, 3);
    json_put_i64(&w, "begin_ms", r->begin_ms);
    json_put_i64(&w, "end_ms", r->end_ms);
    json_put_i64(&w, "step_ms", r->step_ms);
    json_put_points(&w, "used", r->used, r->points);
    json_put_points(&w, "waiting", r->waiting, r->points);
    json_put_points(&w, "demand", r->demand, r->points);
    json_begin(&w, "tenants", '[');
    for (uint32_t i = 0; i < r->tenants; i++) {
        json_begin(&w, NULL, '{');
        json_put_str(&w, "name", name_of(r->tenant[i].name));
        json_put_points(&w, "held", r->tenant[i].held, r->points);
        json_put_points(&w, "entitled", r->tenant[i].entitled, r->points);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    buf_addc(out, '\n');
}
