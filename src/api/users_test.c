/* People: their roles on the site, what lets them in, which machines are theirs. */
#include <stdio.h>

#include "auth/people.h"
#include "tests/lib/asking.h"

static void people_of_settings(struct people *p)
{
    people_make(p, STR("chief"))->file_role = ROLE_ADMIN;
}

static void begin(struct asking *k)
{
    asking_begin(k, &(struct asking_site){ .people = people_of_settings });
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "adm", NULL, "admin");
    asking_person(k, "ops", NULL, "operator");
}

static void what_is_said_of_somebody_is_shown_also_after_a_crash(void)
{
    struct asking k;
    begin(&k);
    struct answer *a =
        ask_with(&k, "root", "PUT /v1/users/zoe",
                 "{'role':'operator','kind':'service','full_name':'Zo\u00eb','mail':'z@lab'}");
    CHECK_STATUS(a, 200);
    CHECK_STATUS(ask(&k, "root", "PUT /v1/nodes/desk1/owners/zoe"), 204);
    for (int round = 0; round < 2; round++) {
        a = CHECK_STATUS(ask(&k, "root", "GET /v1/users/zoe"), 200);
        CHECK_STR(at_str(a, "role"), "operator");
        CHECK_STR(at_str(a, "kind"), "service");
        CHECK_STR(at_str(a, "full_name"), "Zo\u00eb");
        CHECK_STR(at_str(a, "mail"), "z@lab");
        CHECK_STR(at_str(a, "machines.0"), "desk1");
        CHECK_STR(at_str(a, "has_password"), "false");
        CHECK_INT(at_int(a, "created_ms"), k.t.now_ms);
        asking_again(&k);
    }
    a = ask_with(&k, "root", "PUT /v1/users/zoe", "{'mail':''}"); /* the rest stays */
    CHECK_STR(at_str(a, "role"), "operator");
    CHECK_STR(at_str(a, "mail"), "");
    asking_end(&k);
}

static void what_is_wrong_is_refused_by_field_and_nothing_changes(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/users/zoe", "{'role':'lead'}", 400, "role", "'lead' is not a role on the site" },
        { "PUT /v1/users/zoe", "{'role':'king'}", 400, "role", "king" },
        { "PUT /v1/users/zoe", "{'role':1}", 400, "role", "role" },
        { "PUT /v1/users/zoe", "{'kind':'alien'}", 400, "kind", "alien" },
        { "PUT /v1/users/zoe", "{'disabled':'yes'}", 400, "disabled", "disabled" },
        { "PUT /v1/users/zoe", "{'full_name':7}", 400, "full_name", "full_name" },
        { "PUT /v1/users/zoe", "{'mail':[]}", 400, "mail", "mail" },
        { "PUT /v1/users/zoe", "{'hash':'x'}", 400, "hash", "hash" },
        { "PUT /v1/users/a%20b", "{}", 400, "name", "" },
        { "PUT /v1/users/a%2Fb", "{}", 404, "*", "" },
        { "GET /v1/users/nobody", NULL, 404, NULL, "there is no user 'nobody' here" },
        { "DELETE /v1/users/nobody", NULL, 404, NULL, "there is no user 'nobody' here" },
        { "DELETE /v1/users/chief", NULL, 409, NULL, "by the settings file" },
        { "DELETE /v1/nodes/desk1/owners/ana", NULL, 404, NULL, "does not own" },
        { "PUT /v1/nodes/desk1/owners/a%20b", NULL, 400, "user", "" },
        { "PUT /v1/nodes/a%20b/owners/ana", NULL, 400, "name", "cannot be a machine's name" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    CHECK_STATUS(ask(&k, "root", "GET /v1/users/zoe"), 404);
    asking_end(&k);
}

static void a_long_text_is_refused(void)
{
    struct asking k;
    char text[300];
    begin(&k);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_REFUSED(ask_with(&k, "root", "PUT /v1/users/zoe", say(&k, "{'mail':'%s'}", text)), 400,
                  "invalid", "mail", "mail");
    CHECK_STATUS(ask_with(&k, "root", say(&k, "PUT /v1/users/%s", text), "{}"), 400);
    asking_end(&k);
}

static void nobody_shuts_themselves_out(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/users/adm", "{'role':'operator'}", 409, NULL, "you would shut yourself out" },
        { "PUT /v1/users/adm", "{'role':'none'}", 409, NULL, "you would shut yourself out" },
        { "PUT /v1/users/adm", "{'disabled':true}", 409, NULL, "you would shut yourself out" },
        { "DELETE /v1/users/adm", NULL, 409, NULL, "you would shut yourself out" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "adm", rows);
    CHECK_STATUS(ask_with(&k, "adm", "PUT /v1/users/adm", "{'role':'admin','mail':'a@b'}"), 200);
    CHECK_STATUS(ask_with(&k, "chief", "PUT /v1/users/adm", "{'role':'none'}"), 200);
    CHECK_STATUS(ask(&k, "adm", "GET /v1/users"), 403);
    asking_end(&k);
}

static void who_is_removed_is_let_in_by_nothing_and_their_jobs_stay(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", "{'command':['sleep','600']}");
    const char *session = asking_session(&k, "ana"),
               *token = asking_token(&k, "ana", "'scopes':['read']");
    ask(&k, "root", "PUT /v1/nodes/desk1/owners/ana");
    CHECK_STATUS(ask(&k, "root", "DELETE /v1/users/ana"), 204);
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 401);
        CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 401);
        CHECK_STATUS(ask(&k, "root", "GET /v1/users/ana"), 404);
        CHECK(!at_where(ask(&k, "root", "GET /v1/tenants/vision"), "members", "user", "ana"));
        CHECK_STR(
            at_str(ask(&k, "root", say(&k, "GET /v1/jobs/%llu", (unsigned long long)id)), "user"),
            "ana");
        asking_again(&k);
    }
    /* Another of that name is somebody else. */
    asking_person(&k, "ana", NULL, NULL);
    struct answer *a = ask(&k, "root", "GET /v1/users/ana");
    CHECK_INT(at_len(a, "machines"), 0);
    CHECK_INT(json_members(at(a, "tenants")), 0);
    CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 401);
    asking_end(&k);
}

static void who_is_disabled_loses_what_they_have_open(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600']}");
    struct answer *events = ask(&k, "ana", "GET /v1/events?after=0");
    hear(&k, events, "event:");
    CHECK(!asked_over(events->rq));
    CHECK_STATUS(ask_with(&k, "root", "PUT /v1/users/ana", "{'disabled':true}"), 200);
    hear_all(&k, events);
    CHECK(asked_over(events->rq));
    asking_end(&k);
}

static void an_operator_sees_people_and_changes_none(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/users/ana", "{'role':'admin'}", 403, NULL, "'admin'" },
        { "DELETE /v1/users/ana", NULL, 403, NULL, "'admin'" },
        { "PUT /v1/nodes/desk1/owners/ops", NULL, 403, NULL, "'admin'" },
        { "POST /v1/users/ana/password", "{'password':'correct horse battery'}", 403, NULL, "" },
    };
    struct asking k;
    begin(&k);
    struct answer *a = CHECK_STATUS(ask(&k, "ops", "GET /v1/users"), 200);
    CHECK(at_where(a, "users", "name", "ana") && at_where(a, "users", "name", "chief"));
    CHECK_STR(text_of(at_where(a, "users", "name", "ana"), "tenants.vision"), "member");
    CHECK_BAD(&k, "ops", rows);
    asking_end(&k);
}

static void everybody_sees_themselves_and_no_other(void)
{
    struct asking k;
    begin(&k);
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/users/ana"), "name"), "ana");
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/users/adm"), 403, "denied", NULL, "'ana' has not");
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/users/nobody"), 403, "denied", NULL, "'ana' has not");
    asking_end(&k);
}

static void whoami_tells_who_by_what_and_where(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['read','jobs'],'tenants':['vision']");
    struct answer *a = CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 200);
    CHECK_STR(at_str(a, "user"), "ana");
    CHECK_STR(at_str(a, "via"), "token");
    CHECK_INT(at_len(a, "scopes"), 2);
    CHECK_INT(at_len(a, "tenants"), 1);
    a = ask(&k, asking_session(&k, "ana"), "GET /v1/whoami");
    CHECK_STR(at_str(a, "via"), "session");
    a = ask(&k, "root", "GET /v1/whoami");
    CHECK_STR(at_str(a, "via"), "socket");
    CHECK_STR(at_str(a, "user"), "root");
    asking_end(&k);
}

static void an_owner_may_drain_their_machine_and_no_other(void)
{
    static const struct sim_node two[] = {
        { "pc1", "A100", 1, 40960, 16000, 65536 },
        { "pc2", "A100", 1, 40960, 16000, 65536 },
    };
    static const struct sim_config sim = { .node = two, .nodes = 2 };
    struct asking k;
    asking_begin(&k, &(struct asking_site){ .sim = &sim });
    asking_person(&k, "ana", NULL, NULL);
    CHECK_STATUS(ask(&k, "root", "PUT /v1/nodes/pc1/owners/ana"), 204);
    CHECK_STR(at_str(ask_with(&k, "ana", "POST /v1/nodes/pc1/drain", "{}"), "state"), "drain");
    CHECK_REFUSED(ask_with(&k, "ana", "POST /v1/nodes/pc2/drain", "{}"), 403, "denied", NULL,
                  "'owner'");
    asking_again(&k);
    CHECK_STR(at_str(ask_with(&k, "ana", "POST /v1/nodes/pc1/resume", "{}"), "state"), "up");
    CHECK_STATUS(ask(&k, "root", "DELETE /v1/nodes/pc1/owners/ana"), 204);
    CHECK_STATUS(ask_with(&k, "ana", "POST /v1/nodes/pc1/drain", "{}"), 403);
    asking_end(&k);
}

static void changes_of_people_are_in_the_audit_without_secrets(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(
        ask_with(&k, "root", "POST /v1/users/ana/password", "{'password':'correct horse battery'}"),
        204);
    ask_with(&k, "adm", "PUT /v1/users/ana", "{'role':'viewer'}");
    ask(&k, "adm", "DELETE /v1/users/ana");
    struct answer *a = ask(&k, "root", "GET /v1/audit?subject=ana");
    CHECK_STR(at_str(a, "rows.0.what"), "user.delete");
    CHECK_STR(at_str(a, "rows.1.what"), "user.set");
    CHECK_STR(at_str(a, "rows.1.who"), "adm");
    CHECK(!strstr(a->text, "correct horse") && !strstr(a->text, "argon2"));
    asking_end(&k);
}

static const struct test tests[] = {
    { "what is said of somebody is shown, also after a crash",
      what_is_said_of_somebody_is_shown_also_after_a_crash },
    { "what is wrong is refused by field, and nothing changes",
      what_is_wrong_is_refused_by_field_and_nothing_changes },
    { "a long text is refused", a_long_text_is_refused },
    { "nobody shuts themselves out", nobody_shuts_themselves_out },
    { "who is removed is let in by nothing, and their jobs stay",
      who_is_removed_is_let_in_by_nothing_and_their_jobs_stay },
    { "who is disabled loses what they have open", who_is_disabled_loses_what_they_have_open },
    { "an operator sees people and changes none", an_operator_sees_people_and_changes_none },
    { "everybody sees themselves and no other", everybody_sees_themselves_and_no_other },
    { "whoami tells who, by what and where", whoami_tells_who_by_what_and_where },
    { "an owner may drain their machine and no other",
      an_owner_may_drain_their_machine_and_no_other },
    { "changes of people are in the audit, without secrets",
      changes_of_people_are_in_the_audit_without_secrets },
};
TEST_CASES(tests)
