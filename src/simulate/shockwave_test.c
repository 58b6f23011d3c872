#include <stdio.h>
#include <unistd.h>

#include <sys/stat.h>

#include "simulate/trace.h"
#include "sys/file.h"
#include "tests/lib/gen_trace.h"
#include "tests/lib/test.h"

#define HEAD "job_id,submit_s,num_gpus,exclusive_s,trace_duration_s,mode,model\n"

static const struct trace_pool pool = { .gpus = 10, .per_node = 4 };

static int parse(const char *text, struct trace_pool p, struct trace *out, struct err *e)
{
    const struct csv_source from = { "jobs.csv", str_of(text) };
    return trace_parse_shockwave(&from, p, out, e);
}

static void reads_generated_tables(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(buf_free) struct buf text;
        AUTO(trace_free) struct trace t = { 0 };
        struct err e = { 0 };
        gen_shockwave(seed, &text);
        CHECK_AT(seed, parse(text.p, (struct trace_pool){ 32, 4 }, &t, &e) == 0);
        CHECK_AT(seed, t.jobs == GEN_SHOCKWAVE_JOBS && t.tenants == t.jobs && t.nodes == 8);
        CHECK_AT(seed, t.rho_note && !t.simulated && !t.node_tenant);
        for (uint32_t i = 0; i < t.jobs; i++)
            CHECK_AT(seed, t.job[i].gpus == t.job[i].request.gpus * t.job[i].request.replicas);
    }
}

static void keeps_what_the_table_says(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse(HEAD "7,55.5,8,1224.8,9,gns,\"LM (batch size 10)\"\n3,5,2,0.001,1,static,x\r\n",
                pool, &t, &e) == 0);
    CHECK(t.nodes == 3 && t.node[0].gpus == 4 && t.node[1].gpus == 4 && t.node[2].gpus == 2);
    CHECK(t.jobs == 2 && t.tenants == 2);
    CHECK(t.job[0].id == 3 && t.job[0].submit_ms == 5000 && t.job[0].duration_ms == 1);
    const struct trace_job *j = &t.job[1];
    CHECK(j->id == 7 && j->submit_ms == 55500 && j->duration_ms == 1224800 && j->gpus == 8);
    CHECK(j->request.replicas == 2 && j->request.gpus == 4 && j->request.layout == LAYOUT_FEWEST);
    CHECK_STR(j->models, ""); /* the column is the network, not the GPU */
}

static void each_job_is_a_tenant_of_the_same_weight(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e = { 0 };
    CHECK(parse("job_id,submit_s,num_gpus,exclusive_s\n7,5,2,60\n3,5,4,30\n", pool, &t, &e) == 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct trace_tenant *w = &t.tenant[t.job[i].tenant];
        CHECK_STR(w->name, i ? "job-7" : "job-3");
        CHECK(w->weight_milli == 1000 && !w->guarantee_milli && !w->parent[0]);
    }
}

static void refused(const char *text, struct trace_pool p, const char *start)
{
    struct trace t;
    struct err e = { 0 };
    memset(&t, 0x5a, sizeof t);
    CHECK(parse(text, p, &t, &e) < 0);
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
        { "-1,5,1,60,1,a,b", "jobs.csv:3: field 'job_id': '-1' is not" },
        { "1,x,1,60,1,a,b", "jobs.csv:3: field 'submit_s': 'x' is not" },
        { "1,-5,1,60,1,a,b", "jobs.csv:3: field 'submit_s': '-5' is not" },
        { "1,5,0,60,1,a,b", "jobs.csv:3: field 'num_gpus': '0' is not" },
        { "1,5,11,60,1,a,b", "jobs.csv:3: field 'num_gpus': 11 GPUs do not fit the 10" },
        { "1,5,1,0,1,a,b", "jobs.csv:3: field 'exclusive_s': '0' is not" },
        { "1,5,1,nan,1,a,b", "jobs.csv:3: field 'exclusive_s': 'nan' is not" },
        { "1,5,1,1e300,1,a,b", "jobs.csv:3: field 'exclusive_s': '1e300' is not" },
        { "7,5,1,60,1,a,b", "jobs.csv:3: field 'job_id': job 7 is on line 2 already" },
        { "1,5,1", "jobs.csv:3: field 'exclusive_s': missing" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "%s7,5,1,60,1,a,b\n%s\n", HEAD, cases[i][0]);
        refused(text, pool, cases[i][1]);
    }
    refused("job_id,submit_s,num_gpus\n", pool,
            "jobs.csv:1: field 'exclusive_s': the header does not name it");
    refused(HEAD, (struct trace_pool){ 0, 4 }, "0 GPUs, 4 on a machine");
    refused(HEAD, (struct trace_pool){ 32, 0 }, "32 GPUs, 0 on a machine");
    refused(HEAD, (struct trace_pool){ 32, GPUS_PER_NODE_MAX + 1 }, "32 GPUs, ");
}

static void a_file_goes_before_the_folder(void)
{
    char dir[] = "/tmp/shockwave_test.XXXXXX", sub[64], in_dir[96], other[64];
    struct err e = { 0 };
    struct trace t = { 0 };
    CHECK(mkdtemp(dir));
    snprintf(sub, sizeof sub, "%s/shockwave", dir);
    snprintf(in_dir, sizeof in_dir, "%s/tacc32_120jobs.csv", sub);
    snprintf(other, sizeof other, "%s/other.csv", dir);
    CHECK(trace_read_shockwave(dir, NULL, pool, &t, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(trace_read_shockwave(dir, other, pool, &t, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(mkdir(sub, 0777) == 0);
    CHECK(file_write(in_dir, STR(HEAD "1,5,1,60,1,a,b\n2,5,1,60,1,a,b\n"), &e) == 0);
    CHECK(file_write(other, STR(HEAD "1,5,1,60,1,a,b\n"), &e) == 0);
    CHECK(trace_read_shockwave(dir, NULL, pool, &t, &e) == 0 && t.jobs == 2);
    trace_free(&t);
    CHECK(trace_read_shockwave(dir, other, pool, &t, &e) == 0 && t.jobs == 1);
    trace_free(&t);
    CHECK(unlink(in_dir) == 0 && unlink(other) == 0 && rmdir(sub) == 0 && rmdir(dir) == 0);
}

static const struct test tests[] = {
    { "generated tables are read whole, for 20 seeds", reads_generated_tables },
    { "values are those of the table; what is left of the GPUs is a machine",
      keeps_what_the_table_says },
    { "each job is a tenant of the same weight", each_job_is_a_tenant_of_the_same_weight },
    { "a broken job is refused with file, line and field", refuses_broken_jobs },
    { "a file goes before the folder", a_file_goes_before_the_folder },
};
TEST_CASES(tests)
