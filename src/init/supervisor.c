#include "init/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/outlet.h"
#include "init/procs.h"
#include "init/sessions.h"
#include "init/times.h"
#include "init/wait.h"
#include "wire/ring.h"

#define CANNOT_RUN 126
#define NOT_FOUND 127
#define KILL_MS 5000                /* what cannot be killed by then is not waited for */
#define KILL_AGAIN_MS 20            /* for those that were being born */
#define DRAIN_MAX_BYTES (16u << 20) /* more than any pipe holds */
#define FLUSH_MS 10000              /* at the end, for our own stdout and stderr */

/* Where poll's entries lie. */
enum {
    POLL_SIGNALS,
    POLL_JOB, /* its three ends */
    POLL_OUTLETS = POLL_JOB + CHILD_ENDS,
    POLL_SESSIONS = POLL_OUTLETS + CHILD_ENDS,
    POLL_COUNT = POLL_SESSIONS + SESSIONS_POLLS
};

struct supervisor {
    const struct supervisor_options *o;
    int signals;
    bool freezes; /* its freeze signal was sent */
    struct child job;
    pid_t job_pid;
    bool ended; /* the job's own process; `how` is set */
    struct stream_exit how;
    struct ring ring;
    struct sessions sessions;
    struct outlet
        outlet[CHILD_ENDS]; /* in a pod, what that end of the job says; none for its stdin */
    char chunk[STREAM_PAYLOAD_MAX];
};
_Static_assert(STREAM_PAYLOAD_MAX <= OUTLET_PIECE_MAX, "an outlet takes a chunk");

/* --- signals --- */

/* All of them wait for the loop, but those that a fault of our own raises. */
static int take_signals(void)
{
    static const int ignored[] = { SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU };
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sigdelset(&all, faults[i]);
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
        signal(ignored[i], SIG_IGN); /* instead of them a call fails */
        sigdelset(&all, ignored[i]);
    }
    sigprocmask(SIG_SETMASK, &all, NULL);
    return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits for every child that has ended; false when there is none left at all. */
static bool reap(struct supervisor *sv)
{
    int st;
    pid_t pid;
    while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
        struct stream_exit how = { .code = WIFEXITED(st) ? WEXITSTATUS(st) : 0,
                                   .signal = WIFSIGNALED(st) ? WTERMSIG(st) : 0 };
        if (pid == sv->job_pid && !sv->ended) {
            sv->ended = true;
            sv->how = how;
            sv->job.pid = 0; /* its number may be given to another process from now on */
        } else {
            sessions_reaped(&sv->sessions, pid, &how);
        }
    }
    return pid == 0;
}

static void on_signal(struct supervisor *sv, int signo)
{
    if (signo == SIGCHLD)
        return;
    if (sv->o->pod && signo == SIGTERM && !sv->freezes) {
        sv->freezes = true;
        signo = sv->o->freeze_signal;
    }
    sessions_signal_job(&sv->sessions, signo);
}

static void on_signals(struct supervisor *sv)
{
    struct signalfd_siginfo info[16];
    ssize_t n;
    while ((n = read(sv->signals, info, sizeof info)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof *info; i++)
            on_signal(sv, (int)info[i].ssi_signo);
    reap(sv);
}

/* Was the pod deleted before its program was started?  Other signals wait for the loop. */
static bool is_unwanted(const struct supervisor *sv)
{
    sigset_t waiting;
    return sv->o->pod && sigpending(&waiting) == 0 && sigismember(&waiting, SIGTERM) == 1;
}

/* --- the status file --- */

static void status_write(const struct supervisor *sv, struct str lines)
{
    /* Nobody to tell when it fails: the keeper then takes the end for a loss. */
    while (lines.n > 0) {
        ssize_t n = write(sv->o->files.status, lines.p, lines.n);
        if (n <= 0)
            return;
        lines = (struct str){ lines.p + n, lines.n - (size_t)n };
    }
}

static void status_started(const struct supervisor *sv)
{
    char line[64];
    int n = snprintf(line, sizeof line, "started %lld\n", (long long)sv->sessions.started_ms);
    status_write(sv, (struct str){ line, (size_t)n });
}

static void status_ended(const struct supervisor *sv, int why, const char *why_not)
{
    AUTO(buf_free) struct buf b = BUF(1024);
    if (why_not)
        buf_printf(&b, "failed %d %s\n", why, why_not);
    if (sv->ring.lost_bytes > 0)
        buf_printf(&b, "lost %llu\n", (unsigned long long)sv->ring.lost_bytes);
    buf_printf(&b, "%s %d %lld\n", sv->how.signal ? "signal" : "exit",
               sv->how.signal ? sv->how.signal : sv->how.code, (long long)(wall_us() / 1000));
    status_write(sv, buf_str(&b));
}

/* --- the job's output --- */

/* A word of ours where the job's output goes; in a pod also for those who read only that. */
static void say(struct supervisor *sv, const char *text)
{
    AUTO(buf_free) struct buf line = BUF(1024);
    ring_note(&sv->ring, wall_us(), text);
    buf_printf(&line, "nightshift-init: %s\n", text);
    outlet_write(&sv->outlet[CHILD_ERR], buf_str(&line));
}

static ssize_t job_pump(struct supervisor *sv, enum child_end end)
{
    bool err = end == CHILD_ERR;
    ssize_t n = child_read(&sv->job, end, sv->chunk, sizeof sv->chunk);
    if (n <= 0)
        return n;
    struct str data = { sv->chunk, (size_t)n };
    outlet_write(&sv->outlet[end], data);
    ring_write(&sv->ring, wall_us(), err ? JOBLOG_STDERR : JOBLOG_STDOUT, data);
    sessions_output(&sv->sessions, err ? STREAM_STDERR : STREAM_STDOUT, data, mono_ms());
    return n;
}

/* All that is still in the pipes.  Who wrote it is dead, so this is bounded by what they hold. */
static void job_drain(struct supervisor *sv, int64_t until_ms)
{
    child_release(&sv->job);
    for (enum child_end end = CHILD_OUT; end < CHILD_ENDS; end++) {
        size_t drained = 0;
        ssize_t n;
        while (drained < DRAIN_MAX_BYTES && (n = job_pump(sv, end)) > 0) {
            drained += (size_t)n;
            outlet_wait_room(&sv->outlet[end], until_ms);
        }
    }
}

/* --- the loop --- */

static void run_once(struct supervisor *sv)
{
    struct pollfd p[POLL_COUNT];
    struct child *job = &sv->job;
    bool read_on = sessions_job_may_write(&sv->sessions);
    p[POLL_SIGNALS] = (struct pollfd){ sv->signals, POLLIN, 0 };
    p[POLL_JOB + CHILD_IN] = (struct pollfd){ child_input_fd(job), POLLOUT, 0 };
    for (enum child_end end = CHILD_OUT; end < CHILD_ENDS; end++) {
        bool room = read_on && !outlet_full(&sv->outlet[end]);
        p[POLL_JOB + end] = (struct pollfd){ room ? job->fd[end] : -1, POLLIN, 0 };
    }
    for (enum child_end end = CHILD_IN; end < CHILD_ENDS; end++)
        p[POLL_OUTLETS + end] = outlet_poll(&sv->outlet[end]);
    sessions_polls(&sv->sessions, p + POLL_SESSIONS);
    if (wait_ready(p, POLL_COUNT, sessions_timeout_ms(&sv->sessions, mono_ms())) < 0)
        return;
    if (p[POLL_JOB + CHILD_IN].revents)
        child_input_flush(job);
    for (enum child_end end = CHILD_OUT; end < CHILD_ENDS; end++) {
        if (p[POLL_OUTLETS + end].revents)
            outlet_flush(&sv->outlet[end]);
        if (p[POLL_JOB + end].revents)
            job_pump(sv, end);
    }
    if (p[POLL_SIGNALS].revents)
        on_signals(sv);
    sessions_polled(&sv->sessions, p + POLL_SESSIONS, mono_ms()); /* also for what was reaped */
}

/* Kills what the job has left, and waits until it is gone. */
static void kill_the_rest(struct supervisor *sv)
{
    int64_t until_ms = mono_ms() + KILL_MS;
    while (reap(sv) && mono_ms() < until_ms) {
        struct pollfd p = { sv->signals, POLLIN, 0 };
        struct signalfd_siginfo info[16];
        /* In a pod those that came from outside are our clients: they go when we go. */
        procs_kill_all(sv->job_pid, sv->o->pod);
        wait_ready(&p, 1, KILL_AGAIN_MS);
        while (read(sv->signals, info, sizeof info) > 0)
            continue; /* nobody is left to be told */
    }
}

static void begin(struct supervisor *sv, const struct supervisor_options *o)
{
    sv->o = o;
    prctl(PR_SET_NAME, "nightshift-init");
    prctl(PR_SET_DUMPABLE, 0); /* or the job could read us and take our descriptors */
    procs_adopt();
    child_init(&sv->job);
    for (enum child_end end = CHILD_IN; end < CHILD_ENDS; end++)
        outlet_open(&sv->outlet[end], o->pod && end != CHILD_IN ? (int)end : -1);
    sv->signals = take_signals();
    fcntl(o->files.listener, F_SETFL, O_NONBLOCK);
    sessions_begin(&sv->sessions, o->files.listener, &sv->job, &sv->ring);
    sv->sessions.linger = o->pod;
    int64_t t_us = wall_us();
    ring_begin(&sv->ring, o->files.segment, o->log_bytes, t_us);
    if (o->complaint)
        say(sv, o->complaint);
    if (o->note)
        ring_note(&sv->ring, t_us, o->note);
    sv->sessions.started_ms = t_us / 1000;
    status_started(sv);
}

/* -1 with *out_errno, and how it ends, when there is no job after all. */
static int start(struct supervisor *sv, int *out_errno, struct err *e)
{
    struct child_spec spec = { .argv = sv->o->argv,
                               .env = (const char *const *)environ,
                               .tty = sv->o->tty,
                               .input = sv->o->input };
    if (is_unwanted(sv)) {
        *out_errno = EINTR;
        sv->how.signal = SIGTERM;
        return err_set(e, ERR_CONFLICT, "'%s' was not started: SIGTERM came first", sv->o->argv[0]);
    }
    if (child_start(&sv->job, &spec, out_errno, e) == 0)
        return 0;
    sv->how.code = *out_errno == ENOENT ? NOT_FOUND : CANNOT_RUN;
    return -1;
}

int supervisor_run(const struct supervisor_options *o)
{
    AUTO(free_p) struct supervisor *sv = xcalloc(1, sizeof *sv);
    struct err e = { 0 };
    int why = 0;
    begin(sv, o);
    if (start(sv, &why, &e) < 0) {
        say(sv, e.msg);
        sv->ended = true;
    }
    sv->job_pid = sv->job.pid;
    while (!sv->ended)
        run_once(sv);
    const char *why_not = e.code != ERR_NONE ? e.msg : NULL;
    kill_the_rest(sv);
    int64_t until_ms = mono_ms() + FLUSH_MS;
    job_drain(sv, until_ms);
    ring_end(&sv->ring, wall_us());
    status_ended(sv, why, why_not);
    sessions_end(&sv->sessions, &sv->how, why_not);
    for (enum child_end end = CHILD_IN; end < CHILD_ENDS; end++)
        outlet_wait_idle(&sv->outlet[end], until_ms);
    for (enum child_end end = CHILD_IN; end < CHILD_ENDS; end++)
        outlet_close(&sv->outlet[end]); /* not before: two may be the same open file */
    child_clear(&sv->job);
    return sv->how.signal ? 128 + sv->how.signal : sv->how.code;
}
