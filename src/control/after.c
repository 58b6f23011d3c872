#include "control/after.h"

#include "control/state.h"

#define LOOK_COST 16 /* reading a row costs about as much as looking at so many jobs in memory */

#define BAD_STATES (1u << JOB_FAILED | 1u << JOB_CANCELLED)

/* How the named jobs stand. */
struct standing {
    uint64_t first;
    uint32_t n, alive;
    bool spoiled;         /* one that has ended has not succeeded */
    enum job_state state; /* of one that spoiled it, or of the job itself */
};

/* Ended in a turn that is not in the store yet. */
static bool ended_lately(const struct control *c, uint64_t id, enum job_state *out)
{
    uint64_t state;
    if (!(c->open && map_get(&c->open->over, id, &state)) &&
        !(c->written && map_get(&c->written->over, id, &state)))
        return false;
    *out = (enum job_state)state;
    return true;
}

static void note_end(struct standing *s, enum job_state state)
{
    if (s->spoiled)
        return;
    s->state = state;
    s->spoiled = state != JOB_SUCCEEDED;
}

/* The ids of an array follow one another from its first on. */
static int measure_array(struct control *c, struct standing *s, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_scope all = { .everything = true };
    struct store_filter last = { .array = s->first, .limit = 1 };
    struct store_filter bad = { .array = s->first, .limit = 1, .states = BAD_STATES };
    struct store_jobs jobs;
    if (store_jobs_list(c->config.store, &all, &last, &a, &jobs, e) < 0)
        return -1;
    s->n = jobs.n ? (uint32_t)(jobs.v[0].fixed.id - s->first + 1) : 1;
    if (store_jobs_list(c->config.store, &all, &bad, &a, &jobs, e) < 0)
        return -1;
    if (jobs.n)
        note_end(s, jobs.v[0].now.state);
    return 0;
}

static void count_alive(struct control *c, struct standing *s)
{
    struct job_view v;
    enum job_state state;
    for (uint32_t i = 0; i < s->n; i++)
        if (core_job(c->core, (job_id){ s->first + i }, &v))
            s->alive++;
        else if (ended_lately(c, s->first + i, &state))
            note_end(s, state);
}

static int stand(struct control *c, const struct store_scope *sees, uint64_t id,
                 struct standing *out, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    const struct store_scope nobody = { 0 };
    struct store_job row;
    *out = (struct standing){ .first = id, .n = 1, .state = JOB_SUCCEEDED };
    if (store_job_get(c->config.store, sees ? sees : &nobody, id, &a, &row, e) < 0) {
        e->code = e->code == ERR_NOT_FOUND ? ERR_INVALID : e->code;
        return -1;
    }
    if (row.fixed.array == id && measure_array(c, out, e) < 0)
        return -1;
    if (job_state_ended(row.now.state))
        note_end(out, row.now.state);
    count_alive(c, out);
    return 0;
}

static int impossible(const struct standing *s, enum after_when when, struct err *e)
{
    err_set(e, ERR_CONFLICT, "%s %llu has %s: a job that starts %s could never start",
            s->n > 1 ? "a job of array" : "job", (unsigned long long)s->first,
            s->state == JOB_CANCELLED ? "been cancelled" : job_state_name(s->state),
            when == AFTER_OK ? "after its success" : "after its failure");
    if (s->n > 1 && !s->spoiled)
        err_set(e, ERR_CONFLICT,
                "array %llu has succeeded: a job that starts after its failure "
                "could never start",
                (unsigned long long)s->first);
    return err_hint(e, "run that again and name the new one, or write any:%llu",
                    (unsigned long long)s->first);
}

/* 1: it has to be waited for; 0: it is met. */
static int judge(const struct standing *s, enum after_when when, struct after *out, struct err *e)
{
    bool over = s->alive == 0;
    if (when == AFTER_OK && s->spoiled)
        return impossible(s, when, e);
    if (when == AFTER_BAD && over && !s->spoiled)
        return impossible(s, when, e);
    /* Once one of an array has failed, its failure is sure and only its end is waited for. */
    *out = (struct after){ .first = { s->first },
                           .n = s->n,
                           .when = when == AFTER_BAD && s->spoiled ? AFTER_ANY : (uint8_t)when };
    return !over;
}

int after_resolve(struct control *c, struct after_look *look, const struct spec *s,
                  struct afters *out, struct err *e)
{
    *out = (struct afters){ .v = arena_array(look->arena, struct after, s->n_after + 1) };
    for (uint32_t i = 0; i < s->n_after; i++) {
        struct standing st = { 0 };
        int open = -1;
        if (look->left == 0)
            err_set(e, ERR_TOO_LARGE, "one submit waits for more than %u jobs", AFTER_LOOKS_MAX);
        else if (stand(c, look->sees, s->after[i].job, &st, e) == 0)
            open = judge(&st, s->after[i].when, &out->v[out->n], e);
        if (open < 0) {
            err_wrap(e, "field 'after'");
            return err_about(e, "after");
        }
        out->n += open > 0;
        look->left -= MIN(look->left, st.n + LOOK_COST);
    }
    return 0;
}

/* ---- what can never start ---- */

static void tell_never(struct control *c, struct entry *en, const struct never *n)
{
    static const char *const how[] = {
        [AFTER_OK] = "had succeeded", [AFTER_ANY] = "had ended", [AFTER_BAD] = "had failed"
    };
    AUTO(buf_free) struct buf text = BUF(300);
    const struct entry *by = book_find(&c->book, n->by.v);
    const char *state = by ? job_state_name(by->now.state) : "ended otherwise";
    unsigned long long first = n->after.first.v;
    bool one = n->after.n == 1;
    if (n->after.when == AFTER_NEVER)
        buf_printf(&text, "it was to start after job %llu, which ended otherwise", first);
    else if (one)
        buf_printf(&text, "it was to start after job %llu %s, which", first, how[n->after.when]);
    else
        buf_printf(&text, "it was to start after array %llu %s, of which job %llu", first,
                   how[n->after.when], (unsigned long long)n->by.v);
    if (n->after.when != AFTER_NEVER)
        buf_printf(&text, " %s%s", by && by->now.state == JOB_CANCELLED ? "was " : "", state);
    book_set_text(&en->now.message, buf_str(&text));
    book_set_text(&en->now.end, STR("after_unmet"));
}

void after_end_never(struct control *c)
{
    struct never n;
    if (c->ending) /* the end of one may be the end of the next: in a row, not one inside the other */
        return;
    c->ending = true;
    while (core_never(c->core, &n)) {
        struct entry *en = book_find(&c->book, n.job.v);
        if (!en)
            abort(); /* core and book hold the same jobs */
        tell_never(c, en, &n);
        if (!job_move(c, en, JOB_EV_CANCEL))
            abort(); /* a job that waits can be cancelled */
    }
    c->ending = false;
}
