#include "signin/idtoken.h"

#include <cjose/cjose.h>
#include <sodium.h>
#include <strings.h>

#define HEADER_MAX 4096
#define KEYS_MAX 64
#define RSA_BITS_MIN 2048
#define KEY_TEXT_MAX 2048 /* an RSA modulus of 12288 bits */

static const struct algorithm {
    const char *name, *kty, *crv; /* crv NULL: has none */
    const char *members[2];       /* the numbers of its public key */
} algorithms[] = {
    { "RS256", "RSA", NULL, { "n", "e" } },
    { "PS256", "RSA", NULL, { "n", "e" } },
    { "ES256", "EC", "P-256", { "x", "y" } },
};

struct head {
    const struct algorithm *algorithm;
    struct str kid; /* p NULL: it names no key */
};

/* libcjose asserts that what it decodes is base64url, so nothing else may reach it. */
static bool is_base64url(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_';
        if (!fits)
            return false;
    }
    return s.n > 0 && s.n % 4 != 1;
}

/* Three parts, none empty. */
static bool is_compact(struct str token)
{
    struct str head, rest, body, signature;
    return str_cut(token, '.', &head, &rest) && str_cut(rest, '.', &body, &signature) &&
           is_base64url(head) && is_base64url(body) && is_base64url(signature);
}

/* ---- the header, before anything of it is believed ---- */

static bool text_is(const struct json *obj, const char *key, const char *value)
{
    struct err ignored;
    struct str s = { 0 };
    return json_get_str(obj, key, HEADER_MAX, &s, &ignored) == 0 && s.p && str_is(s, value);
}

static const struct algorithm *read_algorithm(const struct json *header, struct refusal *r)
{
    struct err ignored;
    struct str name = { 0 };
    if (json_need_str(header, "alg", 64, &name, &ignored) < 0) {
        refuse(r, REASON_BAD_TOKEN, "the ID token does not say how it is signed");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (str_is(name, algorithms[i].name))
            return &algorithms[i];
    refuse(r, REASON_ALGORITHM, "the ID token is signed with '%.*s', which is not accepted",
           STR_ARG(name));
    return NULL;
}

static int read_head(const struct json *header, struct head *out, struct refusal *r)
{
    struct err ignored;
    struct str type = { 0 };
    if (!json_is_object(header) || json_get_str(header, "typ", 64, &type, &ignored) < 0 ||
        json_get_str(header, "kid", 512, &out->kid, &ignored) < 0)
        return refuse(r, REASON_BAD_TOKEN, "the ID token's header is not valid");
    if (type.p && !(type.n == 3 && strncasecmp(type.p, "JWT", 3) == 0))
        return refuse(r, REASON_BAD_TOKEN, "what came is a '%.*s' and no ID token", STR_ARG(type));
    if (json_find(header, "crit")) /* extensions that must be understood; we know none */
        return refuse(r, REASON_BAD_TOKEN, "the ID token demands an extension");
    out->algorithm = read_algorithm(header, r);
    return out->algorithm ? 0 : -1;
}

/* The document of the header; `out` points into it. */
static struct json_doc *open_head(struct str token, struct head *out, struct refusal *r)
{
    char text[HEADER_MAX];
    size_t n = 0;
    struct err ignored;
    struct str head, rest;
    bool decoded = token.n <= IDTOKEN_MAX && str_cut(token, '.', &head, &rest) &&
                   sodium_base642bin((unsigned char *)text, sizeof text, head.p, head.n, NULL, &n,
                                     NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0;
    struct json_doc *doc = decoded ? json_read((struct str){ text, n }, &ignored) : NULL;
    if (!doc)
        refuse(r, REASON_BAD_TOKEN, "what the provider sent is not an ID token");
    else if (read_head(json_root(doc), out, r) < 0)
        doc = json_free(doc);
    return doc;
}

/* ---- the key ---- */

static bool may_sign(const struct json *key, const struct head *h)
{
    const struct algorithm *a = h->algorithm;
    return json_is_object(key) && text_is(key, "kty", a->kty) &&
           (!a->crv || text_is(key, "crv", a->crv)) &&
           (!json_find(key, "use") || text_is(key, "use", "sig")) &&
           (!json_find(key, "alg") || text_is(key, "alg", a->name));
}

/* The one key that the header names; without a name, the only one that could have signed. */
static const struct json *find_key(const struct json *keys, const struct head *h, struct refusal *r)
{
    const struct json *found = NULL;
    size_t n = 0, looked = 0;
    for (const struct json *k = json_first(keys); k && looked < KEYS_MAX; k = json_next(keys, k)) {
        struct err ignored;
        struct str kid = { 0 };
        looked++;
        bool named = json_get_str(k, "kid", 512, &kid, &ignored) == 0 && kid.p &&
                     (!h->kid.p || str_eq(kid, h->kid));
        if ((named || !h->kid.p) && may_sign(k, h)) {
            found = k;
            n++;
        }
    }
    if (n == 1)
        return found;
    if (n == 0)
        refuse(r, REASON_UNKNOWN_KEY, "the key of the ID token is none of the provider's");
    else
        refuse(r, REASON_UNKNOWN_KEY, "the ID token does not say which of %zu keys signed it", n);
    return NULL;
}

static void release_key(cjose_jwk_t **key)
{
    if (*key)
        cjose_jwk_release(*key);
}

static void release_token(cjose_jws_t **token)
{
    if (*token)
        cjose_jws_release(*token);
}

/* A key of its own making: only what the algorithm needs, and only what is well-formed. */
static bool write_key(const struct json *key, const struct algorithm *a, struct buf *out)
{
    struct json_out w = { .b = out };
    struct err ignored;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "kty", str_of(a->kty));
    if (a->crv)
        json_put_str(&w, "crv", str_of(a->crv));
    for (size_t i = 0; i < ARRAY_LEN(a->members); i++) {
        struct str number = { 0 };
        if (json_need_str(key, a->members[i], KEY_TEXT_MAX, &number, &ignored) < 0 ||
            !is_base64url(number))
            return false;
        json_put_str(&w, a->members[i], number);
    }
    json_end(&w, '}');
    return !out->full;
}

static cjose_jwk_t *import_key(const struct json *key, const struct algorithm *a, struct refusal *r)
{
    AUTO(buf_free) struct buf text = BUF(4 * KEY_TEXT_MAX);
    AUTO(release_key) cjose_jwk_t *made = NULL;
    if (write_key(key, a, &text))
        made = cjose_jwk_import(text.p, text.n, NULL);
    if (!made) {
        refuse(r, REASON_UNKNOWN_KEY, "the provider's key cannot be read");
        return NULL;
    }
    if (cjose_jwk_get_kty(made, NULL) == CJOSE_JWK_KTY_RSA &&
        cjose_jwk_get_keysize(made, NULL) < RSA_BITS_MIN) {
        refuse(r, REASON_UNKNOWN_KEY, "the provider's key has %zu bits; %d are needed",
               cjose_jwk_get_keysize(made, NULL), RSA_BITS_MIN);
        return NULL;
    }
    return TAKE(made);
}

/* ---- the signature ---- */

static struct json_doc *open_signed(struct str token, const struct head *h, const cjose_jwk_t *key,
                                    struct refusal *r)
{
    struct err ignored;
    uint8_t *text = NULL;
    size_t n = 0;
    AUTO(release_token)
    cjose_jws_t *jws = is_compact(token) ? cjose_jws_import(token.p, token.n, NULL) : NULL;
    const char *alg =
        jws ? cjose_header_get(cjose_jws_get_protected(jws), CJOSE_HDR_ALG, NULL) : NULL;
    /* Two readers of one header must have read the same. */
    if (!alg || strcmp(alg, h->algorithm->name) != 0) {
        refuse(r, REASON_BAD_TOKEN, "what the provider sent is not an ID token");
        return NULL;
    }
    if (!cjose_jws_verify(jws, key, NULL)) {
        refuse(r, REASON_BAD_SIGNATURE, "the ID token's signature is wrong");
        return NULL;
    }
    struct json_doc *claims = cjose_jws_get_plaintext(jws, &text, &n, NULL)
                                ? json_read((struct str){ (const char *)text, n }, &ignored)
                                : NULL;
    if (!json_is_object(json_root(claims))) {
        refuse(r, REASON_BAD_TOKEN, "the ID token holds no claims");
        return json_free(claims);
    }
    return claims;
}

/* ---- the claims ---- */

static bool is_ours(const struct json *v, const char *client_id)
{
    struct err ignored;
    struct str s;
    return json_as_str(v, 4096, &s, &ignored) == 0 && str_is(s, client_id);
}

static int check_audience(const struct json *claims, const char *client_id, struct refusal *r)
{
    const struct json *aud = json_find(claims, "aud"), *azp = json_find(claims, "azp");
    bool many = json_is_array(aud), ours = !many && is_ours(aud, client_id);
    for (const struct json *v = many ? json_first(aud) : NULL; v; v = json_next(aud, v))
        ours = ours || is_ours(v, client_id);
    if (!ours)
        return refuse(r, REASON_WRONG_AUDIENCE, "the ID token was made for another service");
    bool needs_party = many && json_len(aud) > 1;
    if (azp ? !is_ours(azp, client_id) : needs_party)
        return refuse(r, REASON_WRONG_AUDIENCE, "the ID token was given to another service");
    return 0;
}

static int check_time(const struct json *claims, int64_t now_s, struct refusal *r)
{
    double exp = -1, iat = -1, nbf = 0, now = (double)now_s, far = 1e12;
    struct err e = { 0 };
    if (json_get_f64(claims, "exp", 0, far, &exp, &e) < 0 ||
        json_get_f64(claims, "iat", 0, far, &iat, &e) < 0 ||
        json_get_f64(claims, "nbf", 0, far, &nbf, &e) < 0)
        return refuse(r, REASON_BAD_TOKEN, "the ID token's times are not valid: %s", e.msg);
    if (exp < 0 || iat < 0)
        return refuse(r, REASON_BAD_TOKEN, "the ID token does not say %s",
                      exp < 0 ? "when it ends" : "when it was made");
    if (now >= exp + IDTOKEN_SKEW_S)
        return refuse(r, REASON_EXPIRED, "the ID token ended %.0f s ago", now - exp);
    double begins = MAX(iat, nbf);
    if (now + IDTOKEN_SKEW_S < begins)
        return refuse(r, REASON_NOT_YET, "the ID token is valid only in %.0f s", begins - now);
    return 0;
}

static int check_nonce(const struct json *claims, const char *nonce, struct refusal *r)
{
    struct err ignored;
    struct str got = { 0 };
    bool same = json_need_str(claims, "nonce", 512, &got, &ignored) == 0 &&
                got.n == strlen(nonce) && sodium_memcmp(got.p, nonce, got.n) == 0;
    return same ? 0 : refuse(r, REASON_NONCE, "the ID token belongs to another sign-in");
}

static int check_claims(const struct json *claims, const struct idtoken_want *want,
                        struct refusal *r)
{
    struct err ignored;
    struct str sub = { 0 };
    if (!text_is(claims, "iss", want->issuer))
        return refuse(r, REASON_WRONG_ISSUER, "the ID token was made by another provider than '%s'",
                      want->issuer);
    if (check_audience(claims, want->client_id, r) < 0 || check_time(claims, want->now_s, r) < 0)
        return -1;
    if (want->nonce && check_nonce(claims, want->nonce, r) < 0)
        return -1;
    if (json_need_str(claims, "sub", 255, &sub, &ignored) < 0 || sub.n == 0)
        return refuse(r, REASON_BAD_TOKEN, "the ID token does not say who it is about");
    return 0;
}

int idtoken_check(struct str token, struct str keys, const struct idtoken_want *want,
                  struct json_doc **out_claims, struct refusal *r)
{
    struct head head = { 0 };
    struct err e;
    AUTO(json_free_p) struct json_doc *header = open_head(token, &head, r);
    if (!header || !head.algorithm)
        return -1;
    AUTO(json_free_p) struct json_doc *set = json_read(keys, &e);
    const struct json *list = json_find(json_root(set), "keys");
    if (!json_is_array(list))
        return refuse(r, REASON_PROVIDER, "the provider's list of keys cannot be read");
    const struct json *chosen = find_key(list, &head, r);
    AUTO(release_key) cjose_jwk_t *key = chosen ? import_key(chosen, head.algorithm, r) : NULL;
    if (!key)
        return -1;
    AUTO(json_free_p) struct json_doc *claims = open_signed(token, &head, key, r);
    if (!claims || check_claims(json_root(claims), want, r) < 0)
        return -1;
    *out_claims = TAKE(claims);
    return 0;
}
