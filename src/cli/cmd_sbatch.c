/* sbatch, srun: Slurm's words for submit and run. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/slurm.h"
#include "cli/submit.h"
#include "cli/terminal.h"
#include "cli/watch.h"
#include "sys/file.h"
#include "sys/term.h"

#define SPEC_MAX (2u << 20)

struct sbatch_opts {
    struct common common;
    struct slurm_job job;
    bool parsable, wait, test_only;
};

static const struct opt sbatch_opts[] = {
    OPTS_SLURM_JOB(struct sbatch_opts),
    { "array,a", OPT_TEXT, offsetof(struct sbatch_opts, job.array), "0-9[:STEP]",
      "one job for each index", 0, 0 },
    { "wrap", OPT_TEXT, offsetof(struct sbatch_opts, job.wrap), "COMMAND", "instead of a script", 0,
      0 },
    { "input,i", OPT_TEXT, offsetof(struct sbatch_opts, job.input), "FILE", "refused", 0, 0 },
    { "parsable", OPT_FLAG, offsetof(struct sbatch_opts, parsable), NULL, "print only the id", 0,
      0 },
    { "wait,W", OPT_FLAG, offsetof(struct sbatch_opts, wait), NULL, "until it has ended", 0, 0 },
    { "test-only", OPT_FLAG, offsetof(struct sbatch_opts, test_only), NULL,
      "print the job spec, submit nothing", 0, 0 },
    OPTS_COMMON(struct sbatch_opts),
};

static void print_notes(struct cli *c, const struct buf *notes)
{
    struct str rest = buf_str(notes), line;
    while (str_next_line(&rest, &line))
        cli_note(c, "%.*s", STR_ARG(line));
}

static int read_script(const char *file, struct buf *out, struct err *e)
{
    if (file)
        return file_read(file, SLURM_SCRIPT_MAX, out, e);
    char chunk[16384];
    ssize_t n;
    *out = BUF(SLURM_SCRIPT_MAX);
    while ((n = read(STDIN_FILENO, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno != EINTR)
            return err_set(e, ERR_UNAVAILABLE, "cannot read standard input: %s", strerror(errno));
        if (n > 0)
            buf_add(out, (struct str){ chunk, (size_t)n });
    }
    return buf_check(out, e);
}

/* Lays what was given on the command line over what stands in the script. */
static void lay_over(struct slurm_job *script, const struct slurm_job *line)
{
    for (size_t i = 0; i < ARRAY_LEN(sbatch_opts); i++) {
        size_t at = sbatch_opts[i].offset, begin = offsetof(struct sbatch_opts, job);
        if (at < begin || at >= begin + sizeof *script)
            continue;
        const void *from = (const char *)line + (at - begin);
        void *to = (char *)script + (at - begin);
        if (sbatch_opts[i].type == OPT_FLAG)
            *(bool *)to |= *(const bool *)from;
        else if (*(const char *const *)from)
            *(const char **)to = *(const char *const *)from;
    }
}

static int read_lines(struct cli *c, const char *file, struct str text, struct slurm_job *out,
                      struct err *e)
{
    struct slurm_script s = { .rest = text };
    struct sbatch_opts o = { 0 };
    const char **words;
    size_t n;
    int rc;
    while ((rc = slurm_next_line(&s, &c->arena, &words, &n, e)) > 0) {
        struct opt_line line = { .argc = (int)n, .argv = (char *const *)(uintptr_t)words };
        if (opts_parse_line(sbatch_opts, ARRAY_LEN(sbatch_opts), &line, &o, e) < 0)
            return err_wrap(e, "%s:%zu", file, s.line);
    }
    *out = o.job;
    return rc < 0 ? err_wrap(e, "%s", file) : 0;
}

static const char *script_name(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? slash + 1 : file ? file : "sbatch";
}

static int print_job(const struct sbatch_opts *o, const struct submitted *job, struct err *e)
{
    char text[64];
    snprintf(text, sizeof text, o->parsable ? "%llu" : "Submitted batch job %llu",
             (unsigned long long)job->id);
    return cli_print_line(text, e);
}

/* The jobs that it starts after, by their numbers. */
static int find_after(struct cli *c, struct slurm_job *job, struct err *e)
{
    if (!job->dependency)
        return 0;
    if (slurm_dependency(job->dependency, &c->arena, &job->after, e) < 0)
        return -1;
    return submit_find_after(c, &job->after, e) < 0 ? err_wrap(e, "--dependency") : 0;
}

static int run_sbatch(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct sbatch_opts *o = opts_p;
    AUTO(buf_free) struct buf script = BUF(0), spec = BUF(SPEC_MAX), notes = BUF(8192);
    AUTO(answer_free) struct answer a = { 0 };
    struct slurm_job job = { 0 };
    const char *file = args.n ? args.v[0] : NULL, *shell[] = { "/bin/sh", "-c", o->job.wrap };
    struct slurm_program p = { .args = shell, .n_args = ARRAY_LEN(shell), .write_file = true };
    struct submitted made;
    if (o->job.wrap && args.n)
        return err_set(e, ERR_INVALID, "--wrap and a script exclude each other");
    if (!o->job.wrap) {
        if (read_script(file, &script, e) < 0 ||
            read_lines(c, file ? file : "standard input", buf_str(&script), &job, e) < 0)
            return -1;
        p.script = buf_str(&script);
        p.args = args.v + (file ? 1 : 0);
        p.n_args = args.n - (file ? 1 : 0);
    }
    lay_over(&job, &o->job);
    if (!job.name)
        job.name = o->job.wrap ? "wrap" : script_name(file);
    if (find_after(c, &job, e) < 0 ||
        slurm_spec(&job, &p, (const char *const *)environ, &spec, &notes, e) < 0)
        return file ? err_wrap(e, "%s", file) : -1;
    print_notes(c, &notes);
    if (o->test_only)
        return cli_print_raw(buf_str(&spec), OUT_YAML, e);
    if (submit_spec(c, buf_str(&spec), &made, NULL, &a, e) < 0 || print_job(o, &made, e) < 0)
        return -1;
    struct watch_want w = { .job = made.id, .replicas = 1 };
    enum watch_outcome how;
    return o->wait && made.count == 1 ? watch_job(c, &w, &how, e) : 0;
}

const struct command command_sbatch = {
    .name = "sbatch",
    .args = "[SCRIPT [ARGUMENTS]]",
    .help = "submit a batch script with #SBATCH lines",
    .more =
        "Output goes to slurm-%j.out in the folder of the job, unless --output says otherwise.\n",
    .group = GROUP_SLURM,
    .word = WORD_FILE,
    COMMAND_OPTS(sbatch_opts, struct sbatch_opts),
    .max_args = SIZE_MAX,
    .leading = true,
    .run = run_sbatch,
};

/* ---- srun ---- */

struct srun_opts {
    struct common common;
    struct slurm_job job;
    bool pty, label;
};

static const struct opt srun_opts[] = {
    OPTS_SLURM_JOB(struct srun_opts),
    { "pty", OPT_FLAG, offsetof(struct srun_opts, pty), NULL, "with a terminal", 0, 0 },
    { "label,l", OPT_FLAG, offsetof(struct srun_opts, label), NULL,
      "several tasks are always labelled", 0, 0 },
    OPTS_COMMON(struct srun_opts),
};

/* Inside a job a step is the command itself: the job has its GPUs already. */
static int run_step(struct cli *c, const struct srun_opts *o, struct words args, struct err *e)
{
    const char *tasks = getenv("SLURM_NTASKS");
    if (o->job.ntasks && strcmp(o->job.ntasks, tasks ? tasks : "1") != 0)
        cli_note(c, "--ntasks is ignored inside a job: the command runs once in each replica");
    (void)execvp(args.v[0], (char *const *)(uintptr_t)args.v);
    return err_set(e, ERR_NOT_FOUND, "cannot run '%s': %s", args.v[0], strerror(errno));
}

static int run_srun(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct srun_opts *o = opts_p;
    AUTO(buf_free) struct buf spec = BUF(SPEC_MAX), notes = BUF(8192);
    AUTO(answer_free) struct answer a = { 0 };
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct slurm_program p = { .args = args.v, .n_args = args.n, .tasks = true, .tty = o->pty };
    struct submitted made;
    uint64_t replicas = 1;
    if (getenv("NIGHTSHIFT_JOB_ID"))
        return run_step(c, o, args, e);
    if (o->pty && !term_is_tty(STDIN_FILENO))
        return err_set(e, ERR_INVALID, "--pty needs a terminal, and standard input is none");
    struct slurm_job job = o->job;
    if (find_after(c, &job, e) < 0 ||
        slurm_spec(&job, &p, (const char *const *)environ, &spec, &notes, e) < 0)
        return -1;
    print_notes(c, &notes);
    if (!(doc = json_read(buf_str(&spec), e)) ||
        json_get_u64(json_root(doc), "replicas", UINT32_MAX, &replicas, e) < 0 ||
        submit_spec(c, buf_str(&spec), &made, NULL, &a, e) < 0)
        return -1;
    if (o->pty)
        return terminal_follow(c, made.id, e);
    struct watch_want w = { .job = made.id, .replicas = (uint32_t)replicas };
    enum watch_outcome how;
    return watch_job(c, &w, &how, e);
}

const struct command command_srun = {
    .name = "srun",
    .args = "COMMAND [ARGUMENTS]",
    .help = "run a command as a job and stay with it",
    .more = "Inside a job it runs the command in place.\n",
    .group = GROUP_SLURM,
    .word = WORD_PROGRAM,
    COMMAND_OPTS(srun_opts, struct srun_opts),
    .min_args = 1,
    .max_args = SIZE_MAX,
    .leading = true,
    .run = run_srun,
};
