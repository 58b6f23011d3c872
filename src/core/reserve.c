/* Reservations: machines that are one tenant's for a time that was fixed in advance.
 *
 * Before it begins a reserved machine is for others a machine whose window ends then: what cannot
 * be gone in time does not start there, and what can be frozen is frozen in time (window.h).  While
 * it lasts, only jobs that name it start there.  When it ends, its machines are everybody's again
 * and its jobs are like all others: those that run go on, those that wait may start anywhere. */
#include "core/reserve.h"

#include "core/state.h"

static struct reservation *find(const struct core *c, struct str name)
{
    for (uint32_t i = 0; i < c->reservations; i++)
        if (c->reservation[i].name && str_is(name, c->reservation[i].name))
            return &c->reservation[i];
    return NULL;
}

static uint16_t number_of(const struct core *c, const struct reservation *r)
{
    return (uint16_t)(r - c->reservation + 1);
}

const struct reservation *reservation_at(const struct core *c, uint16_t number)
{
    bool there = number && number <= c->reservations && c->reservation[number - 1].name;
    return there ? &c->reservation[number - 1] : NULL;
}

static bool has_node(const struct reservation *r, uint32_t node)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->node[i] == node)
            return true;
    return false;
}

/* ---- the machines ---- */

static int64_t free_ms(const struct reservation *r, int64_t wall_ms)
{
    if (wall_ms == INT64_MIN) /* no pass has seen the clock yet */
        return INT64_MAX;
    return r->from_ms > wall_ms ? r->from_ms - wall_ms : -1;
}

/* The reservation that the node has now, or will have next; 0: none. */
static uint16_t next_of(const struct core *c, uint32_t node)
{
    const struct reservation *next = NULL;
    for (uint32_t i = 0; i < c->reservations; i++) {
        const struct reservation *r = &c->reservation[i];
        if (r->name && has_node(r, node) && (!next || r->from_ms < next->from_ms))
            next = r;
    }
    return next ? number_of(c, next) : 0;
}

static void file_node(struct core *c, uint32_t node, int64_t wall_ms)
{
    uint16_t number = next_of(c, node);
    const struct reservation *r = reservation_at(c, number);
    cluster_reserve(&c->cluster, node, number, r ? free_ms(r, wall_ms) : INT64_MAX);
}

/* Its jobs are like all others from now on. */
static void release_jobs(struct core *c, uint16_t number)
{
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (queue_find(&c->queue, j->id) != i)
            continue;
        struct request r = c->shapes.at[j->shape].request;
        if (r.reservation != number)
            continue;
        r.reservation = 0;
        core_set_request(c, i, &r);
    }
}

static void end(struct core *c, struct reservation *r, int64_t wall_ms)
{
    struct reservation was = *r;
    uint16_t number = number_of(c, r);
    *r = (struct reservation){ 0 };
    c->cluster.reservations--;
    release_jobs(c, number);
    for (uint32_t i = 0; i < was.n; i++)
        file_node(c, was.node[i], wall_ms);
    c->windows_changed = true;
    free(was.name);
    free(was.node);
}

void reservations_free(struct core *c)
{
    for (uint32_t i = 0; i < c->reservations; i++) {
        free(c->reservation[i].name);
        free(c->reservation[i].node);
    }
    free(c->reservation);
}

void reservations_review(struct core *c, int64_t wall_ms)
{
    for (uint32_t i = 0; i < c->reservations && c->cluster.reservations; i++) {
        struct reservation *r = &c->reservation[i];
        if (!r->name)
            continue;
        if (wall_ms >= r->until_ms)
            end(c, r, wall_ms);
        else
            cluster_set_reserved(&c->cluster, number_of(c, r), free_ms(r, wall_ms));
    }
}

/* ---- making one ---- */

/* Of what is known by name: where those there are can be seen, and which field it is of. */
static int not_there(const char *field, const char *see, struct str name, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "%s: there is no '%.*s'", field, STR_ARG(name));
    err_hint(e, "see those there are: nightshift %s", see);
    return err_about(e, "%s", field);
}

/* The numbers of "a,b,c"; how many, or -1. */
static int read_nodes(const struct core *c, struct str list, uint32_t *out, struct err *e)
{
    int n = 0;
    while (list.n) {
        struct str one;
        str_cut(list, ',', &one, &list);
        uint32_t node = names_find(&c->cluster.node_names, one);
        if (node == NAME_NONE)
            return not_there("nodes", "nodes", one, e);
        for (int k = 0; k < n; k++)
            if (out[k] == node)
                return err_set(e, ERR_INVALID, "nodes: '%.*s' is named twice", STR_ARG(one));
        out[n++] = node;
    }
    return n;
}

static int check_overlap(const struct core *c, const struct event_reserve *v, const uint32_t *node,
                         int n, struct err *e)
{
    for (uint32_t i = 0; i < c->reservations; i++) {
        const struct reservation *r = &c->reservation[i];
        if (!r->name || str_is(v->name, r->name) || v->from_ms >= r->until_ms ||
            r->from_ms >= v->until_ms)
            continue;
        for (int k = 0; k < n; k++)
            if (has_node(r, node[k])) {
                err_set(e, ERR_CONFLICT, "machine '%s' is reserved for '%s' at that time",
                        c->cluster.node[node[k]].name, r->name);
                return err_hint(e, "take another machine or another time");
            }
    }
    return 0;
}

static int check(const struct core *c, const struct event_reserve *v, uint32_t *out_tenant,
                 struct err *e)
{
    *out_tenant = shares_tenant(&c->shares, v->tenant);
    if (v->name.n == 0 || v->name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "name: 1 to %d bytes are needed", NAME_MAX_BYTES);
    if (*out_tenant == NONE)
        return not_there("tenant", "quota", v->tenant, e);
    if (v->until_ms <= v->from_ms || v->from_ms < -TIME_MAX_MS || v->until_ms > TIME_MAX_MS)
        return err_set(e, ERR_INVALID, "until: it must end after it begins");
    if (!find(c, v->name) && c->cluster.reservations >= RESERVATIONS_MAX) {
        err_set(e, ERR_TOO_LARGE, "more than %u reservations", RESERVATIONS_MAX);
        return err_hint(e, "give one up: nightshift reservations rm NAME");
    }
    return 0;
}

static struct reservation *unused(struct core *c)
{
    for (uint32_t i = 0; i < c->reservations; i++)
        if (!c->reservation[i].name)
            return &c->reservation[i];
    vec_grow(c->reservation, c->reservations, c->reservation_cap);
    return &c->reservation[c->reservations++];
}

static void make(struct core *c, const struct event_reserve *v, uint32_t tenant, uint32_t *node,
                 uint32_t n)
{
    struct reservation *r = unused(c);
    *r = (struct reservation){ .name = xcalloc(1, v->name.n + 1),
                               .tenant = tenant,
                               .from_ms = v->from_ms,
                               .until_ms = v->until_ms,
                               .node = node,
                               .n = n };
    memcpy(r->name, v->name.p, v->name.n);
    c->cluster.reservations++;
    c->windows_changed = c->windows_used = true;
}

int reservation_set(struct core *c, const struct event_reserve *v, int64_t t_ms, struct err *e)
{
    struct reservation *old = find(c, v->name);
    uint32_t tenant;
    if (v->nodes.n == 0) { /* it is given up */
        if (!old)
            return not_there("reservation", "reservations", v->name, e);
        end(c, old, t_ms);
        return 0;
    }
    uint32_t *node = xcalloc(v->nodes.n, sizeof *node);
    int n = read_nodes(c, v->nodes, node, e);
    if (n < 0 || check(c, v, &tenant, e) < 0 || check_overlap(c, v, node, n, e) < 0) {
        free(node);
        return err_wrap(e, "reservation '%.*s'", STR_ARG(v->name));
    }
    if (old) {
        uint32_t *before = old->node, n_before = old->n;
        old->tenant = tenant;
        old->from_ms = v->from_ms;
        old->until_ms = v->until_ms;
        old->node = node;
        old->n = (uint32_t)n;
        for (uint32_t i = 0; i < n_before; i++)
            file_node(c, before[i], t_ms);
        free(before);
        c->windows_changed = true;
    } else {
        make(c, v, tenant, node, (uint32_t)n);
    }
    for (int i = 0; i < n; i++)
        file_node(c, node[i], t_ms);
    return 0;
}

/* May a job of this tenant name it?  Its own jobs, and those of tenants below. */
int reservation_of(const struct core *c, struct str name, uint32_t tenant, uint16_t *out,
                   struct err *e)
{
    const struct reservation *r = find(c, name);
    *out = 0;
    if (name.n == 0)
        return 0;
    if (!r)
        return not_there("reservation", "reservations", name, e);
    for (uint32_t i = tenant; i != NONE; i = c->shares.at[i].parent)
        if (i == r->tenant) {
            *out = number_of(c, r);
            return 0;
        }
    err_set(e, ERR_DENIED, "reservation: '%s' is not of tenant '%s'", r->name,
            c->shares.at[tenant].name);
    err_hint(e, "submit it for '%s'", c->shares.at[r->tenant].name);
    return err_about(e, "reservation");
}

/* ---- looking ---- */

struct closing reservation_closing(const struct core *c, const struct reservation *r)
{
    return (struct closing){ .left_ms = free_ms(r, c->wall_ms),
                             .at_ms = r->from_ms,
                             .stays = number_of(c, r),
                             .node = r->node,
                             .n = r->n };
}

bool core_reservation(const struct core *c, uint32_t i, struct reservation_view *out)
{
    if (i >= c->reservations)
        return false;
    const struct reservation *r = &c->reservation[i];
    *out = (struct reservation_view){ 0 };
    if (!r->name)
        return true;
    *out = (struct reservation_view){ .name = r->name,
                                      .tenant = { r->tenant },
                                      .from_ms = r->from_ms,
                                      .until_ms = r->until_ms,
                                      .node = r->node,
                                      .n = r->n };
    return true;
}
