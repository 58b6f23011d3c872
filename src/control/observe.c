/* Work that others made: the engine observes it, a job stands for it, and we only place it.
 *
 * Such a job lives like any other, in core, journal and store.  What the engine calls it (its ref) is in
 * its spec; so after a restart what is observed again finds its job.  Those that wait are told why, each
 * time the reason changes, so that whoever looks at the engine's side reads the same. */
#include <stdio.h>

#include "control/state.h"

#define TELL_EVERY_MS 1000
#define TELL_AFTER_MS 2000 /* most are placed before anybody could read it */
#define TELL_AT_ONCE 50u   /* a turn of the timer: each may be several writes for the engine */

static uint64_t key_of(struct str ref)
{
    return str_hash(ref);
}

static void keep_ref(struct control *c, struct entry *en, struct str ref)
{
    en->ref = xcalloc(ref.n + 1, 1);
    memcpy(en->ref, ref.p, ref.n);
    en->observed = true;
    map_set(&c->observing.by_ref, key_of(ref), en->id);
    c->observing.n++;
}

/* Those of the store: their specs are read when they are first asked for, not at the start. */
static void know_all(struct control *c)
{
    if (c->observing.known)
        return;
    c->observing.known = true;
    for (size_t i = 0; i < c->book.n; i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct entry *en = c->book.at[i];
        struct spec s;
        struct err e;
        if (!en->observed || en->ref || job_state_ended(en->now.state))
            continue;
        if (job_spec(c, en, &a, &s, &e) == 0)
            keep_ref(c, en, s.observed);
        else
            log_event(c->config.log, LOG_ERROR_, "job.spec", "job=%llu why=%s",
                      (unsigned long long)en->id, e.msg);
    }
}

static struct entry *find_ref(struct control *c, struct str ref)
{
    uint64_t id;
    know_all(c);
    struct entry *en =
        map_get(&c->observing.by_ref, key_of(ref), &id) ? book_find(&c->book, id) : NULL;
    return en && en->ref && str_is(ref, en->ref) && !job_state_ended(en->now.state) ? en : NULL;
}

void observe_ended(struct control *c, const struct entry *en)
{
    if (!en->ref)
        return;
    map_remove(&c->observing.by_ref, key_of(str_of(en->ref)));
    c->observing.n--;
}

static void tell(struct control *c, struct str ref, const struct engine_word *w)
{
    if (c->engine.ops && c->engine.ops->tell)
        c->engine.ops->tell(c->engine.self, ref, w);
}

void observe_cancelled(struct control *c, const struct entry *en)
{
    if (en->ref)
        tell(
            c, str_of(en->ref),
            &(struct engine_word){ .reason = "cancelled", .text = en->now.message, .final = true });
}

/* What was removed, or is kept back, while nobody looked is found out so. */
void observe_await(struct control *c)
{
    if (!c->engine.ops || !c->engine.ops->await)
        return;
    know_all(c);
    for (size_t i = 0; i < c->book.n; i++) {
        const struct entry *en = c->book.at[i];
        if (en->ref && !en->task && !job_state_ended(en->now.state))
            c->engine.ops->await(c->engine.self, str_of(en->ref));
    }
}

/* ---- what is observed ---- */

static void set_traits(struct control *c, struct entry *en, struct str traits)
{
    uint64_t job = en->id, hash = str_hash(traits) | 1;
    if (en->traits == hash)
        return;
    en->traits = hash;
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_JOB_TRAITS };
    struct err e;
    ev.job_traits = (struct event_job_traits){ .id = { job }, .traits = traits };
    if (turn_apply(c, &ev, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "job.traits", "job=%llu why=%s",
                  (unsigned long long)job, e.msg);
    turn_close_soon(c, true);
}

static uint64_t take(struct control *c, const struct engine_observed *o)
{
    struct control_submit s = { .user = o->user,
                                .tenant = o->tenant,
                                .uid = UID_OBSERVED,
                                .spec = o->spec,
                                .n = 1,
                                .traits = o->traits };
    uint64_t id;
    size_t n;
    struct err e;
    if (control_submit(c, &s, (struct control_done){ 0 }, &id, &n, &e) < 0) {
        AUTO(buf_free) struct buf text = BUF(2048);
        buf_printf(&text, "%s%s%s", e.msg, e.hint[0] ? "; " : "", e.hint);
        tell(c, o->spec->observed,
             &(struct engine_word){ .reason = "refused", .text = buf_str(&text) });
        return 0;
    }
    struct entry *en = book_find(&c->book, id);
    keep_ref(c, en, o->spec->observed);
    en->traits = str_hash(o->traits) | 1;
    return id;
}

static void observed(struct control *c, const struct engine_observed *o)
{
    struct entry *en = find_ref(c, o->spec->observed);
    if (en && !en->task)
        set_traits(c, en, o->traits);
    if (en)
        en->told = 0; /* whoever tells of it again may have forgotten what it was told */
    bool going = en && en->now.state == JOB_STOPPING && !o->placed; /* what comes after it is new */
    *o->out_job = going ? 0 : en ? en->id : o->placed ? 0 : take(c, o);
}

/* Nothing of it is left to place.  What runs of it ends task by task. */
static void vanished(struct control *c, struct str ref)
{
    struct entry *en = find_ref(c, ref);
    if (!en || en->task)
        return;
    book_set_text(&en->now.message, str_of(task_end_text(END_REMOVED)));
    book_set_text(&en->now.end, STR("cancelled"));
    job_move(c, en, JOB_EV_CANCEL);
}

/* Which machines jobs of ours may use has changed: those that have no place yet follow. */
static void own_traits(struct control *c, struct str traits)
{
    const char *was = c->observing.traits ? c->observing.traits : "";
    if (str_is(traits, was))
        return;
    free(c->observing.traits);
    c->observing.traits = xcalloc(traits.n + 1, 1);
    memcpy(c->observing.traits, traits.p, traits.n);
    for (size_t i = 0; i < c->book.n; i++)
        if (!c->book.at[i]->observed && !job_state_ended(c->book.at[i]->now.state))
            set_traits(c, c->book.at[i], traits);
}

void observe_event(struct control *c, const struct engine_event *ev)
{
    if (ev->kind == ENGINE_OBSERVED)
        observed(c, &ev->observed);
    else if (ev->kind == ENGINE_VANISHED)
        vanished(c, ev->vanished);
    else
        own_traits(c, ev->traits);
}

/* ---- why it waits ---- */

static void tell_why(struct control *c, struct entry *en)
{
    AUTO(free_p) struct explanation *x = xcalloc(1, sizeof *x);
    AUTO(buf_free) struct buf text = BUF(4096);
    struct job_view v;
    struct err e;
    if (!core_job(c->core, (job_id){ en->id }, &v))
        return;
    uint32_t now = (uint32_t)v.why + 1;
    if (en->told == now ||
        core_explain(c->core, (job_id){ en->id }, control_now_ms(c), x, &e) < 0 || x->n == 0)
        return;
    for (size_t i = 0; i < x->n && i < 3; i++)
        buf_printf(&text, "%s%s", i ? "; " : "", x->line[i].text);
    en->told = now;
    tell(c, str_of(en->ref),
         &(struct engine_word){ .reason = reason_slug(x->line[0].why), .text = buf_str(&text) });
}

static void on_time(void *ctx)
{
    struct control *c = ctx;
    struct observing *o = &c->observing;
    size_t looked = 0, told = 0;
    int64_t now_ms = control_now_ms(c);
    if (o->n == 0 || !c->ready)
        return;
    for (; looked < c->book.n && told < TELL_AT_ONCE; looked++) {
        struct entry *en = c->book.at[o->next++ % c->book.n];
        uint32_t before = en->told;
        bool waits = en->ref && !en->task && !job_state_ended(en->now.state);
        if (waits && now_ms - en->now.state_ms >= TELL_AFTER_MS)
            tell_why(c, en);
        told += en->told != before;
    }
    o->next = c->book.n ? o->next % c->book.n : 0;
}

void observe_init(struct control *c)
{
    c->observing.timer = loop_timer(c->config.loop, on_time, c);
    loop_timer_set(c->observing.timer, TELL_EVERY_MS, TELL_EVERY_MS);
}

void observe_free(struct control *c)
{
    c->observing.timer = loop_unwatch(c->observing.timer);
    map_free(&c->observing.by_ref);
    free(c->observing.traits);
}
