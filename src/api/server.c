/* The server itself: what it is, whether it works, its figures. */
#include <stdio.h>
#include <unistd.h>

#include "api/audit.h"
#include "api/exporter.h"
#include "api/notices.h"
#include "control/jump.h"
#include "core/policy.h"
#include "store/kept.h"

static bool any_simulated(struct control *ctl)
{
    struct node_view v;
    struct control_node n;
    for (uint32_t i = 0; core_node(control_core(ctl), (node_id){ i }, &v); i++)
        if (control_node(ctl, str_of(v.name), &n) && n.simulated)
            return true;
    return false;
}

static void put_policy(struct json_out *w, const struct policy *p)
{
    const struct policy_key *k;
    struct policy copy = *p;
    json_begin(w, "policy", '[');
    for (size_t i = 0; (k = policy_key(i)); i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(k->name));
        json_put_i64(w, "value", *policy_value(&copy, k));
        json_put_i64(w, "default", k->dflt);
        json_put_str(w, "help", str_of(k->help));
        json_end(w, '}');
    }
    json_end(w, ']');
}

static struct str message(const struct control *ctl, const struct store *store, bool simulated)
{
    struct err damage;
    if (control_audit_state(ctl).fault)
        return STR("the audit is not as it was written: nightshift audit verify");
    if (store_damaged(store, &damage))
        return STR("the store is damaged: nightshift doctor");
    if (store_on_reserve(store))
        return STR("the disk is full: nothing new is taken: nightshift doctor");
    if (control_clock(ctl).holds)
        return STR("the clock has jumped, and nothing is removed meanwhile: nightshift doctor");
    return simulated ? STR("GPUs are simulated") : STR("");
}

int api_server(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct json_out w = { .b = &b };
    const struct api_config *f = &c->api->config;
    const struct engine *en = control_engine(f->control);
    bool simulated = any_simulated(f->control);
    (void)e;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "version", STR(NS_VERSION));
    json_put_str(&w, "engine", str_of(en->ops ? en->ops->name : ""));
    json_put_str(&w, "mode", str_of(f->mode(f->mode_ctx)));
    json_put_bool(&w, "simulated", simulated);
    json_put_str(&w, "message", message(f->control, f->store, simulated));
    json_put_i64(&w, "started_ms", c->api->started_ms);
    json_begin(&w, "caps", '{');
    for (int i = 0; en->caps && i < ENGINE_CAP_COUNT; i++)
        json_put_bool(&w, engine_cap_name((enum engine_cap)i), en->caps[i]);
    json_end(&w, '}');
    put_policy(&w, control_policy(f->control));
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

int api_clock_confirm(struct call *c, struct err *e)
{
    struct control *ctl = c->api->config.control;
    struct audit_change ch = { .what = AUDIT_CLOCK_CONFIRM, .subject = STR("clock") };
    if (read_verb(c, &ch.reason, e) < 0)
        return -1;
    ch.after = str_of(arena_printf(http_arena(c->rq), "{\"ahead_ms\":%lld}",
                                   (long long)control_clock(ctl).ahead_ms));
    api_audit(c, &ch);
    control_clock_confirm(ctl);
    return api_server(c, e);
}

int api_profiles(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    struct json_out w = { .b = &b };
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "profiles", '[');
    for (size_t i = 0; i < c->api->config.profiles; i++) {
        const struct api_profile *p = &c->api->config.profile[i];
        json_begin(&w, NULL, '{');
        json_put_str(&w, "name", p->name);
        json_put_str(&w, "help", p->help);
        json_put_u64(&w, "gpus", p->request.gpus);
        json_put_f64(&w, "gpu_share", p->request.gpu_milli / 1e3, 3);
        json_put_f64(&w, "cpus", p->request.cpu_milli / 1e3, 3);
        json_put_u64(&w, "mem_mib", p->request.mem_mib);
        json_put_str(&w, "gpu_type", p->gpu_type);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

int api_health(struct call *c, struct err *e)
{
    (void)e;
    http_reply(c->rq, 200, "text/plain", STR("ok\n"));
    return 0;
}

int api_ready(struct call *c, struct err *e)
{
    if (!control_ready(c->api->config.control, e) || !control_answers(c->api->config.control, e))
        return -1;
    http_reply(c->rq, 200, "text/plain", STR("ready\n"));
    return 0;
}

int api_openapi(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4 << 20);
    struct json_out w = { .b = &b };
    (void)e;
    api_print_openapi(&w);
    reply_json(c, 200, &b);
    return 0;
}

/* ---- metrics ---- */

static void metric(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# TYPE nightshift_%s %s\n# HELP nightshift_%s %s\n", name, type, name, help);
}

static uint64_t rss_bytes(void)
{
    unsigned long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The name of a tenant is whatever the site calls it; a label's value has three escapes. */
static void put_label(struct buf *b, const char *metric_name, const char *tenant)
{
    buf_printf(b, "nightshift_%s{tenant=\"", metric_name);
    for (const char *c = tenant; *c; c++)
        if (*c == '\n')
            buf_addz(b, "\\n");
        else
            buf_printf(b, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    buf_addz(b, "\"} ");
}

static void put_tenant_gpus(struct buf *b, const struct share_view *v)
{
    put_label(b, "tenant_gpus", v->name);
    buf_printf(b, "%.3f\n", (double)v->cost_milli / 1e3);
}

static void put_tenant_waiting(struct buf *b, const struct share_view *v)
{
    put_label(b, "tenant_waiting", v->name);
    buf_printf(b, "%llu\n", (unsigned long long)v->waiting);
}

/* Those that the caller sees: their names are nobody else's business. */
static void put_tenants(const struct call *c, struct buf *b)
{
    struct control *ctl = c->api->config.control;
    struct share_view v;
    metric(b, "tenant_gpus", "gauge", "Reference GPUs that a tenant holds now.");
    for (uint32_t i = 1; core_share(control_core(ctl), (share_id){ i }, control_now_ms(ctl), &v);
         i++)
        if (!v.is_user && !v.removed && sees_tenant(c, str_of(v.name)))
            put_tenant_gpus(b, &v);
    metric(b, "tenant_waiting", "gauge", "Jobs of a tenant that wait.");
    for (uint32_t i = 1; core_share(control_core(ctl), (share_id){ i }, control_now_ms(ctl), &v);
         i++)
        if (!v.is_user && !v.removed && sees_tenant(c, str_of(v.name)))
            put_tenant_waiting(b, &v);
}

static void put_pass_seconds(struct buf *b, const struct control_stats *s)
{
    uint64_t n = 0;
    metric(b, "pass_seconds", "histogram", "How long passes took.");
    for (size_t i = 0; i < CONTROL_PASS_BOUNDS; i++) {
        n += s->pass_took[i];
        buf_printf(b, "nightshift_pass_seconds_bucket{le=\"%g\"} %llu\n",
                   control_pass_bound_us[i] / 1e6, (unsigned long long)n);
    }
    buf_printf(b, "nightshift_pass_seconds_bucket{le=\"+Inf\"} %llu\n",
               (unsigned long long)s->passes);
    buf_printf(b, "nightshift_pass_seconds_count %llu\n", (unsigned long long)s->passes);
    buf_printf(b, "nightshift_pass_seconds_sum %.9f\n", (double)s->pass_ns_sum / 1e9);
}

static void put_walls(const struct engine *en, struct buf *b)
{
    struct engine_walls w = { 0 };
    if (en->ops && en->ops->walls)
        en->ops->walls(en->self, &w);
    if (!w.known)
        return;
    metric(b, "firewall_holds", "gauge", "1 while the firewall between tenants is there.");
    buf_printf(b, "nightshift_firewall_holds %d\n", w.there);
    metric(b, "firewall_reloads", "counter",
           "How often somebody took the firewall away, and it was loaded again.");
    buf_printf(b, "nightshift_firewall_reloads_total %llu\n", (unsigned long long)w.reloads);
}

int api_metrics(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(16 << 20);
    struct control *ctl = c->api->config.control;
    struct control_stats s = control_stats(ctl);
    struct core_totals t = core_totals(control_core(ctl));
    struct store_scope all = { .everything = true };
    uint64_t count[JOB_STATE_COUNT] = { 0 };
    struct store_log_sum logs;
    if (store_jobs_count(c->api->config.store, &all, count, e) < 0 ||
        store_log_sum(c->api->config.store, &logs, e) < 0)
        return -1;
    metric(&b, "jobs", "gauge", "Jobs by state, ended ones as long as they are kept.");
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        buf_printf(&b, "nightshift_jobs{state=\"%s\"} %llu\n", job_state_name((enum job_state)i),
                   (unsigned long long)count[i]);
    metric(&b, "gpus", "gauge", "GPUs of the machines that are up.");
    buf_printf(&b, "nightshift_gpus %.3f\n", (double)t.total.of[RES_GPU] / 1e3);
    metric(&b, "gpus_free", "gauge", "GPUs that nobody has.");
    buf_printf(&b, "nightshift_gpus_free %.3f\n", (double)t.free.of[RES_GPU] / 1e3);
    put_tenants(c, &b);
    metric(&b, "passes", "counter", "Scheduling passes.");
    buf_printf(&b, "nightshift_passes_total %llu\n", (unsigned long long)s.passes);
    metric(&b, "starts", "counter", "Jobs placed.");
    buf_printf(&b, "nightshift_starts_total %llu\n", (unsigned long long)s.starts);
    metric(&b, "taken", "counter", "Jobs taken back: frozen because it was another's turn.");
    buf_printf(&b, "nightshift_taken_total %llu\n", (unsigned long long)s.taken);
    metric(&b, "commits", "counter", "Turns written to the disk.");
    buf_printf(&b, "nightshift_commits_total %llu\n", (unsigned long long)s.commits);
    put_pass_seconds(&b, &s);
    int64_t heard_ms = control_heard_ms(ctl);
    if (heard_ms >= 0) {
        metric(&b, "keeper_heard_seconds", "gauge",
               "How long ago nightshift-keeper last answered.");
        buf_printf(&b, "nightshift_keeper_heard_seconds %.3f\n", (double)heard_ms / 1e3);
    }
    metric(&b, "logs", "gauge", "Ended jobs whose output is kept.");
    buf_printf(&b, "nightshift_logs %llu\n", (unsigned long long)logs.logs);
    metric(&b, "log_bytes", "gauge", "Their output on the disk.");
    buf_printf(&b, "nightshift_log_bytes %llu\n", (unsigned long long)logs.bytes);
    metric(&b, "logs_removed", "counter", "Jobs whose output was removed.");
    buf_printf(&b, "nightshift_logs_removed_total %llu\n", (unsigned long long)s.logs_removed);
    metric(&b, "store_bytes", "gauge", "The store on the disk.");
    buf_printf(&b, "nightshift_store_bytes %llu\n",
               (unsigned long long)store_bytes(c->api->config.store));
    struct control_audit_state audit = control_audit_state(ctl);
    metric(&b, "store_on_reserve", "gauge",
           "1 when the disk was full and the room that is kept for that is being used.");
    buf_printf(&b, "nightshift_store_on_reserve %d\n", store_on_reserve(c->api->config.store));
    struct err damage;
    metric(&b, "store_damaged", "gauge", "1 when a row was met that is not as it was written.");
    buf_printf(&b, "nightshift_store_damaged %d\n", store_damaged(c->api->config.store, &damage));
    metric(&b, "audit_rows", "gauge",
           "Rows of the audit that were right when it was last verified.");
    buf_printf(&b, "nightshift_audit_rows %llu\n", (unsigned long long)audit.rows);
    metric(&b, "audit_broken", "gauge", "1 when the audit is not as it was written.");
    buf_printf(&b, "nightshift_audit_broken %d\n", audit.fault != AUDIT_FAULT_NONE);
    struct control_clock clock = control_clock(ctl);
    metric(&b, "clock_ahead_seconds", "gauge", "The wall clock's lead over steady time.");
    buf_printf(&b, "nightshift_clock_ahead_seconds %.3f\n", (double)clock.ahead_ms / 1e3);
    metric(&b, "removing_held", "gauge",
           "1 when nothing is removed for its age, because the clock has jumped.");
    buf_printf(&b, "nightshift_removing_held %d\n", clock.holds);
    metric(&b, "resident_bytes", "gauge", "Memory of the daemon.");
    buf_printf(&b, "nightshift_resident_bytes %llu\n", (unsigned long long)rss_bytes());
    put_walls(control_engine(ctl), &b);
    put_notice_metrics(c->api, &b);
    if (put_machines(c, &b, e) < 0)
        return -1;
    buf_addz(&b, "# EOF\n");
    http_reply(c->rq, 200, "application/openmetrics-text; version=1.0.0; charset=utf-8",
               buf_str(&b));
    return 0;
}
