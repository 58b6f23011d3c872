#include "store/batch.h"

#include <stdio.h>

#include "store/audit.h"
#include "store/chain.h"
#include "store/directory.h"
#include "store/kept.h"
#include "store/life.h"
#include "store/notice.h"
#include "store/pools.h"
#include "store/read.h"
#include "store/segment.h"
#include "store/usage.h"

#define FIRST_BYTES 512u
#define TRIM_ROWS 2000 /* of each kind at a time: some milliseconds of the writer's */

struct store_batch *store_batch_new(struct store *s)
{
    struct store_batch *b = xcalloc(1, sizeof *b);
    b->store = s;
    b->next = s->batches;
    if (b->next)
        b->next->prev = b;
    s->batches = b;
    return b;
}

void batch_release(struct store_batch *b)
{
    *(b->prev ? &b->prev->next : &b->store->batches) = b->next;
    if (b->next)
        b->next->prev = b->prev;
    free(b->p);
    free(b);
}

struct store_batch *store_batch_free(struct store_batch *b)
{
    if (!b)
        return NULL;
    struct store *s = b->store;
    if (b->events && b->first_event + b->events - 1 == s->last_event)
        s->last_event = b->first_event - 1;
    s->journal_lines -= (uint64_t)b->journal_change;
    batch_release(b);
    return NULL;
}

bool store_batch_empty(const struct store_batch *b)
{
    return b->rows == 0;
}

/* ---- recording ---- */

static void *reserve(struct store_batch *b, size_t more)
{
    if (more > b->cap - b->n) {
        size_t twice = b->cap ? b->cap * 2 : FIRST_BYTES;
        b->cap = MAX(twice, b->n + more);
        b->p = xrealloc(b->p, b->cap, 1);
    }
    void *at = b->p + b->n;
    b->n += more;
    return at;
}

static void put_byte(struct store_batch *b, unsigned v)
{
    *(uint8_t *)reserve(b, 1) = (uint8_t)v;
}

static void op(struct store_batch *b, enum store_op kind, unsigned fields)
{
    put_byte(b, kind);
    put_byte(b, fields);
    b->rows++;
}

static void put_int(struct store_batch *b, int64_t v)
{
    put_byte(b, FIELD_INT);
    memcpy(reserve(b, sizeof v), &v, sizeof v);
}

static void put_u64(struct store_batch *b, uint64_t v)
{
    put_int(b, (int64_t)v);
}

static void put_bytes(struct store_batch *b, enum field_type type, const void *p, size_t n)
{
    if (n > UINT32_MAX) /* inputs are bounded long before */
        abort();
    uint32_t size = (uint32_t)n;
    put_byte(b, type);
    memcpy(reserve(b, sizeof size), &size, sizeof size);
    if (n)
        memcpy(reserve(b, n), p, n);
}

static void put_text(struct store_batch *b, struct str s)
{
    put_bytes(b, FIELD_TEXT, s.p, s.n);
}

/* The thirteen fields of JOB_NOW_COLUMNS. */
static void put_now(struct store_batch *b, const struct store_job_now *n)
{
    put_int(b, n->state);
    put_int(b, n->priority);
    put_int(b, n->state_ms);
    put_int(b, n->started_ms);
    put_int(b, n->ended_ms);
    put_int(b, n->run);
    put_int(b, n->exit_code);
    put_int(b, n->exit_signal);
    put_text(b, n->end);
    put_text(b, n->message);
    put_text(b, n->where);
    put_int(b, n->ran_ms);
    put_int(b, n->fails);
}

void store_add_job(struct store_batch *b, const struct store_job_fixed *f,
                   const struct store_job_now *n)
{
    op(b, OP_ADD_JOB, 24);
    put_u64(b, f->id);
    put_text(b, f->spec);
    put_text(b, f->tenant);
    put_text(b, f->user);
    put_text(b, f->name);
    put_int(b, f->uid);
    put_int(b, f->submitted_ms);
    put_int(b, f->replicas);
    put_u64(b, f->gpu_milli);
    put_u64(b, f->array);
    put_int(b, f->array_index);
    put_now(b, n);
    b->store->last_job = MAX(b->store->last_job, f->id);
}

void store_set_job(struct store_batch *b, uint64_t id, const struct store_job_now *n)
{
    op(b, OP_SET_JOB, 14);
    put_u64(b, id);
    put_now(b, n);
}

void store_put_run(struct store_batch *b, const struct store_run *r)
{
    op(b, OP_PUT_RUN, 10);
    put_u64(b, r->job);
    put_int(b, r->run);
    put_text(b, r->tenant);
    put_text(b, r->user);
    put_text(b, r->node);
    put_text(b, r->model);
    put_u64(b, r->gpu_milli);
    put_u64(b, r->cpu_milli);
    put_u64(b, r->mem_mib);
    put_int(b, r->started_ms);
    if (r->ended_ms)
        store_end_run(b, r->job, r->run, r->ended_ms);
}

void store_end_run(struct store_batch *b, uint64_t job, uint32_t run, int64_t ended_ms)
{
    op(b, OP_END_RUN, 3);
    put_u64(b, job);
    put_int(b, run);
    put_int(b, ended_ms);
}

void store_shift_runs(struct store_batch *b, int64_t by_ms)
{
    op(b, OP_SHIFT_RUNS, 1);
    put_int(b, by_ms);
}

static void count_lines(struct store_batch *b, uint64_t lines)
{
    b->journal_change += (int64_t)(lines - b->store->journal_lines);
    b->store->journal_lines = lines;
}

void store_add_journal(struct store_batch *b, int64_t t_ms, struct str line)
{
    op(b, OP_ADD_JOURNAL, 2);
    put_int(b, t_ms);
    put_text(b, line);
    count_lines(b, b->store->journal_lines + 1);
}

void store_new_segment(struct store_batch *b, int64_t t_ms, uint32_t keep)
{
    op(b, OP_NEW_SEGMENT, 2);
    put_int(b, t_ms);
    put_int(b, keep);
    count_lines(b, 0);
}

void store_segment_begins(struct store_batch *b, const struct store_segment *seg)
{
    op(b, OP_SEGMENT_BEGINS, 2);
    put_u64(b, seg->begins);
    put_u64(b, seg->lines_before);
}

void store_put_line(struct store_batch *b, uint64_t number, const struct store_seen *line)
{
    op(b, OP_PUT_LINE, 3);
    put_u64(b, (number << 32) + line->at);
    put_int(b, line->t_ms);
    put_text(b, line->line);
    if (line->at >= b->store->journal_lines)
        count_lines(b, line->at + 1);
}

uint64_t store_add_event(struct store_batch *b, int64_t t_ms, const char *kind, struct str tenant,
                         uint64_t job, struct str body)
{
    uint64_t number = ++b->store->last_event;
    op(b, OP_ADD_EVENT, 6);
    put_u64(b, number);
    put_int(b, t_ms);
    put_text(b, str_of(kind));
    put_text(b, tenant);
    put_u64(b, job);
    put_text(b, body);
    if (b->events++ == 0)
        b->first_event = number;
    return number;
}

void store_add_step(struct store_batch *b, const struct store_step *s)
{
    op(b, OP_ADD_STEP, 12);
    put_u64(b, s->job);
    put_int(b, s->t_ms);
    put_text(b, s->what);
    put_int(b, s->state);
    put_int(b, s->run);
    put_text(b, s->reason);
    put_text(b, s->who);
    put_text(b, s->note);
    put_text(b, s->where);
    put_int(b, s->exit_code);
    put_int(b, s->exit_signal);
    put_int(b, STORE_STEPS_MAX);
}

void store_step_reason(struct store_batch *b, uint64_t job, struct str reason)
{
    op(b, OP_STEP_REASON, 2);
    put_u64(b, job);
    put_text(b, reason);
}

void store_put_account(struct store_batch *b, const struct store_account *a)
{
    op(b, OP_PUT_ACCOUNT, 6);
    put_text(b, a->name);
    put_text(b, a->home);
    put_int(b, a->uid);
    put_int(b, a->gid);
    put_int(b, a->ours);
    put_int(b, a->created_ms);
}

struct str directory_kind_name(enum directory_kind kind)
{
    static const char *const names[] = {
#define X(id, name) name,
        DIRECTORY_KINDS(X)
#undef X
    };
    return str_of(names[kind]);
}

void store_put_entry(struct store_batch *b, enum directory_kind kind, const struct store_entry *e)
{
    op(b, OP_PUT_ENTRY, 3);
    put_text(b, directory_kind_name(kind));
    put_text(b, e->name);
    put_text(b, e->body);
}

void store_delete_entry(struct store_batch *b, enum directory_kind kind, struct str name)
{
    op(b, OP_DELETE_ENTRY, 2);
    put_text(b, directory_kind_name(kind));
    put_text(b, name);
}

void store_put_pool(struct store_batch *b, const struct store_pool *p)
{
    op(b, OP_PUT_POOL, 6);
    put_text(b, p->name);
    put_text(b, p->calendar);
    put_text(b, p->nodes);
    put_text(b, p->exceptions);
    put_int(b, p->of_settings);
    put_text(b, p->stage.n ? p->stage : STR("all"));
}

void store_delete_pool(struct store_batch *b, struct str name)
{
    op(b, OP_DELETE_POOL, 1);
    put_text(b, name);
}

void store_put_answer(struct store_batch *b, struct str user, struct str key, int64_t t_ms,
                      struct str body)
{
    op(b, OP_PUT_ANSWER, 4);
    put_text(b, user);
    put_text(b, key);
    put_int(b, t_ms);
    put_text(b, body);
}

static void put_machines(struct store_batch *b, int64_t day, const struct ledger_machines *m)
{
    const int64_t v[] = { day, m->total, m->got, m->idle, m->away };
    op(b, OP_PUT_MACHINES, ARRAY_LEN(v));
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        put_int(b, v[i]);
}

void store_put_ledger(struct store_batch *b, const struct ledger_row *row)
{
    const struct ledger_sums *s = &row->sums;
    const int64_t v[] = { s->entitled, s->got, s->lent, s->borrowed, s->frozen, s->wanted };
    if (row->tenant.n == 0) {
        put_machines(b, row->day, &row->machines);
        return;
    }
    op(b, OP_PUT_LEDGER, 2 + ARRAY_LEN(v));
    put_int(b, row->day);
    put_text(b, row->tenant);
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        put_int(b, v[i]);
}

void store_set_meta(struct store_batch *b, const char *key, struct str value)
{
    op(b, OP_SET_META, 2);
    put_text(b, str_of(key));
    put_text(b, value);
}

void store_skip_jobs(struct store_batch *b, uint64_t up_to)
{
    char text[24];
    if (up_to <= b->store->last_job)
        return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)up_to);
    store_set_meta(b, "last_job", str_of(text));
    b->store->last_job = up_to;
}

/* ---- the audit ---- */

/* Cut in the middle it would be no JSON, or no character; and what is no UTF-8 cannot be exported. */
static void put_bounded(struct store_batch *b, struct str s, size_t max)
{
    char size[48];
    bool json = max == AUDIT_JSON_MAX;
    if (s.n > max || !str_is_utf8(s)) {
        snprintf(size, sizeof size, json ? "{\"omitted_bytes\":%zu}" : "(%zu bytes)", s.n);
        s = str_of(size);
    }
    put_text(b, s);
}

void store_add_audit(struct store_batch *b, const struct audit_row *r)
{
    op(b, OP_ADD_AUDIT, CHAIN_FIELDS);
    put_int(b, 0);
    put_int(b, r->t_ms);
#define X(name, max) put_bounded(b, r->name, max);
    AUDIT_TEXTS(X)
#undef X
    put_bytes(b, FIELD_BLOB, NULL, 0);
    put_text(b, STR(""));
}

void store_cut_audit(struct store_batch *b, uint64_t number)
{
    op(b, OP_CUT_AUDIT, 1);
    put_u64(b, number);
}

/* ---- notices ---- */

void store_put_notice(struct store_batch *b, const struct store_notice *n)
{
    op(b, OP_PUT_NOTICE, 12);
    put_text(b, n->id);
    put_text(b, n->user);
    put_int(b, n->way);
    put_int(b, n->event);
    put_int(b, n->state);
    put_int(b, n->made_ms);
    put_int(b, n->due_ms);
    put_int(b, n->tries);
    put_text(b, n->subject);
    put_text(b, n->data);
    put_text(b, n->why);
    put_int(b, NOTICES_OVER_KEPT);
}

void store_delete_notices(struct store_batch *b, struct str user)
{
    op(b, OP_DELETE_NOTICES, 1);
    put_text(b, user);
}

/* ---- what is let go ---- */

void store_size_log(struct store_batch *b, uint64_t job, uint64_t bytes)
{
    op(b, OP_SIZE_LOG, 2);
    put_u64(b, job);
    put_u64(b, MIN(bytes, (uint64_t)INT64_MAX));
}

void store_remove_log(struct store_batch *b, uint64_t job, int64_t t_ms, enum store_log_why why)
{
    op(b, OP_REMOVE_LOG, 3);
    put_u64(b, job);
    put_int(b, t_ms);
    put_int(b, why);
}

void store_remove_job(struct store_batch *b, uint64_t job)
{
    op(b, OP_REMOVE_JOB, 1);
    put_u64(b, job);
}

void store_usage_whole_days(struct store_batch *b, int64_t before_ms)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%lld", (long long)before_ms);
    op(b, OP_WHOLE_DAYS, 1);
    put_text(b, (struct str){ text, (size_t)n });
}

static void trim_op(struct store_batch *b, enum store_op kind, int64_t bound)
{
    op(b, kind, 2);
    put_int(b, bound);
    put_int(b, TRIM_ROWS);
}

void store_trim(struct store_batch *b, const struct store_trim *t)
{
    /* The last event stays: the numbers go on from it after a restart. */
    uint64_t keep = MAX(t->keep_events, UINT64_C(1));
    trim_op(b, OP_PRUNE_EVENTS, (int64_t)MIN(keep, (uint64_t)INT64_MAX));
    trim_op(b, OP_PRUNE_ANSWERS, t->answers_before_ms);
    trim_op(b, OP_PRUNE_CARRIED, t->whole_days_before_ms / DAY_MS);
    op(b, OP_PRUNE_JOURNAL, 1);
    put_int(b, TRIM_ROWS);
}

/* ---- reading it back ---- */

static void take(struct batch_cursor *c, void *out, size_t n)
{
    memcpy(out, c->at, n);
    c->at += n;
}

static struct field take_field(struct batch_cursor *c)
{
    struct field f = { .type = (enum field_type) * c->at++ };
    if (f.type == FIELD_INT) {
        take(c, &f.v, sizeof f.v);
        return f;
    }
    uint32_t n;
    take(c, &n, sizeof n);
    f.s = (struct str){ (const char *)c->at, n };
    c->at += n;
    return f;
}

bool batch_next(struct batch_cursor *c, enum store_op *out_op, struct field out[OP_FIELDS_MAX],
                size_t *out_n)
{
    if (c->at == c->end)
        return false;
    *out_op = (enum store_op) * c->at++;
    *out_n = *c->at++;
    for (size_t i = 0; i < *out_n; i++)
        out[i] = take_field(c);
    return true;
}
