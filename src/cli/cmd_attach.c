/* attach, exec: inside a running job. */
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobs.h"
#include "cli/terminal.h"
#include "cli/tty.h"
#include "sys/term.h"

struct attach_opts {
    struct common common;
    uint64_t replica;
    const char *tail;
    bool no_input;
};

static const struct opt attach_opts[] = {
    { "replica", OPT_NUMBER, offsetof(struct attach_opts, replica), "N", "to this replica", 0,
      4095 },
    { "tail,n", OPT_TEXT, offsetof(struct attach_opts, tail), "N",
      "its last N lines first (a screenful); 0: only what comes", 0, 0 },
    { "no-stdin", OPT_FLAG, offsetof(struct attach_opts, no_input), NULL, "only look", 0, 0 },
    OPTS_COMMON(struct attach_opts),
};

/* As many lines as the screen has, so that one sees where the job is. */
static int past_lines(const struct attach_opts *o, uint64_t *out, struct err *e)
{
    uint16_t rows, cols;
    if (o->tail && parse_u64(str_of(o->tail), INT64_MAX, out, e) < 0)
        return err_wrap(e, "--tail");
    if (o->tail)
        return 0;
    tty_size(STDOUT_FILENO, &rows, &cols);
    *out = rows > 1 ? rows - 1u : 1;
    return 0;
}

static int run_attach(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct attach_opts *o = opts_p;
    struct session_want w = { .replica = (uint32_t)o->replica,
                              .in = STDIN_FILENO,
                              .out = STDOUT_FILENO,
                              .err = STDERR_FILENO };
    char path[64];
    uint64_t past;
    if (past_lines(o, &past, e) < 0)
        return -1;
    if (jobs_resolve_one(c, args.v[0], &w.job, e) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/jobs/%llu", (unsigned long long)w.job);
    AUTO(json_free_p) struct json_doc *doc = cli_get(c, path, e);
    if (!doc)
        return -1;
    const struct json *spec = json_find(json_root(doc), "spec");
    bool tty = json_is_object(spec) && field_bool(spec, "tty");
    bool takes_input = tty || (json_is_object(spec) && field_bool(spec, "stdin"));
    w.tty = tty && !o->no_input && term_is_tty(STDIN_FILENO);
    w.input = takes_input && !o->no_input;
    if (w.tty)
        cli_note(c, "attached to job %llu; Ctrl-] three times leaves it running",
                 (unsigned long long)w.job);
    return terminal_session(c, &w, past, e);
}

const struct command command_attach = {
    .name = "attach",
    .args = "JOB",
    .help = "the terminal or the output of a running job",
    .group = GROUP_INSIDE,
    .word = WORD_JOB,
    COMMAND_OPTS(attach_opts, struct attach_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_attach,
};

/* ---- exec ---- */

struct exec_opts {
    struct common common;
    uint64_t replica;
    const char *workdir;
    struct opt_list env;
    bool tty, interactive;
};

static const struct opt exec_opts[] = {
    { "interactive,i", OPT_FLAG, offsetof(struct exec_opts, interactive), NULL,
      "standard input goes to the command", 0, 0 },
    { "tty,t", OPT_FLAG, offsetof(struct exec_opts, tty), NULL, "with a terminal", 0, 0 },
    { "env,e", OPT_LIST, offsetof(struct exec_opts, env), "K=V", "a variable", 0, 0 },
    { "workdir,w", OPT_TEXT, offsetof(struct exec_opts, workdir), "DIR", "where it runs", 0, 0 },
    { "replica", OPT_NUMBER, offsetof(struct exec_opts, replica), "N", "in this replica", 0, 4095 },
    OPTS_COMMON(struct exec_opts),
};

static int run_exec(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct exec_opts *o = opts_p;
    const char *env[OPT_LIST_MAX + 2], *term = getenv("TERM");
    size_t n = 0;
    char term_is[128];
    for (size_t i = 0; i < o->env.n; i++)
        env[n++] = o->env.item[i];
    if (o->tty && term) {
        snprintf(term_is, sizeof term_is, "TERM=%s", term);
        env[n++] = term_is;
    }
    env[n] = NULL;
    /* People write `exec 17 -- ls`, as after run. */
    size_t skip = strcmp(args.v[1], "--") == 0 ? 2 : 1;
    if (skip == args.n) {
        err_set(e, ERR_INVALID, "there is no command after '--'");
        return err_hint(e, "e.g. nightshift exec %s -- ps aux", args.v[0]);
    }
    struct stream_exec want = {
        .tty = o->tty, .cwd = o->workdir, .argv = args.v + skip, .env = env
    };
    struct session_want w = { .replica = (uint32_t)o->replica,
                              .exec = &want,
                              .tty = o->tty,
                              .input = o->interactive || o->tty,
                              .in = STDIN_FILENO,
                              .out = STDOUT_FILENO,
                              .err = STDERR_FILENO };
    if (o->tty && !term_is_tty(STDIN_FILENO)) {
        err_set(e, ERR_INVALID, "--tty needs a terminal, and standard input is none");
        return err_hint(e, "leave --tty out");
    }
    if (o->tty)
        tty_size(STDIN_FILENO, &want.rows, &want.cols);
    if (jobs_resolve_one(c, args.v[0], &w.job, e) < 0)
        return -1;
    return terminal_session(c, &w, 0, e);
}

const struct command command_exec = {
    .name = "exec",
    .args = "JOB COMMAND [ARGUMENTS]",
    .help = "run a command inside a running job",
    .more = "    nightshift exec 17 nvidia-smi\n    nightshift exec -it 17 bash\n",
    .group = GROUP_INSIDE,
    .word = WORD_JOB,
    COMMAND_OPTS(exec_opts, struct exec_opts),
    .min_args = 2,
    .max_args = SIZE_MAX,
    .leading = true,
    .run = run_exec,
};
