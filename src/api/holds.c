#include "api/holds.h"

#include "api/audit.h"
#include "api/load.h"

#define HELD_SHOWN 20

void hold_reported(struct call *c, struct str node, const struct report_hold *h)
{
    struct control *control = c->api->config.control;
    bool held = h->since_ms > 0;
    struct err e;
    if (held == control_held(control, node))
        return;
    if (control_hold(control, node, held, str_of(held ? h->by : "system"),
                     (struct control_done){ 0 }, &e) < 0) {
        log_event(c->api->config.log, LOG_ERROR_, "node.hold", "node=%.*s why=%s", STR_ARG(node),
                  e.msg);
        return;
    }
    struct audit_change ch = { .what = held ? AUDIT_NODE_HOLD : AUDIT_NODE_RELEASE,
                               .subject = node,
                               .before = held ? STR("{\"held\":false}") : STR("{\"held\":true}"),
                               .after = held ? STR("{\"held\":true}") : STR("{\"held\":false}"),
                               .reason =
                                   held ? str_of(arena_printf(http_arena(c->rq), "%s%s%s", h->by,
                                                              h->reason[0] ? ": " : "", h->reason))
                                        : STR("") };
    api_audit(c, &ch);
}

static void put_hold(struct json_out *w, struct api *a, struct str node)
{
    struct history_node n;
    const struct report_hold *h =
        load_of(a, node, &n) && n.last->hold.since_ms > 0 ? &n.last->hold : NULL;
    put_known(w, "since_ms", h ? h->since_ms : -1);
    put_known(w, "until_ms", h ? h->until_ms : -1);
    if (h)
        json_put_str(w, "by", str_of(h->by));
    else
        json_put_null(w, "by");
    if (h && h->reason[0])
        json_put_str(w, "reason", str_of(h->reason));
    else
        json_put_null(w, "reason");
}

void put_held(struct json_out *w, struct api *a, struct str node)
{
    if (!control_held(a->config.control, node)) {
        json_put_null(w, "held");
        return;
    }
    json_begin(w, "held", '{');
    put_hold(w, a, node);
    json_end(w, '}');
}

void put_held_list(struct json_out *w, struct api *a)
{
    struct control_pool p;
    if (!control_pool_find(a->config.control, STR(POOL_HELD), &p) || p.nodes == 0)
        return;
    json_begin(w, "held", '[');
    for (size_t i = 0; i < MIN(p.nodes, (size_t)HELD_SHOWN); i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "node", str_of(p.node[i]));
        put_hold(w, a, str_of(p.node[i]));
        json_end(w, '}');
    }
    json_end(w, ']');
}
