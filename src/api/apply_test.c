/* Tenants and people by a document: all of it or nothing, and what is exported is applied without a change. */
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
    asking_tenant(k, "ml", "{'weight':2}");
    asking_person(k, "ada", "ml", "member");
    asking_person(k, "adm", NULL, "admin");
    ask(k, "adm", "GET /v1/whoami");
}

static struct answer *apply(struct asking *k, const char *who, const char *body)
{
    return ask_with(k, who, "POST /v1/apply", body);
}

static const char *state(struct asking *k)
{
    return say(k, "%s", CHECK_STATUS(ask(k, "root", "GET /v1/apply"), 200)->text);
}

#define LAB                                                                                        \
    "'tenants':{'vision':{'parent':'ml','limit':{'gpus':2},'members':['ada','grace']},"            \
    "'ml':{'weight':3,'members':{'linus':'lead'}}},"                                               \
    "'users':{'ada':{'role':'operator','full_name':'Ada','machines':['pc1']},'ci':{'kind':'"       \
    "service'}}"

static void a_document_makes_all_of_it_in_an_order_that_works_and_again_there_is_nothing_to_do(void)
{
    struct asking k;
    begin(&k);
    const char *before = state(&k);
    struct answer *a = CHECK_STATUS(apply(&k, "root", "{" LAB ",'dry_run':true}"), 200);
    CHECK(at_len(a, "changes") >= 4);
    CHECK_STR(state(&k), before);
    CHECK_STATUS(apply(&k, "root", "{" LAB "}"), 200);
    CHECK_INT(at_len(apply(&k, "root", "{" LAB "}"), "changes"), 0);
    for (int round = 0; round < 2; round++) {
        a = ask(&k, "root", "GET /v1/tenants/vision");
        CHECK_STR(at_str(a, "spec.parent"), "ml");
        CHECK_STR(text_of(at_where(a, "members", "user", "grace"), "role"), "member");
        CHECK_INT(at_int(ask(&k, "root", "GET /v1/tenants/ml"), "spec.weight"), 3);
        CHECK_STR(at_str(ask(&k, "root", "GET /v1/users/ada"), "machines.0"), "pc1");
        asking_again(&k);
    }
    asking_end(&k);
}

static void what_is_exported_is_applied_without_a_change_also_on_the_way_back(void)
{
    struct asking k;
    begin(&k);
    apply(&k, "root", "{" LAB "}");
    const char *exported = state(&k);
    struct question q = { .who = "root",
                          .request = "POST /v1/apply",
                          .type = "application/json",
                          .bytes = say(&k, "%.*s,\"prune\":true}", (int)strlen(exported) - 1,
                                       exported) };
    CHECK_INT(at_len(CHECK_STATUS(ask_so(&k, &q), 200), "changes"), 0);
    asking_tenant(&k, "ml", "{'weight':7,'help':'changed'}");
    asking_tenant(&k, "new", "{'parent':'vision'}");
    asking_person(&k, "newcomer", "vision", "member");
    asking_person(&k, "somebody", NULL, "viewer");
    CHECK_STATUS(ask(&k, "root", "DELETE /v1/users/ci"), 204);
    CHECK(strcmp(state(&k), exported) != 0);
    CHECK_STATUS(ask_so(&k, &q), 200);
    CHECK_STR(state(&k), exported);
    asking_end(&k);
}

#define T "POST /v1/apply"
static void when_one_item_is_refused_nothing_is_applied_whatever_else_is_there(void)
{
    static const struct bad rows[] = {
        { T, "{'tenants':{'good':{},'bad':{'parent':'nowhere'}},'users':{'evil':{'role':'admin'}}}",
          400, "*", "nowhere" },
        { T, "{'tenants':{'good':{},'a1':{'parent':'b1'},'b1':{'parent':'a1'}}}", 400, "*", "" },
        { T, "{'tenants':{'good':{},'x':{'pools':['nowhere']}}}", 400, "tenants.x.pools",
          "there is no pool" },
        { T, "{'tenants':{'good':{},'x':{'profiles':['nowhere']}}}", 400, "tenants.x.profiles",
          "there is no profile" },
        { T, "{'tenants':{'good':{},'x':{'weight':'heavy'}}}", 400, "*", "weight" },
        { T, "{'tenants':{'good':{},'a|b':{}}}", 400, "*", "a|b" },
        { T, "{'tenants':{'good':{'members':['ada','a/b']}}}", 400, "*", "" },
        { T, "{'tenants':{'good':{'members':{'ada':'owner'}}}}", 400, "*",
          "'owner' is not a role in a tenant" },
        { T, "{'tenants':{'good':{'members':['ada','ada']}}}", 400, "*", "'ada' is there twice" },
        { T, "{'users':{'evil':{'role':'admin'},'b':{'role':'lead'}}}", 400, "*",
          "'lead' is not a role on the site" },
        { T, "{'users':{'evil':{'role':'admin'},'b':{'kind':'alien'}}}", 400, "*", "alien" },
        { T, "{'users':{'evil':{'role':'admin'},'b':{'machines':'pc1'}}}", 400, "*", "machines" },
        { T, "{'users':{'evil':{'role':'admin'}},'things':{}}", 400, "things", "things" },
        { T, "{'tenants':[]}", 400, "*", "tenants" },
        { T, "{'tenants':5}", 400, "*", "tenants" },
        { T, "[]", 400, "*", "" },
        { T,
          "{'tenants':{'d1':{},'d2':{'parent':'d1'},'d3':{'parent':'d2'},'d4':{'parent':'d3'},"
          "'d5':{'parent':'d4'},'d6':{'parent':'d5'},'d7':{'parent':'d6'}}}",
          400, "*", "deeper" },
    };
    struct asking k;
    begin(&k);
    const char *before = state(&k);
    CHECK_BAD(&k, "root", rows);
    CHECK_STR(state(&k), before);
    asking_again(&k);
    CHECK_STR(state(&k), before);
    asking_end(&k);
}

static void pruning_spares_whoever_asks_and_refuses_a_tenant_with_living_jobs_by_name(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ada", "{'command':['sleep','600']}");
    const char *before = state(&k);
    struct answer *a = apply(&k, "adm", "{'tenants':{'other':{}},'users':{},'prune':true}");
    CHECK_REFUSED(a, 409, "conflict", "*", "has jobs that have not ended");
    CHECK_HAS(at_str(a, "detail"), "ml");
    CHECK_STR(state(&k), before);
    ask(&k, "root", say(&k, "POST /v1/jobs/%llu/cancel", (unsigned long long)id));
    asking_wait(&k, 1000);
    CHECK_REFUSED(apply(&k, "adm", "{'users':{'adm':{}}}"), 409, "conflict", "*",
                  "you would shut yourself out");
    CHECK_STATUS(apply(&k, "adm", "{'tenants':{'other':{}},'users':{},'prune':true}"), 200);
    CHECK_STATUS(ask(&k, "adm", "GET /v1/whoami"), 200);
    CHECK_STATUS(ask(&k, "root", "GET /v1/tenants/ml"), 404);
    CHECK_STATUS(ask(&k, "root", "GET /v1/users/ada"), 404);
    CHECK_STATUS(ask(&k, "root", "GET /v1/users/chief"), 200); /* by the settings file */
    asking_end(&k);
}

static void somebody_has_a_thousand_machines_at_most_also_with_those_they_had(void)
{
    struct asking k;
    AUTO(buf_free) struct buf most = BUF(1u << 20), more = BUF(1u << 20);
    begin(&k);
    buf_addz(&most, "{\"users\":{\"own\":{\"machines\":[");
    for (int i = 0; i < 1000; i++)
        buf_printf(&most, "%s\"pc%d\"", i ? "," : "", i);
    buf_add(&more, buf_str(&most));
    buf_addz(&most, "]}}}");
    buf_addz(&more, ",\"pc1000\"]}}}");
    struct question q = {
        .who = "root", .request = T, .type = "application/json", .bytes = more.p
    };
    CHECK_REFUSED(ask_so(&k, &q), 400, "invalid", "*", "at most 1000 machines");
    q.bytes = most.p;
    CHECK_STATUS(ask_so(&k, &q), 200);
    CHECK_REFUSED(apply(&k, "root", "{'users':{'own':{'machines':['pc1000']}}}"), 409, "conflict",
                  "users.own.machines", "would have 1001 machines");
    asking_end(&k);
}

static void it_is_for_administrators_and_each_change_is_in_the_audit(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(apply(&k, "ada", "{}"), 403);
    CHECK_STATUS(ask(&k, "ada", "GET /v1/apply"), 403);
    apply(&k, "adm", "{" LAB "}");
    struct answer *a = ask(&k, "root", "GET /v1/audit?who=adm&limit=1000");
    CHECK_HAS(text_of(at_where(a, "rows", "subject", "vision"), "after"), "\"grace\":\"member\"");
    CHECK_STR(text_of(at_where(a, "rows", "subject", "ci"), "reason"), "apply");
    CHECK_HAS(text_of(at_where(a, "rows", "subject", "ada"), "after"), "operator");
    asking_end(&k);
}

static const struct test tests[] = {
    { "a document makes all of it, in an order that works, and again there is nothing to do",
      a_document_makes_all_of_it_in_an_order_that_works_and_again_there_is_nothing_to_do },
    { "what is exported is applied without a change, also on the way back from another state",
      what_is_exported_is_applied_without_a_change_also_on_the_way_back },
    { "when one item is refused nothing is applied, whatever else is in the document",
      when_one_item_is_refused_nothing_is_applied_whatever_else_is_there },
    { "pruning spares whoever asks, and refuses a tenant with living jobs by name",
      pruning_spares_whoever_asks_and_refuses_a_tenant_with_living_jobs_by_name },
    { "somebody has a thousand machines at most, also together with those that they had",
      somebody_has_a_thousand_machines_at_most_also_with_those_they_had },
    { "it is for administrators, and each change is in the audit",
      it_is_for_administrators_and_each_change_is_in_the_audit },
};
TEST_CASES(tests)
