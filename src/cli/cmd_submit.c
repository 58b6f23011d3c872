/* submit: job files to the server. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobfile.h"
#include "cli/merge.h"
#include "cli/submit.h"
#include "cli/watch.h"
#include "sys/file.h"

#define BATCH_BYTES_MAX (16u << 20) /* of a request, as the server bounds it */

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
    size_t document; /* from 1 on */
    bool alone;      /* its file has no other */
    struct str spec; /* as it is sent, in the cli's arena */
    const char *tenant;
    uint64_t count; /* jobs that it makes */
    uint64_t id;    /* the first of them, once it is submitted */
};

struct items {
    struct item *v;
    size_t n, cap;
};

static void items_clear(struct items *all)
{
    free(all->v);
}

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

/* A refusal, with the place in the file it is about. */
static int in_file(const struct item *i, const char *field, struct err *e)
{
    struct err was = *e;
    char line_text[32] = "", document[40] = "";
    size_t line = field && field[0] ? jobfile_line_of(i->text, i->line, field) : 0;
    if (line)
        snprintf(line_text, sizeof line_text, ":%zu", line);
    if (!i->alone)
        snprintf(document, sizeof document, " document %zu:", i->document);
    err_set(e, was.code, "%s%s:%s %s", i->file, line_text, document, was.msg);
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

static int dry_run(struct cli *c, const struct submit_opts *o, const struct item *i, struct err *e)
{
    struct submit_checked checked;
    if (submit_check(c, i->spec, &checked, e) < 0)
        return e->code == ERR_UNAVAILABLE ? -1 : in_file(i, checked.field, e);
    if (checked.told[0])
        cli_note(c, "%s: %s", i->file, checked.told);
    if (!checked.known)
        cli_note(c, "%s: well formed; this server cannot check it without making a job", i->file);
    enum output form = cli_output(&o->common);
    return cli_print_raw(i->spec, form == OUT_JSON ? OUT_JSON : OUT_YAML, e);
}

/* ---- files ---- */

/* Jobs of an array like 0-9:3; what is wrong with it the server says. */
static uint64_t array_jobs(struct str array)
{
    struct err none;
    struct str range, step_text, from_text, to_text;
    uint64_t from, to, step = 1;
    bool stepped = str_cut(array, ':', &range, &step_text);
    bool ranges = str_cut(range, '-', &from_text, &to_text);
    if (!ranges || parse_u64(from_text, UINT32_MAX, &from, &none) < 0 ||
        parse_u64(to_text, UINT32_MAX, &to, &none) < 0 ||
        (stepped && parse_u64(step_text, UINT32_MAX, &step, &none) < 0) || step == 0 || to < from)
        return 1;
    return (to - from) / step + 1;
}

static int complete(struct cli *c, const struct submit_opts *o, struct item *i, struct err *e)
{
    AUTO(buf_free) struct buf spec = BUF(JOBFILE_MAX * 2);
    if (make_spec(o, i, &spec, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&spec), e);
    if (!doc)
        return in_file(i, NULL, e);
    const struct json *root = json_root(doc);
    struct str tenant = field_str(root, "tenant");
    i->tenant = arena_strndup(&c->arena, tenant.p, tenant.n);
    i->count = array_jobs(field_str(root, "array"));
    i->spec = (struct str){ arena_strndup(&c->arena, spec.p, spec.n), spec.n };
    return 0;
}

static int read_file(struct cli *c, const char *file, struct items *all, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(JOBFILE_MAX);
    bool standard = strcmp(file, "-") == 0;
    int rc = standard ? read_stdin(&text, e) : file_read(file, JOBFILE_MAX, &text, e);
    if (rc < 0 && e->code == ERR_NOT_FOUND && !strpbrk(file, "/."))
        err_hint(e, "submit reads job files; to run a command: nightshift run --detach %s", file);
    if (rc < 0)
        return -1;
    struct jobfile f = { .rest = { arena_strndup(&c->arena, text.p, text.n), text.n } };
    struct item i = { .file = standard ? "standard input" : file };
    size_t first = all->n;
    while (jobfile_next(&f, &i.text, &i.line)) {
        if (all->n - first == JOBFILE_DOCUMENTS_MAX)
            return err_set(e, ERR_TOO_LARGE, "%s: more than %d jobs", i.file,
                           JOBFILE_DOCUMENTS_MAX);
        vec_grow(all->v, all->n, all->cap);
        i.document = all->n - first + 1;
        all->v[all->n++] = i;
    }
    if (all->n == first)
        return err_set(e, ERR_INVALID, "%s: there is no job in it", i.file);
    all->v[first].alone = all->n == first + 1;
    return 0;
}

/* ---- all of them or none ---- */

/* What one request takes whole or not at all: jobs for one tenant. */
struct part {
    struct item *v;
    size_t n;
};

static struct part next_part(const struct items *all, size_t from)
{
    struct part p = { all->v + from, 1 };
    while (from + p.n < all->n && p.n < JOBFILE_DOCUMENTS_MAX &&
           strcmp(p.v[p.n].tenant, p.v[0].tenant) == 0)
        p.n++;
    return p;
}

static int put_part(const struct part *p, struct buf *out, struct err *e)
{
    struct json_out w = { .b = out };
    if (p->n == 1) {
        buf_add(out, p->v[0].spec);
        return buf_check(out, e);
    }
    json_begin(&w, NULL, '{');
    json_begin(&w, "jobs", '[');
    for (size_t i = 0; i < p->n; i++)
        json_put_raw(&w, NULL, p->v[i].spec);
    json_end(&w, ']');
    json_end(&w, '}');
    return buf_check(out, e);
}

/* The server counts jobs[0], jobs[1]; "job 2 of 3: " is before its words. */
static int in_part(const struct part *p, const char *field, struct err *e)
{
    struct str rest, index;
    struct err none, was = *e;
    uint64_t at;
    if (p->n == 1)
        return in_file(p->v, field, e);
    bool numbered =
        strncmp(field, "jobs[", 5) == 0 && str_cut(str_of(field + 5), ']', &index, &rest);
    if (!numbered || parse_u64(index, p->n - 1, &at, &none) < 0)
        return in_file(p->v, NULL, e);
    size_t digits = strspn(was.msg, "job of0123456789");
    if (strncmp(was.msg, "job ", 4) == 0 && strncmp(was.msg + digits, ": ", 2) == 0) {
        err_set(e, was.code, "%s", was.msg + digits + 2);
        err_hint(e, "%s", was.hint);
    }
    return in_file(&p->v[at], rest.n ? rest.p + 1 : NULL, e);
}

static int check_part(struct cli *c, const struct part *p, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(BATCH_BYTES_MAX);
    struct submit_checked checked;
    if (put_part(p, &body, e) < 0)
        return -1;
    if (submit_check(c, buf_str(&body), &checked, e) < 0)
        return e->code == ERR_UNAVAILABLE ? -1 : in_part(p, checked.field, e);
    return 0;
}

static int submit_part(struct cli *c, const struct submit_opts *o, const struct part *p,
                       struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(BATCH_BYTES_MAX);
    AUTO(answer_free) struct answer a = { 0 };
    enum output form = cli_output(&o->common);
    const char *field = NULL;
    struct submitted s;
    if (put_part(p, &body, e) < 0)
        return -1;
    if (submit_spec(c, buf_str(&body), &s, &field, &a, e) < 0)
        return e->code == ERR_UNAVAILABLE ? -1 : in_part(p, field, e);
    uint64_t id = s.id;
    for (size_t i = 0; i < p->n; i++) {
        p->v[i].count = p->n == 1 ? s.count : p->v[i].count;
        p->v[i].id = id;
        id += p->v[i].count;
    }
    if (o->follow || (form != OUT_JSON && form != OUT_YAML))
        return 0;
    return cli_print_raw(buf_str(&a.body), form, e);
}

/* What one request cannot take whole is checked before anything of it is sent. */
static int submit_items(struct cli *c, const struct submit_opts *o, const struct items *all,
                        struct err *e)
{
    struct part p = next_part(all, 0);
    for (size_t i = 0; p.n < all->n && i < all->n; i += p.n) {
        p = next_part(all, i);
        if (check_part(c, &p, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < all->n; i += p.n) {
        p = next_part(all, i);
        if (submit_part(c, o, &p, e) < 0)
            return -1;
    }
    return 0;
}

static int tell(struct cli *c, const struct submit_opts *o, const struct item *i, struct err *e)
{
    char text[128];
    enum output form = cli_output(&o->common);
    unsigned long long first = i->id, last = i->id + i->count - 1;
    struct watch_want w = { .job = i->id, .replicas = 1 };
    enum watch_outcome how;
    if (o->follow && i->count == 1)
        return watch_job(c, &w, &how, e);
    if (form == OUT_JSON || form == OUT_YAML)
        return 0;
    if (form == OUT_NAME)
        snprintf(text, sizeof text, "%llu", first);
    else if (i->count > 1)
        snprintf(text, sizeof text, "submitted jobs %llu-%llu", first, last);
    else
        snprintf(text, sizeof text, "submitted job %llu", first);
    return cli_print_line(text, e);
}

/* What of several was submitted when something went wrong: nothing, as a rule. */
static void tell_rest(struct cli *c, const struct items *all)
{
    size_t n = 0;
    while (n < all->n && all->v[n].id)
        n++;
    if (all->n > 1 && n == 0)
        cli_note(c, "nothing was submitted");
    else if (n)
        cli_note(c, "submitted before that: %zu of %zu, from job %llu on", n, all->n,
                 (unsigned long long)all->v[0].id);
}

static int run_submit(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    AUTO(items_clear) struct items all = { 0 };
    struct submit_opts o = *(const struct submit_opts *)opts_p;
    if (submit_find_after(c, &o.flags.after, e) < 0)
        return err_wrap(e, "--after");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < args.n; i++)
        rc = read_file(c, args.v[i], &all, e);
    for (size_t i = 0; rc == 0 && i < all.n; i++)
        rc = complete(c, &o, &all.v[i], e);
    for (size_t i = 0; rc == 0 && o.dry_run && i < all.n; i++)
        rc = dry_run(c, &o, &all.v[i], e);
    if (o.dry_run)
        return rc;
    if (rc < 0 || submit_items(c, &o, &all, e) < 0) {
        tell_rest(c, &all);
        return -1;
    }
    for (size_t i = 0; rc == 0 && i < all.n; i++)
        rc = tell(c, &o, &all.v[i], e);
    return rc;
}

const struct command command_submit = {
    .name = "submit",
    .args = "FILE...",
    .help = "queue the jobs of files (YAML or JSON; - is standard input)",
    .more = "Options change what the file says.  A file may hold several jobs, with a line of ---\n"
            "between them: all of them are submitted, or none.\n\n"
            "    nightshift submit train.yaml\n"
            "    nightshift submit train.yaml --gpus 2 --env SEED=7\n",
    .group = GROUP_JOBS,
    .word = WORD_FILE,
    COMMAND_OPTS(opts, struct submit_opts),
    .min_args = 1,
    .max_args = SIZE_MAX,
    .run = run_submit,
};
