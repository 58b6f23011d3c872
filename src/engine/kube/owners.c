/* Taking back a gang of others, and giving it its place again.
 *
 * First its budgets are asked: all of it may go, or nothing is done.  An owner that can be suspended then is, and its
 * operator ends the pods; any other gang is evicted pod by pod.  We note in the owner that it was us.  One that has
 * its place again goes on when its owner does, and its pods are bound when all that come have come.  What we know of a
 * suspended gang is in its owner and in the store, so a life of ours may end at any point. */
#include <signal.h>
#include <stdio.h>

#include "engine/kube/state.h"

#define AGAIN_FIRST_MS 200
#define AGAIN_MOST_MS 15000
#define LOOK_MS 10000    /* whether one that is suspended is still there */
#define RESUME_MS 120000 /* for an operator to make its pods again */
#define REMADE_MS 20000  /* for one that never knew that they went; a Job backs off 10 s */

static const char *const hold_names[] = {
    [HOLD_NONE] = "none",         [HOLD_ASKING] = "asking",       [HOLD_SUSPENDING] = "suspending",
    [HOLD_EVICTING] = "evicting", [HOLD_SUSPENDED] = "suspended", [HOLD_RESUMING] = "resuming",
};

static void set_hold(struct gang *g, enum gang_hold hold, const char *why)
{
    log_event(g->k->config.log, LOG_INFO_, "gang.hold", "gang=%s was=%s is=%s why=%s", g->ref,
              hold_names[g->hold], hold_names[hold], why);
    g->hold = hold;
    g->call_tries = 0;
    g->call_ms = 0;
    g->resumed = false;
}

static void again(struct gang *g, int64_t at_least_ms)
{
    unsigned doubled = MIN(g->call_tries, 10u);
    int64_t wait_ms = MIN((int64_t)AGAIN_FIRST_MS << doubled, (int64_t)AGAIN_MOST_MS);
    g->call_tries++;
    g->call_ms = kube_now_ms(g->k) + MAX(wait_ms, at_least_ms);
}

static bool is_passing(const struct kube_reply *r)
{
    return r->status == 0 || r->status == 429 || r->status >= 500 || r->status == 401;
}

static bool can_suspend(const struct gang *g)
{
    return owner_kind_next(g->kind, g->object, NULL) != NULL;
}

/* Its tasks, from the last to the first: each may be dropped on the way. */
#define EACH_TASK(t, g)                                                                            \
    for (size_t i_ = (g)->k->tasks.n; i_-- > 0;)                                                   \
        for (struct task *t = i_ < (g)->k->tasks.n ? (g)->k->tasks.at[i_] : NULL;                  \
             t && t->gang == (g) && !t->forgotten; t = NULL)

/* ---- its owner ---- */

static void on_owner(void *ctx, const struct kube_reply *r);

static void look(struct gang *g)
{
    char path[1024];
    if (!g->owner)
        g->owner = owner_kind_next(g->kind, g->object, NULL);
    snprintf(path, sizeof path, "/apis/%s/namespaces/%s/%s/%s", g->owner->api_version, g->space,
             g->owner->plural, g->name);
    g->call = kube_send(g->k->client, &(struct kube_request){ .path = str_of(path) }, on_owner, g);
}

static void patch(struct gang *g, const struct owner *o, const char *by, kube_reply_fn *fn)
{
    AUTO(buf_free) struct buf body = BUF(4096);
    char path[1024];
    if (!g->k->is_ready) { /* another may decide by now: it is looked at again when it is us */
        again(g, 0);
        return;
    }
    owner_patch(g->owner, o, by, &body);
    snprintf(path, sizeof path, "/apis/%s/namespaces/%s/%s/%s?fieldManager=nightshift",
             g->owner->api_version, g->space, g->owner->plural, g->name);
    g->call = kube_send(g->k->client,
                        &(struct kube_request){ .method = "PATCH",
                                                .path = str_of(path),
                                                .content_type = "application/merge-patch+json",
                                                .body = buf_str(&body) },
                        fn, g);
}

static bool is_ours(const struct gang *g, const struct owner *o)
{
    return o->suspended && strcmp(o->suspended_by, g->k->config.site.daemon) == 0;
}

/* ---- suspending ---- */

/* It is told to have vanished, unless it has pods. */
static void leave(struct gang *g, const char *why)
{
    set_hold(g, HOLD_NONE, why);
    g->left = true;
    gangs_set_dirty(g);
}

/* Somebody may have ended it since, or it itself. */
static bool is_to_go(struct gang *g)
{
    EACH_TASK(t, g)
    if (t->stop && t->freeze && t->step != STEP_ENDED)
        return true;
    return false;
}

/* Those whose pod has not come, and does not now. */
static void end_waiting(struct gang *g)
{
    EACH_TASK(t, g)
    if (t->step == STEP_MAKING)
        task_ended(g->k, t, t->stop ? t->stop_why : END_LOST, 0, SIGKILL);
}

static void evict(struct gang *g, const char *why)
{
    set_hold(g, HOLD_EVICTING, why);
    end_waiting(g);
    EACH_TASK(t, g)
    tasks_step(g->k, t);
}

static void suspended(struct gang *g)
{
    set_hold(g, HOLD_SUSPENDED, "");
    g->call_ms = kube_now_ms(g->k) + LOOK_MS;
    end_waiting(g);
    gangs_set_dirty(g);
}

static void on_suspended(void *ctx, const struct kube_reply *r)
{
    struct gang *g = ctx;
    g->call = NULL;
    if (r->status == 200)
        suspended(g);
    else if (is_passing(r) || r->status == 409)
        again(g, r->retry_after_ms);
    else
        evict(g, r->err.msg);
}

static void suspend(struct gang *g, const struct owner *o)
{
    if (is_ours(g, o))
        suspended(g);
    else if (!is_to_go(g))
        leave(g, "it is not to be taken back any more");
    else if (o->over || o->controlled || o->suspended)
        evict(g, o->over         ? "its owner has ended"
                 : o->controlled ? "its owner has an owner itself"
                                 : "its owner is suspended by another");
    else
        patch(g, o, g->k->config.site.daemon, on_suspended);
}

static void on_budgets(struct gang *g, enum budgets_say say, const char *why)
{
    char text[500];
    g->budgets = budgets_free(g->budgets);
    if (say == BUDGETS_UNKNOWN) {
        evict(g, why);
    } else if (say == BUDGETS_YES && can_suspend(g)) {
        set_hold(g, HOLD_SUSPENDING, "");
        look(g);
    } else if (say == BUDGETS_YES) {
        evict(g, "it has no owner that can be suspended");
    } else {
        again(g, 0);
        snprintf(text, sizeof text, "it cannot be taken back yet: %s; asked again and again", why);
        EACH_TASK(t, g)
        if (t->id.replica == 0 && say == BUDGETS_NO)
            task_tell_progress(g->k, t, text);
    }
}

/* Pods that belong to the same owner and are jobs of their own would go with it. */
static bool is_whole(const struct gang *g)
{
    const struct gangs *all = &g->k->gangs;
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i]->n && all->at[i]->within && strcmp(all->at[i]->within, g->ref) == 0)
            return false;
    return true;
}

static void take(struct gang *g)
{
    if (!can_suspend(g) && g->want <= 1)
        set_hold(g, HOLD_EVICTING, "it is one pod"); /* the server asks the same */
    else if (can_suspend(g) && !is_whole(g))
        set_hold(g, HOLD_EVICTING, "its owner has other pods");
    else {
        set_hold(g, HOLD_ASKING, "");
        g->budgets = budgets_ask(g, on_budgets);
    }
}

bool owners_take(struct gang *g)
{
    if (g->hold == HOLD_NONE) {
        take(g);
    } else if (g->hold == HOLD_RESUMING && !g->call) {
        set_hold(g, HOLD_SUSPENDING, "it is taken back again");
        look(g);
    }
    return g->hold != HOLD_EVICTING;
}

/* ---- going on ---- */

static void fail_waiting(struct gang *g, enum err_code code, const char *why)
{
    EACH_TASK(t, g)
    if (t->step == STEP_MAKING)
        task_fail(g->k, t, code, "%s", why);
    gangs_set_dirty(g);
}

/* It does not go on as what it was.  What there is of it, or comes, is taken up anew. */
static void give_up(struct gang *g, enum err_code code, const char *why)
{
    set_hold(g, HOLD_NONE, why);
    g->job = 0;
    fail_waiting(g, code, why);
}

static uint32_t waiting(struct gang *g)
{
    uint32_t n = 0;
    EACH_TASK(t, g)
    n += t->step == STEP_MAKING;
    return n;
}

static bool fits_all(const struct gang *g, const struct kube_node *n)
{
    struct where_no no;
    for (size_t i = 0; i < g->n; i++)
        if (!where_matches(g->member[i].where, n, &no))
            return false;
    return true;
}

/* A suspended object may be changed: its pods then ask for other machines than it was given. */
static bool still_fits(struct gang *g)
{
    EACH_TASK(t, g)
    {
        const struct machine *m = g->k->machines.at[machines_number(g->k, t->node)];
        if (t->step == STEP_MAKING && m->node && !fits_all(g, m->node))
            return false;
    }
    return true;
}

static void place(struct gang *g)
{
    uint32_t n = waiting(g), need = g->comes ? MIN(g->comes, n) : n;
    if (!g->resumed || gangs_free_members(g) < need)
        return;
    if (!still_fits(g)) {
        give_up(g, ERR_CONFLICT, "its pods ask for other machines than before");
        return;
    }
    set_hold(g, HOLD_NONE, "its pods are there");
    for (uint32_t replica = 0; n > 0 && replica < REPLICAS_MAX; replica++) {
        struct task *t = tasks_find(g->k, (struct task_id){ g->job, g->run, replica });
        if (!t || t->gang != g || t->step != STEP_MAKING)
            continue;
        n--;
        if (need > 0 && gangs_give(g, t))
            need--;
        else
            task_ended(g->k, t, END_EXITED, 0, 0); /* done before: its Job makes no pod for it */
    }
}

static void on_resumed(void *ctx, const struct kube_reply *r)
{
    struct gang *g = ctx;
    g->call = NULL;
    again(g, is_passing(r) ? r->retry_after_ms : 0); /* what it is then decides */
    if (r->status == 200)
        g->call_ms = 0;
    else if (!is_passing(r) && r->status != 409)
        log_event(g->k->config.log, LOG_WARN_, "gang.resume", "gang=%s status=%d why=%s", g->ref,
                  r->status, r->err.msg);
}

static void resume(struct gang *g, const struct owner *o)
{
    if (o->over) {
        give_up(g, ERR_NOT_FOUND, "whoever made it has ended it meanwhile");
    } else if (is_ours(g, o)) {
        patch(g, o, NULL, on_resumed);
    } else if (o->suspended) {
        give_up(g, ERR_CONFLICT, "it is suspended by its user");
    } else {
        g->resumed = true;
        g->comes = o->comes;
        g->was_evicted = o->controlled; /* never suspended */
        if (g->was_evicted)
            g->resumed_by_ms = kube_now_ms(g->k) + REMADE_MS;
        place(g);
    }
}

/* ---- what was found ---- */

static void found(struct gang *g, const struct owner *o)
{
    if (g->hold == HOLD_SUSPENDING) {
        suspend(g, o);
    } else if (g->hold == HOLD_RESUMING) {
        resume(g, o);
    } else if (g->hold == HOLD_SUSPENDED && is_ours(g, o) && !o->over) {
        g->call_ms = kube_now_ms(g->k) + LOOK_MS;
    } else if (g->hold == HOLD_SUSPENDED) {
        leave(g, o->over ? "it has ended" : "it is not suspended by us");
    }
}

static void not_found(struct gang *g, const char *why)
{
    g->owner = owner_kind_next(g->kind, g->object, g->owner);
    if (g->owner) {
        look(g);
    } else if (g->hold == HOLD_SUSPENDING) {
        evict(g, why);
    } else if (g->hold == HOLD_RESUMING) {
        give_up(g, ERR_NOT_FOUND, "whoever made it removed it meanwhile");
    } else {
        leave(g, "its owner is gone");
    }
}

static void on_owner(void *ctx, const struct kube_reply *r)
{
    struct gang *g = ctx;
    struct err e = { 0 };
    struct owner o;
    g->call = NULL;
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    if (d && owner_read(g->owner, json_root(d), &o, &e) == 0)
        found(g, &o);
    else if (r->status == 404 || (r->status == 403 && g->hold != HOLD_SUSPENDING))
        not_found(g, r->err.msg); /* what we may not read we cannot have suspended */
    else if (is_passing(r) || g->hold != HOLD_SUSPENDING)
        again(g, r->retry_after_ms);
    else
        evict(g, r->status == 200 ? e.msg : r->err.msg); /* we may not read it */
}

/* ---- from outside ---- */

bool owners_wait(struct gang *g, uint32_t replicas)
{
    if (g->hold == HOLD_EVICTING) { /* whoever made it made its pods again */
        set_hold(g, HOLD_NONE, "it starts again");
        g->placed = 0;
    }
    if (g->hold == HOLD_RESUMING)
        return true;
    if (!can_suspend(g) || (g->hold == HOLD_NONE && gangs_free_members(g) + g->placed >= replicas))
        return false;
    kube_cancel(g->call);
    g->call = NULL;
    g->budgets = budgets_free(g->budgets);
    set_hold(g, HOLD_RESUMING, "");
    g->placed = 0;
    g->resumed_by_ms = kube_now_ms(g->k) + RESUME_MS;
    g->was_evicted = false;
    g->owner = NULL;
    look(g);
    return true;
}

/* "kind/namespace/part/name", as gang_key wrote it. */
static bool read_ref(struct str ref, enum gang_kind *kind, char space[static SPACE_MAX],
                     struct str *name)
{
    struct str word, ns, part;
    str_cut(ref, '/', &word, &ref);
    str_cut(ref, '/', &ns, &ref);
    str_cut(ref, '/', &part, name);
    for (int i = 0; i < GANG_KIND_COUNT; i++)
        if (str_is(word, gang_kind_name((enum gang_kind)i)) && ns.n && ns.n < SPACE_MAX &&
            name->n) {
            *kind = (enum gang_kind)i;
            snprintf(space, SPACE_MAX, "%.*s", STR_ARG(ns));
            return true;
        }
    return false;
}

struct gang *owners_expect(struct kube *k, struct str ref)
{
    char space[SPACE_MAX];
    enum gang_kind kind;
    struct str name;
    if (!read_ref(ref, &kind, space, &name) || !owner_kind_next(kind, GANG_OBJ_NONE, NULL))
        return NULL;
    struct gang *g = gangs_add(k, ref, space);
    g->kind = kind;
    g->name = xcalloc(name.n + 1, 1);
    memcpy(g->name, name.p, name.n);
    set_hold(g, HOLD_SUSPENDED, "of an earlier life");
    return g;
}

void owners_await(struct kube *k, struct str ref)
{
    struct gang *g = gangs_find(k, ref);
    if (!g)
        g = owners_expect(k, ref);
    if (!g)
        g = gangs_add(k, ref, ""); /* which is not there: it is told so with what is dirty */
    g->awaited = true;
    gangs_set_dirty(g);
}

/* An earlier life may have suspended it, and its pods may have gone before that was said again in this one. */
bool owners_keep(struct gang *g)
{
    bool wanted = g->awaited || (g->job && g->preemptible);
    if (g->hold == HOLD_NONE && wanted && !g->left && can_suspend(g))
        set_hold(g, HOLD_SUSPENDED, "maybe");
    return g->hold == HOLD_ASKING || g->hold == HOLD_SUSPENDING || g->hold == HOLD_SUSPENDED ||
           g->hold == HOLD_RESUMING;
}

/* What was taken has ended, and others of it have come: none of these has its place. */
void owners_settle(struct gang *g)
{
    if ((g->hold != HOLD_EVICTING && g->hold != HOLD_SUSPENDED) || g->n == 0 || gangs_has_tasks(g))
        return;
    g->placed = 0;
    if (g->hold == HOLD_EVICTING)
        set_hold(g, HOLD_NONE, "its pods were made again");
}

void owners_pod(struct gang *g)
{
    g->left = false;
    if (g->hold == HOLD_RESUMING)
        place(g);
}

void owners_leave(struct gang *g)
{
    if (g->hold == HOLD_SUSPENDED && !gangs_has_tasks(g))
        leave(g, "nobody wants it back");
}

/* Of what was evicted no more will come; it would hold its place for nothing, again and again. */
static void not_remade(struct gang *g)
{
    const char *why = "its pods were not made again";
    if (g->was_evicted) {
        give_up(g, ERR_NOT_FOUND, why);
        return;
    }
    set_hold(g, HOLD_SUSPENDED, "its pods do not come");
    fail_waiting(g, ERR_UNAVAILABLE, why);
}

static void step(struct gang *g, int64_t now_ms)
{
    bool asked = g->call || g->budgets;
    if (g->hold == HOLD_RESUMING && now_ms >= g->resumed_by_ms && !asked) {
        not_remade(g);
        return;
    }
    if (asked || now_ms < g->call_ms || g->resumed)
        return;
    if (g->hold == HOLD_ASKING)
        g->budgets = budgets_ask(g, on_budgets);
    else if (g->hold == HOLD_SUSPENDING || g->hold == HOLD_RESUMING ||
             (g->hold == HOLD_SUSPENDED && g->n == 0 && !gangs_has_tasks(g)))
        look(g);
}

void owners_tick(struct kube *k)
{
    int64_t now_ms = kube_now_ms(k);
    for (size_t i = 0; i < k->gangs.n; i++)
        if (k->gangs.at[i]->hold != HOLD_NONE && k->gangs.at[i]->hold != HOLD_EVICTING)
            step(k->gangs.at[i], now_ms);
}
