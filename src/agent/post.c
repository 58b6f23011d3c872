#include "agent/post.h"

#include "client/conn.h"
#include "client/response.h"
#include "sys/file.h"

#define ANSWER_MAX (64u << 10)

struct post {
    struct post_config config;
    struct address address;
    struct conn *conn;
};

struct post *post_new(const struct post_config *c, struct err *e)
{
    struct post *p = xcalloc(1, sizeof *p);
    p->config = *c;
    return address_parse(c->server, &p->address, e) < 0 ? post_free(p) : p;
}

struct post *post_free(struct post *p)
{
    if (!p)
        return NULL;
    conn_free(p->conn);
    free(p);
    return NULL;
}

static int read_more(struct post *p, struct buf *in, bool *out_eof, struct err *e)
{
    char room[4096];
    size_t n = 0;
    for (;;) {
        switch (conn_read(p->conn, room, sizeof room, &n, e)) {
        case CONN_OK: buf_add(in, (struct str){ room, n }); return buf_check(in, e);
        case CONN_EOF: *out_eof = true; return 0;
        case CONN_BROKEN: return -1;
        case CONN_AGAIN: break;
        }
        if (conn_wait_readable(p->conn, p->config.timeout_ms, e) < 0)
            return -1;
    }
}

static int read_answer(struct post *p, struct buf *out_answer, int *out_status, struct err *e)
{
    AUTO(buf_free) struct buf in = BUF(ANSWER_MAX);
    struct response r = { 0 };
    bool eof = false;
    size_t used;
    while (r.state != RESPONSE_DONE) {
        struct str body = { 0 };
        if (r.state == RESPONSE_HEAD ? response_head(&r, buf_str(&in), &used, e) < 0
                                     : response_body(&r, buf_str(&in), &used, &body, e) < 0)
            return -1;
        buf_add(out_answer, body);
        buf_drop_front(&in, used);
        if (used || r.state == RESPONSE_DONE)
            continue;
        if (eof)
            return response_eof(&r, e) < 0 ? -1 : 0;
        if (read_more(p, &in, &eof, e) < 0)
            return -1;
    }
    *out_status = r.status;
    if (!r.keep_alive)
        p->conn = conn_free(p->conn);
    return buf_check(out_answer, e);
}

static int try_once(struct post *p, struct str request, struct buf *out_answer, int *out_status,
                    struct err *e)
{
    if (!p->conn)
        p->conn = conn_open(&p->address, p->config.timeout_ms, e);
    if (!p->conn)
        return -1;
    if (conn_write_all(p->conn, request, p->config.timeout_ms, e) != CONN_OK) {
        if (e->code == ERR_NONE)
            err_set(e, ERR_UNAVAILABLE, "the control plane closed the connection");
        return -1;
    }
    return read_answer(p, out_answer, out_status, e);
}

/* What no token has would be a header of its own. */
static int add_token(const struct post *p, struct buf *request, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str t = str_of(p->config.token ? p->config.token : "");
    if (p->config.token_file) {
        if (file_read(p->config.token_file, 8192, &text, e) < 0)
            return err_wrap(e, "the token's file");
        t = str_trim(buf_str(&text));
    }
    for (size_t i = 0; i < t.n; i++)
        if ((unsigned char)t.p[i] <= ' ' || (unsigned char)t.p[i] >= 127)
            return err_set(e, ERR_INVALID, "the token has a byte that no token has");
    if (t.n) {
        buf_addz(request, "Authorization: Bearer ");
        buf_add(request, t);
        buf_addz(request, "\r\n");
    }
    return 0;
}

int post_send(struct post *p, const char *path, struct str body, struct buf *out_answer,
              int *out_status, struct err *e)
{
    AUTO(buf_free) struct buf request = BUF(body.n + 16384);
    const char *host = p->address.kind == ADDRESS_UNIX ? "localhost" : p->address.host;
    buf_printf(&request, "POST %s HTTP/1.1\r\nHost: %s\r\n", path, host);
    buf_printf(&request, "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n",
               body.n);
    if (add_token(p, &request, e) < 0)
        return -1;
    buf_addz(&request, "\r\n");
    buf_add(&request, body);
    if (buf_check(&request, e) < 0)
        return -1;
    bool reused = p->conn != NULL;
    for (;;) {
        *e = (struct err){ 0 };
        buf_truncate(out_answer, 0);
        if (try_once(p, buf_str(&request), out_answer, out_status, e) == 0)
            return 0;
        p->conn = conn_free(p->conn);
        if (!reused)
            return -1;
        reused = false; /* the server had closed it meanwhile: once more on a new one */
    }
}
