/* asking - the API on a control plane with a simulated engine, asked in one process, for tests.
 *
 * Time stands still unless a test lets it pass.  A question is answered before ask() returns, however late the
 * handler answers: the loop runs until then, never for a time.  After what changes something the control plane
 * and the engine have come to rest.
 *
 *   ask(&k, "ana", "GET /v1/jobs?limit=3")
 *   ask_with(&k, "root", "PUT /v1/tenants/vision", "{'help':'cameras'}")      ' stands for "
 *
 * Who asks: NULL nobody, over TCP; "root" on the unix socket, where whoever asking_account() named is known too;
 * "nst_…" whoever has that token; "nss_…" a browser with that session; else a person, with a token of theirs.
 */
#ifndef NS_TESTS_LIB_ASKING_H
#define NS_TESTS_LIB_ASKING_H

#include "api/api.h"
#include "base/json.h"
#include "tests/lib/asked.h"
#include "tests/lib/controlling.h"

struct answer {
    int status;       /* 0: not answered yet */
    const char *type; /* "" when there was no body */
    const char *text; /* the body */
    size_t n;
    const struct json *json; /* NULL when it is not JSON */
    struct http_request *rq;
    struct json_doc *doc;
    struct answer *next;
};

/* What a site is like; all of it may be left out. */
struct asking_site {
    const struct sim_config *sim; /* four GPUs on desk1 */
    const struct policy *policy;
    const struct control_tenant_def *tenant; /* of the settings file; none */
    size_t tenants;
    const struct control_pool_def *pool; /* likewise */
    size_t pools;
    void (*people)(struct people *p); /* what the settings file says of them */
    const char *default_tenant;       /* of whoever is in no other; none */
    const char *signin;               /* the section of the settings file, with ' for " */
    struct api_config api;            /* what is not said is filled in */
    const char *mail_from;            /* mail can be sent, to nobody who listens */
    struct control_keep keep;
    bool no_history;
};

struct asking {
    struct controlling t; /* t.now_ms is the time; t.c the control plane */
    struct asking_site site;
    struct auth *auth;
    struct history *history;
    struct notices *notices;
    struct ways *ways;
    struct api *api;
    struct engine_ops ops; /* the engine's, with a folder for logs */
    char logs[160];
    const char *send_argv[2], *signin_argv[2];
    struct answer *answers; /* all of them: strings of answers live until asking_end */
    struct asking_key *keys;
    struct loop_watch *look, *late;
    bool is_late;
    unsigned serial;
};

void asking_begin(struct asking *k, const struct asking_site *site); /* NULL: all left out */
void asking_end(struct asking *k);

/* As kill -9 and a new start: what is not on the disk is gone; so are requests and streams. */
void asking_again(struct asking *k);
void asking_wait(struct asking *k, int64_t ms); /* time passes, settling at each event */
void asking_settle(struct asking *k);
/* The loop runs until it is so: for what timers of the loop itself bring. */
void asking_until(struct asking *k, bool (*is_so)(struct asking *k));

/* ---- people and things ---- */

void asking_tenant(struct asking *k, const char *name, const char *body);
/* Makes the person where needed; role of the tenant, or with tenant NULL on the site. */
void asking_person(struct asking *k, const char *user, const char *tenant, const char *role);
/* A new token; body as of POST /v1/tokens without user and name. */
const char *asking_token(struct asking *k, const char *user, const char *body);
/* A browser's session, by a token of that person. */
const char *asking_session(struct asking *k, const char *user);
uint64_t asking_submit(struct asking *k, const char *who, const char *json); /* must be taken */
const char *asking_state(struct asking *k, uint64_t job);
/* Adds to the output of a task, as its supervisor would. */
void asking_output(struct asking *k, struct task_id task, const char *text);
const char *say(struct asking *k, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- asking ---- */

struct answer *ask(struct asking *k, const char *who, const char *request);
struct answer *ask_with(struct asking *k, const char *who, const char *request, const char *body);

/* All that can be said of a request. */
struct question {
    const char *who, *request; /* "GET /v1/jobs" */
    const char *body;          /* with ' for ", as JSON; NULL: none */
    const char *bytes;         /* instead: as it is */
    size_t n;                  /* of bytes; 0: up to its NUL */
    const char *type;          /* "": without one */
    struct asked_header header[ASKED_HEADERS_MAX - 4];
    const char *address; /* "203.0.113.9:40000" */
    bool secure;
    uint32_t uid; /* on the unix socket, when not 0 */
};
struct answer *ask_so(struct asking *k, const struct question *q);

/* Not waiting: asked, and maybe not answered.  answer_refresh has what came since. */
struct answer *ask_begin(struct asking *k, const struct question *q);
void answer_wait(struct asking *k, struct answer *a);
/* Of streams: until the text has come, until it is over; going away. */
const char *hear(struct asking *k, struct answer *a, const char *text);
const char *hear_all(struct asking *k, struct answer *a);
void leave(struct asking *k, struct answer *a);
const char *header_of(const struct answer *a, const char *name); /* "" when absent */

/* ---- looking at answers; a path is of keys and numbers: "jobs.0.id" ---- */

const struct json *at(const struct answer *a, const char *path); /* NULL when absent */
const char *at_str(const struct answer *a, const char *path);    /* also "(none)", "null", "true" */
int64_t at_int(const struct answer *a, const char *path);        /* the test fails without one */
size_t at_len(const struct answer *a, const char *path);
/* The element of an array whose member has this text; NULL when none has. */
const struct json *at_where(const struct answer *a, const char *array, const char *member,
                            const char *text);
const char *text_of(const struct json *obj, const char *path); /* as at_str, from a value on */
int64_t int_of(const struct json *obj, const char *path);

struct refusal_want {
    int status;
    const char *code;  /* NULL: does not matter */
    const char *field; /* NULL: none; "*": does not matter */
    const char *words; /* of the detail */
};
#define CHECK_STATUS(a, want) check_status(__FILE__, __LINE__, (a), (want))
#define CHECK_REFUSED(a, ...)                                                                      \
    check_refused(__FILE__, __LINE__, (a), &(struct refusal_want){ __VA_ARGS__ })
#define CHECK_HAS(text, words) check_has(__FILE__, __LINE__, (text), (words))
struct answer *check_status(const char *file, int line, struct answer *a, int want);
void check_refused(const char *file, int line, struct answer *a, const struct refusal_want *w);
void check_has(const char *file, int line, const char *text, const char *words);

/* Rows of what is refused: each is asked by `who`, and must have written nothing down. */
struct bad {
    const char *request, *body;
    int status;
    const char *field, *words;
};
#define CHECK_BAD(k, who, rows) check_bad((k), (who), (rows), ARRAY_LEN(rows))
void check_bad(struct asking *k, const char *who, const struct bad *row, size_t n);

#endif
