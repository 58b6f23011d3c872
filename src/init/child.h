/* child - a program on pipes or on a terminal of its own, in a session of its own.
 *
 * It gets three descriptors and default signals, and nothing else of ours.  Our ends never block.
 * With a terminal we keep the other end open too, so that reading does not fail while the program
 * has none of it open; child_release lets go of it once the program has ended.
 */
#ifndef NS_INIT_CHILD_H
#define NS_INIT_CHILD_H

#include <sys/types.h>

#include "init/queue.h"

struct child_spec {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *const *env;  /* ends with NULL */
    const char *cwd;         /* NULL or "": ours */
    bool tty;
    bool input; /* without a terminal: stdin is a pipe, else it is empty */
    uint16_t rows, cols;
};

enum child_end {
    CHILD_IN,
    CHILD_OUT,
    CHILD_ERR,
    CHILD_ENDS
};

struct child {
    pid_t pid;          /* 0: none */
    int fd[CHILD_ENDS]; /* -1: closed; a terminal is CHILD_OUT alone */
    int terminal;       /* the other end of it, or -1 */
    bool tty;
    struct queue input; /* waiting to be read by the program */
    bool input_ends;    /* after that, end of file */
};

void child_init(struct child *c);  /* none yet */
void child_clear(struct child *c); /* closes our ends; none again */

/* -1 with *out_errno when it cannot be started: what the shell calls 126 or 127. */
int child_start(struct child *c, const struct child_spec *s, int *out_errno, struct err *e)
    MUST_USE;

/* Queues bytes for its stdin; empty ones are the end of file.  Without a stdin they are dropped. */
void child_input(struct child *c, struct str bytes);
bool child_input_full(const struct child *c); /* take no more from whoever sends it */
int child_input_fd(const struct child *c);    /* -1: nothing is waiting */
void child_input_flush(struct child *c);

/* Reads what it wrote.  > 0: that many bytes; 0: it is over, the end is closed; -1: none for now. */
ssize_t child_read(struct child *c, enum child_end end, char *out, size_t n);
void child_close(struct child *c, enum child_end end);
void child_release(struct child *c);

void child_resize(struct child *c, uint16_t rows, uint16_t cols);

#endif
