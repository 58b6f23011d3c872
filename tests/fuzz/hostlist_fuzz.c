/* What expands must stay within its bound, and must come back from folding name by name. */
#include "base/hostlist.h"
#include "tests/fuzz/target.h"

#define NAMES_MAX 2000u

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf folded = BUF(NAMES_MAX * 256);
    struct err e = { 0 };
    const char **names, **again;
    size_t n, n_again;
    struct str list = { (const char *)data, size };
    if (hostlist_expand(list, NAMES_MAX, &a, &names, &n, &e) < 0) {
        if (e.code == ERR_NONE || !e.msg[0])
            abort();
        return 0;
    }
    if (n == 0 || n > NAMES_MAX)
        abort();
    hostlist_fold(names, n, &folded);
    if (hostlist_expand(buf_str(&folded), n, &a, &again, &n_again, &e) < 0 || n_again != n)
        abort();
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], again[i]) != 0)
            abort();
    return 0;
}
