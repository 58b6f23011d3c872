#include "node/nvml.h"

#include "tests/fakes/host.h"
#include "tests/lib/test.h"

static const char two_gpus[] = "driver 535.104.05\n"
                               "gpu NVIDIA A100-SXM4-80GB\n"
                               "uuid GPU-11111111-aaaa\n"
                               "memory 81920 1200\n"
                               "pci 0 59 0\n"
                               "utilisation 35 10\n"
                               "power 150000 400000\n"
                               "temperature 44\n"
                               "clocks 1410 1593\n"
                               "ecc 2 1\n"
                               "throttle 36\n"
                               "nvlink 1\n"
                               "process 4711 1024 compute\n"
                               "process 4712 none compute\n"
                               "process 99 12 graphics\n"
                               "gpu NVIDIA A100-SXM4-80GB\n"
                               "uuid GPU-22222222-bbbb\n"
                               "nvlink 0\n"
                               "mig 1\n"
                               "numa 1\n";

static struct nvml *open_fake(const char *library)
{
    char path[512];
    struct err e = { 0 };
    struct nvml *n = nvml_open(fake_library(library, path), NULL, &e);
    CHECK_STR(e.msg, "");
    CHECK(n != NULL);
    return n;
}

static void a_gpu_is_described_as_the_driver_says(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_device d;
    struct err e;
    uint32_t count;
    fake_init(&h);
    fake_devices(&h, 2);
    fake_gpus(&h, two_gpus);
    AUTO(nvml_close_p) struct nvml *n = open_fake("libnvidia-ml.so.1");
    CHECK_STR(nvml_driver_version(n), "535.104.05");
    CHECK_STR(nvml_library_version(n), "12.535.104.05");
    CHECK(nvml_count(n, &count, &e) == 0 && count == 2);
    CHECK(nvml_device(n, 0, &d, NULL, &e) == 0);
    CHECK_STR(d.uuid, "GPU-11111111-aaaa");
    CHECK_STR(d.name, "NVIDIA A100-SXM4-80GB");
    CHECK_STR(d.pci, "0000:3b:00.0");
    CHECK(d.index == 0 && d.minor == 0 && d.mem_mib == 81920 && d.mig == 0);
    CHECK(nvml_device(n, 1, &d, NULL, &e) == 0 && d.minor == 1 && d.mig == 1);
}

static void a_sample_has_every_value(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_sample s;
    struct err e;
    fake_init(&h);
    fake_devices(&h, 2);
    fake_gpus(&h, two_gpus);
    AUTO(nvml_close_p) struct nvml *n = open_fake("libnvidia-ml.so.1");
    CHECK(nvml_sample(n, 0, &s, NULL, &e) == 0);
    CHECK(s.gpu_percent == 35 && s.mem_percent == 10);
    CHECK(s.mem_used_mib == 1200 && s.mem_total_mib == 81920);
    CHECK(s.power_mw == 150000 && s.power_limit_mw == 400000 && s.temperature_c == 44);
    CHECK(s.sm_mhz == 1410 && s.mem_mhz == 1593);
    CHECK(s.ecc_corrected == 2 && s.ecc_uncorrected == 1 && s.throttle == 36);
    CHECK_STR(nvml_throttle_name(2), "power cap");
    CHECK_STR(nvml_throttle_name(5), "software: too hot");
    CHECK(nvml_throttle_name(64) == NULL);
}

static void processes_come_with_their_kind_and_memory(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_process p[8];
    struct err e;
    size_t count;
    fake_init(&h);
    fake_devices(&h, 2);
    fake_gpus(&h, two_gpus);
    static const char *const libraries[] = { "libnvidia-ml.so.1", "libnvidia-ml-old.so.1" };
    for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
        AUTO(nvml_close_p) struct nvml *n = open_fake(libraries[i]);
        CHECK(nvml_processes(n, 0, p, ARRAY_LEN(p), &count, &e) == 0 && count == 3);
        CHECK(p[0].pid == 4711 && p[0].mem_mib == 1024 && !p[0].graphics);
        CHECK(p[1].pid == 4712 && p[1].mem_mib == NVML_UNKNOWN && !p[1].graphics);
        CHECK(p[2].pid == 99 && p[2].mem_mib == 12 && p[2].graphics);
        CHECK(nvml_processes(n, 0, p, 2, &count, &e) == 0 && count == 2);
        CHECK(nvml_processes(n, 1, p, 2, &count, &e) == 0 && count == 0);
    }
}

static void an_old_driver_leaves_values_unknown(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_device d;
    struct nvml_sample s;
    struct nvml_link k;
    struct err e;
    fake_init(&h);
    fake_devices(&h, 2);
    fake_gpus(&h, two_gpus);
    AUTO(nvml_close_p) struct nvml *n = open_fake("libnvidia-ml-old.so.1");
    CHECK(nvml_device(n, 1, &d, NULL, &e) == 0);
    CHECK(d.mig == NVML_UNKNOWN && d.minor == 1 && d.mem_mib == 16384);
    CHECK_STR(d.pci, "");
    CHECK(nvml_sample(n, 0, &s, NULL, &e) == 0 && s.mem_used_mib == 1200 && s.temperature_c == 44);
    CHECK(nvml_link(n, 0, 1, &k, &e) == 0 && k.nvlink == NVML_UNKNOWN && k.same_numa == 0);
}

static void a_value_that_fails_is_unknown_and_the_rest_stays(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_sample s;
    struct err e;
    fake_init(&h);
    fake_devices(&h, 1);
    fake_gpus(&h, "gpu Tesla T4\ntemperature 50\npower 1 2\nfail nvmlDeviceGetPowerUsage 3\n"
                  "fail nvmlDeviceGetTotalEccErrors 3\nfail nvmlDeviceGetMemoryInfo_v2 25\n");
    AUTO(nvml_close_p) struct nvml *n = open_fake("libnvidia-ml.so.1");
    CHECK(nvml_sample(n, 0, &s, NULL, &e) == 0);
    CHECK(s.power_mw == NVML_UNKNOWN && s.power_limit_mw == 2 && s.temperature_c == 50);
    CHECK(s.ecc_corrected == NVML_UNKNOWN && s.ecc_uncorrected == NVML_UNKNOWN);
    CHECK_INT(s.mem_total_mib, 16384); /* from the older call */
}

static void faults_of_the_driver_are_told_apart(void)
{
    static const struct {
        const char *line;
        enum nvml_fault fault;
        const char *name, *hint;
    } cases[] = {
        { "fail nvmlInit_v2 9\n", NVML_NO_DRIVER, "no_driver", "modprobe nvidia" },
        { "fail nvmlInit_v2 18\n", NVML_MISMATCH, "mismatch", "reboot" },
        { "fail nvmlInit_v2 4\n", NVML_DENIED, "denied", "/dev/nvidia" },
        { "fail nvmlInit_v2 15\n", NVML_LOST, "gpu_lost", "power the machine off" },
        { "fail nvmlInit_v2 999\n", NVML_OTHER, "other", "nvidia-smi" },
    };
    AUTO(fake_clear) struct fake_host h;
    char path[512];
    fake_init(&h);
    fake_library("libnvidia-ml.so.1", path);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum nvml_fault f = NVML_NONE;
        struct err e = { 0 };
        fake_gpus(&h, cases[i].line);
        CHECK(nvml_open(path, &f, &e) == NULL);
        CHECK_INT(f, cases[i].fault);
        CHECK_STR(nvml_fault_name(f), cases[i].name);
        CHECK(e.code != ERR_NONE && e.msg[0] && strstr(e.hint, cases[i].hint));
    }
}

static void no_library_is_no_driver_installed(void)
{
    enum nvml_fault f = NVML_NONE;
    struct err e = { 0 };
    CHECK(nvml_open("/nowhere/libnvidia-ml.so.1", &f, &e) == NULL);
    CHECK(f == NVML_NO_LIBRARY && e.code == ERR_NOT_FOUND && strstr(e.hint, "nvidia-driver"));
    CHECK(strstr(e.msg, "/nowhere/libnvidia-ml.so.1"));
}

static void a_file_that_is_no_such_library_is_told(void)
{
    AUTO(fake_clear) struct fake_host h;
    enum nvml_fault f = NVML_NONE;
    struct err e = { 0 };
    char path[128];
    fake_init(&h);
    fake_file(&h, "/libnvidia-ml.so.1", "not a library");
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", h.root);
    CHECK(nvml_open(path, &f, &e) == NULL && f == NVML_BAD_LIBRARY && e.hint[0]);
    CHECK(nvml_open("libz.so.1", &f, &e) == NULL && f == NVML_BAD_LIBRARY); /* one without NVML */
}

static void a_lost_gpu_is_a_fault_of_its_own(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_sample s = { .temperature_c = 7 };
    struct nvml_device d;
    enum nvml_fault f = NVML_NONE;
    struct err e;
    fake_init(&h);
    fake_devices(&h, 2);
    fake_gpus(&h, two_gpus);
    AUTO(nvml_close_p) struct nvml *n = open_fake("libnvidia-ml.so.1");
    CHECK(nvml_sample(n, 1, &s, &f, &e) == 0);
    fake_gpus(&h, "gpu A\ngpu B\nfail nvmlDeviceGetUtilizationRates 15\n");
    s.temperature_c = 7;
    CHECK(nvml_sample(n, 1, &s, &f, &e) < 0 && f == NVML_LOST && s.temperature_c == 7);
    CHECK(strncmp(e.msg, "GPU 1: ", 7) == 0 && e.hint[0]);
    CHECK(nvml_sample(n, 0, &s, &f, &e) == 0);
    fake_gpus(&h, "gpu A\n"); /* it is gone from the list altogether */
    CHECK(nvml_sample(n, 1, &s, &f, &e) < 0 && f == NVML_LOST);
    CHECK(nvml_device(n, 1, &d, &f, &e) < 0 && f == NVML_LOST);
    fake_gpus(&h, "gpu A\nfail nvmlDeviceGetHandleByIndex_v2 16\n");
    CHECK(nvml_device(n, 0, &d, &f, &e) < 0 && f == NVML_RESET);
}

static void only_gpus_whose_device_can_be_opened_are_seen(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct nvml_device d;
    struct err e;
    uint32_t count;
    char path[128];
    fake_init(&h);
    fake_devices(&h, 2);
    fake_gpus(&h, two_gpus);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    AUTO(nvml_close_p) struct nvml *n = open_fake("libnvidia-ml.so.1");
    CHECK(nvml_count(n, &count, &e) == 0 && count == 2);
    unsetenv("CUDA_VISIBLE_DEVICES");
    snprintf(path, sizeof path, "%s/dev/nvidia0", h.root);
    CHECK(unlink(path) == 0);
    CHECK(nvml_count(n, &count, &e) == 0 && count == 1);
    CHECK(nvml_device(n, 0, &d, NULL, &e) == 0 && d.minor == 1);
}

static const struct test tests[] = {
    { "a GPU is described as the driver says", a_gpu_is_described_as_the_driver_says },
    { "a sample has every value", a_sample_has_every_value },
    { "processes come with their kind and memory", processes_come_with_their_kind_and_memory },
    { "an old driver leaves values unknown", an_old_driver_leaves_values_unknown },
    { "a value that fails is unknown and the rest stays",
      a_value_that_fails_is_unknown_and_the_rest_stays },
    { "faults of the driver are told apart", faults_of_the_driver_are_told_apart },
    { "no library is no driver installed", no_library_is_no_driver_installed },
    { "a file that is no such library is told", a_file_that_is_no_such_library_is_told },
    { "a lost GPU is a fault of its own", a_lost_gpu_is_a_fault_of_its_own },
    { "only GPUs whose device can be opened are seen",
      only_gpus_whose_device_can_be_opened_are_seen },
};
TEST_CASES(tests)
