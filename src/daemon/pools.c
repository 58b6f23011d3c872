#include "daemon/pools.h"

#include "base/map.h"

#define POOLS_MAX 1000u /* as the core has it */

static int read_window(const struct json *o, int64_t now_ms, struct arena *a, struct str *out,
                       struct err *e)
{
    AUTO(buf_free) struct buf kept = BUF(CALENDAR_TEXT_MAX);
    struct str text = STR("");
    struct calendar c;
    if (json_get_str(o, "window", CALENDAR_TEXT_MAX, &text, e) < 0)
        return -1;
    if (text.n && pool_read_window(text, now_ms, &c, e) < 0)
        return err_wrap(e, "window");
    if (text.n)
        calendar_format(&c, &kept);
    *out = (struct str){ arena_strndup(a, kept.n ? kept.p : "", kept.n), kept.n };
    return 0;
}

/* A list of names and patterns, or one text. */
static int read_nodes(const struct json *o, struct arena *a, struct control_pool_def *out,
                      struct err *e)
{
    AUTO(buf_free) struct buf all = BUF(POOL_LIST_MAX);
    const struct json *list = json_find(o, "nodes");
    const char **node = NULL;
    struct str s;
    if (list && !json_is_array(list) && !json_is_string(list))
        return err_set(e, ERR_INVALID, "nodes: a list of names is needed, e.g. [pc01, 'lab[1-9]']");
    if (json_is_string(list)) {
        if (json_as_str(list, POOL_LIST_MAX, &s, e) < 0)
            return err_wrap(e, "nodes");
        buf_add(&all, s);
    }
    for (const struct json *v = json_is_array(list) ? json_first(list) : NULL; v;
         v = json_next(list, v)) {
        if (json_as_str(v, POOL_LIST_MAX, &s, e) < 0)
            return err_wrap(e, "nodes");
        buf_addz(&all, all.n ? "," : "");
        buf_add(&all, s);
    }
    if (buf_check(&all, e) < 0 || pool_read_nodes(buf_str(&all), a, &node, &out->nodes, e) < 0)
        return err_wrap(e, "nodes");
    out->node = node;
    return 0;
}

static int read_pool(const struct json *o, int64_t now_ms, struct arena *a,
                     struct control_pool_def *out, struct err *e)
{
    static const char *const keys[] = { "window", "nodes", "stage" };
    struct str stage = STR("all");
    if (json_is_null(o)) /* "name:" alone */
        return 0;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "an object with window and nodes is needed");
    if (json_only(o, keys, ARRAY_LEN(keys), e) < 0)
        return -1;
    if (json_get_str(o, "stage", 16, &stage, e) < 0)
        return -1;
    if (!stage_parse(stage, &out->stage)) {
        err_set(e, ERR_INVALID, "stage: '%.*s' is not known here", STR_ARG(stage));
        return err_hint(e, "all, beta, alpha or enrolled");
    }
    return read_window(o, now_ms, a, &out->window, e) < 0 ? -1 : read_nodes(o, a, out, e);
}

/* A machine is in one pool. */
static int check_once(const struct control_pool_def *def, size_t n, struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    AUTO(free_p) uint32_t *pool = NULL;
    size_t k = 0, cap = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t m = 0; m < def[i].nodes; m++) {
            struct str name = str_of(def[i].node[m]);
            uint32_t at = names_find(&seen, name);
            if (at < k)
                return err_set(e, ERR_INVALID, "%.*s: nodes: '%s' is in '%.*s' already",
                               STR_ARG(def[i].name), def[i].node[m], STR_ARG(def[pool[at]].name));
            names_intern(&seen, name);
            vec_grow(pool, k, cap);
            pool[k++] = (uint32_t)i;
        }
    return 0;
}

int pools_read(const struct json *section, int64_t now_ms, struct arena *a,
               struct control_pool_def **out, size_t *out_n, struct err *e)
{
    size_t n = 0, most = section && json_is_object(section) ? json_members(section) : 0;
    if (section && !json_is_object(section) && !json_is_null(section))
        return err_set(e, ERR_INVALID, "pools: an object is needed, one key a pool");
    if (most > POOLS_MAX)
        return err_set(e, ERR_INVALID, "pools: there are %zu; at most %u", most, POOLS_MAX);
    struct control_pool_def *def = arena_array(a, struct control_pool_def, most + 1);
    for (struct json_member m = { 0 }; most && json_next_member(section, &m); n++) {
        def[n].name = (struct str){ arena_strndup(a, m.key.p, m.key.n), m.key.n };
        if (pool_check_name("pool", m.key, e) < 0)
            return err_wrap(e, "pools");
        if (read_pool(m.value, now_ms, a, &def[n], e) < 0)
            return err_wrap(e, "pools: %.*s", STR_ARG(m.key));
    }
    if (check_once(def, n, e) < 0)
        return err_wrap(e, "pools");
    *out = def;
    *out_n = n;
    return 0;
}
