/* A machine in a folder on which every check is content, for the tests of src/doctor: each of them
 * breaks one thing. */
#ifndef NS_TESTS_FAKES_DOCTOR_H
#define NS_TESTS_FAKES_DOCTOR_H

#include <string.h>

#include "doctor/doctor.h"
#include "tests/fakes/host.h"

struct patient {
    struct fake_host host;
    struct doctor_in in;
    char nvml[512];
};

static inline void patient_program(const struct patient *p, const char *path, const char *script)
{
    char full[512];
    fake_file(&p->host, path, script);
    snprintf(full, sizeof full, "%s%s", p->host.root, path);
    CHECK(chmod(full, 0755) == 0);
}

static inline void patient_remove(const struct patient *p, const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", p->host.root, path);
    CHECK(remove(full) == 0);
}

/* Files and folders, as root has them, with cgroup v2 and no GPU. */
static inline void patient_fill(struct patient *p)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        { "/proc/meminfo", "MemTotal: 16384000 kB\n" },
        { "/proc/filesystems", "nodev\tproc\nnodev\toverlay\n" },
        { "/proc/cmdline", "quiet\n" },
        { "/proc/swaps", "Filename\tType\n" },
        { "/proc/self/cgroup", "0::/user.slice/mine\n" },
        { "/proc/self/ns/user", "" },
        { "/proc/net/tcp", "  sl  local_address\n" },
        { "/proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n" },
        { "/proc/sys/fs/inotify/max_user_instances", "128\n" },
        { "/proc/sys/fs/inotify/max_user_watches", "65536\n" },
        { "/proc/sys/user/max_user_namespaces", "96343\n" },
        { "/proc/sys/kernel/unprivileged_userns_clone", "1\n" },
        { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n" },
        { "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n" },
        { "/sys/fs/cgroup/cgroup.procs", "" },
        { "/sys/fs/cgroup/user.slice/mine/cgroup.controllers", "cpu memory pids\n" },
        { "/sys/fs/cgroup/user.slice/mine/cgroup.procs", "" },
        { "/usr/lib/cni/bridge", "" },
        { "/usr/lib/cni/host-local", "" },
        { "/lib/ns/nightshift-keeper", "" },
        { "/lib/ns/nightshift-init", "" },
        { "/state/mark", "" },
        { "/run/ns/mark", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        fake_file(&p->host, files[i].path, files[i].text);
    patient_program(p, "/usr/bin/crun", "#!/bin/sh\necho crun version 1.21\necho +CAP +CRIU\n");
    patient_program(p, "/usr/bin/criu", "#!/bin/sh\necho Version: 4.1.1\n");
    patient_program(p, "/usr/sbin/nft", "#!/bin/sh\n");
    patient_program(p, "/usr/sbin/ip", "#!/bin/sh\n");
    patient_program(p, "/usr/bin/skopeo", "#!/bin/sh\n");
    patient_program(p, "/usr/bin/umoci", "#!/bin/sh\n");
    patient_program(p, "/usr/sbin/mkfs.ext4", "#!/bin/sh\n");
}

static inline void patient_init(struct patient *p)
{
    *p = (struct patient){ 0 };
    fake_init(&p->host);
    patient_fill(p);
    snprintf(p->nvml, sizeof p->nvml, "%s/no-such-library.so", p->host.root);
    p->in = (struct doctor_in){ .root = p->host.root,
                                .path = "/usr/local/bin:/usr/bin",
                                .program = "/lib/ns/nightshift-init",
                                .state = "/state",
                                .run = "/run/ns",
                                .libexec = "/lib/ns",
                                .listen = "127.0.0.1:7433",
                                .nvml = p->nvml,
                                .containment = "auto",
                                .network = true,
                                .store_application = 0x4e534854,
                                .store_format = 2 };
    doctor_look(&p->in);
    p->in.facts.uid = 0;
    p->in.facts.machine.clock_synced = true;
    p->in.facts.machine.clock_error_ms = 3;
    p->in.facts.disk = (struct doctor_disk){ 100ull << 30, 50ull << 30, 1000000, 900000, true };
    snprintf(p->in.facts.machine.kernel, sizeof p->in.facts.machine.kernel, "6.1.0-18-amd64");
}

/* For AUTO. */
static inline void patient_clear(struct patient *p)
{
    fake_clear(&p->host);
}

static inline struct doctor_result patient_check(const struct patient *p, doctor_fn *fn)
{
    struct doctor_result r = { 0 };
    fn(&p->in, &r);
    return r;
}

/* What was found and the way out each hold these words; NULL: there is no fix. */
#define CHECK_SAYS(p, fn, want, words, way)                                                        \
    do {                                                                                           \
        struct doctor_result r_ = patient_check((p), (fn));                                        \
        const char *way_ = (way);                                                                  \
        if (r_.verdict != (want) || !strstr(r_.found, (words)) ||                                  \
            (way_ ? !strstr(r_.fix, way_) : r_.fix[0] != '\0'))                                    \
            test_fail(__FILE__, __LINE__, "verdict %d, found '%s', fix '%s'", (int)r_.verdict,     \
                      r_.found, r_.fix);                                                           \
    } while (0)

#endif
