#include "engine/kube/owner.h"

#include "tests/lib/quoted.h"

#define OBJ(meta, spec, status)                                                                    \
    "{'metadata':{'name':'x','resourceVersion':'7'" meta "},'spec':{" spec "},'status':{" status   \
    "}}"

static void kinds_are_found_by_gang_and_object(void)
{
    const struct owner_kind *o = owner_kind_next(GANG_TRAINING, GANG_OBJ_NONE, NULL);
    size_t n = 0;
    for (; o; o = owner_kind_next(GANG_TRAINING, GANG_OBJ_NONE, o), n++)
        CHECK(o->gang == GANG_TRAINING && strcmp(o->folder, "runPolicy") == 0);
    CHECK_INT(n, 7);
    o = owner_kind_next(GANG_TRAINING, GANG_OBJ_MPI_JOB, NULL);
    CHECK_STR(o->api_version, "kubeflow.org/v2beta1");
    o = owner_kind_next(GANG_TRAINING, GANG_OBJ_MPI_JOB, o);
    CHECK_STR(o->api_version, "kubeflow.org/v1");
    CHECK(!owner_kind_next(GANG_TRAINING, GANG_OBJ_MPI_JOB, o));
    CHECK(!owner_kind_next(GANG_ONE, GANG_OBJ_NONE, NULL));
    CHECK(!owner_kind_next(GANG_POD_GROUP, GANG_OBJ_POD_GROUP, NULL));
}

/* "suspended by over controlled comes" */
static void how_it_stands_is_read(void)
{
    static const struct {
        enum gang_kind gang;
        const char *object, *want;
    } cases[] = {
        { GANG_JOB, OBJ("", "'parallelism':4", ""), "0 '' 0 0 4" },
        { GANG_JOB, OBJ("", "'parallelism':4,'completions':6", "'succeeded':3"), "0 '' 0 0 3" },
        { GANG_JOB, OBJ("", "'parallelism':4,'completions':3,'suspend':true", "'succeeded':3"),
          "1 '' 0 0 0" },
        { GANG_JOB,
          OBJ(",'annotations':{'nightshift.dev/suspended-by':'d1'}", "'suspend':true", ""),
          "1 'd1' 0 0 1" },
        { GANG_JOB, OBJ("", "", "'conditions':[{'type':'Complete','status':'True'}]"),
          "0 '' 1 0 1" },
        { GANG_JOB, OBJ("", "", "'conditions':[{'type':'Failed','status':'False'}]"),
          "0 '' 0 0 1" },
        { GANG_JOB, OBJ(",'deletionTimestamp':'2026-01-01T00:00:00Z'", "", ""), "0 '' 1 0 1" },
        { GANG_JOB,
          OBJ(",'ownerReferences':[{'kind':'CronJob','name':'c','controller':true}]", "", ""),
          "0 '' 0 0 1" },
        { GANG_JOB,
          OBJ(",'ownerReferences':[{'kind':'JobSet','name':'c','controller':true}]", "", ""),
          "0 '' 0 1 1" },
        { GANG_TRAINING, OBJ("", "'suspend':true", ""), "0 '' 0 0 0" },
        { GANG_TRAINING, OBJ("", "'runPolicy':{'suspend':true}", ""), "1 '' 0 0 0" },
        { GANG_JOB_SET, OBJ("", "'suspend':true", ""), "1 '' 0 0 0" },
        { GANG_JOB_SET, OBJ("", "", "'conditions':[{'type':'Completed','status':'True'}]"),
          "0 '' 1 0 0" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(json_free_p) struct json_doc *d = quoted_json(cases[i].object);
        AUTO(buf_free) struct buf b = BUF(256);
        struct owner o;
        struct err e = { 0 };
        CHECK_INT(
            owner_read(owner_kind_next(cases[i].gang, GANG_OBJ_NONE, NULL), json_root(d), &o, &e),
            0);
        buf_printf(&b, "%d '%s' %d %d %u", o.suspended, o.suspended_by, o.over, o.controlled,
                   o.comes);
        CHECK_STR(b.p, cases[i].want);
    }
}

static void what_cannot_be_patched_is_refused(void)
{
    static const char *const bad[] = { "{}", "{'metadata':{'resourceVersion':7}}",
                                       "{'metadata':{'resourceVersion':'7'},'spec':[]}",
                                       OBJ("", "'suspend':'yes'", "") };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(json_free_p) struct json_doc *d = quoted_json(bad[i]);
        struct owner o;
        struct err e = { 0 };
        CHECK_INT(owner_read(owner_kind_next(GANG_JOB, GANG_OBJ_NONE, NULL), json_root(d), &o, &e),
                  -1);
        CHECK(strstr(e.msg, "Job"));
    }
}

static void a_patch_names_what_it_meets_and_who_did_it(void)
{
    struct owner o = { .version = "7" };
    AUTO(buf_free) struct buf b = BUF(1024);
    owner_patch(owner_kind_next(GANG_JOB, GANG_OBJ_NONE, NULL), &o, "d1", &b);
    CHECK_STR(b.p, "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{"
                   "\"nightshift.dev/suspended-by\":\"d1\"}},\"spec\":{\"suspend\":true}}");
    buf_truncate(&b, 0);
    owner_patch(owner_kind_next(GANG_TRAINING, GANG_OBJ_NONE, NULL), &o, NULL, &b);
    CHECK_STR(b.p, "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{"
                   "\"nightshift.dev/suspended-by\":null}},\"spec\":{\"runPolicy\":{"
                   "\"suspend\":false}}}");
}

static const struct test tests[] = {
    { "kinds are found by gang and object", kinds_are_found_by_gang_and_object },
    { "how it stands is read", how_it_stands_is_read },
    { "what cannot be patched is refused", what_cannot_be_patched_is_refused },
    { "a patch names what it meets and who did it", a_patch_names_what_it_meets_and_who_did_it },
};
TEST_CASES(tests)
