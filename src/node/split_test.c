#include "node/split.h"

#include "base/rng.h"
#include "tests/lib/test.h"

static int64_t part_of(const struct report_sample *s, const char *who, bool mem)
{
    for (uint32_t i = 0; i < s->parts; i++)
        if (strcmp(s->part[i].who, who) == 0)
            return mem ? s->part[i].mem_mib : s->part[i].permille;
    return -1;
}

static void a_task_is_the_sum_of_its_processes(void)
{
    AUTO(free_p) struct report_sample *s = report_sample_new();
    const struct split_process p[] = {
        { "1.1.0", 20, 100 }, { "1.1.0", 10, 50 }, { "2.1.0", 30, 200 }, { "", 5, 10 }
    };
    split_add(&(struct split_gpu){ 0, 700, 400, true, p, ARRAY_LEN(p) }, s);
    CHECK_INT(part_of(s, "1.1.0", false), 300);
    CHECK_INT(part_of(s, "1.1.0", true), 150);
    CHECK_INT(part_of(s, "2.1.0", false), 300);
    CHECK_INT(part_of(s, REPORT_OTHER, false), 50);
    CHECK_INT(part_of(s, REPORT_NOT_TOLD, false), 50);
    CHECK_INT(part_of(s, REPORT_NOT_TOLD, true), 40);
}

static void nothing_is_guessed_where_the_driver_does_not_tell(void)
{
    AUTO(free_p) struct report_sample *s = report_sample_new();
    const struct split_process two[] = { { "1.1.0", -1, -1 }, { "2.1.0", -1, -1 } };
    split_add(&(struct split_gpu){ 0, 800, 1000, false, two, 2 }, s);
    CHECK_INT(part_of(s, REPORT_NOT_TOLD, false), 800);
    CHECK_INT(part_of(s, "1.1.0", false), 0);
    s->parts = 0;
    split_add(&(struct split_gpu){ 0, 800, 1000, false, two, 1 }, s); /* who else could it be? */
    CHECK_INT(part_of(s, "1.1.0", false), 800);
}

static void parts_add_up_to_the_device_whatever_the_driver_says(void)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        AUTO(free_p) struct report_sample *s = report_sample_new();
        struct rng r = { seed };
        struct split_process p[40];
        size_t n = rng_below(&r, ARRAY_LEN(p) + 1);
        for (size_t i = 0; i < n; i++) {
            p[i] = (struct split_process){ .percent = (int64_t)rng_below(&r, 102) - 1,
                                           .mem_mib = (int64_t)rng_below(&r, 9000) - 1 };
            p[i].who[0] = (const char[]){ 0, '1', '2', '3' }[rng_below(&r, 4)];
        }
        struct split_gpu g = { 3,
                               (int64_t)rng_below(&r, 1001),
                               (int64_t)rng_below(&r, 80000),
                               rng_below(&r, 2) == 0,
                               p,
                               n };
        int64_t work = 0, mem = 0;
        split_add(&g, s);
        for (uint32_t i = 0; i < s->parts; i++) {
            CHECK_AT(seed, s->part[i].permille >= 0 && s->part[i].mem_mib >= 0);
            CHECK_AT(seed, s->part[i].gpu == 3);
            work += s->part[i].permille;
            mem += s->part[i].mem_mib;
        }
        CHECK_AT(seed, work == g.permille && mem == g.mem_used_mib);
    }
}

static const struct test tests[] = {
    { "a task is the sum of its processes", a_task_is_the_sum_of_its_processes },
    { "nothing is guessed where the driver does not tell",
      nothing_is_guessed_where_the_driver_does_not_tell },
    { "parts add up to the device, whatever the driver says",
      parts_add_up_to_the_device_whatever_the_driver_says },
};
TEST_CASES(tests)
