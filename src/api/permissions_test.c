/* Every call as every role, about one's own things and those of others: allowed or refused as the table says.
 *
 * The calls come from the table of routes and how far each role reaches from what the API prints, so a new call
 * without a row in `examples` fails.  A cell is one call by one person about one thing: their own, of their tenant,
 * or of others.  Allowed is every answer but 401, 403 and 404; refused is one of these.  `anchors` are cells that
 * are written here a second time, by hand: a table that says something else fails. */
#include <stdio.h>

#include "api/state.h"
#include "tests/lib/asking.h"

/* ---- people ---- */

struct body_of_people { /* name, role on the site, role in `ours` (NULL: none), owns desk1 */
    const char *name, *site, *place;
    bool owns;
};
static const struct body_of_people people[] = {
    { "none", "none", NULL, false },         { "owner", "none", NULL, true },
    { "viewer", "none", "viewer", false },   { "watcher", "viewer", NULL, false },
    { "member", "none", "member", false },   { "lead", "none", "lead", false },
    { "operator", "operator", NULL, false }, { "admin", "admin", NULL, false },
    { "narrow", "admin", "member", true }, /* an administrator's token that is good for `ours` only */
};
#define ALL_SCOPES "'scopes':['read','jobs','manage','report']"

struct somebody {
    const char *name, *token;
    uint64_t job;
};

struct world {
    struct asking k;
    struct somebody at[16];
    size_t n;
    unsigned serial;
    const char *fresh; /* what {fresh} stands for */
};

static struct somebody *find(struct world *w, const char *name)
{
    for (size_t i = 0; name && i < w->n; i++)
        if (strcmp(w->at[i].name, name) == 0)
            return &w->at[i];
    test_fail(__FILE__, __LINE__, "nobody is called %s", name ? name : "nothing");
}

static void add(struct world *w, const char *name, const char *tenant, const char *token)
{
    struct asking *k = &w->k;
    asking_person(k, name, tenant, "member");
    w->at[w->n] = (struct somebody){ .name = name, .token = asking_token(k, name, token) };
    w->at[w->n].job = asking_submit(k, w->at[w->n].token,
                                    say(k,
                                        "{'command':['sleep','99999'],'tenant':'%s',"
                                        "'resources':{'cpus':1,'mem':'64Mi'}}",
                                        tenant));
    CHECK_STR(asking_state(k, w->at[w->n].job), "running");
    w->n++;
}

/* Everybody was a member once, and has a job from then. */
static void make_people(struct world *w)
{
    struct asking *k = &w->k;
    add(w, "mate", "ours", ALL_SCOPES);
    add(w, "stranger", "theirs", ALL_SCOPES);
    for (size_t i = 0; i < ARRAY_LEN(people); i++)
        add(w, people[i].name, "ours",
            strcmp(people[i].name, "narrow") == 0 ? ALL_SCOPES ",'tenants':['ours']" : ALL_SCOPES);
    for (size_t i = 0; i < ARRAY_LEN(people); i++) {
        const char *name = people[i].name;
        asking_person(k, name, NULL, people[i].site);
        if (people[i].place)
            asking_person(k, name, "ours", people[i].place);
        else
            CHECK_STATUS(ask(k, "root", say(k, "DELETE /v1/tenants/ours/members/%s", name)), 200);
        if (people[i].owns)
            CHECK_STATUS(ask(k, "root", say(k, "PUT /v1/nodes/desk1/owners/%s", name)), 204);
    }
    CHECK_STATUS(ask(k, "root", "PUT /v1/nodes/pc1/owners/stranger"), 204);
}

static void begin(struct world *w)
{
    static const char *const node[] = { "pc1" };
    static const struct control_pool_def pool = { .name = STR("desks"), .node = node, .nodes = 1 };
    static const char *const doctor[] = { "/bin/echo", "{\"checks\":[]}", NULL };
    *w = (struct world){ 0 };
    asking_begin(&w->k, &(struct asking_site){
                            .pool = &pool, .pools = 1, .api = { .doctor_argv = doctor } });
    struct asking *k = &w->k;
    asking_tenant(k, "ours", NULL);
    asking_tenant(k, "theirs", NULL);
    make_people(w);
    for (int i = 0; i < 2; i++) {
        const char *tenant = i ? "theirs" : "ours";
        CHECK_STATUS(ask_with(k, "root", say(k, "PUT /v1/reservations/of-%s", tenant),
                              say(k, "{'tenant':'%s','nodes':['desk1'],'for':'1h','from_ms':%lld}",
                                  tenant, (long long)k->t.now_ms + (i + 1) * 86400000LL)),
                     200);
    }
}

/* ---- examples ---- */

typedef void first_fn(struct world *w, const char *who, const char *thing);

static void by_root(struct world *w, const char *request, const char *body)
{
    struct answer *a = ask_with(&w->k, "root", request, body);
    if (a->status / 100 != 2)
        test_fail(__FILE__, __LINE__, "%s: %d %s", request, a->status, a->text);
}

/* One below ours or theirs that is there to be removed; the lead of the upper one leads it too. */
static void below(struct world *w, const char *who, const char *thing)
{
    (void)who;
    by_root(w, say(&w->k, "PUT /v1/tenants/%s", w->fresh), say(&w->k, "{'parent':'%s'}", thing));
}

static void guest(struct world *w, const char *who, const char *thing)
{
    (void)who;
    by_root(w, say(&w->k, "PUT /v1/tenants/%s/members/%s", thing, w->fresh), "{}");
}

/* Oneself is not removed: everybody is needed again. */
static void person(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    by_root(w, say(&w->k, "PUT /v1/users/%s", w->fresh), "{}");
}

static void token(struct world *w, const char *who, const char *thing)
{
    by_root(
        w, "POST /v1/tokens",
        say(&w->k, "{'user':'%s','name':'%s'}", strcmp(thing, "own") == 0 ? who : thing, w->fresh));
}

static void owner(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    by_root(w, "PUT /v1/nodes/desk1/owners/mate", NULL);
}

static void pool(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    by_root(w, say(&w->k, "PUT /v1/pools/%s", w->fresh), "{'nodes':[]}");
}

static void reservation(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    by_root(w, say(&w->k, "PUT /v1/reservations/%s", w->fresh),
            say(&w->k, "{'tenant':'theirs','nodes':['desk1'],'for':'1h','from_ms':%lld}",
                (long long)w->k.t.now_ms + (200 + (long long)w->serial) * 3600000));
}

/* A command line that waits for somebody's yes; {fresh} is its code. */
static void login(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    struct answer *a = ask_with(&w->k, "root", "POST /v1/login", "{'name':'laptop'}");
    w->fresh = at_str(CHECK_STATUS(a, 200), "user_code");
}

static void poll(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    struct answer *a = ask_with(&w->k, "root", "POST /v1/login", "{'name':'laptop'}");
    w->fresh = at_str(CHECK_STATUS(a, 200), "device_code");
}

static void a_session(struct world *w, const char *who, const char *thing)
{
    (void)thing;
    w->fresh = find(w, who ? who : "mate")->token;
}

#define URIS "{'redirect_uris':['https://hub.example.org/back']}"
static void client(struct world *w, const char *who, const char *thing)
{
    (void)who;
    (void)thing;
    by_root(w, say(&w->k, "PUT /v1/clients/%s", w->fresh), URIS);
}

#define JOBS "own", "mate", "stranger"
#define TENANTS "ours", "theirs"
#define PERSONS "own", "mate"
#define HELD                                                                                       \
    "{'command':['true'],'held':true,'resources':{'cpus':1,'mem':'64Mi'},'tenant':'{thing}'}"
#define KEY "0123456789abcdef"
#define PASSWORD "correct horse battery"

/* In paths and bodies: {who} asks, {thing} it is about, {person} it is about, {job} of that person, {fresh} a
 * name that nothing had, {hours} from now on.  `first` makes what the call is to find.  `allowed`: whoever may is
 * told so by a refusal with these words. */
static const struct example {
    const char *id, *path, *body;
    const char *things[4];
    first_fn *first;
    const char *allowed;
} examples[] = {
    { "job_list", "/v1/jobs", .body = NULL },
    { "job_submit", "/v1/jobs", HELD, .things = { TENANTS } },
    { "job_check", "/v1/jobs/check", HELD, .things = { TENANTS } },
    { "job_get", "/v1/jobs/{job}", .things = { JOBS } },
    { "job_why", "/v1/jobs/{job}/why", .things = { JOBS } },
    { "job_events", "/v1/jobs/{job}/events", .things = { JOBS } },
    { "job_history", "/v1/jobs/{job}/history", .things = { JOBS } },
    { "job_log", "/v1/jobs/{job}/log", .things = { JOBS } },
    { "log_search", "/v1/logs?grep=x", .body = NULL },
    { "job_stream", "/v1/jobs/{job}/stream?key=" KEY, .things = { JOBS } },
    { "job_stream_send", "/v1/jobs/{job}/stream/" KEY "?n=1", "bytes", .things = { JOBS },
      .allowed = "no such stream" },
    { "job_hold", "/v1/jobs/{job}/hold", "{}", .things = { JOBS } },
    { "job_release", "/v1/jobs/{job}/release", "{}", .things = { JOBS } },
    { "job_freeze", "/v1/jobs/{job}/freeze", "{}", .things = { JOBS } },
    { "job_thaw", "/v1/jobs/{job}/thaw", "{}", .things = { JOBS } },
    { "job_signal", "/v1/jobs/{job}/signal", "{'signal':'CONT'}", .things = { JOBS } },
    { "job_cancel", "/v1/jobs/{job}/cancel", "{}", .things = { JOBS } },
    { "job_act", "/v1/jobs/act", "{'verb':'hold','jobs':[{job}]}", .things = { JOBS } },
    { "node_list", "/v1/nodes", .body = NULL },
    { "node_drain", "/v1/nodes/desk1/drain", "{}", .things = { "machine" } },
    { "node_resume", "/v1/nodes/desk1/resume", "{}", .things = { "machine" } },
    { "node_load", "/v1/nodes/desk1/load", .body = NULL },
    { "node_history", "/v1/nodes/desk1/history", .body = NULL },
    { "node_report", "/v1/nodes/desk1/report", "bytes",
      .things = { "machine" } }, /* it is told that this is none */
    { "node_command", "/v1/nodes/desk1/commands", "{'what':'pause','task':'0.1.0'}",
      .things = { "machine" }, .allowed = "no task" },
    { "node_commands", "/v1/nodes/desk1/commands", .things = { "machine" } },
    { "gpu_list", "/v1/gpus", .body = NULL },
    { "pool_list", "/v1/pools", .body = NULL },
    { "pool_get", "/v1/pools/desks", .body = NULL },
    { "pool_put", "/v1/pools/{fresh}", "{}", .first = pool },
    { "pool_delete", "/v1/pools/{fresh}", .first = pool },
    { "pool_open", "/v1/pools/{fresh}/open", "{'for':'1h'}", .first = pool },
    { "pool_close", "/v1/pools/{fresh}/close", "{'for':'1h'}", .first = pool },
    { "pool_regular", "/v1/pools/{fresh}/regular", "{}", .first = pool },
    { "reservation_list", "/v1/reservations", .body = NULL },
    { "reservation_get", "/v1/reservations/of-{thing}", .things = { TENANTS } },
    { "reservation_put", "/v1/reservations/{fresh}", "{'for':'30m'}", .first = reservation },
    { "reservation_delete", "/v1/reservations/{fresh}", .first = reservation },
    { "tenant_list", "/v1/tenants", .body = NULL },
    { "tenant_get", "/v1/tenants/{thing}", .things = { TENANTS } },
    { "tenant_put", "/v1/tenants/{thing}", "{'help':'x'}", .things = { TENANTS } },
    { "tenant_delete", "/v1/tenants/{fresh}", .things = { TENANTS }, .first = below },
    { "member_put", "/v1/tenants/{thing}/members/guest", "{'role':'viewer'}",
      .things = { TENANTS } },
    { "member_delete", "/v1/tenants/{thing}/members/{fresh}", .things = { TENANTS },
      .first = guest },
    { "user_list", "/v1/users", .body = NULL },
    { "user_get", "/v1/users/{person}", .things = { PERSONS } },
    { "user_put", "/v1/users/{person}", "{'mail':'x@y'}", .things = { PERSONS } },
    { "user_delete", "/v1/users/{fresh}", .things = { "mate" }, .first = person },
    { "owner_put", "/v1/nodes/desk1/owners/mate", .first = owner },
    { "owner_delete", "/v1/nodes/desk1/owners/mate", .first = owner },
    { "export", "/v1/apply", .body = NULL },
    { "apply", "/v1/apply", .body = "{'dry_run':true,'tenants':{'ours':{}}}" },
    { "quota", "/v1/quota", .body = NULL },
    { "usage", "/v1/usage", .body = NULL },
    { "fairness", "/v1/fairness", .body = NULL },
    { "profiles", "/v1/profiles", .body = NULL },
    { "events", "/v1/events", .body = NULL },
    { "journal", "/v1/journal", .body = NULL },
    { "audit_list", "/v1/audit", .body = NULL },
    { "audit_verify", "/v1/audit/verify", .body = NULL },
    { "audit_export", "/v1/audit/export", .body = NULL },
    { "token_list", "/v1/tokens", .body = NULL },
    { "token_create", "/v1/tokens", "{'name':'{fresh}','scopes':['manage'],'user':'{person}'}",
      .things = { PERSONS } },
    { "token_delete", "/v1/tokens/{fresh}?user={person}", .things = { PERSONS }, .first = token },
    { "token_give_up", "/v1/token", .body = NULL },
    { "signin", "/v1/signin", .body = NULL },
    { "session_open", "/v1/session", "{'token':'{fresh}'}", .first = a_session },
    { "session_close", "/v1/session", .body = NULL },
    { "session_list", "/v1/sessions", .body = NULL },
    { "session_close_all", "/v1/sessions", .body = NULL },
    { "setup", "/v1/setup", "{'code':'x','user':'x','password':'" PASSWORD "'}",
      .allowed = "code" },
    { "user_password", "/v1/users/{person}/password", "{'password':'" PASSWORD "'}",
      .things = { PERSONS } },
    { "notice_accept", "/v1/notice", .body = "{}" },
    { "notices_get", "/v1/notices", .body = NULL },
    { "notices_put", "/v1/notices", .body = "{}" },
    { "notices_test", "/v1/notices/test", .body = "{'way':'mail'}" },
    { "notices_log", "/v1/notices/log", .body = NULL },
    { "sso", "/v1/signin/sso", .allowed = "sign" }, /* whoever comes so far hears: no provider */
    { "sso_back", "/v1/signin/sso/back?state=x&code=x", .allowed = "sign" },
    { "login", "/v1/login", .body = "{}" },
    { "login_poll", "/v1/login/poll", "{'device_code':'{fresh}'}", .first = poll },
    { "login_get", "/v1/login/{fresh}", .first = login },
    /* People say yes in a browser: a token that may ask is told so. */
    { "login_approve", "/v1/login/{fresh}/approve", "{}", .first = login,
      .allowed = "a token cannot say yes" },
    { "login_deny", "/v1/login/{fresh}/deny", "{}", .first = login },
    { "client_list", "/v1/clients", .body = NULL },
    { "client_put", "/v1/clients/{fresh}", URIS, .first = client },
    { "client_delete", "/v1/clients/{fresh}", .first = client },
    /* Anybody may come here; what they bring is looked at then. */
    { "oauth_authorize",
      "/oauth/authorize?client_id=none&response_type=code&redirect_uri=x&code_challenge=x&"
      "code_challenge_method=S256&state=x",
      .allowed = "" },
    { "oauth_token", "/oauth/token", "{'grant_type':'authorization_code'}", .allowed = "" },
    { "oauth_userinfo", "/oauth/userinfo", .allowed = "a token that /oauth/token gave" },
    { "oauth_metadata", "/.well-known/oauth-authorization-server", .allowed = "external_url" },
    { "whoami", "/v1/whoami", .body = NULL },
    { "default_tenant_put", "/v1/whoami/tenant", .body = "{'tenant':''}" },
    { "server", "/v1/server", .body = NULL },
    { "clock_confirm", "/v1/server/confirm-clock", .body = "{}" },
    { "doctor", "/v1/doctor", .body = NULL },
    { "permissions", "/v1/permissions", .body = NULL },
    { "openapi", "/v1/openapi.json", .body = NULL },
    { "health", "/healthz", .body = NULL },
    { "ready", "/readyz", .body = NULL },
    { "metrics", "/metrics", .body = NULL },
    { "page", "/", .body = NULL },
    { "door_page", "/signin", .body = NULL },
    { "door_script", "/signin.js", .body = NULL },
    { "page_script", "/page.js", .body = NULL },
    { "page_style", "/page.css", .body = NULL },
};

static const struct example *example_of(const char *id)
{
    for (size_t i = 0; i < ARRAY_LEN(examples); i++)
        if (strcmp(examples[i].id, id) == 0)
            return &examples[i];
    return NULL;
}

static const struct route *route_of(const char *id)
{
    for (size_t i = 0; i < api_routes_n; i++)
        if (strcmp(api_routes[i].id, id) == 0)
            return &api_routes[i];
    return NULL;
}

/* ---- asking as a cell says ---- */

static const char *value_of(struct world *w, struct str key, const char *who, const char *thing)
{
    const char *about = thing && strcmp(thing, "own") != 0 ? thing : who;
    if (str_is(key, "who"))
        return who;
    if (str_is(key, "thing"))
        return thing;
    if (str_is(key, "person"))
        return about;
    if (str_is(key, "fresh"))
        return w->fresh;
    if (str_is(key, "job"))
        return say(&w->k, "%llu", (unsigned long long)find(w, about)->job);
    return NULL;
}

/* "{x}" is replaced; other braces are JSON's. */
static const char *fill(struct world *w, const char *text, const char *who, const char *thing)
{
    AUTO(buf_free) struct buf b = BUF(8192);
    while (*text) {
        size_t n = *text == '{' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
        const char *value = NULL;
        if (n && text[n + 1] == '}')
            value = value_of(w, (struct str){ text + 1, n }, who, thing);
        if (value) {
            buf_addz(&b, value);
            text += n + 2;
        } else {
            buf_addc(&b, *text++);
        }
    }
    return say(&w->k, "%s", buf_str(&b).p);
}

/* One like it is given up: it itself is needed again. */
static const char *spare(struct world *w, const char *token)
{
    struct answer *me = token ? ask(&w->k, token, "GET /v1/whoami") : NULL;
    if (!me || me->status != 200)
        return token;
    AUTO(buf_free) struct buf scopes = BUF(200);
    for (size_t i = 0; i < at_len(me, "scopes"); i++)
        buf_printf(&scopes, "%s'%s'", i ? "," : "", at_str(me, say(&w->k, "scopes.%zu", i)));
    return asking_token(&w->k, at_str(me, "user"), say(&w->k, "'scopes':[%s]", buf_str(&scopes).p));
}

struct cell {
    const char *id, *who, *thing; /* NULL: nobody, nothing */
    const char *token;            /* NULL: of who */
};

static bool is_refusal(int status)
{
    return status == 401 || status == 403 || status == 404;
}

static bool is_allowed(struct world *w, const struct cell *c, struct answer **out)
{
    const struct example *x = example_of(c->id);
    const char *token = c->token ? c->token : c->who ? find(w, c->who)->token : NULL;
    w->fresh = say(&w->k, "fresh%u", ++w->serial);
    if (x->first)
        x->first(w, c->who, c->thing);
    if (strcmp(c->id, "token_give_up") == 0)
        token = spare(w, token);
    bool bytes = x->body && strcmp(x->body, "bytes") == 0;
    struct question q = { .who = token,
                          .request = say(&w->k, "%s %s", route_of(c->id)->method,
                                         fill(w, x->path, c->who, c->thing)),
                          .body = x->body && !bytes ? fill(w, x->body, c->who, c->thing) : NULL,
                          .bytes = bytes ? "?" : NULL };
    struct answer *a = *out = ask_so(&w->k, &q);
    if (asked_streams(a->rq))
        leave(&w->k, a);
    return is_refusal(a->status) ? x->allowed && strstr(a->text, x->allowed) : a->status > 0;
}

/* ---- what the table says ---- */

static const struct json *reach_of(struct answer *table, const char *id)
{
    const struct route *r = route_of(id);
    const struct json *calls = at(table, "calls");
    for (const struct json *v = json_first(calls); v; v = json_next(calls, v))
        if (strcmp(text_of(v, "method"), r->method) == 0 &&
            strcmp(text_of(v, "path"), r->path) == 0)
            return v;
    test_fail(__FILE__, __LINE__, "%s is not printed", id);
}

static bool is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

static bool covers(const struct json *call, const char *role, const char *thing, bool on_site)
{
    char path[64];
    snprintf(path, sizeof path, "reach.%s", role);
    const char *how = text_of(call, path);
    bool near = !thing || is(thing, "own");
    return is(how, "all") || (is(how, "own") && near) ||
           (is(how, "tenant") && (on_site || near || is(thing, "mate") || is(thing, "ours")));
}

static const struct body_of_people *person_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(people); i++)
        if (is(people[i].name, name))
            return &people[i];
    test_fail(__FILE__, __LINE__, "%s has no row", name);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool should_be(struct answer *table, const struct cell *c)
{
    const struct json *call = reach_of(table, c->id);
    if (is(text_of(call, "public"), "true") || !c->who)
        return is(text_of(call, "public"), "true");
    const struct body_of_people *p = person_of(c->who);
    bool narrow = is(c->who, "narrow");
    /* A role in a tenant says nothing about people, their tokens and machines. */
    bool in_tenant = p->place && !begins(c->id, "user_") && !begins(c->id, "token_") &&
                     !begins(c->id, "node_") && !is(c->thing, "theirs") &&
                     !is(c->thing, "stranger");
    return covers(call, "none", c->thing, false) ||
           (!narrow && covers(call, p->site, c->thing, true)) ||
           (!narrow && p->owns && is(text_of(call, "reach.owner"), "machine")) ||
           (in_tenant && covers(call, p->place, c->thing, false));
}

/* How many cells were not as they should be; each is told. */
static int try_cell(struct world *w, struct answer *table, const struct cell *c)
{
    struct answer *a = NULL;
    bool want = should_be(table, c), got = is_allowed(w, c, &a);
    if (got == want && (c->who || want || a->status == 401))
        return 0;
    fprintf(stderr, "%s by %s about %s: %d, should be %s: %.200s\n", c->id,
            c->who ? c->who : "nobody", c->thing ? c->thing : "nothing", a->status,
            want ? "allowed" : "refused", a->text);
    return 1;
}

/* ---- cases ---- */

static void every_call_has_an_example_here(void)
{
    for (size_t i = 0; i < api_routes_n; i++)
        if (!example_of(api_routes[i].id))
            test_fail(__FILE__, __LINE__, "%s has no row in examples", api_routes[i].id);
    for (size_t i = 0; i < ARRAY_LEN(examples); i++)
        if (!route_of(examples[i].id))
            test_fail(__FILE__, __LINE__, "there is no call %s", examples[i].id);
}

/* About each thing that the call can be about. */
static int try_row(struct world *w, struct answer *table, const struct example *x, const char *who)
{
    int wrong = 0;
    for (size_t t = 0; t == 0 || x->things[t]; t++)
        if (who || !is(x->things[t], "own"))
            wrong += try_cell(w, table, &(struct cell){ x->id, who, x->things[t], NULL });
    return wrong;
}

static void every_call_by_every_role_ends_as_the_table_says(void)
{
    struct world w;
    begin(&w);
    struct answer *table = ask(&w.k, NULL, "GET /v1/permissions");
    int wrong = 0;
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        wrong += try_row(&w, table, &examples[i], NULL);
        for (size_t who = 0; who < ARRAY_LEN(people); who++)
            wrong += try_row(&w, table, &examples[i], people[who].name);
    }
    CHECK_INT(wrong, 0);
    asking_end(&w.k);
}

static void a_scope_is_what_a_call_needs_or_it_is_refused(void)
{
    static const char *const scopes[] = { "read", "jobs", "manage", "report" };
    struct world w;
    begin(&w);
    struct answer *table = ask(&w.k, NULL, "GET /v1/permissions");
    for (size_t s = 0; s < ARRAY_LEN(scopes); s++) {
        const char *token = asking_token(&w.k, "admin", say(&w.k, "'scopes':['%s']", scopes[s]));
        for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
            const struct example *x = &examples[i];
            const char *thing = is(x->things[0], "own") ? "mate" : x->things[0];
            const struct json *call = reach_of(table, x->id);
            const char *needs = text_of(call, "scope");
            bool want =
                is(text_of(call, "public"), "true") || is(needs, "") || is(needs, scopes[s]);
            struct answer *a = NULL;
            bool got = is_allowed(&w, &(struct cell){ x->id, "admin", thing, token }, &a);
            if (got != want)
                test_fail(__FILE__, __LINE__, "%s with %s: %d: %s", x->id, scopes[s], a->status,
                          a->text);
            if (!want) /* and which one is missing is said */
                CHECK_HAS(at_str(a, "detail"), say(&w.k, "has not the scope '%s'", needs));
        }
    }
    asking_end(&w.k);
}

/* call, who, about what ("-": nothing), allowed */
static const struct anchor {
    const char *id, *who, *thing;
    bool want;
} anchors[] = {
    { "job_get", "none", "mate", false },
    { "job_get", "viewer", "mate", true },
    { "job_get", "watcher", "stranger", true },
    { "job_get", "member", "stranger", false },
    { "job_get", "narrow", "stranger", false },
    { "job_log", "member", "mate", false },
    { "job_log", "member", "own", true },
    { "job_log", "lead", "mate", true },
    { "job_log", "operator", "mate", false },
    { "job_log", "viewer", "mate", false },
    { "job_cancel", "viewer", "mate", false },
    { "job_cancel", "member", "mate", false },
    { "job_cancel", "lead", "stranger", false },
    { "job_cancel", "lead", "mate", true },
    { "job_cancel", "operator", "stranger", true },
    { "job_stream", "lead", "mate", false },
    { "job_stream", "operator", "mate", false },
    { "job_submit", "viewer", "ours", false },
    { "job_submit", "member", "ours", true },
    { "job_submit", "member", "theirs", false },
    { "job_submit", "operator", "ours", false },
    { "job_submit", "watcher", "ours", false },
    { "node_drain", "owner", "machine", true },
    { "node_drain", "member", "machine", false },
    { "node_drain", "operator", "machine", true },
    { "node_drain", "narrow", "machine", false },
    { "member_put", "lead", "ours", true },
    { "member_put", "lead", "theirs", false },
    { "member_put", "member", "ours", false },
    { "member_put", "operator", "ours", false },
    { "tenant_put", "lead", "ours", false },
    { "tenant_put", "operator", "ours", false },
    { "tenant_get", "member", "theirs", false },
    { "tenant_get", "viewer", "ours", true },
    { "user_get", "member", "own", true },
    { "user_get", "member", "mate", false },
    { "user_get", "operator", "mate", true },
    { "user_put", "operator", "mate", false },
    { "user_put", "member", "own", false },
    { "token_create", "member", "own", true },
    { "token_create", "operator", "mate", false },
    { "token_create", "narrow", "mate", false },
    { "token_delete", "lead", "mate", false },
    { "node_report", "member", "machine", false },
    { "node_report", "owner", "machine", true },
    { "node_report", "narrow", "machine", false },
    { "node_report", "operator", "machine", true },
    { "gpu_list", "none", "-", true },
    { "node_load", "member", "-", true },
    { "user_list", "lead", "-", false },
    { "user_list", "operator", "-", true },
    { "journal", "operator", "-", false },
    { "apply", "operator", "-", false },
    { "quota", "none", "-", false },
    { "log_search", "none", "-", false },
    { "log_search", "viewer", "-", false },
    { "log_search", "operator", "-", false },
    { "log_search", "member", "-", true },
};

static void what_matters_most_is_so_whatever_the_table_says(void)
{
    struct world w;
    begin(&w);
    for (size_t i = 0; i < ARRAY_LEN(anchors); i++) {
        const struct anchor *x = &anchors[i];
        struct answer *a = NULL;
        struct cell c = { x->id, x->who, is(x->thing, "-") ? NULL : x->thing, NULL };
        if (is_allowed(&w, &c, &a) != x->want)
            test_fail(__FILE__, __LINE__, "%s by %s about %s: %d: %s", x->id, x->who, x->thing,
                      a->status, a->text);
    }
    asking_end(&w.k);
}

/* "/v1/jobs/:id" is "/v1/jobs/{id}" in OpenAPI. */
static const char *in_openapi(struct asking *k, const char *path)
{
    AUTO(buf_free) struct buf b = BUF(500);
    for (const char *p = path; *p; p++) {
        size_t n = p[0] == ':' ? strcspn(p, "/") : 0;
        if (n)
            buf_printf(&b, "{%.*s}", (int)n - 1, p + 1);
        else
            buf_addc(&b, *p);
        p += n ? n - 1 : 0;
    }
    return say(k, "%s", buf_str(&b).p);
}

static const char *lower(struct asking *k, const char *method)
{
    char text[16] = "";
    for (size_t i = 0; method[i] && i + 1 < sizeof text; i++)
        text[i] = (char)(method[i] | 0x20);
    return say(k, "%s", text);
}

static void what_openapi_and_the_table_print_is_the_same(void)
{
    struct asking k;
    asking_begin(&k, NULL);
    struct answer *table = ask(&k, NULL, "GET /v1/permissions");
    struct answer *openapi = ask(&k, NULL, "GET /v1/openapi.json");
    CHECK_INT(at_len(table, "calls"), api_routes_n);
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        const struct json *row = reach_of(table, r->id), *paths = at(openapi, "paths");
        const struct json *op =
            json_find(json_find(paths, in_openapi(&k, r->path)), lower(&k, r->method));
        CHECK_STR(text_of(op, "operationId"), r->id);
        CHECK_STR(text_of(op, "x-scope"), text_of(row, "scope"));
        CHECK_INT(json_find(op, "security") != NULL, is(text_of(row, "public"), "true"));
        for (int role = 0; role < ROLE_COUNT; role++) {
            const char *name = role_name((enum role)role);
            CHECK_STR(text_of(op, say(&k, "x-reach.%s", name)),
                      text_of(row, say(&k, "reach.%s", name)));
        }
    }
    asking_end(&k);
}

static void the_roles_are_printed_from_the_least_to_the_most(void)
{
    static const char *const roles[] = { "none", "owner",    "viewer", "member",
                                         "lead", "operator", "admin" };
    struct asking k;
    asking_begin(&k, NULL);
    struct answer *table = CHECK_STATUS(ask(&k, NULL, "GET /v1/permissions"), 200);
    CHECK_INT(at_len(table, "roles"), ARRAY_LEN(roles));
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        CHECK_STR(at_str(table, say(&k, "roles.%zu.name", i)), roles[i]);
    asking_end(&k);
}

static const struct test tests[] = {
    { "every call has an example", every_call_has_an_example_here },
    { "every call by every role, about its own and others' things, ends as the table says",
      every_call_by_every_role_ends_as_the_table_says },
    { "a token's scope is what a call needs, or it is refused",
      a_scope_is_what_a_call_needs_or_it_is_refused },
    { "what matters most is refused and allowed, whatever the table says",
      what_matters_most_is_so_whatever_the_table_says },
    { "what OpenAPI and the table of permissions print is the same",
      what_openapi_and_the_table_print_is_the_same },
    { "the roles are printed from the least to the most",
      the_roles_are_printed_from_the_least_to_the_most },
};
TEST_CASES(tests)
