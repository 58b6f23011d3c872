#include "tests/lib/asked.h"

#include <stdio.h>
#include <strings.h>

#include "http/problem.h"
#include "http/target.h"
#include "tests/lib/test.h"

#define STREAM_MAX (8u << 20)  /* that may wait for a slow reader, as the daemon has it */
#define TEXT_MAX_ (128u << 20) /* of one answer */
#define ROOM_BYTES (64u << 10) /* still waiting when more is asked for, as in http/stream.c */

struct header {
    struct header *next;
    const char *name, *value;
};

struct http_request {
    struct arena arena;
    const char *method;
    struct target target, form;
    struct str body;
    struct header *said, *says; /* by the client, by the handler */
    struct http_peer peer;
    int status;
    bool streams, ended, left, filled;
    struct buf text;
    size_t waiting; /* of the text: not read by the client */
    loop_fn *on_close, *on_room;
    void *ctx;
};

/* ---- made of values ---- */

static void add_header(struct http_request *rq, struct header **end, const char *name,
                       const char *value)
{
    struct header *h = arena_new(&rq->arena, struct header);
    h->name = arena_printf(&rq->arena, "%s", name);
    h->value = arena_strndup(&rq->arena, value, strlen(value));
    while (*end)
        end = &(*end)->next;
    *end = h;
}

struct http_request *asked_new(const struct asked_question *q)
{
    struct http_request *rq = xcalloc(1, sizeof *rq);
    struct err e;
    rq->text = BUF(TEXT_MAX_);
    rq->peer = q->peer;
    rq->method = arena_printf(&rq->arena, "%s", q->method);
    rq->body =
        (struct str){ arena_strndup(&rq->arena, q->body.p ? q->body.p : "", q->body.n), q->body.n };
    if (target_parse(str_of(q->target), &rq->arena, &rq->target, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", q->target, e.msg);
    for (const struct asked_header *h = q->header; h->name; h++)
        add_header(rq, &rq->said, h->name, h->value);
    return rq;
}

struct http_request *asked_free(struct http_request *rq)
{
    if (!rq)
        return NULL;
    asked_leave(rq);
    buf_free(&rq->text);
    arena_free(&rq->arena);
    free(rq);
    return NULL;
}

static const struct header *find(const struct header *h, const char *name)
{
    while (h && strcasecmp(h->name, name) != 0)
        h = h->next;
    return h;
}

int asked_status(const struct http_request *rq)
{
    return rq->status;
}

const char *asked_said(const struct http_request *rq, const char *header)
{
    const struct header *h = find(rq->says, header);
    return h ? h->value : NULL;
}

size_t asked_count(const struct http_request *rq, const char *header)
{
    size_t n = 0;
    for (const struct header *h = find(rq->says, header); h; h = find(h->next, header))
        n++;
    return n;
}

bool asked_streams(const struct http_request *rq)
{
    return rq->streams;
}

bool asked_over(const struct http_request *rq)
{
    return rq->streams ? rq->ended || rq->left : rq->status != 0;
}

struct str asked_text(const struct http_request *rq)
{
    return rq->text.p ? buf_str(&rq->text) : STR("");
}

void asked_read(struct http_request *rq)
{
    rq->waiting = 0;
    if (!rq->streams || rq->ended || rq->left || !rq->filled || !rq->on_room)
        return;
    rq->filled = false;
    rq->on_room(rq->ctx);
}

void asked_leave(struct http_request *rq)
{
    bool tell = rq->streams && !rq->ended && !rq->left;
    rq->left = true;
    if (tell && rq->on_close)
        rq->on_close(rq->ctx);
}

/* ---- what a handler may ask ---- */

const char *http_method(const struct http_request *rq)
{
    return rq->method;
}

const char *http_path(const struct http_request *rq)
{
    return rq->target.path;
}

const char *http_query(const struct http_request *rq, const char *key)
{
    return target_find(&rq->target, key);
}

bool http_query_next(const struct http_request *rq, size_t i, const char **key, const char **value)
{
    return target_next(&rq->target, i, key, value);
}

const char *http_header(const struct http_request *rq, const char *name)
{
    const struct header *h = find(rq->said, name);
    return h ? h->value : NULL;
}

const char *http_cookie(const struct http_request *rq, const char *name)
{
    const char *all = http_header(rq, "Cookie");
    struct str rest = str_of(all ? all : ""), one, key, value;
    while (rest.n) {
        str_cut(rest, ';', &one, &rest);
        if (str_cut(str_trim(one), '=', &key, &value) && str_is(key, name))
            return arena_strndup((struct arena *)(uintptr_t)&rq->arena, value.p, value.n);
    }
    return NULL;
}

struct str http_body(const struct http_request *rq)
{
    return rq->body;
}

int http_read_form(struct http_request *rq, struct err *e)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = http_header(rq, "Content-Type");
    if (!type || strncasecmp(type, form, sizeof form - 1) != 0)
        return err_set(e, ERR_INVALID, "header 'Content-Type': the body must be %s", form);
    if (rq->body.n > HTTP_FORM_MAX)
        return err_set(e, ERR_TOO_LARGE, "the form is larger than %d bytes", HTTP_FORM_MAX);
    if (target_parse_pairs(rq->body, &rq->arena, &rq->form, e) < 0)
        return err_set(e, ERR_INVALID, "the body is not a form");
    return 0;
}

const char *http_form(const struct http_request *rq, const char *key)
{
    return target_find(&rq->form, key);
}

bool http_form_next(const struct http_request *rq, size_t i, const char **key, const char **value)
{
    return target_next(&rq->form, i, key, value);
}

const struct http_peer *http_peer(const struct http_request *rq)
{
    return &rq->peer;
}

struct arena *http_arena(struct http_request *rq)
{
    return &rq->arena;
}

/* ---- the answer ---- */

void http_add_header(struct http_request *rq, const char *name, const char *value)
{
    CHECK(name[0] && name[strcspn(name, " :\r\n\t")] == '\0');
    CHECK(value[strcspn(value, "\r\n")] == '\0');
    add_header(rq, &rq->says, name, value);
}

static void begin(struct http_request *rq, int status, const char *type)
{
    if (rq->status)
        test_fail(__FILE__, __LINE__, "%s %s: answered twice, with %d and %d", rq->method,
                  rq->target.path, rq->status, status);
    rq->status = status;
    if (type && !find(rq->says, "Content-Type"))
        add_header(rq, &rq->says, "Content-Type", type);
}

void http_reply(struct http_request *rq, int status, const char *type, struct str body)
{
    begin(rq, status, type);
    if (type)
        buf_add(&rq->text, body);
}

void http_reply_status(struct http_request *rq, int status, const struct err *err,
                       const char *field)
{
    AUTO(buf_free) struct buf text = BUF(PROBLEM_MAX);
    problem_write(status, err, field, &text);
    http_reply(rq, status, PROBLEM_TYPE, buf_str(&text));
}

void http_reply_error(struct http_request *rq, const struct err *err, const char *field)
{
    http_reply_status(rq, err_info(err->code)->http_status, err, field);
}

void http_stream_begin(struct http_request *rq, int status, const char *type, loop_fn *on_close,
                       void *ctx)
{
    begin(rq, status, type);
    rq->streams = true;
    rq->on_close = on_close;
    rq->ctx = ctx;
}

bool http_stream_write(struct http_request *rq, struct str bytes)
{
    if (rq->ended || rq->left)
        return false;
    CHECK(rq->streams);
    if (rq->waiting + bytes.n > STREAM_MAX) { /* the server cuts it off, and tells so later */
        rq->waiting = STREAM_MAX + 1;
        return false;
    }
    buf_add(&rq->text, bytes);
    rq->waiting += bytes.n;
    rq->filled = rq->filled || rq->waiting > ROOM_BYTES;
    return true;
}

size_t http_stream_queued(const struct http_request *rq)
{
    return rq->waiting;
}

void http_stream_on_room(struct http_request *rq, loop_fn *fn)
{
    rq->on_room = fn;
}

void http_stream_end(struct http_request *rq)
{
    rq->ended = true;
}
