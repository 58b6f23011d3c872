#include "auth/auth.h"

#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "auth/state.h"
#include "sys/passwd.h"
#include "sys/weak.h"

static const char *const vias[] = {
#define X(id, name) name,
    VIAS(X)
#undef X
};

const char *via_name(enum via v)
{
    return (size_t)v < ARRAY_LEN(vias) ? vias[v] : "?";
}

/* Before there is a loop.  Without a name it is known by its number. */
static char *name_at_start(uint32_t uid)
{
    struct passwd_account found;
    struct err e;
    if (passwd_by_uid(uid, &found, &e) <= 0)
        snprintf(found.name, sizeof found.name, "uid-%u", uid);
    return xstrdup(found.name);
}

struct auth *auth_new(void)
{
    if (sodium_init() < 0)
        abort(); /* no randomness: nothing we could give out would be a secret */
    struct auth *a = xcalloc(1, sizeof *a);
    a->people = people_new();
    a->root_name = name_at_start(0);
    a->own_name = name_at_start(geteuid());
    return a;
}

struct auth *auth_free(struct auth *a)
{
    if (!a)
        return NULL;
    for (int i = 0; i < KEY_KIND_COUNT; i++)
        keys_clear(&a->keys[i]);
    people_free(a->people);
    free(a->root_name);
    free(a->own_name);
    free(a);
    return NULL;
}

void auth_free_p(struct auth **a)
{
    *a = auth_free(*a);
}

struct people *auth_people(struct auth *a)
{
    return a->people;
}

void auth_set_only_user(struct auth *a, uint32_t uid)
{
    a->single = true;
    a->only_uid = uid;
}

void auth_set_provider_ms(struct auth *a, int64_t ms)
{
    a->provider_ms = ms;
}

bool auth_is_root(const struct auth *a, struct str user)
{
    return str_is(user, a->root_name) || str_is(user, a->own_name);
}

static int check_enabled(const struct auth *a, struct str user, struct err *e)
{
    const struct person *x = people_find(a->people, user);
    if (x && x->gone) {
        err_set(e, ERR_DENIED, "'%.*s' is not known any more where they sign in", STR_ARG(user));
        return err_hint(e, "sign in again, or ask an administrator");
    }
    if (!x || !x->disabled)
        return 0;
    err_set(e, ERR_DENIED, "the account '%.*s' is disabled", STR_ARG(user));
    return err_hint(e, "ask an administrator: nightshift users enable");
}

/* A job that reaches our socket, by a volume or from a host's network, is its user and nobody new.  A uid that
 * the machine has given to somebody too is neither's. */
static int name_job(const struct auth *a, const struct auth_local *who, char *out, size_t size,
                    struct err *e)
{
    const char *name = who->uid == 0                         ? a->root_name
                     : who->uid == geteuid()                 ? a->own_name
                     : who->name && strlen(who->name) < size ? who->name
                                                             : NULL;
    bool known = name != NULL;
    if (known)
        snprintf(out, size, "%s", name);
    else
        snprintf(out, size, "uid-%u", who->uid);
    if (!who->of_jobs || weak_here("job_uids") || (known && !who->owner.n))
        return 0;
    if (!known && who->owner.n && who->owner.n < size) {
        snprintf(out, size, "%.*s", STR_ARG(who->owner));
        return 0;
    }
    if (known)
        err_set(e, ERR_DENIED,
                "uid %u is '%s' on this machine and of jobs of '%.*s' here: it is neither",
                who->uid, out, STR_ARG(who->owner));
    else
        err_set(e, ERR_DENIED, "uid %u is nobody's: it is one of those that jobs get", who->uid);
    return err_hint(e, "uid_base in the settings begins a range that the machine gives to nobody");
}

int auth_local(const struct auth *a, const struct auth_local *who, struct identity *out,
               struct err *e)
{
    uint32_t uid = who->uid;
    struct identity id = { .uid = uid, .via = VIA_SOCKET, .scopes = TOKEN_EVERYTHING };
    if (a->single && uid != a->only_uid && uid != 0) {
        err_set(e, ERR_DENIED, "this Nightshift runs without root and serves one user only");
        return err_hint(e, "ask for it to be installed as root; see the installation guide");
    }
    if (name_job(a, who, id.user, sizeof id.user, e) < 0)
        return -1;
    id.root = uid == 0 || uid == geteuid();
    if (!id.root && check_enabled(a, str_of(id.user), e) < 0)
        return -1;
    *out = id;
    return 0;
}

/* A provider cannot be asked about people who are away, so they have to come by. */
static int check_came_by(const struct auth *a, const struct person *x, int64_t now_ms,
                         struct err *e)
{
    if (!x || x->kind != PERSON_OIDC || !a->provider_ms || now_ms - x->seen_ms < a->provider_ms)
        return 0;
    err_set(e, ERR_DENIED, "'%s' has not signed in for %lld days", x->name,
            (long long)(a->provider_ms / (INT64_C(86400) * 1000)));
    return err_hint(e, "sign in in a browser: the token is good again then");
}

static int by_key(const struct auth *a, enum key_kind kind, struct str text, int64_t now_ms,
                  struct identity *out, struct err *e)
{
    struct identity id = { .uid = UINT32_MAX };
    auth_hash_key(text, id.hash);
    const struct auth_key *k = auth_key_of(a, kind, id.hash);
    const struct person *x = k ? people_find(a->people, str_of(k->user)) : NULL;
    bool over = k && k->expires_ms && now_ms >= k->expires_ms;
    if (kind == KEY_SESSION && (!k || over || (x && k->created_ms < x->void_ms))) {
        err_set(e, ERR_DENIED, "this session is over");
        return err_hint(e, "sign in again");
    }
    if (!k) {
        err_set(e, ERR_DENIED, "the token is not known");
        return err_hint(e, "sign in with nightshift login, or make one on the machine itself: "
                           "nightshift tokens create NAME");
    }
    if (over) {
        err_set(e, ERR_DENIED, "the token '%s' has expired", k->name);
        return err_hint(e, "make a new one: nightshift tokens create");
    }
    if (check_enabled(a, str_of(k->user), e) < 0 ||
        (kind == KEY_TOKEN && check_came_by(a, x, now_ms, e) < 0))
        return -1;
    snprintf(id.user, sizeof id.user, "%s", k->user);
    snprintf(id.key, sizeof id.key, "%s", kind == KEY_TOKEN ? k->name : "");
    id.via = kind == KEY_TOKEN ? VIA_TOKEN : VIA_SESSION;
    id.root = !k->tenants_only && auth_is_root(a, str_of(id.user));
    id.tenants_only = k->tenants_only;
    id.scopes = k->scopes;
    id.tenant = (const char *const *)k->tenant;
    id.tenants = k->tenants;
    *out = id;
    return 0;
}

int auth_token(const struct auth *a, struct str token, int64_t now_ms, struct identity *out,
               struct err *e)
{
    return by_key(a, KEY_TOKEN, token, now_ms, out, e);
}

int auth_session(const struct auth *a, struct str cookie, int64_t now_ms, struct identity *out,
                 struct err *e)
{
    return by_key(a, KEY_SESSION, cookie, now_ms, out, e);
}
