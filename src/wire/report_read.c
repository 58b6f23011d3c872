/* Reading a report: what comes from another machine is checked word by word. */
#include <stdio.h>

#include "base/parse.h"
#include "wire/report.h"

#define MAGIC "nightshift-report " /* and a version */
#define VERSION 2u

struct reading {
    struct report_head *head;
    struct report_sample *sample;
    report_fn *fn;
    void *ctx;
    uint32_t samples;
    uint64_t version;
    int gpu; /* whose parts may follow, or -1 */
};

static int bad(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID, "%s", what);
}

/* A word that fits, of printable bytes. */
static int take_word(struct str *rest, char *out, size_t size, struct err *e)
{
    struct str word;
    if (!str_next_word(rest, &word) || word.n >= size)
        return bad(e, "a word is missing or too long");
    for (size_t i = 0; i < word.n; i++)
        if ((unsigned char)word.p[i] < ' ' || word.p[i] == 127)
            return bad(e, "a word has a byte that is no text");
    if (!str_is_utf8(word))
        return bad(e, "a word is no UTF-8");
    memcpy(out, word.p, word.n);
    out[word.n] = '\0';
    return 0;
}

/* What is left of the line. */
static int take_text(struct str rest, char *out, size_t size, struct err *e)
{
    struct str text = str_trim(rest);
    if (text.n == 0 || text.n >= size || !str_is_utf8(text))
        return bad(e, "a text is missing, too long or no UTF-8");
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 127)
            return bad(e, "a text has a byte that is no text");
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    return 0;
}

static int take_number(struct str *rest, uint64_t max, uint64_t *out, struct err *e)
{
    struct str word;
    if (!str_next_word(rest, &word))
        return bad(e, "a number is missing");
    return parse_u64(word, max, out, e);
}

static int take_value(struct str *rest, int64_t *out, struct err *e)
{
    struct str word, peek = *rest;
    uint64_t v = 0;
    if (str_next_word(&peek, &word) && str_is(word, "-")) {
        *rest = peek;
        *out = REPORT_UNKNOWN;
        return 0;
    }
    if (take_number(rest, (uint64_t)REPORT_VALUE_MAX, &v, e) < 0)
        return -1;
    *out = (int64_t)v;
    return 0;
}

static int take_values(struct str rest, int64_t *out, size_t n, struct err *e)
{
    struct str word;
    for (size_t i = 0; i < n; i++)
        if (take_value(&rest, &out[i], e) < 0)
            return -1;
    return str_next_word(&rest, &word) ? bad(e, "the line has too many values") : 0;
}

static int take_place(struct reading *r, struct str *rest, uint32_t *out, struct err *e)
{
    uint64_t i = 0;
    if (take_number(rest, REPORT_GPUS_MAX, &i, e) < 0)
        return -1;
    if (i >= r->head->gpus)
        return bad(e, "it names a GPU that the head does not have");
    *out = (uint32_t)i;
    return 0;
}

/* ---- lines ---- */

static int read_from(struct reading *r, struct str rest, struct err *e)
{
    struct report_head *h = r->head;
    struct str word;
    uint64_t simulated = 0;
    if (take_word(&rest, h->node, sizeof h->node, e) < 0 ||
        take_word(&rest, h->boot, sizeof h->boot, e) < 0 ||
        take_number(&rest, UINT64_C(1) << 53, &h->number, e) < 0 ||
        take_number(&rest, 1, &simulated, e) < 0 ||
        take_word(&rest, h->version, sizeof h->version, e) < 0)
        return -1;
    h->simulated = simulated != 0;
    return str_next_word(&rest, &word) ? bad(e, "the line has too many words") : 0;
}

static int read_gpu(struct reading *r, struct str rest, struct err *e)
{
    struct report_head *h = r->head;
    uint64_t index = 0;
    if (r->samples || h->gpus == REPORT_GPUS_MAX)
        return bad(e, r->samples ? "GPUs come before the samples" : "too many GPUs");
    struct report_gpu *g = &h->gpu[h->gpus];
    if (take_number(&rest, 1023, &index, e) < 0 ||
        take_word(&rest, g->uuid, sizeof g->uuid, e) < 0 || take_value(&rest, &g->mem_mib, e) < 0 ||
        take_value(&rest, &g->power_limit_mw, e) < 0 ||
        take_text(rest, g->name, sizeof g->name, e) < 0)
        return -1;
    g->index = (uint32_t)index;
    for (uint32_t i = 0; i < h->gpus; i++)
        if (h->gpu[i].index == g->index)
            return bad(e, "a GPU is there twice");
    h->gpus++;
    return 0;
}

static void tell(struct reading *r)
{
    if (r->samples)
        r->fn(r->ctx, r->head, r->sample);
}

static int read_sample(struct reading *r, struct str rest, struct err *e)
{
    int64_t t_ms;
    if (take_values(rest, &t_ms, 1, e) < 0)
        return -1;
    if (t_ms < 0 || (r->samples && t_ms < r->sample->t_ms))
        return bad(e, "samples are not in the order of time");
    if (r->samples == REPORT_SAMPLES_MAX)
        return bad(e, "too many samples");
    tell(r);
    r->samples++;
    r->sample->t_ms = t_ms;
    return 0;
}

static int read_node(struct reading *r, struct str rest, struct err *e)
{
    return take_values(rest, r->sample->node, REPORT_NODE_COUNT, e);
}

static int read_gpu_sample(struct reading *r, struct str rest, struct err *e)
{
    struct report_sample *s = r->sample;
    uint32_t at = 0, kept = 0;
    if (take_place(r, &rest, &at, e) < 0 || take_values(rest, s->gpu[at], REPORT_GPU_COUNT, e) < 0)
        return -1;
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].gpu != at)
            s->part[kept++] = s->part[i];
    s->parts = kept;
    r->gpu = (int)at;
    return 0;
}

static int read_part(struct reading *r, struct str rest, struct err *e)
{
    struct report_sample *s = r->sample;
    int64_t v[3];
    uint32_t at = 0;
    if (s->parts == REPORT_PARTS_MAX)
        return bad(e, "too many parts");
    struct report_part *p = &s->part[s->parts];
    if (take_place(r, &rest, &at, e) < 0 || take_word(&rest, p->who, sizeof p->who, e) < 0 ||
        take_values(rest, v, ARRAY_LEN(v), e) < 0)
        return -1;
    if (r->gpu != (int)at)
        return bad(e, "a part comes without its GPU");
    p->gpu = at;
    p->permille = v[0];
    p->mem_mib = v[1];
    p->processes = v[2];
    s->parts++;
    return 0;
}

static int read_tasks(struct reading *r, struct str rest, struct err *e)
{
    r->sample->tasks = 0;
    return take_values(rest, NULL, 0, e);
}

static int read_task(struct reading *r, struct str rest, struct err *e)
{
    struct report_sample *s = r->sample;
    if (s->tasks == REPORT_TASKS_MAX)
        return bad(e, "too many tasks");
    struct report_task *t = &s->task[s->tasks];
    if (take_word(&rest, t->task, sizeof t->task, e) < 0 ||
        take_values(rest, t->v, REPORT_TASK_COUNT, e) < 0)
        return -1;
    s->tasks++;
    return 0;
}

static int read_findings(struct reading *r, struct str rest, struct err *e)
{
    r->sample->findings = 0;
    return take_values(rest, NULL, 0, e);
}

static int read_finding(struct reading *r, struct str rest, struct err *e)
{
    struct report_sample *s = r->sample;
    int64_t gpu;
    if (s->findings == REPORT_FINDINGS_MAX)
        return bad(e, "too many findings");
    struct report_finding *f = &s->finding[s->findings];
    if (take_word(&rest, f->rule, sizeof f->rule, e) < 0 || take_value(&rest, &gpu, e) < 0 ||
        take_text(rest, f->text, sizeof f->text, e) < 0)
        return -1;
    if (gpu > 1023)
        return bad(e, "it names a GPU that there cannot be");
    f->gpu = (int32_t)gpu;
    s->findings++;
    return 0;
}

static int read_kubelet(struct reading *r, struct str rest, struct err *e)
{
    return take_values(rest, r->sample->kubelet, REPORT_KUBELET_COUNT, e);
}

static int read_givens(struct reading *r, struct str rest, struct err *e)
{
    r->sample->givens = 0;
    return take_values(rest, NULL, 0, e);
}

static int read_given(struct reading *r, struct str rest, struct err *e)
{
    struct report_sample *s = r->sample;
    struct str a, b, c;
    if (s->givens == REPORT_GIVEN_MAX)
        return bad(e, "too many devices");
    struct report_given *g = &s->given[s->givens];
    if (take_place(r, &rest, &g->gpu, e) < 0 ||
        take_word(&rest, g->device, sizeof g->device, e) < 0 ||
        take_word(&rest, g->task, sizeof g->task, e) < 0 ||
        take_word(&rest, g->pod, sizeof g->pod, e) < 0 || take_values(rest, NULL, 0, e) < 0)
        return -1;
    if (!report_who_pod(g->pod, &a, &b, &c))
        return bad(e, "it names no pod");
    if (strcmp(g->task, "-") == 0)
        g->task[0] = '\0';
    s->givens++;
    return 0;
}

static int read_no_hold(struct reading *r, struct str rest, struct err *e)
{
    r->sample->hold = (struct report_hold){ 0 };
    return take_values(rest, NULL, 0, e);
}

static int read_hold(struct reading *r, struct str rest, struct err *e)
{
    struct report_hold h = { 0 };
    if (take_value(&rest, &h.since_ms, e) < 0 || take_value(&rest, &h.until_ms, e) < 0 ||
        take_word(&rest, h.by, sizeof h.by, e) < 0 ||
        take_text(rest, h.reason, sizeof h.reason, e) < 0)
        return -1;
    if (h.since_ms <= 0)
        return bad(e, "a hold has no beginning");
    if (strcmp(h.reason, "-") == 0)
        h.reason[0] = '\0';
    r->sample->hold = h;
    return 0;
}

static int read_acks(struct reading *r, struct str rest, struct err *e)
{
    r->sample->acks = 0;
    return take_values(rest, NULL, 0, e);
}

static int read_ack(struct reading *r, struct str rest, struct err *e)
{
    struct report_sample *s = r->sample;
    uint64_t done = 0;
    if (s->acks == REPORT_ACKS_MAX)
        return bad(e, "too many answers");
    struct report_ack *a = &s->ack[s->acks];
    if (take_number(&rest, UINT64_C(1) << 53, &a->id, e) < 0 ||
        take_number(&rest, 1, &done, e) < 0 || take_text(rest, a->text, sizeof a->text, e) < 0)
        return -1;
    a->done = done != 0;
    s->acks++;
    return 0;
}

static const struct {
    const char *word;
    int (*read)(struct reading *r, struct str rest, struct err *e);
    bool in_sample;
    uint8_t since; /* the version that has it first */
} lines[] = {
    { "from", read_from, false, 1 },   { "gpu", read_gpu, false, 1 },
    { "s", read_sample, false, 1 },    { "n", read_node, true, 1 },
    { "g", read_gpu_sample, true, 1 }, { "p", read_part, true, 1 },
    { "T", read_tasks, true, 1 },      { "t", read_task, true, 1 },
    { "H", read_findings, true, 1 },   { "h", read_finding, true, 1 },
    { "k", read_kubelet, true, 2 },    { "D", read_givens, true, 2 },
    { "d", read_given, true, 2 },      { "O", read_no_hold, true, 2 },
    { "o", read_hold, true, 2 },       { "A", read_acks, true, 2 },
    { "a", read_ack, true, 2 },
};

static int read_line(struct reading *r, struct str line, struct err *e)
{
    struct str rest = line, word;
    if (!str_next_word(&rest, &word))
        return bad(e, "it is empty");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        if (!str_is(word, lines[i].word) || lines[i].since > r->version)
            continue;
        if (lines[i].in_sample && !r->samples)
            return bad(e, "it comes before the first sample");
        if (!str_is(word, "p"))
            r->gpu = -1;
        return lines[i].read(r, rest, e);
    }
    return bad(e, "it begins with a word that is not known");
}

static bool is_magic(struct str line, uint64_t *out_version)
{
    struct err ignored;
    size_t n = sizeof MAGIC - 1;
    return line.n > n && memcmp(line.p, MAGIC, n) == 0 &&
           parse_u64((struct str){ line.p + n, line.n - n }, VERSION, out_version, &ignored) == 0 &&
         *out_version > 0;
}

int report_read(struct str text, struct report_head *head, struct report_sample *sample,
                report_fn *fn, void *ctx, struct err *e)
{
    struct reading r = { .head = head, .sample = sample, .fn = fn, .ctx = ctx, .gpu = -1 };
    struct str line;
    size_t number = 1;
    head->gpus = 0;
    head->node[0] = '\0';
    sample->parts = sample->tasks = sample->findings = sample->givens = sample->acks = 0;
    sample->hold = (struct report_hold){ 0 };
    for (size_t i = 0; i < REPORT_KUBELET_COUNT; i++)
        sample->kubelet[i] = REPORT_UNKNOWN;
    for (size_t i = 0; i < REPORT_NODE_COUNT; i++)
        sample->node[i] = REPORT_UNKNOWN;
    for (size_t g = 0; g < REPORT_GPUS_MAX; g++)
        for (size_t i = 0; i < REPORT_GPU_COUNT; i++)
            sample->gpu[g][i] = REPORT_UNKNOWN;
    if (text.n > REPORT_BYTES_MAX)
        return err_set(e, ERR_TOO_LARGE, "a report has at most %u bytes", REPORT_BYTES_MAX);
    if (!str_next_line(&text, &line) || !is_magic(line, &r.version)) {
        err_set(e, ERR_INVALID, "this is no report that is known here");
        return err_hint(e, "agent and daemon must fit together: see nightshift-agent --version");
    }
    while (str_next_line(&text, &line)) {
        number++;
        if (read_line(&r, line, e) < 0)
            return err_wrap(e, "line %zu of the report", number);
    }
    if (!head->node[0] || !r.samples)
        return err_set(e, ERR_INVALID, "the report has no sender, or no sample");
    tell(&r);
    return 0;
}
