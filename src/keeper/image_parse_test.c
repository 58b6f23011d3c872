#include "keeper/image_parse.h"

#include "tests/lib/test.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void references_are_completed(void)
{
    static const struct {
        const char *text, *full;
        bool pinned;
    } rows[] = {
        { "python", "docker://docker.io/library/python:latest", false },
        { "python:3.11", "docker://docker.io/library/python:3.11", false },
        { "docker://python:3.11", "docker://docker.io/library/python:3.11", false },
        { "pytorch/pytorch:2.1", "docker://docker.io/pytorch/pytorch:2.1", false },
        { "docker.io/python", "docker://docker.io/library/python:latest", false },
        { "nvcr.io/nvidia/cuda:12.2", "docker://nvcr.io/nvidia/cuda:12.2", false },
        { "localhost/x", "docker://localhost/x:latest", false },
        { "lab.example:5000/a/b-c_d.e:T-1", "docker://lab.example:5000/a/b-c_d.e:T-1", false },
        { "python@sha256:" HEX, "docker://docker.io/library/python@sha256:" HEX, true },
        { "python:3@sha256:" HEX, "docker://docker.io/library/python@sha256:" HEX, true },
        { "oci:/data/my image:v1", "oci:/data/my image:v1", false },
        { "oci:/data/img", "oci:/data/img", false },
        { "docker-archive:/a.tar:team/x:v1", "docker-archive:/a.tar:team/x:v1", false },
        { "oci-archive:/a.tar", "oci-archive:/a.tar", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct image_ref r, again;
        struct err e;
        AUTO(buf_free) struct buf full = BUF(2048);
        AUTO(buf_free) struct buf twice = BUF(2048);
        CHECK(image_ref_parse(str_of(rows[i].text), &r, &e) == 0);
        image_ref_format(&r, &full);
        CHECK_STR(full.p, rows[i].full);
        CHECK(r.pinned == rows[i].pinned);
        CHECK(image_ref_parse(buf_str(&full), &again, &e) == 0);
        image_ref_format(&again, &twice);
        CHECK_STR(twice.p, full.p);
    }
}

static void what_is_no_reference_is_refused(void)
{
    static const char *const bad[] = { "",
                                       ":",
                                       "Python",
                                       "a//b",
                                       "-x",
                                       "a:",
                                       "a:b c",
                                       "a@sha256:12",
                                       "http://x/y",
                                       "dir://x",
                                       "oci:relative",
                                       "oci:",
                                       "docker-archive:",
                                       "docker-archive:x.tar",
                                       "oci:/a:b c",
                                       "oci:/a\nb",
                                       "reg.example:port/x",
                                       "a;b",
                                       "$(x)",
                                       "a/../b" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct image_ref r = { .kind = IMAGE_KIND_COUNT };
        struct err e = { 0 };
        CHECK_AT(i, image_ref_parse(str_of(bad[i]), &r, &e) < 0 && e.code == ERR_INVALID);
        CHECK_AT(i, r.kind == IMAGE_KIND_COUNT && e.hint[0]);
    }
    char longest[3000];
    struct image_ref r;
    struct err e;
    memset(longest, 'a', sizeof longest);
    CHECK(image_ref_parse((struct str){ longest, sizeof longest }, &r, &e) < 0);
}

static void settings_are_taken_out(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct image_run r;
    struct err e;
    CHECK(image_run_parse(
              STR("{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"PATH=/bin\",\"A=\"],"
                  "\"Entrypoint\":[\"/e\"],\"Cmd\":[\"a\",\"b\"],\"WorkingDir\":\"/w\","
                  "\"User\":\"root\"}}"),
              &a, &r, &e) == 0);
    CHECK_STR(r.env[0], "PATH=/bin");
    CHECK_STR(r.env[1], "A=");
    CHECK(!r.env[2] && !r.entrypoint[1] && !r.cmd[2]);
    CHECK_STR(r.entrypoint[0], "/e");
    CHECK_STR(r.cmd[1], "b");
    CHECK_STR(r.workdir, "/w");
    CHECK(image_run_parse(STR("{}"), &a, &r, &e) == 0);
    CHECK(!r.env[0] && !r.cmd[0] && !r.workdir[0]);
    CHECK(image_run_parse(STR("{\"config\":{\"Cmd\":null}}"), &a, &r, &e) == 0 && !r.cmd[0]);
}

static void settings_out_of_bounds_are_refused(void)
{
    static const char *const bad[] = { "",
                                       "[]",
                                       "{\"config\":{\"Env\":[1]}}",
                                       "{\"config\":{\"Env\":[\"=x\"]}}",
                                       "{\"config\":{\"Env\":[\"none\"]}}",
                                       "{\"config\":{\"Cmd\":[\"a\\u0000b\"]}}",
                                       "{\"config\":{\"WorkingDir\":\"w\"}}",
                                       "{\"config\":{\"WorkingDir\":7}}" };
    AUTO(arena_free) struct arena a = { 0 };
    struct image_run r;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_AT(i, image_run_parse(str_of(bad[i]), &a, &r, &e) < 0);
    AUTO(buf_free) struct buf many = BUF(1u << 20);
    buf_addz(&many, "{\"config\":{\"Cmd\":[\"x\"");
    for (int i = 0; i < 600; i++)
        buf_addz(&many, ",\"x\"");
    buf_addz(&many, "]}}");
    CHECK(image_run_parse(buf_str(&many), &a, &r, &e) < 0 && e.code == ERR_TOO_LARGE);
}

static void manifests_are_checked(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct image_manifest m;
    char digest[IMAGE_DIGEST];
    struct err e;
    CHECK(image_index_parse(STR("{\"manifests\":[{\"digest\":\"sha256:" HEX "\"}]}"), digest, &e) ==
          0);
    CHECK_STR(digest, HEX);
    CHECK(image_index_parse(STR("{\"manifests\":[]}"), digest, &e) < 0);
    CHECK(image_index_parse(STR("{\"manifests\":[{\"digest\":\"sha256:../../x\"}]}"), digest, &e) <
          0);
    CHECK(image_manifest_parse(STR("{\"config\":{\"digest\":\"sha256:" HEX "\"},\"layers\":"
                                   "[{\"digest\":\"sha256:" HEX "\",\"size\":5},"
                                   "{\"digest\":\"sha256:" HEX "\",\"size\":7}]}"),
                               &a, &m, &e) == 0);
    CHECK(m.n_layers == 2 && m.layer_bytes == 12);
    CHECK_STR(m.layer[1], HEX);
    CHECK(image_manifest_parse(STR("{\"config\":{\"digest\":\"sha256:" HEX "\"},\"layers\":"
                                   "[{\"digest\":\"sha256:" HEX "\",\"size\":-5}]}"),
                               &a, &m, &e) < 0);
    CHECK(image_manifest_parse(STR("[]"), &a, &m, &e) < 0);
}

static void a_complaint_is_found_in_the_output(void)
{
    struct str s =
        image_complaint(STR("Getting image\ntime=\"x\" level=fatal msg=\"no such host\"\n"));
    CHECK(str_is(s, "no such host"));
    CHECK(str_is(image_complaint(STR("   \xe2\xa8\xaf create rootfs: x   \n\n")),
                 "create rootfs: x"));
    CHECK(image_complaint(STR("")).n == 0);
}

static const struct test tests[] = {
    { "references are completed, and parse to the same again", references_are_completed },
    { "what is no reference is refused with examples", what_is_no_reference_is_refused },
    { "an image's settings are taken out", settings_are_taken_out },
    { "settings out of bounds are refused", settings_out_of_bounds_are_refused },
    { "indexes and manifests are checked", manifests_are_checked },
    { "the complaint is found in a tool's output", a_complaint_is_found_in_the_output },
};
TEST_CASES(tests)
