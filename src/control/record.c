#include "control/record.h"

#define NUMBER_MAX (UINT64_C(1) << 53)
#define MESSAGE_MAX 2048

static const enum job_state states[] = { JOB_HELD, JOB_QUEUED, JOB_FREEZING, JOB_FROZEN,
                                         JOB_STOPPING };

static void put_afters(const struct job_record *r, struct json_out *w)
{
    json_begin(w, "after", '[');
    for (uint32_t i = 0; i < r->afters; i++) {
        json_begin(w, NULL, '{');
        json_put_u64(w, "first", r->after[i].first.v);
        json_put_u64(w, "n", r->after[i].n);
        json_put_u64(w, "when", r->after[i].when);
        json_end(w, '}');
    }
    json_end(w, ']');
}

void record_write(const struct job_record *r, struct str spec, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "tenant", r->tenant);
    json_put_str(&w, "user", r->user);
    json_put_u64(&w, "uid", r->uid);
    if (r->account)
        json_put_u64(&w, "account", r->account);
    json_put_str(&w, "state", str_of(job_state_name(r->state)));
    if (r->awake)
        json_put_bool(&w, "awake", true);
    json_put_u64(&w, "run", r->run);
    if (r->array) {
        json_put_u64(&w, "array", r->array);
        json_put_u64(&w, "index", r->array_index);
    }
    json_put_i64(&w, "submitted_ms", r->submitted_ms);
    if (r->ran_ms)
        json_put_i64(&w, "ran_ms", r->ran_ms);
    if (r->fails)
        json_put_u64(&w, "fails", r->fails);
    if (r->message.n)
        json_put_str(&w, "message", r->message);
    if (r->afters)
        put_afters(r, &w);
    json_put_raw(&w, "spec", spec);
    json_end(&w, '}');
}

static struct str keep(struct arena *a, struct str s)
{
    return str_of(arena_printf(a, "%.*s", STR_ARG(s)));
}

static int read_state(struct str name, enum job_state *out, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (str_is(name, job_state_name(states[i]))) {
            *out = states[i];
            return 0;
        }
    return err_set(e, ERR_INVALID, "field 'state': '%.*s' is none of a copy", STR_ARG(name));
}

static int read_afters(const struct json *list, struct job_record *out, struct err *e)
{
    if (!list)
        return 0;
    if (!json_is_array(list) || json_len(list) > AFTER_MAX)
        return err_set(e, ERR_INVALID, "field 'after': at most %d are known", AFTER_MAX);
    for (const struct json *o = json_first(list); o; o = json_next(list, o)) {
        uint64_t first = 0, n = 0, when = AFTER_COUNT;
        if (json_need_u64(o, "first", NUMBER_MAX, &first, e) < 0 ||
            json_need_u64(o, "n", AFTER_JOBS_MAX, &n, e) < 0 ||
            json_need_u64(o, "when", AFTER_COUNT - 1, &when, e) < 0)
            return -1;
        out->after[out->afters++] =
            (struct after){ .first = { first }, .n = (uint32_t)n, .when = (uint8_t)when };
    }
    return 0;
}

static int read_numbers(const struct json *o, struct job_record *out, struct err *e)
{
    uint64_t uid = 0, account = 0, run = 0, index = 0, fails = 0;
    if (json_need_u64(o, "uid", UINT32_MAX, &uid, e) < 0 ||
        json_get_u64(o, "account", UINT32_MAX, &account, e) < 0 ||
        json_need_u64(o, "run", UINT32_MAX - 1, &run, e) < 0 ||
        json_get_u64(o, "array", NUMBER_MAX, &out->array, e) < 0 ||
        json_get_u64(o, "index", UINT32_MAX, &index, e) < 0 ||
        json_get_u64(o, "fails", UINT32_MAX, &fails, e) < 0 ||
        json_need_i64(o, "submitted_ms", 0, TIME_MAX_MS, &out->submitted_ms, e) < 0 ||
        json_get_i64(o, "ran_ms", 0, TIME_MAX_MS, &out->ran_ms, e) < 0 ||
        json_get_bool(o, "awake", &out->awake, e) < 0)
        return -1;
    out->uid = (uint32_t)uid;
    out->account = (uint32_t)account;
    out->run = (uint32_t)run;
    out->array_index = (uint32_t)index;
    out->fails = (uint32_t)fails;
    return 0;
}

int record_read(struct str text, struct arena *a, struct job_record *out, struct spec *out_spec,
                struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    const struct json *o = d ? json_root(d) : NULL;
    struct str state = STR(""), tenant = STR(""), user = STR(""), message = STR("");
    *out = (struct job_record){ .state = JOB_QUEUED };
    if (!d)
        return -1;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "it is no object");
    const struct json *spec = json_find(o, "spec");
    if (!spec || !json_is_object(spec))
        return err_set(e, ERR_INVALID, "field 'spec': it is missing");
    if (json_need_str(o, "state", 32, &state, e) < 0 || read_state(state, &out->state, e) < 0 ||
        json_need_str(o, "tenant", NAME_MAX_BYTES, &tenant, e) < 0 ||
        json_need_str(o, "user", NAME_MAX_BYTES, &user, e) < 0 ||
        json_get_str(o, "message", MESSAGE_MAX, &message, e) < 0 || read_numbers(o, out, e) < 0 ||
        read_afters(json_find(o, "after"), out, e) < 0 || spec_read_kept(spec, a, out_spec, e) < 0)
        return -1;
    out->tenant = keep(a, tenant);
    out->user = keep(a, user);
    out->message = keep(a, message);
    return 0;
}

void record_write_numbers(uint64_t up_to, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "numbers", up_to);
    json_end(&w, '}');
}

int record_read_numbers(struct str text, uint64_t *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    if (!d)
        return -1;
    return json_need_u64(json_root(d), "numbers", NUMBER_MAX, out, e);
}
