#include "control/control.h"

#include <stdio.h>

#include "journal/journal.h"
#include "tests/lib/controlling.h"

#define RUN(ms) "{\"command\":[\"x\"],\"env\":{\"SIM_RUN_MS\":\"" ms "\"}}"

static struct store_events events_after(struct controlling *t, uint64_t number)
{
    struct store_events ev = { 0 };
    struct err e = { 0 };
    struct store_after after = { .number = number };
    CHECK(store_events_after(t->s.store, &storing_all, &after, &t->s.arena, &ev, &e) == 0);
    return ev;
}

/* "queued starting running succeeded", as /v1/events told it. */
static const char *told_states(struct controlling *t, uint64_t job)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct store_events list = events_after(t, 0);
    struct err e;
    for (size_t i = 0; i < list.n; i++) {
        struct str state;
        if (list.v[i].job != job)
            continue;
        AUTO(json_free_p) struct json_doc *d = json_read(list.v[i].body, &e);
        CHECK(d && json_need_str(json_root(d), "state", 32, &state, &e) == 0);
        CHECK(str_is(list.v[i].kind, "job") && str_is(list.v[i].tenant, "vision"));
        buf_printf(&b, "%s%.*s", b.n ? " " : "", STR_ARG(state));
    }
    return controlling_text(t, buf_str(&b));
}

static void a_job_runs_and_all_of_it_is_written_down(void)
{
    struct controlling t;
    struct err e;
    struct store_runs runs;
    controlling_begin(&t, &(struct sim_config){ .start_least_ms = 50, .start_most_ms = 50 });
    int64_t at = t.now_ms;
    uint64_t id =
        controlling_submit(&t, "{\"command\":[\"sleep\",\"3\"],\"resources\":{\"gpus\":2}}");
    CHECK_INT(id, 1);
    CHECK_INT(t.answered, 0); /* never within the call */
    controlling_settle(&t);
    CHECK_INT(t.answered, 1);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "starting");
    CHECK(str_is(j.fixed.name, "sleep") && str_is(j.fixed.user, "ana"));
    CHECK_INT(j.fixed.gpu_milli, 2000);
    CHECK_INT(j.now.run, 1);
    CHECK_INT(j.now.started_ms, 0);
    CHECK_STR(controlling_text(&t, j.now.where),
              "[{\"node\":\"desk1\",\"gpus\":[0,1],\"milli\":1000}]");
    controlling_wait(&t, 100);
    j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "running");
    CHECK_INT(j.now.started_ms, at + 50);
    controlling_wait(&t, 5000);
    j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "succeeded");
    CHECK_INT(j.now.ended_ms, at + 3050);
    CHECK_INT(j.now.exit_code, 0);
    CHECK_STR(controlling_text(&t, j.now.end), "exited");
    CHECK_STR(controlling_text(&t, j.now.message), "");
    CHECK(store_job_runs(t.s.store, &storing_all, id, &t.s.arena, &runs, &e) == 0 && runs.n == 1);
    CHECK_INT(runs.v[0].gpu_milli, 2000);
    CHECK_INT(runs.v[0].started_ms, at);
    CHECK_INT(runs.v[0].ended_ms, at + 3050);
    CHECK(str_is(runs.v[0].node, "desk1") && str_is(runs.v[0].model, "A100"));
    CHECK_STR(told_states(&t, id), "queued starting running succeeded");
    CHECK_STR(controlling_journal_differs(&t), "");
    CHECK_INT(engine_sim_counts(&t.sim).ended, 0); /* it was told to forget */
    CHECK_INT(control_stats(t.c).living, 0);
    CHECK_INT(control_holding(t.c), 0);
    controlling_end(&t);
}

static void what_is_not_said_is_filled_in(void)
{
    struct controlling t;
    struct job_view v;
    controlling_begin(&t, NULL);
    uint64_t gpu = controlling_submit(&t, "{\"command\":[\"x\"],\"resources\":{\"gpus\":1}}");
    uint64_t cpu = controlling_submit(&t, "{\"command\":[\"x\"]}");
    uint64_t line = controlling_submit(
        &t, "{\"command\":\"OMP=1 /opt/my prog\",\"resources\":{\"cpus\":\"2\",\"mem\":\"1Gi\"}}");
    CHECK(core_job(control_core(t.c), (job_id){ gpu }, &v));
    CHECK_INT(v.request.cpu_milli, 4000);
    CHECK_INT(v.request.mem_mib, 16384);
    CHECK(core_job(control_core(t.c), (job_id){ cpu }, &v));
    CHECK_INT(v.request.cpu_milli, 1000);
    CHECK_INT(v.request.mem_mib, 4096);
    CHECK(core_job(control_core(t.c), (job_id){ line }, &v));
    CHECK_INT(v.request.cpu_milli, 2000);
    CHECK_INT(v.request.mem_mib, 1024);
    controlling_settle(&t);
    CHECK_STR(controlling_text(&t, controlling_job(&t, line).fixed.name), "OMP");
    controlling_end(&t);
}

static void jobs_that_find_no_room_wait_and_follow(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    static const char four[] = "{\"command\":[\"sleep\",\"10\"],\"resources\":{\"gpus\":4}}";
    uint64_t a = controlling_submit(&t, four), b = controlling_submit(&t, four);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, a), "running");
    CHECK_STR(controlling_state(&t, b), "queued");
    controlling_wait(&t, 10000);
    CHECK_STR(controlling_state(&t, a), "succeeded");
    CHECK_STR(controlling_state(&t, b), "running");
    CHECK_INT(engine_sim_counts(&t.sim).overbooked, 0);
    controlling_end(&t);
}

static void an_array_is_one_job_each_index(void)
{
    struct controlling t;
    struct sim_task_view v;
    struct err e;
    controlling_begin(&t, NULL);
    uint64_t first = controlling_submit(
        &t, "{\"command\":[\"sleep\",\"5\"],\"array\":\"4-8:2\",\"name\":\"sweep\"}");
    CHECK(first == 1);
    controlling_settle(&t);
    CHECK_INT(store_last_job(t.s.store), 3);
    for (uint64_t i = 0; i < 3; i++) {
        struct store_job j = controlling_job(&t, first + i);
        CHECK_INT(j.fixed.array, first);
        CHECK_INT(j.fixed.array_index, 4 + 2 * i);
        CHECK(str_is(j.fixed.name, "sweep"));
        CHECK_STR(job_state_name(j.now.state), "running");
        CHECK(engine_sim_look(&t.sim, (struct task_id){ first + i, 1, 0 }, &v));
        bool found = false;
        for (const char *const *k = v.env; *k; k++)
            found |= strcmp(*k, i == 0   ? "NIGHTSHIFT_ARRAY_INDEX=4"
                                : i == 1 ? "NIGHTSHIFT_ARRAY_INDEX=6"
                                         : "NIGHTSHIFT_ARRAY_INDEX=8") == 0;
        CHECK_AT(i, found);
    }
    /* The text of the first serves all, also after a restart and for a late start. */
    uint64_t late =
        controlling_submit(&t, "{\"command\":[\"sleep\",\"5\"],\"array\":\"0-1\",\"held\":true}");
    controlling_settle(&t);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK(control_verb(t.c, late + 1, VERB_RELEASE, STR("ana"), (struct control_done){ 0 }, &e) ==
          0);
    controlling_wait(&t, 6000);
    CHECK_STR(controlling_state(&t, late + 1), "succeeded");
    CHECK_STR(controlling_state(&t, late), "held");
    CHECK_STR(controlling_state(&t, first + 2), "succeeded");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void a_batch_is_taken_whole_or_not_at_all(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    CHECK_INT(controlling_submit(&t, "[{\"command\":[\"a\"]},{\"command\":[\"b\"],"
                                     "\"resources\":{\"gpus\":9}}]"),
              0);
    CHECK(strstr(t.refused.msg, "job 2 of 2"));
    controlling_settle(&t);
    CHECK_INT(store_last_job(t.s.store), 0);
    CHECK_INT(control_stats(t.c).living, 0);
    CHECK_INT(t.answered, 0);
    CHECK_INT(
        controlling_submit(&t, "[{\"command\":[\"a\"]},{\"command\":[\"b\"],\"array\":\"1-3\"}]"),
        1);
    controlling_settle(&t);
    CHECK_INT(t.answered, 1);
    CHECK_INT(store_last_job(t.s.store), 4);
    CHECK_INT(controlling_job(&t, 4).fixed.array, 2);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void what_can_never_run_is_refused_by_name(void)
{
    struct controlling t;
    controlling_begin(&t, &(struct sim_config){ .lacks = { [CAP_GANG] = true } });
    CHECK_INT(controlling_submit(&t, "{\"command\":[\"a\"],\"replicas\":2}"), 0);
    CHECK(strstr(t.refused.msg, "replicas"));
    CHECK_INT(controlling_submit(&t, "{\"command\":[\"a\"],\"tty\":true}"), 0);
    CHECK(strstr(t.refused.msg, "tty"));
    CHECK_INT(controlling_submit_as(&t, "no/one", "", "{\"command\":[\"a\"]}"), 0);
    CHECK(strstr(t.refused.msg, "no/one"));
    controlling_end(&t);
}

static void before_the_engine_answers_nothing_is_taken(void)
{
    struct controlling t;
    struct err e = { 0 };
    controlling_begin(&t, NULL);
    controlling_kill(&t);
    engine_sim_away(&t.sim, true);
    controlling_boot(&t);
    CHECK(!control_ready(t.c, &e) && strstr(e.msg, "engine"));
    CHECK_INT(controlling_submit(&t, RUN("10")), 0);
    CHECK_INT(t.refused.code, ERR_UNAVAILABLE);
    engine_sim_away(&t.sim, false);
    controlling_settle(&t);
    CHECK(control_ready(t.c, NULL));
    /* Once it has answered, jobs are taken while it is away, and wait. */
    engine_sim_away(&t.sim, true);
    controlling_settle(&t);
    uint64_t id = controlling_submit(&t, RUN("10"));
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "queued");
    engine_sim_away(&t.sim, false);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "succeeded");
    controlling_end(&t);
}

static void a_key_makes_one_submit_of_two(void)
{
    struct controlling t;
    struct err e;
    struct str body;
    controlling_begin(&t, NULL);
    uint64_t a = controlling_submit_as(&t, "ana", "k1", RUN("10"));
    uint64_t again = controlling_submit_as(&t, "ana", "k1", RUN("10"));
    uint64_t other = controlling_submit_as(&t, "ben", "k1", RUN("10"));
    CHECK_INT(again, a);
    CHECK(other != a);
    controlling_round(&t); /* it is on its way to the disk */
    CHECK_INT(controlling_submit_as(&t, "ana", "k1", RUN("10")), a);
    controlling_settle(&t);
    CHECK_INT(t.answered, 4);
    CHECK_INT(store_last_job(t.s.store), 2);
    CHECK(store_answer(t.s.store, STR("ana"), STR("k1"), &t.s.arena, &body, &e) == 0);
    CHECK_STR(controlling_text(&t, body),
              "0000000000000000 {\"id\":1,\"count\":1,\"state\":\"queued\"}"); /* digest, answer */
    CHECK(store_answer(t.s.store, STR("ana"), STR("k2"), &t.s.arena, &body, &e) < 0);
    controlling_end(&t);
}

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

static void watchers_hear_of_events_and_of_the_engine(void)
{
    struct controlling t;
    int calls = 0, none = 0;
    controlling_begin(&t, NULL);
    int watch = control_watch(t.c, count_call, &calls);
    int gone = control_watch(t.c, count_call, &none);
    control_unwatch(t.c, gone);
    controlling_submit(&t, RUN("10"));
    controlling_settle(&t);
    CHECK(calls > 0);
    calls = 0;
    engine_sim_away(&t.sim, true);
    controlling_settle(&t);
    CHECK_INT(calls, 1);
    control_unwatch(t.c, watch);
    engine_sim_away(&t.sim, false);
    controlling_settle(&t);
    CHECK_INT(calls, 1);
    CHECK_INT(none, 0);
    CHECK_INT(control_watch(t.c, count_call, &calls), 0); /* places are used again */
    controlling_end(&t);
}

static void a_machine_is_known_with_its_gpus(void)
{
    struct controlling t;
    struct control_node n;
    controlling_begin(&t, NULL);
    CHECK(control_node(t.c, STR("desk1"), &n));
    CHECK(n.simulated && n.gpus == 4);
    CHECK_STR(n.gpu_uuid[3], "SIM-desk1-3");
    CHECK(!control_node(t.c, STR("desk2"), &n));
    controlling_end(&t);
}

static void a_drained_machine_takes_nothing_also_after_a_restart(void)
{
    struct controlling t;
    struct err e;
    controlling_begin(&t, NULL);
    CHECK(control_node_state(t.c, STR("desk1"), NODE_DRAIN, (struct control_done){ 0 }, &e) == 0);
    CHECK(control_node_state(t.c, STR("desk9"), NODE_DRAIN, (struct control_done){ 0 }, &e) < 0);
    uint64_t id = controlling_submit(&t, RUN("10"));
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "queued");
    controlling_kill(&t);
    controlling_boot(&t);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "queued");
    CHECK(control_node_state(t.c, STR("desk1"), NODE_UP, (struct control_done){ 0 }, &e) == 0);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "succeeded");
    controlling_end(&t);
}

static void stopping_starts_nothing_and_end_all_ends_all(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t a = controlling_submit(&t, RUN("100000"));
    controlling_settle(&t);
    control_stop(t.c);
    uint64_t b = controlling_submit(&t, RUN("10"));
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, a), "running");
    CHECK_STR(controlling_state(&t, b), "queued");
    CHECK_INT(control_holding(t.c), 1);
    control_end_all(t.c);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, a), "cancelled");
    CHECK_STR(controlling_state(&t, b), "queued");
    CHECK_INT(control_holding(t.c), 0);
    controlling_end(&t);
}

static void only_what_runs_can_be_attached_to(void)
{
    struct controlling t;
    struct task_id task;
    struct err e;
    controlling_begin(&t, NULL);
    uint64_t a = controlling_submit(&t, RUN("100000")),
             b = controlling_submit(&t, "{\"command\":[\"x\"],\"held\":true}");
    controlling_settle(&t);
    CHECK(control_task(t.c, a, 0, &task, &e) == 0 && task.job == a && task.run == 1);
    CHECK(control_task(t.c, a, 1, &task, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(control_task(t.c, b, 0, &task, &e) < 0 && strstr(e.msg, "held"));
    CHECK(control_task(t.c, 77, 0, &task, &e) < 0);
    controlling_end(&t);
}

struct families {
    uint32_t of[8];
    size_t n;
};

static int note_family(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct families *f = ctx;
    AUTO(arena_free) struct arena a = { 0 };
    struct event ev;
    (void)t_ms;
    if (journal_read(line, &a, &ev, e) < 0)
        return -1;
    if (ev.kind == EVENT_SUBMIT && f->n < ARRAY_LEN(f->of))
        f->of[f->n++] = ev.submit.family;
    return 0;
}

static void the_journal_says_which_jobs_are_the_same_work(void)
{
    struct controlling t;
    struct families f = { 0 };
    struct err e;
    controlling_begin(&t, NULL);
    controlling_submit(&t, "{\"name\":\"train-1\",\"command\":[\"x\"]}");
    controlling_submit(&t, "{\"name\":\"train-2\",\"command\":[\"x\"]}");
    controlling_submit(&t, "{\"command\":[\"x\"]}");
    controlling_submit(&t, "{\"name\":\"x\",\"command\":[\"/bin/x\"]}");
    controlling_settle(&t);
    CHECK(store_journal(t.s.store, note_family, &f, &e) == 0 && f.n == 4);
    CHECK(f.of[0] && f.of[0] == f.of[1] && f.of[2] != f.of[0] && f.of[2] == f.of[3]);
    controlling_end(&t);
}

/* The engine tells its machine again. */
static void tell_machine(struct controlling *t, const char *traits, uint32_t cpu_milli)
{
    char name[] = "desk1", model[] = "A100", class[TRAITS_NAME_MAX + 1];
    struct event_node n = { .name = str_of(name), .model = str_of(model), .gpus = 4 };
    struct engine_event ev = { .kind = ENGINE_NODE, .t_ms = t->now_ms };
    snprintf(class, sizeof class, "%s", traits);
    n.traits = str_of(class);
    n.gpu_mem_mib = 40960;
    n.cpu_milli = cpu_milli;
    n.mem_mib = 65536;
    ev.machine.node = &n;
    ev.machine.simulated = true;
    control_engine_event(t->c, &ev);
    memset(name, 'x', sizeof name); /* it was borrowed */
    memset(model, 'x', sizeof model);
    memset(class, 'x', sizeof class);
    controlling_settle(t);
}

static struct node_view machine(struct controlling *t)
{
    struct node_view n = { 0 };
    CHECK(core_node(control_core(t->c), (node_id){ 0 }, &n));
    return n;
}

static int note_class(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    int *n = ctx;
    AUTO(arena_free) struct arena a = { 0 };
    struct event ev;
    (void)t_ms;
    if (journal_read(line, &a, &ev, e) < 0)
        return -1;
    *n += ev.kind == EVENT_NODE_TRAITS;
    return 0;
}

static int classes_told(struct controlling *t)
{
    int n = 0;
    struct err e;
    CHECK(store_journal(t->s.store, note_class, &n, &e) == 0);
    return n;
}

static void a_machine_has_another_class_at_once_and_what_runs_goes_on(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint32_t cpu_milli = machine(&t).cpu_milli;
    CHECK_STR(machine(&t).traits, "");
    uint64_t id = controlling_submit(&t, "{\"command\":[\"sleep\",\"3600\"]}");
    controlling_wait(&t, 1000);
    tell_machine(&t, "gpu-a", cpu_milli);
    CHECK_STR(machine(&t).traits, "gpu-a");
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    tell_machine(&t, "gpu-a", cpu_milli); /* the same: nothing is written */
    CHECK_INT(classes_told(&t), 1);
    tell_machine(&t, "gpu-b", 2 * cpu_milli); /* its figures come with a new journal */
    CHECK_STR(machine(&t).traits, "gpu-b");
    CHECK_INT(machine(&t).cpu_milli, 2 * cpu_milli);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    tell_machine(&t, "", 2 * cpu_milli);
    CHECK_STR(machine(&t).traits, "");
    CHECK_STR(controlling_state(&t, id), "running");
    controlling_end(&t);
}

static void nobody_fills_the_queue_for_all_others(void)
{
    static const char held[] = "{\"command\":[\"x\"],\"held\":true}";
    struct controlling t;
    controlling_begin(&t, NULL);
    controlling_kill(&t);
    t.bounds = (struct control_bounds){ .user_jobs = 3, .tenant_jobs = 5, .jobs = 100 };
    controlling_boot(&t);
    uint64_t first = controlling_submit_as(&t, "ana", "",
                                           "{\"command\":[\"x\"],\"held\":true,\"array\":\"0-2\"}");
    CHECK(first != 0);
    CHECK(controlling_submit_as(&t, "ana", "", held) == 0 && t.refused.code == ERR_QUOTA);
    CHECK_STR(t.refused.msg,
              "user ana has 3 jobs that have not ended, of at most 3; this is 1 more");
    CHECK(strstr(t.refused.hint, "jobs_per_user"));
    /* Her colleagues get in, until their tenant is full; all of a submit counts, or nothing of it. */
    CHECK(controlling_submit_as(&t, "ben", "", held) != 0);
    CHECK(controlling_submit_as(&t, "ben", "",
                                "{\"command\":[\"x\"],\"held\":true,\"array\":\"0-1\"}") == 0);
    CHECK_STR(t.refused.msg,
              "tenant vision has 4 jobs that have not ended, of at most 5; this is 2 more");
    CHECK(controlling_submit_as(&t, "ben", "", held) != 0);
    /* It is known after a restart, and what has ended makes room. */
    controlling_settle(&t);
    controlling_kill(&t);
    t.bounds.jobs = 5;
    t.bounds.tenant_jobs = 0;
    controlling_boot(&t);
    CHECK(controlling_submit_as(&t, "ana", "", held) == 0 &&
          strstr(t.refused.msg, "user ana has 3"));
    CHECK(controlling_submit_as(&t, "cleo", "", held) == 0);
    CHECK_STR(t.refused.msg,
              "the site has 5 jobs that have not ended, of at most 5; this is 1 more");
    CHECK(controlling_verb(&t, first, VERB_CANCEL) == 0);
    controlling_settle(&t);
    CHECK(controlling_submit_as(&t, "ana", "", held) != 0);
    controlling_end(&t);
}

static const struct test tests[] = {
    { "nobody fills the queue for all others", nobody_fills_the_queue_for_all_others },
    { "a job runs, and all of it is written down", a_job_runs_and_all_of_it_is_written_down },
    { "what is not said is filled in from the machine", what_is_not_said_is_filled_in },
    { "jobs that find no room wait and follow", jobs_that_find_no_room_wait_and_follow },
    { "an array is one job each index", an_array_is_one_job_each_index },
    { "a batch is taken whole or not at all", a_batch_is_taken_whole_or_not_at_all },
    { "what can never run is refused by name", what_can_never_run_is_refused_by_name },
    { "before the engine answers nothing is taken", before_the_engine_answers_nothing_is_taken },
    { "a key makes one submit of two, also on the way to the disk", a_key_makes_one_submit_of_two },
    { "watchers hear of events and of the engine", watchers_hear_of_events_and_of_the_engine },
    { "a machine is known with its GPUs", a_machine_is_known_with_its_gpus },
    { "a machine has another class at once, and what runs goes on",
      a_machine_has_another_class_at_once_and_what_runs_goes_on },
    { "a drained machine takes nothing, also after a restart",
      a_drained_machine_takes_nothing_also_after_a_restart },
    { "stopping starts nothing, and end_all ends what runs",
      stopping_starts_nothing_and_end_all_ends_all },
    { "only what runs can be attached to", only_what_runs_can_be_attached_to },
    { "the journal says which jobs are the same work",
      the_journal_says_which_jobs_are_the_same_work },
};
TEST_CASES(tests)
