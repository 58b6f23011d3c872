#include <stdio.h>
#include <strings.h>

#include "http/problem.h"
#include "http/state.h"

/* On every reply, unless the handler gave a header of that name. */
static const struct {
    const char *name, *value;
} defaults[] = {
    { "Server", "nightshift" },
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
    { "Cache-Control", "no-store" },
};

bool header_is_token(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "!#$%&'*+-.^_`|~";
    return name[0] && name[strspn(name, letters)] == '\0';
}

static bool is_field_value(const char *value)
{
    for (const char *p = value; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
            return false;
    return true;
}

void http_add_header(struct http_request *rq, const char *name, const char *value)
{
    if (!header_is_token(name) || !is_field_value(value)) {
        log_event(rq->conn->server->config.log, LOG_ERROR_, "http.bad_header",
                  "path=%s name=%s value=%s", rq->target.path, name, value);
        return;
    }
    struct header *h = arena_new(&rq->arena, struct header), **end = &rq->headers;
    h->name = arena_strndup(&rq->arena, name, strlen(name));
    h->value = arena_strndup(&rq->arena, value, strlen(value));
    while (*end)
        end = &(*end)->next;
    *end = h;
}

static bool has_header(const struct http_request *rq, const char *name)
{
    for (const struct header *h = rq->headers; h; h = h->next)
        if (strcasecmp(h->name, name) == 0)
            return true;
    return false;
}

bool reply_may_begin(struct http_request *rq)
{
    if (rq->answered)
        log_event(rq->conn->server->config.log, LOG_ERROR_, "http.answered_twice",
                  "method=%s path=%s", rq->method, rq->target.path);
    return !rq->answered;
}

void reply_type(struct http_request *rq, const char *type)
{
    if (type && !has_header(rq, "Content-Type"))
        http_add_header(rq, "Content-Type", type);
}

void reply_with(struct http_request *rq, int status, struct MHD_Response *response)
{
    if (!response)
        abort(); /* for want of memory only */
    for (const struct header *h = rq->headers; h; h = h->next)
        MHD_add_response_header(response, h->name, h->value);
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        if (!has_header(rq, defaults[i].name))
            MHD_add_response_header(response, defaults[i].name, defaults[i].value);
    if (rq->conn->server->tls) /* half a year: browsers never ask this host in the open again */
        MHD_add_response_header(response, "Strict-Transport-Security", "max-age=15768000");
    if (rq->conn->server->quiesced && status != MHD_HTTP_SWITCHING_PROTOCOLS)
        MHD_add_response_header(response, "Connection", "close");
    rq->answered = true;
    rq->status = status;
    rq->response = response;
    request_resume(rq);
}

void http_reply(struct http_request *rq, int status, const char *type, struct str body)
{
    if (!reply_may_begin(rq))
        return;
    reply_type(rq, type);
    if (!type || body.n == 0)
        body = STR("");
    reply_with(
        rq, status,
        MHD_create_response_from_buffer(body.n, (void *)(uintptr_t)body.p, MHD_RESPMEM_MUST_COPY));
}

void reply_problem(struct http_request *rq, int status, const struct err *why, const char *field)
{
    AUTO(buf_free) struct buf text = BUF(PROBLEM_MAX);
    problem_write(status, why, field, &text);
    http_reply(rq, status, PROBLEM_TYPE, buf_str(&text));
}

/* What went wrong inside is for the log; the caller gets the number to ask for. */
static void reply_internal(struct http_request *rq, const struct err *why)
{
    struct http_server *s = rq->conn->server;
    struct err shown;
    char id[32];
    snprintf(id, sizeof id, "%llx-%llu", (unsigned long long)(uint64_t)server_now_ms(),
             (unsigned long long)++s->faults);
    log_event(s->config.log, LOG_ERROR_, "http.internal", "id=%s method=%s path=%s why=%s hint=%s",
              id, rq->method, rq->target.path, why->msg, why->hint);
    err_set(&shown, ERR_INTERNAL, "something went wrong in the server (%s)", id);
    err_hint(&shown, "ask whoever runs it to look for %s in its log", id);
    reply_problem(rq, err_info(ERR_INTERNAL)->http_status, &shown, NULL);
}

void http_reply_error(struct http_request *rq, const struct err *err, const char *field)
{
    if (err->code == ERR_INTERNAL)
        reply_internal(rq, err);
    else
        reply_problem(rq, err_info(err->code)->http_status, err, field);
}

void http_reply_status(struct http_request *rq, int status, const struct err *err,
                       const char *field)
{
    reply_problem(rq, status, err, field);
}

void reply_text(int status, const struct err *why, struct buf *out)
{
    AUTO(buf_free) struct buf body = BUF(PROBLEM_MAX);
    problem_write(status, why, NULL, &body);
    buf_printf(out, "HTTP/1.1 %d %s\r\nConnection: close\r\n", status,
               MHD_get_reason_phrase_for((unsigned)status));
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        buf_printf(out, "%s: %s\r\n", defaults[i].name, defaults[i].value);
    buf_printf(out, "Content-Type: " PROBLEM_TYPE "\r\nContent-Length: %zu\r\n\r\n", body.n);
    buf_add(out, buf_str(&body));
}
