/* What pools and reservations share: both have a name, machines and times, and jobs that have to leave. */
#include "api/lent.h"
#include "base/parse.h"

#define FOR_MAX_MS (INT64_C(366) * 24 * 3600000)

void put_when(struct json_out *w, const char *key, int64_t ms)
{
    if (ms == INT64_MAX)
        json_put_null(w, key);
    else
        json_put_i64(w, key, ms);
}

/* ---- machines and jobs ---- */

void put_machine(struct json_out *w, const char *name, const struct node_view *v)
{
    uint64_t free_milli = 0;
    for (uint32_t g = 0; g < v->gpus; g++)
        free_milli += v->gpu_free[g];
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(name));
    json_put_str(w, "state", str_of(v->name ? node_state_name(v->state) : "unknown"));
    json_put_str(w, "model", str_of(v->model ? v->model : ""));
    json_put_u64(w, "gpus", v->gpus);
    json_put_u64(w, "gpu_free_milli", free_milli);
    json_end(w, '}');
}

static const char *leave_name(enum leave_how how)
{
    static const char *const names[] = {
        [LEAVE_NEVER] = "never", [LEAVE_ENDS] = "ends",   [LEAVE_FROZEN] = "frozen",
        [LEAVE_ANEW] = "anew",   [LEAVE_STAYS] = "stays",
    };
    return names[how];
}

/* Jobs of the reservation itself need not leave. */
static struct leave leave_of(struct core *core, job_id id, const struct reservation_begin *begin)
{
    struct leave l = { LEAVE_NEVER, INT64_MAX };
    struct job_view v;
    if (!begin)
        core_leave(core, id, LEAVE_BY_WINDOW, &l);
    else if (core_job(core, id, &v) && v.request.reservation != begin->number)
        core_leave(core, id, begin->at_ms, &l);
    return l;
}

void put_leaving(struct call *c, struct json_out *w, const char *node, const struct holder *h,
                 const struct reservation_begin *begin)
{
    struct core *core = control_core(c->api->config.control);
    for (; h; h = h->next) {
        struct leave l = leave_of(core, (job_id){ h->id }, begin);
        json_begin(w, NULL, '{');
        put_holder(c, w, h);
        json_put_str(w, "node", str_of(node));
        json_put_str(w, "leaves", str_of(leave_name(l.how)));
        put_when(w, "leaves_ms", l.at_ms);
        json_end(w, '}');
    }
}

/* ---- changing: answered when it is on the disk ---- */

struct named_later *named_later_new(struct call *c)
{
    struct arena *a = http_arena(c->rq);
    struct named_later *l = arena_new(a, struct named_later);
    *l = (struct named_later){ .call = *c };
    l->name = (struct str){ arena_strndup(a, c->param[0].p, c->param[0].n), c->param[0].n };
    return l;
}

static void on_removed(void *ctx)
{
    struct named_later *l = ctx;
    http_reply(l->call.rq, 200, "application/json", l->body);
}

int named_removal(struct named_later *l, const char *const *node, size_t nodes,
                  struct control_done *out, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", l->name);
    json_begin(&w, "nodes", '[');
    for (size_t i = 0; i < nodes; i++)
        json_put_str(&w, NULL, str_of(node[i]));
    json_end(&w, ']');
    json_end(&w, '}');
    if (buf_check(&b, e) < 0)
        return -1;
    l->body = (struct str){ arena_strndup(http_arena(l->call.rq), b.p, b.n), b.n };
    *out = (struct control_done){ on_removed, l };
    return 0;
}

int read_nodes(struct call *c, const struct json *o, struct buf *all, bool *given, struct err *e)
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

static int read_time(struct call *c, const struct json *o, const char *key, int64_t *out,
                     bool *given, struct err *e)
{
    uint64_t ms = 0;
    c->field = key;
    *given = json_find(o, key) != NULL;
    if (json_get_u64(o, key, NUMBER_MAX, &ms, e) < 0)
        return err_hint(e, "Unix milliseconds");
    *out = (int64_t)ms;
    return 0;
}

int read_times(struct call *c, const struct json *o, struct times *out, struct err *e)
{
    struct times t = { 0 };
    struct str text = STR("");
    if (read_time(c, o, "from_ms", &t.from_ms, &t.has_from, e) < 0 ||
        read_time(c, o, "until_ms", &t.until_ms, &t.has_until, e) < 0)
        return -1;
    c->field = "for";
    if (json_get_str(o, "for", 32, &text, e) < 0 ||
        (text.n && parse_duration_ms(text, &t.for_ms, e) < 0))
        return err_wrap(e, "for");
    if (text.n && (t.for_ms <= 0 || t.for_ms > FOR_MAX_MS)) {
        err_set(e, ERR_INVALID, "for: it must be above 0 and at most a year");
        return err_hint(e, "e.g. 3h");
    }
    if (t.has_until && text.n) {
        err_set(e, ERR_INVALID, "for: either it or until_ms is needed");
        return err_hint(e, "e.g. {\"for\":\"3h\"}");
    }
    c->field = NULL;
    *out = t;
    return 0;
}
