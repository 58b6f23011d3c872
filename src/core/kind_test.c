/* Machines that change while they work. */
#include "tests/lib/small.h"

static struct event change(const char *name, uint32_t gpus, uint32_t cpu_milli)
{
    struct event ev = node_event(name, "m", gpus);
    ev.kind = EVENT_NODE_CHANGE;
    ev.node.cpu_milli = cpu_milli;
    return ev;
}

static struct small begin(uint32_t gpus)
{
    struct small s = small_new();
    small_tenant(&s, "t");
    small_node(&s, "n0", gpus);
    return s;
}

static struct node_view seen(const struct small *s)
{
    struct node_view v = { 0 };
    CHECK(core_node(s->c, (node_id){ 0 }, &v));
    return v;
}

static void whole(const struct small *s)
{
    struct err e;
    if (core_audit(s->c, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
}

static void one_that_has_more_takes_what_waits(void)
{
    AUTO(small_free) struct small s = begin(2);
    small_gpus(&s, "t", 2);
    CHECK_INT(small_pass(&s), 1);
    uint64_t second = small_gpus(&s, "t", 1);
    CHECK_INT(small_pass(&s), 0);
    small_apply(&s, change("n0", 4, 32000));
    whole(&s);
    CHECK_INT(core_totals(s.c).total.of[RES_GPU], 4000);
    CHECK_INT(small_pass(&s), 1);
    CHECK(small_started(&s, second));
    CHECK_INT(seen(&s).cpu_free_milli, 32000);
    whole(&s);
}

static void what_is_in_use_does_not_go(void)
{
    AUTO(small_free) struct small s = begin(4);
    struct err e;
    uint64_t job = small_submit(
        &s, "t", (struct request){ .replicas = 1, .gpus = 2, .cpu_milli = 8000, .mem_mib = 1024 });
    CHECK_INT(small_pass(&s), 1);
    const struct event less[] = { change("n0", 1, 16000), change("n0", 4, 7999),
                                  change("n0", 0, 16000) };
    for (size_t i = 0; i < ARRAY_LEN(less); i++) {
        CHECK(small_try(&s, less[i], &e) < 0 && e.code == ERR_CONFLICT);
        CHECK_INT(seen(&s).gpus, 4);
        CHECK_INT(seen(&s).cpu_milli, 16000);
    }
    struct event other = change("n0", 4, 16000);
    other.node.model = STR("other");
    CHECK(small_try(&s, other, &e) < 0 && e.code == ERR_CONFLICT);
    other.node.name = STR("n1");
    CHECK(small_try(&s, other, &e) < 0 && e.code == ERR_NOT_FOUND);
    small_apply(&s, change("n0", 2, 8000)); /* just that much */
    whole(&s);
    CHECK_INT(seen(&s).cpu_free_milli, 0);
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_EXITED_OK);
    CHECK_INT(seen(&s).cpu_free_milli, 8000);
    small_apply(&s, change("n0", 0, 1000));
    CHECK_INT(seen(&s).gpus, 0);
    CHECK_INT(core_totals(s.c).total.of[RES_GPU], 0);
    whole(&s);
}

static void devices_in_use_keep_their_names(void)
{
    AUTO(small_free) struct small s = small_new();
    struct err e;
    struct event ev = node_event("n0", "m", 0);
    small_tenant(&s, "t");
    ev.node.devices = STR("x/nic=2");
    small_apply(&s, ev);
    ev = submit_event(&s, "t", (struct request){ .replicas = 1 });
    ev.submit.devices = STR("x/nic=1");
    small_apply(&s, ev);
    CHECK_INT(small_pass(&s), 1);
    ev = change("n0", 0, 16000);
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_CONFLICT);
    ev.node.devices = STR("x/mig=7,x/nic=3"); /* another one comes before it */
    small_apply(&s, ev);
    CHECK_INT(seen(&s).device_free[0], 7);
    CHECK_INT(seen(&s).device_free[1], 2);
    whole(&s);
    small_job(&s, 1, JOB_EV_STARTED);
    small_job(&s, 1, JOB_EV_EXITED_OK);
    CHECK_INT(seen(&s).device_free[1], 3);
    whole(&s);
}

/* What others take of a thousand machines makes no kinds without end. */
static void kinds_without_a_machine_give_their_place(void)
{
    AUTO(small_free) struct small s = begin(2);
    struct err e;
    for (uint32_t i = 0; i < 1000; i++)
        small_apply(&s, change("n0", 2, 16000 + i));
    CHECK(small_try(&s,
                    submit_event(&s, "t", (struct request){ .replicas = 1, .cpu_milli = 17000 }),
                    &e) < 0);
    CHECK_STR(e.msg, "job 1: cpus: 17 on one machine; the largest has 16.999");
    CHECK_INT(small_gpus(&s, "t", 2), 1);
    CHECK_INT(small_pass(&s), 1);
    whole(&s);
}

static const struct test tests[] = {
    { "one that has more takes what waits", one_that_has_more_takes_what_waits },
    { "what is in use does not go", what_is_in_use_does_not_go },
    { "devices in use keep their names", devices_in_use_keep_their_names },
    { "kinds without a machine give their place", kinds_without_a_machine_give_their_place },
};
TEST_CASES(tests)
