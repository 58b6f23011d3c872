#include "keeper/point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/rootfs.h"
#include "sys/file.h"
#include "tests/lib/test.h"

static const struct actas self = { .is_self = true };

struct world {
    char top[64];
    int root;
};

static void world_clear(struct world *w)
{
    struct err e;
    file_close_p(&w->root);
    CHECK(tree_remove(w->top, &e) == 0);
}

static void make_folder(const struct world *w, const char *name)
{
    CHECK(mkdirat(w->root, name, 0755) == 0);
}

static void make_link(const struct world *w, const char *to, const char *name)
{
    CHECK(symlinkat(to, w->root, name) == 0);
}

static void world_init(struct world *w)
{
    *w = (struct world){ .top = "/tmp/ns-point-XXXXXX", .root = -1 };
    CHECK(mkdtemp(w->top));
    CHECK((w->root = open(w->top, O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0);
    make_folder(w, "usr");
    make_folder(w, "usr/lib");
    make_folder(w, "run");
    make_folder(w, "etc");
    make_link(w, "usr/lib", "lib");
    make_link(w, "/run", "abs");
    make_link(w, "../../../../..", "up");
    make_link(w, "/run/not/yet", "etc/later");
    make_link(w, "../run/not/relative", "etc/relative");
    make_link(w, "loop", "loop");
}

static const struct {
    const char *path, *real;
} places[] = {
    { "/usr/lib", "/usr/lib" },
    { "/lib", "/usr/lib" },
    { "/lib/x/y", "/usr/lib/x/y" },
    { "//lib//x/", "/usr/lib/x" },
    { "/abs/x", "/run/x" },
    { "/up/usr", "/usr" },
    { "/up", "/" },
    { "/nothing/here", "/nothing/here" },
    { "/etc/later/x", "/etc/later/x" }, /* a link to nothing keeps its name */
};

static void places_are_made_canonical_and_stay_inside(void)
{
    AUTO(world_clear) struct world w;
    char real[POINT_PATH_MAX];
    world_init(&w);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        CHECK_AT(i, point_real(w.root, places[i].path, real) == 0);
        CHECK_STR(real, places[i].real);
    }
    CHECK(point_real(w.root, "/loop/x", real) < 0 && errno == ELOOP);
    CHECK(point_real(w.root, "/nothing/../x", real) < 0);
}

static void places_of_ours_go_where_a_link_says(void)
{
    AUTO(world_clear) struct world w;
    char real[POINT_PATH_MAX];
    world_init(&w);
    CHECK(point_real_through(w.root, "/etc/later", real) == 0);
    CHECK_STR(real, "/run/not/yet");
    CHECK(point_real_through(w.root, "/etc/relative", real) == 0);
    CHECK_STR(real, "/run/not/relative");
    CHECK(point_real_through(w.root, "/etc/hosts", real) == 0);
    CHECK_STR(real, "/etc/hosts");
}

static void what_is_missing_is_made_and_no_link_is_followed(void)
{
    AUTO(world_clear) struct world w;
    struct stat st;
    world_init(&w);
    AUTO(file_close_p) int folder = point_open(w.root, "/a/b/c", false, &self);
    CHECK(folder >= 0 && fstatat(w.root, "a/b/c", &st, 0) == 0 && S_ISDIR(st.st_mode));
    AUTO(file_close_p) int file = point_open(w.root, "/a/f", true, &self);
    CHECK(file >= 0 && fstatat(w.root, "a/f", &st, 0) == 0 && S_ISREG(st.st_mode));
    CHECK(point_open(w.root, "/lib", false, &self) < 0 && errno == ELOOP);
    CHECK(point_open(w.root, "/abs/x", false, &self) < 0 && errno == ELOOP);
    CHECK(point_open(w.root, "/etc/later", true, &self) < 0 && errno == ELOOP);
    CHECK(fstatat(w.root, "run/x", &st, 0) < 0 && fstatat(w.root, "run/not", &st, 0) < 0);
    CHECK(point_open(w.root, "/a/f", false, &self) < 0 && errno == ENOTDIR);
    CHECK(point_open(w.root, "/a/b", true, &self) < 0 && errno == EISDIR);
    CHECK(point_open(w.root, "/a/f/x", false, &self) < 0 && errno == ENOTDIR);
}

static void below_is_by_whole_names(void)
{
    CHECK(point_is_below("/a/b", "/a") && point_is_below("/a", "/a") && point_is_below("/a", "/"));
    CHECK(point_is_below("/a/b", "/a/") && !point_is_below("/ab", "/a") &&
          !point_is_below("/", "/a"));
}

static const struct test tests[] = {
    { "places are made canonical and stay inside the root",
      places_are_made_canonical_and_stay_inside },
    { "places of ours go where a link says", places_of_ours_go_where_a_link_says },
    { "what is missing is made, and no link is followed",
      what_is_missing_is_made_and_no_link_is_followed },
    { "a path is below a folder by whole names", below_is_by_whole_names },
};
TEST_CASES(tests)
