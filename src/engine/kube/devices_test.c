#include "engine/kube/devices.h"

#include "tests/lib/quoted.h"

#define GPU "nvidia.com/gpu"

/* Labels and allocatable as inner texts of a node. */
static struct kube_node *node_of(const char *labels, const char *there)
{
    AUTO(buf_free) struct buf text = BUF(8192);
    struct err e = { 0 };
    buf_printf(&text,
               "{'metadata':{'name':'n','labels':{%s}},'status':{'allocatable':{'cpu':'8',%s}}}",
               labels, there);
    AUTO(json_free_p) struct json_doc *d = quoted_json(buf_str(&text).p);
    struct kube_node *n = kube_node_read(json_root(d), NULL, &e);
    if (!n)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return n;
}

static void check_devices(const char *labels, const char *there, const char *want)
{
    AUTO(free_p) struct kube_node *n = node_of(labels, there);
    AUTO(buf_free) struct buf out = BUF(DEVICES_TEXT_MAX);
    struct takens none = { 0 };
    node_devices(n, GPU, 0, &none, &out);
    CHECK_STR(buf_str(&out).p, want);
}

static void extended_resources_of_a_node_are_devices(void)
{
    check_devices("", "'nvidia.com/gpu':'8','hugepages-2Mi':'1Gi','kubernetes.io/x':'3'", "");
    check_devices("", "'rdma/hca':'16','nvidia.com/gpu':'8','smarter/fuse':'1k'",
                  "rdma/hca=16,smarter/fuse=1000");
    check_devices("", "'x/many':'1M'", "x/many=65535");
}

static void slices_and_shares_are_worth_their_part(void)
{
    check_devices("'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-40GB'",
                  "'nvidia.com/mig-1g.5gb':'7','nvidia.com/mig-3g.20gb':'2',"
                  "'nvidia.com/mig-7g.40gb':'1'",
                  "nvidia.com/mig-1g.5gb=7@142,nvidia.com/mig-3g.20gb=2@428,"
                  "nvidia.com/mig-7g.40gb=1@1000");
    check_devices("'nvidia.com/gpu.product':'NVIDIA-A30'", "'nvidia.com/mig-2g.12gb':'2'",
                  "nvidia.com/mig-2g.12gb=2@500");
    check_devices("'nvidia.com/gpu.product':'NVIDIA-L4-SHARED','nvidia.com/gpu.replicas':'4',"
                  "'nvidia.com/gpu.sharing-strategy':'time-slicing','nvidia.com/gpu.count':'1'",
                  "'nvidia.com/gpu.shared':'4'", "nvidia.com/gpu.shared=4@250");
    check_devices("", "'nvidia.com/mig-odd':'1','nvidia.com/mig-0g.1gb':'1'",
                  "nvidia.com/mig-0g.1gb=1,nvidia.com/mig-odd=1");
}

/* Eight GPUs in ten shares each, under the name of whole ones. */
static void more_gpus_than_a_machine_may_have_are_devices(void)
{
    const char *labels = "'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-40GB-SHARED',"
                         "'nvidia.com/gpu.replicas':'10','nvidia.com/gpu.count':'8',"
                         "'nvidia.com/gpu.sharing-strategy':'time-slicing'";
    AUTO(free_p) struct kube_node *n = node_of(labels, "'nvidia.com/gpu':'80'");
    AUTO(buf_free) struct buf out = BUF(DEVICES_TEXT_MAX);
    struct takens none = { 0 };
    CHECK(node_shares_gpus(n, GPU));
    node_devices(n, GPU, 30, &none, &out);
    CHECK_STR(buf_str(&out).p, "nvidia.com/gpu=50@100");
    check_devices("'nvidia.com/gpu.count':'2'", "'nvidia.com/gpu':'20'", "nvidia.com/gpu=20@100");
    check_devices("'nvidia.com/gpu.count':'2'", "'nvidia.com/gpu':'16'", "");
}

static void what_others_take_is_not_there(void)
{
    AUTO(free_p) struct kube_node *n = node_of("", "'a/x':'4','b/y':'2','c/z':'1'");
    AUTO(buf_free) struct buf out = BUF(DEVICES_TEXT_MAX);
    struct takens t = { 0 };
    takens_move(&t, STR("a/x"), 3, true);
    takens_move(&t, STR("b/y"), 1, true);
    takens_move(&t, STR("b/y"), 1, true);
    takens_move(&t, STR("c/z"), 1, true);
    takens_move(&t, STR("c/z"), 1, false);
    takens_move(&t, STR("d/none"), 1, false);
    CHECK_INT(t.n, 2);
    node_devices(n, GPU, 0, &t, &out);
    CHECK_STR(buf_str(&out).p, "a/x=1,c/z=1");
    free(t.at);
}

static void of_too_many_kinds_those_that_are_worth_something_stay(void)
{
    check_devices("",
                  "'a/1':'1','a/2':'1','a/3':'1','a/4':'1','a/5':'1','a/6':'1','a/7':'1',"
                  "'a/8':'1','nvidia.com/mig-1g.5gb':'7'",
                  "a/1=1,a/2=1,a/3=1,a/4=1,a/5=1,a/6=1,a/7=1,nvidia.com/mig-1g.5gb=7@142");
}

static int asked(const char *requests, struct buf *out, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *doc = quoted_json(requests);
    struct doc d = { .e = e };
    struct amount_list list = { 0 };
    amount_list_read(&d, json_root(doc), &list);
    struct kube_amounts m = kube_amounts_of(&d, &list, true, &a);
    CHECK(!d.bad);
    return pod_devices(&m, GPU, out, e);
}

static void what_a_pod_asks_for_is_devices_or_refused(void)
{
    AUTO(buf_free) struct buf out = BUF(DEVICES_TEXT_MAX);
    struct err e = { 0 };
    CHECK_INT(asked("{'cpu':'1','nvidia.com/gpu':'1'}", &out, &e), 0);
    CHECK_STR(buf_str(&out).p, "");
    CHECK_INT(asked("{'rdma/hca':'2','nvidia.com/mig-1g.5gb':'1'}", &out, &e), 0);
    CHECK_STR(buf_str(&out).p, "nvidia.com/mig-1g.5gb=1,rdma/hca=2");
    buf_truncate(&out, 0);
    CHECK(asked("{'hugepages-2Mi':'4Mi','a/b':'1'}", &out, &e) < 0);
    CHECK_STR(e.msg, "it asks for hugepages-2Mi, which is not counted here");
    CHECK_STR(buf_str(&out).p, "a/b=1");
    buf_truncate(&out, 0);
    CHECK(asked("{'a/1':1,'a/2':1,'a/3':1,'a/4':1,'a/5':1,'a/6':1,'a/7':1,'a/8':1,'a/9':1}", &out,
                &e) < 0);
    CHECK_STR(e.msg, "it asks for more than 8 kinds of devices");
}

static void members_of_a_gang_have_the_larger_of_each(void)
{
    static const struct {
        const char *a, *b, *both;
    } of[] = {
        { "", "", "" },
        { "a/x=1", "", "a/x=1" },
        { "", "a/x=1", "a/x=1" },
        { "a/x=1,c/z=5", "a/x=2,b/y=1,c/z=3", "a/x=2,b/y=1,c/z=5" },
    };
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        AUTO(buf_free) struct buf out = BUF(DEVICES_TEXT_MAX);
        devices_join(str_of(of[i].a), str_of(of[i].b), &out);
        CHECK_STR(buf_str(&out).p, of[i].both);
    }
}

static const struct test tests[] = {
    { "extended resources of a node are devices", extended_resources_of_a_node_are_devices },
    { "slices and shares are worth their part", slices_and_shares_are_worth_their_part },
    { "more GPUs than a machine may have are devices",
      more_gpus_than_a_machine_may_have_are_devices },
    { "what others take is not there", what_others_take_is_not_there },
    { "of too many kinds those that are worth something stay",
      of_too_many_kinds_those_that_are_worth_something_stay },
    { "what a pod asks for is devices, or refused", what_a_pod_asks_for_is_devices_or_refused },
    { "members of a gang have the larger of each", members_of_a_gang_have_the_larger_of_each },
};
TEST_CASES(tests)
