/* Any bytes as a file of the time zone database: a rule that can be written and read, or one line
 * with a hint. */
#include "sys/zone.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    struct str bytes = { size ? (const char *)data : "", size };
    AUTO(buf_free) struct buf text = BUF(TZ_TEXT_MAX - 1);
    struct tz z, again;
    struct err e = { 0 };
    if (zone_parse(bytes, INT64_C(1794787200000), &z, &e) < 0) {
        must(e.code != ERR_NONE && e.msg[0] && e.hint[0] && !strchr(e.msg, '\n'));
        return 0;
    }
    tz_format(&z, &text);
    must(!text.full && tz_parse(buf_str(&text), &again, &e) == 0);
    must(memcmp(&z, &again, sizeof z) == 0);
    return 0;
}
