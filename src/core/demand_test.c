#include "core/demand.h"

#include <stdio.h>

#include "tests/lib/test.h"

static bool about(float got, double want)
{
    double off = (double)got - want;
    return off < 0.01 && off > -0.01;
}

static struct cluster two_models(void)
{
    struct cluster c;
    struct err e;
    cluster_init(&c);
    struct event_node n = { .name = STR("a0"),
                            .model = STR("a"),
                            .gpus = 8,
                            .gpu_mem_mib = 16000,
                            .cpu_milli = 64000,
                            .mem_mib = 64000 };
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    n.name = STR("b0");
    n.model = STR("b");
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    return c;
}

static void nothing_learnt_means_nothing_wasted(void)
{
    struct demand d;
    demand_init(&d);
    CHECK(d.waste[0][DEMAND_STEPS] == 0 && d.block[8] == 0 && d.price[0] == 0);
    CHECK(demand_stranded(&d, 8000, 1, 1) == 0);
    demand_free(&d);
}

static void a_free_part_that_the_usual_share_does_not_fill_is_wasted(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpu_milli = 500 });
    CHECK(about(d.waste[0][100], 0) && about(d.waste[0][50], 0));
    CHECK(about(d.waste[0][49], 490) && about(d.waste[0][99], 490));
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 1 });
    CHECK(about(d.waste[0][50], 250));  /* every second job does not fit there */
    CHECK(about(d.waste[0][100], 125)); /* every second job is a half, and then as above */
    CHECK(about(d.waste[1][100], 125) && !d.models_differ);
}

static void a_share_by_memory_is_learnt_as_a_share(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpu_mem_mib = 4000 });
    CHECK(d.kind[0].milli == 250 && about(d.waste[0][25], 0) && about(d.waste[0][24], 240));
}

static void only_jobs_that_may_use_a_model_shape_its_waste(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpu_milli = 300, .models = 1 });
    CHECK(d.models_differ && about(d.waste[0][30], 0));
    CHECK(about(d.waste[1][30], 300)); /* nobody asks for that model */
}

static void whole_gpus_on_one_node_are_worth_what_large_jobs_make_of_them(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 3, .gpus = 1 });
    CHECK(d.block[8] == 0); /* single GPUs do not care */
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 4 });
    CHECK(d.block[3] == 0 && about(d.block[4], -1000) && about(d.block[8], -2000));
}

static void gpus_without_cpus_are_stranded(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c,
                 &(struct request){ .replicas = 1, .gpus = 1, .cpu_milli = 4000, .mem_mib = 8000 });
    CHECK(about(d.per_cpu[0], 0.25) && about(d.per_cpu[3], 0.25) && about(d.per_mem[2], 0.125));
    CHECK(about(demand_stranded(&d, 4000, 4000, 64000), 3000));  /* CPUs for one of four */
    CHECK(about(demand_stranded(&d, 4000, 64000, 16000), 2000)); /* memory for two */
    CHECK(about(demand_stranded(&d, 4000, 16000, 32000), 0));
    CHECK(about(demand_stranded(&d, 0, 0, 0), 0));
}

static void frugal_and_hungry_jobs_judge_apart(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 1, .cpu_milli = 8000 });
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 1, .cpu_milli = 2000 });
    CHECK(about(d.per_cpu[0], 0.5) && about(d.per_cpu[1], 0.5));
    CHECK(about(d.per_cpu[2], 0.125) && about(d.per_cpu[3], 0.125));
    /* Two of the four groups could feed a GPU with these CPUs, two only a quarter of it. */
    CHECK(about(demand_stranded(&d, 1000, 2000, 1), 375));
}

static void jobs_without_gpus_say_nothing_about_gpus(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 1, .cpu_milli = 4000 });
    for (int i = 0; i < 8; i++)
        demand_learn(&d, &c, &(struct request){ .replicas = 1, .cpu_milli = 64000 });
    CHECK(about(d.per_cpu[0], 0.25) && about(d.waste[0][100], 0));
    CHECK(d.asked == 1000);
}

static void a_model_that_others_cannot_do_without_has_a_price(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    demand_learn(&d, &c, &(struct request){ .replicas = 192, .gpus = 1 });
    CHECK(d.price[0] == 0 && d.price[1] == 0);
    demand_learn(&d, &c, &(struct request){ .replicas = 64, .gpus = 1, .models = 1 });
    CHECK(about(d.price[0], 0.5)); /* a quarter of the demand, on half of the GPUs */
    CHECK(about(d.price[1], 0));
    struct slot s = { 0, 0xF, GPU_MILLI };
    cluster_take(&c, &(struct request){ .replicas = 1, .gpus = 4 }, &s, 1);
    demand_learn(&d, &c, &(struct request){ .replicas = 64, .gpus = 1, .models = 1 });
    CHECK(about(d.price[0], 1)); /* 0.4 of the demand on a third of what is left: dear */
}

static void the_old_counts_half_when_much_was_seen(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    struct request old = { .replicas = 4096, .gpu_milli = 500 };
    demand_init(&d);
    for (int i = 0; i < 32; i++)
        demand_learn(&d, &c, &old);
    CHECK(d.kinds == 1 && d.kind[0].count == 131072 && d.seen == 131072);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 1 });
    CHECK(d.kinds == 2 && d.kind[0].count == 65536 && d.seen == 65537);
    CHECK(about((float)(d.asked / 65536), 500 + 1000.0 / 65536));
}

static void what_falls_to_nothing_is_forgotten(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    demand_init(&d);
    for (uint32_t i = 0; i < 4096; i++)
        demand_learn(&d, &c,
                     &(struct request){ .replicas = 1, .gpus = 1, .models = 1, .cpu_milli = i });
    CHECK(d.kinds == 4096 && d.bounds == 4096);
    demand_learn(&d, &c, &(struct request){ .replicas = 1, .gpus = 2 });
    CHECK(d.kinds == 1 && d.bounds == 0 && d.seen == 1 && d.asked == 2000);
}

static const struct test tests[] = {
    { "nothing learnt means nothing wasted", nothing_learnt_means_nothing_wasted },
    { "a free part that the usual share does not fill is wasted",
      a_free_part_that_the_usual_share_does_not_fill_is_wasted },
    { "a share by memory is learnt as a share", a_share_by_memory_is_learnt_as_a_share },
    { "only jobs that may use a model shape its waste",
      only_jobs_that_may_use_a_model_shape_its_waste },
    { "whole GPUs on one node are worth what large jobs make of them",
      whole_gpus_on_one_node_are_worth_what_large_jobs_make_of_them },
    { "GPUs without CPUs are stranded", gpus_without_cpus_are_stranded },
    { "frugal and hungry jobs judge apart", frugal_and_hungry_jobs_judge_apart },
    { "jobs without GPUs say nothing about GPUs", jobs_without_gpus_say_nothing_about_gpus },
    { "a model that others cannot do without has a price",
      a_model_that_others_cannot_do_without_has_a_price },
    { "the old counts half when much was seen", the_old_counts_half_when_much_was_seen },
    { "what falls to nothing is forgotten", what_falls_to_nothing_is_forgotten },
};
TEST_CASES(tests)
