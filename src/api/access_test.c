/* Who may: what a refusal says, and what stays as it was.  Every call by every role is in permissions_test.c. */
#include "tests/lib/asking.h"
#include "tests/lib/no_files.h"

#define SLEEP "{'command':['sleep','600'],'tenant':'%s','resources':{'cpus':1}}"

/* Two tenants with a member each; ana leads vision, and eve is of speech. */
static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "bob", "vision", "member");
    asking_person(k, "lea", "vision", "lead");
    asking_person(k, "eve", "speech", "member");
    asking_person(k, "ops", NULL, "operator");
}

static void whoever_says_nothing_is_told_how_to_sign_in(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, NULL, "GET /v1/jobs");
    CHECK_REFUSED(a, 401, "denied", NULL, "this needs a token: who is calling?");
    CHECK_HAS(at_str(a, "hint"), "nightshift login");
    CHECK_STR(header_of(a, "WWW-Authenticate"), "Bearer");
    asking_end(&k);
}

static void a_token_that_is_none_is_refused_whatever_it_looks_like(void)
{
    static const char *const odd[] = {
        "nst_", "nst_x", "nst_0000000000000000000000000000000000000000000000000000000000000000",
        "nst_' or 1=1", "nst_\xff\xfe"
    };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        CHECK_REFUSED(ask(&k, odd[i], "GET /v1/jobs"), 401, "denied", NULL, "token");
    asking_end(&k);
}

static void another_scheme_than_bearer_is_no_token(void)
{
    struct asking k;
    begin(&k);
    const char *good = asking_token(&k, "ana", "'scopes':['read']");
    const char *values[] = { "Basic YW5hOmFuYQ==", say(&k, "bearer%s", good), say(&k, "%s", good),
                             "" };
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        CHECK_STATUS(ask_so(&k, &(struct question){ .request = "GET /v1/jobs",
                                                    .header = { { "Authorization", values[i] } } }),
                     401);
    asking_end(&k);
}

static void a_token_counts_for_more_than_the_socket_it_comes_through(void)
{
    struct asking k;
    begin(&k);
    struct asked_question q = { .method = "GET",
                                .target = "/v1/whoami",
                                .peer = { .local = true } };
    q.header[0] =
        (struct asked_header){ "Authorization",
                               say(&k, "Bearer %s", asking_token(&k, "ana", "'scopes':['read']")) };
    struct http_request *rq = asked_new(&q);
    api_handle(k.api, rq);
    CHECK_HAS(asked_text(rq).p, "\"user\":\"ana\"");
    asked_free(rq);
    asking_end(&k);
}

static void the_jobs_of_another_tenant_are_not_there(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", say(&k, SLEEP, "vision"));
    static const char *const asked[] = {
        "GET /v1/jobs/%llu",
        "GET /v1/jobs/%llu/why",
        "GET /v1/jobs/%llu/events",
        "GET /v1/jobs/%llu/log",
        "GET /v1/jobs/%llu/history",
        "POST /v1/jobs/%llu/cancel",
        "POST /v1/jobs/%llu/hold",
        "POST /v1/jobs/%llu/release",
        "POST /v1/jobs/%llu/freeze",
        "POST /v1/jobs/%llu/thaw",
        "GET /v1/jobs/%llu/stream?key=0123456789abcdef",
    };
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        char there[100], nowhere[100];
        snprintf(there, sizeof there, "%.*s%llu%s", (int)(strchr(asked[i], '%') - asked[i]),
                 asked[i], (unsigned long long)id, strchr(asked[i], '%') + 4);
        snprintf(nowhere, sizeof nowhere, "%.*s%d%s", (int)(strchr(asked[i], '%') - asked[i]),
                 asked[i], 9, strchr(asked[i], '%') + 4);
        struct answer *a = ask(&k, "eve", there), *b = ask(&k, "eve", nowhere);
        CHECK_REFUSED(a, 404, "not_found", "*",
                      say(&k, "there is no job %llu", (unsigned long long)id));
        CHECK_REFUSED(b, 404, "not_found", "*", "there is no job 9");
        CHECK_STR(at_str(a, "hint"), at_str(b, "hint"));
    }
    CHECK_STR(asking_state(&k, id), "running");
    CHECK_INT(at_len(ask(&k, "eve", "GET /v1/jobs?state=all"), "jobs"), 0);
    CHECK_INT(at_len(ask(&k, "eve", "GET /v1/jobs?state=all&tenant=vision&user=ana"), "jobs"), 0);
    asking_end(&k);
}

static void a_job_of_a_mate_is_seen_and_left_alone(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", say(&k, SLEEP, "vision"));
    CHECK_STATUS(ask(&k, "bob", say(&k, "GET /v1/jobs/%llu", (unsigned long long)id)), 200);
    struct answer *a = ask(&k, "bob", say(&k, "POST /v1/jobs/%llu/cancel", (unsigned long long)id));
    CHECK_REFUSED(a, 403, "denied", NULL, "belongs to 'ana'");
    CHECK_HAS(at_str(a, "hint"), "nightshift docs permissions");
    CHECK_STR(asking_state(&k, id), "running");
    CHECK_STATUS(ask(&k, "lea", say(&k, "POST /v1/jobs/%llu/cancel", (unsigned long long)id)), 200);
    CHECK_STR(asking_state(&k, id), "cancelled");
    asking_end(&k);
}

static void a_refusal_names_the_roles_that_may_and_the_one_that_asked(void)
{
    struct asking k;
    begin(&k);
    CHECK_REFUSED(ask_with(&k, "ana", "PUT /v1/tenants/vision", "{}"), 403, "denied", NULL,
                  "this needs the role 'admin'; 'ana' is 'member' in 'vision'");
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/users"), 403, "denied", NULL,
                  "this needs the role 'operator' or 'admin', which 'ana' has not");
    CHECK_REFUSED(ask_with(&k, "ana", "PUT /v1/tenants/vision/members/eve", "{}"), 403, "denied",
                  NULL, "'lead' or 'admin'");
    CHECK_REFUSED(ask_with(&k, "ops", "POST /v1/apply", "{}"), 403, "denied", NULL, "'admin'");
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/tenants/vision"), "members"), 3);
    asking_end(&k);
}

static void a_token_for_one_tenant_reaches_no_other(void)
{
    struct asking k;
    begin(&k);
    asking_person(&k, "ana", "speech", "member");
    uint64_t theirs = asking_submit(&k, "ana", say(&k, SLEEP, "speech"));
    asking_submit(&k, "ana", say(&k, SLEEP, "vision"));
    const char *token = asking_token(&k, "ana", "'scopes':['read','jobs'],'tenants':['vision']");
    CHECK_INT(at_len(ask(&k, token, "GET /v1/jobs"), "jobs"), 1);
    CHECK_INT(at_len(ask(&k, "ana", "GET /v1/jobs"), "jobs"), 2);
    CHECK_STATUS(ask(&k, token, say(&k, "GET /v1/jobs/%llu", (unsigned long long)theirs)), 404);
    struct answer *a = ask_with(&k, token, "POST /v1/jobs", say(&k, SLEEP, "speech"));
    CHECK_REFUSED(a, 403, "denied", "*", "");
    CHECK_STATUS(ask_with(&k, token, "POST /v1/jobs", say(&k, SLEEP, "vision")), 201);
    CHECK_INT(at_len(ask(&k, token, "GET /v1/tenants"), "tenants"), 1);
    asking_end(&k);
}

static void a_token_for_a_tenant_has_nothing_of_a_role_on_the_site(void)
{
    struct asking k;
    begin(&k);
    asking_person(&k, "adm", NULL, "admin");
    const char *token = asking_token(&k, "adm", "'scopes':['read','manage'],'tenants':['vision']");
    static const char *const closed[] = { "GET /v1/users", "GET /v1/audit", "GET /v1/journal",
                                          "GET /v1/clients", "GET /v1/doctor" };
    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        CHECK_REFUSED(ask(&k, token, closed[i]), 403, "denied", NULL, "is for vision only");
        if (strcmp(closed[i], "GET /v1/doctor") != 0)
            CHECK(ask(&k, "adm", closed[i])->status == 200);
    }
    asking_end(&k);
}

static void somebody_new_on_the_socket_is_nobody_in_particular(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask_so(&k, &(struct question){ .request = "GET /v1/whoami", .uid = 60002 });
    CHECK_STATUS(a, 200);
    CHECK_INT(at_len(a, "tenants"), 0);
    CHECK_STATUS(ask_so(&k, &(struct question){ .request = "POST /v1/jobs",
                                                .body = "{'command':['true']}",
                                                .uid = 60002 }),
                 403);
    CHECK_STATUS(ask_so(&k, &(struct question){ .request = "GET /v1/users", .uid = 60002 }), 403);
    /* A uid that only jobs have is nobody at all. */
    CHECK_REFUSED(ask_so(&k, &(struct question){ .request = "GET /v1/whoami", .uid = 700000002 }),
                  401, "denied", NULL, "is nobody's");
    asking_end(&k);
}

static void who_cannot_be_looked_up_is_asked_to_try_again(void)
{
    struct asking k;
    begin(&k);
    const struct question daemon = { .request = "GET /v1/whoami", .uid = 1 };
    CHECK_STATUS(ask_so(&k, &daemon), 200); /* what answers is loaded */
    struct rlimit before = no_files_begin();
    struct answer *a = ask_so(&k, &daemon);
    no_files_end(before);
    CHECK_REFUSED(a, 503, "unavailable", NULL, "accounts cannot be looked up");
    asking_end(&k);
}

static void whoever_lost_a_role_has_lost_it_with_the_next_call(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "ana", "POST /v1/jobs", say(&k, SLEEP, "vision")), 201);
    CHECK_STATUS(ask(&k, "root", "DELETE /v1/tenants/vision/members/ana"), 200);
    CHECK(ask_with(&k, "ana", "POST /v1/jobs", say(&k, SLEEP, "vision"))->status == 403);
    CHECK_STATUS(ask(&k, "ana", "GET /v1/jobs"), 403);
    CHECK_STATUS(ask(&k, "ana", "GET /v1/jobs/1"), 404);
    asking_end(&k);
}

static void a_disabled_person_is_let_in_by_nothing(void)
{
    struct asking k;
    begin(&k);
    const char *session = asking_session(&k, "ana");
    CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 200);
    CHECK_STATUS(ask_with(&k, "root", "PUT /v1/users/ana", "{'disabled':true}"), 200);
    CHECK_STATUS(ask(&k, "ana", "GET /v1/whoami"), 401);
    CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 401);
    CHECK_STATUS(ask_with(&k, "root", "PUT /v1/users/ana", "{'disabled':false}"), 200);
    CHECK_STATUS(ask(&k, "ana", "GET /v1/whoami"), 200);
    asking_end(&k);
}

static void who_may_what_outlives_a_crash(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "lea", "'scopes':['read','manage'],'tenants':['vision']");
    asking_again(&k);
    struct answer *a = CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 200);
    CHECK_STR(at_str(a, "user"), "lea");
    CHECK_STATUS(ask_with(&k, token, "PUT /v1/tenants/vision/members/eve", "{'role':'viewer'}"),
                 200);
    CHECK_STATUS(ask_with(&k, token, "PUT /v1/tenants/speech/members/ana", "{'role':'viewer'}"),
                 404);
    asking_end(&k);
}

static const struct test tests[] = {
    { "whoever says nothing is told how to sign in", whoever_says_nothing_is_told_how_to_sign_in },
    { "a token that is none is refused, whatever it looks like",
      a_token_that_is_none_is_refused_whatever_it_looks_like },
    { "another scheme than Bearer is no token", another_scheme_than_bearer_is_no_token },
    { "a token counts for more than the socket it comes through",
      a_token_counts_for_more_than_the_socket_it_comes_through },
    { "the jobs of another tenant are not there: as a number that nothing has",
      the_jobs_of_another_tenant_are_not_there },
    { "a mate's job is seen and left alone; the lead may steer it",
      a_job_of_a_mate_is_seen_and_left_alone },
    { "a refusal names the roles that may, and the one that asked",
      a_refusal_names_the_roles_that_may_and_the_one_that_asked },
    { "a token for one tenant reaches no other", a_token_for_one_tenant_reaches_no_other },
    { "a token for a tenant has nothing of its owner's role on the site",
      a_token_for_a_tenant_has_nothing_of_a_role_on_the_site },
    { "somebody new on the socket is nobody in particular",
      somebody_new_on_the_socket_is_nobody_in_particular },
    { "who cannot be looked up is asked to try again",
      who_cannot_be_looked_up_is_asked_to_try_again },
    { "whoever lost a role has lost it with the next call",
      whoever_lost_a_role_has_lost_it_with_the_next_call },
    { "a disabled person is let in by nothing", a_disabled_person_is_let_in_by_nothing },
    { "who may what outlives a crash", who_may_what_outlives_a_crash },
};
TEST_CASES(tests)
