#include "sys/failpoint.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"

#define VARIABLE "NIGHTSHIFT_FAILPOINT"

void fail_point(const char *name)
{
    const char *armed = getenv(VARIABLE);
    if (!armed)
        return;
    struct str place, visits;
    struct err e;
    uint64_t left = 1;
    bool counted = str_cut(str_of(armed), ':', &place, &visits);
    if (!str_is(place, name) || (counted && parse_u64(visits, 1000000, &left, &e) < 0))
        return;
    if (left <= 1)
        kill(getpid(), SIGKILL);
    /* The count is kept where it came from. */
    char next[128];
    snprintf(next, sizeof next, "%.*s:%llu", STR_ARG(place), (unsigned long long)left - 1);
    setenv(VARIABLE, next, 1);
}
