#include "core/core.h"

#include "core/state.h"

struct core *core_new(void)
{
    struct core *c = xcalloc(1, sizeof *c);
    c->policy = policy_default();
    c->now_ms = INT64_MIN;
    c->claim_check_ms = INT64_MIN;
    c->slots = xcalloc(REPLICAS_MAX, sizeof *c->slots);
    cluster_init(&c->cluster);
    demand_init(&c->demand);
    history_init(&c->history);
    forecast_init(&c->forecast);
    c->ledger = ledger_new();
    c->history_ms = c->rate_ms = c->review_ms = c->wall_ms = INT64_MIN;
    shares_init(&c->shares, c->policy.half_life_ms);
    c->shares.past_weight = (double)c->policy.past_milli / 1000;
    ledger_shares(c);
    shapes_init(&c->shapes);
    queue_init(&c->queue);
    laters_init(&c->laters);
    return c;
}

struct core *core_free(struct core *c)
{
    if (!c)
        return NULL;
    for (uint32_t i = 0; i < c->claims; i++)
        free(c->claim[i].node);
    free(c->claim);
    for (uint32_t i = 0; i < c->promises; i++)
        free(c->promise[i].slot);
    free(c->promise);
    reservations_free(c);
    take_scratch_free(&c->take);
    history_free(&c->history);
    forecast_free(&c->forecast);
    ledger_free(c->ledger);
    free(c->slots);
    gang_scratch_free(&c->scratch);
    laters_free(&c->laters);
    queue_free(&c->queue);
    shapes_free(&c->shapes);
    shares_free(&c->shares);
    demand_free(&c->demand);
    cluster_free(&c->cluster);
    free(c);
    return NULL;
}

void core_free_p(struct core **c)
{
    *c = core_free(*c);
}

/* ---- one job's life ---- */

static void take_slots(struct core *c, struct job *j, const struct slot *slots, uint32_t n,
                       int64_t now_ms)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    struct held *h = xmalloc(sizeof *h + n * sizeof *slots);
    *h = (struct held){ .charged = core_amounts(c, r), .since_ms = now_ms, .n = n };
    h->cost_milli = cluster_cost_milli(&c->cluster, r, slots, n, c->policy.cpu_cost_milli);
    memcpy(h->slot, slots, n * sizeof *slots);
    for (uint32_t i = 0; i < n; i++)
        h->gpu_milli += (uint32_t)__builtin_popcount(slots[i].gpu_mask) * slots[i].milli;
    queue_hold(&c->queue, (uint32_t)(j - c->queue.job), h);
    core_rate(c, j);
    h->guest = j->thaw_cost_ms && !j->restarts && !cluster_offers(&c->cluster, r, slots, n);
    cluster_take(&c->cluster, r, slots, n);
    cluster_note_job(&c->cluster, (uint32_t)(j - c->queue.job), slots, n, true);
    shares_charge(&c->shares, j->leaf, &h->charged, h->cost_milli, 1, now_ms);
    rules_charge(c, j->leaf, h, true, now_ms);
    ledger_hold(c, j, h->gpu_milli);
}

static void give_slots(struct core *c, struct job *j, bool ended, int64_t now_ms)
{
    const struct held *h = j->held;
    int64_t ran_ms = core_ran_ms(j, now_ms);
    history_learn(&c->history, core_of(c, j), j->ran_ms, ran_ms, ended);
    if (ended)
        history_learn_work(&c->history, (double)ran_ms * h->gpu_milli / GPU_MILLI);
    j->ran_ms = ran_ms;
    cluster_note_job(&c->cluster, (uint32_t)(j - c->queue.job), h->slot, h->n, false);
    cluster_give(&c->cluster, &c->shapes.at[j->shape].request, h->slot, h->n);
    shares_charge(&c->shares, j->leaf, &h->charged, h->cost_milli, -1, now_ms);
    rules_charge(c, j->leaf, h, false, now_ms);
    ledger_hold(c, j, -(int64_t)h->gpu_milli);
    queue_wake_limit(&c->queue, &c->shapes, &c->shares, j->leaf);
    queue_let_go(&c->queue, (uint32_t)(j - c->queue.job));
}

/* The effects of a move along the table: queue, resources, memory follow from the two states. */
static void job_enter(struct core *c, uint32_t job, enum job_state to, int64_t now_ms)
{
    struct job *j = &c->queue.job[job];
    bool may_wait = (to == JOB_QUEUED && !j->later) || (to == JOB_FROZEN && j->awake);
    bool waited = j->group != NONE;
    if (j->leaving && to != JOB_FREEZING) {
        j->leaving = false;
        shares_keep(&c->shares, j->leaf, j->held->cost_milli);
    }
    if (job_state_holds(j->state) && !job_state_holds(to)) {
        give_slots(c, j, job_state_ended(to), now_ms);
        if (to == JOB_FROZEN)
            j->wait_ms = now_ms;
        if (to == JOB_FROZEN && j->restarts)
            j->ran_ms = 0; /* it runs again from the start */
    }
    if (j->promised && !may_wait && to != JOB_FREEZING)
        promise_drop(c, job);
    j->state = (uint8_t)to;
    ledger_note(c, j);
    bool waits = may_wait && !j->promised;
    if (waited && !waits) {
        claims_drop(c, job);
        queue_remove(&c->queue, &c->shapes, &c->shares, job);
    }
    if (!waited && waits) {
        core_wait(c, job);
        forecast_waits(c, job);
    }
    if (job_state_ended(to)) {
        uint64_t id = j->id;
        later_drop(c, job);
        shapes_unref(&c->shapes, j->shape);
        queue_drop_job(&c->queue, job);
        later_ended(c, id, to == JOB_SUCCEEDED, now_ms);
    }
}

void core_place(struct core *c, uint32_t job, const struct slot *slots, uint32_t n, int64_t now_ms)
{
    struct job *j = &c->queue.job[job];
    enum job_state to = j->state == JOB_FROZEN ? JOB_THAWING : JOB_STARTING;
    forecast_starts(c, j, now_ms);
    job_enter(c, job, to, now_ms);
    take_slots(c, j, slots, n, now_ms);
}

void core_take(struct core *c, uint32_t job, int64_t now_ms)
{
    struct job *j = &c->queue.job[job];
    int64_t cost_milli = j->held->cost_milli;
    j->awake = true;
    j->taken = (uint16_t)MIN(j->taken + 1, UINT16_MAX);
    job_enter(c, job, JOB_FREEZING, now_ms);
    j->leaving = true;
    shares_keep(&c->shares, j->leaf, -cost_milli);
}

static uint32_t find_job(const struct core *c, job_id id, struct err *e)
{
    uint32_t job = queue_find(&c->queue, id.v);
    if (job == NONE) {
        bool past = id.v <= c->last_job;
        err_set(e, ERR_NOT_FOUND, past ? "job %llu has ended" : "there is no job %llu",
                (unsigned long long)id.v);
        if (past)
            err_hint(e, "submit it again to run it again");
    }
    return job;
}

static int apply_job(struct core *c, const struct event_job *ev, int64_t now_ms, struct err *e)
{
    enum job_state to;
    uint32_t job = find_job(c, ev->id, e);
    if (job == NONE)
        return -1;
    struct job *j = &c->queue.job[job];
    if (ev->what == JOB_EV_PLACED || ev->what == JOB_EV_TAKE)
        return err_set(e, ERR_INVALID, "only a pass places jobs and takes them back");
    if (job_next(j->state, ev->what, &to, e) < 0)
        return err_wrap(e, "job %llu", (unsigned long long)ev->id.v);
    if (ev->what == JOB_EV_THAW || ev->what == JOB_EV_FREEZE)
        j->awake = ev->what == JOB_EV_THAW;
    job_enter(c, job, to, now_ms);
    return 0;
}

static int apply_place(struct core *c, const struct event_place *ev, int64_t now_ms, struct err *e)
{
    uint32_t job = find_job(c, ev->id, e);
    if (job == NONE)
        return -1;
    const struct job *j = &c->queue.job[job];
    const struct request *r = &c->shapes.at[j->shape].request;
    unsigned long long id = ev->id.v;
    if (j->group == NONE && !(j->promised && j->state != JOB_FREEZING))
        return err_set(e, ERR_CONFLICT, "job %llu is %s and cannot be placed", id,
                       job_state_name(j->state));
    if (ev->n != r->replicas)
        return err_set(e, ERR_INVALID, "job %llu has %u replicas, not %u", id, r->replicas, ev->n);
    if (!cluster_has_room(&c->cluster, r, ev->slots, ev->n))
        return err_set(e, ERR_CONFLICT, "job %llu: its slots are not free", id);
    core_place(c, job, ev->slots, ev->n, now_ms);
    return 0;
}

static int apply_take(struct core *c, const struct event_take *ev, int64_t now_ms, struct err *e)
{
    enum job_state to;
    uint32_t job = find_job(c, ev->id, e);
    if (job == NONE)
        return -1;
    if (job_next(c->queue.job[job].state, JOB_EV_TAKE, &to, e) < 0)
        return err_wrap(e, "job %llu", (unsigned long long)ev->id.v);
    core_take(c, job, now_ms);
    return 0;
}

static int apply_promise(struct core *c, const struct event_place *ev, struct err *e)
{
    uint32_t job = find_job(c, ev->id, e);
    if (job == NONE)
        return -1;
    const struct job *j = &c->queue.job[job];
    if (j->promised || (j->group == NONE && !j->leaving))
        return err_set(e, ERR_CONFLICT, "job %llu is %s and cannot be promised anything",
                       (unsigned long long)ev->id.v, job_state_name(j->state));
    if (!cluster_suits(&c->cluster, &c->shapes.at[j->shape].request, ev->slots, ev->n))
        return err_set(e, ERR_INVALID, "job %llu: these slots are not what it asks for",
                       (unsigned long long)ev->id.v);
    promise_make(c, job, ev->slots, ev->n);
    return 0;
}

/* ---- submit ---- */

static int check_request(const struct request *r, struct err *e)
{
    if (r->replicas < 1 || r->replicas > REPLICAS_MAX)
        return err_set(e, ERR_INVALID, "replicas: %u; it must be 1 to %d", r->replicas,
                       REPLICAS_MAX);
    if (r->gpus > GPUS_PER_NODE_MAX)
        return err_set(e, ERR_INVALID, "gpus: %u on one machine; at most %d", r->gpus,
                       GPUS_PER_NODE_MAX);
    if (r->gpus && r->gpu_milli)
        return err_set(e, ERR_INVALID, "gpus and gpu_share exclude each other");
    if (r->gpu_milli >= GPU_MILLI) {
        err_set(e, ERR_INVALID, "gpu_share: %.3g; a share is less than one GPU",
                r->gpu_milli / 1e3);
        return err_hint(e, "ask for gpus: 1 to have a whole one");
    }
    if (r->notebook > 1)
        return err_set(e, ERR_INVALID, "notebook: %u; it is 0 or 1", r->notebook);
    if (r->scope >= SCOPE_COUNT || r->layout >= LAYOUT_COUNT)
        return err_set(e, ERR_INVALID, "placement: unknown scope or layout");
    if (r->layout == LAYOUT_SPREAD && r->scope == SCOPE_NODE && r->replicas > 1) {
        err_set(e, ERR_INVALID, "layout: replicas cannot be spread and on one machine");
        err_about(e, "placement.layout");
        return err_hint(e, "leave out scope, or layout");
    }
    return 0;
}

static int check_limits(const struct core *c, const struct event_submit *s,
                        const struct request *req, uint32_t tenant, struct err *e)
{
    struct amounts a = core_amounts(c, req);
    enum resource which;
    uint32_t leaf = shares_user(&c->shares, tenant, s->user);
    uint32_t over = shares_never_fits(&c->shares, leaf != NONE ? leaf : tenant, &a, &which);
    uint64_t limit = over != NONE ? c->shares.at[over].limit.of[which] : 0;
    const char *who = over != NONE ? c->shares.at[over].name : "";
    for (int r = 0; over == NONE && leaf == NONE && r < RES_COUNT; r++)
        if (a.of[r] > c->shares.at[tenant].user_limit.of[r]) { /* a user we have not met yet */
            over = tenant;
            which = (enum resource)r;
            limit = c->shares.at[tenant].user_limit.of[r];
            who = c->shares.at[tenant].name;
        }
    if (over == NONE)
        return 0;
    double unit = resource_unit(which);
    err_set(e, ERR_QUOTA, "the job asks for %.6g %s; '%s' may use %.6g at a time",
            (double)a.of[which] / unit, resource_words(which), who, (double)limit / unit);
    err_about(e, "resources");
    return err_hint(e, "ask for less, or ask whoever leads '%s' to raise the limit", who);
}

static int check_submit(const struct core *c, const struct event_submit *s, uint32_t *out_tenant,
                        struct request *out_request, struct err *e)
{
    struct request r = s->request;
    r.stay = 0;
    r.reservation = 0;
    r.zone = r.traits = 0;
    bool again = s->known && s->id.v && queue_find(&c->queue, s->id.v) == NONE;
    if (s->id.v <= c->last_job && !again)
        return err_set(e, ERR_CONFLICT, "job id %llu was used before; ids only grow",
                       (unsigned long long)s->id.v);
    if (s->user.n == 0 || s->user.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "user: a name of 1 to %d bytes is needed", NAME_MAX_BYTES);
    if (s->priority >= PRIO_COUNT)
        return err_set(e, ERR_INVALID, "priority: unknown class");
    uint32_t tenant = shares_tenant(&c->shares, s->tenant);
    if (tenant == NONE) {
        err_set(e, ERR_NOT_FOUND, "tenant: there is no tenant '%.*s'", STR_ARG(s->tenant));
        err_about(e, "tenant");
        return err_hint(e, "see the tenants: nightshift quota");
    }
    if (reservation_of(c, s->reservation, tenant, &r.reservation, e) < 0 && !s->known)
        return -1;
    if (check_request(&r, e) < 0 ||
        cluster_parse_models(&c->cluster, s->models, &r.models, e) < 0 ||
        cluster_parse_devices(&c->cluster, s->devices, &r, e) < 0)
        return -1;
    if (s->frozen > 2)
        return err_set(e, ERR_INVALID, "frozen: %u; it is 0, 1 or 2", s->frozen);
    if (later_check(c, s, e) < 0 || traits_check_room(c, s->traits, e) < 0)
        return -1;
    if (!s->known &&
        (place_check_possible(&c->cluster, &r, e) < 0 || check_limits(c, s, &r, tenant, e) < 0))
        return -1;
    r.zone = c->shares.at[tenant].zone;
    if (!s->known && core_check_rules(c, tenant, &r, e) < 0)
        return -1;
    *out_tenant = tenant;
    *out_request = r;
    return 0;
}

int core_check_submit(const struct core *c, const struct event_submit *s, struct err *e)
{
    struct event_submit next = *s;
    struct request r;
    uint32_t tenant;
    next.id.v = c->last_job + 1;
    return check_submit(c, &next, &tenant, &r, e);
}

static int apply_submit(struct core *c, const struct event *ev, int64_t now_ms, struct err *e)
{
    const struct event_submit *s = &ev->submit;
    uint32_t tenant = NONE;
    struct request r = { 0 };
    /* A machine that had them may have changed since. */
    if (s->known && s->devices.n && cluster_check_devices(&c->cluster, s->devices, e) < 0)
        return err_wrap(e, "job %llu", (unsigned long long)s->id.v);
    if (s->known)
        cluster_intern_devices(&c->cluster, s->devices);
    if (check_submit(c, s, &tenant, &r, e) < 0)
        return err_wrap(e, "job %llu", (unsigned long long)s->id.v);
    uint32_t leaf = shares_add_user(&c->shares, tenant, s->user, now_ms);
    uint32_t job = queue_new_job(&c->queue, s->id.v);
    struct job *j = &c->queue.job[job];
    j->submit_ms = now_ms;
    j->since_ms = s->since_ms ? s->since_ms : now_ms;
    j->wait_ms = s->wait_ms ? s->wait_ms : j->since_ms;
    j->thaw_cost_ms = s->thaw_cost_ms;
    j->restarts = s->restarts;
    j->limit_ms = s->limit_ms;
    j->family = s->family;
    j->ran_ms = s->ran_ms;
    j->taken = s->taken;
    j->leaf = leaf;
    r.traits = traits_use(c, s->traits); /* machines that match may still come */
    j->shape = shapes_ref(&c->shapes, &r);
    j->asks_milli = (uint32_t)core_gpu_milli(c, &r);
    j->priority = (uint8_t)s->priority;
    j->state = JOB_HELD;
    c->last_job = MAX(c->last_job, s->id.v);
    if (!s->known)
        demand_learn(&c->demand, &c->cluster, &r);
    j->awake = s->frozen == 2;
    later_submit(c, job, s, ev->t_ms);
    if (s->frozen)
        job_enter(c, job, JOB_FROZEN, now_ms);
    else if (!s->held)
        job_enter(c, job, JOB_QUEUED, now_ms);
    return 0;
}

static int apply_job_traits(struct core *c, const struct event_job_traits *ev, struct err *e)
{
    uint32_t job = find_job(c, ev->id, e);
    if (job == NONE)
        return -1;
    if (traits_check_room(c, ev->traits, e) < 0)
        return err_wrap(e, "job %llu", (unsigned long long)ev->id.v);
    struct request r = c->shapes.at[c->queue.job[job].shape].request;
    uint16_t was = r.traits;
    r.traits = traits_use(c, ev->traits);
    if (r.traits != was)
        core_set_request(c, job, &r);
    return 0;
}

/* ---- everything else ---- */

static int apply_user(struct core *c, const struct event_user *u, int64_t now_ms, struct err *e)
{
    uint32_t tenant = shares_tenant(&c->shares, u->tenant);
    if (tenant == NONE)
        return err_set(e, ERR_NOT_FOUND, "user '%.*s': there is no tenant '%.*s'", STR_ARG(u->user),
                       STR_ARG(u->tenant));
    if (u->user.n == 0 || u->user.n > NAME_MAX_BYTES || u->weight_milli == 0)
        return err_set(e, ERR_INVALID, "user '%.*s': a name and a weight above 0 are needed",
                       STR_ARG(u->user));
    uint32_t leaf = shares_add_user(&c->shares, tenant, u->user, now_ms);
    uint32_t was_milli = c->shares.at[leaf].weight_milli;
    c->shares.at[leaf].weight_milli = u->weight_milli;
    ledger_weigh(c, leaf, was_milli);
    return 0;
}

static int check_pool(const struct core *c, struct str name, struct err *e)
{
    if (name.n == 0 || name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "pool: a name of 1 to %d bytes is needed", NAME_MAX_BYTES);
    if (c->cluster.pool_names.n >= POOLS_MAX &&
        names_find(&c->cluster.pool_names, name) == NAME_NONE)
        return err_set(e, ERR_TOO_LARGE, "more than %u pools", POOLS_MAX);
    return 0;
}

static int apply_pool(struct core *c, const struct event *ev, struct err *e)
{
    const struct event_pool *p = &ev->pool;
    struct calendar calendar = calendar_always();
    if (check_pool(c, p->name, e) < 0)
        return -1;
    if (p->calendar.n && calendar_parse(p->calendar, NULL, NULL, &calendar, e) < 0)
        return err_wrap(e, "pool '%.*s'", STR_ARG(p->name));
    window_set(c, cluster_pool(&c->cluster, p->name), p->calendar.n ? &calendar : NULL, ev->t_ms);
    return 0;
}

/* What was planned with the machine as it was is planned anew. */
static int apply_node_change(struct core *c, const struct event_node *n, struct err *e)
{
    uint32_t node = names_find(&c->cluster.node_names, n->name);
    if (node == NAME_NONE)
        return err_set(e, ERR_NOT_FOUND, "there is no node '%.*s'", STR_ARG(n->name));
    if (cluster_check_change(&c->cluster, node, n, e) < 0)
        return -1;
    if (c->cluster.node[node].kept.job != NONE)
        claims_drop(c, c->cluster.node[node].kept.job);
    for (uint32_t i = 0; i < c->promises;)
        if (slots_on(c->promise[i].slot, c->promise[i].n, node))
            promise_break(c, c->promise[i].job);
        else
            i++;
    cluster_change_node(&c->cluster, node, n);
    return 0;
}

static int apply_node_state(struct core *c, const struct event_node_state *n, struct err *e)
{
    uint32_t node = names_find(&c->cluster.node_names, n->name);
    if (node == NAME_NONE)
        return err_set(e, ERR_NOT_FOUND, "there is no node '%.*s'", STR_ARG(n->name));
    if (n->state >= NODE_STATE_COUNT)
        return err_set(e, ERR_INVALID, "node '%.*s': unknown state", STR_ARG(n->name));
    cluster_set_state(&c->cluster, node, n->state);
    return 0;
}

/* A pool that nobody has spoken of, or that a snapshot left out, is always open. */
static int apply_node_pool(struct core *c, const struct event_node_pool *n, struct err *e)
{
    uint32_t node = names_find(&c->cluster.node_names, n->name);
    if (node == NAME_NONE)
        return err_set(e, ERR_NOT_FOUND, "there is no node '%.*s'", STR_ARG(n->name));
    if (n->pool.n && check_pool(c, n->pool, e) < 0)
        return -1;
    cluster_move(&c->cluster, node, n->pool.n ? cluster_pool(&c->cluster, n->pool) : NONE);
    return 0;
}

static int apply_past(struct core *c, const struct event *ev, int64_t now_ms, struct err *e)
{
    const struct event_past *p = &ev->past;
    uint32_t at = p->tenant.n ? shares_tenant(&c->shares, p->tenant) : SHARE_ROOT;
    if (at != NONE && p->user.n)
        at = shares_user(&c->shares, at, p->user);
    if (at == NONE)
        return err_set(e, ERR_NOT_FOUND, "past: there is no '%.*s' of tenant '%.*s'",
                       STR_ARG(p->user), STR_ARG(p->tenant));
    if (p->past_cost_ms < 0 || p->job_milli < 0 || p->spent < 0 || p->late < 0)
        return err_set(e, ERR_INVALID, "past: it cannot be below 0");
    if (p->spent > BUDGET_MAX || p->late > BUDGET_MAX)
        return err_set(e, ERR_INVALID, "past: spent is too large");
    share_set_past(&c->shares, at, p, now_ms);
    rules_set_spent(c, at, p, now_ms);
    rules_review(c, ev->t_ms);
    return 0;
}

static int apply_demand(struct core *c, const struct event_demand *d, struct err *e)
{
    struct demand_kind k = { .cpu_milli = d->cpu_milli,
                             .mem_mib = d->mem_mib,
                             .gpus = d->gpus,
                             .milli = d->milli,
                             .count = d->count };
    if (d->gpus > GPUS_PER_NODE_MAX || d->milli > GPU_MILLI)
        return err_set(e, ERR_INVALID, "demand: more GPUs than a machine can have");
    if (cluster_parse_models(&c->cluster, d->models, &k.models, e) < 0)
        return -1;
    demand_add(&c->demand, &c->cluster, &k);
    return 0;
}

static int apply_runs(struct core *c, const struct event_runs *r, struct err *e)
{
    uint32_t tenant = r->tenant.n ? shares_tenant(&c->shares, r->tenant) : NONE;
    if (r->tenant.n && tenant == NONE)
        return err_set(e, ERR_NOT_FOUND, "runs: there is no tenant '%.*s'", STR_ARG(r->tenant));
    uint32_t user = tenant == NONE || !r->user.n ? NONE : shares_user(&c->shares, tenant, r->user);
    if (r->user.n && user == NONE)
        return err_set(e, ERR_NOT_FOUND, "runs: there is no '%.*s' of tenant '%.*s'",
                       STR_ARG(r->user), STR_ARG(r->tenant));
    if ((r->user.n == 0) != (r->family == 0))
        return err_set(e, ERR_INVALID, "runs: a family is a user's");
    if (r->size > HISTORY_SIZES || (tenant != NONE && r->size == HISTORY_SIZES) ||
        r->bin >= HISTORY_BINS || r->ended_milli < 0 || r->exposed_ms < 0)
        return err_set(e, ERR_INVALID, "runs: size %u, bin %u: there is no such row", r->size,
                       r->bin);
    if (r->works_milli < 0 || r->work_ms < 0)
        return err_set(e, ERR_INVALID, "runs: work cannot be below 0");
    if (r->works_milli) {
        c->history.works = (double)r->works_milli / 1000;
        c->history.work_ms = (double)r->work_ms;
    }
    history_set(&c->history, (struct history_of){ tenant, r->size, user, r->family }, r->bin,
                (double)r->ended_milli / 1000, (double)r->exposed_ms);
    return 0;
}

static int apply_burst(struct core *c, const struct event_burst *b, struct err *e)
{
    const int64_t most = (int64_t)(FORECAST_SHIFT_MAX * 1000), log_most = 100000;
    uint32_t tenant = shares_tenant(&c->shares, b->tenant);
    if (b->tenant.n == 0) {
        if (b->p50_milli < -most || b->p50_milli > most || b->p90_milli < -most ||
            b->p90_milli > most)
            return err_set(e, ERR_INVALID, "burst: p50_milli, p90_milli: beyond %lld",
                           (long long)most);
        c->forecast.shift[0] = (double)b->p50_milli / 1000;
        c->forecast.shift[1] = (double)b->p90_milli / 1000;
        return 0;
    }
    if (tenant == NONE)
        return err_set(e, ERR_NOT_FOUND, "burst: there is no tenant '%.*s'", STR_ARG(b->tenant));
    if (b->jobs < 1 || b->jobs > TIME_MAX_MS / log_most / log_most || b->squares_milli < 0 ||
        b->squares_milli > b->jobs * log_most * 100 || b->sum_milli < -b->jobs * log_most ||
        b->sum_milli > b->jobs * log_most)
        return err_set(e, ERR_INVALID, "burst: jobs: %lld do not wait like that",
                       (long long)b->jobs);
    forecast_learn(&c->forecast,
                   &(struct burst){ tenant, b->hour, (double)b->jobs, (double)b->sum_milli / 1000,
                                    (double)b->squares_milli / 1000 });
    return 0;
}

static int apply_policy(struct core *c, const struct policy *p, int64_t now_ms, struct err *e)
{
    if (policy_check(p, e) < 0)
        return -1;
    if (p->half_life_ms != c->policy.half_life_ms)
        shares_set_half_life(&c->shares, p->half_life_ms, now_ms);
    c->policy = *p;
    c->shares.past_weight = (double)p->past_milli / 1000;
    c->claim_check_ms = c->review_ms = c->rate_ms = INT64_MIN;
    c->windows_changed = true;
    return 0;
}

void core_close_pass(struct core *c)
{
    if (!c->pass_open)
        return;
    c->pass_open = false;
    claims_make(c, c->now_ms);
    forecast_state(c);
}

int core_apply(struct core *c, const struct event *ev, struct err *e)
{
    int64_t now_ms =
        MAX(ev->t_ms, c->now_ms); /* a clock that was set back does not undo the past */
    int rc = -1;
    if (ev->t_ms < -TIME_MAX_MS || ev->t_ms > TIME_MAX_MS)
        return err_set(e, ERR_INVALID, "t: %lld ms is not a time", (long long)ev->t_ms);
    if (ev->kind != EVENT_PLACE && ev->kind != EVENT_TAKE && ev->kind != EVENT_PROMISE)
        core_close_pass(c);
    ledger_look(c, now_ms);
    switch (ev->kind) {
    case EVENT_POLICY: rc = apply_policy(c, &ev->policy, now_ms, e); break;
    case EVENT_MODEL: rc = cluster_set_model(&c->cluster, &ev->model, e); break;
    case EVENT_TENANT: rc = tenant_set(c, ev, now_ms, e); break;
    case EVENT_USER: rc = apply_user(c, &ev->user, now_ms, e); break;
    case EVENT_POOL: rc = apply_pool(c, ev, e); break;
    case EVENT_RESERVE: rc = reservation_set(c, &ev->reserve, ev->t_ms, e); break;
    case EVENT_NODE: rc = cluster_add_node(&c->cluster, &ev->node, e); break;
    case EVENT_NODE_CHANGE: rc = apply_node_change(c, &ev->node, e); break;
    case EVENT_NODE_STATE: rc = apply_node_state(c, &ev->node_state, e); break;
    case EVENT_NODE_POOL: rc = apply_node_pool(c, &ev->node_pool, e); break;
    case EVENT_NODE_TRAITS: rc = traits_set_node(c, &ev->node_traits, e); break;
    case EVENT_SUBMIT: rc = apply_submit(c, ev, now_ms, e); break;
    case EVENT_JOB: rc = apply_job(c, &ev->job, now_ms, e); break;
    case EVENT_JOB_TRAITS: rc = apply_job_traits(c, &ev->job_traits, e); break;
    case EVENT_PLACE: rc = apply_place(c, &ev->place, now_ms, e); break;
    case EVENT_PROMISE: rc = apply_promise(c, &ev->place, e); break;
    case EVENT_TAKE: rc = apply_take(c, &ev->take, now_ms, e); break;
    case EVENT_RUNS: rc = apply_runs(c, &ev->runs, e); break;
    case EVENT_WAIT:
    case EVENT_TIMES: rc = 0; break; /* of older versions */
    case EVENT_BURST: rc = apply_burst(c, &ev->burst, e); break;
    case EVENT_LEDGER: rc = ledger_apply(c, &ev->ledger, now_ms, e); break;
    case EVENT_PASS:
        c->now_ms = now_ms;
        core_open_pass(c, ev->t_ms);
        c->pass_open = true;
        rc = 0;
        break;
    case EVENT_PAST: rc = apply_past(c, ev, now_ms, e); break;
    case EVENT_DEMAND: rc = apply_demand(c, &ev->demand, e); break;
    case EVENT_KIND_COUNT: rc = err_set(e, ERR_INTERNAL, "not an event"); break;
    }
    if (rc == 0) {
        c->now_ms = now_ms;
        ledger_count(c, now_ms);
    }
    return rc;
}
