/* Replays: a made-up lab, a trace, one's own journal; reports as a table, JSON and a page. */
#include <errno.h>
#include <sys/stat.h>

#include "base/date.h"
#include "base/parse.h"
#include "simulate/command.h"
#include "simulate/journal_trace.h"
#include "simulate/replay.h"
#include "simulate/whatif.h"
#include "sys/file.h"

#define POLICIES_MAX 8
#define PAGE_BYTES_MAX (8u << 20)
#define JOURNAL_BYTES_MAX (1u << 30)
#define STARTS_BYTES_MAX (256u << 20)
#define FREEZE_COST_MAX_MILLI 1000000 /* a thousand times */
#define SHOCKWAVE_GPUS 32             /* the published runs' */
#define SHOCKWAVE_GPUS_PER_NODE 4

/* What both commands do with a trace. */
struct output {
    const char *policy; /* a comma-separated list; the last is the main one */
    const char *html, *journal, *starts;
    const char *dir; /* made when it is not there; NULL: none */
    uint32_t freeze_cost_milli;
    bool json;
    struct opt_list set, what_if;
};

struct runs {
    struct report report[POLICIES_MAX];
    struct outcome jobs[POLICIES_MAX];
    size_t n;
};

static int check_policy(const char *name, struct err *e)
{
    struct str rest = STR(REPLAY_POLICIES), one;
    while (rest.n) {
        str_cut(rest, '|', &one, &rest);
        if (str_is(one, name))
            return 0;
    }
    err_set(e, ERR_INVALID, "--policy: '%s' is not known", name);
    return err_hint(e, "choose one or more of " REPLAY_POLICIES ", with commas");
}

static int run_policies(struct trace *t, const struct output *o, struct buf *journal,
                        struct runs *out, struct err *e)
{
    struct str rest = str_of(o->policy), one;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        const char *name = arena_strndup(&t->arena, one.p, one.n);
        if (check_policy(name, e) < 0)
            return -1;
        if (out->n == POLICIES_MAX)
            return err_set(e, ERR_INVALID, "--policy: at most %d at a time", POLICIES_MAX);
        struct replay_options ro = { .policy = name, .freeze_cost_milli = o->freeze_cost_milli };
        if (strcmp(name, "nightshift") == 0 && o->journal && journal->n == 0)
            ro.journal = journal;
        if (replay_run(t, &ro, &out->report[out->n], &out->jobs[out->n], e) < 0)
            return -1;
        out->n++;
    }
    return out->n ? 0 : err_set(e, ERR_INVALID, "--policy: none is named");
}

/* Whole seconds; -1 for what never happened. */
static long long text_s(int64_t ms)
{
    return ms == NEVER ? -1 : (long long)(ms / 1000);
}

static void print_starts(const struct trace *t, const struct outcome *o, struct buf *b)
{
    AUTO(free_p) int64_t *held_ms = xcalloc((size_t)t->jobs + 1, sizeof *held_ms);
    for (size_t k = 0; k < o->stints; k++)
        held_ms[o->stint[k].job] += o->stint[k].to_ms - o->stint[k].from_ms;
    buf_addz(b, "job_id,start_s,end_s,freezes,held_s\n");
    for (uint32_t i = 0; i < t->jobs; i++)
        buf_printf(b, "%llu,%lld,%lld,%u,%lld\n", (unsigned long long)t->job[i].id,
                   text_s(o->start_ms[i]), text_s(o->end_ms[i]), o->freezes[i], text_s(held_ms[i]));
}

static void print_table(const struct trace *t, const struct output *o, const struct runs *r,
                        const struct report_whatif *x, struct buf *b)
{
    if (x)
        whatif_table(x, b);
    else
        report_table(r->report, r->n, b);
    if (t->skipped)
        buf_printf(b, "\n%u %s not %s that ran and left out.\n", t->skipped,
                   t->skipped == 1 ? "line of the trace is" : "lines of the trace are",
                   t->skipped == 1 ? "a job" : "jobs");
    if (o->html)
        buf_printf(b, "\nThe page with the charts: %s\n", o->html);
    if (o->journal)
        buf_printf(b, "The journal: %s\n", o->journal);
}

static int make_folder(const char *dir, struct err *e)
{
    if (dir && mkdir(dir, 0777) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "--out: cannot make '%s': %s", dir, strerror(errno));
    return 0;
}

/* Everything is computed before anything is written: an error leaves no half result behind. */
static int write_results(const struct trace *t, const struct output *o, const struct runs *r,
                         const struct buf *journal, struct err *e)
{
    AUTO(buf_free) struct buf page = BUF(PAGE_BYTES_MAX);
    AUTO(buf_free) struct buf starts = BUF(STARTS_BYTES_MAX);
    AUTO(buf_free) struct buf text = BUF(PAGE_BYTES_MAX);
    const struct {
        const char *path;
        const struct buf *b;
    } files[] = { { o->html, &page }, { o->journal, journal }, { o->starts, &starts } };
    AUTO(buf_free) struct buf words = BUF(PAGE_BYTES_MAX);
    for (size_t i = 0; i < o->what_if.n; i++) {
        buf_addz(&words, i ? ", and " : "");
        whatif_words(o->what_if.item[i], &words);
    }
    const struct report_whatif both = { .world = r->report,
                                        .change = o->what_if.item,
                                        .words = buf_str(&words).p,
                                        .changes = o->what_if.n };
    const struct report_whatif *x = o->what_if.n ? &both : NULL;
    if (o->html && x)
        whatif_page(x, &page);
    else if (o->html)
        report_page(r->report, r->n, &page);
    if (o->starts)
        print_starts(t, &r->jobs[r->n - 1], &starts);
    if (o->json && x)
        whatif_json(x, &text);
    else if (o->json)
        report_json(&r->report[r->n - 1], &text);
    else
        print_table(t, o, r, x, &text);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (buf_check(files[i].b, e) < 0)
            return -1;
    if (make_folder(o->dir, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (files[i].path && file_write(files[i].path, buf_str(files[i].b), e) < 0)
            return -1;
    return command_print(&text, e);
}

static int check_output(const struct trace *t, const struct output *o, const struct buf *journal,
                        struct err *e)
{
    if (o->journal && journal->n == 0)
        return err_set(e, ERR_INVALID,
                       "--write-journal: only the nightshift policy keeps a journal");
    if (o->journal && t->node_tenant)
        return err_set(e, ERR_INVALID,
                       "--write-journal: separate clusters have no common journal; use --pooled");
    return 0;
}

/* Once as it was, once with the changes: two runs of the last policy that is named. */
static int run_what_if(struct trace *before, struct trace *after, const struct output *o,
                       struct buf *journal, struct runs *out, struct err *e)
{
    struct output first = *o;
    const char *comma = strrchr(o->policy, ',');
    first.policy = comma ? comma + 1 : o->policy;
    first.journal = NULL; /* of the changed world */
    for (size_t i = 0; i < o->what_if.n; i++)
        if (whatif_apply(after, o->what_if.item[i], e) < 0)
            return -1;
    if (strcmp(first.policy, "nightshift") != 0 && after->sets) {
        err_set(e, ERR_INVALID, "--policy: '%s' has none of the numbers that are changed",
                first.policy);
        return err_hint(e, "only nightshift has; leave --policy out");
    }
    struct output second = first;
    second.journal = o->journal;
    return run_policies(before, &first, journal, out, e) < 0 ||
                   run_policies(after, &second, journal, out, e) < 0
             ? -1
             : 0;
}

static int replay_and_report(struct trace *t, const struct output *o, struct err *e)
{
    AUTO(buf_free) struct buf journal = BUF(JOURNAL_BYTES_MAX);
    AUTO(trace_free) struct trace changed = { 0 };
    AUTO(free_p) struct runs *r = xcalloc(1, sizeof *r);
    struct trace *last = t;
    for (size_t i = 0; i < o->set.n; i++)
        if (policy_set_parse(t, str_of(o->set.item[i]), e) < 0)
            return err_wrap(e, "--set");
    if (o->what_if.n) {
        trace_copy(t, &changed);
        last = &changed;
    }
    if ((o->what_if.n ? run_what_if(t, &changed, o, &journal, r, e)
                      : run_policies(t, o, &journal, r, e)) < 0 ||
        check_output(last, o, &journal, e) < 0)
        return -1;
    return write_results(last, o, r, &journal, e);
}

/* ---- replay ---- */

struct replay_args {
    const char *data, *trace, *swf, *scene, *journal, *jobs, *freeze_cost;
    const char *since, *until, *name;
    uint64_t pooled, gpus, gpus_per_node, jitter, shift, seed;
    struct output out;
};

#define OUTPUT_OPTS(type)                                                                          \
    { "policy",                                                                                    \
      OPT_TEXT,                                                                                    \
      offsetof(struct type, out.policy),                                                           \
      "P[,P]",                                                                                     \
      REPLAY_POLICIES "; the last is the main one",                                                \
      0,                                                                                           \
      0 },                                                                                         \
        { "html",                                                                                  \
          OPT_TEXT,                                                                                \
          offsetof(struct type, out.html),                                                         \
          "FILE",                                                                                  \
          "also write the page with the charts",                                                   \
          0,                                                                                       \
          0 },                                                                                     \
        { "write-journal",                                                                         \
          OPT_TEXT,                                                                                \
          offsetof(struct type, out.journal),                                                      \
          "FILE",                                                                                  \
          "also write what was decided",                                                           \
          0,                                                                                       \
          0 },                                                                                     \
        { "starts",                                                                                \
          OPT_TEXT,                                                                                \
          offsetof(struct type, out.starts),                                                       \
          "FILE",                                                                                  \
          "also write each job's start and end",                                                   \
          0,                                                                                       \
          0 },                                                                                     \
        { "set",                                                                                   \
          OPT_LIST,                                                                                \
          offsetof(struct type, out.set),                                                          \
          "NAME=VALUE",                                                                            \
          "another number of the policy: half_life_ms=3d",                                         \
          0,                                                                                       \
          0 },                                                                                     \
        { "what-if",                                                                               \
          OPT_LIST,                                                                                \
          offsetof(struct type, out.what_if),                                                      \
          "CHANGE",                                                                                \
          "compare with a changed world: nodes+=2*rtx4090; see below",                             \
          0,                                                                                       \
          0 },                                                                                     \
    {                                                                                              \
        "json", OPT_FLAG, offsetof(struct type, out.json), NULL,                                   \
            "one JSON object of the main policy", 0, 0                                             \
    }

static const struct opt replay_opts[] = {
    { "data", OPT_TEXT, offsetof(struct replay_args, data), "DIR", "folder of --trace", 0, 0 },
    { "trace", OPT_CHOICE, offsetof(struct replay_args, trace), "philly|shockwave",
      "a published trace in --data", 0, 0 },
    { "pooled", OPT_NUMBER, offsetof(struct replay_args, pooled), "N",
      "philly: one pool of N nodes", 1, 100000 },
    { "swf", OPT_TEXT, offsetof(struct replay_args, swf), "FILE",
      "a log in the Standard Workload Format", 0, 0 },
    { "scene", OPT_TEXT, offsetof(struct replay_args, scene), "FILE",
      "a few machines, tenants and jobs, written by hand", 0, 0 },
    { "gpus-per-node", OPT_NUMBER, offsetof(struct replay_args, gpus_per_node), "N",
      "swf: processors are GPUs, N on a node; shockwave: 4", 1, GPUS_PER_NODE_MAX },
    { "gpus", OPT_NUMBER, offsetof(struct replay_args, gpus), "N",
      "shockwave: of the whole cluster, 32", 1, TRACE_NODES_MAX },
    { "jobs", OPT_TEXT, offsetof(struct replay_args, jobs), "FILE",
      "shockwave: other jobs than those in --data", 0, 0 },
    { "journal", OPT_TEXT, offsetof(struct replay_args, journal), "FILE", "one's own journal", 0,
      0 },
    { "since", OPT_TEXT, offsetof(struct replay_args, since), "TIME",
      "journal: only from here on, 2026-03-01T00:00:00Z", 0, 0 },
    { "until", OPT_TEXT, offsetof(struct replay_args, until), "TIME", "journal: only up to here", 0,
      0 },
    { "name", OPT_TEXT, offsetof(struct replay_args, name), "TEXT", "how the report calls it", 0,
      0 },
    { "jitter", OPT_NUMBER, offsetof(struct replay_args, jitter), "PCT",
      "each duration is up to PCT percent off, at random", 1, 100 },
    { "shift", OPT_NUMBER, offsetof(struct replay_args, shift), "HOURS",
      "each tenant's jobs come up to HOURS later, at random", 1, 8784 },
    { "seed", OPT_NUMBER, offsetof(struct replay_args, seed), "S",
      "of --jitter and --shift; without it 1", 0, UINT32_MAX },
    { "freeze-cost", OPT_TEXT, offsetof(struct replay_args, freeze_cost), "X",
      "a freeze costs X times as much", 0, 0 },
    OUTPUT_OPTS(replay_args),
};

static bool is_trace(const struct replay_args *a, const char *name)
{
    return a->trace && strcmp(a->trace, name) == 0;
}

/* An option of another kind of trace would be left unheard. */
static int check_options(const struct replay_args *a, struct err *e)
{
    bool philly = is_trace(a, "philly"), shockwave = is_trace(a, "shockwave");
    const struct {
        const char *option;
        bool given, heard;
        const char *of;
    } table[] = {
        { "--data", a->data != NULL, a->trace != NULL, "--trace" },
        { "--pooled", a->pooled > 0, philly, "--trace philly" },
        { "--gpus", a->gpus > 0, shockwave, "--trace shockwave" },
        { "--jobs", a->jobs != NULL, shockwave, "--trace shockwave" },
        { "--since", a->since != NULL, a->journal != NULL, "--journal" },
        { "--until", a->until != NULL, a->journal != NULL, "--journal" },
        { "--gpus-per-node", a->gpus_per_node > 0, a->swf || shockwave,
          "--swf and --trace shockwave" },
    };
    if ((a->trace != NULL) + (a->swf != NULL) + (a->journal != NULL) + (a->scene != NULL) != 1) {
        err_set(e, ERR_INVALID, "exactly one of --trace, --swf, --scene and --journal is needed");
        return err_hint(
            e, "for example: nightshift-sim replay --data DIR --trace philly --policy fifo");
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].given && !table[i].heard)
            return err_set(e, ERR_INVALID, "%s goes with %s", table[i].option, table[i].of);
    if (a->trace && !a->data && !a->jobs) {
        err_set(e, ERR_INVALID, "--data is needed with --trace");
        return err_hint(e, "name the folder that holds %s/", a->trace);
    }
    return 0;
}

static int read_time(const char *option, const char *text, int64_t *out_ms, struct err *e)
{
    if (text && date_parse(str_of(text), out_ms, e) < 0)
        return err_wrap(e, "%s", option);
    return 0;
}

static int read_journal(const struct replay_args *a, struct trace *t, struct err *e)
{
    struct journal_span span = { 0 };
    if (read_time("--since", a->since, &span.from_ms, e) < 0 ||
        read_time("--until", a->until, &span.to_ms, e) < 0)
        return -1;
    return trace_read_journal(a->journal, &span, t, e);
}

static int read_trace(const struct replay_args *a, struct trace *t, struct err *e)
{
    if (check_options(a, e) < 0)
        return -1;
    if (a->swf)
        return trace_read_swf(a->swf, (uint32_t)a->gpus_per_node, t, e);
    if (a->scene)
        return trace_read_scene(a->scene, t, e);
    if (a->journal)
        return read_journal(a, t, e);
    if (is_trace(a, "philly"))
        return trace_read_philly(a->data, (uint32_t)a->pooled, t, e);
    const struct trace_pool pool = {
        .gpus = a->gpus ? (uint32_t)a->gpus : SHOCKWAVE_GPUS,
        .per_node = a->gpus_per_node ? (uint32_t)a->gpus_per_node : SHOCKWAVE_GPUS_PER_NODE,
    };
    return trace_read_shockwave(a->data, a->jobs, pool, t, e);
}

static int read_freeze_cost(const char *text, uint32_t *out_milli, struct err *e)
{
    uint64_t milli;
    if (parse_milli(str_of(text), FREEZE_COST_MAX_MILLI, &milli, e) < 0)
        return err_wrap(e, "--freeze-cost");
    *out_milli = (uint32_t)milli;
    return 0;
}

static int run_replay(int argc, char *const *argv, struct err *e)
{
    struct replay_args a = { .out.policy = "nightshift", .seed = 1, .freeze_cost = "1" };
    AUTO(trace_free) struct trace t = { 0 };
    if (opts_parse(replay_opts, ARRAY_LEN(replay_opts), argc, argv, &a, e) < 0 ||
        read_freeze_cost(a.freeze_cost, &a.out.freeze_cost_milli, e) < 0 ||
        read_trace(&a, &t, e) < 0)
        return -1;
    if (a.name)
        t.name = a.name;
    const struct trace_change change = { .seed = a.seed,
                                         .jitter_pct = (uint32_t)a.jitter,
                                         .shift_hours = (uint32_t)a.shift };
    if (trace_change(&t, &change, e) < 0)
        return -1;
    return replay_and_report(&t, &a.out, e);
}

const struct command command_replay = {
    .name = "replay",
    .help = "a trace or a journal in virtual time under a policy",
    .opts = replay_opts,
    .opts_n = ARRAY_LEN(replay_opts),
    .run = run_replay,
    .more = whatif_print,
};

/* ---- lab ---- */

struct lab_args {
    uint64_t seed, days;
    bool lend;
    struct output out;
};

static const struct opt lab_opts[] = {
    { "seed", OPT_NUMBER, offsetof(struct lab_args, seed), "S", "another seed, another week", 0,
      UINT32_MAX },
    { "days", OPT_NUMBER, offsetof(struct lab_args, days), "D", "how long", 1, 365 },
    { "lend", OPT_FLAG, offsetof(struct lab_args, lend), NULL,
      "the desks are lent: at night and on weekends only", 0, 0 },
    { "out", OPT_TEXT, offsetof(struct lab_args, out.dir), "DIR",
      "writes DIR/report.html and DIR/lab.journal", 0, 0 },
    OUTPUT_OPTS(lab_args),
};

static int run_lab(int argc, char *const *argv, struct err *e)
{
    struct lab_args a = { .seed = 1, .days = 7 };
    a.out = (struct output){ .freeze_cost_milli = 1000 };
    AUTO(trace_free) struct trace t = { 0 };
    if (opts_parse(lab_opts, ARRAY_LEN(lab_opts), argc, argv, &a, e) < 0 ||
        trace_make_lab(a.seed, (uint32_t)a.days, a.lend, &t, e) < 0)
        return -1;
    if (!a.out.policy) /* only the core knows windows */
        a.out.policy = a.lend ? "nightshift" : "fifo,sjf,nightshift";
    if (a.out.dir) {
        a.out.html = arena_printf(&t.arena, "%s/report.html", a.out.dir);
        a.out.journal = arena_printf(&t.arena, "%s/lab.journal", a.out.dir);
    }
    return replay_and_report(&t, &a.out, e);
}

const struct command command_lab = {
    .name = "lab",
    .help = "a week of a small lab, made up from a seed (simulated)",
    .opts = lab_opts,
    .opts_n = ARRAY_LEN(lab_opts),
    .run = run_lab,
    .more = whatif_print,
};
