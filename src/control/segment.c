/* Cutting the journal: it begins anew with the events that make the present state, and we go on with
 * the core made from them.  That is also how a machine that has changed gets its new figures. */
#include "control/state.h"
#include "core/device.h"
#include "journal/journal.h"

#define LINES_MIN 50000   /* below it a restart is quick anyway */
#define LINES_KEPT 500000 /* of segments before this one, about: some 80 MB */
#define SEGMENTS_KEPT UINT64_C(50)

struct cut {
    struct control *c;
    struct core *core;
    const struct event_node *node; /* has changed; NULL: none */
    struct store_batch *batch;
    struct err e;
    bool failed;
};

static void on_event(void *ctx, const struct event *ev)
{
    struct cut *cut = ctx;
    AUTO(buf_free) struct buf line = BUF(JOURNAL_LINE_MAX);
    struct event copy = *ev;
    if (cut->failed)
        return;
    if (ev->kind == EVENT_NODE && cut->node && str_eq(ev->node.name, cut->node->name)) {
        copy.node = *cut->node;
        copy.node.net_switch = ev->node.net_switch;
        copy.node.pool = ev->node.pool; /* a machine does not know it */
        copy.node.traits = ev->node.traits;
    }
    if (core_apply(cut->core, &copy, &cut->e) < 0) {
        cut->failed = true;
        return;
    }
    journal_write(&copy, &line);
    store_add_journal(cut->batch, copy.t_ms, (struct str){ line.p, line.n - 1 });
}

static int cut_journal(struct control *c, const struct event_node *changed, struct err *e)
{
    struct cut cut = { .c = c, .core = core_new(), .node = changed };
    struct store_batch *b = store_batch_new(c->config.store);
    cut.batch = b;
    uint64_t keep = LINES_KEPT / (store_journal_lines(c->config.store) + 1);
    keep = MIN(keep, SEGMENTS_KEPT);
    store_new_segment(b, control_now_ms(c), (uint32_t)MAX(keep, UINT64_C(1)));
    core_snapshot(c->core, on_event, &cut);
    if (cut.failed) {
        core_free(cut.core);
        store_batch_free(b);
        *e = cut.e;
        return err_wrap(e, "beginning the journal anew");
    }
    core_free(c->core);
    c->core = cut.core;
    store_commit(c->config.store, b, NULL, NULL);
    log_event(c->config.log, LOG_INFO_, "journal.cut", "lines=%llu",
              (unsigned long long)store_journal_lines(c->config.store));
    return 0;
}

/* ---- machines that have changed ---- */

struct load {
    uint64_t cpu_milli, mem_mib;
    uint32_t gpu_mask;
};

static void add_load(struct control *c, const struct entry *en, const char *machine,
                     struct load *to)
{
    struct job_view v;
    struct node_view n;
    if (!en->task || !core_job(c->core, (job_id){ en->id }, &v))
        return;
    for (uint32_t i = 0; i < v.n; i++) {
        if (!core_node(c->core, (node_id){ v.slots[i].node }, &n) || strcmp(n.name, machine) != 0)
            continue;
        to->gpu_mask |= v.slots[i].gpu_mask;
        to->cpu_milli += v.request.cpu_milli;
        to->mem_mib += v.request.mem_mib;
    }
}

/* Has it the devices that are in use there? */
static bool has_devices(const struct machine *m, const struct node_view *was)
{
    struct str rest = str_of(was->devices ? was->devices : "");
    struct device d;
    for (uint32_t i = 0; devices_next(&rest, &d); i++)
        if (devices_count(m->node.devices, d.name) + was->device_free[i] < d.n)
            return false;
    return true;
}

/* Would what runs there be where it is on the machine as it is now? */
static bool fits(struct control *c, const struct machine *m)
{
    struct load load = { 0 };
    struct node_view was = { 0 };
    for (uint32_t i = 0; core_node(c->core, (node_id){ i }, &was); i++)
        if (strcmp(was.name, m->name) == 0)
            break;
    for (size_t i = 0; i < c->book.n; i++)
        add_load(c, c->book.at[i], m->name, &load);
    bool same_model = was.model && strcmp(was.model, m->model) == 0;
    return load.gpu_mask >> m->node.gpus == 0 && (load.gpu_mask == 0 || same_model) &&
           load.cpu_milli <= m->node.cpu_milli && load.mem_mib <= m->node.mem_mib &&
           has_devices(m, &was);
}

static struct machine *ready_to_change(struct control *c)
{
    for (size_t i = 0; i < c->machines; i++)
        if (c->machine[i].changed && fits(c, &c->machine[i]))
            return &c->machine[i];
    return NULL;
}

/* It was kept from taking jobs; an operator's drain stays. */
static void let_up(struct control *c, const struct machine *m)
{
    struct node_view v;
    struct err e;
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE_STATE };
    ev.node_state = (struct event_node_state){ .name = str_of(m->name), .state = m->state };
    for (uint32_t i = 0; core_node(c->core, (node_id){ i }, &v); i++)
        if (strcmp(v.name, m->name) == 0 && v.state == NODE_DOWN && m->state != NODE_DOWN &&
            turn_apply(c, &ev, &e) < 0)
            log_event(c->config.log, LOG_ERROR_, "node.refused", "why=%s", e.msg);
}

/* Called when a turn was handed over and nothing is gathered yet: what is in the core is then in the
 * journal, or on its way there before us. */
void segment_review(struct control *c)
{
    struct err e;
    struct machine *m = ready_to_change(c);
    bool full = store_journal_lines(c->config.store) > LINES_MIN + 8 * c->book.n;
    if (!m && !full)
        return;
    struct event_node node = { 0 };
    if (m) {
        node = m->node;
        node.name = str_of(m->name);
        node.model = str_of(m->model);
        m->changed = false;
    }
    if (cut_journal(c, m ? &node : NULL, &e) < 0) {
        log_event(c->config.log, LOG_ERROR_, "journal.cut", "why=%s", e.msg);
        return;
    }
    if (m)
        let_up(c, m);
    turn_close_soon(c, true);
}
