#include "node/gpu.h"

#include "tests/fakes/host.h"
#include "tests/lib/test.h"

static void model_names_are_what_people_type(void)
{
    static const struct {
        const char *name, *model;
    } cases[] = {
        { "NVIDIA A100-SXM4-80GB", "A100-80GB" },
        { "NVIDIA A100-PCIE-40GB", "A100-40GB" },
        { "A100-SXM4-40GB", "A100-40GB" },
        { "NVIDIA H100 80GB HBM3", "H100-80GB" },
        { "NVIDIA H100 PCIe", "H100" },
        { "NVIDIA H100 NVL", "H100-NVL" },
        { "NVIDIA H200", "H200" },
        { "NVIDIA GH200 480GB", "GH200-480GB" },
        { "Tesla V100-SXM2-32GB", "V100-32GB" },
        { "Tesla V100-PCIE-16GB", "V100-16GB" },
        { "Tesla T4", "T4" },
        { "NVIDIA L40S", "L40S" },
        { "NVIDIA GeForce RTX 4090", "RTX4090" },
        { "NVIDIA GeForce RTX 3080 Ti", "RTX3080-Ti" },
        { "NVIDIA GeForce RTX 4090 Laptop GPU", "RTX4090-Laptop" },
        { "GeForce GTX 1080 Ti", "GTX1080-Ti" },
        { "NVIDIA RTX A6000", "A6000" },
        { "NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada" },
        { "Quadro RTX 8000", "RTX8000" },
        { "NVIDIA TITAN RTX", "TITAN-RTX" },
        { "NVIDIA TITAN Xp", "TITAN-Xp" },
        { "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
          "RTX-PRO-6000-Blackwell-Workstation" },
        { "odd|name, with 'signs'", "odd-name-with-signs" },
        { "NVIDIA", "GPU" },
        { "", "GPU" },
    };
    char model[64];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(gpu_model(cases[i].name, model), cases[i].model);
}

static void a_model_is_itself(void)
{
    static const char *const models[] = { "A100-80GB", "RTX4090", "RTX3080-Ti", "T4", "GPU" };
    char model[64];
    for (size_t i = 0; i + 1 < ARRAY_LEN(models); i++)
        CHECK_STR(gpu_model(models[i], model), models[i]);
}

static void read_list(const struct fake_host *h, const char *gpus, struct gpu_list *out)
{
    char path[512];
    struct err e = { 0 };
    fake_gpus(h, gpus);
    AUTO(nvml_close_p)
    struct nvml *n = nvml_open(fake_library("libnvidia-ml.so.1", path), NULL, &e);
    CHECK(n && gpu_list_read(n, out, &e) == 0);
}

static void the_list_is_what_the_driver_has(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct gpu_list l;
    fake_init(&h);
    fake_devices(&h, 4);
    read_list(&h, "gpu Tesla T4\nuuid GPU-7\nminor 3\nmemory 15360 0\npci 1 2 0\nmig 1\n", &l);
    CHECK(l.n == 1 && l.n_broken == 0);
    CHECK(l.gpu[0].index == 0 && l.gpu[0].minor == 3 && l.gpu[0].mem_mib == 15360);
    CHECK(!l.gpu[0].simulated && l.gpu[0].mig);
    CHECK_STR(l.gpu[0].uuid, "GPU-7");
    CHECK_STR(l.gpu[0].name, "Tesla T4");
    CHECK_STR(l.gpu[0].model, "T4");
    CHECK_STR(l.gpu[0].pci, "0001:02:00.0");
    read_list(&h, "gpu Tesla T4\nminor none\n", &l);
    CHECK(l.n == 1 && l.gpu[0].minor == -1);
    read_list(&h, "# none\n", &l);
    CHECK(l.n == 0);
}

static void gpus_with_nvlink_between_them_are_one_group(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct gpu_list l;
    fake_init(&h);
    fake_devices(&h, 5);
    /* 0 and 2 directly; 1 and 4 through 3; they are all of one NUMA node. */
    read_list(&h,
              "gpu A\nnvlink 2\ngpu A\nnvlink 3\ngpu A\nnvlink 0\n"
              "gpu A\nnvlink 1 4\ngpu A\nnvlink 3\n",
              &l);
    CHECK_INT(l.n, 5);
    static const uint8_t want[] = { 0, 1, 0, 1, 1 };
    for (uint32_t i = 0; i < l.n; i++)
        CHECK_INT(l.gpu[i].link_group, want[i]);
}

static void without_nvlink_a_numa_node_is_a_group(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct gpu_list l;
    fake_init(&h);
    fake_devices(&h, 3);
    read_list(&h, "gpu A\nnuma 1\ngpu A\nnuma 0\ngpu A\nnuma 1\n", &l);
    CHECK(l.gpu[0].link_group == 0 && l.gpu[1].link_group == 1 && l.gpu[2].link_group == 0);
    read_list(&h, "fail nvmlDeviceGetTopologyCommonAncestor 3\ngpu A\nnuma 1\ngpu A\nnuma 0\n", &l);
    CHECK(l.gpu[0].link_group == 0 && l.gpu[1].link_group == 0);
}

static void a_broken_gpu_does_not_hide_the_others(void)
{
    AUTO(fake_clear) struct fake_host h;
    struct gpu_list l;
    fake_init(&h);
    fake_devices(&h, 3);
    read_list(&h, "gpu A\ngpu B\nfail nvmlDeviceGetHandleByIndex_v2 15\ngpu C\n", &l);
    CHECK(l.n == 2 && l.n_broken == 1);
    CHECK(l.gpu[0].index == 0 && l.gpu[1].index == 2);
    CHECK(strstr(l.broken.msg, "GPU 1") && strstr(l.broken.msg, "lost") && l.broken.hint[0]);
}

static void simulated_gpus_say_so(void)
{
    struct gpu_sim want = { .count = 4, .model = "A100-80GB", .mem_mib = 81920, .link_size = 2 };
    struct gpu_list l, other;
    struct err e;
    CHECK(gpu_list_simulate(&want, "pc1", &l, &e) == 0 && l.n == 4);
    CHECK(gpu_list_simulate(&want, "pc2", &other, &e) == 0);
    for (uint32_t i = 0; i < l.n; i++) {
        CHECK(l.gpu[i].simulated && l.gpu[i].minor == -1 && l.gpu[i].index == i);
        CHECK(strncmp(l.gpu[i].uuid, "SIM-", 4) == 0);
        CHECK(strcmp(l.gpu[i].uuid, other.gpu[i].uuid) != 0);
        CHECK(i == 0 || strcmp(l.gpu[i].uuid, l.gpu[i - 1].uuid) != 0);
        CHECK_STR(l.gpu[i].model, "A100-80GB");
        CHECK_STR(l.gpu[i].name, "Simulated A100-80GB");
        CHECK_INT(l.gpu[i].mem_mib, 81920);
        CHECK_INT(l.gpu[i].link_group, i / 2);
    }
    CHECK(gpu_list_simulate(&want, "pc1", &other, &e) == 0);
    CHECK_STR(other.gpu[3].uuid, l.gpu[3].uuid); /* the same after a restart */
    want.count = GPU_LIST_MAX + 1;
    CHECK(gpu_list_simulate(&want, "pc1", &l, &e) < 0 && e.code == ERR_INVALID && l.n == 4);
}

static const struct test tests[] = {
    { "model names are what people type", model_names_are_what_people_type },
    { "a model is itself", a_model_is_itself },
    { "the list is what the driver has", the_list_is_what_the_driver_has },
    { "GPUs with NVLink between them are one group", gpus_with_nvlink_between_them_are_one_group },
    { "without NVLink a NUMA node is a group", without_nvlink_a_numa_node_is_a_group },
    { "a broken GPU does not hide the others", a_broken_gpu_does_not_hide_the_others },
    { "simulated GPUs say so", simulated_gpus_say_so },
};
TEST_CASES(tests)
