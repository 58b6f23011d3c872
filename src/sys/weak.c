#include "sys/weak.h"

#include "base/str.h"

bool weak_here(const char *name)
{
    const char *names = getenv("NIGHTSHIFT_WEAK");
    struct str rest = str_of(names ? names : ""), one;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        if (str_is(one, name))
            return true;
    }
    return false;
}
