#include "engine/kube/budget.h"

#include "base/url.h"

struct query {
    struct doc *d;
    struct buf text;
};

static void also(struct query *q)
{
    if (q->text.n)
        buf_addc(&q->text, ',');
}

static void add_labels(struct query *q, const struct json *labels)
{
    for (struct json_member m = { 0 }; json_next_member(labels, &m);) {
        also(q);
        buf_printf(&q->text, "%.*s=%s", STR_ARG(m.key), doc_as_text(q->d, m.value, "matchLabels"));
    }
}

/* "key in (a,b)", "key notin (a,b)", "key", "!key" */
static void add_expression(struct query *q, const struct json *x)
{
    const char *key = doc_text(q->d, x, "key"), *op = doc_text(q->d, x, "operator"), *sep = "";
    bool in = strcmp(op, "In") == 0, not_in = strcmp(op, "NotIn") == 0;
    also(q);
    if (strcmp(op, "Exists") == 0 || strcmp(op, "DoesNotExist") == 0) {
        buf_printf(&q->text, "%s%s", op[0] == 'D' ? "!" : "", key);
        return;
    }
    if (!in && !not_in) {
        doc_fail(q->d, "operator '%.40s' is not known", op);
        return;
    }
    buf_printf(&q->text, "%s %s (", key, in ? "in" : "notin");
    DOC_EACH(v, doc_array(q->d, x, "values"))
    {
        buf_printf(&q->text, "%s%s", sep, doc_as_text(q->d, v, "values"));
        sep = ",";
    }
    buf_addc(&q->text, ')');
}

static const char *query_of(struct doc *d, const struct json *selector, struct arena *a)
{
    AUTO(buf_free) struct buf encoded = BUF(3 * BUDGET_QUERY_MAX);
    struct query q = { d, BUF(BUDGET_QUERY_MAX) };
    struct err e;
    add_labels(&q, doc_object(d, selector, "matchLabels"));
    DOC_EACH(v, doc_array(d, selector, "matchExpressions"))
    add_expression(&q, v);
    if (buf_check(&q.text, &e) < 0)
        doc_fail(d, "its selector is too long");
    url_encode(buf_str(&q.text), &encoded);
    buf_free(&q.text);
    return arena_printf(a, "%.*s", STR_ARG(buf_str(&encoded)));
}

int budgets_read(const struct json *list, struct arena *a, struct budget **out, size_t *out_n,
                 struct err *e)
{
    struct doc d = { .e = e };
    struct budget *b = arena_array(a, struct budget, BUDGETS_MAX);
    size_t n = 0;
    DOC_EACH(v, doc_array(&d, list, "items"))
    {
        const struct json *spec = doc_object(&d, v, "spec");
        const struct json *selector = doc_object(&d, spec, "selector");
        const char *name = doc_text(&d, doc_object(&d, v, "metadata"), "name");
        int64_t allowed = doc_int(&d, doc_object(&d, v, "status"), "disruptionsAllowed", 0);
        allowed = MAX(allowed, INT64_C(0));
        if (!selector)
            continue; /* it guards nothing */
        if (n == BUDGETS_MAX)
            return err_set(e, ERR_TOO_LARGE, "there are more than %u budgets", BUDGETS_MAX);
        b[n++] = (struct budget){ .name = arena_printf(a, "%s", name),
                                  .query = query_of(&d, selector, a),
                                  .allowed = (uint32_t)MIN(allowed, (int64_t)UINT32_MAX) };
        if (d.bad)
            return err_wrap(e, "PodDisruptionBudget '%.100s'", name);
    }
    if (d.bad)
        return -1;
    *out = b;
    *out_n = n;
    return 0;
}
