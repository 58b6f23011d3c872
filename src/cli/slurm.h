/* slurm - what people say to Slurm about a job, read and turned into our job spec.
 *
 * Options mean what they mean to Slurm where we have the same thing; those that mean nothing here
 * are taken with a notice, and those whose absence would change what happens are refused.  Pure but for the notices, which the caller prints.
 */
#ifndef NS_CLI_SLURM_H
#define NS_CLI_SLURM_H

#include "base/arena.h"
#include "base/json.h"
#include "base/opts.h"

#define SLURM_SCRIPT_MAX (96u << 10) /* one argument of a program may have 128 KiB */

/* What is taken and means nothing here. */
struct slurm_ignored {
    const char *partition, *qos, *mail_type, *mail_user, *constraint, *nice, *comment, *open_mode;
    const char *ntasks_per_node, *nodelist, *exclude, *priority, *threads, *licenses;
    bool exclusive, verbose, quiet, unbuffered, overcommit;
};

struct slurm_job {
    const char *name, *gres, *gpus, *gpus_per_node, *gpus_per_task;
    const char *cpus, *mem, *mem_per_cpu, *mem_per_gpu, *time, *output, *error, *input;
    const char *array, *account, *chdir, *export_, *nodes, *ntasks, *wrap;
    bool hold, requeue, no_requeue;
    const char *dependency, *begin, *reservation;
    struct opt_list after; /* what became of the dependency: see slurm_dependency */
    struct slurm_ignored ignored;
};

/* The options that sbatch and srun share. */
#define OPTS_SLURM_JOB(type)                                                                           \
    { "job-name,J", OPT_TEXT, offsetof(type, job.name), "NAME", "how lists call it", 0, 0 },           \
        { "gres", OPT_TEXT, offsetof(type, job.gres), "gpu[:TYPE]:N", "GPUs of each node", 0, 0 },     \
        { "gpus,G", OPT_TEXT, offsetof(type, job.gpus), "[TYPE:]N", "GPUs in all", 0, 0 },             \
        { "gpus-per-node",                                                                             \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.gpus_per_node),                                                           \
          "[TYPE:]N",                                                                                  \
          "GPUs of each node",                                                                         \
          0,                                                                                           \
          0 },                                                                                         \
        { "gpus-per-task",                                                                             \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.gpus_per_task),                                                           \
          "[TYPE:]N",                                                                                  \
          "GPUs of each task",                                                                         \
          0,                                                                                           \
          0 },                                                                                         \
        { "cpus-per-task,c", OPT_TEXT, offsetof(type, job.cpus), "N", "CPUs of each task", 0, 0 },     \
        { "mem", OPT_TEXT, offsetof(type, job.mem), "SIZE", "memory (M, G; a number is M)", 0, 0 },    \
        { "mem-per-cpu", OPT_TEXT, offsetof(type, job.mem_per_cpu), "SIZE", "for each CPU", 0, 0 },    \
        { "mem-per-gpu", OPT_TEXT, offsetof(type, job.mem_per_gpu), "SIZE", "for each GPU", 0, 0 },    \
        { "time,t",                                                                                    \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.time),                                                                    \
          "TIME",                                                                                      \
          "minutes, H:M:S, D-H, D-H:M, D-H:M:S",                                                       \
          0,                                                                                           \
          0 },                                                                                         \
        { "account,A", OPT_TEXT, offsetof(type, job.account), "NAME", "the tenant", 0, 0 },            \
        { "chdir,D", OPT_TEXT, offsetof(type, job.chdir), "DIR", "where it runs", 0, 0 },              \
        { "export",                                                                                    \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.export_),                                                                 \
          "ALL|NONE|K=V,K",                                                                            \
          "variables that it gets (ALL)",                                                              \
          0,                                                                                           \
          0 },                                                                                         \
        { "nodes,N", OPT_TEXT, offsetof(type, job.nodes), "N", "machines", 0, 0 },                     \
        { "ntasks,n", OPT_TEXT, offsetof(type, job.ntasks), "N", "tasks", 0, 0 },                      \
        { "output,o", OPT_TEXT, offsetof(type, job.output), "FILE", "%j %A %a %x %u %N", 0, 0 },       \
        { "error,e", OPT_TEXT, offsetof(type, job.error), "FILE", "like --output", 0, 0 },             \
        { "hold,H", OPT_FLAG, offsetof(type, job.hold), NULL, "wait until released", 0, 0 },           \
        { "requeue", OPT_FLAG, offsetof(type, job.requeue), NULL, "may run again", 0, 0 },             \
        { "no-requeue", OPT_FLAG, offsetof(type, job.no_requeue), NULL, "may not", 0, 0 },             \
        { "dependency,d",                                                                              \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.dependency),                                                              \
          "LIST",                                                                                      \
          "afterok:17,afterany:18,afternotok:19",                                                      \
          0,                                                                                           \
          0 },                                                                                         \
        { "begin",                                                                                     \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.begin),                                                                   \
          "TIME",                                                                                      \
          "now+1hour, 22:00, 2026-03-01T22:00",                                                        \
          0,                                                                                           \
          0 },                                                                                         \
        { "reservation", OPT_TEXT, offsetof(type, job.reservation), "NAME", "run in it", 0, 0 },       \
        { "partition,p", OPT_TEXT, offsetof(type, job.ignored.partition), "NAME", "ignored", 0, 0 },   \
        { "qos,q", OPT_TEXT, offsetof(type, job.ignored.qos), "NAME", "ignored", 0, 0 },               \
        { "mail-type", OPT_TEXT, offsetof(type, job.ignored.mail_type), "LIST", "ignored", 0, 0 },     \
        { "mail-user", OPT_TEXT, offsetof(type, job.ignored.mail_user), "NAME", "ignored", 0, 0 },     \
        { "constraint,C", OPT_TEXT, offsetof(type, job.ignored.constraint), "LIST", "ignored", 0, 0 }, \
        { "nice", OPT_TEXT, offsetof(type, job.ignored.nice), "N", "ignored", 0, 0 },                  \
        { "comment", OPT_TEXT, offsetof(type, job.ignored.comment), "TEXT", "ignored", 0, 0 },         \
        { "open-mode", OPT_TEXT, offsetof(type, job.ignored.open_mode), "MODE", "ignored", 0, 0 },     \
        { "ntasks-per-node",                                                                           \
          OPT_TEXT,                                                                                    \
          offsetof(type, job.ignored.ntasks_per_node),                                                 \
          "N",                                                                                         \
          "ignored",                                                                                   \
          0,                                                                                           \
          0 },                                                                                         \
        { "nodelist,w", OPT_TEXT, offsetof(type, job.ignored.nodelist), "LIST", "ignored", 0, 0 },     \
        { "exclude,x", OPT_TEXT, offsetof(type, job.ignored.exclude), "LIST", "ignored", 0, 0 },       \
        { "priority", OPT_TEXT, offsetof(type, job.ignored.priority), "N", "ignored", 0, 0 },          \
        { "threads-per-core", OPT_TEXT, offsetof(type, job.ignored.threads), "N", "ignored", 0, 0 },   \
        { "licenses,L", OPT_TEXT, offsetof(type, job.ignored.licenses), "LIST", "ignored", 0, 0 },     \
        { "exclusive", OPT_FLAG, offsetof(type, job.ignored.exclusive), NULL, "ignored", 0, 0 },       \
        { "verbose,v", OPT_FLAG, offsetof(type, job.ignored.verbose), NULL, "ignored", 0, 0 },         \
        { "quiet,Q", OPT_FLAG, offsetof(type, job.ignored.quiet), NULL, "ignored", 0, 0 },             \
        { "unbuffered,u", OPT_FLAG, offsetof(type, job.ignored.unbuffered), NULL, "ignored", 0, 0 },   \
    {                                                                                                  \
        "overcommit,O", OPT_FLAG, offsetof(type, job.ignored.overcommit), NULL, "ignored", 0, 0        \
    }

/* The next #SBATCH line of a script: its words, quotes undone, in `a`.  1, or 0: no more, or -1. */
struct slurm_script {
    struct str rest;
    size_t line; /* of the last one, from 1 */
};
int slurm_next_line(struct slurm_script *s, struct arena *a, const char ***out_words, size_t *out_n,
                    struct err *e) MUST_USE;

/* What is run: a script's text with its arguments, or a command. */
struct slurm_program {
    struct str script; /* n 0: none */
    const char *const *args;
    size_t n_args;
    bool tasks;      /* srun: -n makes replicas; sbatch: it only counts CPUs */
    bool write_file; /* output goes to files, as sbatch has it */
    bool tty, stdin_open;
};

/* The spec of the job; `env` of the process.  Notices (lines for the person) are added to *notes. */
int slurm_spec(const struct slurm_job *j, const struct slurm_program *p, const char *const *env,
               struct buf *out, struct buf *notes, struct err *e) MUST_USE;

/* ---- parts, for tests ---- */

int slurm_time_seconds(struct str text, uint64_t *out, struct err *e) MUST_USE; /* 0: no limit */
/* afterok:17:18_3,afterany:19 as ok:17 ok:18_3 any:19, in `a`. */
int slurm_dependency(const char *text, struct arena *a, struct opt_list *out, struct err *e)
    MUST_USE;
int slurm_memory_mib(struct str text, uint64_t *out, struct err *e) MUST_USE;
/* gpu:2, gpu:a100:2, a100:2, 2; *out_type is empty when none is named. */
int slurm_gpus(struct str text, struct str *out_type, uint64_t *out_n, struct err *e) MUST_USE;
/* A file name with %j and the like as an expression of the shell. */
void slurm_file_expression(const char *pattern, struct buf *out);

#endif
