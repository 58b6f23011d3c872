#include "node/usage.h"

#include <fcntl.h>

#include "tests/fakes/host.h"

#define SECOND INT64_C(1000000000)

static const char *at(const struct fake_host *h, const char *path, char out[static 200])
{
    snprintf(out, 200, "%s%s", h->root, path);
    return out;
}

/* As the kernel has it: what was opened before tells the new text too. */
static void proc_file(const struct fake_host *h, const char *path, const char *text)
{
    char full[200];
    if (access(at(h, path, full), F_OK) < 0)
        fake_file(h, path, "");
    int fd = open(full, O_WRONLY | O_TRUNC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void machine(const struct fake_host *h, int busy, int sectors, int bytes)
{
    char text[400];
    snprintf(text, sizeof text, "cpu  %d 0 0 1000 5 0 0 0 0 0\ncpu0 1 1\ncpu1 1 1\nintr 5\n", busy);
    proc_file(h, "/proc/stat", text);
    proc_file(h, "/proc/meminfo",
              "MemTotal: 4096000 kB\nMemFree: 1 kB\nMemAvailable: 1024000 kB\n");
    snprintf(text, sizeof text, "   8 0 sda 1 0 %d 0 1 0 0 0\n   8 1 sda1 1 0 999999 0 1 0 0 0\n",
             sectors);
    proc_file(h, "/proc/diskstats", text);
    fake_file(h, "/sys/block/sda/device", "");
    snprintf(text, sizeof text,
             "Inter-| x\n face |y\n  lo: 99 0 0 0 0 0 0 0 99 0\n eth0: %d 0 0 0 0 0 0 0 7 0\n",
             bytes);
    proc_file(h, "/proc/net/dev", text);
    fake_file(h, "/sys/class/net/eth0/device", "");
}

static void rates_are_averages_between_two_samples(void)
{
    AUTO(fake_clear) struct fake_host h;
    AUTO(free_p) struct report_sample *s = report_sample_new();
    char groups[200];
    fake_init(&h);
    machine(&h, 100, 0, 1000);
    struct usage *u =
        usage_new(&(struct usage_places){ h.root, at(&h, "/cg", groups), "nightshift", h.root });
    usage_sample(u, SECOND, s);
    CHECK_INT(s->node[REPORT_NODE_CPU], REPORT_UNKNOWN); /* one sample has no rate */
    CHECK_INT(s->node[REPORT_NODE_CPUS], 2000);
    CHECK_INT(s->node[REPORT_NODE_MEM], 4000);
    CHECK_INT(s->node[REPORT_NODE_MEM_USED], 3000);
    CHECK(s->node[REPORT_NODE_DISK] > 0);
    machine(&h, 400, 20, 5000);
    usage_sample(u, 3 * SECOND, s);
    CHECK_INT(s->node[REPORT_NODE_CPU], 300000 / sysconf(_SC_CLK_TCK) / 2);
    CHECK_INT(s->node[REPORT_NODE_READ], 20 * 512 / 2); /* the disk, and not its partition too */
    CHECK_INT(s->node[REPORT_NODE_RX], 2000);
    machine(&h, 10, 0, 0); /* counters that began anew */
    usage_sample(u, 4 * SECOND, s);
    CHECK_INT(s->node[REPORT_NODE_CPU], REPORT_UNKNOWN);
    CHECK_INT(s->node[REPORT_NODE_RX], REPORT_UNKNOWN);
    usage_free(u);
}

static void a_device_that_comes_or_goes_is_seen_within_a_minute(void)
{
    AUTO(fake_clear) struct fake_host h;
    AUTO(free_p) struct report_sample *s = report_sample_new();
    char groups[200], card[200];
    fake_init(&h);
    machine(&h, 100, 0, 1000);
    struct usage *u =
        usage_new(&(struct usage_places){ h.root, at(&h, "/cg", groups), "nightshift", h.root });
    usage_sample(u, SECOND, s);
    machine(&h, 100, 0, 2000);
    unlink(at(&h, "/sys/class/net/eth0/device", card));
    usage_sample(u, 2 * SECOND, s);
    CHECK_INT(s->node[REPORT_NODE_RX], 1000); /* as it was known */
    usage_sample(u, 62 * SECOND, s);
    usage_sample(u, 63 * SECOND, s);
    CHECK_INT(s->node[REPORT_NODE_RX], 0); /* no card is left */
    machine(&h, 100, 0, 2500);             /* and here it is again */
    usage_sample(u, 130 * SECOND, s);
    machine(&h, 100, 0, 3500);
    usage_sample(u, 131 * SECOND, s);
    CHECK_INT(s->node[REPORT_NODE_RX], 1000);
    usage_free(u);
}

static void task_v2(const struct fake_host *h, const char *usec)
{
    char text[100];
    snprintf(text, sizeof text, "usage_usec %s\nuser_usec 1\n", usec);
    fake_file(h, "/cg/nightshift/17.1.0/cpu.stat", text);
    fake_file(h, "/cg/nightshift/17.1.0/memory.current", "104857600\n");
    fake_file(h, "/cg/nightshift/17.1.0/memory.stat", "anon 5\ninactive_file 52428800\n");
    fake_file(h, "/cg/nightshift/17.1.0/io.stat",
              "8:0 rbytes=100 wbytes=200 rios=1\n8:16 rbytes=1 wbytes=2\n");
    fake_file(h, "/cg/nightshift/17.1.0/pids.current", "4\n");
}

static void tasks_are_read_from_control_groups_of_both_kinds(void)
{
    AUTO(fake_clear) struct fake_host h;
    AUTO(free_p) struct report_sample *s = report_sample_new();
    char groups[200];
    fake_init(&h);
    machine(&h, 1, 1, 1);
    fake_file(&h, "/cg/cgroup.controllers", "cpu memory\n");
    fake_file(&h, "/cg/nightshift/init.scope/cpu.stat", "usage_usec 1\n");
    task_v2(&h, "1000000");
    struct usage_places p = { h.root, at(&h, "/cg", groups), "nightshift", h.root };
    struct usage *u = usage_new(&p);
    usage_sample(u, SECOND, s);
    task_v2(&h, "2500000");
    usage_sample(u, 2 * SECOND, s);
    CHECK_INT(s->tasks, 1);
    CHECK_STR(s->task[0].task, "17.1.0");
    CHECK_INT(s->task[0].v[REPORT_TASK_CPU], 1500);
    CHECK_INT(s->task[0].v[REPORT_TASK_MEM], 50);
    CHECK_INT(s->task[0].v[REPORT_TASK_READ], 0);
    CHECK_INT(s->task[0].v[REPORT_TASK_PROCESSES], 4);
    CHECK_INT(s->task[0].v[REPORT_TASK_RX], REPORT_UNKNOWN);
    usage_free(u);
    fake_file(&h, "/cg1/memory/nightshift/18.2.1/memory.usage_in_bytes", "10485760\n");
    fake_file(&h, "/cg1/cpuacct/nightshift/18.2.1/cpuacct.usage", "1000000000\n");
    p.cgroup_root = at(&h, "/cg1", groups);
    u = usage_new(&p);
    usage_sample(u, SECOND, s);
    fake_file(&h, "/cg1/cpuacct/nightshift/18.2.1/cpuacct.usage", "1250000000\n");
    usage_sample(u, 2 * SECOND, s);
    CHECK_INT(s->tasks, 1);
    CHECK_INT(s->task[0].v[REPORT_TASK_CPU], 250);
    CHECK_INT(s->task[0].v[REPORT_TASK_MEM], 10);
    usage_free(u);
}

static const struct test tests[] = {
    { "rates are averages between two samples", rates_are_averages_between_two_samples },
    { "a device that comes or goes is seen within a minute",
      a_device_that_comes_or_goes_is_seen_within_a_minute },
    { "tasks are read from control groups of both kinds",
      tasks_are_read_from_control_groups_of_both_kinds },
};
TEST_CASES(tests)
