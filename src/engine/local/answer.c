#include "engine/local/answer.h"

#include "base/json.h"

static int read_hello(const struct json *o, struct answer *out, struct err *e)
{
    struct str mode;
    const struct json *caps = json_find(o, "caps");
    if (json_need_str(o, "mode", 16, &mode, e) < 0 || json_get_bool(o, "pings", &out->pings, e) < 0)
        return -1;
    if (!keeper_mode_parse(mode, &out->mode))
        return err_set(e, ERR_INVALID, "field 'mode': '%.*s' is not known", STR_ARG(mode));
    for (int i = 0; caps && i < ENGINE_CAP_COUNT; i++)
        if (json_get_bool(caps, engine_cap_name((enum engine_cap)i), &out->caps[i], e) < 0)
            return -1;
    return 0;
}

static int read_gpus(const struct json *list, struct arena *a, struct event_node *n,
                     const char **uuid, struct err *e)
{
    uint32_t i = 0;
    if (!json_is_array(list) || json_len(list) > GPUS_PER_NODE_MAX)
        return err_set(e, ERR_INVALID, "field 'gpus': a list of at most %d is needed",
                       GPUS_PER_NODE_MAX);
    for (const struct json *g = json_first(list); g; g = json_next(list, g), i++) {
        struct str id = STR(""), model = STR("");
        uint64_t mem = 0, link = 0;
        if (json_need_str(g, "uuid", 128, &id, e) < 0 ||
            json_need_str(g, "model", NAME_MAX_BYTES, &model, e) < 0 ||
            json_need_u64(g, "mem_mib", UINT32_MAX, &mem, e) < 0 ||
            json_get_u64(g, "link", GPUS_PER_NODE_MAX - 1, &link, e) < 0)
            return err_wrap(e, "GPU %u", i);
        uuid[i] = arena_strndup(a, id.p, id.n);
        n->link[i] = (uint8_t)link;
        /* One model a node, as the core has it: that of the first, and the least memory. */
        n->gpu_mem_mib = i == 0 ? (uint32_t)mem : MIN(n->gpu_mem_mib, (uint32_t)mem);
        if (i == 0)
            n->model = (struct str){ arena_strndup(a, model.p, model.n), model.n };
    }
    n->gpus = i;
    return 0;
}

static int read_node(const struct json *o, struct arena *a, struct answer *out, struct err *e)
{
    struct event_node *n = arena_new(a, struct event_node);
    const char **uuid = arena_array(a, const char *, GPUS_PER_NODE_MAX + 1);
    const struct json *gpus = json_find(o, "gpus");
    uint64_t cpu = 0, mem = 0;
    struct str name;
    if (json_need_str(o, "name", NAME_MAX_BYTES, &name, e) < 0 ||
        json_need_u64(o, "cpu_milli", UINT32_MAX, &cpu, e) < 0 ||
        json_need_u64(o, "mem_mib", UINT32_MAX, &mem, e) < 0 ||
        json_get_bool(o, "simulated", &out->event.machine.simulated, e) < 0 ||
        (gpus && read_gpus(gpus, a, n, uuid, e) < 0))
        return -1;
    n->name = (struct str){ arena_strndup(a, name.p, name.n), name.n };
    n->cpu_milli = (uint32_t)cpu;
    n->mem_mib = (uint32_t)mem;
    out->event.kind = ENGINE_NODE;
    out->event.machine.node = n;
    out->event.machine.state = NODE_UP;
    out->event.machine.gpu_uuid = uuid;
    return 0;
}

static enum err_code code_of(struct str slug)
{
    for (int i = 0; i < ERR_CODE_COUNT; i++)
        if (str_is(slug, err_info((enum err_code)i)->slug))
            return (enum err_code)i;
    return ERR_INTERNAL;
}

static int read_failed(const struct json *o, struct answer *out, struct err *e)
{
    struct str msg = STR("the start failed"), hint = STR(""), slug = STR("internal");
    if (json_get_str(o, "code", 32, &slug, e) < 0 || json_get_str(o, "msg", 1000, &msg, e) < 0 ||
        json_get_str(o, "hint", 1000, &hint, e) < 0)
        return -1;
    err_set(&out->event.failed, code_of(slug), "%.*s", STR_ARG(msg));
    err_hint(&out->event.failed, "%.*s", STR_ARG(hint));
    return 0;
}

static int read_ended(const struct json *o, struct answer *out, struct err *e)
{
    struct str why = STR("exited");
    uint64_t code = 0, signal = 0;
    if (json_get_u64(o, "code", 255, &code, e) < 0 ||
        json_get_u64(o, "signal", 128, &signal, e) < 0 || json_get_str(o, "why", 32, &why, e) < 0 ||
        json_get_u64(o, "cpu_ms", INT64_MAX, &out->event.ended.cpu_ms, e) < 0 ||
        json_get_u64(o, "mem_peak_mib", INT64_MAX, &out->event.ended.mem_peak_mib, e) < 0 ||
        json_get_u64(o, "limit", INT64_MAX, &out->event.ended.limit, e) < 0 ||
        json_get_u64(o, "lost_bytes", INT64_MAX, &out->event.ended.lost_bytes, e) < 0)
        return -1;
    if (!task_end_parse(why, &out->event.ended.why))
        return err_set(e, ERR_INVALID, "field 'why': '%.*s' is not known", STR_ARG(why));
    out->event.ended.code = (int)code;
    out->event.ended.signal = (int)signal;
    return 0;
}

static int read_progress(const struct json *o, struct arena *a, struct answer *out, struct err *e)
{
    struct str text = STR("");
    if (json_get_str(o, "text", 1000, &text, e) < 0 ||
        json_get_u64(o, "done", INT64_MAX / 100, &out->event.progress.done, e) < 0 ||
        json_get_u64(o, "total", INT64_MAX / 100, &out->event.progress.total, e) < 0)
        return -1;
    out->event.progress.text = (struct str){ arena_strndup(a, text.p, text.n), text.n };
    return 0;
}

static int read_task(const struct json *o, struct answer *out, struct err *e)
{
    struct str text;
    if (json_need_str(o, KEEPER_TASK_FIELD, 64, &text, e) < 0)
        return -1;
    return task_parse(text, &out->event.task, e);
}

static int read_kind(const struct json *o, struct arena *a, struct answer *out, struct err *e)
{
    switch (out->kind) {
    case KEEPER_EV_HELLO: return read_hello(o, out, e);
    case KEEPER_EV_NODE: return read_node(o, a, out, e);
    case KEEPER_EV_READY: out->event.kind = ENGINE_READY; return 0;
    case KEEPER_EV_STARTED: out->event.kind = ENGINE_STARTED; return read_task(o, out, e);
    case KEEPER_EV_PAUSED: out->event.kind = ENGINE_PAUSED; return read_task(o, out, e);
    case KEEPER_EV_RESUMED: out->event.kind = ENGINE_RESUMED; return read_task(o, out, e);
    case KEEPER_EV_FAILED:
        out->event.kind = ENGINE_FAILED;
        return read_task(o, out, e) < 0 ? -1 : read_failed(o, out, e);
    case KEEPER_EV_PROGRESS:
        out->event.kind = ENGINE_PROGRESS;
        return read_task(o, out, e) < 0 ? -1 : read_progress(o, a, out, e);
    case KEEPER_EV_ENDED:
        out->event.kind = ENGINE_ENDED;
        return read_task(o, out, e) < 0 ? -1 : read_ended(o, out, e);
    case KEEPER_EV_LEFTOVER:
    case KEEPER_EV_PONG: return 0;
    case KEEPER_EV_WALLS:
        out->walls.known = true;
        return json_get_bool(o, "there", &out->walls.there, e) < 0 ||
                       json_get_u64(o, "reloads", INT64_MAX, &out->walls.reloads, e) < 0
                 ? -1
                 : 0;
    case KEEPER_EVENT_COUNT: break;
    }
    abort();
}

int answer_read(struct str line, struct arena *a, struct answer *out, struct err *e)
{
    struct answer an = { 0 };
    struct str ev;
    AUTO(json_free_p) struct json_doc *d = json_read(line, e);
    if (!d)
        return -1;
    const struct json *o = json_root(d);
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "an object is needed");
    if (json_need_str(o, KEEPER_EVENT_FIELD, 32, &ev, e) < 0)
        return -1;
    if (!keeper_event_parse(ev, &an.kind))
        return err_set(e, ERR_INVALID, "event '%.*s' is not known", STR_ARG(ev));
    if (json_get_i64(o, "t_ms", 0, INT64_MAX, &an.event.t_ms, e) < 0 || read_kind(o, a, &an, e) < 0)
        return err_wrap(e, "event '%s'", keeper_event_name(an.kind));
    if (an.kind == KEEPER_EV_LEFTOVER)
        an.text = (struct str){ arena_strndup(a, line.p, line.n), line.n };
    *out = an;
    return 0;
}
