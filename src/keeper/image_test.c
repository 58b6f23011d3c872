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
#include <sys/xattr.h>
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
    bool look_layers;
    unsigned layers; /* in its layout while it is unpacked */
    struct err e;
};

static void on_progress(void *ctx, struct str text, uint64_t done, uint64_t total)
{
    struct got *g = ctx;
    g->progress += text.n > 0 && (total == 0 || done <= total * 2);
    if (g->look_layers && text.n > 9 && memcmp(text.p, "unpacking", 9) == 0)
        g->layers = entries(g->w, "layout/1.part/blobs/sha256");
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
    CHECK(in_rootfs(&g, "dev") && !in_rootfs(&g, "dev/nul"));
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

static struct stat stat_of(const struct got *g, const char *name)
{
    char path[400];
    struct stat st = { 0 };
    snprintf(path, sizeof path, "%s/%s", g->rootfs, name);
    if (lstat(path, &st) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    return st;
}

static bool has_attribute(const char *at, const char *name, const char *key, const char *want,
                          size_t n)
{
    char path[400], got[64];
    snprintf(path, sizeof path, "%s/%s", at, name);
    return lgetxattr(path, key, got, sizeof got) == (ssize_t)n && memcmp(got, want, n) == 0;
}

/* As the kernel has it: version 2, cap_net_raw, effective. */
static const char raw_power[20] = { 1, 0, 0, 2, 0, 0x20 };

static void make_odd_files(const struct world *w)
{
    char path[160];
    run_ok(w, "cd \"$1\"; mkdir -p odd/d odd/opq; echo 1 >odd/own; chown 1234:2345 odd/own;"
              "chmod 2755 odd/own; ln odd/own odd/d/same; ln -s /etc/passwd odd/abs; ln -s ../own "
              "odd/d/rel;"
              "chmod 1777 odd/d; mkfifo -m 640 odd/pipe; echo 2 >odd/opq/below; echo 3 >odd/power;"
              "touch -d @1000000 odd/d/same; mkdir -m 0711 odd/closed; chown 77 odd/closed;"
              "chown -h 5:6 odd/abs; printf x >\"odd/$(printf 'n\\303\\244me')\"");
    snprintf(path, sizeof path, "%s/odd/own", w->dir);
    CHECK(setxattr(path, "user.note", "kept", 4, 0) == 0);
    snprintf(path, sizeof path, "%s/odd/power", w->dir);
    CHECK(setxattr(path, "security.capability", raw_power, sizeof raw_power, 0) == 0);
    run_ok(w, "cd \"$1\"; umoci insert --image src:v1 odd /; mkdir -p over; echo 4 >over/above;"
              "umoci insert --image src:v1 --opaque over /opq; chmod -R a+rX src");
}

static void what_a_layer_has_is_unpacked(void)
{
    struct world w;
    world_open(&w, NULL);
    make_odd_files(&w);
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK_STR(g.e.msg, "");
    struct stat own = stat_of(&g, "own"), same = stat_of(&g, "d/same"), d = stat_of(&g, "d");
    CHECK(own.st_uid == 1234 && own.st_gid == 2345 && (own.st_mode & 07777) == 02755);
    CHECK(own.st_ino == same.st_ino && own.st_nlink == 2 && own.st_mtime == 1000000);
    CHECK((d.st_mode & 07777) == 01777 && (stat_of(&g, "closed").st_mode & 07777) == 0711);
    CHECK(stat_of(&g, "closed").st_uid == 77 && S_ISFIFO(stat_of(&g, "pipe").st_mode));
    CHECK((stat_of(&g, "bin/tool").st_mode & 07777) == 04755);
    struct stat link = stat_of(&g, "abs");
    CHECK(S_ISLNK(link.st_mode) && link.st_size == 11 && link.st_uid == 5 && link.st_gid == 6);
    CHECK(S_ISLNK(stat_of(&g, "d/rel").st_mode) && in_rootfs(&g, "n\303\244me"));
    CHECK(in_rootfs(&g, "opq/above") && !in_rootfs(&g, "opq/below"));
    CHECK(has_attribute(g.rootfs, "own", "user.note", "kept", 4));
    CHECK(has_attribute(g.rootfs, "power", "security.capability", raw_power, sizeof raw_power));
    CHECK((stat_of(&g, "").st_mode & 07777) == 0755);
    world_close(&w);
}

/* Names that lead out, as no builder of images makes them. */
static void a_layer_with_names_that_lead_out_stays_inside(void)
{
    struct world w;
    world_open(&w, NULL);
    run_ok(&w,
           "cd \"$1\"; mkdir t out; echo mine >out/file; cp -a out was; cd t; echo x >a; echo y "
           ">b; ln b c;"
           "ln -s \"$1/out\" l; ln -s ../../../../../../..\"$1/out\" m; mkdir n;"
           "tar -cPf ../t.tar --transform='flags=rh;s,^a$,../../../../../../..'\"$1\"'/out/up,' a;"
           "tar -rPf ../t.tar --transform=\"flags=rh;s,^a$,$1/out/absolute,\" a;"
           "tar -rPf ../t.tar l m; tar -rPf ../t.tar --transform='flags=r;s,^a$,l/through,' a;"
           "tar -rPf ../t.tar --transform='flags=r;s,^a$,m/through2,' a;"
           "tar -cPf h.tar --transform=\"flags=rh;s,^b$,$1/out/file,\" b c;"
           "tar -cPf i.tar --transform='flags=rh;s,^b$,../../../../../../..'\"$1\"'/out/file,' b c;"
           "tar -cPf j.tar --transform='flags=r;s,^n$,l,' n; cd ..;"
           "for i in t t/h t/i t/j; do umoci raw add-layer --image src:v1 $i.tar; done; chmod -R "
           "a+rX src");
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK_STR(g.e.msg, "");
    CHECK(in_rootfs(&g, "c"));
    run_ok(&w, "cd \"$1\"; diff -r was out; [ \"$(stat -c %h%a%u%Y out/file)\" = \"$(stat -c "
               "%h%a%u%Y was/file)\" ]");
    world_close(&w);
}

static void what_unpacks_to_too_much_is_stopped(void)
{
    struct world w;
    world_open(&w, &(struct image_config){ .max_bytes = 2000000 });
    run_ok(&w, "cd \"$1\"; mkdir zeros; head -c 8000000 /dev/zero >zeros/one;"
               "umoci insert --image src:v1 zeros /; chmod -R a+rX src");
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(!g.digest[0] && g.e.code == ERR_TOO_LARGE);
    CHECK_INT(entries(&w, "rootfs"), 0);
    world_close(&w);
}

static void a_disk_without_room_for_files_takes_no_image(void)
{
    struct world w;
    struct err e;
    world_open(&w, NULL);
    w.s = image_close(w.s);
    CHECK(mount("tmpfs", w.images, "tmpfs", 0, "nr_inodes=2000,size=64m") == 0);
    w.s = open_store(&w, &(struct image_config){ 0 }, &e);
    CHECK(w.s);
    /* One in twenty is 100: there would be room for all of this one. */
    run_ok(&w, "cd \"$1/images\"; mkdir full; i=0; n=$(($(stat -fc %d .) - 90));"
               "while [ $i -lt $n ]; do i=$((i + 1)); : >full/$i; done");
    struct got g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(!g.digest[0] && g.e.code == ERR_UNAVAILABLE && strstr(g.e.msg, "no disk space"));
    run_ok(&w, "rm -r \"$1/images/full\"");
    g = get(&w, "oci:", "/src:v1", &nobody);
    CHECK_STR(g.e.msg, "");
    loop_run(w.loop);
    CHECK_INT(entries(&w, "layout"), 0);
    w.s = image_close(w.s);
    CHECK(umount2(w.images, MNT_DETACH) == 0);
    w.loop = loop_free(w.loop);
    run_ok(&w, "rm -rf \"$1\"");
}

/* Whoever unpacks one image does not see the layers of another. */
static void a_layout_has_its_own_layers_only(void)
{
    struct world w;
    world_open(&w, NULL);
    struct got a = get(&w, "oci:", "/src:v1", &nobody);
    CHECK(a.digest[0]);
    run_ok(&w, "cd \"$1\"; echo a secret >images/blobs/sha256/of-another; echo other >one/other; "
               "umoci new --image src:v2;"
               "umoci insert --image src:v2 one/other /other; chmod -R a+rX src");
    struct got b;
    begin(&w, "oci:", "/src:v2", &nobody, &b);
    b.look_layers = true;
    while (!b.done)
        loop_run(w.loop);
    CHECK_STR(b.e.msg, "");
    CHECK_INT(b.layers, 3); /* manifest, configuration, layer */
    CHECK_INT(entries(&w, "blobs/sha256"), 1);
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
    { "what a layer has is unpacked: owners, modes, links, times, attributes",
      what_a_layer_has_is_unpacked },
    { "a layer with names that lead out stays inside",
      a_layer_with_names_that_lead_out_stays_inside },
    { "what unpacks to too much is stopped", what_unpacks_to_too_much_is_stopped },
    { "a disk without room for files takes no image",
      a_disk_without_room_for_files_takes_no_image },
    { "a layout has its own layers only", a_layout_has_its_own_layers_only },
    { "what is wrong is said", what_is_wrong_is_said },
    { "a damaged image is never in use", a_damaged_image_is_never_in_use },
    { "an image has a largest size", an_image_has_a_largest_size },
    { "an image has a time limit", an_image_has_a_time_limit },
    { "a killed keeper leaves no half image", a_killed_keeper_leaves_no_half_image },
    { "old images go first and mounted ones stay", old_images_go_first_and_mounted_ones_stay },
};
TEST_CASES(tests)
