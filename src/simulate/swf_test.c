#include <stdio.h>

#include "simulate/trace.h"
#include "tests/lib/gen_trace.h"
#include "tests/lib/test.h"

#define HEAD "; Version: 2.2\n;MaxNodes: 4 (of 5)\n; MaxProcs: 32\n"
#define TAIL " -1 -1 1 7 3 -1 1 -1 -1 -1\n" /* from Requested Time on */

static int parse(const char *text, uint32_t gpus, struct trace *out, struct err *e)
{
    const struct csv_source from = { "logs/x.swf", str_of(text) };
    return trace_parse_swf(&from, gpus, out, e);
}

static void reads_generated_logs(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(buf_free) struct buf text;
        struct err e = { 0 };
        gen_swf(seed, &text);
        for (uint32_t gpus = 0; gpus <= 8; gpus += 4) {
            AUTO(trace_free) struct trace t = { 0 };
            CHECK_AT(seed, parse(text.p, gpus, &t, &e) == 0);
            CHECK_AT(seed, t.jobs == GEN_SWF_JOBS && t.skipped == 1 && t.tenants <= 4);
            CHECK_AT(seed, t.nodes == (gpus == 4 ? 16 : 8));
        }
    }
}

static void keeps_what_the_log_says(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse(HEAD "5 100 2 60 12 1.5 -1 12 90 -1 1 7 3 9 1 -1 -1 -1\r\n"
                     "  4 100 2 60 -1 -1 -1 8 -1 -1 0 -1 -1 -1 1 -1 -1 -1\n",
                0, &t, &e) == 0);
    CHECK_STR(t.name, "x.swf");
    CHECK(t.nodes == 4 && t.node[0].cpu_milli == 8000 && t.node[0].gpus == 0 && t.jobs == 2);
    const struct trace_job *j = &t.job[1]; /* 12 processors on nodes of 8 */
    CHECK(j->id == 5 && j->submit_ms == 100000 && j->duration_ms == 60000);
    CHECK(j->estimate_ms == 90000 && j->gpus == 0 && j->family == 9);
    CHECK(j->request.replicas == 3 && j->request.cpu_milli == 4000);
    CHECK_STR(j->user, "user-7");
    CHECK_STR(t.tenant[j->tenant].name, "group-3");
    j = &t.job[0]; /* nothing allocated is on record: what was asked for counts */
    CHECK(j->id == 4 && j->request.replicas == 1 && j->request.cpu_milli == 8000);
    CHECK(j->estimate_ms == 0 && j->family == 0);
    CHECK_STR(j->user, "user-unknown");
    CHECK_STR(t.tenant[j->tenant].name, "group-unknown");
}

static void processors_may_become_gpus(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse("; MaxProcs: 10\n1 0 0 60 10 -1 -1 10" TAIL, 4, &t, &e) == 0);
    CHECK(t.nodes == 3 && t.node[0].gpus == 4 && t.node[2].gpus == 2);
    CHECK(t.job[0].gpus == 10 && t.job[0].request.gpus == 2 && t.job[0].request.replicas == 5);
    CHECK(t.job[0].request.layout == LAYOUT_FEWEST && t.job[0].request.cpu_milli == 0);
}

static void nodes_are_as_equal_as_possible(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse("; MaxNodes: 3\n; MaxProcs: 10\n", 0, &t, &e) == 0);
    CHECK(t.nodes == 3 && t.node[0].cpu_milli == 4000 && t.node[1].cpu_milli == 3000);
    trace_free(&t);
    CHECK(parse("; MaxNodes: 3\n", 0, &t, &e) == 0 && t.nodes == 3 && t.node[0].cpu_milli == 1000);
}

static void counts_what_it_skips(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse(HEAD "1 0 0 0 1 -1 -1 1" TAIL "2 0 0 -1 1 -1 -1 1" TAIL "3 0 0 5 0 -1 -1 -1" TAIL
                     "4 0 0 5 1 -1 -1 1 -1 -1 2 7 3 -1 1 -1 -1 -1\n" /* a part of job 4 */
                     "\n; a comment\n4 0 0 5 1 -1 -1 1" TAIL,
                0, &t, &e) == 0);
    CHECK(t.jobs == 1 && t.skipped == 4);
}

static void refused(const char *text, uint32_t gpus, const char *start)
{
    struct trace t;
    struct err e = { 0 };
    memset(&t, 0x5a, sizeof t);
    CHECK(parse(text, gpus, &t, &e) < 0);
    CHECK_INT(e.code, ERR_INVALID);
    if (strncmp(e.msg, start, strlen(start)) != 0)
        CHECK_STR(e.msg, start);
    CHECK(e.hint[0]);
    for (size_t i = 0; i < sizeof t; i++)
        CHECK(((const char *)&t)[i] == 0x5a); /* left alone */
}

static void refuses_broken_jobs(void)
{
    static const char *const cases[][2] = {
        { "x 0 0 60 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Job Number': 'x' is not" },
        { "-1 0 0 60 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Job Number': '-1' is not a value" },
        { "2 -1 0 60 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Submit Time': '-1' is not a value" },
        { "2 -5 0 60 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Submit Time': '-5' is not" },
        { "2 0 0 60 33 -1 -1 1" TAIL,
          "logs/x.swf:5: field 'Number of Allocated Processors': 33 processors do not fit" },
        { "2 0 0 60 -1 -1 -1 33" TAIL,
          "logs/x.swf:5: field 'Requested Number of Processors': 33 processors do not fit" },
        { "2 0 0 60.5 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Run Time': '60.5' is not" },
        { "2 0 0 60 1 abc -1 1" TAIL, "logs/x.swf:5: field 'Average CPU Time Used': 'abc' is not" },
        { "2 0 0 60 1 -1 -1 1 -1 -1 9 7 3 -1 1 -1 -1 -1\n", "logs/x.swf:5: field 'Status': '9'" },
        { "2 0 0 99999999999999999999 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Run Time': '999" },
        { "1 0 0 60 1 -1 -1 1" TAIL, "logs/x.swf:5: field 'Job Number': job 1 is on line 4 alr" },
        { "2 0 0 60 1\n", "logs/x.swf:5: field 'Average CPU Time Used': missing" },
        { "2 0 0 60 1 -1 -1 1 -1 -1 1 7 3 -1 1 -1 -1 -1 5\n",
          "logs/x.swf:5: field 'Think Time from Preceding Job': '5' follows it" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s1 0 0 60 1 -1 -1 1%s%s", HEAD, TAIL, cases[i][0]);
        refused(text, 0, cases[i][1]);
    }
    char line[5000];
    memset(line, ' ', sizeof line);
    memcpy(line, "; MaxProcs: 1\n1", 15);
    line[sizeof line - 1] = '\0';
    refused(line, 0, "logs/x.swf:2: field 'Job Number': the line is longer than 4096 bytes");
}

static void refuses_broken_machines(void)
{
    refused("", 0, "logs/x.swf:1: field 'MaxProcs': the header does not say how large");
    refused("; MaxProcs: many\n", 0, "logs/x.swf:1: field 'MaxProcs': 'many' is not");
    refused("; x\n; MaxNodes:\n", 0, "logs/x.swf:2: field 'MaxNodes': '' is not");
    refused("; MaxProcs: -4\n", 0, "logs/x.swf:1: field 'MaxProcs': '-4' is not");
    refused("; MaxNodes: 4\n; MaxProcs: 3\n", 0,
            "logs/x.swf:2: field 'MaxProcs': 3 processors on 4");
    refused("; MaxProcs: 400000\n; MaxNodes: 200000\n", 0,
            "logs/x.swf:2: field 'MaxNodes': 200000 nodes; at most 100000");
    refused("; MaxProcs: 400000\n", 1, "logs/x.swf:1: field 'MaxProcs': 400000 nodes; at most");
    refused("; MaxProcs: 4\n", 17, "17 GPUs on one machine");
}

static void a_missing_file_is_not_found(void)
{
    struct trace t;
    struct err e = { 0 };
    CHECK(trace_read_swf("/nonexistent/x.swf", 0, &t, &e) < 0 && e.code == ERR_NOT_FOUND);
}

static const struct test tests[] = {
    { "generated logs are read whole, for 20 seeds", reads_generated_logs },
    { "values are those of the log; groups become tenants", keeps_what_the_log_says },
    { "processors may become GPUs", processors_may_become_gpus },
    { "nodes are as equal as the header allows", nodes_are_as_equal_as_possible },
    { "jobs that never ran and parts of jobs are skipped and counted", counts_what_it_skips },
    { "a broken job is refused with file, line and field", refuses_broken_jobs },
    { "a broken header is refused with file, line and field", refuses_broken_machines },
    { "a missing file is not found", a_missing_file_is_not_found },
};
TEST_CASES(tests)
