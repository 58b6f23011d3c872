/* nightshift-sim: traces, one's own journal and made-up labs in virtual time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "simulate/command.h"

static const struct command *const commands[] = {
    &command_lab, &command_replay, &command_verify, &command_packing, &command_scale, &command_docs,
};

int command_print(const struct buf *b, struct err *e)
{
    if (buf_check(b, e) < 0)
        return -1;
    if (b->n && (fwrite(b->p, 1, b->n, stdout) != b->n || fflush(stdout) != 0))
        return err_set(e, ERR_UNAVAILABLE, "cannot write the result: %s", strerror(errno));
    return 0;
}

static int print_version(struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(256);
    buf_addz(&b, "nightshift-sim " NS_VERSION "\n");
    return command_print(&b, e);
}

static int print_help(struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    buf_addz(&b, "nightshift-sim " NS_VERSION ": schedules traces in virtual time\n\n"
                 "usage: nightshift-sim COMMAND [--options]\n\ncommands:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        buf_printf(&b, "    %-10s %s\n", commands[i]->name, commands[i]->help);
    buf_addz(
        &b,
        "\n'nightshift-sim COMMAND --help' lists its options.  Begin with: nightshift-sim lab\n");
    return command_print(&b, e);
}

static int print_command_help(const struct command *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    buf_printf(&b, "nightshift-sim %s: %s\n\n", c->name, c->help);
    opts_help(c->opts, c->opts_n, &b);
    if (c->more) {
        buf_addc(&b, '\n');
        c->more(&b);
    }
    return command_print(&b, e);
}

static int unknown_command(const char *name, struct err *e)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = commands[i]->name;
    const char *near = opts_nearest(name, names, ARRAY_LEN(names));
    err_set(e, ERR_INVALID, "unknown command '%s'", name);
    return near ? err_hint(e, "did you mean 'nightshift-sim %s'?", near)
                : err_hint(e, "nightshift-sim --help lists them");
}

static int run(int argc, char *const *argv, struct err *e)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
        return print_help(e);
    if (strcmp(argv[1], "--version") == 0)
        return print_version(e);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i]->name) != 0)
            continue;
        for (int a = 2; a < argc; a++)
            if (strcmp(argv[a], "--help") == 0)
                return print_command_help(commands[i], e);
        return commands[i]->run(argc - 2, argv + 2, e);
    }
    return unknown_command(argv[1], e);
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    if (run(argc, argv, &e) == 0)
        return 0;
    fprintf(stderr, "nightshift-sim: %s%s%s\n", e.msg, e.hint[0] ? "\n  hint: " : "", e.hint);
    return err_info(e.code)->exit_code;
}
