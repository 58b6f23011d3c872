#include "agent/queue.h"

#include <stdio.h>

#include "tests/lib/test.h"

static void fill(struct report_head *h, struct report_sample *s, int gpus)
{
    snprintf(h->node, sizeof h->node, "pc1");
    snprintf(h->boot, sizeof h->boot, "b");
    snprintf(h->version, sizeof h->version, "0.1.0");
    h->gpus = (uint32_t)gpus;
    for (int i = 0; i < gpus; i++) {
        h->gpu[i] = (struct report_gpu){ (uint32_t)i, 81920, 400000, "", "NVIDIA A100-SXM4-80GB" };
        snprintf(h->gpu[i].uuid, sizeof h->gpu[i].uuid, "GPU-%d", i);
    }
    s->t_ms = 0;
}

/* Everything changes in every sample, as on a machine at work. */
static void change(struct report_head *h, struct report_sample *s, int64_t t)
{
    s->t_ms = t * 1000;
    s->node[REPORT_NODE_CPU] = t % 64000;
    s->parts = 0;
    for (uint32_t i = 0; i < h->gpus; i++) {
        for (size_t k = 0; k < REPORT_GPU_COUNT; k++)
            s->gpu[i][k] = 0;
        s->gpu[i][REPORT_GPU_UTIL] = (t * 7 + i) % 1000;
        s->gpu[i][REPORT_GPU_MEM_USED] = 40000 + t % 100;
        s->gpu[i][REPORT_GPU_POWER] = 200000 + t * 13 % 1000;
        s->part[s->parts] = (struct report_part){ .gpu = i, .permille = t % 1000, .mem_mib = 1 };
        snprintf(s->part[s->parts++].who, sizeof s->part[0].who, "%u.1.0", i);
    }
}

static void count(void *ctx, const struct report_head *h, const struct report_sample *s)
{
    int64_t *next = ctx;
    (void)h;
    CHECK_INT(s->t_ms, *next * 1000);
    ++*next;
}

static void an_hour_without_a_control_plane_is_told_second_by_second(void)
{
    AUTO(free_p) struct report_head *h = report_head_new(), *head = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new(), *room = report_sample_new();
    AUTO(queue_free_p)
    struct queue *q = queue_new(&(struct queue_bounds){ 3u << 20, 3600000, 60 });
    uint64_t number;
    struct str bytes;
    struct err e;
    int64_t next = 0;
    fill(h, s, 8);
    for (int64_t t = 0; t < 3600; t++) {
        change(h, s, t);
        queue_add(q, h, s);
    }
    CHECK_INT(queue_lost(q), 0);
    CHECK(queue_bytes(q) < 3u << 20);
    while (queue_front(q, &number, &bytes)) {
        CHECK(report_read(bytes, head, room, count, &next, &e) == 0);
        queue_ack(q, number);
    }
    CHECK_INT(next, 3600);
    CHECK(queue_samples(q) == 0 && queue_bytes(q) == 0);
}

static void a_day_without_one_keeps_the_last_hour_and_does_not_grow(void)
{
    AUTO(free_p) struct report_head *h = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new();
    AUTO(queue_free_p)
    struct queue *q = queue_new(&(struct queue_bounds){ 3u << 20, 3600000, 60 });
    fill(h, s, 8);
    for (int64_t t = 0; t < 86400; t++) {
        change(h, s, t);
        queue_add(q, h, s);
        CHECK(queue_bytes(q) <= 3u << 20 && queue_samples(q) <= 3661);
    }
    CHECK_INT(queue_lost(q) + queue_samples(q), 86400);
    CHECK(queue_samples(q) >= 3540);
}

static void what_is_not_acknowledged_is_sent_again(void)
{
    AUTO(free_p) struct report_head *h = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new();
    AUTO(queue_free_p)
    struct queue *q = queue_new(&(struct queue_bounds){ 1u << 20, 3600000, 60 });
    uint64_t first, again;
    struct str bytes;
    fill(h, s, 1);
    CHECK(!queue_front(q, &first, &bytes));
    queue_add(q, h, s);
    CHECK(queue_front(q, &first, &bytes));
    s->t_ms += 1000;
    queue_add(q, h, s); /* goes into the next batch: this one was told already */
    CHECK(queue_front(q, &again, &bytes) && again == first);
    queue_ack(q, first);
    CHECK(queue_front(q, &again, &bytes) && again == first + 1);
    CHECK_INT(queue_samples(q), 1);
}

static const struct test tests[] = {
    { "an hour without a control plane is told second by second",
      an_hour_without_a_control_plane_is_told_second_by_second },
    { "a day without one keeps the last hour and does not grow",
      a_day_without_one_keeps_the_last_hour_and_does_not_grow },
    { "what is not acknowledged is sent again", what_is_not_acknowledged_is_sent_again },
};
TEST_CASES(tests)
