#include "keeper/taskfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/rootfs.h"
#include "sys/file.h"
#include "tests/lib/test.h"

struct place {
    char dir[64];
};

static struct place place_new(void)
{
    struct place p = { "/tmp/ns-taskfile-XXXXXX" };
    CHECK(mkdtemp(p.dir));
    return p;
}

static void place_clear(struct place *p)
{
    struct err e;
    CHECK(tree_remove(p->dir, &e) == 0);
}

static void put(const struct place *p, const char *name, const char *text)
{
    struct err e;
    CHECK(task_file_put(p->dir, name, str_of(text), &e) == 0);
}

static enum task_found found(const struct place *p, struct task_record *r)
{
    task_record_read(p->dir, r);
    return r->found;
}

static void status_is_read_line_by_line(void)
{
    struct task_status s;
    task_status_parse(STR("started 1700000000000\nlost 17\nexit 3 1700000000500\n"), &s);
    CHECK_INT(s.lost_bytes, 17);
    CHECK(s.started_ms == 1700000000000 && s.ended_ms == 1700000000500);
    CHECK(s.code == 3 && s.signal == 0 && !s.failed[0]);
    task_status_parse(STR("started 5\nsignal 9 7\n"), &s);
    CHECK(s.code == 0 && s.signal == 9 && s.ended_ms == 7);
    task_status_parse(STR("started 5\nfailed 2 No such file or directory\nexit 127 6\n"), &s);
    CHECK_STR(s.failed, "No such file or directory");
    CHECK(s.code == 127);
}

static void a_line_that_was_cut_off_does_not_count(void)
{
    struct task_status s;
    task_status_parse(STR("started 1700000000000"), &s);
    CHECK(s.started_ms == 0);
    task_status_parse(STR("started 1\nexit 1"), &s);
    CHECK(s.started_ms == 1 && s.ended_ms == 0);
    task_status_parse(STR("started\nexit x y\nsignal 300 1\n\n \nnonsense 1 2\n"), &s);
    CHECK(s.started_ms == 0 && s.ended_ms == 0);
}

static void notes_add_up(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct task_notes n;
    task_note_pause(&b, 1000);
    task_note_pause(&b, 1100); /* again: the first counts */
    task_note_resume(&b, 1500);
    task_note_resume(&b, 1600);
    task_note_pause(&b, 2000);
    task_notes_parse(buf_str(&b), &n);
    CHECK(n.paused && n.paused_since_ms == 2000 && n.paused_ms == 500 && !n.stopping);
    CHECK(task_ran_ms(100, &n, 99999) == 2000 - 100 - 500);
    task_note_resume(&b, 2100);
    task_notes_parse(buf_str(&b), &n);
    CHECK(!n.paused && n.paused_ms == 600 && task_ran_ms(100, &n, 3000) == 3000 - 100 - 600);
}

static void the_first_reason_to_stop_stays(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct task_notes n;
    task_note_stop(&b, 1000, END_TIME_LIMIT, 5000);
    task_note_stop(&b, 2000, END_STOPPED, 100);
    task_note_stop(&b, 3000, END_MEMORY, 90000);
    task_notes_parse(buf_str(&b), &n);
    CHECK(n.stopping && n.why == END_TIME_LIMIT && n.kill_at_ms == 2100);
}

static void time_never_runs_backwards(void)
{
    struct task_notes n = { 0 };
    CHECK(task_ran_ms(1000, &n, 500) == 0);
    task_notes_parse(STR("pause 1000\nresume 500\n"), &n);
    CHECK(n.paused_ms == 0);
}

static void a_result_comes_back_as_it_was(void)
{
    struct task_result r = { .code = 3,
                             .why = END_DISK,
                             .t_ms = 1700000000000,
                             .cpu_ms = 12,
                             .mem_peak_mib = 34,
                             .limit = 56,
                             .lost_bytes = 78 };
    struct task_result back;
    struct err e;
    AUTO(buf_free) struct buf b = BUF(RESULT_MAX);
    task_result_write(&r, &b);
    CHECK(task_result_read(buf_str(&b), &back, &e) == 0);
    CHECK(back.code == 3 && back.signal == 0 && back.why == END_DISK && back.t_ms == r.t_ms);
    CHECK(back.cpu_ms == 12 && back.mem_peak_mib == 34 && back.limit == 56);
    CHECK(back.lost_bytes == 78);
    CHECK(task_result_read((struct str){ b.p, b.n / 2 }, &back, &e) < 0);
    CHECK(task_result_read(STR("[]"), &back, &e) < 0);
}

static void every_leftover_state_is_told_apart(void)
{
    AUTO(place_clear) struct place p = place_new();
    struct task_record r;
    CHECK(found(&p, &r) == FOUND_NOTHING);
    put(&p, "log.0", "x");
    put(&p, "status", "started 5\n");
    CHECK(found(&p, &r) == FOUND_NOTHING); /* without task.json there is no task */
    put(&p, "task.json", "{}");
    put(&p, "status", "");
    CHECK(found(&p, &r) == FOUND_NOT_BEGUN);
    put(&p, "status", "started 5\n");
    CHECK(found(&p, &r) == FOUND_OVER && r.status.started_ms == 5 && !r.status.ended_ms);
    put(&p, "status", "started 5\nexit 4 9\n");
    put(&p, "notes", "stop 6 100 stopped\n");
    CHECK(found(&p, &r) == FOUND_OVER && r.status.code == 4 && r.notes.why == END_STOPPED);
    put(&p, "result.json", "{\"code\":");
    CHECK(found(&p, &r) == FOUND_OVER); /* half a result is none */
    put(&p, "result.json",
        "{\"code\":4,\"signal\":0,\"why\":\"exited\",\"t_ms\":9,\"cpu_ms\":1,"
        "\"mem_peak_mib\":2}");
    CHECK(found(&p, &r) == FOUND_ENDED && r.result.code == 4 && r.result.t_ms == 9);
}

static void a_lock_means_that_it_lives(void)
{
    AUTO(place_clear) struct place p = place_new();
    struct task_record r;
    char path[128];
    put(&p, "task.json", "{}");
    put(&p, "status", "started 5\n");
    snprintf(path, sizeof path, "%s/status", p.dir);
    int fd = open(path, O_RDWR | O_CLOEXEC), copy = dup(fd), other = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && task_lock(fd) && !task_lock(other));
    CHECK(found(&p, &r) == FOUND_ALIVE && r.status.started_ms == 5);
    file_close_p(&fd);
    CHECK(found(&p, &r) == FOUND_ALIVE); /* the copy holds it, as a child's would */
    file_close_p(&copy);
    CHECK(found(&p, &r) == FOUND_OVER);
    file_close_p(&other);
}

static void files_are_whole_or_absent(void)
{
    AUTO(place_clear) struct place p = place_new();
    struct err e;
    AUTO(buf_free) struct buf b = { 0 };
    char path[128];
    struct stat st;
    put(&p, "notes", "one\n");
    CHECK(task_file_add(p.dir, "notes", STR("two\n"), &e) == 0);
    snprintf(path, sizeof path, "%s/notes", p.dir);
    CHECK(file_read(path, 100, &b, &e) == 0);
    CHECK_STR(b.p, "one\ntwo\n");
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07) == 0); /* others read nothing */
    CHECK(task_file_put("/no/such/folder", "x", STR("y"), &e) < 0 && strstr(e.msg, "/no/such"));
}

static void output_has_a_bound_on_the_disk(void)
{
    AUTO(place_clear) struct place p = place_new();
    char path[96];
    struct stat st;
    put(&p, "log.0", "x");
    put(&p, "status", "started 5\n");
    CHECK(task_output_fits(p.dir, p.dir, 262144));
    snprintf(path, sizeof path, "%s/log.0", p.dir);
    CHECK(truncate(path, 262144) == 0); /* it has a quarter of that, whatever holes are in it */
    CHECK(!task_output_fits(p.dir, p.dir, 262144) && task_output_fits(p.dir, p.dir, 0));
    task_output_cut(p.dir, p.dir, 262144);
    CHECK(task_output_fits(p.dir, p.dir, 262144));
    CHECK(stat(path, &st) == 0 && st.st_size > 65536 && st.st_size < 90000);
    snprintf(path, sizeof path, "%s/status", p.dir);
    CHECK(truncate(path, STATUS_MAX + 1) == 0 && !task_output_fits(p.dir, p.dir, 262144));
}

static void a_start_is_noted_by_our_own_clock(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct task_notes n;
    task_note_start(&b, 1234);
    task_note_pause(&b, 2000);
    task_notes_parse(buf_str(&b), &n);
    CHECK(n.started_ms == 1234 && n.paused);
    task_notes_parse(STR("start 12"), &n); /* cut off */
    CHECK(n.started_ms == 0);
}

static const struct test tests[] = {
    { "what a task writes has a bound on the disk", output_has_a_bound_on_the_disk },
    { "a start is noted by our own clock", a_start_is_noted_by_our_own_clock },
    { "a status is read line by line", status_is_read_line_by_line },
    { "a line that was cut off does not count", a_line_that_was_cut_off_does_not_count },
    { "pauses add up, and said twice they count once", notes_add_up },
    { "the first reason to stop stays, the earliest end counts", the_first_reason_to_stop_stays },
    { "a clock that was set back gives no negative times", time_never_runs_backwards },
    { "a result comes back as it was written", a_result_comes_back_as_it_was },
    { "what a killed keeper can leave is told apart", every_leftover_state_is_told_apart },
    { "a locked status means that the task lives", a_lock_means_that_it_lives },
    { "files are replaced whole and read by nobody else", files_are_whole_or_absent },
};
TEST_CASES(tests)
