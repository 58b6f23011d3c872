/* Machines that are one tenant's for a time: which, when, and what may still run there. */
#include "api/audit.h"
#include "api/lent.h"

#define GPUS_MAX UINT64_C(1000000)

void put_reservation_head(struct call *c, struct json_out *w, const struct reservation_view *r)
{
    struct control *control = c->api->config.control;
    struct share_view tenant = { .name = "" };
    core_share(control_core(control), r->tenant, control_now_ms(control), &tenant);
    if (sees_tenant(c, str_of(tenant.name))) {
        json_put_str(w, "name", str_of(r->name));
        json_put_str(w, "tenant", str_of(tenant.name));
    } else {
        json_put_null(w, "name");
        json_put_null(w, "tenant");
    }
    json_put_i64(w, "from_ms", r->from_ms);
    json_put_i64(w, "until_ms", r->until_ms);
}

static void put_reservation(struct call *c, struct json_out *w, const struct reservation_view *r)
{
    struct control *control = c->api->config.control;
    struct node_view v;
    uint64_t gpus = 0;
    put_reservation_head(c, w, r);
    json_put_bool(w, "open", r->from_ms <= control_now_ms(control));
    json_begin(w, "nodes", '[');
    for (uint32_t i = 0; i < r->n && core_node(control_core(control), (node_id){ r->node[i] }, &v);
         i++) {
        put_machine(w, v.name, &v);
        gpus += v.gpus;
    }
    json_end(w, ']');
    json_put_u64(w, "gpus", gpus);
}

static int put_jobs(struct call *c, struct json_out *w, const struct reservation_view *r,
                    uint32_t number, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    struct reservation_begin begin = { number, r->from_ms };
    size_t nodes = core_totals(core).nodes;
    struct holder **holders;
    struct node_view v;
    if (find_holders(c, &holders, nodes, e) < 0)
        return -1;
    json_begin(w, "jobs", '[');
    for (uint32_t i = 0; i < r->n && core_node(core, (node_id){ r->node[i] }, &v); i++)
        put_leaving(c, w, v.name, holders[r->node[i]], &begin);
    json_end(w, ']');
    return 0;
}

/* ---- looking ---- */

static int by_begin(const void *a, const void *b)
{
    const struct reservation_view *x = a, *y = b;
    if (x->from_ms != y->from_ms)
        return x->from_ms < y->from_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

int api_reservation_list(struct call *c, struct err *e)
{
    struct control *control = c->api->config.control;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct reservation_view v;
    uint32_t most = 0, n = 0;
    (void)e;
    while (control_reservation_at(control, most, &v))
        most++;
    struct reservation_view *all =
        arena_array(http_arena(c->rq), struct reservation_view, most + 1);
    for (uint32_t i = 0; control_reservation_at(control, i, &v); i++)
        if (v.name)
            all[n++] = v;
    qsort(all, n, sizeof *all, by_begin);
    json_begin(&w, NULL, '{');
    json_begin(&w, "reservations", '[');
    for (uint32_t i = 0; i < n; i++) {
        json_begin(&w, NULL, '{');
        put_reservation(c, &w, &all[i]);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

int no_reservation(struct str name, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "there is no reservation '%.*s', or it has ended",
            (int)MIN(name.n, FIELD_MAX), name.p);
    return err_hint(e, "see those there are: GET /v1/reservations");
}

static int reply_reservation(struct call *c, struct str name, struct err *e)
{
    struct reservation_view r;
    uint32_t i;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (!control_reservation_find(c->api->config.control, name, &i, &r))
        return no_reservation(name, e);
    json_begin(&w, NULL, '{');
    put_reservation(c, &w, &r);
    if (put_jobs(c, &w, &r, i + 1, e) < 0)
        return -1;
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

int api_reservation_get(struct call *c, struct err *e)
{
    return reply_reservation(c, c->param[0], e);
}

/* ---- changing ---- */

static void on_changed(void *ctx)
{
    struct named_later *l = ctx;
    struct err e;
    if (reply_reservation(&l->call, l->name, &e) < 0) /* somebody has given it up since */
        http_reply_error(l->call.rq, &e, NULL);
}

/* What people have said of it, and whose it is; empty: there is none. */
static struct str said(struct call *c, struct str name, struct str *tenant)
{
    struct control *control = c->api->config.control;
    struct reservation_view r;
    struct share_view share = { .name = "" };
    struct node_view v;
    uint32_t unused;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (!control_reservation_find(control, name, &unused, &r))
        return STR("");
    core_share(control_core(control), r.tenant, control_now_ms(control), &share);
    *tenant = str_of(arena_printf(http_arena(c->rq), "%s", share.name));
    json_begin(&w, NULL, '{');
    put_reservation_head(c, &w, &r);
    json_begin(&w, "nodes", '[');
    for (uint32_t i = 0; i < r.n && core_node(control_core(control), (node_id){ r.node[i] }, &v);
         i++)
        json_put_str(&w, NULL, str_of(v.name));
    json_end(&w, ']');
    json_end(&w, '}');
    return (struct str){ arena_strndup(http_arena(c->rq), b.p, b.n), b.n };
}

static int read_text(struct call *c, const struct json *o, const char *key, size_t max,
                     struct str *out, struct err *e)
{
    c->field = key;
    if (json_get_str(o, key, max, out, e) < 0)
        return err_hint(e, "a text of at most %zu bytes", max);
    if (json_find(o, key) && out->n == 0) {
        err_set(e, ERR_INVALID, "%s: it is empty", key);
        return err_hint(e, "leave it out, or give a name");
    }
    c->field = NULL;
    return 0;
}

static int read_gpus(struct call *c, const struct json *o, uint64_t *out, struct err *e)
{
    c->field = "gpus";
    if (json_get_u64(o, "gpus", GPUS_MAX, out, e) < 0)
        return err_hint(e, "how many GPUs its machines have at least");
    if (json_find(o, "gpus") && *out == 0) {
        err_set(e, ERR_INVALID, "gpus: at least 1 is needed");
        return err_hint(e, "name machines without GPUs in nodes");
    }
    c->field = NULL;
    return 0;
}

int api_reservation_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "tenant", "from_ms", "until_ms", "for",
                                        "nodes",  "gpus",    "gpu_type" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    AUTO(buf_free) struct buf all = BUF(POOL_LIST_MAX);
    struct control_reserve r = { .by = str_of(c->who.user) };
    struct str tenant = STR(""), nodes;
    struct times t;
    bool has_nodes;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        read_text(c, json_root(d), "tenant", NAME_MAX_BYTES, &tenant, e) < 0 ||
        read_text(c, json_root(d), "gpu_type", 1024, &r.gpu_type, e) < 0 ||
        read_gpus(c, json_root(d), &r.gpus, e) < 0 || read_times(c, json_root(d), &t, e) < 0 ||
        read_nodes(c, json_root(d), &all, &has_nodes, e) < 0)
        return -1;
    struct named_later *l = named_later_new(c);
    nodes = buf_str(&all);
    r.name = l->name;
    r.tenant = tenant.n ? &tenant : NULL;
    r.from_ms = t.has_from ? &t.from_ms : NULL;
    r.until_ms = t.has_until ? &t.until_ms : NULL;
    r.for_ms = t.for_ms;
    r.nodes = has_nodes ? &nodes : NULL;
    struct audit_change ch = { AUDIT_RESERVATION_SET, .subject = l->name };
    ch.before = said(c, l->name, &ch.tenant);
    if (control_reserve(c->api->config.control, &r, (struct control_done){ on_changed, l }, e) < 0)
        return -1;
    ch.after = said(c, l->name, &ch.tenant);
    api_audit(c, &ch);
    return 0;
}

int api_reservation_delete(struct call *c, struct err *e)
{
    struct control *control = c->api->config.control;
    struct named_later *l = named_later_new(c);
    struct reservation_view r;
    struct node_view v;
    struct control_done done;
    uint32_t unused;
    control_reservation_find(control, l->name, &unused, &r);
    const char **node = arena_array(http_arena(c->rq), const char *, r.n + 1);
    for (uint32_t i = 0; i < r.n; i++)
        node[i] = core_node(control_core(control), (node_id){ r.node[i] }, &v) ? v.name : "";
    if (named_removal(l, node, r.n, &done, e) < 0)
        return -1;
    struct audit_change ch = { AUDIT_RESERVATION_DELETE, .subject = l->name };
    ch.before = said(c, l->name, &ch.tenant);
    if (control_reservation_delete(control, l->name, str_of(c->who.user), done, e) < 0)
        return -1;
    api_audit(c, &ch);
    return 0;
}
