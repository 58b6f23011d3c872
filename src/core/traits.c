/* Classes of machines that jobs ask for, and which sets of names are still in use. */
#include "core/state.h"

struct in_use {
    bool zone[ZONES_MAX + 1], traits[ZONES_MAX + 1]; /* by number */
};

static void find_used(const struct core *c, struct in_use *out)
{
    *out = (struct in_use){ 0 };
    for (uint32_t i = 0; i < c->shapes.n; i++) {
        const struct shape *s = &c->shapes.at[i];
        if (s->refs)
            out->zone[s->request.zone] = out->traits[s->request.traits] = true;
    }
    for (uint32_t i = 0; i < c->shares.n; i++)
        out->zone[c->shares.at[i].zone] = true;
}

void zones_drop(struct core *c)
{
    struct in_use used;
    find_used(c, &used);
    zones_keep(&c->cluster.zones, used.zone);
    zones_keep(&c->cluster.traits, used.traits);
}

static uint32_t count(const bool *used, const struct zones *z)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i <= z->n; i++)
        n += used[i];
    return n;
}

struct zones_left zones_left(const struct core *c)
{
    struct in_use used;
    find_used(c, &used);
    return (struct zones_left){ ZONES_MAX - count(used.zone, &c->cluster.zones),
                                ZONES_MAX - count(used.traits, &c->cluster.traits) };
}

int traits_check_room(const struct core *c, struct str list, struct err *e)
{
    const struct zones *z = &c->cluster.traits;
    if (traits_check(list, e) < 0)
        return -1;
    if (list.n == 0 || z->used < ZONES_MAX || zones_find(z, list, 0) || zones_left(c).traits)
        return 0;
    err_set(e, ERR_UNAVAILABLE, "traits: jobs ask for %u different sets of machines already",
            ZONES_MAX);
    return err_hint(e, "wait until some of them have ended");
}

uint16_t traits_use(struct core *c, struct str list)
{
    if (list.n && c->cluster.traits.used >= c->cluster.traits.look)
        zones_drop(c);
    return cluster_traits(&c->cluster, list);
}

struct str traits_text(const struct core *c, const struct request *r)
{
    return r->traits ? zones_get(&c->cluster.traits, r->traits) : STR("");
}

int traits_set_node(struct core *c, const struct event_node_traits *n, struct err *e)
{
    uint32_t node = names_find(&c->cluster.node_names, n->name);
    if (node == NAME_NONE)
        return err_set(e, ERR_NOT_FOUND, "there is no node '%.*s'", STR_ARG(n->name));
    if (traits_check_name(n->name, n->traits, e) < 0)
        return -1;
    cluster_set_class(&c->cluster, node, n->traits);
    return 0;
}
