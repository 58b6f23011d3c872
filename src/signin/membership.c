#include "signin/membership.h"

#include <strings.h>

#include "signin/filter.h"

#define GROUPS_MAX 1000
#define DEPTH_MAX 16
/* LDAP_MATCHING_RULE_IN_CHAIN: the server follows membership to its end. */
#define AD_FILTER "(member:1.2.840.113556.1.4.1941:=%d)"

struct found {
    const char *dn, *name; /* no name yet: known by its DN only */
    unsigned depth;
};

struct walk {
    struct directory *d;
    const struct membership_rule *rule;
    const struct member *who;
    struct arena *arena;
    struct found list[GROUPS_MAX]; /* in the order they were found; also what is still to do */
    size_t n;
};

void membership_defaults(struct membership_rule *rule)
{
    if (!rule->filter)
        rule->filter = "(member=%d)";
    if (!rule->attr)
        rule->attr = "cn";
    if (!rule->nested)
        rule->nested = "no";
}

static int add(struct walk *w, const char *dn, const char *name, unsigned depth, struct refusal *r)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcasecmp(w->list[i].dn, dn) == 0)
            return 0;
    if (w->n == GROUPS_MAX)
        return refuse(r, REASON_TOO_MANY, "'%s' is in more than %d groups", w->who->user,
                      GROUPS_MAX);
    w->list[w->n++] = (struct found){ dn, name, depth };
    return 0;
}

/* The groups that name `dn`. */
static int search_groups(struct walk *w, const char *template, const char *dn, unsigned depth,
                         struct refusal *r)
{
    AUTO(buf_free) struct buf filter = BUF(FILTER_MAX);
    const char *attrs[] = { w->rule->attr, NULL };
    struct entry *list;
    size_t n;
    if (filter_expand(template, w->who->user, dn, &filter, r) < 0)
        return -1;
    struct search s = {
        .base = w->rule->base, .filter = filter.p, .attrs = attrs, .most = GROUPS_MAX
    };
    if (directory_search(w->d, &s, w->arena, &list, &n, r) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (add(w, list[i].dn, list[i].values[0][0], depth, r) < 0)
            return -1;
    return 0;
}

static int by_search(struct walk *w, bool nested, struct refusal *r)
{
    if (search_groups(w, w->rule->filter, w->who->dn, 1, r) < 0)
        return -1;
    /* A filter by name only (memberUid) cannot speak of a group in a group. */
    nested = nested && filter_has(w->rule->filter, 'd');
    for (size_t i = 0; nested && i < w->n; i++)
        if (w->list[i].depth < DEPTH_MAX &&
            search_groups(w, w->rule->filter, w->list[i].dn, w->list[i].depth + 1, r) < 0)
            return -1;
    return 0;
}

static int add_all(struct walk *w, const char *const *dns, unsigned depth, struct refusal *r)
{
    for (size_t i = 0; dns[i]; i++)
        if (add(w, dns[i], NULL, depth, r) < 0)
            return -1;
    return 0;
}

static int by_member_of(struct walk *w, struct refusal *r)
{
    const char *attrs[] = { w->rule->attr, "memberOf", NULL };
    if (add_all(w, w->who->member_of, 1, r) < 0)
        return -1;
    for (size_t i = 0; i < w->n; i++) {
        struct entry *list;
        size_t n;
        struct search s = { .base = w->list[i].dn, .attrs = attrs, .most = 1 };
        if (directory_search(w->d, &s, w->arena, &list, &n, r) < 0)
            return -1;
        w->list[i].name = n ? list[0].values[0][0] : NULL;
        if (n && w->list[i].depth < DEPTH_MAX &&
            add_all(w, list[0].values[1], w->list[i].depth + 1, r) < 0)
            return -1;
    }
    return 0;
}

int membership_write(struct directory *d, const struct membership_rule *rule,
                     const struct member *who, struct arena *a, struct json_out *out,
                     struct refusal *r)
{
    struct walk *w = arena_new(a, struct walk);
    *w = (struct walk){ .d = d, .rule = rule, .who = who, .arena = a };
    struct str nested = str_of(rule->nested);
    int rc = str_is(nested, "no")       ? by_search(w, false, r)
           : str_is(nested, "yes")      ? by_search(w, true, r)
           : str_is(nested, "memberof") ? by_member_of(w, r)
           : str_is(nested, "ad")
               ? search_groups(w, AD_FILTER, who->dn, 1, r)
               : refuse(r, REASON_BAD_REQUEST, "nested is no, yes, memberof or ad, not '%s'",
                        rule->nested);
    if (rc < 0)
        return -1;
    json_begin(out, "groups", '[');
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].name)
            json_put_str(out, NULL, str_of(w->list[i].name));
    json_end(out, ']');
    return 0;
}
