/* Machines that are lent at times: which, when, and what has to leave them. */
#include "api/state.h"
#include "base/parse.h"

#define WEEK_MS (7 * 24 * INT64_C(3600000))
#define STRETCHES_MAX 200 /* of a week that is shown */
#define MINUTE_MS INT64_C(60000)
#define FOR_MAX_MS (INT64_C(366) * 24 * 3600000)

static void put_time(struct json_out *w, const char *key, int64_t ms)
{
    if (ms == INT64_MAX)
        json_put_null(w, key);
    else
        json_put_i64(w, key, ms);
}

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
        uint64_t free_milli = 0;
        bool known = find_node(core, p->node[k], &i, &v);
        for (uint32_t g = 0; g < v.gpus; g++)
            free_milli += v.gpu_free[g];
        json_begin(w, NULL, '{');
        json_put_str(w, "name", str_of(p->node[k]));
        json_put_str(w, "state", str_of(known ? node_state_name(v.state) : "unknown"));
        json_put_str(w, "model", str_of(v.model ? v.model : ""));
        json_put_u64(w, "gpus", v.gpus);
        json_put_u64(w, "gpu_free_milli", free_milli);
        json_end(w, '}');
        gpus += v.gpus;
    }
    json_end(w, ']');
    return gpus;
}

static const char *leave_name(enum leave_how how)
{
    static const char *const names[] = {
        [LEAVE_NEVER] = "never", [LEAVE_ENDS] = "ends",   [LEAVE_FROZEN] = "frozen",
        [LEAVE_ANEW] = "anew",   [LEAVE_STAYS] = "stays",
    };
    return names[how];
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
        if (!find_node(core, p->node[k], &i, &v) || i >= nodes)
            continue;
        for (const struct holder *h = holders[i]; h; h = h->next) {
            struct leave l = { LEAVE_NEVER, INT64_MAX };
            core_leave(core, (job_id){ h->id }, &l);
            json_begin(w, NULL, '{');
            put_holder(c, w, h);
            json_put_str(w, "node", str_of(p->node[k]));
            json_put_str(w, "leaves", str_of(leave_name(l.how)));
            put_time(w, "leaves_ms", l.at_ms);
            json_end(w, '}');
        }
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
    if (p->always)
        json_put_null(w, "window");
    else
        put_calendar(w, "window", p->window);
    put_calendar(w, "calendar", p->now);
    put_exceptions(w, p->exceptions);
    json_put_bool(w, "open", calendar_is_open(p->now, now_ms));
    put_time(w, "until_ms", calendar_next_change(p->now, now_ms));
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

struct pool_later {
    struct call call;
    struct str name;
    struct str body; /* of a removal: what was there */
};

static struct pool_later *later_new(struct call *c)
{
    struct arena *a = http_arena(c->rq);
    struct pool_later *l = arena_new(a, struct pool_later);
    *l = (struct pool_later){ .call = *c };
    l->name = (struct str){ arena_strndup(a, c->param[0].p, c->param[0].n), c->param[0].n };
    return l;
}

static void on_changed(void *ctx)
{
    struct pool_later *l = ctx;
    struct err e;
    if (reply_pool(&l->call, l->name, &e) < 0) /* somebody has removed it since */
        http_reply_error(l->call.rq, &e, NULL);
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
            err_hint(e, "e.g. zone=Europe/Berlin; Mon-Fri 20:00-08:00; Sat-Sun 00:00-24:00");
        return err_wrap(e, "window");
    }
    c->field = NULL;
    return 0;
}

static int read_nodes(struct call *c, const struct json *o, struct buf *all, bool *given,
                      struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    const struct json *list = json_find(o, "nodes");
    const char **names;
    size_t n;
    struct str s;
    c->field = "nodes";
    *given = list != NULL;
    if (list && !json_is_array(list)) {
        err_set(e, ERR_INVALID, "nodes: a list of names is needed");
        return err_hint(e, "e.g. [\"pc01\", \"lab[1-9]\"]");
    }
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        if (json_as_str(v, POOL_LIST_MAX, &s, e) < 0)
            return err_wrap(e, "nodes");
        if (s.n == 0) {
            err_set(e, ERR_INVALID, "nodes: a name is empty");
            return err_hint(e, "leave it out; [] is no machine at all");
        }
        buf_addz(all, all->n ? "," : "");
        buf_add(all, s);
    }
    if (buf_check(all, e) < 0 || pool_read_nodes(buf_str(all), &a, &names, &n, e) < 0) {
        if (!e->hint[0])
            err_hint(e, "e.g. [\"pc01\", \"lab[1-9]\"]");
        return err_wrap(e, "nodes");
    }
    c->field = NULL;
    return 0;
}

int api_pool_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "window", "nodes" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    AUTO(buf_free) struct buf all = BUF(POOL_LIST_MAX);
    struct str window = STR(""), nodes;
    bool has_window, has_nodes;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        read_window(c, json_root(d), &window, &has_window, e) < 0 ||
        read_nodes(c, json_root(d), &all, &has_nodes, e) < 0)
        return -1;
    struct pool_later *l = later_new(c);
    nodes = buf_str(&all);
    struct control_pool_change ch = { .name = l->name,
                                      .by = str_of(c->who.user),
                                      .window = has_window ? &window : NULL,
                                      .nodes = has_nodes ? &nodes : NULL };
    return control_pool_put(c->api->config.control, &ch, (struct control_done){ on_changed, l }, e);
}

static int read_times(struct call *c, const struct json *o, struct pool_except *x, struct err *e)
{
    int64_t now_ms = control_now_ms(c->api->config.control), for_ms = 0;
    uint64_t from_ms = (uint64_t)now_ms, until_ms = 0;
    struct str text = STR("");
    c->field = "from_ms";
    if (json_get_u64(o, "from_ms", NUMBER_MAX, &from_ms, e) < 0)
        return err_hint(e, "Unix milliseconds");
    c->field = "until_ms";
    if (json_get_u64(o, "until_ms", NUMBER_MAX, &until_ms, e) < 0)
        return err_hint(e, "Unix milliseconds, or for: 3h");
    c->field = "for";
    if (json_get_str(o, "for", 32, &text, e) < 0 ||
        (text.n && parse_duration_ms(text, &for_ms, e) < 0))
        return err_wrap(e, "for");
    if (text.n && (for_ms <= 0 || for_ms > FOR_MAX_MS)) {
        err_set(e, ERR_INVALID, "for: it must be above 0 and at most a year");
        return err_hint(e, "e.g. 3h");
    }
    if ((json_find(o, "until_ms") != NULL) == (text.n > 0)) {
        err_set(e, ERR_INVALID, "for: either it or until_ms is needed");
        return err_hint(e, "e.g. {\"for\":\"3h\"}");
    }
    c->field = NULL;
    x->from_ms = (int64_t)from_ms;
    x->until_ms = text.n ? x->from_ms + for_ms : (int64_t)until_ms;
    return 0;
}

static int except(struct call *c, bool open, struct err *e)
{
    static const char *const keys[] = { "from_ms", "until_ms", "for" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct pool_later *l = later_new(c);
    struct control_pool_except x = { .name = l->name,
                                     .by = str_of(c->who.user),
                                     .except = { .open = open } };
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        read_times(c, json_root(d), &x.except, e) < 0)
        return -1;
    return control_pool_except(c->api->config.control, &x, (struct control_done){ on_changed, l },
                               e);
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
    struct pool_later *l = later_new(c);
    struct control_pool_except x = { .name = l->name, .by = str_of(c->who.user), .regular = true };
    struct str unused; /* nothing keeps it yet */
    if (read_verb(c, &unused, e) < 0)
        return -1;
    return control_pool_except(c->api->config.control, &x, (struct control_done){ on_changed, l },
                               e);
}

static void on_removed(void *ctx)
{
    struct pool_later *l = ctx;
    http_reply(l->call.rq, 200, "application/json", l->body);
}

int api_pool_delete(struct call *c, struct err *e)
{
    struct control_pool p;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct pool_later *l = later_new(c);
    bool known = control_pool_find(c->api->config.control, l->name, &p);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", l->name);
    json_begin(&w, "nodes", '[');
    for (size_t i = 0; known && i < p.nodes; i++)
        json_put_str(&w, NULL, str_of(p.node[i]));
    json_end(&w, ']');
    json_end(&w, '}');
    if (buf_check(&b, e) < 0)
        return -1;
    l->body = (struct str){ arena_strndup(http_arena(c->rq), b.p, b.n), b.n };
    return control_pool_delete(c->api->config.control, l->name, str_of(c->who.user),
                               (struct control_done){ on_removed, l }, e);
}
