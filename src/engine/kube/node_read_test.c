#include "engine/kube/node_read.h"

#include "tests/lib/quoted.h"

static struct kube_node *node_of(const char *text, const char *switch_label)
{
    AUTO(json_free_p) struct json_doc *d = quoted_json(text);
    struct err e = { 0 };
    struct kube_node *n = kube_node_read(json_root(d), switch_label, &e);
    if (!n)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return n; /* nothing of the document is needed any more */
}

static const char dgx[] =
    "{'apiVersion':'v1','kind':'Node','metadata':{'name':'dgx-03','uid':'6f2c',"
    "'creationTimestamp':'2026-01-05T08:00:00Z','resourceVersion':'1234567',"
    "'labels':{'zone':'b','kubernetes.io/hostname':'dgx-03','nightshift.dev/pool':'night',"
    "'nightshift.dev/stage':'beta','topology.kubernetes.io/rack':'r7','fabric/leaf':'leaf-2',"
    "'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-80GB','nvidia.com/gpu.memory':'81920',"
    "'nvidia.com/gpu.count':'8','nvidia.com/gpu.replicas':'1',"
    "'nvidia.com/gpu.sharing-strategy':'none','nvidia.com/mig.capable':'true',"
    "'nvidia.com/mig.strategy':'single','empty':''}},"
    "'spec':{'podCIDR':'10.1.0.0/24','taints':["
    "{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'},"
    "{'key':'a','effect':'NoExecute','timeAdded':'2026-01-05T08:00:00Z'}]},"
    "'status':{'capacity':{'cpu':'256'},'allocatable':{'cpu':'255500m','memory':'2113413120Ki',"
    "'ephemeral-storage':'1699582627075','pods':'110','nvidia.com/gpu':'8',"
    "'nvidia.com/mig-1g.10gb':'0','hugepages-2Mi':'4Gi','hugepages-1Gi':'0',"
    "'rdma/hca':'16','attachable-volumes-csi':'20','kubernetes.io/odd':'3'},"
    "'conditions':[{'type':'MemoryPressure','status':'False'},"
    "{'type':'Ready','status':'True','lastTransitionTime':'2026-01-05T08:01:00Z',"
    "'lastHeartbeatTime':null}]}}";

static void a_gpu_node_is_read(void)
{
    AUTO(free_p) struct kube_node *n = node_of(dgx, NULL);
    CHECK_STR(n->name, "dgx-03");
    CHECK_STR(n->uid, "6f2c");
    CHECK_STR(n->pool, "night");
    CHECK_STR(n->stage, "beta");
    CHECK_STR(n->net_switch, "r7");
    CHECK_INT(n->created_ms, 1767600000000);
    CHECK_INT(n->ready, KUBE_READY_YES);
    CHECK_INT(n->ready_since_ms, 1767600060000);
    CHECK(!n->unschedulable && !n->deleting);
}

static void labels_are_found_and_in_order(void)
{
    AUTO(free_p) struct kube_node *n = node_of(dgx, NULL);
    CHECK_INT(n->n_labels, 14);
    for (size_t i = 1; i < n->n_labels; i++)
        CHECK(strcmp(n->labels[i - 1].key, n->labels[i].key) < 0);
    CHECK_STR(kube_node_label(n, "zone"), "b");
    CHECK_STR(kube_node_label(n, "empty"), "");
    CHECK_STR(kube_node_label(n, "kubernetes.io/hostname"), "dgx-03");
    CHECK(kube_node_label(n, "zon") == NULL && kube_node_label(n, "") == NULL);
}

static void taints_are_in_order(void)
{
    AUTO(free_p) struct kube_node *n = node_of(dgx, NULL);
    CHECK_INT(n->n_taints, 2);
    CHECK_STR(n->taints[0].key, "a");
    CHECK_STR(n->taints[0].value, "");
    CHECK_INT(n->taints[0].effect, TAINT_NO_EXECUTE);
    CHECK_STR(n->taints[1].value, "present");
    CHECK_STR(taint_effect_name(n->taints[1].effect), "NoSchedule");
}

static void what_is_there_is_rounded_down(void)
{
    AUTO(free_p) struct kube_node *n = node_of(dgx, NULL);
    CHECK_INT(n->there.cpu_milli, 255500);
    CHECK_INT(n->there.mem_mib, 2063880);
    CHECK_INT(n->there.disk_mib, 1620848);
    CHECK_INT(n->there.pods, 110);
    CHECK_INT(n->there.n_extended, 3);
    CHECK_STR(n->there.extended[0].name, "hugepages-2Mi");
    CHECK_INT(n->there.extended[0].n, INT64_C(4) << 30);
    CHECK_INT(kube_amounts_count(&n->there, "nvidia.com/gpu"), 8);
    CHECK_INT(kube_amounts_count(&n->there, "rdma/hca"), 16);
    CHECK_INT(kube_amounts_count(&n->there, "kubernetes.io/odd"), 0);
}

static void the_switch_is_what_a_label_of_choice_says(void)
{
    AUTO(free_p) struct kube_node *leaf = node_of(dgx, "fabric/leaf");
    AUTO(free_p) struct kube_node *none = node_of(dgx, "no/such");
    CHECK_STR(leaf->net_switch, "leaf-2");
    CHECK_STR(none->net_switch, "");
}

static void a_bare_node_is_a_node(void)
{
    AUTO(free_p) struct kube_node *n = node_of("{'metadata':{'name':'n'}}", NULL);
    CHECK_INT(n->ready, KUBE_READY_UNKNOWN);
    CHECK_INT(n->there.cpu_milli, 0);
    CHECK_INT(n->n_labels + n->n_taints, 0);
    CHECK_STR(n->gpu.resource, "");
    CHECK_STR(n->pool, "");
    CHECK(kube_node_label(n, "x") == NULL);
}

static void a_node_that_is_cordoned_or_not_ready_says_so(void)
{
    AUTO(free_p)
    struct kube_node *n =
        node_of("{'metadata':{'name':'n','deletionTimestamp':'2026-01-05T08:00:00Z'},"
                "'spec':{'unschedulable':true},'status':{'conditions':["
                "{'type':'Ready','status':'False','lastTransitionTime':'2026-01-05T08:00:00Z'}]}}",
                NULL);
    AUTO(free_p)
    struct kube_node *lost =
        node_of("{'metadata':{'name':'n'},'status':{'conditions':["
                "{'type':'Ready','status':'Unknown','reason':'NodeStatusUnknown'}]}}",
                NULL);
    CHECK(n->unschedulable && n->deleting);
    CHECK_INT(n->ready, KUBE_READY_NO);
    CHECK_INT(n->ready_since_ms, 1767600000000);
    CHECK_INT(lost->ready, KUBE_READY_UNKNOWN);
}

static void gpus_of_every_vendor_are_known(void)
{
    static const struct {
        const char *labels, *allocatable;
        struct kube_gpu want;
    } cases[] = {
        { "'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-80GB','nvidia.com/gpu.memory':'81920',"
          "'nvidia.com/gpu.count':'8','nvidia.com/mig.capable':'true'",
          "'nvidia.com/gpu':'8'",
          { "nvidia.com/gpu", "A100-SXM4-80GB", "", 8, 81920, 1, 0, 0, true } },
        { "'nvidia.com/gpu.product':'Tesla-T4-SHARED','nvidia.com/gpu.memory':'15360',"
          "'nvidia.com/gpu.count':'2','nvidia.com/gpu.replicas':'4',"
          "'nvidia.com/gpu.sharing-strategy':'time-slicing'",
          "'nvidia.com/gpu':'8'",
          { "nvidia.com/gpu", "Tesla-T4", "", 2, 15360, 4, GPU_SHARING_TIME, 0, false } },
        { "'nvidia.com/gpu.product':'NVIDIA-L4-SHARED','nvidia.com/gpu.replicas':'3'",
          "'nvidia.com/gpu.shared':'12'",
          { "nvidia.com/gpu.shared", "L4", "", 4, 0, 3, GPU_SHARING_TIME, 0, false } },
        { "'nvidia.com/gpu.product':'NVIDIA-L40S','nvidia.com/gpu.replicas':'10',"
          "'nvidia.com/gpu.sharing-strategy':'mps','nvidia.com/gpu.count':'1'",
          "'nvidia.com/gpu':'10'",
          { "nvidia.com/gpu", "L40S", "", 1, 0, 10, GPU_SHARING_MPS, 0, false } },
        { "'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb','nvidia.com/gpu.memory':"
          "'4864','nvidia.com/gpu.count':'7','nvidia.com/mig.strategy':'single'",
          "'nvidia.com/gpu':'7'",
          { "nvidia.com/gpu", "A100-SXM4-40GB", "1g.5gb", 7, 4864, 1, 0, GPU_MIG_SINGLE, false } },
        { "'nvidia.com/gpu.product':'NVIDIA-H100-80GB-HBM3','nvidia.com/mig.strategy':'mixed',"
          "'nvidia.com/mig.capable':'true','nvidia.com/gpu.count':'8'",
          "'nvidia.com/mig-1g.10gb':'7'",
          { "nvidia.com/gpu", "H100-80GB-HBM3", "", 8, 0, 1, 0, GPU_MIG_MIXED, true } },
        { "'other':'x'",
          "'nvidia.com/gpu':'2'",
          { "nvidia.com/gpu", "", "", 2, 0, 1, 0, 0, false } },
        { "'amd.com/gpu.product-name':'AMD_Instinct_MI300X_OAM','amd.com/gpu.vram':'192G'",
          "'amd.com/gpu':'8'",
          { "amd.com/gpu", "Instinct_MI300X_OAM", "", 8, 196608, 1, 0, 0, false } },
        { "'gpu.intel.com/product':'Max_1550','gpu.intel.com/memory.max':'274877906944'",
          "'gpu.intel.com/i915':'2'",
          { "gpu.intel.com/i915", "Max_1550", "", 2, 131072, 1, 0, 0, false } },
        { "'other':'x'", "'cpu':'4'", { "", "", "", 0, 0, 1, 0, 0, false } },
        { "'nvidia.com/gpu.product':'NVIDIA-','nvidia.com/gpu.memory':'lots',"
          "'nvidia.com/gpu.count':'99999999999999999999'",
          "'nvidia.com/gpu':'1'",
          { "nvidia.com/gpu", "NVIDIA-", "", 1, 0, 1, 0, 0, false } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(4096);
        buf_printf(&b, "{'metadata':{'name':'n','labels':{%s}},'status':{'allocatable':{%s}}}",
                   cases[i].labels, cases[i].allocatable);
        AUTO(free_p) struct kube_node *n = node_of(b.p, NULL);
        CHECK_STR(n->gpu.resource, cases[i].want.resource);
        CHECK_STR(n->gpu.model, cases[i].want.model);
        CHECK_STR(n->gpu.slice, cases[i].want.slice);
        CHECK_INT(n->gpu.count, cases[i].want.count);
        CHECK_INT(n->gpu.mem_mib, cases[i].want.mem_mib);
        CHECK_INT(n->gpu.replicas, cases[i].want.replicas);
        CHECK_INT(n->gpu.sharing, cases[i].want.sharing);
        CHECK_INT(n->gpu.mig, cases[i].want.mig);
        CHECK_INT(n->gpu.mig_capable, cases[i].want.mig_capable);
    }
}

static void what_is_no_node_is_refused_by_its_field(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "{}", "no name" },
        { "[]", "no name" },
        { "{'metadata':[]}", "metadata" },
        { "{'metadata':{'name':5}}", "name" },
        { "{'metadata':{'name':'a\\u0000b'}}", "control" },
        { "{'metadata':{'name':'n','labels':{'a':1}}}", "a" },
        { "{'metadata':{'name':'n','labels':{'a':'x\\ny'}}}", "control" },
        { "{'metadata':{'name':'n','labels':{'a\\u0000':'x'}}}", "label" },
        { "{'metadata':{'name':'n'},'spec':{'taints':{}}}", "taints" },
        { "{'metadata':{'name':'n'},'spec':{'taints':[{'key':'a','effect':'Maybe'}]}}", "Maybe" },
        { "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'many'}}}", "cpu" },
        { "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'-1'}}}", "below zero" },
        { "{'metadata':{'name':'n','creationTimestamp':'yesterday'}}", "creationTimestamp" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(json_free_p) struct json_doc *d = quoted_json(cases[i].text);
        struct err e = { 0 };
        CHECK(kube_node_read(json_root(d), NULL, &e) == NULL);
        CHECK(e.code == ERR_INVALID && strstr(e.msg, cases[i].says));
    }
}

static struct kube_node *with_resources(size_t n, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1 << 16);
    buf_addz(&b, "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'1'");
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, ",'example.com/r%zu':'1'", i);
    buf_addz(&b, "}}}");
    AUTO(json_free_p) struct json_doc *d = quoted_json(b.p);
    return kube_node_read(json_root(d), NULL, e);
}

static void extended_resources_are_bounded(void)
{
    struct err e = { 0 };
    AUTO(free_p) struct kube_node *n = with_resources(EXTENDED_MAX, &e);
    CHECK(n && n->there.n_extended == EXTENDED_MAX);
    CHECK(with_resources(EXTENDED_MAX + 1, &e) == NULL);
    CHECK(with_resources(500, &e) == NULL);
    CHECK(strstr(e.msg, "node 'n'"));
}

static const struct test tests[] = {
    { "a GPU node is read", a_gpu_node_is_read },
    { "labels are found and in order", labels_are_found_and_in_order },
    { "taints are in order", taints_are_in_order },
    { "what is there is rounded down", what_is_there_is_rounded_down },
    { "the switch is what a label of choice says", the_switch_is_what_a_label_of_choice_says },
    { "a bare node is a node", a_bare_node_is_a_node },
    { "a node that is cordoned or not ready says so",
      a_node_that_is_cordoned_or_not_ready_says_so },
    { "GPUs of every vendor are known", gpus_of_every_vendor_are_known },
    { "what is no node is refused by its field", what_is_no_node_is_refused_by_its_field },
    { "extended resources are bounded", extended_resources_are_bounded },
};
TEST_CASES(tests)
