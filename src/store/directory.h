/* directory - small documents by kind and name: tenants, people, their places, tokens, sessions, clients, wishes,
 * commands to agents.
 *
 * The daemon has all of them in memory and reads them once, at its start; the store keeps them and does not
 * look inside.  An entry is replaced as a whole.
 */
#ifndef NS_STORE_DIRECTORY_H
#define NS_STORE_DIRECTORY_H

#include "store/store.h"

/* What has entries, and how each is called. */
#define DIRECTORY_KINDS(X)                                                                         \
    X(TENANT, "tenant")   /* its name */                                                           \
    X(PERSON, "person")   /* their name */                                                         \
    X(PLACE, "place")     /* a person's role in a tenant: tenant/person */                         \
    X(MACHINE, "machine") /* an owner of a machine: node/person */                                 \
    X(TOKEN, "token")     /* the hash of its text, in hex */                                       \
    X(SESSION, "session") /* likewise of its cookie */                                             \
    X(CLIENT, "client")   /* a program that people sign in to through us: its id */                \
    X(NOTICE, "notice")   /* what somebody wants to be told, and where: their name */              \
    X(COMMAND, "command") /* what an agent is asked to do: its number */                           \
    X(STATE, "state")     /* what the server itself has to remember */
enum directory_kind {
#define X(id, name) DIRECTORY_##id,
    DIRECTORY_KINDS(X)
#undef X
    DIRECTORY_KIND_COUNT
};

struct str directory_kind_name(enum directory_kind kind);

struct store_entry {
    struct str name, body; /* body: JSON */
};
void store_put_entry(struct store_batch *b, enum directory_kind kind, const struct store_entry *e);
void store_delete_entry(struct store_batch *b, enum directory_kind kind, struct str name);

int store_entries(struct store *s, enum directory_kind kind, struct arena *a,
                  struct store_entry **out, size_t *out_n, struct err *e)
    MUST_USE; /* by name; strings live in `a` */

#endif
