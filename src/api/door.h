/* door - signing in: what the ways of doing it share.  Nobody outside this folder includes it. */
#ifndef NS_API_DOOR_H
#define NS_API_DOOR_H

#include "api/state.h"
#include "auth/ask.h"
#include "auth/throttle.h"
#include "auth/ways.h"

#define NEXT_MAX 2048 /* bytes of a path to go on to */

struct sso;     /* sso.c */
struct login;   /* login.c */
struct waiting; /* door.c */
struct recheck; /* recheck.c */

struct door {
    struct api *api;
    struct ask *ask;
    struct ask *pam; /* its socket, where systemd starts the program as root */
    struct recheck *recheck;
    const struct ways *ways;
    struct throttle *throttle;
    struct waiting *waiting; /* requests whose question is with nightshift-signin */
    uint8_t key[32];         /* of the cookies that say: this browser is known */
    uint8_t setup_hash[KEY_HASH_BYTES];
    struct sso *sso;
    struct login *logins;
    size_t n_logins;
    bool can_setup; /* nobody could sign in and give roles: whoever has the code may become it */
};

int door_open(struct api *a, struct err *e) MUST_USE;
void door_close(struct api *a); /* those who wait are told so */

/* A question for a request that waits.  `fn` gets the call as it was and answers it: -1, with the error.  `why`
 * is NULL when nightshift-signin said yes; else its field is the reason. */
typedef int door_fn(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                    struct err *e);
int door_ask(struct call *c, enum way way, struct buf *question, door_fn *fn, void *ctx,
             struct err *e) MUST_USE;
struct ask *door_whom(const struct door *d, enum way way); /* who is asked */

/* Who this is, by the way they came and what nightshift-signin said: made or brought up to date. */
int door_welcome(struct call *c, enum way way, const struct json *answer, struct person **out,
                 struct err *e) MUST_USE;

/* From where: an address, a network of IPv6 that one household has, or a user of this machine. */
uint64_t door_place(const struct call *c);
/* How soon may this caller try, as this user?  Too soon is refused with 429. */
struct attempt door_attempt(struct call *c, struct str user);
int door_may_try(struct call *c, const struct attempt *a, struct err *e) MUST_USE;
/* The same, and it counts as failed until throttle_undo: for what takes time. */
int door_begin_try(struct call *c, const struct attempt *a, struct err *e) MUST_USE;

/* A session for somebody, like that key (its name, scopes and tenants); `then` runs when it is durable, with the
 * cookies set. */
struct door_then {
    loop_fn *fn;
    void *ctx;
};
int door_let_in(struct call *c, const struct person *x, const struct auth_key *like,
                struct door_then then, struct err *e) MUST_USE;
void door_set_cookie(struct call *c, const char *name, const char *text, int64_t for_ms);
/* What the provider or the directory says of somebody, written down if it is new. */
void door_update(struct api *a, struct person *x, const struct json *answer);

bool door_next_is_ours(struct str next); /* a path of this server, to go on to */

const char *door_url(struct call *c, const char *path); /* as a browser reaches it */
void door_add_encoded(struct buf *b, struct str s);     /* as a part of a URL */

void setup_open(struct door *d); /* setup.c */
void setup_done(struct door *d);

/* Those who signed in elsewhere are looked up now and then: who is gone there is gone here (recheck.c). */
void recheck_open(struct door *d);
void recheck_close(struct door *d);
/* What the provider gave to ask again with; in memory only. */
void recheck_keep(struct door *d, const struct person *x, const struct json *answer);

/* session.c */
void session_renew(struct call *c); /* a key that is an hour old: the answer brings another */
/* Of that user: the keys of this session, or all but them. */
void sessions_drop(struct api *a, const struct auth_key *of, bool others);
void sessions_drop_over(struct api *a); /* that have ended */

void sso_free(struct door *d);
void login_free(struct door *d);

#endif
