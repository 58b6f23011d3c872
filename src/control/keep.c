/* How long what is over is kept.  A piece at a time, each of a few milliseconds and written in a batch of
 * its own: logs are measured, the oldest are removed once they are old enough or too large together, and
 * so are the rows of jobs.  What else grows is cut as well, the audit too (audit.c).
 *
 * A log is noted as removed when its folders are gone, and not when that was asked for: whoever dies in
 * between, or loses the request, asks again.  Only jobs that have ended have a log in the store. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "control/state.h"
#include "store/kept.h"

#define PIECE_NS INT64_C(2000000) /* of the loop's time, about */
#define PIECE_JOBS 64u
#define NEXT_MS 20u    /* between two pieces while there is more to do */
#define AGAIN_MS 500u  /* until folders whose removal was asked for are looked at again */
#define WAKE_MS 1000u  /* after a job's end */
#define REST_MS 60000u /* when there is nothing to do */
#define ASKS_MAX 20u   /* then those that stay are left until the next rest is over */
#define EVENTS_KEPT 100000u
#define ANSWERS_KEPT_MS (7 * INT64_C(86400000))
#define DAY_MS INT64_C(86400000)
#define ROOMS_MAX 64u     /* tenants with most output; the others have less than any of them */
#define DAILY_LEAST 1000u /* of logs and jobs go in a day in any case */

struct piece {
    struct control *c;
    struct store_batch *batch;
    struct arena arena;
    int64_t until_ns, now_ms;
    bool held; /* it is not clear what time it is: nothing goes for its age */
    bool more; /* there is more of it to do, at once */
};

static bool time_is_up(const struct piece *p)
{
    return clock_mono_ns() >= p->until_ns;
}

static void complain(const struct piece *p, const char *what, const struct err *e)
{
    log_event(p->c->config.log, LOG_WARN_, "keep", "what=%s why=%s", what, e->msg);
}

/* ---- a job's tasks, some at a time ---- */

static struct task_id task_at(const struct store_kept *k, uint64_t i)
{
    return (struct task_id){ k->job, (uint32_t)(i / k->replicas) + 1, (uint32_t)(i % k->replicas) };
}

static const char *log_path(const struct piece *p, struct task_id t, char *out, size_t n)
{
    return p->c->engine.ops->log_dir(p->c->engine.self, t, out, n);
}

static uint64_t folder_bytes(const char *path)
{
    uint64_t sum = 0;
    DIR *d = opendir(path);
    struct stat st;
    for (struct dirent *f; d && (f = readdir(d));)
        if (fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512;
    if (d)
        closedir(d);
    return sum;
}

/* Goes on where the last piece was in this job; true when all its tasks were visited. */
static bool visit_tasks(struct piece *p, const struct store_kept *k,
                        void (*visit)(struct piece *p, struct task_id t))
{
    struct keeping *keep = &p->c->keeping;
    uint64_t n = (uint64_t)k->runs * k->replicas;
    if (keep->job != k->job) {
        keep->job = k->job;
        keep->task = keep->bytes = keep->there = 0;
    }
    for (; keep->task < n; keep->task++) {
        if (time_is_up(p)) {
            p->more = true;
            return false;
        }
        visit(p, task_at(k, keep->task));
    }
    keep->job = 0;
    return true;
}

/* ---- measuring ---- */

static void measure_task(struct piece *p, struct task_id t)
{
    char path[4096];
    p->c->keeping.bytes += folder_bytes(log_path(p, t, path, sizeof path));
}

static void measure(struct piece *p)
{
    struct store_kepts logs = { 0 };
    struct err e;
    if (store_logs_unmeasured(p->c->config.store, PIECE_JOBS, &p->arena, &logs, &e) < 0)
        complain(p, "measuring", &e);
    for (size_t i = 0; i < logs.n; i++) {
        if (!visit_tasks(p, &logs.v[i], measure_task))
            return;
        store_size_log(p->batch, logs.v[i].job, p->c->keeping.bytes);
    }
    p->more |= logs.n > 0; /* the sum is known when this is written */
}

/* ---- logs ---- */

static void remove_task(struct piece *p, struct task_id t)
{
    char path[4096], text[64];
    struct stat st;
    struct err e;
    if (stat(log_path(p, t, path, sizeof path), &st) < 0)
        return;
    p->c->keeping.there++;
    if (p->c->engine.ops->purge(p->c->engine.self, t, &e) < 0)
        complain(p, task_format(t, text), &e);
}

/* ---- so much a day ---- */

static uint64_t most_of(uint64_t kept, int64_t keep_ms, uint32_t percent)
{
    uint64_t part = kept / 100 * percent + DAILY_LEAST;
    /* What comes and goes every day goes: twice as much as that. */
    uint64_t usual = keep_ms > 0 ? (uint64_t)((double)kept * DAY_MS / (double)keep_ms * 2) : 0;
    return percent ? MAX(part, usual) : UINT64_MAX;
}

/* Whatever goes wrong, most of it is there tomorrow. */
static struct keep_day *day_of(struct piece *p)
{
    struct keep_day *d = &p->c->keeping.day;
    const struct control_keep *k = &p->c->config.keep;
    struct store_scope all = { .everything = true };
    uint64_t count[JOB_STATE_COUNT] = { 0 }, jobs = 0;
    struct store_log_sum logs = { 0 };
    struct err e;
    if (d->since_ns && clock_mono_ns() - d->since_ns < DAY_MS * 1000000)
        return d;
    if (store_jobs_count(p->c->config.store, &all, count, &e) < 0 ||
        store_log_sum(p->c->config.store, &logs, &e) < 0)
        complain(p, "counting", &e);
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        jobs += job_state_ended((enum job_state)i) ? count[i] : 0;
    *d = (struct keep_day){ .since_ns = clock_mono_ns(),
                            .logs_most = most_of(logs.logs, k->logs_ms, k->daily_percent),
                            .jobs_most = most_of(jobs, k->jobs_ms, k->daily_percent) };
    return d;
}

static bool is_enough(struct piece *p, uint64_t removed, uint64_t most, const char *what)
{
    struct keep_day *d = &p->c->keeping.day;
    if (removed < most)
        return false;
    if (!d->capped)
        log_event(p->c->config.log, LOG_WARN_, "keep.enough", "what=%s removed=%llu hint=%s", what,
                  (unsigned long long)removed,
                  "more than usual is old: the rest goes tomorrow; "
                  "keep_daily says how much of all goes in a day");
    d->capped = true;
    return true;
}

/* What ended before this has no log any more: with its job the log goes too. */
static int64_t logs_before_ms(const struct piece *p, enum store_log_why *out_why)
{
    const struct control_keep *k = &p->c->config.keep;
    bool by_job = k->jobs_ms && (!k->logs_ms || k->jobs_ms < k->logs_ms);
    int64_t keep_ms = by_job ? k->jobs_ms : k->logs_ms;
    *out_why = by_job ? LOG_JOB : LOG_AGE;
    return keep_ms && !p->held ? p->now_ms - keep_ms : INT64_MIN;
}

static void remove_log(struct piece *p, const struct store_kept *k, enum store_log_why why)
{
    struct keeping *keep = &p->c->keeping;
    if (keep->there) {
        keep->waits = true;
        return;
    }
    store_remove_log(p->batch, k->job, p->now_ms, why);
    keep->logs_removed++;
    keep->progress = true;
    log_event(p->c->config.log, LOG_DEBUG_, "log.removed", "job=%llu bytes=%llu",
              (unsigned long long)k->job, (unsigned long long)k->bytes);
}

static void remove_old_logs(struct piece *p)
{
    struct keeping *keep = &p->c->keeping;
    struct store_kepts logs = { 0 };
    enum store_log_why old;
    struct err e;
    int64_t before_ms = logs_before_ms(p, &old);
    struct store_kept_query which = { keep->log_walk, before_ms, PIECE_JOBS, STR("") };
    if (store_logs_kept(p->c->config.store, &which, &p->arena, &logs, &e) < 0)
        complain(p, "logs", &e);
    for (size_t i = 0; i < logs.n; i++) {
        const struct store_kept *k = &logs.v[i];
        if (is_enough(p, day_of(p)->logs, day_of(p)->logs_most, "logs"))
            return;
        if (!visit_tasks(p, k, remove_task))
            return;
        day_of(p)->logs += !keep->there;
        remove_log(p, k, old);
        keep->planned += keep->there ? k->bytes : 0; /* the others leave the sum */
        keep->log_walk = (struct store_walk){ k->ended_ms, k->job };
    }
    p->more |= logs.n == PIECE_JOBS;
}

/* ---- logs that are too large together: whoever has most lets go, their oldest first ---- */

static void rooms_clear(struct keeping *keep)
{
    for (size_t i = 0; i < keep->rooms; i++)
        free(keep->room[i].tenant);
    free(keep->room);
    keep->room = NULL;
    keep->rooms = 0;
}

static void rooms_look(struct piece *p)
{
    struct keeping *keep = &p->c->keeping;
    struct store_log_tenants all = { 0 };
    struct err e;
    if (store_log_tenants(p->c->config.store, ROOMS_MAX, &p->arena, &all, &e) < 0)
        complain(p, "logs", &e);
    keep->room = xcalloc(all.n + 1, sizeof *keep->room);
    for (; keep->rooms < all.n; keep->rooms++) {
        struct keep_room *r = &keep->room[keep->rooms];
        r->tenant = xcalloc(all.v[keep->rooms].tenant.n + 1, 1);
        memcpy(r->tenant, all.v[keep->rooms].tenant.p, all.v[keep->rooms].tenant.n);
        r->bytes = all.v[keep->rooms].bytes;
    }
}

static struct keep_room *largest_room(const struct keeping *keep)
{
    struct keep_room *best = NULL;
    for (size_t i = 0; i < keep->rooms; i++)
        if (keep->room[i].bytes && (!best || keep->room[i].bytes > best->bytes))
            best = &keep->room[i];
    return best;
}

/* Of one tenant, as long as it has most; false: not now. */
static bool remove_of(struct piece *p, struct keep_room *r, uint64_t *surplus)
{
    struct keeping *keep = &p->c->keeping;
    struct store_kepts logs = { 0 };
    struct err e;
    struct store_kept_query which = { r->walk, INT64_MAX, PIECE_JOBS, str_of(r->tenant) };
    if (store_logs_kept(p->c->config.store, &which, &p->arena, &logs, &e) < 0)
        complain(p, "logs", &e);
    if (logs.n == 0)
        r->bytes = 0;
    for (size_t i = 0; i < logs.n && keep->planned < *surplus && r == largest_room(keep); i++) {
        const struct store_kept *k = &logs.v[i];
        if (!visit_tasks(p, k, remove_task))
            return false;
        remove_log(p, k, LOG_ROOM);
        keep->planned += keep->there ? k->bytes : 0;
        *surplus -= keep->there ? 0 : MIN(*surplus, k->bytes);
        r->bytes -= MIN(r->bytes, k->bytes);
        r->walk = (struct store_walk){ k->ended_ms, k->job };
    }
    return true;
}

static void remove_surplus(struct piece *p)
{
    struct keeping *keep = &p->c->keeping;
    uint64_t max = p->c->config.keep.logs_bytes;
    struct store_log_sum sum;
    struct err e;
    if (store_log_sum(p->c->config.store, &sum, &e) < 0) {
        complain(p, "logs", &e);
        return;
    }
    uint64_t surplus = max && sum.bytes > max ? sum.bytes - max : 0;
    if (surplus > keep->planned && !keep->room)
        rooms_look(p);
    struct keep_room *r;
    while (keep->planned < surplus && (r = largest_room(keep)))
        if (time_is_up(p) || !remove_of(p, r, &surplus)) {
            p->more = true;
            return;
        }
}

static void remove_logs(struct piece *p)
{
    uint64_t before = p->c->keeping.logs_removed;
    remove_old_logs(p);
    if (p->c->keeping.logs_removed > before)
        p->more = true; /* the sum is known when this is written */
    if (!p->more)
        remove_surplus(p);
}

/* ---- rows of jobs ---- */

static void remove_jobs(struct piece *p)
{
    struct keeping *keep = &p->c->keeping;
    struct store_kepts jobs = { 0 };
    struct err e;
    int64_t keep_ms = p->c->config.keep.jobs_ms, before_ms = p->now_ms - keep_ms;
    struct store_kept_query which = { keep->job_walk, before_ms, PIECE_JOBS, STR("") };
    if (!keep_ms || p->held)
        return;
    if (store_jobs_old(p->c->config.store, &which, &p->arena, &jobs, &e) < 0)
        complain(p, "jobs", &e);
    for (size_t i = 0; i < jobs.n; i++) {
        if (is_enough(p, day_of(p)->jobs++, day_of(p)->jobs_most, "jobs")) {
            jobs.n = i;
            break;
        }
        store_remove_job(p->batch, jobs.v[i].job);
        keep->job_walk = (struct store_walk){ jobs.v[i].ended_ms, jobs.v[i].job };
    }
    if (jobs.n) {
        keep->whole_days_ms = (before_ms / DAY_MS + 1) * DAY_MS;
        store_usage_whole_days(p->batch, keep->whole_days_ms);
    }
    p->more |= jobs.n == PIECE_JOBS;
}

static void trim(struct piece *p)
{
    struct store_trim t = { .keep_events = EVENTS_KEPT,
                            .answers_before_ms = p->held ? 0 : p->now_ms - ANSWERS_KEPT_MS,
                            .whole_days_before_ms = p->c->keeping.whole_days_ms };
    struct err e;
    bool left = false;
    if (store_trim_left(p->c->config.store, &t, &left, &e) < 0)
        complain(p, "events", &e);
    if (left)
        store_trim(p->batch, &t);
    p->more |= left;
}

static void cut_audit(struct piece *p)
{
    struct err e = { 0 };
    p->more |= audit_cut(p->c, p->batch, &e);
    if (e.code)
        complain(p, "audit", &e);
}

/* ---- pieces ---- */

/* What is kept for seconds is not left for a minute longer. */
static uint64_t rest_ms(const struct control_keep *k)
{
    int64_t ms = REST_MS;
    if (k->logs_ms)
        ms = MIN(ms, k->logs_ms);
    if (k->jobs_ms)
        ms = MIN(ms, k->jobs_ms);
    return (uint64_t)MAX(ms, (int64_t)AGAIN_MS);
}

static void keep_later(struct control *c, const struct piece *p)
{
    struct keeping *k = &c->keeping;
    struct err e;
    if (k->progress)
        k->asks = 0;
    bool again = k->waits && k->asks < ASKS_MAX;
    if (p->more) {
        loop_timer_set(k->timer, NEXT_MS, 0);
        return;
    }
    if (k->waits && !again) {
        err_set(&e, ERR_UNAVAILABLE, "the engine was asked to remove some, and they are there");
        complain(p, "logs", &e);
    }
    k->waits = k->progress = false;
    k->rests = !again;
    k->asks = again ? k->asks + 1 : 0;
    k->log_walk = k->job_walk = (struct store_walk){ 0 }; /* from the oldest again */
    k->planned = 0;
    rooms_clear(k);
    loop_timer_set(k->timer, again ? AGAIN_MS : rest_ms(&c->config.keep), 0);
}

static void on_written(void *ctx)
{
    struct keep_written *w = ctx;
    if (w->c)
        w->c->keeping.written = NULL;
    free(w);
}

void keep_piece(void *control)
{
    struct control *c = control;
    struct keeping *k = &c->keeping;
    struct piece p = { .c = c,
                       .now_ms = control_now_ms(c),
                       .until_ns = clock_mono_ns() + PIECE_NS,
                       .held = jump_holds(c) };
    if (k->written || !c->ready || c->stopping || store_failing(c->config.store, NULL)) {
        loop_timer_set(k->timer, k->written ? NEXT_MS : AGAIN_MS, 0);
        return;
    }
    p.batch = store_batch_new(c->config.store);
    measure(&p);
    if (!p.more)
        remove_logs(&p);
    if (!p.more)
        remove_jobs(&p);
    if (!p.more)
        trim(&p);
    if (!p.more && !p.held)
        cut_audit(&p);
    arena_free(&p.arena);
    keep_later(c, &p);
    if (store_batch_empty(p.batch)) {
        store_batch_free(p.batch);
        return;
    }
    k->written = xcalloc(1, sizeof *k->written);
    k->written->c = c;
    store_commit(c->config.store, p.batch, on_written, k->written);
}

void keep_wake(struct control *c)
{
    if (!c->keeping.rests)
        return;
    c->keeping.rests = false;
    loop_timer_set(c->keeping.timer, WAKE_MS, 0);
}

void keep_init(struct control *c)
{
    c->keeping.timer = loop_timer(c->config.loop, keep_piece, c);
    loop_timer_set(c->keeping.timer, AGAIN_MS, 0);
}

void keep_free(struct control *c)
{
    loop_unwatch(c->keeping.timer);
    rooms_clear(&c->keeping);
    if (c->keeping.written)
        c->keeping.written->c = NULL; /* the store has it still */
}
