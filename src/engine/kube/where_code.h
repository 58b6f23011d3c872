/* where_code - the bytes of a where, for where_read.c and where.c only.
 *
 * A sequence of parts, each a letter and its texts with their NULs:
 *   R sentence                 what we refuse; only ever first
 *   S key value                a label that must be so
 *   t effect op key value      a toleration; effect one of "*se" (any, NoSchedule, NoExecute)
 *   A, V                       from here on terms, one of which must hold: affinity, a volume's
 *   T                          a term: all that follows up to the next T, A or V; alone never holds
 *   E op key, F op key         an expression on a label, on a field; then its values:
 *   = value
 */
#ifndef NS_ENGINE_KUBE_WHERE_CODE_H
#define NS_ENGINE_KUBE_WHERE_CODE_H

#include "engine/kube/where.h"

struct where {
    uint32_t n;
    char code[];
};

#define WHERE_OPS(X)                                                                               \
    X(IN, 'i', "In")                                                                               \
    X(NOT_IN, 'n', "NotIn")                                                                        \
    X(EXISTS, 'x', "Exists")                                                                       \
    X(ABSENT, 'a', "DoesNotExist")                                                                 \
    X(GREATER, 'g', "Gt")                                                                          \
    X(LESS, 'l', "Lt")
enum where_op {
#define X(id, letter, name) WHERE_OP_##id = letter,
    WHERE_OPS(X)
#undef X
};

#define FIELD_NAME "metadata.name" /* the only field that Kubernetes lets be matched */

#endif
