#include "keeper/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/tool.h"
#include "sys/file.h"
#include "tests/lib/test.h"

#define NOBODY 65534

static const struct engine_user root_user = { 0 };
static const struct engine_user nobody = { .uid = NOBODY, .gid = NOBODY };

struct world {
    struct loop *loop;
    struct image_store *s;
    char dir[64], images[96];
};

static void run_ok(const struct world *w, const char *script)
{
    AUTO(buf_free) struct buf out = BUF(0);
    const char *argv[] = { "sh", "-ec", script, "sh", w->dir, NULL };
    struct process_exit how;
    struct err e;
    CHECK(tool_wait(argv, 60000, &out, &how, &e) == 0);
    if (how.code != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", script, out.p ? out.p : "");
}

static struct image_store *open_store(struct world *w, const struct image_config *change,
                                      struct err *e)
{
    struct image_config c = *change;
    c.loop = w->loop;
    c.dir = w->images;
    return image_open(&c, e);
}

/* Two layers: the second takes a file of the first away.  One program has a setuid bit, and there is
 * a device. */
static const char build_image[] =
    "cd \"$1\"; umoci init --layout src; umoci new --image src:v1;"
    "mkdir -p one/bin one/dev two; echo tool >one/bin/tool; echo gone >one/bin/gone;"
    "head -c 300000 /dev/urandom >one/bin/large;"
    "chmod 4755 one/bin/tool; mknod one/dev/nul c 1 3; chmod 666 one/dev/nul;"
    "umoci insert --image src:v1 one /; umoci insert --whiteout --image src:v1 /bin/gone;"
    "umoci config --image src:v1 --config.env A=b --config.workingdir /w --config.cmd /bin/tool;"
    "chmod -R a+rX src;"
    "skopeo --insecure-policy copy -q oci:src:v1 docker-archive:docker.tar:team/x:v1;"
    "skopeo --insecure-policy copy -q oci:src:v1 oci-archive:oci.tar:v1";

static void world_open(struct world *w, const struct image_config *change)
{
    struct err e;
    if (geteuid() != 0)
        SKIP("needs root");
    if (unshare(CLONE_NEWNS) < 0)
        SKIP("cannot have mounts of its own: %s", strerror(errno));
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    *w = (struct world){ .loop = loop_new() };
    snprintf(w->dir, sizeof w->dir, "/tmp/image-test.XXXXXX");
    CHECK(mkdtemp(w->dir));
    snprintf(w->images, sizeof w->images, "%s/images", w->dir);
    w->s = open_store(w, change ? change : &(struct image_config){ 0 }, &e);
    if (!w->s && e.code == ERR_UNAVAILABLE) {
        run_ok(w, "rm -rf \"$1\"");
        SKIP("%s: %s", e.msg, e.hint);
    }
    CHECK(w->s);
    run_ok(w, build_image);
    CHECK(chmod(w->dir, 0755) == 0);
}

static unsigned entries(const struct world *w, const char *sub)
{
    char path[160];
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/%s", w->images, sub);
    DIR *d = opendir(path);
    CHECK(d);
    for (struct dirent *x; (x = readdir(d));)
        n += x->d_name[0] != '.';
    closedir(d);
    return n;
}

static void world_close(struct world *w)
{
    loop_run(w->loop); /* what was thrown away is deleted */
    CHECK_INT(entries(w, "trash"), 0);
    CHECK_INT(entries(w, "layout"), 0);
    w->s = image_close(w->s);
    w->loop = loop_free(w->loop);
    run_ok(w, "rm -rf \"$1\"");
}

struct got {
    struct world *w;
    struct image_want *want;
    bool done;
    char digest[65], rootfs[256], env[64], cmd[64], workdir[64];
    unsigned progress;
    struct err e;
};

static void on_progress(void *ctx, struct str text, uint64_t done, uint64_t total)
{
    struct got *g = ctx;
    g->progress += text.n > 0 && (total == 0 || done <= total * 2);
}

static void on_done(void *ctx, const struct image *img, const struct err *e)
{
    struct got *g = ctx;
    g->done = true;
    if (img) {
        snprintf(g->digest, sizeof g->digest, "%s", img->digest);
        snprintf(g->rootfs, sizeof g->rootfs, "%s", img->rootfs);
        snprintf(g->env, sizeof g->env, "%s", img->run.env[0] ? img->run.env[0] : "");
        snprintf(g->cmd, sizeof g->cmd, "%s", img->run.cmd[0] ? img->run.cmd[0] : "");
        snprintf(g->workdir, sizeof g->workdir, "%s", img->run.workdir);
    } else {
        g->e = *e;
    }
    loop_stop(g->w->loop);
}

static void begin(struct world *w, const char *kind, const char *rest, const struct engine_user *u,
                  struct got *g)
{
    char ref[200];
    bool local = strchr(kind, ':') && rest[0] == '/';
    snprintf(ref, sizeof ref, "%s%s%s", kind, local ? w->dir : "", rest);
    *g = (struct got){ .w = w };
    g->want = image_rootfs(w->s, str_of(ref), u, on_progress, on_done, g);
    CHECK(!g->done); /* never from within the call */
}

static struct got get(struct world *w, const char *kind, const char *rest,
                      const struct engine_user *u)
{
    struct got g;
    begin(w, kind, rest, u, &g);
    while (!g.done)
        loop_run(w->loop);
    return g;
}

static bool in_rootfs(const struct got *g, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", g->rootfs, name);
    return access(path, F_OK) == 0;
}

static void an_image_is_fetched_once(void)
{
    struct world w;
    world_open(&w, NULL);
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK_STR(g.e.msg, "");
    CHECK(g.progress > 0);
    CHECK(in_rootfs(&g, "bin/tool") && !in_rootfs(&g, "bin/gone"));
    CHECK_STR(g.env, "A=b");
    CHECK_STR(g.cmd, "/bin/tool");
    CHECK_STR(g.workdir, "/w");
    run_ok(&w, "rm -rf \"$1/src/blobs\""); /* so it cannot be fetched again */
    struct got again = get(&w, "oci:", "/src:v1", &root_user);
    CHECK_STR(again.digest, g.digest);
    CHECK_INT(entries(&w, "rootfs"), 1);
    /* And by a store that knows nothing but the files. */
    struct err e;
    image_close(w.s);
    w.s = open_store(&w, &(struct image_config){ 0 }, &e);
    CHECK(w.s);
    again = get(&w, "oci:", "/src:v1", &root_user);
    CHECK_STR(again.digest, g.digest);
    world_close(&w);
}

static void archives_are_images_too(void)
{
    struct world w;
    world_open(&w, NULL);
    struct got a = get(&w, "docker-archive:", "/docker.tar", &nobody);
    CHECK_STR(a.e.msg, "");
    CHECK(in_rootfs(&a, "bin/tool") && !in_rootfs(&a, "bin/gone"));
    CHECK_STR(a.cmd, "/bin/tool");
    struct got b = get(&w, "oci-archive:", "/oci.tar:v1", &nobody);
    CHECK_STR(b.e.msg, "");
    CHECK(in_rootfs(&b, "bin/tool"));
    struct got c = get(&w, "oci:", "/src:v1", &nobody); /* the same image, found by its digest */
    CHECK_STR(c.digest, b.digest);
    CHECK_INT(entries(&w, "rootfs"), strcmp(a.digest, b.digest) == 0 ? 1 : 2);
    world_close(&w);
}

static void a_changed_file_is_another_image(void)
{
    struct world w;
    world_open(&w, NULL);
    struct got a = get(&w, "oci:", "/src:v1", &nobody);
    run_ok(&w, "cd \"$1\"; umoci config --image src:v1 --config.env C=d; chmod -R a+rX src");
    struct got b = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(b.digest[0] && strcmp(a.digest, b.digest) != 0);
    world_close(&w);
}

static void those_who_want_the_same_share_one_fetch(void)
{
    struct world w;
    struct got g[3];
    world_open(&w, NULL);
    for (int i = 0; i < 3; i++)
        begin(&w, "oci:", "/src:v1", &nobody, &g[i]);
    CHECK_INT(entries(&w, "layout"), 1);
    image_cancel(g[1].want); /* the others still wait */
    while (!g[0].done || !g[2].done)
        loop_run(w.loop);
    CHECK(g[0].digest[0] && !g[1].done);
    CHECK_STR(g[0].digest, g[2].digest);
    world_close(&w);
}

static void a_cancelled_fetch_leaves_nothing(void)
{
    struct world w;
    struct got g;
    world_open(&w, NULL);
    begin(&w, "oci:", "/src:v1", &nobody, &g);
    CHECK_INT(entries(&w, "layout"), 1);
    image_cancel(g.want);
    CHECK_INT(entries(&w, "layout"), 0);
    loop_run(w.loop);
    CHECK(!g.done);
    CHECK_INT(entries(&w, "rootfs"), 0);
    world_close(&w);
}

static void nobody_gets_a_file_that_he_cannot_read(void)
{
    struct world w;
    world_open(&w, NULL);
    struct got mine = get(&w, "docker-archive:", "/docker.tar", &root_user);
    CHECK(mine.digest[0]);
    run_ok(&w, "chmod 600 \"$1/docker.tar\" \"$1/src/index.json\"; mkdir -m 700 \"$1/private\";"
               "cp \"$1/oci.tar\" \"$1/private\"");
    /* The file's time did not change, so root would get it from what is here. */
    struct got his = get(&w, "docker-archive:", "/docker.tar", &nobody);
    CHECK(!his.digest[0] && his.e.code == ERR_DENIED);
    his = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(!his.digest[0] && his.e.code == ERR_DENIED);
    his = get(&w, "oci-archive:", "/private/oci.tar", &nobody);
    CHECK(!his.digest[0] && his.e.code == ERR_DENIED);
    his = get(&w, "docker-archive:", "/nowhere.tar", &nobody);
    CHECK(his.e.code == ERR_NOT_FOUND);
    run_ok(&w, "mkfifo -m 666 \"$1/fifo\"");
    his = get(&w, "docker-archive:", "/fifo", &nobody); /* and does not wait for a writer */
    CHECK(his.e.code == ERR_INVALID);
    CHECK(get(&w, "docker-archive:", "/docker.tar", &root_user).digest[0]); /* we are us again */
    world_close(&w);
}

static void a_task_writes_beside_the_image(void)
{
    struct world w;
    struct err e;
    struct statvfs v;
    char scratch[160], target[160], path[256];
    world_open(&w, NULL);
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    snprintf(scratch, sizeof scratch, "%s/scratch", w.dir);
    snprintf(target, sizeof target, "%s/mnt", w.dir);
    CHECK(mkdir(scratch, 0700) == 0);
    CHECK(image_mount(w.s, g.digest, scratch, target, &e) == 0);
    CHECK(image_mount(w.s, g.digest, scratch, target, &e) == 0); /* idempotent */
    CHECK(statvfs(target, &v) == 0 && (v.f_flag & ST_NOSUID) && (v.f_flag & ST_NODEV));
    snprintf(path, sizeof path, "%s/dev/nul", target);
    CHECK(open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
    snprintf(path, sizeof path, "%s/bin/new", target);
    struct err w_err;
    CHECK(file_write(path, STR("x"), &w_err) == 0);
    CHECK(!in_rootfs(&g, "bin/new"));
    snprintf(path, sizeof path, "%s/upper/bin/new", scratch);
    CHECK(access(path, F_OK) == 0);
    CHECK(image_unmount(target, &e) == 0 && image_unmount(target, &e) == 0);
    CHECK(access(target, F_OK) < 0);
    CHECK(image_mount(w.s, "../../etc", scratch, target, &e) < 0 && e.code == ERR_NOT_FOUND);
    world_close(&w);
}

static void what_is_wrong_is_said(void)
{
    struct world w;
    world_open(&w, NULL);
    struct got g = get(&w, "localhost:1/team/x:v1", "", &nobody);
    CHECK(g.e.code == ERR_UNAVAILABLE && strstr(g.e.msg, "'localhost:1'") && g.e.hint[0]);
    g = get(&w, "registry.invalid/x", "", &nobody);
    CHECK(g.e.code == ERR_UNAVAILABLE && strstr(g.e.msg, "'registry.invalid'"));
    g = get(&w, "oci:", "/src:nope", &nobody);
    CHECK(g.e.code == ERR_NOT_FOUND && strstr(g.e.msg, "/src"));
    g = get(&w, "docker-archive:", "/one/bin/tool", &nobody);
    CHECK(!g.digest[0] && g.e.code == ERR_INVALID);
    g = get(&w, "Bad Name", "", &nobody);
    CHECK(g.e.code == ERR_INVALID && g.e.hint[0]);
    CHECK_INT(entries(&w, "rootfs"), 0);
    world_close(&w);
}

static void a_damaged_image_is_never_in_use(void)
{
    struct world w;
    world_open(&w, NULL);
    run_ok(&w, "cd \"$1/src/blobs/sha256\"; for f in *; do s=$(stat -c %s \"$f\");"
               "[ \"$s\" -lt 10000 ] || head -c 5000 /dev/zero >\"$f\"; done");
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(!g.digest[0] && g.e.msg[0]);
    CHECK_INT(entries(&w, "rootfs"), 0);
    world_close(&w);
}

static void an_image_has_a_largest_size(void)
{
    struct world w;
    world_open(&w, &(struct image_config){ .max_bytes = 100000 });
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(!g.digest[0] && g.e.code == ERR_TOO_LARGE);
    CHECK_INT(entries(&w, "rootfs"), 0);
    world_close(&w);
}

static void an_image_has_a_time_limit(void)
{
    struct world w;
    world_open(&w, &(struct image_config){ .timeout_ms = 1 });
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(!g.digest[0] && g.e.code == ERR_UNAVAILABLE && strstr(g.e.msg, "took longer"));
    world_close(&w);
}

static bool has_part(const struct world *w)
{
    char path[160];
    snprintf(path, sizeof path, "%s/rootfs", w->images);
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *x; (x = readdir(d));)
        found |= strstr(x->d_name, ".part") != NULL;
    closedir(d);
    return found;
}

/* As a power cut would, in the middle of a step. */
static void die_unpacking(void *ctx, struct str text, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    if (text.n > 9 && memcmp(text.p, "unpacking", 9) == 0)
        raise(SIGKILL);
}

static void die_done(void *ctx, const struct image *img, const struct err *e)
{
    (void)ctx, (void)img, (void)e;
    _exit(1); /* it was to be killed before */
}

static void fetch_and_die(const struct world *w, bool unpacking)
{
    struct world d = { .loop = loop_new() };
    struct err e;
    char ref[200];
    memcpy(d.images, w->images, sizeof d.images);
    snprintf(ref, sizeof ref, "oci:%s/src:v1", w->dir);
    d.s = open_store(&d, &(struct image_config){ 0 }, &e);
    if (!d.s)
        _exit(2);
    image_rootfs(d.s, str_of(ref), &nobody, die_unpacking, die_done, NULL);
    if (!unpacking)
        raise(SIGKILL);
    loop_run(d.loop);
    _exit(3);
}

/* The driver is killed as soon as it has begun, and as soon as it unpacks. */
static void a_killed_keeper_leaves_no_half_image(void)
{
    struct world w;
    struct err e;
    world_open(&w, NULL);
    for (int unpacking = 0; unpacking < 2; unpacking++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            fetch_and_die(&w, unpacking);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK(entries(&w, "layout") == 1 && has_part(&w) == unpacking);
        image_close(w.s);
        w.s = open_store(&w, &(struct image_config){ 0 }, &e);
        CHECK(w.s && !has_part(&w) && entries(&w, "layout") == 0);
    }
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK_STR(g.e.msg, "");
    CHECK(in_rootfs(&g, "bin/tool") && !in_rootfs(&g, "bin/gone"));
    world_close(&w);
}

static void old_images_go_first_and_mounted_ones_stay(void)
{
    struct world w;
    struct err e;
    char scratch[160], target[160], path[400];
    world_open(&w, NULL);
    struct got a = get(&w, "oci:", "/src:v1", &nobody);
    run_ok(&w, "cd \"$1\"; umoci config --image src:v1 --config.env C=d; chmod -R a+rX src");
    struct got b = get(&w, "oci:", "/src:v1", &nobody);
    snprintf(scratch, sizeof scratch, "%s/scratch", w.dir);
    snprintf(target, sizeof target, "%s/mnt", w.dir);
    CHECK(mkdir(scratch, 0700) == 0);
    CHECK(image_mount(w.s, a.digest, scratch, target, &e) == 0);
    struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/../used", i ? b.rootfs : a.rootfs);
        CHECK(utimensat(AT_FDCWD, path, long_ago, 0) == 0);
    }
    image_close(w.s);
    w.s = open_store(&w, &(struct image_config){ .keep_bytes = 1 }, &e);
    CHECK(w.s && in_rootfs(&a, "bin/tool") && !in_rootfs(&b, "bin/tool"));
    /* What is in use takes all the room: nothing more comes until it ends. */
    struct got again = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(again.digest[0] == '\0' && again.e.code == ERR_UNAVAILABLE);
    CHECK(strstr(again.e.msg, "all are in use") && strstr(again.e.hint, "images_total"));
    CHECK(image_unmount(target, &e) == 0);
    run_ok(&w, "find \"$1/images/blobs\" -type f -exec touch -d @1000 {} +");
    again = get(&w, "oci:", "/src:v1", &nobody); /* what went comes again */
    CHECK_STR(again.e.msg, "");
    CHECK_STR(again.digest, b.digest);
    CHECK(!in_rootfs(&a, "bin/tool"));
    world_close(&w);
}

static const struct test tests[] = {
    { "an image is fetched once", an_image_is_fetched_once },
    { "archives are images too", archives_are_images_too },
    { "a changed file is another image", a_changed_file_is_another_image },
    { "those who want the same share one fetch", those_who_want_the_same_share_one_fetch },
    { "a cancelled fetch leaves nothing", a_cancelled_fetch_leaves_nothing },
    { "nobody gets a file that he cannot read", nobody_gets_a_file_that_he_cannot_read },
    { "a task writes beside the image, without setuid and devices",
      a_task_writes_beside_the_image },
    { "what is wrong is said", what_is_wrong_is_said },
    { "a damaged image is never in use", a_damaged_image_is_never_in_use },
    { "an image has a largest size", an_image_has_a_largest_size },
    { "an image has a time limit", an_image_has_a_time_limit },
    { "a killed keeper leaves no half image", a_killed_keeper_leaves_no_half_image },
    { "old images go first and mounted ones stay", old_images_go_first_and_mounted_ones_stay },
};
TEST_CASES(tests)
