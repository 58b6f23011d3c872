#include "wire/joblog.h"

#include <stdio.h>

#include "base/date.h"

#define STAMP_BYTES 27u /* 2026-03-01T12:30:00.250123Z */
#define US_PER_S INT64_C(1000000)
#define S_PER_DAY INT64_C(86400)
#define STAMP_MAX_US (INT64_C(253402300800) * US_PER_S - 1) /* the last of the year 9999 */
#define SEGMENT_WORD "segment "

#define X(id, name) [JOBLOG_##id] = (name),
static const char *const streams[] = { JOBLOG_STREAMS(X) };
#undef X

const char *joblog_stream_name(enum joblog_stream s)
{
    return streams[s];
}

/* Decimal digits with zeros in front. */
static void put_digits(char *to, size_t n, int64_t v)
{
    for (size_t i = n; i-- > 0; v /= 10)
        to[i] = (char)('0' + v % 10);
}

static void put_stamp(char to[static STAMP_BYTES], int64_t t_us)
{
    int64_t t = t_us < 0 ? 0 : MIN(t_us, STAMP_MAX_US);
    int64_t s = t / US_PER_S, in_day = s % S_PER_DAY;
    struct date d = date_of_days(s / S_PER_DAY);
    memcpy(to, "0000-00-00T00:00:00.000000Z", STAMP_BYTES); /* NOLINT: no NUL is wanted */
    put_digits(to, 4, d.year);
    put_digits(to + 5, 2, d.month);
    put_digits(to + 8, 2, d.day);
    put_digits(to + 11, 2, in_day / 3600);
    put_digits(to + 14, 2, in_day / 60 % 60);
    put_digits(to + 17, 2, in_day % 60);
    put_digits(to + 20, 6, t % US_PER_S);
}

/* -1 when one of them is no digit. */
static int64_t get_digits(const char *p, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        v = v * 10 + (p[i] - '0');
    }
    return v;
}

static bool get_stamp(const char p[static STAMP_BYTES], int64_t *out_us)
{
    /* where, how many digits, smallest, largest, what follows */
    static const struct part {
        size_t at, n;
        int64_t min, max;
        char then;
    } parts[] = {
        { 0, 4, 1970, 9999, '-' }, { 5, 2, 1, 12, '-' },  { 8, 2, 1, 31, 'T' },
        { 11, 2, 0, 23, ':' },     { 14, 2, 0, 59, ':' }, { 17, 2, 0, 60, '.' },
        { 20, 6, 0, 999999, 'Z' },
    };
    int64_t v[ARRAY_LEN(parts)];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const struct part *w = &parts[i];
        v[i] = get_digits(p + w->at, w->n);
        if (v[i] < w->min || v[i] > w->max || p[w->at + w->n] != w->then)
            return false;
    }
    struct date d = { (int32_t)v[0], (uint8_t)v[1], (uint8_t)v[2] };
    int64_t s = date_days(d) * S_PER_DAY + v[3] * 3600 + v[4] * 60 + v[5];
    *out_us = s * US_PER_S + v[6];
    return true;
}

/* "<time> <stream> " and room for F or P and a blank. */
static size_t put_prefix(char to[static JOBLOG_PREFIX_MAX], int64_t t_us, enum joblog_stream s)
{
    size_t n = strlen(streams[s]);
    put_stamp(to, t_us);
    to[STAMP_BYTES] = ' ';
    memcpy(to + STAMP_BYTES + 1, streams[s], n); /* NOLINT: no NUL is wanted */
    memcpy(to + STAMP_BYTES + 1 + n, " P ", 3);  /* NOLINT */
    return STAMP_BYTES + 1 + n + 3;
}

size_t joblog_format(struct buf *out, int64_t t_us, enum joblog_stream s, struct str chunk)
{
    char prefix[JOBLOG_PREFIX_MAX];
    size_t prefix_n = put_prefix(prefix, t_us, s), taken = 0;
    while (taken < chunk.n) {
        const char *from = chunk.p + taken;
        size_t n = MIN(chunk.n - taken, (size_t)JOBLOG_TEXT_MAX);
        const char *end = memchr(from, '\n', MIN(chunk.n - taken, n + 1));
        size_t text_n = end ? (size_t)(end - from) : n;
        if (prefix_n + text_n + 1 > out->limit - MIN(out->n, out->limit))
            break;
        prefix[prefix_n - 2] = end ? 'F' : 'P';
        buf_add(out, (struct str){ prefix, prefix_n });
        buf_add(out, (struct str){ from, text_n });
        buf_addc(out, '\n');
        taken += text_n + (end ? 1 : 0);
    }
    return taken;
}

void joblog_format_segment(struct buf *out, int64_t t_us, uint64_t number)
{
    char text[64];
    int n = snprintf(text, sizeof text, SEGMENT_WORD "%llu\n", (unsigned long long)number);
    joblog_format(out, t_us, JOBLOG_META, (struct str){ text, (size_t)n });
}

bool joblog_parse(struct str line, struct joblog_record *out)
{
    struct joblog_record r;
    if (line.n < STAMP_BYTES + 1 || !get_stamp(line.p, &r.t_us) || line.p[STAMP_BYTES] != ' ')
        return false;
    struct str rest = { line.p + STAMP_BYTES + 1, line.n - STAMP_BYTES - 1 }, word;
    size_t s = 0;
    str_cut(rest, ' ', &word, &rest);
    while (s < JOBLOG_STREAM_COUNT && !str_is(word, streams[s]))
        s++;
    if (s == JOBLOG_STREAM_COUNT || rest.n < 2 || (rest.p[0] != 'F' && rest.p[0] != 'P') ||
        rest.p[1] != ' ')
        return false;
    r.stream = (enum joblog_stream)s;
    r.full = rest.p[0] == 'F';
    r.text = (struct str){ rest.p + 2, rest.n - 2 };
    if (r.text.n > JOBLOG_TEXT_MAX)
        return false;
    *out = r;
    return true;
}

bool joblog_segment(struct str head, uint64_t *out_number)
{
    struct str line, rest;
    struct joblog_record r;
    if (!str_cut(head, '\n', &line, &rest) || !joblog_parse(line, &r) || r.stream != JOBLOG_META)
        return false;
    size_t word = sizeof SEGMENT_WORD - 1;
    if (!r.full || r.text.n <= word || memcmp(r.text.p, SEGMENT_WORD, word) != 0)
        return false;
    size_t digits = r.text.n - word;
    int64_t v = digits <= 18 ? get_digits(r.text.p + word, digits) : -1;
    if (v < 0)
        return false;
    *out_number = (uint64_t)v;
    return true;
}
