/* verb - what nightshift-signin can be asked: a table of verbs, each with the fields it takes.
 *
 * A request is one JSON object; "do" names the verb.  Every field has a kind and a bound, unknown
 * ones are refused by name.  Texts are checked once, here: they end with a NUL, have none inside
 * and, unless they are secret, no control characters; an empty optional one is as if it was not
 * given.  A verb gets its own struct filled and writes the members of the answer, or refuses.
 */
#ifndef NS_SIGNIN_VERB_H
#define NS_SIGNIN_VERB_H

#include "signin/refusal.h"

#define REQUEST_MAX (64u << 10)
#define ANSWER_MAX (256u << 10)

enum field_kind {
    FIELD_TEXT,
    FIELD_TEXT_OR_NULL, /* has to be there; null is an answer */
    FIELD_SECRET,
    FIELD_PASSWORD, /* a secret somebody typed: an empty one is wrong, never absent */
    FIELD_FLAG,     /* a bool */
    FIELD_NUMBER    /* a uint64_t; max is its largest value */
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset; /* of a const char *, bool or uint64_t in the verb's struct */
    size_t max;    /* bytes, or the largest number */
    bool needed;
};

typedef int verb_fn(const void *asked, struct json_out *out, struct refusal *r);

struct verb {
    const char *name, *help;
    const struct field *fields;
    size_t n, size;  /* how many fields; bytes of the verb's struct */
    bool of_machine; /* about its own accounts: may need root */
    verb_fn *run;
};

extern const struct verb verb_hash, verb_password, verb_pam, verb_pam_look, verb_ldap,
    verb_ldap_look, verb_oidc_discover, verb_oidc_code, verb_oidc_refresh, verb_oidc_device_start,
    verb_oidc_device_poll;

const struct verb *verb_at(size_t i); /* NULL past the last */

/* With only_machine the verbs that need no root are unknown: root's libraries meet no network.
 * Always writes one JSON object and a line feed.  What was secret in the request is wiped from the
 * document that was made of it; the text itself is the caller's to wipe. */
void verb_answer(struct str request, bool only_machine, struct buf *out);

#endif
