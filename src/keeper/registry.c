#include "keeper/registry.h"

#include "keeper/life.h"

/* Names with one hash are a chain; its first task is in the map. */
static struct task *chain_head(const struct registry *r, uint64_t hash)
{
    uint64_t value;
    return map_get(&r->by_name, hash, &value) ? (struct task *)(uintptr_t)value : NULL;
}

static void set_head(struct registry *r, uint64_t hash, struct task *t)
{
    if (t)
        map_set(&r->by_name, hash, (uint64_t)(uintptr_t)t);
    else
        map_remove(&r->by_name, hash);
}

struct task *registry_find(const struct registry *r, const char *name)
{
    struct task *t = chain_head(r, str_hash(str_of(name)));
    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

bool registry_full(const struct registry *r)
{
    return r->n >= REGISTRY_MAX;
}

void registry_add(struct registry *r, struct task *t)
{
    uint64_t hash = str_hash(str_of(t->name));
    vec_grow(r->all, r->n, r->cap);
    t->slot = r->n;
    r->all[r->n++] = t;
    t->next = chain_head(r, hash);
    set_head(r, hash, t);
}

void registry_remove(struct registry *r, struct task *t)
{
    uint64_t hash = str_hash(str_of(t->name));
    struct task *head = chain_head(r, hash), **at = &head;
    while (*at && *at != t)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = t->next;
    set_head(r, hash, head);
    r->all[t->slot] = r->all[--r->n];
    r->all[t->slot]->slot = t->slot;
    for (size_t i = 0; i < r->n_waiting; i++) {
        size_t place = (r->first + i) % REGISTRY_MAX;
        if (r->waiting[place] == t)
            r->waiting[place] = NULL;
    }
}

void registry_clear(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++)
        task_free(r->all[i]);
    free(r->all);
    free(r->waiting);
    map_free(&r->by_name);
    *r = (struct registry){ 0 };
}

void registry_wait(struct registry *r, struct task *t)
{
    if (!r->waiting)
        r->waiting = xcalloc(REGISTRY_MAX, sizeof *r->waiting);
    if (r->n_waiting == REGISTRY_MAX)
        abort(); /* no more tasks than that are known */
    r->waiting[(r->first + r->n_waiting++) % REGISTRY_MAX] = t;
}

struct task *registry_next(struct registry *r)
{
    while (r->n_waiting) {
        struct task *t = r->waiting[r->first];
        r->first = (r->first + 1) % REGISTRY_MAX;
        r->n_waiting--;
        if (t && task_state(t) == TASK_QUEUED)
            return t;
    }
    return NULL;
}
