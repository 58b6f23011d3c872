/* chain - the writer's part of the audit: a row gets its number and hash when it is written. */
#ifndef NS_STORE_CHAIN_H
#define NS_STORE_CHAIN_H

#include "store/batch.h"
#include "wire/audit.h"

/* The fields of ADD_AUDIT: number, time, the texts; then what the writer knows. */
#define X(name, max) +1
enum {
    CHAIN_NUMBER,
    CHAIN_TIME,
    CHAIN_TEXTS,
    CHAIN_HASH = CHAIN_TEXTS AUDIT_TEXTS(X),
    CHAIN_HEAD,
    CHAIN_FIELDS
};
#undef X

/* Where the fields that are filled in lie. */
struct chain_room {
    struct audit_hash hash;
    char head[AUDIT_LINK_TEXT];
};
/* Takes the head from the transaction that is open and fills in number, hash and the new head.  Returns
 * SQLite's code. */
int chain_link(const struct statements *st, struct field f[static CHAIN_FIELDS],
               struct chain_room *room);

#endif
