/* A reference that parses, written in full, parses to the same; and nothing in it could be taken for
 * an option, another source or a second word by the program that gets it. */
#include "keeper/image.h"
#include "tests/fuzz/target.h"

static void need(bool ok)
{
    if (!ok)
        abort();
}

FUZZ_TARGET(data, size)
{
    struct image_ref r, again;
    struct err e = { 0 };
    struct str text = { size ? (const char *)data : "", size };
    if (image_ref_parse(text, &r, &e) < 0) {
        need(e.msg[0] && e.hint[0]);
        return 0;
    }
    AUTO(buf_free) struct buf full = BUF(4096);
    AUTO(buf_free) struct buf twice = BUF(4096);
    image_ref_format(&r, &full);
    need(!full.full && image_ref_parse(buf_str(&full), &again, &e) == 0);
    image_ref_format(&again, &twice);
    need(str_eq(buf_str(&full), buf_str(&twice)) && again.kind == r.kind);
    if (r.kind == IMAGE_DOCKER)
        need(!strpbrk(full.p, " \t\n'\"$`;&|<>\\") && r.name[0] != '-' && r.registry[0] != '-');
    else
        need(r.name[0] == '/' && !strchr(r.name, ':'));
    return 0;
}
