/* Starts that are told again: after a crash, and after a failure of the machine that may pass. */
#include "control/state.h"

#define START_TRIES 12u /* in about three minutes */
#define START_WAIT_MS UINT64_C(250)
#define START_WAIT_MAX_MS UINT64_C(30000)

void job_start_again(struct control *c, struct entry *en)
{
    struct job_view v;
    if (!core_job(c->core, (job_id){ en->id }, &v))
        abort();
    struct slot *slots = xcalloc(v.n, sizeof *slots);
    memcpy(slots, v.slots, v.n * sizeof *slots);
    turn_act(c, (struct act){ .kind = ACT_TASKS_START,
                              .job = en->id,
                              .run = en->now.run,
                              .replicas = v.n,
                              .slots = slots });
}

static bool is_beginning(const struct entry *en)
{
    return en->now.state == JOB_STARTING || en->now.state == JOB_THAWING;
}

static void on_again(void *ctx)
{
    struct job_ref *of = ctx;
    struct control *c = of->c;
    struct entry *en = book_find(&c->book, of->job);
    if (!en || !en->task || !is_beginning(en) || !c->ready)
        return; /* after READY all that is not known is started again */
    for (uint32_t i = 0; i < en->replicas; i++)
        if (en->task[i].state == TASK_AGAIN)
            en->task[i].state = TASK_STARTING;
    job_start_again(c, en);
    turn_close_soon(c, false);
}

/* All replicas of a gang may fail in one try. */
static bool is_waiting(const struct entry *en)
{
    for (uint32_t i = 0; i < en->replicas; i++)
        if (en->task[i].state == TASK_AGAIN)
            return true;
    return false;
}

/* `of`: how many tries there are; 0: as many as it takes. */
static void wait_for_again(struct control *c, struct entry *en, const struct err *why, uint32_t of)
{
    AUTO(buf_free) struct buf text = BUF(1200);
    uint32_t doubled = MIN(en->start_tries, START_TRIES);
    uint64_t wait_ms = MIN(START_WAIT_MS << doubled, START_WAIT_MAX_MS);
    en->start_tries++;
    log_event(c->config.log, LOG_WARN_, "task.again", "job=%llu wait_ms=%llu why=%s",
              (unsigned long long)en->id, (unsigned long long)wait_ms, why->msg);
    buf_printf(&text, "%s; trying again", why->msg);
    if (of)
        buf_printf(&text, " (%u of %u)", en->start_tries, of);
    book_set_text(&en->now.message, buf_str(&text));
    turn_save(c, en);
    turn_close_soon(c, false);
    en->again_of = (struct job_ref){ c, en->id };
    if (!en->again)
        en->again = loop_timer(c->config.loop, on_again, &en->again_of);
    loop_timer_set(en->again, wait_ms, 0);
}

bool job_start_later(struct control *c, struct entry *en, const struct engine_event *failed)
{
    bool waits = is_waiting(en);
    if (failed->failed.code != ERR_UNAVAILABLE || !is_beginning(en) ||
        (!waits && en->start_tries >= START_TRIES))
        return false;
    en->task[failed->task.replica].state = TASK_AGAIN;
    if (!waits)
        wait_for_again(c, en, &failed->failed, START_TRIES);
    return true;
}

bool job_start_when_known(struct control *c, struct entry *en, const struct err *why)
{
    if (why->code != ERR_UNAVAILABLE || !is_beginning(en))
        return false;
    for (uint32_t i = 0; i < en->replicas; i++)
        if (en->task[i].state == TASK_STARTING || en->task[i].state == TASK_UNKNOWN)
            en->task[i].state = TASK_AGAIN;
    wait_for_again(c, en, why, 0);
    return true;
}
