/* Kinds: nodes of one build, one pool and one reservation. */
#include "core/cell.h"

/* The kind with these figures, made when it is not there yet. */
static uint32_t kind_like(struct cluster *c, const struct kind *want)
{
    for (uint32_t i = 0; i < c->kinds; i++) {
        const struct kind *k = &c->kind[i];
        if (k->model == want->model && k->pool == want->pool && k->reserved == want->reserved &&
            k->gpu_mem_mib == want->gpu_mem_mib && k->cpu_milli == want->cpu_milli &&
            k->mem_mib == want->mem_mib && k->gpus == want->gpus &&
            memcmp(k->link, want->link, sizeof want->link) == 0)
            return i;
    }
    struct kind made = *want;
    made.left_ms = made.pool != NONE ? c->pool[made.pool].left_ms : INT64_MAX;
    zones_of_kind(c, &made);
    vec_grow(c->kind, c->kinds, c->kind_cap);
    c->kind[c->kinds] = made;
    c->version++;
    return c->kinds++;
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
    return kind_like(c, &want);
}

/* The node is of the kind that is the same but for pool and reservation. */
void change_kind(struct cluster *c, uint32_t node, uint32_t pool, uint16_t reserved,
                 int64_t free_ms)
{
    struct node *n = &c->node[node];
    const struct kind *was = &c->kind[n->kind];
    struct kind want = { .model = was->model,
                         .pool = pool,
                         .reserved = reserved,
                         .free_ms = free_ms,
                         .gpu_mem_mib = was->gpu_mem_mib,
                         .cpu_milli = was->cpu_milli,
                         .mem_mib = was->mem_mib,
                         .gpus = was->gpus,
                         .links = was->links };
    memcpy(want.link, was->link, sizeof want.link);
    node_leave_cell(c, node);
    count_node(c, n, false);
    c->kind[n->kind].nodes--;
    n->kind = kind_like(c, &want);
    c->kind[n->kind].nodes++;
    c->kind[n->kind].free_ms = free_ms;
    c->version++; /* what a kind has machines of may have changed */
    count_node(c, n, true);
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}
