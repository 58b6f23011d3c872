#include "doctor/checks.h"
#include "doctor/look.h"
#include "tests/fakes/doctor.h"

static void a_kubeconfig_is_told_or_what_is_wrong_with_it(void)
{
    AUTO(patient_clear) struct patient p;
    struct doctor_kube k = { .source = "context 'lab'", .server = "https://a:1" };
    patient_init(&p);
    p.in.kube = &k;
    CHECK_SAYS(&p, check_kube_config, DOCTOR_GOOD, "https://a:1, context 'lab'", NULL);
    k.insecure = true;
    CHECK_SAYS(&p, check_kube_config, DOCTOR_BAD, "whoever answers", "certificate-authority");
    err_set(&k.trouble, ERR_NOT_FOUND, "no kubeconfig");
    CHECK_SAYS(&p, check_kube_config, DOCTOR_BAD, "no kubeconfig", "kube_config");
    err_hint(&k.trouble, "name one");
    CHECK_SAYS(&p, check_kube_config, DOCTOR_BAD, "no kubeconfig", "name one");
}

static void the_server_is_told_by_the_daemon_that_asks(void)
{
    AUTO(patient_clear) struct patient p;
    struct doctor_kube k = { .server = "https://a:1" };
    patient_init(&p);
    p.in.kube = &k;
    CHECK_SAYS(&p, check_kube_server, DOCTOR_SKIP, "nightshift doctor", NULL);
    p.in.engine_trouble = "the engine has not answered yet";
    CHECK_SAYS(&p, check_kube_server, DOCTOR_BAD, "not answered", "lease");
    p.in.engine_trouble = "";
    CHECK_SAYS(&p, check_kube_server, DOCTOR_GOOD, "follows", NULL);
}

static void what_only_machines_that_run_jobs_need_is_left_out(void)
{
    AUTO(patient_clear) struct patient p;
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    struct doctor_kube k = { .source = "context 'lab'", .server = "https://a:1" };
    patient_init(&p);
    p.in.facts.uid = geteuid();
    patient_remove(&p, "/usr/bin/crun");
    CHECK_INT(doctor_run(&p.in, r), 1);
    p.in.kube = &k;
    CHECK_INT(doctor_run(&p.in, r), 0);
    for (size_t i = 0; i < doctor_checks_n; i++)
        if (strcmp(doctor_checks[i].name, "crun") == 0)
            CHECK(r[i].verdict == DOCTOR_SKIP && strstr(r[i].found, "Kubernetes"));
}

static const struct test tests[] = {
    { "a kubeconfig is told, or what is wrong with it",
      a_kubeconfig_is_told_or_what_is_wrong_with_it },
    { "the server is told by the daemon that asks", the_server_is_told_by_the_daemon_that_asks },
    { "what only machines that run jobs need is left out",
      what_only_machines_that_run_jobs_need_is_left_out },
};
TEST_CASES(tests)
