/* One turn: what was gathered is decided on, written down, and then done. */
#include "control/state.h"
#include "journal/journal.h"
#include "sys/failpoint.h"

#define BEGIN_LOOK_MS INT64_C(10000)
#define BEGIN_LEAST_MS                                                                             \
    INT64_C(20) /* a policy that reviews all the time must not take all the time */

struct turn *turn_open(struct control *c)
{
    if (!c->open) {
        c->open = xcalloc(1, sizeof *c->open);
        c->open->c = c;
        c->open->batch = store_batch_new(c->config.store);
    }
    return c->open;
}

void turn_free(struct turn *t)
{
    if (!t)
        return;
    store_batch_free(t->batch);
    for (size_t i = 0; i < t->acts; i++)
        free(t->act[i].slots);
    free(t->act);
    free(t->done);
    for (size_t i = 0; i < t->keys; i++)
        free(t->key[i].text);
    free(t->key);
    map_free(&t->over);
    free(t->touched);
    free(t->waiting);
    free(t);
}

static void write_journal(struct control *c, const struct event *ev)
{
    AUTO(buf_free) struct buf line = BUF(JOURNAL_LINE_MAX);
    journal_write(ev, &line);
    struct str text = buf_str(&line);
    if (text.n && text.p[text.n - 1] == '\n')
        text.n--;
    store_add_journal(turn_open(c)->batch, ev->t_ms, text);
}

int turn_apply(struct control *c, const struct event *ev, struct err *e)
{
    if (core_apply(c->core, ev, e) < 0)
        return -1;
    write_journal(c, ev);
    return 0;
}

void turn_act(struct control *c, struct act a)
{
    struct turn *t = turn_open(c);
    vec_grow(t->act, t->acts, t->act_cap);
    t->act[t->acts++] = a;
}

void turn_done(struct control *c, struct control_done d)
{
    turn_add_done(turn_open(c), d);
}

void turn_add_done(struct turn *t, struct control_done d)
{
    if (!d.fn)
        return;
    vec_grow(t->done, t->dones, t->done_cap);
    t->done[t->dones++] = d;
}

/* What /v1/events says about a job. */
void turn_event(struct control *c, struct entry *en)
{
    AUTO(buf_free) struct buf body = BUF(64 << 10);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "job", en->id);
    json_put_str(&w, "tenant", str_of(en->tenant));
    json_put_str(&w, "user", str_of(en->user));
    json_put_str(&w, "name", str_of(en->name));
    json_put_str(&w, "state", str_of(job_state_name(en->now.state)));
    json_put_u64(&w, "run", en->now.run);
    if (job_state_ended(en->now.state)) {
        json_put_i64(&w, "exit_code", en->now.exit_code);
        json_put_i64(&w, "exit_signal", en->now.exit_signal);
        json_put_str(&w, "end", en->now.end);
    }
    if (en->now.message.n)
        json_put_str(&w, "message", en->now.message);
    json_end(&w, '}');
    struct turn *t = turn_open(c);
    store_add_event(t->batch, control_now_ms(c), "job", str_of(en->tenant), en->id, buf_str(&body));
    t->events = true;
    life_tell(c, en);
}

void turn_tell_ear(struct control *c, const struct entry *en)
{
    struct store_job j = { .fixed = { .id = en->id,
                                      .tenant = str_of(en->tenant),
                                      .user = str_of(en->user),
                                      .name = str_of(en->name),
                                      .replicas = en->replicas,
                                      .gpu_milli = en->gpu_milli,
                                      .array = en->array,
                                      .array_index = en->array_index },
                           .now = en->now };
    if (c->config.ear.job)
        c->config.ear.job(c->config.ear.ctx, turn_open(c)->batch, &j);
}

void turn_changed(struct control *c, const struct change *ch, struct control_done done)
{
    AUTO(buf_free) struct buf body = BUF(64 << 10);
    struct json_out w = { .b = &body };
    json_begin(&w, NULL, '{');
    json_put_str(&w, ch->noun, ch->name);
    json_put_str(&w, "what", str_of(ch->what));
    json_put_str(&w, "by", ch->by);
    json_end(&w, '}');
    struct turn *t = turn_open(c);
    store_add_event(t->batch, control_now_ms(c), ch->noun, STR(""), 0, buf_str(&body));
    t->events = true;
    char name[32];
    snprintf(name, sizeof name, "%s.changed", ch->noun);
    log_event(c->config.log, LOG_INFO_, name, "name=%.*s what=%s by=%.*s", STR_ARG(ch->name),
              ch->what, STR_ARG(ch->by));
    turn_done(c, done);
    turn_close_soon(c, true);
}

void turn_save(struct control *c, struct entry *en)
{
    store_set_job(turn_open(c)->batch, en->id, &en->now);
    if (!en->observed) /* the cluster has those itself */
        spare_touch(c, en->id);
    turn_event(c, en);
}

void turn_bury(struct control *c, struct entry *en)
{
    vec_grow(c->ended, c->ends, c->end_cap);
    c->ended[c->ends++] = en;
    map_set(&turn_open(c)->over, en->id, en->now.state);
}

/* ---- decide ---- */

const uint32_t control_pass_bound_us[] = {
#define X(us) us,
    CONTROL_PASS_BOUNDS_US(X)
#undef X
};

static void count_pass(struct control_stats *s, uint64_t took_ns)
{
    size_t i = 0;
    while (i < CONTROL_PASS_BOUNDS && took_ns > control_pass_bound_us[i] * UINT64_C(1000))
        i++;
    s->passes++;
    s->pass_took[i]++;
    s->pass_ns_sum += took_ns;
}

static void act_on(struct control *c, const struct action *a, int64_t now_ms)
{
    switch (a->kind) {
    case ACT_START:
    case ACT_THAW: job_placed(c, a, now_ms); return;
    case ACT_TAKE: job_taken(c, a); return;
    case ACT_PROMISE: return; /* the pass that finds the slots free starts it */
    }
    abort();
}

static void decide(struct control *c)
{
    struct plan plan = { 0 };
    int64_t now_ms = control_now_ms(c), from_ns = clock_mono_ns();
    arena_reset(&c->arena);
    tenants_review(c);
    fleet_review(c);
    core_pass(c->core, now_ms, &c->arena, &plan);
    uint64_t took_ns = (uint64_t)(clock_mono_ns() - from_ns);
    count_pass(&c->stats, took_ns);
    write_journal(c, &(struct event){ .t_ms = now_ms, .kind = EVENT_PASS });
    for (size_t i = 0; i < plan.n; i++) {
        struct event ev = action_event(&plan.action[i], now_ms);
        write_journal(c, &ev);
    }
    for (size_t i = 0; i < plan.n; i++) /* what follows from one is no part of the pass */
        act_on(c, &plan.action[i], now_ms);
    pools_lend(c);
}

/* ---- persist, act ---- */

void turn_tell(struct control *c)
{
    for (size_t i = 0; i < c->watches; i++)
        if (c->watch[i].fn)
            c->watch[i].fn(c->watch[i].ctx);
}

static void on_durable(void *ctx)
{
    struct turn *t = ctx;
    struct control *c = t->c;
    if (!c) {
        turn_free(t);
        return;
    }
    c->written = NULL;
    fail_point("control.durable");
    c->stats.commits++;
    if (c->config.ear.durable)
        c->config.ear.durable(c->config.ear.ctx);
    spare_durable(c, t);
    for (size_t i = 0; i < t->acts; i++)
        tasks_act(c, &t->act[i]);
    fail_point("control.acted");
    for (size_t i = 0; i < t->dones; i++)
        t->done[i].fn(t->done[i].ctx);
    bool events = t->events;
    turn_free(t);
    if (events)
        turn_tell(c);
    if (c->open || c->want_pass)
        loop_wakeup_send(c->close_turn);
}

/* When something is due because of time alone. */
static int64_t next_ms(struct control *c)
{
    int64_t core_ms = core_wake_ms(c->core), tenants_ms = tenants_wake_ms(c);
    return MIN(core_ms, tenants_ms);
}

/* The core says when a job's time comes, by the wall clock, which may be set while we wait: so never
 * for longer than BEGIN_LOOK_MS. */
static void set_begin(struct control *c)
{
    int64_t wake_ms = next_ms(c), now_ms = control_now_ms(c);
    int64_t wait_ms = wake_ms > now_ms ? MIN(wake_ms - now_ms, BEGIN_LOOK_MS) : 0;
    if (wake_ms == INT64_MAX || c->want_pass) /* a pass that is wanted already sees to it */
        loop_timer_clear(c->begin_turn);
    else
        loop_timer_set(c->begin_turn, (uint64_t)MAX(wait_ms, BEGIN_LEAST_MS), 0);
}

void control_look_at_clock(void *control)
{
    struct control *c = control;
    if (next_ms(c) <= control_now_ms(c))
        turn_close_soon(c, true);
    else
        set_begin(c);
}

static void close_turn(void *ctx)
{
    struct control *c = ctx;
    if (c->written) /* its callback comes back here */
        return;
    if (c->want_pass && c->ready && !c->stopping && !kept_blocks(c) &&
        !store_on_reserve(c->config.store)) {
        c->want_pass = false;
        decide(c);
        life_reasons(c);
    }
    while (c->ends > 0)
        book_remove(&c->book, c->ended[--c->ends]);
    if (c->open) {
        spare_reserve(c);
        fairness_write(c, false);
        if (c->config.ear.closing)
            c->config.ear.closing(c->config.ear.ctx, c->open->batch);
        c->written = TAKE(c->open);
        fail_point("control.decided");
        store_commit(c->config.store, TAKE(c->written->batch), on_durable, c->written);
    }
    segment_review(c);
    set_begin(c);
}

void turn_close_soon(struct control *c, bool pass)
{
    c->want_pass |= pass;
    loop_wakeup_send(c->close_turn);
}

void turn_flush(struct control *c)
{
    close_turn(c);
}

/* Ageing and long waits change with time alone. */
static void on_minute(void *ctx)
{
    struct control *c = ctx;
    fairness_minute(c);
    life_minute(c);
    if (core_totals(c->core).waiting > 0)
        turn_close_soon(c, true);
}

void turn_init(struct control *c)
{
    c->close_turn = loop_wakeup(c->config.loop, close_turn, c);
    c->clock_turn = loop_timer(c->config.loop, on_minute, c);
    loop_timer_set(c->clock_turn, 60000, 60000);
    c->begin_turn = loop_timer(c->config.loop, control_look_at_clock, c);
}
