#include "node/probe.h"

#include "tests/fakes/host.h"
#include "tests/lib/test.h"

static void fake_machine(struct fake_host *h)
{
    fake_init(h);
    fake_devices(h, 2);
    fake_file(h, "/proc/meminfo", "MemTotal: 16777216 kB\n");
}

static void a_machine_with_gpus_is_told_in_full(void)
{
    AUTO(fake_clear) struct fake_host h;
    static struct node_facts f;
    struct err e = { 0 };
    char path[512];
    fake_machine(&h);
    fake_gpus(&h, "driver 550.1\ngpu Tesla T4\nuuid GPU-1\ngpu Tesla T4\nuuid GPU-2\n");
    struct node_want want = { .root = h.root };
    want.nvml_path = fake_library("libnvidia-ml.so.1", path);
    CHECK(node_probe(&want, &f, &e) == 0);
    CHECK_STR(f.name, f.machine.host);
    CHECK_STR(f.driver, "550.1");
    CHECK(f.gpus.n == 2 && !f.simulated && f.gpu_trouble.code == ERR_NONE);
    CHECK(f.fault == NVML_NONE && f.mem_mib == 16384 && f.cpu_milli == f.machine.cpu_milli);
}

static void what_is_asked_for_wins(void)
{
    AUTO(fake_clear) struct fake_host h;
    static struct node_facts f;
    struct err e = { 0 };
    fake_machine(&h);
    struct node_want want = { .root = h.root, .name = "pc-07", .cpu_milli = 4500, .mem_mib = 100 };
    want.simulated = (struct gpu_sim){ .count = 3, .model = "V100-32GB", .mem_mib = 32768 };
    CHECK(node_probe(&want, &f, &e) == 0);
    CHECK_STR(f.name, "pc-07");
    CHECK(f.cpu_milli == 4500 && f.mem_mib == 100 && f.machine.mem_mib == 16384);
    CHECK(f.simulated && f.gpus.n == 3 && f.gpus.gpu[2].simulated);
    CHECK_STR(f.gpus.gpu[0].model, "V100-32GB");
    CHECK_STR(f.driver, "");
    want.simulated = (struct gpu_sim){ .count = 1 };
    CHECK(node_probe(&want, &f, &e) == 0 && f.gpus.gpu[0].mem_mib == 24576);
}

static void a_machine_without_a_driver_has_no_gpus_and_no_trouble(void)
{
    AUTO(fake_clear) struct fake_host h;
    static struct node_facts f;
    struct err e = { 0 };
    fake_machine(&h);
    struct node_want want = { .root = h.root, .nvml_path = "/nowhere/libnvidia-ml.so.1" };
    CHECK(node_probe(&want, &f, &e) == 0);
    CHECK(f.gpus.n == 0 && f.fault == NVML_NO_LIBRARY && f.gpu_trouble.code == ERR_NONE);
    want.no_gpus = true;
    CHECK(node_probe(&want, &f, &e) == 0 && f.fault == NVML_NONE);
}

static void a_driver_that_does_not_work_is_told(void)
{
    AUTO(fake_clear) struct fake_host h;
    static struct node_facts f;
    struct err e = { 0 };
    char path[512];
    fake_machine(&h);
    struct node_want want = { .root = h.root };
    want.nvml_path = fake_library("libnvidia-ml.so.1", path);
    fake_gpus(&h, "fail nvmlInit_v2 18\ngpu Tesla T4\n");
    CHECK(node_probe(&want, &f, &e) == 0 && f.gpus.n == 0 && f.fault == NVML_MISMATCH);
    CHECK(f.gpu_trouble.code == ERR_UNAVAILABLE && strstr(f.gpu_trouble.hint, "reboot"));
    fake_gpus(&h, "fail nvmlDeviceGetCount_v2 999\ngpu Tesla T4\n");
    CHECK(node_probe(&want, &f, &e) == 0 && f.fault == NVML_OTHER && f.gpu_trouble.msg[0]);
    fake_gpus(&h, "gpu Tesla T4\ngpu Tesla T4\nfail nvmlDeviceGetUUID 15\n");
    CHECK(node_probe(&want, &f, &e) == 0 && f.gpus.n == 1 && f.gpus.n_broken == 1);
    CHECK(strstr(f.gpu_trouble.msg, "GPU 1") && f.driver[0]);
}

static void bad_wishes_are_refused(void)
{
    AUTO(fake_clear) struct fake_host h;
    static struct node_facts f;
    struct err e = { 0 };
    fake_machine(&h);
    struct node_want want = { .root = h.root, .name = "pc 7", .no_gpus = true };
    CHECK(node_probe(&want, &f, &e) < 0 && e.code == ERR_INVALID);
    CHECK_STR(e.msg, "'pc 7' is not a name for a machine");
    want.name = "";
    CHECK(node_probe(&want, &f, &e) < 0);
    want.name = "pc7";
    want.simulated.count = GPU_LIST_MAX + 1;
    CHECK(node_probe(&want, &f, &e) < 0);
}

static const struct test tests[] = {
    { "a machine with GPUs is told in full", a_machine_with_gpus_is_told_in_full },
    { "what is asked for wins", what_is_asked_for_wins },
    { "a machine without a driver has no GPUs and no trouble",
      a_machine_without_a_driver_has_no_gpus_and_no_trouble },
    { "a driver that does not work is told", a_driver_that_does_not_work_is_told },
    { "bad wishes are refused", bad_wishes_are_refused },
};
TEST_CASES(tests)
