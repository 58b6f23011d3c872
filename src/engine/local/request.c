#include "engine/local/request.h"

#include "base/json.h"

static void begin(struct json_out *w, enum keeper_verb v, struct task_id t)
{
    char text[64];
    json_begin(w, NULL, '{');
    json_put_str(w, KEEPER_VERB_FIELD, str_of(keeper_verb_name(v)));
    if (v != KEEPER_DO_SYNC && v != KEEPER_DO_PING)
        json_put_str(w, KEEPER_TASK_FIELD, str_of(task_format(t, text)));
}

static void end(struct json_out *w)
{
    json_end(w, '}');
    buf_addc(w->b, '\n');
}

static void put_user(struct json_out *w, const struct engine_user *u)
{
    json_begin(w, "user", '{');
    json_put_str(w, "name", u->name);
    json_put_u64(w, "uid", u->uid);
    json_put_u64(w, "gid", u->gid);
    json_begin(w, "groups", '[');
    for (uint32_t i = 0; i < u->n_groups; i++)
        json_put_u64(w, NULL, u->groups[i]);
    json_end(w, ']');
    json_put_str(w, "home", u->home);
    json_end(w, '}');
}

static void put_list(struct json_out *w, const char *key, const char *const *list,
                     const char *const *more)
{
    json_begin(w, key, '[');
    for (size_t i = 0; list && list[i]; i++)
        json_put_str(w, NULL, str_of(list[i]));
    for (size_t i = 0; more && more[i]; i++)
        json_put_str(w, NULL, str_of(more[i]));
    json_end(w, ']');
}

static void put_gpus(struct json_out *w, const struct slot *slot, const struct request_site *site)
{
    json_begin(w, "gpus", '[');
    for (uint32_t g = 0; g < GPUS_PER_NODE_MAX; g++) {
        if (!(slot->gpu_mask & (1u << g)))
            continue;
        json_begin(w, NULL, '{');
        json_put_u64(w, "index", g);
        json_put_str(w, "uuid", str_of(g < site->gpus ? site->gpu_uuid[g] : ""));
        json_put_u64(w, "milli", slot->milli);
        json_end(w, '}');
    }
    json_end(w, ']');
}

static void put_volumes(struct json_out *w, const struct spec *s)
{
    json_begin(w, "volumes", '[');
    for (uint32_t i = 0; i < s->n_volumes; i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "from", s->volume[i].from);
        json_put_str(w, "to", s->volume[i].to);
        json_put_bool(w, "ro", s->volume[i].read_only);
        json_end(w, '}');
    }
    json_end(w, ']');
}

void request_start(const struct engine_start *s, const struct request_site *site, struct buf *out)
{
    struct json_out w = { .b = out };
    const struct spec *spec = s->spec;
    begin(&w, KEEPER_DO_START, s->task);
    json_put_str(&w, "tenant", s->tenant);
    put_user(&w, &s->user);
    if (s->home_else.n)
        json_put_str(&w, "home_else", s->home_else);
    put_list(&w, "argv", spec->argv, NULL);
    put_list(&w, "env", spec->env, s->env);
    if (spec->workdir.n)
        json_put_str(&w, "workdir", spec->workdir);
    if (spec->cwd.n)
        json_put_str(&w, "cwd", spec->cwd);
    json_put_str(&w, "image", spec->image);
    json_put_str(&w, "network", str_of(spec_network_name(spec->network)));
    json_put_bool(&w, "tty", spec->tty);
    if (spec->has_stdin)
        json_put_bool(&w, "stdin", true);
    json_put_u64(&w, "cpu_milli", spec->request.cpu_milli);
    json_put_u64(&w, "mem_mib", spec->request.mem_mib);
    json_put_u64(&w, "pids_max", site->pids_max);
    json_put_u64(&w, "scratch_mib", spec->scratch_mib ? spec->scratch_mib : site->scratch_mib);
    json_put_u64(&w, "log_bytes", site->log_bytes);
    json_put_i64(&w, "max_time_ms", s->max_time_ms);
    json_put_i64(&w, "grace_ms", spec->grace_ms);
    put_gpus(&w, &s->slots[s->task.replica], site);
    put_volumes(&w, spec);
    if (site->volumes_allow)
        put_list(&w, "volumes_allow", site->volumes_allow, NULL);
    if (site->volumes_deny)
        put_list(&w, "volumes_deny", site->volumes_deny, NULL);
    end(&w);
}

void request_simple(enum keeper_verb v, struct task_id t, struct buf *out)
{
    struct json_out w = { .b = out };
    begin(&w, v, t);
    end(&w);
}

void request_stop(struct task_id t, int64_t grace_ms, enum task_end why, struct buf *out)
{
    struct json_out w = { .b = out };
    begin(&w, KEEPER_DO_STOP, t);
    json_put_i64(&w, "grace_ms", grace_ms);
    json_put_str(&w, "why", str_of(task_end_name(why)));
    end(&w);
}

void request_signal(struct task_id t, int signo, struct buf *out)
{
    struct json_out w = { .b = out };
    begin(&w, KEEPER_DO_SIGNAL, t);
    json_put_i64(&w, "signal", signo);
    end(&w);
}
