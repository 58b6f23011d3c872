#include "core/cluster.h"

#include <stdio.h>

#include "core/cell.h"
#include "core/device.h"

void cluster_init(struct cluster *c)
{
    *c = (struct cluster){ .cell_free = NONE };
    for (int m = 0; m < MODELS_MAX; m++)
        c->model_cost_milli[m] = 1000;
    names_intern(&c->kits, STR("")); /* number 0: no devices */
}

void cluster_free(struct cluster *c)
{
    for (uint32_t k = 0; k < c->kinds; k++)
        for (uint32_t r = 0; r < ROWS; r++)
            free(c->kind[k].row[r].at);
    for (uint32_t i = 0; i < c->cells; i++)
        free(c->cell[i].node);
    for (uint32_t i = 0; i < c->nodes; i++)
        free(c->node[i].job);
    for (uint32_t i = 0; i < c->nodes; i++)
        free(c->node[i].name);
    free(c->kind);
    free(c->cell);
    free(c->node);
    for (uint32_t i = 0; i < c->switches.n; i++)
        free(c->net_switch[i].node);
    free(c->net_switch);
    for (uint32_t i = 0; i < c->pool_names.n; i++)
        free(c->pool[i].node);
    free(c->pool);
    free(c->freed);
    map_free(&c->cell_by_hash);
    names_free(&c->models);
    names_free(&c->switches);
    names_free(&c->node_names);
    names_free(&c->pool_names);
    names_free(&c->devices);
    names_free(&c->kits);
    zones_free(&c->zones);
    zones_free(&c->traits);
}

/* ---- nodes ---- */

static uint64_t room_gpu_milli(const struct room *m)
{
    uint64_t sum = 0;
    for (int g = 0; g < GPUS_PER_NODE_MAX; g++)
        sum += m->gpu[g];
    return sum;
}

/* The cluster's totals count the nodes that are offered. */
void count_node(struct cluster *c, const struct node *n, bool add)
{
    const struct kind *k = &c->kind[n->kind];
    const uint64_t total[] = { (uint64_t)k->gpus * GPU_MILLI, k->cpu_milli, k->mem_mib };
    const uint64_t room[] = { room_gpu_milli(&n->room), n->room.cpu_milli, n->room.mem_mib };
    if (!node_is_offered(c, n))
        return;
    for (size_t r = 0; r < ARRAY_LEN(total); r++) {
        c->total.of[r] = add ? c->total.of[r] + total[r] : c->total.of[r] - total[r];
        c->free.of[r] = add ? c->free.of[r] + room[r] : c->free.of[r] - room[r];
    }
    if (k->gpus)
        c->model_gpus[k->model] += add ? k->gpus : -(uint32_t)k->gpus;
}

int check_build(const struct cluster *c, const struct event_node *n, struct err *e)
{
    if (n->gpus > GPUS_PER_NODE_MAX)
        return err_set(e, ERR_INVALID, "node '%.*s': %u GPUs; at most %d are supported",
                       STR_ARG(n->name), n->gpus, GPUS_PER_NODE_MAX);
    if (n->gpus && n->model.n == 0)
        return err_set(e, ERR_INVALID, "node '%.*s' has GPUs but no GPU model", STR_ARG(n->name));
    for (uint32_t g = 0; g < n->gpus; g++)
        if (n->link[g] >= n->gpus)
            return err_set(e, ERR_INVALID,
                           "node '%.*s': link group %u of GPU %u; groups are numbered from 0",
                           STR_ARG(n->name), n->link[g], g);
    if (cluster_check_devices(c, n->devices, e) < 0)
        return err_wrap(e, "node '%.*s'", STR_ARG(n->name));
    if (n->gpus && c->models.n >= MODELS_MAX && names_find(&c->models, n->model) == NAME_NONE)
        return err_set(e, ERR_TOO_LARGE, "node '%.*s': more than %d GPU models in one cluster",
                       STR_ARG(n->name), MODELS_MAX);
    return 0;
}

static int check_node(const struct cluster *c, const struct event_node *n, struct err *e)
{
    if (n->name.n == 0 || n->name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "a node needs a name of 1 to %d bytes", NAME_MAX_BYTES);
    if (names_find(&c->node_names, n->name) != NAME_NONE) {
        err_set(e, ERR_CONFLICT, "node '%.*s' is enrolled already", STR_ARG(n->name));
        return err_hint(e, "give each machine its own name");
    }
    if (n->pool.n && names_find(&c->pool_names, n->pool) == NAME_NONE)
        return err_set(e, ERR_NOT_FOUND, "node '%.*s': there is no pool '%.*s'", STR_ARG(n->name),
                       STR_ARG(n->pool));
    return traits_check_name(n->name, n->traits, e) < 0 ? -1 : check_build(c, n, e);
}

static uint32_t switch_of(struct cluster *c, struct str name, uint32_t node)
{
    if (name.n == 0)
        return NONE;
    uint32_t i = names_find(&c->switches, name);
    if (i == NAME_NONE) {
        vec_grow(c->net_switch, c->switches.n, c->net_switch_cap);
        i = names_intern(&c->switches, name);
        c->net_switch[i] = (struct net_switch){ 0 };
    }
    struct net_switch *sw = &c->net_switch[i];
    vec_grow(sw->node, sw->n, sw->cap);
    sw->node[sw->n++] = node;
    return i;
}

int cluster_add_node(struct cluster *c, const struct event_node *n, struct err *e)
{
    if (check_node(c, n, e) < 0)
        return -1;
    uint32_t i = names_intern(&c->node_names, n->name);
    vec_grow(c->node, c->nodes, c->node_cap);
    c->nodes++;
    struct node *nd = &c->node[i];
    *nd = (struct node){
        .name = xcalloc(1, n->name.n + 1), .cell = NONE, .kept = { .job = NONE }, .state = NODE_UP
    };
    memcpy(nd->name, n->name.p, n->name.n);
    nd->net_switch = switch_of(c, n->net_switch, i);
    nd->kind = kind_of(c, n, pool_of(c, n->pool, i));
    c->kind[nd->kind].nodes++;
    nd->room = kind_room(&c->kind[nd->kind]);
    c->gpus += n->gpus;
    count_node(c, nd, true);
    node_enter_cell(c, i);
    node_mark_freed(c, i);
    return 0;
}

int cluster_set_model(struct cluster *c, const struct event_model *m, struct err *e)
{
    if (m->name.n == 0 || m->name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "model: a name of 1 to %d bytes is needed", NAME_MAX_BYTES);
    if (m->cost_milli > MODEL_COST_MAX)
        return err_set(e, ERR_INVALID, "model '%.*s': cost_milli is %u; at most %u",
                       STR_ARG(m->name), m->cost_milli, MODEL_COST_MAX);
    uint32_t i = names_find(&c->models, m->name);
    if (i == NAME_NONE && c->models.n >= MODELS_MAX)
        return err_set(e, ERR_TOO_LARGE, "more than %d GPU models in one cluster", MODELS_MAX);
    i = names_intern(&c->models, m->name);
    c->model_cost_milli[i] = m->cost_milli;
    return 0;
}

void cluster_set_state(struct cluster *c, uint32_t node, enum node_state state)
{
    struct node *n = &c->node[node];
    node_leave_cell(c, node);
    count_node(c, n, false);
    n->state = (uint8_t)state;
    count_node(c, n, true);
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}

struct node_aside node_aside(const struct node *n)
{
    return (struct node_aside){ .room = n->room,
                                .promised = n->promised,
                                .kept = n->kept,
                                .promises = n->promises,
                                .state = n->state };
}

void cluster_swap(struct cluster *c, uint32_t node, struct node_aside *with)
{
    struct node *n = &c->node[node];
    struct node_aside was = node_aside(n);
    node_leave_cell(c, node);
    count_node(c, n, false);
    n->room = with->room;
    n->promised = with->promised;
    n->kept = with->kept;
    n->promises = with->promises;
    n->state = with->state;
    count_node(c, n, true);
    node_enter_cell(c, node);
    *with = was;
}

void cluster_keep(struct cluster *c, uint32_t node, uint32_t job, const struct request *r,
                  uint32_t replicas)
{
    struct node *n = &c->node[node];
    const struct kind *k = &c->kind[n->kind];
    uint32_t gpus = r->gpus * replicas;
    if (request_shares_gpu(r)) { /* a share does not cross GPUs */
        uint32_t per_gpu = GPU_MILLI / MAX(kind_share_milli(k, r), 1u);
        gpus = (replicas + per_gpu - 1) / per_gpu;
    }
    bool linked = r->linked && k->links > 1;
    if (linked && replicas > 1) /* several groups: which GPUs get free decides, so keep all */
        gpus = k->gpus;
    node_leave_cell(c, node);
    n->kept = (struct kept){
        .job = job,
        .gpus = MIN(gpus, (uint32_t)k->gpus),
        .cpu_milli = r->cpu_milli * replicas,
        .mem_mib = r->mem_mib * replicas,
        .linked = linked && replicas == 1,
    };
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++) {
        uint32_t at = kind_device(k, r->device[i]);
        if (at != NONE)
            n->kept.device[at] =
                (uint16_t)MIN((uint32_t)r->device_n[i] * replicas, (uint32_t)UINT16_MAX);
    }
    node_enter_cell(c, node);
}

void cluster_unkeep(struct cluster *c, uint32_t node)
{
    node_leave_cell(c, node);
    c->node[node].kept = (struct kept){ .job = NONE };
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}

void cluster_promise(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n,
                     bool promise)
{
    for (uint32_t i = 0; i < n; i++) {
        struct node *nd = &c->node[s[i].node];
        const struct kind *k = &c->kind[nd->kind];
        node_leave_cell(c, s[i].node);
        if (promise)
            room_give(k, &nd->promised, r, s[i].gpu_mask, s[i].milli);
        else
            room_take(k, &nd->promised, r, s[i].gpu_mask, s[i].milli);
        nd->promises = promise ? nd->promises + 1 : nd->promises - 1;
        node_enter_cell(c, s[i].node);
        if (!promise)
            node_mark_freed(c, s[i].node);
    }
}

void cluster_note_job(struct cluster *c, uint32_t job, const struct slot *s, uint32_t n, bool holds)
{
    for (uint32_t i = 0; i < n; i++) {
        struct node *nd = &c->node[s[i].node];
        if (i && s[i].node == s[i - 1].node)
            continue;
        c->holding = holds ? c->holding + 1 : c->holding - 1;
        if (holds) {
            vec_grow(nd->job, nd->jobs, nd->job_cap);
            nd->job[nd->jobs++] = job;
            continue;
        }
        uint32_t at = 0;
        while (nd->job[at] != job)
            at++;
        nd->job[at] = nd->job[--nd->jobs];
    }
}

uint64_t cluster_intern_models(struct cluster *c, struct str list)
{
    uint64_t bits = 0;
    while (list.n) {
        struct str one;
        str_cut(list, '|', &one, &list);
        bits |= UINT64_C(1) << names_intern(&c->models, str_trim(one));
    }
    return bits;
}

int cluster_parse_models(const struct cluster *c, struct str list, uint64_t *out_bits,
                         struct err *e)
{
    uint64_t bits = 0;
    while (list.n) {
        struct str one;
        str_cut(list, '|', &one, &list);
        uint32_t m = names_find(&c->models, str_trim(one));
        if (m == NAME_NONE) {
            err_set(e, ERR_INVALID, "no node has a GPU of model '%.*s'", STR_ARG(one));
            char known[160] = "";
            size_t at = 0;
            for (uint32_t i = 0; i < c->models.n && at < sizeof known - 1; i++)
                at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                                       names_get(&c->models, i));
            err_about(e, "resources.gpu_type");
            return err_hint(e, "known models: %s", known);
        }
        bits |= UINT64_C(1) << m;
    }
    *out_bits = bits;
    return 0;
}

/* ---- taking and giving back ---- */

static void change(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n,
                   bool take)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t node = s[i].node;
        struct node *nd = &c->node[node];
        const struct kind *k = &c->kind[nd->kind];
        node_leave_cell(c, node);
        count_node(c, nd, false);
        for (; i < n && s[i].node == node; i++) {
            if (take)
                room_take(k, &nd->room, r, s[i].gpu_mask, s[i].milli);
            else
                room_give(k, &nd->room, r, s[i].gpu_mask, s[i].milli);
        }
        count_node(c, nd, true);
        node_enter_cell(c, node);
        if (!take)
            node_mark_freed(c, node);
    }
}

void cluster_take(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n)
{
    change(c, r, s, n, true);
}

void cluster_give(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n)
{
    change(c, r, s, n, false);
}
