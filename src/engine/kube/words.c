/* Why a gang waits, written into each of its pods that do: in its PodScheduled condition, and as an event beside it. */
#include <stdio.h>

#include "base/date.h"
#include "engine/kube/state.h"

static void on_event_made(void *ctx, const struct kube_reply *r)
{
    struct kube *k = ctx;
    if (r->status >= 300 && r->status != 404 && r->status != 409)
        log_event(k->config.log, LOG_WARN_, "pod.word", "status=%d why=%s", r->status, r->err.msg);
}

struct worded {
    struct kube *k;
    char *uid;
};

static void write_word(struct kube *k, const struct gang *g, struct member *m);

/* One at a time: the server may turn the order of two that are on their way. */
static void on_word(void *ctx, const struct kube_reply *r)
{
    struct worded *about = ctx;
    struct kube *k = about->k;
    struct seen_pod *s = pods_find(k, about->uid);
    struct member *m = s && s->gang ? gangs_member(s->gang, s) : NULL;
    free(about->uid);
    free(about);
    on_event_made(k, r);
    if (!s)
        return;
    s->writing = false;
    if (m && s->stale)
        write_word(k, s->gang, m);
    else if (m && (r->status == 0 || r->status >= 429))
        m->told = false; /* with the next word, at the latest */
}

static void write_condition(struct kube *k, const struct gang *g, const struct member *m)
{
    AUTO(buf_free) struct buf body = BUF(8192);
    struct json_out j = { .b = &body };
    char path[512], when[32];
    struct worded *about = xcalloc(1, sizeof *about);
    *about = (struct worded){ k, xstrdup(m->seen->uid) };
    date_stamp(kube_now_ms(k), when);
    json_begin(&j, NULL, '{');
    json_begin(&j, "status", '{');
    json_begin(&j, "conditions", '[');
    json_begin(&j, NULL, '{');
    json_put_str(&j, "type", STR("PodScheduled"));
    json_put_str(&j, "status", STR("False"));
    json_put_str(&j, "reason", g->final ? STR(GANG_CANCELLED) : STR("Unschedulable"));
    json_put_str(&j, "message", str_of(g->word));
    json_put_str(&j, "lastTransitionTime", str_of(when));
    json_end(&j, '}');
    json_end(&j, ']');
    json_end(&j, '}');
    json_end(&j, '}');
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods/%s/status", g->space, m->pod);
    kube_send(k->client,
              &(struct kube_request){ .method = "PATCH",
                                      .path = str_of(path),
                                      .content_type = "application/strategic-merge-patch+json",
                                      .body = buf_str(&body) },
              on_word, about);
}

static void write_event(struct kube *k, const struct gang *g, const struct member *m)
{
    AUTO(buf_free) struct buf body = BUF(8192);
    struct json_out j = { .b = &body };
    char path[512], when[32], name[300];
    int64_t now_ms = kube_now_ms(k);
    snprintf(name, sizeof name, "%.200s.%llx", m->pod, (unsigned long long)clock_mono_ns());
    date_stamp(now_ms, when);
    json_begin(&j, NULL, '{');
    json_begin(&j, "metadata", '{');
    json_put_str(&j, "name", str_of(name));
    json_put_str(&j, "namespace", str_of(g->space));
    json_end(&j, '}');
    json_begin(&j, "involvedObject", '{');
    json_put_str(&j, "apiVersion", STR("v1"));
    json_put_str(&j, "kind", STR("Pod"));
    json_put_str(&j, "namespace", str_of(g->space));
    json_put_str(&j, "name", str_of(m->pod));
    json_put_str(&j, "uid", str_of(m->seen->uid));
    json_end(&j, '}');
    json_put_str(&j, "type", STR("Warning"));
    json_put_str(&j, "reason", STR("FailedScheduling"));
    json_put_str(&j, "message", str_of(g->word));
    json_put_str(&j, "firstTimestamp", str_of(when));
    json_put_str(&j, "lastTimestamp", str_of(when));
    json_put_u64(&j, "count", 1);
    json_begin(&j, "source", '{');
    json_put_str(&j, "component", str_of(k->config.site.scheduler));
    json_end(&j, '}');
    json_end(&j, '}');
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", g->space);
    kube_send(
        k->client,
        &(struct kube_request){ .method = "POST", .path = str_of(path), .body = buf_str(&body) },
        on_event_made, k);
}

static void write_word(struct kube *k, const struct gang *g, struct member *m)
{
    struct seen_pod *s = m->seen;
    s->stale = s->writing;
    if (s->writing)
        return;
    s->writing = true;
    m->told = true;
    write_condition(k, g, m);
    write_event(k, g, m);
}

void gangs_word(struct kube *k, struct str ref, const struct engine_word *w)
{
    struct gang *g = gangs_find(k, ref);
    if (!g)
        return;
    if (w->final) {
        g->final = true;
        owners_leave(g);
    }
    bool same = g->word && str_is(w->text, g->word);
    if (!same) {
        free(g->word);
        g->word = xcalloc(w->text.n + 1, 1);
        memcpy(g->word, w->text.p, w->text.n);
    }
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->member[i];
        if (!gangs_is_free(m) || (same && m->told))
            continue;
        write_word(k, g, m);
    }
}
