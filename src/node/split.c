#include "node/split.h"

#include <stdio.h>

static struct report_part *part_of(struct report_sample *s, uint32_t first, uint32_t place,
                                   const char *who)
{
    for (uint32_t i = first; i < s->parts; i++)
        if (strcmp(s->part[i].who, who) == 0)
            return &s->part[i];
    /* The last place of all is kept for what finds none. */
    if (s->parts + (strcmp(who, REPORT_NOT_TOLD) != 0) >= REPORT_PARTS_MAX)
        return NULL;
    struct report_part *p = &s->part[s->parts++];
    *p = (struct report_part){ .gpu = place };
    snprintf(p->who, sizeof p->who, "%s", who);
    return p;
}

static void gather(const struct split_gpu *g, struct report_sample *s, uint32_t first)
{
    for (size_t i = 0; i < g->processes; i++) {
        const struct split_process *one = &g->process[i];
        struct report_part *p = part_of(s, first, g->place, one->who[0] ? one->who : REPORT_OTHER);
        if (!p)
            continue;
        p->processes++;
        p->permille += one->percent > 0 ? one->percent * 10 : 0;
        p->mem_mib += one->mem_mib > 0 ? one->mem_mib : 0;
    }
}

/* Lowers all alike when together they pass what there is; gives how much is left. */
static int64_t fit(struct report_sample *s, uint32_t first, size_t at, int64_t total)
{
    int64_t sum = 0, given = 0;
    for (uint32_t i = first; i < s->parts; i++)
        sum += *(int64_t *)((char *)&s->part[i] + at);
    if (sum <= total)
        return total - sum;
    for (uint32_t i = first; i < s->parts; i++) {
        int64_t *v = (int64_t *)((char *)&s->part[i] + at);
        *v = (int64_t)((double)*v * (double)total / (double)sum);
        given += *v;
    }
    for (uint32_t i = first; i < s->parts && given < total; i++, given++) /* what rounding took */
        ++*(int64_t *)((char *)&s->part[i] + at);
    return total - given;
}

void split_add(const struct split_gpu *g, struct report_sample *s)
{
    uint32_t first = s->parts;
    int64_t work = MAX(g->permille, 0), mem = MAX(g->mem_used_mib, 0);
    gather(g, s, first);
    if (!g->told) {
        for (uint32_t i = first; i < s->parts; i++)
            s->part[i].permille = 0;
        if (s->parts == first + 1)
            s->part[first].permille = work;
    }
    int64_t work_left = fit(s, first, offsetof(struct report_part, permille), work);
    int64_t mem_left = fit(s, first, offsetof(struct report_part, mem_mib), mem);
    if (work_left == 0 && mem_left == 0)
        return;
    struct report_part *p = part_of(s, first, g->place, REPORT_NOT_TOLD);
    if (p) {
        p->permille += work_left;
        p->mem_mib += mem_left;
    }
}
