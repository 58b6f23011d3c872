#include "control/environ.h"

#include <stdio.h>

#define VARIABLES_MAX 64
#define MASTER_PORT 29500 /* replicas on one machine share a network of their own */

struct list {
    const struct environ_of *of;
    struct arena *a;
    const char **at;
    size_t n;
};

static bool set_by_user(const struct list *l, const char *key)
{
    size_t n = strlen(key);
    for (uint32_t i = 0; i < l->of->spec->n_env; i++)
        if (strncmp(l->of->spec->env[i], key, n) == 0 && l->of->spec->env[i][n] == '=')
            return true;
    return false;
}

static void put(struct list *l, const char *key, const char *value)
{
    if (l->n + 1 < VARIABLES_MAX && !set_by_user(l, key))
        l->at[l->n++] = arena_printf(l->a, "%s=%s", key, value);
}

static void put_u64(struct list *l, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put(l, key, text);
}

static void put_str(struct list *l, const char *key, struct str value)
{
    put(l, key, arena_strndup(l->a, value.p, value.n));
}

/* Replicas on the node of this one, and this one's number among them. */
static void local_rank(const struct environ_of *of, uint32_t *out_rank, uint32_t *out_size)
{
    uint32_t node = of->slots[of->task.replica].node;
    *out_rank = *out_size = 0;
    for (uint32_t i = 0; i < of->n_slots; i++)
        if (of->slots[i].node == node) {
            *out_rank += i < of->task.replica;
            (*out_size)++;
        }
}

static void put_ranks(struct list *l)
{
    const struct environ_of *of = l->of;
    uint32_t rank, size;
    if (of->n_slots < 2)
        return;
    local_rank(of, &rank, &size);
    put(l, "MASTER_ADDR", "127.0.0.1");
    put_u64(l, "MASTER_PORT", MASTER_PORT);
    put_u64(l, "RANK", of->task.replica);
    put_u64(l, "WORLD_SIZE", of->n_slots);
    put_u64(l, "LOCAL_RANK", rank);
    put_u64(l, "LOCAL_WORLD_SIZE", size);
}

/* So that a script written for Slurm runs unchanged. */
static void put_slurm(struct list *l)
{
    const struct environ_of *of = l->of;
    const struct request *r = &of->spec->request;
    uint32_t rank, size;
    local_rank(of, &rank, &size);
    put_u64(l, "SLURM_JOB_ID", of->task.job);
    put_u64(l, "SLURM_JOBID", of->task.job);
    put_str(l, "SLURM_JOB_NAME", of->name);
    put_str(l, "SLURM_JOB_ACCOUNT", of->tenant);
    put_str(l, "SLURM_JOB_USER", of->user);
    put_u64(l, "SLURM_PROCID", of->task.replica);
    put_u64(l, "SLURM_LOCALID", rank);
    put_u64(l, "SLURM_NTASKS", of->n_slots);
    put_u64(l, "SLURM_CPUS_PER_TASK", MAX(r->cpu_milli / 1000, 1u));
    put_u64(l, "SLURM_RESTART_COUNT", of->restarts);
    if (r->gpus)
        put_u64(l, "SLURM_GPUS_ON_NODE", (uint64_t)r->gpus * size);
    if (of->spec->workdir.n)
        put_str(l, "SLURM_SUBMIT_DIR", of->spec->workdir);
    if (of->array) {
        put_u64(l, "SLURM_ARRAY_JOB_ID", of->array);
        put_u64(l, "SLURM_ARRAY_TASK_ID", of->array_index);
    }
}

const char *const *environ_make(const struct environ_of *of, struct arena *a)
{
    struct list l = { .of = of, .a = a, .at = arena_array(a, const char *, VARIABLES_MAX + 1) };
    put_u64(&l, "NIGHTSHIFT_JOB_ID", of->task.job);
    put_u64(&l, "NIGHTSHIFT_REPLICA", of->task.replica);
    put_str(&l, "NIGHTSHIFT_TENANT", of->tenant);
    put_str(&l, "NIGHTSHIFT_USER", of->user);
    put_str(&l, "NIGHTSHIFT_JOB_NAME", of->name);
    put_u64(&l, "NIGHTSHIFT_RESTART", of->restarts);
    put_u64(&l, "NIGHTSHIFT_FREEZE_SIGNAL", (uint64_t)of->spec->freeze_signal);
    if (of->array) {
        put_u64(&l, "NIGHTSHIFT_ARRAY_ID", of->array);
        put_u64(&l, "NIGHTSHIFT_ARRAY_INDEX", of->array_index);
    }
    put_ranks(&l);
    put_slurm(&l);
    return l.at;
}
