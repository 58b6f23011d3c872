/* show: one job in full. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobs.h"
#include "cli/text.h"
#include "cli/yaml_out.h"

struct show_opts {
    struct common common;
};

static const struct opt opts[] = {
    OPTS_OUTPUT(struct show_opts),
    OPTS_COMMON(struct show_opts),
};

static int fetch(struct cli *c, const char *ref, const char *what, struct answer *out,
                 struct err *e)
{
    uint64_t id;
    char path[96];
    if (jobs_resolve_one(c, ref, &id, e) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/jobs/%llu%s", (unsigned long long)id, what);
    return cli_call(c, &(struct call){ .path = path }, out, e);
}

static void line(struct buf *b, const char *title, struct str text)
{
    if (text.n == 0)
        return;
    buf_printf(b, "%-11s", title);
    text_add_clean(b, text);
    buf_addc(b, '\n');
}

static void line_time(struct buf *b, const char *title, int64_t t_ms, int64_t now_ms)
{
    char when[24], ago[24];
    if (t_ms > 0)
        buf_printf(b, "%-11s%s  (%s ago)\n", title, text_time_seconds(t_ms, when),
                   text_duration(now_ms - t_ms, ago));
}

static void add_state(struct buf *b, const struct job *j)
{
    AUTO(buf_free) struct buf s = BUF(4096);
    buf_addz(&s, job_word_info(j->state)->name);
    if (j->exit_signal > 0)
        buf_printf(&s, ", signal %lld", (long long)j->exit_signal);
    else if (j->exit_code >= 0)
        buf_printf(&s, ", exit code %lld", (long long)j->exit_code);
    if (j->end.n && !str_is(j->end, "exited"))
        buf_printf(&s, ", %.*s", STR_ARG(j->end));
    line(b, "state", buf_str(&s));
}

/* What it waits for still. */
static void add_start(struct buf *b, const struct json *root, int64_t now_ms)
{
    AUTO(buf_free) struct buf all = BUF(8192);
    char when[24], left[24];
    int64_t begin = field_i64(root, "begin_ms", 0);
    const struct json *after = json_find(root, "after");
    if (begin > now_ms)
        buf_printf(b, "%-11s%s  (in %s)\n", "begin", text_time_seconds(begin, when),
                   text_duration(begin - now_ms, left));
    for (const struct json *a = json_is_array(after) ? json_first(after) : NULL; a;
         a = json_next(after, a)) {
        struct str one = { "", 0 };
        struct err e;
        if (json_as_str(a, 64, &one, &e) == 0)
            buf_printf(&all, "%s%.*s", all.n ? ", " : "", STR_ARG(one));
    }
    line(b, "after", buf_str(&all));
}

static void add_runs(struct buf *b, const struct json *root)
{
    const struct json *runs = json_find(root, "runs");
    for (const struct json *r = json_is_array(runs) ? json_first(runs) : NULL; r;
         r = json_next(runs, r)) {
        char from[24], took[24];
        int64_t began = field_i64(r, "started_ms", 0), ended = field_i64(r, "ended_ms", 0);
        struct str node = field_str(r, "node");
        buf_printf(b, "run %-7llu%s  %.*s%s%s\n", (unsigned long long)field_u64(r, "run"),
                   text_time_seconds(began, from), STR_ARG(node), ended ? "  " : "",
                   ended ? text_duration(ended - began, took) : "");
    }
}

static void print_job(const struct json *root, struct buf *b)
{
    struct job j;
    char id[48], number[24];
    AUTO(buf_free) struct buf where = BUF(1u << 16);
    int64_t now = cli_now_ms();
    job_read(root, &j);
    line(b, "job", str_of(job_id_text(&j, id)));
    line(b, "name", j.name);
    line(b, "user", j.user);
    line(b, "tenant", j.tenant);
    add_state(b, &j);
    line(b, "reason", j.reason_text.n ? j.reason_text : j.reason);
    add_start(b, root, now);
    line(b, "message", j.message);
    line(b, "trouble", field_known(root, "trouble") ? field_str(root, "trouble") : STR(""));
    line(b, "priority", j.priority);
    line(b, "gpus", j.gpu_milli ? str_of(text_milli(j.gpu_milli, number)) : (struct str){ "", 0 });
    if (j.replicas > 1)
        buf_printf(b, "%-11s%llu\n", "replicas", (unsigned long long)j.replicas);
    job_add_where(&j, &where);
    line(b, "where", buf_str(&where));
    line_time(b, "submitted", j.submitted_ms, now);
    line_time(b, "started", j.started_ms, now);
    line_time(b, "ended", j.ended_ms, now);
    if (j.started_ms)
        line(b, "elapsed", str_of(text_duration(job_elapsed_ms(&j, now), number)));
    add_runs(b, root);
    const struct json *spec = json_find(root, "spec");
    if (json_is_object(spec)) {
        buf_addz(b, "\nspec:\n");
        AUTO(buf_free) struct buf y = BUF(1u << 20);
        yaml_print(spec, &y);
        struct str rest = buf_str(&y), one;
        while (str_next_line(&rest, &one)) {
            buf_addz(b, "  ");
            text_add_clean(b, one);
            buf_addc(b, '\n');
        }
    }
}

static int run_show(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct show_opts *o = opts_p;
    enum output form = cli_output(&o->common);
    for (size_t i = 0; i < args.n; i++) {
        AUTO(answer_free) struct answer a = { 0 };
        AUTO(buf_free) struct buf b = BUF(8u << 20);
        if (fetch(c, args.v[i], "", &a, e) < 0)
            return -1;
        if (form == OUT_JSON || form == OUT_YAML) {
            if (cli_print_raw(buf_str(&a.body), form, e) < 0)
                return -1;
            continue;
        }
        AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
        if (!doc)
            return -1;
        if (i)
            buf_addc(&b, '\n');
        print_job(json_root(doc), &b);
        if (cli_print(&b, e) < 0)
            return -1;
    }
    return 0;
}

const struct command command_show = {
    .name = "show",
    .args = "JOB...",
    .help = "everything about a job",
    .group = GROUP_JOBS,
    .word = WORD_JOB,
    COMMAND_OPTS(opts, struct show_opts),
    .min_args = 1,
    .max_args = SIZE_MAX,
    .run = run_show,
};
