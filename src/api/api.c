#include "api/api.h"
#include "api/commands.h"
#include "api/directory.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "api/door.h"
#include "api/foresee.h"
#include "api/notices.h"
#include "api/origin.h"
#include "api/search.h"
#include "auth/oauth.h"
#include "base/parse.h"
#include "http/rate.h"
#include "sys/weak.h"

static void on_account_told(void *ctx);

static void on_commit(void *ctx)
{
    struct api *a = ctx;
    feeds_wake(a);
    followers_wake(a);
}

struct api *api_new(const struct api_config *c, struct err *e)
{
    AUTO(api_free_p) struct api *a = xcalloc(1, sizeof *a);
    a->config = *c;
    a->watch = -1;
    a->started_ms = clock_now_ms(&c->clock);
    a->oauth = oauth_new();
    if (c->rate_per_s)
        a->rate = rate_new(c->rate_per_s, MAX(c->rate_burst, 1u), RATE_USERS);
    a->files = filewatch_new(c->loop, e);
    if (!a->files)
        return NULL;
    a->watch = control_watch(c->control, on_commit, a);
    if (directory_load(a, e) < 0 || commands_load(a, e) < 0 || door_open(a, e) < 0)
        return NULL;
    a->idling = idling_new(a);
    if (c->nss)
        nss_listen(c->nss, on_account_told, a);
    if (c->notices) {
        notices_set_tail(c->notices, notice_tail, a);
        notices_begin(c->notices);
    }
    return TAKE(a);
}

void api_stop(struct api *a)
{
    a->stopping = true;
    doctor_stop(a);
    door_close(a);
    a->idling = idling_free(a->idling);
    if (a->config.notices) {
        notices_stop_tries(a->config.notices);
        notices_set_tail(a->config.notices, NULL, NULL);
    }
    followers_free(a);
    feeds_free(a);
    bridges_free(a);
    tellings_free(a);
    verifyings_free(a);
    pasts_free(a);
    searchings_free(a);
    foreseeings_free(a);
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    api_stop(a);
    if (a->watch >= 0)
        control_unwatch(a->config.control, a->watch);
    filewatch_free(a->files);
    oauth_free(a->oauth);
    commands_free(a);
    rate_free(a->rate);
    free(a->waiting); /* whoever waits there is answered no more */
    free(a);
    return NULL;
}

void api_free_p(struct api **a)
{
    *a = api_free(*a);
}

/* ---- requests ---- */

static bool is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    return type && strncasecmp(type, json, n) == 0 && strchr("; \t", type[n]);
}

int read_body(struct call *c, const char *const *keys, size_t n, struct json_doc **out,
              struct err *e)
{
    struct str body = http_body(c->rq);
    /* A form of another site can send text, but not this type: a cookie alone must not do. */
    if (body.n && !is_json_type(http_header(c->rq, "Content-Type"))) {
        c->field = "Content-Type";
        c->status = 415;
        err_set(e, ERR_INVALID, "header 'Content-Type': the body must be application/json");
        return err_hint(e, "send the header Content-Type: application/json");
    }
    AUTO(json_free_p) struct json_doc *d = json_read(body.n ? body : STR("{}"), e);
    if (!d)
        return -1;
    if (keys && json_only(json_root(d), keys, n, e) < 0) {
        struct str odd = json_odd_key(json_root(d), keys, n);
        if (!odd.p)
            return err_wrap(e, "the body");
        c->field = arena_printf(http_arena(c->rq), "%.*s", (int)MIN(odd.n, FIELD_MAX), odd.p);
        return -1;
    }
    *out = TAKE(d);
    return 0;
}

int read_verb(struct call *c, struct str *out_reason, struct err *e)
{
    static const char *const keys[] = { "reason" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct str reason = { 0 };
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "reason";
    if (json_get_str(json_root(d), "reason", REASON_MAX, &reason, e) < 0)
        return -1;
    c->field = NULL;
    *out_reason = (struct str){ arena_strndup(http_arena(c->rq), reason.p, reason.n), reason.n };
    return 0;
}

int read_id(struct call *c, uint64_t *out, struct err *e)
{
    c->field = "id";
    if (parse_u64(c->param[0], NUMBER_MAX, out, e) < 0) {
        err_set(e, ERR_INVALID, "id: '%.*s' is not the number of a job",
                (int)MIN(c->param[0].n, (size_t)60), c->param[0].p);
        return err_hint(e, "numbers are in the list: GET /v1/jobs");
    }
    c->field = NULL;
    return 0;
}

/* ---- who ---- */

static const char *bearer_of(const struct call *c)
{
    const char *header = http_header(c->rq, "Authorization");
    return header && strncmp(header, "Bearer ", 7) == 0 ? header + 7 : NULL;
}

/* A pod's token can send what its machine measures, and do nothing else. */
static int find_agent(struct call *c, struct str token, struct err *e)
{
    struct identity who = {
        .uid = UINT32_MAX, .via = VIA_CLUSTER, .scopes = TOKEN_REPORT, .tenants_only = true
    };
    int rc = c->api->config.machine_of(c->api->config.machine_ctx, token, who.machine, e);
    if (rc == 0) {
        c->status = 503;
        http_add_header(c->rq, "Retry-After", "1");
    }
    if (rc <= 0)
        return -1;
    snprintf(who.user, sizeof who.user, "agent of %s", who.machine); /* nobody's name has a blank */
    c->who = who;
    return 0;
}

/* A request changes nothing before it is known who asks, so it can begin anew. */
static int wait_for_account(struct call *c)
{
    struct api *a = c->api;
    vec_grow(a->waiting, a->n_waiting, a->waiting_cap);
    a->waiting[a->n_waiting++] = c->rq;
    c->waits = true;
    return -1;
}

static void on_account_told(void *ctx)
{
    struct api *a = ctx;
    struct http_request **waited = TAKE(a->waiting);
    size_t n = a->n_waiting;
    a->n_waiting = a->waiting_cap = 0;
    for (size_t i = 0; i < n; i++)
        api_handle(a, waited[i]);
    free(waited);
}

/* By the kernel's word for the uid, and the machine's for the name.  Root and whom we run as need no name: whoever
 * mends a directory gets in. */
static int find_local(struct call *c, uint32_t uid, struct err *e)
{
    struct api *a = c->api;
    struct passwd_account found;
    struct auth_local who = { .uid = uid };
    who.of_jobs = control_uid_of_jobs(a->config.control, uid, &who.owner);
    int known = uid == 0 || uid == geteuid() ? NSS_NONE : nss_by_uid(a->config.nss, uid, &found, e);
    if (known == NSS_LATER)
        return wait_for_account(c);
    if (known == NSS_AWAY)
        return -1;
    who.name = known == NSS_HERE ? found.name : NULL;
    return auth_local(a->config.auth, &who, &c->who, e);
}

static int find_caller(struct call *c, struct err *e)
{
    struct api *a = c->api;
    const struct http_peer *peer = http_peer(c->rq);
    const char *bearer = bearer_of(c), *cookie = http_cookie(c->rq, "nightshift");
    int64_t now_ms = clock_now_ms(&a->config.clock);
    if (bearer && c->route->access == ACCESS_REPORT && a->config.machine_of &&
        strncmp(bearer, "ey", 2) == 0)
        return find_agent(c, str_of(bearer), e);
    if (bearer)
        return auth_token(a->config.auth, str_of(bearer), now_ms, &c->who, e);
    if (peer->local)
        return find_local(c, peer->uid, e);
    if (cookie)
        return auth_session(a->config.auth, str_of(cookie), now_ms, &c->who, e);
    err_set(e, ERR_DENIED, "this needs a token: who is calling?");
    return err_hint(e, "sign in: nightshift login; or set NIGHTSHIFT_TOKEN (the header "
                       "Authorization: Bearer TOKEN) to one that was made on the machine itself: "
                       "nightshift tokens create NAME");
}

static int identify(struct call *c, struct err *e)
{
    if (find_caller(c, e) < 0)
        return -1;
    if (c->route->fn == api_job_submit &&
        control_asks_for(c->api->config.control, str_of(c->who.user)))
        return wait_for_account(c);
    const char **tenant = arena_array(http_arena(c->rq), const char *, c->who.tenants + 1);
    for (size_t i = 0; i < c->who.tenants; i++) /* the key may be gone before the answer */
        tenant[i] = arena_printf(http_arena(c->rq), "%s", c->who.tenant[i]);
    c->who.tenant = tenant;
    if (c->who.via == VIA_TOKEN || c->who.via == VIA_SESSION)
        auth_used_key(c->api->config.auth, c->who.via == VIA_TOKEN ? KEY_TOKEN : KEY_SESSION,
                      c->who.hash, clock_now_ms(&c->api->config.clock));
    session_renew(c);
    return 0;
}

/* A request that changes something, and that a browser's cookie may vouch for: was it meant? */
int check_origin(struct call *c, struct err *e)
{
    const char *method = http_method(c->rq);
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || http_peer(c->rq)->local ||
        bearer_of(c) || !http_cookie(c->rq, "nightshift"))
        return 0;
    struct origin_facts f = { .method = method,
                              .origin = http_header(c->rq, "Origin"),
                              .fetch_site = http_header(c->rq, "Sec-Fetch-Site"),
                              .referer = http_header(c->rq, "Referer"),
                              .host = http_header(c->rq, "Host"),
                              .external_url = c->api->config.external_url,
                              .secure = http_peer(c->rq)->secure,
                              .json = is_json_type(http_header(c->rq, "Content-Type")) };
    return origin_check(&f, e);
}

/* A user has one allowance, however many tokens, sessions and machines.  Root has no limit: whoever keeps the
 * machine running must get through. */
static int check_rate(struct call *c, struct err *e)
{
    struct api *a = c->api;
    uint64_t wait_ms = a->rate && !c->who.root ? rate_take(a->rate, str_hash(str_of(c->who.user)),
                                                           clock_mono_ns() / 1000000)
                                               : 0;
    if (wait_ms == 0)
        return 0;
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)(wait_ms + 999) / 1000);
    http_add_header(c->rq, "Retry-After", seconds);
    c->status = 429;
    err_set(e, ERR_UNAVAILABLE, "too many requests; '%s' may send %u a second", c->who.user,
            a->config.rate_per_s);
    return err_hint(e, "wait %s s and try again", seconds);
}

bool is_secure(const struct call *c)
{
    return c->api->config.secure_cookies || http_peer(c->rq)->secure;
}

/* ---- dispatch ---- */

/* Of "/v1/jobs/check" and "/v1/jobs/:id" the first is meant by its own name, whatever the method. */
static bool is_meant(const struct route *r, struct str path, struct str param[HTTP_PARAMS_MAX])
{
    size_t n;
    for (size_t i = 0; strchr(r->path, ':') && i < api_routes_n; i++)
        if (str_is(path, api_routes[i].path))
            return false;
    return http_path_match(r->path, path, param, &n);
}

static const struct route *match(struct call *c, bool *out_other_method)
{
    struct str path = str_of(http_path(c->rq));
    const char *method = http_method(c->rq);
    bool head = strcmp(method, "HEAD") == 0;
    *out_other_method = false;
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        if (!is_meant(r, path, c->param))
            continue;
        if (strcmp(r->method, head ? "GET" : method) == 0)
            return r;
        *out_other_method = true;
    }
    return NULL;
}

static void add_allow(struct call *c)
{
    AUTO(buf_free) struct buf allow = BUF(100);
    struct str param[HTTP_PARAMS_MAX];
    for (size_t i = 0; i < api_routes_n; i++)
        if (is_meant(&api_routes[i], str_of(http_path(c->rq)), param))
            buf_printf(&allow, "%s, ",
                       strcmp(api_routes[i].method, "GET") == 0 ? "GET, HEAD"
                                                                : api_routes[i].method);
    buf_addz(&allow, "OPTIONS");
    http_add_header(c->rq, "Allow", buf_str(&allow).p);
}

static void refuse(struct call *c, const struct err *e)
{
    if (e->code == ERR_INTERNAL)
        log_event(c->api->config.log, LOG_ERROR_, "api.internal", "path=%s why=%s",
                  http_path(c->rq), e->msg);
    if (c->status)
        http_reply_status(c->rq, c->status, e, c->field);
    else
        http_reply_error(c->rq, e, c->field);
}

/* Looking at oneself, accepting and leaving are possible all the same. */
static int notice_is_in_the_way(struct call *c, struct err *e)
{
    const struct route *r = c->route;
    if (r->access == ACCESS_PUBLIC || r->access == ACCESS_SELF_LOOK || r->fn == api_notice_accept ||
        r->fn == api_session_close_all || !notice_pending(c))
        return 0;
    err_set(e, ERR_DENIED, "the notice has not been accepted: %.300s", c->api->config.notice);
    return err_hint(e, "accept it on the page /signin");
}

static int run(struct call *c, struct err *e)
{
    bool other_method;
    const struct route *r = match(c, &other_method);
    if (!r && other_method) {
        add_allow(c);
        if (strcmp(http_method(c->rq), "OPTIONS") == 0) {
            http_reply(c->rq, 204, NULL, STR(""));
            return 0;
        }
        err_set(e, ERR_INVALID, "%s is not a method of this path", http_method(c->rq));
        err_hint(e, "see Allow, or GET /v1/openapi.json");
        http_reply_status(c->rq, 405, e, NULL);
        return 0;
    }
    if (!r) {
        err_set(e, ERR_NOT_FOUND, "there is nothing at %.200s", http_path(c->rq));
        return err_hint(e, "all calls: GET /v1/openapi.json");
    }
    c->route = r;
    if (check_origin(c, e) < 0)
        return -1;
    if (r->access != ACCESS_PUBLIC) {
        if (identify(c, e) < 0) {
            if (c->waits)
                return 0;
            if (e->code == ERR_UNAVAILABLE) /* another token would not help */
                return -1;
            http_add_header(c->rq, "WWW-Authenticate", "Bearer");
            http_reply_status(c->rq, c->status ? c->status : 401, e, NULL);
            return 0;
        }
        if (check_rate(c, e) < 0)
            return -1;
        set_scope(c);
    }
    struct err unknown;
    if (r->tells_more && identify(c, &unknown) == 0)
        set_scope(c);
    if (c->waits)
        return 0;
    if (notice_is_in_the_way(c, e) < 0)
        return -1;
    if ((!r->oauth && check_params(c, r, e) < 0) ||
        (r->access != ACCESS_PUBLIC && authorize(c, e) < 0))
        return -1;
    return r->fn(c, e);
}

void api_handle(void *api, struct http_request *rq)
{
    struct call c = { .api = api, .rq = rq };
    struct err e = { 0 };
    if (run(&c, &e) < 0)
        refuse(&c, &e);
}

/* ---- answers ---- */

void reply_json(struct call *c, int status, const struct buf *body)
{
    struct err e;
    if (buf_check(body, &e) < 0)
        http_reply_error(c->rq, &e, NULL);
    else
        http_reply(c->rq, status, "application/json", buf_str(body));
}
