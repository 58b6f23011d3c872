#include "engine/kube/node_read.h"

#include "engine/kube/node_gpu.h"

static const char *const effect_names[] = {
#define X(id, name) [TAINT_##id] = name,
    TAINT_EFFECTS(X)
#undef X
};

const char *taint_effect_name(enum taint_effect f)
{
    return f < TAINT_EFFECT_COUNT ? effect_names[f] : "?";
}

bool taint_effect_parse(const char *name, enum taint_effect *out)
{
    for (int i = 0; i < TAINT_EFFECT_COUNT; i++)
        if (strcmp(effect_names[i], name) == 0) {
            *out = (enum taint_effect)i;
            return true;
        }
    return false;
}

static int by_key(const void *a, const void *b)
{
    const struct kube_label *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static void read_labels(struct doc *d, const struct json *labels, struct arena *a,
                        struct kube_node *out)
{
    size_t n = json_members(labels);
    if (n > DOC_LIST_MAX) {
        doc_fail(d, "more than %d labels", DOC_LIST_MAX);
        return;
    }
    out->labels = arena_array(a, struct kube_label, n + 1);
    for (struct json_member m = { 0 }; json_next_member(labels, &m);) {
        struct kube_label *l = &out->labels[out->n_labels++];
        bool plain = strlen(m.key.p) == m.key.n && m.key.n <= DOC_TEXT_MAX;
        for (size_t i = 0; i < m.key.n; i++)
            plain &= (unsigned char)m.key.p[i] >= ' ';
        if (!plain)
            doc_fail(d, "a label has no proper name");
        *l = (struct kube_label){ plain ? m.key.p : "", doc_as_text(d, m.value, m.key.p) };
    }
    qsort(out->labels, out->n_labels, sizeof *out->labels, by_key);
}

static int by_taint(const void *a, const void *b)
{
    const struct kube_taint *x = a, *y = b;
    int key = strcmp(x->key, y->key), value = strcmp(x->value, y->value);
    return key ? key : value ? value : (int)x->effect - (int)y->effect;
}

static void read_taints(struct doc *d, const struct json *taints, struct arena *a,
                        struct kube_node *out)
{
    out->taints = arena_array(a, struct kube_taint, json_len(taints) + 1);
    DOC_EACH(v, taints)
    {
        struct kube_taint *t = &out->taints[out->n_taints++];
        const char *effect = doc_text(d, v, "effect");
        *t = (struct kube_taint){ .key = doc_text(d, v, "key"), .value = doc_text(d, v, "value") };
        if (!taint_effect_parse(effect, &t->effect))
            doc_fail(d, "taint '%.60s' has an unknown effect '%.60s'", t->key, effect);
    }
    qsort(out->taints, out->n_taints, sizeof *out->taints, by_taint);
}

static void read_ready(struct doc *d, const struct json *status, struct kube_node *out)
{
    const struct json *c = doc_find_by(doc_array(d, status, "conditions"), "type", "Ready");
    const char *is = doc_text(d, c, "status");
    out->ready = strcmp(is, "True") == 0  ? KUBE_READY_YES
               : strcmp(is, "False") == 0 ? KUBE_READY_NO
                                          : KUBE_READY_UNKNOWN;
    out->ready_since_ms = doc_time_ms(d, c, "lastTransitionTime");
}

const char *kube_node_label(const struct kube_node *n, const char *key)
{
    if (n->n_labels == 0)
        return NULL;
    struct kube_label want = { key, "" };
    const struct kube_label *l = bsearch(&want, n->labels, n->n_labels, sizeof want, by_key);
    return l ? l->value : NULL;
}

static const char *label_or_none(const struct kube_node *n, const char *key)
{
    const char *value = kube_node_label(n, key);
    return value ? value : "";
}

static struct kube_node *walk(struct pack *k, struct kube_node *from)
{
    struct kube_node *n = pack_bytes(k, from, sizeof *from);
    pack_array(k, n->labels, n->n_labels);
    pack_array(k, n->taints, n->n_taints);
    kube_amounts_pack(&n->there, k);
    for (size_t i = 0; i < n->n_labels; i++) {
        pack_text(k, &n->labels[i].key);
        pack_text(k, &n->labels[i].value);
    }
    for (size_t i = 0; i < n->n_taints; i++) {
        pack_text(k, &n->taints[i].key);
        pack_text(k, &n->taints[i].value);
    }
    pack_text(k, &n->name);
    pack_text(k, &n->uid);
    pack_text(k, &n->pool);
    pack_text(k, &n->net_switch);
    pack_text(k, &n->stage);
    pack_text(k, &n->gpu.model);
    pack_text(k, &n->gpu.slice);
    return n;
}

struct kube_node *kube_node_read(const struct json *node, const char *switch_label, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct doc d = { .e = e };
    struct amount_list list = { 0 };
    const struct json *meta = doc_object(&d, node, "metadata");
    const struct json *spec = doc_object(&d, node, "spec");
    const struct json *status = doc_object(&d, node, "status");
    struct kube_node n = {
        .name = doc_text(&d, meta, "name"),
        .uid = doc_text(&d, meta, "uid"),
        .created_ms = doc_time_ms(&d, meta, "creationTimestamp"),
        .deleting = doc_has(meta, "deletionTimestamp"),
        .unschedulable = doc_bool(&d, spec, "unschedulable"),
    };
    if (!n.name[0])
        doc_fail(&d, "it has no name");
    read_labels(&d, doc_object(&d, meta, "labels"), &a, &n);
    read_taints(&d, doc_array(&d, spec, "taints"), &a, &n);
    read_ready(&d, status, &n);
    amount_list_read(&d, doc_object(&d, status, "allocatable"), &list);
    n.there = kube_amounts_of(&d, &list, false, &a);
    n.gpu = node_gpu_of(&n, &a);
    n.pool = label_or_none(&n, NODE_LABEL_POOL);
    n.stage = label_or_none(&n, NODE_LABEL_STAGE);
    n.net_switch = label_or_none(&n, switch_label ? switch_label : NODE_LABEL_RACK);
    if (d.bad) {
        err_wrap(e, "node '%.100s'", n.name);
        return NULL;
    }
    struct pack k = { 0 };
    walk(&k, &n);
    pack_alloc(&k);
    return walk(&k, &n);
}
