/* nightshift: the command line.  Called by another name (sbatch, squeue, …) it is that command. */
#include <signal.h>
#include <stdio.h>

#include "cli/commands.h"

#define NAMES_MAX 64

static int print_version(struct err *e)
{
    return cli_print_line("nightshift " NS_VERSION, e);
}

static int unknown_command(const char *name, struct err *e)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (; n < NAMES_MAX && command_at(n); n++)
        names[n] = command_at(n)->name;
    const char *near = opts_nearest(name, names, n);
    err_set(e, ERR_INVALID, "unknown command '%s'", name);
    return near ? err_hint(e, "did you mean 'nightshift %s'?", near)
                : err_hint(e, "nightshift help lists them");
}

static int print_usage(struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    command_print_usage(&b);
    return cli_print(&b, e);
}

static int run(struct cli *c, int argc, char *const *argv, struct err *e)
{
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    const char *called = slash ? slash + 1 : argc ? argv[0] : "nightshift";
    const struct command *cmd = command_find(called);
    if (cmd && cmd->group == GROUP_SLURM) {
        c->program = cmd->name;
        return command_call(c, cmd, argc - 1, argv + 1, e);
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_usage(e);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version(e);
    cmd = command_find(argv[1]);
    return cmd ? command_call(c, cmd, argc - 2, argv + 2, e) : unknown_command(argv[1], e);
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    struct cli c = { .program = "nightshift" };
    signal(SIGPIPE, SIG_DFL); /* `nightshift ps | head` ends quietly */
    int rc = run(&c, argc, argv, &e);
    if (rc < 0)
        cli_print_error(&c, &e);
    client_free(c.client);
    arena_free(&c.arena);
    return rc < 0 ? err_info(e.code)->exit_code : c.exit_code;
}
