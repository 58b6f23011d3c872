#include "wire/joblog.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

#define NOON_US INT64_C(1772368200250123) /* 2026-03-01T12:30:00.250123Z */

static void records_look_as_documented(void)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    CHECK(joblog_format(&b, NOON_US, JOBLOG_STDOUT, STR("the line\n\npart")) == 14);
    CHECK(joblog_format(&b, NOON_US, JOBLOG_STDERR, STR("")) == 0);
    joblog_format_segment(&b, NOON_US, 12);
    CHECK_STR(b.p, "2026-03-01T12:30:00.250123Z stdout F the line\n"
                   "2026-03-01T12:30:00.250123Z stdout F \n"
                   "2026-03-01T12:30:00.250123Z stdout P part\n"
                   "2026-03-01T12:30:00.250123Z meta F segment 12\n");
}

static void dates_are_right(void)
{
    static const struct {
        int64_t s;
        const char *text;
    } days[] = {
        { 0, "1970-01-01T00:00:00" },          { 951782400, "2000-02-29T00:00:00" },
        { 951868799, "2000-02-29T23:59:59" },  { 1709164800, "2024-02-29T00:00:00" },
        { 1735689599, "2024-12-31T23:59:59" }, { 4107542400, "2100-03-01T00:00:00" },
        { 4107542399, "2100-02-28T23:59:59" }, { 253402300799, "9999-12-31T23:59:59" },
    };
    for (size_t i = 0; i < ARRAY_LEN(days); i++) {
        AUTO(buf_free) struct buf b = BUF(1000);
        struct joblog_record r;
        joblog_format(&b, days[i].s * 1000000 + 7, JOBLOG_META, STR("x"));
        CHECK(joblog_parse((struct str){ b.p, b.n - 1 }, &r) && r.t_us == days[i].s * 1000000 + 7);
        b.p[19] = '\0';
        CHECK_STR(b.p, days[i].text);
    }
}

/* Formats, parses, joins. */
static void check_round(struct str chunk, size_t limit)
{
    AUTO(buf_free) struct buf back = BUF(1 << 20);
    while (chunk.n > 0) {
        AUTO(buf_free) struct buf b = BUF(limit);
        struct joblog_record r;
        struct str line, rest;
        size_t before = back.n, n = joblog_format(&b, NOON_US, JOBLOG_STDOUT, chunk);
        CHECK(n > 0 && !b.full);
        for (rest = buf_str(&b); str_cut(rest, '\n', &line, &rest);) {
            CHECK(line.n < JOBLOG_RECORD_MAX && joblog_parse(line, &r));
            buf_add(&back, r.text);
            buf_addz(&back, r.full ? "\n" : "");
        }
        CHECK(back.n == before + n && memcmp(back.p + before, chunk.p, n) == 0);
        chunk = (struct str){ chunk.p + n, chunk.n - n };
    }
}

static void any_bytes_come_back(void)
{
    AUTO(free_p) char *data = xmalloc(100000);
    for (size_t i = 0; i < 100000; i++)
        data[i] = (char)(i * 7 + i / 256); /* every byte, lines of many lengths */
    check_round((struct str){ data, 100000 }, 1 << 20);
    check_round((struct str){ data, 100000 }, JOBLOG_RECORD_MAX);
    memset(data, 'x', 100000);
    data[JOBLOG_TEXT_MAX] = '\n'; /* exactly a record's worth */
    check_round((struct str){ data, 100000 }, JOBLOG_RECORD_MAX);
    check_round((struct str){ data, JOBLOG_TEXT_MAX + 1 }, JOBLOG_RECORD_MAX);
}

static void what_is_no_record_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "2026-03-01T12:30:00.250123Z",
        "2026-03-01T12:30:00.250123Z stdout",
        "2026-03-01T12:30:00.250123Z stdout F",
        "2026-03-01T12:30:00.250123Z stdout G x",
        "2026-03-01T12:30:00.250123Z stdlog F x",
        "2026-03-01 12:30:00.250123Z stdout F x",
        "2026-13-01T12:30:00.250123Z stdout F x",
        "2026-03-01T24:30:00.250123Z stdout F x",
        "2026-03-01T12:30:00.25012Z stdout F x",
        "1969-03-01T12:30:00.250123Z stdout F x",
        "2026-03-01T12:30:00.250123Z stdout FF",
    };
    struct joblog_record r = { .t_us = 77 };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!joblog_parse(str_of(bad[i]), &r) && r.t_us == 77);
}

static void a_segment_is_known_by_its_first_line(void)
{
#define AT "2026-03-01T12:30:00.250123Z "
    uint64_t n = 77;
    CHECK(!joblog_segment(STR(""), &n) && !joblog_segment(STR(AT "meta F segment 3"), &n));
    CHECK(!joblog_segment(STR(AT "stdout F segment 3\n"), &n) && n == 77); /* the job may say so */
    CHECK(!joblog_segment(STR(AT "meta P segment 3\n"), &n));
    CHECK(!joblog_segment(STR(AT "meta F segment 3x\n"), &n));
    CHECK(!joblog_segment(STR(AT "meta F segment \n"), &n) && n == 77);
    CHECK(joblog_segment(STR(AT "meta F segment 3\n"), &n) && n == 3);
    CHECK(joblog_segment(STR(AT "meta F segment 123456789012\nmore"), &n) && n == 123456789012);
}

/* --- a log on disk --- */

struct disk {
    char dir[64];
    int fd[JOBLOG_SEGMENTS];
    uint64_t number; /* of the segment being written */
    struct joblog_reader *r;
};

static void disk_close(struct disk *d)
{
    char path[96];
    d->r = joblog_reader_free(d->r);
    for (int i = 0; i < JOBLOG_SEGMENTS; i++) {
        snprintf(path, sizeof path, "%s/log.%d", d->dir, i);
        unlink(path);
        if (d->fd[i] >= 0)
            close(d->fd[i]);
    }
    rmdir(d->dir);
}

static struct disk disk_open(void)
{
    struct disk d = { .dir = "/tmp/joblog_testXXXXXX", .fd = { -1, -1, -1, -1 } };
    struct err e;
    CHECK(mkdtemp(d.dir) != NULL);
    d.r = joblog_reader_open(d.dir, &e);
    CHECK(d.r != NULL);
    return d;
}

static void put(struct disk *d, struct str bytes)
{
    CHECK(write(d->fd[d->number % JOBLOG_SEGMENTS], bytes.p, bytes.n) == (ssize_t)bytes.n);
}

static void say(struct disk *d, const char *text)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    CHECK(joblog_format(&b, NOON_US, JOBLOG_STDOUT, str_of(text)) == strlen(text));
    put(d, buf_str(&b));
}

static void begin_segment(struct disk *d, uint64_t number)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    char path[96];
    int at = (int)(number % JOBLOG_SEGMENTS);
    snprintf(path, sizeof path, "%s/log.%d", d->dir, at);
    if (d->fd[at] < 0)
        d->fd[at] = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(d->fd[at] >= 0 && ftruncate(d->fd[at], 0) == 0);
    d->number = number;
    joblog_format_segment(&b, NOON_US, number);
    put(d, buf_str(&b));
}

static const char *read_all(struct disk *d, struct buf *out)
{
    struct joblog_record r;
    struct err e;
    int rc;
    buf_truncate(out, 0);
    while ((rc = joblog_reader_next(d->r, &r, &e)) > 0) {
        buf_add(out, r.text);
        buf_addz(out, r.full ? "\n" : "");
    }
    CHECK(rc == 0);
    return out->n ? out->p : "";
}

static void a_log_is_read_as_it_grows(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    CHECK_STR(read_all(&d, &b), ""); /* no file yet */
    begin_segment(&d, 0);
    CHECK_STR(read_all(&d, &b), "");
    say(&d, "one\ntw");
    CHECK_STR(read_all(&d, &b), "one\ntw");
    say(&d, "o\n");
    CHECK_STR(read_all(&d, &b), "o\n");
    CHECK_STR(read_all(&d, &b), "");
    begin_segment(&d, 1);
    say(&d, "three\n");
    begin_segment(&d, 2);
    begin_segment(&d, 3);
    say(&d, "four\n");
    CHECK_STR(read_all(&d, &b), "three\nfour\n");
    begin_segment(&d, 4);
    say(&d, "five\n");
    CHECK_STR(read_all(&d, &b), "five\n");
    CHECK(joblog_reader_lost_segments(d.r) == 0 && joblog_reader_bad_lines(d.r) == 0);
}

static void a_torn_record_waits(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    begin_segment(&d, 0);
    say(&d, "one\n");
    put(&d, STR(AT "stdout F to"));
    CHECK_STR(read_all(&d, &b), "one\n");
    put(&d, STR("rn"));
    CHECK_STR(read_all(&d, &b), "");
    put(&d, STR("\n"));
    CHECK_STR(read_all(&d, &b), "torn\n");
    off_t end = lseek(d.fd[0], 0, SEEK_END);
    put(&d, STR(AT "stdout F taken back when the disk was fu"));
    CHECK_STR(read_all(&d, &b), "");
    CHECK(ftruncate(d.fd[0], end) == 0);
    say(&d, "later\n");
    CHECK_STR(read_all(&d, &b), "later\n");
    CHECK(joblog_reader_bad_lines(d.r) == 0);
}

static void the_oldest_is_first_wherever_it_lies(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    for (uint64_t n = 0; n < 7; n++) {
        char text[16];
        snprintf(text, sizeof text, "%u\n", (unsigned)n);
        begin_segment(&d, n);
        say(&d, text);
    }
    CHECK_STR(read_all(&d, &b), "3\n4\n5\n6\n");
    CHECK(joblog_reader_lost_segments(d.r) == 0); /* what was gone before is not missed */
}

static void a_ring_that_moved_on_is_noticed(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    begin_segment(&d, 0);
    say(&d, "0\n");
    CHECK_STR(read_all(&d, &b), "0\n");
    for (uint64_t n = 1; n <= 9; n++) { /* 0 to 5 are gone */
        begin_segment(&d, n);
        say(&d, n % 2 ? "odd\n" : "even\n");
    }
    CHECK_STR(read_all(&d, &b), "even\nodd\neven\nodd\n");
    CHECK_INT(joblog_reader_lost_segments(d.r), 6);
    CHECK(ftruncate(d.fd[1], 0) ==
          0); /* 9 is emptied to become 13, but the mark is not there yet */
    CHECK_STR(read_all(&d, &b), "");
    begin_segment(&d, 13);
    say(&d, "new\n");
    CHECK_STR(read_all(&d, &b), "new\n");
    CHECK_INT(joblog_reader_lost_segments(d.r), 6 + 4);
}

static void rubbish_is_counted_and_passed_over(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    AUTO(free_p) char *junk = xmalloc(300000);
    memset(junk, 'j', 300000);
    begin_segment(&d, 0);
    put(&d, STR("nonsense\n"));
    say(&d, "one\n");
    put(&d, (struct str){ junk, 300000 });
    CHECK_STR(read_all(&d, &b), "one\n");
    put(&d, STR("\n"));
    say(&d, "two\n");
    CHECK_STR(read_all(&d, &b), "two\n");
    CHECK_INT(joblog_reader_bad_lines(d.r), 2);
    put(&d, STR(AT "stdout F never ended"));
    begin_segment(&d, 1);
    say(&d, "three\n");
    CHECK_STR(read_all(&d, &b), "three\n");
    CHECK_INT(joblog_reader_bad_lines(d.r), 3);
    struct err e;
    CHECK(joblog_reader_tail(d.r, 3, &e) == 0);
    CHECK_STR(read_all(&d, &b), "one\ntwo\nthree\n");
}

static void descriptors_do_as_well_as_a_folder(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    begin_segment(&d, 0);
    say(&d, "one\n");
    joblog_reader_free(d.r);
    d.r = joblog_reader_new(d.fd);
    CHECK_STR(read_all(&d, &b), "one\n");
    struct err e;
    CHECK(joblog_reader_open("/no/such/folder", &e) == NULL && e.code == ERR_NOT_FOUND);
}

static const char *tail(struct disk *d, uint64_t lines, struct buf *b)
{
    struct err e;
    CHECK(joblog_reader_tail(d->r, lines, &e) == 0);
    return read_all(d, b);
}

static void the_last_lines_are_found(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    CHECK_STR(tail(&d, 5, &b), "");
    begin_segment(&d, 0);
    CHECK_STR(tail(&d, 5, &b), "");
    say(&d, "1\n2");
    say(&d, "2\n"); /* one line in two records */
    begin_segment(&d, 1);
    say(&d, "3");
    begin_segment(&d, 2); /* a line across segments */
    say(&d, "33\n4\n");
    CHECK_STR(tail(&d, 0, &b), "");
    CHECK_STR(tail(&d, 1, &b), "4\n");
    CHECK_STR(tail(&d, 2, &b), "333\n4\n");
    CHECK_STR(tail(&d, 3, &b), "22\n333\n4\n");
    CHECK_STR(tail(&d, 4, &b), "1\n22\n333\n4\n");
    CHECK_STR(tail(&d, 1000, &b), "1\n22\n333\n4\n");
    say(&d, "open");
    CHECK_STR(tail(&d, 1, &b), "open"); /* a line without an end is a line */
    CHECK_STR(tail(&d, 2, &b), "4\nopen");
    CHECK_STR(tail(&d, 0, &b), "");
    say(&d, "ed\n");
    CHECK_STR(read_all(&d, &b), "ed\n");
}

static void the_last_lines_of_a_large_log_are_found(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(32 << 20), want = BUF(32 << 20), text = BUF(1 << 20);
    unsigned line = 0;
    for (uint64_t n = 0; n < 4; n++) {
        begin_segment(&d, n);
        for (int block = 0; block < 20; block++) {
            buf_truncate(&text, 0);
            for (int i = 0; i < 200; i++, line++)
                buf_printf(&text, "line %u %*s\n", line, (int)(line * line % 97), "x");
            say(&d, text.p);
        }
    }
    for (unsigned last = 1; last <= 16000; last = last * 3 + 1) {
        buf_truncate(&want, 0);
        for (unsigned i = line - last; i < line; i++)
            buf_printf(&want, "line %u %*s\n", i, (int)(i * i % 97), "x");
        CHECK_STR(tail(&d, last, &b), want.p);
    }
}

static void reading_is_taken_up_at_a_place(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    struct err e;
    begin_segment(&d, 0);
    struct joblog_place none = joblog_reader_place(d.r);
    CHECK(none.segment == 0 && none.byte == 0);
    say(&d, "one\ntwo\n");
    CHECK_STR(read_all(&d, &b), "one\ntwo\n");
    struct joblog_place place = joblog_reader_place(d.r);
    say(&d, "three\n");
    begin_segment(&d, 1);
    say(&d, "four\n");
    for (int i = 0; i < 2; i++) {
        CHECK(joblog_reader_seek(d.r, &place, &e) == 0);
        CHECK_STR(read_all(&d, &b), "three\nfour\n");
    }
    for (unsigned i = 2; i <= 4; i++)
        begin_segment(&d, i);
    say(&d, "five\n");
    CHECK(joblog_reader_seek(d.r, &place, &e) == 0); /* overwritten: the oldest that is left */
    place = joblog_reader_place(d.r);
    CHECK(place.segment == 0 && place.byte == 0 && joblog_reader_lost_segments(d.r) == 1);
    CHECK_STR(read_all(&d, &b), "four\nfive\n");
}

static void a_log_can_be_read_up_to_a_place(void)
{
    AUTO(disk_close) struct disk d = disk_open();
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    begin_segment(&d, 0);
    CHECK_STR(read_all(&d, &b), "");
    struct joblog_place empty = joblog_reader_place(d.r), two;
    say(&d, "1\n2\n");
    CHECK_STR(read_all(&d, &b), "1\n2\n");
    two = joblog_reader_place(d.r);
    say(&d, "3\n");
    begin_segment(&d, 1);
    say(&d, "4\n");
    joblog_reader_end_at(d.r, &two);
    CHECK_STR(read_all(&d, &b), "");
    CHECK_STR(tail(&d, 1, &b), "2\n");
    CHECK_STR(tail(&d, 9, &b), "1\n2\n");
    joblog_reader_end_at(d.r, &empty); /* behind the segment's mark, before the first line */
    CHECK_STR(tail(&d, 9, &b), "");
}

static const struct test tests[] = {
    { "records look as documented", records_look_as_documented },
    { "dates are right", dates_are_right },
    { "any bytes come back as they were", any_bytes_come_back },
    { "what is no record is refused", what_is_no_record_is_refused },
    { "a segment is known by its first line", a_segment_is_known_by_its_first_line },
    { "a log is read as it grows", a_log_is_read_as_it_grows },
    { "a record without its end waits for it", a_torn_record_waits },
    { "the oldest is first wherever it lies", the_oldest_is_first_wherever_it_lies },
    { "a ring that moved on is noticed", a_ring_that_moved_on_is_noticed },
    { "rubbish is counted and passed over", rubbish_is_counted_and_passed_over },
    { "descriptors do as well as a folder", descriptors_do_as_well_as_a_folder },
    { "the last lines are found", the_last_lines_are_found },
    { "the last lines of a large log are found", the_last_lines_of_a_large_log_are_found },
    { "reading is taken up at a place", reading_is_taken_up_at_a_place },
    { "a log can be read up to a place", a_log_can_be_read_up_to_a_place },
};
TEST_CASES(tests)
