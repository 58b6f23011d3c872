/* kind - what is alike: kinds of machines, and cells of those with the same room; see cluster.h. */
#ifndef NS_CORE_KIND_H
#define NS_CORE_KIND_H

#include "core/zone.h"

/* What is free: on a node by GPU index, in a cell sorted, most free first, in each link group. */
struct room {
    uint16_t gpu[GPUS_PER_NODE_MAX];
    uint32_t cpu_milli, mem_mib;
    uint16_t device[DEVICES_EACH]; /* last, and 0 where a kind has none: see room_hash */
};

/* Rows of a kind: nodes without a whole free GPU by their largest free part, then by whole ones. */
#define ROW_WHOLE 2u
#define ROWS (ROW_WHOLE + GPUS_PER_NODE_MAX + 1)
_Static_assert(ROWS <= 32, "the rows of a kind are a bit set");

static inline uint32_t row_of_part(uint32_t milli)
{
    return milli >= 500 ? 2 : milli >= 200 ? 1 : 0;
}

/* What a search needs of a cell, side by side with its neighbours in the row. */
struct row_cell {
    uint32_t cell;
    uint32_t cpu_milli, mem_mib;
    uint16_t gpu_free;  /* sum of the free parts */
    uint16_t best_part; /* the largest free part of a GPU, the whole included */
    uint16_t part;      /* the largest below the whole */
    float strand;       /* see demand.h; computed from the demand of strand_epoch */
    uint32_t strand_epoch;
};

struct row {
    struct row_cell *at; /* in order of free CPUs, then memory, then GPUs */
    uint32_t n, cap;
    float strand_most;     /* of its cells, at least; computed from the demand of strand_epoch */
    uint32_t strand_epoch; /* 0: a cell has come since */
};

struct kind {
    uint32_t model, gpu_mem_mib, cpu_milli, mem_mib;
    uint32_t pool;     /* NONE: of no pool */
    int64_t left_ms;   /* of its window at the last pass; INT64_MAX: for ever, < 0: it is closed */
    uint16_t reserved; /* the reservation that its machines have now or next; 0: none */
    int64_t free_ms;   /* until that begins; INT64_MAX: never, < 0: it has begun */
    uint8_t gpus, links; /* link groups; GPUs of a group need not be neighbours */
    uint8_t link[GPUS_PER_NODE_MAX];
    uint32_t kit;                    /* of its devices: the number of their text */
    uint16_t device_n[DEVICES_EACH]; /* so many of each device that follows */
    uint8_t device[DEVICES_EACH];    /* number + 1 in the cluster's names; 0: no more of them */
    uint32_t nodes;           /* of this kind, in whatever state; 0: they moved to another pool */
    uint64_t whole, gpu_free; /* wholly free GPUs, and free parts, on those offered */
    uint32_t rows_used;       /* bit set of the rows that have cells */
    struct row row[ROWS];
    uint64_t zones[ZONE_WORDS];      /* bit set of the zones of pools that its machines are in */
    uint64_t traits[ZONE_WORDS];     /* and of the sets of classes */
    char class[TRAITS_NAME_MAX + 1]; /* what its machines are to the engine; empty: nothing */
};

struct cell {
    struct room room;
    uint32_t kind;
    uint32_t next;  /* the next cell with the same hash, or the next free one */
    uint32_t *node; /* the node enrolled first is last */
    uint32_t n, cap;
    uint8_t whole;      /* wholly free GPUs */
    uint16_t gpu_free;  /* sum of the free parts */
    uint16_t best_part; /* the largest free part below a whole GPU */
    uint64_t born;      /* no two cells ever have the same */
};

#endif
