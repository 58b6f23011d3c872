#include <time.h>

#include "cli/field.h"
#include "cli/slurm.h"

#include "tests/lib/test.h"

static const char *const env[] = { "A=1", "NIGHTSHIFT_TOKEN=x", NULL };

struct made {
    struct buf spec, notes;
    struct json_doc *doc;
    const struct json *root;
};

static void made_clear(struct made *m)
{
    buf_free(&m->spec);
    buf_free(&m->notes);
    json_free(m->doc);
}

static int make(const struct slurm_job *j, struct slurm_program p, struct made *m, struct err *e)
{
    static const char *const args[] = { "one", "two" };
    if (!p.args) {
        p.args = args;
        p.n_args = 2;
    }
    *m = (struct made){ .spec = BUF(1u << 18), .notes = BUF(4096) };
    struct slurm_job with = *j;
    if (!with.chdir)
        with.chdir = "/w";
    if (slurm_spec(&with, &p, env, &m->spec, &m->notes, e) < 0)
        return -1;
    m->doc = json_read(buf_str(&m->spec), e);
    m->root = m->doc ? json_root(m->doc) : NULL;
    return m->doc ? 0 : -1;
}

static void part_is(struct slurm_job j, struct slurm_program p, const char *key, const char *want)
{
    AUTO(made_clear) struct made m = { 0 };
    AUTO(buf_free) struct buf b = BUF(1u << 18);
    struct err e = { 0 };
    struct json_out w = { .b = &b };
    CHECK(make(&j, p, &m, &e) == 0);
    if (json_find(m.root, key))
        json_put(&w, NULL, json_find(m.root, key));
    CHECK_STR(buf_str(&b).p, want);
}

static void notes_say(struct slurm_job j, const char *want)
{
    AUTO(made_clear) struct made m = { 0 };
    struct err e = { 0 };
    CHECK(make(&j, (struct slurm_program){ 0 }, &m, &e) == 0);
    CHECK(strstr(buf_str(&m.notes).p, want));
}

static void refused(struct slurm_job j, const char *why)
{
    AUTO(made_clear) struct made m = { 0 };
    struct err e = { 0 };
    CHECK(make(&j, (struct slurm_program){ 0 }, &m, &e) == -1);
    CHECK_INT(e.code, ERR_INVALID);
    CHECK(strstr(e.msg, why));
}

static void resources_are_ours(void)
{
    struct slurm_program p = { 0 };
    part_is((struct slurm_job){ .gres = "gpu:a100:2", .cpus = "4", .mem = "16G" }, p, "resources",
            "{\"gpus\":2,\"gpu_type\":\"a100\",\"cpus\":4,\"mem\":\"16384Mi\"}");
    part_is((struct slurm_job){ .cpus = "4", .mem_per_cpu = "2G" }, p, "resources",
            "{\"cpus\":4,\"mem\":\"8192Mi\"}");
    part_is((struct slurm_job){ .gpus = "2", .mem_per_gpu = "10G" }, p, "resources",
            "{\"gpus\":2,\"mem\":\"20480Mi\"}");
    part_is((struct slurm_job){ .ntasks = "3", .cpus = "2" }, p, "resources", "{\"cpus\":6}");
    part_is((struct slurm_job){ .time = "1:00:00" }, p, "max_time", "\"3600s\"");
    part_is((struct slurm_job){ .time = "UNLIMITED" }, p, "max_time", "");
    part_is((struct slurm_job){ .account = "vision" }, p, "tenant", "\"vision\"");
    part_is((struct slurm_job){ .hold = true }, p, "held", "true");
}

static void several_machines_are_replicas(void)
{
    struct slurm_program batch = { 0 }, tasks = { .tasks = true };
    part_is((struct slurm_job){ .nodes = "2" }, batch, "replicas", "2");
    part_is((struct slurm_job){ .nodes = "2" }, batch, "placement", "{\"layout\":\"spread\"}");
    part_is((struct slurm_job){ .nodes = "2", .gpus = "8" }, batch, "resources", "{\"gpus\":4}");
    part_is((struct slurm_job){ .ntasks = "4" }, batch, "replicas", "");
    part_is((struct slurm_job){ .ntasks = "4" }, tasks, "replicas", "4");
    part_is((struct slurm_job){ .ntasks = "4" }, tasks, "placement", "");
    notes_say((struct slurm_job){ .nodes = "2" }, "runs on each of the 2 machines");
    refused((struct slurm_job){ .nodes = "2", .gpus = "3" }, "cannot be divided");
}

static void arrays_are_ranges(void)
{
    struct slurm_program p = { 0 };
    part_is((struct slurm_job){ .array = "0-9:2" }, p, "array", "\"0-9:2\"");
    part_is((struct slurm_job){ .array = "5" }, p, "array", "\"5-5\"");
    part_is((struct slurm_job){ .array = "0-9%4" }, p, "array", "\"0-9\"");
    notes_say((struct slurm_job){ .array = "0-9%4" }, "%4 is ignored");
    refused((struct slurm_job){ .array = "1,3,5" }, "lists are not supported");
}

static void variables_are_exported_as_slurm_does(void)
{
    struct slurm_program p = { 0 };
    part_is((struct slurm_job){ 0 }, p, "env", "{\"A\":\"1\"}");
    part_is((struct slurm_job){ .export_ = "NONE" }, p, "env", "");
    part_is((struct slurm_job){ .export_ = "B=2" }, p, "env", "{\"B\":\"2\"}");
    part_is((struct slurm_job){ .export_ = "ALL,B=2" }, p, "env", "{\"A\":\"1\",\"B\":\"2\"}");
}

static void a_script_travels_with_its_interpreter_and_arguments(void)
{
    AUTO(made_clear) struct made m = { 0 };
    struct err e = { 0 };
    struct slurm_program p = { .script = STR("#!/bin/bash -l\necho hi\n"), .write_file = true };
    CHECK(make(&(struct slurm_job){ .output = "o-%j", .error = "e" }, p, &m, &e) == 0);
    const struct json *c = json_find(m.root, "command");
    struct str sh, script, last;
    CHECK_INT(json_len(c), 7);
    CHECK(json_as_str(json_at(c, 2), 4096, &sh, &e) == 0);
    CHECK(json_as_str(json_at(c, 4), 4096, &script, &e) == 0);
    CHECK(json_as_str(json_at(c, 6), 4096, &last, &e) == 0);
    CHECK(memmem(sh.p, sh.n, "exec /bin/bash -l \"$f\" \"$@\"", 27));
    CHECK(memmem(sh.p, sh.n, "exec >\"$out\" 2>'e'", 18));
    CHECK(str_is(script, "#!/bin/bash -l\necho hi\n"));
    CHECK(str_is(last, "two"));
}

static void a_command_without_files_is_run_as_it_is(void)
{
    part_is((struct slurm_job){ 0 }, (struct slurm_program){ .tasks = true }, "command",
            "[\"one\",\"two\"]");
}

static void a_script_needs_a_first_line(void)
{
    AUTO(made_clear) struct made m = { 0 };
    struct err e = { 0 };
    CHECK(make(&(struct slurm_job){ 0 }, (struct slurm_program){ .script = STR("echo hi\n") }, &m,
               &e) == -1);
    CHECK(strstr(e.msg, "does not look like a batch script"));
}

static void a_later_start_is_ours(void)
{
    struct slurm_program p = { 0 };
    setenv("TZ", "UTC", 1);
    tzset();
    part_is((struct slurm_job){ .begin = "2100-03-01T22:00" }, p, "begin",
            "\"2100-03-01T22:00:00Z\"");
    part_is((struct slurm_job){ .begin = "2100-03-01" }, p, "begin", "\"2100-03-01T00:00:00Z\"");
    part_is((struct slurm_job){ .after = { { "ok:17", "bad:18" }, 2 } }, p, "after",
            "[\"ok:17\",\"bad:18\"]");
    part_is((struct slurm_job){ 0 }, p, "begin", "");
    AUTO(made_clear) struct made m = { 0 };
    struct err e = { 0 };
    CHECK(make(&(struct slurm_job){ .begin = "noon" }, p, &m, &e) == 0);
    CHECK(strstr(field_str(m.root, "begin").p, "T12:00:00Z"));
}

static void what_means_nothing_here_is_said(void)
{
    notes_say((struct slurm_job){ .ignored = { .partition = "gpu" } }, "--partition is ignored");
    notes_say((struct slurm_job){ .ignored = { .exclusive = true } }, "--exclusive is ignored");
    notes_say((struct slurm_job){ 0 }, "");
}

static void what_would_change_the_meaning_is_refused(void)
{
    refused((struct slurm_job){ .begin = "teatime" }, "--begin: 'teatime' is no time to begin");
    refused((struct slurm_job){ .gres = "fpga:1" }, "'fpga:1' is not known");
    refused((struct slurm_job){ .time = "soon" }, "--time");
}

static const struct test tests[] = {
    { "resources are ours", resources_are_ours },
    { "several machines are replicas", several_machines_are_replicas },
    { "arrays are ranges", arrays_are_ranges },
    { "variables are exported as Slurm does", variables_are_exported_as_slurm_does },
    { "a script travels with its interpreter and arguments",
      a_script_travels_with_its_interpreter_and_arguments },
    { "a command without files is run as it is", a_command_without_files_is_run_as_it_is },
    { "a script needs a first line", a_script_needs_a_first_line },
    { "a later start is ours", a_later_start_is_ours },
    { "what means nothing here is said", what_means_nothing_here_is_said },
    { "what would change the meaning is refused", what_would_change_the_meaning_is_refused },
};
TEST_CASES(tests)
