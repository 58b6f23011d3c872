/* A lease says which daemon decides: one that loses it does nothing more, and another takes it when it was not
 * renewed for its time.  Times are compared by our own clock only: how long a renewal has been the last one. */
#include <stdio.h>

#include "base/date.h"
#include "engine/kube/state.h"

#define LEASE_NAME "nightshift"
#define LEASE_S 15
#define RENEW_MS 5000
#define RETRY_MS 1000
#define GIVE_UP_MS 10000 /* without a renewal: less than LEASE_S, so that two never hold it */

static void later(struct kube *k, int64_t ms)
{
    k->lease.due_ms = kube_now_ms(k) + ms;
}

static void set_text(char **at, struct str text)
{
    free(*at);
    *at = xcalloc(text.n + 1, 1);
    memcpy(*at, text.p, text.n);
}

static void lose(struct kube *k, const char *why)
{
    if (!k->lease.held)
        return;
    k->lease.held = false;
    log_event(k->config.log, LOG_WARN_, "lease.lost", "why=%s", why);
    kube_check_ready(k);
}

static void on_written(void *ctx, const struct kube_reply *r)
{
    struct kube *k = ctx;
    struct lease *l = &k->lease;
    l->call = NULL;
    if (r->status == 200 || r->status == 201) {
        l->renewed_ms = l->asked_ms;
        later(k, RENEW_MS);
        if (!l->held) {
            l->held = true;
            log_event(k->config.log, LOG_INFO_, "lease.held", "identity=%s", k->config.identity);
            kube_check_ready(k);
        }
        return;
    }
    if (r->status == 409)
        lose(k, "another daemon has taken it");
    else if (r->status)
        log_event(k->config.log, LOG_WARN_, "lease.refused", "status=%d why=%s", r->status,
                  r->err.msg);
    later(k, RETRY_MS);
}

static void write_lease(struct kube *k)
{
    struct lease *l = &k->lease;
    AUTO(buf_free) struct buf body = BUF(4096);
    struct json_out w = { .b = &body };
    char path[256], when[40];
    int64_t now_ms = kube_now_ms(k);
    struct date d = date_of_days(now_ms / DAY_MS);
    int64_t ms = now_ms % DAY_MS;
    snprintf(when, sizeof when, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", d.year, d.month, d.day,
             (int)(ms / 3600000), (int)(ms / 60000 % 60), (int)(ms / 1000 % 60),
             (int)(ms % 1000) * 1000);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "apiVersion", STR("coordination.k8s.io/v1"));
    json_put_str(&w, "kind", STR("Lease"));
    json_begin(&w, "metadata", '{');
    json_put_str(&w, "name", STR(LEASE_NAME));
    json_put_str(&w, "namespace", str_of(k->config.space));
    if (l->exists)
        json_put_str(&w, "resourceVersion",
                     str_of(l->version)); /* another's change is a conflict */
    json_end(&w, '}');
    json_begin(&w, "spec", '{');
    json_put_str(&w, "holderIdentity", str_of(k->config.identity));
    json_put_u64(&w, "leaseDurationSeconds", LEASE_S);
    json_put_str(&w, "renewTime", str_of(when));
    json_put_str(&w, "acquireTime", str_of(when));
    json_end(&w, '}');
    json_end(&w, '}');
    snprintf(path, sizeof path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s",
             k->config.space, l->exists ? "/" LEASE_NAME : "");
    l->call = kube_send(k->client,
                        &(struct kube_request){ .method = l->exists ? "PUT" : "POST",
                                                .path = str_of(path),
                                                .body = buf_str(&body),
                                                .timeout_ms = GIVE_UP_MS / 2 },
                        on_written, k);
}

/* Ours, nobody's, or one that was not renewed for its time. */
static bool may_take(struct kube *k, const struct json *lease)
{
    struct lease *l = &k->lease;
    const struct json *meta = json_find(lease, "metadata"), *spec = json_find(lease, "spec");
    struct str holder = STR(""), renewal = STR(""), version = STR("");
    uint64_t lasts_s = LEASE_S;
    struct err e;
    if (!meta || !spec || json_get_str(meta, "resourceVersion", 128, &version, &e) < 0 ||
        json_get_str(spec, "holderIdentity", 1024, &holder, &e) < 0 ||
        json_get_str(spec, "renewTime", 64, &renewal, &e) < 0 ||
        json_get_u64(spec, "leaseDurationSeconds", 3600, &lasts_s, &e) < 0)
        return false;
    set_text(&l->version, version);
    bool same = l->holder && str_is(holder, l->holder) && str_is(renewal, l->seen_renewal);
    if (!same) {
        set_text(&l->holder, holder);
        set_text(&l->seen_renewal, renewal);
        l->seen_ms = kube_now_ms(k);
    }
    return holder.n == 0 || str_is(holder, k->config.identity) ||
           kube_now_ms(k) - l->seen_ms >= (int64_t)lasts_s * 1000;
}

static void on_read(void *ctx, const struct kube_reply *r)
{
    struct kube *k = ctx;
    struct lease *l = &k->lease;
    struct err e;
    l->call = NULL;
    l->exists = r->status == 200;
    if (r->status == 404) {
        write_lease(k);
        return;
    }
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    if (d && may_take(k, json_root(d))) {
        write_lease(k);
        return;
    }
    if (d) {
        lose(k, "another daemon holds it");
        if (!l->told)
            log_event(k->config.log, LOG_WARN_, "lease.waiting", "holder=%s", l->holder);
        l->told = true;
    }
    later(k, RETRY_MS);
}

void lease_tick(struct kube *k)
{
    struct lease *l = &k->lease;
    int64_t now_ms = kube_now_ms(k);
    char path[256];
    if (l->held && now_ms - l->renewed_ms >= GIVE_UP_MS)
        lose(k, "it could not be renewed");
    if (l->call || now_ms < l->due_ms)
        return;
    snprintf(path, sizeof path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/" LEASE_NAME,
             k->config.space);
    l->asked_ms = now_ms;
    l->call = kube_send(
        k->client, &(struct kube_request){ .path = str_of(path), .timeout_ms = GIVE_UP_MS / 2 },
        on_read, k);
}

void lease_free(struct kube *k)
{
    kube_cancel(k->lease.call);
    free(k->lease.holder);
    free(k->lease.seen_renewal);
    free(k->lease.version);
}
