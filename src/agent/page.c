#include "agent/page.h"

#include <stdio.h>

#include "wire/metrics.h"

#define BODY_MAX (1u << 20)

/* Whose it is as far as this machine knows: a task's job, a pod. */
static struct metrics_whose whose(const char *task, const char *pod, char number[static 24])
{
    struct metrics_whose w = { 0 };
    uint64_t job;
    if (task && report_who_job(task, &job)) {
        snprintf(number, 24, "%llu", (unsigned long long)job);
        w.job = str_of(number);
    }
    metrics_name_pod(&w, pod ? pod : "");
    return w;
}

/* The task that has a GPU alone, as far as its parts say. */
static const char *only_task(const struct report_sample *s, uint32_t at)
{
    const char *found = NULL;
    uint64_t job;
    for (uint32_t i = 0; i < s->parts; i++) {
        if (s->part[i].gpu != at || !report_who_job(s->part[i].who, &job))
            continue;
        if (found)
            return NULL;
        found = s->part[i].who;
    }
    return found;
}

static void put_parts(struct buf *b, const struct metrics_gpu *gpu, uint32_t n)
{
    struct str space, pod, container;
    char number[24];
    uint64_t job;
    for (int k = 0; k < METRICS_PART_COUNT; k++) {
        enum metrics_part part = (enum metrics_part)k;
        metrics_part_head(b, part);
        for (uint32_t i = 0; n && i < gpu->sample->parts; i++) {
            const struct report_part *p = &gpu->sample->part[i];
            int64_t value = metrics_part_value(p, part);
            if (p->gpu >= n || value < 0)
                continue;
            bool is_job = report_who_job(p->who, &job);
            bool is_pod = !is_job && report_who_pod(p->who, &space, &pod, &container);
            const struct report_given *given =
                is_job ? report_given_to(gpu->sample, p->gpu, p->who) : NULL;
            struct metrics_whose w = whose(p->who, given ? given->pod : p->who, number);
            metrics_part(b, part, &gpu[p->gpu],
                         is_job   ? "job"
                         : is_pod ? "pod"
                                  : p->who,
                         &w, value);
        }
    }
}

static void put_gpus(struct buf *b, const struct page_facts *f)
{
    static const uint32_t most = REPORT_GPUS_MAX;
    AUTO(free_p) struct metrics_gpu *gpu = xcalloc(most, sizeof *gpu);
    AUTO(free_p) char(*number)[24] = xcalloc(most, sizeof *number);
    uint32_t n = MIN(f->head->gpus, most);
    for (uint32_t i = 0; i < n; i++) {
        const struct report_given *given = report_given_alone(f->sample, i);
        const char *task = given && given->task[0] ? given->task : only_task(f->sample, i);
        gpu[i] = (struct metrics_gpu){ .head = f->head,
                                       .sample = f->sample,
                                       .at = i,
                                       .host = f->head->node,
                                       .simulated = f->head->simulated,
                                       .whose = whose(task, given ? given->pod : NULL, number[i]) };
    }
    metrics_gpus(b, gpu, n);
    put_parts(b, gpu, n);
}

static void put_own(struct buf *b, const char *name, const char *help, const char *node, double v)
{
    metrics_head(b, name, help);
    buf_printf(b, "%s{", name);
    metrics_label(b, "node", str_of(node));
    buf_printf(b, "} %.17g\n", v);
}

static void put_body(const struct page_facts *f, struct buf *b)
{
    const char *node = f->head->node;
    if (f->sample) {
        for (size_t k = 0; k < METRICS_NODE_COUNT; k++) {
            metrics_node_head(b, k);
            metrics_node(b, k, node, f->sample);
        }
        put_own(b, "nightshift_node_findings", "What is wrong with a machine: how many things.",
                node, f->sample->findings);
        put_own(b, "nightshift_node_held", "1 while its owner holds the machine.", node,
                f->sample->hold.since_ms > 0);
        if (f->sample->kubelet[REPORT_KUBELET_PODS] >= 0)
            put_own(b, "nightshift_agent_pods", "Pods that the kubelet tells of.", node,
                    (double)f->sample->kubelet[REPORT_KUBELET_PODS]);
        put_gpus(b, f);
    }
    put_own(b, "nightshift_agent_reports", "1 while the control plane answers.", node, !f->away);
    put_own(b, "nightshift_agent_lost_samples", "Samples that were never told.", node,
            (double)f->lost);
    put_own(b, "nightshift_agent_waiting_bytes", "Reports that are not acknowledged yet.", node,
            (double)f->waiting_bytes);
    buf_addz(b, "# EOF\n");
}

static void put_answer(struct buf *out, const char *status, const char *type, struct str body,
                       bool head_only)
{
    buf_printf(out,
               "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
               "X-Content-Type-Options: nosniff\r\n%s\r\n",
               status, type, body.n, strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "");
    if (!head_only)
        buf_add(out, body);
}

void page_answer(const struct page_facts *f, struct str request, struct buf *out)
{
    AUTO(buf_free) struct buf body = BUF(BODY_MAX);
    struct str line, method, path, query;
    if (!str_next_line(&request, &line) || !str_next_word(&line, &method) ||
        !str_next_word(&line, &path)) {
        put_answer(out, "400 Bad Request", "text/plain", STR("no request\n"), false);
        return;
    }
    str_cut(path, '?', &path, &query);
    bool head = str_is(method, "HEAD");
    if (!str_is(path, "/metrics")) {
        put_answer(out, "404 Not Found", "text/plain", STR("see /metrics\n"), head);
        return;
    }
    if (!head && !str_is(method, "GET")) {
        put_answer(out, "405 Method Not Allowed", "text/plain", STR("GET it\n"), false);
        return;
    }
    put_body(f, &body);
    put_answer(out, "200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8",
               buf_str(&body), head);
}
