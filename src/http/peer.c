/* Who is calling: by the socket, or by the words of a proxy that we trust. */
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "http/state.h"

#define FORWARDED_SAY_MS 10000 /* what a proxy passes on must not fill the log */

/* ---- by the socket ---- */

static bool describe_local(struct conn *c)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
        return false;
    c->peer = (struct http_peer){
        .local = true, .uid = cred.uid, .gid = cred.gid, .pid = cred.pid, .address = "unix"
    };
    c->peer_key = cred.uid;
    return true;
}

static bool describe_tcp(struct conn *c, const struct net_addr *from, in_port_t port)
{
    char text[NET_TEXT_BYTES];
    bool v6 = strchr(net_addr_text(from, text), ':') != NULL;
    snprintf(c->peer.address, sizeof c->peer.address, v6 ? "[%s]:%u" : "%s:%u", text, ntohs(port));
    c->peer.secure = c->server->tls;
    c->peer_key = net_addr_key(from);
    c->trusted = net_list_has(&c->server->trusted, from);
    return true;
}

static bool describe_v4(struct conn *c, const struct sockaddr_in *from)
{
    struct net_addr a = { { [10] = 0xff, 0xff } };
    memcpy(a.b + 12, &from->sin_addr, sizeof from->sin_addr);
    return describe_tcp(c, &a, from->sin_port);
}

static bool describe_v6(struct conn *c, const struct sockaddr_in6 *from)
{
    struct net_addr a;
    memcpy(a.b, &from->sin6_addr, sizeof a.b);
    return describe_tcp(c, &a, from->sin6_port);
}

bool peer_describe(struct conn *c, const union address *from)
{
    switch (from->any.sa_family) {
    case AF_UNIX: return describe_local(c);
    case AF_INET: return describe_v4(c, &from->v4);
    case AF_INET6: return describe_v6(c, &from->v6);
    default: return false;
    }
}

/* ---- by a trusted proxy ---- */

struct gathered {
    const char *name;
    struct buf all; /* every header of that name, with commas between */
};

static enum MHD_Result add_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct gathered *g = ctx;
    (void)kind;
    if (strcasecmp(name, g->name) == 0)
        buf_printf(&g->all, "%s%s", g->all.n ? "," : "", value ? value : "");
    return MHD_YES;
}

static struct str gather(struct http_request *rq, struct gathered *g)
{
    MHD_get_connection_values(rq->conn->mhd, MHD_HEADER_KIND, add_header, g);
    return buf_str(&g->all);
}

/* The proxy nearest to us says it last. */
static bool says_https(struct http_request *rq)
{
    struct gathered g = { "X-Forwarded-Proto", BUF(HEAD_MAX) };
    struct str rest = gather(rq, &g), last;
    while (str_cut(rest, ',', &last, &rest))
        ;
    last = str_trim(last);
    bool https = last.n == 5 && strncasecmp(last.p, "https", 5) == 0;
    buf_free(&g.all);
    return https;
}

static void say_malformed(struct http_request *rq, struct str header)
{
    struct http_server *s = rq->conn->server;
    int64_t now_ms = server_now_ms();
    if (s->forwarded_said_ms && now_ms - s->forwarded_said_ms < FORWARDED_SAY_MS)
        return;
    s->forwarded_said_ms = now_ms;
    log_event(s->config.log, LOG_WARN_, "http.forwarded", "proxy=%s header=%.*s",
              rq->conn->peer.address, (int)MIN(header.n, (size_t)200), header.p);
}

int peer_by_proxy(struct http_request *rq, struct err *e)
{
    struct http_server *s = rq->conn->server;
    struct gathered g = { "X-Forwarded-For", BUF(HEAD_MAX) };
    struct net_addr who;
    int status = 0;
    if (!rq->conn->trusted)
        return 0;
    rq->peer.proxied = true;
    rq->peer.secure |= says_https(rq);
    struct str header = gather(rq, &g);
    if (forwarded_for(&s->trusted, header, &who)) {
        net_addr_text(&who, rq->peer.address);
        rq->peer_key = net_addr_key(&who);
        rq->counted = conn_take_share(s, rq->peer_key, e);
        status = rq->counted ? 0 : MHD_HTTP_SERVICE_UNAVAILABLE;
    } else if (header.n) {
        say_malformed(rq, header);
    }
    buf_free(&g.all);
    return status;
}
