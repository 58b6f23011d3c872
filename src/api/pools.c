/* Machines that are lent at times: which, when, and what has to leave them. */
#include "api/audit.h"
#include "api/lent.h"

#define WEEK_MS (7 * 24 * INT64_C(3600000))
#define STRETCHES_MAX 200 /* of a week that is shown */
#define MINUTE_MS INT64_C(60000)

static void put_calendar(struct json_out *w, const char *key, const struct calendar *c)
{
    AUTO(buf_free) struct buf text = BUF(CALENDAR_TEXT_MAX);
    calendar_format(c, &text);
    json_put_str(w, key, buf_str(&text));
}

static void put_stretch(struct json_out *w, bool open, int64_t from_ms, int64_t until_ms)
{
    json_begin(w, NULL, '{');
    json_put_bool(w, "open", open);
    json_put_i64(w, "from_ms", from_ms);
    json_put_i64(w, "until_ms", until_ms);
    json_end(w, '}');
}

static void put_exceptions(struct json_out *w, const struct calendar *c)
{
    json_begin(w, "exceptions", '[');
    for (uint32_t i = 0; i < c->exceptions; i++)
        put_stretch(w, c->exception[i].open, c->exception[i].from_min * MINUTE_MS,
                    c->exception[i].to_min * MINUTE_MS);
    json_end(w, ']');
}

/* From now on for a week: enough for a picture of it. */
static void put_week(struct json_out *w, const struct calendar *c, int64_t now_ms)
{
    int64_t end_ms = now_ms + WEEK_MS;
    json_begin(w, "week", '[');
    for (int n = 0; now_ms < end_ms && n < STRETCHES_MAX; n++) {
        int64_t next_ms = calendar_next_change(c, now_ms);
        put_stretch(w, calendar_is_open(c, now_ms), now_ms, MIN(next_ms, end_ms));
        now_ms = next_ms;
    }
    json_end(w, ']');
}

/* ---- machines and jobs ---- */

/* All zero when it has not come yet. */
static bool find_node(struct core *core, const char *name, uint32_t *out_i, struct node_view *out)
{
    for (uint32_t i = 0; core_node(core, (node_id){ i }, out); i++)
        if (strcmp(out->name, name) == 0) {
            *out_i = i;
            return true;
        }
    *out = (struct node_view){ 0 };
    return false;
}

/* Machines that are named and have not come yet are shown too: a typing error looks just so. */
static uint64_t put_nodes(struct call *c, struct json_out *w, const struct control_pool *p)
{
    struct core *core = control_core(c->api->config.control);
    uint64_t gpus = 0;
    json_begin(w, "nodes", '[');
    for (size_t k = 0; k < p->nodes; k++) {
        struct node_view v;
        uint32_t i;
        find_node(core, p->node[k], &i, &v);
        put_machine(w, p->node[k], &v);
        gpus += v.gpus;
    }
    json_end(w, ']');
    return gpus;
}

/* What runs there, and how each leaves when the window ends. */
static int put_jobs(struct call *c, struct json_out *w, const struct control_pool *p, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    size_t nodes = core_totals(core).nodes;
    struct holder **holders;
    if (find_holders(c, &holders, nodes, e) < 0)
        return -1;
    json_begin(w, "jobs", '[');
    for (size_t k = 0; k < p->nodes; k++) {
        struct node_view v;
        uint32_t i;
        if (find_node(core, p->node[k], &i, &v) && i < nodes)
            put_leaving(c, w, v.name, holders[i], NULL);
    }
    json_end(w, ']');
    return 0;
}

static int put_pool(struct call *c, struct json_out *w, const struct control_pool *p, bool whole,
                    struct err *e)
{
    int64_t now_ms = control_now_ms(c->api->config.control);
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(p->name));
    json_put_str(w, "owner", p->of_settings ? STR("settings") : STR("api"));
    json_put_str(w, "stage", str_of(stage_name(p->stage)));
    if (p->always)
        json_put_null(w, "window");
    else
        put_calendar(w, "window", p->window);
    put_calendar(w, "calendar", p->now);
    put_exceptions(w, p->exceptions);
    json_put_bool(w, "open", calendar_is_open(p->now, now_ms));
    put_when(w, "until_ms", calendar_next_change(p->now, now_ms));
    json_put_u64(w, "gpus", put_nodes(c, w, p));
    if (whole && put_jobs(c, w, p, e) < 0)
        return -1;
    if (whole)
        put_week(w, p->now, now_ms);
    json_end(w, '}');
    return 0;
}

/* ---- looking ---- */

int api_pool_list(struct call *c, struct err *e)
{
    struct control_pool p;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_begin(&w, "pools", '[');
    for (size_t i = 0; control_pool_at(c->api->config.control, i, &p); i++)
        if (put_pool(c, &w, &p, false, e) < 0)
            return -1;
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

static int reply_pool(struct call *c, struct str name, struct err *e)
{
    struct control_pool p;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (!control_pool_find(c->api->config.control, name, &p)) {
        err_set(e, ERR_NOT_FOUND, "there is no pool '%.*s'", (int)MIN(name.n, FIELD_MAX), name.p);
        return err_hint(e, "see those there are: GET /v1/pools");
    }
    if (put_pool(c, &w, &p, true, e) < 0)
        return -1;
    reply_json(c, 200, &b);
    return 0;
}

int api_pool_get(struct call *c, struct err *e)
{
    return reply_pool(c, c->param[0], e);
}

/* ---- changing: answered when it is on the disk ---- */

static void on_changed(void *ctx)
{
    struct named_later *l = ctx;
    struct err e;
    if (reply_pool(&l->call, l->name, &e) < 0) /* somebody has removed it since */
        http_reply_error(l->call.rq, &e, NULL);
}

/* What people have said of it; empty: there is none. */
static struct str said(struct call *c, struct str name)
{
    struct control_pool p;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (!control_pool_find(c->api->config.control, name, &p))
        return STR("");
    json_begin(&w, NULL, '{');
    if (p.always)
        json_put_null(&w, "window");
    else
        put_calendar(&w, "window", p.window);
    put_exceptions(&w, p.exceptions);
    json_begin(&w, "nodes", '[');
    for (size_t i = 0; i < p.nodes; i++)
        json_put_str(&w, NULL, str_of(p.node[i]));
    json_end(&w, ']');
    json_end(&w, '}');
    return (struct str){ arena_strndup(http_arena(c->rq), b.p, b.n), b.n };
}

static int wrote(struct call *c, const struct named_later *l, struct audit_change *ch)
{
    ch->subject = l->name;
    ch->after = said(c, l->name);
    api_audit(c, ch);
    return 0;
}

/* What is said of a field is checked here, for the answer to name it. */
static int read_window(struct call *c, const struct json *o, struct str *out, bool *given,
                       struct err *e)
{
    const struct json *v = json_find(o, "window");
    struct calendar unused;
    c->field = "window";
    *given = v != NULL;
    if (v && !json_is_null(v) && json_as_str(v, CALENDAR_TEXT_MAX, out, e) < 0)
        return err_wrap(e, "window");
    if (pool_read_window(*out, control_now_ms(c->api->config.control), &unused, e) < 0) {
        if (!e->hint[0])
            err_hint(e, "e.g. zone=Europe/Berlin; Mon-Sun 20:00-08:00; Sat-Sun 00:00-24:00");
        return err_wrap(e, "window");
    }
    c->field = NULL;
    return 0;
}

static int read_stage(struct call *c, const struct json *o, enum stage *out, bool *given,
                      struct err *e)
{
    struct str word = STR("");
    *given = json_find(o, "stage") != NULL;
    if (!*given)
        return 0;
    c->field = "stage";
    if (json_get_str(o, "stage", 16, &word, e) < 0)
        return -1;
    if (!stage_parse(word, out)) {
        err_set(e, ERR_INVALID, "field 'stage': '%.*s' is not known here", STR_ARG(word));
        return err_hint(e, "all, beta, alpha or enrolled");
    }
    c->field = NULL;
    return 0;
}

int api_pool_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "window", "nodes", "stage" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    AUTO(buf_free) struct buf all = BUF(POOL_LIST_MAX);
    struct str window = STR(""), nodes;
    bool has_window, has_nodes, has_stage;
    enum stage stage;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        read_window(c, json_root(d), &window, &has_window, e) < 0 ||
        read_stage(c, json_root(d), &stage, &has_stage, e) < 0 ||
        read_nodes(c, json_root(d), &all, &has_nodes, e) < 0)
        return -1;
    struct named_later *l = named_later_new(c);
    nodes = buf_str(&all);
    struct control_pool_change ch = { .name = l->name,
                                      .by = str_of(c->who.user),
                                      .window = has_window ? &window : NULL,
                                      .nodes = has_nodes ? &nodes : NULL,
                                      .stage = has_stage ? &stage : NULL };
    struct audit_change done = { AUDIT_POOL_SET, .before = said(c, l->name) };
    if (control_pool_put(c->api->config.control, &ch, (struct control_done){ on_changed, l }, e) <
        0)
        return -1;
    return wrote(c, l, &done);
}

static int except(struct call *c, bool open, struct err *e)
{
    static const char *const keys[] = { "from_ms", "until_ms", "for" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct named_later *l = named_later_new(c);
    struct control_pool_except x = { .name = l->name,
                                     .by = str_of(c->who.user),
                                     .except = { .open = open } };
    struct times t;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 || read_times(c, json_root(d), &t, e) < 0)
        return -1;
    if (!t.has_until && !t.for_ms) {
        c->field = "for";
        err_set(e, ERR_INVALID, "for: either it or until_ms is needed");
        return err_hint(e, "e.g. {\"for\":\"3h\"}");
    }
    x.except.from_ms = t.has_from ? t.from_ms : control_now_ms(c->api->config.control);
    x.except.until_ms = t.for_ms ? x.except.from_ms + t.for_ms : t.until_ms;
    struct audit_change done = { open ? AUDIT_POOL_OPEN : AUDIT_POOL_CLOSE,
                                 .before = said(c, l->name) };
    if (control_pool_except(c->api->config.control, &x, (struct control_done){ on_changed, l }, e) <
        0)
        return -1;
    return wrote(c, l, &done);
}

int api_pool_open(struct call *c, struct err *e)
{
    return except(c, true, e);
}

int api_pool_close(struct call *c, struct err *e)
{
    return except(c, false, e);
}

int api_pool_regular(struct call *c, struct err *e)
{
    struct named_later *l = named_later_new(c);
    struct control_pool_except x = { .name = l->name, .by = str_of(c->who.user), .regular = true };
    struct audit_change done = { AUDIT_POOL_REGULAR, .before = said(c, l->name) };
    if (read_verb(c, &done.reason, e) < 0 ||
        control_pool_except(c->api->config.control, &x, (struct control_done){ on_changed, l }, e) <
            0)
        return -1;
    return wrote(c, l, &done);
}

int api_pool_delete(struct call *c, struct err *e)
{
    struct control_pool p = { 0 };
    struct control_done done;
    struct named_later *l = named_later_new(c);
    control_pool_find(c->api->config.control, l->name, &p);
    if (named_removal(l, p.node, p.nodes, &done, e) < 0)
        return -1;
    struct audit_change gone = { AUDIT_POOL_DELETE, .before = said(c, l->name) };
    if (control_pool_delete(c->api->config.control, l->name, str_of(c->who.user), done, e) < 0)
        return -1;
    return wrote(c, l, &gone);
}
