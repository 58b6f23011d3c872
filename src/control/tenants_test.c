#include "store/directory.h"

#include "tests/lib/controlling.h"

#define JOB(tenant, more)                                                                          \
    "{\"command\":[\"x\"],\"tenant\":\"" tenant "\",\"resources\":{\"gpus\":1},"                   \
    "\"env\":{\"SIM_RUN_MS\":\"100000000\"}" more "}"

static struct controlling *lab(void)
{
    struct controlling *t = xcalloc(1, sizeof *t);
    controlling_begin(t, NULL);
    return t;
}

static void lab_free_p(struct controlling **t)
{
    controlling_end(*t);
    free(*t);
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static struct tenant_spec spec_of(const char *json, struct arena *a)
{
    struct tenant_spec base = tenant_default(), out = base;
    struct err e;
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(json), &e);
    CHECK(d &&
          tenant_read(&(struct tenant_text){ json_root(d), &base, NULL }, a, &out, NULL, &e) == 0);
    return out;
}

/* "" when it was done, or why not. */
static const char *put(struct controlling *t, const char *name, const char *json)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct tenant_spec spec = spec_of(json, &a);
    struct control_tenant_change ch = { str_of(name), STR("op"), &spec };
    t->refused = (struct err){ 0 };
    if (control_tenant_put(t->c, &ch, (struct control_done){ count, &t->answered }, &t->refused) ==
        0)
        controlling_settle(t);
    return t->refused.msg;
}

static const char *drop(struct controlling *t, const char *name)
{
    t->refused = (struct err){ 0 };
    if (control_tenant_delete(t->c, str_of(name), STR("op"),
                              (struct control_done){ count, &t->answered }, &t->refused) == 0)
        controlling_settle(t);
    return t->refused.msg;
}

static uint64_t submit(struct controlling *t, const char *json)
{
    t->refused = (struct err){ 0 };
    uint64_t id = controlling_submit(t, json);
    controlling_settle(t);
    return id;
}

static bool there(const struct controlling *t, const char *name, struct control_tenant *out)
{
    return control_tenant_find(t->c, str_of(name), out);
}

static void restart(struct controlling *t)
{
    controlling_kill(t);
    controlling_boot(t);
}

static void a_tenant_is_made_changed_and_there_after_a_kill(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct control_tenant x;
    CHECK_STR(put(t, "ml", "{\"weight\":2,\"guarantee\":1}"), "");
    CHECK_STR(put(t, "course", "{\"parent\":\"ml\",\"limit\":{\"gpus\":1},\"help\":\"one\"}"), "");
    CHECK_INT(t->answered, 2);
    CHECK(there(t, "course", &x) && x.created_ms == t->now_ms && !x.of_settings);
    int64_t made_ms = x.created_ms;
    controlling_wait(t, 1000);
    CHECK_STR(put(t, "course", "{\"parent\":\"ml\",\"limit\":{\"gpus\":2},\"help\":\"two\"}"), "");
    restart(t);
    CHECK(there(t, "ml", &x) && x.spec->weight_milli == 2000 && x.spec->guarantee_milli == 1000);
    CHECK(there(t, "course", &x) && str_is(x.spec->parent, "ml") && str_is(x.spec->help, "two"));
    CHECK(x.spec->limit.of.of[RES_GPU] == 2000 && x.created_ms == made_ms);
    CHECK(submit(t, JOB("course", "")) != 0);
    CHECK_STR(controlling_journal_differs(t), "");
}

static void limits_of_a_tenant_hold_for_its_jobs(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK_STR(put(t, "ml", "{\"limit\":{\"gpus\":1}}"), "");
    uint64_t first = submit(t, JOB("ml", "")), second = submit(t, JOB("ml", ""));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, first), "running");
    CHECK_STR(controlling_state(t, second), "queued");
    CHECK_STR(put(t, "ml", "{\"limit\":{\"gpus\":2}}"), "");
    controlling_settle(t);
    CHECK_STR(controlling_state(t, second), "running");
}

static void one_that_has_jobs_or_tenants_below_is_not_removed(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct control_tenant x;
    CHECK_STR(put(t, "ml", "{}"), "");
    CHECK_STR(put(t, "course", "{\"parent\":\"ml\"}"), "");
    uint64_t job = submit(t, JOB("course", ""));
    CHECK(strstr(drop(t, "course"), "has jobs that have not ended") && t->refused.hint[0]);
    CHECK(t->refused.code == ERR_CONFLICT && there(t, "course", &x));
    CHECK(controlling_verb(t, job, VERB_CANCEL) == 0);
    controlling_wait(t, 60000);
    CHECK(drop(t, "ml")[0] && t->refused.code == ERR_CONFLICT);
    CHECK_STR(drop(t, "course"), "");
    CHECK_STR(drop(t, "ml"), "");
    CHECK(!there(t, "ml", &x) && !there(t, "course", &x));
    CHECK(drop(t, "ml")[0] && t->refused.code == ERR_NOT_FOUND);
    restart(t);
    CHECK(!there(t, "ml", &x) && !there(t, "course", &x));
    CHECK(submit(t, JOB("ml", "")) == 0 && t->refused.code == ERR_NOT_FOUND);
    CHECK_STR(put(t, "ml", "{}"), ""); /* and it may come back */
    CHECK(submit(t, JOB("ml", "")) != 0);
    CHECK_STR(controlling_journal_differs(t), "");
}

static void what_is_not_there_cannot_be_named(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct control_tenant x;
    CHECK(strstr(put(t, "a", "{\"parent\":\"nowhere\"}"), "there is no tenant 'nowhere'"));
    CHECK_STR(t->refused.field, "parent");
    CHECK(strstr(put(t, "a", "{\"pools\":[\"nowhere\"]}"), "there is no pool 'nowhere'"));
    CHECK_STR(t->refused.field, "pools");
    CHECK(strstr(put(t, "a", "{\"parent\":\"a\"}"), "there is no tenant 'a'"));
    CHECK(put(t, "", "{}")[0] && put(t, "a/b", "{}")[0] && put(t, "a|b", "{}")[0]);
    CHECK(!there(t, "a", &x) && t->answered == 0);
    CHECK_STR(put(t, "a", "{\"pools\":[\"-\"]}"), "");
}

static void a_tree_has_no_circles(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct control_tenant x;
    CHECK_STR(put(t, "a", "{}"), "");
    CHECK_STR(put(t, "b", "{\"parent\":\"a\"}"), "");
    CHECK_STR(put(t, "c", "{\"parent\":\"b\"}"), "");
    CHECK(strstr(put(t, "a", "{\"parent\":\"c\"}"), "'c' is 'a' itself, or below it"));
    CHECK(strstr(put(t, "a", "{\"parent\":\"a\"}"), "itself, or below it"));
    CHECK(there(t, "a", &x) && x.spec->parent.n == 0);
}

static void the_settings_file_s_are_refused_and_win(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct control_tenant x;
    CHECK(strstr(put(t, "vision", "{\"weight\":2}"), "is the settings file's"));
    CHECK(t->refused.code == ERR_CONFLICT);
    CHECK(strstr(drop(t, "vision"), "is the settings file's"));
    CHECK_STR(put(t, "ml", "{\"weight\":2}"), "");
    struct control_tenant_def now[] = { { .name = STR("vision"), .spec = tenant_default() },
                                        { .name = STR("ml"), .spec = tenant_default() } };
    controlling_kill(t);
    t->tenant = now;
    t->tenants = 2;
    controlling_boot(t);
    CHECK(there(t, "ml", &x) && x.of_settings && x.spec->weight_milli == 1000);
    controlling_kill(t);
    t->tenants = 1; /* it was the file's, and is nobody's any more */
    controlling_boot(t);
    CHECK(!there(t, "ml", &x));
    CHECK(submit(t, JOB("ml", "")) == 0);
}

static void what_a_job_may_be_is_said_by_its_field(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK_STR(put(t, "course", "{\"priority\":\"normal\",\"profiles\":[\"small\"]}"), "");
    CHECK(submit(t, JOB("course", ",\"priority\":\"high\"")) == 0);
    CHECK_STR(t->refused.field, "priority");
    CHECK(submit(t, JOB("course", "")) == 0);
    CHECK_STR(t->refused.field, "profile");
    CHECK(strstr(t->refused.hint, "small"));
    CHECK_STR(put(t, "course", "{\"expires\":\"2023-11-15\"}"), ""); /* the day after now */
    CHECK(submit(t, JOB("course", "")) != 0);
    controlling_wait(t, INT64_C(3) * 86400000);
    CHECK(submit(t, JOB("course", "")) == 0 && t->refused.code == ERR_CONFLICT);
    CHECK_STR(t->refused.field, "tenant");
}

static int check(struct controlling *t, const struct control_tenant_change *put_list, size_t puts,
                 const char *gone, struct str *about)
{
    struct str name = str_of(gone ? gone : "");
    t->refused = (struct err){ 0 };
    return control_tenants_check(
        t->c, &(struct control_tenants_change){ put_list, puts, &name, gone ? 1 : 0 }, about,
        &t->refused);
}

static void several_are_tried_together_and_nothing_changes(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    AUTO(arena_free) struct arena a = { 0 };
    struct tenant_spec top = spec_of("{}", &a), below = spec_of("{\"parent\":\"a\"}", &a),
                       circle = spec_of("{\"parent\":\"b\"}", &a);
    struct control_tenant_change list[] = { { STR("a"), STR("op"), &top },
                                            { STR("b"), STR("op"), &below },
                                            { STR("a"), STR("op"), &circle } };
    struct control_tenant x;
    struct str about;
    CHECK(check(t, list, 2, NULL, &about) == 0);
    CHECK(!there(t, "a", &x) && !there(t, "b", &x));
    CHECK(check(t, list + 1, 1, NULL, &about) < 0 && str_is(about, "b"));
    CHECK(check(t, list, 3, NULL, &about) < 0 && str_is(about, "a"));
    CHECK(check(t, list, 2, "vision", &about) < 0 && str_is(about, "vision"));
    CHECK_STR(put(t, "old", "{}"), "");
    CHECK(check(t, list, 2, "old", &about) == 0 && there(t, "old", &x));
    CHECK(submit(t, JOB("old", "")) != 0);
    CHECK(check(t, list, 2, "old", &about) < 0 && str_is(about, "old"));
    CHECK(strstr(t->refused.msg, "has jobs that have not ended"));
    CHECK_STR(controlling_journal_differs(t), "");
}

static const struct test tests[] = {
    { "a tenant is made, changed, and there after a kill",
      a_tenant_is_made_changed_and_there_after_a_kill },
    { "limits of a tenant hold for its jobs", limits_of_a_tenant_hold_for_its_jobs },
    { "one that has jobs or tenants below is not removed",
      one_that_has_jobs_or_tenants_below_is_not_removed },
    { "what is not there cannot be named", what_is_not_there_cannot_be_named },
    { "a tree has no circles", a_tree_has_no_circles },
    { "the settings file's are refused, and win", the_settings_file_s_are_refused_and_win },
    { "what a job may be is said by its field", what_a_job_may_be_is_said_by_its_field },
    { "several are tried together, and nothing changes",
      several_are_tried_together_and_nothing_changes },
};
TEST_CASES(tests)
