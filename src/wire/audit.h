/* audit - rows of the audit as text, and the chain that they are links of.
 *
 * A row's text is its fields in the order of the struct below, each as a netstring ("5:hello,"), numbers
 * in decimal: no two rows have the same text.  Its hash is BLAKE2b-256 over the hash before it (32
 * bytes; zeros before the first row) and its text.  The store writes it, the command line verifies what
 * was exported: both with this module, and anybody else by docs/ops/audit.md.
 */
#ifndef NS_WIRE_AUDIT_H
#define NS_WIRE_AUDIT_H

#include "base/buf.h"

#define AUDIT_JSON_MAX 16384u /* bytes of before and after */
#define AUDIT_TEXT_MAX 1024u  /* of the others */
#define AUDIT_HASH_BYTES 32u
#define AUDIT_HASH_TEXT (2u * AUDIT_HASH_BYTES + 1u)
#define AUDIT_LINK_TEXT (AUDIT_HASH_TEXT + 21u)

/* What can be done, and is written down.  A word once written keeps its meaning. */
#define AUDIT_VERBS(X)                                                                             \
    X(CLOCK_CONFIRM, "clock.confirm", "the wall clock is right, although it jumped")               \
    X(NODE_DRAIN, "node.drain", "a machine takes no new jobs")                                     \
    X(NODE_RESUME, "node.resume", "it takes jobs again")                                           \
    X(NODE_HOLD, "node.hold", "its owner wants the machine: jobs there make room")                 \
    X(NODE_RELEASE, "node.release", "its owner lets it go again")                                  \
    X(NODE_COMMAND, "node.command", "the machine's agent was told to do something")                \
    X(POOL_SET, "pool.set", "a pool was made or changed")                                          \
    X(POOL_DELETE, "pool.delete", "a pool was removed")                                            \
    X(POOL_OPEN, "pool.open", "a pool is open for a while, whatever its window says")              \
    X(POOL_CLOSE, "pool.close", "it is closed for a while")                                        \
    X(POOL_REGULAR, "pool.regular", "it is open by its window again")                              \
    X(RESERVATION_SET, "reservation.set", "a reservation was made or changed")                     \
    X(RESERVATION_DELETE, "reservation.delete", "a reservation was given up")                      \
    X(TOKEN_CREATE, "token.create", "a token was made (its text is never here)")                   \
    X(TOKEN_DELETE, "token.delete", "a token was deleted")                                         \
    X(TENANT_SET, "tenant.set", "a tenant was made or changed")                                    \
    X(TENANT_DELETE, "tenant.delete", "a tenant was removed")                                      \
    X(MEMBER_SET, "member.set", "somebody got a role in a tenant")                                 \
    X(MEMBER_DELETE, "member.delete", "somebody was taken out of a tenant")                        \
    X(USER_SET, "user.set", "a user was made or changed")                                          \
    X(USER_DELETE, "user.delete", "a user was removed, with all that lets them in")                \
    X(USER_PASSWORD, "user.password", "a password was set (it is never here)")                     \
    X(USER_GONE, "user.gone", "a user is not known any more where they sign in")                   \
    X(USER_TENANT, "user.tenant", "somebody chose where their jobs go that name no tenant")        \
    X(OWNER_SET, "owner.set", "a machine has an owner")                                            \
    X(OWNER_DELETE, "owner.delete", "it has that owner no more")                                   \
    X(SETUP, "setup", "the first administrator came in with the one-time code")                    \
    X(SIGNIN, "signin", "somebody signed in")                                                      \
    X(SIGNIN_FAILED, "signin.failed", "somebody gave a wrong password")                            \
    X(SIGNOUT, "signout", "somebody signed out, or everywhere")                                    \
    X(NOTICE_ACCEPT, "notice.accept", "somebody accepted the notice")                              \
    X(NOTICES_SET, "notices.set", "somebody chose what they are told by mail or webhook")          \
    X(LOGIN, "login", "somebody let a command line in, which got a token")                         \
    X(JOB_CANCEL, "job.cancel", "somebody else than its user ended a job")                         \
    X(JOB_HOLD, "job.hold", "likewise: kept it out of the queue")                                  \
    X(JOB_RELEASE, "job.release", "likewise: let it queue")                                        \
    X(JOB_FREEZE, "job.freeze", "likewise: made it stand still")                                   \
    X(JOB_THAW, "job.thaw", "likewise: let it go on")                                              \
    X(JOB_SIGNAL, "job.signal", "likewise: sent it a signal")                                      \
    X(JOB_ATTACH, "job.attach", "likewise: attached to its terminal")                              \
    X(JOB_EXEC, "job.exec", "likewise: ran a command inside it")                                   \
    X(AUDIT_CUT, "audit.cut", "the oldest rows were removed, as `keep_audit` says")
enum audit_verb {
#define X(id, name, help) AUDIT_##id,
    AUDIT_VERBS(X)
#undef X
    AUDIT_VERB_COUNT
};
const char *audit_verb_name(enum audit_verb v);
void audit_print_reference(struct buf *out); /* Markdown: every verb */

/* The texts of a row: name, largest size. */
#define AUDIT_TEXTS(X)                                                                             \
    X(who, AUDIT_TEXT_MAX)     /* the user, or "system" */                                         \
    X(via, AUDIT_TEXT_MAX)     /* how they were known: "socket uid 1000", "token laptop" */        \
    X(address, AUDIT_TEXT_MAX) /* from where */                                                    \
    X(what, AUDIT_TEXT_MAX)    /* a verb */                                                        \
    X(subject, AUDIT_TEXT_MAX) /* what it was done to */                                           \
    X(tenant, AUDIT_TEXT_MAX)  /* whose that is, or "" */                                          \
    X(before, AUDIT_JSON_MAX)  /* JSON, or "" */                                                   \
    X(after, AUDIT_JSON_MAX)                                                                       \
    X(reason, AUDIT_TEXT_MAX)
struct audit_row {
    uint64_t number; /* from 1 on, without gaps */
    int64_t t_ms;
#define X(name, max) struct str name;
    AUDIT_TEXTS(X)
#undef X
};

struct audit_hash {
    uint8_t b[AUDIT_HASH_BYTES];
};
/* A place in the chain: a row's number and hash; all zero: before the first. */
struct audit_link {
    uint64_t number;
    struct audit_hash hash;
};

void audit_row_hash(const struct audit_hash *before, const struct audit_row *r,
                    struct audit_hash *out);

bool audit_hash_eq(const struct audit_hash *a, const struct audit_hash *b);
const char *audit_hash_format(const struct audit_hash *h, char out[static AUDIT_HASH_TEXT]);
bool audit_hash_parse(struct str text, struct audit_hash *out);
/* "12 9f86d0…" */
const char *audit_link_format(const struct audit_link *l, char out[static AUDIT_LINK_TEXT]);
bool audit_link_parse(struct str text, struct audit_link *out);

/* ---- verifying: begin, add each row in order, end ---- */

#define AUDIT_FAULTS(X)                                                                            \
    X(NONE, "none", "the chain is whole")                                                          \
    X(GAP, "gap", "it is missing, or another row has its place")                                   \
    X(HASH, "hash", "it, or the one before it, is not what was written")                           \
    X(HEAD, "head", "it is missing: the chain ends before the last row that was written")          \
    X(OUTSIDE, "outside", "it lies outside of what the store knows as written")                    \
    X(CUT, "cut", "the chain does not begin where its last audit.cut says")                        \
    X(NOTED, "noted", "the noted head is not in the chain")
enum audit_fault {
#define X(id, name, help) AUDIT_FAULT_##id,
    AUDIT_FAULTS(X)
#undef X
    AUDIT_FAULT_COUNT
};
const char *audit_fault_name(enum audit_fault f);
const char *audit_fault_help(enum audit_fault f);

struct audit_chain {
    struct audit_link from;  /* what the first row follows: the cut, or nothing */
    struct audit_link at;    /* the last row that was right */
    struct audit_link cut;   /* that the rows tell of; 0: none */
    struct audit_link noted; /* that somebody wants to find; its number 0: any */
    bool has_noted, found;
    uint64_t rows;
    enum audit_fault fault;
    uint64_t fault_at; /* the row's number */
};
void audit_chain_begin(struct audit_chain *c, const struct audit_link *from,
                       const struct audit_link *noted); /* noted may be NULL */
bool audit_chain_add(struct audit_chain *c, const struct audit_row *r,
                     const struct audit_hash *h); /* false: there is a fault */
bool audit_chain_end(struct audit_chain *c, const struct audit_link *head);

#endif
