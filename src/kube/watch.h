/* watch - all objects of a kind, told as they are and as they change.
 *
 * It lists in pages and then watches from there, for as long as it lives: after an end, a cut or a server that is
 * busy it goes on where it was, and when that is too long ago (410) it lists anew.  It never gives up; it waits
 * from 100 ms to 15 s, longer when the server says so.
 * What a caller keeps is right when it does this: on_list marks everything, on_object takes the mark away (or
 * removes the object, when it was deleted), on_synced removes what still has a mark.
 */
#ifndef NS_KUBE_WATCH_H
#define NS_KUBE_WATCH_H

#include "base/json.h"
#include "kube/client.h"

#define KUBE_PAGE 500                    /* objects */
#define KUBE_EVENT_MAX ((size_t)4 << 20) /* bytes of one event */
#define KUBE_BACKOFF_MIN_MS 100
#define KUBE_BACKOFF_MAX_MS 15000

struct kube_watch;

enum kube_change {
    KUBE_ADDED,
    KUBE_MODIFIED,
    KUBE_DELETED
};

/* All but on_object may be NULL.  Any of them may free the watch. */
struct kube_watch_config {
    struct kube_client *client;
    const char *path;  /* "/api/v1/pods" */
    const char *query; /* "labelSelector=app%3Dx", encoded; NULL or "": none */
    struct log *log;   /* may be NULL */
    void *ctx;
    void (*on_list)(void *ctx); /* a list begins, maybe before the last was complete */
    /* The object is gone after the callback.  One may be told again without having changed. */
    void (*on_object)(void *ctx, enum kube_change change, const struct json *object);
    void (*on_synced)(
        void *ctx); /* the list is complete: what was not told since on_list is gone */
    void (*on_away)(void *ctx, const struct err *why); /* once, until on_synced or on_back */
    void (*on_back)(void *ctx);                        /* it goes on where it was */
};

struct kube_watch *kube_watch_new(struct loop *l, const struct kube_watch_config *config);
struct kube_watch *kube_watch_free(struct kube_watch *w); /* NULL ok; returns NULL */

/* One line of a watch.  Pure; *out_doc is the caller's. */
enum kube_event_kind {
    KUBE_EVENT_OBJECT,
    KUBE_EVENT_BOOKMARK,
    KUBE_EVENT_GONE, /* 410: list anew */
    KUBE_EVENT_ERROR /* another error of the server; told in *e */
};

struct kube_event {
    enum kube_event_kind kind;
    enum kube_change change;
    const struct json *object;
    struct str version; /* metadata.resourceVersion */
};

int kube_event_read(struct str line, struct kube_event *out, struct json_doc **out_doc,
                    struct err *e) MUST_USE;

#endif
