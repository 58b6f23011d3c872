/* Tenants and who is in them: what is said, what is refused, who may, and what a crash leaves. */
#include "auth/people.h"
#include "tests/lib/asking.h"

static const struct api_profile profiles[] = { { .name = STR("small"), .request = { .gpus = 1 } } };
static const struct control_pool_def desks[] = {
    { .name = STR("desks"), .node = (const char *const[]){ "pc1" }, .nodes = 1 },
};

static void people_of_settings(struct people *p)
{
    people_set_tenant(p, STR("lab"), STR(""), NULL, 0);
    people_make(p, STR("boss"));
    people_set_place(p,
                     &(struct place){ STR("lab"), STR("boss"), ROLE_MEMBER, true, false, false });
    people_make(p, STR("chief"))->file_role = ROLE_ADMIN;
}

static void begin(struct asking *k)
{
    struct control_tenant_def lab = { .name = STR("lab"), .spec = tenant_default() };
    asking_begin(k, &(struct asking_site){ .tenant = &lab,
                                           .tenants = 1,
                                           .pool = desks,
                                           .pools = 1,
                                           .people = people_of_settings,
                                           .api = { .profile = profiles, .profiles = 1 } });
    k->site.tenant = NULL; /* only the first boot may look at it */
    k->site.tenants = 0;
    asking_tenant(k, "ml", "{'weight':2,'guarantee':1}");
    asking_tenant(k, "course", "{'parent':'ml'}");
    asking_person(k, "linus", "ml", "lead");
    asking_person(k, "ada", "ml", "member");
    asking_person(k, "tim", "course", "viewer");
}

static struct answer *put(struct asking *k, const char *name, const char *body)
{
    return ask_with(k, "root", say(k, "PUT /v1/tenants/%s", name), body);
}

/* ---- what is said of them ---- */

#define WHOLE                                                                                      \
    "{'help':'a course','parent':'ml','limit':{'gpus':2,'memory':'8Gi','jobs':10,"                 \
    "'gpus_by_model':{'H100':1}},'user_limit':{'gpus':1},'budget':{'gpu_hours':1000,"              \
    "'period':'month'},'pools':['desks','-'],'profiles':['small'],'priority':'normal',"            \
    "'stage':'beta','expires':'2037-02-28','groups':{'ml-staff':'lead'}}"

static void what_is_said_of_a_tenant_is_shown_as_it_was_said(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = CHECK_STATUS(put(&k, "course", WHOLE), 200);
    static const char *const texts[][2] = {
        { "spec.help", "a course" },
        { "spec.parent", "ml" },
        { "spec.limit.memory", "8Gi" },
        { "spec.pools.0", "desks" },
        { "spec.pools.1", "-" },
        { "spec.profiles.0", "small" },
        { "spec.priority", "normal" },
        { "spec.stage", "beta" },
        { "spec.expires", "2037-02-28" },
        { "spec.budget.period", "month" },
        { "spec.groups.ml-staff", "lead" },
    };
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            CHECK_STR(at_str(a, texts[i][0]), texts[i][1]);
        CHECK_INT(at_int(a, "spec.limit.gpus"), 2);
        CHECK_INT(at_int(a, "spec.limit.gpus_by_model.H100"), 1);
        CHECK_INT(at_int(a, "spec.user_limit.gpus"), 1);
        CHECK_INT(at_int(a, "spec.budget.gpu_hours"), 1000);
        asking_again(&k);
        a = CHECK_STATUS(ask(&k, "root", "GET /v1/tenants/course"), 200);
    }
    asking_end(&k);
}

static void null_undoes_one_thing_and_leaves_the_others(void)
{
    struct asking k;
    begin(&k);
    put(&k, "course", WHOLE);
    struct answer *a =
        put(&k, "course", "{'limit':{'memory':null},'expires':null,'budget':null,'priority':null}");
    CHECK_STATUS(a, 200);
    CHECK_STR(at_str(a, "spec.expires"), "(none)");
    CHECK_STR(at_str(a, "spec.budget"), "(none)");
    CHECK_STR(at_str(a, "spec.priority"), "(none)");
    CHECK_STR(at_str(a, "spec.limit.memory"), "(none)");
    CHECK_INT(at_int(a, "spec.limit.gpus"), 2);
    CHECK_STR(at_str(a, "spec.help"), "a course");
    asking_end(&k);
}

static void they_are_listed_as_far_as_one_sees_them(void)
{
    struct asking k;
    begin(&k);
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/tenants"), "tenants"), 3);
    CHECK_INT(at_len(ask(&k, "linus", "GET /v1/tenants"), "tenants"), 2); /* ml and what is below */
    struct answer *a = ask(&k, "ada", "GET /v1/tenants");
    CHECK_INT(at_len(a, "tenants"), 1);
    CHECK_STR(at_str(a, "tenants.0.name"), "ml");
    CHECK_REFUSED(ask(&k, "ada", "GET /v1/tenants/lab"), 404, "not_found", NULL,
                  "there is no tenant 'lab'");
    CHECK_REFUSED(ask(&k, "ada", "GET /v1/tenants/none"), 404, "not_found", NULL,
                  "there is no tenant 'none'");
    asking_end(&k);
}

static void members_are_shown_with_their_role_and_where_it_comes_from(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, "root", "GET /v1/tenants/course");
    CHECK_INT(at_len(a, "members"), 2);
    CHECK_STR(text_of(at_where(a, "members", "user", "linus"), "role"), "lead");
    CHECK_STR(text_of(at_where(a, "members", "user", "linus"), "by"), "above or group");
    CHECK_STR(text_of(at_where(a, "members", "user", "tim"), "by"), "said");
    a = ask(&k, "root", "GET /v1/tenants/lab");
    CHECK_STR(text_of(at_where(a, "members", "user", "boss"), "by"), "settings");
    asking_end(&k);
}

/* ---- what is refused ---- */

static void what_cannot_be_is_refused_and_changes_nothing(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/tenants/x", "{'parent':'nowhere'}", 400, "parent",
          "there is no tenant 'nowhere'" },
        { "PUT /v1/tenants/ml", "{'parent':'course'}", 400, "parent", "parent" },
        { "PUT /v1/tenants/ml", "{'parent':'ml'}", 400, "parent", "parent" },
        { "PUT /v1/tenants/x", "{'pools':['nowhere']}", 400, "pools",
          "there is no pool 'nowhere'" },
        { "PUT /v1/tenants/x", "{'profiles':['nowhere']}", 400, "profiles", "there is no profile" },
        { "PUT /v1/tenants/x", "{'weight':0}", 400, "weight", "weight" },
        { "PUT /v1/tenants/x", "{'weight':'two'}", 400, "weight", "weight" },
        { "PUT /v1/tenants/x", "{'limit':{'gpu':1}}", 400, "limit", "gpu" },
        { "PUT /v1/tenants/x", "{'limit':8}", 400, "limit", "limit" },
        { "PUT /v1/tenants/x", "{'limit':{'gpus':-1}}", 400, "limit", "gpus" },
        { "PUT /v1/tenants/x", "{'limit':{'memory':'much'}}", 400, "limit", "memory" },
        { "PUT /v1/tenants/x", "{'budget':{'gpu_hours':'many'}}", 400, "budget", "gpu_hours" },
        { "PUT /v1/tenants/x", "{'budget':{'gpu_hours':1,'period':'fortnight'}}", 400, "budget",
          "fortnight" },
        { "PUT /v1/tenants/x", "{'expires':'2027-02-30'}", 400, "expires", "2027-02-30" },
        { "PUT /v1/tenants/x", "{'groups':{'g':'owner'}}", 400, "groups", "owner" },
        { "PUT /v1/tenants/x", "{'priority':'soonest'}", 400, "priority", "soonest" },
        { "PUT /v1/tenants/x", "{'stage':'gamma'}", 400, "stage", "gamma" },
        { "PUT /v1/tenants/x", "{'colour':'red'}", 400, "colour", "colour" },
        { "PUT /v1/tenants/x", "{'weight':1,'weight':2}", 400, "weight", "weight" },
        { "PUT /v1/tenants/x", "[1]", 400, "*", "" },
        { "PUT /v1/tenants/x", "{", 400, "*", "" },
        { "PUT /v1/tenants/a%7Cb", "{}", 400, "*", "a|b" },
        { "PUT /v1/tenants/lab", "{'weight':3}", 409, "*", "settings file" },
        { "DELETE /v1/tenants/lab", NULL, 409, "*", "settings file" },
        { "DELETE /v1/tenants/ml", NULL, 409, "*", "course" },
        { "DELETE /v1/tenants/nowhere", NULL, 404, "*", "there is no tenant 'nowhere'" },
        { "PUT /v1/tenants/ml/members/eve", "{'role':'owner'}", 400, "role",
          "'owner' is not a role in a tenant" },
        { "PUT /v1/tenants/ml/members/eve", "{'role':'admin'}", 400, "role",
          "'admin' is not a role in a tenant" },
        { "PUT /v1/tenants/ml/members/eve", "{'role':7}", 400, "role", "role" },
        { "PUT /v1/tenants/ml/members/eve", "{'rank':1}", 400, "rank", "rank" },
        { "PUT /v1/tenants/ml/members/a%20b", "{}", 400, "user", "user" },
        { "PUT /v1/tenants/none/members/eve", "{}", 404, "*", "there is no tenant 'none'" },
        { "DELETE /v1/tenants/ml/members/nobody", NULL, 404, NULL,
          "'nobody' has no place in 'ml'" },
        { "DELETE /v1/tenants/lab/members/boss", NULL, 409, NULL, "by the settings file" },
        { "DELETE /v1/tenants/course/members/linus", NULL, 404, NULL,
          "has no place in 'course' that could be taken" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/tenants"), "tenants"), 3);
    asking_end(&k);
}

static void tenants_are_nested_six_deep_and_no_deeper(void)
{
    struct asking k;
    begin(&k);
    int deepest = 0;
    struct answer *a = NULL;
    for (int i = 1; i < 30 && deepest == i - 1; i++) {
        a = put(&k, say(&k, "d%d", i), i == 1 ? "{}" : say(&k, "{'parent':'d%d'}", i - 1));
        deepest = a->status == 200 ? i : deepest;
    }
    CHECK_REFUSED(a, 400, "invalid", "parent", "deeper than 6 levels");
    CHECK_HAS(at_str(a, "hint"), "further up");
    CHECK_INT(deepest, 6);
    asking_end(&k);
}

static void one_with_living_jobs_is_not_removed_and_without_them_is_with_its_places(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "root", "{'command':['sleep','600'],'tenant':'course'}");
    CHECK_REFUSED(ask(&k, "root", "DELETE /v1/tenants/course"), 409, "conflict", "*",
                  say(&k, "has jobs that have not ended, %llu for one", (unsigned long long)id));
    ask(&k, "root", say(&k, "POST /v1/jobs/%llu/cancel", (unsigned long long)id));
    CHECK_STATUS(ask(&k, "root", "DELETE /v1/tenants/course"), 204);
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(ask(&k, "root", "GET /v1/tenants/course"), 404);
        CHECK_INT(json_members(at(ask(&k, "root", "GET /v1/users/tim"), "tenants")), 0);
        asking_again(&k);
    }
    CHECK_STATUS(put(&k, "course", "{'parent':'ml'}"), 200); /* of the same name, and another */
    CHECK_STR(text_of(at_where(ask(&k, "root", "GET /v1/tenants/course"), "members", "user", "tim"),
                      "role"),
              "(none)");
    asking_end(&k);
}

/* ---- leads ---- */

static void a_lead_takes_people_in_and_out_below_too_and_nothing_else(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/tenants/ml", "{'weight':9}", 403, NULL, "'admin'" },
        { "DELETE /v1/tenants/course", NULL, 403, NULL, "'admin'" },
        { "GET /v1/users", NULL, 403, NULL, "'operator' or 'admin'" },
        { "PUT /v1/users/linus", "{'role':'admin'}", 403, NULL, "'admin'" },
        { "GET /v1/apply", NULL, 403, NULL, "'admin'" },
        { "PUT /v1/tenants/lab/members/evil", "{}", 404, NULL, "there is no tenant 'lab'" },
        { "GET /v1/tenants/lab", NULL, 404, NULL, "there is no tenant 'lab'" },
    };
    static const struct bad by_member[] = {
        { "PUT /v1/tenants/ml/members/evil", "{}", 403, NULL, "'lead' or 'admin'" },
        { "DELETE /v1/tenants/ml/members/linus", NULL, 403, NULL, "'lead' or 'admin'" },
        { "PUT /v1/tenants/ml/members/ada", "{'role':'lead'}", 403, NULL, "'lead' or 'admin'" },
    };
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "linus", "PUT /v1/tenants/course/members/zoe", "{'role':'viewer'}"),
                 200);
    struct answer *a = ask_with(&k, "linus", "PUT /v1/tenants/ml/members/zoe", NULL);
    CHECK_STR(text_of(at_where(CHECK_STATUS(a, 200), "members", "user", "zoe"), "role"), "member");
    a = ask(&k, "linus", "DELETE /v1/tenants/ml/members/zoe");
    CHECK(!at_where(CHECK_STATUS(a, 200), "members", "user", "zoe"));
    CHECK_BAD(&k, "linus", rows);
    CHECK_BAD(&k, "ada", by_member);
    asking_end(&k);
}

/* ---- what a tenant says of its jobs ---- */

static struct answer *submit(struct asking *k, const char *body)
{
    return ask_with(k, "root", "POST /v1/jobs", body);
}

static void priority_profile_and_an_end_are_what_the_tenant_says(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(put(&k, "course", "{'priority':'normal','profiles':['small']}"), 200);
    CHECK_REFUSED(submit(&k, "{'command':['true'],'tenant':'course','priority':'high'}"), 403,
                  "denied", "priority", "have 'normal' at most");
    struct answer *a = submit(&k, "{'command':['true'],'tenant':'course'}");
    CHECK_REFUSED(a, 403, "denied", "profile", "profile");
    CHECK_HAS(at_str(a, "hint"), "small");
    CHECK_STATUS(submit(&k, "{'command':['true'],'tenant':'course','profile':'small'}"), 201);
    CHECK_STATUS(put(&k, "course", "{'priority':null,'profiles':null,'expires':'2023-01-01'}"),
                 200);
    a = submit(&k, "{'command':['true'],'tenant':'course'}");
    CHECK_REFUSED(a, 409, "conflict", "tenant", "ended on 2023-01-02");
    CHECK_STATUS(put(&k, "course", "{'expires':null}"), 200);
    CHECK_STATUS(submit(&k, "{'command':['true'],'tenant':'course'}"), 201);
    asking_end(&k);
}

static void a_limit_keeps_jobs_waiting_until_it_is_raised(void)
{
    struct asking k;
    begin(&k);
    put(&k, "course", "{'limit':{'gpus':1}}");
    const char *one =
        "{'command':['sleep','600'],'tenant':'course','resources':{'gpus':1,'cpus':1}}";
    uint64_t a = asking_submit(&k, "root", one), b = asking_submit(&k, "root", one);
    CHECK_STR(asking_state(&k, a), "running");
    CHECK_STR(asking_state(&k, b), "queued");
    CHECK_STATUS(put(&k, "course", "{'limit':{'gpus':2}}"), 200);
    asking_settle(&k);
    CHECK_STR(asking_state(&k, b), "running");
    asking_end(&k);
}

static void a_job_that_no_limit_will_ever_let_start_is_refused(void)
{
    struct asking k;
    begin(&k);
    put(&k, "course", "{'limit':{'gpus':1}}");
    struct answer *a = submit(&k, "{'command':['true'],'tenant':'course','resources':{'gpus':2}}");
    CHECK(a->status >= 400 && a->status < 500);
    CHECK_HAS(at_str(a, "detail"), "course");
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/jobs?state=all"), "jobs"), 0);
    asking_end(&k);
}

static void quota_shows_what_tenants_may_have_and_have(void)
{
    struct asking k;
    begin(&k);
    put(&k, "ml", "{'limit':{'gpus':3}}");
    asking_submit(&k, "ada",
                  "{'command':['sleep','600'],'tenant':'ml','resources':{'gpus':2,'cpus':1}}");
    struct answer *a = CHECK_STATUS(ask(&k, "ada", "GET /v1/quota"), 200);
    CHECK_HAS(a->text, "\"ml\"");
    CHECK(!strstr(a->text, "\"lab\""));
    CHECK_HAS(ask(&k, "root", "GET /v1/quota")->text, "\"lab\"");
    asking_end(&k);
}

/* ---- durable ---- */

static void the_answer_comes_when_it_is_on_the_disk(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask_begin(
        &k, &(struct question){ .who = "root", .request = "PUT /v1/tenants/new", .body = "{}" });
    CHECK_INT(a->status, 0);
    answer_wait(&k, a);
    CHECK_STATUS(a, 200);
    asking_again(&k);
    CHECK_STATUS(ask(&k, "root", "GET /v1/tenants/new"), 200);
    asking_end(&k);
}

static void who_changed_what_is_in_the_audit(void)
{
    static const char *const rows[][2] = {
        { "member.delete", "zoe" },
        { "member.set", "zoe" },
        { "tenant.delete", "new" },
        { "tenant.set", "new" },
    };
    struct asking k;
    begin(&k);
    ask(&k, "linus", "GET /v1/whoami"); /* their token is in the audit too */
    put(&k, "new", "{'weight':3}");
    ask(&k, "root", "DELETE /v1/tenants/new");
    ask_with(&k, "linus", "PUT /v1/tenants/ml/members/zoe", "{}");
    ask(&k, "linus", "DELETE /v1/tenants/ml/members/zoe");
    struct answer *a = ask(&k, "root", "GET /v1/audit?what=tenant.");
    CHECK_INT(at_len(a, "rows"), 4); /* two of begin() */
    a = ask(&k, "root", "GET /v1/audit?limit=5");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(at_str(a, say(&k, "rows.%zu.what", i)), rows[i][0]);
        CHECK_STR(at_str(a, say(&k, "rows.%zu.subject", i)), rows[i][1]);
        CHECK_STR(at_str(a, say(&k, "rows.%zu.who", i)), i < 2 ? "linus" : "root");
    }
    asking_end(&k);
}

static const struct test tests[] = {
    { "what is said of a tenant is shown as it was said, also after a crash",
      what_is_said_of_a_tenant_is_shown_as_it_was_said },
    { "null undoes one thing and leaves the others", null_undoes_one_thing_and_leaves_the_others },
    { "they are listed as far as one sees them", they_are_listed_as_far_as_one_sees_them },
    { "members are shown with their role and where it comes from",
      members_are_shown_with_their_role_and_where_it_comes_from },
    { "what cannot be is refused, and changes nothing",
      what_cannot_be_is_refused_and_changes_nothing },
    { "tenants are nested six deep, and no deeper", tenants_are_nested_six_deep_and_no_deeper },
    { "one with living jobs is not removed; without them it is, with its places",
      one_with_living_jobs_is_not_removed_and_without_them_is_with_its_places },
    { "a lead takes people in and out, below too, and nothing else",
      a_lead_takes_people_in_and_out_below_too_and_nothing_else },
    { "priority, profile and an end are what the tenant says",
      priority_profile_and_an_end_are_what_the_tenant_says },
    { "a limit keeps jobs waiting until it is raised",
      a_limit_keeps_jobs_waiting_until_it_is_raised },
    { "a job that no limit will ever let start is refused",
      a_job_that_no_limit_will_ever_let_start_is_refused },
    { "quota shows what tenants may have and have, to those who see them",
      quota_shows_what_tenants_may_have_and_have },
    { "the answer comes when it is on the disk", the_answer_comes_when_it_is_on_the_disk },
    { "who changed what is in the audit", who_changed_what_is_in_the_audit },
};
TEST_CASES(tests)
