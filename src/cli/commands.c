/* The table of commands, and what is printed from it. */
#include <stdio.h>

#include "cli/commands.h"

static const struct command *const commands[] = {
    &command_run,        &command_submit,       &command_ps,      &command_show,
    &command_why,        &command_logs,         &command_cancel,  &command_hold,
    &command_release,    &command_freeze,       &command_thaw,    &command_signal,
    &command_attach,     &command_exec,         &command_cp,      &command_nodes,
    &command_pools,      &command_reservations, &command_reserve, &command_top,
    &command_drain,      &command_resume,       &command_quota,   &command_usage,
    &command_simulate,   &command_events,       &command_status,  &command_doctor,
    &command_tenants,    &command_users,        &command_login,   &command_logout,
    &command_tokens,     &command_apply,        &command_diff,    &command_docs,
    &command_completion, &command_version,      &command_help,    &command_sbatch,
    &command_srun,       &command_squeue,       &command_scancel, &command_sinfo,
    &command_sacct,      &command_audit,        &command_notices, &command_backup,
    &command_restore,    &command_verify,
};

const struct command *command_at(size_t i)
{
    return i < ARRAY_LEN(commands) ? commands[i] : NULL;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

const char *group_title(enum command_group g)
{
    static const char *const titles[] = {
        [GROUP_JOBS] = "jobs",
        [GROUP_INSIDE] = "inside a running job",
        [GROUP_CLUSTER] = "machines and shares",
        [GROUP_PEOPLE] = "people and what they may",
        [GROUP_OTHER] = "other",
        [GROUP_SLURM] = "words of Slurm (also as links: sbatch, squeue, …)",
    };
    _Static_assert(ARRAY_LEN(titles) == GROUP_COUNT, "a group was added without its title");
    return titles[g];
}

void command_print_usage(struct buf *out)
{
    buf_addz(out, "nightshift " NS_VERSION ": a lab's GPU machines as one fair cluster\n\n"
                  "usage: nightshift COMMAND [OPTIONS] [ARGUMENTS]\n");
    for (int g = 0; g < GROUP_COUNT; g++) {
        buf_printf(out, "\n%s:\n", group_title((enum command_group)g));
        for (size_t i = 0; i < ARRAY_LEN(commands); i++)
            if ((int)commands[i]->group == g)
                buf_printf(out, "    %-12s %s\n", commands[i]->name, commands[i]->help);
    }
    buf_addz(out, "\n'nightshift COMMAND --help' lists its options.  "
                  "Begin with: nightshift run hostname\n");
}

void command_print_help(const struct command *c, struct buf *out)
{
    buf_printf(out, "nightshift %s: %s\n\nusage: nightshift %s [OPTIONS]%s%s\n\n", c->name, c->help,
               c->name, c->args[0] ? " " : "", c->args);
    opts_help(c->opts, c->n_opts, out);
    if (c->more)
        buf_printf(out, "\n%s", c->more);
}

static int check_words(const struct command *cmd, size_t n, struct err *e)
{
    if (n >= cmd->min_args && n <= cmd->max_args)
        return 0;
    if (n < cmd->min_args)
        err_set(e, ERR_INVALID, "%s needs %s", cmd->name, cmd->args);
    else
        err_set(e, ERR_INVALID, "%s has too many arguments", cmd->name);
    return err_hint(e, "usage: nightshift %s [OPTIONS]%s%s", cmd->name, cmd->args[0] ? " " : "",
                    cmd->args);
}

int command_call(struct cli *c, const struct command *cmd, int argc, char *const *argv,
                 struct err *e)
{
    struct opt_line line = { .argc = argc, .argv = argv, .leading = cmd->leading };
    line.rest = arena_array(&c->arena, const char *, (size_t)argc + 1);
    void *opts = arena_alloc(&c->arena, 1, cmd->opts_size);
    const struct common *common = opts;
    int rc = opts_parse_line(cmd->opts, cmd->n_opts, &line, opts, e);
    if (common->help) {
        AUTO(buf_free) struct buf b = BUF(1u << 16);
        command_print_help(cmd, &b);
        return cli_print(&b, e);
    }
    if (rc < 0 && cmd->group == GROUP_SLURM && strcmp(e->hint, "see --help") == 0)
        return err_hint(e, "'nightshift %s --help' lists what is supported here", cmd->name);
    if (rc < 0 || check_words(cmd, line.n_rest, e) < 0)
        return -1;
    c->server = common->server;
    return cmd->run(c, opts, (struct words){ line.rest, line.n_rest }, e);
}
