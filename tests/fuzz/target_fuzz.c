/* A request target from outside: what is taken holds no NUL and fits, and a path that was taken is
 * matched without leaving it. */
#include "http/http.h"
#include "http/target.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void match(const char *path)
{
    static const char *const patterns[] = { "/", "/v1/jobs/:id", "/:a/:b/:c/:d", "/v1/:x/log" };
    struct str s = str_of(path), param[HTTP_PARAMS_MAX];
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        size_t n = 0;
        if (!http_path_match(patterns[i], s, param, &n))
            continue;
        must(n <= HTTP_PARAMS_MAX);
        for (size_t k = 0; k < n; k++)
            must(param[k].n > 0 && param[k].p > s.p && param[k].p + param[k].n <= s.p + s.n);
    }
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str text = { (const char *)data, size };
    struct target t = { 0 };
    struct err e = { 0 };
    if (target_parse(text, &a, &t, &e) < 0) {
        must(e.code != ERR_NONE && e.msg[0]);
        return 0;
    }
    must(size <= TARGET_MAX && t.n <= TARGET_PAIRS_MAX && t.path[0] == '/');
    must(strlen(t.path) <= size);
    for (size_t i = 0; i < t.n; i++)
        must(strlen(t.query[i].key) + strlen(t.query[i].value) < size);
    match(t.path);
    return 0;
}
