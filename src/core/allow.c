#include "core/allow.h"

#include <stdio.h>

#include "core/state.h"

/* ---- limits by model ---- */

uint64_t request_models(const struct core *c, const struct request *r)
{
    size_t n = c->cluster.models.n;
    uint64_t all = n < MODELS_MAX ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
    return r->models ? r->models : all;
}

/* The most that the job takes of these models. */
static uint64_t need_of(const struct core *c, const struct request *r, uint64_t models)
{
    struct request only = *r;
    only.models = request_models(c, r) & models;
    return only.models ? core_gpu_milli(c, &only) : 0;
}

bool core_cap_is_full(const struct core *c, uint32_t share, uint32_t cap, const struct request *r,
                      struct gone gone)
{
    const struct model_cap *m = &c->shares.at[share].rules->cap[cap];
    uint64_t need = need_of(c, r, m->models), used = m->used_milli;
    for (uint32_t i = 0; i < gone.n; i++) {
        const struct job *j = &c->queue.job[gone.job[i]];
        if (share_is_below(&c->shares, j->leaf, share))
            used -= held_on_models(c, j->held, m->models);
    }
    return need && used + need > m->limit_milli;
}

uint64_t core_open_models(const struct core *c, uint32_t leaf, const struct request *r,
                          struct gone gone, uint32_t *out)
{
    uint64_t open = request_models(c, r), shut = 0;
    *out = NONE;
    for (uint32_t i = leaf; i != NONE; i = c->shares.at[i].parent) {
        const struct rules *rules = c->shares.at[i].rules;
        for (uint32_t k = 0; rules && k < rules->caps; k++) {
            if (!core_cap_is_full(c, i, k, r, gone))
                continue;
            shut |= rules->cap[k].models;
            *out = i;
        }
    }
    return open & ~shut;
}

/* ---- now ---- */

bool core_closed(const struct core *c, uint32_t leaf, struct refusal *out)
{
    for (uint32_t i = leaf; c->shares.closed && i != NONE; i = c->shares.at[i].parent)
        if (c->shares.at[i].closed) {
            *out = (struct refusal){ i, (enum reason)c->shares.at[i].closed };
            return true;
        }
    return false;
}

const struct request *core_allowed(const struct core *c, uint32_t leaf, const struct request *r,
                                   struct request *narrowed, struct refusal *out)
{
    struct amounts a = core_amounts(c, r);
    enum resource which;
    *out = (struct refusal){ .share = NONE };
    if (core_closed(c, leaf, out))
        return NULL;
    uint32_t over = shares_over_limit(&c->shares, leaf, &a, &which);
    if (over != NONE) {
        *out = (struct refusal){ over,
                                 c->shares.at[over].is_user ? WHY_LIMIT_USER : WHY_LIMIT_TENANT };
        return NULL;
    }
    if (c->shares.ruled == 0 || a.of[RES_GPU] == 0)
        return r;
    out->why = WHY_LIMIT_TENANT;
    uint64_t open = core_open_models(c, leaf, r, (struct gone){ 0 }, &out->share);
    if (open == request_models(c, r))
        return r;
    *narrowed = *r;
    narrowed->models = open;
    return open ? narrowed : NULL;
}

const struct request *core_job_allowed(const struct core *c, const struct job *j,
                                       struct request *narrowed)
{
    struct refusal no;
    return core_allowed(c, j->leaf, &c->shapes.at[j->shape].request, narrowed, &no);
}

bool core_may_have(const struct core *c, const struct job *j, const struct slot *s, uint32_t n)
{
    struct request narrowed;
    const struct request *r = core_job_allowed(c, j, &narrowed);
    for (uint32_t i = 0; r == &narrowed && i < n; i++)
        if (!(r->models >> c->cluster.kind[c->cluster.node[s[i].node].kind].model & 1))
            return false;
    return r;
}

int64_t core_opens_ms(const struct core *c, uint32_t leaf)
{
    int64_t opens_ms = INT64_MIN;
    for (uint32_t i = leaf; c->shares.closed && i != NONE; i = c->shares.at[i].parent) {
        const struct share *s = &c->shares.at[i];
        if (s->closed)
            opens_ms =
                MAX(opens_ms, s->closed == WHY_BUDGET ? s->rules->budget.until_ms : INT64_MAX);
    }
    return opens_ms;
}

/* ---- ever ---- */

uint32_t core_zone_owner(const struct core *c, uint32_t leaf)
{
    while (leaf != NONE && !(c->shares.at[leaf].rules && c->shares.at[leaf].rules->pools))
        leaf = c->shares.at[leaf].parent;
    return leaf;
}

const char *core_zone_words(const struct core *c, uint16_t zone, size_t cap, char *out)
{
    struct str list = zone ? zones_get(&c->cluster.zones, zone) : STR(""), one;
    const char *comma = "";
    size_t at = (size_t)snprintf(out, cap, list.n ? "the machines of" : "no machine at all");
    for (; list.n && at < cap; comma = ",") {
        str_cut(list, '|', &one, &list);
        at += (size_t)(str_is(one, "-")
                           ? snprintf(out + at, cap - at, "%s no pool", comma)
                           : snprintf(out + at, cap - at, "%s pool '%.*s'", comma, STR_ARG(one)));
    }
    if (zone && at < cap && out[0] == 't')
        snprintf(out + at, cap - at, " only");
    return out;
}

static int check_zone(const struct core *c, uint32_t tenant, const struct request *r, struct err *e)
{
    struct err why;
    uint32_t owner = core_zone_owner(c, tenant);
    if (r->zone == 0 || owner == NONE || place_check_possible(&c->cluster, r, &why) == 0)
        return 0;
    char pools[160];
    err_set(e, ERR_INVALID, "tenant '%s' may use %s: the job fits on none of them",
            c->shares.at[owner].name, core_zone_words(c, r->zone, sizeof pools, pools));
    err_about(e, "resources");
    return err_hint(e, "ask for less, or ask whoever leads '%s' for more pools",
                    c->shares.at[owner].name);
}

static int say_cap(const struct core *c, uint32_t share, uint32_t cap, const struct request *r,
                   struct err *e)
{
    const struct model_cap *m = &c->shares.at[share].rules->cap[cap];
    const char *who = c->shares.at[share].name;
    err_set(e, ERR_QUOTA, "the job asks for %.6g GPUs; '%s' may use %.6g of %s at a time",
            (double)need_of(c, r, m->models) / GPU_MILLI, who, (double)m->limit_milli / GPU_MILLI,
            m->names);
    err_about(e, "resources.gpu_type");
    return err_hint(e, "ask for less or for another model, or ask whoever leads '%s' to raise it",
                    who);
}

/* With nothing running: what is left of its models has to be enough. */
static int check_caps(const struct core *c, uint32_t tenant, const struct request *r, struct err *e)
{
    struct request left = *r;
    uint32_t share = NONE, cap = 0;
    struct err why;
    left.models = request_models(c, r);
    for (uint32_t i = tenant; i != NONE; i = c->shares.at[i].parent) {
        const struct rules *rules = c->shares.at[i].rules;
        for (uint32_t k = 0; rules && k < rules->caps; k++) {
            if (need_of(c, r, rules->cap[k].models) <= rules->cap[k].limit_milli)
                continue;
            left.models &= ~rules->cap[k].models;
            cap = share == NONE ? k : cap;
            share = share == NONE ? i : share;
        }
    }
    if (share == NONE || (left.models && place_check_possible(&c->cluster, &left, &why) == 0))
        return 0;
    return say_cap(c, share, cap, r, e);
}

int core_check_rules(const struct core *c, uint32_t tenant, const struct request *r, struct err *e)
{
    if (c->shares.ruled == 0)
        return 0;
    return check_zone(c, tenant, r, e) < 0 || check_caps(c, tenant, r, e) < 0 ? -1 : 0;
}
