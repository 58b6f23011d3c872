#include "engine/kube/pod_make.h"

#include <signal.h>
#include <stdio.h>

#include "base/json.h"
#include "engine/kube/pod_read.h"
#include "tests/lib/test.h"

static const struct pod_site site = { .scheduler = "nightshift",
                                      .image = "python:3",
                                      .init_image = "ns:1",
                                      .init_path = "/x/nightshift-init",
                                      .gpu = "nvidia.com/gpu",
                                      .state_size = "1Gi",
                                      .state_class = "",
                                      .home_size = "",
                                      .home_access = "ReadWriteOnce",
                                      .scratch_mib = 100 };

struct made {
    struct buf text;
    struct json_doc *doc;
};

static void made_clear(struct made *m)
{
    json_free(m->doc);
    buf_free(&m->text);
}

/* The pod of task 17.2.1 of two, with two GPUs each. */
static struct made make(struct spec s)
{
    static const uint32_t groups[] = { 0, 2000 };
    static const char *const env[] = { "RANK=1", "MASTER_ADDR=127.0.0.1", NULL };
    static const char *const argv[] = { "sh", "-c", "echo $(date) $HOME", NULL };
    static const struct slot slots[2];
    struct made m = { .text = BUF(1 << 20) };
    struct err e = { 0 };
    s.argv = argv;
    s.n_args = 3;
    s.request.cpu_milli = 1500;
    s.request.mem_mib = 256;
    s.request.gpus = 2;
    struct engine_start start = { .task = { 17, 2, 1 },
                                  .spec = &s,
                                  .user = { STR("ana"), STR("/h"), 1001, 1002, groups, 2 },
                                  .tenant = STR("Vision Lab"),
                                  .slots = slots,
                                  .n_slots = 2,
                                  .env = env,
                                  .max_time_ms = 2500 };
    pod_make(&site, &start, "nightshift-vision", &m.text);
    m.doc = json_read(buf_str(&m.text), &e);
    CHECK_STR(e.msg, "");
    return m;
}

static const struct json *at(const struct made *m, const char *a, const char *b)
{
    const struct json *v = json_find(json_root(m->doc), a);
    return v ? json_find(v, b) : NULL;
}

static const char *text_of(const struct json *o, const char *key)
{
    struct str s = STR("");
    struct err e;
    CHECK(o && json_get_str(o, key, 4096, &s, &e) == 0);
    return s.p;
}

static uint64_t number_of(const struct json *o, const char *key)
{
    uint64_t n = 0;
    struct err e;
    CHECK(o && json_get_u64(o, key, UINT64_MAX, &n, &e) == 0);
    return n;
}

/* The value of a variable of the job's container; NULL: it has none. */
static const char *variable(const struct made *m, const char *name)
{
    const struct json *env = json_find(json_first(at(m, "spec", "containers")), "env");
    for (const struct json *v = json_first(env); v; v = json_next(env, v))
        if (strcmp(text_of(v, "name"), name) == 0)
            return text_of(v, "value");
    return NULL;
}

static void a_pod_is_known_again_as_its_task(void)
{
    AUTO(made_clear)
    struct made m = make((struct spec){ .devices = STR("rdma/hca=1"), .image = STR("host") });
    struct err e = { 0 };
    AUTO(free_p) struct kube_pod *p = kube_pod_read(json_root(m.doc), &e);
    struct task_id t;
    CHECK_STR(e.msg, "");
    CHECK(kube_pod_task(p, &t) && t.job == 17 && t.run == 2 && t.replica == 1);
    CHECK_STR(p->name, "nightshift-17-2-1");
    CHECK_STR(p->own[POD_OWN_TENANT], "Vision Lab");
    CHECK(p->has_finalizer);
    CHECK_INT(p->asks.cpu_milli, 1500);
    CHECK_INT(p->asks.mem_mib, 256);
    CHECK_INT(kube_amounts_count(&p->asks, "nvidia.com/gpu"), 2);
    CHECK_INT(kube_amounts_count(&p->asks, "rdma/hca"), 1);
    CHECK_STR(p->scheduler, "nightshift");
}

static void it_runs_as_its_user_and_has_no_rights(void)
{
    AUTO(made_clear) struct made m = make((struct spec){ .image = STR("host") });
    const struct json *who = at(&m, "spec", "securityContext");
    CHECK_INT(number_of(who, "runAsUser"), 1001);
    CHECK_INT(number_of(who, "fsGroup"), 1002);
    const struct json *groups = json_find(who, "supplementalGroups");
    CHECK_INT(json_len(groups), 1); /* never root's */
    CHECK(strstr(m.text.p, "\"allowPrivilegeEscalation\":false"));
    CHECK(strstr(m.text.p, "\"drop\":[\"ALL\"]"));
    CHECK(strstr(m.text.p, "\"automountServiceAccountToken\":false"));
}

static void ranks_find_the_first_by_name(void)
{
    static const char *const own[] = { "MASTER_ADDR=elsewhere", NULL };
    AUTO(made_clear) struct made m = make((struct spec){ .image = STR("host") });
    CHECK_STR(variable(&m, "MASTER_ADDR"), "nightshift-17-2-0.nightshift-17.nightshift-vision.svc");
    CHECK_STR(variable(&m, "RANK"), "1");
    CHECK_STR(text_of(json_find(json_root(m.doc), "spec"), "subdomain"), "nightshift-17");
    AUTO(made_clear)
    struct made mine = make((struct spec){ .image = STR("host"), .env = own, .n_env = 1 });
    CHECK_STR(variable(&mine, "MASTER_ADDR"), "elsewhere");
}

static void what_a_shell_would_read_stays_as_it_was_written(void)
{
    static const char *const own[] = { "A=$(B) $C $", NULL };
    AUTO(made_clear)
    struct made m = make((struct spec){ .image = STR("host"), .env = own, .n_env = 1 });
    const struct json *args = json_find(json_first(at(&m, "spec", "containers")), "args");
    struct str last = STR("");
    struct err e;
    CHECK(json_as_str(json_at(args, 2), 4096, &last, &e) == 0);
    CHECK_STR(last.p, "echo $$(date) $HOME"); /* which the kubelet makes $(date) */
    CHECK_STR(variable(&m, "A"), "$$(B) $C $");
}

static void times_are_in_whole_seconds_and_never_none(void)
{
    AUTO(made_clear) struct made m = make((struct spec){ .image = STR("host"), .grace_ms = 1 });
    const struct json *spec = json_find(json_root(m.doc), "spec");
    CHECK_INT(number_of(spec, "terminationGracePeriodSeconds"), 1);
    CHECK_INT(number_of(spec, "activeDeadlineSeconds"), 3);
}

static void what_is_saved_is_kept_only_where_something_is_saved(void)
{
    struct spec saves = { .image = STR("docker://a/b:1"),
                          .freeze = FREEZE_SIGNAL,
                          .freeze_signal = SIGUSR1 };
    AUTO(made_clear) struct made m = make(saves);
    CHECK(strstr(m.text.p, "{\"claimName\":\"nightshift-17\"}"));
    CHECK(strstr(m.text.p, "\"--freeze-signal\",\"10\""));
    CHECK(strstr(m.text.p, "\"image\":\"a/b:1\""));
    AUTO(made_clear) struct made other = make((struct spec){ .image = STR("host") });
    CHECK(!strstr(other.text.p, "claimName"));
    CHECK(strstr(other.text.p, "\"image\":\"python:3\""));
}

static void what_no_pod_can_have_is_refused_by_its_field(void)
{
    static const struct spec_volume data = { .from = { "/data", 5 }, .to = { "/data", 5 } };
    struct pod_site bare = site;
    struct err e = { 0 };
    struct spec s = { .image = STR("host"), .volume = &data, .n_volumes = 1 };
    CHECK(pod_check(&site, &s, &e) < 0 && strstr(e.msg, "'volumes'"));
    s.n_volumes = 0;
    CHECK(pod_check(&site, &s, &e) == 0);
    bare.image = "";
    CHECK(pod_check(&bare, &s, &e) < 0 && strstr(e.msg, "'image'") && strstr(e.hint, "kube_image"));
    s.image = STR("python:3");
    CHECK(pod_check(&bare, &s, &e) == 0);
}

static void homes_of_two_people_never_meet(void)
{
    char a[POD_NAME_MAX], b[POD_NAME_MAX];
    CHECK(strcmp(pod_home_name(STR("ana"), a), pod_home_name(STR("Ana"), b)) != 0);
    CHECK(strcmp(pod_home_name(STR("a.b"), a), pod_home_name(STR("ab"), b)) != 0);
    CHECK(strncmp(pod_home_name(STR("\xc3\xa9"), a), "home-", 5) == 0 && strlen(a) == 13);
}

static void a_binding_says_which_pod_and_whose_task_it_is(void)
{
    AUTO(buf_free) struct buf text = BUF(4096);
    struct pod_binding b = {
        .space = "s", .pod = "p", .uid = "u-1", .node = STR("n1"), .task = { 5, 1, 3 }
    };
    pod_make_binding(&b, &text);
    CHECK(strstr(text.p, "\"uid\":\"u-1\"") && strstr(text.p, "\"name\":\"n1\""));
    CHECK(strstr(text.p, "\"nightshift.dev/job\":\"5\""));
    CHECK(strstr(text.p, "\"nightshift.dev/replica\":\"3\""));
}

static const struct test tests[] = {
    { "a pod is known again as its task, with what it takes", a_pod_is_known_again_as_its_task },
    { "it runs as its user, never in root's group, and has no rights",
      it_runs_as_its_user_and_has_no_rights },
    { "ranks find the first by name, unless their user says otherwise",
      ranks_find_the_first_by_name },
    { "what a shell would read stays as it was written",
      what_a_shell_would_read_stays_as_it_was_written },
    { "times are in whole seconds, rounded up and never none",
      times_are_in_whole_seconds_and_never_none },
    { "a claim is made only where something is saved",
      what_is_saved_is_kept_only_where_something_is_saved },
    { "what no pod can have is refused by its field",
      what_no_pod_can_have_is_refused_by_its_field },
    { "homes of two people never meet", homes_of_two_people_never_meet },
    { "a binding says which pod and whose task it is",
      a_binding_says_which_pod_and_whose_task_it_is },
};
TEST_CASES(tests)
