/* What a program says about its version: what is found lies in the text and is written whole. */
#include "doctor/look.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(data, size)
{
    struct look_version v = { 0 };
    if (!look_find_version((struct str){ (const char *)data, size }, &v))
        return 0;
    size_t n = strlen(v.text);
    if (n < 3 || n >= sizeof v.text || v.major > 1000000 || v.minor > 1000000)
        abort();
    if (!memmem(data, size, v.text, n) || look_older(&v, v.major, v.minor) ||
        !look_older(&v, v.major, v.minor + 1))
        abort();
    return 0;
}
