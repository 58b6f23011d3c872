#include "keeper/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/rootfs.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "tests/lib/test.h"

#define REAL "/sys/fs/cgroup"

/* --- v2 on a folder of plain files --- */

struct fake {
    char root[64];
};

static void put(const struct fake *f, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->root, name);
    FILE *out = fopen(path, "we");
    CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static const char *get(const struct fake *f, const char *name, char out[static 128])
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->root, name);
    FILE *in = fopen(path, "re");
    CHECK(in);
    size_t n = fread(out, 1, 127, in);
    out[n] = '\0';
    fclose(in);
    return out;
}

static void make_dir(const struct fake *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->root, name);
    CHECK(mkdir(path, 0755) == 0);
}

/* As the kernel has them: ours, and one task's with the files of its controllers. */
static struct fake fake_v2(void)
{
    static const char *const files[] = {
        "cpu.max",       "memory.max",  "memory.swap.max", "memory.oom.group", "pids.max",
        "cgroup.freeze", "cgroup.kill", "cgroup.procs",    "cgroup.events",
    };
    struct fake f = { "/tmp/ns-cgroup-XXXXXX" };
    CHECK(mkdtemp(f.root));
    put(&f, "cgroup.controllers", "cpu memory pids\n");
    put(&f, "cgroup.subtree_control", "");
    make_dir(&f, "ns");
    put(&f, "ns/cgroup.subtree_control", "");
    put(&f, "ns/cgroup.freeze", "0\n");
    make_dir(&f, "ns/1.1.0");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char name[64];
        snprintf(name, sizeof name, "ns/1.1.0/%s", files[i]);
        put(&f, name, "");
    }
    return f;
}

static void fake_clear(struct fake *f)
{
    struct err e;
    CHECK(tree_remove(f->root, &e) == 0);
}

static void groups_free_p(struct cgroups **c)
{
    *c = cgroups_free(*c);
}

static void the_kind_is_found(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    CHECK(cgroups_detect(f.root) == CGROUPS_V2);
    CHECK(cgroups_detect("/no/such/folder") == CGROUPS_NONE);
    struct fake v1 = { "/tmp/ns-cgroup-XXXXXX" };
    CHECK(mkdtemp(v1.root));
    CHECK(cgroups_detect(v1.root) == CGROUPS_NONE);
    make_dir(&v1, "memory");
    put(&v1, "memory/cgroup.procs", "");
    make_dir(&v1, "unified");
    put(&v1, "unified/cgroup.controllers", "");
    CHECK(cgroups_detect(v1.root) == CGROUPS_V1); /* both: the one that does the work */
    fake_clear(&v1);
}

static void v2_limits_are_written(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    char text[128];
    struct err e;
    AUTO(groups_free_p) struct cgroups *c = cgroups_open(f.root, CGROUPS_V2, "ns", &e);
    CHECK(c && cgroups_has(c, CGROUPS_LIMITS) && cgroups_has(c, CGROUPS_FREEZE));
    CHECK(!cgroups_has(c, CGROUPS_DEVICES));
    struct cgroup_limits l = { .cpu_milli = 2500, .mem_mib = 512, .pids_max = 99 };
    CHECK(cgroup_make(c, "1.1.0", &l, &e) == 0);
    CHECK_STR(get(&f, "ns/1.1.0/cpu.max", text), "250000 100000");
    CHECK_STR(get(&f, "ns/1.1.0/memory.max", text), "536870912");
    CHECK_STR(get(&f, "ns/1.1.0/memory.swap.max", text), "0");
    CHECK_STR(get(&f, "ns/1.1.0/memory.oom.group", text), "1");
    CHECK_STR(get(&f, "ns/1.1.0/pids.max", text), "99");
}

static void no_limit_is_not_written(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    char text[128];
    struct err e;
    AUTO(groups_free_p) struct cgroups *c = cgroups_open(f.root, CGROUPS_V2, "ns", &e);
    struct cgroup_limits l = { .cpu_milli = 1 };
    CHECK(c && cgroup_make(c, "1.1.0", &l, &e) == 0);
    CHECK_STR(get(&f, "ns/1.1.0/memory.max", text), "");
    CHECK_STR(get(&f, "ns/1.1.0/pids.max", text), "");
    CHECK_STR(get(&f, "ns/1.1.0/cpu.max", text), "1000 100000"); /* the kernel's least */
}

static void a_limit_that_cannot_be_set_fails(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    char path[128];
    struct err e;
    AUTO(groups_free_p) struct cgroups *c = cgroups_open(f.root, CGROUPS_V2, "ns", &e);
    struct cgroup_limits l = { .mem_mib = 1 };
    snprintf(path, sizeof path, "%s/ns/1.1.0/memory.swap.max", f.root);
    CHECK(c && unlink(path) == 0 && cgroup_make(c, "1.1.0", &l, &e) == 0); /* often absent */
    snprintf(path, sizeof path, "%s/ns/1.1.0/memory.max", f.root);
    CHECK(unlink(path) == 0 && cgroup_make(c, "1.1.0", &l, &e) < 0);
    CHECK(strstr(e.msg, "memory.max"));
}

static void v2_usage_is_read(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    struct cgroup_usage u;
    struct err e;
    AUTO(groups_free_p) struct cgroups *c = cgroups_open(f.root, CGROUPS_V2, "ns", &e);
    put(&f, "ns/1.1.0/cpu.stat", "usage_usec 1234567\nuser_usec 1\n");
    put(&f, "ns/1.1.0/memory.peak", "104857600\n");
    put(&f, "ns/1.1.0/memory.events", "low 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n");
    put(&f, "ns/1.1.0/pids.events", "max 4\n");
    cgroup_usage(c, "1.1.0", &u);
    CHECK(u.cpu_ms == 1234 && u.mem_peak_mib == 100 && u.oom_kills == 3 && u.refused_forks == 4);
    cgroup_usage(c, "9.9.9", &u);
    CHECK(u.cpu_ms == 0 && u.oom_kills == 0);
}

static void v2_is_frozen_and_killed_by_files(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    char text[128];
    struct err e;
    AUTO(groups_free_p) struct cgroups *c = cgroups_open(f.root, CGROUPS_V2, "ns", &e);
    CHECK(cgroup_freeze(c, "1.1.0", true, &e) == 0);
    CHECK_STR(get(&f, "ns/1.1.0/cgroup.freeze", text), "1");
    put(&f, "ns/1.1.0/cgroup.events", "populated 1\nfrozen 0\n");
    CHECK(!cgroup_is_frozen(c, "1.1.0"));
    put(&f, "ns/1.1.0/cgroup.events", "populated 1\nfrozen 1\n");
    CHECK(cgroup_is_frozen(c, "1.1.0"));
    CHECK(cgroup_freeze(c, "1.1.0", false, &e) == 0);
    CHECK_STR(get(&f, "ns/1.1.0/cgroup.freeze", text), "0");
    cgroup_kill(c, "1.1.0");
    CHECK_STR(get(&f, "ns/1.1.0/cgroup.kill", text), "1");
}

static void members_are_listed(void)
{
    AUTO(fake_clear) struct fake f = fake_v2();
    struct err e;
    pid_t pids[2] = { 0 };
    int fds[CGROUP_JOIN_MAX];
    char text[128];
    AUTO(groups_free_p) struct cgroups *c = cgroups_open(f.root, CGROUPS_V2, "ns", &e);
    CHECK(cgroup_pids(c, "1.1.0", pids, 2) == 0);
    put(&f, "ns/1.1.0/cgroup.procs", "100001\n100002\n100003\n");
    CHECK(cgroup_pids(c, "1.1.0", pids, 2) == 3 && pids[1] == 100002);
    CHECK(cgroup_holds(c, "1.1.0", 100003) && !cgroup_holds(c, "1.1.0", 7));
    put(&f, "ns/1.1.0/cgroup.procs", "");
    CHECK(cgroup_join_fds(c, "1.1.0", fds, &e) == 1);
    CHECK(write(fds[0], "0", 1) == 1 && close(fds[0]) == 0);
    CHECK_STR(get(&f, "ns/1.1.0/cgroup.procs", text), "0");
    CHECK(cgroup_join_fds(c, "8.8.8", fds, &e) < 0);
}

static void without_groups_nothing_happens(void)
{
    struct err e;
    int fds[CGROUP_JOIN_MAX];
    struct cgroup_limits l = { .mem_mib = 1 };
    AUTO(groups_free_p) struct cgroups *c = cgroups_open("/no/such", CGROUPS_NONE, "ns", &e);
    CHECK(c && cgroup_make(c, "1.1.0", &l, &e) == 0 && cgroup_join_fds(c, "1.1.0", fds, &e) == 0);
    CHECK(cgroup_remove(c, "1.1.0") && cgroup_pids(c, "1.1.0", NULL, 0) == 0);
    CHECK(cgroup_freeze(c, "1.1.0", true, &e) < 0 && !cgroup_is_frozen(c, "1.1.0"));
    cgroup_kill(c, "1.1.0");
}

/* --- the real ones --- */

static struct cgroups *real_groups(const char *root, enum cgroups_kind kind)
{
    struct err e;
    char parent[32];
    snprintf(parent, sizeof parent, "ns-test-%d", (int)getpid());
    if (geteuid() != 0 || cgroups_detect(root) != kind)
        SKIP("it needs root and control groups %s at %s", cgroups_kind_name(kind), root);
    struct cgroups *c = cgroups_open(root, kind, parent, &e);
    if (!c)
        SKIP("%s", e.msg);
    return c;
}

static void real_remove(const char *root, bool v1)
{
    static const char *const folders[] = {
        "cpu", "cpuacct", "memory", "pids", "freezer", "devices"
    };
    char path[256];
    for (size_t i = 0; i < (v1 ? ARRAY_LEN(folders) : 1); i++) {
        snprintf(path, sizeof path, "%s/%s/ns-test-%d", root, v1 ? folders[i] : "", (int)getpid());
        rmdir(path);
    }
}

/* A child that joins, and then computes for ever. */
static pid_t spin_inside(const struct cgroups *c, const char *name)
{
    int fds[CGROUP_JOIN_MAX];
    struct err e;
    int n = cgroup_join_fds(c, name, fds, &e), ends[2];
    CHECK(n > 0 && pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < n; i++)
            if (write(fds[i], "0", 1) != 1)
                _exit(9);
        if (write(ends[1], "in", 2) != 2)
            _exit(9);
        for (;;)
            ;
    }
    char word[2];
    close(ends[1]);
    CHECK(read(ends[0], word, 2) == 2 && close(ends[0]) == 0);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    return child;
}

static void wait_for(bool (*fn)(const struct cgroups *, const char *), const struct cgroups *c,
                     const char *name)
{
    int64_t until = clock_mono_ns() + TEST_PATIENCE_MS * INT64_C(1000000);
    while (!fn(c, name) && clock_mono_ns() < until)
        usleep(1000);
    CHECK(fn(c, name));
}

static void live_and_die(struct cgroups *c)
{
    struct err e;
    struct cgroup_limits l = { .cpu_milli = 500, .mem_mib = 64, .pids_max = 10 };
    CHECK(cgroup_make(c, "1.1.0", &l, &e) == 0);
    CHECK(cgroup_make(c, "1.1.0", &l, &e) == 0); /* again */
    pid_t child = spin_inside(c, "1.1.0");
    CHECK(cgroup_holds(c, "1.1.0", child) && !cgroup_remove(c, "1.1.0"));
    CHECK(cgroup_freeze(c, "1.1.0", true, &e) == 0);
    wait_for(cgroup_is_frozen, c, "1.1.0");
    cgroup_kill(c, "1.1.0"); /* also a frozen one */
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(cgroup_remove(c, "1.1.0") && cgroup_remove(c, "1.1.0"));
}

static void v1_holds_freezes_and_kills(void)
{
    AUTO(groups_free_p) struct cgroups *c = real_groups(REAL, CGROUPS_V1);
    live_and_die(c);
    real_remove(REAL, true);
}

static void v2_holds_freezes_and_kills(void)
{
    const char *root = cgroups_detect(REAL) == CGROUPS_V2 ? REAL : REAL "/unified";
    AUTO(groups_free_p) struct cgroups *c = real_groups(root, CGROUPS_V2);
    live_and_die(c);
    real_remove(root, false);
}

static void v1_limits_hold(void)
{
    AUTO(groups_free_p) struct cgroups *c = real_groups(REAL, CGROUPS_V1);
    struct err e;
    struct cgroup_limits l = { .mem_mib = 16, .pids_max = 10 };
    CHECK(cgroup_make(c, "1.1.0", &l, &e) == 0);
    AUTO(file_close_p) int oom = cgroup_watch_oom(c, "1.1.0");
    CHECK(oom >= 0);
    int fds[CGROUP_JOIN_MAX], n = cgroup_join_fds(c, "1.1.0", fds, &e);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < n; i++)
            if (write(fds[i], "0", 1) != 1)
                _exit(9);
        int device = open("/dev/kmsg", O_RDONLY); /* not in the list, root or not */
        if (device >= 0 || errno != EPERM || open("/dev/null", O_RDONLY) < 0)
            _exit(8);
        for (size_t i = 0; i < 64; i++)
            memset(xmalloc(1u << 20), 1, 1u << 20);
        _exit(7);
    }
    for (int i = 0; i < n; i++)
        close(fds[i]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    uint64_t events;
    CHECK(read(oom, &events, sizeof events) == sizeof events && events > 0);
    struct cgroup_usage u;
    cgroup_usage(c, "1.1.0", &u);
    CHECK(u.oom_kills == 1 && u.mem_peak_mib == 16);
    CHECK(cgroup_remove(c, "1.1.0"));
    real_remove(REAL, true);
}

/* What a child in the group finds: 0 when null opens and kmsg does not. */
static int look_at_devices(const struct cgroups *c)
{
    struct err e;
    int fds[CGROUP_JOIN_MAX], n = cgroup_join_fds(c, "1.1.0", fds, &e), status;
    CHECK(n > 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < n; i++)
            if (write(fds[i], "0", 1) != 1)
                _exit(9);
        bool harmless = open("/dev/null", O_RDWR) >= 0, listed = open("/dev/full", O_RDWR) >= 0;
        int other = open("/dev/kmsg", O_RDONLY);
        _exit(!harmless || !listed ? 8 : other >= 0 ? 1 : errno == EPERM ? 0 : 7);
    }
    for (int i = 0; i < n; i++)
        close(fds[i]);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void v2_devices_are_bounded(void)
{
    const char *root = cgroups_detect(REAL) == CGROUPS_V2 ? REAL : REAL "/unified";
    AUTO(groups_free_p) struct cgroups *c = real_groups(root, CGROUPS_V2);
    struct err e;
    struct cgroup_limits l = { 0 };
    if (!cgroups_has(c, CGROUPS_DEVICES)) {
        real_remove(root, false);
        SKIP("no program may be given to the kernel here");
    }
    CHECK(cgroup_make(c, "1.1.0", &l, &e) == 0);
    CHECK_INT(look_at_devices(c), 0);
    CHECK(cgroup_remove(c, "1.1.0"));
    l.devices = &(dev_t){ makedev(1, 11) }; /* kmsg itself: now it is given */
    l.n_devices = 1;
    CHECK(cgroup_make(c, "1.1.0", &l, &e) == 0);
    CHECK_INT(look_at_devices(c), 1);
    CHECK(cgroup_remove(c, "1.1.0"));
    real_remove(root, false);
}

static const struct test tests[] = {
    { "the kind is found; both at once count as v1", the_kind_is_found },
    { "v2: limits are written", v2_limits_are_written },
    { "v2: what is not limited is not written", no_limit_is_not_written },
    { "v2: a limit that cannot be set fails, swap aside", a_limit_that_cannot_be_set_fails },
    { "v2: usage is read", v2_usage_is_read },
    { "v2: freezing and killing are one file each", v2_is_frozen_and_killed_by_files },
    { "v2: members are listed and joined", members_are_listed },
    { "without control groups nothing happens, without an error", without_groups_nothing_happens },
    { "v1, real: a group holds, freezes and kills", v1_holds_freezes_and_kills },
    { "v2, real: a group holds, freezes and kills", v2_holds_freezes_and_kills },
    { "v2, real: devices are bounded", v2_devices_are_bounded },
    { "v1, real: memory and devices are bounded, and a kill is counted", v1_limits_hold },
};
TEST_CASES(tests)
