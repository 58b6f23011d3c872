#include "engine/kube/copy_doc.h"

#include "tests/lib/test.h"

static void a_copy_reads_back(void)
{
    static const uint64_t jobs[] = { 0, 1, 17, UINT64_MAX };
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        AUTO(buf_free) struct buf text = BUF(4096);
        struct copy_doc c = {
            .job = jobs[i], .space = "own", .daemon = "pc1_0a", .record = STR("{\"a\":\"b\"}")
        };
        struct copy_doc back;
        struct err e = { 0 };
        copy_make(&c, &text);
        AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&text), &e);
        CHECK(d && copy_read(json_root(d), "pc1_0a", &back, &e) == 0);
        CHECK_AT(i, back.job == jobs[i] && str_is(back.record, "{\"a\":\"b\"}"));
        CHECK(copy_read(json_root(d), "pc2_0b", &back, &e) < 0 && strstr(e.msg, "another daemon"));
    }
}

static void names_and_labels_are_what_kubernetes_takes(void)
{
    char name[COPY_NAME_MAX], other[COPY_NAME_MAX], label[COPY_LABEL_MAX];
    CHECK(strncmp(copy_name(17, "pc1", name), "nightshift-job-17-", 18) == 0);
    CHECK(strcmp(name, copy_name(17, "pc2", other)) != 0);
    CHECK(strncmp(copy_name(0, "pc1", name), "nightshift-numbers-", 19) == 0);
    CHECK_INT(strlen(copy_label("a name / that no label could be", label)), 16);
    CHECK_INT(strspn(label, "0123456789abcdef"), 16);
}

static void what_is_none_is_refused(void)
{
    static const char *const bad[] = {
        "[]",
        "{}",
        "{\"metadata\":{\"name\":\"x\"},\"data\":{\"record\":\"\"}}",
        "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"nightshift.dev/job\":\"1\","
        "\"nightshift.dev/daemon\":\"pc1\"}},\"data\":{}}",
        "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"nightshift.dev/job\":\"one\","
        "\"nightshift.dev/daemon\":\"pc1\"}},\"data\":{\"record\":\"\"}}",
        "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"nightshift.dev/job\":\"1\","
        "\"nightshift.dev/daemon\":\"pc1\"}},\"data\":{\"record\":\"\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct copy_doc c;
        struct err e = { 0 };
        AUTO(json_free_p) struct json_doc *d = json_read(str_of(bad[i]), &e);
        CHECK_AT(i, d && copy_read(json_root(d), "pc1", &c, &e) < 0 && e.msg[0]);
    }
}

static const struct test tests[] = {
    { "a copy reads back", a_copy_reads_back },
    { "names and labels are what Kubernetes takes", names_and_labels_are_what_kubernetes_takes },
    { "what is none is refused", what_is_none_is_refused },
};
TEST_CASES(tests)
