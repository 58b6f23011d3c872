/* Reservations that people make: a class has its machines, whatever happens to the daemon. */
#include "control/lending.h"
#include "tests/lib/controlling.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define MONDAY_MS INT64_C(1794787200000) /* 2026-11-16 00:00 UTC */
#define JOB(more)                                                                                  \
    "{\"command\":[\"x\"],\"tenant\":\"vision\",\"resources\":{\"gpus\":1},"                       \
    "\"env\":{\"SIM_RUN_MS\":\"100000000\",\"SIM_SAVE_MS\":\"1000\"}," more "}"
#define SAVES "\"freeze\":{\"mode\":\"signal\",\"grace\":\"10s\"}"
#define ENDLESS "\"freeze\":{\"mode\":\"none\"}"

static struct controlling *lab(void)
{
    struct controlling *t = xcalloc(1, sizeof *t);
    static const struct sim_node nodes[] = {
        { .name = "pc1", .model = "RTX 4090", .gpus = 2, .cpu_milli = 8000, .mem_mib = 65536 },
        { .name = "pc2", .model = "RTX 4090", .gpus = 1, .cpu_milli = 8000, .mem_mib = 65536 },
        { .name = "srv", .model = "A100", .gpus = 4, .cpu_milli = 8000, .mem_mib = 65536 },
    };
    controlling_begin(t, &(struct sim_config){ .node = nodes, .nodes = 3 });
    controlling_wait(t, MONDAY_MS - t->now_ms);
    return t;
}

static void lab_free_p(struct controlling **t)
{
    controlling_end(*t);
    free(*t);
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

/* "" when it was done, or why not.  Times from now on; 0: as it is. */
struct wish {
    const char *name, *tenant, *nodes, *gpu_type;
    int64_t in_ms, for_ms;
    uint64_t gpus;
};

static const char *reserve(struct controlling *t, struct wish w)
{
    struct str tenant = str_of(w.tenant ? w.tenant : ""), nodes = str_of(w.nodes ? w.nodes : "");
    int64_t from_ms = t->now_ms + w.in_ms;
    struct control_reserve r = { .name = str_of(w.name),
                                 .by = STR("op"),
                                 .tenant = w.tenant ? &tenant : NULL,
                                 .from_ms = w.in_ms ? &from_ms : NULL,
                                 .for_ms = w.for_ms,
                                 .nodes = w.nodes ? &nodes : NULL,
                                 .gpus = w.gpus,
                                 .gpu_type = str_of(w.gpu_type ? w.gpu_type : "") };
    t->refused.msg[0] = '\0';
    if (control_reserve(t->c, &r, (struct control_done){ count, &t->answered }, &t->refused) == 0)
        controlling_settle(t);
    return t->refused.msg;
}

/* The machines it has; "none": it is not there. */
static const char *nodes_of(struct controlling *t, const char *name)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct reservation_view v;
    struct node_view n;
    uint32_t at;
    if (!control_reservation_find(t->c, str_of(name), &at, &v))
        return "none";
    for (uint32_t i = 0; i < v.n; i++) {
        CHECK(core_node(control_core(t->c), (node_id){ v.node[i] }, &n));
        buf_printf(&b, "%s%s", i ? " " : "", n.name);
    }
    return controlling_text(t, buf_str(&b));
}

static void crash(struct controlling *t)
{
    controlling_kill(t);
    controlling_boot(t);
}

static void one_is_made_changed_and_given_up_and_outlives_a_crash(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct wish w = { "class", "vision", "pc[1-2]", .in_ms = DAY_MS, .for_ms = 2 * HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    CHECK_INT(t->answered, 1);
    crash(t);
    CHECK_STR(nodes_of(t, "class"), "pc1 pc2");
    CHECK_STR(reserve(t, (struct wish){ "class", .nodes = "srv" }), ""); /* the rest stays */
    crash(t);
    struct reservation_view v;
    uint32_t at;
    CHECK(control_reservation_find(t->c, STR("class"), &at, &v));
    CHECK(v.from_ms == MONDAY_MS + DAY_MS && v.until_ms == v.from_ms + 2 * HOUR_MS);
    CHECK_STR(nodes_of(t, "class"), "srv");
    CHECK_STR(controlling_journal_differs(t), "");
    CHECK(control_reservation_delete(t->c, STR("class"), STR("op"), (struct control_done){ 0 },
                                     &t->refused) == 0);
    controlling_settle(t);
    crash(t);
    CHECK_STR(nodes_of(t, "class"), "none");
    CHECK(control_reservation_delete(t->c, STR("class"), STR("op"), (struct control_done){ 0 },
                                     &t->refused) < 0);
    CHECK(t->refused.code == ERR_NOT_FOUND && t->refused.hint[0]);
}

static void machines_are_chosen_for_so_many_gpus(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct wish w = { "a", "vision", .gpus = 3, .in_ms = HOUR_MS, .for_ms = HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "a"), "pc1 pc2");
    w.name = "b";
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "b"), "srv");
    w.name = "c";
    CHECK(strstr(reserve(t, w), "gpus: 3 are wanted, 0 can be had then"));
    CHECK_STR(t->refused.field, "gpus");
    w.in_ms = 2 * HOUR_MS; /* when those are over */
    w.gpu_type = "RTX 4090|A100";
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "c"), "pc1 pc2");
    CHECK_STR(reserve(t, (struct wish){ "c", .gpus = 1, .gpu_type = "A100" }), "");
    CHECK_STR(nodes_of(t, "c"), "srv");
    CHECK(
        strstr(reserve(t, (struct wish){ "c", .gpus = 1, .gpu_type = "H100" }), "no machine has"));
    CHECK_STR(t->refused.field, "gpu_type");
}

static void machines_where_something_may_still_run_come_last(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK(control_node_state(t->c, STR("pc2"), NODE_DRAIN, (struct control_done){ 0 },
                             &t->refused) == 0);
    CHECK(control_node_state(t->c, STR("srv"), NODE_DRAIN, (struct control_done){ 0 },
                             &t->refused) == 0);
    uint64_t stays = controlling_submit(t, JOB(ENDLESS));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, stays), "running"); /* on pc1 */
    CHECK(control_node_state(t->c, STR("srv"), NODE_UP, (struct control_done){ 0 }, &t->refused) ==
          0);
    controlling_settle(t);
    struct wish w = { "class", "vision", .gpus = 2, .in_ms = HOUR_MS, .for_ms = HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "class"), "srv"); /* two too many are better than one that is taken */
    w.gpus = 5;
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "class"), "pc1 srv");
    struct leave l;
    CHECK(core_leave(control_core(t->c), (job_id){ stays }, t->now_ms + HOUR_MS, &l));
    CHECK(l.how == LEAVE_STAYS && l.at_ms == INT64_MAX);
}

static void a_machine_that_is_not_lent_then_is_not_chosen(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct str window = STR("Mon-Sun 20:00-08:00"), nodes = STR("pc[1-2]");
    struct control_pool_change desks = { .name = STR("desks"), .window = &window, .nodes = &nodes };
    CHECK(control_pool_put(t->c, &desks, (struct control_done){ 0 }, &t->refused) == 0);
    struct wish w = { "class", "vision", .gpus = 1, .in_ms = 10 * HOUR_MS, .for_ms = HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "class"), "srv");
    w = (struct wish){ "night", "vision", .gpus = 1, .in_ms = HOUR_MS, .for_ms = HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(nodes_of(t, "night"), "pc2");
}

static void what_is_wrong_is_refused_by_field_and_changes_nothing(void)
{
    static const struct {
        struct wish w;
        const char *field, *why;
    } rows[] = {
        { { "x", NULL, "pc1", .for_ms = 1 }, "tenant", "has to be said" },
        { { "x", "nobody", "pc1", .for_ms = 1 }, "tenant", "there is no 'nobody'" },
        { { "x", "vision", "pc1", .gpus = 0 }, "for", "either it or until_ms" },
        { { "x", "vision", "pc1", .for_ms = -1 }, "for", "after it begins" },
        { { "x", "vision", "pc1", .in_ms = -HOUR_MS, .for_ms = HOUR_MS }, "for", "over already" },
        { { "x", "vision", "pc1", .in_ms = 367 * DAY_MS, .for_ms = 1 }, "from_ms", "366 days" },
        { { "x", "vision", "pc1", .for_ms = 31 * DAY_MS + 1 }, "for", "31 days" },
        { { "x", "vision", .for_ms = 1 }, "nodes", "either they or gpus" },
        { { "x", "vision", "pc1", .for_ms = 1, .gpus = 1 }, "gpus", "not both" },
        { { "x", "vision", "pc1", "A100", .for_ms = 1 }, "gpu_type", "it needs gpus" },
        { { "x", "vision", "", .for_ms = 1 }, "nodes", "at least one" },
        { { "x", "vision", "pc[", .for_ms = 1 }, "nodes", "nodes: " },
        { { "x", "vision", "pc9", .for_ms = 1 }, "nodes", "there is no 'pc9'" },
        { { "x", "vision", "pc1,pc1", .for_ms = 1 }, "nodes", "twice" },
        { { "a b", "vision", "pc1", .for_ms = 1 }, "", "cannot be a reservation's name" },
    };
    AUTO(lab_free_p) struct controlling *t = lab();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_AT(i, strstr(reserve(t, rows[i].w), rows[i].why));
        CHECK_STR(t->refused.field, rows[i].field);
        CHECK_AT(i, t->refused.hint[0]);
    }
    CHECK_STR(nodes_of(t, "x"), "none");
    CHECK_INT(t->answered, 0);
    struct wish longest = { "x", "vision", "pc1", .in_ms = 366 * DAY_MS, .for_ms = 31 * DAY_MS };
    CHECK_STR(reserve(t, longest), "");
}

static void a_class_has_its_machine_and_the_job_before_it_goes_on_afterwards(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct wish w = { "class", "vision", "pc[1-2],srv", .in_ms = HOUR_MS, .for_ms = HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    uint64_t saves = controlling_submit(t, JOB(SAVES));
    uint64_t pupil = controlling_submit(t, JOB("\"reservation\":\"class\",\"max_time\":\"30m\""));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, saves), "running");
    controlling_wait(t, HOUR_MS - 30000);
    CHECK_STR(controlling_state(t, saves), "freezing");
    crash(t);
    controlling_wait(t, 29000);
    CHECK_STR(controlling_state(t, saves), "frozen");
    CHECK_STR(controlling_state(t, pupil), "queued");
    controlling_wait(t, 2000);
    CHECK_STR(controlling_state(t, pupil), "running");
    CHECK_STR(controlling_state(t, saves), "frozen");
    crash(t);
    controlling_wait(t, HOUR_MS);
    CHECK_STR(controlling_state(t, saves), "running");
    CHECK_STR(nodes_of(t, "class"), "none"); /* what has ended is not there */
    CHECK_STR(controlling_journal_differs(t), "");
}

/* Its grace is longer than what is left: it may not stay into the class. */
static void a_job_that_does_not_save_itself_is_ended_before_it_begins(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    uint64_t deaf = controlling_submit(
        t, "{\"command\":[\"x\"],\"tenant\":\"vision\",\"resources\":{\"gpus\":1},"
           "\"env\":{\"SIM_RUN_MS\":\"100000000\",\"SIM_TERM_MS\":\"-1\"},"
           "\"freeze\":{\"mode\":\"requeue\",\"grace\":\"1h\"},\"max_time\":\"5h\"}");
    controlling_settle(t);
    CHECK_STR(controlling_state(t, deaf), "running");
    struct wish w = { "class", "vision", "pc[1-2],srv", .in_ms = 10000, .for_ms = HOUR_MS };
    CHECK_STR(reserve(t, w), "");
    CHECK_STR(controlling_state(t, deaf), "freezing");
    controlling_wait(t, 9000);
    CHECK_STR(controlling_state(t, deaf), "frozen"); /* it starts anew later */
}

static const struct test tests[] = {
    { "one is made, changed and given up, and outlives a crash",
      one_is_made_changed_and_given_up_and_outlives_a_crash },
    { "machines are chosen for so many GPUs", machines_are_chosen_for_so_many_gpus },
    { "machines where something may still run come last",
      machines_where_something_may_still_run_come_last },
    { "a machine that is not lent then is not chosen",
      a_machine_that_is_not_lent_then_is_not_chosen },
    { "what is wrong is refused by field and changes nothing",
      what_is_wrong_is_refused_by_field_and_changes_nothing },
    { "a class has its machine, and the job before it goes on afterwards",
      a_class_has_its_machine_and_the_job_before_it_goes_on_afterwards },
    { "a job that does not save itself is ended before it begins",
      a_job_that_does_not_save_itself_is_ended_before_it_begins },
};
TEST_CASES(tests)
