#include "keeper/place.h"

#include "tests/lib/test.h"

static const struct rootfs_plan host = { .folder = { { "/usr", "" }, { "/bin", "usr/bin" } },
                                         .n = 2 };
static const struct start ana = {
    .user = { .home = STR("/home/ana") },
    .volume = { { "/srv/data", "/data", true }, { "/srv/deep", "/data/deep/", false } },
    .n_volumes = 2,
};

/* Inside, and where that is on the machine; NULL: nowhere, "!": it will not be there. */
static const struct {
    const char *inside, *outside;
} places[] = {
    { "/home/ana", "/home/ana" }, { "/home/ana/x", "/home/ana/x" },
    { "/home/anabel", "!" },      { "/data", "/srv/data" },
    { "/data/x", "/srv/data/x" }, { "/data/deep/y", "/srv/deep/y" },
    { "/database", "!" },         { "/usr/local", "/usr/local" },
    { "/tmp/x", NULL },           { "/", NULL },
    { "/srv/data", "!" },
};

static void paths_are_found_outside(void)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        const char *out = NULL;
        struct err e = { 0 };
        int rc = place_outside(&ana, &host, places[i].inside, &a, &out, &e);
        if (places[i].outside && strcmp(places[i].outside, "!") == 0) {
            CHECK_AT(i, rc < 0 && strstr(e.msg, places[i].inside) && e.hint[0]);
            continue;
        }
        CHECK_AT(i, rc == 0);
        CHECK_STR(out, places[i].outside);
    }
}

static void an_image_has_what_it_has(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    const char *out = "x";
    struct err e;
    CHECK(place_outside(&ana, NULL, "/workspace", &a, &out, &e) == 0 && !out);
    CHECK(place_outside(&ana, NULL, "/data/x", &a, &out, &e) == 0);
    CHECK_STR(out, "/srv/data/x");
}

static const struct test tests[] = {
    { "a path inside is found on the machine, or will not be there", paths_are_found_outside },
    { "an image may have any folder", an_image_has_what_it_has },
};
TEST_CASES(tests)
