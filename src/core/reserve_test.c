/* Reservations: a class on Tuesday at ten has its machines, and until then everybody has them. */
#include "tests/lib/small.h"

#define SECOND_MS INT64_C(1000)
#define FROM_MS (10 * HOUR_MS)
#define UNTIL_MS (12 * HOUR_MS)

static int reserve(struct small *s, const char *name, const char *tenant, const char *nodes,
                   struct err *e)
{
    struct event ev = { .t_ms = s->now_ms, .kind = EVENT_RESERVE };
    ev.reserve = (struct event_reserve){ .name = str_of(name),
                                         .tenant = str_of(tenant),
                                         .from_ms = FROM_MS,
                                         .until_ms = UNTIL_MS,
                                         .nodes = str_of(nodes) };
    return core_apply(s->c, &ev, e);
}

/* Two machines with two GPUs each; the first is for the class from ten to twelve. */
static struct small class_new(void)
{
    struct small s = small_new();
    struct err e;
    small_tenant(&s, "lab");
    small_tenant(&s, "course");
    small_node(&s, "pc1", 2);
    small_node(&s, "pc2", 2);
    CHECK(reserve(&s, "class", "course", "pc1", &e) == 0);
    return s;
}

struct life {
    int64_t limit_ms;
    uint32_t thaw_cost_ms;
    const char *in;
};

static uint64_t submit(struct small *s, const char *tenant, uint16_t gpus, struct life l)
{
    struct event ev = submit_event(s, tenant, (struct request){ .replicas = 1, .gpus = gpus });
    ev.submit.limit_ms = l.limit_ms;
    ev.submit.thaw_cost_ms = l.thaw_cost_ms;
    ev.submit.reservation = str_of(l.in ? l.in : "");
    small_apply(s, ev);
    return ++s->last;
}

/* On which machine it is. */
static uint32_t where(struct small *s, uint64_t job)
{
    struct job_view v;
    CHECK(core_job(s->c, (job_id){ job }, &v) && v.n == 1);
    return v.slots[0].node;
}

static void until_it_begins_others_use_its_machines_if_they_can_be_gone_in_time(void)
{
    AUTO(small_free) struct small s = class_new();
    uint64_t saves = submit(&s, "lab", 2, (struct life){ .thaw_cost_ms = 10000 });
    uint64_t more = submit(&s, "lab", 2, (struct life){ .thaw_cost_ms = 10000 });
    CHECK(small_pass_at(&s, HOUR_MS) == 2);
    small_job(&s, saves, JOB_EV_STARTED);
    small_job(&s, more, JOB_EV_STARTED);
    small_job(&s, where(&s, saves) == 1 ? saves : more, JOB_EV_EXITED_OK);
    uint64_t endless = submit(&s, "lab", 2, (struct life){ 0 });
    uint64_t on_pc1 = core_job(s.c, (job_id){ saves }, &(struct job_view){ 0 }) ? saves : more;
    CHECK(small_pass_at(&s, 2 * HOUR_MS) == 1 && where(&s, endless) == 1);
    int64_t leave_ms = FROM_MS - 30 * SECOND_MS;
    CHECK(small_pass_at(&s, leave_ms - 1) == 0 && core_wake_ms(s.c) <= leave_ms);
    CHECK(small_pass_at(&s, leave_ms) == 1 && s.plan.action[0].kind == ACT_TAKE);
    CHECK(s.plan.action[0].job.v == on_pc1);
}

static void what_could_not_be_gone_in_time_does_not_start_there(void)
{
    AUTO(small_free) struct small s = class_new();
    uint64_t first = submit(&s, "lab", 2, (struct life){ 0 });
    uint64_t second = submit(&s, "lab", 2, (struct life){ 0 });
    CHECK(small_pass_at(&s, HOUR_MS) == 1 && where(&s, first) == 1);
    struct explanation x;
    struct err e;
    CHECK(core_explain(s.c, (job_id){ second }, s.now_ms, &x, &e) == 0);
    CHECK(x.n == 1 && x.line[0].why == WHY_WINDOW && x.line[0].reservation == 1);
    uint64_t brief = submit(&s, "lab", 2, (struct life){ .limit_ms = HOUR_MS });
    CHECK(small_pass_at(&s, 2 * HOUR_MS) == 1 && where(&s, brief) == 0);
    CHECK(small_state(&s, second) == JOB_QUEUED);
}

static void while_it_lasts_its_machines_are_for_its_jobs_only(void)
{
    AUTO(small_free) struct small s = class_new();
    uint64_t pupil = submit(&s, "course", 1, (struct life){ .in = "class" });
    struct explanation x;
    struct err e;
    CHECK(small_pass_at(&s, FROM_MS - 1) == 0);
    CHECK(core_explain(s.c, (job_id){ pupil }, s.now_ms, &x, &e) == 0);
    CHECK(x.n == 1 && x.line[0].why == WHY_RESERVED && core_wake_ms(s.c) == FROM_MS);
    CHECK(x.has_eta && x.eta.p50_ms >= FROM_MS && x.eta.p90_ms >= x.eta.p50_ms);
    CHECK(small_pass_at(&s, FROM_MS) == 1 && where(&s, pupil) == 0);
    uint64_t other = submit(&s, "lab", 2, (struct life){ .thaw_cost_ms = 10000 });
    CHECK(small_pass_at(&s, FROM_MS + HOUR_MS) == 1 && where(&s, other) == 1);
    uint64_t next = submit(&s, "lab", 1, (struct life){ .thaw_cost_ms = 10000 });
    CHECK(small_pass_at(&s, FROM_MS + HOUR_MS + 1) == 0); /* a GPU of pc1 is free */
    small_job(&s, pupil, JOB_EV_STARTED);
    CHECK(core_wake_ms(s.c) <= UNTIL_MS && small_pass_at(&s, UNTIL_MS) == 1);
    CHECK(where(&s, next) == 0 && small_state(&s, pupil) == JOB_RUNNING);
}

static void jobs_of_one_that_ended_are_like_all_others(void)
{
    AUTO(small_free) struct small s = class_new();
    uint64_t large = submit(&s, "course", 2, (struct life){ .in = "class" });
    uint64_t late = submit(&s, "course", 2, (struct life){ .in = "class" });
    CHECK(small_pass_at(&s, FROM_MS) == 1 && where(&s, large) == 0);
    CHECK(small_pass_at(&s, UNTIL_MS) == 1 && where(&s, late) == 1);
    struct event ev = submit_event(&s, "course", (struct request){ .replicas = 1, .gpus = 1 });
    struct err e;
    ev.submit.reservation = STR("class");
    CHECK(core_apply(s.c, &ev, &e) < 0 && e.code == ERR_NOT_FOUND);
}

static void what_is_wrong_is_refused_and_changes_nothing(void)
{
    AUTO(small_free) struct small s = class_new();
    struct err e;
    CHECK(reserve(&s, "two", "course", "pc1", &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(reserve(&s, "two", "nobody", "pc2", &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK_STR(e.field, "tenant");
    CHECK(reserve(&s, "two", "course", "pc2,pc9", &e) < 0 && strstr(e.msg, "pc9"));
    CHECK(reserve(&s, "two", "course", "pc2,pc2", &e) < 0 && strstr(e.msg, "twice"));
    CHECK(reserve(&s, "", "course", "pc2", &e) < 0);
    CHECK(reserve(&s, "two", "course", "", &e) < 0 && e.code == ERR_NOT_FOUND);
    struct event ev = submit_event(&s, "lab", (struct request){ .replicas = 1, .gpus = 1 });
    ev.submit.reservation = STR("class");
    CHECK(core_apply(s.c, &ev, &e) < 0 && e.code == ERR_DENIED);
    CHECK_STR(e.field, "reservation");
    struct reservation_view v;
    CHECK(core_reservation(s.c, 0, &v) && v.n == 1 && v.node[0] == 0);
    CHECK(!core_reservation(s.c, 1, &v) && core_audit(s.c, &e) == 0);
}

static void one_that_is_given_up_or_moved_frees_its_machines(void)
{
    AUTO(small_free) struct small s = class_new();
    struct err e;
    CHECK(reserve(&s, "class", "course", "pc2", &e) == 0); /* moved */
    uint64_t first = submit(&s, "lab", 2, (struct life){ 0 });
    CHECK(small_pass_at(&s, HOUR_MS) == 1 && where(&s, first) == 0);
    uint64_t second = submit(&s, "lab", 2, (struct life){ 0 });
    CHECK(small_pass_at(&s, 2 * HOUR_MS) == 0);
    CHECK(reserve(&s, "class", "", "", &e) == 0);
    CHECK(small_pass_at(&s, 3 * HOUR_MS) == 1 && where(&s, second) == 1);
}

static const struct test tests[] = {
    { "until it begins others use its machines if they can be gone in time",
      until_it_begins_others_use_its_machines_if_they_can_be_gone_in_time },
    { "what could not be gone in time does not start there",
      what_could_not_be_gone_in_time_does_not_start_there },
    { "while it lasts its machines are for its jobs only",
      while_it_lasts_its_machines_are_for_its_jobs_only },
    { "jobs of one that ended are like all others", jobs_of_one_that_ended_are_like_all_others },
    { "what is wrong is refused and changes nothing",
      what_is_wrong_is_refused_and_changes_nothing },
    { "one that is given up or moved frees its machines",
      one_that_is_given_up_or_moved_frees_its_machines },
};
TEST_CASES(tests)
