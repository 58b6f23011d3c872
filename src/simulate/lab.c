/* A small lab's weeks, made from a seed: what people there do in a day is a table of streams,
 * what their jobs ask for a table of kinds.  The numbers are set so that a week's demand is
 * about two thirds of its GPU-hours: a queue by day, trainings at night, and an empty lab when
 * Sunday ends. */
#include "base/decay.h"
#include "base/rng.h"
#include "simulate/trace.h"

#define DAYS_MAX 366u
#define DAY_S 86400u
#define GIB 1024u
#define JOBS_PER_DAY_MAX 2000u
#define SWEEP_JOBS 20u
#define MONDAY_MS (4 * DAY_S * INT64_C(1000)) /* 1970-01-05: where a calendar's week begins */
/* When nobody sits at the desks. */
#define LENT "Mon-Thu 20:00-08:00; Fri 20:00-24:00; Sat-Sun 00:00-24:00; Mon 00:00-08:00"

/* ---- machines ---- */

static const struct machine {
    const char *name; /* numbered when there is more than one */
    uint32_t count, cpus, mem_gib;
    const char *model;
    uint32_t gpus, gpu_mem_gib, link_size;
} machines[] = {
    { "desk", 4, 16, 64, "RTX 4070", 1, 12, 1 },
    { "desk", 2, 20, 64, "RTX 4070", 1, 12, 1 },
    { "desk", 4, 24, 64, "RTX 4090", 1, 24, 1 },
    { "gpusrv", 1, 128, 512, "RTX A6000", 8, 48, 4 },
};

/* ---- people ---- */

enum {
    RESEARCH,
    VISION,
    LANGUAGE,
    ROBOTICS,
    COURSE,
    GUESTS,
    TENANTS
};

static const struct group {
    const char *name, *parent;
    uint32_t weight, guarantee_gpus, limit_gpus; /* 0 = none */
    const char *user;                            /* NULL: numbered students */
    uint32_t users;
} groups[TENANTS] = {
    [RESEARCH] = { "research", "", 8, 0, 0, NULL, 0 },
    [VISION] = { "vision", "research", 3, 0, 0, "anna,bruno,chen,dalia", 4 },
    [LANGUAGE] = { "language", "research", 3, 0, 0, "emil,fatima,goran,hana,ivan", 5 },
    [ROBOTICS] = { "robotics", "research", 2, 0, 0, "jonas,kira,luis", 3 },
    [COURSE] = { "course-ml", "", 1, 1, 0, NULL, 24 },
    [GUESTS] = { "guests", "", 1, 0, 4, "maren,noor,otto", 3 },
};

/* ---- what jobs ask for and how long they run ---- */

enum kind_id {
    DEBUG,
    NOTEBOOK,
    TRAIN,
    TRAIN_LARGE,
    SWEEP,
    PREPARE,
    ROLLOUT,
    HOMEWORK,
    NIGHT_1,
    NIGHT_2,
    NIGHT_4,
    NIGHT_8,
    KINDS
};

static const struct kind {
    uint32_t replicas, gpus, gpu_milli, gpu_mem_gib, cpus, mem_gib; /* each replica */
    bool linked;
    double median_min, spread; /* of the duration: log-normal, spread in powers of two */
    double most_min;
} kinds[KINDS] = {
    [DEBUG] = { 1, 0, 250, 4, 2, 8, false, 5, 1.3, 45 },
    [NOTEBOOK] = { 1, 1, 0, 8, 4, 16, false, 120, 0.8, 480 },
    [TRAIN] = { 1, 1, 0, 10, 6, 24, false, 200, 1.2, 1440 },
    [TRAIN_LARGE] = { 1, 1, 0, 20, 8, 32, false, 180, 1.1, 1440 },
    [SWEEP] = { 1, 1, 0, 8, 4, 16, false, 35, 0.3, 180 },
    [PREPARE] = { 1, 0, 0, 0, 8, 24, false, 40, 1.0, 240 },
    [ROLLOUT] = { 3, 1, 0, 8, 6, 16, false, 150, 0.6, 600 },
    [HOMEWORK] = { 1, 0, 500, 5, 2, 8, false, 18, 0.8, 90 },
    [NIGHT_1] = { 1, 1, 0, 11, 8, 40, false, 480, 0.6, 1200 },
    [NIGHT_2] = { 1, 2, 0, 40, 16, 80, true, 420, 0.5, 1080 },
    [NIGHT_4] = { 1, 4, 0, 40, 32, 160, true, 420, 0.5, 960 },
    [NIGHT_8] = { 1, 8, 0, 40, 64, 320, false, 300, 0.4, 600 },
};

/* ---- when people submit: a weight for each hour of the day ---- */

enum {
    OFFICE,
    EVENING,
    CLASS,
    MORNING
};

static const uint8_t hours[][24] = {
    /* lunch at twelve, and some come back after dinner */
    [OFFICE] = { 1, 0, 0, 0, 0, 0, 0, 1, 5, 10, 13, 11, 3, 7, 12, 12, 10, 8, 4, 3, 6, 6, 3, 1 },
    [EVENING] = { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 9, 7, 3, 5, 7, 4, 2 },
    [CLASS] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 6, 8, 9, 4, 1, 0, 0, 0, 0, 0 },
    [MORNING] = { 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 6, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
};

/* How many a weekday of each kind; Monday is day 0. */
static const struct stream {
    uint8_t tenant, kind, when;
    double per_day;
} streams[] = {
    { VISION, DEBUG, OFFICE, 16 },     { VISION, NOTEBOOK, OFFICE, 4 },
    { VISION, TRAIN, OFFICE, 5 },      { VISION, SWEEP, EVENING, 0.5 },
    { VISION, PREPARE, OFFICE, 3 },    { LANGUAGE, DEBUG, OFFICE, 14 },
    { LANGUAGE, NOTEBOOK, OFFICE, 5 }, { LANGUAGE, TRAIN_LARGE, OFFICE, 4 },
    { LANGUAGE, SWEEP, OFFICE, 0.4 },  { ROBOTICS, DEBUG, OFFICE, 8 },
    { ROBOTICS, TRAIN, OFFICE, 3 },    { ROBOTICS, ROLLOUT, OFFICE, 1.5 },
    { ROBOTICS, PREPARE, OFFICE, 4 },  { COURSE, DEBUG, OFFICE, 6 },
    { COURSE, NOTEBOOK, OFFICE, 3 },   { GUESTS, NOTEBOOK, OFFICE, 1 },
    { GUESTS, TRAIN, EVENING, 1.5 },
};

static const struct day {
    double activity;  /* of the streams */
    double demand;    /* trainings are added until the day asks for this part of its GPU-hours */
    double homework;  /* runs handed in by the course */
    uint8_t deadline; /* the tenant that submits twice as much; RESEARCH: none */
    uint8_t trainings;
} week[7] = {
    { 0.9, 0.75, 0, RESEARCH, EVENING },  { 1.0, 0.80, 0, RESEARCH, EVENING },
    { 1.0, 0.85, 0, RESEARCH, EVENING },  { 1.0, 1.05, 0, LANGUAGE, EVENING },
    { 0.9, 0.75, 70, RESEARCH, EVENING }, { 0.2, 0.30, 0, RESEARCH, MORNING },
    { 0.1, 0.10, 0, RESEARCH, MORNING },
};

/* ---- making ---- */

struct making {
    struct trace t;
    bool lend;
    struct rng rng;
    const char **user[TENANTS];
    double gpu_hours_a_day; /* of all machines */
    double asked,
        asked_server; /* GPU-hours of the day in the making; what only the server can run */
    uint32_t day;
};

static void make_nodes(struct making *m)
{
    struct arena *a = &m->t.arena;
    uint32_t desk = 0, gpus = 0;
    for (size_t i = 0; i < ARRAY_LEN(machines); i++)
        m->t.nodes += machines[i].count;
    m->t.node = arena_array(a, struct event_node, m->t.nodes);
    struct event_node *n = m->t.node;
    for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
        const struct machine *k = &machines[i];
        for (uint32_t c = 0; c < k->count; c++, n++) {
            const char *name = k->count > 1 ? arena_printf(a, "%s%02u", k->name, ++desk) : k->name;
            *n = (struct event_node){ .name = str_of(name),
                                      .model = str_of(k->model),
                                      .gpus = k->gpus,
                                      .gpu_mem_mib = k->gpu_mem_gib * GIB,
                                      .cpu_milli = k->cpus * 1000,
                                      .mem_mib = k->mem_gib * GIB };
            if (m->lend && k->count > 1)
                n->pool = STR("desks");
            for (uint32_t g = 0; g < k->gpus; g++)
                n->link[g] = (uint8_t)(g / k->link_size);
            gpus += k->gpus;
        }
    }
    m->gpu_hours_a_day = 24.0 * (double)gpus;
    if (!m->lend)
        return;
    m->t.windows = 1;
    m->t.window = arena_array(a, struct trace_window, 1);
    m->t.window[0] = (struct trace_window){ "desks", LENT };
}

static void make_people(struct making *m)
{
    struct arena *a = &m->t.arena;
    m->t.tenants = TENANTS;
    m->t.tenant = arena_array(a, struct trace_tenant, TENANTS);
    for (uint32_t i = 0; i < TENANTS; i++) {
        const struct group *g = &groups[i];
        m->t.tenant[i] = (struct trace_tenant){ .name = g->name,
                                                .parent = g->parent,
                                                .weight_milli = g->weight * 1000,
                                                .guarantee_milli = g->guarantee_gpus * 1000,
                                                .limit = AMOUNTS_NO_LIMIT };
        if (g->limit_gpus)
            m->t.tenant[i].limit.of[RES_GPU] = g->limit_gpus * GPU_MILLI;
        m->user[i] = arena_array(a, const char *, g->users);
        struct str rest = str_of(g->user ? g->user : ""), one;
        for (uint32_t u = 0; u < g->users; u++) {
            str_cut(rest, ',', &one, &rest);
            m->user[i][u] =
                g->user ? arena_strndup(a, one.p, one.n) : arena_printf(a, "student%02u", u + 1);
        }
    }
}

/* The first names are the busiest. */
static uint32_t pick_user(struct making *m, uint32_t tenant)
{
    uint32_t n = groups[tenant].users;
    return MIN(rng_below(&m->rng, n), rng_below(&m->rng, n));
}

static int64_t pick_second(struct making *m, uint32_t when)
{
    uint32_t sum = 0, hour = 0;
    for (uint32_t h = 0; h < 24; h++)
        sum += hours[when][h];
    uint32_t at = rng_below(&m->rng, sum);
    while (at >= hours[when][hour])
        at -= hours[when][hour++];
    return (int64_t)m->day * DAY_S + hour * 3600 + rng_below(&m->rng, 3600);
}

static int64_t pick_duration_s(struct making *m, const struct kind *k, double scale)
{
    double min = scale * k->median_min * decay_pow2(k->spread * rng_normal(&m->rng));
    min = MIN(min, k->most_min);
    return (int64_t)(60.0 * MAX(min, 0.5));
}

/* People round up, and many do not say anything. */
static int64_t pick_estimate_s(struct making *m, int64_t duration_s)
{
    static const int64_t steps_s[] = { 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400 };
    if (rng_below(&m->rng, 10) < 3)
        return 0;
    double wanted = (double)duration_s * (0.9 + rng_exp(&m->rng, 0.8));
    for (size_t i = 0; i < ARRAY_LEN(steps_s); i++)
        if (wanted <= (double)steps_s[i])
            return steps_s[i];
    return 172800;
}

static enum priority pick_priority(struct making *m, uint32_t tenant, enum kind_id kind)
{
    uint32_t dice = rng_below(&m->rng, 100);
    if (week[m->day % 7].deadline == tenant && tenant != RESEARCH)
        return dice < 20 ? PRIO_HIGH : PRIO_NORMAL;
    if (kind == SWEEP)
        return dice < 40 ? PRIO_LOW : PRIO_NORMAL;
    return dice < 4 ? PRIO_LOW : dice < 97 ? PRIO_NORMAL : PRIO_HIGH;
}

struct wish {
    uint32_t tenant, user;
    enum kind_id kind;
    int64_t submit_s;
    double scale; /* of the duration */
    enum priority priority;
};

static void add_job(struct making *m, const struct wish *w)
{
    const struct kind *k = &kinds[w->kind];
    int64_t duration_s = pick_duration_s(m, k, w->scale);
    struct trace_job *j = &m->t.job[m->t.jobs];
    *j = (struct trace_job){
        .id = ++m->t.jobs,
        .submit_ms = w->submit_s * 1000,
        .duration_ms = duration_s * 1000,
        .estimate_ms = pick_estimate_s(m, duration_s) * 1000,
        .tenant = w->tenant,
        .user = m->user[w->tenant][w->user],
        .models = w->kind == NIGHT_8 ? "RTX A6000" : "",
        .gpus = k->replicas * k->gpus,
        .priority = w->priority,
        .request = { .replicas = k->replicas,
                     .cpu_milli = k->cpus * 1000,
                     .mem_mib = k->mem_gib * GIB,
                     .gpu_mem_mib = k->gpu_mem_gib * GIB,
                     .gpus = (uint16_t)k->gpus,
                     .gpu_milli = (uint16_t)k->gpu_milli,
                     .linked = k->linked },
    };
    double gpus = (double)j->gpus + (double)k->gpu_milli / 1000.0;
    double gpu_hours = gpus * (double)duration_s / 3600.0;
    m->asked += gpu_hours;
    m->asked_server += k->gpus > 1 ? gpu_hours : 0;
}

/* A sweep is one person's twenty jobs alike, sent by a script. */
static void add_wish(struct making *m, uint32_t tenant, enum kind_id kind, uint32_t when)
{
    struct wish w = { .tenant = tenant, .kind = kind, .scale = 1.0 };
    /* One after the other: the order inside an initialiser is the compiler's, and it draws. */
    w.user = pick_user(m, tenant);
    w.submit_s = pick_second(m, when);
    w.priority = pick_priority(m, tenant, kind);
    uint32_t n = kind == SWEEP ? SWEEP_JOBS : 1;
    if (kind == SWEEP)
        w.scale = decay_pow2(0.8 * rng_normal(&m->rng));
    for (uint32_t i = 0; i < n && m->t.jobs < (m->day + 1) * JOBS_PER_DAY_MAX; i++, w.submit_s += 2)
        add_job(m, &w);
}

/* How many of what comes `mean` times a day come today. */
static uint32_t pick_count(struct making *m, double mean)
{
    uint32_t n = 0;
    for (double t = rng_exp(&m->rng, 1.0); t < mean; t += rng_exp(&m->rng, 1.0))
        n++;
    return n;
}

/* The server runs what needs several GPUs, so no more of that than it can hold; and none on a
 * weekend, or the next week would begin with it. */
static enum kind_id pick_training(struct making *m)
{
    uint32_t dice = rng_below(&m->rng, 100);
    if (week[m->day % 7].trainings == MORNING || m->asked_server > 0.18 * m->asked)
        return dice < 70 ? NIGHT_1 : TRAIN;
    return dice < 55 ? NIGHT_2 : dice < 94 ? NIGHT_4 : NIGHT_8;
}

static void make_day(struct making *m)
{
    static const uint8_t trainers[] = { VISION,   VISION,   VISION,  LANGUAGE,
                                        LANGUAGE, LANGUAGE, ROBOTICS };
    const struct day *d = &week[m->day % 7];
    m->asked = m->asked_server = 0;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        const struct stream *s = &streams[i];
        double twice = d->deadline == s->tenant ? 2.0 : 1.0;
        for (uint32_t n = pick_count(m, s->per_day * d->activity * twice); n > 0; n--)
            add_wish(m, s->tenant, s->kind, s->when);
    }
    for (uint32_t n = pick_count(m, d->homework); n > 0; n--)
        add_wish(m, COURSE, HOMEWORK, CLASS);
    while (m->asked < d->demand * m->gpu_hours_a_day) {
        bool mine = d->deadline != RESEARCH && rng_below(&m->rng, 2);
        uint32_t tenant = mine ? d->deadline : trainers[rng_below(&m->rng, ARRAY_LEN(trainers))];
        add_wish(m, tenant, pick_training(m), d->trainings);
    }
}

/* Ids in the order of submission, as a real lab's would be. */
static int number_jobs(struct making *m, struct err *e)
{
    if (trace_finish(&m->t, e) < 0)
        return -1;
    for (uint32_t i = 0; i < m->t.jobs; i++) {
        m->t.job[i].id = i + 1;
        m->t.job[i].submit_ms += m->lend ? MONDAY_MS : 0;
    }
    return 0;
}

static void making_free(struct making *m)
{
    trace_free(&m->t);
}

int trace_make_lab(uint64_t seed, uint32_t days, bool lend, struct trace *out, struct err *e)
{
    AUTO(making_free) struct making m = { .rng = { seed }, .lend = lend };
    m.t.name = lend ? "lab, desks lent" : "lab";
    m.t.simulated = true;
    m.t.arena.limit = (size_t)512 << 20;
    if (days < 1 || days > DAYS_MAX) {
        err_set(e, ERR_INVALID, "a lab of %u days", days);
        return err_hint(e, "choose 1 to %u days; 7 are a week", DAYS_MAX);
    }
    make_nodes(&m);
    make_people(&m);
    m.t.job = arena_array(&m.t.arena, struct trace_job, days * JOBS_PER_DAY_MAX);
    for (m.day = 0; m.day < days; m.day++)
        make_day(&m);
    if (number_jobs(&m, e) < 0)
        return -1;
    *out = m.t;
    m.t = (struct trace){ 0 };
    return 0;
}
