#include "cli/audit_file.h"

#include "base/json.h"
#include "tests/lib/test.h"

struct made {
    struct buf text;
    struct audit_link head;
};

static void put_link(struct json_out *w, const char *key, const struct audit_link *l)
{
    char hash[AUDIT_HASH_TEXT];
    json_begin(w, key, '{');
    json_put_u64(w, "number", l->number);
    json_put_str(w, "hash", str_of(audit_hash_format(&l->hash, hash)));
    json_end(w, '}');
}

static void put_row(struct json_out *w, const struct audit_row *r, const struct audit_hash *h)
{
    char hash[AUDIT_HASH_TEXT];
    json_begin(w, NULL, '{');
    json_put_u64(w, "number", r->number);
    json_put_i64(w, "t_ms", r->t_ms);
#define X(name, max) json_put_str(w, #name, r->name);
    AUDIT_TEXTS(X)
#undef X
    json_put_str(w, "hash", str_of(audit_hash_format(h, hash)));
    json_end(w, '}');
}

/* An export of so many rows; texts have what JSON must escape. */
static struct made make(uint64_t rows)
{
    AUTO(buf_free) struct buf lines = BUF(1 << 20);
    struct made m = { .text = BUF(1 << 20) };
    const struct audit_link nothing = { 0 };
    for (uint64_t i = 1; i <= rows; i++) {
        struct json_out w = { .b = &lines };
        struct audit_row r = { .number = i,
                               .t_ms = (int64_t)i * 1000,
                               .who = STR("Zoë \"z\""),
                               .what = STR("node.drain"),
                               .after = STR("{\"a\":\"\\n\"}"),
                               .reason = STR("a\nb\t\\") };
        audit_row_hash(&m.head.hash, &r, &m.head.hash);
        m.head.number = i;
        put_row(&w, &r, &m.head.hash);
        buf_addc(&lines, '\n');
    }
    struct json_out w = { .b = &m.text };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "audit", 1);
    put_link(&w, "cut", &nothing);
    put_link(&w, "head", &m.head);
    json_end(&w, '}');
    buf_addc(&m.text, '\n');
    buf_add(&m.text, buf_str(&lines));
    return m;
}

static int verify(struct str text, const struct audit_link *noted, struct audit_chain *out,
                  struct err *e)
{
    FILE *from = fmemopen((void *)(uintptr_t)text.p, text.n, "r");
    CHECK(from != NULL);
    struct audit_file f = { .from = from, .name = "x", .noted = noted };
    *e = (struct err){ 0 };
    int rc = audit_file_verify(&f, out, e);
    fclose(from);
    return rc;
}

static void a_whole_export_is_good(void)
{
    struct audit_chain c;
    struct err e;
    struct made m = make(5);
    CHECK(verify(buf_str(&m.text), &m.head, &c, &e) == 0);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.rows == 5 && c.found);
    m.head.number = 4;
    CHECK(verify(buf_str(&m.text), &m.head, &c, &e) == 0 && c.fault == AUDIT_FAULT_NOTED);
    buf_free(&m.text);
    m = make(0);
    CHECK(verify(buf_str(&m.text), NULL, &c, &e) == 0 && c.fault == AUDIT_FAULT_NONE);
    buf_free(&m.text);
}

static void what_was_changed_or_cut_off_is_found(void)
{
    struct audit_chain c;
    struct err e;
    struct made m = make(5);
    char *at = strstr(m.text.p, "\"number\":3");
    at = strstr(at, "drain");
    at[0] = 't';
    CHECK(verify(buf_str(&m.text), NULL, &c, &e) == 0);
    CHECK(c.fault == AUDIT_FAULT_HASH && c.fault_at == 3);
    at[0] = 'd';
    struct str text = buf_str(&m.text);
    char *fifth = strstr(m.text.p + 400, "{\"number\":5");
    CHECK(fifth != NULL);
    text.n = (size_t)(fifth - text.p);
    CHECK(verify(text, NULL, &c, &e) == 0 && c.fault == AUDIT_FAULT_HEAD && c.fault_at == 5);
    buf_free(&m.text);
}

static void what_is_no_export_is_refused_with_its_line(void)
{
    static const char *const texts[] = {
        "{}\n",
        "[]\n",
        "{\"audit\":2,\"cut\":{},\"head\":{}}\n",
        "{\"audit\":1}\n",
        "{\"audit\":1,\"cut\":{\"number\":0,\"hash\":\"\"},\"head\":{}}\n",
        "PNG\n",
        "\n",
    };
    struct audit_chain c;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_AT(i, verify(str_of(texts[i]), NULL, &c, &e) < 0 && e.code == ERR_INVALID);
        CHECK_AT(i, strstr(e.msg, "'x' line 1 ") && strstr(e.hint, "audit export"));
    }
    struct made m = make(2);
    buf_addz(&m.text, "{\"error\":\"the audit was cut while it was read\"}\n");
    CHECK(verify(buf_str(&m.text), NULL, &c, &e) < 0 && strstr(e.msg, "line 4"));
    CHECK(strstr(e.msg, "was cut while it was read"));
    buf_free(&m.text);
}

static const struct test tests[] = {
    { "a whole export is good", a_whole_export_is_good },
    { "what was changed or cut off is found", what_was_changed_or_cut_off_is_found },
    { "what is no export is refused with its line", what_is_no_export_is_refused_with_its_line },
};
TEST_CASES(tests)
