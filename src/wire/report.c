#include "wire/report.h"

#include <stdio.h>

#define MAGIC "nightshift-report 2"

static const char *const node_names[] = {
#define X(id, name) name,
    REPORT_NODE_VALUES(X)
#undef X
};
static const char *const gpu_names[] = {
#define X(id, name) name,
    REPORT_GPU_VALUES(X)
#undef X
};
static const char *const task_names[] = {
#define X(id, name) name,
    REPORT_TASK_VALUES(X)
#undef X
};

static const char *const kubelet_names[] = {
#define X(id, name) name,
    REPORT_KUBELET_VALUES(X)
#undef X
};

const char *report_kubelet_value_name(enum report_kubelet_value v)
{
    return kubelet_names[v];
}

const char *report_node_value_name(enum report_node_value v)
{
    return node_names[v];
}

const char *report_gpu_value_name(enum report_gpu_value v)
{
    return gpu_names[v];
}

const char *report_task_value_name(enum report_task_value v)
{
    return task_names[v];
}

struct report_head *report_head_new(void)
{
    return xcalloc(1, sizeof(struct report_head));
}

static void forget(int64_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = REPORT_UNKNOWN;
}

struct report_sample *report_sample_new(void)
{
    struct report_sample *s = xcalloc(1, sizeof *s);
    forget(s->node, REPORT_NODE_COUNT);
    for (size_t i = 0; i < REPORT_GPUS_MAX; i++)
        forget(s->gpu[i], REPORT_GPU_COUNT);
    forget(s->kubelet, REPORT_KUBELET_COUNT);
    return s;
}

/* Only what is in use: the rest of the room stays untouched, and so costs no memory. */
void report_sample_copy(struct report_sample *to, const struct report_sample *from)
{
    to->t_ms = from->t_ms;
    memcpy(to->node, from->node, sizeof to->node);
    memcpy(to->gpu, from->gpu, sizeof to->gpu);
    to->parts = from->parts;
    to->tasks = from->tasks;
    to->findings = from->findings;
    to->givens = from->givens;
    to->acks = from->acks;
    to->hold = from->hold;
    memcpy(to->kubelet, from->kubelet, sizeof to->kubelet);
    memcpy(to->given, from->given, from->givens * sizeof to->given[0]);
    memcpy(to->ack, from->ack, from->acks * sizeof to->ack[0]);
    memcpy(to->part, from->part, from->parts * sizeof to->part[0]);
    memcpy(to->task, from->task, from->tasks * sizeof to->task[0]);
    memcpy(to->finding, from->finding, from->findings * sizeof to->finding[0]);
}

bool report_who_job(const char *who, uint64_t *out_job)
{
    uint64_t job = 0;
    const char *p = who;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(job, 10u, &job) ||
            __builtin_add_overflow(job, (uint64_t)(*p - '0'), &job))
            return false;
    if (p == who || *p != '.')
        return false;
    *out_job = job;
    return true;
}

bool report_who_pod(const char *who, struct str *out_space, struct str *out_pod,
                    struct str *out_container)
{
    struct str rest;
    return str_cut(str_of(who), '/', out_space, &rest) && out_space->n &&
           str_cut(rest, '/', out_pod, out_container) && out_pod->n && out_container->n &&
           !memchr(out_container->p, '/', out_container->n);
}

const struct report_given *report_given_to(const struct report_sample *s, uint32_t gpu,
                                           const char *task)
{
    for (uint32_t i = 0; i < s->givens; i++)
        if (s->given[i].gpu == gpu && strcmp(s->given[i].task, task) == 0)
            return &s->given[i];
    return NULL;
}

const struct report_given *report_given_alone(const struct report_sample *s, uint32_t gpu)
{
    const struct report_given *found = NULL;
    for (uint32_t i = 0; i < s->givens; i++) {
        if (s->given[i].gpu != gpu)
            continue;
        if (found && strcmp(found->pod, s->given[i].pod) != 0)
            return NULL;
        found = &s->given[i];
    }
    return found;
}

/* ---- writing ---- */

/* The text of each group as it was last written. */
struct report_writer {
    struct buf node, tasks, findings, kubelet, given, hold, acks, gpu[REPORT_GPUS_MAX];
    struct buf now;
    bool fresh;
};

#define GROUP_MAX (256u << 10)

struct report_writer *report_writer_new(void)
{
    struct report_writer *w = xcalloc(1, sizeof *w);
    w->node = w->tasks = w->findings = w->now = BUF(GROUP_MAX);
    w->kubelet = w->given = w->hold = w->acks = BUF(GROUP_MAX);
    for (size_t i = 0; i < REPORT_GPUS_MAX; i++)
        w->gpu[i] = BUF(GROUP_MAX);
    return w;
}

struct report_writer *report_writer_free(struct report_writer *w)
{
    if (!w)
        return NULL;
    buf_free(&w->node);
    buf_free(&w->tasks);
    buf_free(&w->findings);
    buf_free(&w->kubelet);
    buf_free(&w->given);
    buf_free(&w->hold);
    buf_free(&w->acks);
    buf_free(&w->now);
    for (size_t i = 0; i < REPORT_GPUS_MAX; i++)
        buf_free(&w->gpu[i]);
    free(w);
    return NULL;
}

void report_writer_free_p(struct report_writer **w)
{
    *w = report_writer_free(*w);
}

/* Words and the ends of lines are ours: a name with other bytes in it is written with '?'. */
static void put_text(struct buf *out, const char *text, bool blanks)
{
    size_t before = out->n;
    for (const char *p = text; *p; p++)
        buf_addc(out, (unsigned char)*p < ' ' || *p == 127 || (!blanks && *p == ' ') ? '?' : *p);
    if (out->n == before)
        buf_addc(out, '?');
}

static void put_value(struct buf *out, int64_t v)
{
    if (v < 0 || v > REPORT_VALUE_MAX)
        buf_addz(out, " -");
    else
        buf_printf(out, " %lld", (long long)v);
}

static void put_values(struct buf *out, const int64_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_value(out, v[i]);
    buf_addc(out, '\n');
}

void report_begin(struct report_writer *w, const struct report_head *h, struct buf *out)
{
    buf_addz(out, MAGIC "\nfrom ");
    put_text(out, h->node, false);
    buf_addc(out, ' ');
    put_text(out, h->boot, false);
    buf_printf(out, " %llu %d ", (unsigned long long)h->number, h->simulated);
    put_text(out, h->version, false);
    buf_addc(out, '\n');
    for (uint32_t i = 0; i < h->gpus; i++) {
        buf_printf(out, "gpu %u ", h->gpu[i].index);
        put_text(out, h->gpu[i].uuid, false);
        put_value(out, h->gpu[i].mem_mib);
        put_value(out, h->gpu[i].power_limit_mw);
        buf_addc(out, ' ');
        put_text(out, h->gpu[i].name, true);
        buf_addc(out, '\n');
    }
    w->fresh = true;
}

/* The group in w->now, unless it is as it was. */
static void put_group(struct report_writer *w, struct buf *was, struct buf *out)
{
    if (!w->fresh && str_eq(buf_str(was), buf_str(&w->now)))
        return;
    buf_add(out, buf_str(&w->now));
    buf_truncate(was, 0);
    buf_add(was, buf_str(&w->now));
}

static void put_gpu(struct report_writer *w, const struct report_sample *s, uint32_t i,
                    struct buf *out)
{
    buf_truncate(&w->now, 0);
    buf_printf(&w->now, "g %u", i);
    put_values(&w->now, s->gpu[i], REPORT_GPU_COUNT);
    for (uint32_t k = 0; k < s->parts; k++) {
        const struct report_part *p = &s->part[k];
        if (p->gpu != i)
            continue;
        buf_printf(&w->now, "p %u ", i);
        put_text(&w->now, p->who, false);
        put_values(&w->now, (const int64_t[]){ p->permille, p->mem_mib, p->processes }, 3);
    }
    put_group(w, &w->gpu[i], out);
}

static void put_given(struct report_writer *w, const struct report_sample *s, struct buf *out)
{
    buf_truncate(&w->now, 0);
    buf_addc(&w->now, 'k');
    put_values(&w->now, s->kubelet, REPORT_KUBELET_COUNT);
    put_group(w, &w->kubelet, out);
    buf_truncate(&w->now, 0);
    buf_addz(&w->now, "D\n");
    for (uint32_t i = 0; i < s->givens; i++) {
        const struct report_given *g = &s->given[i];
        buf_printf(&w->now, "d %u ", g->gpu);
        put_text(&w->now, g->device, false);
        buf_addc(&w->now, ' ');
        put_text(&w->now, g->task[0] ? g->task : "-", false);
        buf_addc(&w->now, ' ');
        put_text(&w->now, g->pod, false);
        buf_addc(&w->now, '\n');
    }
    put_group(w, &w->given, out);
}

static void put_owner(struct report_writer *w, const struct report_sample *s, struct buf *out)
{
    buf_truncate(&w->now, 0);
    buf_addz(&w->now, "O\n");
    if (s->hold.since_ms > 0) {
        buf_addc(&w->now, 'o');
        put_value(&w->now, s->hold.since_ms);
        put_value(&w->now, s->hold.until_ms);
        buf_addc(&w->now, ' ');
        put_text(&w->now, s->hold.by, false);
        buf_addc(&w->now, ' ');
        put_text(&w->now, s->hold.reason[0] ? s->hold.reason : "-", true);
        buf_addc(&w->now, '\n');
    }
    put_group(w, &w->hold, out);
    buf_truncate(&w->now, 0);
    buf_addz(&w->now, "A\n");
    for (uint32_t i = 0; i < s->acks; i++) {
        buf_printf(&w->now, "a %llu %d ", (unsigned long long)s->ack[i].id, s->ack[i].done);
        put_text(&w->now, s->ack[i].text, true);
        buf_addc(&w->now, '\n');
    }
    put_group(w, &w->acks, out);
}

static void put_lists(struct report_writer *w, const struct report_sample *s, struct buf *out)
{
    buf_truncate(&w->now, 0);
    buf_addz(&w->now, "T\n");
    for (uint32_t i = 0; i < s->tasks; i++) {
        buf_addz(&w->now, "t ");
        put_text(&w->now, s->task[i].task, false);
        put_values(&w->now, s->task[i].v, REPORT_TASK_COUNT);
    }
    put_group(w, &w->tasks, out);
    buf_truncate(&w->now, 0);
    buf_addz(&w->now, "H\n");
    for (uint32_t i = 0; i < s->findings; i++) {
        buf_addz(&w->now, "h ");
        put_text(&w->now, s->finding[i].rule, false);
        put_value(&w->now, s->finding[i].gpu);
        buf_addc(&w->now, ' ');
        put_text(&w->now, s->finding[i].text, true);
        buf_addc(&w->now, '\n');
    }
    put_group(w, &w->findings, out);
}

void report_add(struct report_writer *w, const struct report_head *h, const struct report_sample *s,
                struct buf *out)
{
    buf_printf(out, "s %lld\n", (long long)s->t_ms);
    buf_truncate(&w->now, 0);
    buf_addc(&w->now, 'n');
    put_values(&w->now, s->node, REPORT_NODE_COUNT);
    put_group(w, &w->node, out);
    for (uint32_t i = 0; i < h->gpus; i++)
        put_gpu(w, s, i, out);
    put_given(w, s, out);
    put_owner(w, s, out);
    put_lists(w, s, out);
    w->fresh = false;
}
