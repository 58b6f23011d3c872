#include "engine/engine.h"

#include <stdio.h>

#include "base/parse.h"

static const struct {
    const char *name, *help;
} caps[] = {
#define X(id, name, help) { name, help },
    ENGINE_CAPS(X)
#undef X
};

static const char *const events[] = {
#define X(id, name) name,
    ENGINE_EVENTS(X)
#undef X
};

const char *engine_cap_name(enum engine_cap c)
{
    return (size_t)c < ARRAY_LEN(caps) ? caps[c].name : "?";
}

const char *engine_cap_help(enum engine_cap c)
{
    return (size_t)c < ARRAY_LEN(caps) ? caps[c].help : "?";
}

const char *engine_event_name(enum engine_event_kind k)
{
    return (size_t)k < ARRAY_LEN(events) ? events[k] : "?";
}

const char *task_format(struct task_id t, char out[static 64])
{
    snprintf(out, 64, "%llu.%u.%u", (unsigned long long)t.job, t.run, t.replica);
    return out;
}

int task_parse(struct str text, struct task_id *out, struct err *e)
{
    struct str job, run, replica, rest;
    uint64_t n[3];
    if (!str_cut(text, '.', &job, &rest) || !str_cut(rest, '.', &run, &replica) ||
        parse_u64(job, UINT64_MAX, &n[0], e) < 0 || parse_u64(run, UINT32_MAX, &n[1], e) < 0 ||
        parse_u64(replica, REPLICAS_MAX, &n[2], e) < 0) {
        err_set(e, ERR_INVALID, "'%.*s' is not a task", STR_ARG(text));
        return err_hint(e, "a task is JOB.RUN.REPLICA, e.g. 17.1.0");
    }
    *out = (struct task_id){ n[0], (uint32_t)n[1], (uint32_t)n[2] };
    return 0;
}

int engine_check(const struct engine *en, const struct spec *s, struct err *e)
{
    const struct {
        bool needed;
        enum engine_cap cap;
        const char *what, *hint; /* NULL: the usual */
    } needs[] = {
        { request_shares_gpu(&s->request), CAP_GPU_SHARE, "resources.gpu_share", NULL },
        { s->devices.n > 0, CAP_DEVICES, "resources.devices", NULL },
        { s->request.replicas > 1, CAP_GANG, "replicas", NULL },
        { !str_is(s->image, "host"), CAP_IMAGES, "image", NULL },
        { s->tty || s->has_stdin, CAP_ATTACH, "tty", NULL },
        { s->scratch_mib > 0, CAP_QUOTA, "resources.scratch", NULL },
        /* Where everybody has the machine's own network there is nothing to keep apart. */
        { s->network == NETWORK_TENANT && en->caps[CAP_MULTI_USER], CAP_NETWORK, "network",
          "run it without one (--network none), or have it mended: nightshift doctor" },
    };
    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (needs[i].needed && !en->caps[needs[i].cap]) {
            err_set(e, ERR_UNAVAILABLE, "field '%s': the %s engine here cannot do it: %s",
                    needs[i].what, en->ops->name, engine_cap_help(needs[i].cap));
            err_about(e, "%s", needs[i].what);
            return err_hint(
                e, "%s", needs[i].hint ? needs[i].hint : "see what it can do: nightshift status");
        }
    return en->ops->check ? en->ops->check(en->self, s, e) : 0;
}
