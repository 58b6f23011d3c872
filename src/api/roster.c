#include "api/roster.h"

#include "base/map.h"

static struct str keep(struct arena *a, struct str s)
{
    return (struct str){ arena_strndup(a, s.p, s.n), s.n };
}

/* Where an error is, from the outside in. */
struct reading {
    struct arena *a;
    const char *field; /* NULL: not known yet */
};

static int at(struct reading *r, struct err *e, const char *where)
{
    r->field = r->field ? arena_printf(r->a, "%.100s.%.200s", where, r->field)
                        : arena_printf(r->a, "%.100s", where);
    return err_wrap(e, "%.100s", where);
}

/* ---- members and machines ---- */

static int read_user_name(struct str s, struct str *out, struct arena *a, struct err *e)
{
    if (person_check_name(s, e) < 0)
        return -1;
    *out = keep(a, s);
    return 0;
}

static int read_place(struct str role, enum role *out, struct err *e)
{
    if (role_parse(role, ROLE_IN_TENANT, out))
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is not a role in a tenant", STR_ARG(role));
    return err_hint(e, "%s", role_words(ROLE_IN_TENANT));
}

static int read_member_map(const struct json *v, struct arena *a, struct roster_tenant *t,
                           struct err *e)
{
    for (struct json_member m = { 0 }; json_next_member(v, &m);) {
        struct roster_member *x = &t->member[t->members++];
        struct str role = STR("member");
        if (read_user_name(m.key, &x->user, a, e) < 0 ||
            (!json_is_null(m.value) && json_as_str(m.value, 32, &role, e) < 0) ||
            read_place(role, &x->role, e) < 0)
            return err_wrap(e, "%.*s", (int)MIN(m.key.n, (size_t)60), m.key.p);
    }
    return 0;
}

static int read_member_list(const struct json *v, struct arena *a, struct roster_tenant *t,
                            struct err *e)
{
    struct str s;
    for (const struct json *x = json_first(v); x; x = json_next(v, x)) {
        struct roster_member *m = &t->member[t->members++];
        m->role = ROLE_MEMBER;
        if (json_as_str(x, PERSON_NAME_MAX, &s, e) < 0 || read_user_name(s, &m->user, a, e) < 0)
            return -1;
    }
    return 0;
}

static int twice(struct str name, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is there twice", (int)MIN(name.n, (size_t)60), name.p);
    return err_hint(e, "say it once");
}

/* names: those so far; adds this one. */
static int check_once(struct names *names, struct str name, struct err *e)
{
    if (names_find(names, name) != NAME_NONE)
        return twice(name, e);
    names_intern(names, name);
    return 0;
}

static int read_members(const struct json *v, struct arena *a, struct roster_tenant *t,
                        struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    size_t n = json_is_array(v) ? json_len(v) : json_members(v);
    if ((!json_is_array(v) && !json_is_object(v)) || n > ROSTER_MEMBERS_MAX) {
        err_set(e, ERR_INVALID, "a list of users, or a role for each is needed, %d at most",
                ROSTER_MEMBERS_MAX);
        return err_hint(e, "e.g. members: [ada, grace] or members: {ada: lead}");
    }
    t->says_members = true;
    t->member = arena_array(a, struct roster_member, n + 1);
    if ((json_is_array(v) ? read_member_list : read_member_map)(v, a, t, e) < 0)
        return -1;
    for (size_t i = 0; i < t->members; i++)
        if (check_once(&seen, t->member[i].user, e) < 0)
            return -1;
    return 0;
}

static int read_machines(const struct json *v, struct arena *a, struct roster_user *u,
                         struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    struct str s;
    if (!json_is_array(v) || json_len(v) > ROSTER_MACHINES_MAX) {
        err_set(e, ERR_INVALID, "a list of at most %d machines is needed", ROSTER_MACHINES_MAX);
        return err_hint(e, "e.g. machines: [pc12]");
    }
    u->says_machines = true;
    u->machine = arena_array(a, struct str, json_len(v) + 1);
    for (const struct json *x = json_first(v); x; x = json_next(v, x)) {
        if (json_as_str(x, PERSON_NAME_MAX, &s, e) < 0)
            return -1;
        if (person_check_name(s, e) < 0)
            return err_set(e, ERR_INVALID, "'%.*s' cannot be a machine's name",
                           (int)MIN(s.n, (size_t)60), s.p);
        if (check_once(&seen, s, e) < 0)
            return -1;
        u->machine[u->machines++] = keep(a, s);
    }
    return 0;
}

/* ---- one tenant, one user ---- */

static int read_tenant(struct reading *r, const struct json *v, struct roster_tenant *t,
                       struct err *e)
{
    static const char *const beside[] = { "members", NULL };
    struct tenant_spec base = tenant_default();
    t->spec = base;
    if (json_is_null(v))
        return 0;
    const struct json *members = json_find(v, "members");
    t->says_spec = json_members(v) > (members ? 1 : 0);
    if (tenant_read(&(struct tenant_text){ v, &base, beside }, r->a, &t->spec, &r->field, e) < 0)
        return -1;
    if (members && read_members(members, r->a, t, e) < 0)
        return at(r, e, "members");
    return 0;
}

static int read_site_role(const struct json *v, enum role *out, struct err *e)
{
    struct str word;
    *out = ROLE_NONE;
    if (json_as_str(v, 32, &word, e) < 0)
        return -1;
    if (str_is(word, "none") || role_parse(word, ROLE_ON_SITE, out))
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is not a role on the site", STR_ARG(word));
    return err_hint(e, "%s, or none; roles in a tenant are said there", role_words(ROLE_ON_SITE));
}

static int read_kind(const struct json *v, enum person_kind *out, struct err *e)
{
    struct str word;
    if (json_as_str(v, 32, &word, e) < 0)
        return -1;
    if (person_kind_parse(word, out))
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is not known here", STR_ARG(word));
    return err_hint(e, "local, pam, ldap, oidc, service or machine");
}

static int read_text(struct reading *r, const struct json *v, bool *says, struct str *out,
                     struct err *e)
{
    struct str s;
    if (json_as_str(v, 200, &s, e) < 0)
        return -1;
    *says = true;
    *out = keep(r->a, s);
    return 0;
}

static int read_user(struct reading *r, const struct json *v, struct roster_user *u, struct err *e)
{
    static const char *const keys[] = {
        "role", "kind", "disabled", "full_name", "mail", "machines"
    };
    if (json_is_null(v))
        return 0;
    if (json_only(v, keys, ARRAY_LEN(keys), e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct json *x = json_find(v, keys[i]);
        int rc = 0;
        if (!x || json_is_null(x))
            continue;
        switch (i) {
        case 0: rc = read_site_role(x, &u->role, e); break;
        case 1: rc = read_kind(x, &u->kind, e), u->says_kind = true; break;
        case 2: rc = json_as_bool(x, &u->disabled, e); break;
        case 3: rc = read_text(r, x, &u->says_full_name, &u->full_name, e); break;
        case 4: rc = read_text(r, x, &u->says_mail, &u->mail, e); break;
        default: rc = read_machines(x, r->a, u, e); break;
        }
        if (rc < 0)
            return at(r, e, keys[i]);
    }
    return 0;
}

/* ---- all of them ---- */

static int check_map(const struct json *v, size_t max, struct err *e)
{
    if (json_is_object(v) && json_members(v) <= max)
        return 0;
    err_set(e, ERR_INVALID, "names and what is said of each are needed, %zu at most", max);
    return err_hint(e, "e.g. tenants: {vision: {weight: 2}}");
}

static int read_tenants(struct reading *r, const struct json *v, struct roster *out, struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    if (check_map(v, ROSTER_TENANTS_MAX, e) < 0)
        return -1;
    out->says_tenants = true;
    out->tenant = arena_array(r->a, struct roster_tenant, json_members(v) + 1);
    for (struct json_member m = { 0 }; json_next_member(v, &m);) {
        struct roster_tenant *t = &out->tenant[out->tenants++];
        t->name = keep(r->a, m.key);
        if (m.key.n == 0 || m.key.n > NAME_MAX_BYTES || strlen(m.key.p) != m.key.n)
            return err_set(e, ERR_INVALID, "a tenant's name has 1 to %d bytes", NAME_MAX_BYTES);
        if (check_once(&seen, t->name, e) < 0 || read_tenant(r, m.value, t, e) < 0)
            return at(r, e, t->name.p);
    }
    return 0;
}

static int read_users(struct reading *r, const struct json *v, struct roster *out, struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    if (check_map(v, ROSTER_USERS_MAX, e) < 0)
        return -1;
    out->says_users = true;
    out->user = arena_array(r->a, struct roster_user, json_members(v) + 1);
    for (struct json_member m = { 0 }; json_next_member(v, &m);) {
        struct roster_user *u = &out->user[out->users++];
        if (read_user_name(m.key, &u->name, r->a, e) < 0)
            return -1;
        if (check_once(&seen, u->name, e) < 0 || read_user(r, m.value, u, e) < 0)
            return at(r, e, u->name.p);
    }
    return 0;
}

static int read_all(struct reading *r, const struct json *o, struct roster *out, struct err *e)
{
    static const char *const keys[] = { "tenants", "users", "prune", "dry_run" };
    const struct json *tenants, *users;
    if (json_only(o, keys, ARRAY_LEN(keys), e) < 0) {
        struct str odd = json_odd_key(o, keys, ARRAY_LEN(keys));
        if (odd.p)
            r->field = arena_printf(r->a, "%.*s", (int)MIN(odd.n, (size_t)60), odd.p);
        return -1;
    }
    tenants = json_find(o, "tenants");
    users = json_find(o, "users");
    r->field = "prune";
    if (json_get_bool(o, "prune", &out->prune, e) < 0)
        return -1;
    r->field = "dry_run";
    if (json_get_bool(o, "dry_run", &out->dry_run, e) < 0)
        return -1;
    r->field = NULL;
    if (tenants && !json_is_null(tenants) && read_tenants(r, tenants, out, e) < 0)
        return at(r, e, "tenants");
    if (users && !json_is_null(users) && read_users(r, users, out, e) < 0)
        return at(r, e, "users");
    return 0;
}

int roster_read(const struct json *object, struct arena *a, struct roster *out,
                const char **out_field, struct err *e)
{
    struct reading r = { .a = a };
    struct roster all = { 0 };
    int rc = read_all(&r, object, &all, e);
    *out_field = rc < 0 ? r.field : NULL;
    if (rc == 0)
        *out = all;
    else if (!e->hint[0])
        err_hint(e, "nightshift apply --export prints a document as it should be");
    return rc;
}

/* ---- writing ---- */

void roster_put_tenant(struct json_out *w, const struct roster_tenant *t)
{
    tenant_write(&t->spec, w);
    if (!t->members)
        return;
    json_begin(w, "members", '{');
    for (size_t i = 0; i < t->members; i++)
        json_put_str(w, t->member[i].user.p, str_of(role_name(t->member[i].role)));
    json_end(w, '}');
}

void roster_put_user(struct json_out *w, const struct roster_user *u)
{
    if (u->role != ROLE_NONE)
        json_put_str(w, "role", str_of(role_name(u->role)));
    if (u->kind != PERSON_MACHINE)
        json_put_str(w, "kind", str_of(person_kind_name(u->kind)));
    if (u->full_name.n)
        json_put_str(w, "full_name", u->full_name);
    if (u->mail.n)
        json_put_str(w, "mail", u->mail);
    if (u->disabled)
        json_put_bool(w, "disabled", true);
    if (!u->machines)
        return;
    json_begin(w, "machines", '[');
    for (size_t i = 0; i < u->machines; i++)
        json_put_str(w, NULL, u->machine[i]);
    json_end(w, ']');
}
