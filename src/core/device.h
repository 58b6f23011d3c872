/* device - what machines have and jobs ask for in numbers, beyond GPUs: slices of them, network cards.
 *
 * A machine has so many of a name, a replica asks for so many of it, and which of them it gets is not
 * the core's business.  As text they are "name=count,name=count" in order of names; a machine may say
 * what one is worth, in thousandths of a GPU, "name=count@worth".  A name is worth the most that any
 * machine said: that counts against limits of GPUs and in what a share has.
 */
#ifndef NS_CORE_DEVICE_H
#define NS_CORE_DEVICE_H

#include "base/arena.h"
#include "core/cluster.h"

struct device {
    struct str name;
    uint32_t n, worth_milli;
};

bool device_is_name(struct str s);
int devices_check(struct str text, struct err *e) MUST_USE; /* is it such a text? */
bool devices_next(struct str *rest, struct device *out);    /* of one that is */

uint32_t devices_count(struct str text, struct str name); /* 0: it is not there */
bool devices_cover(struct str has, struct str other);     /* has it of each as many as the other? */

/* The names of a text are known from now on; -1: it is no such text, or there are too many names. */
int cluster_check_devices(const struct cluster *c, struct str text, struct err *e) MUST_USE;
void cluster_intern_devices(struct cluster *c, struct str text); /* of one that was checked */

/* Puts what the text asks for into the request; a name that no machine has is an error. */
int cluster_parse_devices(const struct cluster *c, struct str text, struct request *out,
                          struct err *e) MUST_USE;
struct str cluster_devices_text(const struct cluster *c, const struct request *r, struct arena *a);

void kind_set_devices(struct cluster *c, struct kind *k, struct str text); /* was checked */

/* What those of one replica are worth, in thousandths of a GPU. */
uint64_t devices_worth_milli(const struct cluster *c, const struct request *r);

/* The most of a device, by its place in the request, on one machine that may run it: of those that
 * there are, or of those that are offered now. */
uint32_t devices_most(const struct cluster *c, const struct request *r, uint32_t i, bool now);
const char *device_name(const struct cluster *c, const struct request *r, uint32_t i);

/* The first device, by its place, of which no machine that may run it has enough; NONE: there is none. */
uint32_t devices_short(const struct cluster *c, const struct request *r, bool now);

#endif
