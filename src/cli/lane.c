#include "cli/lane.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/text.h"
#include "cli/tty.h"

#define LINE_MAX_BYTES 16384u /* of a labelled line; a longer one is broken */

/* stdout and stderr of the job */
struct half {
    int fd;
    uint64_t since;  /* bytes that were printed of what follows the last place */
    uint64_t skip;   /* of these, what is still to come once more */
    struct buf line; /* labelled: not complete yet */
};

struct lane {
    struct lane_want want;
    bool closed, has_output;
    bool placed, resumed; /* the log said where it is; resumed: it has not answered to that */
    struct stream_place place;
    char note[STREAM_ERROR_MAX + 1];
    struct feed *feed;
    struct stream_decoder decoder;
    struct half half[2];
    struct stream_exit exit;
};

struct lane *lane_new(const struct lane_want *w)
{
    struct lane *l = xcalloc(1, sizeof *l);
    l->want = *w;
    l->half[0] = (struct half){ .fd = STDOUT_FILENO, .line = BUF(LINE_MAX_BYTES) };
    l->half[1] = (struct half){ .fd = w->merged ? STDOUT_FILENO : STDERR_FILENO,
                                .line = BUF(LINE_MAX_BYTES) };
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

void lane_free_p(struct lane **l)
{
    *l = lane_free(*l);
}

void lane_disconnect(struct lane *l)
{
    l->feed = feed_free(l->feed);
    stream_decoder_clear(&l->decoder);
    l->decoder = (struct stream_decoder){ 0 };
}

int lane_connect(struct lane *l, struct client *c, struct err *e)
{
    const struct lane_want *w = &l->want;
    AUTO(buf_free) struct buf path = BUF(1024);
    lane_disconnect(l);
    buf_printf(&path, "/v1/jobs/%llu/log?format=%s&replica=%u", (unsigned long long)w->job,
               w->records ? "framed-records" : "frames", w->replica);
    if (!w->once)
        buf_addz(&path, "&follow=1");
    if (w->run)
        query_add(&path, "run", w->run);
    if (w->grep)
        query_add(&path, "grep", w->grep);
    if (w->grep && w->ignore_case)
        buf_addz(&path, "&ignore_case=1");
    if (w->grep && w->context)
        buf_printf(&path, "&context=%u", w->context);
    if (l->placed)
        buf_printf(&path, "&from=%u.%llu.%llu", l->place.run,
                   (unsigned long long)l->place.at.segment, (unsigned long long)l->place.at.byte);
    else if (w->tail)
        query_add(&path, "tail", w->tail);
    l->resumed = l->placed;
    for (int i = 0; i < 2; i++)
        l->half[i].skip = l->half[i].since;
    if (buf_check(&path, e) < 0)
        return -1;
    l->feed = feed_open(c, path.p, e);
    return l->feed ? 0 : -1;
}

int lane_fd(const struct lane *l)
{
    return l->feed ? feed_fd(l->feed) : -1;
}

bool lane_has_output(const struct lane *l)
{
    return l->has_output;
}

const struct stream_exit *lane_exit(const struct lane *l)
{
    return &l->exit;
}

const char *lane_note(const struct lane *l)
{
    return l->note;
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
    buf_printf(&b, "[%u] ", l->want.replica);
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
    h->since += bytes.n;
    l->has_output = l->has_output || bytes.n;
    if (l->want.label)
        print_lines(l, h, bytes);
    else if (bytes.n)
        write_out(l, h, bytes);
}

static bool same_place(const struct stream_place *a, const struct stream_place *b)
{
    return a->run == b->run && a->at.segment == b->at.segment && a->at.byte == b->at.byte;
}

/* What was asked for may be gone: the log keeps the newest, and a run that is over may be followed by
 * another.  Then nothing of what comes was printed. */
static void take_place(struct lane *l, const struct stream_place *p)
{
    bool moved = l->resumed && !same_place(p, &l->place);
    for (int i = 0; i < 2; i++) {
        l->half[i].skip = moved ? 0 : l->half[i].skip;
        l->half[i].since = l->half[i].skip;
    }
    if (moved && p->run == l->place.run)
        fprintf(stderr, "%s: some output was overwritten before it could be shown\n",
                l->want.program);
    l->resumed = false;
    l->placed = true;
    l->place = *p;
}

/* Something about the log that is not in it.  What comes last is about the job's end. */
static void take_note(struct lane *l, struct str text)
{
    AUTO(buf_free) struct buf b = BUF(STREAM_ERROR_MAX + 1);
    text_add_clean(&b, text);
    snprintf(l->note, sizeof l->note, "%.*s", STR_ARG(buf_str(&b)));
}

static void say_note(struct lane *l)
{
    if (l->note[0]) {
        fprintf(stderr, "%s: %s\n", l->want.program, l->note);
        l->has_output = true;
    }
    l->note[0] = '\0';
}

static enum lane_is take_frame(struct lane *l, const struct stream_frame *f, struct err *e)
{
    if (f->type == STREAM_LOGGED) {
        struct stream_place p = stream_get_logged(f->payload);
        take_place(l, &p);
        say_note(l);
        return LANE_OPEN;
    }
    if (f->type == STREAM_NOTE) {
        say_note(l);
        take_note(l, f->payload);
        return LANE_OPEN;
    }
    if (f->type == STREAM_STDOUT || f->type == STREAM_STDERR) {
        say_note(l);
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
    if (is == FEED_END && l->want.once) {
        flush_line(l, &l->half[0]);
        flush_line(l, &l->half[1]);
        return LANE_DONE;
    }
    bool accepted = feed_is_open(l->feed);
    return is == FEED_END || accepted || e->code == ERR_UNAVAILABLE ? LANE_LOST : LANE_REFUSED;
}
