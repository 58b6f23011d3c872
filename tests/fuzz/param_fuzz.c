/* Any text as the value of every parameter of every call: what is taken is what the row says, what is
 * refused names the parameter and the way out. */
#include "api/state.h"
#include "base/parse.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void taken(const struct api_param *p, struct str s)
{
    struct err e;
    uint64_t v = 0;
    if (p->kind == PARAM_NUMBER)
        must(parse_u64(s, p->max, &v, &e) == 0 && v >= p->min && v <= NUMBER_MAX);
    if (p->kind == PARAM_TEXT)
        must(s.n <= (p->max ? p->max : PARAM_TEXT_MAX) && !memchr(s.p, '\n', s.n));
    if (p->kind == PARAM_WORD)
        must(s.n <= strlen(p->words));
    if (p->kind == PARAM_WORDS)
        must(s.n > 0 && s.p[0] != ',' && s.p[s.n - 1] != ',');
}

FUZZ_TARGET(data, size)
{
    struct str s = { (const char *)data, size };
    struct err e = { 0 };
    for (size_t i = 0; i < api_routes_n; i++)
        for (const struct api_param *p = api_routes[i].param; p && p->name; p++) {
            if (param_check(p, s, &e) == 0)
                taken(p, s);
            else
                must(e.code == ERR_INVALID && strstr(e.msg, p->name) && e.hint[0]);
        }
    return 0;
}
