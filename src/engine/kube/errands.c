/* Requests that nobody stands still for: each is repeated, with longer and longer pauses, until the server has said
 * yes or no.  Being away, being busy (429) and a namespace that is not there yet are neither. */
#include <stdio.h>

#include "engine/kube/state.h"

#define AGAIN_FIRST_MS 200
#define AGAIN_MOST_MS 15000

struct errand {
    struct kube *k;
    const char *method;
    char *path;
    struct buf body;
    char space[SPACE_MAX];
    struct kube_call *call; /* NULL: it pauses */
    uint32_t tries;
    int64_t again_ms;
    errand_fn *fn;
    void *ctx;
    size_t at; /* its place in the list */
};

bool reply_is_passing(const struct kube_reply *r)
{
    return r->status == 0 || r->status == 429 || r->status >= 500 || r->status == 401;
}

int64_t reply_wait_ms(const struct kube_reply *r, uint32_t tries)
{
    unsigned doubled = MIN(tries, 10u);
    int64_t wait_ms = MIN((int64_t)AGAIN_FIRST_MS << doubled, (int64_t)AGAIN_MOST_MS);
    return MAX(wait_ms, r->retry_after_ms);
}

static void errand_free(struct errand *x)
{
    struct errands *all = &x->k->errands;
    kube_cancel(x->call);
    all->at[x->at] = all->at[--all->n];
    all->at[x->at]->at = x->at;
    buf_free(&x->body);
    free(x->path);
    free(x);
}

static void on_answer(void *ctx, const struct kube_reply *r)
{
    struct errand *x = ctx;
    struct kube *k = x->k;
    bool early =
        (r->status == 403 || r->status == 404) && x->space[0] && !space_applied(k, x->space);
    x->call = NULL;
    if (reply_is_passing(r) || early) {
        x->again_ms = kube_now_ms(k) + reply_wait_ms(r, x->tries++);
        return;
    }
    errand_fn *fn = x->fn;
    void *of = x->ctx;
    if (!fn && r->status >= 300 && r->status != 404 && r->status != 409)
        log_event(k->config.log, LOG_WARN_, "kube.refused", "path=%s status=%d why=%s", x->path,
                  r->status, r->err.msg);
    errand_free(x);
    if (fn)
        fn(of, r);
}

static void send(struct errand *x)
{
    x->call =
        kube_send(x->k->client,
                  &(struct kube_request){
                      .method = x->method, .path = str_of(x->path), .body = buf_str(&x->body) },
                  on_answer, x);
}

struct errand *errand_send(struct kube *k, const struct errand_of *of)
{
    struct errand *x = xcalloc(1, sizeof *x);
    *x = (struct errand){ .k = k,
                          .method = of->method,
                          .path = xstrdup(of->path),
                          .body = BUF(of->body.n + 1),
                          .fn = of->fn,
                          .ctx = of->ctx,
                          .at = k->errands.n };
    buf_add(&x->body, of->body);
    snprintf(x->space, sizeof x->space, "%s", of->space ? of->space : "");
    vec_grow(k->errands.at, k->errands.n, k->errands.cap);
    k->errands.at[k->errands.n++] = x;
    send(x);
    return x;
}

bool errand_take_back(struct errand *x)
{
    if (x->call)
        return false;
    errand_free(x);
    return true;
}

void errands_tick(struct kube *k)
{
    int64_t now_ms = kube_now_ms(k);
    for (size_t i = 0; i < k->errands.n; i++)
        if (!k->errands.at[i]->call && now_ms >= k->errands.at[i]->again_ms)
            send(k->errands.at[i]);
}

void errands_free(struct kube *k)
{
    while (k->errands.n)
        errand_free(k->errands.at[k->errands.n - 1]);
    free(k->errands.at);
}
