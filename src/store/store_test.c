#include "store/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "store/kept.h"
#include "sys/file.h"
#include "tests/lib/storing.h"

static void what_was_committed_can_be_read(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_job j = storing_job(7, "vision", "ana", "train", JOB_QUEUED), got;
    struct err e = { 0 };
    j.fixed.array = 7;
    j.fixed.array_index = 3;
    j.now.message = STR("waits\nfor GPUs");
    j.now.exit_code = -1;
    struct store_batch *b = store_batch_new(t.store);
    CHECK(store_batch_empty(b));
    storing_add(b, &j);
    CHECK(!store_batch_empty(b) && store_last_job(t.store) == 7);
    CHECK(store_job_get(t.store, &storing_all, 7, &t.arena, &got, &e) < 0);
    CHECK(e.code == ERR_NOT_FOUND);
    storing_commit(&t, b);
    for (int round = 0; round < 2; round++) {
        CHECK(store_job_get(t.store, &storing_all, 7, &t.arena, &got, &e) == 0);
        CHECK(str_is(got.fixed.tenant, "vision") && str_is(got.fixed.user, "ana"));
        CHECK(str_is(got.fixed.name, "train") && got.fixed.uid == 1000);
        CHECK(got.fixed.submitted_ms == 5007 && got.fixed.replicas == 1);
        CHECK(got.fixed.gpu_milli == 1000 && got.fixed.array == 7 && got.fixed.array_index == 3);
        CHECK(str_eq(got.fixed.spec, j.fixed.spec));
        CHECK(got.now.state == JOB_QUEUED && got.now.priority == PRIO_NORMAL);
        CHECK(got.now.state_ms == 6007 && got.now.exit_code == -1);
        CHECK(str_is(got.now.message, "waits\nfor GPUs") && got.now.where.n == 0);
        CHECK(store_last_job(t.store) == 7);
        storing_reopen(&t); /* and once more from the file */
    }
}

static void what_changes_of_a_job_is_replaced(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_job j = storing_job(1, "vision", "ana", "train", JOB_QUEUED), got;
    struct store_batch *b = store_batch_new(t.store);
    storing_add(b, &j);
    struct store_job_now now = { .state = JOB_FAILED,
                                 .priority = PRIO_HIGH,
                                 .state_ms = 1,
                                 .started_ms = 2,
                                 .ended_ms = 3,
                                 .run = 4,
                                 .exit_code = 5,
                                 .exit_signal = 6,
                                 .end = STR("out_of_memory"),
                                 .message = STR("it took more than 8 GiB"),
                                 .where = STR("[]"),
                                 .ran_ms = 7 };
    store_set_job(b, 1, &now);
    store_set_job(b, 99, &now); /* nobody: no row is made */
    storing_commit(&t, b);
    struct err e = { 0 };
    CHECK(store_job_get(t.store, &storing_all, 1, &t.arena, &got, &e) == 0);
    CHECK(got.now.state == JOB_FAILED && got.now.priority == PRIO_HIGH && got.now.state_ms == 1);
    CHECK(got.now.started_ms == 2 && got.now.ended_ms == 3 && got.now.run == 4);
    CHECK(got.now.exit_code == 5 && got.now.exit_signal == 6 && got.now.ran_ms == 7);
    CHECK(str_is(got.now.end, "out_of_memory") && str_is(got.now.where, "[]"));
    CHECK(str_is(got.now.message, "it took more than 8 GiB") && got.fixed.submitted_ms == 5001);
    CHECK(store_job_get(t.store, &storing_all, 99, &t.arena, &got, &e) < 0);
}

struct order {
    struct storing *t;
    int next, last;
    bool ok;
};
struct numbered {
    struct order *order;
    int n;
};

static void note_order(void *ctx)
{
    struct numbered *x = ctx;
    x->order->ok &= x->n == x->order->last + 1;
    x->order->last = x->n;
    if (x->n == x->order->next)
        loop_stop(x->order->t->loop);
}

static void callbacks_run_on_the_loop_in_order(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    enum {
        N = 500
    };
    struct order order = { .t = &t, .next = N, .ok = true };
    static struct numbered x[N];
    for (int i = 0; i < N; i++) {
        x[i] = (struct numbered){ &order, i + 1 };
        struct store_batch *b = store_batch_new(t.store);
        if (i % 5) /* an empty one keeps its place too */
            store_add_journal(b, i, STR("line"));
        store_commit(t.store, b, note_order, &x[i]);
    }
    CHECK(order.last == 0 && store_pending(t.store) == N);
    loop_run(t.loop);
    CHECK(order.ok && order.last == N && store_pending(t.store) == 0);
}

/* While another program holds the file the batches gather.  The writer may have taken some of them
 * before that; the rest goes in one transaction. */
static void waiting_batches_share_a_transaction(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct err e = { 0 };
    struct store_stats st;
    sqlite3 *other = NULL;
    CHECK(sqlite3_open(t.path, &other) == SQLITE_OK);
    CHECK(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    enum {
        N = 3000
    };
    for (int i = 0; i < N; i++) {
        struct store_batch *b = store_batch_new(t.store);
        store_add_journal(b, i, STR("line"));
        store_commit(t.store, b, storing_count, &t.done);
    }
    CHECK(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(other) == SQLITE_OK);
    CHECK(store_flush(t.store, STORING_WAIT_MS, &e) == 0);
    store_stats(t.store, &st);
    CHECK(t.done == N && st.batches == N && st.rows == N);
    CHECK(st.transactions == 1 || st.transactions == 2);
}

static void a_transaction_has_a_bounded_number_of_rows(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_stats st;
    struct err e = { 0 };
    for (int i = 0; i < 10; i++) { /* 3,000 rows each: two would be above the bound */
        struct store_batch *b = store_batch_new(t.store);
        for (int k = 0; k < 3000; k++)
            store_add_journal(b, k, STR("line"));
        store_commit(t.store, b, NULL, NULL);
    }
    CHECK(store_flush(t.store, STORING_WAIT_MS, &e) == 0);
    store_stats(t.store, &st);
    CHECK(st.transactions == 10 && st.rows == 30000);
}

static void commit_again(void *ctx)
{
    struct storing *t = ctx;
    if (++t->done < 20) {
        struct store_batch *b = store_batch_new(t->store);
        store_add_journal(b, t->done, STR("again"));
        store_commit(t->store, b, commit_again, t);
    }
}

static void closing_commits_what_waits_and_what_follows(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    commit_again(&t);
    struct store_batch *open = store_batch_new(t.store); /* nobody hands this one over */
    store_add_journal(open, 1, STR("dropped"));
    storing_reopen(&t);
    CHECK(t.done == 20 && store_journal_lines(t.store) == 19);
    CHECK(store_close(NULL) == NULL);
}

static void a_thrown_away_batch_leaves_nothing(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    store_add_journal(b, 1, STR("kept"));
    CHECK(store_add_event(b, 1, "job", STR("vision"), 1, STR("{}")) == 1);
    storing_commit(&t, b);
    b = store_batch_new(t.store);
    CHECK(store_add_event(b, 1, "job", STR("vision"), 1, STR("{}")) == 2);
    CHECK(store_add_event(b, 1, "job", STR("vision"), 1, STR("{}")) == 3);
    store_add_journal(b, 1, STR("dropped"));
    store_new_segment(b, 1, 0);
    store_add_journal(b, 1, STR("dropped"));
    store_add_journal(b, 1, STR("dropped"));
    CHECK(store_journal_lines(t.store) == 2 && store_last_event(t.store) == 3);
    CHECK(store_batch_free(b) == NULL && store_batch_free(NULL) == NULL);
    CHECK(store_journal_lines(t.store) == 1 && store_last_event(t.store) == 1);
    b = store_batch_new(t.store);
    CHECK(store_add_event(b, 1, "job", STR("vision"), 1, STR("{}")) == 2); /* no gap */
    storing_commit(&t, b);
    storing_reopen(&t);
    CHECK(store_journal_lines(t.store) == 1 && store_last_event(t.store) == 2);
}

/* ---- opening ---- */

static enum err_code refused(struct storing *t, const char *path, struct err *e)
{
    *e = (struct err){ 0 };
    struct store *s = store_open(t->loop, path, NULL, e);
    CHECK(s == NULL);
    return e->code;
}

static void one_process_has_it_at_a_time(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    int up[2], down[2], status;
    char c;
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e;
        struct store *s = store_open(t.loop, t.path, NULL, &e);
        bool told = s && write(up[1], "x", 1) == 1 && read(down[0], &c, 1) == 1;
        store_close(s);
        _exit(told ? 0 : 1);
    }
    CHECK(read(up[0], &c, 1) == 1);
    struct err e;
    char want[64];
    snprintf(want, sizeof want, "is already used by process %d", (int)pid);
    CHECK(refused(&t, t.path, &e) == ERR_CONFLICT);
    CHECK(strstr(e.msg, want) && strstr(e.msg, t.path) && e.hint[0]);
    CHECK(write(down[1], "x", 1) == 1);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    storing_open(&t); /* free again */
    snprintf(want, sizeof want, "is already used by process %d", (int)getpid());
    CHECK(refused(&t, t.path, &e) == ERR_CONFLICT && strstr(e.msg, want)); /* also in one process */
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
}

static void what_is_not_a_store_is_refused_and_left_alone(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    struct err e;
    CHECK(refused(&t, t.dir, &e) == ERR_INVALID && strstr(e.msg, "a folder"));
    CHECK(refused(&t, "/nowhere/at/all.db", &e) == ERR_UNAVAILABLE && e.hint[0]);
    CHECK(refused(&t, ":memory:", &e) == ERR_INVALID);
    CHECK(refused(&t, "", &e) == ERR_INVALID);
    CHECK(file_write(t.path,
                     STR("#!/bin/sh\necho this is a script, a long one as scripts go, and "
                         "no database at all, whatever its name may say about it\n"),
                     &e) == 0);
    CHECK(refused(&t, t.path, &e) == ERR_INVALID);
    CHECK(strstr(e.msg, "is not a Nightshift store") && strstr(e.msg, t.path) && e.hint[0]);
    AUTO(buf_free) struct buf left = BUF(0);
    CHECK(file_read(t.path, 1000, &left, &e) == 0 && strncmp(left.p, "#!/bin/sh\necho", 14) == 0);
}

static void the_store_is_its_owners_alone(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[128];
        struct stat st;
        snprintf(path, sizeof path, "%s%s", t.path, ends[i]);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    }
}

static void a_read_only_folder_is_named(void)
{
    if (geteuid() == 0)
        SKIP("root may write to a read-only folder");
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    struct err e;
    CHECK(chmod(t.dir, 0500) == 0);
    CHECK(refused(&t, t.path, &e) == ERR_DENIED && strstr(e.msg, t.path));
    CHECK(chmod(t.dir, 0700) == 0);
}

/* Overwrites a page in the middle of the file. */
static void a_damaged_store_says_what_to_do(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (uint64_t id = 1; id <= 500; id++) {
        struct store_job j = storing_job(id, "vision", "ana", "train", JOB_QUEUED);
        storing_add(b, &j);
    }
    storing_commit(&t, b);
    t.store = store_close(t.store);
    int fd = open(t.path, O_RDWR | O_CLOEXEC);
    off_t end = lseek(fd, 0, SEEK_END);
    char junk[4096];
    memset(junk, 0xa5, sizeof junk);
    for (off_t at = 4096; at < end; at += 4096)
        CHECK(pwrite(fd, junk, sizeof junk, at) == (ssize_t)sizeof junk);
    close(fd);
    struct err e;
    CHECK(refused(&t, t.path, &e) == ERR_INTERNAL);
    CHECK(strstr(e.msg, "damaged") && strstr(e.msg, t.path) && strstr(e.hint, ".recover"));
}

static void the_file_stays_small_while_it_is_written(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    char wal[128];
    struct stat st;
    snprintf(wal, sizeof wal, "%s-wal", t.path);
    char line[1000];
    memset(line, 'x', sizeof line);
    for (int round = 0; round < 100; round++) { /* 100 MB in all, of which one is kept */
        struct store_batch *b = store_batch_new(t.store);
        for (int i = 0; i < 1000; i++)
            store_add_journal(b, i, (struct str){ line, sizeof line });
        store_new_segment(b, round, 0);
        store_trim(b, &(struct store_trim){ .keep_events = 1 });
        storing_commit(&t, b);
        CHECK(stat(wal, &st) == 0 && st.st_size < 40 << 20);
    }
    CHECK(stat(t.path, &st) == 0 && st.st_size < 10 << 20);
    t.store = store_close(t.store);
    CHECK(stat(wal, &st) < 0); /* all of it is in the file now */
}

static const struct test tests[] = {
    { "what was committed can be read, also after a restart", what_was_committed_can_be_read },
    { "what changes of a job is replaced", what_changes_of_a_job_is_replaced },
    { "callbacks run on the loop, in order", callbacks_run_on_the_loop_in_order },
    { "waiting batches share a transaction", waiting_batches_share_a_transaction },
    { "a transaction has a bounded number of rows", a_transaction_has_a_bounded_number_of_rows },
    { "closing commits what waits, and what its callbacks commit",
      closing_commits_what_waits_and_what_follows },
    { "a thrown away batch leaves nothing, and no gap", a_thrown_away_batch_leaves_nothing },
    { "one process has it at a time, and the second hears which", one_process_has_it_at_a_time },
    { "what is not a store is refused and left alone",
      what_is_not_a_store_is_refused_and_left_alone },
    { "the store's files are its owner's alone", the_store_is_its_owners_alone },
    { "a read-only folder is named", a_read_only_folder_is_named },
    { "a damaged store says what to do", a_damaged_store_says_what_to_do },
    { "the file and its log stay small while they are written",
      the_file_stays_small_while_it_is_written },
};
TEST_CASES(tests)
