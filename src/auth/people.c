#include "auth/people.h"

#include "base/map.h"
#include "base/parse.h"
#include "sys/weak.h"

struct group_place {
    char *group;
    enum role role;
};

struct groups {
    struct group_place *at;
    size_t n;
};

struct tenant {
    char *name, *parent; /* parent "": a top one */
    struct groups groups;
    bool alive;
};

struct kept_place {
    uint32_t tenant, person; /* numbers */
    enum role role;
    bool of_settings, by_lead;
};

struct owner {
    char *node, *user;
};

struct people {
    struct names person_names, tenant_names;
    struct person **person; /* by number; NULL: dropped */
    size_t persons, person_cap;
    struct tenant *tenant; /* by number */
    size_t tenants, tenant_cap;
    struct kept_place *place; /* in the order of place_compare: a person's stand together */
    size_t places, place_cap;
    struct owner *owner;
    size_t owners, owner_cap;
    struct groups site_groups;
    char *default_tenant;
};

static const char *const kind_names[] = {
#define X(id, name, help) name,
    PERSON_KINDS(X)
#undef X
};

const char *person_kind_name(enum person_kind k)
{
    return (size_t)k < ARRAY_LEN(kind_names) ? kind_names[k] : "?";
}

bool person_kind_parse(struct str name, enum person_kind *out)
{
    for (size_t i = 0; i < ARRAY_LEN(kind_names); i++)
        if (str_is(name, kind_names[i])) {
            *out = (enum person_kind)i;
            return true;
        }
    return false;
}

static char *copy(struct str s)
{
    char *p = xcalloc(s.n + 1, 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

/* ---- making and freeing ---- */

struct people *people_new(void)
{
    struct people *p = xcalloc(1, sizeof *p);
    p->default_tenant = copy(STR(""));
    return p;
}

static void groups_clear(struct groups *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->at[i].group);
    free(g->at);
    *g = (struct groups){ 0 };
}

static void groups_set(struct groups *out, const struct group_role *g, size_t n)
{
    groups_clear(out);
    out->at = xcalloc(n + 1, sizeof *out->at);
    for (size_t i = 0; i < n; i++)
        out->at[out->n++] = (struct group_place){ copy(g[i].group), g[i].role };
}

static void person_free(struct person *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->groups; i++)
        free(x->group[i]);
    free(x->group);
    free(x->name);
    free(x->full_name);
    free(x->mail);
    free(x->subject);
    free(x->hash);
    free(x->notice);
    free(x->tenant);
    free(x);
}

struct people *people_free(struct people *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < p->persons; i++)
        person_free(p->person[i]);
    for (size_t i = 0; i < p->tenants; i++) {
        groups_clear(&p->tenant[i].groups);
        free(p->tenant[i].name);
        free(p->tenant[i].parent);
    }
    for (size_t i = 0; i < p->owners; i++) {
        free(p->owner[i].node);
        free(p->owner[i].user);
    }
    groups_clear(&p->site_groups);
    names_free(&p->person_names);
    names_free(&p->tenant_names);
    free(p->person);
    free(p->tenant);
    free(p->place);
    free(p->owner);
    free(p->default_tenant);
    free(p);
    return NULL;
}

void people_free_p(struct people **p)
{
    *p = people_free(*p);
}

int person_check_name(struct str s, struct err *e)
{
    bool ok = s.n > 0 && s.n <= PERSON_NAME_MAX && s.p[0] != '.' && s.p[0] != '-';
    for (size_t i = 0; ok && i < s.n; i++) {
        char x = s.p[i];
        ok = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') ||
             (x && strchr("-_.@+", x));
    }
    if (ok)
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' cannot be a user's name", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "letters, digits and _ @ + - . (the last two not first), at most %d",
                    PERSON_NAME_MAX);
}

/* ---- people ---- */

static uint32_t number_of(const struct people *p, struct str name)
{
    uint32_t i = names_find(&p->person_names, name);
    return i != NAME_NONE && p->person[i] ? i : NAME_NONE;
}

const struct person *people_find(const struct people *p, struct str name)
{
    uint32_t i = number_of(p, name);
    return i == NAME_NONE ? NULL : p->person[i];
}

const struct person *people_at(const struct people *p, size_t i)
{
    static const struct person nobody = { .name = NULL };
    if (i >= p->persons)
        return NULL;
    return p->person[i] ? p->person[i] : &nobody;
}

const struct person *people_of_subject(const struct people *p, struct str subject)
{
    for (size_t i = 0; subject.n && i < p->persons; i++)
        if (p->person[i] && str_is(subject, p->person[i]->subject))
            return p->person[i];
    return NULL;
}

struct person *people_make(struct people *p, struct str name)
{
    uint32_t i = names_intern(&p->person_names, name);
    while (p->persons <= i) {
        vec_grow(p->person, p->persons, p->person_cap);
        p->person[p->persons++] = NULL;
    }
    if (p->person[i])
        return p->person[i];
    struct person *x = xcalloc(1, sizeof *x);
    x->name = copy(name);
    char **empty[] = { &x->full_name, &x->mail, &x->subject, &x->hash, &x->notice, &x->tenant };
    for (size_t k = 0; k < ARRAY_LEN(empty); k++)
        *empty[k] = copy(STR(""));
    return p->person[i] = x;
}

bool people_drop(struct people *p, struct str name)
{
    uint32_t i = number_of(p, name);
    size_t n = 0;
    if (i == NAME_NONE)
        return false;
    for (size_t k = 0; k < p->places; k++)
        if (p->place[k].person != i)
            p->place[n++] = p->place[k];
    p->places = n;
    person_free(p->person[i]);
    p->person[i] = NULL;
    return true;
}

void person_set(char **field, struct str value)
{
    char *was = *field;
    *field = copy(value);
    free(was);
}

void person_set_groups(struct person *x, const struct str *group, size_t n)
{
    for (size_t i = 0; i < x->groups; i++)
        free(x->group[i]);
    free(x->group);
    x->group = xcalloc(n + 1, sizeof *x->group);
    x->groups = n;
    for (size_t i = 0; i < n; i++)
        x->group[i] = copy(group[i]);
}

void person_write(const struct person *x, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "kind", str_of(person_kind_name(x->kind)));
    json_put_str(&w, "role", str_of(role_name(x->role)));
    json_put_str(&w, "full_name", str_of(x->full_name));
    json_put_str(&w, "mail", str_of(x->mail));
    json_put_str(&w, "subject", str_of(x->subject));
    json_put_str(&w, "hash", str_of(x->hash));
    json_begin(&w, "groups", '[');
    for (size_t i = 0; i < x->groups; i++)
        json_put_str(&w, NULL, str_of(x->group[i]));
    json_end(&w, ']');
    json_put_bool(&w, "disabled", x->disabled);
    json_put_bool(&w, "gone", x->gone);
    json_put_i64(&w, "created_ms", x->created_ms);
    json_put_i64(&w, "seen_ms", x->seen_ms);
    json_put_i64(&w, "void_ms", x->void_ms);
    json_put_str(&w, "notice", str_of(x->notice));
    json_put_str(&w, "tenant", str_of(x->tenant));
    json_end(&w, '}');
}

static int read_groups(struct person *x, const struct json *list, struct err *e)
{
    struct str group[PERSON_GROUPS_MAX];
    size_t n = 0;
    for (const struct json *v = list ? json_first(list) : NULL; v && n < PERSON_GROUPS_MAX;
         v = json_next(list, v))
        if (json_as_str(v, GROUP_NAME_MAX, &group[n++], e) < 0)
            return err_wrap(e, "groups");
    person_set_groups(x, group, n);
    return 0;
}

int people_read_person(struct people *p, struct str name, struct str json, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(json, e);
    const struct json *o = d ? json_root(d) : NULL;
    struct str kind = STR("machine"), role = STR("none"),
               text[] = { STR(""), STR(""), STR(""), STR(""), STR(""), STR("") };
    if (!d)
        return -1;
    struct person *x = people_make(p, name);
    x->kept = true;
    if (json_get_str(o, "kind", 32, &kind, e) < 0 || json_get_str(o, "role", 32, &role, e) < 0 ||
        json_get_str(o, "full_name", 1024, &text[0], e) < 0 ||
        json_get_str(o, "mail", 1024, &text[1], e) < 0 ||
        json_get_str(o, "subject", 1024, &text[2], e) < 0 ||
        json_get_str(o, "hash", 1024, &text[3], e) < 0 ||
        json_get_str(o, "notice", 1024, &text[4], e) < 0 ||
        json_get_str(o, "tenant", 1024, &text[5], e) < 0 ||
        json_get_bool(o, "disabled", &x->disabled, e) < 0 ||
        json_get_bool(o, "gone", &x->gone, e) < 0 ||
        json_get_i64(o, "created_ms", INT64_MIN, INT64_MAX, &x->created_ms, e) < 0 ||
        json_get_i64(o, "seen_ms", INT64_MIN, INT64_MAX, &x->seen_ms, e) < 0 ||
        json_get_i64(o, "void_ms", INT64_MIN, INT64_MAX, &x->void_ms, e) < 0 ||
        read_groups(x, json_find(o, "groups"), e) < 0)
        return -1;
    char **field[] = { &x->full_name, &x->mail, &x->subject, &x->hash, &x->notice, &x->tenant };
    for (size_t i = 0; i < ARRAY_LEN(field); i++)
        person_set(field[i], text[i]);
    if (!person_kind_parse(kind, &x->kind) ||
        (!str_is(role, "none") && !role_parse(role, ROLE_ON_SITE, &x->role)))
        return err_set(e, ERR_INVALID, "a kind or role that is not known here");
    return 0;
}

/* ---- tenants ---- */

static uint32_t tenant_number(const struct people *p, struct str name)
{
    uint32_t i = names_find(&p->tenant_names, name);
    return i != NAME_NONE && p->tenant[i].alive ? i : NAME_NONE;
}

void people_set_tenant(struct people *p, struct str name, struct str parent,
                       const struct group_role *g, size_t n)
{
    uint32_t i = names_intern(&p->tenant_names, name);
    while (p->tenants <= i) {
        vec_grow(p->tenant, p->tenants, p->tenant_cap);
        p->tenant[p->tenants++] = (struct tenant){ .name = copy(name), .parent = copy(STR("")) };
    }
    person_set(&p->tenant[i].parent, parent);
    groups_set(&p->tenant[i].groups, g, n);
    p->tenant[i].alive = true;
}

void people_drop_tenant(struct people *p, struct str name)
{
    uint32_t i = tenant_number(p, name);
    size_t n = 0;
    if (i == NAME_NONE)
        return;
    p->tenant[i].alive = false;
    for (size_t k = 0; k < p->places; k++)
        if (p->place[k].tenant != i)
            p->place[n++] = p->place[k];
    p->places = n;
}

bool people_has_tenant(const struct people *p, struct str name)
{
    return tenant_number(p, name) != NAME_NONE;
}

void people_set_default_tenant(struct people *p, struct str tenant)
{
    person_set(&p->default_tenant, tenant);
}

void people_set_site_groups(struct people *p, const struct group_role *g, size_t n)
{
    groups_set(&p->site_groups, g, n);
}

/* ---- places ---- */

static int place_compare(const struct kept_place *a, const struct kept_place *b)
{
    if (a->person != b->person)
        return a->person < b->person ? -1 : 1;
    if (a->tenant != b->tenant)
        return a->tenant < b->tenant ? -1 : 1;
    return (int)a->of_settings - (int)b->of_settings;
}

/* The first that is not before it. */
static size_t place_from(const struct people *p, const struct kept_place *key)
{
    size_t low = 0, high = p->places;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (place_compare(&p->place[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void people_set_place(struct people *p, const struct place *at)
{
    uint32_t t = names_find(&p->tenant_names, at->tenant);
    people_make(p, at->user);
    struct kept_place key = { t, number_of(p, at->user), at->role, at->of_settings, at->by_lead };
    size_t i = place_from(p, &key);
    bool there = i < p->places && place_compare(&p->place[i], &key) == 0;
    if (there && at->role == ROLE_NONE) {
        memmove(&p->place[i], &p->place[i + 1], (p->places - i - 1) * sizeof key);
        p->places--;
    } else if (there) {
        p->place[i].role = at->role;
        p->place[i].by_lead &= at->by_lead; /* what the site once gave stays its */
    } else if (at->role != ROLE_NONE && t != NAME_NONE) {
        vec_grow(p->place, p->places, p->place_cap);
        memmove(&p->place[i + 1], &p->place[i], (p->places++ - i) * sizeof key);
        p->place[i] = key;
    }
}

enum role people_said(const struct people *p, struct str user, struct str tenant, bool of_settings)
{
    struct kept_place key = { names_find(&p->tenant_names, tenant), number_of(p, user), ROLE_NONE,
                              of_settings, false };
    size_t i = place_from(p, &key);
    return i < p->places && place_compare(&p->place[i], &key) == 0 ? p->place[i].role : ROLE_NONE;
}

bool people_given(const struct people *p, struct str user, struct str tenant)
{
    struct kept_place key = { names_find(&p->tenant_names, tenant), number_of(p, user), ROLE_NONE,
                              false, false };
    size_t i = place_from(p, &key);
    return i < p->places && place_compare(&p->place[i], &key) == 0 && !p->place[i].by_lead;
}

bool people_place_at(const struct people *p, size_t i, struct place *out)
{
    if (i >= p->places)
        return false;
    const struct kept_place *k = &p->place[i];
    *out = (struct place){ str_of(p->tenant[k->tenant].name),
                           str_of(p->person[k->person]->name),
                           k->role,
                           k->of_settings,
                           k->by_lead,
                           false };
    return true;
}

static enum role of_groups(const struct groups *g, const struct person *x)
{
    enum role best = ROLE_NONE;
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < x->groups; k++)
            if (strcmp(g->at[i].group, x->group[k]) == 0)
                best = MAX(best, g->at[i].role);
    return best;
}

/* What was said of somebody in each tenant, or follows from groups there: `role` has one each tenant.  False:
 * the site itself gave them no place. */
static bool said_roles(const struct people *p, uint32_t who, enum role *role)
{
    bool some = false;
    const struct person *x = who == NAME_NONE ? NULL : p->person[who];
    for (size_t i = place_from(p, &(struct kept_place){ .person = who });
         x && i < p->places && p->place[i].person == who; i++) {
        enum role *r = &role[p->place[i].tenant];
        *r = MAX(*r, p->place[i].role);
        some |= !p->place[i].by_lead || weak_here("lead_captures");
    }
    for (size_t t = 0; x && x->groups && t < p->tenants; t++) {
        enum role r = p->tenant[t].alive ? of_groups(&p->tenant[t].groups, x) : ROLE_NONE;
        role[t] = MAX(role[t], r);
        some |= r != ROLE_NONE;
    }
    return some;
}

/* With what leads and viewers have from above. */
static enum role role_at(const struct people *p, const enum role *said, uint32_t t)
{
    enum role best = said[t];
    for (size_t depth = 0; depth <= p->tenants; depth++) {
        t = tenant_number(p, str_of(p->tenant[t].parent));
        if (t == NAME_NONE)
            break;
        if (said[t] == ROLE_LEAD || said[t] == ROLE_VIEWER)
            best = MAX(best, said[t]);
    }
    return best;
}

/* Dropped or disabled people have no role. */
static bool is_out(const struct people *p, uint32_t who)
{
    return who != NAME_NONE && (p->person[who]->disabled || p->person[who]->gone);
}

enum role people_role_in(const struct people *p, struct str user, struct str tenant)
{
    uint32_t t = tenant_number(p, tenant), who = number_of(p, user);
    if (t == NAME_NONE || is_out(p, who))
        return ROLE_NONE;
    AUTO(free_p) enum role *said = xcalloc(p->tenants, sizeof *said);
    bool some = said_roles(p, who, said);
    enum role r = role_at(p, said, t);
    return !some && str_is(tenant, p->default_tenant) ? MAX(r, (enum role)ROLE_MEMBER) : r;
}

const struct place *people_places(const struct people *p, struct str user, struct arena *a,
                                  size_t *out_n)
{
    uint32_t who = number_of(p, user), home = tenant_number(p, str_of(p->default_tenant));
    AUTO(free_p) enum role *said = xcalloc(p->tenants + 1, sizeof *said);
    bool out = is_out(p, who), some = !out && said_roles(p, who, said);
    size_t n = 0, own = 0;
    bool reaches = false; /* what is below, too */
    if (!out && !some && home != NAME_NONE)
        said[home] = MAX(said[home], (enum role)ROLE_MEMBER);
    for (uint32_t t = 0; !out && t < p->tenants; t++) {
        own += said[t] != ROLE_NONE;
        reaches |= said[t] == ROLE_LEAD || said[t] == ROLE_VIEWER;
    }
    struct place *list = arena_array(a, struct place, reaches ? p->tenants : own + 1);
    for (int below = 0; !out && below < (reaches ? 2 : 1); below++) /* one's own come first */
        for (uint32_t t = 0; t < p->tenants; t++) {
            if (!p->tenant[t].alive || (said[t] == ROLE_NONE) != (below == 1))
                continue;
            enum role r = role_at(p, said, t);
            if (r != ROLE_NONE)
                list[n++] = (struct place){ .tenant = str_of(p->tenant[t].name),
                                            .user = user,
                                            .role = r,
                                            .from_above = below == 1 };
        }
    *out_n = n;
    return list;
}

enum role people_site_role(const struct people *p, struct str user)
{
    const struct person *x = people_find(p, user);
    if (!x || x->disabled || x->gone)
        return ROLE_NONE;
    enum role best = MAX(x->role, x->file_role), by_group = of_groups(&p->site_groups, x);
    return MAX(best, by_group);
}

/* ---- machines ---- */

void people_set_owner(struct people *p, struct str node, struct str user, bool owns)
{
    for (size_t i = 0; i < p->owners; i++)
        if (str_is(node, p->owner[i].node) && str_is(user, p->owner[i].user)) {
            if (!owns) {
                free(p->owner[i].node);
                free(p->owner[i].user);
                p->owner[i] = p->owner[--p->owners];
            }
            return;
        }
    if (!owns)
        return;
    vec_grow(p->owner, p->owners, p->owner_cap);
    p->owner[p->owners++] = (struct owner){ copy(node), copy(user) };
}

bool people_owns(const struct people *p, struct str user, struct str node)
{
    const struct person *x = people_find(p, user);
    for (size_t i = 0; i < p->owners && !(x && (x->disabled || x->gone)); i++)
        if (str_is(node, p->owner[i].node) && str_is(user, p->owner[i].user))
            return true;
    return false;
}

bool people_owns_some(const struct people *p, struct str user)
{
    for (size_t i = 0; i < p->owners; i++)
        if (str_is(user, p->owner[i].user))
            return people_owns(p, user, str_of(p->owner[i].node));
    return false;
}

bool people_owner_at(const struct people *p, size_t i, struct str *out_node, struct str *out_user)
{
    if (i >= p->owners)
        return false;
    *out_node = str_of(p->owner[i].node);
    *out_user = str_of(p->owner[i].user);
    return true;
}
