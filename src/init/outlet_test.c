#include "init/outlet.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "init/times.h"
#include "tests/lib/test.h"

static char piece[OUTLET_PIECE_MAX];

/* Writes until it is full; returns how many bytes that were. */
static size_t fill(struct outlet *o)
{
    size_t n = 0;
    for (; !outlet_full(o); n += sizeof piece)
        outlet_write(o, (struct str){ piece, sizeof piece });
    return n;
}

static void what_is_not_read_is_kept_and_bounded(void)
{
    struct outlet o;
    int ends[2];
    CHECK(pipe(ends) == 0);
    outlet_open(&o, ends[1]);
    CHECK(outlet_idle(&o) && outlet_poll(&o).fd == -1);
    size_t sent = fill(&o), got = 0;
    CHECK(sent >= 4 * sizeof piece && sent <= 32 * sizeof piece && !outlet_idle(&o));
    CHECK(outlet_poll(&o).fd == ends[1]);
    while (got < sent) {
        ssize_t n = read(ends[0], piece, sizeof piece);
        CHECK(n > 0);
        got += (size_t)n;
        outlet_flush(&o);
    }
    CHECK(outlet_idle(&o) && got == sent && !o.gone);
    outlet_close(&o);
    CHECK((fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0);
    close(ends[0]);
    close(ends[1]);
}

static void a_reader_that_takes_nothing_is_given_up(void)
{
    struct outlet o;
    int ends[2];
    CHECK(pipe(ends) == 0);
    outlet_open(&o, ends[1]);
    fill(&o);
    outlet_wait_room(&o, mono_ms() + 20);
    CHECK(o.gone && outlet_idle(&o));
    outlet_write(&o, STR("more"));
    CHECK(outlet_idle(&o));
    outlet_close(&o);
    close(ends[0]);
    close(ends[1]);
}

static void without_a_reader_nothing_is_kept(void)
{
    struct outlet o;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    outlet_open(&o, ends[1]);
    outlet_write(&o, STR("x"));
    CHECK(o.gone && outlet_idle(&o));
    outlet_close(&o);
    outlet_open(&o, -1);
    outlet_write(&o, STR("x"));
    CHECK(outlet_idle(&o) && !outlet_full(&o));
    outlet_wait_idle(&o, 0);
    outlet_close(&o);
    close(ends[1]);
}

static const struct test tests[] = {
    { "what is not read is kept, up to a bound", what_is_not_read_is_kept_and_bounded },
    { "a reader that takes nothing in time is given up", a_reader_that_takes_nothing_is_given_up },
    { "without a reader nothing is kept", without_a_reader_nothing_is_kept },
};
TEST_CASES(tests)
