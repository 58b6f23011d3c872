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
static void catch_up(struct cli *c, const struct session_want *w, bool from_start,
                     struct session *s)
{
    char path[96];
    struct err why;
    AUTO(answer_free) struct answer a = { 0 };
    snprintf(path, sizeof path, "/v1/jobs/%llu/log?format=text&replica=%u",
             (unsigned long long)w->job, w->replica);
    if (from_start && cli_call(c, &(struct call){ .path = path }, &a, &why) < 0)
        a.body = BUF(0);
    session_catch_up(s, buf_str(&a.body));
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
    if (j.state == JOB_IS_RUNNING)
        return err_set(e, ERR_UNAVAILABLE, "the connection to job %llu was lost",
                       (unsigned long long)job);
    return err_set(e, ERR_CONFLICT, "job %llu does not run: it is %s", (unsigned long long)job,
                   job_word_info(j.state)->name);
}

static int session_over(struct cli *c, struct session *s, enum session_is is, struct err *e)
{
    switch (is) {
    case SESSION_EXITED: c->exit_code = session_exit_code(s); return 0;
    case SESSION_DETACHED: cli_note(c, "detached; the job goes on"); return 0;
    case SESSION_LOST: return terminal_lost(c, session_job(s), e);
    case SESSION_OPEN:
    case SESSION_REFUSED: return -1;
    }
    return -1;
}

int terminal_session(struct cli *c, const struct session_want *w, bool from_start, struct err *e)
{
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    struct client *client = cli_client(c, e);
    signal(SIGPIPE, SIG_IGN);
    if (!client || signals_open(&signals, e) < 0)
        return -1;
    AUTO(session_free_p) struct session *s = session_open(client, w, e);
    bool caught_up = !w->tty || w->exec, stop = false;
    while (s) {
        struct pollfd p[SESSION_POLLS + 1];
        session_poll(s, p);
        p[SESSION_POLLS] = (struct pollfd){ .fd = signals.fd, .events = POLLIN };
        if (poll(p, SESSION_POLLS + 1, -1) < 0 && errno != EINTR)
            return err_set(e, ERR_INTERNAL, "cannot wait: %s", strerror(errno));
        int signo = session_signals(&signals, s, w->tty, &stop);
        if (stop) {
            c->exit_code = 128 + signo;
            return 0;
        }
        enum session_is is = session_step(s, p, e);
        if (!caught_up && (session_started(s) || is != SESSION_OPEN)) {
            caught_up = true;
            catch_up(c, w, from_start, s);
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
    if (how == WATCH_STARTED && terminal_session(c, &s, true, e) == 0)
        return 0;
    if (how == WATCH_STARTED && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND)
        return -1;
    w.until_started = false; /* it has ended already: its log tells the rest */
    return watch_job(c, &w, &how, e);
}
