/* What people want to be told, where, and what they were told lately. */
#include "tests/lib/asking.h"

static void begin(struct asking *k)
{
    asking_begin(k, &(struct asking_site){ .mail_from = "nightshift@lab.example" });
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "bob", "vision", "member");
    ask(k, "ana", "GET /v1/whoami");
}

#define PUT "PUT /v1/notices"
static void what_is_chosen_is_shown_and_outlives_a_crash(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, "ana", "GET /v1/notices");
    CHECK_STR(at_str(a, "mail_possible"), "true");
    CHECK_STR(at_str(a, "mail"), "null");
    CHECK_STATUS(
        ask_with(&k, "ana", PUT, "{'mail':'ana@lab.example','kinds':{'job_failed':{'mail':true}}}"),
        200);
    for (int round = 0; round < 2; round++) {
        CHECK_STR(at_str(ask(&k, "ana", "GET /v1/notices"), "mail"), "ana@lab.example");
        CHECK_STR(at_str(ask(&k, "bob", "GET /v1/notices"), "mail"),
                  "null"); /* each has their own */
        asking_again(&k);
    }
    asking_end(&k);
}

static void what_is_wrong_is_refused_by_its_name(void)
{
    static const struct bad rows[] = {
        { PUT, "{'mail':'a b@x'}", 400, "mail", "" },
        { PUT, "{'mail':'x@y.example\\r\\nBcc: e@x'}", 400, "mail", "" },
        { PUT, "{'mail':'me'}", 400, "mail", "" },
        { PUT, "{'mail':5}", 400, "mail", "" },
        { PUT, "{'webhook':'ftp://x/'}", 400, "webhook", "" },
        { PUT, "{'webhook':5}", 400, "webhook", "" },
        { PUT, "{'kinds':{'nonsense':{}}}", 400, "kinds", "nonsense" },
        { PUT, "{'kinds':{'budget':{'mail':'yes'}}}", 400, "kinds", "" },
        { PUT, "{'kinds':[]}", 400, "kinds", "" },
        { PUT, "{'colour':1}", 400, "colour", "colour" },
        { "POST /v1/notices/test", "{'way':'pigeon'}", 400, "way", "'pigeon' is not known here" },
        { "POST /v1/notices/test", "{}", 400, "way", "way" },
        { "POST /v1/notices/test", "{'way':'mail'}", 409, NULL, "" }, /* nowhere to send it */
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "ana", rows);
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/notices"), "mail"), "null");
    asking_end(&k);
}

/* Else whoever may send a trial to any address fills anybody's box. */
static void there_are_twenty_trials_an_hour(void)
{
    struct asking k;
    begin(&k);
    const char *to = "{'mail':'victim@lab.example'}", *trial = "POST /v1/notices/test";
    CHECK_STATUS(ask_with(&k, "ana", PUT, to), 200);
    CHECK_STATUS(ask_with(&k, "bob", PUT, to), 200);
    for (int i = 0; i < 20; i++)
        CHECK_STATUS(ask_with(&k, "ana", trial, "{'way':'mail'}"), 200);
    CHECK_REFUSED(ask_with(&k, "ana", trial, "{'way':'mail'}"), 409, "conflict", NULL,
                  "there were 20 trials within an hour");
    CHECK_STATUS(ask_with(&k, "bob", trial, "{'way':'mail'}"), 200);
    k.t.now_ms += 3600000;
    CHECK_STATUS(ask_with(&k, "ana", trial, "{'way':'mail'}"), 200);
    asking_end(&k);
}

static void a_webhooks_secret_is_shown_once_and_is_in_no_audit(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask_with(&k, "ana", PUT, "{'webhook':'https://hook.example/x'}");
    const char *secret = at_str(CHECK_STATUS(a, 200), "secret");
    CHECK(strncmp(secret, "whsec_", 6) == 0);
    CHECK(!strstr(ask(&k, "ana", "GET /v1/notices")->text, secret));
    a = ask_with(&k, "ana", PUT, "{'new_secret':true}");
    CHECK(strncmp(at_str(a, "secret"), "whsec_", 6) == 0 &&
          strcmp(at_str(a, "secret"), secret) != 0);
    a = ask(&k, "root", "GET /v1/audit?what=notices.set");
    CHECK_INT(at_len(a, "rows"), 2);
    CHECK(!strstr(a->text, "whsec_"));
    asking_end(&k);
}

static void the_end_of_a_job_waits_to_be_sent_to_its_user_alone(void)
{
    struct asking k;
    begin(&k);
    static const char *const both[] = { "ana", "bob" };
    for (size_t i = 0; i < 2; i++)
        CHECK_STATUS(
            ask_with(
                &k, both[i], PUT,
                say(&k, "{'mail':'%s@lab.example','kinds':{'job_failed':{'mail':true}}}", both[i])),
            200);
    asking_submit(&k, "ana", "{'command':['x'],'env':{'SIM_EXIT':'3'},'name':'train'}");
    asking_wait(&k, 5000);
    for (int round = 0; round < 2; round++) {
        struct answer *a = ask(&k, "ana", "GET /v1/notices/log");
        CHECK_INT(at_len(a, "notices"), 1);
        CHECK_STR(at_str(a, "notices.0.way"), "mail");
        CHECK_STR(at_str(a, "notices.0.state"), "waiting");
        CHECK_INT(at_len(ask(&k, "bob", "GET /v1/notices/log"), "notices"), 0);
        asking_again(&k);
    }
    asking_end(&k);
}

static void what_is_not_chosen_is_not_written(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "ana", PUT,
                          "{'mail':'ana@lab.example','kinds':{'job_failed':{'mail':false}}}"),
                 200);
    asking_submit(&k, "ana", "{'command':['x'],'env':{'SIM_EXIT':'3'}}");
    asking_wait(&k, 5000);
    CHECK_INT(at_len(ask(&k, "ana", "GET /v1/notices/log"), "notices"), 0);
    asking_end(&k);
}

static const struct test tests[] = {
    { "there are twenty trials an hour", there_are_twenty_trials_an_hour },
    { "what is chosen is shown, and outlives a crash",
      what_is_chosen_is_shown_and_outlives_a_crash },
    { "what is wrong is refused by its name", what_is_wrong_is_refused_by_its_name },
    { "a webhook's secret is shown once, and is in no audit",
      a_webhooks_secret_is_shown_once_and_is_in_no_audit },
    { "the end of a job waits to be sent, to its user alone",
      the_end_of_a_job_waits_to_be_sent_to_its_user_alone },
    { "what is not chosen is not written", what_is_not_chosen_is_not_written },
};
TEST_CASES(tests)
