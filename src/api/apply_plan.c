#include <stdlib.h>

#include "api/apply.h"

void applying_free(struct applying *p)
{
    for (size_t i = 0; i < p->n; i++) {
        json_free(p->change[i].was);
        json_free(p->change[i].is);
    }
    free(p->change);
    free(p->place);
    names_free(&p->named);
}

static struct people *people_of(const struct applying *p)
{
    return auth_people(p->c->api->config.auth);
}

static struct str own(struct arena *a, struct str s)
{
    return (struct str){ arena_strndup(a, s.p ? s.p : "", s.n), s.n };
}

/* ---- what there is ---- */

static int str_order(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = str_order(x->tenant, y->tenant);
    return order ? order : str_order(x->user, y->user);
}

void applying_look(struct applying *p)
{
    struct place at;
    size_t cap = 0;
    for (size_t i = 0; people_place_at(people_of(p), i, &at); i++) {
        if (at.of_settings)
            continue;
        vec_grow(p->place, p->places, cap);
        p->place[p->places++] = at;
    }
    if (p->places)
        qsort(p->place, p->places, sizeof *p->place, place_order);
}

static size_t first_place(const struct applying *p, struct str tenant)
{
    size_t low = 0, high = p->places;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (str_order(p->place[mid].tenant, tenant) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct roster_tenant *tenant_now(const struct applying *p, const struct control_tenant *t)
{
    struct roster_tenant *x = arena_new(p->a, struct roster_tenant);
    size_t first = first_place(p, str_of(t->name)), n = first;
    x->name = own(p->a, str_of(t->name));
    x->spec = *t->spec;
    while (n < p->places && str_eq(p->place[n].tenant, x->name))
        n++;
    x->member = arena_array(p->a, struct roster_member, n - first + 1);
    for (size_t i = first; i < n; i++)
        x->member[x->members++] =
            (struct roster_member){ own(p->a, p->place[i].user), p->place[i].role };
    return x;
}

const struct roster_user *user_now(const struct applying *p, const struct person *x)
{
    struct roster_user *u = arena_new(p->a, struct roster_user);
    struct str node, owner;
    size_t n = 0;
    *u = (struct roster_user){ .name = own(p->a, str_of(x->name)),
                               .role = x->role,
                               .disabled = x->disabled,
                               .kind = x->kind,
                               .full_name = own(p->a, str_of(x->full_name)),
                               .mail = own(p->a, str_of(x->mail)) };
    for (size_t i = 0; people_owner_at(people_of(p), i, &node, &owner); i++)
        n += str_is(owner, x->name);
    u->machine = arena_array(p->a, struct str, n + 1);
    for (size_t i = 0; people_owner_at(people_of(p), i, &node, &owner); i++)
        if (str_is(owner, x->name))
            u->machine[u->machines++] = own(p->a, node);
    return u;
}

bool is_said(const struct applying *p, const struct person *x)
{
    if (!x->name) /* one that was dropped */
        return false;
    bool ours = x->kind == PERSON_LOCAL || x->kind == PERSON_SERVICE || x->kind == PERSON_MACHINE;
    return (x->kept && (ours || x->role != ROLE_NONE || x->disabled)) ||
           people_owns_some(people_of(p), str_of(x->name));
}

/* ---- what there shall be ---- */

static const struct roster_tenant *tenant_then(const struct applying *p,
                                               const struct roster_tenant *now,
                                               const struct roster_tenant *doc, bool of_settings)
{
    struct roster_tenant *t = arena_new(p->a, struct roster_tenant);
    AUTO(names_free) struct names listed = { 0 };
    size_t were = now ? now->members : 0;
    *t = *doc;
    if (now && of_settings && !doc->says_spec)
        t->spec = now->spec;
    t->member = arena_array(p->a, struct roster_member, doc->members + were + 1);
    t->members = 0;
    for (size_t i = 0; i < doc->members; i++) {
        t->member[t->members++] = doc->member[i];
        names_intern(&listed, doc->member[i].user);
    }
    for (size_t i = 0; i < were && !(p->want.prune && doc->says_members); i++)
        if (names_find(&listed, now->member[i].user) == NAME_NONE)
            t->member[t->members++] = now->member[i];
    return t;
}

static const struct roster_user *user_then(const struct applying *p, const struct roster_user *now,
                                           const struct roster_user *doc)
{
    static const struct roster_user nobody = { 0 };
    struct roster_user *u = arena_new(p->a, struct roster_user);
    AUTO(names_free) struct names listed = { 0 };
    const struct roster_user *was = now ? now : &nobody;
    *u = *doc;
    u->kind = doc->says_kind ? doc->kind : was->kind;
    u->full_name = doc->says_full_name ? doc->full_name : was->full_name;
    u->mail = doc->says_mail ? doc->mail : was->mail;
    u->machine = arena_array(p->a, struct str, doc->machines + was->machines + 1);
    u->machines = 0;
    for (size_t i = 0; i < doc->machines; i++) {
        u->machine[u->machines++] = doc->machine[i];
        names_intern(&listed, doc->machine[i]);
    }
    for (size_t i = 0; i < was->machines && !(p->want.prune && doc->says_machines); i++)
        if (names_find(&listed, was->machine[i]) == NAME_NONE)
            u->machine[u->machines++] = was->machine[i];
    return u;
}

/* ---- differences ---- */

static bool json_same(const struct json *a, const struct json *b);

static bool is_in(const struct json *list, const struct json *v)
{
    for (const struct json *x = json_first(list); x; x = json_next(list, x))
        if (json_same(x, v))
            return true;
    return false;
}

/* The order of members and of items says nothing here. */
static bool json_same(const struct json *a, const struct json *b)
{
    AUTO(buf_free) struct buf x = BUF(1u << 16), y = BUF(1u << 16);
    if (!a || !b || json_kind(a) != json_kind(b))
        return a == b;
    if (json_is_object(a)) {
        bool same = json_members(a) == json_members(b);
        for (struct json_member m = { 0 }; same && json_next_member(a, &m);)
            same = json_same(m.value, json_find(b, m.key.p));
        return same;
    }
    if (json_is_array(a)) {
        bool same = json_len(a) == json_len(b);
        for (const struct json *v = json_first(a); same && v; v = json_next(a, v))
            same = is_in(b, v);
        return same;
    }
    json_put(&(struct json_out){ .b = &x }, NULL, a);
    json_put(&(struct json_out){ .b = &y }, NULL, b);
    return str_eq(buf_str(&x), buf_str(&y));
}

static void put_value(struct json_out *w, const char *key, const struct json *v)
{
    if (v)
        json_put(w, key, v);
    else
        json_put_null(w, key);
}

static void put_field(struct json_out *w, const char *name, const struct json *was,
                      const struct json *is)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "field", str_of(name));
    put_value(w, "before", was);
    put_value(w, "after", is);
    json_end(w, '}');
}

/* Members of a tenant one by one. */
static void put_below(struct json_out *w, struct arena *a, const char *prefix,
                      const struct json *was, const struct json *is)
{
    for (int side = 0; side < 2; side++)
        for (struct json_member m = { 0 }; json_next_member(side ? is : was, &m);) {
            const struct json *x = json_find(was, m.key.p), *y = json_find(is, m.key.p);
            if ((side && x) || json_same(x, y))
                continue;
            if (!prefix[0] && str_is(m.key, "members"))
                put_below(w, a, "members.", x, y);
            else
                put_field(w, arena_printf(a, "%s%s", prefix, m.key.p), x, y);
        }
}

void put_differences(struct json_out *w, const struct applying *p, const struct change *ch)
{
    put_below(w, p->a, "", json_root(ch->was), json_root(ch->is));
}

static bool spec_differs(const struct json *was, const struct json *is)
{
    for (int side = 0; side < 2; side++)
        for (struct json_member m = { 0 }; json_next_member(side ? is : was, &m);)
            if (!str_is(m.key, "members") &&
                !json_same(json_find(was, m.key.p), json_find(is, m.key.p)))
                return true;
    return false;
}

static struct json_doc *object_of(const struct roster_tenant *t, const struct roster_user *u)
{
    AUTO(buf_free) struct buf b = BUF(8u << 20);
    struct json_out w = { .b = &b };
    struct err e;
    json_begin(&w, NULL, '{');
    if (t)
        roster_put_tenant(&w, t);
    if (u)
        roster_put_user(&w, u);
    json_end(&w, '}');
    return json_read(buf_str(&b), &e);
}

static int add_change(struct applying *p, struct change ch, struct err *e)
{
    ch.was = object_of(ch.tenant_was, ch.user_was);
    ch.is = object_of(ch.tenant, ch.user);
    bool readable = ch.was && ch.is;
    if (readable && ch.of_tenant)
        ch.spec_differs = spec_differs(json_root(ch.was), json_root(ch.is));
    if (!readable || (ch.what == WHAT_CHANGE && json_same(json_root(ch.was), json_root(ch.is)))) {
        json_free(ch.was);
        json_free(ch.is);
        return readable ? 0 : err_set(e, ERR_TOO_LARGE, "'%.*s' is too large", STR_ARG(ch.name));
    }
    vec_grow(p->change, p->n, p->cap);
    p->change[p->n++] = ch;
    return 0;
}

/* ---- the plan ---- */

static int of_settings(struct applying *p, const struct roster_tenant *t, struct err *e)
{
    p->c->field = arena_printf(p->a, "tenants.%s", t->name.p);
    err_set(e, ERR_CONFLICT,
            "tenants: '%.*s' is the settings file's, and differs from what the document says",
            STR_ARG(t->name));
    return err_hint(e, "change it there, or leave all but its members out of the document");
}

static int plan_tenant(struct applying *p, const struct roster_tenant *doc, struct err *e)
{
    struct control_tenant was;
    bool known = control_tenant_find(p->c->api->config.control, doc->name, &was);
    const struct roster_tenant *now = known ? tenant_now(p, &was) : NULL;
    const struct roster_tenant *then = tenant_then(p, now, doc, known && was.of_settings);
    size_t n = p->n;
    if (add_change(p,
                   (struct change){ .of_tenant = true,
                                    .what = known ? WHAT_CHANGE : WHAT_CREATE,
                                    .name = doc->name,
                                    .tenant = then,
                                    .tenant_was = now },
                   e) < 0)
        return -1;
    if (p->n > n && known && was.of_settings && p->change[n].spec_differs)
        return of_settings(p, doc, e);
    return 0;
}

/* Parents before children; those in a circle come last, and are refused. */
static int plan_tenants(struct applying *p, struct err *e)
{
    const struct roster *r = &p->want;
    AUTO(names_free) struct names listed = { 0 };
    bool *planned = arena_array(p->a, bool, r->tenants + 1);
    for (size_t i = 0; i < r->tenants; i++)
        names_intern(&listed, r->tenant[i].name);
    for (size_t done = 0, before = SIZE_MAX; done < r->tenants;) {
        bool last = done == before;
        before = done;
        for (size_t i = 0; i < r->tenants; i++) {
            struct str up = r->tenant[i].spec.parent;
            uint32_t parent = up.n ? names_find(&listed, up) : NAME_NONE;
            if (planned[i] || (parent != NAME_NONE && !planned[parent] && !last))
                continue;
            if (plan_tenant(p, &r->tenant[i], e) < 0)
                return -1;
            planned[i] = true;
            done++;
        }
    }
    return 0;
}

/* Somebody must be left who can give roles, beside root on the machine itself. */
static int check_self(struct applying *p, const struct roster_user *then, const struct person *x,
                      struct err *e)
{
    bool was_by_this = x && x->role == ROLE_ADMIN && x->file_role != ROLE_ADMIN;
    if (p->c->who.root || !str_is(then->name, p->c->who.user) ||
        (!then->disabled && (!was_by_this || then->role == ROLE_ADMIN)))
        return 0;
    p->c->field = arena_printf(p->a, "users.%s", then->name.p);
    err_set(e, ERR_CONFLICT, "users: '%.*s' are you: you would shut yourself out",
            STR_ARG(then->name));
    return err_hint(e, "another administrator can do this");
}

/* Those that they have, and are not said again, stay theirs. */
static int check_machines(struct applying *p, const struct roster_user *then, struct err *e)
{
    if (then->machines <= ROSTER_MACHINES_MAX)
        return 0;
    p->c->field = arena_printf(p->a, "users.%s.machines", then->name.p);
    err_set(e, ERR_CONFLICT, "users: '%.*s' would have %zu machines; at most %d are possible",
            STR_ARG(then->name), then->machines, ROSTER_MACHINES_MAX);
    return err_hint(e, "with prune: true those that are not listed are taken away");
}

static int plan_users(struct applying *p, struct err *e)
{
    for (size_t i = 0; i < p->want.users; i++) {
        const struct roster_user *doc = &p->want.user[i];
        const struct person *x = people_find(people_of(p), doc->name);
        const struct roster_user *now = x && x->name ? user_now(p, x) : NULL;
        const struct roster_user *then = user_then(p, now, doc);
        if (check_self(p, then, x, e) < 0 || check_machines(p, then, e) < 0 ||
            add_change(p,
                       (struct change){ .what = x && (x->kept || is_said(p, x)) ? WHAT_CHANGE
                                                                                : WHAT_CREATE,
                                        .name = doc->name,
                                        .user = then,
                                        .user_was = now },
                       e) < 0)
            return -1;
    }
    return 0;
}

static int prune_users(struct applying *p, struct err *e)
{
    const struct person *x;
    for (size_t i = 0; (x = people_at(people_of(p), i)); i++) {
        if (!x->name || !is_said(p, x) || x->file_role != ROLE_NONE ||
            str_is(str_of(p->c->who.user), x->name) ||
            names_find(&p->named, str_of(x->name)) != NAME_NONE)
            continue;
        const struct roster_user *now = user_now(p, x);
        if (add_change(p,
                       (struct change){ .what = WHAT_REMOVE, .name = now->name, .user_was = now },
                       e) < 0)
            return -1;
    }
    return 0;
}

/* Children before parents. */
static int prune_tenants(struct applying *p, struct err *e)
{
    struct control *control = p->c->api->config.control;
    AUTO(names_free) struct names listed = { 0 };
    struct control_tenant t;
    size_t n = 0;
    for (size_t i = 0; i < p->want.tenants; i++)
        names_intern(&listed, p->want.tenant[i].name);
    while (control_tenant_at(control, n, &t))
        n++;
    struct str *gone = arena_array(p->a, struct str, n + 1),
               *parent = arena_array(p->a, struct str, n + 1);
    size_t gones = 0;
    for (size_t i = 0; control_tenant_at(control, i, &t); i++)
        if (!t.of_settings && names_find(&listed, str_of(t.name)) == NAME_NONE) {
            gone[gones] = own(p->a, str_of(t.name));
            parent[gones++] = own(p->a, t.spec->parent);
        }
    while (gones) {
        size_t i = 0, k = 0;
        for (; i < gones; i++) { /* one that no other here is below of */
            for (k = 0; k < gones && !str_eq(parent[k], gone[i]); k++)
                ;
            if (k == gones)
                break;
        }
        i = i == gones ? 0 : i;
        if (!control_tenant_find(control, gone[i], &t) ||
            add_change(p,
                       (struct change){ .of_tenant = true,
                                        .what = WHAT_REMOVE,
                                        .name = gone[i],
                                        .tenant_was = tenant_now(p, &t) },
                       e) < 0)
            return -1;
        gone[i] = gone[gones - 1];
        parent[i] = parent[--gones];
    }
    return 0;
}

static void gather_names(struct applying *p)
{
    for (size_t i = 0; i < p->want.users; i++)
        names_intern(&p->named, p->want.user[i].name);
    for (size_t i = 0; i < p->want.tenants; i++)
        for (size_t k = 0; k < p->want.tenant[i].members; k++)
            names_intern(&p->named, p->want.tenant[i].member[k].user);
}

int applying_plan(struct applying *p, struct err *e)
{
    gather_names(p);
    if (plan_tenants(p, e) < 0 || plan_users(p, e) < 0)
        return -1;
    if (p->want.prune && p->want.says_users && prune_users(p, e) < 0)
        return -1;
    return p->want.prune && p->want.says_tenants ? prune_tenants(p, e) : 0;
}
