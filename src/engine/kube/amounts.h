/* amounts - what a node has or a pod asks for: CPU, memory, disk and extended resources.
 *
 * A list is how Kubernetes writes it, in thousandths of whatever a name counts, in the order of the
 * names, so that lists can be added and compared.  Amounts are what is made of it at the end:
 * rounded up for what is asked, down for what is there.
 */
#ifndef NS_ENGINE_KUBE_AMOUNTS_H
#define NS_ENGINE_KUBE_AMOUNTS_H

#include "engine/kube/doc.h"
#include "engine/kube/pack.h"

#define EXTENDED_MAX 64

struct kube_count {
    const char *name;
    uint64_t n;
};

/* extended: those with a vendor's name, in units, and hugepages-*, in bytes; by name, none is 0. */
struct kube_amounts {
    uint64_t cpu_milli, mem_mib, disk_mib;
    struct kube_count *extended;
    uint32_t n_extended;
    uint32_t pods; /* of a node: how many it takes */
};

uint64_t kube_amounts_count(const struct kube_amounts *m, const char *name); /* 0 when not there */

struct amount_list {
    size_t n;
    struct amount {
        const char *name; /* borrowed from the document */
        int64_t milli;
    } of[EXTENDED_MAX + 16];
};

/* Marks the document when a quantity is none or below zero, or when there are too many. */
void amount_list_read(struct doc *d, const struct json *resources, struct amount_list *out);
void amount_list_put(struct doc *d, struct amount_list *l, const char *name, int64_t milli);
int64_t amount_list_get(const struct amount_list *l, const char *name, int64_t when_absent);
void amount_list_add(struct doc *d, struct amount_list *into, const struct amount_list *from);
void amount_list_raise(struct doc *d, struct amount_list *into, const struct amount_list *from);

struct kube_amounts kube_amounts_of(struct doc *d, const struct amount_list *l, bool asked,
                                    struct arena *a);
void kube_amounts_pack(struct kube_amounts *m, struct pack *k);

#endif
