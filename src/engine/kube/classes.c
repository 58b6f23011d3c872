/* Classes of machines: those that no pod we know of can tell apart are one, and the scheduler hears of
 * classes only.  What a pod asks of its machine becomes the list of classes that have it. */
#include <stdio.h>

#include "engine/kube/state.h"

#define KEY_MAX (64u << 10)
#define TRAITS_MAX (64u << 10)

/* Pods of ours ask for nothing, and bear the taint that keeps machines with GPUs free for those who use them. */
void classes_init(struct kube *k)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf text = BUF(1024);
    struct json_out w = { .b = &text };
    struct err e = { 0 };
    struct doc d = { .e = &e };
    json_begin(&w, NULL, '{');
    json_begin(&w, "tolerations", '[');
    json_begin(&w, NULL, '{');
    json_put_str(&w, "key", str_of(k->config.site.gpu));
    json_put_str(&w, "operator", STR("Exists"));
    json_end(&w, '}');
    json_end(&w, ']');
    json_end(&w, '}');
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&text), &e);
    k->classes.own = where_copy(doc ? where_of_pod(&d, json_root(doc), &a) : NULL);
    k->classes.own_traits = BUF(TRAITS_MAX);
}

static uint32_t number_of(struct kube *k, const struct machine *m)
{
    struct classes *c = &k->classes;
    AUTO(buf_free) struct buf key = BUF(KEY_MAX);
    node_class_key(m->node, &c->keys, &key);
    uint32_t number = names_intern(&c->texts, buf_str(&key));
    while (c->cap <= number) {
        size_t cap = MAX(c->cap * 2, (size_t)16);
        c->at = xrealloc(c->at, cap, sizeof *c->at);
        for (size_t i = c->cap; i < cap; i++) {
            c->at[i] = (struct class_of){ .first = NONE };
            snprintf(c->at[i].name, sizeof c->at[i].name, "c%zu", i);
        }
        c->cap = cap;
    }
    return number;
}

void classes_leave(struct kube *k, struct machine *m)
{
    struct class_of *was = m->class == NONE ? NULL : &k->classes.at[m->class];
    if (!was)
        return;
    was->nodes--;
    m->class = NONE;
    k->classes.changed |= was->nodes == 0;
    if (was->nodes == 0 || k->machines.at[was->first] != m)
        return;
    for (uint32_t i = 0; i < k->machines.n; i++)
        if (k->machines.at[i]->node &&
            k->machines.at[i]->class == (uint32_t)(was - k->classes.at)) {
            was->first = i;
            return;
        }
}

void classes_place(struct kube *k, struct machine *m)
{
    uint32_t number = number_of(k, m);
    if (m->class == number)
        return;
    classes_leave(k, m);
    m->class = number;
    struct class_of *now = &k->classes.at[number];
    if (now->nodes++ == 0) {
        now->first = names_find(&k->machines.names, str_of(m->name));
        k->classes.changed = true;
    }
    m->dirty = true;
}

void classes_know(struct kube *k, const struct where *w)
{
    if (!where_keys_add(w, &k->classes.keys))
        return;
    for (size_t i = 0; i < k->machines.n; i++)
        if (k->machines.at[i]->node)
            classes_place(k, k->machines.at[i]);
    k->classes.changed = true;
}

/* "": every class; "-": none of them, whatever comes. */
void classes_traits(const struct kube *k, const struct where *w, struct buf *out)
{
    const struct classes *c = &k->classes;
    bool all = true;
    for (size_t i = 0; i < c->texts.n; i++) {
        if (c->at[i].nodes == 0)
            continue;
        struct where_no no;
        if (where_matches(w, k->machines.at[c->at[i].first]->node, &no))
            buf_printf(out, "%s%s", out->n ? "|" : "", c->at[i].name);
        else
            all = false;
    }
    if (all)
        buf_truncate(out, 0);
    else if (out->n == 0)
        buf_addc(out, '-');
}

void classes_tell_own(struct kube *k, bool again)
{
    struct classes *c = &k->classes;
    AUTO(buf_free) struct buf now = BUF(TRAITS_MAX);
    classes_traits(k, c->own, &now);
    if (c->own_told && !again && str_eq(buf_str(&now), buf_str(&c->own_traits)))
        return;
    buf_truncate(&c->own_traits, 0);
    buf_add(&c->own_traits, buf_str(&now));
    c->own_told = true;
    kube_tell(k, &(struct engine_event){ .kind = ENGINE_TRAITS, .traits = buf_str(&now) });
}

void classes_free(struct kube *k)
{
    label_keys_free(&k->classes.keys);
    names_free(&k->classes.texts);
    free(k->classes.at);
    free(k->classes.own);
    buf_free(&k->classes.own_traits);
}
