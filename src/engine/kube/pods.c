/* Every pod of the cluster, sorted: tasks of ours, those that others want placed by us, and the rest, of which
 * only what they take from their machines is kept. */
#include <stdio.h>

#include "engine/kube/state.h"

#define DEVICE_TEXTS_MAX 10000u

void pods_list(struct kube *k)
{
    k->pod_list++;
}

uint64_t pods_devices(struct kube *k, struct str text)
{
    uint32_t known = names_find(&k->devices, text);
    if (known != NAME_NONE || k->devices.n < DEVICE_TEXTS_MAX)
        return names_intern(&k->devices, text);
    log_event(k->config.log, LOG_WARN_, "pod.devices", "why=%s",
              "more different requests for devices than are kept");
    return 0;
}

int pods_load(struct kube *k, const struct kube_pod *p, struct load *out, struct err *e)
{
    AUTO(buf_free) struct buf devices = BUF(DEVICES_TEXT_MAX);
    *out = (struct load){ .cpu_milli = p->asks.cpu_milli,
                          .mem_mib = p->asks.mem_mib,
                          .gpus = kube_amounts_count(&p->asks, k->config.site.gpu) };
    int rc = p->asks.n_extended ? pod_devices(&p->asks, k->config.site.gpu, &devices, e) : 0;
    out->devices = devices.n ? pods_devices(k, buf_str(&devices)) : 0;
    return rc;
}

static uint64_t key_of(const char *uid)
{
    return str_hash(str_of(uid));
}

struct seen_pod *pods_find(const struct kube *k, const char *uid)
{
    uint64_t v;
    return map_get(&k->pods_seen.by_uid, key_of(uid), &v) ? k->pods_seen.at[v] : NULL;
}

static struct seen_pod *find_or_add(struct kube *k, const char *uid)
{
    struct seen_pods *all = &k->pods_seen;
    struct seen_pod *s = pods_find(k, uid);
    if (s)
        return s;
    s = xcalloc(1, sizeof *s);
    s->uid = xstrdup(uid);
    s->machine = NONE;
    vec_grow(all->at, all->n, all->cap);
    map_set(&all->by_uid, key_of(uid), all->n);
    all->at[all->n++] = s;
    return s;
}

/* What it takes of its machine is given back. */
static void uncount(struct kube *k, struct seen_pod *s)
{
    if (s->counts)
        machines_load(k, s->machine, &s->takes, false);
    s->counts = false;
}

static void drop(struct kube *k, struct seen_pod *s)
{
    struct seen_pods *all = &k->pods_seen;
    uint64_t i = 0;
    uncount(k, s);
    map_get(&all->by_uid, key_of(s->uid), &i);
    map_remove(&all->by_uid, key_of(s->uid));
    all->at[i] = all->at[--all->n];
    if (i < all->n)
        map_set(&all->by_uid, key_of(all->at[i]->uid), i);
    claims_free(s->claims);
    free(s->uid);
    free(s);
}

static void count(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    struct load now;
    struct err e;
    if (pods_load(k, p, &now, &e) < 0)
        log_event(k->config.log, LOG_DEBUG_, "pod.devices", "pod=%s/%s why=%s", p->ns, p->name,
                  e.msg);
    uint32_t machine = machines_number(k, p->node);
    if (s->counts && s->machine == machine && memcmp(&s->takes, &now, sizeof now) == 0)
        return;
    uncount(k, s);
    s->machine = machine;
    s->takes = now;
    s->counts = true;
    machines_load(k, machine, &now, true);
}

static bool is_over(const struct kube_pod *p)
{
    return p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

/* Two daemons with a store each may share a cluster, one after the other: each knows its own pods by the daemon
 * they name. */
bool pods_anothers(const struct kube *k, const struct kube_pod *p)
{
    const char *whose = p->own[POD_OWN_DAEMON];
    return p->has_finalizer && whose[0] && strcmp(whose, k->config.site.daemon) != 0;
}

/* A pod of ours says whose task it is, and stands where that tenant's do: what others call so is not ours. */
static bool is_own(const struct kube *k, const struct kube_pod *p, struct task_id *out)
{
    char name[POD_NAME_MAX], space[SPACE_MAX];
    if (!p->has_finalizer || pods_anothers(k, p) || !kube_pod_task(p, out) ||
        strcmp(pod_name(*out, name), p->name) != 0)
        return false;
    space_of(k, str_of(p->own[POD_OWN_TENANT]), space);
    return strcmp(space, p->ns) == 0;
}

static void own_pod(struct kube *k, const struct seen_pod *s, const struct kube_pod *p,
                    struct task_id id)
{
    struct task *t = tasks_find(k, id);
    if (!t && (s->released || !p->has_finalizer))
        return; /* its end is written down; the server may tell of it for a while */
    if (!t)
        t = tasks_add(k, id, p->ns, p->name); /* of an earlier life of ours */
    if (!k->is_ready && !t->document.n)
        kept_note(t, p);
    if (strcmp(t->space, p->ns) == 0)
        tasks_pod(k, t, p);
}

static void other_pod(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    bool ours = strcmp(p->scheduler, k->config.site.scheduler) == 0 && !pods_anothers(k, p);
    if (is_over(p)) {
        if (s->gang)
            gangs_pod_over(k, s, p);
        uncount(k, s);
        return;
    }
    if (ours && (!p->node[0] || s->gang || p->own[POD_OWN_JOB][0]))
        gangs_pod(k, s, p);
    if (p->node[0] && !s->gang)
        count(k, s, p);
    else if (s->gang)
        uncount(k, s);
}

void pods_count_again(struct kube *k, struct seen_pod *s)
{
    if (s->counts || s->machine == NONE)
        return;
    s->counts = true;
    machines_load(k, s->machine, &s->takes, true);
}

void pods_released(struct kube *k, const char *uid)
{
    struct seen_pod *s = pods_find(k, uid);
    if (s)
        s->released = true;
}

static void gone(struct kube *k, struct seen_pod *s)
{
    struct task *t = s->own ? tasks_find(k, s->task) : NULL;
    if (s->gang)
        gangs_pod_gone(k, s);
    else if (t)
        tasks_pod_gone(k, t);
    drop(k, s);
}

void pods_object(struct kube *k, enum kube_change what, const struct json *pod)
{
    struct err e;
    struct task_id id;
    AUTO(free_p) struct kube_pod *p = kube_pod_read(pod, &e);
    if (!p) {
        log_event(k->config.log, LOG_WARN_, "pod.unread", "why=%s", e.msg);
        return;
    }
    struct seen_pod *s = find_or_add(k, p->uid);
    s->seen = k->pod_list;
    s->own = s->own || is_own(k, p, &id);
    if (s->own && kube_pod_task(p, &id)) {
        s->task = id;
        own_pod(k, s, p, id);
    } else {
        other_pod(k, s, p);
    }
    if (what == KUBE_DELETED)
        gone(k, s);
}

void pods_synced(struct kube *k)
{
    for (size_t i = k->pods_seen.n; i-- > 0;)
        if (i < k->pods_seen.n && k->pods_seen.at[i]->seen != k->pod_list)
            gone(k, k->pods_seen.at[i]);
    k->pods_synced = true;
}

void pods_free(struct kube *k)
{
    for (size_t i = 0; i < k->pods_seen.n; i++) {
        claims_free(k->pods_seen.at[i]->claims);
        free(k->pods_seen.at[i]->uid);
        free(k->pods_seen.at[i]);
    }
    free(k->pods_seen.at);
    names_free(&k->devices);
    map_free(&k->pods_seen.by_uid);
}
