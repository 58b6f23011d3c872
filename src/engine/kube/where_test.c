#include "engine/kube/where.h"

#include <stdio.h>

#include "tests/lib/quoted.h"

/* A pod's spec, and volumes: each an object as a PersistentVolume has it. */
static struct where *where_from(const char *spec, const char *volumes)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *d = quoted_json(spec);
    AUTO(json_free_p) struct json_doc *v = quoted_json(volumes ? volumes : "[]");
    struct err e = { 0 };
    struct doc doc = { .e = &e };
    const struct where *of[8], *w = where_of_pod(&doc, json_root(d), &a);
    size_t n = 0;
    DOC_EACH(one, json_root(v))
    of[n++] = where_of_volume(&doc, one, &a);
    if (doc.bad)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return where_copy(n ? where_join(w, of, n, &a) : w);
}

static struct kube_node *node_from(const char *text)
{
    AUTO(json_free_p) struct json_doc *d = quoted_json(text);
    struct err e = { 0 };
    struct kube_node *n = kube_node_read(json_root(d), NULL, &e);
    if (!n)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return n;
}

#define TERMS(list)                                                                                \
    "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"               \
    "{'nodeSelectorTerms':[" list "]}}}}"
#define EXPR(key, op, values) "{'key':'" key "','operator':'" op "','values':[" values "]}"
#define TERM(expr) "{'matchExpressions':[" expr "]}"
#define TOLERATE(list) "{'tolerations':[" list "]}"

static const char plain_node[] =
    "{'metadata':{'name':'n1','labels':{'zone':'a','gpus':'8','disk':'ssd','empty':'',"
    "'kubernetes.io/hostname':'n1'}}}";

static void labels_and_affinity_choose_nodes(void)
{
    static const struct {
        const char *spec;
        bool yes;
    } cases[] = {
        { "{}", true },
        { "{'nodeSelector':{}}", true },
        { "{'nodeSelector':null,'affinity':{},'tolerations':[]}", true },
        { "{'nodeSelector':{'zone':'a'}}", true },
        { "{'nodeSelector':{'zone':'a','disk':'ssd'}}", true },
        { "{'nodeSelector':{'zone':'a','disk':'hdd'}}", false },
        { "{'nodeSelector':{'none':''}}", false },
        { "{'nodeSelector':{'empty':''}}", true },
        { TERMS(""), false }, /* required, and nothing to choose from */
        { TERMS("{}"), false },
        { TERMS("{},{}"), false },
        { TERMS("{}," TERM(EXPR("zone", "In", "'a'"))), true },
        { TERMS(TERM(EXPR("zone", "In", "'a'")) ",{}"), true },
        { TERMS(TERM(EXPR("zone", "In", "'b','a','c'"))), true },
        { TERMS(TERM(EXPR("zone", "In", "'b','c'"))), false },
        { TERMS(TERM(EXPR("zone", "In", ""))), false },
        { TERMS(TERM(EXPR("none", "In", "'a'"))), false },
        { TERMS(TERM(EXPR("zone", "NotIn", "'b'"))), true },
        { TERMS(TERM(EXPR("zone", "NotIn", "'a','b'"))), false },
        { TERMS(TERM(EXPR("none", "NotIn", "'a'"))), true },
        { TERMS(TERM(EXPR("zone", "Exists", ""))), true },
        { TERMS(TERM(EXPR("none", "Exists", ""))), false },
        { TERMS(TERM(EXPR("none", "DoesNotExist", ""))), true },
        { TERMS(TERM(EXPR("empty", "DoesNotExist", ""))), false },
        { TERMS(TERM(EXPR("gpus", "Gt", "'7'"))), true },
        { TERMS(TERM(EXPR("gpus", "Gt", "'8'"))), false },
        { TERMS(TERM(EXPR("gpus", "Lt", "'9'"))), true },
        { TERMS(TERM(EXPR("gpus", "Lt", "'8'"))), false },
        { TERMS(TERM(EXPR("gpus", "Gt", "'-1'"))), true },
        { TERMS(TERM(EXPR("gpus", "Gt", "'x'"))), false },
        { TERMS(TERM(EXPR("zone", "Lt", "'9'"))), false },
        { TERMS(TERM(EXPR("none", "Lt", "'9'"))), false },
        { TERMS(TERM(EXPR("gpus", "Gt", "'1','2'"))), false },
        { TERMS(TERM(EXPR("zone", "In", "'a'") "," EXPR("disk", "In", "'ssd'"))), true },
        { TERMS(TERM(EXPR("zone", "In", "'a'") "," EXPR("disk", "In", "'hdd'"))), false },
        { TERMS(TERM(EXPR("zone", "In", "'b'")) "," TERM(EXPR("disk", "In", "'ssd'"))), true },
        { TERMS(TERM(EXPR("zone", "In", "'b'")) "," TERM(EXPR("disk", "In", "'hdd'"))), false },
        { TERMS("{'matchFields':[" EXPR("metadata.name", "In", "'n1'") "]}"), true },
        { TERMS("{'matchFields':[" EXPR("metadata.name", "In", "'n2'") "]}"), false },
        { TERMS("{'matchFields':[" EXPR("metadata.name", "NotIn", "'n2'") "]}"), true },
        { TERMS("{'matchExpressions':[" EXPR("zone", "In", "'a'") "],'matchFields':[" EXPR(
              "metadata.name", "In", "'n2'") "]}"),
          false },
        { "{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':"
          "[{'weight':1,'preference':{}}]}}}",
          true },
    };
    AUTO(free_p) struct kube_node *n = node_from(plain_node);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(free_p) struct where *w = where_from(cases[i].spec, NULL);
        struct where_no why = { .kind = WHERE_NO_COUNT };
        if (where_matches(w, n, &why) != cases[i].yes)
            test_fail(__FILE__, __LINE__, "%s", cases[i].spec);
        CHECK(cases[i].yes == (why.kind == WHERE_NO_COUNT));
    }
}

static void taints_keep_away_what_does_not_tolerate_them(void)
{
    static const struct {
        const char *taints, *spec;
        bool yes;
    } cases[] = {
        { "{'key':'k','value':'v','effect':'NoSchedule'}", "{}", false },
        { "{'key':'k','value':'v','effect':'NoExecute'}", "{}", false },
        { "{'key':'k','value':'v','effect':'PreferNoSchedule'}", "{}", true },
        { "{'key':'k','value':'v','effect':'NoSchedule'}",
          TOLERATE("{'key':'k','operator':'Equal','value':'v','effect':'NoSchedule'}"), true },
        { "{'key':'k','value':'v','effect':'NoSchedule'}", TOLERATE("{'key':'k','value':'v'}"),
          true },
        { "{'key':'k','value':'v','effect':'NoSchedule'}", TOLERATE("{'key':'k','value':'w'}"),
          false },
        { "{'key':'k','value':'v','effect':'NoSchedule'}",
          TOLERATE("{'key':'k','operator':'Exists'}"), true },
        { "{'key':'k','value':'v','effect':'NoSchedule'}",
          TOLERATE("{'key':'j','operator':'Exists'}"), false },
        { "{'key':'k','value':'v','effect':'NoSchedule'}",
          TOLERATE("{'key':'k','operator':'Exists','effect':'NoExecute'}"), false },
        { "{'key':'k','value':'v','effect':'NoExecute'}",
          TOLERATE("{'key':'k','operator':'Exists','effect':'NoExecute','tolerationSeconds':60}"),
          true },
        { "{'key':'k','value':'v','effect':'NoExecute'}", TOLERATE("{'operator':'Exists'}"), true },
        { "{'key':'k','value':'v','effect':'NoExecute'}",
          TOLERATE("{'operator':'Exists','effect':'NoSchedule'}"), false },
        { "{'key':'k','value':'','effect':'NoSchedule'}", TOLERATE("{'value':''}"), false },
        { "{'key':'k','effect':'NoSchedule'}", TOLERATE("{'key':'k'}"), true },
        { "{'key':'k','effect':'NoSchedule'},{'key':'j','effect':'NoSchedule'}",
          TOLERATE("{'key':'k','operator':'Exists'}"), false },
        { "{'key':'k','effect':'NoSchedule'},{'key':'j','effect':'NoSchedule'}",
          TOLERATE("{'key':'k','operator':'Exists'},{'key':'j','operator':'Exists'}"), true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(4096);
        buf_printf(&b, "{'metadata':{'name':'n'},'spec':{'taints':[%s]}}", cases[i].taints);
        AUTO(free_p) struct kube_node *n = node_from(b.p);
        AUTO(free_p) struct where *w = where_from(cases[i].spec, NULL);
        struct where_no why;
        if (where_matches(w, n, &why) != cases[i].yes)
            test_fail(__FILE__, __LINE__, "%s on %s", cases[i].spec, cases[i].taints);
        CHECK(cases[i].yes || why.kind == WHERE_NO_TAINT);
    }
}

static void a_cordoned_node_takes_only_who_tolerates_that(void)
{
    AUTO(free_p)
    struct kube_node *n = node_from("{'metadata':{'name':'n'},'spec':{'unschedulable':true}}");
    AUTO(free_p)
    struct where *other = where_from(TOLERATE("{'key':'x','operator':'Exists'}"), NULL);
    AUTO(free_p)
    struct where *daemon =
        where_from(TOLERATE("{'key':'node.kubernetes.io/unschedulable','operator':'Exists',"
                            "'effect':'NoSchedule'}"),
                   NULL);
    struct where_no why;
    CHECK(!where_matches(NULL, n, &why) && why.kind == WHERE_NO_CORDON);
    CHECK(!where_matches(other, n, &why) && why.kind == WHERE_NO_CORDON);
    CHECK(where_matches(daemon, n, &why));
}

static void a_plain_pod_asks_nothing(void)
{
    CHECK(where_from(TOLERATE("{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':"
                              "'NoExecute','tolerationSeconds':300},{'key':"
                              "'node.kubernetes.io/unreachable','operator':'Exists','effect':"
                              "'NoExecute','tolerationSeconds':300}"),
                     NULL) == NULL);
    CHECK(where_from(TOLERATE("{'key':'a','operator':'Exists','effect':'PreferNoSchedule'}"),
                     NULL) == NULL);
    AUTO(free_p)
    struct where *ever = where_from(
        TOLERATE("{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute'}"),
        NULL);
    CHECK(ever != NULL);
}

static void volumes_narrow_the_choice(void)
{
    static const char in_a[] = "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[" TERM(
        EXPR("zone", "In", "'a'")) "]}}}}";
    static const char in_b[] = "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[" TERM(
        EXPR("zone", "In", "'b'")) "]}}}}";
    AUTO(free_p) struct kube_node *n = node_from(plain_node);
    struct where_no why;
    char list[1024];
    snprintf(list, sizeof list, "[%s,{'spec':{}}]", in_a);
    AUTO(free_p) struct where *fits = where_from("{'nodeSelector':{'disk':'ssd'}}", list);
    CHECK(where_matches(fits, n, &why));
    snprintf(list, sizeof list, "[%s,%s]", in_a, in_b);
    AUTO(free_p) struct where *both = where_from("{}", list);
    CHECK(!where_matches(both, n, &why) && why.kind == WHERE_NO_VOLUME);
    CHECK_STR(why.key, "zone");
    AUTO(free_p) struct where *pod = where_from(TERMS(TERM(EXPR("disk", "In", "'hdd'"))), "[{}]");
    CHECK(!where_matches(pod, n, &why) && why.kind == WHERE_NO_AFFINITY);
    CHECK(where_from("{}", "[{},{'spec':{'nodeAffinity':null}}]") == NULL);
}

static void what_we_cannot_honour_is_refused_by_name(void)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        { "{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{}]}}}",
          "required pod affinity is not supported" },
        { "{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{}]}},"
          "'nodeSelector':{'zone':'a'}}",
          "required pod anti-affinity is not supported" },
        { "{'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'},"
          "{'whenUnsatisfiable':'DoNotSchedule'}]}",
          "topology spread with DoNotSchedule is not supported" },
        { "{'resourceClaims':[{'name':'gpu'}]}", "resource claims (DRA) are not supported" },
        { TERMS(TERM(EXPR("zone", "Near", "'a'"))),
          "node affinity with the operator 'Near' is not supported" },
        { TERMS("{'matchFields':[" EXPR("spec.x", "In", "'a'") "]}"),
          "node affinity on the field 'spec.x' is not supported" },
        { TOLERATE("{'key':'a','operator':'Gt','value':'1'}"),
          "a toleration with the operator 'Gt' is not supported" },
        { TOLERATE("{'key':'a','operator':'Exists','effect':'NoLunch'}"),
          "a toleration of the effect 'NoLunch' is not supported" },
    };
    AUTO(free_p) struct kube_node *n = node_from(plain_node);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(free_p) struct where *w = where_from(cases[i].spec, NULL);
        AUTO(free_p) struct where *joined = where_from(cases[i].spec, "[{}]");
        struct where_no why;
        char text[256];
        CHECK_STR(where_refusal(w), cases[i].says);
        CHECK(where_eq(w, joined));
        CHECK(!where_matches(w, n, &why) && why.kind == WHERE_NO_REFUSED);
        CHECK_STR(where_no_text(&why, text), cases[i].says);
    }
    AUTO(free_p)
    struct where *soft = where_from(
        "{'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{}]}},"
        "'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'}],"
        "'resourceClaims':[]}",
        NULL);
    CHECK(soft == NULL && where_refusal(soft) == NULL);
}

static void the_same_wish_is_the_same_bytes(void)
{
    AUTO(free_p) struct where *a = where_from("{'nodeSelector':{'x':'1','a':'2'}}", NULL);
    AUTO(free_p) struct where *b = where_from("{'nodeSelector':{'a':'2','x':'1'}}", NULL);
    AUTO(free_p) struct where *c = where_from("{'nodeSelector':{'a':'2','x':'2'}}", NULL);
    AUTO(free_p) struct where *d = where_from(TERMS(TERM(EXPR("k", "In", "'b','a','b'"))), NULL);
    AUTO(free_p) struct where *e = where_from(TERMS(TERM(EXPR("k", "In", "'a','b'"))), NULL);
    CHECK(where_eq(a, b) && where_hash(a) == where_hash(b));
    CHECK(!where_eq(a, c) && !where_eq(a, NULL) && where_eq(NULL, NULL));
    CHECK(where_eq(d, e) && !where_eq(a, d));
    CHECK(where_copy(NULL) == NULL && where_hash(NULL) == 0);
}

static void why_not_is_a_sentence(void)
{
    static const struct {
        struct where_no no;
        const char *text;
    } cases[] = {
        { { WHERE_NO_LABEL, "zone", "a", "" }, "it does not have the label zone=a" },
        { { WHERE_NO_AFFINITY, "zone", "", "" },
          "the pod's node affinity does not allow it (zone)" },
        { { WHERE_NO_AFFINITY, "", "", "" }, "the pod's node affinity does not allow it" },
        { { WHERE_NO_VOLUME, "zone", "", "" }, "a volume of the pod does not allow it (zone)" },
        { { WHERE_NO_CORDON, "", "", "" }, "it is cordoned" },
        { { WHERE_NO_TAINT, "k", "v", "NoExecute" }, "it has the taint k=v:NoExecute" },
        { { WHERE_NO_TAINT, "k", "", "NoSchedule" }, "it has the taint k:NoSchedule" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        CHECK_STR(where_no_text(&cases[i].no, text), cases[i].text);
        CHECK(where_no_name(cases[i].no.kind)[0]);
    }
}

static bool same_class(const char *a, const char *b, const struct label_keys *keys)
{
    AUTO(free_p) struct kube_node *x = node_from(a);
    AUTO(free_p) struct kube_node *y = node_from(b);
    AUTO(buf_free) struct buf p = BUF(4096), q = BUF(4096);
    node_class_key(x, keys, &p);
    node_class_key(y, keys, &q);
    return str_eq(buf_str(&p), buf_str(&q));
}

static void nodes_are_told_apart_by_what_somebody_asks_for(void)
{
    static const char one[] = "{'metadata':{'name':'n1','labels':{'zone':'a','x':'1'}}}";
    static const char two[] = "{'metadata':{'name':'n2','labels':{'x':'2','zone':'a'}}}";
    static const char three[] = "{'metadata':{'name':'n3','labels':{'zone':'b','x':'1'}}}";
    static const char tainted[] = "{'metadata':{'name':'n1','labels':{'zone':'a'}},'spec':{"
                                  "'taints':[{'key':'k','effect':'NoSchedule'}]}}";
    static const char cordoned[] = "{'metadata':{'name':'n1','labels':{'zone':'a'}},'spec':{"
                                   "'unschedulable':true}}";
    AUTO(label_keys_free) struct label_keys keys = { 0 };
    AUTO(free_p) struct where *zone = where_from("{'nodeSelector':{'zone':'a'}}", NULL);
    AUTO(free_p) struct where *x = where_from(TERMS(TERM(EXPR("x", "Exists", ""))), NULL);
    AUTO(free_p)
    struct where *name =
        where_from(TERMS("{'matchFields':[" EXPR("metadata.name", "In", "'n1'") "]}"), NULL);
    CHECK(same_class(one, two, &keys) && same_class(one, three, &keys));
    CHECK(!same_class(one, tainted, &keys) && !same_class(one, cordoned, &keys));
    CHECK(where_keys_add(zone, &keys) && !where_keys_add(zone, &keys));
    CHECK(same_class(one, two, &keys) && !same_class(one, three, &keys));
    CHECK(where_keys_add(x, &keys) && !where_keys_add(NULL, &keys));
    CHECK(!same_class(one, two, &keys) && same_class(one, one, &keys));
    CHECK(where_keys_add(name, &keys) && !where_keys_add(name, &keys));
    CHECK(keys.names && !same_class(one, three, &keys));
}

static const struct test tests[] = {
    { "labels and affinity choose nodes", labels_and_affinity_choose_nodes },
    { "taints keep away what does not tolerate them",
      taints_keep_away_what_does_not_tolerate_them },
    { "a cordoned node takes only who tolerates that",
      a_cordoned_node_takes_only_who_tolerates_that },
    { "a plain pod asks nothing", a_plain_pod_asks_nothing },
    { "volumes narrow the choice", volumes_narrow_the_choice },
    { "what we cannot honour is refused by name", what_we_cannot_honour_is_refused_by_name },
    { "the same wish is the same bytes", the_same_wish_is_the_same_bytes },
    { "why not is a sentence", why_not_is_a_sentence },
    { "nodes are told apart by what somebody asks for",
      nodes_are_told_apart_by_what_somebody_asks_for },
};
TEST_CASES(tests)
