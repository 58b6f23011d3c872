/* submit: job files to the server. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobfile.h"
#include "cli/merge.h"
#include "cli/submit.h"
#include "cli/watch.h"
#include "sys/file.h"

struct submit_opts {
    struct common common;
    struct flags flags;
    bool dry_run, follow;
};

static const struct opt opts[] = {
    OPTS_FLAGS(struct submit_opts),
    { "dry-run", OPT_FLAG, offsetof(struct submit_opts, dry_run), NULL,
      "check it, say when it would start, and print what would be sent", 0, 0 },
    { "follow,f", OPT_FLAG, offsetof(struct submit_opts, follow), NULL,
      "stay with the job, as run does", 0, 0 },
    OPTS_OUTPUT(struct submit_opts),
    OPTS_COMMON(struct submit_opts),
};

/* One document of one file on its way. */
struct item {
    const char *file;
    struct str text;
    size_t line;
};

static int read_stdin(struct buf *out, struct err *e)
{
    char chunk[16384];
    ssize_t n;
    *out = BUF(JOBFILE_MAX);
    while ((n = read(STDIN_FILENO, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot read standard input: %s", strerror(errno));
        buf_add(out, (struct str){ chunk, (size_t)n });
    }
    return buf_check(out, e);
}

/* The server's refusal, with the place in the file it is about. */
static int in_file(const struct item *i, const char *field, struct err *e)
{
    struct err was = *e;
    size_t line = field && field[0] ? jobfile_line_of(i->text, i->line, field) : 0;
    if (line)
        err_set(e, was.code, "%s:%zu: %s", i->file, line, was.msg);
    else
        err_set(e, was.code, "%s: %s", i->file, was.msg);
    return was.hint[0] ? err_hint(e, "%s", was.hint) : -1;
}

/* The file's spec under the flags. */
static int make_spec(const struct submit_opts *o, const struct item *i, struct buf *out,
                     struct err *e)
{
    AUTO(buf_free) struct buf patch = BUF(JOBFILE_MAX);
    struct json_out p = { .b = &patch }, w = { .b = out };
    AUTO(json_free_p) struct json_doc *base = jobfile_read(i->text, i->line, e);
    if (!base)
        return in_file(i, NULL, e);
    if (!json_is_object(json_root(base))) {
        err_set(e, ERR_INVALID, "a job is written as 'key: value' lines");
        return in_file(i, NULL, e);
    }
    const struct json *begin = o->flags.begin ? NULL : json_find(json_root(base), "begin");
    json_begin(&p, NULL, '{');
    if (json_is_string(begin) &&
        flags_put_begin(&p, field_str(json_root(base), "begin").p, e) < 0) {
        err_wrap(e, "field 'begin'");
        return in_file(i, "begin", e);
    }
    if (flags_put(&o->flags, &p, e) < 0 ||
        flags_put_env(&o->flags, (const char *const *)environ, false, &p, e) < 0)
        return -1;
    if (!o->flags.workdir && !json_find(json_root(base), "workdir") &&
        !json_find(json_root(base), "image")) {
        char folder[4096];
        if (getcwd(folder, sizeof folder))
            json_put_str(&p, "cwd", str_of(folder));
    }
    json_end(&p, '}');
    AUTO(json_free_p) struct json_doc *over = json_read(buf_str(&patch), e);
    if (!over)
        return -1;
    merge_put(&w, NULL, json_root(base), json_root(over));
    return buf_check(out, e);
}

static int dry_run(struct cli *c, const struct submit_opts *o, const struct item *i,
                   const struct buf *spec, struct err *e)
{
    struct submit_checked checked;
    if (submit_check(c, buf_str(spec), &checked, e) < 0)
        return e->code == ERR_UNAVAILABLE ? -1 : in_file(i, checked.field, e);
    if (checked.told[0])
        cli_note(c, "%s: %s", i->file, checked.told);
    if (!checked.known)
        cli_note(c, "%s: well formed; this server cannot check it without making a job", i->file);
    enum output form = cli_output(&o->common);
    return cli_print_raw(buf_str(spec), form == OUT_JSON ? OUT_JSON : OUT_YAML, e);
}

static int print_submitted(const struct submit_opts *o, const struct submitted *s,
                           const struct answer *a, struct err *e)
{
    char text[128];
    enum output form = cli_output(&o->common);
    unsigned long long first = s->id, last = s->id + s->count - 1;
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a->body), form, e);
    if (form == OUT_NAME)
        snprintf(text, sizeof text, "%llu", first);
    else if (s->count > 1)
        snprintf(text, sizeof text, "submitted jobs %llu-%llu", first, last);
    else
        snprintf(text, sizeof text, "submitted job %llu", first);
    return cli_print_line(text, e);
}

static int submit_item(struct cli *c, const struct submit_opts *o, const struct item *i,
                       struct err *e)
{
    AUTO(buf_free) struct buf spec = BUF(JOBFILE_MAX * 2);
    AUTO(answer_free) struct answer a = { 0 };
    struct submitted s;
    const char *field = NULL;
    if (make_spec(o, i, &spec, e) < 0)
        return -1;
    if (o->dry_run)
        return dry_run(c, o, i, &spec, e);
    if (submit_spec(c, buf_str(&spec), &s, &field, &a, e) < 0)
        return e->code == ERR_UNAVAILABLE ? -1 : in_file(i, field, e);
    if (!o->follow || s.count > 1)
        return print_submitted(o, &s, &a, e);
    struct watch_want w = { .job = s.id, .replicas = 1 };
    enum watch_outcome how;
    return watch_job(c, &w, &how, e);
}

static int submit_file(struct cli *c, const struct submit_opts *o, const char *file, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(JOBFILE_MAX);
    bool standard = strcmp(file, "-") == 0;
    int rc = standard ? read_stdin(&text, e) : file_read(file, JOBFILE_MAX, &text, e);
    if (rc < 0 && e->code == ERR_NOT_FOUND && !strpbrk(file, "/."))
        err_hint(e, "submit reads job files; to run a command: nightshift run --detach %s", file);
    if (rc < 0)
        return -1;
    struct jobfile f = { .rest = buf_str(&text) };
    struct item i = { .file = standard ? "standard input" : file };
    size_t n = 0;
    for (; jobfile_next(&f, &i.text, &i.line); n++) {
        if (n == JOBFILE_DOCUMENTS_MAX)
            return err_set(e, ERR_TOO_LARGE, "%s: more than %d jobs", i.file,
                           JOBFILE_DOCUMENTS_MAX);
        if (submit_item(c, o, &i, e) < 0)
            return -1;
    }
    return n ? 0 : err_set(e, ERR_INVALID, "%s: there is no job in it", i.file);
}

static int run_submit(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    struct submit_opts o = *(const struct submit_opts *)opts_p;
    if (submit_find_after(c, &o.flags.after, e) < 0)
        return err_wrap(e, "--after");
    for (size_t i = 0; i < args.n; i++)
        if (submit_file(c, &o, args.v[i], e) < 0)
            return -1;
    return 0;
}

const struct command command_submit = {
    .name = "submit",
    .args = "FILE...",
    .help = "queue the jobs of files (YAML or JSON; - is standard input)",
    .more = "Options change what the file says.  A file may hold several jobs, with a line of ---\n"
            "between them.\n\n"
            "    nightshift submit train.yaml\n"
            "    nightshift submit train.yaml --gpus 2 --env SEED=7\n",
    .group = GROUP_JOBS,
    .word = WORD_FILE,
    COMMAND_OPTS(opts, struct submit_opts),
    .min_args = 1,
    .max_args = SIZE_MAX,
    .run = run_submit,
};
