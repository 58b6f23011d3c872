#include "spec/spec.h"

#include <stdio.h>

#include "tests/lib/test.h"

static int read_text(const char *text, struct arena *a, struct spec *out, const char **field,
                     struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(text), e);
    CHECK(d);
    return spec_read(json_root(d), a, out, field, e);
}

static void a_whole_spec_is_read(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s;
    struct err e;
    CHECK(read_text("{\"name\":\"train\",\"tenant\":\"vision\",\"command\":[\"python\",\"x.py\"],"
                    "\"resources\":{\"gpus\":2,\"gpu_type\":\"A100|H100\",\"cpus\":1.5,"
                    "\"mem\":\"16Gi\",\"scratch\":\"1Gi\"},\"replicas\":4,"
                    "\"placement\":{\"scope\":\"node\",\"layout\":\"pack\",\"linked\":true},"
                    "\"env\":{\"A\":\"b=c\",\"N\":4,\"T\":true},\"max_time\":\"8h\","
                    "\"volumes\":[\"/data:/d:ro\",{\"from\":\"/x\"}],\"priority\":\"high\","
                    "\"freeze\":{\"mode\":\"signal\",\"signal\":\"SIGUSR1\",\"grace\":30},"
                    "\"retries\":2,\"array\":\"1-9:2\",\"workdir\":\"/home/a\"}",
                    &a, &s, NULL, &e) == 0);
    CHECK(str_is(s.name, "train") && str_is(s.tenant, "vision") && str_is(s.image, "host"));
    CHECK(s.n_args == 2 && s.argv[2] == NULL);
    CHECK_STR(s.argv[1], "x.py");
    CHECK(s.request.gpus == 2 && s.request.cpu_milli == 1500 && s.request.mem_mib == 16384);
    CHECK(s.request.replicas == 4 && s.request.scope == SCOPE_NODE && s.request.linked);
    CHECK(s.scratch_mib == 1024 && s.max_time_ms == 8 * 3600 * 1000 && s.priority == PRIO_HIGH);
    CHECK(s.freeze == FREEZE_SIGNAL && s.freeze_signal == 10 && s.grace_ms == 30000);
    CHECK(s.n_env == 3 && s.n_volumes == 2 && s.volume[0].read_only && !s.volume[1].read_only);
    CHECK_STR(s.env[0], "A=b=c");
    CHECK_STR(s.env[1], "N=4");
    CHECK_STR(s.env[2], "T=true");
    CHECK(str_is(s.volume[1].to, "/x"));
    CHECK(s.is_array && s.array_from == 1 && s.array_to == 9 && s.array_step == 2);
}

static void devices_are_kept_in_order_of_their_names(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s;
    struct err e;
    CHECK(read_text("{\"command\":[\"x\"],\"resources\":{\"devices\":{\"rdma/hca\":2,"
                    "\"nvidia.com/mig-1g.5gb\":1,\"a-b.c/d_e\":65535}}}",
                    &a, &s, NULL, &e) == 0);
    CHECK_STR(s.devices.p, "a-b.c/d_e=65535,nvidia.com/mig-1g.5gb=1,rdma/hca=2");
    CHECK(read_text("{\"command\":[\"x\"],\"resources\":{\"devices\":{}}}", &a, &s, NULL, &e) == 0);
    CHECK_INT(s.devices.n, 0);
}

static void what_is_written_reads_the_same(void)
{
    static const char *const texts[] = {
        "{\"command\":[\"true\"]}",
        "{\"command\":\"echo hi | wc\",\"resources\":{\"gpu_share\":0.25,\"gpu_mem\":\"8Gi\"}}",
        "{\"name\":\"n\",\"command\":[\"a\",\"\"],\"workdir\":\"/w\",\"cwd\":\"/"
        "c\",\"env\":{\"K\":\"v\"},"
        "\"volumes\":[{\"from\":\"/a\",\"to\":\"/b\",\"ro\":true}],\"replicas\":2,"
        "\"max_time\":\"1h30m\",\"begin\":\"2026-03-01T12:30:00Z\",\"after\":[\"any:7\"],"
        "\"priority\":\"low\",\"retries\":1,\"requeue\":true,"
        "\"array\":\"0-3:1\",\"network\":\"none\",\"held\":true,\"stdin\":true,"
        "\"resources\":{\"gpus\":1,\"gpu_type\":\"V100\","
        "\"devices\":{\"a.b/c\":1,\"rdma/hca\":2},\"cpus\":0.500,\"mem\":\"3Mi\"},"
        "\"placement\":{\"scope\":\"switch\",\"layout\":\"spread\",\"linked\":true},"
        "\"freeze\":{\"mode\":\"none\",\"signal\":34,\"grace\":\"1s\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(buf_free) struct buf once = BUF(10000), twice = BUF(10000);
        struct json_out w1 = { .b = &once }, w2 = { .b = &twice };
        struct spec s;
        struct err e;
        CHECK(read_text(texts[i], &a, &s, NULL, &e) == 0);
        spec_write(&s, &w1, NULL);
        if (i == 2) /* it says everything there is to say */
            CHECK_STR(once.p, texts[2]);
        CHECK(read_text(once.p, &a, &s, NULL, &e) == 0);
        spec_write(&s, &w2, NULL);
        CHECK_STR(twice.p, once.p);
    }
}

static void a_start_is_a_time_and_other_jobs(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf out = BUF(4096);
    struct json_out w = { .b = &out };
    struct spec s;
    struct err e;
    CHECK(read_text("{\"command\":[\"x\"],\"begin\":\"2026-03-01T13:30:00+01:00\","
                    "\"after\":[7,\"8\",\"any:9\",\"bad:10\",\"ok:11\"]}",
                    &a, &s, NULL, &e) == 0);
    CHECK(s.begin_ms == INT64_C(1772368200000) && s.n_after == 5);
    CHECK(s.after[0].job == 7 && s.after[0].when == AFTER_OK && s.after[1].job == 8);
    CHECK(s.after[2].when == AFTER_ANY && s.after[3].when == AFTER_BAD);
    spec_write(&s, &w, NULL);
    CHECK_STR(out.p, "{\"command\":[\"x\"],\"begin\":\"2026-03-01T12:30:00Z\","
                     "\"after\":[\"ok:7\",\"ok:8\",\"any:9\",\"bad:10\",\"ok:11\"]}");
    CHECK(read_text("{\"command\":[\"x\"],\"begin\":1772368200007,\"after\":\"bad:3\"}", &a, &s,
                    NULL, &e) == 0);
    CHECK(s.begin_ms == INT64_C(1772368200007) && s.n_after == 1 && s.after[0].job == 3);
    CHECK(read_text("{\"command\":[\"x\"],\"after\":[]}", &a, &s, NULL, &e) == 0 && !s.n_after);
}

static void bad_fields_are_named(void)
{
    static const struct {
        const char *text, *field, *say;
    } bad[] = {
        { "{\"command\":[\"x\"],\"gpu\":1}", "gpu", "unknown field 'gpu'" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpu\":1}}", "resources.gpu",
          "unknown field 'gpu'" },
        { "{\"resources\":{\"gpus\":1}}", "command", "'command' is missing" },
        { "{\"command\":[]}", "command", "empty" },
        { "{\"command\":\"\"}", "command", "empty" },
        { "{\"command\":[\"a\\u0000b\"]}", "command", "NUL" },
        { "{\"command\":7}", "command", "must be a string" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpus\":-1}}", "resources.gpus", "from 0" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpus\":1.5}}", "resources.gpus", "whole" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpus\":17}}", "resources.gpus", "from 0 to 16" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpu_share\":1}}", "resources.gpu_share",
          "from 0.001 to 0.999" },
        { "{\"command\":[\"x\"],\"resources\":{\"mem\":16}}", "resources.mem",
          "less than one MiB" },
        { "{\"command\":[\"x\"],\"resources\":{\"mem\":\"16Q\"}}", "resources.mem", "16Q" },
        { "{\"command\":[\"x\"],\"resources\":{\"devices\":[\"a/b\"]}}", "resources.devices",
          "must be an object" },
        { "{\"command\":[\"x\"],\"resources\":{\"devices\":{\"a b\":1}}}", "resources.devices",
          "'a b' is no name" },
        { "{\"command\":[\"x\"],\"resources\":{\"devices\":{\"/b\":1}}}", "resources.devices",
          "'/b' is no name" },
        { "{\"command\":[\"x\"],\"resources\":{\"devices\":{\"a/b\":0}}}", "resources.devices",
          "a count of 1 to 65535" },
        { "{\"command\":[\"x\"],\"resources\":{\"devices\":{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":"
          "1,"
          "\"6\":1,\"7\":1,\"8\":1,\"9\":1}}}",
          "resources.devices", "more than 8" },
        { "{\"command\":[\"x\"],\"resources\":{\"cpus\":0}}", "resources.cpus", "from 0.001" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpu_type\":\"A100\"}}", "resources.gpu_type",
          "none are asked for" },
        { "{\"command\":[\"x\"],\"resources\":{\"gpus\":1,\"gpu_share\":0.5}}",
          "resources.gpu_share", "exclude" },
        { "{\"command\":[\"x\"],\"resources\":[]}", "resources", "must be an object" },
        { "{\"command\":[\"x\"],\"replicas\":0}", "replicas", "at least 1" },
        { "{\"command\":[\"x\"],\"workdir\":\"here\"}", "workdir", "absolute" },
        { "{\"command\":[\"x\"],\"workdir\":\"/a/../b\"}", "workdir", "'..'" },
        { "{\"command\":[\"x\"],\"env\":{\"A B\":\"1\"}}", "env", "'A B'" },
        { "{\"command\":[\"x\"],\"env\":{\"A\":[]}}", "env", "'A'" },
        { "{\"command\":[\"x\"],\"env\":[]}", "env", "object" },
        { "{\"command\":[\"x\"],\"volumes\":[\"data\"]}", "volumes", "volume 1" },
        { "{\"command\":[\"x\"],\"volumes\":[\"/a:/b:rx\"]}", "volumes", "rx" },
        { "{\"command\":[\"x\"],\"priority\":\"top\"}", "priority", "'top'" },
        { "{\"command\":[\"x\"],\"max_time\":\"soon\"}", "max_time", "soon" },
        { "{\"command\":[\"x\"],\"freeze\":{\"signal\":\"NOPE\"}}", "freeze.signal", "signal" },
        { "{\"command\":[\"x\"],\"array\":\"9-1\"}", "array", "9-1" },
        { "{\"command\":[\"x\"],\"array\":\"0-100000\"}", "array", "100001" },
        { "{\"command\":[\"x\"],\"name\":\"a\\nb\"}", "name", "control" },
        { "{\"command\":[\"x\"],\"begin\":\"tomorrow\"}", "begin", "'tomorrow' is not a time" },
        { "{\"command\":[\"x\"],\"begin\":\"2026-03-01T12:30:00\"}", "begin", "with its zone" },
        { "{\"command\":[\"x\"],\"begin\":1772368200}", "begin", "in milliseconds" },
        { "{\"command\":[\"x\"],\"begin\":true}", "begin", "must be" },
        { "{\"command\":[\"x\"],\"after\":[\"late:7\"]}", "after", "'late' is not a way to end" },
        { "{\"command\":[\"x\"],\"after\":[\"never:7\"]}", "after", "'never'" },
        { "{\"command\":[\"x\"],\"after\":[\"7_3\"]}", "after", "7_3" },
        { "{\"command\":[\"x\"],\"after\":[0]}", "after", "no job 0" },
        { "{\"command\":[\"x\"],\"after\":{}}", "after", "must be" },
        { "[]", NULL, "object" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct spec s = { .retries = 77 };
        struct err e;
        const char *field = "unset";
        CHECK_AT(i, read_text(bad[i].text, &a, &s, &field, &e) < 0);
        CHECK_AT(i, e.code == ERR_INVALID && strstr(e.msg, bad[i].say));
        CHECK_STR(field, bad[i].field);
        CHECK_AT(i, s.retries == 77);
    }
}

static void schema_and_reference_list_every_field(void)
{
    AUTO(buf_free) struct buf schema = BUF(100000), reference = BUF(100000);
    struct json_out w = { .b = &schema };
    struct spec_field_info f;
    struct err e;
    spec_print_schema(&w, NULL);
    spec_print_reference(&reference);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&schema), &e);
    CHECK(d);
    const struct json *top = json_find(json_root(d), "properties");
    for (size_t i = 0; spec_field(i, &f); i++) {
        const struct json *in =
            f.section ? json_find(json_find(top, f.section), "properties") : top;
        CHECK(json_is_object(json_find(in, f.key)));
        CHECK(strstr(reference.p, f.key) && f.help && f.example);
    }
    struct str one = STR("{\"mode\":");
    CHECK(one.n && json_find(json_find(json_find(top, "freeze"), "properties"), "mode"));
}

static void each_path_of_a_volume_has_a_bound(void)
{
    static char longest[4097], text[3 * sizeof longest];
    struct spec s;
    memset(longest, 'a', 4096);
    longest[0] = '/';
    for (int too_long = 0; too_long < 2; too_long++)
        for (int part = 0; part < 2; part++) {
            AUTO(arena_free) struct arena a = { 0 };
            AUTO(json_free_p) struct json_doc *d = NULL;
            struct err e = { 0 };
            const char *field = NULL;
            longest[4095] = too_long ? 'a' : '\0';
            snprintf(text, sizeof text, "{\"command\":[\"x\"],\"volumes\":[\"%s:%s:ro\"]}",
                     part ? "/a" : longest, part ? longest : "/a");
            d = json_read(str_of(text), &e);
            CHECK(d != NULL);
            CHECK_INT(spec_read(json_root(d), &a, &s, &field, &e), -too_long);
            CHECK(!too_long || strstr(e.msg, "4096 bytes; at most 4095"));
        }
}

static const struct test tests[] = {
    { "each path of a volume has a bound", each_path_of_a_volume_has_a_bound },
    { "devices are kept in order of their names", devices_are_kept_in_order_of_their_names },
    { "a whole spec is read", a_whole_spec_is_read },
    { "what is written reads the same", what_is_written_reads_the_same },
    { "a start is a time and other jobs", a_start_is_a_time_and_other_jobs },
    { "a bad field is named, and nothing is changed", bad_fields_are_named },
    { "schema and reference list every field", schema_and_reference_list_every_field },
};
TEST_CASES(tests)
