#include "control/choose.h"

#include <stdio.h>

#include "tests/lib/test.h"

/* "4 4! 5": machines with so many GPUs, ! where something may still run.  Gives the places that were chosen. */
static const char *chosen(const char *machines, uint64_t want, char out[static 64])
{
    struct choice at[16] = { 0 };
    size_t n = 0, used = 0;
    for (const char *p = machines; *p; p++) {
        if (*p >= '1' && *p <= '9')
            at[n++].gpus = (uint32_t)(*p - '0');
        else if (*p == '!')
            at[n - 1].busy = true;
    }
    uint64_t got = choose_machines(at, n, want), sum = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (at[i].chosen)
            used += (size_t)snprintf(out + used, 64 - used, "%s%zu", used ? " " : "", i);
        sum += at[i].chosen ? at[i].gpus : 0;
    }
    CHECK_INT(sum, got);
    return out;
}

static void the_fewest_gpus_too_many_are_chosen(void)
{
    char out[64];
    CHECK_STR(chosen("5 4 4", 8, out), "1 2");
    CHECK_STR(chosen("8 2 1", 3, out), "1 2");
    CHECK_STR(chosen("8 8", 3, out), "0");
    CHECK_STR(chosen("4 6 6", 9, out), "0 1");
    CHECK_STR(chosen("1 1 1 1 4", 4, out), "4"); /* larger machines first */
    CHECK_STR(chosen("2 2 2", 4, out), "0 1");   /* and of equal ones the first */
}

static void machines_that_will_be_free_come_first(void)
{
    char out[64];
    CHECK_STR(chosen("4! 8", 4, out), "1");
    CHECK_STR(chosen("4! 2 2!", 4, out), "1 2");
    CHECK_STR(chosen("4! 2 8!", 5, out), "0 1");
}

static void what_is_not_there_is_not_chosen(void)
{
    char out[64];
    CHECK_STR(chosen("4 4!", 9, out), "");
    CHECK_STR(chosen("", 1, out), "");
    CHECK_STR(chosen("4", 0, out), "");
    CHECK_STR(chosen("4 4!", 8, out), "0 1");
}

/* All ways to choose among a few machines, against the one that was taken. */
static void no_other_choice_has_fewer_gpus_too_many(void)
{
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        struct choice at[9] = { 0 };
        uint64_t total = 0, best = UINT64_MAX;
        for (size_t i = 0; i < ARRAY_LEN(at); i++) {
            seed = seed * 1664525u + 1013904223u;
            at[i].gpus = 1 + (seed >> 16) % 16;
            total += at[i].gpus;
        }
        uint64_t want = 1 + (seed >> 8) % total;
        for (uint32_t set = 0; set < 1u << ARRAY_LEN(at); set++) {
            uint64_t sum = 0;
            for (size_t i = 0; i < ARRAY_LEN(at); i++)
                sum += set & (1u << i) ? at[i].gpus : 0;
            if (sum >= want)
                best = MIN(best, sum);
        }
        CHECK_AT(round, choose_machines(at, ARRAY_LEN(at), want) == best);
    }
}

static const struct test tests[] = {
    { "the fewest GPUs too many are chosen", the_fewest_gpus_too_many_are_chosen },
    { "machines that will be free come first", machines_that_will_be_free_come_first },
    { "what is not there is not chosen", what_is_not_there_is_not_chosen },
    { "no other choice has fewer GPUs too many", no_other_choice_has_fewer_gpus_too_many },
};
TEST_CASES(tests)
