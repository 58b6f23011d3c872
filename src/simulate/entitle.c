/* What each tenant is entitled to, moment by moment. */
#include <math.h>

#include "base/map.h"
#include "simulate/measure.h"

#define USER_WEIGHT_MILLI 1000

/* One who wants a part of something. */
struct wish {
    double weight, want, guarantee;
    double gets;
};

struct entitle {
    const struct trace *t;
    double gpus;
    uint32_t *parent;       /* index; `tenants` at the top */
    uint32_t *first, *next; /* the children of each tenant; those at the top in [tenants] */
    double *own_gpus;       /* of nodes that are its alone */
    double *demand, *whole; /* asked for and entitled to, with all below it, up to its limit */
    struct wish *wish;      /* scratch */
};

static double limit_of(const struct trace_tenant *w)
{
    return (double)w->limit.of[RES_GPU] / GPU_MILLI;
}

static void link_tree(struct entitle *x)
{
    const struct trace *t = x->t;
    AUTO(names_free) struct names known = { 0 };
    for (uint32_t i = 0; i < t->tenants; i++)
        names_intern(&known, str_of(t->tenant[i].name));
    for (uint32_t i = 0; i <= t->tenants; i++)
        x->first[i] = NONE;
    for (uint32_t i = t->tenants; i-- > 0;) { /* backwards: the lists are in the trace's order */
        const char *parent = t->tenant[i].parent;
        x->parent[i] = parent[0] ? names_find(&known, str_of(parent)) : t->tenants;
        x->next[i] = x->first[x->parent[i]];
        x->first[x->parent[i]] = i;
    }
}

struct entitle *entitle_open(const struct trace *t)
{
    struct entitle *x = xcalloc(1, sizeof *x);
    size_t n = (size_t)t->tenants + 1;
    x->t = t;
    x->parent = xcalloc(n, sizeof *x->parent);
    x->first = xcalloc(n, sizeof *x->first);
    x->next = xcalloc(n, sizeof *x->next);
    x->own_gpus = xcalloc(n, sizeof *x->own_gpus);
    x->demand = xcalloc(n, sizeof *x->demand);
    x->whole = xcalloc(n, sizeof *x->whole);
    x->wish = xcalloc(n, sizeof *x->wish);
    link_tree(x);
    for (uint32_t i = 0; i < t->nodes; i++) {
        x->gpus += t->node[i].gpus;
        if (t->node_tenant && t->node_tenant[i] != NONE)
            x->own_gpus[t->node_tenant[i]] += t->node[i].gpus;
    }
    return x;
}

void entitle_close(struct entitle **at)
{
    struct entitle *x = *at;
    if (!x)
        return;
    free(x->parent);
    free(x->first);
    free(x->next);
    free(x->own_gpus);
    free(x->demand);
    free(x->whole);
    free(x->wish);
    free(x);
}

/* The guarantees first; what is left goes to those who still want, by weight, until all is
 * given. */
static void share_out(double capacity, struct wish *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w[i].gets = fmin(fmin(w[i].want, w[i].guarantee), capacity);
        capacity -= w[i].gets;
    }
    for (uint32_t round = 0; round < n && capacity > 1e-9; round++) {
        double weights = 0, given = 0;
        for (uint32_t i = 0; i < n; i++)
            weights += w[i].want - w[i].gets > 1e-9 ? w[i].weight : 0;
        if (weights <= 0)
            return;
        for (uint32_t i = 0; i < n; i++) {
            double lacks = w[i].want - w[i].gets, more = 0;
            if (lacks > 1e-9)
                more = fmin(lacks, capacity * w[i].weight / weights);
            w[i].gets += more;
            given += more;
        }
        capacity -= given;
    }
}

/* Shares `capacity` among the children of `parent`, beside whom its own jobs stand like one user;
 * what those get. */
static double share_below(struct entitle *x, uint32_t parent, double capacity, double own_want)
{
    uint32_t n = 0;
    x->wish[n++] = (struct wish){ .weight = USER_WEIGHT_MILLI, .want = own_want };
    for (uint32_t i = x->first[parent]; i != NONE; i = x->next[i])
        x->wish[n++] = (struct wish){
            .weight = x->t->tenant[i].weight_milli,
            .want = x->demand[i],
            .guarantee = (double)x->t->tenant[i].guarantee_milli / 1000,
        };
    share_out(capacity, x->wish, n);
    double own = x->wish[0].gets;
    n = 1;
    for (uint32_t i = x->first[parent]; i != NONE; i = x->next[i])
        x->whole[i] = x->wish[n++].gets;
    return own;
}

void entitle_at(struct entitle *x, const double *demand, double *out_entitled)
{
    const struct trace *t = x->t;
    memset(x->demand, 0, ((size_t)t->tenants + 1) * sizeof *x->demand);
    for (uint32_t i = t->tenants; i-- > 0;) { /* parents stand before their children */
        x->demand[i] = fmin(x->demand[i] + demand[i], limit_of(&t->tenant[i]));
        if (!t->node_tenant)
            x->demand[x->parent[i]] += x->demand[i];
    }
    if (!t->node_tenant)
        share_below(x, t->tenants, x->gpus, 0);
    for (uint32_t i = 0; i < t->tenants; i++) {
        if (t->node_tenant)
            out_entitled[i] = fmin(x->own_gpus[i], x->demand[i]);
        else if (x->first[i] == NONE)
            out_entitled[i] = x->whole[i];
        else
            out_entitled[i] = share_below(x, i, x->whole[i], demand[i]);
    }
}
