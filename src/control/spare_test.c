/* Copies of jobs, and jobs that are made again from them when the store was lost. */
#include "control/record.h"
#include "control/state.h"
#include "tests/lib/controlling.h"

#define LONG(more)                                                                                 \
    "{\"command\":[\"x\"],\"resources\":{\"gpus\":4},\"env\":{\"SIM_RUN_MS\":\"100000000\"}" more  \
    "}"
#define KEPT_MAX 64

/* What the engine would write; it asks at once. */
struct copies {
    struct controlling t;
    struct engine_ops ops;
    uint64_t job[KEPT_MAX];
    char *text[KEPT_MAX];
    size_t n;
    int asked; /* times that something was to be written */
};

static struct copies *now; /* the simulated engine has its own self */

static void keep(void *self, uint64_t job)
{
    struct copies *k = now;
    size_t i = 0;
    bool over = false;
    AUTO(buf_free) struct buf text = BUF(1 << 20);
    struct engine_event ev = { .kind = ENGINE_RECORD, .task = { .job = job } };
    (void)self;
    ev.record = (struct engine_record){ .text = &text, .out_over = &over };
    control_engine_event(k->t.c, &ev);
    while (i < k->n && k->job[i] != job)
        i++;
    CHECK(i < KEPT_MAX && over == (text.n == 0));
    k->n = MAX(k->n, i + 1);
    k->job[i] = job;
    free(k->text[i]);
    k->text[i] = over ? NULL : xstrdup(text.p);
    k->asked++;
}

static struct copies *begin(void)
{
    struct copies *k = xcalloc(1, sizeof *k);
    now = k;
    controlling_begin(&k->t, NULL);
    k->ops = *k->t.sim.ops;
    k->ops.keep = keep;
    k->t.sim.ops = &k->ops;
    controlling_kill(&k->t);
    controlling_boot(&k->t);
    return k;
}

static void end_p(struct copies **at)
{
    struct copies *k = *at;
    controlling_end(&k->t);
    for (size_t i = 0; i < k->n; i++)
        free(k->text[i]);
    free(k);
    now = NULL;
}

static const char *copy_of(const struct copies *k, uint64_t job)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->job[i] == job)
            return k->text[i];
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* True: it was left. */
static bool tell(struct copies *k, uint64_t job, const char *record)
{
    bool left = false;
    struct engine_event ev = { .kind = ENGINE_KEPT, .task = { .job = job } };
    ev.kept = (struct engine_kept){ .record = str_of(record), .out_left = &left };
    control_engine_event(k->t.c, &ev);
    return left;
}

/* The daemon is killed, its store is gone, and it begins anew with what the engine has. */
static void lose_store(struct copies *k)
{
    struct copies *was = xcalloc(1, sizeof *was);
    static const char *const ends[] = { "", "-wal", "-shm" };
    char path[160];
    controlling_kill(&k->t);
    k->t.s.store = store_close(k->t.s.store);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(path, sizeof path, "%s%s", k->t.s.path, ends[i]);
        unlink(path);
    }
    storing_open(&k->t.s);
    memcpy(was, k, sizeof *was);
    memset(k->text, 0, sizeof k->text);
    k->n = 0;
    engine_sim_away(&k->t.sim, true); /* it tells what it has before it is ready */
    controlling_boot(&k->t);
    uint64_t order[KEPT_MAX];
    memcpy(order, was->job, sizeof order);
    qsort(order, was->n, sizeof *order, by_number);
    for (size_t i = 0; i < was->n; i++)
        if (copy_of(was, order[i]))
            CHECK(!tell(k, order[i], copy_of(was, order[i])));
    engine_sim_away(&k->t.sim, false);
    controlling_settle(&k->t);
    for (size_t i = 0; i < was->n; i++)
        free(was->text[i]);
    free(was);
}

static void a_copy_is_written_when_what_it_has_changes(void)
{
    AUTO(end_p) struct copies *k = begin();
    struct controlling *t = &k->t;
    uint64_t id = controlling_submit(t, LONG(",\"held\":true"));
    controlling_settle(t);
    CHECK(strstr(copy_of(k, id), "\"state\":\"held\"") && strstr(copy_of(k, id), "SIM_RUN_MS"));
    CHECK(strstr(copy_of(k, 0), "{\"numbers\":10")); /* some ahead */
    int asked = k->asked;
    CHECK(controlling_verb(t, id, VERB_RELEASE) == 0);
    controlling_wait(t, 10000);
    CHECK_STR(controlling_state(t, id), "running");
    CHECK(strstr(copy_of(k, id), "\"state\":\"queued\""));
    CHECK_INT(k->asked, asked + 1); /* that it runs is told by what runs of it */
    CHECK(controlling_verb(t, id, VERB_CANCEL) == 0);
    controlling_wait(t, 30000);
    CHECK_STR(controlling_state(t, id), "cancelled");
    CHECK(copy_of(k, id) == NULL);
}

static void what_is_not_there_is_written_after_a_start(void)
{
    AUTO(end_p) struct copies *k = begin();
    uint64_t id = controlling_submit(&k->t, LONG(",\"held\":true"));
    controlling_settle(&k->t);
    controlling_kill(&k->t);
    k->asked = 0;
    for (size_t i = 0; i < k->n; i++) {
        free(k->text[i]);
        k->text[i] = NULL;
    }
    controlling_boot(&k->t);
    CHECK(copy_of(k, id) && copy_of(k, 0));
    CHECK_INT(k->asked, 2);
}

static void jobs_that_wait_outlive_the_store(void)
{
    AUTO(end_p) struct copies *k = begin();
    struct controlling *t = &k->t;
    uint64_t frozen = controlling_submit(t, LONG(",\"freeze\":{\"mode\":\"requeue\"}"));
    controlling_wait(t, 5000);
    CHECK(controlling_verb(t, frozen, VERB_FREEZE) == 0);
    controlling_wait(t, 60000);
    CHECK_STR(controlling_state(t, frozen), "frozen");
    uint64_t full = controlling_submit(t, LONG(""));
    controlling_wait(t, 5000);
    uint64_t held = controlling_submit(t, LONG(",\"held\":true"));
    uint64_t array = controlling_submit(t, LONG(",\"array\":\"3-5\",\"name\":\"many\""));
    t->now_ms += 1000;
    uint64_t last = controlling_submit(t, LONG(""));
    controlling_settle(t);
    struct store_job was = controlling_job(t, array + 2);
    CHECK(controlling_verb(t, array, VERB_CANCEL) == 0 &&
          controlling_verb(t, last, VERB_CANCEL) == 0);
    CHECK_STR(controlling_state(t, full), "running");
    lose_store(k);
    CHECK_STR(controlling_state(t, frozen), "frozen");
    CHECK_INT(controlling_job(t, frozen).now.run, 1);
    CHECK_STR(controlling_state(t, held), "held");
    struct store_job is = controlling_job(t, array + 2);
    CHECK(is.fixed.array == array && is.fixed.array_index == 5 && str_is(is.fixed.name, "many"));
    CHECK(is.fixed.submitted_ms == was.fixed.submitted_ms && is.fixed.uid == was.fixed.uid);
    CHECK(strstr(copy_of(k, held), "\"account\":200000"));
    CHECK(control_ready(t->c, NULL));
    CHECK(controlling_submit(t, LONG("")) > last);
    controlling_settle(t);
    CHECK_STR(controlling_journal_differs(t), "");
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(controlling_state(t, held), "held");
    CHECK_STR(controlling_state(t, frozen), "frozen");
    CHECK(controlling_verb(t, frozen, VERB_CANCEL) == 0 && copy_of(k, frozen) == NULL);
}

static void what_ended_is_not_made_again(void)
{
    AUTO(end_p) struct copies *k = begin();
    struct controlling *t = &k->t;
    uint64_t id = controlling_submit(t, LONG(",\"held\":true"));
    controlling_settle(t);
    AUTO(free_p) char *old = xstrdup(copy_of(k, id));
    CHECK(controlling_verb(t, id, VERB_CANCEL) == 0);
    controlling_settle(t);
    k->text[1] = NULL;
    int asked = k->asked;
    CHECK(!tell(k, id, old)); /* its removal had not been carried out */
    controlling_settle(t);
    CHECK_STR(controlling_state(t, id), "cancelled");
    CHECK(k->asked == asked + 1 && copy_of(k, id) == NULL);
}

static void one_of_an_unknown_tenant_is_left_until_there_is_one(void)
{
    AUTO(end_p) struct copies *k = begin();
    struct controlling *t = &k->t;
    struct tenant_spec spec = tenant_default();
    struct control_tenant_change ch = { STR("other"), STR("op"), &spec };
    static const char record[] =
        "{\"tenant\":\"other\",\"user\":\"ana\",\"uid\":1000,\"state\":\"held\",\"run\":0,"
        "\"submitted_ms\":1,\"spec\":{\"command\":[\"x\"],\"resources\":{\"cpus\":1}}}";
    struct err e;
    CHECK(tell(k, 70, record));
    uint64_t next = controlling_submit(t, LONG(",\"held\":true"));
    CHECK(next > 70);
    controlling_settle(t);
    CHECK(control_tenant_put(t->c, &ch, (struct control_done){ 0 }, &e) == 0);
    controlling_settle(t);
    CHECK(!tell(k, 70, record));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, 70), "held");
    CHECK_STR(controlling_journal_differs(t), "");
    CHECK(tell(k, 171, "{\"what\"") && tell(k, 172, "{}"));
}

static void one_that_waits_for_what_is_gone_is_held(void)
{
    AUTO(end_p) struct copies *k = begin();
    struct controlling *t = &k->t;
    uint64_t first = controlling_submit(t, LONG(",\"held\":true"));
    uint64_t gone = controlling_submit(t, LONG(",\"held\":true"));
    controlling_settle(t);
    char json[256];
    snprintf(json, sizeof json, LONG(",\"after\":[\"any:%llu\"]"), (unsigned long long)first);
    uint64_t waits = controlling_submit(t, json);
    snprintf(json, sizeof json, LONG(",\"after\":[\"%llu\"]"), (unsigned long long)gone);
    uint64_t lost = controlling_submit(t, json);
    controlling_settle(t);
    CHECK(strstr(copy_of(k, lost), "\"after\":[{"));
    for (size_t i = 0; i < k->n; i++)
        if (k->job[i] == gone) { /* as if it had ended, and only that is known */
            free(k->text[i]);
            k->text[i] = NULL;
        }
    lose_store(k);
    CHECK_STR(controlling_state(t, waits), "queued");
    CHECK_STR(controlling_state(t, lost), "held");
    CHECK(strstr(controlling_text(t, controlling_job(t, lost).now.message), "release it"));
    CHECK(controlling_verb(t, first, VERB_CANCEL) == 0);
    controlling_wait(t, 5000);
    CHECK_STR(controlling_state(t, waits), "running");
    CHECK(!strstr(copy_of(k, waits), "\"after\":[{")); /* as its spec says it stays */
}

static const struct test tests[] = {
    { "a copy is written when what it has changes", a_copy_is_written_when_what_it_has_changes },
    { "what is not there is written after a start", what_is_not_there_is_written_after_a_start },
    { "jobs that wait outlive the store", jobs_that_wait_outlive_the_store },
    { "what ended is not made again", what_ended_is_not_made_again },
    { "one of an unknown tenant is left until there is one",
      one_of_an_unknown_tenant_is_left_until_there_is_one },
    { "one that waits for what is gone is held", one_that_waits_for_what_is_gone_is_held },
};
TEST_CASES(tests)
