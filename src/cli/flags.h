/* flags - what people say about a job on the command line, as a job spec.
 *
 * The result is a patch: laid over a job file (merge.h) it changes what was said and nothing else;
 * laid over nothing it is a spec.  Checks that need the cluster are the server's.
 */
#ifndef NS_CLI_FLAGS_H
#define NS_CLI_FLAGS_H

#include "base/json.h"
#include "base/opts.h"

struct flags {
    const char *gpus, *gpu_type, *gpu_mem, *cpus, *mem, *scratch;
    const char *time, *tenant, *name, *image, *priority, *replicas, *workdir;
    const char *cwd; /* where we are: without a workdir it starts there when it can */
    const char *freeze, *retries, *array, *network, *profile, *begin, *reservation;
    struct opt_list env, volumes, after, devices;
    bool env_all, hold, tty, stdin_open;
};

#define OPTS_FLAGS(type)                                                                               \
    { "gpus,g", OPT_TEXT, offsetof(type, flags.gpus), "N", "GPUs; 0.5: half of one", 0, 0 },           \
        { "gpu-type", OPT_TEXT, offsetof(type, flags.gpu_type), "MODEL", "A100, or A100|V100", 0, 0 }, \
        { "gpu-mem", OPT_TEXT, offsetof(type, flags.gpu_mem), "SIZE", "a share with this memory",      \
          0,         0 },                                                                              \
        { "device",                                                                                    \
          OPT_LIST,                                                                                    \
          offsetof(type, flags.devices),                                                               \
          "NAME=N",                                                                                    \
          "devices, like nvidia.com/mig-1g.5gb=1",                                                     \
          0,                                                                                           \
          0 },                                                                                         \
        { "cpus,c", OPT_TEXT, offsetof(type, flags.cpus), "N", "CPUs of each replica", 0, 0 },         \
        { "mem,m", OPT_TEXT, offsetof(type, flags.mem), "SIZE", "memory, like 16Gi", 0, 0 },           \
        { "scratch", OPT_TEXT, offsetof(type, flags.scratch), "SIZE", "disk under /tmp", 0, 0 },       \
        { "time", OPT_TEXT, offsetof(type, flags.time), "TIME", "ended after it: 8h, 30m", 0, 0 },     \
        { "name", OPT_TEXT, offsetof(type, flags.name), "NAME", "how lists call it", 0, 0 },           \
        { "tenant", OPT_TEXT, offsetof(type, flags.tenant), "NAME", "for which group", 0, 0 },         \
        { "priority",                                                                                  \
          OPT_CHOICE,                                                                                  \
          offsetof(type, flags.priority),                                                              \
          "low|normal|high|urgent",                                                                    \
          "among your own jobs",                                                                       \
          0,                                                                                           \
          0 },                                                                                         \
        { "replicas", OPT_TEXT, offsetof(type, flags.replicas), "N", "equal parts, all at once",       \
          0,          0 },                                                                             \
        { "image",                                                                                     \
          OPT_TEXT,                                                                                    \
          offsetof(type, flags.image),                                                                 \
          "IMAGE",                                                                                     \
          "container image; host: this system",                                                        \
          0,                                                                                           \
          0 },                                                                                         \
        { "env,e", OPT_LIST, offsetof(type, flags.env), "K=V", "a variable; K alone: as here", 0, 0 }, \
        { "env-all", OPT_FLAG, offsetof(type, flags.env_all), NULL, "all variables of this shell",     \
          0,         0 },                                                                              \
        { "volume,v",                                                                                  \
          OPT_LIST,                                                                                    \
          offsetof(type, flags.volumes),                                                               \
          "FROM:TO[:ro]",                                                                              \
          "a folder of the machine inside the job",                                                    \
          0,                                                                                           \
          0 },                                                                                         \
        { "workdir,w", OPT_TEXT, offsetof(type, flags.workdir), "DIR", "where it runs", 0, 0 },        \
        { "freeze",                                                                                    \
          OPT_TEXT,                                                                                    \
          offsetof(type, flags.freeze),                                                                \
          "MODE",                                                                                      \
          "pause, signal[:USR1], requeue or none",                                                     \
          0,                                                                                           \
          0 },                                                                                         \
        { "retries", OPT_TEXT, offsetof(type, flags.retries), "N", "starts again when it fails",       \
          0,         0 },                                                                              \
        { "network", OPT_CHOICE, offsetof(type, flags.network), "tenant|none", "what it can reach",    \
          0,         0 },                                                                              \
        { "profile", OPT_TEXT, offsetof(type, flags.profile), "NAME", "a set of defaults", 0, 0 },     \
        { "hold", OPT_FLAG, offsetof(type, flags.hold), NULL, "wait until released", 0, 0 },           \
        { "begin",                                                                                     \
          OPT_TEXT,                                                                                    \
          offsetof(type, flags.begin),                                                                 \
          "TIME",                                                                                      \
          "not before: now+2h, '2026-03-01 22:00'",                                                    \
          0,                                                                                           \
          0 },                                                                                         \
        { "reservation",                                                                               \
          OPT_TEXT,                                                                                    \
          offsetof(type, flags.reservation),                                                           \
          "NAME",                                                                                      \
          "run in this reservation",                                                                   \
          0,                                                                                           \
          0 },                                                                                         \
        { "after",                                                                                     \
          OPT_LIST,                                                                                    \
          offsetof(type, flags.after),                                                                 \
          "[ok:|any:|bad:]JOB",                                                                        \
          "start when that has succeeded, ended, failed",                                              \
          0,                                                                                           \
          0 },                                                                                         \
    {                                                                                                  \
        "array", OPT_TEXT, offsetof(type, flags.array), "0-9", "one job for each index", 0, 0          \
    }

/* `begin`, as people here write it; NULL: nothing. */
int flags_put_begin(struct json_out *w, const char *text, struct err *e) MUST_USE;
void flags_put_list(struct json_out *w, const char *key, const struct opt_list *list);

/* Members of an object that was begun. */
int flags_put(const struct flags *f, struct json_out *w, struct err *e) MUST_USE;

/* `env`: of the process, ends with NULL.  The variables of a job: those named, all of them with
 * env_all, and else the few that make a program behave as it does here (language, terminal, the
 * Python environment that is active). */
int flags_put_env(const struct flags *f, const char *const *env, bool defaults, struct json_out *w,
                  struct err *e) MUST_USE;

/* A name for lists out of a command line: "train.py" for "python3 train.py". */
void flags_default_name(const char *const *argv, size_t n, char out[static 64]);

#endif
