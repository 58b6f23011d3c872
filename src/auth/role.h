/* role - what somebody may be, and how far each kind of call reaches for each role.
 *
 * A role is held on the whole site, in a tenant or for a machine.  An access is a row of the table below: for
 * each role how far it reaches.  Every route of the API names one, so who may do what is written in one place
 * and printed from it.  Access 0 is for nobody: what forgets to say who may do it is closed.
 */
#ifndef NS_AUTH_ROLE_H
#define NS_AUTH_ROLE_H

#include "base/str.h"

#define ROLE_ON_SITE 1u
#define ROLE_IN_TENANT 2u
#define ROLE_OF_MACHINE 4u

/* id, name, where it is held, what it is for; a later one is worth more. */
#define ROLES(X)                                                                                   \
    X(NONE, "none", 0u, "signed in, and no more")                                                  \
    X(OWNER, "owner", ROLE_OF_MACHINE, "owns a machine that is lent: may take it back")            \
    X(VIEWER, "viewer", ROLE_ON_SITE | ROLE_IN_TENANT, "looks, and changes nothing")               \
    X(MEMBER, "member", ROLE_IN_TENANT, "runs jobs for a tenant")                                  \
    X(LEAD, "lead", ROLE_IN_TENANT,                                                                \
      "leads a tenant and those below it: its members and their jobs")                             \
    X(OPERATOR, "operator", ROLE_ON_SITE, "keeps the machines and the queue running")              \
    X(ADMIN, "admin", ROLE_ON_SITE, "may do everything")
enum role {
#define X(id, name, where, help) ROLE_##id,
    ROLES(X)
#undef X
    ROLE_COUNT
};
const char *role_name(enum role r);
const char *role_help(enum role r);
bool role_parse(struct str name, unsigned where, enum role *out); /* one that is held there */
const char *role_words(unsigned where); /* "lead, member or viewer": for hints */

#define REACHES(X)                                                                                 \
    X(NO, "", "nothing")                                                                           \
    X(OWN, "own", "one's own: jobs, tokens, oneself")                                              \
    X(MACHINE, "machine", "machines that one owns")                                                \
    X(TENANT, "tenant", "the tenants in which one has the role; for a role on the site all")       \
    X(ALL, "all", "everything there is")
enum reach {
#define X(id, name, help) REACH_##id,
    REACHES(X)
#undef X
    REACH_COUNT
};
const char *reach_name(enum reach r);
const char *reach_help(enum reach r);

/* What a token may be cut down to. */
#define SCOPES_OF_TOKENS(X)                                                                        \
    X(READ, "read", "look")                                                                        \
    X(JOBS, "jobs", "submit jobs and steer them")                                                  \
    X(MANAGE, "manage", "everything else that its owner may do")                                   \
    X(REPORT, "report", "send what a machine measures: for its agent")
enum token_scope {
#define X(id, name, help) TOKEN_##id##_BIT,
    SCOPES_OF_TOKENS(X)
#undef X
    TOKEN_SCOPE_COUNT
};
#define TOKEN_READ (1u << TOKEN_READ_BIT)
#define TOKEN_JOBS (1u << TOKEN_JOBS_BIT)
#define TOKEN_MANAGE (1u << TOKEN_MANAGE_BIT)
#define TOKEN_REPORT (1u << TOKEN_REPORT_BIT)
#define TOKEN_EVERYTHING ((1u << TOKEN_SCOPE_COUNT) - 1)
#define TOKEN_OF_PEOPLE (TOKEN_READ | TOKEN_JOBS | TOKEN_MANAGE) /* all that a person does */
const char *token_scope_name(enum token_scope s);
const char *token_scope_help(enum token_scope s);
bool token_scope_parse(struct str name, enum token_scope *out);

/* id, what it takes of a token, then the reach of: none, owner, viewer, member, lead, operator, admin */
#define ACCESSES(X)                                                                                \
    X(NOBODY, 0u, NO, NO, NO, NO, NO, NO, NO)                                                      \
    X(PUBLIC, 0u, ALL, ALL, ALL, ALL, ALL, ALL, ALL) /* without signing in */                      \
    X(SELF_LOOK, TOKEN_READ, OWN, OWN, OWN, OWN, OWN, OWN, OWN)                                    \
    X(SELF, TOKEN_MANAGE, OWN, OWN, OWN, OWN, OWN, OWN, OWN)                                       \
    X(LOOK, TOKEN_READ, ALL, ALL, ALL, ALL, ALL, ALL, ALL)                                         \
    X(SEE, TOKEN_READ, NO, NO, TENANT, TENANT, TENANT, ALL, ALL)                                   \
    X(READ_LOG, TOKEN_READ, NO, NO, NO, OWN, TENANT, NO, ALL)                                      \
    X(SUBMIT, TOKEN_JOBS, NO, NO, NO, TENANT, TENANT, NO, ALL)                                     \
    X(STEER, TOKEN_JOBS, NO, NO, NO, OWN, TENANT, ALL, ALL)                                        \
    X(ENTER, TOKEN_JOBS, NO, NO, NO, OWN, NO, NO, ALL)                                             \
    X(MACHINE, TOKEN_MANAGE, NO, MACHINE, NO, NO, NO, ALL, ALL)                                    \
    X(REPORT, TOKEN_REPORT, NO, MACHINE, NO, NO, NO, ALL, ALL)                                     \
    X(OPERATE, TOKEN_MANAGE, NO, NO, NO, NO, NO, ALL, ALL)                                         \
    X(INSPECT, TOKEN_READ, NO, NO, NO, NO, NO, ALL, ALL)                                           \
    X(PERSON, TOKEN_READ, OWN, OWN, OWN, OWN, OWN, ALL, ALL)                                       \
    X(LEAD, TOKEN_MANAGE, NO, NO, NO, NO, TENANT, NO, ALL)                                         \
    X(PASSWORD, TOKEN_MANAGE, OWN, OWN, OWN, OWN, OWN, OWN, ALL)                                   \
    X(TOKENS_LOOK, TOKEN_READ, OWN, OWN, OWN, OWN, OWN, OWN, ALL)                                  \
    X(TOKENS, TOKEN_MANAGE, OWN, OWN, OWN, OWN, OWN, OWN, ALL)                                     \
    X(ADMIN, TOKEN_MANAGE, NO, NO, NO, NO, NO, NO, ALL)                                            \
    X(ADMIN_LOOK, TOKEN_READ, NO, NO, NO, NO, NO, NO, ALL)
enum access {
#define X(id, ...) ACCESS_##id,
    ACCESSES(X)
#undef X
    ACCESS_COUNT
};
enum reach access_reach(enum access a, enum role r);
unsigned access_scope(enum access a); /* bits that a token must have; 0: none */

#endif
