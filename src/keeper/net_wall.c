#include "keeper/net_wall.h"

#include "keeper/net_watch.h"
#include "sys/weak.h"

#define AGAIN_MS 1000

struct net_wall {
    struct net_wall_config c;
    struct net_watch *watch;
    struct loop_watch *again;
    struct buf there; /* as nft lists it right after we loaded it */
    bool holds;
    uint64_t reloads;
};

static int list(const struct net_wall *w, struct buf *out, struct err *e)
{
    return net_rules_list(w->c.rules->table, w->c.nft, out, e);
}

static int load(struct net_wall *w, struct err *e)
{
    if (net_rules_load(w->c.rules, w->c.nft, w->c.file, e) < 0)
        return -1;
    return list(w, &w->there, e);
}

static void set_holds(struct net_wall *w, bool holds)
{
    w->holds = holds;
    if (!holds)
        loop_timer_set(w->again, AGAIN_MS, 0);
    w->c.changed(w->c.ctx, holds);
}

/* What was touched may be as it was: by our own loading, or by one who put it back. */
static int restore(struct net_wall *w, struct err *e)
{
    AUTO(buf_free) struct buf now = BUF(0);
    struct err gone;
    bool same = list(w, &now, &gone) == 0 && str_eq(buf_str(&now), buf_str(&w->there));
    if (same && w->holds)
        return 0;
    if (!same) {
        log_event(w->c.log, LOG_WARN_, "net.rules_changed", "table=%s by=somebody_else",
                  w->c.rules->table);
        if (load(w, e) < 0) {
            log_event(w->c.log, LOG_ERROR_, "net.rules_lost", "table=%s why=%s", w->c.rules->table,
                      e->msg);
            set_holds(w, false);
            return -1;
        }
        w->reloads++;
    }
    log_event(w->c.log, LOG_WARN_, "net.rules_restored", "table=%s times=%llu", w->c.rules->table,
              (unsigned long long)w->reloads);
    set_holds(w, true);
    return 0;
}

static void take_news(struct net_wall *w, unsigned what)
{
    struct err e;
    if (what & NET_WATCH_ADDRESSES)
        w->c.moved(w->c.ctx);
    if ((what & NET_WATCH_TABLE) && !weak_here("rules_watch"))
        (void)restore(w, &e); /* told, and tried again */
}

static void on_news(void *ctx, unsigned what)
{
    take_news(ctx, what);
}

static void on_again(void *ctx)
{
    struct net_wall *w = ctx;
    struct err e;
    if (!w->holds)
        (void)restore(w, &e);
}

int net_wall_check(struct net_wall *w, struct err *e)
{
    struct err why;
    take_news(w, net_watch_drain(w->watch));
    if (w->holds || restore(w, &why) == 0)
        return 0;
    err_set(e, ERR_UNAVAILABLE, "the firewall between tenants is gone and cannot be loaded: %s",
            why.msg);
    return err_hint(e, "no job gets a network until it is: nft -c -f %s", w->c.file);
}

int net_wall_load(struct net_wall *w, struct err *e)
{
    if (load(w, e) == 0)
        return 0;
    buf_truncate(&w->there, 0); /* whatever is there is not what it should be */
    set_holds(w, false);
    return -1;
}

struct net_wall *net_wall_new(const struct net_wall_config *c, struct err *e)
{
    struct net_wall *w = xcalloc(1, sizeof *w);
    w->c = *c;
    w->there = BUF(0);
    w->again = loop_timer(c->loop, on_again, w);
    w->watch = net_watch_new(c->loop, c->rules->table, on_news, w, e);
    if (!w->watch || load(w, e) < 0)
        return net_wall_free(w);
    w->holds = true;
    return w;
}

struct net_wall *net_wall_free(struct net_wall *w)
{
    if (!w)
        return NULL;
    net_watch_free(w->watch);
    loop_unwatch(w->again);
    buf_free(&w->there);
    free(w);
    return NULL;
}

bool net_wall_holds(const struct net_wall *w)
{
    return w->holds;
}

uint64_t net_wall_reloads(const struct net_wall *w)
{
    return w->reloads;
}
