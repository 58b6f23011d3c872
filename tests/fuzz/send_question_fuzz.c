/* Any text as a question to nightshift-send: texts that go into a line of a protocol have no line's end in them. */
#include "send/question.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(data, size)
{
    struct err e = { 0 };
    struct question q;
    AUTO(json_free_p) struct json_doc *d = json_read((struct str){ (const char *)data, size }, &e);
    if (!d || question_read(json_root(d), &q, &e) < 0)
        return 0;
    const char *const texts[] = {
        q.server, q.from, q.to, q.login, q.url, q.secret, q.id, q.ca_file
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i] && (strpbrk(texts[i], "\r\n") || !texts[i][0]))
            abort();
    if (q.way == SEND_MAIL ? !q.server || !q.from || !q.to : !q.url || !q.id)
        abort();
    return 0;
}
