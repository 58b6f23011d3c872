#include "simulate/trace.h"
#include "tests/lib/test.h"

static int parse(const char *text, struct trace *out, struct err *e)
{
    const struct csv_source from = { "docs/two.scene", str_of(text) };
    return trace_parse_scene(&from, out, e);
}

static void reads_what_it_says(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse("# two groups\n\nmachines 2 gpus=4 # in the cellar\r\n"
                "tenant lab weight=2.5\ntenant vision in=lab guarantee=1.5 max=3\n"
                "job vision/anna at=2h run=30m gpus=2 replicas=2 count=2 every=10s limit=1h "
                "priority=high freeze=12s\n"
                "job lab/kai at=1h run=1m freeze=no",
                &t, &e) == 0);
    CHECK_STR(t.name, "two");
    CHECK(t.simulated && t.nodes == 2 && t.node[1].gpus == 4 && t.tenants == 2 && t.jobs == 3);
    CHECK(t.tenant[0].weight_milli == 2500 && t.tenant[1].guarantee_milli == 1500);
    CHECK_INT(t.tenant[1].limit.of[RES_GPU], 3000);
    CHECK_STR(t.tenant[1].parent, "lab");
    const struct trace_job *j = &t.job[0]; /* by the time, whatever the order of the lines */
    CHECK(j->id == 1 && j->submit_ms == 3600000 && j->tenant == 0 && j->gpus == 1);
    CHECK(j->thaw_cost_ms == -1 && j->limit_ms == 0 && j->priority == PRIO_NORMAL);
    j = &t.job[2];
    CHECK(j->id == 3 && j->submit_ms == 7210000 && j->duration_ms == 1800000);
    CHECK(j->gpus == 4 && j->request.replicas == 2 && j->request.gpus == 2);
    CHECK(j->limit_ms == 3600000 && j->priority == PRIO_HIGH && j->thaw_cost_ms == 12000);
    CHECK_STR(j->user, "anna");
}

#define GROUND "machines 1 gpus=4\ntenant a\n"

static void what_is_wrong_is_named(void)
{
    static const struct {
        const char *text, *message;
    } table[] = {
        { "node a", "two.scene:1: field 'line': 'node' begins no line" },
        { "\nmachines x", "two.scene:2: field 'machines': " },
        { "machines", "two.scene:1: field 'machines': " },
        { "machines 1001", "two.scene:1: field 'machines': " },
        { "machines 600\nmachines 600", "two.scene:2: field 'machines': more than 1000" },
        { "machines 1 gpus=17", "two.scene:1: field 'gpus': " },
        { "machines 1 weight=1", "two.scene:1: field 'key': nothing of the line" },
        { "tenant a weight=0", "two.scene:1: field 'weight': it is 0" },
        { "tenant a weight=1 weight=1", "two.scene:1: field 'weight': it is said twice" },
        { "tenant a\ntenant a", "two.scene:2: field 'tenant': there is one" },
        { "tenant a in=b", "two.scene:1: field 'in': no line above" },
        { "tenant", "two.scene:1: field 'tenant': a name has" },
        { GROUND "job b/x at=1 run=1", "two.scene:3: field 'job': no line above" },
        { GROUND "job a at=1 run=1", "two.scene:3: field 'user': a name has" },
        { GROUND "job a/x run=1", "two.scene:3: field 'at': missing" },
        { GROUND "job a/x at=1", "two.scene:3: field 'run': missing" },
        { GROUND "job a/x at=1 run=0", "two.scene:3: field 'run': '0' is too short" },
        { GROUND "job a/x at=1 run=4000d", "two.scene:3: field 'run': " },
        { GROUND "job a/x at=1 run=1 priority=top", "two.scene:3: field 'priority': 'top'" },
        { GROUND "job a/x at=1 run=1 gpus=2 replicas=3", "two.scene:3: field 'gpus': the mach" },
        { GROUND "job a/x at=9d run=1 count=99 every=365d", "two.scene:3: field 'every': " },
        { GROUND "job a/x at=1 run=1 count=99999\njob a/x at=1 run=1 count=2",
          "two.scene:4: field 'jobs': more than" },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct trace t = { .nodes = 12345 };
        struct err e = { 0 };
        CHECK_AT(i, parse(table[i].text, &t, &e) < 0 && t.nodes == 12345);
        CHECK_AT(i, e.code == ERR_INVALID && e.hint[0]);
        if (!strstr(e.msg, table[i].message))
            CHECK_STR(e.msg, table[i].message);
    }
}

static const struct test tests[] = {
    { "reads what it says", reads_what_it_says },
    { "what is wrong is named", what_is_wrong_is_named },
};

TEST_CASES(tests)
