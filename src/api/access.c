/* Who may do what: the one place that answers it, from the route's access, the caller's roles and whose thing
 * it is.  See auth/role.h for the table. */
#include "api/lent.h"
#include "api/state.h"
#include "sys/weak.h"

static struct people *people_of(const struct call *c)
{
    return auth_people(c->api->config.auth);
}

enum role site_role(const struct call *c)
{
    if (c->who.tenants_only)
        return ROLE_NONE;
    return c->who.root ? ROLE_ADMIN : people_site_role(people_of(c), str_of(c->who.user));
}

/* A token may be good for some tenants only. */
static bool token_knows(const struct call *c, struct str tenant)
{
    for (size_t i = 0; i < c->who.tenants; i++)
        if (str_is(tenant, c->who.tenant[i]))
            return true;
    return c->who.tenants == 0;
}

static bool is_own(const struct call *c, const struct subject *s)
{
    return s->user.n && str_is(s->user, c->who.user);
}

static bool reaches(const struct call *c, enum reach r, const struct subject *s)
{
    switch (r) {
    case REACH_ALL:
    case REACH_TENANT: return true;
    case REACH_OWN: return is_own(c, s) || (!s->user.n && !s->tenant.n && !s->node.n);
    case REACH_MACHINE:
        return s->node.n &&
               (c->who.machine[0] ? str_is(s->node, c->who.machine)
                                  : people_owns(people_of(c), str_of(c->who.user), s->node));
    case REACH_NO:
    case REACH_COUNT: break;
    }
    return false;
}

/* Roles in tenants: in that of the subject, or in any for what is about none. */
static bool reaches_by_place(const struct call *c, enum access a, const struct subject *s)
{
    size_t n;
    if (s->tenant.n)
        return reaches(
            c, access_reach(a, people_role_in(people_of(c), str_of(c->who.user), s->tenant)), s);
    if (s->user.n || s->node.n)
        return false;
    const struct place *at =
        people_places(people_of(c), str_of(c->who.user), http_arena(c->rq), &n);
    for (size_t i = 0; i < n; i++)
        if (token_knows(c, at[i].tenant) && access_reach(a, at[i].role) != REACH_NO)
            return true;
    return false;
}

bool may(const struct call *c, enum access a, const struct subject *s)
{
    unsigned needs = access_scope(a);
    if (a == ACCESS_NOBODY || (c->who.scopes & needs) != needs ||
        (s->tenant.n && !token_knows(c, s->tenant)))
        return false;
    bool narrow = c->who.tenants > 0; /* such a token has nothing of its owner's site roles */
    return reaches(c, access_reach(a, ROLE_NONE), s) ||
           reaches(c, access_reach(a, narrow ? ROLE_NONE : site_role(c)), s) ||
           (!narrow && access_reach(a, ROLE_OWNER) == REACH_MACHINE &&
            (s->node.n ? reaches(c, REACH_MACHINE, s)
                       : people_owns_some(people_of(c), str_of(c->who.user)))) ||
           reaches_by_place(c, a, s);
}

bool may_on_site(const struct call *c, enum access a)
{
    return c->who.tenants == 0 && access_reach(a, site_role(c)) == REACH_ALL;
}

/* "operator or admin" */
static void put_roles(enum access a, struct buf *out)
{
    const char *last = NULL;
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (access_reach(a, (enum role)r) == REACH_NO)
            continue;
        if (last)
            buf_printf(out, "%s'%s'", out->n ? ", " : "", last);
        last = role_name((enum role)r);
    }
    buf_printf(out, "%s'%s'", out->n ? " or " : "", last ? last : "nobody");
}

static int lacks_scope(const struct call *c, enum access a, struct err *e)
{
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (access_scope(a) & ~c->who.scopes & (1u << i)) {
            err_set(e, ERR_DENIED, "the token '%s' has not the scope '%s', which this needs",
                    c->who.key, token_scope_name((enum token_scope)i));
            return err_hint(e, "make one that has: nightshift tokens create NAME --scopes %s",
                            token_scope_name((enum token_scope)i));
        }
    return 0;
}

int need(struct call *c, enum access a, const struct subject *s, struct err *e)
{
    if (may(c, a, s) || (a != ACCESS_NOBODY && weak_here("role")) ||
        (a == ACCESS_SEE && weak_here("tenant_scope")))
        return 0;
    if (lacks_scope(c, a, e) < 0)
        return -1;
    if (c->who.tenants && (!s->tenant.n || !token_knows(c, s->tenant))) {
        err_set(e, ERR_DENIED, "the token '%s' is for %s%s only", c->who.key, c->who.tenant[0],
                c->who.tenants > 1 ? " and some other tenants" : "");
        return err_hint(e, "use a token without --tenants for this");
    }
    AUTO(buf_free) struct buf roles = BUF(200);
    put_roles(a, &roles);
    if (s->tenant.n)
        err_set(e, ERR_DENIED, "this needs the role %s; '%s' is '%s' in '%.*s'", buf_str(&roles).p,
                c->who.user,
                role_name(people_role_in(people_of(c), str_of(c->who.user), s->tenant)),
                STR_ARG(s->tenant));
    else
        err_set(e, ERR_DENIED, "this needs the role %s, which '%s' has not", buf_str(&roles).p,
                c->who.user);
    return err_hint(e, "who may do what: nightshift docs permissions; who gives roles: an "
                       "administrator, or the tenant's lead");
}

void set_scope(struct call *c)
{
    size_t n;
    const struct place *at =
        people_places(people_of(c), str_of(c->who.user), http_arena(c->rq), &n);
    struct str *tenant = arena_array(http_arena(c->rq), struct str, n + 1);
    bool all = c->who.tenants == 0 && access_reach(ACCESS_SEE, site_role(c)) >= REACH_TENANT;
    c->scope =
        (struct store_scope){ .everything = all || weak_here("tenant_scope"), .tenant = tenant };
    for (size_t i = 0; i < n; i++)
        if (access_reach(ACCESS_SEE, at[i].role) >= REACH_TENANT && token_knows(c, at[i].tenant))
            tenant[c->scope.n++] = at[i].tenant;
}

bool sees_tenant(const struct call *c, struct str tenant)
{
    return store_scope_sees(&c->scope, tenant);
}

/* ---- whose thing a call is about ---- */

static int find_job_of(struct call *c, struct err *e)
{
    uint64_t id;
    if (read_id(c, &id, e) < 0)
        return -1;
    return store_job_brief(c->api->config.store, &c->scope, id, http_arena(c->rq), &c->job, e);
}

static int find_tenant_of(struct call *c, struct subject *out, struct err *e)
{
    if (!people_has_tenant(people_of(c), c->param[0]) || !sees_tenant(c, c->param[0])) {
        if (c->route->makes && site_role(c) == ROLE_ADMIN)
            return 0;
        err_set(e, ERR_NOT_FOUND, "there is no tenant '%.*s'", (int)MIN(c->param[0].n, (size_t)60),
                c->param[0].p);
        return err_hint(e, "see those there are: nightshift tenants");
    }
    out->tenant = c->param[0];
    return 0;
}

/* Whose it is; that of a tenant which the caller does not see is not there. */
static int find_reservation_of(struct call *c, struct subject *out, struct err *e)
{
    struct control *control = c->api->config.control;
    struct reservation_view r;
    struct share_view tenant = { .name = "" };
    uint32_t i;
    if (control_reservation_find(control, c->param[0], &i, &r))
        core_share(control_core(control), r.tenant, control_now_ms(control), &tenant);
    if (!tenant.name[0] || !sees_tenant(c, str_of(tenant.name)))
        return no_reservation(c->param[0], e);
    out->tenant = str_of(tenant.name);
    return 0;
}

int need_job(struct call *c, enum access a, struct err *e)
{
    const struct subject s = { .tenant = c->job.fixed.tenant, .user = c->job.fixed.user };
    if (may(c, a, &s) || access_reach(a, ROLE_MEMBER) != REACH_OWN || is_own(c, &s) ||
        lacks_scope(c, a, e) < 0)
        return need(c, a, &s, e);
    if (weak_here("owner"))
        return 0;
    err_set(e, ERR_DENIED, "job %llu belongs to '%.*s'", (unsigned long long)c->job.fixed.id,
            STR_ARG(s.user));
    return err_hint(e, "its owner can do this, and who may is in: nightshift docs permissions");
}

int authorize(struct call *c, struct err *e)
{
    struct subject s = { 0 };
    switch (c->route->about) {
    case ABOUT_JOB: return find_job_of(c, e) < 0 ? -1 : need_job(c, c->route->access, e);
    case ABOUT_TENANT:
        if (find_tenant_of(c, &s, e) < 0)
            return -1;
        break;
    case ABOUT_NODE: s.node = c->param[0]; break;
    case ABOUT_USER: s.user = c->param[0]; break;
    case ABOUT_RESERVATION:
        if (find_reservation_of(c, &s, e) < 0)
            return -1;
        break;
    case ABOUT_NOTHING: break;
    }
    return need(c, c->route->access, &s, e);
}
