/* where - on which nodes a pod may run, and what makes nodes the same to every pod.
 *
 * A where is what a pod asks of a node besides amounts: node selector, required node affinity,
 * tolerations, and the node affinity of its volumes.  It is a string of bytes: compact, and equal
 * for pods that ask the same.  NULL is the where of a pod that asks nothing; taints still keep it
 * away.  What we cannot honour is never passed over: where_refusal says it in a sentence, and such
 * a where matches no node.
 */
#ifndef NS_ENGINE_KUBE_WHERE_H
#define NS_ENGINE_KUBE_WHERE_H

#include "base/map.h"
#include "engine/kube/doc.h"
#include "engine/kube/node_read.h"

struct where;

/* Both live in `a`.  NULL: nothing is asked, or the document was marked as bad. */
const struct where *where_of_pod(struct doc *d, const struct json *pod_spec, struct arena *a);
const struct where *where_of_volume(struct doc *d, const struct json *volume, struct arena *a);
/* A pod's (or NULL) and the volumes' it uses (each may be NULL), all of which must hold. */
const struct where *where_join(const struct where *pod, const struct where *const *volumes,
                               size_t n, struct arena *a);

struct where *where_copy(const struct where *w); /* the caller frees it with free; NULL of NULL */
size_t where_bytes(const struct where *w);       /* all of it, for one who copies it himself */
bool where_eq(const struct where *a, const struct where *b);
uint64_t where_hash(const struct where *w);

const char *where_refusal(const struct where *w); /* NULL: none */

#define WHERE_NOS(X)                                                                               \
    X(REFUSED, "refused")   /* see where_refusal */                                                \
    X(LABEL, "label")       /* the node selector: key and value */                                 \
    X(AFFINITY, "affinity") /* no term holds; key: what failed first */                            \
    X(VOLUME, "volume")     /* the same of a volume */                                             \
    X(CORDON, "cordon")     /* the node takes nothing new */                                       \
    X(TAINT, "taint")       /* key, value and effect */
enum where_no_kind {
#define X(id, name) WHERE_NO_##id,
    WHERE_NOS(X)
#undef X
    WHERE_NO_COUNT
};
struct where_no {
    enum where_no_kind kind;
    const char *key, *value, *effect; /* of the where or the node; may be "" */
};
const char *where_no_name(enum where_no_kind k);
const char *where_no_text(const struct where_no *no, char out[static 256]); /* after "node X: " */

/* *out_why is written when it does not. */
bool where_matches(const struct where *w, const struct kube_node *n, struct where_no *out_why);

/* What any known where looks at.  Begin with a zeroed one. */
struct label_keys {
    struct names keys;
    bool names; /* of nodes themselves */
};
bool where_keys_add(const struct where *w, struct label_keys *keys); /* true: there was a new one */
void label_keys_free(struct label_keys *keys);

/* Adds a text: two nodes that have the same are the same to every where that was added to `keys`, and
 * to NULL. */
void node_class_key(const struct kube_node *n, const struct label_keys *keys, struct buf *out);

#endif
