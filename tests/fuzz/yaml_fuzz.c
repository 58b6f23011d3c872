/* Any bytes as YAML: what reads is JSON, and that JSON, being YAML too, gives itself again; what is
 * refused is told in one line. */
#include "base/yaml.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static bool ascii(struct str s)
{
    size_t n = 0;
    while (n < s.n && (unsigned char)s.p[n] < 0x80)
        n++;
    return n == s.n;
}

FUZZ_TARGET(data, size)
{
    AUTO(buf_free) struct buf one = BUF(8u << 20), two = BUF(8u << 20);
    struct str text = { (const char *)data, size };
    struct err e = { 0 };
    if (size > 64u << 10)
        return 0;
    size_t line = yaml_line_of(text, "gpus");
    must(line <= size + 1);
    if (yaml_to_json(text, &one, &e) < 0) {
        must(e.code == ERR_INVALID && e.msg[0] && !strchr(e.msg, '\n') && one.n == 0);
        return 0;
    }
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&one), &e);
    must(d != NULL);
    if (json_is_object(json_root(d)))
        must(!json_find(json_root(d), "gpus") == (line == 0));
    /* YAML breaks lines at U+0085 and others that JSON lets stand. */
    if (ascii(buf_str(&one)))
        must(yaml_to_json(buf_str(&one), &two, &e) == 0 && str_eq(buf_str(&one), buf_str(&two)));
    return 0;
}
