/* Calls that are not ours, bodies that are none, parameters that are wrong: what the table of routes refuses before
 * a handler runs.  The parameters are those of the table, so a new one is tried by itself. */
#include <stdio.h>

#include "api/state.h"
#include "tests/lib/asking.h"

#define KEY "0123456789abcdef"

static void begin(struct asking *k)
{
    static const char *const doctor[] = { "/bin/echo", "{\"checks\":[]}", NULL };
    asking_begin(k, &(struct asking_site){ .api = { .doctor_argv = doctor } });
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_submit(k, "ana", "{'command':['sleep','999999']}"); /* job 1, for calls that need one */
}

/* With values in the place of names: job 1, machine desk1. */
static const char *path_of(struct asking *k, const struct route *r, const char *id)
{
    AUTO(buf_free) struct buf b = BUF(500);
    for (const char *p = r->path; *p;) {
        size_t n = *p == ':' ? strcspn(p, "/") : 0;
        struct str name = { p + 1, n ? n - 1 : 0 };
        if (n)
            buf_addz(&b, str_is(name, "id")                         ? id
                         : str_is(name, "key")                      ? KEY
                         : str_is(name, "user")                     ? "ana"
                         : strncmp(r->path, "/v1/tenants", 11) == 0 ? "vision"
                         : strncmp(r->path, "/v1/nodes", 9) == 0    ? "desk1"
                                                                    : "x");
        else
            buf_addc(&b, *p);
        p += n ? n : 1;
    }
    return say(k, "%s", buf_str(&b).p);
}

static bool is_problem(struct answer *a, int status, const char *field, const char *what)
{
    bool good = a->status == status && strcmp(a->type, "application/problem+json") == 0 &&
                strcmp(at_str(a, "field"), field ? field : "(none)") == 0 &&
                (!field || strstr(at_str(a, "detail"), field)) && strlen(at_str(a, "hint")) > 6 &&
                strlen(at_str(a, "detail")) + strlen(at_str(a, "hint")) < 400;
    if (!good)
        fprintf(stderr, "%.200s: %d, not %d of %s: %.300s\n", what, a->status, status, field,
                a->text);
    return good;
}

/* ---- parameters ---- */

/* Percent-encoded, one a line. */
static const char *wrong_values(const struct api_param *p)
{
    static const char *const values[] = {
        [PARAM_TEXT] = "a%0Ab\n%7F\n",
        [PARAM_NUMBER] = "-1\nx\n1.5\n\n%2B1\n0x1\n1%20\n999999999999999999999999999999\n",
        [PARAM_WORD] = "nonsense\nTRUE\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
        [PARAM_WORDS] = "nonsense\nTRUE\nrunning,,queued\nall,running\n",
        [PARAM_HEX] = "\nx\n1.2\nABCDEF\n",
        [PARAM_PLACE] = "\nx\n1.2\n1.2.x\n-1.2.3\n",
    };
    return values[p->kind];
}

static int try_value(struct asking *k, const struct route *r, const struct api_param *p,
                     const char *value)
{
    const char *request = say(k, "%s %s?%s=%s", r->method, path_of(k, r, "1"), p->name, value);
    return !is_problem(ask(k, "root", request), 400, p->name, request);
}

static int try_param(struct asking *k, const struct route *r, const struct api_param *p)
{
    struct str rest = str_of(wrong_values(p)), value;
    int wrong = 0;
    while (str_next_line(&rest, &value))
        wrong += try_value(k, r, p, say(k, "%.*s", STR_ARG(value)));
    if (p->kind == PARAM_NUMBER && p->max < UINT64_MAX)
        wrong += try_value(k, r, p, say(k, "%llu", (unsigned long long)p->max + 1));
    if (p->kind == PARAM_NUMBER && p->min)
        wrong += try_value(k, r, p, say(k, "%llu", (unsigned long long)p->min - 1));
    char text[5000];
    size_t most = p->max ? p->max : PARAM_TEXT_MAX;
    if (p->kind == PARAM_TEXT && most + 1 < sizeof text) {
        memset(text, 'x', most + 1);
        text[most + 1] = '\0';
        wrong += try_value(k, r, p, text);
    }
    return wrong;
}

static int try_header(struct asking *k, const struct route *r, const struct api_param *p)
{
    char text[301];
    memset(text, 'x', 300);
    text[300] = '\0';
    struct answer *a =
        ask_so(k, &(struct question){ .who = "root",
                                      .request = say(k, "%s %s", r->method, path_of(k, r, "1")),
                                      .body = "{}",
                                      .header = { { p->name, text } } });
    return !is_problem(a, 400, p->name, p->name);
}

static void every_parameter_of_every_call_is_refused_by_its_name_when_it_is_wrong(void)
{
    struct asking k;
    int wrong = 0, tried = 0;
    begin(&k);
    uint64_t before = control_stats(k.t.c).commits;
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        for (const struct api_param *p = r->param; !r->oauth && p && p->name; p++, tried++)
            wrong += p->header ? try_header(&k, r, p) : try_param(&k, r, p);
    }
    CHECK_INT(wrong, 0);
    CHECK(tried > 60);
    CHECK_INT(control_stats(k.t.c).commits, before);
    asking_end(&k);
}

static void one_that_is_not_known_is_refused_by_its_name(void)
{
    struct asking k;
    int wrong = 0;
    begin(&k);
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        const char *request = say(&k, "%s %s?colour=1", r->method, path_of(&k, r, "1"));
        if (!r->oauth && !r->lenient)
            wrong += !is_problem(ask(&k, "root", request), 400, "colour", request);
    }
    CHECK_INT(wrong, 0);
    struct answer *a = ask(&k, "ana", "GET /v1/jobs?limits=5");
    CHECK_REFUSED(a, 400, "invalid", "limits", "query 'limits' is not known here");
    CHECK_HAS(at_str(a, "hint"), "did you mean 'limit'?");
    asking_end(&k);
}

static const char *good_value(const struct api_param *p)
{
    static const char *const values[] = {
        [PARAM_TEXT] = "x", [PARAM_NUMBER] = "1000", [PARAM_PLACE] = "1.1.0"
    };
    if (p->kind == PARAM_WORD || p->kind == PARAM_WORDS)
        return NULL;
    return p->kind == PARAM_HEX ? p->min == 64 ? NULL : KEY : values[p->kind];
}

static void one_that_is_given_twice_is_refused_by_its_name(void)
{
    struct asking k;
    int wrong = 0;
    begin(&k);
    for (size_t i = 0; i < api_routes_n; i++)
        for (const struct api_param *p = api_routes[i].param; !api_routes[i].oauth && p && p->name;
             p++) {
            AUTO(buf_free) struct buf b = BUF(500);
            const char *v = good_value(p), *words = p->words;
            buf_printf(&b, "%.*s", v ? (int)strlen(v) : (int)(words ? strcspn(words, "|") : 0),
                       v       ? v
                       : words ? words
                               : "");
            if (p->header || b.n == 0 || (p->kind == PARAM_NUMBER && p->max < 1000))
                continue;
            const char *request = say(&k, "%s %s?%s=%s&%s=%s", api_routes[i].method,
                                      path_of(&k, &api_routes[i], "1"), p->name, b.p, p->name, b.p);
            wrong += !is_problem(ask(&k, "root", request), 400, p->name, request);
        }
    CHECK_INT(wrong, 0);
    asking_end(&k);
}

static void one_that_is_needed_is_asked_for_by_name(void)
{
    struct asking k;
    begin(&k);
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/jobs/1/stream"), 400, "invalid", "key",
                  "query 'key' is missing");
    CHECK_REFUSED(ask(&k, "ana", "GET /v1/logs"), 400, "invalid", "grep",
                  "query 'grep' is missing");
    CHECK_REFUSED(ask(&k, "ana", "POST /v1/jobs/1/stream/" KEY), 400, "invalid", "n",
                  "query 'n' is missing");
    asking_end(&k);
}

/* ---- numbers of jobs ---- */

static void a_number_of_a_job_that_is_none_is_refused_and_one_that_nobody_has_is_not_found(void)
{
    static const char *const bad[] = { "x",    "-1",
                                       "1.5",  "9007199254740992",
                                       "0x1",  "%20",
                                       "1%0a", "9999999999999999999999999999999999999999" };
    struct asking k;
    int wrong = 0, tried = 0;
    begin(&k);
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        const char *query = strstr(r->path, "/:key")   ? "?n=1"
                          : strstr(r->path, "/stream") ? "?key=" KEY
                                                       : "";
        if (!strstr(r->path, "/:id"))
            continue;
        for (size_t b = 0; b < ARRAY_LEN(bad); b++, tried++) {
            const char *request = say(&k, "%s %s%s", r->method, path_of(&k, r, bad[b]), query);
            wrong += !is_problem(ask(&k, "root", request), 400, "id", request);
        }
        struct answer *a = ask_with(
            &k, "root", say(&k, "%s %s%s", r->method, path_of(&k, r, "9007199254740991"), query),
            strstr(r->path, "signal") ? "{'signal':'TERM'}" : NULL);
        CHECK_REFUSED(a, 404, "not_found", "*", "there is no job 9007199254740991");
    }
    CHECK_INT(wrong, 0);
    CHECK(tried > 50);
    asking_end(&k);
}

/* ---- bodies ---- */

static void a_body_that_is_no_json_object_is_refused_whatever_it_is(void)
{
    static const char *const calls[] = { "POST /v1/jobs",          "POST /v1/jobs/check",
                                         "POST /v1/tokens",        "POST /v1/session",
                                         "POST /v1/jobs/1/cancel", "POST /v1/jobs/1/signal",
                                         "PUT /v1/users/zoe",      "PUT /v1/tenants/new",
                                         "PUT /v1/pools/new",      "PUT /v1/reservations/new",
                                         "POST /v1/apply",         "PUT /v1/notices" };
    static const struct {
        const char *p;
        size_t n;
    } bodies[] = {
#define B(text) { text, sizeof(text) - 1 }
        B("{"),
        B("[]"),
        B("5"),
        B("\"x\""),
        B("null"),
        B("true"),
        B("{}{}"),
        B("{} x"),
        B("\xff\xfe{}"),
        B("\xef\xbb\xbf"),
        B("{\"a\":\"\xff\"}"),
        B("{\"a\":\"\xed\xa0\x80\"}"),
        B("{\"command\":[\"true\"],}"),
        B("\0"),
        B(" "),
        B("{\"command\":[\"\x01\"]}"),
        B("{\"replicas\":1e999}"),
        B("{\"replicas\":NaN}"),
        B("command: [true]"),
#undef B
    };
    struct asking k;
    begin(&k);
    uint64_t before = control_stats(k.t.c).commits;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        for (size_t b = 0; b < ARRAY_LEN(bodies); b++) {
            struct answer *a = ask_so(&k, &(struct question){ .who = "root",
                                                              .request = calls[i],
                                                              .bytes = bodies[b].p,
                                                              .n = bodies[b].n,
                                                              .type = "application/json" });
            if (a->status != 400 || !*at_str(a, "detail"))
                test_fail(__FILE__, __LINE__, "%s with '%s': %d %s", calls[i], bodies[b].p,
                          a->status, a->text);
        }
    CHECK_INT(control_stats(k.t.c).commits, before);
    CHECK_STR(asking_state(&k, 1), "running");
    asking_end(&k);
}

static void a_body_that_is_nested_without_end_is_refused(void)
{
    static const struct {
        const char *piece;
        size_t n;
    } rows[] = { { "[", 100000 }, { "{\"a\":", 100000 }, { "9", 100000 } };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_free) struct buf b = BUF(1u << 20);
        buf_addz(&b, rows[i].piece[0] == '9' ? "{\"replicas\":" : "");
        for (size_t n = 0; n < rows[i].n; n++)
            buf_addz(&b, rows[i].piece);
        CHECK_STATUS(ask_so(&k, &(struct question){ .who = "ana",
                                                    .request = "POST /v1/jobs",
                                                    .bytes = b.p,
                                                    .type = "application/json" }),
                     400);
    }
    asking_end(&k);
}

static void a_field_that_is_given_twice_is_refused_by_its_name_on_every_level(void)
{
    static const struct bad rows[] = {
        { "POST /v1/jobs", "{'command':['true'],'command':['false']}", 400, "command", "command" },
        { "POST /v1/jobs", "{'command':['true'],'resources':{'mem':'1Gi','mem':'2Gi'}}", 400,
          "resources.mem", "mem" },
        { "POST /v1/jobs", "{'jobs':[{'command':['true']}],'jobs':[]}", 400, "jobs", "jobs" },
        { "POST /v1/tokens", "{'name':'a','name':'b'}", 400, "name", "name" },
        { "POST /v1/jobs/1/signal", "{'signal':'TERM','signal':'KILL'}", 400, "signal", "signal" },
        { "POST /v1/jobs/1/cancel", "{'reason':'a','reason':'b'}", 400, "reason", "reason" },
        { "PUT /v1/users/zoe", "{'mail':'a','mail':'b'}", 400, "mail", "mail" },
        { "PUT /v1/tenants/zoo", "{'help':'a','help':'b'}", 400, "help", "help" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    asking_end(&k);
}

static void the_other_bodies_are_refused_by_field_as_well(void)
{
    static const struct bad rows[] = {
        { "POST /v1/jobs", NULL, 400, "command", "command" },
        { "POST /v1/jobs/1/signal", NULL, 400, "signal", "signal" },
        { "POST /v1/session", NULL, 400, "user", "user" },
        { "POST /v1/session", "{'token':5}", 400, "token", "token" },
        { "POST /v1/session", "{'tok':'x'}", 400, "tok", "tok" },
        { "POST /v1/session", "{'token':'nst_wrong'}", 403, "token", "" },
        { "POST /v1/jobs/1/signal", "{'signal':'NOPE'}", 400, "signal", "'NOPE' is not a signal" },
        { "POST /v1/jobs/act", "{'jobs':[1]}", 400, "verb", "" },
        { "POST /v1/jobs/act", "{'verb':'hop','jobs':[1]}", 400, "verb", "" },
        { "POST /v1/jobs/act", "{'verb':5,'jobs':[1]}", 400, "verb", "" },
        { "POST /v1/jobs/act", "{'verb':'hold'}", 400, "jobs", "" },
        { "POST /v1/jobs/act", "{'verb':'hold','jobs':1}", 400, "jobs", "" },
        { "POST /v1/jobs/act", "{'verb':'hold','jobs':[]}", 400, "jobs", "" },
        { "POST /v1/jobs/act", "{'verb':'hold','jobs':[1,'2']}", 400, "jobs", "" },
        { "POST /v1/jobs/act", "{'verb':'hold','jobs':[-1]}", 400, "jobs", "" },
        { "POST /v1/jobs/act", "{'verb':'hold','jobs':[1],'x':1}", 400, "x", "" },
        { "POST /v1/jobs/act", "{'verb':'hold','jobs':[1],'reason':5}", 400, "reason", "" },
        { "PUT /v1/whoami/tenant", "{}", 400, "tenant", "" },
        { "PUT /v1/whoami/tenant", "{'tenant':5}", 400, "tenant", "" },
        { "PUT /v1/whoami/tenant", "{'tenant':'nowhere'}", 404, "tenant",
          "there is no tenant 'nowhere'" },
        { "POST /v1/jobs/1/signal", "{'signal':9}", 400, "signal", "signal" },
        { "POST /v1/jobs/1/cancel", "{'reason':5}", 400, "reason", "reason" },
        { "POST /v1/jobs/1/hold", "{'x':1}", 400, "x", "x" },
        { "POST /v1/nodes/desk1/drain", "{'why':1}", 400, "why", "why" },
        { "POST /v1/nodes/nobody/drain", "{}", 404, "*", "nobody" },
        { "DELETE /v1/tokens/nobody", NULL, 404, "*", "nobody" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    CHECK_STR(asking_state(&k, 1), "running");
    asking_end(&k);
}

static void a_body_of_another_type_is_415_whatever_it_says(void)
{
    static const char *const bad[] = { "text/plain",
                                       "application/x-www-form-urlencoded",
                                       "application/yaml",
                                       "multipart/form-data",
                                       "application/jsonx",
                                       "text/json",
                                       "application/problem+json",
                                       "" };
    static const char *const good[] = { "application/json", "Application/JSON",
                                        "application/json; charset=utf-8",
                                        "application/json;charset=utf-8" };
    struct asking k;
    begin(&k);
    struct question q = { .who = "ana",
                          .request = "POST /v1/jobs/check",
                          .body = "{'command':['true']}" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        q.type = bad[i];
        CHECK_REFUSED(ask_so(&k, &q), 415, "invalid", "Content-Type", "application/json");
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        q.type = good[i];
        CHECK_STATUS(ask_so(&k, &q), 200);
    }
    asking_end(&k);
}

/* ---- calls ---- */

static const char *allowed_at(struct asking *k, const char *path)
{
    AUTO(buf_free) struct buf b = BUF(500);
    for (size_t i = 0; i < api_routes_n; i++)
        if (strcmp(api_routes[i].path, path) == 0)
            buf_printf(&b, "%s, ",
                       strcmp(api_routes[i].method, "GET") == 0 ? "GET, HEAD"
                                                                : api_routes[i].method);
    buf_addz(&b, "OPTIONS");
    return say(k, "%s", b.p);
}

static void other_methods_are_405_and_options_says_which_there_are(void)
{
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct route *r = &api_routes[i];
        const char *path = path_of(&k, r, "1"), *allowed = allowed_at(&k, r->path);
        struct answer *a = ask(&k, NULL, say(&k, "OPTIONS %s", path));
        CHECK_STATUS(a, 204);
        CHECK_STR(header_of(a, "Allow"), allowed);
        a = ask(&k, NULL, say(&k, "PATCH %s", path)); /* there is none of that anywhere */
        CHECK_REFUSED(a, 405, "invalid", NULL, "PATCH is not a method of this path");
        CHECK_STR(header_of(a, "Allow"), allowed);
    }
    asking_end(&k);
}

static void what_is_not_there_is_404_with_where_to_look(void)
{
    static const char *const nothing[] = { "GET /v1/nothing", "GET /v1/jobs/1/nothing",
                                           "GET //v1/jobs",   "GET /v1",
                                           "GET /v1/jobs/",   "POST /v1/jobs/1",
                                           "GET /V1/jobs",    "GET /v1/jobs/1/log/2" };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        struct answer *a = ask(&k, "ana", nothing[i]);
        if (a->status != 405)
            CHECK_REFUSED(a, 404, "not_found", NULL, "there is nothing at");
        CHECK_HAS(at_str(a, "hint"), "GET /v1/openapi.json");
    }
    asking_end(&k);
}

static void head_is_get_without_a_difference_to_the_handler(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask(&k, "ana", "HEAD /v1/whoami"), 200);
    CHECK_STATUS(ask(&k, NULL, "HEAD /v1/whoami"), 401);
    asking_end(&k);
}

/* ---- rates ---- */

static void a_user_has_one_allowance_whatever_they_come_with(void)
{
    struct asking k;
    asking_begin(&k, &(struct asking_site){ .api = { .rate_per_s = 1, .rate_burst = 5 } });
    asking_tenant(&k, "vision", NULL);
    asking_person(&k, "ana", "vision", "member");
    asking_person(&k, "bob", "vision", "member");
    const char *one = asking_token(&k, "ana", "'scopes':['read']"),
               *two = asking_token(&k, "ana", "'scopes':['read']");
    const char *bob = asking_token(&k, "bob", "'scopes':['read']");
    struct answer *a = NULL;
    int served = 0;
    for (int i = 0; i < 30; i++) {
        a = ask(&k, i % 2 ? one : two, "GET /v1/whoami");
        served += a->status == 200;
    }
    CHECK(served >= 5 && served < 30); /* a slow machine gives some back */
    CHECK_STATUS(ask(&k, bob, "GET /v1/whoami"), 200);
    for (int i = 0; i < 30; i++)
        CHECK_STATUS(ask(&k, "root", "GET /v1/whoami"), 200); /* has no limit */
    for (int i = 0; i < 30; i++)
        CHECK_STATUS(ask(&k, NULL, "GET /v1/server"), 200); /* nobody's */
    asking_end(&k);
}

static void who_asks_too_often_is_told_when_to_come_back(void)
{
    struct asking k;
    asking_begin(&k, &(struct asking_site){ .api = { .rate_per_s = 1, .rate_burst = 1 } });
    asking_person(&k, "ana", NULL, NULL);
    const char *token = asking_token(&k, "ana", "'scopes':['read']");
    struct answer *a = ask(&k, token, "GET /v1/whoami");
    while (a->status == 200)
        a = ask(&k, token, "GET /v1/whoami");
    CHECK_REFUSED(a, 429, "unavailable", NULL, "too many requests; 'ana' may send 1 a second");
    CHECK_STR(header_of(a, "Retry-After"), "1");
    CHECK_HAS(at_str(a, "hint"), "wait 1 s");
    asking_end(&k);
}

static const struct test tests[] = {
    { "every parameter of every call is refused by its name when it is wrong",
      every_parameter_of_every_call_is_refused_by_its_name_when_it_is_wrong },
    { "one that is not known is refused by its name, with the nearest",
      one_that_is_not_known_is_refused_by_its_name },
    { "one that is given twice is refused by its name",
      one_that_is_given_twice_is_refused_by_its_name },
    { "one that is needed is asked for by its name", one_that_is_needed_is_asked_for_by_name },
    { "a number of a job that is none is refused by its name; one that nobody has is not found",
      a_number_of_a_job_that_is_none_is_refused_and_one_that_nobody_has_is_not_found },
    { "a body that is no JSON object is refused, whatever it is",
      a_body_that_is_no_json_object_is_refused_whatever_it_is },
    { "a body that is nested without end is refused",
      a_body_that_is_nested_without_end_is_refused },
    { "a field that is given twice is refused by its name, on every level",
      a_field_that_is_given_twice_is_refused_by_its_name_on_every_level },
    { "the other bodies are refused by field as well, and a missing one says nothing",
      the_other_bodies_are_refused_by_field_as_well },
    { "a body of another type is 415, whatever it says",
      a_body_of_another_type_is_415_whatever_it_says },
    { "other methods are 405 and told which there are; OPTIONS says it too",
      other_methods_are_405_and_options_says_which_there_are },
    { "what is not there is 404, with where to look", what_is_not_there_is_404_with_where_to_look },
    { "HEAD is GET", head_is_get_without_a_difference_to_the_handler },
    { "a user has one allowance, whatever they come with",
      a_user_has_one_allowance_whatever_they_come_with },
    { "who asks too often is told when to come back",
      who_asks_too_often_is_told_when_to_come_back },
};
TEST_CASES(tests)
