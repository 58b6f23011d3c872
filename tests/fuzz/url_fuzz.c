/* An address of the web: what is taken has its parts inside the text and is one with itself; what is encoded
 * has no sign that could end a value. */
#include "base/url.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void lies_in(struct str part, struct str all)
{
    must(part.n == 0 || (part.p >= all.p && part.p + part.n <= all.p + all.n));
}

FUZZ_TARGET(data, size)
{
    struct str text = { (const char *)data, size };
    AUTO(buf_free) struct buf out = BUF(3 * size + 1);
    struct url u = { 0 };
    struct err e = { 0 };
    url_encode(text, &out);
    must(!out.full && (out.n == 0 || out.p[strcspn(out.p, "&=?#/ \r\n")] == '\0'));
    if (url_parse(text, &u, &e) < 0) {
        must(e.code == ERR_INVALID && e.msg[0] && e.hint[0]);
        return 0;
    }
    must(size <= URL_MAX && u.host.n > 0 && u.port > 0 && url_same_origin(&u, &u));
    must(!memchr(data, '@', (size_t)(u.host.p + u.host.n - text.p)) && !memchr(data, '#', size));
    lies_in(u.host, text);
    lies_in(u.path, text);
    lies_in(u.query, text);
    return 0;
}
