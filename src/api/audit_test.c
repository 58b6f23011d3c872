/* Who did what: written with what it tells of, for administrators, and a chain that can be verified. */
#include "tests/lib/asking.h"

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "ops", NULL, "operator");
    ask(k, "ana", "GET /v1/whoami"); /* their tokens are made */
    ask(k, "ops", "GET /v1/whoami");
}

static struct answer *rows(struct asking *k, const char *query)
{
    return CHECK_STATUS(ask(k, "root", say(k, "GET /v1/audit%s", query)), 200);
}

static void whoever_changes_something_is_written_down(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/nodes/desk1/drain", "{'reason':'a new fan'}"), 200);
    CHECK_STATUS(ask_so(&k, &(struct question){ .who = "ops",
                                                .request = "POST /v1/nodes/desk1/resume",
                                                .address = "198.51.100.7:5" }),
                 200);
    struct answer *a = rows(&k, "?limit=2");
    CHECK_STR(at_str(a, "rows.0.who"), "ops");
    CHECK_STR(at_str(a, "rows.0.what"), "node.resume");
    CHECK_STR(at_str(a, "rows.0.address"), "198.51.100.7:5");
    CHECK_HAS(at_str(a, "rows.0.via"), "token t");
    CHECK_STR(at_str(a, "rows.0.before"), "{\"state\":\"drain\"}");
    CHECK_STR(at_str(a, "rows.0.after"), "{\"state\":\"up\"}");
    CHECK_STR(at_str(a, "rows.1.who"), "root");
    CHECK_STR(at_str(a, "rows.1.via"), "socket uid 0");
    CHECK_STR(at_str(a, "rows.1.reason"), "a new fan");
    CHECK_STR(at_str(a, "rows.1.subject"), "desk1");
    CHECK_INT(at_int(a, "rows.1.t_ms"), k.t.now_ms);
    asking_end(&k);
}

static void rows_are_found_by_who_what_whom_and_when_a_page_at_a_time(void)
{
    struct asking k;
    begin(&k);
    int64_t before = at_int(rows(&k, "?limit=1"), "rows.0.number");
    k.t.now_ms += 1000;
    for (int i = 0; i < 5; i++) {
        ask_with(&k, "ops", say(&k, "PUT /v1/pools/p%d", i), "{}");
        ask(&k, "root", say(&k, "DELETE /v1/pools/p%d", i));
    }
    CHECK_INT(at_len(rows(&k, "?who=ops"), "rows"), 5);
    CHECK_INT(at_len(rows(&k, "?what=pool."), "rows"), 10);
    CHECK_INT(at_len(rows(&k, "?what=pool.set"), "rows"), 5);
    CHECK_INT(at_len(rows(&k, "?subject=p3"), "rows"), 2);
    CHECK_INT(at_len(rows(&k, "?tenant=none"), "rows"), 0);
    CHECK_INT(at_len(rows(&k, say(&k, "?since_ms=%lld", (long long)k.t.now_ms)), "rows"), 10);
    CHECK_INT(at_len(rows(&k, say(&k, "?until_ms=%lld", (long long)k.t.now_ms)), "rows"), before);
    int64_t last = INT64_MAX;
    size_t n = 0;
    for (struct answer *a = rows(&k, "?limit=3");;
         a = rows(&k, say(&k, "?limit=3&before=%lld", (long long)at_int(a, "next")))) {
        for (size_t i = 0; i < at_len(a, "rows"); i++, n++) {
            int64_t number = at_int(a, say(&k, "rows.%zu.number", i));
            CHECK(number < last);
            last = number;
        }
        if (strcmp(at_str(a, "next"), "null") == 0)
            break;
    }
    CHECK_INT(n, before + 10);
    asking_end(&k);
}

static void what_was_refused_is_not_written_nor_what_people_do_to_their_own_jobs(void)
{
    static const struct bad refused[] = {
        { "POST /v1/nodes/desk1/drain", "{}", 403, NULL, "" },
        { "PUT /v1/pools/x", "{}", 403, NULL, "" },
        { "POST /v1/tokens", "{'name':'x','user':'ops'}", 403, "*", "" },
        { "GET /v1/audit", NULL, 403, NULL, "'admin'" },
        { "GET /v1/audit/verify", NULL, 403, NULL, "'admin'" },
        { "GET /v1/audit/export", NULL, 403, NULL, "'admin'" },
    };
    struct asking k;
    begin(&k);
    int64_t before = at_int(rows(&k, "?limit=1"), "rows.0.number");
    CHECK_BAD(&k, "ana", refused);
    uint64_t id = asking_submit(&k, "ana", "{'command':['sleep','600'],'held':true}");
    static const char *const verbs[] = { "release", "cancel" };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        CHECK_STATUS(
            ask(&k, "ana", say(&k, "POST /v1/jobs/%llu/%s", (unsigned long long)id, verbs[i])),
            200);
    CHECK_INT(at_int(rows(&k, "?limit=1"), "rows.0.number"), before);
    asking_end(&k);
}

static void what_somebody_else_does_to_a_job_is_written(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600']}");
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/jobs/1/signal", "{'signal':'CONT'}"), 200);
    CHECK_STATUS(ask_with(&k, "ops", "POST /v1/jobs/1/cancel", "{'reason':'too hot'}"), 200);
    struct answer *a = rows(&k, "?what=job.");
    CHECK_INT(at_len(a, "rows"), 2);
    CHECK_STR(at_str(a, "rows.0.what"), "job.cancel");
    CHECK_STR(at_str(a, "rows.0.subject"), "1");
    CHECK_STR(at_str(a, "rows.0.tenant"), "vision");
    CHECK_STR(at_str(a, "rows.0.before"), "{\"state\":\"running\"}");
    CHECK_STR(at_str(a, "rows.0.reason"), "too hot");
    CHECK_STR(at_str(a, "rows.1.what"), "job.signal");
    CHECK_STR(at_str(a, "rows.1.after"), "{\"signal\":\"CONT\"}");
    asking_end(&k);
}

static void the_chain_verifies_also_against_a_row_that_was_noted(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = CHECK_STATUS(ask(&k, "root", "GET /v1/audit/verify"), 200);
    CHECK_STR(at_str(a, "ok"), "true");
    CHECK_STR(at_str(a, "fault"), "null");
    struct answer *last = rows(&k, "?limit=1");
    const char *noted = say(&k, "%s", at_str(last, "rows.0.hash"));
    long long number = at_int(last, "rows.0.number");
    ask_with(&k, "root", "PUT /v1/pools/x", "{}");
    asking_again(&k);
    a = ask(&k, "root", say(&k, "GET /v1/audit/verify?head=%s&number=%lld", noted, number));
    CHECK_STR(at_str(CHECK_STATUS(a, 200), "ok"), "true");
    CHECK_INT(at_int(a, "rows"), number + 1);
    a = ask(
        &k, "root",
        "GET "
        "/v1/audit/verify?head=1111111111111111111111111111111111111111111111111111111111111111");
    CHECK_STR(at_str(CHECK_STATUS(a, 200), "ok"), "false");
    asking_end(&k);
}

static void an_export_has_every_row_and_no_tokens_text(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['read']");
    struct answer *a = CHECK_STATUS(ask(&k, "root", "GET /v1/audit/export"), 200);
    const char *text = hear_all(&k, a);
    size_t lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    CHECK_HAS(text, "\"audit\":1");
    CHECK(lines > (size_t)at_int(rows(&k, "?limit=1"), "rows.0.number"));
    CHECK(!strstr(text, token + 4));
    asking_end(&k);
}

static void a_change_and_its_row_are_on_the_disk_together(void)
{
    struct asking k;
    begin(&k);
    for (int i = 0; i < 10; i++) {
        struct question q = { .who = "root",
                              .request = say(&k, "PUT /v1/pools/p%d", i),
                              .body = "{}" };
        CHECK_INT(ask_begin(&k, &q)->status, 0);
        if (i % 2)
            asking_settle(&k);
        asking_again(&k); /* with the change, or before it */
        bool there = ask(&k, "root", say(&k, "GET /v1/pools/p%d", i))->status == 200;
        CHECK_INT(at_len(rows(&k, say(&k, "?subject=p%d", i)), "rows"), there);
    }
    CHECK_STR(at_str(ask(&k, "root", "GET /v1/audit/verify"), "ok"), "true");
    asking_end(&k);
}

static const struct test tests[] = {
    { "whoever changes something is written down: who, how, from where, before, after and why",
      whoever_changes_something_is_written_down },
    { "rows are found by who, what, whom and when, a page at a time",
      rows_are_found_by_who_what_whom_and_when_a_page_at_a_time },
    { "what was refused is not written, nor what people do to their own jobs",
      what_was_refused_is_not_written_nor_what_people_do_to_their_own_jobs },
    { "what somebody else does to a job is written", what_somebody_else_does_to_a_job_is_written },
    { "the chain verifies, also against a row that was noted",
      the_chain_verifies_also_against_a_row_that_was_noted },
    { "an export has every row and no token's text", an_export_has_every_row_and_no_tokens_text },
    { "a change and its row are on the disk together, or neither is",
      a_change_and_its_row_are_on_the_disk_together },
};
TEST_CASES(tests)
