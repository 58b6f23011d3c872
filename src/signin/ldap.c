/* People of a directory: found with the service's eyes, let in by their own password. */
#include "signin/directory.h"
#include "signin/filter.h"
#include "signin/membership.h"
#include "signin/validity.h"
#include "signin/verb.h"
#include "sys/clock.h"

#define TIMEOUT_S 5
#define TIMEOUT_MAX_S 15

struct asked {
    struct directory_at at;
    const char *bind_dn, *bind_password;
    const char *base, *user_filter, *user_attr, *name_attr, *mail_attr;
    struct membership_rule groups;
    const char *user, *password;
};

#define AT(member) offsetof(struct asked, member)
#define COMMON_FIELDS                                                                              \
    { "url", FIELD_TEXT, AT(at.url), 1024, true },                                                 \
        { "starttls", FIELD_FLAG, AT(at.starttls), 1, false },                                     \
        { "insecure", FIELD_FLAG, AT(at.insecure), 1, false },                                     \
        { "ca_file", FIELD_TEXT, AT(at.ca_file), 4096, false },                                    \
        { "timeout_s", FIELD_NUMBER, AT(at.timeout_s), TIMEOUT_MAX_S, false },                     \
        { "bind_dn", FIELD_TEXT, AT(bind_dn), 1024, false },                                       \
        { "bind_password", FIELD_SECRET, AT(bind_password), 1024, false },                         \
        { "base", FIELD_TEXT, AT(base), 1024, true },                                              \
        { "user_filter", FIELD_TEXT, AT(user_filter), 1024, false },                               \
        { "user_attr", FIELD_TEXT, AT(user_attr), 128, false },                                    \
        { "name_attr", FIELD_TEXT, AT(name_attr), 128, false },                                    \
        { "mail_attr", FIELD_TEXT, AT(mail_attr), 128, false },                                    \
        { "group_base", FIELD_TEXT, AT(groups.base), 1024, false },                                \
        { "group_filter", FIELD_TEXT, AT(groups.filter), 1024, false },                            \
        { "group_attr", FIELD_TEXT, AT(groups.attr), 128, false },                                 \
        { "nested", FIELD_TEXT, AT(groups.nested), 16, false },                                    \
    {                                                                                              \
        "user", FIELD_TEXT, AT(user), 256, true                                                    \
    }
static const struct field look_fields[] = { COMMON_FIELDS };
static const struct field ldap_fields[] = {
    COMMON_FIELDS,
    { "password", FIELD_PASSWORD, AT(password), 1024, true },
};

enum {
    ATTR_USER,
    ATTR_NAME,
    ATTR_MAIL,
    ATTR_MEMBER_OF,
    ATTR_VALIDITY /* and those after it */
};

static void fill_defaults(struct asked *a)
{
    if (!a->at.timeout_s)
        a->at.timeout_s = TIMEOUT_S;
    if (!a->user_filter)
        a->user_filter = "(uid=%u)";
    if (!a->user_attr)
        a->user_attr = "uid";
    if (!a->name_attr)
        a->name_attr = "cn";
    if (!a->mail_attr)
        a->mail_attr = "mail";
    if (!a->groups.base)
        a->groups.base = a->base;
    membership_defaults(&a->groups);
}

/* A password of nobody is as wrong as a wrong one; whoever looks without one wants to know. */
static void nobody(const struct asked *a, struct refusal *r)
{
    if (a->password)
        refuse(r, REASON_WRONG_PASSWORD, "the user name or the password is wrong");
    else
        refuse(r, REASON_UNKNOWN_USER, "the directory has no '%s'", a->user);
}

/* The one entry of the user, or NULL. */
static const struct entry *find_person(const struct asked *a, struct directory *d,
                                       struct arena *arena, struct refusal *r)
{
    AUTO(buf_free) struct buf filter = BUF(FILTER_MAX);
    const char *attrs[ATTR_VALIDITY + VALIDITY_COUNT + 1] = { a->user_attr, a->name_attr,
                                                              a->mail_attr, "memberOf" };
    struct entry *list = NULL;
    size_t n = 0;
    validity_attrs(attrs + ATTR_VALIDITY);
    if (!filter_has(a->user_filter, 'u')) {
        refuse(r, REASON_BAD_REQUEST, "the filter for users has no %%u: it would find all");
        return NULL;
    }
    if (filter_expand(a->user_filter, a->user, NULL, &filter, r) < 0)
        return NULL;
    struct search s = { .base = a->base, .filter = filter.p, .attrs = attrs, .most = 1 };
    if (directory_search(d, &s, arena, &list, &n, r) < 0) {
        if (r->why == REASON_TOO_MANY)
            refuse(r, REASON_AMBIGUOUS_USER, "the directory has more than one '%s'", a->user);
        return NULL;
    }
    if (n == 0)
        nobody(a, r);
    return n == 1 ? list : NULL;
}

static int check_password(const struct asked *a, const struct entry *person, struct refusal *r)
{
    /* A connection of its own: the groups are looked up with the service's rights, not theirs. */
    AUTO(directory_close_p) struct directory *own = directory_open(&a->at, r);
    return own ? directory_bind_person(own, person->dn, a->password, r) : -1;
}

static int write_person(const struct asked *a, const struct entry *person, struct json_out *out,
                        struct refusal *r)
{
    const char *user = person->values[ATTR_USER][0], *name = person->values[ATTR_NAME][0],
               *mail = person->values[ATTR_MAIL][0];
    if (!user || !user[0])
        return refuse(r, REASON_DIRECTORY, "the entry of '%s' has no attribute '%s'", a->user,
                      a->user_attr);
    json_put_str(out, "user", str_of(user));
    json_put_str(out, "dn", str_of(person->dn));
    if (name)
        json_put_str(out, "name", str_of(name));
    if (mail)
        json_put_str(out, "mail", str_of(mail));
    return 0;
}

static int run_ldap(const void *args, struct json_out *out, struct refusal *r)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct clock clock = clock_wall();
    struct asked a = *(const struct asked *)args;
    fill_defaults(&a);
    AUTO(directory_close_p) struct directory *d = directory_open(&a.at, r);
    if (!d || directory_bind_service(d, a.bind_dn, a.bind_password, r) < 0)
        return -1;
    const struct entry *person = find_person(&a, d, &arena, r);
    if (!person || (a.password && check_password(&a, person, r) < 0))
        return -1;
    if (validity_check(person->values + ATTR_VALIDITY, clock_now_ms(&clock) / 1000, r) < 0 ||
        write_person(&a, person, out, r) < 0)
        return -1;
    struct member who = { .user = person->values[ATTR_USER][0],
                          .dn = person->dn,
                          .member_of = person->values[ATTR_MEMBER_OF] };
    return membership_write(d, &a.groups, &who, &arena, out, r);
}

const struct verb verb_ldap = {
    .name = "ldap",
    .help = "is it the password of this person of the directory?",
    .fields = ldap_fields,
    .n = ARRAY_LEN(ldap_fields),
    .size = sizeof(struct asked),
    .run = run_ldap,
};
const struct verb verb_ldap_look = {
    .name = "ldap_look",
    .help = "is the person still in the directory, and in which groups?",
    .fields = look_fields,
    .n = ARRAY_LEN(look_fields),
    .size = sizeof(struct asked),
    .run = run_ldap,
};
