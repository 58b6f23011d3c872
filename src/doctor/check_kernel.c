/* The kernel and its limits, and the clock. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/date.h"
#include "doctor/checks.h"
#include "doctor/look.h"

#define KERNEL_MAJOR 5 /* the first with all of cgroup v2's freezer, pidfd and clone3 */
#define KERNEL_MINOR 4
#define CLOCK_SLACK_MS 60000
#define INSTANCES_LEAST 128
#define WATCHES_LEAST 8192

void check_kernel(const struct doctor_in *in, struct doctor_result *r)
{
    const char *text = in->facts.machine.kernel;
    struct look_version v;
    if (!look_find_version(str_of(text), &v)) {
        say_skip(r, "the kernel does not tell its version");
    } else if (look_older(&v, KERNEL_MAJOR, KERNEL_MINOR)) {
        say_bad(r, "Linux %s is older than %u.%u", text, KERNEL_MAJOR, KERNEL_MINOR);
        say_fix(r, "upgrade the system: Debian 11 or newer, Ubuntu 20.04 or newer, and reboot");
    } else {
        say_good(r, "Linux %s", text);
    }
}

/* Milliseconds since 1970; 0 when there is no such file. */
static int64_t written_ms(const struct doctor_in *in, const char *folder, const char *name)
{
    char path[LOOK_PATH];
    struct stat st;
    look_path(in, path, "%s%s", folder, name);
    return stat(path, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000 : 0;
}

void check_clock(const struct doctor_in *in, struct doctor_result *r)
{
    const struct {
        const char *folder, *name, *what;
    } marks[] = {
        { in->state, "/nightshift.db", "the store was written" },
        { in->state, "/nightshift.db-wal", "the store was written" },
        { in->program, "", "this program was built" },
    };
    char now[32], then[32];
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        int64_t ms = written_ms(in, marks[i].folder, marks[i].name);
        if (ms <= in->facts.now_ms + CLOCK_SLACK_MS)
            continue;
        say_bad(r, "the clock says %s, but %s at %s", date_stamp(in->facts.now_ms, now),
                marks[i].what, date_stamp(ms, then));
        say_fix(r, "set it: apt install chrony; chronyc makestep");
        return;
    }
    const char *trouble = machine_clock_trouble(&in->facts.machine);
    if (trouble) {
        say_bad(r, "%s", trouble);
        say_fix(r, "apt install chrony (or: timedatectl set-ntp true), then chronyc tracking");
    } else if (in->facts.machine.clock_error_ms < 0) {
        say_skip(r, "the kernel does not tell us whether the clock is kept in time");
    } else {
        say_good(r, "kept in time, at most %lld ms off",
                 (long long)in->facts.machine.clock_error_ms);
    }
}

void check_overlayfs(const struct doctor_in *in, struct doctor_result *r)
{
    static const char *const kinds[] = { "ko", "ko.xz", "ko.zst", "ko.gz" };
    char path[256];
    if (look_has_word(in, "/proc/filesystems", "overlay")) {
        say_good(r, "the kernel has it");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        snprintf(path, sizeof path, "/lib/modules/%s/kernel/fs/overlayfs/overlay.%s",
                 in->facts.machine.kernel, kinds[i]);
        if (look_exists(in, path)) {
            say_good(r, "a module that is loaded when it is needed");
            return;
        }
    }
    snprintf(path, sizeof path, "/lib/modules/%s", in->facts.machine.kernel);
    if (in->facts.uid != 0 && in->keeper_external && !look_exists(in, path)) {
        say_skip(r, "it is not loaded, and the daemon may not see the kernel's modules");
        return;
    }
    say_bad(r, "the kernel cannot do overlayfs");
    say_fix(r, "modprobe overlay says why; a kernel of one's own needs CONFIG_OVERLAY_FS, and "
               "after a kernel update a reboot");
}

/* A daemon in systemd's sandbox has a second /proc over it; the first line is the machine's. */
void check_processes(const struct doctor_in *in, struct doctor_result *r)
{
    AUTO(buf_free) struct buf text = BUF(1u << 20);
    struct str rest, line = { "", 0 };
    bool found = false;
    if (!look_read(in, "/proc/self/mounts", 1u << 20, &text)) {
        say_skip(r, "what is mounted cannot be read");
        return;
    }
    rest = buf_str(&text);
    while (!found && str_next_line(&rest, &line))
        found = memmem(line.p, line.n, " /proc proc ", 12) != NULL;
    if (!found) {
        say_skip(r, "/proc is not among the mounts");
        return;
    }
    const char *option = memmem(line.p, line.n, "hidepid=", 8);
    if (option && option[8] != '0' && option[8] != 'o') {
        say_good(r, "accounts of this machine see their own processes only");
        return;
    }
    say_skip(r, "every account of this machine sees the command lines of all jobs");
    say_fix(r, "mount -o remount,hidepid=2 /proc, and for good in /etc/fstab: "
               "proc /proc proc hidepid=2 0 0");
}

void check_inotify(const struct doctor_in *in, struct doctor_result *r)
{
    static const struct {
        const char *name;
        uint64_t least, wanted;
    } limits[] = { { "max_user_instances", INSTANCES_LEAST, 1024 },
                   { "max_user_watches", WATCHES_LEAST, 65536 } };
    uint64_t v[ARRAY_LEN(limits)];
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", limits[i].name);
        if (!look_number(in, path, &v[i])) {
            say_skip(r, "the kernel does not tell its limits");
            return;
        }
        if (v[i] >= limits[i].least)
            continue;
        say_bad(r, "fs.inotify.%s is %llu; logs that are followed need %llu", limits[i].name,
                (unsigned long long)v[i], (unsigned long long)limits[i].least);
        say_fix(r,
                "sysctl -w fs.inotify.%s=%llu, and the same line (without sysctl -w) in "
                "/etc/sysctl.d/60-nightshift.conf",
                limits[i].name, (unsigned long long)limits[i].wanted);
        return;
    }
    say_good(r, "%llu instances, %llu watches an account", (unsigned long long)v[0],
             (unsigned long long)v[1]);
}

void check_user_namespaces(const struct doctor_in *in, struct doctor_result *r)
{
    static const struct {
        const char *file, *key;
        uint64_t forbids;
        const char *fix;
    } switches[] = {
        { "/proc/sys/user/max_user_namespaces", "user.max_user_namespaces", 0,
          "sysctl -w user.max_user_namespaces=65536" },
        { "/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", 0,
          "sysctl -w kernel.unprivileged_userns_clone=1" },
        { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
          "kernel.apparmor_restrict_unprivileged_userns", 1,
          "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 23.10 and later), or "
          "an AppArmor profile with 'userns,' for crun" },
    };
    uint64_t v;
    if (look_as_root(in) || look_plain(in)) {
        say_skip(r, look_plain(in) ? "jobs are ordinary processes here" : "not needed by root");
        return;
    }
    if (!look_exists(in, "/proc/self/ns/user")) {
        say_bad(r, "the kernel has no user namespaces");
        say_fix(r, "use a kernel with CONFIG_USER_NS, run nightshiftd as root, or set "
                   "containment: plain");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
        if (!look_number(in, switches[i].file, &v) || v != switches[i].forbids)
            continue;
        say_bad(r, "%s is %llu: accounts may not make user namespaces", switches[i].key,
                (unsigned long long)v);
        say_fix(r, "%s; or run nightshiftd as root", switches[i].fix);
        return;
    }
    say_good(r, "allowed");
}
