/* Tasks of ours: from a start to a pod that is made and bound, from what becomes of the pod to the task's
 * events, and from its end to the pod's removal.  Each request may be lost or repeated: what a task's next
 * one is follows from how far it has come (tasks_step). */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/kube/state.h"

#define KUBELET_MS 5000   /* that the kubelet may be late */
#define LOG_WAIT_MS 10000 /* for the last lines after the end */
#define STUCK_MS 300000   /* an image that does not come */
#define ORPHAN_MS 30000   /* a pod without a machine that nobody starts */
#define COPY_WAIT_MS 250  /* until it is looked again whether its job's copy is right */
#define GATHER_MS 50      /* in which pods of others that are bound are told together */
#define DOCUMENT_MAX (4u << 20)

/* ---- the table ---- */

static uint64_t key_of(struct task_id t)
{
    char text[64];
    return str_hash(str_of(task_format(t, text)));
}

struct task *tasks_find(const struct kube *k, struct task_id id)
{
    uint64_t i;
    return map_get(&k->tasks.by_id, key_of(id), &i) ? k->tasks.at[i] : NULL;
}

struct task *tasks_add(struct kube *k, struct task_id id, const char *space, const char *pod)
{
    struct task *t = xcalloc(1, sizeof *t);
    t->id = id;
    snprintf(t->space, sizeof t->space, "%s", space);
    t->pod = xstrdup(pod);
    t->document = BUF(DOCUMENT_MAX);
    vec_grow(k->tasks.at, k->tasks.n, k->tasks.cap);
    map_set(&k->tasks.by_id, key_of(id), k->tasks.n);
    k->tasks.at[k->tasks.n++] = t;
    return t;
}

static void task_free(struct task *t)
{
    follow_free(t->log);
    kept_free(t->kept);
    free(t->pod);
    free(t->uid);
    free(t->node);
    free(t->word);
    buf_free(&t->document);
    free(t);
}

void tasks_drop(struct kube *k, struct task *t)
{
    uint64_t i = 0;
    if (!map_get(&k->tasks.by_id, key_of(t->id), &i))
        abort();
    if (t->uid && !t->gang)
        pods_released(k, t->uid);
    map_remove(&k->tasks.by_id, key_of(t->id));
    k->tasks.at[i] = k->tasks.at[--k->tasks.n];
    if (i < k->tasks.n)
        map_set(&k->tasks.by_id, key_of(k->tasks.at[i]->id), i);
    task_free(t);
}

void tasks_free(struct kube *k)
{
    for (size_t i = 0; i < k->tasks.n; i++)
        task_free(k->tasks.at[i]);
    free(k->tasks.at);
    free(k->tasks.bound);
    loop_unwatch(k->tasks.gather);
    map_free(&k->tasks.by_id);
}

void task_set_text(char **at, const char *text)
{
    if (*at && strcmp(*at, text) == 0)
        return;
    free(*at);
    *at = xstrdup(text);
}

void task_reach_bound(struct task *t)
{
    if (t->step < STEP_BOUND)
        t->step = STEP_BOUND;
}

/* ---- telling ---- */

static void tell_end(struct kube *k, struct task *t)
{
    struct engine_event ev = { .kind = ENGINE_ENDED, .task = t->id, .t_ms = t->end.t_ms };
    ev.ended.code = t->end.code;
    ev.ended.signal = t->end.signal;
    ev.ended.why = t->end.why;
    t->told_ended = true;
    kube_tell(k, &ev);
}

/* Before READY, and without the lease, nothing is told: tasks_tell_all does it. */
void task_tell_started(struct kube *k, struct task *t)
{
    if (!k->is_ready)
        return;
    t->told_started = true;
    kube_tell(
        k, &(struct engine_event){ .kind = ENGINE_STARTED, .task = t->id, .t_ms = kube_now_ms(k) });
}

static void on_gathered(void *ctx)
{
    struct kube *k = ctx;
    struct tasks *all = &k->tasks;
    for (size_t i = 0; i < all->bounds; i++) {
        struct task *t = tasks_find(k, all->bound[i]);
        if (!t)
            continue;
        t->tell_soon = false;
        if (!t->told_started && (t->step == STEP_BOUND || t->step == STEP_RUNNING))
            task_tell_started(k, t);
    }
    all->bounds = 0;
}

/* Whoever hears of it writes it down, and one by one that is many small commits: together half the bytes are written. */
void task_tell_started_soon(struct kube *k, struct task *t)
{
    struct tasks *all = &k->tasks;
    if (!k->is_ready || t->told_started || t->tell_soon)
        return;
    if (all->bounds == 0)
        loop_timer_set(all->gather, GATHER_MS, 0);
    t->tell_soon = true;
    vec_grow(all->bound, all->bounds, all->bound_cap);
    all->bound[all->bounds++] = t->id;
}

void tasks_init(struct kube *k)
{
    k->tasks.gather = loop_timer(k->config.loop, on_gathered, k);
}

void task_tell_progress(struct kube *k, struct task *t, const char *text)
{
    if (!k->is_ready || (t->word && strcmp(t->word, text) == 0))
        return;
    task_set_text(&t->word, text);
    struct engine_event ev = { .kind = ENGINE_PROGRESS, .task = t->id, .t_ms = kube_now_ms(k) };
    ev.progress.text = str_of(text);
    kube_tell(k, &ev);
}

/* Its log has come whole, or will not. */
static void tell_end_when_logged(struct kube *k, struct task *t)
{
    bool late = t->lost || kube_now_ms(k) - t->ended_ms >= LOG_WAIT_MS;
    if (!k->is_ready || t->step != STEP_ENDED || t->told_ended)
        return;
    if (t->log && !follow_over(t->log) && !late)
        return;
    t->log = follow_free(t->log);
    if (t->began && !t->told_started)
        task_tell_started(k, t);
    tell_end(k, t);
}

static void tell_failed(struct kube *k, struct task *t)
{
    struct engine_event ev = { .kind = ENGINE_FAILED, .task = t->id, .t_ms = kube_now_ms(k) };
    err_set(&ev.failed, t->failed, "%s", t->word ? t->word : "");
    t->told_ended = t->forgotten = true;
    kube_tell(k, &ev);
}

/* One whose last lines are still to come is known to be there; its end is told with them. */
static void tell_end_again(struct kube *k, struct task *t)
{
    if (t->failed)
        tell_failed(k, t);
    else if (t->told_ended)
        tell_end(k, t);
    else if (t->began && t->log && !follow_over(t->log))
        task_tell_started(k, t);
    else
        tell_end_when_logged(k, t);
}

void tasks_step_all(struct kube *k)
{
    for (size_t i = k->tasks.n; i-- > 0;)
        if (i < k->tasks.n)
            tasks_step(k, k->tasks.at[i]);
}

void tasks_tell_all(struct kube *k)
{
    /* Telling may have a task forgotten or stopped, never dropped at once. */
    for (size_t i = 0; i < k->tasks.n; i++) {
        struct task *t = k->tasks.at[i];
        if (t->forgotten)
            continue;
        if (t->step == STEP_ENDED)
            tell_end_again(k, t);
        else if (t->step == STEP_RUNNING || (t->gang && t->step == STEP_BOUND))
            task_tell_started(k, t);
        else if (t->step == STEP_BINDING && !t->node)
            t->orphan_since_ms =
                kube_now_ms(k); /* not told: so it is started again, and has a machine */
        else {
            free(t->word);
            t->word = NULL;
            task_tell_progress(k, t, "its pod is being started");
        }
    }
}

void task_ended(struct kube *k, struct task *t, enum task_end why, int code, int signo)
{
    if (t->step == STEP_ENDED)
        return;
    t->step = STEP_ENDED;
    t->again_ms = 0;
    t->end.why = why;
    t->end.code = signo ? 0 : code;
    t->end.signal = signo;
    t->end.t_ms = t->ended_ms = kube_now_ms(k);
    if (t->began && !t->log && !t->gang && !t->gone)
        t->log = follow_new(k, t);
    if (t->log)
        follow_end_soon(t->log);
    tell_end_when_logged(k, t);
}

/* ---- requests ---- */

struct asked {
    struct kube *k;
    struct task_id task;
};

static struct kube_call *ask(struct kube *k, struct task *t, struct kube_request rq,
                             kube_reply_fn *fn)
{
    struct asked *a = xcalloc(1, sizeof *a);
    *a = (struct asked){ k, t->id };
    t->busy = true;
    return kube_send(k->client, &rq, fn, a);
}

/* The task that was asked for, if it is still there. */
static struct task *asked_for(void *ctx, struct kube **out_k)
{
    struct asked *a = ctx;
    struct task *t = tasks_find(a->k, a->task);
    *out_k = a->k;
    free(a);
    if (t)
        t->busy = false;
    return t;
}

static void again(struct kube *k, struct task *t, const struct kube_reply *r)
{
    t->again_ms = kube_now_ms(k) + reply_wait_ms(r, t->tries++);
}

static const char *pod_path(const struct task *t, const char *rest, char *out, size_t n)
{
    snprintf(out, n, "/api/v1/namespaces/%s/pods/%s%s", t->space, t->pod, rest);
    return out;
}

/* Nothing of it ran.  What there is of its pod goes; a start of the same task may come again. */
void task_fail(struct kube *k, struct task *t, enum err_code code, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->step = STEP_ENDED;
    t->failed = code;
    task_set_text(&t->word, text);
    if (!k->is_ready)
        return;
    tell_failed(k, t);
    tasks_step(k, t);
}

static void on_bound(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task *t = asked_for(ctx, &k);
    if (!t)
        return;
    if (r->status == 200 || r->status == 201) {
        task_reach_bound(t);
        t->tries = 0;
        if (t->gang && t->step == STEP_BOUND)
            task_tell_started_soon(k, t);
    } else if (r->status == 404) {
        t->gone = true;
        task_ended(k, t, t->stop ? t->stop_why : task_unasked(t), 0, SIGKILL);
    } else if (t->step == STEP_BINDING) {
        /* A conflict: it is bound, by us or by another; its pod tells where. */
        again(k, t, r);
        if (!reply_is_passing(r))
            log_event(k->config.log, LOG_WARN_, "pod.bind", "pod=%s/%s status=%d why=%s", t->space,
                      t->pod, r->status, r->err.msg);
    }
    tasks_step(k, t);
}

static void bind(struct kube *k, struct task *t)
{
    AUTO(buf_free) struct buf body = BUF(8192);
    char path[512];
    struct pod_binding b = { .space = t->space,
                             .pod = t->pod,
                             .uid = t->uid ? t->uid : "",
                             .node = str_of(t->node),
                             .task = t->id };
    pod_make_binding(&b, &body);
    ask(k, t,
        (struct kube_request){ .method = "POST",
                               .path = str_of(pod_path(t, "/binding", path, sizeof path)),
                               .body = buf_str(&body) },
        on_bound);
}

static void on_selected(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task *t = asked_for(ctx, &k);
    if (!t)
        return;
    if (r->status == 200)
        t->claims++;
    else
        again(k, t, r);
    tasks_step(k, t);
}

/* A volume that is made for its first pod has to be made where that goes.  False: there is none. */
static bool select_node(struct kube *k, struct task *t)
{
    const struct seen_pod *s = t->gang && t->uid ? pods_find(k, t->uid) : NULL;
    const char *claim = s ? claims_late(s->claims, t->claims) : NULL;
    AUTO(buf_free) struct buf body = BUF(1024);
    struct json_out j = { .b = &body };
    char path[512];
    if (!claim)
        return false;
    json_begin(&j, NULL, '{');
    json_begin(&j, "metadata", '{');
    json_begin(&j, "annotations", '{');
    json_put_str(&j, "volume.kubernetes.io/selected-node", str_of(t->node));
    json_end(&j, '}');
    json_end(&j, '}');
    json_end(&j, '}');
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/persistentvolumeclaims/%s", t->space, claim);
    ask(k, t,
        (struct kube_request){ .method = "PATCH",
                               .path = str_of(path),
                               .content_type = "application/merge-patch+json",
                               .body = buf_str(&body) },
        on_selected);
    return true;
}

/* A pod of this name is there: ours, of an earlier try, or the last one on its way out. */
static void on_got(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task_id id = ((struct asked *)ctx)->task;
    struct task *t = asked_for(ctx, &k);
    struct err e;
    if (!t)
        return;
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    AUTO(free_p) struct kube_pod *p = d ? kube_pod_read(json_root(d), &e) : NULL;
    struct task_id whose;
    bool strange = p && (!kube_pod_task(p, &whose) || !p->has_finalizer);
    if (p || r->status == 404)
        t->foreign = strange || (p && pods_anothers(k, p));
    if (strange) {
        task_fail(k, t, ERR_CONFLICT, "somebody else has made a pod called %s in %s", t->pod,
                  t->space);
        return;
    }
    if (p && t->foreign) { /* whatever became of that one is not what becomes of ours */
        task_tell_progress(k, t, "a pod of another daemon still has its pod's name");
        if (t->stuck_since_ms == 0)
            t->stuck_since_ms = kube_now_ms(k);
        again(k, t, r);
        return;
    }
    if (p)
        tasks_pod(k, t, p); /* which may be the end of it */
    t = tasks_find(k, id);
    if (t && t->step == STEP_MAKING && !t->busy)
        again(k, t, r);
    else if (t)
        tasks_step(k, t);
}

static void get_pod(struct kube *k, struct task *t)
{
    char path[512];
    ask(k, t, (struct kube_request){ .path = str_of(pod_path(t, "", path, sizeof path)) }, on_got);
}

static void on_made(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task *t = asked_for(ctx, &k);
    struct err e;
    if (!t)
        return;
    if (r->status == 201)
        t->foreign = false;
    if (t->step != STEP_MAKING) { /* the watch was faster than the answer */
        tasks_step(k, t);
        return;
    }
    if (r->status == 201) {
        AUTO(json_free_p) struct json_doc *d = json_read(r->body, &e);
        struct str uid = STR("");
        const struct json *meta = d ? json_find(json_root(d), "metadata") : NULL;
        if (meta && json_get_str(meta, "uid", 128, &uid, &e) == 0 && uid.n)
            task_set_text(&t->uid, uid.p);
        buf_free(&t->document);
        t->step = STEP_BINDING;
        t->tries = 0;
        t->stuck_since_ms = 0;
    } else if (r->status == 409) {
        get_pod(k, t);
        return;
    } else if (reply_is_passing(r) || !space_applied(k, t->space)) {
        again(k, t, r);
    } else {
        bool later = r->status == 403 || r->status == 404; /* a limit of the namespace */
        task_fail(k, t, later ? ERR_UNAVAILABLE : ERR_INVALID, "the cluster refused its pod: %s",
                  r->err.msg);
        return;
    }
    tasks_step(k, t);
}

/* ---- ending ---- */

static void tell_refused(struct kube *k, struct task *t, const struct kube_reply *r)
{
    char text[500];
    if (!t->gang || r->status == 0)
        return;
    snprintf(text, sizeof text, "pod %.200s is not let go yet: %.250s", t->pod, r->err.msg);
    task_tell_progress(k, t, text);
}

static void on_deleted(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task *t = asked_for(ctx, &k);
    if (!t)
        return;
    if (r->status == 404 && t->step != STEP_ENDED) {
        t->gone = true;
        task_ended(k, t, t->stop_why, 0, SIGKILL);
    } else if (reply_is_passing(r) || (t->gang && r->status >= 300 && r->status != 404)) {
        t->stop_sent = false; /* 429: a PodDisruptionBudget */
        again(k, t, r);
        tell_refused(k, t, r);
        return;
    } else if (t->lost && r->status < 300) { /* nobody there will tell its end */
        task_ended(k, t, t->stop_why, 0, SIGKILL);
    }
    tasks_step(k, t);
}

/* A pod of others is not ours to delete: whoever guards it is asked, and it has its own grace. */
static void evict_pod(struct kube *k, struct task *t)
{
    AUTO(buf_free) struct buf body = BUF(2048);
    struct json_out j = { .b = &body };
    char path[512];
    json_begin(&j, NULL, '{');
    json_put_str(&j, "apiVersion", STR("policy/v1"));
    json_put_str(&j, "kind", STR("Eviction"));
    json_begin(&j, "metadata", '{');
    json_put_str(&j, "name", str_of(t->pod));
    json_put_str(&j, "namespace", str_of(t->space));
    json_end(&j, '}');
    json_begin(&j, "deleteOptions", '{');
    json_begin(&j, "preconditions", '{');
    json_put_str(&j, "uid", str_of(t->uid));
    json_end(&j, '}');
    json_end(&j, '}');
    json_end(&j, '}');
    t->stop_sent = true;
    ask(k, t,
        (struct kube_request){ .method = "POST",
                               .path = str_of(pod_path(t, "/eviction", path, sizeof path)),
                               .body = buf_str(&body) },
        on_deleted);
}

static void delete_pod(struct kube *k, struct task *t)
{
    AUTO(buf_free) struct buf body = BUF(512);
    char path[512];
    int64_t s = t->lost ? 0 : (MAX(t->grace_ms, INT64_C(1)) + 999) / 1000;
    buf_printf(&body,
               "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"gracePeriodSeconds\":%lld}",
               (long long)s);
    t->stop_sent = true;
    ask(k, t,
        (struct kube_request){ .method = "DELETE",
                               .path = str_of(pod_path(t, "", path, sizeof path)),
                               .body = buf_str(&body) },
        on_deleted);
}

static void on_released(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task *t = asked_for(ctx, &k);
    if (!t)
        return;
    if (reply_is_passing(r)) {
        again(k, t, r);
        return;
    }
    if (r->status >= 300 && r->status != 404)
        log_event(k->config.log, LOG_WARN_, "pod.release", "pod=%s/%s status=%d why=%s", t->space,
                  t->pod, r->status, r->err.msg);
    tasks_drop(k, t);
}

static void on_removed(void *ctx, const struct kube_reply *r)
{
    struct kube *k;
    struct task *t = asked_for(ctx, &k);
    char path[512];
    if (!t)
        return;
    if (reply_is_passing(r)) {
        again(k, t, r);
        return;
    }
    ask(k, t,
        (struct kube_request){
            .method = "PATCH",
            .path = str_of(pod_path(t, "", path, sizeof path)),
            .content_type = "application/strategic-merge-patch+json",
            .body = STR("{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"" POD_FINALIZER
                        "\"]}}") },
        on_released);
}

/* Its end is written down, in its job's copy too: the pod may go, for nobody needs what it says any more.  Without a
 * grace, since nothing of it runs.  The finalizer goes last: a pod without it that nobody deleted would be nobody's,
 * and run on where its machine comes back. */
static void release(struct kube *k, struct task *t)
{
    char path[512];
    if (t->gang || t->gone || t->foreign) {
        tasks_drop(k, t);
        return;
    }
    if (!t->failed && copies_busy(k, t->id.job)) {
        t->again_ms = kube_now_ms(k) + COPY_WAIT_MS;
        return;
    }
    if (t->id.replica == 0)
        around_remove(k, t);
    pod_path(t, "?gracePeriodSeconds=0", path, sizeof path);
    ask(k, t, (struct kube_request){ .method = "DELETE", .path = str_of(path) }, on_removed);
}

/* What is next.  May drop the task. */
void tasks_step(struct kube *k, struct task *t)
{
    char path[512];
    if (t->busy || t->again_ms || !k->is_ready)
        return;
    if (t->forgotten && t->step == STEP_ENDED) {
        release(k, t);
    } else if (t->stop && !t->stop_sent && t->step != STEP_ENDED) {
        if (t->foreign)
            task_ended(k, t, t->stop_why, 0, SIGTERM);
        else if (!t->gang)
            delete_pod(k, t);
        else if ((!t->freeze || !owners_take(t->gang)) && t->step > STEP_MAKING)
            evict_pod(k, t);
    } else if (t->stop || t->step == STEP_ENDED) {
        return;
    } else if (t->step == STEP_MAKING && t->document.n) {
        snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods", t->space);
        ask(k, t,
            (struct kube_request){
                .method = "POST", .path = str_of(path), .body = buf_str(&t->document) },
            on_made);
    } else if (t->step == STEP_BINDING && t->node && !select_node(k, t)) {
        bind(k, t); /* one of an earlier life has its machine when it is started again */
    }
}

/* ---- time ---- */

static bool is_orphan(const struct task *t, int64_t now_ms)
{
    return t->step == STEP_BINDING && !t->node && t->orphan_since_ms &&
           now_ms - t->orphan_since_ms >= ORPHAN_MS;
}

/* The kubelet ends it when its grace is over, but does not hurry when that is made shorter. */
static void kill_late(struct kube *k, struct task *t)
{
    struct err e;
    t->kill_ms = 0;
    if (t->step == STEP_RUNNING && !t->gang && stream_signal(k, t, SIGKILL, &e) < 0)
        log_event(k->config.log, LOG_WARN_, "pod.kill", "pod=%s/%s why=%s", t->space, t->pod,
                  e.msg);
}

void tasks_tick(struct kube *k)
{
    int64_t now_ms = kube_now_ms(k);
    for (size_t i = k->tasks.n; i-- > 0;) {
        struct task *t = k->tasks.at[i];
        if (t->kill_ms && now_ms >= t->kill_ms)
            kill_late(k, t);
        if (t->again_ms && now_ms >= t->again_ms) {
            t->again_ms = 0;
            tasks_step(k, t);
            continue;
        }
        if (is_orphan(t, now_ms)) { /* its job is over, or nobody's */
            t->step = STEP_ENDED;
            t->told_ended = t->forgotten = true;
            tasks_step(k, t);
            continue;
        }
        if (t->stuck_since_ms && now_ms - t->stuck_since_ms >= STUCK_MS && t->step < STEP_RUNNING) {
            t->stuck_since_ms = 0;
            task_fail(k, t, ERR_INVALID, "its pod does not start: %s", t->word ? t->word : "?");
            continue;
        }
        tell_end_when_logged(k, t);
    }
}

/* ---- verbs ---- */

static void set_node(struct task *t, struct str node)
{
    if (t->node)
        return;
    t->node = xcalloc(node.n + 1, 1);
    memcpy(t->node, node.p, node.n);
}

int tasks_start(struct kube *k, const struct engine_start *s, struct err *e)
{
    char space[SPACE_MAX], name[POD_NAME_MAX];
    struct task *t = tasks_find(k, s->task);
    if (t && !t->forgotten) {
        set_node(t, s->node);
        tasks_step(k, t);
        return 0;
    }
    if (t && (t->busy || t->again_ms))
        return err_set(e, ERR_UNAVAILABLE, "what an earlier start left is still being removed");
    if (t)
        tasks_drop(k, t);
    space_of(k, s->tenant, space);
    t = tasks_add(k, s->task, space, pod_name(s->task, name));
    set_node(t, s->node);
    if (pod_check(&k->config.site, s->spec, e) < 0) {
        task_fail(k, t, ERR_INVALID, "%s", e->msg);
        return 0;
    }
    pod_make(&k->config.site, s, space, &t->document);
    if (buf_check(&t->document, e) < 0) {
        tasks_drop(k, t);
        return -1;
    }
    around_make(k, s, space);
    tasks_step(k, t);
    return 0;
}

void tasks_stop(struct kube *k, struct task *t, const struct task_stop *s)
{
    bool sooner = !t->stop || s->grace_ms < t->grace_ms || (t->freeze && !s->freeze);
    bool hurry = t->stop || s->grace_ms == 0;
    if (t->step == STEP_ENDED || !sooner)
        return;
    t->kill_ms = kube_now_ms(k) + s->grace_ms + (hurry ? 0 : KUBELET_MS);
    t->stop = true;
    t->freeze = s->freeze;
    t->grace_ms = s->grace_ms;
    t->stop_why = s->why;
    t->stop_sent = false;
    t->again_ms = 0;
    if (t->step == STEP_MAKING && !t->busy && t->document.n == 0 && (!t->gang || !s->freeze)) {
        task_ended(k, t, s->why, 0, SIGTERM);
        return;
    }
    if (s->grace_ms == 0)
        kill_late(k, t);
    tasks_step(k, t);
}

void tasks_forget(struct kube *k, struct task *t)
{
    if (t->step != STEP_ENDED || !t->told_ended)
        return;
    t->forgotten = true;
    t->tries = 0;
    tasks_step(k, t);
}
