#include "engine/kube/tenant_make.h"

#include <stdio.h>

#include "base/rng.h"
#include "tests/lib/test.h"

static const struct tenant_site site = { STR("nightshift-"), STR("nightshift"),
                                         STR("nvidia.com/gpu"), STR("") };

static const char *ns_of(struct str tenant)
{
    static char out[KUBE_NAME];
    tenant_namespace(&site, tenant, out);
    return out;
}

static bool is_label(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 63 || s[0] == '-' || s[n - 1] == '-')
        return false;
    return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static void a_name_that_can_be_a_namespace_is_read_in_it(void)
{
    CHECK_STR(ns_of(STR("vision")), "nightshift-vision");
    CHECK_STR(ns_of(STR("course-ml-2027")), "nightshift-course-ml-2027");
    CHECK_STR(ns_of(STR("7")), "nightshift-7");
}

static void other_bytes_are_escaped(void)
{
    CHECK_STR(ns_of(STR("Vision")), "nightshift---56ision");
    CHECK_STR(ns_of(STR("a_b")), "nightshift-a--5fb");
    CHECK_STR(ns_of(STR("a.b-")), "nightshift-a--2eb--2d");
    CHECK_STR(ns_of(STR("-a--b")), "nightshift---2da--2d--2db");
    CHECK_STR(ns_of(STR("\xc3\xb8")), "nightshift---c3--b8");
}

static void a_long_name_is_cut_and_has_a_hash(void)
{
    char a[254], b[254];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    b[252] = 'y';
    char first[KUBE_NAME], second[KUBE_NAME];
    tenant_namespace(&site, (struct str){ a, 253 }, first);
    tenant_namespace(&site, (struct str){ b, 253 }, second);
    CHECK(is_label(first) && is_label(second));
    CHECK(strcmp(first, second) != 0);
    CHECK_INT(strlen(first), 63);
    CHECK(strncmp(first, "nightshift-xxxx", 15) == 0);
    /* Namespaces are found again by it: it must not change with a version. */
    CHECK_STR(ns_of(STR("")), "nightshift---zw7nyoglmja2alzapqqa7uh6j");
}

static void no_tenant_has_the_daemons_own_namespace(void)
{
    struct tenant_site s = site;
    char out[KUBE_NAME];
    s.own = STR("nightshift-system");
    tenant_namespace(&s, STR("system"), out);
    CHECK(strcmp(out, "nightshift-system") != 0);
    CHECK(strncmp(out, "nightshift-system--z", 20) == 0);
    CHECK(is_label(out));
}

/* Short names of the bytes that escapes are made of: every pair of different names. */
static void different_names_never_meet(void)
{
    enum {
        LETTERS = 7,
        LONGEST = 5,
        ALL = 1 + 7 + 49 + 343 + 2401 + 16807
    };
    static char names[ALL][KUBE_NAME];
    size_t n = 0;
    for (size_t len = 0, many = 1; len <= LONGEST; len++, many *= LETTERS)
        for (size_t k = 0; k < many; k++) {
            char text[LONGEST];
            for (size_t i = 0, rest = k; i < len; i++, rest /= LETTERS)
                text[i] = "-2dz_A5"[rest % LETTERS];
            tenant_namespace(&site, (struct str){ text, len }, names[n]);
            CHECK(is_label(names[n]));
            n++;
        }
    CHECK_INT(n, ALL);
    qsort(names, n, KUBE_NAME, (int (*)(const void *, const void *))strcmp);
    for (size_t i = 1; i < n; i++)
        CHECK(strcmp(names[i - 1], names[i]) != 0);
}

static void long_names_never_meet(void)
{
    enum {
        ALL = 20000
    };
    static char names[ALL][KUBE_NAME];
    struct rng r = { 7 };
    for (size_t n = 0; n < ALL; n++) {
        char text[80];
        size_t len = (size_t)snprintf(text, sizeof text, "%zu_", n);
        while (len < 30 + n % 50)
            text[len++] = "-zZa"[rng_below(&r, 4)];
        tenant_namespace(&site, (struct str){ text, len }, names[n]);
        CHECK(is_label(names[n]));
    }
    qsort(names, ALL, KUBE_NAME, (int (*)(const void *, const void *))strcmp);
    for (size_t i = 1; i < ALL; i++)
        CHECK(strcmp(names[i - 1], names[i]) != 0);
}

static void a_prefix_is_checked(void)
{
    static const char *const wrong[] = { "",   "-",   "x",     "-a",      "A",
                                         "a_", "a--", "kube-", "kube-x-", "abcdefghijklmnopqrstu" };
    struct err e;
    CHECK(tenant_site_check(&site, &e) == 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct tenant_site s = site;
        s.prefix = str_of(wrong[i]);
        CHECK(tenant_site_check(&s, &e) < 0 && e.code == ERR_INVALID);
    }
}

/* ---- objects ---- */

struct made {
    struct arena arena;
    struct tenant_object at[TENANT_OBJECTS];
    size_t n;
};

static struct made make(const struct tenant_site *s, const struct engine_tenant *t)
{
    struct made m = { 0 };
    struct err e;
    CHECK(tenant_make(s, t, &m.arena, m.at, &m.n, &e) == 0);
    return m;
}

static const struct tenant_object *object(const struct made *m, const char *part)
{
    for (size_t i = 0; i < m->n; i++)
        if (strstr(m->at[i].path, part))
            return &m->at[i];
    test_fail(__FILE__, __LINE__, "no object %s", part);
}

static void a_tenant_is_a_namespace_and_what_stands_in_it(void)
{
    struct engine_tenant t = { .name = STR("vision"), .limit = AMOUNTS_NO_LIMIT };
    AUTO(buf_free) struct buf kinds = BUF(4096);
    struct made m = make(&site, &t);
    CHECK_INT(m.n, TENANT_OBJECTS);
    CHECK_STR(m.at[0].path,
              "/api/v1/namespaces/nightshift-vision?fieldManager=nightshift&force=true");
    CHECK_STR(m.at[0].body.p, "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                              "\"name\":\"nightshift-vision\","
                              "\"labels\":{\"app.kubernetes.io/managed-by\":\"nightshift\","
                              "\"nightshift.dev/tenant\":\"vision\","
                              "\"pod-security.kubernetes.io/enforce\":\"restricted\","
                              "\"pod-security.kubernetes.io/warn\":\"restricted\"},"
                              "\"annotations\":{\"nightshift.dev/tenant-name\":\"vision\"}}}");
    for (size_t i = 0; i < m.n; i++) {
        struct err e;
        if (strcmp(m.at[i].method, "DELETE") == 0)
            continue;
        AUTO(json_free_p) struct json_doc *doc = json_read(m.at[i].body, &e);
        struct str kind;
        CHECK(doc && json_need_str(json_root(doc), "kind", 64, &kind, &e) == 0);
        buf_printf(&kinds, "%.*s ", STR_ARG(kind));
        CHECK(strstr(m.at[i].path, "/namespaces/nightshift-vision"));
        CHECK(strstr(m.at[i].path, "?fieldManager=nightshift&force=true"));
    }
    CHECK_STR(kinds.p,
              "Namespace ResourceQuota LimitRange NetworkPolicy NetworkPolicy NetworkPolicy "
              "ServiceAccount ");
    arena_free(&m.arena);
}

static void a_quota_has_only_what_has_a_limit(void)
{
    struct engine_tenant t = { .name = STR("v"), .limit = AMOUNTS_NO_LIMIT };
    struct made m = make(&site, &t);
    CHECK(strstr(object(&m, "resourcequotas")->body.p, "\"hard\":{}"));
    arena_free(&m.arena);
    t.limit.of[RES_GPU] = 2500;
    t.limit.of[RES_CPU] = 1500;
    t.limit.of[RES_MEM] = 512;
    t.limit.of[RES_STORAGE] = 0;
    t.limit.of[RES_JOBS] = 3;
    m = make(&site, &t);
    CHECK(strstr(object(&m, "resourcequotas")->body.p,
                 "\"hard\":{\"requests.nvidia.com/gpu\":\"3\",\"requests.cpu\":\"1500m\","
                 "\"requests.memory\":\"512Mi\",\"requests.ephemeral-storage\":\"0Mi\"}"));
    arena_free(&m.arena);
}

static void people_are_bound_to_the_role_they_have(void)
{
    static const struct engine_member member[] = {
        { STR("ada"), MEMBER_LEAD },
        { STR("ben \"b\""), MEMBER_MEMBER },
        { STR("system:admin"), MEMBER_MEMBER },
        { STR("cem"), MEMBER_MEMBER },
    };
    struct engine_tenant t = {
        .name = STR("v"), .limit = AMOUNTS_NO_LIMIT, .member = member, .members = ARRAY_LEN(member)
    };
    struct tenant_site s = site;
    struct made m = make(&s, &t);
    const struct tenant_object *o = object(&m, "nightshift-tenant-viewer");
    CHECK_STR(o->method, "DELETE");
    CHECK_STR(o->path, "/apis/rbac.authorization.k8s.io/v1/namespaces/nightshift-v/rolebindings/"
                       "nightshift-tenant-viewer");
    o = object(&m, "nightshift-tenant-member");
    CHECK(strstr(o->body.p,
                 "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
                 "\"kind\":\"ClusterRole\",\"name\":\"nightshift-tenant-member\"},"
                 "\"subjects\":[{\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\","
                 "\"name\":\"ben \\\"b\\\"\"},{\"kind\":\"User\","
                 "\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":\"cem\"}]"));
    arena_free(&m.arena);
    s.user_prefix = STR("oidc:");
    m = make(&s, &t);
    CHECK(strstr(object(&m, "nightshift-tenant-lead")->body.p, "\"name\":\"oidc:ada\"}]"));
    arena_free(&m.arena);
}

static void of_a_removed_tenant_the_data_stays_and_nothing_starts(void)
{
    static const struct engine_member member[] = { { STR("ada"), MEMBER_LEAD } };
    struct engine_tenant t = {
        .name = STR("v"), .limit = AMOUNTS_NO_LIMIT, .member = member, .members = 1, .removed = true
    };
    struct made m = make(&site, &t);
    CHECK(strstr(m.at[0].body.p, "\"nightshift.dev/removed\":\"true\""));
    CHECK(strstr(object(&m, "resourcequotas")->body.p, "\"hard\":{\"pods\":\"0\"}"));
    size_t deleted = 0;
    for (size_t i = 0; i < m.n; i++) {
        CHECK(strcmp(m.at[i].method, "PATCH") == 0 || strstr(m.at[i].path, "/rolebindings/"));
        deleted += strcmp(m.at[i].method, "DELETE") == 0;
    }
    CHECK_INT(deleted, MEMBER_ROLE_COUNT);
    arena_free(&m.arena);
}

static void more_members_than_an_object_holds_are_an_error(void)
{
    enum {
        MANY = 30000
    };
    struct engine_member *member = xcalloc(MANY, sizeof *member);
    struct tenant_object at[TENANT_OBJECTS];
    struct arena a = { 0 };
    size_t n = 99;
    struct err e;
    for (size_t i = 0; i < MANY; i++)
        member[i] = (struct engine_member){ STR("somebody"), MEMBER_VIEWER };
    struct engine_tenant t = { .name = STR("crowd"), .member = member, .members = MANY };
    CHECK(tenant_make(&site, &t, &a, at, &n, &e) < 0);
    CHECK_INT(e.code, ERR_TOO_LARGE);
    CHECK(strstr(e.msg, "'crowd'"));
    CHECK_INT(n, 99);
    arena_free(&a);
    free(member);
}

static void a_namespace_is_known_by_its_whole_name(void)
{
    struct engine_tenant t = { .name = STR("_v"), .limit = AMOUNTS_NO_LIMIT };
    struct made m = make(&site, &t);
    struct err e;
    AUTO(json_free_p) struct json_doc *ours = json_read(m.at[0].body, &e);
    AUTO(json_free_p)
    struct json_doc *other =
        json_read(STR("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"nightshift---5fv\"}}"), &e);
    CHECK(strstr(m.at[0].body.p, "\"nightshift.dev/tenant\":\"x---5fv\"")); /* "x_v" has x--5fv */
    CHECK(tenant_has_namespace(json_root(ours), STR("_v")));
    CHECK(!tenant_has_namespace(json_root(ours), STR("v")));
    CHECK(!tenant_has_namespace(json_root(other), STR("_v")));
    CHECK(!tenant_has_namespace(json_root(other), STR("")));
    arena_free(&m.arena);
}

static void a_home_is_a_claim(void)
{
    struct tenant_claim c = { .tenant = STR("v"),
                              .user = STR("Ada"),
                              .bytes = UINT64_C(10) << 30,
                              .access = STR("ReadWriteOnce") };
    struct arena a = { 0 };
    struct tenant_object o;
    tenant_make_claim(&site, &c, &a, &o);
    CHECK_STR(o.path, "/api/v1/namespaces/nightshift-v/persistentvolumeclaims/home---41da"
                      "?fieldManager=nightshift&force=true");
    CHECK_STR(o.body.p,
              "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{"
              "\"name\":\"home---41da\",\"annotations\":{\"nightshift.dev/user\":\"Ada\"},"
              "\"namespace\":\"nightshift-v\",\"labels\":{\"app.kubernetes.io/"
              "managed-by\":\"nightshift\","
              "\"nightshift.dev/tenant\":\"v\"}},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
              "\"resources\":{\"requests\":{\"storage\":\"10Gi\"}}}}");
    c.name = "state-17";
    c.user = STR("");
    c.bytes = 1536;
    c.storage_class = STR("fast");
    tenant_make_claim(&site, &c, &a, &o);
    CHECK(strstr(o.path, "/persistentvolumeclaims/state-17?"));
    CHECK(strstr(o.body.p, "\"storageClassName\":\"fast\""));
    CHECK(strstr(o.body.p, "\"storage\":\"1536\""));
    CHECK(!strstr(o.body.p, "nightshift.dev/user"));
    arena_free(&a);
}

static const struct test tests[] = {
    { "a name that can be a namespace is read in it",
      a_name_that_can_be_a_namespace_is_read_in_it },
    { "other bytes are escaped", other_bytes_are_escaped },
    { "a long name is cut and has a hash", a_long_name_is_cut_and_has_a_hash },
    { "no tenant has the daemon's own namespace", no_tenant_has_the_daemons_own_namespace },
    { "different names never meet", different_names_never_meet },
    { "long names never meet", long_names_never_meet },
    { "a prefix is checked", a_prefix_is_checked },
    { "a tenant is a namespace and what stands in it",
      a_tenant_is_a_namespace_and_what_stands_in_it },
    { "a quota has only what has a limit", a_quota_has_only_what_has_a_limit },
    { "people are bound to the role they have", people_are_bound_to_the_role_they_have },
    { "of a removed tenant the data stays and nothing starts",
      of_a_removed_tenant_the_data_stays_and_nothing_starts },
    { "more members than an object holds are an error",
      more_members_than_an_object_holds_are_an_error },
    { "a namespace is known by its whole name", a_namespace_is_known_by_its_whole_name },
    { "a home is a claim", a_home_is_a_claim },
};
TEST_CASES(tests)
