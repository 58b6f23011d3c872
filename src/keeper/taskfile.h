/* taskfile - what is written down about a task, in STATE/tasks/T, so that any keeper can go on.
 *
 *   task.json    the request, there before anything else
 *   status       nightshift-init's: started, exit, signal; locked while the task lives
 *   notes        ours: start (of those with a time limit), pause, resume and stop, with the time
 *   result.json  how it ended; from then on nothing of it runs
 *   log.0 … 3    its output (wire/joblog.h)
 *
 * Reading takes any bytes: a line that was cut off by a crash counts as not written.  Nothing is
 * flushed to the disk here: when the machine goes down, so do the tasks.
 */
#ifndef NS_KEEPER_TASKFILE_H
#define NS_KEEPER_TASKFILE_H

#include "base/buf.h"
#include "engine/engine.h"

#define STATUS_MAX 65536u
#define NOTES_MAX (1u << 20)
#define RESULT_MAX 4096u

/* How the status file has it. */
struct task_status {
    int64_t started_ms;  /* 0: the program was never begun */
    int64_t ended_ms;    /* 0: no end is written */
    int code, signal;    /* of the end */
    uint64_t lost_bytes; /* of its output: the disk was full */
    char failed[160];    /* why the program could not be executed; "" when it could */
};
void task_status_parse(struct str text, struct task_status *out);

struct task_notes {
    int64_t started_ms; /* by our own clock; 0: not noted */
    bool paused, stopping;
    int64_t paused_since_ms; /* when paused */
    int64_t paused_ms;       /* in pauses that are over */
    enum task_end why;       /* when stopping: the first reason given */
    int64_t kill_at_ms;      /* when stopping: the earliest end of a grace */
};
void task_notes_parse(struct str text, struct task_notes *out);
void task_note_start(struct buf *out, int64_t now_ms);
void task_note_pause(struct buf *out, int64_t now_ms);
void task_note_resume(struct buf *out, int64_t now_ms);
void task_note_stop(struct buf *out, int64_t now_ms, enum task_end why, uint64_t grace_ms);

/* How long it has run since it started, pauses left out. */
int64_t task_ran_ms(int64_t started_ms, const struct task_notes *n, int64_t now_ms);

struct task_result {
    int code, signal; /* code when signal is 0 */
    enum task_end why;
    int64_t t_ms;
    uint64_t cpu_ms, mem_peak_mib, lost_bytes;
    uint64_t limit; /* of processes, when that is why; 0: not known */
};
void task_result_write(const struct task_result *r, struct buf *out);
int task_result_read(struct str json, struct task_result *out, struct err *e) MUST_USE;

/* What a new keeper finds. */
enum task_found {
    FOUND_NOTHING,   /* no task.json: only a log, or nothing */
    FOUND_ENDED,     /* result.json */
    FOUND_ALIVE,     /* status is locked */
    FOUND_OVER,      /* it was begun, is gone, and nobody wrote the result */
    FOUND_NOT_BEGUN, /* nothing of the user's program ran */
};
struct task_record {
    enum task_found found;
    struct task_status status;
    struct task_notes notes;
    struct task_result result; /* FOUND_ENDED */
};
void task_record_read(const char *dir, struct task_record *out);

/* What its supervisor writes is on our disk, and the supervisor runs as the user: whether all of it is
 * within the bound.  `run` is where out.log is. */
bool task_output_fits(const char *dir, const char *run, uint64_t log_bytes);
void task_output_cut(const char *dir, const char *run, uint64_t log_bytes); /* to that bound */

/* On an open status file.  Goes with the last copy of the descriptor, in whatever process. */
bool task_lock(int fd);

/* Whole files.  -1 names the path. */
int task_file_put(const char *dir, const char *name, struct str text, struct err *e) MUST_USE;
int task_file_add(const char *dir, const char *name, struct str text, struct err *e) MUST_USE;

#endif
