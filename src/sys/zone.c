#include "sys/zone.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/date.h"
#include "sys/file.h"

#define DATABASE "/usr/share/zoneinfo/"
#define HEADER_BYTES 44
#define OTHER_WAY "write the zone's rule instead, like CET-1CEST,M3.5.0,M10.5.0/3"

/* ---- one file: a header and data in 32 bits for old readers, the same again in 64 bits, and the
 * rule between two line feeds ---- */

struct counts {
    uint32_t isut, isstd, leap, time, type, chars;
};

struct block {
    struct counts n;
    struct str data; /* of the block, after its header */
};

static int damaged(const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, "it is not a file of the time zone database: %s", why);
    err_hint(e, "install the package tzdata again, or " OTHER_WAY);
    return -1;
}

static uint64_t big_endian(const char *p, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

static int64_t seconds_at(const char *p)
{
    uint64_t v = big_endian(p, 8);
    int64_t s;
    memcpy(&s, &v, sizeof s);
    return s;
}

/* Takes a header and its data off *rest; times are `wide` bytes.  Counts have 32 bits each and
 * records at most 12 bytes, so the sum fits. */
static int take_block(struct str *rest, size_t wide, struct block *out, struct err *e)
{
    if (rest->n < HEADER_BYTES || memcmp(rest->p, "TZif", 4) != 0)
        return damaged("its header is missing", e);
    const char *p = rest->p + 20;
    struct counts n = {
        (uint32_t)big_endian(p, 4),      (uint32_t)big_endian(p + 4, 4),
        (uint32_t)big_endian(p + 8, 4),  (uint32_t)big_endian(p + 12, 4),
        (uint32_t)big_endian(p + 16, 4), (uint32_t)big_endian(p + 20, 4),
    };
    uint64_t size = (uint64_t)n.time * (wide + 1) + (uint64_t)n.type * 6 + n.chars +
                    (uint64_t)n.leap * (wide + 4) + n.isstd + n.isut;
    if (size > rest->n - HEADER_BYTES)
        return damaged("it ends too early", e);
    if (n.type == 0)
        return damaged("it has no local time", e);
    *out = (struct block){ n, { rest->p + HEADER_BYTES, (size_t)size } };
    *rest = (struct str){ rest->p + HEADER_BYTES + size, rest->n - HEADER_BYTES - (size_t)size };
    return 0;
}

static int64_t listed_ms(const struct block *b, uint32_t i)
{
    int64_t s = seconds_at(b->data.p + (size_t)i * 8);
    return s > INT64_MAX / 1000 ? INT64_MAX : s < INT64_MIN / 1000 ? INT64_MIN : s * 1000;
}

/* Seconds east of Greenwich in the file's local time of that number. */
static int32_t type_offset(const struct block *b, unsigned type)
{
    uint32_t v = (uint32_t)big_endian(b->data.p + (size_t)b->n.time * 9 + (size_t)type * 6, 4);
    int32_t offset;
    memcpy(&offset, &v, sizeof v);
    return offset;
}

static int32_t offset_s(const struct tz *z, int64_t utc_ms)
{
    return (int32_t)((tz_local_ms(z, utc_ms) - utc_ms) / 1000);
}

static int no_rule_from(int64_t t_ms, struct err *e)
{
    struct date d = date_of_days(floor_div(t_ms, DAY_MS));
    err_set(e, ERR_CONFLICT,
            "no single rule holds: from %04d-%02u-%02u on its clock goes otherwise", d.year,
            d.month, d.day);
    return err_hint(e, "write the rule that holds until then, like CET-1CEST,M3.5.0,M10.5.0/3, "
                       "and change it then");
}

/* Whether the rule makes every change that is listed from now on, and no other before the last. */
static int check_future(const struct block *b, const struct tz *z, int64_t now_ms, struct err *e)
{
    int64_t far_ms = date_year_days(9000) * DAY_MS, at_ms = now_ms;
    int32_t before = type_offset(b, 0);
    for (uint32_t i = 0; i < b->n.time; i++) {
        int64_t t_ms = listed_ms(b, i);
        unsigned type = (unsigned char)b->data.p[(size_t)b->n.time * 8 + i];
        if (i && t_ms <= listed_ms(b, i - 1))
            return damaged("its changes are not in order", e);
        if (type >= b->n.type)
            return damaged("a change leads to no local time", e);
        int32_t after = type_offset(b, type);
        if (t_ms > now_ms && t_ms < far_ms && after != before) {
            int64_t next_ms = tz_next_change_ms(z, at_ms);
            if (offset_s(z, at_ms) != before)
                return no_rule_from(at_ms, e);
            if (next_ms != t_ms)
                return no_rule_from(MIN(next_ms, t_ms), e);
            at_ms = t_ms;
        }
        before = after;
    }
    return offset_s(z, at_ms) == before ? 0 : no_rule_from(at_ms, e);
}

int zone_parse(struct str bytes, int64_t now_ms, struct tz *out, struct err *e)
{
    struct block b;
    struct tz z = { 0 };
    struct str rule, after;
    if (take_block(&bytes, 4, &b, e) < 0)
        return -1;
    if (bytes.n == 0) {
        err_set(e, ERR_CONFLICT, "it has no rule for the future, only past changes");
        return err_hint(e, OTHER_WAY);
    }
    if (take_block(&bytes, 8, &b, e) < 0)
        return -1;
    if (b.n.leap) {
        err_set(e, ERR_CONFLICT, "it counts leap seconds, which clocks here do not");
        return err_hint(e, "take the same name without right/");
    }
    if (bytes.n < 2 || bytes.p[0] != '\n' ||
        !str_cut((struct str){ bytes.p + 1, bytes.n - 1 }, '\n', &rule, &after))
        return damaged("its last line is missing", e);
    if (rule.n == 0) {
        err_set(e, ERR_CONFLICT, "its law follows no rule");
        return err_hint(e, OTHER_WAY);
    }
    if (tz_parse(rule, &z, e) < 0 || check_future(&b, &z, now_ms, e) < 0)
        return -1;
    *out = z;
    return 0;
}

/* ---- the database ---- */

/* Without dots there is no way out of the folder. */
static bool is_name(struct str s)
{
    char before = '/';
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || c == '+';
        if (!word && (c != '/' || before == '/'))
            return false;
        before = c;
    }
    return s.n <= ZONE_NAME_MAX && before != '/';
}

static int bad_name(struct str name, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is not the name of a time zone",
            (int)MIN(name.n, (size_t)ZONE_NAME_MAX), name.p);
    return err_hint(
        e, "write it like Europe/Berlin; the names are listed by: timedatectl list-timezones");
}

int zone_find(const char *root, struct str name, int64_t now_ms, struct tz *out, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(4096);
    AUTO(buf_free) struct buf bytes = BUF(ZONE_FILE_MAX);
    if (!is_name(name))
        return bad_name(name, e);
    if (str_is(name, "UTC")) {
        *out = tz_utc();
        return 0;
    }
    buf_printf(&path, "%s" DATABASE, root);
    if (buf_check(&path, e) == 0 && access(path.p, X_OK) < 0) {
        err_set(e, ERR_UNAVAILABLE, "there is no time zone database (%s)", path.p);
        return err_hint(e, "install the package tzdata, or " OTHER_WAY);
    }
    buf_add(&path, name);
    if (buf_check(&path, e) < 0 || file_read(path.p, ZONE_FILE_MAX, &bytes, e) < 0) {
        /* A folder such as Europe is found, and is no zone either. */
        if (e->code == ERR_NOT_FOUND || e->code == ERR_INVALID)
            return bad_name(name, e);
        return -1;
    }
    if (zone_parse(buf_str(&bytes), now_ms, out, e) < 0)
        return err_wrap(e, "time zone '%.*s'", (int)name.n, name.p);
    return 0;
}

static int set_name(struct str name, char out[static ZONE_NAME_MAX + 1], struct err *e)
{
    if (!is_name(name))
        return bad_name(name, e);
    memcpy(out, name.p, name.n);
    out[name.n] = '\0';
    return 0;
}

int zone_of_host(const char *root, char out[static ZONE_NAME_MAX + 1], struct err *e)
{
    static const char mark[] = "zoneinfo/";
    AUTO(buf_free) struct buf path = BUF(4096);
    AUTO(buf_free) struct buf text = BUF(4096);
    char link[4096];
    struct str line;
    buf_printf(&path, "%s/etc/localtime", root);
    if (buf_check(&path, e) < 0)
        return -1;
    ssize_t n = readlink(path.p, link, sizeof link - 1);
    bool none = n < 0 && errno == ENOENT;
    link[MAX(n, (ssize_t)0)] = '\0';
    const char *at = strstr(link, mark);
    if (at)
        return set_name(str_of(at + sizeof mark - 1), out, e);
    buf_truncate(&path, 0);
    buf_printf(&path, "%s/etc/timezone", root);
    if (file_read(path.p, 4096, &text, e) == 0) {
        str_cut(buf_str(&text), '\n', &line, &(struct str){ 0 });
        return set_name(str_trim(line), out, e);
    }
    if (e->code == ERR_NOT_FOUND && none)
        return set_name(STR("UTC"), out, e);
    err_set(e, ERR_NOT_FOUND, "this machine does not say its time zone's name");
    return err_hint(e, "set it, like: timedatectl set-timezone Europe/Berlin");
}
