/* A clairvoyant schedule on machines that are lent at times: what a harvest is measured by.
 *
 * It knows when each job comes and how long it runs, freezes and moves jobs at any instant and for
 * nothing, and starts what has the least left first: whenever a job comes or ends and whenever a
 * window opens or closes, all that is there is placed anew.  It fills lent machines first, those
 * with the smaller GPUs before the others, so that what only fits elsewhere finds room there.  It
 * knows no shares, limits, link groups or switches, which can only help it.  Jobs without GPUs are
 * left out.  So it is a schedule that exists, with liberties that no real one has; it is not proven
 * to be the one that works lent machines the most.
 */
#include "simulate/measure.h"

struct machine {
    const struct event_node *n;
    uint32_t window; /* NONE: it may always work */
    bool open;
    uint32_t cpu_milli, mem_mib; /* free */
    uint16_t gpu[GPUS_PER_NODE_MAX];
};

struct present {
    uint32_t job;
    uint32_t at; /* the machine of its first replica; NONE before it has run */
    int64_t left_ms;
    bool runs;
    double lent; /* GPUs on lent machines, while it runs */
};

struct seer {
    const struct trace *t;
    struct machine *m;
    struct calendar *calendar;
    struct present *p;
    uint32_t n, next; /* jobs that are there; the next to come */
};

static void seer_free(struct seer *s)
{
    free(s->m);
    free(s->calendar);
    free(s->p);
}

static int lent_first(const void *pa, const void *pb)
{
    const struct machine *a = pa, *b = pb;
    if ((a->window == NONE) != (b->window == NONE))
        return a->window == NONE ? 1 : -1;
    if (a->n->gpu_mem_mib != b->n->gpu_mem_mib)
        return a->n->gpu_mem_mib < b->n->gpu_mem_mib ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

static struct seer seer_new(const struct trace *t)
{
    struct seer s = { .t = t };
    s.m = xcalloc((size_t)t->nodes + 1, sizeof *s.m);
    s.calendar = xcalloc((size_t)t->windows + 1, sizeof *s.calendar);
    s.p = xcalloc((size_t)t->jobs + 1, sizeof *s.p);
    for (uint32_t w = 0; w < t->windows; w++)
        s.calendar[w] = window_calendar(t, w);
    for (uint32_t i = 0; i < t->nodes; i++)
        s.m[i] = (struct machine){ .n = &t->node[i], .window = trace_window_of(t, i) };
    qsort(s.m, t->nodes, sizeof *s.m, lent_first);
    return s;
}

/* ---- placing ---- */

static bool allows_model(const char *models, struct str model)
{
    struct str rest = str_of(models), one;
    while (rest.n) {
        str_cut(rest, '|', &one, &rest);
        if (str_eq(str_trim(one), model))
            return true;
    }
    return models[0] == 0;
}

/* What a replica takes of each of its GPUs on this machine; 0: it cannot run there. */
static uint32_t part_of(const struct trace_job *j, const struct machine *m)
{
    const struct request *r = &j->request;
    if (m->n->gpus == 0 || r->gpu_mem_mib > m->n->gpu_mem_mib ||
        !allows_model(j->models, m->n->model))
        return 0;
    if (r->gpus)
        return GPU_MILLI;
    uint32_t by_mem = (uint32_t)((uint64_t)r->gpu_mem_mib * GPU_MILLI / MAX(m->n->gpu_mem_mib, 1u));
    return MAX((uint32_t)r->gpu_milli, by_mem);
}

/* The fullest GPU that holds it; -1: none. */
static int pick_gpu(const struct machine *m, uint32_t part)
{
    int best = -1;
    for (int g = 0; g < (int)m->n->gpus; g++)
        if (m->gpu[g] >= part && (best < 0 || m->gpu[g] < m->gpu[best]))
            best = g;
    return best;
}

/* Takes one replica's GPUs, CPUs and memory; gives the GPUs it took, < 0 when it does not fit. */
static double take(struct machine *m, const struct trace_job *j)
{
    const struct request *r = &j->request;
    uint32_t part = part_of(j, m), need = MAX((uint32_t)r->gpus, 1u), have = 0;
    if (!m->open || part == 0 || m->cpu_milli < r->cpu_milli || m->mem_mib < r->mem_mib)
        return -1;
    for (uint32_t g = 0; g < m->n->gpus; g++)
        have += m->gpu[g] >= part;
    if (have < need)
        return -1;
    m->cpu_milli -= r->cpu_milli;
    m->mem_mib -= r->mem_mib;
    for (uint32_t k = 0; k < need; k++) {
        int g = pick_gpu(m, part);
        m->gpu[g] = (uint16_t)(m->gpu[g] - part);
    }
    return need * (double)part / GPU_MILLI;
}

/* All replicas or none; a gang that does not fit leaves no trace. */
static void place(struct seer *s, struct present *p, struct machine *undo)
{
    const struct trace_job *j = &s->t->job[p->job];
    uint32_t left = j->request.replicas, at = NONE;
    p->runs = false;
    p->lent = 0;
    if (left > 1)
        memcpy(undo, s->m, s->t->nodes * sizeof *undo);
    for (uint32_t k = 0; k <= s->t->nodes && left; k++) { /* where it is before anywhere else */
        uint32_t i = k ? k - 1 : p->at;
        double gpus;
        while (i != NONE && left && (gpus = take(&s->m[i], j)) >= 0) {
            p->lent += s->m[i].window != NONE ? gpus : 0;
            at = at == NONE ? i : at;
            left--;
        }
    }
    p->runs = left == 0;
    p->at = p->runs ? at : NONE;
    if (!p->runs) {
        p->lent = 0;
        if (j->request.replicas > 1)
            memcpy(s->m, undo, s->t->nodes * sizeof *undo);
    }
}

static int least_left_first(const void *pa, const void *pb)
{
    const struct present *a = pa, *b = pb;
    if (a->left_ms != b->left_ms)
        return a->left_ms < b->left_ms ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

static void place_all(struct seer *s, int64_t now_ms)
{
    AUTO(free_p) struct machine *undo = xcalloc((size_t)s->t->nodes + 1, sizeof *undo);
    for (uint32_t i = 0; i < s->t->nodes; i++) {
        struct machine *m = &s->m[i];
        m->open = m->window == NONE || calendar_is_open(&s->calendar[m->window], now_ms);
        m->cpu_milli = m->n->cpu_milli;
        m->mem_mib = m->n->mem_mib;
        for (uint32_t g = 0; g < m->n->gpus; g++)
            m->gpu[g] = GPU_MILLI;
    }
    qsort(s->p, s->n, sizeof *s->p, least_left_first);
    for (uint32_t i = 0; i < s->n; i++)
        place(s, &s->p[i], undo);
}

/* ---- time ---- */

static int64_t next_event_ms(const struct seer *s, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    if (s->next < s->t->jobs)
        next_ms = s->t->job[s->next].submit_ms;
    for (uint32_t w = 0; w < s->t->windows; w++) {
        int64_t change_ms = calendar_next_change(&s->calendar[w], now_ms);
        if (change_ms != INT64_MAX)
            next_ms = MIN(next_ms, change_ms);
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (s->p[i].runs)
            next_ms = MIN(next_ms, now_ms + s->p[i].left_ms);
    return next_ms;
}

/* Runs what was placed; returns GPU × ms on lent machines. */
static double run(struct seer *s, int64_t ms)
{
    double done = 0;
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct present *p = &s->p[i];
        done += p->lent * (double)ms;
        p->left_ms -= p->runs ? ms : 0;
        if (p->left_ms > 0)
            s->p[left++] = *p;
    }
    s->n = left;
    return done;
}

double clairvoyant_hours(const struct trace *t, int64_t from_ms, int64_t to_ms)
{
    AUTO(seer_free) struct seer s = seer_new(t);
    double gpu_ms = 0;
    for (int64_t now_ms = from_ms, until_ms; now_ms < to_ms; now_ms = until_ms) {
        for (; s.next < t->jobs && t->job[s.next].submit_ms <= now_ms; s.next++) {
            const struct trace_job *j = &t->job[s.next];
            if (j->request.gpus || request_shares_gpu(&j->request))
                s.p[s.n++] =
                    (struct present){ .job = s.next, .at = NONE, .left_ms = j->duration_ms };
        }
        place_all(&s, now_ms);
        until_ms = MIN(next_event_ms(&s, now_ms), to_ms);
        gpu_ms += run(&s, until_ms - now_ms);
    }
    return gpu_ms / 3.6e6;
}
