#include "engine/kube/pod_read.h"

#include "base/parse.h"
#include "engine/kube/pod_asks.h"
#include "engine/kube/pod_stand.h"

#define OWN_PREFIX "nightshift.dev/"
#define GRACE_DEFAULT_S 30
#define SECONDS_MAX (INT64_C(10) * 366 * 86400)

static const char *const own_keys[] = {
#define X(id, name) [POD_OWN_##id] = OWN_PREFIX name,
    POD_OWNS(X)
#undef X
};

static const char *const phase_names[] = {
#define X(id, name) [POD_##id] = name,
    POD_PHASES(X)
#undef X
};

static const char *const restart_names[] = {
#define X(id, name) [RESTART_##id] = name,
    RESTART_POLICIES(X)
#undef X
};

const char *pod_phase_name(enum pod_phase p)
{
    return p < POD_PHASE_COUNT ? phase_names[p] : "?";
}

/* The number of `text` in the list, 0 when it is not there. */
static uint8_t number_of(const char *text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return (uint8_t)i;
    return 0;
}

static void read_meta(struct doc *d, const struct json *meta, struct kube_pod *out)
{
    const struct json *labels = doc_object(d, meta, "labels");
    const struct json *annotations = doc_object(d, meta, "annotations");
    out->ns = doc_text(d, meta, "namespace");
    out->name = doc_text(d, meta, "name");
    out->uid = doc_text(d, meta, "uid");
    out->created_ms = doc_time_ms(d, meta, "creationTimestamp");
    out->deletion_ms = doc_time_ms(d, meta, "deletionTimestamp");
    for (size_t i = 0; i < POD_OWN_COUNT; i++) {
        const char *label = doc_said(labels, own_keys[i]);
        out->own[i] = label[0] ? label : doc_said(annotations, own_keys[i]);
    }
    DOC_EACH(v, doc_array(d, meta, "finalizers"))
    out->has_finalizer |= strcmp(doc_as_text(d, v, "finalizers"), POD_FINALIZER) == 0;
    DOC_EACH(v, doc_array(d, meta, "ownerReferences"))
    if (doc_bool(d, v, "controller"))
        out->owner = (struct kube_owner){ doc_text(d, v, "apiVersion"), doc_text(d, v, "kind"),
                                          doc_text(d, v, "name"), doc_text(d, v, "uid") };
}

static int64_t ms_of(int64_t seconds)
{
    return seconds < 0 ? 0 : MIN(seconds, SECONDS_MAX) * 1000;
}

/* The grace of a deletion that is under way, else the pod's own. */
static int64_t grace_ms(struct doc *d, const struct json *meta, const struct json *spec)
{
    int64_t own = doc_int(d, spec, "terminationGracePeriodSeconds", GRACE_DEFAULT_S);
    return ms_of(doc_int(d, meta, "deletionGracePeriodSeconds", own));
}

static void read_spec(struct doc *d, const struct json *spec, struct kube_pod *out)
{
    out->node = doc_text(d, spec, "nodeName");
    out->scheduler = doc_text(d, spec, "schedulerName");
    out->priority_class = doc_text(d, spec, "priorityClassName");
    out->priority = doc_i32(d, spec, "priority");
    out->restart =
        number_of(doc_text(d, spec, "restartPolicy"), restart_names, RESTART_POLICY_COUNT);
    out->deadline_ms = ms_of(doc_int(d, spec, "activeDeadlineSeconds", 0));
    out->gated = doc_has(spec, "schedulingGates");
}

static int by_port(const void *a, const void *b)
{
    const struct kube_port *x = a, *y = b;
    if (x->port != y->port)
        return x->port < y->port ? -1 : 1;
    return x->protocol != y->protocol ? x->protocol - y->protocol : strcmp(x->ip, y->ip);
}

static void add_ports(struct doc *d, const struct json *container, struct kube_pod *out)
{
    DOC_EACH(v, doc_array(d, container, "ports"))
    {
        int64_t port = doc_int(d, v, "hostPort", 0);
        const char *ip = doc_text(d, v, "hostIP"), *protocol = doc_text(d, v, "protocol");
        if (port == 0)
            continue;
        if (port < 0 || port > UINT16_MAX || out->n_ports == DOC_LIST_MAX) {
            doc_fail(d, "host port %lld is out of bounds", (long long)port);
            return;
        }
        if (strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0)
            ip = "";
        out->ports[out->n_ports++] =
            (struct kube_port){ ip, (uint16_t)port, protocol[0] ? protocol[0] : 'T' };
    }
}

static size_t count_ports(struct doc *d, const struct json *containers)
{
    size_t n = 0;
    DOC_EACH(c, containers)
    n += json_len(doc_array(d, c, "ports"));
    return MIN(n, (size_t)DOC_LIST_MAX);
}

static void read_ports(struct doc *d, const struct json *spec, struct arena *a,
                       struct kube_pod *out)
{
    const struct json *containers = doc_array(d, spec, "containers");
    const struct json *inits = doc_array(d, spec, "initContainers");
    size_t room = count_ports(d, containers) + count_ports(d, inits), n = 0;
    out->ports = arena_array(a, struct kube_port, room + 1);
    DOC_EACH(c, containers)
    add_ports(d, c, out);
    DOC_EACH(c, inits)
    if (pod_is_sidecar(d, c))
        add_ports(d, c, out);
    qsort(out->ports, out->n_ports, sizeof *out->ports, by_port);
    for (size_t i = 0; i < out->n_ports; i++)
        if (n == 0 || by_port(&out->ports[n - 1], &out->ports[i]) != 0)
            out->ports[n++] = out->ports[i];
    out->n_ports = (uint16_t)n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void read_claims(struct doc *d, const struct json *volumes, struct arena *a,
                        struct kube_pod *out)
{
    size_t n = 0, kept = 0;
    out->claims = arena_array(a, const char *, json_len(volumes) + 1);
    DOC_EACH(v, volumes)
    {
        const struct json *claim = doc_object(d, v, "persistentVolumeClaim");
        if (claim)
            out->claims[n++] = doc_text(d, claim, "claimName");
        else if (doc_object(d, v, "ephemeral")) /* Kubernetes makes a claim of that name */
            out->claims[n++] = arena_printf(a, "%s-%s", out->name, doc_text(d, v, "name"));
    }
    qsort(out->claims, n, sizeof *out->claims, by_text);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(out->claims[kept - 1], out->claims[i]) != 0)
            out->claims[kept++] = out->claims[i];
    out->n_claims = (uint16_t)kept;
}

static struct kube_condition condition(struct doc *d, const struct json *status, const char *type,
                                       struct arena *a)
{
    const struct json *c = doc_find_by(doc_array(d, status, "conditions"), "type", type);
    return (struct kube_condition){
        .reason = doc_prose(d, c, "reason", 128, a),
        .message = doc_prose(d, c, "message", POD_PROSE_MAX, a),
        .known = c != NULL,
        .yes = strcmp(doc_text(d, c, "status"), "True") == 0,
    };
}

static void read_status(struct doc *d, const struct json *pod, struct arena *a,
                        struct kube_pod *out)
{
    const struct json *status = doc_object(d, pod, "status");
    struct kube_condition disruption = condition(d, status, "DisruptionTarget", a);
    out->phase = number_of(doc_text(d, status, "phase"), phase_names, POD_PHASE_COUNT);
    out->nominated_node = doc_text(d, status, "nominatedNodeName");
    out->ip = doc_text(d, status, "podIP");
    out->reason = doc_prose(d, status, "reason", 128, a);
    out->message = doc_prose(d, status, "message", POD_PROSE_MAX, a);
    out->started_ms = doc_time_ms(d, status, "startTime");
    out->scheduled = condition(d, status, "PodScheduled", a);
    out->ready = condition(d, status, "Ready", a).yes;
    out->disruption = disruption.yes ? disruption.reason : "";
    out->stand = pod_stand(d, pod, (enum pod_phase)out->phase, a);
}

static void read_where(struct doc *d, const struct json *pod, struct arena *a, struct kube_pod *out)
{
    struct err why;
    const struct where *w = where_of_pod(d, doc_object(d, pod, "spec"), a);
    const char *refusal = where_refusal(w);
    out->where = w;
    out->refusal = refusal ? refusal : "";
    if (gang_of_pod(d, pod, a, &out->gang, &why) < 0 && !refusal)
        out->refusal = arena_printf(a, "%s", why.msg);
}

static void pack_stand(struct kube_stand *s, struct pack *k)
{
    pack_text(k, &s->container);
    pack_text(k, &s->reason);
    pack_text(k, &s->message);
}

static struct kube_pod *walk(struct pack *k, struct kube_pod *from)
{
    struct kube_pod *p = pack_bytes(k, from, sizeof *from);
    pack_array(k, p->ports, p->n_ports);
    pack_array(k, p->claims, p->n_claims);
    kube_amounts_pack(&p->asks, k);
    if (p->where)
        p->where = pack_bytes(k, p->where, where_bytes(p->where));
    for (size_t i = 0; i < p->n_ports; i++)
        pack_text(k, &p->ports[i].ip);
    for (size_t i = 0; i < p->n_claims; i++)
        pack_text(k, &p->claims[i]);
    for (size_t i = 0; i < POD_OWN_COUNT; i++)
        pack_text(k, &p->own[i]);
    const char **texts[] = {
        &p->ns,
        &p->name,
        &p->uid,
        &p->node,
        &p->scheduler,
        &p->nominated_node,
        &p->ip,
        &p->reason,
        &p->priority_class,
        &p->message,
        &p->disruption,
        &p->refusal,
        &p->owner.kind,
        &p->owner.name,
        &p->owner.api_version,
        &p->owner.uid,
        &p->scheduled.reason,
        &p->scheduled.message,
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        pack_text(k, texts[i]);
    pack_stand(&p->stand, k);
    gang_ref_pack(&p->gang, k);
    return p;
}

struct kube_pod *kube_pod_read(const struct json *pod, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct doc d = { .e = e };
    struct kube_pod p = { 0 };
    const struct json *meta = doc_object(&d, pod, "metadata");
    const struct json *spec = doc_object(&d, pod, "spec");
    read_meta(&d, meta, &p);
    if (!p.name[0] || !p.ns[0])
        doc_fail(&d, "it has no name or no namespace");
    read_spec(&d, spec, &p);
    p.grace_ms = grace_ms(&d, meta, spec);
    p.asks = pod_asks(&d, spec, &a);
    read_ports(&d, spec, &a, &p);
    read_claims(&d, doc_array(&d, spec, "volumes"), &a, &p);
    read_where(&d, pod, &a, &p);
    read_status(&d, pod, &a, &p);
    if (d.bad) {
        err_wrap(e, "pod '%.100s/%.100s'", p.ns, p.name);
        return NULL;
    }
    struct pack k = { 0 };
    walk(&k, &p);
    pack_alloc(&k);
    return walk(&k, &p);
}

bool kube_pod_task(const struct kube_pod *p, struct task_id *out)
{
    uint64_t job, run, replica;
    struct err e;
    if (parse_u64(str_of(p->own[POD_OWN_JOB]), UINT64_MAX, &job, &e) < 0 ||
        parse_u64(str_of(p->own[POD_OWN_RUN]), UINT32_MAX, &run, &e) < 0 ||
        parse_u64(str_of(p->own[POD_OWN_REPLICA]), REPLICAS_MAX - 1, &replica, &e) < 0 ||
        job == 0 || run == 0)
        return false;
    *out = (struct task_id){ job, (uint32_t)run, (uint32_t)replica };
    return true;
}

bool kube_pods_clash(const struct kube_pod *a, const struct kube_pod *b)
{
    for (size_t i = 0; i < a->n_ports; i++)
        for (size_t j = 0; j < b->n_ports; j++) {
            const struct kube_port *x = &a->ports[i], *y = &b->ports[j];
            if (x->port == y->port && x->protocol == y->protocol &&
                (!x->ip[0] || !y->ip[0] || strcmp(x->ip, y->ip) == 0))
                return true;
        }
    return false;
}
