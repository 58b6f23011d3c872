#include "history/history.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/host.h"

#define HOUR INT64_C(3600000)
#define T0 (INT64_C(490000) * HOUR) /* a full hour */

struct world {
    struct fake_host host;
    struct history *h;
    struct report_head *head;
    struct report_sample *s;
    struct report_writer *writer;
};

static void open_history(struct world *w)
{
    char path[100];
    struct err e;
    snprintf(path, sizeof path, "%s/history", w->host.root);
    history_close(w->h);
    w->h = history_open(path, &e);
    CHECK(w->h != NULL);
}

static void world_init(struct world *w)
{
    *w = (struct world){ .head = report_head_new(),
                         .s = report_sample_new(),
                         .writer = report_writer_new() };
    fake_init(&w->host);
    snprintf(w->head->node, sizeof w->head->node, "pc1");
    snprintf(w->head->boot, sizeof w->head->boot, "b");
    snprintf(w->head->version, sizeof w->head->version, "v");
    w->head->gpus = 1;
    snprintf(w->head->gpu[0].uuid, sizeof w->head->gpu[0].uuid, "GPU-a");
    snprintf(w->head->gpu[0].name, sizeof w->head->gpu[0].name, "A100");
    open_history(w);
}

static void world_clear(struct world *w)
{
    history_close(w->h);
    free(w->head);
    free(w->s);
    report_writer_free(w->writer);
    fake_clear(&w->host);
}

static void take(struct world *w, int64_t t_ms, int64_t util)
{
    AUTO(buf_free) struct buf text = BUF(REPORT_BYTES_MAX);
    uint64_t number;
    struct err e;
    w->s->t_ms = t_ms;
    w->s->gpu[0][REPORT_GPU_UTIL] = util;
    report_begin(w->writer, w->head, &text);
    report_add(w->writer, w->head, w->s, &text);
    CHECK(history_take(w->h, STR("pc1"), buf_str(&text), t_ms, &number, &e) == 0);
}

static struct history_chart chart(struct world *w, struct arena *a, int64_t from, int64_t to,
                                  int64_t step)
{
    struct history_chart c;
    struct err e;
    struct history_ask ask = { from, to, step };
    CHECK(history_chart(w->h, STR("pc1"), &ask, a, &c, &e) == 0);
    return c;
}

static float util_at(const struct history_chart *c, size_t i)
{
    return c->v[HISTORY_NODE_COUNT * c->points + i];
}

static void each_resolution_has_the_averages_of_the_finer_one(void)
{
    AUTO(world_clear) struct world w;
    AUTO(arena_free) struct arena a = { 0 };
    world_init(&w);
    for (int64_t t = 0; t < 7200; t++) /* the second hour is twice as busy */
        take(&w, T0 + t * 1000, t < 3600 ? 200 + (t % 60) : 400 + (t % 60));
    struct history_chart c = chart(&w, &a, T0 + HOUR, T0 + 2 * HOUR, 1000);
    CHECK(c.step_ms == 1000 && c.points == 3600);
    CHECK_INT(util_at(&c, 0), 400);
    CHECK_INT(util_at(&c, 59), 459);
    c = chart(&w, &a, T0, T0 + 2 * HOUR, 1000); /* seconds do not go back so far: minutes do */
    CHECK(c.step_ms == 60000 && c.points == 120);
    CHECK(fabsf(util_at(&c, 0) - 229.5f) < 0.1f && fabsf(util_at(&c, 119) - 429.5f) < 0.1f);
    c = chart(&w, &a, T0, T0 + 2 * HOUR, HOUR);
    CHECK(c.points == 2 && fabsf(util_at(&c, 1) - 429.5f) < 0.1f);
    c = chart(&w, &a, T0 - HOUR, T0, 60000); /* before anything was measured */
    CHECK(c.points == 60 && !isfinite(util_at(&c, 30)));
}

static void a_restart_goes_on_in_the_same_minute(void)
{
    AUTO(world_clear) struct world w;
    AUTO(arena_free) struct arena a = { 0 };
    world_init(&w);
    for (int64_t t = 0; t < 60; t++) {
        if (t == 30)
            open_history(&w);
        take(&w, T0 + t * 1000, t < 30 ? 100 : 300);
    }
    struct history_chart c = chart(&w, &a, T0, T0 + 60000, 60000);
    CHECK(c.points == 1);
    CHECK_INT(util_at(&c, 0), 200);
}

static void what_comes_twice_counts_once(void)
{
    AUTO(world_clear) struct world w;
    struct history_node n;
    world_init(&w);
    take(&w, T0, 100);
    take(&w, T0, 900);
    CHECK(history_find(w.h, STR("pc1"), &n) && n.samples == 1);
    CHECK_INT(n.last->gpu[0][REPORT_GPU_UTIL], 100);
}

static void a_clock_that_was_set_back_is_heard_at_once(void)
{
    AUTO(world_clear) struct world w;
    struct history_node n;
    world_init(&w);
    w.head->number = 1;
    take(&w, T0 + HOUR, 100);
    w.head->number = 2;
    take(&w, T0, 200);
    CHECK(history_find(w.h, STR("pc1"), &n) && n.samples == 2);
    CHECK_INT(n.last->gpu[0][REPORT_GPU_UTIL], 200);
    take(&w, T0, 300); /* sent again */
    CHECK(history_find(w.h, STR("pc1"), &n) && n.samples == 2);
    CHECK_INT(n.last->gpu[0][REPORT_GPU_UTIL], 200);
}

static uint64_t folder_bytes(const struct world *w, const char *end)
{
    char path[120];
    struct stat st;
    snprintf(path, sizeof path, "%s/history/pc1.%s", w->host.root, end);
    CHECK(stat(path, &st) == 0);
    return (uint64_t)st.st_size;
}

static uint64_t all_bytes(const struct world *w)
{
    static const char *const ends[] = { "1s", "1m", "10m", "1h", "1d" };
    uint64_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        sum += folder_bytes(w, ends[i]);
    return sum;
}

static void files_never_grow(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    take(&w, T0, 1);
    uint64_t before = all_bytes(&w);
    for (int64_t t = 1; t < 9000; t++) /* more than an hour in one, a year in another */
        take(&w, T0 + t * HOUR, 5);
    CHECK_INT(all_bytes(&w), before);
    CHECK(before < 8u << 20);
}

static void a_ring_that_was_not_there_is_made_of_the_finer_one(void)
{
    AUTO(world_clear) struct world w;
    AUTO(arena_free) struct arena a = { 0 };
    char path[120];
    world_init(&w);
    for (int64_t m = 0; m < 3 * 24 * 60; m++)
        take(&w, T0 + m * 60000, m % 20 < 10 ? 100 : 900);
    struct history_chart was = chart(&w, &a, T0, T0 + 72 * HOUR, 600000);
    w.h = history_close(w.h);
    static const char *const gone[] = { "10m", "1d" }; /* as an older version left it */
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        snprintf(path, sizeof path, "%s/history/pc1.%s", w.host.root, gone[i]);
        CHECK(unlink(path) == 0);
    }
    open_history(&w);
    take(&w, T0 + 72 * HOUR, 500);
    struct history_chart is = chart(&w, &a, T0, T0 + 72 * HOUR, 600000);
    CHECK_INT(is.points, was.points);
    CHECK_INT(is.points, 432);
    for (size_t i = 0; i < is.points; i++) {
        CHECK_INT(util_at(&was, i), i % 2 ? 900 : 100);
        CHECK_INT(util_at(&is, i), i % 2 ? 900 : 100);
    }
    is = chart(&w, &a, T0 - 28 * 24 * HOUR, T0 + 72 * HOUR,
               540000); /* 44,640 minutes are too many */
    CHECK(is.step_ms == 600000 && is.points == 4464);
    is = chart(&w, &a, T0, T0 + 72 * HOUR, 540000);
    CHECK(is.step_ms == 540000 && is.points >= 480 && is.points <= 481);
    is = chart(&w, &a, T0, T0 + 72 * HOUR, 24 * HOUR);
    CHECK(util_at(&is, 1) > 490 && util_at(&is, 1) < 510);
}

static void a_torn_row_counts_as_missing(void)
{
    AUTO(world_clear) struct world w;
    AUTO(arena_free) struct arena a = { 0 };
    char path[120];
    world_init(&w);
    for (int64_t t = 0; t < 10; t++)
        take(&w, T0 + t * 1000, 500);
    snprintf(path, sizeof path, "%s/history/pc1.1s", w.host.root);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    size_t row = (16 + (HISTORY_NODE_COUNT + HISTORY_GPU_COUNT) * sizeof(float) + 7) & ~(size_t)7;
    off_t at = 4096 + (off_t)((uint64_t)(T0 / 1000 + 4) % 3600 * row) + 20;
    CHECK(pwrite(fd, "torn", 4, at) == 4);
    close(fd);
    struct history_chart c = chart(&w, &a, T0, T0 + 10000, 1000);
    CHECK(c.points == 10 && !isfinite(util_at(&c, 4)));
    CHECK_INT(util_at(&c, 3), 500);
    CHECK_INT(util_at(&c, 5), 500);
}

static void one_cause_drains_once(void)
{
    AUTO(world_clear) struct world w;
    struct history_node n;
    AUTO(buf_free) struct buf text = BUF(1000);
    world_init(&w);
    w.s->findings = 1;
    w.s->finding[0] = (struct report_finding){ "gpu_lost", 0, "GPU 0 fell off the bus" };
    take(&w, T0, -1);
    CHECK(history_undrained(w.h, STR("pc1")) != NULL);
    history_set_reason(w.h, STR("pc1"), STR("gpu_lost: it fell"));
    CHECK(history_undrained(w.h, STR("pc1")) == NULL);
    CHECK(history_trouble(w.h, STR("pc1"), 1, &text));
    CHECK_STR(text.p, "pc1: GPU 0 fell off the bus");
    CHECK(!history_trouble(w.h, STR("pc1"), 2, &text)); /* of another GPU */
    history_set_reason(w.h, STR("pc1"), STR(""));       /* an operator lets it work */
    open_history(&w);
    take(&w, T0 + 1000, -1);
    CHECK(history_undrained(w.h, STR("pc1")) == NULL);
    w.s->findings = 0;
    take(&w, T0 + 2000, 0);
    CHECK(history_find(w.h, STR("pc1"), &n) && n.findings == 0);
    w.s->findings = 1;
    take(&w, T0 + 3000, -1);
    CHECK(history_undrained(w.h, STR("pc1")) != NULL);
}

static void a_name_cannot_lead_out_of_the_folder(void)
{
    AUTO(world_clear) struct world w;
    uint64_t number;
    struct err e;
    world_init(&w);
    struct str text = STR("nightshift-report 1\nfrom ../x b 1 0 v\ns 5\n");
    CHECK(history_take(w.h, STR("../x"), text, 5, &number, &e) < 0);
    CHECK(history_take(w.h, STR("pc1"), text, 5, &number, &e) < 0);
}

static const struct test tests[] = {
    { "each resolution has the averages of the finer one",
      each_resolution_has_the_averages_of_the_finer_one },
    { "a restart goes on in the same minute", a_restart_goes_on_in_the_same_minute },
    { "what comes twice counts once", what_comes_twice_counts_once },
    { "a clock that was set back is heard at once", a_clock_that_was_set_back_is_heard_at_once },
    { "files never grow", files_never_grow },
    { "a ring that was not there is made of the finer one",
      a_ring_that_was_not_there_is_made_of_the_finer_one },
    { "a torn row counts as missing", a_torn_row_counts_as_missing },
    { "one cause drains once", one_cause_drains_once },
    { "a name cannot lead out of the folder", a_name_cannot_lead_out_of_the_folder },
};
TEST_CASES(tests)
