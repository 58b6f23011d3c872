/* The volume claims of a pod of others, read one after the other: a volume that is there says on which machines
 * its pod may go; one that is made for its first pod is told the machine before the pod is bound (tasks.c); any
 * other holds the pod up, with a sentence. */
#include <stdarg.h>
#include <stdio.h>

#include "engine/kube/state.h"

#define AGAIN_MS 2000

struct claims {
    struct kube *k;
    struct seen_pod *of;
    char space[SPACE_MAX];
    char **name;
    bool *late;
    size_t n, next; /* next: whose turn it is; n: all are known */
    struct kube_call *call;
    char *problem;
    int64_t again_ms;
};

static void go_on(struct claims *c);

static void problem(struct claims *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void problem(struct claims *c, const char *fmt, ...)
{
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    free(c->problem);
    c->problem = xstrdup(text);
    c->again_ms = kube_now_ms(c->k) + AGAIN_MS;
    gangs_changed(c->of);
}

static void look_at(struct claims *c, kube_reply_fn *fn, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void look_at(struct claims *c, kube_reply_fn *fn, const char *fmt, ...)
{
    char path[2500];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    c->call = kube_send(c->k->client, &(struct kube_request){ .path = str_of(path) }, fn, c);
}

static void known(struct claims *c)
{
    c->next++;
    go_on(c);
}

static void on_volume(void *ctx, const struct kube_reply *r)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct claims *c = ctx;
    struct err e = r->err;
    struct doc d = { .e = &e };
    c->call = NULL;
    AUTO(json_free_p) struct json_doc *doc = r->status == 200 ? json_read(r->body, &e) : NULL;
    const struct where *w = doc ? where_of_volume(&d, json_root(doc), &a) : NULL;
    if (!doc || d.bad) {
        problem(c, "the volume of claim %s cannot be read: %s", c->name[c->next], e.msg);
        return;
    }
    gangs_narrow(c->k, c->of, w);
    known(c);
}

static void on_class(void *ctx, const struct kube_reply *r)
{
    struct claims *c = ctx;
    struct err e = r->err;
    struct doc d = { .e = &e };
    c->call = NULL;
    AUTO(json_free_p) struct json_doc *doc = r->status == 200 ? json_read(r->body, &e) : NULL;
    const struct json *o = doc ? json_root(doc) : NULL;
    bool first = o && strcmp(doc_text(&d, o, "volumeBindingMode"), "WaitForFirstConsumer") == 0;
    bool nobody = o && strcmp(doc_text(&d, o, "provisioner"), "kubernetes.io/no-provisioner") == 0;
    if (!first || nobody || d.bad) {
        problem(c, "claim %s is not bound to a volume%s", c->name[c->next],
                nobody ? ", and nobody makes volumes of its class" : " yet");
        return;
    }
    c->late[c->next] = true;
    known(c);
}

static void on_claim(void *ctx, const struct kube_reply *r)
{
    struct claims *c = ctx;
    struct err e = r->err;
    struct doc d = { .e = &e };
    const char *name = c->name[c->next];
    c->call = NULL;
    AUTO(json_free_p) struct json_doc *doc = r->status == 200 ? json_read(r->body, &e) : NULL;
    const struct json *o = doc ? json_root(doc) : NULL;
    const struct json *spec = doc_object(&d, o, "spec");
    const char *volume = doc_text(&d, spec, "volumeName");
    const char *class = doc_text(&d, spec, "storageClassName");
    const char *phase = doc_text(&d, doc_object(&d, o, "status"), "phase");
    if (r->status == 404)
        problem(c, "claim %s is not there", name);
    else if (!o || d.bad)
        problem(c, "claim %s cannot be read: %s", name, e.msg);
    else if (volume[0] && strcmp(phase, "Bound") == 0)
        look_at(c, on_volume, "/api/v1/persistentvolumes/%s", volume);
    else if (!volume[0] && class[0])
        look_at(c, on_class, "/apis/storage.k8s.io/v1/storageclasses/%s", class);
    else
        problem(c, "claim %s is not bound to a volume yet", name);
}

static void go_on(struct claims *c)
{
    if (c->next < c->n) {
        look_at(c, on_claim, "/api/v1/namespaces/%s/persistentvolumeclaims/%s", c->space,
                c->name[c->next]);
        return;
    }
    free(c->problem);
    c->problem = NULL;
    gangs_changed(c->of);
}

struct claims *claims_new(struct kube *k, struct seen_pod *s, const struct kube_pod *p)
{
    struct claims *c = xcalloc(1, sizeof *c);
    c->k = k;
    c->of = s;
    snprintf(c->space, sizeof c->space, "%s", p->ns);
    c->name = xcalloc(p->n_claims, sizeof *c->name);
    c->late = xcalloc(p->n_claims, sizeof *c->late);
    for (size_t i = 0; i < p->n_claims; i++)
        c->name[c->n++] = xstrdup(p->claims[i]);
    go_on(c);
    return c;
}

void claims_look(struct claims *c)
{
    if (!c->call && c->next < c->n && kube_now_ms(c->k) >= c->again_ms)
        go_on(c);
}

bool claims_known(const struct claims *c)
{
    return !c || c->next == c->n;
}

const char *claims_problem(const struct claims *c)
{
    return c->problem;
}

const char *claims_late(const struct claims *c, uint32_t i)
{
    for (size_t at = 0; c && at < c->n; at++)
        if (c->late[at] && i-- == 0)
            return c->name[at];
    return NULL;
}

struct claims *claims_free(struct claims *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->n; i++)
        free(c->name[i]);
    free(c->name);
    free(c->late);
    free(c->problem);
    kube_cancel(c->call);
    free(c);
    return NULL;
}
