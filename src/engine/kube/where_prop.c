/* Nodes of one class are the same to every where, on generated nodes and wheres. */
#include "base/rng.h"
#include "engine/kube/where.h"
#include "tests/lib/quoted.h"

#define NODES 8
#define WHERES 4

static const char *const ops[] = { "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt" };
static const char *const effects[] = { "NoSchedule", "NoExecute", "PreferNoSchedule" };

static void add_node(struct rng *r, struct buf *b, int number)
{
    buf_printf(b, "{'metadata':{'name':'n%d','labels':{'z':'z'", number);
    for (int i = 0; i < 4; i++)
        if (rng_below(r, 3) > 0)
            buf_printf(b, ",'k%d':'%u'", i, rng_below(r, 3));
    buf_printf(b, "}},'spec':{'unschedulable':%s,'taints':[",
               rng_below(r, 6) == 0 ? "true" : "false");
    for (uint32_t i = 0, n = rng_below(r, 3); i < n; i++)
        buf_printf(b, "%s{'key':'t%u','value':'%u','effect':'%s'}", i ? "," : "", rng_below(r, 2),
                   rng_below(r, 2), effects[rng_below(r, 3)]);
    buf_addz(b, "]}}");
}

static void add_expression(struct rng *r, struct buf *b)
{
    buf_printf(b, "{'key':'k%u','operator':'%s','values':['%u'", rng_below(r, 4),
               ops[rng_below(r, 6)], rng_below(r, 3));
    if (rng_below(r, 2))
        buf_printf(b, ",'%u'", rng_below(r, 3));
    buf_addz(b, "]}");
}

static void add_terms(struct rng *r, struct buf *b)
{
    buf_addz(b, "{'nodeSelectorTerms':[");
    for (uint32_t i = 0, n = rng_below(r, 3); i < n; i++) {
        buf_addz(b, i ? ",{'matchExpressions':[" : "{'matchExpressions':[");
        for (uint32_t j = 0, m = rng_below(r, 3); j < m; j++) {
            buf_addz(b, j ? "," : "");
            add_expression(r, b);
        }
        buf_addz(b, "]");
        if (rng_below(r, 4) == 0)
            buf_printf(b,
                       ",'matchFields':[{'key':'metadata.name','operator':'%s','values':['n%u']}]",
                       ops[rng_below(r, 2)], rng_below(r, NODES));
        buf_addz(b, "}");
    }
    buf_addz(b, "]}");
}

static void add_spec(struct rng *r, struct buf *b)
{
    buf_addz(b, "{'tolerations':[{'key':'t0','operator':'Exists'}");
    if (rng_below(r, 2))
        buf_printf(b, ",{'key':'t1','value':'%u','effect':'%s'}", rng_below(r, 2),
                   effects[rng_below(r, 2)]);
    if (rng_below(r, 4) == 0)
        buf_addz(b, ",{'operator':'Exists'}");
    buf_addz(b, "]");
    if (rng_below(r, 3) == 0)
        buf_printf(b, ",'nodeSelector':{'k%u':'%u'}", rng_below(r, 4), rng_below(r, 3));
    if (rng_below(r, 2)) {
        buf_addz(b, ",'affinity':{'nodeAffinity':{"
                    "'requiredDuringSchedulingIgnoredDuringExecution':");
        add_terms(r, b);
        buf_addz(b, "}}");
    }
    buf_addz(b, "}");
}

static struct kube_node *random_node(struct rng *r, int number)
{
    AUTO(buf_free) struct buf b = BUF(8192);
    struct err e = { 0 };
    add_node(r, &b, number);
    AUTO(json_free_p) struct json_doc *d = quoted_json(b.p);
    return kube_node_read(json_root(d), NULL, &e);
}

static struct where *random_where(struct rng *r)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf b = BUF(8192);
    struct err e = { 0 };
    struct doc doc = { .e = &e };
    add_spec(r, &b);
    AUTO(json_free_p) struct json_doc *d = quoted_json(b.p);
    return where_copy(where_of_pod(&doc, json_root(d), &a));
}

static bool same_class(const struct kube_node *a, const struct kube_node *b,
                       const struct label_keys *keys)
{
    AUTO(buf_free) struct buf x = BUF(8192), y = BUF(8192);
    node_class_key(a, keys, &x);
    node_class_key(b, keys, &y);
    return str_eq(buf_str(&x), buf_str(&y));
}

/* Whether w says the same of both. */
static bool agrees(const struct where *w, const struct kube_node *a, const struct kube_node *b)
{
    struct where_no p = { .kind = WHERE_NO_COUNT }, q = p;
    return where_matches(w, a, &p) == where_matches(w, b, &q) && p.kind == q.kind;
}

static size_t alike_in_one_world(uint64_t seed)
{
    struct rng r = { seed };
    struct kube_node *node[NODES];
    struct where *where[WHERES];
    AUTO(label_keys_free) struct label_keys keys = { 0 };
    size_t alike = 0;
    for (int i = 0; i < NODES; i++)
        CHECK_AT(seed, (node[i] = random_node(&r, i)) != NULL);
    for (int i = 0; i < WHERES; i++) {
        CHECK_AT(seed, (where[i] = random_where(&r)) != NULL);
        where_keys_add(where[i], &keys);
    }
    for (int i = 0; i < NODES * NODES; i++) {
        const struct kube_node *a = node[i / NODES], *b = node[i % NODES];
        if (a == b || !same_class(a, b, &keys))
            continue;
        alike++;
        CHECK_AT(seed, agrees(NULL, a, b));
        for (int j = 0; j < WHERES; j++)
            CHECK_AT(seed, agrees(where[j], a, b));
    }
    for (int i = 0; i < NODES; i++)
        free(node[i]);
    for (int i = 0; i < WHERES; i++)
        free(where[i]);
    return alike;
}

static void nodes_of_one_class_are_the_same_to_every_where(void)
{
    size_t alike = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++)
        alike += alike_in_one_world(seed);
    CHECK(alike > 1000); /* or the worlds say nothing */
}

static const struct test tests[] = {
    { "nodes of one class are the same to every where",
      nodes_of_one_class_are_the_same_to_every_where },
};
TEST_CASES(tests)
