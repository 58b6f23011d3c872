/* job - a job as the server shows it, and the ids that people write.
 *
 * Strings are borrowed from the document.
 */
#ifndef NS_CLI_JOB_H
#define NS_CLI_JOB_H

#include "base/json.h"
#include "cli/table.h"

/* id, the server's word, Slurm's letters, Slurm's long word, has ended, colour */
#define JOB_WORDS(X)                                                                               \
    X(HELD, "held", "PD", "PENDING", false, WAIT)                                                  \
    X(QUEUED, "queued", "PD", "PENDING", false, WAIT)                                              \
    X(STARTING, "starting", "CF", "CONFIGURING", false, WAIT)                                      \
    X(RUNNING, "running", "R", "RUNNING", false, GOOD)                                             \
    X(FREEZING, "freezing", "S", "SUSPENDED", false, COLD)                                         \
    X(PAUSED, "paused", "S", "SUSPENDED", false, COLD)                                             \
    X(FROZEN, "frozen", "S", "SUSPENDED", false, COLD)                                             \
    X(THAWING, "thawing", "S", "SUSPENDED", false, COLD)                                           \
    X(STOPPING, "stopping", "CG", "COMPLETING", false, WAIT)                                       \
    X(SUCCEEDED, "succeeded", "CD", "COMPLETED", true, FAINT)                                      \
    X(FAILED, "failed", "F", "FAILED", true, BAD)                                                  \
    X(CANCELLED, "cancelled", "CA", "CANCELLED", true, FAINT)                                      \
    X(UNKNOWN, "unknown", "??", "UNKNOWN", false, NONE)
enum job_word {
#define X(id, name, letters, slurm, ended, colour) JOB_IS_##id,
    JOB_WORDS(X)
#undef X
    JOB_WORD_COUNT
};

struct job_word_info {
    const char *name, *letters, *slurm;
    bool ended;
    enum tint tint;
};
const struct job_word_info *job_word_info(enum job_word w);

struct job {
    uint64_t id, run, replicas, gpu_milli;
    struct str name, tenant, user, priority, reason, reason_text, end, message;
    enum job_word state;
    int64_t submitted_ms, started_ms, ended_ms; /* 0: not yet */
    int64_t exit_code;                          /* -1: none */
    int64_t exit_signal;                        /* 0: none */
    uint64_t array;                             /* id of its first, or 0 */
    int64_t array_index;                        /* -1: not of an array */
    const struct json *where;                   /* list of {node, gpus, milli}, or NULL */
};
void job_read(const struct json *obj, struct job *out);

/* 17, or 17_3 for an element of an array. */
const char *job_id_text(const struct job *j, char out[static 48]);

/* How long it runs or ran; 0 when it never did. */
int64_t job_elapsed_ms(const struct job *j, int64_t now_ms);

/* desk1:0,1 desk2:0 */
void job_add_where(const struct job *j, struct buf *out);

/* Who has a GPU: "17 ana train (0.5)"; of others' jobs only what may be seen. */
void job_add_holder(const struct json *holder, struct buf *out);

/* Slurm's word of how it ended, which knows more than the state: TIMEOUT, OUT_OF_MEMORY, … */
const char *job_slurm_state(const struct job *j);

/* What a shell would say: the exit code, or 128 + the signal; 1 when it failed without either. */
int job_shell_code(const struct job *j);

/* ---- ids ---- */

/* 17; 3-7; 17_3 and 17_[0-3] (elements of the array whose first job is 17); 17_* (all of it). */
struct job_ref {
    uint64_t first, last; /* jobs; of an array: first == last == its first job */
    bool is_array, all;
    uint64_t index_from, index_to;
};
#define JOB_RANGE_MAX 10000
int job_ref_parse(const char *text, struct job_ref *out, struct err *e) MUST_USE;

#endif
