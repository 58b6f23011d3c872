#include "doctor/checks.h"
#include "tests/fakes/doctor.h"

/* A GPU on the PCI bus, bound to this driver ("": to none). */
static void add_pci(const struct patient *p, const char *address, const char *driver)
{
    char path[128], full[512], to[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", address);
    fake_file(&p->host, path, "0x10de\n");
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", address);
    fake_file(&p->host, path, "0x030200\n");
    snprintf(full, sizeof full, "%s/sys/bus/pci/devices/%s/driver", p->host.root, address);
    snprintf(to, sizeof to, "../../drivers/%s", driver);
    CHECK(!driver[0] || symlink(to, full) == 0);
}

/* From now on the fake driver is installed and says this. */
static void add_driver(struct patient *p, const char *text)
{
    uint32_t uid = p->in.facts.uid;
    fake_gpus(&p->host, text);
    fake_library("libnvidia-ml.so.1", p->nvml);
    doctor_look(&p->in);
    p->in.facts.uid = uid;
}

static void a_machine_without_gpus_is_fine(void)
{
    static doctor_fn *const all[] = { check_nvidia_driver, check_nvidia_versions, check_gpus_answer,
                                      check_gpu_devices };
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    fake_file(&p.host, "/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    fake_file(&p.host, "/sys/bus/pci/devices/0000:00:03.1/vendor", "0x10de\n"); /* its sound */
    fake_file(&p.host, "/sys/bus/pci/devices/0000:00:03.1/class", "0x040300\n");
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        CHECK_SAYS(&p, all[i], DOCTOR_SKIP, "no NVIDIA GPU", NULL);
    add_pci(&p, "0000:3b:00.0", "vfio-pci"); /* a virtual machine has it */
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_SKIP, "no NVIDIA GPU", NULL);
    add_pci(&p, "0000:af:00.0", "");
    p.in.simulated = true;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        CHECK_SAYS(&p, all[i], DOCTOR_SKIP, "simulated", NULL);
}

static void a_gpu_without_a_driver_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    add_pci(&p, "0000:3b:00.0", "");
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_BAD, "1 NVIDIA GPU on the PCI bus (0000:3b:00.0)",
               "apt install nvidia-driver");
    CHECK_SAYS(&p, check_nvidia_versions, DOCTOR_SKIP, "see nvidia-driver", NULL);
    CHECK_SAYS(&p, check_gpus_answer, DOCTOR_SKIP, "see nvidia-driver", NULL);
    CHECK_SAYS(&p, check_gpu_devices, DOCTOR_SKIP, "see nvidia-driver", NULL);
    add_pci(&p, "0000:af:00.0", "nouveau");
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_BAD, "2 NVIDIA GPUs", "nouveau has it");
}

static void wsl_gets_its_driver_from_windows(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    p.in.facts.machine.wsl = true;
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_SKIP, "WSL2", "in Windows");
}

static void a_module_that_is_not_loaded_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    add_driver(&p, "fail nvmlInit_v2 9\n");
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_BAD, "not loaded", "modprobe nvidia");
    add_pci(&p, "0000:3b:00.0", "");
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_BAD, "on the PCI bus", "modprobe nvidia");
}

static void a_driver_that_was_updated_under_us_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    add_driver(&p, "fail nvmlInit_v2 18\n");
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_GOOD, "is loaded", NULL);
    CHECK_SAYS(&p, check_nvidia_versions, DOCTOR_BAD, "different versions", "reboot");
    CHECK_SAYS(&p, check_gpus_answer, DOCTOR_SKIP, "see nvidia-driver", NULL);
}

static void a_working_gpu_is_fine(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    add_pci(&p, "0000:3b:00.0", "nvidia");
    fake_devices(&p.host, 1);
    fake_file(&p.host, "/dev/nvidiactl", "");
    fake_file(&p.host, "/dev/nvidia-uvm", "");
    add_driver(&p, "driver 550.54.15\ngpu NVIDIA GeForce RTX 4090\n");
    CHECK_SAYS(&p, check_nvidia_driver, DOCTOR_GOOD, "550.54.15", NULL);
    CHECK_SAYS(&p, check_nvidia_versions, DOCTOR_GOOD, "agree", NULL);
    CHECK_SAYS(&p, check_gpus_answer, DOCTOR_GOOD, "1 GPU, first RTX4090", NULL);
    CHECK_SAYS(&p, check_gpu_devices, DOCTOR_GOOD, "/dev/nvidia-uvm", NULL);
    patient_remove(&p, "/dev/nvidia-uvm");
    CHECK_SAYS(&p, check_gpu_devices, DOCTOR_BAD, "no /dev/nvidia-uvm", "nvidia-modprobe");
}

static void a_gpu_that_fell_off_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    add_pci(&p, "0000:3b:00.0", "nvidia");
    add_pci(&p, "0000:af:00.0", "nvidia");
    fake_devices(&p.host, 2);
    add_driver(&p, "gpu NVIDIA A100-SXM4-80GB\ngpu NVIDIA A100-SXM4-80GB\n"
                   "fail nvmlDeviceGetUUID 15\n");
    CHECK_SAYS(&p, check_gpus_answer, DOCTOR_BAD, "1 of 2 GPUs cannot be used", "xid");
    add_driver(&p, "gpu NVIDIA A100-SXM4-80GB\n");
    CHECK_SAYS(&p, check_gpus_answer, DOCTOR_BAD, "2 GPUs are on the PCI bus and the driver has 1",
               "dmesg");
}

static const struct test tests[] = {
    { "a machine without GPUs is fine", a_machine_without_gpus_is_fine },
    { "a GPU without a driver is told", a_gpu_without_a_driver_is_told },
    { "WSL gets its driver from Windows", wsl_gets_its_driver_from_windows },
    { "a module that is not loaded is told", a_module_that_is_not_loaded_is_told },
    { "a driver that was updated under us is told", a_driver_that_was_updated_under_us_is_told },
    { "a working GPU is fine", a_working_gpu_is_fine },
    { "a GPU that fell off is told", a_gpu_that_fell_off_is_told },
};
TEST_CASES(tests)
