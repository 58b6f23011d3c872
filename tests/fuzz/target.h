/* target - what a fuzz target begins with: FUZZ_TARGET(data, size) { … return 0; }
 *
 * Under libFuzzer each target is a program.  In the tests all of them are one (replay.c), so each
 * joins under the name of its file before main begins.
 */
#ifndef NS_TESTS_FUZZ_TARGET_H
#define NS_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

typedef int fuzz_target(const uint8_t *data, size_t size);

void replay_join(const char *file, fuzz_target *target);

#ifdef NS_REPLAY
#define FUZZ_TARGET(data, size)                                                                    \
    static fuzz_target fuzz_one;                                                                   \
    __attribute__((constructor)) static void replay_join_here(void)                                \
    {                                                                                              \
        replay_join(__FILE__, fuzz_one);                                                           \
    }                                                                                              \
    static int fuzz_one(const uint8_t *data, size_t size)
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#define FUZZ_TARGET(data, size) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#endif

#endif
