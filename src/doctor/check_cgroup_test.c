#include "doctor/checks.h"
#include "tests/fakes/doctor.h"

/* From version 2 to version 1, all controllers there. */
static void make_v1(struct patient *p)
{
    static const char *const names[] = { "memory", "cpu", "pids", "freezer" };
    char path[128];
    p->in.facts.machine.cgroup = CGROUP_V1;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s/cgroup.procs", names[i]);
        fake_file(&p->host, path, "");
    }
}

static void the_version_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_cgroups, DOCTOR_GOOD, "version 2", NULL);
    p.in.facts.machine.cgroup = CGROUP_HYBRID;
    CHECK_SAYS(&p, check_cgroups, DOCTOR_GOOD, "version 1, with an empty tree", NULL);
    p.in.facts.machine.cgroup = CGROUP_NONE;
    CHECK_SAYS(&p, check_cgroups, DOCTOR_BAD, "no control groups", "mount -t cgroup2");
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_SKIP, "see cgroups", NULL);
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_SKIP, "see cgroups", NULL);
    p.in.facts.machine.wsl = true;
    CHECK_SAYS(&p, check_cgroups, DOCTOR_BAD, "no control groups", "/etc/wsl.conf");
}

static void a_missing_controller_is_named(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_GOOD, "memory, cpu, pids", NULL);
    fake_file(&p.host, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_BAD, "missing: memory, pids;",
               "cgroup_enable=memory");
    fake_file(&p.host, "/proc/cmdline", "quiet cgroup_disable=memory\n");
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_BAD, "memory",
               "take cgroup_disable=memory out");
    make_v1(&p);
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_GOOD, "freezer", NULL);
    patient_remove(&p, "/sys/fs/cgroup/freezer/cgroup.procs");
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_BAD, "missing: freezer;", "kernel");
    p.in.containment = "plain";
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_SKIP, "ordinary processes", NULL);
}

/* Debian's systemd gives an account memory and pids only. */
static void without_root_our_own_part_counts(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    p.in.facts.uid = 1000;
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_GOOD, "cpu", NULL);
    fake_file(&p.host, "/sys/fs/cgroup/user.slice/mine/cgroup.controllers", "memory pids\n");
    CHECK_SAYS(&p, check_cgroup_controllers, DOCTOR_BAD, "missing: cpu;",
               "Delegate=cpu memory pids");
}

static void a_tree_that_is_not_ours_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_GOOD, "/sys/fs/cgroup is ours", NULL);
    patient_remove(&p, "/sys/fs/cgroup/cgroup.procs");
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_BAD, "may not be written", "--privileged");
    p.in.facts.uid = 1000;
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_GOOD, "user.slice/mine is ours", NULL);
    patient_remove(&p, "/sys/fs/cgroup/user.slice/mine/cgroup.procs");
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_BAD, "user.slice/mine may not",
               "-p Delegate=yes");
    p.in.keeper_external = true;
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_SKIP, "somebody else's", NULL);
    p.in.keeper_external = false;
    p.in.containment = "plain";
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_SKIP, "ordinary processes", NULL);
    p.in.containment = "auto";
    make_v1(&p);
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_BAD, "version 1", "as root");
    p.in.facts.uid = 0;
    CHECK_SAYS(&p, check_cgroup_delegation, DOCTOR_GOOD, "ours", NULL);
}

static void swap_that_is_not_counted_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_swap_limits, DOCTOR_GOOD, "no swap", NULL);
    fake_file(&p.host, "/proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n");
    CHECK_SAYS(&p, check_swap_limits, DOCTOR_GOOD, "counts", NULL);
    fake_file(&p.host, "/proc/cmdline", "swapaccount=0\n");
    CHECK_SAYS(&p, check_swap_limits, DOCTOR_BAD, "not accounted", "no swapaccount=0");
    make_v1(&p);
    CHECK_SAYS(&p, check_swap_limits, DOCTOR_BAD, "not accounted", "swapaccount=1");
    fake_file(&p.host, "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "1\n");
    CHECK_SAYS(&p, check_swap_limits, DOCTOR_GOOD, "counts", NULL);
    p.in.containment = "plain";
    CHECK_SAYS(&p, check_swap_limits, DOCTOR_SKIP, "not limited", NULL);
}

static const struct test tests[] = {
    { "the version is told", the_version_is_told },
    { "a missing controller is named", a_missing_controller_is_named },
    { "without root our own part counts", without_root_our_own_part_counts },
    { "a tree that is not ours is told", a_tree_that_is_not_ours_is_told },
    { "swap that is not counted is told", swap_that_is_not_counted_is_told },
};
TEST_CASES(tests)
