/* The input as an answer of the kubelet: what is told lies within it and within its bounds, and nothing else is. */
#include "tests/fuzz/target.h"
#include "wire/podres.h"

struct seen {
    struct str whole;
    uint64_t devices;
};

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void within(const struct seen *s, struct str part, size_t max)
{
    must(part.n <= max);
    must(part.n == 0 || (part.p >= s->whole.p && part.p + part.n <= s->whole.p + s->whole.n));
    for (size_t i = 0; i < part.n; i++)
        must(part.p[i] > ' ' && part.p[i] < 127);
}

static void see(void *ctx, const struct podres_device *d)
{
    struct seen *s = ctx;
    s->devices++;
    within(s, d->space, 63);
    within(s, d->pod, PODRES_NAME_MAX);
    within(s, d->container, 63);
    within(s, d->resource, PODRES_NAME_MAX + 64);
    within(s, d->id, PODRES_DEVICE_MAX);
    must(d->resource.n && d->id.n && !d->pod.n == !d->container.n && !d->pod.n == !d->space.n);
}

FUZZ_TARGET(data, size)
{
    struct seen s = { .whole = { (const char *)data, size } };
    struct podres_counts counts;
    struct err e;
    if (podres_list(s.whole, see, &s, &counts, &e) == 0)
        must(counts.devices == s.devices);
    s.devices = 0;
    if (podres_allocatable(s.whole, see, &s, &counts, &e) == 0)
        must(counts.devices == s.devices && counts.pods == 0);
    return 0;
}
