/* The tenants there are: those of the settings file, and those that people made with the API.
 *
 * A tenant of the file is the file's: it is changed there.  Both are said to the core, which counts and decides;
 * the calendar of budgets is here. */
#include "base/date.h"
#include "control/pool.h"
#include "control/state.h"
#include "store/directory.h"

#define WARN_PERCENT 80

struct tenant {
    char *name;
    bool of_settings;
    int64_t created_ms;
    struct tenant_spec spec;
    struct arena arena; /* of the spec's strings */
    int64_t budget_from_ms, budget_until_ms;
    char *pools;    /* as the core was told: those that it may use */
    share_id share; /* in the core, once it was found there */
    bool found;
    uint32_t warned; /* per cent of its budget that it was warned of in this period */
};

static void tenant_free(struct tenant *t)
{
    if (!t)
        return;
    arena_free(&t->arena);
    free(t->pools);
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

/* ---- core ---- */

static void set_period(struct control *c, struct tenant *t)
{
    period_around(t->spec.budget_period, &c->config.zone, t->created_ms, control_now_ms(c),
                  &t->budget_from_ms, &t->budget_until_ms);
}

/* While every pool is everybody's and nothing was said, it may use all; else those that are listed. */
static void list_pools(const struct control *c, const struct tenant_spec *spec, struct buf *out)
{
    struct control_pool p;
    bool all = spec->pool == NULL;
    for (size_t i = 0; control_pool_at(c, i, &p); i++)
        all = all && p.stage == STAGE_ALL;
    if (all)
        return;
    bool none = spec->pool == NULL; /* machines in no pool */
    for (size_t i = 0; spec->pool && i < spec->pools; i++)
        none |= str_is(spec->pool[i], "-");
    for (size_t i = 0; control_pool_at(c, i, &p); i++) {
        bool listed = spec->pool == NULL;
        for (size_t k = 0; spec->pool && k < spec->pools; k++)
            listed |= str_is(spec->pool[k], p.name);
        if (listed && p.stage <= spec->stage)
            buf_printf(out, "%s%s", out->n ? "|" : "", p.name);
    }
    if (none)
        buf_printf(out, "%s-", out->n ? "|" : "");
    if (out->n == 0) /* a name that no pool can have: it may use none */
        buf_addz(out, "?");
}

/* To the core, or to a copy of it that is to be tried. */
static int say_to(struct control *c, struct core *core, struct tenant *t, struct err *e)
{
    AUTO(buf_free) struct buf pools = BUF(1u << 20);
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_TENANT };
    struct model_limit models[TENANT_MODELS_MAX];
    const struct tenant_spec *s = &t->spec;
    for (uint32_t i = 0; i < s->limit.models; i++)
        models[i] =
            (struct model_limit){ s->limit.by_model[i].models, s->limit.by_model[i].gpu_milli };
    set_period(c, t);
    list_pools(c, s, &pools);
    ev.tenant = (struct event_tenant){ .name = str_of(t->name),
                                       .parent = s->parent,
                                       .weight_milli = s->weight_milli,
                                       .guarantee_milli = s->guarantee_milli,
                                       .limit = s->limit.of,
                                       .user_limit = s->user_limit.of,
                                       .model_limit = models,
                                       .model_limits = s->limit.models,
                                       .pools = buf_str(&pools),
                                       .until_ms = s->expires_ms };
    if (s->budget_hours_milli) {
        ev.tenant.budget_gpu_milli_ms = (int64_t)s->budget_hours_milli * 3600 * 1000;
        ev.tenant.budget_from_ms = t->budget_from_ms;
        ev.tenant.budget_until_ms = MIN(t->budget_until_ms, TIME_MAX_MS);
    }
    if ((core == c->core ? turn_apply(c, &ev, e) : core_apply(core, &ev, e)) < 0)
        return -1;
    free(t->pools);
    t->pools = xstrdup(buf_str(&pools).p ? buf_str(&pools).p : "");
    return 0;
}

static int say(struct control *c, struct tenant *t, struct err *e)
{
    return say_to(c, c->core, t, e);
}

static int say_gone(struct control *c, struct core *core, struct str name, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_TENANT };
    ev.tenant = (struct event_tenant){ .name = name, .removed = true };
    return core == c->core ? turn_apply(c, &ev, e) : core_apply(core, &ev, e);
}

void tenants_learn_pools(struct control *c)
{
    struct err e;
    for (size_t i = 0; i < c->tenants.n; i++) {
        struct tenant *t = c->tenants.at[i];
        AUTO(buf_free) struct buf now = BUF(1u << 20);
        list_pools(c, &t->spec, &now);
        if (t->pools && strcmp(t->pools, now.n ? now.p : "") != 0 && say(c, t, &e) < 0)
            log_event(c->config.log, LOG_ERROR_, "tenant.refused", "tenant=%s why=%s", t->name,
                      e.msg);
    }
}

/* ---- budgets ---- */

static bool find_share(struct control *c, struct tenant *t, struct share_view *out)
{
    int64_t now_ms = control_now_ms(c);
    for (uint32_t i = 1; !t->found && core_share(c->core, (share_id){ i }, now_ms, out); i++)
        if (!out->is_user && !out->removed && strcmp(out->name, t->name) == 0) {
            t->share = (share_id){ i };
            t->found = true;
        }
    return t->found && core_share(c->core, t->share, now_ms, out);
}

/* Once for each of these and each period; after a restart perhaps again. */
static void warn(struct control *c, struct tenant *t, const struct share_view *v)
{
    static const uint32_t steps[] = { WARN_PERCENT, 100 };
    double used = 100.0 * (double)v->spent_gpu_milli_ms / (double)v->budget_gpu_milli_ms;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (used < steps[i] || t->warned >= steps[i])
            continue;
        t->warned = steps[i];
        AUTO(buf_free) struct buf body = BUF(4096);
        struct json_out w = { .b = &body };
        json_begin(&w, NULL, '{');
        json_put_str(&w, "tenant", str_of(t->name));
        json_put_u64(&w, "percent", steps[i]);
        json_put_f64(&w, "used_gpu_hours", (double)v->spent_gpu_milli_ms / 3.6e9, 3);
        json_put_f64(&w, "gpu_hours", (double)v->budget_gpu_milli_ms / 3.6e9, 3);
        json_put_i64(&w, "until_ms", MIN(t->budget_until_ms, TIME_MAX_MS));
        json_end(&w, '}');
        store_add_event(turn_open(c)->batch, control_now_ms(c), "budget", str_of(t->name), 0,
                        buf_str(&body));
        turn_open(c)->events = true;
        struct control_budget told = { .tenant = str_of(t->name),
                                       .percent = steps[i],
                                       .used_gpu_milli_ms = v->spent_gpu_milli_ms,
                                       .gpu_milli_ms = v->budget_gpu_milli_ms,
                                       .from_ms = t->budget_from_ms,
                                       .until_ms = MIN(t->budget_until_ms, TIME_MAX_MS) };
        if (c->config.ear.budget)
            c->config.ear.budget(c->config.ear.ctx, turn_open(c)->batch, &told);
        log_event(c->config.log, LOG_WARN_, "budget", "tenant=%s percent=%u", t->name, steps[i]);
    }
}

/* The core wakes for what is spent; for the warning before it we do. */
int64_t tenants_wake_ms(struct control *c)
{
    int64_t next = INT64_MAX, now_ms = control_now_ms(c);
    struct share_view v;
    for (size_t i = 0; i < c->tenants.n; i++) {
        struct tenant *t = c->tenants.at[i];
        if (!t->spec.budget_hours_milli || t->warned || !find_share(c, t, &v))
            continue;
        int64_t rate = (int64_t)v.used.of[RES_GPU];
        int64_t left = v.budget_gpu_milli_ms / 100 * WARN_PERCENT - v.spent_gpu_milli_ms;
        if (rate > 0 && v.budget_gpu_milli_ms > 0) {
            int64_t at_ms = now_ms + (left > 0 ? left / rate + 1 : 0);
            next = MIN(next, at_ms);
        }
    }
    return next;
}

void tenants_review(struct control *c)
{
    int64_t now_ms = control_now_ms(c);
    struct share_view v;
    struct err e;
    for (size_t i = 0; i < c->tenants.n; i++) {
        struct tenant *t = c->tenants.at[i];
        if (!t->spec.budget_hours_milli)
            continue;
        if (now_ms >= t->budget_until_ms) {
            t->warned = 0;
            if (say(c, t, &e) < 0)
                log_event(c->config.log, LOG_ERROR_, "tenant.refused", "tenant=%s why=%s", t->name,
                          e.msg);
        }
        if (find_share(c, t, &v) && v.budget_gpu_milli_ms > 0)
            warn(c, t, &v);
    }
}

/* ---- store ---- */

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

/* Those that the core knows from before, and that nobody has any more, take no jobs; a tenant with living jobs
 * stays until they are over. */
static void remove_others(struct control *c)
{
    struct share_view v;
    struct err e;
    for (uint32_t i = core_totals(c->core).shares; i-- > 1;) { /* children come after parents */
        struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_TENANT };
        if (!core_share(c->core, (share_id){ i }, control_now_ms(c), &v) || v.is_user ||
            v.removed || find(&c->tenants, str_of(v.name)) < c->tenants.n)
            continue;
        ev.tenant = (struct event_tenant){ .name = str_of(v.name), .removed = true };
        if (turn_apply(c, &ev, &e) < 0)
            log_event(c->config.log, LOG_WARN_, "tenant.left", "tenant=%s why=%s", v.name, e.msg);
    }
}

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
    if (say_all(c, e) < 0)
        return -1;
    remove_others(c);
    return 0;
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
    kept_try(c);
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
    if (at < t->all.n) {
        t->all.at[at] = made;
    } else {
        vec_grow(t->all.at, t->all.n, t->all.cap);
        t->all.at[t->all.n++] = made;
    }
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
    for (size_t i = 0; t->profile && i < t->profiles; i++) {
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
