/* Any bytes as the owner of a gang, and as a list of budgets: what is read has its texts and its bounds; what is not is
 * told in one line. */
#include "engine/kube/budget.h"
#include "engine/kube/owner.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void told(const struct err *e)
{
    must(e->code != ERR_NONE && e->msg[0] && !strchr(e->msg, '\n'));
}

static void as_owner(const struct json *object, const struct owner_kind *kind)
{
    AUTO(buf_free) struct buf body = BUF(1 << 20);
    struct err e = { 0 };
    struct owner o;
    if (owner_read(kind, object, &o, &e) < 0) {
        told(&e);
        return;
    }
    must(o.version[0] && o.suspended_by);
    owner_patch(kind, &o, "d1", &body);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&body), &e);
    must(d != NULL);
}

static void as_budgets(const struct json *list)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct budget *at = NULL;
    size_t n = 0;
    struct err e = { 0 };
    if (budgets_read(list, &a, &at, &n, &e) < 0)
        told(&e);
    must(n <= BUDGETS_MAX);
    for (size_t i = 0; i < n; i++)
        must(at[i].name && strlen(at[i].query) <= 3 * BUDGET_QUERY_MAX &&
             !strpbrk(at[i].query, " &?#\n"));
}

FUZZ_TARGET(data, size)
{
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read((struct str){ (const char *)data, size }, &e);
    if (!d)
        return 0;
    for (int i = 0; i < GANG_KIND_COUNT; i++)
        for (const struct owner_kind *o = owner_kind_next((enum gang_kind)i, GANG_OBJ_NONE, NULL);
             o; o = owner_kind_next((enum gang_kind)i, GANG_OBJ_NONE, o))
            as_owner(json_root(d), o);
    as_budgets(json_root(d));
    return 0;
}
