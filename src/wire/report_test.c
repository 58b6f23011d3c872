#include "wire/report.h"

#include <stdio.h>

#include "tests/lib/test.h"

struct seen {
    uint32_t samples;
    struct report_head *head;
    struct report_sample *last;
};

static void see(void *ctx, const struct report_head *h, const struct report_sample *s)
{
    struct seen *seen = ctx;
    seen->samples++;
    *seen->head = *h;
    report_sample_copy(seen->last, s);
}

static void fill(struct report_head *h, struct report_sample *s)
{
    *h = (struct report_head){ .node = "pc1",
                               .boot = "b",
                               .version = "0.1.0",
                               .number = 7,
                               .simulated = true,
                               .gpus = 2,
                               .gpu = { { 0, 81920, 400000, "GPU-a", "NVIDIA A100 80GB" },
                                        { 3, 81920, -1, "GPU-b", "odd\nname" } } };
    s->t_ms = 1000;
    s->node[REPORT_NODE_CPU] = 1500;
    s->gpu[0][REPORT_GPU_UTIL] = 900;
    s->gpu[1][REPORT_GPU_UTIL] = 0;
    s->part[0] = (struct report_part){ 0, "17.1.0", 600, 4000, 2 };
    s->part[1] = (struct report_part){ 0, REPORT_NOT_TOLD, 300, 0, 0 };
    s->parts = 2;
    s->tasks = 1;
    snprintf(s->task[0].task, sizeof s->task[0].task, "17.1.0");
    s->task[0].v[REPORT_TASK_MEM] = 12;
}

static void what_is_written_reads_the_same(void)
{
    AUTO(free_p) struct report_head *h = report_head_new(), *head = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new(), *room = report_sample_new();
    AUTO(report_writer_free_p) struct report_writer *w = report_writer_new();
    AUTO(buf_free) struct buf text = BUF(REPORT_BYTES_MAX);
    struct seen seen = { .head = report_head_new(), .last = report_sample_new() };
    struct err e;
    fill(h, s);
    report_begin(w, h, &text);
    report_add(w, h, s, &text);
    CHECK(report_read(buf_str(&text), head, room, see, &seen, &e) == 0);
    CHECK(seen.samples == 1 && seen.head->gpus == 2 && seen.head->simulated);
    CHECK_INT(seen.head->number, 7);
    CHECK_STR(seen.head->gpu[0].name, "NVIDIA A100 80GB");
    CHECK_STR(seen.head->gpu[1].name, "odd?name"); /* no name can make a line */
    CHECK_INT(seen.head->gpu[1].power_limit_mw, REPORT_UNKNOWN);
    CHECK(seen.last->parts == 2 && seen.last->tasks == 1 && seen.last->findings == 0);
    CHECK_INT(seen.last->part[0].permille, 600);
    CHECK_INT(seen.last->gpu[0][REPORT_GPU_POWER], REPORT_UNKNOWN);
    CHECK_INT(seen.last->task[0].v[REPORT_TASK_MEM], 12);
    free(seen.head);
    free(seen.last);
}

static void a_machine_that_stands_still_costs_a_line_a_sample(void)
{
    AUTO(free_p) struct report_head *h = report_head_new(), *head = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new(), *room = report_sample_new();
    AUTO(report_writer_free_p) struct report_writer *w = report_writer_new();
    AUTO(buf_free) struct buf text = BUF(REPORT_BYTES_MAX);
    struct seen seen = { .head = report_head_new(), .last = report_sample_new() };
    struct err e;
    fill(h, s);
    report_begin(w, h, &text);
    report_add(w, h, s, &text);
    size_t first = text.n;
    for (int i = 0; i < 100; i++) {
        s->t_ms += 1000;
        report_add(w, h, s, &text);
    }
    CHECK(text.n - first < 100 * 12);
    s->t_ms += 1000;
    s->parts = 0; /* the job has ended */
    s->tasks = 0;
    s->gpu[0][REPORT_GPU_UTIL] = 0;
    report_add(w, h, s, &text);
    CHECK(report_read(buf_str(&text), head, room, see, &seen, &e) == 0);
    CHECK_INT(seen.samples, 102);
    CHECK(seen.last->parts == 0 && seen.last->tasks == 0 &&
          seen.last->gpu[0][REPORT_GPU_UTIL] == 0);
    CHECK_INT(seen.last->node[REPORT_NODE_CPU], 1500); /* as it was in the first */
    free(seen.head);
    free(seen.last);
}

static void a_task_has_its_jobs_number(void)
{
    uint64_t job = 0;
    CHECK(report_who_job("17.1.0", &job) && job == 17);
    CHECK(!report_who_job(REPORT_OTHER, &job) && !report_who_job("", &job));
    CHECK(!report_who_job("99999999999999999999.1.0", &job));
}

static const struct test tests[] = {
    { "what is written reads the same", what_is_written_reads_the_same },
    { "a machine that stands still costs a line a sample",
      a_machine_that_stands_still_costs_a_line_a_sample },
    { "a task has its job's number", a_task_has_its_jobs_number },
};
TEST_CASES(tests)
