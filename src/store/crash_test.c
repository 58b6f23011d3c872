/* Killed at any moment: what a callback reported is there, whole, in order, once. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/parse.h"
#include "base/rng.h"
#include "tests/lib/storing.h"

#define LINES 3      /* of the journal, each batch */
#define IN_FLIGHT 16 /* batches at once */
#define ROUNDS 50
#define BATCHES_MAX 400

/* ---- the child: commits batches without end and reports each callback ---- */

struct child {
    struct loop *loop;
    struct store *store;
    int report;
    uint64_t next, reported;
};

static void child_give(struct child *c);

static void child_told(void *ctx)
{
    struct child *c = ctx;
    c->reported++;
    if (write(c->report, &c->reported, sizeof c->reported) != (ssize_t)sizeof c->reported)
        _exit(1);
    child_give(c);
}

/* Batch n: job n, event n, three lines "n.0" to "n.2". */
static void child_give(struct child *c)
{
    uint64_t n = c->next++;
    struct store_batch *b = store_batch_new(c->store);
    struct store_job j = storing_job(n, "vision", "ana", "train", JOB_QUEUED);
    storing_add(b, &j);
    store_add_event(b, (int64_t)n, "job", STR("vision"), n, STR("{}"));
    for (int i = 0; i < LINES; i++) {
        char line[32];
        snprintf(line, sizeof line, "%llu.%d", (unsigned long long)n, i);
        store_add_journal(b, (int64_t)n, str_of(line));
    }
    store_commit(c->store, b, child_told, c);
}

static void child_main(const char *path, int report, const char *fail_at, int in_flight)
{
    struct err e;
    struct child c = { .loop = loop_new(), .report = report };
    if (fail_at)
        setenv("NIGHTSHIFT_FAILPOINT", fail_at, 1);
    c.store = store_open(c.loop, path, NULL, &e);
    if (!c.store)
        _exit(2);
    c.next = store_last_job(c.store) + 1;
    c.reported = c.next - 1;
    for (int i = 0; i < in_flight; i++)
        child_give(&c);
    loop_run(c.loop);
    _exit(3);
}

/* Kills the child after `reports` of them (or lets a fail point do it); the last one is returned. */
static uint64_t run_child(struct storing *t, const char *fail_at, int in_flight, uint64_t reports)
{
    int ends[2], status;
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child_main(t->path, ends[1], fail_at, in_flight);
    close(ends[1]);
    uint64_t last = 0, n = 0, seen = 0;
    if (reports == 0)
        kill(pid, SIGKILL);
    while (read(ends[0], &n, sizeof n) == (ssize_t)sizeof n) {
        CHECK(last == 0 || n == last + 1); /* in order */
        last = n;
        if (++seen == reports)
            kill(pid, SIGKILL);
        CHECK(seen < BATCHES_MAX + reports);
    }
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return last;
}

/* ---- the parent ---- */

struct walk {
    uint64_t batch;
    int line;
    bool ok;
};

static int next_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct walk *w = ctx;
    char want[32];
    (void)e;
    if (w->line == 0)
        w->batch++;
    snprintf(want, sizeof want, "%llu.%d", (unsigned long long)w->batch, w->line);
    w->ok &= str_is(line, want) && (uint64_t)t_ms == w->batch;
    w->line = (w->line + 1) % LINES;
    return 0;
}

struct ids {
    struct storing *t;
    uint64_t last;
    bool ok;
};

static int next_job(void *ctx, const struct store_job *j, struct err *e)
{
    struct ids *x = ctx;
    struct store_job whole;
    x->ok &= j->fixed.id == x->last + 1;
    x->last = j->fixed.id;
    if (store_job_get(x->t->store, &storing_all, x->last, &x->t->arena, &whole, e) < 0)
        return -1;
    x->ok &= whole.fixed.spec.n > 0;
    return 0;
}

/* Everything of batches 1 to n is there and nothing else; returns n. */
static uint64_t check_whole(struct storing *t, uint64_t seed)
{
    struct err e = { 0 };
    struct walk w = { .ok = true };
    struct ids jobs = { .t = t, .ok = true };
    struct store_events ev;
    uint64_t n[JOB_STATE_COUNT], number = 0;
    CHECK_AT(seed, store_journal(t->store, next_line, &w, &e) == 0 && w.ok && w.line == 0);
    CHECK_AT(seed, store_living_jobs(t->store, next_job, &jobs, &e) == 0 && jobs.ok);
    CHECK_AT(seed, jobs.last == w.batch && store_last_job(t->store) == w.batch);
    CHECK_AT(seed, store_jobs_count(t->store, &storing_all, n, &e) == 0);
    CHECK_AT(seed, n[JOB_QUEUED] == w.batch);
    do {
        struct store_after after = { .number = number };
        arena_reset(&t->arena);
        CHECK(store_events_after(t->store, &storing_all, &after, &t->arena, &ev, &e) == 0);
        for (size_t i = 0; i < ev.n; i++, number++)
            CHECK_AT(seed, ev.v[i].number == number + 1 && ev.v[i].job == number + 1);
    } while (ev.n);
    CHECK_AT(seed, number == w.batch && store_last_event(t->store) == w.batch);
    return w.batch;
}

static uint64_t reopen_and_check(struct storing *t, uint64_t seed)
{
    storing_open(t);
    uint64_t there = check_whole(t, seed);
    t->store = store_close(t->store);
    return there;
}

static void a_kill_at_any_moment_loses_nothing_reported(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    uint64_t before = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct rng r = { seed };
        uint64_t told = run_child(&t, NULL, (int)rng_between(&r, 1, IN_FLIGHT), rng_below(&r, 40));
        uint64_t there = reopen_and_check(&t, seed);
        CHECK_AT(seed, there >= told && there >= before);
        before = there;
    }
    CHECK(before > 0);
}

static void a_kill_at_each_fail_point_loses_nothing_reported(void)
{
    static const char *const points[] = { "store.before_commit", "store.after_commit",
                                          "store.before_callback" };
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    uint64_t before = 0;
    for (uint64_t seed = 0; seed < 4 * ARRAY_LEN(points); seed++) {
        char at[64];
        const char *point = points[seed % ARRAY_LEN(points)];
        snprintf(at, sizeof at, "%s:%u", point, 1 + 3 * (unsigned)(seed / ARRAY_LEN(points)));
        /* One at a time, all before the one that was cut off have been reported. */
        bool single = strcmp(point, "store.before_commit") == 0;
        uint64_t told = run_child(&t, at, single ? 1 : IN_FLIGHT, BATCHES_MAX);
        uint64_t there = reopen_and_check(&t, seed);
        CHECK_AT(seed, there >= MAX(told, before));
        if (single)
            CHECK_AT(seed, there == MAX(told, before)); /* what was not committed is not there */
        if (strcmp(point, "store.after_commit") == 0)
            CHECK_AT(seed, there > MAX(told, before)); /* committed, and nobody heard of it */
        before = there;
    }
}

static off_t wal_size(const struct storing *t, char path[static 128])
{
    struct stat st;
    snprintf(path, 128, "%s-wal", t->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void garbage_after_the_log_is_ignored(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        AUTO(storing_end) struct storing t;
        storing_begin(&t);
        struct rng r = { seed };
        uint64_t told = run_child(&t, "store.before_callback:6", 1, BATCHES_MAX);
        char wal[128];
        CHECK_AT(seed, wal_size(&t, wal) > 0 && told == 5);
        int fd = open(wal, O_WRONLY | O_APPEND | O_CLOEXEC);
        for (uint32_t n = rng_between(&r, 1, 3000); n > 0; n--) {
            uint64_t junk = rng_u64(&r);
            CHECK(write(fd, &junk, 1 + n % 8) > 0);
        }
        close(fd);
        CHECK_AT(seed, reopen_and_check(&t, seed) == 6);
    }
}

/* The sixth batch is committed and not reported; then its end is cut off, as if the disk had not
 * taken all of it. */
static void a_torn_end_of_the_log_takes_only_what_was_not_reported(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        AUTO(storing_end) struct storing t;
        storing_begin(&t);
        struct rng r = { seed };
        char at[64], wal[128];
        snprintf(at, sizeof at, "store.after_commit:%u", 6);
        uint64_t told = run_child(&t, at, 1, BATCHES_MAX);
        CHECK_AT(seed, told == 5);
        off_t size = wal_size(&t, wal);
        CHECK_AT(seed, size > 4096);
        CHECK(truncate(wal, size - (off_t)rng_between(&r, 1, 4096)) == 0);
        CHECK_AT(seed, reopen_and_check(&t, seed) == 5);
    }
}

static const struct test tests[] = {
    { "a kill at any moment loses nothing reported, and doubles nothing",
      a_kill_at_any_moment_loses_nothing_reported },
    { "a kill at each fail point loses nothing reported",
      a_kill_at_each_fail_point_loses_nothing_reported },
    { "garbage after the log is ignored", garbage_after_the_log_is_ignored },
    { "a torn end of the log takes only what was not reported",
      a_torn_end_of_the_log_takes_only_what_was_not_reported },
};
TEST_CASES(tests)
