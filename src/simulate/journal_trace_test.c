#include "simulate/journal_trace.h"

#include <stdio.h>
#include <unistd.h>

#include "simulate/replay.h"
#include "simulate/whatif.h"
#include "sys/file.h"
#include "tests/lib/test.h"

#define HEADER "{\"journal\":\"nightshift\",\"version\":1}\n"
#define WORLD                                                                                      \
    HEADER "{\"t\":0,\"ev\":\"tenant\",\"name\":\"lab\",\"weight_milli\":1000}\n"                  \
           "{\"t\":0,\"ev\":\"node\",\"name\":\"n0\",\"model\":\"gpu\",\"gpus\":2,"                \
           "\"cpu_milli\":8000,\"mem_mib\":8000}\n"
#define SUBMIT(t, job, gpus)                                                                       \
    "{\"t\":" t ",\"ev\":\"submit\",\"job\":" job ",\"tenant\":\"lab\",\"user\":\"ann\","          \
    "\"replicas\":1,\"gpus\":" gpus ",\"priority\":\"normal\"}\n"
#define PASS(t) "{\"t\":" t ",\"ev\":\"pass\"}\n"
#define PLACE(t, job, mask)                                                                        \
    "{\"t\":" t ",\"ev\":\"place\",\"job\":" job ",\"slots\":[[0," mask ",1000]]}\n"
#define JOB(t, job, what) "{\"t\":" t ",\"ev\":\"job\",\"job\":" job ",\"what\":\"" what "\"}\n"
#define START(t, job, mask) PASS(t) PLACE(t, job, mask) JOB(t, job, "started")

/* ---- a lab's journal ---- */

static struct buf lab_journal(uint64_t seed)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct buf b = BUF(64u << 20);
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000, .journal = &b };
    struct report r;
    struct outcome jobs;
    struct err e;
    CHECK(trace_make_lab(seed, 2, false, &t, &e) == 0 && replay_run(&t, &o, &r, &jobs, &e) == 0);
    return b;
}

static int verify(struct str text, struct journal_check *out, struct err *e)
{
    *e = (struct err){ 0 };
    return journal_verify_text("a.journal", text, out, e);
}

static void a_lab_replays_to_the_same_decisions(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        AUTO(buf_free) struct buf b = lab_journal(seed);
        AUTO(trace_free) struct trace t = { 0 };
        struct journal_check c = { 0 };
        struct err e;
        CHECK_AT(seed, verify(buf_str(&b), &c, &e) == 0);
        CHECK_AT(seed, trace_make_lab(seed, 2, false, &t, &e) == 0);
        CHECK_AT(seed, c.decisions >= t.jobs && c.passes > 0);
        /* every line but the header is an event */
        uint64_t lines = 0;
        for (size_t i = 0; i < b.n; i++)
            lines += b.p[i] == '\n';
        CHECK_AT(seed, c.events == lines - 1);
    }
}

/* The number of the n-th line that contains `what`, and where it begins. */
static unsigned find_line(const struct buf *b, const char *what, int n, size_t *at)
{
    struct str text = buf_str(b), line;
    unsigned number = 0;
    while (str_next_line(&text, &line)) {
        number++;
        if (memmem(line.p, line.n, what, strlen(what)) && --n == 0) {
            *at = (size_t)(line.p - b->p);
            return number;
        }
    }
    test_fail(__FILE__, __LINE__, "no line has %s", what);
}

static void check_conflict(const struct buf *b, unsigned line, const char *says)
{
    struct journal_check c = { .events = 12345 };
    struct err e;
    char want[64];
    snprintf(want, sizeof want, "a.journal:%u: ", line);
    CHECK(verify(buf_str(b), &c, &e) == -1 && c.events == 12345);
    CHECK_INT(e.code, ERR_CONFLICT);
    if (strncmp(e.msg, want, strlen(want)) != 0 || !strstr(e.msg, says))
        test_fail(__FILE__, __LINE__, "wanted %s%s, got: %s", want, says, e.msg);
}

static void one_changed_decision_is_found_and_its_line_named(void)
{
    AUTO(buf_free) struct buf b = lab_journal(1);
    size_t at;
    unsigned line = find_line(&b, "\"ev\":\"place\"", 40, &at);
    char *node = strstr(b.p + at, "[[") + 2;
    *node = *node == '9' ? '8' : (char)(*node + 1);
    check_conflict(&b, line, "the core now decides otherwise");
}

static void a_decision_that_is_missing_is_found(void)
{
    AUTO(buf_free) struct buf b = lab_journal(1);
    size_t at;
    unsigned line = find_line(&b, "\"ev\":\"place\"", 20, &at);
    char *end = strchr(b.p + at, '\n') + 1;
    memmove(b.p + at, end, strlen(end) + 1);
    b.n = strlen(b.p);
    check_conflict(&b, line, "the pass before also decides about job");
}

static void a_decision_too_many_is_found(void)
{
    AUTO(buf_free) struct buf b = BUF(65536);
    buf_addz(&b, WORLD SUBMIT("1", "1", "2") SUBMIT("1", "2", "2"));
    buf_addz(&b, PASS("2") PLACE("2", "1", "3") PLACE("2", "2", "3"));
    check_conflict(&b, 8, "the journal places job 2");
}

static void a_decision_without_a_pass_is_found(void)
{
    AUTO(buf_free) struct buf b = BUF(65536);
    buf_addz(&b, WORLD SUBMIT("1", "1", "2") PLACE("2", "1", "3"));
    check_conflict(&b, 5, "the journal places job 1");
}

static void a_journal_cut_after_a_pass_lacks_its_decision(void)
{
    static const char text[] = WORLD SUBMIT("1", "1", "2") PASS("2");
    struct journal_check c;
    struct err e;
    CHECK(verify(STR(text), &c, &e) == -1 && e.code == ERR_CONFLICT);
    CHECK_STR(e.msg,
              "a.journal: at its end: the pass before also decides about job 1 now; the journal "
              "does not");
}

static void cut_anywhere_it_verifies_or_names_a_line(void)
{
    AUTO(buf_free) struct buf b = lab_journal(2);
    size_t n = MIN(b.n, (size_t)9000);
    for (size_t cut = 1; cut < n; cut += 7) {
        struct journal_check c;
        struct err e;
        if (verify((struct str){ b.p, cut }, &c, &e) < 0)
            CHECK_AT(cut, strncmp(e.msg, "a.journal:", 10) == 0);
    }
}

/* ---- broken lines, for both readers ---- */

static void refused(const char *text, const char *begin)
{
    struct trace t = { .jobs = 12345 };
    struct journal_check c = { .events = 12345 };
    struct err e = { 0 };
    CHECK(trace_parse_journal("a.journal", str_of(text), NULL, &t, &e) == -1);
    CHECK(e.code == ERR_INVALID && t.jobs == 12345);
    if (strncmp(e.msg, begin, strlen(begin)) != 0)
        test_fail(__FILE__, __LINE__, "wanted %s, got: %s", begin, e.msg);
    CHECK(verify(str_of(text), &c, &e) == -1 && c.events == 12345);
    if (e.code != ERR_INVALID || strncmp(e.msg, begin, strlen(begin)) != 0)
        test_fail(__FILE__, __LINE__, "wanted %s, verify says: %s", begin, e.msg);
}

static void an_empty_file_is_no_journal(void)
{
    refused("", "a.journal:1: the journal is empty");
    refused("\n", "a.journal:1: ");
    refused("job_id,submit_s\n", "a.journal:1: ");
    refused("{}\n", "a.journal:1: this is not a Nightshift journal");
    refused("{\"journal\":\"nightshift\",\"version\":99}\n",
            "a.journal:1: the journal has version");
}

static void a_garbled_line_is_named(void)
{
    refused(WORLD "{\"t\":1,\"ev\":\"sub", "a.journal:4: ");
    refused(WORLD "what\n", "a.journal:4: ");
    refused(WORLD "\n\n[1]\n", "a.journal:6: a journal line is a JSON object");
    refused(WORLD "{\"ev\":\"pass\"}\n", "a.journal:4: field 't' is missing");
    refused(WORLD "{\"t\":1,\"ev\":\"party\"}\n", "a.journal:4: field 'ev': 'party' is not known");
    refused(WORLD SUBMIT("1", "1", "-2"), "a.journal:4: field 'gpus': ");
}

static void an_event_that_does_not_fit_names_line_and_field(void)
{
    refused(WORLD "{\"t\":1,\"ev\":\"tenant\",\"name\":\"lab\",\"parent\":\"lab\","
                  "\"weight_milli\":1}\n",
            "a.journal:4: field 'parent': tenant 'lab' cannot be below 'lab': that is a cycle");
    refused(WORLD
            "{\"t\":1,\"ev\":\"tenant\",\"name\":\"x\",\"parent\":\"y\",\"weight_milli\":1}\n",
            "a.journal:4: field 'parent': ");
    refused(WORLD "{\"t\":1,\"ev\":\"tenant\",\"name\":\"x\",\"weight_milli\":0}\n",
            "a.journal:4: field 'weight_milli': ");
    refused(WORLD "{\"t\":1,\"ev\":\"tenant\",\"name\":\"\",\"weight_milli\":1}\n",
            "a.journal:4: field 'name': ");
    refused(WORLD "{\"t\":1,\"ev\":\"node\",\"name\":\"n0\",\"cpu_milli\":1,\"mem_mib\":1}\n",
            "a.journal:4: field 'name': node 'n0' is enrolled already");
    refused(WORLD "{\"t\":1,\"ev\":\"node\",\"name\":\"n1\",\"gpus\":99,\"cpu_milli\":1,"
                  "\"mem_mib\":1}\n",
            "a.journal:4: field 'gpus': ");
    refused(WORLD "{\"t\":1,\"ev\":\"node\",\"name\":\"n1\",\"gpus\":1,\"cpu_milli\":1,"
                  "\"mem_mib\":1}\n",
            "a.journal:4: field 'model': ");
    refused(WORLD "{\"t\":1,\"ev\":\"node\",\"name\":\"n1\",\"model\":\"g\",\"gpus\":1,"
                  "\"cpu_milli\":1,\"mem_mib\":1,\"links\":[7]}\n",
            "a.journal:4: field 'links': ");
    refused(WORLD "{\"t\":1,\"ev\":\"node_state\",\"name\":\"n7\",\"state\":\"down\"}\n",
            "a.journal:4: field 'name': ");
    refused(WORLD "{\"t\":1,\"ev\":\"user\",\"tenant\":\"z\",\"user\":\"u\",\"weight_milli\":1}\n",
            "a.journal:4: field 'tenant': ");
    refused(WORLD SUBMIT("1", "1", "1") JOB("2", "1", "exited_ok"), "a.journal:5: field 'what': ");
    refused(WORLD JOB("2", "9", "started"), "a.journal:4: field 'job': there is no job 9");
}

static void a_job_that_can_never_run_names_line_and_field(void)
{
    refused(WORLD SUBMIT("1", "1", "3"), "a.journal:4: field 'gpus': job 1: gpus: 3 on one");
    refused(WORLD SUBMIT("1", "5", "1") SUBMIT("1", "5", "1"), "a.journal:5: field 'job': ");
    refused(WORLD "{\"t\":1,\"ev\":\"submit\",\"job\":1,\"tenant\":\"lab\",\"user\":\"a\","
                  "\"replicas\":2,\"gpus\":2,\"priority\":\"normal\"}\n",
            "a.journal:4: field 'replicas': job 1: replicas: 2");
    refused(WORLD "{\"t\":1,\"ev\":\"submit\",\"job\":1,\"tenant\":\"zoo\",\"user\":\"a\","
                  "\"replicas\":1,\"priority\":\"normal\"}\n",
            "a.journal:4: field 'tenant': ");
    refused(WORLD "{\"t\":1,\"ev\":\"submit\",\"job\":1,\"tenant\":\"lab\",\"user\":\"a\","
                  "\"replicas\":1,\"gpus\":1,\"models\":\"H200\",\"priority\":\"normal\"}\n",
            "a.journal:4: field 'models': ");
    refused(WORLD "{\"t\":1,\"ev\":\"submit\",\"job\":1,\"tenant\":\"lab\",\"user\":\"a\","
                  "\"replicas\":1,\"cpu_milli\":9000,\"priority\":\"normal\"}\n",
            "a.journal:4: field 'cpu_milli': ");
}

static struct trace parsed(const char *text)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    if (trace_parse_journal("dir/a.journal", str_of(text), NULL, &t, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return t;
}

static void a_place_that_is_taken_is_refused(void)
{
    struct trace t = { .jobs = 12345 };
    struct err e = { 0 };
    static const char text[] = WORLD SUBMIT("1", "1", "2") SUBMIT("1", "2", "2") PASS("2")
        PLACE("2", "1", "3") PLACE("2", "2", "3");
    CHECK(trace_parse_journal("a.journal", STR(text), NULL, &t, &e) == -1 && t.jobs == 12345);
    CHECK_STR(e.msg, "a.journal:8: field 'slots': job 2: its slots are not free");
    CHECK_INT(e.code, ERR_INVALID);
}

static void a_name_with_a_zero_byte_is_refused(void)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(trace_parse_journal("a.journal",
                              STR(HEADER "{\"t\":0,\"ev\":\"tenant\",\"name\":\"a\\u0000b\","
                                         "\"weight_milli\":1}\n"),
                              NULL, &t, &e) == -1);
    CHECK(strncmp(e.msg, "a.journal:2: field 'name': ", 27) == 0 && e.code == ERR_INVALID);
}

/* ---- as a trace ---- */

static void a_job_is_as_long_as_it_ran(void)
{
    AUTO(trace_free)
    struct trace t = parsed(WORLD SUBMIT("1000", "1", "2") START("3000", "1", "3")
                                JOB("9000", "1", "exited_ok"));
    CHECK(t.jobs == 1 && t.skipped == 0 && t.nodes == 1 && t.tenants == 1 && !t.node_tenant);
    CHECK(t.job[0].id == 1 && t.job[0].submit_ms == 1000 && t.job[0].duration_ms == 6000);
    CHECK(t.job[0].tenant == 0 && t.job[0].gpus == 2 && t.job[0].request.gpus == 2);
    CHECK_STR(t.job[0].user, "ann");
    CHECK_STR(t.tenant[0].name, "lab");
    CHECK(str_is(t.node[0].name, "n0") && t.node[0].gpus == 2);
}

static void a_job_that_still_runs_has_run_until_the_last_event(void)
{
    AUTO(trace_free)
    struct trace t = parsed(WORLD SUBMIT("1000", "1", "1") START("2000", "1", "1") PASS("7000"));
    CHECK(t.jobs == 1 && t.job[0].duration_ms == 5000);
}

static void a_job_that_never_ran_is_skipped_and_counted(void)
{
    AUTO(trace_free)
    struct trace t = parsed(WORLD SUBMIT("1", "1", "2") SUBMIT("2", "2", "1") SUBMIT("3", "3", "1")
                                START("5", "1", "3") JOB("8", "2", "cancel") PASS("9"));
    CHECK(t.jobs == 1 && t.job[0].id == 1);
    CHECK_INT(t.skipped, 2);
}

static void frozen_time_does_not_count(void)
{
    AUTO(trace_free)
    struct trace t =
        parsed(WORLD SUBMIT("0", "1", "2") START("1000", "1", "3") JOB("4000", "1", "freeze")
                   JOB("5000", "1", "froze") JOB("50000", "1", "thaw") START("60000", "1", "3")
                       JOB("62000", "1", "exited_ok"));
    CHECK_INT(t.job[0].duration_ms, 5000); /* 1000 to 4000, 60000 to 62000 */
    const struct trace_heard *froze = t.job[0].seen->heard->next;
    CHECK(froze->what == JOB_EV_FROZE && froze->took_ms == 1000);
}

static void a_job_that_starts_anew_has_lost_its_work(void)
{
    AUTO(trace_free)
    struct trace t =
        parsed(WORLD SUBMIT("0", "1", "2") START("1000", "1", "3") JOB("3000", "1", "returned")
                   START("10000", "1", "3") JOB("14000", "1", "cancel") JOB("15000", "1", "ended"));
    CHECK_INT(t.job[0].duration_ms, 5000);
    CHECK(t.job[0].seen->stops && t.job[0].seen->stop_ms == 1000);
}

static void a_clock_that_was_set_back_takes_nothing_away(void)
{
    AUTO(trace_free)
    struct trace t = parsed(WORLD SUBMIT("9000", "1", "2") START("5000", "1", "3") PASS("20000")
                                JOB("100", "1", "exited_ok"));
    CHECK(t.jobs == 1 && t.job[0].submit_ms == 9000);
    CHECK_INT(t.job[0].duration_ms, 11000);
}

static void a_job_that_had_to_wait_for_its_time_came_then(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e;
    static const char text[] =
        WORLD "{\"t\":1000,\"ev\":\"submit\",\"job\":1,\"tenant\":\"lab\",\"user\":\"ann\","
              "\"replicas\":1,\"gpus\":1,\"priority\":\"normal\",\"begin_ms\":5000}\n"
              "{\"t\":1000,\"ev\":\"submit\",\"job\":2,\"tenant\":\"lab\",\"user\":\"ann\","
              "\"replicas\":1,\"gpus\":1,\"priority\":\"normal\",\"after\":[[1,1,\"ok\"]]}\n" START(
                  "6000", "1", "1") JOB("7000", "1", "exited_ok") START("7500", "2", "1")
                  JOB("9000", "2", "exited_ok");
    CHECK(trace_parse_journal("a.journal", str_of(text), NULL, &t, &e) == 0);
    CHECK(t.jobs == 2 && t.job[0].submit_ms == 5000 && t.job[1].submit_ms == 7000);
}

static void a_tenant_that_was_changed_has_its_last_weight(void)
{
    AUTO(trace_free)
    struct trace t = parsed(WORLD "{\"t\":5,\"ev\":\"tenant\",\"name\":\"lab\","
                                  "\"weight_milli\":7000,\"limit\":{\"gpus\":1000}}\n");
    CHECK(t.tenants == 1 && t.tenant[0].weight_milli == 7000);
    CHECK(t.tenant[0].limit.of[RES_GPU] == 1000 && t.tenant[0].limit.of[RES_CPU] == NO_LIMIT);
}

static void a_lab_read_from_its_journal_replays_to_the_same_starts(void)
{
    AUTO(buf_free) struct buf b = lab_journal(4);
    AUTO(trace_free) struct trace t = { 0 }, lab = { 0 };
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    struct report r;
    struct outcome from_lab, from_journal;
    struct err e;
    CHECK(trace_parse_journal("a.journal", buf_str(&b), NULL, &t, &e) == 0);
    CHECK(trace_make_lab(4, 2, false, &lab, &e) == 0 && lab.jobs == t.jobs);
    CHECK(replay_run(&lab, &o, &r, &from_lab, &e) == 0);
    CHECK(replay_run(&t, &o, &r, &from_journal, &e) == 0);
    CHECK(memcmp(from_lab.start_ms, from_journal.start_ms, t.jobs * sizeof(int64_t)) == 0);
    CHECK(memcmp(from_lab.end_ms, from_journal.end_ms, t.jobs * sizeof(int64_t)) == 0);
}

static void files_are_read_and_named(void)
{
    char path[] = "/tmp/nightshift-journal-XXXXXX";
    int fd = mkstemp(path);
    struct journal_check c;
    struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(fd >= 0);
    close(fd);
    CHECK(file_write(path, STR(WORLD SUBMIT("1", "1", "2") START("2", "1", "3")), &e) == 0);
    int verified = journal_verify(path, &c, &e), read = trace_read_journal(path, NULL, &t, &e);
    unlink(path);
    CHECK(verified == 0 && c.events == 6 && c.passes == 1 && c.decisions == 1);
    CHECK(read == 0 && t.jobs == 0 && t.skipped == 1); /* it began at the last event */
    trace_free(&t);
    CHECK(journal_verify(path, &c, &e) == -1 && e.code == ERR_NOT_FOUND && strstr(e.msg, path));
    CHECK(trace_read_journal(path, NULL, &t, &e) == -1 && e.code == ERR_NOT_FOUND);
}

/* A daemon's timer fires a little after what the core asked for. */
static void a_changed_world_ends_though_its_passes_came_a_little_late(void)
{
    const char *text =
        WORLD SUBMIT("1000", "1", "2") START("1000", "1", "3") SUBMIT("2000", "2", "2") PASS("2000")
            PASS("61001") PASS("121003") JOB("130000", "1", "exited_ok") PASS("130000");
    AUTO(trace_free) struct trace t = { 0 };
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    struct report r;
    struct outcome jobs;
    struct err e;
    CHECK(trace_parse_journal("a.journal", str_of(text), NULL, &t, &e) == 0);
    CHECK(whatif_apply(&t, "weight:lab=5", &e) == 0);
    CHECK(replay_run(&t, &o, &r, &jobs, &e) == 0);
    CHECK(r.jobs == 1 && r.unfinished == 0);
}

static const struct test tests[] = {
    { "a changed world ends though its passes came a little late",
      a_changed_world_ends_though_its_passes_came_a_little_late },
    { "a lab replays to the same decisions", a_lab_replays_to_the_same_decisions },
    { "one changed decision is found and its line named",
      one_changed_decision_is_found_and_its_line_named },
    { "a decision that is missing is found", a_decision_that_is_missing_is_found },
    { "a decision too many is found", a_decision_too_many_is_found },
    { "a decision without a pass is found", a_decision_without_a_pass_is_found },
    { "a journal cut after a pass lacks its decision",
      a_journal_cut_after_a_pass_lacks_its_decision },
    { "cut anywhere, it verifies or names a line", cut_anywhere_it_verifies_or_names_a_line },
    { "an empty file is no journal", an_empty_file_is_no_journal },
    { "a garbled line is named", a_garbled_line_is_named },
    { "an event that does not fit names line and field",
      an_event_that_does_not_fit_names_line_and_field },
    { "a job that can never run names line and field",
      a_job_that_can_never_run_names_line_and_field },
    { "a place that is taken is refused", a_place_that_is_taken_is_refused },
    { "a name with a zero byte is refused", a_name_with_a_zero_byte_is_refused },
    { "a job is as long as it ran", a_job_is_as_long_as_it_ran },
    { "a job that still runs has run until the last event",
      a_job_that_still_runs_has_run_until_the_last_event },
    { "a job that never ran is skipped and counted", a_job_that_never_ran_is_skipped_and_counted },
    { "frozen time does not count", frozen_time_does_not_count },
    { "a job that starts anew has lost its work", a_job_that_starts_anew_has_lost_its_work },
    { "a clock that was set back takes nothing away",
      a_clock_that_was_set_back_takes_nothing_away },
    { "a job that had to wait for its time came then",
      a_job_that_had_to_wait_for_its_time_came_then },
    { "a tenant that was changed has its last weight",
      a_tenant_that_was_changed_has_its_last_weight },
    { "a lab read from its journal replays to the same starts",
      a_lab_read_from_its_journal_replays_to_the_same_starts },
    { "files are read and named", files_are_read_and_named },
};
TEST_CASES(tests)
