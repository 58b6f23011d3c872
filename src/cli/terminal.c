#include "cli/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/tty.h"
#include "cli/watch.h"

static int session_signals(struct signals *signals, struct session *s, bool tty, bool *out_stop)
{
    for (int signo; (signo = signals_next(signals));) {
        if (signo == SIGWINCH)
            session_resize(s);
        else if (signo == SIGTSTP)
            session_suspend(s);
        else if (signo != SIGCONT && !(signo == SIGINT && tty))
            return *out_stop = true, signo;
    }
    return 0;
}

/* What the job printed before the session began. */
static void show_past(struct cli *c, const struct session_want *w, uint64_t lines,
                      struct session *s)
{
    const struct stream_place *until = session_place(s);
    AUTO(buf_free) struct buf path = BUF(256);
    AUTO(answer_free) struct answer a = { 0 };
    struct stream_decoder d = { 0 };
    struct stream_frame f;
    struct err why;
    if (!until)
        return;
    buf_printf(&path, "/v1/jobs/%llu/log?format=frames&replica=%u&until=%u.%llu.%llu",
               (unsigned long long)w->job, w->replica, until->run,
               (unsigned long long)until->at.segment, (unsigned long long)until->at.byte);
    if (lines != TERMINAL_ALL)
        buf_printf(&path, "&tail=%llu", (unsigned long long)lines);
    if (cli_call(c, &(struct call){ .path = path.p }, &a, &why) < 0)
        return; /* it is there to be read with logs */
    struct str rest = buf_str(&a.body);
    while (stream_decode(&d, &rest, &f, &why) > 0)
        if (f.type == STREAM_STDOUT || f.type == STREAM_STDERR)
            session_print(s, &f);
    stream_decoder_clear(&d);
}

int terminal_lost(struct cli *c, uint64_t job, struct err *e)
{
    char path[64];
    struct job j;
    snprintf(path, sizeof path, "/v1/jobs/%llu", (unsigned long long)job);
    AUTO(json_free_p) struct json_doc *doc = cli_get(c, path, e);
    if (!doc)
        return -1;
    job_read(json_root(doc), &j);
    if (j.state == JOB_IS_RUNNING) {
        err_set(e, ERR_UNAVAILABLE, "the connection to job %llu was lost; the job goes on",
                (unsigned long long)job);
        return err_hint(e, "nightshift attach %llu", (unsigned long long)job);
    }
    return err_set(e, ERR_CONFLICT, "job %llu does not run: it is %s", (unsigned long long)job,
                   job_word_info(j.state)->name);
}

/* The job's program has left the cursor wherever it was. */
static void say_detached(const struct cli *c, uint64_t job)
{
    (void)!tty_write(STDERR_FILENO, STR("\r\n"));
    cli_note(c, "detached; the job goes on; come back with: nightshift attach %llu",
             (unsigned long long)job);
}

static int session_over(struct cli *c, struct session *s, enum session_is is, struct err *e)
{
    switch (is) {
    case SESSION_EXITED: c->exit_code = session_exit_code(s); return 0;
    case SESSION_DETACHED: say_detached(c, session_job(s)); return 0;
    case SESSION_LOST: return terminal_lost(c, session_job(s), e);
    case SESSION_CLOSED: c->exit_code = 128 + SIGPIPE; return 0;
    case SESSION_OPEN:
    case SESSION_REFUSED: return -1;
    }
    return -1;
}

int terminal_session(struct cli *c, const struct session_want *want, uint64_t past, struct err *e)
{
    static const struct pollfd nothing[SESSION_POLLS];
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    struct session_want w = *want;
    struct client *client = cli_client(c, e);
    signal(SIGPIPE, SIG_IGN);
    w.hold = past > 0;
    if (!client || signals_open(&signals, e) < 0)
        return -1;
    AUTO(session_free_p) struct session *s = session_open(client, &w, e);
    bool stop = false;
    while (s) {
        struct pollfd p[SESSION_POLLS + 1];
        session_poll(s, p);
        p[SESSION_POLLS] = (struct pollfd){ .fd = signals.fd, .events = POLLIN };
        if (poll(p, SESSION_POLLS + 1, -1) < 0 && errno != EINTR)
            return err_set(e, ERR_INTERNAL, "cannot wait: %s", strerror(errno));
        int signo = session_signals(&signals, s, w.tty, &stop);
        if (stop) {
            c->exit_code = 128 + signo;
            return 0;
        }
        enum session_is is = session_step(s, p, e);
        if (w.hold && session_started(s)) {
            w.hold = false;
            show_past(c, &w, past, s);
            session_release(s);
            if (is == SESSION_OPEN)
                is = session_step(s, nothing, e);
        }
        if (is != SESSION_OPEN)
            return session_over(c, s, is, e);
    }
    return -1;
}

int terminal_follow(struct cli *c, uint64_t job, struct err *e)
{
    struct watch_want w = { .job = job, .replicas = 1, .until_started = true };
    struct session_want s = { .job = job,
                              .tty = true,
                              .input = true,
                              .in = STDIN_FILENO,
                              .out = STDOUT_FILENO,
                              .err = STDERR_FILENO };
    enum watch_outcome how;
    if (watch_job(c, &w, &how, e) < 0)
        return -1;
    if (how == WATCH_LEFT)
        return 0;
    if (how == WATCH_STARTED && terminal_session(c, &s, TERMINAL_ALL, e) == 0)
        return 0;
    if (how == WATCH_STARTED && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND)
        return -1;
    w.until_started = false; /* it has ended already: its log tells the rest */
    return watch_job(c, &w, &how, e);
}
