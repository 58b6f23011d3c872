#include "daemon/vouch.h"

#include <sodium.h>
#include <stdio.h>

#include "base/json.h"
#include "kube/config.h"

#define KEPT_MAX 4096 /* machines, and tokens that were none */
#define ASKED_MAX 8   /* at once */
#define GOOD_NS (INT64_C(300) * 1000000000)
#define ASK_AGAIN_NS (INT64_C(150) * 1000000000) /* while it is still good */
#define BAD_NS (INT64_C(10) * 1000000000)
#define TOKEN_MAX 8192
#define NODE_EXTRA "authentication.kubernetes.io/node-name"

struct kept {
    uint8_t hash[32];
    char machine[65]; /* empty: it is no agent's */
    int64_t until_ns, ask_ns;
    struct kube_call *call;
    struct vouch *of;
    struct err why;
};

struct vouch {
    struct log *log;
    struct kube_config *server;
    struct kube_client *client;
    char account[400];
    struct kept *kept[KEPT_MAX];
    size_t n, asked;
};

struct vouch *vouch_new(struct loop *l, struct log *log, struct kube_config *server,
                        const char *space, struct err *e)
{
    struct vouch *v = xcalloc(1, sizeof *v);
    v->log = log;
    v->server = server;
    snprintf(v->account, sizeof v->account, "system:serviceaccount:%s:" VOUCH_ACCOUNT, space);
    v->client = kube_client_new(l, log, server, e);
    return v->client ? v : vouch_free(v);
}

struct vouch *vouch_free(struct vouch *v)
{
    if (!v)
        return NULL;
    for (size_t i = 0; i < v->n; i++) {
        kube_cancel(v->kept[i]->call);
        free(v->kept[i]);
    }
    kube_client_free(v->client);
    kube_config_free(v->server);
    free(v);
    return NULL;
}

/* ---- what the API server says ---- */

static int none(struct err *e, const char *why)
{
    return err_set(e, ERR_DENIED, "%s", why);
}

static bool list_has(const struct json *list, const char *word)
{
    for (size_t i = 0; json_is_array(list) && i < json_len(list); i++) {
        struct str s;
        struct err ignored;
        if (json_as_str(json_at(list, i), 1024, &s, &ignored) == 0 && str_is(s, word))
            return true;
    }
    return false;
}

int vouch_read(struct str review, const char *account, char out[static 65], struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(review, e);
    struct str name = STR(""), node = STR("");
    bool good = false;
    out[0] = '\0';
    if (!d)
        return err_wrap(e, "the API server's review");
    const struct json *status = json_find(json_root(d), "status");
    if (!status || json_get_bool(status, "authenticated", &good, e) < 0 || !good)
        return none(e, "the API server does not know this token");
    if (!list_has(json_find(status, "audiences"), VOUCH_AUDIENCE))
        return none(e, "this token is for another audience");
    const struct json *user = json_find(status, "user");
    if (!user || json_get_str(user, "username", 400, &name, e) < 0 || !str_is(name, account))
        return none(e, "this token is of another service account");
    const struct json *extra = json_find(user, "extra");
    const struct json *nodes = extra ? json_find(extra, NODE_EXTRA) : NULL;
    if (!json_is_array(nodes) || json_len(nodes) != 1 ||
        json_as_str(json_at(nodes, 0), 64, &node, e) < 0 || !node.n) {
        none(e, "this token does not say on which machine its pod is");
        return err_hint(e, "that needs a token of a pod, and Kubernetes 1.30");
    }
    snprintf(out, 65, "%.*s", STR_ARG(node));
    return 0;
}

static void on_review(void *ctx, const struct kube_reply *r)
{
    struct kept *k = ctx;
    struct err e = { 0 };
    int64_t now_ns = clock_mono_ns();
    char machine[65];
    k->call = NULL;
    k->of->asked--;
    if (r->status != 200 &&
        r->status != 201) { /* not its fault: what was good stays so for its time */
        k->ask_ns = now_ns + BAD_NS;
        k->why = r->err;
        log_event(k->of->log, LOG_WARN_, "agent.review", "status=%d why=%s", r->status, r->err.msg);
        return;
    }
    bool good = vouch_read(r->body, k->of->account, machine, &e) == 0;
    snprintf(k->machine, sizeof k->machine, "%s", good ? machine : "");
    k->why = e;
    k->until_ns = now_ns + (good ? GOOD_NS : BAD_NS);
    k->ask_ns = now_ns + (good ? ASK_AGAIN_NS : BAD_NS);
}

static void ask(struct vouch *v, struct kept *k, struct str token)
{
    AUTO(buf_free) struct buf b = BUF(2 * TOKEN_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "apiVersion", STR("authentication.k8s.io/v1"));
    json_put_str(&w, "kind", STR("TokenReview"));
    json_begin(&w, "spec", '{');
    json_put_str(&w, "token", token);
    json_begin(&w, "audiences", '[');
    json_put_str(&w, NULL, STR(VOUCH_AUDIENCE));
    json_end(&w, ']');
    json_end(&w, '}');
    json_end(&w, '}');
    v->asked++;
    k->call = kube_send(v->client,
                        &(struct kube_request){ .method = "POST",
                                                .path = STR("/apis/authentication.k8s.io/v1/"
                                                            "tokenreviews"),
                                                .body = buf_str(&b),
                                                .timeout_ms = 10000,
                                                .max_bytes = 64u << 10 },
                        on_review, k);
}

/* ---- what is kept ---- */

static void forget_old(struct vouch *v, int64_t now_ns)
{
    size_t left = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->kept[i]->call || v->kept[i]->until_ns > now_ns)
            v->kept[left++] = v->kept[i];
        else
            free(v->kept[i]);
    v->n = left;
}

static struct kept *find(struct vouch *v, const uint8_t hash[static 32], int64_t now_ns)
{
    for (size_t i = 0; i < v->n; i++)
        if (memcmp(v->kept[i]->hash, hash, 32) == 0)
            return v->kept[i];
    if (v->n == KEPT_MAX || v->asked == ASKED_MAX)
        forget_old(v, now_ns);
    if (v->n == KEPT_MAX || v->asked == ASKED_MAX)
        return NULL;
    struct kept *k = v->kept[v->n++] = xcalloc(1, sizeof *k);
    memcpy(k->hash, hash, 32);
    k->of = v;
    k->until_ns = now_ns + BAD_NS;
    return k;
}

int vouch_machine(void *vouch, struct str token, char out[static 65], struct err *e)
{
    struct vouch *v = vouch;
    uint8_t hash[32];
    int64_t now_ns = clock_mono_ns();
    if (token.n > TOKEN_MAX)
        return none(e, "no token is so long");
    crypto_generichash(hash, sizeof hash, (const unsigned char *)token.p, token.n, NULL, 0);
    struct kept *k = find(v, hash, now_ns);
    if (k && !k->call && now_ns >= k->ask_ns && v->asked < ASKED_MAX)
        ask(v, k, token);
    if (k && k->machine[0] && now_ns < k->until_ns) {
        snprintf(out, 65, "%s", k->machine);
        return 1;
    }
    if (!k || k->call || k->why.code == ERR_NONE || k->why.code == ERR_UNAVAILABLE) {
        err_set(e, ERR_UNAVAILABLE, "the cluster is being asked whose token this is");
        return 0;
    }
    *e = k->why;
    return -1;
}
