/* From the engine's events to the life of a job, and from its life to the engine's verbs. */
#include <signal.h>
#include <stdio.h>

#include "control/after.h"
#include "control/environ.h"
#include "control/state.h"

#define EXIT_SAVED 85 /* after the freeze signal: its work is saved */

/* ---- a job's steps ---- */

int job_need_spec(struct control *c, struct entry *en, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s;
    if (en->spec_known)
        return 0;
    if (job_spec(c, en, &a, &s, e) < 0)
        return -1;
    entry_from_spec(en, &s);
    return 0;
}

int job_spec(struct control *c, const struct entry *en, struct arena *a, struct spec *out,
             struct err *e)
{
    struct store_scope all = { .everything = true };
    struct store_job row;
    if (store_job_get(c->config.store, &all, en->id, a, &row, e) < 0)
        return -1;
    /* Members of an array share the text of the first, unless they were made again. */
    if (row.fixed.spec.n == 0 && en->array &&
        store_job_get(c->config.store, &all, en->array, a, &row, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *d = json_read(row.fixed.spec, e);
    if (!d || spec_read_kept(json_root(d), a, out, e) < 0)
        return err_wrap(e, "spec of job %llu", (unsigned long long)en->id);
    out->array_index = en->array_index;
    return 0;
}

void job_release_run(struct control *c, struct entry *en)
{
    store_end_run(turn_open(c)->batch, en->id, en->now.run, en->now.state_ms);
    free(en->task);
    en->task = NULL;
    en->grace = loop_unwatch(en->grace);
    en->again = loop_unwatch(en->again);
    en->start_tries = 0;
}

bool job_move(struct control *c, struct entry *en, enum job_event what)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_JOB };
    enum job_state from = en->now.state, to;
    struct err e;
    ev.job = (struct event_job){ .id = { en->id }, .what = what };
    if (job_next(from, what, &to, &e) < 0 || turn_apply(c, &ev, &e) < 0) {
        log_event(c->config.log, LOG_ERROR_, "job.refused", "job=%llu state=%s event=%s why=%s",
                  (unsigned long long)en->id, job_state_name(from), job_event_name(what), e.msg);
        return false;
    }
    if (from == JOB_RUNNING && to != JOB_RUNNING)
        en->now.ran_ms += MAX(ev.t_ms - en->ran_since_ms, INT64_C(0));
    if (what == JOB_EV_RETURNED)
        en->now.ran_ms = 0; /* it starts anew, and so does its time */
    if (to == JOB_RUNNING && from != JOB_RUNNING)
        en->ran_since_ms = ev.t_ms;
    if (to == JOB_RUNNING) {
        book_set_text(&en->now.message, STR("")); /* how its start went */
        if (en->now.started_ms == 0)
            en->now.started_ms = ev.t_ms;
    }
    en->now.state = to;
    en->now.state_ms = ev.t_ms;
    en->taken = false; /* no move leads into being taken: see job_taken */
    if (job_state_holds(from) && !job_state_holds(to))
        job_release_run(c, en);
    if (to == JOB_QUEUED || to == JOB_FROZEN)
        book_set_text(&en->now.where, STR(""));
    if (job_state_ended(to))
        en->now.ended_ms = ev.t_ms;
    turn_save(c, en);
    if (to != from && (job_state_ended(to) || to == JOB_FROZEN || to == JOB_PAUSED))
        turn_tell_ear(c, en);
    if (job_state_ended(to)) {
        observe_ended(c, en);
        turn_bury(c, en);
        keep_wake(c);
        after_end_never(c);
    }
    turn_close_soon(c, true);
    return true;
}

/* [{"node":"desk1","gpus":[0,1],"milli":1000}], one for each replica */
static void write_where(struct control *c, const struct action *a, struct buf *out)
{
    struct json_out w = { .b = out };
    struct node_view n;
    json_begin(&w, NULL, '[');
    for (uint32_t i = 0; i < a->n; i++) {
        json_begin(&w, NULL, '{');
        json_put_str(&w, "node",
                     core_node(c->core, (node_id){ a->slots[i].node }, &n) ? str_of(n.name)
                                                                           : STR("?"));
        json_begin(&w, "gpus", '[');
        for (uint32_t g = 0; g < GPUS_PER_NODE_MAX; g++)
            if (a->slots[i].gpu_mask & (1u << g))
                json_put_u64(&w, NULL, g);
        json_end(&w, ']');
        json_put_u64(&w, "milli", a->slots[i].milli);
        json_end(&w, '}');
    }
    json_end(&w, ']');
}

static struct slot *copy_slots(const struct slot *slots, uint32_t n)
{
    struct slot *copy = xcalloc(n, sizeof *copy);
    memcpy(copy, slots, n * sizeof *copy);
    return copy;
}

static void put_run(struct control *c, struct entry *en, const struct action *a)
{
    struct job_view v = { 0 };
    struct node_view n = { 0 };
    core_job(c->core, a->job, &v);
    core_node(c->core, (node_id){ a->slots[0].node }, &n);
    struct store_run r = { .job = en->id,
                           .run = en->now.run,
                           .tenant = str_of(en->tenant),
                           .user = str_of(en->user),
                           .node = str_of(n.name ? n.name : ""),
                           .model = str_of(n.model ? n.model : ""),
                           .cpu_milli = (uint64_t)v.request.cpu_milli * a->n,
                           .mem_mib = (uint64_t)v.request.mem_mib * a->n,
                           .started_ms = en->now.state_ms };
    for (uint32_t i = 0; i < a->n; i++)
        r.gpu_milli += (uint64_t)__builtin_popcount(a->slots[i].gpu_mask) * a->slots[i].milli;
    store_put_run(turn_open(c)->batch, &r);
}

void job_placed(struct control *c, const struct action *a, int64_t now_ms)
{
    AUTO(buf_free) struct buf where = BUF(1 << 20);
    struct entry *en = book_find(&c->book, a->job.v);
    if (!en)
        abort(); /* core and book hold the same jobs */
    write_where(c, a, &where);
    book_set_text(&en->now.where, buf_str(&where));
    book_set_text(&en->now.message, STR(""));
    en->now.state = a->kind == ACT_THAW ? JOB_THAWING : JOB_STARTING;
    en->now.state_ms = now_ms;
    en->now.started_ms = 0;
    en->now.run++;
    en->task = xcalloc(a->n, sizeof *en->task);
    for (uint32_t i = 0; i < a->n; i++)
        en->task[i].state = TASK_STARTING;
    en->bad = NONE;
    en->failed_start = false;
    put_run(c, en, a);
    turn_save(c, en);
    turn_act(c, (struct act){ .kind = ACT_TASKS_START,
                              .job = en->id,
                              .run = en->now.run,
                              .replicas = a->n,
                              .slots = copy_slots(a->slots, a->n) });
    c->stats.starts++;
}

void job_stop(struct control *c, struct entry *en, enum task_end why)
{
    struct err e;
    int64_t grace_ms = job_need_spec(c, en, &e) < 0 ? 10000 : job_grace_ms(c, en);
    turn_act(c, (struct act){ .kind = ACT_TASKS_STOP,
                              .job = en->id,
                              .run = en->now.run,
                              .replicas = en->replicas,
                              .why = why,
                              .grace_ms = grace_ms });
}

/* ---- how it ended ---- */

static bool all_tasks(const struct entry *en, enum task_state a, enum task_state b)
{
    for (uint32_t i = 0; i < en->replicas; i++)
        if (en->task[i].state != a && en->task[i].state != b)
            return false;
    return true;
}

static bool all_codes(const struct entry *en, int code)
{
    for (uint32_t i = 0; i < en->replicas; i++)
        if (en->task[i].signal || en->task[i].code != code ||
            (en->task[i].why != END_EXITED && en->task[i].why != END_STOPPED))
            return false;
    return true;
}

/* The sentence that a person reads; what went before (a failed start, a cancel) stays. */
static void tell_end(struct entry *en, const struct task *t)
{
    AUTO(buf_free) struct buf text = BUF(400);
    if (en->replicas > 1 && en->bad != NONE)
        buf_printf(&text, "replica %u: ", en->bad);
    if (t->why == END_PROCESSES && t->limit)
        buf_printf(&text, "it reached its limit of %llu processes", (unsigned long long)t->limit);
    else if (t->why != END_EXITED && t->why != END_STOPPED)
        buf_addz(&text, task_end_text(t->why));
    else if (t->signal)
        buf_printf(&text, "killed by signal %d", t->signal);
    else if (t->code)
        buf_printf(&text, "exit code %d", t->code);
    else
        return;
    if (en->now.message.n == 0)
        book_set_text(&en->now.message, buf_str(&text));
}

/* A log with a hole looks like one without. */
static void tell_losses(struct entry *en)
{
    AUTO(buf_free) struct buf text = BUF(2048);
    uint64_t lost = 0;
    for (uint32_t i = 0; i < en->replicas; i++)
        lost += en->task[i].lost_bytes;
    if (lost == 0)
        return;
    buf_add(&text, en->now.message);
    buf_printf(&text, "%s%llu bytes of its output were lost: the disk was full", text.n ? "; " : "",
               (unsigned long long)lost);
    book_set_text(&en->now.message, buf_str(&text));
}

/* It failed where something is broken: then that is likely why. */
static void tell_trouble(struct control *c, struct entry *en)
{
    AUTO(buf_free) struct buf text = BUF(2048);
    struct job_view v;
    struct node_view at;
    if (!c->config.trouble || !core_job(c->core, (job_id){ en->id }, &v))
        return;
    buf_add(&text, en->now.message);
    size_t before = text.n;
    for (uint32_t i = 0; i < v.n; i++) {
        AUTO(buf_free) struct buf one = BUF(1024);
        if (!core_node(c->core, (node_id){ v.slots[i].node }, &at) ||
            !c->config.trouble(c->config.trouble_ctx, str_of(at.name), v.slots[i].gpu_mask, &one))
            continue;
        if (memmem(text.p ? text.p : "", text.n, one.p, one.n)) /* replicas of one machine */
            continue;
        buf_addz(&text, text.n ? "; " : "");
        buf_add(&text, buf_str(&one));
    }
    if (text.n > before)
        book_set_text(&en->now.message, buf_str(&text));
}

static enum job_event how_it_ended(struct entry *en, const struct task *t)
{
    bool good = all_codes(en, 0);
    bool freezing = en->now.state == JOB_FREEZING;
    bool lost = t->why == END_LOST && en->requeue;
    /* Its time is over for good; what was being frozen had its chance. */
    bool again = t->why != END_TIME_LIMIT && !freezing && en->now.fails < en->retries;
    /* The scheduler asked, not its user: once more than it says. */
    again |= en->taken && (t->why == END_EXITED || t->why == END_STOPPED) &&
             en->now.fails <= en->retries;
    if (en->now.state == JOB_STOPPING)
        return good && t->why == END_EXITED ? JOB_EV_EXITED_OK : JOB_EV_ENDED;
    if (good && t->why == END_EXITED)
        return JOB_EV_EXITED_OK;
    if (freezing && en->freeze == FREEZE_REQUEUE)
        return JOB_EV_FROZE;
    if (freezing && en->freeze == FREEZE_SIGNAL && all_codes(en, EXIT_SAVED))
        return JOB_EV_FROZE;
    if (!lost && !again)
        return JOB_EV_EXITED_BAD;
    en->now.fails += !lost;
    return JOB_EV_RETURNED;
}

static void finish(struct control *c, struct entry *en)
{
    const struct task t = en->task[en->bad != NONE ? en->bad : 0];
    struct act forget = {
        .kind = ACT_TASKS_FORGET, .job = en->id, .run = en->now.run, .replicas = en->replicas
    };
    bool begins = en->now.state == JOB_STARTING || en->now.state == JOB_THAWING;
    if (t.why == END_REMOVED && en->now.state != JOB_STOPPING) {
        book_set_text(&en->now.message, str_of(task_end_text(t.why)));
        book_set_text(&en->now.end, STR("cancelled"));
        job_move(c, en, JOB_EV_CANCEL);
    } else if (begins && !en->failed_start && t.why != END_LOST) {
        job_move(c, en, JOB_EV_STARTED); /* it was over before we heard that it ran */
    }
    enum job_event what = how_it_ended(en, &t);
    bool told = en->failed_start || en->now.state == JOB_STOPPING || en->now.state == JOB_FREEZING;
    if (!told || what == JOB_EV_EXITED_OK || what == JOB_EV_FROZE)
        book_set_text(&en->now.message, STR(""));
    if (en->taken)
        job_tell_taken(en, what, &t);
    en->now.exit_code = what == JOB_EV_FROZE ? 0 : t.code;
    en->now.exit_signal = what == JOB_EV_FROZE ? 0 : t.signal;
    if (what == JOB_EV_FROZE || what == JOB_EV_RETURNED) {
        book_set_text(&en->now.end, STR(""));
    } else if (what != JOB_EV_ENDED) {
        book_set_text(&en->now.end,
                      str_of(en->failed_start ? "start_failed" : task_end_name(t.why)));
    }
    if (what != JOB_EV_FROZE)
        tell_end(en, &t);
    tell_losses(en);
    if (what == JOB_EV_EXITED_BAD || what == JOB_EV_RETURNED)
        tell_trouble(c, en);
    job_move(c, en, what);
    turn_act(c, forget);
}

/* When all its tasks have come as far as the job waits for.  Not while the engine is still telling
 * what it knows: a task that is told as started may be told as paused next. */
void job_settle(struct control *c, struct entry *en)
{
    bool begins = en->now.state == JOB_STARTING || en->now.state == JOB_THAWING;
    if (!c->ready || !en->task)
        return;
    if (begins && en->bad == NONE && all_tasks(en, TASK_RUNNING, TASK_ENDED)) {
        book_set_text(&en->now.message, STR("")); /* how the start went */
        job_move(c, en, JOB_EV_STARTED);
    } else if (en->now.state == JOB_FREEZING && en->freeze == FREEZE_PAUSE && en->bad == NONE &&
               all_tasks(en, TASK_PAUSED, TASK_ENDED))
        job_move(c, en, JOB_EV_PAUSED);
}

/* Its tasks end one by one, each at its own time; else one that ends badly ends them all. */
static bool ends_one_by_one(const struct entry *en)
{
    return en->now.state == JOB_STOPPING ||
           (en->now.state == JOB_FREEZING && en->freeze != FREEZE_PAUSE);
}

static void task_ended(struct control *c, struct entry *en, uint32_t replica, struct task how)
{
    struct task *t = &en->task[replica];
    struct err e;
    if (job_need_spec(c, en, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "job.spec", "job=%llu why=%s",
                  (unsigned long long)en->id, e.msg);
    *t = how;
    t->state = TASK_ENDED;
    bool good = how.code == 0 && how.signal == 0 && how.why == END_EXITED;
    if (!good && en->bad == NONE)
        en->bad = replica;
    if (all_tasks(en, TASK_ENDED, TASK_ENDED))
        finish(c, en);
    else if (!good && !ends_one_by_one(en) && !en->observed) /* or others decide about theirs */
        job_stop(c, en, END_STOPPED);                        /* a gang runs whole or not at all */
    else
        job_settle(c, en);
    turn_close_soon(c, false);
}

/* ---- events ---- */

/* Its job is over, or in a later run: whatever it is, it must go.  Unless the store has lost the job. */
static void stray(struct control *c, const struct engine_event *ev)
{
    struct err e;
    char text[64];
    const struct engine_ops *ops = c->engine.ops;
    if (!ops || kept_stray(c, ev))
        return;
    bool over = ev->kind == ENGINE_ENDED || ev->kind == ENGINE_FAILED;
    int rc = over ? ops->forget(c->engine.self, ev->task, &e)
                  : ops->stop(c->engine.self, ev->task, 0, END_STOPPED, &e);
    log_event(c->config.log, over ? LOG_DEBUG_ : LOG_WARN_, "task.stray", "task=%s event=%s rc=%d",
              task_format(ev->task, text), engine_event_name(ev->kind), rc);
}

static void tell_progress(struct control *c, struct entry *en, const struct engine_event *ev)
{
    AUTO(buf_free) struct buf text = BUF(1200);
    bool freezes = en->ref && en->now.state == JOB_FREEZING; /* and is not let go */
    if (en->now.state != JOB_STARTING && en->now.state != JOB_THAWING && !freezes)
        return;
    if (en->start_tries && ev->progress.total == 0)
        return; /* why the last try failed says more than that this one has begun */
    if (freezes && en->taken)
        buf_printf(&text, "%.*s; ", STR_ARG(taken_text(en)));
    buf_add(&text, ev->progress.text);
    if (ev->progress.total)
        buf_printf(&text, " (%d %%)", (int)(ev->progress.done * 100 / ev->progress.total));
    book_set_text(&en->now.message, buf_str(&text));
    turn_save(c, en);
    turn_close_soon(c, false);
}

void tasks_event(struct control *c, const struct engine_event *ev)
{
    struct entry *en = book_find(&c->book, ev->task.job);
    if (!en || !en->task || ev->task.run != en->now.run || ev->task.replica >= en->replicas ||
        job_state_ended(en->now.state)) {
        stray(c, ev);
        return;
    }
    struct task *t = &en->task[ev->task.replica];
    struct task how = { .why = END_EXITED };
    if (t->state == TASK_ENDED)
        return; /* told again */
    if (ev->kind == ENGINE_PROGRESS) {
        if (t->state == TASK_UNKNOWN)
            t->state = TASK_STARTING;
        tell_progress(c, en, ev);
    } else if (ev->kind == ENGINE_STARTED || ev->kind == ENGINE_RESUMED) {
        t->state = TASK_RUNNING;
        job_settle(c, en);
    } else if (ev->kind == ENGINE_PAUSED) {
        t->state = TASK_PAUSED;
        job_settle(c, en);
    } else if (ev->kind == ENGINE_FAILED && job_start_later(c, en, ev)) {
        return;
    } else if (ev->kind == ENGINE_FAILED) {
        if (en->now.state != JOB_STOPPING)
            book_set_text(&en->now.message, str_of(ev->failed.msg));
        en->failed_start = true;
        how.code = 127;
        task_ended(c, en, ev->task.replica, how);
    } else {
        how = (struct task){ .why = ev->ended.why,
                             .code = ev->ended.code,
                             .signal = ev->ended.signal,
                             .limit = ev->ended.limit,
                             .lost_bytes = ev->ended.lost_bytes };
        task_ended(c, en, ev->task.replica, how);
    }
}

/* ---- acts ---- */

struct start_as {
    const struct act *act;
    const struct spec *spec;
    const struct account *account;
};

static int start_replica(struct control *c, struct entry *en, const struct start_as *as,
                         uint32_t replica, struct err *e)
{
    AUTO(arena_free) struct arena arena = { 0 };
    const struct act *a = as->act;
    const struct spec *s = as->spec;
    const struct account *ac = as->account;
    struct task_id task = { a->job, a->run, replica };
    struct environ_of of = { .task = task,
                             .spec = s,
                             .tenant = str_of(en->tenant),
                             .user = str_of(en->user),
                             .name = str_of(en->name),
                             .array = en->array,
                             .array_index = en->array_index,
                             .slots = a->slots,
                             .n_slots = a->replicas,
                             .restarts = a->run - 1 };
    struct node_view node = { 0 };
    core_node(c->core, (node_id){ a->slots[replica].node }, &node);
    struct engine_start start = { .task = task,
                                  .node = str_of(node.name ? node.name : ""),
                                  .spec = s,
                                  .user = { .name = str_of(ac->name),
                                            .home = str_of(ac->home),
                                            .uid = ac->uid,
                                            .gid = ac->gid,
                                            .groups = ac->groups,
                                            .n_groups = ac->n_groups },
                                  .home_else = str_of(ac->home_else ? ac->home_else : ""),
                                  .tenant = str_of(en->tenant),
                                  .slots = a->slots,
                                  .n_slots = a->replicas };
    if (!en->observed)
        start.env = environ_make(&of, &arena);
    if (s->max_time_ms)
        start.max_time_ms = MAX(s->max_time_ms - en->now.ran_ms, INT64_C(1));
    return c->engine.ops->start(c->engine.self, &start, e);
}

/* Of what others made only its name: there may be thousands at once, and each spec is a look into the store. */
static int spec_to_start(struct control *c, struct entry *en, struct arena *a, struct spec *out,
                         struct err *e)
{
    if (en->ref) {
        *out = (struct spec){ .observed = str_of(en->ref) };
        return 0;
    }
    if (job_spec(c, en, a, out, e) < 0)
        return -1;
    entry_from_spec(en, out);
    return 0;
}

static void start_tasks(struct control *c, struct entry *en, const struct act *a)
{
    AUTO(arena_free) struct arena arena = { 0 };
    static char none[] = "";
    const struct account nobody = { .name = none, .home = none }; /* of what others made */
    struct spec s = { 0 };
    struct err e;
    bool bad = spec_to_start(c, en, &arena, &s, &e) < 0;
    struct start_as as = { a, &s, &nobody };
    if (!bad && !en->observed) {
        as.account =
            account_of(&c->accounts, str_of(en->user), turn_open(c)->batch, control_now_ms(c), &e);
        if (!as.account && job_start_when_known(c, en, &e))
            return;
        bad = !as.account;
    }
    for (uint32_t i = 0; i < a->replicas; i++) {
        if (en->task[i].state != TASK_STARTING && en->task[i].state != TASK_UNKNOWN)
            continue;
        if (!bad && start_replica(c, en, &as, i, &e) == 0)
            continue;
        struct engine_event ev = { .kind = ENGINE_FAILED, .task = { a->job, a->run, i } };
        ev.failed = e;
        tasks_event(c, &ev);
        if (!en->task) /* that was the last one: the job is over */
            return;
    }
}

static void act_one(struct control *c, const struct act *a, struct task_id t)
{
    const struct engine_ops *ops = c->engine.ops;
    void *self = c->engine.self;
    struct err e;
    int rc = err_set(&e, ERR_UNAVAILABLE, "the engine cannot do it");
    switch (a->kind) {
    case ACT_TASKS_STOP: rc = ops->stop(self, t, a->grace_ms, a->why, &e); break;
    case ACT_TASKS_FREEZE:
        rc = ops->freeze ? ops->freeze(self, t, a->signo, a->grace_ms, &e)
           : ops->signal ? ops->signal(self, t, a->signo, &e)
                         : rc;
        break;
    case ACT_TASKS_PAUSE: rc = ops->pause ? ops->pause(self, t, &e) : rc; break;
    case ACT_TASKS_RESUME: rc = ops->resume ? ops->resume(self, t, &e) : rc; break;
    case ACT_TASKS_FORGET: rc = ops->forget(self, t, &e); break;
    case ACT_TASKS_START: break;
    }
    /* When the engine is away it is told again after its READY. */
    if (rc < 0)
        log_event(c->config.log, LOG_WARN_, "task.act", "job=%llu act=%d why=%s",
                  (unsigned long long)a->job, (int)a->kind, e.msg);
}

void tasks_act(struct control *c, const struct act *a)
{
    struct entry *en = book_find(&c->book, a->job);
    bool same_run = en && en->task && en->now.run == a->run;
    if (!c->engine.ops)
        return;
    if (a->kind == ACT_TASKS_START) {
        /* Not while the engine tells what runs: it could not be part of that, and after READY would
         * seem lost.  It is told again then. */
        if (same_run && c->ready)
            start_tasks(c, en, a);
        return;
    }
    for (uint32_t i = 0; i < a->replicas; i++) {
        bool over = same_run && en->task[i].state == TASK_ENDED;
        if (a->kind == ACT_TASKS_STOP && same_run && en->task[i].state == TASK_AGAIN) {
            task_ended(c, en, i, (struct task){ .why = a->why, .signal = SIGTERM });
            same_run = en->task != NULL; /* that was the last one, maybe */
            continue;
        }
        if (a->kind == ACT_TASKS_FORGET || (same_run && !over))
            act_one(c, a, (struct task_id){ a->job, a->run, i });
    }
}
