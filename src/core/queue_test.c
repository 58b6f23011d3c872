#include "core/queue.h"

#include "base/rng.h"
#include "core/policy.h"
#include "tests/lib/test.h"

struct line { /* of waiting jobs */
    struct queue q;
    struct shapes sh;
    struct shares s;
    uint32_t ann, bob, tenant;
};

static struct line fresh(void)
{
    struct line l;
    struct err e;
    queue_init(&l.q);
    shapes_init(&l.sh);
    shares_init(&l.s, 1000);
    struct event_tenant t = { .name = STR("t"),
                              .weight_milli = 1000,
                              .limit = AMOUNTS_NO_LIMIT,
                              .user_limit = AMOUNTS_NO_LIMIT };
    CHECK(shares_set_tenant(&l.s, &t, 0, &e) == 0);
    l.tenant = shares_tenant(&l.s, STR("t"));
    l.ann = shares_add_user(&l.s, l.tenant, STR("ann"), 0);
    l.bob = shares_add_user(&l.s, l.tenant, STR("bob"), 0);
    return l;
}

static void line_free(struct line *l)
{
    queue_free(&l->q);
    shapes_free(&l->sh);
    shares_free(&l->s);
}

static uint32_t job(struct line *l, uint64_t id, uint32_t leaf, uint16_t gpus, enum priority p)
{
    struct request r = { .replicas = 1, .gpus = gpus };
    uint32_t i = queue_new_job(&l->q, id);
    l->q.job[i].leaf = leaf;
    l->q.job[i].shape = shapes_ref(&l->sh, &r);
    l->q.job[i].priority = (uint8_t)p;
    l->q.job[i].since_ms = l->q.job[i].wait_ms = (int64_t)id;
    return i;
}

static uint32_t of_family(struct line *l, uint64_t id, uint32_t leaf, uint32_t family)
{
    uint32_t i = job(l, id, leaf, 1, PRIO_NORMAL);
    l->q.job[i].family = family;
    queue_add(&l->q, &l->sh, &l->s, i);
    return i;
}

static uint32_t waiting(struct line *l, uint64_t id, uint32_t leaf, uint16_t gpus)
{
    uint32_t i = job(l, id, leaf, gpus, PRIO_NORMAL);
    queue_add(&l->q, &l->sh, &l->s, i);
    return i;
}

static void leave(struct line *l, uint32_t i)
{
    queue_remove(&l->q, &l->sh, &l->s, i);
}

static void a_group_is_one_user_one_priority_one_shape(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t a = waiting(&l, 1, l.ann, 1), same = waiting(&l, 2, l.ann, 1);
    uint32_t user = waiting(&l, 3, l.bob, 1), shape = waiting(&l, 4, l.ann, 2);
    uint32_t prio = job(&l, 5, l.ann, 1, PRIO_HIGH);
    queue_add(&l.q, &l.sh, &l.s, prio);
    CHECK_INT(l.q.job[same].group, l.q.job[a].group);
    const uint32_t other[] = { user, shape, prio };
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        CHECK(l.q.job[other[i]].group != l.q.job[a].group);
    CHECK(l.q.waiting == 5 && l.q.ready == 4 && l.s.at[l.ann].waiting == 4);
    CHECK(l.s.at[l.tenant].waiting == 5 && l.s.at[SHARE_ROOT].waiting == 5);
    CHECK(l.s.at[l.ann].groups.n == 3 && l.s.at[l.bob].groups.n == 1);
}

/* Users and families that mix to the same hash; the one in the middle goes first. */
static void groups_of_families_are_told_apart_whatever_their_hash(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t mixed = (l.ann ^ l.bob) << 12;
    uint32_t a = of_family(&l, 1, l.ann, 5), b = of_family(&l, 2, l.bob, 5 ^ mixed);
    uint32_t c = of_family(&l, 3, l.ann, 6), d = of_family(&l, 4, l.bob, 6 ^ mixed);
    CHECK(l.q.job[a].group != l.q.job[b].group && l.q.job[c].group != l.q.job[d].group);
    CHECK(l.q.job[a].group != l.q.job[c].group);
    leave(&l, a);
    CHECK_INT(l.q.job[of_family(&l, 5, l.bob, 5 ^ mixed)].group, l.q.job[b].group);
    leave(&l, d);
    CHECK_INT(l.q.job[of_family(&l, 6, l.ann, 6)].group, l.q.job[c].group);
    a = of_family(&l, 7, l.ann, 5);
    CHECK(l.q.job[a].group != l.q.job[b].group && l.s.at[l.ann].groups.n == 2);
    CHECK(l.s.at[l.bob].groups.n == 1 && l.q.ready == 3);
}

static void a_job_that_comes_back_keeps_its_turn(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t first = waiting(&l, 1, l.ann, 1), mid = waiting(&l, 2, l.ann, 1);
    uint32_t last = waiting(&l, 3, l.ann, 1);
    const struct group *g = &l.q.group[l.q.job[first].group];
    leave(&l, first);
    const struct user_group *u = &l.s.at[g->leaf].groups.at[g->leaf_at];
    CHECK(g->first == mid && u->first_id == 2 && u->first_wait_ms == 2);
    queue_add(&l.q, &l.sh, &l.s, first);
    CHECK(g->first == first && g->last == last && u->first_id == 1 && g->n == 3);
    leave(&l, mid);
    queue_add(&l.q, &l.sh, &l.s, mid);
    CHECK(l.q.job[first].next == mid && l.q.job[mid].next == last);
}

static void jobs_are_found_by_id_until_they_are_dropped(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t a = job(&l, 77, l.ann, 1, PRIO_LOW);
    CHECK(queue_find(&l.q, 77) == a && queue_find(&l.q, 78) == NONE);
    queue_drop_job(&l.q, a);
    CHECK_INT(queue_find(&l.q, 77), NONE);
    CHECK_INT(job(&l, 78, l.ann, 1, PRIO_LOW), a); /* its place is used again */
    CHECK(l.q.jobs == 1 && l.q.job[a].held == NULL);
}

static void a_job_that_was_kept_until_later_goes_behind_those_that_waited(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t kept = job(&l, 1, l.ann, 1, PRIO_NORMAL), first = waiting(&l, 2, l.ann, 1);
    uint32_t last = waiting(&l, 9, l.ann, 1);
    l.q.job[kept].since_ms = 5;
    queue_add(&l.q, &l.sh, &l.s, kept);
    const struct group *g = &l.q.group[l.q.job[first].group];
    CHECK(g->first == first && l.q.job[first].next == kept && l.q.job[kept].next == last);
}

static void a_shape_without_room_makes_its_groups_unready(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t a = waiting(&l, 1, l.ann, 1), b = waiting(&l, 2, l.bob, 1);
    waiting(&l, 3, l.bob, 2);
    uint32_t shape = l.q.job[a].shape;
    queue_no_room(&l.q, &l.sh, shape);
    queue_no_room(&l.q, &l.sh, shape);
    CHECK(l.q.ready == 1);
    CHECK_INT(queue_why(&l.q, &l.sh, l.q.job[b].group), WHY_ROOM);
    waiting(&l, 4, l.ann, 1);
    CHECK(l.q.ready == 1 && !l.q.room_came);
    queue_room_came(&l.q, &l.sh, shape);
    CHECK(l.q.ready == 3 && l.q.room_came);
    CHECK_INT(queue_why(&l.q, &l.sh, l.q.job[b].group), WHY_NEW);
}

static void a_group_at_a_limit_waits_until_something_below_it_ends(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t a = waiting(&l, 1, l.ann, 1), b = waiting(&l, 2, l.bob, 1);
    uint32_t ga = l.q.job[a].group, gb = l.q.job[b].group;
    queue_block(&l.q, &l.sh, &l.s, ga, (struct refusal){ l.ann, WHY_LIMIT_USER }, false);
    queue_block(&l.q, &l.sh, &l.s, gb, (struct refusal){ l.tenant, WHY_LIMIT_TENANT }, false);
    CHECK_INT(l.q.ready, 0);
    CHECK_INT(queue_why(&l.q, &l.sh, ga), WHY_LIMIT_USER);
    CHECK_INT(queue_why(&l.q, &l.sh, gb), WHY_LIMIT_TENANT);
    queue_wake_limit(&l.q, &l.sh, &l.s, l.bob); /* bob's job ended: the tenant has room, ann not */
    CHECK(l.q.ready == 1 && l.q.group[gb].blocked_on == NONE);
    CHECK_INT(l.q.group[ga].blocked_on, l.ann);
    queue_wake_limit(&l.q, &l.sh, &l.s, l.ann);
    CHECK_INT(l.q.ready, 2);
}

static void waking_all_makes_every_group_ready(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t a = waiting(&l, 1, l.ann, 1), b = waiting(&l, 2, l.bob, 2);
    queue_block(&l.q, &l.sh, &l.s, l.q.job[a].group, (struct refusal){ l.tenant, WHY_LIMIT_TENANT },
                false);
    queue_no_room(&l.q, &l.sh, l.q.job[a].shape);
    queue_no_room(&l.q, &l.sh, l.q.job[b].shape);
    CHECK_INT(l.q.ready, 0);
    queue_wake_all(&l.q, &l.sh, &l.s);
    CHECK(l.q.ready == 2 && l.q.room_came);
}

static void age_lifts_a_priority_by_a_bounded_number_of_classes(void)
{
    struct policy p = policy_default();
    struct user_group g = { .priority = PRIO_LOW, .first_wait_ms = 1000 };
    p.age_step_ms = 100000;
    p.age_max_steps = 2;
    CHECK_INT(queue_rank(&g, &p, 1000), PRIO_LOW);
    CHECK_INT(queue_rank(&g, &p, 0), PRIO_LOW); /* a clock that went back */
    CHECK_INT(queue_rank(&g, &p, 100999), PRIO_LOW);
    CHECK_INT(queue_rank(&g, &p, 101000), PRIO_NORMAL);
    CHECK_INT(queue_rank(&g, &p, 201000), PRIO_HIGH);
    CHECK_INT(queue_rank(&g, &p, 901000), PRIO_HIGH);
    p.age_max_steps = 0;
    CHECK_INT(queue_rank(&g, &p, 901000), PRIO_LOW);
}

static void every_reason_has_a_slug_and_a_sentence(void)
{
    for (int r = 0; r < REASON_COUNT; r++) {
        CHECK(reason_slug((enum reason)r)[0] && reason_text((enum reason)r)[0]);
        for (int s = 0; s < r; s++)
            CHECK(strcmp(reason_slug((enum reason)r), reason_slug((enum reason)s)) != 0);
    }
    CHECK_STR(reason_slug(REASON_COUNT), "?");
    CHECK_STR(reason_text(REASON_COUNT), "?");
}

/* ---- against a recount ---- */

#define JOBS 40

static void recount(uint64_t seed, const struct line *l, const uint32_t *at, const bool *waits)
{
    uint64_t n = 0, ready = 0, of_ann = 0;
    bool seen[JOBS] = { false };
    for (uint32_t i = 0; i < JOBS; i++) {
        if (!waits[i])
            continue;
        const struct job *j = &l->q.job[at[i]];
        const struct group *g = &l->q.group[j->group];
        n++;
        of_ann += j->leaf == l->ann;
        CHECK_AT(seed, g->leaf == j->leaf && g->shape == j->shape && g->priority == j->priority);
        CHECK_AT(seed, j->next == NONE || l->q.job[j->next].id > j->id);
        CHECK_AT(seed, l->s.at[g->leaf].groups.at[g->leaf_at].group == j->group);
        if (seen[j->group])
            continue;
        seen[j->group] = true;
        ready += g->blocked_on == NONE && !l->sh.no_room[g->shape];
        CHECK_AT(seed,
                 l->q.job[g->first].prev == NONE &&
                     l->s.at[g->leaf].groups.at[g->leaf_at].first_id == l->q.job[g->first].id);
    }
    CHECK_AT(seed, l->q.waiting == n && l->q.ready == ready && l->s.at[l->ann].waiting == of_ann);
    CHECK_AT(seed, l->s.at[SHARE_ROOT].waiting == n);
}

static void step(struct line *l, struct rng *r, uint32_t i, bool *waits)
{
    uint32_t g = l->q.job[i].group;
    switch (rng_below(r, 6)) {
    case 0: queue_no_room(&l->q, &l->sh, l->q.job[i].shape); break;
    case 1: queue_room_came(&l->q, &l->sh, l->q.job[i].shape); break;
    case 2:
        if (g != NONE && l->q.group[g].blocked_on == NONE)
            queue_block(&l->q, &l->sh, &l->s, g,
                        (struct refusal){ rng_below(r, 2) ? l->tenant : l->bob, WHY_LIMIT_TENANT },
                        rng_below(r, 2));
        break;
    case 3: queue_wake_limit(&l->q, &l->sh, &l->s, l->q.job[i].leaf); break;
    default:
        if (*waits)
            queue_remove(&l->q, &l->sh, &l->s, i);
        else
            queue_add(&l->q, &l->sh, &l->s, i);
        *waits = !*waits;
    }
}

static void the_counts_agree_with_a_recount_after_every_step(void)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        AUTO(line_free) struct line l = fresh();
        struct rng r = { seed };
        uint32_t at[JOBS];
        bool waits[JOBS] = { false };
        for (uint32_t i = 0; i < JOBS; i++)
            at[i] = job(&l, i + 1, rng_below(&r, 2) ? l.ann : l.bob, (uint16_t)rng_below(&r, 3),
                        (enum priority)rng_below(&r, 2));
        for (int i = 0; i < 400; i++) {
            uint32_t j = rng_below(&r, JOBS);
            step(&l, &r, at[j], &waits[j]);
            recount(seed, &l, at, waits);
        }
    }
}

static void those_who_hold_something_are_listed(void)
{
    AUTO(line_free) struct line l = fresh();
    uint32_t at[3];
    for (uint32_t i = 0; i < 3; i++) {
        at[i] = job(&l, i + 1, l.ann, 1, PRIO_NORMAL);
        queue_hold(&l.q, at[i], xcalloc(1, sizeof(struct held)));
    }
    queue_let_go(&l.q, at[0]);
    queue_let_go(&l.q, at[0]); /* holds nothing any more */
    CHECK(l.q.holders == 2 && !l.q.job[at[0]].held);
    queue_drop_job(&l.q, at[2]);
    CHECK(l.q.holders == 1 && l.q.holder[0] == at[1] && l.q.job[at[1]].held->at == 0);
}

static const struct test tests[] = {
    { "a group is one user, one priority, one shape", a_group_is_one_user_one_priority_one_shape },
    { "groups of families are told apart, whatever their hash",
      groups_of_families_are_told_apart_whatever_their_hash },
    { "a job that comes back keeps its turn", a_job_that_comes_back_keeps_its_turn },
    { "jobs are found by id until they are dropped", jobs_are_found_by_id_until_they_are_dropped },
    { "a job that was kept until later goes behind those that waited",
      a_job_that_was_kept_until_later_goes_behind_those_that_waited },
    { "a shape without room makes its groups unready",
      a_shape_without_room_makes_its_groups_unready },
    { "a group at a limit waits until something below it ends",
      a_group_at_a_limit_waits_until_something_below_it_ends },
    { "waking all makes every group ready", waking_all_makes_every_group_ready },
    { "age lifts a priority by a bounded number of classes",
      age_lifts_a_priority_by_a_bounded_number_of_classes },
    { "every reason has a slug and a sentence", every_reason_has_a_slug_and_a_sentence },
    { "those who hold something are listed", those_who_hold_something_are_listed },
    { "the counts agree with a recount after every step",
      the_counts_agree_with_a_recount_after_every_step },
};
TEST_CASES(tests)
