/* The tenants there are: those of the settings file, and those that people made with the API.
 *
 * A tenant of the file is the file's: it is changed there.  Both are said to the core, which counts and decides;
 * the calendar of budgets is here. */
#include "base/date.h"
#include "control/pool.h"
#include "control/state.h"
#include "store/directory.h"

struct tenant {
    char *name;
    bool of_settings;
    int64_t created_ms;
    struct tenant_spec spec;
    struct arena arena; /* of the spec's strings */
    int64_t budget_from_ms, budget_until_ms;
};

static void tenant_free(struct tenant *t)
{
    if (!t)
        return;
    arena_free(&t->arena);
    free(t->name);
    free(t);
}

static void tenant_free_p(struct tenant **t)
{
    tenant_free(*t);
}

static struct str own_str(struct arena *a, struct str s)
{
    return (struct str){ arena_strndup(a, s.p ? s.p : "", s.n), s.n };
}

static struct str *own_list(struct arena *a, const struct str *list, size_t n)
{
    if (!list)
        return NULL;
    struct str *mine = arena_array(a, struct str, n + 1);
    for (size_t i = 0; i < n; i++)
        mine[i] = own_str(a, list[i]);
    return mine;
}

/* All of its strings in its own arena. */
static struct tenant *tenant_new(struct str name, const struct tenant_spec *spec)
{
    struct tenant *t = xcalloc(1, sizeof *t);
    struct arena *a = &t->arena;
    t->name = xcalloc(name.n + 1, 1);
    memcpy(t->name, name.p, name.n);
    t->spec = *spec;
    t->spec.help = own_str(a, spec->help);
    t->spec.parent = own_str(a, spec->parent);
    t->spec.pool = own_list(a, spec->pool, spec->pools);
    t->spec.profile = own_list(a, spec->profile, spec->profiles);
    for (uint32_t i = 0; i < spec->limit.models; i++)
        t->spec.limit.by_model[i].models = own_str(a, spec->limit.by_model[i].models);
    t->spec.group = arena_array(a, struct tenant_group, spec->groups + 1);
    for (size_t i = 0; i < spec->groups; i++)
        t->spec.group[i] = (struct tenant_group){ own_str(a, spec->group[i].group),
                                                  own_str(a, spec->group[i].role) };
    return t;
}

static size_t find(const struct tenants *ts, struct str name)
{
    size_t i = 0;
    while (i < ts->n && !str_is(name, ts->at[i]->name))
        i++;
    return i;
}

/* ---- core and store ---- */

static void set_period(struct control *c, struct tenant *t)
{
    period_around(t->spec.budget_period, &c->config.zone, t->created_ms, control_now_ms(c),
                  &t->budget_from_ms, &t->budget_until_ms);
}

/* To the core, or to a copy of it that is to be tried. */
static int say_to(struct control *c, struct core *core, struct tenant *t, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_TENANT };
    set_period(c, t);
    ev.tenant = (struct event_tenant){ .name = str_of(t->name),
                                       .parent = t->spec.parent,
                                       .weight_milli = t->spec.weight_milli,
                                       .guarantee_milli = t->spec.guarantee_milli,
                                       .limit = t->spec.limit.of,
                                       .user_limit = t->spec.user_limit.of };
    return core == c->core ? turn_apply(c, &ev, e) : core_apply(core, &ev, e);
}

static int say(struct control *c, struct tenant *t, struct err *e)
{
    return say_to(c, c->core, t, e);
}

static int say_gone(struct control *c, struct core *core, struct str name, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_TENANT };
    ev.tenant = (struct event_tenant){ .name = name };
    return core == c->core ? turn_apply(c, &ev, e) : core_apply(core, &ev, e);
}

static void keep_tenant(struct control *c, const struct tenant *t)
{
    AUTO(buf_free) struct buf body = BUF(TENANT_TEXT_MAX);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "created_ms", t->created_ms);
    tenant_write(&t->spec, &w);
    json_end(&w, '}');
    store_put_entry(turn_open(c)->batch, DIRECTORY_TENANT,
                    &(struct store_entry){ str_of(t->name), buf_str(&body) });
}

/* ---- at the start ---- */

static void add(struct control *c, struct tenant *t)
{
    vec_grow(c->tenants.at, c->tenants.n, c->tenants.cap);
    c->tenants.at[c->tenants.n++] = t;
}

static int add_stored(struct control *c, const struct store_entry *row, struct err *e)
{
    static const char *const beside[] = { "created_ms", NULL };
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(row->body, e);
    struct tenant_spec spec, base = tenant_default();
    if (!d ||
        tenant_read(&(struct tenant_text){ json_root(d), &base, beside }, &a, &spec, NULL, e) < 0)
        return -1;
    if (find(&c->tenants, row->name) < c->tenants.n) { /* the file has it now */
        log_event(c->config.log, LOG_WARN_, "tenant.of_settings", "tenant=%.*s",
                  STR_ARG(row->name));
        store_delete_entry(turn_open(c)->batch, DIRECTORY_TENANT, row->name);
        return 0;
    }
    AUTO(tenant_free_p) struct tenant *t = tenant_new(row->name, &spec);
    if (json_get_i64(json_root(d), "created_ms", 0, TIME_MAX_MS, &t->created_ms, e) < 0)
        return -1;
    add(c, TAKE(t));
    return 0;
}

/* Parents before children; those whose parent is not there come last, and the core says so. */
static int say_all(struct control *c, struct err *e)
{
    const struct tenants *ts = &c->tenants;
    AUTO(free_p) bool *said = xcalloc(ts->n + 1, sizeof *said);
    for (size_t done = 0, before = SIZE_MAX; done < ts->n;) {
        bool last = done == before;
        before = done;
        for (size_t i = 0; i < ts->n; i++) {
            struct tenant *t = ts->at[i];
            size_t parent = t->spec.parent.n ? find(ts, t->spec.parent) : ts->n;
            if (said[i] || (parent < ts->n && !said[parent] && !last))
                continue;
            if (say(c, t, e) < 0)
                return err_wrap(e, "tenant '%s'", t->name);
            said[i] = true;
            done++;
        }
    }
    return 0;
}

/* Those that the core knows from before, and that nobody has any more, take no jobs. */
int tenants_load(struct control *c, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_entry *row;
    size_t n;
    if (store_entries(c->config.store, DIRECTORY_TENANT, &a, &row, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < c->config.tenants; i++) {
        const struct control_tenant_def *d = &c->config.tenant[i];
        struct tenant *t = tenant_new(d->name, &d->spec);
        t->of_settings = true;
        add(c, t);
    }
    for (size_t i = 0; i < n; i++)
        if (add_stored(c, &row[i], e) < 0)
            return err_wrap(e, "tenant '%.*s' of the store", STR_ARG(row[i].name));
    return say_all(c, e);
}

void tenants_free(struct control *c)
{
    for (size_t i = 0; i < c->tenants.n; i++)
        tenant_free(c->tenants.at[i]);
    free(c->tenants.at);
}

/* ---- looking ---- */

bool control_tenant_at(const struct control *c, size_t i, struct control_tenant *out)
{
    if (i >= c->tenants.n)
        return false;
    const struct tenant *t = c->tenants.at[i];
    *out = (struct control_tenant){ .name = t->name,
                                    .of_settings = t->of_settings,
                                    .created_ms = t->created_ms,
                                    .spec = &t->spec,
                                    .budget_from_ms = t->budget_from_ms,
                                    .budget_until_ms = t->budget_until_ms };
    return true;
}

bool control_tenant_find(const struct control *c, struct str name, struct control_tenant *out)
{
    return control_tenant_at(c, find(&c->tenants, name), out);
}

int no_tenant(struct str name, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "there is no tenant '%.*s'", (int)MIN(name.n, (size_t)60), name.p);
    return err_hint(e, "see those there are: nightshift tenants");
}

/* ---- verbs ---- */

static int of_settings(const struct tenant *t, struct err *e)
{
    err_set(e, ERR_CONFLICT, "tenant '%s' is the settings file's", t->name);
    return err_hint(e, "change it there and restart nightshiftd; its members can be changed here");
}

static int check_pools(const struct control *c, const struct tenant_spec *spec, struct err *e)
{
    struct control_pool p;
    for (size_t i = 0; i < spec->pools; i++)
        if (!str_is(spec->pool[i], "-") && !control_pool_find(c, spec->pool[i], &p)) {
            err_set(e, ERR_INVALID, "field 'pools': there is no pool '%.*s'",
                    STR_ARG(spec->pool[i]));
            err_about(e, "pools");
            return err_hint(e, "see those there are: nightshift pools");
        }
    return 0;
}

static int check_parent(const struct tenants *ts, struct str name, const struct tenant_spec *spec,
                        struct err *e)
{
    struct str up = spec->parent;
    if (up.n == 0)
        return 0;
    if (find(ts, up) == ts->n) {
        err_set(e, ERR_INVALID, "field 'parent': there is no tenant '%.*s'", STR_ARG(up));
        err_about(e, "parent");
        return err_hint(e, "make it first: nightshift tenants set NAME");
    }
    for (size_t depth = 0; up.n && depth <= ts->n; depth++) {
        if (str_eq(up, name)) {
            err_set(e, ERR_INVALID, "field 'parent': '%.*s' is '%.*s' itself, or below it",
                    STR_ARG(spec->parent), STR_ARG(name));
            err_about(e, "parent");
            return err_hint(e, "a tree has no circles: choose one beside it or above");
        }
        size_t at = find(ts, up);
        up = at < ts->n ? ts->at[at]->spec.parent : STR("");
    }
    return 0;
}

/* Among these, which are those of `c` or would be. */
static int check_put(const struct control *c, const struct tenants *ts,
                     const struct control_tenant_change *ch, struct err *e)
{
    size_t at = find(ts, ch->name);
    if (pool_check_name("tenant", ch->name, e) < 0)
        return -1;
    if (at < ts->n && ts->at[at]->of_settings)
        return of_settings(ts->at[at], e);
    if (check_parent(ts, ch->name, ch->spec, e) < 0)
        return -1;
    return check_pools(c, ch->spec, e);
}

int control_tenant_put(struct control *c, const struct control_tenant_change *ch,
                       struct control_done done, struct err *e)
{
    size_t at = find(&c->tenants, ch->name);
    bool known = at < c->tenants.n;
    if (check_put(c, &c->tenants, ch, e) < 0)
        return -1;
    AUTO(tenant_free_p) struct tenant *t = tenant_new(ch->name, ch->spec);
    t->created_ms = known ? c->tenants.at[at]->created_ms : control_now_ms(c);
    if (say(c, t, e) < 0)
        return -1;
    keep_tenant(c, t);
    if (known) {
        tenant_free(c->tenants.at[at]);
        c->tenants.at[at] = TAKE(t);
    } else {
        add(c, TAKE(t));
    }
    turn_changed(c, &(struct change){ "tenant", ch->name, "set", ch->by }, done);
    return 0;
}

int control_tenant_delete(struct control *c, struct str name, struct str by,
                          struct control_done done, struct err *e)
{
    size_t at = find(&c->tenants, name);
    if (at == c->tenants.n)
        return no_tenant(name, e);
    if (c->tenants.at[at]->of_settings)
        return of_settings(c->tenants.at[at], e);
    if (say_gone(c, c->core, name, e) < 0)
        return -1;
    store_delete_entry(turn_open(c)->batch, DIRECTORY_TENANT, name);
    turn_changed(c, &(struct change){ "tenant", name, "removed", by }, done);
    tenant_free(c->tenants.at[at]);
    memmove(&c->tenants.at[at], &c->tenants.at[at + 1],
            (c->tenants.n - at - 1) * sizeof(struct tenant *));
    c->tenants.n--;
    return 0;
}

/* ---- several at once ---- */

struct copying {
    struct core *core;
    int rc;
    struct err *e;
};

static void copy_event(void *ctx, const struct event *ev)
{
    struct copying *to = ctx;
    if (to->rc == 0)
        to->rc = core_apply(to->core, ev, to->e);
}

/* Where changes can be tried: what the core refuses is the core's to know. */
static struct core *copy_core(const struct control *c, struct err *e)
{
    AUTO(core_free_p) struct core *core = core_new();
    struct copying to = { core, 0, e };
    core_snapshot(c->core, copy_event, &to);
    return to.rc == 0 ? TAKE(core) : NULL;
}

/* As they would be after the puts so far; those that are new to it are its own. */
struct trial {
    struct tenants all;
    struct tenant **own;
    size_t n, cap;
};

static void trial_free(struct trial *t)
{
    for (size_t i = 0; i < t->n; i++)
        tenant_free(t->own[i]);
    free(t->own);
    free(t->all.at);
}

static int try_put(struct control *c, struct core *core, struct trial *t,
                   const struct control_tenant_change *ch, struct err *e)
{
    size_t at = find(&t->all, ch->name);
    if (check_put(c, &t->all, ch, e) < 0)
        return -1;
    struct tenant *made = tenant_new(ch->name, ch->spec);
    vec_grow(t->own, t->n, t->cap);
    t->own[t->n++] = made;
    if (at == t->all.n) {
        vec_grow(t->all.at, t->all.n, t->all.cap);
        t->all.n++;
    }
    t->all.at[at] = made;
    return say_to(c, core, made, e);
}

int control_tenants_check(struct control *c, const struct control_tenants_change *ch,
                          struct str *out_name, struct err *e)
{
    AUTO(core_free_p) struct core *core = copy_core(c, e);
    AUTO(trial_free) struct trial t = { 0 };
    *out_name = STR("");
    if (!core)
        return err_wrap(e, "the state cannot be copied");
    for (size_t i = 0; i < c->tenants.n; i++) {
        vec_grow(t.all.at, t.all.n, t.all.cap);
        t.all.at[t.all.n++] = c->tenants.at[i];
    }
    for (size_t i = 0; i < ch->puts; i++) {
        *out_name = ch->put[i].name;
        if (try_put(c, core, &t, &ch->put[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < ch->gones; i++) {
        size_t at = find(&c->tenants, ch->gone[i]);
        *out_name = ch->gone[i];
        if (at == c->tenants.n)
            return no_tenant(ch->gone[i], e);
        if (c->tenants.at[at]->of_settings)
            return of_settings(c->tenants.at[at], e);
        if (say_gone(c, core, ch->gone[i], e) < 0)
            return -1;
    }
    return 0;
}

/* ---- what a job of it may be ---- */

int tenant_check_spec(const struct control *c, struct str name, const struct spec *s, struct err *e)
{
    size_t at = find(&c->tenants, name);
    if (at == c->tenants.n) {
        no_tenant(name, e);
        return err_about(e, "tenant");
    }
    const struct tenant_spec *t = &c->tenants.at[at]->spec;
    if (s->priority > t->priority) {
        err_set(e, ERR_DENIED, "field 'priority': jobs of '%.*s' have '%s' at most", STR_ARG(name),
                priority_name(t->priority));
        err_about(e, "priority");
        return err_hint(e, "leave it out, or ask an administrator");
    }
    bool listed = t->profile == NULL;
    AUTO(buf_free) struct buf all = BUF(200);
    for (size_t i = 0; i < t->profiles; i++) {
        listed |= str_eq(s->profile, t->profile[i]);
        buf_printf(&all, "%s%.*s", i ? ", " : "", STR_ARG(t->profile[i]));
    }
    if (!listed) {
        err_set(e, ERR_DENIED, "field 'profile': jobs of '%.*s' take one of its profiles",
                STR_ARG(name));
        err_about(e, "profile");
        return err_hint(e, "there are: %s", buf_str(&all).p);
    }
    if (t->expires_ms && t->expires_ms <= control_now_ms(c)) {
        char when[32];
        err_set(e, ERR_CONFLICT, "the time of tenant '%.*s' ended on %s", STR_ARG(name),
                date_stamp(t->expires_ms, when));
        err_about(e, "tenant");
        return err_hint(e, "name another of yours (nightshift status), or ask an administrator");
    }
    return 0;
}
