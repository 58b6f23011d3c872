/* Jobs that the engine knows and the store does not: it was lost, or is older than they are.  Each is made again
 * under its number, and goes on where it was: it waits, is held or frozen, or runs. */
#include "control/record.h"
#include "control/state.h"

/* One that is to be made again. */
struct again {
    uint64_t id;
    struct job_record r;
    struct spec spec;
    bool runs; /* its tasks are there, of the run after what the record says */
};

bool kept_left(const struct control *c, uint64_t job)
{
    uint64_t v;
    return map_get(&c->kept.left, job, &v);
}

/* ---- what runs and nobody knows ---- */

/* 1: the store has its row: it has ended, or lives. */
static int in_store(struct control *c, uint64_t id, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_scope all = { .everything = true };
    struct store_job row;
    if (store_job_get(c->config.store, &all, id, &a, &row, e) == 0)
        return 1;
    return e->code == ERR_NOT_FOUND ? 0 : -1;
}

static uint64_t task_key(struct task_id t)
{
    _Static_assert(REPLICAS_MAX <= 1 << 12, "a replica has twelve bits");
    return t.job << 12 | t.replica;
}

bool kept_blocks(const struct control *c)
{
    return c->kept.alive.n > 0 || c->kept.again;
}

void kept_ready(struct control *c)
{
    enum kept_again was = c->kept.again;
    c->kept.again = was == AGAIN_WANTED ? AGAIN_ASKED : AGAIN_NOT;
    if (was == AGAIN_WANTED)
        kept_try(c);
}

static void not_alive(struct control *c, struct task_id t)
{
    if (map_remove(&c->kept.alive, task_key(t)) && !kept_blocks(c)) {
        log_plain(c->config.log, LOG_INFO_, "tasks.clear");
        turn_close_soon(c, true);
    }
}

bool kept_stray(struct control *c, const struct engine_event *ev)
{
    char text[64];
    uint64_t v;
    struct err e;
    bool over = ev->kind == ENGINE_ENDED || ev->kind == ENGINE_FAILED;
    bool copied = kept_left(c, ev->task.job);
    /* Where the engine books its machines itself, what is left there is in nobody's way. */
    if (c->config.forget_tasks || !c->engine.caps[CAP_GPU_INDEX])
        return copied && !c->config.forget_tasks;
    if (over) {
        not_alive(c, ev->task);
        return copied; /* its end is told again to whoever makes its job again */
    }
    if (!copied && in_store(c, ev->task.job, &e) != 0)
        return false;
    if (map_get(&c->kept.alive, task_key(ev->task), &v))
        return true;
    map_set(&c->kept.alive, task_key(ev->task), 1);
    log_event(c->config.log, LOG_ERROR_, "task.unknown", "task=%s why=%s hint=%s",
              task_format(ev->task, text), "it runs, and the store does not know its job",
              KEPT_WAYS_OUT);
    return true;
}

static bool find_node(const struct control *c, struct str name, uint32_t *out, struct node_view *v)
{
    for (*out = 0; core_node(c->core, (node_id){ *out }, v); ++*out)
        if (name.n && str_is(name, v->name))
            return true;
    return false;
}

/* Any that are free: such an engine chooses them itself. */
static uint16_t free_gpus(const struct node_view *v, uint16_t taken, uint32_t n)
{
    uint16_t mask = 0;
    for (uint32_t g = 0; g < v->gpus && n; g++)
        if (v->gpu_free[g] == GPU_MILLI && !(taken & (1u << g))) {
            mask = (uint16_t)(mask | (1u << g));
            n--;
        }
    return mask;
}

static bool fill_slots(const struct control *c, const struct engine_kept *k,
                       const struct request *r, struct slot *slot)
{
    struct node_view v;
    for (uint32_t i = 0; i < r->replicas; i++) {
        uint16_t taken = 0;
        if (i >= k->nodes || !find_node(c, k->node[i], &slot[i].node, &v))
            return false;
        if (k->slots) {
            slot[i].gpu_mask = k->slots[i].gpu_mask;
            slot[i].milli = k->slots[i].milli;
            continue;
        }
        for (uint32_t j = 0; j < i; j++)
            if (slot[j].node == slot[i].node)
                taken |= slot[j].gpu_mask;
        slot[i].gpu_mask = free_gpus(&v, taken, r->gpus);
        slot[i].milli = r->gpus ? GPU_MILLI : 0;
    }
    return true;
}

static int place(struct control *c, const struct engine_kept *k, const struct again *g,
                 struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    uint32_t n = g->spec.request.replicas;
    struct slot *slot = arena_array(&a, struct slot, n);
    if (!fill_slots(c, k, &g->spec.request, slot))
        return err_set(e, ERR_CONFLICT, "not all of it has a machine");
    struct action act = { .kind = ACT_START, .job = { g->id }, .slots = slot, .n = n };
    struct event placed = action_event(&act, control_now_ms(c));
    if (turn_apply(c, &placed, e) < 0)
        return -1;
    job_placed(c, &act, placed.t_ms);
    return 0;
}

static void on_written(void *ctx)
{
    struct control *c = ctx;
    c->kept.unwritten--;
}

/* ---- what is known of it ---- */

/* From its tasks alone: a job of before there were copies, or whose copy was not written yet. */
static void read_tasks(const struct engine_event *ev, struct again *out)
{
    const struct engine_kept *k = &ev->kept;
    out->spec = *k->spec;
    out->r = (struct job_record){ .tenant = k->tenant,
                                  .user = k->user,
                                  .state = JOB_QUEUED,
                                  .run = ev->task.run - 1,
                                  .submitted_ms = k->made_ms };
    out->runs = true;
}

/* A copy is written after what it tells of: tasks of a later run are newer than it, those of an earlier one are of no
 * matter. */
static void weigh_tasks(const struct engine_event *ev, int64_t now_ms, struct again *g)
{
    struct job_record *r = &g->r;
    bool ending = r->state == JOB_FREEZING || r->state == JOB_STOPPING;
    uint32_t run = ev->task.run;
    if (run > r->run) {
        r->state = JOB_QUEUED;
        r->afters = 0;
        g->runs = true;
    } else if (ending && run && run == r->run) {
        g->runs = true;
    } else if (r->state == JOB_FREEZING) {
        r->state = JOB_FROZEN; /* it saved itself, or starts from what it had saved before */
    }
    if (!g->runs)
        return;
    r->run = run - 1;
    if (ev->kept.made_ms && ev->kept.made_ms < now_ms)
        r->ran_ms += now_ms - ev->kept.made_ms;
}

static int read_kept(struct control *c, const struct engine_event *ev, struct arena *a,
                     struct again *out, struct err *e)
{
    out->id = ev->task.job;
    if (ev->kept.record.n && record_read(ev->kept.record, a, &out->r, &out->spec, e) == 0) {
        weigh_tasks(ev, control_now_ms(c), out);
        return 0;
    }
    if (!ev->kept.spec)
        return -1;
    read_tasks(ev, out);
    return 0;
}

/* ---- making it again ---- */

/* How the jobs ended that it was to start after is known no more, when none of them is left. */
static bool drop_afters(struct control *c, struct job_record *r)
{
    bool lost = false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->afters; i++) {
        const struct after *a = &r->after[i];
        struct job_view v;
        bool alive = false;
        for (uint32_t k = 0; k < a->n && !alive && a->when != AFTER_NEVER; k++)
            alive = core_job(c->core, (job_id){ a->first.v + k }, &v);
        if (alive)
            r->after[n++] = *a;
        else
            lost |= a->when != AFTER_ANY;
    }
    r->afters = n;
    return lost;
}

/* What was being done to it when the store was lost. */
static void go_on(struct control *c, struct entry *en, const struct job_record *r)
{
    if (r->state == JOB_STOPPING) {
        book_set_text(&en->now.message, STR("cancelled; our store was lost meanwhile"));
        book_set_text(&en->now.end, STR("cancelled"));
        job_move(c, en, JOB_EV_CANCEL);
    } else if (r->state == JOB_FREEZING && en->task) {
        job_move(c, en, JOB_EV_STARTED);
        job_move(c, en, JOB_EV_FREEZE);
        if (r->awake)
            job_move(c, en, JOB_EV_THAW);
        book_set_text(&en->now.message, r->message);
    }
}

static int make_again(struct control *c, const struct engine_event *ev, struct again *g,
                      struct err *e)
{
    unsigned long long number = g->id;
    bool lost = drop_afters(c, &g->r);
    if (lost && g->r.state == JOB_QUEUED && !g->runs) {
        g->r.state = JOB_HELD;
        g->r.message = STR("how the jobs ended that it was to start after was lost with our store; "
                           "release it if it may start");
    }
    struct submit_kept s = { .id = g->id, .r = &g->r, .spec = &g->spec, .runs = g->runs };
    struct entry *en = submit_again(c, &s, e);
    if (!en)
        return -1;
    c->kept.unwritten++;
    turn_done(c, (struct control_done){ on_written, c });
    log_event(c->config.log, LOG_WARN_, "job.kept", "job=%llu user=%.*s run=%u state=%s", number,
              STR_ARG(g->r.user), g->r.run, job_state_name(en->now.state));
    if (g->runs && place(c, &ev->kept, g, e) < 0) {
        /* It runs again, under the next number: what there is of it goes. */
        en->now.run = ev->task.run;
        turn_save(c, en);
        log_event(c->config.log, LOG_WARN_, "job.kept", "job=%llu why=%s", number, e->msg);
    }
    go_on(c, en, &g->r);
    return 0;
}

/* Its tasks are a job's again. */
static void stop_minding(struct control *c, const struct engine_event *ev)
{
    for (uint32_t i = 0; i < ev->kept.nodes && !kept_left(c, ev->task.job); i++)
        not_alive(c, (struct task_id){ ev->task.job, ev->task.run, i });
}

/* The store is older than the start: it waits there, and runs.  What the store thinks is running may have its place
 * until the engine has told all it knows: then it is tried again. */
static void take_up(struct control *c, const struct engine_event *ev, struct entry *en)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct again g = { .id = en->id };
    uint32_t run = en->now.run;
    struct err e;
    if (!ev->kept.slots || read_kept(c, ev, &a, &g, &e) < 0 || !g.runs)
        return;
    en->now.run = g.r.run;
    if (place(c, &ev->kept, &g, &e) == 0) {
        go_on(c, en, &g.r);
        return;
    }
    en->now.run = run;
    if (!c->ready) {
        map_set(&c->kept.left, en->id, 1);
        c->kept.again = AGAIN_WANTED;
        *ev->kept.out_left = true;
        return;
    }
    log_event(c->config.log, LOG_WARN_, "job.kept", "job=%llu why=%s", (unsigned long long)en->id,
              e.msg);
}

static void leave(struct control *c, const struct engine_event *ev, const struct err *e)
{
    uint64_t id = ev->task.job;
    log_event(c->config.log, LOG_ERROR_, "job.left", "job=%llu why=%s hint=%s",
              (unsigned long long)id, e->msg,
              "it is kept as it is, and made again when it can be: when its tenant is there");
    map_set(&c->kept.left, id, 1);
    *ev->kept.out_left = true;
}

void kept_event(struct control *c, const struct engine_event *ev)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct again g = { 0 };
    uint64_t id = ev->task.job;
    struct err e = { 0 };
    if (id == 0) {
        spare_numbers(c, &ev->kept);
        return;
    }
    struct entry *en = book_find(&c->book, id);
    if (en) {
        map_remove(&c->kept.left, id);
        if (en->now.state == JOB_QUEUED && ev->task.run > en->now.run)
            take_up(c, ev, en);
        stop_minding(c, ev);
        return;
    }
    int known = in_store(c, id, &e);
    if (known > 0) { /* its end is on the disk: the copy is old */
        if (ev->kept.record.n)
            spare_touch(c, id);
        turn_close_soon(c, false);
        return;
    }
    spare_skip(c, id);
    if (known < 0 || read_kept(c, ev, &a, &g, &e) < 0 || make_again(c, ev, &g, &e) < 0)
        leave(c, ev, &e);
    else
        map_remove(&c->kept.left, id);
    stop_minding(c, ev);
}

void kept_try(struct control *c)
{
    struct err e;
    if (c->kept.left.n && c->engine.ops && c->ready && c->engine.ops->sync(c->engine.self, &e) < 0)
        log_event(c->config.log, LOG_WARN_, "job.left", "why=%s", e.msg);
}
