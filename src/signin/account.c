#include "signin/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#define ENTRY_MAX (1u << 20) /* bytes of one line of passwd or group: a group lists its members */
#define GROUPS_MAX 1024

static void put_name(const struct passwd *pw, struct json_out *out)
{
    struct str name = { 0 }, rest;
    str_cut(str_of(pw->pw_gecos ? pw->pw_gecos : ""), ',', &name, &rest);
    if (name.n)
        json_put_str(out, "name", name);
}

static int put_groups(const struct passwd *pw, char *scratch, struct json_out *out,
                      struct refusal *r)
{
    gid_t list[GROUPS_MAX];
    int n = GROUPS_MAX;
    if (getgrouplist(pw->pw_name, pw->pw_gid, list, &n) < 0)
        return refuse(r, REASON_TOO_MANY, "'%s' is in more than %d groups", pw->pw_name,
                      GROUPS_MAX);
    json_begin(out, "groups", '[');
    for (int i = 0; i < n; i++) {
        struct group entry, *found = NULL;
        /* A number without a name is nothing that a mapping could speak of. */
        if (getgrgid_r(list[i], &entry, scratch, ENTRY_MAX, &found) == 0 && found)
            json_put_str(out, NULL, str_of(entry.gr_name));
    }
    json_end(out, ']');
    return 0;
}

int account_write(const char *user, struct json_out *out, struct refusal *r)
{
    AUTO(free_p) char *scratch = xmalloc(ENTRY_MAX), *more = xmalloc(ENTRY_MAX);
    struct passwd pw, *found = NULL;
    int rc = getpwnam_r(user, &pw, scratch, ENTRY_MAX, &found);
    if (rc != 0 && rc != ENOENT)
        return refuse(r, REASON_PAM_BROKEN, "the list of accounts cannot be read: %s",
                      strerror(rc));
    if (!found)
        return refuse(r, REASON_UNKNOWN_USER, "there is no account '%s' on this machine", user);
    json_put_str(out, "user", str_of(pw.pw_name));
    json_put_u64(out, "uid", pw.pw_uid);
    put_name(&pw, out);
    return put_groups(&pw, more, out, r);
}
