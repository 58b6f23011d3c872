#include "agent/page.h"

#include <stdio.h>

#include "tests/lib/test.h"

static struct report_head *head_of(void)
{
    struct report_head *h = report_head_new();
    snprintf(h->node, sizeof h->node, "pc1");
    h->gpus = 1;
    h->gpu[0] = (struct report_gpu){ 0, 80000, 400000, "GPU-a", "odd \"name\\" };
    return h;
}

static struct report_sample *sample_of(void)
{
    struct report_sample *s = report_sample_new();
    s->node[REPORT_NODE_CPU] = 1500;
    s->gpu[0][REPORT_GPU_UTIL] = 905;
    s->gpu[0][REPORT_GPU_MEM_USED] = 1000;
    s->part[0] = (struct report_part){ 0, "17.1.0", 600, 800, 2 };
    s->part[1] = (struct report_part){ 0, "web/shop-1/app", 305, 200, 1 };
    s->parts = 2;
    s->given[0] =
        (struct report_given){ 0, "GPU-a", "17.1.0", "nightshift-ours/nightshift-17-1-0/job" };
    s->givens = 1;
    return s;
}

static void what_was_measured_is_on_the_page(void)
{
    static const char *const lines[] = {
        "HTTP/1.1 200 OK\r\n",
        ("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\",modelName=\"odd "
         "\\\"name\\\\\",Hostname=\"pc1\",job=\"17\",user=\"\",tenant=\"\",pod=\"nightshift-17-1-"
         "0\","
         "namespace=\"nightshift-ours\",container=\"job\"} 90.5\n"),
        "DCGM_FI_DEV_FB_FREE{gpu=\"0\",",
        ("kind=\"pod\",job=\"\",user=\"\",tenant=\"\",pod=\"shop-1\",namespace=\"web\","
         "container=\"app\"} 30.5\n"),
        "nightshift_node_cpus_busy{node=\"pc1\"} 1.5\n",
        "nightshift_agent_reports{node=\"pc1\"} 1\n",
        "nightshift_agent_lost_samples{node=\"pc1\"} 3\n",
    };
    AUTO(free_p) struct report_head *h = head_of();
    AUTO(free_p) struct report_sample *s = sample_of();
    AUTO(buf_free) struct buf out = BUF(1u << 20);
    page_answer(&(struct page_facts){ .head = h, .sample = s, .lost = 3 },
                STR("GET /metrics?x HTTP/1.1\r\nHost: a\r\n\r\n"), &out);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        CHECK(strstr(out.p, lines[i]));
    CHECK(strcmp(out.p + out.n - 6, "# EOF\n") == 0);
    CHECK(!strstr(out.p, "DCGM_FI_DEV_GPU_TEMP{")); /* what is not known has no line */
}

static void everything_else_is_refused(void)
{
    static const struct {
        const char *request, *says;
    } rows[] = {
        { "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404" },
        { "GET /metricsx HTTP/1.1\r\n\r\n", "HTTP/1.1 404" },
        { "POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405" },
        { "\r\n\r\n", "HTTP/1.1 400" },
        { "GET\r\n\r\n", "HTTP/1.1 400" },
    };
    AUTO(free_p) struct report_head *h = head_of();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_free) struct buf out = BUF(1u << 20);
        page_answer(&(struct page_facts){ .head = h }, str_of(rows[i].request), &out);
        CHECK(strncmp(out.p, rows[i].says, strlen(rows[i].says)) == 0);
    }
    AUTO(buf_free) struct buf out = BUF(1u << 20);
    page_answer(&(struct page_facts){ .head = h }, STR("HEAD /metrics HTTP/1.1\r\n\r\n"), &out);
    CHECK(strncmp(out.p, "HTTP/1.1 200", 12) == 0 && !strstr(out.p, "# EOF"));
}

static const struct test tests[] = {
    { "what was measured is on the page", what_was_measured_is_on_the_page },
    { "everything else is refused", everything_else_is_refused },
};
TEST_CASES(tests)
