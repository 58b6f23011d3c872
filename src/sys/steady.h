/* steady - time that goes on evenly, whatever is done to the wall clock.
 *
 * It is the clock that counts from the boot on, suspended hours included (CLOCK_BOOTTIME), with an offset.  Small
 * differences to the wall clock are corrections and are taken over at once, some seconds a minute at most.  A larger
 * one is a jump: time goes on as before and says that it differs, until the wall clock agrees again, or whoever owns
 * the state takes the step (steady_step), because the difference stayed the same for a while and is no more than a
 * day, or because an administrator said so.
 * Across restarts it goes on from a mark: in the same boot nothing is left to doubt.  After another boot the wall
 * clock is believed, unless it is before the mark (then time goes on from there) or weeks after it (then it is doubted
 * until somebody confirms it).
 */
#ifndef NS_SYS_STEADY_H
#define NS_SYS_STEADY_H

#include "base/buf.h"
#include "sys/clock.h"

#define STEADY_SMALL_MS INT64_C(5000)
#define STEADY_SETTLE_MS INT64_C(600000) /* a difference that stayed so long is meant */
#define STEADY_STEP_MS INT64_C(86400000) /* up to this one: larger ones are confirmed */
#define STEADY_FAR_MS (7 * INT64_C(86400000))

struct steady_config {
    struct clock wall, boot;
    const char *boot_id; /* of this boot */
};

struct steady {
    struct steady_config config;
    char boot_id[40];
    int64_t offset_ms; /* time = boot + offset */
    int64_t differs_ms,
        differs_since;             /* the wall clock's lead; since when, by boot; 0: it agrees */
    int64_t used_ms, used_since;   /* of small corrections, in this minute */
    int64_t base_ms, base_boot_ms; /* the mark that is doubted, and when it was read */
    bool doubted;                  /* the wall clock, since the start */
};

/* `mark`: what steady_mark wrote last, or empty. */
void steady_begin(struct steady *s, const struct steady_config *config, struct str mark);
void steady_mark(struct steady *s, struct buf *out);

int64_t steady_now_ms(struct steady *s);
struct clock steady_clock(struct steady *s); /* borrows s */

/* May what is old be removed?  0 and false: yes.  Else how far the wall clock is ahead (or behind, or, at the start,
 * ahead of the time when we stopped). */
bool steady_holds(struct steady *s, int64_t *out_ahead_ms);
/* The step that has settled, 0 when there is none; `confirmed`: whatever it is, and nothing is doubted any more. */
int64_t steady_wants(struct steady *s, bool confirmed);
void steady_step(struct steady *s, int64_t by_ms);

/* This machine's: suspended time counts.  The id of this boot, or "" where nobody tells it. */
struct clock clock_boot(void);
const char *steady_boot_id(char out[static 40]);

#endif
