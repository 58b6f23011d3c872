#include "keeper/rootfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

static char *temporary(char name[static 32])
{
    snprintf(name, 32, "/tmp/ns-rootfs-XXXXXX");
    CHECK(mkdtemp(name));
    return name;
}

static const char *below(const char *root, const char *name, char out[static 128])
{
    snprintf(out, 128, "%s/%s", root, name);
    return out;
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
}

static const struct rootfs_folder *find(const struct rootfs_plan *p, const char *path)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->folder[i].path, path) == 0)
            return &p->folder[i];
    return NULL;
}

static void links_and_folders_are_told_apart(void)
{
    char root[32], path[128];
    struct rootfs_plan p;
    struct err e;
    temporary(root);
    CHECK(mkdir(below(root, "usr", path), 0755) == 0 && mkdir(below(root, "opt", path), 0755) == 0);
    CHECK(symlink("usr/bin", below(root, "bin", path)) == 0);
    touch(below(root, "etc", path)); /* not a folder: not ours */
    rootfs_look(root, &p);
    CHECK(p.n == 3 && find(&p, "/usr") && !find(&p, "/etc") && !find(&p, "/nix"));
    CHECK_STR(find(&p, "/bin")->link, "usr/bin");
    CHECK_STR(find(&p, "/opt")->link, "");
    CHECK(tree_remove(root, &e) == 0);
}

static void a_skeleton_is_built(void)
{
    char root[32], path[128], to[128] = "";
    struct rootfs_plan p = { .folder = { { "/usr", "" }, { "/bin", "usr/bin" } }, .n = 2 };
    AUTO(arena_free) struct arena a = { 0 };
    struct stat st;
    struct err e;
    below(temporary(root), "new", path);
    const struct rootfs_entry *list = rootfs_skeleton(&p, path, &a);
    CHECK(rootfs_build(list) == 0 && rootfs_build(list) == 0); /* twice: no matter */
    CHECK(stat(below(root, "new/var/tmp", path), &st) == 0 && S_ISDIR(st.st_mode));
    CHECK((st.st_mode & 0777) == 0755);
    CHECK(readlink(below(root, "new/bin", path), to, sizeof to - 1) > 0);
    CHECK_STR(to, "usr/bin");
    CHECK(lstat(below(root, "new/usr", path), &st) < 0); /* made by whoever mounts */
    CHECK(rootfs_build(rootfs_skeleton(&p, "/no/such/folder/x", &a)) < 0);
    CHECK(tree_remove(root, &e) == 0);
}

static void a_tree_goes_and_what_it_points_to_stays(void)
{
    char root[32], other[32], path[128];
    struct err e;
    temporary(root);
    temporary(other);
    touch(below(other, "precious", path));
    CHECK(mkdir(below(root, "a", path), 0700) == 0 && mkdir(below(root, "a/b", path), 0700) == 0);
    touch(below(root, "a/b/c", path));
    CHECK(symlink(other, below(root, "a/link", path)) == 0);
    CHECK(tree_remove(root, &e) == 0 && access(root, F_OK) < 0);
    CHECK(tree_remove(root, &e) == 0); /* gone already */
    CHECK(access(below(other, "precious", path), F_OK) == 0);
    CHECK(tree_remove(other, &e) == 0);
    CHECK(tree_remove("nowhere", &e) < 0 && tree_remove("/", &e) < 0);
}

static void what_is_mounted_is_not_entered(void)
{
    char root[32], other[32], path[128], inside[128];
    struct err e;
    if (geteuid() != 0)
        SKIP("mounting needs root");
    temporary(root);
    temporary(other);
    touch(below(other, "precious", inside));
    CHECK(mkdir(below(root, "m", path), 0700) == 0);
    if (mount(other, path, NULL, MS_BIND, NULL) < 0) {
        CHECK(tree_remove(root, &e) == 0 && tree_remove(other, &e) == 0);
        SKIP("nothing can be mounted here");
    }
    CHECK(tree_remove(root, &e) < 0 && strstr(e.msg, root));
    CHECK(access(inside, F_OK) == 0);
    CHECK(umount(path) == 0 && tree_remove(root, &e) == 0 && tree_remove(other, &e) == 0);
}

static const struct test tests[] = {
    { "the host's links and folders are told apart", links_and_folders_are_told_apart },
    { "a skeleton is built, parents first", a_skeleton_is_built },
    { "a tree is removed, what its links point to stays", a_tree_goes_and_what_it_points_to_stays },
    { "removing never enters what is mounted", what_is_mounted_is_not_entered },
};
TEST_CASES(tests)
