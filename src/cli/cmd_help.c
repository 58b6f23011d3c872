/* help, version, completion, top: what needs no server (top starts a program of its own). */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/here.h"

struct help_opts {
    struct common common;
};

static const struct opt help_opts[] = { OPTS_COMMON(struct help_opts) };

static int run_help(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 18);
    (void)c;
    (void)opts_p;
    const struct command *cmd = args.n ? command_find(args.v[0]) : NULL;
    if (args.n && !cmd) {
        err_set(e, ERR_INVALID, "there is no command '%s'", args.v[0]);
        return err_hint(e, "nightshift help lists them");
    }
    if (cmd)
        command_print_help(cmd, &b);
    else
        command_print_usage(&b);
    return cli_print(&b, e);
}

const struct command command_help = {
    .name = "help",
    .args = "[COMMAND]",
    .help = "all commands, or one of them",
    .group = GROUP_OTHER,
    .word = WORD_COMMAND,
    COMMAND_OPTS(help_opts, struct help_opts),
    .max_args = 1,
    .run = run_help,
};

static int run_version(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    (void)c;
    (void)opts_p;
    (void)args;
    return cli_print_line("nightshift " NS_VERSION, e);
}

const struct command command_version = {
    .name = "version",
    .args = "",
    .help = "the version of this program",
    .group = GROUP_OTHER,
    COMMAND_OPTS(help_opts, struct help_opts),
    .run = run_version,
};

static int run_completion(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    (void)c;
    (void)opts_p;
    if (completion_print(args.v[0], &b, e) < 0)
        return -1;
    return cli_print(&b, e);
}

const struct command command_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .help = "a script that completes commands, options and jobs in your shell",
    .more = "    bash: nightshift completion bash > "
            "~/.local/share/bash-completion/completions/nightshift\n"
            "    zsh:  nightshift completion zsh > a folder of $fpath/_nightshift\n"
            "    fish: nightshift completion fish > ~/.config/fish/completions/nightshift.fish\n",
    .group = GROUP_OTHER,
    COMMAND_OPTS(help_opts, struct help_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_completion,
};

/* The screen library is large: it lives in a program beside this one, so that no other command
 * pays for it. */
static int run_top(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    (void)opts_p;
    (void)args;
    if (c->server)
        setenv("NIGHTSHIFT_SERVER", c->server, 1);
    char *const argv[] = { (char[]){ "nightshift-top" }, NULL };
    return here_exec(argv, e);
}

const struct command command_top = {
    .name = "top",
    .args = "",
    .help = "machines, GPUs and the queue, live",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(help_opts, struct help_opts),
    .run = run_top,
};
