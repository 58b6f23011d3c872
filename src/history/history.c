#include "history/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/map.h"
#include "history/node.h"
#include "history/trail.h"
#include "node/health.h"

#define ROWS_MAX 20000 /* that a chart reads, where a coarser ring has it too */

struct history {
    char *folder; /* NULL: none */
    struct names names;
    struct node **node;
    size_t n, cap;
    struct trails *trails;
    struct report_head *head; /* of what is being read */
    struct report_sample *sample;
};

struct history *history_open(const char *folder, struct err *e)
{
    if (folder && mkdir(folder, 0700) < 0 && errno != EEXIST) {
        err_set(e, ERR_UNAVAILABLE, "cannot make %s: %s", folder, strerror(errno));
        return NULL;
    }
    struct history *h = xcalloc(1, sizeof *h);
    h->folder = folder ? xstrdup(folder) : NULL;
    char path[4096] = "";
    if (folder)
        snprintf(path, sizeof path, "%s/.tasks", folder);
    h->trails = trails_open(folder ? path : NULL);
    h->head = report_head_new();
    h->sample = report_sample_new();
    return h;
}

struct history *history_close(struct history *h)
{
    if (!h)
        return NULL;
    for (size_t i = 0; i < h->n; i++)
        node_free(h->node[i]);
    free(h->node);
    trails_close(h->trails);
    names_free(&h->names);
    free(h->folder);
    free(h->head);
    free(h->sample);
    free(h);
    return NULL;
}

static struct node *find(const struct history *h, struct str name)
{
    uint32_t i = names_find(&h->names, name);
    return i == NAME_NONE ? NULL : h->node[i];
}

/* A name becomes that of a file: what could lead elsewhere is no name of a machine. */
static bool name_is_good(struct str name)
{
    if (name.n == 0 || name.n > 64 || name.p[0] == '.')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '-' || c == '_'))
            return false;
    }
    return true;
}

static struct node *find_or_add(struct history *h, struct str name, struct err *e)
{
    struct node *n = find(h, name);
    if (n)
        return n;
    if (!name_is_good(name)) {
        err_set(e, ERR_INVALID, "'%.*s' is not a name for a machine", (int)MIN(name.n, (size_t)60),
                name.p);
        return NULL;
    }
    if (h->n == HISTORY_NODES_MAX) {
        err_set(e, ERR_TOO_LARGE, "figures of at most %d machines are kept", HISTORY_NODES_MAX);
        return NULL;
    }
    vec_grow(h->node, h->n, h->cap);
    uint32_t i = names_intern(&h->names, name);
    n = node_new(names_get(&h->names, i), h->folder);
    h->node[h->n++] = n;
    return n;
}

struct checking {
    struct str node;
    bool other;
};

static void check_sender(void *ctx, const struct report_head *head, const struct report_sample *s)
{
    struct checking *c = ctx;
    (void)s;
    c->other |= !str_is(c->node, head->node);
}

struct taking {
    struct node *node;
    struct trails *trails;
    int64_t now_ms;
};

static void take_sample(void *ctx, const struct report_head *head, const struct report_sample *s)
{
    struct taking *t = ctx;
    if (node_take(t->node, head, s, t->now_ms))
        trails_take(t->trails, head, s);
}

int history_take(struct history *h, struct str name, struct str text, int64_t now_ms,
                 uint64_t *out_number, struct err *e)
{
    struct checking check = { .node = name };
    if (report_read(text, h->head, h->sample, check_sender, &check, e) < 0)
        return -1;
    if (check.other) {
        err_set(e, ERR_INVALID, "the report is of '%s', not of '%.*s'", h->head->node,
                (int)MIN(name.n, (size_t)64), name.p);
        return err_hint(e, "give the agent this machine's name with --node-name");
    }
    struct taking taking = { .node = find_or_add(h, name, e),
                             .trails = h->trails,
                             .now_ms = now_ms };
    if (!taking.node || report_read(text, h->head, h->sample, take_sample, &taking, e) < 0)
        return -1;
    node_note_findings(taking.node, now_ms);
    *out_number = h->head->number;
    return 0;
}

bool history_find(const struct history *h, struct str node, struct history_node *out)
{
    const struct node *n = find(h, node);
    if (!n || !n->samples)
        return false;
    node_view(n, out);
    return true;
}

bool history_at(const struct history *h, size_t i, struct history_node *out)
{
    if (i >= h->n)
        return false;
    node_view(h->node[i], out);
    return true;
}

const struct history_finding *history_undrained(const struct history *h, struct str node)
{
    const struct node *n = find(h, node);
    for (size_t i = 0; n && i < n->findings; i++)
        if (!n->finding[i].drained && health_rule_drains(str_of(n->finding[i].is.rule)))
            return &n->finding[i];
    return NULL;
}

void history_set_reason(struct history *h, struct str name, struct str reason)
{
    struct err ignored;
    struct node *n = find_or_add(h, name, &ignored);
    if (!n)
        return;
    snprintf(n->reason, sizeof n->reason, "%.*s", STR_ARG(reason));
    for (size_t i = 0; i < n->findings; i++)
        n->finding[i].drained = true;
    node_save(n);
}

bool history_trouble(const struct history *h, struct str name, uint64_t gpu_mask, struct buf *out)
{
    const struct node *n = find(h, name);
    bool any = false;
    for (size_t i = 0; n && i < n->findings; i++) {
        const struct report_finding *f = &n->finding[i].is;
        if (f->gpu >= 64 || (f->gpu >= 0 && !(gpu_mask >> f->gpu & 1)))
            continue;
        if (any)
            buf_addz(out, "; ");
        else
            buf_printf(out, "%.*s: ", STR_ARG(name));
        buf_addz(out, f->text);
        any = true;
    }
    return any;
}

/* ---- charts ---- */

struct drawing {
    const struct history_chart *c;
    float *v;
    double *sum, *weight; /* of the point that is being summed */
    size_t columns;
    int64_t at;
};

static void end_point(struct drawing *d)
{
    if (d->at < 0 || (size_t)d->at >= d->c->points)
        return;
    for (size_t k = 0; k < d->columns; k++) {
        d->v[k * d->c->points + (size_t)d->at] =
            d->weight[k] > 0 ? (float)(d->sum[k] / d->weight[k]) : NAN;
        d->sum[k] = d->weight[k] = 0;
    }
}

static void draw_row(void *ctx, int64_t t_ms, const float *v, uint32_t samples)
{
    struct drawing *d = ctx;
    int64_t at = (t_ms - d->c->from_ms) / d->c->step_ms;
    if (t_ms < d->c->from_ms)
        return;
    if (at != d->at) {
        end_point(d);
        d->at = at;
    }
    for (size_t k = 0; k < d->columns; k++)
        if (isfinite(v[k])) {
            d->sum[k] += (double)v[k] * samples;
            d->weight[k] += samples;
        }
}

static int draw(struct node *n, enum node_ring ring, struct arena *a, struct history_chart *c,
                struct err *e)
{
    size_t columns = HISTORY_NODE_COUNT + (size_t)c->gpus * HISTORY_GPU_COUNT;
    float *v = arena_array(a, float, columns * c->points + 1);
    struct drawing d = { .c = c,
                         .v = v,
                         .sum = arena_array(a, double, columns),
                         .weight = arena_array(a, double, columns),
                         .columns = columns,
                         .at = -1 };
    for (size_t i = 0; i < columns * c->points; i++)
        v[i] = NAN;
    c->v = v;
    int64_t to_ms = c->from_ms + (int64_t)c->points * c->step_ms;
    if (node_read(n, ring, (struct ring_span){ c->from_ms, to_ms }, draw_row, &d, e) < 0)
        return -1;
    end_point(&d);
    return 0;
}

/* The ring that has it, without reading many more rows than points. */
static enum node_ring ring_for(const struct node *n, const struct history_ask *ask)
{
    enum node_ring ring = node_ring_for(ask->step_ms, ask->from_ms, n->last->t_ms);
    int64_t span_ms = ask->to_ms - ask->from_ms;
    bool many = span_ms / node_ring_step_ms(ring) > ROWS_MAX;
    bool drawn = span_ms / ask->step_ms <= HISTORY_POINTS_MAX; /* else it is refused */
    return many && drawn && ring + 1 < NODE_RING_COUNT ? ring + 1 : ring;
}

int history_chart(struct history *h, struct str name, const struct history_ask *ask,
                  struct arena *a, struct history_chart *out, struct err *e)
{
    struct node *n = find(h, name);
    *out =
        (struct history_chart){ .from_ms = ask->from_ms, .step_ms = MAX(ask->step_ms, (int64_t)1) };
    if (!n || !n->samples || ask->to_ms <= ask->from_ms || ask->step_ms < 1)
        return 0;
    enum node_ring ring = ring_for(n, ask);
    int64_t step_ms = node_ring_step_ms(ring);
    out->step_ms = (MAX(ask->step_ms, step_ms) + step_ms - 1) / step_ms * step_ms;
    out->from_ms = ask->from_ms / out->step_ms * out->step_ms;
    out->points = (size_t)((ask->to_ms - out->from_ms + out->step_ms - 1) / out->step_ms);
    out->gpus = n->head->gpus;
    if (out->points > HISTORY_POINTS_MAX) {
        err_set(e, ERR_INVALID, "that is %zu points, and a chart has at most %d", out->points,
                HISTORY_POINTS_MAX);
        return err_hint(e, "ask for a longer step_ms or a shorter time");
    }
    return draw(n, ring, a, out, e);
}

bool history_trail(const struct history *h, struct history_task which, struct history_trail *out)
{
    return trails_find(h->trails, which, out);
}
