#include "api/grep.h"

#include <string.h>

#include "base/rng.h"
#include "tests/lib/test.h"

struct heard {
    struct buf text;
    size_t lines;
};

static void hear(void *ctx, const struct grep_line *l)
{
    struct heard *h = ctx;
    h->lines++;
    if (l->gap)
        buf_addz(&h->text, "--\n");
    buf_printf(&h->text, "%c", l->match ? ':' : '-');
    buf_add(&h->text, l->text);
    buf_addz(&h->text, l->full ? "\n" : "~");
}

static void heard_clear(struct heard *h)
{
    buf_free(&h->text);
}

/* Lines as a script of records: `o` and `e` begin a whole one of a stream, `O` and `E` a part. */
static void feed(struct grep *g, const char *const *record, size_t n, struct heard *h)
{
    for (size_t i = 0; i < n; i++) {
        char c = record[i][0];
        struct joblog_record r = { .t_us = (int64_t)i,
                                   .stream = c == 'o' || c == 'O' ? JOBLOG_STDOUT : JOBLOG_STDERR,
                                   .full = c == 'o' || c == 'e',
                                   .text = str_of(record[i] + 1) };
        grep_feed(g, &r, hear, h);
    }
}

#define HEARD(want, h, ...)                                                                        \
    do {                                                                                           \
        const char *const records_[] = { __VA_ARGS__ };                                            \
        struct grep *g_ = grep_new(&(want));                                                       \
        feed(g_, records_, ARRAY_LEN(records_), &(h));                                             \
        grep_end(g_, hear, &(h));                                                                  \
        CHECK(grep_is_between(g_));                                                                \
        grep_free(g_);                                                                             \
    } while (0)

static void lines_with_the_word_come_out_and_no_others(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("loss") };
    HEARD(w, h, "oepoch 1", "oloss 0.5", "eLOSS of power", "o", "oa loss", "ea los s");
    CHECK_STR(buf_str(&h.text).p, ":loss 0.5\n:a loss\n");
}

static void a_word_is_text_and_no_pattern(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("a.*[b") };
    HEARD(w, h, "oaxxb", "oa.*[b", "oa.b");
    CHECK_STR(buf_str(&h.text).p, ":a.*[b\n");
}

static void case_counts_unless_it_shall_not(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("Error"), .ignore_case = true };
    HEARD(w, h, "oERROR 1", "eerror 2", "oterror", "oerr or");
    CHECK_STR(buf_str(&h.text).p, ":ERROR 1\n:error 2\n:terror\n");
}

static void a_line_that_was_written_in_parts_is_one(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("gradient") };
    HEARD(w, h, "Oa gra", "Ea gra", "enothing", "odient", "Ogradi");
    CHECK_STR(buf_str(&h.text).p, ":a gradient\n");
}

static void what_nobody_ended_is_looked_at_in_the_end(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("x") };
    struct grep *g = grep_new(&w);
    feed(g, (const char *const[]){ "Oax" }, 1, &h);
    CHECK_INT(h.lines, 0);
    CHECK(!grep_is_between(g));
    grep_end(g, hear, &h);
    CHECK_STR(buf_str(&h.text).p, ":ax\n");
    CHECK(grep_is_between(g));
    grep_free(g);
}

static void lines_around_a_match_come_out_once_each_and_in_order(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("x"), .context = 1 };
    HEARD(w, h, "o1", "o2", "ox3", "o4", "ox5", "o6", "o7", "o8", "o9", "ox10", "o11", "ox12");
    CHECK_STR(buf_str(&h.text).p, "-2\n:x3\n-4\n:x5\n-6\n--\n-9\n:x10\n-11\n:x12\n");
}

static void a_match_at_once_has_no_gap_before_it(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(4096) };
    struct grep_want w = { .word = STR("x"), .context = 2 };
    HEARD(w, h, "o1", "o2", "o3", "ox4", "o5", "o6", "o7", "ox8");
    CHECK_STR(buf_str(&h.text).p, "-2\n-3\n:x4\n-5\n-6\n-7\n:x8\n");
}

/* What is kept for a match is bounded, however long the lines are. */
static void long_lines_are_cut_and_few_are_kept(void)
{
    AUTO(heard_clear) struct heard h = { .text = BUF(16u << 20) };
    struct grep_want w = { .word = STR("needle"), .context = GREP_CONTEXT_MAX };
    struct grep *g = grep_new(&w);
    char *piece = xcalloc(1, JOBLOG_TEXT_MAX + 1);
    memset(piece, 'h', JOBLOG_TEXT_MAX);
    struct joblog_record r = { .stream = JOBLOG_STDOUT, .text = { piece, JOBLOG_TEXT_MAX } };
    for (int i = 0; i < 400; i++)
        grep_feed(g, &r, hear, &h);
    CHECK_INT(h.lines, 0);
    feed(g, (const char *const[]){ "oneedle" }, 1, &h);
    CHECK(h.lines >= 2 && h.lines <= 1 + GREP_KEPT_MAX / GREP_LINE_MAX);
    CHECK(h.text.n <= GREP_KEPT_MAX + GREP_LINE_MAX + 64);
    CHECK(strstr(buf_str(&h.text).p, "needle\n"));
    grep_free(g);
    free(piece);
}

/* Any word, in any line, cut into parts anywhere: as a look at each whole line says. */
static void the_parts_of_a_line_change_nothing(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng = { seed };
        AUTO(heard_clear) struct heard h = { .text = BUF(1u << 20) };
        AUTO(buf_free) struct buf want = BUF(1u << 20);
        char word[4] = { 0 };
        for (uint32_t i = 0, n = 1 + rng_below(&rng, 3); i < n; i++)
            word[i] = (char)('a' + rng_below(&rng, 2));
        struct grep *g = grep_new(&(struct grep_want){ .word = str_of(word) });
        for (int line = 0; line < 20; line++) {
            char text[16] = { 0 };
            size_t n = rng_below(&rng, 15), at = 0;
            for (size_t i = 0; i < n; i++)
                text[i] = (char)('a' + rng_below(&rng, 2));
            if (strstr(text, word))
                buf_printf(&want, ":%s\n", text);
            for (bool full = false; !full;) {
                size_t k = rng_below(&rng, (uint32_t)(n - at + 1));
                full = at + k == n && rng_below(&rng, 2);
                grep_feed(g,
                          &(struct joblog_record){
                              .stream = JOBLOG_STDERR, .full = full, .text = { text + at, k } },
                          hear, &h);
                at += k;
            }
        }
        CHECK_AT(seed, str_eq(buf_str(&h.text), buf_str(&want)));
        grep_free(g);
    }
}

static const struct test tests[] = {
    { "lines with the word come out and no others", lines_with_the_word_come_out_and_no_others },
    { "a word is text and no pattern", a_word_is_text_and_no_pattern },
    { "case counts unless it shall not", case_counts_unless_it_shall_not },
    { "a line that was written in parts is one", a_line_that_was_written_in_parts_is_one },
    { "what nobody ended is looked at in the end", what_nobody_ended_is_looked_at_in_the_end },
    { "lines around a match come out once each and in order",
      lines_around_a_match_come_out_once_each_and_in_order },
    { "a match at once has no gap before it", a_match_at_once_has_no_gap_before_it },
    { "long lines are cut and few are kept", long_lines_are_cut_and_few_are_kept },
    { "the parts of a line change nothing", the_parts_of_a_line_change_nothing },
};
TEST_CASES(tests)
