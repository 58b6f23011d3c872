/* Whether PodDisruptionBudgets let a whole gang go.  An eviction asks for one pod at a time, so a part of a gang would
 * be gone before another is refused; and what suspends an owner asks nobody. */
#include <stdio.h>

#include "engine/kube/budget.h"
#include "engine/kube/state.h"

struct budgets {
    struct gang *g;
    budgets_fn *fn;
    struct kube_call *call;
    struct arena arena;
    struct budget *at;
    size_t n, next;
    uint32_t pods; /* of the gang, that have a machine */
};

static bool is_live(const struct gang *g, const struct seen_pod *s)
{
    return s && s->gang == g && s->is_task;
}

static uint32_t live_pods(const struct gang *g)
{
    uint32_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += is_live(g, g->member[i].seen);
    return n;
}

/* The last word: whoever hears it may free all this. */
static void say(struct budgets *b, enum budgets_say what, const char *why)
{
    b->fn(b->g, what, why);
}

static void ask_next(struct budgets *b);

static bool is_denied(const struct kube_reply *r)
{
    return r->status == 401 || r->status == 403 || r->status == 404;
}

static void on_guarded(void *ctx, const struct kube_reply *r)
{
    struct budgets *b = ctx;
    const struct budget *one = &b->at[b->next];
    struct err e = { 0 };
    char text[400];
    uint32_t n = 0;
    b->call = NULL;
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    struct doc doc = { .e = &e };
    if (!d) {
        say(b, is_denied(r) ? BUDGETS_UNKNOWN : BUDGETS_LATER,
            r->status == 200 ? e.msg : r->err.msg);
        return;
    }
    DOC_EACH(v, doc_array(&doc, json_root(d), "items"))
    n += is_live(b->g, pods_find(b->g->k, doc_text(&doc, doc_object(&doc, v, "metadata"), "uid")));
    if (n > one->allowed) {
        snprintf(text, sizeof text,
                 "PodDisruptionBudget %.100s guards %u of its pods and lets %u go now", one->name,
                 n, one->allowed);
        say(b, BUDGETS_NO, text);
        return;
    }
    b->next++;
    ask_next(b);
}

static void ask_next(struct budgets *b)
{
    AUTO(buf_free) struct buf path = BUF(4 * BUDGET_QUERY_MAX);
    while (b->next < b->n && b->at[b->next].allowed >= b->pods)
        b->next++; /* all of them may go, whichever it guards */
    if (b->next == b->n) {
        say(b, BUDGETS_YES, "");
        return;
    }
    buf_printf(&path, "/api/v1/namespaces/%s/pods?labelSelector=%s", b->g->space,
               b->at[b->next].query);
    b->call =
        kube_send(b->g->k->client, &(struct kube_request){ .path = buf_str(&path) }, on_guarded, b);
}

static void on_budgets(void *ctx, const struct kube_reply *r)
{
    struct budgets *b = ctx;
    struct err e = { 0 };
    b->call = NULL;
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    if (d && budgets_read(json_root(d), &b->arena, &b->at, &b->n, &e) == 0)
        ask_next(b);
    else
        say(b, r->status == 200 || is_denied(r) ? BUDGETS_UNKNOWN : BUDGETS_LATER,
            r->status == 200 ? e.msg : r->err.msg);
}

struct budgets *budgets_ask(struct gang *g, budgets_fn *fn)
{
    struct budgets *b = xcalloc(1, sizeof *b);
    char path[256];
    *b = (struct budgets){ .g = g, .fn = fn, .pods = live_pods(g) };
    snprintf(path, sizeof path, "/apis/policy/v1/namespaces/%s/poddisruptionbudgets", g->space);
    b->call =
        kube_send(g->k->client, &(struct kube_request){ .path = str_of(path) }, on_budgets, b);
    return b;
}

struct budgets *budgets_free(struct budgets *b)
{
    if (!b)
        return NULL;
    kube_cancel(b->call);
    arena_free(&b->arena);
    free(b);
    return NULL;
}
