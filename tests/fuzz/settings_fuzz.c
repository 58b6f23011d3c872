/* Any bytes as the settings file: keys, tenants, profiles, admins and policy are read or refused in
 * one line. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/site.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    char path[64], program[] = "nightshiftd", option[] = "--config";
    char *argv[] = { program, option, path, NULL };
    struct config c = { 0 };
    struct site s = { 0 };
    struct err e = { 0 };
    int fd = memfd_create("settings", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct auth *auth = auth_new();
    if (config_read(&c, 3, argv, &e) < 0 || site_read(&c, auth, 0, &s, &e) < 0)
        must(e.code != ERR_NONE && e.msg[0] && !strchr(e.msg, '\n'));
    else
        must(s.tenants > 0 || s.default_tenant.n == 0);
    auth_free(auth);
    config_clear(&c);
    close(fd);
    return 0;
}
