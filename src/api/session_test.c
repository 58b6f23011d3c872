/* Browsers: signing in and out, cookies, the first administrator, the notice, and a command line that waits. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/asking.h"

#define HOUR INT64_C(3600000)
#define PASSWORD "correct horse battery"

static void begin_with(struct asking *k, const struct asking_site *site)
{
    asking_begin(k, site);
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
}

static void begin(struct asking *k)
{
    begin_with(k, NULL);
}

static const char *cookie_of(struct asking *k, const struct answer *a)
{
    const char *cookie = header_of(a, "Set-Cookie");
    size_t n = strlen("nightshift=");
    return strncmp(cookie, "nightshift=", n) == 0
             ? say(k, "%.*s", (int)strcspn(cookie + n, ";"), cookie + n)
             : "";
}

/* ---- in and out ---- */

static void a_token_opens_a_session_with_what_it_has_and_no_more(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['read']");
    struct answer *a = ask_with(&k, NULL, "POST /v1/session", say(&k, "{'token':'%s'}", token));
    const char *session = cookie_of(&k, CHECK_STATUS(a, 204));
    a = CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 200);
    CHECK_STR(at_str(a, "user"), "ana");
    CHECK_INT(at_len(a, "scopes"), 1);
    CHECK_STATUS(
        ask_so(&k, &(struct question){ .who = session,
                                       .request = "POST /v1/jobs",
                                       .body = "{'command':['true']}",
                                       .header = { { "Sec-Fetch-Site", "same-origin" } } }),
        403);
    asking_end(&k);
}

static const char *session_by(struct asking *k, const char *token)
{
    return cookie_of(
        k,
        CHECK_STATUS(ask_with(k, NULL, "POST /v1/session", say(k, "{'token':'%s'}", token)), 204));
}

static void a_session_ends_with_the_token_that_opened_it(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask_with(&k, "ana", "POST /v1/tokens", "{'name':'laptop','expires':'1h'}");
    const char *token = say(&k, "%s", at_str(CHECK_STATUS(a, 201), "token"));
    const char *other = asking_session(&k, "ana"), *one = session_by(&k, token);
    CHECK_STATUS(ask(&k, one, "GET /v1/whoami"), 200);
    k.t.now_ms += HOUR + 1;
    CHECK_STATUS(ask(&k, one, "GET /v1/whoami"), 401);
    other = cookie_of(&k, CHECK_STATUS(ask(&k, other, "GET /v1/whoami"), 200));
    a = ask_with(&k, "ana", "POST /v1/tokens", "{'name':'desk'}");
    one = session_by(&k, say(&k, "%s", at_str(CHECK_STATUS(a, 201), "token")));
    k.t.now_ms += HOUR + 1; /* it has another key now */
    const char *renewed = cookie_of(&k, CHECK_STATUS(ask(&k, one, "GET /v1/whoami"), 200));
    CHECK_STATUS(ask(&k, "ana", "DELETE /v1/tokens/desk"), 204);
    CHECK_STATUS(ask(&k, one, "GET /v1/whoami"), 401);
    CHECK_STATUS(ask(&k, renewed, "GET /v1/whoami"), 401);
    CHECK_STATUS(ask(&k, other, "GET /v1/whoami"), 200);
    asking_end(&k);
}

static void the_cookie_is_for_this_servers_own_pages_only(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['read']");
    struct question q = { .request = "POST /v1/session", .body = say(&k, "{'token':'%s'}", token) };
    const char *cookie = header_of(ask_so(&k, &q), "Set-Cookie");
    CHECK_HAS(cookie, "; HttpOnly");
    CHECK_HAS(cookie, "; SameSite=Lax");
    CHECK_HAS(cookie, "; Path=/");
    CHECK(!strstr(cookie, "Secure"));
    q.secure = true; /* by TLS */
    CHECK_HAS(header_of(ask_so(&k, &q), "Set-Cookie"), "; Secure");
    asking_end(&k);
}

static void a_page_of_another_site_changes_nothing_with_a_cookie(void)
{
    static const struct {
        struct asked_header header;
        int status;
    } rows[] = {
        { { "Sec-Fetch-Site", "cross-site" }, 403 },
        { { "Sec-Fetch-Site", "same-site" }, 403 },
        { { "Origin", "https://evil.example" }, 403 },
        { { "Origin", "null" }, 403 },
        { { "Referer", "https://evil.example/x" }, 403 },
        { { "Sec-Fetch-Site", "same-origin" }, 201 },
    };
    struct asking k;
    begin(&k);
    const char *session = asking_session(&k, "ana");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer *a =
            ask_so(&k, &(struct question){ .who = session,
                                           .request = "POST /v1/jobs",
                                           .body = "{'command':['true'],'held':true}",
                                           .header = { rows[i].header, { "Host", "gpu.lab" } } });
        if (a->status != rows[i].status)
            test_fail(__FILE__, __LINE__, "%s: %s: %d %s", rows[i].header.name,
                      rows[i].header.value, a->status, a->text);
    }
    CHECK_INT(at_len(ask(&k, "ana", "GET /v1/jobs?state=all"), "jobs"), 1);
    CHECK_STATUS(ask_so(&k, &(struct question){ .who = session,
                                                .request = "GET /v1/jobs",
                                                .header = { { "Sec-Fetch-Site", "cross-site" } } }),
                 200); /* looking changes nothing, and no page of theirs can read it */
    asking_end(&k);
}

static struct answer *out(struct asking *k, const char *session, const char *request)
{
    return ask_so(k, &(struct question){ .who = session,
                                         .request = request,
                                         .header = { { "Sec-Fetch-Site", "same-origin" } } });
}

static void one_browser_signs_out_or_all_of_them_do(void)
{
    struct asking k;
    begin(&k);
    const char *one = asking_session(&k, "ana"), *two = asking_session(&k, "ana"),
               *three = asking_session(&k, "ana");
    CHECK_INT(at_len(ask(&k, one, "GET /v1/sessions"), "sessions"), 3);
    CHECK_STATUS(out(&k, one, "DELETE /v1/session"), 204);
    CHECK_STATUS(ask(&k, one, "GET /v1/whoami"), 401);
    CHECK_STATUS(ask(&k, two, "GET /v1/whoami"), 200);
    CHECK_STATUS(out(&k, two, "DELETE /v1/sessions"), 204);
    asking_again(&k);
    CHECK_STATUS(ask(&k, two, "GET /v1/whoami"), 401);
    CHECK_STATUS(ask(&k, three, "GET /v1/whoami"), 401);
    CHECK_STATUS(ask(&k, "ana", "GET /v1/whoami"), 200); /* tokens stay */
    asking_end(&k);
}

static void a_session_is_over_when_its_time_is(void)
{
    struct asking k;
    begin(&k);
    const char *session = asking_session(&k, "ana");
    k.t.now_ms += 24 * HOUR - 1;
    CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 200);
    k.t.now_ms += 1;
    CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 401);
    asking_end(&k);
}

static void a_session_has_a_new_cookie_after_an_hour_and_the_old_one_ends_a_minute_later(void)
{
    struct asking k;
    begin(&k);
    const char *old = asking_session(&k, "ana");
    k.t.now_ms += HOUR - 1;
    CHECK_STR(cookie_of(&k, ask(&k, old, "GET /v1/whoami")), "");
    k.t.now_ms += 1;
    struct answer *stream = ask(&k, old, "GET /v1/events"); /* its head may be long gone */
    CHECK_STR(cookie_of(&k, stream), "");
    leave(&k, stream);
    const char *fresh = cookie_of(&k, ask(&k, old, "GET /v1/whoami"));
    CHECK(*fresh && strcmp(fresh, old) != 0);
    asking_settle(&k);
    CHECK_STATUS(ask(&k, old, "GET /v1/whoami"), 200); /* a request that was on its way */
    CHECK_INT(at_len(ask(&k, fresh, "GET /v1/sessions"), "sessions"), 1);
    k.t.now_ms += 61000;
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(ask(&k, old, "GET /v1/whoami"), 401);
        CHECK_STATUS(ask(&k, fresh, "GET /v1/whoami"), 200);
        asking_again(&k);
    }
    CHECK_STATUS(out(&k, fresh, "DELETE /v1/session"), 204);
    CHECK_STATUS(ask(&k, fresh, "GET /v1/whoami"), 401);
    asking_end(&k);
}

static void somebody_has_fifty_sessions_and_one_more_ends_the_oldest(void)
{
    struct asking k;
    begin(&k);
    const char *first = asking_session(&k, "ana"), *last = NULL;
    for (int i = 0; i < 50; i++) {
        k.t.now_ms += 1;
        last = asking_session(&k, "ana");
    }
    CHECK_STATUS(ask(&k, first, "GET /v1/whoami"), 401);
    CHECK_INT(at_len(ask(&k, last, "GET /v1/sessions"), "sessions"), 50);
    asking_end(&k);
}

/* ---- passwords: nightshift-signin answers ---- */

static struct answer *sign_in(struct asking *k, const char *user, const char *password,
                              const char *address)
{
    return ask_so(
        k, &(struct question){ .request = "POST /v1/session",
                               .body = say(k, "{'user':'%s','password':'%s'}", user, password),
                               .address = address });
}

static void a_password_signs_in_and_a_wrong_one_is_told_as_a_name_that_nobody_has(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/users/ana/password", "{'password':'" PASSWORD "'}"),
                 204);
    struct answer *a = sign_in(&k, "ana", PASSWORD, "203.0.113.1:1");
    const char *session = cookie_of(&k, CHECK_STATUS(a, 204));
    CHECK_STR(at_str(ask(&k, session, "GET /v1/whoami"), "user"), "ana");
    a = sign_in(&k, "ana", "not-it", "203.0.113.2:1");
    struct answer *b = sign_in(&k, "nobody-here", "not-it", "203.0.113.3:1");
    CHECK_REFUSED(a, 403, "denied", "*", "the name or the password is wrong");
    CHECK_STR(a->text, b->text);
    CHECK_REFUSED(sign_in(&k, "ana", "", "203.0.113.4:1"), 400, "invalid", "password", "is empty");
    asking_again(&k);
    CHECK_STATUS(ask(&k, session, "GET /v1/whoami"), 200);
    asking_end(&k);
}

static void a_password_of_ones_own_is_changed_with_the_old_one(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/users/ana/password", "{'password':'" PASSWORD "'}"),
                 204);
    static const struct bad rows[] = {
        { "POST /v1/users/ana/password", "{'password':'short','old':'" PASSWORD "'}", 400,
          "password", "too short" },
        { "POST /v1/users/ana/password", "{'password':5}", 400, "password", "password" },
        { "POST /v1/users/ana/password", "{'password':'another horse battery','old':'wrong'}", 403,
          "old", "old" },
        { "POST /v1/users/ana/password", "{'password':'another horse battery','new':1}", 400, "new",
          "new" },
    };
    CHECK_BAD(&k, "ana", rows);
    CHECK_STATUS(ask_with(&k, "ana", "POST /v1/users/ana/password",
                          "{'password':'another horse battery','old':'" PASSWORD "'}"),
                 204);
    CHECK_STATUS(sign_in(&k, "ana", "another horse battery", NULL), 204);
    asking_end(&k);
}

/* ---- the first administrator ---- */

static void whoever_has_the_one_time_code_becomes_the_first_administrator_once(void)
{
    struct asking k;
    char folder[] = "/tmp/nightshift-setup-XXXXXX", path[100];
    AUTO(buf_free) struct buf code = BUF(200);
    struct err e;
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/setup-code", folder);
    asking_begin(&k, &(struct asking_site){ .api = { .state = folder } });
    CHECK(file_read(path, 100, &code, &e) == 0);
    struct str text = str_trim(buf_str(&code));
    CHECK_STR(at_str(ask(&k, NULL, "GET /v1/signin"), "setup"), "true");
    CHECK_REFUSED(ask_with(&k, NULL, "POST /v1/setup",
                           "{'code':'AAAA-1','user':'adm','password':'" PASSWORD "'}"),
                  403, "denied", "code", "code");
    const char *right = say(&k, "%.*s", STR_ARG(text));
    CHECK_REFUSED(ask_with(&k, NULL, "POST /v1/setup",
                           say(&k, "{'code':'%s','user':'adm','password':'short'}", right)),
                  400, "invalid", "password", "too short");
    CHECK_STATUS(ask_with(&k, NULL, "POST /v1/setup",
                          say(&k, "{'code':'%s','user':'adm','password':'" PASSWORD "'}", right)),
                 204);
    CHECK(access(path, F_OK) < 0);
    CHECK_STR(at_str(ask(&k, NULL, "GET /v1/signin"), "setup"), "false");
    CHECK_STATUS(ask_with(&k, NULL, "POST /v1/setup",
                          say(&k, "{'code':'%s','user':'ad2','password':'" PASSWORD "'}", right)),
                 403);
    CHECK_STR(at_str(ask(&k, "root", "GET /v1/users/adm"), "role"), "admin");
    CHECK_STATUS(ask(&k, "root", "GET /v1/users/ad2"), 404);
    asking_end(&k);
    rmdir(folder);
}

/* ---- the notice ---- */

static void before_the_notice_is_accepted_nothing_else_works(void)
{
    struct asking k;
    begin_with(&k, &(struct asking_site){ .api = { .notice = "this is a trial" } });
    const char *session = asking_session(&k, "ana");
    CHECK_STR(at_str(ask(&k, session, "GET /v1/whoami"), "notice"), "this is a trial");
    CHECK_REFUSED(ask(&k, session, "GET /v1/jobs"), 403, "denied", NULL, "this is a trial");
    CHECK_STATUS(out(&k, session, "POST /v1/notice"), 204);
    CHECK_STATUS(ask(&k, session, "GET /v1/jobs"), 200);
    asking_again(&k);
    CHECK_STATUS(ask(&k, asking_session(&k, "ana"), "GET /v1/jobs"),
                 200); /* it is asked for once */
    struct answer *a = ask(&k, "root", "GET /v1/audit?what=notice.accept");
    CHECK_INT(at_len(a, "rows"), 1);
    CHECK_STR(at_str(a, "rows.0.who"), "ana");
    asking_end(&k);
}

/* ---- a command line that waits ---- */

static struct answer *poll(struct asking *k, const char *code)
{
    return ask_with(k, NULL, "POST /v1/login/poll", say(k, "{'device_code':'%s'}", code));
}

static void a_command_line_gets_a_token_when_somebody_says_yes(void)
{
    struct asking k;
    begin(&k);
    const char *session = asking_session(&k, "ana");
    struct answer *a = CHECK_STATUS(ask_with(&k, NULL, "POST /v1/login", "{'name':'laptop'}"), 200);
    const char *device = at_str(a, "device_code"), *code = at_str(a, "user_code");
    CHECK_STR(poll(&k, device)->text, "{\"state\":\"pending\"}");
    CHECK_STR(at_str(ask(&k, session, say(&k, "GET /v1/login/%s", code)), "name"), "laptop");
    CHECK_STATUS(ask(&k, NULL, say(&k, "POST /v1/login/%s/approve", code)), 401);
    CHECK_REFUSED(ask(&k, "ana", say(&k, "POST /v1/login/%s/approve", code)), 403, "denied", NULL,
                  "a token cannot say yes for its owner");
    CHECK_STATUS(out(&k, session, say(&k, "POST /v1/login/%s/approve", code)), 204);
    a = CHECK_STATUS(poll(&k, device), 200);
    CHECK_STR(at_str(a, "state"), "done");
    CHECK_STR(at_str(ask(&k, at_str(a, "token"), "GET /v1/whoami"), "user"), "ana");
    CHECK_REFUSED(poll(&k, device), 404, "not_found", NULL, "this sign-in is over");
    asking_end(&k);
}

static void it_gets_none_when_somebody_says_no_or_nobody_says_anything(void)
{
    struct asking k;
    begin(&k);
    const char *session = asking_session(&k, "ana");
    struct answer *a = CHECK_STATUS(ask_with(&k, NULL, "POST /v1/login", "{}"), 200);
    CHECK_STATUS(out(&k, session, say(&k, "POST /v1/login/%s/deny", at_str(a, "user_code"))), 204);
    CHECK_REFUSED(poll(&k, at_str(a, "device_code")), 403, "denied", NULL, "somebody said no");
    a = CHECK_STATUS(ask_with(&k, NULL, "POST /v1/login", "{}"), 200);
    k.t.now_ms += 11 * 60000;
    CHECK_STATUS(poll(&k, at_str(a, "device_code")), 404);
    CHECK_REFUSED(ask(&k, session, say(&k, "GET /v1/login/%s", at_str(a, "user_code"))), 404,
                  "not_found", NULL, "no command line waits under this code");
    asking_end(&k);
}

static int login_from(struct asking *k, const char *address, uint32_t uid)
{
    return ask_so(k,
                  &(struct question){
                      .request = "POST /v1/login", .body = "{}", .address = address, .uid = uid })
        ->status;
}

/* Else one of them could have all that there are, and nobody else signs a command line in. */
static void ten_command_lines_of_one_place_wait_at_a_time(void)
{
    static const struct {
        const char *from, *same, *other; /* NULL: users of this machine */
    } rows[] = {
        { "203.0.113.9:40000", "203.0.113.9:41000", "203.0.113.10:40000" },
        { "[2001:db8:0:1::9]:40000", "[2001:db8:0:1::a]:40000", "[2001:db8:0:2::9]:40000" },
        { NULL, NULL, NULL },
    };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t uid = rows[i].from ? 0 : 4711, other = rows[i].from ? 0 : 4712;
        for (int n = 0; n < 10; n++)
            CHECK_AT(i, login_from(&k, rows[i].from, uid) == 200);
        CHECK_AT(i, login_from(&k, rows[i].same, uid) == 429);
        CHECK_AT(i, login_from(&k, rows[i].other, other) == 200);
    }
    k.t.now_ms += 11 * 60000;
    CHECK_INT(login_from(&k, rows[0].from, 0), 200);
    asking_end(&k);
}

static const struct test tests[] = {
    { "a token opens a session with what it has, and no more",
      a_token_opens_a_session_with_what_it_has_and_no_more },
    { "a session ends with the token that opened it",
      a_session_ends_with_the_token_that_opened_it },
    { "the cookie is for this server's own pages only",
      the_cookie_is_for_this_servers_own_pages_only },
    { "a page of another site changes nothing with a cookie",
      a_page_of_another_site_changes_nothing_with_a_cookie },
    { "one browser signs out, or all of them do", one_browser_signs_out_or_all_of_them_do },
    { "a session is over when its time is", a_session_is_over_when_its_time_is },
    { "a session has a new cookie after an hour; the old one ends a minute later",
      a_session_has_a_new_cookie_after_an_hour_and_the_old_one_ends_a_minute_later },
    { "somebody has fifty sessions, and one more ends the oldest",
      somebody_has_fifty_sessions_and_one_more_ends_the_oldest },
    { "a password signs in; a wrong one and a name that nobody has are the same words",
      a_password_signs_in_and_a_wrong_one_is_told_as_a_name_that_nobody_has },
    { "a password of one's own is changed with the old one",
      a_password_of_ones_own_is_changed_with_the_old_one },
    { "whoever has the one-time code becomes the first administrator, once",
      whoever_has_the_one_time_code_becomes_the_first_administrator_once },
    { "before the notice is accepted nothing else works; it is asked for once, and in the audit",
      before_the_notice_is_accepted_nothing_else_works },
    { "a command line gets a token when somebody says yes in a browser",
      a_command_line_gets_a_token_when_somebody_says_yes },
    { "it gets none when somebody says no, or nobody says anything",
      it_gets_none_when_somebody_says_no_or_nobody_says_anything },
    { "ten command lines of one place wait at a time",
      ten_command_lines_of_one_place_wait_at_a_time },
};
TEST_CASES(tests)
