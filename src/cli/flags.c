#include "cli/flags.h"

#include <stdio.h>

#include "base/date.h"
#include "base/parse.h"
#include "cli/when.h"
#include "sys/clock.h"

#define NAME_BYTES 253
#define PLAIN_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void put_text(struct json_out *w, const char *key, const char *text)
{
    if (text)
        json_put_str(w, key, str_of(text));
}

/* Digits as a number; anything else ("500m") as it is, for the server to judge. */
static void put_amount(struct json_out *w, const char *key, const char *text)
{
    uint64_t v;
    struct err why;
    if (text && parse_u64(str_of(text), INT64_MAX, &v, &why) == 0)
        json_put_u64(w, key, v);
    else
        put_text(w, key, text);
}

static int put_count(struct json_out *w, const char *key, const char *text, struct err *e)
{
    uint64_t v;
    if (!text)
        return 0;
    if (parse_u64(str_of(text), 1000000, &v, e) < 0)
        return err_wrap(e, "--%s", key);
    json_put_u64(w, key, v);
    return 0;
}

/* 2 GPUs, or 0.5 of one: the other of the two is taken away from what lies below. */
static int put_gpus(struct json_out *w, const char *text, struct err *e)
{
    uint64_t milli;
    if (!text)
        return 0;
    if (parse_milli(str_of(text), 1000000, &milli, e) < 0)
        return err_wrap(e, "--gpus");
    if (milli % 1000 && milli > 1000) {
        err_set(e, ERR_INVALID, "--gpus: %s is neither whole GPUs nor a part of one", text);
        return err_hint(e, "write 2 for two GPUs or 0.5 for half of one");
    }
    if (milli % 1000) {
        json_put_f64(w, "gpu_share", (double)milli / 1000, 3);
        json_put_null(w, "gpus");
    } else {
        json_put_u64(w, "gpus", milli / 1000);
        json_put_null(w, "gpu_share");
    }
    return 0;
}

/* NAME=COUNT, or NAME for one. */
static int put_devices(struct json_out *w, const struct opt_list *list, struct err *e)
{
    if (list->n == 0)
        return 0;
    json_begin(w, "devices", '{');
    for (size_t i = 0; i < list->n; i++) {
        struct str name, count;
        uint64_t n = 1;
        bool counted = str_cut(str_of(list->item[i]), '=', &name, &count);
        char key[NAME_BYTES + 1] = { 0 };
        if (name.n == 0 || name.n > NAME_BYTES ||
            (counted && parse_u64(count, UINT16_MAX, &n, e) < 0) || n == 0) {
            err_set(e, ERR_INVALID, "--device: '%s' is not NAME=COUNT", list->item[i]);
            return err_hint(e, "e.g. --device nvidia.com/mig-1g.5gb=1");
        }
        memcpy(key, name.p, name.n);
        json_put_u64(w, key, n);
    }
    json_end(w, '}');
    return 0;
}

static int put_resources(const struct flags *f, struct json_out *w, struct err *e)
{
    if (!f->gpus && !f->gpu_type && !f->gpu_mem && !f->cpus && !f->mem && !f->scratch &&
        f->devices.n == 0)
        return 0;
    json_begin(w, "resources", '{');
    if (put_gpus(w, f->gpus, e) < 0)
        return -1;
    put_text(w, "gpu_type", f->gpu_type);
    put_text(w, "gpu_mem", f->gpu_mem);
    if (put_devices(w, &f->devices, e) < 0)
        return -1;
    put_amount(w, "cpus", f->cpus);
    put_text(w, "mem", f->mem);
    put_text(w, "scratch", f->scratch);
    json_end(w, '}');
    return 0;
}

static void put_freeze(struct json_out *w, const char *text)
{
    struct str mode, signal;
    if (!text)
        return;
    str_cut(str_of(text), ':', &mode, &signal);
    json_begin(w, "freeze", '{');
    json_put_str(w, "mode", mode);
    if (signal.n)
        json_put_str(w, "signal", signal);
    json_end(w, '}');
}

int flags_put_begin(struct json_out *w, const char *text, struct err *e)
{
    char date[32];
    struct clock wall = clock_wall();
    int64_t ms;
    if (!text)
        return 0;
    if (when_begin(text, clock_now_ms(&wall), &ms, e) < 0)
        return -1;
    json_put_str(w, "begin", str_of(date_format(ms, date)));
    return 0;
}

void flags_put_list(struct json_out *w, const char *key, const struct opt_list *list)
{
    if (list->n == 0)
        return;
    json_begin(w, key, '[');
    for (size_t i = 0; i < list->n; i++)
        json_put_str(w, NULL, str_of(list->item[i]));
    json_end(w, ']');
}

int flags_put(const struct flags *f, struct json_out *w, struct err *e)
{
    if (put_resources(f, w, e) < 0 || put_count(w, "replicas", f->replicas, e) < 0 ||
        put_count(w, "retries", f->retries, e) < 0)
        return -1;
    put_text(w, "name", f->name);
    put_text(w, "tenant", f->tenant);
    put_text(w, "profile", f->profile);
    put_text(w, "image", f->image);
    put_text(w, "workdir", f->workdir);
    put_text(w, "cwd", f->cwd);
    put_text(w, "priority", f->priority);
    put_text(w, "max_time", f->time);
    put_text(w, "array", f->array);
    put_text(w, "network", f->network);
    put_text(w, "reservation", f->reservation);
    put_freeze(w, f->freeze);
    if (f->hold)
        json_put_bool(w, "held", true);
    if (f->tty) {
        json_put_str(w, "kind", STR("shell"));
        json_put_bool(w, "tty", true);
    }
    if (f->stdin_open && !f->tty)
        json_put_bool(w, "stdin", true);
    flags_put_list(w, "volumes", &f->volumes);
    flags_put_list(w, "after", &f->after);
    if (flags_put_begin(w, f->begin, e) < 0)
        return err_wrap(e, "--begin");
    return 0;
}

/* ---- variables ---- */

static const char *lookup(const char *const *env, struct str key)
{
    for (; *env; env++)
        if (strncmp(*env, key.p, key.n) == 0 && (*env)[key.n] == '=')
            return *env + key.n + 1;
    return NULL;
}

static bool is_named(const struct flags *f, struct str key)
{
    struct str name, value;
    for (size_t i = 0; i < f->env.n; i++) {
        str_cut(str_of(f->env.item[i]), '=', &name, &value);
        if (str_eq(name, key))
            return true;
    }
    return false;
}

/* Of this session or this login only, or secret: wrong inside a job. */
static bool is_private(struct str key)
{
    static const char *const names[] = { "NIGHTSHIFT_TOKEN",
                                         "NIGHTSHIFT_SERVER",
                                         "XDG_RUNTIME_DIR",
                                         "DBUS_SESSION_BUS_ADDRESS",
                                         "SSH_AUTH_SOCK",
                                         "SSH_TTY",
                                         "_",
                                         "PWD",
                                         "OLDPWD",
                                         "SHLVL",
                                         "TMUX",
                                         "STY",
                                         "COLUMNS",
                                         "LINES",
                                         "HOSTNAME" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_is(key, names[i]))
            return true;
    return false;
}

static bool is_default(struct str key, bool tty)
{
    static const char *const names[] = {
        "LANG", "LANGUAGE", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "TZ"
    };
    if ((key.n > 3 && memcmp(key.p, "LC_", 3) == 0) || (tty && str_is(key, "TERM")))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_is(key, names[i]))
            return true;
    return false;
}

/* An active Python environment means its own `python`: that is PATH's business. */
static void put_python_path(const struct flags *f, const char *const *env, struct json_out *w)
{
    const char *venv = lookup(env, STR("VIRTUAL_ENV")), *conda = lookup(env, STR("CONDA_PREFIX"));
    const char *home = venv && venv[0] ? venv : conda;
    AUTO(buf_free) struct buf path = BUF(8192);
    bool own_image = f->image && strcmp(f->image, "host") != 0;
    if (!home || !home[0] || own_image || is_named(f, STR("PATH")))
        return;
    buf_printf(&path, "%s/bin:%s", home, PLAIN_PATH);
    if (!path.full)
        json_put_str(w, "PATH", buf_str(&path));
}

static void put_inherited(const struct flags *f, const char *const *env, struct json_out *w)
{
    AUTO(buf_free) struct buf name = BUF(4096);
    for (; *env; env++) {
        struct str key, value;
        bool pair = str_cut(str_of(*env), '=', &key, &value) && key.n;
        bool wanted = f->env_all ? !is_private(key) : is_default(key, f->tty);
        if (!pair || !wanted || is_named(f, key))
            continue;
        buf_truncate(&name, 0);
        buf_add(&name, key);
        json_put_str(w, buf_str(&name).p, value);
    }
}

static int put_named(const struct flags *f, const char *const *env, struct json_out *w,
                     struct err *e)
{
    AUTO(buf_free) struct buf name = BUF(4096);
    for (size_t i = 0; i < f->env.n; i++) {
        struct str key, value;
        bool pair = str_cut(str_of(f->env.item[i]), '=', &key, &value);
        const char *here = pair ? value.p : lookup(env, key);
        if (key.n == 0 || !here) {
            err_set(e, ERR_INVALID, "--env: %s%s", key.n ? "there is no variable " : "no name in ",
                    f->env.item[i]);
            return err_hint(e, "write --env NAME=value, or --env NAME for one that is set here");
        }
        buf_truncate(&name, 0);
        buf_add(&name, key);
        json_put_str(w, buf_str(&name).p, str_of(here));
    }
    return 0;
}

int flags_put_env(const struct flags *f, const char *const *env, bool defaults, struct json_out *w,
                  struct err *e)
{
    if (!defaults && !f->env_all && f->env.n == 0)
        return 0;
    json_begin(w, "env", '{');
    if (defaults || f->env_all)
        put_inherited(f, env, w);
    if (defaults && !f->env_all)
        put_python_path(f, env, w);
    if (put_named(f, env, w, e) < 0)
        return -1;
    json_end(w, '}');
    return 0;
}

/* ---- a name ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static bool is_interpreter(const char *name)
{
    static const char *const words[] = { "python", "bash",     "sh",        "perl",
                                         "ruby",   "node",     "Rscript",   "env",
                                         "julia",  "torchrun", "accelerate" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strncmp(name, words[i], strlen(words[i])) == 0 &&
            strspn(name + strlen(words[i]), "0123456789.") == strlen(name + strlen(words[i])))
            return true;
    return false;
}

void flags_default_name(const char *const *argv, size_t n, char out[static 64])
{
    const char *name = n ? base_name(argv[0]) : "job";
    if (is_interpreter(name) && n > 1 && argv[1][0] != '-' && argv[1][0])
        name = base_name(argv[1]);
    size_t i = 0;
    for (; name[i] && i < 63; i++) {
        char c = name[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
        out[i] = fine ? c : '-';
    }
    out[i] = '\0';
}
