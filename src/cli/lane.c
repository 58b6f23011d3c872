#include "cli/lane.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/tty.h"

#define LINE_MAX_BYTES 16384u /* of a labelled line; a longer one is broken */

/* stdout and stderr of the job */
struct half {
    int fd;
    uint64_t printed, skip; /* bytes */
    struct buf line;        /* labelled: not complete yet */
};

struct lane {
    uint64_t job;
    uint32_t replica;
    bool label, closed;
    struct feed *feed;
    struct stream_decoder decoder;
    struct half half[2];
    struct stream_exit exit;
};

struct lane *lane_new(uint64_t job, uint32_t replica, bool label)
{
    struct lane *l = xcalloc(1, sizeof *l);
    *l = (struct lane){ .job = job, .replica = replica, .label = label };
    l->half[0] = (struct half){ .fd = STDOUT_FILENO, .line = BUF(LINE_MAX_BYTES) };
    l->half[1] = (struct half){ .fd = STDERR_FILENO, .line = BUF(LINE_MAX_BYTES) };
    return l;
}

struct lane *lane_free(struct lane *l)
{
    if (!l)
        return NULL;
    lane_disconnect(l);
    buf_free(&l->half[0].line);
    buf_free(&l->half[1].line);
    free(l);
    return NULL;
}

void lane_disconnect(struct lane *l)
{
    l->feed = feed_free(l->feed);
    stream_decoder_clear(&l->decoder);
    l->decoder = (struct stream_decoder){ 0 };
}

int lane_connect(struct lane *l, struct client *c, struct err *e)
{
    char path[160];
    lane_disconnect(l);
    snprintf(path, sizeof path, "/v1/jobs/%llu/log?follow=1&format=frames&replica=%u",
             (unsigned long long)l->job, l->replica);
    l->feed = feed_open(c, path, NULL, e);
    for (int i = 0; i < 2; i++)
        l->half[i].skip = l->half[i].printed;
    return l->feed ? 0 : -1;
}

int lane_fd(const struct lane *l)
{
    return l->feed ? feed_fd(l->feed) : -1;
}

bool lane_has_output(const struct lane *l)
{
    return l->half[0].printed || l->half[1].printed;
}

const struct stream_exit *lane_exit(const struct lane *l)
{
    return &l->exit;
}

static void write_out(struct lane *l, struct half *h, struct str bytes)
{
    if (tty_write(h->fd, bytes) < 0)
        l->closed = true;
}

static void flush_line(struct lane *l, struct half *h)
{
    AUTO(buf_free) struct buf b = BUF(LINE_MAX_BYTES + 64);
    if (h->line.n == 0)
        return;
    buf_printf(&b, "[%u] ", l->replica);
    buf_add(&b, buf_str(&h->line));
    if (h->line.p[h->line.n - 1] != '\n')
        buf_addc(&b, '\n');
    write_out(l, h, buf_str(&b));
    buf_truncate(&h->line, 0);
}

/* Whole lines only, or replicas would write into one another's. */
static void print_lines(struct lane *l, struct half *h, struct str bytes)
{
    while (bytes.n) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        size_t n = end ? (size_t)(end - bytes.p) + 1 : bytes.n;
        n = MIN(n, LINE_MAX_BYTES - h->line.n);
        buf_add(&h->line, (struct str){ bytes.p, n });
        if (h->line.p[h->line.n - 1] == '\n' || h->line.n == LINE_MAX_BYTES)
            flush_line(l, h);
        bytes = (struct str){ bytes.p + n, bytes.n - n };
    }
}

static void print(struct lane *l, struct half *h, struct str bytes)
{
    size_t known = (size_t)MIN(h->skip, (uint64_t)bytes.n);
    h->skip -= known;
    bytes = (struct str){ bytes.p + known, bytes.n - known };
    h->printed += bytes.n;
    if (l->label)
        print_lines(l, h, bytes);
    else if (bytes.n)
        write_out(l, h, bytes);
}

static enum lane_is take_frame(struct lane *l, const struct stream_frame *f, struct err *e)
{
    if (f->type == STREAM_STDOUT || f->type == STREAM_STDERR) {
        print(l, &l->half[f->type == STREAM_STDERR], f->payload);
        return l->closed ? LANE_CLOSED : LANE_OPEN;
    }
    if (f->type == STREAM_ERROR) {
        err_set(e, ERR_UNAVAILABLE, "%.*s", STR_ARG(f->payload));
        return LANE_REFUSED;
    }
    if (f->type != STREAM_EXIT)
        return LANE_OPEN;
    if (stream_get_exit(f->payload, &l->exit, e) < 0)
        return LANE_REFUSED;
    flush_line(l, &l->half[0]);
    flush_line(l, &l->half[1]);
    return LANE_EXITED;
}

enum lane_is lane_step(struct lane *l, struct err *e)
{
    struct str bytes;
    enum feed_is is;
    while ((is = feed_read(l->feed, &bytes, e)) == FEED_BYTES) {
        struct stream_frame f;
        int rc;
        while ((rc = stream_decode(&l->decoder, &bytes, &f, e)) > 0) {
            enum lane_is now = take_frame(l, &f, e);
            if (now != LANE_OPEN)
                return now;
        }
        if (rc < 0)
            return LANE_REFUSED;
    }
    if (is == FEED_NOTHING)
        return LANE_OPEN;
    bool accepted = feed_is_open(l->feed);
    return is == FEED_END || accepted || e->code == ERR_UNAVAILABLE ? LANE_LOST : LANE_REFUSED;
}
