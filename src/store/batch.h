/* batch - operations recorded on the loop and carried out on the writer thread.
 *
 * They lie one after the other in one block that grows by doubling: an operation costs no
 * allocation of its own.  Each is an opcode and its fields, and a field is tagged with its type, so
 * whoever carries them out binds fields to a statement without knowing what they mean.
 */
#ifndef NS_STORE_BATCH_H
#define NS_STORE_BATCH_H

#include "store/statements.h"
#include "store/store.h"
#include "sys/worker.h"

/* op, the statements that get its fields, in order */
#define STORE_OPS(X)                                                                               \
    X(ADD_JOB, ST_ADD_JOB, ST_ADD_SPEC)                                                            \
    X(SET_JOB, ST_SET_JOB, ST_SUM_LOG)                                                             \
    X(PUT_RUN, ST_PUT_RUN)                                                                         \
    X(END_RUN, ST_CARRY_RUN, ST_SUM_RUN, ST_END_RUN)                                               \
    X(SHIFT_RUNS, ST_SHIFT_RUNS)                                                                   \
    X(ADD_JOURNAL, ST_ADD_JOURNAL)                                                                 \
    X(NEW_SEGMENT, ST_ADD_SEGMENT, ST_PRUNE_SEGMENTS)                                              \
    X(SEGMENT_BEGINS, ST_SEGMENT_BEGINS)                                                           \
    X(PUT_LINE, ST_PUT_LINE)                                                                       \
    X(PRUNE_JOURNAL, ST_PRUNE_JOURNAL)                                                             \
    X(ADD_EVENT, ST_ADD_EVENT)                                                                     \
    X(PRUNE_EVENTS, ST_PRUNE_EVENTS)                                                               \
    X(ADD_STEP, ST_ADD_STEP, ST_CUT_STEPS)                                                         \
    X(STEP_REASON, ST_STEP_REASON)                                                                 \
    X(PUT_ACCOUNT, ST_PUT_ACCOUNT)                                                                 \
    X(PUT_ENTRY, ST_PUT_ENTRY)                                                                     \
    X(DELETE_ENTRY, ST_DELETE_ENTRY)                                                               \
    X(PUT_POOL, ST_PUT_POOL)                                                                       \
    X(DELETE_POOL, ST_DELETE_POOL)                                                                 \
    X(PUT_LEDGER, ST_PUT_LEDGER)                                                                   \
    X(PUT_MACHINES, ST_PUT_MACHINES)                                                               \
    X(PUT_ANSWER, ST_PUT_ANSWER)                                                                   \
    X(PRUNE_ANSWERS, ST_PRUNE_ANSWERS)                                                             \
    X(ADD_AUDIT, ST_ADD_AUDIT, ST_SET_AUDIT_HEAD) /* see chain.h */                                \
    X(CUT_AUDIT, ST_SET_AUDIT_CUT, ST_CUT_AUDIT)                                                   \
    X(PUT_NOTICE, ST_PUT_NOTICE, ST_TRIM_NOTICES)                                                  \
    X(DELETE_NOTICES, ST_DELETE_NOTICES)                                                           \
    X(SET_META, ST_SET_META)                                                                       \
    X(WHOLE_DAYS, ST_WHOLE_DAYS)                                                                   \
    X(SIZE_LOG, ST_SIZE_LOG)                                                                       \
    X(REMOVE_LOG, ST_REMOVE_LOG)                                                                   \
    X(REMOVE_JOB, ST_REMOVE_JOB)                                                                   \
    X(PRUNE_CARRIED, ST_PRUNE_CARRIED)
enum store_op {
#define X(id, ...) OP_##id,
    STORE_OPS(X)
#undef X
    OP_COUNT
};

#define OP_FIELDS_MAX 25u

/* What travels between the loop and the writer, as the first member of it. */
struct parcel {
    struct worker_item item;
    enum {
        PARCEL_BATCH,
        PARCEL_REFUSAL
    } kind;
};

struct store_batch {
    struct parcel parcel;
    uint8_t *p; /* the operations */
    size_t n, cap;
    uint32_t rows;
    bool durable, ends_group, on_reserve; /* set by the writer */

    /* The loop's own, which the writer leaves alone. */
    struct store *store;
    struct store_batch *prev, *next; /* of those that are open or not durable yet */
    store_done_fn *fn;
    void *ctx;
    uint64_t first_event, events; /* the numbers it took */
    int64_t journal_change;       /* what it did to the count of journal lines */
};

void batch_release(struct store_batch *b); /* the memory; nothing is undone */

enum field_type {
    FIELD_INT,
    FIELD_TEXT,
    FIELD_BLOB
};
struct field {
    enum field_type type;
    int64_t v;
    struct str s; /* inside the batch */
};

struct batch_cursor {
    const uint8_t *at, *end;
};
/* false at the end. */
bool batch_next(struct batch_cursor *c, enum store_op *out_op, struct field out[OP_FIELDS_MAX],
                size_t *out_n);

#endif
