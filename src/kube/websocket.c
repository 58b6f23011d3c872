#include "kube/websocket.h"

#include <strings.h>

#include "base/parse.h"

#define CONTROL_MAX 125
#define KEY "bmlnaHRzaGlmdC1leGVjIQ=="
/* base64 of the SHA-1 of KEY with the GUID of the RFC behind it */
#define ACCEPT "ku7S62yQUUpTuxt7O2SldjjkJ7g="

/* ---- frames ---- */

static int broken(struct err *e, const char *what)
{
    return err_set(e, ERR_UNAVAILABLE, "the server's WebSocket is broken: %s", what);
}

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static bool is_known(unsigned kind)
{
    return kind <= KUBE_WS_BINARY || (kind >= KUBE_WS_CLOSE && kind <= KUBE_WS_PONG);
}

int kube_ws_read(struct str in, struct kube_ws_frame *out, size_t *out_n, struct err *e)
{
    const uint8_t *p = (const uint8_t *)in.p;
    if (in.n < 2)
        return 0;
    unsigned kind = p[0] & 0x0f, length = p[1] & 0x7f;
    bool last = p[0] & 0x80, control = kind & 0x08;
    if (p[0] & 0x70)
        return broken(e, "a bit is set that nobody asked for");
    if (!is_known(kind))
        return broken(e, "an unknown kind of frame");
    if (p[1] & 0x80)
        return broken(e, "a masked frame");
    if (control && (length > CONTROL_MAX || !last))
        return broken(e, "a control frame that is long or split");
    size_t more = length == 127 ? 8 : length == 126 ? 2 : 0;
    if (in.n < 2 + more)
        return 0;
    uint64_t n = more ? big_endian(p + 2, more) : length;
    if (n > KUBE_WS_PAYLOAD_MAX)
        return broken(e, "a frame that is too long");
    if (in.n - 2 - more < n)
        return 0;
    *out = (struct kube_ws_frame){ (enum kube_ws_kind)kind, last, { in.p + 2 + more, (size_t)n } };
    *out_n = 2 + more + (size_t)n;
    return 1;
}

static void add_masked(struct buf *out, struct str text, const uint8_t *mask, size_t at)
{
    char chunk[512];
    for (size_t i = 0; i < text.n;) {
        size_t n = 0;
        for (; n < sizeof chunk && i < text.n; n++, i++)
            chunk[n] = (char)((uint8_t)text.p[i] ^ mask[(at + i) % 4]);
        buf_add(out, (struct str){ chunk, n });
    }
}

void kube_ws_write(struct buf *out, enum kube_ws_kind kind, struct str head, struct str payload,
                   const uint8_t mask[static 4])
{
    uint64_t n = head.n + payload.n;
    size_t more = n > UINT16_MAX ? 8 : n > CONTROL_MAX ? 2 : 0;
    uint8_t top[KUBE_WS_HEAD_MAX] = { (uint8_t)(0x80 | kind), (uint8_t)(0x80 | (more == 8   ? 127
                                                                                : more == 2 ? 126
                                                                                            : n)) };
    for (size_t i = 0; i < more; i++)
        top[2 + i] = (uint8_t)(n >> 8 * (more - 1 - i));
    memcpy(top + 2 + more, mask, 4);
    buf_add(out, (struct str){ (char *)top, 2 + more + 4 });
    add_masked(out, head, mask, 0);
    add_masked(out, payload, mask, head.n);
}

/* ---- the handshake ---- */

void kube_ws_hello(struct buf *out, const struct kube_ws_hello *hello)
{
    buf_printf(out, "GET %.*s HTTP/1.1\r\nHost: %.*s\r\n", (int)hello->path.n, hello->path.p,
               STR_ARG(hello->host));
    buf_printf(out,
               "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Protocol: %s\r\n"
               "User-Agent: nightshift/" NS_VERSION "\r\n",
               hello->protocols);
    if (hello->bearer)
        buf_printf(out, "%s\r\n", hello->bearer);
    buf_addz(out, "\r\n");
}

struct heard {
    bool upgrade, connection, accept;
};

static bool is_like(struct str s, const char *z)
{
    return s.n == strlen(z) && strncasecmp(s.p, z, s.n) == 0;
}

/* Is the word one of a list with commas? */
static bool has_word(struct str list, const char *word)
{
    struct str one;
    while (list.n) {
        str_cut(list, ',', &one, &list);
        if (is_like(str_trim(one), word))
            return true;
    }
    return false;
}

static void take_header(struct str line, struct kube_ws_welcome *w, struct heard *h)
{
    struct str name, value;
    struct err ignored;
    uint64_t n;
    if (!str_cut(line, ':', &name, &value))
        return;
    value = str_trim(value);
    if (is_like(name, "Upgrade"))
        h->upgrade = is_like(value, "websocket");
    else if (is_like(name, "Connection"))
        h->connection = has_word(value, "upgrade");
    else if (is_like(name, "Sec-WebSocket-Accept"))
        h->accept = str_is(value, ACCEPT);
    else if (is_like(name, "Sec-WebSocket-Protocol"))
        w->protocol = value;
    else if (is_like(name, "Content-Length") && parse_u64(value, SIZE_MAX - 1, &n, &ignored) == 0)
        w->body_n = (size_t)n;
}

static int take_status(struct str line, struct kube_ws_welcome *w, struct err *e)
{
    struct str version, rest, code, ignored;
    uint64_t status;
    str_cut(line, ' ', &version, &rest);
    str_cut(rest, ' ', &code, &ignored);
    if (version.n < 8 || strncmp(version.p, "HTTP/1.", 7) != 0 || code.n != 3 ||
        parse_u64(code, 599, &status, e) < 0 || status < 100)
        return broken(e, "it does not speak HTTP");
    w->status = (int)status;
    return 0;
}

int kube_ws_welcome(struct str in, struct kube_ws_welcome *out, struct err *e)
{
    struct kube_ws_welcome w = { .body_n = SIZE_MAX, .protocol = STR("") };
    struct heard h = { 0 };
    struct str rest, line;
    const char *end = memmem(in.p, in.n, "\r\n\r\n", 4);
    if (!end)
        return in.n > KUBE_WS_WELCOME_MAX ? broken(e, "an endless answer") : 0;
    w.head_n = (size_t)(end - in.p) + 4;
    rest = (struct str){ in.p, w.head_n };
    if (!str_next_line(&rest, &line) || take_status(line, &w, e) < 0)
        return -1;
    while (str_next_line(&rest, &line))
        take_header(line, &w, &h);
    if (w.status == 101 && !(h.upgrade && h.connection && h.accept))
        return broken(e, "it agreed to something else");
    *out = w;
    return 1;
}
