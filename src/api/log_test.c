/* What jobs wrote: read, followed, searched, by those who may. */
#include "tests/lib/asking.h"

#define SLEEP "{'command':['sleep','999999'],'resources':{'cpus':1,'mem':'64Mi'}}"

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "bob", "vision", "member");
    asking_person(k, "lea", "vision", "lead");
    asking_person(k, "vic", "vision", "viewer");
    asking_person(k, "eve", "speech", "member");
}

/* A job that runs and wrote this. */
static uint64_t wrote(struct asking *k, const char *who, const char *text)
{
    uint64_t id = asking_submit(k, who, SLEEP);
    asking_output(k, (struct task_id){ id, 1, 0 }, text);
    return id;
}

static struct answer *log_of(struct asking *k, const char *who, uint64_t id, const char *query)
{
    return ask(k, who, say(k, "GET /v1/jobs/%llu/log%s", (unsigned long long)id, query));
}

static const char *text_of_log(struct asking *k, uint64_t id, const char *query)
{
    return hear_all(k, CHECK_STATUS(log_of(k, "ana", id, query), 200));
}

/* ---- one job ---- */

static void output_is_read_whole_and_from_its_end(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = wrote(&k, "ana", "one\ntwo\nthree\nhalf");
    CHECK_STR(text_of_log(&k, id, ""), "one\ntwo\nthree\nhalf");
    CHECK_STR(text_of_log(&k, id, "?tail=2"), "three\nhalf");
    CHECK_STR(text_of_log(&k, id, "?tail=0"), "");
    CHECK_HAS(text_of_log(&k, id, "?format=records"), "Z stdout F one\n");
    CHECK_STR(text_of_log(&k, asking_submit(&k, "ana", "{'command':['true'],'held':true}"), ""),
              "");
    asking_end(&k);
}

static void only_lines_with_the_text_come_out(void)
{
    static const struct {
        const char *query, *want;
    } rows[] = {
        { "?grep=loss", "loss 0.5\ndone loss\n" },
        { "?grep=loss&ignore_case", "loss 0.5\nLOSS 0.4\ndone loss\n" },
        { "?grep=loss&ignore_case=true", "loss 0.5\nLOSS 0.4\ndone loss\n" },
        { "?grep=l.ss", "" }, /* a text, not a pattern */
        { "?grep=epoch&tail=3", "epoch 3\nepoch 4\n" },
        { "?grep=0.4&context=1", "loss 0.5\nLOSS 0.4\nepoch 3\n" },
        { "?grep=loss&context=0", "loss 0.5\ndone loss\n" },
    };
    struct asking k;
    begin(&k);
    uint64_t id =
        wrote(&k, "ana", "epoch 1\nepoch 2\nloss 0.5\nLOSS 0.4\nepoch 3\nepoch 4\ndone loss\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(text_of_log(&k, id, rows[i].query), rows[i].want) != 0)
            test_fail(__FILE__, __LINE__, "%s: %s", rows[i].query,
                      text_of_log(&k, id, rows[i].query));
    CHECK_REFUSED(log_of(&k, "ana", id, "?grep="), 400, "invalid", "grep", "grep");
    CHECK_REFUSED(log_of(&k, "ana", id, "?grep=x&context=51"), 400, "invalid", "context",
                  "context");
    asking_end(&k);
}

static void lines_around_a_match_have_a_mark_where_some_are_left_out(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = wrote(&k, "ana", "1\n2\nx3\n4\n5\n6\n7\nx8\n9\n");
    CHECK_STR(text_of_log(&k, id, "?grep=x&context=1"), "2\nx3\n4\n--\n7\nx8\n9\n");
    asking_end(&k);
}

static void what_comes_later_is_heard_by_those_who_follow_until_the_job_ends(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = wrote(&k, "ana", "first word\n");
    struct answer *all = log_of(&k, "ana", id, "?follow"),
                  *some = log_of(&k, "ana", id, "?follow=true&grep=word");
    hear(&k, all, "first word\n");
    asking_output(&k, (struct task_id){ id, 1, 0 }, "nothing\nlast word\n");
    hear(&k, all, "last word\n");
    hear(&k, some, "last word\n");
    CHECK(!asked_over(all->rq));
    ask(&k, "ana", say(&k, "POST /v1/jobs/%llu/cancel", (unsigned long long)id));
    asking_wait(&k, 1000);
    CHECK_STR(hear_all(&k, all), "first word\nnothing\nlast word\n");
    CHECK_STR(hear_all(&k, some), "first word\nlast word\n");
    asking_end(&k);
}

static void much_output_comes_whole_to_whoever_reads_it(void)
{
    struct asking k;
    AUTO(buf_free) struct buf b = BUF(4u << 20);
    begin(&k);
    for (int i = 0; b.n < 2000000; i++)
        buf_printf(&b, "line %d of what is more than fits in a queue\n", i);
    uint64_t id = wrote(&k, "ana", b.p);
    const char *said = text_of_log(&k, id, "");
    CHECK_INT(strlen(said), b.n);
    CHECK(strcmp(said, b.p) == 0);
    asking_end(&k);
}

static void each_replica_and_each_run_has_its_own(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(
        &k, "ana", "{'command':['sleep','9999'],'replicas':2,'resources':{'cpus':1,'mem':'64Mi'}}");
    asking_output(&k, (struct task_id){ id, 1, 0 }, "by 0\n");
    asking_output(&k, (struct task_id){ id, 1, 1 }, "by 1\n");
    CHECK_STR(text_of_log(&k, id, ""), "by 0\n");
    CHECK_STR(text_of_log(&k, id, "?replica=1"), "by 1\n");
    CHECK_STR(text_of_log(&k, id, "?run=1&replica=1"), "by 1\n");
    CHECK_REFUSED(log_of(&k, "ana", id, "?replica=2"), 404, "not_found", "*",
                  "has replicas 0 to 1");
    asking_end(&k);
}

static void who_may_not_read_an_output_may_not_search_it_either(void)
{
    static const struct {
        const char *who;
        int status;
    } rows[] = { { "ana", 200 }, { "lea", 200 }, { "root", 200 }, { "bob", 403 },
                 { "vic", 403 }, { "eve", 404 }, { NULL, 401 } };
    struct asking k;
    begin(&k);
    uint64_t id = wrote(&k, "ana", "secret\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer *a = log_of(&k, rows[i].who, id, ""),
                      *b = log_of(&k, rows[i].who, id, "?grep=secret");
        CHECK_STATUS(a, rows[i].status);
        CHECK_STATUS(b, rows[i].status);
        if (rows[i].status != 200)
            CHECK(!strstr(a->text, "secret") && !strstr(b->text, "secret"));
    }
    asking_end(&k);
}

static void who_loses_their_account_loses_what_they_follow(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = wrote(&k, "ana", "one\n");
    struct answer *hers = log_of(&k, "ana", id, "?follow"),
                  *leads = log_of(&k, "lea", id, "?follow");
    hear(&k, hers, "one\n");
    CHECK_STATUS(ask_with(&k, "root", "PUT /v1/users/ana", "{'disabled':true}"), 200);
    hear_all(&k, hers);
    CHECK(asked_over(hers->rq) && !asked_over(leads->rq));
    leave(&k, leads);
    asking_end(&k);
}

/* ---- many jobs ---- */

static void a_search_finds_ones_own_a_lead_the_tenants_and_nobody_another_tenants(void)
{
    static const struct {
        const char *who, *query;
        size_t n;
    } rows[] = {
        { "ana", "", 1 },           { "bob", "", 1 },          { "lea", "", 2 },
        { "lea", "&user=bob", 1 },  { "lea", "&user=eve", 0 }, { "lea", "&tenant=speech", 0 },
        { "eve", "", 1 },           { "root", "", 3 },         { "ana", "&ignore_case", 2 },
        { "ana", "&name=none", 0 },
    };
    struct asking k;
    begin(&k);
    wrote(&k, "ana", "a word\nb\n");
    wrote(&k, "ana", "c WORD\n");
    wrote(&k, "bob", "bob word\n");
    wrote(&k, "eve", "eve word\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer *a = CHECK_STATUS(
            ask(&k, rows[i].who, say(&k, "GET /v1/logs?grep=word%s", rows[i].query)), 200);
        if (at_len(a, "jobs") != rows[i].n)
            test_fail(__FILE__, __LINE__, "%s %s: %s", rows[i].who, rows[i].query, a->text);
    }
    struct answer *a = ask(&k, "ana", "GET /v1/logs?grep=word");
    CHECK_STR(at_str(a, "jobs.0.lines.0.text"), "a word");
    CHECK_STR(at_str(a, "jobs.0.lines.0.stream"), "stdout");
    CHECK_STR(at_str(a, "cut"), "null");
    CHECK_STATUS(ask(&k, "vic", "GET /v1/logs?grep=word"), 403);
    asking_end(&k);
}

static void a_search_that_is_cut_short_says_so_and_goes_on_from_there(void)
{
    struct asking k;
    begin(&k);
    for (int i = 0; i < 3; i++)
        wrote(&k, "ana", "a word\n");
    struct answer *a = ask(&k, "ana", "GET /v1/logs?grep=word&limit=2");
    CHECK_INT(at_len(a, "jobs"), 2);
    CHECK_INT(at_int(a, "jobs.0.id"), 3);
    CHECK_STR(at_str(a, "cut"), "jobs");
    CHECK_INT(at_int(a, "searched"), 2);
    a = ask(&k, "ana",
            say(&k, "GET /v1/logs?grep=word&limit=2&before=%lld", (long long)at_int(a, "next")));
    CHECK_INT(at_int(a, "jobs.0.id"), 1);
    asking_end(&k);
}

static void one_job_with_many_lines_hides_no_others(void)
{
    struct asking k;
    AUTO(buf_free) struct buf many = BUF(1u << 20);
    begin(&k);
    for (int i = 0; i < 5000; i++)
        buf_addz(&many, "word\n");
    wrote(&k, "ana", "rare word\n");
    wrote(&k, "ana", many.p);
    struct answer *a = ask(&k, "ana", "GET /v1/logs?grep=word");
    CHECK_INT(at_len(a, "jobs"), 2);
    CHECK_INT(at_len(a, "jobs.0.lines"), 100);
    CHECK_STR(at_str(a, "jobs.0.more"), "true");
    CHECK_STR(at_str(a, "jobs.1.more"), "false");
    for (int i = 0; i < 10; i++)
        wrote(&k, "ana", many.p);
    a = ask(&k, "ana", "GET /v1/logs?grep=word");
    CHECK_INT(at_int(a, "lines"), 1000);
    CHECK_STR(at_str(a, "cut"), "lines");
    asking_end(&k);
}

static void two_searches_of_one_person_do_not_go_on_at_once(void)
{
    struct asking k;
    begin(&k);
    wrote(&k, "ana", "word\n");
    const char *token = asking_token(&k, "ana", "'scopes':['read']"),
               *other = asking_token(&k, "bob", "'scopes':['read']");
    struct question q = { .who = token, .request = "GET /v1/logs?grep=word" };
    struct answer *a = ask_begin(&k, &q);
    if (a->status == 0) { /* as long as it goes on */
        CHECK_REFUSED(ask_begin(&k, &q), 503, "unavailable", "*",
                      "a search of yours goes on already");
        q.who = other;
        struct answer *b = ask_begin(&k, &q);
        answer_wait(&k, b);
        CHECK_STATUS(b, 200);
    }
    answer_wait(&k, a);
    CHECK_INT(at_len(CHECK_STATUS(a, 200), "jobs"), 1);
    asking_end(&k);
}

static void what_a_job_wrote_is_shown_as_text(void)
{
    struct asking k;
    begin(&k);
    wrote(&k, "ana", "\033[31mword\377<b>\r\n");
    struct answer *a = ask(&k, "ana", "GET /v1/logs?grep=word");
    CHECK_STR(at_str(a, "jobs.0.lines.0.text"), "\033[31mword\xef\xbf\xbd<b>\r");
    CHECK_HAS(a->text, "\\u001b");
    asking_end(&k);
}

static const struct test tests[] = {
    { "output is read whole, and from its end", output_is_read_whole_and_from_its_end },
    { "only lines with the text come out", only_lines_with_the_text_come_out },
    { "lines around a match come with it, and a mark where some are left out",
      lines_around_a_match_have_a_mark_where_some_are_left_out },
    { "what comes later is heard by those who follow, until the job ends",
      what_comes_later_is_heard_by_those_who_follow_until_the_job_ends },
    { "much output comes whole to whoever reads it", much_output_comes_whole_to_whoever_reads_it },
    { "each replica and each run has its own", each_replica_and_each_run_has_its_own },
    { "who may not read an output may not search it either",
      who_may_not_read_an_output_may_not_search_it_either },
    { "who loses their account loses what they follow",
      who_loses_their_account_loses_what_they_follow },
    { "a search finds one's own lines, a lead the tenant's, and nobody another tenant's",
      a_search_finds_ones_own_a_lead_the_tenants_and_nobody_another_tenants },
    { "a search that is cut short says so, and goes on from there",
      a_search_that_is_cut_short_says_so_and_goes_on_from_there },
    { "one job with many lines hides no others, and there are bounds on all lines",
      one_job_with_many_lines_hides_no_others },
    { "two searches of one person do not go on at once",
      two_searches_of_one_person_do_not_go_on_at_once },
    { "what a job wrote is shown as text", what_a_job_wrote_is_shown_as_text },
};
TEST_CASES(tests)
