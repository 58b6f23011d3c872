/* Tenants, people, their places and keys: from the store at the start, and back with every change. */
#include "store/directory.h"

#include "api/directory.h"
#include "api/state.h"
#include "auth/oauth.h"

static struct people *people_of(struct api *a)
{
    return auth_people(a->config.auth);
}

static void learn(struct api *a, const struct control_tenant *t)
{
    struct group_role g[TENANT_GROUPS_MAX];
    size_t n = 0;
    for (size_t k = 0; k < t->spec->groups && n < TENANT_GROUPS_MAX; k++) {
        g[n].group = t->spec->group[k].group;
        if (role_parse(t->spec->group[k].role, ROLE_IN_TENANT, &g[n].role))
            n++;
    }
    people_set_tenant(people_of(a), str_of(t->name), t->spec->parent, g, n);
}

void learn_tenant(struct api *a, struct str name)
{
    struct control_tenant t;
    if (control_tenant_find(a->config.control, name, &t))
        learn(a, &t);
}

static void learn_tenants(struct api *a)
{
    struct control_tenant t;
    for (size_t i = 0; control_tenant_at(a->config.control, i, &t); i++)
        learn(a, &t);
}

typedef int entry_fn(struct api *a, const struct store_entry *row, struct err *e);

static int load(struct api *a, enum directory_kind kind, entry_fn *fn, struct err *e)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct store_entry *row;
    size_t n;
    if (store_entries(a->config.store, kind, &arena, &row, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (fn(a, &row[i], e) < 0)
            return err_wrap(e, "the store's %.*s '%.*s'", STR_ARG(directory_kind_name(kind)),
                            STR_ARG(row[i].name));
    return 0;
}

static int load_person(struct api *a, const struct store_entry *row, struct err *e)
{
    return people_read_person(people_of(a), row->name, row->body, e);
}

static int load_token(struct api *a, const struct store_entry *row, struct err *e)
{
    return auth_read_key(a->config.auth, KEY_TOKEN, row->name, row->body, e);
}

static int load_session(struct api *a, const struct store_entry *row, struct err *e)
{
    return auth_read_key(a->config.auth, KEY_SESSION, row->name, row->body, e);
}

static int load_client(struct api *a, const struct store_entry *row, struct err *e)
{
    return oauth_read_client(a->oauth, row->name, row->body, e);
}

static int load_place(struct api *a, const struct store_entry *row, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(row->body, e);
    struct place at = { 0 };
    struct str role;
    str_cut(row->name, '/', &at.tenant, &at.user);
    if (!d || json_need_str(json_root(d), "role", 32, &role, e) < 0)
        return -1;
    if (json_get_bool(json_root(d), "by_lead", &at.by_lead, e) < 0)
        return -1;
    if (!role_parse(role, ROLE_IN_TENANT, &at.role))
        return err_set(e, ERR_INVALID, "its role is not known here");
    people_set_place(people_of(a), &at);
    return 0;
}

static int load_machine(struct api *a, const struct store_entry *row, struct err *e)
{
    struct str node, user;
    (void)e;
    str_cut(row->name, '/', &node, &user);
    people_set_owner(people_of(a), node, user, true);
    return 0;
}

int directory_load(struct api *a, struct err *e)
{
    static const struct {
        enum directory_kind kind;
        entry_fn *fn;
    } rows[] = {
        { DIRECTORY_PERSON, load_person },   { DIRECTORY_PLACE, load_place },
        { DIRECTORY_MACHINE, load_machine }, { DIRECTORY_TOKEN, load_token },
        { DIRECTORY_SESSION, load_session }, { DIRECTORY_CLIENT, load_client },
    };
    learn_tenants(a);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (load(a, rows[i].kind, rows[i].fn, e) < 0)
            return -1;
    return 0;
}

/* ---- writing down, with the turn that is being gathered ---- */

static struct store_batch *batch_of(struct api *a)
{
    return control_batch(a->config.control);
}

void keep_person(struct api *a, struct person *x)
{
    AUTO(buf_free) struct buf body = BUF(1u << 20);
    x->kept = true;
    person_write(x, &body);
    store_put_entry(batch_of(a), DIRECTORY_PERSON,
                    &(struct store_entry){ str_of(x->name), buf_str(&body) });
}

void forget_person(struct api *a, struct str name)
{
    store_delete_entry(batch_of(a), DIRECTORY_PERSON, name);
}

void keep_place(struct api *a, const struct place *at)
{
    AUTO(buf_free) struct buf name = BUF(1024), body = BUF(256);
    buf_printf(&name, "%.*s/%.*s", STR_ARG(at->tenant), STR_ARG(at->user));
    buf_printf(&body, "{\"role\":\"%s\"%s}", role_name(at->role),
               at->by_lead ? ",\"by_lead\":true" : "");
    if (at->role == ROLE_NONE)
        store_delete_entry(batch_of(a), DIRECTORY_PLACE, buf_str(&name));
    else
        store_put_entry(batch_of(a), DIRECTORY_PLACE,
                        &(struct store_entry){ buf_str(&name), buf_str(&body) });
}

void keep_owner(struct api *a, struct str node, struct str user, bool owns)
{
    AUTO(buf_free) struct buf name = BUF(1024);
    buf_printf(&name, "%.*s/%.*s", STR_ARG(node), STR_ARG(user));
    if (owns)
        store_put_entry(batch_of(a), DIRECTORY_MACHINE,
                        &(struct store_entry){ buf_str(&name), STR("{}") });
    else
        store_delete_entry(batch_of(a), DIRECTORY_MACHINE, buf_str(&name));
}

/* Whoever signs in again and again has the last of their sessions. */
static void end_surplus(struct api *a, struct str user)
{
    uint8_t hash[KEY_HASH_BYTES];
    while (auth_count_keys(a->config.auth, KEY_SESSION, user) > SESSIONS_OF_USER) {
        memcpy(hash, auth_oldest_key(a->config.auth, KEY_SESSION, user)->hash, sizeof hash);
        drop_key(a, KEY_SESSION, hash);
    }
}

void keep_key(struct api *a, enum key_kind kind, const struct auth_key *k)
{
    AUTO(buf_free) struct buf body = BUF(64 << 10);
    char name[65];
    auth_key_name(k->hash, name);
    auth_key_write(k, &body);
    store_put_entry(batch_of(a), kind == KEY_TOKEN ? DIRECTORY_TOKEN : DIRECTORY_SESSION,
                    &(struct store_entry){ str_of(name), buf_str(&body) });
    if (kind == KEY_SESSION)
        end_surplus(a, str_of(k->user));
}

void change_place(struct api *a, const struct place *at)
{
    struct people *p = auth_people(a->config.auth);
    enum role was = people_role_in(p, at->user, at->tenant);
    people_set_place(p, at);
    keep_place(a, at);
    if (people_role_in(p, at->user, at->tenant) < was)
        streams_end_of(a, at->user);
}

void drop_key(struct api *a, enum key_kind kind, const uint8_t hash[static KEY_HASH_BYTES])
{
    char name[65];
    auth_key_name(hash, name);
    if (auth_drop_key(a->config.auth, kind, hash))
        store_delete_entry(batch_of(a), kind == KEY_TOKEN ? DIRECTORY_TOKEN : DIRECTORY_SESSION,
                           str_of(name));
}

size_t drop_keys_of(struct api *a, enum key_kind kind, struct str user)
{
    const struct auth_key *k;
    size_t dropped = 0;
    oauth_drop_user(a->oauth, user); /* what they let other tools know goes with it */
    for (size_t i = 0; (k = auth_key_at(a->config.auth, kind, i));) {
        uint8_t hash[KEY_HASH_BYTES];
        memcpy(hash, k->hash, sizeof hash);
        if (!str_is(user, k->user)) {
            i++;
            continue;
        }
        drop_key(a, kind, hash); /* another is in its place now */
        dropped++;
    }
    return dropped;
}
