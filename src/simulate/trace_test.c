#include "simulate/trace.h"

#include "tests/lib/test.h"

static struct trace_tenant tenants[3];
static struct event_node nodes[2];
static struct trace_job jobs[3];

/* A trace of two nodes, three tenants and three jobs, for a test to break. */
static struct trace small(void)
{
    static const char *const names[] = { "research", "vision", "guests" };
    for (int i = 0; i < 3; i++)
        tenants[i] = (struct trace_tenant){ .name = names[i],
                                            .parent = i == 1 ? "research" : "",
                                            .weight_milli = 1000,
                                            .limit = AMOUNTS_NO_LIMIT };
    for (int i = 0; i < 2; i++)
        nodes[i] = (struct event_node){ .name = i ? STR("n1") : STR("n0"),
                                        .model = STR("gpu"),
                                        .gpus = 8 };
    for (uint32_t i = 0; i < 3; i++)
        jobs[i] = (struct trace_job){ .id = 10 - i,
                                      .submit_ms = i == 0 ? 500 : 100,
                                      .duration_ms = 1000,
                                      .tenant = i,
                                      .user = "u",
                                      .models = "",
                                      .gpus = 2,
                                      .priority = PRIO_NORMAL,
                                      .request = { .replicas = 2, .gpus = 1 } };
    return (struct trace){ .name = "small",
                           .node = nodes,
                           .nodes = 2,
                           .tenant = tenants,
                           .tenants = 3,
                           .job = jobs,
                           .jobs = 3 };
}

static void sorts_by_submit_time_then_id(void)
{
    struct trace t = small();
    struct err e = { 0 };
    CHECK(trace_finish(&t, &e) == 0);
    CHECK(t.job[0].id == 8 && t.job[1].id == 9 && t.job[2].id == 10);
    t.jobs = 0;
    CHECK(trace_finish(&t, &e) == 0);
}

static void refused(struct trace *t, const char *want)
{
    struct err e = { 0 };
    CHECK(trace_finish(t, &e) < 0 && e.code == ERR_INVALID && e.hint[0]);
    CHECK_STR(e.msg, want);
}

static void refuses_broken_tenants(void)
{
    struct trace t = small();
    tenants[2].name = "vision";
    refused(&t, "trace 'small': tenant 'vision' is there twice");
    t = small();
    tenants[1].parent = "nobody";
    refused(&t, "trace 'small': tenant 'vision': no tenant 'nobody' stands before it");
    t = small();
    tenants[0].parent = "vision"; /* and vision's is research: a cycle */
    refused(&t, "trace 'small': tenant 'research': no tenant 'vision' stands before it");
    t = small();
    tenants[1].parent = "vision";
    refused(&t, "trace 'small': tenant 'vision': no tenant 'vision' stands before it");
    t = small();
    tenants[0].weight_milli = 0;
    refused(&t, "trace 'small': tenant 'research': its weight is 0");
}

static void refuses_broken_nodes(void)
{
    struct trace t = small();
    uint32_t owner[2] = { NONE, 3 };
    nodes[1].name = STR("n0");
    refused(&t, "trace 'small': node 'n0' is there twice");
    t = small();
    nodes[1].gpus = 17;
    refused(&t, "trace 'small': node 'n1': 17 GPUs of model 'gpu'");
    t = small();
    nodes[0].model = STR("");
    refused(&t, "trace 'small': node 'n0': 8 GPUs of model ''");
    t = small();
    t.node_tenant = owner;
    refused(&t, "trace 'small': node 'n1' belongs to no known tenant");
}

static void refuses_broken_jobs(void)
{
    struct trace t = small();
    jobs[1].id = 10;
    refused(&t, "trace 'small': job 10 is there twice");
    t = small();
    jobs[1].tenant = 3;
    refused(&t, "trace 'small': job 9: its tenant is unknown");
    t = small();
    jobs[1].duration_ms = 0;
    refused(&t, "trace 'small': job 9: its duration is not above 0");
    t = small();
    jobs[1].request.replicas = REPLICAS_MAX + 1;
    refused(&t, "trace 'small': job 9: its replicas or GPUs are out of range");
    t = small();
    jobs[1].request.gpu_milli = 500;
    refused(&t, "trace 'small': job 9: its share of a GPU is out of range");
    t = small();
    jobs[1].gpus = 3;
    refused(&t, "trace 'small': job 9: its GPUs are not those of its replicas");
    t = small();
    jobs[1].user = "";
    refused(&t, "trace 'small': job 9: its user has no name, or a too long one");
}

static void cuts_jobs_into_equal_replicas(void)
{
    static const struct {
        uint32_t total, replicas, each;
    } cases[] = {
        { 1, 1, 1 },  { 7, 1, 7 },  { 8, 1, 8 },   { 12, 3, 4 },  { 16, 2, 8 }, { 20, 5, 4 },
        { 24, 3, 8 }, { 32, 4, 8 }, { 11, 11, 1 }, { 31, 31, 1 }, { 10, 5, 2 }, { 30, 15, 2 },
    };
    const struct trace_rack racks[2] = { { 4, 8 } };
    uint32_t n = 0, each = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_AT(cases[i].total, trace_split(cases[i].total, racks, &n, &each));
        CHECK_INT(n, cases[i].replicas);
        CHECK_INT(each, cases[i].each);
    }
    const struct trace_rack wide[2] = { { 2100, 5 } };
    CHECK(trace_split(8192, wide, &n, &each)); /* 8192 parts of 1 would be too many */
    CHECK(n == 2048 && each == 4);
}

/* Machines of 8, and perhaps one smaller. */
static void cuts_exactly_what_fits(uint32_t full, uint32_t odd)
{
    const struct trace_rack racks[2] = { { full, 8 }, { odd > 0, odd } };
    for (uint32_t total = 0; total < 60; total++) {
        uint32_t n = 99, each = 99;
        bool fits = trace_split(total, racks, &n, &each);
        CHECK_AT(total, fits == (total > 0 && total <= full * 8 + odd));
        if (fits)
            CHECK_AT(total, n * each == total && n <= full * (8 / each) + odd / each);
        else
            CHECK_AT(total, n == 99 && each == 99);
    }
}

static void never_cuts_what_does_not_fit(void)
{
    for (uint32_t full = 0; full < 5; full++)
        for (uint32_t odd = 0; odd < 8; odd++)
            cuts_exactly_what_fits(full, odd);
    const struct trace_rack huge[2] = { { 100000, 1 } };
    uint32_t n, each;
    CHECK(!trace_split(REPLICAS_MAX + 1, huge, &n, &each));
}

static void is_freed_twice_without_harm(void)
{
    struct trace t = { 0 };
    trace_free(&t);
    t.name = arena_strndup(&t.arena, "x", 1);
    trace_free(&t);
    trace_free(&t);
    CHECK(t.name == NULL && t.jobs == 0);
}

static const struct test tests[] = {
    { "jobs are sorted by submit time, then by id", sorts_by_submit_time_then_id },
    { "a tenant twice, an unknown parent and a cycle are refused", refuses_broken_tenants },
    { "broken nodes are refused", refuses_broken_nodes },
    { "broken jobs are refused", refuses_broken_jobs },
    { "jobs are cut into the largest equal replicas", cuts_jobs_into_equal_replicas },
    { "a job is cut exactly when the machines can hold it", never_cuts_what_does_not_fit },
    { "freeing an empty or freed trace is fine", is_freed_twice_without_harm },
};
TEST_CASES(tests)
