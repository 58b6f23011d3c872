/* How long a chart takes: a machine with eight GPUs whose rings are full, asked for an hour by seconds, a month by minutes
 * and five years by hours, each as people see it (about 360 points) and each whole as far as a chart goes.  Wall-clock times
 * depend on what else the machine does; the processor's time does not.  Cold: after the files were dropped from memory.
 *
 * usage: bench_history FOLDER */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "history/history.h"
#include "sys/clock.h"

#define GPUS 8
#define TRIES 21
#define TASKS 16
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

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void forget(const char *folder)
{
    static const char *const ends[] = { "1s", "1m", "1h" };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/bench.%s", folder, ends[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
            fprintf(stderr, "bench_history: %s stays in memory\n", path);
        if (fd >= 0)
            close(fd);
    }
}

static double once(struct history *h, const struct history_ask *q, size_t *points)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct history_chart c;
    struct err e;
    int64_t began = clock_mono_ns();
    if (history_chart(h, STR("bench"), q, &a, &c, &e) < 0) {
        fprintf(stderr, "bench_history: %s\n", e.msg);
        exit(1);
    }
    *points = c.points;
    return (double)(clock_mono_ns() - began) / 1e6;
}

static void ask(struct history *h, const char *folder, const char *name, int64_t span_ms,
                int64_t step_ms)
{
    struct history_ask q = { NOW + HOUR - span_ms, NOW + HOUR, step_ms };
    double warm[TRIES], cold[TRIES];
    size_t points = 0;
    double cpu[TRIES];
    for (int i = 0; i < TRIES; i++) {
        double before = cpu_ms();
        warm[i] = once(h, &q, &points);
        cpu[i] = cpu_ms() - before;
    }
    for (int i = 0; i < TRIES; i++) {
        forget(folder);
        cold[i] = once(h, &q, &points);
    }
    qsort(cpu, TRIES, sizeof cpu[0], by_size);
    qsort(warm, TRIES, sizeof warm[0], by_size);
    qsort(cold, TRIES, sizeof cold[0], by_size);
    printf("| %s | %zu | %.2f, %.2f ms | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name, points,
           cpu[0], cpu[TRIES / 2], warm[0], warm[TRIES / 2], warm[TRIES - 1], cold[TRIES / 2],
           cold[TRIES - 1]);
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
    printf("a sample of %d GPUs costs the daemon %.1f us", GPUS,
           (double)(clock_mono_ns() - began) / 3600e3);
    for (; s->tasks < TASKS; s->tasks++) {
        struct report_task *t = &s->task[s->tasks];
        snprintf(t->task, sizeof t->task, "%u.1.0", s->tasks + 1);
        t->v[REPORT_TASK_CPU] = t->v[REPORT_TASK_MEM] = 1000;
        struct report_part *part = &s->part[s->parts++];
        *part = (struct report_part){ .gpu = s->tasks % GPUS, .permille = 400, .mem_mib = 1000 };
        snprintf(part->who, sizeof part->who, "%u.1.0", s->tasks + 1);
    }
    began = clock_mono_ns();
    for (int64_t t = NOW; t < NOW + HOUR; t += 1000)
        send(h, w, head, s, t);
    printf(", and %.1f us with %d tasks\n\n", (double)(clock_mono_ns() - began) / 3600e3, TASKS);
    printf("| chart of %d GPUs and the machine | points | processor: best, median | best | median "
           "| worst | "
           "cold: median | worst |\n"
           "|---|---|---|---|---|---|---|---|\n",
           GPUS);
    ask(h, argv[1], "an hour, by 10 s", HOUR, 10000);
    ask(h, argv[1], "an hour, by 1 s", HOUR, 1000);
    ask(h, argv[1], "31 days, by 2 h", 31 * 24 * HOUR, 2 * HOUR);
    ask(h, argv[1], "3 days, by 1 min", 3 * 24 * HOUR, 60000);
    ask(h, argv[1], "31 days, by 10 min", 31 * 24 * HOUR, 600000);
    ask(h, argv[1], "five years, by 5 days", 43800 * HOUR, 120 * HOUR);
    ask(h, argv[1], "31 days, by 9 min", 31 * 24 * HOUR, 540000);
    ask(h, argv[1], "five years, by 10 h", 43800 * HOUR, 10 * HOUR);
    ask(h, argv[1], "six months, by 1 h", 180 * 24 * HOUR, HOUR);
    report_writer_free(w);
    free(head);
    free(s);
    history_close(h);
    return 0;
}
