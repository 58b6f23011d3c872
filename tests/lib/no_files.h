/* no_files - a moment in which no file can be opened, as when a process has used up its descriptors. */
#ifndef NS_TESTS_LIB_NO_FILES_H
#define NS_TESTS_LIB_NO_FILES_H

#include <sys/resource.h>

#include "tests/lib/test.h"

static inline struct rlimit no_files_begin(void)
{
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }) == 0);
    return before;
}

/* Before anything is checked: a test that fails must be able to say so. */
static inline void no_files_end(struct rlimit before)
{
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

#endif
