#include "cli/flags.h"

#include "tests/lib/test.h"

static int put(const struct flags *f, struct buf *b, struct err *e)
{
    struct json_out w = { .b = b };
    json_begin(&w, NULL, '{');
    int rc = flags_put(f, &w, e);
    json_end(&w, '}');
    return rc;
}

static void gives(struct flags f, const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct err e;
    CHECK(put(&f, &b, &e) == 0);
    CHECK_STR(b.p, want);
}

static void refused(struct flags f, const char *msg)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct err e = { 0 };
    CHECK(put(&f, &b, &e) == -1);
    CHECK_INT(e.code, ERR_INVALID);
    CHECK(strstr(e.msg, msg));
}

static void nothing_said_is_nothing_sent(void)
{
    gives((struct flags){ 0 }, "{}");
}

static void gpus_are_whole_or_a_share(void)
{
    gives((struct flags){ .gpus = "2" }, "{\"resources\":{\"gpus\":2,\"gpu_share\":null}}");
    gives((struct flags){ .gpus = "0.5" }, "{\"resources\":{\"gpu_share\":0.500,\"gpus\":null}}");
    gives((struct flags){ .gpus = "0" }, "{\"resources\":{\"gpus\":0,\"gpu_share\":null}}");
    refused((struct flags){ .gpus = "1.5" }, "neither whole GPUs nor a part of one");
    refused((struct flags){ .gpus = "two" }, "--gpus");
    refused((struct flags){ .gpus = "-1" }, "--gpus");
}

static void devices_have_a_count(void)
{
    gives((struct flags){ .devices = { { "nvidia.com/mig-1g.5gb=2", "rdma/hca" }, 2 } },
          "{\"resources\":{\"devices\":{\"nvidia.com/mig-1g.5gb\":2,\"rdma/hca\":1}}}");
    refused((struct flags){ .devices = { { "a/b=0" }, 1 } }, "'a/b=0' is not NAME=COUNT");
    refused((struct flags){ .devices = { { "a/b=" }, 1 } }, "is not NAME=COUNT");
    refused((struct flags){ .devices = { { "=1" }, 1 } }, "is not NAME=COUNT");
}

static void a_start_may_be_later(void)
{
    gives((struct flags){ .begin = "2026-03-01T13:30:00+01:00" },
          "{\"begin\":\"2026-03-01T12:30:00Z\"}");
    gives((struct flags){ .after = { { "17", "any:18" }, 2 } }, "{\"after\":[\"17\",\"any:18\"]}");
    refused((struct flags){ .begin = "soon" }, "--begin: 'soon' is no time to begin");
}

static void each_flag_has_its_field(void)
{
    gives((struct flags){ .cpus = "4",
                          .mem = "16Gi",
                          .gpu_type = "A100|V100",
                          .gpu_mem = "8Gi",
                          .scratch = "10Gi" },
          "{\"resources\":{\"gpu_type\":\"A100|V100\",\"gpu_mem\":\"8Gi\",\"cpus\":4,"
          "\"mem\":\"16Gi\",\"scratch\":\"10Gi\"}}");
    gives((struct flags){ .cpus = "500m" }, "{\"resources\":{\"cpus\":\"500m\"}}");
    gives((struct flags){ .replicas = "4",
                          .retries = "2",
                          .name = "n",
                          .tenant = "t",
                          .profile = "p",
                          .image = "i",
                          .workdir = "/w",
                          .priority = "high",
                          .time = "8h",
                          .array = "0-9",
                          .network = "none" },
          "{\"replicas\":4,\"retries\":2,\"name\":\"n\",\"tenant\":\"t\",\"profile\":\"p\","
          "\"image\":\"i\",\"workdir\":\"/w\",\"priority\":\"high\",\"max_time\":\"8h\","
          "\"array\":\"0-9\",\"network\":\"none\"}");
    gives((struct flags){ .freeze = "signal:USR1" },
          "{\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\"}}");
    gives((struct flags){ .freeze = "pause", .hold = true, .tty = true, .stdin_open = true },
          "{\"freeze\":{\"mode\":\"pause\"},\"held\":true,\"kind\":\"shell\",\"tty\":true}");
    gives((struct flags){ .stdin_open = true }, "{\"stdin\":true}");
    gives((struct flags){ .volumes = { { "/data:/data:ro", "/x:/y" }, 2 } },
          "{\"volumes\":[\"/data:/data:ro\",\"/x:/y\"]}");
    refused((struct flags){ .replicas = "many" }, "--replicas");
    refused((struct flags){ .retries = "-1" }, "--retries");
}

/* ---- variables ---- */

static const char *const env[] = { "LANG=de_DE.UTF-8", "LC_TIME=C",  "HOME=/home/ana",
                                   "TERM=xterm",       "SECRET=x=y", "NIGHTSHIFT_TOKEN=nst_1",
                                   "PWD=/p",           "PATH=/bin",  NULL };

static void env_gives(struct flags f, const char *const *vars, bool defaults, const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    struct err e;
    json_begin(&w, NULL, '{');
    CHECK(flags_put_env(&f, vars, defaults, &w, &e) == 0);
    json_end(&w, '}');
    CHECK_STR(b.p, want);
}

static void by_default_only_the_language_goes_along(void)
{
    env_gives((struct flags){ 0 }, env, true,
              "{\"env\":{\"LANG\":\"de_DE.UTF-8\",\"LC_TIME\":\"C\"}}");
    env_gives((struct flags){ .tty = true }, env, true,
              "{\"env\":{\"LANG\":\"de_DE.UTF-8\",\"LC_TIME\":\"C\",\"TERM\":\"xterm\"}}");
    env_gives((struct flags){ 0 }, env, false, "{}");
}

static void variables_that_are_named_go_along(void)
{
    env_gives((struct flags){ .env = { { "A=1=2", "SECRET", "LANG=C" }, 3 } }, env, true,
              "{\"env\":{\"LC_TIME\":\"C\",\"A\":\"1=2\",\"SECRET\":\"x=y\",\"LANG\":\"C\"}}");
    struct err e = { 0 };
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    CHECK(flags_put_env(&(struct flags){ .env = { { "NOT_SET" }, 1 } }, env, true, &w, &e) == -1);
    CHECK(strstr(e.msg, "NOT_SET"));
    CHECK(flags_put_env(&(struct flags){ .env = { { "=x" }, 1 } }, env, true, &w, &e) == -1);
}

static void all_of_them_are_all_but_the_private_ones(void)
{
    env_gives((struct flags){ .env_all = true }, env, true,
              "{\"env\":{\"LANG\":\"de_DE.UTF-8\",\"LC_TIME\":\"C\",\"HOME\":\"/home/ana\","
              "\"TERM\":\"xterm\",\"SECRET\":\"x=y\",\"PATH\":\"/bin\"}}");
}

static void an_active_python_environment_comes_first_in_path(void)
{
    static const char *const venv[] = { "VIRTUAL_ENV=/p/venv", "PATH=/p/venv/bin:/bin", NULL };
    env_gives((struct flags){ 0 }, venv, true,
              "{\"env\":{\"VIRTUAL_ENV\":\"/p/venv\",\"PATH\":\"/p/venv/bin:/usr/local/sbin:"
              "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"}}");
    env_gives((struct flags){ .image = "python:3.11" }, venv, true,
              "{\"env\":{\"VIRTUAL_ENV\":\"/p/venv\"}}");
    env_gives((struct flags){ .env = { { "PATH=/x" }, 1 } }, venv, true,
              "{\"env\":{\"VIRTUAL_ENV\":\"/p/venv\",\"PATH\":\"/x\"}}");
}

static void a_job_is_called_after_what_it_runs(void)
{
    static const struct {
        const char *argv[3], *name;
    } cases[] = {
        { { "/usr/bin/nvidia-smi" }, "nvidia-smi" },
        { { "python3.11", "src/train.py" }, "train.py" },
        { { "python", "-m", "x" }, "python" },
        { { "bash", "run me.sh" }, "run-me.sh" },
        { { "shuf", "x" }, "shuf" },
        { { NULL }, "job" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[64];
        size_t n = 0;
        while (n < 3 && cases[i].argv[n])
            n++;
        flags_default_name(cases[i].argv, n, name);
        CHECK_STR(name, cases[i].name);
    }
}

static const struct test tests[] = {
    { "devices have a count", devices_have_a_count },
    { "nothing said is nothing sent", nothing_said_is_nothing_sent },
    { "GPUs are whole or a share", gpus_are_whole_or_a_share },
    { "a start may be later", a_start_may_be_later },
    { "each flag has its field", each_flag_has_its_field },
    { "by default only the language goes along", by_default_only_the_language_goes_along },
    { "variables that are named go along", variables_that_are_named_go_along },
    { "all of them are all but the private ones", all_of_them_are_all_but_the_private_ones },
    { "an active Python environment comes first in PATH",
      an_active_python_environment_comes_first_in_path },
    { "a job is called after what it runs", a_job_is_called_after_what_it_runs },
};
TEST_CASES(tests)
