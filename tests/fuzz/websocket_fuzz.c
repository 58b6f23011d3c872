/* Any bytes as what a server sends: a handshake and frames lie inside them, are read the same when they come in two
 * pieces, and what is refused is told. */
#include "kube/websocket.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void try_frames(struct str in)
{
    struct kube_ws_frame f, again;
    struct err e = { 0 };
    size_t n = 0, again_n = 0;
    int rc;
    while ((rc = kube_ws_read(in, &f, &n, &e)) > 0) {
        must(n >= 2 && n <= in.n && f.payload.n <= KUBE_WS_PAYLOAD_MAX);
        must(f.payload.p >= in.p && f.payload.p + f.payload.n == in.p + n);
        must(kube_ws_read((struct str){ in.p, n - 1 }, &again, &again_n, &e) == 0);
        must(kube_ws_read((struct str){ in.p, n }, &again, &again_n, &e) == 1 && again_n == n);
        in = (struct str){ in.p + n, in.n - n };
    }
    must(rc == 0 || e.msg[0]);
}

static void try_write(struct str text)
{
    static const uint8_t mask[4] = { 0 };
    AUTO(buf_free) struct buf out = BUF(text.n + KUBE_WS_HEAD_MAX);
    struct kube_ws_frame f;
    struct err e;
    size_t n;
    kube_ws_write(&out, KUBE_WS_BINARY, STR(""), text, mask);
    must(!out.full &&
         kube_ws_read(buf_str(&out), &f, &n, &e) < 0); /* a client's frame is not a server's */
}

FUZZ_TARGET(data, size)
{
    struct str in = { size ? (const char *)data : "", size };
    struct kube_ws_welcome w;
    struct err e = { 0 };
    int rc = kube_ws_welcome(in, &w, &e);
    if (rc > 0) {
        must(w.status >= 100 && w.status <= 599 && w.head_n <= size);
        must(w.protocol.n == 0 || (w.protocol.p >= in.p && w.protocol.p < in.p + w.head_n));
        in = (struct str){ in.p + w.head_n, in.n - w.head_n };
    }
    must(rc >= 0 || e.msg[0]);
    try_frames(in);
    try_write(in);
    return 0;
}
