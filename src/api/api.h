/* api - the REST API: a table of routes, one handler file a noun.
 *
 * A request is matched against the table, the caller is identified, the role in the row is checked
 * before the handler runs, and every read goes to the store with the caller's scope.  Answers to what
 * changes something are sent when it is on the disk.  OpenAPI is printed from the same table.
 */
#ifndef NS_API_API_H
#define NS_API_API_H

#include "auth/auth.h"
#include "auth/ways.h"
#include "control/control.h"
#include "history/history.h"
#include "http/http.h"
#include "notice/notices.h"
#include "sys/nss.h"

struct api;

/* A named bundle of resources of the site. */
struct api_profile {
    struct str name, help;
    struct request request;
    struct str gpu_type;
};

struct api_config {
    struct loop *loop;
    struct log *log;
    struct clock clock;
    struct store *store;
    struct control *control;
    struct auth *auth;
    struct nss *nss;                /* borrowed; NULL: the machine's accounts are waited for */
    struct history *history;        /* borrowed; NULL: what machines measure is not kept */
    struct notices *notices;        /* borrowed */
    int64_t notice_idle_ms;         /* a GPU that stands still for so long is told of; 0: none is */
    const char *(*mode)(void *ctx); /* how the engine runs: "root", "rootless", … */
    void *mode_ctx;
    /* Whose agent has this token of the cluster: 1 and its machine; 0: not known yet; -1.  NULL: there are none */
    int (*machine_of)(void *ctx, struct str token, char out[static 65], struct err *e);
    void *machine_ctx;
    const char *const *doctor_argv; /* prints doctor.h's JSON; ends with NULL; borrowed */
    const char *const *signin_argv; /* nightshift-signin; ends with NULL; borrowed */
    const char *signin_socket; /* who listens there runs it as root; may not be there; borrowed */
    const struct ways *ways;   /* how people sign in; borrowed */
    const char *state;         /* folder for the first administrator's code; NULL: none */
    const char *notice;        /* that people accept when they first sign in; NULL: none */
    int64_t session_ms;        /* how long a browser stays signed in */
    bool secure_cookies;       /* people reach us by TLS, also when a request does not say so */
    const char *external_url;  /* how people reach us, without a slash at its end; NULL: not said */
    uint32_t rate_per_s, rate_burst;   /* requests of one user, with whatever token; 0: no limit */
    const struct api_profile *profile; /* borrowed as long as the API lives */
    size_t profiles;
};

struct api *api_new(const struct api_config *c, struct err *e);
struct api *api_free(struct api *a); /* NULL ok; returns NULL */
void api_free_p(struct api **a);
void api_handle(void *api, struct http_request *rq); /* the HTTP server's handler */
void api_stop(struct api *a);                        /* ends the streams that would go on */

void api_print_openapi(struct json_out *w);
void api_print_reference(struct buf *out);   /* Markdown: every route */
void api_print_permissions(struct buf *out); /* Markdown: how far each role reaches with each */

#endif
