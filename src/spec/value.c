#include "spec/value.h"

#include <stdio.h>

#include "base/parse.h"
#include "spec/start.h"

#define MIB (UINT64_C(1) << 20)
#define MEM_MIB_MAX (64u << 20) /* 64 TiB */
#define CPU_MILLI_MAX 4096000u
#define TIME_LIMIT_MAX_MS (INT64_C(10) * 366 * 86400 * 1000)
#define ARG_MAX_BYTES (128u << 10)
#define PATH_BYTES ((size_t)4095)

static const struct {
    const char *name;
    int number;
} signals[] = {
    { "HUP", 1 },   { "INT", 2 },   { "QUIT", 3 },  { "ABRT", 6 },  { "KILL", 9 },  { "USR1", 10 },
    { "USR2", 12 }, { "TERM", 15 }, { "CONT", 18 }, { "STOP", 19 }, { "TSTP", 20 }, { "WINCH", 28 },
};

static const char *const freeze_words[] = {
#define X(id, name, help) name,
    FREEZE_MODES(X)
#undef X
};

static const char *const network_words[] = {
#define X(id, name, help) name,
    NETWORKS(X)
#undef X
};

static const char *const kind_words[] = {
#define X(id, name, help) name,
    SPEC_KINDS(X)
#undef X
};

const char *value_word(enum value_kind kind, size_t i)
{
    if (kind == VALUE_PRIORITY)
        return i < PRIO_COUNT ? priority_name((enum priority)i) : NULL;
    if (kind == VALUE_SCOPE)
        return i < SCOPE_COUNT ? scope_name((enum scope)i) : NULL;
    if (kind == VALUE_LAYOUT)
        return i < LAYOUT_COUNT ? layout_name((enum layout)i) : NULL;
    if (kind == VALUE_FREEZE)
        return i < ARRAY_LEN(freeze_words) ? freeze_words[i] : NULL;
    if (kind == VALUE_NETWORK)
        return i < ARRAY_LEN(network_words) ? network_words[i] : NULL;
    if (kind == VALUE_WORK_KIND)
        return i < ARRAY_LEN(kind_words) ? kind_words[i] : NULL;
    return NULL;
}

/* ---- strings ---- */

static int text_of(const struct json *v, size_t max, struct arena *a, struct str *out,
                   struct err *e)
{
    struct str s = { 0 };
    if (json_as_str(v, max, &s, e) < 0)
        return -1;
    if (memchr(s.p, '\0', s.n))
        return err_set(e, ERR_INVALID, "has a NUL byte in it");
    *out = (struct str){ arena_strndup(a, s.p, s.n), s.n };
    return 0;
}

static int read_name(const struct json *v, size_t max, struct arena *a, struct str *out,
                     struct err *e)
{
    struct str s = { 0 };
    if (text_of(v, max, a, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return err_set(e, ERR_INVALID, "has a control character in it");
    *out = s;
    return 0;
}

static int check_path(struct str s, struct err *e)
{
    if (s.n == 0 || s.p[0] != '/') {
        err_set(e, ERR_INVALID, "'%.*s' is not an absolute path", STR_ARG(s));
        return err_hint(e, "begin it with /");
    }
    if (s.n > PATH_BYTES) { /* of a volume in one text: each part of it */
        err_set(e, ERR_INVALID, "a path of %zu bytes; at most %zu are allowed", s.n, PATH_BYTES);
        return err_hint(e, "the machine has no longer ones");
    }
    for (struct str rest = { s.p + 1, s.n - 1 }, part; rest.n;) {
        str_cut(rest, '/', &part, &rest);
        if (str_is(part, ".."))
            return err_set(e, ERR_INVALID, "'%.*s': '..' is not allowed here", STR_ARG(s));
    }
    return 0;
}

static int read_path(const struct json *v, size_t max, struct arena *a, struct str *out,
                     struct err *e)
{
    struct str s = { 0 };
    if (read_name(v, max, a, &s, e) < 0 || check_path(s, e) < 0)
        return -1;
    *out = s;
    return 0;
}

/* ---- numbers ---- */

static int read_gpus(const struct json *v, uint64_t max, struct request *r, struct err *e)
{
    double n;
    if (json_as_f64(v, 0, (double)max, &n, e) < 0)
        return -1;
    uint64_t milli = (uint64_t)(n * 1000 + 0.5);
    if (milli >= GPU_MILLI && milli % GPU_MILLI) {
        err_set(e, ERR_INVALID, "must be a whole number, or less than 1 for a share");
        return err_hint(e, "a job has whole GPUs or a share of one, not both");
    }
    if (milli >= GPU_MILLI || milli == 0)
        r->gpus = (uint16_t)(milli / GPU_MILLI);
    else
        r->gpu_milli = (uint16_t)milli;
    return 0;
}

static int read_share(const struct json *v, uint16_t *out, struct err *e)
{
    double n;
    if (json_as_f64(v, 1e-3, 0.999, &n, e) < 0)
        return err_hint(e, "ask for \"gpus\": 1 to have a whole one");
    *out = (uint16_t)(n * 1000 + 0.5);
    return 0;
}

static int read_cpus(const struct json *v, uint32_t *out, struct err *e)
{
    uint64_t milli = 0;
    double n = 0;
    struct str s = { 0 };
    if (json_is_string(v)) {
        if (json_as_str(v, 64, &s, e) < 0 || parse_milli(s, CPU_MILLI_MAX, &milli, e) < 0)
            return -1;
    } else if (json_as_f64(v, 1e-3, CPU_MILLI_MAX / 1e3, &n, e) < 0) {
        return err_hint(e, "write it like 4, 0.5 or \"500m\"");
    } else {
        milli = (uint64_t)(n * 1000 + 0.5);
    }
    if (milli == 0)
        return err_set(e, ERR_INVALID, "must be above 0");
    *out = (uint32_t)milli;
    return 0;
}

static int read_size_mib(const struct json *v, uint32_t *out, struct err *e)
{
    uint64_t bytes = 0;
    struct str s = { 0 };
    if (!json_is_string(v)) {
        if (json_as_u64(v, MEM_MIB_MAX * MIB, &bytes, e) < 0)
            return -1;
    } else if (json_as_str(v, 64, &s, e) < 0 || parse_size_bytes(s, &bytes, e) < 0) {
        return -1;
    }
    if (bytes == 0 || bytes > MEM_MIB_MAX * MIB)
        return err_set(e, ERR_INVALID, "must be above 0 and at most 64Ti");
    if (bytes < MIB) {
        err_set(e, ERR_INVALID, "is less than one MiB");
        return err_hint(e, "a bare number is bytes; write 16Gi for 16 GiB");
    }
    *out = (uint32_t)((bytes + MIB - 1) / MIB);
    return 0;
}

static int read_duration(const struct json *v, int64_t *out, struct err *e)
{
    int64_t ms = 0;
    uint64_t seconds = 0;
    struct str s = { 0 };
    if (!json_is_string(v)) {
        if (json_as_u64(v, TIME_LIMIT_MAX_MS / 1000, &seconds, e) < 0)
            return -1;
        ms = (int64_t)seconds * 1000;
    } else if (json_as_str(v, 64, &s, e) < 0 || parse_duration_ms(s, &ms, e) < 0) {
        return -1;
    }
    if (ms > TIME_LIMIT_MAX_MS)
        return err_set(e, ERR_INVALID, "must be at most ten years");
    *out = ms;
    return 0;
}

static int read_count(const struct json *v, const struct spec_field *f, uint32_t *out,
                      struct err *e)
{
    uint64_t n;
    if (json_as_u64(v, f->max, &n, e) < 0)
        return -1;
    if (n == 0 && f->kind == VALUE_POSITIVE)
        return err_set(e, ERR_INVALID, "must be at least 1");
    *out = (uint32_t)n;
    return 0;
}

/* ---- words ---- */

static int read_word(enum value_kind kind, const struct json *v, size_t *out, struct err *e)
{
    struct str s = { 0 };
    if (json_as_str(v, 64, &s, e) < 0)
        return -1;
    for (size_t i = 0; value_word(kind, i); i++)
        if (str_is(s, value_word(kind, i))) {
            *out = i;
            return 0;
        }
    AUTO(buf_free) struct buf all = BUF(160);
    for (size_t i = 0; value_word(kind, i); i++)
        buf_printf(&all, "%s%s", i ? ", " : "", value_word(kind, i));
    err_set(e, ERR_INVALID, "'%.*s' is not known here", STR_ARG(s));
    return err_hint(e, "one of: %s", buf_str(&all).p);
}

static int read_signal(const struct json *v, int *out, struct err *e)
{
    struct str s = { 0 };
    uint64_t n = 0;
    if (!json_is_string(v)) {
        if (json_as_u64(v, 64, &n, e) < 0)
            return -1;
    } else if (json_as_str(v, 16, &s, e) < 0) {
        return -1;
    } else {
        n = (uint64_t)spec_signal(s);
    }
    if (n == 0) {
        err_set(e, ERR_INVALID, "is not the name of a signal");
        return err_hint(e, "e.g. \"USR1\", \"TERM\" or a number");
    }
    *out = (int)n;
    return 0;
}

int spec_signal(struct str name)
{
    if (name.n > 3 && memcmp(name.p, "SIG", 3) == 0)
        name = (struct str){ name.p + 3, name.n - 3 };
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (str_is(name, signals[i].name))
            return signals[i].number;
    return 0;
}

static const char *signal_word(int number) /* NULL when it has no name */
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (signals[i].number == number)
            return signals[i].name;
    return NULL;
}

/* ---- lists ---- */

/* A line for the shell. */
static int read_line(const struct json *v, struct arena *a, struct spec *s, struct err *e)
{
    const char **argv = arena_array(a, const char *, 4);
    struct str t = { 0 };
    if (text_of(v, ARG_MAX_BYTES, a, &t, e) < 0)
        return -1;
    if (t.n == 0)
        return err_set(e, ERR_INVALID, "is empty");
    argv[0] = "/bin/sh", argv[1] = "-c", argv[2] = t.p;
    s->argv = argv;
    s->n_args = 3;
    return 0;
}

static int read_command(const struct json *v, uint64_t max, struct arena *a, struct spec *s,
                        struct err *e)
{
    if (!json_is_array(v))
        return read_line(v, a, s, e);
    size_t n = json_len(v), i = 0;
    if (n > max)
        return err_set(e, ERR_INVALID, "has %zu parts; at most %llu are allowed", n,
                       (unsigned long long)max);
    const char **argv = arena_array(a, const char *, n + 1);
    for (const struct json *at = json_first(v); at; at = json_next(v, at), i++) {
        struct str t = { 0 };
        if (text_of(at, ARG_MAX_BYTES, a, &t, e) < 0)
            return err_wrap(e, "part %zu", i + 1);
        if (i == 0 && t.n == 0)
            n = 0;
        argv[i] = t.p;
    }
    if (n == 0)
        return err_set(e, ERR_INVALID, "is empty");
    s->argv = argv;
    s->n_args = (uint32_t)n;
    return 0;
}

static bool is_variable(struct str k)
{
    for (size_t i = 0; i < k.n; i++) {
        char c = k.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return k.n > 0 && k.n <= 256;
}

/* Text as it is; 4 and true as they stand. */
static int read_variable(const struct json_member *m, struct arena *a, const char **out,
                         struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(ARG_MAX_BYTES);
    struct json_out w = { .b = &b };
    struct str t = { 0 };
    if (!is_variable(m->key))
        return err_set(e, ERR_INVALID, "'%.*s' is not the name of a variable", STR_ARG(m->key));
    switch (json_kind(m->value)) {
    case JSON_STRING:
        if (text_of(m->value, ARG_MAX_BYTES, a, &t, e) < 0)
            return err_wrap(e, "'%.*s'", STR_ARG(m->key));
        break;
    case JSON_NUMBER:
    case JSON_BOOL:
        json_put(&w, NULL, m->value);
        t = buf_str(&b);
        break;
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT: return err_set(e, ERR_INVALID, "'%.*s' must be a string", STR_ARG(m->key));
    }
    *out = arena_printf(a, "%.*s=%.*s", STR_ARG(m->key), (int)t.n, t.p);
    return 0;
}

static int read_env(const struct json *v, uint64_t max, struct arena *a, struct spec *s,
                    struct err *e)
{
    size_t n = json_members(v), i = 0;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "must be an object, e.g. {\"LANG\": \"C\"}");
    if (n > max)
        return err_set(e, ERR_INVALID, "has more than %llu variables", (unsigned long long)max);
    const char **env = arena_array(a, const char *, n + 1);
    for (struct json_member m = { 0 }; json_next_member(v, &m); i++)
        if (read_variable(&m, a, &env[i], e) < 0)
            return -1;
    s->env = env;
    s->n_env = (uint32_t)n;
    return 0;
}

static int read_volume(const struct json *v, struct arena *a, struct spec_volume *out,
                       struct err *e)
{
    static const char *const keys[] = { "from", "to", "ro" };
    struct str t = { 0 }, rest;
    if (json_is_object(v)) {
        const struct json *from = json_find(v, "from"), *to = json_find(v, "to");
        if (json_only(v, keys, ARRAY_LEN(keys), e) < 0 ||
            json_get_bool(v, "ro", &out->read_only, e) < 0)
            return -1;
        if (!from)
            return err_set(e, ERR_INVALID, "field 'from' is missing");
        if (read_path(from, PATH_BYTES, a, &out->from, e) < 0 ||
            read_path(to ? to : from, PATH_BYTES, a, &out->to, e) < 0)
            return -1;
        return 0;
    }
    if (read_name(v, 2 * PATH_BYTES + 4, a, &t, e) < 0)
        return -1;
    str_cut(t, ':', &out->from, &rest);
    str_cut(rest, ':', &out->to, &rest);
    if ((str_is(out->to, "ro") || str_is(out->to, "rw")) && rest.n == 0) {
        rest = out->to;
        out->to = out->from;
    }
    if (out->to.n == 0)
        out->to = out->from;
    if (rest.n && !str_is(rest, "ro") && !str_is(rest, "rw")) {
        err_set(e, ERR_INVALID, "'%.*s' is neither ro nor rw", STR_ARG(rest));
        return err_hint(e, "write from:to or from:to:ro");
    }
    out->read_only = str_is(rest, "ro");
    return check_path(out->from, e) < 0 || check_path(out->to, e) < 0 ? -1 : 0;
}

static int read_volumes(const struct json *v, uint64_t max, struct arena *a, struct spec *s,
                        struct err *e)
{
    if (!json_is_array(v) || json_len(v) > max)
        return err_set(e, ERR_INVALID, "must be a list of at most %llu", (unsigned long long)max);
    struct spec_volume *list = arena_array(a, struct spec_volume, json_len(v) + 1);
    size_t i = 0;
    for (const struct json *at = json_first(v); at; at = json_next(v, at), i++)
        if (read_volume(at, a, &list[i], e) < 0)
            return err_wrap(e, "volume %zu", i + 1);
    s->volume = list;
    s->n_volumes = (uint32_t)i;
    return 0;
}

static int read_array(const struct json *v, uint64_t max, struct spec *s, struct err *e)
{
    struct str t = { 0 }, range, step, from, to;
    uint64_t n[3] = { 0, 0, 1 };
    if (json_as_str(v, 64, &t, e) < 0)
        return -1;
    bool has_step = str_cut(t, ':', &range, &step);
    bool has_to = str_cut(range, '-', &from, &to);
    bool bad = parse_u64(from, UINT32_MAX - 1, &n[0], e) < 0 ||
               (has_to && parse_u64(to, UINT32_MAX - 1, &n[1], e) < 0) ||
               (has_step && parse_u64(step, UINT32_MAX - 1, &n[2], e) < 0);
    if (!has_to)
        n[1] = n[0];
    if (bad || n[1] < n[0] || n[2] == 0) {
        err_set(e, ERR_INVALID, "'%.*s' is not a range of indexes", STR_ARG(t));
        return err_hint(e, "e.g. \"0-99\", or \"0-98:2\" for every second one");
    }
    uint64_t count = (n[1] - n[0]) / n[2] + 1;
    if (count > max)
        return err_set(e, ERR_INVALID, "makes %llu jobs; at most %llu are allowed",
                       (unsigned long long)count, (unsigned long long)max);
    s->is_array = true;
    s->array_from = (uint32_t)n[0], s->array_to = (uint32_t)n[1], s->array_step = (uint32_t)n[2];
    return 0;
}

/* ---- all of them ---- */

static void *place(const struct spec_field *f, struct spec *s)
{
    return (char *)s + f->offset;
}

static const void *place_const(const struct spec_field *f, const struct spec *s)
{
    return (const char *)s + f->offset;
}

static int read_choice(const struct spec_field *f, const struct json *v, struct spec *s,
                       struct err *e)
{
    size_t i = 0;
    if (read_word(f->kind, v, &i, e) < 0)
        return -1;
    if (f->kind == VALUE_SCOPE || f->kind == VALUE_LAYOUT)
        *(uint8_t *)place(f, s) = (uint8_t)i;
    else
        *(unsigned *)place(f, s) = (unsigned)i;
    return 0;
}

int value_read(const struct spec_field *f, const struct json *v, struct arena *a, struct spec *into,
               struct err *e)
{
    void *at = place(f, into);
    switch (f->kind) {
    case VALUE_NAME: return read_name(v, f->max, a, at, e);
    case VALUE_PATH: return read_path(v, f->max, a, at, e);
    case VALUE_COUNT:
    case VALUE_POSITIVE: return read_count(v, f, at, e);
    case VALUE_GPUS: return read_gpus(v, f->max, &into->request, e);
    case VALUE_SHARE: return read_share(v, at, e);
    case VALUE_CPUS: return read_cpus(v, at, e);
    case VALUE_SIZE: return read_size_mib(v, at, e);
    case VALUE_DURATION: return read_duration(v, at, e);
    case VALUE_TIME: return start_read_time(v, at, e);
    case VALUE_AFTER: return start_read_after(v, f->max, a, into, e);
    case VALUE_BOOL: return json_as_bool(v, at, e);
    case VALUE_PRIORITY:
    case VALUE_SCOPE:
    case VALUE_LAYOUT:
    case VALUE_FREEZE:
    case VALUE_NETWORK:
    case VALUE_WORK_KIND: return read_choice(f, v, into, e);
    case VALUE_SIGNAL: return read_signal(v, at, e);
    case VALUE_COMMAND: return read_command(v, f->max, a, into, e);
    case VALUE_ENV: return read_env(v, f->max, a, into, e);
    case VALUE_VOLUMES: return read_volumes(v, f->max, a, into, e);
    case VALUE_DEVICES: return spec_devices_read(v, f->max, a, at, e);
    case VALUE_ARRAY: return read_array(v, f->max, into, e);
    case VALUE_KIND_COUNT: break;
    }
    abort();
}

static void write_list(const struct spec_field *f, const struct spec *s, struct json_out *w)
{
    if (f->kind == VALUE_COMMAND && s->n_args) {
        json_begin(w, f->key, '[');
        for (uint32_t i = 0; i < s->n_args; i++)
            json_put_str(w, NULL, str_of(s->argv[i]));
        json_end(w, ']');
    }
    if (f->kind == VALUE_ENV && s->n_env) {
        json_begin(w, f->key, '{');
        for (uint32_t i = 0; i < s->n_env; i++) {
            const char *eq = strchr(s->env[i], '=');
            char key[260];
            snprintf(key, sizeof key, "%.*s", (int)(eq - s->env[i]), s->env[i]);
            json_put_str(w, key, str_of(eq + 1));
        }
        json_end(w, '}');
    }
    if (f->kind == VALUE_VOLUMES && s->n_volumes) {
        json_begin(w, f->key, '[');
        for (uint32_t i = 0; i < s->n_volumes; i++) {
            json_begin(w, NULL, '{');
            json_put_str(w, "from", s->volume[i].from);
            json_put_str(w, "to", s->volume[i].to);
            json_put_bool(w, "ro", s->volume[i].read_only);
            json_end(w, '}');
        }
        json_end(w, ']');
    }
    if (f->kind == VALUE_ARRAY && s->is_array) {
        char text[64];
        snprintf(text, sizeof text, "%u-%u:%u", s->array_from, s->array_to, s->array_step);
        json_put_str(w, f->key, str_of(text));
    }
}

static void write_size(const char *key, uint32_t mib, struct json_out *w)
{
    char text[32];
    json_put_str(w, key, str_of(format_size(mib * MIB, text)));
}

static void write_duration(const char *key, int64_t ms, struct json_out *w)
{
    char text[32];
    json_put_str(w, key, str_of(format_duration_ms(ms, text)));
}

/* A number or word that differs from the default. */
static void write_scalar(const struct spec_field *f, const void *at, const void *dflt,
                         struct json_out *w)
{
    unsigned word = f->kind == VALUE_SCOPE || f->kind == VALUE_LAYOUT ? *(const uint8_t *)at
                                                                      : *(const unsigned *)at;
    unsigned usual = f->kind == VALUE_SCOPE || f->kind == VALUE_LAYOUT ? *(const uint8_t *)dflt
                                                                       : *(const unsigned *)dflt;
    if (value_word(f->kind, 0)) {
        if (word != usual)
            json_put_str(w, f->key, str_of(value_word(f->kind, word)));
    } else if (f->kind == VALUE_SIGNAL && word != usual && signal_word((int)word)) {
        json_put_str(w, f->key, str_of(signal_word((int)word)));
    } else if ((f->kind == VALUE_COUNT || f->kind == VALUE_POSITIVE || f->kind == VALUE_SIGNAL) &&
               word != usual) {
        json_put_u64(w, f->key, word);
    } else if (f->kind == VALUE_CPUS && word != usual) {
        json_put_f64(w, f->key, word / 1e3, 3);
    } else if (f->kind == VALUE_SIZE && word != usual) {
        write_size(f->key, word, w);
    }
}

void value_write(const struct spec_field *f, const struct spec *s, const struct spec *dflt,
                 struct json_out *w)
{
    const void *at = place_const(f, s), *usual = place_const(f, dflt);
    switch (f->kind) {
    case VALUE_NAME:
    case VALUE_PATH:
        if (!str_eq(*(const struct str *)at, *(const struct str *)usual))
            json_put_str(w, f->key, *(const struct str *)at);
        return;
    case VALUE_GPUS:
        if (s->request.gpus)
            json_put_u64(w, f->key, s->request.gpus);
        return;
    case VALUE_SHARE:
        if (s->request.gpu_milli)
            json_put_f64(w, f->key, s->request.gpu_milli / 1e3, 3);
        return;
    case VALUE_DURATION:
        if (*(const int64_t *)at != *(const int64_t *)usual)
            write_duration(f->key, *(const int64_t *)at, w);
        return;
    case VALUE_TIME: start_write_time(f->key, *(const int64_t *)at, w); return;
    case VALUE_AFTER: start_write_after(f->key, s, w); return;
    case VALUE_BOOL:
        if (*(const bool *)at)
            json_put_bool(w, f->key, true);
        return;
    case VALUE_COUNT:
    case VALUE_POSITIVE:
    case VALUE_CPUS:
    case VALUE_SIZE:
    case VALUE_PRIORITY:
    case VALUE_SCOPE:
    case VALUE_LAYOUT:
    case VALUE_FREEZE:
    case VALUE_NETWORK:
    case VALUE_WORK_KIND:
    case VALUE_SIGNAL: write_scalar(f, at, usual, w); return;
    case VALUE_DEVICES: spec_devices_write(s->devices, f->key, w); return;
    case VALUE_COMMAND:
    case VALUE_ENV:
    case VALUE_VOLUMES:
    case VALUE_ARRAY: write_list(f, s, w); return;
    case VALUE_KIND_COUNT: break;
    }
    abort();
}

static void put_filled(const char *schema, const struct spec_field *f, struct buf *out)
{
    for (const char *p = schema; *p; p++) {
        if (strncmp(p, "%max", 4) != 0) {
            buf_addc(out, *p);
            continue;
        }
        buf_printf(out, "%llu", (unsigned long long)f->max);
        p += 3;
    }
}

/* Null is as if the field was not there; a job must have its command. */
void value_schema(const struct spec_field *f, struct json_out *w)
{
    static const char *const schemas[] = {
#define X(id, schema) schema,
        VALUE_KINDS(X)
#undef X
    };
    AUTO(buf_free) struct buf b = BUF(4096);
    bool words = value_word(f->kind, 0), needed = f->kind == VALUE_COMMAND;
    json_begin(w, f->key, '{');
    json_put_str(w, "description", str_of(f->help));
    json_begin(w, words ? "enum" : needed ? "allOf" : "anyOf", '[');
    for (size_t i = 0; words && value_word(f->kind, i); i++)
        json_put_str(w, NULL, str_of(value_word(f->kind, i)));
    put_filled(schemas[f->kind], f, &b);
    if (!words)
        json_put_raw(w, NULL, buf_str(&b));
    if (words)
        json_put_null(w, NULL);
    else if (!needed)
        json_put_raw(w, NULL, STR("{\"type\":\"null\"}"));
    json_end(w, ']');
    json_end(w, '}');
}

void spec_print_signals(struct json_out *w, const char *key)
{
    json_begin(w, key, '{');
    json_begin(w, "enum", '[');
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char full[16];
        snprintf(full, sizeof full, "SIG%s", signals[i].name);
        json_put_str(w, NULL, str_of(signals[i].name));
        json_put_str(w, NULL, str_of(full));
    }
    json_end(w, ']');
    json_end(w, '}');
}
