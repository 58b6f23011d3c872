#include "simulate/whatif.h"

#include "simulate/replay.h"
#include "tests/lib/test.h"

static struct trace lab(void)
{
    struct trace t = { 0 };
    struct err e;
    CHECK(trace_make_lab(1, 2, false, &t, &e) == 0);
    return t;
}

static void changed(struct trace *t, const char *change)
{
    struct err e = { 0 };
    if (whatif_apply(t, change, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", change, e.msg);
}

static void refused(const char *change, const char *says, const char *hint)
{
    AUTO(trace_free) struct trace t = lab();
    struct err e = { 0 };
    CHECK(whatif_apply(&t, change, &e) == -1 && e.code == ERR_INVALID);
    if (!strstr(e.msg, says) || !strstr(e.hint, hint))
        test_fail(__FILE__, __LINE__, "%s: %s; %s", change, e.msg, e.hint);
}

static const struct trace_tenant *tenant(const struct trace *t, const char *name)
{
    for (uint32_t i = 0; i < t->tenants; i++)
        if (strcmp(t->tenant[i].name, name) == 0)
            return &t->tenant[i];
    test_fail(__FILE__, __LINE__, "no tenant %s", name);
    return NULL;
}

static void machines_are_added_by_model_and_by_name(void)
{
    AUTO(trace_free) struct trace t = lab();
    uint32_t nodes = t.nodes;
    changed(&t, "nodes+=2*rtx4090");
    changed(&t, "nodes+=desk01");
    changed(&t, "nodes+=1*desk01");
    CHECK_INT(t.nodes, nodes + 4);
    CHECK(str_is(t.node[nodes].model, "RTX 4090") && str_is(t.node[nodes + 2].name, "desk01+1"));
    CHECK(str_is(t.node[nodes + 3].name, "desk01+2") && t.node[nodes + 3].gpus == t.node[0].gpus);
}

static void machines_are_removed(void)
{
    AUTO(trace_free) struct trace t = lab();
    uint32_t nodes = t.nodes;
    changed(&t, "nodes-=desk03");
    changed(&t, "nodes-=2*RTX_4090");
    CHECK_INT(t.nodes, nodes - 3);
    for (uint32_t i = 0; i < t.nodes; i++)
        CHECK(!str_is(t.node[i].name, "desk03"));
}

static void tenants_get_other_rights(void)
{
    AUTO(trace_free) struct trace t = lab();
    changed(&t, "weight:vision=3.5");
    changed(&t, "guarantee:vision=4");
    changed(&t, "limit:guests.gpus=2");
    changed(&t, "limit:vision.memory=16Gi");
    CHECK_INT(tenant(&t, "vision")->weight_milli, 3500);
    CHECK_INT(tenant(&t, "vision")->guarantee_milli, 4000);
    CHECK_INT(tenant(&t, "guests")->limit.of[RES_GPU], 2000);
    CHECK_INT(tenant(&t, "vision")->limit.of[RES_MEM], 16384);
    changed(&t, "limit:guests.gpus=none");
    CHECK(tenant(&t, "guests")->limit.of[RES_GPU] == NO_LIMIT);
}

static void numbers_of_the_policy_are_set_once(void)
{
    AUTO(trace_free) struct trace t = lab();
    changed(&t, "half-life=3d");
    changed(&t, "no-preemption");
    changed(&t, "set:half_life_ms=86400000");
    CHECK_INT(t.sets, 2);
    CHECK_INT(t.set[0].value, 86400000);
    CHECK_STR(t.set[1].key->name, "take_back");
    CHECK_INT(t.set[1].value, 0);
}

static void load_repeats_and_leaves_out(void)
{
    AUTO(trace_free) struct trace half = lab(), more = lab();
    uint32_t jobs = half.jobs;
    changed(&half, "load=0.5");
    changed(&more, "load=2.2");
    CHECK(half.jobs > jobs / 3 && half.jobs < jobs * 2 / 3);
    CHECK(more.jobs > jobs * 2 && more.jobs < jobs * 5 / 2);
}

static void what_does_not_fit_says_what_does(void)
{
    refused("more-gpus", "'more-gpus' is no change", "nodes+=[N*]WHAT");
    refused("no-preemption=1", "is no change", "no-preemption");
    refused("nodes+=2*h100", "no machine 'h100'", "RTX 4090");
    refused("nodes-=9*desk01", "only 1 machines", "");
    refused("weight:nobody=2", "no tenant 'nobody'", "vision");
    refused("weight:vision=0", "above 0", "");
    refused("limit:guests=2", "names no resource", "limit:guests.gpus=2");
    refused("half-life=1s", "must lie between", "by default");
    refused("set:half_live_ms=1d", "no number", "half_life_ms");
    refused("window:desks=Mon-Sun 18:00-08:00", "there is no pool 'desks'", "lab --lend");
    refused("window:desks=18:00-08:00", "calendar, part 1", "");
    refused("window:desks", "is not POOL=TEXT", "");
    refused("load=0", "no job would be left", "");
}

/* The world as it was stays as it was. */
static void a_copy_is_changed_alone(void)
{
    AUTO(trace_free) struct trace t = lab(), copy = { 0 };
    uint32_t nodes = t.nodes, weight = tenant(&t, "vision")->weight_milli, jobs = t.jobs;
    trace_copy(&t, &copy);
    changed(&copy, "nodes+=3*desk01");
    changed(&copy, "weight:vision=9");
    changed(&copy, "load=0.2");
    CHECK(t.nodes == nodes && t.jobs == jobs && tenant(&t, "vision")->weight_milli == weight);
    CHECK(!t.changed && copy.changed);
}

static struct report lent_figures(const char *change)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    struct report r = { 0 };
    struct outcome jobs = { 0 };
    struct err e;
    CHECK(trace_make_lab(1, 3, true, &t, &e) == 0);
    if (change)
        changed(&t, change);
    CHECK(replay_run(&t, &o, &r, &jobs, &e) == 0);
    return r;
}

static void machines_are_lent_at_other_times(void)
{
    struct report as_is = lent_figures(NULL), always = lent_figures("window:desks="),
                  less = lent_figures("window:desks=zone=UTC; Sat-Sun 00:00-24:00");
    CHECK(always.avg_queue_s < as_is.avg_queue_s && less.avg_queue_s > as_is.avg_queue_s);
    CHECK(as_is.outside_window_s == 0 && always.outside_window_s == 0 && less.harvest == 0);
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(trace_make_lab(1, 1, true, &t, &e) == 0);
    changed(&t, "window:desks=zone=UTC; Sat-Sun 00:00-24:00");
    CHECK_STR(t.window[0].calendar, "zone=UTC0; Sat-Sun 00:00-24:00");
    CHECK(whatif_apply(&t, "window:desk=", &e) < 0);
    CHECK_STR(e.hint, "there are: desks");
}

static void a_job_that_fits_no_more_is_unfinished(void)
{
    AUTO(trace_free) struct trace t = lab();
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    struct report r;
    struct outcome jobs;
    struct err e;
    changed(&t, "nodes-=gpusrv");
    CHECK(replay_run(&t, &o, &r, &jobs, &e) == 0);
    CHECK(r.unfinished > 0 && r.unfinished < r.jobs);
}

static void a_change_has_words(void)
{
    static const char *const words[][2] = {
        { "nodes+=2*rtx4090", "there were 2 more machines like rtx4090" },
        { "nodes-=desk3", "there were 1 fewer machines like desk3" },
        { "weight:vision=3", "vision had the weight 3" },
        { "load=1.2", "there were 1.2 times as many jobs" },
        { "no-preemption", "no job were frozen for another" },
        { "half-life=3d", "use counted half after 3d" },
        { "window:desks=Sat-Sun 00:00-24:00",
          "the machines of desks were lent Sat-Sun 00:00-24:00" },
        { "window:desks=", "the machines of desks were lent always" },
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        AUTO(buf_free) struct buf b = BUF(1024);
        whatif_words(words[i][0], &b);
        CHECK_STR(buf_str(&b).p, words[i][1]);
    }
}

static const struct test tests[] = {
    { "a change has words", a_change_has_words },
    { "machines are added by model and by name", machines_are_added_by_model_and_by_name },
    { "machines are removed", machines_are_removed },
    { "tenants get other rights", tenants_get_other_rights },
    { "numbers of the policy are set once", numbers_of_the_policy_are_set_once },
    { "load repeats and leaves out", load_repeats_and_leaves_out },
    { "what does not fit says what does", what_does_not_fit_says_what_does },
    { "machines are lent at other times", machines_are_lent_at_other_times },
    { "a copy is changed alone", a_copy_is_changed_alone },
    { "a job that fits no more is unfinished", a_job_that_fits_no_more_is_unfinished },
};
TEST_CASES(tests)
