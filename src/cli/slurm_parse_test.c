#include "cli/slurm.h"

#include "tests/lib/test.h"

static void words_of(const char *script, const char *want)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf b = BUF(4096);
    struct slurm_script s = { .rest = str_of(script) };
    const char **words;
    size_t n;
    struct err e;
    int rc;
    while ((rc = slurm_next_line(&s, &a, &words, &n, &e)) > 0) {
        buf_printf(&b, "%zu:", s.line);
        for (size_t i = 0; i < n; i++)
            buf_printf(&b, "<%s>", words[i]);
    }
    CHECK_INT(rc, 0);
    CHECK_STR(buf_str(&b).p, want);
}

static void options_stand_in_the_lines_before_the_first_command(void)
{
    words_of("#!/bin/bash\n#SBATCH -J x\n\n# words\n#SBATCH --mem=1G -c 2\necho\n#SBATCH -c 9\n",
             "2:<-J><x>5:<--mem=1G><-c><2>");
}

static void a_line_that_only_looks_like_options_is_a_comment(void)
{
    words_of("##SBATCH -J x\n# SBATCH -J y\n#SBATCHES -J z\n #SBATCH -J w\n", "");
    words_of("#SBATCH\n#SBATCH\t-J\ty\r\n", "1:2:<-J><y>");
}

static void quotes_group_and_a_hash_ends_the_line(void)
{
    words_of("#SBATCH -J 'a b' --comment=\"c \\\"d\" e\\ f # rest 'of it\n",
             "1:<-J><a b><--comment=c \"d><e f>");
}

static void a_quote_that_is_not_closed_is_an_error(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct slurm_script s = { .rest = STR("#!/bin/sh\n#SBATCH -J 'a\n") };
    const char **words;
    size_t n;
    struct err e;
    CHECK(slurm_next_line(&s, &a, &words, &n, &e) == -1);
    CHECK_STR(e.msg, "line 2: a quote is not closed");
}

static void times_are_slurms(void)
{
    static const struct {
        const char *text;
        uint64_t seconds;
    } good[] = {
        { "90", 5400 },   { "90:30", 5430 },   { "2:00:00", 7200 },
        { "1-2", 93600 }, { "1-2:30", 95400 }, { "1-02:30:15", 95415 },
        { "0", 0 },       { "UNLIMITED", 0 },  { "7-00:00:00", 604800 },
    };
    static const char *const bad[] = { "", "x", "1:2:3:4", "-5", "1-", "1:", "1-2:x", "5m" };
    struct err e;
    uint64_t v = 77;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(slurm_time_seconds(str_of(good[i].text), &v, &e) == 0);
        CHECK_INT(v, good[i].seconds);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(slurm_time_seconds(str_of(bad[i]), &v, &e) == -1 && strstr(e.hint, "H:M:S"));
}

static void memory_is_in_megabytes_unless_it_says_otherwise(void)
{
    static const struct {
        const char *text;
        uint64_t mib;
    } good[] = { { "4000", 4000 },  { "16G", 16384 }, { "16GB", 16384 }, { "512m", 512 },
                 { "1T", 1048576 }, { "2048K", 2 },   { "1K", 1 } };
    static const char *const bad[] = { "", "G", "-1G", "1.5G", "16X" };
    struct err e;
    uint64_t v;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(slurm_memory_mib(str_of(good[i].text), &v, &e) == 0);
        CHECK_INT(v, good[i].mib);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(slurm_memory_mib(str_of(bad[i]), &v, &e) == -1);
}

static void gpus_may_name_their_type(void)
{
    static const struct {
        const char *text, *type;
        uint64_t n;
    } good[] = { { "gpu", "", 1 },
                 { "gpu:2", "", 2 },
                 { "gpu:a100:4", "a100", 4 },
                 { "a100:3", "a100", 3 },
                 { "2", "", 2 } };
    static const char *const bad[] = { "", "gpu:", "gpu:a100:", "gpu:a:b:2", "x" };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct str type;
        uint64_t n;
        struct err e;
        CHECK(slurm_gpus(str_of(good[i].text), &type, &n, &e) == 0);
        CHECK(str_is(type, good[i].type) && n == good[i].n);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct str type;
        uint64_t n;
        struct err e;
        CHECK(slurm_gpus(str_of(bad[i]), &type, &n, &e) == -1);
    }
}

static void dependencies_are_jobs_to_start_after(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "afterok:17", "ok:17 " },
        { "afterok:17:18_3,afterany:19,afternotok:20", "ok:17 ok:18_3 any:19 bad:20 " },
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "after:17", "'after' is not supported" },
        { "singleton", "'singleton' is not supported" },
        { "aftercorr:17", "'aftercorr' is not supported" },
        { "17", "'17' is not supported" },
        { "afterok", "'afterok' is not supported" },
        { "afterok:17?afterok:18", "'?' is not supported" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(buf_free) struct buf b = BUF(400);
        struct opt_list list = { 0 };
        struct err e;
        CHECK_AT(i, slurm_dependency(cases[i].text, &a, &list, &e) == 0);
        for (size_t k = 0; k < list.n; k++)
            buf_printf(&b, "%s ", list.item[k]);
        CHECK_STR(b.p, cases[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct opt_list list;
        struct err e = { 0 };
        CHECK_AT(i, slurm_dependency(bad[i].text, &a, &list, &e) < 0);
        CHECK_AT(i, strstr(e.msg, bad[i].says) && e.hint[0]);
    }
}

static void file_names_are_filled_in_by_the_shell_of_the_job(void)
{
    static const struct {
        const char *pattern, *want;
    } cases[] = {
        { "plain.txt", "'plain.txt'" },
        { "out-%j.txt", "'out-'\"${SLURM_JOB_ID:-0}\"'.txt'" },
        { "%4a", "''\"${SLURM_ARRAY_TASK_ID:-0}\"''" },
        { "100%%", "'100%'" },
        { "a%z%", "'a%z%'" },
        { "it's $HOME", "'it'\\''s $HOME'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(400);
        slurm_file_expression(cases[i].pattern, &b);
        CHECK_STR(b.p, cases[i].want);
    }
}

static const struct test tests[] = {
    { "options stand in the lines before the first command",
      options_stand_in_the_lines_before_the_first_command },
    { "a line that only looks like options is a comment",
      a_line_that_only_looks_like_options_is_a_comment },
    { "quotes group, and a hash ends the line", quotes_group_and_a_hash_ends_the_line },
    { "a quote that is not closed is an error", a_quote_that_is_not_closed_is_an_error },
    { "times are Slurm's", times_are_slurms },
    { "memory is in megabytes unless it says otherwise",
      memory_is_in_megabytes_unless_it_says_otherwise },
    { "GPUs may name their type", gpus_may_name_their_type },
    { "dependencies are jobs to start after", dependencies_are_jobs_to_start_after },
    { "file names are filled in by the shell of the job",
      file_names_are_filled_in_by_the_shell_of_the_job },
};
TEST_CASES(tests)
