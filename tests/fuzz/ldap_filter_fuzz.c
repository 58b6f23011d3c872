/* Any user name in a search filter: what was put in has no byte that means something to a filter. */
#include "signin/filter.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(data, size)
{
    struct arena a = { 0 };
    struct refusal r = { 0 };
    struct buf out = BUF(FILTER_MAX);
    const char *user = arena_strndup(&a, (const char *)data, size);
    if (filter_expand("(uid=%u)", user, NULL, &out, &r) == 0) {
        if (out.n < 6 || strncmp(out.p, "(uid=", 5) != 0 || out.p[out.n - 1] != ')')
            abort();
        for (size_t i = 5; i < out.n - 1; i++)
            if (strchr("*()", out.p[i]) || (unsigned char)out.p[i] < 0x20 || out.p[i] & 0x80)
                abort();
    } else if (!r.e.msg[0] || !out.full) {
        abort();
    }
    buf_free(&out);
    arena_free(&a);
    return 0;
}
