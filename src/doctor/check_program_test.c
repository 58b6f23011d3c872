#include "doctor/checks.h"
#include "tests/fakes/doctor.h"

static void crun_must_be_here_and_new_enough(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_crun, DOCTOR_GOOD, "1.21, ", NULL);
    patient_program(&p, "/usr/bin/crun", "#!/bin/sh\necho crun version 1.8.1\n");
    CHECK_SAYS(&p, check_crun, DOCTOR_GOOD, "1.8.1", NULL);
    patient_program(&p, "/usr/bin/crun", "#!/bin/sh\necho crun version 0.17\n");
    CHECK_SAYS(&p, check_crun, DOCTOR_BAD, "0.17 is older than 1.8", "Ubuntu 24.04");
    patient_program(&p, "/usr/local/bin/crun", "#!/bin/sh\necho crun version 1.14\n");
    CHECK_SAYS(&p, check_crun, DOCTOR_GOOD, "/usr/local/bin/crun", NULL);
    patient_remove(&p, "/usr/local/bin/crun");
    patient_program(&p, "/usr/bin/crun", "#!/bin/sh\nexit 127\n");
    CHECK_SAYS(&p, check_crun, DOCTOR_BAD, "does not answer", "--reinstall crun");
    patient_remove(&p, "/usr/bin/crun");
    CHECK_SAYS(&p, check_crun, DOCTOR_BAD, "missing", "apt install crun");
    p.in.containment = "plain";
    CHECK_SAYS(&p, check_crun, DOCTOR_SKIP, "ordinary processes", NULL);
}

static void a_program_that_hangs_holds_nobody(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    patient_program(&p, "/usr/bin/crun", "#!/bin/sh\nexec sleep 600\n");
    CHECK_SAYS(&p, check_crun, DOCTOR_BAD, "does not answer", "--reinstall crun");
}

static void criu_is_wanted_but_not_needed(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_criu, DOCTOR_GOOD, "4.1.1", NULL);
    patient_program(&p, "/usr/bin/crun", "#!/bin/sh\necho crun version 1.8.1\n");
    CHECK_SAYS(&p, check_criu, DOCTOR_SKIP, "built without it", "+CRIU");
    patient_program(&p, "/usr/bin/criu", "#!/bin/sh\necho Version: 3.17.1\n");
    CHECK_SAYS(&p, check_criu, DOCTOR_SKIP, "3.17.1 is older than 4.1", "Debian 13");
    patient_program(&p, "/usr/bin/criu", "#!/bin/sh\nkill -9 $$\n");
    CHECK_SAYS(&p, check_criu, DOCTOR_SKIP, "does not answer", "--reinstall criu");
    patient_remove(&p, "/usr/bin/criu");
    CHECK_SAYS(&p, check_criu, DOCTOR_SKIP, "cannot be saved", "apt install criu");
}

static void without_image_programs_the_host_is_left(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_images, DOCTOR_GOOD, "skopeo and umoci", NULL);
    patient_remove(&p, "/usr/bin/umoci");
    CHECK_SAYS(&p, check_images, DOCTOR_SKIP, "missing: umoci;", "apt install skopeo umoci");
    patient_remove(&p, "/usr/bin/skopeo");
    CHECK_SAYS(&p, check_images, DOCTOR_SKIP, "missing: skopeo, umoci;", "apt install");
}

static void networks_of_tenants_need_nft_and_plugins(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_network, DOCTOR_GOOD, "nft and ip", NULL);
    p.in.networks = "no";
    CHECK_SAYS(&p, check_network, DOCTOR_BAD, "could not make networks", "net.missing");
    p.in.networks = "lost";
    CHECK_SAYS(&p, check_network, DOCTOR_BAD, "cannot be loaded again", "net.rules_lost");
    p.in.networks = "yes 3";
    CHECK_SAYS(&p, check_network, DOCTOR_GOOD, "took it away 3 times", "flush ruleset");
    p.in.networks = "yes";
    CHECK_SAYS(&p, check_network, DOCTOR_GOOD, "nft and ip", NULL);
    CHECK_SAYS(&p, check_cni_plugins, DOCTOR_GOOD, "bridge and host-local", NULL);
    patient_remove(&p, "/usr/lib/cni/host-local");
    CHECK_SAYS(&p, check_cni_plugins, DOCTOR_BAD, "missing: host-local;",
               "apt install containernetworking-plugins");
    fake_file(&p.host, "/opt/cni/bin/host-local", "");
    CHECK_SAYS(&p, check_cni_plugins, DOCTOR_GOOD, "host-local", NULL);
    patient_remove(&p, "/usr/lib/cni/bridge");
    patient_remove(&p, "/opt/cni/bin/host-local");
    CHECK_SAYS(&p, check_cni_plugins, DOCTOR_BAD, "missing: bridge, host-local;", "--network none");
    patient_remove(&p, "/usr/sbin/ip");
    CHECK_SAYS(&p, check_network, DOCTOR_SKIP, "ip is missing", "apt install iproute2");
    patient_remove(&p, "/usr/sbin/nft");
    CHECK_SAYS(&p, check_network, DOCTOR_BAD, "nft is missing", "apt install nftables");
    p.in.network = false;
    CHECK_SAYS(&p, check_network, DOCTOR_SKIP, "network: no", NULL);
    CHECK_SAYS(&p, check_cni_plugins, DOCTOR_SKIP, "network: no", NULL);
    p.in.network = true;
    p.in.facts.uid = 1000;
    CHECK_SAYS(&p, check_cni_plugins, DOCTOR_SKIP, "without root", NULL);
}

static void scratch_is_bounded_by_a_file_system(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_scratch, DOCTOR_GOOD, "mkfs.ext4", NULL);
    patient_remove(&p, "/usr/sbin/mkfs.ext4");
    CHECK_SAYS(&p, check_scratch, DOCTOR_SKIP, "missing", "apt install e2fsprogs");
    p.in.facts.uid = 1000;
    CHECK_SAYS(&p, check_scratch, DOCTOR_SKIP, "without root", NULL);
}

static void our_own_programs_must_be_here(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_own_programs, DOCTOR_GOOD, "/lib/ns", NULL);
    patient_remove(&p, "/lib/ns/nightshift-init");
    CHECK_SAYS(&p, check_own_programs, DOCTOR_BAD, "no /lib/ns/nightshift-init", "--libexec");
}

static const struct test tests[] = {
    { "crun must be here and new enough", crun_must_be_here_and_new_enough },
    { "a program that hangs holds nobody", a_program_that_hangs_holds_nobody },
    { "criu is wanted but not needed", criu_is_wanted_but_not_needed },
    { "without image programs the host is left", without_image_programs_the_host_is_left },
    { "networks of tenants need nft and plugins", networks_of_tenants_need_nft_and_plugins },
    { "scratch is bounded by a file system", scratch_is_bounded_by_a_file_system },
    { "our own programs must be here", our_own_programs_must_be_here },
};
TEST_CASES(tests)
