#include "keeper/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "keeper/device_filter.h"
#include "sys/file.h"
#include "sys/weak.h"

#define PATH_BYTES 512
#define SMALL_FILE 4096
#define PERIOD_US 100000u
#define PIDS_AT_ONCE 4096

enum controller {
    C_CPU,
    C_CPUACCT,
    C_MEMORY,
    C_PIDS,
    C_FREEZER,
    C_DEVICES,
    CONTROLLER_COUNT
};

/* Folder on v1, word in cgroup.subtree_control on v2 (NULL: no such thing, or always there). */
static const struct {
    const char *v1, *v2;
} controllers[CONTROLLER_COUNT] = {
    [C_CPU] = { "cpu", "cpu" },          [C_CPUACCT] = { "cpuacct", NULL },
    [C_MEMORY] = { "memory", "memory" }, [C_PIDS] = { "pids", "pids" },
    [C_FREEZER] = { "freezer", NULL },   [C_DEVICES] = { "devices", NULL },
};
_Static_assert(CONTROLLER_COUNT == CGROUP_JOIN_MAX, "a child joins each controller");

struct cgroups {
    enum cgroups_kind kind;
    char root[256], parent[64];
    bool has[CONTROLLER_COUNT];
};

/* How a limit becomes the text of a file. */
enum form {
    FORM_CPU_QUOTA,
    FORM_CPU_PERIOD,
    FORM_CPU_BOTH,
    FORM_BYTES,
    FORM_NO_SWAP,
    FORM_WHOLE_GROUP,
    FORM_PIDS
};

/* Written in this order.  An optional file may be absent: swap accounting often is. */
static const struct limit_file {
    enum cgroups_kind kind;
    enum controller controller;
    const char *file;
    enum form form;
    bool optional;
} limit_files[] = {
    { CGROUPS_V1, C_CPU, "cpu.cfs_period_us", FORM_CPU_PERIOD, false },
    { CGROUPS_V1, C_CPU, "cpu.cfs_quota_us", FORM_CPU_QUOTA, false },
    { CGROUPS_V1, C_MEMORY, "memory.limit_in_bytes", FORM_BYTES, false },
    { CGROUPS_V1, C_MEMORY, "memory.memsw.limit_in_bytes", FORM_BYTES, true },
    { CGROUPS_V1, C_PIDS, "pids.max", FORM_PIDS, false },
    { CGROUPS_V2, C_CPU, "cpu.max", FORM_CPU_BOTH, false },
    { CGROUPS_V2, C_MEMORY, "memory.max", FORM_BYTES, false },
    { CGROUPS_V2, C_MEMORY, "memory.swap.max", FORM_NO_SWAP, true },
    { CGROUPS_V2, C_MEMORY, "memory.oom.group", FORM_WHOLE_GROUP, true },
    { CGROUPS_V2, C_PIDS, "pids.max", FORM_PIDS, false },
};

/* Where usage is read: the number after `key` in the file, or the whole file when key is NULL. */
static const struct usage_file {
    enum cgroups_kind kind;
    enum controller controller;
    const char *file, *key;
    uint64_t divide;
    size_t into;
} usage_files[] = {
    { CGROUPS_V1, C_CPUACCT, "cpuacct.usage", NULL, 1000000,
      offsetof(struct cgroup_usage, cpu_ms) },
    { CGROUPS_V1, C_MEMORY, "memory.max_usage_in_bytes", NULL, 1u << 20,
      offsetof(struct cgroup_usage, mem_peak_mib) },
    { CGROUPS_V1, C_MEMORY, "memory.oom_control", "oom_kill", 1,
      offsetof(struct cgroup_usage, oom_kills) },
    { CGROUPS_V1, C_PIDS, "pids.events", "max", 1, offsetof(struct cgroup_usage, refused_forks) },
    { CGROUPS_V2, C_CPU, "cpu.stat", "usage_usec", 1000, offsetof(struct cgroup_usage, cpu_ms) },
    { CGROUPS_V2, C_MEMORY, "memory.peak", NULL, 1u << 20,
      offsetof(struct cgroup_usage, mem_peak_mib) },
    { CGROUPS_V2, C_MEMORY, "memory.events", "oom_kill", 1,
      offsetof(struct cgroup_usage, oom_kills) },
    { CGROUPS_V2, C_PIDS, "pids.events", "max", 1, offsetof(struct cgroup_usage, refused_forks) },
};

/* Character devices every task may use: null zero full random urandom, tty and terminals. */
static const struct device_rule harmless_devices[] = {
    { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 }, { 5, 0 }, { 5, 2 }, { 136, DEVICE_ANY_MINOR },
};

const char *cgroups_kind_name(enum cgroups_kind k)
{
    static const char *const names[] = {
        [CGROUPS_NONE] = "none", [CGROUPS_V1] = "v1", [CGROUPS_V2] = "v2"
    };
    return names[k];
}

enum cgroups_kind cgroups_detect(const char *root)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/cgroup.controllers", root);
    if (access(path, F_OK) == 0)
        return CGROUPS_V2;
    snprintf(path, sizeof path, "%s/memory/cgroup.procs", root);
    return access(path, F_OK) == 0 ? CGROUPS_V1 : CGROUPS_NONE;
}

/* On v2 all controllers share one folder, so the controller does not show in the path. */
static const char *group_path(const struct cgroups *c, enum controller k, const char *name,
                              const char *file, char out[static PATH_BYTES])
{
    bool v1 = c->kind == CGROUPS_V1;
    snprintf(out, PATH_BYTES, "%s%s%s/%s%s%s%s%s", c->root, v1 ? "/" : "",
             v1 ? controllers[k].v1 : "", c->parent, name ? "/" : "", name ? name : "",
             file ? "/" : "", file ? file : "");
    return out;
}

static int write_text(const char *path, const char *text)
{
    AUTO(file_close_p) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n;
    do /* the kernel gives up a change of a memory limit when a child of ours ends meanwhile */
        n = write(fd, text, strlen(text));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

static int read_text(const char *path, char out[static SMALL_FILE])
{
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, SMALL_FILE - 1);
    if (n < 0)
        return -1;
    out[n] = '\0';
    return 0;
}

static int cannot_write(const char *path, const char *text, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "cannot write '%s' to '%s': %s", text, path,
                   strerror(errno));
}

static int make_folder(const char *path, struct err *e)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return 0;
    int code = errno == EACCES || errno == EPERM || errno == EROFS ? ERR_DENIED : ERR_UNAVAILABLE;
    return err_set(e, (enum err_code)code, "cannot make the control group '%s': %s", path,
                   strerror(errno));
}

static int open_v1(struct cgroups *c, struct err *e)
{
    char path[PATH_BYTES];
    for (int k = 0; k < CONTROLLER_COUNT; k++) {
        snprintf(path, sizeof path, "%s/%s/cgroup.procs", c->root, controllers[k].v1);
        c->has[k] = access(path, F_OK) == 0;
        if (c->has[k] && make_folder(group_path(c, (enum controller)k, NULL, NULL, path), e) < 0)
            return -1;
    }
    return 0;
}

/* Controllers are handed down one level at a time; one that is missing or taken is left out. */
static int open_v2(struct cgroups *c, struct err *e)
{
    char ours[PATH_BYTES], top[PATH_BYTES], below[PATH_BYTES], word[32];
    if (make_folder(group_path(c, C_CPU, NULL, NULL, ours), e) < 0)
        return -1;
    snprintf(top, sizeof top, "%s/cgroup.subtree_control", c->root);
    group_path(c, C_CPU, NULL, "cgroup.subtree_control", below);
    for (int k = 0; k < CONTROLLER_COUNT; k++) {
        if (!controllers[k].v2)
            continue;
        snprintf(word, sizeof word, "+%s", controllers[k].v2);
        write_text(top, word);
        c->has[k] = write_text(below, word) == 0;
    }
    char freeze[PATH_BYTES];
    c->has[C_FREEZER] = access(group_path(c, C_FREEZER, NULL, "cgroup.freeze", freeze), F_OK) == 0;
    c->has[C_DEVICES] = device_filter_works(c->root);
    return 0;
}

struct cgroups *cgroups_open(const char *root, enum cgroups_kind kind, const char *parent,
                             struct err *e)
{
    struct cgroups *c = xcalloc(1, sizeof *c);
    c->kind = kind;
    if (strlen(root) >= sizeof c->root || strlen(parent) >= sizeof c->parent) {
        err_set(e, ERR_TOO_LARGE, "the path of the control groups is too long: '%s'", root);
        return cgroups_free(c);
    }
    snprintf(c->root, sizeof c->root, "%s", root);
    snprintf(c->parent, sizeof c->parent, "%s", parent);
    int rc = 0;
    switch (kind) {
    case CGROUPS_NONE: break;
    case CGROUPS_V1: rc = open_v1(c, e); break;
    case CGROUPS_V2: rc = open_v2(c, e); break;
    }
    return rc == 0 ? c : cgroups_free(c);
}

struct cgroups *cgroups_free(struct cgroups *c)
{
    free(c);
    return NULL;
}

void cgroups_drop(const struct cgroups *c)
{
    char path[PATH_BYTES];
    for (size_t i = 0; c->kind == CGROUPS_V1 && i < CONTROLLER_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", c->root, controllers[i].v1, c->parent);
        (void)rmdir(path);
    }
    snprintf(path, sizeof path, "%s/%s", c->root, c->parent);
    if (c->kind == CGROUPS_V2)
        (void)rmdir(path);
}

enum cgroups_kind cgroups_kind(const struct cgroups *c)
{
    return c->kind;
}

bool cgroups_has(const struct cgroups *c, enum cgroups_ability a)
{
    switch (a) {
    case CGROUPS_LIMITS: return c->has[C_CPU] && c->has[C_MEMORY] && c->has[C_PIDS];
    case CGROUPS_FREEZE: return c->has[C_FREEZER];
    case CGROUPS_DEVICES: return c->has[C_DEVICES];
    case CGROUPS_ABILITY_COUNT: break;
    }
    return false;
}

/* false: this limit was not asked for. */
static bool limit_text(enum form form, const struct cgroup_limits *l, char out[static 64])
{
    uint64_t quota = MAX(l->cpu_milli * PERIOD_US / 1000, UINT64_C(1000));
    unsigned long long v = 0;
    switch (form) {
    case FORM_CPU_BOTH:
        snprintf(out, 64, "%llu %u", (unsigned long long)quota, PERIOD_US);
        return l->cpu_milli != 0;
    case FORM_CPU_QUOTA:
        snprintf(out, 64, "%llu", (unsigned long long)quota);
        return l->cpu_milli != 0;
    case FORM_CPU_PERIOD: snprintf(out, 64, "%u", PERIOD_US); return l->cpu_milli != 0;
    case FORM_BYTES: v = l->mem_mib << 20; break;
    case FORM_PIDS: v = l->pids_max; break;
    case FORM_NO_SWAP: snprintf(out, 64, "0"); return l->mem_mib != 0;
    case FORM_WHOLE_GROUP: snprintf(out, 64, "1"); return true;
    }
    snprintf(out, 64, "%llu", v);
    return v != 0;
}

static int set_limits(const struct cgroups *c, const char *name, const struct cgroup_limits *l,
                      struct err *e)
{
    char path[PATH_BYTES], text[64];
    for (size_t i = 0; i < ARRAY_LEN(limit_files); i++) {
        const struct limit_file *f = &limit_files[i];
        if (f->kind != c->kind || !c->has[f->controller] || !limit_text(f->form, l, text) ||
            weak_here(controllers[f->controller].v1))
            continue;
        group_path(c, f->controller, name, f->file, path);
        if (write_text(path, text) < 0 && !(f->optional && errno == ENOENT))
            return cannot_write(path, text, e);
    }
    return 0;
}

/* As v1 writes them: "c 136:* rwm".  With m, because crun makes the nodes from inside the group. */
static int list_devices(const struct cgroups *c, const char *name, const struct device_rule *rule,
                        size_t n, struct err *e)
{
    char allow[PATH_BYTES], deny[PATH_BYTES], text[64], minor[16];
    group_path(c, C_DEVICES, name, "devices.allow", allow);
    if (write_text(group_path(c, C_DEVICES, name, "devices.deny", deny), "a") < 0)
        return cannot_write(deny, "a", e);
    for (size_t i = 0; i < n; i++) {
        snprintf(minor, sizeof minor, "%u", rule[i].minor);
        snprintf(text, sizeof text, "c %u:%s rwm", rule[i].major,
                 rule[i].minor == DEVICE_ANY_MINOR ? "*" : minor);
        if (write_text(allow, text) < 0)
            return cannot_write(allow, text, e);
    }
    return 0;
}

static int set_devices(const struct cgroups *c, const char *name, const struct cgroup_limits *l,
                       struct err *e)
{
    struct device_rule rule[DEVICE_RULES_MAX];
    size_t n = ARRAY_LEN(harmless_devices);
    char path[PATH_BYTES];
    if (!c->has[C_DEVICES] || weak_here("devices"))
        return 0;
    if (l->n_devices > DEVICE_RULES_MAX - n)
        return err_set(e, ERR_TOO_LARGE, "%zu devices for one job are too many", l->n_devices);
    memcpy(rule, harmless_devices, sizeof harmless_devices);
    for (size_t i = 0; i < l->n_devices; i++)
        rule[n++] = (struct device_rule){ major(l->devices[i]), minor(l->devices[i]) };
    return c->kind == CGROUPS_V1
             ? list_devices(c, name, rule, n, e)
             : device_filter_set(group_path(c, C_DEVICES, name, NULL, path), rule, n, e);
}

int cgroup_make(const struct cgroups *c, const char *name, const struct cgroup_limits *l,
                struct err *e)
{
    char path[PATH_BYTES];
    if (c->kind == CGROUPS_NONE)
        return 0;
    for (int k = 0; k < CONTROLLER_COUNT; k++) {
        bool wanted = c->kind == CGROUPS_V2 ? k == C_CPU : c->has[k];
        if (wanted && make_folder(group_path(c, (enum controller)k, name, NULL, path), e) < 0)
            return -1;
    }
    return set_limits(c, name, l, e) < 0 ? -1 : set_devices(c, name, l, e);
}

int cgroup_join_fds(const struct cgroups *c, const char *name, int out[CGROUP_JOIN_MAX],
                    struct err *e)
{
    char path[PATH_BYTES];
    int n = 0;
    for (int k = 0; k < CONTROLLER_COUNT && c->kind != CGROUPS_NONE; k++) {
        if (c->kind == CGROUPS_V2 ? k != C_CPU : !c->has[k])
            continue;
        group_path(c, (enum controller)k, name, "cgroup.procs", path);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0) {
            err_set(e, ERR_UNAVAILABLE, "cannot open '%s': %s", path, strerror(errno));
            while (n > 0)
                close(out[--n]);
            return -1;
        }
        out[n++] = fd;
    }
    return n;
}

int cgroup_watch_oom(const struct cgroups *c, const char *name)
{
    char path[PATH_BYTES], text[64];
    if (c->kind != CGROUPS_V1 || !c->has[C_MEMORY])
        return -1;
    AUTO(file_close_p) int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    AUTO(file_close_p)
    int control =
        open(group_path(c, C_MEMORY, name, "memory.oom_control", path), O_RDONLY | O_CLOEXEC);
    if (event < 0 || control < 0)
        return -1;
    snprintf(text, sizeof text, "%d %d", event, control);
    if (write_text(group_path(c, C_MEMORY, name, "cgroup.event_control", path), text) < 0)
        return -1;
    int taken = event;
    event = -1;
    return taken;
}

int cgroup_freeze(const struct cgroups *c, const char *name, bool frozen, struct err *e)
{
    char path[PATH_BYTES];
    if (!c->has[C_FREEZER])
        return err_set(e, ERR_UNAVAILABLE, "this machine cannot freeze processes");
    bool v1 = c->kind == CGROUPS_V1;
    const char *text = v1 ? (frozen ? "FROZEN" : "THAWED") : (frozen ? "1" : "0");
    group_path(c, C_FREEZER, name, v1 ? "freezer.state" : "cgroup.freeze", path);
    return write_text(path, text) == 0 ? 0 : cannot_write(path, text, e);
}

bool cgroup_is_frozen(const struct cgroups *c, const char *name)
{
    char path[PATH_BYTES], text[SMALL_FILE];
    if (!c->has[C_FREEZER])
        return false;
    bool v1 = c->kind == CGROUPS_V1;
    group_path(c, C_FREEZER, name, v1 ? "freezer.state" : "cgroup.events", path);
    return read_text(path, text) == 0 && strstr(text, v1 ? "FROZEN" : "frozen 1") != NULL;
}

/* Any controller will do on v1: a child joins them all. */
static bool procs_path(const struct cgroups *c, const char *name, char out[static PATH_BYTES])
{
    for (int k = 0; k < CONTROLLER_COUNT && c->kind == CGROUPS_V1; k++)
        if (c->has[k])
            return group_path(c, (enum controller)k, name, "cgroup.procs", out);
    return c->kind == CGROUPS_V2 && group_path(c, C_CPU, name, "cgroup.procs", out);
}

size_t cgroup_pids(const struct cgroups *c, const char *name, pid_t *out, size_t cap)
{
    char path[PATH_BYTES], line[64];
    size_t n = 0;
    FILE *f = procs_path(c, name, path) ? fopen(path, "re") : NULL;
    if (!f)
        return 0;
    struct err e;
    uint64_t pid;
    while (fgets(line, sizeof line, f)) {
        if (parse_u64(str_trim(str_of(line)), INT32_MAX, &pid, &e) < 0)
            continue;
        if (n < cap)
            out[n] = (pid_t)pid;
        n++;
    }
    fclose(f);
    return n;
}

bool cgroup_holds(const struct cgroups *c, const char *name, pid_t pid)
{
    AUTO(free_p) pid_t *pids = xcalloc(PIDS_AT_ONCE, sizeof *pids);
    size_t n = MIN(cgroup_pids(c, name, pids, PIDS_AT_ONCE), (size_t)PIDS_AT_ONCE);
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* While all inside stand still nobody can fork away from the list; without a freezer, and past one
 * list's length, a few rounds. */
static void kill_each(const struct cgroups *c, const char *name)
{
    AUTO(free_p) pid_t *pids = xcalloc(PIDS_AT_ONCE, sizeof *pids);
    for (int round = 0; round < 16; round++) {
        size_t n = cgroup_pids(c, name, pids, PIDS_AT_ONCE);
        for (size_t i = 0; i < MIN(n, (size_t)PIDS_AT_ONCE); i++)
            kill(pids[i], SIGKILL);
        if (n == 0 || (n <= PIDS_AT_ONCE && cgroup_is_frozen(c, name)))
            return;
    }
}

void cgroup_kill(const struct cgroups *c, const char *name)
{
    char path[PATH_BYTES];
    struct err e;
    if (c->kind == CGROUPS_V2 &&
        write_text(group_path(c, C_CPU, name, "cgroup.kill", path), "1") == 0)
        return; /* from Linux 5.14; a frozen group dies too */
    bool freezes = c->has[C_FREEZER] && cgroup_freeze(c, name, true, &e) == 0;
    kill_each(c, name);
    if (freezes && cgroup_freeze(c, name, false, &e) < 0)
        kill_each(c, name);
}

static bool number_in(const char *text, const char *key, uint64_t *out)
{
    struct str rest = str_of(text), line, word;
    struct err e;
    while (str_next_line(&rest, &line)) {
        struct str tail = line;
        if (key && (!str_next_word(&tail, &word) || !str_is(word, key)))
            continue;
        return parse_u64(str_trim(tail), UINT64_MAX, out, &e) == 0;
    }
    return false;
}

void cgroup_usage(const struct cgroups *c, const char *name, struct cgroup_usage *out)
{
    char path[PATH_BYTES], text[SMALL_FILE];
    *out = (struct cgroup_usage){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(usage_files); i++) {
        const struct usage_file *f = &usage_files[i];
        uint64_t v;
        if (f->kind != c->kind || !c->has[f->controller])
            continue;
        group_path(c, f->controller, name, f->file, path);
        if (read_text(path, text) == 0 && number_in(text, f->key, &v))
            *(uint64_t *)((char *)out + f->into) = v / f->divide;
    }
}

bool cgroup_remove(const struct cgroups *c, const char *name)
{
    char path[PATH_BYTES];
    bool gone = cgroup_pids(c, name, NULL, 0) == 0; /* else a part of it would go */
    if (!gone)
        return false;
    for (int k = 0; k < CONTROLLER_COUNT && c->kind != CGROUPS_NONE; k++) {
        group_path(c, (enum controller)k, name, NULL, path);
        if (rmdir(path) < 0 && errno != ENOENT)
            gone = false;
        if (c->kind == CGROUPS_V2)
            break;
    }
    return gone;
}

void cgroup_each(const struct cgroups *c, cgroup_each_fn *fn, void *ctx)
{
    char path[PATH_BYTES];
    if (!procs_path(c, NULL, path))
        return;
    *strrchr(path, '/') = '\0';
    DIR *d = opendir(path);
    if (!d)
        return;
    for (struct dirent *it; (it = readdir(d));)
        if (it->d_type == DT_DIR && it->d_name[0] != '.')
            fn(ctx, it->d_name);
    closedir(d);
}
