/* How many pods it takes, from the objects that operators make. */
#include "engine/kube/gang.h"

struct object {
    struct doc *d;
    const struct json *spec;
    const char *part;
};

/* Products and sums of what a document says; what is below zero counts as nothing. */
static uint64_t times(int64_t a, int64_t b)
{
    uint64_t product;
    if (a <= 0 || b <= 0)
        return 0;
    return __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &product) ? UINT32_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return MIN(a, (uint64_t)UINT32_MAX) + MIN(b, (uint64_t)UINT32_MAX);
}

static uint64_t at_least_none(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

static uint64_t pod_group(const struct object *o)
{
    return at_least_none(doc_int(o->d, o->spec, "minMember", 1));
}

/* { "gang": { "minCount": 4 } } or { "basic": {} }, whose pods start one by one. */
static uint64_t policy_min(struct doc *d, const struct json *policy)
{
    return at_least_none(doc_int(d, doc_object(d, policy, "gang"), "minCount", 1));
}

static uint64_t native_group(const struct object *o)
{
    return policy_min(o->d, doc_object(o->d, o->spec, "schedulingPolicy"));
}

static uint64_t workload(const struct object *o)
{
    struct str name, replica;
    str_cut(str_of(o->part), '/', &name, &replica);
    DOC_EACH(v, doc_array(o->d, o->spec, "podGroups"))
    if (str_is(name, doc_text(o->d, v, "name")))
        return policy_min(o->d, doc_object(o->d, v, "policy"));
    doc_fail(o->d, "it has no pod group '%.60s'", o->part);
    return 0;
}

/* The sum of all replicas; an elastic job goes on with fewer, and a stated minimum wins. */
static uint64_t replicas_of(const struct object *o, const char *specs, const char *leave_out)
{
    const struct json *run = doc_object(o->d, o->spec, "runPolicy");
    const struct json *policy = doc_object(o->d, run, "schedulingPolicy");
    int64_t elastic = doc_int(o->d, doc_object(o->d, o->spec, "elasticPolicy"), "minReplicas", 0);
    int64_t least = doc_int(o->d, policy, "minAvailable", elastic);
    uint64_t sum = 0;
    if (least > 0)
        return (uint64_t)least;
    const struct json *all = doc_object(o->d, o->spec, specs);
    for (struct json_member m = { 0 }; json_next_member(all, &m);)
        if (!str_is(m.key, leave_out))
            sum = plus(sum, at_least_none(doc_int(o->d, m.value, "replicas", 1)));
    return sum;
}

static uint64_t pytorch_job(const struct object *o)
{
    return replicas_of(o, "pytorchReplicaSpecs", "");
}

static uint64_t tf_job(const struct object *o)
{
    return replicas_of(o, "tfReplicaSpecs", "");
}

static uint64_t xgboost_job(const struct object *o)
{
    return replicas_of(o, "xgbReplicaSpecs", "");
}

static uint64_t paddle_job(const struct object *o)
{
    return replicas_of(o, "paddleReplicaSpecs", "");
}

static uint64_t jax_job(const struct object *o)
{
    return replicas_of(o, "jaxReplicaSpecs", "");
}

static uint64_t mpi_job(const struct object *o)
{
    const char *launcher = doc_text(o->d, o->spec, "launcherCreationPolicy");
    bool late = strcmp(launcher, "WaitForWorkersReady") == 0;
    return replicas_of(o, "mpiReplicaSpecs", late ? "Launcher" : "");
}

static uint64_t job_at_a_time(struct doc *d, const struct json *spec)
{
    int64_t n = doc_int(d, spec, "parallelism", 1);
    return at_least_none(MIN(n, doc_int(d, spec, "completions", n)));
}

static uint64_t job(const struct object *o)
{
    return job_at_a_time(o->d, o->spec);
}

/* What comes at first: in order, only the first; else what depends on nothing. */
static uint64_t job_set(const struct object *o)
{
    const struct json *startup = doc_object(o->d, o->spec, "startupPolicy");
    bool in_order = strcmp(doc_text(o->d, startup, "startupPolicyOrder"), "InOrder") == 0;
    uint64_t sum = 0;
    DOC_EACH(v, doc_array(o->d, o->spec, "replicatedJobs"))
    {
        if (doc_has(v, "dependsOn") || (in_order && sum > 0))
            continue;
        uint64_t each =
            job_at_a_time(o->d, doc_object(o->d, doc_object(o->d, v, "template"), "spec"));
        sum = plus(sum, times(doc_int(o->d, v, "replicas", 1), (int64_t)each));
    }
    return sum;
}

static uint64_t leader_worker_set(const struct object *o)
{
    const struct json *t = doc_object(o->d, o->spec, "leaderWorkerTemplate");
    /* Workers are made when their leader is ready. */
    if (strcmp(doc_text(o->d, o->spec, "startupPolicy"), "LeaderReady") == 0)
        return 1;
    return at_least_none(doc_int(o->d, t, "size", 1));
}

/* What KubeRay makes at first: never more than maxReplicas, and else never fewer than minReplicas. */
static uint64_t ray_workers(const struct object *o, const struct json *group, bool scales)
{
    int64_t most = doc_int(o->d, group, "maxReplicas", INT64_MAX);
    int64_t least = doc_int(o->d, group, "minReplicas", 0);
    int64_t said = doc_int(o->d, group, "replicas", least);
    int64_t n = scales || said < least ? least : said;
    if (doc_bool(o->d, group, "suspend"))
        return 0;
    return times(MIN(n, most), doc_int(o->d, group, "numOfHosts", 1));
}

static uint64_t ray_cluster(const struct object *o)
{
    bool scales = doc_bool(o->d, o->spec, "enableInTreeAutoscaling");
    uint64_t sum = 1; /* the head */
    DOC_EACH(v, doc_array(o->d, o->spec, "workerGroupSpecs"))
    sum = plus(sum, ray_workers(o, v, scales));
    return sum;
}

static uint64_t (*const readers[])(const struct object *o) = {
    [GANG_OBJ_NONE] = NULL,
    [GANG_OBJ_POD_GROUP] = pod_group,
    [GANG_OBJ_VOLCANO_GROUP] = pod_group,
    [GANG_OBJ_NATIVE_GROUP] = native_group,
    [GANG_OBJ_WORKLOAD] = workload,
    [GANG_OBJ_PYTORCH_JOB] = pytorch_job,
    [GANG_OBJ_TF_JOB] = tf_job,
    [GANG_OBJ_XGBOOST_JOB] = xgboost_job,
    [GANG_OBJ_PADDLE_JOB] = paddle_job,
    [GANG_OBJ_JAX_JOB] = jax_job,
    [GANG_OBJ_MPI_JOB] = mpi_job,
    [GANG_OBJ_JOB_SET] = job_set,
    [GANG_OBJ_LEADER_WORKER_SET] = leader_worker_set,
    [GANG_OBJ_RAY_CLUSTER] = ray_cluster,
    [GANG_OBJ_JOB] = job,
};
_Static_assert(ARRAY_LEN(readers) == GANG_OBJECT_COUNT, "every object has a reader");

int gang_size_read(enum gang_object what, const struct json *object, const char *part,
                   struct gang_size *out, struct err *e)
{
    struct doc d = { .e = e };
    struct object o = { &d, doc_object(&d, object, "spec"), part };
    const struct json *meta = doc_object(&d, object, "metadata");
    struct gang_size s = { .ns = doc_text(&d, meta, "namespace"),
                           .name = doc_text(&d, meta, "name"),
                           .uid = doc_text(&d, meta, "uid") };
    if (what >= GANG_OBJECT_COUNT || !readers[what])
        return err_set(e, ERR_INVALID, "no object tells the size of this gang");
    uint64_t min = readers[what](&o);
    s.min = min == 0 ? 1 : (uint32_t)MIN(min, (uint64_t)UINT32_MAX);
    if (!s.name[0])
        doc_fail(&d, "it has no name");
    if (d.bad)
        return err_wrap(e, "%s '%.100s'", gang_object_info(what)->kind, s.name);
    *out = s;
    return 0;
}
