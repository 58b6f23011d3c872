/* The machines that the engine tells of.
 *
 * A machine that has more or less than it had is changed in the core as soon as what runs there fits into it; until then
 * one that has less of something takes no new job.  On Kubernetes this is of every day: what pods of others take there is
 * not ours. */
#include <stdio.h>

#include "control/state.h"
#include "core/device.h"

static struct machine *machine_of(const struct control *c, struct str name)
{
    uint32_t i = names_find(&c->machine_names, name);
    return i < c->machines ? &c->machine[i] : NULL; /* NAME_NONE is past all of them */
}

static bool find_node(struct control *c, struct str name, struct node_view *out)
{
    for (uint32_t i = 0; core_node(c->core, (node_id){ i }, out); i++)
        if (str_is(name, out->name))
            return true;
    return false;
}

static bool tell_core(struct control *c, const struct event *ev)
{
    struct err e;
    if (turn_apply(c, ev, &e) == 0)
        return true;
    log_event(c->config.log, LOG_ERROR_, "node.refused", "event=%s why=%s",
              event_kind_name(ev->kind), e.msg);
    return false;
}

static void set_state(struct control *c, struct str name, enum node_state state)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE_STATE };
    ev.node_state = (struct event_node_state){ .name = name, .state = state };
    tell_core(c, &ev);
}

static void remember(struct control *c, const struct engine_event *ev)
{
    const struct event_node *n = ev->machine.node;
    uint32_t i = names_intern(&c->machine_names, n->name);
    if (i == c->machines) { /* it is new */
        vec_grow(c->machine, c->machines, c->machine_cap);
        c->machine[c->machines++] = (struct machine){ .name = names_get(&c->machine_names, i) };
    }
    struct machine *m = &c->machine[i];
    for (size_t k = 0; k < m->gpus; k++)
        free(m->gpu_uuid[k]);
    free(m->gpu_uuid);
    m->simulated = ev->machine.simulated;
    m->gpus = n->gpus;
    m->gpus_of_others = ev->machine.gpus_of_others;
    m->gpu_uuid = xcalloc(n->gpus + 1, sizeof *m->gpu_uuid);
    for (size_t k = 0; k < n->gpus; k++)
        m->gpu_uuid[k] = xstrdup(ev->machine.gpu_uuid ? ev->machine.gpu_uuid[k] : "");
    m->state = ev->machine.state;
}

/* ---- machines that have changed ---- */

static bool has_changed(const struct event_node *n, const struct node_view *was)
{
    return was->gpus != n->gpus || was->cpu_milli != n->cpu_milli || was->mem_mib != n->mem_mib ||
           !str_is(n->devices, was->devices) ||
           (n->gpus && !str_is(n->model, was->model ? was->model : ""));
}

static bool shrank(const struct event_node *n, const struct node_view *was)
{
    bool other_model = was->gpus && !str_is(n->model, was->model ? was->model : "");
    return n->gpus < was->gpus || n->cpu_milli < was->cpu_milli || n->mem_mib < was->mem_mib ||
           other_model || !devices_cover(n->devices, str_of(was->devices));
}

/* -1: what runs there does not fit into it. */
static int change(struct control *c, const struct event_node *n, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE_CHANGE, .node = *n };
    ev.node.net_switch = ev.node.pool = ev.node.traits = STR(""); /* as the core has them */
    return turn_apply(c, &ev, e);
}

/* For fleet_review, which tries again. */
static void note_change(struct control *c, struct machine *m, const struct event_node *n,
                        const struct err *why)
{
    m->changed = true;
    m->node = *n;
    free(m->devices);
    m->devices = xcalloc(n->devices.n + 1, 1);
    if (n->devices.n)
        memcpy(m->devices, n->devices.p, n->devices.n);
    snprintf(m->model, sizeof m->model, "%.*s", STR_ARG(n->model));
    m->node.name = str_of(m->name);
    m->node.model = str_of(m->model);
    m->node.devices = str_of(m->devices);
    log_event(c->config.log, LOG_WARN_, "node.changed",
              "node=%s gpus=%u cpu_milli=%u mem_mib=%u waits=%s", m->name, n->gpus, n->cpu_milli,
              n->mem_mib, why->msg);
}

/* One that was kept from taking jobs takes some again; an operator's drain stays. */
static void review(struct control *c, struct machine *m)
{
    struct node_view v;
    struct err e;
    if (!find_node(c, str_of(m->name), &v) || change(c, &m->node, &e) < 0)
        return;
    m->changed = false;
    if (v.state == NODE_DOWN && m->state != NODE_DOWN)
        set_state(c, str_of(m->name), m->state);
}

void fleet_review(struct control *c)
{
    for (size_t i = 0; i < c->machines; i++)
        if (c->machine[i].changed)
            review(c, &c->machine[i]);
}

/* ---- what the engine tells ---- */

static bool enrol(struct control *c, const struct event_node *n)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE, .node = *n };
    ev.node.pool = STR(""); /* pools_move puts it there, once there is one */
    return tell_core(c, &ev);
}

static void set_class(struct control *c, const struct event_node *n)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE_TRAITS };
    ev.node_traits = (struct event_node_traits){ n->name, n->traits };
    tell_core(c, &ev);
}

void fleet_event(struct control *c, const struct engine_event *ev)
{
    const struct event_node *n = ev->machine.node;
    struct node_view v = { .state = NODE_UP };
    struct err e;
    enum node_state then = ev->machine.state;
    pools_told(c, n->name, n->pool);
    bool known = find_node(c, n->name, &v);
    if (!known && !enrol(c, n))
        return;
    remember(c, ev);
    if (known && !str_is(n->traits, v.traits))
        set_class(c, n);
    struct machine *m = machine_of(c, n->name);
    m->changed = false;
    if (known && has_changed(n, &v) && change(c, n, &e) < 0) {
        note_change(c, m, n, &e);
        if (shrank(n, &v)) /* what it does not have any more must not be given out */
            then = NODE_DOWN;
    }
    if (then != v.state && v.state != NODE_DRAIN) /* that outlives the machine's absence */
        set_state(c, n->name, then);
    pools_move(c);
    turn_close_soon(c, true);
}

bool control_node(const struct control *c, struct str name, struct control_node *out)
{
    const struct machine *m = machine_of(c, name);
    if (!m)
        return false;
    *out = (struct control_node){ .simulated = m->simulated,
                                  .gpu_uuid = (const char *const *)m->gpu_uuid,
                                  .gpus = m->gpus,
                                  .gpus_of_others = m->gpus_of_others };
    return true;
}

void fleet_free(struct control *c)
{
    for (size_t i = 0; i < c->machines; i++) {
        for (size_t k = 0; k < c->machine[i].gpus; k++)
            free(c->machine[i].gpu_uuid[k]);
        free(c->machine[i].gpu_uuid);
        free(c->machine[i].devices);
    }
    free(c->machine);
    names_free(&c->machine_names);
}
