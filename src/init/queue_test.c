#include "init/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "tests/lib/test.h"

static void bytes_wait_until_they_are_taken(void)
{
    struct queue q = { .b = BUF(1 << 20) };
    char out[4096];
    int ends[2];
    size_t sent = 0, taken = 0;
    CHECK(pipe2(ends, O_NONBLOCK) == 0);
    while (sent < 4 << 20) { /* four times its limit passes through it */
        char piece[1000];
        for (size_t i = 0; i < sizeof piece; i++)
            piece[i] = (char)((sent + i) % 251);
        if (queue_bytes(&q) < 400000) {
            buf_add(&q.b, (struct str){ piece, sizeof piece });
            sent += sizeof piece;
        } else {
            ssize_t n = read(ends[0], out, sizeof out);
            CHECK(n > 0);
            for (ssize_t i = 0; i < n; i++)
                CHECK((uint8_t)out[i] == (taken + (size_t)i) % 251);
            taken += (size_t)n;
        }
        CHECK(queue_flush(&q, ends[1]) >= 0 && !q.b.full);
    }
    CHECK(taken > 3 << 20);
    buf_free(&q.b);
    close(ends[0]);
    close(ends[1]);
}

static void a_reader_that_went_is_noticed(void)
{
    struct queue q = { .b = BUF(1000) };
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    CHECK(pipe2(ends, O_NONBLOCK) == 0 && close(ends[0]) == 0);
    buf_addz(&q.b, "x");
    CHECK(queue_flush(&q, ends[1]) < 0);
    queue_drop(&q);
    CHECK(queue_bytes(&q) == 0 && queue_flush(&q, ends[1]) == 0);
    buf_free(&q.b);
    close(ends[1]);
}

static const struct test tests[] = {
    { "bytes wait in order until they are taken", bytes_wait_until_they_are_taken },
    { "a reader that went is noticed", a_reader_that_went_is_noticed },
};
TEST_CASES(tests)
