/* What a store says, made anew without a daemon: for `nightshift verify`. */
#include "control/replay.h"

#include "core/core.h"
#include "journal/journal.h"
#include "store/audit.h"
#include "store/kept.h"

struct replay {
    struct core *core;
    struct arena arena;
    struct control_verified *out;
};

static int on_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct replay *r = ctx;
    struct event ev;
    (void)t_ms;
    r->out->events++;
    arena_reset(&r->arena);
    if (journal_read(line, &r->arena, &ev, e) < 0 || core_apply(r->core, &ev, e) < 0)
        return err_wrap(e, "journal, line %llu", (unsigned long long)r->out->events);
    return 0;
}

static int on_job(void *ctx, const struct store_job *j, struct err *e)
{
    struct replay *r = ctx;
    struct job_view v;
    bool known = core_job(r->core, (job_id){ j->fixed.id }, &v);
    r->out->jobs++;
    if (known && v.state == j->now.state)
        return 0;
    return err_set(e, ERR_INTERNAL, "job %llu is %s in the store and %s in the journal",
                   (unsigned long long)j->fixed.id, job_state_name(j->now.state),
                   known ? job_state_name(v.state) : "absent");
}

static void count_job(void *ctx, const struct event *ev)
{
    *(uint64_t *)ctx += ev->kind == EVENT_SUBMIT;
}

static int check_none_is_missing(const struct replay *r, struct err *e)
{
    uint64_t n = 0;
    core_snapshot(r->core, count_job, &n);
    return n == r->out->jobs
             ? 0
             : err_set(e, ERR_INTERNAL, "%llu jobs live in the store and %llu in the journal",
                       (unsigned long long)r->out->jobs, (unsigned long long)n);
}

static int check_audit(struct store *s, struct control_verified *out, struct err *e)
{
    struct store_audit_check check = { 0 };
    if (store_audit_check_begin(s, NULL, &check, e) < 0)
        return -1;
    while (!check.done)
        if (store_audit_check(s, &check, 1000, e) < 0)
            return -1;
    out->audit_rows = check.chain.rows;
    if (!check.chain.fault)
        return 0;
    return err_set(e, ERR_INTERNAL, "the audit, row %llu: %s",
                   (unsigned long long)check.chain.fault_at, audit_fault_help(check.chain.fault));
}

int control_verify(struct store *s, struct control_verified *out, struct err *e)
{
    struct control_verified v = { 0 };
    struct replay r = { .core = core_new(), .out = &v };
    int rc = store_journal(s, on_line, &r, e);
    if (rc == 0)
        rc = core_audit(r.core, e);
    if (rc == 0)
        rc = store_living_jobs(s, on_job, &r, e);
    if (rc == 0)
        rc = check_none_is_missing(&r, e);
    core_free(r.core);
    arena_free(&r.arena);
    if (rc < 0 || check_audit(s, &v, e) < 0)
        return -1;
    *out = v;
    return 0;
}
