/* Any bytes as the record of a job: what is taken is in range and reads back, what is not is told. */
#include "control/record.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str text = { size ? (const char *)data : "", size };
    struct job_record r, again;
    struct spec s;
    struct err e = { 0 };
    uint64_t n;
    if (record_read_numbers(text, &n, &e) < 0)
        must(e.msg[0]);
    e = (struct err){ 0 };
    if (record_read(text, &a, &r, &s, &e) < 0) {
        must(e.msg[0]);
        return 0;
    }
    must(!job_state_ended(r.state) && r.afters <= AFTER_MAX && r.ran_ms >= 0);
    AUTO(buf_free) struct buf spec = BUF(1 << 22), out = BUF(1 << 23);
    struct json_out w = { .b = &spec };
    spec_write(&s, &w, NULL);
    record_write(&r, buf_str(&spec), &out);
    must(record_read(buf_str(&out), &a, &again, &s, &e) == 0);
    must(again.state == r.state && again.run == r.run && again.array == r.array);
    must(str_eq(again.user, r.user) && again.afters == r.afters && again.fails == r.fails);
    return 0;
}
