#include "control/environ.h"

#include "tests/lib/test.h"

static const char *value(const char *const *env, const char *key)
{
    size_t n = strlen(key);
    for (; *env; env++)
        if (strncmp(*env, key, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* Three replicas: the first and the last on node 4. */
static const struct slot slots[] = { { .node = 4 }, { .node = 2 }, { .node = 4 } };

static struct environ_of of_job(const struct spec *s)
{
    return (struct environ_of){ .task = { .job = 17, .run = 3, .replica = 2 },
                                .spec = s,
                                .tenant = STR("vision"),
                                .user = STR("ana"),
                                .name = STR("train"),
                                .slots = slots,
                                .n_slots = 3,
                                .restarts = 2 };
}

static void a_task_is_told_who_it_is(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s = { .freeze_signal = 10,
                      .workdir = STR("/home/ana/x"),
                      .request = { .cpu_milli = 4500, .gpus = 2, .replicas = 3 } };
    struct environ_of of = of_job(&s);
    const char *const *env = environ_make(&of, &a);
    static const char *const want[][2] = {
        { "NIGHTSHIFT_JOB_ID", "17" },
        { "NIGHTSHIFT_REPLICA", "2" },
        { "NIGHTSHIFT_TENANT", "vision" },
        { "NIGHTSHIFT_USER", "ana" },
        { "NIGHTSHIFT_JOB_NAME", "train" },
        { "NIGHTSHIFT_RESTART", "2" },
        { "NIGHTSHIFT_FREEZE_SIGNAL", "10" },
        { "RANK", "2" },
        { "WORLD_SIZE", "3" },
        { "LOCAL_RANK", "1" },
        { "LOCAL_WORLD_SIZE", "2" },
        { "MASTER_ADDR", "127.0.0.1" },
        { "SLURM_JOB_ID", "17" },
        { "SLURM_PROCID", "2" },
        { "SLURM_LOCALID", "1" },
        { "SLURM_NTASKS", "3" },
        { "SLURM_CPUS_PER_TASK", "4" },
        { "SLURM_GPUS_ON_NODE", "4" },
        { "SLURM_RESTART_COUNT", "2" },
        { "SLURM_SUBMIT_DIR", "/home/ana/x" },
        { "SLURM_JOB_ACCOUNT", "vision" },
        { "SLURM_JOB_USER", "ana" },
    };
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        CHECK_STR(value(env, want[i][0]), want[i][1]);
    CHECK_STR(value(env, "NIGHTSHIFT_ARRAY_INDEX"), NULL);
    CHECK_STR(value(env, "SLURM_ARRAY_TASK_ID"), NULL);
}

static void a_single_task_is_no_rank_of_anything(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s = { .request = { .replicas = 1 } };
    struct environ_of of = of_job(&s);
    of.task.replica = 0;
    of.n_slots = 1;
    const char *const *env = environ_make(&of, &a);
    CHECK_STR(value(env, "RANK"), NULL);
    CHECK_STR(value(env, "MASTER_ADDR"), NULL);
    CHECK_STR(value(env, "SLURM_NTASKS"), "1");
    CHECK_STR(value(env, "SLURM_CPUS_PER_TASK"), "1"); /* a part of one counts as one */
    CHECK_STR(value(env, "SLURM_GPUS_ON_NODE"), NULL);
    CHECK_STR(value(env, "SLURM_SUBMIT_DIR"), NULL);
}

static void a_member_of_an_array_knows_its_index(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s = { .request = { .replicas = 1 } };
    struct environ_of of = of_job(&s);
    of.array = 15;
    of.array_index = 40;
    const char *const *env = environ_make(&of, &a);
    CHECK_STR(value(env, "NIGHTSHIFT_ARRAY_ID"), "15");
    CHECK_STR(value(env, "NIGHTSHIFT_ARRAY_INDEX"), "40");
    CHECK_STR(value(env, "SLURM_ARRAY_JOB_ID"), "15");
    CHECK_STR(value(env, "SLURM_ARRAY_TASK_ID"), "40");
}

static void what_the_user_set_wins(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    static const char *const own[] = { "MASTER_PORT=1", "RANKS=9", "WORLD_SIZE=", NULL };
    struct spec s = { .env = own, .n_env = 3, .request = { .replicas = 3 } };
    struct environ_of of = of_job(&s);
    const char *const *env = environ_make(&of, &a);
    CHECK_STR(value(env, "MASTER_PORT"), NULL);
    CHECK_STR(value(env, "WORLD_SIZE"), NULL);
    CHECK_STR(value(env, "RANK"), "2"); /* RANKS is another word */
}

static const struct test tests[] = {
    { "a task is told who it is", a_task_is_told_who_it_is },
    { "a single task is no rank of anything", a_single_task_is_no_rank_of_anything },
    { "a member of an array knows its index", a_member_of_an_array_knows_its_index },
    { "what the user set wins", what_the_user_set_wins },
};
TEST_CASES(tests)
