#include "agent/act.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

struct place {
    char root[64], file[96];
};

static void put(const struct place *p, const char *path, const char *text)
{
    char full[200];
    struct err e;
    snprintf(full, sizeof full, "%s/%s", p->root, path);
    CHECK(file_write(full, str_of(text), &e) == 0);
}

static void check_file(const struct place *p, const char *path, const char *text)
{
    AUTO(buf_free) struct buf b = BUF(0);
    char full[200];
    struct err e;
    snprintf(full, sizeof full, "%s/%s", p->root, path);
    CHECK(file_read(full, 4096, &b, &e) == 0);
    CHECK_STR(b.p ? b.p : "", text);
}

static void folders(struct place *p, const char *const *names, size_t n)
{
    char full[200];
    snprintf(p->root, sizeof p->root, "/tmp/act-test-XXXXXX");
    CHECK(mkdtemp(p->root));
    snprintf(p->file, sizeof p->file, "%s/paused", p->root);
    for (size_t i = 0; i < n; i++) {
        snprintf(full, sizeof full, "%s/%s", p->root, names[i]);
        CHECK(mkdir(full, 0755) == 0);
    }
}

static struct act *make(const struct place *p)
{
    return act_new(&(struct act_places){ p->root, "ns", p->file, NULL });
}

/* The last answer after these commands. */
static struct report_ack send(struct act *a, const char *commands, bool held)
{
    AUTO(free_p) struct report_sample *s = report_sample_new();
    struct err e;
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(commands), &e);
    CHECK(d);
    act_take(a, json_root(d), held);
    act_put_acks(a, s);
    return s->acks ? s->ack[s->acks - 1] : (struct report_ack){ 0 };
}

static void a_task_is_paused_once_and_goes_on_when_it_is_told(void)
{
    static const char *const names[] = { "ns", "ns/17.1.0", "ns/x" };
    struct place p;
    folders(&p, names, ARRAY_LEN(names));
    put(&p, "cgroup.controllers", "cpu\n");
    put(&p, "ns/17.1.0/cgroup.freeze", "0");
    put(&p, "ns/17.1.0/cpu.weight", "100");
    struct act *a = make(&p);
    CHECK(send(a, "[{\"id\":1,\"what\":\"pause\",\"task\":\"17.1.0\"}]", false).done);
    check_file(&p, "ns/17.1.0/cgroup.freeze", "1");
    put(&p, "ns/17.1.0/cgroup.freeze", "0");
    CHECK(send(a, "[{\"id\":1,\"what\":\"pause\",\"task\":\"17.1.0\"}]", false).done);
    check_file(&p, "ns/17.1.0/cgroup.freeze", "0"); /* sent again it is not done again */
    put(&p, "ns/17.1.0/cgroup.freeze", "1");
    act_free(a);
    a = make(&p); /* started anew it knows what it paused */
    struct report_ack no = send(a, "[{\"id\":2,\"what\":\"resume\",\"task\":\"17.1.0\"}]", true);
    CHECK(no.id == 2 && !no.done && strstr(no.text, "owner holds"));
    check_file(&p, "ns/17.1.0/cgroup.freeze", "1");
    CHECK(send(a, "[{\"id\":3,\"what\":\"resume\",\"task\":\"17.1.0\"}]", false).done);
    check_file(&p, "ns/17.1.0/cgroup.freeze", "0");
    CHECK(
        send(a, "[{\"id\":4,\"what\":\"resume\",\"task\":\"17.1.0\"}]", false).done); /* it runs */
    CHECK(
        send(a, "[{\"id\":5,\"what\":\"throttle\",\"task\":\"17.1.0\",\"weight\":20}]", true).done);
    check_file(&p, "ns/17.1.0/cpu.weight", "200"); /* no kernel: only what was written over */
    act_free(a);
}

static void what_is_no_task_and_what_others_froze_is_refused(void)
{
    static const char *const names[] = { "freezer", "freezer/ns", "freezer/ns/17.1.0",
                                         "cpu",     "cpu/ns",     "cpu/ns/17.1.0" };
    static const char *const bad[] = { "..",     "x",       "17.1", "17.1.0/..", "/17.1.0",
                                       "18.1.0", "17.1.0 ", "",     "17.1.0.1" };
    struct place p;
    char text[160];
    folders(&p, names, ARRAY_LEN(names));
    put(&p, "freezer/ns/17.1.0/freezer.state", "FROZEN\n");
    put(&p, "cpu/ns/17.1.0/cpu.shares", "");
    struct act *a = make(&p);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof text, "[{\"id\":%zu,\"what\":\"pause\",\"task\":\"%s\"}]", i + 1,
                 bad[i]);
        struct report_ack ack = send(a, text, false);
        CHECK(ack.id == i + 1 && !ack.done && ack.text[0]);
    }
    CHECK(!send(a, "[{\"id\":20,\"what\":\"pause\",\"task\":\"17.1.0\"}]", false).done);
    CHECK(!send(a, "[{\"id\":21,\"what\":\"resume\",\"task\":\"17.1.0\"}]", false).done);
    check_file(&p, "freezer/ns/17.1.0/freezer.state", "FROZEN\n");
    CHECK(!send(a, "[{\"id\":22,\"what\":\"shoot\",\"task\":\"17.1.0\"}]", false).done);
    CHECK(!send(a, "[{\"id\":23,\"what\":\"throttle\",\"task\":\"17.1.0\",\"weight\":0}]", false)
               .done);
    CHECK(send(a, "[{\"id\":24,\"what\":\"throttle\",\"task\":\"17.1.0\",\"weight\":50}]", false)
              .done);
    check_file(&p, "cpu/ns/17.1.0/cpu.shares", "512");
    CHECK_INT(send(a, "[{\"what\":\"pause\"},7,null]", false).id,
              24); /* without a number: no answer */
    act_free(a);
}

static const struct test tests[] = {
    { "a task is paused once and goes on when it is told",
      a_task_is_paused_once_and_goes_on_when_it_is_told },
    { "what is no task, and what others froze, is refused",
      what_is_no_task_and_what_others_froze_is_refused },
};
TEST_CASES(tests)
