/* client - the REST API as calls and streams.
 *
 * A call sends one request and waits for the whole answer, on one connection that is kept.  What
 * the server refuses becomes an err with the server's own message, hint and code, so the program
 * exits the way the server meant.  A stream has a connection of its own and never blocks in reading:
 * a log that is followed, events, what a terminal shows (duplex.h has the way back).
 */
#ifndef NS_CLI_CLIENT_H
#define NS_CLI_CLIENT_H

#include "base/buf.h"
#include "client/conn.h"

#define ANSWER_MAX (256u << 20)
#define CALL_TIMEOUT_MS 60000

struct client;

struct call {
    const char *method; /* NULL: GET */
    const char *path;   /* with the query */
    struct str body;
    const char *type; /* of the body; NULL: JSON */
    const char *once; /* Idempotency-Key, or NULL */
};

struct answer {
    int status;
    struct buf body;
    char field[128]; /* of a refusal: the field that was wrong, or "" */
};

/* `server` NULL: $NIGHTSHIFT_SERVER or the socket of this machine.  Connects with the first call. */
struct client *client_new(const char *server, const char *token, struct err *e);
struct client *client_free(struct client *c); /* NULL ok; returns NULL */
const struct address *client_address(const struct client *c);

/* *out is replaced; on failure only its field is set.  The caller frees the body. */
int client_call(struct client *c, const struct call *call, struct answer *out, struct err *e)
    MUST_USE;

/* The two halves of a call, for those who send and read by themselves.  A refusal: the server's
 * problem+json as our own error; always returns -1. */
void client_print_request(const struct client *c, const struct call *call, struct buf *out);
enum err_code client_code(int status, struct str slug);
int client_refused(int status, struct str body, char *field, size_t field_n, struct err *e);

/* Random, as hex digits. */
#define CLIENT_KEY_BYTES 33
int client_make_key(char out[static CLIENT_KEY_BYTES], struct err *e) MUST_USE;

/* ---- streams ---- */

struct feed;

enum feed_is {
    FEED_BYTES,
    FEED_NOTHING, /* wait for feed_fd to become readable */
    FEED_END,
    FEED_FAILED /* the server refused it, or the connection broke */
};

struct feed *feed_open(struct client *c, const char *path, struct err *e);
struct feed *feed_free(struct feed *s); /* NULL ok; returns NULL */
void feed_free_p(struct feed **s);
int feed_fd(const struct feed *s);
bool feed_is_open(const struct feed *s); /* the server has accepted it */

/* The bytes are valid until the next call. */
enum feed_is feed_read(struct feed *s, struct str *out_bytes, struct err *e);

/* With what a path or a query may not hold as %XX. */
void path_add(struct buf *path, const char *text); /* "/text" */
void query_add(struct buf *path, const char *key, const char *text);

#endif
