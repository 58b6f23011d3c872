#include "node/gpu_process.h"

#include <errno.h>
#include <time.h>

#include "tests/fakes/host.h"
#include "tests/lib/test.h"

static void a_task_is_found_in_a_cgroup_path(void)
{
    static const struct {
        const char *path, *task; /* "": none */
    } cases[] = {
        { "/nightshift/17.1.0", "17.1.0" },
        { "/system.slice/nightshift/9000000000.2.31/inner", "9000000000.2.31" },
        { "/a/nightshift/x/nightshift/1.2.3", "1.2.3" },
        { "/nightshift", "" },
        { "/nightshift/17.1", "" },
        { "/nightshift/17.1.0.4", "" },
        { "/nightshift/17.1.", "" },
        { "/nightshift/17.1.x", "" },
        { "/nightshift-4k2mq/17.1.0", "17.1.0" },
        { "/nightshift-4k2m/17.1.0", "" },
        { "/other/17.1.0", "" },
        { "/my-nightshift/17.1.0", "" },
        { "/nightshift/deep/17.1.0", "" },
        { "/nightshift/17.1.99999999999", "" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char task[64] = "";
        CHECK(gpu_process_task(str_of(cases[i].path), task) == (cases[i].task[0] != '\0'));
        CHECK_STR(task, cases[i].task);
    }
}

/* A process of a fake /proc: a name with brackets and blanks, started 5000 ticks after the boot. */
static void fake_process(const struct fake_host *h, int pid, const char *cgroup)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    fake_file(h, path, "Name:\tx\nUid:\t0\t1\t2\t3\nGid:\t0\n");
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (odd) (na me) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 5000 9 9 9\n", pid);
    fake_file(h, path, text);
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    fake_file(h, path, cgroup);
}

static void a_process_is_told_with_owner_command_and_task(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct gpu_process p;
    char proc[128];
    fake_init(&h);
    snprintf(proc, sizeof proc, "%s/proc", h.root);
    fake_file(&h, "/proc/stat", "cpu 1 2 3\nbtime 1700000000\n");
    fake_process(&h, 4711, "0::/nightshift/17.1.0\n");
    gpu_process_look(proc, 4711, &p);
    CHECK(!p.gone && p.pid == 4711 && p.uid == 0);
    CHECK_STR(p.user, "root");
    CHECK_STR(p.command, "[odd) (na me]"); /* no arguments: the name */
    CHECK_STR(p.task, "17.1.0");
    CHECK_STR(p.cgroup, "/nightshift/17.1.0");
    CHECK_INT(p.start_ms, 1700000000000 + 5000 * 1000 / sysconf(_SC_CLK_TCK));
    fake_file(&h, "/proc/4711/cmdline", "python train.py");
    fake_file(&h, "/proc/4711/cgroup", "9:cpu:/user.slice/long\n8:memory:/nightshift/3.1.2\n");
    gpu_process_look(proc, 4711, &p);
    CHECK_STR(p.command, "python train.py");
    CHECK_STR(p.task, "3.1.2"); /* v1: any controller may tell */
}

static void a_real_process_can_be_looked_at(void)
{
    struct gpu_process p;
    gpu_process_look("/proc", getpid(), &p);
    CHECK(!p.gone && p.uid == getuid() && strstr(p.command, program_invocation_short_name));
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    CHECK(p.start_ms > 0 && p.start_ms <= now_ms + 2000);
}

static void a_process_that_ended_is_gone(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct gpu_process p;
    char proc[128];
    fake_init(&h);
    snprintf(proc, sizeof proc, "%s/proc", h.root);
    gpu_process_look(proc, 4711, &p);
    CHECK(p.gone && p.pid == 4711 && p.user[0] == '\0');
    fake_file(&h, "/proc/4712/status", "Uid:\tnobody\n");
    gpu_process_look(proc, 4712, &p);
    CHECK(p.gone);
}

static void the_processes_of_a_gpu_are_listed(void)
{
    AUTO(fake_clear) struct fake_host h;
    AUTO(free_p) struct gpu_process *list = NULL;
    struct err e = { 0 };
    char proc[128], path[512];
    size_t n = 0;
    fake_init(&h);
    fake_devices(&h, 2);
    snprintf(proc, sizeof proc, "%s/proc", h.root);
    fake_process(&h, 4711, "0::/nightshift/17.1.0\n");
    fake_process(&h, 99, "0::/user.slice\n");
    fake_gpus(&h, "gpu A\ngpu B\nprocess 4711 1024 compute\nprocess 5 7 compute\n"
                  "process 99 none graphics\n");
    AUTO(nvml_close_p)
    struct nvml *nv = nvml_open(fake_library("libnvidia-ml.so.1", path), NULL, &e);
    CHECK(nv && gpu_process_list(nv, 1, proc, &list, &n, &e) == 0 && n == 3);
    CHECK(list[0].pid == 4711 && list[0].gpu == 1 && list[0].mem_mib == 1024);
    CHECK_STR(list[0].task, "17.1.0");
    CHECK(list[1].pid == 5 && list[1].gone && list[1].mem_mib == 7);
    CHECK(list[2].pid == 99 && list[2].graphics && list[2].mem_mib == -1 && !list[2].task[0]);
    CHECK(gpu_process_list(nv, 2, proc, &list, &n, &e) < 0 && n == 3);
}

static const struct test tests[] = {
    { "a task is found in a cgroup path", a_task_is_found_in_a_cgroup_path },
    { "a process is told with owner, command and task",
      a_process_is_told_with_owner_command_and_task },
    { "a real process can be looked at", a_real_process_can_be_looked_at },
    { "a process that ended is gone", a_process_that_ended_is_gone },
    { "the processes of a GPU are listed", the_processes_of_a_gpu_are_listed },
};
TEST_CASES(tests)
