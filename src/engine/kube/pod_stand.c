#include "engine/kube/pod_stand.h"

#include "engine/kube/pod_asks.h"

/* Waiting for one of these ends by itself; every other reason is something that somebody has to
 * put right, or that was tried before and failed. */
static const char *const passing[] = { "", "ContainerCreating", "PodInitializing" };

static void read_end(struct doc *d, const struct json *ended, struct kube_stand *out)
{
    out->has_exit = true;
    out->exit_code = doc_i32(d, ended, "exitCode");
    out->signal = doc_i32(d, ended, "signal");
    out->started_ms = doc_time_ms(d, ended, "startedAt");
    out->finished_ms = doc_time_ms(d, ended, "finishedAt");
}

static struct kube_stand read_status(struct doc *d, const struct json *status, struct arena *a)
{
    const struct json *state = doc_object(d, status, "state");
    const struct json *waiting = doc_object(d, state, "waiting");
    const struct json *running = doc_object(d, state, "running");
    const struct json *ended = doc_object(d, state, "terminated");
    const struct json *before = doc_object(d, doc_object(d, status, "lastState"), "terminated");
    const struct json *told = ended ? ended : waiting;
    struct kube_stand s = {
        .container = doc_text(d, status, "name"),
        .reason = doc_prose(d, told, "reason", 128, a),
        .message = doc_prose(d, told, "message", POD_PROSE_MAX, a),
        .restarts = (uint32_t)doc_i32(d, status, "restartCount"),
        .kind = ended   ? STAND_ENDED
              : running ? STAND_RUNNING
                        : STAND_WAITING,
    };
    if (ended || (before && !running))
        read_end(d, ended ? ended : before, &s);
    if (running)
        s.started_ms = doc_time_ms(d, running, "startedAt");
    s.stuck = s.kind == STAND_WAITING;
    for (size_t i = 0; i < ARRAY_LEN(passing); i++)
        s.stuck &= strcmp(s.reason, passing[i]) != 0;
    return s;
}

static bool failed(const struct kube_stand *s)
{
    return s->kind == STAND_ENDED && (s->exit_code != 0 || s->signal != 0);
}

/* How much one container says about the pod; `over` when the pod has ended. */
static int weight(const struct kube_stand *s, bool over)
{
    if (s->kind == STAND_ENDED)
        return over ? 5 + failed(s) : 1 + failed(s);
    return s->stuck ? 5 : s->kind == STAND_RUNNING ? 4 : 3;
}

static bool decides(const struct kube_stand *s, const struct kube_stand *best, bool over)
{
    int mine = weight(s, over), its = weight(best, over);
    if (best->kind == STAND_NONE || mine != its)
        return best->kind == STAND_NONE || mine > its;
    if (s->kind != STAND_ENDED)
        return false;
    return failed(s) ? s->finished_ms < best->finished_ms : s->finished_ms > best->finished_ms;
}

/* The init container that the pod hangs at or that ended it; false: they are all done. */
static bool init_decides(struct doc *d, const struct json *pod, struct arena *a,
                         struct kube_stand *out)
{
    const struct json *specs = doc_array(d, doc_object(d, pod, "spec"), "initContainers");
    const struct json *status = doc_object(d, pod, "status");
    DOC_EACH(v, doc_array(d, status, "initContainerStatuses"))
    {
        struct kube_stand s = read_status(d, v, a);
        bool sidecar = pod_is_sidecar(d, doc_find_by(specs, "name", s.container));
        bool done = sidecar ? s.kind != STAND_WAITING : s.kind == STAND_ENDED && !failed(&s);
        if (done)
            continue;
        s.init = true;
        *out = s;
        return true;
    }
    return false;
}

struct kube_stand pod_stand(struct doc *d, const struct json *pod, enum pod_phase phase,
                            struct arena *a)
{
    bool over = phase == POD_SUCCEEDED || phase == POD_FAILED;
    struct kube_stand best = { .container = "", .reason = "", .message = "" };
    if (init_decides(d, pod, a, &best) && (!over || best.kind == STAND_ENDED))
        return best;
    best = (struct kube_stand){ .container = "", .reason = "", .message = "" };
    DOC_EACH(v, doc_array(d, doc_object(d, pod, "status"), "containerStatuses"))
    {
        struct kube_stand s = read_status(d, v, a);
        /* A kubelet that is gone leaves the states behind that it saw last. */
        if (!(over && s.kind != STAND_ENDED) && decides(&s, &best, over))
            best = s;
    }
    if (over)
        best.kind = STAND_ENDED;
    return best;
}
