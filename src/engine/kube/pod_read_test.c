#include "engine/kube/pod_read.h"

#include "tests/lib/quoted.h"

static struct kube_pod *pod_of(const char *text)
{
    AUTO(json_free_p) struct json_doc *d = quoted_json(text);
    struct err e = { 0 };
    struct kube_pod *p = kube_pod_read(json_root(d), &e);
    if (!p)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return p; /* nothing of the document is needed any more */
}

#define POD(spec, status)                                                                          \
    "{'metadata':{'namespace':'ml','name':'p'},'spec':{" spec "},'status':{" status "}}"

static const char ours[] =
    "{'metadata':{'namespace':'ns-vision','name':'job-17-1-0','uid':'a1b2',"
    "'creationTimestamp':'2026-01-05T08:00:00Z','deletionTimestamp':'2026-01-05T09:00:00Z',"
    "'deletionGracePeriodSeconds':120,'finalizers':['other/one','nightshift.dev/exit'],"
    "'labels':{'nightshift.dev/job':'17','nightshift.dev/run':'1','nightshift.dev/replica':'0',"
    "'nightshift.dev/tenant':'vision','app':'x'},"
    "'annotations':{'nightshift.dev/user':'ann','nightshift.dev/tenant':'not this',"
    "'nightshift.dev/max-time':'8h','kubectl.kubernetes.io/last-applied-configuration':'{}\\n'},"
    "'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'n','uid':'x'},"
    "{'apiVersion':'batch/v1','kind':'Job','name':'train','uid':'j1','controller':true}]},"
    "'spec':{'nodeName':'dgx-03','schedulerName':'nightshift','priority':-5,"
    "'priorityClassName':'batch','restartPolicy':'Never','terminationGracePeriodSeconds':60,'"
    "activeDeadlineSeconds':3600,"
    "'containers':[{'name':'main','resources':{'requests':{'cpu':'4','memory':'16Gi',"
    "'nvidia.com/gpu':'2'},'limits':{'nvidia.com/gpu':'2','memory':'16Gi'}}}]},"
    "'status':{'phase':'Running','podIP':'10.1.2.3','startTime':'2026-01-05T08:00:10Z',"
    "'conditions':[{'type':'PodScheduled','status':'True'},{'type':'Ready','status':'True'}],"
    "'containerStatuses':[{'name':'main','restartCount':0,'state':{'running':{"
    "'startedAt':'2026-01-05T08:00:20Z'}}}]}}";

static void a_pod_of_ours_is_read(void)
{
    AUTO(free_p) struct kube_pod *p = pod_of(ours);
    struct task_id t = { 0 };
    CHECK_STR(p->ns, "ns-vision");
    CHECK_STR(p->name, "job-17-1-0");
    CHECK_STR(p->uid, "a1b2");
    CHECK_STR(p->node, "dgx-03");
    CHECK_STR(p->scheduler, "nightshift");
    CHECK_STR(p->priority_class, "batch");
    CHECK_STR(p->ip, "10.1.2.3");
    CHECK_STR(p->own[POD_OWN_TENANT], "vision");
    CHECK_STR(p->own[POD_OWN_USER], "ann");
    CHECK_STR(p->own[POD_OWN_MAX_TIME], "8h");
    CHECK_STR(p->own[POD_OWN_PRIORITY], "");
    CHECK_STR(p->owner.kind, "Job");
    CHECK_STR(p->owner.api_version, "batch/v1");
    CHECK_STR(p->owner.uid, "j1");
    CHECK_STR(p->refusal, "");
    CHECK(kube_pod_task(p, &t) && t.job == 17 && t.run == 1 && t.replica == 0);
    CHECK(p->has_finalizer && p->ready && !p->gated && p->where == NULL);
    CHECK_INT(p->gang.id.kind, GANG_ONE);
    CHECK_INT(p->priority, -5);
    CHECK_INT(p->restart, RESTART_NEVER);
    CHECK_INT(p->phase, POD_RUNNING);
}

static void times_are_read(void)
{
    AUTO(free_p) struct kube_pod *p = pod_of(ours);
    AUTO(free_p) struct kube_pod *plain = pod_of(POD("", ""));
    CHECK_INT(p->created_ms, 1767600000000);
    CHECK_INT(p->started_ms, 1767600010000);
    CHECK_INT(p->deletion_ms, 1767603600000);
    CHECK_INT(p->grace_ms, 120000);
    CHECK_INT(p->deadline_ms, 3600000);
    CHECK_INT(plain->deadline_ms, 0);
    CHECK_INT(p->stand.started_ms, 1767600020000);
    CHECK_INT(plain->deletion_ms, 0);
    CHECK_INT(plain->grace_ms, 30000);
}

static void only_whole_ids_are_a_task_of_ours(void)
{
    static const char *const cases[] = {
        "{'nightshift.dev/job':'17','nightshift.dev/run':'1'}",
        "{'nightshift.dev/job':'0','nightshift.dev/run':'1','nightshift.dev/replica':'0'}",
        "{'nightshift.dev/job':'x','nightshift.dev/run':'1','nightshift.dev/replica':'0'}",
        "{'nightshift.dev/job':'1','nightshift.dev/run':'1','nightshift.dev/replica':'4096'}",
        "{}",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(1024);
        struct task_id t = { .job = 7 };
        buf_printf(&b, "{'metadata':{'namespace':'a','name':'p','labels':%s}}", cases[i]);
        AUTO(free_p) struct kube_pod *p = pod_of(b.p);
        CHECK(!kube_pod_task(p, &t) && t.job == 7);
    }
}

#define C(requests) "{'name':'c','resources':{'requests':{" requests "}}}"
#define SIDECAR(requests)                                                                          \
    "{'name':'s','restartPolicy':'Always','resources':{'requests':{" requests "}}}"

static void what_a_pod_asks_is_what_the_scheduler_counts(void)
{
    static const struct {
        const char *spec;
        uint64_t cpu, mem, gpus;
    } cases[] = {
        { "", 0, 0, 0 },
        { "'containers':[{'name':'c'}]", 0, 0, 0 },
        { "'containers':[" C("'cpu':'500m','memory':'1Gi'") "," C("'cpu':'1','memory':'100M'") "]",
          1500, 1024 + 96, 0 },
        { "'containers':[" C("'nvidia.com/gpu':'1'") "," C("'nvidia.com/gpu':'2'") "]", 0, 0, 3 },
        { "'containers':[{'resources':{'limits':{'cpu':'2','memory':'1Gi','nvidia.com/gpu':'1'}}}]",
          2000, 1024, 1 },
        { "'containers':[{'resources':{'requests':{'cpu':'1'},'limits':{'cpu':'4'}}}]", 1000, 0,
          0 },
        /* The largest of the init containers against the sum of the others. */
        { "'initContainers':[" C("'cpu':'3'") "," C("'cpu':'2'") "],'containers':[" C(
              "'cpu':'1'") "," C("'cpu':'1'") "]",
          3000, 0, 0 },
        { "'initContainers':[" C("'cpu':'1','memory':'8Gi'") "],'containers':[" C(
              "'cpu':'2','memory':'1Gi'") "]",
          2000, 8192, 0 },
        /* A sidecar runs with what comes after it and with the containers. */
        { "'initContainers':[" SIDECAR("'cpu':'1'") "," C("'cpu':'3'") "],'containers':[" C(
              "'cpu':'2'") "]",
          4000, 0, 0 },
        { "'initContainers':[" C("'cpu':'3'") "," SIDECAR("'cpu':'1'") "],'containers':[" C(
              "'cpu':'2'") "]",
          3000, 0, 0 },
        { "'initContainers':[" SIDECAR("'cpu':'1'") "," SIDECAR("'cpu':'2'") "],'containers':[" C(
              "'cpu':'2'") "]",
          5000, 0, 0 },
        { "'overhead':{'cpu':'250m','memory':'120Mi'},'containers':[" C("'cpu':'1'") "]", 1250, 120,
          0 },
        /* What is said of the pod as a whole, but not of devices. */
        { "'resources':{'requests':{'cpu':'3','nvidia.com/gpu':'9'}},'overhead':{'cpu':'1'},"
          "'containers':[" C("'cpu':'1','memory':'1Gi','nvidia.com/gpu':'1'") "]",
          4000, 1024, 1 },
        { "'containers':[" C("'cpu':'1e30'") "," C("'cpu':'1'") "]", INT64_MAX, 0, 0 },
        { "'containers':[" C("'memory':'1'") "]", 0, 1, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(4096);
        buf_printf(&b, "{'metadata':{'namespace':'a','name':'p'},'spec':{%s}}", cases[i].spec);
        AUTO(free_p) struct kube_pod *p = pod_of(b.p);
        CHECK_INT(p->asks.cpu_milli, cases[i].cpu);
        CHECK_INT(p->asks.mem_mib, cases[i].mem);
        CHECK_INT(kube_amounts_count(&p->asks, "nvidia.com/gpu"), cases[i].gpus);
    }
}

#define STATE(name, state) "{'name':'" name "','restartCount':2,'state':{" state "}}"
#define WAITS(reason) "'waiting':{'reason':'" reason "','message':'why'}"
#define RUNS(at) "'running':{'startedAt':'2026-01-05T08:00:" at "Z'}"
#define ENDED(code, reason, at)                                                                    \
    "'terminated':{'exitCode':" code ",'reason':'" reason                                          \
    "','startedAt':'2026-01-05T08:00:00Z','finishedAt':'2026-01-05T08:00:" at "Z'}"
#define RUN_OF(phase, list) "'phase':'" phase "','containerStatuses':[" list "]"
#define INIT_OF(list) ",'initContainerStatuses':[" list "]"

static const struct {
    const char *status;
    struct kube_stand want;
} stands[] = {
    { "", { .container = "", .reason = "", .kind = STAND_NONE } },
    { "'phase':'Pending'", { .container = "", .reason = "", .kind = STAND_NONE } },
    { RUN_OF("Pending", STATE("a", WAITS("ContainerCreating"))),
      { .container = "a", .reason = "ContainerCreating", .kind = STAND_WAITING } },
    { RUN_OF("Pending", "{'name':'a'}"),
      { .container = "a", .reason = "", .kind = STAND_WAITING } },
    { RUN_OF("Pending",
             STATE("a", WAITS("ContainerCreating")) "," STATE("b", WAITS("ImagePullBackOff"))),
      { .container = "b", .reason = "ImagePullBackOff", .kind = STAND_WAITING, .stuck = true } },
    { RUN_OF("Running", STATE("a", RUNS("05")) "," STATE("b", WAITS("ErrImagePull"))),
      { .container = "b", .reason = "ErrImagePull", .kind = STAND_WAITING, .stuck = true } },
    { RUN_OF("Running", STATE("a", ENDED("1", "Error", "07")) "," STATE("b", RUNS("05"))),
      { .container = "b", .reason = "", .kind = STAND_RUNNING } },
    { RUN_OF("Succeeded", STATE("a", ENDED("0", "Completed", "07"))),
      { .container = "a", .reason = "Completed", .kind = STAND_ENDED, .has_exit = true } },
    { RUN_OF("Succeeded",
             STATE("a", ENDED("0", "Completed", "07")) "," STATE("b", ENDED("0", "Last", "09"))),
      { .container = "b", .reason = "Last", .kind = STAND_ENDED, .has_exit = true } },
    { RUN_OF("Failed",
             STATE("a", ENDED("0", "Completed", "01")) "," STATE(
                 "b", ENDED("3", "Error", "09")) "," STATE("c", ENDED("137", "OOMKilled", "05"))),
      { .container = "c",
        .reason = "OOMKilled",
        .kind = STAND_ENDED,
        .has_exit = true,
        .exit_code = 137 } },
    { RUN_OF("Failed", STATE("a", RUNS("05"))) ",'reason':'Evicted'",
      { .container = "", .reason = "", .kind = STAND_ENDED } },
    { RUN_OF("Failed", ""), { .container = "", .reason = "", .kind = STAND_ENDED } },
    /* Init containers come first. */
    { RUN_OF("Pending", STATE("a", WAITS("PodInitializing")))
          INIT_OF(STATE("i", WAITS("CreateContainerConfigError"))),
      { .container = "i",
        .reason = "CreateContainerConfigError",
        .kind = STAND_WAITING,
        .stuck = true,
        .init = true } },
    { RUN_OF("Pending", STATE("a", WAITS("PodInitializing")))
          INIT_OF(STATE("i", ENDED("0", "Completed", "01")) "," STATE("j", RUNS("02"))),
      { .container = "j", .reason = "", .kind = STAND_RUNNING, .init = true } },
    { RUN_OF("Failed", STATE("a", WAITS("PodInitializing")))
          INIT_OF(STATE("i", ENDED("2", "Error", "01"))),
      { .container = "i",
        .reason = "Error",
        .kind = STAND_ENDED,
        .has_exit = true,
        .exit_code = 2,
        .init = true } },
    { RUN_OF("Running", STATE("a", RUNS("05")))
          INIT_OF(STATE("i", ENDED("0", "Completed", "01")) "," STATE("side", RUNS("02"))),
      { .container = "a", .reason = "", .kind = STAND_RUNNING } },
    { RUN_OF("Pending", STATE("a", WAITS("PodInitializing")))
          INIT_OF(STATE("side", WAITS("InvalidImageName"))),
      { .container = "side",
        .reason = "InvalidImageName",
        .kind = STAND_WAITING,
        .stuck = true,
        .init = true } },
    { RUN_OF("Failed", STATE("a", ENDED("1", "Error", "05")))
          INIT_OF(STATE("side", ENDED("137", "Error", "09"))),
      { .container = "a",
        .reason = "Error",
        .kind = STAND_ENDED,
        .has_exit = true,
        .exit_code = 1 } },
    { "'phase':'Running','containerStatuses':[{'name':'a','restartCount':4,'state':{"
      "'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':{'exitCode':9,"
      "'signal':11}}}]",
      { .container = "a",
        .reason = "CrashLoopBackOff",
        .kind = STAND_WAITING,
        .stuck = true,
        .has_exit = true,
        .exit_code = 9,
        .signal = 11 } },
};

static void how_it_stands_is_told_by_the_container_that_decides(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stands); i++) {
        AUTO(buf_free) struct buf b = BUF(8192);
        buf_printf(
            &b,
            POD("'initContainers':[{'name':'i'},{'name':'side','restartPolicy':'Always'}]", "%s"),
            stands[i].status);
        AUTO(free_p) struct kube_pod *p = pod_of(b.p);
        const struct kube_stand *s = &p->stand, *want = &stands[i].want;
        CHECK_STR(s->container, want->container);
        CHECK_STR(s->reason, want->reason);
        CHECK_INT(s->kind, want->kind);
        CHECK_INT(s->stuck, want->stuck);
        CHECK_INT(s->init, want->init);
        CHECK_INT(s->has_exit, want->has_exit);
        CHECK_INT(s->exit_code, want->exit_code);
        CHECK_INT(s->signal, want->signal);
    }
}

static void an_end_has_its_times_and_a_wait_its_message(void)
{
    AUTO(free_p)
    struct kube_pod *end =
        pod_of(POD("", RUN_OF("Succeeded", STATE("a", ENDED("0", "Completed", "07")))));
    AUTO(free_p)
    struct kube_pod *wait = pod_of(POD("", RUN_OF("Pending", STATE("a", WAITS("ErrImagePull")))));
    CHECK_INT(end->stand.started_ms, 1767600000000);
    CHECK_INT(end->stand.finished_ms, 1767600007000);
    CHECK_INT(end->stand.restarts, 2);
    CHECK_STR(wait->stand.message, "why");
}

static void what_the_pod_itself_says_is_kept(void)
{
    AUTO(free_p)
    struct kube_pod *p = pod_of(POD(
        "'schedulingGates':[{'name':'wait'}]",
        "'phase':'Failed','reason':'Evicted','message':'The node was low on\\nresource: memory',"
        "'nominatedNodeName':'n9','conditions':[{'type':'PodScheduled','status':'False',"
        "'reason':'Unschedulable','message':'0/3 nodes'},{'type':'DisruptionTarget',"
        "'status':'True','reason':'DeletionByTaintManager'}]"));
    AUTO(free_p) struct kube_pod *plain = pod_of(POD("", ""));
    CHECK_STR(p->reason, "Evicted");
    CHECK_STR(p->message, "The node was low on resource: memory");
    CHECK_STR(p->nominated_node, "n9");
    CHECK_STR(p->disruption, "DeletionByTaintManager");
    CHECK(p->gated && p->scheduled.known && !p->scheduled.yes);
    CHECK_STR(p->scheduled.reason, "Unschedulable");
    CHECK_STR(p->scheduled.message, "0/3 nodes");
    CHECK(!plain->gated && !plain->scheduled.known);
    CHECK_INT(plain->phase, POD_UNKNOWN);
    CHECK_INT(plain->restart, RESTART_ALWAYS);
}

static void long_messages_are_cut_between_characters(void)
{
    AUTO(buf_free) struct buf b = BUF(8192);
    buf_addz(&b, "{'metadata':{'namespace':'a','name':'p'},'status':{'message':'x");
    for (int i = 0; i < 600; i++)
        buf_addz(&b, "é");
    buf_addz(&b, "'}}");
    AUTO(free_p) struct kube_pod *p = pod_of(b.p);
    CHECK_INT(strlen(p->message), POD_PROSE_MAX - 1);
    CHECK(str_is_utf8(str_of(p->message)));
}

static void host_ports_are_a_set(void)
{
    AUTO(free_p)
    struct kube_pod *p = pod_of(
        POD("'containers':[{'ports':[{'containerPort':80},{'hostPort':8080,'containerPort':80},"
            "{'hostPort':53,'protocol':'UDP','hostIP':'10.0.0.1'},{'hostPort':8080,'hostIP':"
            "'0.0.0.0','protocol':'TCP'}]}],'initContainers':[{'ports':[{'hostPort':1}]},"
            "{'restartPolicy':'Always','ports':[{'hostPort':9100}]}]",
            ""));
    CHECK_INT(p->n_ports, 3);
    CHECK_INT(p->ports[0].port, 53);
    CHECK_INT(p->ports[0].protocol, 'U');
    CHECK_STR(p->ports[0].ip, "10.0.0.1");
    CHECK_INT(p->ports[1].port, 8080);
    CHECK_INT(p->ports[2].port, 9100);
}

#define PORT(fields) POD("'containers':[{'ports':[{" fields "}]}]", "")

static void pods_with_the_same_host_port_clash(void)
{
    static const struct {
        const char *a, *b;
        bool clash;
    } cases[] = {
        { PORT("'hostPort':80"), PORT("'hostPort':80"), true },
        { PORT("'hostPort':80"), PORT("'hostPort':81"), false },
        { PORT("'hostPort':80"), PORT("'hostPort':80,'protocol':'UDP'"), false },
        { PORT("'hostPort':80"), PORT("'hostPort':80,'hostIP':'10.0.0.1'"), true },
        { PORT("'hostPort':80,'hostIP':'10.0.0.2'"), PORT("'hostPort':80,'hostIP':'10.0.0.1'"),
          false },
        { PORT("'containerPort':80"), PORT("'containerPort':80"), false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(free_p) struct kube_pod *a = pod_of(cases[i].a);
        AUTO(free_p) struct kube_pod *b = pod_of(cases[i].b);
        CHECK_INT(kube_pods_clash(a, b), cases[i].clash);
        CHECK_INT(kube_pods_clash(b, a), cases[i].clash);
    }
}

static void claims_of_all_volumes_are_named(void)
{
    AUTO(free_p)
    struct kube_pod *p = pod_of(
        POD("'volumes':[{'name':'z','persistentVolumeClaim':{'claimName':'home'}},{'name':'tmp',"
            "'emptyDir':{}},{'name':'scratch','ephemeral':{'volumeClaimTemplate':{}}},{'name':'y',"
            "'persistentVolumeClaim':{'claimName':'home','readOnly':true}},{'name':'d',"
            "'persistentVolumeClaim':{'claimName':'data'}}]",
            ""));
    CHECK_INT(p->n_claims, 3);
    CHECK_STR(p->claims[0], "data");
    CHECK_STR(p->claims[1], "home");
    CHECK_STR(p->claims[2], "p-scratch");
}

static void where_and_gang_are_kept_with_it(void)
{
    AUTO(free_p)
    struct kube_pod *p =
        pod_of("{'metadata':{'namespace':'ml','name':'p','labels':{'ray.io/cluster':'rc'}},"
               "'spec':{'nodeSelector':{'zone':'a'}}}");
    AUTO(free_p) struct kube_pod *refused = pod_of(POD("'resourceClaims':[{'name':'gpu'}]", ""));
    AUTO(free_p)
    struct kube_pod *odd = pod_of("{'metadata':{'namespace':'ml','name':'p',"
                                  "'annotations':{'nightshift.dev/gang':'g'}}}");
    CHECK(p->where != NULL && where_refusal(p->where) == NULL);
    CHECK_INT(p->gang.id.kind, GANG_RAY);
    CHECK_STR(p->gang.id.name, "rc");
    CHECK_STR(refused->refusal, "resource claims (DRA) are not supported");
    CHECK_STR(odd->refusal,
              "nightshift.dev/gang names a gang and nightshift.dev/gang-size is missing");
    CHECK_INT(odd->gang.id.kind, GANG_ONE);
}

static void anything_in_an_annotation_leaves_the_pod_readable(void)
{
    AUTO(free_p)
    struct kube_pod *p =
        pod_of("{'metadata':{'namespace':'ml','name':'p','annotations':{'nightshift.dev/user':"
               "'a\\nb','nightshift.dev/job':'\\u0000','nightshift.dev/gang':'x\\u0001'}}}");
    CHECK_STR(p->own[POD_OWN_USER], "");
    CHECK_STR(p->own[POD_OWN_JOB], "");
    CHECK_INT(p->gang.id.kind, GANG_ONE);
}

static void what_is_no_pod_is_refused_by_its_field(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "{}", "no name" },
        { "7", "no name" },
        { "{'metadata':{'name':'p'}}", "no namespace" },
        { "{'metadata':'x'}", "metadata" },
        { POD("'nodeName':7", ""), "nodeName" },
        { POD("'priority':'high'", ""), "priority" },
        { POD("'priority':99999999999", ""), "priority" },
        { POD("'containers':{}", ""), "containers" },
        { POD("'containers':[{'resources':{'requests':{'cpu':'x'}}}]", ""), "cpu" },
        { POD("'containers':[{'resources':{'requests':{'cpu':'-1'}}}]", ""), "below zero" },
        { POD("'containers':[{'ports':[{'hostPort':70000}]}]", ""), "port" },
        { POD("'nodeSelector':{'a':1}", ""), "nodeSelector" },
        { POD("'tolerations':[{'key':1}]", ""), "key" },
        { POD("", "'startTime':'soon'"), "startTime" },
        { POD("", "'containerStatuses':[{'name':'a','state':{'terminated':{'exitCode':'1'}}}]"),
          "exitCode" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(json_free_p) struct json_doc *d = quoted_json(cases[i].text);
        struct err e = { 0 };
        CHECK(kube_pod_read(json_root(d), &e) == NULL);
        CHECK(e.code == ERR_INVALID && strstr(e.msg, cases[i].says));
    }
}

static const struct test tests[] = {
    { "a pod of ours is read", a_pod_of_ours_is_read },
    { "times are read", times_are_read },
    { "only whole ids are a task of ours", only_whole_ids_are_a_task_of_ours },
    { "what a pod asks is what the scheduler counts",
      what_a_pod_asks_is_what_the_scheduler_counts },
    { "how it stands is told by the container that decides",
      how_it_stands_is_told_by_the_container_that_decides },
    { "an end has its times and a wait its message", an_end_has_its_times_and_a_wait_its_message },
    { "what the pod itself says is kept", what_the_pod_itself_says_is_kept },
    { "long messages are cut between characters", long_messages_are_cut_between_characters },
    { "host ports are a set", host_ports_are_a_set },
    { "pods with the same host port clash", pods_with_the_same_host_port_clash },
    { "claims of all volumes are named", claims_of_all_volumes_are_named },
    { "where and gang are kept with it", where_and_gang_are_kept_with_it },
    { "anything in an annotation leaves the pod readable",
      anything_in_an_annotation_leaves_the_pod_readable },
    { "what is no pod is refused by its field", what_is_no_pod_is_refused_by_its_field },
};
TEST_CASES(tests)
