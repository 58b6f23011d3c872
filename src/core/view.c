/* Copies of what is inside, for reports and tests. */
#include "core/state.h"

bool core_share(const struct core *c, share_id id, int64_t now_ms, struct share_view *out)
{
    if (id.v >= c->shares.n)
        return false;
    const struct share *s = &c->shares.at[id.v];
    *out = (struct share_view){
        .name = s->name,
        .parent = { s->parent },
        .is_user = s->is_user,
        .depth = s->depth,
        .weight_milli = s->weight_milli,
        .guarantee_milli = s->guarantee_milli,
        .cost_milli = s->cost_milli,
        .past_milli = share_past_milli(&c->shares, id.v, now_ms),
        .used = s->used,
        .limit = s->limit,
        .waiting = s->waiting,
        .removed = s->removed,
        .closed = (enum reason)s->closed,
        .pools = "",
    };
    if (!s->rules)
        return true;
    out->until_ms = s->rules->until_ms;
    out->pools = s->rules->pools ? s->rules->pools : "";
    out->model_limits = s->rules->caps;
    out->budget_gpu_milli_ms = s->rules->budget.most;
    out->spent_gpu_milli_ms = rules_spent(s->rules, now_ms);
    out->budget_from_ms = s->rules->budget.from_ms;
    out->budget_until_ms = s->rules->budget.until_ms;
    return true;
}

bool core_share_model(const struct core *c, share_id id, uint32_t i, struct share_model *out)
{
    const struct rules *r = id.v < c->shares.n ? c->shares.at[id.v].rules : NULL;
    if (!r || i >= r->caps)
        return false;
    *out = (struct share_model){ r->cap[i].names, r->cap[i].limit_milli, r->cap[i].used_milli };
    return true;
}

static void put_pool(const struct core *c, const struct kind *k, struct node_view *out)
{
    out->pool = "";
    out->open = k->left_ms >= 0;
    out->closes_ms = out->opens_ms = INT64_MAX;
    if (k->pool == NONE)
        return;
    const struct pool *p = &c->cluster.pool[k->pool];
    out->pool = names_get(&c->cluster.pool_names, k->pool);
    if (out->open)
        out->closes_ms = p->change_ms;
    else
        out->opens_ms = p->change_ms;
}

bool core_node(const struct core *c, node_id id, struct node_view *out)
{
    if (id.v >= c->cluster.nodes)
        return false;
    const struct node *n = &c->cluster.node[id.v];
    const struct kind *k = &c->cluster.kind[n->kind];
    *out = (struct node_view){
        .name = n->name,
        .model = k->gpus ? names_get(&c->cluster.models, k->model) : "",
        .state = (enum node_state)n->state,
        .gpus = k->gpus,
        .cpu_milli = k->cpu_milli,
        .mem_mib = k->mem_mib,
        .cpu_free_milli = n->room.cpu_milli,
        .mem_free_mib = n->room.mem_mib,
        .kept = n->kept.job != NONE,
        .reserved = k->reserved,
        .traits = k->class,
        .devices = names_get(&c->cluster.kits, k->kit),
    };
    memcpy(out->device_free, n->room.device, sizeof out->device_free);
    memcpy(out->gpu_free, n->room.gpu, sizeof out->gpu_free);
    put_pool(c, k, out);
    return true;
}

static enum reason why_waits(const struct core *c, const struct job *j)
{
    enum reason why = queue_why(&c->queue, &c->shapes, j->group);
    const struct request *r = &c->shapes.at[j->shape].request;
    bool allowed = false, matches = false, in_zone = false;
    if (why == WHY_ROOM && r->reservation &&
        reservation_at(c, r->reservation)->from_ms > c->wall_ms)
        return WHY_RESERVED;
    for (uint32_t k = 0; why == WHY_ROOM && k < c->cluster.kinds; k++) {
        bool allows = kind_allows(&c->cluster.kind[k], r);
        allowed = allowed || allows;
        matches = matches || (allows && kind_matches(&c->cluster.kind[k], r));
        in_zone = in_zone || (allows && kind_in_zone(&c->cluster.kind[k], r));
        if (kind_takes(&c->cluster.kind[k], r))
            return why;
    }
    return why != WHY_ROOM ? why
         : in_zone         ? WHY_WINDOW
         : matches         ? WHY_POOLS
         : allowed         ? WHY_NO_MATCH
                           : WHY_TOO_LARGE;
}

static enum reason why_not(const struct core *c, const struct job *j, const struct later *l)
{
    if (j->group != NONE)
        return why_waits(c, j);
    if (j->promised)
        return WHY_PROMISED;
    if (j->state == JOB_QUEUED && l)
        return l->open || l->never ? WHY_AFTER : WHY_BEGIN;
    return j->state == JOB_FROZEN ? WHY_FROZEN : WHY_HELD;
}

/* As it was submitted. */
static struct request request_of(const struct core *c, const struct job *j)
{
    struct request r = c->shapes.at[j->shape].request;
    r.stay = 0;
    r.zone = r.traits = 0;
    return r;
}

bool core_job(const struct core *c, job_id id, struct job_view *out)
{
    uint32_t job = queue_find(&c->queue, id.v);
    if (job == NONE)
        return false;
    const struct job *j = &c->queue.job[job];
    const struct later *l = j->later ? later_of(c, id.v) : NULL;
    *out = (struct job_view){
        .leaf = { j->leaf },
        .state = (enum job_state)j->state,
        .priority = (enum priority)j->priority,
        .request = request_of(c, j),
        .submit_ms = j->submit_ms,
        .stated_ms = j->stated_ms,
        .eta = j->eta,
        .awake = j->awake,
        .is_stated = j->is_stated,
        .since_ms = j->since_ms,
        .begin_ms = l && later_is_early(c, l) ? l->begin_ms : 0,
        .afters = l && !l->never ? l->open : 0,
        .why = why_not(c, j, l),
        .traits = traits_text(c, &c->shapes.at[j->shape].request),
        .slots = j->held ? j->held->slot : NULL,
        .n = j->held ? j->held->n : 0,
    };
    return true;
}

/* The first of its machines that could run the other: there it is counted. */
static uint32_t counted_on(const struct core *c, const struct held *h, const struct request *r)
{
    for (uint32_t i = 0; i < h->n; i++) {
        const struct kind *k = &c->cluster.kind[c->cluster.node[h->slot[i].node].kind];
        if (kind_allows(k, r) && kind_in_zone(k, r))
            return h->slot[i].node;
    }
    return NONE;
}

uint32_t core_holders(const struct core *c, job_id waits, job_id *out, uint32_t max)
{
    uint32_t job = queue_find(&c->queue, waits.v), n = 0;
    if (job == NONE)
        return 0;
    const struct request *r = &c->shapes.at[c->queue.job[job].shape].request;
    for (uint32_t i = 0; i < c->cluster.nodes; i++)
        for (uint32_t k = 0; k < c->cluster.node[i].jobs; k++) {
            const struct job *j = &c->queue.job[c->cluster.node[i].job[k]];
            if (counted_on(c, j->held, r) == i && n++ < max)
                out[n - 1].v = j->id;
        }
    return n;
}

static bool overstays(const struct cluster *cl, const struct held *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (cl->kind[cl->node[h->slot[i].node].kind].left_ms < 0)
            return true;
    return false;
}

struct core_totals core_totals(const struct core *c)
{
    struct core_totals t = {
        .total = c->cluster.total,
        .free = c->cluster.free,
        .waiting = c->queue.waiting,
        .nodes = c->cluster.nodes,
        .shares = c->shares.n,
        .cells = c->cluster.cells_live,
    };
    for (uint32_t i = 0; i < c->queue.jobs && c->cluster.windows; i++)
        t.overstays += c->queue.job[i].held && overstays(&c->cluster, c->queue.job[i].held);
    for (uint32_t i = 0; i < c->claims; i++)
        t.kept_nodes += c->claim[i].n;
    for (uint32_t i = 0; i < c->shapes.n; i++)
        t.shapes += c->shapes.at[i].refs > 0;
    return t;
}

/* ---- the audit: every sum, counted again from nothing ---- */

/* Takes the slot out of its node's room; what is not there was given out twice. */
static int audit_slot(const struct cluster *cl, const struct request *r, const struct slot *s,
                      struct room *m, struct err *e)
{
    const struct room before = *m;
    room_take(&cl->kind[cl->node[s->node].kind], m, r, s->gpu_mask, s->milli);
    for (int g = 0; g < GPUS_PER_NODE_MAX; g++)
        if (m->gpu[g] > before.gpu[g])
            return err_set(e, ERR_INTERNAL, "node %s: GPU %d is given out twice",
                           cl->node[s->node].name, g);
    if (m->cpu_milli > before.cpu_milli || m->mem_mib > before.mem_mib)
        return err_set(e, ERR_INTERNAL, "node %s: CPU or memory is given out twice",
                       cl->node[s->node].name);
    for (int i = 0; i < DEVICES_EACH; i++)
        if (m->device[i] > before.device[i])
            return err_set(e, ERR_INTERNAL, "node %s: devices are given out twice",
                           cl->node[s->node].name);
    return 0;
}

static int audit_nodes(const struct core *c, struct err *e)
{
    const struct cluster *cl = &c->cluster;
    AUTO(free_p) struct room *room = xcalloc(cl->nodes + 1, sizeof *room);
    for (uint32_t i = 0; i < cl->nodes; i++)
        room[i] = kind_room(&cl->kind[cl->node[i].kind]);
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        const struct request *r = &c->shapes.at[j->shape].request;
        for (uint32_t s = 0; j->held && s < j->held->n; s++)
            if (audit_slot(cl, r, &j->held->slot[s], &room[j->held->slot[s].node], e) < 0)
                return -1;
    }
    for (uint32_t i = 0; i < cl->nodes; i++)
        if (memcmp(&room[i], &cl->node[i].room, sizeof *room) != 0)
            return err_set(e, ERR_INTERNAL, "node %s: used + free is not its total",
                           cl->node[i].name);
    return 0;
}

/* The nodes of a row's cells know their cell and stand in order; counts them. */
static int audit_row(const struct cluster *cl, const struct row *row, uint32_t *filed,
                     struct err *e)
{
    for (uint32_t i = 0; i < row->n; i++) {
        const struct cell *ce = &cl->cell[row->at[i].cell];
        *filed += ce->n;
        for (uint32_t j = 0; j < ce->n; j++)
            if (cl->node[ce->node[j]].cell != row->at[i].cell ||
                (j && ce->node[j] > ce->node[j - 1]))
                return err_set(e, ERR_INTERNAL, "cell of node %s: wrong",
                               cl->node[ce->node[j]].name);
    }
    return 0;
}

static int audit_cells(const struct core *c, struct err *e)
{
    const struct cluster *cl = &c->cluster;
    uint32_t filed = 0, offered = 0;
    for (uint32_t k = 0; k < cl->kinds; k++)
        for (uint32_t w = 0; w < ROWS; w++)
            if (audit_row(cl, &cl->kind[k].row[w], &filed, e) < 0)
                return -1;
    for (uint32_t i = 0; i < cl->nodes; i++)
        offered += node_is_offered(cl, &cl->node[i]);
    if (filed != offered)
        return err_set(e, ERR_INTERNAL, "%u nodes are offered, %u are filed", offered, filed);
    return 0;
}

/* The totals are those of the nodes that are offered. */
static int audit_totals(const struct core *c, struct err *e)
{
    const struct cluster *cl = &c->cluster;
    uint64_t gpus = 0, cpu_milli = 0;
    for (uint32_t i = 0; i < cl->nodes; i++) {
        const struct kind *k = &cl->kind[cl->node[i].kind];
        if (k->left_ms != (k->pool != NONE ? cl->pool[k->pool].left_ms : INT64_MAX))
            return err_set(e, ERR_INTERNAL, "node %s: its window is not its pool's",
                           cl->node[i].name);
        if (!node_is_offered(cl, &cl->node[i]))
            continue;
        gpus += (uint64_t)k->gpus * GPU_MILLI;
        cpu_milli += cl->node[i].room.cpu_milli;
    }
    if (gpus != cl->total.of[RES_GPU] || cpu_milli != cl->free.of[RES_CPU])
        return err_set(e, ERR_INTERNAL, "the totals are not those of the nodes that are offered");
    return 0;
}

static int audit_shares(const struct core *c, struct err *e)
{
    const struct shares *s = &c->shares;
    AUTO(free_p) struct share *sum = xcalloc(s->n, sizeof *sum);
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        for (uint32_t p = j->leaf; j->held && p != NONE; p = s->at[p].parent) {
            for (int r = 0; r < RES_COUNT; r++)
                sum[p].used.of[r] += j->held->charged.of[r];
            sum[p].cost_milli += j->held->cost_milli;
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct share *sh = &s->at[i];
        if (memcmp(&sum[i].used, &sh->used, sizeof sh->used) != 0 ||
            sum[i].cost_milli != sh->cost_milli)
            return err_set(e, ERR_INTERNAL, "share '%s': what it uses is not the sum of its jobs",
                           sh->name);
    }
    return 0;
}

int core_audit(const struct core *c, struct err *e)
{
    return audit_nodes(c, e) < 0 || audit_cells(c, e) < 0 || audit_totals(c, e) < 0 ||
                   audit_shares(c, e) < 0 || rules_audit(c, e) < 0 || later_audit(c, e) < 0
             ? -1
             : 0;
}
