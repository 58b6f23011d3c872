/* cluster - the machines: what each has, what is free, and which are alike.
 *
 * Nodes of one build are a *kind*.  Nodes of one kind with the same room left are a *cell*, and
 * placement looks at cells, never at nodes: ten thousand idle machines of one kind are one cell.
 * GPUs of one link group are interchangeable, so a cell keeps their free parts sorted.  A kind
 * files its cells in rows by the number of wholly free GPUs.  Inside a cell the node enrolled first
 * goes first; nothing depends on what happened before.  Always: used + free = total on each node.
 *
 * Nodes of one *pool* may work at the same times, and a kind is of one pool.  While its window is
 * closed a node is offered as little as one that is down.  A kind is also of one *class*, which an
 * engine names by what it knows of its machines, and which jobs ask for (traits).
 */
#ifndef NS_CORE_CLUSTER_H
#define NS_CORE_CLUSTER_H

#include "base/calendar.h"
#include "base/err.h"
#include "base/map.h"
#include "core/event.h"
#include "core/kind.h"

/* Room on a node that is kept for one job; what runs there runs on. */
struct kept {
    uint32_t job; /* NONE: nothing is kept */
    uint32_t gpus, cpu_milli, mem_mib;
    uint16_t device[DEVICES_EACH]; /* as in a room */
    bool linked;                   /* the GPUs lie in one link group */
};

struct node {
    char *name;
    struct room room;  /* free */
    struct room offer; /* given out: what is free less what is kept, from the freest GPUs */
    struct kept kept;
    uint32_t kind, net_switch, cell; /* net_switch, cell: NONE when it has none */
    uint32_t *job;                   /* that hold something on it, in no order */
    uint32_t jobs, job_cap;
    struct room promised; /* sum of the slots that are promised here */
    uint32_t promises;
    uint8_t state; /* enum node_state */
    bool freed;    /* already in cluster.freed */
};

#define POOLS_MAX 1000u
struct pool {
    struct calendar calendar;
    bool always;                /* it has none */
    bool open;                  /* between these times: */
    int64_t from_ms, change_ms; /* change INT64_MAX: never */
    int64_t left_ms;            /* as of its kinds */
    uint32_t *node;
    uint32_t n, cap;
};

struct net_switch {
    uint32_t *node;
    uint32_t n, cap;
    uint32_t whole; /* wholly free GPUs on the nodes that are offered */
};

struct cluster {
    struct kind *kind;
    uint32_t kinds, kind_cap;
    struct node *node;
    uint32_t nodes, node_cap;
    struct cell *cell;
    uint32_t cells, cell_cap, cell_free; /* cell_free: chain of unused ones */
    uint32_t cells_live;
    uint64_t cells_born;
    struct map cell_by_hash;
    struct names models, switches, node_names, pool_names;
    struct zones zones;  /* pools that tenants may use */
    struct zones traits; /* classes of machines that jobs may use */
    struct pool *pool;   /* by number in `pool_names` */
    uint32_t pool_cap;
    uint32_t windows;              /* pools that have a calendar */
    uint32_t reservations;         /* that have not ended */
    struct net_switch *net_switch; /* by number in `switches` */
    uint32_t net_switch_cap;
    uint32_t model_cost_milli[MODELS_MAX];
    struct names devices, kits; /* names of devices; texts of all that a kind of machine has */
    uint32_t device_milli[DEVICES_MAX]; /* what one is worth, of a GPU: the most that was said */
    uint32_t *freed;                    /* nodes with more room than at the last pass */
    uint32_t freed_n, freed_cap;
    uint32_t holding;           /* pairs of a node and a job that holds something on it */
    uint32_t version;           /* grows when a kind is added: what could never fit may fit now */
    struct amounts total, free; /* of the nodes that are up; jobs unused */
    uint64_t gpus;              /* of all nodes */
    uint32_t model_gpus[MODELS_MAX]; /* as total, by model */
};

void cluster_init(struct cluster *c);
void cluster_free(struct cluster *c);

int cluster_add_node(struct cluster *c, const struct event_node *n, struct err *e) MUST_USE;
/* A machine that is enrolled is as the event says from now on, with what runs there.  Nothing of it may be
 * kept or promised then. */
int cluster_check_change(const struct cluster *c, uint32_t node, const struct event_node *n,
                         struct err *e) MUST_USE;
void cluster_change_node(struct cluster *c, uint32_t node, const struct event_node *n);
int cluster_set_model(struct cluster *c, const struct event_model *m, struct err *e) MUST_USE;
void cluster_set_state(struct cluster *c, uint32_t node, enum node_state state);
/* A pool, made when it is not there; pools are made open. */
uint32_t cluster_pool(struct cluster *c, struct str name);
void cluster_move(struct cluster *c, uint32_t node, uint32_t pool); /* NONE: out of its pool */
void cluster_set_class(struct cluster *c, uint32_t node, struct str name);
/* The zone of these pools, "a|b" ("-": machines in no pool), as far as they are within another (0:
 * all machines).  Pools need not be there yet.  See zones_intern. */
uint16_t cluster_zone(struct cluster *c, struct str pools, uint16_t within);
uint16_t cluster_traits(struct cluster *c, struct str list); /* the same of classes; empty: all */
/* So much is left of the pool's window; nodes are offered from then on, or no longer. */
void cluster_set_left(struct cluster *c, uint32_t pool, int64_t left_ms);
void cluster_wake_pool(struct cluster *c,
                       uint32_t pool); /* more may fit on its nodes than before */
/* A machine has this reservation now or next (0: none), which begins in so many ms. */
void cluster_reserve(struct cluster *c, uint32_t node, uint16_t reserved, int64_t free_ms);
void cluster_set_reserved(struct cluster *c, uint16_t reserved, int64_t free_ms); /* all it has */
/* Keeps room for so many replicas of a job; the node starts nothing else in it. */
void cluster_keep(struct cluster *c, uint32_t node, uint32_t job, const struct request *r,
                  uint32_t replicas);
void cluster_unkeep(struct cluster *c, uint32_t node);

/* These slots are promised to a job, or no longer: nothing else starts in them. */
void cluster_promise(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n,
                     bool promise);

/* A job holds something on the nodes of these slots, or no longer. */
void cluster_note_job(struct cluster *c, uint32_t job, const struct slot *s, uint32_t n,
                      bool holds);

/* "A100|V100" -> bits; models that no node has yet are numbered, too. */
uint64_t cluster_intern_models(struct cluster *c, struct str list);

/* "A100|V100" -> bits.  Unknown models are an error that lists the known ones. */
int cluster_parse_models(const struct cluster *c, struct str list, uint64_t *out_bits,
                         struct err *e) MUST_USE;

/* The part of one GPU that a sharing replica takes on this kind; 0 when it cannot have it there. */
uint32_t kind_share_milli(const struct kind *k, const struct request *r);

/* The most a sharing replica takes of a GPU on any kind that it may run on: what limits count.
 * Where it will run is not known when limits are checked, and must not make it pass them. */
uint32_t cluster_most_share_milli(const struct cluster *c, const struct request *r);

/* Could a replica run on an idle node of this kind?  Not if all of them have moved away. */
bool kind_allows(const struct kind *k, const struct request *r);

/* Are machines of this kind of a class that it asks for? */
static inline bool kind_matches(const struct kind *k, const struct request *r)
{
    return r->traits == 0 || zone_bit(k->traits, r->traits);
}

/* And may the job's tenant use them? */
static inline bool kind_in_zone(const struct kind *k, const struct request *r)
{
    return kind_matches(k, r) && (r->zone == 0 || zone_bit(k->zones, r->zone));
}

/* Could one start there now: may its tenant, and is enough left of the window? */
bool kind_takes(const struct kind *k, const struct request *r);

static inline bool node_is_offered(const struct cluster *c, const struct node *n)
{
    return n->state == NODE_UP && c->kind[n->kind].left_ms >= 0;
}

/* May replicas start on this node, if there is room? */
static inline bool node_takes(const struct cluster *c, const struct node *n,
                              const struct request *r)
{
    return n->state == NODE_UP && kind_takes(&c->kind[n->kind], r);
}

/* Room of an idle node of this kind. */
struct room kind_room(const struct kind *k);

/* How many replicas fit into this room at once, at most `max`. */
uint32_t room_replicas(const struct kind *k, const struct room *m, const struct request *r,
                       uint32_t max);

/* The GPUs (as a mask) one replica takes in this room, which holds it: the tightest choice. */
uint16_t room_pick(const struct kind *k, const struct room *m, const struct request *r);

/* Takes the picked GPUs, CPU, memory and devices of one replica out of the room, or puts them back. */
void room_take(const struct kind *k, struct room *m, const struct request *r, uint16_t mask,
               uint32_t milli);
void room_give(const struct kind *k, struct room *m, const struct request *r, uint16_t mask,
               uint32_t milli);

/* The place of a device, as a request names it, in rooms of the kind; NONE: it has none of it. */
static inline uint32_t kind_device(const struct kind *k, uint8_t device)
{
    for (uint32_t i = 0; i < DEVICES_EACH && k->device[i]; i++)
        if (k->device[i] == device)
            return i;
    return NONE;
}

static inline bool request_has_devices(const struct request *r)
{
    return r->device[0] != 0;
}

/* device.c: of a request that has some. */
bool kind_has_devices(const struct kind *k, const struct request *r); /* when it is idle */
uint32_t room_devices(const struct kind *k, const struct room *m, const struct request *r,
                      uint32_t n); /* so many replicas have them there, at most n */
void room_move_devices(const struct kind *k, struct room *m, const struct request *r, bool take);

/* Are these slots what the request asks for, free or not?  One a replica, in order of nodes. */
bool cluster_suits(const struct cluster *c, const struct request *r, const struct slot *s,
                   uint32_t n);

/* Are these slots what the request asks for, and free?  Then take them; each is one replica. */
bool cluster_has_room(const struct cluster *c, const struct request *r, const struct slot *s,
                      uint32_t n);
/* The same without the room that is kept or promised. */
bool cluster_offers(const struct cluster *c, const struct request *r, const struct slot *s,
                    uint32_t n);
void cluster_take(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n);
void cluster_give(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n);

/* What the slots cost, in thousandths of a reference GPU. */
int64_t cluster_cost_milli(const struct cluster *c, const struct request *r, const struct slot *s,
                           uint32_t n, int64_t cpu_cost_milli);

void cluster_forget_freed(struct cluster *c);

/* What a node is, apart from its build: exchanged with what it might be, and back, to ask what then
 * would fit.  Nothing is woken by it. */
struct node_aside {
    struct room room, promised;
    struct kept kept;
    uint32_t promises;
    uint8_t state;
};
struct node_aside node_aside(const struct node *n);
void cluster_swap(struct cluster *c, uint32_t node, struct node_aside *with);

#endif
