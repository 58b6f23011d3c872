#include "wire/podres.h"

#include <stdio.h>

#include "base/buf.h"
#include "tests/lib/test.h"
#include "wire/proto.h"

/* A field of bytes; all that these messages have. */
static void put(struct buf *b, unsigned number, struct str s)
{
    buf_addc(b, (char)(number << 3 | 2));
    if (s.n > 127)
        buf_addc(b, (char)((s.n & 127) | 128));
    buf_addc(b, (char)(s.n > 127 ? s.n >> 7 : s.n));
    buf_add(b, s);
}

static void see(void *ctx, const struct podres_device *d)
{
    buf_printf(ctx, "%.*s/%.*s/%.*s %.*s %.*s;", STR_ARG(d->space), STR_ARG(d->pod),
               STR_ARG(d->container), STR_ARG(d->resource), STR_ARG(d->id));
}

static void a_container_has_its_devices_whatever_the_order(void)
{
    AUTO(buf_free) struct buf devices = BUF(4096), container = BUF(4096), pod = BUF(4096);
    AUTO(buf_free) struct buf all = BUF(4096), told = BUF(4096);
    struct podres_counts n;
    struct err e;
    put(&devices, 2, STR("GPU-a"));
    put(&devices, 1, STR("nvidia.com/gpu"));
    put(&devices, 2, STR("MIG-b"));
    put(&container, 2, buf_str(&devices));
    put(&container, 1, STR("job"));
    buf_addz(&container, "\x18\x05"); /* a processor that it has alone */
    put(&pod, 3, buf_str(&container));
    put(&pod, 2, STR("ours"));
    put(&pod, 1, STR("nightshift-17-1-0"));
    put(&all, 1, buf_str(&pod));
    CHECK(podres_list(buf_str(&all), see, &told, &n, &e) == 0);
    CHECK_STR(told.p, "ours/nightshift-17-1-0/job nvidia.com/gpu GPU-a;"
                      "ours/nightshift-17-1-0/job nvidia.com/gpu MIG-b;");
    CHECK(n.pods == 1 && n.containers == 1 && n.devices == 2);
    for (size_t cut = 1; cut < all.n; cut++) { /* cut off anywhere it is no answer */
        buf_truncate(&told, 0);
        CHECK(podres_list((struct str){ all.p, cut }, see, &told, &n, &e) < 0);
    }
    CHECK(podres_list(STR(""), see, &told, &n, &e) == 0 && n.pods == 0);
}

static void names_that_are_none_are_refused(void)
{
    static const struct str bad[] = { STR("a/b"), STR("a b"), STR(""), STR("a\nb"), STR("\x80") };
    struct podres_counts n;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_free) struct buf pod = BUF(4096), all = BUF(4096);
        put(&pod, 1, bad[i]);
        put(&pod, 2, STR("default"));
        put(&all, 1, buf_str(&pod));
        CHECK(podres_list(buf_str(&all), see, NULL, &n, &e) < 0);
    }
}

static void numbers_have_64_bits_and_groups_are_refused(void)
{
    struct proto_field f;
    struct err e;
    struct str most = STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    struct str more = STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    struct str group = STR("\x0b\x0c"), none = STR("\x00\x00"), fixed = STR("\x0d\x01\x02\x03\x04");
    CHECK(proto_next(&most, &f, &e) == 1 && f.value == UINT64_MAX && f.kind == PROTO_NUMBER);
    CHECK(proto_next(&most, &f, &e) == 0);
    CHECK(proto_next(&more, &f, &e) < 0);
    CHECK(proto_next(&group, &f, &e) < 0);
    CHECK(proto_next(&none, &f, &e) < 0);
    CHECK(proto_next(&fixed, &f, &e) == 1 && f.bytes.n == 4 && f.kind == PROTO_FIXED);
}

static const struct test tests[] = {
    { "a container has its devices, whatever the order",
      a_container_has_its_devices_whatever_the_order },
    { "names that are none are refused", names_that_are_none_are_refused },
    { "numbers have 64 bits, and groups are refused", numbers_have_64_bits_and_groups_are_refused },
};
TEST_CASES(tests)
