#include "keeper/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "keeper/life.h"
#include "keeper/proctree.h"
#include "keeper/tell.h"
#include "sys/failpoint.h"
#include "sys/file.h"
#include "sys/weak.h"

#define LOOK_AGAIN_MS INT64_C(1000) /* at a task whose supervisor cannot be reached */
#define FREEZE_LOOK_MS INT64_C(2)
#define FREEZE_LOOKS 25u /* before it is thawed and frozen anew */
#define FIRST_PIDS 16    /* among the first of a group is its supervisor */
#define KILL_AGAIN_MS INT64_C(500)

static void on_timer(void *ctx);

static struct task *make(struct env *env, const char *name)
{
    struct task *t = xcalloc(1, sizeof *t);
    t->env = env;
    t->ctl = t->oom_fd = t->status_fd = t->child.pidfd = t->child.report = -1;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->timer = loop_timer(env->loop, on_timer, t);
    return t;
}

struct task *task_free(struct task *t)
{
    if (!t)
        return NULL;
    launch_cancel(t);
    watch_close(t);
    loop_unwatch(t->child_watch);
    loop_unwatch(t->oom_watch);
    loop_unwatch(t->timer);
    file_close_p(&t->child.pidfd);
    file_close_p(&t->child.report);
    file_close_p(&t->oom_fd);
    free(t->line);
    arena_free(&t->arena);
    free(t);
    return NULL;
}

/* The request is read again into the task's own memory: it was checked, so it reads. */
static int take_request(struct task *t, struct str line, struct err *e)
{
    struct keeper_request r;
    if (request_read(line, &t->arena, &r, e) < 0)
        return -1;
    if (!r.start)
        return err_set(e, ERR_INVALID, "not a start request");
    t->start = arena_new(&t->arena, struct start);
    *t->start = *r.start;
    if (t->env->mode != KEEPER_MODE_ROOT) /* the only group that may be mapped */
        t->start->user.gid = getegid();
    return 0;
}

struct task *task_new(struct env *env, struct str line, const struct start *s)
{
    struct err e;
    struct task *t = make(env, s->task);
    t->line = xcalloc(line.n + 1, 1);
    memcpy(t->line, line.p, line.n);
    if (take_request(t, line, &e) < 0 || launch_paths(t, &e) < 0) {
        tell_failed(env, s->task, &e);
        return task_free(t);
    }
    return t;
}

const char *task_name(const struct task *t)
{
    return t->name;
}

enum task_state task_state(const struct task *t)
{
    return t->state;
}

bool task_alive(const struct task *t)
{
    return t->state != TASK_QUEUED && t->state != TASK_ENDED && t->state != TASK_GONE;
}

void life_slot_done(struct task *t)
{
    if (!t->has_slot)
        return;
    t->has_slot = false;
    t->env->slot_free(t->env->ctx);
}

int life_note(struct task *t, const struct buf *line)
{
    struct err e;
    if (task_file_add(t->dir, "notes", buf_str(line), &e) == 0)
        return 0;
    log_event(t->env->log, LOG_ERROR_, "task.note_lost", "task=%s why=%s", t->name, e.msg);
    return -1;
}

int life_pid(const struct task *t)
{
    char path[LIFE_PATH_MAX + 8], text[32] = "";
    snprintf(path, sizeof path, "%s/pid", t->run);
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t pid;
    struct err e;
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
        parse_u64(str_trim(str_of(text)), INT32_MAX, &pid, &e) == 0)
        return (int)pid;
    /* crun writes it late: a short job is over by then.  The group tells. */
    pid_t inside[FIRST_PIDS];
    size_t n = cgroup_pids(t->env->cgroups, t->name, inside, FIRST_PIDS);
    for (size_t i = 0; i < MIN(n, (size_t)FIRST_PIDS); i++)
        if (proctree_is_first("/proc", inside[i]))
            return (int)inside[i];
    return 0;
}

/* --- running --- */

void task_begin(struct task *t)
{
    t->has_slot = true;
    launch_begin(t);
}

/* Its supervisor runs as its user: what that says of the time is believed within bounds only. */
static int64_t within_ms(int64_t t_ms, int64_t least_ms, int64_t most_ms)
{
    int64_t least = MAX(least_ms, INT64_C(1));
    return t_ms > most_ms ? MAX(most_ms, least) : MAX(t_ms, least);
}

static void note_start(struct task *t)
{
    AUTO(buf_free) struct buf note = BUF(64);
    if (!t->start || !t->start->max_time_ms || t->notes.started_ms)
        return;
    t->notes.started_ms = t->started_ms;
    task_note_start(&note, t->started_ms);
    life_note(t, &note);
}

void life_started(struct task *t, int64_t t_ms)
{
    int64_t now = life_now(t);
    if (t->state != TASK_STARTING && t->started_ms)
        return; /* it said so before */
    t->started_ms = within_ms(t_ms, t->child.pid ? t->began_ms : 0, now);
    if (t->state != TASK_STARTING)
        return;
    fail_point("keeper.before_started");
    note_start(t);
    t->state = TASK_RUNNING;
    log_event(t->env->log, LOG_INFO_, "task.started", "task=%s", t->name);
    tell_started(t->env, t->name, t->started_ms, life_pid(t));
    life_slot_done(t);
    if (t->notes.stopping) /* told meanwhile */
        watch_signal(t, SIGTERM);
    life_arm(t);
}

/* Its supervisor is the first process of the namespace all others are in: the kernel takes them
 * with it, and crun can clear up.  A second time everything in the group goes, crun too. */
void life_kill(struct task *t)
{
    struct err e;
    pid_t pid = (pid_t)life_pid(t);
    bool grouped = cgroups_kind(t->env->cgroups) != CGROUPS_NONE;
    bool plain = t->env->mode == KEEPER_MODE_PLAIN;
    if (t->notes.paused && cgroup_freeze(t->env->cgroups, t->name, false, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.thaw", "task=%s why=%s", t->name, e.msg);
    bool first = !t->killed && !plain && pid;
    if (first && (!grouped || cgroup_holds(t->env->cgroups, t->name, pid)))
        kill(pid, SIGKILL);
    else if (grouped)
        cgroup_kill(t->env->cgroups, t->name);
    else if (pid && t->ctl >= 0) /* while it answers, the number is still its own */
        proctree_kill("/proc", pid, !t->killed);
    if (t->killed && t->child.pid)
        kill(t->child.pid, SIGKILL);
    t->killed = true;
}

/* On v1 a group can stay half frozen, e.g. when a process was caught on its way into another program:
 * the kernel's advice is to ask again, or to thaw and ask again. */
static void freeze_again(struct task *t)
{
    struct err e;
    if (cgroups_kind(t->env->cgroups) != CGROUPS_V1)
        return;
    bool anew = ++t->freeze_looks % FREEZE_LOOKS == 0;
    if ((anew && cgroup_freeze(t->env->cgroups, t->name, false, &e) < 0) ||
        cgroup_freeze(t->env->cgroups, t->name, true, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.freeze", "task=%s why=%s", t->name, e.msg);
}

static void pause_step(struct task *t)
{
    if (t->notes.paused == t->pause_told)
        return;
    if (t->notes.paused && !cgroup_is_frozen(t->env->cgroups, t->name)) {
        freeze_again(t);
        return; /* processes stop one by one: look again */
    }
    t->freeze_looks = 0;
    t->pause_told = t->notes.paused;
    tell_paused(t->env, t->name, t->notes.paused, life_now(t));
}

static void oom_step(struct task *t)
{
    struct cgroup_usage u;
    if (t->oom_looks == 0)
        return;
    t->oom_looks--;
    cgroup_usage(t->env->cgroups, t->name, &u);
    if (u.oom_kills == 0)
        return;
    t->oom_looks = 0;
    task_stop(t, END_MEMORY, 0);
}

static int64_t time_left_ms(const struct task *t)
{
    if (!t->start || !t->start->max_time_ms || t->notes.paused || t->notes.stopping)
        return INT64_MAX;
    return (int64_t)t->start->max_time_ms - task_ran_ms(t->started_ms, &t->notes, life_now(t));
}

/* What comes next, in milliseconds; -1: nothing. */
static int64_t next_ms(const struct task *t)
{
    int64_t now = life_now(t), next = INT64_MAX;
    if (t->state == TASK_STARTING)
        next = MIN(next, (t->has_slot ? t->turn_until_ms : t->start_by_ms) - now);
    if (t->state == TASK_RUNNING)
        next = MIN(next, time_left_ms(t));
    if (t->notes.stopping)
        next = MIN(next, t->killed ? KILL_AGAIN_MS : t->notes.kill_at_ms - now);
    if (t->notes.paused && !t->pause_told)
        next = MIN(next, FREEZE_LOOK_MS);
    if (t->oom_looks)
        next = MIN(next, INT64_C(2));
    if (t->ctl < 0)
        next = MIN(next, LOOK_AGAIN_MS);
    return next == INT64_MAX ? -1 : MAX(next, INT64_C(1));
}

void life_arm(struct task *t)
{
    if (t->state != TASK_STARTING && t->state != TASK_RUNNING)
        return;
    int64_t next = next_ms(t);
    /* A clock that is set back must not make a limit wait for days: look at least each minute. */
    if (next > 0)
        loop_timer_set(t->timer, (uint64_t)MIN(next, INT64_C(60000)), 0);
    else
        loop_timer_clear(t->timer);
}

/* Found alive, but not to be spoken to: its lock tells when it is over. */
static void look_again(struct task *t)
{
    struct err e;
    struct task_record rec = { 0 };
    if (t->ctl >= 0 || watch_connect(t, &e) == 0)
        return;
    task_record_read(t->dir, &rec);
    if (rec.found != FOUND_ALIVE)
        finish_begin(t);
}

bool life_composes(struct task *t, struct err *e)
{
    return t->child.pid && spawn_busy(t->spawn, &t->child, e);
}

/* What it waits for may never answer, and others wait for its turn.  Killed, it cannot become a program
 * any more, however long the kernel holds it. */
static void starting_step(struct task *t)
{
    struct err e;
    if (life_now(t) < t->turn_until_ms || !life_composes(t, &e))
        return;
    life_slot_done(t);
    if (t->notes.stopping && t->killed)
        finish_begin(t);
}

static void start_too_long(struct task *t)
{
    struct err e;
    if (!life_composes(t, &e))
        err_set(&e, ERR_UNAVAILABLE, "the job could not be started within %lld s",
                (long long)(t->env->start_limit_ms / 1000));
    finish_failed(t, &e);
}

static void on_timer(void *ctx)
{
    struct task *t = ctx;
    if (t->state == TASK_ENDING) {
        finish_step(t);
        return;
    }
    look_again(t);
    if (t->state == TASK_STARTING && life_now(t) >= t->start_by_ms)
        start_too_long(t);
    if (t->state != TASK_STARTING && t->state != TASK_RUNNING)
        return;
    oom_step(t);
    if (t->state == TASK_RUNNING && time_left_ms(t) <= 0)
        task_stop(t, END_TIME_LIMIT, t->start->grace_ms);
    if (t->notes.stopping && life_now(t) >= t->notes.kill_at_ms)
        life_kill(t);
    if (t->state == TASK_RUNNING)
        pause_step(t);
    if (t->state == TASK_STARTING)
        starting_step(t);
    life_arm(t);
}

/* --- verbs --- */

/* Nothing of it runs: what it waits for is given up, and its end is told like any other. */
static void stop_early(struct task *t)
{
    struct err e;
    if (t->state == TASK_QUEUED && launch_write(t, &e) < 0)
        log_event(t->env->log, LOG_ERROR_, "task.not_written", "task=%s why=%s", t->name, e.msg);
    launch_cancel(t);
    finish_begin(t);
}

void task_stop(struct task *t, enum task_end why, uint64_t grace_ms)
{
    if (t->state == TASK_ENDING || t->state == TASK_ENDED || t->state == TASK_GONE)
        return;
    int64_t now = life_now(t), at = now + (int64_t)grace_ms;
    bool again = t->notes.stopping;
    if (again && at >= t->notes.kill_at_ms)
        return;
    t->notes.why = again ? t->notes.why : why;
    t->notes.kill_at_ms = at;
    t->notes.stopping = true;
    if (t->state == TASK_QUEUED || t->state == TASK_PREPARING) {
        stop_early(t);
        return;
    }
    AUTO(buf_free) struct buf note = BUF(128);
    task_note_stop(&note, now, t->notes.why, grace_ms);
    life_note(t, &note);
    fail_point("keeper.after_stop_note");
    if (t->notes.paused)
        task_resume(t); /* it could not hear the signal */
    if (grace_ms == 0)
        life_kill(t);
    else if (!again)
        watch_signal(t, SIGTERM);
    life_arm(t);
}

void task_look(struct task *t)
{
    bool runs = t->state == TASK_STARTING || t->state == TASK_RUNNING;
    if (!runs || !t->start || weak_here("log_watch") ||
        task_output_fits(t->dir, t->run, t->start->log_bytes))
        return;
    log_event(t->env->log, LOG_WARN_, "task.output", "task=%s", t->name);
    task_stop(t, END_OUTPUT, 0);
}

void task_signal(struct task *t, int signo)
{
    if (t->state == TASK_RUNNING && watch_signal(t, signo) < 0)
        log_event(t->env->log, LOG_WARN_, "task.signal_lost", "task=%s signal=%d", t->name, signo);
}

static void pause_or_resume(struct task *t, bool pause)
{
    struct err e;
    if (!task_alive(t) || t->state == TASK_PREPARING || t->state == TASK_ENDING)
        return;
    AUTO(buf_free) struct buf note = BUF(64);
    if (t->notes.paused == pause) { /* so it is: say it again */
        t->pause_told = !pause;
    } else {
        (pause ? task_note_pause : task_note_resume)(&note, life_now(t));
        if (cgroup_freeze(t->env->cgroups, t->name, pause, &e) < 0) {
            log_event(t->env->log, LOG_WARN_, "task.freeze", "task=%s why=%s", t->name, e.msg);
            return;
        }
        fail_point("keeper.after_freeze");
        life_note(t, &note);
        if (!pause)
            t->notes.paused_ms += MAX(life_now(t) - t->notes.paused_since_ms, INT64_C(0));
        t->notes.paused = pause;
        t->notes.paused_since_ms = life_now(t);
    }
    pause_step(t);
    life_arm(t);
}

void task_pause(struct task *t)
{
    if (!t->notes.stopping)
        pause_or_resume(t, true);
}

void task_resume(struct task *t)
{
    pause_or_resume(t, false);
}

/* task.json goes first: without it there is no task. */
static const char *const own_files[] = { "task.json", "result.json", "status", "notes" };

bool task_is_log(int tasks_fd, const char *name)
{
    char path[LIFE_PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(own_files); i++) {
        snprintf(path, sizeof path, "%s/%s", name, own_files[i]);
        if (faccessat(tasks_fd, path, F_OK, 0) == 0)
            return false;
    }
    snprintf(path, sizeof path, "%s/log.0", name);
    return faccessat(tasks_fd, path, F_OK, 0) == 0;
}

void task_forget_files(struct env *env, const char *name, bool log_too)
{
    char path[LIFE_PATH_MAX], dir[LIFE_PATH_MAX];
    struct err e;
    snprintf(dir, sizeof dir, "%s/tasks/%s", env->state, name);
    for (size_t i = 0; i < ARRAY_LEN(own_files); i++) {
        snprintf(path, sizeof path, "%.*s/%s", LIFE_PATH_MAX - 16, dir, own_files[i]);
        unlink(path);
        fail_point("keeper.forgetting");
    }
    if (log_too && tree_remove(dir, &e) < 0)
        log_event(env->log, LOG_WARN_, "task.left", "task=%s why=%s", name, e.msg);
    rmdir(dir); /* when there is no log in it */
}

void task_forget(struct task *t, bool log_too)
{
    if (t->state != TASK_ENDED)
        return;
    char path[LIFE_PATH_MAX + 16];
    task_forget_files(t->env, t->name, log_too);
    snprintf(path, sizeof path, "%s/task.json", t->dir);
    t->forgets = access(path, F_OK) == 0;
    t->purges = log_too;
    t->env->left |= t->forgets;
    if (t->forgets) /* its disk is read-only for now: the next look tries again */
        return;
    t->state = TASK_GONE;
    t->env->gone(t->env->ctx, t);
}

void task_forget_again(struct task *t)
{
    if (t->forgets)
        task_forget(t, t->purges);
}

void task_tell(struct task *t)
{
    /* One that is over is told so when nothing of it is left; until then it is there. */
    bool ending = t->state == TASK_ENDING && t->started_ms;
    if (t->state == TASK_RUNNING || ending)
        tell_started(t->env, t->name, t->started_ms, life_pid(t));
    if (t->state == TASK_RUNNING && t->notes.paused && t->pause_told)
        tell_paused(t->env, t->name, true, t->notes.paused_since_ms);
    if (t->state == TASK_ENDED)
        tell_ended(t->env, t->name, &t->result);
    if (t->state == TASK_QUEUED || t->state == TASK_PREPARING || t->state == TASK_STARTING ||
        (t->state == TASK_ENDING && !ending))
        tell_progress(t->env, t->name, &(struct tell_progress){ STR("starting"), 0, 0 });
}

/* --- recovery --- */

static int reread_request(struct task *t, struct err *e)
{
    char path[LIFE_PATH_MAX + 16];
    AUTO(buf_free) struct buf line = { 0 };
    snprintf(path, sizeof path, "%s/task.json", t->dir);
    return file_read(path, KEEPER_LINE_MAX, &line, e) < 0 ? -1 : take_request(t, buf_str(&line), e);
}

/* A path that was noted about it; false: none was. */
static bool read_noted(const struct task *t, const char *name, char *out, size_t n)
{
    char path[LIFE_PATH_MAX + 16];
    AUTO(buf_free) struct buf text = { 0 };
    struct err e;
    snprintf(path, sizeof path, "%s/%s", t->run, name);
    if (file_read(path, n - 1, &text, &e) < 0 || text.n == 0)
        return false;
    snprintf(out, n, "%s", text.p);
    return true;
}

static void adopt_scratch(struct task *t)
{
    struct err e;
    if (!t->env->scratch || !read_noted(t, "scratch", t->scratch, sizeof t->scratch))
        return;
    if (scratch_adopt(t->env->scratch, t->scratch, &e) < 0) {
        log_event(t->env->log, LOG_WARN_, "task.scratch", "task=%s why=%s", t->name, e.msg);
        t->scratch[0] = '\0';
    }
}

void task_adopt_net(struct task *t)
{
    struct err e;
    if (!t->env->net || !read_noted(t, "netns", t->netns, sizeof t->netns))
        return;
    if (gangnet_adopt(t->env->gangs, t->name, t->netns, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.net", "task=%s why=%s", t->name, e.msg);
}

/* A pause is in effect when the processes stand, whatever was written last. */
static void take_up_pause(struct task *t)
{
    bool frozen = cgroup_is_frozen(t->env->cgroups, t->name);
    t->pause_told = frozen;
    if (frozen == t->notes.paused)
        return;
    AUTO(buf_free) struct buf note = BUF(64);
    (frozen ? task_note_pause : task_note_resume)(&note, life_now(t));
    life_note(t, &note);
    if (!frozen)
        t->notes.paused_ms += MAX(life_now(t) - t->notes.paused_since_ms, INT64_C(0));
    t->notes.paused = frozen;
    t->notes.paused_since_ms = life_now(t);
}

static void take_up(struct task *t)
{
    struct err e;
    task_adopt_net(t);
    take_up_pause(t);
    t->state = t->started_ms ? TASK_RUNNING : TASK_STARTING;
    t->start_by_ms = life_now(t) + t->env->start_limit_ms;
    if (watch_connect(t, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.unreached", "task=%s why=%s", t->name, e.msg);
    watch_oom(t);
    if (t->notes.stopping) /* whether it heard is not known */
        watch_signal(t, SIGTERM);
    log_event(t->env->log, LOG_INFO_, "task.found", "task=%s", t->name);
    life_arm(t);
}

/* Nothing of the user's ran and nobody was told: away with it, the daemon asks again. */
static void undo(struct task *t)
{
    struct err e;
    cgroup_kill(t->env->cgroups, t->name);
    finish_clear(t);
    if (tree_remove(t->dir, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.left", "task=%s why=%s", t->name, e.msg);
    log_event(t->env->log, LOG_INFO_, "task.undone", "task=%s", t->name);
}

struct task *task_recover(struct env *env, const char *name)
{
    struct task_record rec = { 0 };
    struct err e = { 0 };
    struct task *t = make(env, name);
    if (launch_paths(t, &e) == 0)
        task_record_read(t->dir, &rec);
    else
        rec.found = FOUND_NOTHING;
    t->notes = rec.notes;
    t->started_ms = rec.notes.started_ms  ? rec.notes.started_ms
                  : rec.status.started_ms ? within_ms(rec.status.started_ms, 0, life_now(t))
                                          : 0;
    t->result = rec.result;
    adopt_scratch(t);
    if (rec.found == FOUND_ALIVE && reread_request(t, &e) < 0)
        log_event(env->log, LOG_WARN_, "task.request", "task=%s why=%s", name, e.msg);
    switch (rec.found) {
    case FOUND_NOTHING: task_forget_files(env, name, false); return task_free(t);
    case FOUND_NOT_BEGUN: undo(t); return task_free(t);
    case FOUND_ENDED:
        finish_clear(t);
        t->state = TASK_ENDED;
        break;
    case FOUND_ALIVE: take_up(t); break;
    case FOUND_OVER:
        t->state = TASK_RUNNING;
        finish_begin(t);
        break;
    }
    return t;
}
