#include "notice/notices.h"

#include <sodium.h>
#include <stdio.h>

#include "notice/state.h"
#include "store/directory.h"
#include "sys/failpoint.h"

#define DATA_MAX (64u << 10)

/* ---- users ---- */

struct user *find_user(const struct notices *n, struct str name)
{
    uint32_t at = names_find(&n->names, name);
    return at == NAME_NONE ? NULL : n->user[at];
}

static struct user *make_user(struct notices *n, struct str name)
{
    struct user *u = find_user(n, name);
    if (u)
        return u;
    u = xcalloc(1, sizeof *u);
    u->notices = n;
    u->name = xcalloc(name.n + 1, 1);
    memcpy(u->name, name.p, name.n);
    choice_init(&u->choice);
    vec_grow(n->user, n->users, n->user_cap);
    n->user[n->users++] = u;
    names_intern(&n->names, name); /* numbered as they are */
    return u;
}

bool may_hear(const struct notices *n, struct str user)
{
    const struct person *x = people_find(auth_people(n->config.auth), user);
    return !x || (!x->disabled && !x->gone);
}

static bool has_site_role(const struct notices *n, struct str user)
{
    return auth_is_root(n->config.auth, user) ||
           people_site_role(auth_people(n->config.auth), user) >= ROLE_OPERATOR;
}

static bool is_in_tenant(const struct notices *n, struct str user, struct str tenant,
                         enum role least)
{
    return people_role_in(auth_people(n->config.auth), user, tenant) >= least;
}

/* ---- notes ---- */

static void note_free(struct note *o)
{
    ask_cancel(o->call);
    buf_free(&o->jobs);
    free(o->subject);
    free(o->data);
    free(o->why);
    free(o);
}

static void make_id(char out[static NOTICE_ID_TEXT])
{
    unsigned char id[16];
    randombytes_buf(id, sizeof id);
    sodium_bin2hex(out, NOTICE_ID_TEXT, id, sizeof id);
}

/* The same of the same thing, also after a restart. */
static void make_id_of(struct str key, char out[static NOTICE_ID_TEXT])
{
    unsigned char id[16];
    crypto_generichash(id, sizeof id, (const unsigned char *)key.p, key.n, NULL, 0);
    sodium_bin2hex(out, NOTICE_ID_TEXT, id, sizeof id);
}

static void mark_dirty(struct notices *n, struct note *o)
{
    n->dirty += !o->dirty;
    o->dirty = true;
}

void note_end(struct notices *n, struct note *o, enum store_notice_state state, const char *why)
{
    bool waited = o->state == STORE_NOTICE_WAITING;
    o->of->waiting -= waited;
    n->stats.waiting -= waited;
    o->state = state;
    o->due_ms = clock_now_ms(&n->config.clock);
    free(o->why);
    o->why = xstrdup(why);
    for (size_t i = 0; i < GATHERINGS; i++)
        if (o->of->gathering[i].note == o)
            o->of->gathering[i].note = NULL;
    n->stats.sent += state == STORE_NOTICE_SENT;
    n->stats.given_up += state == STORE_NOTICE_GIVEN_UP;
    n->stats.dropped += state == STORE_NOTICE_DROPPED;
    if (state != STORE_NOTICE_SENT)
        log_event(n->config.log, LOG_WARN_,
                  state == STORE_NOTICE_DROPPED ? "notice.dropped" : "notice.given_up",
                  "user=%s way=%s id=%s tries=%u why=%s", o->of->name, notice_way_name(o->way),
                  o->id, o->tries, why);
    mark_dirty(n, o);
}

/* Of this user the oldest that is not on its way; NULL user: of all. */
static void drop_oldest(struct notices *n, const struct user *u)
{
    for (size_t i = 0; i < n->notes; i++) {
        struct note *o = n->note[i];
        if ((u && o->of != u) || o->state != STORE_NOTICE_WAITING || o->call)
            continue;
        note_end(n, o, STORE_NOTICE_DROPPED, "too many were waiting");
        return;
    }
}

static struct note *add_note(struct notices *n, struct user *u, enum notice_way way,
                             enum notice_event event)
{
    if (u->waiting >= NOTICES_OF_USER)
        drop_oldest(n, u);
    if (n->stats.waiting >= NOTICES_MAX)
        drop_oldest(n, NULL);
    struct note *o = xcalloc(1, sizeof *o);
    *o = (struct note){ .of = u, .way = way, .event = event, .jobs = BUF(DATA_MAX / 2) };
    o->made_ms = o->due_ms = clock_now_ms(&n->config.clock);
    make_id(o->id);
    vec_grow(n->note, n->notes, n->note_cap);
    n->note[n->notes++] = o;
    u->waiting++;
    n->stats.waiting++;
    o->of_turn = true;
    mark_dirty(n, o);
    return o;
}

static void set_data(struct note *o, const struct buf *data)
{
    struct err e;
    AUTO(buf_free) struct buf subject = BUF(NOTICE_SUBJECT_MAX + 64);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(data), &e);
    bool said = d && render_subject(o->event, json_root(d), &subject, &e) == 0;
    free(o->data);
    free(o->subject);
    o->data = xstrdup(data->p ? data->p : "{}");
    o->subject = xstrdup(said && subject.p ? subject.p : notice_event_type(o->event));
}

/* What was gathered, as data. */
static void write_gathered(struct note *o)
{
    static const char *const how[] = { "failed", "succeeded", "cancelled" };
    AUTO(buf_free) struct buf b = BUF(DATA_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "count", o->count);
    for (size_t i = 0; o->event == EVENT_OF_JOB_ENDED && i < ARRAY_LEN(how); i++)
        json_put_u64(&w, how[i], o->how[i]);
    if (o->array)
        json_put_u64(&w, "array", o->array);
    else
        json_put_null(&w, "array");
    buf_addz(&b, ",\"jobs\":[");
    buf_add(&b, buf_str(&o->jobs));
    buf_addz(&b, "]}");
    set_data(o, &b);
}

void note_seal(struct note *o)
{
    for (size_t i = 0; o->gathers && i < GATHERINGS; i++)
        if (o->of->gathering[i].note == o)
            o->of->gathering[i].note = NULL;
    o->gathers = false;
}

void note_write(const struct note *o, struct store_batch *b)
{
    bool waits = o->state == STORE_NOTICE_WAITING;
    store_put_notice(b, &(struct store_notice){ .id = str_of(o->id),
                                                .user = str_of(o->of->name),
                                                .way = o->way,
                                                .event = o->event,
                                                .state = o->state,
                                                .made_ms = o->made_ms,
                                                .due_ms = o->due_ms,
                                                .tries = o->tries,
                                                .subject = str_of(o->subject),
                                                .data = str_of(waits ? o->data : ""),
                                                .why = str_of(o->why ? o->why : "") });
}

void notes_sweep(struct notices *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->notes; i++) {
        struct note *o = n->note[i];
        if (o->state != STORE_NOTICE_WAITING && !o->dirty && !o->call)
            note_free(o);
        else
            n->note[kept++] = o;
    }
    n->notes = kept;
}

/* ---- gathering ends and freezes ---- */

/* Where this array's are gathered; of too many at once those of single jobs stand for the rest. */
static struct gathering *find_gathering(struct user *u, enum notice_way way,
                                        enum notice_event event, uint64_t array, int64_t idle_ms)
{
    struct gathering *old = NULL;
    for (size_t i = 0; i < GATHERINGS; i++) {
        struct gathering *g = &u->gathering[i];
        if (g->last_ms && g->way == way && g->event == event && g->array == array)
            return g;
        if (!g->note && g->last_ms < idle_ms && (!old || g->last_ms < old->last_ms))
            old = g;
    }
    if (old)
        *old = (struct gathering){ .way = way, .event = event, .array = array };
    return old;
}

static void add_job(struct note *o, const struct store_job *j)
{
    static const enum job_state how[] = { JOB_FAILED, JOB_SUCCEEDED, JOB_CANCELLED };
    for (size_t i = 0; i < ARRAY_LEN(how); i++)
        o->how[i] += j->now.state == how[i];
    if (++o->count > NOTICE_JOBS_MAX)
        return;
    AUTO(buf_free) struct buf one = BUF(8192);
    struct json_out w = { .b = &one };
    json_begin(&w, NULL, '{');
    render_put_job(&w, j);
    json_end(&w, '}');
    if (one.full || one.n + o->jobs.n + 2 > o->jobs.limit)
        return;
    buf_addz(&o->jobs, o->jobs.n ? "," : "");
    buf_add(&o->jobs, buf_str(&one));
}

static void gather(struct notices *n, struct user *u, enum notice_way way, enum notice_event event,
                   const struct store_job *j)
{
    int64_t now_ms = clock_now_ms(&n->config.clock);
    int64_t idle_ms = now_ms - n->config.gather_ms;
    struct gathering *g = find_gathering(u, way, event, j->fixed.array, idle_ms);
    if (!g)
        g = find_gathering(u, way, event, 0, now_ms + 1);
    if (!g) /* every place gathers: the first takes it too */
        g = &u->gathering[0];
    struct note *o = g->note;
    if (o && (o->due_ms <= now_ms || o->way != way || o->event != event)) {
        write_gathered(o); /* with what this turn has added */
        note_seal(o);
        o = NULL;
    }
    if (!o) {
        o = add_note(n, u, way, event);
        o->due_ms = notice_due_ms(now_ms, g->last_ms, n->config.gather_ms);
        o->array = g->array;
        o->gathers = true;
        *g = (struct gathering){
            .way = way, .event = event, .array = g->array, .last_ms = o->due_ms, .note = o
        };
    }
    add_job(o, j);
    o->of_turn = true;
    mark_dirty(n, o);
}

static bool kind_of(enum job_state s, enum notice_kind *out)
{
    static const struct {
        enum job_state state;
        enum notice_kind kind;
    } rows[] = { { JOB_FAILED, KIND_JOB_FAILED },
                 { JOB_SUCCEEDED, KIND_JOB_SUCCEEDED },
                 { JOB_CANCELLED, KIND_JOB_CANCELLED },
                 { JOB_FROZEN, KIND_JOB_FROZEN },
                 { JOB_PAUSED, KIND_JOB_FROZEN } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].state == s) {
            *out = rows[i].kind;
            return true;
        }
    return false;
}

/* Whoever may not see a tenant any more hears nothing of what they left there. */
static bool hears_of_job(const struct notices *n, const struct user *u, const struct store_job *j)
{
    struct str name = str_of(u->name);
    return may_hear(n, name) &&
           (has_site_role(n, name) || is_in_tenant(n, name, j->fixed.tenant, ROLE_VIEWER));
}

void notices_job(void *notices, struct store_batch *b, const struct store_job *j)
{
    struct notices *n = notices;
    struct user *u = find_user(n, j->fixed.user);
    enum notice_kind k;
    (void)b;
    if (!u || !u->chosen || !kind_of(j->now.state, &k) || !hears_of_job(n, u, j))
        return;
    for (int w = 0; w < NOTICE_WAY_COUNT; w++)
        if (choice_wants(&u->choice, (enum notice_way)w, k))
            gather(n, u, (enum notice_way)w, notice_kind(k)->event, j);
}

/* ---- what is told one by one ---- */

/* One of each way that the user wants it by; once for all times under this key.  true: there is one now. */
static bool tell_once(struct notices *n, struct user *u, enum notice_kind k, struct str key,
                      const struct buf *data)
{
    bool told = false;
    for (int w = 0; w < NOTICE_WAY_COUNT; w++) {
        AUTO(buf_free) struct buf whole = BUF(4096);
        char id[NOTICE_ID_TEXT];
        bool known = false;
        struct err e;
        if (!choice_wants(&u->choice, (enum notice_way)w, k))
            continue;
        buf_printf(&whole, "%s/%d/%s/%.*s", notice_kind(k)->name, w, u->name, STR_ARG(key));
        make_id_of(buf_str(&whole), id);
        for (size_t i = 0; i < n->notes && !known; i++)
            known = strcmp(n->note[i]->id, id) == 0;
        if (known || store_notice_known(n->config.store, str_of(id), &known, &e) < 0 || known)
            continue;
        struct note *o = add_note(n, u, (enum notice_way)w, notice_kind(k)->event);
        memcpy(o->id, id, sizeof id);
        set_data(o, data);
        told = true;
    }
    return told;
}

void notices_budget(void *notices, struct store_batch *b, const struct notice_budget *v)
{
    struct notices *n = notices;
    AUTO(buf_free) struct buf data = BUF(DATA_MAX), key = BUF(1024);
    struct json_out w = { .b = &data };
    (void)b;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "tenant", v->tenant);
    json_put_u64(&w, "percent", v->percent);
    json_put_f64(&w, "used_gpu_hours", (double)v->used_gpu_milli_ms / 3.6e9, 3);
    json_put_f64(&w, "gpu_hours", (double)v->gpu_milli_ms / 3.6e9, 3);
    json_put_i64(&w, "until_ms", v->until_ms);
    json_end(&w, '}');
    buf_printf(&key, "%.*s/%u/%lld/%lld", STR_ARG(v->tenant), v->percent, (long long)v->from_ms,
               (long long)v->gpu_milli_ms);
    for (size_t i = 0; i < n->users; i++) {
        struct str name = str_of(n->user[i]->name);
        if (n->user[i]->chosen && may_hear(n, name) && is_in_tenant(n, name, v->tenant, ROLE_LEAD))
            tell_once(n, n->user[i], KIND_BUDGET, buf_str(&key), &data);
    }
}

bool notices_wants_idle(struct notices *n, const struct store_job *j)
{
    struct user *u = find_user(n, j->fixed.user);
    return u && u->chosen && hears_of_job(n, u, j) &&
           (choice_wants(&u->choice, NOTICE_MAIL, KIND_GPU_IDLE) ||
            choice_wants(&u->choice, NOTICE_WEBHOOK, KIND_GPU_IDLE));
}

bool notices_idle(struct notices *n, struct store_batch *b, const struct notice_idle *v)
{
    AUTO(buf_free) struct buf data = BUF(DATA_MAX), key = BUF(256);
    struct json_out w = { .b = &data };
    (void)b;
    if (!notices_wants_idle(n, v->job))
        return false;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "node", v->node);
    json_put_u64(&w, "gpu", v->gpu);
    json_put_i64(&w, "idle_since_ms", v->idle_since_ms);
    json_put_i64(&w, "idle_ms", v->now_ms - v->idle_since_ms);
    json_begin(&w, "jobs", '[');
    json_begin(&w, NULL, '{');
    render_put_job(&w, v->job);
    json_end(&w, '}');
    json_end(&w, ']');
    json_end(&w, '}');
    buf_printf(&key, "%llu/%u", (unsigned long long)v->job->fixed.id, v->job->now.run);
    return tell_once(n, find_user(n, v->job->fixed.user), KIND_GPU_IDLE, buf_str(&key), &data);
}

void notices_drained(struct notices *n, struct store_batch *b, struct str node, struct str reason)
{
    AUTO(buf_free) struct buf data = BUF(DATA_MAX), key = BUF(2048);
    struct json_out w = { .b = &data };
    (void)b;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "node", node);
    json_put_str(&w, "reason", reason);
    json_end(&w, '}');
    buf_printf(&key, "%.*s/%.*s/%lld", STR_ARG(node), STR_ARG(reason),
               (long long)clock_now_ms(&n->config.clock));
    for (size_t i = 0; i < n->users; i++) {
        struct str name = str_of(n->user[i]->name);
        if (n->user[i]->chosen && may_hear(n, name) && has_site_role(n, name))
            tell_once(n, n->user[i], KIND_NODE_DRAINED, buf_str(&key), &data);
    }
}

/* ---- with the turn ---- */

void notices_closing(void *notices, struct store_batch *b)
{
    struct notices *n = notices;
    for (size_t i = 0; n->dirty && i < n->notes; i++) {
        struct note *o = n->note[i];
        if (!o->dirty)
            continue;
        if (o->gathers && o->state == STORE_NOTICE_WAITING)
            write_gathered(o);
        if (!o->subject)
            set_data(o, &BUF(1));
        note_write(o, b);
        o->dirty = o->of_turn = false;
        o->flying = true;
        n->dirty--;
    }
}

void notices_durable(void *notices)
{
    struct notices *n = notices;
    bool any = false;
    for (size_t i = 0; i < n->notes; i++) {
        any |= n->note[i]->flying;
        n->note[i]->flying = false;
    }
    if (!any)
        return;
    fail_point("notice.durable");
    notes_sweep(n);
    notices_pump(n);
}

/* ---- choices ---- */

const struct notice_choice *notices_choice(const struct notices *n, struct str user)
{
    struct user *u = find_user(n, user);
    return u && u->chosen ? &u->choice : NULL;
}

static struct str record_of(const struct notices *n, struct str user)
{
    const struct person *x = people_find(auth_people(n->config.auth), user);
    return str_of(x && x->mail ? x->mail : "");
}

struct str notices_mail_of(const struct notices *n, struct str user)
{
    const struct notice_choice *c = notices_choice(n, user);
    if (!c || !c->mail)
        return STR("");
    return strcmp(c->mail, "me") == 0 ? record_of(n, user) : str_of(c->mail);
}

void notices_bounds(const struct notices *n, struct str user, struct choice_bounds *out)
{
    const struct notices_config *c = &n->config;
    *out = (struct choice_bounds){ .mail = c->mail_server && c->mail_from,
                                   .mail_domains = str_of(c->mail_domains ? c->mail_domains : ""),
                                   .record = record_of(n, user),
                                   .webhooks = c->webhooks };
}

int notices_choose(struct notices *n, struct store_batch *b, struct str user,
                   struct notice_choice *c, struct err *e)
{
    AUTO(buf_free) struct buf body = BUF(16u << 10);
    if (!find_user(n, user) && n->users >= NOTICE_USERS_MAX)
        return err_set(e, ERR_CONFLICT, "%u people have chosen what they are told already",
                       NOTICE_USERS_MAX);
    struct user *u = make_user(n, user);
    choice_clear(&u->choice);
    u->choice = *c;
    u->chosen = true;
    post_afresh(n, u); /* another place may work at once */
    *c = (struct notice_choice){ 0 };
    choice_write(&u->choice, &body);
    store_put_entry(b, DIRECTORY_NOTICE, &(struct store_entry){ user, buf_str(&body) });
    sodium_memzero(body.p, body.n);
    return 0;
}

void notices_forget(struct notices *n, struct store_batch *b, struct str user)
{
    struct user *u = find_user(n, user);
    store_delete_entry(b, DIRECTORY_NOTICE, user);
    store_delete_notices(b, user);
    if (!u)
        return;
    choice_clear(&u->choice);
    choice_init(&u->choice);
    u->chosen = false;
    post_cancel(n, u);
    for (size_t i = 0; i < n->notes; i++) {
        struct note *o = n->note[i];
        if (o->of != u)
            continue;
        note_end(n, o, STORE_NOTICE_DROPPED, "its user was removed");
        o->dirty = false; /* its row goes with theirs */
        n->dirty--;
    }
    notes_sweep(n);
}

/* ---- beginning and end ---- */

static int load_choices(struct notices *n, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_entry *row;
    size_t rows;
    if (store_entries(n->config.store, DIRECTORY_NOTICE, &a, &row, &rows, e) < 0)
        return -1;
    for (size_t i = 0; i < rows; i++) {
        struct notice_choice c;
        if (choice_read(row[i].body, &c, e) < 0)
            return err_wrap(e, "what '%.*s' wants to be told", STR_ARG(row[i].name));
        struct user *u = make_user(n, row[i].name);
        choice_clear(&u->choice);
        u->choice = c;
        u->chosen = true;
    }
    return 0;
}

static char *copy_of(struct str s)
{
    char *p = xcalloc(s.n + 1, 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

static int load_waiting(struct notices *n, struct err *e)
{
    AUTO(arena_free) struct arena a = { .limit = 512u << 20 };
    struct store_notices all;
    if (store_notices_waiting(n->config.store, NOTICES_MAX, &a, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        const struct store_notice *r = &all.v[i];
        if (r->way >= NOTICE_WAY_COUNT || r->event >= NOTICE_EVENT_COUNT ||
            r->id.n >= NOTICE_ID_TEXT)
            continue; /* a newer version's */
        struct note *o = add_note(n, make_user(n, r->user), (enum notice_way)r->way,
                                  (enum notice_event)r->event);
        snprintf(o->id, sizeof o->id, "%.*s", STR_ARG(r->id));
        o->made_ms = r->made_ms;
        o->due_ms = r->due_ms;
        o->tries = r->tries;
        o->subject = copy_of(r->subject);
        o->data = copy_of(r->data);
        o->why = copy_of(r->why);
        o->dirty = o->of_turn = false;
    }
    n->dirty = 0;
    return 0;
}

struct notices *notices_new(const struct notices_config *c, struct err *e)
{
    struct notices *n = xcalloc(1, sizeof *n);
    n->config = *c;
    if (sodium_init() < 0) {
        err_set(e, ERR_INTERNAL, "libsodium does not start");
        return notices_free(n);
    }
    post_init(n);
    if (load_choices(n, e) < 0 || load_waiting(n, e) < 0)
        return notices_free(n);
    return n;
}

struct notices *notices_free(struct notices *n)
{
    if (!n)
        return NULL;
    post_free(n);
    for (size_t i = 0; i < n->notes; i++)
        note_free(n->note[i]);
    free(n->note);
    for (size_t i = 0; i < n->users; i++) {
        choice_clear(&n->user[i]->choice);
        free(n->user[i]->name);
        free(n->user[i]);
    }
    free(n->user);
    names_free(&n->names);
    free(n);
    return NULL;
}

void notices_begin(struct notices *n)
{
    n->begun = true;
    notices_pump(n);
}

void notices_set_tail(struct notices *n, void (*tail)(void *, uint64_t, uint32_t, struct buf *),
                      void *ctx)
{
    n->config.tail = tail;
    n->config.tail_ctx = ctx;
}

const char *notices_mail_trouble(const struct notices *n)
{
    return n->mail_trouble;
}

struct notice_stats notices_stats(const struct notices *n)
{
    return n->stats;
}
