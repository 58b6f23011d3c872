#include "keeper/layout.h"

#include "tests/lib/test.h"

static const struct rootfs_plan host = {
    .folder = { { "/usr", "" }, { "/bin", "usr/bin" }, { "/etc", "" } },
    .n = 3
};
static const struct layout_from from = { .state = "/s", .run = "/r", .homes = "/s/homes" };

static const struct compose_mount *mount_at(const struct compose *c, const char *at)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->mount[i].at, at) == 0)
            return &c->mount[i];
    return NULL;
}

static struct start ana(void)
{
    return (struct start){
        .task = "17.1.0",
        .user = { .name = STR("ana"), .home = STR("/home/ana"), .uid = 1000, .gid = 1001 },
        .volume = { { "/data", "/d", true }, { "/more", "/m", false } },
        .n_volumes = 2,
    };
}

static void the_hosts_system_is_read_only(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    const struct cdi_edits none = { 0 };
    const struct bundle_place p = { .host = &host,
                                    .rootfs = "/r/mnt/rootfs",
                                    .scratch = "/s/scratch/1",
                                    .files = "/r/tasks/17.1.0",
                                    .cover = 7,
                                    .init = "/x/init",
                                    .driver = &none };
    struct start s = ana();
    const struct compose *c = layout_make(&s, &p, &from, &a);
    CHECK(mount_at(c, "/usr")->read_only && mount_at(c, "/etc")->read_only);
    CHECK(!mount_at(c, "/bin") && !c->is_image); /* a link of the skeleton */
    CHECK_STR(mount_at(c, "/etc/hosts")->from, "/r/tasks/17.1.0/hosts");
    CHECK_STR(mount_at(c, "/tmp")->from, "/s/scratch/1/tmp");
    CHECK(!mount_at(c, "/tmp")->read_only && mount_at(c, BUNDLE_INIT)->read_only);
    CHECK(mount_at(c, "/d")->read_only && !mount_at(c, "/m")->read_only);
    CHECK(mount_at(c, "/d")->kind == COMPOSE_VOLUME &&
          mount_at(c, "/home/ana")->kind == COMPOSE_HOME);
    CHECK(c->rules.who.uid == 1000 && c->rules.who.gid == 1001);
}

static void an_image_gets_the_drivers_files(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    static const char *const writable[] = { "rw", NULL };
    struct cdi_mount mount = { "/usr/lib/libcuda.so.550", "/lib/libcuda.so.1", "", writable };
    struct cdi_hook hook = { 0 };
    const struct cdi_edits driver = {
        .mounts = &mount, .n_mounts = 1, .hooks = &hook, .n_hooks = 1
    };
    const struct bundle_place p = { .rootfs = "/r/x", .files = "/f", .driver = &driver };
    struct start s = ana();
    const struct compose *c = layout_make(&s, &p, &from, &a);
    CHECK(c->is_image && c->has_hooks && mount_at(c, "/lib/libcuda.so.1")->read_only);
    CHECK(!mount_at(c, "/usr") && !mount_at(c, BUNDLE_INIT));
    CHECK_STR(mount_at(c, "/tmp")->from, "mode=1777,size=1024m"); /* without a scratch */
}

static void homes_of_ours_are_told_apart(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    const struct cdi_edits none = { 0 };
    const struct bundle_place p = {
        .host = &host, .rootfs = "/r/x", .files = "/f", .driver = &none
    };
    struct start s = ana();
    s.home_else = "/s/homes/ana";
    CHECK_STR(mount_at(layout_make(&s, &p, &from, &a), "/home/ana")->instead, "/s/homes/ana");
    s.home_else = "/s/tasks/ana";
    CHECK(!mount_at(layout_make(&s, &p, &from, &a), "/home/ana")->instead);
    s.user.home = STR("/s/homes/ana");
    CHECK(mount_at(layout_make(&s, &p, &from, &a), "/s/homes/ana")->kind == COMPOSE_OWN_HOME);
    CHECK(!layout_is_own_home("/s/homes/a/b", "/s/homes") &&
          !layout_is_own_home("/s/homes", "/s/homes"));
    CHECK(!layout_is_own_home("/s/homes/.a", "/s/homes") &&
          !layout_is_own_home("/s/homesx", "/s/homes"));
}

static const struct test tests[] = {
    { "the host's system is read-only, /tmp and the home are not", the_hosts_system_is_read_only },
    { "an image gets the driver's files, read-only", an_image_gets_the_drivers_files },
    { "homes of ours are told apart from others", homes_of_ours_are_told_apart },
};
TEST_CASES(tests)
