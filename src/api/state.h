/* state - what the handlers share; nobody outside includes it. */
#ifndef NS_API_STATE_H
#define NS_API_STATE_H

#include "api/api.h"
#include "api/handlers.h"
#include "base/json.h"
#include "control/lending.h"
#include "sys/filewatch.h"
#include "wire/stream.h"

#define API_BODY_MAX (16u << 20) /* a batch of jobs */
#define API_REPLY_MAX (64u << 20)
#define PAGE_MAX 1000   /* jobs of one answer */
#define RATE_USERS 4096 /* that are told apart */

struct follower;  /* log.c */
struct feed;      /* events.c */
struct bridge;    /* stream.c */
struct doctor;    /* doctor.c */
struct telling;   /* telling.c */
struct verifying; /* audit.c */
struct door;      /* door.c */
struct oauth;     /* auth/oauth.h */

struct api {
    struct api_config config;
    struct oauth *oauth;
    struct rate *rate; /* of requests, by user; NULL: no limit */
    struct filewatch *files;
    struct follower *followers;
    struct feed *feeds;
    struct bridge *bridges;
    struct telling *tellings;
    struct verifying *verifyings;
    struct past *pasts;             /* why.c */
    struct searching *searchings;   /* search.c */
    struct foreseeing *foreseeings; /* foresee.c */
    struct door *door;
    struct idling *idling;         /* idle.c */
    struct commands *commands;     /* commands.c; NULL: none yet */
    struct doctor *doctor;         /* NULL: no check runs */
    struct http_request **waiting; /* for accounts to be told, then handled anew: api.c */
    size_t n_waiting, waiting_cap;
    int watch; /* of control */
    int64_t started_ms;
    bool stopping;
};

/* One request on its way through a handler. */
struct call {
    struct api *api;
    struct http_request *rq;
    struct identity who;
    const struct route *route;
    struct store_scope scope; /* what the caller sees */
    struct store_job job;     /* of a route about a job, without its spec: the caller sees it */
    struct str param[HTTP_PARAMS_MAX];
    const char *field; /* what an error is about, or NULL */
    int status;        /* of a refusal, when it is not the one of its code */
    bool waits;        /* it is handled anew later: no answer */
    uint64_t tell_ms;  /* a refusal that waited is not told before (monotonic), as if all took it */
};

#define NUMBER_MAX UINT64_C(9007199254740991) /* every JSON reader has these exactly */
#define PARAM_TEXT_MAX 200                    /* bytes */
#define FIELD_MAX ((size_t)60)                /* bytes of an unknown name that are told back */
#define REASON_MAX 1000                       /* of a verb, bytes */
#define STREAM_KEY_MAX 64

/* A parameter of a call.  The row says what is checked before the handler runs, and what the
 * documents say of it. */
enum param_kind {
    PARAM_TEXT,   /* of min to max bytes; max 0: PARAM_TEXT_MAX */
    PARAM_NUMBER, /* from min to max */
    PARAM_WORD,   /* one of words, which | separates */
    PARAM_WORDS,  /* some of words, with commas between, or "all" */
    PARAM_HEX,    /* from min to max digits */
    PARAM_PLACE   /* in a log: RUN.SEGMENT.BYTE */
};

struct api_param {
    const char *name;
    enum param_kind kind;
    const char *help;
    uint64_t min, max;
    const char *words;
    bool header; /* not in the query */
    bool required;
};

/* Refusals of a call beyond those that follow from its path, its role and its body. */
enum refusal {
    REFUSES_CONFLICT = 1,
    REFUSES_DENIED = 2,
    REFUSES_NOT_FOUND = 4
};

/* What the first parameter of a path names: whose it is decides who may. */
enum about {
    ABOUT_NOTHING,
    ABOUT_JOB,
    ABOUT_TENANT,
    ABOUT_NODE,
    ABOUT_USER,
    ABOUT_RESERVATION
};

struct route {
    const char *method, *path;
    enum access access;
    api_fn *fn;
    const char *id; /* in OpenAPI: the handler's name */
    const char *summary;
    const char *body;              /* its schema in schemas.json; NULL: none, or bytes */
    const char *answer;            /* likewise; NULL: not JSON, or nothing */
    const struct api_param *param; /* ends with a NULL name; NULL: none */
    const char *type, *other_type; /* of an answer that is not JSON */
    int status;                    /* when it succeeds; 0: 200 */
    enum about about;
    bool lenient;    /* a query that is not known is left alone: the caller is not ours */
    bool makes;      /* what it is about need not be there yet */
    bool tells_more; /* public, and more to whoever says who they are */
    bool body_optional, body_is_bytes;
    bool oauth; /* RFC 6749: forms in, its errors out, parameters that are not known are let be */
    unsigned refuses; /* of enum refusal */
};
extern const struct route api_routes[];
extern const size_t api_routes_n;

/* permissions.c */
void put_reach(struct json_out *w, const char *key, const struct route *r); /* of each role */
const char *route_scope(const struct route *r); /* what a token needs; "": nothing */

/* ---- answers ---- */

void reply_json(struct call *c, int status, const struct buf *body);
int reply_job(struct call *c, int status, uint64_t id, struct err *e) MUST_USE;

/* Does it to c->job, which the caller may do it to.  Texts need not outlive the call. */
int act_on_job(struct call *c, enum control_verb v, struct str reason, struct control_done done,
               struct err *e) MUST_USE;

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

/* An object of these fields; keys NULL: the caller looks at them. */
int read_body(struct call *c, const char *const *keys, size_t n, struct json_doc **out,
              struct err *e) MUST_USE;
/* Of a body that may say why; *out_reason lives as long as the request. */
int read_verb(struct call *c, struct str *out_reason, struct err *e) MUST_USE;
int read_id(struct call *c, uint64_t *out, struct err *e) MUST_USE; /* param 0 */

int check_origin(struct call *c, struct err *e) MUST_USE; /* see origin.h; done for every route */
bool is_secure(const struct call *c);                     /* its cookies are for TLS only */

/* What the table of routes has checked already. */
uint64_t query_number(const struct call *c, const char *key, uint64_t dflt);
bool query_flag(const struct call *c, const char *key);
struct str query_text(const struct call *c, const char *key); /* empty when absent */
bool query_place(const struct call *c, const char *key, struct stream_place *out); /* given? */
int param_check(const struct api_param *p, struct str text, struct err *e) MUST_USE;
int check_params(struct call *c, const struct route *r, struct err *e) MUST_USE; /* params.c */

/* ---- who may (access.c) ---- */

/* Whose thing it is; what is empty does not count. */
struct subject {
    struct str tenant, user, node;
};
bool may(const struct call *c, enum access a, const struct subject *s);
bool may_on_site(const struct call *c,
                 enum access a); /* by a role on the site, not by one in a tenant */
int need(struct call *c, enum access a, const struct subject *s, struct err *e) MUST_USE;
int need_job(struct call *c, enum access a, struct err *e) MUST_USE; /* of c->job */
int authorize(struct call *c, struct err *e) MUST_USE; /* the route's, with what it is about */
void set_scope(struct call *c);
bool sees_tenant(const struct call *c, struct str tenant);
enum role site_role(const struct call *c);
bool notice_pending(const struct call *c); /* the caller has to accept it first (me.c) */
bool may_read_job(const struct call *c, const struct store_job *j); /* all of it, with its output */

/* whole: with its spec, which is for its owner and administrators. */
void put_job(struct json_out *w, const char *key, struct api *a, const struct store_job *j,
             bool whole);

/* What holds a part of a machine. */
struct holder {
    uint64_t id;
    struct str name, user, tenant;
    struct slot slot;
    struct holder *next;
};
/* Those that hold GPUs or CPUs now, by node.  Operators see whose; others see their tenants' names. */
int find_holders(struct call *c, struct holder ***out, size_t nodes, struct err *e) MUST_USE;
void put_holder(struct call *c, struct json_out *w, const struct holder *h); /* its members */

void put_when(struct json_out *w, const char *key, int64_t ms); /* INT64_MAX: null */

void followers_wake(struct api *a); /* a job may have ended */
void followers_free(struct api *a);
void feeds_wake(struct api *a);
void feeds_free(struct api *a);
void streams_end_of(struct api *a, struct str user); /* events, logs, terminals, searches: all */
void feeds_end_of(struct api *a, struct str user);
void followers_end_of(struct api *a, struct str user);
void bridges_end_of(struct api *a, struct str user);
void bridges_free(struct api *a);
void tellings_free(struct api *a);
void verifyings_free(struct api *a); /* those who wait are told so */
void pasts_free(struct api *a);      /* those who wait are told so */
void doctor_stop(struct api *a);     /* those who wait are told so */

#endif
