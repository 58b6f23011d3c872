/* directory - a connection to an LDAP server: opened safely, bound, searched within bounds.
 *
 * Certificates are always checked.  Plain ldap:// is for this machine only, unless it is said to
 * be all right; referrals are not followed, and no settings of the machine's LDAP tools are read.
 */
#ifndef NS_SIGNIN_DIRECTORY_H
#define NS_SIGNIN_DIRECTORY_H

#include "base/arena.h"
#include "signin/refusal.h"

struct directory;

struct directory_at {
    const char *url;     /* one, or several with blanks between them: the first that answers */
    const char *ca_file; /* NULL: the machine's authorities */
    bool starttls, insecure;
    uint64_t timeout_s;
};

struct entry {
    const char *dn;
    const char *const **values; /* a NULL-terminated list for each attribute that was asked for */
};

struct search {
    const char *base;
    const char *filter;       /* NULL: read the entry `base` itself */
    const char *const *attrs; /* ends with NULL */
    size_t most;              /* more entries than that are refused (REASON_TOO_MANY) */
};

struct directory *directory_open(const struct directory_at *at, struct refusal *r);
void directory_close_p(struct directory **d);

int directory_bind_service(struct directory *d, const char *dn, const char *password,
                           struct refusal *r);
/* The person's own password: wrong, expired and locked are told apart where the server does. */
int directory_bind_person(struct directory *d, const char *dn, const char *password,
                          struct refusal *r);

/* A base that is not there has no entries.  *out lives in `a`. */
int directory_search(struct directory *d, const struct search *s, struct arena *a,
                     struct entry **out, size_t *out_n, struct refusal *r);

#endif
