/* tty - the modes of the terminal, signals as bytes to read, and questions to a person.
 *
 * Whatever mode was set is taken back by tty_restore, which does nothing when there is nothing to
 * take back: declare the mode with AUTO(tty_restore) and every way out restores the terminal.
 * Signals are blocked and read from a descriptor while a `struct signals` is open, so no way out is
 * a handler's.
 */
#ifndef NS_CLI_TTY_H
#define NS_CLI_TTY_H

#include <signal.h>
#include <termios.h>

#include "base/err.h"
#include "base/str.h"

struct tty_mode {
    bool changed;
    int fd;
    struct termios saved;
};

bool tty_raw(struct tty_mode *m, int fd);  /* every key goes through; false: no terminal */
bool tty_keys(struct tty_mode *m, int fd); /* key by key, signals still work */
void tty_restore(struct tty_mode *m);
void tty_size(int fd, uint16_t *out_rows, uint16_t *out_cols); /* 24, 80 when nobody knows */

struct signals {
    int fd; /* readable when one came; -1: not open */
    sigset_t before;
};
int signals_open(struct signals *s, struct err *e) MUST_USE; /* INT TERM HUP QUIT WINCH CONT TSTP */
void signals_close(struct signals *s);                       /* for AUTO */
int signals_next(struct signals *s);                         /* its number, or 0: no more */
/* For those who only print: stops and goes on as it is told; the signal that ends it, or 0. */
int signals_end(struct signals *s);

/* Asks on standard error and reads one key of `keys` from standard input.  An interrupt, the end
 * of input or a signal to end give 0. */
char tty_ask_key(struct signals *s, const char *question, const char *keys);

/* "… [y/N]"; false without a terminal. */
bool tty_confirm(const char *question);

/* Asks for something that is not shown; without a terminal the next line of standard input.  The line's end is
 * not in it.  The caller wipes it. */
int tty_read_secret(const char *question, char *out, size_t n, struct err *e) MUST_USE;

/* All of it to a descriptor, which may be slow.  -1: nobody reads it any more. */
int tty_write(int fd, struct str bytes) MUST_USE;

#endif
