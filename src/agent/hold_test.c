#include "agent/hold.h"

#include <stdio.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

static const char *ask(struct report_hold *h, const char *line, int64_t now_ms, int changes)
{
    static struct buf answer;
    buf_free(&answer);
    answer = BUF(1024);
    CHECK_INT(hold_request(str_of(line), "ana", now_ms, h, &answer), changes);
    return answer.p;
}

static void it_stands_until_it_is_released(void)
{
    struct report_hold h = { 0 };
    CHECK_STR(ask(&h, "show\n", 1000, 0), "ok not held\n");
    CHECK_STR(ask(&h, "release\n", 1000, 0), "ok not held\n");
    CHECK(strstr(ask(&h, "hold 0 I need it\n", 1000, 1), "ok held by ana since "));
    CHECK(h.since_ms == 1000 && h.until_ms == REPORT_UNKNOWN);
    CHECK_STR(h.reason, "I need it");
    ask(&h, "hold 60000\n", 5000, 1); /* said again: another end, the same beginning */
    CHECK(h.since_ms == 1000 && h.until_ms == 65000 && !h.reason[0]);
    ask(&h, "release\n", 6000, 1);
    CHECK_INT(h.since_ms, 0);
    CHECK(strstr(ask(&h, "hold soon\n", 1, 0), "error"));
    CHECK(strstr(ask(&h, "hold 99999999999999\n", 1, 0), "error"));
    CHECK(strstr(ask(&h, "\n", 1, 0), "error"));
    CHECK_INT(h.since_ms, 0);
}

static void what_is_kept_reads_the_same(void)
{
    char path[] = "/tmp/hold-test-XXXXXX";
    AUTO(file_close_p) int fd = mkstemp(path);
    struct report_hold h = { 7000, REPORT_UNKNOWN, "ana", "two  words\xc3\xbc" }, read;
    struct err e;
    CHECK(fd >= 0 && hold_save(path, &h, &e) == 0 && hold_load(path, &read, &e) == 0);
    CHECK(read.since_ms == 7000 && read.until_ms == REPORT_UNKNOWN);
    CHECK_STR(read.by, "ana");
    CHECK_STR(read.reason, h.reason);
    CHECK(file_write(path, STR("x\n"), &e) == 0 && hold_load(path, &read, &e) < 0);
    CHECK_INT(read.since_ms, 0);
    CHECK(hold_save(path, &(struct report_hold){ 0 }, &e) == 0 && access(path, F_OK) < 0);
    CHECK(hold_load(path, &read, &e) == 0 && read.since_ms == 0);
    CHECK(hold_save(path, &(struct report_hold){ 0 }, &e) == 0);
}

static const struct test tests[] = {
    { "it stands until it is released", it_stands_until_it_is_released },
    { "what is kept reads the same", what_is_kept_reads_the_same },
};
TEST_CASES(tests)
