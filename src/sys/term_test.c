#include "sys/term.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

static void a_file_is_no_terminal(void)
{
    AUTO(file_close_p) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(!term_is_tty(fd) && !term_colour(fd) && term_columns(fd) == 80);
}

static void a_terminal_knows_its_width(void)
{
    AUTO(file_close_p) int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0)
        SKIP("no pseudo terminals here");
    AUTO(file_close_p) int tty = open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct winsize size = { .ws_row = 24, .ws_col = 132 };
    if (tty < 0 || ioctl(tty, TIOCSWINSZ, &size) < 0)
        SKIP("no pseudo terminals here");
    CHECK(term_is_tty(tty) && term_columns(tty) == 132);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    CHECK(term_colour(tty));
    setenv("NO_COLOR", "", 1);
    CHECK(term_colour(tty));
    setenv("NO_COLOR", "1", 1);
    CHECK(!term_colour(tty));
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    CHECK(!term_colour(tty));
}

static const struct test tests[] = {
    { "a file is no terminal and counts as 80 columns", a_file_is_no_terminal },
    { "a terminal knows its width; NO_COLOR and a dumb one mean no colour",
      a_terminal_knows_its_width },
};
TEST_CASES(tests)
