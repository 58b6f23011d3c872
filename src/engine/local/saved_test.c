/* What is kept of jobs beside the store, on a folder of its own. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/local/saved.h"
#include "sys/file.h"
#include "tests/lib/test.h"

struct told {
    char text[512];
    uint64_t least;
    int leave; /* of the jobs that come next */
    bool over; /* the next that is asked for */
};

static void sink(void *ctx, const struct engine_event *ev)
{
    struct told *t = ctx;
    char line[128];
    if (ev->kind == ENGINE_RECORD) {
        *ev->record.out_over = t->over;
        if (!t->over)
            buf_printf(ev->record.text, "record of %llu", (unsigned long long)ev->task.job);
        return;
    }
    CHECK(ev->kind == ENGINE_KEPT);
    if (ev->task.job == 0) {
        t->least = ev->kept.least;
        snprintf(t->text, sizeof t->text, "%.*s", STR_ARG(ev->kept.record));
        return;
    }
    const struct slot *s = ev->kept.slots;
    snprintf(line, sizeof line, "%llu.%u on %.*s: %x %u, %x; %.*s\n",
             (unsigned long long)ev->task.job, ev->task.run, STR_ARG(ev->kept.node[0]),
             s[0].gpu_mask, s[0].milli, s[1].gpu_mask, STR_ARG(ev->kept.record));
    strncat(t->text, line, sizeof t->text - strlen(t->text) - 1);
    *ev->kept.out_left = t->leave-- > 0;
}

struct place {
    char dir[64];
    int64_t now_ms;
    struct told told;
    struct saved *c;
};

static void open_saved(struct place *p)
{
    struct saved_config config = {
        .state = p->dir, .clock = clock_manual(&p->now_ms), .sink = sink, .ctx = &p->told
    };
    p->c = saved_free(p->c);
    p->told = (struct told){ .least = 99 };
    p->c = saved_new(&config);
    saved_tell_numbers(p->c);
}

static void begin(struct place *p)
{
    *p = (struct place){ .dir = "/tmp/nightshift-copies-XXXXXX", .now_ms = 7000 };
    CHECK(mkdtemp(p->dir) != NULL);
    open_saved(p);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void end(struct place *p)
{
    saved_free(p->c);
    nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void start(struct place *p, uint64_t job, uint32_t run)
{
    static const struct spec spec = { 0 };
    struct slot slots[2] = { { 0, 0x3, 1000 }, { 0, 0xc, 500 } };
    struct engine_start s = {
        .task = { job, run, 0 }, .node = STR("box"), .spec = &spec, .slots = slots, .n_slots = 2
    };
    saved_begin(p->c, &s);
}

static void what_runs_is_told_to_a_new_daemon(void)
{
    struct place p;
    begin(&p);
    CHECK(p.told.least == 99); /* nothing is there to tell */
    start(&p, 12, 1);
    start(&p, 3, 2);
    start(&p, 3, 3); /* it was started anew */
    saved_keep(p.c, 3);
    saved_keep(p.c, 4); /* it waits: nothing is kept of it */
    saved_keep(p.c, 0);
    open_saved(&p);
    CHECK_STR(p.told.text, "record of 0");
    CHECK(p.told.least == 12);
    p.told.text[0] = '\0';
    saved_tell(p.c);
    CHECK_STR(p.told.text, "3.3 on box: 3 1000, c; record of 3\n"
                           "12.1 on box: 3 1000, c; record of 12\n");
    end(&p);
}

static void what_is_over_is_gone_and_what_was_left_is_told_again(void)
{
    struct place p;
    begin(&p);
    for (uint64_t job = 1; job <= 3; job++)
        start(&p, job, 1);
    p.told.over = true;
    saved_keep(p.c, 1);
    open_saved(&p);
    p.told = (struct told){ .leave = 1 };
    saved_tell(p.c);
    CHECK_STR(p.told.text, "2.1 on box: 3 1000, c; record of 2\n"
                           "3.1 on box: 3 1000, c; record of 3\n");
    p.told.text[0] = '\0';
    saved_tell(p.c);
    CHECK_STR(p.told.text, "2.1 on box: 3 1000, c; record of 2\n");
    p.told.text[0] = '\0';
    saved_tell(p.c);
    CHECK_STR(p.told.text, "");
    end(&p);
}

static void a_number_of_a_log_is_not_free(void)
{
    struct place p;
    char path[128];
    begin(&p);
    snprintf(path, sizeof path, "%s/tasks", p.dir);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/tasks/41.1.0", p.dir);
    CHECK(mkdir(path, 0700) == 0);
    open_saved(&p);
    CHECK(p.told.least == 41);
    end(&p);
}

static void a_copy_with_a_flipped_bit_is_no_job(void)
{
    struct slot slot[2] = { { 0, 1, 1000 }, { 0, 2, 1000 } };
    struct saved_job c = { 5, 1, 2, 9, STR("box"), slot, STR("{\"a\":1}") }, read = { 0 };
    struct arena a = { 0 };
    AUTO(buf_free) struct buf text = BUF(4096);
    struct err e = { 0 };
    saved_write(&c, &text);
    CHECK(saved_read(buf_str(&text), &a, &read, &e) == 0 && read.replicas == 2);
    CHECK(str_is(read.record, "{\"a\":1}") && read.slot[1].gpu_mask == 2 && read.made_ms == 9);
    for (size_t i = 0; i < text.n * 8; i++) {
        text.p[i / 8] = (char)(text.p[i / 8] ^ (1 << i % 8));
        CHECK(saved_read(buf_str(&text), &a, &read, &e) < 0);
        text.p[i / 8] = (char)(text.p[i / 8] ^ (1 << i % 8));
    }
    for (size_t n = 0; n < text.n; n++)
        CHECK(saved_read((struct str){ text.p, n }, &a, &read, &e) < 0);
    arena_free(&a);
}

static const struct test tests[] = {
    { "what runs is told to a new daemon", what_runs_is_told_to_a_new_daemon },
    { "what is over is gone, and what was left is told again",
      what_is_over_is_gone_and_what_was_left_is_told_again },
    { "a number of a log is not free", a_number_of_a_log_is_not_free },
    { "a copy with a flipped bit is no job", a_copy_with_a_flipped_bit_is_no_job },
};
TEST_CASES(tests)
