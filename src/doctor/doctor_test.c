#include "doctor/doctor.h"

#include "tests/fakes/doctor.h"

static void a_machine_that_is_well_has_nothing_to_fix(void)
{
    AUTO(patient_clear) struct patient p;
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    patient_init(&p);
    p.in.facts.uid = geteuid();
    size_t bad = doctor_run(&p.in, r);
    for (size_t i = 0; i < doctor_checks_n; i++)
        if (r[i].verdict == DOCTOR_BAD)
            CHECK_STR(r[i].found, doctor_checks[i].name);
    CHECK_INT(bad, 0);
}

static void what_is_bad_is_counted_and_has_a_fix(void)
{
    AUTO(patient_clear) struct patient p;
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    patient_init(&p);
    p.in.facts.uid = geteuid();
    patient_remove(&p, "/usr/bin/crun");
    p.in.facts.disk.free_bytes = 1;
    CHECK_INT(doctor_run(&p.in, r), 2);
    /* Nothing at all is here: whatever is then bad must say the way out. */
    struct doctor_in none = p.in;
    none.root = "/no-such-folder";
    doctor_look(&none);
    CHECK(doctor_run(&none, r) >= 5);
    for (size_t i = 0; i < doctor_checks_n; i++)
        CHECK(r[i].found[0] && (r[i].verdict != DOCTOR_BAD || r[i].fix[0]));
}

static void the_real_machine_can_be_looked_at(void)
{
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    struct doctor_in in = { .root = "",
                            .path = "/usr/bin",
                            .program = "/proc/self/exe",
                            .state = "/var/lib/nightshift",
                            .run = "/run/nightshift",
                            .libexec = "/usr/libexec/nightshift",
                            .listen = "127.0.0.1:7433",
                            .containment = "auto" };
    doctor_look(&in);
    CHECK(in.facts.disk.known && in.facts.disk.bytes > in.facts.disk.free_bytes);
    CHECK(in.facts.machine.kernel[0] && in.facts.now_ms > 0);
    doctor_run(&in, r);
    for (size_t i = 0; i < doctor_checks_n; i++)
        CHECK(r[i].found[0] && (r[i].verdict != DOCTOR_BAD || r[i].fix[0]));
}

static void json_has_the_three_verdicts(void)
{
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    AUTO(buf_free) struct buf b = BUF(64u << 10);
    struct json_out w = { .b = &b };
    struct err e;
    r[0] = (struct doctor_result){ DOCTOR_GOOD, "fine", "" };
    r[1] = (struct doctor_result){ DOCTOR_BAD, "a \"word\"", "do this" };
    doctor_print_json(r, &w);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&b), &e);
    const struct json *checks = json_find(json_root(d), "checks"), *one = json_first(checks);
    bool ok = false;
    struct str s;
    CHECK_INT(json_len(checks), doctor_checks_n);
    CHECK(json_get_str(one, "name", 100, &s, &e) == 0 && str_is(s, doctor_checks[0].name));
    CHECK(json_get_bool(one, "ok", &ok, &e) == 0 && ok);
    one = json_next(checks, one);
    CHECK(json_get_bool(one, "ok", &ok, &e) == 0 && !ok);
    CHECK(json_get_str(one, "found", 100, &s, &e) == 0 && str_is(s, "a \"word\""));
    CHECK(json_get_str(one, "fix", 100, &s, &e) == 0 && str_is(s, "do this"));
    CHECK(json_is_null(json_find(json_next(checks, one), "ok")));
}

static void text_has_a_line_a_check_and_one_a_fix(void)
{
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    AUTO(buf_free) struct buf b = BUF(64u << 10);
    r[0] = (struct doctor_result){ DOCTOR_GOOD, "fine", "" };
    r[1] = (struct doctor_result){ DOCTOR_BAD, "broken", "do this" };
    doctor_print_text(r, &b);
    CHECK(strncmp(b.p, "✓ kernel: fine\n✗ clock: broken\n    fix: do this\n– nvidia-driver: \n",
                  60) == 0);
}

static void every_check_has_a_name_of_its_own_and_a_row(void)
{
    AUTO(buf_free) struct buf b = BUF(64u << 10);
    size_t lines = 0;
    doctor_print_reference(&b);
    for (size_t i = 0; i < b.n; i++)
        lines += b.p[i] == '\n';
    CHECK_INT(lines, doctor_checks_n + 2);
    for (size_t i = 0; i < doctor_checks_n; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(doctor_checks[i].name, doctor_checks[k].name) != 0);
}

static const struct test tests[] = {
    { "a machine that is well has nothing to fix", a_machine_that_is_well_has_nothing_to_fix },
    { "what is bad is counted and has a fix", what_is_bad_is_counted_and_has_a_fix },
    { "the real machine can be looked at", the_real_machine_can_be_looked_at },
    { "JSON has the three verdicts", json_has_the_three_verdicts },
    { "text has a line a check and one a fix", text_has_a_line_a_check_and_one_a_fix },
    { "every check has a name of its own and a row", every_check_has_a_name_of_its_own_and_a_row },
};
TEST_CASES(tests)
