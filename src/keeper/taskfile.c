#include "keeper/taskfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "keeper/request.h"
#include "sys/file.h"
#include "sys/weak.h"
#include "wire/joblog.h"

#define PATH_BYTES 512
#define OUT_LOG_MAX (1u << 20)
#define BLOCKS_SLACK (1u << 20)           /* what file systems reserve */
#define TIME_MAX INT64_C(253402300799999) /* the year 9999 */

static bool word_number(struct str *rest, int64_t max, int64_t *out)
{
    struct str word;
    struct err e;
    return str_next_word(rest, &word) && parse_i64(word, 0, max, out, &e) == 0;
}

/* Whole lines only: the last one counts when its line feed is there. */
static bool next_whole_line(struct str *rest, struct str *out)
{
    return rest->n && memchr(rest->p, '\n', rest->n) && str_next_line(rest, out);
}

void task_status_parse(struct str text, struct task_status *out)
{
    *out = (struct task_status){ 0 };
    struct str line, word;
    while (next_whole_line(&text, &line)) {
        int64_t what, when;
        if (!str_next_word(&line, &word))
            continue;
        if (str_is(word, "started") && word_number(&line, TIME_MAX, &when))
            out->started_ms = MAX(when, INT64_C(1));
        bool exited = str_is(word, "exit");
        if ((exited || str_is(word, "signal")) && word_number(&line, 255, &what) &&
            word_number(&line, TIME_MAX, &when)) {
            out->code = exited ? (int)what : 0;
            out->signal = exited ? 0 : (int)what;
            out->ended_ms = MAX(when, INT64_C(1));
        }
        if (str_is(word, "lost") && word_number(&line, INT64_MAX, &what))
            out->lost_bytes = (uint64_t)what;
        if (str_is(word, "failed") && word_number(&line, INT32_MAX, &what)) {
            line = str_trim(line);
            snprintf(out->failed, sizeof out->failed, "%.*s",
                     (int)MIN(line.n, sizeof out->failed - 1), line.p);
        }
    }
}

void task_notes_parse(struct str text, struct task_notes *out)
{
    *out = (struct task_notes){ 0 };
    struct str line, word, why;
    while (next_whole_line(&text, &line)) {
        int64_t when, grace;
        if (!str_next_word(&line, &word) || !word_number(&line, TIME_MAX, &when))
            continue;
        if (str_is(word, "pause") && !out->paused) {
            out->paused = true;
            out->paused_since_ms = when;
        }
        if (str_is(word, "resume") && out->paused) {
            out->paused = false;
            out->paused_ms += MAX(when - out->paused_since_ms, INT64_C(0));
        }
        if (str_is(word, "start"))
            out->started_ms = MAX(when, INT64_C(1));
        enum task_end end;
        if (str_is(word, "stop") && word_number(&line, TIME_MAX, &grace) &&
            str_next_word(&line, &why) && task_end_parse(why, &end)) {
            bool again = out->stopping;
            out->why = again ? out->why : end;
            out->kill_at_ms = again ? MIN(out->kill_at_ms, when + grace) : when + grace;
            out->stopping = true;
        }
    }
}

void task_note_start(struct buf *out, int64_t now_ms)
{
    buf_printf(out, "start %lld\n", (long long)now_ms);
}

void task_note_pause(struct buf *out, int64_t now_ms)
{
    buf_printf(out, "pause %lld\n", (long long)now_ms);
}

void task_note_resume(struct buf *out, int64_t now_ms)
{
    buf_printf(out, "resume %lld\n", (long long)now_ms);
}

void task_note_stop(struct buf *out, int64_t now_ms, enum task_end why, uint64_t grace_ms)
{
    buf_printf(out, "stop %lld %llu %s\n", (long long)now_ms, (unsigned long long)grace_ms,
               task_end_name(why));
}

int64_t task_ran_ms(int64_t started_ms, const struct task_notes *n, int64_t now_ms)
{
    int64_t until = n->paused ? n->paused_since_ms : now_ms;
    return MAX(until - started_ms - n->paused_ms, INT64_C(0));
}

void task_result_write(const struct task_result *r, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "code", r->code);
    json_put_i64(&w, "signal", r->signal);
    json_put_str(&w, "why", str_of(task_end_name(r->why)));
    json_put_i64(&w, "t_ms", r->t_ms);
    json_put_u64(&w, "cpu_ms", r->cpu_ms);
    json_put_u64(&w, "mem_peak_mib", r->mem_peak_mib);
    json_put_u64(&w, "limit", r->limit);
    json_put_u64(&w, "lost_bytes", r->lost_bytes);
    json_end(&w, '}');
    buf_addc(out, '\n');
}

int task_result_read(struct str json, struct task_result *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(json, e);
    if (!doc)
        return -1;
    const struct json *o = json_root(doc);
    int64_t code, signal, t_ms;
    struct str why;
    struct task_result r = { 0 };
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "a result is a JSON object");
    if (json_need_i64(o, "code", 0, 255, &code, e) < 0 ||
        json_need_i64(o, "signal", 0, 255, &signal, e) < 0 ||
        json_need_str(o, "why", 64, &why, e) < 0 ||
        json_need_i64(o, "t_ms", 0, TIME_MAX, &t_ms, e) < 0 ||
        json_need_u64(o, "cpu_ms", UINT64_MAX, &r.cpu_ms, e) < 0 ||
        json_need_u64(o, "mem_peak_mib", UINT64_MAX, &r.mem_peak_mib, e) < 0 ||
        json_get_u64(o, "limit", UINT64_MAX, &r.limit, e) < 0 ||
        json_get_u64(o, "lost_bytes", UINT64_MAX, &r.lost_bytes, e) < 0)
        return -1;
    if (!task_end_parse(why, &r.why))
        return err_set(e, ERR_INVALID, "field 'why': no such reason");
    r.code = (int)code;
    r.signal = (int)signal;
    r.t_ms = t_ms;
    *out = r;
    return 0;
}

static bool path_of(const char *dir, const char *name, char out[static PATH_BYTES])
{
    return snprintf(out, PATH_BYTES, "%s/%s", dir, name) < PATH_BYTES;
}

/* An absent file is an empty one. */
static void read_whole(const char *dir, const char *name, size_t limit, struct buf *out)
{
    char path[PATH_BYTES];
    struct err e;
    buf_free(out);
    *out = BUF(limit);
    if (path_of(dir, name, path) && file_read(path, limit, out, &e) < 0)
        *out = BUF(limit);
}

/* <sys/file.h>, where flock is declared, is hidden by our own folder of that name. */
bool task_lock(int fd)
{
    return syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0;
}

static bool is_locked(const char *dir)
{
    char path[PATH_BYTES];
    AUTO(file_close_p)
    int fd = path_of(dir, "status", path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return fd >= 0 && !task_lock(fd) && errno == EWOULDBLOCK;
}

void task_record_read(const char *dir, struct task_record *out)
{
    char path[PATH_BYTES];
    struct err e;
    *out = (struct task_record){ .found = FOUND_NOTHING };
    if (!path_of(dir, "task.json", path) || access(path, F_OK) < 0)
        return;
    AUTO(buf_free) struct buf text = { 0 };
    read_whole(dir, "notes", NOTES_MAX, &text);
    task_notes_parse(buf_str(&text), &out->notes);
    read_whole(dir, "result.json", RESULT_MAX, &text);
    bool ended = text.n && task_result_read(buf_str(&text), &out->result, &e) == 0;
    bool alive = !ended && is_locked(dir);
    read_whole(dir, "status", STATUS_MAX, &text); /* after the lock: nothing more is coming then */
    task_status_parse(buf_str(&text), &out->status);
    out->found = ended                  ? FOUND_ENDED
               : alive                  ? FOUND_ALIVE
               : out->status.started_ms ? FOUND_OVER
                                        : FOUND_NOT_BEGUN;
}

/* The files of a supervisor, and how large each may be. */
struct written {
    char path[PATH_BYTES];
    uint64_t most;
};
#define WRITTEN_FILES (JOBLOG_SEGMENTS + 2)

static size_t find_written(const char *dir, const char *run, uint64_t log_bytes,
                           struct written out[static WRITTEN_FILES])
{
    char name[16];
    size_t n = 0;
    uint64_t all = log_bytes ? log_bytes : JOBLOG_BYTES_DEFAULT;
    for (int i = 0; i < JOBLOG_SEGMENTS; i++) {
        snprintf(name, sizeof name, "log.%d", i);
        out[n].most = all / JOBLOG_SEGMENTS + JOBLOG_RECORD_MAX;
        n += path_of(dir, name, out[n].path);
    }
    out[n].most = STATUS_MAX;
    n += path_of(dir, "status", out[n].path);
    out[n].most = OUT_LOG_MAX;
    n += path_of(run, "out.log", out[n].path);
    return n;
}

static bool is_within(const struct written *f)
{
    struct stat st;
    return lstat(f->path, &st) < 0 || ((uint64_t)st.st_size <= f->most &&
                                       (uint64_t)st.st_blocks * 512 <= f->most + BLOCKS_SLACK);
}

bool task_output_fits(const char *dir, const char *run, uint64_t log_bytes)
{
    struct written f[WRITTEN_FILES];
    size_t n = find_written(dir, run, log_bytes, f);
    for (size_t i = 0; i < n; i++)
        if (!is_within(&f[i]))
            return false;
    return true;
}

void task_output_cut(const char *dir, const char *run, uint64_t log_bytes)
{
    struct written f[WRITTEN_FILES];
    size_t n = find_written(dir, run, log_bytes, f);
    for (size_t i = 0; i < n; i++)
        if (!is_within(&f[i]) && truncate(f[i].path, (off_t)f[i].most) < 0)
            continue; /* it has gone: then it is within its bound */
}

static int cannot(const char *path, int fd, struct err *e)
{
    int cause = errno;
    if (fd >= 0)
        close(fd);
    return err_set(e, ERR_UNAVAILABLE, "cannot write '%s': %s", path, strerror(cause));
}

static int write_to(const char *path, int flags, struct str text, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, weak_or("file_modes", 0640, 0644));
    if (fd < 0)
        return cannot(path, fd, e);
    ssize_t n = write(fd, text.p, text.n);
    if (n >= 0 && (size_t)n < text.n)
        errno = ENOSPC;
    if (n < 0 || (size_t)n < text.n)
        return cannot(path, fd, e);
    return close(fd) == 0 ? 0 : cannot(path, -1, e);
}

int task_file_put(const char *dir, const char *name, struct str text, struct err *e)
{
    char path[PATH_BYTES], fresh[PATH_BYTES + 4];
    if (!path_of(dir, name, path))
        return err_set(e, ERR_TOO_LARGE, "the path '%s' is too long", dir);
    snprintf(fresh, sizeof fresh, "%s.tmp", path);
    if (write_to(fresh, O_TRUNC, text, e) < 0)
        return -1;
    return rename(fresh, path) == 0 ? 0 : cannot(path, -1, e);
}

int task_file_add(const char *dir, const char *name, struct str text, struct err *e)
{
    char path[PATH_BYTES];
    if (!path_of(dir, name, path))
        return err_set(e, ERR_TOO_LARGE, "the path '%s' is too long", dir);
    return write_to(path, O_APPEND, text, e);
}
