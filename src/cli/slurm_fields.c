#include "cli/slurm_fields.h"

#include <stdio.h>

#include "base/parse.h"
#include "cli/text.h"

const char *slurm_duration(int64_t ms, bool full, char out[static 32])
{
    long long s = ms > 0 ? ms / 1000 : 0, d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;
    if (d)
        snprintf(out, 32, "%lld-%02lld:%02lld:%02lld", d, h, m, s % 60);
    else if (h || full)
        snprintf(out, 32, full ? "%02lld:%02lld:%02lld" : "%lld:%02lld:%02lld", h, m, s % 60);
    else
        snprintf(out, 32, "%lld:%02lld", m, s % 60);
    return out;
}

/* ---- printers ---- */

static void put_id(const struct slurm_row *r, struct buf *b)
{
    buf_addz(b, r->id);
}

static void put_array_job(const struct slurm_row *r, struct buf *b)
{
    uint64_t id = r->job->array ? r->job->array : r->job->id;
    buf_printf(b, "%llu", (unsigned long long)id);
}

static void put_array_index(const struct slurm_row *r, struct buf *b)
{
    if (r->job->array_index >= 0)
        buf_printf(b, "%lld", (long long)r->job->array_index);
    else
        buf_addz(b, "N/A");
}

static void put_number(const struct slurm_row *r, struct buf *b)
{
    buf_printf(b, "%llu", (unsigned long long)r->job->id);
}

static void put_name(const struct slurm_row *r, struct buf *b)
{
    buf_add(b, r->job->name);
}

static void put_user(const struct slurm_row *r, struct buf *b)
{
    buf_add(b, r->job->user);
}

static void put_tenant(const struct slurm_row *r, struct buf *b)
{
    buf_add(b, r->job->tenant);
}

static void put_partition(const struct slurm_row *r, struct buf *b)
{
    (void)r;
    buf_addz(b, "main"); /* there is one queue */
}

static void put_letters(const struct slurm_row *r, struct buf *b)
{
    buf_addz(b, job_word_info(r->job->state)->letters);
}

static void put_state(const struct slurm_row *r, struct buf *b)
{
    buf_addz(b, job_slurm_state(r->job));
}

static void put_used(const struct slurm_row *r, struct buf *b)
{
    char text[32];
    buf_addz(b, slurm_duration(job_elapsed_ms(r->job, r->now_ms), false, text));
}

static void put_elapsed(const struct slurm_row *r, struct buf *b)
{
    char text[32];
    buf_addz(b, slurm_duration(job_elapsed_ms(r->job, r->now_ms), true, text));
}

static void put_nodes(const struct slurm_row *r, struct buf *b)
{
    size_t n = r->job->where ? json_len(r->job->where) : 0;
    buf_printf(b, "%llu", (unsigned long long)(n ? n : MAX(r->job->replicas, UINT64_C(1))));
}

static void put_tasks(const struct slurm_row *r, struct buf *b)
{
    buf_printf(b, "%llu", (unsigned long long)MAX(r->job->replicas, UINT64_C(1)));
}

static void put_node_list(const struct slurm_row *r, struct buf *b)
{
    for (const struct json *w = r->job->where ? json_first(r->job->where) : NULL; w;
         w = json_next(r->job->where, w)) {
        struct str node;
        struct err e;
        if (json_need_str(w, "node", 4096, &node, &e) == 0)
            buf_printf(b, "%s%.*s", w == json_first(r->job->where) ? "" : ",", STR_ARG(node));
    }
}

static void put_reason(const struct slurm_row *r, struct buf *b)
{
    static const struct {
        const char *ours, *slurms;
    } words[] = { { "", "None" }, { "begin", "BeginTime" }, { "after", "Dependency" } };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_is(r->job->reason, words[i].ours)) {
            buf_addz(b, words[i].slurms);
            return;
        }
    buf_add(b, r->job->reason);
}

static void put_where(const struct slurm_row *r, struct buf *b)
{
    size_t n = b->n;
    if (r->job->state == JOB_IS_QUEUED || r->job->state == JOB_IS_HELD) {
        buf_addc(b, '(');
        put_reason(r, b);
        buf_addc(b, ')');
        return;
    }
    put_node_list(r, b);
    if (b->n == n && !job_word_info(r->job->state)->ended)
        buf_addz(b, "(None)");
}

static void put_gres(const struct slurm_row *r, struct buf *b)
{
    char text[24];
    buf_printf(b, r->job->gpu_milli ? "gpu:%s" : "N/A%.0s", text_milli(r->job->gpu_milli, text));
}

static void put_priority(const struct slurm_row *r, struct buf *b)
{
    buf_add(b, r->job->priority);
}

static void put_when(int64_t t_ms, const char *otherwise, struct buf *b)
{
    char text[24];
    buf_addz(b, t_ms > 0 ? text_time_seconds(t_ms, text) : otherwise);
}

static void put_submit(const struct slurm_row *r, struct buf *b)
{
    put_when(r->job->submitted_ms, "Unknown", b);
}

static void put_start(const struct slurm_row *r, struct buf *b)
{
    put_when(r->job->started_ms, "N/A", b);
}

static void put_end(const struct slurm_row *r, struct buf *b)
{
    put_when(r->job->ended_ms, "Unknown", b);
}

static void put_exit(const struct slurm_row *r, struct buf *b)
{
    buf_printf(b, "%lld:%lld", (long long)MAX(r->job->exit_code, INT64_C(0)),
               (long long)r->job->exit_signal);
}

/* ---- the table ---- */

struct slurm_field {
    char letter;      /* of squeue, or 0 */
    const char *name; /* of sacct, or NULL */
    const char *title;
    unsigned width; /* sacct's */
    bool right;     /* sacct's */
    void (*put)(const struct slurm_row *r, struct buf *b);
};

/* What Slurm's accounting has and ours has not: a column that is asked for is there, and empty. */
static void put_nothing(const struct slurm_row *row, struct buf *out)
{
    (void)row;
    (void)out;
}

static const struct slurm_field fields[] = {
    { 'i', "JobID", "JOBID", 12, false, put_id },
    { 'A', "JobIDRaw", "JOBID", 12, false, put_number },
    { 'F', NULL, "ARRAY_JOB_ID", 12, false, put_array_job },
    { 'K', NULL, "ARRAY_TASK_ID", 13, false, put_array_index },
    { 'j', "JobName", "NAME", 10, true, put_name },
    { 'u', "User", "USER", 9, true, put_user },
    { 'a', "Account", "ACCOUNT", 10, true, put_tenant },
    { 'P', "Partition", "PARTITION", 10, true, put_partition },
    { 't', NULL, "ST", 2, false, put_letters },
    { 'T', "State", "STATE", 13, true, put_state },
    { 'M', NULL, "TIME", 10, true, put_used },
    { 0, "Elapsed", "ELAPSED", 10, true, put_elapsed },
    { 'D', "NNodes", "NODES", 8, true, put_nodes },
    { 0, "NTasks", "NTASKS", 8, true, put_tasks },
    { 'N', "NodeList", "NODELIST", 15, true, put_node_list },
    { 'R', NULL, "NODELIST(REASON)", 16, false, put_where },
    { 'r', "Reason", "REASON", 22, true, put_reason },
    { 'b', "ReqGRES", "TRES_PER_NODE", 13, true, put_gres },
    { 'Q', "Priority", "PRIORITY", 10, true, put_priority },
    { 'p', NULL, "PRIORITY", 10, true, put_priority },
    { 'V', "Submit", "SUBMIT_TIME", 19, true, put_submit },
    { 'S', "Start", "START_TIME", 19, true, put_start },
    { 'e', "End", "END_TIME", 19, true, put_end },
    { 0, "ExitCode", "EXITCODE", 8, true, put_exit },
    { 0, "AllocCPUS", "ALLOCCPUS", 10, true, put_nothing },
    { 0, "NCPUS", "NCPUS", 10, true, put_nothing },
    { 0, "ReqMem", "REQMEM", 10, true, put_nothing },
    { 0, "MaxRSS", "MAXRSS", 10, true, put_nothing },
    { 0, "AveRSS", "AVERSS", 10, true, put_nothing },
    { 0, "CPUTime", "CPUTIME", 10, true, put_nothing },
    { 0, "TotalCPU", "TOTALCPU", 10, true, put_nothing },
    { 0, "Timelimit", "TIMELIMIT", 10, true, put_nothing },
    { 0, "AllocTRES", "ALLOCTRES", 10, true, put_nothing },
    { 0, "QOS", "QOS", 10, true, put_nothing },
};

static int known_letters(struct err *e)
{
    AUTO(buf_free) struct buf all = BUF(160);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (fields[i].letter)
            buf_printf(&all, "%s%%%c", all.n ? " " : "", fields[i].letter);
    return err_hint(e, "known are %s", buf_str(&all).p);
}

static int known_names(struct err *e)
{
    AUTO(buf_free) struct buf all = BUF(180);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (fields[i].name)
            buf_printf(&all, "%s%s", all.n ? "," : "", fields[i].name);
    return err_hint(e, "known are %s", buf_str(&all).p);
}

/* %[[.]size]letter */
static int take_letter(const char **at, struct slurm_column *out, struct err *e)
{
    const char *p = *at + 1;
    struct slurm_column c = { .right = *p == '.' };
    p += c.right;
    size_t digits = strspn(p, "0123456789");
    uint64_t width = 0;
    if (digits && parse_u64((struct str){ p, digits }, 1000, &width, e) < 0)
        return -1;
    p += digits;
    for (size_t i = 0; i < ARRAY_LEN(fields) && *p; i++)
        if (fields[i].letter == *p)
            c.field = &fields[i];
    if (!c.field) {
        err_set(e, ERR_INVALID, "--format: '%%%c' is not known here", *p ? *p : ' ');
        return known_letters(e);
    }
    c.width = (unsigned)width;
    c.title = c.field->title;
    *at = p + 1;
    *out = c;
    return 0;
}

int slurm_format_letters(const char *text, struct slurm_format *out, struct err *e)
{
    struct slurm_format f = { 0 };
    const char *from = text;
    for (const char *p = text; *p;) {
        if (*p != '%') {
            p++;
            continue;
        }
        if (f.n == SLURM_COLUMNS_MAX)
            return err_set(e, ERR_TOO_LARGE, "--format has more than %d fields", SLURM_COLUMNS_MAX);
        struct str before = { from, (size_t)(p - from) };
        if (take_letter(&p, &f.column[f.n], e) < 0)
            return -1;
        f.column[f.n++].before = before;
        from = p;
    }
    f.after = str_of(from);
    *out = f;
    return 0;
}

static bool same_name(struct str a, const char *b)
{
    if (a.n != strlen(b))
        return false;
    for (size_t i = 0; i < a.n; i++)
        if ((a.p[i] | 0x20) != (b[i] | 0x20))
            return false;
    return true;
}

int slurm_format_names(const char *text, struct slurm_format *out, struct err *e)
{
    struct slurm_format f = { 0 };
    struct str rest = str_of(text), one, name, size;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        bool sized = str_cut(one, '%', &name, &size);
        struct slurm_column c = { .before = f.n ? STR(" ") : STR("") };
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
            if (fields[i].name && same_name(name, fields[i].name))
                c.field = &fields[i];
        if (!c.field || f.n == SLURM_COLUMNS_MAX) {
            err_set(e, ERR_INVALID, "--format: '%.*s' is not known here", STR_ARG(name));
            return known_names(e);
        }
        uint64_t width = c.field->width;
        bool left = sized && size.n && size.p[0] == '-';
        if (left)
            size = (struct str){ size.p + 1, size.n - 1 };
        if (sized && parse_u64(size, 1000, &width, e) < 0)
            return -1;
        c.width = (unsigned)width;
        c.right = c.field->right && !left;
        c.title = c.field->name;
        f.column[f.n++] = c;
    }
    *out = f;
    return 0;
}

/* ---- printing ---- */

static void put_cell(const struct slurm_column *c, struct str text, bool last, struct buf *out)
{
    unsigned wide = text_width(text);
    unsigned pad = c->width > wide ? c->width - wide : 0;
    if (c->right)
        buf_printf(out, "%*s", (int)pad, "");
    AUTO(buf_free) struct buf cut = BUF(1u << 16);
    /* Slurm cuts without a mark. */
    if (c->width && wide > c->width) {
        text_add_fit(&cut, text, c->width + 1);
        cut.n -= cut.n >= 3 ? strlen("…") : 0;
        text = buf_str(&cut);
    }
    text_add_clean(out, text);
    if (!c->right && !last)
        buf_printf(out, "%*s", (int)pad, "");
}

static void print_line(const struct slurm_format *f, const struct slurm_row *row, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct slurm_column *c = &f->column[i];
        AUTO(buf_free) struct buf cell = BUF(1u << 16);
        if (row)
            c->field->put(row, &cell);
        else
            buf_addz(&cell, c->title);
        buf_add(out, c->before);
        put_cell(c, buf_str(&cell), i + 1 == f->n, out);
    }
    buf_add(out, f->after);
    buf_addc(out, '\n');
}

void slurm_print_titles(const struct slurm_format *f, struct buf *out)
{
    print_line(f, NULL, out);
}

void slurm_print_row(const struct slurm_format *f, const struct slurm_row *row, struct buf *out)
{
    print_line(f, row, out);
}

void slurm_print_bars(const struct slurm_format *f, const struct slurm_row *row, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        AUTO(buf_free) struct buf cell = BUF(1u << 16);
        if (row)
            f->column[i].field->put(row, &cell);
        buf_addz(out, i ? "|" : "");
        text_add_clean(out, row ? buf_str(&cell) : str_of(f->column[i].title));
    }
    buf_addc(out, '\n');
}

/* ---- states ---- */

const char *slurm_state_words(struct str word)
{
    static const struct {
        const char *letters, *name, *words;
    } states[] = {
        { "PD", "PENDING", "queued,held" },  { "R", "RUNNING", "running" },
        { "CF", "CONFIGURING", "starting" }, { "S", "SUSPENDED", "freezing,paused,frozen,thawing" },
        { "CG", "COMPLETING", "stopping" },  { "CD", "COMPLETED", "succeeded" },
        { "F", "FAILED", "failed" },         { "CA", "CANCELLED", "cancelled" },
        { "TO", "TIMEOUT", "failed" },       { "OOM", "OUT_OF_MEMORY", "failed" },
        { "NF", "NODE_FAIL", "failed" },     { "all", "ALL", "all" },
    };
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (same_name(word, states[i].letters) || same_name(word, states[i].name))
            return states[i].words;
    return NULL;
}

int slurm_states(const char *list, struct buf *out, struct err *e)
{
    struct str rest = str_of(list), one;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        const char *words = slurm_state_words(one);
        if (!words) {
            err_set(e, ERR_INVALID, "'%.*s' is no state", STR_ARG(one));
            return err_hint(e, "known are PD R CF S CG CD F CA TO OOM NF and all");
        }
        if (strcmp(words, "all") == 0)
            buf_truncate(out, 0);
        buf_printf(out, "%s%s", out->n ? "," : "", words);
        if (strcmp(words, "all") == 0)
            return 0;
    }
    return buf_check(out, e);
}
