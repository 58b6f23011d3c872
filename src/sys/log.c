#include "sys/log.h"

#include <stdarg.h>

#include "base/date.h"
#include "base/json.h"

#define LINE_MAX_BYTES 16384u
#define VALUE_MAX_BYTES 4096u
#define END_BYTES 32u /* kept free for the "cut" mark and the end of the line */

struct log {
    FILE *to;
    enum log_level least;
    enum log_form form;
    struct clock clock;
};

static const char *const level_names[] = {
    [LOG_DEBUG_] = "debug",
    [LOG_INFO_] = "info",
    [LOG_WARN_] = "warn",
    [LOG_ERROR_] = "error",
};

struct log *log_new(FILE *to, enum log_level least, enum log_form form, struct clock clock)
{
    struct log *l = xcalloc(1, sizeof *l);
    *l = (struct log){ .to = to, .least = least, .form = form, .clock = clock };
    return l;
}

struct log *log_free(struct log *l)
{
    free(l);
    return NULL;
}

void log_free_p(struct log **l)
{
    *l = log_free(*l);
}

bool log_level_parse(const char *word, enum log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcmp(word, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}

/* One conversion of the format, taken apart: a value must be quoted by itself, and a va_list cannot
 * be handed to printf piece by piece. */
struct conversion {
    int precision; /* -1: none */
    int longs;     /* 1: l, 2: ll */
    bool size;     /* z, j, t: all 64 bits here */
    char letter;
};

/* The arguments travel in a struct, because a va_list inside one advances for the caller too. */
struct args {
    va_list ap;
};

static const char *parse_conversion(const char *p, struct args *args, struct conversion *out)
{
    struct conversion c = { .precision = -1 };
    p += strspn(p, "-+ #0123456789");
    if (p[0] == '.' && p[1] == '*') {
        c.precision = va_arg(args->ap, int);
        p += 2;
    } else if (p[0] == '.') {
        c.precision = 0;
        for (p++; *p >= '0' && *p <= '9'; p++)
            c.precision = MIN(c.precision * 10 + (*p - '0'), 1000);
    }
    for (; *p == 'l' || *p == 'h' || *p == 'z' || *p == 'j' || *p == 't'; p++) {
        c.longs += *p == 'l';
        c.size |= *p == 'z' || *p == 'j' || *p == 't';
    }
    c.letter = *p;
    *out = c;
    return *p ? p + 1 : p;
}

static long long take_signed(const struct conversion *c, struct args *args)
{
    if (c->longs >= 2)
        return va_arg(args->ap, long long);
    return c->longs || c->size ? va_arg(args->ap, long) : va_arg(args->ap, int);
}

static unsigned long long take_unsigned(const struct conversion *c, struct args *args)
{
    if (c->longs >= 2)
        return va_arg(args->ap, unsigned long long);
    return c->longs || c->size ? va_arg(args->ap, unsigned long) : va_arg(args->ap, unsigned);
}

static void add_string(const struct conversion *c, struct args *args, struct buf *out)
{
    const char *s = va_arg(args->ap, const char *);
    if (!s)
        s = "(null)";
    /* A precision may mean that there is no NUL behind it. */
    size_t most = out->limit - out->n;
    size_t n = strnlen(s, c->precision >= 0 ? MIN((size_t)c->precision, most) : most);
    buf_add(out, (struct str){ s, n });
}

/* Adds one argument to the value; true when it is a number as JSON knows them. */
static bool add_argument(const struct conversion *c, struct args *args, struct buf *out)
{
    double d;
    switch (c->letter) {
    case 'd':
    case 'i': buf_printf(out, "%lld", take_signed(c, args)); return true;
    case 'u': buf_printf(out, "%llu", take_unsigned(c, args)); return true;
    case 'x':
    case 'X': buf_printf(out, "%llx", take_unsigned(c, args)); return false;
    case 'f':
        d = va_arg(args->ap, double);
        buf_printf(out, "%.*f", c->precision < 0 ? 6 : c->precision, d);
        return __builtin_isfinite(d);
    case 'g':
    case 'e':
        d = va_arg(args->ap, double);
        buf_printf(out, "%.*g", c->precision < 0 ? 6 : c->precision, d);
        return __builtin_isfinite(d);
    case 'c': buf_addc(out, (char)va_arg(args->ap, int)); return false;
    case 'p': buf_printf(out, "%p", va_arg(args->ap, void *)); return false;
    case 's': add_string(c, args, out); return false;
    case '%': buf_addc(out, '%'); return false;
    default: /* a letter not in the header's list: what follows cannot be read */ abort();
    }
}

/* Reads "value" of one key=value of the format: literal text and conversions up to a blank. */
static const char *take_value(const char *p, struct args *args, struct buf *out, bool *out_number)
{
    bool number = false;
    const char *from = p;
    int pieces = 0;
    while (*p && *p != ' ') {
        pieces++;
        if (*p != '%') {
            buf_addc(out, *p++);
            continue;
        }
        struct conversion c;
        p = parse_conversion(p + 1, args, &c);
        number = add_argument(&c, args, out);
    }
    *out_number = number && pieces == 1 && p > from;
    return p;
}

static bool needs_quotes(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || strchr("\"\\=", s.p[i]))
            return true;
    return s.n == 0;
}

static void put_field(struct json_out *w, enum log_form form, struct str key, struct str value,
                      bool number)
{
    AUTO(buf_free) struct buf name = BUF(256);
    buf_add(&name, key);
    if (form == LOG_JSON) {
        buf_printf(w->b, ",\"%s\":", buf_str(&name).p);
    } else {
        buf_printf(w->b, " %s=", buf_str(&name).p);
    }
    w->comma = false;
    if (form == LOG_JSON ? number : !needs_quotes(value))
        buf_add(w->b, value);
    else
        json_put_str(w, NULL, value);
}

/* False when not all of them fitted: rather some fields less than half a line. */
static bool put_fields(struct json_out *w, enum log_form form, const char *fmt, struct args *args)
{
    AUTO(buf_free) struct buf value = BUF(VALUE_MAX_BYTES);
    while (*(fmt += strspn(fmt, " "))) {
        struct str key = { fmt, strcspn(fmt, "= ") };
        fmt += key.n;
        bool number = false;
        size_t before = w->b->n;
        buf_truncate(&value, 0);
        if (*fmt != '=') /* a format without keys is a mistake in the caller */
            abort();
        fmt = take_value(fmt + 1, args, &value, &number);
        put_field(w, form, key, buf_str(&value), number);
        if (w->b->full) {
            buf_truncate(w->b, before);
            return false;
        }
    }
    return true;
}

/* fmt is NULL when there are no keys. */
static void write_event(struct log *l, enum log_level level, const char *name, const char *fmt,
                        struct args *args)
{
    char text[32];
    const char *time = date_stamp(clock_now_ms(&l->clock), text);
    AUTO(buf_free) struct buf line = BUF(LINE_MAX_BYTES);
    struct json_out w = { .b = &line };
    if (l->form == LOG_JSON)
        buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"", time,
                   level_names[level], name);
    else
        buf_printf(&line, "%s %s %s", time, level_names[level], name);
    line.limit -= END_BYTES;
    bool whole = !fmt || put_fields(&w, l->form, fmt, args);
    line.limit += END_BYTES;
    if (!whole)
        put_field(&w, l->form, STR("cut"), STR("1"), true);
    buf_addz(&line, l->form == LOG_JSON ? "}\n" : "\n");
    fwrite(line.p, 1, line.n, l->to);
    fflush(l->to);
}

void log_plain(struct log *l, enum log_level level, const char *name)
{
    if (l && level >= l->least)
        write_event(l, level, name, NULL, NULL);
}

void log_event(struct log *l, enum log_level level, const char *name, const char *fmt, ...)
{
    if (!l || level < l->least)
        return;
    struct args args;
    va_start(args.ap, fmt);
    write_event(l, level, name, fmt, &args);
    va_end(args.ap);
}
