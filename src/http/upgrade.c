#include <string.h>
#include <strings.h>

#include "http/state.h"

#define ON_UPGRADE_ARGS                                                                            \
    void *ctx, struct MHD_Connection *mhd, void *rq_ctx, const char *early, size_t early_bytes,    \
        MHD_socket fd, struct MHD_UpgradeResponseHandle *handle

/* The library's list of arguments, longer than ours may be. */
static void on_upgrade(ON_UPGRADE_ARGS)
{
    (void)mhd;
    (void)rq_ctx;
    struct http_request *rq = ctx;
    struct http_upgrade *up = rq->upgrade;
    up->handle = handle;
    conn_no_delay(rq->conn); /* the library has just switched it off */
    conn_keep_alive(rq->conn);
    up->on_socket(up->ctx, up, fd, (struct str){ early_bytes ? early : "", early_bytes });
}

static bool asks_for(const struct http_request *rq, const char *protocol)
{
    const char *wanted = http_header(rq, "Upgrade"), *how = http_header(rq, "Connection");
    return rq->http11 && wanted && strcasecmp(wanted, protocol) == 0 && how &&
           strcasestr(how, "upgrade");
}

void http_upgrade(struct http_request *rq, const char *protocol, http_socket_fn *on_socket,
                  void *ctx)
{
    struct err e;
    if (!reply_may_begin(rq))
        return;
    rq->upgrade = arena_new(&rq->arena, struct http_upgrade);
    rq->upgrade->on_socket = on_socket;
    rq->upgrade->ctx = ctx;
    rq->upgrade->server = rq->conn->server;
    http_add_header(rq, "Upgrade", protocol);
    if (rq->conn->server->tls) {
        err_set(&e, ERR_UNAVAILABLE, "'%s' is not offered over TLS", protocol);
        err_hint(&e, "use the unix socket of that machine");
        reply_problem(rq, err_info(e.code)->http_status, &e, NULL);
    } else if (!asks_for(rq, protocol)) {
        err_set(&e, ERR_INVALID, "this speaks '%s', which the request did not ask for", protocol);
        err_hint(&e, "send 'Connection: Upgrade' and 'Upgrade: %s' over HTTP/1.1", protocol);
        reply_problem(rq, MHD_HTTP_UPGRADE_REQUIRED, &e, NULL);
    } else {
        reply_with(rq, MHD_HTTP_SWITCHING_PROTOCOLS,
                   MHD_create_response_for_upgrade(on_upgrade, rq));
    }
}

void http_upgrade_close(struct http_upgrade *up)
{
    MHD_upgrade_action(up->handle, MHD_UPGRADE_ACTION_CLOSE);
    server_wake(up->server);
}

void upgrade_completed(struct http_request *rq)
{
    struct http_upgrade *up = rq->upgrade;
    if (up && !up->handle)
        up->on_socket(up->ctx, NULL, -1, STR(""));
}
