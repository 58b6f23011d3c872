#include "cli/completion.h"

#include "cli/cli.h"
#include "tests/lib/test.h"

static void every_command_and_option_is_completed(void)
{
    static const char *const shells[] = { "bash", "zsh", "fish" };
    for (size_t s = 0; s < ARRAY_LEN(shells); s++) {
        AUTO(buf_free) struct buf b = BUF(1u << 20);
        struct err e;
        CHECK(completion_print(shells[s], &b, &e) == 0);
        for (size_t i = 0; command_at(i); i++)
            CHECK(strstr(b.p, command_at(i)->name));
        CHECK(strstr(b.p, "gpu-type") && strstr(b.p, "low normal high urgent"));
    }
}

static void another_shell_is_refused(void)
{
    AUTO(buf_free) struct buf b = BUF(100);
    struct err e;
    CHECK(completion_print("tcsh", &b, &e) == -1);
    CHECK_STR(e.hint, "choose bash, zsh or fish");
}

/* The table itself: help for everything, no name or letter twice. */
static void the_table_is_whole(void)
{
    for (size_t i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        CHECK(c->name && c->args && c->help && c->run && c->opts_size >= sizeof(struct common));
        CHECK(command_find(c->name) == c);
        CHECK(c->min_args <= c->max_args);
        for (size_t k = 0; k < c->n_opts; k++) {
            CHECK(c->opts[k].help && (c->opts[k].type == OPT_FLAG) == (c->opts[k].value == NULL));
            CHECK(c->opts[k].offset < c->opts_size);
            for (size_t m = k + 1; m < c->n_opts; m++) {
                CHECK(!str_eq(opt_name(&c->opts[k]), opt_name(&c->opts[m])));
                CHECK(!opt_letter(&c->opts[k]) ||
                      opt_letter(&c->opts[k]) != opt_letter(&c->opts[m]));
            }
        }
    }
}

static const struct test tests[] = {
    { "every command and option is completed", every_command_and_option_is_completed },
    { "another shell is refused", another_shell_is_refused },
    { "the table is whole", the_table_is_whole },
};
TEST_CASES(tests)
