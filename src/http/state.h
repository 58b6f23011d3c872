/* state - what the files of this folder share; nobody outside includes it.
 *
 * A server has connections, a connection has at most one request at a time, and a request belongs
 * to its connection until the library says that it is completed.
 */
#ifndef NS_HTTP_STATE_H
#define NS_HTTP_STATE_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/map.h"
#include "http/forwarded.h"
#include "http/http.h"
#include "http/rate.h"
#include "http/target.h"

#define HEAD_MAX 16384        /* bytes of request line and headers that we accept */
#define POOL_BYTES 32768      /* of one connection in the library: a head, and room to refuse one */
#define ACCEPT_SLACK 64       /* connections beyond our limit that the library would take */
#define RATE_PEERS 4096       /* that are told apart */
#define DRAIN_MAX (1u << 20)  /* bytes of a body too large that are read before its refusal */
#define BODIES_PER_PEER 8     /* largest bodies that one caller may have us hold at once */
#define BODY_BYTES_PER_MS 16u /* a body that comes slower than this uses up its request's time */

/* A connection, from accept to close. */
struct conn {
    struct http_server *server;
    struct MHD_Connection *mhd; /* NULL until the library has taken it */
    struct http_request *rq;    /* the one that is under way, or NULL */
    struct http_peer peer;
    uint64_t peer_key; /* for limits: a uid, an IPv4 address or an IPv6 network */
    bool trusted;      /* a proxy that calls for others */
    int fd;
    bool watched; /* in server->gone_fd */
    /* Those of which a request is awaited or being received, longest first. */
    bool receiving;
    int64_t since_ms;
    struct conn *prev, *next;
};

struct http_server {
    struct http_config config; /* strings only while starting */
    struct loop *loop;
    struct MHD_Daemon *mhd;
    struct loop_watch *mhd_watch, *mhd_timer;
    bool wanted; /* the library has to run again soon */
    bool tls, quiesced, stopping;

    int listen_fd;
    uint16_t port;
    char *unix_path;
    struct stat unix_file;
    struct loop_watch *listen_watch, *listen_again;

    size_t connections, per_peer_max;
    int64_t forwarded_said_ms; /* when the log heard of a proxy that speaks nonsense; 0: never */
    int64_t full_said_ms;      /* when the log heard of a caller that found no room; 0: never */
    struct map by_peer; /* peer_key to number of connections, and of requests by a trusted proxy */
    struct net_list trusted;
    struct map held;       /* peer_key to bytes of bodies in memory */
    struct conn *arriving; /* accepted, and not yet begun by the library */
    struct conn *receiving, *receiving_last;
    struct loop_watch *receive_timer;
    bool receive_timer_set;

    int gone_fd; /* an epoll set of connections with streams, for those who go away */
    struct loop_watch *gone_watch;

    struct rate *rate;             /* NULL: no limit */
    struct http_request *requests; /* that a handler has seen */
    size_t requests_open;
    uint64_t faults; /* numbers the internal errors */
    char mhd_says[200];
};

enum phase {
    PHASE_HEAD,    /* the request line is known */
    PHASE_BODY,    /* being received */
    PHASE_PENDING, /* complete, and not answered or not told the library */
    PHASE_SENT,    /* the answer is the library's business */
};

struct header {
    struct header *next;
    const char *name, *value;
};

struct stream {
    loop_fn *on_close, *on_room;
    void *ctx;
    struct buf queue;
    size_t sent; /* of the queue */
    bool begun, ended, cut;
    bool filled; /* since on_room was told last */
};

struct http_request {
    struct conn *conn;
    struct http_peer peer; /* the connection's, unless that is a trusted proxy */
    uint64_t peer_key;
    bool counted; /* in server->by_peer, as a connection of its own would be */
    enum phase phase;
    const char *method; /* one of ours, or as the client wrote it */
    struct target target;
    int bad_status; /* what is wrong with the request line, or 0 */
    struct err *bad;
    struct arena arena;
    struct buf body;
    struct target form;     /* the body, once it was read as one */
    size_t held;            /* counted as the caller's in server->held */
    size_t drained;         /* bytes of a body that was too large */
    struct header *headers; /* of the answer */
    struct MHD_Response *response;
    int status;
    bool http11, answered, suspended, open;
    struct stream stream;
    struct http_request *prev, *next; /* in server->requests */
};

/* server.c */
int64_t server_now_ms(void);
void server_wake(struct http_server *s); /* after resuming a connection */

/* peer.c */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};
bool peer_describe(struct conn *c, const union address *from); /* false: of no kind we know */
/* First of the checks of a head: whom the others are about.  The status of a refusal, or 0. */
int peer_by_proxy(struct http_request *rq, struct err *e);

/* conn.c */
void conn_accept(struct http_server *s);
struct conn *conn_begin(struct http_server *s, struct MHD_Connection *mhd);
struct conn *conn_free(struct conn *c);  /* NULL ok; returns NULL */
void conn_receive_begin(struct conn *c); /* its time starts now, also when it was running */
void conn_receive_done(struct conn *c);
void conn_receive_check(struct http_server *s); /* cuts those that are late */
void conn_cut(struct conn *c);
void conn_refuse_and_cut(struct conn *c, int status, const struct err *why);
bool conn_take_share(struct http_server *s, uint64_t peer_key, struct err *e);
void conn_give_share(struct http_server *s, uint64_t peer_key);
void conn_keep_alive(struct conn *c); /* let the kernel ask whether the peer is still there */

/* request.c */
void *request_begin(void *server, const char *uri, struct MHD_Connection *mhd);
void request_end(struct http_request *rq);
enum MHD_Result request_step(struct http_request *rq, struct str upload);
void request_resume(struct http_request *rq);

/* reply.c */
bool header_is_token(const char *name);
bool reply_may_begin(struct http_request *rq); /* false when it has one already */
void reply_type(struct http_request *rq,
                const char *type); /* unless the handler gave it; NULL ok */
void reply_with(struct http_request *rq, int status, struct MHD_Response *response);
void reply_problem(struct http_request *rq, int status, const struct err *why, const char *field);
void reply_text(int status, const struct err *why, struct buf *out); /* the bytes of a refusal */

/* stream.c */
int stream_watch_begin(struct http_server *s, struct err *e) MUST_USE;
void stream_unwatch(struct conn *c);
void stream_completed(struct http_request *rq);

#endif
