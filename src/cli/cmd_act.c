/* cancel, hold, release, freeze, thaw, signal: of many jobs, all but signal go in requests of a thousand. */
#include <stdio.h>

#include "cli/act.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/tty.h"

#define ACT_JOBS_MAX 1000 /* of one request, as the server bounds it */
#define TOLD_MAX 20       /* refusals: of more only how many there were */

struct act_opts {
    struct common common;
    const char *reason, *name, *user, *signal;
    bool all, yes;
};

static const struct opt opts[] = {
    OPTS_OUTPUT(struct act_opts),
    OPTS_COMMON(struct act_opts),
};

static const struct opt cancel_opts[] = {
    { "all", OPT_FLAG, offsetof(struct act_opts, all), NULL, "all your own jobs", 0, 0 },
    { "yes,y", OPT_FLAG, offsetof(struct act_opts, yes), NULL, "do not ask", 0, 0 },
    { "name", OPT_TEXT, offsetof(struct act_opts, name), "NAME", "those called so", 0, 0 },
    { "reason", OPT_TEXT, offsetof(struct act_opts, reason), "TEXT", "kept with the job", 0, 0 },
    OPTS_OUTPUT(struct act_opts),
    OPTS_COMMON(struct act_opts),
};

int act_on_job(struct cli *c, uint64_t id, const char *verb, struct str body, struct answer *out,
               struct err *e)
{
    char path[96];
    snprintf(path, sizeof path, "/v1/jobs/%llu/%s", (unsigned long long)id, verb);
    return cli_call(c, &(struct call){ .method = "POST", .path = path, .body = body }, out, e);
}

/* ---- many ---- */

struct many {
    const char *verb;
    struct str body; /* of the verb on one job: an object */
    size_t failed;
    enum err_code code; /* of the last failure */
};

static void tell_failed(struct cli *c, struct many *m, const struct err *e)
{
    m->code = e->code;
    if (m->failed++ < TOLD_MAX)
        cli_print_error(c, e);
}

static int act_one_by_one(struct cli *c, const struct ids *ids, struct many *m, struct err *e)
{
    for (size_t i = 0; i < ids->n; i++) {
        AUTO(answer_free) struct answer a = { 0 };
        if (act_on_job(c, ids->v[i], m->verb, m->body, &a, e) == 0)
            continue;
        if (e->code == ERR_UNAVAILABLE)
            return -1;
        tell_failed(c, m, e);
    }
    return 0;
}

static void read_refused(struct cli *c, const struct json *root, struct many *m)
{
    const struct json *list = json_find(root, "refused");
    const struct json *o = json_is_array(list) ? json_first(list) : NULL;
    for (; o; o = json_next(list, o)) {
        struct err one = { 0 };
        struct str detail = field_str(o, "detail"), hint = field_str(o, "hint");
        err_set(&one, client_code(0, field_str(o, "code")), "%.*s", STR_ARG(detail));
        err_hint(&one, "%.*s", STR_ARG(hint));
        tell_failed(c, m, &one);
    }
}

static int act_at_once(struct cli *c, const struct ids *ids, struct many *m, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(1u << 20);
    AUTO(answer_free) struct answer a = { 0 };
    struct json_out w = { .b = &body };
    AUTO(json_free_p) struct json_doc *said = json_read(m->body, e);
    struct call call = { .method = "POST", .path = "/v1/jobs/act" };
    if (!said)
        return -1;
    struct str reason = field_str(json_root(said), "reason");
    json_begin(&w, NULL, '{');
    json_put_str(&w, "verb", str_of(m->verb));
    if (reason.n)
        json_put_str(&w, "reason", reason);
    json_begin(&w, "jobs", '[');
    for (size_t i = 0; i < ids->n; i++)
        json_put_u64(&w, NULL, ids->v[i]);
    json_end(&w, ']');
    json_end(&w, '}');
    call.body = buf_str(&body);
    if (cli_call(c, &call, &a, e) < 0) {
        if (e->code == ERR_UNAVAILABLE || ids->n == 0)
            return -1;
        tell_failed(c, m, e); /* none could be changed: the first one's refusal */
        m->failed += ids->n - 1;
        return 0;
    }
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return err_wrap(e, "the server's answer");
    read_refused(c, json_root(doc), m);
    return 0;
}

int act_on_jobs(struct cli *c, const struct ids *ids, const char *verb, struct str body,
                struct err *e)
{
    struct many m = { .verb = verb, .body = body };
    if (ids->n == 1) {
        AUTO(answer_free) struct answer a = { 0 };
        return act_on_job(c, ids->v[0], verb, body, &a, e);
    }
    bool at_once = strcmp(verb, "signal") != 0;
    for (size_t i = 0; i < ids->n; i += ACT_JOBS_MAX) {
        struct ids some = { ids->v + i, MIN(ids->n - i, (size_t)ACT_JOBS_MAX) };
        if ((at_once ? act_at_once(c, &some, &m, e) : act_one_by_one(c, &some, &m, e)) < 0)
            return -1;
    }
    if (!m.failed)
        return 0;
    return err_set(e, m.code, "%zu of %zu jobs could not be changed", m.failed, ids->n);
}

static void body_of(const struct act_opts *o, const char *signal, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    if (o->reason)
        json_put_str(&w, "reason", str_of(o->reason));
    if (signal)
        json_put_str(&w, "signal", str_of(signal));
    json_end(&w, '}');
}

/* `done`: what is said of each, like "cancelled". */
static int act(struct cli *c, const struct act_opts *o, struct ids ids, const char *const verb[2],
               const char *signal, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(8192);
    AUTO(buf_free) struct buf said = BUF(1u << 20);
    enum output form = cli_output(&o->common);
    body_of(o, signal, &body);
    if (buf_check(&body, e) < 0)
        return -1;
    if (ids.n == 1 && (form == OUT_JSON || form == OUT_YAML)) {
        AUTO(answer_free) struct answer a = { 0 };
        if (act_on_job(c, ids.v[0], verb[0], buf_str(&body), &a, e) < 0)
            return -1;
        return cli_print_raw(buf_str(&a.body), form, e);
    }
    if (act_on_jobs(c, &ids, verb[0], buf_str(&body), e) < 0)
        return -1;
    for (size_t i = 0; i < ids.n && ids.n <= 20; i++)
        buf_printf(&said, form == OUT_NAME ? "%s%llu\n" : "%s job %llu\n",
                   form == OUT_NAME ? "" : verb[1], (unsigned long long)ids.v[i]);
    if (ids.n > 20)
        buf_printf(&said, "%s %zu jobs\n", verb[1], ids.n);
    return cli_print(&said, e);
}

/* ---- cancel ---- */

int act_find(struct cli *c, const struct job_filter *f, struct ids *out, struct err *e)
{
    AUTO(jobs_clear) struct jobs jobs = { 0 };
    if (jobs_fetch(c, f, &jobs, e) < 0)
        return -1;
    *out = (struct ids){ arena_array(&c->arena, uint64_t, jobs.n + 1), 0 };
    for (size_t i = 0; i < jobs.n; i++)
        if (!f->name || str_is(jobs.v[i].name, f->name))
            out->v[out->n++] = jobs.v[i].id;
    return 0;
}

static int confirm(const struct act_opts *o, size_t n, struct err *e)
{
    char question[96];
    snprintf(question, sizeof question, "cancel %zu job%s?", n, n == 1 ? "" : "s");
    if (o->yes || tty_confirm(question))
        return 0;
    err_set(e, ERR_CONFLICT, "nothing was cancelled");
    return err_hint(e, "--yes cancels without asking");
}

static int run_cancel(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    static const char *const verb[] = { "cancel", "cancelled" };
    const struct act_opts *o = opts_p;
    struct ids ids = { 0 };
    bool many = o->all || o->name;
    if (many == (args.n > 0)) {
        err_set(e, ERR_INVALID,
                many ? "cancel takes jobs, or --all, or --name" : "cancel needs JOB");
        return err_hint(e, "nightshift cancel 17 20-25 31_3; nightshift cancel --all");
    }
    if (!many)
        return jobs_resolve(c, args, &ids, e) < 0 ? -1 : act(c, o, ids, verb, NULL, e);
    struct job_filter f = { .name = o->name };
    if (!(f.user = cli_whoami(c, e)) || act_find(c, &f, &ids, e) < 0)
        return -1;
    if (ids.n == 0)
        return cli_print_line("no such jobs", e);
    return confirm(o, ids.n, e) < 0 ? -1 : act(c, o, ids, verb, NULL, e);
}

const struct command command_cancel = {
    .name = "cancel",
    .args = "JOB...",
    .help = "end jobs",
    .more =
        "A JOB is an id (17), a range (3-7), or an element of an array (17_3, 17_[0-9], 17_*).\n",
    .group = GROUP_JOBS,
    .word = WORD_JOB,
    COMMAND_OPTS(cancel_opts, struct act_opts),
    .max_args = SIZE_MAX,
    .run = run_cancel,
};

/* ---- the others ---- */

static int act_on_args(struct cli *c, const struct act_opts *o, struct words args,
                       const char *const verb[2], struct err *e)
{
    struct ids ids;
    return jobs_resolve(c, args, &ids, e) < 0 ? -1 : act(c, o, ids, verb, NULL, e);
}

#define ACT_COMMAND(word_, done_, help_)                                                           \
    static int run_##word_(struct cli *c, const void *opts_p, struct words args, struct err *e)    \
    {                                                                                              \
        static const char *const verb[] = { #word_, done_ };                                       \
        return act_on_args(c, opts_p, args, verb, e);                                              \
    }                                                                                              \
    const struct command command_##word_ = {                                                       \
        .name = #word_,                                                                            \
        .args = "JOB...",                                                                          \
        .help = help_,                                                                             \
        .group = GROUP_JOBS,                                                                       \
        .word = WORD_JOB,                                                                          \
        COMMAND_OPTS(opts, struct act_opts),                                                       \
        .min_args = 1,                                                                             \
        .max_args = SIZE_MAX,                                                                      \
        .run = run_##word_,                                                                        \
    }

ACT_COMMAND(hold, "held", "keep waiting jobs from starting");
ACT_COMMAND(release, "released", "let held jobs start");
ACT_COMMAND(freeze, "froze", "stop running jobs, keep their work, give their GPUs back");
ACT_COMMAND(thaw, "thawed", "let frozen jobs go on");

static int run_signal(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    static const char *const verb[] = { "signal", "signalled" };
    struct ids ids;
    const char *name = args.v[0];
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    if (jobs_resolve(c, (struct words){ args.v + 1, args.n - 1 }, &ids, e) < 0)
        return -1;
    return act(c, opts_p, ids, verb, name, e);
}

const struct command command_signal = {
    .name = "signal",
    .args = "SIGNAL JOB...",
    .help = "send a signal (USR1, INT, …) to running jobs",
    .group = GROUP_JOBS,
    .word = WORD_JOB,
    COMMAND_OPTS(opts, struct act_opts),
    .min_args = 2,
    .max_args = SIZE_MAX,
    .run = run_signal,
};
