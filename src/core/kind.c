/* Kinds: nodes of one build, one pool, one reservation and one class. */
#include "core/cell.h"
#include "core/device.h"

/* A place for another kind: that of one that has no machine any more, where there is one. */
static uint32_t kind_place(struct cluster *c)
{
    for (uint32_t i = 0; i < c->kinds; i++) {
        if (c->kind[i].nodes)
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

/* What is in the machine: a kind of no pool, no reservation and no class. */
static struct kind build_of(struct cluster *c, const struct event_node *n)
{
    struct kind k = { .model = n->gpus ? names_intern(&c->models, n->model) : 0,
                      .pool = NONE,
                      .free_ms = INT64_MAX,
                      .gpu_mem_mib = n->gpu_mem_mib,
                      .cpu_milli = n->cpu_milli,
                      .mem_mib = n->mem_mib,
                      .gpus = (uint8_t)n->gpus,
                      .links = 1 };
    for (uint32_t g = 0; g < n->gpus; g++) {
        k.link[g] = n->link[g];
        if (n->link[g] >= k.links)
            k.links = (uint8_t)(n->link[g] + 1);
    }
    kind_set_devices(c, &k, n->devices);
    return k;
}

uint32_t kind_of(struct cluster *c, const struct event_node *n, uint32_t pool)
{
    struct kind want = build_of(c, n);
    want.pool = pool;
    if (n->traits.n)
        memcpy(want.class, n->traits.p, n->traits.n);
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

/* Of that kind from now on, and with that much room. */
static void change_to(struct cluster *c, uint32_t node, const struct kind *want, struct room room)
{
    struct node *n = &c->node[node];
    node_leave_cell(c, node);
    count_node(c, n, false);
    c->kind[n->kind].nodes--;
    n->kind = kind_like(c, want);
    c->kind[n->kind].nodes++;
    c->kind[n->kind].free_ms = want->free_ms;
    c->version++; /* what a kind has machines of may have changed */
    n->room = room;
    count_node(c, n, true);
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}

void change_kind(struct cluster *c, uint32_t node, const struct kind *want)
{
    change_to(c, node, want, c->node[node].room);
}

/* ---- a machine that has changed ---- */

static int in_use(const struct event_node *n, const char *what, struct err *e)
{
    err_set(e, ERR_CONFLICT, "node '%.*s': %s that it has no longer is in use", STR_ARG(n->name),
            what);
    return err_hint(e, "it can change when the jobs that use it have ended");
}

/* What is free on the machine as it is now, where the same is used as before.  Devices are in order of
 * their names, so one may have another place. */
static int room_after(const struct cluster *c, const struct node *was, const struct event_node *n,
                      struct room *out, struct err *e)
{
    const struct kind *k = &c->kind[was->kind];
    bool same_model = n->gpu_mem_mib == k->gpu_mem_mib && k->gpus && n->gpus &&
                      str_is(n->model, names_get(&c->models, k->model));
    uint32_t cpu_used = k->cpu_milli - was->room.cpu_milli;
    uint32_t mem_used = k->mem_mib - was->room.mem_mib;
    struct str rest = n->devices;
    struct device d;
    *out = (struct room){ 0 };
    for (uint32_t g = 0; g < GPUS_PER_NODE_MAX; g++) {
        uint32_t used = g < k->gpus ? GPU_MILLI - was->room.gpu[g] : 0;
        if (used && (g >= n->gpus || !same_model))
            return in_use(n, "a GPU", e);
        out->gpu[g] = (uint16_t)(g < n->gpus ? GPU_MILLI - used : 0);
    }
    if (cpu_used > n->cpu_milli || mem_used > n->mem_mib)
        return in_use(n, cpu_used > n->cpu_milli ? "a CPU" : "memory", e);
    out->cpu_milli = n->cpu_milli - cpu_used;
    out->mem_mib = n->mem_mib - mem_used;
    for (uint32_t i = 0; i < DEVICES_EACH && k->device[i]; i++) {
        struct str name = str_of(names_get(&c->devices, k->device[i] - 1u));
        if (devices_count(n->devices, name) + was->room.device[i] < k->device_n[i])
            return in_use(n, "a device", e);
    }
    for (uint32_t i = 0; devices_next(&rest, &d); i++) {
        uint32_t number = names_find(&c->devices, d.name);
        uint32_t at = number == NAME_NONE ? NONE : kind_device(k, (uint8_t)(number + 1));
        uint32_t used = at == NONE ? 0 : (uint32_t)k->device_n[at] - was->room.device[at];
        out->device[i] = (uint16_t)(d.n - used);
    }
    return 0;
}

int cluster_check_change(const struct cluster *c, uint32_t node, const struct event_node *n,
                         struct err *e)
{
    struct room left;
    return check_build(c, n, e) < 0 ? -1 : room_after(c, &c->node[node], n, &left, e);
}

void cluster_change_node(struct cluster *c, uint32_t node, const struct event_node *n)
{
    struct node *nd = &c->node[node];
    struct kind was = kind_build(&c->kind[nd->kind]), want = build_of(c, n);
    struct room left = nd->room;
    struct err e;
    if (room_after(c, nd, n, &left, &e) < 0)
        return; /* it was checked */
    want.pool = was.pool;
    want.reserved = was.reserved;
    want.free_ms = was.free_ms;
    memcpy(want.class, was.class, sizeof want.class);
    c->gpus = c->gpus + want.gpus - was.gpus;
    change_to(c, node, &want, left);
}
