#include "notice/choice.h"

#include <sodium.h>

#include "tests/lib/test.h"

static const struct choice_bounds wide = { .mail = true, .webhooks = WEBHOOK_ANY };

static int change(struct notice_choice *c, const char *json, const struct choice_bounds *b,
                  bool *secret, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(json), e);
    CHECK(d != NULL);
    *e = (struct err){ 0 };
    *secret = false;
    return choice_change(c, json_root(d), b, secret, e);
}

static void nothing_is_wanted_until_there_is_somewhere_to_send_it(void)
{
    AUTO(choice_clear) struct notice_choice c;
    struct err e;
    bool secret;
    choice_init(&c);
    for (int k = 0; k < NOTICE_KIND_COUNT; k++)
        CHECK(!choice_wants(&c, NOTICE_MAIL, (enum notice_kind)k));
    CHECK(change(&c, "{\"mail\":\"ana@lab.example\"}", &wide, &secret, &e) == 0 && !secret);
    CHECK(choice_wants(&c, NOTICE_MAIL, KIND_JOB_FAILED));
    CHECK(choice_wants(&c, NOTICE_MAIL, KIND_BUDGET));
    CHECK(!choice_wants(&c, NOTICE_MAIL, KIND_JOB_CANCELLED));
    CHECK(!choice_wants(&c, NOTICE_WEBHOOK, KIND_JOB_FAILED));
    CHECK(change(&c, "{\"kinds\":{\"job_failed\":{\"mail\":false}}}", &wide, &secret, &e) == 0);
    CHECK(!choice_wants(&c, NOTICE_MAIL, KIND_JOB_FAILED));
    CHECK(choice_wants(&c, NOTICE_MAIL, KIND_JOB_SUCCEEDED));
    CHECK(change(&c, "{\"mail\":null}", &wide, &secret, &e) == 0 && !c.mail);
}

static void a_webhook_gets_a_secret_that_is_not_shown(void)
{
    AUTO(choice_clear) struct notice_choice c;
    AUTO(buf_free) struct buf b = BUF(8192);
    struct json_out w = { .b = &b };
    struct err e;
    bool secret;
    char first[WEBHOOK_SECRET_TEXT];
    choice_init(&c);
    CHECK(change(&c, "{\"webhook\":\"https://x.example/a\"}", &wide, &secret, &e) == 0 && secret);
    CHECK(strlen(c.secret) == 50 && strncmp(c.secret, "whsec_", 6) == 0);
    memcpy(first, c.secret, sizeof first);
    CHECK(change(&c, "{\"webhook\":\"https://x.example/a\"}", &wide, &secret, &e) == 0 && !secret);
    CHECK_STR(c.secret, first);
    json_begin(&w, NULL, '{');
    choice_put(&c, &w);
    json_end(&w, '}');
    CHECK(!strstr(b.p, "whsec_") && !strstr(b.p, "secret"));
    CHECK(change(&c, "{\"new_secret\":true}", &wide, &secret, &e) == 0 && secret);
    CHECK(strcmp(c.secret, first) != 0);
    memcpy(first, c.secret, sizeof first);
    CHECK(change(&c, "{\"webhook\":\"https://x.example/b\"}", &wide, &secret, &e) == 0 && secret);
    CHECK(strcmp(c.secret, first) != 0);
    CHECK(change(&c, "{\"webhook\":null,\"new_secret\":true}", &wide, &secret, &e) == 0 && !secret);
    CHECK(!c.webhook && !c.secret[0]);
}

static void what_is_refused_changes_nothing(void)
{
    static const struct {
        const char *json;
        struct choice_bounds b;
        enum err_code code;
        const char *field;
    } rows[] = {
        { "{\"mail\":\"x@y.example\"}", { .mail = false }, ERR_CONFLICT, "mail" },
        { "{\"mail\":\"me\"}", { .mail = true }, ERR_INVALID, "mail" },
        { "{\"mail\":\"a\\r\\nb@x.example\"}", { .mail = true }, ERR_INVALID, "mail" },
        { "{\"mail\":\"x@y.example\"}",
          { .mail = true, .mail_domains = { "lab.example", 11 } },
          ERR_DENIED,
          "mail" },
        { "{\"webhook\":\"https://x.example\"}",
          { .webhooks = WEBHOOK_NONE },
          ERR_CONFLICT,
          "webhook" },
        { "{\"webhook\":\"http://localhost/\"}",
          { .webhooks = WEBHOOK_NETWORK },
          ERR_DENIED,
          "webhook" },
        { "{\"webhook\":\"https://x.example\",\"kinds\":{\"nothing\":{}}}",
          { .webhooks = WEBHOOK_ANY },
          ERR_INVALID,
          "kinds" },
        { "{\"kinds\":[]}", { 0 }, ERR_INVALID, "kinds" },
        { "{\"kinds\":{\"budget\":{\"mail\":1}}}", { 0 }, ERR_INVALID, "kinds" },
    };
    AUTO(choice_clear) struct notice_choice c;
    choice_init(&c);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        bool secret;
        CHECK(change(&c, rows[i].json, &rows[i].b, &secret, &e) < 0);
        CHECK_INT(e.code, rows[i].code);
        CHECK_STR(e.field, rows[i].field);
        CHECK(!c.mail && !c.webhook && !secret && !c.secret[0]);
    }
}

static void what_is_written_is_read_again(void)
{
    AUTO(choice_clear) struct notice_choice c, back;
    AUTO(buf_free) struct buf b = BUF(8192);
    struct err e;
    bool secret;
    choice_init(&c);
    CHECK(change(
              &c,
              "{\"mail\":\"a@b.example\",\"webhook\":\"https://x.example\",\"log\":false,\"kinds\":"
              "{\"gpu_idle\":{\"webhook\":false},\"job_cancelled\":{\"mail\":true}}}",
              &wide, &secret, &e) == 0);
    choice_write(&c, &b);
    choice_init(&back);
    CHECK(choice_read(buf_str(&b), &back, &e) == 0);
    CHECK_STR(back.mail, "a@b.example");
    CHECK_STR(back.webhook, "https://x.example");
    CHECK_STR(back.secret, c.secret);
    CHECK(!back.log && memcmp(back.on, c.on, sizeof c.on) == 0);
    struct notice_choice other;
    CHECK(choice_read(STR("{\"kinds\":{\"of_the_future\":7}}"), &other, &e) == 0 && !other.mail);
    CHECK(choice_read(STR("[]"), &other, &e) < 0 &&
          choice_read(STR("{\"mail\":5}"), &other, &e) < 0);
}

static const struct test tests[] = {
    { "nothing is wanted until there is somewhere to send it",
      nothing_is_wanted_until_there_is_somewhere_to_send_it },
    { "a webhook gets a secret that is not shown again",
      a_webhook_gets_a_secret_that_is_not_shown },
    { "what is refused changes nothing", what_is_refused_changes_nothing },
    { "what is written is read again", what_is_written_is_read_again },
};
TEST_CASES(tests)
