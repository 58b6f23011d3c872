#include <stdio.h>
#include <unistd.h>

#include "simulate/trace.h"
#include "sys/file.h"
#include "tests/lib/gen_trace.h"
#include "tests/lib/test.h"

#define VCS "vc,node num\naaa,4\nbbb,1\n"
#define HEAD "job_id,submit_s,vc,num_gpus,duration_s,noisy_est_s\n"

static int parse(const char *vcs, const char *jobs, uint32_t pooled, struct trace *out,
                 struct err *e)
{
    const struct csv_source v = { "vcs.csv", str_of(vcs) }, j = { "jobs.csv", str_of(jobs) };
    return trace_parse_philly(&v, &j, pooled, out, e);
}

static void reads_generated_tables(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(gen_philly_free) struct gen_philly g;
        AUTO(trace_free) struct trace t = { 0 };
        struct err e = { 0 };
        gen_philly(seed, &g);
        CHECK_AT(seed, parse(g.vcs.p, g.jobs.p, 0, &t, &e) == 0);
        CHECK_AT(seed, t.jobs == GEN_PHILLY_JOBS && t.tenants == 3 && t.nodes == 7 && !t.simulated);
        for (uint32_t i = 0; i < t.jobs; i++) {
            const struct request *r = &t.job[i].request;
            CHECK_AT(seed, t.job[i].gpus == r->gpus * r->replicas && r->gpus <= 8);
            CHECK_AT(seed, (r->replicas > 1) == (t.job[i].gpus > 8));
            CHECK_AT(seed, r->layout == (r->replicas > 1 ? LAYOUT_FEWEST : LAYOUT_PACK));
            CHECK_AT(seed, r->cpu_milli == 0 && r->mem_mib == 0);
        }
    }
}

static void keeps_what_the_tables_say(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse(VCS, HEAD "7,5,bbb,2,60,-9\n3,5,aaa,20,30,100\n9,-4,aaa,1,1,0\n", 0, &t, &e) == 0);
    CHECK(t.tenants == 2 && t.nodes == 5 && t.jobs == 3);
    CHECK_STR(t.tenant[0].name, "aaa");
    CHECK(t.tenant[0].weight_milli == 4000 && t.tenant[1].weight_milli == 1000);
    CHECK(str_is(t.node[0].name, "aaa-01") && str_is(t.node[4].name, "bbb-01"));
    CHECK(t.node_tenant[3] == 0 && t.node_tenant[4] == 1 && t.node[4].gpus == 8);
    CHECK(t.job[0].id == 9 && t.job[0].submit_ms == -4000 && t.job[0].duration_ms == 1000);
    CHECK(t.job[1].id == 3 && t.job[1].request.replicas == 5 && t.job[1].request.gpus == 4);
    CHECK(t.job[2].id == 7 && t.job[2].tenant == 1 && t.job[2].estimate_ms == -9000);
    CHECK_STR(t.job[2].models, "");
}

static void pools_the_nodes(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse(VCS, HEAD "7,5,bbb,16,60,0\n", 3, &t, &e) == 0);
    CHECK(t.nodes == 3 && !t.node_tenant && t.tenants == 2);
    CHECK(str_is(t.node[2].name, "pool-003") && t.tenant[0].weight_milli == 4000);
}

static void estimates_may_be_absent(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse(VCS, "job_id,submit_s,vc,num_gpus,duration_s\r\n7,5,bbb,2,60\r\n", 0, &t, &e) == 0);
    CHECK(t.jobs == 1 && t.job[0].estimate_ms == 0);
}

static void refused(const char *vcs, const char *jobs, uint32_t pooled, const char *start)
{
    struct trace t;
    struct err e = { 0 };
    memset(&t, 0x5a, sizeof t);
    CHECK(parse(vcs, jobs, pooled, &t, &e) < 0);
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
        { "-1,5,aaa,1,60,0", "jobs.csv:3: field 'job_id': '-1' is not" },
        { "1,x,aaa,1,60,0", "jobs.csv:3: field 'submit_s': 'x' is not" },
        { "1,5,ccc,1,60,0", "jobs.csv:3: field 'vc': there is no virtual cluster 'ccc'" },
        { "1,5,,1,60,0", "jobs.csv:3: field 'vc': it is empty" },
        { "1,5,aaa,-3,60,0", "jobs.csv:3: field 'num_gpus': '-3' is not a whole number from 1" },
        { "1,5,aaa,0,60,0", "jobs.csv:3: field 'num_gpus': '0' is not" },
        { "1,5,bbb,9,60,0", "jobs.csv:3: field 'num_gpus': 9 GPUs do not fit bbb" },
        { "1,5,aaa,33,60,0", "jobs.csv:3: field 'num_gpus': 33 GPUs do not fit aaa" },
        { "1,5,aaa,1,0,0", "jobs.csv:3: field 'duration_s': '0' is not a whole number from 1" },
        { "1,5,aaa,1,-60,0", "jobs.csv:3: field 'duration_s': '-60' is not" },
        { "1,5,aaa,1,99999999999999999999,0", "jobs.csv:3: field 'duration_s': '999" },
        { "1,5,aaa,1,60,soon", "jobs.csv:3: field 'noisy_est_s': 'soon' is not" },
        { "7,5,aaa,1,60,0", "jobs.csv:3: field 'job_id': job 7 is on line 2 already" },
        { "1,5,aaa,1,60", "jobs.csv:3: field 'noisy_est_s': missing" },
        { "1,5,\"aaa,1,60,0", "jobs.csv:3: field 'vc': its quote is not closed" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "%s7,5,aaa,1,60,0\n%s\n", HEAD, cases[i][0]);
        refused(VCS, text, 0, cases[i][1]);
    }
    refused(VCS, "job_id,submit_s,vc,num_gpus\n", 0,
            "jobs.csv:1: field 'duration_s': the header does not name it");
    refused(VCS, HEAD "7,5,bbb,16,60,0\n", 1,
            "jobs.csv:2: field 'num_gpus': 16 GPUs do not fit the");
    refused(VCS, HEAD, 100001, "a pool of 100001 nodes");
}

static void refuses_broken_clusters(void)
{
    refused("vc,node num\naaa,0\n", HEAD, 0, "vcs.csv:2: field 'node num': '0' is not");
    refused("vc,node num\naaa,-1\n", HEAD, 0, "vcs.csv:2: field 'node num': '-1' is not");
    refused("vc,node num\naaa,1\naaa,1\n", HEAD, 0, "vcs.csv:3: field 'vc': 'aaa' is there twice");
    refused("vc,node num\na,60000\nb,60000\n", HEAD, 0,
            "vcs.csv:3: field 'node num': more than 100000 nodes");
    refused("vc,node num\n", HEAD, 0, "vcs.csv:1: field 'vc': there is no virtual cluster");
    refused("vc,nodes\na,1\n", HEAD, 0, "vcs.csv:1: field 'node num': the header does not name");
}

static void prefers_the_window(void)
{
    char dir[] = "/tmp/philly_test.XXXXXX", vcs[64], all[64], window[64];
    struct err e = { 0 };
    CHECK(mkdtemp(dir));
    snprintf(vcs, sizeof vcs, "%s/philly_vc_nodes.csv", dir);
    snprintf(all, sizeof all, "%s/philly_jobs.csv", dir);
    snprintf(window, sizeof window, "%s/s2_window_jobs.csv", dir);
    struct trace t = { 0 };
    CHECK(file_write(vcs, STR(VCS), &e) == 0);
    CHECK(trace_read_philly(dir, 0, &t, &e) < 0 && e.code == ERR_NOT_FOUND && !t.name);
    CHECK(file_write(all, STR(HEAD "1,5,aaa,1,60,0\n2,5,aaa,1,60,0\n"), &e) == 0);
    CHECK(trace_read_philly(dir, 0, &t, &e) == 0 && t.jobs == 2);
    trace_free(&t);
    CHECK(file_write(window, STR(HEAD "1,5,aaa,1,60,0\n"), &e) == 0);
    CHECK(trace_read_philly(dir, 0, &t, &e) == 0 && t.jobs == 1);
    trace_free(&t);
    CHECK(unlink(vcs) == 0 && unlink(all) == 0 && unlink(window) == 0 && rmdir(dir) == 0);
}

static const struct test tests[] = {
    { "generated tables are read whole, for 20 seeds", reads_generated_tables },
    { "values are those of the tables; a job over 8 GPUs is a gang", keeps_what_the_tables_say },
    { "a pool replaces the clusters' own nodes", pools_the_nodes },
    { "estimates may be absent", estimates_may_be_absent },
    { "a broken job is refused with file, line and field", refuses_broken_jobs },
    { "a broken cluster is refused with file, line and field", refuses_broken_clusters },
    { "the benchmark's window is taken before the whole trace", prefers_the_window },
};
TEST_CASES(tests)
