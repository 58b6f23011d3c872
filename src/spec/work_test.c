#include "spec/work.h"

#include "tests/lib/test.h"

static struct spec job(const char *name, const char *image, const char *const argv[3])
{
    struct spec s = { .name = str_of(name), .image = str_of(image), .argv = argv };
    while (s.n_args < 3 && argv[s.n_args])
        s.n_args++;
    return s;
}

static void the_program_is_named_without_its_folder(void)
{
    static const struct {
        const char *argv[3], *want;
    } rows[] = {
        { { "/usr/bin/nvidia-smi" }, "nvidia-smi" },
        { { "python", "x.py" }, "python" },
        { { "sh", "-c", "  ./bin/run.sh 1; true" }, "run.sh" },
        { { "sh", "-c", "" }, "sh" },
        { { "make/" }, "" },
        { { NULL }, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec s = job("x", "host", rows[i].argv);
        CHECK_AT(i, str_is(work_program(&s), rows[i].want));
    }
}

static void jobs_that_differ_in_numbers_only_are_one_family(void)
{
    static const struct {
        const char *name[2], *image[2], *argv[2][3];
        bool same;
    } rows[] = {
        { { "train-001", "train-002" }, { "host", "host" }, { { "a" }, { "a" } }, true },
        { { "train", "train_7.2" }, { "host", "host" }, { { "a" }, { "a" } }, true },
        { { "fold3-run", "fold11-run" }, { "host", "host" }, { { "a" }, { "a" } }, true },
        { { "train", "eval" }, { "host", "host" }, { { "a" }, { "a" } }, false },
        { { "x", "x" }, { "host", "host" }, { { "/old/a" }, { "/new/a", "-v" } }, true },
        { { "x", "x" }, { "host", "host" }, { { "a" }, { "b" } }, false },
        { { "x", "x" },
          { "host", "host" },
          { { "sh", "-c", "a 1" }, { "sh", "-c", "b 1" } },
          false },
        { { "x", "x" }, { "lab/train:v1", "lab/train:v2" }, { { "a" }, { "b" } }, true },
        { { "x", "x" },
          { "r:5000/train:v1", "r:5000/train@sha256:ab" },
          { { "a" }, { "a" } },
          true },
        { { "x", "x" }, { "r:5000/train", "r:5000/eval" }, { { "a" }, { "a" } }, false },
        { { "x", "x" }, { "host", "python:3.11" }, { { "a" }, { "a" } }, false },
        { { "ab", "a" }, { "c", "bc" }, { { "a" }, { "a" } }, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec a = job(rows[i].name[0], rows[i].image[0], rows[i].argv[0]);
        struct spec b = job(rows[i].name[1], rows[i].image[1], rows[i].argv[1]);
        CHECK_AT(i, (work_family(&a) == work_family(&b)) == rows[i].same);
        CHECK_AT(i, work_family(&a) != 0);
    }
}

/* Journals have it: another number would forget what was learnt. */
static void the_number_of_a_family_stays(void)
{
    struct spec s = job("train-001", "host", (const char *const[3]){ "python", "train.py" });
    CHECK_INT(work_family(&s), 3006567169);
}

static const struct test tests[] = {
    { "the program is named without its folder", the_program_is_named_without_its_folder },
    { "jobs that differ in numbers only are one family",
      jobs_that_differ_in_numbers_only_are_one_family },
    { "the number of a family stays", the_number_of_a_family_stays },
};
TEST_CASES(tests)
