#include "engine/kube/devices.h"

#include "core/device.h"

#define MIG_PREFIX "nvidia.com/mig-"
#define SHARED_SUFFIX ".shared" /* what NVIDIA's plugin adds to the name of what it shares */

/* ---- what is taken ---- */

void takens_move(struct takens *t, struct str name, uint64_t n, bool add)
{
    uint64_t hash = str_hash(name);
    size_t i = 0;
    while (i < t->n && t->at[i].hash != hash)
        i++;
    if (i == t->n) {
        vec_grow(t->at, t->n, t->cap);
        t->at[t->n++] = (struct taken){ .hash = hash };
    }
    t->at[i].n = add ? t->at[i].n + n : t->at[i].n - MIN(t->at[i].n, n);
    if (t->at[i].n == 0)
        t->at[i] = t->at[--t->n];
}

uint64_t takens_count(const struct takens *t, struct str name)
{
    uint64_t hash = str_hash(name);
    for (size_t i = 0; i < t->n; i++)
        if (t->at[i].hash == hash)
            return t->at[i].n;
    return 0;
}

/* ---- what it is worth ---- */

/* Of a profile like "1g.5gb", "3g.20gb.me": its part of the GPU.  Most cards have seven parts. */
static uint32_t slice_milli(const char *profile, const char *model)
{
    static const char *const of_four[] = { "A30", "RTX-PRO-6000" };
    uint32_t parts = 7, slices = 0;
    for (size_t i = 0; i < ARRAY_LEN(of_four); i++)
        if (strstr(model, of_four[i]))
            parts = 4;
    while (*profile >= '0' && *profile <= '9' && slices < 10)
        slices = slices * 10 + (uint32_t)(*profile++ - '0');
    if (*profile != 'g' || slices == 0)
        return 0;
    return MIN(slices * GPU_MILLI / parts, GPU_MILLI);
}

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), m = strlen(tail);
    return n > m && strcmp(text + n - m, tail) == 0;
}

bool node_shares_gpus(const struct kube_node *n, const char *gpu)
{
    return kube_amounts_count(&n->there, gpu) > GPUS_PER_NODE_MAX;
}

uint32_t node_device_worth(const struct kube_node *n, const char *name)
{
    const struct kube_gpu *g = &n->gpu;
    uint64_t there = kube_amounts_count(&n->there, name);
    bool shared = ends_with(name, SHARED_SUFFIX);
    if (strncmp(name, MIG_PREFIX, strlen(MIG_PREFIX)) == 0)
        return slice_milli(name + strlen(MIG_PREFIX), g->model) /
               (shared ? MAX(g->replicas, 1u) : 1);
    if (!g->resource[0] || strcmp(name, g->resource) != 0)
        return 0;
    uint64_t milli = g->slice[0] ? slice_milli(g->slice, g->model) : GPU_MILLI;
    if (g->replicas > 1)
        milli /= g->replicas;
    else if (g->count && g->count < there) /* nobody tells into how many, but there are more */
        milli = milli * g->count / there;
    return (uint32_t)milli;
}

/* ---- texts ---- */

static bool is_hugepages(const char *name)
{
    return strncmp(name, "hugepages-", 10) == 0;
}

static void put(struct buf *out, struct str name, uint64_t n, uint32_t worth_milli)
{
    buf_printf(out, "%s%.*s=%u", out->n ? "," : "", STR_ARG(name),
               (uint32_t)MIN(n, (uint64_t)UINT16_MAX));
    if (worth_milli)
        buf_printf(out, "@%u", worth_milli);
}

/* What of it is counted as devices there. */
static uint64_t left_of(const struct kube_node *n, const struct kube_count *c, const char *gpu,
                        uint64_t gpus_taken, const struct takens *t)
{
    bool is_gpu = strcmp(c->name, gpu) == 0;
    uint64_t taken = is_gpu ? gpus_taken : takens_count(t, str_of(c->name));
    if (is_hugepages(c->name) || (is_gpu && !node_shares_gpus(n, gpu)) ||
        !device_is_name(str_of(c->name)))
        return 0;
    return c->n > taken ? c->n - taken : 0;
}

void node_devices(const struct kube_node *n, const char *gpu, uint64_t gpus_taken,
                  const struct takens *t, struct buf *out)
{
    uint64_t left[EXTENDED_MAX] = { 0 };
    uint32_t worth[EXTENDED_MAX] = { 0 }, kinds = 0, others = 0;
    for (uint32_t i = 0; i < n->there.n_extended; i++) {
        left[i] = left_of(n, &n->there.extended[i], gpu, gpus_taken, t);
        worth[i] = left[i] ? node_device_worth(n, n->there.extended[i].name) : 0;
        kinds += worth[i] > 0;
    }
    kinds = MIN(kinds, (uint32_t)DEVICES_EACH);
    others = DEVICES_EACH - kinds; /* so many may be worth nothing */
    for (uint32_t i = 0; i < n->there.n_extended; i++) {
        uint32_t *room = worth[i] ? &kinds : &others;
        if (left[i] == 0 || *room == 0)
            continue;
        --*room;
        put(out, str_of(n->there.extended[i].name), left[i], worth[i]);
    }
}

int pod_devices(const struct kube_amounts *asks, const char *gpu, struct buf *out, struct err *e)
{
    uint32_t kinds = 0;
    int rc = 0;
    for (uint32_t i = 0; i < asks->n_extended; i++) {
        const char *name = asks->extended[i].name;
        if (strcmp(name, gpu) == 0)
            continue;
        if (is_hugepages(name))
            rc = err_set(e, ERR_INVALID, "it asks for %.60s, which is not counted here", name);
        else if (!device_is_name(str_of(name)))
            rc = err_set(e, ERR_INVALID, "it asks for '%.60s', which is no name of a device", name);
        else if (kinds++ < DEVICES_EACH)
            put(out, str_of(name), asks->extended[i].n, 0);
        else
            rc = err_set(e, ERR_INVALID, "it asks for more than %d kinds of devices", DEVICES_EACH);
    }
    return rc;
}

static int by_name(struct str a, struct str b)
{
    int order = memcmp(a.p, b.p, MIN(a.n, b.n));
    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

void devices_join(struct str a, struct str b, struct buf *out)
{
    struct device x = { 0 }, y = { 0 };
    bool has_x = devices_next(&a, &x), has_y = devices_next(&b, &y);
    while (has_x || has_y) {
        int order = !has_y ? -1 : !has_x ? 1 : by_name(x.name, y.name);
        put(out, order <= 0 ? x.name : y.name,
            order < 0   ? x.n
            : order > 0 ? y.n
                        : MAX(x.n, y.n),
            0);
        if (order <= 0)
            has_x = devices_next(&a, &x);
        if (order >= 0)
            has_y = devices_next(&b, &y);
    }
}
