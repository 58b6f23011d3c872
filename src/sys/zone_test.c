#include "sys/zone.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/fakes/host.h"
#include "tests/lib/test.h"

#define NOW_MS INT64_C(1794787200000) /* 2026-11-16 */
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define SPRING INT64_C(1806195600) /* 2027-03-28 01:00 UTC */
#define AUTUMN INT64_C(1824944400) /* 2027-10-31 01:00 UTC */

/* A file of the database as we write it: local times by offset, changes to one of them. */
struct file {
    char version;
    const char *footer;
    uint32_t leaps;
    int32_t offset[3];
    struct {
        int64_t at_s;
        unsigned char to;
    } change[6];
    uint32_t offsets, changes;
};

static void add_number(struct buf *out, uint64_t v, size_t bytes)
{
    while (bytes--)
        buf_addc(out, (char)(v >> 8 * bytes));
}

static void add_block(struct buf *out, const struct file *f, size_t wide)
{
    buf_addz(out, "TZif");
    buf_addc(out, f->version);
    for (int i = 0; i < 15; i++)
        buf_addc(out, '\0');
    uint32_t counts[] = { 1, 1, f->leaps, f->changes, f->offsets, 4 };
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        add_number(out, counts[i], 4);
    for (uint32_t i = 0; i < f->changes; i++)
        add_number(out, (uint64_t)f->change[i].at_s, wide);
    for (uint32_t i = 0; i < f->changes; i++)
        buf_addc(out, (char)f->change[i].to);
    for (uint32_t i = 0; i < f->offsets; i++) {
        add_number(out, (uint32_t)f->offset[i], 4);
        add_number(out, 0, 2);
    }
    buf_add(out, STR("XXX\0"));
    for (uint32_t i = 0; i < f->leaps * (wide + 4) + 2; i++)
        buf_addc(out, '\0');
}

static void write_zone(const struct file *f, struct buf *out)
{
    buf_truncate(out, 0);
    add_block(out, f, 4);
    if (!f->version)
        return;
    add_block(out, f, 8);
    buf_printf(out, "\n%s\n", f->footer);
}

static struct file berlin(void)
{
    return (struct file){
        .version = '2',
        .footer = BERLIN,
        .offset = { 3208, 3600, 7200 },
        .offsets = 3,
        .change = { { -2422054408, 1 }, { 1000, 2 }, { 2000, 1 }, { SPRING, 2 }, { AUTUMN, 1 } },
        .changes = 5,
    };
}

static const char *rule_of(const struct tz *z, struct buf *out)
{
    buf_truncate(out, 0);
    tz_format(z, out);
    return out->p;
}

static void the_rule_is_read(void)
{
    AUTO(buf_free) struct buf bytes = BUF(10000), text = BUF(1000);
    struct tz z;
    struct err e = { 0 };
    struct file f = berlin();
    write_zone(&f, &bytes);
    CHECK(zone_parse(buf_str(&bytes), NOW_MS, &z, &e) == 0);
    CHECK_STR(rule_of(&z, &text), BERLIN);
    f.changes = 3; /* a slim file lists only what the rule does not say */
    f.version = '3';
    write_zone(&f, &bytes);
    CHECK(zone_parse(buf_str(&bytes), NOW_MS, &z, &e) == 0);
    f = (struct file){
        .version = '2', .footer = "<+0330>-3:30", .offset = { 12600 }, .offsets = 1
    };
    write_zone(&f, &bytes);
    CHECK(zone_parse(buf_str(&bytes), NOW_MS, &z, &e) == 0);
    CHECK_STR(rule_of(&z, &text), "<+0330>-3:30");
}

static void refuse(const struct file *f, enum err_code code, const char *says)
{
    AUTO(buf_free) struct buf bytes = BUF(10000);
    struct tz z = { .std = "kept" };
    struct err e = { 0 };
    write_zone(f, &bytes);
    if (zone_parse(buf_str(&bytes), NOW_MS, &z, &e) == 0 || !strstr(e.msg, says))
        test_fail(__FILE__, __LINE__, "not '%s' but '%s'", says, e.msg);
    CHECK(e.code == code && e.hint[0] && strcmp(z.std, "kept") == 0);
}

static void a_zone_without_one_rule_is_refused_by_name(void)
{
    struct file f = berlin();
    f.change[3].at_s += 86400; /* next spring is a day later than the rule has it */
    refuse(&f, ERR_CONFLICT, "no single rule holds: from 2027-03-28 on");
    f = berlin();
    f.change[3].at_s -= 86400;
    refuse(&f, ERR_CONFLICT, "from 2027-03-27 on");
    f = berlin();
    f.change[4].to = 0; /* and goes to another time in autumn */
    refuse(&f, ERR_CONFLICT, "from 2027-10-31 on");
    f = berlin();
    f.change[3].to = 0; /* not an hour ahead, but to the old mean time */
    refuse(&f, ERR_CONFLICT, "from 2027-03-28 on");
    f = berlin();
    f.footer = "CET-1"; /* two more changes and then none: the law will change */
    refuse(&f, ERR_CONFLICT, "from 2027-03-28 on");
    f = berlin();
    f.changes = 2; /* since 1970 two hours ahead, and the rule says one */
    refuse(&f, ERR_CONFLICT, "from 2026-11-16 on");
    f = berlin();
    f.footer = "";
    refuse(&f, ERR_CONFLICT, "follows no rule");
    f = berlin();
    f.leaps = 3;
    refuse(&f, ERR_CONFLICT, "leap seconds");
    f = berlin();
    f.version = '\0';
    refuse(&f, ERR_CONFLICT, "no rule for the future");
}

static void a_damaged_file_is_refused(void)
{
    AUTO(buf_free) struct buf bytes = BUF(10000);
    struct file f = berlin();
    struct tz z;
    struct err e = { 0 };
    f.change[2].at_s = 500;
    refuse(&f, ERR_INVALID, "not in order");
    f = berlin();
    f.change[0].to = 3;
    refuse(&f, ERR_INVALID, "no local time");
    f = berlin();
    f.footer = "CET-1CEST";
    refuse(&f, ERR_INVALID, "is missing");
    f = (struct file){ .version = '2', .footer = "UTC0" };
    refuse(&f, ERR_INVALID, "no local time");
    f = berlin();
    write_zone(&f, &bytes);
    for (size_t n = 0; n < bytes.n;
         n++) /* each beginning of it; the first block alone is old, not damaged */
        CHECK(zone_parse((struct str){ bytes.p, n }, NOW_MS, &z, &e) < 0 && e.hint[0]);
    bytes.p[0] = 'x';
    CHECK(zone_parse(buf_str(&bytes), NOW_MS, &z, &e) < 0 && strstr(e.msg, "header"));
    memset(bytes.p + 20, 0xff, 24); /* counts beyond all bounds */
    bytes.p[0] = 'T';
    CHECK(zone_parse(buf_str(&bytes), NOW_MS, &z, &e) < 0 && strstr(e.msg, "too early"));
}

static void fake_zone(const struct fake_host *h, const char *path)
{
    AUTO(buf_free) struct buf bytes = BUF(10000);
    char full[512];
    struct file f = berlin();
    struct err e;
    write_zone(&f, &bytes);
    fake_file(h, path, "");
    snprintf(full, sizeof full, "%s%s", h->root, path);
    CHECK(file_write(full, buf_str(&bytes), &e) == 0);
}

static void a_name_is_found_in_the_database(void)
{
    AUTO(fake_clear) struct fake_host h;
    AUTO(buf_free) struct buf text = BUF(1000);
    struct tz z;
    struct err e = { 0 };
    fake_init(&h);
    CHECK(zone_find(h.root, STR("UTC"), NOW_MS, &z, &e) == 0);
    CHECK_STR(rule_of(&z, &text), "UTC0");
    CHECK(zone_find(h.root, STR("Europe/Berlin"), NOW_MS, &z, &e) < 0);
    CHECK(e.code == ERR_UNAVAILABLE && strstr(e.hint, "tzdata"));
    fake_zone(&h, "/usr/share/zoneinfo/Europe/Berlin");
    CHECK(zone_find(h.root, STR("Europe/Berlin"), NOW_MS, &z, &e) == 0);
    CHECK_STR(rule_of(&z, &text), BERLIN);
    fake_file(&h, "/usr/share/zoneinfo/Europe/Broken", "TZif");
    CHECK(zone_find(h.root, STR("Europe/Broken"), NOW_MS, &z, &e) < 0);
    CHECK(strstr(e.msg, "time zone 'Europe/Broken': ") && e.hint[0]);
}

static void what_is_no_name_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "/",
        "/etc/passwd",
        "../zoneinfo/Europe/Berlin",
        "Europe/../Europe/Berlin",
        "Europe",
        "Europe/",
        "Europe//Berlin",
        "Europe/Berlin/x",
        "Europe/Bonn",
        "berlin",
        "zone.tab",
        "Europe/Berlin ",
        "Europe\\Berlin",
        "Very/Long/Name/Very/Long/Name/Very/Long/Name/Very/Long/Name/Very",
    };
    AUTO(fake_clear) struct fake_host h;
    struct tz z;
    struct err e = { 0 };
    fake_init(&h);
    fake_zone(&h, "/usr/share/zoneinfo/Europe/Berlin");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (zone_find(h.root, str_of(bad[i]), NOW_MS, &z, &e) == 0 ||
            !strstr(e.msg, "is not the name of a time zone"))
            test_fail(__FILE__, __LINE__, "'%s': %s", bad[i], e.msg);
        CHECK(e.code == ERR_INVALID && e.hint[0]);
    }
    CHECK(zone_find(h.root, STR("UTC\0x"), NOW_MS, &z, &e) < 0 && e.code == ERR_INVALID);
}

static void the_machine_says_its_zone(void)
{
    AUTO(fake_clear) struct fake_host h;
    char name[ZONE_NAME_MAX + 1], path[128];
    struct err e = { 0 };
    fake_init(&h);
    snprintf(path, sizeof path, "%s/etc/localtime", h.root);
    CHECK(zone_of_host(h.root, name, &e) == 0); /* neither file: as for the C library */
    CHECK_STR(name, "UTC");
    fake_file(&h, "/etc/localtime", "TZif"); /* a copy, not a link */
    CHECK(zone_of_host(h.root, name, &e) < 0 && e.code == ERR_NOT_FOUND && e.hint[0]);
    fake_file(&h, "/etc/timezone", "Asia/Tehran\n");
    CHECK(zone_of_host(h.root, name, &e) == 0);
    CHECK_STR(name, "Asia/Tehran");
    CHECK(unlink(path) == 0 && symlink("../usr/share/zoneinfo/Europe/Berlin", path) == 0);
    CHECK(zone_of_host(h.root, name, &e) == 0); /* the link is what programs follow */
    CHECK_STR(name, "Europe/Berlin");
    CHECK(unlink(path) == 0 && symlink("/usr/share/zoneinfo/../x", path) == 0);
    CHECK(zone_of_host(h.root, name, &e) < 0 && e.code == ERR_INVALID);
}

/* Every place of this machine's database: a rule that is the last line of its file, or no rule. */
static void the_real_database_can_be_read(void)
{
    static const char *const parts[] = { "Africa",    "America", "Asia",
                                         "Australia", "Europe",  "Pacific" };
    unsigned rules = 0, without = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char path[64];
        snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", parts[i]);
        DIR *d = opendir(path);
        if (!d)
            SKIP("there is no time zone database here (tzdata)");
        for (struct dirent *f; (f = readdir(d));) {
            AUTO(buf_free) struct buf name = BUF(400), file = BUF(1000), text = BUF(1000);
            struct tz z;
            struct err e = { 0 };
            if (f->d_name[0] == '.' || f->d_type == DT_DIR)
                continue;
            buf_printf(&name, "%s/%s", parts[i], f->d_name);
            if (zone_find("", buf_str(&name), NOW_MS, &z, &e) < 0) {
                CHECK_INT(e.code, ERR_CONFLICT);
                without++;
                continue;
            }
            rules++;
            rule_of(&z, &text);
            char full[480];
            snprintf(full, sizeof full, "/usr/share/zoneinfo/%s", name.p);
            CHECK(file_read(full, ZONE_FILE_MAX, &file, &e) == 0 && file.n > text.n + 2);
            file.p[file.n - 1] = '\0';
            CHECK_STR(file.p + file.n - 1 - text.n, text.p);
        }
        closedir(d);
    }
    CHECK(rules > 300 && without < 20);
}

static const struct test tests[] = {
    { "the rule of a file is read, of a fat one and a slim one", the_rule_is_read },
    { "a zone without one rule is refused, and from when on is said",
      a_zone_without_one_rule_is_refused_by_name },
    { "a damaged file is refused", a_damaged_file_is_refused },
    { "a name is found in the database", a_name_is_found_in_the_database },
    { "what is no name is refused, and so is every way out of the folder",
      what_is_no_name_is_refused },
    { "the machine says its zone", the_machine_says_its_zone },
    { "the real database can be read", the_real_database_can_be_read },
};
TEST_CASES(tests)
