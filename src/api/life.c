/* What happened to a job, from submit to end. */
#include "store/life.h"
#include "api/state.h"

#define PAGE_DEFAULT 100

static void put_text(struct json_out *w, const char *key, struct str text)
{
    if (text.n)
        json_put_str(w, key, text);
    else
        json_put_null(w, key);
}

static struct str text_of_reason(struct str slug)
{
    for (int i = 0; i < REASON_COUNT; i++)
        if (str_is(slug, reason_slug((enum reason)i)))
            return str_of(reason_text((enum reason)i));
    return STR("");
}

static void put_step(struct json_out *w, const struct store_step *s)
{
    bool over = job_state_ended(s->state) && s->run > 0;
    json_begin(w, NULL, '{');
    json_put_u64(w, "number", s->number);
    json_put_i64(w, "t_ms", s->t_ms);
    json_put_str(w, "what", s->what);
    json_put_str(w, "state", str_of(job_state_name(s->state)));
    json_put_u64(w, "run", s->run);
    put_text(w, "reason", s->reason);
    put_text(w, "reason_text", text_of_reason(s->reason));
    put_text(w, "by", s->who);
    json_put_str(w, "message", s->note);
    json_put_raw(w, "where", s->where.n ? s->where : STR("[]"));
    if (over) {
        json_put_i64(w, "exit_code", s->exit_code);
        json_put_i64(w, "exit_signal", s->exit_signal);
    } else {
        json_put_null(w, "exit_code");
        json_put_null(w, "exit_signal");
    }
    json_end(w, '}');
}

/* A job that is older than this table, or was found running: its row tells when it came. */
static void put_submitted(struct json_out *w, const struct store_job *j)
{
    put_step(w, &(struct store_step){
                    .t_ms = j->fixed.submitted_ms, .what = STR("submitted"), .state = JOB_QUEUED });
}

int api_job_events(struct call *c, struct err *e)
{
    struct store_life of = { .job = c->job.fixed.id,
                             .after = query_number(c, "after", 0),
                             .limit = (uint32_t)query_number(c, "limit", PAGE_DEFAULT) };
    struct store_steps steps;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (store_job_steps(c->api->config.store, &c->scope, &of, http_arena(c->rq), &steps, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_begin(&w, "events", '[');
    if (of.after == 0 && (steps.n == 0 || !str_is(steps.v[0].what, "submitted")))
        put_submitted(&w, &c->job);
    for (size_t i = 0; i < steps.n; i++)
        put_step(&w, &steps.v[i]);
    json_end(&w, ']');
    if (steps.n == of.limit)
        json_put_u64(&w, "next", steps.v[steps.n - 1].number);
    else
        json_put_null(&w, "next");
    json_end(&w, '}');
    if (buf_check(&b, e) < 0)
        return -1;
    reply_json(c, 200, &b);
    return 0;
}
