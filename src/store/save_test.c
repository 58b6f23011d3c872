/* Copies of a store that is in use, and bits that fall over in one. */
#include "store/save.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "store/db.h"
#include "store/directory.h"
#include "sys/file.h"
#include "tests/lib/storing.h"

#define MARK "quite-a-marker"

static void fill(struct storing *t, uint64_t from, uint64_t n)
{
    struct store_batch *b = store_batch_new(t->store);
    for (uint64_t id = from; id < from + n; id++) {
        struct store_job j = storing_job(id, "vision", "ana", MARK, JOB_QUEUED);
        storing_add(b, &j);
        store_add_journal(b, 5, STR("{\"t\":5,\"ev\":\"pass\",\"why\":\"" MARK "\"}"));
    }
    store_put_entry(b, DIRECTORY_PERSON,
                    &(struct store_entry){ STR("ana"), STR("{\"a\":\"" MARK "\"}") });
    storing_commit(t, b);
}

static const char *beside(const struct storing *t, const char *name, char out[static 160])
{
    snprintf(out, 160, "%s/%s", t->dir, name);
    return out;
}

static void a_store_that_is_in_use_is_copied_and_put_back(void)
{
    AUTO(storing_end) struct storing t;
    char copy[160], old[4200];
    struct store_job j;
    struct err e = { 0 };
    storing_begin(&t);
    storing_open(&t);
    fill(&t, 1, 50);
    beside(&t, "copy.db", copy);
    CHECK(store_backup(t.path, copy, &e) == 0);
    fill(&t, 100, 50);
    CHECK(store_restore(copy, t.path, old, &e) < 0);
    CHECK(e.code == ERR_CONFLICT && strstr(e.msg, "already used"));
    t.store = store_close(t.store);
    CHECK(store_restore(copy, t.path, old, &e) == 0 && strstr(old, ".before-restore"));
    storing_open(&t);
    CHECK(store_job_get(t.store, &storing_all, 50, &t.arena, &j, &e) == 0);
    CHECK(store_job_get(t.store, &storing_all, 100, &t.arena, &j, &e) < 0);
    CHECK(store_last_job(t.store) == 50);
    CHECK(store_backup(t.path, copy, &e) == 0); /* over the one before */
    CHECK(store_backup(t.path, "/proc/nowhere/copy.db", &e) < 0 && strstr(e.msg, "/proc/nowhere"));
}

/* Each place of the marker in the file has a bit turned in its own copy. */
static int places_of(const char *path, off_t *out, int max)
{
    static char all[4 << 20];
    int fd = open(path, O_RDONLY), n = 0;
    ssize_t size = read(fd, all, sizeof all);
    close(fd);
    CHECK(size > 0);
    for (char *at = all; (at = memmem(at, (size_t)(all + size - at), MARK, sizeof MARK - 1)); at++)
        if (n < max)
            out[n++] = at - all;
    return n;
}

static void flip(const char *path, off_t at)
{
    char c = 0;
    int fd = open(path, O_RDWR);
    CHECK(pread(fd, &c, 1, at) == 1);
    c = (char)(c ^ 4);
    CHECK(pwrite(fd, &c, 1, at) == 1);
    close(fd);
}

static int count_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    (void)t_ms;
    (void)e;
    *(int *)ctx += memmem(line.p, line.n, MARK, sizeof MARK - 1) != NULL;
    return 0;
}

static bool all_is_there(struct storing *t)
{
    struct store_filter f = { .name = STR(MARK) };
    struct store_jobs jobs = { 0 };
    struct err e;
    int lines = 0;
    return store_jobs_list(t->store, &storing_all, &f, &t->arena, &jobs, &e) == 0 && jobs.n == 20 &&
           store_journal(t->store, count_line, &lines, &e) == 0 && lines == 20;
}

static void a_bit_that_fell_over_is_put_right_at_the_start(void)
{
    AUTO(storing_end) struct storing t;
    AUTO(buf_free) struct buf file = BUF(4 << 20);
    off_t place[600];
    char old[4200];
    struct err e = { 0 };
    storing_begin_often(&t);
    storing_open(&t);
    fill(&t, 1, 20);
    t.store = store_close(t.store);
    CHECK(file_read(t.path, 4 << 20, &file, &e) == 0);
    int n = places_of(t.path, place, 600), found = 0;
    CHECK(n >= 41);
    for (int i = 0; i < n; i++) {
        flip(t.path, place[i]);
        struct store *s = store_open_verified(t.path, &e);
        bool whole = s != NULL; /* bytes that no row has any more */
        store_close(s);
        if (!whole) {
            found++;
            CHECK(e.code == ERR_INTERNAL && strstr(e.msg, "is damaged"));
            CHECK(strstr(e.hint, "nightshift restore"));
            CHECK(store_restore(t.path, t.path, old, &e) < 0);
            CHECK(strstr(e.msg, "nothing was changed"));
        }
        storing_open(&t); /* rows from their sums, indexes from rows */
        CHECK(all_is_there(&t) && !store_damaged(t.store, &e));
        t.store = store_close(t.store);
        s = store_open_verified(t.path, &e);
        CHECK(s != NULL);
        store_close(s);
        int fd = open(t.path, O_WRONLY | O_TRUNC);
        CHECK(write(fd, file.p, file.n) == (ssize_t)file.n);
        close(fd);
    }
    CHECK(found >= 41); /* jobs, lines and the entry; and what is in an index */
}

static void what_is_no_store_is_not_put_back(void)
{
    AUTO(storing_end) struct storing t;
    char other[160], old[4200];
    struct err e = { 0 };
    storing_begin(&t);
    CHECK(store_restore(beside(&t, "none", other), t.path, old, &e) < 0);
    int fd = open(other, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, "words, and no pages", 19) == 19);
    close(fd);
    CHECK(store_restore(other, t.path, old, &e) < 0 && access(t.path, F_OK) < 0);
    fd = open(other, O_WRONLY | O_TRUNC);
    close(fd);
    CHECK(store_restore(other, t.path, old, &e) < 0 && strstr(e.msg, "empty"));
}

static const struct test tests[] = {
    { "a store that is in use is copied, and put back",
      a_store_that_is_in_use_is_copied_and_put_back },
    { "a bit that fell over is put right at the start",
      a_bit_that_fell_over_is_put_right_at_the_start },
    { "what is no store is not put back", what_is_no_store_is_not_put_back },
};
TEST_CASES(tests)
