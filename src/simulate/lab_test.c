#include "simulate/trace.h"
#include "tests/lib/test.h"

#define DAY_MS INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)
#define SEEDS 40

static struct trace make(uint64_t seed, uint32_t days)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    CHECK_AT(seed, trace_make_lab(seed, days, false, &t, &e) == 0);
    return t;
}

static double gpu_hours(const struct trace_job *j)
{
    double gpus = j->gpus + j->request.gpu_milli / 1000.0;
    return gpus * (double)j->duration_ms / (double)HOUR_MS;
}

static const char *tenant_of(const struct trace *t, uint32_t job)
{
    return t->tenant[t->job[job].tenant].name;
}

static uint32_t hour_of(const struct trace_job *j)
{
    return (uint32_t)(j->submit_ms % DAY_MS / HOUR_MS);
}

static void the_lab_is_ten_desks_and_a_server(void)
{
    AUTO(trace_free) struct trace t = make(1, 7);
    CHECK(t.simulated && t.nodes == 11 && t.tenants == 6 && !t.node_tenant);
    CHECK(str_is(t.node[0].name, "desk01") && str_is(t.node[9].name, "desk10"));
    CHECK(str_is(t.node[10].name, "gpusrv") && t.node[10].gpus == 8);
    CHECK(t.node[10].link[0] == t.node[10].link[3] && t.node[10].link[3] != t.node[10].link[4]);
    uint32_t small = 0;
    for (int i = 0; i < 10; i++)
        small += t.node[i].gpus == 1 && t.node[i].gpu_mem_mib == 12 * 1024;
    CHECK_INT(small, 6);
    CHECK_STR(t.tenant[1].parent, "research");
    CHECK_STR(t.tenant[5].parent, "");
}

/* Requests have no padding; the core compares them like this, too. */
static bool same_bytes(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

static void the_same_seed_gives_the_same_week(void)
{
    AUTO(trace_free) struct trace a = make(5, 7), b = make(5, 7), c = make(6, 7);
    CHECK(a.jobs == b.jobs);
    bool other = a.jobs != c.jobs;
    for (uint32_t i = 0; i < a.jobs; i++) {
        const struct trace_job *x = &a.job[i], *y = &b.job[i];
        CHECK_AT(i, x->submit_ms == y->submit_ms && x->duration_ms == y->duration_ms);
        CHECK_AT(i, x->tenant == y->tenant && x->priority == y->priority && x->id == i + 1);
        CHECK_AT(i, same_bytes(&x->request, &y->request, sizeof x->request));
        CHECK_STR(x->user, y->user);
        other = other || x->submit_ms != c.job[i].submit_ms;
    }
    CHECK(other);
}

static bool fits(const struct trace *t, const struct request *r)
{
    uint32_t room = 0;
    for (uint32_t n = 0; n < t->nodes; n++) {
        const struct event_node *m = &t->node[n];
        bool gpu_ok = r->gpus <= m->gpus && r->gpu_mem_mib <= m->gpu_mem_mib;
        room += gpu_ok && r->cpu_milli <= m->cpu_milli && r->mem_mib <= m->mem_mib;
    }
    return room >= r->replicas;
}

static void every_job_can_run_in_the_empty_lab(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(trace_free) struct trace t = make(seed, 7);
        for (uint32_t i = 0; i < t.jobs; i++) {
            CHECK_AT(seed, fits(&t, &t.job[i].request));
            CHECK_AT(seed, t.job[i].submit_ms >= 0 && t.job[i].submit_ms < 7 * DAY_MS);
            CHECK_AT(seed, i == 0 || t.job[i - 1].submit_ms <= t.job[i].submit_ms);
        }
    }
}

/* As if the GPUs were one tank: what can never be better than this must have a queue, too. */
static void a_week_has_a_queue_by_day_and_drains_by_its_end(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(trace_free) struct trace t = make(seed, 7);
        double asked = 0, backlog = 0, most = 0;
        uint32_t i = 0;
        for (int64_t hour = 0; hour < 7 * 24; hour++) {
            for (; i < t.jobs && t.job[i].submit_ms < (hour + 1) * HOUR_MS; i++) {
                asked += gpu_hours(&t.job[i]);
                backlog += gpu_hours(&t.job[i]);
            }
            most = MAX(most, backlog);
            backlog = MAX(backlog - 18.0, 0.0);
        }
        CHECK_AT(seed, asked > 0.6 * 18 * 168 && asked < 0.85 * 18 * 168);
        CHECK_AT(seed, most > 18 * 10);
        CHECK_AT(seed, backlog < 18 * 6);
    }
}

/* Sums over many weeks, so that chance does not matter. */
static void people_behave_like_people(void)
{
    uint32_t morning = 0, lunch = 0, night = 0, homework = 0, thursday = 0, tuesday = 0, shares = 0;
    uint32_t gangs = 0, large = 0, normal = 0, jobs = 0, weekend = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(trace_free) struct trace t = make(seed, 7);
        jobs += t.jobs;
        for (uint32_t i = 0; i < t.jobs; i++) {
            const struct trace_job *j = &t.job[i];
            int64_t day = j->submit_ms / DAY_MS;
            bool language = strcmp(tenant_of(&t, i), "language") == 0;
            morning += hour_of(j) == 10;
            lunch += hour_of(j) == 12;
            night += hour_of(j) < 6;
            weekend += day >= 5;
            homework += day == 4 && strcmp(tenant_of(&t, i), "course-ml") == 0 && hour_of(j) >= 13;
            thursday += day == 3 && language;
            tuesday += day == 1 && language;
            shares += j->request.gpu_milli > 0;
            gangs += j->request.replicas > 1;
            large += j->gpus >= 4;
            normal += j->priority == PRIO_NORMAL;
        }
    }
    CHECK(morning > 2 * lunch && lunch > 0 && night < jobs / 20 && weekend < jobs / 8);
    CHECK(homework > SEEDS * 50);
    CHECK(thursday > tuesday * 17 / 10);
    CHECK(shares > jobs / 4 && gangs > SEEDS && large > SEEDS);
    CHECK(normal > jobs * 8 / 10);
}

static void some_people_sweep(void)
{
    uint32_t sweeps = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(trace_free) struct trace t = make(seed, 7);
        for (uint32_t i = 0; i + 20 < t.jobs; i++) {
            uint32_t same = 0;
            for (uint32_t k = i; k < t.jobs && t.job[k].submit_ms <= t.job[i].submit_ms + 60000;
                 k++)
                same += t.job[k].user == t.job[i].user;
            sweeps += same >= 20;
        }
    }
    CHECK(sweeps >= SEEDS);
}

static void any_number_of_days_up_to_a_year(void)
{
    struct trace t = { .name = "mine" };
    struct err e = { 0 };
    CHECK(trace_make_lab(1, 0, false, &t, &e) < 0 && e.code == ERR_INVALID && e.hint[0]);
    CHECK(trace_make_lab(1, 367, false, &t, &e) < 0);
    CHECK_STR(t.name, "mine");
    AUTO(trace_free) struct trace day = make(1, 1), year = make(1, 366);
    CHECK(day.jobs > 50 && year.jobs > 366 * 50);
}

static const struct test tests[] = {
    { "the lab is ten desks and a server", the_lab_is_ten_desks_and_a_server },
    { "the same seed gives the same week", the_same_seed_gives_the_same_week },
    { "every job could run in the empty lab", every_job_can_run_in_the_empty_lab },
    { "a week asks for 60 to 85 %, has a queue and drains",
      a_week_has_a_queue_by_day_and_drains_by_its_end },
    { "lunch, nights, weekends, a deadline and homework show", people_behave_like_people },
    { "some people sweep", some_people_sweep },
    { "any number of days up to a year", any_number_of_days_up_to_a_year },
};
TEST_CASES(tests)
