#include "cli/board.h"

#include <stdio.h>

#include "cli/field.h"
#include "cli/text.h"

#define LINE_BYTES 4096u
#define CPU_BAR 10u

const char *board_sort_name(enum board_sort s)
{
    static const char *const names[] = { "state", "GPUs", "time", "user" };
    _Static_assert(ARRAY_LEN(names) == SORT_COUNT, "an order was added without its name");
    return names[(unsigned)s < SORT_COUNT ? s : 0];
}

static void add_line(struct board *b, struct arena *a, const struct buf *text, enum tint tint,
                     uint64_t job)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 64;
        struct board_line *more = arena_array(a, struct board_line, cap);
        if (b->n)
            memcpy(more, b->line, b->n * sizeof *more);
        b->line = more;
        b->cap = cap;
    }
    struct str s = buf_str(text);
    b->line[b->n++] = (struct board_line){ arena_strndup(a, s.p, s.n), tint, job };
}

/* ---- machines ---- */

static void pad_to(struct buf *b, size_t begin, unsigned columns)
{
    unsigned wide = text_width((struct str){ b->p + begin, b->n - begin });
    buf_printf(b, "%*s", wide < columns ? (int)(columns - wide) : 1, "");
}

static void add_gpu(struct board *out, struct arena *a, const struct json *g, unsigned columns)
{
    AUTO(buf_free) struct buf line = BUF(LINE_BYTES), who = BUF(LINE_BYTES);
    const struct json *jobs = json_find(g, "jobs");
    uint64_t unused = MIN(field_u64(g, "free_milli"), UINT64_C(1000));
    buf_printf(&line, "  %3llu ", (unsigned long long)field_u64(g, "index"));
    text_add_bar(&line, 1000 - unused, 1000, 8);
    if (field_known(g, "util_percent")) /* what it does, beside what is given out of it */
        buf_printf(&line, " %3.0f%% busy", field_f64(g, "util_percent"));
    buf_addz(&line, "  ");
    unsigned used = text_width(buf_str(&line));
    for (const struct json *j = json_is_array(jobs) ? json_first(jobs) : NULL; j;
         j = json_next(jobs, j)) {
        buf_addz(&who, who.n ? ", " : "");
        job_add_holder(j, &who);
    }
    text_add_fit(&line, who.n ? buf_str(&who) : STR("free"), columns > used ? columns - used : 1);
    add_line(out, a, &line, unused >= 1000 ? TINT_FAINT : TINT_NONE, 0);
}

static void add_node(struct board *out, struct arena *a, const struct json *n, unsigned columns)
{
    AUTO(buf_free) struct buf line = BUF(LINE_BYTES);
    const struct json *gpus = json_find(n, "gpus");
    struct str state = field_str(n, "state"), model = field_str(n, "model");
    uint64_t cpu = field_u64(n, "cpu_milli"), cpu_free = field_u64(n, "cpu_free_milli");
    uint64_t mem = field_u64(n, "mem_mib"), mem_free = field_u64(n, "mem_free_mib");
    char have[24], all[24];
    text_add_fit(&line, field_str(n, "name"), 16);
    pad_to(&line, 0, 17);
    size_t at = line.n;
    text_add_fit(&line, state, 9);
    pad_to(&line, at, 10);
    buf_addz(&line, "cpu ");
    text_add_bar(&line, cpu > cpu_free ? cpu - cpu_free : 0, cpu, CPU_BAR);
    buf_addz(&line, "  mem ");
    text_add_bar(&line, mem > mem_free ? mem - mem_free : 0, mem, CPU_BAR);
    buf_printf(&line, " %s free of %s  ", text_mib(mem_free, have), text_mib(mem, all));
    text_add_clean(&line, model);
    buf_addz(&line, field_bool(n, "simulated") ? " (simulated)" : "");
    bool up = str_is(state, "up");
    add_line(out, a, &line, up ? TINT_STRONG : TINT_WAIT, 0);
    for (const struct json *g = json_is_array(gpus) ? json_first(gpus) : NULL; g;
         g = json_next(gpus, g))
        add_gpu(out, a, g, columns);
}

/* ---- jobs ---- */

static int rank(const struct job *j)
{
    switch (j->state) {
    case JOB_IS_RUNNING: return 0;
    case JOB_IS_STARTING:
    case JOB_IS_STOPPING: return 1;
    case JOB_IS_FREEZING:
    case JOB_IS_PAUSED:
    case JOB_IS_FROZEN:
    case JOB_IS_THAWING: return 2;
    case JOB_IS_QUEUED: return 3;
    case JOB_IS_HELD: return 4;
    case JOB_IS_SUCCEEDED:
    case JOB_IS_FAILED:
    case JOB_IS_CANCELLED:
    case JOB_IS_UNKNOWN:
    case JOB_WORD_COUNT: break;
    }
    return 5;
}

static int by_id(const struct job *a, const struct job *b)
{
    return (a->id > b->id) - (a->id < b->id);
}

static int by_text(struct str a, struct str b)
{
    int c = memcmp(a.p, b.p, MIN(a.n, b.n));
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int by_state(const void *x, const void *y)
{
    const struct job *a = x, *b = y;
    return rank(a) != rank(b) ? rank(a) - rank(b) : by_id(a, b);
}

static int by_gpus(const void *x, const void *y)
{
    const struct job *a = x, *b = y;
    uint64_t p = a->gpu_milli;
    uint64_t q = b->gpu_milli;
    return p != q ? (p < q ? 1 : -1) : by_id(a, b);
}

static int by_time(const void *x, const void *y)
{
    const struct job *a = x, *b = y;
    int64_t p = a->started_ms ? a->started_ms : INT64_MAX;
    int64_t q = b->started_ms ? b->started_ms : INT64_MAX;
    return p != q ? (p > q ? 1 : -1) : by_id(a, b);
}

static int by_user(const void *x, const void *y)
{
    const struct job *a = x, *b = y;
    int c = by_text(a->user, b->user);
    return c ? c : by_id(a, b);
}

static int (*const orders[])(const void *, const void *) = {
    [SORT_STATE] = by_state,
    [SORT_GPUS] = by_gpus,
    [SORT_TIME] = by_time,
    [SORT_USER] = by_user,
};

static const struct column columns[] = {
    { "ID", true, false },     { "NAME", false, true },         { "USER", false, false },
    { "TENANT", false, true }, { "STATE", false, false },       { "GPUS", true, false },
    { "TIME", true, false },   { "WHERE/REASON", false, true },
};

static void add_cells(struct table *t, const struct job *j, int64_t now_ms)
{
    AUTO(buf_free) struct buf where = BUF(LINE_BYTES);
    char id[48], text[24];
    table_addz(t, job_id_text(j, id));
    table_add(t, j->name);
    table_add(t, j->user);
    table_add(t, j->tenant);
    table_addz(t, job_word_info(j->state)->name);
    table_addz(t, text_milli(j->gpu_milli, text));
    table_addz(t, text_duration(
                      j->started_ms ? job_elapsed_ms(j, now_ms) : now_ms - j->submitted_ms, text));
    job_add_where(j, &where);
    if (where.n == 0)
        buf_add(&where, j->reason_text.n ? j->reason_text : j->reason);
    table_add(t, buf_str(&where));
}

static void add_jobs(const struct board_want *w, struct arena *a, struct board *out)
{
    AUTO(table_free_p) struct table *t = table_new(columns, ARRAY_LEN(columns));
    AUTO(buf_free) struct buf text = BUF(64u << 20);
    if (w->jobs->n)
        qsort(w->jobs->v, w->jobs->n, sizeof *w->jobs->v, orders[w->sort]);
    for (size_t i = 0; i < w->jobs->n; i++)
        add_cells(t, &w->jobs->v[i], w->now_ms);
    table_print(t, &(struct table_look){ .columns = w->columns, .headers = true }, &text);
    struct str rest = buf_str(&text), one;
    for (size_t i = 0; str_next_line(&rest, &one); i++) {
        AUTO(buf_free) struct buf line = BUF(LINE_BYTES * 4);
        buf_add(&line, one);
        if (i == 0) {
            add_line(out, a, &line, TINT_FAINT, 0);
            out->first_job = out->n;
            continue;
        }
        const struct job *j = &w->jobs->v[i - 1];
        add_line(out, a, &line, job_word_info(j->state)->tint, j->id);
    }
}

void board_build(const struct board_want *w, struct arena *a, struct board *out)
{
    AUTO(buf_free) struct buf empty = BUF(8);
    *out = (struct board){ 0 };
    for (const struct json *n = json_is_array(w->nodes) ? json_first(w->nodes) : NULL; n;
         n = json_next(w->nodes, n))
        add_node(out, a, n, w->columns);
    add_line(out, a, &empty, TINT_NONE, 0);
    add_jobs(w, a, out);
}
