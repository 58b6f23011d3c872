#include "cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/tty.h"
#include "sys/clock.h"

#define PROTOCOL "nightshift-stream"
#define OUT_MAX (1u << 20)
#define INPUT_CHUNK 16384u
#define UNDER_WAY_MS 20
#define LEAVE_KEY 0x1d /* Ctrl-] */
#define LEAVE_TIMES 3
#define LEAVE_NS INT64_C(1000000000)

struct session {
    struct session_want want;
    struct feed *feed;
    struct stream_decoder decoder;
    struct buf out;  /* frames to be sent */
    struct buf held; /* output that waits for session_catch_up */
    struct tty_mode mode;
    bool started, waits; /* waits: for session_catch_up */
    bool input_open, leave;
    int leave_keys;
    int64_t leave_ns;
    uint64_t bytes;
    enum session_is early; /* how it ended, when that was seen before it was asked for */
    struct err early_why;
    struct stream_exit exit;
};

static void send_size(struct session *s)
{
    uint16_t rows, cols;
    tty_size(s->want.in, &rows, &cols);
    stream_put_resize(&s->out, rows, cols);
}

struct session *session_open(struct client *c, const struct session_want *w, struct err *e)
{
    char path[128];
    AUTO(session_free_p) struct session *s = xcalloc(1, sizeof *s);
    *s = (struct session){ .want = *w, .out = BUF(OUT_MAX), .held = BUF(OUT_MAX * 4) };
    snprintf(path, sizeof path, "/v1/jobs/%llu/stream?replica=%u", (unsigned long long)w->job,
             w->replica);
    s->feed = feed_open(c, path, PROTOCOL, e);
    if (!s->feed)
        return NULL;
    if (w->exec) {
        if (stream_put_exec(&s->out, w->exec, e) < 0)
            return NULL;
        if (!w->input)
            stream_put(&s->out, STREAM_STDIN, (struct str){ "", 0 });
    } else {
        stream_put(&s->out, STREAM_ATTACH, (struct str){ "", 0 });
        if (w->tty)
            send_size(s);
    }
    s->waits = w->tty && !w->exec && !w->mute;
    s->input_open = w->input;
    return TAKE(s);
}

struct session *session_free(struct session *s)
{
    if (!s)
        return NULL;
    tty_restore(&s->mode);
    feed_free(s->feed);
    stream_decoder_clear(&s->decoder);
    buf_free(&s->out);
    buf_free(&s->held);
    free(s);
    return NULL;
}

void session_free_p(struct session **s)
{
    *s = session_free(*s);
}

bool session_started(const struct session *s)
{
    return s->started;
}

uint64_t session_job(const struct session *s)
{
    return s->want.job;
}

uint64_t session_bytes(const struct session *s)
{
    return s->bytes;
}

int session_exit_code(const struct session *s)
{
    return s->exit.signal ? 128 + s->exit.signal : s->exit.code;
}

void session_resize(struct session *s)
{
    if (s->want.tty)
        send_size(s);
}

void session_suspend(struct session *s)
{
    bool raw = s->mode.changed;
    tty_restore(&s->mode);
    raise(SIGSTOP);
    if (raw)
        (void)tty_raw(&s->mode, s->want.in);
    session_resize(s);
}

/* ---- from the terminal to the task ---- */

/* Counts Ctrl-] that follow one another quickly. */
static bool leave_pressed(struct session *s, struct str keys)
{
    for (size_t i = 0; i < keys.n; i++) {
        int64_t now = clock_mono_ns();
        if (keys.p[i] != LEAVE_KEY)
            s->leave_keys = 0;
        else if (s->leave_keys++ == 0 || now - s->leave_ns > LEAVE_NS)
            s->leave_keys = 1, s->leave_ns = now;
        if (s->leave_keys == LEAVE_TIMES)
            return true;
    }
    return false;
}

static void read_input(struct session *s)
{
    char chunk[INPUT_CHUNK];
    ssize_t n = read(s->want.in, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        s->input_open = false;
        stream_put(&s->out, STREAM_STDIN, (struct str){ "", 0 });
        return;
    }
    struct str keys = { chunk, (size_t)n };
    s->bytes += keys.n;
    if (s->want.tty && leave_pressed(s, keys)) {
        s->leave = true;
        return;
    }
    stream_put_data(&s->out, STREAM_STDIN, keys);
}

static int send_frames(struct session *s, struct err *e)
{
    size_t n = 0;
    if (s->out.n == 0)
        return 0;
    if (feed_write(s->feed, buf_str(&s->out), &n, e) < 0)
        return -1;
    memmove(s->out.p, s->out.p + n, s->out.n - n);
    buf_truncate(&s->out, s->out.n - n);
    return 0;
}

/* ---- from the task to the terminal ---- */

static void put_output(struct session *s, int fd, struct str bytes)
{
    if (fd == s->want.out)
        s->bytes += bytes.n;
    if (s->want.mute)
        return;
    if (s->waits)
        buf_add(&s->held, bytes);
    else
        (void)!tty_write(fd, bytes);
}

static enum session_is take_frame(struct session *s, const struct stream_frame *f, struct err *e)
{
    switch (f->type) {
    case STREAM_STARTED:
        s->started = true;
        if (s->want.tty)
            (void)tty_raw(&s->mode, s->want.in);
        return SESSION_OPEN;
    case STREAM_STDOUT: put_output(s, s->want.out, f->payload); return SESSION_OPEN;
    case STREAM_STDERR: put_output(s, s->want.err, f->payload); return SESSION_OPEN;
    case STREAM_EXIT:
        if (stream_get_exit(f->payload, &s->exit, e) < 0)
            return SESSION_REFUSED;
        return SESSION_EXITED;
    case STREAM_ERROR:
        err_set(e, ERR_UNAVAILABLE, "%.*s", STR_ARG(f->payload));
        return SESSION_REFUSED;
    case STREAM_WATCH:
    case STREAM_ATTACH:
    case STREAM_EXEC:
    case STREAM_STDIN:
    case STREAM_RESIZE:
    case STREAM_SIGNAL:
    case STREAM_TYPE_END: return SESSION_OPEN; /* not for us */
    }
    return SESSION_OPEN;
}

static enum session_is read_frames(struct session *s, struct err *e)
{
    struct str bytes;
    enum feed_is is;
    while ((is = feed_read(s->feed, &bytes, e)) == FEED_BYTES) {
        struct stream_frame f;
        int rc;
        while ((rc = stream_decode(&s->decoder, &bytes, &f, e)) > 0) {
            enum session_is now = take_frame(s, &f, e);
            if (now != SESSION_OPEN)
                return now;
        }
        if (rc < 0)
            return SESSION_REFUSED;
    }
    if (is == FEED_NOTHING)
        return SESSION_OPEN;
    if (is == FEED_END || feed_is_open(s->feed))
        return SESSION_LOST;
    return SESSION_REFUSED;
}

size_t session_overlap(struct str past, struct str now)
{
    size_t same = MIN(past.n, now.n);
    while (same && memcmp(past.p + past.n - same, now.p, same) != 0)
        same--;
    return same;
}

void session_catch_up(struct session *s, struct str past)
{
    struct pollfd p = { .fd = feed_fd(s->feed), .events = POLLIN };
    /* What is under way belongs to the comparison. */
    if (past.n && s->early == SESSION_OPEN && poll(&p, 1, UNDER_WAY_MS) > 0)
        s->early = read_frames(s, &s->early_why);
    struct str now = buf_str(&s->held);
    size_t same = session_overlap(past, now);
    (void)!tty_write(s->want.out, past);
    (void)!tty_write(s->want.out, (struct str){ now.p + same, now.n - same });
    buf_truncate(&s->held, 0);
    s->waits = false;
}

void session_poll(const struct session *s, struct pollfd p[static SESSION_POLLS])
{
    /* An outcome that is known already must not be waited for: a descriptor that can be written. */
    bool writes = (s->out.n > 0 && feed_is_open(s->feed)) || s->early != SESSION_OPEN;
    /* Input is read only when the last of it was sent: a task that does not read holds us up, too. */
    bool reads = s->input_open && s->started && s->out.n == 0;
    p[0] = (struct pollfd){ .fd = feed_fd(s->feed),
                            .events = (short)(POLLIN | (writes ? POLLOUT : 0)) };
    p[1] = (struct pollfd){ .fd = reads ? s->want.in : -1, .events = POLLIN };
}

static enum session_is step(struct session *s, const struct pollfd p[static SESSION_POLLS],
                            struct err *e)
{
    if (p[1].revents)
        read_input(s);
    if (s->leave)
        return SESSION_DETACHED;
    if (s->early != SESSION_OPEN)
        *e = s->early_why;
    enum session_is is = s->early != SESSION_OPEN ? s->early : read_frames(s, e);
    if (is != SESSION_OPEN)
        return s->early = is;
    if (feed_is_open(s->feed) && send_frames(s, e) < 0)
        return SESSION_LOST;
    return SESSION_OPEN;
}

enum session_is session_step(struct session *s, const struct pollfd p[static SESSION_POLLS],
                             struct err *e)
{
    enum session_is is = step(s, p, e);
    if (is != SESSION_OPEN)
        tty_restore(&s->mode);
    return is;
}
