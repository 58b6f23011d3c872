/* answer - what the keeper tells, from lines of JSON to the engine's events; pure. */
#ifndef NS_ENGINE_LOCAL_ANSWER_H
#define NS_ENGINE_LOCAL_ANSWER_H

#include "base/arena.h"
#include "engine/engine.h"
#include "wire/keeper.h"

struct answer {
    enum keeper_event kind;
    struct engine_event event; /* of those that are one; strings live in the arena */
    /* HELLO */
    enum keeper_mode mode;
    bool caps[ENGINE_CAP_COUNT];
    bool pings; /* it answers them */
    /* WALLS */
    struct engine_walls walls;
    /* LEFTOVER */
    struct str text;
};

int answer_read(struct str line, struct arena *a, struct answer *out, struct err *e) MUST_USE;

#endif
