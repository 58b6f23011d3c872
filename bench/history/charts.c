/* How long a chart takes: a machine with eight GPUs whose rings are full, asked for an hour by seconds, a month by minutes
 * and five years by hours, each as people see it (about 360 points) and each whole as far as a chart goes.
 *
 * usage: bench_history FOLDER */
#include <stdio.h>

#include "history/history.h"
#include "sys/clock.h"

#define GPUS 8
#define HOUR INT64_C(3600000)
#define NOW (INT64_C(490000) * HOUR)

static void send(struct history *h, struct report_writer *w, struct report_head *head,
                 struct report_sample *s, int64_t t_ms)
{
    AUTO(buf_free) struct buf text = BUF(REPORT_BYTES_MAX);
    struct err e;
    uint64_t number;
    s->t_ms = t_ms;
    for (int g = 0; g < GPUS; g++)
        for (size_t k = 0; k < REPORT_GPU_COUNT; k++)
            s->gpu[g][k] = (t_ms / 1000 + g) % 1000;
    report_begin(w, head, &text);
    report_add(w, head, s, &text);
    if (history_take(h, STR("bench"), buf_str(&text), t_ms, &number, &e) < 0) {
        fprintf(stderr, "bench_history: %s\n", e.msg);
        exit(1);
    }
}

static void ask(struct history *h, const char *name, int64_t span_ms, int64_t step_ms)
{
    double best = 1e9, worst = 0;
    size_t points = 0;
    for (int i = 0; i < 20; i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct history_chart c;
        struct err e;
        struct history_ask q = { NOW - span_ms, NOW, step_ms };
        int64_t began = clock_mono_ns();
        if (history_chart(h, STR("bench"), &q, &a, &c, &e) < 0) {
            fprintf(stderr, "bench_history: %s\n", e.msg);
            exit(1);
        }
        double ms = (double)(clock_mono_ns() - began) / 1e6;
        best = ms < best ? ms : best;
        worst = ms > worst ? ms : worst;
        points = c.points;
    }
    printf("| %s | %zu | %.2f ms | %.2f ms |\n", name, points, best, worst);
}

int main(int argc, char **argv)
{
    struct err e;
    struct history *h = argc == 2 ? history_open(argv[1], &e) : NULL;
    if (!h) {
        fprintf(stderr, "usage: bench_history FOLDER\n");
        return 2;
    }
    struct report_head *head = report_head_new();
    struct report_sample *s = report_sample_new();
    struct report_writer *w = report_writer_new();
    snprintf(head->node, sizeof head->node, "bench");
    snprintf(head->boot, sizeof head->boot, "b");
    snprintf(head->version, sizeof head->version, "v");
    for (int g = 0; g < GPUS; g++) {
        snprintf(head->gpu[g].uuid, sizeof head->gpu[g].uuid, "GPU-%d", g);
        snprintf(head->gpu[g].name, sizeof head->gpu[g].name, "A100");
        head->gpu[g].index = head->gpus++;
    }
    for (int64_t t = NOW - 43800 * HOUR; t < NOW - 31 * 24 * HOUR; t += HOUR)
        send(h, w, head, s, t);
    for (int64_t t = NOW - 31 * 24 * HOUR; t < NOW - HOUR; t += 60000)
        send(h, w, head, s, t);
    int64_t began = clock_mono_ns();
    for (int64_t t = NOW - HOUR; t < NOW; t += 1000)
        send(h, w, head, s, t);
    printf("a sample of %d GPUs costs the daemon %.1f us\n\n", GPUS,
           (double)(clock_mono_ns() - began) / 3600e3);
    printf(
        "| chart of %d GPUs and the machine | points | best of 20 | worst |\n|---|---|---|---|\n",
        GPUS);
    ask(h, "an hour, by 10 s", HOUR, 10000);
    ask(h, "an hour, by 1 s", HOUR, 1000);
    ask(h, "31 days, by 2 h", 31 * 24 * HOUR, 2 * HOUR);
    ask(h, "3 days, by 1 min", 3 * 24 * HOUR, 60000);
    ask(h, "31 days, by 10 min", 31 * 24 * HOUR, 600000);
    ask(h, "five years, by 5 days", 43800 * HOUR, 120 * HOUR);
    ask(h, "six months, by 1 h", 180 * 24 * HOUR, HOUR);
    report_writer_free(w);
    free(head);
    free(s);
    history_close(h);
    return 0;
}
