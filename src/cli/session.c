#include "cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/tty.h"
#include "sys/clock.h"

#define OUT_MAX (1u << 20)
#define OUT_ENOUGH (OUT_MAX / 2) /* waiting to be sent: read no more input */
#define INPUT_CHUNK 65536u
#define LEAVE_KEY 0x1d /* Ctrl-] */
#define LEAVE_TIMES 3
#define LEAVE_NS INT64_C(1000000000)

struct session {
    struct session_want want;
    struct duplex *duplex;
    struct stream_decoder decoder;
    struct buf out;  /* frames to be sent */
    struct buf held; /* frames to be printed */
    struct tty_mode mode;
    struct stream_place place;
    bool started, placed, holds, closed;
    bool input_open, leave;
    int leave_keys;
    int64_t leave_ns;
    uint64_t bytes;
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
    AUTO(session_free_p) struct session *s = xcalloc(1, sizeof *s);
    *s = (struct session){ .want = *w, .out = BUF(OUT_MAX), .held = BUF(OUT_MAX) };
    s->duplex = duplex_open(c, w->job, w->replica, e);
    if (!s->duplex)
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
    s->holds = w->hold;
    s->input_open = w->input;
    return TAKE(s);
}

struct session *session_free(struct session *s)
{
    if (!s)
        return NULL;
    tty_restore(&s->mode);
    duplex_free(s->duplex);
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
    if (duplex_step(s->duplex, e) < 0)
        return -1;
    if (s->out.n == 0 || !duplex_takes(s->duplex))
        return 0;
    duplex_write(s->duplex, buf_str(&s->out));
    buf_truncate(&s->out, 0);
    return duplex_step(s->duplex, e);
}

/* ---- from the task to the terminal ---- */

void session_print(struct session *s, const struct stream_frame *f)
{
    bool err = f->type == STREAM_STDERR;
    if (!err)
        s->bytes += f->payload.n;
    if (!s->want.mute && tty_write(err ? s->want.err : s->want.out, f->payload) < 0 && !err)
        s->closed = true;
}

static void take_output(struct session *s, const struct stream_frame *f)
{
    if (s->holds)
        stream_put(&s->held, f->type, f->payload);
    else
        session_print(s, f);
}

const struct stream_place *session_place(const struct session *s)
{
    return s->placed ? &s->place : NULL;
}

void session_release(struct session *s)
{
    struct stream_decoder d = { 0 };
    struct str rest = buf_str(&s->held);
    struct stream_frame f;
    struct err e;
    s->holds = false;
    while (stream_decode(&d, &rest, &f, &e) > 0) /* our own frames: they are whole */
        session_print(s, &f);
    stream_decoder_clear(&d);
    buf_free(&s->held);
}

static enum session_is take_frame(struct session *s, const struct stream_frame *f, struct err *e)
{
    switch (f->type) {
    case STREAM_STARTED:
        s->started = true;
        if (s->want.tty)
            (void)tty_raw(&s->mode, s->want.in);
        return SESSION_OPEN;
    case STREAM_STDOUT:
    case STREAM_STDERR: take_output(s, f); return s->closed ? SESSION_CLOSED : SESSION_OPEN;
    case STREAM_LOGGED:
        s->placed = true;
        s->place = stream_get_logged(f->payload);
        return SESSION_OPEN;
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
    case STREAM_NOTE:
    case STREAM_TYPE_END: return SESSION_OPEN; /* not for us */
    }
    return SESSION_OPEN;
}

static enum session_is read_frames(struct session *s, struct err *e)
{
    struct str bytes;
    enum feed_is is = FEED_NOTHING;
    /* While output is held no more is read than came with the beginning. */
    while (!(s->holds && s->started) && (is = duplex_read(s->duplex, &bytes, e)) == FEED_BYTES) {
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
    if (is == FEED_NOTHING || is == FEED_BYTES)
        return SESSION_OPEN;
    if (is == FEED_END || duplex_is_open(s->duplex))
        return SESSION_LOST;
    return SESSION_REFUSED;
}

void session_poll(const struct session *s, struct pollfd p[static SESSION_POLLS])
{
    /* A task that does not read holds us up, too. */
    bool reads = s->input_open && s->started && s->out.n < OUT_ENOUGH;
    duplex_poll(s->duplex, p);
    p[DUPLEX_POLLS] = (struct pollfd){ .fd = reads ? s->want.in : -1, .events = POLLIN };
}

static enum session_is step(struct session *s, const struct pollfd p[static SESSION_POLLS],
                            struct err *e)
{
    if (p[DUPLEX_POLLS].revents)
        read_input(s);
    if (s->leave)
        return SESSION_DETACHED;
    enum session_is is = read_frames(s, e);
    if (is != SESSION_OPEN)
        return is;
    if (send_frames(s, e) < 0)
        return e->code == ERR_UNAVAILABLE ? SESSION_LOST : SESSION_REFUSED;
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
