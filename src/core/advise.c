/* What would start a waiting job now: changes of what it asks for, each tried against the core as it
 * is.  Nothing is guessed: what is said here fits, under the limits, in room that nobody waits for. */
#include <stdarg.h>
#include <stdio.h>

#include "core/state.h"

#define MINUTE (60 * INT64_C(1000))

static const char *const kind_slugs[] = {
#define X(id, slug) [ADVICE_##id] = slug,
    ADVICES(X)
#undef X
};

const char *advice_slug(enum advice_kind k)
{
    return (size_t)k < ARRAY_LEN(kind_slugs) ? kind_slugs[k] : "?";
}

struct adviser {
    struct core *c;
    const struct job *j;
    struct advice *out;
    uint32_t n;
};

/* Would a job of this user start at once if it asked for this? */
static bool starts(const struct adviser *a, const struct request *r)
{
    struct core *c = a->c;
    struct request narrowed;
    struct refusal by;
    const struct request *may = core_allowed(c, a->j->leaf, r, &narrowed, &by);
    return may && place_find(&c->cluster, &c->demand, may, &c->scratch, c->slots);
}

static bool advise(struct adviser *a, enum advice_kind kind, const struct request *r,
                   const char *fmt, ...) PRINTF_LIKE(4, 5);
static bool advise(struct adviser *a, enum advice_kind kind, const struct request *r,
                   const char *fmt, ...)
{
    va_list ap;
    if (a->n == ADVICE_MAX || !starts(a, r))
        return false;
    struct advice *out = &a->out[a->n++];
    *out = (struct advice){ .kind = kind, .request = *r };
    va_start(ap, fmt);
    vsnprintf(out->text, sizeof out->text, fmt, ap);
    va_end(ap);
    return true;
}

/* ---- what it gives up nothing for ---- */

static void try_models(struct adviser *a, const struct request *r)
{
    struct request any = *r;
    any.models = 0;
    if (r->models)
        advise(a, ADVICE_MODEL, &any, "take any GPU model");
}

static void try_closeness(struct adviser *a, const struct request *r)
{
    struct request wide = *r;
    wide.scope = SCOPE_ANY;
    if (r->scope != SCOPE_ANY && r->replicas > 1)
        advise(a, ADVICE_SCOPE, &wide, "let the replicas be on any machines");
    wide = *r;
    wide.layout = LAYOUT_PACK;
    if (r->layout != LAYOUT_PACK && r->replicas > 1)
        advise(a, ADVICE_SCOPE, &wide, "let the replicas lie as they fit (layout pack)");
    wide = *r;
    wide.linked = 0;
    if (r->linked)
        advise(a, ADVICE_LINK, &wide, "take GPUs that are not linked");
}

static void try_split(struct adviser *a, const struct request *r)
{
    for (uint32_t parts = 2; parts <= r->gpus && r->replicas == 1 && !r->device[0]; parts *= 2) {
        struct request split = *r;
        if (r->gpus % parts)
            return;
        split.replicas = parts;
        split.gpus = (uint16_t)(r->gpus / parts);
        split.cpu_milli = (r->cpu_milli + parts - 1) / parts;
        split.mem_mib = (r->mem_mib + parts - 1) / parts;
        split.scope = SCOPE_ANY;
        if (advise(a, ADVICE_SPLIT, &split, "run as %u replicas with %u GPU%s each", parts,
                   split.gpus, split.gpus == 1 ? "" : "s"))
            return;
    }
}

/* ---- less of something: as little less as helps ---- */

#define LESS_STEPS 8

static void try_less_cpu(struct adviser *a, const struct request *r)
{
    for (uint32_t k = LESS_STEPS - 1; k && r->cpu_milli; k--) {
        struct request less = *r;
        less.cpu_milli = r->cpu_milli / 1000 * k / LESS_STEPS * 1000;
        if (less.cpu_milli && advise(a, ADVICE_CPU, &less, "ask for %u CPUs instead of %.6g",
                                     less.cpu_milli / 1000, r->cpu_milli / 1e3))
            return;
    }
}

static void try_less_memory(struct adviser *a, const struct request *r)
{
    for (uint32_t k = LESS_STEPS - 1; k && r->mem_mib; k--) {
        struct request less = *r;
        less.mem_mib = (uint32_t)((uint64_t)r->mem_mib * k / LESS_STEPS);
        if (less.mem_mib && advise(a, ADVICE_MEM, &less, "ask for %u MiB of memory instead of %u",
                                   less.mem_mib, r->mem_mib))
            return;
    }
}

static void try_fewer_gpus(struct adviser *a, const struct request *r)
{
    for (uint16_t gpus = (uint16_t)(r->gpus - 1); r->gpus > 1 && gpus; gpus--) {
        struct request less = *r;
        less.gpus = gpus;
        if (advise(a, ADVICE_GPUS, &less, "ask for %u GPU%s instead of %u", gpus,
                   gpus == 1 ? "" : "s", r->gpus))
            return;
    }
    for (uint16_t milli = (uint16_t)(r->gpu_milli / 2); milli >= 50; milli /= 2) {
        struct request less = *r;
        less.gpu_milli = milli;
        if (advise(a, ADVICE_GPUS, &less, "ask for a share of %.3g of a GPU instead of %.3g",
                   milli / 1e3, r->gpu_milli / 1e3))
            return;
    }
}

static void try_fewer_replicas(struct adviser *a, const struct request *r)
{
    uint32_t lo = 0, hi = r->replicas; /* lo starts, hi does not */
    while (hi - lo > 1) {
        struct request less = *r;
        less.replicas = lo + (hi - lo) / 2;
        *(starts(a, &less) ? &lo : &hi) = less.replicas;
    }
    struct request less = *r;
    less.replicas = lo;
    if (lo)
        advise(a, ADVICE_REPLICAS, &less, "run with %u replica%s instead of %u", lo,
               lo == 1 ? "" : "s", r->replicas);
}

/* A shorter limit lets it into room that is reserved for later.  Jobs of one group are tried in their
 * order, and it stays in its group: behind others that are too long it would help nothing. */
static void try_shorter(struct adviser *a, const struct request *r)
{
    struct core *c = a->c;
    struct request narrowed;
    const struct request *may = core_job_allowed(c, a->j, &narrowed);
    if (a->j->prev != NONE || !may)
        return;
    for (uint32_t i = 0; i < c->claims && a->n < ADVICE_MAX; i++) {
        const struct claim *cl = &c->claim[i];
        int64_t left_ms = cl->start_ms - c->now_ms;
        if (left_ms < MINUTE || c->queue.job[cl->job].id == a->j->id || !claim_suits(r) ||
            (a->j->limit_ms && a->j->limit_ms <= left_ms) ||
            !gang_find_on(&c->cluster, may, cl->node, cl->n, &c->scratch, c->slots))
            continue;
        struct advice *out = &a->out[a->n++];
        *out = (struct advice){ .kind = ADVICE_LIMIT, .request = *r, .limit_ms = left_ms };
        snprintf(out->text, sizeof out->text, "set a time limit of %lld minutes or less",
                 (long long)(left_ms / MINUTE));
        return;
    }
}

/* Machines that are lent, or reserved later, take what ends before they are given back, or can be
 * frozen then. */
static void try_window(struct adviser *a, const struct request *r)
{
    const struct cluster *cl = &a->c->cluster;
    bool closes = (cl->windows || cl->reservations) && !r->reservation;
    struct request fits = *r;
    for (uint32_t k = 0; k < cl->kinds && closes; k++) {
        int64_t left_ms = MIN(cl->kind[k].left_ms, cl->kind[k].free_ms);
        if (left_ms == INT64_MAX || left_ms < 0 || cl->kind[k].nodes == 0)
            continue;
        fits.stay = window_stay_in(left_ms);
        int64_t most_ms = window_leave_ms(a->c, a->j, window_stay_ms(fits.stay));
        if (fits.stay && most_ms >= MINUTE &&
            advise(a, ADVICE_LIMIT, &fits, "set a time limit of %lld minutes or less",
                   (long long)(most_ms / MINUTE))) {
            a->out[a->n - 1].limit_ms = most_ms / MINUTE * MINUTE;
            break;
        }
    }
    fits.stay = window_stay_of(a->c->policy.window_lead_ms);
    if (closes && a->j->thaw_cost_ms == 0)
        advise(a, ADVICE_FREEZE, &fits, "let it be frozen when machines are given back");
}

uint32_t core_advise(struct core *c, job_id id, struct advice out[ADVICE_MAX])
{
    uint32_t job = queue_find(&c->queue, id.v);
    if (job == NONE || c->queue.job[job].group == NONE)
        return 0;
    struct adviser a = { .c = c, .j = &c->queue.job[job], .out = out };
    const struct request *r = &c->shapes.at[a.j->shape].request;
    if (starts(&a, r))
        return 0; /* the next pass starts it */
    try_models(&a, r);
    try_closeness(&a, r);
    try_split(&a, r);
    try_shorter(&a, r);
    try_window(&a, r);
    try_less_cpu(&a, r);
    try_less_memory(&a, r);
    try_fewer_gpus(&a, r);
    try_fewer_replicas(&a, r);
    return a.n;
}
