/* notices - what people are told of, from the turn in which it happens until it has arrived.
 *
 * A notice is a row of the store (store/notice.h) that is written in the commit of what it tells of.  Only what is
 * durable is sent, by a process of its own (nightshift-send), and marked when it was; a crash in between sends it
 * again under the same id.  Ends and freezes of one user and one array within gather_ms are one notice.  What could
 * not be sent is tried again after growing pauses and given up after give_up_ms.  Bounded: so many of each user, so
 * many in all; more drops the oldest, and that is told in the log and to its user.
 * Nobody hears of what they may not see: a job's user of the job, a tenant's leads of its budget, operators of machines.
 */
#ifndef NS_NOTICE_NOTICES_H
#define NS_NOTICE_NOTICES_H

#include "auth/auth.h"
#include "notice/choice.h"
#include "notice/render.h"
#include "store/notice.h"
#include "sys/clock.h"

#define NOTICES_OF_USER 100u /* that wait */
#define NOTICES_MAX 5000u
#define NOTICE_USERS_MAX 20000u
#define NOTICES_AT_ONCE 8u /* that are being sent */

struct notices;

struct notices_config {
    struct loop *loop;
    struct log *log;
    struct clock clock;
    struct store *store;
    struct auth *auth;
    const char *const *send_argv; /* nightshift-send; ends with NULL */
    const char *mail_server, *mail_from, *mail_login, *mail_password_file, *mail_ca, *mail_domains;
    bool mail_plain;
    enum webhook_reach webhooks;
    const char *webhook_ca;
    const char *external_url; /* NULL: not known */
    int64_t gather_ms, retry_ms, give_up_ms, patience_ms;
    /* Adds the last lines of a job's output; may add nothing.  NULL: nobody knows. */
    void (*tail)(void *ctx, uint64_t job, uint32_t run, struct buf *out);
    void *tail_ctx;
};

/* Everything in it is borrowed.  Takes up what waits in the store; sends nothing before notices_begin. */
struct notices *notices_new(const struct notices_config *c, struct err *e);
struct notices *notices_free(struct notices *n); /* NULL ok; returns NULL */
void notices_begin(struct notices *n);           /* who people are is known */
void notices_set_tail(struct notices *n, void (*tail)(void *, uint64_t, uint32_t, struct buf *),
                      void *ctx);

/* ---- what happens, in the turn with that batch ---- */

/* It ended, or stands still. */
void notices_job(void *notices, struct store_batch *b, const struct store_job *j);
struct notice_budget {
    struct str tenant;
    uint32_t percent;
    int64_t used_gpu_milli_ms, gpu_milli_ms, from_ms, until_ms;
};
void notices_budget(void *notices, struct store_batch *b, const struct notice_budget *v);
struct notice_idle {
    const struct store_job *job;
    struct str node;
    uint32_t gpu;
    int64_t idle_since_ms, now_ms;
};
bool notices_idle(struct notices *n, struct store_batch *b, const struct notice_idle *v);
bool notices_wants_idle(struct notices *n,
                        const struct store_job *j); /* cheap; once a run is enough */
void notices_drained(struct notices *n, struct store_batch *b, struct str node, struct str reason);
/* The turn is about to be written; it is on the disk. */
void notices_closing(void *notices, struct store_batch *b);
void notices_durable(void *notices);

/* ---- choices ---- */

const struct notice_choice *notices_choice(const struct notices *n, struct str user); /* or NULL */
void notices_bounds(const struct notices *n, struct str user, struct choice_bounds *out);
/* Takes the choice's texts. */
int notices_choose(struct notices *n, struct store_batch *b, struct str user,
                   struct notice_choice *c, struct err *e) MUST_USE;
void notices_forget(struct notices *n, struct store_batch *b, struct str user); /* they are gone */
/* Where mail to somebody goes; empty: nowhere. */
struct str notices_mail_of(const struct notices *n, struct str user);

/* ---- sending ---- */

void notices_pump(void *notices); /* sends what is due; comes back by itself */

/* A trial, at once and only once: done gets NULL when it arrived.  ERR_CONFLICT: nowhere to send it, or one is on
 * its way. */
typedef void notice_tried_fn(void *ctx, const struct err *why);
int notices_try(struct notices *n, struct str user, enum notice_way way, notice_tried_fn *fn,
                void *ctx, struct err *e) MUST_USE;
void notices_stop_tries(struct notices *n); /* those who wait are told so */

struct notice_stats {
    uint64_t sent, failed, given_up, dropped; /* failed: tries */
    size_t waiting;
};
struct notice_stats notices_stats(const struct notices *n);
/* Why the last letter was not taken by the mail server; "": it was, or there was none yet. */
const char *notices_mail_trouble(const struct notices *n);

#endif
