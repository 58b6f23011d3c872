/* How many pods a gang takes, asked from the object that its operator, or somebody, made. */
#include <stdio.h>

#include "engine/kube/state.h"

#define LOOK_AGAIN_MS 5000

static void on_looked(void *ctx, const struct kube_reply *r)
{
    struct gang *g = ctx;
    struct kube *k = g->k;
    struct gang_size size;
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    g->look = NULL;
    g->look_ms = kube_now_ms(k) + LOOK_AGAIN_MS;
    if (d && gang_size_read(g->object, json_root(d), g->part, &size, &e) == 0) {
        g->want = size.min;
        g->look_ms = 0;
    } else {
        log_event(k->config.log, LOG_DEBUG_, "gang.size", "gang=%s status=%d why=%s", g->ref,
                  r->status, r->status == 200 ? e.msg : r->err.msg);
    }
    gangs_set_dirty(g);
}

/* The object that its operator, or somebody, made or will make. */
void gangs_look_for_size(struct gang *g)
{
    const struct gang_object_info *info = gang_object_info(g->object);
    char path[1024];
    if (g->look || kube_now_ms(g->k) < g->look_ms)
        return;
    snprintf(path, sizeof path, "/apis/%s/namespaces/%s/%s/%s", info->api_version, g->space,
             info->plural, g->name);
    g->look = kube_send(g->k->client, &(struct kube_request){ .path = str_of(path) }, on_looked, g);
}
