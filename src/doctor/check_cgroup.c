/* Control groups: what bounds a job's memory, CPUs and processes, and freezes it. */
#include <stdio.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "doctor/look.h"

#define CGROUP "/sys/fs/cgroup"

static const char *const wanted[] = { "memory", "cpu", "pids", "freezer" };

static bool is_v2(const struct doctor_in *in)
{
    return in->facts.machine.cgroup == CGROUP_V2;
}

void check_cgroups(const struct doctor_in *in, struct doctor_result *r)
{
    enum cgroup_kind kind = in->facts.machine.cgroup;
    switch (kind) {
    case CGROUP_V2: say_good(r, "version 2"); return;
    case CGROUP_V1: say_good(r, "version 1"); return;
    case CGROUP_HYBRID:
        say_good(r, "version 1, with an empty tree of version 2 beside it (hidden from crun)");
        return;
    case CGROUP_NONE:
    case CGROUP_KIND_COUNT: break;
    }
    say_bad(r, "no control groups at " CGROUP ": jobs cannot be limited or frozen");
    if (in->facts.machine.wsl)
        say_fix(r, "WSL2: put [boot] and systemd=true into /etc/wsl.conf, then wsl --shutdown");
    else
        say_fix(r, "mount -t cgroup2 none " CGROUP "; in a container: docker run --privileged "
                   "--cgroupns=host");
}

/* ---- controllers ---- */

/* The cgroup of version 2 in which we live, "" at the top; "" too when that is not told. */
static void own_cgroup(const struct doctor_in *in, char out[static 1024])
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, line;
    out[0] = '\0';
    if (!look_read(in, "/proc/self/cgroup", 64u << 10, &text))
        return;
    for (rest = buf_str(&text); str_next_line(&rest, &line);)
        if (line.n > 4 && line.n < 1000 && memcmp(line.p, "0::/", 4) == 0)
            snprintf(out, 1024, "%.*s", (int)line.n - 3, line.p + 3);
}

/* Where tasks get their groups: at the top as root, else in the part that is ours. */
static void task_folder(const struct doctor_in *in, char out[static 1200])
{
    char own[1024] = "";
    if (!look_as_root(in))
        own_cgroup(in, own);
    snprintf(out, 1200, CGROUP "%s", own);
}

static bool has_controller(const struct doctor_in *in, const char *name)
{
    char folder[1200], path[1300];
    if (!is_v2(in)) {
        snprintf(path, sizeof path, CGROUP "/%s/cgroup.procs", name);
        return look_exists(in, path);
    }
    if (strcmp(name, "freezer") == 0)
        return true; /* every group of version 2 has it, from Linux 5.2 on */
    task_folder(in, folder);
    snprintf(path, sizeof path, "%s/cgroup.controllers", folder);
    return look_has_word(in, path, name);
}

/* Turned off by hand: a word of the kernel's command line. */
static bool is_disabled(const struct doctor_in *in, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, "cgroup_disable=%s", name);
    return look_has_word(in, "/proc/cmdline", word);
}

static void missing_fix(const struct doctor_in *in, const char *name, struct doctor_result *r)
{
    if (is_disabled(in, name))
        say_fix(r,
                "take cgroup_disable=%s out of GRUB_CMDLINE_LINUX in /etc/default/grub, then "
                "update-grub and reboot",
                name);
    else if (!look_as_root(in))
        say_fix(r, "as root: systemctl edit user@.service, add [Service] and Delegate=cpu memory "
                   "pids, then log in anew");
    else if (strcmp(name, "memory") == 0)
        say_fix(r, "add cgroup_enable=memory to the kernel's command line (/etc/default/grub, "
                   "update-grub) and reboot");
    else
        say_fix(r, "a kernel with this controller (Debian's and Ubuntu's have all); in a "
                   "container: docker run --privileged --cgroupns=host");
}

void check_cgroup_controllers(const struct doctor_in *in, struct doctor_result *r)
{
    AUTO(buf_free) struct buf missing = BUF(200);
    const char *first = NULL;
    if (in->facts.machine.cgroup == CGROUP_NONE) {
        say_skip(r, "no control groups, see cgroups");
        return;
    }
    if (look_plain(in)) {
        say_skip(r, "jobs are ordinary processes here");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (has_controller(in, wanted[i]))
            continue;
        first = first ? first : wanted[i];
        buf_printf(&missing, "%s%s", missing.n ? ", " : "", wanted[i]);
    }
    if (!first) {
        say_good(r, "memory, cpu, pids and freezer");
        return;
    }
    say_bad(r, "missing: %s; jobs are not limited in it", missing.p);
    missing_fix(in, first, r);
}

/* ---- may we use them? ---- */

void check_cgroup_delegation(const struct doctor_in *in, struct doctor_result *r)
{
    char folder[1200], path[LOOK_PATH];
    bool root = look_as_root(in);
    if (in->facts.machine.cgroup == CGROUP_NONE || look_plain(in)) {
        say_skip(r, look_plain(in) ? "jobs are ordinary processes here"
                                   : "no control groups, see cgroups");
        return;
    }
    if (in->facts.uid != 0 && in->keeper_external) {
        say_skip(r, "the keeper is somebody else's, and makes the groups");
        return;
    }
    if (!root && !is_v2(in)) {
        say_bad(r, "version 1 is never handed to ordinary accounts: jobs run without limits");
        say_fix(r, "run nightshiftd as root, or boot with systemd.unified_cgroup_hierarchy=1");
        return;
    }
    task_folder(in, folder);
    look_path(in, path, "%s%s/cgroup.procs", folder, is_v2(in) ? "" : "/memory");
    if (access(path, W_OK) == 0) {
        say_good(r, "%s is ours to use", folder);
        return;
    }
    say_bad(r, "%s may not be written: jobs cannot be limited or frozen", folder);
    if (root)
        say_fix(r, "it is mounted read-only: in a container, docker run --privileged "
                   "--cgroupns=host");
    else
        say_fix(r, "start it with systemd-run --user --scope -p Delegate=yes nightshiftd, or run "
                   "it as root");
}

/* ---- swap ---- */

static bool has_swap(const struct doctor_in *in)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, line;
    if (!look_read(in, "/proc/swaps", 64u << 10, &text))
        return false;
    rest = buf_str(&text);
    if (!str_next_line(&rest, &line)) /* the titles */
        return false;
    return str_next_line(&rest, &line) && str_trim(line).n > 0;
}

void check_swap_limits(const struct doctor_in *in, struct doctor_result *r)
{
    if (!has_swap(in)) {
        say_good(r, "the machine has no swap");
        return;
    }
    if (in->facts.machine.cgroup == CGROUP_NONE || look_plain(in)) {
        say_skip(r, "memory is not limited here");
        return;
    }
    bool off = is_v2(in) ? look_has_word(in, "/proc/cmdline", "swapaccount=0")
                         : !look_exists(in, CGROUP "/memory/memory.memsw.limit_in_bytes");
    if (!off) {
        say_good(r, "swap counts as a job's memory");
        return;
    }
    say_bad(r, "swap is not accounted: a job at its memory limit fills the swap of everybody");
    say_fix(r,
            "%s in GRUB_CMDLINE_LINUX of /etc/default/grub, then update-grub and reboot; or "
            "swapoff -a",
            is_v2(in) ? "no swapaccount=0" : "swapaccount=1");
}
