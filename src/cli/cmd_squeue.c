/* squeue, scancel: Slurm's words for ps and cancel. */
#include <stdio.h>

#include "cli/act.h"
#include "cli/commands.h"
#include "cli/slurm_fields.h"

struct squeue_opts {
    struct common common;
    const char *users, *states, *jobs, *format, *account, *name, *partition, *sort;
    bool no_header, mine, array, longer, start;
};

static const struct opt squeue_opts[] = {
    { "user,u", OPT_TEXT, offsetof(struct squeue_opts, users), "NAME", "only this user's", 0, 0 },
    { "me", OPT_FLAG, offsetof(struct squeue_opts, mine), NULL, "only your own", 0, 0 },
    { "states,t", OPT_TEXT, offsetof(struct squeue_opts, states), "LIST",
      "PD, R, S, CG, CD, F, CA, all", 0, 0 },
    { "jobs,j", OPT_TEXT, offsetof(struct squeue_opts, jobs), "LIST", "only these", 0, 0 },
    { "name,n", OPT_TEXT, offsetof(struct squeue_opts, name), "NAME", "only those called so", 0,
      0 },
    { "account,A", OPT_TEXT, offsetof(struct squeue_opts, account), "NAME", "only of this tenant",
      0, 0 },
    { "noheader,h", OPT_FLAG, offsetof(struct squeue_opts, no_header), NULL, "no titles", 0, 0 },
    { "format,o", OPT_TEXT, offsetof(struct squeue_opts, format), "FORMAT", "like '%i %j %T'", 0,
      0 },
    { "array,r", OPT_FLAG, offsetof(struct squeue_opts, array), NULL, "each element on its line", 0,
      0 },
    { "long,l", OPT_FLAG, offsetof(struct squeue_opts, longer), NULL, "more columns", 0, 0 },
    { "partition,p", OPT_TEXT, offsetof(struct squeue_opts, partition), "NAME", "ignored", 0, 0 },
    { "start", OPT_FLAG, offsetof(struct squeue_opts, start), NULL, "those that wait", 0, 0 },
    { "sort,S", OPT_TEXT, offsetof(struct squeue_opts, sort), "LIST", "ignored", 0, 0 },
    OPTS_COMMON(struct squeue_opts),
};

/* A plain 17 is the whole array when 17 is the first of one. */
static bool matches(const struct job *j, const struct words *refs)
{
    struct err why;
    for (size_t i = 0; i < refs->n; i++) {
        struct job_ref r;
        if (job_ref_parse(refs->v[i], &r, &why) < 0)
            continue;
        uint64_t index = (uint64_t)MAX(j->array_index, INT64_C(0));
        if (r.is_array && j->array == r.first &&
            (r.all || (index >= r.index_from && index <= r.index_to)))
            return true;
        if (!r.is_array &&
            ((j->id >= r.first && j->id <= r.last) || (j->array && j->array == r.first)))
            return true;
    }
    return false;
}

static int print_queue(const struct squeue_opts *o, const struct jobs *jobs,
                       const struct words *refs, struct err *e)
{
    static const char plain[] = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
    static const char starts[] = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R";
    static const char longer[] = "%.18i %.9P %.8j %.8u %.8T %.10M %.6D %R";
    AUTO(buf_free) struct buf b = BUF(256u << 20);
    struct slurm_format f;
    const char *form = o->format ? o->format : o->start ? starts : o->longer ? longer : plain;
    if (slurm_format_letters(form, &f, e) < 0)
        return -1;
    if (!o->no_header)
        slurm_print_titles(&f, &b);
    for (size_t i = 0; i < jobs->n;) {
        AUTO(buf_free) struct buf folded = BUF(1u << 16);
        char id[48];
        const struct job *j = &jobs->v[i];
        bool waits = j->state == JOB_IS_QUEUED || j->state == JOB_IS_HELD;
        size_t n = waits && !o->array && refs->n == 0 ? jobs_array_run(jobs, i) : 1;
        if (n > 1)
            jobs_add_array_text(jobs, i, n, &folded);
        struct slurm_row row = { j, n > 1 ? folded.p : job_id_text(j, id), cli_now_ms() };
        if (refs->n == 0 || matches(j, refs))
            slurm_print_row(&f, &row, &b);
        i += n;
    }
    return cli_print(&b, e);
}

static int run_squeue(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct squeue_opts *o = opts_p;
    AUTO(buf_free) struct buf states = BUF(1024);
    AUTO(jobs_clear) struct jobs jobs = { 0 };
    struct words refs = { 0 };
    struct job_filter f = { .user = o->users, .tenant = o->account, .name = o->name };
    (void)args;
    if (o->states && slurm_states(o->states, &states, e) < 0)
        return -1;
    f.states = states.n ? states.p : o->start ? slurm_state_words(STR("PD")) : NULL;
    if ((o->mine && !(f.user = cli_whoami(c, e))) ||
        (o->jobs && jobs_split_refs(c, o->jobs, &refs, e) < 0) ||
        jobs_fetch_named(c, &f, &refs, &jobs, e) < 0)
        return -1;
    return print_queue(o, &jobs, &refs, e);
}

const struct command command_squeue = {
    .name = "squeue",
    .args = "",
    .help = "list jobs that have not ended",
    .group = GROUP_SLURM,
    COMMAND_OPTS(squeue_opts, struct squeue_opts),
    .run = run_squeue,
};

/* ---- scancel ---- */

struct scancel_opts {
    struct common common;
    const char *user, *name, *states, *signal, *account;
    bool mine, quiet, interactive, batch, full;
};

static const struct opt scancel_opts[] = {
    { "user,u", OPT_TEXT, offsetof(struct scancel_opts, user), "NAME", "all of this user", 0, 0 },
    { "me", OPT_FLAG, offsetof(struct scancel_opts, mine), NULL, "all your own", 0, 0 },
    { "name,n", OPT_TEXT, offsetof(struct scancel_opts, name), "NAME", "those called so", 0, 0 },
    { "state,t", OPT_TEXT, offsetof(struct scancel_opts, states), "STATE", "PENDING, RUNNING, …", 0,
      0 },
    { "account,A", OPT_TEXT, offsetof(struct scancel_opts, account), "NAME", "those of a tenant", 0,
      0 },
    { "signal,s", OPT_TEXT, offsetof(struct scancel_opts, signal), "SIGNAL", "send it instead", 0,
      0 },
    { "quiet,Q", OPT_FLAG, offsetof(struct scancel_opts, quiet), NULL, "ignored", 0, 0 },
    { "batch,b", OPT_FLAG, offsetof(struct scancel_opts, batch), NULL, "ignored", 0, 0 },
    { "full,f", OPT_FLAG, offsetof(struct scancel_opts, full), NULL, "ignored", 0, 0 },
    OPTS_COMMON(struct scancel_opts),
};

static int find_jobs(struct cli *c, const struct scancel_opts *o, const struct words *refs,
                     struct ids *out, struct err *e)
{
    AUTO(buf_free) struct buf states = BUF(1024);
    AUTO(jobs_clear) struct jobs jobs = { 0 };
    struct job_filter f = { .user = o->user, .tenant = o->account, .name = o->name };
    if (o->states && slurm_states(o->states, &states, e) < 0)
        return -1;
    f.states = states.n ? states.p : NULL;
    bool whole = refs->n == 0;
    if ((o->mine && !(f.user = cli_whoami(c, e))) || jobs_fetch_named(c, &f, refs, &jobs, e) < 0)
        return -1;
    *out = (struct ids){ arena_array(&c->arena, uint64_t, jobs.n + 1), 0 };
    for (size_t i = 0; i < jobs.n; i++)
        if ((whole || matches(&jobs.v[i], refs)) && (!o->name || str_is(jobs.v[i].name, o->name)))
            out->v[out->n++] = jobs.v[i].id;
    return 0;
}

static int run_scancel(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct scancel_opts *o = opts_p;
    struct ids ids;
    struct job_ref r;
    AUTO(buf_free) struct buf body = BUF(256);
    struct json_out w = { .b = &body };
    if (args.n == 0 && !o->user && !o->mine && !o->name && !o->states && !o->account) {
        err_set(e, ERR_INVALID, "scancel needs jobs");
        return err_hint(e, "scancel 17 18_3; scancel --me; scancel -n NAME");
    }
    for (size_t i = 0; i < args.n; i++)
        if (job_ref_parse(args.v[i], &r, e) < 0)
            return -1;
    if (find_jobs(c, o, &args, &ids, e) < 0)
        return -1;
    if (ids.n == 0 && args.n == 1) /* the server's own words: it has ended, or never was */
        return jobs_resolve(c, args, &ids, e) < 0 ? -1
                                                  : act_on_jobs(c, &ids, "cancel", STR("{}"), e);
    json_begin(&w, NULL, '{');
    if (o->signal)
        json_put_str(&w, "signal",
                     str_of(strncmp(o->signal, "SIG", 3) == 0 ? o->signal + 3 : o->signal));
    json_end(&w, '}');
    if (buf_check(&body, e) < 0)
        return -1;
    return act_on_jobs(c, &ids, o->signal ? "signal" : "cancel", buf_str(&body), e);
}

const struct command command_scancel = {
    .name = "scancel",
    .args = "[JOB...]",
    .help = "end jobs, or send them a signal",
    .more = "17 is the whole array when it is one; 17_3 is an element of it.\n",
    .group = GROUP_SLURM,
    .word = WORD_JOB,
    COMMAND_OPTS(scancel_opts, struct scancel_opts),
    .max_args = SIZE_MAX,
    .run = run_scancel,
};
