#include "keeper/actas.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static int become(uint32_t uid, uint32_t gid, const uint32_t *groups, uint32_t n)
{
    setfsgid(gid);
    setfsuid(uid);
    _Static_assert(sizeof(gid_t) == sizeof *groups, "groups go to the kernel as they are");
    return syscall(SYS_setgroups, (size_t)n, groups) < 0 || (uint32_t)setfsuid((uid_t)-1) != uid ||
                   (uint32_t)setfsgid((gid_t)-1) != gid
             ? -1
             : 0;
}

int actas_begin(const struct actas *who)
{
    return who->is_self ? 0 : become(who->uid, who->gid, who->groups, who->n_groups);
}

int actas_end(const struct actas *who)
{
    int cause = errno;
    if (!who->is_self && become(0, 0, NULL, 0) < 0)
        return -1;
    errno = cause;
    return 0;
}
