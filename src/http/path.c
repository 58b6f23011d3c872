#include "http/http.h"

bool http_path_match(const char *pattern, struct str path, struct str param[HTTP_PARAMS_MAX],
                     size_t *out_n)
{
    struct str rest = str_of(pattern), want, got;
    struct str found[HTTP_PARAMS_MAX];
    size_t n = 0;
    bool more_rest, more_path;
    do {
        more_rest = str_cut(rest, '/', &want, &rest);
        more_path = str_cut(path, '/', &got, &path);
        if (want.n > 1 && want.p[0] == ':') {
            if (got.n == 0 || n == HTTP_PARAMS_MAX)
                return false;
            found[n++] = got;
        } else if (!str_eq(want, got)) {
            return false;
        }
    } while (more_rest && more_path);
    if (more_rest || more_path)
        return false;
    for (size_t i = 0; i < n; i++)
        param[i] = found[i];
    *out_n = n;
    return true;
}
