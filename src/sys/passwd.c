#include "sys/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64u << 10)

/* Those with which a source of accounts says that there is no such one, or that it is not set up here (getpwnam(3)). */
static bool says_none(int rc)
{
    return rc == 0 || rc == ENOENT || rc == ESRCH || rc == EBADF || rc == EPERM;
}

/* One source's "no" hides that another, the file before it, could not be opened for want of descriptors or memory. */
static int why_not_opened(void)
{
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC), why = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return says_none(why) ? 0 : why;
}

static int take(int rc, const struct passwd *found, struct passwd_account *out, struct err *e)
{
    if (!found && says_none(rc))
        rc = why_not_opened();
    if (!found && rc == 0)
        return 0;
    if (!found || strlen(found->pw_name) >= sizeof out->name ||
        strlen(found->pw_dir) >= sizeof out->home) {
        err_set(e, ERR_UNAVAILABLE, "this machine's accounts cannot be looked up: %s",
                found ? "a line is too long" : strerror(rc));
        return err_hint(e, "try again; if it stays so: getent passwd, on the server's machine");
    }
    *out = (struct passwd_account){ .uid = found->pw_uid, .gid = found->pw_gid };
    snprintf(out->name, sizeof out->name, "%s", found->pw_name);
    snprintf(out->home, sizeof out->home, "%s", found->pw_dir);
    return 1;
}

int passwd_by_uid(uint32_t uid, struct passwd_account *out, struct err *e)
{
    struct passwd pw, *found = NULL;
    AUTO(free_p) char *space = xmalloc(LINE_MAX_BYTES);
    int rc = getpwuid_r(uid, &pw, space, LINE_MAX_BYTES, &found);
    return take(rc, found, out, e);
}

static void look_up_groups(struct passwd_account *a)
{
    gid_t gid[PASSWD_GROUPS_MAX];
    int n = PASSWD_GROUPS_MAX;
    if (getgrouplist(a->name, a->gid, gid, &n) < 0)
        n = PASSWD_GROUPS_MAX;
    for (int i = 0; i < n; i++)
        a->group[i] = gid[i];
    a->groups = (uint32_t)n;
}

int passwd_by_name(const char *name, struct passwd_account *out, struct err *e)
{
    struct passwd pw, *found = NULL;
    AUTO(free_p) char *space = xmalloc(LINE_MAX_BYTES);
    int rc = getpwnam_r(name, &pw, space, LINE_MAX_BYTES, &found);
    int known = take(rc, found, out, e);
    if (known > 0)
        look_up_groups(out);
    return known;
}
