#include "cli/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/field.h"
#include "cli/lane.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/tty.h"
#include "sys/clock.h"
#include "sys/term.h"

#define LANES_MAX 64
#define PATIENCE_MS 300 /* a job that starts faster needs no word */
#define WAITING_MS 1000 /* between looks at a job that waits */
#define RUNNING_MS 5000 /* at one that runs */
#define SOON_MS 20      /* until_started: the first looks */
#define RETRY_MS 500
#define RETRIES_MAX 1200 /* ten minutes without a server */
#define NOTICE_AFTER 4   /* failed tries */
#define ENDED_LOOKS 4    /* at a job that has ended, before its log's end is given up */

struct watch {
    struct cli *c;
    const struct watch_want *want;
    struct signals signals;
    struct lane *lane[LANES_MAX];
    bool done[LANES_MAX];
    size_t n_lanes, n_done;
    struct session *input;
    int64_t began_ms;
    int64_t look_ms;           /* when to look at the job next */
    int looks;                 /* so far */
    unsigned failures, losses; /* of the server in a row; of lanes */
    int ended_looks;
    bool refused; /* there is no log to follow */
    enum job_word state;
    bool status_shown;        /* a line that is to be cleared */
    char status[256];         /* the last one */
    bool cancelled, finished; /* finished: outcome is set */
    enum watch_outcome outcome;
};

static int64_t mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* ---- the status line ---- */

static void clear_status(struct watch *w)
{
    if (w->status_shown)
        (void)!tty_write(STDERR_FILENO, STR("\r\x1b[K"));
    w->status_shown = false;
}

/* On a terminal one line that is written over, elsewhere a line for each change. */
static void show_status(struct watch *w, const char *text)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    bool tty = term_is_tty(STDERR_FILENO);
    if (strcmp(text, w->status) == 0 && (!tty || w->status_shown))
        return;
    snprintf(w->status, sizeof w->status, "%s", text);
    clear_status(w);
    if (tty) {
        unsigned columns = term_columns(STDERR_FILENO);
        text_add_fit(&b, str_of(text), columns > 1 ? columns - 1 : 1);
    } else {
        buf_printf(&b, "%s: ", w->c->program);
        text_add_clean(&b, str_of(text));
        buf_addc(&b, '\n');
    }
    (void)!tty_write(STDERR_FILENO, buf_str(&b));
    w->status_shown = tty;
}

/* With how far it is; in a file, where each change is a line, without that. */
static void say_start(const struct job *j, struct buf *b)
{
    struct str text = j->message;
    bool counts = text.n && memmem(text.p, text.n, " %)", 3);
    const char *open = counts && !term_is_tty(STDERR_FILENO) ? memrchr(text.p, '(', text.n) : NULL;
    if (open && open > text.p)
        text.n = (size_t)(open - text.p) - 1;
    buf_printf(b, "job %llu starts%s", (unsigned long long)j->id, text.n ? ": " : "");
    buf_add(b, text);
}

static void say_state(struct watch *w, const struct job *j)
{
    AUTO(buf_free) struct buf b = BUF(1024);
    unsigned long long id = (unsigned long long)j->id;
    switch (j->state) {
    case JOB_IS_QUEUED:
    case JOB_IS_HELD:
        buf_printf(&b, "job %llu waits: ", id);
        buf_add(&b, j->reason_text.n ? j->reason_text : j->reason.n ? j->reason : STR("it is new"));
        break;
    case JOB_IS_FREEZING:
    case JOB_IS_PAUSED:
    case JOB_IS_FROZEN:
    case JOB_IS_THAWING:
        buf_printf(&b, "job %llu is %s%s%.*s", id, job_word_info(j->state)->name,
                   j->reason_text.n ? ": " : "", STR_ARG(j->reason_text));
        break;
    case JOB_IS_STARTING: say_start(j, &b); break;
    case JOB_IS_STOPPING: buf_printf(&b, "job %llu is being stopped", id); break;
    case JOB_IS_RUNNING:
        if (strstr(w->status, " is frozen") || strstr(w->status, " is paused"))
            buf_printf(&b, "job %llu runs again", id);
        break;
    case JOB_IS_SUCCEEDED:
    case JOB_IS_FAILED:
    case JOB_IS_CANCELLED:
    case JOB_IS_UNKNOWN:
    case JOB_WORD_COUNT: break;
    }
    if (b.n)
        show_status(w, b.p);
    else
        clear_status(w);
}

/* ---- how it ends ---- */

static void finish(struct watch *w, enum watch_outcome how)
{
    clear_status(w);
    w->finished = true;
    w->outcome = how;
}

static bool has_output(const struct watch *w)
{
    for (size_t i = 0; i < w->n_lanes; i++)
        if (lane_has_output(w->lane[i]))
            return true;
    return false;
}

/* What a bare exit code does not tell: it was cancelled, had no memory, no time, never ran. */
static void say_end(struct watch *w, const struct job *j)
{
    bool plain = str_is(j->end, "exited") || (j->end.n == 0 && j->message.n == 0);
    clear_status(w);
    if (j->state == JOB_IS_FAILED && plain && (j->exit_code == 126 || j->exit_code == 127) &&
        !has_output(w))
        cli_note(w->c,
                 "the job's program cannot be run: is it spelt right, and in the job's PATH?");
    if (j->state == JOB_IS_SUCCEEDED || (j->state == JOB_IS_FAILED && plain))
        return;
    bool cancelled = j->state == JOB_IS_CANCELLED;
    struct str why = j->message.n || cancelled ? j->message : j->end;
    cli_note(w->c, "job %llu %s%s%.*s", (unsigned long long)j->id,
             cancelled ? "was cancelled" : "failed", why.n ? ": " : "", STR_ARG(why));
}

static struct json_doc *look(struct watch *w, struct job *out, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/jobs/%llu", (unsigned long long)w->want->job);
    struct json_doc *doc = cli_get(w->c, path, e);
    if (doc)
        job_read(json_root(doc), out);
    return doc;
}

/* The job has ended: its own record has the last word about how. */
static int end_with(struct watch *w, const struct job *j)
{
    say_end(w, j);
    w->c->exit_code = job_shell_code(j);
    finish(w, WATCH_ENDED);
    return 0;
}

/* Every lane is done.  A single success is the whole story; everything else is looked up. */
static int end_by_lanes(struct watch *w, struct err *e)
{
    const struct stream_exit *how = lane_exit(w->lane[0]);
    struct job j;
    if (w->n_lanes == 1 && how->code == 0 && how->signal == 0) {
        w->c->exit_code = 0;
        finish(w, WATCH_ENDED);
        if (lane_note(w->lane[0])[0])
            cli_note(w->c, "job %llu: %s", (unsigned long long)w->want->job, lane_note(w->lane[0]));
        return 0;
    }
    AUTO(json_free_p) struct json_doc *doc = look(w, &j, e);
    if (doc && job_word_info(j.state)->ended)
        return end_with(w, &j);
    w->c->exit_code = how->signal ? 128 + how->signal : how->code;
    finish(w, WATCH_ENDED);
    return 0;
}

/* ---- keys and signals ---- */

static int cancel(struct watch *w, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/jobs/%llu/cancel", (unsigned long long)w->want->job);
    AUTO(json_free_p) struct json_doc *doc = cli_post(w->c, path, STR("{}"), e);
    if (!doc && e->code != ERR_CONFLICT) /* a conflict: it has ended by itself */
        return -1;
    w->cancelled = true;
    w->look_ms = 0;
    return 0;
}

static void leave(struct watch *w)
{
    clear_status(w);
    cli_note(w->c, "job %llu goes on; come back with: nightshift logs -f %llu",
             (unsigned long long)w->want->job, (unsigned long long)w->want->job);
    w->c->exit_code = 0;
    finish(w, WATCH_LEFT);
}

static int interrupted(struct watch *w, struct err *e)
{
    if (w->cancelled) { /* once more: do not wait for the end of it */
        leave(w);
        w->c->exit_code = 130;
        return 0;
    }
    if (!term_is_tty(STDIN_FILENO) || !term_is_tty(STDERR_FILENO))
        return cancel(w, e);
    clear_status(w);
    char key = tty_ask_key(&w->signals, "\n[d]etach, [c]ancel, [k]eep watching? ", "dck");
    if (key == 'd')
        leave(w);
    return key == 'c' || key == 0 ? cancel(w, e) : 0;
}

static int on_signal(struct watch *w, int signo, struct err *e)
{
    switch (signo) {
    case SIGINT: return interrupted(w, e);
    case SIGTERM:
    case SIGQUIT: return w->cancelled ? interrupted(w, e) : cancel(w, e);
    case SIGHUP:
        w->c->exit_code = 129;
        finish(w, WATCH_LEFT);
        return 0;
    case SIGTSTP: raise(SIGSTOP); return 0;
    case SIGCONT: w->look_ms = 0; return 0;
    default: return 0;
    }
}

/* ---- turns of the loop ---- */

/* Nothing is lost but the view: try again for a while. */
static int server_away(struct watch *w, struct err *e)
{
    if (++w->failures > RETRIES_MAX)
        return err_wrap(e, "job %llu goes on, but the server stays away",
                        (unsigned long long)w->want->job);
    if (w->failures == NOTICE_AFTER)
        show_status(w, "the server is away; jobs go on, trying again");
    w->look_ms = mono_ms() + RETRY_MS;
    return 0;
}

static int connect_lanes(struct watch *w, struct err *e)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (w->done[i] || lane_fd(w->lane[i]) >= 0)
            continue;
        if (lane_connect(w->lane[i], w->c->client, e) < 0)
            return e->code == ERR_UNAVAILABLE ? server_away(w, e) : -1;
    }
    return 0;
}

static int open_input(struct watch *w, struct err *e)
{
    struct session_want want = { .job = w->want->job,
                                 .input = true,
                                 .mute = true,
                                 .in = STDIN_FILENO,
                                 .out = STDOUT_FILENO,
                                 .err = STDERR_FILENO };
    if (!w->want->input || w->input)
        return 0;
    w->input = session_open(w->c->client, &want, e);
    return w->input ? 0 : -1;
}

static int64_t next_look(const struct watch *w)
{
    if (w->want->until_started && w->looks < 10)
        return SOON_MS;
    if (job_word_info(w->state)->ended)
        return PATIENCE_MS;
    return w->state == JOB_IS_RUNNING ? RUNNING_MS : w->looks < 3 ? PATIENCE_MS : WAITING_MS;
}

/* Looks at the job: is it waiting, does it run, has it ended? */
static int look_at_job(struct watch *w, struct err *e)
{
    struct job j;
    AUTO(json_free_p) struct json_doc *doc = look(w, &j, e);
    if (!doc)
        return e->code == ERR_UNAVAILABLE ? server_away(w, e) : -1;
    w->failures = 0;
    w->looks++;
    w->state = j.state;
    w->look_ms = mono_ms() + next_look(w);
    bool ended = job_word_info(j.state)->ended;
    bool quick = mono_ms() - w->began_ms < PATIENCE_MS;
    w->ended_looks += ended;
    if (!ended && !quick)
        say_state(w, &j);
    if (j.state == JOB_IS_RUNNING && w->want->until_started) {
        finish(w, WATCH_STARTED);
        return 0;
    }
    if (j.state == JOB_IS_RUNNING && open_input(w, e) < 0)
        return -1;
    /* The lanes tell the end themselves, after the last of the output; give them the time. */
    if (ended && w->want->until_started) {
        finish(w, WATCH_ENDED);
        return 0;
    }
    if (ended && (w->refused || w->ended_looks >= ENDED_LOOKS))
        return end_with(w, &j);
    w->refused = false;
    return connect_lanes(w, e);
}

static int step_lane(struct watch *w, size_t i, struct err *e)
{
    bool quiet = !lane_has_output(w->lane[i]);
    enum lane_is is = lane_step(w->lane[i], e);
    if (quiet && lane_has_output(w->lane[i]) && w->state != JOB_IS_RUNNING)
        clear_status(w);
    switch (is) {
    case LANE_OPEN: return 0;
    case LANE_DONE: /* only when it was asked for */
    case LANE_EXITED:
        w->done[i] = true;
        lane_disconnect(w->lane[i]);
        return ++w->n_done == w->n_lanes ? end_by_lanes(w, e) : 0;
    case LANE_LOST:
        lane_disconnect(w->lane[i]);
        w->failures = MAX(w->failures, ++w->losses / 2);
        return server_away(w, e);
    case LANE_REFUSED:
        lane_disconnect(w->lane[i]);
        if (e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND)
            return -1;
        w->refused = true; /* no log yet: it has not started, or never did */
        w->look_ms = w->ended_looks ? 0 : mono_ms() + PATIENCE_MS;
        return 0;
    case LANE_CLOSED:
        if (cancel(w, e) < 0)
            return -1;
        w->c->exit_code = 128 + SIGPIPE;
        finish(w, WATCH_ENDED);
        return 0;
    }
    return 0;
}

static int step_input(struct watch *w, const struct pollfd *p, struct err *e)
{
    if (!w->input)
        return 0;
    struct err why;
    enum session_is is = session_step(w->input, p, &why);
    if (is == SESSION_REFUSED)
        return *e = why, -1;
    if (is != SESSION_OPEN) /* the log has the end of the story */
        w->input = session_free(w->input);
    return 0;
}

static int turn(struct watch *w, struct err *e)
{
    struct pollfd p[LANES_MAX + 1 + SESSION_POLLS];
    int64_t wait = w->look_ms - mono_ms();
    for (size_t i = 0; i < w->n_lanes; i++)
        p[i] = (struct pollfd){ .fd = lane_fd(w->lane[i]), .events = POLLIN };
    struct pollfd *signals = &p[w->n_lanes], *input = signals + 1;
    *signals = (struct pollfd){ .fd = w->signals.fd, .events = POLLIN };
    input[0] = input[1] = (struct pollfd){ .fd = -1 };
    if (w->input)
        session_poll(w->input, input);
    int n = poll(p, w->n_lanes + 1 + SESSION_POLLS, wait > 0 ? (int)MIN(wait, INT64_C(60000)) : 0);
    if (n < 0 && errno != EINTR)
        return err_set(e, ERR_INTERNAL, "cannot wait: %s", strerror(errno));
    for (int signo; !w->finished && (signo = signals_next(&w->signals));)
        if (on_signal(w, signo, e) < 0)
            return -1;
    for (size_t i = 0; !w->finished && i < w->n_lanes; i++)
        if (lane_fd(w->lane[i]) >= 0 && step_lane(w, i, e) < 0)
            return -1;
    if (!w->finished && step_input(w, input, e) < 0)
        return -1;
    return !w->finished && mono_ms() >= w->look_ms ? look_at_job(w, e) : 0;
}

static void watch_clear(struct watch *w)
{
    clear_status(w);
    session_free(w->input);
    for (size_t i = 0; i < w->n_lanes; i++)
        lane_free(w->lane[i]);
    signals_close(&w->signals);
}

int watch_job(struct cli *c, const struct watch_want *want, enum watch_outcome *out, struct err *e)
{
    AUTO(watch_clear) struct watch w = { .c = c, .want = want, .signals = { .fd = -1 } };
    w.state = JOB_IS_UNKNOWN;
    w.began_ms = mono_ms();
    signal(SIGPIPE, SIG_IGN);
    if (!cli_client(c, e) || signals_open(&w.signals, e) < 0)
        return -1;
    if (!want->until_started) {
        w.n_lanes = want->replicas ? MIN(want->replicas, (uint32_t)LANES_MAX) : 1;
        for (size_t i = 0; i < w.n_lanes; i++)
            w.lane[i] = lane_new(&(struct lane_want){ .job = want->job,
                                                      .replica = (uint32_t)i,
                                                      .label = want->replicas > 1,
                                                      .program = c->program });
        w.look_ms = mono_ms() + (want->input ? SOON_MS : PATIENCE_MS);
        if (want->replicas > LANES_MAX)
            cli_note(c, "only the first %d replicas are shown", LANES_MAX);
        if (connect_lanes(&w, e) < 0)
            return -1;
    }
    while (!w.finished)
        if (turn(&w, e) < 0)
            return -1;
    *out = w.outcome;
    return 0;
}
