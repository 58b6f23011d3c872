#include "node/health.h"

#include <stdio.h>

static const struct {
    const char *name, *help;
    bool drains;
} rules[] = {
#define X(id, name, drains, help) { name, help, drains },
    HEALTH_RULES(X)
#undef X
};

const char *health_rule_name(enum health_rule r)
{
    return rules[r].name;
}

const char *health_rule_help(enum health_rule r)
{
    return rules[r].help;
}

bool health_rule_drains(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (str_is(name, rules[i].name))
            return rules[i].drains;
    return true;
}

/* NVIDIA's list of XID errors has more; those that a program causes by itself (13, 31, 43, 45, …) end that
 * program and leave the GPU as good as it was. */
bool health_xid_counts(uint64_t xid, const char **out_what)
{
    static const struct {
        uint64_t xid;
        const char *what;
    } rows[] = {
        { 46, "the GPU stopped processing" },
        { 48, "a memory error that could not be corrected" },
        { 54, "its power cable is not connected" },
        { 62, "its own controller stopped" },
        { 64, "a broken memory row could not be recorded" },
        { 74, "an NVLink error" },
        { 79, "it fell off the bus" },
        { 92, "very many corrected memory errors" },
        { 95, "a memory error that could not be contained" },
        { 109, "it does not switch between programs any more" },
        { 110, "a security fault of its hardware" },
        { 119, "its system processor does not answer" },
        { 120, "its system processor failed" },
        { 140, "a memory error that could not be corrected" },
        { 143, "it could not be initialised" },
        { 154, "it must be reset or the machine restarted" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].xid == xid) {
            *out_what = rows[i].what;
            return true;
        }
    return false;
}

void health_add(struct report_sample *s, enum health_rule r, int32_t gpu, const char *text)
{
    if (s->findings == REPORT_FINDINGS_MAX)
        return;
    struct report_finding *f = &s->finding[s->findings++];
    *f = (struct report_finding){ .gpu = gpu };
    snprintf(f->rule, sizeof f->rule, "%s", rules[r].name);
    snprintf(f->text, sizeof f->text, "%s", text);
}

static void check_fault(const struct report_gpu *g, enum nvml_fault fault, struct report_sample *s)
{
    char text[160];
    if (fault != NVML_LOST && fault != NVML_RESET)
        return;
    enum health_rule r = fault == NVML_LOST ? HEALTH_GPU_LOST : HEALTH_GPU_RESET;
    snprintf(text, sizeof text, "GPU %u %s", g->index,
             fault == NVML_LOST ? "fell off the bus: it does not answer any more"
                                : "must be reset before it works again");
    health_add(s, r, (int32_t)g->index, text);
}

static void check_xid(struct health_gpu *h, const struct report_gpu *g, const int64_t *v,
                      struct report_sample *s)
{
    const char *what;
    char text[160];
    if (v[REPORT_GPU_XID] > 0 && health_xid_counts((uint64_t)v[REPORT_GPU_XID], &what))
        h->xid = (uint64_t)v[REPORT_GPU_XID];
    if (!h->xid || !health_xid_counts(h->xid, &what))
        return;
    snprintf(text, sizeof text, "GPU %u reported XID %llu: %s", g->index,
             (unsigned long long)h->xid, what);
    health_add(s, HEALTH_XID, (int32_t)g->index, text);
}

/* Bits 5 and 6 of what holds the clocks back: slowed down by software or hardware, for heat. */
static void check_heat(struct health_gpu *h, const struct report_gpu *g, const int64_t *v,
                       struct report_sample *s)
{
    char text[160];
    bool hot = v[REPORT_GPU_THROTTLE] > 0 && (v[REPORT_GPU_THROTTLE] & (1 << 5 | 1 << 6));
    if (!hot) {
        h->hot_since_ms = 0;
        return;
    }
    if (!h->hot_since_ms || h->hot_since_ms > s->t_ms)
        h->hot_since_ms = s->t_ms;
    if (s->t_ms - h->hot_since_ms < HEALTH_HOT_MS)
        return;
    snprintf(text, sizeof text, "GPU %u is too hot and slows itself down: look at its fans",
             g->index);
    health_add(s, HEALTH_HOT, (int32_t)g->index, text);
}

static void check_ecc(const struct report_gpu *g, const int64_t *v, struct report_sample *s)
{
    char text[160];
    if (v[REPORT_GPU_ECC_UNCORRECTED] <= 0)
        return;
    snprintf(text, sizeof text, "GPU %u had %lld memory errors that could not be corrected",
             g->index, (long long)v[REPORT_GPU_ECC_UNCORRECTED]);
    health_add(s, HEALTH_ECC, (int32_t)g->index, text);
}

static void check_disk(struct report_sample *s)
{
    char text[160];
    int64_t used = s->node[REPORT_NODE_DISK_USED], all = s->node[REPORT_NODE_DISK];
    if (used < 0 || all <= 0 || used > all || all - used >= HEALTH_DISK_FREE_MIB ||
        (all - used) * 1000 >= all * HEALTH_DISK_FREE_PERMILLE)
        return;
    snprintf(text, sizeof text, "the disk with the state folder has %lld of %lld MiB left",
             (long long)(all - used), (long long)all);
    health_add(s, HEALTH_DISK, -1, text);
}

static void check_driver(const struct health_facts *f, struct report_sample *s)
{
    switch (f->driver) {
    case NVML_NONE:
    case NVML_NO_LIBRARY: return;
    case NVML_MISMATCH: health_add(s, HEALTH_MISMATCH, -1, f->driver_why.msg); return;
    case NVML_BAD_LIBRARY:
    case NVML_NO_DRIVER:
    case NVML_DENIED:
    case NVML_LOST:
    case NVML_RESET:
    case NVML_OTHER: health_add(s, HEALTH_DRIVER, -1, f->driver_why.msg); return;
    case NVML_FAULT_COUNT: break;
    }
    abort();
}

void health_check(struct health *h, const struct report_head *head, const struct health_facts *f,
                  struct report_sample *s)
{
    check_driver(f, s);
    if (f->broken.code != ERR_NONE)
        health_add(s, HEALTH_GPU_LOST, -1, f->broken.msg);
    check_disk(s);
    for (uint32_t i = 0; i < head->gpus; i++) {
        check_fault(&head->gpu[i], f->gpu[i], s);
        check_xid(&h->gpu[i], &head->gpu[i], s->gpu[i], s);
        check_heat(&h->gpu[i], &head->gpu[i], s->gpu[i], s);
        check_ecc(&head->gpu[i], s->gpu[i], s);
    }
}
