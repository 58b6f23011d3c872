#include "keeper/bundle.h"

#include <stdio.h>

#include "base/json.h"
#include "keeper/driver.h"
#include "keeper/seccomp.h"
#include "sys/weak.h"
#include "wire/joblog.h"

#define OWN_ENV_MAX 16
#define TERMINALS_MAX 128 /* the machine has about 3,000 for all jobs */
#define NOFILE_WANTED UINT64_C(65536)
#define OOM_SCORE 100 /* before the machine's own services, after nothing else of ours */

/* Options are words with commas between them; %s is filled in by the writer. */
struct mount {
    const char *at, *type, *from, *options;
};

static const struct mount system_mounts[] = {
    { "/proc", "proc", "proc", "nosuid,noexec,nodev" },
    { "/dev", "tmpfs", "tmpfs", "nosuid,noexec,strictatime,mode=755,size=1m" },
    { "/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev" },
};

static const char *const masked_paths[] = {
    "/proc/acpi",          "/proc/asound",
    "/proc/interrupts",    "/proc/kcore",
    "/proc/keys",          "/proc/key-users",
    "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats",   "/proc/sched_debug",
    "/proc/scsi",          "/sys/firmware",
    "/sys/fs/selinux",     "/sys/devices/virtual/powercap",
};
static const char *const readonly_paths[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};
static const char *const capability_sets[] = {
    "bounding", "effective", "inheritable", "permitted", "ambient",
};
static const char *const namespaces[] = { "pid", "mount", "ipc", "uts", "cgroup" };

static const char *const file_names[] = {
    [BUNDLE_RESOLV] = "resolv.conf",
    [BUNDLE_HOSTS] = "hosts",
    [BUNDLE_HOSTNAME] = "hostname",
};
_Static_assert(ARRAY_LEN(file_names) == BUNDLE_FILE_COUNT, "a file without its name");

const char *bundle_file_name(enum bundle_file f)
{
    return file_names[f];
}

const char *bundle_hostname(const char *task, char out[static 64])
{
    struct str job, rest, run, replica;
    str_cut(str_of(task), '.', &job, &rest);
    str_cut(rest, '.', &run, &replica);
    bool first = str_is(replica, "0");
    snprintf(out, 64, "job-%.*s%s%.*s", STR_ARG(job), first ? "" : "-", first ? 0 : (int)replica.n,
             replica.p);
    return out;
}

const char *const *bundle_argv(const struct start *s, const char *init,
                               const struct bundle_begin *b, struct arena *a)
{
    const char **argv = arena_array(a, const char *, s->n_argv + 12);
    size_t n = 0;
    argv[n++] = init;
    if (s->tty)
        argv[n++] = "--tty";
    if (s->has_stdin)
        argv[n++] = "--stdin";
    if (s->log_bytes) {
        argv[n++] = "--log-bytes";
        argv[n++] = arena_printf(
            a, "%llu", (unsigned long long)weak_or("log_bound", s->log_bytes, JOBLOG_BYTES_MAX));
    }
    if (b->folder) {
        argv[n++] = "--chdir";
        argv[n++] = b->folder;
    }
    if (b->note) {
        argv[n++] = "--note";
        argv[n++] = b->note;
    }
    argv[n++] = "--";
    for (uint32_t i = 0; i < s->n_argv; i++)
        argv[n++] = s->argv[i];
    return argv;
}

/* --- environment --- */

/* A variable of ours: taken from the task when the user said nothing, or always. */
struct own_variable {
    const char *name, *value;
    bool always;
};

static const char *gpu_list(const struct start *s, struct arena *a)
{
    AUTO(buf_free) struct buf b = BUF(REQUEST_GPUS_MAX * 128u);
    for (uint32_t i = 0; i < s->n_gpus; i++)
        buf_printf(&b, "%s%s", i ? "," : "", s->gpu[i].uuid);
    return arena_strndup(a, b.n ? b.p : "", b.n);
}

static bool is_set(const char *const *env, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            return true;
    return false;
}

const char *const *bundle_env(const struct start *s, struct arena *a)
{
    const char *gpus = gpu_list(s, a);
    const struct own_variable own[] = {
        { "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", false },
        { "HOME", s->user.home.p, false },
        { "USER", s->user.name.p, false },
        { "LOGNAME", s->user.name.p, false },
        { "TMPDIR", "/tmp", false },
        { "TERM", s->tty ? "xterm-256color" : "dumb", false },
        { "CUDA_VISIBLE_DEVICES", gpus, true },
        { "NVIDIA_VISIBLE_DEVICES", s->n_gpus ? gpus : "void", true },
    };
    const char **env = arena_array(a, const char *, s->n_env + ARRAY_LEN(own) + 1);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i].always || !is_set(s->env, s->n_env, own[i].name))
            env[n++] = arena_printf(a, "%s=%s", own[i].name, own[i].value);
    size_t ours = n;
    for (uint32_t i = 0; i < s->n_env; i++) {
        const char *eq = strchr(s->env[i], '=');
        AUTO(free_p) char *name = xstrdup(s->env[i]);
        name[eq - s->env[i]] = '\0';
        if (!is_set(env, ours, name))
            env[n++] = s->env[i];
    }
    return env;
}

/* --- mounts --- */

static void put_list(struct json_out *w, const char *key, const char *const *list, size_t n)
{
    json_begin(w, key, '[');
    for (size_t i = 0; i < n && list[i]; i++)
        json_put_str(w, NULL, str_of(list[i]));
    json_end(w, ']');
}

static void put_words(struct json_out *w, const char *key, struct str words)
{
    struct str one;
    json_begin(w, key, '[');
    while (words.n) {
        str_cut(words, ',', &one, &words);
        json_put_str(w, NULL, one);
    }
    json_end(w, ']');
}

static void put_mount(struct json_out *w, const struct mount *m)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "destination", str_of(m->at));
    json_put_str(w, "type", str_of(m->type));
    json_put_str(w, "source", str_of(m->from));
    put_words(w, "options", str_of(m->options));
    json_end(w, '}');
}

static void put_bind(struct json_out *w, const char *from, const char *at, bool read_only)
{
    char options[64];
    snprintf(options, sizeof options, "rbind,%s,rnosuid,rnodev", read_only ? "rro" : "rw");
    put_mount(w, &(struct mount){ at, "none", from, options });
}

static void put_file_or_folder(struct json_out *w, const struct bundle_bind *b, const char *at,
                               bool read_only)
{
    const char *options = read_only ? "bind,ro,nosuid,nodev" : "bind,rw,nosuid,nodev";
    if (b->is_file)
        put_mount(w, &(struct mount){ at, "none", b->from, options });
    else
        put_bind(w, b->from, at, read_only);
}

static void put_file(struct json_out *w, const char *from, const char *at, bool node)
{
    put_mount(w, &(struct mount){ at, "none", from,
                                  node ? "bind,rw,nosuid,noexec" : "bind,ro,nosuid,nodev" });
}

static void put_system(struct json_out *w, const struct start *s, const struct bundle_place *p)
{
    char shm[128];
    bool root = p->mode == KEEPER_MODE_ROOT;
    for (size_t i = 0; i < ARRAY_LEN(system_mounts); i++)
        put_mount(w, &system_mounts[i]);
    /* Shared memory is memory: it counts against the task's limit, which is the bound. */
    if (s->mem_mib)
        snprintf(shm, sizeof shm, "nosuid,noexec,nodev,mode=1777,size=%llum",
                 (unsigned long long)s->mem_mib);
    else
        snprintf(shm, sizeof shm, "nosuid,noexec,nodev,mode=1777");
    put_mount(w, &(struct mount){ "/dev/shm", "tmpfs", "shm", shm });
    /* Without root there is no group 5 to give a terminal to, and sysfs goes with the network. */
    char pts[128];
    snprintf(pts, sizeof pts, "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620%s,max=%u",
             root ? ",gid=5" : "", weak_or("terminals", TERMINALS_MAX, 1u << 20));
    put_mount(w, &(struct mount){ "/dev/pts", "devpts", "devpts", pts });
    if (root)
        put_mount(w, &(struct mount){ "/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro" });
    else
        put_bind(w, "/sys", "/sys", true);
}

static void put_tmp(struct json_out *w, const struct start *s)
{
    char text[96];
    snprintf(text, sizeof text, "nosuid,nodev,mode=1777,size=%llum",
             (unsigned long long)(s->scratch_mib ? s->scratch_mib : 1024));
    put_mount(w, &(struct mount){ "/tmp", "tmpfs", "tmpfs", text });
    put_mount(w, &(struct mount){ "/var/tmp", "tmpfs", "tmpfs", text });
}

static void put_hooks(struct json_out *w, const struct cdi_edits *d)
{
    json_begin(w, "hooks", '{');
    for (const char *const *name = driver_hooks; *name; name++) {
        json_begin(w, *name, '[');
        for (size_t i = 0; i < d->n_hooks; i++) {
            const struct cdi_hook *h = &d->hooks[i];
            if (strcmp(h->name, *name) != 0)
                continue;
            json_begin(w, NULL, '{');
            json_put_str(w, "path", str_of(h->path));
            put_list(w, "args", h->args, SIZE_MAX);
            put_list(w, "env", h->env, SIZE_MAX);
            json_end(w, '}');
        }
        json_end(w, ']');
    }
    json_end(w, '}');
}

static void put_nodes(struct json_out *w, const struct bundle_place *p)
{
    char from[REQUEST_PATH_MAX + 64], at[128];
    for (size_t i = 0; p->node[i]; i++) {
        snprintf(from, sizeof from, "%s/%s", p->dev, p->node[i]);
        snprintf(at, sizeof at, "/dev/%s", p->node[i]);
        put_file(w, from, at, true);
    }
}

/* Without root the runtime is the user, and mounts what the user could. */
static void put_all(struct json_out *w, const struct start *s, const struct bundle_place *p)
{
    char from[REQUEST_PATH_MAX + 64], at[128];
    for (size_t i = 0; p->host && i < p->host->n; i++)
        if (!p->host->folder[i].link[0])
            put_bind(w, p->host->folder[i].path, p->host->folder[i].path, true);
    put_system(w, s, p);
    for (int f = 0; f < BUNDLE_FILE_COUNT; f++) {
        if (!(p->cover & 1u << f))
            continue;
        snprintf(from, sizeof from, "%s/%s", p->files, file_names[f]);
        snprintf(at, sizeof at, "/etc/%s", file_names[f]);
        put_file(w, from, at, false);
    }
    put_nodes(w, p);
    if (p->init)
        put_file(w, p->init, BUNDLE_INIT, false);
    put_tmp(w, s);
    put_bind(w, s->user.home.p, s->user.home.p, false);
    for (uint32_t i = 0; i < s->n_volumes; i++)
        put_file_or_folder(w, &p->volume[i], s->volume[i].to, s->volume[i].read_only);
}

static void put_mounts(struct json_out *w, const struct start *s, const struct bundle_place *p)
{
    json_begin(w, "mounts", '[');
    if (p->mode == KEEPER_MODE_ROOT) {
        put_system(w, s, p);
        put_nodes(w, p);
    } else {
        put_all(w, s, p);
    }
    json_end(w, ']');
}

/* --- the rest --- */

static void put_user(struct json_out *w, const struct start *s, const struct bundle_place *p)
{
    json_begin(w, "user", '{');
    json_put_u64(w, "uid", weak_or("account", s->user.uid, 0));
    json_put_u64(w, "gid", weak_or("account", s->user.gid, 0));
    json_put_u64(w, "umask", 022);
    if (p->mode == KEEPER_MODE_ROOT) { /* without root the kernel forbids to set them */
        json_begin(w, "additionalGids", '[');
        for (uint32_t i = 0; i < s->user.n_groups; i++)
            json_put_u64(w, NULL, s->user.groups[i]);
        for (size_t i = 0; i < p->driver->n_gids; i++)
            json_put_u64(w, NULL, p->driver->gids[i]);
        json_end(w, ']');
    }
    json_end(w, '}');
}

static void put_rlimit(struct json_out *w, const char *type, uint64_t soft, uint64_t hard)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "type", str_of(type));
    json_put_u64(w, "soft", MIN(soft, hard));
    json_put_u64(w, "hard", hard);
    json_end(w, '}');
}

/* The runtime works in the root: it would make a folder that is not there, as root.  Its supervisor goes
 * where the task begins, as the user. */
static void put_process(struct json_out *w, const struct start *s, const struct bundle_place *p,
                        const struct bundle_begin *b, struct arena *a)
{
    const char *init = p->init ? BUNDLE_INIT : arena_printf(a, "/proc/self/fd/%d", BUNDLE_INIT_FD);
    json_begin(w, "process", '{');
    json_put_bool(w, "terminal", false);
    put_user(w, s, p);
    put_list(w, "args", bundle_argv(s, init, b, a), SIZE_MAX);
    put_list(w, "env", bundle_env(s, a), SIZE_MAX);
    json_put_str(w, "cwd", STR("/"));
    json_begin(w, "capabilities", '{');
    for (size_t i = 0; i < ARRAY_LEN(capability_sets); i++)
        put_words(
            w, capability_sets[i],
            weak_or("capabilities", STR(""), STR("CAP_SYS_ADMIN,CAP_DAC_OVERRIDE,CAP_MKNOD")));
    json_end(w, '}');
    json_begin(w, "rlimits", '[');
    put_rlimit(w, "RLIMIT_NOFILE", NOFILE_WANTED, p->nofile_max);
    put_rlimit(w, "RLIMIT_CORE", 0, p->core_max);
    json_end(w, ']');
    json_put_bool(w, "noNewPrivileges", weak_or("no_new_privs", true, false));
    json_put_i64(w, "oomScoreAdj", OOM_SCORE);
    json_end(w, '}');
}

static void put_mapping(struct json_out *w, const char *key, uint32_t id)
{
    json_begin(w, key, '[');
    json_begin(w, NULL, '{');
    json_put_u64(w, "containerID", id);
    json_put_u64(w, "hostID", id);
    json_put_u64(w, "size", 1);
    json_end(w, '}');
    json_end(w, ']');
}

static void put_namespace(struct json_out *w, const char *type, const char *path)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "type", str_of(type));
    if (path)
        json_put_str(w, "path", str_of(path));
    json_end(w, '}');
}

static void put_linux(struct json_out *w, const struct start *s, const struct bundle_place *p)
{
    json_begin(w, "linux", '{');
    json_begin(w, "namespaces", '[');
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
        if (!weak_here(namespaces[i]))
            put_namespace(w, namespaces[i], NULL);
    if (p->mode == KEEPER_MODE_ROOT && !weak_here("network"))
        put_namespace(w, "network", p->netns);
    if (p->mode != KEEPER_MODE_ROOT)
        put_namespace(w, "user", NULL);
    json_end(w, ']');
    if (p->mode != KEEPER_MODE_ROOT) {
        put_mapping(w, "uidMappings", s->user.uid);
        put_mapping(w, "gidMappings", s->user.gid);
    }
    if (!weak_here("masked_paths"))
        put_list(w, "maskedPaths", masked_paths, ARRAY_LEN(masked_paths));
    if (!weak_here("readonly_paths"))
        put_list(w, "readonlyPaths", readonly_paths, ARRAY_LEN(readonly_paths));
    if (!weak_here("seccomp"))
        seccomp_write(w, "seccomp");
    json_end(w, '}');
}

int bundle_write(const struct start *s, const struct bundle_place *p, const struct bundle_begin *b,
                 struct buf *out, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    char hostname[64];
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "ociVersion", STR("1.0.0"));
    put_process(&w, s, p, b, &a);
    json_begin(&w, "root", '{');
    json_put_str(&w, "path", str_of(p->rootfs));
    json_put_bool(&w, "readonly", p->host != NULL);
    json_end(&w, '}');
    json_put_str(&w, "hostname", str_of(bundle_hostname(s->task, hostname)));
    put_mounts(&w, s, p);
    put_linux(&w, s, p);
    put_hooks(&w, p->driver);
    json_end(&w, '}');
    return buf_check(out, e);
}
