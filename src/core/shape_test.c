#include "core/shape.h"

#include "base/rng.h"
#include "tests/lib/test.h"

static void equal_requests_are_one_shape(void)
{
    struct shapes s;
    shapes_init(&s);
    struct request a = { .replicas = 2, .gpus = 1, .cpu_milli = 4000 }, b = a;
    uint32_t first = shapes_ref(&s, &a);
    CHECK_INT(shapes_ref(&s, &b), first);
    CHECK_INT(s.at[first].refs, 2);
    b.mem_mib = 1;
    uint32_t other = shapes_ref(&s, &b);
    CHECK(other != first && s.n == 2);
    shapes_free(&s);
}

static void every_field_makes_a_difference(void)
{
    struct shapes s;
    shapes_init(&s);
    const struct request r[] = {
        { .replicas = 1 },
        { .replicas = 2 },
        { .replicas = 1, .models = 1 },
        { .replicas = 1, .cpu_milli = 1 },
        { .replicas = 1, .mem_mib = 1 },
        { .replicas = 1, .gpu_mem_mib = 1 },
        { .replicas = 1, .gpus = 1 },
        { .replicas = 1, .gpu_milli = 1 },
        { .replicas = 1, .scope = SCOPE_NODE },
        { .replicas = 1, .layout = LAYOUT_SPREAD },
        { .replicas = 1, .linked = 1 },
        { .replicas = 1, .zone = 1 },
        { .replicas = 1, .traits = 1 },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(r); i++)
        CHECK_INT(shapes_ref(&s, &r[i]), i);
    for (uint32_t i = 0; i < ARRAY_LEN(r); i++)
        CHECK_INT(shapes_ref(&s, &r[i]), i);
    shapes_free(&s);
}

static void the_place_of_a_forgotten_shape_is_used_again(void)
{
    struct shapes s;
    shapes_init(&s);
    struct request r = { .replicas = 1 };
    uint32_t a = shapes_ref(&s, &r);
    s.no_room[a] = true;
    shapes_unref(&s, a);
    r.gpus = 3;
    CHECK_INT(shapes_ref(&s, &r), a);
    CHECK(s.n == 1 && !s.no_room[a] && s.at[a].refs == 1 && s.at[a].groups == NONE);
    shapes_free(&s);
}

static void agrees_with_a_plain_list(void)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct shapes s;
        struct rng r = { seed };
        uint32_t refs[64] = { 0 }, at[64];
        shapes_init(&s);
        for (int step = 0; step < 3000; step++) {
            uint32_t i = rng_below(&r, 64);
            struct request q = { .replicas = 1 + i % 8, .gpus = (uint16_t)(i / 8) };
            if (rng_below(&r, 2)) {
                uint32_t got = shapes_ref(&s, &q);
                CHECK_AT(seed, refs[i] == 0 || got == at[i]);
                at[i] = got;
                refs[i]++;
            } else if (refs[i]) {
                shapes_unref(&s, at[i]);
                refs[i]--;
            }
            CHECK_AT(seed, refs[i] == 0 || (s.at[at[i]].refs == refs[i] &&
                                            s.at[at[i]].request.replicas == q.replicas &&
                                            s.at[at[i]].request.gpus == q.gpus));
        }
        shapes_free(&s);
    }
}

static void amounts_count_every_replica_and_one_job(void)
{
    struct request r = { .replicas = 3, .gpus = 2, .cpu_milli = 1500, .mem_mib = 100 };
    struct amounts a = request_amounts(&r, 0);
    CHECK_INT(a.of[RES_GPU], 6000);
    CHECK_INT(a.of[RES_CPU], 4500);
    CHECK_INT(a.of[RES_MEM], 300);
    CHECK_INT(a.of[RES_JOBS], 1);
    r = (struct request){ .replicas = 4, .gpu_mem_mib = 1000 };
    CHECK_INT(request_amounts(&r, 250).of[RES_GPU], 1000);
    r = (struct request){ .replicas = REPLICAS_MAX, .mem_mib = UINT32_MAX };
    CHECK(request_amounts(&r, 0).of[RES_MEM] == (uint64_t)REPLICAS_MAX * UINT32_MAX);
}

static const struct test tests[] = {
    { "equal requests are one shape", equal_requests_are_one_shape },
    { "every field makes a difference", every_field_makes_a_difference },
    { "the place of a forgotten shape is used again",
      the_place_of_a_forgotten_shape_is_used_again },
    { "agrees with a plain list", agrees_with_a_plain_list },
    { "amounts count every replica and one job", amounts_count_every_replica_and_one_job },
};
TEST_CASES(tests)
