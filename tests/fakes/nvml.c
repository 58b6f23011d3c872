/* A library that answers as libnvidia-ml.so.1 does, from a text file.
 *
 * The file is named by $NIGHTSHIFT_FAKE_NVML and read again when it changes.  One fact a line:
 *
 *   driver 550.54.15
 *   fail nvmlInit_v2 18          the function returns this NVML error (before the first gpu line: for
 *                                every GPU)
 *   gpu NVIDIA A100-SXM4-80GB    the lines below are about this one
 *   uuid GPU-…
 *   minor 0                      it is seen while $NIGHTSHIFT_FAKE_DEV/nvidia<minor> (or /dev/…) can
 *                                be opened; minor none: always seen, and has no minor number
 *   memory 81920 512             MiB: in all, used
 *   pci 0 59 0                   domain bus device
 *   utilisation 35 10            percent: processors, memory
 *   power 150000 400000          mW: now, limit
 *   temperature 44
 *   clocks 1410 1593             MHz: processors, memory
 *   ecc 2 0                      corrected, uncorrected
 *   throttle 4
 *   mig 1
 *   instance MIG-…     a MIG device of it; at most eight
 *   numa 0
 *   nvlink 1 2 3                 numbers of GPUs (in the order of the file) it has NVLink to
 *   process 4711 1024 compute    pid, MiB ("none": not told), compute or graphics
 *   load 4711 40                 what that process took of the processors lately, in percent
 *   xid 79                       the driver reports this error, once each time the line changes
 *
 * It looks at the file and the devices in every call; with $NIGHTSHIFT_FAKE_EVERY_MS at most so often, for whoever
 * measures what a caller costs.
 * As with the real one, CUDA_VISIBLE_DEVICES changes nothing.  One thread at a time.
 * With FAKE_NVML_OLD it lacks what drivers before 470 lack.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "node/nvml_abi.h"

#define GPUS_MAX 64
#define PROCESSES_MAX 64
#define FAILS_MAX 32

struct fail {
    char function[64];
    int rc;
};

struct gpu {
    char name[96], uuid[96];
    int minor; /* -1: none */
    unsigned long long mem_total_mib, mem_used_mib;
    unsigned domain, bus, device;
    unsigned util_gpu, util_mem, power, power_limit, temperature, sm_mhz, mem_mhz;
    unsigned long long ecc[2], throttle, nvlink;
    unsigned mig, numa;
    char instance[8][96];
    unsigned instances;
    struct {
        unsigned pid;
        unsigned long long mib;
        int graphics;
    } process[PROCESSES_MAX];
    unsigned n_processes;
    struct {
        unsigned pid, percent;
    } load[PROCESSES_MAX];
    unsigned n_loads, xid;
    struct fail fail[FAILS_MAX];
    unsigned n_fails;
};

/* What is known, and which file that was. */
static struct {
    struct gpu gpu[GPUS_MAX];
    unsigned n_gpus;
    char driver[96];
    struct fail fail[FAILS_MAX];
    unsigned n_fails;
    struct stat file;
    int read, started;
    unsigned xid_told[GPUS_MAX];
    long long looked_ms;
    char seen[GPUS_MAX];
} world;

static void add_fail(struct gpu *g, const char *line)
{
    struct fail *list = g ? g->fail : world.fail;
    unsigned *n = g ? &g->n_fails : &world.n_fails;
    if (*n < FAILS_MAX && sscanf(line, "%63s %d", list[*n].function, &list[*n].rc) == 2)
        (*n)++;
}

static void add_process(struct gpu *g, const char *line)
{
    char mib[32] = "", kind[32] = "";
    unsigned i = g->n_processes;
    if (i == PROCESSES_MAX || sscanf(line, "%u %31s %31s", &g->process[i].pid, mib, kind) < 2)
        return;
    g->process[i].mib = strcmp(mib, "none") == 0 ? NVML_ABI_NOT_AVAILABLE : strtoull(mib, NULL, 10);
    g->process[i].graphics = strcmp(kind, "graphics") == 0;
    g->n_processes++;
}

static void add_process_load(struct gpu *g, const char *line)
{
    unsigned i = g->n_loads;
    if (i < PROCESSES_MAX && sscanf(line, "%u %u", &g->load[i].pid, &g->load[i].percent) == 2)
        g->n_loads++;
}

static void add_links(struct gpu *g, const char *line)
{
    char *end;
    for (;; line = end) {
        unsigned long to = strtoul(line, &end, 10);
        if (end == line)
            return;
        if (to < GPUS_MAX)
            g->nvlink |= 1ull << to;
    }
}

static struct gpu *add_gpu(const char *name)
{
    if (world.n_gpus == GPUS_MAX)
        return NULL;
    struct gpu *g = &world.gpu[world.n_gpus];
    *g =
        (struct gpu){ .minor = (int)world.n_gpus, .mem_total_mib = 16384, .bus = world.n_gpus + 1 };
    snprintf(g->name, sizeof g->name, "%s", name);
    snprintf(g->uuid, sizeof g->uuid, "GPU-00000000-0000-0000-0000-%012u", world.n_gpus);
    world.n_gpus++;
    return g;
}

static void read_gpu_line(struct gpu *g, const char *key, const char *v)
{
    if (strcmp(key, "uuid") == 0)
        snprintf(g->uuid, sizeof g->uuid, "%s", v);
    else if (strcmp(key, "minor") == 0)
        g->minor = strcmp(v, "none") == 0 ? -1 : (int)strtol(v, NULL, 10);
    else if (strcmp(key, "memory") == 0)
        sscanf(v, "%llu %llu", &g->mem_total_mib, &g->mem_used_mib);
    else if (strcmp(key, "pci") == 0)
        sscanf(v, "%u %u %u", &g->domain, &g->bus, &g->device);
    else if (strcmp(key, "utilisation") == 0)
        sscanf(v, "%u %u", &g->util_gpu, &g->util_mem);
    else if (strcmp(key, "power") == 0)
        sscanf(v, "%u %u", &g->power, &g->power_limit);
    else if (strcmp(key, "temperature") == 0)
        sscanf(v, "%u", &g->temperature);
    else if (strcmp(key, "clocks") == 0)
        sscanf(v, "%u %u", &g->sm_mhz, &g->mem_mhz);
    else if (strcmp(key, "ecc") == 0)
        sscanf(v, "%llu %llu", &g->ecc[0], &g->ecc[1]);
    else if (strcmp(key, "throttle") == 0)
        sscanf(v, "%llu", &g->throttle);
    else if (strcmp(key, "mig") == 0)
        sscanf(v, "%u", &g->mig);
    else if (strcmp(key, "instance") == 0 && g->instances < 8)
        snprintf(g->instance[g->instances++], sizeof g->instance[0], "%s", v);
    else if (strcmp(key, "numa") == 0)
        sscanf(v, "%u", &g->numa);
    else if (strcmp(key, "nvlink") == 0)
        add_links(g, v);
    else if (strcmp(key, "process") == 0)
        add_process(g, v);
    else if (strcmp(key, "load") == 0)
        add_process_load(g, v);
    else if (strcmp(key, "xid") == 0)
        sscanf(v, "%u", &g->xid);
    else
        fprintf(stderr, "fake nvml: unknown line '%s %s'\n", key, v);
}

static void read_file(FILE *f)
{
    char line[512];
    struct gpu *g = NULL;
    world.n_gpus = world.n_fails = 0;
    snprintf(world.driver, sizeof world.driver, "550.54.15");
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *v = strchr(line, ' ');
        if (line[0] == '#' || !v)
            continue;
        *v++ = '\0';
        if (strcmp(line, "gpu") == 0)
            g = add_gpu(v);
        else if (strcmp(line, "driver") == 0)
            snprintf(world.driver, sizeof world.driver, "%s", v);
        else if (strcmp(line, "fail") == 0)
            add_fail(g, v);
        else if (g)
            read_gpu_line(g, line, v);
    }
}

static int same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int looked_lately(void)
{
    static long every_ms = -1;
    struct timespec t;
    if (every_ms < 0)
        every_ms = getenv("NIGHTSHIFT_FAKE_EVERY_MS")
                     ? strtol(getenv("NIGHTSHIFT_FAKE_EVERY_MS"), NULL, 10)
                     : 0;
    if (every_ms == 0)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long now_ms = t.tv_sec * 1000LL + t.tv_nsec / 1000000;
    if (world.read && now_ms - world.looked_ms < every_ms)
        return 1;
    world.looked_ms = now_ms;
    memset(world.seen, 0, sizeof world.seen);
    return 0;
}

static void refresh(void)
{
    if (looked_lately())
        return;
    const char *path = getenv("NIGHTSHIFT_FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;
    struct stat now;
    if (!f) {
        world.n_gpus = world.n_fails = 0;
        world.read = 0;
        return;
    }
    if (fstat(fileno(f), &now) == 0 && !(world.read && same_file(&now, &world.file))) {
        read_file(f);
        world.file = now;
        world.read = 1;
    }
    fclose(f);
}

/* A node without a driver behind it gives ENXIO or ENODEV, which comes after every permission. */
static int seen(const struct gpu *g)
{
    const char *dev = getenv("NIGHTSHIFT_FAKE_DEV");
    char path[512];
    if (g->minor < 0 || world.seen[g - world.gpu])
        return 1;
    snprintf(path, sizeof path, "%s/nvidia%d", dev ? dev : "/dev", g->minor);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    int is = fd >= 0 || errno == ENXIO || errno == ENODEV;
    if (is && looked_lately())
        world.seen[g - world.gpu] = 1;
    return is;
}

static int failure(const struct fail *list, unsigned n, const char *function)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(list[i].function, function) == 0)
            return list[i].rc;
    return NVML_RC_SUCCESS;
}

/* What a call answers before it looks at anything: 0, or an error. */
static int begin(const char *function)
{
    refresh();
    int rc = failure(world.fail, world.n_fails, function);
    return rc ? rc : world.started ? NVML_RC_SUCCESS : NVML_RC_UNINITIALIZED;
}

static int begin_gpu(const char *function, const void *handle, const struct gpu **out)
{
    const struct gpu *g = handle;
    int rc = begin(function);
    if (rc == 0 && (g < world.gpu || g >= world.gpu + world.n_gpus || !seen(g)))
        rc = NVML_RC_GPU_IS_LOST;
    if (rc == 0)
        rc = failure(g->fail, g->n_fails, function);
    *out = g;
    return rc;
}

#define BEGIN_GPU(g, handle)                                                                       \
    const struct gpu *g;                                                                           \
    int rc = begin_gpu(__func__, handle, &g);                                                      \
    if (rc)                                                                                        \
    return rc

static int put(char *out, unsigned size, const char *text)
{
    if (strlen(text) >= size)
        return NVML_RC_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_RC_SUCCESS;
}

static int put_number(unsigned v, unsigned *out)
{
    *out = v;
    return NVML_RC_SUCCESS;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    refresh();
    int rc = failure(world.fail, world.n_fails, __func__);
    world.started += rc == 0;
    return rc;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    world.started -= world.started > 0;
    return NVML_RC_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    int rc = begin(__func__);
    return rc ? rc : put(out, size, world.driver);
}

/* Like the real one, this answers before nvmlInit. */
int nvmlSystemGetNVMLVersion(char *out, unsigned size);
int nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    char text[128];
    refresh();
    snprintf(text, sizeof text, "12.%s", world.driver);
    return put(out, size, text);
}

int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetCount_v2(unsigned *out)
{
    int rc = begin(__func__);
    unsigned n = 0;
    for (unsigned i = 0; rc == 0 && i < world.n_gpus; i++)
        n += seen(&world.gpu[i]) != 0;
    return rc ? rc : put_number(n, out);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    int rc = begin(__func__);
    if (rc)
        return rc;
    for (unsigned i = 0; i < world.n_gpus; i++) {
        struct gpu *g = &world.gpu[i];
        if (!seen(g) || index-- > 0)
            continue;
        *out = g;
        return failure(g->fail, g->n_fails, __func__);
    }
    return NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetName(void *h, char *out, unsigned size);
int nvmlDeviceGetName(void *h, char *out, unsigned size)
{
    BEGIN_GPU(g, h);
    return put(out, size, g->name);
}

int nvmlDeviceGetUUID(void *h, char *out, unsigned size);
int nvmlDeviceGetUUID(void *h, char *out, unsigned size)
{
    BEGIN_GPU(g, h);
    return put(out, size, g->uuid);
}

int nvmlDeviceGetMinorNumber(void *h, unsigned *out);
int nvmlDeviceGetMinorNumber(void *h, unsigned *out)
{
    BEGIN_GPU(g, h);
    return g->minor < 0 ? NVML_RC_NOT_SUPPORTED : put_number((unsigned)g->minor, out);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetPciInfo_v3(void *h, struct nvml_abi_pci *out);
int nvmlDeviceGetPciInfo_v3(void *h, struct nvml_abi_pci *out)
{
    BEGIN_GPU(g, h);
    *out = (struct nvml_abi_pci){ .domain = g->domain, .bus = g->bus, .device = g->device };
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", g->domain, g->bus & 0xff,
             g->device & 0xff);
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *h, struct nvml_abi_memory2 *out);
int nvmlDeviceGetMemoryInfo_v2(void *h, struct nvml_abi_memory2 *out)
{
    BEGIN_GPU(g, h);
    if (out->version != NVML_ABI_MEMORY2_VERSION)
        return NVML_RC_INVALID_ARGUMENT;
    out->total = g->mem_total_mib << 20;
    out->used = g->mem_used_mib << 20;
    out->reserved = 0;
    out->free = out->total - out->used;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetMigMode(void *h, unsigned *out, unsigned *pending);
int nvmlDeviceGetMigMode(void *h, unsigned *out, unsigned *pending)
{
    BEGIN_GPU(g, h);
    *pending = g->mig;
    return put_number(g->mig, out);
}

/* The handle of a MIG device is the place of its name. */
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    int rc = begin(__func__);
    if (rc)
        return rc;
    for (unsigned i = 0; i < world.n_gpus; i++)
        for (unsigned k = 0; k < world.gpu[i].instances; k++)
            if (strcmp(world.gpu[i].instance[k], uuid) == 0) {
                *out = world.gpu[i].instance[k];
                return NVML_RC_SUCCESS;
            }
    return NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **out);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **out)
{
    for (unsigned i = 0; i < world.n_gpus; i++)
        for (unsigned k = 0; k < world.gpu[i].instances; k++)
            if (part == world.gpu[i].instance[k]) {
                *out = &world.gpu[i];
                return NVML_RC_SUCCESS;
            }
    return NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetP2PStatus(void *a, void *b, unsigned what, unsigned *out);
int nvmlDeviceGetP2PStatus(void *a, void *b, unsigned what, unsigned *out)
{
    BEGIN_GPU(g, a);
    unsigned to = (unsigned)((struct gpu *)b - world.gpu);
    int linked = what == NVML_ABI_P2P_NVLINK && to < GPUS_MAX && (g->nvlink >> to & 1);
    return put_number(linked ? 0 : 5, out);
}
#endif

int nvmlDeviceGetMemoryInfo(void *h, struct nvml_abi_memory *out);
int nvmlDeviceGetMemoryInfo(void *h, struct nvml_abi_memory *out)
{
    BEGIN_GPU(g, h);
    out->total = g->mem_total_mib << 20;
    out->used = g->mem_used_mib << 20;
    out->free = out->total - out->used;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *h, struct nvml_abi_utilisation *out);
int nvmlDeviceGetUtilizationRates(void *h, struct nvml_abi_utilisation *out)
{
    BEGIN_GPU(g, h);
    *out = (struct nvml_abi_utilisation){ g->util_gpu, g->util_mem };
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *h, unsigned *out);
int nvmlDeviceGetPowerUsage(void *h, unsigned *out)
{
    BEGIN_GPU(g, h);
    return put_number(g->power, out);
}

int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *out);
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *out)
{
    BEGIN_GPU(g, h);
    return put_number(g->power_limit, out);
}

int nvmlDeviceGetTemperature(void *h, unsigned sensor, unsigned *out);
int nvmlDeviceGetTemperature(void *h, unsigned sensor, unsigned *out)
{
    BEGIN_GPU(g, h);
    return sensor ? NVML_RC_INVALID_ARGUMENT : put_number(g->temperature, out);
}

int nvmlDeviceGetClockInfo(void *h, unsigned kind, unsigned *out);
int nvmlDeviceGetClockInfo(void *h, unsigned kind, unsigned *out)
{
    BEGIN_GPU(g, h);
    return put_number(kind == NVML_ABI_CLOCK_MEMORY ? g->mem_mhz : g->sm_mhz, out);
}

int nvmlDeviceGetTotalEccErrors(void *h, unsigned kind, unsigned since, unsigned long long *out);
int nvmlDeviceGetTotalEccErrors(void *h, unsigned kind, unsigned since, unsigned long long *out)
{
    BEGIN_GPU(g, h);
    if (kind > 1 || since != NVML_ABI_ECC_SINCE_BOOT)
        return NVML_RC_INVALID_ARGUMENT;
    *out = g->ecc[kind];
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *out)
{
    BEGIN_GPU(g, h);
    *out = g->throttle;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *out);
int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *out)
{
    const struct gpu *g2 = b;
    BEGIN_GPU(g, a);
    return put_number(g->numa == g2->numa ? 30 : 50, out);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetProcessUtilization(void *h, struct nvml_abi_process_load *out, unsigned *count,
                                    unsigned long long since_us);
int nvmlDeviceGetProcessUtilization(void *h, struct nvml_abi_process_load *out, unsigned *count,
                                    unsigned long long since_us)
{
    BEGIN_GPU(g, h);
    if (*count < g->n_loads)
        rc = NVML_RC_INSUFFICIENT_SIZE;
    for (unsigned i = 0; rc == 0 && i < g->n_loads; i++)
        out[i] = (struct nvml_abi_process_load){ .pid = g->load[i].pid,
                                                 .t_us = since_us + 1000 + i,
                                                 .sm = g->load[i].percent };
    *count = g->n_loads;
    return rc == 0 && g->n_loads == 0 ? NVML_RC_NOT_FOUND : rc;
}

int nvmlEventSetCreate(void **out);
int nvmlEventSetCreate(void **out)
{
    int rc = begin(__func__);
    *out = &world;
    return rc;
}

int nvmlEventSetFree(void *set);
int nvmlEventSetFree(void *set)
{
    return set == &world ? NVML_RC_SUCCESS : NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceRegisterEvents(void *h, unsigned long long what, void *set);
int nvmlDeviceRegisterEvents(void *h, unsigned long long what, void *set)
{
    BEGIN_GPU(g, h);
    world.xid_told[g - world.gpu] = g->xid; /* what happened before is not told */
    return set == &world && what ? NVML_RC_SUCCESS : NVML_RC_INVALID_ARGUMENT;
}

/* Never waits: whoever asks for a time gets its end at once. */
int nvmlEventSetWait_v2(void *set, struct nvml_abi_event *out, unsigned wait_ms);
int nvmlEventSetWait_v2(void *set, struct nvml_abi_event *out, unsigned wait_ms)
{
    int rc = begin(__func__);
    (void)set;
    (void)wait_ms;
    for (unsigned i = 0; rc == 0 && i < world.n_gpus; i++) {
        if (world.gpu[i].xid == world.xid_told[i])
            continue;
        world.xid_told[i] = world.gpu[i].xid;
        if (world.gpu[i].xid == 0)
            continue;
        *out = (struct nvml_abi_event){ .device = &world.gpu[i],
                                        .type = NVML_ABI_EVENT_XID,
                                        .data = world.gpu[i].xid };
        return NVML_RC_SUCCESS;
    }
    return rc ? rc : NVML_RC_TIMEOUT;
}
#endif

/* As the real one: past the room it tells how many there are. */
static int list(const struct gpu *g, int graphics, unsigned *count, unsigned *pid,
                unsigned long long *used)
{
    unsigned n = 0, room = *count;
    for (unsigned i = 0; i < g->n_processes; i++) {
        if (g->process[i].graphics != graphics)
            continue;
        unsigned long long m = g->process[i].mib;
        if (n < room) {
            pid[n] = g->process[i].pid;
            used[n] = m == NVML_ABI_NOT_AVAILABLE ? m : m << 20;
        }
        n++;
    }
    *count = n;
    return n > room ? NVML_RC_INSUFFICIENT_SIZE : NVML_RC_SUCCESS;
}

#ifndef FAKE_NVML_OLD
typedef struct nvml_abi_process process_t;
#define LISTS(X)                                                                                   \
    X(nvmlDeviceGetComputeRunningProcesses_v3, 0)                                                  \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
#else
typedef struct nvml_abi_process1 process_t;
#define LISTS(X)                                                                                   \
    X(nvmlDeviceGetComputeRunningProcesses, 0)                                                     \
    X(nvmlDeviceGetGraphicsRunningProcesses, 1)
#endif

#define X(function, graphics)                                                                      \
    int function(void *h, unsigned *count, process_t *out);                                        \
    int function(void *h, unsigned *count, process_t *out)                                         \
    {                                                                                              \
        unsigned pid[PROCESSES_MAX];                                                               \
        unsigned long long used[PROCESSES_MAX];                                                    \
        unsigned room = *count;                                                                    \
        BEGIN_GPU(g, h);                                                                           \
        rc = list(g, graphics, count, pid, used);                                                  \
        for (unsigned i = 0; i < *count && i < room; i++)                                          \
            out[i] = (process_t){ .pid = pid[i], .used = used[i] };                                \
        return rc;                                                                                 \
    }
LISTS(X)
#undef X
