#include "daemon/pools.h"

#include "base/yaml.h"
#include "tests/lib/test.h"

/* The pools one after the other, or the error. */
static const char *read_text(const char *yaml, struct buf *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e = { 0 };
    struct control_pool_def *def = NULL;
    size_t n = 0;
    buf_truncate(out, 0);
    AUTO(json_free_p) struct json_doc *doc = yaml_read(str_of(yaml), &e);
    CHECK(doc != NULL);
    if (pools_read(json_find(json_root(doc), "pools"), INT64_C(1794528000000), &a, &def, &n, &e) <
        0)
        buf_printf(out, "error: %s", e.msg);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%.*s [%.*s]", STR_ARG(def[i].name), STR_ARG(def[i].window));
        for (size_t k = 0; k < def[i].nodes; k++)
            buf_printf(out, " %s", def[i].node[k]);
        buf_addc(out, ';');
    }
    return buf_str(out).p;
}

static void what_a_person_writes_is_read(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "policy: {}", "" },
        { "pools:", "" },
        { "pools: { desks: { window: 'Mon-Fri 20:00-08:00', nodes: [pc1, 'lab[1-2]'] } }",
          "desks [zone=UTC0; Mon-Fri 20:00-08:00] pc1 lab1 lab2;" },
        { "pools: { all: { nodes: 'pc[01-02]' }, none: }", "all [] pc01 pc02;none [];" },
        { "pools: { d: { window: 'zone=UTC; Sat-Sun 00:00-24:00' } }",
          "d [zone=UTC0; Sat-Sun 00:00-24:00];" },
    };
    AUTO(buf_free) struct buf b = BUF(1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(read_text(rows[i].text, &b), rows[i].want);
}

static void errors_name_pool_and_field(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "pools: [a]", "pools: an object is needed" },
        { "pools: { 'a b': }", "pools: 'a b' cannot be a pool's name" },
        { "pools: { d: { windows: x } }", "pools: d: " },
        { "pools: { d: 5 }", "pools: d: an object with window and nodes is needed" },
        { "pools: { d: { window: 'Mon 20:00-08:00; Tue 8-9' } }",
          "pools: d: window: calendar, part 2 'Tue 8-9'" },
        { "pools: { d: { window: 'zone=Europe/Atlantis; Mon 20:00-08:00' } }",
          "pools: d: window: calendar, part 1 'zone=Europe/Atlantis'" },
        { "pools: { d: { window: 5 } }", "pools: d: " },
        { "pools: { d: { nodes: 7 } }", "pools: d: nodes: a list of names is needed" },
        { "pools: { d: { nodes: ['pc['] } }", "pools: d: nodes: " },
        { "pools: { d: { nodes: [pc1, 'pc[1-2]'] } }", "pools: d: nodes: 'pc1' is named twice" },
        { "pools: { d: { nodes: [pc1] }, f: { nodes: ['pc[1-2]'] } }",
          "pools: f: nodes: 'pc1' is in 'd' already" },
    };
    AUTO(buf_free) struct buf b = BUF(1 << 16), want = BUF(1 << 10);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *got = read_text(rows[i].text, &b);
        buf_truncate(&want, 0);
        buf_printf(&want, "error: %s", rows[i].want);
        if (strncmp(got, want.p, want.n) != 0)
            CHECK_STR(got, want.p);
    }
}

static const struct test tests[] = {
    { "what a person writes is read", what_a_person_writes_is_read },
    { "errors name pool and field", errors_name_pool_and_field },
};
TEST_CASES(tests)
