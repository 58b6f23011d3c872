#include "node/nvml.h"

#include <dlfcn.h>
#include <stdio.h>

#include "node/nvml_abi.h"
#include "sys/file.h"

typedef unsigned long long ull;

/* Where wanted: the entry point, and an older one that takes the same arguments. */
#define CALLS(X)                                                                                   \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                                     \
    X(shutdown, (void), "nvmlShutdown", NULL)                                                      \
    X(driver_version, (char *, unsigned), "nvmlSystemGetDriverVersion", NULL)                      \
    X(library_version, (char *, unsigned), "nvmlSystemGetNVMLVersion", NULL)                       \
    X(count, (unsigned *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                          \
    X(handle, (unsigned, void **), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")  \
    X(name, (void *, char *, unsigned), "nvmlDeviceGetName", NULL)                                 \
    X(uuid, (void *, char *, unsigned), "nvmlDeviceGetUUID", NULL)                                 \
    X(minor, (void *, unsigned *), "nvmlDeviceGetMinorNumber", NULL)                               \
    X(pci, (void *, struct nvml_abi_pci *), "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2")  \
    X(memory, (void *, struct nvml_abi_memory *), "nvmlDeviceGetMemoryInfo", NULL)                 \
    X(memory2, (void *, struct nvml_abi_memory2 *), "nvmlDeviceGetMemoryInfo_v2", NULL)            \
    X(mig, (void *, unsigned *, unsigned *), "nvmlDeviceGetMigMode", NULL)                         \
    X(by_uuid, (const char *, void **), "nvmlDeviceGetHandleByUUID", NULL)                         \
    X(mig_parent, (void *, void **), "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", NULL)         \
    X(utilisation, (void *, struct nvml_abi_utilisation *), "nvmlDeviceGetUtilizationRates", NULL) \
    X(power, (void *, unsigned *), "nvmlDeviceGetPowerUsage", NULL)                                \
    X(power_limit, (void *, unsigned *), "nvmlDeviceGetEnforcedPowerLimit", NULL)                  \
    X(temperature, (void *, unsigned, unsigned *), "nvmlDeviceGetTemperature", NULL)               \
    X(clock, (void *, unsigned, unsigned *), "nvmlDeviceGetClockInfo", NULL)                       \
    X(ecc, (void *, unsigned, unsigned, ull *), "nvmlDeviceGetTotalEccErrors", NULL)               \
    X(throttle, (void *, ull *), "nvmlDeviceGetCurrentClocksEventReasons",                         \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                 \
    X(ancestor, (void *, void *, unsigned *), "nvmlDeviceGetTopologyCommonAncestor", NULL)         \
    X(p2p, (void *, void *, unsigned, unsigned *), "nvmlDeviceGetP2PStatus", NULL)                 \
    X(process_loads, (void *, struct nvml_abi_process_load *, unsigned *, ull),                    \
      "nvmlDeviceGetProcessUtilization", NULL)                                                     \
    X(event_set, (void **), "nvmlEventSetCreate", NULL)                                            \
    X(event_set_free, (void *), "nvmlEventSetFree", NULL)                                          \
    X(event_wait, (void *, struct nvml_abi_event *, unsigned), "nvmlEventSetWait_v2", NULL)        \
    X(event_ask, (void *, ull, void *), "nvmlDeviceRegisterEvents", NULL)                          \
    X(compute, (void *, unsigned *, struct nvml_abi_process *),                                    \
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")        \
    X(graphics, (void *, unsigned *, struct nvml_abi_process *),                                   \
      "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")      \
    X(compute1, (void *, unsigned *, struct nvml_abi_process1 *),                                  \
      "nvmlDeviceGetComputeRunningProcesses", NULL)                                                \
    X(graphics1, (void *, unsigned *, struct nvml_abi_process1 *),                                 \
      "nvmlDeviceGetGraphicsRunningProcesses", NULL)

struct calls {
#define X(field, args, symbol, older) int(*field) args;
    CALLS(X)
#undef X
};

static const struct {
    size_t at;
    const char *symbol, *older;
} symbols[] = {
#define X(field, args, symbol, older) { offsetof(struct calls, field), symbol, older },
    CALLS(X)
#undef X
};

struct nvml {
    void *library;
    struct calls call;
    bool ready; /* init succeeded */
    bool asked; /* for events, with or without success */
    void *events;
    char driver[NVML_ABI_TEXT], version[NVML_ABI_TEXT];
};

/* A call that this driver does not have gives NVML_RC_FUNCTION_NOT_FOUND. */
#define CALL(n, f, ...) ((n)->call.f ? (n)->call.f(__VA_ARGS__) : NVML_RC_FUNCTION_NOT_FOUND)

static const char *const fault_names[] = {
#define X(id, name) [NVML_##id] = name,
    NVML_FAULTS(X)
#undef X
};
_Static_assert(ARRAY_LEN(fault_names) == NVML_FAULT_COUNT, "a fault was added without its name");

const char *nvml_fault_name(enum nvml_fault f)
{
    return fault_names[f];
}

static const struct {
    enum err_code code;
    const char *msg, *hint;
} faults[] = {
    [NVML_NONE] = { ERR_NONE, "", "" },
    [NVML_NO_LIBRARY] = { ERR_NOT_FOUND, "no NVIDIA driver is installed",
                          "install it (Debian: apt install nvidia-driver, Ubuntu: ubuntu-drivers "
                          "install) and reboot; without GPUs nothing is to be done" },
    [NVML_BAD_LIBRARY] = { ERR_UNAVAILABLE, "the library of the NVIDIA driver cannot be used",
                           "install the driver anew: the package that has libnvidia-ml.so.1" },
    [NVML_NO_DRIVER] = { ERR_UNAVAILABLE, "the kernel module of the NVIDIA driver is not loaded",
                         "modprobe nvidia says why; after a kernel update: dkms autoinstall, and "
                         "look at dmesg (Secure Boot refuses unsigned modules)" },
    [NVML_MISMATCH] = { ERR_UNAVAILABLE,
                        "the NVIDIA driver was updated under the running system: its library and "
                        "its kernel module are of different versions",
                        "reboot, or stop what uses the GPUs and reload the module: rmmod "
                        "nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia" },
    [NVML_DENIED] = { ERR_DENIED, "the NVIDIA driver refuses us",
                      "compare ls -l /dev/nvidia* with id: be in their group (often video or "
                      "render), or run as root; in a container, pass the devices in" },
    [NVML_LOST] = { ERR_UNAVAILABLE, "the GPU is lost: it does not answer on the PCI bus any more",
                    "dmesg | grep -i xid tells when; power the machine off and on; when it comes "
                    "back, check the seat, the power cable and the temperature" },
    [NVML_RESET] = { ERR_UNAVAILABLE, "the GPU must be reset before it can be used again",
                     "end what runs on it, then nvidia-smi --gpu-reset -i <index>, or reboot" },
    [NVML_OTHER] = { ERR_UNAVAILABLE, "the NVIDIA driver reports an error",
                     "nvidia-smi and dmesg may say more" },
};
_Static_assert(ARRAY_LEN(faults) == NVML_FAULT_COUNT, "a fault was added without its row");

static enum nvml_fault fault_of(int rc)
{
    static const struct {
        int rc;
        enum nvml_fault fault;
    } rows[] = {
        { NVML_RC_NO_PERMISSION, NVML_DENIED },
        { NVML_RC_DRIVER_NOT_LOADED, NVML_NO_DRIVER },
        { NVML_RC_FUNCTION_NOT_FOUND, NVML_BAD_LIBRARY },
        { NVML_RC_GPU_IS_LOST, NVML_LOST },
        { NVML_RC_GPU_NOT_FOUND, NVML_LOST },
        { NVML_RC_RESET_REQUIRED, NVML_RESET },
        { NVML_RC_LIB_RM_VERSION_MISMATCH, NVML_MISMATCH },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].rc == rc)
            return rows[i].fault;
    return NVML_OTHER;
}

static int fail(enum nvml_fault f, enum nvml_fault *out_fault, struct err *e)
{
    err_set(e, faults[f].code, "%s", faults[f].msg);
    if (out_fault)
        *out_fault = f;
    return err_hint(e, "%s", faults[f].hint);
}

static int failed_with(int rc, enum nvml_fault *out_fault, struct err *e)
{
    enum nvml_fault f = fault_of(rc);
    fail(f, out_fault, e);
    if (f == NVML_OTHER) {
        err_set(e, ERR_UNAVAILABLE, "%s (NVML error %d)", faults[f].msg, rc);
        err_hint(e, "%s", faults[f].hint);
    }
    return -1;
}

/* Does this answer concern the GPU or the driver, not only the value that was asked for? */
static bool is_hard(int rc)
{
    switch (rc) {
    case NVML_RC_UNINITIALIZED:
    case NVML_RC_DRIVER_NOT_LOADED:
    case NVML_RC_GPU_IS_LOST:
    case NVML_RC_RESET_REQUIRED:
    case NVML_RC_LIB_RM_VERSION_MISMATCH:
    case NVML_RC_GPU_NOT_FOUND: return true;
    default: return false;
    }
}

/* The version of the loaded module: the first word of that file that looks like one. */
static bool module_version(char out[static 32])
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest, word;
    if (file_read("/proc/driver/nvidia/version", 4096, &text, &ignored) < 0)
        return false;
    for (rest = buf_str(&text); str_next_word(&rest, &word);) {
        struct str major, minor;
        if (!str_cut(word, '.', &major, &minor) || major.n < 2 || minor.n == 0 || word.n >= 32)
            continue;
        if (strspn(word.p, "0123456789.") < word.n)
            continue;
        snprintf(out, 32, "%.*s", STR_ARG(word));
        return true;
    }
    return false;
}

static void load_symbols(struct nvml *n)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *p = dlsym(n->library, symbols[i].symbol);
        if (!p && symbols[i].older)
            p = dlsym(n->library, symbols[i].older);
        memcpy((char *)&n->call + symbols[i].at, &p, sizeof p);
    }
}

static int open_library(struct nvml *n, const char *path, enum nvml_fault *out_fault, struct err *e)
{
    static const char *const places[] = { "libnvidia-ml.so.1",
                                          "/usr/lib/wsl/lib/libnvidia-ml.so.1" };
    enum nvml_fault f = NVML_NO_LIBRARY;
    char why[160] = "";
    for (size_t i = 0; !n->library && i < (path ? 1 : ARRAY_LEN(places)); i++) {
        n->library = dlopen(path ? path : places[i], RTLD_NOW | RTLD_LOCAL);
        const char *text = n->library ? NULL : dlerror();
        if (!text || strstr(text, "No such file"))
            continue;
        f = NVML_BAD_LIBRARY;
        snprintf(why, sizeof why, "%s", text);
    }
    if (n->library)
        return 0;
    fail(f, out_fault, e);
    if (why[0])
        err_wrap(e, "%s", why);
    else if (path)
        err_wrap(e, "there is no '%s'", path);
    return -1;
}

static int init_failed(struct nvml *n, int rc, enum nvml_fault *out_fault, struct err *e)
{
    char module[32];
    failed_with(rc, out_fault, e);
    if (rc == NVML_RC_LIB_RM_VERSION_MISMATCH && n->version[0] && module_version(module))
        err_wrap(e, "library %s, module %s", n->version, module);
    return -1;
}

struct nvml *nvml_open(const char *path, enum nvml_fault *out_fault, struct err *e)
{
    AUTO(nvml_close_p) struct nvml *n = xcalloc(1, sizeof *n);
    if (open_library(n, path, out_fault, e) < 0)
        return NULL;
    load_symbols(n);
    if (!n->call.init || !n->call.shutdown || !n->call.count || !n->call.handle || !n->call.uuid) {
        fail(NVML_BAD_LIBRARY, out_fault, e);
        return NULL;
    }
    if (CALL(n, library_version, n->version, sizeof n->version) != NVML_RC_SUCCESS)
        n->version[0] = '\0';
    int rc = n->call.init();
    if (rc != NVML_RC_SUCCESS) {
        init_failed(n, rc, out_fault, e);
        return NULL;
    }
    n->ready = true;
    if (CALL(n, driver_version, n->driver, sizeof n->driver) != NVML_RC_SUCCESS)
        n->driver[0] = '\0';
    return TAKE(n);
}

struct nvml *nvml_close(struct nvml *n)
{
    if (!n)
        return NULL;
    if (n->events && n->call.event_set_free)
        n->call.event_set_free(n->events);
    if (n->ready)
        n->call.shutdown();
    if (n->library)
        dlclose(n->library);
    free(n);
    return NULL;
}

void nvml_close_p(struct nvml **n)
{
    *n = nvml_close(*n);
}

const char *nvml_driver_version(const struct nvml *n)
{
    return n->driver;
}

const char *nvml_library_version(const struct nvml *n)
{
    return n->version;
}

int nvml_count(struct nvml *n, uint32_t *out, struct err *e)
{
    unsigned count = 0;
    int rc = n->call.count(&count);
    if (rc != NVML_RC_SUCCESS)
        return failed_with(rc, NULL, e);
    *out = count;
    return 0;
}

static int64_t mib(ull bytes)
{
    return bytes == NVML_ABI_NOT_AVAILABLE ? NVML_UNKNOWN : (int64_t)(bytes >> 20);
}

/* The handle of a GPU; the error says which. */
static int find_gpu(struct nvml *n, uint32_t index, void **out, enum nvml_fault *out_fault,
                    struct err *e)
{
    int rc = n->call.handle(index, out);
    if (rc == NVML_RC_SUCCESS)
        return 0;
    if (rc == NVML_RC_INVALID_ARGUMENT || rc == NVML_RC_NOT_FOUND)
        rc = NVML_RC_GPU_IS_LOST; /* there are fewer than there were */
    failed_with(rc, out_fault, e);
    return err_wrap(e, "GPU %u", index);
}

/* One value each: what the driver does not tell stays NVML_UNKNOWN. */
typedef int sample_fn(struct nvml *n, void *gpu, struct nvml_sample *out);

static int sample_memory(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    struct nvml_abi_memory2 m2 = { .version = NVML_ABI_MEMORY2_VERSION };
    struct nvml_abi_memory m;
    int rc = CALL(n, memory2, gpu, &m2);
    if (rc == NVML_RC_SUCCESS) {
        out->mem_used_mib = mib(m2.used);
        out->mem_total_mib = mib(m2.total);
        return rc;
    }
    rc = CALL(n, memory, gpu, &m);
    if (rc == NVML_RC_SUCCESS) {
        out->mem_used_mib = mib(m.used);
        out->mem_total_mib = mib(m.total);
    }
    return rc;
}

static int sample_utilisation(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    struct nvml_abi_utilisation u;
    int rc = CALL(n, utilisation, gpu, &u);
    if (rc == NVML_RC_SUCCESS) {
        out->gpu_percent = u.gpu;
        out->mem_percent = u.memory;
    }
    return rc;
}

static int keep(int rc, unsigned v, int64_t *out)
{
    if (rc == NVML_RC_SUCCESS)
        *out = v;
    return rc;
}

static int keep_long(int rc, ull v, int64_t *out)
{
    if (rc == NVML_RC_SUCCESS && v <= INT64_MAX)
        *out = (int64_t)v;
    return rc;
}

static int sample_power(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    unsigned v = 0;
    int rc = CALL(n, power, gpu, &v);
    return keep(rc, v, &out->power_mw);
}

static int sample_power_limit(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    unsigned v = 0;
    int rc = CALL(n, power_limit, gpu, &v);
    return keep(rc, v, &out->power_limit_mw);
}

static int sample_temperature(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    unsigned v = 0;
    int rc = CALL(n, temperature, gpu, 0, &v);
    return keep(rc, v, &out->temperature_c);
}

static int sample_sm_clock(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    unsigned v = 0;
    int rc = CALL(n, clock, gpu, NVML_ABI_CLOCK_SM, &v);
    return keep(rc, v, &out->sm_mhz);
}

static int sample_mem_clock(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    unsigned v = 0;
    int rc = CALL(n, clock, gpu, NVML_ABI_CLOCK_MEMORY, &v);
    return keep(rc, v, &out->mem_mhz);
}

static int sample_corrected(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    ull v = 0;
    int rc = CALL(n, ecc, gpu, NVML_ABI_ECC_CORRECTED, NVML_ABI_ECC_SINCE_BOOT, &v);
    return keep_long(rc, v, &out->ecc_corrected);
}

static int sample_uncorrected(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    ull v = 0;
    int rc = CALL(n, ecc, gpu, NVML_ABI_ECC_UNCORRECTED, NVML_ABI_ECC_SINCE_BOOT, &v);
    return keep_long(rc, v, &out->ecc_uncorrected);
}

static int sample_throttle(struct nvml *n, void *gpu, struct nvml_sample *out)
{
    ull v = 0;
    int rc = CALL(n, throttle, gpu, &v);
    return keep_long(rc, v, &out->throttle);
}

static sample_fn *const sample_parts[] = {
    sample_memory,   sample_utilisation, sample_power,     sample_power_limit, sample_temperature,
    sample_sm_clock, sample_mem_clock,   sample_corrected, sample_uncorrected, sample_throttle,
};

int nvml_sample(struct nvml *n, uint32_t index, struct nvml_sample *out, enum nvml_fault *out_fault,
                struct err *e)
{
    struct nvml_sample s;
    void *gpu;
    memset(&s, 0xff, sizeof s); /* NVML_UNKNOWN throughout */
    if (find_gpu(n, index, &gpu, out_fault, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(sample_parts); i++) {
        int rc = sample_parts[i](n, gpu, &s);
        if (is_hard(rc)) {
            failed_with(rc, out_fault, e);
            return err_wrap(e, "GPU %u", index);
        }
    }
    *out = s;
    return 0;
}

static void end_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
}

int nvml_device(struct nvml *n, uint32_t index, struct nvml_device *out, enum nvml_fault *out_fault,
                struct err *e)
{
    struct nvml_device d = { .index = index };
    struct nvml_sample s = { .mem_total_mib = NVML_UNKNOWN };
    struct nvml_abi_pci pci;
    unsigned v, pending;
    void *gpu;
    if (find_gpu(n, index, &gpu, out_fault, e) < 0)
        return -1;
    int rc = n->call.uuid(gpu, d.uuid, sizeof d.uuid);
    if (rc == NVML_RC_SUCCESS && !is_hard(sample_memory(n, gpu, &s))) {
        if (CALL(n, name, gpu, d.name, sizeof d.name) != NVML_RC_SUCCESS)
            snprintf(d.name, sizeof d.name, "NVIDIA GPU");
        if (CALL(n, pci, gpu, &pci) == NVML_RC_SUCCESS)
            snprintf(d.pci, sizeof d.pci, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff,
                     pci.device & 0xff);
        d.minor = CALL(n, minor, gpu, &v) == NVML_RC_SUCCESS ? (int32_t)v : NVML_UNKNOWN;
        d.mig = CALL(n, mig, gpu, &v, &pending) == NVML_RC_SUCCESS ? v == 1 : NVML_UNKNOWN;
        d.mem_mib = s.mem_total_mib;
        end_text(d.uuid, sizeof d.uuid);
        end_text(d.name, sizeof d.name);
        *out = d;
        return 0;
    }
    failed_with(rc == NVML_RC_SUCCESS ? NVML_RC_GPU_IS_LOST : rc, out_fault, e);
    return err_wrap(e, "GPU %u", index);
}

bool nvml_mig_parent(struct nvml *n, const char *mig, char out[static 96])
{
    void *part, *whole;
    if (CALL(n, by_uuid, mig, &part) != NVML_RC_SUCCESS ||
        CALL(n, mig_parent, part, &whole) != NVML_RC_SUCCESS ||
        n->call.uuid(whole, out, 96) != NVML_RC_SUCCESS)
        return false;
    end_text(out, 96);
    return true;
}

#define TOPOLOGY_SYSTEM 50u /* only over the link between the processors */

int nvml_link(struct nvml *n, uint32_t a, uint32_t b, struct nvml_link *out, struct err *e)
{
    void *gpu_a, *gpu_b;
    unsigned status, level;
    if (find_gpu(n, a, &gpu_a, NULL, e) < 0 || find_gpu(n, b, &gpu_b, NULL, e) < 0)
        return -1;
    int rc = CALL(n, p2p, gpu_a, gpu_b, NVML_ABI_P2P_NVLINK, &status);
    int rc_level = CALL(n, ancestor, gpu_a, gpu_b, &level);
    *out = (struct nvml_link){
        .nvlink = rc == NVML_RC_SUCCESS ? status == 0 : NVML_UNKNOWN,
        .same_numa = rc_level == NVML_RC_SUCCESS ? level < TOPOLOGY_SYSTEM : NVML_UNKNOWN,
    };
    return 0;
}

#define PROCESSES_MAX 512u /* a GPU; what is beyond is not listed */

static int list_old(struct nvml *n, void *gpu, bool graphics, struct nvml_abi_process *out,
                    unsigned *count)
{
    AUTO(free_p) struct nvml_abi_process1 *v1 = xcalloc(PROCESSES_MAX, sizeof *v1);
    int rc = graphics ? CALL(n, graphics1, gpu, count, v1) : CALL(n, compute1, gpu, count, v1);
    for (unsigned i = 0; rc == NVML_RC_SUCCESS && i < MIN(*count, PROCESSES_MAX); i++)
        out[i] = (struct nvml_abi_process){ .pid = v1[i].pid, .used = v1[i].used };
    return rc;
}

/* Adds the processes of one kind.  A driver that does not list them lists none. */
static int add_processes(struct nvml *n, void *gpu, bool graphics, struct nvml_process *out,
                         size_t room, size_t *out_n)
{
    AUTO(free_p) struct nvml_abi_process *p = xcalloc(PROCESSES_MAX, sizeof *p);
    unsigned count = PROCESSES_MAX;
    int rc = graphics ? CALL(n, graphics, gpu, &count, p) : CALL(n, compute, gpu, &count, p);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND) {
        count = PROCESSES_MAX;
        rc = list_old(n, gpu, graphics, p, &count);
    }
    if (rc != NVML_RC_SUCCESS && rc != NVML_RC_INSUFFICIENT_SIZE)
        return rc;
    /* Past the room NVML tells how many there are and fills what fits. */
    for (unsigned i = 0; i < MIN(count, PROCESSES_MAX) && *out_n < room; i++)
        if (p[i].pid)
            out[(*out_n)++] = (struct nvml_process){ (int32_t)p[i].pid, mib(p[i].used), graphics };
    return NVML_RC_SUCCESS;
}

int nvml_processes(struct nvml *n, uint32_t index, struct nvml_process *out, size_t max,
                   size_t *out_n, struct err *e)
{
    size_t count = 0;
    void *gpu;
    if (find_gpu(n, index, &gpu, NULL, e) < 0)
        return -1;
    for (int graphics = 0; graphics < 2; graphics++) {
        int rc = add_processes(n, gpu, graphics, out, max, &count);
        if (is_hard(rc)) {
            failed_with(rc, NULL, e);
            return err_wrap(e, "GPU %u", index);
        }
    }
    *out_n = count;
    return 0;
}

static void add_load(struct nvml_loads *out, unsigned *times, const struct nvml_abi_process_load *p)
{
    size_t i = 0;
    while (i < out->n && out->v[i].pid != (int32_t)p->pid)
        i++;
    if (i == out->max)
        return;
    if (i == out->n) {
        out->v[out->n++] = (struct nvml_process_load){ .pid = (int32_t)p->pid };
        times[i] = 0;
    }
    out->v[i].percent += MIN(p->sm, 100u);
    times[i]++;
}

int nvml_process_loads(struct nvml *n, uint32_t index, uint64_t since_us, struct nvml_loads *out,
                       struct err *e)
{
    AUTO(free_p) struct nvml_abi_process_load *p = xcalloc(PROCESSES_MAX, sizeof *p);
    AUTO(free_p) unsigned *times = xcalloc(out->max + 1, sizeof *times);
    unsigned count = PROCESSES_MAX;
    void *gpu;
    if (find_gpu(n, index, &gpu, NULL, e) < 0)
        return -1;
    int rc = CALL(n, process_loads, gpu, p, &count, since_us);
    if (is_hard(rc)) {
        failed_with(rc, NULL, e);
        return err_wrap(e, "GPU %u", index);
    }
    /* Nothing measured since then is "not found"; more than there is room for is not told at all. */
    out->told = rc == NVML_RC_SUCCESS || rc == NVML_RC_NOT_FOUND;
    out->n = 0;
    for (unsigned i = 0; rc == NVML_RC_SUCCESS && i < MIN(count, PROCESSES_MAX); i++)
        if (p[i].pid && p[i].t_us > since_us)
            add_load(out, times, &p[i]);
    for (size_t i = 0; i < out->n; i++)
        out->v[i].percent /= (int64_t)times[i];
    return 0;
}

static void ask_for_events(struct nvml *n)
{
    unsigned count = 0;
    void *gpu;
    n->asked = true;
    if (CALL(n, event_set, &n->events) != NVML_RC_SUCCESS) {
        n->events = NULL;
        return;
    }
    if (n->call.count(&count) != NVML_RC_SUCCESS)
        return;
    for (unsigned i = 0; i < count; i++)
        if (n->call.handle(i, &gpu) == NVML_RC_SUCCESS)
            (void)CALL(n, event_ask, gpu, NVML_ABI_EVENT_XID, n->events);
}

bool nvml_next_xid(struct nvml *n, uint32_t *out_index, uint64_t *out_xid)
{
    struct nvml_abi_event ev = { 0 };
    unsigned count = 0;
    void *gpu;
    if (!n->asked)
        ask_for_events(n);
    if (!n->events || CALL(n, event_wait, n->events, &ev, 0) != NVML_RC_SUCCESS ||
        !(ev.type & NVML_ABI_EVENT_XID) || n->call.count(&count) != NVML_RC_SUCCESS)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (n->call.handle(i, &gpu) == NVML_RC_SUCCESS && gpu == ev.device) {
            *out_index = i;
            *out_xid = ev.data;
            return true;
        }
    return false;
}

const char *nvml_throttle_name(unsigned bit)
{
    static const char *const names[] = {
        "idle",           "application clocks", "power cap",         "hardware slowdown",
        "sync boost",     "software: too hot",  "hardware: too hot", "hardware: power brake",
        "display clocks",
    };
    return bit < ARRAY_LEN(names) ? names[bit] : NULL;
}
