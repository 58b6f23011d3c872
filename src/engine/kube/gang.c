#include "engine/kube/gang.h"

#include "base/parse.h"
#include "core/types.h"

#define GANG_NAME "nightshift.dev/gang"
#define GANG_SIZE "nightshift.dev/gang-size"
#define GANG_NAME_MAX 253   /* as long as any name of Kubernetes */
#define GANG_SIZE_ALL "all" /* as many as the Job runs at a time */
#define OPERATOR_NAME "training.kubeflow.org/operator-name"

static const char *const kind_names[] = {
#define X(id, name) [GANG_##id] = name,
    GANG_KINDS(X)
#undef X
};

const char *gang_kind_name(enum gang_kind k)
{
    return k < GANG_KIND_COUNT ? kind_names[k] : "?";
}

static const struct gang_object_info objects[] = {
#define X(id, api, kind, plural) [GANG_OBJ_##id] = { api, kind, plural },
    GANG_OBJECTS(X)
#undef X
};

const struct gang_object_info *gang_object_info(enum gang_object o)
{
    return &objects[o < GANG_OBJECT_COUNT ? o : GANG_OBJ_NONE];
}

/* A pod's gang by a label or an annotation, in the order in which they count. */
static const struct rule {
    enum gang_kind kind;
    enum gang_object object;
    const char *name, *part, *uid, *size; /* keys; NULL: there is none */
} rules[] = {
    { GANG_POD_GROUP, GANG_OBJ_POD_GROUP, "scheduling.x-k8s.io/pod-group", NULL, NULL, NULL },
    { GANG_POD_GROUP, GANG_OBJ_POD_GROUP, "pod-group.scheduling.sigs.k8s.io", NULL, NULL,
      "pod-group.scheduling.sigs.k8s.io/min-available" },
    { GANG_POD_GROUP, GANG_OBJ_POD_GROUP, "pod-group.scheduling.sigs.k8s.io/name", NULL, NULL,
      "pod-group.scheduling.sigs.k8s.io/min-available" },
    { GANG_VOLCANO, GANG_OBJ_VOLCANO_GROUP, "scheduling.k8s.io/group-name", NULL, NULL, NULL },
    { GANG_VOLCANO, GANG_OBJ_VOLCANO_GROUP, "scheduling.volcano.sh/group-name", NULL, NULL, NULL },
    { GANG_TRAINING, GANG_OBJ_NONE, "training.kubeflow.org/job-name", NULL, NULL, NULL },
    { GANG_JOB_SET, GANG_OBJ_JOB_SET, "jobset.sigs.k8s.io/jobset-name",
      "jobset.sigs.k8s.io/restart-attempt", "jobset.sigs.k8s.io/jobset-uid", NULL },
    { GANG_LEADER_WORKER, GANG_OBJ_LEADER_WORKER_SET, "leaderworkerset.sigs.k8s.io/name",
      "leaderworkerset.sigs.k8s.io/group-index", NULL, "leaderworkerset.sigs.k8s.io/size" },
    { GANG_RAY, GANG_OBJ_RAY_CLUSTER, "ray.io/cluster", NULL, NULL, NULL },
};

struct pod {
    struct doc *d;
    const struct json *labels, *annotations, *spec;
    const char *ns;
    const char *owner_kind, *owner_name, *owner_uid;
};

static struct pod pod_of(struct doc *d, const struct json *pod)
{
    const struct json *meta = doc_object(d, pod, "metadata");
    struct pod p = { .d = d,
                     .labels = doc_object(d, meta, "labels"),
                     .annotations = doc_object(d, meta, "annotations"),
                     .spec = doc_object(d, pod, "spec"),
                     .ns = doc_text(d, meta, "namespace"),
                     .owner_kind = "",
                     .owner_name = "",
                     .owner_uid = "" };
    DOC_EACH(v, doc_array(d, meta, "ownerReferences"))
    if (doc_bool(d, v, "controller")) {
        p.owner_kind = doc_text(d, v, "kind");
        p.owner_name = doc_text(d, v, "name");
        p.owner_uid = doc_text(d, v, "uid");
    }
    return p;
}

/* A label, or an annotation of that name; "" when there is neither. */
static const char *said(const struct pod *p, const char *key)
{
    if (!key)
        return "";
    const char *label = doc_said(p->labels, key);
    return label[0] ? label : doc_said(p->annotations, key);
}

static int read_size(const char *key, const char *text, uint32_t *out, struct err *e)
{
    uint64_t n = 0;
    if (parse_u64(str_of(text), REPLICAS_MAX, &n, e) < 0 || n == 0) {
        err_set(e, ERR_INVALID, "%s: '%.40s' is not a number of pods", key, text);
        return err_hint(e, "write a number from 1 to %d", REPLICAS_MAX);
    }
    *out = (uint32_t)n;
    return 0;
}

static void set_owner_uid(const struct pod *p, struct gang_ref *g)
{
    if (strcmp(p->owner_kind, objects[g->object].kind) == 0 &&
        strcmp(p->owner_name, g->id.name) == 0)
        g->id.uid = p->owner_uid;
}

/* 0: none of our annotations; 1: a gang by them. */
static int by_own(const struct pod *p, struct gang_ref *out, struct err *e)
{
    const char *name = said(p, GANG_NAME), *size = said(p, GANG_SIZE);
    struct gang_ref g = { .id = { GANG_OWN, p->ns, name, "", "" } };
    bool job = strcmp(p->owner_kind, "Job") == 0;
    if (!name[0] && !size[0])
        return 0;
    if (strlen(name) > GANG_NAME_MAX) {
        err_set(e, ERR_INVALID, "%s is longer than %d bytes", GANG_NAME, GANG_NAME_MAX);
        return err_hint(e, "give the gang a shorter name");
    }
    if (!size[0]) {
        err_set(e, ERR_INVALID, "%s names a gang and %s is missing", GANG_NAME, GANG_SIZE);
        return err_hint(e, "say how many pods start together");
    }
    if (!name[0] && !p->owner_name[0]) {
        err_set(e, ERR_INVALID, "%s is given, but no gang: the pod has no owner", GANG_SIZE);
        return err_hint(e, "name the gang with %s", GANG_NAME);
    }
    if (!name[0]) {
        g.id.kind = job ? GANG_JOB : GANG_OWN;
        g.id.name = p->owner_name;
        g.id.part = job ? "" : p->owner_kind;
        g.id.uid = p->owner_uid;
    }
    if (!name[0] && job && strcmp(size, GANG_SIZE_ALL) == 0)
        g.object = GANG_OBJ_JOB;
    else if (read_size(GANG_SIZE, size, &g.min, e) < 0)
        return -1;
    *out = g;
    return 1;
}

static bool by_native(const struct pod *p, struct arena *a, struct gang_ref *out)
{
    const struct json *group = doc_object(p->d, p->spec, "schedulingGroup");
    const struct json *work = doc_object(p->d, p->spec, "workloadRef");
    const char *name = doc_text(p->d, group, "podGroupName");
    const char *workload = doc_text(p->d, work, "name");
    const char *part = doc_text(p->d, work, "podGroup");
    const char *replica = doc_text(p->d, work, "podGroupReplicaKey");
    if (name[0])
        *out = (struct gang_ref){ { GANG_NATIVE, p->ns, name, "", "" }, GANG_OBJ_NATIVE_GROUP, 0 };
    else if (workload[0])
        *out =
            (struct gang_ref){ { GANG_WORKLOAD, p->ns, workload,
                                 replica[0] ? arena_printf(a, "%s/%s", part, replica) : part, "" },
                               GANG_OBJ_WORKLOAD,
                               0 };
    return name[0] || workload[0];
}

/* The operator's name begins like its kind of job: pytorchjob-controller, mpi-operator. */
static bool is_operator_of(const char *operator_name, const char *kind)
{
    size_t n = strlen(kind) - 3; /* without "Job" */
    for (size_t i = 0; i < n; i++)
        if (operator_name[i] != (kind[i] | 0x20))
            return false;
    return operator_name[n] == '-' || strncmp(operator_name + n, "job", 3) == 0;
}

/* Kubeflow's kinds of jobs share one label.  A launcher is owned by a Job in between. */
static enum gang_object training_object(const struct pod *p)
{
    const char *operator_name = said(p, OPERATOR_NAME);
    for (int i = GANG_OBJ_PYTORCH_JOB; i <= GANG_OBJ_MPI_JOB; i++)
        if (strcmp(p->owner_kind, objects[i].kind) == 0 ||
            is_operator_of(operator_name, objects[i].kind))
            return (enum gang_object)i;
    return GANG_OBJ_NONE;
}

/* 0: the rule does not apply. */
static int by_rule(const struct pod *p, const struct rule *r, struct gang_ref *out, struct err *e)
{
    const char *name = said(p, r->name), *size = said(p, r->size);
    struct gang_ref g = { .id = { r->kind, p->ns, name, said(p, r->part), said(p, r->uid) },
                          .object = r->object };
    if (!name[0])
        return 0;
    if (r->kind == GANG_TRAINING && (g.object = training_object(p)) == GANG_OBJ_NONE)
        return 0;
    if (size[0] && read_size(r->size, size, &g.min, e) < 0)
        return -1;
    if (!g.id.uid[0])
        set_owner_uid(p, &g);
    *out = g;
    return 1;
}

int gang_of_pod(struct doc *d, const struct json *pod, struct arena *a, struct gang_ref *out,
                struct err *e)
{
    struct pod p = pod_of(d, pod);
    *out = (struct gang_ref){ .id = { GANG_ONE, "", "", "", "" }, .min = 1 };
    int found = by_own(&p, out, e);
    if (found == 0)
        found = by_native(&p, a, out);
    for (size_t i = 0; i < ARRAY_LEN(rules) && found == 0; i++)
        found = by_rule(&p, &rules[i], out, e);
    return MIN(found, 0);
}

void gang_ref_pack(struct gang_ref *g, struct pack *k)
{
    pack_text(k, &g->id.ns);
    pack_text(k, &g->id.name);
    pack_text(k, &g->id.part);
    pack_text(k, &g->id.uid);
}

void gang_key(const struct gang_id *id, struct buf *out)
{
    /* It is a text of a spec: one line without control characters.  A name comes last: only that of our own
     * annotation may have a slash in it, and no part of such a one has. */
    buf_printf(out, "%s/%s/%s/%s", gang_kind_name(id->kind), id->ns, id->part, id->name);
}
