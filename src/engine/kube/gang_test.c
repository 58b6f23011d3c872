#include "engine/kube/gang.h"

#include "tests/lib/quoted.h"

/* "kind ns/name part uid object min", or the sentence that refuses it. */
static void gang_is(const char *pod, const char *want)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *d = quoted_json(pod);
    struct err e = { 0 };
    struct doc doc = { .e = &e };
    struct gang_ref g;
    AUTO(buf_free) struct buf b = BUF(1024);
    int rc = gang_of_pod(&doc, json_root(d), &a, &g, &e);
    CHECK(!doc.bad);
    if (rc < 0)
        buf_printf(&b, "%s", e.msg);
    else
        buf_printf(&b, "%s %s/%s '%s' '%s' %s %u", gang_kind_name(g.id.kind), g.id.ns, g.id.name,
                   g.id.part, g.id.uid, gang_object_info(g.object)->kind, g.min);
    CHECK_STR(b.p, want);
}

#define POD(meta, spec) "{'metadata':{'namespace':'ml','name':'p'," meta "},'spec':{" spec "}}"
#define OWNER(kind, name, uid)                                                                     \
    "'ownerReferences':[{'kind':'Extra','name':'x','uid':'x'},{'kind':'" kind "','name':'" name    \
    "','uid':'" uid "','controller':true}]"

static void a_pod_is_found_its_gang(void)
{
    static const struct {
        const char *pod, *want;
    } cases[] = {
        { POD("'labels':{}", ""), "pod / '' ''  1" },
        { POD(OWNER("ReplicaSet", "web-1", "u"), ""), "pod / '' ''  1" },
        { POD("'annotations':{'nightshift.dev/gang':'g','nightshift.dev/gang-size':'4'}", ""),
          "annotated ml/g '' ''  4" },
        { POD("'labels':{'nightshift.dev/gang':'g','nightshift.dev/gang-size':'2',"
              "'ray.io/cluster':'r'}",
              ""),
          "annotated ml/g '' ''  2" },
        { POD("'annotations':{'nightshift.dev/gang-size':'8'}," OWNER("Job", "train", "u1"), ""),
          "job ml/train '' 'u1'  8" },
        { POD("'annotations':{'nightshift.dev/gang-size':'all'}," OWNER("Job", "train", "u1"), ""),
          "job ml/train '' 'u1' Job 0" },
        { POD("'annotations':{'nightshift.dev/gang-size':'3'}," OWNER("StatefulSet", "s", "u2"),
              ""),
          "annotated ml/s 'StatefulSet' 'u2'  3" },
        { POD("'labels':{'scheduling.x-k8s.io/pod-group':'pg'}", ""),
          "podgroup ml/pg '' '' PodGroup 0" },
        { POD("'labels':{'pod-group.scheduling.sigs.k8s.io':'pg'}", ""),
          "podgroup ml/pg '' '' PodGroup 0" },
        { POD("'labels':{'pod-group.scheduling.sigs.k8s.io/name':'pg',"
              "'pod-group.scheduling.sigs.k8s.io/min-available':'3'}",
              ""),
          "podgroup ml/pg '' '' PodGroup 3" },
        { POD("'annotations':{'scheduling.k8s.io/group-name':'vg'},'labels':{"
              "'training.kubeflow.org/job-name':'t'}," OWNER("PyTorchJob", "t", "u"),
              ""),
          "volcano ml/vg '' '' PodGroup 0" },
        { POD("'annotations':{'scheduling.volcano.sh/group-name':'vg'}", ""),
          "volcano ml/vg '' '' PodGroup 0" },
        { POD("'labels':{'training.kubeflow.org/job-name':'t'}," OWNER("PyTorchJob", "t", "u3"),
              ""),
          "training ml/t '' 'u3' PyTorchJob 0" },
        { POD("'labels':{'training.kubeflow.org/job-name':'t'}," OWNER("TFJob", "t", "u3"), ""),
          "training ml/t '' 'u3' TFJob 0" },
        { POD("'labels':{'training.kubeflow.org/job-name':'m','training.kubeflow.org/"
              "operator-name':"
              "'mpi-operator'}," OWNER("Job", "m-launcher", "u4"),
              ""),
          "training ml/m '' '' MPIJob 0" },
        { POD("'labels':{'training.kubeflow.org/job-name':'m','training.kubeflow.org/"
              "operator-name':"
              "'xgboostjob-controller'}",
              ""),
          "training ml/m '' '' XGBoostJob 0" },
        { POD("'labels':{'training.kubeflow.org/job-name':'m'}", ""), "pod / '' ''  1" },
        { POD("'labels':{'jobset.sigs.k8s.io/jobset-name':'js','jobset.sigs.k8s.io/"
              "restart-attempt':"
              "'2','jobset.sigs.k8s.io/jobset-uid':'u5'}," OWNER("Job", "js-w-0", "u6"),
              ""),
          "jobset ml/js '2' 'u5' JobSet 0" },
        { POD("'labels':{'ray.io/cluster':'rc'}," OWNER("RayCluster", "rc", "u7"), ""),
          "ray ml/rc '' 'u7' RayCluster 0" },
        { POD("'labels':{'leaderworkerset.sigs.k8s.io/name':'lw',"
              "'leaderworkerset.sigs.k8s.io/group-index':'1'},"
              "'annotations':{'leaderworkerset.sigs.k8s.io/size':'4'}",
              ""),
          "leaderworkerset ml/lw '1' '' LeaderWorkerSet 4" },
        { POD("'labels':{}", "'schedulingGroup':{'podGroupName':'w-0'}"),
          "native ml/w-0 '' '' PodGroup 0" },
        { POD("'labels':{'ray.io/cluster':'rc'}",
              "'workloadRef':{'name':'w','podGroup':'workers'}"),
          "workload ml/w 'workers' '' Workload 0" },
        { POD("'labels':{}", "'workloadRef':{'name':'w','podGroup':'workers',"
                             "'podGroupReplicaKey':'3'}"),
          "workload ml/w 'workers/3' '' Workload 0" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        gang_is(cases[i].pod, cases[i].want);
}

static void annotations_that_make_no_sense_are_told(void)
{
    gang_is(POD("'annotations':{'nightshift.dev/gang':'g'}", ""),
            "nightshift.dev/gang names a gang and nightshift.dev/gang-size is missing");
    gang_is(POD("'annotations':{'nightshift.dev/gang-size':'4'}", ""),
            "nightshift.dev/gang-size is given, but no gang: the pod has no owner");
    gang_is(POD("'annotations':{'nightshift.dev/gang':'g','nightshift.dev/gang-size':'many'}", ""),
            "nightshift.dev/gang-size: 'many' is not a number of pods");
    gang_is(POD("'annotations':{'nightshift.dev/gang':'g','nightshift.dev/gang-size':'0'}", ""),
            "nightshift.dev/gang-size: '0' is not a number of pods");
    gang_is(POD("'annotations':{'nightshift.dev/gang':'g','nightshift.dev/gang-size':'99999'}", ""),
            "nightshift.dev/gang-size: '99999' is not a number of pods");
    gang_is(POD("'labels':{'pod-group.scheduling.sigs.k8s.io':'pg',"
                "'pod-group.scheduling.sigs.k8s.io/min-available':'-1'}",
                ""),
            "pod-group.scheduling.sigs.k8s.io/min-available: '-1' is not a number of pods");
}

static void members_share_a_key(void)
{
    struct gang_id a = { GANG_TRAINING, "ml", "m", "", "u1" }, b = a, c = a;
    AUTO(buf_free) struct buf x = BUF(200), y = BUF(200), z = BUF(200);
    b.uid = "";
    c.ns = "other";
    gang_key(&a, &x);
    gang_key(&b, &y);
    gang_key(&c, &z);
    CHECK(str_eq(buf_str(&x), buf_str(&y)) && !str_eq(buf_str(&x), buf_str(&z)));
    CHECK_STR(buf_str(&x).p, "training/ml//m"); /* a text that a spec can have */
}

/* It is kept as a job's name for its pods, which no control character may be in. */
static void a_key_is_plain_and_tells_parts_apart(void)
{
    struct gang_id a = { GANG_OWN, "ml", "a/b", "", "" }, b = { GANG_OWN, "ml", "a", "b", "" };
    AUTO(buf_free) struct buf x = BUF(200), y = BUF(200);
    gang_key(&a, &x);
    gang_key(&b, &y);
    CHECK(!str_eq(buf_str(&x), buf_str(&y)));
    for (size_t i = 0; i < x.n; i++)
        CHECK((unsigned char)x.p[i] > ' ');
}

#define OBJ(spec) "{'metadata':{'namespace':'ml','name':'o','uid':'u'},'spec':{" spec "}}"

static void objects_tell_how_many_it_takes(void)
{
    static const struct {
        enum gang_object what;
        const char *object, *part;
        uint32_t min;
    } cases[] = {
        { GANG_OBJ_POD_GROUP, OBJ("'minMember':3,'scheduleTimeoutSeconds':10"), "", 3 },
        { GANG_OBJ_POD_GROUP, OBJ(""), "", 1 },
        { GANG_OBJ_POD_GROUP, OBJ("'minMember':-3"), "", 1 },
        { GANG_OBJ_VOLCANO_GROUP, OBJ("'minMember':5,'queue':'default','minResources':{}"), "", 5 },
        { GANG_OBJ_NATIVE_GROUP, OBJ("'schedulingPolicy':{'gang':{'minCount':4}}"), "", 4 },
        { GANG_OBJ_NATIVE_GROUP, OBJ("'schedulingPolicy':{'basic':{}}"), "", 1 },
        { GANG_OBJ_WORKLOAD,
          OBJ("'podGroups':[{'name':'ps','policy':{'basic':{}}},"
              "{'name':'workers','policy':{'gang':{'minCount':6}}}]"),
          "workers", 6 },
        { GANG_OBJ_WORKLOAD,
          OBJ("'podGroups':[{'name':'workers','policy':{'gang':{'minCount':6}}}]"), "workers/2",
          6 },
        { GANG_OBJ_PYTORCH_JOB,
          OBJ("'pytorchReplicaSpecs':{'Master':{'replicas':1},'Worker':{'replicas':7}}"), "", 8 },
        { GANG_OBJ_PYTORCH_JOB, OBJ("'pytorchReplicaSpecs':{'Master':{},'Worker':{'replicas':3}}"),
          "", 4 },
        { GANG_OBJ_PYTORCH_JOB,
          OBJ("'runPolicy':{'schedulingPolicy':{'minAvailable':2}},"
              "'pytorchReplicaSpecs':{'Worker':{'replicas':7}}"),
          "", 2 },
        { GANG_OBJ_PYTORCH_JOB,
          OBJ("'elasticPolicy':{'minReplicas':3,'maxReplicas':9},"
              "'pytorchReplicaSpecs':{'Worker':{'replicas':7}}"),
          "", 3 },
        { GANG_OBJ_TF_JOB,
          OBJ("'tfReplicaSpecs':{'PS':{'replicas':2},'Worker':{'replicas':4},'Chief':"
              "{'replicas':1}}"),
          "", 7 },
        { GANG_OBJ_XGBOOST_JOB, OBJ("'xgbReplicaSpecs':{'Master':{},'Worker':{'replicas':2}}"), "",
          3 },
        { GANG_OBJ_PADDLE_JOB, OBJ("'paddleReplicaSpecs':{'Worker':{'replicas':2}}"), "", 2 },
        { GANG_OBJ_JAX_JOB, OBJ("'jaxReplicaSpecs':{'Worker':{'replicas':16}}"), "", 16 },
        { GANG_OBJ_MPI_JOB, OBJ("'mpiReplicaSpecs':{'Launcher':{},'Worker':{'replicas':4}}"), "",
          5 },
        { GANG_OBJ_MPI_JOB,
          OBJ("'launcherCreationPolicy':'WaitForWorkersReady',"
              "'mpiReplicaSpecs':{'Launcher':{},'Worker':{'replicas':4}}"),
          "", 4 },
        { GANG_OBJ_JOB_SET,
          OBJ("'replicatedJobs':[{'name':'l','template':{'spec':{}}},{'name':'w','replicas':2,"
              "'template':{'spec':{'parallelism':4,'completions':4}}}]"),
          "", 9 },
        { GANG_OBJ_JOB_SET,
          OBJ("'startupPolicy':{'startupPolicyOrder':'InOrder'},'replicatedJobs':[{'name':'l',"
              "'template':{'spec':{}}},{'name':'w','template':{'spec':{'parallelism':4}}}]"),
          "", 1 },
        { GANG_OBJ_JOB_SET,
          OBJ("'replicatedJobs':[{'name':'l','template':{'spec':{'parallelism':2}}},{'name':'w',"
              "'dependsOn':[{'name':'l','status':'Ready'}],'template':{'spec':{}}}]"),
          "", 2 },
        { GANG_OBJ_LEADER_WORKER_SET, OBJ("'replicas':2,'leaderWorkerTemplate':{'size':4}"), "",
          4 },
        { GANG_OBJ_LEADER_WORKER_SET,
          OBJ("'startupPolicy':'LeaderReady','leaderWorkerTemplate':{'size':4}"), "", 1 },
        { GANG_OBJ_RAY_CLUSTER, OBJ("'headGroupSpec':{}"), "", 1 },
        { GANG_OBJ_RAY_CLUSTER,
          OBJ("'workerGroupSpecs':[{'replicas':3,'minReplicas':1},{'minReplicas':2,'numOfHosts':2},"
              "{'replicas':9,'suspend':true}]"),
          "", 8 },
        { GANG_OBJ_RAY_CLUSTER,
          OBJ("'workerGroupSpecs':[{'replicas':9,'minReplicas':1,'maxReplicas':3},"
              "{'replicas':0,'minReplicas':2},{'replicas':4,'minReplicas':5,'maxReplicas':1}]"),
          "", 7 },
        { GANG_OBJ_RAY_CLUSTER,
          OBJ("'enableInTreeAutoscaling':true,'workerGroupSpecs':[{'replicas':3,'minReplicas':1}]"),
          "", 2 },
        { GANG_OBJ_JOB, OBJ("'parallelism':8,'completions':3"), "", 3 },
        { GANG_OBJ_JOB, OBJ("'parallelism':8"), "", 8 },
        { GANG_OBJ_JOB, OBJ(""), "", 1 },
        { GANG_OBJ_RAY_CLUSTER,
          OBJ("'workerGroupSpecs':[{'replicas':9223372036854775807,'numOfHosts':9}]"), "",
          UINT32_MAX },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(json_free_p) struct json_doc *d = quoted_json(cases[i].object);
        struct gang_size s = { 0 };
        struct err e = { 0 };
        CHECK_INT(gang_size_read(cases[i].what, json_root(d), cases[i].part, &s, &e), 0);
        CHECK_INT(s.min, cases[i].min);
        CHECK_STR(s.ns, "ml");
        CHECK_STR(s.uid, "u");
    }
}

static void objects_that_do_not_tell_are_refused(void)
{
    static const struct {
        enum gang_object what;
        const char *object;
    } cases[] = {
        { GANG_OBJ_NONE, OBJ("") },
        { GANG_OBJ_POD_GROUP, "{'spec':{'minMember':3}}" },
        { GANG_OBJ_POD_GROUP, OBJ("'minMember':'three'") },
        { GANG_OBJ_WORKLOAD, OBJ("'podGroups':[{'name':'other'}]") },
        { GANG_OBJ_JOB_SET, OBJ("'replicatedJobs':{}") },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(json_free_p) struct json_doc *d = quoted_json(cases[i].object);
        struct gang_size s = { .min = 7 };
        struct err e = { 0 };
        CHECK_INT(gang_size_read(cases[i].what, json_root(d), "workers", &s, &e), -1);
        CHECK(s.min == 7 && e.msg[0]);
    }
}

static const struct test tests[] = {
    { "a pod is found its gang", a_pod_is_found_its_gang },
    { "annotations that make no sense are told", annotations_that_make_no_sense_are_told },
    { "members share a key", members_share_a_key },
    { "a key is plain and tells parts apart", a_key_is_plain_and_tells_parts_apart },
    { "objects tell how many it takes", objects_tell_how_many_it_takes },
    { "objects that do not tell are refused", objects_that_do_not_tell_are_refused },
};
TEST_CASES(tests)
