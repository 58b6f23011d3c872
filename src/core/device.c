#include "core/device.h"

#include "base/parse.h"

bool devices_next(struct str *rest, struct device *out)
{
    struct str one, count, worth;
    uint64_t n = 0, worth_milli = 0;
    struct err e;
    if (rest->n == 0)
        return false;
    str_cut(*rest, ',', &one, rest);
    str_cut(one, '=', &out->name, &count);
    bool has_worth = str_cut(count, '@', &count, &worth);
    if (parse_u64(count, UINT16_MAX, &n, &e) < 0 ||
        (has_worth && parse_u64(worth, GPU_MILLI, &worth_milli, &e) < 0))
        n = 0;
    out->n = (uint32_t)n;
    out->worth_milli = (uint32_t)worth_milli;
    return true;
}

static int by_name(struct str a, struct str b)
{
    int order = memcmp(a.p, b.p, MIN(a.n, b.n));
    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

bool device_is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f ||
            strchr("=,@|\"\\", s.p[i]))
            return false;
    return s.n > 0 && s.n <= NAME_MAX_BYTES;
}

int devices_check(struct str text, struct err *e)
{
    struct str before = { 0 };
    struct device d;
    uint32_t n = 0;
    if (text.n && text.p[text.n - 1] == ',')
        return err_set(e, ERR_INVALID, "devices: nothing after the last comma");
    while (devices_next(&text, &d)) {
        if (!device_is_name(d.name))
            return err_set(e, ERR_INVALID, "devices: '%.*s' is no name of a device",
                           STR_ARG(d.name));
        if (d.n == 0)
            return err_set(e, ERR_INVALID, "devices: '%.*s': a count of 1 to %u is needed",
                           STR_ARG(d.name), UINT16_MAX);
        if (n++ && by_name(before, d.name) >= 0)
            return err_set(e, ERR_INVALID, "devices: '%.*s' is not in order of names",
                           STR_ARG(d.name));
        before = d.name;
    }
    if (n > DEVICES_EACH)
        return err_set(e, ERR_TOO_LARGE, "devices: %u kinds of them; at most %d", n, DEVICES_EACH);
    return 0;
}

uint32_t devices_count(struct str text, struct str name)
{
    struct device d;
    while (devices_next(&text, &d))
        if (str_eq(d.name, name))
            return d.n;
    return 0;
}

bool devices_cover(struct str has, struct str other)
{
    struct device want;
    while (devices_next(&other, &want))
        if (devices_count(has, want.name) < want.n)
            return false;
    return true;
}

int cluster_check_devices(const struct cluster *c, struct str text, struct err *e)
{
    size_t names = c->devices.n;
    struct device d;
    if (devices_check(text, e) < 0)
        return -1;
    while (devices_next(&text, &d))
        names += names_find(&c->devices, d.name) == NAME_NONE;
    if (names > DEVICES_MAX)
        return err_set(e, ERR_TOO_LARGE, "devices: more than %d names in one cluster", DEVICES_MAX);
    return 0;
}

void cluster_intern_devices(struct cluster *c, struct str text)
{
    struct device d;
    while (devices_next(&text, &d)) {
        uint32_t i = names_intern(&c->devices, d.name);
        c->device_milli[i] = MAX(c->device_milli[i], d.worth_milli);
    }
}

static int unknown(const struct cluster *c, struct str name, struct err *e)
{
    const char *known = c->devices.n ? names_get(&c->devices, 0) : "";
    err_set(e, ERR_INVALID, "devices: no machine has '%.*s'", STR_ARG(name));
    err_about(e, "resources.devices");
    return c->devices.n ? err_hint(e, "machines have %s%s", known, c->devices.n > 1 ? ", …" : "")
                        : err_hint(e, "machines here have no devices beyond GPUs");
}

int cluster_parse_devices(const struct cluster *c, struct str text, struct request *out,
                          struct err *e)
{
    struct request r = *out;
    struct device d;
    memset(r.device, 0, sizeof r.device);
    memset(r.device_n, 0, sizeof r.device_n);
    if (devices_check(text, e) < 0)
        return -1;
    for (uint32_t i = 0; devices_next(&text, &d); i++) {
        uint32_t number = names_find(&c->devices, d.name);
        if (number == NAME_NONE)
            return unknown(c, d.name, e);
        r.device[i] = (uint8_t)(number + 1);
        r.device_n[i] = (uint16_t)d.n;
    }
    *out = r;
    return 0;
}

const char *device_name(const struct cluster *c, const struct request *r, uint32_t i)
{
    return names_get(&c->devices, r->device[i] - 1u);
}

struct str cluster_devices_text(const struct cluster *c, const struct request *r, struct arena *a)
{
    const char *text = "";
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++)
        text =
            arena_printf(a, "%s%s%s=%u", text, i ? "," : "", device_name(c, r, i), r->device_n[i]);
    return str_of(text);
}

void kind_set_devices(struct cluster *c, struct kind *k, struct str text)
{
    struct device d;
    cluster_intern_devices(c, text);
    k->kit = text.n ? names_intern(&c->kits, text) : 0;
    for (uint32_t i = 0; devices_next(&text, &d); i++) {
        k->device[i] = (uint8_t)(names_find(&c->devices, d.name) + 1);
        k->device_n[i] = (uint16_t)d.n;
    }
}

uint64_t devices_worth_milli(const struct cluster *c, const struct request *r)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++)
        sum += (uint64_t)r->device_n[i] * c->device_milli[r->device[i] - 1];
    return sum;
}

/* ---- on machines ---- */

bool kind_has_devices(const struct kind *k, const struct request *r)
{
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++) {
        uint32_t at = kind_device(k, r->device[i]);
        if (at == NONE || k->device_n[at] < r->device_n[i])
            return false;
    }
    return true;
}

uint32_t room_devices(const struct kind *k, const struct room *m, const struct request *r,
                      uint32_t n)
{
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++) {
        uint32_t at = kind_device(k, r->device[i]);
        n = at == NONE ? 0 : MIN(n, (uint32_t)m->device[at] / r->device_n[i]);
    }
    return n;
}

void room_move_devices(const struct kind *k, struct room *m, const struct request *r, bool take)
{
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++) {
        uint16_t *free = &m->device[kind_device(k, r->device[i])];
        *free = (uint16_t)(take ? *free - r->device_n[i] : *free + r->device_n[i]);
    }
}

uint32_t devices_most(const struct cluster *c, const struct request *r, uint32_t i, bool now)
{
    uint32_t most = 0;
    for (uint32_t n = 0; n < c->nodes; n++) {
        const struct node *nd = &c->node[n];
        const struct kind *k = &c->kind[nd->kind];
        uint32_t at = kind_device(k, r->device[i]);
        if (at == NONE || !kind_in_zone(k, r) || (now && !node_takes(c, nd, r)))
            continue;
        most = MAX(most, (uint32_t)(now ? nd->offer.device[at] : k->device_n[at]));
    }
    return most;
}

uint32_t devices_short(const struct cluster *c, const struct request *r, bool now)
{
    for (uint32_t i = 0; i < DEVICES_EACH && r->device[i]; i++)
        if (devices_most(c, r, i, now) < r->device_n[i])
            return i;
    return NONE;
}
