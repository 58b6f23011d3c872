#include "node/health.h"

#include "tests/lib/test.h"

struct world {
    struct health health;
    struct health_facts facts;
    struct report_head *head;
    struct report_sample *s;
};

static void world_clear(struct world *w)
{
    free(w->head);
    free(w->s);
}

static struct world world_new(void)
{
    struct world w = { .head = report_head_new(), .s = report_sample_new() };
    w.head->gpus = 2;
    w.head->gpu[1].index = 1;
    w.s->t_ms = 1000000;
    return w;
}

static const char *first(struct world *w)
{
    w->s->findings = 0;
    health_check(&w->health, w->head, &w->facts, w->s);
    return w->s->findings ? w->s->finding[0].rule : "";
}

static void a_machine_of_which_nothing_is_known_is_not_called_broken(void)
{
    AUTO(world_clear) struct world w = world_new();
    CHECK_STR(first(&w), "");
    w.facts.driver = NVML_NO_LIBRARY;
    CHECK_STR(first(&w), "");
}

static void each_rule_finds_its_cause(void)
{
    AUTO(world_clear) struct world w = world_new();
    w.facts.gpu[1] = NVML_LOST;
    CHECK_STR(first(&w), "gpu_lost");
    CHECK_INT(w.s->finding[0].gpu, 1);
    w.facts.gpu[1] = NVML_RESET;
    CHECK_STR(first(&w), "gpu_reset");
    w.facts.gpu[1] = NVML_NONE;
    w.facts.driver = NVML_MISMATCH;
    CHECK_STR(first(&w), "driver_mismatch");
    w.facts.driver = NVML_NO_DRIVER;
    CHECK_STR(first(&w), "driver");
    w.facts.driver = NVML_NONE;
    w.s->gpu[0][REPORT_GPU_ECC_UNCORRECTED] = 1;
    CHECK_STR(first(&w), "ecc");
    w.s->gpu[0][REPORT_GPU_ECC_UNCORRECTED] = 0;
    w.s->node[REPORT_NODE_DISK] = 100000;
    w.s->node[REPORT_NODE_DISK_USED] = 99000;
    CHECK_STR(first(&w), "disk_full");
    w.s->node[REPORT_NODE_DISK_USED] = 97000;
    CHECK_STR(first(&w), "");
}

static void heat_counts_when_it_lasts(void)
{
    AUTO(world_clear) struct world w = world_new();
    w.s->gpu[0][REPORT_GPU_THROTTLE] = 1 << 6;
    CHECK_STR(first(&w), "");
    w.s->t_ms += HEALTH_HOT_MS - 1;
    CHECK_STR(first(&w), "");
    w.s->t_ms += 1;
    CHECK_STR(first(&w), "too_hot");
    w.s->gpu[0][REPORT_GPU_THROTTLE] = 4; /* the power cap is no trouble */
    CHECK_STR(first(&w), "");
    w.s->gpu[0][REPORT_GPU_THROTTLE] = 1 << 5;
    CHECK_STR(first(&w), "");
}

static void an_error_of_a_program_is_none_of_the_gpu(void)
{
    AUTO(world_clear) struct world w = world_new();
    w.s->gpu[0][REPORT_GPU_XID] = 31;
    CHECK_STR(first(&w), "");
    w.s->gpu[0][REPORT_GPU_XID] = 79;
    CHECK_STR(first(&w), "xid");
    w.s->gpu[0][REPORT_GPU_XID] = 31; /* what came later does not make it whole */
    CHECK_STR(first(&w), "xid");
    CHECK(health_rule_drains(STR("xid")) && health_rule_drains(STR("of a later agent")));
}

static const struct test tests[] = {
    { "a machine of which nothing is known is not called broken",
      a_machine_of_which_nothing_is_known_is_not_called_broken },
    { "each rule finds its cause", each_rule_finds_its_cause },
    { "heat counts when it lasts", heat_counts_when_it_lasts },
    { "an error of a program is none of the GPU", an_error_of_a_program_is_none_of_the_gpu },
};
TEST_CASES(tests)
