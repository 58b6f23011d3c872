#include "sys/term.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80u

bool term_is_tty(int fd)
{
    return isatty(fd) == 1;
}

bool term_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return term_is_tty(fd) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

unsigned term_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}
