/* What is wrong with the server's machine: the answer of a child, because a GPU or a disk that hangs
 * must hold nobody but it.  Those who ask while one runs get the same answer. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "api/state.h"
#include "base/parse.h"
#include "control/jump.h"
#include "store/kept.h"
#include "sys/file.h"
#include "sys/process.h"

#define DOCTOR_MS 10000
#define ANSWER_MAX (256u << 10)
#define WAITING_MAX 16
#define ARGS_MAX 272

struct doctor {
    struct api *api;
    struct process *child;
    struct loop_watch *watch, *late;
    int fd;
    struct buf out;
    struct http_request *waiting[WAITING_MAX];
    size_t n;
};

/* Answers everybody and is gone.  NULL: with the child's words. */
static void doctor_end(struct doctor *d, const struct err *why)
{
    d->api->doctor = NULL;
    for (size_t i = 0; i < d->n; i++) {
        if (why)
            http_reply_error(d->waiting[i], why, NULL);
        else
            http_reply(d->waiting[i], 200, "application/json", buf_str(&d->out));
    }
    loop_unwatch(d->watch);
    loop_unwatch(d->late);
    if (d->child)
        process_kill(d->child, SIGKILL);
    process_free(d->child);
    file_close_p(&d->fd);
    buf_free(&d->out);
    free(d);
}

void doctor_stop(struct api *a)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is being stopped");
    if (a->doctor)
        doctor_end(a->doctor, &e);
}

static void take_output(struct doctor *d)
{
    char piece[16384];
    ssize_t n;
    while ((n = read(d->fd, piece, sizeof piece)) > 0)
        buf_add(&d->out, (struct str){ piece, (size_t)n });
    if (n == 0) /* a closed pipe would be readable for ever */
        d->watch = loop_unwatch(d->watch);
}

static void on_output(void *ctx, unsigned events)
{
    (void)events;
    take_output(ctx);
}

static void on_late(void *ctx)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the check did not end within %d s", DOCTOR_MS / 1000);
    err_hint(&e, "a GPU or a disk may hang: dmesg | tail; on the machine: nightshiftd --check");
    doctor_end(ctx, &e);
}

static void on_exit_of_child(void *ctx, const struct process_exit *how)
{
    struct doctor *d = ctx;
    struct err e = { 0 };
    take_output(d);
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&d->out), &e);
    bool answered = how->signal == 0 && how->code <= 1 && !d->out.full && doc &&
                    json_find(json_root(doc), "checks");
    if (answered) {
        doctor_end(d, NULL);
        return;
    }
    log_event(d->api->config.log, LOG_ERROR_, "doctor.failed", "code=%d signal=%d", how->code,
              how->signal);
    err_set(&e, ERR_UNAVAILABLE, "the check failed (exit %d, signal %d)", how->code, how->signal);
    err_hint(&e, "on the machine: nightshiftd --check");
    doctor_end(d, &e);
}

/* As doctor.h wants it; empty: not verified yet. */
static const char *audit_text(const struct control *c, char *out, size_t n)
{
    struct control_audit_state s = control_audit_state(c);
    out[0] = '\0';
    if (s.fault)
        snprintf(out, n, "row %llu: %s", (unsigned long long)s.fault_at, audit_fault_help(s.fault));
    else if (s.checked_ms)
        snprintf(out, n, "ok %llu", (unsigned long long)s.rows);
    return out;
}

static const char *clock_text(const struct control *c, char *out, size_t n)
{
    struct control_clock s = control_clock(c);
    char by[32];
    int64_t ms = s.ahead_ms < 0 ? -s.ahead_ms : s.ahead_ms;
    snprintf(out, n, s.holds ? "%s %s" : "ok", format_duration_ms((ms + 500) / 1000 * 1000, by),
             s.ahead_ms < 0 ? "behind" : "ahead");
    return out;
}

/* As doctor.h wants it. */
static const char *networks_text(const struct engine *en, char *out, size_t n)
{
    struct engine_walls w = { 0 };
    if (en->ops->walls)
        en->ops->walls(en->self, &w);
    if (w.known && !w.there)
        snprintf(out, n, "lost");
    else if (w.known && w.reloads)
        snprintf(out, n, "yes %llu", (unsigned long long)w.reloads);
    else
        snprintf(out, n, "%s", en->caps[CAP_NETWORK] ? "yes" : "no");
    return out;
}

static int start_child(struct doctor *d, struct err *e)
{
    const struct api_config *c = &d->api->config;
    const struct engine *en = control_engine(c->control);
    const char *argv[ARGS_MAX], *mode = c->mode(c->mode_ctx);
    struct store_log_sum logs = { 0 };
    struct err trouble = { 0 }, silent = { 0 }, damage = { 0 };
    char bytes[32], audit[160], clock[64], networks[32];
    size_t n = 0;
    int ends[2];
    while (c->doctor_argv[n] && n + 17 < ARGS_MAX) {
        argv[n] = c->doctor_argv[n];
        n++;
    }
    argv[n++] = "--keeper-mode";
    argv[n++] = mode ? mode : "";
    if (store_log_sum(c->store, &logs, e) < 0)
        return -1;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)logs.bytes);
    argv[n++] = "--logs-kept";
    argv[n++] = bytes;
    argv[n++] = "--audit";
    argv[n++] = audit_text(c->control, audit, sizeof audit);
    argv[n++] = "--store-damage";
    argv[n++] = store_damaged(c->store, &damage) ? damage.msg : "";
    argv[n++] = "--clock";
    argv[n++] = clock_text(c->control, clock, sizeof clock);
    argv[n++] = "--engine-trouble";
    bool ready = control_ready(c->control, &trouble);
    argv[n++] = ready ? "" : trouble.msg;
    if (ready && en->caps) {
        argv[n++] = "--networks";
        argv[n++] = networks_text(en, networks, sizeof networks);
    }
    argv[n++] = "--keeper-silent";
    argv[n++] = control_answers(c->control, &silent) ? "" : silent.msg;
    argv[n++] = "--mail-trouble";
    argv[n++] = c->notices ? notices_mail_trouble(c->notices) : "";
    argv[n] = NULL;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    d->fd = ends[0];
    AUTO(file_close_p) int child_end = ends[1];
    fcntl(d->fd, F_SETFL, O_NONBLOCK);
    struct process_spec spec = { .argv = argv,
                                 .fd = { PROCESS_NO_FD, child_end, PROCESS_NO_FD },
                                 .new_group = true };
    d->child = process_spawn(c->loop, &spec, on_exit_of_child, d, e);
    if (!d->child)
        return -1;
    d->watch = loop_fd(c->loop, d->fd, on_output, d, e);
    return d->watch ? loop_fd_set(d->watch, LOOP_READ, e) : -1;
}

int api_doctor(struct call *c, struct err *e)
{
    struct api *a = c->api;
    struct doctor *d = a->doctor;
    if (a->stopping)
        return err_set(e, ERR_UNAVAILABLE, "the server is being stopped");
    if (d && d->n == WAITING_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%d callers wait for a check already", WAITING_MAX);
    if (d) {
        d->waiting[d->n++] = c->rq;
        return 0;
    }
    d = xcalloc(1, sizeof *d);
    *d = (struct doctor){ .api = a, .fd = -1, .out = BUF(ANSWER_MAX) };
    a->doctor = d;
    if (start_child(d, e) < 0) {
        doctor_end(d, e); /* nobody waits: the error is the answer of this call */
        return -1;
    }
    d->late = loop_timer(a->config.loop, on_late, d);
    loop_timer_set(d->late, DOCTOR_MS, 0);
    d->waiting[d->n++] = c->rq;
    return 0;
}
