/* The pools there are: those of the settings file, and those that people made with the API.
 *
 * A pool's window and the exceptions of `open` and `close` are kept apart, so that the file can own the
 * one and people the other; the core knows the two merged.  A machine that a pool names and that comes
 * later is in it from then on.
 *
 * A machine that its owner holds is in a pool of its own kind, POOL_HELD, which is never open: what is there
 * is taken back as at the end of a window, and nothing is thawed there until it is released.  That pool is
 * kept like any other, so a hold outlives the daemon; a machine in it is in no other meanwhile. */
#include "base/hostlist.h"
#include "control/state.h"

static void lent_free(struct lent *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nodes; i++)
        free(p->node[i]);
    free(p->node);
    free(p->name);
    free(p);
}

static void lent_free_p(struct lent **p)
{
    lent_free(*p);
}

static char *dup_str(struct str s)
{
    char *p = xcalloc(s.n + 1, 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

static struct lent *lent_new(struct str name)
{
    struct lent *p = xcalloc(1, sizeof *p);
    p->name = dup_str(name);
    p->always = true;
    p->window = p->exceptions = p->now = calendar_always();
    return p;
}

static int never_open(struct calendar *out, struct err *e)
{
    return calendar_parse(STR("closed 1970-01-01..2200-12-31"), NULL, NULL, out, e);
}

static void set_nodes(struct lent *p, const char *const *node, size_t n)
{
    for (size_t i = 0; i < p->nodes; i++)
        free(p->node[i]);
    free(p->node);
    p->node = xcalloc(n + 1, sizeof *p->node);
    p->nodes = n;
    for (size_t i = 0; i < n; i++)
        p->node[i] = xstrdup(node[i]);
}

static struct lent *lent_copy(const struct lent *from)
{
    struct lent *p = lent_new(str_of(from->name));
    struct lent names = *p;
    *p = *from;
    p->name = names.name;
    p->node = NULL;
    p->nodes = 0;
    set_nodes(p, (const char *const *)from->node, from->nodes);
    return p;
}

static size_t find(const struct pools *ps, struct str name)
{
    size_t i = 0;
    while (i < ps->n && !str_is(name, ps->at[i]->name))
        i++;
    return i;
}

/* ---- which machine is in which ---- */

static bool is_held(const struct lent *p)
{
    return strcmp(p->name, POOL_HELD) == 0;
}

static void index_pool(struct pools *ps, size_t i)
{
    for (size_t k = 0; k < ps->at[i]->nodes; k++) {
        struct str name = str_of(ps->at[i]->node[k]);
        if (names_find(&ps->node_names, name) == NAME_NONE) /* the first has it */
            ps->pool_of[names_intern(&ps->node_names, name)] = (uint32_t)i;
    }
}

static void index_nodes(struct pools *ps)
{
    size_t n = 0;
    for (size_t i = 0; i < ps->n; i++)
        n += ps->at[i]->nodes;
    names_free(&ps->node_names);
    ps->node_names = (struct names){ 0 };
    free(ps->pool_of);
    ps->pool_of = xcalloc(n + 1, sizeof *ps->pool_of);
    for (size_t i = 0; i < ps->n; i++) /* an owner's word before every list */
        if (is_held(ps->at[i]))
            index_pool(ps, i);
    for (size_t i = 0; i < ps->n; i++)
        index_pool(ps, i);
}

/* A machine is in one pool: `mine` may not name one of another. */
static int check_nodes(const struct pools *ps, const struct lent *mine, struct err *e)
{
    for (size_t i = 0; i < mine->nodes; i++) {
        uint32_t k = names_find(&ps->node_names, str_of(mine->node[i]));
        const struct lent *other = k == NAME_NONE ? NULL : ps->at[ps->pool_of[k]];
        if (!other || is_held(other) || is_held(mine) || strcmp(other->name, mine->name) == 0)
            continue;
        err_set(e, ERR_CONFLICT, "machine '%s' is in pool '%s' already", mine->node[i],
                other->name);
        return err_hint(e, "a machine is in one pool: take it out of '%s' first", other->name);
    }
    return 0;
}

/* ---- core, store, events ---- */

/* In the core it is there from now on, with what it is open by. */
static int say(struct control *c, struct lent *p, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(CALENDAR_TEXT_MAX);
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_POOL };
    if (pool_merge(&p->window, &p->exceptions, &p->now, e) < 0)
        return -1;
    if (!p->always || p->exceptions.exceptions)
        calendar_format(&p->now, &text);
    ev.pool = (struct event_pool){ str_of(p->name), buf_str(&text) };
    return turn_apply(c, &ev, e);
}

/* Where a pool lists it, or else where the engine says that it is, when there is such a pool. */
static struct lent *pool_of(const struct control *c, const char *node)
{
    const struct pools *ps = &c->pools;
    uint32_t i = names_find(&ps->node_names, str_of(node));
    if (i != NAME_NONE)
        return ps->at[ps->pool_of[i]];
    i = names_find(&ps->told_names, str_of(node));
    size_t at = i == NAME_NONE ? ps->n : find(ps, str_of(ps->told[i]));
    return at < ps->n ? ps->at[at] : NULL;
}

void pools_told(struct control *c, struct str node, struct str pool)
{
    struct pools *ps = &c->pools;
    if (pool.n == 0 && names_find(&ps->told_names, node) == NAME_NONE)
        return;
    uint32_t i = names_intern(&ps->told_names, node);
    if (i >= ps->tolds) {
        ps->told = xrealloc(ps->told, i + 1, sizeof *ps->told);
        ps->told[i] = NULL;
        ps->tolds = i + 1;
    }
    free(ps->told[i]);
    ps->told[i] = xcalloc(pool.n + 1, 1);
    memcpy(ps->told[i], pool.p, pool.n);
}

/* Machines whose window has ended, or begun again: the engine marks them, for whoever else uses them. */
void pools_lend(struct control *c)
{
    struct pools *ps = &c->pools;
    struct node_view v;
    if (!c->engine.ops || !c->engine.ops->lend)
        return;
    for (uint32_t i = 0; core_node(c->core, (node_id){ i }, &v); i++) {
        if (i >= ps->lent_n) {
            ps->lent_state = xrealloc(ps->lent_state, i + 1, sizeof *ps->lent_state);
            ps->lent_state[i] = 2; /* not known what it was told */
            ps->lent_n = i + 1;
        }
        if (ps->lent_state[i] == v.open)
            continue;
        ps->lent_state[i] = v.open;
        c->engine.ops->lend(c->engine.self, str_of(v.name), v.open);
    }
}

static int move(struct control *c, const char *node, struct lent *to, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE_POOL };
    ev.node_pool = (struct event_node_pool){ str_of(node), str_of(to ? to->name : "") };
    return turn_apply(c, &ev, e);
}

void pools_move(struct control *c)
{
    struct node_view v;
    struct err e;
    for (uint32_t i = 0; core_node(c->core, (node_id){ i }, &v); i++) {
        struct lent *to = pool_of(c, v.name);
        if (strcmp(v.pool, to ? to->name : "") != 0 && move(c, v.name, to, &e) < 0)
            log_event(c->config.log, LOG_ERROR_, "pool.refused", "node=%s why=%s", v.name, e.msg);
    }
}

static void store_lent(struct control *c, const struct lent *p)
{
    AUTO(buf_free)
    struct buf window = BUF(CALENDAR_TEXT_MAX), exceptions = BUF(CALENDAR_TEXT_MAX),
               nodes = BUF(POOL_LIST_MAX);
    if (!p->always && !p->of_settings)
        calendar_format(&p->window, &window);
    if (p->exceptions.exceptions)
        calendar_format(&p->exceptions, &exceptions);
    if (!p->of_settings)
        hostlist_fold((const char *const *)p->node, p->nodes, &nodes);
    struct store_pool row = { .name = str_of(p->name),
                              .calendar = buf_str(&window),
                              .nodes = buf_str(&nodes),
                              .exceptions = buf_str(&exceptions),
                              .stage = str_of(stage_name(p->stage)),
                              .of_settings = p->of_settings };
    if (p->of_settings && !p->exceptions.exceptions)
        store_delete_pool(turn_open(c)->batch, row.name);
    else
        store_put_pool(turn_open(c)->batch, &row);
}

/* ---- at the start ---- */

static int add_of_settings(struct control *c, const struct control_pool_def *d, struct err *e)
{
    AUTO(lent_free_p) struct lent *p = lent_new(d->name);
    p->of_settings = true;
    p->stage = d->stage;
    p->always = d->window.n == 0;
    if (d->window.n && calendar_parse(d->window, NULL, NULL, &p->window, e) < 0)
        return err_wrap(e, "pool '%s'", p->name);
    set_nodes(p, d->node, d->nodes);
    vec_grow(c->pools.at, c->pools.n, c->pools.cap);
    c->pools.at[c->pools.n++] = TAKE(p);
    return 0;
}

/* What people had made stays theirs, unless the file has it now. */
static int add_stored(struct control *c, const struct store_pool *row, struct arena *a,
                      struct err *e)
{
    size_t at = find(&c->pools, row->name);
    bool known = at < c->pools.n;
    const char **node = NULL;
    size_t nodes = 0;
    if (row->of_settings && !known) { /* the file has it no more */
        store_delete_pool(turn_open(c)->batch, row->name);
        return 0;
    }
    AUTO(lent_free_p) struct lent *made = known ? NULL : lent_new(row->name);
    struct lent *p = known ? c->pools.at[at] : made;
    if (row->exceptions.n && calendar_parse(row->exceptions, NULL, NULL, &p->exceptions, e) < 0)
        return -1;
    if (known && !row->of_settings) {
        log_event(c->config.log, LOG_WARN_, "pool.of_settings", "pool=%s", p->name);
        store_lent(c, p);
    }
    if (known)
        return 0;
    p->always = row->calendar.n == 0;
    stage_parse(row->stage, &p->stage);
    if ((row->calendar.n && calendar_parse(row->calendar, NULL, NULL, &p->window, e) < 0) ||
        pool_read_nodes(row->nodes, a, &node, &nodes, e) < 0)
        return -1;
    if (is_held(p) && never_open(&p->window, e) < 0) /* an older version wrote a far day */
        return -1;
    set_nodes(p, node, nodes);
    struct err why;
    if (check_nodes(&c->pools, p, &why) < 0) /* the file has one of its machines now */
        log_event(c->config.log, LOG_WARN_, "pool.overlaps", "pool=%s why=%s", p->name, why.msg);
    vec_grow(c->pools.at, c->pools.n, c->pools.cap);
    c->pools.at[c->pools.n++] = TAKE(made);
    return 0;
}

int pools_load(struct control *c, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_pool *row;
    size_t n;
    if (store_pools(c->config.store, &a, &row, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < c->config.pools; i++)
        if (add_of_settings(c, &c->config.pool[i], e) < 0)
            return -1;
    index_nodes(&c->pools);
    for (size_t i = 0; i < n; i++)
        if (add_stored(c, &row[i], &a, e) < 0)
            return err_wrap(e, "pool '%.*s' of the store", STR_ARG(row[i].name));
    index_nodes(&c->pools);
    for (size_t i = 0; i < c->pools.n; i++)
        if (say(c, c->pools.at[i], e) < 0)
            return err_wrap(e, "pool '%s'", c->pools.at[i]->name);
    pools_move(c);
    tenants_learn_pools(c);
    return 0;
}

void pools_free(struct control *c)
{
    for (size_t i = 0; i < c->pools.n; i++)
        lent_free(c->pools.at[i]);
    free(c->pools.at);
    free(c->pools.pool_of);
    names_free(&c->pools.node_names);
    for (uint32_t i = 0; i < c->pools.tolds; i++)
        free(c->pools.told[i]);
    free(c->pools.told);
    names_free(&c->pools.told_names);
    free(c->pools.lent_state);
}

/* ---- verbs ---- */

static int no_pool(struct str name, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "there is no pool '%.*s'", (int)MIN(name.n, (size_t)POOL_NAME_MAX),
            name.p);
    return err_hint(e, "see those there are: nightshift pools");
}

static int of_settings(const struct lent *p, struct err *e)
{
    err_set(e, ERR_CONFLICT, "pool '%s' is the settings file's", p->name);
    return err_hint(e, "change it there and restart nightshiftd; to open or close it for a while: "
                       "nightshift pools open, nightshift pools close");
}

/* Puts it in place of the one that is there, or adds it. */
static int replace(struct control *c, size_t at, struct lent *p, struct err *e)
{
    if (say(c, p, e) < 0)
        return -1;
    if (at == c->pools.n) {
        vec_grow(c->pools.at, c->pools.n, c->pools.cap);
        c->pools.n++;
    } else {
        lent_free(c->pools.at[at]);
    }
    c->pools.at[at] = p;
    store_lent(c, p);
    return 0;
}

static int of_owners(struct err *e)
{
    err_set(e, ERR_CONFLICT, "pool '" POOL_HELD "' has the machines that their owners hold");
    return err_hint(e, "an owner lets it go on the machine: nightshift-agent release");
}

int control_pool_put(struct control *c, const struct control_pool_change *ch,
                     struct control_done done, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    size_t at = find(&c->pools, ch->name), nodes = 0;
    const char **node = NULL;
    if (pool_check_name("pool", ch->name, e) < 0)
        return -1;
    if (str_is(ch->name, POOL_HELD))
        return of_owners(e);
    if (at < c->pools.n && c->pools.at[at]->of_settings)
        return of_settings(c->pools.at[at], e);
    AUTO(lent_free_p)
    struct lent *p = at < c->pools.n ? lent_copy(c->pools.at[at]) : lent_new(ch->name);
    if (ch->window) {
        if (pool_read_window(*ch->window, control_now_ms(c), &p->window, e) < 0)
            return err_wrap(e, "window");
        p->always = ch->window->n == 0;
    }
    if (ch->stage)
        p->stage = *ch->stage;
    if (ch->nodes) {
        if (pool_read_nodes(*ch->nodes, &a, &node, &nodes, e) < 0)
            return err_wrap(e, "nodes");
        set_nodes(p, node, nodes);
    }
    if (check_nodes(&c->pools, p, e) < 0 || replace(c, at, p, e) < 0)
        return -1;
    p = NULL; /* it is in its place */
    index_nodes(&c->pools);
    pools_move(c);
    tenants_learn_pools(c);
    turn_changed(c, &(struct change){ "pool", ch->name, "set", ch->by }, done);
    return 0;
}

/* Out of the core, the store and the list. */
static int drop(struct control *c, size_t at, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_POOL };
    ev.pool = (struct event_pool){ .name = str_of(c->pools.at[at]->name) };
    if (turn_apply(c, &ev, e) < 0) /* nobody in it and always open: the core forgets it */
        return -1;
    store_delete_pool(turn_open(c)->batch, ev.pool.name);
    lent_free(c->pools.at[at]);
    memmove(&c->pools.at[at], &c->pools.at[at + 1], (c->pools.n - at - 1) * sizeof(struct lent *));
    c->pools.n--;
    index_nodes(&c->pools);
    return 0;
}

int control_pool_delete(struct control *c, struct str name, struct str by, struct control_done done,
                        struct err *e)
{
    size_t at = find(&c->pools, name);
    if (at == c->pools.n)
        return no_pool(name, e);
    if (c->pools.at[at]->of_settings)
        return of_settings(c->pools.at[at], e);
    if (drop(c, at, e) < 0)
        return -1;
    pools_move(c);
    tenants_learn_pools(c);
    turn_changed(c, &(struct change){ "pool", name, "remove", by }, done);
    return 0;
}

int control_pool_except(struct control *c, const struct control_pool_except *x,
                        struct control_done done, struct err *e)
{
    size_t at = find(&c->pools, x->name);
    if (at == c->pools.n)
        return no_pool(x->name, e);
    if (is_held(c->pools.at[at]))
        return of_owners(e);
    AUTO(lent_free_p) struct lent *p = lent_copy(c->pools.at[at]);
    if (x->regular)
        p->exceptions = calendar_always();
    else if (pool_add_exception(&p->exceptions, &x->except, control_now_ms(c), e) < 0)
        return -1;
    if (replace(c, at, p, e) < 0)
        return -1;
    p = NULL; /* it is in its place */
    const char *what = x->regular ? "regular" : x->except.open ? "open" : "close";
    turn_changed(c, &(struct change){ "pool", x->name, what, x->by }, done);
    return 0;
}

/* ---- what owners hold ---- */

static size_t find_node(const struct lent *p, struct str node)
{
    size_t i = 0;
    while (i < p->nodes && !str_is(node, p->node[i]))
        i++;
    return i;
}

bool control_held(const struct control *c, struct str node)
{
    size_t at = find(&c->pools, STR(POOL_HELD));
    return at < c->pools.n && find_node(c->pools.at[at], node) < c->pools.at[at]->nodes;
}

int control_hold(struct control *c, struct str node, bool held, struct str by,
                 struct control_done done, struct err *e)
{
    size_t at = find(&c->pools, STR(POOL_HELD));
    const struct lent *p = at < c->pools.n ? c->pools.at[at] : NULL;
    size_t had = p ? p->nodes : 0;
    AUTO(free_p) const char **list = xcalloc(had + 1, sizeof *list);
    AUTO(free_p) char *name = dup_str(node);
    size_t n = 0;
    if (control_held(c, node) == held) {
        err_set(e, ERR_CONFLICT, "it is %sheld already", held ? "" : "not ");
        return -1;
    }
    for (size_t i = 0; i < had; i++)
        if (!str_is(node, p->node[i]))
            list[n++] = p->node[i];
    if (held && n == POOL_NODES_MAX)
        return err_set(e, ERR_TOO_LARGE, "too many machines are held");
    if (held)
        list[n++] = name;
    AUTO(lent_free_p) struct lent *next = lent_new(STR(POOL_HELD));
    next->always = false;
    if (never_open(&next->window, e) < 0)
        return -1;
    set_nodes(next, list, n);
    if (replace(c, at, next, e) < 0)
        return -1;
    next = NULL; /* it is in its place */
    index_nodes(&c->pools);
    pools_move(c);
    if (n == 0 && drop(c, at, e) < 0) /* nobody holds anything */
        return -1;
    tenants_learn_pools(c);
    turn_changed(c, &(struct change){ "node", node, held ? "hold" : "release", by }, done);
    return 0;
}

/* ---- looking ---- */

bool control_pool_at(const struct control *c, size_t i, struct control_pool *out)
{
    if (i >= c->pools.n)
        return false;
    const struct lent *p = c->pools.at[i];
    *out = (struct control_pool){ .name = p->name,
                                  .of_settings = p->of_settings,
                                  .stage = p->stage,
                                  .always = p->always,
                                  .window = &p->window,
                                  .exceptions = &p->exceptions,
                                  .now = &p->now,
                                  .node = (const char *const *)p->node,
                                  .nodes = p->nodes };
    return true;
}

bool control_pool_find(const struct control *c, struct str name, struct control_pool *out)
{
    return control_pool_at(c, find(&c->pools, name), out);
}
