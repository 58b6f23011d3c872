#include "node/kubelet.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/clock.h"
#include "sys/file.h"

#define FRAME_HEAD 5 /* a byte: compressed or not; four: how long */

struct asking {
    int fd;
    int64_t until_ns;
    struct buf *out; /* frames as they come */
    int32_t stream;
    size_t sent;
    bool closed, too_long;
    char status[8];          /* of HTTP */
    char code[8], text[200]; /* of gRPC: what the last headers say */
};

static const char question[FRAME_HEAD] = { 0 }; /* an empty message, not compressed */

static bool is(struct str name, const char *z)
{
    return str_is(name, z);
}

static void keep(char *out, size_t size, struct str value)
{
    size_t n = MIN(value.n, size - 1);
    memcpy(out, value.p, n);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 127)
            out[i] = '?';
}

static int failed(const char *what, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "%s: %s", what, strerror(errno));
}

/* ---- what nghttp2 calls ---- */

static struct str bytes_of(nghttp2_rcbuf *b)
{
    nghttp2_vec v = nghttp2_rcbuf_get_buf(b);
    return (struct str){ (const char *)v.base, v.len };
}

static int on_header(nghttp2_session *s, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *ctx)
{
    struct asking *a = ctx;
    struct str key = bytes_of(name), v = bytes_of(value);
    (void)s;
    (void)flags;
    if (frame->hd.stream_id != a->stream)
        return 0;
    if (is(key, ":status"))
        keep(a->status, sizeof a->status, v);
    else if (is(key, "grpc-status"))
        keep(a->code, sizeof a->code, v);
    else if (is(key, "grpc-message"))
        keep(a->text, sizeof a->text, v);
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
                   void *ctx)
{
    struct asking *a = ctx;
    (void)s;
    (void)flags;
    if (stream == a->stream && n)
        buf_add(a->out, (struct str){ (const char *)data, n });
    a->too_long |= a->out->full;
    return a->too_long ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *ctx)
{
    struct asking *a = ctx;
    (void)s;
    (void)code;
    a->closed |= stream == a->stream;
    return 0;
}

/* As nghttp2 wants such a function to be. */
#define BODY_ARGUMENTS                                                                             \
    nghttp2_session *s, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,                 \
        nghttp2_data_source *source, void *ctx

static ssize_t on_body(BODY_ARGUMENTS)
{
    struct asking *a = ctx;
    size_t n = MIN(room, sizeof question - a->sent);
    (void)s;
    (void)stream;
    (void)source;
    memcpy(to, question + a->sent, n);
    a->sent += n;
    if (a->sent == sizeof question)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* ---- the socket ---- */

static int wait_for(const struct asking *a, short what, struct err *e)
{
    struct pollfd p = { .fd = a->fd, .events = what };
    int64_t left_ms = (a->until_ns - clock_mono_ns()) / 1000000;
    int rc = left_ms <= 0 ? 0 : poll(&p, 1, (int)left_ms);
    if (rc < 0 && errno == EINTR)
        return 0;
    if (rc < 0)
        return failed("poll", e);
    return rc ? 0 : err_set(e, ERR_UNAVAILABLE, "the kubelet does not answer in time");
}

static int open_socket(struct asking *a, const char *path, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof to.sun_path)
        return err_set(e, ERR_INVALID, "the path of the kubelet's socket is too long");
    memcpy(to.sun_path, path, strlen(path));
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        return failed("socket", e);
    if (connect(a->fd, (struct sockaddr *)&to, sizeof to) == 0)
        return 0;
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
        return err_set(e, ERR_NOT_FOUND, "there is no kubelet at %s", path);
    return failed(path, e);
}

static int flush(struct asking *a, nghttp2_session *s, struct err *e)
{
    const uint8_t *bytes;
    for (ssize_t n; (n = nghttp2_session_mem_send(s, &bytes)) != 0;) {
        if (n < 0)
            return err_set(e, ERR_INTERNAL, "HTTP/2: %s", nghttp2_strerror((int)n));
        for (ssize_t done = 0; done < n;) {
            ssize_t took = send(a->fd, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
            if (took < 0 && errno != EAGAIN && errno != EINTR)
                return failed("send to the kubelet", e);
            if (took < 0 && wait_for(a, POLLOUT, e) < 0)
                return -1;
            done += MAX(took, 0);
        }
    }
    return 0;
}

static int receive(struct asking *a, nghttp2_session *s, struct err *e)
{
    uint8_t bytes[16384];
    ssize_t n = recv(a->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return wait_for(a, POLLIN, e);
    if (n < 0)
        return failed("receive from the kubelet", e);
    if (n == 0)
        return err_set(e, ERR_UNAVAILABLE, "the kubelet closed the connection");
    ssize_t took = nghttp2_session_mem_recv(s, bytes, (size_t)n);
    if (took < 0 && a->too_long)
        return err_set(e, ERR_TOO_LARGE, "the kubelet's answer is too long");
    return took < 0 ? err_set(e, ERR_INVALID, "HTTP/2: %s", nghttp2_strerror((int)took)) : 0;
}

/* ---- one question ---- */

static nghttp2_nv pair(const char *name, const char *value)
{
    union {
        const char *z;
        uint8_t *p; /* nghttp2 copies both */
    } n = { name }, v = { value };
    return (nghttp2_nv){ .name = n.p,
                         .value = v.p,
                         .namelen = strlen(name),
                         .valuelen = strlen(value),
                         .flags = NGHTTP2_NV_FLAG_NONE };
}

static int submit(struct asking *a, nghttp2_session *s, const char *method, struct err *e)
{
    const nghttp2_nv headers[] = {
        pair(":method", "POST"),
        pair(":scheme", "http"),
        pair(":path", method),
        pair(":authority", "localhost"),
        pair("content-type", "application/grpc"),
        pair("te", "trailers"),
        pair("user-agent", "nightshift-agent/" NS_VERSION),
    };
    const nghttp2_data_provider body = { .read_callback = on_body };
    int rc = nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, NULL, 0);
    if (rc == 0)
        rc = a->stream = nghttp2_submit_request(s, NULL, headers, ARRAY_LEN(headers), &body, NULL);
    return rc < 0 ? err_set(e, ERR_INTERNAL, "HTTP/2: %s", nghttp2_strerror(rc)) : 0;
}

/* One whole message that is not compressed, and a status that says so. */
static int check_answer(struct asking *a, struct err *e)
{
    struct str s = buf_str(a->out);
    if (!is(str_of(a->status), "200"))
        return err_set(e, ERR_UNAVAILABLE, "the kubelet answers with status %s",
                       a->status[0] ? a->status : "(none)");
    if (!is(str_of(a->code), "0"))
        return err_set(e, ERR_UNAVAILABLE, "the kubelet answers with code %s: %s",
                       a->code[0] ? a->code : "(none)", a->text);
    if (s.n < FRAME_HEAD || s.p[0] != 0)
        return err_set(e, ERR_INVALID, "the kubelet's answer is no message");
    size_t n = 0;
    for (int i = 1; i < FRAME_HEAD; i++)
        n = n << 8 | (unsigned char)s.p[i];
    if (n != s.n - FRAME_HEAD)
        return err_set(e, ERR_INVALID, "the kubelet's answer is not one message");
    buf_drop_front(a->out, FRAME_HEAD);
    return 0;
}

static int talk(struct asking *a, nghttp2_session *s, const char *method, struct err *e)
{
    if (submit(a, s, method, e) < 0)
        return -1;
    while (!a->closed) {
        if (flush(a, s, e) < 0)
            return -1;
        if (!nghttp2_session_want_read(s))
            return err_set(e, ERR_UNAVAILABLE, "the kubelet ended the connection");
        if (clock_mono_ns() > a->until_ns)
            return err_set(e, ERR_UNAVAILABLE, "the kubelet does not answer in time");
        if (receive(a, s, e) < 0)
            return -1;
    }
    return check_answer(a, e);
}

int kubelet_ask(const char *socket_path, const char *method, int timeout_ms, struct buf *out,
                struct err *e)
{
    struct asking a = { .fd = -1,
                        .out = out,
                        .until_ns = clock_mono_ns() + (int64_t)timeout_ms * 1000000 };
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_session *s = NULL;
    int rc = open_socket(&a, socket_path, e);
    if (rc == 0 && nghttp2_session_callbacks_new(&calls) != 0)
        rc = err_set(e, ERR_INTERNAL, "HTTP/2: no memory");
    if (rc == 0) {
        nghttp2_session_callbacks_set_on_header_callback2(calls, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
        if (nghttp2_session_client_new(&s, calls, &a) != 0)
            rc = err_set(e, ERR_INTERNAL, "HTTP/2: no memory");
    }
    if (rc == 0)
        rc = talk(&a, s, method, e);
    nghttp2_session_del(s);
    nghttp2_session_callbacks_del(calls);
    file_close_p(&a.fd);
    return rc;
}
