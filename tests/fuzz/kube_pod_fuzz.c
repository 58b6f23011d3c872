/* Any bytes as a v1 Pod, as a volume, and as an object that tells a gang's size: what is kept is
 * whole, can be matched and compared; what is not is told in one line. */
#include "engine/kube/pod_read.h"

#include "core/device.h"
#include "engine/kube/devices.h"
#include "tests/fuzz/target.h"

static const char node_text[] =
    "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"a\",\"gpus\":\"8\"}},"
    "\"spec\":{\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]}}";

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check_where(const struct where *w)
{
    struct err e;
    struct label_keys keys = { 0 };
    struct where_no why = { .kind = WHERE_NO_COUNT };
    char text[256];
    struct json_doc *d = json_read(STR(node_text), &e);
    AUTO(free_p) struct kube_node *n = kube_node_read(json_root(d), NULL, &e);
    AUTO(free_p) struct where *copy = where_copy(w);
    json_free(d);
    must(where_eq(w, copy) && where_hash(w) == where_hash(copy));
    must(where_keys_add(w, &keys) == (keys.keys.n > 0 || keys.names));
    must(!where_keys_add(w, &keys));
    label_keys_free(&keys);
    if (!where_matches(w, n, &why))
        must(why.kind < WHERE_NO_COUNT && where_no_text(&why, text)[0]);
    must(!where_refusal(w) || why.kind == WHERE_NO_REFUSED);
}

static void check_devices(const struct kube_pod *p)
{
    AUTO(buf_free) struct buf text = BUF(DEVICES_TEXT_MAX), twice = BUF(2 * DEVICES_TEXT_MAX);
    struct err e = { 0 };
    int rc = pod_devices(&p->asks, "nvidia.com/gpu", &text, &e);
    must(rc == 0 || (e.msg[0] && !strchr(e.msg, '\n')));
    must(!text.full && devices_check(buf_str(&text), &e) == 0);
    devices_join(buf_str(&text), buf_str(&text), &twice);
    must(str_eq(buf_str(&text), buf_str(&twice)));
}

static void check_pod(const struct kube_pod *p)
{
    struct task_id t;
    must(p->name[0] && p->ns[0] && p->phase < POD_PHASE_COUNT);
    must(p->grace_ms >= 0 && strlen(p->message) <= POD_PROSE_MAX);
    must(p->asks.n_extended <= EXTENDED_MAX && p->asks.cpu_milli <= INT64_MAX);
    for (size_t i = 1; i < p->n_claims; i++)
        must(strcmp(p->claims[i - 1], p->claims[i]) < 0);
    for (size_t i = 0; i < p->n_ports; i++)
        must(p->ports[i].port > 0);
    must(kube_pods_clash(p, p) == (p->n_ports > 0));
    must((p->gang.id.kind == GANG_ONE) == (p->gang.id.name[0] == '\0'));
    must(p->gang.min > 0 || p->gang.object != GANG_OBJ_NONE);
    must(!where_refusal(p->where) || p->refusal[0]);
    must(!kube_pod_task(p, &t) || (t.job > 0 && t.replica < REPLICAS_MAX));
    check_where(p->where);
    check_devices(p);
}

static void check_others(const struct json *root)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e = { 0 };
    struct doc d = { .e = &e };
    const struct where *volume = where_of_volume(&d, root, &a);
    must(!d.bad || (!volume && e.msg[0]));
    check_where(where_join(NULL, &volume, 1, &a));
    for (int i = 0; i < GANG_OBJECT_COUNT; i++) {
        struct gang_size s = { 0 };
        if (gang_size_read((enum gang_object)i, root, "workers", &s, &e) == 0)
            must(s.min > 0 && s.name[0]);
        else
            must(e.msg[0] && !strchr(e.msg, '\n'));
    }
}

FUZZ_TARGET(data, size)
{
    struct err e = { 0 };
    struct json_doc *d = json_read((struct str){ (const char *)data, size }, &e);
    if (!d)
        return 0;
    e = (struct err){ 0 };
    check_others(json_root(d));
    AUTO(free_p) struct kube_pod *p = kube_pod_read(json_root(d), &e);
    json_free(d); /* nothing may be borrowed from it */
    if (p)
        check_pod(p);
    else
        must(e.code != ERR_NONE && e.msg[0] && !strchr(e.msg, '\n'));
    return 0;
}
