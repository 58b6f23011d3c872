/* Any bytes as a v1 Node: what is kept is whole and in order; what is not is told in one line. */
#include "core/device.h"
#include "engine/kube/devices.h"
#include "engine/kube/where.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check_lists(const struct kube_node *n)
{
    for (size_t i = 0; i < n->n_labels; i++) {
        must(i == 0 || strcmp(n->labels[i - 1].key, n->labels[i].key) <= 0);
        must(kube_node_label(n, n->labels[i].key) != NULL);
        must(!strpbrk(n->labels[i].value, "\t\n"));
    }
    for (size_t i = 0; i < n->n_taints; i++)
        must(n->taints[i].effect < TAINT_EFFECT_COUNT && !strpbrk(n->taints[i].key, "\t\n"));
    must(n->there.n_extended <= EXTENDED_MAX);
    for (size_t i = 0; i < n->there.n_extended; i++)
        must(n->there.extended[i].n > 0 &&
             (i == 0 || strcmp(n->there.extended[i - 1].name, n->there.extended[i].name) < 0));
}

/* Whatever it has, the core takes the text of it, with the GPUs or without. */
static void check_devices(const struct kube_node *n)
{
    struct takens t = { 0 };
    struct err e;
    for (size_t i = 0; i < n->there.n_extended; i += 2)
        takens_move(&t, str_of(n->there.extended[i].name), n->there.extended[i].n / 2, true);
    for (int some = 0; some < 2; some++) {
        AUTO(buf_free) struct buf text = BUF(DEVICES_TEXT_MAX);
        struct takens none = { 0 };
        node_devices(n, "nvidia.com/gpu", 0, some ? &t : &none, &text);
        must(!text.full && devices_check(buf_str(&text), &e) == 0);
    }
    free(t.at);
}

FUZZ_TARGET(data, size)
{
    struct err e = { 0 };
    struct json_doc *d = json_read((struct str){ (const char *)data, size }, &e);
    if (!d)
        return 0;
    e = (struct err){ 0 };
    AUTO(free_p) struct kube_node *n = kube_node_read(json_root(d), NULL, &e);
    json_free(d); /* nothing may be borrowed from it */
    if (!n) {
        must(e.code != ERR_NONE && e.msg[0] && !strchr(e.msg, '\n'));
        return 0;
    }
    struct label_keys keys = { .names = true };
    AUTO(buf_free) struct buf key = BUF(16 << 20);
    struct where_no why = { .kind = WHERE_NO_COUNT };
    char text[256];
    must(n->name[0] && n->gpu.replicas > 0 && n->ready <= KUBE_READY_YES);
    check_lists(n);
    check_devices(n);
    if (!where_matches(NULL, n, &why))
        must(why.kind == WHERE_NO_CORDON || why.kind == WHERE_NO_TAINT);
    must(why.kind == WHERE_NO_COUNT || where_no_text(&why, text)[0]);
    node_class_key(n, &keys, &key);
    must(key.n > 0 && !key.full);
    return 0;
}
