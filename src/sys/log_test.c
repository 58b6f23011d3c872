#include "sys/log.h"

#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/lib/test.h"

#define TIME "2026-03-01T12:30:00.250Z "

struct capture {
    FILE *f;
    char *text;
    size_t n;
    int64_t now_ms;
    struct log *log;
};

static void capture_init(struct capture *c, enum log_form form)
{
    *c = (struct capture){ .now_ms = INT64_C(1772368200250) };
    c->f = open_memstream(&c->text, &c->n);
    c->log = log_new(c->f, LOG_INFO_, form, clock_manual(&c->now_ms));
}

static void capture_clear(struct capture *c)
{
    c->log = log_free(c->log);
    fclose(c->f);
    free(c->text);
}

static void an_event_is_one_line(void)
{
    AUTO(capture_clear) struct capture c;
    capture_init(&c, LOG_TEXT);
    log_event(c.log, LOG_WARN_, "job.lost", "job=%llu node=%u silent_ms=%lld", 17ULL, 3u, -5LL);
    CHECK_STR(c.text, TIME "warn job.lost job=17 node=3 silent_ms=-5\n");
}

static void values_are_quoted_when_needed(void)
{
    AUTO(capture_clear) struct capture c;
    capture_init(&c, LOG_TEXT);
    log_event(c.log, LOG_INFO_, "x", "a=%s b=%s c=%s d=%s e=%s f=%.*s g=%d%%", "plain",
              "two words\nlevel=error", "", "say \"hi\" \\", "k=v", 2, "caf\xc3\xa9", 50);
    CHECK_STR(c.text, TIME "info x a=plain b=\"two words\\nlevel=error\" c=\"\" "
                           "d=\"say \\\"hi\\\" \\\\\" e=\"k=v\" f=ca g=50%\n");
}

static void every_conversion_works(void)
{
    AUTO(capture_clear) struct capture c;
    capture_init(&c, LOG_TEXT);
    const char *volatile none = NULL; /* volatile: the compiler would warn, rightly */
    log_event(c.log, LOG_ERROR_, "x", "a=%zu b=%ld c=%x d=%.2f e=%g f=%c g=%s h=%5d i=%hhu j=%lu",
              (size_t)1, -2L, 255u, 1.256, 0.5, 'q', none, 7, (unsigned char)8, 9UL);
    CHECK_STR(c.text, TIME "error x a=1 b=-2 c=ff d=1.26 e=0.5 f=q g=(null) h=7 i=8 j=9\n");
}

static void json_has_numbers_and_strings(void)
{
    AUTO(capture_clear) struct capture c;
    capture_init(&c, LOG_JSON);
    log_event(c.log, LOG_INFO_, "job.end", "job=%d name=%s share=%.2f mix=%d/%d bad=%f", 7,
              "a\n\xff", 0.5, 1, 2, (double)__builtin_inf());
    CHECK_STR(c.text, "{\"time\":\"2026-03-01T12:30:00.250Z\",\"level\":\"info\","
                      "\"event\":\"job.end\",\"job\":7,\"name\":\"a\\n\xef\xbf\xbd\","
                      "\"share\":0.50,\"mix\":\"1/2\",\"bad\":\"inf\"}\n");
}

static void low_levels_are_dropped(void)
{
    AUTO(capture_clear) struct capture c;
    capture_init(&c, LOG_TEXT);
    log_event(c.log, LOG_DEBUG_, "x", "a=%d", 1);
    fflush(c.f);
    CHECK(c.n == 0);
    log_event(NULL, LOG_ERROR_, "x", "a=%d", 1);
    enum log_level level;
    CHECK(log_level_parse("warn", &level) && level == LOG_WARN_);
    CHECK(!log_level_parse("loud", &level) && level == LOG_WARN_);
}

static void an_event_without_keys_is_fine(void)
{
    AUTO(capture_clear) struct capture c;
    capture_init(&c, LOG_TEXT);
    log_plain(c.log, LOG_INFO_, "start");
    log_event(c.log, LOG_INFO_, "lit", "a=b  c=d");
    CHECK_STR(c.text, TIME "info start\n" TIME "info lit a=b c=d\n");
}

static size_t lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* Whatever the bytes, both forms stay one line, and the JSON one stays JSON. */
static void no_string_forges_a_line(void)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        AUTO(capture_clear) struct capture text, json;
        struct rng r = { seed };
        struct err e;
        char s[200] = { 0 };
        size_t n = rng_below(&r, sizeof s);
        for (size_t i = 0; i < n; i++)
            s[i] = (char)rng_between(&r, 1, rng_below(&r, 2) ? 255 : 64);
        capture_init(&text, LOG_TEXT);
        capture_init(&json, LOG_JSON);
        log_event(text.log, LOG_INFO_, "x", "a=%s b=%s", s, s);
        log_event(json.log, LOG_INFO_, "x", "a=%s b=%s", s, s);
        CHECK_AT(seed, lines(text.text) == 1 && lines(json.text) == 1);
        AUTO(json_free_p) struct json_doc *d = json_read(str_of(json.text), &e);
        CHECK_AT(seed, d != NULL);
    }
}

static void a_huge_value_is_cut(void)
{
    AUTO(free_p) char *huge = xcalloc(100001, 1);
    memset(huge, '\n', 100000);
    for (int form = LOG_TEXT; form <= LOG_JSON; form++) {
        AUTO(capture_clear) struct capture c;
        capture_init(&c, (enum log_form)form);
        log_event(c.log, LOG_INFO_, "x", "a=%s b=%s c=%s d=%s", huge, huge, huge, huge);
        CHECK(lines(c.text) == 1 && c.n < 17000 && c.text[c.n - 1] == '\n');
        CHECK(strstr(c.text, form == LOG_TEXT ? " cut=1\n" : ",\"cut\":1}\n"));
    }
}

static const struct test tests[] = {
    { "an event is one line: time, level, name, keys", an_event_is_one_line },
    { "a value is quoted when it needs to be, by itself", values_are_quoted_when_needed },
    { "every listed conversion works", every_conversion_works },
    { "as JSON numbers are numbers and the rest are strings", json_has_numbers_and_strings },
    { "events below the level are dropped, and a NULL log drops all", low_levels_are_dropped },
    { "an event may have fixed values or none", an_event_without_keys_is_fine },
    { "no string can forge a second line", no_string_forges_a_line },
    { "a huge value is cut, the line stays whole", a_huge_value_is_cut },
};
TEST_CASES(tests)
