#include "control/control.h"

#include <stdio.h>

#include "control/state.h"

/* It is asked every other second. */
#define SILENT_MS INT64_C(10000)

static const struct {
    const char *name, *help;
} verbs[] = {
#define X(id, name, help) { name, help },
    CONTROL_VERBS(X)
#undef X
};

const char *control_verb_name(enum control_verb v)
{
    return (size_t)v < ARRAY_LEN(verbs) ? verbs[v].name : NULL;
}

const char *control_verb_help(enum control_verb v)
{
    return (size_t)v < ARRAY_LEN(verbs) ? verbs[v].help : NULL;
}

int64_t control_now_ms(const struct control *c)
{
    return clock_now_ms(&c->config.clock);
}

/* A policy that is said again makes the core look at everything anew; one that stayed is not said. */
static int set_policy(struct control *c, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_POLICY };
    ev.policy = c->config.policy;
    if (memcmp(&c->policy, &ev.policy, sizeof ev.policy) == 0)
        return 0;
    if (turn_apply(c, &ev, e) < 0)
        return -1;
    c->policy = ev.policy;
    return 0;
}

struct control *control_new(const struct control_config *config, struct err *e)
{
    AUTO(control_free_p) struct control *c = xcalloc(1, sizeof *c);
    c->config = *config;
    c->homes = xstrdup(config->homes);
    c->core = core_new();
    c->accounts = (struct accounts){ .uid_base = config->uid_base,
                                     .uid_min = config->uid_min,
                                     .single_user = config->single_user,
                                     .nss = config->nss,
                                     .homes = c->homes };
    turn_init(c);
    keep_init(c);
    audit_init(c);
    jump_init(c);
    observe_init(c);
    if (accounts_load(&c->accounts, config->store, e) < 0 || recover(c, e) < 0 ||
        fairness_load(c, e) < 0 || set_policy(c, e) < 0 || tenants_load(c, e) < 0 ||
        pools_load(c, e) < 0)
        return NULL;
    c->config.tenant = NULL; /* borrowed for this call */
    c->config.pool = NULL;
    spare_load(c);
    turn_close_soon(c, false);
    return TAKE(c);
}

struct control *control_free(struct control *c)
{
    if (!c)
        return NULL;
    loop_unwatch(c->close_turn);
    loop_unwatch(c->clock_turn);
    loop_unwatch(c->begin_turn);
    keep_free(c);
    audit_free(c);
    jump_free(c);
    observe_free(c);
    map_free(&c->kept.left);
    map_free(&c->kept.alive);
    spare_free(c);
    pools_free(c);
    tenants_free(c);
    turn_free(c->open);
    if (c->written)
        c->written->c = NULL; /* the store has it still */
    book_free(&c->book);
    accounts_free(&c->accounts);
    fleet_free(c);
    free(c->watch);
    free(c->ended);
    free(c->homes);
    core_free(c->core);
    arena_free(&c->arena);
    free(c);
    return NULL;
}

void control_free_p(struct control **c)
{
    *c = control_free(*c);
}

int control_start(struct control *c, struct engine engine, struct err *e)
{
    c->engine = engine;
    return engine.ops->sync(engine.self, e);
}

bool control_ready(const struct control *c, struct err *why_not)
{
    struct err ignored;
    struct err *e = why_not ? why_not : &ignored;
    if (store_failing(c->config.store, e))
        return false;
    if (store_on_reserve(c->config.store)) {
        err_set(e, ERR_UNAVAILABLE,
                "the disk of the store is full: what ends is recorded in the room that was kept "
                "for it, and nothing new is taken");
        err_hint(e, "make room there (df -h), or cancel what fills it; it goes on by itself");
        return false;
    }
    if (c->ready && kept_blocks(c)) {
        err_set(e, ERR_UNAVAILABLE,
                "%zu tasks run whose jobs the store does not know: nothing is started beside them",
                c->kept.alive.n);
        err_hint(e, "%s", KEPT_WAYS_OUT);
        return false;
    }
    if (c->ready && c->kept.unwritten == 0)
        return true;
    if (c->ready) {
        err_set(e, ERR_UNAVAILABLE, "jobs that the store had lost are being written down again");
        err_hint(e, "it takes moments; try again");
        return false;
    }
    err_set(e, ERR_UNAVAILABLE, "the engine has not answered yet");
    err_hint(e, "it should within seconds; else see the log of nightshift-keeper");
    return false;
}

int64_t control_heard_ms(const struct control *c)
{
    const struct engine *en = &c->engine;
    return en->ops && en->ops->heard_ms ? en->ops->heard_ms(en->self) : -1;
}

bool control_answers(const struct control *c, struct err *why_not)
{
    int64_t heard_ms = control_heard_ms(c);
    if (heard_ms <= SILENT_MS)
        return true;
    err_set(why_not, ERR_UNAVAILABLE, "nightshift-keeper has not answered for %lld s",
            (long long)(heard_ms / 1000));
    err_hint(why_not, "jobs wait until it does; see its log, and ps -o stat,wchan -C "
                      "nightshift-keeper");
    return false;
}

void control_stop(struct control *c)
{
    c->stopping = true;
    fairness_write(c, true);
    turn_flush(c);
}

/* ---- machines ---- */

int control_node_state(struct control *c, struct str node, enum node_state state,
                       struct control_done done, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_NODE_STATE };
    ev.node_state = (struct event_node_state){ .name = node, .state = state };
    if (turn_apply(c, &ev, e) < 0)
        return -1;
    turn_done(c, done);
    turn_close_soon(c, true);
    return 0;
}

/* ---- the engine's events ---- */

/* What its tasks do is not known until the engine tells again. */
static void forget_tasks(struct entry *en)
{
    for (uint32_t i = 0; en->task && i < en->replicas; i++)
        if (en->task[i].state != TASK_ENDED)
            en->task[i].state = TASK_UNKNOWN;
}

void control_engine_event(void *control, const struct engine_event *ev)
{
    struct control *c = control;
    switch (ev->kind) {
    case ENGINE_READY:
        if (!c->ready) {
            c->ready = c->was_ready = true;
            recover_tasks(c);
            spare_ready(c);
            observe_await(c);
            log_plain(c->config.log, LOG_INFO_, "engine.ready");
            turn_tell(c);
        }
        kept_ready(c);
        turn_close_soon(c, true);
        return;
    case ENGINE_AWAY:
        c->ready = false;
        for (size_t i = 0; i < c->book.n; i++)
            forget_tasks(c->book.at[i]);
        log_plain(c->config.log, LOG_WARN_, "engine.away");
        turn_tell(c);
        return;
    case ENGINE_NODE: fleet_event(c, ev); return;
    case ENGINE_PROGRESS:
    case ENGINE_STARTED:
    case ENGINE_FAILED:
    case ENGINE_PAUSED:
    case ENGINE_RESUMED:
    case ENGINE_ENDED: tasks_event(c, ev); return;
    case ENGINE_OBSERVED:
    case ENGINE_VANISHED:
    case ENGINE_TRAITS: observe_event(c, ev); return;
    case ENGINE_KEPT: kept_event(c, ev); return;
    case ENGINE_RECORD: spare_record(c, ev); return;
    case ENGINE_EVENT_COUNT: break;
    }
    abort();
}

/* ---- looking ---- */

struct core *control_core(struct control *c)
{
    return c->core;
}

const struct policy *control_policy(const struct control *c)
{
    return &c->policy;
}

bool control_uid_of_jobs(const struct control *c, uint32_t uid, struct str *out_user)
{
    return account_uid_is_ours(&c->accounts, uid, out_user);
}

bool control_asks_for(struct control *c, struct str user)
{
    return account_is_asked(&c->accounts, user);
}

const struct engine *control_engine(const struct control *c)
{
    return &c->engine;
}

struct store_batch *control_batch(struct control *c)
{
    return turn_open(c)->batch;
}

void control_commit(struct control *c, struct control_done done)
{
    turn_done(c, done);
    turn_close_soon(c, false);
}

struct control_stats control_stats(const struct control *c)
{
    struct control_stats s = c->stats;
    s.living = c->book.n;
    s.logs_removed = c->keeping.logs_removed;
    return s;
}

int control_watch(struct control *c, loop_fn *fn, void *ctx)
{
    for (size_t i = 0; i < c->watches; i++)
        if (!c->watch[i].fn) {
            c->watch[i] = (struct watcher){ fn, ctx };
            return (int)i;
        }
    vec_grow(c->watch, c->watches, c->watch_cap);
    c->watch[c->watches] = (struct watcher){ fn, ctx };
    return (int)c->watches++;
}

void control_unwatch(struct control *c, int watch)
{
    c->watch[watch] = (struct watcher){ 0 };
}

int control_task(struct control *c, uint64_t job, uint32_t replica, struct task_id *out,
                 struct err *e)
{
    struct entry *en = book_find(&c->book, job);
    if (!en || !en->task) {
        err_set(e, ERR_CONFLICT, "job %llu is %s: nothing of it runs", (unsigned long long)job,
                en ? job_state_name(en->now.state) : "over");
        return err_hint(e, "see why: nightshift why %llu", (unsigned long long)job);
    }
    if (replica >= en->replicas)
        return err_set(e, ERR_NOT_FOUND, "job %llu has replicas 0 to %u", (unsigned long long)job,
                       en->replicas - 1);
    *out = (struct task_id){ job, en->now.run, replica };
    return 0;
}
