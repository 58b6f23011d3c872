/* conn - a connection to the server: a unix socket, TCP, or TLS by OpenSSL.
 *
 * Bytes only.  Descriptors are non-blocking: reading says "nothing now" and the caller waits in
 * its own poll.  OpenSSL is loaded when an https:// server is named and not before: starting stays
 * cheap, and so does the agent.
 */
#ifndef NS_CLIENT_CONN_H
#define NS_CLIENT_CONN_H

#include "base/err.h"
#include "base/str.h"

enum address_kind {
    ADDRESS_UNIX,
    ADDRESS_TCP,
    ADDRESS_TLS
};

struct address {
    enum address_kind kind;
    char path[108]; /* unix */
    char host[256], port[8];
    char text[320]; /* as messages show it */
};

/* unix:/path, /path, http://host[:port], https://host[:port] */
int address_parse(const char *text, struct address *out, struct err *e) MUST_USE;

enum conn_io {
    CONN_OK,
    CONN_AGAIN, /* nothing now: wait and call again */
    CONN_EOF,
    CONN_BROKEN
};

struct conn;

struct conn *conn_open(const struct address *a, int timeout_ms, struct err *e);
struct conn *conn_free(struct conn *c); /* NULL ok; returns NULL */
void conn_free_p(struct conn **c);
int conn_fd(const struct conn *c);

enum conn_io conn_read(struct conn *c, char *p, size_t n, size_t *out_n, struct err *e);
/* After CONN_AGAIN the same bytes must come first again. */
enum conn_io conn_write(struct conn *c, struct str bytes, size_t *out_n, struct err *e);

/* All of it, or CONN_EOF (the other side is gone) or CONN_BROKEN. */
enum conn_io conn_write_all(struct conn *c, struct str bytes, int timeout_ms, struct err *e);
int conn_wait_readable(struct conn *c, int timeout_ms, struct err *e) MUST_USE;

/* ---- tls.c: what conn.c needs of OpenSSL ---- */

struct tls;
struct tls *tls_new(const struct address *a, int fd, struct err *e); /* fd stays the caller's */
struct tls *tls_free(struct tls *t);                                 /* NULL ok; returns NULL */

/* Once more after each CONN_AGAIN, when the descriptor is readable, or writable where tls_wants_write says so. */
enum conn_io tls_connect(struct tls *t, const struct address *a, struct err *e);
bool tls_wants_write(const struct tls *t);
enum conn_io tls_read(struct tls *t, char *p, size_t n, size_t *out_n, struct err *e);
enum conn_io tls_write(struct tls *t, struct str bytes, size_t *out_n, struct err *e);

#endif
