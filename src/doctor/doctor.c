#include "doctor/doctor.h"

#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "doctor/look.h"
#include "sys/clock.h"

const struct doctor_check doctor_checks[] = {
    { "kernel", DOCTOR_ANYWHERE, check_kernel, "the kernel's version", "containers, freezing" },
    { "clock", DOCTOR_ANYWHERE, check_clock,
      "whether the kernel says that the clock is kept in time; the times of the store and of the "
      "program",
      "fair shares, tokens, times in logs" },
    { "nvidia-driver", DOCTOR_HERE, check_nvidia_driver,
      "GPUs on the PCI bus, and NVIDIA's library and module", "GPUs" },
    { "nvidia-versions", DOCTOR_HERE, check_nvidia_versions,
      "whether library and module are of one version", "GPUs" },
    { "gpus-answer", DOCTOR_HERE, check_gpus_answer,
      "each GPU through the driver, and their number on the bus", "the GPU that is lost" },
    { "gpu-devices", DOCTOR_HERE, check_gpu_devices, "`/dev/nvidia*`", "CUDA in jobs" },
    { "cgroups", DOCTOR_HERE, check_cgroups, "`/sys/fs/cgroup`: version 1, version 2, none",
      "limits, freezing" },
    { "cgroup-controllers", DOCTOR_HERE, check_cgroup_controllers, "memory, cpu, pids, freezer",
      "the limit of that name" },
    { "cgroup-delegation", DOCTOR_HERE, check_cgroup_delegation, "whether we may make groups",
      "limits, freezing" },
    { "swap-limits", DOCTOR_HERE, check_swap_limits, "swap, and whether it is counted",
      "the memory limit of jobs" },
    { "user-namespaces", DOCTOR_HERE, check_user_namespaces, "three sysctls, without root only",
      "containers without root" },
    { "overlayfs", DOCTOR_HERE, check_overlayfs, "`/proc/filesystems`, the kernel's modules",
      "container images" },
    { "inotify", DOCTOR_HERE, check_inotify, "`fs.inotify.max_user_instances`, `max_user_watches`",
      "following logs" },
    { "processes", DOCTOR_HERE, check_processes, "the option `hidepid` of `/proc`",
      "command lines of jobs, which accounts of this machine can read" },
    { "crun", DOCTOR_HERE, check_crun, "the program and its version", "containers" },
    { "criu", DOCTOR_HERE, check_criu, "the program, its version, and whether crun knows it",
      "saving jobs to disk" },
    { "images", DOCTOR_HERE, check_images, "the programs skopeo and umoci",
      "images other than `host`" },
    { "network", DOCTOR_HERE, check_network,
      "the programs nft and ip; whether the firewall between tenants is there",
      "networks of tenants" },
    { "cni-plugins", DOCTOR_HERE, check_cni_plugins,
      "bridge and host-local in `/usr/lib/cni`, `/opt/cni/bin`", "networks of tenants" },
    { "scratch", DOCTOR_HERE, check_scratch, "the program mkfs.ext4",
      "a bound for `/tmp` of jobs" },
    { "own-programs", DOCTOR_HERE, check_own_programs, "nightshift-keeper and nightshift-init",
      "every job" },
    { "state-folder", DOCTOR_ANYWHERE, check_state_folder, "its owner and mode", "everything" },
    { "run-folder", DOCTOR_ANYWHERE, check_run_folder, "its owner and mode", "the sockets" },
    { "disk", DOCTOR_ANYWHERE, check_disk,
      "free bytes and inodes where the state folder is: 5 % and 1 GiB", "logs, images, the store" },
    { "store", DOCTOR_ANYWHERE, check_store,
      "the header of `nightshift.db`: whose it is, its format; rows that a running daemon met "
      "damaged",
      "everything" },
    { "kept", DOCTOR_ANYWHERE, check_kept,
      "the sizes of the store and of jobs' output, and `keep_logs_total`",
      "the disk, in the long run" },
    { "jump", DOCTOR_ANYWHERE, check_jump, "whether the wall clock is where it should be",
      "nothing is removed for its age; dates are not those of the wall clock" },
    { "audit", DOCTOR_ANYWHERE, check_audit,
      "whether the audit is as it was written, as of today's first look",
      "what it says of who did what" },
    { "port", DOCTOR_ANYWHERE, check_port, "who listens at the address of `listen`",
      "the web page, the API" },
    { "keeper", DOCTOR_HERE, check_keeper, "who listens at `keeper.sock`, and its mode",
      "every job" },
    { "mail", DOCTOR_ANYWHERE, check_mail, "whether the mail server took the last letter",
      "notices by mail" },
    { "kube-config", DOCTOR_KUBE, check_kube_config, "the kubeconfig, or the account of the pod",
      "every job" },
    { "kube-server", DOCTOR_KUBE, check_kube_server,
      "whether the daemon that asks follows the cluster, and decides there", "every job" },
    { "tls", DOCTOR_ANYWHERE, check_tls, "certificate and key: there, private, a pair, not expired",
      "connections from elsewhere" },
};
const size_t doctor_checks_n = ARRAY_LEN(doctor_checks);

/* ---- what only the system can tell ---- */

static void look_at_disk(const struct doctor_in *in, struct doctor_disk *out)
{
    char path[LOOK_PATH];
    struct statvfs st;
    look_nearest(in, in->state, path);
    *out = (struct doctor_disk){ 0 };
    if (statvfs(path, &st) < 0 || st.f_blocks == 0)
        return;
    *out = (struct doctor_disk){ .bytes = (uint64_t)st.f_blocks * st.f_frsize,
                                 .free_bytes = (uint64_t)st.f_bavail * st.f_frsize,
                                 .files = st.f_files,
                                 .free_files = st.f_favail,
                                 .known = true };
}

static void look_at_gpus(const struct doctor_in *in, struct doctor_facts *f)
{
    if (in->simulated || in->kube)
        return;
    AUTO(nvml_close_p) struct nvml *n = nvml_open(in->nvml, &f->gpu_fault, &f->gpu_trouble);
    if (!n)
        return;
    snprintf(f->driver, sizeof f->driver, "%s", nvml_driver_version(n));
    if (gpu_list_read(n, &f->gpus, &f->gpu_trouble) < 0)
        f->gpu_fault = NVML_OTHER;
}

void doctor_look(struct doctor_in *in)
{
    struct doctor_facts *f = &in->facts;
    struct clock clock = clock_wall();
    struct err ignored;
    *f = (struct doctor_facts){ .uid = geteuid(), .now_ms = clock_now_ms(&clock) };
    if (machine_read(in->root, &f->machine, &ignored) < 0)
        f->machine = (struct machine){ .clock_error_ms = -1 };
    look_at_disk(in, &f->disk);
    look_at_gpus(in, f);
}

/* A check that does not matter with this engine says so. */
static void run_one(const struct doctor_in *in, const struct doctor_check *c,
                    struct doctor_result *out)
{
    *out = (struct doctor_result){ 0 };
    if (c->where == DOCTOR_HERE && in->kube)
        say_skip(out, "jobs run on Kubernetes, not on this machine");
    else if (c->where == DOCTOR_KUBE && !in->kube)
        say_skip(out, "jobs run on this machine, not on Kubernetes");
    else
        c->fn(in, out);
}

size_t doctor_run(const struct doctor_in *in, struct doctor_result *out)
{
    size_t bad = 0;
    for (size_t i = 0; i < doctor_checks_n; i++) {
        run_one(in, &doctor_checks[i], &out[i]);
        bad += out[i].verdict == DOCTOR_BAD;
    }
    return bad;
}

/* ---- printing ---- */

void doctor_print_json(const struct doctor_result *r, struct json_out *w)
{
    json_begin(w, NULL, '{');
    json_begin(w, "checks", '[');
    for (size_t i = 0; i < doctor_checks_n; i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(doctor_checks[i].name));
        if (r[i].verdict == DOCTOR_SKIP)
            json_put_null(w, "ok");
        else
            json_put_bool(w, "ok", r[i].verdict == DOCTOR_GOOD);
        json_put_str(w, "found", str_of(r[i].found));
        json_put_str(w, "fix", str_of(r[i].fix));
        json_end(w, '}');
    }
    json_end(w, ']');
    json_end(w, '}');
}

void doctor_print_text(const struct doctor_result *r, struct buf *out)
{
    static const char *const signs[] = {
        [DOCTOR_SKIP] = "–", [DOCTOR_GOOD] = "✓", [DOCTOR_BAD] = "✗"
    };
    for (size_t i = 0; i < doctor_checks_n; i++) {
        buf_printf(out, "%s %s: %s\n", signs[r[i].verdict], doctor_checks[i].name, r[i].found);
        if (r[i].fix[0])
            buf_printf(out, "    fix: %s\n", r[i].fix);
    }
}

void doctor_print_reference(struct buf *out)
{
    buf_addz(out, "| check | looks at | matters for |\n|---|---|---|\n");
    for (size_t i = 0; i < doctor_checks_n; i++)
        buf_printf(out, "| `%s` | %s | %s |\n", doctor_checks[i].name, doctor_checks[i].looks_at,
                   doctor_checks[i].matters);
}
