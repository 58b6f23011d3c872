/* finish - the way from a program's end to its result: nothing of it is left when it is told. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "keeper/life.h"
#include "keeper/stray.h"
#include "keeper/tell.h"
#include "sys/failpoint.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/weak.h"

#define LINGER_MS 2000    /* how long crun may take to clear up after itself */
#define WAIT_MAX_MS 200u  /* between two looks */
#define SILENT_TRIES 100u /* then a line in the log, once */
#define OUT_LOG_MAX 65536u
#define REMOVE_TRIES 20
#define REMOVE_WAIT_NS 500000
#define NEEDED_FILES 8

/* crun's own record, when it was killed before it could remove it. */
static void clear_runtime(struct task *t)
{
    char path[LIFE_PATH_MAX];
    struct stat st;
    struct err e = { 0 };
    snprintf(path, sizeof path, "%s/crun/%s", t->env->run, t->name);
    if (lstat(path, &st) < 0)
        return;
    const char *argv[] = { t->env->crun, "--root", NULL, "delete", "-f", t->name, NULL };
    char root[LIFE_PATH_MAX];
    snprintf(root, sizeof root, "%s/crun", t->env->run);
    argv[2] = root;
    AUTO(buf_free) struct buf out = { 0 };
    struct process_exit how = { 0 };
    /* Its processes are gone: this only removes files, in some milliseconds. */
    if (process_capture(argv, 4096, 10000, &out, &how, &e) < 0 || how.code || how.signal)
        log_event(t->env->log, LOG_WARN_, "task.crun_delete", "task=%s code=%d why=%s", t->name,
                  how.code, e.msg);
    if (lstat(path, &st) == 0 && tree_remove(path, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.crun_state", "task=%s why=%s", t->name, e.msg);
}

static void clear_step(struct task *t, int rc, const struct err *e)
{
    if (rc < 0)
        log_event(t->env->log, LOG_WARN_, "task.left", "task=%s why=%s", t->name, e->msg);
}

/* The note goes first: the next task may have the place at once, and a keeper that is born then must
 * not take it for this one's. */
static void clear_scratch(struct task *t)
{
    char note[LIFE_PATH_MAX + 16];
    struct err e = { 0 };
    if (!t->scratch[0])
        return;
    snprintf(note, sizeof note, "%s/scratch", t->run);
    unlink(note);
    clear_step(t, scratch_give_back(t->env->scratch, t->scratch, &e), &e);
    t->scratch[0] = '\0';
}

void finish_clear(struct task *t)
{
    char path[LIFE_PATH_MAX + 16];
    struct err e = { 0 };
    bool removed = false;
    for (int i = 0; i < REMOVE_TRIES && !removed; i++) {
        removed = cgroup_remove(t->env->cgroups, t->name);
        if (!removed) /* the kernel may still be busy with the last that left */
            nanosleep(&(struct timespec){ .tv_nsec = REMOVE_WAIT_NS }, NULL);
    }
    if (!removed)
        log_event(t->env->log, LOG_WARN_, "task.cgroup_left", "task=%s", t->name);
    fail_point("keeper.after_cgroup_remove");
    if (t->env->mode != KEEPER_MODE_PLAIN)
        clear_runtime(t);
    snprintf(path, sizeof path, "%s/rootfs", t->run);
    if (t->env->mode == KEEPER_MODE_ROOT)
        clear_step(t, image_unmount(path, &e), &e);
    clear_scratch(t);
    fail_point("keeper.after_scratch_remove");
    if (t->netns[0] && t->env->net)
        gangnet_give_back(t->env->gangs, t->netns);
    t->netns[0] = '\0';
    fail_point("keeper.after_net_give_back");
    bool left = tree_remove(t->run, &e) < 0;
    clear_step(t, left ? -1 : 0, &e);
    t->env->left |= left;
}

/* --- what it was --- */

/* The last words of crun or of the supervisor, when nothing else says why. */
static void read_reason(struct task *t, struct err *e)
{
    char path[LIFE_PATH_MAX + 16];
    AUTO(buf_free) struct buf text = { 0 };
    struct err unread;
    snprintf(path, sizeof path, "%s/out.log", t->run);
    if (file_read(path, OUT_LOG_MAX, &text, &unread) < 0)
        text.n = 0;
    struct str all = str_trim(buf_str(&text)), line, last = { 0 };
    while (str_next_line(&all, &line))
        last = str_trim(line).n ? str_trim(line) : last;
    /* Through a link of the user's it may be there outside and not inside; trying again is no use. */
    if (t->start && last.n > 6 && memcmp(last.p, "chdir ", 6) == 0)
        err_set(e, ERR_NOT_FOUND, "the working folder '%s' is not there inside the job",
                t->start->workdir);
    else if (last.n)
        err_set(e, ERR_UNAVAILABLE, "the job could not be started: %.*s",
                (int)MIN(last.n, (size_t)250), last.p);
    else
        err_set(e, ERR_UNAVAILABLE, "the job could not be started: its supervisor ended at once");
}

static void decide(struct task *t, const struct task_status *st, struct task_result *r)
{
    struct cgroup_usage u;
    cgroup_usage(t->env->cgroups, t->name, &u);
    bool known = st->ended_ms || t->exit_seen;
    int64_t now = life_now(t), said = st->ended_ms ? MIN(st->ended_ms, now) : now;
    *r = (struct task_result){
        .code = st->ended_ms ? st->code : t->exit.code,
        .signal = st->ended_ms ? st->signal : t->exit.signal,
        .t_ms = MAX(said, t->started_ms), /* its supervisor runs as its user */
        .cpu_ms = u.cpu_ms,
        .mem_peak_mib = u.mem_peak_mib,
        .lost_bytes = st->lost_bytes,
    };
    if (!known)
        r->signal = SIGKILL;
    bool well = r->code == 0 && r->signal == 0;
    bool full = !well && scratch_full(t->scratch);
    r->why = t->notes.stopping        ? t->notes.why
           : u.oom_kills && !well     ? END_MEMORY
           : !known                   ? END_LOST
           : full                     ? END_DISK
           : u.refused_forks && !well ? END_PROCESSES
                                      : END_EXITED;
    r->limit = r->why == END_PROCESSES && t->start ? t->start->pids_max : 0;
}

static void tell_end(struct task *t)
{
    struct err e;
    AUTO(buf_free) struct buf text = BUF(RESULT_MAX);
    struct task_record rec;
    if (!weak_here("log_watch"))
        task_output_cut(t->dir, t->run, t->start ? t->start->log_bytes : 0);
    task_record_read(t->dir, &rec);
    decide(t, &rec.status, &t->result);
    task_result_write(&t->result, &text);
    fail_point("keeper.before_result");
    if (task_file_put(t->dir, "result.json", buf_str(&text), &e) < 0)
        log_event(t->env->log, LOG_ERROR_, "task.result_lost", "task=%s why=%s", t->name, e.msg);
    fail_point("keeper.after_result");
    finish_clear(t);
    fail_point("keeper.before_ended");
    t->state = TASK_ENDED;
    log_event(t->env->log, LOG_INFO_, "task.ended", "task=%s code=%d signal=%d why=%s cpu_ms=%llu",
              t->name, t->result.code, t->result.signal, task_end_name(t->result.why),
              (unsigned long long)t->result.cpu_ms);
    tell_ended(t->env, t->name, &t->result);
}

/* Nothing of the user's ran: it is as if it had never been asked for. */
static void tell_failure(struct task *t)
{
    struct err e;
    if (t->failed.code == ERR_NONE)
        read_reason(t, &t->failed);
    finish_clear(t);
    fail_point("keeper.before_failed");
    if (tree_remove(t->dir, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.left", "task=%s why=%s", t->name, e.msg);
    t->state = TASK_GONE;
    log_event(t->env->log, LOG_INFO_, "task.failed", "task=%s why=%s", t->name, t->failed.msg);
    tell_failed(t->env, t->name, &t->failed);
}

/* Nothing waits for it any more; whoever reaps it removes its control group. */
static void abandon(struct task *t)
{
    log_event(t->env->log, LOG_WARN_, "task.abandoned", "task=%s pid=%d", t->name,
              (int)t->child.pid);
    t->child_watch = loop_unwatch(t->child_watch);
    file_close_p(&t->child.report);
    strays_add(t->env->strays, t->name, t->child.pid, t->child.pidfd);
    t->child.pidfd = -1;
    t->child.pid = 0;
}

static void conclude(struct task *t)
{
    struct task_record rec;
    task_record_read(t->dir, &rec);
    bool begun = t->started_ms || rec.status.started_ms;
    loop_timer_clear(t->timer);
    watch_close(t);
    if (t->abandoned)
        abandon(t);
    t->oom_watch = loop_unwatch(t->oom_watch);
    file_close_p(&t->oom_fd);
    /* One that was told to stop before it began has ended: nobody is to start it again. */
    if (begun || t->notes.stopping)
        tell_end(t);
    else
        tell_failure(t);
    life_slot_done(t);
    if (t->state == TASK_GONE)
        t->env->gone(t->env->ctx, t);
}

/* --- waiting until all its processes are gone --- */

static bool is_empty(struct task *t)
{
    if (t->net_wanted || (t->child.pid && !t->abandoned))
        return false;
    if (t->abandoned)
        return true;
    if (cgroups_kind(t->env->cgroups) != CGROUPS_NONE)
        return cgroup_pids(t->env->cgroups, t->name, NULL, 0) == 0;
    struct task_record rec; /* without a control group the lock tells */
    task_record_read(t->dir, &rec);
    return rec.found != FOUND_ALIVE;
}

/* Whether it is over, what it left and its folders are looked at with some files open: without, a task that runs
 * would seem over, its end another, and its folders would stay. */
static bool may_open(void)
{
    int fd[NEEDED_FILES], n = 0;
    while (n < NEEDED_FILES && (fd[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        n++;
    bool all = n == NEEDED_FILES || errno != EMFILE;
    while (n > 0)
        close(fd[--n]);
    return all;
}

void finish_step(struct task *t)
{
    bool able = may_open();
    if (able && is_empty(t)) {
        conclude(t);
        return;
    }
    if (able && life_now(t) - t->end_since_ms >= LINGER_MS) {
        struct err e;
        /* Twice killed, and no program yet: what it waits for is the kernel's. */
        t->abandoned = t->killed_again && life_composes(t, &e);
        t->killed_again = t->killed;
        life_kill(t);
    }
    t->tries++;
    if (!able && t->tries == 1)
        log_event(t->env->log, LOG_WARN_, "task.waits", "task=%s why=%s hint=%s", t->name,
                  strerror(EMFILE), "raise the keeper's limit of open files: LimitNOFILE=");
    if (t->tries == SILENT_TRIES)
        log_event(t->env->log, LOG_WARN_, "task.lingers", "task=%s", t->name);
    unsigned wait_ms = 1u << MIN(t->tries, 10u);
    loop_timer_set(t->timer, MIN(wait_ms, WAIT_MAX_MS), 0);
}

void finish_begin(struct task *t)
{
    if (t->state == TASK_ENDING || t->state == TASK_ENDED || t->state == TASK_GONE)
        return;
    fail_point("keeper.program_over");
    t->state = TASK_ENDING;
    t->end_since_ms = life_now(t);
    t->tries = 0;
    /* A frozen process cannot even die. */
    struct err e;
    if (t->notes.paused && cgroup_freeze(t->env->cgroups, t->name, false, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.thaw", "task=%s why=%s", t->name, e.msg);
    finish_step(t);
}

void finish_failed(struct task *t, const struct err *e)
{
    t->failed = *e;
    launch_cancel(t);
    if (t->child.pid) { /* it must not begin any more */
        t->killed = true;
        life_kill(t);
    }
    finish_begin(t);
}
