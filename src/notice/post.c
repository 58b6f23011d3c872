/* Sending what is due, a process for each, and what comes of it. */
#include "notice/state.h"

#include <sodium.h>

#define QUESTION_MAX (256u << 10)
#define LETTER_MAX (128u << 10)
#define PATIENCE_MORE_MS 5000u /* it ends itself first */
#define TRIALS_AT_ONCE 4u
#define TRIALS_MAX 20 /* of one user and way, in TRIALS_MS */
#define TRIALS_MS (INT64_C(3600) * 1000)

static const struct ask_program program = { .name = "nightshift-send",
                                            .event = "notice.sender",
                                            .failure = "sending does not work at the moment",
                                            .busy = "too many notices at once",
                                            .at_once = NOTICES_AT_ONCE + TRIALS_AT_ONCE,
                                            .request_max = QUESTION_MAX };

struct tried {
    struct notices *n;
    struct user *u;
    enum notice_way way;
    notice_tried_fn *fn;
    void *ctx;
    struct ask_call *call;
    struct tried *prev, *next;
};

/* ---- the question ---- */

static void put_if(struct json_out *w, const char *key, const char *value)
{
    if (value && value[0])
        json_put_str(w, key, str_of(value));
}

static void put_mail(const struct notices *n, struct json_out *w, const struct notice_letter *l)
{
    const struct notices_config *c = &n->config;
    json_put_str(w, "do", STR("mail"));
    put_if(w, "server", c->mail_server);
    put_if(w, "from", l->from);
    put_if(w, "to", l->to);
    put_if(w, "login", c->mail_login);
    put_if(w, "password_file", c->mail_password_file);
    put_if(w, "ca_file", c->mail_ca);
    json_put_bool(w, "plain", c->mail_plain);
}

static void put_webhook(const struct notices *n, const struct user *u, struct json_out *w,
                        const struct notice_letter *l)
{
    json_put_str(w, "do", STR("webhook"));
    put_if(w, "url", u->choice.webhook);
    put_if(w, "secret", u->choice.secret);
    put_if(w, "id", l->id);
    put_if(w, "reach", webhook_reach_name(n->config.webhooks));
    put_if(w, "ca_file", n->config.webhook_ca);
}

/* Can it go there at all, as things are now? */
static int check_place(const struct notices *n, const struct user *u, enum notice_way way,
                       struct str mail, struct err *e)
{
    struct choice_bounds b;
    notices_bounds(n, str_of(u->name), &b);
    if (!u->chosen || (way == NOTICE_MAIL ? !u->choice.mail : !u->choice.webhook))
        return err_set(e, ERR_CONFLICT, "there is no place to send it to");
    if (way == NOTICE_WEBHOOK)
        return webhook_check_url(str_of(u->choice.webhook), b.webhooks, e);
    if (!b.mail)
        return err_set(e, ERR_CONFLICT, "this server sends no mail any more");
    if (mail_check_address(mail, e) < 0)
        return -1;
    if (!mail_domain_listed(mail, b.mail_domains))
        return err_set(e, ERR_DENIED, "mail to that address is not allowed here");
    return 0;
}

static int make_question(const struct notices *n, const struct user *u, enum notice_way way,
                         struct notice_letter *l, struct buf *out, struct err *e)
{
    AUTO(buf_free) struct buf letter = BUF(LETTER_MAX);
    AUTO(free_p) char *to = NULL;
    struct json_out w = { .b = out };
    struct str mail = notices_mail_of(n, str_of(u->name));
    if (check_place(n, u, way, mail, e) < 0)
        return -1;
    to = xcalloc(mail.n + 1, 1);
    memcpy(to, mail.n ? mail.p : "", mail.n);
    l->to = to;
    l->from = n->config.mail_from;
    l->url = n->config.external_url;
    if ((way == NOTICE_MAIL ? render_mail(l, &letter, e) : render_event(l, &letter, e)) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    if (way == NOTICE_MAIL)
        put_mail(n, &w, l);
    else
        put_webhook(n, u, &w, l);
    json_put_i64(&w, "timeout_ms", n->config.patience_ms);
    json_put_str(&w, "body", buf_str(&letter));
    json_end(&w, '}');
    l->to = NULL;
    return buf_check(out, e);
}

/* The last lines of its output, when it tells of one job that ended and its user wants them. */
static void add_log(const struct notices *n, const struct note *o, struct buf *out)
{
    struct err e;
    uint64_t count = 0, job = 0, run = 0;
    if (o->event != EVENT_OF_JOB_ENDED || !n->config.tail || !o->of->choice.log)
        return;
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(o->data), &e);
    const struct json *list = d ? json_find(json_root(d), "jobs") : NULL;
    const struct json *one = json_is_array(list) ? json_first(list) : NULL;
    if (one && json_get_u64(json_root(d), "count", UINT64_MAX, &count, &e) == 0 && count == 1 &&
        json_need_u64(one, "id", UINT64_MAX, &job, &e) == 0 &&
        json_need_u64(one, "run", UINT32_MAX, &run, &e) == 0)
        n->config.tail(n->config.tail_ctx, job, (uint32_t)run, out);
}

/* ---- what comes of it ---- */

static void write_marks(struct notices *n)
{
    struct store_batch *b = NULL;
    for (size_t i = 0; i < n->notes; i++) {
        struct note *o = n->note[i];
        if (!o->dirty || o->of_turn || o->flying)
            continue; /* the turn's */
        b = b ? b : store_batch_new(n->config.store);
        note_write(o, b);
        o->dirty = false;
        n->dirty--;
    }
    if (b)
        store_commit(n->config.store, b, NULL, NULL);
    notes_sweep(n);
}

static void release(struct notices *n, struct note *o)
{
    o->call = NULL;
    n->sending--;
    n->failing -= o->of->way[o->way].fails > 0;
    o->of->way[o->way].sending = NULL;
}

static void mark(struct notices *n, struct note *o)
{
    n->dirty += !o->dirty;
    o->dirty = true;
}

/* What the mail server said last. */
static void hear_mail(struct notices *n, enum notice_way way, const struct err *why)
{
    if (way == NOTICE_MAIL)
        snprintf(n->mail_trouble, sizeof n->mail_trouble, "%.255s", why ? why->msg : "");
}

static void failed(struct notices *n, struct note *o, const struct err *why)
{
    int64_t now_ms = clock_now_ms(&n->config.clock);
    struct user *u = o->of;
    bool final = why->code == ERR_DENIED || why->code == ERR_INVALID || why->code == ERR_CONFLICT ||
                 why->code == ERR_TOO_LARGE;
    o->tries++;
    u->way[o->way].fails++;
    u->way[o->way].not_before_ms =
        now_ms + notice_pause_ms(n->config.retry_ms, u->way[o->way].fails);
    n->stats.failed++;
    log_event(n->config.log, LOG_INFO_, "notice.failed", "user=%s way=%s id=%s try=%u why=%s",
              u->name, notice_way_name(o->way), o->id, o->tries, why->msg);
    if (final || now_ms - o->made_ms >= n->config.give_up_ms) {
        note_end(n, o, STORE_NOTICE_GIVEN_UP, why->msg);
        return;
    }
    o->due_ms = now_ms + notice_pause_ms(n->config.retry_ms, o->tries);
    free(o->why);
    o->why = xstrdup(why->msg);
    mark(n, o);
}

static void on_sent(void *ctx, const struct json *answer, const struct err *why)
{
    struct note *o = ctx;
    struct user *u = o->of;
    struct notices *n = u->notices;
    (void)answer;
    release(n, o);
    hear_mail(n, o->way, why);
    if (why) {
        failed(n, o, why);
    } else {
        u->way[o->way].fails = 0;
        u->way[o->way].not_before_ms = 0;
        o->tries++;
        note_end(n, o, STORE_NOTICE_SENT, "");
        log_event(n->config.log, LOG_INFO_, "notice.sent", "user=%s way=%s id=%s", u->name,
                  notice_way_name(o->way), o->id);
    }
    write_marks(n);
    notices_pump(n);
}

/* ---- sending ---- */

static void send_note(struct notices *n, struct note *o)
{
    AUTO(buf_free) struct buf question = BUF(QUESTION_MAX), log = BUF(NOTICE_LOG_MAX);
    struct err e = { 0 };
    struct user *u = o->of;
    note_seal(o);
    if (!may_hear(n, str_of(u->name)) || !u->chosen) {
        note_end(n, o, STORE_NOTICE_DROPPED, "its user does not want it any more");
        return;
    }
    add_log(n, o, &log);
    struct notice_letter l = { .id = o->id,
                               .event = o->event,
                               .made_ms = o->made_ms,
                               .subject = str_of(o->subject),
                               .data = str_of(o->data),
                               .log = buf_str(&log) };
    if (make_question(n, u, o->way, &l, &question, &e) == 0)
        o->call = ask_start(n->ask, buf_str(&question), on_sent, o, &e);
    if (question.p)
        sodium_memzero(question.p, question.n);
    if (!o->call) {
        failed(n, o, &e);
        return;
    }
    u->way[o->way].sending = o;
    n->sending++;
    n->failing += u->way[o->way].fails > 0;
}

/* Whose last try failed takes at most half of the places: nobody waits for those that hang. */
static bool has_place(const struct notices *n, const struct note *o)
{
    bool failing = o->of->way[o->way].fails > 0;
    return n->sending < NOTICES_AT_ONCE && (!failing || n->failing < NOTICES_AT_ONCE / 2);
}

/* No longer than this one may have to wait from now on. */
static int64_t pause_of(const struct notices *n, const struct note *o)
{
    uint32_t fails = MAX(o->tries, o->of->way[o->way].fails);
    int64_t again_ms = fails ? notice_pause_ms(n->config.retry_ms, fails) : 0;
    int64_t first_ms = MAX(2 * n->config.gather_ms, NOTICE_HOLD_MS);
    return MAX(first_ms, again_ms);
}

void notices_pump(void *notices)
{
    struct notices *n = notices;
    int64_t now_ms = clock_now_ms(&n->config.clock), next_ms = INT64_MAX;
    if (!n->begun || n->notes == 0)
        return;
    for (size_t i = 0; i < n->notes; i++) {
        struct note *o = n->note[i];
        struct user *u = o->of;
        if (o->state != STORE_NOTICE_WAITING || o->call || o->dirty || o->flying ||
            u->way[o->way].sending)
            continue;
        int64_t ready_ms =
            notice_ready_ms(MAX(o->due_ms, u->way[o->way].not_before_ms), now_ms, pause_of(n, o));
        if (ready_ms > now_ms)
            next_ms = MIN(next_ms, ready_ms);
        else if (has_place(n, o))
            send_note(n, o);
    }
    if (n->dirty)
        write_marks(n);
    if (next_ms != INT64_MAX) /* the wall clock may be set meanwhile */
        loop_timer_set(n->timer, (uint64_t)MIN(next_ms - now_ms, INT64_C(10000)), 0);
}

void post_afresh(struct notices *n, struct user *u)
{
    int64_t now_ms = clock_now_ms(&n->config.clock);
    for (int w = 0; w < NOTICE_WAY_COUNT; w++) {
        if (u->way[w].sending && u->way[w].fails)
            n->failing--;
        u->way[w].fails = 0;
        u->way[w].not_before_ms = 0;
    }
    for (size_t i = 0; i < n->notes; i++)
        if (n->note[i]->of == u && n->note[i]->tries)
            n->note[i]->due_ms = MIN(n->note[i]->due_ms, now_ms);
    if (u->waiting)
        loop_timer_set(n->timer, 0, 0);
}

void post_cancel(struct notices *n, struct user *u)
{
    for (int w = 0; w < NOTICE_WAY_COUNT; w++) {
        struct note *o = u->way[w].sending;
        if (!o)
            continue;
        ask_cancel(o->call);
        release(n, o);
    }
}

/* ---- trials ---- */

static void tried_end(struct tried *t, const struct err *why)
{
    struct notices *n = t->n;
    *(t->prev ? &t->prev->next : &n->tries) = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->u->way[t->way].tried = NULL;
    t->fn(t->ctx, why);
    free(t);
}

static void on_tried(void *ctx, const struct json *answer, const struct err *why)
{
    struct tried *t = ctx;
    (void)answer;
    hear_mail(t->n, t->way, why);
    if (!why) /* it works: what waits there need not wait longer */
        post_afresh(t->n, t->u);
    tried_end(t, why);
}

/* Where it goes is what somebody typed: without a bound they would have anybody's box filled from here. */
static int take_trial(struct user *u, enum notice_way way, int64_t now_ms, struct err *e)
{
    if (now_ms - u->way[way].trials_ms >= TRIALS_MS || now_ms < u->way[way].trials_ms) {
        u->way[way].trials_ms = now_ms;
        u->way[way].trials = 0;
    }
    if (u->way[way].trials++ < TRIALS_MAX)
        return 0;
    u->way[way].trials = TRIALS_MAX;
    err_set(e, ERR_CONFLICT, "there were %d trials within an hour", TRIALS_MAX);
    return err_hint(e, "try again later; how the last ones went: nightshift notices");
}

int notices_try(struct notices *n, struct str user, enum notice_way way, notice_tried_fn *fn,
                void *ctx, struct err *e)
{
    AUTO(buf_free) struct buf question = BUF(QUESTION_MAX), data = BUF(1024), subject = BUF(1024);
    struct user *u = find_user(n, user);
    struct json_out w = { .b = &data };
    char id[NOTICE_ID_TEXT];
    unsigned char random[16];
    if (!u || !u->chosen || (way == NOTICE_MAIL ? !u->choice.mail : !u->choice.webhook)) {
        err_set(e, ERR_CONFLICT, "no %s is set",
                way == NOTICE_MAIL ? "mail address" : "webhook's URL");
        return err_hint(e, "nightshift notices set --%s …", notice_way_name(way));
    }
    if (u->way[way].tried)
        return err_set(e, ERR_CONFLICT, "a trial is on its way already");
    if (take_trial(u, way, clock_now_ms(&n->config.clock), e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "user", user);
    json_end(&w, '}');
    buf_printf(&subject, "A trial notice for %.*s", STR_ARG(user));
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(id, sizeof id, random, sizeof random);
    struct notice_letter l = { .id = id,
                               .event = EVENT_OF_TRIAL,
                               .made_ms = clock_now_ms(&n->config.clock),
                               .subject = buf_str(&subject),
                               .data = buf_str(&data) };
    if (make_question(n, u, way, &l, &question, e) < 0)
        return -1;
    struct tried *t = xcalloc(1, sizeof *t);
    *t = (struct tried){ .n = n, .u = u, .way = way, .fn = fn, .ctx = ctx, .next = n->tries };
    t->call = ask_start(n->ask, buf_str(&question), on_tried, t, e);
    sodium_memzero(question.p, question.n);
    if (!t->call) {
        free(t);
        return -1;
    }
    if (t->next)
        t->next->prev = t;
    n->tries = t;
    u->way[way].tried = t;
    return 0;
}

void notices_stop_tries(struct notices *n)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is being stopped");
    for (struct tried *t = n->tries, *next; t; t = next) {
        next = t->next;
        ask_cancel(t->call);
        tried_end(t, &e);
    }
}

/* ---- beginning and end ---- */

void post_init(struct notices *n)
{
    n->ask = ask_new(n->config.loop, n->config.log, n->config.send_argv);
    ask_set_program(n->ask, &program);
    ask_set_patience(n->ask, (uint64_t)n->config.patience_ms + PATIENCE_MORE_MS);
    n->timer = loop_timer(n->config.loop, notices_pump, n);
}

void post_free(struct notices *n)
{
    if (n->tries)
        notices_stop_tries(n);
    for (size_t i = 0; i < n->users; i++)
        post_cancel(n, n->user[i]);
    n->ask = ask_free(n->ask);
    n->timer = loop_unwatch(n->timer);
}
