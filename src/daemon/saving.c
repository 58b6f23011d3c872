#include "daemon/saving.h"

#include <stdio.h>
#include <sys/stat.h>

#include "control/replay.h"
#include "store/save.h"

#define OURS "-" /* as --verify's file: the store of these settings */

bool saving_wanted(const struct config *c)
{
    return c->backup || c->restore || c->verify;
}

static int verify(const char *path, struct err *e)
{
    struct control_verified v;
    AUTO(store_close_p) struct store *s = store_open_verified(path, e);
    if (!s || control_verify(s, &v, e) < 0)
        return -1;
    printf("%s: whole; %llu events make its %llu living jobs, %llu rows of the audit are as they "
           "were written\n",
           path, (unsigned long long)v.events, (unsigned long long)v.jobs,
           (unsigned long long)v.audit_rows);
    return 0;
}

static int restore(const char *from, const char *path, struct err *e)
{
    char old[4200];
    if (store_restore(from, path, old, e) < 0)
        return -1;
    printf("%s: put back from %s\n", path, from);
    if (old[0])
        printf("what was there is kept as %s\n", old);
    return 0;
}

int saving_run(const struct config *c, struct err *e)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/nightshift.db", c->state);
    umask(077); /* hashes of tokens, and what jobs have in their environment */
    if (c->restore)
        return restore(c->restore, path, e);
    if (c->verify)
        return verify(strcmp(c->verify, OURS) == 0 ? path : c->verify, e);
    if (store_backup(path, c->backup, e) < 0)
        return -1;
    printf("%s: saved as %s\n", path, c->backup);
    return 0;
}
