/* kind - what people can be told of, and by which ways: the tables that everything else is made from.
 *
 * A kind is what somebody chooses; an event is what is sent, and may tell of several kinds (jobs that failed and
 * jobs that succeeded in one).  Numbers of events and ways lie in the store: new ones go to the end.
 */
#ifndef NS_NOTICE_KIND_H
#define NS_NOTICE_KIND_H

#include "base/str.h"

/* id, name, where it goes */
#define NOTICE_WAYS(X)                                                                             \
    X(MAIL, "mail", "to a mail address")                                                           \
    X(WEBHOOK, "webhook", "to a URL, as a CloudEvent")
enum notice_way {
#define X(id, name, help) NOTICE_##id,
    NOTICE_WAYS(X)
#undef X
    NOTICE_WAY_COUNT
};
const char *notice_way_name(enum notice_way w);
bool notice_way_parse(struct str name, enum notice_way *out);

/* id, the type of its CloudEvent, what its subject is */
#define NOTICE_EVENTS(X)                                                                           \
    X(JOB_ENDED, "dev.nightshift.job.ended", "job/17, or array/17 of several")                     \
    X(JOB_FROZEN, "dev.nightshift.job.frozen", "job/17, or array/17 of several")                   \
    X(GPU_IDLE, "dev.nightshift.gpu.idle", "job/17")                                               \
    X(BUDGET, "dev.nightshift.tenant.budget", "tenant/vision")                                     \
    X(NODE_DRAINED, "dev.nightshift.node.drained", "node/desk1")                                   \
    X(TRIAL, "dev.nightshift.trial", "user/ana")
enum notice_event {
#define X(id, type, subject) EVENT_OF_##id,
    NOTICE_EVENTS(X)
#undef X
    NOTICE_EVENT_COUNT
};
const char *notice_event_type(enum notice_event v);
const char *notice_event_subject(enum notice_event v);

/* id, name, event, who hears of it, is it on until it is chosen off, meaning */
#define NOTICE_KINDS(X)                                                                            \
    X(JOB_FAILED, "job_failed", JOB_ENDED, "its user", true, "a job failed")                       \
    X(JOB_SUCCEEDED, "job_succeeded", JOB_ENDED, "its user", true, "a job succeeded")              \
    X(JOB_CANCELLED, "job_cancelled", JOB_ENDED, "its user", false, "a job was cancelled")         \
    X(JOB_FROZEN, "job_frozen", JOB_FROZEN, "its user", true, "a job was frozen or paused")        \
    X(GPU_IDLE, "gpu_idle", GPU_IDLE, "its user", true,                                            \
      "a job runs, and a GPU of it has done nothing for long")                                     \
    X(BUDGET, "budget", BUDGET, "leads of the tenant", true,                                       \
      "of a tenant's GPU-hours 80 % are used, and then all")                                       \
    X(NODE_DRAINED, "node_drained", NODE_DRAINED, "operators and administrators", true,            \
      "a machine was drained because something is wrong with it")
enum notice_kind {
#define X(id, name, event, who, on, help) KIND_##id,
    NOTICE_KINDS(X)
#undef X
    NOTICE_KIND_COUNT
};
struct notice_kind_row {
    const char *name, *who, *help;
    enum notice_event event;
    bool on;
};
const struct notice_kind_row *notice_kind(enum notice_kind k);
bool notice_kind_parse(struct str name, enum notice_kind *out);

struct buf;
void notice_print_kinds(struct buf *out); /* Markdown, for the documentation */
void notice_print_events(struct buf *out);

#endif
