/* act - a verb on several jobs; cmd_act.c and the Slurm words use it. */
#ifndef NS_CLI_ACT_H
#define NS_CLI_ACT_H

#include "cli/jobs.h"

int act_on_job(struct cli *c, uint64_t id, const char *verb, struct str body, struct answer *out,
               struct err *e) MUST_USE;

/* Tries every one; failures are printed, as many as anybody reads, and the last one is returned. */
int act_on_jobs(struct cli *c, const struct ids *ids, const char *verb, struct str body,
                struct err *e) MUST_USE;

/* The jobs of a filter, in the cli's arena. */
int act_find(struct cli *c, const struct job_filter *f, struct ids *out, struct err *e) MUST_USE;

#endif
