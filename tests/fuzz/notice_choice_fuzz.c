/* Any text as what somebody chooses: taken whole or not at all, and what was taken is read again from the store. */
#include "notice/choice.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(data, size)
{
    struct str text = { (const char *)data, size };
    struct choice_bounds bounds = { .mail = true, .webhooks = WEBHOOK_NETWORK };
    struct err e = { 0 };
    struct notice_choice c, back;
    bool secret = false;
    AUTO(buf_free) struct buf out = BUF(1u << 20);
    AUTO(json_free_p) struct json_doc *d = json_read(text, &e);
    choice_init(&c);
    if (d && json_is_object(json_root(d)) &&
        choice_change(&c, json_root(d), &bounds, &secret, &e) == 0) {
        if (c.mail && (strpbrk(c.mail, "\r\n <>,") || !strchr(c.mail, '@')))
            abort();
        choice_write(&c, &out);
        if (choice_read(buf_str(&out), &back, &e) < 0 || memcmp(back.on, c.on, sizeof c.on) != 0)
            abort();
        choice_clear(&back);
    }
    if (choice_read(text, &back, &e) == 0)
        choice_clear(&back);
    choice_clear(&c);
    return 0;
}
