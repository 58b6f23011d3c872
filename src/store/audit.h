/* audit - who did what: rows that are only added, chained by their hashes (wire/audit.h).
 *
 * The writer gives a row its number and hash within the transaction that it is part of, so a batch that
 * is tried again or never committed leaves no trace in the chain.  Each read does a bounded piece.
 */
#ifndef NS_STORE_AUDIT_H
#define NS_STORE_AUDIT_H

#include "store/store.h"
#include "wire/audit.h"

/* Its number is not looked at.  A text that is too long or not UTF-8 is replaced by its size. */
void store_add_audit(struct store_batch *b, const struct audit_row *r);
/* Removes the rows up to this one, which is there; then an audit.cut is added in the same batch. */
void store_cut_audit(struct store_batch *b, uint64_t number);

struct store_audit {
    struct audit_row row;
    struct audit_hash hash;
};

struct store_audit_filter {
    struct str who, subject, tenant; /* empty: any */
    struct str what;                 /* a verb, or how it begins */
    int64_t since_ms, until_ms;      /* until 0: any */
    uint64_t before;                 /* numbers below this; 0: from the newest */
    uint32_t limit;                  /* 0 and above 1,000 mean 1,000 */
};
struct store_audits {
    struct store_audit *v; /* newest first */
    size_t n;
    uint64_t next; /* `before` of the next page, which may be empty and have one itself; 0: none */
};
int store_audit_list(struct store *s, const struct store_audit_filter *f, struct arena *a,
                     struct store_audits *out, struct err *e) MUST_USE;

struct store_audit_ends {
    struct audit_link cut, head; /* number 0: nothing was cut; nothing was written */
};
int store_audit_ends(struct store *s, struct store_audit_ends *out, struct err *e) MUST_USE;

/* The rows after a number up to another, in order; they live for the call.  Returns how many came. */
struct store_audit_span {
    uint64_t after, last;
    uint32_t rows; /* at most */
};
typedef int store_audit_fn(void *ctx, const struct store_audit *r, struct err *e);
int store_audit_page(struct store *s, const struct store_audit_span *span, store_audit_fn *fn,
                     void *ctx, struct err *e) MUST_USE;

/* Verifies up to the head of the beginning; begins again when rows that were to come are cut meanwhile. */
struct store_audit_check {
    struct audit_chain chain;
    struct store_audit_ends ends;
    bool done; /* chain.fault has the result */
};
int store_audit_check_begin(struct store *s, const struct audit_link *noted,
                            struct store_audit_check *out, struct err *e) MUST_USE;
int store_audit_check(struct store *s, struct store_audit_check *c, uint32_t rows, struct err *e)
    MUST_USE;

/* The oldest rows, as far as they are older than before_ms: what one cut removes. */
struct store_audit_old {
    struct audit_link last;
    uint64_t rows; /* 0: there are none */
    int64_t until_ms;
};
int store_audit_old(struct store *s, int64_t before_ms, struct store_audit_old *out, struct err *e)
    MUST_USE;

#endif
