#include "keeper/source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/rootfs.h"
#include "sys/file.h"
#include "tests/lib/test.h"

#define PATH_BYTES 128

/* top/{state/tasks, state/homes/ana, run, home/x, home/link -> top/out, data/set, data/secret, out/x} */
struct world {
    char top[64], state[PATH_BYTES], run[PATH_BYTES], data[PATH_BYTES], secret[PATH_BYTES];
    const char *allowed[2], *denied[2];
    struct source_rules r;
};

static const char *at(const struct world *w, const char *name, char out[static PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s/%s", w->top, name);
    return out;
}

static void world_clear(struct world *w)
{
    struct err e;
    CHECK(tree_remove(w->top, &e) == 0);
}

static void world_init(struct world *w)
{
    static const char *const folders[] = { "state",           "state/tasks", "state/homes",
                                           "state/homes/ana", "run",         "home",
                                           "home/x",          "data",        "data/set",
                                           "data/secret",     "out",         "out/x" };
    char path[PATH_BYTES], to[PATH_BYTES];
    *w = (struct world){ .top = "/tmp/ns-source-XXXXXX" };
    CHECK(mkdtemp(w->top));
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        CHECK_AT(i, mkdir(at(w, folders[i], path), 0755) == 0);
    CHECK(symlink(at(w, "out", to), at(w, "home/link", path)) == 0);
    CHECK(symlink(at(w, "state", to), at(w, "data/other-name", path)) == 0);
    w->allowed[0] = at(w, "data", w->data);
    w->denied[0] = at(w, "data/secret", w->secret);
    w->r = (struct source_rules){ .state = at(w, "state", w->state),
                                  .run = at(w, "run", w->run),
                                  .allowed = w->allowed,
                                  .denied = w->denied,
                                  .who = { .is_self = true } };
    struct source s;
    CHECK(source_open(&w->r, at(w, "home", path), SOURCE_HOME, &s) == SOURCE_FINE);
    file_close_p(&s.fd);
}

static enum source_fault open_at(struct world *w, const char *name, enum source_kind k)
{
    char path[PATH_BYTES];
    struct source s;
    enum source_fault f = source_open(&w->r, at(w, name, path), k, &s);
    CHECK((f == SOURCE_FINE) == (s.fd >= 0));
    file_close_p(&s.fd);
    return f;
}

static const struct {
    const char *name;
    enum source_kind kind;
    enum source_fault fault;
} tries[] = {
    { "home/x", SOURCE_VOLUME, SOURCE_FINE },
    { "home", SOURCE_VOLUME, SOURCE_FINE },
    { "home/link", SOURCE_VOLUME, SOURCE_NOT_ALLOWED }, /* it is what it leads to */
    { "home/link/x", SOURCE_VOLUME, SOURCE_NOT_ALLOWED },
    { "home/../out/x", SOURCE_VOLUME, SOURCE_NOT_ALLOWED },
    { "data", SOURCE_VOLUME, SOURCE_DENIED }, /* that has what is denied in it */
    { "data/set", SOURCE_VOLUME, SOURCE_FINE },
    { "data/secret", SOURCE_VOLUME, SOURCE_DENIED },
    { "data/other-name", SOURCE_VOLUME, SOURCE_INSTANCE },
    { "data/other-name/tasks", SOURCE_VOLUME, SOURCE_INSTANCE },
    { "state", SOURCE_VOLUME, SOURCE_INSTANCE },
    { "state/tasks", SOURCE_VOLUME, SOURCE_INSTANCE },
    { "run", SOURCE_VOLUME, SOURCE_INSTANCE },
    { "", SOURCE_VOLUME, SOURCE_INSTANCE }, /* both are in it */
    { "nowhere", SOURCE_VOLUME, SOURCE_UNOPENED },
    { "state/tasks", SOURCE_HOME, SOURCE_INSTANCE },
    { "state/homes/ana", SOURCE_OWN_HOME, SOURCE_FINE },
    { "", SOURCE_HOME,
      SOURCE_DENIED }, /* not for our folders: who has them in their home has them anyway */
};

static void a_source_is_judged_by_what_it_is(void)
{
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        AUTO(world_clear) struct world w;
        world_init(&w);
        CHECK_AT(i, open_at(&w, tries[i].name, tries[i].kind) == tries[i].fault);
    }
}

static void the_machine_is_no_source(void)
{
    static const char *const paths[] = { "/", "/proc", "/proc/self", "/dev", "/sys" };
    AUTO(world_clear) struct world w;
    struct source s;
    world_init(&w);
    w.allowed[0] = "/";
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        CHECK_AT(i, source_open(&w.r, paths[i], SOURCE_VOLUME, &s) == SOURCE_MACHINERY);
    CHECK(source_open(&w.r, "/etc", SOURCE_VOLUME, &s) == SOURCE_FINE); /* the site says all */
    file_close_p(&s.fd);
}

static void a_home_is_no_folder_of_the_system(void)
{
    static const char *const paths[] = { "/etc", "/usr", "/home", "/tmp", "/var", "/usr/bin" };
    AUTO(world_clear) struct world w;
    struct source s;
    world_init(&w);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        CHECK_AT(i, source_open(&w.r, paths[i], SOURCE_HOME, &s) == SOURCE_NO_HOME);
}

static void without_a_list_only_the_home_is_given(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.r.allowed = w.r.denied = NULL;
    CHECK(open_at(&w, "data/set", SOURCE_VOLUME) == SOURCE_NOT_ALLOWED);
    CHECK(open_at(&w, "home/x", SOURCE_VOLUME) == SOURCE_FINE);
}

static const struct test tests[] = {
    { "a source is judged by what it is, not by its name", a_source_is_judged_by_what_it_is },
    { "the machine itself is no source", the_machine_is_no_source },
    { "a home is no folder of the system", a_home_is_no_folder_of_the_system },
    { "without a list only the own home is given", without_a_list_only_the_home_is_given },
};
TEST_CASES(tests)
