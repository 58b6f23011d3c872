/* jobs - lists of jobs from the server, page by page, and the ids that people named. */
#ifndef NS_CLI_JOBS_H
#define NS_CLI_JOBS_H

#include "cli/cli.h"
#include "cli/job.h"

struct job_filter {
    const char *states; /* "running,queued", "all"; NULL: those that have not ended */
    const char *user, *tenant, *name;
    uint64_t array;   /* 0: any */
    uint64_t limit;   /* 0: all (up to a million) */
    uint64_t before;  /* only smaller numbers; 0: from the newest */
    int64_t since_ms; /* ended ones only when they ended after this; 0: any */
};

struct jobs {
    struct job *v; /* newest first, as the server has them */
    size_t n, cap;
    struct json_doc **docs; /* which the jobs borrow from */
    size_t n_docs, cap_docs;
    bool more; /* the limit cut it off */
};
void jobs_clear(struct jobs *j); /* for AUTO */

int jobs_fetch(struct cli *c, const struct job_filter *f, struct jobs *out, struct err *e) MUST_USE;
/* Of those that the filter lets pass the named ones, by number or as an array's; no refs: all. */
int jobs_fetch_named(struct cli *c, const struct job_filter *f, const struct words *refs,
                     struct jobs *out, struct err *e) MUST_USE;
/* Splits "17,18_3" into words, in the cli's arena. */
int jobs_split_refs(struct cli *c, const char *list, struct words *out, struct err *e) MUST_USE;
/* Puts those of a second list behind the first that are older than all of it, and empties it. */
void jobs_add_older(struct jobs *j, struct jobs *from);

/* The path of the first page, for those who want the answer as it is. */
void jobs_path(const struct job_filter *f, uint64_t before, struct buf *out);

/* Ids (17, 3-7, 17_3, 17_*) as job numbers, in the cli's arena.  Elements of arrays are looked up. */
struct ids {
    uint64_t *v;
    size_t n;
};
int jobs_resolve(struct cli *c, struct words refs, struct ids *out, struct err *e) MUST_USE;
int jobs_resolve_one(struct cli *c, const char *ref, uint64_t *out, struct err *e) MUST_USE;

/* Jobs that lie together, belong to one array and are in one state: how many from `i` on. */
size_t jobs_array_run(const struct jobs *j, size_t i);

/* 17_[0-3,5] for `n` of them from `i` on. */
void jobs_add_array_text(const struct jobs *j, size_t i, size_t n, struct buf *out);

#endif
