/* life - one simulated task: what its script lets happen, and when; a state machine over given
 * times.
 *
 * Times of the script count while it runs, so a paused task ages not; only the KILL after a stop's
 * grace goes by the wall.
 */
#ifndef NS_ENGINE_SIM_LIFE_H
#define NS_ENGINE_SIM_LIFE_H

#include "base/arena.h"
#include "engine/sim/sim.h"

enum life_state {
    LIFE_IS_STARTING,
    LIFE_IS_RUNNING,
    LIFE_IS_PAUSED,
    LIFE_IS_OVER
};

enum life_step {
    LIFE_NOTHING,
    LIFE_BEGAN,
    LIFE_FAILED,
    LIFE_PAUSED,
    LIFE_RESUMED,
    LIFE_ENDED
};

struct life_end {
    int code, signal;
    enum task_end why;
};

struct life {
    struct task_id id;
    enum life_state state;
    struct arena arena;
    int64_t word[SIM_WORD_COUNT];
    int64_t max_time_ms, grace_ms;
    int freeze_signal;
    struct slot slot;
    uint32_t uid, gid;
    const char *home;
    const char **env;
    int64_t seen_ms;       /* up to here its time is counted */
    int64_t ran_ms;        /* while it ran */
    int64_t begin_ms;      /* STARTING: when its program begins */
    int64_t die_at_ran_ms; /* because of a signal */
    struct life_end die;   /* how */
    int64_t kill_ms;       /* on the wall; INT64_MAX: not */
    int64_t pause_ms;      /* on the wall: when it stands; INT64_MAX: not asked for */
    bool resumed;          /* to be told */
    bool stopping, lost;
    enum task_end stop_why;
    int held_signal; /* came while it was paused */
    int64_t ended_ms;
    struct life_end end;
};

/* What the seed has in store for it. */
struct life_luck {
    uint32_t start_ms;
    bool fails, lost;
    double lost_at; /* part of its run */
};

/* NULL when its script cannot be read. */
struct life *life_new(const struct engine_start *s, const struct life_luck *luck, int64_t now_ms,
                      struct err *e);
void life_free(struct life *l);
bool life_alive(const struct life *l); /* it has processes */

int64_t life_next_ms(const struct life *l); /* INT64_MAX: nothing is due */
enum life_step life_step(struct life *l, int64_t now_ms);
void life_seen(struct life *l, int64_t now_ms); /* nothing was due until now */

void life_stop(struct life *l, int64_t now_ms, int64_t grace_ms, enum task_end why);
void life_signal(struct life *l, int64_t now_ms, int signo);
void life_pause(struct life *l, int64_t now_ms);
void life_resume(struct life *l, int64_t now_ms);
void life_lose(struct life *l, int64_t now_ms);

#endif
