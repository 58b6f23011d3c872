#include "keeper/gangnet.h"

#include <stdio.h>
#include <string.h>

struct waiter {
    net_done_fn *fn;
    void *ctx;
};

struct shared {
    struct gangnet *g;
    struct shared *next;
    char gang[48];
    char *path; /* NULL: on its way */
    char address[16], gateway[16];
    uint32_t users;
    struct waiter *waiter;
    size_t n, cap;
};

struct gangnet {
    struct net *net;
    struct shared *list;
};

struct gangnet *gangnet_new(struct net *n)
{
    struct gangnet *g = xcalloc(1, sizeof *g);
    g->net = n;
    return g;
}

static void forget(struct shared *s)
{
    struct shared **at = &s->g->list;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s->path);
    free(s->waiter);
    free(s);
}

struct gangnet *gangnet_free(struct gangnet *g)
{
    while (g && g->list)
        forget(g->list);
    free(g);
    return NULL;
}

/* "17.1" of "17.1.2" */
static struct shared *find_gang(const struct gangnet *g, const char *task)
{
    const char *end = strrchr(task, '.');
    size_t n = end ? (size_t)(end - task) : strlen(task);
    for (struct shared *s = g->list; s; s = s->next)
        if (strlen(s->gang) == n && memcmp(s->gang, task, n) == 0)
            return s;
    return NULL;
}

static struct shared *add(struct gangnet *g, const char *task)
{
    struct shared *s = xcalloc(1, sizeof *s);
    const char *end = strrchr(task, '.');
    snprintf(s->gang, sizeof s->gang, "%.*s", end ? (int)(end - task) : 47, task);
    s->g = g;
    s->next = g->list;
    g->list = s;
    return s;
}

static void set_place(struct shared *s, const struct net_place *place)
{
    s->path = xstrdup(place->path);
    memcpy(s->address, place->address, sizeof s->address);
    memcpy(s->gateway, place->gateway, sizeof s->gateway);
}

static void tell(struct shared *s, net_done_fn *fn, void *ctx)
{
    struct net_place place = { .path = s->path };
    memcpy(place.address, s->address, sizeof place.address);
    memcpy(place.gateway, s->gateway, sizeof place.gateway);
    s->users++;
    fn(ctx, &place, NULL);
}

/* One of them may end at once and give its part back, so the waiting count as users until told. */
static void on_taken(void *ctx, const struct net_place *place, const struct err *e)
{
    struct shared *s = ctx;
    size_t n = s->n;
    if (place)
        set_place(s, place);
    s->users += place ? 1 : 0;
    for (size_t i = 0; i < n; i++)
        if (place)
            tell(s, s->waiter[i].fn, s->waiter[i].ctx);
        else
            s->waiter[i].fn(s->waiter[i].ctx, NULL, e);
    s->n = 0;
    if (!place) {
        forget(s);
    } else {
        gangnet_give_back(s->g, s->path); /* our own part */
    }
}

void gangnet_take(struct gangnet *g, const char *task, struct str tenant, net_done_fn *fn,
                  void *ctx)
{
    struct shared *s = find_gang(g, task);
    if (s && s->path) {
        tell(s, fn, ctx);
        return;
    }
    bool first = !s;
    if (first)
        s = add(g, task);
    vec_grow(s->waiter, s->n, s->cap);
    s->waiter[s->n++] = (struct waiter){ fn, ctx };
    if (first)
        net_take(g->net, tenant, on_taken, s);
}

int gangnet_adopt(struct gangnet *g, const char *task, const char *path, struct err *e)
{
    struct net_place place;
    struct shared *s = find_gang(g, task);
    if (s && s->path && strcmp(s->path, path) == 0) {
        s->users++;
        return 0;
    }
    if (net_adopt(g->net, path, e) < 0 || net_find(g->net, path, &place, e) < 0)
        return -1;
    s = add(g, task);
    set_place(s, &place);
    s->users = 1;
    return 0;
}

void gangnet_give_back(struct gangnet *g, const char *path)
{
    struct shared *s = g->list;
    while (s && !(s->path && strcmp(s->path, path) == 0))
        s = s->next;
    if (s && --s->users > 0)
        return;
    if (s) {
        char *taken = TAKE(s->path);
        forget(s);
        net_give_back(g->net, taken);
        free(taken);
        return;
    }
    net_give_back(g->net, path);
}
