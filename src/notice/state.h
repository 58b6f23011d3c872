/* state - what the files of this folder share; nobody outside includes it. */
#ifndef NS_NOTICE_STATE_H
#define NS_NOTICE_STATE_H

#include "auth/ask.h"
#include "base/map.h"
#include "notice/notices.h"

#define NOTICE_ID_TEXT 33
#define GATHERINGS 16u /* arrays of one user that are told apart within a while */

struct user;

/* One that waits. */
struct note {
    char id[NOTICE_ID_TEXT];
    struct user *of;
    enum notice_way way;
    enum notice_event event;
    enum store_notice_state state;
    int64_t made_ms, due_ms;
    uint32_t tries;
    char *subject, *data, *why;
    /* While it gathers: */
    uint64_t array, count, how[3]; /* failed, succeeded, cancelled */
    struct buf jobs;               /* members of the list */
    bool gathers;
    bool dirty;   /* not in a batch yet */
    bool of_turn; /* changed by the turn that is being gathered: it goes with that, not before */
    bool flying;  /* in a turn that is being written */
    struct ask_call *call;
};

struct gathering {
    enum notice_way way;
    enum notice_event event;
    uint64_t array;
    int64_t last_ms;   /* when its last was due */
    struct note *note; /* that still takes more, or NULL */
};

struct user {
    struct notices *notices;
    char *name;
    struct notice_choice choice;
    bool chosen;
    uint32_t waiting; /* notes */
    struct gathering gathering[GATHERINGS];
    struct {
        struct note *sending;
        struct tried *tried; /* a trial */
        uint32_t trials;     /* within an hour of trials_ms */
        int64_t trials_ms;
        uint32_t fails; /* in a row */
        int64_t not_before_ms;
    } way[NOTICE_WAY_COUNT];
};

struct notices {
    struct notices_config config;
    struct ask *ask;
    struct loop_watch *timer;
    struct user **user;
    size_t users, user_cap;
    struct names names; /* of users, numbered as they are */
    struct note **note; /* in the order in which they were made */
    size_t notes, note_cap;
    size_t dirty;            /* notes */
    size_t sending, failing; /* failing: of those whose last try failed */
    struct tried *tries;
    struct notice_stats stats;
    char mail_trouble[256]; /* why the last letter was not taken; "": it was, or there was none */
    bool begun;
};

struct user *find_user(const struct notices *n, struct str name); /* NULL: nothing is known */
bool may_hear(const struct notices *n, struct str user); /* they are here, and not locked out */
void note_seal(struct note *o);                          /* it takes no more */
void note_end(struct notices *n, struct note *o, enum store_notice_state state, const char *why);
void note_write(const struct note *o, struct store_batch *b);
void notes_sweep(struct notices *n); /* those that are over, and written */

/* post.c */
void post_init(struct notices *n);
void post_free(struct notices *n);
void post_cancel(struct notices *n, struct user *u); /* what is on its way to them */
void post_afresh(struct notices *n, struct user *u); /* what failed is tried again at once */

#endif
