/* Reservations: made, changed and given up.  The core keeps them and the journal brings them back; here
 * people's words become its event, and machines are chosen where only a number of GPUs was said. */
#include "control/choose.h"
#include "control/state.h"

#define DAY_MS (INT64_C(24) * 3600000)
#define AHEAD_MAX_MS (RESERVE_AHEAD_DAYS * DAY_MS)
#define LASTS_MAX_MS (RESERVE_LASTS_DAYS * DAY_MS)
#define NODES_TEXT_MAX (512u << 10) /* of one: half of a line of the journal */

bool control_reservation_at(const struct control *c, uint32_t i, struct reservation_view *out)
{
    if (!core_reservation(c->core, i, out))
        return false;
    if (out->name && out->until_ms <= control_now_ms(c)) /* the next pass forgets it */
        *out = (struct reservation_view){ 0 };
    return true;
}

bool control_reservation_find(const struct control *c, struct str name, uint32_t *out_i,
                              struct reservation_view *out)
{
    for (uint32_t i = 0; control_reservation_at(c, i, out); i++)
        if (out->name && str_is(name, out->name)) {
            *out_i = i;
            return true;
        }
    *out = (struct reservation_view){ 0 };
    return false;
}

static int refuse(struct err *e, enum err_code code, const char *field, const char *why,
                  const char *hint)
{
    err_set(e, code, "%s: %s", field, why);
    err_hint(e, "%s", hint);
    return err_about(e, "%s", field);
}

/* ---- when ---- */

static int read_times(const struct control *c, const struct control_reserve *r,
                      const struct reservation_view *old, struct event_reserve *out, struct err *e)
{
    int64_t now_ms = control_now_ms(c), from_ms = old->name ? old->from_ms : now_ms;
    int64_t until_ms = old->until_ms;
    const char *field = r->for_ms ? "for" : "until_ms";
    from_ms = r->from_ms ? *r->from_ms : from_ms;
    if (r->for_ms)
        until_ms = from_ms + r->for_ms;
    else if (r->until_ms)
        until_ms = *r->until_ms;
    else if (!old->name)
        return refuse(e, ERR_INVALID, "for", "either it or until_ms is needed", "e.g. for: 2h");
    if (until_ms <= from_ms)
        return refuse(e, ERR_INVALID, field, "it must end after it begins", "e.g. for: 2h");
    if (until_ms <= now_ms)
        return refuse(e, ERR_INVALID, field, "it would be over already", "give a time to come");
    if (from_ms - now_ms > AHEAD_MAX_MS)
        return refuse(e, ERR_INVALID, "from_ms", "it begins more than 366 days from now",
                      "make it later");
    if (!old->name || r->from_ms)
        from_ms = MAX(from_ms, now_ms);
    if (until_ms - from_ms > LASTS_MAX_MS)
        return refuse(e, ERR_INVALID, field, "it would last more than 31 days",
                      "make several of them, or a tenant with a guarantee");
    out->from_ms = from_ms;
    out->until_ms = until_ms;
    return 0;
}

/* ---- where ---- */

static void add_node(struct buf *list, const char *name)
{
    buf_addz(list, list->n ? "," : "");
    buf_addz(list, name);
}

static int name_nodes(struct str hostlist, struct buf *out, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    const char **name;
    size_t n;
    if (pool_read_nodes(hostlist, &a, &name, &n, e) < 0) {
        err_about(e, "nodes");
        return err_wrap(e, "nodes");
    }
    if (n == 0)
        return refuse(e, ERR_INVALID, "nodes", "at least one machine is needed", "e.g. pc[01-12]");
    for (size_t i = 0; i < n; i++)
        add_node(out, name[i]);
    return 0;
}

static bool is_model(struct str list, const char *model)
{
    bool any = list.n == 0;
    while (list.n) {
        struct str one;
        str_cut(list, '|', &one, &list);
        any = any || str_is(str_trim(one), model);
    }
    return any;
}

/* Machines that other reservations have at that time. */
static bool *find_reserved(const struct control *c, const struct event_reserve *ev, uint32_t nodes)
{
    bool *reserved = xcalloc(nodes + 1, sizeof *reserved);
    struct reservation_view v;
    for (uint32_t i = 0; core_reservation(c->core, i, &v); i++) {
        bool other = v.name && !str_is(ev->name, v.name);
        for (uint32_t k = 0; other && k < v.n; k++)
            reserved[v.node[k]] |= v.from_ms < ev->until_ms && ev->from_ms < v.until_ms;
    }
    return reserved;
}

/* Machines on which something runs that may not be gone by then. */
static bool *find_busy(const struct control *c, int64_t by_ms, uint32_t nodes)
{
    bool *busy = xcalloc(nodes + 1, sizeof *busy);
    for (size_t i = 0; i < c->book.n; i++) {
        job_id id = { c->book.at[i]->id };
        struct job_view v;
        struct leave l;
        if (!core_leave(c->core, id, by_ms, &l) || l.how != LEAVE_STAYS ||
            !core_job(c->core, id, &v))
            continue;
        for (uint32_t k = 0; k < v.n; k++)
            busy[v.slots[k].node] = true;
    }
    return busy;
}

/* Is it lent all the time? */
static bool is_lent(const struct control *c, const char *pool, const struct event_reserve *ev)
{
    struct control_pool p;
    return !control_pool_find(c, str_of(pool), &p) ||
           (calendar_is_open(p.now, ev->from_ms) &&
            calendar_next_change(p.now, ev->from_ms) >= ev->until_ms);
}

static int not_enough(const struct control_reserve *r, uint64_t there, bool any, struct err *e)
{
    if (!any)
        return refuse(e, ERR_INVALID, r->gpu_type.n ? "gpu_type" : "gpus",
                      "no machine has such GPUs", "see those there are: nightshift nodes");
    err_set(e, ERR_CONFLICT, "gpus: %llu are wanted, %llu can be had then",
            (unsigned long long)r->gpus, (unsigned long long)there);
    err_hint(e, "machines that are up, lent all that time and not reserved count; take fewer, or "
                "another time");
    return err_about(e, "gpus");
}

static int choose_nodes(const struct control *c, const struct control_reserve *r,
                        const struct event_reserve *ev, struct buf *out, struct err *e)
{
    uint32_t nodes = core_totals(c->core).nodes;
    AUTO(free_p) bool *reserved = find_reserved(c, ev, nodes);
    AUTO(free_p) bool *busy = find_busy(c, ev->from_ms, nodes);
    AUTO(free_p) struct choice *at = xcalloc(nodes + 1, sizeof *at);
    struct node_view v;
    uint64_t there = 0;
    size_t n = 0;
    bool any = false;
    for (uint32_t i = 0; i < nodes && core_node(c->core, (node_id){ i }, &v); i++) {
        if (v.gpus == 0 || !is_model(r->gpu_type, v.model))
            continue;
        any = true;
        if (v.state != NODE_UP || reserved[i] || !is_lent(c, v.pool, ev))
            continue;
        at[n++] = (struct choice){ .node = i, .gpus = v.gpus, .busy = busy[i] };
        there += v.gpus;
    }
    if (!choose_machines(at, n, r->gpus))
        return not_enough(r, there, any, e);
    for (size_t i = 0; i < n; i++)
        if (at[i].chosen && core_node(c->core, (node_id){ at[i].node }, &v))
            add_node(out, v.name);
    return 0;
}

static int read_nodes(const struct control *c, const struct control_reserve *r,
                      const struct reservation_view *old, struct event_reserve *ev, struct buf *out,
                      struct err *e)
{
    struct node_view v;
    int rc = 0;
    if (r->nodes && r->gpus)
        return refuse(e, ERR_INVALID, "gpus", "either it or nodes is needed, not both",
                      "name machines, or say how many GPUs");
    if (r->gpu_type.n && !r->gpus)
        return refuse(e, ERR_INVALID, "gpu_type", "it needs gpus", "say how many of them");
    if (r->nodes)
        rc = name_nodes(*r->nodes, out, e);
    else if (r->gpus)
        rc = choose_nodes(c, r, ev, out, e);
    else if (!old->name)
        return refuse(e, ERR_INVALID, "nodes", "either they or gpus are needed",
                      "name machines, or say how many GPUs");
    for (uint32_t i = 0; !r->nodes && !r->gpus && i < old->n; i++)
        if (core_node(c->core, (node_id){ old->node[i] }, &v))
            add_node(out, v.name);
    ev->nodes = buf_str(out);
    if (rc < 0)
        return -1;
    return buf_check(out, e) < 0 ? err_about(e, "nodes") : 0;
}

/* ---- verbs ---- */

int control_reserve(struct control *c, const struct control_reserve *r, struct control_done done,
                    struct err *e)
{
    AUTO(buf_free) struct buf nodes = BUF(NODES_TEXT_MAX);
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_RESERVE };
    struct reservation_view old;
    struct share_view tenant = { .name = "" };
    uint32_t i;
    if (pool_check_name("reservation", r->name, e) < 0)
        return -1;
    bool known = control_reservation_find(c, r->name, &i, &old);
    if (known)
        core_share(c->core, old.tenant, ev.t_ms, &tenant);
    ev.reserve.name = r->name;
    ev.reserve.tenant = r->tenant ? *r->tenant : str_of(tenant.name);
    if (ev.reserve.tenant.n == 0)
        return refuse(e, ERR_INVALID, "tenant", "whose it is has to be said",
                      "e.g. tenant: course");
    if (read_times(c, r, &old, &ev.reserve, e) < 0 ||
        read_nodes(c, r, &old, &ev.reserve, &nodes, e) < 0 || turn_apply(c, &ev, e) < 0)
        return -1;
    turn_changed(c, &(struct change){ "reservation", r->name, "set", r->by }, done);
    return 0;
}

int control_reservation_delete(struct control *c, struct str name, struct str by,
                               struct control_done done, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c),
                        .kind = EVENT_RESERVE,
                        .reserve = { .name = name } };
    if (turn_apply(c, &ev, e) < 0)
        return -1;
    turn_changed(c, &(struct change){ "reservation", name, "remove", by }, done);
    return 0;
}
