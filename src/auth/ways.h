/* ways - how people sign in here: the section `signin` of the settings file.
 *
 * Each way is a row of a table with the settings it takes; what was read is handed to nightshift-signin as it
 * is, so a new setting is one line.  Secrets are in files of their own, which only their owner may read.
 */
#ifndef NS_AUTH_WAYS_H
#define NS_AUTH_WAYS_H

#include "auth/people.h"

/* id, name, title when the settings have none, who signs in by it */
#define WAYS(X)                                                                                    \
    X(LOCAL, "local", "Password", PERSON_LOCAL)                                                    \
    X(LDAP, "ldap", "Directory", PERSON_LDAP)                                                      \
    X(PAM, "pam", "Account of this machine", PERSON_PAM)                                           \
    X(OIDC, "oidc", "Single sign-on", PERSON_OIDC)
enum way {
#define X(id, name, title, kind) WAY_##id,
    WAYS(X)
#undef X
    WAY_COUNT
};
const char *way_name(enum way w);
enum person_kind way_kind(enum way w);

struct ways;
/* section NULL: local passwords alone. */
struct ways *ways_read(const struct json *section, struct err *e);
struct ways *ways_free(struct ways *w); /* NULL ok; returns NULL; secrets are wiped */
void ways_free_p(struct ways **w);
void ways_print_reference(struct buf *out); /* Markdown */

bool ways_has(const struct ways *w, enum way way);
const char *ways_title(const struct ways *w, enum way way);
int64_t ways_recheck_ms(const struct ways *w);
/* Tokens of people of the OpenID provider are good so long after their last sign-in; 0: for ever. */
int64_t ways_provider_ms(const struct ways *w);
const struct group_role *ways_groups(const struct ways *w, size_t *out_n); /* roles on the site */
const char *ways_setting(const struct ways *w, enum way way, const char *key); /* NULL: not set */

/* Begins a question to nightshift-signin: the verb and the way's settings; the caller adds and ends it. */
void ways_ask(const struct ways *w, enum way way, const char *verb, struct json_out *out);

#endif
