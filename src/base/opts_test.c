#include "base/opts.h"

#include "tests/lib/test.h"

struct args {
    bool json, quiet;
    const char *data, *policy;
    uint64_t nodes;
};

static const struct opt table[] = {
    { "json", OPT_FLAG, offsetof(struct args, json), NULL, "one JSON object", 0, 0 },
    { "quiet", OPT_FLAG, offsetof(struct args, quiet), NULL, "no progress", 0, 0 },
    { "data", OPT_TEXT, offsetof(struct args, data), "DIR", "where the tables are", 0, 0 },
    { "policy", OPT_CHOICE, offsetof(struct args, policy), "fifo|sjf", "the order", 0, 0 },
    { "nodes", OPT_NUMBER, offsetof(struct args, nodes), "N", "how many", 4, 200 },
};

/* main gets them without const, and nobody writes to them. */
#define ARGV(...) ((char *const *)(const char *const[]){ __VA_ARGS__ })

static int parse(int argc, char *const *argv, struct args *out, struct err *e)
{
    *out = (struct args){ .policy = "default", .nodes = 77 };
    *e = (struct err){ 0 };
    return opts_parse(table, ARRAY_LEN(table), argc, argv, out, e);
}

static void refused(int argc, char *const *argv, const char *msg, const char *hint)
{
    struct args a;
    struct err e;
    CHECK(parse(argc, argv, &a, &e) == -1);
    CHECK_INT(e.code, ERR_INVALID);
    CHECK_STR(e.msg, msg);
    CHECK_STR(e.hint, hint);
}

static void no_arguments_leave_the_defaults(void)
{
    struct args a;
    struct err e;
    CHECK(parse(0, NULL, &a, &e) == 0);
    CHECK(!a.json && !a.quiet && !a.data && a.nodes == 77);
    CHECK_STR(a.policy, "default");
}

static void a_flag_sets_its_bool_and_no_other(void)
{
    struct args a;
    struct err e;
    CHECK(parse(1, ARGV("--quiet"), &a, &e) == 0);
    CHECK(a.quiet && !a.json);
    refused(1, ARGV("--quiet=yes"), "--quiet takes no value", "");
}

static void a_value_stands_behind_a_blank_or_an_equals_sign(void)
{
    struct args a;
    struct err e;
    CHECK(parse(4, ARGV("--data", "d1", "--nodes=12", "--policy=sjf"), &a, &e) == 0);
    CHECK_STR(a.data, "d1");
    CHECK_STR(a.policy, "sjf");
    CHECK_INT(a.nodes, 12);
    CHECK(parse(1, ARGV("--data=a=b"), &a, &e) == 0);
    CHECK_STR(a.data, "a=b");
    CHECK(parse(1, ARGV("--data="), &a, &e) == 0);
    CHECK_STR(a.data, "");
    CHECK(parse(2, ARGV("--data", "--json"), &a, &e) == 0); /* what follows is the value */
    CHECK_STR(a.data, "--json");
    CHECK(!a.json);
}

static void of_an_option_given_twice_the_last_counts(void)
{
    struct args a;
    struct err e;
    CHECK(parse(2, ARGV("--nodes=5", "--nodes=6"), &a, &e) == 0);
    CHECK_INT(a.nodes, 6);
}

static void an_unknown_option_names_the_nearest(void)
{
    refused(1, ARGV("--polcy=sjf"), "unknown option '--polcy=sjf'", "did you mean --policy?");
    refused(1, ARGV("--xyzzy"), "unknown option '--xyzzy'", "see --help");
    refused(1, ARGV("--jso"), "unknown option '--jso'", "did you mean --json?");
}

static void what_is_no_option_is_refused(void)
{
    refused(1, ARGV("fifo"), "unexpected argument 'fifo'", "options start with --; see --help");
    refused(1, ARGV("-j"), "unexpected argument '-j'", "options start with --; see --help");
    refused(1, ARGV("--"), "unexpected argument '--'", "options start with --; see --help");
    refused(2, ARGV("--json", "yes"), "unexpected argument 'yes'",
            "options start with --; see --help");
}

static void a_missing_value_says_how_to_write_it(void)
{
    refused(1, ARGV("--data"), "--data needs a value: --data DIR", "");
    refused(2, ARGV("--json", "--policy"), "--policy needs a value: --policy fifo|sjf", "");
}

static void numbers_keep_to_their_bounds(void)
{
    struct args a;
    struct err e;
    CHECK(parse(1, ARGV("--nodes=4"), &a, &e) == 0 && a.nodes == 4);
    CHECK(parse(1, ARGV("--nodes=200"), &a, &e) == 0 && a.nodes == 200);
    refused(1, ARGV("--nodes=3"), "--nodes: 3 is too small; it must be at least 4", "");
    static const char *const bad[] = { "--nodes=201", "--nodes=-5", "--nodes=", "--nodes=8x",
                                       "--nodes=99999999999999999999" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK(parse(1, ARGV(bad[i]), &a, &e) == -1 && e.code == ERR_INVALID);
        CHECK(strncmp(e.msg, "--nodes: ", 9) == 0 && a.nodes == 77);
    }
}

static void a_choice_is_one_of_its_words(void)
{
    refused(1, ARGV("--policy=lifo"), "--policy: 'lifo' is not one of them", "choose fifo|sjf");
    refused(1, ARGV("--policy=fifo|sjf"), "--policy: 'fifo|sjf' is not one of them",
            "choose fifo|sjf");
    refused(1, ARGV("--policy=sj"), "--policy: 'sj' is not one of them", "choose fifo|sjf");
    refused(1, ARGV("--policy="), "--policy: '' is not one of them", "choose fifo|sjf");
}

static void help_has_one_line_for_each_option(void)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    opts_help(table, ARRAY_LEN(table), &b);
    struct str text = buf_str(&b), line;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char name[32] = "    --";
        CHECK(str_next_line(&text, &line));
        strncat(name, table[i].name, sizeof name - strlen(name) - 1);
        CHECK(line.n > strlen(name) && memcmp(line.p, name, strlen(name)) == 0);
        CHECK(memmem(line.p, line.n, table[i].help, strlen(table[i].help)));
        CHECK(!table[i].value || memmem(line.p, line.n, table[i].value, strlen(table[i].value)));
    }
    CHECK(text.n == 0);
}

static void a_wide_option_still_has_a_blank_before_its_help(void)
{
    static const struct opt wide = {
        "an-option-with-a-long-name", OPT_CHOICE, 0, "one-word|another-word", "the help", 0, 0
    };
    AUTO(buf_free) struct buf b = BUF(4096);
    opts_help(&wide, 1, &b);
    CHECK_STR(b.p, "    --an-option-with-a-long-name one-word|another-word  the help\n");
}

static void the_nearest_word_is_close_or_none(void)
{
    static const char *const words[] = { "lab", "replay", "verify", "packing" };
    CHECK_STR(opts_nearest("replya", words, 4), "replay");
    CHECK_STR(opts_nearest("verifx", words, 4), "verify");
    CHECK_STR(opts_nearest("packings", words, 4), "packing");
    CHECK_STR(opts_nearest("lab", words, 4), "lab");
    CHECK_STR(opts_nearest("zzzzzz", words, 4), NULL);
    CHECK_STR(opts_nearest("", words, 4), NULL);
    CHECK_STR(opts_nearest("lab", words, 0), NULL);
}

static void of_equally_near_words_the_first_is_named(void)
{
    static const char *const words[] = { "nodes", "modes" };
    CHECK_STR(opts_nearest("codes", words, 2), "nodes");
}

static void a_very_long_word_is_near_nothing(void)
{
    static const char *const words[] = { "lab" };
    char option[400] = "--";
    memset(option + 2, 'a', sizeof option - 3);
    CHECK_STR(opts_nearest(option + 2, words, 1), NULL);
    struct args a;
    struct err e;
    CHECK(parse(1, ARGV(option), &a, &e) == -1);
    CHECK_STR(e.hint, "see --help");
}

/* ---- letters, lists, arguments ---- */

struct more {
    bool all, tty;
    const char *gpus;
    struct opt_list env;
};

static const struct opt lettered[] = {
    { "all,a", OPT_FLAG, offsetof(struct more, all), NULL, "all of them", 0, 0 },
    { "tty,t", OPT_FLAG, offsetof(struct more, tty), NULL, "a terminal", 0, 0 },
    { "gpus,g", OPT_TEXT, offsetof(struct more, gpus), "N", "how many", 0, 0 },
    { "env", OPT_LIST, offsetof(struct more, env), "K=V", "a variable", 0, 0 },
};

static int parse_line(struct opt_line *line, struct more *out, struct err *e)
{
    *out = (struct more){ 0 };
    *e = (struct err){ 0 };
    return opts_parse_line(lettered, ARRAY_LEN(lettered), line, out, e);
}

static void a_letter_is_short_for_its_name(void)
{
    struct more m;
    struct err e;
    const char *rest[8];
    struct opt_line line = { .argc = 3, .argv = ARGV("-at", "-g", "2"), .rest = rest };
    CHECK(parse_line(&line, &m, &e) == 0);
    CHECK(m.all && m.tty && line.n_rest == 0);
    CHECK_STR(m.gpus, "2");
    line = (struct opt_line){ .argc = 2, .argv = ARGV("-tg2", "--gpus=3"), .rest = rest };
    CHECK(parse_line(&line, &m, &e) == 0 && m.tty && !m.all);
    CHECK_STR(m.gpus, "3");
}

static void an_unknown_letter_is_named(void)
{
    struct more m;
    struct err e;
    struct opt_line line = { .argc = 1, .argv = ARGV("-ax") };
    CHECK(parse_line(&line, &m, &e) == -1);
    CHECK_STR(e.msg, "unknown option '-x' in -ax");
    line = (struct opt_line){ .argc = 1, .argv = ARGV("-x") };
    CHECK(parse_line(&line, &m, &e) == -1);
    CHECK_STR(e.msg, "unknown option '-x'");
    line = (struct opt_line){ .argc = 1, .argv = ARGV("-g") };
    CHECK(parse_line(&line, &m, &e) == -1);
    CHECK_STR(e.msg, "--gpus needs a value: --gpus N");
}

static void a_list_takes_every_one_up_to_its_bound(void)
{
    struct more m;
    struct err e;
    struct opt_line line = { .argc = 3, .argv = ARGV("--env", "A=1", "--env=B=2") };
    CHECK(parse_line(&line, &m, &e) == 0);
    CHECK_INT(m.env.n, 2);
    CHECK_STR(m.env.item[0], "A=1");
    CHECK_STR(m.env.item[1], "B=2");
    const char *many[OPT_LIST_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = "--env=X";
    line = (struct opt_line){ .argc = OPT_LIST_MAX + 1, .argv = (char *const *)many };
    CHECK(parse_line(&line, &m, &e) == -1);
    CHECK_INT(e.code, ERR_TOO_LARGE);
}

static void arguments_may_stand_among_the_options(void)
{
    struct more m;
    struct err e;
    const char *rest[8];
    struct opt_line line = { .argc = 5, .argv = ARGV("3", "-a", "-", "--", "-t"), .rest = rest };
    CHECK(parse_line(&line, &m, &e) == 0);
    CHECK(m.all && !m.tty);
    CHECK_INT(line.n_rest, 3);
    CHECK_STR(rest[0], "3");
    CHECK_STR(rest[1], "-");
    CHECK_STR(rest[2], "-t");
}

static void the_first_argument_can_end_the_options(void)
{
    struct more m;
    struct err e;
    const char *rest[8];
    struct opt_line line = {
        .argc = 4, .argv = ARGV("-a", "ls", "-t", "--"), .leading = true, .rest = rest
    };
    CHECK(parse_line(&line, &m, &e) == 0);
    CHECK(m.all && !m.tty);
    CHECK_INT(line.n_rest, 3);
    CHECK_STR(rest[0], "ls");
    CHECK_STR(rest[1], "-t");
    CHECK_STR(rest[2], "--");
}

static void help_shows_the_letters(void)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    opts_help(lettered, ARRAY_LEN(lettered), &b);
    CHECK(strstr(b.p, "    -g, --gpus N "));
    CHECK(strstr(b.p, "        --env K=V "));
}

static void a_near_name_is_named_without_its_letter(void)
{
    struct more m;
    struct err e;
    struct opt_line line = { .argc = 1, .argv = ARGV("--gpu=1") };
    CHECK(parse_line(&line, &m, &e) == -1);
    CHECK_STR(e.hint, "did you mean --gpus?");
}

static const struct test tests[] = {
    { "no arguments leave the defaults", no_arguments_leave_the_defaults },
    { "a flag sets its bool and no other", a_flag_sets_its_bool_and_no_other },
    { "a value stands behind a blank or an equals sign",
      a_value_stands_behind_a_blank_or_an_equals_sign },
    { "of an option given twice the last counts", of_an_option_given_twice_the_last_counts },
    { "an unknown option names the nearest", an_unknown_option_names_the_nearest },
    { "what is no option is refused", what_is_no_option_is_refused },
    { "a missing value says how to write it", a_missing_value_says_how_to_write_it },
    { "numbers keep to their bounds", numbers_keep_to_their_bounds },
    { "a choice is one of its words", a_choice_is_one_of_its_words },
    { "help has one line for each option", help_has_one_line_for_each_option },
    { "a wide option still has a blank before its help",
      a_wide_option_still_has_a_blank_before_its_help },
    { "the nearest word is close, or none", the_nearest_word_is_close_or_none },
    { "of equally near words the first is named", of_equally_near_words_the_first_is_named },
    { "a very long word is near nothing", a_very_long_word_is_near_nothing },
    { "a letter is short for its name", a_letter_is_short_for_its_name },
    { "an unknown letter is named", an_unknown_letter_is_named },
    { "a list takes every one up to its bound", a_list_takes_every_one_up_to_its_bound },
    { "arguments may stand among the options", arguments_may_stand_among_the_options },
    { "the first argument can end the options", the_first_argument_can_end_the_options },
    { "help shows the letters", help_shows_the_letters },
    { "a near name is named without its letter", a_near_name_is_named_without_its_letter },
};
TEST_CASES(tests)
