#include "wire/ring.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

#define NOW_US INT64_C(1772368200250123)

struct files {
    int fd[JOBLOG_SEGMENTS];
};

static struct files files_open(void)
{
    struct files f;
    for (int i = 0; i < JOBLOG_SEGMENTS; i++) {
        f.fd[i] = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
        CHECK(f.fd[i] >= 0 && write(f.fd[i], "rubbish", 7) == 7);
    }
    return f;
}

static void files_close(struct files *f)
{
    for (int i = 0; i < JOBLOG_SEGMENTS; i++)
        close(f->fd[i]);
}

static uint64_t file_size(int fd)
{
    struct stat st;
    CHECK(fstat(fd, &st) == 0);
    return (uint64_t)st.st_size;
}

/* What a reader gets of one stream. */
static void read_back(const struct files *f, enum joblog_stream s, struct buf *out)
{
    AUTO(joblog_reader_free_p) struct joblog_reader *r = joblog_reader_new(f->fd);
    struct joblog_record rec;
    struct err e;
    int rc;
    while ((rc = joblog_reader_next(r, &rec, &e)) > 0)
        if (rec.stream == s) {
            buf_add(out, rec.text);
            buf_addz(out, rec.full ? "\n" : "");
        }
    CHECK(rc == 0 && joblog_reader_bad_lines(r) == 0);
}

static void what_is_written_is_read(void)
{
    AUTO(files_close) struct files f = files_open();
    AUTO(buf_free) struct buf out = BUF(1 << 20), err = BUF(1 << 20), meta = BUF(1000);
    struct ring r;
    ring_begin(&r, f.fd, JOBLOG_BYTES_MIN, NOW_US);
    ring_write(&r, NOW_US, JOBLOG_STDOUT, STR("one\ntw"));
    ring_write(&r, NOW_US, JOBLOG_STDERR, STR("oops\n"));
    ring_write(&r, NOW_US, JOBLOG_STDOUT, STR("o\nend"));
    ring_note(&r, NOW_US, "a note");
    ring_end(&r, NOW_US);
    read_back(&f, JOBLOG_STDOUT, &out);
    read_back(&f, JOBLOG_STDERR, &err);
    read_back(&f, JOBLOG_META, &meta);
    CHECK_STR(out.p, "one\ntwo\nend");
    CHECK_STR(err.p, "oops\n");
    CHECK_STR(meta.p, "a note\n");
    CHECK(r.lost_bytes == 0);
}

static void it_never_grows_past_its_bound(void)
{
    AUTO(files_close) struct files f = files_open();
    AUTO(buf_free) struct buf out = BUF(1 << 20);
    struct ring r;
    char chunk[8192];
    memset(chunk, '\n', sizeof chunk); /* the worst: each byte becomes a record */
    ring_begin(&r, f.fd, JOBLOG_BYTES_MIN, NOW_US);
    for (int i = 0; i < 100; i++) {
        ring_write(&r, NOW_US, JOBLOG_STDERR, (struct str){ chunk, sizeof chunk });
        for (int k = 0; k < JOBLOG_SEGMENTS; k++)
            CHECK(file_size(f.fd[k]) <= JOBLOG_BYTES_MIN / JOBLOG_SEGMENTS);
    }
    ring_write(&r, NOW_US, JOBLOG_STDOUT, STR("the newest\n"));
    ring_end(&r, NOW_US);
    read_back(&f, JOBLOG_STDOUT, &out);
    CHECK_STR(out.p, "the newest\n");
    CHECK(r.number > 50 && r.lost_bytes == 0);
}

/* A disk that is full at `bytes`. */
static void limit_files(uint64_t bytes)
{
    struct rlimit now;
    CHECK(getrlimit(RLIMIT_FSIZE, &now) == 0);
    now.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
}

static void lost_bytes_are_counted_and_told(void)
{
    AUTO(files_close) struct files f = files_open();
    AUTO(buf_free) struct buf out = BUF(1 << 20), meta = BUF(1000);
    char want[128];
    struct ring r;
    signal(SIGXFSZ, SIG_IGN);
    ring_begin(&r, f.fd, 1 << 20, NOW_US);
    limit_files(500);
    for (int i = 0; i < 100; i++)
        ring_write(&r, NOW_US, JOBLOG_STDOUT, STR("0123456789\n0123456789\n"));
    uint64_t lost = r.lost_bytes;
    limit_files(RLIM_INFINITY);
    ring_write(&r, NOW_US, JOBLOG_STDOUT, STR("works again\n"));
    ring_end(&r, NOW_US);
    CHECK(lost > 1000 && r.lost_bytes == lost);
    read_back(&f, JOBLOG_STDOUT, &out);
    CHECK_INT(out.n + lost, 100 * 22 + 12);
    CHECK(out.n > 100 && strcmp(out.p + out.n - 23, "0123456789\nworks again\n") == 0);
    read_back(&f, JOBLOG_META, &meta);
    snprintf(want, sizeof want, "%llu bytes of output were lost: File too large\n",
             (unsigned long long)lost);
    CHECK_STR(meta.p, want);
}

static const struct test tests[] = {
    { "what is written is read, and nothing of before", what_is_written_is_read },
    { "it never grows past its bound and keeps the newest", it_never_grows_past_its_bound },
    { "lost bytes are counted, and told when writing works again",
      lost_bytes_are_counted_and_told },
};
TEST_CASES(tests)
