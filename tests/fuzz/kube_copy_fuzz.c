/* Any bytes as a copy of a job: what is taken makes the same copy again, what is not is told. */
#include "engine/kube/copy_doc.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    struct str text = { size ? (const char *)data : "", size };
    struct copy_doc c, again;
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(text, &e);
    if (!d)
        return 0;
    if (copy_read(json_root(d), "pc1", &c, &e) < 0) {
        must(e.msg[0]);
        return 0;
    }
    AUTO(buf_free) struct buf out = BUF(8 * size + 4096);
    c.space = "own";
    copy_make(&c, &out);
    AUTO(json_free_p) struct json_doc *back = json_read(buf_str(&out), &e);
    must(back && copy_read(json_root(back), "pc1", &again, &e) == 0);
    must(again.job == c.job && str_eq(again.record, c.record));
    return 0;
}
