#include "wire/podres.h"

#include "wire/proto.h"

struct reading {
    podres_fn *fn;
    void *ctx;
    struct podres_counts *counts;
    struct podres_device at;
};

/* As in the kubelet's description of its interface. */
enum {
    LIST_POD = 1,
    POD_NAME = 1,
    POD_SPACE = 2,
    POD_CONTAINER = 3,
    CONTAINER_NAME = 1,
    CONTAINER_DEVICES = 2,
    ALLOCATABLE_DEVICES = 1,
    DEVICES_RESOURCE = 1,
    DEVICES_ID = 2,
};

/* Printable, and nothing that would make two names of one. */
static bool is_name(struct str s, size_t max, bool slash)
{
    if (s.n == 0 || s.n > max)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 127 || (s.p[i] == '/' && !slash))
            return false;
    return true;
}

static int bad(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID, "the kubelet's answer has a %s that is none", what);
}

static bool is(const struct proto_field *f, uint32_t number)
{
    return f->number == number && f->kind == PROTO_BYTES;
}

static int read_devices(struct reading *r, struct str message, struct err *e)
{
    struct proto_field f;
    struct str rest = message;
    int rc;
    r->at.resource = STR("");
    while ((rc = proto_next(&rest, &f, e)) > 0)
        if (is(&f, DEVICES_RESOURCE))
            r->at.resource = f.bytes;
    if (rc < 0 || message.n == 0)
        return rc;
    if (!is_name(r->at.resource, PODRES_NAME_MAX + 64, true))
        return bad(e, "resource");
    for (rest = message; (rc = proto_next(&rest, &f, e)) > 0;) {
        if (!is(&f, DEVICES_ID))
            continue;
        if (!is_name(f.bytes, PODRES_DEVICE_MAX, true))
            return bad(e, "device");
        r->at.id = f.bytes;
        r->counts->devices++;
        r->fn(r->ctx, &r->at);
    }
    return rc;
}

static int read_container(struct reading *r, struct str message, struct err *e)
{
    struct proto_field f;
    struct str rest = message;
    int rc;
    r->at.container = STR("");
    while ((rc = proto_next(&rest, &f, e)) > 0)
        if (is(&f, CONTAINER_NAME))
            r->at.container = f.bytes;
    if (rc < 0)
        return rc;
    if (!is_name(r->at.container, 63, false))
        return bad(e, "container");
    r->counts->containers++;
    for (rest = message; (rc = proto_next(&rest, &f, e)) > 0;)
        if (is(&f, CONTAINER_DEVICES) && read_devices(r, f.bytes, e) < 0)
            return -1;
    return rc;
}

/* The names may come after what they name. */
static int read_pod(struct reading *r, struct str message, struct err *e)
{
    struct proto_field f;
    struct str rest = message;
    int rc;
    r->at.pod = r->at.space = STR("");
    while ((rc = proto_next(&rest, &f, e)) > 0)
        if (is(&f, POD_NAME))
            r->at.pod = f.bytes;
        else if (is(&f, POD_SPACE))
            r->at.space = f.bytes;
    if (rc < 0)
        return rc;
    if (!is_name(r->at.pod, PODRES_NAME_MAX, false) || !is_name(r->at.space, 63, false))
        return bad(e, "pod");
    r->counts->pods++;
    for (rest = message; (rc = proto_next(&rest, &f, e)) > 0;)
        if (is(&f, POD_CONTAINER) && read_container(r, f.bytes, e) < 0)
            return -1;
    return rc;
}

static int read_all(struct str message, uint32_t number, struct reading *r,
                    int (*read)(struct reading *r, struct str message, struct err *e),
                    struct err *e)
{
    struct proto_field f;
    int rc;
    *r->counts = (struct podres_counts){ 0 };
    if (message.n > PODRES_BYTES_MAX)
        return err_set(e, ERR_TOO_LARGE, "the kubelet's answer is too long");
    while ((rc = proto_next(&message, &f, e)) > 0)
        if (is(&f, number) && read(r, f.bytes, e) < 0)
            return -1;
    return rc;
}

int podres_list(struct str message, podres_fn *fn, void *ctx, struct podres_counts *out,
                struct err *e)
{
    struct reading r = { .fn = fn, .ctx = ctx, .counts = out };
    return read_all(message, LIST_POD, &r, read_pod, e);
}

int podres_allocatable(struct str message, podres_fn *fn, void *ctx, struct podres_counts *out,
                       struct err *e)
{
    struct reading r = {
        .fn = fn, .ctx = ctx, .counts = out, .at = { STR(""), STR(""), STR(""), STR(""), STR("") }
    };
    return read_all(message, ALLOCATABLE_DEVICES, &r, read_devices, e);
}
