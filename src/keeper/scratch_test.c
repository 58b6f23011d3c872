#include "keeper/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/tool.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "tests/lib/test.h"

#define MIB (1 << 20)
#define ONLY(kind) ((unsigned)~(1u << (kind)))
#define NOBODY 65534

struct world {
    struct loop *loop;
    struct scratch *s;
    char dir[64];
};

static int run(const char *script)
{
    AUTO(buf_free) struct buf out = BUF(0);
    const char *argv[] = { "sh", "-c", script, NULL };
    struct process_exit how;
    struct err e;
    CHECK(tool_wait(argv, 60000, &out, &how, &e) == 0);
    return how.code;
}

/* In a mount namespace of the test's own; the folder lies where files lie on this machine. */
static void world_open(struct world *w, unsigned without)
{
    struct err e;
    if (geteuid() != 0)
        SKIP("needs root");
    if (unshare(CLONE_NEWNS) < 0)
        SKIP("cannot have mounts of its own: %s", strerror(errno));
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    *w = (struct world){ .loop = loop_new() };
    snprintf(w->dir, sizeof w->dir, "/tmp/scratch-test.XXXXXX");
    CHECK(mkdtemp(w->dir));
    struct scratch_config c = { .loop = w->loop, .dir = w->dir, .without = without };
    w->s = scratch_new(&c, &e);
    CHECK(w->s);
}

static void world_close(struct world *w)
{
    char script[256];
    w->s = scratch_free(w->s);
    w->loop = loop_free(w->loop);
    snprintf(script, sizeof script, "umount -l %s/[0-9]* 2>/dev/null; rm -rf %s", w->dir, w->dir);
    CHECK(run(script) == 0);
}

static unsigned entries(const struct world *w, const char *sub)
{
    char path[128];
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/%s", w->dir, sub);
    DIR *d = opendir(path);
    CHECK(d);
    for (struct dirent *x; (x = readdir(d));)
        n += x->d_name[0] != '.' && strncmp(x->d_name, "t.", 2) != 0;
    closedir(d);
    return n;
}

/* Writes up to `mib` as an account without rights; the MiB that fitted. */
static int fill(const char *path, int mib)
{
    pid_t child = fork();
    if (child == 0) {
        static const char block[MIB];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(255);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), n = 0;
        if (fd < 0)
            _exit(254);
        while (n < mib && write(fd, block, MIB) == MIB)
            n++;
        _exit(n);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void stop_when_deleted(void *ctx)
{
    struct world *w = ctx;
    if (entries(w, ".trash") == 0)
        loop_stop(w->loop);
}

/* rm works beside us. */
static void until_deleted(struct world *w)
{
    struct loop_watch *timer = loop_timer(w->loop, stop_when_deleted, w);
    loop_timer_set(timer, 1, 2);
    loop_run(w->loop);
    loop_unwatch(timer);
}

static void check_bounded(enum scratch_kind kind, uint64_t mib, int least, int most)
{
    struct world w;
    struct err e;
    char path[SCRATCH_PATH_MAX], file[SCRATCH_PATH_MAX + 16];
    world_open(&w, ONLY(kind));
    if (scratch_choose(w.s, mib) != kind) {
        world_close(&w);
        SKIP("%s does not work on this machine", scratch_kind_help(kind));
    }
    struct scratch_want want = { mib, NOBODY, NOBODY };
    CHECK(scratch_take(w.s, &want, path, &e) == 0);
    struct stat st;
    snprintf(file, sizeof file, "%s/var-tmp", path);
    CHECK(stat(file, &st) == 0 && st.st_uid == NOBODY && st.st_gid == NOBODY);
    CHECK(stat(path, &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 0711);
    CHECK(stat(w.dir, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(chmod(w.dir, 0711) == 0); /* the task sees it by a mount of its own; we do not */
    CHECK(!scratch_full(path));
    snprintf(file, sizeof file, "%s/tmp/big", path);
    int fitted = fill(file, 200);
    CHECK(fitted >= least && fitted <= most);
    CHECK(scratch_full(path) == (most < 200));
    CHECK(scratch_give_back(w.s, path, &e) == 0 && access(path, F_OK) < 0);
    CHECK(scratch_give_back(w.s, path, &e) == 0);
    CHECK(!scratch_full(path));
    CHECK_INT(entries(&w, ""), 0);
    CHECK_INT(entries(&w, ".loop"), 0);
    until_deleted(&w);
    world_close(&w);
}

static void a_tmpfs_is_bounded(void)
{
    check_bounded(SCRATCH_TMPFS, 20, 18, 20);
}

static void a_loop_file_is_bounded(void)
{
    check_bounded(SCRATCH_LOOP, 64, 48, 64);
}

static void a_plain_folder_is_not(void)
{
    check_bounded(SCRATCH_PLAIN, 1, 200, 200);
}

/* On a file system made for it, as this machine's own is seldom mounted with project quotas. */
static void a_project_quota_is_bounded(void)
{
    struct world w;
    struct err e;
    char script[300], path[SCRATCH_PATH_MAX], other[SCRATCH_PATH_MAX], file[SCRATCH_PATH_MAX + 16];
    world_open(&w, ONLY(SCRATCH_PLAIN));
    snprintf(script, sizeof script,
             "cd %s && truncate -s 300M img && mkfs.ext4 -q -F -O quota,project "
             "-E quotatype=prjquota img && mkdir m && mount -o loop,prjquota img m",
             w.dir);
    if (run(script) != 0) {
        world_close(&w);
        SKIP("this kernel or e2fsprogs has no project quotas");
    }
    char dir[128];
    snprintf(dir, sizeof dir, "%s/m/scratch", w.dir);
    struct scratch_config c = { .loop = w.loop, .dir = dir };
    struct scratch *s = scratch_new(&c, &e);
    CHECK(s && scratch_choose(s, 1) == SCRATCH_PROJECT && scratch_bounded(s));
    struct scratch_want want = { 20, NOBODY, NOBODY };
    CHECK(scratch_take(s, &want, path, &e) == 0 && scratch_take(s, &want, other, &e) == 0);
    CHECK(chmod(w.dir, 0711) == 0 && chmod(dir, 0711) == 0);
    snprintf(file, sizeof file, "%s/tmp/big", path);
    int fitted = fill(file, 100);
    CHECK(fitted >= 18 && fitted <= 20);
    CHECK(scratch_full(path) && !scratch_full(other));
    CHECK(scratch_give_back(s, path, &e) == 0);
    scratch_free(s);
    snprintf(script, sizeof script, "umount -l %s/m", w.dir);
    CHECK(run(script) == 0);
    world_close(&w);
}

static void the_size_decides_which_is_taken(void)
{
    struct world w;
    world_open(&w, 1u << SCRATCH_PROJECT);
    CHECK(scratch_choose(w.s, 256) == SCRATCH_TMPFS);
    enum scratch_kind large = scratch_choose(w.s, 257);
    CHECK(large == SCRATCH_LOOP || large == SCRATCH_PLAIN);
    CHECK(scratch_bounded(w.s) == (large == SCRATCH_LOOP));
    world_close(&w);
    world_open(&w, ONLY(SCRATCH_TMPFS));
    CHECK(scratch_choose(w.s, 257) == SCRATCH_PLAIN && !scratch_bounded(w.s));
    world_close(&w);
}

static void paths_cannot_lead_elsewhere(void)
{
    struct world w;
    struct err e;
    char path[SCRATCH_PATH_MAX] = "as before";
    static const char *const bad[] = { "",        "/1",         "%s",     "%s/",  "%s/0",
                                       "%s/../1", "%s/.loop/1", "%s/1/x", "%s/x", "%s/-1" };
    world_open(&w, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_free) struct buf text = BUF(SCRATCH_PATH_MAX);
        bool ours = strncmp(bad[i], "%s", 2) == 0;
        buf_printf(&text, "%s%s", ours ? w.dir : "", bad[i] + (ours ? 2 : 0));
        CHECK(scratch_adopt(w.s, text.p ? text.p : "", &e) < 0 && e.code == ERR_INVALID);
        CHECK(scratch_give_back(w.s, text.p ? text.p : "", &e) == 0); /* it is nobody's */
    }
    CHECK(scratch_take(w.s, &(struct scratch_want){ 0, 0, 0 }, path, &e) < 0);
    CHECK_STR(path, "as before");
    world_close(&w);
}

static void put_file(const char *path, const char *name)
{
    char file[SCRATCH_PATH_MAX + 64];
    snprintf(file, sizeof file, "%s/%s", path, name);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, "secret", 6) == 6 && close(fd) == 0);
}

static void an_empty_one_is_used_again_and_shows_nothing(void)
{
    struct world w;
    struct err e;
    char first[SCRATCH_PATH_MAX], second[SCRATCH_PATH_MAX], sub[SCRATCH_PATH_MAX + 16];
    struct stat st;
    world_open(&w, ONLY(SCRATCH_LOOP));
    if (scratch_choose(w.s, 64) != SCRATCH_LOOP) {
        world_close(&w);
        SKIP("%s does not work on this machine", scratch_kind_help(SCRATCH_LOOP));
    }
    CHECK(scratch_take(w.s, &(struct scratch_want){ 64, NOBODY, NOBODY }, first, &e) == 0);
    snprintf(sub, sizeof sub, "%s/tmp", first);
    CHECK(chmod(sub, 0777) == 0); /* what its owner may do */
    CHECK(scratch_give_back(w.s, first, &e) == 0);
    CHECK(access(first, F_OK) == 0 && access(sub, F_OK) < 0);
    CHECK(scratch_take(w.s, &(struct scratch_want){ 128, 1000, 1000 }, second, &e) == 0);
    CHECK(strcmp(first, second) != 0); /* another size is another one */
    CHECK(scratch_take(w.s, &(struct scratch_want){ 64, 1000, 1000 }, second, &e) == 0);
    CHECK_STR(first, second);
    CHECK(stat(sub, &st) == 0 && st.st_uid == 1000 && (st.st_mode & 07777) == 01777);
    put_file(second, "tmp/left");
    CHECK(scratch_give_back(w.s, second, &e) == 0);
    CHECK(access(second, F_OK) == 0 && access(sub, F_OK) < 0); /* a little is deleted */
    CHECK(scratch_take(w.s, &(struct scratch_want){ 64, 1000, 1000 }, second, &e) == 0);
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "tmp/left%d", i);
        put_file(second, name);
    }
    CHECK(scratch_give_back(w.s, second, &e) == 0);
    CHECK(access(second, F_OK) < 0); /* too many for that */
    world_close(&w);
}

static void idle_ones_can_be_dropped(void)
{
    struct world w;
    struct err e;
    char path[SCRATCH_PATH_MAX];
    world_open(&w, ONLY(SCRATCH_LOOP));
    struct scratch_want want = { 64, NOBODY, NOBODY };
    CHECK(scratch_take(w.s, &want, path, &e) == 0 && scratch_give_back(w.s, path, &e) == 0);
    scratch_drop_idle(w.s);
    CHECK_INT(entries(&w, ""), 0);
    CHECK_INT(entries(&w, ".loop"), 0);
    world_close(&w);
}

/* Makes one after the other and says so, until it is killed. */
static void make_for_ever(const char *dir, int out)
{
    struct err e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct scratch_config c = { .loop = loop_new(), .dir = dir };
    struct scratch *s = scratch_new(&c, &e);
    for (unsigned i = 0; s; i++) {
        char path[SCRATCH_PATH_MAX];
        struct scratch_want want = { i % 2 ? 8 : 300, NOBODY, NOBODY };
        if (scratch_take(s, &want, path, &e) < 0 || write(out, "x", 1) < 0)
            break;
    }
    _exit(1);
}

static void a_killed_keeper_leaves_nothing_for_ever(void)
{
    struct world w;
    struct err e;
    world_open(&w, 0);
    for (unsigned round = 0; round < 8; round++) {
        int ends[2], status = 0;
        CHECK(pipe2(ends, O_CLOEXEC) == 0);
        pid_t child = fork();
        if (child == 0)
            make_for_ever(w.dir, ends[1]);
        close(ends[1]);
        char x;
        for (unsigned i = 0; i <= round; i++)
            CHECK(read(ends[0], &x, 1) == 1);
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        close(ends[0]);
    }
    char lives[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + 16];
    scratch_free(w.s);
    struct scratch_config c = { .loop = w.loop, .dir = w.dir };
    w.s = scratch_new(&c, &e);
    CHECK(w.s);
    snprintf(lives, sizeof lives, "%s/1", w.dir); /* whole: the first round waited for it */
    CHECK(scratch_adopt(w.s, lives, &e) == 0);
    scratch_sweep(w.s);
    CHECK_INT(entries(&w, ""), 1);
    snprintf(path, sizeof path, "%s/tmp", lives);
    CHECK(access(path, F_OK) == 0);
    CHECK(scratch_give_back(w.s, lives, &e) == 0);
    CHECK_INT(entries(&w, ""), 0);
    CHECK_INT(entries(&w, ".loop"), 0);
    until_deleted(&w);
    world_close(&w);
}

static void stop_when_gone(void *ctx)
{
    struct world *w = ctx;
    if (entries(w, "") == 1)
        loop_stop(w->loop);
}

static void what_could_not_be_removed_is_tried_again(void)
{
    struct world w;
    struct err e;
    char script[256], path[SCRATCH_PATH_MAX], kept[SCRATCH_PATH_MAX];
    struct scratch_want want = { 20, NOBODY, NOBODY };
    world_open(&w, ONLY(SCRATCH_PLAIN));
    scratch_free(w.s);
    struct scratch_config c = {
        .loop = w.loop, .dir = w.dir, .without = ONLY(SCRATCH_PLAIN), .look_ms = 5
    };
    w.s = scratch_new(&c, &e);
    CHECK(w.s && scratch_take(w.s, &want, path, &e) == 0 &&
          scratch_take(w.s, &want, kept, &e) == 0);
    snprintf(script, sizeof script, "rmdir %s/.trash && touch %s/.trash", w.dir, w.dir);
    CHECK(run(script) == 0);
    CHECK(scratch_give_back(w.s, path, &e) < 0);
    CHECK_INT(entries(&w, ""), 2);
    snprintf(script, sizeof script, "rm %s/.trash && mkdir %s/.trash", w.dir, w.dir);
    CHECK(run(script) == 0);
    struct loop_watch *timer = loop_timer(w.loop, stop_when_gone, &w);
    loop_timer_set(timer, 1, 2);
    loop_run(w.loop);
    loop_unwatch(timer);
    CHECK(access(path, F_OK) < 0 && access(kept, F_OK) == 0);
    until_deleted(&w);
    world_close(&w);
}

/* Not a check: what scratch_kind.h says was measured by it. */
static void what_each_costs(void)
{
    static const struct {
        enum scratch_kind kind;
        uint64_t mib;
    } rows[] = { { SCRATCH_TMPFS, 64 },
                 { SCRATCH_LOOP, 1024 },
                 { SCRATCH_LOOP, 10240 },
                 { SCRATCH_PLAIN, 64 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        struct err e;
        char path[SCRATCH_PATH_MAX];
        int64_t first_ns = 0, next_ns = 0, gone_ns = 0;
        world_open(&w, ONLY(rows[i].kind));
        for (int k = 0; k < 21 && scratch_choose(w.s, rows[i].mib) == rows[i].kind; k++) {
            struct scratch_want want = { rows[i].mib, NOBODY, NOBODY };
            int64_t a = clock_mono_ns();
            CHECK(scratch_take(w.s, &want, path, &e) == 0);
            int64_t b = clock_mono_ns();
            CHECK(scratch_give_back(w.s, path, &e) == 0);
            gone_ns += clock_mono_ns() - b;
            *(k ? &next_ns : &first_ns) += b - a;
        }
        printf("# %s of %llu MiB: first %lld us, then %lld us; back %lld us\n",
               scratch_kind_name(rows[i].kind), (unsigned long long)rows[i].mib,
               (long long)first_ns / 1000, (long long)next_ns / 20000, (long long)gone_ns / 21000);
        world_close(&w);
    }
}

static const struct test tests[] = {
    { "a tmpfs is bounded", a_tmpfs_is_bounded },
    { "a file on a loop device is bounded", a_loop_file_is_bounded },
    { "a project quota is bounded", a_project_quota_is_bounded },
    { "a plain folder is not bounded and says so", a_plain_folder_is_not },
    { "the size decides which kind is taken", the_size_decides_which_is_taken },
    { "paths cannot lead elsewhere", paths_cannot_lead_elsewhere },
    { "an empty one is used again, as new", an_empty_one_is_used_again_and_shows_nothing },
    { "idle ones can be dropped", idle_ones_can_be_dropped },
    { "a killed keeper leaves nothing for ever", a_killed_keeper_leaves_nothing_for_ever },
    { "what could not be removed is tried again", what_could_not_be_removed_is_tried_again },
    { "what each kind costs is printed", what_each_costs },
};
TEST_CASES(tests)
