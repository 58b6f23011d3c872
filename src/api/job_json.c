/* A job as the API shows it. */
#include <stdio.h>

#include "api/commands.h"
#include "api/load.h"
#include "store/kept.h"

static void put_time(struct json_out *w, const char *key, int64_t ms)
{
    if (ms)
        json_put_i64(w, key, ms);
    else
        json_put_null(w, key);
}

static void put_reason(struct json_out *w, struct api *a, const struct store_job *j)
{
    struct job_view v;
    bool waits = !job_state_ended(j->now.state) && !job_state_holds(j->now.state);
    if (waits && core_job(control_core(a->config.control), (job_id){ j->fixed.id }, &v)) {
        json_put_str(w, "reason", str_of(reason_slug(v.why)));
        json_put_str(w, "reason_text", str_of(reason_text(v.why)));
    } else {
        json_put_null(w, "reason");
        json_put_null(w, "reason_text");
    }
}

/* What keeps it from the queue still: its time, and other jobs. */
static void put_start(struct json_out *w, struct api *a, uint64_t job)
{
    struct core *core = control_core(a->config.control);
    struct after after[AFTER_MAX];
    struct job_view v = { 0 };
    core_job(core, (job_id){ job }, &v);
    put_time(w, "begin_ms", v.begin_ms);
    json_begin(w, "after", '[');
    uint32_t n = v.afters ? core_job_after(core, (job_id){ job }, after) : 0;
    for (uint32_t i = 0; i < n; i++) {
        char text[48];
        snprintf(text, sizeof text, "%s:%llu", after_name((enum after_when)after[i].when),
                 (unsigned long long)after[i].first.v);
        json_put_str(w, NULL, str_of(text));
    }
    json_end(w, ']');
}

static void put_exit(struct json_out *w, const struct store_job_now *n)
{
    if (job_state_ended(n->state) && n->run > 0) {
        json_put_i64(w, "exit_code", n->exit_code);
        json_put_i64(w, "exit_signal", n->exit_signal);
    } else {
        json_put_null(w, "exit_code");
        json_put_null(w, "exit_signal");
    }
    if (n->end.n)
        json_put_str(w, "end", n->end);
    else
        json_put_null(w, "end");
    json_put_str(w, "message", n->message);
}

/* What is wrong with the machine under it, while it is there, or that it was paused by hand. */
static void put_trouble(struct json_out *w, struct api *a, const struct store_job *j)
{
    AUTO(buf_free) struct buf text = BUF(4096), paused = BUF(2048);
    bool holds = job_state_holds(j->now.state);
    if (holds)
        (void)job_trouble(a, j->fixed.id, &text);
    if (holds && commands_paused(a, j->fixed.id, j->now.run, &paused)) {
        buf_addz(&text, text.n ? "; " : "");
        buf_add(&text, buf_str(&paused));
    }
    if (text.n)
        json_put_str(w, "trouble", buf_str(&text));
    else
        json_put_null(w, "trouble");
}

/* Members of an array share the text of the first. */
static void put_spec(struct json_out *w, struct api *a, const struct store_job *j)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct store_scope all = { .everything = true };
    struct store_job first;
    struct err e;
    if (j->fixed.spec.n)
        json_put_raw(w, "spec", j->fixed.spec);
    else if (j->fixed.array &&
             store_job_get(a->config.store, &all, j->fixed.array, &arena, &first, &e) == 0)
        json_put_raw(w, "spec", first.fixed.spec.n ? first.fixed.spec : STR("null"));
    else
        json_put_null(w, "spec");
}

/* What is kept of its output; of a job that never ran or has not ended nothing is told. */
static void put_log(struct json_out *w, struct api *a, uint64_t job)
{
    struct store_log log;
    struct err e;
    if (store_log_get(a->config.store, job, &log, &e) < 0) {
        json_put_null(w, "log");
        return;
    }
    json_begin(w, "log", '{');
    json_put_u64(w, "bytes", log.bytes);
    put_time(w, "removed_ms", log.removed_ms);
    json_end(w, '}');
}

void put_job(struct json_out *w, const char *key, struct api *a, const struct store_job *j,
             bool whole)
{
    const struct store_job_fixed *f = &j->fixed;
    const struct store_job_now *n = &j->now;
    json_begin(w, key, '{');
    json_put_u64(w, "id", f->id);
    json_put_str(w, "name", f->name);
    json_put_str(w, "tenant", f->tenant);
    json_put_str(w, "user", f->user);
    json_put_str(w, "state", str_of(job_state_name(n->state)));
    json_put_str(w, "priority", str_of(priority_name(n->priority)));
    put_reason(w, a, j);
    put_start(w, a, f->id);
    json_put_i64(w, "submitted_ms", f->submitted_ms);
    put_time(w, "started_ms", n->started_ms);
    put_time(w, "ended_ms", n->ended_ms);
    json_put_i64(w, "state_ms", n->state_ms);
    json_put_i64(w, "ran_ms", n->ran_ms);
    json_put_u64(w, "run", n->run);
    json_put_u64(w, "replicas", f->replicas);
    json_put_u64(w, "gpu_milli", f->gpu_milli);
    put_exit(w, n);
    put_trouble(w, a, j);
    json_put_raw(w, "where", n->where.n ? n->where : STR("[]"));
    if (f->array) {
        json_put_u64(w, "array", f->array);
        json_put_u64(w, "array_index", f->array_index);
    }
    if (whole) {
        put_spec(w, a, j);
        put_log(w, a, f->id);
    }
    json_end(w, '}');
}
