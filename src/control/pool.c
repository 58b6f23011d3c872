#include "control/pool.h"

#include "base/hostlist.h"
#include "base/map.h"
#include "sys/zone.h"

#define MINUTE_MS INT64_C(60000)
#define LAST_MS (INT64_C(229) * 365 * 24 * 60 * MINUTE_MS) /* in 2198: inside of every calendar */

int pool_check_name(const char *of, struct str name, struct err *e)
{
    bool ok = name.n > 0 && name.n <= POOL_NAME_MAX && name.p[0] != '.';
    for (size_t i = 0; i < name.n && ok; i++) {
        char x = name.p[i];
        ok = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') ||
             x == '-' || x == '_' || x == '@' || x == '.';
    }
    if (ok)
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' cannot be a %s's name", (int)MIN(name.n, (size_t)POOL_NAME_MAX),
            name.p, of);
    return err_hint(e, "1 to %d letters, digits and - _ @ . (not first)", POOL_NAME_MAX);
}

static int find_zone(void *ctx, struct str name, struct tz *out, struct err *e)
{
    return zone_find("", name, *(const int64_t *)ctx, out, e);
}

int pool_read_window(struct str text, int64_t now_ms, struct calendar *out, struct err *e)
{
    if (text.n == 0) {
        *out = calendar_always();
        return 0;
    }
    return calendar_parse(text, find_zone, &now_ms, out, e);
}

int pool_read_nodes(struct str list, struct arena *a, const char ***out, size_t *out_n,
                    struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    const char **names = NULL;
    size_t n = 0;
    if (list.n > POOL_LIST_MAX)
        return err_set(e, ERR_TOO_LARGE, "the list has %zu bytes, more than %u", list.n,
                       POOL_LIST_MAX);
    if (list.n && hostlist_expand(list, POOL_NODES_MAX, a, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct str name = str_of(names[i]);
        if (names_find(&seen, name) != NAME_NONE) {
            err_set(e, ERR_INVALID, "'%s' is named twice", names[i]);
            return err_hint(e, "name each machine once");
        }
        names_intern(&seen, name);
    }
    *out = names;
    *out_n = n;
    return 0;
}

/* ---- exceptions ---- */

static uint32_t local_min(const struct tz *z, uint32_t utc_min, int64_t up_ms)
{
    return (uint32_t)((tz_local_ms(z, utc_min * MINUTE_MS) + up_ms) / MINUTE_MS);
}

static int too_many(struct err *e)
{
    err_set(e, ERR_CONFLICT, "it has %d exceptions already", CALENDAR_EXCEPTIONS_MAX);
    return err_hint(e, "drop those of open and close (nightshift pools regular NAME), or shorten "
                       "its window");
}

int pool_merge(const struct calendar *window, const struct calendar *exceptions,
               struct calendar *out, struct err *e)
{
    struct calendar c = *window;
    for (uint32_t i = 0; i < exceptions->exceptions; i++) {
        struct calendar_exception x = exceptions->exception[i];
        if (c.exceptions == CALENDAR_EXCEPTIONS_MAX)
            return too_many(e);
        x.from_min = local_min(&c.zone, x.from_min, 0);
        x.to_min = local_min(&c.zone, x.to_min, MINUTE_MS - 1);
        /* Where the clock is set back in between, it may show the same time twice. */
        x.to_min = MAX(x.to_min, x.from_min + 1);
        c.exception[c.exceptions++] = x;
    }
    *out = c;
    return 0;
}

static int check_times(const struct pool_except *x, int64_t now_ms, struct err *e)
{
    if (x->until_ms <= x->from_ms)
        return err_set(e, ERR_CONFLICT, "it would end before it begins");
    if (x->until_ms <= now_ms)
        return err_set(e, ERR_CONFLICT, "it would be over already");
    if (x->from_ms < 0 || x->until_ms > LAST_MS)
        return err_set(e, ERR_CONFLICT, "it must lie between 1970 and 2198");
    return 0;
}

int pool_add_exception(struct calendar *exceptions, const struct pool_except *x, int64_t now_ms,
                       struct err *e)
{
    struct calendar c = calendar_always();
    if (check_times(x, now_ms, e) < 0)
        return -1;
    struct calendar_exception added = { .from_min = (uint32_t)(x->from_ms / MINUTE_MS),
                                        .to_min =
                                            (uint32_t)((x->until_ms + MINUTE_MS - 1) / MINUTE_MS),
                                        .open = x->open };
    for (uint32_t i = 0; i < exceptions->exceptions; i++) {
        struct calendar_exception old = exceptions->exception[i];
        bool covered = old.from_min >= added.from_min && old.to_min <= added.to_min;
        if (old.to_min * MINUTE_MS > now_ms && !covered)
            c.exception[c.exceptions++] = old;
    }
    if (c.exceptions == CALENDAR_EXCEPTIONS_MAX)
        return too_many(e);
    c.exception[c.exceptions++] = added;
    *exceptions = c;
    return 0;
}
