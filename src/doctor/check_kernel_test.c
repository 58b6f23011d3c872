#include "doctor/checks.h"
#include "tests/fakes/doctor.h"

static void set_kernel(struct patient *p, const char *text)
{
    snprintf(p->in.facts.machine.kernel, sizeof p->in.facts.machine.kernel, "%s", text);
}

static void an_old_kernel_is_refused(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_kernel, DOCTOR_GOOD, "6.1.0-18-amd64", NULL);
    set_kernel(&p, "5.4.0");
    CHECK_SAYS(&p, check_kernel, DOCTOR_GOOD, "5.4.0", NULL);
    set_kernel(&p, "5.3.18-lp152");
    CHECK_SAYS(&p, check_kernel, DOCTOR_BAD, "older than 5.4", "Debian 11");
    set_kernel(&p, "4.18.0-553.el8");
    CHECK_SAYS(&p, check_kernel, DOCTOR_BAD, "4.18.0-553.el8", "upgrade");
    set_kernel(&p, "odd");
    CHECK_SAYS(&p, check_kernel, DOCTOR_SKIP, "version", NULL);
}

static void a_clock_that_nobody_keeps_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_clock, DOCTOR_GOOD, "at most 3 ms off", NULL);
    p.in.facts.machine.clock_synced = false;
    CHECK_SAYS(&p, check_clock, DOCTOR_BAD, "not kept in time", "apt install chrony");
    p.in.facts.machine.clock_error_ms = -1;
    CHECK_SAYS(&p, check_clock, DOCTOR_SKIP, "does not tell", NULL);
}

static void a_clock_before_the_store_or_the_build_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    int64_t now_ms = p.in.facts.now_ms;
    p.in.facts.now_ms = now_ms - 50000; /* some slack: a file system has its own clock */
    CHECK_SAYS(&p, check_clock, DOCTOR_GOOD, "kept in time", NULL);
    p.in.facts.now_ms = now_ms - 3600000;
    CHECK_SAYS(&p, check_clock, DOCTOR_BAD, "this program was built", "chronyc makestep");
    fake_file(&p.host, "/state/nightshift.db-wal", "");
    CHECK_SAYS(&p, check_clock, DOCTOR_BAD, "the store was written", "chronyc makestep");
}

static void processes_that_all_can_see_are_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/proc/self/mounts",
              "proc /proc proc rw,nosuid 0 0\n"
              "proc /proc proc rw,hidepid=invisible 0 0\n");
    CHECK_SAYS(&p, check_processes, DOCTOR_SKIP, "command lines of all jobs", "hidepid=2");
    fake_file(&p.host, "/proc/self/mounts",
              "none / ext4 rw 0 0\nproc /proc proc rw,hidepid=2 0 0\n");
    CHECK_SAYS(&p, check_processes, DOCTOR_GOOD, "their own processes only", NULL);
    fake_file(&p.host, "/proc/self/mounts", "");
    CHECK_SAYS(&p, check_processes, DOCTOR_SKIP, "not among", NULL);
}

static void overlayfs_may_be_built_in_or_a_module(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_overlayfs, DOCTOR_GOOD, "has it", NULL);
    fake_file(&p.host, "/proc/filesystems", "nodev\tproc\n\text4\n");
    CHECK_SAYS(&p, check_overlayfs, DOCTOR_BAD, "cannot do overlayfs", "modprobe overlay");
    p.in.facts.uid = 997; /* systemd hides modules from the daemon */
    p.in.keeper_external = true;
    CHECK_SAYS(&p, check_overlayfs, DOCTOR_SKIP, "may not see", NULL);
    fake_file(&p.host, "/lib/modules/6.1.0-18-amd64/kernel/fs/overlayfs/overlay.ko.xz", "");
    CHECK_SAYS(&p, check_overlayfs, DOCTOR_GOOD, "module", NULL);
}

static void low_inotify_limits_are_told_with_the_sysctl(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_inotify, DOCTOR_GOOD, "128 instances, 65536 watches", NULL);
    fake_file(&p.host, "/proc/sys/fs/inotify/max_user_watches", "8191\n");
    CHECK_SAYS(&p, check_inotify, DOCTOR_BAD, "max_user_watches is 8191",
               "sysctl -w fs.inotify.max_user_watches=65536");
    fake_file(&p.host, "/proc/sys/fs/inotify/max_user_instances", "64\n");
    CHECK_SAYS(&p, check_inotify, DOCTOR_BAD, "max_user_instances is 64",
               "sysctl -w fs.inotify.max_user_instances=1024");
    patient_remove(&p, "/proc/sys/fs/inotify/max_user_instances");
    CHECK_SAYS(&p, check_inotify, DOCTOR_SKIP, "does not tell", NULL);
}

static void user_namespaces_matter_without_root(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/proc/sys/user/max_user_namespaces", "0\n");
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_SKIP, "not needed by root", NULL);
    p.in.facts.uid = 1000;
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_BAD, "user.max_user_namespaces is 0",
               "sysctl -w user.max_user_namespaces=65536");
    p.in.containment = "plain";
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_SKIP, "ordinary processes", NULL);
    p.in.containment = "rootless";
    fake_file(&p.host, "/proc/sys/user/max_user_namespaces", "96343\n");
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_GOOD, "allowed", NULL);
    patient_remove(&p, "/proc/self/ns/user");
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_BAD, "has no user namespaces", "CONFIG_USER_NS");
}

static void the_switches_of_debian_and_ubuntu_are_named(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    p.in.facts.uid = 1000;
    fake_file(&p.host, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_BAD, "apparmor_restrict_unprivileged_userns is 1",
               "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
    fake_file(&p.host, "/proc/sys/kernel/unprivileged_userns_clone", "0\n");
    CHECK_SAYS(&p, check_user_namespaces, DOCTOR_BAD, "unprivileged_userns_clone is 0",
               "sysctl -w kernel.unprivileged_userns_clone=1");
}

static const struct test tests[] = {
    { "processes that everybody can see are told", processes_that_all_can_see_are_told },
    { "an old kernel is refused", an_old_kernel_is_refused },
    { "a clock that nobody keeps is told", a_clock_that_nobody_keeps_is_told },
    { "a clock before the store or the build is told",
      a_clock_before_the_store_or_the_build_is_told },
    { "overlayfs may be built in or a module", overlayfs_may_be_built_in_or_a_module },
    { "low inotify limits are told with the sysctl", low_inotify_limits_are_told_with_the_sysctl },
    { "user namespaces matter without root", user_namespaces_matter_without_root },
    { "the switches of Debian and Ubuntu are named", the_switches_of_debian_and_ubuntu_are_named },
};
TEST_CASES(tests)
