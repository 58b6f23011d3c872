/* sealed - a program as a copy in memory that nobody can change any more.
 *
 * crun copies itself into such a file and starts again from it, so that no container can write to
 * the program that made it.  Started from a sealed copy it finds nothing left to do: that saves a
 * whole start of a program with all its libraries, a third of what crun costs.
 * The copy follows the program: after an upgrade the next start is the new one.
 */
#ifndef NS_KEEPER_SEALED_H
#define NS_KEEPER_SEALED_H

#include <sys/types.h>
#include <time.h>

struct sealed {
    int fd; /* -1: there is none */
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

#define SEALED_NONE ((struct sealed){ .fd = -1 })

/* A descriptor to execute, s's own, above `least`; -1 when the program cannot be had so (it is a
 * script, it is gone, the kernel has no such files): then it is started by its path. */
int sealed_program(struct sealed *s, const char *path, int least);
void sealed_clear(struct sealed *s);

#endif
