/* What a job needs beside its pods: the Service of a gang, a claim for what it saves, a home for its user. */
#include <stdio.h>

#include "engine/kube/state.h"

/* One that is there already is as good. */
static void post(struct kube *k, const char *space, const char *path, struct str body)
{
    errand_send(
        k, &(struct errand_of){ .method = "POST", .path = path, .space = space, .body = body });
}

void around_make(struct kube *k, const struct engine_start *s, const char *space)
{
    const struct pod_site *site = &k->config.site;
    AUTO(buf_free) struct buf body = BUF(8192);
    char path[512], name[POD_NAME_MAX];
    if (s->n_slots > 1 && s->task.replica == 0) {
        pod_make_service(s->task.job, space, &body);
        snprintf(path, sizeof path, "/api/v1/namespaces/%s/services", space);
        post(k, space, path, buf_str(&body));
    }
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/persistentvolumeclaims", space);
    struct pod_claim c = { .space = space,
                           .storage_class = site->state_class,
                           .access = s->n_slots > 1 ? "ReadWriteMany" : "ReadWriteOnce" };
    if (pod_keeps_state(site, s->spec) && s->task.replica == 0) {
        buf_truncate(&body, 0);
        c.name = pod_job_name(s->task.job, name);
        c.size = site->state_size;
        pod_make_claim(&c, &body);
        post(k, space, path, buf_str(&body));
    }
    if (site->home_size[0] && s->task.replica == 0) {
        buf_truncate(&body, 0);
        c.name = pod_home_name(s->user.name, name);
        c.size = site->home_size;
        c.access = site->home_access;
        pod_make_claim(&c, &body);
        post(k, space, path, buf_str(&body));
    }
}

/* What it saved stays: it is its user's. */
void around_remove(struct kube *k, const struct task *t)
{
    char path[512], name[POD_NAME_MAX];
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/services/%s", t->space,
             pod_job_name(t->id.job, name));
    errand_send(k, &(struct errand_of){ .method = "DELETE", .path = path });
}
