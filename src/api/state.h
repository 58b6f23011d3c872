/* state - what the handlers share; nobody outside includes it. */
#ifndef NS_API_STATE_H
#define NS_API_STATE_H

#include "api/api.h"
#include "base/json.h"
#include "sys/filewatch.h"

#define API_BODY_MAX (16u << 20) /* a batch of jobs */
#define API_REPLY_MAX (64u << 20)

struct follower; /* log.c */
struct feed;     /* events.c */
struct bridge;   /* stream.c */
struct doctor;   /* doctor.c */

struct api {
    struct api_config config;
    struct filewatch *files;
    struct follower *followers;
    struct feed *feeds;
    struct bridge *bridges;
    struct doctor *doctor; /* NULL: no check runs */
    int watch;             /* of control */
    int64_t started_ms;
    bool stopping;
};

/* One request on its way through a handler. */
struct call {
    struct api *api;
    struct http_request *rq;
    struct identity who;
    struct store_scope scope;
    struct str param[HTTP_PARAMS_MAX];
    const char *field; /* what an error is about, or NULL */
};

typedef int api_fn(struct call *c, struct err *e); /* -1: the error is the answer */

/* What a request's body is; see schema.c. */
enum api_body {
    BODY_NONE,
    BODY_SPEC,
    BODY_OPTIONAL, /* an object that says nothing */
    BODY_SIGNAL,
    BODY_TOKEN,
    BODY_SESSION,
    BODY_FRAMES /* bytes: wire/stream.h */
};

struct api_query {
    const char *name, *schema, *help; /* schema: JSON */
};
#define QUERY_TEXT "{\"type\":\"string\"}"
#define QUERY_NUMBER "{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992}"
#define QUERY_FLAG "{\"type\":\"boolean\"}"

struct route {
    const char *method, *path;
    enum role role;
    api_fn *fn;
    const char *summary;
    enum api_body body;
    const struct api_query *query; /* ends with a NULL name; NULL: none */
    int status;                    /* when it succeeds */
    const char *type;              /* of the answer; NULL: JSON */
};
extern const struct route api_routes[];
extern const size_t api_routes_n;

/* ---- answers ---- */

void reply_json(struct call *c, int status, const struct buf *body);
int reply_job(struct call *c, int status, uint64_t id, struct err *e) MUST_USE;

/* For what is answered when it is durable: keeps the request, not the call. */
struct later {
    struct api *api;
    struct http_request *rq;
    struct identity who;
    struct store_scope scope;
    uint64_t job;
    size_t n;
    const char *state;
    bool batch;
};

/* ---- requests ---- */

int read_body(struct call *c, struct json_doc **out, struct err *e) MUST_USE; /* must be JSON */
int read_id(struct call *c, uint64_t *out, struct err *e) MUST_USE;           /* param 0 */
int query_u64(struct call *c, const char *key, uint64_t max, uint64_t *out, struct err *e) MUST_USE;
int query_bool(struct call *c, const char *key, bool *out, struct err *e) MUST_USE;
int check_query(struct call *c, const struct api_query *known, struct err *e) MUST_USE;

/* The job as the caller may see it; with `mine`, only what the caller may change. */
int find_job(struct call *c, uint64_t id, bool mine, struct store_job *out, struct err *e) MUST_USE;

/* whole: with its spec, which is for its owner and administrators. */
void put_job(struct json_out *w, const char *key, struct api *a, const struct store_job *j,
             bool whole);

/* ---- handlers, by noun ---- */

api_fn api_job_list, api_job_submit, api_job_check, api_job_get, api_job_why, api_job_cancel,
    api_job_hold, api_job_release, api_job_freeze, api_job_thaw, api_job_signal; /* jobs.c */
api_fn api_job_log;                                                              /* log.c */
api_fn api_job_stream, api_job_stream_send;                                      /* stream.c */
api_fn api_node_list, api_node_drain, api_node_resume;                           /* nodes.c */
api_fn api_quota, api_usage;                                                     /* shares.c */
api_fn api_events;                                                               /* events.c */
api_fn api_token_list, api_token_create, api_token_delete, api_session_open, api_session_close,
    api_whoami;                                                                   /* people.c */
api_fn api_server, api_health, api_ready, api_metrics, api_openapi, api_profiles; /* server.c */
api_fn api_doctor;                                                                /* doctor.c */
api_fn api_page, api_page_script, api_page_style;                                 /* page.c */

void followers_wake(struct api *a); /* a job may have ended */
void followers_free(struct api *a);
void feeds_wake(struct api *a);
void feeds_free(struct api *a);
void bridges_free(struct api *a);
void doctor_stop(struct api *a); /* those who wait are told so */

#endif
