#include "node/load.h"
#include "node/instance.h"

#include <stdio.h>
#include <unistd.h>

#include "node/gpu_process.h"
#include "node/health.h"
#include "node/pods.h"
#include "node/split.h"
#include "node/usage.h"
#include "sys/file.h"

#define DRIVER_AGAIN_NS (INT64_C(30) * 1000000000) /* a driver that does not work is tried again */
#define CACHE_MAX 1024

/* Whose a process on a GPU is, a task's or a pod's; forgotten in the first sample that does not have it, so that a
 * number that is used again is looked up again. */
struct owner {
    int32_t pid;
    bool seen;
    char who[REPORT_WHO_MAX];
};

/* The simulated GPUs of a task. */
struct given {
    char task[40];
    uint64_t mask;
    bool seen;
};

struct load {
    struct load_config config;
    struct instance instance;
    bool named; /* the group, by the settings */
    struct nvml *nvml;
    struct report_head *head;
    struct gpu_list list;
    struct usage *usage;
    struct pods *pods;
    char proc[300];
    struct health health;
    struct health_facts facts;
    int64_t tried_ns; /* when the driver was last opened */
    uint64_t xid[REPORT_GPUS_MAX];
    uint64_t loads_since_us;
    struct owner owner[CACHE_MAX];
    size_t owners;
    struct given given[REPORT_TASKS_MAX];
    size_t givens;
    struct nvml_process *found;
    struct nvml_process_load *loads;
    struct split_process *parts;
};

static void fill_head(struct load *l)
{
    l->head->gpus = MIN(l->list.n, REPORT_GPUS_MAX);
    for (uint32_t i = 0; i < l->head->gpus; i++) {
        const struct gpu_info *g = &l->list.gpu[i];
        struct report_gpu *to = &l->head->gpu[i];
        *to = (struct report_gpu){ .index = g->index,
                                   .mem_mib = g->mem_mib,
                                   .power_limit_mw = g->simulated ? 400000 : REPORT_UNKNOWN };
        snprintf(to->uuid, sizeof to->uuid, "%s", g->uuid);
        snprintf(to->name, sizeof to->name, "%s", g->name);
    }
}

static void open_driver(struct load *l, int64_t mono_ns)
{
    struct err e = { 0 };
    l->tried_ns = mono_ns;
    l->facts.driver = NVML_NONE;
    l->nvml = nvml_open(l->config.want.nvml_path, &l->facts.driver, &e);
    if (l->nvml && gpu_list_read(l->nvml, &l->list, &e) < 0) {
        l->facts.driver = NVML_OTHER;
        l->nvml = nvml_close(l->nvml);
    }
    l->facts.driver_why = e;
    if (!l->nvml)
        return;
    struct nvml_sample s;
    l->facts.broken = l->list.n_broken ? l->list.broken : (struct err){ 0 };
    fill_head(l);
    for (uint32_t i = 0; i < l->head->gpus; i++)
        if (nvml_sample(l->nvml, l->head->gpu[i].index, &s, NULL, &e) == 0)
            l->head->gpu[i].power_limit_mw = s.power_limit_mw;
    uint32_t index;
    uint64_t xid;
    (void)nvml_next_xid(l->nvml, &index, &xid); /* from now on they are told */
}

/* The keeper draws its name when it comes first, perhaps after us. */
static void find_instance(struct load *l)
{
    if (!l->named)
        (void)instance_read(l->config.state, &l->instance);
}

struct load *load_new(const struct load_config *c, struct err *e)
{
    struct load *l = xcalloc(1, sizeof *l);
    struct machine m;
    const char *root = c->want.root ? c->want.root : "";
    l->config = *c;
    l->head = report_head_new();
    l->found = xcalloc(GPU_PROCESSES_MAX, sizeof *l->found);
    l->loads = xcalloc(GPU_PROCESSES_MAX, sizeof *l->loads);
    l->parts = xcalloc(GPU_PROCESSES_MAX, sizeof *l->parts);
    snprintf(l->proc, sizeof l->proc, "%s/proc", root);
    l->pods = pods_new(&(struct pods_places){ c->kubelet, c->pod_logs, l->proc,
                                              c->kube_prefix ? c->kube_prefix : "" });
    l->named = c->cgroup != NULL;
    if (!l->named)
        l->config.cgroup = l->instance.cgroup;
    find_instance(l);
    l->usage =
        usage_new(&(struct usage_places){ root, c->cgroup_root, l->config.cgroup, c->state });
    if (machine_read(root, &m, e) < 0)
        return load_free(l);
    snprintf(l->head->node, sizeof l->head->node, "%s", c->want.name ? c->want.name : m.host);
    snprintf(l->head->boot, sizeof l->head->boot, "%s", m.boot_id[0] ? m.boot_id : "-");
    snprintf(l->head->version, sizeof l->head->version, "%s", NS_VERSION);
    l->tried_ns = INT64_MIN / 2;
    if (c->want.simulated.count) {
        l->head->simulated = true;
        if (gpu_list_simulate(&c->want.simulated, l->head->node, &l->list, e) < 0)
            return load_free(l);
        fill_head(l);
    }
    return l;
}

struct load *load_free(struct load *l)
{
    if (!l)
        return NULL;
    nvml_close(l->nvml);
    usage_free(l->usage);
    pods_free(l->pods);
    free(l->head);
    free(l->found);
    free(l->loads);
    free(l->parts);
    free(l);
    return NULL;
}

void load_free_p(struct load **l)
{
    *l = load_free(*l);
}

const struct report_head *load_head(const struct load *l)
{
    return l->head;
}

/* ---- whose a process is ---- */

static const char *owner_of(struct load *l, int32_t pid)
{
    char task[64];
    for (size_t i = 0; i < l->owners; i++)
        if (l->owner[i].pid == pid) {
            l->owner[i].seen = true;
            return l->owner[i].who;
        }
    if (l->owners == CACHE_MAX)
        return "";
    struct owner *o = &l->owner[l->owners++];
    *o = (struct owner){ .pid = pid, .seen = true };
    gpu_process_task_of(l->proc, pid, l->config.cgroup, task);
    if (task[0])
        snprintf(o->who, sizeof o->who, "%s", task);
    else if (pods_of_process(l->pods, pid, o->who) == PODS_UNKNOWN)
        o->seen = false; /* looked up again: its name comes with its log */
    return o->who;
}

static void forget_owners(struct load *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->owners; i++) {
        if (!l->owner[i].seen)
            continue;
        l->owner[kept] = l->owner[i];
        l->owner[kept++].seen = false;
    }
    l->owners = kept;
}

/* ---- real GPUs ---- */

static size_t add_process(struct load *l, size_t n, int32_t pid)
{
    l->parts[n] = (struct split_process){ .percent = REPORT_UNKNOWN, .mem_mib = REPORT_UNKNOWN };
    snprintf(l->parts[n].who, sizeof l->parts[n].who, "%s", owner_of(l, pid));
    return n + 1;
}

/* What the driver says of a GPU's processes, both lists as one. */
static size_t gather_processes(struct load *l, uint32_t index, bool *out_told)
{
    struct nvml_loads loads = { .v = l->loads, .max = GPU_PROCESSES_MAX };
    size_t found = 0, n = 0;
    struct err ignored;
    if (nvml_processes(l->nvml, index, l->found, GPU_PROCESSES_MAX, &found, &ignored) < 0)
        found = 0;
    if (nvml_process_loads(l->nvml, index, l->loads_since_us, &loads, &ignored) < 0)
        loads.n = 0;
    *out_told = loads.told;
    for (size_t i = 0; i < found; i++) {
        n = add_process(l, n, l->found[i].pid);
        l->parts[n - 1].mem_mib = l->found[i].mem_mib;
        for (size_t k = 0; k < loads.n; k++)
            if (l->loads[k].pid == l->found[i].pid) {
                l->parts[n - 1].percent = l->loads[k].percent;
                l->loads[k].pid = 0; /* one that does graphics and computes is listed twice */
            }
    }
    for (size_t k = 0; k < loads.n && n < GPU_PROCESSES_MAX; k++) /* it has ended since */
        if (l->loads[k].pid && l->loads[k].percent > 0) {
            n = add_process(l, n, l->loads[k].pid);
            l->parts[n - 1].percent = l->loads[k].percent;
        }
    return n;
}

static int64_t times10(int64_t percent)
{
    return percent < 0 ? REPORT_UNKNOWN : MIN(percent, (int64_t)100) * 10;
}

/* Where a GPU of ours is now: NVML counts again when one is lost. */
static int place_of(struct load *l, uint32_t i, bool same, uint32_t *out, enum nvml_fault *fault)
{
    struct nvml_device d;
    struct err ignored;
    uint32_t count = 0;
    *out = l->head->gpu[i].index;
    if (same)
        return 0;
    if (nvml_count(l->nvml, &count, &ignored) < 0)
        count = 0;
    for (uint32_t at = 0; at < count; at++)
        if (nvml_device(l->nvml, at, &d, NULL, &ignored) == 0 &&
            strcmp(d.uuid, l->head->gpu[i].uuid) == 0) {
            *out = at;
            return 0;
        }
    *fault = NVML_LOST;
    return -1;
}

static void sample_gpu(struct load *l, uint32_t i, bool same, struct report_sample *out)
{
    int64_t *v = out->gpu[i];
    struct nvml_sample s;
    struct err ignored;
    uint32_t index;
    l->facts.gpu[i] = NVML_NONE;
    for (size_t k = 0; k < REPORT_GPU_COUNT; k++)
        v[k] = REPORT_UNKNOWN;
    v[REPORT_GPU_XID] = (int64_t)MIN(l->xid[i], (uint64_t)REPORT_VALUE_MAX);
    if (place_of(l, i, same, &index, &l->facts.gpu[i]) < 0 ||
        nvml_sample(l->nvml, index, &s, &l->facts.gpu[i], &ignored) < 0)
        return;
    v[REPORT_GPU_UTIL] = times10(s.gpu_percent);
    v[REPORT_GPU_MEM_UTIL] = times10(s.mem_percent);
    v[REPORT_GPU_MEM_USED] = s.mem_used_mib;
    v[REPORT_GPU_POWER] = s.power_mw;
    v[REPORT_GPU_TEMP] = s.temperature_c;
    v[REPORT_GPU_SM_CLOCK] = s.sm_mhz;
    v[REPORT_GPU_MEM_CLOCK] = s.mem_mhz;
    v[REPORT_GPU_THROTTLE] = s.throttle;
    v[REPORT_GPU_ECC_CORRECTED] = s.ecc_corrected;
    v[REPORT_GPU_ECC_UNCORRECTED] = s.ecc_uncorrected;
    struct split_gpu whole = { .place = i,
                               .permille = v[REPORT_GPU_UTIL],
                               .mem_used_mib = v[REPORT_GPU_MEM_USED],
                               .process = l->parts };
    whole.processes = gather_processes(l, index, &whole.told);
    split_add(&whole, out);
}

static void note_xids(struct load *l)
{
    uint32_t index;
    uint64_t xid;
    const char *what;
    for (int most = 64; most > 0 && nvml_next_xid(l->nvml, &index, &xid); most--)
        for (uint32_t i = 0; i < l->head->gpus; i++) {
            /* One that counts is not covered up by a later one that does not. */
            bool worse = health_xid_counts(xid, &what) || !health_xid_counts(l->xid[i], &what);
            if (l->head->gpu[i].index == index && worse)
                l->xid[i] = xid;
        }
}

static void sample_gpus(struct load *l, struct load_time now, struct report_sample *out)
{
    uint32_t count = 0;
    struct err ignored;
    if (!l->nvml && now.mono_ns - l->tried_ns >= DRIVER_AGAIN_NS)
        open_driver(l, now.mono_ns);
    if (!l->nvml)
        return;
    bool same = nvml_count(l->nvml, &count, &ignored) == 0 && count == l->list.n + l->list.n_broken;
    note_xids(l);
    for (uint32_t i = 0; i < l->head->gpus; i++)
        sample_gpu(l, i, same, out);
    l->loads_since_us = (uint64_t)MAX(now.wall_ms - 1000, INT64_C(0)) * 1000;
    forget_owners(l);
}

/* ---- simulated GPUs ---- */

/* The GPUs that stand in a process's environment. */
static uint64_t gpus_of_process(struct load *l, int32_t pid)
{
    static const char key[] = "NVIDIA_VISIBLE_DEVICES=";
    AUTO(buf_free) struct buf text = BUF(0);
    char path[300];
    struct err ignored;
    uint64_t mask = 0;
    snprintf(path, sizeof path, "%s/proc/%d/environ",
             l->config.want.root ? l->config.want.root : "", pid);
    if (file_read(path, 1u << 20, &text, &ignored) < 0)
        return 0;
    for (struct str rest = buf_str(&text), one; rest.n;) {
        str_cut(rest, '\0', &one, &rest);
        if (one.n < sizeof key || memcmp(one.p, key, sizeof key - 1) != 0)
            continue;
        for (uint32_t i = 0; i < l->head->gpus; i++)
            if (memmem(one.p, one.n, l->head->gpu[i].uuid, strlen(l->head->gpu[i].uuid)))
                mask |= UINT64_C(1) << i;
    }
    return mask;
}

/* Which of our GPUs the task was given.  Once known that stays; of one that has none (or none yet) it is asked
 * again in every sample. */
static uint64_t gpus_of_task(struct load *l, const char *task)
{
    int32_t pid[8];
    uint64_t mask = 0;
    for (size_t i = 0; i < l->givens; i++)
        if (strcmp(l->given[i].task, task) == 0) {
            l->given[i].seen = true;
            return l->given[i].mask;
        }
    size_t n = usage_task_pids(l->usage, task, pid, ARRAY_LEN(pid));
    for (size_t i = 0; i < n && !mask; i++)
        mask = gpus_of_process(l, pid[i]);
    if (mask && l->givens < ARRAY_LEN(l->given)) {
        struct given *g = &l->given[l->givens++];
        *g = (struct given){ .mask = mask, .seen = true };
        snprintf(g->task, sizeof g->task, "%s", task);
    }
    return mask;
}

static void forget_given(struct load *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->givens; i++) {
        if (!l->given[i].seen)
            continue;
        l->given[kept] = l->given[i];
        l->given[kept++].seen = false;
    }
    l->givens = kept;
}

/* A figure that goes up and down within five minutes, another one for each GPU. */
static int64_t wave(int64_t t_ms, uint32_t i, int64_t low, int64_t high)
{
    int64_t at = (t_ms / 1000 + 37 * i) % 300;
    int64_t up = at < 150 ? at : 300 - at;
    return low + (high - low) * up / 150;
}

static void simulate_values(int64_t *v, int64_t mem_mib, int64_t on, int64_t permille)
{
    v[REPORT_GPU_UTIL] = permille;
    v[REPORT_GPU_MEM_UTIL] = permille / 2;
    v[REPORT_GPU_MEM_USED] = on ? mem_mib * MIN(on * 35 + 5, INT64_C(90)) / 100 : 0;
    v[REPORT_GPU_POWER] = 55000 + permille * 300;
    v[REPORT_GPU_TEMP] = 31 + permille / 25;
    v[REPORT_GPU_SM_CLOCK] = on ? 1410 : 210;
    v[REPORT_GPU_MEM_CLOCK] = 1593;
    v[REPORT_GPU_THROTTLE] = on ? 0 : 1;
    v[REPORT_GPU_ECC_CORRECTED] = v[REPORT_GPU_ECC_UNCORRECTED] = v[REPORT_GPU_XID] = 0;
}

/* Those whose bit is set share it alike. */
static void simulate_gpu(struct load *l, uint32_t i, const uint64_t *mask,
                         struct report_sample *out)
{
    int64_t on = 0;
    size_t n = 0;
    for (uint32_t k = 0; k < out->tasks; k++)
        on += (int64_t)(mask[k] >> i & 1);
    int64_t permille = on ? wave(out->t_ms, i, 620, 980) : 0;
    simulate_values(out->gpu[i], l->head->gpu[i].mem_mib, on, permille);
    for (uint32_t k = 0; k < out->tasks && n < GPU_PROCESSES_MAX; k++) {
        if (!(mask[k] >> i & 1))
            continue;
        l->parts[n] = (struct split_process){ .percent = (permille + 9) / 10,
                                              .mem_mib = out->gpu[i][REPORT_GPU_MEM_USED] };
        snprintf(l->parts[n++].who, sizeof l->parts[0].who, "%s", out->task[k].task);
    }
    split_add(&(struct split_gpu){ .place = i,
                                   .permille = permille,
                                   .mem_used_mib = out->gpu[i][REPORT_GPU_MEM_USED],
                                   .told = true,
                                   .process = l->parts,
                                   .processes = n },
              out);
}

static void simulate_gpus(struct load *l, struct report_sample *out)
{
    uint64_t mask[REPORT_TASKS_MAX] = { 0 };
    for (uint32_t k = 0; k < out->tasks; k++)
        mask[k] = gpus_of_task(l, out->task[k].task);
    for (uint32_t i = 0; i < l->head->gpus; i++)
        simulate_gpu(l, i, mask, out);
    forget_given(l);
}

void load_sample(struct load *l, struct load_time now, struct report_sample *out)
{
    out->t_ms = now.wall_ms;
    out->parts = out->findings = 0;
    find_instance(l);
    pods_refresh(l->pods, now.mono_ns);
    usage_sample(l->usage, now.mono_ns, out);
    if (l->head->simulated)
        simulate_gpus(l, out);
    else if (!l->config.want.no_gpus)
        sample_gpus(l, now, out);
    pods_add_given(l->pods, l->head, l->nvml, out);
    health_check(&l->health, l->head, &l->facts, out);
}
