#include "engine/kube/node_gpu.h"

#include "base/parse.h"

/* How a vendor's labels say the memory. */
enum memory_unit {
    MEMORY_MIB,      /* of each GPU */
    MEMORY_GIB,      /* of each GPU: "192G" */
    MEMORY_BYTES_ALL /* of all GPUs together */
};

static const struct vendor {
    const char *resource[3]; /* names of the device in allocatable; the first is the vendor's own */
    const char *model, *memory, *count;
    const char *strip; /* what model names begin with and people do not say */
    enum memory_unit unit;
} vendors[] = {
    { { "nvidia.com/gpu", "nvidia.com/gpu.shared" },
      "nvidia.com/gpu.product",
      "nvidia.com/gpu.memory",
      "nvidia.com/gpu.count",
      "NVIDIA-",
      MEMORY_MIB },
    { { "amd.com/gpu" }, "amd.com/gpu.product-name", "amd.com/gpu.vram", "", "AMD_", MEMORY_GIB },
    { { "gpu.intel.com/xe", "gpu.intel.com/i915" },
      "gpu.intel.com/product",
      "gpu.intel.com/memory.max",
      "",
      "",
      MEMORY_BYTES_ALL },
};

static const char *label(const struct kube_node *n, const char *key)
{
    const char *value = kube_node_label(n, key);
    return value ? value : "";
}

static uint64_t number(const char *text)
{
    uint64_t v = 0;
    struct err e;
    return parse_u64(str_of(text), UINT32_MAX, &v, &e) == 0 ? v : 0;
}

static bool ends_with(struct str s, const char *tail)
{
    size_t n = strlen(tail);
    return s.n > n && memcmp(s.p + s.n - n, tail, n) == 0;
}

/* NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED is an A100-SXM4-40GB, in slices, shared. */
static void read_model(const char *product, const char *strip, struct arena *a,
                       struct kube_gpu *out)
{
    struct str s = str_of(product);
    size_t skip = strlen(strip);
    if (s.n > skip && strncmp(s.p, strip, skip) == 0)
        s = (struct str){ s.p + skip, s.n - skip };
    if (ends_with(s, "-SHARED")) {
        s.n -= 7;
        out->sharing = GPU_SHARING_TIME;
    }
    char *model = arena_strndup(a, s.p, s.n);
    char *slice = strstr(model, "-MIG-");
    if (slice && slice > model) {
        *slice = '\0';
        out->slice = slice + 5;
    }
    out->model = model;
}

static uint32_t memory_mib(const char *text, enum memory_unit unit, uint32_t count)
{
    uint64_t bytes = 0;
    struct err e;
    switch (unit) {
    case MEMORY_MIB: return (uint32_t)number(text);
    case MEMORY_GIB:
        /* The labeller counts in GiB and writes G. */
        if (!ends_with(str_of(text), "G") ||
            parse_u64((struct str){ text, strlen(text) - 1 }, 1 << 20, &bytes, &e) < 0)
            return 0;
        return (uint32_t)(bytes << 10);
    case MEMORY_BYTES_ALL:
        if (parse_u64(str_of(text), INT64_MAX, &bytes, &e) < 0 || count == 0)
            return 0;
        return (uint32_t)MIN((bytes >> 20) / count, (uint64_t)UINT32_MAX);
    }
    abort();
}

/* Sharing and slices, which only NVIDIA's plugin has. */
static void read_nvidia(const struct kube_node *n, struct kube_gpu *out)
{
    const char *how = label(n, "nvidia.com/gpu.sharing-strategy");
    const char *mig = label(n, "nvidia.com/mig.strategy");
    uint64_t replicas = number(label(n, "nvidia.com/gpu.replicas"));
    if (strcmp(how, "time-slicing") == 0)
        out->sharing = GPU_SHARING_TIME;
    else if (strcmp(how, "mps") == 0)
        out->sharing = GPU_SHARING_MPS;
    else if (how[0] && strcmp(how, "none") != 0)
        out->sharing = GPU_SHARING_OTHER;
    else if (how[0])
        out->sharing = GPU_SHARING_NONE;
    out->replicas = out->sharing == GPU_SHARING_NONE ? 1 : (uint32_t)MAX(replicas, UINT64_C(1));
    out->mig_capable = strcmp(label(n, "nvidia.com/mig.capable"), "true") == 0;
    out->mig = strcmp(mig, "mixed") == 0                   ? GPU_MIG_MIXED
             : strcmp(mig, "single") == 0 && out->slice[0] ? GPU_MIG_SINGLE
                                                           : GPU_MIG_OFF;
}

static uint64_t allocatable(const struct kube_node *n, const struct vendor *v,
                            const char **out_name)
{
    for (size_t i = 0; i < ARRAY_LEN(v->resource) && v->resource[i]; i++) {
        uint64_t count = kube_amounts_count(&n->there, v->resource[i]);
        if (count == 0)
            continue;
        *out_name = v->resource[i];
        return count;
    }
    return 0;
}

struct kube_gpu node_gpu_of(const struct kube_node *n, struct arena *a)
{
    struct kube_gpu g = { .resource = "", .model = "", .slice = "", .replicas = 1 };
    for (size_t i = 0; i < ARRAY_LEN(vendors); i++) {
        const struct vendor *v = &vendors[i];
        const char *product = label(n, v->model);
        const char *resource = v->resource[0];
        uint64_t there = allocatable(n, v, &resource);
        if (!product[0] && there == 0)
            continue;
        g.resource = resource;
        read_model(product, v->strip, a, &g);
        if (i == 0)
            read_nvidia(n, &g);
        uint64_t count = number(label(n, v->count));
        if (count == 0) /* nobody told: what is given out, without counting a GPU once a share */
            count = (there + g.replicas - 1) / g.replicas;
        g.count = (uint32_t)MIN(count, (uint64_t)UINT32_MAX);
        g.mem_mib = memory_mib(label(n, v->memory), v->unit, g.count);
        break;
    }
    return g;
}
