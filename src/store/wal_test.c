/* The log of a store whose process was killed, with bits that fell over. */
#include "store/wal.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/rng.h"
#include "store/save.h"
#include "sys/file.h"
#include "tests/lib/storing.h"

#define BATCHES 12
#define FLIPS 150

static const char *log_of(const struct storing *t, char out[static 160])
{
    snprintf(out, 160, "%s-wal", t->path);
    return out;
}

/* A process that has written so many batches, and was killed. */
static void leave_log(struct storing *t)
{
    storing_begin_often(t);
    pid_t pid = fork();
    if (pid == 0) {
        struct storing in = *t;
        in.loop = loop_new();
        storing_open(&in);
        for (uint64_t i = 1; i <= BATCHES; i++) {
            struct store_batch *b = store_batch_new(in.store);
            struct store_job j = storing_job(i, "vision", "ana", "train", JOB_QUEUED);
            storing_add(b, &j);
            storing_commit(&in, b);
        }
        _exit(0);
    }
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void write_file(const char *path, const struct buf *b)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    CHECK(fd >= 0 && write(fd, b->p, b->n) == (ssize_t)b->n);
    close(fd);
}

static void a_log_that_is_whole_is_taken(void)
{
    AUTO(storing_end) struct storing t;
    struct err e = { 0 };
    leave_log(&t);
    CHECK(wal_check(t.path, true, &e) == 0 && wal_check(t.path, false, &e) == 0);
    storing_open(&t);
    CHECK(store_last_job(t.store) == BATCHES);
    CHECK(wal_check("/nowhere/at/all", true, &e) == 0);
}

/* What SQLite would take of it is all, or it is refused; of the last transaction alone nobody can tell. */
static void any_bit_of_it_is_found(void)
{
    AUTO(storing_end) struct storing t;
    AUTO(buf_free) struct buf log = BUF(4 << 20), file = BUF(4 << 20);
    struct rng rng = { 3 };
    struct err e = { 0 };
    char name[160];
    int refused = 0, last = 0;
    leave_log(&t);
    CHECK(file_read(log_of(&t, name), 4 << 20, &log, &e) == 0 && log.n > 40000);
    CHECK(file_read(t.path, 4 << 20, &file, &e) == 0);
    for (int i = 0; i < FLIPS; i++) {
        uint32_t bit = rng_below(&rng, (uint32_t)log.n * 8);
        log.p[bit / 8] = (char)(log.p[bit / 8] ^ (1 << bit % 8));
        write_file(name, &log);
        write_file(t.path, &file);
        t.store = store_open(t.loop, t.path, NULL, &e);
        if (t.store) {
            last += store_last_job(t.store) == BATCHES - 1;
            CHECK_AT(bit, store_last_job(t.store) >= BATCHES - 1);
        } else {
            refused++;
            CHECK(store_open_verified(t.path, &e) == NULL);
            CHECK(strstr(e.msg, "-wal' is damaged") && strstr(e.hint, "nightshift restore"));
        }
        t.store = store_close(t.store);
        log.p[bit / 8] = (char)(log.p[bit / 8] ^ (1 << bit % 8));
        write_file(name, &log);
    }
    CHECK(refused > FLIPS / 2 && last < FLIPS / 4);
    log.p[20] = (char)~log.p[20]; /* whose it is */
    write_file(name, &log);
    CHECK(wal_check(t.path, true, &e) < 0 && strstr(e.msg, "header"));
}

/* The machine went down: the last transaction is torn, and nobody was told of it. */
static void a_torn_end_is_no_damage(void)
{
    AUTO(storing_end) struct storing t;
    AUTO(buf_free) struct buf log = BUF(4 << 20);
    struct err e = { 0 };
    char name[160];
    leave_log(&t);
    CHECK(file_read(log_of(&t, name), 4 << 20, &log, &e) == 0);
    size_t page = 4096 + 24;
    /* Its last frame reached the disk, this one did not. */
    memset(log.p + log.n - 2 * page + 24, 0, 4096);
    write_file(name, &log);
    CHECK(wal_check(t.path, false, &e) == 0 && wal_check(t.path, true, &e) < 0);
    CHECK(store_open(t.loop, t.path, NULL, &e) == NULL); /* the lock says: the same boot */
    snprintf(name, sizeof name, "%s.lock", t.path);
    CHECK(unlink(name) == 0);
    storing_open(&t);
    CHECK(store_last_job(t.store) == BATCHES - 1);
}

static const struct test tests[] = {
    { "a log that is whole is taken", a_log_that_is_whole_is_taken },
    { "any bit of it is found", any_bit_of_it_is_found },
    { "a torn end is no damage", a_torn_end_is_no_damage },
};
TEST_CASES(tests)
