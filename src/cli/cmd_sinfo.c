/* sinfo, sacct: Slurm's words for nodes and for jobs that have ended. */
#include <stdio.h>
#include <time.h>

#include "base/hostlist.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobs.h"
#include "cli/slurm_fields.h"
#include "cli/when.h"

#define NODES_MAX 100000

struct sinfo_opts {
    struct common common;
    bool each, no_header, longer;
    const char *partition;
};

static const struct opt sinfo_opts[] = {
    { "Node,N", OPT_FLAG, offsetof(struct sinfo_opts, each), NULL, "a line for each machine", 0,
      0 },
    { "noheader,h", OPT_FLAG, offsetof(struct sinfo_opts, no_header), NULL, "no titles", 0, 0 },
    { "long,l", OPT_FLAG, offsetof(struct sinfo_opts, longer), NULL, "same as -N", 0, 0 },
    { "partition,p", OPT_TEXT, offsetof(struct sinfo_opts, partition), "NAME", "ignored", 0, 0 },
    OPTS_COMMON(struct sinfo_opts),
};

static const char *const node_states[] = { "idle", "mix", "alloc", "drain", "down" };

/* Slurm's word for a machine: by its state, then by what is free. */
static size_t node_state(const struct json *n)
{
    struct str state = field_str(n, "state");
    const struct json *gpus = json_find(n, "gpus");
    uint64_t total = field_u64(n, "cpu_milli"), unused = field_u64(n, "cpu_free_milli");
    if (str_is(state, "drain"))
        return 3;
    if (!str_is(state, "up"))
        return 4;
    if (json_is_array(gpus) && json_first(gpus)) {
        total = json_len(gpus) * 1000;
        unused = 0;
        for (const struct json *g = json_first(gpus); g; g = json_next(gpus, g))
            unused += field_u64(g, "free_milli");
    }
    return unused >= total ? 0 : unused ? 1 : 2;
}

static void print_each(const struct sinfo_opts *o, const struct json *nodes, struct buf *b)
{
    if (!o->no_header)
        buf_printf(b, "%-20s %5s %9s %-6s %-12s %6s %9s\n", "NODELIST", "NODES", "PARTITION",
                   "STATE", "GRES", "CPUS", "MEMORY");
    for (const struct json *n = json_first(nodes); n; n = json_next(nodes, n)) {
        const struct json *gpus = json_find(n, "gpus");
        struct str name = field_str(n, "name"), model = field_str(n, "model");
        char gres[64] = "(null)";
        if (json_is_array(gpus) && json_first(gpus))
            snprintf(gres, sizeof gres, "gpu:%.*s%s%zu", STR_ARG(model), model.n ? ":" : "",
                     json_len(gpus));
        buf_printf(b, "%-20.*s %5d %9s %-6s %-12s %6llu %9llu\n", STR_ARG(name), 1, "main",
                   node_states[node_state(n)], gres,
                   (unsigned long long)(field_u64(n, "cpu_milli") / 1000),
                   (unsigned long long)field_u64(n, "mem_mib"));
    }
}

static void print_by_state(struct cli *c, const struct sinfo_opts *o, const struct json *nodes,
                           struct buf *b)
{
    size_t most = MIN(json_len(nodes), (size_t)NODES_MAX);
    const char **names = arena_array(&c->arena, const char *, most + 1);
    if (!o->no_header)
        buf_printf(b, "%-9s %5s %10s %6s %6s %s\n", "PARTITION", "AVAIL", "TIMELIMIT", "NODES",
                   "STATE", "NODELIST");
    for (size_t state = ARRAY_LEN(node_states); state-- > 0;) {
        size_t n = 0;
        for (const struct json *i = json_first(nodes); i && n < most; i = json_next(nodes, i)) {
            struct str name = field_str(i, "name");
            if (node_state(i) == state)
                names[n++] = arena_strndup(&c->arena, name.p, name.n);
        }
        if (n == 0)
            continue;
        AUTO(buf_free) struct buf list = BUF(1u << 20);
        hostlist_fold(names, n, &list);
        buf_printf(b, "%-9s %5s %10s %6zu %6s %.*s\n", "main*", "up", "infinite", n,
                   node_states[state], STR_ARG(buf_str(&list)));
    }
}

static int run_sinfo(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct sinfo_opts *o = opts_p;
    AUTO(buf_free) struct buf b = BUF(64u << 20);
    (void)args;
    AUTO(json_free_p) struct json_doc *doc = cli_get(c, "/v1/nodes", e);
    const struct json *nodes = doc ? json_find(json_root(doc), "nodes") : NULL;
    if (!doc)
        return -1;
    if (!json_is_array(nodes))
        return err_set(e, ERR_UNAVAILABLE, "the server sent no list of machines");
    if (o->each || o->longer)
        print_each(o, nodes, &b);
    else
        print_by_state(c, o, nodes, &b);
    return cli_print(&b, e);
}

const struct command command_sinfo = {
    .name = "sinfo",
    .args = "",
    .help = "the machines and their states",
    .group = GROUP_SLURM,
    COMMAND_OPTS(sinfo_opts, struct sinfo_opts),
    .run = run_sinfo,
};

/* ---- sacct ---- */

struct sacct_opts {
    struct common common;
    const char *jobs, *format, *from, *to, *user, *states, *account;
    bool allocations, no_header, bars2, everyone, brief;
};

static const struct opt sacct_opts[] = {
    { "jobs,j", OPT_TEXT, offsetof(struct sacct_opts, jobs), "LIST", "only these", 0, 0 },
    { "allocations,X", OPT_FLAG, offsetof(struct sacct_opts, allocations), NULL,
      "no steps (there are none)", 0, 0 },
    { "format,o", OPT_TEXT, offsetof(struct sacct_opts, format), "LIST", "JobID,State,Elapsed", 0,
      0 },
    { "starttime,S", OPT_TEXT, offsetof(struct sacct_opts, from), "TIME", "since then (today)", 0,
      0 },
    { "endtime,E", OPT_TEXT, offsetof(struct sacct_opts, to), "TIME", "until then (now)", 0, 0 },
    { "user,u", OPT_TEXT, offsetof(struct sacct_opts, user), "NAME", "of this user", 0, 0 },
    { "allusers,a", OPT_FLAG, offsetof(struct sacct_opts, everyone), NULL, "of everyone", 0, 0 },
    { "account,A", OPT_TEXT, offsetof(struct sacct_opts, account), "NAME", "of this tenant", 0, 0 },
    { "state,s", OPT_TEXT, offsetof(struct sacct_opts, states), "LIST", "CD, F, CA, TO, OOM, …", 0,
      0 },
    { "noheader,n", OPT_FLAG, offsetof(struct sacct_opts, no_header), NULL, "no titles", 0, 0 },
    { "parsable2,P", OPT_FLAG, offsetof(struct sacct_opts, bars2), NULL, "with bars between", 0,
      0 },
    { "brief,b", OPT_FLAG, offsetof(struct sacct_opts, brief), NULL, "JobID,State,ExitCode", 0, 0 },
    OPTS_COMMON(struct sacct_opts),
};

/* Jobs that were there between the two. */
static bool overlaps(const struct job *j, int64_t from, int64_t to)
{
    return j->submitted_ms <= to && (j->ended_ms == 0 || j->ended_ms >= from);
}

/* Of a list "17,18_3" one names this job; 17 is the whole of its array. */
static bool is_listed(const struct job *j, const char *list)
{
    struct str rest = str_of(list), one;
    char id[48], number[24], array[24];
    job_id_text(j, id);
    snprintf(number, sizeof number, "%llu", (unsigned long long)j->id);
    snprintf(array, sizeof array, "%llu", (unsigned long long)j->array);
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        if (str_is(one, id) || str_is(one, number) || str_is(one, array))
            return true;
    }
    return false;
}

static int64_t midnight_ms(int64_t now_ms)
{
    int64_t t = now_ms;
    struct err why;
    return when_parse("00:00", now_ms, &t, &why) < 0 ? now_ms - 86400000 : t;
}

static void print_head(const struct sacct_opts *o, const struct slurm_format *f, struct buf *b)
{
    if (o->bars2) {
        slurm_print_bars(f, NULL, b);
        return;
    }
    slurm_print_titles(f, b);
    for (size_t i = 0; i < f->n; i++) {
        for (unsigned k = 0; k < f->column[i].width; k++)
            buf_addc(b, '-');
        buf_addc(b, i + 1 < f->n ? ' ' : '\n');
    }
}

struct account_span {
    int64_t from_ms, to_ms;
};

static int print_account(const struct sacct_opts *o, const struct jobs *jobs,
                         const struct account_span *span, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(256u << 20);
    struct slurm_format f;
    const char *plain = "JobID,JobName,Partition,Account,State,ExitCode,Elapsed";
    const char *format = o->format ? o->format : o->brief ? "JobID,State,ExitCode" : plain;
    if (slurm_format_names(format, &f, e) < 0)
        return -1;
    if (!o->no_header)
        print_head(o, &f, &b);
    for (size_t i = jobs->n; i-- > 0;) { /* oldest first, as sacct has them */
        char id[48];
        const struct job *j = &jobs->v[i];
        struct slurm_row row = { j, job_id_text(j, id), cli_now_ms() };
        if (o->jobs ? !is_listed(j, o->jobs) : !overlaps(j, span->from_ms, span->to_ms))
            continue;
        if (o->bars2)
            slurm_print_bars(&f, &row, &b);
        else
            slurm_print_row(&f, &row, &b);
    }
    return cli_print(&b, e);
}

static int run_sacct(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct sacct_opts *o = opts_p;
    AUTO(buf_free) struct buf states = BUF(1024);
    AUTO(jobs_clear) struct jobs jobs = { 0 };
    int64_t now = cli_now_ms();
    struct account_span span = { midnight_ms(now), now };
    struct words refs = { 0 };
    (void)args;
    if ((o->states && slurm_states(o->states, &states, e) < 0) ||
        (o->from && when_parse(o->from, now, &span.from_ms, e) < 0) ||
        (o->to && when_parse(o->to, now, &span.to_ms, e) < 0) ||
        (o->jobs && jobs_split_refs(c, o->jobs, &refs, e) < 0))
        return -1;
    struct job_filter f = { .states = states.n ? states.p : "all",
                            .user = o->user,
                            .tenant = o->account,
                            .since_ms = o->jobs ? 0 : MAX(span.from_ms - 1, INT64_C(0)) };
    if (!f.user && !o->everyone && !o->jobs && !(f.user = cli_whoami(c, e)))
        return -1;
    return jobs_fetch_named(c, &f, &refs, &jobs, e) < 0 ? -1 : print_account(o, &jobs, &span, e);
}

const struct command command_sacct = {
    .name = "sacct",
    .args = "",
    .help = "jobs of today, or of another time, and how they ended",
    .group = GROUP_SLURM,
    COMMAND_OPTS(sacct_opts, struct sacct_opts),
    .run = run_sacct,
};
