#include "core/policy.h"

#define MINUTE_MS (60 * INT64_C(1000))
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

static const struct policy_key keys[] = {
    { "half_life_ms", offsetof(struct policy, half_life_ms), MINUTE_MS, 3650 * DAY_MS, 7 * DAY_MS,
      "After this long a used GPU-hour counts half against its tenant" },
    { "age_step_ms", offsetof(struct policy, age_step_ms), MINUTE_MS, 3650 * DAY_MS, DAY_MS,
      "Waiting this long lifts a job by one priority class" },
    { "age_max_steps", offsetof(struct policy, age_max_steps), 0, 3, 2,
      "Age lifts a job by at most this many classes" },
    { "claim_after_ms", offsetof(struct policy, claim_after_ms), 0, 3650 * DAY_MS, 12 * HOUR_MS,
      "A job that waited this long for room may have room kept for it" },
    { "claims_max", offsetof(struct policy, claims_max), 0, 1000, 2,
      "So many jobs at a time may have room kept" },
    { "cpu_cost_milli", offsetof(struct policy, cpu_cost_milli), 0, 1000, 10,
      "What one CPU costs, in thousandths of a reference GPU" },
    { "past_milli", offsetof(struct policy, past_milli), 0, 10000, 200,
      "What the past counts next to the present, in thousandths" },
    { "take_back", offsetof(struct policy, take_back), 0, 1, 1,
      "1: jobs are frozen for others whose turn it is" },
    { "take_gain_milli", offsetof(struct policy, take_gain_milli), 1000, 100000, 2000,
      "A job of the same user is taken back for one worth so much more, in thousandths" },
    { "min_run_ms", offsetof(struct policy, min_run_ms), 0, 3650 * DAY_MS, 2 * MINUTE_MS,
      "A job that has run for less since it last started is not taken back" },
    { "thaw_run_ms", offsetof(struct policy, thaw_run_ms), 0, 3650 * DAY_MS, 12 * MINUTE_MS,
      "After a thaw it is left alone for so long, times the number of times it was taken back" },
    { "express_part_milli", offsetof(struct policy, express_part_milli), 0, 1000000, 2000,
      "A job that has had less than this part of an average job's GPU time is express" },
    { "express_milli", offsetof(struct policy, express_milli), 1000, 100000, 3000,
      "For an express job its share may be so many times above another's, in thousandths" },
    { "review_ms", offsetof(struct policy, review_ms), 0, DAY_MS, 60000,
      "So often all that wait are looked at for taking back" },
    { "window_lead_ms", offsetof(struct policy, window_lead_ms), MINUTE_MS, DAY_MS, 30 * MINUTE_MS,
      "So long before a window ends only jobs start there that surely end in time" },
    { "budget_freezes", offsetof(struct policy, budget_freezes), 0, 1, 1,
      "1: when a budget is spent, running jobs are frozen that lose no work by it; 0: they go on" },
};

_Static_assert(ARRAY_LEN(keys) <= POLICY_KEYS_MAX, "readers have room for them");

const struct policy_key *policy_key(size_t i)
{
    return i < ARRAY_LEN(keys) ? &keys[i] : NULL;
}

int64_t *policy_value(struct policy *p, const struct policy_key *k)
{
    return (int64_t *)(void *)((char *)p + k->offset);
}

struct policy policy_default(void)
{
    struct policy p = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        *policy_value(&p, &keys[i]) = keys[i].dflt;
    return p;
}

int policy_check(const struct policy *p, struct err *e)
{
    struct policy copy = *p;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        int64_t v = *policy_value(&copy, &keys[i]);
        if (v < keys[i].min || v > keys[i].max)
            return err_set(e, ERR_INVALID, "policy '%s' is %lld; it must lie between %lld and %lld",
                           keys[i].name, (long long)v, (long long)keys[i].min,
                           (long long)keys[i].max);
    }
    return 0;
}
