/* keyring - the servers that one has signed in to, and the token for each; in a file of one's own (0600).
 *
 * $XDG_CONFIG_HOME/nightshift/servers.json, or ~/.config/….  The last that one signed in to is used when no
 * server is named.
 */
#ifndef NS_CLI_KEYRING_H
#define NS_CLI_KEYRING_H

#include "base/arena.h"
#include "base/err.h"

struct keyring_entry {
    const char *server, *token, *user;
    int64_t expires_ms; /* 0: not known */
};

/* The entry of that server, or of the last one when server is NULL; false: there is none (or no file).
 * Strings live in `a`. */
bool keyring_find(const char *server, struct arena *a, struct keyring_entry *out);
/* Adds or replaces it and makes it the last. */
int keyring_put(const struct keyring_entry *k, struct err *e) MUST_USE;
/* ERR_NOT_FOUND when it is not there. */
int keyring_drop(const char *server, struct err *e) MUST_USE;
const char *keyring_path(struct arena *a); /* NULL: there is no home */

#endif
