#include "core/device.h"

#include <stdio.h>

#include "core/core.h"
#include "tests/lib/test.h"

static struct event_node node(const char *name, const char *devices)
{
    return (struct event_node){
        .name = str_of(name), .cpu_milli = 8000, .mem_mib = 32768, .devices = str_of(devices)
    };
}

static void texts_are_checked(void)
{
    static const char *const good[] = { "", "a/b=1", "a/b=1,a/c=65535@1000",
                                        "nvidia.com/gpu=40@250" };
    static const char *const bad[] = {
        "a",       "a=0",     "a=x",   "=1",       "a=1,", "a=65536",
        "b=1,a=1", "a=1,a=1", "a b=1", "a=1@1001", "a=1@", "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1"
    };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK_INT(devices_check(str_of(good[i]), &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (devices_check(str_of(bad[i]), &e) == 0)
            test_fail(__FILE__, __LINE__, "'%s' is taken", bad[i]);
}

static void a_request_names_what_machines_have(void)
{
    struct cluster c;
    struct err e;
    struct request r = { .replicas = 1 };
    AUTO(arena_free) struct arena a = { 0 };
    cluster_init(&c);
    struct event_node n = node("n0", "x/mig-1g=7@143,x/nic=2");
    CHECK_INT(cluster_add_node(&c, &n, &e), 0);
    n = node("n1", "x/mig-1g=3@250");
    CHECK_INT(cluster_add_node(&c, &n, &e), 0);
    CHECK_INT(cluster_parse_devices(&c, STR("x/mig-1g=2,x/nic=1"), &r, &e), 0);
    CHECK_STR(cluster_devices_text(&c, &r, &a).p, "x/mig-1g=2,x/nic=1");
    CHECK_INT(devices_worth_milli(&c, &r), 500); /* the most that was said */
    CHECK(cluster_parse_devices(&c, STR("x/none=1"), &r, &e) < 0);
    CHECK_STR(e.msg, "devices: no machine has 'x/none'");
    CHECK_STR(cluster_devices_text(&c, &r, &a).p, "x/mig-1g=2,x/nic=1");
    cluster_free(&c);
}

static void names_are_bounded(void)
{
    struct cluster c;
    struct err e;
    char name[16], text[32];
    cluster_init(&c);
    for (int i = 0; i < DEVICES_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        snprintf(text, sizeof text, "x/d%d=1", i);
        struct event_node n = node(name, text);
        CHECK_INT(cluster_add_node(&c, &n, &e), 0);
    }
    struct event_node n = node("more", "x/more=1");
    CHECK(cluster_add_node(&c, &n, &e) < 0);
    n = node("same", "x/d7=3");
    CHECK_INT(cluster_add_node(&c, &n, &e), 0);
    cluster_free(&c);
}

static void replicas_take_devices_out_of_a_room(void)
{
    struct cluster c;
    struct err e;
    struct request r = { .replicas = 1, .cpu_milli = 1000 };
    cluster_init(&c);
    struct event_node n = node("n0", "x/mig-1g=7,x/nic=2");
    CHECK_INT(cluster_add_node(&c, &n, &e), 0);
    CHECK_INT(cluster_parse_devices(&c, STR("x/mig-1g=2,x/nic=1"), &r, &e), 0);
    const struct kind *k = &c.kind[c.node[0].kind];
    struct room m = kind_room(k);
    CHECK_INT(room_replicas(k, &m, &r, 8), 2);
    room_take(k, &m, &r, 0, 0);
    CHECK_INT(m.device[0], 5);
    CHECK_INT(m.device[1], 1);
    CHECK_INT(room_replicas(k, &m, &r, 8), 1);
    room_give(k, &m, &r, 0, 0);
    CHECK_INT(room_replicas(k, &m, &r, 8), 2);
    r.device_n[1] = 3;
    CHECK(!kind_allows(k, &r));
    CHECK_INT(devices_short(&c, &r, false), 1);
    cluster_free(&c);
}

/* ---- in the core ---- */

static struct core *two_machines(void)
{
    struct core *c = core_new();
    struct err e;
    struct event t = { .kind = EVENT_TENANT };
    t.tenant = (struct event_tenant){ .name = STR("t"),
                                      .weight_milli = 1000,
                                      .limit = AMOUNTS_NO_LIMIT,
                                      .user_limit = AMOUNTS_NO_LIMIT };
    t.tenant.limit.of[RES_GPU] = 1000;
    CHECK_INT(core_apply(c, &t, &e), 0);
    struct event ev = { .kind = EVENT_NODE, .node = node("n0", "x/mig-1g=3@200") };
    CHECK_INT(core_apply(c, &ev, &e), 0);
    ev.node = node("n1", "x/mig-1g=2@200,x/nic=1");
    CHECK_INT(core_apply(c, &ev, &e), 0);
    return c;
}

static int submit(struct core *c, uint64_t id, const char *devices, uint32_t replicas,
                  struct err *e)
{
    struct event ev = { .t_ms = 1000, .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){ .id = { id },
                                       .tenant = STR("t"),
                                       .user = STR("u"),
                                       .devices = str_of(devices),
                                       .request = { .replicas = replicas, .cpu_milli = 1000 } };
    return core_apply(c, &ev, e);
}

static size_t pass(struct core *c)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct plan p;
    core_pass(c, 1000, &a, &p);
    return p.n;
}

static void gangs_have_their_devices_or_nothing(void)
{
    AUTO(core_free_p) struct core *c = two_machines();
    struct err e;
    struct node_view v;
    CHECK_INT(submit(c, 1, "x/mig-1g=2", 2, &e), 0);
    CHECK_INT(submit(c, 2, "x/mig-1g=2", 2, &e), 0);
    CHECK_INT(pass(c), 1);
    CHECK(core_node(c, (node_id){ 0 }, &v));
    CHECK_STR(v.devices, "x/mig-1g=3@200");
    CHECK_INT(v.device_free[0], 1);
    CHECK(core_node(c, (node_id){ 1 }, &v));
    CHECK_INT(v.device_free[0], 0);
    CHECK_INT(v.device_free[1], 1);
    CHECK_INT(core_audit(c, &e), 0);
}

static void what_is_not_there_is_refused_and_what_is_busy_is_named(void)
{
    AUTO(core_free_p) struct core *c = two_machines();
    struct err e;
    struct explanation x;
    CHECK(submit(c, 1, "x/mig-1g=4", 1, &e) < 0);
    CHECK_STR(e.msg, "job 1: devices: 4 of x/mig-1g on one machine; the largest has 3");
    CHECK(submit(c, 1, "x/mig-1g=3,x/nic=1", 1, &e) < 0);
    CHECK(submit(c, 1, "x/odd=1", 1, &e) < 0);
    CHECK_INT(submit(c, 1, "x/nic=1", 1, &e), 0);
    CHECK_INT(submit(c, 2, "x/nic=1", 1, &e), 0);
    CHECK_INT(pass(c), 1);
    CHECK_INT(core_explain(c, (job_id){ 2 }, 1000, &x, &e), 0);
    CHECK_INT(x.n, 1);
    CHECK_INT(x.line[0].why, WHY_DEVICE_BUSY);
    CHECK_STR(x.line[0].text, "needs 1 of x/nic; the largest machine has 0 free");
}

/* Five slices of a fifth each are one GPU. */
static void limits_count_what_devices_are_worth(void)
{
    AUTO(core_free_p) struct core *c = two_machines();
    struct err e;
    struct share_view s;
    CHECK(submit(c, 1, "x/mig-1g=2", 3, &e) < 0);
    CHECK_INT(submit(c, 1, "x/mig-1g=3", 1, &e), 0);
    CHECK_INT(pass(c), 1);
    CHECK(core_share(c, (share_id){ 1 }, 1000, &s));
    CHECK_INT(s.used.of[RES_GPU], 600);
    CHECK(s.cost_milli >= 600);
}

static const struct test tests[] = {
    { "texts are checked", texts_are_checked },
    { "a request names what machines have", a_request_names_what_machines_have },
    { "names are bounded", names_are_bounded },
    { "replicas take devices out of a room", replicas_take_devices_out_of_a_room },
    { "gangs have their devices or nothing", gangs_have_their_devices_or_nothing },
    { "what is not there is refused and what is busy is named",
      what_is_not_there_is_refused_and_what_is_busy_is_named },
    { "limits count what devices are worth", limits_count_what_devices_are_worth },
};
TEST_CASES(tests)
