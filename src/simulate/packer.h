/* packer - the rules by which one replica is given a node, as backends of one interface.
 *
 * nightshift is the product's own (core/place.h); bestfit and fgd are the published ones it is
 * measured against.  All look at the same cells of the same cluster.
 */
#ifndef NS_SIMULATE_PACKER_H
#define NS_SIMULATE_PACKER_H

#include "core/place.h"

struct packer;

struct packer_ops {
    const char *name;
    void *(*open)(void);
    /* A job of this sort came; spec is its list of models as written. */
    void (*learn)(void *self, const struct cluster *c, const struct request *r, const char *spec);
    /* Everything that will come is known: derive once, learn no more. */
    void (*seal)(void *self);
    bool (*find)(void *self, struct cluster *c, const struct request *r, struct slot *out);
    void (*close)(void *self);
};

struct packer {
    const struct packer_ops *ops;
    void *self;
    bool sealed;
};

/* false when there is no packer of that name. */
bool packer_open(const char *name, struct packer *out);
void packer_close(struct packer *p);
void packer_learn(struct packer *p, const struct cluster *c, const struct request *r,
                  const char *spec);
void packer_seal(struct packer *p);
bool packer_find(struct packer *p, struct cluster *c, const struct request *r, struct slot *out);

extern const struct packer_ops packer_fgd; /* fgd.c */

/* For the published packers: the cell with the highest score, then the node enrolled first. */
typedef int (*cell_score)(void *self, const struct kind *k, uint32_t cell, const struct cell *ce,
                          const struct request *r);
uint32_t packer_best_cell(struct cluster *c, const struct request *r, cell_score score, void *self);

#endif
