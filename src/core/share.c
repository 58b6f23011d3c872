#include "core/share.h"

#include "base/decay.h"

#define ROUNDING_GAIN 32.0 /* three percent off outweighs a job as large as the share itself */
#define JOB_MEAN 8         /* jobs that the mean cost of a job looks back */
#define LN2 0.69314718055994530942

/* ---- the tree ---- */

static uint64_t find_key(uint32_t parent, struct str name)
{
    return str_hash(name) ^ ((uint64_t)parent + 1) * 0x9E3779B97F4A7C15ull;
}

/* Keys are hashes; a collision moves on to the next number until it is free. */
static uint32_t find(const struct shares *s, uint32_t parent, struct str name,
                     uint64_t *out_free_key)
{
    uint64_t key = find_key(parent, name), hit;
    while (map_get(&s->find, key, &hit)) {
        const struct share *sh = &s->at[hit];
        uint32_t under = sh->is_user ? sh->parent : SHARE_ROOT;
        if (under == parent && str_is(name, sh->name))
            return (uint32_t)hit;
        key++;
    }
    *out_free_key = key;
    return NONE;
}

static uint32_t add(struct shares *s, uint32_t parent, struct str name, bool is_user,
                    int64_t now_ms)
{
    if (s->n == 1)
        s->begin_ms = now_ms; /* the first tenant; the root is older than time */
    uint32_t cap = s->cap;
    vec_grow(s->at, s->n, s->cap);
    if (s->cap != cap)
        s->pos = xrealloc(s->pos, s->cap, sizeof *s->pos);
    uint32_t i = s->n++;
    s->pos[i] = HEAP_OUT;
    s->at[i] = (struct share){
        .parent = parent,
        .depth = parent == NONE ? 0 : s->at[parent].depth + 1,
        .is_user = is_user,
        .name = xcalloc(1, name.n + 1),
        .weight_milli = 1000,
        .limit = AMOUNTS_NO_LIMIT,
        .user_limit = AMOUNTS_NO_LIMIT,
        .past_at_ms = now_ms,
        .blocked = NONE,
        .least_rank = UINT32_MAX,
    };
    memcpy(s->at[i].name, name.p, name.n);
    return i;
}

void shares_init(struct shares *s, int64_t half_life_ms)
{
    *s = (struct shares){ .half_life_ms = half_life_ms, .past_weight = 1 };
    add(s, NONE, STR(""), false, 0);
}

void shares_free(struct shares *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        free(s->at[i].name);
        rules_free(s->at[i].rules);
        heap_free(&s->at[i].ready);
        free(s->at[i].groups.at);
        free(s->at[i].groups.pos);
        free(s->at[i].groups.key);
    }
    free(s->at);
    free(s->pos);
    map_free(&s->find);
}

uint32_t shares_tenant(const struct shares *s, struct str name)
{
    uint64_t unused;
    uint32_t i = find(s, SHARE_ROOT, name, &unused); /* their names are unique in the whole tree */
    return i != NONE && s->at[i].removed ? NONE : i;
}

uint32_t shares_user(const struct shares *s, uint32_t tenant, struct str name)
{
    uint64_t unused;
    return find(s, tenant, name, &unused);
}

uint32_t shares_add_user(struct shares *s, uint32_t tenant, struct str name, int64_t now_ms)
{
    uint64_t key;
    uint32_t i = find(s, tenant, name, &key);
    if (i != NONE)
        return i;
    i = add(s, tenant, name, true, now_ms);
    s->at[i].limit = s->at[tenant].user_limit;
    s->at[i].zone = s->at[tenant].zone;
    map_set(&s->find, key, i);
    return i;
}

/* ---- what they have and had ---- */

/* Cost × time if the share goes on as it is until now_ms. */
static double past_at(const struct shares *s, const struct share *sh, int64_t now_ms)
{
    if (now_ms <= sh->past_at_ms)
        return sh->past_cost_ms;
    double keep = decay_factor(now_ms - sh->past_at_ms, s->half_life_ms);
    double window_ms = (double)s->half_life_ms / LN2;
    return sh->past_cost_ms * keep + (double)sh->cost_milli * window_ms * (1.0 - keep);
}

/* Since the beginning a constant use of 1 would have come to this part of the window. */
static double filled(const struct shares *s, int64_t now_ms)
{
    return 1.0 - decay_factor(now_ms - s->begin_ms, s->half_life_ms);
}

static void settle(const struct shares *s, struct share *sh, int64_t now_ms)
{
    sh->past_cost_ms = past_at(s, sh, now_ms);
    sh->past_at_ms = MAX(now_ms, sh->past_at_ms);
}

/* ---- tenants come, change, move and go ---- */

/* Of tenants, the users not counted. */
static uint32_t levels_below(const struct shares *s, uint32_t share)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n && share != NONE; i++)
        if (!s->at[i].is_user && share_is_below(s, i, share))
            most = MAX(most, s->at[i].depth - s->at[share].depth);
    return most;
}

static int check_parent(const struct shares *s, uint32_t self, uint32_t parent,
                        const struct event_tenant *t, struct err *e)
{
    if (parent == NONE) {
        err_set(e, ERR_INVALID, "tenant '%.*s': its parent '%.*s' does not exist", STR_ARG(t->name),
                STR_ARG(t->parent));
        return err_hint(e, "make the parent first");
    }
    for (uint32_t p = parent; p != NONE; p = s->at[p].parent)
        if (p == self) {
            err_set(e, ERR_INVALID,
                    "tenant '%.*s' cannot be below '%.*s': that is a cycle in the tree",
                    STR_ARG(t->name), STR_ARG(t->parent));
            return err_hint(e, "choose a parent that is not the tenant itself or one below it");
        }
    if (s->at[parent].depth + levels_below(s, self) + 2 < TREE_DEPTH_MAX)
        return 0;
    err_set(e, ERR_INVALID, "tenant '%.*s': the tree is deeper than %d levels", STR_ARG(t->name),
            TREE_DEPTH_MAX - 2);
    err_about(e, "parent");
    return err_hint(e, "choose a parent that is further up");
}

/* What the moved share has and had is no longer, or from now on, of this one and those above it. */
static void carry(struct shares *s, const struct share *moved, uint32_t to, int sign,
                  int64_t now_ms)
{
    for (uint32_t i = to; i != NONE; i = s->at[i].parent) {
        struct share *sh = &s->at[i];
        settle(s, sh, now_ms);
        sh->past_cost_ms = MAX(sh->past_cost_ms + sign * moved->past_cost_ms, 0.0);
        sh->cost_milli += sign * moved->cost_milli;
        sh->kept_milli += sign * moved->kept_milli;
        sh->waiting = sign > 0 ? sh->waiting + moved->waiting : sh->waiting - moved->waiting;
        for (int r = 0; r < RES_COUNT; r++)
            sh->used.of[r] =
                sign > 0 ? sh->used.of[r] + moved->used.of[r] : sh->used.of[r] - moved->used.of[r];
    }
}

static void move(struct shares *s, uint32_t share, uint32_t parent, int64_t now_ms)
{
    settle(s, &s->at[share], now_ms);
    carry(s, &s->at[share], s->at[share].parent, -1, now_ms);
    s->at[share].parent = parent;
    carry(s, &s->at[share], parent, 1, now_ms);
    for (uint32_t i = 1; i < s->n; i++) {
        s->at[i].depth = 0;
        for (uint32_t up = i; up != SHARE_ROOT; up = s->at[up].parent)
            s->at[i].depth++;
    }
}

int shares_set_tenant(struct shares *s, const struct event_tenant *t, int64_t now_ms, struct err *e)
{
    uint64_t key = 0;
    uint32_t parent = t->parent.n ? shares_tenant(s, t->parent) : SHARE_ROOT;
    uint32_t i = find(s, SHARE_ROOT, t->name, &key);
    if (check_parent(s, i, parent, t, e) < 0)
        return -1;
    if (i == NONE) {
        i = add(s, parent, t->name, false, now_ms);
        map_set(&s->find, key, i);
    }
    if (s->at[i].parent != parent)
        move(s, i, parent, now_ms);
    struct share *sh = &s->at[i];
    sh->removed = false;
    sh->weight_milli = t->weight_milli;
    sh->guarantee_milli = (int64_t)t->guarantee_milli;
    sh->limit = t->limit;
    sh->user_limit = t->user_limit;
    for (uint32_t u = 0; u < s->n; u++)
        if (s->at[u].is_user && s->at[u].parent == i)
            s->at[u].limit = t->user_limit;
    return 0;
}

int shares_remove_tenant(struct shares *s, uint32_t tenant, struct err *e)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i].parent == tenant && !s->at[i].is_user && !s->at[i].removed) {
            err_set(e, ERR_CONFLICT, "tenant '%s' has tenants below it, '%s' for one",
                    s->at[tenant].name, s->at[i].name);
            return err_hint(e, "remove those first, or move them");
        }
    s->at[tenant].removed = true;
    return 0;
}

/* ---- charging them ---- */

void shares_charge(struct shares *s, uint32_t leaf, const struct amounts *a, int64_t cost_milli,
                   int sign, int64_t now_ms)
{
    for (uint32_t i = leaf; i != NONE; i = s->at[i].parent) {
        struct share *sh = &s->at[i];
        settle(s, sh, now_ms);
        sh->cost_milli += sign * cost_milli;
        if (sign > 0)
            sh->job_milli = sh->job_milli ? sh->job_milli + (cost_milli - sh->job_milli) / JOB_MEAN
                                          : cost_milli;
        for (int r = 0; r < RES_COUNT; r++)
            sh->used.of[r] = sign > 0 ? sh->used.of[r] + a->of[r] : sh->used.of[r] - a->of[r];
    }
}

void shares_keep(struct shares *s, uint32_t leaf, int64_t cost_milli)
{
    for (uint32_t i = leaf; i != NONE; i = s->at[i].parent)
        s->at[i].kept_milli += cost_milli;
}

void shares_set_half_life(struct shares *s, int64_t half_life_ms, int64_t now_ms)
{
    /* past_cost_ms is a mean rate times the part of the window that is filled: the mean stays. */
    double was = (double)s->half_life_ms * filled(s, now_ms), is;
    for (uint32_t i = 0; i < s->n; i++)
        settle(s, &s->at[i], now_ms);
    s->half_life_ms = half_life_ms;
    is = (double)half_life_ms * filled(s, now_ms);
    for (uint32_t i = 0; i < s->n && was > 0; i++)
        s->at[i].past_cost_ms *= is / was;
}

static uint32_t over_limit(const struct shares *s, uint32_t leaf, const struct amounts *a,
                           bool empty, enum resource *out_which)
{
    for (uint32_t i = leaf; i != NONE; i = s->at[i].parent) {
        const struct share *sh = &s->at[i];
        for (int r = 0; r < RES_COUNT; r++) {
            uint64_t used = empty ? 0 : sh->used.of[r];
            if (sh->limit.of[r] != NO_LIMIT && a->of[r] > 0 && used + a->of[r] > sh->limit.of[r]) {
                *out_which = (enum resource)r;
                return i;
            }
        }
    }
    return NONE;
}

uint32_t shares_over_limit(const struct shares *s, uint32_t leaf, const struct amounts *a,
                           enum resource *out_which)
{
    return over_limit(s, leaf, a, false, out_which);
}

uint32_t shares_never_fits(const struct shares *s, uint32_t leaf, const struct amounts *a,
                           enum resource *out_which)
{
    return over_limit(s, leaf, a, true, out_which);
}

/* ---- the order ---- */

double share_past_milli(const struct shares *s, uint32_t share, int64_t now_ms)
{
    double part = filled(s, now_ms);
    double sum = past_at(s, &s->at[share], now_ms) * LN2 / (double)s->half_life_ms;
    return part > 0 ? sum / part : 0;
}

int64_t share_past_cost_ms(const struct shares *s, uint32_t share, int64_t now_ms)
{
    return (int64_t)past_at(s, &s->at[share], now_ms);
}

void share_set_past(struct shares *s, uint32_t share, const struct event_past *p, int64_t now_ms)
{
    s->at[share].past_cost_ms = (double)p->past_cost_ms;
    s->at[share].past_at_ms = now_ms;
    s->at[share].job_milli = p->job_milli;
}

/* A guarantee that was not used is not saved up. */
static double past_above(const struct share *sh)
{
    double above = sh->past_milli - (double)sh->guarantee_milli;
    return above > 0 ? above : 0;
}

/* Nothing more of it starts whatever the others have: it is closed, has no machine, or is at a limit. */
static bool is_held_back(const struct share *sh)
{
    for (int r = 0; r < RES_COUNT; r++)
        if (sh->limit.of[r] != NO_LIMIT && sh->limit.of[r] > 0 && sh->used.of[r] >= sh->limit.of[r])
            return true;
    return sh->closed || (sh->rules && sh->nowhere);
}

/* What is held back takes no part: it stays low for good, and all others would be a whole job above the level. */
void shares_set_levels(struct shares *s, int64_t now_ms)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct share *sh = &s->at[i];
        sh->past_milli = share_past_milli(s, i, now_ms);
        sh->level = 0;
        sh->level_weight = 0;
        sh->is_rival = false;
    }
    for (uint32_t i = 1; i < s->n; i++)
        for (uint32_t k = s->at[i].is_user && s->at[i].waiting ? i : SHARE_ROOT;
             k != SHARE_ROOT && !s->at[k].is_rival && !is_held_back(&s->at[k]); k = s->at[k].parent)
            s->at[k].is_rival = true;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->at[i].is_rival) {
            s->at[s->at[i].parent].level += past_above(&s->at[i]);
            s->at[s->at[i].parent].level_weight += s->at[i].weight_milli;
        }
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i].level_weight)
            s->at[i].level /= (double)s->at[i].level_weight;
}

static double off_level(const struct shares *s, const struct share *sh)
{
    return past_above(sh) - s->at[sh->parent].level * sh->weight_milli;
}

bool share_is_owed(const struct shares *s, uint32_t share)
{
    return share == SHARE_ROOT || off_level(s, &s->at[share]) <= 1e-6 * s->at[share].past_milli;
}

/* How far the past is off the level of the siblings, magnified, but worth one job at most. */
static double rounding(const struct shares *s, const struct share *sh)
{
    double off = off_level(s, sh) * ROUNDING_GAIN, most = (double)sh->job_milli;
    return off > most ? most : off < -most ? -most : off;
}

void share_set_key(struct shares *s, uint32_t share)
{
    struct share *sh = &s->at[share];
    int64_t present_milli = sh->cost_milli + sh->kept_milli;
    int64_t above_milli = present_milli - sh->guarantee_milli + sh->job_milli / 2;
    sh->below_guarantee = present_milli < sh->guarantee_milli;
    if (sh->below_guarantee)
        sh->key = (double)present_milli / (double)sh->guarantee_milli;
    else
        sh->key = (s->past_weight * past_above(sh) + rounding(s, sh) + (double)above_milli) /
                  sh->weight_milli;
}

double share_above(const struct shares *s, uint32_t share, int64_t more_milli)
{
    const struct share *sh = &s->at[share];
    return s->past_weight * past_above(sh) +
           (double)(sh->cost_milli + sh->kept_milli + more_milli - sh->guarantee_milli);
}

bool share_before(const void *shares, uint32_t a, uint32_t b)
{
    const struct share *x = &((const struct shares *)shares)->at[a];
    const struct share *y = &((const struct shares *)shares)->at[b];
    if (x->below_guarantee != y->below_guarantee)
        return x->below_guarantee;
    if (x->key < y->key || y->key < x->key)
        return x->key < y->key;
    return a < b;
}
