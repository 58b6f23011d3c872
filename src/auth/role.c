#include "auth/role.h"

static const struct {
    const char *name, *help;
    unsigned where;
} roles[] = {
#define X(id, name, where, help) { name, help, where },
    ROLES(X)
#undef X
};

const char *role_name(enum role r)
{
    return (size_t)r < ARRAY_LEN(roles) ? roles[r].name : "?";
}

const char *role_help(enum role r)
{
    return (size_t)r < ARRAY_LEN(roles) ? roles[r].help : "?";
}

bool role_parse(struct str name, unsigned where, enum role *out)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (str_is(name, roles[i].name) && (roles[i].where & where)) {
            *out = (enum role)i;
            return true;
        }
    return false;
}

const char *role_words(unsigned where)
{
    return where == ROLE_ON_SITE ? "admin, operator or viewer" : "lead, member or viewer";
}

static const struct {
    const char *name, *help;
} reaches[] = {
#define X(id, name, help) { name, help },
    REACHES(X)
#undef X
};

const char *reach_name(enum reach r)
{
    return (size_t)r < ARRAY_LEN(reaches) ? reaches[r].name : "?";
}

const char *reach_help(enum reach r)
{
    return (size_t)r < ARRAY_LEN(reaches) ? reaches[r].help : "?";
}

static const struct {
    const char *name, *help;
} scopes[] = {
#define X(id, name, help) { name, help },
    SCOPES_OF_TOKENS(X)
#undef X
};

const char *token_scope_name(enum token_scope s)
{
    return (size_t)s < ARRAY_LEN(scopes) ? scopes[s].name : "?";
}

const char *token_scope_help(enum token_scope s)
{
    return (size_t)s < ARRAY_LEN(scopes) ? scopes[s].help : "?";
}

bool token_scope_parse(struct str name, enum token_scope *out)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (str_is(name, scopes[i].name)) {
            *out = (enum token_scope)i;
            return true;
        }
    return false;
}

static const struct {
    unsigned scope;
    uint8_t reach[ROLE_COUNT];
} accesses[] = {
#define X(id, scope, none, owner, viewer, member, lead, operator, admin)                           \
    [ACCESS_##id] = { scope, { [ROLE_NONE] = REACH_##none,                                         \
                               [ROLE_OWNER] = REACH_##owner,                                       \
                               [ROLE_VIEWER] = REACH_##viewer,                                     \
                               [ROLE_MEMBER] = REACH_##member,                                     \
                               [ROLE_LEAD] = REACH_##lead,                                         \
                               [ROLE_OPERATOR] = REACH_##operator,                                 \
                               [ROLE_ADMIN] = REACH_##admin } },
    ACCESSES(X)
#undef X
};

enum reach access_reach(enum access a, enum role r)
{
    return (size_t)a < ARRAY_LEN(accesses) && (size_t)r < ROLE_COUNT
             ? (enum reach)accesses[a].reach[r]
             : REACH_NO;
}

unsigned access_scope(enum access a)
{
    return (size_t)a < ARRAY_LEN(accesses) ? accesses[a].scope : TOKEN_EVERYTHING;
}
