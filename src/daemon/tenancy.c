#include "daemon/tenancy.h"

#include "auth/people.h"
#include "base/map.h"

#define LOOK_MS 1000  /* after a change that is told */
#define AGAIN_MS 5000 /* who is in a tenant changes without a word to us */

struct tenancy {
    struct loop *loop;
    struct log *log;
    struct control *control;
    struct auth *auth;
    struct loop_watch *timer;
    int watch;
    bool waits;
    struct names told; /* tenants that the engine was told of */
    struct map digest; /* by number in `told`: of what it was told */
};

static bool member_role(enum role r, enum engine_member_role *out)
{
    if (r == ROLE_VIEWER)
        *out = MEMBER_VIEWER;
    else if (r == ROLE_MEMBER)
        *out = MEMBER_MEMBER;
    else if (r == ROLE_LEAD)
        *out = MEMBER_LEAD;
    else
        return false;
    return true;
}

static struct engine_member *members_of(struct tenancy *t, struct str tenant, struct arena *a,
                                        size_t *out_n)
{
    const struct people *p = auth_people(t->auth);
    const struct person *x;
    size_t all = 0;
    *out_n = 0;
    while (people_at(p, all))
        all++;
    struct engine_member *m = arena_array(a, struct engine_member, all + 1);
    for (size_t i = 0; (x = people_at(p, i)); i++) {
        struct engine_member *at = &m[*out_n];
        if (x->disabled || x->gone ||
            !member_role(people_role_in(p, str_of(x->name), tenant), &at->role))
            continue;
        at->name = str_of(x->name);
        (*out_n)++;
    }
    return m;
}

/* The least of its own and of those above. */
static struct amounts limit_of(struct tenancy *t, uint32_t share)
{
    struct amounts least = AMOUNTS_NO_LIMIT;
    struct core *core = control_core(t->control);
    struct share_view v;
    int64_t now_ms = control_now_ms(t->control);
    for (share_id s = { share }; s.v != NONE && core_share(core, s, now_ms, &v); s = v.parent)
        for (int i = 0; i < RES_COUNT; i++)
            least.of[i] = MIN(least.of[i], v.limit.of[i]);
    return least;
}

static uint64_t digest_of(const struct engine_tenant *e)
{
    AUTO(buf_free) struct buf b = BUF(16u << 20);
    buf_add(&b, (struct str){ (const char *)&e->limit, sizeof e->limit });
    buf_addc(&b, e->removed ? '-' : '+');
    for (size_t i = 0; i < e->members; i++)
        buf_printf(&b, "%.*s %d\n", STR_ARG(e->member[i].name), (int)e->member[i].role);
    return str_hash(buf_str(&b));
}

static void say(struct tenancy *t, const struct engine_tenant *e)
{
    const struct engine *en = control_engine(t->control);
    uint32_t number = names_intern(&t->told, e->name);
    uint64_t was, now = digest_of(e);
    struct err err;
    if (map_get(&t->digest, number, &was) && was == now)
        return;
    if (en->ops->tenant(en->self, e, &err) < 0) {
        log_event(t->log, LOG_WARN_, "tenant.refused", "tenant=%.*s why=%s", STR_ARG(e->name),
                  err.msg);
        return;
    }
    map_set(&t->digest, number, now);
}

static void look(void *ctx)
{
    struct tenancy *t = ctx;
    struct core *core = control_core(t->control);
    struct control_tenant there;
    struct share_view v;
    t->waits = false;
    loop_timer_set(t->timer, AGAIN_MS, 0);
    for (uint32_t i = 0; core_share(core, (share_id){ i }, control_now_ms(t->control), &v); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        if (v.is_user || v.removed || v.parent.v == NONE ||
            !control_tenant_find(t->control, str_of(v.name), &there))
            continue;
        struct engine_tenant e = { .name = str_of(v.name), .limit = limit_of(t, i) };
        e.member = members_of(t, e.name, &a, &e.members);
        say(t, &e);
    }
    for (uint32_t i = 0; i < t->told.n; i++) {
        struct engine_tenant e = { .name = str_of(names_get(&t->told, i)),
                                   .limit = AMOUNTS_NO_LIMIT,
                                   .removed = true };
        if (!control_tenant_find(t->control, e.name, &there))
            say(t, &e);
    }
}

static void on_change(void *ctx)
{
    struct tenancy *t = ctx;
    if (!t->waits)
        loop_timer_set(t->timer, LOOK_MS, 0);
    t->waits = true;
}

struct tenancy *tenancy_new(struct loop *l, struct log *log, struct control *c, struct auth *auth)
{
    if (!control_engine(c)->ops->tenant)
        return NULL;
    struct tenancy *t = xcalloc(1, sizeof *t);
    *t = (struct tenancy){ .loop = l, .log = log, .control = c, .auth = auth };
    t->timer = loop_timer(l, look, t);
    t->watch = control_watch(c, on_change, t);
    look(t);
    return t;
}

struct tenancy *tenancy_free(struct tenancy *t)
{
    if (!t)
        return NULL;
    control_unwatch(t->control, t->watch);
    loop_unwatch(t->timer);
    names_free(&t->told);
    map_free(&t->digest);
    free(t);
    return NULL;
}
