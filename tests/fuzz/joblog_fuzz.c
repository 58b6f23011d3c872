/* The input as a log segment: a record lies within its line and can be written again.  The input as
 * a job's output: its records give it back byte for byte. */
#include "tests/fuzz/target.h"
#include "wire/joblog.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void read_lines(struct str rest)
{
    struct str line;
    uint64_t number;
    struct joblog_record r, again;
    if (joblog_segment(rest, &number))
        must(rest.n > 37 && number < UINT64_C(1000000000000000000));
    while (str_cut(rest, '\n', &line, &rest)) {
        if (!joblog_parse(line, &r))
            continue;
        must(r.text.p >= line.p && r.text.p + r.text.n == line.p + line.n);
        must(r.stream < JOBLOG_STREAM_COUNT && r.t_us >= 0 && r.text.n <= JOBLOG_TEXT_MAX);
        AUTO(buf_free) struct buf text = BUF(JOBLOG_RECORD_MAX), out = BUF(JOBLOG_RECORD_MAX);
        buf_add(&text, r.text);
        buf_addz(&text, r.full ? "\n" : "");
        must(joblog_format(&out, r.t_us, r.stream, buf_str(&text)) == text.n);
        if (out.n > 0) /* a part of nothing is not written */
            must(joblog_parse((struct str){ out.p, out.n - 1 }, &again) && again.t_us == r.t_us &&
                 again.full == r.full && str_eq(again.text, r.text));
    }
}

static void write_and_read(struct str chunk)
{
    AUTO(buf_free) struct buf back = BUF(chunk.n);
    for (struct str rest = chunk; rest.n > 0;) {
        AUTO(buf_free) struct buf out = BUF(JOBLOG_RECORD_MAX + chunk.n % 100);
        struct str lines, line;
        struct joblog_record r;
        size_t n = joblog_format(&out, 1, JOBLOG_STDERR, rest);
        must(n > 0 && n <= rest.n && !out.full);
        for (lines = buf_str(&out); str_cut(lines, '\n', &line, &lines);) {
            must(joblog_parse(line, &r));
            buf_add(&back, r.text);
            buf_addz(&back, r.full ? "\n" : "");
        }
        must(lines.n == 0);
        rest = (struct str){ rest.p + n, rest.n - n };
    }
    must(str_eq(buf_str(&back), chunk));
}

FUZZ_TARGET(data, size)
{
    struct str all = { (const char *)data, size };
    read_lines(all);
    write_and_read(all);
    return 0;
}
