/* openb - the packing traces of a large GPU cluster: nodes, pods, the order in which the pods
 * arrive, node ranks, published results.
 *
 * Every row an order names is a pod, every list of ranks is a permutation of the nodes, every
 * pod asks for no GPU or for 1 to 1000 thousandths of each.  A reading that fails leaves *out
 * alone, and its error names file, line and field.
 */
#ifndef NS_SIMULATE_OPENB_H
#define NS_SIMULATE_OPENB_H

#include "base/arena.h"
#include "base/err.h"
#include "simulate/csv.h"

struct openb_node {
    const char *name, *model; /* model "" only without GPUs */
    uint32_t cpu_milli, mem_mib, gpus;
};

struct openb_pod {
    const char *name, *spec; /* spec: allowed models "A|B"; "" = any */
    uint32_t cpu_milli, mem_mib, num_gpu, gpu_milli;
};

struct openb_seed {
    uint64_t seed;
    uint32_t *order; /* pods in order of arrival; may name a pod more than once */
    uint32_t orders;
    uint32_t *rank; /* rank of node i; equal scores go to the lowest */
};

#define OPENB_DEMANDS 32

/* The authors' result: allocated percent at arrived demand 10, 20 … 130 (the file's columns). */
struct openb_published {
    const char *policy;
    uint64_t seed;
    uint32_t demand[OPENB_DEMANDS]; /* percent */
    double alloc[OPENB_DEMANDS];    /* percent; NAN where empty */
    uint32_t n;
};

struct openb {
    struct openb_node *node;
    uint32_t nodes;
    struct openb_pod *pod;
    uint32_t pods;
    struct openb_seed *seed;
    uint32_t seeds;
    struct openb_published
        *published; /* of this workload, metric alloc_pct; none without the file */
    uint32_t publisheds;
    struct arena arena;
};

/* Reads DIR/openb/ (or DIR itself): openb_node_list_gpu_node.csv, openb_pod_list_W.csv, seq_W.txt,
 * noderank_W.txt, published_results.csv; each plain or with .gz. */
int openb_read(const char *dir, const char *workload, struct openb *out, struct err *e) MUST_USE;
void openb_free(struct openb *o);

/* The same from texts. */
struct openb_sources {
    struct csv_source nodes, pods, seq, ranks;
    struct csv_source published; /* .file NULL: none */
};
int openb_parse(const struct openb_sources *from, const char *workload, struct openb *out,
                struct err *e) MUST_USE;

#endif
