#include "signin/verb.h"

#include <stdio.h>

#include "tests/lib/test.h"

/* The answer as a document; the caller frees it. */
static struct json_doc *ask(const char *request)
{
    AUTO(buf_free) struct buf out = BUF(ANSWER_MAX + 4096);
    struct err e;
    verb_answer(str_of(request), false, &out);
    CHECK(out.n && out.p[out.n - 1] == '\n' && !memchr(out.p, '\n', out.n - 1));
    struct json_doc *d = json_read(buf_str(&out), &e);
    CHECK(d && json_is_object(json_root(d)));
    return d;
}

static void text_in(const struct json_doc *d, const char *key, char *out, size_t size)
{
    struct err e;
    struct str s = STR("");
    CHECK(json_get_str(json_root(d), key, 4096, &s, &e) == 0);
    snprintf(out, size, "%.*s", STR_ARG(s));
}

static void check_refused(const char *request, const char *reason, const char *words)
{
    char got[400];
    AUTO(json_free_p) struct json_doc *d = ask(request);
    text_in(d, "reason", got, sizeof got);
    CHECK_STR(got, reason);
    text_in(d, "message", got, sizeof got);
    if (!strstr(got, words))
        CHECK_STR(got, words);
}

static bool is_ok(const struct json_doc *d)
{
    struct err e;
    bool ok = false;
    CHECK(json_get_bool(json_root(d), "ok", &ok, &e) == 0);
    return ok;
}

static void a_request_is_read_strictly(void)
{
    check_refused("", "bad_request", "empty");
    check_refused("{", "bad_request", "not valid JSON");
    check_refused("[]", "bad_request", "not an object");
    check_refused("{}", "bad_request", "'do' is missing");
    check_refused("{\"do\":\"fly\"}", "bad_request", "no verb 'fly'");
    check_refused("{\"do\":\"hash\"}", "bad_request", "'password' is missing");
    check_refused("{\"do\":\"hash\",\"pass\":\"x\"}", "bad_request", "unknown field 'pass'");
    check_refused("{\"do\":\"hash\",\"password\":\"a\",\"password\":\"b\"}", "bad_request",
                  "given twice");
    check_refused("{\"do\":\"hash\",\"password\":7}", "bad_request", "must be a string");
    check_refused("{\"do\":\"hash\",\"password\":null}", "bad_request", "must be a string");
    check_refused("{\"do\":\"hash\",\"password\":\"a\\u0000b\"}", "bad_request",
                  "control character");
    check_refused("{\"do\":\"pam\",\"user\":\"a\\nb\",\"password\":\"x\"}", "bad_request",
                  "control character");
    check_refused("{\"do\":\"pam\",\"user\":\"\",\"password\":\"x\"}", "bad_request",
                  "'user' is empty");
    check_refused("{\"do\":\"ldap_look\",\"url\":\"ldapi://x\",\"base\":\"\",\"user\":\"a\"}",
                  "bad_request", "'base' is empty");
    check_refused("{\"do\":\"ldap_look\",\"url\":\"ldapi://x\",\"base\":\"o\",\"user\":\"a\","
                  "\"timeout_s\":99}",
                  "bad_request", "timeout_s");
}

static void long_texts_are_refused_and_not_quoted(void)
{
    AUTO(buf_free) struct buf request = BUF(8192);
    buf_addz(&request, "{\"do\":\"hash\",\"password\":\"hunter2");
    for (int i = 0; i < 1024; i++)
        buf_addc(&request, 'x');
    buf_addz(&request, "\"}");
    AUTO(buf_free) struct buf out = BUF(8192);
    verb_answer(buf_str(&request), false, &out);
    CHECK(strstr(out.p, "at most 1024") && !strstr(out.p, "hunter2"));
}

static void a_password_is_known_by_its_hash(void)
{
    char hash[200], request[600];
    AUTO(json_free_p) struct json_doc *made = ask("{\"do\":\"hash\",\"password\":\"a b\\u00e9\"}");
    CHECK(is_ok(made));
    text_in(made, "hash", hash, sizeof hash);
    CHECK(strncmp(hash, "$argon2id$", 10) == 0 && strstr(hash, "m=65536,t=2"));
    snprintf(request, sizeof request,
             "{\"do\":\"password\",\"hash\":\"%s\",\"password\":\"a b\\u00e9\"}", hash);
    AUTO(json_free_p) struct json_doc *right = ask(request);
    CHECK(is_ok(right) && !json_find(json_root(right), "rehash"));
    snprintf(request, sizeof request, "{\"do\":\"password\",\"hash\":\"%s\",\"password\":\"a b\"}",
             hash);
    check_refused(request, "wrong_password", "wrong");
    snprintf(request, sizeof request, "{\"do\":\"password\",\"hash\":\"%s\",\"password\":\"\"}",
             hash);
    check_refused(request, "empty_password", "empty");
}

static void nobodys_password_is_as_wrong_as_a_wrong_one(void)
{
    check_refused("{\"do\":\"password\",\"hash\":null,\"password\":\"x\"}", "wrong_password",
                  "the user name or the password is wrong");
    check_refused("{\"do\":\"password\",\"hash\":\"$2y$05$x\",\"password\":\"x\"}", "bad_hash",
                  "argon2id");
    check_refused("{\"do\":\"password\",\"hash\":\"$argon2id$v=19$nonsense\",\"password\":\"x\"}",
                  "bad_hash", "damaged");
    check_refused("{\"do\":\"password\",\"password\":\"x\"}", "bad_request", "'hash' is missing");
}

/* 1 pass over 8 MiB, made with libsodium: "old" */
static void a_cheap_hash_is_to_be_made_anew(void)
{
    AUTO(json_free_p)
    struct json_doc *d = ask("{\"do\":\"password\",\"password\":\"old\",\"hash\":"
                             "\"$argon2id$v=19$m=8192,t=1,p=1$3CuHpdqvwrFjMaVzJ8NtLw$"
                             "z1FxRoIAb8fIZJ1ovmtk+GJjqWYEIFK8iK3HKczbDxA\"}");
    bool rehash = false;
    struct err e;
    CHECK(is_ok(d) && json_get_bool(json_root(d), "rehash", &rehash, &e) == 0 && rehash);
}

static void as_root_it_knows_the_machines_accounts_only(void)
{
    const struct verb *v;
    for (size_t i = 0; (v = verb_at(i)); i++) {
        AUTO(buf_free) struct buf out = BUF(8192);
        char request[100];
        snprintf(request, sizeof request, "{\"do\":\"%s\"}", v->name);
        verb_answer(str_of(request), true, &out);
        bool is_pam = strncmp(v->name, "pam", 3) == 0;
        CHECK((strstr(out.p, "there is no verb") == NULL) == is_pam);
        CHECK((strstr(out.p, "is missing") != NULL) == is_pam);
    }
}

static void every_reason_has_words_that_fit(void)
{
    for (enum reason why = 0; why < REASON_COUNT; why++) {
        AUTO(buf_free) struct buf out = BUF(4096);
        struct json_out w = { .b = &out };
        struct refusal r = { 0 };
        CHECK(refuse(&r, why, "words") == -1 && r.why == why && reason_name(why)[0]);
        CHECK(strlen(r.e.hint) < sizeof r.e.hint - 1); /* not cut */
        json_begin(&w, NULL, '{');
        refusal_write(&r, &w);
        json_end(&w, '}');
        CHECK(strstr(out.p, "\"denied\"") || strstr(out.p, "\"invalid\"") ||
              strstr(out.p, "\"unavailable\""));
    }
}

static void every_verb_explains_itself(void)
{
    const struct verb *v;
    size_t n = 0;
    for (; (v = verb_at(n)); n++) {
        CHECK(v->name[0] && v->help[0] && v->n > 0 && v->n <= 32 && v->run && v->size <= 1024);
        for (size_t i = 0; i < v->n; i++)
            CHECK(v->fields[i].max > 0 && v->fields[i].offset < v->size);
    }
    CHECK_INT(n, 11);
}

static void what_would_go_over_the_network_readable_is_refused(void)
{
    check_refused("{\"do\":\"ldap\",\"url\":\"ldap://dir.example\",\"base\":\"o\",\"user\":\"a\","
                  "\"password\":\"x\"}",
                  "insecure", "readable");
    check_refused("{\"do\":\"ldap\",\"url\":\"ldap://127.0.0.1 ldap://dir.example\",\"base\":\"o\","
                  "\"user\":\"a\",\"password\":\"x\"}",
                  "insecure", "readable");
    check_refused("{\"do\":\"oidc_discover\",\"issuer\":\"http://id.example\"}", "insecure",
                  "not https");
    check_refused("{\"do\":\"oidc_discover\",\"issuer\":\"file:///etc/passwd\"}", "bad_request",
                  "not a web address");
    check_refused("{\"do\":\"oidc_discover\",\"issuer\":\"https://a@id.example\"}", "bad_request",
                  "user name");
    check_refused("{\"do\":\"oidc_discover\",\"issuer\":\"http://127.0.0.1.id.example\"}",
                  "insecure", "not https");
}

static const struct test tests[] = {
    { "a request is read strictly", a_request_is_read_strictly },
    { "a long text is refused and not quoted", long_texts_are_refused_and_not_quoted },
    { "a password is known by its hash", a_password_is_known_by_its_hash },
    { "nobody's password is as wrong as a wrong one", nobodys_password_is_as_wrong_as_a_wrong_one },
    { "a hash that was cheaper is to be made anew", a_cheap_hash_is_to_be_made_anew },
    { "as root it knows the machine's accounts only", as_root_it_knows_the_machines_accounts_only },
    { "every reason has words that fit", every_reason_has_words_that_fit },
    { "every verb explains itself", every_verb_explains_itself },
    { "what would go readable over the network is refused",
      what_would_go_over_the_network_readable_is_refused },
};
TEST_CASES(tests)
