/* Machines that are lent at times: what is said of them, what is refused, what has to leave and what starts. */
#include <stdio.h>

#include "tests/lib/asking.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define SAVES                                                                                      \
    "'command':['sleep','999999'],'env':{'SIM_SAVE_MS':'1000'},'freeze':{'mode':'signal',"         \
    "'grace':'10s'},'resources':{'gpus':1}"
#define STAYS "'command':['sleep','999999'],'freeze':{'mode':'none'},'resources':{'gpus':1}"
#define GIVEN_BACK "taken back: its machine is given back; it goes on by itself"

static const struct control_pool_def annex[] = {
    { .name = STR("annex"),
      .window = STR("zone=UTC0; Sat-Sun 00:00-24:00"),
      .node = (const char *const[]){ "annex1", "annex2" },
      .nodes = 2 },
};

static void begin(struct asking *k)
{
    asking_begin(k, &(struct asking_site){ .pool = annex, .pools = 1 });
    asking_tenant(k, "vision", NULL);
    asking_person(k, "ana", "vision", "member");
}

static const char *clock_text(struct asking *k, int64_t t_ms)
{
    return say(k, "%02d:%02d", (int)(t_ms % DAY / HOUR), (int)(t_ms % HOUR / MINUTE));
}

/* desk1 is lent until an hour from now, every day, and closed for two then. */
static void lend(struct asking *k, int64_t *closes_ms, int64_t *opens_ms)
{
    *closes_ms = k->t.now_ms / MINUTE * MINUTE + HOUR;
    *opens_ms = *closes_ms + 2 * HOUR;
    struct answer *a = ask_with(k, "root", "PUT /v1/pools/desks",
                                say(k, "{'window':'Mon-Sun %s-%s','nodes':['desk1','pc[1-2]']}",
                                    clock_text(k, *opens_ms), clock_text(k, *closes_ms)));
    CHECK_STATUS(a, 200);
    CHECK_STR(at_str(a, "open"), "true");
    CHECK_INT(at_int(a, "until_ms"), *closes_ms);
}

static void wait_until(struct asking *k, int64_t t_ms)
{
    asking_wait(k, t_ms - k->t.now_ms);
}

/* ---- looking ---- */

static void a_pool_tells_its_machines_its_week_and_what_is_not_there_yet(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    struct answer *a = CHECK_STATUS(ask(&k, "ana", "GET /v1/pools/desks"), 200);
    CHECK_STR(at_str(a, "owner"), "api");
    CHECK_INT(at_int(a, "gpus"), 4);
    CHECK_INT(at_len(a, "nodes"), 3);
    CHECK_STR(at_str(a, "nodes.0.state"), "up");
    CHECK_STR(at_str(a, "nodes.2.name"), "pc2");
    CHECK_STR(at_str(a, "nodes.2.state"), "unknown");
    size_t n = at_len(a, "week");
    CHECK(n >= 14);
    int64_t sum = 0, before = k.t.now_ms;
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(at_int(a, say(&k, "week.%zu.from_ms", i)), before);
        CHECK_STR(at_str(a, say(&k, "week.%zu.open", i)), i % 2 ? "false" : "true");
        before = at_int(a, say(&k, "week.%zu.until_ms", i));
        sum += before - at_int(a, say(&k, "week.%zu.from_ms", i));
    }
    CHECK_INT(sum, 7 * DAY);
    asking_end(&k);
}

static void pools_are_listed_with_those_of_the_settings_first(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    struct answer *a = CHECK_STATUS(ask(&k, "ana", "GET /v1/pools"), 200);
    CHECK_INT(at_len(a, "pools"), 2);
    CHECK_STR(at_str(a, "pools.0.name"), "annex");
    CHECK_STR(at_str(a, "pools.0.owner"), "settings");
    CHECK_STR(at_str(a, "pools.0.open"), "false"); /* a Tuesday */
    CHECK_STR(at_str(a, "pools.1.name"), "desks");
    CHECK_STR(at_str(a, "pools.1.jobs"), "(none)"); /* those are in the pool alone */
    asking_end(&k);
}

static void a_machine_says_which_pool_it_is_in_and_until_when_it_is_ours(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    struct answer *a = ask(&k, "ana", "GET /v1/nodes");
    CHECK_STR(at_str(a, "nodes.0.pool"), "null");
    lend(&k, &closes, &opens);
    a = ask(&k, "ana", "GET /v1/nodes");
    CHECK_STR(at_str(a, "nodes.0.pool"), "desks");
    CHECK_STR(at_str(a, "nodes.0.open"), "true");
    CHECK_INT(at_int(a, "nodes.0.until_ms"), closes);
    wait_until(&k, closes);
    a = ask(&k, "ana", "GET /v1/nodes");
    CHECK_STR(at_str(a, "nodes.0.open"), "false");
    CHECK_INT(at_int(a, "nodes.0.until_ms"), opens);
    a = CHECK_STATUS(ask(&k, "root", "DELETE /v1/pools/desks"), 200);
    CHECK_INT(at_len(a, "nodes"), 3);
    a = ask(&k, "ana", "GET /v1/nodes");
    CHECK_STR(at_str(a, "nodes.0.pool"), "null");
    CHECK_STR(at_str(a, "nodes.0.open"), "true");
    asking_end(&k);
}

/* ---- the end of a window ---- */

static void a_job_that_saves_itself_leaves_in_time_and_goes_on_in_the_next_window(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    uint64_t id = asking_submit(&k, "ana", "{" SAVES "}");
    wait_until(&k, closes - MINUTE);
    CHECK_STR(asking_state(&k, id), "running"); /* there is time still */
    wait_until(&k, closes - 1);
    struct answer *a = ask(&k, "ana", say(&k, "GET /v1/jobs/%llu", (unsigned long long)id));
    CHECK_STR(at_str(a, "state"), "frozen"); /* and the window is open still */
    CHECK_STR(at_str(a, "message"), GIVEN_BACK);
    wait_until(&k, opens - 1);
    CHECK_STR(asking_state(&k, id), "frozen");
    wait_until(&k, opens);
    CHECK_STR(asking_state(&k, id), "running"); /* by itself */
    asking_end(&k);
}

static void it_leaves_in_time_also_when_the_daemon_was_killed_or_away(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    uint64_t id = asking_submit(&k, "ana", "{" SAVES "}");
    wait_until(&k, closes - 40000);
    asking_again(&k);
    wait_until(&k, closes);
    CHECK_STR(asking_state(&k, id), "frozen");
    wait_until(&k, opens);
    CHECK_STR(asking_state(&k, id), "running");
    k.t.now_ms = closes + DAY - 5000; /* away when it should have left: it leaves when it is back */
    asking_again(&k);
    wait_until(&k, closes + DAY);
    CHECK_STR(asking_state(&k, id), "frozen");
    asking_end(&k);
}

static void what_does_not_save_itself_is_ended_before_the_window_is(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    uint64_t id = asking_submit(&k, "ana",
                                "{'command':['sleep','999999'],"
                                "'freeze':{'mode':'signal','grace':'2m'},'resources':{'gpus':1}}");
    wait_until(&k, closes);
    struct answer *a = ask(&k, "ana", say(&k, "GET /v1/jobs/%llu", (unsigned long long)id));
    CHECK_STR(at_str(a, "state"), "queued");
    CHECK_HAS(at_str(a, "message"), "did not save itself when it was taken back");
    wait_until(&k, opens);
    CHECK_STR(asking_state(&k, id), "running");
    asking_end(&k);
}

/* ---- what starts ---- */

static void what_could_not_leave_does_not_start_and_why_says_what_would_help(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    uint64_t stays = asking_submit(&k, "ana", "{" STAYS "}");
    uint64_t ends = asking_submit(&k, "ana", "{" STAYS ",'max_time':'20m'}");
    uint64_t saves = asking_submit(&k, "ana", "{" SAVES "}");
    CHECK_STR(asking_state(&k, stays), "queued");
    CHECK_STR(asking_state(&k, ends), "running");
    CHECK_STR(asking_state(&k, saves), "running");
    struct answer *a = ask(&k, "ana", say(&k, "GET /v1/jobs/%llu/why", (unsigned long long)stays));
    CHECK_STR(at_str(a, "reasons.0.code"), "window");
    CHECK_HAS(at_str(a, "reasons.0.text"), "2023-11-14T23:13");
    CHECK(at_where(a, "helps", "code", "max_time") && at_where(a, "helps", "code", "freeze"));
    a = ask(&k, "ana", "GET /v1/pools/desks");
    CHECK_INT(at_len(a, "jobs"), 2);
    CHECK_STR(at_str(a, "jobs.0.leaves"), "ends");
    CHECK_INT(at_int(a, "jobs.0.leaves_ms"), k.t.now_ms + 20 * MINUTE);
    CHECK_STR(at_str(a, "jobs.1.leaves"), "frozen");
    asking_end(&k);
}

static void a_pool_that_is_closed_at_once_freezes_what_can_be_and_names_what_goes_on(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "root", "PUT /v1/pools/desks", "{'window':'','nodes':['desk1']}"),
                 200);
    uint64_t saves = asking_submit(&k, "ana", "{" SAVES "}");
    uint64_t stays = asking_submit(&k, "ana", "{" STAYS "}");
    struct answer *a = ask_with(&k, "root", "POST /v1/pools/desks/close", "{'for':'3h'}");
    CHECK_STATUS(a, 200);
    CHECK_STR(at_str(a, "open"), "false");
    CHECK_INT(at_int(a, "until_ms"), (k.t.now_ms / MINUTE + 181) * MINUTE); /* whole minutes */
    CHECK_STR(text_of(at_where(a, "jobs", "leaves", "stays"), "leaves_ms"), "null");
    asking_wait(&k, MINUTE);
    CHECK_STR(asking_state(&k, saves), "frozen");
    CHECK_STR(asking_state(&k, stays), "running");
    uint64_t next = asking_submit(&k, "ana", "{'command':['true'],'resources':{'gpus':1}}");
    CHECK_STR(asking_state(&k, next), "queued");
    a = ask(&k, "ana", say(&k, "GET /v1/jobs/%llu/why", (unsigned long long)next));
    CHECK_HAS(at_str(a, "reasons.0.text"), "is lent from");
    CHECK_STATUS(ask_with(&k, "root", "POST /v1/pools/desks/regular", "{}"), 200);
    asking_wait(&k, 5000);
    CHECK_STR(asking_state(&k, saves), "running");
    CHECK_STR(asking_state(&k, next), "succeeded");
    asking_end(&k);
}

static void a_pool_that_is_opened_for_a_while_closes_by_itself(void)
{
    struct asking k;
    begin(&k);
    struct answer *a =
        CHECK_STATUS(ask_with(&k, "root", "POST /v1/pools/annex/open", "{'for':'2h'}"), 200);
    CHECK_STR(at_str(a, "open"), "true");
    CHECK_INT(at_len(a, "exceptions"), 1);
    asking_again(&k); /* it was said, so it is kept */
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/pools/annex"), "open"), "true");
    asking_wait(&k, 2 * HOUR + MINUTE);
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/pools/annex"), "open"), "false");
    asking_end(&k);
}

/* ---- changing ---- */

static void what_is_left_out_of_a_change_stays(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    struct answer *before = ask(&k, "root", "GET /v1/pools/desks");
    struct answer *a = ask_with(&k, "root", "PUT /v1/pools/desks", "{'stage':'beta'}");
    CHECK_STR(at_str(CHECK_STATUS(a, 200), "window"), at_str(before, "window"));
    CHECK_STR(at_str(a, "stage"), "beta");
    CHECK_INT(at_len(a, "nodes"), 3);
    a = ask_with(&k, "root", "PUT /v1/pools/desks", "{'nodes':['desk1']}");
    CHECK_STR(at_str(a, "stage"), "beta");
    CHECK_INT(at_len(a, "nodes"), 1);
    asking_again(&k);
    a = ask(&k, "root", "GET /v1/pools/desks");
    CHECK_STR(at_str(a, "window"), at_str(before, "window"));
    CHECK_STR(at_str(a, "stage"), "beta");
    asking_end(&k);
}

static void the_settings_file_owns_its_pools(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask_with(&k, "root", "PUT /v1/pools/annex", "{'window':''}");
    CHECK_REFUSED(a, 409, "conflict", "*", "settings file");
    CHECK_HAS(at_str(a, "hint"), "pools close");
    CHECK_REFUSED(ask(&k, "root", "DELETE /v1/pools/annex"), 409, "conflict", "*", "settings file");
    CHECK_INT(at_len(ask(&k, "root", "GET /v1/pools"), "pools"), 1);
    asking_end(&k);
}

static void a_machine_is_in_one_pool(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask_with(&k, "root", "PUT /v1/pools/desks", "{'nodes':['desk1']}"), 200);
    static const struct bad rows[] = {
        { "PUT /v1/pools/more", "{'nodes':['desk1']}", 409, "*",
          "'desk1' is in pool 'desks' already" },
        { "PUT /v1/pools/more", "{'nodes':['annex[2-3]']}", 409, "*",
          "'annex2' is in pool 'annex' already" },
    };
    CHECK_BAD(&k, "root", rows);
    CHECK_STATUS(ask(&k, "root", "GET /v1/pools/more"), 404);
    asking_end(&k);
}

static void what_is_wrong_is_refused_by_name_and_nothing_changes(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/pools/x", "{'window':'Mon 8-9'}", 400, "window", "window" },
        { "PUT /v1/pools/x", "{'window':'zone=Europe/Atlantis; Mon 08:00-09:00'}", 400, "window",
          "Atlantis" },
        { "PUT /v1/pools/x", "{'window':5}", 400, "window", "window" },
        { "PUT /v1/pools/x", "{'nodes':'pc1'}", 400, "nodes", "a list of names" },
        { "PUT /v1/pools/x", "{'nodes':['pc[']}", 400, "nodes", "nodes" },
        { "PUT /v1/pools/x", "{'nodes':['']}", 400, "nodes", "a name is empty" },
        { "PUT /v1/pools/x", "{'nodes':[7]}", 400, "nodes", "nodes" },
        { "PUT /v1/pools/x", "{'nodes':['pc1','pc[1-2]']}", 400, "nodes", "pc1" },
        { "PUT /v1/pools/x", "{'nodes':['pc[1-9999]']}", 413, "nodes", "nodes" },
        { "PUT /v1/pools/x", "{'stage':'gamma'}", 400, "stage", "gamma" },
        { "PUT /v1/pools/x", "{'stage':1}", 400, "stage", "stage" },
        { "PUT /v1/pools/x", "{'colour':1}", 400, "colour", "colour" },
        { "PUT /v1/pools/x", "{'window':'','window':''}", 400, "window", "window" },
        { "PUT /v1/pools/x", "[]", 400, NULL, "" },
        { "PUT /v1/pools/a%20b", "{}", 400, NULL, "" },
        { "POST /v1/pools/annex/close", "{}", 400, "for", "until_ms is needed" },
        { "POST /v1/pools/annex/close", "{'for':'3h','until_ms':5}", 400, "for", "for" },
        { "POST /v1/pools/annex/close", "{'for':'soon'}", 400, "for", "soon" },
        { "POST /v1/pools/annex/close", "{'for':'999d'}", 400, "for", "for" },
        { "POST /v1/pools/annex/close", "{'until_ms':5}", 409, NULL, "" },
        { "POST /v1/pools/annex/close", "{'until_ms':-1}", 400, "until_ms", "until_ms" },
        { "POST /v1/pools/annex/open", "{'from_ms':'now','for':'1h'}", 400, "from_ms", "from_ms" },
        { "POST /v1/pools/none/close", "{'for':'3h'}", 404, NULL, "there is no pool 'none'" },
        { "POST /v1/pools/none/regular", "{}", 404, NULL, "there is no pool 'none'" },
        { "GET /v1/pools/none", NULL, 404, NULL, "there is no pool 'none'" },
        { "DELETE /v1/pools/none", NULL, 404, NULL, "there is no pool 'none'" },
        { "POST /v1/pools/annex/regular", "{'reason':5}", 400, "reason", "reason" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    struct answer *a = ask(&k, "root", "GET /v1/pools");
    CHECK_INT(at_len(a, "pools"), 1);
    CHECK_INT(at_len(a, "pools.0.exceptions"), 0);
    asking_end(&k);
}

static void every_refusal_of_a_field_says_what_to_do(void)
{
    static const char *const bodies[] = { "{'window':'Mon 8-9'}", "{'nodes':'pc1'}",
                                          "{'nodes':['']}", "{'stage':'gamma'}", "{'colour':1}" };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        CHECK(strlen(at_str(ask_with(&k, "root", "PUT /v1/pools/x", bodies[i]), "hint")) > 6);
    asking_end(&k);
}

static void who_may_not_looks_and_changes_nothing(void)
{
    static const struct bad rows[] = {
        { "PUT /v1/pools/x", "{}", 403, NULL, "'operator' or 'admin'" },
        { "DELETE /v1/pools/annex", NULL, 403, NULL, "'operator' or 'admin'" },
        { "POST /v1/pools/annex/open", "{'for':'1h'}", 403, NULL, "'operator' or 'admin'" },
        { "POST /v1/pools/annex/close", "{'for':'1h'}", 403, NULL, "'operator' or 'admin'" },
        { "POST /v1/pools/annex/regular", "{}", 403, NULL, "'operator' or 'admin'" },
    };
    struct asking k;
    begin(&k);
    CHECK_STATUS(ask(&k, "ana", "GET /v1/pools"), 200);
    CHECK_BAD(&k, "ana", rows);
    asking_end(&k);
}

static void who_changed_a_pool_is_an_event_and_in_the_audit(void)
{
    struct asking k;
    begin(&k);
    asking_person(&k, "ops", NULL, "operator");
    ask_with(&k, "ops", "PUT /v1/pools/desks", "{'nodes':['desk1']}");
    ask_with(&k, "ops", "POST /v1/pools/desks/close", "{'for':'1h'}");
    ask_with(&k, "ops", "POST /v1/pools/desks/regular", "{'reason':'a mistake'}");
    ask(&k, "ops", "DELETE /v1/pools/desks");
    struct answer *a = ask(&k, "root", "GET /v1/audit?subject=desks");
    static const char *const what[] = { "pool.delete", "pool.regular", "pool.close", "pool.set" };
    CHECK_INT(at_len(a, "rows"), ARRAY_LEN(what));
    for (size_t i = 0; i < ARRAY_LEN(what); i++) {
        CHECK_STR(at_str(a, say(&k, "rows.%zu.what", i)), what[i]);
        CHECK_STR(at_str(a, say(&k, "rows.%zu.who", i)), "ops");
    }
    CHECK_STR(at_str(a, "rows.1.reason"), "a mistake");
    struct answer *events = ask(&k, "root", "GET /v1/events?after=0");
    hear(&k, events, "\"what\":\"remove\"");
    CHECK_HAS(events->text, "\"pool\":\"desks\"");
    leave(&k, events);
    asking_end(&k);
}

static void the_journal_makes_the_same_core(void)
{
    struct asking k;
    int64_t closes, opens;
    begin(&k);
    lend(&k, &closes, &opens);
    asking_submit(&k, "ana", "{" SAVES "}");
    wait_until(&k, opens + MINUTE);
    ask_with(&k, "root", "POST /v1/pools/desks/close", "{'for':'1h'}");
    asking_wait(&k, HOUR);
    CHECK_STR(controlling_journal_differs(&k.t), "");
    const char *journal = hear_all(&k, ask(&k, "root", "GET /v1/journal"));
    CHECK_HAS(journal, "\"ev\":\"pool\"");
    CHECK_HAS(journal, "\"ev\":\"node_pool\"");
    CHECK_HAS(journal, "\"ev\":\"take\"");
    asking_end(&k);
}

static const struct test tests[] = {
    { "a pool tells its machines, its week, and what is not there yet",
      a_pool_tells_its_machines_its_week_and_what_is_not_there_yet },
    { "pools are listed, those of the settings first",
      pools_are_listed_with_those_of_the_settings_first },
    { "a machine says which pool it is in, and until when it is ours",
      a_machine_says_which_pool_it_is_in_and_until_when_it_is_ours },
    { "a job that can save itself leaves before the window ends, and goes on by itself in the next",
      a_job_that_saves_itself_leaves_in_time_and_goes_on_in_the_next_window },
    { "it leaves in time also when the daemon was killed, or away",
      it_leaves_in_time_also_when_the_daemon_was_killed_or_away },
    { "a job that does not save itself is ended before the window is",
      what_does_not_save_itself_is_ended_before_the_window_is },
    { "what cannot be frozen and has no limit does not start there, and why says what would help",
      what_could_not_leave_does_not_start_and_why_says_what_would_help },
    { "a pool that is closed at once freezes what can be, and names what goes on to its end",
      a_pool_that_is_closed_at_once_freezes_what_can_be_and_names_what_goes_on },
    { "a pool that is opened for a while closes by itself, also after a crash",
      a_pool_that_is_opened_for_a_while_closes_by_itself },
    { "what is left out of a change stays as it was", what_is_left_out_of_a_change_stays },
    { "the settings file owns its pools", the_settings_file_owns_its_pools },
    { "a machine is in one pool", a_machine_is_in_one_pool },
    { "what is wrong is refused by name, and nothing changes",
      what_is_wrong_is_refused_by_name_and_nothing_changes },
    { "every refusal of a field says what to do", every_refusal_of_a_field_says_what_to_do },
    { "who is no operator may look at pools, but not change them",
      who_may_not_looks_and_changes_nothing },
    { "who changed a pool is an event, and in the audit",
      who_changed_a_pool_is_an_event_and_in_the_audit },
    { "the journal of all this makes the same core", the_journal_makes_the_same_core },
};
TEST_CASES(tests)
