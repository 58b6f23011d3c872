#include "history/trail.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/fakes/host.h"

#define T0 INT64_C(1763400000000)

struct world {
    struct fake_host host;
    char path[120];
    struct trails *t;
    struct report_head *head;
    struct report_sample *s;
};

static void reopen(struct world *w)
{
    trails_close(w->t);
    w->t = trails_open(w->path);
}

static void world_init(struct world *w)
{
    *w = (struct world){ .head = report_head_new(), .s = report_sample_new() };
    fake_init(&w->host);
    snprintf(w->path, sizeof w->path, "%s/tasks", w->host.root);
    w->head->gpus = 1;
    w->s->gpu[0][REPORT_GPU_UTIL] = 700;
    w->t = trails_open(w->path);
}

static void world_clear(struct world *w)
{
    trails_close(w->t);
    free(w->head);
    free(w->s);
    fake_clear(&w->host);
}

static void take(struct world *w, const char *task, int64_t t_ms, int64_t cpu)
{
    w->s->t_ms = t_ms;
    w->s->tasks = 1;
    snprintf(w->s->task[0].task, sizeof w->s->task[0].task, "%s", task);
    w->s->task[0].v[REPORT_TASK_CPU] = cpu;
    w->s->task[0].v[REPORT_TASK_MEM] = 64;
    trails_take(w->t, w->head, w->s);
}

static bool find(struct world *w, uint64_t job, struct history_trail *out)
{
    return trails_find(w->t, (struct history_task){ job, 1, 0 }, out);
}

static void a_trail_has_what_was_told_of_a_task(void)
{
    AUTO(world_clear) struct world w;
    struct history_trail got;
    world_init(&w);
    w.s->parts = 1;
    w.s->part[0] = (struct report_part){ .who = "7.1.0", .permille = 300, .mem_mib = 1000 };
    take(&w, "7.1.0", T0, 100);
    take(&w, "7.1.0", T0 + 1000, 300);
    take(&w, "7.1.0", T0 + 3000, -1); /* not known */
    CHECK(find(&w, 7, &got) && !find(&w, 8, &got) && find(&w, 7, &got));
    CHECK(got.from_ms == T0 && got.step_ms == 1000);
    CHECK_INT(got.points, 4);
    CHECK_INT(got.v[HISTORY_TASK_CPU][1], 300);
    CHECK(isnan(got.v[HISTORY_TASK_CPU][2]) && isnan(got.v[HISTORY_TASK_CPU][3]));
    CHECK_INT(got.v[HISTORY_TASK_MEM][3], 64);
    CHECK_INT(got.v[HISTORY_TASK_GPU][0], 300);
    CHECK_INT(got.v[HISTORY_TASK_GPU_MEM][3], 1000);
}

static void a_part_of_a_gpu_that_may_be_hidden_is_not_guessed(void)
{
    AUTO(world_clear) struct world w;
    struct history_trail got;
    world_init(&w);
    take(&w, "7.1.0", T0, 100); /* every part is told, and none is its own */
    w.s->parts = 1;
    w.s->part[0] = (struct report_part){ .who = REPORT_NOT_TOLD, .permille = 300 };
    take(&w, "7.1.0", T0 + 1000, 100);
    CHECK(find(&w, 7, &got));
    CHECK_INT(got.v[HISTORY_TASK_GPU][0], 0);
    CHECK(isnan(got.v[HISTORY_TASK_GPU][1]));
}

static void a_long_one_has_as_many_points_of_longer_steps(void)
{
    AUTO(world_clear) struct world w;
    struct history_trail got;
    world_init(&w);
    for (int64_t i = 0; i < 5000; i++)
        take(&w, "7.1.0", T0 + i * 1000, i < 2500 ? 100 : 900);
    CHECK(find(&w, 7, &got));
    CHECK(got.from_ms == T0 && got.step_ms == 16000);
    CHECK_INT(got.points, 313);
    CHECK_INT(got.v[HISTORY_TASK_CPU][0], 100);
    CHECK_INT(got.v[HISTORY_TASK_CPU][155], 100);
    CHECK_INT(got.v[HISTORY_TASK_CPU][157], 900);
    CHECK_INT(got.v[HISTORY_TASK_CPU][312], 900);
    take(&w, "7.1.0", T0 + INT64_C(90000000000), 5); /* years later */
    CHECK(find(&w, 7, &got) && got.points <= TRAIL_POINTS);
    CHECK_INT(got.v[HISTORY_TASK_CPU][got.points - 1], 5);
}

static void trails_outlive_the_daemon_and_a_torn_one_counts_as_none(void)
{
    AUTO(world_clear) struct world w;
    struct history_trail got;
    world_init(&w);
    take(&w, "7.1.0", T0, 100);
    take(&w, "8.1.0", T0, 200);
    reopen(&w);
    CHECK(find(&w, 7, &got) && got.v[HISTORY_TASK_CPU][0] > 99);
    CHECK(find(&w, 8, &got) && got.v[HISTORY_TASK_CPU][0] > 199);
    w.t = trails_close(w.t);
    int fd = open(w.path, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, "x", 1, 200) == 1);
    close(fd);
    w.t = trails_open(w.path);
    CHECK(!find(&w, 7, &got) && find(&w, 8, &got));
    w.t = trails_close(w.t);
    CHECK(truncate(w.path, 100) == 0);
    w.t = trails_open(w.path);
    CHECK(!find(&w, 8, &got));
    take(&w, "8.1.0", T0, 200);
    CHECK(find(&w, 8, &got));
}

static void the_one_that_is_over_longest_gives_way_and_those_that_run_do_not(void)
{
    AUTO(world_clear) struct world w;
    struct history_trail got;
    char task[40];
    world_init(&w);
    for (uint64_t i = 1; i <= TRAILS_MAX; i++) {
        snprintf(task, sizeof task, "%llu.1.0", (unsigned long long)i);
        take(&w, task, T0 + (int64_t)i, 1);
    }
    take(&w, "5000.1.0", T0 + 2000, 1); /* all others run */
    CHECK(!find(&w, 5000, &got) && find(&w, 1, &got));
    take(&w, "1.1.0", T0 + 90000, 1);
    take(&w, "5000.1.0", T0 + 90000, 1);
    CHECK(find(&w, 5000, &got) && find(&w, 1, &got) && !find(&w, 2, &got) && find(&w, 3, &got));
}

static void what_is_no_task_has_no_trail(void)
{
    static const char *const bad[] = {
        "", "7", "7.1", "7.1.0.0", "7.x.0", "7.1.", "7.1.4294967296", "other"
    };
    AUTO(world_clear) struct world w;
    world_init(&w);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        take(&w, bad[i], T0, 1);
    struct history_trail got;
    CHECK(!find(&w, 7, &got));
}

static const struct test tests[] = {
    { "a trail has what was told of a task", a_trail_has_what_was_told_of_a_task },
    { "a part of a GPU that may be hidden is not guessed",
      a_part_of_a_gpu_that_may_be_hidden_is_not_guessed },
    { "a long one has as many points of longer steps",
      a_long_one_has_as_many_points_of_longer_steps },
    { "trails outlive the daemon, and a torn one counts as none",
      trails_outlive_the_daemon_and_a_torn_one_counts_as_none },
    { "the one that is over longest gives way, and those that run do not",
      the_one_that_is_over_longest_gives_way_and_those_that_run_do_not },
    { "what is no task has no trail", what_is_no_task_has_no_trail },
};
TEST_CASES(tests)
