/* bind_only - binds the pods that it is told, and decides nothing: the most that an API server gives.
 *
 * usage: bind_only KUBECONFIG IN-FLIGHT < "NAMESPACE POD NODE" lines
 */
#include <stdio.h>

#include "base/parse.h"
#include "engine/kube/pod_make.h"
#include "kube/client.h"

struct binder {
    struct loop *loop;
    struct kube_client *client;
    size_t sent, answered, failed;
};

static void die(const char *what)
{
    fprintf(stderr, "bind_only: %s\n", what);
    exit(2);
}

static void on_bound(void *ctx, const struct kube_reply *r)
{
    struct binder *b = ctx;
    if (r->status != 201 && b->failed++ == 0)
        fprintf(stderr, "bind_only: %d %s\n", r->status, r->err.msg);
    if (++b->answered == b->sent)
        loop_stop(b->loop);
}

static void send_one(struct binder *b, const char *space, const char *pod, const char *node)
{
    AUTO(buf_free) struct buf body = BUF(8192);
    AUTO(buf_free) struct buf path = BUF(1024);
    struct pod_binding p = {
        .space = space, .pod = pod, .uid = "", .node = str_of(node), .task = { b->sent + 1, 1, 0 }
    };
    pod_make_binding(&p, &body);
    buf_printf(&path, "/api/v1/namespaces/%s/pods/%s/binding", space, pod);
    b->sent++;
    kube_send(
        b->client,
        &(struct kube_request){ .method = "POST", .path = buf_str(&path), .body = buf_str(&body) },
        on_bound, b);
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    char space[256], pod[256], node[256];
    uint64_t in_flight = 0;
    if (argc != 3 || parse_u64(str_of(argv[2]), 1024, &in_flight, &e) < 0)
        die("usage: bind_only KUBECONFIG IN-FLIGHT");
    AUTO(kube_config_free_p) struct kube_config *config = kube_config_load(argv[1], NULL, &e);
    AUTO(loop_free_p) struct loop *loop = loop_new();
    AUTO(kube_client_free_p)
    struct kube_client *client = config ? kube_client_new(loop, NULL, config, &e) : NULL;
    if (!client)
        die(e.msg);
    struct binder b = { .loop = loop, .client = client };
    kube_client_set_in_flight(client, in_flight);
    while (scanf("%255s %255s %255s", space, pod, node) == 3)
        send_one(&b, space, pod, node);
    if (b.sent)
        loop_run(loop);
    return b.failed ? 1 : 0;
}
