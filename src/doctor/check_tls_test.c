#include "doctor/checks.h"
#include "doctor/look.h"
#include "tests/fakes/doctor.h"

static bool make_pair(const struct patient *p, const char *name)
{
    char cert[512], key[512];
    AUTO(buf_free) struct buf out = BUF(0);
    const char *args[] = { "req",   "-x509",   "-newkey", "ed25519", "-nodes", "-subj",
                           "/CN=x", "-keyout", key,       "-out",    cert,     NULL };
    snprintf(cert, sizeof cert, "%s/%s.pem", p->host.root, name);
    snprintf(key, sizeof key, "%s/%s.key", p->host.root, name);
    return look_output("/usr/bin/openssl", args, &out) && chmod(key, 0600) == 0;
}

/* With the real openssl, and a pair that it made. */
static void site_init(struct patient *p)
{
    char full[512];
    if (access("/usr/bin/openssl", X_OK) < 0)
        SKIP("the program openssl is not here");
    patient_init(p);
    snprintf(full, sizeof full, "%s/usr/bin/openssl", p->host.root);
    CHECK(symlink("/usr/bin/openssl", full) == 0);
    CHECK(make_pair(p, "a"));
    p->in.tls_cert = "/a.pem";
    p->in.tls_key = "/a.key";
}

static void without_tls_nothing_is_looked_at(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_tls, DOCTOR_SKIP, "no TLS", NULL);
}

static void a_pair_is_fine_and_another_key_is_not(void)
{
    AUTO(patient_clear) struct patient p;
    site_init(&p);
    CHECK_SAYS(&p, check_tls, DOCTOR_GOOD, "valid until", NULL);
    CHECK(make_pair(&p, "b"));
    p.in.tls_key = "/b.key";
    CHECK_SAYS(&p, check_tls, DOCTOR_BAD, "is not that of the certificate", "made together");
}

static void files_that_are_not_what_they_should_be_are_told(void)
{
    AUTO(patient_clear) struct patient p;
    site_init(&p);
    p.in.tls_cert = "/missing.pem";
    CHECK_SAYS(&p, check_tls, DOCTOR_BAD, "/missing.pem cannot be read", "tls_cert");
    p.in.tls_cert = "/proc/meminfo";
    CHECK_SAYS(&p, check_tls, DOCTOR_BAD, "not a certificate", "fullchain.pem");
    p.in.tls_cert = "/a.pem";
    fake_file(&p.host, "/rubbish", "rubbish");
    char full[512];
    snprintf(full, sizeof full, "%s/rubbish", p.host.root);
    CHECK(chmod(full, 0600) == 0);
    p.in.tls_key = "/rubbish";
    CHECK_SAYS(&p, check_tls, DOCTOR_BAD, "not a private key", "privkey.pem");
    CHECK(chmod(full, 0644) == 0);
    CHECK_SAYS(&p, check_tls, DOCTOR_BAD, "everybody may read", "chmod 0600");
}

/* A program in its place says what openssl would about a certificate that has ended. */
static void a_certificate_that_has_ended_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/c.pem", "");
    fake_file(&p.host, "/c.key", "");
    char full[512];
    snprintf(full, sizeof full, "%s/c.key", p.host.root);
    CHECK(chmod(full, 0600) == 0);
    p.in.tls_cert = "/c.pem";
    p.in.tls_key = "/c.key";
    patient_program(&p, "/usr/bin/openssl",
                    "#!/bin/sh\ncase \"$*\" in *checkend*) exit 1;;\n"
                    "*enddate*) echo 'notAfter=Mar  1 12:00:00 2020 GMT';; *) echo key;; esac\n");
    CHECK_SAYS(&p, check_tls, DOCTOR_BAD, "ended Mar  1 12:00:00 2020 GMT", "renew");
}

static void without_openssl_only_the_files_are_looked_at(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    fake_file(&p.host, "/c.pem", "");
    fake_file(&p.host, "/c.key", "");
    char full[512];
    snprintf(full, sizeof full, "%s/c.key", p.host.root);
    CHECK(chmod(full, 0600) == 0);
    p.in.tls_cert = "/c.pem";
    p.in.tls_key = "/c.key";
    CHECK_SAYS(&p, check_tls, DOCTOR_SKIP, "openssl only", "apt install openssl");
}

static const struct test tests[] = {
    { "without TLS nothing is looked at", without_tls_nothing_is_looked_at },
    { "a pair is fine and another key is not", a_pair_is_fine_and_another_key_is_not },
    { "files that are not what they should be are told",
      files_that_are_not_what_they_should_be_are_told },
    { "a certificate that has ended is told", a_certificate_that_has_ended_is_told },
    { "without openssl only the files are looked at",
      without_openssl_only_the_files_are_looked_at },
};
TEST_CASES(tests)
