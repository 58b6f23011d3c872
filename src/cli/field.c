#include "cli/field.h"

struct str field_str(const struct json *obj, const char *key)
{
    struct str s = { "", 0 };
    struct err e;
    const struct json *v = json_find(obj, key);
    return v && json_as_str(v, SIZE_MAX, &s, &e) == 0 ? s : (struct str){ "", 0 };
}

uint64_t field_u64(const struct json *obj, const char *key)
{
    uint64_t v = 0;
    struct err e;
    return json_get_u64(obj, key, UINT64_MAX, &v, &e) < 0 ? 0 : v;
}

int64_t field_i64(const struct json *obj, const char *key, int64_t otherwise)
{
    int64_t v = otherwise;
    struct err e;
    return json_get_i64(obj, key, INT64_MIN, INT64_MAX, &v, &e) < 0 ? otherwise : v;
}

double field_f64(const struct json *obj, const char *key)
{
    double v = 0;
    struct err e;
    return json_get_f64(obj, key, -1e300, 1e300, &v, &e) < 0 ? 0 : v;
}

bool field_bool(const struct json *obj, const char *key)
{
    bool v = false;
    struct err e;
    return json_get_bool(obj, key, &v, &e) == 0 && v;
}

bool field_known(const struct json *obj, const char *key)
{
    return json_kind(json_find(obj, key)) != JSON_NULL;
}
