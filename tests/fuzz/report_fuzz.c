/* The input as a report: what is read lies within its bounds, and written again it reads the same. */
#include "tests/fuzz/target.h"
#include "wire/report.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

struct writing {
    struct report_writer *writer;
    struct buf text;
    uint64_t samples, sum;
};

static uint64_t sum_of(const struct report_sample *s)
{
    uint64_t sum = (uint64_t)s->t_ms;
    for (size_t i = 0; i < REPORT_NODE_COUNT; i++)
        sum = sum * 31 + (uint64_t)s->node[i];
    for (uint32_t i = 0; i < s->tasks; i++)
        for (size_t k = 0; k < REPORT_TASK_COUNT; k++)
            sum = sum * 31 + (uint64_t)s->task[i].v[k];
    for (uint32_t i = 0; i < s->givens; i++)
        sum = sum * 31 + s->given[i].gpu + str_hash(str_of(s->given[i].pod));
    for (uint32_t i = 0; i < s->acks; i++)
        sum = sum * 31 + s->ack[i].id * 2 + s->ack[i].done;
    for (size_t i = 0; i < REPORT_KUBELET_COUNT; i++)
        sum = sum * 31 + (uint64_t)s->kubelet[i];
    sum = sum * 31 + (uint64_t)s->hold.since_ms + str_hash(str_of(s->hold.reason));
    return sum * 31 + s->findings;
}

static void check(const struct report_head *h, const struct report_sample *s)
{
    must(h->gpus <= REPORT_GPUS_MAX && s->parts <= REPORT_PARTS_MAX);
    must(s->tasks <= REPORT_TASKS_MAX && s->findings <= REPORT_FINDINGS_MAX && s->t_ms >= 0);
    must(s->givens <= REPORT_GIVEN_MAX && s->acks <= REPORT_ACKS_MAX && s->hold.since_ms >= 0);
    for (uint32_t i = 0; i < s->givens; i++)
        must(s->given[i].gpu < h->gpus && s->given[i].pod[0]);
    for (uint32_t i = 0; i < s->parts; i++)
        must(s->part[i].gpu < h->gpus);
    for (uint32_t i = 0; i < s->findings; i++)
        must(s->finding[i].gpu >= -1 && s->finding[i].text[0]);
}

static void keep(void *ctx, const struct report_head *h, const struct report_sample *s)
{
    struct writing *w = ctx;
    check(h, s);
    if (w->samples++ == 0)
        report_begin(w->writer, h, &w->text);
    report_add(w->writer, h, s, &w->text);
    w->sum = w->sum * 31 + sum_of(s);
}

static void compare(void *ctx, const struct report_head *h, const struct report_sample *s)
{
    struct writing *w = ctx;
    check(h, s);
    w->samples--;
    w->sum = w->sum * 31 + sum_of(s);
}

FUZZ_TARGET(data, size)
{
    AUTO(free_p) struct report_head *h = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new();
    AUTO(report_writer_free_p) struct report_writer *writer = report_writer_new();
    struct writing w = { .writer = writer, .text = BUF(64u << 20) };
    struct err e;
    if (report_read((struct str){ (const char *)data, size }, h, s, keep, &w, &e) == 0 &&
        w.text.n <= REPORT_BYTES_MAX) {
        uint64_t sum = w.sum;
        w.sum = 0;
        must(report_read(buf_str(&w.text), h, s, compare, &w, &e) == 0);
        must(w.samples == 0 && w.sum == sum);
    }
    buf_free(&w.text);
    return 0;
}
