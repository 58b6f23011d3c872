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

static bool nobody_alive(void *ctx, const char *task)
{
    (void)ctx, (void)task;
    return false;
}

static bool one_alive(void *ctx, const char *task)
{
    return strcmp(ctx, task) == 0;
}

static void check_bounded(enum scratch_kind kind, uint64_t mib, int least, int most)
{
    struct world w;
    struct err e;
    char path[SCRATCH_PATH_MAX], again[SCRATCH_PATH_MAX], file[SCRATCH_PATH_MAX + 16];
    world_open(&w, ONLY(kind));
    if (scratch_choose(w.s, mib) != kind) {
        world_close(&w);
        SKIP("%s does not work on this machine", scratch_kind_help(kind));
    }
    struct scratch_want want = { "17.1.0", mib, NOBODY, NOBODY };
    CHECK(scratch_make(w.s, &want, path, &e) == 0);
    struct stat st;
    snprintf(file, sizeof file, "%s/var-tmp", path);
    CHECK(stat(file, &st) == 0 && st.st_uid == NOBODY && st.st_gid == NOBODY);
    CHECK(stat(path, &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 0711);
    CHECK(stat(w.dir, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(chmod(w.dir, 0711) == 0); /* the task sees it by a mount of its own; we do not */
    CHECK(!scratch_full(w.s, "17.1.0"));
    snprintf(file, sizeof file, "%s/tmp/big", path);
    int fitted = fill(file, 200);
    CHECK(fitted >= least && fitted <= most);
    CHECK(scratch_full(w.s, "17.1.0") == (most < 200));
    CHECK(scratch_make(w.s, &want, again, &e) == 0); /* a second time keeps what is there */
    CHECK_STR(again, path);
    CHECK(access(file, F_OK) == 0);
    CHECK(scratch_remove(w.s, "17.1.0", &e) == 0 && access(path, F_OK) < 0);
    CHECK(scratch_remove(w.s, "17.1.0", &e) == 0);
    CHECK(!scratch_full(w.s, "17.1.0"));
    CHECK_INT(entries(&w, ""), 0);
    CHECK_INT(entries(&w, ".loop"), 0);
    loop_run(w.loop); /* until the rest is deleted */
    CHECK_INT(entries(&w, ".trash"), 0);
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
    struct scratch_want one = { "1.1.0", 20, NOBODY, NOBODY },
                        two = { "2.1.0", 20, NOBODY, NOBODY };
    CHECK(scratch_make(s, &one, path, &e) == 0 && scratch_make(s, &two, other, &e) == 0);
    CHECK(chmod(w.dir, 0711) == 0 && chmod(dir, 0711) == 0);
    snprintf(file, sizeof file, "%s/tmp/big", path);
    int fitted = fill(file, 100);
    CHECK(fitted >= 18 && fitted <= 20);
    CHECK(scratch_full(s, "1.1.0") && !scratch_full(s, "2.1.0"));
    CHECK(scratch_remove(s, "1.1.0", &e) == 0);
    loop_run(w.loop);
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

static void names_cannot_lead_elsewhere(void)
{
    struct world w;
    struct err e;
    char path[SCRATCH_PATH_MAX] = "as before";
    static const char *const bad[] = { "", ".", "..", "../x", "a/b", ".loop", "a b" };
    world_open(&w, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct scratch_want want = { bad[i], 1, 0, 0 };
        CHECK(scratch_make(w.s, &want, path, &e) < 0 && e.code == ERR_INVALID);
        CHECK(scratch_remove(w.s, bad[i], &e) < 0 && !scratch_full(w.s, bad[i]));
    }
    CHECK(scratch_make(w.s, &(struct scratch_want){ "1.1.0", 0, 0, 0 }, path, &e) < 0);
    CHECK_STR(path, "as before");
    world_close(&w);
}

/* Makes one after the other and says so, until it is killed. */
static void make_for_ever(struct scratch *s, unsigned round, int out)
{
    struct err e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        char task[32], path[SCRATCH_PATH_MAX];
        snprintf(task, sizeof task, "%u.%u.0", round, i);
        struct scratch_want want = { task, i % 2 ? 8 : 300, NOBODY, NOBODY };
        if (scratch_make(s, &want, path, &e) < 0 || write(out, "x", 1) < 0)
            _exit(1);
    }
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
            make_for_ever(w.s, round, ends[1]);
        close(ends[1]);
        char x;
        for (unsigned i = 0; i <= round; i++)
            CHECK(read(ends[0], &x, 1) == 1);
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        close(ends[0]);
    }
    char lives[] = "7.2.0", path[SCRATCH_PATH_MAX];
    scratch_free(w.s);
    struct scratch_config c = { .loop = w.loop, .dir = w.dir };
    w.s = scratch_new(&c, &e);
    CHECK(w.s);
    scratch_sweep(w.s, one_alive, lives);
    CHECK_INT(entries(&w, ""), 1);
    snprintf(path, sizeof path, "%s/7.2.0/tmp", w.dir);
    CHECK(access(path, F_OK) == 0);
    scratch_sweep(w.s, nobody_alive, NULL);
    CHECK_INT(entries(&w, ""), 0);
    CHECK_INT(entries(&w, ".loop"), 0);
    loop_run(w.loop);
    CHECK_INT(entries(&w, ".trash"), 0);
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
            struct scratch_want want = { "1.1.0", rows[i].mib, NOBODY, NOBODY };
            int64_t a = clock_mono_ns();
            CHECK(scratch_make(w.s, &want, path, &e) == 0);
            int64_t b = clock_mono_ns();
            CHECK(scratch_remove(w.s, "1.1.0", &e) == 0);
            gone_ns += clock_mono_ns() - b;
            *(k ? &next_ns : &first_ns) += b - a;
        }
        printf("# %s of %llu MiB: first %lld us, then %lld us; remove %lld us\n",
               scratch_kind_name(rows[i].kind), (unsigned long long)rows[i].mib,
               (long long)first_ns / 1000, (long long)next_ns / 20000, (long long)gone_ns / 21000);
        loop_run(w.loop);
        world_close(&w);
    }
}

static const struct test tests[] = {
    { "a tmpfs is bounded", a_tmpfs_is_bounded },
    { "a file on a loop device is bounded", a_loop_file_is_bounded },
    { "a project quota is bounded", a_project_quota_is_bounded },
    { "a plain folder is not bounded and says so", a_plain_folder_is_not },
    { "the size decides which kind is taken", the_size_decides_which_is_taken },
    { "names cannot lead elsewhere", names_cannot_lead_elsewhere },
    { "a killed keeper leaves nothing for ever", a_killed_keeper_leaves_nothing_for_ever },
    { "what each kind costs is printed", what_each_costs },
};
TEST_MAIN(tests)
