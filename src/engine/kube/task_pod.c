/* What becomes of a task's pod, as the task's steps: it runs, waits for its image, ended, is gone. */
#include <signal.h>
#include <stdio.h>

#include "engine/kube/state.h"

enum task_end task_unasked(const struct task *t)
{
    return t->gang ? END_REMOVED : END_LOST;
}

static enum task_end why_of(const struct task *t, const struct kube_pod *p, int signo, int code)
{
    bool full = strstr(p->message, "ephemeral") || strstr(p->message, "emptyDir");
    if (strcmp(p->reason, "DeadlineExceeded") == 0)
        return END_TIME_LIMIT;
    if (strcmp(p->stand.reason, "OOMKilled") == 0)
        return END_MEMORY;
    if (strcmp(p->reason, "Evicted") == 0)
        return full ? END_DISK : END_LOST;
    if (t->stop && !t->freeze && (signo || code))
        return t->stop_why;
    if (t->stop && t->freeze && (signo || (t->gang && p->deletion_ms)))
        return END_STOPPED; /* pods of others come again, however their programs take it */
    if (!t->stop && p->deletion_ms && signo)
        return task_unasked(t); /* somebody removed its pod: its owner, a drain, a node that goes */
    return END_EXITED;
}

static void pod_ended(struct kube *k, struct task *t, const struct kube_pod *p)
{
    const struct kube_stand *s = &p->stand;
    int code = s->has_exit ? s->exit_code : 0, signo = s->has_exit ? s->signal : SIGKILL;
    if (signo == 0 && code > 128 && code <= 128 + 64)
        signo = code - 128; /* as nightshift-init and every shell tells of a signal */
    t->began |= s->has_exit && !s->init;
    if (!t->began && !t->gang && !t->stop && p->deletion_ms == 0 &&
        strcmp(p->reason, "DeadlineExceeded") != 0) {
        /* The machine did not take it, or our own first container failed. */
        task_fail(k, t, s->init ? ERR_INTERNAL : ERR_UNAVAILABLE, "its pod did not start: %s%s%s",
                  p->reason[0] ? p->reason : s->reason, p->message[0] ? ": " : "", p->message);
        return;
    }
    task_ended(k, t, why_of(t, p, signo, code), code, signo);
}

static void pod_waits(struct kube *k, struct task *t, const struct kube_pod *p)
{
    char text[700];
    const struct kube_stand *s = &p->stand;
    if (s->kind != STAND_WAITING || !s->reason[0] || strcmp(s->reason, "PodInitializing") == 0)
        return;
    snprintf(text, sizeof text, "%s%s%s", s->reason, s->message[0] ? ": " : "", s->message);
    if (strcmp(s->reason, "InvalidImageName") == 0) {
        task_fail(k, t, ERR_INVALID, "its image cannot be used: %s", text);
        return;
    }
    if (!s->stuck)
        t->stuck_since_ms = 0;
    else if (t->stuck_since_ms == 0)
        t->stuck_since_ms = kube_now_ms(k);
    if (strcmp(s->reason, "ContainerCreating") != 0)
        task_tell_progress(k, t, text);
}

void tasks_pod(struct kube *k, struct task *t, const struct kube_pod *p)
{
    struct task_id id = t->id;
    if (t->step == STEP_ENDED)
        return;
    if (t->uid && strcmp(t->uid, p->uid) != 0 && t->step > STEP_MAKING)
        return; /* one of the same name before or after it */
    task_set_text(&t->uid, p->uid);
    if (p->node[0])
        task_set_text(&t->node, p->node);
    bool over = p->phase == POD_SUCCEEDED || p->phase == POD_FAILED ||
                (!t->gang && p->stand.kind == STAND_ENDED && !p->stand.init);
    if (over) {
        pod_ended(k, t, p);
    } else if (p->deletion_ms && !p->node[0]) { /* nobody runs it, so nobody will end it */
        if (t->stop)
            task_ended(k, t, t->stop_why, 0, SIGKILL);
        else
            task_fail(k, t, ERR_UNAVAILABLE, "its pod was deleted before it had a machine");
    } else if (p->stand.kind == STAND_RUNNING && !p->stand.init) {
        t->step = STEP_RUNNING;
        t->began = true;
        if (t->gang)
            task_tell_started_soon(k, t);
        else if (!t->told_started)
            task_tell_started(k, t);
        if (!t->log && !t->gang)
            t->log = follow_new(k, t);
    } else if (p->node[0]) {
        task_reach_bound(t);
        if (!t->gang)
            pod_waits(k, t, p);
        else
            task_tell_started_soon(k, t);
    } else if (t->step == STEP_MAKING && !t->gang) {
        buf_free(&t->document);
        t->step = STEP_BINDING;
    }
    if (tasks_find(k, id) == t) /* it may have been the end of it */
        tasks_step(k, t);
}

void tasks_pod_gone(struct kube *k, struct task *t)
{
    t->gone = true;
    if (t->step != STEP_ENDED)
        task_ended(k, t, t->stop ? t->stop_why : task_unasked(t), 0, SIGKILL);
    if (t->forgotten && !t->busy)
        tasks_drop(k, t);
}

void tasks_lost(struct kube *k, struct task *t)
{
    char text[64];
    if (t->lost)
        return;
    log_event(k->config.log, LOG_WARN_, "task.lost", "task=%s node=%s", task_format(t->id, text),
              t->node);
    t->lost = true;
    if (t->gang) {
        task_ended(k, t, END_LOST, 0, SIGKILL);
        return;
    }
    /* Its pod is deleted before its end is told: a machine that comes back finds that, and what runs elsewhere by
     * then does not run twice. */
    t->stop_why = t->stop ? t->stop_why : END_LOST;
    t->stop = true;
    t->freeze = t->stop_sent = false;
    t->again_ms = 0;
    tasks_step(k, t);
}
