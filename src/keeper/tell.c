#include "keeper/tell.h"

#include "base/json.h"
#include "keeper/request.h"

#define EVENT_MAX 65536u

/* One event being written. */
struct telling {
    struct buf b;
    struct json_out w;
};

static void begin(struct telling *t, enum keeper_event ev, const char *task)
{
    *t = (struct telling){ .b = BUF(EVENT_MAX) };
    t->w = (struct json_out){ .b = &t->b };
    json_begin(&t->w, NULL, '{');
    json_put_str(&t->w, KEEPER_EVENT_FIELD, str_of(keeper_event_name(ev)));
    if (task)
        json_put_str(&t->w, KEEPER_TASK_FIELD, str_of(task));
}

static void end(const struct env *env, struct telling *t)
{
    json_end(&t->w, '}');
    buf_addc(&t->b, '\n');
    if (!t->b.full)
        env->tell(env->ctx, buf_str(&t->b));
    buf_free(&t->b);
}

void tell_hello(const struct env *env, const bool caps[ENGINE_CAP_COUNT], const char *note)
{
    struct telling t;
    begin(&t, KEEPER_EV_HELLO, NULL);
    json_put_str(&t.w, "version", STR(NS_VERSION));
    json_put_str(&t.w, "mode", str_of(keeper_mode_name(env->mode)));
    json_put_str(&t.w, "cgroup", str_of(cgroups_kind_name(cgroups_kind(env->cgroups))));
    json_put_bool(&t.w, "pings", true);
    json_begin(&t.w, "caps", '{');
    for (size_t i = 0; i < ENGINE_CAP_COUNT; i++)
        json_put_bool(&t.w, engine_cap_name((enum engine_cap)i), caps[i]);
    json_end(&t.w, '}');
    if (note)
        json_put_str(&t.w, "note", str_of(note));
    end(env, &t);
}

static void put_gpu(struct json_out *w, const struct gpu_info *g)
{
    json_begin(w, NULL, '{');
    json_put_u64(w, "index", g->index);
    json_put_str(w, "uuid", str_of(g->uuid));
    json_put_str(w, "name", str_of(g->name));
    json_put_str(w, "model", str_of(g->model));
    json_put_u64(w, "mem_mib", g->mem_mib);
    json_put_u64(w, "link_group", g->link_group);
    json_put_bool(w, "simulated", g->simulated);
    json_put_bool(w, "mig", g->mig);
    json_end(w, '}');
}

static void put_trouble(struct json_out *w, const char *key, const struct err *e)
{
    if (e->code == ERR_NONE)
        return;
    json_begin(w, key, '{');
    json_put_str(w, "code", str_of(err_info(e->code)->slug));
    json_put_str(w, "msg", str_of(e->msg));
    if (e->hint[0])
        json_put_str(w, "hint", str_of(e->hint));
    json_end(w, '}');
}

void tell_node(const struct env *env)
{
    const struct node_facts *f = &env->node;
    const char *clock_trouble = machine_clock_trouble(&f->machine);
    struct telling t;
    begin(&t, KEEPER_EV_NODE, NULL);
    json_put_str(&t.w, "name", str_of(f->name));
    json_put_str(&t.w, "host", str_of(f->machine.host));
    json_put_str(&t.w, "kernel", str_of(f->machine.kernel));
    json_put_str(&t.w, "boot_id", str_of(f->machine.boot_id));
    json_put_u64(&t.w, "cpu_milli", f->cpu_milli);
    json_put_u64(&t.w, "mem_mib", f->mem_mib);
    json_put_bool(&t.w, "wsl", f->machine.wsl);
    json_put_bool(&t.w, "simulated", f->simulated);
    json_put_str(&t.w, "driver", str_of(f->driver));
    json_begin(&t.w, "gpus", '[');
    for (uint32_t i = 0; i < f->gpus.n; i++)
        put_gpu(&t.w, &f->gpus.gpu[i]);
    json_end(&t.w, ']');
    put_trouble(&t.w, "gpu_trouble", &f->gpu_trouble);
    put_trouble(&t.w, "gpu_broken", &f->gpus.broken);
    put_trouble(&t.w, "no_network", &env->no_net);
    put_trouble(&t.w, "no_images", &env->no_images);
    if (clock_trouble)
        json_put_str(&t.w, "clock_trouble", str_of(clock_trouble));
    end(env, &t);
}

void tell_started(const struct env *env, const char *task, int64_t t_ms, int pid)
{
    struct telling t;
    begin(&t, KEEPER_EV_STARTED, task);
    json_put_i64(&t.w, "t_ms", t_ms);
    json_put_i64(&t.w, "pid", pid);
    end(env, &t);
}

void tell_failed(const struct env *env, const char *task, const struct err *e)
{
    struct telling t;
    begin(&t, KEEPER_EV_FAILED, task);
    json_put_str(&t.w, "code", str_of(err_info(e->code)->slug));
    json_put_str(&t.w, "msg", str_of(e->msg));
    if (e->hint[0])
        json_put_str(&t.w, "hint", str_of(e->hint));
    end(env, &t);
}

void tell_paused(const struct env *env, const char *task, bool paused, int64_t t_ms)
{
    struct telling t;
    begin(&t, paused ? KEEPER_EV_PAUSED : KEEPER_EV_RESUMED, task);
    json_put_i64(&t.w, "t_ms", t_ms);
    end(env, &t);
}

void tell_ended(const struct env *env, const char *task, const struct task_result *r)
{
    struct telling t;
    begin(&t, KEEPER_EV_ENDED, task);
    json_put_i64(&t.w, "t_ms", r->t_ms);
    json_put_i64(&t.w, "code", r->code);
    json_put_i64(&t.w, "signal", r->signal);
    json_put_str(&t.w, "why", str_of(task_end_name(r->why)));
    json_put_u64(&t.w, "cpu_ms", r->cpu_ms);
    json_put_u64(&t.w, "mem_peak_mib", r->mem_peak_mib);
    if (r->limit)
        json_put_u64(&t.w, "limit", r->limit);
    json_put_u64(&t.w, "lost_bytes", r->lost_bytes);
    end(env, &t);
}

void tell_ready(const struct env *env)
{
    struct telling t;
    begin(&t, KEEPER_EV_READY, NULL);
    end(env, &t);
}

void tell_pong(const struct env *env)
{
    struct telling t;
    begin(&t, KEEPER_EV_PONG, NULL);
    end(env, &t);
}

void tell_walls(const struct env *env)
{
    struct telling t;
    if (!env->net)
        return;
    struct net_walls n = net_walls(env->net);
    begin(&t, KEEPER_EV_WALLS, NULL);
    json_put_bool(&t.w, "there", n.there);
    json_put_u64(&t.w, "reloads", n.reloads);
    end(env, &t);
}

void tell_progress(const struct env *env, const char *task, const struct tell_progress *p)
{
    struct telling t;
    begin(&t, KEEPER_EV_PROGRESS, task);
    json_put_str(&t.w, "text", p->text);
    json_put_u64(&t.w, "done", p->done);
    json_put_u64(&t.w, "total", p->total);
    end(env, &t);
}

void tell_leftover(const struct env *env, const struct tell_leftover *l)
{
    struct telling t;
    begin(&t, KEEPER_EV_LEFTOVER, l->task);
    json_put_i64(&t.w, "pid", l->pid);
    json_put_u64(&t.w, "uid", l->uid);
    json_put_str(&t.w, "owner", str_of(l->owner));
    json_put_str(&t.w, "command", str_of(l->command));
    if (l->gpu)
        json_put_str(&t.w, "gpu", str_of(l->gpu));
    json_put_bool(&t.w, "ended", l->ended);
    end(env, &t);
}
