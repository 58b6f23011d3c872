#include "init/client.h"

#include <sys/socket.h>
#include <unistd.h>

#define LAST_WORDS (2 * (STREAM_HEADER_BYTES + STREAM_ERROR_MAX))

void client_open(struct client *c, int fd, int64_t now_ms)
{
    /* The queue may hold as much again that was sent already, and must have room for the end. */
    *c = (struct client){
        .fd = fd,
        .moved_ms = now_ms,
        .out = { .b = BUF(2 * CLIENT_QUEUE_MAX + LAST_WORDS) },
    };
}

void client_close(struct client *c)
{
    char unread[4096];
    if (c->fd < 0)
        return;
    /* With something left unread the other side would see an error in place of the end. */
    shutdown(c->fd, SHUT_WR);
    for (int i = 0; i < 64 && recv(c->fd, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
        continue;
    close(c->fd);
    stream_decoder_clear(&c->in);
    buf_free(&c->out.b);
    *c = (struct client){ .fd = -1 };
}

void client_send(struct client *c, enum stream_type type, struct str data)
{
    if (c->fd < 0 || c->closing)
        return;
    size_t frames = data.n / STREAM_PAYLOAD_MAX + 1;
    if (queue_bytes(&c->out) + data.n + frames * STREAM_HEADER_BYTES > CLIENT_QUEUE_MAX)
        client_refuse(c, "you take the output too slowly and were cut off; the log has all of it");
    else
        stream_put_data(&c->out.b, type, data);
}

void client_send_logged(struct client *c, const struct joblog_place *at)
{
    if (!c->closing)
        stream_put_logged(&c->out.b, &(struct stream_place){ .at = *at });
}

void client_send_started(struct client *c, int64_t t_ms)
{
    if (!c->closing)
        stream_put_started(&c->out.b, t_ms);
}

void client_send_error(struct client *c, const char *text)
{
    if (!c->closing)
        stream_put_error(&c->out.b, text);
}

void client_end(struct client *c, const struct stream_exit *how)
{
    if (!c->closing)
        stream_put_exit(&c->out.b, how);
    c->closing = true;
}

void client_refuse(struct client *c, const char *text)
{
    client_send_error(c, text);
    c->closing = true;
}

bool client_flush(struct client *c, int64_t now_ms)
{
    ssize_t n = queue_flush(&c->out, c->fd);
    if (n > 0)
        c->moved_ms = now_ms;
    bool said = c->closing && queue_bytes(&c->out) == 0;
    if (said && c->lingers)
        return n >= 0 && shutdown(c->fd, SHUT_WR) == 0;
    return n >= 0 && !said;
}
