/* A job spec: read, written, read again and written again is the same text. */
#include "spec/spec.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf once = BUF(8 << 20), twice = BUF(8 << 20);
    struct json_out w1 = { .b = &once }, w2 = { .b = &twice };
    struct spec s;
    struct err e;
    AUTO(json_free_p) struct json_doc *d = json_read((struct str){ (const char *)data, size }, &e);
    if (size > SPEC_TEXT_MAX || !d || spec_read(json_root(d), &a, &s, NULL, &e) < 0)
        return 0;
    spec_write(&s, &w1, NULL);
    AUTO(json_free_p) struct json_doc *again = json_read(buf_str(&once), &e);
    if (!again || spec_read(json_root(again), &a, &s, NULL, &e) < 0)
        abort();
    spec_write(&s, &w2, NULL);
    if (!str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    return 0;
}
