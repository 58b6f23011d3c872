/* Why a job waits and waited, and what would become of one that is not submitted yet. */
#include "tests/lib/asking.h"

#define ALL_GPUS "'command':['sleep','999999'],'resources':{'gpus':4,'cpus':1,'mem':'1Gi'}"
#define GPUS(n) "'command':['sleep','999999'],'resources':{'gpus':" #n ",'cpus':1,'mem':'1Gi'}"

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "eve", "speech", "member");
}

static struct answer *why(struct asking *k, const char *who, uint64_t id, int64_t at_ms)
{
    const char *then = at_ms ? say(k, "?at_ms=%lld", (long long)at_ms) : "";
    return ask(k, who, say(k, "GET /v1/jobs/%llu/why%s", (unsigned long long)id, then));
}

static void cancel(struct asking *k, uint64_t id)
{
    CHECK_STATUS(ask(k, "root", say(k, "POST /v1/jobs/%llu/cancel", (unsigned long long)id)), 200);
    asking_wait(k, 2000);
}

/* One job has all GPUs; a second waits for it; the first ends, and the second runs, and ends. */
struct story {
    uint64_t first, second;
    int64_t submitted_ms, asked_ms, ran_ms, ended_ms;
    const char *said; /* of the second, while it waited */
};

static void tell(struct asking *k, struct story *s)
{
    s->first = asking_submit(k, "ana", "{" ALL_GPUS ",'name':'first'}");
    asking_wait(k, 1000);
    s->second = asking_submit(k, "ana", "{" GPUS(2) ",'name':'second'}");
    s->submitted_ms = k->t.now_ms;
    asking_wait(k, 60000);
    s->asked_ms = k->t.now_ms;
    s->said = say(k, "%s", why(k, "ana", s->second, 0)->text);
    asking_wait(k, 60000);
    cancel(k, s->first);
    asking_wait(k, 60000);
    CHECK_STR(asking_state(k, s->second), "running");
    s->ran_ms = k->t.now_ms;
    asking_wait(k, 60000);
    s->ended_ms = k->t.now_ms;
    cancel(k, s->second);
}

/* ---- now ---- */

static void a_job_that_waits_is_told_why_since_when_and_what_would_help(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{" ALL_GPUS ",'max_time':'1h'}");
    uint64_t id = asking_submit(&k, "ana", "{" GPUS(2) "}");
    asking_wait(&k, 30000);
    struct answer *a = CHECK_STATUS(why(&k, "ana", id, 0), 200);
    CHECK_INT(at_int(a, "job"), id);
    CHECK_STR(at_str(a, "state"), "queued");
    CHECK_INT(at_int(a, "waited_ms"), 30000);
    CHECK_INT(at_len(a, "reasons"), 1);
    CHECK_STR(at_str(a, "reasons.0.code"), "gpus_busy");
    CHECK_STR(at_str(a, "reasons.0.text"), "needs 2 GPUs; 0 free now, at most 0 on one machine");
    CHECK(at_int(a, "starts.p50_ms") > k.t.now_ms);
    CHECK(at_int(a, "starts.p90_ms") >= at_int(a, "starts.p50_ms"));
    asking_end(&k);
}

static void a_job_that_runs_or_has_ended_has_no_reasons(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", "{" GPUS(1) "}");
    struct answer *a = why(&k, "ana", id, 0);
    CHECK_STR(at_str(a, "state"), "running");
    CHECK_INT(at_len(a, "reasons"), 0);
    cancel(&k, id);
    a = why(&k, "ana", id, 0);
    CHECK_STR(at_str(a, "state"), "cancelled");
    CHECK_INT(at_len(a, "reasons"), 0);
    CHECK_HAS(at_str(a, "message"), "root");
    asking_end(&k);
}

static void each_cause_has_its_code(void)
{
    static const struct {
        const char *spec, *code;
    } rows[] = {
        { "{" GPUS(1) ",'held':true}", "held" },
        { "{" GPUS(1) ",'begin':'2023-11-15T12:00:00Z'}", "begin" },
        { "{" GPUS(1) ",'after':['ok:1']}", "after" },
        { "{" GPUS(4) "}", "gpus_busy" },
        { "{'command':['true'],'resources':{'cpus':15,'mem':'1Gi'}}", "cpu_busy" },
        { "{'command':['true'],'resources':{'cpus':1,'mem':'63Gi'}}", "memory_busy" },
    };
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','999999'],'resources':{'gpus':1,'cpus':4}}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t id = asking_submit(&k, "ana", rows[i].spec);
        struct answer *a = why(&k, "ana", id, 0);
        if (strcmp(at_str(a, "reasons.0.code"), rows[i].code) != 0)
            test_fail(__FILE__, __LINE__, "%s: %s", rows[i].spec, a->text);
    }
    asking_end(&k);
}

static void a_limit_of_a_tenant_is_named(void)
{
    struct asking k;
    begin(&k);
    asking_tenant(&k, "vision", "{'limit':{'gpus':1}}");
    asking_submit(&k, "ana", "{" GPUS(1) "}");
    uint64_t id = asking_submit(&k, "ana", "{" GPUS(1) "}");
    struct answer *a = why(&k, "ana", id, 0);
    CHECK_STR(at_str(a, "reasons.0.code"), "tenant_limit");
    CHECK_HAS(at_str(a, "reasons.0.text"), "vision");
    asking_end(&k);
}

/* ---- then ---- */

static void what_was_said_while_it_waited_is_said_of_that_time_later(void)
{
    struct asking k;
    struct story s;
    begin(&k);
    tell(&k, &s);
    for (int round = 0; round < 2; round++) {
        struct answer *a = CHECK_STATUS(why(&k, "ana", s.second, s.asked_ms), 200);
        CHECK_STR(at_str(a, "state"), "queued");
        CHECK_INT(at_int(a, "at_ms"), s.asked_ms);
        CHECK_INT(at_int(a, "waited_ms"), s.asked_ms - s.submitted_ms);
        CHECK_STR(at_str(a, "reasons.0.code"), "gpus_busy");
        /* to the letter */
        CHECK_HAS(s.said, say(&k, "\"text\":\"%s\"", at_str(a, "reasons.0.text")));
        CHECK_HAS(s.said, say(&k, "\"p50_ms\":%lld", (long long)at_int(a, "starts.p50_ms")));
        CHECK_INT(at_len(a, "instead.jobs"), 1);
        CHECK_INT(at_int(a, "instead.jobs.0.id"), s.first);
        CHECK_STR(at_str(a, "instead.jobs.0.name"), "first");
        CHECK_INT(at_int(a, "instead.jobs.0.gpu_milli"), 4000);
        CHECK_INT(at_int(a, "instead.others"), 0);
        asking_again(&k);
    }
    asking_end(&k);
}

static void of_a_time_at_which_it_ran_it_says_where_and_after_its_end_how_it_ended(void)
{
    struct asking k;
    struct story s;
    begin(&k);
    tell(&k, &s);
    struct answer *a = CHECK_STATUS(why(&k, "ana", s.second, s.ran_ms), 200);
    CHECK_STR(at_str(a, "state"), "running");
    CHECK_INT(at_len(a, "reasons"), 0);
    CHECK_STR(at_str(a, "nodes.0"), "desk1");
    CHECK(at_int(a, "since_ms") > s.asked_ms && at_int(a, "since_ms") <= s.ran_ms);
    a = CHECK_STATUS(why(&k, "ana", s.second, s.ended_ms + 1), 200);
    CHECK_STR(at_str(a, "state"), "cancelled");
    CHECK_INT(at_int(a, "since_ms"), s.ended_ms);
    CHECK_HAS(at_str(a, "message"), "root");
    asking_end(&k);
}

static void times_that_cannot_be_looked_at_are_refused_with_what_can(void)
{
    struct asking k;
    struct story s;
    begin(&k);
    tell(&k, &s);
    CHECK_REFUSED(
        why(&k, "ana", s.second, s.submitted_ms - 1), 409, "conflict", "at_ms",
        "was not there at 2023-11-14T22:13:20.999Z: it was submitted at 2023-11-14T22:13:21");
    CHECK_REFUSED(why(&k, "ana", s.second, k.t.now_ms + 1), 409, "conflict", "at_ms",
                  "is in the future");
    static const char *const odd[] = { "0", "-1", "x", "", "999999999999999999999", "1.5" };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        CHECK_REFUSED(ask(&k, "ana", say(&k, "GET /v1/jobs/1/why?at_ms=%s", odd[i])), 400,
                      "invalid", "at_ms", "at_ms");
    CHECK_REFUSED(why(&k, "ana", 999999, s.asked_ms), 404, "not_found", "*", "999999");
    asking_end(&k);
}

static void jobs_of_other_tenants_are_counted_and_not_named(void)
{
    struct asking k;
    begin(&k);
    for (int i = 0; i < 4; i++)
        asking_submit(&k, "eve", "{" GPUS(1) ",'name':'secret'}");
    uint64_t mine = asking_submit(&k, "ana", "{" GPUS(1) "}");
    asking_wait(&k, 1000);
    struct answer *a = CHECK_STATUS(why(&k, "ana", mine, k.t.now_ms), 200);
    CHECK_INT(at_len(a, "instead.jobs"), 0);
    CHECK_INT(at_int(a, "instead.others"), 4);
    CHECK(!strstr(a->text, "secret") && !strstr(a->text, "eve") && !strstr(a->text, "speech"));
    CHECK(!strstr(why(&k, "ana", mine, 0)->text, "secret"));
    CHECK_INT(at_len(why(&k, "root", mine, k.t.now_ms), "instead.jobs"), 4);
    CHECK_REFUSED(why(&k, "eve", mine, k.t.now_ms), 404, "not_found", "*", "there is no job");
    CHECK_REFUSED(why(&k, "eve", mine, 0), 404, "not_found", "*", "there is no job");
    asking_end(&k);
}

static void among_many_that_come_and_go_each_time_has_its_own_answer(void)
{
    struct moment {
        uint64_t id;
        int64_t at_ms;
        const char *text;
    } said[200];
    static const char *const priority[] = { "low", "normal", "high" };
    uint64_t id[16];
    size_t n = 0;
    struct asking k;
    begin(&k);
    for (int i = 0; i < 4; i++)
        id[i] = asking_submit(&k, "ana", "{" GPUS(1) "}");
    for (int i = 4; i < 16; i++)
        id[i] = asking_submit(
            &k, "ana",
            say(&k,
                "{'command':['sleep','999999'],'priority':'%s','resources':{'gpus':%d,'cpus':1}}",
                priority[i % 3], 1 + i % 3));
    for (int i = 0; i < 16; i++) {
        asking_wait(&k, 1000);
        for (int j = 4; j < 16; j++)
            if (strcmp(asking_state(&k, id[j]), "queued") == 0 && n < ARRAY_LEN(said))
                said[n++] =
                    (struct moment){ id[j], k.t.now_ms,
                                     say(&k, "%s",
                                         at_str(why(&k, "ana", id[j], 0), "reasons.0.text")) };
        asking_wait(&k, 1000);
        cancel(&k, id[i]);
    }
    CHECK(n > 50);
    for (size_t i = 0; i < n; i++)
        CHECK_STR(at_str(why(&k, "ana", said[i].id, said[i].at_ms), "reasons.0.text"),
                  said[i].text);
    asking_end(&k);
}

static void whoever_looks_into_the_past_when_the_server_stops_is_told_so(void)
{
    struct asking k;
    struct story s;
    begin(&k);
    tell(&k, &s);
    const char *token = asking_token(&k, "ana", "'scopes':['read']");
    struct answer *a =
        ask_begin(&k, &(struct question){ .who = token,
                                          .request = say(&k, "GET /v1/jobs/%llu/why?at_ms=%lld",
                                                         (unsigned long long)s.second,
                                                         (long long)s.asked_ms) });
    CHECK_INT(a->status, 0);
    api_stop(k.api);
    answer_wait(&k, a);
    CHECK_REFUSED(a, 503, "unavailable", NULL, "the server is being stopped");
    asking_end(&k);
}

static void one_at_a_time_looks_into_the_past_for_somebody_and_others_have_room(void)
{
    struct asking k;
    struct story s;
    begin(&k);
    tell(&k, &s);
    const char *token = asking_token(&k, "ana", "'scopes':['read']");
    struct question q = { .who = token,
                          .request = say(&k, "GET /v1/jobs/%llu/why?at_ms=%lld",
                                         (unsigned long long)s.second, (long long)s.asked_ms) };
    struct answer *first = ask_begin(&k, &q), *second = ask_begin(&k, &q);
    q.who = "root";
    struct answer *other = ask_begin(&k, &q);
    CHECK_REFUSED(second, 503, "unavailable", NULL, "you look into the past already");
    answer_wait(&k, other);
    CHECK_STATUS(other, 200);
    answer_wait(&k, first);
    CHECK_STATUS(first, 200);
    q.who = token;
    CHECK_STATUS(ask_so(&k, &q), 200);
    asking_end(&k);
}

/* ---- before it is submitted ---- */

static struct answer *check(struct asking *k, const char *who, const char *body)
{
    return ask_with(k, who, "POST /v1/jobs/check", body);
}

static void a_job_that_fits_is_said_to_start_at_once_and_nothing_is_changed(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['jobs','read']");
    uint64_t commits = control_stats(k.t.c).commits;
    struct answer *a = CHECK_STATUS(check(&k, token, "{" ALL_GPUS "}"), 200);
    CHECK_STR(at_str(a, "ok"), "true");
    CHECK_STR(at_str(a, "starts_now"), "true");
    CHECK_INT(control_stats(k.t.c).commits, commits);
    CHECK_INT(at_len(ask(&k, token, "GET /v1/jobs?state=all"), "jobs"), 0);
    CHECK_INT(asking_submit(&k, token, "{" ALL_GPUS "}"), 1); /* no number was used up */
    asking_end(&k);
}

static void a_job_that_would_wait_is_said_why_and_until_when_as_it_then_is(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{" ALL_GPUS ",'max_time':'1h'}");
    struct answer *a = CHECK_STATUS(check(&k, "ana", "{" GPUS(2) "}"), 200);
    CHECK_STR(at_str(a, "starts_now"), "false");
    CHECK_STR(at_str(a, "reasons.0.code"), "gpus_busy");
    CHECK(at_int(a, "starts.p50_ms") > k.t.now_ms);
    CHECK_STR(at_str(check(&k, "ana", "{" GPUS(1) ",'held':true}"), "starts_now"), "false");
    CHECK_STR(at_str(check(&k, "ana", "{'command':['true']}"), "starts_now"), "true");
    uint64_t id = asking_submit(&k, "ana", "{" GPUS(2) "}");
    asking_wait(&k, 1000);
    struct answer *really = why(&k, "ana", id, 0);
    CHECK_STR(at_str(really, "reasons.0.text"), at_str(a, "reasons.0.text"));
    CHECK(llabs(at_int(really, "starts.p50_ms") - at_int(a, "starts.p50_ms")) < 120000);
    asking_end(&k);
}

static void what_would_be_refused_is_refused_in_the_same_words(void)
{
    static const char *const specs[] = {
        "{'command':['true'],'resources':{'gpus':9}}", "{'command':[]}",
        "{'command':['true'],'tenant':'speech'}",      "{'command':['true'],'gpus':1}",
        "{'command':['true'],'after':['ok:77']}",
    };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct answer *would = check(&k, "ana", specs[i]);
        struct answer *is = ask_with(&k, "ana", "POST /v1/jobs", specs[i]);
        CHECK(is->status >= 400);
        CHECK_INT(would->status, is->status);
        CHECK_STR(would->text, is->text);
    }
    asking_end(&k);
}

static void who_asks_again_and_again_has_one_answer_at_a_time_and_keeps_nobody_from_theirs(void)
{
    struct asking k;
    begin(&k);
    const char *ana = asking_token(&k, "ana", "'scopes':['jobs']");
    const char *eve = asking_token(&k, "eve", "'scopes':['jobs']");
    struct question q = { .who = ana,
                          .request = "POST /v1/jobs/check",
                          .body = "{'command':['true']}" };
    struct answer *first = ask_begin(&k, &q), *waits = ask_begin(&k, &q);
    CHECK_INT(first->status + waits->status, 0);
    for (int i = 0; i < 20; i++) { /* the newest waits, the one before is told to come again */
        struct answer *before = waits;
        waits = ask_begin(&k, &q);
        answer_wait(&k, before);
        CHECK_STR(at_str(CHECK_STATUS(before, 200), "ok"), "true");
        CHECK_STR(at_str(before, "starts_now"), "null");
        CHECK_INT(at_int(before, "again_ms"), 1000);
        CHECK_INT(waits->status, 0);
    }
    q.who = eve;
    struct answer *other = ask_begin(&k, &q);
    answer_wait(&k, other);
    CHECK_STR(at_str(CHECK_STATUS(other, 200), "starts_now"), "true");
    answer_wait(&k, waits);
    CHECK_STR(at_str(CHECK_STATUS(waits, 200), "starts_now"), "true");
    answer_wait(&k, first);
    CHECK_STR(at_str(CHECK_STATUS(first, 200), "starts_now"), "true");
    asking_end(&k);
}

static const struct test tests[] = {
    { "a job that waits is told why, since when, and when it may start",
      a_job_that_waits_is_told_why_since_when_and_what_would_help },
    { "a job that runs or has ended has no reasons", a_job_that_runs_or_has_ended_has_no_reasons },
    { "each cause has its code", each_cause_has_its_code },
    { "a limit of a tenant is named", a_limit_of_a_tenant_is_named },
    { "what why said while it waited is what it says of that time later, also after a crash",
      what_was_said_while_it_waited_is_said_of_that_time_later },
    { "of a time at which it ran it says since when and where; after its end, how it ended",
      of_a_time_at_which_it_ran_it_says_where_and_after_its_end_how_it_ended },
    { "times that cannot be looked at are refused with what can",
      times_that_cannot_be_looked_at_are_refused_with_what_can },
    { "jobs of other tenants are counted, not named",
      jobs_of_other_tenants_are_counted_and_not_named },
    { "every job that waits at a time says what it said, among many that come and go",
      among_many_that_come_and_go_each_time_has_its_own_answer },
    { "whoever looks into the past when the server stops is told so",
      whoever_looks_into_the_past_when_the_server_stops_is_told_so },
    { "one at a time looks into the past for somebody, and others have room",
      one_at_a_time_looks_into_the_past_for_somebody_and_others_have_room },
    { "a job that fits is said to start at once, and nothing is changed",
      a_job_that_fits_is_said_to_start_at_once_and_nothing_is_changed },
    { "a job that would wait is said why and until when, as it then is",
      a_job_that_would_wait_is_said_why_and_until_when_as_it_then_is },
    { "what would be refused is refused in the same words",
      what_would_be_refused_is_refused_in_the_same_words },
    { "who asks again and again has one answer at a time, and keeps nobody from theirs",
      who_asks_again_and_again_has_one_answer_at_a_time_and_keeps_nobody_from_theirs },
};
TEST_CASES(tests)
