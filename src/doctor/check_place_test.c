#include "doctor/checks.h"
#include "doctor/look.h"
#include "tests/fakes/doctor.h"

static void set_mode(const struct patient *p, const char *path, mode_t mode)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", p->host.root, path);
    CHECK(chmod(full, mode) == 0);
}

static void folders_are_ours_and_nobody_else_writes(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    p.in.facts.uid = geteuid();
    CHECK_SAYS(&p, check_state_folder, DOCTOR_GOOD, "/state, mode 0755", NULL);
    CHECK_SAYS(&p, check_run_folder, DOCTOR_GOOD, "/run/ns, mode 0755", NULL);
    set_mode(&p, "/state", 01777);
    CHECK_SAYS(&p, check_state_folder, DOCTOR_BAD, "mode 1777: anybody", "chmod o-w /state");
    set_mode(&p, "/state", 0771);
    CHECK_SAYS(&p, check_state_folder, DOCTOR_BAD, "mode 0771: its group", "chmod +t /state");
    set_mode(&p, "/state", 01771); /* as the package makes it */
    CHECK_SAYS(&p, check_state_folder, DOCTOR_GOOD, "mode 1771", NULL);
    set_mode(&p, "/run/ns", 0700);
    p.in.keeper_external = true; /* many users */
    CHECK_SAYS(&p, check_run_folder, DOCTOR_BAD, "cannot pass through", "chmod o+x /run/ns");
}

static void folders_of_somebody_else_are_told(void)
{
    AUTO(patient_clear) struct patient p;
    char full[512];
    if (geteuid() != 0)
        SKIP("only root gives a folder away");
    patient_init(&p);
    snprintf(full, sizeof full, "%s/state", p.host.root);
    CHECK(chown(full, 65534, 65534) == 0);
    CHECK_SAYS(&p, check_state_folder, DOCTOR_BAD, "belongs to uid 65534", "chown 0 /state");
}

static void folders_that_are_missing_can_be_made_or_not(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    p.in.facts.uid = geteuid();
    p.in.state = "/new/deep/state";
    CHECK_SAYS(&p, check_state_folder, DOCTOR_SKIP, "nightshiftd makes it", NULL);
    p.in.state = "/lib/ns/nightshift-init"; /* a file */
    CHECK_SAYS(&p, check_state_folder, DOCTOR_BAD, "no folder", "--state DIR");
    p.in.run = "/lib/ns/nightshift-init/run";
    CHECK_SAYS(&p, check_run_folder, DOCTOR_BAD, "no folder", "--run DIR");
}

static void a_folder_that_may_not_be_made_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    if (geteuid() == 0)
        SKIP("root may make a folder anywhere");
    patient_init(&p);
    p.in.facts.uid = geteuid();
    set_mode(&p, "/lib", 0555);
    p.in.run = "/lib/new";
    CHECK_SAYS(&p, check_run_folder, DOCTOR_BAD, "may not be made", "--run DIR");
}

static void a_full_disk_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    struct doctor_disk *d = &p.in.facts.disk;
    CHECK_SAYS(&p, check_disk, DOCTOR_GOOD, "50.0 GiB (50 %) are free", NULL);
    d->free_bytes = 4ull << 30;
    CHECK_SAYS(&p, check_disk, DOCTOR_BAD, "4.0 GiB (4 %)", "du -xh");
    d->bytes = 2ull << 30;
    d->free_bytes = 1000ull << 20; /* half of a small one */
    CHECK_SAYS(&p, check_disk, DOCTOR_BAD, "1.0 GiB (48 %)", "du -xh");
    *d = (struct doctor_disk){ 100ull << 30, 50ull << 30, 1000, 49, true };
    CHECK_SAYS(&p, check_disk, DOCTOR_BAD, "only 4 % of the inodes", "--inodes");
    d->files = d->free_files = 0; /* btrfs counts none */
    CHECK_SAYS(&p, check_disk, DOCTOR_GOOD, "50.0 GiB", NULL);
    d->known = false;
    CHECK_SAYS(&p, check_disk, DOCTOR_SKIP, "does not tell", NULL);
}

static void write_store(const struct patient *p, const char *magic, const unsigned char tail[12])
{
    char full[512], header[100] = "";
    struct err e;
    snprintf(header, sizeof header, "%s", magic);
    memcpy(header + 60, tail, 12);
    snprintf(full, sizeof full, "%s/state/nightshift.db", p->host.root);
    CHECK(file_write(full, (struct str){ header, sizeof header }, &e) == 0);
}

static void a_store_is_ours_and_of_a_format_we_know(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_store, DOCTOR_SKIP, "none yet", NULL);
    fake_file(&p.host, "/state/nightshift.db", "");
    CHECK_SAYS(&p, check_store, DOCTOR_GOOD, "new", NULL);
    write_store(&p, "SQLite format 3", (unsigned char[12]){ 0 });
    CHECK_SAYS(&p, check_store, DOCTOR_GOOD, "new", NULL);
    write_store(&p, "SQLite format 3",
                (unsigned char[12]){ 0, 0, 0, 2, 0, 0, 0, 0, 'N', 'S', 'H', 'T' });
    CHECK_SAYS(&p, check_store, DOCTOR_GOOD, "format 2 of 2", NULL);
    write_store(&p, "SQLite format 3",
                (unsigned char[12]){ 0, 0, 0, 3, 0, 0, 0, 0, 'N', 'S', 'H', 'T' });
    CHECK_SAYS(&p, check_store, DOCTOR_BAD, "its format is 3", "newer nightshiftd");
    write_store(&p, "SQLite format 3",
                (unsigned char[12]){ 0, 0, 0, 2, 0, 0, 0, 0, 'J', 'U', 'N', 'K' });
    CHECK_SAYS(&p, check_store, DOCTOR_BAD, "another program", "--state DIR");
    p.in.store_damage = "row 5 of table run is not as it was written";
    CHECK_SAYS(&p, check_store, DOCTOR_BAD, "row 5 of table run", "nightshift restore");
    p.in.store_damage = "";
    fake_file(&p.host, "/state/nightshift.db", "not a database");
    CHECK_SAYS(&p, check_store, DOCTOR_BAD, "damaged", "backup");
    patient_remove(&p, "/state/nightshift.db");
    fake_file(&p.host, "/state/nightshift.db/x", ""); /* a folder */
    CHECK_SAYS(&p, check_store, DOCTOR_BAD, "cannot be read", "chown");
}

static void an_audit_that_was_changed_is_told(void)
{
    AUTO(patient_clear) struct patient p;
    patient_init(&p);
    CHECK_SAYS(&p, check_audit, DOCTOR_SKIP, "a running daemon", NULL);
    p.in.audit = "ok 12";
    CHECK_SAYS(&p, check_audit, DOCTOR_GOOD, "12 rows", NULL);
    p.in.audit = "row 7: it is missing";
    CHECK_SAYS(&p, check_audit, DOCTOR_BAD, "row 7", "nightshift audit verify");
}

static void nearest_ends_for_every_path(void)
{
    struct doctor_in in = { .root = "" };
    char out[LOOK_PATH];
    look_nearest(&in, "/no-such-thing/at/all", out);
    CHECK_STR(out, "/");
    look_nearest(&in, "no-such-thing/at/all", out);
    CHECK_STR(out, ".");
    look_nearest(&in, "no-such-thing", out);
    CHECK_STR(out, ".");
    look_nearest(&in, "/tmp", out);
    CHECK_STR(out, "/tmp");
}

static const struct test tests[] = {
    { "folders are ours and nobody else writes", folders_are_ours_and_nobody_else_writes },
    { "folders of somebody else are told", folders_of_somebody_else_are_told },
    { "folders that are missing can be made or not", folders_that_are_missing_can_be_made_or_not },
    { "a folder that may not be made is told", a_folder_that_may_not_be_made_is_told },
    { "a full disk is told", a_full_disk_is_told },
    { "a store is ours and of a format we know", a_store_is_ours_and_of_a_format_we_know },
    { "an audit that was changed is told", an_audit_that_was_changed_is_told },
    { "nearest ends for every path", nearest_ends_for_every_path },
};
TEST_CASES(tests)
