#include "cli/life.h"

#include <stdio.h>

#include "cli/field.h"
#include "cli/job.h"
#include "cli/text.h"

#define PAGE_BYTES (16u << 20)

static void add_note(struct buf *b, struct str text)
{
    if (text.n == 0)
        return;
    buf_addz(b, "  ");
    text_add_clean(b, text);
}

static void add_exit(struct buf *b, const struct json *event)
{
    if (field_i64(event, "exit_signal", 0) > 0)
        buf_printf(b, ", signal %lld", (long long)field_i64(event, "exit_signal", 0));
    else if (field_known(event, "exit_code"))
        buf_printf(b, ", exit code %lld", (long long)field_i64(event, "exit_code", 0));
}

void life_line(const struct json *event, struct buf *out)
{
    AUTO(buf_free) struct buf where = BUF(1u << 16);
    char when[24];
    struct job at = { 0 };
    struct str what = field_str(event, "what"), by = field_str(event, "by");
    bool over = str_is(what, "ended");
    buf_printf(out, "%s  ", text_time_seconds(field_i64(event, "t_ms", 0), when));
    text_add_clean(out, over ? field_str(event, "state") : what);
    if (over)
        add_exit(out, event);
    if (by.n) {
        buf_addz(out, " by ");
        text_add_fit(out, by, 24);
    }
    job_read(event, &at);
    job_add_where(&at, &where);
    add_note(out, buf_str(&where));
    if (at.run > 1 && where.n)
        buf_printf(out, ", run %llu", (unsigned long long)at.run);
    add_note(out, field_str(event, "reason_text"));
    add_note(out, at.message);
}

static int print_page(const struct json *root, bool json, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(PAGE_BYTES);
    const struct json *list = json_find(root, "events");
    for (const struct json *o = json_is_array(list) ? json_first(list) : NULL; o;
         o = json_next(list, o)) {
        struct json_out w = { .b = &b };
        if (json)
            json_put(&w, NULL, o);
        else
            life_line(o, &b);
        buf_addc(&b, '\n');
    }
    return cli_print(&b, e);
}

int life_print(struct cli *c, uint64_t job, bool json, struct err *e)
{
    uint64_t after = 0;
    do {
        char path[96];
        snprintf(path, sizeof path, "/v1/jobs/%llu/events?limit=1000&after=%llu",
                 (unsigned long long)job, (unsigned long long)after);
        AUTO(json_free_p) struct json_doc *d = cli_get(c, path, e);
        if (!d || print_page(json_root(d), json, e) < 0)
            return -1;
        after = field_u64(json_root(d), "next");
    } while (after);
    return 0;
}
