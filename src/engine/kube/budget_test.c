#include "engine/kube/budget.h"

#include "tests/lib/quoted.h"

#define ONE(selector, allowed)                                                                     \
    "{'items':[{'metadata':{'name':'b'},'spec':{" selector "},'status':{" allowed "}}]}"
#define EXPRESSION(text) "'selector':{'matchExpressions':[{" text "}]}"

/* "name query allowed" of each, or the sentence that refuses it. */
static void budgets_are(const char *list, const char *want)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *d = quoted_json(list);
    AUTO(buf_free) struct buf b = BUF(1024);
    struct budget *at = NULL;
    size_t n = 0;
    struct err e = { 0 };
    if (budgets_read(json_root(d), &a, &at, &n, &e) < 0)
        buf_printf(&b, "%s", e.msg);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s %s %u", i ? "; " : "", at[i].name, at[i].query, at[i].allowed);
    CHECK_STR(b.n ? b.p : "", want);
}

static void selectors_become_queries(void)
{
    budgets_are("{'items':[]}", "");
    budgets_are(ONE("", ""), "");
    budgets_are(ONE("'selector':{}", "'disruptionsAllowed':2"), "b  2");
    budgets_are(ONE("'selector':{'matchLabels':{'a':'b','c':''}}", ""), "b a%3Db%2Cc%3D 0");
    budgets_are(ONE(EXPRESSION("'key':'a','operator':'In','values':['x','y']"), ""),
                "b a%20in%20%28x%2Cy%29 0");
    budgets_are(ONE(EXPRESSION("'key':'a','operator':'NotIn','values':['x']"), ""),
                "b a%20notin%20%28x%29 0");
    budgets_are(ONE(EXPRESSION("'key':'a','operator':'Exists'"), ""), "b a 0");
    budgets_are(ONE(EXPRESSION("'key':'a','operator':'DoesNotExist'"), ""), "b %21a 0");
    budgets_are(ONE("'selector':{}", "'disruptionsAllowed':-1"), "b  0");
}

static void what_is_not_known_is_not_passed_over(void)
{
    budgets_are(ONE(EXPRESSION("'key':'a','operator':'Like'"), ""),
                "PodDisruptionBudget 'b': operator 'Like' is not known");
    budgets_are("{'items':{}}", "field 'items' must be an array");
}

static const struct test tests[] = {
    { "selectors become queries", selectors_become_queries },
    { "what is not known is not passed over", what_is_not_known_is_not_passed_over },
};
TEST_CASES(tests)
