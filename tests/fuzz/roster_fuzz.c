/* A document of tenants and people, as YAML: what is read can be written, and what was written is read the same. */
#include "api/roster.h"
#include "base/yaml.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void write(const struct roster *r, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_begin(&w, "tenants", '{');
    for (size_t i = 0; i < r->tenants; i++) {
        json_begin(&w, r->tenant[i].name.p, '{');
        roster_put_tenant(&w, &r->tenant[i]);
        json_end(&w, '}');
    }
    json_end(&w, '}');
    json_begin(&w, "users", '{');
    for (size_t i = 0; i < r->users; i++) {
        json_begin(&w, r->user[i].name.p, '{');
        roster_put_user(&w, &r->user[i]);
        json_end(&w, '}');
    }
    json_end(&w, '}');
    json_end(&w, '}');
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf once = BUF(64u << 20), again = BUF(64u << 20);
    struct err e = { 0 };
    struct roster r, back;
    const char *field = NULL;
    AUTO(json_free_p) struct json_doc *d = yaml_read((struct str){ (const char *)data, size }, &e);
    if (!d)
        return 0;
    if (roster_read(json_root(d), &a, &r, &field, &e) < 0) {
        must(e.code == ERR_INVALID && e.msg[0] && e.hint[0]);
        return 0;
    }
    write(&r, &once);
    AUTO(json_free_p) struct json_doc *second = json_read(buf_str(&once), &e);
    must(second && roster_read(json_root(second), &a, &back, &field, &e) == 0);
    write(&back, &again);
    must(str_eq(buf_str(&once), buf_str(&again)));
    return 0;
}
