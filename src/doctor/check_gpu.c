/* The NVIDIA driver and its GPUs.  What NVML says was asked once, by doctor_look. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "doctor/look.h"

#define PCI "/sys/bus/pci/devices"
#define PCI_MAX 4096 /* devices looked at */

/* GPUs of NVIDIA on the PCI bus, whatever the driver says. */
struct pci_gpus {
    unsigned n;
    unsigned given_away; /* to virtual machines: not ours */
    unsigned nouveau;
    char first[32]; /* address */
};

static bool reads(const struct doctor_in *in, const char *device, const char *file,
                  const char *prefix)
{
    AUTO(buf_free) struct buf text = BUF(0);
    char path[LOOK_PATH];
    snprintf(path, sizeof path, PCI "/%s/%s", device, file);
    return look_read(in, path, 4096, &text) && text.n >= strlen(prefix) &&
           memcmp(text.p, prefix, strlen(prefix)) == 0;
}

/* "nvidia", "nouveau", "vfio-pci"; empty when no driver has it. */
static void bound_driver(const struct doctor_in *in, const char *device, char out[static 64])
{
    char path[LOOK_PATH], to[LOOK_PATH];
    look_path(in, path, PCI "/%s/driver", device);
    ssize_t n = readlink(path, to, sizeof to - 1);
    to[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(to, '/');
    snprintf(out, 64, "%.63s", slash ? slash + 1 : to);
}

static void count_one(const struct doctor_in *in, const char *device, struct pci_gpus *out)
{
    char driver[64];
    /* Class 0x03: displays and 3D controllers; its sound and USB parts are others. */
    if (!reads(in, device, "vendor", "0x10de") || !reads(in, device, "class", "0x03"))
        return;
    bound_driver(in, device, driver);
    if (strcmp(driver, "vfio-pci") == 0) {
        out->given_away++;
        return;
    }
    if (out->n++ == 0)
        snprintf(out->first, sizeof out->first, "%.31s", device);
    out->nouveau += strcmp(driver, "nouveau") == 0;
}

static struct pci_gpus count_gpus(const struct doctor_in *in)
{
    struct pci_gpus g = { 0 };
    char path[LOOK_PATH];
    look_path(in, path, PCI);
    DIR *d = opendir(path);
    const struct dirent *f;
    for (int i = 0; d && i < PCI_MAX && (f = readdir(d)); i++)
        if (f->d_name[0] != '.')
            count_one(in, f->d_name, &g);
    if (d)
        closedir(d);
    return g;
}

/* true when there is nothing to look at, which was said. */
static bool no_gpus(const struct doctor_in *in, struct doctor_result *r)
{
    if (in->simulated)
        say_skip(r, "GPUs are simulated");
    else if (in->facts.gpu_fault == NVML_NO_LIBRARY && !in->facts.machine.wsl &&
             count_gpus(in).n == 0)
        say_skip(r, "this machine has no NVIDIA GPU");
    else
        return false;
    return true;
}

void check_nvidia_driver(const struct doctor_in *in, struct doctor_result *r)
{
    const struct doctor_facts *f = &in->facts;
    struct pci_gpus g = count_gpus(in);
    if (no_gpus(in, r))
        return;
    if (f->gpu_fault == NVML_NONE || f->gpu_fault == NVML_MISMATCH) {
        say_good(r, "driver %s is loaded", f->driver[0] ? f->driver : "(version not told)");
        return;
    }
    if (f->gpu_fault == NVML_NO_LIBRARY && f->machine.wsl && g.n == 0) {
        say_skip(r, "WSL2 without an NVIDIA driver of Windows");
        say_fix(r, "with an NVIDIA GPU: install its driver in Windows, never in here, then "
                   "wsl --shutdown");
        return;
    }
    if (g.n == 0) {
        say_bad(r, "%s", f->gpu_trouble.msg);
        say_fix(r, "%s", f->gpu_trouble.hint);
        return;
    }
    say_bad(r, "%u NVIDIA GPU%s on the PCI bus (%s%s), and %s", g.n, g.n == 1 ? "" : "s", g.first,
            g.n == 1 ? "" : ", …", f->gpu_trouble.msg);
    if (g.nouveau)
        say_fix(r, "nouveau has it, which runs no CUDA: apt install nvidia-driver (Ubuntu: "
                   "ubuntu-drivers install) and reboot");
    else
        say_fix(r, "%s", f->gpu_trouble.hint);
}

void check_nvidia_versions(const struct doctor_in *in, struct doctor_result *r)
{
    const struct doctor_facts *f = &in->facts;
    if (no_gpus(in, r))
        return;
    if (f->gpu_fault == NVML_MISMATCH) {
        say_bad(r, "%s", f->gpu_trouble.msg);
        say_fix(r, "%s", f->gpu_trouble.hint);
    } else if (f->gpu_fault == NVML_NONE) {
        say_good(r, "library and kernel module agree");
    } else {
        say_skip(r, "the driver does not work, see nvidia-driver");
    }
}

void check_gpus_answer(const struct doctor_in *in, struct doctor_result *r)
{
    const struct doctor_facts *f = &in->facts;
    if (no_gpus(in, r))
        return;
    if (f->gpu_fault != NVML_NONE) {
        say_skip(r, "the driver does not work, see nvidia-driver");
        return;
    }
    unsigned on_bus = count_gpus(in).n;
    if (f->gpus.n_broken) {
        say_bad(r, "%u of %u GPUs cannot be used: %s", f->gpus.n_broken,
                f->gpus.n + f->gpus.n_broken, f->gpus.broken.msg);
        say_fix(r, "%s", f->gpus.broken.hint);
    } else if (on_bus > f->gpus.n) {
        say_bad(r,
                "%u GPUs are on the PCI bus and the driver has %u: one fell off or did not start",
                on_bus, f->gpus.n);
        say_fix(r, "dmesg | grep -iE 'xid|nvrm' tells which; power the machine off and on");
    } else if (f->gpus.n == 0) {
        say_skip(r, "the driver has no GPU");
    } else {
        say_good(r, "%u GPU%s, first %s", f->gpus.n, f->gpus.n == 1 ? "" : "s",
                 f->gpus.gpu[0].model);
    }
}

void check_gpu_devices(const struct doctor_in *in, struct doctor_result *r)
{
    const struct doctor_facts *f = &in->facts;
    char path[64];
    if (no_gpus(in, r))
        return;
    if (f->gpu_fault != NVML_NONE || f->gpus.n == 0 || f->machine.wsl) {
        say_skip(r, f->machine.wsl ? "WSL2 has one device for all: /dev/dxg"
                                   : "no GPU that works, see nvidia-driver");
        return;
    }
    for (uint32_t i = 0; i < f->gpus.n + 2; i++) {
        static const char *const shared[] = { "/dev/nvidiactl", "/dev/nvidia-uvm" };
        if (i < ARRAY_LEN(shared))
            snprintf(path, sizeof path, "%s", shared[i]);
        else
            snprintf(path, sizeof path, "/dev/nvidia%d", (int)f->gpus.gpu[i - 2].minor);
        if ((i >= 2 && f->gpus.gpu[i - 2].minor < 0) || look_exists(in, path))
            continue;
        say_bad(r, "there is no %s, so CUDA does not start in a job", path);
        say_fix(r, "nvidia-modprobe -u -c 0 (apt install nvidia-modprobe); nvidia-persistenced "
                   "makes them at every boot");
        return;
    }
    say_good(r, "/dev/nvidiactl, /dev/nvidia-uvm and one for each GPU");
}
