/* Copies of living jobs in the cluster, in our own namespace: what remains of those that wait when the store is lost.
 *
 * The daemon says which job has changed; what is to stand in its copy is asked for when its turn comes, so a job that
 * changed twice is written once, and one that ended before is not written at all.  Pods, bindings and leases come
 * first: a burst of submits is written at its own pace. */
#include <stdio.h>

#include "base/url.h"
#include "engine/kube/copy_doc.h"
#include "engine/kube/state.h"

#define IN_FLIGHT 8
#define WRITE_MS 5    /* so 200 a second on the whole, */
#define SAVED_MS 300  /* and at most so much of it at once */
#define LOOKS 200     /* jobs that are looked at in one go; most have not changed */
#define LIST_PAGE 500 /* copies */
/* Of all copies: a cluster has room for some gigabytes of everything. */
#define BYTES_MAX (UINT64_C(256) << 20)
#define LIST_BYTES ((size_t)512 << 20)
#define REFUSED_MS 60000 /* a refusal is said again after so long */

struct copy {
    struct kube *k;
    uint64_t job;
    bool exists;         /* in the cluster, as far as we know */
    bool queued;         /* it may have to be written */
    bool again;          /* the same, once what is on its way was answered */
    bool going;          /* what is on its way is its removal */
    struct errand *way;  /* a write is on its way */
    uint64_t hash, sent; /* of what stands there, and of what is on its way; 0: not known */
    size_t bytes;        /* of the larger of the two */
    char *text;          /* as it was listed, until it was told */
    struct copy *next;   /* in the queue */
};

static struct copy *find(const struct kube *k, uint64_t job)
{
    uint64_t i;
    return map_get(&k->copies.by_job, job, &i) ? k->copies.at[i] : NULL;
}

static struct copy *find_or_add(struct kube *k, uint64_t job)
{
    struct copies *all = &k->copies;
    struct copy *c = find(k, job);
    if (c)
        return c;
    c = xcalloc(1, sizeof *c);
    c->k = k;
    c->job = job;
    vec_grow(all->at, all->n, all->cap);
    map_set(&all->by_job, job, all->n);
    all->at[all->n++] = c;
    return c;
}

static void set_bytes(struct copy *c, size_t n)
{
    c->k->copies.bytes += n;
    c->k->copies.bytes -= c->bytes;
    c->bytes = n;
}

static void copy_free(struct copy *c)
{
    free(c->text);
    free(c);
}

/* Nothing of it is there, and nothing is to be done. */
static void drop_if_over(struct copy *c)
{
    struct copies *all = &c->k->copies;
    uint64_t i = 0;
    if (c->exists || c->queued || c->way)
        return;
    map_get(&all->by_job, c->job, &i);
    map_remove(&all->by_job, c->job);
    all->at[i] = all->at[--all->n];
    if (i < all->n)
        map_set(&all->by_job, all->at[i]->job, i);
    set_bytes(c, 0);
    copy_free(c);
}

/* ---- the queue ---- */

static void queue(struct copy *c)
{
    struct copies *all = &c->k->copies;
    if (c->queued)
        return;
    c->queued = true;
    c->next = c->job ? NULL : all->head; /* numbers are nobody's to wait for */
    if (c->job && all->tail)
        all->tail->next = c;
    else
        all->head = c;
    if (c->job || !all->tail)
        all->tail = c;
}

static struct copy *next_of(struct copies *all)
{
    struct copy *c = all->head;
    all->head = c->next;
    if (!all->head)
        all->tail = NULL;
    c->next = NULL;
    c->queued = false;
    return c;
}

void copies_keep(struct kube *k, uint64_t job)
{
    struct copies *all = &k->copies;
    if (all->off)
        return;
    struct copy *c = find_or_add(k, job);
    if (c->way && errand_take_back(c->way)) { /* it pauses: what it was to say is old */
        c->way = NULL;
        all->busy--;
    }
    c->again = c->way != NULL;
    if (!c->way)
        queue(c);
    loop_wakeup_send(all->soon);
}

bool copies_busy(const struct kube *k, uint64_t job)
{
    const struct copy *c = find(k, job);
    return c && (c->queued || c->way);
}

/* ---- writing ---- */

/* Once a minute: there may be thousands. */
static void tell_refusal(const struct copy *c, int status, const char *why)
{
    struct kube *k = c->k;
    int64_t now_ms = kube_now_ms(k);
    if (k->copies.told_ms && now_ms - k->copies.told_ms < REFUSED_MS)
        return;
    k->copies.told_ms = now_ms;
    log_event(k->config.log, LOG_ERROR_, "copy.refused", "job=%llu status=%d why=%s",
              (unsigned long long)c->job, status, why);
}

static void on_written(void *ctx, const struct kube_reply *r)
{
    struct copy *c = ctx;
    struct kube *k = c->k;
    bool done = r->status < 300 || (c->going && r->status == 404);
    bool other =
        r->status == 409 || r->status == 404; /* it is there, or is not: the other way then */
    c->way = NULL;
    k->copies.busy--;
    if (done) {
        c->exists = !c->going;
        c->hash = c->sent;
    } else if (other && !c->going) {
        c->exists = r->status == 409;
        c->hash = 0;
        queue(c);
    } else {
        tell_refusal(c, r->status, r->err.msg);
    }
    if (c->again)
        queue(c);
    c->again = false;
    drop_if_over(c);
    loop_wakeup_send(k->copies.soon);
}

static void write_copy(struct copy *c, struct str record)
{
    struct kube *k = c->k;
    AUTO(buf_free) struct buf body = BUF(2 * COPY_RECORD_MAX + 4096);
    char path[512], name[COPY_NAME_MAX];
    bool named = c->exists || c->going;
    if (!c->going)
        copy_make(&(struct copy_doc){ .job = c->job,
                                      .space = k->config.space,
                                      .daemon = k->config.site.daemon,
                                      .record = record },
                  &body);
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/configmaps%s%s", k->config.space,
             named ? "/" : "", named ? copy_name(c->job, k->config.site.daemon, name) : "");
    k->copies.busy++;
    k->copies.paid_ms = MAX(k->copies.paid_ms, kube_now_ms(k) - SAVED_MS) + WRITE_MS;
    c->way = errand_send(k, &(struct errand_of){ .method = c->going  ? "DELETE"
                                                         : c->exists ? "PUT"
                                                                     : "POST",
                                                 .path = path,
                                                 .body = buf_str(&body),
                                                 .fn = on_written,
                                                 .ctx = c });
}

static bool has_room(struct copy *c, size_t n)
{
    if (n <= c->bytes)
        return true;
    if (c->k->copies.bytes - c->bytes + n > BYTES_MAX)
        return false;
    set_bytes(c, n);
    return true;
}

static void look_at(struct copy *c)
{
    struct kube *k = c->k;
    AUTO(buf_free) struct buf record = BUF(COPY_RECORD_MAX);
    struct err e;
    bool over = false;
    struct engine_event ev = { .kind = ENGINE_RECORD,
                               .task = { .job = c->job },
                               .t_ms = kube_now_ms(k) };
    ev.record = (struct engine_record){ .text = &record, .out_over = &over };
    kube_tell(k, &ev);
    if (buf_check(&record, &e) < 0) {
        log_event(k->config.log, LOG_ERROR_, "copy.large", "job=%llu why=%s",
                  (unsigned long long)c->job, e.msg);
        return;
    }
    c->going = over;
    c->sent = over ? 0 : str_hash(buf_str(&record)) | 1;
    if (over ? c->exists : record.n > 0 && (!c->exists || c->sent != c->hash)) {
        if (has_room(c, record.n))
            write_copy(c, buf_str(&record));
        else
            tell_refusal(c, 0, "there are too many large copies");
    }
    drop_if_over(c);
}

static void pump(void *ctx)
{
    struct kube *k = ctx;
    struct copies *all = &k->copies;
    if (!k->is_ready || all->off || kube_client_waiting(k->client))
        return;
    for (size_t looks = 0; all->head && all->busy < IN_FLIGHT; looks++) {
        if (all->paid_ms > kube_now_ms(k))
            return;
        if (looks == LOOKS) { /* others first */
            loop_wakeup_send(all->soon);
            return;
        }
        look_at(next_of(all));
    }
}

/* ---- what was there when we began ---- */

static void list(struct kube *k);

static void on_off(struct kube *k, const struct kube_reply *r)
{
    k->copies.off = true;
    log_event(k->config.log, LOG_ERROR_, "copies.off", "status=%d why=%s hint=%s", r->status,
              r->err.msg,
              "jobs that wait would be lost with the store; see docs/ops/kubernetes.md");
}

static void take_page(struct kube *k, const struct json *root)
{
    const struct json *items = json_find(root, "items");
    struct copy_doc d;
    struct err e;
    if (!items || !json_is_array(items))
        return;
    for (const struct json *o = json_first(items); o; o = json_next(items, o)) {
        if (copy_read(o, k->config.site.daemon, &d, &e) < 0) {
            log_event(k->config.log, LOG_WARN_, "copy.unread", "why=%s", e.msg);
            continue;
        }
        struct copy *c = find_or_add(k, d.job);
        c->exists = true;
        c->hash = str_hash(d.record) | 1;
        set_bytes(c, d.record.n);
        free(c->text);
        c->text = xcalloc(d.record.n + 1, 1);
        memcpy(c->text, d.record.p, d.record.n);
    }
}

static void on_listed(void *ctx, const struct kube_reply *r)
{
    struct kube *k = ctx;
    struct copies *all = &k->copies;
    struct err e;
    all->call = NULL;
    AUTO(json_free_p) struct json_doc *d = r->status == 200 ? json_read(r->body, &e) : NULL;
    if (reply_is_passing(r) || r->status == 410 || (r->status == 200 && !d)) {
        free(all->from); /* from the beginning: what was read is read again */
        all->from = NULL;
        all->list_ms = kube_now_ms(k) + reply_wait_ms(r, all->tries++);
        return;
    }
    if (!d) {
        on_off(k, r);
        all->listed = true;
        kube_check_ready(k);
        return;
    }
    const struct json *meta = json_find(json_root(d), "metadata");
    struct str from = STR("");
    take_page(k, json_root(d));
    free(all->from);
    all->from = NULL;
    if (meta && json_get_str(meta, "continue", 4096, &from, &e) == 0 && from.n) {
        all->from = xcalloc(from.n + 1, 1);
        memcpy(all->from, from.p, from.n);
        list(k);
        return;
    }
    all->listed = true;
    kube_check_ready(k);
}

static void list(struct kube *k)
{
    AUTO(buf_free) struct buf path = BUF(16384);
    char label[COPY_LABEL_MAX];
    buf_printf(&path, "/api/v1/namespaces/%s/configmaps?limit=%d&labelSelector=", k->config.space,
               LIST_PAGE);
    url_encode(STR(COPY_LABEL), &path);
    buf_printf(&path, "%%3D%s", copy_label(k->config.site.daemon, label));
    if (k->copies.from) {
        buf_addz(&path, "&continue=");
        url_encode(str_of(k->copies.from), &path);
    }
    k->copies.call = kube_send(
        k->client, &(struct kube_request){ .path = buf_str(&path), .max_bytes = LIST_BYTES },
        on_listed, k);
}

bool copies_known(const struct kube *k)
{
    return k->copies.listed;
}

/* The one that decides reads them, once: nobody else writes them from then on. */
void copies_tick(struct kube *k)
{
    struct copies *all = &k->copies;
    if (!all->listed && !all->call && k->lease.held && kube_now_ms(k) >= all->list_ms)
        list(k);
    pump(k);
}

const char *copies_text(const struct kube *k, size_t i, uint64_t *out_job)
{
    *out_job = k->copies.at[i]->job;
    return k->copies.at[i]->text;
}

void copies_told(struct kube *k, uint64_t job)
{
    struct copy *c = find(k, job);
    if (!c)
        return;
    free(c->text);
    c->text = NULL;
}

void copies_init(struct kube *k)
{
    k->copies.soon = loop_wakeup(k->config.loop, pump, k);
}

void copies_free(struct kube *k)
{
    kube_cancel(k->copies.call);
    loop_unwatch(k->copies.soon);
    for (size_t i = 0; i < k->copies.n; i++)
        copy_free(k->copies.at[i]);
    free(k->copies.at);
    map_free(&k->copies.by_job);
    free(k->copies.from);
}
