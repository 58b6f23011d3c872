/* Any text as a notice's data: what comes out is one mail with our headers alone, and one JSON object. */
#include "notice/render.h"
#include "tests/fuzz/target.h"

static void check_mail(const struct buf *m)
{
    static const char *const names =
        "|From|To|Subject|Date|Message-ID|Auto-Submitted|X-Nightshift-Event|MIME-Version|"
        "Content-Type|Content-Transfer-Encoding|";
    struct str rest = buf_str(m), line;
    while (str_next_line(&rest, &line) && line.n) {
        char name[64] = "|";
        const char *colon = memchr(line.p, ':', line.n);
        if (line.p[0] == ' ')
            continue;
        if (!colon || colon - line.p > 50)
            abort();
        memcpy(name + 1, line.p, (size_t)(colon - line.p));
        name[colon - line.p + 1] = '|';
        if (!strstr(names, name))
            abort();
    }
    for (size_t i = 0; i < m->n; i++)
        if ((unsigned char)m->p[i] > 0x7e || (m->p[i] == '\n' && (i == 0 || m->p[i - 1] != '\r')))
            abort();
}

FUZZ_TARGET(data, size)
{
    struct err e = { 0 };
    if (size < 1)
        return 0;
    struct str text = { (const char *)data + 1, size - 1 };
    AUTO(json_free_p) struct json_doc *d = json_read(text, &e);
    if (!d || !json_is_object(json_root(d)))
        return 0;
    AUTO(buf_free) struct buf subject = BUF(4096), mail = BUF(1u << 20), event = BUF(1u << 20);
    struct notice_letter l = { .id = "0123",
                               .event = (enum notice_event)(data[0] % NOTICE_EVENT_COUNT),
                               .made_ms = 1772368205000,
                               .data = text,
                               .log = text,
                               .url = "https://x.example",
                               .from = "a@b.example",
                               .to = "c@d.example" };
    if (render_subject(l.event, json_root(d), &subject, &e) < 0)
        return 0;
    l.subject = buf_str(&subject);
    if (render_mail(&l, &mail, &e) == 0)
        check_mail(&mail);
    if (render_event(&l, &event, &e) == 0) {
        AUTO(json_free_p) struct json_doc *again = json_read(buf_str(&event), &e);
        if (!again)
            abort();
    }
    return 0;
}
