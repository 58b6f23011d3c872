/* Tenants come, change, move and go. */
#include "core/state.h"

/* What a share may use is what it names of what those above it may use. */
static void spread_zones(struct core *c)
{
    struct shares *s = &c->shares;
    for (uint32_t depth = 1; depth <= TREE_DEPTH_MAX; depth++)
        for (uint32_t i = 1; i < s->n; i++) {
            const struct rules *r = s->at[i].rules;
            uint16_t above = s->at[s->at[i].parent].zone;
            if (s->at[i].depth == depth)
                s->at[i].zone =
                    r && r->pools ? cluster_zone(&c->cluster, str_of(r->pools), above) : above;
        }
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (queue_find(&c->queue, j->id) != i)
            continue;
        struct request r = c->shapes.at[j->shape].request;
        if (r.zone == s->at[j->leaf].zone)
            continue;
        r.zone = s->at[j->leaf].zone;
        core_set_request(c, i, &r);
    }
}

/* The first job of its users; NONE: they have none. */
static uint32_t job_of_tenant(const struct core *c, uint32_t tenant)
{
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (c->shares.at[j->leaf].parent == tenant && queue_find(&c->queue, j->id) == i)
            return i;
    }
    return NONE;
}

static int remove_tenant(struct core *c, const struct event_tenant *t, int64_t now_ms,
                         struct err *e)
{
    uint32_t tenant = shares_tenant(&c->shares, t->name);
    if (tenant == NONE)
        return err_set(e, ERR_NOT_FOUND, "there is no tenant '%.*s'", STR_ARG(t->name));
    uint32_t job = job_of_tenant(c, tenant);
    if (job != NONE) {
        err_set(e, ERR_CONFLICT, "tenant '%.*s' has jobs that have not ended, %llu for one",
                STR_ARG(t->name), (unsigned long long)c->queue.job[job].id);
        return err_hint(e, "let them end, or cancel them");
    }
    for (uint32_t i = 0; i < c->reservations; i++)
        if (c->reservation[i].name && c->reservation[i].tenant == tenant) {
            err_set(e, ERR_CONFLICT, "tenant '%.*s' has machines reserved: '%s'", STR_ARG(t->name),
                    c->reservation[i].name);
            return err_hint(e, "give the reservation up: nightshift reservations rm NAME");
        }
    if (shares_remove_tenant(&c->shares, tenant, e) < 0)
        return -1;
    rules_set(c, tenant, &(struct event_tenant){ 0 }, now_ms);
    ledger_shares(c);
    return 0;
}

int tenant_set(struct core *c, const struct event *ev, int64_t now_ms, struct err *e)
{
    const struct event_tenant *t = &ev->tenant;
    if (t->removed)
        return remove_tenant(c, t, now_ms, e);
    if (t->name.n == 0 || t->name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "tenant: a name of 1 to %d bytes is needed", NAME_MAX_BYTES);
    if (memchr(t->name.p, 0, t->name.n)) /* nobody would find it again */
        return err_set(e, ERR_INVALID, "tenant: a name with a zero byte");
    if (t->weight_milli == 0)
        return err_set(e, ERR_INVALID, "tenant '%.*s': weight must be above 0", STR_ARG(t->name));
    if (t->guarantee_milli > INT64_MAX / 4)
        return err_set(e, ERR_INVALID, "tenant '%.*s': guarantee is too large", STR_ARG(t->name));
    if (rules_check(c, t, e) < 0)
        return -1;
    rules_settle(c, now_ms);
    if (shares_set_tenant(&c->shares, t, now_ms, e) < 0)
        return -1;
    rules_set(c, shares_tenant(&c->shares, t->name), t, now_ms);
    ledger_shares(c);
    rules_recount(c);
    if (c->cluster.zones.used || t->pools.n) {
        zones_drop(c);
        spread_zones(c);
    }
    rules_review(c, ev->t_ms);
    queue_wake_all(&c->queue, &c->shapes, &c->shares);
    return 0;
}
