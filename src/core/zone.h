/* zone - sets of names, "a|b", as small numbers: what a request says of machines beyond their build.
 *
 * Equal sets have one number, from 1 on; 0 stands for no set.  A number whose set nobody uses any more
 * is given to another, so that jobs which all ask for something else do not use them up.
 */
#ifndef NS_CORE_ZONE_H
#define NS_CORE_ZONE_H

#include "base/err.h"
#include "core/types.h"

#define ZONES_MAX 4096u /* different sets at a time */
#define ZONE_WORDS (ZONES_MAX / 64 + 1)

struct zone {
    char *text; /* names in order, each once; NULL: the number is not used */
    uint64_t hash;
};

struct zones {
    struct zone *at; /* number 1 is the first */
    uint32_t n, cap, used;
    uint32_t look; /* when so many are used, it is time to look which of them still are */
};

void zones_free(struct zones *z);
struct str zones_get(const struct zones *z, uint32_t number); /* until it is dropped */
bool zones_has(const struct zones *z, uint32_t number, struct str name);

/* The set of these names, as far as they are within another (0: all); 0: it is not there. */
uint32_t zones_find(const struct zones *z, struct str list, uint32_t within);
/* The same, and it is made.  Fewer than ZONES_MAX are used, which the caller has seen to. */
uint32_t zones_intern(struct zones *z, struct str list, uint32_t within);
void zones_keep(struct zones *z, const bool *keep); /* by number: all others are dropped */

static inline bool zone_bit(const uint64_t *bits, uint32_t number)
{
    return bits[number / 64] >> (number % 64) & 1;
}

/* Classes of machines that a job may use, "a|b"; and the one of a machine. */
int traits_check(struct str list, struct err *e) MUST_USE;
int traits_check_name(struct str node, struct str name, struct err *e) MUST_USE;

#endif
