/* keeper - the words of keeper.sock: one JSON object a line between the daemon and the keeper.
 *
 * The daemon sends {"do":VERB, …}, the keeper answers with {"ev":EVENT, …} when there is something to
 * tell.  Every verb may be repeated; what is done already is not done again.  The fields of each are
 * read and written by the two ends; their names stand here so that they are spelt once.
 */
#ifndef NS_WIRE_KEEPER_H
#define NS_WIRE_KEEPER_H

#include "base/str.h"

#define KEEPER_LINE_MAX (1u << 20) /* with its line feed */

#define KEEPER_VERB_FIELD "do"
#define KEEPER_EVENT_FIELD "ev"
#define KEEPER_TASK_FIELD "task"

/* id, name, what it asks for */
#define KEEPER_VERBS(X)                                                                            \
    X(SYNC, "sync", "tell about every task that is known, then ready")                             \
    X(START, "start", "run a task")                                                                \
    X(STOP, "stop", "TERM to the job, after the grace KILL to everything")                         \
    X(SIGNAL, "signal", "a signal to the job")                                                     \
    X(PAUSE, "pause", "freeze it in memory")                                                       \
    X(RESUME, "resume", "let it go on")                                                            \
    X(FORGET, "forget", "its end is written down: remove everything but the log")                  \
    X(PURGE, "purge", "remove the log too")                                                        \
    X(PING, "ping", "say that you are there")
enum keeper_verb {
#define X(id, name, help) KEEPER_DO_##id,
    KEEPER_VERBS(X)
#undef X
    KEEPER_VERB_COUNT
};

/* id, name, what it tells */
#define KEEPER_EVENTS(X)                                                                           \
    X(HELLO, "hello", "the first line: version, mode, what this machine can do")                   \
    X(NODE, "node", "the machine: processors, memory, GPUs")                                       \
    X(STARTED, "started", "the program runs")                                                      \
    X(FAILED, "failed", "the start failed: nothing of it ran")                                     \
    X(PAUSED, "paused", "it is frozen")                                                            \
    X(RESUMED, "resumed", "it goes on")                                                            \
    X(PROGRESS, "progress", "a start takes long: what it is doing")                                \
    X(ENDED, "ended", "its processes are gone")                                                    \
    X(LEFTOVER, "leftover", "processes that belong to no living task")                             \
    X(WALLS, "walls",                                                                              \
      "the firewall between tenants: is it there, and how often was it loaded again")              \
    X(READY, "ready", "sync is over")                                                              \
    X(PONG, "pong", "the answer to ping")
enum keeper_event {
#define X(id, name, help) KEEPER_EV_##id,
    KEEPER_EVENTS(X)
#undef X
    KEEPER_EVENT_COUNT
};

/* With what power the keeper runs. */
#define KEEPER_MODES(X)                                                                            \
    X(ROOT, "root", "containers, limits, networks")                                                \
    X(ROOTLESS, "rootless", "containers of one account, without root")                             \
    X(PLAIN, "plain", "processes without containers")
enum keeper_mode {
#define X(id, name, help) KEEPER_MODE_##id,
    KEEPER_MODES(X)
#undef X
    KEEPER_MODE_COUNT
};

const char *keeper_verb_name(enum keeper_verb v);
const char *keeper_event_name(enum keeper_event ev);
const char *keeper_mode_name(enum keeper_mode m);
bool keeper_verb_parse(struct str name, enum keeper_verb *out);
bool keeper_event_parse(struct str name, enum keeper_event *out);
bool keeper_mode_parse(struct str name, enum keeper_mode *out);

#endif
