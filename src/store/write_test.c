/* The disk refuses: nothing is lost, nothing doubled, the order holds. */
#include "store/write.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/audit.h"
#include "tests/lib/storing.h"

static void limit_file_size(rlim_t bytes)
{
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
    r.rlim_cur = MIN(bytes, r.rlim_max);
    CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
}

/* From now on no file may grow by more than `more` above the log's size. */
static void no_room(const struct storing *t, rlim_t more)
{
    char wal[128];
    struct stat st;
    snprintf(wal, sizeof wal, "%s-wal", t->path);
    CHECK(stat(wal, &st) == 0);
    limit_file_size((rlim_t)st.st_size + more);
}

struct told {
    int last;
    bool in_order;
};
struct numbered {
    struct told *told;
    int n;
};

static void tell(void *ctx)
{
    struct numbered *x = ctx;
    x->told->in_order &= x->n == x->told->last + 1;
    x->told->last = x->n;
}

#define BATCHES 60

static void give_batch(struct storing *t, struct numbered *x)
{
    static char line[8000];
    memset(line, 'x', sizeof line);
    struct store_batch *b = store_batch_new(t->store);
    struct store_job j = storing_job((uint64_t)x->n, "vision", "ana", "train", JOB_QUEUED);
    storing_add(b, &j);
    store_add_journal(b, x->n, (struct str){ line, sizeof line });
    store_add_audit(b, &(struct audit_row){ .t_ms = x->n, .who = STR("ana") });
    store_commit(t->store, b, tell, x);
}

static int count_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    int *last = ctx;
    (void)e;
    *last = t_ms == *last + 1 && line.n == 8000 ? *last + 1 : -1000000;
    return 0;
}

/* A transaction that was tried again is in the chain once. */
static void check_audit(struct storing *t, int want)
{
    struct store_audit_check c;
    struct err e = { 0 };
    CHECK(store_audit_check_begin(t->store, NULL, &c, &e) == 0);
    while (!c.done)
        CHECK(store_audit_check(t->store, &c, 100, &e) == 0);
    CHECK_INT(c.chain.fault, AUDIT_FAULT_NONE);
    CHECK_INT(c.chain.rows, want);
}

static void check_all_there(struct storing *t, int want)
{
    struct err e = { 0 };
    uint64_t n[JOB_STATE_COUNT];
    int lines = 0;
    CHECK(store_jobs_count(t->store, &storing_all, n, &e) == 0);
    CHECK_INT(n[JOB_QUEUED], want);
    CHECK(store_journal(t->store, count_line, &lines, &e) == 0);
    CHECK_INT(lines, want);
    check_audit(t, want);
}

static void a_full_disk_is_waited_for(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct err e = { 0 };
    struct told told = { .in_order = true };
    static struct numbered x[BATCHES];
    no_room(&t, 100000);
    for (int i = 0; i < BATCHES; i++) {
        x[i] = (struct numbered){ &told, i + 1 };
        give_batch(&t, &x[i]);
        CHECK(store_flush(t.store, i < BATCHES / 2 ? 20 : 0, &e) == 0 || e.code == ERR_UNAVAILABLE);
    }
    while (!store_failing(t.store, NULL)) /* 60 x 8 kB do not fit, so it comes */
        CHECK(store_flush(t.store, 100, &e) < 0);
    CHECK(store_failing(t.store, &e) && e.code == ERR_UNAVAILABLE);
    CHECK(strstr(e.msg, t.path) && strstr(e.msg, "KiB are free") && e.hint[0]);
    CHECK(store_flush(t.store, 1, &e) < 0 && strstr(e.msg, "are not written: cannot write"));
    size_t pending = store_pending(t.store);
    CHECK(pending > 0 && told.last + (int)pending == BATCHES);
    check_all_there(&t, told.last); /* reading goes on, and shows what is durable */
    limit_file_size(RLIM_INFINITY);
    CHECK(store_flush(t.store, STORING_WAIT_MS, &e) == 0);
    CHECK(!store_failing(t.store, &e) && store_pending(t.store) == 0);
    CHECK(told.in_order && told.last == BATCHES);
    struct store_stats st;
    store_stats(t.store, &st);
    CHECK(st.refused > 0 && st.batches == BATCHES);
    storing_reopen(&t);
    check_all_there(&t, BATCHES);
}

static void closing_gives_up_and_what_was_durable_is_there(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct err e = { 0 };
    struct told told = { .in_order = true };
    static struct numbered x[BATCHES];
    no_room(&t, 100000);
    for (int i = 0; i < BATCHES; i++) {
        x[i] = (struct numbered){ &told, i + 1 };
        give_batch(&t, &x[i]);
    }
    while (!store_failing(t.store, NULL))
        CHECK(store_flush(t.store, 10, &e) < 0);
    t.store = store_close(t.store); /* no second wait: the flush has said that it fails */
    limit_file_size(RLIM_INFINITY);
    CHECK(told.in_order && told.last < BATCHES);
    storing_open(&t);
    check_all_there(&t, told.last);
}

/* ---- a disk of its own, in a mount namespace of its own: a child, because it cannot be undone ---- */

#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return __LINE__;                                                                       \
    } while (0)
#define NO_MOUNTS 1

static int on_a_small_disk(struct storing *t)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", t->dir, "tmpfs", 0, "size=512k") < 0)
        return NO_MOUNTS;
    struct err e = { 0 };
    struct told told = { .in_order = true };
    static struct numbered x[BATCHES];
    t->store = store_open(t->loop, t->path, NULL, &e);
    EXPECT(t->store);
    for (int i = 0; i < BATCHES; i++) {
        x[i] = (struct numbered){ &told, i + 1 };
        give_batch(t, &x[i]);
    }
    while (!store_failing(t->store, NULL))
        EXPECT(store_flush(t->store, 100, &e) < 0);
    EXPECT(store_failing(t->store, &e) && strstr(e.msg, "no room"));
    EXPECT(mount("none", t->dir, "tmpfs", MS_REMOUNT, "size=64m") == 0);
    EXPECT(store_flush(t->store, STORING_WAIT_MS, &e) == 0 && !store_failing(t->store, NULL));
    EXPECT(told.in_order && told.last == BATCHES);
    t->store = store_close(t->store);
    t->store = store_open(t->loop, t->path, NULL, &e);
    uint64_t n[JOB_STATE_COUNT];
    EXPECT(t->store && store_jobs_count(t->store, &storing_all, n, &e) == 0);
    EXPECT(n[JOB_QUEUED] == BATCHES);
    t->store = store_close(t->store);
    EXPECT(mount("none", t->dir, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64m") == 0);
    EXPECT(!store_open(t->loop, t->path, NULL, &e) && e.code == ERR_DENIED &&
           strstr(e.msg, t->path));
    return 0;
}

static void a_full_file_system_is_waited_for(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int line = on_a_small_disk(&t);
        if (line > NO_MOUNTS)
            fprintf(stderr, "line %d\n", line);
        _exit(line > NO_MOUNTS ? 2 : line);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_MOUNTS)
        SKIP("needs the right to mount");
    CHECK(WEXITSTATUS(status) == 0);
}

/* A fault of the caller, not of the disk: it stays visible, and nothing overtakes it. */
static void what_cannot_be_written_stays_and_is_said(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct err e = { 0 };
    struct told told = { .in_order = true };
    struct numbered x[3] = { { &told, 1 }, { &told, 1 }, { &told, 2 } };
    for (size_t i = 0; i < ARRAY_LEN(x); i++)
        give_batch(&t, &x[i]);
    struct store_stats st = { 0 };
    for (; st.refused < 3; store_stats(t.store, &st)) /* each try ends for the same reason */
        CHECK(store_flush(t.store, 10, &e) < 0);
    CHECK(store_failing(t.store, &e) && e.code == ERR_INTERNAL && strstr(e.msg, "job.id"));
    CHECK(store_pending(t.store) >= 2 && told.last <= 1);
}

static const struct test tests[] = {
    { "a full disk is waited for: nothing lost, nothing doubled", a_full_disk_is_waited_for },
    { "closing gives up when the disk refuses, and keeps what was durable",
      closing_gives_up_and_what_was_durable_is_there },
    { "a full file system is waited for", a_full_file_system_is_waited_for },
    { "what cannot be written stays, and is said", what_cannot_be_written_stays_and_is_said },
};
TEST_CASES(tests)
