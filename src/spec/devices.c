#include "spec/devices.h"

#include "core/device.h"

static bool is_name(struct str s)
{
    bool good = s.n > 0 && s.n <= NAME_MAX_BYTES && !strchr("._/-", s.p[0]);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '/' || c == '-');
    }
    return good;
}

static int by_name(const void *pa, const void *pb)
{
    const struct device *a = pa, *b = pb;
    int order = memcmp(a->name.p, b->name.p, MIN(a->name.n, b->name.n));
    return order ? order : a->name.n < b->name.n ? -1 : a->name.n > b->name.n;
}

int spec_devices_read(const struct json *v, uint64_t max, struct arena *a, struct str *out,
                      struct err *e)
{
    struct device of[DEVICES_EACH];
    const char *text = "";
    size_t n = 0;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "must be an object, e.g. {\"nvidia.com/mig-1g.5gb\": 1}");
    if (json_members(v) > MIN(max, (uint64_t)DEVICES_EACH))
        return err_set(e, ERR_INVALID, "has more than %d kinds of devices", DEVICES_EACH);
    for (struct json_member m = { 0 }; json_next_member(v, &m); n++) {
        uint64_t count;
        if (!is_name(m.key))
            return err_set(e, ERR_INVALID, "'%.*s' is no name of a device", STR_ARG(m.key));
        if (json_as_u64(m.value, UINT16_MAX, &count, e) < 0 || count == 0)
            return err_set(e, ERR_INVALID, "'%.*s' needs a count of 1 to %u", STR_ARG(m.key),
                           UINT16_MAX);
        of[n] = (struct device){ .name = m.key, .n = (uint32_t)count };
    }
    qsort(of, n, sizeof *of, by_name);
    for (size_t i = 0; i < n; i++)
        text = arena_printf(a, "%s%s%.*s=%u", text, i ? "," : "", STR_ARG(of[i].name), of[i].n);
    if (devices_check(str_of(text), e) < 0)
        return -1;
    *out = str_of(text);
    return 0;
}

void spec_devices_write(struct str devices, const char *key, struct json_out *w)
{
    struct device d;
    if (devices.n == 0)
        return;
    json_begin(w, key, '{');
    while (devices_next(&devices, &d)) {
        char name[NAME_MAX_BYTES + 1] = { 0 };
        memcpy(name, d.name.p, MIN(d.name.n, (size_t)NAME_MAX_BYTES));
        json_put_u64(w, name, d.n);
    }
    json_end(w, '}');
}
