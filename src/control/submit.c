/* Taking jobs in: all of a submit or nothing of it. */
#include <stdio.h>

#include "control/after.h"
#include "control/record.h"
#include "control/state.h"
#include "spec/work.h"

#define SUBMIT_MAX 100000u

/* A job that names its GPUs and nothing else gets their part of the machine; one without GPUs one
 * CPU; memory goes with whichever it is. */
static void fill_request(struct control *c, struct request *r)
{
    struct node_view n, best = { 0 };
    if (r->cpu_milli && r->mem_mib)
        return; /* every machine is looked at */
    for (uint32_t i = 0; core_node(c->core, (node_id){ i }, &n); i++)
        if (n.state != NODE_DOWN && (best.cpu_milli == 0 || n.gpus > best.gpus))
            best = n;
    if (best.cpu_milli == 0)
        return;
    uint64_t gpu_milli = r->gpus ? (uint64_t)r->gpus * GPU_MILLI : r->gpu_milli;
    uint64_t whole = (uint64_t)best.gpus * GPU_MILLI;
    bool by_gpu = gpu_milli && whole;
    if (r->cpu_milli == 0)
        r->cpu_milli =
            by_gpu ? (uint32_t)(best.cpu_milli * gpu_milli / whole) : MIN(1000u, best.cpu_milli);
    r->cpu_milli = MAX(r->cpu_milli, 1u);
    if (r->mem_mib == 0)
        r->mem_mib = by_gpu ? (uint32_t)(best.mem_mib * gpu_milli / whole)
                            : (uint32_t)((uint64_t)best.mem_mib *
                                         MIN(r->cpu_milli, best.cpu_milli) / best.cpu_milli);
    r->mem_mib = MAX(r->mem_mib, 1u);
}

/* What is counted against limits, and no machine is asked for. */
static void fill_counted(const struct control *c, struct spec *s)
{
    s->request.notebook = s->kind == SPEC_NOTEBOOK;
    s->request.disk_mib = s->scratch_mib ? s->scratch_mib : c->config.scratch_mib;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("._-+", c);
}

static struct str default_name(const struct spec *s)
{
    struct str first = work_program(s);
    for (size_t i = 0; i < first.n; i++)
        if (!is_name_byte(first.p[i]))
            first.n = i;
    return first.n && first.n <= NAME_MAX_BYTES ? first : STR("job");
}

/* Not with ?: and a 1 on both sides: gcc 14.2 makes that is_array * (...) + 1 and divides by 0. */
static uint32_t count_of(const struct spec *s)
{
    if (!s->is_array)
        return 1;
    return (s->array_to - s->array_from) / s->array_step + 1;
}

/* A spec that was completed, and what it waits for. */
struct checked {
    struct spec spec;
    struct afters after;
};

static struct event submit_event(struct control *c, const struct control_submit *s,
                                 const struct checked *of)
{
    const struct spec *spec = &of->spec;
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){ .tenant = s->tenant,
                                       .user = s->user,
                                       .models = spec->gpu_type,
                                       .devices = spec->devices,
                                       .request = spec->request,
                                       .priority = spec->priority,
                                       .held = spec->held,
                                       .begin_ms = spec->begin_ms,
                                       .after = of->after.v,
                                       .afters = of->after.n,
                                       .family = work_family(spec),
                                       .reservation = spec->reservation };
    if (spec->observed.n)
        ev.submit.traits = s->traits;
    else if (c->observing.traits)
        ev.submit.traits = str_of(c->observing.traits);
    freeze_terms(c, spec, &ev.submit);
    return ev;
}

static int check_one(struct control *c, const struct control_submit *s, struct checked *of,
                     struct after_look *look, struct err *e)
{
    struct spec *spec = &of->spec;
    fill_request(c, &spec->request);
    fill_counted(c, spec);
    if (spec->name.n == 0)
        spec->name = default_name(spec);
    if (tenant_check_spec(c, s->tenant, spec, e) < 0 || engine_check(&c->engine, spec, e) < 0 ||
        after_resolve(c, look, spec, &of->after, e) < 0)
        return -1;
    struct event ev = submit_event(c, s, of);
    return core_check_submit(c->core, &ev.submit, e);
}

/* Every job that has not ended costs memory, and time at a restart: nobody takes all of it from the others. */
static int check_room(struct control *c, const struct control_submit *s, size_t jobs, struct err *e)
{
    const struct control_bounds *most = &c->config.bounds;
    const struct {
        const char *lead;
        struct str who;
        uint64_t have, most;
        const char *setting;
    } bounds[] = {
        { "user ", s->user, book_of_user(&c->book, s->user), most->user_jobs, "jobs_per_user" },
        { "tenant ", s->tenant, book_of_tenant(&c->book, s->tenant), most->tenant_jobs,
          "jobs_per_tenant" },
        { "the site", STR(""), c->book.ours, most->jobs, "jobs_max" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bounds) && s->uid != UID_OBSERVED; i++) {
        if (bounds[i].most == 0 || bounds[i].have + jobs <= bounds[i].most)
            continue;
        err_set(e, ERR_QUOTA,
                "%s%.*s has %llu jobs that have not ended, of at most %llu; this is %zu more",
                bounds[i].lead, STR_ARG(bounds[i].who), (unsigned long long)bounds[i].have,
                (unsigned long long)bounds[i].most, jobs);
        return err_hint(e, "wait for some to end, or cancel some; an administrator may raise %s",
                        bounds[i].setting);
    }
    return 0;
}

/* Completed copies of the specs, in `a`; counts the jobs they make. */
static struct checked *check_all(struct control *c, const struct control_submit *s, struct arena *a,
                                 size_t *out_jobs, struct err *e)
{
    struct checked *of = arena_array(a, struct checked, s->n);
    struct after_look look = { .sees = s->sees, .arena = a, .left = AFTER_LOOKS_MAX };
    *out_jobs = 0;
    if (!c->was_ready) { /* what it can do, and with which machines, is not known */
        err_set(e, ERR_UNAVAILABLE, "the engine has not answered yet");
        err_hint(e, "try again in some seconds");
        return NULL;
    }
    for (size_t i = 0; i < s->n; i++) {
        of[i] = (struct checked){ .spec = s->spec[i] };
        if (check_one(c, s, &of[i], &look, e) < 0) {
            if (s->n > 1) {
                err_wrap(e, "job %zu of %zu", i + 1, s->n);
                err_about(e, "jobs[%zu]%s%s", i, e->field[0] ? "." : "", e->field);
            }
            return NULL;
        }
        *out_jobs += count_of(&of[i].spec);
    }
    if (*out_jobs <= SUBMIT_MAX)
        return check_room(c, s, *out_jobs, e) == 0 ? of : NULL;
    err_set(e, ERR_TOO_LARGE, "%zu jobs in one submit; at most %u", *out_jobs, SUBMIT_MAX);
    err_about(e, "%s", s->n > 1 ? "jobs" : "array");
    err_hint(e, "submit them in parts");
    return NULL;
}

/* What the core has taken. */
struct taken {
    const struct control_submit *s;
    const struct spec *spec;
    struct str text; /* of the spec; empty: it is that of its array */
    const struct event *ev;
    uint64_t array;
    int64_t submitted_ms;
};

/* Book and batch follow. */
static struct entry *take_one(struct control *c, const struct taken *t)
{
    const struct control_submit *s = t->s;
    const struct spec *spec = t->spec;
    const struct event_submit *how = &t->ev->submit;
    struct entry *en = book_add(&c->book, how->id.v);
    entry_from_spec(en, spec);
    en->name = xcalloc(spec->name.n + 1, 1);
    if (spec->name.n)
        memcpy(en->name, spec->name.p, spec->name.n);
    en->observed = s->uid == UID_OBSERVED;
    book_own(&c->book, en, s->tenant, s->user);
    en->array = t->array;
    en->array_index = spec->array_index;
    en->now.state = how->frozen ? JOB_FROZEN : how->held ? JOB_HELD : JOB_QUEUED;
    en->now.priority = spec->priority;
    en->now.state_ms = t->ev->t_ms;
    struct store_job_fixed f = { .id = en->id,
                                 .tenant = s->tenant,
                                 .user = s->user,
                                 .name = spec->name,
                                 .uid = s->uid,
                                 .submitted_ms = t->submitted_ms,
                                 .replicas = en->replicas,
                                 .gpu_milli = en->gpu_milli,
                                 .spec = t->text,
                                 .array = t->array,
                                 .array_index = spec->array_index };
    store_add_job(turn_open(c)->batch, &f, &en->now);
    if (s->uid != UID_OBSERVED)
        spare_touch(c, en->id);
    turn_event(c, en);
    return en;
}

/* One spec: a job, or one each index.  The members of an array share the text of the first. */
static int take_spec(struct control *c, const struct control_submit *s, const struct checked *of,
                     struct err *e)
{
    const struct spec *spec = &of->spec;
    AUTO(buf_free) struct buf text = BUF(4 * SPEC_TEXT_MAX);
    struct json_out w = { .b = &text };
    struct spec each = *spec;
    uint64_t first = store_last_job(c->config.store) + 1;
    spec_write(spec, &w, NULL);
    for (uint32_t i = 0; i < count_of(spec); i++) {
        struct event ev = submit_event(c, s, of);
        ev.submit.id.v = first + i;
        each.array_index = spec->array_from + i * (spec->is_array ? spec->array_step : 0);
        if (turn_apply(c, &ev, e) < 0)
            return -1;
        take_one(c, &(struct taken){ .s = s,
                                     .spec = &each,
                                     .text = i ? STR("") : buf_str(&text),
                                     .ev = &ev,
                                     .array = spec->is_array ? first : 0,
                                     .submitted_ms = ev.t_ms });
    }
    return 0;
}

/* As the core is told of a job that it had before: nobody asks again whether it may. */
static struct event again_event(struct control *c, const struct control_submit *s,
                                const struct submit_kept *k, const struct checked *of)
{
    const struct job_record *r = k->r;
    struct event ev = submit_event(c, s, of);
    bool frozen = r->state == JOB_FROZEN && !k->runs;
    ev.submit.id.v = k->id;
    ev.submit.known = true;
    ev.submit.held = r->state == JOB_HELD && !k->runs;
    ev.submit.frozen = !frozen ? 0 : r->awake ? 2 : 1;
    ev.submit.ran_ms = r->ran_ms;
    if (k->runs || frozen || ev.submit.begin_ms <= ev.t_ms)
        ev.submit.begin_ms = 0;
    ev.submit.after = r->after;
    ev.submit.afters = k->runs || frozen ? 0 : r->afters;
    if (ev.submit.begin_ms == 0 && ev.submit.afters == 0 && r->submitted_ms < ev.t_ms)
        ev.submit.since_ms = r->submitted_ms;
    return ev;
}

struct entry *submit_again(struct control *c, const struct submit_kept *k, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(4 * SPEC_TEXT_MAX);
    struct json_out w = { .b = &text };
    const struct job_record *r = k->r;
    struct checked of = { .spec = *k->spec };
    struct control_submit s = { .user = r->user, .tenant = r->tenant, .uid = r->uid };
    of.spec.array_index = r->array_index;
    of.spec.is_array =
        of.spec.is_array && r->array; /* from its pod alone a member stands for itself */
    spec_write(&of.spec, &w, NULL);
    fill_counted(c, &of.spec);
    struct event ev = again_event(c, &s, k, &of);
    bool was_ours = r->account != 0; /* the machine's are looked up when it starts */
    if (buf_check(&text, e) < 0 ||
        (was_ours && !account_again(&c->accounts, r->user, r->account, turn_open(c)->batch,
                                    control_now_ms(c), e)) ||
        turn_apply(c, &ev, e) < 0)
        return NULL;
    struct entry *en = take_one(c, &(struct taken){ .s = &s,
                                                    .spec = &of.spec,
                                                    .text = buf_str(&text),
                                                    .ev = &ev,
                                                    .array = r->array,
                                                    .submitted_ms = r->submitted_ms });
    en->now.run = r->run;
    en->now.ran_ms = r->ran_ms;
    en->now.fails = r->fails;
    book_set_text(&en->now.message, r->message);
    turn_save(c, en);
    turn_close_soon(c, true);
    return en;
}

int control_foresee(struct control *c, const struct control_submit *s, struct arena *a,
                    struct event *out, struct err *e)
{
    size_t jobs;
    const struct checked *of = check_all(c, s, a, &jobs, e);
    if (!of)
        return -1;
    *out = submit_event(c, s, of);
    out->submit.id.v = store_last_job(c->config.store) + 1;
    return 0;
}

bool control_foresee_in_copy(struct control *c, const struct event *ev, struct err *e)
{
    struct plan plan = { 0 };
    if (core_apply(c->core, ev, e) < 0)
        return false;
    arena_reset(&c->arena);
    core_pass(c->core, ev->t_ms, &c->arena, &plan);
    for (size_t i = 0; i < plan.n; i++)
        if (plan.action[i].kind == ACT_START && plan.action[i].job.v == ev->submit.id.v)
            return true;
    return false;
}

int control_check(struct control *c, const struct control_submit *s, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    size_t jobs;
    return check_all(c, s, &a, &jobs, e) ? 0 : -1;
}

static char *key_text(const struct control_submit *s, struct arena *a)
{
    return arena_printf(a, "%.*s\n%.*s", STR_ARG(s->user), STR_ARG(s->key));
}

int control_key_reused(struct str key, struct err *e)
{
    err_set(e, ERR_CONFLICT, "header 'Idempotency-Key': '%.*s' was used for another request",
            (int)MIN(key.n, (size_t)60), key.p);
    err_about(e, "Idempotency-Key");
    return err_hint(e, "take a new key for each new submit; the old one is for sending it again");
}

/* The same submit, on its way to the disk: whoever asks again waits for it too.  1: found. */
static int find_key(struct turn *t, const char *text, const struct control_submit *s,
                    struct control_done done, struct turn_key *out, struct err *e)
{
    for (size_t i = 0; t && i < t->keys; i++) {
        if (strcmp(t->key[i].text, text) != 0)
            continue;
        if (t->key[i].request != s->request)
            return control_key_reused(s->key, e);
        turn_add_done(t, done);
        *out = t->key[i];
        return 1;
    }
    return 0;
}

static void put_key(struct control *c, const struct control_submit *s, struct turn_key k)
{
    struct turn *t = turn_open(c);
    AUTO(buf_free) struct buf answer = BUF(4u << 20);
    struct json_out w = { .b = &answer };
    buf_printf(&answer, "%016llx ", (unsigned long long)s->request);
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "id", k.first);
    json_put_u64(&w, "count", k.n);
    json_put_str(&w, "state", str_of(job_state_name(s->spec[0].held ? JOB_HELD : JOB_QUEUED)));
    if (s->batch) {
        json_begin(&w, "ids", '[');
        for (size_t i = 0; i < k.n; i++)
            json_put_u64(&w, NULL, k.first + i);
        json_end(&w, ']');
    }
    json_end(&w, '}');
    store_put_answer(t->batch, s->user, s->key, control_now_ms(c), buf_str(&answer));
    vec_grow(t->key, t->keys, t->key_cap);
    t->key[t->keys++] = k;
}

int control_submit(struct control *c, const struct control_submit *s, struct control_done done,
                   uint64_t *out_first, size_t *out_n, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    size_t jobs;
    const char *text = s->key.n ? key_text(s, &a) : NULL;
    struct turn_key same = { 0 };
    int found = text ? find_key(c->written, text, s, done, &same, e) : 0;
    if (text && found == 0)
        found = find_key(c->open, text, s, done, &same, e);
    if (found < 0)
        return -1;
    if (found) {
        *out_first = same.first;
        *out_n = same.n;
        return 0;
    }
    const struct checked *spec = check_all(c, s, &a, &jobs, e);
    struct turn *t = turn_open(c);
    if (!spec || (s->uid != UID_OBSERVED &&
                  !account_of(&c->accounts, s->user, t->batch, control_now_ms(c), e)))
        return -1;
    uint64_t first = store_last_job(c->config.store) + 1;
    for (size_t i = 0; i < s->n; i++)
        if (take_spec(c, s, &spec[i], e) < 0) {
            /* What check_all let through cannot be refused here; half a submit must not stand. */
            log_event(c->config.log, LOG_ERROR_, "submit.inconsistent", "why=%s", e->msg);
            abort();
        }
    if (text)
        put_key(c, s, (struct turn_key){ xstrdup(text), first, jobs, s->request });
    turn_done(c, done);
    turn_close_soon(c, true);
    *out_first = first;
    *out_n = jobs;
    return 0;
}
