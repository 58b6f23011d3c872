/* run: a job like a command of this shell. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/submit.h"
#include "cli/terminal.h"
#include "cli/tty.h"
#include "cli/watch.h"
#include "sys/term.h"

#define SPEC_MAX (1u << 20)

struct run_opts {
    struct common common;
    struct flags flags;
    bool detach, dry_run;
};

static const struct opt opts[] = {
    OPTS_FLAGS(struct run_opts),
    { "interactive,i", OPT_FLAG, offsetof(struct run_opts, flags.stdin_open), NULL,
      "standard input goes to the job", 0, 0 },
    { "tty,t", OPT_FLAG, offsetof(struct run_opts, flags.tty), NULL, "with a terminal", 0, 0 },
    { "detach,d", OPT_FLAG, offsetof(struct run_opts, detach), NULL,
      "print its id and do not wait for it", 0, 0 },
    { "dry-run", OPT_FLAG, offsetof(struct run_opts, dry_run), NULL,
      "only check it and say when it would start", 0, 0 },
    OPTS_OUTPUT(struct run_opts),
    OPTS_COMMON(struct run_opts),
};

static int print_detached(const struct run_opts *o, const struct submitted *job,
                          const struct answer *a, struct err *e)
{
    char text[96];
    enum output form = cli_output(&o->common);
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a->body), form, e);
    if (job->count > 1 && form != OUT_NAME)
        snprintf(text, sizeof text, "%llu-%llu", (unsigned long long)job->id,
                 (unsigned long long)(job->id + job->count - 1));
    else
        snprintf(text, sizeof text, "%llu", (unsigned long long)job->id);
    return cli_print_line(text, e);
}

static int follow(struct cli *c, const struct run_opts *o, uint64_t job, struct err *e)
{
    struct watch_want w = { .job = job, .replicas = 1, .input = o->flags.stdin_open };
    enum watch_outcome how;
    if (o->flags.replicas) {
        long n = strtol(o->flags.replicas, NULL, 10); /* flags_put has checked it */
        w.replicas = n > 0 ? (uint32_t)n : 1;
    }
    return watch_job(c, &w, &how, e);
}

static int dry_run(struct cli *c, struct str spec, struct err *e)
{
    struct submit_checked checked;
    if (submit_check(c, spec, &checked, e) < 0)
        return -1;
    if (!checked.known)
        return cli_print_line("well formed; this server cannot check it without making a job", e);
    return cli_print_line(checked.told[0] ? checked.told : "it would be taken", e);
}

static int run_run(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct run_opts *o = opts_p;
    const char *shell = getenv("SHELL"), *alone[] = { shell && shell[0] ? shell : "/bin/sh" };
    AUTO(buf_free) struct buf spec = BUF(SPEC_MAX);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    struct submitted job;
    if (args.n == 0 && !o->flags.tty) {
        err_set(e, ERR_INVALID, "run needs a command");
        return err_hint(e, "nightshift run -g 1 python train.py; a shell: nightshift run -it");
    }
    if (o->flags.tty && !o->detach && !o->dry_run && !term_is_tty(STDIN_FILENO)) {
        err_set(e, ERR_INVALID, "--tty needs a terminal, and standard input is none");
        return err_hint(e, "leave --tty out, or use --detach and attach later");
    }
    if (args.n == 0)
        args = (struct words){ alone, 1 };
    struct flags flags = o->flags;
    if (submit_find_after(c, &flags.after, e) < 0)
        return err_wrap(e, "--after");
    if (o->dry_run)
        return submit_run_spec(&flags, args, &spec, e) < 0 ? -1 : dry_run(c, buf_str(&spec), e);
    /* From here on Ctrl-C is about the job, which may exist before we know its number. */
    if (submit_run_spec(&flags, args, &spec, e) < 0 || signals_open(&signals, e) < 0 ||
        submit_spec(c, buf_str(&spec), &job, NULL, &a, e) < 0)
        return -1;
    if (o->detach || o->flags.hold || job.count > 1)
        return print_detached(o, &job, &a, e);
    return o->flags.tty ? terminal_follow(c, job.id, e) : follow(c, o, job.id, e);
}

const struct command command_run = {
    .name = "run",
    .args = "COMMAND [ARGUMENTS]",
    .help = "run a command as a job and stay with it",
    .more =
        "The job gets this folder and a few variables (LANG, LC_*, TZ, an active Python\n"
        "environment); --env and --env-all give it more.  Ctrl-C asks what to do with the job.\n"
        "With -t, Ctrl-] three times leaves it running.  The exit code is the job's.\n\n"
        "    nightshift run -g 1 python train.py --epochs 10\n"
        "    nightshift run -g 0.5 -it               a shell with half a GPU\n"
        "    nightshift run -d --array 0-9 -- ./sweep.sh\n",
    .group = GROUP_JOBS,
    .word = WORD_PROGRAM,
    COMMAND_OPTS(opts, struct run_opts),
    .max_args = SIZE_MAX,
    .leading = true,
    .run = run_run,
};
