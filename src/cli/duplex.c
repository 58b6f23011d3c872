#include "cli/duplex.h"

#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cli/reading.h"
#include "sys/clock.h"
#include "sys/file.h"

#define CONNECT_TIMEOUT_MS 10000
#define REQUEST_MAX (2u << 20)
#define ANSWER_BYTES_MAX (64u << 10)
#define TOO_MANY 429
/* A server bounds how many requests a second it takes of one caller: after a burst, what comes in
 * quick succession goes together. */
#define PACE_NS INT64_C(4000000)
#define BURST_NS (64 * PACE_NS)
#define BACK_OFF_NS INT64_C(250000000)

enum phase {
    IDLE,
    SENDING,
    ANSWER, /* waiting for it */
    PAUSE,  /* until the timer says so; then `again` or idle */
    OVER    /* the other side takes nothing more: reading tells the rest */
};

struct duplex {
    struct client *client;
    struct feed *feed;
    char path[128]; /* of what goes in, without its number */
    enum phase phase;
    struct conn *conn;
    bool kept; /* the connection has carried an answer: it may have been closed meanwhile */
    struct buf request;
    size_t sent;
    struct reading answer;
    uint64_t number;
    int64_t due_ns; /* when the pace is kept */
    bool again;
    int timer;
};

struct duplex *duplex_open(struct client *c, uint64_t job, uint32_t replica, struct err *e)
{
    char key[CLIENT_KEY_BYTES], path[160];
    unsigned long long id = job;
    if (client_make_key(key, e) < 0)
        return NULL;
    struct duplex *d = xcalloc(1, sizeof *d);
    *d = (struct duplex){ .client = c, .request = BUF(REQUEST_MAX), .number = 1, .timer = -1 };
    snprintf(d->path, sizeof d->path, "/v1/jobs/%llu/stream/%s", id, key);
    snprintf(path, sizeof path, "/v1/jobs/%llu/stream?replica=%u&key=%s", id, replica, key);
    d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    d->feed = feed_open(c, path, e);
    return d->feed ? d : duplex_free(d);
}

struct duplex *duplex_free(struct duplex *d)
{
    if (!d)
        return NULL;
    feed_free(d->feed);
    conn_free(d->conn);
    buf_free(&d->request);
    reading_clear(&d->answer);
    file_close_p(&d->timer);
    free(d);
    return NULL;
}

void duplex_poll(const struct duplex *d, struct pollfd p[static DUPLEX_POLLS])
{
    p[0] = (struct pollfd){ .fd = feed_fd(d->feed), .events = POLLIN };
    p[1] = (struct pollfd){ .fd = -1 };
    if (d->phase == PAUSE)
        p[1] = (struct pollfd){ .fd = d->timer, .events = POLLIN };
    else if (d->phase == SENDING || d->phase == ANSWER)
        p[1] = (struct pollfd){ .fd = d->conn ? conn_fd(d->conn) : -1,
                                .events = d->phase == SENDING ? POLLOUT : POLLIN };
}

enum feed_is duplex_read(struct duplex *d, struct str *out_bytes, struct err *e)
{
    return feed_read(d->feed, out_bytes, e);
}

bool duplex_is_open(const struct duplex *d)
{
    return feed_is_open(d->feed);
}

bool duplex_takes(const struct duplex *d)
{
    return d->phase == IDLE && duplex_is_open(d);
}

static void begin(struct duplex *d)
{
    d->phase = SENDING;
    d->sent = 0;
    reading_clear(&d->answer);
    d->answer = (struct reading){ .raw = BUF(ANSWER_BYTES_MAX), .body = BUF(ANSWER_BYTES_MAX) };
}

void duplex_write(struct duplex *d, struct str bytes)
{
    char path[sizeof d->path + 32];
    snprintf(path, sizeof path, "%s?n=%llu", d->path, (unsigned long long)d->number);
    struct call call = {
        .method = "POST", .path = path, .body = bytes, .type = "application/octet-stream"
    };
    buf_truncate(&d->request, 0);
    client_print_request(d->client, &call, &d->request);
    begin(d);
}

static void pause_for(struct duplex *d, int64_t ns, bool again)
{
    struct itimerspec when = { .it_value = { .tv_sec = ns / 1000000000,
                                             .tv_nsec = ns % 1000000000 } };
    timerfd_settime(d->timer, 0, &when, NULL);
    d->phase = PAUSE;
    d->again = again;
}

static int answered(struct duplex *d, struct err *e)
{
    int status = d->answer.response.status;
    int64_t now_ns = clock_mono_ns();
    d->kept = true;
    if (!d->answer.response.keep_alive)
        d->conn = conn_free(d->conn);
    if (status == TOO_MANY) {
        pause_for(d, BACK_OFF_NS, true);
        return 0;
    }
    if (status >= 400) {
        client_refused(status, buf_str(&d->answer.body), NULL, 0, e);
        d->phase = OVER;
        return e->code == ERR_NOT_FOUND ? 0 : -1; /* not found: it has ended meanwhile */
    }
    d->number++;
    d->due_ns = MAX(d->due_ns + PACE_NS, now_ns - BURST_NS);
    if (d->due_ns > now_ns)
        pause_for(d, d->due_ns - now_ns, false);
    else
        d->phase = IDLE;
    return 0;
}

/* A kept connection may have been closed while nobody used it: once more, on a new one. */
static int broken(struct duplex *d, struct err *e)
{
    d->conn = conn_free(d->conn);
    if (!d->kept)
        return err_set(e, ERR_UNAVAILABLE, "the server closed the connection");
    d->kept = false;
    begin(d);
    return 1;
}

/* 1: there is more to do; 0: not now. */
static int send_on(struct duplex *d, struct err *e)
{
    size_t n = 0;
    if (!d->conn && !(d->conn = conn_open(client_address(d->client), CONNECT_TIMEOUT_MS, e)))
        return -1;
    struct str rest = { d->request.p + d->sent, d->request.n - d->sent };
    enum conn_io io = conn_write(d->conn, rest, &n, e);
    if (io == CONN_AGAIN)
        return 0;
    if (io != CONN_OK)
        return broken(d, e);
    d->sent += n;
    if (d->sent == d->request.n)
        d->phase = ANSWER;
    return 1;
}

static int read_on(struct duplex *d, struct err *e)
{
    char chunk[4096];
    size_t n = 0;
    enum conn_io io = conn_read(d->conn, chunk, sizeof chunk, &n, e);
    if (io == CONN_AGAIN)
        return 0;
    if (io != CONN_OK)
        return broken(d, e);
    if (reading_add(&d->answer, (struct str){ chunk, n }, e) < 0)
        return -1;
    if (d->answer.response.state == RESPONSE_DONE)
        return answered(d, e) < 0 ? -1 : 1;
    return 1;
}

static int wait_on(struct duplex *d)
{
    uint64_t times;
    if (read(d->timer, &times, sizeof times) < 0)
        return 0;
    if (d->again)
        begin(d);
    else
        d->phase = IDLE;
    return 1;
}

int duplex_step(struct duplex *d, struct err *e)
{
    int rc = 1;
    while (rc == 1) {
        switch (d->phase) {
        case SENDING: rc = send_on(d, e); break;
        case ANSWER: rc = read_on(d, e); break;
        case PAUSE: rc = wait_on(d); break;
        case IDLE:
        case OVER: rc = 0; break;
        }
    }
    return rc;
}
