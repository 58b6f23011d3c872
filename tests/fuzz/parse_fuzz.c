/* Every parser of parse.h and date.h on the same text: what it takes must lie in its range and, where there is
 * a printer, must survive being printed and read again. */
#include "base/date.h"
#include "base/parse.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void numbers(struct str s)
{
    struct err e = { 0 };
    uint64_t u = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    if (parse_u64(s, 1000, &u, &e) == 0)
        must(u <= 1000 && parse_i64(s, 0, 1000, &i, &e) == 0 && (uint64_t)i == u);
    if (parse_i64(s, -1000, 1000, &i, &e) == 0)
        must(i >= -1000 && i <= 1000 && parse_f64(s, -1000, 1000, &d, &e) == 0 && d == (double)i);
    if (parse_f64(s, -1e9, 1e9, &d, &e) == 0)
        must(d >= -1e9 && d <= 1e9);
    if (parse_milli(s, 5000, &u, &e) == 0)
        must(u <= 5000);
    if (parse_bool(s, &b, &e) < 0)
        must(e.code == ERR_INVALID && e.msg[0] && e.hint[0]);
}

FUZZ_TARGET(data, size)
{
    struct str s = { (const char *)data, size };
    struct err e = { 0 };
    char text[32];
    int64_t ms, ms_again = -1;
    uint64_t bytes, bytes_again = 0;
    numbers(s);
    if (parse_duration_ms(s, &ms, &e) == 0) {
        must(ms >= 0);
        must(parse_duration_ms(str_of(format_duration_ms(ms, text)), &ms_again, &e) == 0);
        must(ms == ms_again);
    }
    if (parse_size_bytes(s, &bytes, &e) == 0) {
        must(parse_size_bytes(str_of(format_size(bytes, text)), &bytes_again, &e) == 0);
        must(bytes == bytes_again);
    }
    if (date_parse(s, &ms, &e) == 0) {
        must(ms >= 0 && date_parse(str_of(date_format(ms, text)), &ms_again, &e) == 0);
        must(ms == ms_again);
    }
    return 0;
}
