#include "keeper/net_tenants.h"

#include "base/json.h"

const struct net_tenant_row *net_tenants_find(const struct net_tenants *t, struct str name)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_is(name, t->row[i].name))
            return &t->row[i];
    return NULL;
}

const struct net_tenant_row *net_tenants_number(const struct net_tenants *t, uint32_t number)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i].number == number)
            return &t->row[i];
    return NULL;
}

void net_tenants_add(struct net_tenants *t, struct str name, uint32_t number)
{
    vec_grow(t->row, t->n, t->cap);
    char *copy = xcalloc(1, name.n + 1);
    memcpy(copy, name.p, name.n);
    t->row[t->n++] = (struct net_tenant_row){ copy, number };
}

void net_tenants_clear(struct net_tenants *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->row[i].name);
    free(t->row);
    *t = (struct net_tenants){ 0 };
}

static int parse_row(const struct json *v, struct net_tenants *t, struct err *e)
{
    static const char *const keys[] = { "name", "number" };
    struct str name = { 0 };
    uint64_t number = 0;
    if (json_only(v, keys, ARRAY_LEN(keys), e) < 0 ||
        json_need_str(v, "name", NET_TENANT_NAME_MAX, &name, e) < 0 ||
        json_need_u64(v, "number", NET_TENANTS_MAX - 1, &number, e) < 0)
        return -1;
    if (name.n == 0 || memchr(name.p, 0, name.n))
        return err_set(e, ERR_INVALID, "tenant number %u has no proper name", (unsigned)number);
    if (net_tenants_find(t, name) || net_tenants_number(t, (uint32_t)number))
        return err_set(e, ERR_INVALID, "tenant '%.*s' or its number %u stands there twice",
                       STR_ARG(name), (unsigned)number);
    net_tenants_add(t, name, (uint32_t)number);
    return 0;
}

int net_tenants_parse(struct str text, struct net_tenants *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    AUTO(net_tenants_clear) struct net_tenants t = { 0 };
    if (!d)
        return -1;
    const struct json *root = json_root(d);
    uint64_t version = 0;
    if (json_need_u64(root, "version", 1, &version, e) < 0)
        return -1;
    const struct json *list = json_find(root, "tenants");
    if (version != 1 || !list || !json_is_array(list) || json_len(list) > NET_TENANTS_MAX)
        return err_set(e, ERR_INVALID, "this is not a list of at most %d tenants, version 1",
                       NET_TENANTS_MAX);
    for (const struct json *v = json_first(list); v; v = json_next(list, v))
        if (parse_row(v, &t, e) < 0)
            return err_wrap(e, "list of tenants");
    net_tenants_clear(out);
    *out = t;
    t = (struct net_tenants){ 0 };
    return 0;
}

void net_tenants_format(const struct net_tenants *t, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "version", 1);
    json_begin(&w, "tenants", '[');
    for (size_t i = 0; i < t->n; i++) {
        json_begin(&w, NULL, '{');
        json_put_str(&w, "name", str_of(t->row[i].name));
        json_put_u64(&w, "number", t->row[i].number);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    buf_addc(out, '\n');
}
