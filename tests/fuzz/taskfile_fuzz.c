/* Status, notes and results of any bytes: what is read is in range, and a result reads back. */
#include "keeper/taskfile.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    struct str text = { (const char *)data, size };
    struct task_status s;
    struct task_notes n;
    struct task_result r, back;
    struct err e = { 0 };
    task_status_parse(text, &s);
    must(s.started_ms >= 0 && s.ended_ms >= 0 && s.code >= 0 && s.code <= 255);
    must(s.signal >= 0 && s.signal <= 255 && !(s.code && s.signal));
    task_notes_parse(text, &n);
    must(n.paused_ms >= 0 && (!n.stopping || n.why < TASK_END_COUNT));
    must(task_ran_ms(s.started_ms, &n, 1700000000000) >= 0);
    if (task_result_read(text, &r, &e) < 0) {
        must(e.msg[0]);
        return 0;
    }
    AUTO(buf_free) struct buf b = BUF(RESULT_MAX);
    task_result_write(&r, &b);
    must(task_result_read(buf_str(&b), &back, &e) == 0 && back.code == r.code);
    must(back.why == r.why && back.t_ms == r.t_ms && back.cpu_ms == r.cpu_ms);
    return 0;
}
