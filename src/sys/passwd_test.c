#include "sys/passwd.h"

#include "tests/lib/no_files.h"

static void an_account_is_found_by_number_and_by_name(void)
{
    struct passwd_account a, b;
    struct err e;
    CHECK_INT(passwd_by_uid(0, &a, &e), 1);
    CHECK_STR(a.name, "root");
    CHECK_INT(passwd_by_name("root", &b, &e), 1);
    CHECK_INT(b.uid, 0);
    CHECK_INT(b.gid, 0);
    CHECK_STR(b.home, a.home);
}

static void who_is_nowhere_is_none(void)
{
    struct passwd_account a = { .uid = 7 };
    struct err e;
    CHECK_INT(passwd_by_uid(2123456789, &a, &e), 0);
    CHECK_INT(passwd_by_name("nobody-has-this-name", &a, &e), 0);
    CHECK_INT(a.uid, 7);
}

/* With no descriptor left the list of accounts cannot be opened. */
static void what_cannot_be_asked_is_a_failure_and_not_none(void)
{
    struct passwd_account a = { .uid = 7 };
    struct err e;
    CHECK_INT(passwd_by_uid(1, &a, &e), 1); /* what answers is loaded */
    a.uid = 7;
    struct rlimit before = no_files_begin();
    int by_uid = passwd_by_uid(1, &a, &e), by_name = passwd_by_name("daemon", &a, &e);
    no_files_end(before);
    CHECK_INT(by_uid, -1);
    CHECK_INT(by_name, -1);
    CHECK_INT(e.code, ERR_UNAVAILABLE);
    CHECK_STR(e.msg, "this machine's accounts cannot be looked up: Too many open files");
    CHECK_INT(a.uid, 7);
}

static const struct test tests[] = {
    { "an account is found by number and by name", an_account_is_found_by_number_and_by_name },
    { "who is nowhere is none", who_is_nowhere_is_none },
    { "what cannot be asked is a failure, and not none",
      what_cannot_be_asked_is_a_failure_and_not_none },
};
TEST_CASES(tests)
