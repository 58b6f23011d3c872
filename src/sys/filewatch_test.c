#include "sys/filewatch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/test.h"

struct trying {
    char dir[64];
    struct loop *loop;
    struct filewatch *f;
};

/* What a callback counts, and what it does besides. */
struct told {
    struct loop *loop;
    int n, stop_at;
    struct filewatch_one **remove;
};

static void on_change(void *ctx)
{
    struct told *t = ctx;
    t->n++;
    if (t->remove)
        *t->remove = filewatch_remove(*t->remove);
    if (t->n >= t->stop_at)
        loop_stop(t->loop);
}

static void begin(struct trying *t)
{
    struct err e = { 0 };
    snprintf(t->dir, sizeof t->dir, "/tmp/nightshift-watch-XXXXXX");
    CHECK(mkdtemp(t->dir) != NULL);
    t->loop = loop_new();
    t->f = filewatch_new(t->loop, &e);
    CHECK_STR(e.msg, "");
}

static void end(struct trying *t)
{
    t->f = filewatch_free(t->f);
    t->loop = loop_free(t->loop);
    DIR *d = opendir(t->dir);
    for (struct dirent *it; d && (it = readdir(d));)
        unlinkat(dirfd(d), it->d_name, 0);
    if (d)
        closedir(d);
    rmdir(t->dir);
}

static void add_to(const struct trying *t, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void a_write_is_told(void)
{
    struct trying t;
    struct err e;
    begin(&t);
    struct told told = { .loop = t.loop, .stop_at = 1 };
    CHECK(filewatch_add(t.f, t.dir, on_change, &told, &e) != NULL);
    add_to(&t, "log.0", "a");
    loop_run(t.loop);
    CHECK_INT(told.n, 1); /* made, written, closed: once */
    add_to(&t, "log.0", "b");
    loop_run(t.loop);
    CHECK_INT(told.n, 2);
    end(&t);
}

static void each_who_watches_a_folder_is_told(void)
{
    struct trying t;
    struct err e;
    begin(&t);
    struct told a = { .loop = t.loop, .stop_at = 99 }, b = { .loop = t.loop, .stop_at = 1 };
    struct filewatch_one *first = filewatch_add(t.f, t.dir, on_change, &b, &e);
    CHECK(first && filewatch_add(t.f, t.dir, on_change, &a, &e));
    add_to(&t, "log.0", "a");
    loop_run(t.loop);
    CHECK_INT(a.n, 1);
    CHECK_INT(b.n, 1);
    /* One of two goes: the other watches on. */
    filewatch_remove(first);
    a.stop_at = 2;
    add_to(&t, "log.0", "b");
    loop_run(t.loop);
    CHECK_INT(a.n, 2);
    CHECK_INT(b.n, 1);
    end(&t);
}

static void other_folders_are_not_told(void)
{
    struct trying t, other;
    struct err e;
    begin(&t);
    begin(&other);
    struct told here = { .loop = t.loop, .stop_at = 1 }, there = { .loop = t.loop, .stop_at = 99 };
    CHECK(filewatch_add(t.f, t.dir, on_change, &here, &e));
    CHECK(filewatch_add(t.f, other.dir, on_change, &there, &e));
    add_to(&t, "log.0", "a");
    loop_run(t.loop);
    CHECK_INT(here.n, 1);
    CHECK_INT(there.n, 0);
    end(&other);
    end(&t);
}

static void a_callback_may_remove_any_of_them(void)
{
    struct trying t;
    struct err e;
    begin(&t);
    struct told last = { .loop = t.loop, .stop_at = 1 };
    struct told killer = { .loop = t.loop, .stop_at = 99 }, itself = killer, victim = killer;
    struct filewatch_one *v = NULL, *self = NULL;
    CHECK(filewatch_add(t.f, t.dir, on_change, &last, &e));
    v = filewatch_add(t.f, t.dir, on_change, &victim, &e);
    self = filewatch_add(t.f, t.dir, on_change, &itself, &e);
    killer.remove = &v;
    itself.remove = &self;
    CHECK(v && self && filewatch_add(t.f, t.dir, on_change, &killer, &e));
    add_to(&t, "log.0", "a");
    loop_run(t.loop);
    CHECK_INT(killer.n, 1);
    CHECK_INT(itself.n, 1);
    CHECK_INT(victim.n, 0); /* it was removed before its turn */
    CHECK(!v && !self);
    end(&t);
}

static void a_folder_that_is_not_there_is_named(void)
{
    struct trying t;
    struct err e;
    struct told told = { 0 };
    begin(&t);
    CHECK(filewatch_add(t.f, "/no/such/folder", on_change, &told, &e) == NULL);
    CHECK(strstr(e.msg, "/no/such/folder"));
    end(&t);
}

static const struct test tests[] = {
    { "a write is told, once for all that happened", a_write_is_told },
    { "each who watches a folder is told", each_who_watches_a_folder_is_told },
    { "who watches another folder is not told", other_folders_are_not_told },
    { "a callback may remove itself and others", a_callback_may_remove_any_of_them },
    { "a folder that is not there is named", a_folder_that_is_not_there_is_named },
};
TEST_CASES(tests)
