/* Jobs: listed page by page, submitted once, steered, waiting for times and for others, kept and forgotten. */
#include "tests/lib/asking.h"

#define HOUR INT64_C(3600000)
#define HELD "{'command':['true'],'held':true,'name':'paged'}"
#define SLEEP "{'command':['sleep','999999'],'resources':{'gpus':1,'cpus':1,'mem':'1Gi'}}"

static void begin_with(struct asking *k, const struct asking_site *site)
{
    asking_begin(k, site);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "bob", "vision", "member");
    asking_person(k, "eve", "speech", "member");
}

static void begin(struct asking *k)
{
    begin_with(k, NULL);
}

static struct answer *job(struct asking *k, const char *who, uint64_t id)
{
    return ask(k, who, say(k, "GET /v1/jobs/%llu", (unsigned long long)id));
}

static struct answer *verb(struct asking *k, const char *who, uint64_t id, const char *what)
{
    return ask_with(k, who, say(k, "POST /v1/jobs/%llu/%s", (unsigned long long)id, what), "{}");
}

/* ---- lists ---- */

static void pages_give_each_job_once_while_others_are_submitted(void)
{
    struct asking k;
    bool seen[2000] = { 0 };
    uint64_t last = UINT64_MAX;
    size_t n = 0;
    begin(&k);
    for (int i = 0; i < 240; i++)
        asking_submit(&k, "ana", HELD);
    struct answer *page = ask(&k, "ana", "GET /v1/jobs?name=paged&limit=7");
    while (true) {
        for (size_t i = 0; i < at_len(page, "jobs"); i++, n++) {
            uint64_t id = (uint64_t)at_int(page, say(&k, "jobs.%zu.id", i));
            CHECK(id < last && !seen[id]);
            seen[id] = true;
            last = id;
        }
        asking_submit(&k, "ana", HELD); /* in between */
        if (strcmp(at_str(page, "next"), "null") == 0)
            break;
        page = ask(&k, "ana",
                   say(&k, "GET /v1/jobs?name=paged&limit=7&before=%lld",
                       (long long)at_int(page, "next")));
        CHECK_STATUS(page, 200);
    }
    CHECK_INT(n, 240); /* those that were there at first */
    asking_end(&k);
}

static void a_list_is_of_living_jobs_unless_it_says_which(void)
{
    static const struct {
        const char *query;
        size_t n;
    } rows[] = {
        { "", 3 },
        { "?state=all", 5 },
        { "?state=running", 1 },
        { "?state=held,queued", 2 },
        { "?state=cancelled", 1 },
        { "?state=succeeded,cancelled", 2 },
        { "?user=ana&state=all", 4 },
        { "?user=nobody", 0 },
        { "?name=paged", 2 },
        { "?tenant=vision&state=all", 5 },
        { "?tenant=none", 0 },
        { "?limit=2", 2 },
        { "?before=2&state=all", 1 },
    };
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['true']}");
    asking_wait(&k, 5000);
    uint64_t gone = asking_submit(&k, "ana", HELD);
    verb(&k, "ana", gone, "cancel");
    asking_submit(&k, "ana", SLEEP);
    asking_submit(&k, "ana", HELD);
    asking_submit(&k, "bob", HELD);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer *a =
            CHECK_STATUS(ask(&k, "bob", say(&k, "GET /v1/jobs%s", rows[i].query)), 200);
        if (at_len(a, "jobs") != rows[i].n)
            test_fail(__FILE__, __LINE__, "%s: %s", rows[i].query, a->text);
    }
    CHECK_INT(at_len(ask(&k, "eve", "GET /v1/jobs?state=all"), "jobs"), 0);
    asking_end(&k);
}

static void jobs_that_ended_before_a_time_are_left_out(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['true']}");
    asking_wait(&k, HOUR);
    int64_t since = k.t.now_ms - 1;
    asking_submit(&k, "ana", "{'command':['true']}");
    asking_wait(&k, HOUR);
    struct answer *a =
        ask(&k, "ana", say(&k, "GET /v1/jobs?state=all&since_ms=%lld", (long long)since));
    CHECK_INT(at_len(a, "jobs"), 1);
    CHECK_INT(at_int(a, "jobs.0.id"), 2);
    asking_end(&k);
}

static void an_array_is_one_submit_of_many_jobs(void)
{
    struct asking k;
    begin(&k);
    struct answer *a =
        ask_with(&k, "ana", "POST /v1/jobs", "{'command':['true'],'held':true,'array':'0-9:3'}");
    CHECK_INT(at_int(CHECK_STATUS(a, 201), "count"), 4);
    CHECK_STR(header_of(a, "Location"), "/v1/jobs/1");
    asking_submit(&k, "ana", HELD);
    a = ask(&k, "ana", "GET /v1/jobs?array=1");
    CHECK_INT(at_len(a, "jobs"), 4);
    CHECK_INT(at_int(a, "jobs.0.array_index"), 9);
    asking_end(&k);
}

/* ---- once ---- */

static struct answer *submit_as(struct asking *k, const char *who, const char *key,
                                const char *body)
{
    return ask_so(k, &(struct question){ .who = who,
                                         .request = "POST /v1/jobs",
                                         .body = body,
                                         .header = { { "Idempotency-Key", key } } });
}

static void the_same_key_is_one_job_with_another_body_it_is_refused_and_both_survive_a_crash(void)
{
    struct asking k;
    begin(&k);
    struct answer *first = CHECK_STATUS(submit_as(&k, "ana", "once", HELD), 201);
    const char *said = say(&k, "%s", first->text);
    const char *batch =
        say(&k, "%s", submit_as(&k, "ana", "a batch of one", "{'jobs':[" HELD "]}")->text);
    for (int round = 0; round < 3; round++) {
        struct answer *again = CHECK_STATUS(submit_as(&k, "ana", "once", HELD), 201);
        CHECK_STR(again->text, said);
        CHECK_STR(header_of(again, "Idempotent-Replay"), "true");
        CHECK_STR(submit_as(&k, "ana", "a batch of one", "{'jobs':[" HELD "]}")->text, batch);
        CHECK_REFUSED(submit_as(&k, "ana", "once", "{'command':['false']}"), 409, "conflict",
                      "Idempotency-Key", "Idempotency-Key");
        CHECK_INT(at_len(ask(&k, "ana", "GET /v1/jobs?state=all"), "jobs"), 2);
        asking_again(&k);
    }
    asking_end(&k);
}

static void a_key_is_its_users_own(void)
{
    struct asking k;
    begin(&k);
    int64_t one = at_int(submit_as(&k, "ana", "key", HELD), "id"),
            two = at_int(submit_as(&k, "bob", "key", HELD), "id");
    CHECK(one != two);
    CHECK_STATUS(submit_as(&k, "eve", "key", "{'command':['true']}"), 201);
    asking_end(&k);
}

static void the_same_key_twice_before_the_first_is_on_the_disk_is_one_job(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['jobs','read']");
    struct question q = { .who = token,
                          .request = "POST /v1/jobs",
                          .body = HELD,
                          .header = { { "Idempotency-Key", "twice" } } };
    struct answer *a = ask_begin(&k, &q), *b = ask_begin(&k, &q);
    CHECK_INT(a->status, 0);
    answer_wait(&k, a);
    answer_wait(&k, b);
    CHECK_STATUS(a, 201);
    CHECK(b->status == 201 || b->status == 409);
    CHECK_INT(at_len(ask(&k, token, "GET /v1/jobs?state=all"), "jobs"), 1);
    asking_end(&k);
}

static void a_submit_is_answered_when_it_is_on_the_disk(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['jobs','read']");
    struct answer *a = ask_begin(
        &k, &(struct question){ .who = token, .request = "POST /v1/jobs", .body = SLEEP });
    CHECK_INT(a->status, 0);
    CHECK_INT(engine_sim_counts(&k.t.sim).starts, 0); /* nor has the engine heard of it */
    answer_wait(&k, a);
    CHECK_STATUS(a, 201);
    asking_again(&k);
    CHECK_INT(at_int(ask(&k, token, "GET /v1/jobs"), "jobs.0.id"), 1);
    CHECK_INT(engine_sim_counts(&k.t.sim).starts, 1);
    asking_end(&k);
}

static void what_was_not_answered_when_the_daemon_died_is_there_whole_or_not_at_all(void)
{
    struct asking k;
    begin(&k);
    const char *token = asking_token(&k, "ana", "'scopes':['jobs','read']");
    struct question q = { .who = token,
                          .request = "POST /v1/jobs",
                          .body = "{'jobs':[" HELD "," HELD "," HELD "]}" };
    CHECK_INT(ask_begin(&k, &q)->status, 0);
    asking_again(&k);
    size_t n = at_len(ask(&k, token, "GET /v1/jobs?state=all"), "jobs");
    CHECK(n == 0 || n == 3);
    CHECK_STR(controlling_journal_differs(&k.t), "");
    asking_end(&k);
}

/* ---- what may be done with one ---- */

static void verbs_move_a_job_and_are_refused_at_the_wrong_time(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", "{'command':['sleep','999999'],'held':true}");
    CHECK_REFUSED(verb(&k, "ana", id, "freeze"), 409, "conflict", "*", "");
    CHECK_REFUSED(verb(&k, "ana", id, "hold"), 409, "conflict", "*", "");
    CHECK_STR(at_str(CHECK_STATUS(verb(&k, "ana", id, "release"), 200), "state"), "starting");
    asking_settle(&k);
    CHECK_STR(asking_state(&k, id), "running");
    CHECK_REFUSED(verb(&k, "ana", id, "hold"), 409, "conflict", "*", "");
    CHECK_REFUSED(verb(&k, "ana", id, "thaw"), 409, "conflict", "*", "");
    CHECK_STATUS(verb(&k, "ana", id, "freeze"), 200);
    asking_wait(&k, 1000);
    CHECK_STR(asking_state(&k, id), "paused");
    CHECK_STATUS(verb(&k, "ana", id, "thaw"), 200);
    asking_wait(&k, 1000);
    CHECK_STR(asking_state(&k, id), "running");
    CHECK_STATUS(verb(&k, "ana", id, "cancel"), 200);
    asking_wait(&k, 1000);
    CHECK_STR(asking_state(&k, id), "cancelled");
    static const char *const all[] = { "cancel", "hold", "release", "freeze", "thaw" };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        CHECK_REFUSED(verb(&k, "ana", id, all[i]), 409, "conflict", "*", "");
    CHECK_REFUSED(ask_with(&k, "ana", "POST /v1/jobs/1/signal", "{'signal':'USR1'}"), 409,
                  "conflict", "*", "");
    asking_end(&k);
}

static void why_a_job_was_ended_is_kept_with_who_did_it(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", SLEEP);
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/jobs/1/cancel", "{'reason':'the lab is moving'}"),
                 200);
    asking_wait(&k, 1000);
    asking_again(&k);
    CHECK_STR(at_str(job(&k, "ana", id), "message"), "cancelled by root: the lab is moving");
    asking_end(&k);
}

static void a_job_is_shown_whole_to_its_owner_and_without_its_spec_to_a_mate(void)
{
    struct asking k;
    begin(&k);
    uint64_t id = asking_submit(&k, "ana", "{'command':['sleep','999999'],'env':{'KEY':'hidden'}}");
    CHECK_HAS(job(&k, "ana", id)->text, "hidden");
    CHECK_HAS(job(&k, "root", id)->text, "hidden");
    CHECK(!strstr(CHECK_STATUS(job(&k, "bob", id), 200)->text, "hidden"));
    CHECK(!strstr(ask(&k, "ana", "GET /v1/jobs")->text, "hidden"));
    asking_end(&k);
}

static void a_job_that_runs_tells_where_and_one_that_ended_how(void)
{
    struct asking k;
    begin(&k);
    uint64_t runs = asking_submit(&k, "ana", SLEEP);
    uint64_t fails = asking_submit(&k, "ana", "{'command':['false'],'env':{'SIM_EXIT':'3'}}");
    asking_wait(&k, 5000);
    struct answer *a = job(&k, "ana", runs);
    CHECK_STR(at_str(a, "where.0.node"), "desk1");
    CHECK_INT(at_len(a, "where.0.gpus"), 1);
    a = job(&k, "ana", fails);
    CHECK_STR(at_str(a, "state"), "failed");
    CHECK_INT(at_int(a, "exit_code"), 3);
    CHECK(at_int(a, "ended_ms") >= at_int(a, "submitted_ms"));
    asking_end(&k);
}

static void a_job_tells_its_own_life_a_page_at_a_time_with_who_did_what(void)
{
    static const char *const what[] = { "submitted", "released", "held", "released", "ended" };
    static const char *const state[] = { "held", "queued", "held", "queued", "cancelled" };
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/nodes/desk1/drain", "{}"), 200);
    uint64_t id = asking_submit(&k, "ana", HELD);
    static const char *const verbs[] = { "release", "hold", "release", "cancel" };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        CHECK_STATUS(verb(&k, "ana", id, verbs[i]), 200);
    asking_again(&k);
    size_t n = 0;
    struct answer *page = ask(&k, "ana", "GET /v1/jobs/1/events?limit=2");
    while (true) {
        for (size_t i = 0; i < at_len(page, "events"); i++, n++) {
            CHECK_INT(at_int(page, say(&k, "events.%zu.number", i)), n + 1);
            CHECK_STR(at_str(page, say(&k, "events.%zu.what", i)), what[n]);
            CHECK_STR(at_str(page, say(&k, "events.%zu.state", i)), state[n]);
            CHECK_STR(at_str(page, say(&k, "events.%zu.by", i)), n ? "ana" : "null");
        }
        if (strcmp(at_str(page, "next"), "null") == 0)
            break;
        page = ask(
            &k, "ana",
            say(&k, "GET /v1/jobs/1/events?limit=2&after=%lld", (long long)at_int(page, "next")));
    }
    CHECK_INT(n, 5);
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/jobs/1/events?after=4"), "events.0.message"),
              "cancelled by ana");
    CHECK_STR(ask(&k, "ana", "GET /v1/jobs/1/events?after=5")->text,
              "{\"events\":[],\"next\":null}");
    CHECK_STR(ask(&k, "ana", "GET /v1/jobs/1/history")->text, "{\"runs\":[],\"left_out\":0}");
    asking_end(&k);
}

/* ---- times, and jobs after others ---- */

static void a_job_begins_at_its_time_also_after_a_crash(void)
{
    struct asking k;
    begin(&k);
    uint64_t id =
        asking_submit(&k, "ana", "{'command':['sleep','999999'],'begin':'2023-11-15T12:00:00Z'}");
    int64_t begin_ms = INT64_C(1700049600000);
    struct answer *a = job(&k, "ana", id);
    CHECK_STR(at_str(a, "state"), "queued");
    CHECK_STR(at_str(a, "reason"), "begin");
    CHECK_INT(at_int(a, "begin_ms"), begin_ms);
    asking_wait(&k, begin_ms - k.t.now_ms - 1);
    CHECK_STR(asking_state(&k, id), "queued");
    asking_again(&k);
    asking_wait(&k, 1);
    CHECK_STR(asking_state(&k, id), "running");
    k.t.now_ms += 1;
    uint64_t late =
        asking_submit(&k, "ana", "{'command':['sleep','999999'],'begin':'2023-11-15T12:30:00Z'}");
    k.t.now_ms += HOUR; /* its time comes while the daemon is dead */
    asking_again(&k);
    CHECK_STR(asking_state(&k, late), "running");
    asking_end(&k);
}

static void a_job_starts_after_another_as_it_was_told_and_never_beside_it(void)
{
    static const struct {
        const char *first, *after, *state;
    } rows[] = {
        { "{'command':['x']}", "ok", "succeeded" },
        { "{'command':['x']}", "bad", "cancelled" },
        { "{'command':['x']}", "any", "succeeded" },
        { "{'command':['x'],'env':{'SIM_EXIT':'1'}}", "ok", "cancelled" },
        { "{'command':['x'],'env':{'SIM_EXIT':'1'}}", "bad", "succeeded" },
        { "{'command':['x'],'env':{'SIM_EXIT':'1'}}", "any", "succeeded" },
    };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t first = asking_submit(&k, "ana", rows[i].first);
        uint64_t second = asking_submit(&k, "ana",
                                        say(&k, "{'command':['true'],'after':['%s:%llu']}",
                                            rows[i].after, (unsigned long long)first));
        CHECK_STR(asking_state(&k, first), "running");
        CHECK_STR(asking_state(&k, second), "queued");
        CHECK_STR(at_str(job(&k, "ana", second), "after.0"),
                  say(&k, "%s:%llu", rows[i].after, (unsigned long long)first));
        asking_wait(&k, 5000);
        if (strcmp(asking_state(&k, second), rows[i].state) != 0)
            test_fail(__FILE__, __LINE__, "%s after %s: %s", rows[i].after, rows[i].first,
                      job(&k, "ana", second)->text);
    }
    asking_end(&k);
}

static void what_can_never_start_is_cancelled_and_so_is_what_waits_for_that(void)
{
    struct asking k;
    begin(&k);
    uint64_t first = asking_submit(&k, "ana", "{'command':['x'],'env':{'SIM_EXIT':'3'}}");
    uint64_t second = asking_submit(&k, "ana", "{'command':['true'],'after':['ok:1'],'held':true}");
    uint64_t third = asking_submit(&k, "ana", "{'command':['true'],'after':['ok:2']}");
    uint64_t clean = asking_submit(&k, "ana", "{'command':['true'],'after':['bad:2']}");
    asking_wait(&k, 5000);
    CHECK_STR(asking_state(&k, first), "failed");
    struct answer *a = job(&k, "ana", second);
    CHECK_STR(at_str(a, "state"), "cancelled");
    CHECK_STR(at_str(a, "end"), "after_unmet");
    CHECK_INT(at_int(a, "run"), 0);
    CHECK_STR(at_str(a, "message"), "it was to start after job 1 had succeeded, which failed");
    CHECK_STR(at_str(job(&k, "ana", third), "message"),
              "it was to start after job 2 had succeeded, which was cancelled");
    CHECK_STR(asking_state(&k, clean), "succeeded");
    asking_end(&k);
}

static void a_job_after_one_of_another_tenant_is_refused_as_after_none(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "eve", SLEEP);
    struct answer *a =
        ask_with(&k, "ana", "POST /v1/jobs", "{'command':['true'],'after':['ok:1']}");
    struct answer *b =
        ask_with(&k, "ana", "POST /v1/jobs", "{'command':['true'],'after':['ok:7']}");
    CHECK_REFUSED(a, 400, "invalid", "after", "1");
    CHECK_REFUSED(b, 400, "invalid", "after", "7");
    CHECK_STR(at_str(a, "hint"), at_str(b, "hint"));
    asking_end(&k);
}

/* ---- what is over ---- */

static bool few_are_left(struct asking *k)
{
    return at_len(ask(k, "ana", "GET /v1/jobs?state=all"), "jobs") <= 3;
}

static void jobs_are_forgotten_in_the_end_and_what_lives_stays(void)
{
    struct asking k;
    begin_with(&k, &(struct asking_site){ .keep = { .logs_ms = HOUR, .jobs_ms = 2 * HOUR } });
    uint64_t lives = asking_submit(&k, "ana", SLEEP), held = asking_submit(&k, "ana", HELD);
    for (int i = 0; i < 20; i++)
        asking_submit(&k, "ana", "{'command':['true']}");
    asking_wait(&k, 60000);
    CHECK_INT(at_len(ask(&k, "ana", "GET /v1/jobs?state=all"), "jobs"), 22);
    asking_wait(&k, 3 * HOUR);
    asking_again(&k); /* and looks for what is old */
    asking_until(&k, few_are_left);
    CHECK_STR(at_str(job(&k, "ana", lives), "state"), "running");
    CHECK_STR(at_str(job(&k, "ana", held), "state"), "held");
    CHECK_REFUSED(job(&k, "ana", held + 1), 404, "not_found", "*", "there is no job");
    CHECK(asking_submit(&k, "ana", HELD) == held + 21); /* numbers are not used again */
    asking_end(&k);
}

static const struct test tests[] = {
    { "pages give each job once, while others are submitted",
      pages_give_each_job_once_while_others_are_submitted },
    { "a list is of living jobs unless it says which",
      a_list_is_of_living_jobs_unless_it_says_which },
    { "jobs that ended before a time are left out", jobs_that_ended_before_a_time_are_left_out },
    { "an array is one submit of many jobs", an_array_is_one_submit_of_many_jobs },
    { "the same key with the same body is one job, with another it is refused, and both survive a "
      "crash",
      the_same_key_is_one_job_with_another_body_it_is_refused_and_both_survive_a_crash },
    { "a key is its user's own", a_key_is_its_users_own },
    { "the same key twice before the first is on the disk is one job",
      the_same_key_twice_before_the_first_is_on_the_disk_is_one_job },
    { "a submit is answered when it is on the disk", a_submit_is_answered_when_it_is_on_the_disk },
    { "what was not answered when the daemon died is there whole or not at all",
      what_was_not_answered_when_the_daemon_died_is_there_whole_or_not_at_all },
    { "verbs move a job, and are refused at the wrong time",
      verbs_move_a_job_and_are_refused_at_the_wrong_time },
    { "why a job was ended is kept, with who did it", why_a_job_was_ended_is_kept_with_who_did_it },
    { "a job is shown whole to its owner, and without its spec to a mate",
      a_job_is_shown_whole_to_its_owner_and_without_its_spec_to_a_mate },
    { "a job that runs tells where, and one that ended how",
      a_job_that_runs_tells_where_and_one_that_ended_how },
    { "a job tells its own life, a page at a time, with who did what, over a crash",
      a_job_tells_its_own_life_a_page_at_a_time_with_who_did_what },
    { "a job begins at its time, also after a crash", a_job_begins_at_its_time_also_after_a_crash },
    { "a job starts after another has succeeded, failed or ended, and never beside it",
      a_job_starts_after_another_as_it_was_told_and_never_beside_it },
    { "what can never start is cancelled, and so is what waits for that",
      what_can_never_start_is_cancelled_and_so_is_what_waits_for_that },
    { "a job after one of another tenant is refused as after none",
      a_job_after_one_of_another_tenant_is_refused_as_after_none },
    { "jobs are forgotten in the end, and what lives stays",
      jobs_are_forgotten_in_the_end_and_what_lives_stays },
};
TEST_CASES(tests)
