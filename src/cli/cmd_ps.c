/* ps: the jobs, one a line. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/text.h"
#include "cli/tty.h"
#include "sys/term.h"

#define WATCH_MS 2000
#define ROWS_MAX 500u /* of a table: a queue of a hundred thousand is not read by anybody */
#define HOLDING "starting,running,freezing,paused,thawing,stopping"

struct ps_opts {
    struct common common;
    const char *user, *tenant, *state, *name;
    uint64_t limit;
    bool all, mine, array, watch;
};

static const struct opt opts[] = {
    { "all,a", OPT_FLAG, offsetof(struct ps_opts, all), NULL, "also those that have ended", 0, 0 },
    { "mine", OPT_FLAG, offsetof(struct ps_opts, mine), NULL, "only your own", 0, 0 },
    { "user,u", OPT_TEXT, offsetof(struct ps_opts, user), "NAME", "only this user's", 0, 0 },
    { "tenant", OPT_TEXT, offsetof(struct ps_opts, tenant), "NAME", "only this group's", 0, 0 },
    { "state,s", OPT_TEXT, offsetof(struct ps_opts, state), "STATE[,STATE]",
      "queued, running, frozen, failed, …", 0, 0 },
    { "name,n", OPT_TEXT, offsetof(struct ps_opts, name), "NAME", "only those called so", 0, 0 },
    { "array,r", OPT_FLAG, offsetof(struct ps_opts, array), NULL,
      "elements of an array on one line: 17_[0-9]", 0, 0 },
    { "limit", OPT_NUMBER, offsetof(struct ps_opts, limit), "N",
      "at most this many; else the newest 500 and all that runs", 1, 1000000 },
    { "watch,w", OPT_FLAG, offsetof(struct ps_opts, watch), NULL, "again every two seconds", 0, 0 },
    OPTS_OUTPUT(struct ps_opts),
    OPTS_COMMON(struct ps_opts),
};

static const struct column columns[] = {
    { "ID", true, false },     { "NAME", false, true },         { "USER", false, false },
    { "TENANT", false, true }, { "STATE", false, false },       { "GPUS", true, false },
    { "TIME", true, false },   { "WHERE/REASON", false, true },
};

static const struct column wide_columns[] = {
    { "ID", true, false },           { "NAME", false, true },       { "USER", false, false },
    { "TENANT", false, true },       { "STATE", false, false },     { "GPUS", true, false },
    { "TIME", true, false },         { "PRIORITY", false, false },  { "REPLICAS", true, false },
    { "RUN", true, false },          { "SUBMITTED", false, false }, { "EXIT", true, false },
    { "WHERE/REASON", false, true },
};

static void add_exit(struct table *t, const struct job *j)
{
    if (j->exit_signal > 0)
        table_printf(t, "signal %lld", (long long)j->exit_signal);
    else if (j->exit_code >= 0)
        table_printf(t, "%lld", (long long)j->exit_code);
    else
        table_addz(t, "-");
}

/* Where it runs, or why it does not. */
static void add_where(struct table *t, const struct job *j)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    bool ended = job_word_info(j->state)->ended;
    if (!ended)
        job_add_where(j, &b);
    bool exited = str_is(j->end, "exited");
    if (b.n && j->state == JOB_IS_STARTING && j->message.n) {
        buf_addz(&b, ": ");
        buf_add(&b, j->message);
    }
    if (b.n == 0 && ended && j->message.n == 0 && exited && job_shell_code(j))
        buf_printf(&b, "exit code %d", job_shell_code(j));
    else if (b.n == 0 && ended)
        buf_add(&b, j->message.n || exited ? j->message : j->end);
    if (b.n == 0 && j->state == JOB_IS_FROZEN)
        buf_add(&b, j->message); /* why it was frozen, when nobody asked for it */
    if (b.n == 0 && !ended)
        buf_add(&b, j->reason_text.n ? j->reason_text : j->reason);
    table_add(t, buf_str(&b));
}

static void add_row(struct table *t, const struct jobs *jobs, size_t i, size_t n, bool wide)
{
    const struct job *j = &jobs->v[i];
    const struct job_word_info *state = job_word_info(j->state);
    AUTO(buf_free) struct buf ids = BUF(1u << 16);
    char text[48], number[24];
    if (n > 1)
        jobs_add_array_text(jobs, i, n, &ids);
    else
        buf_addz(&ids, job_id_text(j, text));
    table_add(t, buf_str(&ids));
    table_add(t, j->name);
    table_add(t, j->user);
    table_add(t, j->tenant);
    table_add_tinted(t, str_of(state->name), state->tint);
    table_addz(t, j->gpu_milli ? text_milli(j->gpu_milli, number) : "-");
    int64_t now = cli_now_ms();
    int64_t waited = j->submitted_ms ? now - j->submitted_ms : 0;
    table_addz(t, text_duration(j->started_ms ? job_elapsed_ms(j, now) : waited, number));
    if (wide) {
        table_add(t, j->priority);
        table_printf(t, "%llu", (unsigned long long)j->replicas);
        table_printf(t, "%llu", (unsigned long long)j->run);
        table_addz(t, text_time(j->submitted_ms, number));
        add_exit(t, j);
    }
    add_where(t, j);
}

static int print_names(const struct jobs *jobs, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(64u << 20);
    for (size_t i = 0; i < jobs->n; i++)
        buf_printf(&b, "%llu\n", (unsigned long long)jobs->v[i].id);
    return cli_print(&b, e);
}

static int print_jobs(const struct ps_opts *o, const struct jobs *jobs, struct err *e)
{
    enum output form = cli_output(&o->common);
    if (form == OUT_NAME)
        return print_names(jobs, e);
    bool wide = form == OUT_WIDE;
    AUTO(table_free_p)
    struct table *t = wide ? table_new(wide_columns, ARRAY_LEN(wide_columns))
                           : table_new(columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < jobs->n;) {
        size_t n = o->array ? jobs_array_run(jobs, i) : 1;
        add_row(t, jobs, i, n, wide);
        i += n;
    }
    return cli_print_table(t, &o->common, e);
}

static uint64_t limit_of(const struct ps_opts *o)
{
    bool whole = cli_output(&o->common) == OUT_NAME; /* a program reads it */
    return o->limit ? o->limit : whole ? 0 : ROWS_MAX;
}

/* The newest; when there are too many of them, also what runs, however old it is. */
static int print_list(struct cli *c, const struct ps_opts *o, const struct job_filter *f,
                      struct err *e)
{
    AUTO(jobs_clear) struct jobs jobs = { 0 };
    if (jobs_fetch(c, f, &jobs, e) < 0)
        return -1;
    size_t newest = jobs.n;
    bool cut = jobs.more && !o->limit;
    if (cut && !o->state) {
        AUTO(jobs_clear) struct jobs holding = { 0 };
        struct job_filter of = *f;
        of.states = HOLDING;
        if (jobs_fetch(c, &of, &holding, e) < 0)
            return -1;
        jobs_add_older(&jobs, &holding);
    }
    if (print_jobs(o, &jobs, e) < 0)
        return -1;
    if (cut)
        cli_note(c, "the newest %zu%s; others with --state, --user, --name or --limit N", newest,
                 o->state ? "" : ", and all that runs");
    return 0;
}

static int list_once(struct cli *c, const struct ps_opts *o, struct err *e)
{
    struct job_filter f = { .states = o->state ? o->state
                                    : o->all   ? "all"
                                               : NULL,
                            .user = o->user,
                            .tenant = o->tenant,
                            .name = o->name,
                            .limit = limit_of(o) };
    if (o->mine && !(f.user = cli_whoami(c, e)))
        return -1;
    enum output form = cli_output(&o->common);
    if (form == OUT_JSON || form == OUT_YAML) {
        AUTO(buf_free) struct buf path = BUF(8192);
        AUTO(answer_free) struct answer a = { 0 };
        jobs_path(&f, 0, &path);
        if (buf_check(&path, e) < 0 || cli_call(c, &(struct call){ .path = path.p }, &a, e) < 0)
            return -1;
        return cli_print_raw(buf_str(&a.body), form, e);
    }
    return print_list(c, o, &f, e);
}

static int run_ps(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct ps_opts *o = opts_p;
    (void)args;
    if (!o->watch)
        return list_once(c, o, e);
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    if (signals_open(&signals, e) < 0)
        return -1;
    for (;;) {
        if (term_is_tty(STDOUT_FILENO) && tty_write(STDOUT_FILENO, STR("\x1b[H\x1b[2J")) < 0)
            return 0;
        if (list_once(c, o, e) < 0)
            return -1;
        struct pollfd p = { .fd = signals.fd, .events = POLLIN };
        (void)poll(&p, 1, WATCH_MS);
        for (int signo; (signo = signals_next(&signals));)
            if (signo != SIGWINCH && signo != SIGCONT)
                return 0;
    }
}

const struct command command_ps = {
    .name = "ps",
    .args = "",
    .help = "list jobs",
    .more = "TIME is how long a job runs, or has waited when it has not started.\n",
    .group = GROUP_JOBS,
    COMMAND_OPTS(opts, struct ps_opts),
    .run = run_ps,
};
