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
    const char *partition, *format;
};

static const struct opt sinfo_opts[] = {
    { "Node,N", OPT_FLAG, offsetof(struct sinfo_opts, each), NULL, "a line for each machine", 0,
      0 },
    { "noheader,h", OPT_FLAG, offsetof(struct sinfo_opts, no_header), NULL, "no titles", 0, 0 },
    { "long,l", OPT_FLAG, offsetof(struct sinfo_opts, longer), NULL, "more about each machine", 0,
      0 },
    { "format,o", OPT_TEXT, offsetof(struct sinfo_opts, format), "FORMAT", "%P %D %t %N %G %c %m",
      0, 0 },
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

/* ---- columns ---- */

static void put_gres(const struct json *n, struct buf *out)
{
    const struct json *gpus = json_find(n, "gpus");
    struct str model = field_str(n, "model");
    if (json_is_array(gpus) && json_first(gpus))
        buf_printf(out, "gpu:%.*s%s%zu", STR_ARG(model), model.n ? ":" : "", json_len(gpus));
    else
        buf_addz(out, "(null)");
}

static void put_cpus(const struct json *n, struct buf *out)
{
    buf_printf(out, "%llu", (unsigned long long)(field_u64(n, "cpu_milli") / 1000));
}

/* allocated/idle/other/total */
static void put_cpu_states(const struct json *n, struct buf *out)
{
    unsigned long long total = field_u64(n, "cpu_milli") / 1000;
    unsigned long long idle = field_u64(n, "cpu_free_milli") / 1000;
    buf_printf(out, "%llu/%llu/0/%llu", total - MIN(idle, total), idle, total);
}

static void put_mem(const struct json *n, struct buf *out)
{
    buf_printf(out, "%llu", (unsigned long long)field_u64(n, "mem_mib"));
}

static void put_mem_free(const struct json *n, struct buf *out)
{
    buf_printf(out, "%llu", (unsigned long long)field_u64(n, "mem_free_mib"));
}

static void put_state(const struct json *n, struct buf *out)
{
    buf_addz(out, node_states[node_state(n)]);
}

static void put_name(const struct json *n, struct buf *out)
{
    buf_add(out, field_str(n, "name"));
}

/* Without a printer: of all machines that are alike in the others. */
static const struct sinfo_field {
    char letter;
    const char *title;
    void (*put)(const struct json *node, struct buf *out);
    const char *always; /* the same for every machine */
} sinfo_fields[] = {
    { 'N', "NODELIST", NULL, NULL },        { 'D', "NODES", NULL, NULL },
    { 'n', "HOSTNAMES", put_name, NULL },   { 'P', "PARTITION", NULL, "main*" },
    { 'R', "PARTITION", NULL, "main" },     { 'a', "AVAIL", NULL, "up" },
    { 'l', "TIMELIMIT", NULL, "infinite" }, { 't', "STATE", put_state, NULL },
    { 'T', "STATE", put_state, NULL },      { 'G', "GRES", put_gres, NULL },
    { 'c', "CPUS", put_cpus, NULL },        { 'C', "CPUS(A/I/O/T)", put_cpu_states, NULL },
    { 'm', "MEMORY", put_mem, NULL },       { 'e', "FREE_MEM", put_mem_free, NULL },
};

/* The machines of one line, or NULL nodes: the titles. */
struct sinfo_line {
    const struct json *first;
    const char **names;
    size_t n;
};

static void put_field(const struct sinfo_field *f, const struct sinfo_line *l, struct buf *out)
{
    if (!l)
        buf_addz(out, f->title);
    else if (f->always)
        buf_addz(out, f->always);
    else if (f->put)
        f->put(l->first, out);
    else if (f->letter == 'N')
        hostlist_fold(l->names, l->n, out);
    else
        buf_printf(out, "%zu", l->n);
}

static int bad_letter(char letter, struct err *e)
{
    char known[ARRAY_LEN(sinfo_fields) + 1] = "";
    for (size_t i = 0; i < ARRAY_LEN(sinfo_fields); i++)
        known[i] = sinfo_fields[i].letter;
    err_set(e, ERR_INVALID, "--format: '%%%c' is not known here", letter ? letter : ' ');
    return err_hint(e, "known are %%%s", known);
}

/* "%9P %.5a": one line.  `key`: only what makes two machines differ. */
static int put_line(const char *format, const struct sinfo_line *l, bool key, struct buf *out,
                    struct err *e)
{
    for (const char *p = format; *p; p++) {
        const struct sinfo_field *f = sinfo_fields;
        AUTO(buf_free) struct buf text = BUF(1u << 20);
        if (*p != '%') {
            buf_addc(out, *p);
            continue;
        }
        bool right = p[1] == '.';
        unsigned width = 0;
        for (p += 1 + right; *p >= '0' && *p <= '9'; p++)
            width = MIN(width * 10 + (unsigned)(*p - '0'), 1000u);
        while (f < sinfo_fields + ARRAY_LEN(sinfo_fields) && f->letter != *p)
            f++;
        if (f == sinfo_fields + ARRAY_LEN(sinfo_fields))
            return bad_letter(*p, e);
        if (!key || f->put)
            put_field(f, l, &text);
        buf_printf(out, right ? "%*s" : "%-*s", (int)width, text.p ? text.p : "");
    }
    buf_addc(out, '\n');
    return 0;
}

/* Machines that look the same under this format are one line. */
static int print_nodes(struct cli *c, const struct sinfo_opts *o, const struct json *nodes,
                       struct buf *b, struct err *e)
{
    bool each = o->each || o->longer;
    const char *form = o->format ? o->format
                     : o->longer ? "%20N %.5D %9P %6t %20G %.6c %.9m"
                     : each      ? "%20N %.5D %9P %6t"
                                 : "%9P %.5a %.10l %.6D %.6t %N";
    size_t most = MIN(json_len(nodes), (size_t)NODES_MAX), lines = 0;
    struct sinfo_line *line = arena_array(&c->arena, struct sinfo_line, most + 1);
    const char **keys = arena_array(&c->arena, const char *, most + 1);
    if (!o->no_header && put_line(form, NULL, false, b, e) < 0)
        return -1;
    for (const struct json *n = json_first(nodes); n && lines < most; n = json_next(nodes, n)) {
        AUTO(buf_free) struct buf key = BUF(65536);
        struct str name = field_str(n, "name");
        size_t i = each ? lines : 0;
        if (put_line(form, &(struct sinfo_line){ .first = n }, true, &key, e) < 0)
            return -1;
        while (i < lines && strcmp(keys[i], key.p) != 0)
            i++;
        if (i == lines) {
            keys[lines] = arena_strndup(&c->arena, key.p, key.n);
            line[lines] = (struct sinfo_line){ n, arena_array(&c->arena, const char *, most), 0 };
            lines++;
        }
        line[i].names[line[i].n++] = arena_strndup(&c->arena, name.p, name.n);
    }
    for (size_t i = 0; i < lines; i++)
        if (put_line(form, &line[i], false, b, e) < 0)
            return -1;
    return 0;
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
    return print_nodes(c, o, nodes, &b, e) < 0 ? -1 : cli_print(&b, e);
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
    { "parsable,p", OPT_FLAG, offsetof(struct sacct_opts, bars2), NULL, "the same", 0, 0 },
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
