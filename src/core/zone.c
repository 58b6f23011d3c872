#include "core/zone.h"

#define LOOK_MIN 64u /* sets that are not worth looking at */

void zones_free(struct zones *z)
{
    for (uint32_t i = 0; i < z->n; i++)
        free(z->at[i].text);
    free(z->at);
}

struct str zones_get(const struct zones *z, uint32_t number)
{
    return str_of(z->at[number - 1].text);
}

/* ---- lists of names ---- */

static int name_order(struct str a, struct str b)
{
    int order = memcmp(a.p, b.p, MIN(a.n, b.n));
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_name(const void *a, const void *b)
{
    return name_order(*(const struct str *)a, *(const struct str *)b);
}

/* Halves the text of a set, which is in order: a job may name a thousand classes. */
static bool list_has(struct str list, struct str name)
{
    size_t lo = 0, hi = list.n;
    while (lo < hi) {
        size_t at = lo + (hi - lo) / 2;
        struct str one, rest;
        while (at > lo && list.p[at - 1] != '|')
            at--;
        str_cut((struct str){ list.p + at, list.n - at }, '|', &one, &rest);
        int order = name_order(name, one);
        if (order == 0)
            return true;
        if (order > 0)
            lo = at + one.n + 1;
        else
            hi = at > lo ? at - 1 : lo;
    }
    return false;
}

bool zones_has(const struct zones *z, uint32_t number, struct str name)
{
    return list_has(zones_get(z, number), name);
}

/* The names in order, each once: equal sets are equal texts.  The caller frees it. */
static char *sorted(const struct zones *z, struct str list, uint32_t within)
{
    char *text = xcalloc(list.n + 1, 1), *end = text;
    AUTO(free_p) struct str *at = xcalloc(list.n + 1, sizeof *at);
    size_t n = 0;
    while (list.n) {
        struct str one;
        str_cut(list, '|', &one, &list);
        one = str_trim(one);
        if (within == 0 || zones_has(z, within, one))
            at[n++] = one;
    }
    qsort(at, n, sizeof *at, by_name);
    for (size_t i = 0; i < n; i++) {
        if (i && str_eq(at[i], at[i - 1]))
            continue;
        if (end > text)
            *end++ = '|';
        memcpy(end, at[i].p, at[i].n);
        end += at[i].n;
    }
    return text;
}

/* ---- sets ---- */

static uint32_t find(const struct zones *z, struct str text, uint64_t hash)
{
    for (uint32_t i = 0; i < z->n; i++)
        if (z->at[i].text && z->at[i].hash == hash && str_is(text, z->at[i].text))
            return i + 1;
    return 0;
}

uint32_t zones_find(const struct zones *z, struct str list, uint32_t within)
{
    AUTO(free_p) char *text = sorted(z, list, within);
    return find(z, str_of(text), str_hash(str_of(text)));
}

uint32_t zones_intern(struct zones *z, struct str list, uint32_t within)
{
    AUTO(free_p) char *text = sorted(z, list, within);
    uint64_t hash = str_hash(str_of(text));
    uint32_t number = find(z, str_of(text), hash), i = 0;
    if (number)
        return number;
    while (i < z->n && z->at[i].text)
        i++;
    if (i == z->n) {
        vec_grow(z->at, z->n, z->cap);
        z->n++;
    }
    z->at[i] = (struct zone){ .text = xstrdup(text), .hash = hash };
    z->used++;
    return i + 1;
}

void zones_keep(struct zones *z, const bool *keep)
{
    for (uint32_t i = 0; i < z->n; i++) {
        if (keep[i + 1] || !z->at[i].text)
            continue;
        free(z->at[i].text);
        z->at[i].text = NULL;
        z->used--;
    }
    z->look = MAX(2 * z->used, LOOK_MIN);
    z->look = MIN(z->look, ZONES_MAX);
}

int traits_check(struct str list, struct err *e)
{
    if (list.n > TRAITS_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, "traits: a list of %zu bytes; at most %u", list.n,
                       TRAITS_TEXT_MAX);
    for (size_t i = 0, from = 0; list.n && i <= list.n; i++) {
        if (i < list.n && list.p[i] != '|' && (unsigned char)list.p[i] <= ' ')
            return err_set(e, ERR_INVALID, "traits: a blank or a control character in a name");
        if (i < list.n && list.p[i] != '|')
            continue;
        if (i == from || i - from > TRAITS_NAME_MAX)
            return err_set(e, ERR_INVALID, "traits: names have 1 to %u bytes", TRAITS_NAME_MAX);
        from = i + 1;
    }
    return 0;
}

int traits_check_name(struct str node, struct str name, struct err *e)
{
    if (name.n && memchr(name.p, '|', name.n))
        err_set(e, ERR_INVALID, "traits: a machine has one name, without '|'");
    else if (traits_check(name, e) == 0)
        return 0;
    return err_wrap(e, "node '%.*s'", STR_ARG(node));
}
