/* wait - poll, for a supervisor whose own job may take its limits away.
 *
 * A process may set the limits of others of its user.  With none left for descriptors poll itself fails, at once and
 * for ever; what waits then looks at everything a few times a second instead, and nothing is lost or spun.
 */
#ifndef NS_INIT_WAIT_H
#define NS_INIT_WAIT_H

#include <errno.h>
#include <poll.h>
#include <time.h>

#define WAIT_BLIND_MS 20

/* As poll; what is there to be read or written has to be so that it does not block. */
static inline int wait_ready(struct pollfd *p, nfds_t n, int timeout_ms)
{
    int ready = poll(p, n, timeout_ms);
    if (ready >= 0 || errno == EINTR)
        return ready;
    struct timespec pause = { .tv_nsec = WAIT_BLIND_MS * 1000000L };
    nanosleep(&pause, NULL);
    for (nfds_t i = 0; i < n; i++)
        p[i].revents = p[i].fd >= 0 ? p[i].events : 0;
    return (int)n;
}

#endif
