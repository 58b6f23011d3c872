/* gpu_process - who uses a GPU: each process that the driver lists, with its owner and its task.
 *
 * A process belongs to a task when a part "nightshift/<task>" of its cgroup's path says so; one of a
 * task that has ended, or of none, is what keeps a GPU busy for nobody.
 * A process may end while we look: then only its number and memory are known, and `gone` is set.  A
 * number alone does not name a process for long; number and start time together do.
 */
#ifndef NS_NODE_GPU_PROCESS_H
#define NS_NODE_GPU_PROCESS_H

#include "base/str.h"
#include "node/nvml.h"

#define GPU_PROCESSES_MAX 512 /* of one GPU */

struct gpu_process {
    uint32_t gpu; /* index */
    int32_t pid;
    int64_t mem_mib; /* -1: not known */
    bool graphics;   /* else compute */
    bool gone;       /* what is below is not known */
    uint32_t uid;
    char user[64];     /* its name, or the number */
    char command[256]; /* arguments with blanks between; a thread's name in brackets without them */
    char cgroup[512];
    char task[64];    /* "17.1.0"; empty: none of ours */
    int64_t start_ms; /* since 1970; 0: not known */
};

/* Fills in what /proc (or the folder that stands for it) tells about `pid`.  A process that ended is
 * no failure: it is `gone`. */
void gpu_process_look(const char *proc, int32_t pid, struct gpu_process *out);

/* All on one GPU, at most GPU_PROCESSES_MAX; *out_list is the caller's to free. */
int gpu_process_list(struct nvml *n, uint32_t gpu, const char *proc, struct gpu_process **out_list,
                     size_t *out_n, struct err *e) MUST_USE;

/* The task in a cgroup's path: "/sys.slice/nightshift/17.1.0/x" -> "17.1.0"; false when none is. */
bool gpu_process_task(struct str cgroup_path, char out[static 64]);
/* The same where our folder is called otherwise. */
bool gpu_process_task_in(struct str cgroup_path, const char *folder, char out[static 64]);
/* The task of a process; empty when it has none or is gone. */
void gpu_process_task_of(const char *proc, int32_t pid, const char *folder, char out[static 64]);

#endif
