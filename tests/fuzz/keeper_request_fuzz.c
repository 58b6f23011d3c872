/* A request of any bytes: what was read is in bounds and can be acted on without another look. */
#include "keeper/request.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static bool is_plain_path(const char *p)
{
    return p[0] == '/' && !strstr(p, "/../") && strlen(p) <= REQUEST_PATH_MAX;
}

static void look_at_folders(const char *const *list)
{
    size_t n = 0;
    for (; list && list[n]; n++)
        must(is_plain_path(list[n]));
    must(n <= REQUEST_FOLDERS_MAX);
}

static void look_at_start(const struct start *s)
{
    must(is_plain_path(s->user.home.p) && is_plain_path(s->workdir) && s->image[0]);
    must(s->n_argv <= REQUEST_ARGS_MAX && !s->argv[s->n_argv] && !s->env[s->n_env]);
    must(s->n_argv > 0 || strcmp(s->image, "host") != 0);
    must(!strchr(s->tenant, '/') && s->tenant[0] && !strchr(s->user.name.p, '/'));
    for (uint32_t i = 0; i < s->n_env; i++)
        must(strchr(s->env[i], '=') > s->env[i]);
    must(s->n_volumes <= REQUEST_VOLUMES_MAX && s->n_gpus <= REQUEST_GPUS_MAX);
    for (uint32_t i = 0; i < s->n_volumes; i++) {
        must(is_plain_path(s->volume[i].from) && is_plain_path(s->volume[i].to));
        must(strncmp(s->volume[i].from, "/proc/", 6) != 0 && strcmp(s->volume[i].to, "/dev") != 0);
    }
    look_at_folders(s->volumes_allow);
    look_at_folders(s->volumes_deny);
    must(!s->home_else || is_plain_path(s->home_else));
    for (uint32_t i = 0; i < s->n_gpus; i++)
        must(s->gpu[i].milli <= 1000 && s->gpu[i].uuid[0]);
    must(s->mem_mib << 20 >> 20 == s->mem_mib);
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { .limit = 64u << 20 };
    struct str line = { (const char *)data, size };
    struct keeper_request r;
    struct err e = { 0 };
    if (size > KEEPER_LINE_MAX)
        return 0;
    const char *task = request_start_task(line, &a);
    if (request_read(line, &a, &r, &e) < 0) {
        must(e.msg[0] && e.code != ERR_NONE && !strchr(e.msg, '\n'));
        return 0;
    }
    must(r.verb < KEEPER_VERB_COUNT &&
         (r.verb == KEEPER_DO_SYNC || r.verb == KEEPER_DO_PING) == !r.task);
    must(!r.task || task_name_valid(str_of(r.task)));
    must((r.verb == KEEPER_DO_START) == (r.start != NULL) && !task == !r.start);
    must(!task || strcmp(r.task, task) == 0);
    must(r.verb != KEEPER_DO_SIGNAL || (r.signo > 0 && r.signo <= 64));
    if (r.start)
        look_at_start(r.start);
    return 0;
}
