/* Machines: who has them, what their agents measured, and what an operator asks of an agent. */
#include <stdio.h>

#include "tests/lib/asking.h"
#include "wire/report.h"

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "eve", "speech", "member");
    asking_person(k, "ops", NULL, "operator");
}

/* One sample of desk1 by its agent, with what `fill` adds. */
static struct answer *report(struct asking *k, const char *who,
                             void (*fill)(struct report_sample *s))
{
    AUTO(buf_free) struct buf b = BUF(REPORT_BYTES_MAX);
    AUTO(report_writer_free_p) struct report_writer *w = report_writer_new();
    struct report_head *h = report_head_new();
    struct report_sample *s = report_sample_new();
    snprintf(h->node, sizeof h->node, "desk1");
    snprintf(h->boot, sizeof h->boot, "boot-1");
    snprintf(h->version, sizeof h->version, "0.1.0");
    h->number = ++k->serial;
    s->t_ms = k->t.now_ms;
    s->node[REPORT_NODE_CPU] = 1500;
    s->node[REPORT_NODE_CPUS] = 16000;
    if (fill)
        fill(s);
    report_begin(w, h, &b);
    report_add(w, h, s, &b);
    free(h);
    free(s);
    return ask_so(
        k, &(struct question){
               .who = who, .request = "POST /v1/nodes/desk1/report", .bytes = b.p, .n = b.n });
}

/* ---- who has them ---- */

static void a_machine_shows_its_gpus_and_who_has_them_as_far_as_one_may_know(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana",
                  "{'command':['sleep','600'],'name':'secret','resources':{'gpus':2,'cpus':1}}");
    struct answer *a = CHECK_STATUS(ask(&k, "ops", "GET /v1/nodes"), 200);
    CHECK_STR(at_str(a, "nodes.0.name"), "desk1");
    CHECK_STR(at_str(a, "nodes.0.state"), "up");
    CHECK_INT(at_len(a, "nodes.0.gpus"), 4);
    CHECK_HAS(a->text, "secret");
    CHECK_HAS(ask(&k, "ana", "GET /v1/nodes")->text, "\"ana\"");
    a = ask(&k, "eve", "GET /v1/nodes");
    CHECK(!strstr(a->text, "secret") && !strstr(a->text, "\"ana\""));
    a = ask(&k, "eve", "GET /v1/gpus");
    CHECK(!strstr(a->text, "secret") && !strstr(a->text, "\"ana\""));
    asking_end(&k);
}

static void a_machine_that_is_drained_takes_nothing_new_and_says_why(void)
{
    struct asking k;
    begin(&k);
    uint64_t runs = asking_submit(
        &k, "ana", "{'command':['sleep','600'],'resources':{'gpus':1,'cpus':1,'mem':'1Gi'}}");
    CHECK_STR(at_str(ask_with(&k, "ops", "POST /v1/nodes/desk1/drain", "{'reason':'a new fan'}"),
                     "state"),
              "drain");
    uint64_t waits = asking_submit(
        &k, "ana", "{'command':['sleep','600'],'resources':{'gpus':1,'cpus':1,'mem':'1Gi'}}");
    for (int round = 0; round < 2; round++) {
        CHECK_STR(asking_state(&k, runs), "running");
        CHECK_STR(asking_state(&k, waits), "queued");
        asking_again(&k);
    }
    CHECK_HAS(ask(&k, "ana", say(&k, "GET /v1/jobs/%llu/why", (unsigned long long)waits))->text,
              "is up");
    CHECK_STATUS(ask_with(&k, "ops", "POST /v1/nodes/desk1/resume", "{}"), 200);
    CHECK_STR(asking_state(&k, waits), "running");
    asking_end(&k);
}

static void what_is_not_there_is_not_found(void)
{
    static const struct bad rows[] = {
        { "POST /v1/nodes/none/drain", "{}", 404, "*", "none" },
        { "POST /v1/nodes/none/resume", "{}", 404, "*", "none" },
        { "GET /v1/nodes/none/load", NULL, 404, "*", "there is no machine 'none'" },
        { "GET /v1/nodes/none/history", NULL, 404, "*", "there is no machine 'none'" },
        { "GET /v1/nodes/desk1/history?step_ms=999", NULL, 400, "step_ms", "at least 1000" },
        { "POST /v1/nodes/desk1/drain", "{'reason':7}", 400, "reason", "reason" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "ops", rows);
    asking_end(&k);
}

/* ---- what agents tell ---- */

static void what_an_agent_measured_is_shown_until_it_is_silent(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = ask(&k, "ana", "GET /v1/nodes/desk1/load");
    CHECK_STR(at_str(a, "seen_ms"), "null");
    CHECK_STR(at_str(a, "cpu_milli"), "null");
    CHECK_STATUS(report(&k, "ops", NULL), 200);
    a = ask(&k, "ana", "GET /v1/nodes/desk1/load");
    CHECK_INT(at_int(a, "cpu_milli"), 1500);
    CHECK_INT(at_int(a, "seen_ms"), k.t.now_ms);
    CHECK_STR(at_str(a, "agent"), "0.1.0");
    k.t.now_ms += 60000;
    a = ask(&k, "ana", "GET /v1/nodes/desk1/load");
    CHECK_STR(at_str(a, "cpu_milli"), "null"); /* old figures are none */
    CHECK_INT(at_int(a, "seen_ms"), k.t.now_ms - 60000);
    asking_end(&k);
}

static void add_task(struct report_sample *s)
{
    s->tasks = 2;
    snprintf(s->task[0].task, sizeof s->task[0].task, "1.1.0");
    snprintf(s->task[1].task, sizeof s->task[1].task, "2.1.0");
}

static void tasks_of_others_are_not_told(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600'],'resources':{'cpus':1,'mem':'1Gi'}}");
    asking_submit(&k, "eve", "{'command':['sleep','600'],'resources':{'cpus':1,'mem':'1Gi'}}");
    CHECK_STATUS(report(&k, "ops", add_task), 200);
    CHECK_INT(at_len(ask(&k, "ops", "GET /v1/nodes/desk1/load"), "tasks"), 2);
    struct answer *a = ask(&k, "ana", "GET /v1/nodes/desk1/load");
    CHECK_INT(at_len(a, "tasks"), 1);
    CHECK_STR(at_str(a, "tasks.0.task"), "1.1.0");
    CHECK(!strstr(a->text, "\"eve\""));
    asking_end(&k);
}

static void who_may_report_is_who_may_and_no_other(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(report(&k, "ana", NULL), 403);
    CHECK_STATUS(report(&k, asking_token(&k, "ops", "'scopes':['read','manage']"), NULL), 403);
    CHECK_STATUS(report(&k, asking_token(&k, "ops", "'scopes':['report']"), NULL), 200);
    ask(&k, "root", "PUT /v1/nodes/desk1/owners/ana");
    CHECK_STATUS(report(&k, "ana", NULL), 200);
    CHECK_STATUS(ask(&k, asking_token(&k, "ops", "'scopes':['report']"), "GET /v1/jobs"), 403);
    asking_end(&k);
}

static void what_is_no_report_is_refused_by_line_and_changes_nothing(void)
{
    static const char *const odd[] = { "", "?", "nightshift-report 9\n",
                                       "nightshift-report 2\nfrom desk1\n",
                                       "nightshift-report 2\nfrom pc1 boot 1 0 0.1.0\ns 5\n" };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        struct answer *a =
            ask_so(&k, &(struct question){ .who = "ops",
                                           .request = "POST /v1/nodes/desk1/report",
                                           .bytes = odd[i],
                                           .n = strlen(odd[i]) ? strlen(odd[i]) : 0 });
        CHECK(a->status >= 400 && a->status < 500);
    }
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/nodes/desk1/load"), "seen_ms"), "null");
    asking_end(&k);
}

static void add_fault(struct report_sample *s)
{
    s->findings = 1;
    snprintf(s->finding[0].rule, sizeof s->finding[0].rule, "gpu_lost");
    snprintf(s->finding[0].text, sizeof s->finding[0].text, "GPU 3: it does not answer");
    s->finding[0].gpu = -1;
}

static void a_machine_that_is_broken_is_drained_once_and_an_operator_is_not_overruled(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(report(&k, "ops", add_fault), 200);
    asking_settle(&k);
    struct answer *a = ask(&k, "ana", "GET /v1/nodes");
    CHECK_STR(at_str(a, "nodes.0.state"), "drain");
    CHECK_HAS(at_str(ask(&k, "root", "GET /v1/audit?what=node.drain"), "rows.0.reason"),
              "it does not answer");
    CHECK_STATUS(ask_with(&k, "ops", "POST /v1/nodes/desk1/resume", "{}"), 200);
    k.t.now_ms += 1000;
    CHECK_STATUS(report(&k, "ops", add_fault), 200);
    asking_settle(&k);
    CHECK_STR(at_str(ask(&k, "ana", "GET /v1/nodes"), "nodes.0.state"), "up");
    asking_end(&k);
}

static void charts_are_of_the_time_that_is_asked_for(void)
{
    struct asking k;
    begin(&k);
    int64_t from = k.t.now_ms;
    for (int i = 0; i < 20; i++) {
        CHECK_STATUS(report(&k, "ops", NULL), 200);
        k.t.now_ms += 1000;
    }
    struct answer *a =
        ask(&k, "ana",
            say(&k, "GET /v1/nodes/desk1/history?from_ms=%lld&to_ms=%lld&step_ms=1000",
                (long long)from, (long long)k.t.now_ms));
    CHECK_STATUS(a, 200);
    CHECK_HAS(a->text, "1500");
    CHECK_HAS(a->text, "cpu_milli");
    a = ask(&k, "ana", "GET /v1/nodes/desk1/history?from_ms=5&to_ms=4");
    CHECK_INT(at_int(CHECK_STATUS(a, 200), "points"), 0);
    asking_end(&k);
}

/* ---- commands ---- */

#define COMMAND "POST /v1/nodes/desk1/commands"
static void a_command_is_kept_until_its_agent_has_it_and_told_what_became_of_it(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600'],'resources':{'cpus':1,'mem':'1Gi'}}");
    CHECK_REFUSED(ask_with(&k, "ops", COMMAND, "{'what':'pause','task':'1.1.0'}"), 409, "conflict",
                  "*", "the agent of 'desk1' is not heard of");
    report(&k, "ops", NULL);
    struct answer *a =
        ask_with(&k, "ops", COMMAND, "{'what':'pause','task':'1.1.0','reason':'too loud'}");
    CHECK_STATUS(a, 202);
    asking_again(&k);
    a = ask(&k, "ops", "GET /v1/nodes/desk1/commands");
    CHECK_INT(at_len(a, "commands"), 1);
    CHECK_STR(at_str(a, "commands.0.what"), "pause");
    CHECK_STR(at_str(a, "commands.0.task"), "1.1.0");
    CHECK_HAS(report(&k, "ops", NULL)->text, "1.1.0"); /* it is told with the answer */
    CHECK_STR(at_str(ask(&k, "root", "GET /v1/audit?what=node.command"), "rows.0.reason"),
              "too loud");
    asking_end(&k);
}

static void what_is_no_command_is_refused_by_its_name(void)
{
    static const struct bad rows[] = {
        { COMMAND, "{}", 400, "what", "pause, resume or throttle" },
        { COMMAND, "{'what':'reboot','task':'1.1.0'}", 400, "what", "pause, resume or throttle" },
        { COMMAND, "{'what':5}", 400, "what", "what" },
        { COMMAND, "{'what':'throttle','task':'1.1.0'}", 400, "weight", "1 to 10000" },
        { COMMAND, "{'what':'throttle','task':'1.1.0','weight':0}", 400, "weight", "1 to 10000" },
        { COMMAND, "{'what':'throttle','task':'1.1.0','weight':10001}", 400, "weight", "weight" },
        { COMMAND, "{'what':'pause','task':'1.1.0','weight':5}", 400, "weight",
          "of throttle and of nothing else" },
        { COMMAND, "{'what':'pause','task':'9.1.0'}", 404, "task",
          "no task '9.1.0' is on machine 'desk1'" },
        { COMMAND, "{'what':'pause','task':'; rm -rf /'}", 404, "task", "no task" },
        { COMMAND, "{'what':'pause','task':5}", 400, "task", "task" },
        { COMMAND, "{'what':'pause','colour':5}", 400, "colour", "colour" },
    };
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600'],'resources':{'cpus':1,'mem':'1Gi'}}");
    CHECK_BAD(&k, "ops", rows);
    CHECK_STATUS(ask_with(&k, "ana", COMMAND, "{'what':'pause','task':'1.1.0'}"), 403);
    CHECK_INT(at_len(ask(&k, "ops", "GET /v1/nodes/desk1/commands"), "commands"), 0);
    asking_end(&k);
}

/* ---- the server itself ---- */

static void a_refused_command_says_the_way_out(void)
{
    static const char *const bodies[] = { "{}", "{'what':'throttle','task':'1.1.0'}",
                                          "{'what':'pause','task':'9.1.0'}" };
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600'],'resources':{'cpus':1,'mem':'1Gi'}}");
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        CHECK_HAS(at_str(ask_with(&k, "ops", COMMAND, bodies[i]), "hint"),
                  i < 2 ? "e.g. {" : "JOB.RUN.REPLICA");
    report(&k, "ops", NULL);
    struct answer *a = ask_with(&k, "ops", COMMAND, "{'what':'resume','task':'1.1.0'}");
    for (int i = 0; i < 1000 && a->status == 202; i++) /* its agent never answers */
        a = ask_with(&k, "ops", COMMAND, "{'what':'resume','task':'1.1.0'}");
    CHECK_REFUSED(a, 409, "conflict", NULL, "commands wait for this machine already");
    CHECK_HAS(at_str(a, "hint"), "GET /v1/nodes/desk1/commands");
    asking_end(&k);
}

static void the_server_says_what_it_is_and_whether_it_works(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = CHECK_STATUS(ask(&k, NULL, "GET /v1/server"), 200);
    CHECK_STR(at_str(a, "engine"), "sim");
    CHECK_STR(at_str(a, "simulated"), "true");
    CHECK_STR(at_str(a, "caps.pause"), "true");
    CHECK_STR(at_str(a, "caps.attach"), "false");
    CHECK_STR(ask(&k, NULL, "GET /healthz")->text, "ok\n");
    CHECK_STR(ask(&k, NULL, "GET /readyz")->text, "ready\n");
    engine_sim_away(&k.t.sim, true);
    asking_settle(&k);
    CHECK_STATUS(ask(&k, NULL, "GET /readyz"), 503);
    CHECK_STATUS(ask(&k, NULL, "GET /healthz"), 200);
    CHECK_STATUS(ask_with(&k, "ana", "POST /v1/jobs", "{'command':['true']}"), 503);
    engine_sim_away(&k.t.sim, false);
    asking_settle(&k);
    CHECK_STATUS(ask(&k, NULL, "GET /readyz"), 200);
    asking_end(&k);
}

static void figures_name_tenants_to_those_who_see_them_alone(void)
{
    struct asking k;
    begin(&k);
    asking_submit(&k, "ana", "{'command':['sleep','600'],'resources':{'gpus':1,'cpus':1}}");
    struct answer *a = CHECK_STATUS(ask(&k, NULL, "GET /metrics"), 200);
    CHECK_HAS(a->text, "nightshift_");
    CHECK_HAS(a->text, "# EOF");
    CHECK(!strstr(a->text, "vision") && !strstr(a->text, "ana"));
    CHECK_HAS(ask(&k, "ops", "GET /metrics")->text, "vision");
    CHECK(!strstr(ask(&k, "eve", "GET /metrics")->text, "\"vision\""));
    asking_end(&k);
}

static const struct test tests[] = {
    { "a machine shows its GPUs and who has them, as far as one may know",
      a_machine_shows_its_gpus_and_who_has_them_as_far_as_one_may_know },
    { "a machine that is drained takes nothing new, also after a crash",
      a_machine_that_is_drained_takes_nothing_new_and_says_why },
    { "what is not there is not found, and what is wrong is named",
      what_is_not_there_is_not_found },
    { "what an agent measured is shown until it is silent",
      what_an_agent_measured_is_shown_until_it_is_silent },
    { "tasks of others are not told", tasks_of_others_are_not_told },
    { "who may report is who may, and no other", who_may_report_is_who_may_and_no_other },
    { "what is no report is refused, and changes nothing",
      what_is_no_report_is_refused_by_line_and_changes_nothing },
    { "a machine that is broken is drained once, and an operator is not overruled",
      a_machine_that_is_broken_is_drained_once_and_an_operator_is_not_overruled },
    { "charts are of the time that is asked for", charts_are_of_the_time_that_is_asked_for },
    { "a command is kept until its agent has it, also over a crash",
      a_command_is_kept_until_its_agent_has_it_and_told_what_became_of_it },
    { "what is no command is refused by its name", what_is_no_command_is_refused_by_its_name },
    { "a refused command says the way out", a_refused_command_says_the_way_out },
    { "the server says what it is, and whether it works",
      the_server_says_what_it_is_and_whether_it_works },
    { "figures name tenants to those who see them alone",
      figures_name_tenants_to_those_who_see_them_alone },
};
TEST_CASES(tests)
