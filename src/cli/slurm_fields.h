/* slurm_fields - columns of squeue and sacct: one table with their letters, names and printers. */
#ifndef NS_CLI_SLURM_FIELDS_H
#define NS_CLI_SLURM_FIELDS_H

#include "cli/job.h"

struct slurm_row {
    const struct job *job;
    const char *id; /* as shown: 17, 17_3, 17_[0-9] */
    int64_t now_ms;
};

/* One column of a format that was asked for. */
struct slurm_column {
    const struct slurm_field *field;
    const char *title;
    unsigned width; /* 0: as wide as it is */
    bool right;
    struct str before; /* text of the format in front of it */
};

#define SLURM_COLUMNS_MAX 40
struct slurm_format {
    struct slurm_column column[SLURM_COLUMNS_MAX];
    size_t n;
    struct str after;
};

/* "%.18i %.9P %j": as squeue's --format.  Borrows from the text. */
int slurm_format_letters(const char *text, struct slurm_format *out, struct err *e) MUST_USE;

/* "JobID,State%20,ExitCode": as sacct's. */
int slurm_format_names(const char *text, struct slurm_format *out, struct err *e) MUST_USE;

void slurm_print_titles(const struct slurm_format *f, struct buf *out);
void slurm_print_row(const struct slurm_format *f, const struct slurm_row *row, struct buf *out);

/* sacct -P: between bars, nothing cut.  `row` NULL: the titles. */
void slurm_print_bars(const struct slurm_format *f, const struct slurm_row *row, struct buf *out);

/* 1-02:03:04, 02:03:04, 3:04: as Slurm writes times.  `full`: always hours. */
const char *slurm_duration(int64_t ms, bool full, char out[static 32]);

/* PD, PENDING, pending … as our own words, "queued,held"; NULL when unknown. */
const char *slurm_state_words(struct str word);

/* A list of them, as the server's filter has it. */
int slurm_states(const char *list, struct buf *out, struct err *e) MUST_USE;

#endif
