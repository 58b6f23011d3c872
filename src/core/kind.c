/* Kinds: nodes of one build, one pool, one reservation and one class. */
#include "core/cell.h"
#include "core/device.h"

/* A place for another kind.  Classes come and go: those that have no machine any more leave theirs. */
static uint32_t kind_place(struct cluster *c)
{
    for (uint32_t i = 0; i < c->kinds; i++) {
        if (c->kind[i].nodes || !c->kind[i].class[0])
            continue;
        for (uint32_t r = 0; r < ROWS; r++)
            free(c->kind[i].row[r].at);
        return i;
    }
    vec_grow(c->kind, c->kinds, c->kind_cap);
    return c->kinds++;
}

/* The kind with these figures, made when it is not there yet. */
static uint32_t kind_like(struct cluster *c, const struct kind *want)
{
    for (uint32_t i = 0; i < c->kinds; i++) {
        const struct kind *k = &c->kind[i];
        if (k->model == want->model && k->pool == want->pool && k->reserved == want->reserved &&
            k->gpu_mem_mib == want->gpu_mem_mib && k->cpu_milli == want->cpu_milli &&
            k->mem_mib == want->mem_mib && k->gpus == want->gpus && k->kit == want->kit &&
            memcmp(k->link, want->link, sizeof want->link) == 0 &&
            strcmp(k->class, want->class) == 0)
            return i;
    }
    struct kind made = *want;
    made.left_ms = made.pool != NONE ? c->pool[made.pool].left_ms : INT64_MAX;
    zones_of_kind(c, &made);
    uint32_t i = kind_place(c);
    c->kind[i] = made;
    c->version++;
    return i;
}

uint32_t kind_of(struct cluster *c, const struct event_node *n, uint32_t model, uint32_t pool)
{
    struct kind want = { .model = model,
                         .pool = pool,
                         .free_ms = INT64_MAX,
                         .gpu_mem_mib = n->gpu_mem_mib,
                         .cpu_milli = n->cpu_milli,
                         .mem_mib = n->mem_mib,
                         .gpus = (uint8_t)n->gpus,
                         .links = 1 };
    for (uint32_t g = 0; g < n->gpus; g++) {
        want.link[g] = n->link[g];
        if (n->link[g] >= want.links)
            want.links = (uint8_t)(n->link[g] + 1);
    }
    if (n->traits.n)
        memcpy(want.class, n->traits.p, n->traits.n);
    kind_set_devices(c, &want, n->devices);
    return kind_like(c, &want);
}

struct kind kind_build(const struct kind *k)
{
    struct kind build = { .model = k->model,
                          .pool = k->pool,
                          .reserved = k->reserved,
                          .free_ms = k->free_ms,
                          .gpu_mem_mib = k->gpu_mem_mib,
                          .cpu_milli = k->cpu_milli,
                          .mem_mib = k->mem_mib,
                          .gpus = k->gpus,
                          .links = k->links,
                          .kit = k->kit };
    memcpy(build.link, k->link, sizeof build.link);
    memcpy(build.class, k->class, sizeof build.class);
    memcpy(build.device, k->device, sizeof build.device);
    memcpy(build.device_n, k->device_n, sizeof build.device_n);
    return build;
}

void change_kind(struct cluster *c, uint32_t node, const struct kind *want)
{
    struct node *n = &c->node[node];
    node_leave_cell(c, node);
    count_node(c, n, false);
    c->kind[n->kind].nodes--;
    n->kind = kind_like(c, want);
    c->kind[n->kind].nodes++;
    c->kind[n->kind].free_ms = want->free_ms;
    c->version++; /* what a kind has machines of may have changed */
    count_node(c, n, true);
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}
