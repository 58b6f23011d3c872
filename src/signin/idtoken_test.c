#include "signin/idtoken.h"

#include <cjose/cjose.h>
#include <sodium.h>
#include <stdio.h>

#include "tests/lib/test.h"

#define NOW INT64_C(1800000000)
#define CLAIMS                                                                                     \
    "{\"iss\":\"https://id.example\",\"aud\":\"nightshift\",\"sub\":\"ana\",\"nonce\":\"n-1\","    \
    "\"iat\":1800000000,\"exp\":1800000600}"

static const struct idtoken_want want = { .issuer = "https://id.example",
                                          .client_id = "nightshift",
                                          .nonce = "n-1",
                                          .now_s = NOW };

/* A provider with one key, and room to be somebody else. */
struct issuer {
    cjose_jwk_t *key;
    char keys[4096]; /* its JWKS */
};

static void issuer_clear(struct issuer *i)
{
    cjose_jwk_release(i->key);
}

static void publish(const cjose_jwk_t *key, char *out, size_t size)
{
    char *text = cjose_jwk_to_json(key, false, NULL);
    snprintf(out, size, "%s", text);
    free(text);
}

static struct issuer issuer_of(cjose_jwk_t *key, const char *kid)
{
    struct issuer i = { .key = key };
    char one[3500];
    CHECK(sodium_init() >= 0);
    CHECK(key && cjose_jwk_set_kid(key, kid, strlen(kid), NULL));
    publish(key, one, sizeof one);
    snprintf(i.keys, sizeof i.keys, "{\"keys\":[%s]}", one);
    return i;
}

static struct issuer elliptic(const char *kid)
{
    return issuer_of(cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, NULL), kid);
}

/* The token in `a`; kid NULL: its header names none. */
static struct str sign(struct arena *a, const cjose_jwk_t *key, const char *alg, const char *kid,
                       const char *claims)
{
    const char *text = NULL;
    cjose_header_t *h = cjose_header_new(NULL);
    CHECK(cjose_header_set(h, CJOSE_HDR_ALG, alg, NULL));
    CHECK(!kid || cjose_header_set(h, CJOSE_HDR_KID, kid, NULL));
    cjose_jws_t *jws = cjose_jws_sign(key, h, (const uint8_t *)claims, strlen(claims), NULL);
    CHECK(jws && cjose_jws_export(jws, &text, NULL));
    struct str s = str_of(arena_strndup(a, text, strlen(text)));
    cjose_jws_release(jws);
    cjose_header_release(h);
    return s;
}

/* Not signed at all, or as somebody likes. */
static struct str compose(struct arena *a, const char *header, const char *claims,
                          const char *signature)
{
    char h[2048], c[4096];
    int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
    sodium_bin2base64(h, sizeof h, (const unsigned char *)header, strlen(header), variant);
    sodium_bin2base64(c, sizeof c, (const unsigned char *)claims, strlen(claims), variant);
    return str_of(arena_printf(a, "%s.%s.%s", h, c, signature));
}

static const char *verdict_of(struct str token, const char *keys, const struct idtoken_want *w)
{
    struct json_doc *claims = NULL;
    struct refusal r = { 0 };
    int rc = idtoken_check(token, str_of(keys), w, &claims, &r);
    CHECK((rc == 0) == (claims != NULL));
    if (rc < 0)
        CHECK(r.e.msg[0] && r.e.hint[0]);
    json_free(claims);
    return rc == 0 ? "ok" : reason_name(r.why);
}

static const char *verdict(const struct issuer *i, const char *claims)
{
    AUTO(arena_free) struct arena a = { 0 };
    return verdict_of(sign(&a, i->key, "ES256", "k1", claims), i->keys, &want);
}

static void the_three_algorithms_are_taken(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer ec = elliptic("k1");
    AUTO(issuer_clear)
    struct issuer rsa =
        issuer_of(cjose_jwk_create_RSA_random(2048, (const uint8_t *)"\1\0\1", 3, NULL), "k1");
    struct json_doc *claims = NULL;
    struct refusal r = { 0 };
    struct str token = sign(&a, ec.key, "ES256", "k1", CLAIMS), sub;
    CHECK(idtoken_check(token, str_of(ec.keys), &want, &claims, &r) == 0);
    CHECK(json_need_str(json_root(claims), "sub", 100, &sub, &r.e) == 0 && str_is(sub, "ana"));
    json_free(claims);
    CHECK_STR(verdict_of(sign(&a, rsa.key, "RS256", "k1", CLAIMS), rsa.keys, &want), "ok");
    CHECK_STR(verdict_of(sign(&a, rsa.key, "PS256", "k1", CLAIMS), rsa.keys, &want), "ok");
}

static void no_signature_and_a_shared_secret_are_refused(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    static const char *const names[] = { "none", "None", "HS256", "HS512", "ES512", "" };
    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        const char *header = arena_printf(&a, "{\"alg\":\"%s\",\"kid\":\"k1\"}", names[k]);
        CHECK_STR(verdict_of(compose(&a, header, CLAIMS, ""), i.keys, &want), "algorithm");
    }
    CHECK_STR(verdict_of(compose(&a, "{\"kid\":\"k1\"}", CLAIMS, ""), i.keys, &want), "bad_token");
    CHECK_STR(
        verdict_of(compose(&a, "{\"alg\":\"ES256\",\"kid\":\"k1\"}", CLAIMS, ""), i.keys, &want),
        "bad_token");
}

static void the_public_key_is_no_shared_secret(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    char public_key[2048];
    publish(i.key, public_key, sizeof public_key);
    cjose_jwk_t *secret =
        cjose_jwk_create_oct_spec((const uint8_t *)public_key, strlen(public_key), NULL);
    CHECK_STR(verdict_of(sign(&a, secret, "HS256", "k1", CLAIMS), i.keys, &want), "algorithm");
    /* Neither when the provider's list has one. */
    CHECK(cjose_jwk_set_kid(secret, "k1", 2, NULL));
    char *text = cjose_jwk_to_json(secret, true, NULL);
    const char *keys = arena_printf(&a, "{\"keys\":[%s]}", text);
    CHECK_STR(verdict_of(sign(&a, secret, "HS256", "k1", CLAIMS), keys, &want), "algorithm");
    CHECK_STR(verdict_of(sign(&a, i.key, "ES256", "k1", CLAIMS), keys, &want), "unknown_key");
    free(text);
    cjose_jwk_release(secret);
}

static void what_was_changed_after_signing_is_refused(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    struct str good = sign(&a, i.key, "ES256", "k1", CLAIMS), head, rest, body, signature;
    str_cut(good, '.', &head, &rest);
    str_cut(rest, '.', &body, &signature);
    struct str other = compose(
        &a, "{\"alg\":\"ES256\",\"kid\":\"k1\"}",
        "{\"iss\":\"https://id.example\",\"aud\":\"nightshift\",\"sub\":\"root\",\"nonce\":\"n-1\","
        "\"iat\":1800000000,\"exp\":1800000600}",
        arena_strndup(&a, signature.p, signature.n));
    CHECK_STR(verdict_of(other, i.keys, &want), "bad_signature");
    /* Each byte of the signature counts, but for the unused bits of the last. */
    for (size_t k = 0; k + 1 < signature.n; k += 7) {
        char *copy = arena_strndup(&a, good.p, good.n);
        char *at = copy + (signature.p - good.p) + k;
        *at = *at == 'A' ? 'B' : 'A';
        CHECK_STR(verdict_of(str_of(copy), i.keys, &want), "bad_signature");
    }
}

static void the_key_must_be_one_of_the_providers(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear)
    struct issuer i = elliptic("k1"), old = elliptic("k0"), liar = elliptic("k1");
    CHECK_STR(verdict_of(sign(&a, old.key, "ES256", "k0", CLAIMS), i.keys, &want), "unknown_key");
    CHECK_STR(verdict_of(sign(&a, liar.key, "ES256", "k1", CLAIMS), i.keys, &want),
              "bad_signature");
    CHECK_STR(verdict_of(sign(&a, i.key, "ES256", "k1", CLAIMS), "{\"keys\":[]}", &want),
              "unknown_key");
    CHECK_STR(verdict_of(sign(&a, i.key, "ES256", "k1", CLAIMS), "{}", &want), "provider");
    CHECK_STR(verdict_of(sign(&a, i.key, "ES256", "k1", CLAIMS), "nonsense", &want), "provider");
}

static void without_a_name_only_a_single_key_will_do(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer one = elliptic("k1"), two = elliptic("k2");
    char first[2048], second[2048];
    publish(one.key, first, sizeof first);
    publish(two.key, second, sizeof second);
    const char *both = arena_printf(&a, "{\"keys\":[%s,%s]}", first, second);
    struct str nameless = sign(&a, two.key, "ES256", NULL, CLAIMS);
    CHECK_STR(verdict_of(nameless, two.keys, &want), "ok");
    CHECK_STR(verdict_of(nameless, both, &want), "unknown_key");
    CHECK_STR(verdict_of(sign(&a, two.key, "ES256", "k2", CLAIMS), both, &want), "ok");
    CHECK_STR(verdict_of(sign(&a, two.key, "ES256", "k1", CLAIMS), both, &want), "bad_signature");
}

static void a_key_for_something_else_does_not_sign(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    struct str token = sign(&a, i.key, "ES256", "k1", CLAIMS);
    char key[2048];
    publish(i.key, key, sizeof key);
    const char *rest = key + 1; /* behind the { */
    CHECK_STR(verdict_of(token, arena_printf(&a, "{\"keys\":[{\"use\":\"enc\",%s]}", rest), &want),
              "unknown_key");
    CHECK_STR(
        verdict_of(token, arena_printf(&a, "{\"keys\":[{\"alg\":\"RS256\",%s]}", rest), &want),
        "unknown_key");
    CHECK_STR(verdict_of(token, arena_printf(&a, "{\"keys\":[{\"use\":\"sig\",%s]}", rest), &want),
              "ok");
    AUTO(issuer_clear)
    struct issuer other = issuer_of(cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_384, NULL), "k1");
    CHECK_STR(verdict_of(token, other.keys, &want), "unknown_key");
}

static void small_rsa_keys_are_refused(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear)
    struct issuer i =
        issuer_of(cjose_jwk_create_RSA_random(1024, (const uint8_t *)"\1\0\1", 3, NULL), "k1");
    CHECK_STR(verdict_of(sign(&a, i.key, "RS256", "k1", CLAIMS), i.keys, &want), "unknown_key");
}

/* One claim at a time; the rest is right. */
static void each_claim_must_be_right(void)
{
#define HEAD "{\"iss\":\"https://id.example\",\"sub\":\"ana\",\"nonce\":\"n-1\","
#define TIME "\"iat\":1800000000,\"exp\":1800000600"
#define OURS "\"aud\":\"nightshift\","
    static const struct {
        const char *claims, *verdict;
    } rows[] = {
        { HEAD OURS TIME "}", "ok" },
        { HEAD "\"aud\":\"grafana\"," TIME "}", "wrong_audience" },
        { HEAD TIME "}", "wrong_audience" },
        { HEAD "\"aud\":[]," TIME "}", "wrong_audience" },
        { HEAD "\"aud\":[\"nightshift\"]," TIME "}", "ok" },
        { HEAD "\"aud\":[\"grafana\",7]," TIME "}", "wrong_audience" },
        { HEAD "\"aud\":[\"grafana\",\"nightshift\"]," TIME "}", "wrong_audience" },
        { HEAD "\"aud\":[\"grafana\",\"nightshift\"],\"azp\":\"nightshift\"," TIME "}", "ok" },
        { HEAD OURS "\"azp\":\"grafana\"," TIME "}", "wrong_audience" },
        { HEAD OURS "\"azp\":\"nightshift\"," TIME "}", "ok" },
        { HEAD OURS "\"iat\":1800000000}", "bad_token" },
        { HEAD OURS "\"exp\":1800000600}", "bad_token" },
        { HEAD OURS "\"iat\":1799990000,\"exp\":1799999941}", "ok" }, /* within the skew */
        { HEAD OURS "\"iat\":1799990000,\"exp\":1799999940}", "expired" },
        { HEAD OURS "\"iat\":1799990000,\"exp\":1799999940.5}", "ok" },
        { HEAD OURS "\"iat\":1800000060,\"exp\":1800000600}", "ok" },
        { HEAD OURS "\"iat\":1800000061,\"exp\":1800000600}", "not_yet" },
        { HEAD OURS TIME ",\"nbf\":1800000061}", "not_yet" },
        { HEAD OURS TIME ",\"nbf\":1800000060}", "ok" },
        { HEAD OURS "\"iat\":\"1800000000\",\"exp\":1800000600}", "bad_token" },
        { HEAD OURS "\"iat\":1800000000,\"exp\":-1}", "bad_token" },
        { "{\"iss\":\"https://id.example/\",\"sub\":\"ana\",\"nonce\":\"n-1\"," OURS TIME "}",
          "wrong_issuer" },
        { "{\"sub\":\"ana\",\"nonce\":\"n-1\"," OURS TIME "}", "wrong_issuer" },
        { "{\"iss\":\"https://id.example\",\"sub\":\"ana\"," OURS TIME "}", "nonce" },
        { "{\"iss\":\"https://id.example\",\"sub\":\"ana\",\"nonce\":\"n-2\"," OURS TIME "}",
          "nonce" },
        { "{\"iss\":\"https://id.example\",\"nonce\":\"n-1\"," OURS TIME "}", "bad_token" },
        { "{\"iss\":\"https://id.example\",\"sub\":\"\",\"nonce\":\"n-1\"," OURS TIME "}",
          "bad_token" },
        { "[]", "bad_token" },
        { "ana", "bad_token" },
    };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        CHECK_STR(verdict(&i, rows[k].claims), rows[k].verdict);
}

static void a_nonce_counts_only_when_one_was_sent(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    struct idtoken_want calm = want;
    calm.nonce = NULL;
    CHECK_STR(verdict_of(sign(&a, i.key, "ES256", "k1", HEAD OURS TIME "}"), i.keys, &calm), "ok");
}

static void what_is_no_id_token_is_refused(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(issuer_clear) struct issuer i = elliptic("k1");
    static const char *const headers[] = {
        "{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"at+jwt\"}",
        "{\"alg\":\"ES256\",\"kid\":\"k1\",\"crit\":[\"x\"],\"x\":1}",
        "{\"alg\":\"ES256\",\"kid\":7}",
        "[]",
    };
    for (size_t k = 0; k < ARRAY_LEN(headers); k++)
        CHECK_STR(verdict_of(compose(&a, headers[k], CLAIMS, "AAAA"), i.keys, &want), "bad_token");
    CHECK_STR(verdict_of(STR(""), i.keys, &want), "bad_token");
    CHECK_STR(verdict_of(STR("a.b.c"), i.keys, &want), "bad_token");
    CHECK_STR(verdict_of(STR("...."), i.keys, &want), "bad_token");
    struct str good = sign(&a, i.key, "ES256", "k1", CLAIMS);
    CHECK_STR(verdict_of(str_of(arena_printf(&a, "%.*s.x", STR_ARG(good))), i.keys, &want),
              "bad_token");
    /* Two readers of one header could read two things. */
    const char *twice = "{\"alg\":\"ES256\",\"kid\":\"k1\",\"alg\":\"none\"}";
    CHECK_STR(verdict_of(compose(&a, twice, CLAIMS, "AAAA"), i.keys, &want), "bad_token");
}

static const struct test tests[] = {
    { "RS256, PS256 and ES256 are taken", the_three_algorithms_are_taken },
    { "alg none and HMAC are refused", no_signature_and_a_shared_secret_are_refused },
    { "an HMAC with the public key is refused", the_public_key_is_no_shared_secret },
    { "a token that was changed after signing is refused",
      what_was_changed_after_signing_is_refused },
    { "an old key and a liar's key are refused", the_key_must_be_one_of_the_providers },
    { "a token that names no key needs a provider with one",
      without_a_name_only_a_single_key_will_do },
    { "a key that is for something else does not sign", a_key_for_something_else_does_not_sign },
    { "an RSA key of 1024 bits is refused", small_rsa_keys_are_refused },
    { "issuer, audience, times, nonce and subject must be right", each_claim_must_be_right },
    { "a nonce counts only when one was sent", a_nonce_counts_only_when_one_was_sent },
    { "what is no ID token is refused", what_is_no_id_token_is_refused },
};
TEST_CASES(tests)
