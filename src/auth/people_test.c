#include "auth/people.h"

#include <stdio.h>

#include "tests/lib/test.h"

static void put(struct people *p, const char *tenant, const char *user, enum role role, bool file)
{
    people_set_place(
        p, &(struct place){
               .tenant = str_of(tenant), .user = str_of(user), .role = role, .of_settings = file });
}

static enum role in(const struct people *p, const char *user, const char *tenant)
{
    return people_role_in(p, str_of(user), str_of(tenant));
}

/* physics over vision and course, speech beside it, and a default */
static struct people *lab(void)
{
    struct people *p = people_new();
    const struct group_role course[] = { { STR("students"), ROLE_MEMBER },
                                         { STR("tutors"), ROLE_LEAD } };
    people_set_tenant(p, STR("physics"), STR(""), NULL, 0);
    people_set_tenant(p, STR("vision"), STR("physics"), NULL, 0);
    people_set_tenant(p, STR("course"), STR("physics"), course, ARRAY_LEN(course));
    people_set_tenant(p, STR("speech"), STR(""), NULL, 0);
    people_set_tenant(p, STR("default"), STR(""), NULL, 0);
    people_set_default_tenant(p, STR("default"));
    return p;
}

static void whoever_is_in_no_tenant_is_in_the_default_one(void)
{
    AUTO(people_free_p) struct people *p = lab();
    AUTO(arena_free) struct arena a = { 0 };
    size_t n;
    put(p, "vision", "ana", ROLE_MEMBER, true);
    put(p, "speech", "ana", ROLE_MEMBER, false);
    const struct place *at = people_places(p, STR("ana"), &a, &n);
    CHECK(n == 2 && str_is(at[0].tenant, "vision") && str_is(at[1].tenant, "speech"));
    CHECK(in(p, "ana", "default") == ROLE_NONE && in(p, "ben", "default") == ROLE_MEMBER);
    CHECK(in(p, "ben", "vision") == ROLE_NONE && in(p, "ana", "nowhere") == ROLE_NONE);
    at = people_places(p, STR("ben"), &a, &n);
    CHECK(n == 1 && str_is(at[0].tenant, "default") && at[0].role == ROLE_MEMBER);
}

static void a_lead_takes_nobody_out_of_the_default_tenant(void)
{
    AUTO(people_free_p) struct people *p = lab();
    AUTO(arena_free) struct arena a = { 0 };
    struct place by_lead = { .tenant = STR("speech"), .user = STR("ben"), .role = ROLE_MEMBER };
    size_t n;
    by_lead.by_lead = true;
    people_set_place(p, &by_lead);
    const struct place *at = people_places(p, STR("ben"), &a, &n);
    CHECK(n == 2 && str_is(at[0].tenant, "speech") && str_is(at[1].tenant, "default"));
    CHECK(in(p, "ben", "default") == ROLE_MEMBER && in(p, "ben", "speech") == ROLE_MEMBER);
    CHECK(!people_given(p, STR("ben"), STR("speech")));
    /* What the site gives is theirs as before, whatever a lead says of it later. */
    put(p, "speech", "ben", ROLE_MEMBER, false);
    people_set_place(p, &by_lead);
    CHECK(people_given(p, STR("ben"), STR("speech")));
    CHECK(in(p, "ben", "default") == ROLE_NONE && in(p, "ben", "speech") == ROLE_MEMBER);
    at = people_places(p, STR("ben"), &a, &n);
    CHECK(n == 1 && str_is(at[0].tenant, "speech") && !at[0].from_above);
}

static void leads_and_viewers_have_their_role_below_too_members_have_not(void)
{
    AUTO(people_free_p) struct people *p = lab();
    AUTO(arena_free) struct arena a = { 0 };
    size_t n;
    put(p, "physics", "lea", ROLE_LEAD, false);
    put(p, "physics", "vic", ROLE_VIEWER, false);
    put(p, "physics", "mia", ROLE_MEMBER, false);
    CHECK(in(p, "lea", "vision") == ROLE_LEAD && in(p, "lea", "speech") == ROLE_NONE);
    CHECK(in(p, "vic", "course") == ROLE_VIEWER && in(p, "mia", "course") == ROLE_NONE);
    put(p, "vision", "vic", ROLE_MEMBER, false);
    CHECK(in(p, "vic", "vision") == ROLE_MEMBER);
    const struct place *at = people_places(p, STR("lea"), &a, &n);
    CHECK(n == 3 && str_is(at[0].tenant, "physics") && str_is(at[1].tenant, "vision"));
}

static void groups_of_the_provider_give_places(void)
{
    AUTO(people_free_p) struct people *p = lab();
    struct person *sam = people_make(p, STR("sam"));
    const struct str both[] = { STR("students"), STR("tutors") };
    CHECK(in(p, "sam", "course") == ROLE_NONE && in(p, "sam", "default") == ROLE_MEMBER);
    person_set_groups(sam, both, 1);
    CHECK(in(p, "sam", "course") == ROLE_MEMBER && in(p, "sam", "default") == ROLE_NONE);
    person_set_groups(sam, both, 2);
    CHECK(in(p, "sam", "course") == ROLE_LEAD);
    person_set_groups(sam, NULL, 0);
    CHECK(in(p, "sam", "course") == ROLE_NONE);
    const struct group_role site[] = { { STR("admins"), ROLE_ADMIN } };
    const struct str admins[] = { STR("admins") };
    people_set_site_groups(p, site, 1);
    CHECK(people_site_role(p, STR("sam")) == ROLE_NONE);
    person_set_groups(sam, admins, 1);
    CHECK(people_site_role(p, STR("sam")) == ROLE_ADMIN);
}

static void who_is_disabled_or_dropped_has_no_role_anywhere(void)
{
    AUTO(people_free_p) struct people *p = lab();
    AUTO(arena_free) struct arena a = { 0 };
    size_t n;
    put(p, "vision", "ana", ROLE_LEAD, false);
    people_set_owner(p, STR("desk1"), STR("ana"), true);
    people_make(p, STR("ana"))->role = ROLE_ADMIN;
    CHECK(people_owns(p, STR("ana"), STR("desk1")) && people_owns_some(p, STR("ana")));
    people_make(p, STR("ana"))->disabled = true;
    CHECK(people_site_role(p, STR("ana")) == ROLE_NONE && in(p, "ana", "vision") == ROLE_NONE);
    CHECK(!people_owns(p, STR("ana"), STR("desk1")) && !people_owns_some(p, STR("ana")));
    people_places(p, STR("ana"), &a, &n);
    CHECK(n == 0);
    CHECK(people_drop(p, STR("ana")) && !people_drop(p, STR("ana")));
    CHECK(!people_find(p, STR("ana")) && in(p, "ana", "vision") == ROLE_NONE);
    put(p, "vision", "ana", ROLE_MEMBER, false); /* another of that name */
    CHECK(in(p, "ana", "vision") == ROLE_MEMBER && !people_find(p, STR("ana"))->disabled);
}

static void what_the_file_says_and_what_people_say_are_kept_apart(void)
{
    AUTO(people_free_p) struct people *p = lab();
    struct place at;
    put(p, "vision", "ana", ROLE_MEMBER, true);
    put(p, "vision", "ana", ROLE_LEAD, false);
    CHECK(in(p, "ana", "vision") == ROLE_LEAD);
    put(p, "vision", "ana", ROLE_NONE, false);
    CHECK(in(p, "ana", "vision") == ROLE_MEMBER);
    CHECK(people_place_at(p, 0, &at) && at.of_settings && !people_place_at(p, 1, &at));
    CHECK(people_said(p, STR("ana"), STR("vision"), true) == ROLE_MEMBER);
    CHECK(people_said(p, STR("ana"), STR("vision"), false) == ROLE_NONE);
    CHECK(people_said(p, STR("nobody"), STR("vision"), true) == ROLE_NONE);
    CHECK(people_said(p, STR("ana"), STR("nowhere"), true) == ROLE_NONE);
    put(p, "nowhere", "ana", ROLE_LEAD, false); /* there is no such tenant: no such place */
    CHECK(!people_place_at(p, 1, &at));
    people_drop_tenant(p, STR("vision"));
    CHECK(in(p, "ana", "vision") == ROLE_NONE && !people_place_at(p, 0, &at));
}

/* Said in another order than they are numbered, changed and taken back: each place is found for itself. */
static void many_places_are_each_found(void)
{
    static const char *const tenants[] = { "vision", "speech" };
    enum {
        PEOPLE = 200
    };
    AUTO(people_free_p) struct people *p = lab();
    struct place at;
    char name[16];
    size_t n = 0;
    for (size_t i = 0; i < PEOPLE * 2; i++) {
        snprintf(name, sizeof name, "p%zu", i * 7 % PEOPLE);
        put(p, tenants[i / PEOPLE], name, i % 3 ? ROLE_MEMBER : ROLE_LEAD, i % 2 == 0);
    }
    for (size_t i = 0; i < PEOPLE * 2; i += 5) {
        snprintf(name, sizeof name, "p%zu", i * 7 % PEOPLE);
        put(p, tenants[i / PEOPLE], name, ROLE_NONE, i % 2 == 0);
    }
    for (size_t i = 0; i < PEOPLE * 2; i++) {
        enum role wanted = i % 5 == 0 ? ROLE_NONE : i % 3 ? ROLE_MEMBER : ROLE_LEAD;
        snprintf(name, sizeof name, "p%zu", i * 7 % PEOPLE);
        CHECK(people_said(p, str_of(name), str_of(tenants[i / PEOPLE]), i % 2 == 0) == wanted);
        CHECK(people_said(p, str_of(name), str_of(tenants[i / PEOPLE]), i % 2 != 0) == ROLE_NONE);
        CHECK(in(p, name, tenants[i / PEOPLE]) == wanted);
    }
    while (people_place_at(p, n, &at))
        n++;
    CHECK_INT((long)n, PEOPLE * 2 * 4 / 5);
}

/* What a list of everybody takes does not grow with people times tenants. */
static void a_list_of_places_takes_no_more_than_it_has(void)
{
    AUTO(people_free_p) struct people *p = lab();
    AUTO(arena_free) struct arena a = { .limit = 128u << 10 };
    char name[16];
    size_t n;
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "t%d", i);
        people_set_tenant(p, str_of(name), STR(""), NULL, 0);
    }
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "p%d", i);
        put(p, "vision", name, ROLE_MEMBER, false);
        const struct place *at = people_places(p, str_of(name), &a, &n);
        CHECK(n == 1 && str_is(at[0].tenant, "vision") && at[0].role == ROLE_MEMBER);
    }
}

static void a_person_is_written_and_read_again(void)
{
    AUTO(people_free_p) struct people *p = people_new(), *q = people_new();
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    const struct str groups[] = { STR("a \"b\""), STR("cn=x,dc=y") };
    struct err e;
    struct person *x = people_make(p, STR("ana"));
    x->kind = PERSON_OIDC;
    x->role = ROLE_OPERATOR;
    x->disabled = true;
    x->created_ms = 1;
    x->seen_ms = 2;
    x->void_ms = 3;
    person_set(&x->full_name, STR("Ana Böhm"));
    person_set(&x->subject, STR("https://idp|42"));
    person_set(&x->hash, STR("$argon2id$x"));
    person_set_groups(x, groups, 2);
    person_write(x, &b);
    CHECK(people_read_person(q, STR("ana"), buf_str(&b), &e) == 0);
    const struct person *y = people_of_subject(q, STR("https://idp|42"));
    CHECK(y && y->kept && y->kind == PERSON_OIDC && y->role == ROLE_OPERATOR && y->disabled);
    CHECK(y->created_ms == 1 && y->seen_ms == 2 && y->void_ms == 3 && y->groups == 2);
    CHECK_STR(y->full_name, "Ana Böhm");
    CHECK_STR(y->hash, "$argon2id$x");
    CHECK_STR(y->group[0], "a \"b\"");
    CHECK(people_read_person(q, STR("ben"), STR("{\"role\":\"king\"}"), &e) < 0);
}

static void names_are_checked(void)
{
    static const char *const good[] = { "ana", "a.b@uni-x.org", "uid-7", "_x", "A+1" };
    static const char *const bad[] = { "", ".a", "-a", "a b", "a/b", "a\n", "ä", "a'b" };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(person_check_name(str_of(good[i]), &e) == 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(person_check_name(str_of(bad[i]), &e) < 0 && e.hint[0]);
}

static const struct test tests[] = {
    { "whoever is in no tenant is in the default one",
      whoever_is_in_no_tenant_is_in_the_default_one },
    { "a lead takes nobody out of the default tenant",
      a_lead_takes_nobody_out_of_the_default_tenant },
    { "leads and viewers have their role below too, members have not",
      leads_and_viewers_have_their_role_below_too_members_have_not },
    { "groups of the provider give places", groups_of_the_provider_give_places },
    { "who is disabled or dropped has no role anywhere",
      who_is_disabled_or_dropped_has_no_role_anywhere },
    { "what the file says and what people say are kept apart",
      what_the_file_says_and_what_people_say_are_kept_apart },
    { "many places are each found", many_places_are_each_found },
    { "a list of places takes no more than it has", a_list_of_places_takes_no_more_than_it_has },
    { "a person is written and read again", a_person_is_written_and_read_again },
    { "names are checked", names_are_checked },
};
TEST_CASES(tests)
