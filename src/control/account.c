#include "control/account.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct account *find(struct accounts *a, struct str user)
{
    for (size_t i = 0; i < a->n; i++)
        if (str_is(user, a->at[i].name))
            return &a->at[i];
    return NULL;
}

static struct account *add(struct accounts *a, struct str name, struct str home)
{
    vec_grow(a->at, a->n, a->cap);
    struct account *ac = &a->at[a->n++];
    *ac = (struct account){ 0 };
    ac->name = xcalloc(name.n + 1, 1);
    memcpy(ac->name, name.p, name.n);
    ac->home = xcalloc(home.n + 1, 1);
    memcpy(ac->home, home.p, home.n);
    return ac;
}

/* Before there is a loop. */
static int find_alone(struct accounts *a, struct err *e)
{
    struct passwd_account *self = xmalloc(sizeof *self);
    int known = passwd_by_uid(getuid(), self, e);
    if (known > 0)
        known = passwd_by_name(self->name, self, e); /* its groups too */
    a->alone = known > 0 ? TAKE(self) : NULL;
    free(self);
    return known < 0 ? -1 : 0;
}

int accounts_load(struct accounts *a, struct store *s, struct err *e)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct store_account *row;
    size_t n;
    if (store_accounts(s, &arena, &row, &n, e) < 0)
        return -1;
    if (a->single_user && find_alone(a, e) < 0)
        return -1;
    a->uid_next = a->uid_base;
    for (size_t i = 0; i < n; i++) {
        if (row[i].uid >= a->uid_next)
            a->uid_next = row[i].uid + 1;
        struct account *ac = add(a, row[i].name, row[i].home);
        ac->uid = row[i].uid;
        ac->gid = row[i].gid;
        ac->ours = true;
    }
    return 0;
}

void accounts_free(struct accounts *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->at[i].name);
        free(a->at[i].home);
        free(a->at[i].home_else);
        free(a->at[i].groups);
    }
    free(a->at);
    free(TAKE(a->alone));
}

static int look_up(const struct accounts *a, struct str user, struct passwd_account *out,
                   struct err *e)
{
    char name[NAME_MAX_BYTES + 1];
    snprintf(name, sizeof name, "%.*s", STR_ARG(user));
    if (a->single_user && a->alone)
        *out = *a->alone;
    return a->single_user ? a->alone != NULL : nss_by_name(a->nss, name, out, e);
}

bool account_is_asked(struct accounts *a, struct str user)
{
    struct passwd_account found;
    struct err e;
    return !find(a, user) && look_up(a, user, &found, &e) == NSS_LATER;
}

/* The machine's own account; *out is NULL when there is none that jobs may use. */
static int from_machine(struct accounts *a, struct str user, struct account **out, struct err *e)
{
    struct passwd_account found;
    int known = look_up(a, user, &found, e);
    *out = NULL;
    if (known == NSS_AWAY || known == NSS_LATER)
        return -1;
    if (known == NSS_NONE || (!a->single_user && found.uid < a->uid_min))
        return 0;
    /* An account without a home has one of ours.  Whether it is there is found out by whoever mounts
     * it: it may be on a file server that does not answer, and we must. */
    char ours[4096];
    struct stat st;
    snprintf(ours, sizeof ours, "%s/%s", a->homes, found.name);
    bool is_own = !a->single_user || (stat(found.home, &st) == 0 && S_ISDIR(st.st_mode));
    struct account *ac = add(a, user, str_of(is_own && found.home[0] == '/' ? found.home : ours));
    ac->home_else = a->single_user ? NULL : xstrdup(ours);
    ac->uid = found.uid;
    ac->gid = found.gid;
    ac->n_groups = found.groups;
    ac->groups = xcalloc(found.groups, sizeof *ac->groups);
    memcpy(ac->groups, found.group, found.groups * sizeof *ac->groups);
    *out = ac;
    return 0;
}

/* Only of our range, and nobody's. */
static bool is_free(const struct accounts *a, uint32_t uid)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].uid == uid)
            return false;
    return uid >= a->uid_base && uid < UINT32_MAX - 1;
}

/* uid 0: the next one. */
static struct account *make_ours(struct accounts *a, struct str user, uint32_t uid,
                                 struct store_batch *b, int64_t now_ms, struct err *e)
{
    char home[4096];
    for (size_t i = 0; i < user.n; i++)
        if (user.p[i] == '/' || (unsigned char)user.p[i] <= ' ' || user.p[0] == '.') {
            err_set(e, ERR_INVALID, "user '%.*s': the name cannot be used for an account",
                    STR_ARG(user));
            return NULL;
        }
    int n = snprintf(home, sizeof home, "%s/%.*s", a->homes, STR_ARG(user));
    if (user.n == 0 || n < 0 || (size_t)n >= sizeof home) {
        err_set(e, ERR_INVALID, "user: a name that fits into a path is needed");
        return NULL;
    }
    struct account *ac = add(a, user, str_of(home));
    ac->uid = a->single_user ? getuid() : uid ? uid : a->uid_next;
    if (!a->single_user)
        a->uid_next = MAX(a->uid_next, ac->uid + 1);
    ac->gid = a->single_user ? getgid() : ac->uid;
    ac->ours = true;
    struct store_account row = { .name = user,
                                 .home = str_of(ac->home),
                                 .uid = ac->uid,
                                 .gid = ac->gid,
                                 .ours = true,
                                 .created_ms = now_ms };
    store_put_account(b, &row);
    return ac;
}

bool account_uid_is_ours(const struct accounts *a, uint32_t uid, struct str *out_user)
{
    *out_user = STR("");
    for (size_t i = 0; i < a->n && !a->single_user; i++)
        if (a->at[i].ours && a->at[i].uid == uid) {
            *out_user = str_of(a->at[i].name);
            return true;
        }
    return !a->single_user && a->uid_base && uid >= a->uid_base;
}

uint32_t account_own_uid(const struct accounts *a, struct str user)
{
    const struct account *ac = find((struct accounts *)(uintptr_t)a, user);
    return ac && ac->ours ? ac->uid : 0;
}

const struct account *account_again(struct accounts *a, struct str user, uint32_t uid,
                                    struct store_batch *b, int64_t now_ms, struct err *e)
{
    struct account *ac = find(a, user);
    return ac ? ac : make_ours(a, user, is_free(a, uid) ? uid : 0, b, now_ms, e);
}

const struct account *account_of(struct accounts *a, struct str user, struct store_batch *b,
                                 int64_t now_ms, struct err *e)
{
    struct account *ac = find(a, user);
    if (!ac && from_machine(a, user, &ac, e) < 0)
        return NULL;
    return ac ? ac : make_ours(a, user, 0, b, now_ms, e);
}
