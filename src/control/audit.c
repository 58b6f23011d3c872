/* The audit: entries beside the changes that they tell of, the oldest let go in time, and the whole of it
 * verified after a start and once a day.  Its head goes to the log then: whoever rewrites all of it here
 * does not rewrite a log that is kept elsewhere. */
#include "control/state.h"

#define CHECK_ROWS 500u /* a piece: about a millisecond */
#define NEXT_MS 5u
#define LOOK_MS 10000u /* at the clock */
#define DAY_MS INT64_C(86400000)

void control_audit(struct control *c, const struct audit_row *r)
{
    struct audit_row row = *r;
    row.t_ms = control_now_ms(c);
    store_add_audit(turn_open(c)->batch, &row);
    turn_close_soon(c, false);
}

struct control_audit_state control_audit_state(const struct control *c)
{
    return c->auditing.state;
}

/* ---- verifying ---- */

static void complain(struct control *c, const struct err *e)
{
    log_event(c->config.log, LOG_WARN_, "audit.unread", "why=%s", e->msg);
}

static void check_done(struct control *c, const struct store_audit_check *check)
{
    const struct audit_chain *chain = &check->chain;
    char hash[AUDIT_HASH_TEXT];
    c->auditing.state = (struct control_audit_state){ .checked_ms = control_now_ms(c),
                                                      .rows = chain->rows,
                                                      .fault = chain->fault,
                                                      .fault_at = chain->fault_at };
    if (chain->fault)
        log_event(c->config.log, LOG_ERROR_, "audit.broken", "row=%llu fault=%s why=%s",
                  (unsigned long long)chain->fault_at, audit_fault_name(chain->fault),
                  audit_fault_help(chain->fault));
    log_event(c->config.log, LOG_INFO_, "audit.head", "number=%llu hash=%s rows=%llu",
              (unsigned long long)check->ends.head.number,
              audit_hash_format(&check->ends.head.hash, hash), (unsigned long long)chain->rows);
}

/* One piece; true when there is more to do at once. */
static bool check_piece(struct control *c)
{
    struct auditing *a = &c->auditing;
    struct err e;
    int64_t day = control_now_ms(c) / DAY_MS;
    if (!a->checking) {
        if (day == a->day)
            return false;
        a->checking = store_audit_check_begin(c->config.store, NULL, &a->check, &e) == 0;
        if (!a->checking)
            complain(c, &e);
        return a->checking;
    }
    if (store_audit_check(c->config.store, &a->check, CHECK_ROWS, &e) < 0) {
        a->checking = false; /* from the start again, at the next look */
        complain(c, &e);
        return false;
    }
    if (a->check.done) {
        a->checking = false;
        a->day = day;
        check_done(c, &a->check);
    }
    return a->checking;
}

void audit_piece(void *control)
{
    struct control *c = control;
    bool more = check_piece(c);
    loop_timer_set(c->auditing.timer, more ? NEXT_MS : LOOK_MS, 0);
}

void audit_init(struct control *c)
{
    c->auditing.day = -1;
    c->auditing.timer = loop_timer(c->config.loop, audit_piece, c);
    loop_timer_set(c->auditing.timer, NEXT_MS, 0);
}

void audit_free(struct control *c)
{
    loop_unwatch(c->auditing.timer);
}

/* ---- letting go ---- */

static void add_cut(struct control *c, struct store_batch *b, const struct store_audit_old *old)
{
    AUTO(buf_free) struct buf after = BUF(256);
    struct json_out w = { .b = &after };
    char link[AUDIT_LINK_TEXT];
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "rows", old->rows);
    json_put_i64(&w, "until_ms", old->until_ms);
    json_end(&w, '}');
    struct audit_row row = { .t_ms = control_now_ms(c),
                             .who = STR("system"),
                             .via = STR("system"),
                             .what = str_of(audit_verb_name(AUDIT_AUDIT_CUT)),
                             .subject = str_of(audit_link_format(&old->last, link)),
                             .after = buf_str(&after),
                             .reason = STR("keep_audit") };
    store_cut_audit(b, old->last.number);
    store_add_audit(b, &row);
}

/* By whole days (UTC): each cut is a row itself, and there must not be one for every row that goes. */
bool audit_cut(struct control *c, struct store_batch *b, struct err *e)
{
    struct store_audit_old old;
    char hash[AUDIT_HASH_TEXT];
    int64_t keep_ms = c->config.keep.audit_ms;
    int64_t before_ms = (control_now_ms(c) - keep_ms) / DAY_MS * DAY_MS;
    if (!keep_ms || store_audit_old(c->config.store, before_ms, &old, e) < 0 || !old.rows)
        return false;
    add_cut(c, b, &old);
    log_event(c->config.log, LOG_INFO_, "audit.cut", "rows=%llu until_ms=%lld number=%llu hash=%s",
              (unsigned long long)old.rows, (long long)old.until_ms,
              (unsigned long long)old.last.number, audit_hash_format(&old.last.hash, hash));
    return true;
}
