/* Letting go of what is over: with logs that are folders here, and a keeper that may not listen. */
#include <dirent.h>
#include <sys/stat.h>

#include "control/state.h"
#include "tests/lib/controlling.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define SHORT                                                                                      \
    "{\"command\":[\"true\"],\"resources\":{\"gpus\":1},\"env\":{\"SIM_RUN_MS\":\"1000\"}}"
#define LONG                                                                                       \
    "{\"command\":[\"sleep\",\"1\"],\"resources\":{\"gpus\":1},"                                   \
    "\"env\":{\"SIM_RUN_MS\":\"900000000000\"}}"

/* The engine's ways to its logs are replaced by these, for all tests in turn. */
static struct {
    char folder[64];
    struct engine_ops ops;
    int asked;
    bool deaf; /* requests are lost */
} logs;

static const char *log_dir(void *self, struct task_id t, char *out, size_t n)
{
    char text[64];
    (void)self;
    snprintf(out, n, "%s/%s", logs.folder, task_format(t, text));
    return out;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *f; d && (f = readdir(d));)
        unlinkat(dirfd(d), f->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

static int purge(void *self, struct task_id t, struct err *e)
{
    char path[256];
    (void)e;
    logs.asked++;
    if (!logs.deaf)
        remove_folder(log_dir(self, t, path, sizeof path));
    return 0;
}

static void make_log(uint64_t job, uint32_t run, size_t bytes)
{
    char path[256], file[300];
    log_dir(NULL, (struct task_id){ job, run, 0 }, path, sizeof path);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(file, sizeof file, "%s/log.0", path);
    FILE *f = fopen(file, "w");
    CHECK(f != NULL);
    for (size_t i = 0; i < bytes; i++)
        fputc('x', f);
    CHECK(fclose(f) == 0);
}

static bool log_is_there(uint64_t job, uint32_t run)
{
    char path[256];
    struct stat st;
    return stat(log_dir(NULL, (struct task_id){ job, run, 0 }, path, sizeof path), &st) == 0;
}

static void use_folders(struct controlling *t, const struct control_keep *keep)
{
    logs.ops = *t->c->engine.ops;
    logs.ops.log_dir = log_dir;
    logs.ops.purge = purge;
    t->c->engine.ops = &logs.ops;
    t->c->config.keep = *keep;
}

static void begin(struct controlling *t, struct control_keep keep)
{
    controlling_begin(t, NULL);
    logs.asked = 0;
    logs.deaf = false;
    snprintf(logs.folder, sizeof logs.folder, "/tmp/nightshift-keep-XXXXXX");
    CHECK(mkdtemp(logs.folder) != NULL);
    use_folders(t, &keep);
}

static void end(struct controlling *t)
{
    char path[512];
    DIR *d = opendir(logs.folder);
    CHECK(d != NULL);
    for (struct dirent *f; (f = readdir(d));)
        if (f->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", logs.folder, f->d_name);
            remove_folder(path);
        }
    closedir(d);
    rmdir(logs.folder);
    controlling_end(t);
}

/* So many pieces as are due when nothing else happens. */
static void pieces(struct controlling *t, int n)
{
    for (int i = 0; i < n; i++) {
        keep_piece(t->c);
        controlling_settle(t);
    }
}

/* A job that ran and ended, with a log of so many bytes. */
static uint64_t ended(struct controlling *t, size_t bytes)
{
    uint64_t id = controlling_submit(t, SHORT);
    controlling_settle(t);
    make_log(id, 1, bytes);
    controlling_wait(t, 2000);
    CHECK_STR(controlling_state(t, id), "succeeded");
    return id;
}

static struct store_log log_of(struct controlling *t, uint64_t id)
{
    struct store_log log = { 0 };
    struct err e;
    CHECK(store_log_get(t->s.store, id, &log, &e) == 0);
    return log;
}

static bool job_is_there(struct controlling *t, uint64_t id)
{
    struct store_job j;
    struct err e;
    return store_job_get(t->s.store, &storing_all, id, &t->s.arena, &j, &e) == 0;
}

static void logs_are_measured_and_go_when_they_are_old(void)
{
    struct controlling t;
    begin(&t, (struct control_keep){ .logs_ms = 30 * DAY_MS });
    uint64_t id = ended(&t, 5000);
    pieces(&t, 2);
    CHECK(log_of(&t, id).measured && log_of(&t, id).bytes >= 5000);
    controlling_wait(&t, 29 * DAY_MS);
    uint64_t newer = ended(&t, 10);
    pieces(&t, 3);
    CHECK(log_is_there(id, 1) && log_of(&t, id).removed_ms == 0);
    controlling_wait(&t, 2 * DAY_MS);
    pieces(&t, 4);
    CHECK(!log_is_there(id, 1) && log_is_there(newer, 1));
    CHECK(log_of(&t, id).removed_ms == t.now_ms && log_of(&t, id).why == LOG_AGE);
    CHECK(log_of(&t, newer).removed_ms == 0);
    CHECK_INT(control_stats(t.c).logs_removed, 1);
    CHECK(job_is_there(&t, id));
    end(&t);
}

static void the_oldest_logs_go_when_all_are_too_large(void)
{
    struct controlling t;
    uint64_t id[4];
    begin(&t, (struct control_keep){ .logs_bytes = 250000 });
    for (int i = 0; i < 4; i++)
        id[i] = ended(&t, 100000);
    pieces(&t, 6);
    CHECK(!log_is_there(id[0], 1) && !log_is_there(id[1], 1));
    CHECK(log_is_there(id[2], 1) && log_is_there(id[3], 1)); /* and no more than needed */
    CHECK(log_of(&t, id[0]).why == LOG_ROOM && log_of(&t, id[2]).removed_ms == 0);
    end(&t);
}

static uint64_t ended_of(struct controlling *t, const char *tenant, size_t bytes)
{
    char spec[300];
    snprintf(spec, sizeof spec, "{\"tenant\":\"%s\",%s", tenant, &SHORT[1]);
    uint64_t id = controlling_submit(t, spec);
    controlling_settle(t);
    make_log(id, 1, bytes);
    controlling_wait(t, 2000);
    CHECK_STR(controlling_state(t, id), "succeeded");
    return id;
}

static void whoever_has_most_output_lets_go_first(void)
{
    static const struct control_tenant_def both[] = { { .name = STR("vision") },
                                                      { .name = STR("speech") } };
    struct control_tenant_def tenants[] = { both[0], both[1] };
    struct controlling t;
    uint64_t large[5], small[2];
    for (size_t i = 0; i < ARRAY_LEN(tenants); i++)
        tenants[i].spec = tenant_default();
    struct control_keep keep = { .logs_bytes = 330000 };
    begin(&t, keep);
    controlling_kill(&t);
    t.tenant = tenants;
    t.tenants = ARRAY_LEN(tenants);
    controlling_boot(&t);
    use_folders(&t, &keep);
    small[0] = ended_of(&t, "speech", 40000);
    for (int i = 0; i < 5; i++)
        large[i] = ended_of(&t, "vision", 100000);
    pieces(&t, 8);
    /* The oldest of all is speech's, and stays: vision has most, and more than all may have together. */
    CHECK(log_is_there(small[0], 1) && log_of(&t, small[0]).removed_ms == 0);
    CHECK(!log_is_there(large[0], 1) && !log_is_there(large[1], 1) && !log_is_there(large[2], 1));
    CHECK(log_is_there(large[3], 1) && log_is_there(large[4], 1));
    CHECK(log_of(&t, large[0]).why == LOG_ROOM);
    CHECK_INT(control_stats(t.c).logs_removed, 3);
    /* Speech has most now, and its oldest goes. */
    small[1] = ended_of(&t, "speech", 300000);
    pieces(&t, 8);
    CHECK(!log_is_there(small[0], 1) && !log_is_there(small[1], 1));
    CHECK(log_is_there(large[3], 1) && log_is_there(large[4], 1));
    end(&t);
}

static void nothing_of_a_living_job_is_touched(void)
{
    struct controlling t;
    begin(&t, (struct control_keep){ .logs_ms = 1000, .jobs_ms = 2000, .logs_bytes = 1 });
    uint64_t runs = controlling_submit(&t, LONG);
    uint64_t held = controlling_submit(&t, "{\"command\":[\"true\"],\"held\":true}");
    uint64_t again = controlling_submit(&t, "{\"command\":[\"false\"],\"retries\":1,\"env\":{\"SIM_"
                                            "RUN_MS\":\"1000\",\"SIM_EXIT\":\"1\","
                                            "\"SIM_START_MS\":\"0\"},\"resources\":{\"gpus\":1}}");
    controlling_settle(&t);
    make_log(runs, 1, 50000);
    make_log(again, 1, 50000);
    controlling_wait(&t, 1500); /* its first run failed, the second goes on */
    CHECK_STR(controlling_state(&t, again), "running");
    CHECK_INT(controlling_job(&t, again).now.run, 2);
    CHECK(controlling_verb(&t, again, VERB_FREEZE) == 0);
    controlling_wait(&t, 400 * DAY_MS);
    pieces(&t, 6);
    CHECK_STR(controlling_state(&t, runs), "running");
    CHECK_STR(controlling_state(&t, held), "held");
    CHECK_STR(controlling_state(&t, again), "paused");
    CHECK(log_is_there(runs, 1) && log_is_there(again, 1));
    CHECK_INT(logs.asked, 0);
    end(&t);
}

static void old_jobs_are_forgotten_with_their_logs_and_their_usage_stays(void)
{
    struct controlling t;
    struct store_usages u;
    struct err e;
    begin(&t, (struct control_keep){ .jobs_ms = 365 * DAY_MS });
    uint64_t old = ended(&t, 10), newer;
    struct store_span all = { 0, t.now_ms + 999 * DAY_MS, t.now_ms + 999 * DAY_MS, 0 };
    CHECK(store_usage(t.s.store, &storing_all, &all, &t.s.arena, &u, &e) == 0 && u.n == 1);
    uint64_t gpu_ms = u.v[0].gpu_ms;
    controlling_wait(&t, 364 * DAY_MS);
    newer = ended(&t, 10);
    pieces(&t, 4);
    CHECK(job_is_there(&t, old));
    controlling_wait(&t, 2 * DAY_MS);
    pieces(&t, 6);
    CHECK(!job_is_there(&t, old) && !log_is_there(old, 1));
    CHECK(job_is_there(&t, newer) && log_is_there(newer, 1));
    CHECK(store_usage(t.s.store, &storing_all, &all, &t.s.arena, &u, &e) == 0);
    CHECK_INT(u.v[0].gpu_ms, 2 * gpu_ms);
    CHECK(gpu_ms > 0 && u.n == 1 && u.v[0].gpu_ms == 2 * gpu_ms && u.v[0].runs == 2);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK(controlling_submit(&t, SHORT) == newer + 1);
    end(&t);
}

static void what_was_asked_for_and_lost_is_asked_for_again(void)
{
    struct controlling t;
    struct control_keep keep = { .logs_ms = DAY_MS, .jobs_ms = DAY_MS };
    begin(&t, keep);
    uint64_t id = ended(&t, 10), last = ended(&t, 10);
    controlling_wait(&t, 2 * DAY_MS);
    logs.deaf = true;
    pieces(&t, 3);
    CHECK(logs.asked > 0 && log_is_there(id, 1));
    CHECK(log_of(&t, id).removed_ms == 0 && job_is_there(&t, id));
    keep_piece(t.c); /* it dies with whatever was on its way */
    controlling_kill(&t);
    logs.deaf = false;
    controlling_boot(&t);
    use_folders(&t, &keep);
    pieces(&t, 6);
    CHECK(!log_is_there(id, 1) && !job_is_there(&t, id));
    CHECK(!log_is_there(last, 1) && job_is_there(&t, last)); /* ids go on from the newest */
    end(&t);
}

static void many_are_done_in_pieces(void)
{
    struct controlling t;
    uint64_t left = 0;
    begin(&t, (struct control_keep){ .logs_ms = DAY_MS, .jobs_ms = DAY_MS });
    for (int i = 0; i < 200; i++) {
        uint64_t id = controlling_submit(&t, SHORT);
        CHECK(id > 0);
    }
    controlling_wait(&t, HOUR_MS);
    controlling_wait(&t, 2 * DAY_MS);
    pieces(&t, 1);
    uint64_t n[JOB_STATE_COUNT];
    struct err e;
    CHECK(store_jobs_count(t.s.store, &storing_all, n, &e) == 0 && n[JOB_SUCCEEDED] == 200);
    pieces(&t, 20);
    CHECK(store_jobs_count(t.s.store, &storing_all, n, &e) == 0);
    left = n[JOB_SUCCEEDED];
    CHECK_INT(left, 1); /* the newest, so that ids go on */
    end(&t);
}

static int64_t wall_of(void *self)
{
    return ((int64_t *)self)[0] + ((int64_t *)self)[1];
}

static void while_the_clock_is_doubted_nothing_goes_for_its_age(void)
{
    struct controlling t;
    struct steady steady;
    int64_t wall[2];
    begin(&t, (struct control_keep){ .logs_ms = DAY_MS, .jobs_ms = DAY_MS, .logs_bytes = 8000 });
    uint64_t small = ended(&t, 10), large = ended(&t, 10000), last = ended(&t, 10);
    wall[0] = t.now_ms;
    wall[1] = 0;
    struct steady_config c = { { .now_ms = wall_of, .self = wall }, clock_manual(&t.now_ms), "a" };
    steady_begin(&steady, &c, STR(""));
    t.c->config.clock = steady_clock(&steady);
    t.c->config.steady = &steady;
    wall[1] = 400 * DAY_MS;
    pieces(&t, 8);
    CHECK(job_is_there(&t, small) && job_is_there(&t, large));
    CHECK(!log_is_there(small, 1) &&
          !log_is_there(large, 1)); /* the disk is bounded all the same */
    CHECK(log_is_there(last, 1));
    control_clock_confirm(t.c);
    controlling_settle(&t);
    use_folders(&t, &t.c->config.keep);
    pieces(&t, 8);
    CHECK(!job_is_there(&t, small) && !job_is_there(&t, large) && !log_is_there(last, 1));
    end(&t);
}

static void no_more_than_a_part_goes_in_a_day(void)
{
    struct controlling t;
    uint64_t n[JOB_STATE_COUNT];
    struct err e;
    begin(&t, (struct control_keep){ .jobs_ms = 300 * DAY_MS, .daily_percent = 25 });
    for (int i = 0; i < 2400; i++)
        CHECK(controlling_submit(&t, "{\"command\":[\"x\"],\"held\":true}") > 0);
    controlling_settle(&t);
    for (uint64_t i = 1; i <= 2400; i++)
        CHECK(control_verb(t.c, i, VERB_CANCEL, STR("kim"), (struct control_done){ 0 }, &e) == 0);
    controlling_settle(&t);
    controlling_wait(&t, 400 * DAY_MS);
    pieces(&t, 60);
    CHECK(store_jobs_count(t.s.store, &storing_all, n, &e) == 0);
    CHECK_INT(n[JOB_CANCELLED], 2400 - 1600); /* 1000 and a quarter */
    t.c->keeping.day.since_ns = 1;            /* the next day */
    t.c->keeping.day.since_ns -= 2 * DAY_MS * 1000000;
    pieces(&t, 60);
    CHECK(store_jobs_count(t.s.store, &storing_all, n, &e) == 0);
    CHECK_INT(n[JOB_CANCELLED], 1);
    end(&t);
}

static const struct test tests[] = {
    { "whoever has most output lets go first", whoever_has_most_output_lets_go_first },
    { "logs are measured, and go when they are old", logs_are_measured_and_go_when_they_are_old },
    { "the oldest logs go when all are too large", the_oldest_logs_go_when_all_are_too_large },
    { "nothing of a living job is touched", nothing_of_a_living_job_is_touched },
    { "old jobs are forgotten with their logs, and their usage stays",
      old_jobs_are_forgotten_with_their_logs_and_their_usage_stays },
    { "what was asked for and lost is asked for again",
      what_was_asked_for_and_lost_is_asked_for_again },
    { "many are done in pieces", many_are_done_in_pieces },
    { "while the clock is doubted nothing goes for its age",
      while_the_clock_is_doubted_nothing_goes_for_its_age },
    { "no more than a part goes in a day", no_more_than_a_part_goes_in_a_day },
};
TEST_CASES(tests)
