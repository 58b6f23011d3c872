#include "doctor/look.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"
#include "sys/process.h"

#define OUTPUT_LIMIT (64u << 10)
#define OUTPUT_MS 1000 /* for one program to say its version */

/* ---- saying ---- */

PRINTF_LIKE(3, 0)
static void write_clean(char *out, size_t size, const char *fmt, va_list args)
{
    vsnprintf(out, size, fmt, args);
    for (unsigned char *p = (unsigned char *)out; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
}

#define SAY(name, value)                                                                           \
    void name(struct doctor_result *r, const char *fmt, ...)                                       \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, fmt);                                                                       \
        r->verdict = value;                                                                        \
        write_clean(r->found, sizeof r->found, fmt, args);                                         \
        va_end(args);                                                                              \
    }
SAY(say_good, DOCTOR_GOOD)
SAY(say_bad, DOCTOR_BAD)
SAY(say_skip, DOCTOR_SKIP)

void say_fix(struct doctor_result *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_clean(r->fix, sizeof r->fix, fmt, args);
    va_end(args);
}

/* ---- reading ---- */

void look_path(const struct doctor_in *in, char out[static LOOK_PATH], const char *fmt, ...)
{
    va_list args;
    int n = snprintf(out, LOOK_PATH, "%s", in->root);
    size_t used = n < 0 ? LOOK_PATH : (size_t)n;
    va_start(args, fmt);
    n = used < LOOK_PATH ? vsnprintf(out + used, LOOK_PATH - used, fmt, args) : -1;
    va_end(args);
    if (n < 0 || used + (size_t)n >= LOOK_PATH)
        out[0] = '\0';
}

bool look_exists(const struct doctor_in *in, const char *path)
{
    char full[LOOK_PATH];
    look_path(in, full, "%s", path);
    return access(full, F_OK) == 0;
}

void look_nearest(const struct doctor_in *in, const char *path, char out[static LOOK_PATH])
{
    look_path(in, out, "%s", path);
    while (out[0] && access(out, F_OK) < 0) {
        char *slash = strrchr(out, '/');
        snprintf(slash && slash > out ? slash : out, 2, "%s",
                 slash > out ? ""
                 : slash     ? "/"
                             : "."); /* ends at / or at our own folder */
    }
}

bool look_read(const struct doctor_in *in, const char *path, size_t limit, struct buf *out)
{
    char full[LOOK_PATH];
    struct err ignored;
    look_path(in, full, "%s", path);
    return file_read(full, limit, out, &ignored) == 0;
}

bool look_number(const struct doctor_in *in, const char *path, uint64_t *out)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest, word;
    if (!look_read(in, path, 4096, &text))
        return false;
    rest = buf_str(&text);
    return str_next_word(&rest, &word) && parse_u64(word, UINT64_MAX, out, &ignored) == 0;
}

bool look_has_word(const struct doctor_in *in, const char *path, const char *word)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, one;
    if (!look_read(in, path, 64u << 10, &text))
        return false;
    for (rest = buf_str(&text); str_next_word(&rest, &one);)
        if (str_is(one, word))
            return true;
    return false;
}

bool look_program(const struct doctor_in *in, const char *name, char out[static LOOK_PATH])
{
    static const char *const usual[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };
    struct str rest = str_of(in->path), dir;
    while (rest.n) {
        str_cut(rest, ':', &dir, &rest);
        look_path(in, out, "%.*s/%s", STR_ARG(dir), name);
        if (dir.n && access(out, X_OK) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        look_path(in, out, "%s/%s", usual[i], name);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

bool look_output(const char *path, const char *const *args, struct buf *out)
{
    const char *argv[16] = { path };
    struct process_exit how;
    struct err ignored;
    size_t n = 0;
    for (; args[n] && n + 2 < ARRAY_LEN(argv); n++)
        argv[n + 1] = args[n];
    return !args[n] && process_capture(argv, OUTPUT_LIMIT, OUTPUT_MS, out, &how, &ignored) == 0 &&
           how.signal == 0 && how.code == 0;
}

static uint32_t take_digits(struct str s, size_t *at)
{
    uint32_t v = 0;
    for (; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; ++*at)
        v = MIN(v * 10 + (uint32_t)(s.p[*at] - '0'), 1000000u);
    return v;
}

bool look_find_version(struct str text, struct look_version *out)
{
    struct str word;
    while (str_next_word(&text, &word)) {
        struct look_version v = { 0 };
        size_t at = 0;
        v.major = take_digits(word, &at);
        if (at == 0 || at + 1 >= word.n || word.p[at] != '.')
            continue;
        size_t dot = at++;
        v.minor = take_digits(word, &at);
        if (at == dot + 1)
            continue;
        snprintf(v.text, sizeof v.text, "%.*s", STR_ARG(word));
        *out = v;
        return true;
    }
    return false;
}

bool look_older(const struct look_version *v, uint32_t major, uint32_t minor)
{
    return v->major < major || (v->major == major && v->minor < minor);
}

bool look_plain(const struct doctor_in *in)
{
    return strcmp(in->containment, "plain") == 0;
}

bool look_as_root(const struct doctor_in *in)
{
    /* Somebody else's keeper is systemd's, and that one is root. */
    return in->facts.uid == 0 || in->keeper_external;
}
