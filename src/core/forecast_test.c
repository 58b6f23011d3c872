#include "core/state.h"
#include "tests/lib/small.h"

#include "base/rng.h"

/* One machine of 8 GPUs; jobs of one GPU arrive in bursts and run for about an hour. */
static struct small lab(void)
{
    struct small s = small_new();
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.take_back = 0;
    small_apply(&s, p);
    small_apply(&s, tenant_event("a", "", 1));
    small_apply(&s, node_event("n0", "x", 8));
    return s;
}

static void nothing_is_said_of_a_job_that_does_not_wait(void)
{
    AUTO(small_free) struct small s = lab();
    struct eta eta;
    uint64_t job = small_gpus(&s, "a", 1);
    small_pass(&s);
    CHECK(!core_eta(s.c, (job_id){ job }, s.now_ms, &eta));
    CHECK(!core_eta(s.c, (job_id){ 99 }, s.now_ms, &eta));
}

static void who_stands_further_back_is_told_a_later_time(void)
{
    AUTO(small_free) struct small s = lab();
    struct eta first, last;
    for (int i = 0; i < 8; i++)
        small_gpus(&s, "a", 1);
    small_pass(&s);
    uint64_t job = small_gpus(&s, "a", 1);
    small_pass(&s);
    for (int i = 0; i < 30; i++)
        small_gpus(&s, "a", 1);
    small_pass(&s);
    CHECK(core_eta(s.c, (job_id){ job }, s.now_ms, &first));
    CHECK(core_eta(s.c, (job_id){ s.last }, s.now_ms, &last));
    CHECK(first.p50_ms > s.now_ms && first.p90_ms >= first.p50_ms);
    CHECK(last.p50_ms > first.p50_ms && last.p90_ms > first.p90_ms);
}

static void a_forecast_does_not_lie_in_the_past(void)
{
    AUTO(small_free) struct small s = lab();
    struct eta eta;
    for (int i = 0; i < 9; i++)
        small_gpus(&s, "a", 1);
    for (int hour = 0; hour < 100; hour++) {
        small_pass(&s);
        CHECK(core_eta(s.c, (job_id){ 9 }, s.now_ms, &eta));
        CHECK(eta.p50_ms > s.now_ms && eta.p90_ms >= eta.p50_ms);
        s.now_ms += HOUR_MS;
    }
}

/* Waits are spread by factors: what was foreseen has passed, and it is not "any moment" for hours. */
static void whoever_waits_for_longer_than_foreseen_is_told_a_later_time_again_and_again(void)
{
    AUTO(small_free) struct small s = lab();
    struct eta eta;
    for (int i = 0; i < 9; i++)
        small_gpus(&s, "a", 1);
    small_pass(&s);
    for (int hour = 1; hour < 100; hour++) {
        s.now_ms += HOUR_MS;
        small_pass(&s);
        CHECK(core_eta(s.c, (job_id){ 9 }, s.now_ms, &eta));
        CHECK_AT(hour, eta.p50_ms - s.now_ms >= hour * HOUR_MS / 4);
        CHECK_AT(hour, eta.p90_ms - s.now_ms >= hour * HOUR_MS / 2);
        CHECK_AT(hour, eta.p90_ms - s.now_ms < 10 * hour * HOUR_MS);
    }
}

struct tally {
    uint32_t stated, in_50, in_90;
};

/* Minute by minute: jobs end by chance, others come, and what was said is compared. */
static void live(struct small *s, struct rng *r, int minutes, struct tally *t)
{
    for (int m = 0; m < minutes; m++) {
        struct event ev = { .kind = EVENT_JOB };
        s->now_ms += MINUTE_MS;
        for (uint64_t job = s->last > 400 ? s->last - 400 : 1; job <= s->last; job++) {
            struct job_view v;
            if (!core_job(s->c, (job_id){ job }, &v) || v.state != JOB_RUNNING || rng_below(r, 60))
                continue;
            ev.job = (struct event_job){ { job }, JOB_EV_EXITED_OK };
            small_apply(s, ev);
        }
        for (uint32_t n = rng_below(r, 120) == 0 ? rng_below(r, 14) : 0; n; n--)
            small_gpus(s, "a", 1);
        small_pass(s);
        for (size_t i = 0; i < s->plan.n; i++) {
            struct job_view v;
            CHECK(core_job(s->c, s->plan.action[i].job, &v));
            ev.job = (struct event_job){ s->plan.action[i].job, JOB_EV_STARTED };
            small_apply(s, ev);
            if (!v.is_stated || s->now_ms - v.submit_ms <= MINUTE_MS)
                continue;
            t->stated++;
            t->in_50 += s->now_ms <= v.eta.p50_ms;
            t->in_90 += s->now_ms <= v.eta.p90_ms;
        }
    }
}

static void half_start_before_p50_and_nine_in_ten_before_p90(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        AUTO(small_free) struct small s = lab();
        struct rng r = { seed * 7919 };
        struct tally first = { 0 }, t = { 0 };
        live(&s, &r, 20 * 24 * 60, &first); /* it learns */
        live(&s, &r, 60 * 24 * 60, &t);
        double p50 = (double)t.in_50 / t.stated, p90 = (double)t.in_90 / t.stated;
        CHECK_AT(seed, t.stated > 500);
        CHECK_AT(seed, p50 > 0.42 && p50 < 0.58);
        CHECK_AT(seed, p90 > 0.86 && p90 < 0.94);
    }
}

static const struct test tests[] = {
    { "nothing is said of a job that does not wait", nothing_is_said_of_a_job_that_does_not_wait },
    { "who stands further back is told a later time",
      who_stands_further_back_is_told_a_later_time },
    { "whoever waits for longer than foreseen is told a later time, again and again",
      whoever_waits_for_longer_than_foreseen_is_told_a_later_time_again_and_again },
    { "a forecast does not lie in the past", a_forecast_does_not_lie_in_the_past },
    { "half start before P50 and nine in ten before P90",
      half_start_before_p50_and_nine_in_ten_before_p90 },
};
TEST_CASES(tests)
