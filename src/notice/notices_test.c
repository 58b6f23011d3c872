#include "notice/notices.h"

#include "store/directory.h"
#include "tests/lib/storing.h"

/* A store, people, a clock that is turned by hand, and a program that stands for nightshift-send. */
struct room {
    struct storing t;
    struct auth *auth;
    struct log *log;
    struct notices *n;
    int64_t now_ms;
    char script[256];
    const char *argv[4];
};

static void room_open(struct room *r)
{
    struct err e = { 0 };
    struct notices_config c = { .loop = r->t.loop,
                                .log = r->log,
                                .clock = clock_manual(&r->now_ms),
                                .store = r->t.store,
                                .auth = r->auth,
                                .send_argv = r->argv,
                                .mail_server = "smtp://m",
                                .mail_from = "n@lab.example",
                                .webhooks = WEBHOOK_ANY,
                                .gather_ms = 60000,
                                .retry_ms = 10000,
                                .give_up_ms = 24 * 3600000,
                                .patience_ms = 30000 };
    r->n = notices_new(&c, &e);
    CHECK_STR(e.msg, "");
    notices_begin(r->n);
}

static void room_begin(struct room *r, const char *answer)
{
    *r = (struct room){ .now_ms = 1000000000, .auth = auth_new() };
    r->log = log_new(stderr, LOG_ERROR_, LOG_TEXT, clock_manual(&r->now_ms));
    storing_begin(&r->t);
    storing_open(&r->t);
    snprintf(r->script, sizeof r->script, "cat >>%s/asked; echo >>%s/asked; echo '%s'", r->t.dir,
             r->t.dir, answer);
    r->argv[0] = "sh";
    r->argv[1] = "-c";
    r->argv[2] = r->script;
    people_set_tenant(auth_people(r->auth), STR("vision"), STR(""), NULL, 0);
    people_set_tenant(auth_people(r->auth), STR("audio"), STR(""), NULL, 0);
    static const struct place places[] = {
        { STR("vision"), STR("ana"), ROLE_MEMBER, false, false, false },
        { STR("vision"), STR("lea"), ROLE_LEAD, false, false, false },
        { STR("audio"), STR("eve"), ROLE_LEAD, false, false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        people_set_place(auth_people(r->auth), &places[i]);
    room_open(r);
}

static void room_end(struct room *r)
{
    notices_free(r->n);
    storing_end(&r->t);
    auth_free(r->auth);
    log_free(r->log);
}

/* As control does: what happens, the turn's close, its commit. */
static struct store_batch *turn_begin(struct room *r)
{
    return store_batch_new(r->t.store);
}

static void turn_end(struct room *r, struct store_batch *b)
{
    notices_closing(r->n, b);
    storing_commit(&r->t, b);
    notices_durable(r->n);
}

static void choose(struct room *r, const char *user, const char *json)
{
    struct err e = { 0 };
    struct notice_choice c;
    struct choice_bounds bounds;
    bool secret;
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(json), &e);
    choice_init(&c);
    notices_bounds(r->n, str_of(user), &bounds);
    CHECK(d && choice_change(&c, json_root(d), &bounds, &secret, &e) == 0);
    struct store_batch *b = turn_begin(r);
    CHECK(notices_choose(r->n, b, str_of(user), &c, &e) == 0);
    turn_end(r, b);
}

static struct store_job job(uint64_t id, const char *tenant, const char *user, enum job_state state)
{
    struct store_job j = storing_job(id, tenant, user, "train", state);
    j.now.run = 1;
    return j;
}

static void happen(struct room *r, const struct store_job *j)
{
    struct store_batch *b = turn_begin(r);
    notices_job(r->n, b, j);
    turn_end(r, b);
}

static size_t rows_of(struct room *r, const char *user, enum store_notice_state state,
                      struct store_notice *out_first)
{
    AUTO(arena_free) struct arena here = { 0 };
    struct store_notices all;
    struct err e;
    size_t n = 0;
    CHECK(store_notices_of(r->t.store, str_of(user), 300, out_first ? &r->t.arena : &here, &all,
                           &e) == 0);
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].state == state && n++ == 0 && out_first)
            *out_first = all.v[i];
    return n;
}

static void tick(void *ctx)
{
    loop_stop(ctx);
}

/* Lets the loop turn until nothing of theirs waits that is due, for at most 30 s. */
static void settle(struct room *r, const char *user, enum store_notice_state state, size_t n)
{
    struct err e;
    struct loop_watch *timer = loop_timer(r->t.loop, tick, r->t.loop);
    for (int i = 0; i < 3000 && rows_of(r, user, state, NULL) != n; i++) {
        notices_pump(r->n);
        loop_timer_set(timer, 10, 0);
        loop_run(r->t.loop);
        CHECK(store_flush(r->t.store, 10000, &e) == 0);
    }
    loop_unwatch(timer);
    CHECK_INT(rows_of(r, user, state, NULL), n);
}

/* Until the one that waits was tried so often. */
static void wait_tries(struct room *r, const char *user, uint32_t tries)
{
    struct err e;
    struct store_notice n = { 0 };
    struct loop_watch *timer = loop_timer(r->t.loop, tick, r->t.loop);
    for (int i = 0; i < 3000 && n.tries < tries; i++) {
        notices_pump(r->n);
        loop_timer_set(timer, 10, 0);
        loop_run(r->t.loop);
        CHECK(store_flush(r->t.store, 10000, &e) == 0);
        arena_reset(&r->t.arena);
        rows_of(r, user, STORE_NOTICE_WAITING, &n);
    }
    loop_unwatch(timer);
}

static void nothing_is_written_for_those_who_chose_nothing(void)
{
    AUTO(room_end) struct room r;
    room_begin(&r, "{\"ok\":true}");
    struct store_job j = job(1, "vision", "ana", JOB_FAILED);
    happen(&r, &j);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_WAITING, NULL), 0);
    choose(&r, "ana",
           "{\"mail\":\"ana@lab.example\",\"kinds\":{\"job_succeeded\":{\"mail\":false}}}");
    choose(&r, "eve", "{\"mail\":\"eve@lab.example\"}");
    j = job(2, "vision", "ana", JOB_SUCCEEDED);
    happen(&r, &j);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_WAITING, NULL), 0);
    j = job(3, "vision", "ana", JOB_FAILED);
    happen(&r, &j);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_WAITING, NULL), 1);
    j = job(4, "audio", "ana", JOB_FAILED); /* where she is not any more */
    happen(&r, &j);
    CHECK_INT(notices_stats(r.n).waiting, 1);
    CHECK_INT(rows_of(&r, "eve", STORE_NOTICE_WAITING, NULL), 0);
}

static void ends_within_a_minute_are_one_notice(void)
{
    AUTO(room_end) struct room r;
    struct store_notice first = { 0 };
    room_begin(&r, "{\"ok\":true}");
    choose(&r, "ana", "{\"webhook\":\"https://x.example\"}");
    struct store_batch *b = turn_begin(&r);
    for (uint64_t i = 0; i < 10000; i++) {
        struct store_job j = job(100 + i, "vision", "ana", i % 4 ? JOB_FAILED : JOB_SUCCEEDED);
        j.fixed.array = 100;
        notices_job(r.n, b, &j);
    }
    turn_end(&r, b);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_WAITING, &first), 1);
    CHECK(str_is(first.subject,
                 "10000 jobs of array 100 'train' ended: 7500 failed, 2500 succeeded"));
    CHECK_INT(first.due_ms, r.now_ms + 2000);
    r.now_ms += 2000; /* it is due: what comes now is the next */
    struct store_job j = job(20000, "vision", "ana", JOB_FAILED);
    j.fixed.array = 100;
    happen(&r, &j);
    happen(&r, &j);
    settle(&r, "ana", STORE_NOTICE_SENT, 1);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_WAITING, &first), 1);
    CHECK_INT(first.due_ms, 1000000000 + 2000 + 60000);
    CHECK(str_is(first.subject, "2 jobs of array 100 'train' ended: 2 failed"));
}

/* What ends in one turn, before and after a notice is due, is told by it and by the next: none is left out.  With
 * another's answer in between, too. */
static void what_ends_while_a_notice_falls_due_is_told(void)
{
    for (int answered = 0; answered < 2; answered++) {
        AUTO(room_end) struct room r;
        struct store_notice n[2];
        room_begin(&r, "{\"ok\":true}");
        choose(&r, "ana", "{\"webhook\":\"https://x.example\"}");
        choose(&r, "lea", "{\"mail\":\"lea@lab.example\"}");
        struct store_job theirs = job(1, "vision", "lea", JOB_FAILED), j[3];
        for (uint64_t i = 0; i < 3; i++) {
            j[i] = job(100 + i, "vision", "ana", JOB_FAILED);
            j[i].fixed.array = 100;
        }
        happen(&r, &theirs);
        r.now_ms += 1000;
        happen(&r, &j[0]); /* it is due 2 s later */
        struct store_batch *b = turn_begin(&r);
        r.now_ms += 1999;
        notices_job(r.n, b, &j[1]);
        r.now_ms += 1;
        notices_job(r.n, b, &j[2]);
        if (answered)
            settle(&r, "lea", STORE_NOTICE_SENT, 1);
        turn_end(&r, b);
        settle(&r, "ana", STORE_NOTICE_SENT, 1);
        rows_of(&r, "ana", STORE_NOTICE_SENT, &n[0]);
        rows_of(&r, "ana", STORE_NOTICE_WAITING, &n[1]);
        CHECK(str_is(n[0].subject, "2 jobs of array 100 'train' ended: 2 failed"));
        CHECK(strstr(n[1].subject.p, "Job 102 'train' failed"));
    }
}

static void many_arrays_at_once_are_few_notices(void)
{
    AUTO(room_end) struct room r;
    room_begin(&r, "{\"ok\":true}");
    choose(&r, "ana", "{\"mail\":\"ana@lab.example\"}");
    for (uint64_t i = 1; i <= 500; i++) {
        struct store_job j = job(i, "vision", "ana", JOB_FAILED);
        j.fixed.array = i;
        happen(&r, &j);
    }
    CHECK(rows_of(&r, "ana", STORE_NOTICE_WAITING, NULL) <= 17);
}

static void a_try_that_fails_is_made_again_later(void)
{
    AUTO(room_end) struct room r;
    struct store_notice n = { 0 };
    room_begin(&r,
               "{\"ok\":false,\"code\":\"unavailable\",\"reason\":\"x\",\"message\":\"no route\"}");
    choose(&r, "ana", "{\"mail\":\"ana@lab.example\"}");
    struct store_job j = job(1, "vision", "ana", JOB_FAILED);
    happen(&r, &j);
    r.now_ms += 2000;
    int64_t pause = 10000;
    for (uint32_t tries = 1; tries <= 4; tries++, pause *= 2) {
        wait_tries(&r, "ana", tries);
        rows_of(&r, "ana", STORE_NOTICE_WAITING, &n);
        CHECK(n.tries == tries && str_is(n.why, "no route"));
        CHECK_INT(n.due_ms, r.now_ms + pause);
        r.now_ms = n.due_ms;
    }
    r.now_ms += INT64_C(25) * 3600000;
    settle(&r, "ana", STORE_NOTICE_GIVEN_UP, 1);
    CHECK_INT(notices_stats(r.n).given_up, 1);
    CHECK_INT(notices_stats(r.n).waiting, 0);
}

static void what_may_not_be_sent_is_given_up_at_once(void)
{
    AUTO(room_end) struct room r;
    struct store_notice n = { 0 };
    room_begin(&r,
               "{\"ok\":false,\"code\":\"denied\",\"reason\":\"x\",\"message\":\"not allowed\"}");
    choose(&r, "ana", "{\"webhook\":\"https://x.example\"}");
    struct store_job j = job(1, "vision", "ana", JOB_FROZEN);
    happen(&r, &j);
    r.now_ms += 2000;
    settle(&r, "ana", STORE_NOTICE_GIVEN_UP, 1);
    rows_of(&r, "ana", STORE_NOTICE_GIVEN_UP, &n);
    CHECK(str_is(n.why, "not allowed") && n.tries == 1);
}

static void too_many_drop_the_oldest(void)
{
    AUTO(room_end) struct room r;
    room_begin(&r, "{\"ok\":true}");
    choose(&r, "ana", "{\"mail\":\"ana@lab.example\"}");
    struct store_job j = job(1, "vision", "ana", JOB_FAILED);
    notices_free(r.n);
    const char *none[] = { "false", NULL };
    r.argv[0] = none[0];
    r.argv[1] = NULL;
    room_open(&r);
    for (uint64_t i = 0; i < NOTICES_OF_USER + 30; i++) { /* a minute apart, and none is taken */
        j.fixed.id = i + 1;
        happen(&r, &j);
        r.now_ms += 61000;
    }
    CHECK(notices_stats(r.n).waiting <= NOTICES_OF_USER);
    CHECK(notices_stats(r.n).dropped + notices_stats(r.n).waiting >= NOTICES_OF_USER + 20);
    CHECK(rows_of(&r, "ana", STORE_NOTICE_DROPPED, NULL) >= 20);
}

static void a_restart_takes_up_what_waits(void)
{
    AUTO(room_end) struct room r;
    struct store_notice n = { 0 }, again = { 0 };
    room_begin(&r, "{\"ok\":true}");
    choose(&r, "ana", "{\"mail\":\"ana@lab.example\"}");
    struct store_job j = job(1, "vision", "ana", JOB_FAILED);
    happen(&r, &j);
    rows_of(&r, "ana", STORE_NOTICE_WAITING, &n);
    r.n = notices_free(r.n);
    storing_reopen(&r.t);
    room_open(&r);
    CHECK(notices_choice(r.n, STR("ana")) && notices_stats(r.n).waiting == 1);
    r.now_ms += 2000;
    settle(&r, "ana", STORE_NOTICE_SENT, 1);
    rows_of(&r, "ana", STORE_NOTICE_SENT, &again);
    CHECK(str_eq(n.id, again.id));
    r.n = notices_free(r.n);
    room_open(&r);
    CHECK_INT(notices_stats(r.n).waiting, 0);
}

static void leads_hear_of_budgets_and_operators_of_machines_once(void)
{
    AUTO(room_end) struct room r;
    struct notice_budget v = { .tenant = STR("vision"),
                               .percent = 80,
                               .used_gpu_milli_ms = INT64_C(288000000000),
                               .gpu_milli_ms = INT64_C(360000000000),
                               .from_ms = 5,
                               .until_ms = 10 };
    room_begin(&r, "{\"ok\":true}");
    struct person *x = people_make(auth_people(r.auth), STR("olga"));
    x->role = ROLE_OPERATOR;
    static const char *const all[] = { "ana", "lea", "eve", "olga" };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        choose(&r, all[i], "{\"mail\":\"x@lab.example\"}");
    for (int round = 0; round < 2; round++) { /* the second time it is known */
        struct store_batch *b = turn_begin(&r);
        notices_budget(r.n, b, &v);
        turn_end(&r, b);
        settle(&r, "lea", STORE_NOTICE_SENT, 1);
        r.n = notices_free(r.n);
        room_open(&r);
    }
    struct store_batch *b = turn_begin(&r);
    notices_drained(r.n, b, STR("desk1"), STR("xid: 79"));
    turn_end(&r, b);
    settle(&r, "olga", STORE_NOTICE_SENT, 1);
    CHECK_INT(rows_of(&r, "lea", STORE_NOTICE_SENT, NULL), 1);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_SENT, NULL) +
                  rows_of(&r, "eve", STORE_NOTICE_SENT, NULL),
              0);
    CHECK_INT(notices_stats(r.n).waiting, 0);
}

static void a_removed_user_leaves_nothing(void)
{
    AUTO(room_end) struct room r;
    struct store_entry *row;
    struct err e;
    size_t n;
    room_begin(&r, "{\"ok\":true}");
    choose(&r, "ana", "{\"mail\":\"ana@lab.example\"}");
    struct store_job j = job(1, "vision", "ana", JOB_FAILED);
    struct store_batch *b = turn_begin(&r);
    notices_job(r.n, b, &j);
    notices_forget(r.n, b, STR("ana")); /* in the same turn */
    turn_end(&r, b);
    CHECK_INT(rows_of(&r, "ana", STORE_NOTICE_WAITING, NULL), 0);
    CHECK(!notices_choice(r.n, STR("ana")) && notices_stats(r.n).waiting == 0);
    CHECK(store_entries(r.t.store, DIRECTORY_NOTICE, &r.t.arena, &row, &n, &e) == 0 && n == 0);
}

static void an_idle_gpu_is_told_once_a_run(void)
{
    AUTO(room_end) struct room r;
    room_begin(&r, "{\"ok\":true}");
    choose(&r, "ana", "{\"mail\":\"ana@lab.example\"}");
    struct store_job j = job(1, "vision", "ana", JOB_RUNNING);
    struct notice_idle idle = {
        .job = &j, .node = STR("desk1"), .gpu = 1, .idle_since_ms = 1, .now_ms = 1860001
    };
    for (int i = 0; i < 3; i++) {
        struct store_batch *b = turn_begin(&r);
        CHECK(notices_idle(r.n, b, &idle) == (i == 0));
        turn_end(&r, b);
    }
    settle(&r, "ana", STORE_NOTICE_SENT, 1);
    j.now.run = 2;
    struct store_batch *b = turn_begin(&r);
    CHECK(notices_idle(r.n, b, &idle));
    turn_end(&r, b);
    settle(&r, "ana", STORE_NOTICE_SENT, 2);
}

static const struct test tests[] = {
    { "nothing is written for those who chose nothing",
      nothing_is_written_for_those_who_chose_nothing },
    { "ends within a minute are one notice", ends_within_a_minute_are_one_notice },
    { "what ends while a notice falls due is told", what_ends_while_a_notice_falls_due_is_told },
    { "many arrays at once are few notices", many_arrays_at_once_are_few_notices },
    { "a try that fails is made again later, and not for ever",
      a_try_that_fails_is_made_again_later },
    { "what may not be sent is given up at once", what_may_not_be_sent_is_given_up_at_once },
    { "too many drop the oldest", too_many_drop_the_oldest },
    { "a restart takes up what waits, and not what was sent", a_restart_takes_up_what_waits },
    { "leads hear of budgets and operators of machines, once",
      leads_hear_of_budgets_and_operators_of_machines_once },
    { "a removed user leaves nothing", a_removed_user_leaves_nothing },
    { "an idle GPU is told once a run", an_idle_gpu_is_told_once_a_run },
};
TEST_CASES(tests)
