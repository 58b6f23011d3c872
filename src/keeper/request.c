#include "keeper/request.h"

#include "base/json.h"
#include "sys/weak.h"
#include "wire/joblog.h"

#define WORD_MAX 64
#define UUID_MAX 80
#define TEXT_MAX (128u << 10) /* the kernel's bound of one argument or variable */
#define ID_MAX 4294967294u    /* the largest number means "none" to the kernel */
#define DAY_MS UINT64_C(86400000)
#define GRACE_MS 10000 /* when nothing is said about it */

/* Nothing of the user's may cover these inside, and none of these is lent out from outside. */
static const char *const reserved[] = { "/proc", "/sys", "/dev", "/.nightshift" };

static const char *const start_keys[] = {
    "do",          "task",    "tenant",   "user",          "argv",         "env",
    "workdir",     "cwd",     "stdin",    "image",         "network",      "tty",
    "cpu_milli",   "mem_mib", "pids_max", "scratch_mib",   "log_bytes",    "grace_ms",
    "max_time_ms", "gpus",    "volumes",  "volumes_allow", "volumes_deny", "home_else",
};
static const char *const user_keys[] = { "name", "uid", "gid", "groups", "home" };
static const char *const gpu_keys[] = { "index", "uuid", "milli" };
static const char *const volume_keys[] = { "from", "to", "ro" };

/* What each other verb may carry. */
static const char *const sync_keys[] = { "do" };
static const char *const task_keys[] = { "do", "task" };
static const char *const stop_keys[] = { "do", "task", "grace_ms", "why" };
static const char *const signal_keys[] = { "do", "task", "signal" };
static const struct {
    const char *const *keys;
    size_t n;
} verb_keys[] = {
#define KEYS(list)                                                                                 \
    {                                                                                              \
        (list), ARRAY_LEN(list)                                                                    \
    }
    [KEEPER_DO_SYNC] = KEYS(sync_keys),   [KEEPER_DO_START] = KEYS(start_keys),
    [KEEPER_DO_STOP] = KEYS(stop_keys),   [KEEPER_DO_SIGNAL] = KEYS(signal_keys),
    [KEEPER_DO_PAUSE] = KEYS(task_keys),  [KEEPER_DO_RESUME] = KEYS(task_keys),
    [KEEPER_DO_FORGET] = KEYS(task_keys), [KEEPER_DO_PURGE] = KEYS(task_keys),
    [KEEPER_DO_PING] = KEYS(sync_keys),
#undef KEYS
};
_Static_assert(ARRAY_LEN(verb_keys) == KEEPER_VERB_COUNT, "a verb was added without its fields");

static const struct number {
    const char *key;
    uint64_t min, max; /* 0 is always allowed: no limit, or the default */
    size_t offset;
} numbers[] = {
    { "cpu_milli", 1, 100000000, offsetof(struct start, cpu_milli) },
    { "mem_mib", 1, UINT64_C(1) << 30, offsetof(struct start, mem_mib) },
    { "pids_max", 1, 4194304, offsetof(struct start, pids_max) },
    { "scratch_mib", 1, UINT64_C(1) << 30, offsetof(struct start, scratch_mib) },
    { "log_bytes", JOBLOG_BYTES_MIN, JOBLOG_BYTES_MAX, offsetof(struct start, log_bytes) },
    { "max_time_ms", 1, 3660 * DAY_MS, offsetof(struct start, max_time_ms) },
    { "grace_ms", 1, 7 * DAY_MS, offsetof(struct start, grace_ms) },
};

#define X(id, name, help) [NETWORK_##id] = (name),
static const char *const network_names[] = { NETWORKS(X) };
#undef X

bool task_name_valid(struct str name)
{
    size_t digits = 0, points = 0;
    if (name.n > TASK_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        bool point = name.p[i] == '.';
        if (point ? digits == 0 : name.p[i] < '0' || name.p[i] > '9')
            return false;
        digits = point ? 0 : digits + 1;
        points += point;
    }
    return points == 2 && digits > 0;
}

static int wrong(const char *key, struct str got, const char *must, struct err *e)
{
    return err_set(e, ERR_INVALID, "field '%s': '%.*s' %s", key, (int)MIN(got.n, (size_t)80), got.p,
                   must);
}

static const char *keep(struct arena *a, struct str s)
{
    return arena_strndup(a, s.p, s.n);
}

static bool has_nul(struct str s)
{
    return s.n && memchr(s.p, '\0', s.n);
}

/* Letters, digits and - _ . @ +; what may be part of a path or a line of hosts. */
static bool is_name(struct str s)
{
    if (s.n == 0 || s.n > WORD_MAX || s.p[0] == '.' || s.p[0] == '-')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && !(c && strchr("-_.@+$", c)) && c < 128)
            return false;
    }
    return true;
}

static bool is_path(struct str s)
{
    struct str rest = { s.p + 1, s.n - 1 }, part;
    if (s.n == 0 || s.n > REQUEST_PATH_MAX || s.p[0] != '/')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 127)
            return false;
    while (rest.n) {
        str_cut(rest, '/', &part, &rest);
        if (str_is(part, ".") || str_is(part, ".."))
            return false;
    }
    return true;
}

static bool is_reserved(const char *path)
{
    struct str whole = str_of(path);
    if (weak_here("reserved"))
        return false;
    while (whole.n > 1 && (whole.p[0] == '/' && whole.p[1] == '/'))
        whole = (struct str){ whole.p + 1, whole.n - 1 };
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
        size_t n = strlen(reserved[i]);
        if (whole.n >= n && memcmp(whole.p, reserved[i], n) == 0 &&
            (whole.n == n || whole.p[n] == '/'))
            return true;
    }
    return strspn(whole.p, "/") == whole.n;
}

static int read_name(const struct json *o, const char *key, struct arena *a, const char **out,
                     struct err *e)
{
    struct str s;
    if (json_need_str(o, key, TEXT_MAX, &s, e) < 0)
        return -1;
    if (!is_name(s))
        return wrong(key, s, "is not a name", e);
    *out = keep(a, s);
    return 0;
}

static int read_path(const struct json *o, const char *key, struct arena *a, const char **out,
                     struct err *e)
{
    struct str s;
    if (json_need_str(o, key, TEXT_MAX, &s, e) < 0)
        return -1;
    if (!is_path(s))
        return wrong(key, s, "is not an absolute path without . and ..", e);
    *out = keep(a, s);
    return 0;
}

static int read_task(const struct json *o, struct arena *a, const char **out, struct err *e)
{
    struct str s;
    if (json_need_str(o, KEEPER_TASK_FIELD, TEXT_MAX, &s, e) < 0)
        return -1;
    if (!task_name_valid(s))
        return wrong(KEEPER_TASK_FIELD, s, "is not a task such as 17.1.0", e);
    *out = keep(a, s);
    return 0;
}

/* The list under `key`, NULL when there is none; -1 when it is too long or no list. */
static int list_of(const struct json *o, const char *key, size_t max, const struct json **out,
                   struct err *e)
{
    const struct json *list = json_find(o, key);
    if (list && !json_is_array(list))
        return err_set(e, ERR_INVALID, "field '%s': must be a list", key);
    if (list && json_len(list) > max)
        return err_set(e, ERR_TOO_LARGE, "field '%s': %zu entries; at most %zu", key,
                       json_len(list), max);
    *out = list;
    return 0;
}

struct texts {
    const char *const *list; /* ends with NULL */
    uint32_t n;
};

static int read_texts(const struct json *o, const char *key, size_t max, struct arena *a,
                      struct texts *out, struct err *e)
{
    const struct json *list = NULL;
    if (list_of(o, key, max, &list, e) < 0)
        return -1;
    size_t n = list ? json_len(list) : 0, i = 0;
    const char **texts = arena_array(a, const char *, n + 1);
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        struct str s;
        if (json_as_str(v, TEXT_MAX, &s, e) < 0)
            return err_wrap(e, "field '%s'", key);
        if (has_nul(s))
            return err_set(e, ERR_INVALID, "field '%s': entry %zu holds a NUL byte", key, i);
        texts[i++] = keep(a, s);
    }
    *out = (struct texts){ texts, (uint32_t)n };
    return 0;
}

static int read_groups(const struct json *o, struct arena *a, struct engine_user *u, struct err *e)
{
    const struct json *list = NULL;
    if (list_of(o, "groups", REQUEST_GROUPS_MAX, &list, e) < 0)
        return -1;
    size_t n = list ? json_len(list) : 0, i = 0;
    uint32_t *groups = arena_array(a, uint32_t, n + 1);
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        uint64_t gid;
        if (json_as_u64(v, ID_MAX, &gid, e) < 0)
            return err_wrap(e, "field 'groups'");
        groups[i++] = (uint32_t)gid;
    }
    u->groups = groups;
    u->n_groups = (uint32_t)n;
    return 0;
}

static int read_user(const struct json *o, struct arena *a, struct engine_user *u, struct err *e)
{
    const struct json *v = json_find(o, "user");
    const char *name = "", *home = "";
    uint64_t uid = 0, gid = 0;
    if (!v || !json_is_object(v))
        return err_set(e, ERR_INVALID, "field 'user': must be an object");
    if (json_only(v, user_keys, ARRAY_LEN(user_keys), e) < 0 ||
        read_name(v, "name", a, &name, e) < 0 || json_need_u64(v, "uid", ID_MAX, &uid, e) < 0 ||
        json_need_u64(v, "gid", ID_MAX, &gid, e) < 0 || read_path(v, "home", a, &home, e) < 0 ||
        read_groups(v, a, u, e) < 0)
        return err_wrap(e, "field 'user'");
    u->name = str_of(name);
    u->home = str_of(home);
    u->uid = (uint32_t)uid;
    u->gid = (uint32_t)gid;
    if (is_reserved(home))
        return wrong("user.home", u->home, "cannot be a home folder", e);
    return 0;
}

static int read_gpu(const struct json *v, struct arena *a, struct start_gpu *g, struct err *e)
{
    uint64_t index, milli = 1000;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "must be an object");
    if (json_only(v, gpu_keys, ARRAY_LEN(gpu_keys), e) < 0 ||
        json_need_u64(v, "index", 1023, &index, e) < 0 ||
        json_get_u64(v, "milli", 1000, &milli, e) < 0 || read_name(v, "uuid", a, &g->uuid, e) < 0)
        return -1;
    g->index = (uint32_t)index;
    g->milli = (uint32_t)milli;
    return 0;
}

static int read_volume(const struct json *v, struct arena *a, struct start_volume *out,
                       struct err *e)
{
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "must be an object");
    if (json_only(v, volume_keys, ARRAY_LEN(volume_keys), e) < 0 ||
        read_path(v, "from", a, &out->from, e) < 0 || read_path(v, "to", a, &out->to, e) < 0 ||
        json_get_bool(v, "ro", &out->read_only, e) < 0)
        return -1;
    if (is_reserved(out->from))
        return wrong("from", str_of(out->from), "cannot be given to a job", e);
    if (is_reserved(out->to))
        return wrong("to", str_of(out->to), "is not a place for a volume", e);
    return 0;
}

/* Ends with NULL; lives in `a`. */
static int read_folders(const struct json *o, const char *key, struct arena *a,
                        const char *const **out, struct err *e)
{
    struct texts t = { 0 };
    if (read_texts(o, key, REQUEST_FOLDERS_MAX, a, &t, e) < 0)
        return -1;
    for (uint32_t i = 0; i < t.n; i++)
        if (!is_path(str_of(t.list[i])))
            return wrong(key, str_of(t.list[i]), "is not an absolute path without . and ..", e);
    *out = t.list;
    return 0;
}

static int read_lists(const struct json *o, struct arena *a, struct start *s, struct err *e)
{
    const struct json *gpus = NULL, *volumes = NULL;
    if (list_of(o, "gpus", REQUEST_GPUS_MAX, &gpus, e) < 0 ||
        list_of(o, "volumes", REQUEST_VOLUMES_MAX, &volumes, e) < 0)
        return -1;
    for (const struct json *v = gpus ? json_first(gpus) : NULL; v; v = json_next(gpus, v))
        if (read_gpu(v, a, &s->gpu[s->n_gpus++], e) < 0)
            return err_wrap(e, "field 'gpus'");
    for (const struct json *v = volumes ? json_first(volumes) : NULL; v; v = json_next(volumes, v))
        if (read_volume(v, a, &s->volume[s->n_volumes++], e) < 0)
            return err_wrap(e, "field 'volumes'");
    return read_folders(o, "volumes_allow", a, &s->volumes_allow, e) < 0
             ? -1
             : read_folders(o, "volumes_deny", a, &s->volumes_deny, e);
}

static int read_numbers(const struct json *o, struct start *s, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const struct number *f = &numbers[i];
        uint64_t *at = (uint64_t *)((char *)s + f->offset), v = *at;
        if (json_get_u64(o, f->key, f->max, &v, e) < 0)
            return -1;
        if (v != 0 && v < f->min)
            return err_set(e, ERR_INVALID, "field '%s': %llu is too small; at least %llu", f->key,
                           (unsigned long long)v, (unsigned long long)f->min);
        *at = v;
    }
    return 0;
}

static int read_network(const struct json *o, struct start *s, struct err *e)
{
    struct str word = STR("tenant");
    if (json_get_str(o, "network", TEXT_MAX, &word, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(network_names); i++) {
        if (!str_is(word, network_names[i]))
            continue;
        s->network = (enum spec_network)i;
        return 0;
    }
    return wrong("network", word, "is neither tenant nor none", e);
}

static int read_words(const struct json *o, struct arena *a, struct start *s, struct err *e)
{
    struct str image = STR("host");
    struct texts argv = { 0 }, env = { 0 };
    if (read_texts(o, "argv", REQUEST_ARGS_MAX, a, &argv, e) < 0 ||
        read_texts(o, "env", REQUEST_ENV_MAX, a, &env, e) < 0 ||
        json_get_str(o, "image", 1024, &image, e) < 0 || json_get_bool(o, "tty", &s->tty, e) < 0 ||
        json_get_bool(o, "stdin", &s->has_stdin, e) < 0)
        return -1;
    if (image.n == 0 || has_nul(image))
        return wrong("image", image, "is not an image", e);
    s->image = keep(a, image);
    s->argv = argv.list;
    s->n_argv = argv.n;
    s->env = env.list;
    s->n_env = env.n;
    /* An image may bring its own command. */
    if (str_is(image, "host") && (s->n_argv == 0 || s->argv[0][0] == '\0'))
        return err_set(e, ERR_INVALID, "field 'argv': there is no program to run");
    for (uint32_t i = 0; i < s->n_env; i++) {
        const char *eq = strchr(s->env[i], '=');
        if (!eq || eq == s->env[i])
            return wrong("env", str_of(s->env[i]), "is not of the form NAME=value", e);
    }
    return 0;
}

static int read_start(const struct json *o, struct arena *a, struct keeper_request *out,
                      struct err *e)
{
    struct start *s = arena_new(a, struct start);
    s->task = out->task;
    s->tenant = "";
    s->grace_ms = GRACE_MS;
    if (read_name(o, "tenant", a, &s->tenant, e) < 0 || read_user(o, a, &s->user, e) < 0 ||
        read_words(o, a, s, e) < 0 || read_numbers(o, s, e) < 0 || read_network(o, s, e) < 0 ||
        read_lists(o, a, s, e) < 0)
        return -1;
    s->workdir = s->user.home.p;
    s->workdir_given = json_find(o, "workdir") != NULL;
    if ((s->workdir_given && read_path(o, "workdir", a, &s->workdir, e) < 0) ||
        (json_find(o, "cwd") && read_path(o, "cwd", a, &s->cwd, e) < 0) ||
        (json_find(o, "home_else") && read_path(o, "home_else", a, &s->home_else, e) < 0))
        return -1;
    out->start = s;
    return 0;
}

static int read_stop(const struct json *o, struct keeper_request *out, struct err *e)
{
    struct str why = STR("stopped");
    out->grace_ms = GRACE_MS;
    if (json_get_u64(o, "grace_ms", 7 * DAY_MS, &out->grace_ms, e) < 0 ||
        json_get_str(o, "why", 64, &why, e) < 0)
        return -1;
    return task_end_parse(why, &out->why) ? 0 : wrong("why", why, "is no reason for an end", e);
}

static int read_signal(const struct json *o, struct keeper_request *out, struct err *e)
{
    uint64_t v;
    if (json_need_u64(o, "signal", 64, &v, e) < 0)
        return -1;
    if (v == 0)
        return err_set(e, ERR_INVALID, "field 'signal': 0 is no signal");
    out->signo = (int)v;
    return 0;
}

const char *request_start_task(struct str line, struct arena *a)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *doc = json_read(line, &e);
    const struct json *o = doc ? json_root(doc) : NULL;
    const char *task = NULL;
    struct str verb = { 0 };
    if (!o || !json_is_object(o) || json_need_str(o, KEEPER_VERB_FIELD, 64, &verb, &e) < 0 ||
        !str_is(verb, keeper_verb_name(KEEPER_DO_START)) || read_task(o, a, &task, &e) < 0)
        return NULL;
    return task;
}

int request_read(struct str line, struct arena *a, struct keeper_request *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(line, e);
    const struct json *o = doc ? json_root(doc) : NULL;
    struct keeper_request r = { 0 };
    struct str verb;
    if (!doc)
        return -1;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "a request is a JSON object");
    if (json_need_str(o, KEEPER_VERB_FIELD, 64, &verb, e) < 0)
        return -1;
    if (!keeper_verb_parse(verb, &r.verb))
        return wrong(KEEPER_VERB_FIELD, verb, "is not something the keeper does", e);
    bool of_all = r.verb == KEEPER_DO_SYNC || r.verb == KEEPER_DO_PING;
    if (json_only(o, verb_keys[r.verb].keys, verb_keys[r.verb].n, e) < 0 ||
        (!of_all && read_task(o, a, &r.task, e) < 0))
        return -1;
    int rc = 0;
    if (r.verb == KEEPER_DO_START)
        rc = read_start(o, a, &r, e);
    else if (r.verb == KEEPER_DO_STOP)
        rc = read_stop(o, &r, e);
    else if (r.verb == KEEPER_DO_SIGNAL)
        rc = read_signal(o, &r, e);
    if (rc == 0)
        *out = r;
    return rc;
}

static bool is_set(const struct start *s, const char *variable)
{
    size_t n = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < s->n_env; i++)
        if (strncmp(s->env[i], variable, n) == 0)
            return true;
    return false;
}

void start_add_env(struct start *s, const char *const *env, size_t n, struct arena *a)
{
    const char **all = arena_array(a, const char *, s->n_env + n + 1);
    uint32_t n_all = 0;
    for (size_t i = 0; i < s->n_env; i++)
        all[n_all++] = s->env[i];
    for (size_t i = 0; i < n; i++)
        if (strchr(env[i], '=') && !is_set(s, env[i]))
            all[n_all++] = arena_printf(a, "%s", env[i]);
    s->env = all;
    s->n_env = n_all;
}
