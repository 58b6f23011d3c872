#include "client/response.h"

#include <stdio.h>

#include "base/parse.h"

#define CHUNK_LINE_MAX 4096u

static int broken(const char *what, struct err *e)
{
    err_set(e, ERR_UNAVAILABLE, "the server's answer is not HTTP: %s", what);
    return err_hint(e, "is NIGHTSHIFT_SERVER the address of a Nightshift server?");
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(struct str s, const char *word)
{
    size_t n = strlen(word);
    if (s.n != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(s.p[i]) != word[i])
            return false;
    return true;
}

/* One of the words of a list like "keep-alive, Upgrade". */
static bool has_word(struct str list, const char *word)
{
    struct str one;
    while (list.n) {
        str_cut(list, ',', &one, &list);
        if (same_word(str_trim(one), word))
            return true;
    }
    return false;
}

static int status_line(struct response *r, struct str line, struct err *e)
{
    struct str version, rest, code, reason;
    uint64_t status;
    struct err why;
    str_cut(line, ' ', &version, &rest);
    str_cut(rest, ' ', &code, &reason);
    if (!str_is(version, "HTTP/1.1") && !str_is(version, "HTTP/1.0"))
        return broken("it does not begin with HTTP/1.1", e);
    if (code.n != 3 || parse_u64(code, 599, &status, &why) < 0 || status < 100)
        return broken("it has no status", e);
    r->status = (int)status;
    r->keep_alive = str_is(version, "HTTP/1.1");
    return 0;
}

struct framing {
    bool chunked, has_length;
    uint64_t length;
};

static int header_line(struct response *r, struct framing *f, struct str line, struct err *e)
{
    struct str name, value;
    struct err why;
    uint64_t length;
    if (!str_cut(line, ':', &name, &value) || name.n == 0)
        return broken("a header line has no name", e);
    value = str_trim(value);
    if (same_word(name, "content-length")) {
        if (parse_u64(value, INT64_MAX, &length, &why) < 0 ||
            (f->has_length && length != f->length))
            return broken("its length is not a number", e);
        f->has_length = true;
        f->length = length;
    } else if (same_word(name, "transfer-encoding")) {
        f->chunked = has_word(value, "chunked");
        if (!f->chunked)
            return broken("its transfer encoding is not 'chunked'", e);
    } else if (same_word(name, "connection") && has_word(value, "close")) {
        r->keep_alive = false;
    } else if (same_word(name, "content-type")) {
        str_cut(value, ';', &value, &name);
        value = str_trim(value);
        size_t n = MIN(value.n, sizeof r->type - 1);
        for (size_t i = 0; i < n; i++)
            r->type[i] = lower(value.p[i]);
        r->type[n] = '\0';
    }
    return 0;
}

static void begin_body(struct response *r, const struct framing *f)
{
    bool empty = r->status == 204 || r->status == 304;
    if (r->status == 101) {
        r->state = RESPONSE_TO_EOF; /* another protocol from here on */
    } else if (empty || (f->has_length && !f->chunked && f->length == 0)) {
        r->state = RESPONSE_DONE;
    } else if (f->chunked) {
        r->state = RESPONSE_CHUNK_SIZE;
    } else {
        r->state = f->has_length ? RESPONSE_LENGTH : RESPONSE_TO_EOF;
        r->left = f->length;
    }
    if (r->state == RESPONSE_TO_EOF)
        r->keep_alive = false;
}

/* The bytes up to and with the empty line, or 0. */
static size_t head_length(struct str in)
{
    for (size_t i = 0; i < in.n; i++) {
        if (in.p[i] != '\n')
            continue;
        if (i + 1 < in.n && in.p[i + 1] == '\n')
            return i + 2;
        if (i + 2 < in.n && in.p[i + 1] == '\r' && in.p[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

int response_head(struct response *r, struct str in, size_t *out_used, struct err *e)
{
    struct framing f = { 0 };
    size_t n = head_length((struct str){ in.p, MIN(in.n, (size_t)RESPONSE_HEAD_MAX) });
    if (n == 0 && in.n >= RESPONSE_HEAD_MAX)
        return broken("its head is too long", e);
    *out_used = 0;
    if (n == 0)
        return 0;
    struct response got = { 0 };
    struct str rest = { in.p, n }, line;
    if (!str_next_line(&rest, &line) || status_line(&got, line, e) < 0)
        return -1;
    while (str_next_line(&rest, &line) && line.n)
        if (header_line(&got, &f, line, e) < 0)
            return -1;
    *out_used = n;
    if (got.status >= 100 && got.status < 200 && got.status != 101)
        return 0; /* "100 Continue": the real answer follows */
    begin_body(&got, &f);
    *r = got;
    return 0;
}

static int chunk_size(struct response *r, struct str line, struct err *e)
{
    struct str size, extension;
    str_cut(line, ';', &size, &extension);
    size = str_trim(size);
    uint64_t v = 0;
    if (size.n == 0 || size.n > 15)
        return broken("a chunk has no size", e);
    for (size_t i = 0; i < size.n; i++) {
        char c = lower(size.p[i]);
        bool digit = c >= '0' && c <= '9';
        if (!digit && (c < 'a' || c > 'f'))
            return broken("a chunk has no size", e);
        v = v * 16 + (uint64_t)(digit ? c - '0' : c - 'a' + 10);
    }
    r->left = v;
    r->state = v ? RESPONSE_CHUNK : RESPONSE_TRAILER;
    return 0;
}

static int chunk_line(struct response *r, struct str in, size_t *out_used, struct err *e)
{
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return in.n > CHUNK_LINE_MAX ? broken("a line between chunks is too long", e) : 0;
    struct str line = str_trim((struct str){ in.p, (size_t)(end - in.p) });
    *out_used = (size_t)(end - in.p) + 1;
    if (r->state == RESPONSE_CHUNK_SIZE)
        return chunk_size(r, line, e);
    if (r->state == RESPONSE_TRAILER) {
        if (line.n == 0)
            r->state = RESPONSE_DONE;
        return 0;
    }
    if (line.n)
        return broken("a chunk is longer than its size", e);
    r->state = RESPONSE_CHUNK_SIZE;
    return 0;
}

int response_body(struct response *r, struct str in, size_t *out_used, struct str *out_body,
                  struct err *e)
{
    *out_used = 0;
    *out_body = (struct str){ in.p, 0 };
    switch (r->state) {
    case RESPONSE_HEAD: return err_set(e, ERR_INTERNAL, "the head was not read yet");
    case RESPONSE_DONE: return 0;
    case RESPONSE_TO_EOF: *out_used = out_body->n = in.n; return 0;
    case RESPONSE_LENGTH:
    case RESPONSE_CHUNK:
        *out_used = out_body->n = (size_t)MIN((uint64_t)in.n, r->left);
        r->left -= *out_used;
        if (r->left == 0)
            r->state = r->state == RESPONSE_CHUNK ? RESPONSE_CHUNK_END : RESPONSE_DONE;
        return 0;
    case RESPONSE_CHUNK_SIZE:
    case RESPONSE_CHUNK_END:
    case RESPONSE_TRAILER: return chunk_line(r, in, out_used, e);
    }
    return err_set(e, ERR_INTERNAL, "no such state of an answer");
}

int response_eof(struct response *r, struct err *e)
{
    if (r->state == RESPONSE_DONE || r->state == RESPONSE_TO_EOF) {
        r->state = RESPONSE_DONE;
        return 0;
    }
    err_set(e, ERR_UNAVAILABLE, "the server closed the connection in the middle of its answer");
    return err_hint(e, "try again; if it stays so, see the log of nightshiftd");
}
