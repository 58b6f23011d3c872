#include "sys/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/lib/test.h"

static const char *line(const struct progress_view *v, struct buf *out)
{
    buf_truncate(out, 0);
    progress_line(v, out);
    return buf_str(out).p;
}

static void the_line_has_rate_and_time_left(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct progress_view v = { .label = "reading", .done = 5000, .total = 20000, .columns = 80 };
    v.elapsed_ns = INT64_C(10000000000);
    CHECK_STR(line(&v, &b),
              "reading [=========>                          ]  25% 5.0k/20.0k, 500/s, 30s left");
    v.done = 20000;
    CHECK(strstr(line(&v, &b), "100% 20.0k/20.0k, 2.0k/s, 10s") && !strstr(b.p, "left"));
    v.total = 0;
    CHECK_STR(line(&v, &b), "reading 20.0k, 2.0k/s");
}

static void a_narrow_window_drops_the_bar_first(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct progress_view v = { .label = "reading", .done = 5, .total = 20, .columns = 40 };
    v.elapsed_ns = 1000000000;
    CHECK_STR(line(&v, &b), "reading  25% 5/20, 5/s, 3s left");
    v.columns = 30;
    CHECK_STR(line(&v, &b), "readi  25% 5/20, 5/s, 3s left");
}

static unsigned columns_of(const char *z)
{
    unsigned n = 0;
    for (; *z; z++) {
        if (*z == '\x1b')
            z = strchr(z, 'm');
        else
            n += ((unsigned char)*z & 0xc0) != 0x80;
    }
    return n;
}

static void no_line_is_wider_than_the_window(void)
{
    AUTO(buf_free) struct buf b = BUF(10000);
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        struct rng r = { seed };
        struct progress_view v = {
            .label = rng_below(&r, 2) ? "na\xc3\xafve caf\xc3\xa9 \x1b[31m\n" : "x",
            .done = rng_u64(&r) >> rng_below(&r, 64),
            .total = rng_u64(&r) >> rng_below(&r, 64),
            .elapsed_ns = (int64_t)(rng_u64(&r) >> rng_between(&r, 1, 63)),
            .columns = rng_below(&r, 200),
            .colour = rng_below(&r, 2),
        };
        line(&v, &b);
        CHECK_AT(seed, columns_of(b.p ? b.p : "") <= (v.columns ? v.columns : 1));
        CHECK_AT(seed, !strchr(b.p ? b.p : "", '\n'));
    }
}

static void colour_is_only_used_when_asked(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct progress_view v = { .label = "x", .done = 1, .total = 2, .columns = 80 };
    CHECK(!strchr(line(&v, &b), '\x1b'));
    v.colour = true;
    CHECK(strchr(line(&v, &b), '\x1b'));
}

static void elsewhere_it_is_silent(void)
{
    char path[] = "/tmp/progress_test.XXXXXX";
    int fd = mkstemp(path), saved = dup(STDERR_FILENO);
    CHECK(fd >= 0 && saved >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    struct progress *p = progress_begin("quick", 1000);
    for (uint64_t i = 0; i < 1000; i++)
        progress_set(p, i);
    p = progress_done(p);
    dup2(saved, STDERR_FILENO);
    off_t written = lseek(fd, 0, SEEK_END);
    close(saved);
    close(fd);
    unlink(path);
    CHECK(p == NULL && written == 0);
    CHECK(progress_done(NULL) == NULL);
}

static const struct test tests[] = {
    { "the line has the share, the rate and the time left", the_line_has_rate_and_time_left },
    { "a narrow window drops the bar, then the label", a_narrow_window_drops_the_bar_first },
    { "no line is wider than the window", no_line_is_wider_than_the_window },
    { "colour is only used when asked for", colour_is_only_used_when_asked },
    { "without a terminal something quick is silent", elsewhere_it_is_silent },
};
TEST_CASES(tests)
