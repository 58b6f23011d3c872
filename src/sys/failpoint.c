#include "sys/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/str.h"

/* The visits wanted of `name`, or 0 when another place or none is armed. */
static unsigned long armed(const char *name)
{
    const char *want = getenv("NIGHTSHIFT_FAILPOINT");
    size_t n = strlen(name);
    if (!want || strncmp(want, name, n) != 0 || (want[n] != '\0' && want[n] != ':'))
        return 0;
    return want[n] == ':' ? strtoul(want + n + 1, NULL, 10) : 1;
}

void fail_point(const char *name)
{
    /* One place is armed in a process, so one count will do; it has to outlive every call. */
    static atomic_ulong visits;
    unsigned long at = armed(name);
    if (at > 0 && atomic_fetch_add(&visits, 1) + 1 == at)
        kill(getpid(), SIGKILL);
}
