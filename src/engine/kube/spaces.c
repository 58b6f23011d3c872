/* Tenants as namespaces: what is to stand there is applied when it changes, and again from time to time, so
 * that what somebody changed by hand is as it was. */
#include <stdio.h>

#include "engine/kube/state.h"
#include "engine/kube/tenant_make.h"

#define APPLY_AGAIN_MS 60000
#define RETRY_MS 2000
#define APPLY "application/apply-patch+yaml"

struct space {
    struct kube *k;
    char *tenant;
    char name[SPACE_MAX];
    struct arena arena; /* the requests */
    struct tenant_object object[TENANT_OBJECTS];
    size_t n, next; /* next: whose answer is awaited */
    struct kube_call *call;
    int64_t due_ms;
    bool applied; /* once, all of it */
};

static struct tenant_site site_of(const struct kube *k)
{
    return (struct tenant_site){ .prefix = str_of(k->config.prefix),
                                 .own = str_of(k->config.space),
                                 .gpu = str_of(k->config.site.gpu),
                                 .user_prefix = str_of(k->config.user_prefix) };
}

void space_of(const struct kube *k, struct str tenant, char out[static SPACE_MAX])
{
    _Static_assert(SPACE_MAX >= KUBE_NAME, "a namespace's name fits");
    struct tenant_site site = site_of(k);
    tenant_namespace(&site, tenant, out);
}

struct str space_tenant(const struct kube *k, const char *space)
{
    for (size_t i = 0; i < k->spaces.n; i++)
        if (strcmp(k->spaces.at[i]->name, space) == 0)
            return str_of(k->spaces.at[i]->tenant);
    return str_of(k->config.other_tenant);
}

bool space_applied(const struct kube *k, const char *space)
{
    for (size_t i = 0; i < k->spaces.n; i++)
        if (strcmp(k->spaces.at[i]->name, space) == 0)
            return k->spaces.at[i]->applied;
    return true; /* nobody told us of it: waiting would not help */
}

/* ---- applying ---- */

static void step(struct space *s);

static void later(struct space *s, int64_t ms)
{
    s->due_ms = kube_now_ms(s->k) + ms;
}

static void on_applied(void *ctx, const struct kube_reply *r)
{
    struct space *s = ctx;
    const struct tenant_object *o = &s->object[s->next];
    bool gone = r->status == 404 && strcmp(o->method, "DELETE") == 0;
    s->call = NULL;
    if (r->status >= 300 && !gone)
        log_event(s->k->config.log, LOG_WARN_, "tenant.apply", "tenant=%s path=%s status=%d why=%s",
                  s->tenant, o->path, r->status, r->err.msg);
    if (r->status == 0 || r->status == 429 || r->status >= 500 ||
        (s->next == 0 && r->status >= 300)) {
        later(s, MAX((int64_t)RETRY_MS, r->retry_after_ms));
        return;
    }
    s->next++;
    step(s);
}

static void step(struct space *s)
{
    if (s->next >= s->n) {
        s->applied = true;
        later(s, APPLY_AGAIN_MS);
        return;
    }
    const struct tenant_object *o = &s->object[s->next];
    s->call = kube_send(
        s->k->client,
        &(struct kube_request){
            .method = o->method, .path = str_of(o->path), .content_type = APPLY, .body = o->body },
        on_applied, s);
}

/* A namespace that somebody else made is not taken. */
static void on_space(void *ctx, const struct kube_reply *r)
{
    struct space *s = ctx;
    struct err e;
    s->call = NULL;
    if (r->status != 200 && r->status != 404) {
        later(s, MAX((int64_t)RETRY_MS, r->retry_after_ms));
        return;
    }
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    if (r->status == 200 && (!d || !tenant_has_namespace(json_root(d), str_of(s->tenant)))) {
        log_event(s->k->config.log, LOG_ERROR_, "tenant.namespace", "tenant=%s namespace=%s why=%s",
                  s->tenant, s->name,
                  "somebody else made it; give it our label and annotation "
                  "(docs/ops/kubernetes.md), or choose another prefix");
        later(s, APPLY_AGAIN_MS);
        return;
    }
    s->next = 0;
    step(s);
}

static void begin(struct space *s)
{
    char path[160];
    snprintf(path, sizeof path, "/api/v1/namespaces/%s", s->name);
    s->due_ms = INT64_MAX;
    s->call = kube_send(s->k->client, &(struct kube_request){ .path = str_of(path) }, on_space, s);
}

void spaces_tick(struct kube *k)
{
    int64_t now_ms = kube_now_ms(k);
    for (size_t i = 0; i < k->spaces.n; i++)
        if (!k->spaces.at[i]->call && now_ms >= k->spaces.at[i]->due_ms)
            begin(k->spaces.at[i]);
}

static struct space *find_or_add(struct kube *k, struct str tenant)
{
    struct spaces *all = &k->spaces;
    for (size_t i = 0; i < all->n; i++)
        if (str_is(tenant, all->at[i]->tenant))
            return all->at[i];
    struct space *s = xcalloc(1, sizeof *s);
    s->k = k;
    s->tenant = xcalloc(tenant.n + 1, 1);
    memcpy(s->tenant, tenant.p, tenant.n);
    space_of(k, tenant, s->name);
    vec_grow(all->at, all->n, all->cap);
    all->at[all->n++] = s;
    return s;
}

int spaces_tenant(struct kube *k, const struct engine_tenant *t, struct err *e)
{
    struct tenant_site site = site_of(k);
    struct arena a = { 0 };
    struct tenant_object object[TENANT_OBJECTS];
    size_t n;
    if (tenant_make(&site, t, &a, object, &n, e) < 0) {
        arena_free(&a);
        return -1;
    }
    struct space *s = find_or_add(k, t->name);
    s->call = kube_cancel(s->call); /* what it was about to say is said anew */
    arena_free(&s->arena);
    s->arena = a;
    memcpy(s->object, object, sizeof object);
    s->n = n;
    s->due_ms = 0;
    begin(s);
    return 0;
}

void spaces_free(struct kube *k)
{
    for (size_t i = 0; i < k->spaces.n; i++) {
        struct space *s = k->spaces.at[i];
        kube_cancel(s->call);
        arena_free(&s->arena);
        free(s->tenant);
        free(s);
    }
    free(k->spaces.at);
}
