/* backup, restore, verify: the store of the server on this machine, as nightshiftd does it. */
#include "cli/commands.h"
#include "cli/here.h"

struct save_opts {
    struct common common;
    const char *state, *config;
};

static const struct opt save_opts[] = {
    { "state", OPT_TEXT, offsetof(struct save_opts, state), "DIR",
      "the server's folder (as its settings have it)", 0, 0 },
    { "config", OPT_TEXT, offsetof(struct save_opts, config), "FILE", "the server's settings file",
      0, 0 },
    OPTS_COMMON(struct save_opts),
};

static int run_it(const struct save_opts *o, const char *option, const char *file, struct err *e)
{
    const char *argv[] = { "nightshiftd", option, file, NULL, NULL, NULL, NULL, NULL };
    size_t n = 3;
    if (o->state) {
        argv[n++] = "--state";
        argv[n++] = o->state;
    }
    if (o->config) {
        argv[n++] = "--config";
        argv[n++] = o->config;
    }
    return here_daemon((char *const *)(uintptr_t)argv, e);
}

static int run_backup(struct cli *c, const void *opts, struct words args, struct err *e)
{
    (void)c;
    return run_it(opts, "--backup", args.v[0], e);
}

static int run_restore(struct cli *c, const void *opts, struct words args, struct err *e)
{
    (void)c;
    return run_it(opts, "--restore", args.v[0], e);
}

static int run_verify(struct cli *c, const void *opts, struct words args, struct err *e)
{
    (void)c;
    return run_it(opts, "--verify", args.n ? args.v[0] : "-", e);
}

#define HERE "Runs on the server's machine, as root or as the server's user.\n"

const struct command command_backup = {
    .name = "backup",
    .args = "FILE",
    .help = "save what the server knows, also while it runs",
    .more = HERE "Output of jobs and homes are files of their own: see the backup page.\n",
    .group = GROUP_OTHER,
    COMMAND_OPTS(save_opts, struct save_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_backup,
};

const struct command command_restore = {
    .name = "restore",
    .args = "FILE",
    .help = "put a backup back, while the server is stopped",
    .more = HERE "What was there is kept beside it.\n",
    .group = GROUP_OTHER,
    COMMAND_OPTS(save_opts, struct save_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_restore,
};

const struct command command_verify = {
    .name = "verify",
    .args = "[FILE]",
    .help = "is what the server knows, or a backup, as it was written?",
    .more = HERE "Pages, checksums of rows, the journal and the audit are looked at.\n",
    .group = GROUP_OTHER,
    COMMAND_OPTS(save_opts, struct save_opts),
    .max_args = 1,
    .run = run_verify,
};
