#include "core/share.h"

#include <stdio.h>

#include "base/rng.h"
#include "tests/lib/test.h"

#define HALF_LIFE_MS INT64_C(1000000)

static struct event_tenant tenant(const char *name, const char *parent)
{
    return (struct event_tenant){ .name = str_of(name),
                                  .parent = str_of(parent),
                                  .weight_milli = 1000,
                                  .limit = AMOUNTS_NO_LIMIT,
                                  .user_limit = AMOUNTS_NO_LIMIT };
}

static uint32_t make(struct shares *s, struct event_tenant t)
{
    struct err e;
    CHECK(shares_set_tenant(s, &t, 0, &e) == 0);
    return shares_tenant(s, t.name);
}

static struct shares fresh(void)
{
    struct shares s;
    shares_init(&s, HALF_LIFE_MS);
    return s;
}

static void charge(struct shares *s, uint32_t leaf, int64_t cost_milli, int64_t now_ms)
{
    struct amounts a = { { (uint64_t)(cost_milli < 0 ? -cost_milli : cost_milli), 0, 0, 1 } };
    shares_charge(s, leaf, &a, cost_milli < 0 ? -cost_milli : cost_milli, cost_milli < 0 ? -1 : 1,
                  now_ms);
}

/* Keys as a pass computes them, for shares that all have work. */
static void set_keys(struct shares *s, int64_t now_ms)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->at[i].waiting = 1;
    shares_set_levels(s, now_ms);
    for (uint32_t i = 1; i < s->n; i++)
        share_set_key(s, i);
}

static bool about(double got, double want)
{
    double off = got - want;
    return off < 1e-6 * (1 + want) && -off < 1e-6 * (1 + want);
}

/* ---- the tree ---- */

static void tenants_and_their_users_form_a_tree(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t lab = make(&s, tenant("lab", "")), vision = make(&s, tenant("vision", "lab"));
    uint32_t ann = shares_add_user(&s, vision, STR("ann"), 0);
    CHECK(s.at[ann].parent == vision && s.at[vision].parent == lab && s.at[lab].parent == 0);
    CHECK(s.at[ann].is_user && s.at[ann].depth == 3 && s.at[SHARE_ROOT].parent == NONE);
    CHECK(shares_tenant(&s, STR("ann")) == NONE && shares_user(&s, lab, STR("ann")) == NONE);
    CHECK_INT(shares_user(&s, vision, STR("ann")), ann);
    CHECK_INT(shares_add_user(&s, vision, STR("ann"), 5), ann);
    uint32_t other = shares_add_user(&s, lab, STR("ann"), 0);
    CHECK(other != ann && s.at[other].parent == lab);
}

static void a_user_may_have_the_name_of_a_tenant(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t lab = make(&s, tenant("lab", ""));
    uint32_t user = shares_add_user(&s, lab, STR("lab"), 0);
    CHECK(user != lab && shares_tenant(&s, STR("lab")) == lab);
    CHECK_INT(shares_user(&s, lab, STR("lab")), user);
}

static void thousands_of_names_are_told_apart(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t id[3000];
    char name[16];
    for (uint32_t i = 0; i < ARRAY_LEN(id); i++) {
        snprintf(name, sizeof name, "t%u", i);
        id[i] = make(&s, tenant(name, ""));
    }
    for (uint32_t i = 0; i < ARRAY_LEN(id); i++) {
        snprintf(name, sizeof name, "t%u", i);
        CHECK_INT(shares_tenant(&s, str_of(name)), id[i]);
    }
}

static void refused(struct shares *s, struct event_tenant t, const char *msg)
{
    struct err e = { 0 };
    uint32_t n = s->n;
    CHECK(shares_set_tenant(s, &t, 0, &e) < 0);
    CHECK_STR(e.msg, msg);
    CHECK(e.code == ERR_INVALID && s->n == n);
}

static void a_cycle_in_the_tree_is_refused(void)
{
    AUTO(shares_free) struct shares s = fresh();
    make(&s, tenant("a", ""));
    make(&s, tenant("b", "a"));
    make(&s, tenant("c", "b"));
    refused(&s, tenant("a", "c"), "tenant 'a' cannot be below 'c': that is a cycle in the tree");
    refused(&s, tenant("a", "a"), "tenant 'a' cannot be below 'a': that is a cycle in the tree");
    CHECK_INT(s.at[shares_tenant(&s, STR("a"))].parent, SHARE_ROOT);
}

static void an_unknown_parent_is_refused(void)
{
    AUTO(shares_free) struct shares s = fresh();
    refused(&s, tenant("a", "nobody"), "tenant 'a': its parent 'nobody' does not exist");
    refused(&s, tenant("a", "a"), "tenant 'a': its parent 'a' does not exist");
}

/* What shares say of themselves is the sum of those below them. */
static bool sums_are_right(const struct shares *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct share sum = { 0 };
        for (uint32_t k = 1; k < s->n; k++) {
            if (s->at[k].parent != i)
                continue;
            for (int r = 0; r < RES_COUNT; r++)
                sum.used.of[r] += s->at[k].used.of[r];
            sum.cost_milli += s->at[k].cost_milli;
            sum.past_cost_ms += (double)share_past_cost_ms(s, k, 5 * HALF_LIFE_MS);
            if (s->at[k].depth != s->at[i].depth + 1)
                return false;
        }
        if (s->at[i].is_user)
            continue;
        double off = sum.past_cost_ms - (double)share_past_cost_ms(s, i, 5 * HALF_LIFE_MS);
        if (memcmp(&sum.used, &s->at[i].used, sizeof sum.used) != 0 ||
            sum.cost_milli != s->at[i].cost_milli || off > 100 || off < -100)
            return false;
    }
    return true;
}

static void a_tenant_moves_with_all_that_it_has_and_had(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct err e;
    uint32_t c = make(&s, tenant("c", ""));
    make(&s, tenant("d", "c"));
    uint32_t ann = shares_add_user(&s, shares_tenant(&s, STR("d")), STR("ann"), 0);
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", "a"));
    uint32_t bob = shares_add_user(&s, b, STR("bob"), 0);
    charge(&s, ann, 3000, 0);
    charge(&s, bob, 1000, HALF_LIFE_MS);
    struct event_tenant to = tenant("c", "b"); /* below one that came later */
    CHECK(shares_set_tenant(&s, &to, 2 * HALF_LIFE_MS, &e) == 0);
    CHECK(s.at[c].parent == b && s.at[ann].depth == 5);
    CHECK(s.at[a].used.of[RES_GPU] == 4000 && s.at[a].cost_milli == 4000 && sums_are_right(&s));
    charge(&s, ann, -3000, 3 * HALF_LIFE_MS);
    to = tenant("c", "");
    CHECK(shares_set_tenant(&s, &to, 4 * HALF_LIFE_MS, &e) == 0);
    CHECK(s.at[a].used.of[RES_GPU] == 1000 && s.at[c].cost_milli == 0 && sums_are_right(&s));
    refused(&s, tenant("c", "d"), "tenant 'c' cannot be below 'd': that is a cycle in the tree");
}

static void a_tenant_with_others_below_it_moves_only_as_deep_as_they_can_follow(void)
{
    AUTO(shares_free) struct shares s = fresh();
    make(&s, tenant("a", ""));
    make(&s, tenant("b", "a"));
    make(&s, tenant("c", "b"));
    make(&s, tenant("d", "c"));
    make(&s, tenant("x", ""));
    make(&s, tenant("y", "x"));
    make(&s, tenant("z", "y"));
    refused(&s, tenant("x", "d"), "tenant 'x': the tree is deeper than 6 levels");
    make(&s, tenant("y", "d"));
    CHECK_INT(s.at[shares_tenant(&s, STR("z"))].depth, 6);
}

static void a_removed_tenant_is_unknown_until_it_comes_back_with_its_past(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct err e = { 0 };
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", "a"));
    uint32_t ann = shares_add_user(&s, b, STR("ann"), 0);
    charge(&s, ann, 2000, 0);
    charge(&s, ann, -2000, HALF_LIFE_MS);
    CHECK(shares_remove_tenant(&s, a, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK_STR(e.msg, "tenant 'a' has tenants below it, 'b' for one");
    CHECK(shares_remove_tenant(&s, b, &e) == 0 && shares_tenant(&s, STR("b")) == NONE);
    CHECK(shares_remove_tenant(&s, a, &e) == 0);
    refused(&s, tenant("b", "a"), "tenant 'b': its parent 'a' does not exist");
    CHECK(make(&s, tenant("b", "")) == b && s.at[b].parent == SHARE_ROOT);
    CHECK(shares_user(&s, b, STR("ann")) == ann && share_past_cost_ms(&s, ann, HALF_LIFE_MS) > 0);
}

static void a_tree_that_is_too_deep_is_refused(void)
{
    AUTO(shares_free) struct shares s = fresh();
    char name[] = "a", parent[] = "";
    make(&s, tenant(name, parent));
    for (int c = 'b'; c < 'a' + TREE_DEPTH_MAX - 2; c++)
        make(&s, tenant((char[]){ (char)c, 0 }, (char[]){ (char)(c - 1), 0 }));
    refused(&s, tenant("z", (char[]){ 'a' + TREE_DEPTH_MAX - 3, 0 }),
            "tenant 'z': the tree is deeper than 6 levels");
    uint32_t user = shares_add_user(&s, s.n - 1, STR("u"), 0);
    CHECK_INT(s.at[user].depth, TREE_DEPTH_MAX - 1);
}

static void a_change_of_a_tenant_reaches_its_users(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct event_tenant t = tenant("a", "");
    uint32_t a = make(&s, t), u = shares_add_user(&s, a, STR("u"), 0);
    CHECK(s.at[u].limit.of[RES_GPU] == NO_LIMIT);
    t.weight_milli = 5000;
    t.user_limit.of[RES_GPU] = 2000;
    CHECK_INT(make(&s, t), a);
    CHECK(s.at[a].weight_milli == 5000 && s.at[u].limit.of[RES_GPU] == 2000);
    uint32_t later = shares_add_user(&s, a, STR("later"), 0);
    CHECK_INT(s.at[later].limit.of[RES_GPU], 2000);
}

/* ---- what they have and had ---- */

static void constant_use_is_its_own_mean(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), u = shares_add_user(&s, a, STR("u"), 0);
    charge(&s, u, 3000, 0);
    for (int64_t t = 1000; t < 10 * HALF_LIFE_MS; t += t)
        CHECK(about(share_past_milli(&s, a, t), 3000));
    CHECK(share_past_milli(&s, a, 0) == 0); /* no time has passed: there is no past */
}

static void what_was_used_counts_half_after_the_half_life(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), u = shares_add_user(&s, a, STR("u"), 0);
    charge(&s, u, 1000, 0);
    charge(&s, u, -1000, HALF_LIFE_MS);
    /* Of the window since the beginning 3/4 is filled, and a quarter of the window was used. */
    CHECK(about(share_past_milli(&s, a, 2 * HALF_LIFE_MS), 1000.0 / 3));
    CHECK(about(share_past_milli(&s, SHARE_ROOT, 2 * HALF_LIFE_MS), 1000.0 / 3));
    CHECK(about(share_past_milli(&s, a, 3 * HALF_LIFE_MS), 1000.0 / 7));
    CHECK(share_past_milli(&s, a, 2000 * HALF_LIFE_MS) < 1e-6);
}

static void a_clock_that_goes_back_forgets_nothing(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), u = shares_add_user(&s, a, STR("u"), 0);
    charge(&s, u, 1000, 500);
    charge(&s, u, -1000, HALF_LIFE_MS);
    double past_cost_ms = s.at[a].past_cost_ms;
    charge(&s, u, 1000, 10);
    charge(&s, u, -1000, 20);
    CHECK(about(s.at[a].past_cost_ms, past_cost_ms) && s.at[a].past_at_ms == HALF_LIFE_MS);
}

static void a_change_of_half_life_keeps_the_mean(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), u = shares_add_user(&s, a, STR("u"), 0);
    uint32_t b = make(&s, tenant("b", ""));
    charge(&s, u, 1000, 0);
    charge(&s, shares_add_user(&s, b, STR("u"), 0), 4000, HALF_LIFE_MS / 2);
    double was = share_past_milli(&s, b, HALF_LIFE_MS);
    shares_set_half_life(&s, 4 * HALF_LIFE_MS, HALF_LIFE_MS);
    CHECK(about(share_past_milli(&s, a, HALF_LIFE_MS), 1000));
    CHECK(about(share_past_milli(&s, b, HALF_LIFE_MS), was));
    CHECK(about(share_past_milli(&s, a, 3 * HALF_LIFE_MS), 1000));
    shares_set_half_life(&s, HALF_LIFE_MS / 10, 3 * HALF_LIFE_MS);
    CHECK(about(share_past_milli(&s, a, 3 * HALF_LIFE_MS), 1000));
    CHECK(about(share_past_milli(&s, a, 5 * HALF_LIFE_MS), 1000));
}

static void a_charge_counts_at_every_share_above(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", "a"));
    uint32_t u = shares_add_user(&s, b, STR("u"), 0);
    charge(&s, u, 2000, 0);
    for (uint32_t i = u; i != NONE; i = s.at[i].parent)
        CHECK(s.at[i].cost_milli == 2000 && s.at[i].used.of[RES_GPU] == 2000 &&
              s.at[i].used.of[RES_JOBS] == 1);
    charge(&s, u, -2000, 0);
    for (uint32_t i = u; i != NONE; i = s.at[i].parent)
        CHECK(s.at[i].cost_milli == 0 && s.at[i].used.of[RES_GPU] == 0);
    CHECK_INT(s.at[a].job_milli, 2000); /* what a job takes is remembered */
}

/* ---- limits ---- */

static void the_first_limit_on_the_way_up_is_named(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct event_tenant top = tenant("top", ""), mid = tenant("mid", "top");
    top.limit.of[RES_CPU] = 9000;
    mid.limit.of[RES_GPU] = 4000;
    mid.user_limit.of[RES_JOBS] = 2;
    uint32_t t = make(&s, top), m = make(&s, mid), u = shares_add_user(&s, m, STR("u"), 0);
    enum resource which = RES_COUNT;
    struct amounts a = { { 3000, 5000, 0, 1 } };
    CHECK(shares_over_limit(&s, u, &a, &which) == NONE && which == RES_COUNT);
    shares_charge(&s, u, &a, 3000, 1, 0);
    CHECK(shares_over_limit(&s, u, &a, &which) == m && which == RES_GPU);
    struct amounts cpu = { { 0, 5000, 0, 1 } };
    CHECK(shares_over_limit(&s, u, &cpu, &which) == t && which == RES_CPU);
    struct amounts none = { { 0, 0, 0, 1 } };
    CHECK(shares_over_limit(&s, u, &none, &which) == NONE);
    shares_charge(&s, u, &none, 0, 1, 0);
    CHECK(shares_over_limit(&s, u, &none, &which) == u && which == RES_JOBS);
    uint32_t v = shares_add_user(&s, m, STR("v"), 0);
    CHECK(shares_over_limit(&s, v, &none, &which) == NONE); /* each user has the limit alone */
}

static void a_limit_may_be_reached_exactly_and_a_job_without_gpus_passes_a_gpu_limit(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct event_tenant t = tenant("t", "");
    t.limit.of[RES_GPU] = 2000;
    uint32_t i = make(&s, t), u = shares_add_user(&s, i, STR("u"), 0);
    enum resource which;
    struct amounts a = { { 2000, 0, 0, 1 } }, cpu_only = { { 0, 64000, 0, 1 } };
    CHECK(shares_over_limit(&s, u, &a, &which) == NONE);
    shares_charge(&s, u, &a, 2000, 1, 0);
    t.limit.of[RES_GPU] = 1000; /* lowered below what runs */
    make(&s, t);
    CHECK(shares_over_limit(&s, u, &cpu_only, &which) == NONE);
    CHECK(shares_over_limit(&s, u, &a, &which) == i);
    CHECK(shares_never_fits(&s, u, &a, &which) == i && which == RES_GPU);
    a.of[RES_GPU] = 1000;
    CHECK(shares_never_fits(&s, u, &a, &which) == NONE);
}

/* ---- the order ---- */

static void the_larger_weight_is_next_at_equal_use(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct event_tenant heavy = tenant("heavy", "");
    heavy.weight_milli = 3000;
    uint32_t light = make(&s, tenant("light", "")), h = make(&s, heavy);
    charge(&s, shares_add_user(&s, light, STR("u"), 0), 1000, 0);
    charge(&s, shares_add_user(&s, h, STR("u"), 0), 1000, 0);
    set_keys(&s, 0);
    CHECK(share_before(&s, h, light) && !share_before(&s, light, h));
    CHECK(about(s.at[light].key, 1.5) && about(s.at[h].key, 0.5)); /* present and half a job */
}

static void at_equal_keys_the_older_share_is_next(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", ""));
    set_keys(&s, 0);
    CHECK(share_before(&s, a, b) && !share_before(&s, b, a) && !share_before(&s, a, a));
}

static void who_used_more_in_the_past_waits(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", ""));
    uint32_t u = shares_add_user(&s, a, STR("u"), 0);
    charge(&s, u, 1000, 0);
    charge(&s, u, -1000, HALF_LIFE_MS);
    set_keys(&s, HALF_LIFE_MS);
    CHECK(share_before(&s, b, a));
    set_keys(&s, 2 * HALF_LIFE_MS);
    CHECK(share_before(&s, b, a));
}

static void below_its_guarantee_a_share_comes_first(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct event_tenant sure = tenant("sure", "");
    sure.guarantee_milli = 4000;
    uint32_t idle = make(&s, tenant("idle", "")), g = make(&s, sure);
    uint32_t u = shares_add_user(&s, g, STR("u"), 0);
    charge(&s, u, 3000, 0);
    set_keys(&s, 0);
    CHECK(s.at[g].below_guarantee && share_before(&s, g, idle));
    charge(&s, u, 1000, 0);
    set_keys(&s, 0);
    CHECK(!s.at[g].below_guarantee);
    charge(&s, shares_add_user(&s, idle, STR("u"), 0), 2000, 0);
    set_keys(&s, 0);
    CHECK(share_before(&s, g, idle)); /* what is guaranteed does not count against it */
    charge(&s, u, 4000, 0);
    set_keys(&s, HALF_LIFE_MS);
    CHECK(share_before(&s, idle, g));
}

static void nodes_kept_for_a_share_count_as_held(void)
{
    AUTO(shares_free) struct shares s = fresh();
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", ""));
    uint32_t u = shares_add_user(&s, a, STR("u"), 0);
    shares_keep(&s, u, 8000);
    set_keys(&s, 0);
    CHECK(share_before(&s, b, a) && s.at[SHARE_ROOT].kept_milli == 8000);
    shares_keep(&s, u, -8000);
    set_keys(&s, 0);
    CHECK(share_before(&s, a, b));
}

static void what_is_at_its_limit_does_not_lower_the_level_of_its_siblings(void)
{
    AUTO(shares_free) struct shares s = fresh();
    struct event_tenant full = tenant("full", "");
    full.weight_milli = 8000;
    full.limit.of[RES_GPU] = 1000;
    uint32_t a = make(&s, tenant("a", "")), b = make(&s, tenant("b", "")), f = make(&s, full);
    charge(&s, shares_add_user(&s, a, STR("u"), 0), 4000, 0);
    charge(&s, shares_add_user(&s, b, STR("u"), 0), 2000, 0);
    charge(&s, shares_add_user(&s, f, STR("u"), 0), 1000, 0);
    set_keys(&s, HALF_LIFE_MS);
    CHECK(!s.at[f].is_rival && about(s.at[SHARE_ROOT].level * 1000, 3000));
    CHECK(!share_is_owed(&s, a) && share_is_owed(&s, b));
    full.limit.of[RES_GPU] = 2000;
    CHECK(make(&s, full) == f);
    set_keys(&s, HALF_LIFE_MS);
    CHECK(s.at[f].is_rival && about(s.at[SHARE_ROOT].level * 1000, 700));
    full.limit.of[RES_GPU] = NO_LIMIT;
    full.user_limit.of[RES_JOBS] = 1; /* all who are in it are at theirs */
    CHECK(make(&s, full) == f);
    set_keys(&s, HALF_LIFE_MS);
    CHECK(!s.at[f].is_rival && about(s.at[SHARE_ROOT].level * 1000, 3000));
}

static void the_order_is_total(void)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        AUTO(shares_free) struct shares s = fresh();
        struct rng r = { seed };
        char name[8];
        for (uint32_t i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "t%u", i);
            struct event_tenant t = tenant(name, "");
            t.weight_milli = rng_between(&r, 1, 3) * 1000;
            t.guarantee_milli = rng_below(&r, 3) * 1000;
            uint32_t u = shares_add_user(&s, make(&s, t), STR("u"), 0);
            charge(&s, u, rng_between(&r, 0, 2) * 1000, rng_below(&r, 3) * 1000);
        }
        set_keys(&s, 5000);
        for (uint32_t i = 1; i < s.n; i++)
            for (uint32_t j = 1; j < s.n; j++)
                CHECK_AT(seed, share_before(&s, i, j) + share_before(&s, j, i) == (i != j));
    }
}

static const struct test tests[] = {
    { "tenants and their users form a tree", tenants_and_their_users_form_a_tree },
    { "a user may have the name of a tenant", a_user_may_have_the_name_of_a_tenant },
    { "thousands of names are told apart", thousands_of_names_are_told_apart },
    { "a cycle in the tree is refused", a_cycle_in_the_tree_is_refused },
    { "an unknown parent is refused", an_unknown_parent_is_refused },
    { "a tenant moves with all that it has and had", a_tenant_moves_with_all_that_it_has_and_had },
    { "a tenant with others below it moves only as deep as they can follow",
      a_tenant_with_others_below_it_moves_only_as_deep_as_they_can_follow },
    { "a removed tenant is unknown until it comes back with its past",
      a_removed_tenant_is_unknown_until_it_comes_back_with_its_past },
    { "a tree that is too deep is refused", a_tree_that_is_too_deep_is_refused },
    { "a change of a tenant reaches its users", a_change_of_a_tenant_reaches_its_users },
    { "constant use is its own mean", constant_use_is_its_own_mean },
    { "what was used counts half after the half-life",
      what_was_used_counts_half_after_the_half_life },
    { "a clock that goes back forgets nothing", a_clock_that_goes_back_forgets_nothing },
    { "a change of half-life keeps the mean", a_change_of_half_life_keeps_the_mean },
    { "a charge counts at every share above", a_charge_counts_at_every_share_above },
    { "the first limit on the way up is named", the_first_limit_on_the_way_up_is_named },
    { "a limit may be reached exactly, and a job without GPUs passes a GPU limit",
      a_limit_may_be_reached_exactly_and_a_job_without_gpus_passes_a_gpu_limit },
    { "the larger weight is next at equal use", the_larger_weight_is_next_at_equal_use },
    { "at equal keys the older share is next", at_equal_keys_the_older_share_is_next },
    { "who used more in the past waits", who_used_more_in_the_past_waits },
    { "below its guarantee a share comes first", below_its_guarantee_a_share_comes_first },
    { "nodes kept for a share count as held", nodes_kept_for_a_share_count_as_held },
    { "what is at its limit does not lower the level of its siblings",
      what_is_at_its_limit_does_not_lower_the_level_of_its_siblings },
    { "the order is total", the_order_is_total },
};
TEST_CASES(tests)
