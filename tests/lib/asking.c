#include "tests/lib/asking.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/people.h"
#include "core/policy.h"
#include "wire/joblog.h"

#define PATIENCE_MS 60000
#define ROUNDS_MAX 8

struct asking_key {
    const char *user, *token;
    struct asking_key *next;
};

const char *say(struct asking *k, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    CHECK(n >= 0 && (size_t)n < sizeof text);
    return arena_strndup(&k->t.s.arena, text, (size_t)n);
}

/* ' stands for ". */
static char *quoted(struct asking *k, const char *text)
{
    char *copy = arena_strndup(&k->t.s.arena, text, strlen(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

/* ---- the parts, as the daemon puts them together ---- */

static const char *mode_word(void *ctx)
{
    (void)ctx;
    return "simulated";
}

static void on_budget(void *ctx, struct store_batch *b, const struct control_budget *v)
{
    struct notice_budget told = { .tenant = v->tenant,
                                  .percent = v->percent,
                                  .used_gpu_milli_ms = v->used_gpu_milli_ms,
                                  .gpu_milli_ms = v->gpu_milli_ms,
                                  .from_ms = v->from_ms,
                                  .until_ms = v->until_ms };
    notices_budget(ctx, b, &told);
}

static void open_notices(struct asking *k)
{
    struct err e = { 0 };
    k->send_argv[0] = "/bin/false"; /* nothing leaves this process */
    struct notices_config c = { .loop = k->t.s.loop,
                                .log = k->t.log,
                                .clock = clock_manual(&k->t.now_ms),
                                .store = k->t.s.store,
                                .auth = k->auth,
                                .send_argv = k->send_argv,
                                .mail_server = k->site.mail_from ? "smtps://mail.invalid" : NULL,
                                .mail_from = k->site.mail_from,
                                .webhooks = WEBHOOK_ANY,
                                .gather_ms = 60000,
                                .retry_ms = 60000,
                                .give_up_ms = 86400000,
                                .patience_ms = 10000 };
    k->notices = notices_new(&c, &e);
    CHECK_STR(e.msg, "");
    k->t.ear = (struct control_ear){ .job = notices_job,
                                     .budget = on_budget,
                                     .closing = notices_closing,
                                     .durable = notices_durable,
                                     .ctx = k->notices };
}

/* The real one, which lies beside the test program. */
static const char *signin_program(struct asking *k)
{
    char self[400] = "";
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    return say(k, "%.*s/nightshift-signin", (int)(strrchr(self, '/') - self), self);
}

static void open_api(struct asking *k)
{
    struct err e = { 0 };
    k->signin_argv[0] = signin_program(k);
    struct api_config *c = &k->site.api, given = *c;
    given.loop = k->t.s.loop;
    given.log = k->t.log;
    given.clock = clock_manual(&k->t.now_ms);
    given.store = k->t.s.store;
    given.control = k->t.c;
    given.auth = k->auth;
    given.history = k->history;
    given.notices = k->notices;
    given.ways = k->ways;
    given.mode = mode_word;
    given.session_ms = c->session_ms ? c->session_ms : INT64_C(86400000);
    given.signin_argv = c->signin_argv ? c->signin_argv : k->signin_argv;
    given.signin_socket = "/nonexistent/signin.sock";
    k->api = api_new(&given, &e);
    CHECK_STR(e.msg, "");
}

static void open_ways(struct asking *k)
{
    struct err e = { 0 };
    struct json_doc *d = NULL;
    if (k->site.signin)
        d = json_read(str_of(quoted(k, k->site.signin)), &e);
    CHECK_STR(e.msg, "");
    k->ways = ways_read(d ? json_root(d) : NULL, &e);
    CHECK_STR(e.msg, "");
    json_free(d);
}

static void boot(struct asking *k)
{
    static const struct control_tenant_def none;
    char path[200];
    struct err e = { 0 };
    k->auth = auth_new();
    people_set_default_tenant(auth_people(k->auth),
                              str_of(k->site.default_tenant ? k->site.default_tenant : ""));
    if (k->site.people)
        k->site.people(auth_people(k->auth));
    snprintf(path, sizeof path, "%s/history", k->t.s.dir);
    k->history = k->site.no_history ? NULL : history_open(path, &e);
    CHECK_STR(e.msg, "");
    open_notices(k);
    k->t.tenant = k->site.tenants ? k->site.tenant : &none;
    k->t.tenants = k->site.tenants;
    k->t.pool = k->site.pool;
    k->t.pools = k->site.pools;
    k->t.keep = k->site.keep;
    controlling_boot(&k->t);
    open_ways(k);
    open_api(k);
    asking_settle(k);
}

/* Requests first: what is done when the API goes away would answer them. */
static void shut(struct asking *k)
{
    for (struct answer *a = k->answers; a; a = a->next)
        if (a->rq && !asked_over(a->rq))
            leave(k, a);
    k->api = api_free(k->api);
    for (struct answer *a = k->answers; a; a = a->next) {
        if (a->rq)
            a->text = arena_strndup(&k->t.s.arena, a->text, a->n);
        a->rq = asked_free(a->rq);
    }
}

static void shut_rest(struct asking *k)
{
    k->notices = notices_free(k->notices);
    k->history = history_close(k->history);
    k->auth = auth_free(k->auth);
    k->ways = ways_free(k->ways);
}

static void on_look(void *ctx)
{
    loop_stop(((struct asking *)ctx)->t.s.loop);
}

static void on_late(void *ctx)
{
    struct asking *k = ctx;
    k->is_late = true;
    loop_stop(k->t.s.loop);
}

void asking_begin(struct asking *k, const struct asking_site *site)
{
    struct policy policy = policy_default();
    struct sim_config sim = { 0 };
    *k = (struct asking){ 0 };
    if (site)
        k->site = *site;
    if (k->site.sim)
        sim = *k->site.sim;
    sim.logs = k->logs;
    controlling_prepare(&k->t, &sim, k->site.policy ? k->site.policy : &policy);
    snprintf(k->logs, sizeof k->logs, "%s/logs", k->t.s.dir);
    CHECK(mkdir(k->logs, 0700) == 0);
    k->look = loop_timer(k->t.s.loop, on_look, k);
    k->late = loop_timer(k->t.s.loop, on_late, k);
    boot(k);
}

static void empty_folder(const char *path)
{
    char inner[512];
    DIR *d = opendir(path);
    for (struct dirent *f; d && (f = readdir(d));) {
        if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%s/%.200s", path, f->d_name);
        if (unlink(inner) < 0 && errno == EISDIR)
            empty_folder(inner);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

void asking_end(struct asking *k)
{
    char path[200];
    shut(k);
    k->look = loop_unwatch(k->look);
    k->late = loop_unwatch(k->late);
    snprintf(path, sizeof path, "%s", k->t.s.dir);
    struct notices *n = TAKE(k->notices); /* control speaks to it until its end */
    struct history *h = TAKE(k->history);
    shut_rest(k);
    while (k->answers) {
        struct answer *a = k->answers;
        k->answers = a->next;
        json_free(a->doc);
        free(a);
    }
    k->t.c = control_free(k->t.c);
    notices_free(n);
    history_close(h);
    controlling_end(&k->t);
    empty_folder(path);
}

void asking_again(struct asking *k)
{
    shut(k);
    controlling_kill(&k->t);
    shut_rest(k);
    k->keys = NULL; /* that were not on the disk are asked for again */
    boot(k);
}

void asking_settle(struct asking *k)
{
    controlling_settle(&k->t);
}

void asking_wait(struct asking *k, int64_t ms)
{
    controlling_wait(&k->t, ms);
}

/* ---- waiting ---- */

static void turn_begin(struct asking *k)
{
    k->is_late = false;
    loop_timer_set(k->look, 0, 1);
    loop_timer_set(k->late, PATIENCE_MS, 0);
}

static void turn_done(struct asking *k)
{
    loop_timer_clear(k->look);
    loop_timer_clear(k->late);
}

void asking_until(struct asking *k, bool (*is_so)(struct asking *k))
{
    while (!is_so(k)) {
        turn_begin(k);
        loop_run(k->t.s.loop);
        turn_done(k);
        CHECK(!k->is_late);
        asking_settle(k);
    }
}

/* The text of an answer grows; its JSON is read when it is whole. */
static void refresh(struct answer *a)
{
    if (!a->rq)
        return;
    const char *type = asked_said(a->rq, "Content-Type");
    struct str text = asked_text(a->rq);
    struct err e;
    asked_read(a->rq);
    a->status = asked_status(a->rq);
    a->type = type ? type : "";
    a->text = text.p;
    a->n = text.n;
    if (!a->doc && a->n && strstr(a->type, "json") && !asked_streams(a->rq) &&
        !strstr(a->type, "ndjson")) {
        a->doc = json_read(text, &e);
        if (!a->doc)
            test_fail(__FILE__, __LINE__, "no JSON: %s: %.300s", e.msg, a->text);
        a->json = json_root(a->doc);
    }
}

void answer_wait(struct asking *k, struct answer *a)
{
    for (int i = 0; i < ROUNDS_MAX && !asked_status(a->rq); i++)
        asking_settle(k);
    if (!asked_status(a->rq)) { /* another process, or a thread, has work with it */
        turn_begin(k);
        while (!asked_status(a->rq) && !k->is_late)
            loop_run(k->t.s.loop);
        turn_done(k);
        asking_settle(k);
        if (k->is_late)
            test_fail(__FILE__, __LINE__, "no answer to %s %s", http_method(a->rq),
                      http_path(a->rq));
    }
    refresh(a);
}

const char *hear(struct asking *k, struct answer *a, const char *text)
{
    asking_settle(k);
    refresh(a);
    turn_begin(k);
    while (!strstr(a->text, text) && !asked_over(a->rq) && !k->is_late) {
        loop_run(k->t.s.loop);
        refresh(a);
    }
    turn_done(k);
    if (!strstr(a->text, text))
        test_fail(__FILE__, __LINE__, "'%s' did not come, but '%s'", text, a->text);
    return a->text;
}

const char *hear_all(struct asking *k, struct answer *a)
{
    asking_settle(k);
    refresh(a);
    turn_begin(k);
    while (!asked_over(a->rq) && !k->is_late) {
        loop_run(k->t.s.loop);
        refresh(a);
    }
    turn_done(k);
    CHECK(!k->is_late);
    return a->text;
}

void leave(struct asking *k, struct answer *a)
{
    (void)k;
    asked_leave(a->rq);
}

/* ---- asking ---- */

static void put_header(struct asked_question *q, const char *name, const char *value)
{
    size_t n = 0;
    while (q->header[n].name)
        n++;
    CHECK(n + 1 < ASKED_HEADERS_MAX);
    q->header[n] = (struct asked_header){ name, value };
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *token_of(struct asking *k, const char *user)
{
    for (struct asking_key *key = k->keys; key; key = key->next)
        if (strcmp(key->user, user) == 0)
            return key->token;
    struct asking_key *key = arena_new(&k->t.s.arena, struct asking_key);
    key->user = say(k, "%s", user);
    key->token = asking_token(k, user, "'scopes':['read','jobs','manage','report']");
    key->next = k->keys;
    k->keys = key;
    return key->token;
}

static void put_caller(struct asking *k, struct asked_question *out, const struct question *q)
{
    const char *who = q->who;
    snprintf(out->peer.address, sizeof out->peer.address, "%s",
             q->address ? q->address : "203.0.113.9:40000");
    out->peer.secure = q->secure;
    if (q->uid || (who && strcmp(who, "root") == 0)) {
        out->peer.local = true;
        out->peer.uid = out->peer.gid = q->uid;
        snprintf(out->peer.address, sizeof out->peer.address, "unix");
    } else if (who && begins(who, "nss_")) {
        put_header(out, "Cookie", say(k, "nightshift=%s", who));
    } else if (who) {
        put_header(out, "Authorization",
                   say(k, "Bearer %s", begins(who, "nst_") ? who : token_of(k, who)));
    }
}

struct answer *ask_begin(struct asking *k, const struct question *q)
{
    const char *space = strchr(q->request, ' ');
    CHECK(space != NULL);
    struct asked_question out = {
        .method = say(k, "%.*s", (int)(space - q->request), q->request),
        .target = space + 1,
    };
    if (q->bytes)
        out.body = (struct str){ q->bytes, q->n ? q->n : strlen(q->bytes) };
    else if (q->body)
        out.body = str_of(quoted(k, q->body));
    put_caller(k, &out, q);
    for (const struct asked_header *h = q->header; h->name; h++)
        put_header(&out, h->name, h->value);
    const char *type = q->type  ? q->type
                     : q->bytes ? "application/octet-stream"
                                : "application/json";
    if (*type && out.body.n)
        put_header(&out, "Content-Type", type);
    struct answer *a = xcalloc(1, sizeof *a);
    a->rq = asked_new(&out);
    a->type = a->text = "";
    a->next = k->answers;
    k->answers = a;
    api_handle(k->api, a->rq);
    refresh(a);
    return a;
}

struct answer *ask_so(struct asking *k, const struct question *q)
{
    struct answer *a = ask_begin(k, q);
    if (!a->status)
        answer_wait(k, a); /* which settles */
    else if (a->status < 400 && !begins(q->request, "GET ") && !asked_streams(a->rq))
        asking_settle(k);
    return a;
}

struct answer *ask_with(struct asking *k, const char *who, const char *request, const char *body)
{
    return ask_so(k, &(struct question){ .who = who, .request = request, .body = body });
}

struct answer *ask(struct asking *k, const char *who, const char *request)
{
    return ask_with(k, who, request, NULL);
}

const char *header_of(const struct answer *a, const char *name)
{
    const char *value = asked_said(a->rq, name);
    return value ? value : "";
}

/* ---- people and things ---- */

void asking_tenant(struct asking *k, const char *name, const char *body)
{
    CHECK_STATUS(ask_with(k, "root", say(k, "PUT /v1/tenants/%s", name), body ? body : "{}"), 200);
}

void asking_person(struct asking *k, const char *user, const char *tenant, const char *role)
{
    if (!people_find(auth_people(k->auth), str_of(user)))
        CHECK_STATUS(ask_with(k, "root", say(k, "PUT /v1/users/%s", user), "{}"), 200);
    if (role && tenant)
        CHECK_STATUS(ask_with(k, "root", say(k, "PUT /v1/tenants/%s/members/%s", tenant, user),
                              say(k, "{'role':'%s'}", role)),
                     200);
    else if (role)
        CHECK_STATUS(
            ask_with(k, "root", say(k, "PUT /v1/users/%s", user), say(k, "{'role':'%s'}", role)),
            200);
}

const char *asking_token(struct asking *k, const char *user, const char *body)
{
    struct answer *a = ask_with(k, "root", "POST /v1/tokens",
                                say(k, "{'user':'%s','name':'t%u',%s}", user, ++k->serial, body));
    return at_str(CHECK_STATUS(a, 201), "token");
}

const char *asking_session(struct asking *k, const char *user)
{
    struct answer *a =
        ask_with(k, NULL, "POST /v1/session", say(k, "{'token':'%s'}", token_of(k, user)));
    const char *cookie = header_of(CHECK_STATUS(a, 204), "Set-Cookie");
    CHECK(begins(cookie, "nightshift=nss_"));
    cookie += strlen("nightshift=");
    return say(k, "%.*s", (int)strcspn(cookie, ";"), cookie);
}

uint64_t asking_submit(struct asking *k, const char *who, const char *json)
{
    struct answer *a = ask_with(k, who, "POST /v1/jobs", json);
    return (uint64_t)at_int(CHECK_STATUS(a, 201), "id");
}

const char *asking_state(struct asking *k, uint64_t job)
{
    return controlling_state(&k->t, job);
}

void asking_output(struct asking *k, struct task_id task, const char *text)
{
    AUTO(buf_free) struct buf b = BUF(64u << 20);
    char dir[256], path[300], name[64];
    snprintf(dir, sizeof dir, "%s/%s", k->logs, task_format(task, name));
    snprintf(path, sizeof path, "%s/log.0", dir);
    if (mkdir(dir, 0700) == 0)
        joblog_format_segment(&b, k->t.now_ms * 1000, 1);
    for (struct str rest = str_of(text); rest.n;) {
        size_t n = joblog_format(&b, k->t.now_ms * 1000, JOBLOG_STDOUT, rest);
        rest = (struct str){ rest.p + n, rest.n - n };
    }
    FILE *f = fopen(path, "a");
    CHECK(f && fwrite(b.p, 1, b.n, f) == b.n && fclose(f) == 0);
}

/* ---- looking ---- */

static const struct json *walk(const struct json *v, const char *path)
{
    struct str rest = str_of(path), part;
    while (v && rest.n) {
        char key[128];
        str_cut(rest, '.', &part, &rest);
        snprintf(key, sizeof key, "%.*s", STR_ARG(part));
        if (json_is_array(v))
            v = strtoul(key, NULL, 10) < json_len(v) ? json_at(v, strtoul(key, NULL, 10)) : NULL;
        else
            v = json_find(v, key);
    }
    return v;
}

const struct json *at(const struct answer *a, const char *path)
{
    return a->json ? walk(a->json, path) : NULL;
}

/* Valid as long as the document: numbers and words are of a table of their own. */
static const char *text_at(const struct json *v)
{
    struct str s = { 0 };
    bool yes;
    struct err e;
    if (!v)
        return "(none)";
    if (json_is_string(v))
        return json_as_str(v, SIZE_MAX, &s, &e) == 0 ? s.p : "(bad)";
    if (json_as_bool(v, &yes, &e) == 0)
        return yes ? "true" : "false";
    return json_is_null(v) ? "null" : json_is_array(v) ? "[…]" : json_is_object(v) ? "{…}" : "0…9";
}

const char *at_str(const struct answer *a, const char *path)
{
    return text_at(at(a, path));
}

const char *text_of(const struct json *obj, const char *path)
{
    return text_at(obj ? walk(obj, path) : NULL);
}

static int64_t whole(const struct json *v, const char *path, const char *all)
{
    double d = 0;
    struct err e;
    if (!v || json_as_f64(v, -9e15, 9e15, &d, &e) < 0 || d != floor(d))
        test_fail(__FILE__, __LINE__, "'%s' is no whole number in %.800s", path, all);
    return (int64_t)d;
}

int64_t at_int(const struct answer *a, const char *path)
{
    return whole(at(a, path), path, a->text);
}

int64_t int_of(const struct json *obj, const char *path)
{
    return whole(obj ? walk(obj, path) : NULL, path, "a part of an answer");
}

size_t at_len(const struct answer *a, const char *path)
{
    const struct json *v = at(a, path);
    if (!v || !json_is_array(v))
        test_fail(__FILE__, __LINE__, "'%s' is no list in %.800s", path, a->text);
    return json_len(v);
}

const struct json *at_where(const struct answer *a, const char *array, const char *member,
                            const char *text)
{
    const struct json *list = at(a, array);
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v))
        if (strcmp(text_of(v, member), text) == 0)
            return v;
    return NULL;
}

/* ---- checks ---- */

struct answer *check_status(const char *file, int line, struct answer *a, int want)
{
    if (a->status != want)
        test_fail(file, line, "%s %s: %d, not %d: %.600s", http_method(a->rq), http_path(a->rq),
                  a->status, want, a->text);
    return a;
}

void check_has(const char *file, int line, const char *text, const char *words)
{
    if (!strstr(text, words))
        test_fail(file, line, "'%s' is not in '%.1500s'", words, text);
}

void check_refused(const char *file, int line, struct answer *a, const struct refusal_want *w)
{
    check_status(file, line, a, w->status);
    test_str(file, line, "the type", a->type, "application/problem+json");
    test_int(file, line, "status in the body", at_int(a, "status"), w->status);
    if (w->code)
        test_str(file, line, "code", at_str(a, "code"), w->code);
    const char *field = at_str(a, "field");
    if (strcmp(w->field ? w->field : "(none)", field) != 0 &&
        strcmp(w->field ? w->field : "", "*") != 0)
        test_fail(file, line, "the field is '%s', not '%s': %s", field,
                  w->field ? w->field : "(none)", a->text);
    check_has(file, line, at_str(a, "detail"), w->words);
}

/* Says what is not as it should be. */
static bool is_refused(struct asking *k, const char *who, const struct bad *row)
{
    uint64_t before = control_stats(k->t.c).commits;
    struct answer *a = ask_with(k, who, row->request, row->body);
    const char *field = at_str(a, "field"), *want = row->field ? row->field : "(none)";
    asking_settle(k);
    bool same = a->status == row->status && strcmp(a->type, "application/problem+json") == 0 &&
                (strcmp(want, "*") == 0 || strcmp(want, field) == 0) &&
                strstr(at_str(a, "detail"), row->words) && at_int(a, "status") == row->status &&
                control_stats(k->t.c).commits == before;
    if (!same)
        fprintf(stderr, "%s %s: %d, field %s, %d commits, not %d, field %s, '%s': %.500s\n",
                row->request, row->body ? row->body : "", a->status, field,
                (int)(control_stats(k->t.c).commits - before), row->status, want, row->words,
                a->text);
    return same;
}

void check_bad(struct asking *k, const char *who, const struct bad *row, size_t n)
{
    if (who && strcmp(who, "root") != 0 && !begins(who, "nst_") && !begins(who, "nss_"))
        token_of(k, who); /* making it is a commit */
    int wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += !is_refused(k, who, &row[i]);
    CHECK_INT(wrong, 0);
}
