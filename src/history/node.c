#include "history/node.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "sys/file.h"

#define FILE_MAX (256u << 10)

static const struct {
    const char *name;
    int64_t step_ms;
    uint32_t rows;
} rings[] = {
#define X(id, name, step, rows) { name, step, rows },
    NODE_RINGS(X)
#undef X
};

static const char *const node_columns[] = {
#define X(id, name) name,
    HISTORY_NODE_COLUMNS(X)
#undef X
};
static const char *const gpu_columns[] = {
#define X(id, name) name,
    HISTORY_GPU_COLUMNS(X)
#undef X
};

const char *history_node_column_name(enum history_node_column c)
{
    return node_columns[c];
}

const char *history_gpu_column_name(enum history_gpu_column c)
{
    return gpu_columns[c];
}

static size_t columns_of(const struct node *n)
{
    return HISTORY_NODE_COUNT + (size_t)n->head->gpus * HISTORY_GPU_COUNT;
}

/* ---- what is wrong, on the disk ---- */

static bool path_of(const struct node *n, const char *end, char *out, size_t size)
{
    return n->folder && (size_t)snprintf(out, size, "%s/%s.%s", n->folder, n->name, end) < size;
}

void node_save(const struct node *n)
{
    AUTO(buf_free) struct buf b = BUF(FILE_MAX);
    struct json_out w = { .b = &b };
    char path[4096];
    struct err ignored; /* what is lost with it drains once more, and no worse */
    json_begin(&w, NULL, '{');
    json_put_str(&w, "reason", str_of(n->reason));
    json_begin(&w, "findings", '[');
    for (size_t i = 0; i < n->findings; i++) {
        const struct history_finding *f = &n->finding[i];
        json_begin(&w, NULL, '{');
        json_put_str(&w, "rule", str_of(f->is.rule));
        json_put_i64(&w, "gpu", f->is.gpu);
        json_put_str(&w, "text", str_of(f->is.text));
        json_put_i64(&w, "since_ms", f->since_ms);
        json_put_bool(&w, "drained", f->drained);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    if (path_of(n, "json", path, sizeof path))
        (void)!file_write_private(path, buf_str(&b), &ignored);
}

static bool read_finding(const struct json *o, struct history_finding *out)
{
    struct str rule = STR(""), text = STR("");
    struct history_finding f = { 0 };
    struct err ignored;
    int64_t gpu = -1;
    if (json_need_str(o, "rule", sizeof f.is.rule - 1, &rule, &ignored) < 0 ||
        json_need_str(o, "text", sizeof f.is.text - 1, &text, &ignored) < 0 ||
        json_get_i64(o, "gpu", -1, 1023, &gpu, &ignored) < 0 ||
        json_get_i64(o, "since_ms", 0, INT64_MAX, &f.since_ms, &ignored) < 0 ||
        json_get_bool(o, "drained", &f.drained, &ignored) < 0)
        return false;
    snprintf(f.is.rule, sizeof f.is.rule, "%.*s", STR_ARG(rule));
    snprintf(f.is.text, sizeof f.is.text, "%.*s", STR_ARG(text));
    f.is.gpu = (int32_t)gpu;
    *out = f;
    return true;
}

static void load_saved(struct node *n)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str reason = STR("");
    char path[4096];
    struct err ignored;
    if (!path_of(n, "json", path, sizeof path) || file_read(path, FILE_MAX, &text, &ignored) < 0)
        return;
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&text), &ignored);
    if (!d || json_get_str(json_root(d), "reason", sizeof n->reason - 1, &reason, &ignored) < 0)
        return;
    snprintf(n->reason, sizeof n->reason, "%.*s", STR_ARG(reason));
    const struct json *list = json_find(json_root(d), "findings");
    for (const struct json *o = json_is_array(list) ? json_first(list) : NULL;
         o && n->findings < REPORT_FINDINGS_MAX; o = json_next(list, o))
        if (json_is_object(o) && read_finding(o, &n->finding[n->findings]))
            n->findings++;
}

static struct history_finding *same_finding(struct node *n, const struct report_finding *f)
{
    for (size_t i = 0; i < n->findings; i++)
        if (n->finding[i].is.gpu == f->gpu && strcmp(n->finding[i].is.rule, f->rule) == 0)
            return &n->finding[i];
    return NULL;
}

void node_note_findings(struct node *n, int64_t now_ms)
{
    struct history_finding next[REPORT_FINDINGS_MAX];
    size_t count = 0;
    bool changed = false;
    for (uint32_t i = 0; i < n->last->findings && count < REPORT_FINDINGS_MAX; i++) {
        const struct report_finding *f = &n->last->finding[i];
        const struct history_finding *was = same_finding(n, f);
        next[count] = (struct history_finding){ .is = *f, .since_ms = now_ms };
        if (was) {
            next[count].since_ms = was->since_ms;
            next[count].drained = was->drained;
        }
        changed |= !was;
        count++;
    }
    changed |= count != n->findings;
    memcpy(n->finding, next, count * sizeof next[0]);
    n->findings = count;
    if (changed)
        node_save(n);
}

/* ---- rings ---- */

static void close_rings(struct node *n)
{
    for (size_t i = 0; i < NODE_RING_COUNT; i++)
        n->ring[i] = ring_close(n->ring[i]);
}

/* Other GPUs than before are another history. */
static uint64_t meaning_of(const struct report_head *h)
{
    uint64_t v = HISTORY_NODE_COUNT * 1000 + HISTORY_GPU_COUNT;
    for (uint32_t i = 0; i < h->gpus; i++)
        v = v * UINT64_C(0x100000001b3) ^ str_hash(str_of(h->gpu[i].uuid));
    return v;
}

/* ---- a ring that an older version did not have ---- */

struct filling {
    struct ring *to;
    int64_t step_ms, at; /* the row that is being gathered; -1: none */
    size_t columns;
    uint32_t samples;
    double sum[NODE_COLUMNS_MAX], weight[NODE_COLUMNS_MAX];
};

static void end_filled(struct filling *f)
{
    float row[NODE_COLUMNS_MAX];
    struct err ignored;
    for (size_t k = 0; k < f->columns; k++) {
        row[k] = f->weight[k] > 0 ? (float)(f->sum[k] / f->weight[k]) : NAN;
        f->sum[k] = f->weight[k] = 0;
    }
    if (f->at >= 0)
        (void)!ring_merge(f->to, f->at * f->step_ms, row, f->samples, &ignored);
    f->samples = 0;
}

static void fill_more(void *ctx, int64_t t_ms, const float *v, uint32_t samples)
{
    struct filling *f = ctx;
    if (t_ms / f->step_ms != f->at)
        end_filled(f);
    f->at = t_ms / f->step_ms;
    f->samples += samples;
    for (size_t k = 0; k < f->columns; k++)
        if (isfinite(v[k])) {
            f->sum[k] += (double)v[k] * samples;
            f->weight[k] += samples;
        }
}

/* What is in the finer one before it. */
static void fill_new_ring(struct node *n, size_t i, int64_t now_ms)
{
    struct err ignored;
    struct filling f = {
        .to = n->ring[i], .step_ms = rings[i].step_ms, .at = -1, .columns = columns_of(n)
    };
    int64_t kept_ms = rings[i].step_ms * (int64_t)rings[i].rows;
    struct ring_span all = { MAX(now_ms - kept_ms, INT64_C(0)), now_ms + rings[i - 1].step_ms };
    (void)!ring_read(n->ring[i - 1], all, fill_more, &f, &ignored);
    end_filled(&f);
}

static int open_rings(struct node *n, int64_t now_ms, struct err *e)
{
    char path[4096];
    for (size_t i = 0; i < NODE_RING_COUNT; i++) {
        struct ring_shape shape = { .step_ms = rings[i].step_ms,
                                    .rows = rings[i].rows,
                                    .columns = (uint32_t)columns_of(n),
                                    .meaning = n->meaning };
        if (n->ring[i] || !path_of(n, rings[i].name, path, sizeof path))
            continue;
        bool fresh;
        n->ring[i] = ring_open(path, &shape, &fresh, e);
        if (!n->ring[i])
            return -1;
        if (fresh && (i == RING_MINUTES || i == RING_DAY))
            fill_new_ring(n, i, now_ms);
    }
    return 0;
}

int64_t node_ring_step_ms(enum node_ring r)
{
    return rings[r].step_ms;
}

enum node_ring node_ring_for(int64_t step_ms, int64_t from_ms, int64_t last_ms)
{
    for (int i = NODE_RING_COUNT - 1; i >= 0; i--) {
        bool fine = rings[i].step_ms <= step_ms;
        bool finer_is_too_short =
            i > 0 && last_ms - from_ms > rings[i - 1].step_ms * (int64_t)rings[i - 1].rows;
        if (fine || finer_is_too_short || i == 0)
            return (enum node_ring)i;
    }
    return RING_SECOND;
}

static void flush_minute(struct node *n)
{
    float row[NODE_COLUMNS_MAX];
    struct err ignored;
    if (!n->gathered)
        return;
    for (size_t i = 0; i < columns_of(n); i++) {
        row[i] = n->count[i] ? (float)(n->sum[i] / n->count[i]) : NAN;
        n->sum[i] = n->count[i] = 0;
    }
    for (size_t r = RING_MINUTE; r < NODE_RING_COUNT; r++)
        if (n->ring[r])
            (void)!ring_merge(n->ring[r], n->minute * 60000, row, n->gathered, &ignored);
    n->gathered = 0;
}

int node_read(struct node *n, enum node_ring r, struct ring_span span, ring_fn *fn, void *ctx,
              struct err *e)
{
    if (!n->folder)
        return 0;
    if (open_rings(n, n->last->t_ms, e) < 0)
        return -1;
    if (r != RING_SECOND) /* up to now, and not up to the last whole minute */
        flush_minute(n);
    return ring_read(n->ring[r], span, fn, ctx, e);
}

static float known(int64_t v)
{
    return v < 0 ? NAN : (float)v;
}

static void fill_row(const struct report_head *h, const struct report_sample *s, float *row)
{
    static const enum report_node_value of_node[] = {
        [HISTORY_NODE_CPU] = REPORT_NODE_CPU,        [HISTORY_NODE_MEM] = REPORT_NODE_MEM_USED,
        [HISTORY_NODE_DISK] = REPORT_NODE_DISK_USED, [HISTORY_NODE_READ] = REPORT_NODE_READ,
        [HISTORY_NODE_WRITE] = REPORT_NODE_WRITE,    [HISTORY_NODE_RX] = REPORT_NODE_RX,
        [HISTORY_NODE_TX] = REPORT_NODE_TX,
    };
    uint64_t job;
    for (size_t i = 0; i < HISTORY_NODE_COUNT; i++)
        row[i] = known(s->node[of_node[i]]);
    for (uint32_t g = 0; g < h->gpus; g++) {
        float *to = row + HISTORY_NODE_COUNT + (size_t)g * HISTORY_GPU_COUNT;
        int64_t jobs = 0;
        for (uint32_t k = 0; k < s->parts; k++)
            if (s->part[k].gpu == g && report_who_job(s->part[k].who, &job))
                jobs += MAX(s->part[k].permille, INT64_C(0));
        to[HISTORY_GPU_UTIL] = known(s->gpu[g][REPORT_GPU_UTIL]);
        to[HISTORY_GPU_JOBS] = s->gpu[g][REPORT_GPU_UTIL] < 0 ? NAN : (float)jobs;
        to[HISTORY_GPU_MEM] = known(s->gpu[g][REPORT_GPU_MEM_USED]);
        to[HISTORY_GPU_POWER] = known(s->gpu[g][REPORT_GPU_POWER]);
        to[HISTORY_GPU_TEMP] = known(s->gpu[g][REPORT_GPU_TEMP]);
        to[HISTORY_GPU_CLOCK] = known(s->gpu[g][REPORT_GPU_SM_CLOCK]);
    }
}

static void keep_row(struct node *n, const struct report_sample *s)
{
    float row[NODE_COLUMNS_MAX];
    struct err e;
    if (!n->folder || n->ring_failed)
        return;
    if (open_rings(n, s->t_ms, &e) <
        0) { /* without a disk there is the last sample, and no charts */
        n->ring_failed = true;
        return;
    }
    fill_row(n->head, s, row);
    (void)!ring_merge(n->ring[RING_SECOND], s->t_ms, row, 1, &e);
    if (n->minute != s->t_ms / 60000)
        flush_minute(n);
    n->minute = s->t_ms / 60000;
    n->gathered++;
    for (size_t i = 0; i < columns_of(n); i++)
        if (isfinite(row[i])) {
            n->sum[i] += (double)row[i];
            n->count[i]++;
        }
}

/* ---- life ---- */

struct node *node_new(const char *name, const char *folder)
{
    struct node *n = xcalloc(1, sizeof *n);
    n->name = name;
    n->folder = folder;
    n->head = report_head_new();
    n->last = report_sample_new();
    n->sum = xcalloc(NODE_COLUMNS_MAX, sizeof *n->sum);
    n->count = xcalloc(NODE_COLUMNS_MAX, sizeof *n->count);
    load_saved(n);
    return n;
}

struct node *node_free(struct node *n)
{
    if (!n)
        return NULL;
    flush_minute(n);
    close_rings(n);
    free(n->head);
    free(n->last);
    free(n->sum);
    free(n->count);
    free(n);
    return NULL;
}

static void note_idle(struct node *n, const struct report_sample *s)
{
    for (uint32_t g = 0; g < n->head->gpus; g++) {
        int64_t util = s->gpu[g][REPORT_GPU_UTIL];
        if (util != 0)
            n->idle_since_ms[g] = 0;
        else if (!n->idle_since_ms[g])
            n->idle_since_ms[g] = s->t_ms;
    }
}

bool node_take(struct node *n, const struct report_head *head, const struct report_sample *s,
               int64_t now_ms)
{
    uint64_t meaning = meaning_of(head);
    if (n->samples && meaning != n->meaning) {
        flush_minute(n);
        close_rings(n);
        memset(n->idle_since_ms, 0, sizeof n->idle_since_ms);
    }
    /* What is sent again after its acknowledgement was lost has been counted.  In another batch it is new, also when it
     * is from before: that machine's clock was set back, and what its owner says now is not to wait until it is later. */
    bool again = n->samples && head->number == n->head->number && s->t_ms <= n->last->t_ms;
    n->meaning = meaning;
    n->heard_ms = now_ms;
    *n->head = *head;
    if (again)
        return false;
    n->samples++;
    keep_row(n, s);
    note_idle(n, s);
    report_sample_copy(n->last, s);
    return true;
}

void node_view(const struct node *n, struct history_node *out)
{
    *out = (struct history_node){ .name = n->name,
                                  .head = n->head,
                                  .last = n->last,
                                  .heard_ms = n->heard_ms,
                                  .idle_since_ms = n->idle_since_ms,
                                  .finding = n->finding,
                                  .findings = n->findings,
                                  .reason = n->reason,
                                  .samples = n->samples };
}
