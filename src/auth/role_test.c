#include "auth/role.h"

#include "tests/lib/test.h"

/* The table a second time, as letters: . nothing, o own, m machine, t tenant, a all; in the order of the roles. */
static const struct {
    enum access access;
    const char *reach, *scope;
} wanted[] = {
    { ACCESS_NOBODY, ".......", "" },          { ACCESS_PUBLIC, "aaaaaaa", "" },
    { ACCESS_SELF_LOOK, "ooooooo", "read" },   { ACCESS_SELF, "ooooooo", "manage" },
    { ACCESS_LOOK, "aaaaaaa", "read" },        { ACCESS_SEE, "..tttaa", "read" },
    { ACCESS_READ_LOG, "...ot.a", "read" },    { ACCESS_SUBMIT, "...tt.a", "jobs" },
    { ACCESS_STEER, "...otaa", "jobs" },       { ACCESS_ENTER, "...o..a", "jobs" },
    { ACCESS_MACHINE, ".m...aa", "manage" },   { ACCESS_OPERATE, ".....aa", "manage" },
    { ACCESS_REPORT, ".m...aa", "report" },    { ACCESS_INSPECT, ".....aa", "read" },
    { ACCESS_PERSON, "oooooaa", "read" },      { ACCESS_LEAD, "....t.a", "manage" },
    { ACCESS_TOKENS_LOOK, "ooooooa", "read" }, { ACCESS_TOKENS, "ooooooa", "manage" },
    { ACCESS_PASSWORD, "ooooooa", "manage" },  { ACCESS_ADMIN, "......a", "manage" },
    { ACCESS_ADMIN_LOOK, "......a", "read" },
};

static void each_access_reaches_as_far_as_is_meant(void)
{
    static const char letters[] = { [REACH_NO] = '.',
                                    [REACH_OWN] = 'o',
                                    [REACH_MACHINE] = 'm',
                                    [REACH_TENANT] = 't',
                                    [REACH_ALL] = 'a' };
    CHECK_INT(ARRAY_LEN(wanted), ACCESS_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        char got[ROLE_COUNT + 1] = "";
        unsigned bits = 0;
        enum token_scope s;
        for (int r = 0; r < ROLE_COUNT; r++)
            got[r] = letters[access_reach(wanted[i].access, (enum role)r)];
        CHECK_STR(got, wanted[i].reach);
        if (wanted[i].scope[0]) {
            CHECK(token_scope_parse(str_of(wanted[i].scope), &s));
            bits = 1u << s;
        }
        CHECK_INT(access_scope(wanted[i].access), bits);
    }
}

static void nobody_reaches_nothing_and_what_is_no_access_either(void)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        CHECK(access_reach(ACCESS_NOBODY, (enum role)r) == REACH_NO);
        CHECK(access_reach(ACCESS_COUNT, (enum role)r) == REACH_NO);
    }
    for (int a = 0; a < ACCESS_COUNT; a++)
        CHECK(access_reach((enum access)a, ROLE_COUNT) == REACH_NO);
    CHECK_INT(access_scope(ACCESS_COUNT), TOKEN_EVERYTHING);
    CHECK_INT(ACCESS_NOBODY, 0); /* what forgets to say who may do it is closed */
}

static void an_administrator_reaches_whatever_somebody_reaches(void)
{
    for (int a = 0; a < ACCESS_COUNT; a++)
        for (int r = 0; r < ROLE_COUNT; r++)
            CHECK(access_reach((enum access)a, (enum role)r) == REACH_NO ||
                  access_reach((enum access)a, ROLE_ADMIN) != REACH_NO);
}

static void a_role_is_held_where_it_may_be(void)
{
    static const struct {
        const char *name;
        unsigned where;
    } rows[] = { { "none", 0 },
                 { "owner", ROLE_OF_MACHINE },
                 { "viewer", ROLE_ON_SITE | ROLE_IN_TENANT },
                 { "member", ROLE_IN_TENANT },
                 { "lead", ROLE_IN_TENANT },
                 { "operator", ROLE_ON_SITE },
                 { "admin", ROLE_ON_SITE } };
    CHECK_INT(ARRAY_LEN(rows), ROLE_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (unsigned where = 1; where <= ROLE_OF_MACHINE; where <<= 1) {
            enum role r;
            bool taken = role_parse(str_of(rows[i].name), where, &r);
            CHECK_INT(taken, (rows[i].where & where) != 0);
            if (taken)
                CHECK_STR(role_name(r), rows[i].name);
        }
}

static void every_word_has_its_meaning(void)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        CHECK(role_help((enum role)r)[0]);
    for (int k = 0; k < REACH_COUNT; k++)
        CHECK(reach_help((enum reach)k)[0] && (k == REACH_NO || reach_name((enum reach)k)[0]));
    for (int s = 0; s < TOKEN_SCOPE_COUNT; s++)
        CHECK(token_scope_help((enum token_scope)s)[0]);
    CHECK_STR(role_name(ROLE_COUNT), "?");
    CHECK_STR(reach_help(REACH_COUNT), "?");
}

static const struct test tests[] = {
    { "each access reaches as far as is meant", each_access_reaches_as_far_as_is_meant },
    { "nobody reaches nothing, and what is no access either",
      nobody_reaches_nothing_and_what_is_no_access_either },
    { "an administrator reaches whatever somebody reaches",
      an_administrator_reaches_whatever_somebody_reaches },
    { "a role is held where it may be", a_role_is_held_where_it_may_be },
    { "every word has its meaning", every_word_has_its_meaning },
};
TEST_CASES(tests)
