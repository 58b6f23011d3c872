/* Codes and the tokens that they give.  A grant is both: first a code, then, used, what its token is. */
#include "auth/oauth.h"

#include <sodium.h>
#include <stdio.h>

#include "auth/oauth_state.h"

static const struct {
    const char *name;
    int status;
} errors[] = {
#define X(id, name, status) { name, status },
    OAUTH_ERRORS(X)
#undef X
};

const char *oauth_error_name(enum oauth_error e)
{
    return (size_t)e < ARRAY_LEN(errors) ? errors[e].name : "?";
}

int oauth_error_status(enum oauth_error e)
{
    return (size_t)e < ARRAY_LEN(errors) ? errors[e].status : 500;
}

/* ---- the table ---- */

static void grant_clear(struct grant *g)
{
    free(g->client);
    free(g->user);
    free(g->redirect);
    *g = (struct grant){ 0 };
}

void grants_clear(struct oauth *o)
{
    for (size_t i = 0; i < OAUTH_GRANTS_MAX; i++)
        grant_clear(&o->grant[i]);
}

void grants_drop_client(struct oauth *o, struct str client)
{
    for (size_t i = 0; i < OAUTH_GRANTS_MAX; i++)
        if (o->grant[i].client && str_is(client, o->grant[i].client))
            grant_clear(&o->grant[i]);
}

void oauth_drop_user(struct oauth *o, struct str user)
{
    for (size_t i = 0; i < OAUTH_GRANTS_MAX; i++)
        if (o->grant[i].client && str_is(user, o->grant[i].user))
            grant_clear(&o->grant[i]);
}

static bool is_over(const struct grant *g, int64_t now_ms)
{
    return now_ms >= g->until_ms;
}

/* Room for one more of this user's; NULL when others have it all. */
static struct grant *find_room(struct oauth *o, struct str user, int64_t now_ms)
{
    struct grant *room = NULL, *oldest = NULL;
    size_t mine = 0;
    for (size_t i = 0; i < OAUTH_GRANTS_MAX; i++) {
        struct grant *g = &o->grant[i];
        if (!g->client || is_over(g, now_ms)) {
            grant_clear(g);
            room = room ? room : g;
            continue;
        }
        if (!str_is(user, g->user))
            continue;
        mine++;
        if (!oldest || g->since_ms < oldest->since_ms)
            oldest = g;
    }
    if (mine < OAUTH_GRANTS_OF_USER)
        return room;
    grant_clear(oldest);
    return oldest;
}

/* By the hash of its code or of its token: all of it is compared, in constant time. */
static struct grant *find(const struct oauth *o, struct str text, bool by_token)
{
    uint8_t hash[KEY_HASH_BYTES];
    struct grant *found = NULL;
    auth_hash_key(text, hash);
    for (size_t i = 0; i < OAUTH_GRANTS_MAX; i++) {
        struct grant *g = &o->grant[i];
        if (g->client && (!by_token || g->used) &&
            sodium_memcmp(by_token ? g->token : g->code, hash, sizeof hash) == 0)
            found = g;
    }
    return found;
}

/* ---- PKCE ---- */

static bool is_of(struct str s, size_t min, size_t max, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        char x = s.p[i];
        bool plain = (x >= '0' && x <= '9') || (x >= 'A' && x <= 'Z') || (x >= 'a' && x <= 'z');
        if (!plain && (x == '\0' || !strchr(more, x)))
            return false;
    }
    return s.n >= min && s.n <= max;
}

bool oauth_is_challenge(struct str s)
{
    return is_of(s, OAUTH_CHALLENGE_BYTES, OAUTH_CHALLENGE_BYTES, "-_");
}

static bool verifier_fits(struct str verifier, const char challenge[static 44])
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[OAUTH_CHALLENGE_BYTES + 1];
    if (!is_of(verifier, 43, 128, "-._~"))
        return false;
    crypto_hash_sha256(hash, (const unsigned char *)verifier.p, verifier.n);
    sodium_bin2base64(text, sizeof text, hash, sizeof hash,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return sodium_memcmp(text, challenge, OAUTH_CHALLENGE_BYTES) == 0;
}

/* ---- codes ---- */

enum oauth_error oauth_give_code(struct oauth *o, const struct oauth_ask *a, int64_t now_ms,
                                 char out[static KEY_TEXT_BYTES], struct err *e)
{
    struct grant *g = find_room(o, a->user, now_ms);
    if (!g) {
        err_set(e, ERR_UNAVAILABLE, "too many people are signing in");
        err_hint(e, "try again in a minute");
        return OAUTH_TEMPORARILY_UNAVAILABLE;
    }
    *g = (struct grant){ .client = oauth_copy(a->client),
                         .user = oauth_copy(a->user),
                         .redirect = oauth_copy(a->redirect),
                         .since_ms = now_ms,
                         .until_ms = now_ms + OAUTH_CODE_MS };
    snprintf(g->challenge, sizeof g->challenge, "%.*s", STR_ARG(a->challenge));
    auth_make_key(OAUTH_CODE_PREFIX, out);
    auth_hash_key(str_of(out), g->code);
    return OAUTH_NONE;
}

static enum oauth_error check_client(const struct oauth *o, const struct oauth_redeem *r,
                                     struct err *e)
{
    const struct oauth_client *c = oauth_find_client(o, r->client);
    uint8_t hash[KEY_HASH_BYTES] = { 0 };
    if (r->secret.p)
        auth_hash_key(r->secret, hash);
    bool right = c && (c->has_secret ? r->secret.p && sodium_memcmp(hash, c->hash, sizeof hash) == 0
                                     : !r->secret.p || r->secret.n == 0);
    if (right)
        return OAUTH_NONE;
    err_set(e, ERR_DENIED, "the client is not known here, or its secret is another");
    err_hint(e, "an administrator registers clients: PUT /v1/clients/ID");
    return OAUTH_INVALID_CLIENT;
}

static enum oauth_error refuse_code(struct err *e, const char *why)
{
    err_set(e, ERR_DENIED, "%s", why);
    err_hint(e, "begin again at /oauth/authorize");
    return OAUTH_INVALID_GRANT;
}

enum oauth_error oauth_redeem(struct oauth *o, const struct oauth_redeem *r, int64_t now_ms,
                              char out[static KEY_TEXT_BYTES], struct err *e)
{
    enum oauth_error bad = check_client(o, r, e);
    if (bad)
        return bad;
    struct grant *g = find(o, r->code, false);
    if (!g || is_over(g, now_ms) || !str_is(r->client, g->client))
        return refuse_code(e, "the code is not known here, or too old");
    bool fits = str_is(r->redirect, g->redirect) && verifier_fits(r->verifier, g->challenge);
    if (g->used || !fits) {
        const char *why = g->used ? "the code was used before: what it gave is void"
                                  : "redirect_uri or code_verifier do not belong to this code";
        grant_clear(g);
        return refuse_code(e, why);
    }
    auth_make_key(OAUTH_TOKEN_PREFIX, out);
    auth_hash_key(str_of(out), g->token);
    g->used = true;
    g->until_ms = now_ms + OAUTH_TOKEN_MS;
    return OAUTH_NONE;
}

/* ---- tokens ---- */

bool oauth_holder_of(const struct oauth *o, struct str token, int64_t now_ms,
                     struct oauth_holder *out)
{
    const struct grant *g = find(o, token, true);
    if (!g || is_over(g, now_ms))
        return false;
    snprintf(out->user, sizeof out->user, "%s", g->user);
    out->since_ms = g->since_ms;
    return true;
}
