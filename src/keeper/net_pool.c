#include "keeper/net_pool.h"

#include <stdio.h>

#include "base/arena.h"
#include "keeper/net_host.h"
#include "keeper/net_ns.h"
#include "sys/clock.h"
#include "sys/file.h"

#define SETTLE_MS 10 /* what comes back within it is looked at together */
#define ORPHAN_MS 20

/* The life of a namespace:
 *   QUEUED -> MAKING -> IDLE -> USED -> BACK -> IDLE
 *   any of these, when it failed, is not clean or is too many -> DOOMED -> REMOVING -> gone
 *   found at start: USED when adopted, BACK when whole, else ORPHAN -> DOOMED */
enum ns_state {
    NS_ORPHAN, /* a plugin that a killed keeper started may still work on it */
    NS_QUEUED,
    NS_MAKING,
    NS_IDLE,
    NS_USED,
    NS_BACK, /* not yet looked at */
    NS_DOOMED,
    NS_REMOVING,
    NS_STUCK /* could not be removed: the next keeper tries again */
};

struct ns {
    struct net_pool *pool;
    struct net_slot slot;
    enum ns_state state;
    struct net_slot_job *job;
    bool stale; /* its second filter is not what it should be */
};

struct waiter {
    net_done_fn *fn;
    void *ctx;
};

struct tenant {
    uint32_t number;
    struct ns **ns;
    size_t n, cap;
    struct waiter *waiter; /* oldest first */
    size_t n_waiters, cap_waiters;
    unsigned want_idle; /* 0: nothing was taken lately */
    int64_t taken_ms;
    int claim_fd; /* of its addresses; -1: none */
    bool up;      /* its bridge is there, so several plugins may add to it at once */
    bool begun;   /* a plugin was told to make it, so it may be there */
};

struct net_pool {
    const struct net_site *site;
    struct log *log;
    struct net_pool_limits max;
    struct tenant **tenant; /* by number; NULL until it is needed */
    uint32_t n_tenants;
    unsigned running; /* plugins */
    bool swept, loopback_dns, cut;
    bool kicking, kick_again;
    struct loop_watch *settle, *orphans, *tidy;
    int64_t orphans_since_ms;
    loop_fn *emptied; /* set: nothing new is made */
    void *emptied_ctx;
};

static void kick(struct net_pool *p);

static int64_t mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static unsigned count(const struct tenant *t, enum ns_state s)
{
    unsigned n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->ns[i]->state == s;
    return n;
}

static struct tenant *tenant_of(struct net_pool *p, uint32_t number)
{
    struct tenant *t = p->tenant[number];
    if (t)
        return t;
    t = p->tenant[number] = xcalloc(1, sizeof *t);
    t->number = number;
    t->claim_fd = -1;
    return t;
}

static struct ns *find_slot(const struct net_pool *p, const char *name)
{
    struct net_slot slot;
    if (!net_slot_parse(p->site, str_of(name), &slot) || !p->tenant[slot.number])
        return NULL;
    struct tenant *t = p->tenant[slot.number];
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->ns[i]->slot.name, name) == 0)
            return t->ns[i];
    return NULL;
}

static struct ns *find_path(const struct net_pool *p, const char *path)
{
    char want[NET_PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct ns *ns = slash ? find_slot(p, slash + 1) : NULL;
    return ns && strcmp(net_site_path(p->site, ns->slot.name, want), path) == 0 ? ns : NULL;
}

static struct ns *add_ns(struct net_pool *p, const struct net_slot *slot, enum ns_state state)
{
    struct tenant *t = tenant_of(p, slot->number);
    struct ns *ns = xcalloc(1, sizeof *ns);
    *ns = (struct ns){ .pool = p, .slot = *slot, .state = state };
    t->begun = true;
    vec_grow(t->ns, t->n, t->cap);
    t->ns[t->n++] = ns;
    return ns;
}

static void forget_ns(struct ns *ns)
{
    struct tenant *t = ns->pool->tenant[ns->slot.number];
    size_t at = 0;
    while (t->ns[at] != ns)
        at++;
    t->ns[at] = t->ns[--t->n];
    net_slot_stop(ns->job);
    free(ns);
}

/* What was forgotten is in no list: that a slot's number leads to its own tenant is beyond the analyser. */
static struct ns *first_in(const struct tenant *t, enum ns_state s)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->ns[i]->state == s) /* NOLINT(clang-analyzer-unix.Malloc) */
            return t->ns[i];
    return NULL;
}

static void fill_place(const struct net_pool *p, const struct ns *ns,
                       char path[static NET_PATH_MAX], struct net_place *out)
{
    struct cidr subnet = net_site_subnet(p->site, ns->slot.number);
    *out = (struct net_place){ .path = net_site_path(p->site, ns->slot.name, path) };
    memcpy(out->address, ns->slot.address, sizeof out->address);
    ip4_format(subnet.base + 1, out->gateway);
}

/* ---- waiting for one ---- */

static struct waiter pop_waiter(struct tenant *t)
{
    struct waiter w = t->waiter[0];
    memmove(t->waiter, t->waiter + 1, --t->n_waiters * sizeof *t->waiter);
    return w;
}

static void hand_out(struct net_pool *p, struct tenant *t)
{
    struct ns *ns;
    while (t->n_waiters > 0 && (ns = first_in(t, NS_IDLE))) {
        struct waiter w = pop_waiter(t);
        char path[NET_PATH_MAX];
        struct net_place place;
        ns->state = NS_USED;
        fill_place(p, ns, path, &place);
        w.fn(w.ctx, &place, NULL);
    }
}

static void fail_waiter(struct tenant *t, const struct err *e)
{
    struct waiter w = pop_waiter(t);
    w.fn(w.ctx, NULL, e);
}

/* ---- making and removing ---- */

static void make_failed(struct net_pool *p, struct ns *ns, const struct err *e)
{
    struct tenant *t = p->tenant[ns->slot.number];
    log_event(p->log, LOG_WARN_, "net.make_failed", "slot=%s why=%s", ns->slot.name, e->msg);
    ns->state = NS_DOOMED;
    t->want_idle = 0; /* the next take tries again */
    if (t->n_waiters > 0)
        fail_waiter(t, e);
}

static void on_made(void *ctx, const struct net_slot *slot, const struct err *e)
{
    struct ns *ns = ctx;
    struct net_pool *p = ns->pool;
    struct tenant *t = p->tenant[slot->number];
    ns->job = NULL;
    p->running--;
    if (e) {
        make_failed(p, ns, e);
    } else {
        ns->slot = *slot;
        ns->state = p->emptied ? NS_DOOMED : NS_IDLE;
        if (!t->up)
            net_host_quiet(p->site, t->number);
        if (!t->up && p->loopback_dns)
            net_host_loopback_dns(p->site, t->number, true);
        t->up = true;
    }
    kick(p);
}

static void remove_failed(struct net_pool *p, struct ns *ns, const struct err *e)
{
    ns->state = NS_STUCK;
    log_event(p->log, LOG_WARN_, "net.remove_failed", "slot=%s why=%s", ns->slot.name, e->msg);
}

static void on_removed(void *ctx, const struct net_slot *slot, const struct err *e)
{
    struct ns *ns = ctx;
    struct net_pool *p = ns->pool;
    (void)slot;
    ns->job = NULL;
    p->running--;
    if (e)
        remove_failed(p, ns, e);
    else
        forget_ns(ns);
    kick(p);
}

static void begin_make(struct net_pool *p, struct ns *ns)
{
    struct tenant *t = p->tenant[ns->slot.number];
    struct err e;
    ns->state = NS_MAKING;
    if (t->up || net_host_check(p->site, t->number, &e) == 0)
        ns->job = net_slot_add(p->site, &ns->slot, net_host_mtu(), on_made, ns, &e);
    if (ns->job)
        p->running++;
    else
        make_failed(p, ns, &e);
}

static void stop_guard(struct net_pool *p, struct ns *ns)
{
    if (ns->job)
        p->running--;
    ns->job = net_slot_stop(ns->job);
}

static void begin_remove(struct net_pool *p, struct ns *ns)
{
    struct err e;
    stop_guard(p, ns); /* its filter goes with it */
    ns->state = NS_REMOVING;
    ns->job = net_slot_delete(p->site, &ns->slot, on_removed, ns, &e);
    if (ns->job)
        p->running++;
    else if (net_slot_force_delete(p->site, &ns->slot, &e) == 0)
        forget_ns(ns);
    else
        remove_failed(p, ns, &e);
}

static void on_guarded(void *ctx, const struct net_slot *slot, const struct err *e)
{
    struct ns *ns = ctx;
    struct net_pool *p = ns->pool;
    ns->job = NULL;
    p->running--;
    if (e) {
        log_event(p->log, LOG_WARN_, "net.guard_failed", "slot=%s why=%s", slot->name, e->msg);
        ns->state = ns->state == NS_IDLE ? NS_DOOMED : ns->state;
    }
    kick(p);
}

static void begin_guard(struct net_pool *p, struct ns *ns)
{
    struct err e;
    ns->stale = false;
    ns->job = net_slot_guard(p->site, &ns->slot, on_guarded, ns, &e);
    if (ns->job)
        p->running++;
    else
        log_event(p->log, LOG_WARN_, "net.guard_failed", "slot=%s why=%s", ns->slot.name, e.msg);
}

static bool is_there(const struct ns *ns)
{
    return ns->state == NS_IDLE || ns->state == NS_USED || ns->state == NS_BACK;
}

static void guard_stale(struct net_pool *p, const struct tenant *t)
{
    for (size_t i = 0; i < t->n && p->running < p->max.parallel; i++) {
        struct ns *ns = t->ns[i];
        if (ns->stale && is_there(ns) && !ns->job)
            begin_guard(p, ns);
    }
}

/* One plugin makes a new bridge; the others wait, as two at once may get in each other's way. */
static bool may_make(const struct tenant *t)
{
    return t->up || count(t, NS_MAKING) == 0;
}

static void run_queue(struct net_pool *p)
{
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        struct tenant *t = p->tenant[i];
        struct ns *ns;
        if (t)
            guard_stale(p, t);
        while (t && !p->cut && p->running < p->max.parallel && may_make(t) &&
               (ns = first_in(t, NS_QUEUED)))
            begin_make(p, ns);
    }
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        struct ns *ns;
        while (p->running < p->max.parallel && (ns = first_in(p->tenant[i], NS_DOOMED)))
            begin_remove(p, ns);
    }
}

/* ---- what came back ---- */

static void settle_tenant(struct net_pool *p, struct tenant *t, const bool *used, size_t *at)
{
    for (size_t i = 0; i < t->n; i++) {
        struct ns *ns = t->ns[i];
        char path[NET_PATH_MAX];
        if (ns->state != NS_BACK)
            continue;
        bool live = used[(*at)++];
        int sockets = live ? 0 : net_ns_sockets(net_site_path(p->site, ns->slot.name, path));
        ns->state = live || sockets != 0 || p->emptied ? NS_DOOMED : NS_IDLE;
        if (live)
            log_event(p->log, LOG_WARN_, "net.left_behind", "slot=%s", ns->slot.name);
    }
}

static void doom_all_back(struct net_pool *p)
{
    for (uint32_t i = 0; i < p->n_tenants; i++)
        for (struct ns *ns; (ns = first_in(p->tenant[i], NS_BACK));)
            ns->state = NS_DOOMED;
}

/* A namespace is used again only if no process and no socket is in it: without privileges there is
 * nothing else that a task could have left. */
static void settle(struct net_pool *p)
{
    AUTO(arena_free) struct arena a = { 0 };
    size_t total = 0, at = 0;
    for (uint32_t i = 0; i < p->n_tenants; i++)
        total += p->tenant[i] ? count(p->tenant[i], NS_BACK) : 0;
    if (total == 0)
        return;
    const char **paths = arena_array(&a, const char *, total);
    bool *used = arena_array(&a, bool, total);
    for (uint32_t i = 0; i < p->n_tenants; i++)
        for (size_t k = 0; p->tenant[i] && k < p->tenant[i]->n; k++)
            if (p->tenant[i]->ns[k]->state == NS_BACK)
                paths[at++] = net_site_path(p->site, p->tenant[i]->ns[k]->slot.name,
                                            arena_alloc(&a, NET_PATH_MAX, 1));
    struct err e;
    if (net_ns_used(paths, total, used, &e) < 0) {
        log_event(p->log, LOG_WARN_, "net.check_failed", "why=%s", e.msg);
        doom_all_back(p);
        return;
    }
    at = 0;
    for (uint32_t i = 0; i < p->n_tenants; i++)
        if (p->tenant[i])
            settle_tenant(p, p->tenant[i], used, &at);
}

static void on_settle(void *ctx)
{
    struct net_pool *p = ctx;
    settle(p);
    kick(p);
}

/* ---- keeping some ready ---- */

static void queue_one(struct net_pool *p, struct tenant *t)
{
    char bridge[NET_DEV_MAX];
    struct net_slot slot = { .number = t->number };
    net_site_bridge(p->site, t->number, bridge);
    for (unsigned k = 0; k == 0 || find_slot(p, slot.name); k++)
        snprintf(slot.name, sizeof slot.name, "%s.%u", bridge, k);
    add_ns(p, &slot, NS_QUEUED);
}

static void fail_full(struct net_pool *p, struct tenant *t)
{
    struct err e;
    char ip[IP4_TEXT];
    struct cidr subnet = net_site_subnet(p->site, t->number);
    err_set(&e, ERR_QUOTA, "the tenant's network %s/%u is full: tasks hold %u of %u addresses",
            ip4_format(subnet.base, ip), subnet.bits, count(t, NS_USED), net_site_slots(p->site));
    err_hint(&e, "wait for one of the tenant's tasks to end, or use larger subnets");
    fail_waiter(t, &e);
}

static void kick_tenant(struct net_pool *p, struct tenant *t)
{
    if (t->n_waiters > 0 && !first_in(t, NS_IDLE) && first_in(t, NS_BACK))
        settle(p);
    hand_out(p, t);
    size_t coming = count(t, NS_QUEUED) + count(t, NS_MAKING);
    size_t want = p->emptied ? 0 : t->n_waiters + t->want_idle;
    size_t have = coming + count(t, NS_IDLE) + count(t, NS_BACK);
    for (; have < want && t->n < net_site_slots(p->site); have++, coming++)
        queue_one(p, t);
    size_t going = count(t, NS_DOOMED) + count(t, NS_REMOVING) + count(t, NS_ORPHAN);
    while (t->n_waiters > 0 && coming + going == 0 && !first_in(t, NS_IDLE))
        fail_full(p, t);
    if (t->n == 0 && t->n_waiters == 0 && t->begun) {
        char bridge[NET_DEV_MAX];
        net_bridge_remove(net_site_bridge(p->site, t->number, bridge));
        t->up = t->begun = false;
        file_close_p(&t->claim_fd);
        t->claim_fd = -1;
    }
}

static bool is_empty(const struct net_pool *p)
{
    for (uint32_t i = 0; i < p->n_tenants; i++)
        for (size_t k = 0; p->tenant[i] && k < p->tenant[i]->n; k++)
            if (p->tenant[i]->ns[k]->state != NS_STUCK)
                return false;
    return true;
}

/* Everything that changed anything ends here.  Callbacks may change more; that is seen to in another
 * round, so no round has the ground moved from under it. */
static void kick(struct net_pool *p)
{
    p->kick_again = true;
    if (p->kicking)
        return;
    p->kicking = true;
    while (p->kick_again) {
        p->kick_again = false;
        for (uint32_t i = 0; i < p->n_tenants; i++)
            if (p->tenant[i])
                kick_tenant(p, p->tenant[i]);
        run_queue(p);
    }
    p->kicking = false;
    if (p->emptied && is_empty(p)) {
        loop_fn *fn = p->emptied;
        p->emptied = NULL;
        fn(p->emptied_ctx);
    }
}

/* ---- the calls ---- */

static void tidy_tenant(struct net_pool *p, struct tenant *t, int64_t now_ms)
{
    if (t->n_waiters > 0 || now_ms - t->taken_ms < (int64_t)p->max.idle_ms)
        return;
    t->want_idle = 0;
    for (struct ns *ns; (ns = first_in(t, NS_IDLE));)
        ns->state = NS_DOOMED;
}

static void on_tidy(void *ctx)
{
    struct net_pool *p = ctx;
    int64_t now_ms = mono_ms();
    for (uint32_t i = 0; i < p->n_tenants; i++)
        if (p->tenant[i])
            tidy_tenant(p, p->tenant[i], now_ms);
    kick(p);
}

static void on_orphans(void *ctx)
{
    struct net_pool *p = ctx;
    bool late = mono_ms() - p->orphans_since_ms > (int64_t)p->site->plugin_ms, more = false;
    for (uint32_t i = 0; i < p->n_tenants; i++)
        for (size_t k = 0; p->tenant[i] && k < p->tenant[i]->n; k++) {
            struct ns *ns = p->tenant[i]->ns[k];
            if (ns->state != NS_ORPHAN)
                continue;
            if (late || !net_slot_busy(p->site, &ns->slot))
                ns->state = NS_DOOMED;
            more |= ns->state == NS_ORPHAN;
        }
    if (more)
        loop_timer_set(p->orphans, ORPHAN_MS, 0);
    else
        net_slot_drop_leases(p->site);
    kick(p);
}

struct net_pool *net_pool_new(const struct net_site *s, const struct net_pool_limits *l,
                              struct log *log)
{
    struct net_pool *p = xcalloc(1, sizeof *p);
    *p = (struct net_pool){ .site = s, .max = *l, .log = log };
    p->n_tenants = net_site_tenants(s);
    p->tenant = xcalloc(p->n_tenants, sizeof(struct tenant *));
    p->settle = loop_timer(s->loop, on_settle, p);
    p->orphans = loop_timer(s->loop, on_orphans, p);
    p->tidy = loop_timer(s->loop, on_tidy, p);
    return p;
}

struct net_pool *net_pool_free(struct net_pool *p)
{
    if (!p)
        return NULL;
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        struct tenant *t = p->tenant[i];
        while (t && t->n > 0)
            forget_ns(t->ns[0]);
        if (t) {
            file_close_p(&t->claim_fd);
            free(t->ns);
            free(t->waiter);
        }
        free(t);
    }
    loop_unwatch(p->settle);
    loop_unwatch(p->orphans);
    loop_unwatch(p->tidy);
    free(p->tenant);
    free(p);
    return NULL;
}

int net_pool_adopt(struct net_pool *p, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char want[NET_PATH_MAX];
    struct net_slot slot;
    bool ok = slash && net_slot_parse(p->site, str_of(slash + 1), &slot) &&
              strcmp(net_site_path(p->site, slot.name, want), path) == 0 &&
              net_slot_ready(p->site, &slot);
    if (!ok)
        return err_set(e, ERR_NOT_FOUND, "there is no network '%s' of ours", path);
    if (!find_slot(p, slot.name))
        add_ns(p, &slot, NS_USED)->stale = !slot.guarded && p->site->guard.nsenter;
    tenant_of(p, slot.number)->up = true;
    return 0;
}

static void found(void *ctx, const struct net_slot *seen)
{
    struct net_pool *p = ctx;
    struct net_slot slot = *seen;
    if (find_slot(p, slot.name))
        return;
    bool whole = net_slot_ready(p->site, &slot) && !net_slot_busy(p->site, &slot) &&
                 (slot.guarded || !p->site->guard.nsenter);
    add_ns(p, &slot, whole ? NS_BACK : NS_ORPHAN);
    tenant_of(p, slot.number)->up |= whole;
}

void net_pool_sweep(struct net_pool *p)
{
    net_slot_each(p->site, found, p);
    p->swept = true;
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        char bridge[NET_DEV_MAX];
        if (!p->tenant[i] || p->tenant[i]->n == 0)
            net_bridge_remove(net_site_bridge(p->site, i, bridge));
        else
            p->tenant[i]->taken_ms = mono_ms();
        if (p->tenant[i] && p->tenant[i]->up) {
            struct err e;
            net_host_quiet(p->site, i);
            if (net_host_claim(p->site, i, &p->tenant[i]->claim_fd, &e) < 0)
                log_event(p->log, LOG_WARN_, "net.claim", "number=%u why=%s", i, e.msg);
        }
    }
    if (p->loopback_dns)
        net_pool_set_loopback_dns(p, true);
    p->orphans_since_ms = mono_ms();
    uint64_t period_ms = MAX(p->max.idle_ms / 4, (uint64_t)10);
    loop_timer_set(p->tidy, period_ms, period_ms);
    settle(p);
    on_orphans(p);
}

void net_pool_take(struct net_pool *p, uint32_t number, net_done_fn *fn, void *ctx)
{
    struct tenant *t = tenant_of(p, number);
    bool had_to_wait = !first_in(t, NS_IDLE);
    vec_grow(t->waiter, t->n_waiters, t->cap_waiters);
    t->waiter[t->n_waiters++] = (struct waiter){ fn, ctx };
    t->taken_ms = mono_ms();
    /* Each wait is a sign that more should have been ready. */
    if (t->want_idle < p->max.idle)
        t->want_idle = p->max.idle;
    else if (had_to_wait)
        t->want_idle = MIN(t->want_idle * 2, p->max.max_idle);
    kick(p);
}

void net_pool_give_back(struct net_pool *p, const char *path)
{
    struct ns *ns = find_path(p, path);
    if (!ns || ns->state != NS_USED)
        return;
    ns->state = NS_BACK;
    loop_timer_set(p->settle, SETTLE_MS, 0);
    if (p->tenant[ns->slot.number]->n_waiters > 0)
        kick(p);
}

int net_pool_find(const struct net_pool *p, const char *path, struct net_place *out, struct err *e)
{
    const struct ns *ns = find_path(p, path);
    if (!ns || ns->state != NS_USED)
        return err_set(e, ERR_NOT_FOUND, "no task has the network '%s'", path);
    char ignored[NET_PATH_MAX];
    fill_place(p, ns, ignored, out);
    out->path = path;
    return 0;
}

void net_pool_set_loopback_dns(struct net_pool *p, bool on)
{
    p->loopback_dns = on;
    for (uint32_t i = 0; i < p->n_tenants; i++)
        if (p->tenant[i] && p->tenant[i]->up)
            net_host_loopback_dns(p->site, i, on);
}

void net_pool_cut(struct net_pool *p, bool cut)
{
    char bridge[NET_DEV_MAX];
    p->cut = cut;
    for (uint32_t i = 0; i < p->n_tenants; i++)
        if (p->tenant[i] && p->tenant[i]->up)
            net_bridge_set(net_site_bridge(p->site, i, bridge), !cut);
    if (!cut)
        kick(p);
}

void net_pool_guard(struct net_pool *p)
{
    for (uint32_t i = 0; i < p->n_tenants; i++)
        for (size_t k = 0; p->tenant[i] && k < p->tenant[i]->n; k++)
            p->tenant[i]->ns[k]->stale = true;
    if (p->swept)
        kick(p);
}

int net_pool_claim(struct net_pool *p, uint32_t number, struct err *e)
{
    struct tenant *t = tenant_of(p, number);
    if (t->up || t->begun || t->n_waiters > 0)
        return 0;
    if (net_host_check(p->site, number, e) < 0)
        return -1;
    return t->claim_fd >= 0 ? 0 : net_host_claim(p->site, number, &t->claim_fd, e);
}

int net_pool_empty(struct net_pool *p, loop_fn *fn, void *ctx, struct err *e)
{
    struct net_counts c = net_pool_counts(p);
    if (c.used > 0)
        return err_set(e, ERR_CONFLICT, "%u networks are in use", c.used);
    p->emptied = fn;
    p->emptied_ctx = ctx;
    settle(p);
    for (uint32_t i = 0; i < p->n_tenants; i++)
        for (struct ns *ns; (ns = first_in(p->tenant[i], NS_IDLE));)
            ns->state = NS_DOOMED;
    kick(p);
    return 0;
}

struct net_counts net_pool_counts(const struct net_pool *p)
{
    struct net_counts c = { 0 };
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        const struct tenant *t = p->tenant[i];
        if (!t)
            continue;
        c.used += count(t, NS_USED);
        c.back += count(t, NS_BACK);
        c.idle += count(t, NS_IDLE);
        c.making += count(t, NS_QUEUED) + count(t, NS_MAKING);
        c.removing += count(t, NS_DOOMED) + count(t, NS_REMOVING) + count(t, NS_ORPHAN);
        for (size_t k = 0; k < t->n; k++)
            c.guarding += is_there(t->ns[k]) && (t->ns[k]->stale || t->ns[k]->job);
    }
    return c;
}
