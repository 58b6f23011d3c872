/* The nodes of the cluster as machines: what they have, less what pods take that are not tasks of ours. */
#include <stdio.h>

#include "core/device.h"
#include "engine/kube/state.h"

#define OTHERS_STEPS 32u /* what others take of a machine is counted in so many */
#define HANDED_BACK "nightshift.dev/handed-back"
#define NAMELESS_MODEL "gpu" /* of GPUs that no feature discovery names */

static struct machine *add(struct kube *k, const char *name)
{
    struct machines *all = &k->machines;
    struct machine *m = xcalloc(1, sizeof *m);
    vec_grow(all->at, all->n, all->cap);
    all->at[all->n++] = m;
    names_intern(&all->names, str_of(name));
    m->name = xstrdup(name);
    m->class = NONE;
    return m;
}

/* Pods may be seen before their machine is. */
uint32_t machines_number(struct kube *k, const char *name)
{
    uint32_t number = names_find(&k->machines.names, str_of(name));
    if (number != NAME_NONE)
        return number;
    add(k, name);
    return (uint32_t)k->machines.n - 1;
}

static void moved(uint64_t *at, uint64_t by, bool add_it)
{
    *at = add_it ? *at + by : *at - MIN(*at, by);
}

void machines_load(struct kube *k, uint32_t machine, const struct load *l, bool add_it)
{
    struct machine *m = k->machines.at[machine];
    moved(&m->others.cpu_milli, l->cpu_milli, add_it);
    moved(&m->others.mem_mib, l->mem_mib, add_it);
    moved(&m->others.gpus, l->gpus, add_it);
    struct str devices = str_of(names_get(&k->devices, (uint32_t)l->devices));
    for (struct device d; devices_next(&devices, &d);)
        takens_move(&m->taken, d.name, d.n, add_it);
    m->dirty = true;
    kube_soon(k);
}

/* ---- as the scheduler sees it ---- */

/* In steps, so that a small pod that comes and goes changes nothing for the scheduler. */
static uint64_t in_steps(uint64_t others, uint64_t there)
{
    uint64_t step = there / OTHERS_STEPS;
    return step && others ? (others + step - 1) / step * step : others;
}

static uint32_t left(uint64_t there, uint64_t others, uint64_t most)
{
    uint64_t rest = there > others ? there - others : 0;
    return (uint32_t)MIN(rest, most);
}

static enum node_state state_of(const struct machine *m)
{
    /* A cordoned node is up: its taint is one of the things that pods may bear (where.h). */
    return m->node && !m->node->deleting && m->node->ready == KUBE_READY_YES ? NODE_UP : NODE_DOWN;
}

/* 0 where GPUs are shared: they are devices then. */
static uint32_t whole_gpus(const struct kube *k, const struct kube_node *n)
{
    uint64_t gpus = kube_amounts_count(&n->there, k->config.site.gpu);
    return node_shares_gpus(n, k->config.site.gpu) ? 0 : (uint32_t)MIN(gpus, UINT32_MAX);
}

static struct event_node view(const struct kube *k, const struct machine *m, struct buf *devices)
{
    const struct kube_node *n = m->node;
    node_devices(n, k->config.site.gpu, m->others.gpus, &m->taken, devices);
    struct event_node v = {
        .name = str_of(m->name),
        .net_switch = str_of(n->net_switch),
        .pool = str_of(n->pool),
        .gpus = left(whole_gpus(k, n), m->others.gpus, GPUS_PER_NODE_MAX),
        .cpu_milli = left(n->there.cpu_milli, in_steps(m->others.cpu_milli, n->there.cpu_milli),
                          UINT32_MAX / 2),
        .mem_mib =
            left(n->there.mem_mib, in_steps(m->others.mem_mib, n->there.mem_mib), UINT32_MAX / 2),
        .traits = str_of(k->classes.at[m->class].name),
        .devices = buf_str(devices),
    };
    if (v.gpus) {
        v.model = str_of(n->gpu.model[0] ? n->gpu.model : NAMELESS_MODEL);
        v.gpu_mem_mib = n->gpu.mem_mib ? n->gpu.mem_mib : 1;
    }
    return v;
}

static bool same(const struct machine *m, const struct event_node *v, enum node_state state)
{
    const struct event_node *as = &m->as;
    return m->told && m->state == state && as->gpus == v->gpus && as->cpu_milli == v->cpu_milli &&
           as->mem_mib == v->mem_mib && as->gpu_mem_mib == v->gpu_mem_mib &&
           str_is(v->devices, m->devices) && str_is(v->model, m->model) &&
           str_is(v->traits, m->traits) && str_is(v->pool, m->pool);
}

static void keep_text(char **at, struct str text)
{
    char *copy = xcalloc(text.n + 1, 1); /* before the old one goes: it may be the same */
    if (text.n)
        memcpy(copy, text.p, text.n);
    free(*at);
    *at = copy;
}

static void tell(struct kube *k, struct machine *m)
{
    AUTO(buf_free) struct buf devices = BUF(DEVICES_TEXT_MAX);
    struct event_node v = m->node ? view(k, m, &devices) : m->as;
    enum node_state state = state_of(m);
    m->dirty = false;
    if (!m->node && !m->told)
        return;     /* only pods of it were seen */
    if (!m->node) { /* it is gone: as it was, but down */
        v.name = str_of(m->name);
        v.model = str_of(m->model);
        v.traits = str_of(m->traits);
        v.pool = str_of(m->pool);
        v.devices = str_of(m->devices);
        v.net_switch = STR("");
    }
    if (same(m, &v, state))
        return;
    keep_text(&m->model, v.model);
    keep_text(&m->traits, v.traits);
    keep_text(&m->pool, v.pool);
    keep_text(&m->devices, v.devices);
    v.devices = str_of(m->devices);
    v.model = str_of(m->model);
    v.traits = str_of(m->traits);
    v.pool = str_of(m->pool);
    m->as = v;
    m->as.name = m->as.model = m->as.devices = m->as.traits = m->as.pool = m->as.net_switch =
        (struct str){ 0 };
    m->state = state;
    m->told = true;
    struct engine_event ev = { .kind = ENGINE_NODE, .t_ms = kube_now_ms(k) };
    ev.machine.node = &v;
    ev.machine.state = state;
    if (m->node)
        ev.machine.gpus_of_others = MIN(whole_gpus(k, m->node), (uint32_t)m->others.gpus);
    kube_tell(k, &ev);
}

void machines_tell(struct kube *k, bool all)
{
    for (size_t i = 0; i < k->machines.n; i++) {
        struct machine *m = k->machines.at[i];
        if (all)
            m->told = m->told && !m->node; /* what is there is told again */
        if (all || m->dirty)
            tell(k, m);
    }
}

bool machines_share_gpus(struct kube *k, uint64_t gpus)
{
    struct machines *all = &k->machines;
    if (!all->counted)
        all->some_share = all->some_whole = false;
    for (size_t i = 0; i < all->n && !all->counted; i++) {
        const struct kube_node *n = all->at[i]->node;
        bool many = n && node_shares_gpus(n, k->config.site.gpu);
        all->some_share |= many;
        all->some_whole |= n && !many && kube_amounts_count(&n->there, k->config.site.gpu);
    }
    all->counted = true;
    return all->some_share && (gpus > GPUS_PER_NODE_MAX || !all->some_whole);
}

/* ---- what the watch tells ---- */

void machines_list(struct kube *k)
{
    k->machines.list++;
}

static void take_away(struct kube *k, struct machine *m)
{
    if (!m->node)
        return;
    classes_leave(k, m);
    free(m->node);
    m->node = NULL;
    k->machines.counted = false;
    m->away_since_ms = kube_now_ms(k);
    m->dirty = true;
    kube_soon(k);
}

static void note_presence(struct kube *k, struct machine *m)
{
    if (m->node->ready == KUBE_READY_YES)
        m->away_since_ms = 0;
    else if (m->away_since_ms == 0)
        m->away_since_ms = kube_now_ms(k);
}

void machines_object(struct kube *k, enum kube_change what, const struct json *node)
{
    struct err e;
    struct kube_node *n = kube_node_read(node, NULL, &e);
    if (!n) {
        log_event(k->config.log, LOG_WARN_, "node.unread", "why=%s", e.msg);
        return;
    }
    uint32_t number = machines_number(k, n->name); /* which may move the list */
    struct machine *m = k->machines.at[number];
    m->seen = k->machines.list;
    if (what == KUBE_DELETED) {
        free(n);
        take_away(k, m);
        return;
    }
    free(m->node);
    m->node = n;
    k->machines.counted = false;
    note_presence(k, m);
    classes_place(k, m);
    m->dirty = true;
    kube_soon(k);
}

void machines_synced(struct kube *k)
{
    for (size_t i = 0; i < k->machines.n; i++)
        if (k->machines.at[i]->seen != k->machines.list)
            take_away(k, k->machines.at[i]);
}

/* ---- machines that are lent ---- */

static void on_marked(void *ctx, const struct kube_reply *r)
{
    struct kube *k = ctx;
    if (r->status >= 300 && r->status != 404)
        log_event(k->config.log, LOG_WARN_, "node.taint", "status=%d why=%s", r->status,
                  r->err.msg);
}

static bool is_marked(const struct kube_node *n)
{
    for (uint16_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, HANDED_BACK) == 0)
            return true;
    return false;
}

struct marking {
    struct kube *k;
    char *name;
    bool is_ours;
};

/* The place of our taint in a list of them; how many there are when it is not among them. */
static size_t place_of_mark(const struct json *taints)
{
    size_t i = 0;
    for (const struct json *t = json_first(taints); t; t = json_next(taints, t), i++) {
        struct str key = STR("");
        struct err e;
        if (json_get_str(t, "key", 512, &key, &e) == 0 && str_is(key, HANDED_BACK))
            return i;
    }
    return i;
}

/* Taints are one list to the server, of which others have a part: it is changed by place, and only as it was
 * seen.  Empty: nothing is to do. */
static void write_mark(const struct json *taints, bool is_ours, struct buf *out)
{
    size_t n = taints ? json_len(taints) : 0, at = n ? place_of_mark(taints) : 0;
    if (is_ours && at < n)
        buf_printf(out,
                   "[{\"op\":\"test\",\"path\":\"/spec/taints/%zu/key\",\"value\":\"" HANDED_BACK
                   "\"},{\"op\":\"remove\",\"path\":\"/spec/taints/%zu\"}]",
                   at, at);
    else if (!is_ours && at == n)
        buf_printf(
            out,
            "[{\"op\":\"add\",\"path\":\"/spec/taints%s\",\"value\":%s{\"key\":\"" HANDED_BACK
            "\",\"effect\":\"NoSchedule\"}%s}]",
            n ? "/-" : "", n ? "" : "[", n ? "" : "]");
}

static void on_node(void *ctx, const struct kube_reply *r)
{
    struct marking *m = ctx;
    AUTO(buf_free) struct buf patch = BUF(1024);
    struct err e;
    char path[400];
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    const struct json *spec = d ? json_find(json_root(d), "spec") : NULL;
    if (spec)
        write_mark(json_find(spec, "taints"), m->is_ours, &patch);
    snprintf(path, sizeof path, "/api/v1/nodes/%s", m->name);
    if (patch.n)
        kube_send(m->k->client,
                  &(struct kube_request){ .method = "PATCH",
                                          .path = str_of(path),
                                          .content_type = "application/json-patch+json",
                                          .body = buf_str(&patch) },
                  on_marked, m->k);
    free(m->name);
    free(m);
}

/* The taint tells other schedulers too: while a machine is its owner's nothing new comes. */
void machines_lend(struct kube *k, struct str node, bool is_ours)
{
    uint32_t number = names_find(&k->machines.names, node);
    const struct machine *m = number == NAME_NONE ? NULL : k->machines.at[number];
    char path[400];
    if (!m || !m->node || is_marked(m->node) == !is_ours)
        return;
    struct marking *asked = xcalloc(1, sizeof *asked);
    *asked = (struct marking){ k, xstrdup(m->name), is_ours };
    snprintf(path, sizeof path, "/api/v1/nodes/%s", m->name);
    kube_send(k->client, &(struct kube_request){ .path = str_of(path) }, on_node, asked);
}

/* Tasks of a machine that nobody has heard of for long are lost: they may start elsewhere. */
void machines_tick(struct kube *k)
{
    int64_t now_ms = kube_now_ms(k);
    for (size_t i = 0; i < k->tasks.n; i++) {
        struct task *t = k->tasks.at[i];
        uint32_t number = t->node ? names_find(&k->machines.names, str_of(t->node)) : NAME_NONE;
        if (number == NAME_NONE || t->step == STEP_ENDED)
            continue;
        const struct machine *m = k->machines.at[number];
        if (m->away_since_ms && now_ms - m->away_since_ms >= k->config.lost_after_ms)
            tasks_lost(k, t);
    }
}

void machines_free(struct kube *k)
{
    for (size_t i = 0; i < k->machines.n; i++) {
        struct machine *m = k->machines.at[i];
        free(m->node);
        free(m->name);
        free(m->model);
        free(m->traits);
        free(m->pool);
        free(m->devices);
        free(m->taken.at);
        free(m);
    }
    free(k->machines.at);
    names_free(&k->machines.names);
}
