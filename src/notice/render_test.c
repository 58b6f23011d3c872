#include "notice/render.h"

#include <stdio.h>

#include "tests/lib/test.h"

static struct store_job job(const char *name, enum job_state state, const char *message)
{
    return (struct store_job){
        .fixed = { .id = 17,
                   .tenant = STR("vision"),
                   .user = STR("ana"),
                   .name = str_of(name),
                   .replicas = 1 },
        .now = { .state = state,
                 .state_ms = INT64_C(1772368200000),
                 .ran_ms = INT64_C(3) * 3600000 + 2 * 60000 + 5000,
                 .run = 1,
                 .exit_code = 1,
                 .message = str_of(message),
                 .where =
                     STR("[{\"node\":\"desk1\",\"gpus\":[0]},{\"node\":\"desk1\",\"gpus\":[1]},"
                         "{\"node\":\"desk2\",\"gpus\":[0]}]") },
    };
}

static void data_of(const struct store_job *j, size_t n, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "count", n);
    json_put_u64(&w, job_state_name(j->now.state), n);
    if (j->fixed.array)
        json_put_u64(&w, "array", j->fixed.array);
    json_begin(&w, "jobs", '[');
    for (size_t i = 0; i < MIN(n, (size_t)3); i++) {
        json_begin(&w, NULL, '{');
        render_put_job(&w, j);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
}

static const char *subject(enum notice_event event, struct str data, char out[static 512])
{
    AUTO(buf_free) struct buf b = BUF(1024);
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(data, &e);
    CHECK(d && render_subject(event, json_root(d), &b, &e) == 0);
    snprintf(out, 512, "%s", b.p);
    return out;
}

static const char *subject_of(const struct store_job *j, size_t n, char out[static 512])
{
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    data_of(j, n, &b);
    return subject(job_state_ended(j->now.state) ? EVENT_OF_JOB_ENDED : EVENT_OF_JOB_FROZEN,
                   buf_str(&b), out);
}

static void subjects_are_sentences(void)
{
    char text[512];
    struct store_job j = job("train", JOB_FAILED, "out of memory");
    CHECK_STR(subject_of(&j, 1, text), "Job 17 'train' failed after 3 h 2 min: out of memory");
    j = job("", JOB_SUCCEEDED, "");
    CHECK_STR(subject_of(&j, 1, text), "Job 17 succeeded after 3 h 2 min");
    j = job("t", JOB_CANCELLED, "by root");
    j.now.ran_ms = 0;
    CHECK_STR(subject_of(&j, 1, text), "Job 17 't' was cancelled: by root");
    j = job("train", JOB_FROZEN, "taken back: it is another job's turn");
    CHECK_STR(subject_of(&j, 1, text),
              "Job 17 'train' is frozen: taken back: it is another job's turn");
    j = job("train", JOB_FAILED, "exit code 1");
    j.fixed.array = 12;
    CHECK_STR(subject_of(&j, 200, text), "200 jobs of array 12 'train' ended: 200 failed");
    j.fixed.array = 0;
    CHECK_STR(subject_of(&j, 2, text), "2 jobs ended: 2 failed");
    CHECK_STR(subject(EVENT_OF_BUDGET,
                      STR("{\"tenant\":\"vision\",\"percent\":80,\"gpu_hours\":100.0}"), text),
              "Tenant 'vision' has used 80 % of its 100.0 GPU-hours");
    CHECK_STR(subject(EVENT_OF_BUDGET,
                      STR("{\"tenant\":\"vision\",\"percent\":100,\"gpu_hours\":100.0}"), text),
              "Tenant 'vision' has used up its 100.0 GPU-hours");
    CHECK_STR(
        subject(EVENT_OF_NODE_DRAINED, STR("{\"node\":\"pc1\",\"reason\":\"xid: 79\"}"), text),
        "Machine 'pc1' was drained: xid: 79");
    CHECK_STR(subject(EVENT_OF_GPU_IDLE,
                      STR("{\"node\":\"pc1\",\"gpu\":1,\"idle_ms\":1860000,\"jobs\":[{\"id\":17,"
                          "\"name\":\"nb\"}]}"),
                      text),
              "Job 17 'nb' leaves a GPU idle: GPU 1 of pc1 did nothing for 31 min 0 s");
    CHECK_STR(subject(EVENT_OF_TRIAL, STR("{\"user\":\"ana\"}"), text), "A trial notice for ana");
}

/* Every line of the head, until the empty one, has a name we gave it, or goes on with a blank. */
static void check_head(const char *mail)
{
    static const char *const names[] = { "From: ",
                                         "To: ",
                                         "Subject: ",
                                         "Date: ",
                                         "Message-ID: ",
                                         "Auto-Submitted: ",
                                         "X-Nightshift-Event: ",
                                         "MIME-Version: ",
                                         "Content-Type: ",
                                         "Content-Transfer-Encoding: ",
                                         " " };
    const char *end = strstr(mail, "\r\n\r\n");
    CHECK(end != NULL);
    for (const char *at = mail; at < end; at = strstr(at, "\r\n") + 2) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            known |= strncmp(at, names[i], strlen(names[i])) == 0;
        CHECK(known);
        CHECK((size_t)(strstr(at, "\r\n") - at) < 200);
        CHECK(!memchr(at, '\n', (size_t)(strstr(at, "\r\n") - at)));
    }
    for (const char *p = mail; (p = strchr(p, '\n')); p++)
        CHECK(p > mail && p[-1] == '\r');
}

static void mail_of(const struct store_job *j, const char *log, struct buf *out)
{
    AUTO(buf_free) struct buf data = BUF(64 << 10);
    char text[512];
    struct err e = { 0 };
    data_of(j, 1, &data);
    struct notice_letter l = { .id = "0123",
                               .event = EVENT_OF_JOB_ENDED,
                               .made_ms = INT64_C(1772368205000),
                               .subject = str_of(subject_of(j, 1, text)),
                               .data = buf_str(&data),
                               .log = str_of(log),
                               .url = "https://gpu.lab.example",
                               .from = "night@lab.example",
                               .to = "ana@lab.example" };
    CHECK(render_mail(&l, out, &e) == 0);
    check_head(out->p);
}

static void a_mail_says_who_what_where_and_why(void)
{
    AUTO(buf_free) struct buf m = BUF(64 << 10);
    struct store_job j = job("train", JOB_FAILED, "out of memory");
    mail_of(&j, "epoch 1\nKilled\n", &m);
    static const char *const parts[] = {
        "From: Nightshift <night@lab.example>\r\n",
        "To: <ana@lab.example>\r\n",
        "Subject: Job 17 'train' failed after 3 h 2 min: out of memory\r\n",
        "Date: Sun, 01 Mar 2026 12:30:05 +0000\r\n",
        "Message-ID: <0123@lab.example>\r\n",
        "  user      ana\r\n",
        "  tenant    vision\r\n",
        "  why       out of memory\r\n",
        "  where     desk1, desk2\r\n",
        "  end       exit code 1\r\n",
        "  https://gpu.lab.example/#/jobs/17\r\n",
        "epoch 1\r\nKilled\r\n"
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!strstr(m.p, parts[i]))
            CHECK_STR(m.p, parts[i]);
}

static void a_name_cannot_begin_another_header(void)
{
    static const char *const names[] = { "x\r\nBcc: eve@evil.example",
                                         "x\n\nbody",
                                         "x\rBcc: e@x",
                                         "\xe2\x80\xa8"
                                         "Bcc: e@x",
                                         "a\xc2\x85"
                                         "b",
                                         "x\xff\xfe\r\n y",
                                         "=?utf-8?B?DQpCY2M6IGVAeA==?=",
                                         "<b>&\"'</b>",
                                         "\xf0\x9f\x98\x80 \xc3\xa4" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO(buf_free) struct buf m = BUF(64 << 10);
        struct store_job j = job(names[i], JOB_FAILED, names[i]);
        mail_of(&j, names[i], &m);
        size_t head = (size_t)(strstr(m.p, "\r\n\r\n") - m.p);
        CHECK(!memmem(m.p, head, "\nBcc", 4) && !memmem(m.p, head, "\rBcc", 4));
        for (size_t k = 0; k < m.n; k++)
            CHECK((unsigned char)m.p[k] < 0x7f);
    }
}

static void long_and_foreign_subjects_are_encoded_words(void)
{
    AUTO(buf_free) struct buf m = BUF(64 << 10);
    struct store_job j = job("\xc3\xbc"
                             "bung",
                             JOB_SUCCEEDED, "");
    mail_of(&j, "", &m);
    CHECK(
        strstr(
            m.p,
            "Subject: =?utf-8?B?Sm9iIDE3ICfDvGJ1bmcnIHN1Y2NlZWRlZCBhZnRlciAzIGggMiBtaW4=?=\r\n") !=
        NULL);
    CHECK(strstr(m.p, "=C3=BCbung") != NULL);
    buf_truncate(&m, 0);
    AUTO(buf_free) struct buf name = BUF(4096);
    for (int i = 0; i < 400; i++)
        buf_addz(&name, "\xe2\x82\xac");
    j = job(name.p, JOB_FAILED, name.p);
    mail_of(&j, "", &m);
    CHECK(strstr(m.p, "?=\r\n =?utf-8?B?") != NULL);
}

static void an_event_is_a_cloud_event(void)
{
    AUTO(buf_free) struct buf data = BUF(64 << 10), out = BUF(64 << 10);
    struct store_job j = job("tr\"ain\n", JOB_FAILED, "exit code 1");
    struct err e = { 0 };
    struct str s = { 0 };
    data_of(&j, 1, &data);
    struct notice_letter l = { .id = "0123",
                               .event = EVENT_OF_JOB_ENDED,
                               .made_ms = INT64_C(1772368205250),
                               .subject = STR("Job 17"),
                               .data = buf_str(&data),
                               .log = STR("a\nb\x1b[31m\xff\n") };
    CHECK(render_event(&l, &out, &e) == 0);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&out), &e);
    CHECK(d != NULL);
    static const char *const rows[][2] = { { "specversion", "1.0" },
                                           { "id", "0123" },
                                           { "source", "urn:nightshift" },
                                           { "type", "dev.nightshift.job.ended" },
                                           { "subject", "job/17" },
                                           { "time", "2026-03-01T12:30:05.250Z" },
                                           { "datacontenttype", "application/json" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK(json_need_str(json_root(d), rows[i][0], 100, &s, &e) == 0);
        CHECK(str_is(s, rows[i][1]));
    }
    const struct json *of = json_find(json_root(d), "data"), *log = json_find(of, "log");
    CHECK(json_need_str(of, "summary", 100, &s, &e) == 0 && str_is(s, "Job 17"));
    CHECK(!json_find(of, "link") && json_len(log) == 2);
    CHECK(json_as_str(json_at(log, 1), 100, &s, &e) == 0 && str_is(s, "b [31m?"));
    const struct json *one = json_first(json_find(of, "jobs"));
    CHECK(json_need_str(one, "name", 100, &s, &e) == 0 && str_is(s, "tr\"ain "));
}

static void data_that_lacks_members_is_still_told(void)
{
    char text[512];
    for (int v = 0; v < NOTICE_EVENT_COUNT; v++) {
        AUTO(buf_free) struct buf out = BUF(64 << 10);
        struct err e = { 0 };
        struct notice_letter l = { .id = "x",
                                   .event = (enum notice_event)v,
                                   .subject = STR("s"),
                                   .data = STR("{}"),
                                   .from = "a@b",
                                   .to = "c@d",
                                   .url = "https://x" };
        CHECK(subject(l.event, l.data, text)[0]);
        CHECK(render_mail(&l, &out, &e) == 0);
        buf_truncate(&out, 0);
        CHECK(render_event(&l, &out, &e) == 0);
    }
}

static const struct test tests[] = {
    { "subjects are sentences", subjects_are_sentences },
    { "a mail says who, what, where and why", a_mail_says_who_what_where_and_why },
    { "a name cannot begin another header", a_name_cannot_begin_another_header },
    { "long and foreign subjects are encoded words", long_and_foreign_subjects_are_encoded_words },
    { "an event is a CloudEvent", an_event_is_a_cloud_event },
    { "data that lacks members is still told", data_that_lacks_members_is_still_told },
};
TEST_CASES(tests)
