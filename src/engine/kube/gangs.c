/* Pods of others that name our scheduler.  Those that start together are a gang, and a gang is one job: it is
 * told when as many pods are there as it takes, and when it was given machines each of its pods is bound.
 * Pods beyond those that a gang takes are placed one by one. */
#include <stdio.h>

#include "engine/kube/state.h"

#define TRAITS_MAX (64u << 10)
#define REFUSED_MS 3000 /* what was refused is offered again */
#define CLAIMS_AGAIN_MS 2000
#define INCOMPLETE_MS 2000 /* a gang whose pods still come says nothing */
#define OBSERVED_USER "kubernetes"

/* ---- the table ---- */

struct gang *gangs_find(const struct kube *k, struct str ref)
{
    uint64_t i;
    return map_get(&k->gangs.by_ref, str_hash(ref), &i) ? k->gangs.at[i] : NULL;
}

static void gang_free(struct gang *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->member[i].pod);
        free(g->member[i].where);
    }
    free(g->member);
    free(g->ref);
    free(g->name);
    free(g->word);
    free(g->refusal);
    free(g->part);
    free(g->within);
    budgets_free(g->budgets);
    kube_cancel(g->look);
    kube_cancel(g->call);
    free(g);
}

static void drop(struct kube *k, struct gang *g)
{
    uint64_t i = 0;
    map_get(&k->gangs.by_ref, str_hash(str_of(g->ref)), &i);
    map_remove(&k->gangs.by_ref, str_hash(str_of(g->ref)));
    k->gangs.at[i] = k->gangs.at[--k->gangs.n];
    if (i < k->gangs.n)
        map_set(&k->gangs.by_ref, str_hash(str_of(k->gangs.at[i]->ref)), i);
    gang_free(g);
}

struct gang *gangs_add(struct kube *k, struct str ref, const char *space)
{
    struct gang *g = xcalloc(1, sizeof *g);
    g->k = k;
    g->ref = xcalloc(ref.n + 1, 1);
    memcpy(g->ref, ref.p, ref.n);
    snprintf(g->space, sizeof g->space, "%s", space);
    g->priority = PRIO_NORMAL;
    g->quiet_ms = kube_now_ms(k) + INCOMPLETE_MS;
    vec_grow(k->gangs.at, k->gangs.n, k->gangs.cap);
    map_set(&k->gangs.by_ref, str_hash(ref), k->gangs.n);
    k->gangs.at[k->gangs.n++] = g;
    return g;
}

void gangs_set_dirty(struct gang *g)
{
    g->dirty = true;
    kube_soon(g->k);
}

/* ---- members ---- */

struct member *gangs_member(struct gang *g, const struct seen_pod *s)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->member[i].seen == s)
            return &g->member[i];
    return NULL;
}

static void raise_to(struct kube *k, struct load *at, const struct load *by)
{
    if (by->devices && by->devices != at->devices) {
        AUTO(buf_free) struct buf both = BUF(2 * DEVICES_TEXT_MAX);
        devices_join(str_of(names_get(&k->devices, (uint32_t)at->devices)),
                     str_of(names_get(&k->devices, (uint32_t)by->devices)), &both);
        at->devices = pods_devices(k, buf_str(&both));
    }
    at->cpu_milli = MAX(at->cpu_milli, by->cpu_milli);
    at->mem_mib = MAX(at->mem_mib, by->mem_mib);
    at->gpus = MAX(at->gpus, by->gpus);
}

static void add_member(struct kube *k, struct gang *g, struct seen_pod *s, const struct kube_pod *p)
{
    struct load takes;
    struct err why;
    if (pods_load(k, p, &takes, &why) < 0 && !g->refusal)
        g->refusal = xstrdup(why.msg);
    vec_grow(g->member, g->n, g->cap);
    g->member[g->n++] = (struct member){
        .seen = s,
        .pod = xstrdup(p->name),
        .where = where_copy(p->where),
        .created_ms = p->created_ms,
        .bound = p->node[0] != 0,
    };
    g->sorted = false;
    s->gang = g;
    s->takes = takes;
    g->final |= strcmp(p->scheduled.reason, GANG_CANCELLED) == 0;
    g->preemptible =
        (g->n == 1 || g->preemptible) && strcmp(p->own[POD_OWN_PREEMPTIBLE], "true") == 0;
    raise_to(k, &g->takes, &takes);
    g->endless |= p->deadline_ms == 0;
    g->deadline_ms = MAX(g->deadline_ms, p->deadline_ms);
    if (!g->name)
        g->name = xstrdup(p->gang.id.kind == GANG_ONE ? p->name : p->gang.id.name);
    for (int i = 0; i < PRIO_COUNT; i++)
        if (strcmp(p->own[POD_OWN_PRIORITY], priority_name((enum priority)i)) == 0)
            g->priority = (enum priority)i;
    if (p->refusal[0] && !g->refusal)
        g->refusal = xstrdup(p->refusal);
    classes_know(k, g->member[g->n - 1].where);
    if (p->n_claims && !s->claims && !p->node[0])
        s->claims = claims_new(k, s, p);
    gangs_set_dirty(g);
}

static void remove_member(struct gang *g, struct member *m)
{
    m->seen->gang = NULL;
    free(m->pod);
    free(m->where);
    *m = g->member[--g->n];
    g->sorted = false;
    if (g->n == 0) /* what comes under its name now is a gang of its own */
        g->placed = 0;
    gangs_set_dirty(g);
}

/* ---- bound before our time ---- */

/* Pods that were bound in an earlier life of ours carry the task that they are.  Those whose job nobody knows
 * any more take room like any other pod. */
static void take_up(struct kube *k, struct gang *g)
{
    for (size_t i = g->n; i-- > 0;) {
        struct member *m = &g->member[i];
        struct seen_pod *s = m->seen;
        if (!m->bound || s->is_task)
            continue;
        if (g->job == 0 || s->task.job != g->job) {
            remove_member(g, m);
            pods_count_again(k, s);
            continue;
        }
        struct task *t = tasks_find(k, s->task);
        if (!t)
            t = tasks_add(k, s->task, g->space, m->pod);
        t->gang = g;
        t->step = t->step < STEP_BOUND ? STEP_BOUND : t->step;
        t->uid = t->uid ? t->uid : xstrdup(s->uid);
        t->node = t->node ? t->node : xstrdup(k->machines.at[s->machine]->name);
        s->is_task = true;
        g->placed++;
    }
}

static void ref_of(const struct kube_pod *p, bool alone, struct buf *out)
{
    if (alone || p->gang.id.kind == GANG_ONE)
        buf_printf(out, "pod/%s", p->uid);
    else
        gang_key(&p->gang.id, out);
}

static void note_place(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    if (!p->node[0])
        return;
    s->machine = machines_number(k, p->node);
    gangs_member(s->gang, s)->bound = true;
}

/* A bind that an earlier life of ours sent has come true after our first look, or another has placed it. */
static void bound_late(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    struct gang *g = s->gang;
    if (!kube_pod_task(p, &s->task)) {
        remove_member(g, gangs_member(g, s));
        return;
    }
    if (g->job)
        take_up(k, g);
    struct task *t = s->is_task ? tasks_find(k, s->task) : NULL;
    if (t)
        tasks_pod(k, t, p);
    gangs_set_dirty(g);
}

static bool is_taken(const struct gang *g)
{
    return g->want && g->placed >= g->want;
}

void gangs_pod(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    AUTO(buf_free) struct buf ref = BUF(2048);
    if (s->gang) {
        struct task *t = s->is_task ? tasks_find(k, s->task) : NULL;
        note_place(k, s, p);
        if (t)
            tasks_pod(k, t, p);
        else if (p->deletion_ms)
            remove_member(s->gang, gangs_member(s->gang, s));
        else if (p->node[0] && !s->is_task)
            bound_late(k, s, p);
        return;
    }
    if (p->gated || p->deletion_ms)
        return; /* it is not to be placed yet, or any more */
    ref_of(p, false, &ref);
    struct gang *g = gangs_find(k, buf_str(&ref)), *whole = NULL;
    if (g && is_taken(g) && g->hold == HOLD_NONE && !p->node[0]) {
        whole = g; /* it has begun: the rest comes one by one */
        buf_truncate(&ref, 0);
        ref_of(p, true, &ref);
        g = gangs_find(k, buf_str(&ref));
    }
    if (!g)
        g = gangs_add(k, buf_str(&ref), p->ns);
    if (whole && !g->within)
        g->within = xstrdup(whole->ref);
    if (!g->n)
        g->kind = whole ? GANG_ONE : p->gang.id.kind;
    bool alone = strncmp(g->ref, "pod/", 4) == 0;
    if (alone)
        g->want = 1;
    else if (p->gang.object == GANG_OBJ_NONE)
        g->want = MAX(p->gang.min, 1u);
    add_member(k, g, s, p);
    if (!alone && g->want == 0 && !g->part) {
        g->object = p->gang.object;
        g->part = xstrdup(p->gang.id.part);
        gangs_look_for_size(g);
    }
    note_place(k, s, p);
    kube_pod_task(p, &s->task);
    owners_pod(g);
}

void gangs_pod_over(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    struct gang *g = s->gang;
    struct task *t = s->is_task ? tasks_find(k, s->task) : NULL;
    if (t)
        tasks_pod(k, t, p);
    remove_member(g, gangs_member(g, s));
}

void gangs_pod_gone(struct kube *k, struct seen_pod *s)
{
    struct gang *g = s->gang;
    struct task *t = s->is_task ? tasks_find(k, s->task) : NULL;
    remove_member(g, gangs_member(g, s));
    if (t)
        tasks_pod_gone(k, t);
}

/* ---- telling ---- */

/* What all of its pods may use. */
static void traits_of(struct kube *k, const struct gang *g, struct buf *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    const struct where *w = g->n ? g->member[0].where : NULL;
    for (size_t i = 1; i < g->n; i++) /* members of a gang mostly ask the same */
        if (!where_eq(w, g->member[i].where))
            w = where_join(w, (const struct where *const[]){ g->member[i].where }, 1, &a);
    classes_traits(k, w, out);
}

static bool any_bound(const struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->member[i].bound)
            return true;
    return false;
}

/* Nothing asks for nothing. */
static uint32_t some(uint64_t n)
{
    return n == 0 ? 1 : (uint32_t)MIN(n, UINT64_C(1) << 30);
}

static void ask_devices(struct kube *k, const struct gang *g, struct buf *text, struct spec *s)
{
    struct str asked = str_of(names_get(&k->devices, (uint32_t)g->takes.devices));
    uint64_t gpus = MIN(g->takes.gpus, (uint64_t)UINT16_MAX);
    AUTO(buf_free) struct buf shared = BUF(512);
    if (gpus && machines_share_gpus(k, gpus))
        buf_printf(&shared, "%s=%u", k->config.site.gpu, (unsigned)gpus);
    else
        s->request.gpus = (uint16_t)gpus;
    devices_join(asked, buf_str(&shared), text);
    s->devices = buf_str(text);
}

static void offer(struct kube *k, struct gang *g)
{
    AUTO(buf_free) struct buf traits = BUF(TRAITS_MAX), devices = BUF(2 * DEVICES_TEXT_MAX);
    static const char *const none[] = { NULL };
    static const char *const pod[] = { "pod", NULL };
    struct str tenant = space_tenant(k, g->space);
    struct str name = str_of(g->name);
    name.n = MIN(name.n, (size_t)NAME_MAX_BYTES);
    struct spec s = { .name = name,
                      .tenant = tenant,
                      .image = STR("host"),
                      .argv = pod,
                      .n_args = 1,
                      .env = none,
                      .priority = g->priority,
                      .freeze = g->preemptible ? FREEZE_REQUEUE : FREEZE_NONE,
                      .freeze_signal = 15,
                      .grace_ms = 30000,
                      .network = NETWORK_NONE,
                      .max_time_ms = g->endless ? 0 : g->deadline_ms,
                      .observed = str_of(g->ref) };
    uint64_t job = 0;
    s.request.replicas = g->want;
    ask_devices(k, g, &devices, &s);
    s.request.cpu_milli = some(g->takes.cpu_milli);
    s.request.mem_mib = some(g->takes.mem_mib);
    traits_of(k, g, &traits);
    struct engine_event ev = { .kind = ENGINE_OBSERVED, .t_ms = kube_now_ms(k) };
    ev.observed = (struct engine_observed){ .spec = &s,
                                            .tenant = tenant,
                                            .user = STR(OBSERVED_USER),
                                            .traits = buf_str(&traits),
                                            .placed = any_bound(g),
                                            .out_job = &job };
    kube_tell(k, &ev);
    g->job = job;
    g->refused_ms = job ? 0 : kube_now_ms(k);
    take_up(k, g);
}

/* Where its volumes are is known; else it waits for them, in words once there is something to say. */
static bool knows_claims(struct kube *k, struct gang *g)
{
    bool known = true;
    const char *problem = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct claims *c = g->member[i].seen->claims;
        if (claims_known(c))
            continue;
        known = false;
        claims_look(c);
        problem = problem ? problem : claims_problem(c);
    }
    g->look_ms = known ? 0 : kube_now_ms(k) + CLAIMS_AGAIN_MS;
    if (problem)
        gangs_word(k, str_of(g->ref),
                   &(struct engine_word){ .reason = "volume", .text = str_of(problem) });
    return known;
}

/* Tasks of it whose end is not written down. */
bool gangs_has_tasks(const struct gang *g)
{
    const struct tasks *all = &g->k->tasks;
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i]->gang == g && !all->at[i]->forgotten)
            return true;
    return false;
}

static void settle(struct kube *k, struct gang *g)
{
    struct engine_word w = { .reason = "refused" };
    g->dirty = g->n == 0 && gangs_has_tasks(g);
    if (g->dirty)
        return; /* its job hears of their ends first */
    if (g->n == 0 && owners_keep(g))
        return;
    owners_settle(g);
    if (kube_now_ms(k) >= g->quiet_ms)
        g->quiet_ms = 0;
    if (g->n == 0) {
        struct engine_event ev = { .kind = ENGINE_VANISHED, .t_ms = kube_now_ms(k) };
        ev.vanished = str_of(g->ref);
        kube_tell(k, &ev);
        drop(k, g);
        return;
    }
    if (any_bound(g) && !g->job) {
        offer(k, g); /* only what is known takes it up */
        return;
    }
    if (g->final || is_taken(g))
        return;
    if (g->refusal) {
        w.text = str_of(g->refusal);
        gangs_word(k, str_of(g->ref), &w);
        return;
    }
    if (space_tenant(k, g->space).n == 0) {
        AUTO(buf_free) struct buf text = BUF(512);
        buf_printf(&text,
                   "namespace %s belongs to no tenant, and there is no default_tenant for others",
                   g->space);
        w.text = buf_str(&text);
        gangs_word(k, str_of(g->ref), &w);
        return;
    }
    if (g->want == 0)
        gangs_look_for_size(g);
    if (g->want == 0 || (g->n < g->want && !g->job)) {
        if (g->quiet_ms)
            return;
        AUTO(buf_free) struct buf text = BUF(512);
        if (g->want)
            buf_printf(&text, "%zu of the %u pods that start together are there", g->n, g->want);
        else
            buf_printf(&text, "the object that says how many pods start together is not there yet");
        w.reason = "gang";
        w.text = buf_str(&text);
        gangs_word(k, str_of(g->ref), &w);
        return;
    }
    if (knows_claims(k, g))
        offer(k, g);
}

void gangs_tell(struct kube *k, enum gangs_which which)
{
    int64_t now_ms = kube_now_ms(k);
    for (size_t i = k->gangs.n; i-- > 0;) {
        if (i >= k->gangs.n)
            continue;
        struct gang *g = k->gangs.at[i];
        bool later = (g->refused_ms && now_ms - g->refused_ms >= REFUSED_MS) ||
                     (g->look_ms && now_ms >= g->look_ms && !g->look && (!g->want || !g->job)) ||
                     (g->quiet_ms && !g->job && now_ms >= g->quiet_ms);
        if (which == GANGS_PLACED ? any_bound(g) : which == GANGS_ALL || g->dirty || later)
            settle(k, g);
    }
}

/* It has begun: those of its pods that are beyond what it takes are placed one by one. */
static void split_rest(struct kube *k, struct gang *g)
{
    for (size_t i = g->n; i-- > 0;) {
        struct member m = g->member[i];
        AUTO(buf_free) struct buf ref = BUF(512);
        if (m.bound || m.seen->is_task)
            continue;
        g->member[i] = g->member[--g->n];
        g->sorted = false;
        buf_printf(&ref, "pod/%s", m.seen->uid);
        struct gang *one = gangs_add(k, buf_str(&ref), g->space);
        one->name = xstrdup(m.pod);
        one->within = xstrdup(g->ref);
        one->preemptible = g->preemptible;
        one->want = 1;
        one->takes = m.seen->takes;
        one->priority = g->priority;
        vec_grow(one->member, one->n, one->cap);
        one->member[one->n++] = m;
        m.seen->gang = one;
        gangs_set_dirty(one);
    }
}

/* ---- verbs ---- */

static int by_age(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->created_ms != y->created_ms)
        return x->created_ms < y->created_ms ? -1 : 1;
    return strcmp(x->seen->uid, y->seen->uid);
}

bool gangs_is_free(const struct member *m)
{
    return !m->bound && !m->seen->is_task;
}

/* Always the same pod for the same replica: a bind that an earlier life of ours sent may come true after our
 * first look, and must then be the one that we would repeat. */
static struct member *member_for(struct gang *g, uint32_t replica)
{
    if (!g->sorted)
        qsort(g->member, g->n, sizeof *g->member, by_age);
    g->sorted = true;
    if (replica < g->n && gangs_is_free(&g->member[replica]))
        return &g->member[replica];
    for (size_t i = 0; i < g->n; i++)
        if (gangs_is_free(&g->member[i]))
            return &g->member[i];
    return NULL;
}

size_t gangs_free_members(const struct gang *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += gangs_is_free(&g->member[i]);
    return n;
}

bool gangs_give(struct gang *g, struct task *t)
{
    struct member *m = member_for(g, t->id.replica);
    if (!m)
        return false;
    task_set_text(&t->pod, m->pod);
    task_set_text(&t->uid, m->seen->uid);
    t->step = STEP_BINDING;
    m->seen->is_task = true;
    m->seen->task = t->id;
    g->placed++;
    if (is_taken(g))
        split_rest(g->k, g);
    tasks_step(g->k, t);
    return true;
}

static int no_pod(struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "its pod is gone");
    return err_hint(e, "whoever made it removed it meanwhile");
}

int gangs_start(struct kube *k, const struct engine_start *s, struct err *e)
{
    struct gang *g = gangs_find(k, s->spec->observed);
    struct task *t = tasks_find(k, s->task);
    if (t && !t->forgotten)
        return 0;
    if (t && (t->busy || t->again_ms))
        return err_set(e, ERR_UNAVAILABLE, "what an earlier start left is still being removed");
    if (t)
        tasks_drop(k, t);
    if (!g)
        g = owners_expect(k, s->spec->observed);
    if (!g)
        return no_pod(e);
    bool later = owners_wait(g, s->n_slots);
    if (!later && !member_for(g, s->task.replica))
        return no_pod(e);
    t = tasks_add(k, s->task, g->space, "");
    t->gang = g;
    t->node = xcalloc(s->node.n + 1, 1);
    memcpy(t->node, s->node.p, s->node.n);
    g->job = s->task.job;
    g->run = s->task.run;
    if (!later)
        gangs_give(g, t);
    return 0;
}

void gangs_narrow(struct kube *k, struct seen_pod *s, const struct where *volume)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct member *m = s->gang && volume ? gangs_member(s->gang, s) : NULL;
    if (!m)
        return;
    struct where *now = where_copy(where_join(m->where, &volume, 1, &a));
    free(m->where);
    m->where = now;
    classes_know(k, now);
}

void gangs_changed(struct seen_pod *s)
{
    if (s->gang)
        gangs_set_dirty(s->gang);
}

void gangs_free(struct kube *k)
{
    for (size_t i = 0; i < k->gangs.n; i++)
        gang_free(k->gangs.at[i]);
    free(k->gangs.at);
    map_free(&k->gangs.by_ref);
}
