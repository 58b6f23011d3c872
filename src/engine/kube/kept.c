/* What is known here of jobs of an earlier life: from copies (copies.c), from what their pods say, or both.  Enough to
 * make a job anew whose store is lost.  Whoever has it still does not need it. */
#include "engine/kube/state.h"

struct kept {
    char *spec, *tenant, *user;
    int64_t made_ms;
};

/* A job: its copy, and the pods of its latest run. */
struct known {
    uint64_t job;
    uint32_t run, replicas; /* run 0: it has no pods; replicas: up to the last that has one */
    struct task *says;      /* its first pod, which has the spec; NULL: it is not there */
    const char *record;     /* NULL: there is no copy */
};

struct knowns {
    struct known *at;
    size_t n, cap;
    struct map by_job;
};

struct kept *kept_free(struct kept *p)
{
    if (!p)
        return NULL;
    free(p->spec);
    free(p->tenant);
    free(p->user);
    free(p);
    return NULL;
}

void kept_note(struct task *t, const struct kube_pod *p)
{
    if (t->kept || t->id.replica != 0 || !p->own[POD_OWN_SPEC][0])
        return;
    t->kept = xcalloc(1, sizeof *t->kept);
    *t->kept = (struct kept){ .spec = xstrdup(p->own[POD_OWN_SPEC]),
                              .tenant = xstrdup(p->own[POD_OWN_TENANT]),
                              .user = xstrdup(p->own[POD_OWN_USER]),
                              .made_ms = p->created_ms };
}

/* ---- gathering ---- */

static struct known *known_of(struct knowns *all, uint64_t job)
{
    uint64_t i;
    if (map_get(&all->by_job, job, &i))
        return &all->at[i];
    vec_grow(all->at, all->n, all->cap);
    map_set(&all->by_job, job, all->n);
    all->at[all->n] = (struct known){ .job = job };
    return &all->at[all->n++];
}

static void add_pod(struct knowns *all, struct task *t)
{
    struct known *j = known_of(all, t->id.job);
    if (t->id.run > j->run)
        *j = (struct known){ .job = j->job, .run = t->id.run, .record = j->record };
    if (t->id.run != j->run)
        return;
    j->replicas = MAX(j->replicas, t->id.replica + 1);
    if (t->kept)
        j->says = t;
}

static void gather(struct kube *k, struct knowns *all)
{
    for (size_t i = 0; i < k->copies.n; i++) {
        uint64_t job;
        const char *text = copies_text(k, i, &job);
        if (text)
            known_of(all, job)->record = text;
    }
    for (size_t i = 0; i < k->tasks.n; i++)
        if (!k->tasks.at[i]->gang)
            add_pod(all, k->tasks.at[i]);
}

/* ---- telling ---- */

/* On which machine each of its replicas is; "": on none. */
static const struct str *nodes_of(struct kube *k, const struct known *j, uint32_t n,
                                  struct arena *a)
{
    struct str *node = arena_array(a, struct str, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *one = tasks_find(k, (struct task_id){ j->job, j->run, i });
        node[i] = str_of(one && one->node ? one->node : "");
    }
    return node;
}

static struct engine_kept said_by(struct kube *k, const struct task *t, struct json_doc **doc,
                                  struct arena *a)
{
    struct spec *spec = arena_array(a, struct spec, 1);
    struct err e;
    *doc = json_read(str_of(t->kept->spec), &e);
    if (!*doc || spec_read_kept(json_root(*doc), a, spec, &e) < 0) {
        log_event(k->config.log, LOG_ERROR_, "pod.spec", "pod=%s/%s why=%s", t->space, t->pod,
                  e.msg);
        return (struct engine_kept){ .spec = NULL };
    }
    return (struct engine_kept){ .spec = spec,
                                 .tenant = str_of(t->kept->tenant),
                                 .user = str_of(t->kept->user),
                                 .made_ms = t->kept->made_ms };
}

static void tell(struct kube *k, const struct known *j)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *doc = NULL;
    bool left = false;
    struct engine_event ev = { .kind = ENGINE_KEPT,
                               .task = { .job = j->job, .run = j->run },
                               .t_ms = kube_now_ms(k) };
    if (j->says)
        ev.kept = said_by(k, j->says, &doc, &a);
    ev.kept.record = str_of(j->record ? j->record : "");
    ev.kept.nodes = j->replicas;
    ev.kept.node = nodes_of(k, j, j->replicas, &a);
    ev.kept.out_left = &left;
    kube_tell(k, &ev);
    if (left)
        return;
    if (j->says)
        j->says->kept = kept_free(j->says->kept);
    copies_told(k, j->job);
}

static int by_job(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* In the order of their numbers: that is how they were made. */
void kept_tell(struct kube *k)
{
    struct knowns all = { 0 };
    gather(k, &all);
    if (all.n)
        qsort(all.at, all.n, sizeof *all.at, by_job);
    for (size_t i = 0; i < all.n; i++)
        if (all.at[i].says || all.at[i].record)
            tell(k, &all.at[i]);
    free(all.at);
    map_free(&all.by_job);
}
