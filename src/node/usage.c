#include "node/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/gpu_process.h"
#include "sys/file.h"

#define FILE_LIMIT (64u << 10) /* what is beyond is not looked at: counters of interrupts */
#define PATH_BYTES 600
#define NAME_BYTES 60
#define NAMES_KNOWN 256
#define NAMES_TRIED 16
#define KNOWN_NS INT64_C(60000000000) /* then /sys is asked anew */

/* Counters that only grow; -1: not told. */
enum counter {
    COUNT_CPU_NS,
    COUNT_READ,
    COUNT_WRITE,
    COUNT_RX,
    COUNT_TX,
    COUNTERS
};

struct counters {
    int64_t v[COUNTERS];
};

struct known_task {
    char task[40];
    struct counters was;
    bool seen;
};

/* Those of the machine, which stay open: opening them each second would cost more than reading them. */
#define PROC_FILES(X)                                                                              \
    X(STAT, "stat")                                                                                \
    X(MEMINFO, "meminfo")                                                                          \
    X(DISKSTATS, "diskstats")                                                                      \
    X(NET_OF_FIRST, "1/net/dev") /* has the machine's network, also where the agent has its own */ \
    X(NET, "net/dev")
enum proc_file {
#define X(id, name) PROC_##id,
    PROC_FILES(X)
#undef X
    PROC_FILE_COUNT
};

static const char *const proc_names[] = {
#define X(id, name) [PROC_##id] = name,
    PROC_FILES(X)
#undef X
};
_Static_assert(ARRAY_LEN(proc_names) == PROC_FILE_COUNT, "a file was added without its name");

/* A name that /proc lists, and whether /sys has a device for it.  Asking /sys for each name in each sample would be
 * most of what a sample costs. */
struct known_name {
    char folder; /* the first letter of the one in /sys; 0: nothing is known here */
    char name[NAME_BYTES];
    bool device;
};

struct usage {
    struct usage_places at;
    bool v2;
    struct known_name known[NAMES_KNOWN]; /* from the hash of the name on */
    int64_t known_until_ns;
    int64_t was_ns; /* 0: no sample yet */
    struct counters was;
    struct known_task task[REPORT_TASKS_MAX];
    uint32_t tasks;
    int proc[PROC_FILE_COUNT]; /* -1: not open */
    char *room;                /* FILE_LIMIT bytes: the file that is read now */
};

struct usage *usage_new(const struct usage_places *p)
{
    struct usage *u = xcalloc(1, sizeof *u);
    char path[PATH_BYTES];
    u->at = *p;
    u->room = xmalloc(FILE_LIMIT);
    for (size_t i = 0; i < PROC_FILE_COUNT; i++)
        u->proc[i] = -1;
    snprintf(path, sizeof path, "%s/cgroup.controllers", p->cgroup_root);
    u->v2 = access(path, R_OK) == 0;
    return u;
}

struct usage *usage_free(struct usage *u)
{
    if (!u)
        return NULL;
    for (size_t i = 0; i < PROC_FILE_COUNT; i++)
        file_close_p(&u->proc[i]);
    free(u->room);
    free(u);
    return NULL;
}

static bool read_all(struct usage *u, int fd, struct str *out)
{
    size_t n = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && n < FILE_LIMIT) {
        got = pread(fd, u->room + n, FILE_LIMIT - n, (off_t)n);
        n += got > 0 ? (size_t)got : 0;
    }
    *out = (struct str){ u->room, n };
    return got >= 0;
}

static bool read_text(struct usage *u, const char *path, struct str *out)
{
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return read_all(u, fd, out);
}

static bool read_proc(struct usage *u, enum proc_file f, struct str *out)
{
    char path[PATH_BYTES];
    if (u->proc[f] < 0) {
        snprintf(path, sizeof path, "%s/proc/%s", u->at.root, proc_names[f]);
        u->proc[f] = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (read_all(u, u->proc[f], out))
        return true;
    file_close_p(&u->proc[f]); /* opened anew the next time */
    return false;
}

static bool next_number(struct str *rest, int64_t *out)
{
    struct str word;
    struct err ignored;
    uint64_t v;
    if (!str_next_word(rest, &word) || parse_u64(word, INT64_MAX, &v, &ignored) < 0)
        return false;
    *out = (int64_t)v;
    return true;
}

/* The n-th number (from 0) after what was taken. */
static bool number_at(struct str rest, size_t n, int64_t *out)
{
    for (size_t i = 0; i <= n; i++)
        if (!next_number(&rest, out))
            return false;
    return true;
}

/* Has this rate a meaning: both are known, and the counter was not begun anew? */
static int64_t rate(int64_t was, int64_t now, int64_t took_ns)
{
    if (was < 0 || now < was || took_ns <= 0)
        return REPORT_UNKNOWN;
    return (int64_t)((double)(now - was) / ((double)took_ns / 1e9) + 0.5);
}

/* ---- the machine ---- */

/* cpu  user nice system idle iowait irq softirq steal … in ticks; a line for each processor follows. */
static void read_cpu(struct usage *u, struct counters *now, struct report_sample *s)
{
    struct str rest, line, word;
    int64_t busy = 0, v, cpus = 0;
    long hz = sysconf(_SC_CLK_TCK);
    if (hz <= 0 || !read_proc(u, PROC_STAT, &rest) || !str_next_line(&rest, &line) ||
        !str_next_word(&line, &word))
        return;
    for (int i = 0; i < 8 && next_number(&line, &v); i++)
        busy += i == 3 || i == 4 ? 0 : v;
    while (str_next_line(&rest, &line) && line.n > 3 && memcmp(line.p, "cpu", 3) == 0)
        cpus++;
    now->v[COUNT_CPU_NS] = busy * (1000000000 / hz);
    s->node[REPORT_NODE_CPUS] = cpus * 1000;
}

static void read_memory(struct usage *u, struct report_sample *s)
{
    struct str rest, line, word;
    int64_t total = -1, available = -1;
    if (!read_proc(u, PROC_MEMINFO, &rest))
        return;
    while ((total < 0 || available < 0) && str_next_line(&rest, &line)) {
        if (!str_next_word(&line, &word))
            continue;
        if (str_is(word, "MemTotal:"))
            (void)number_at(line, 0, &total);
        else if (str_is(word, "MemAvailable:"))
            (void)number_at(line, 0, &available);
    }
    if (total < 0 || available < 0 || available > total)
        return;
    s->node[REPORT_NODE_MEM] = total >> 10;
    s->node[REPORT_NODE_MEM_USED] = (total - available) >> 10;
}

static void read_disk(const struct usage *u, struct report_sample *s)
{
    struct statvfs v;
    if (!u->at.state || statvfs(u->at.state, &v) < 0 || v.f_blocks == 0)
        return;
    int64_t all = (int64_t)(((double)v.f_blocks * (double)v.f_frsize) / 1048576.0);
    int64_t left = (int64_t)(((double)v.f_bavail * (double)v.f_frsize) / 1048576.0);
    s->node[REPORT_NODE_DISK] = all;
    s->node[REPORT_NODE_DISK_USED] = MAX(all - left, 0);
}

/* Where it is, or where it goes: a free place, or that of another name. */
static struct known_name *find_name(struct usage *u, char folder, struct str name)
{
    uint64_t first = str_hash(name) % NAMES_KNOWN;
    for (uint64_t i = 0; i < NAMES_TRIED; i++) {
        struct known_name *k = &u->known[(first + i) % NAMES_KNOWN];
        if (!k->folder || (k->folder == folder && str_is(name, k->name)))
            return k;
    }
    return &u->known[first];
}

/* Whole disks and network cards have a device; partitions, loops, bridges and the ends of cables do not: what
 * they do is counted by what is below them. */
static bool has_device(struct usage *u, const char *folder, struct str name)
{
    char path[PATH_BYTES];
    if (name.n == 0 || name.n >= NAME_BYTES || memchr(name.p, '/', name.n))
        return false;
    struct known_name *k = find_name(u, folder[0], name);
    if (k->folder == folder[0] && str_is(name, k->name))
        return k->device;
    snprintf(path, sizeof path, "%s/sys/%s/%.*s/device", u->at.root, folder, STR_ARG(name));
    *k = (struct known_name){ .folder = folder[0], .device = access(path, F_OK) == 0 };
    memcpy(k->name, name.p, name.n);
    return k->device;
}

static void read_disk_io(struct usage *u, struct counters *now)
{
    struct str rest, line, name;
    int64_t major, minor, read, written, sum_read = 0, sum_written = 0;
    if (!read_proc(u, PROC_DISKSTATS, &rest))
        return;
    while (str_next_line(&rest, &line)) {
        if (!next_number(&line, &major) || !next_number(&line, &minor) ||
            !str_next_word(&line, &name) || !has_device(u, "block", name))
            continue;
        if (number_at(line, 2, &read) && number_at(line, 6, &written)) { /* sectors of 512 */
            sum_read += read * 512;
            sum_written += written * 512;
        }
    }
    now->v[COUNT_READ] = sum_read;
    now->v[COUNT_WRITE] = sum_written;
}

static bool is_card(struct usage *u, struct str name)
{
    return has_device(u, "class/net", name);
}

static bool any_name(struct usage *u, struct str name)
{
    (void)u;
    return !str_is(name, "lo");
}

/* name: bytes packets errs drop fifo frame compressed multicast, the same for what was sent */
static void sum_net(struct usage *u, struct str rest,
                    bool (*counts)(struct usage *u, struct str name), struct counters *now)
{
    struct str line, head, tail;
    int64_t rx, tx, sum_rx = 0, sum_tx = 0;
    while (str_next_line(&rest, &line)) {
        if (!str_cut(line, ':', &head, &tail) || !counts(u, str_trim(head)))
            continue;
        if (number_at(tail, 0, &rx) && number_at(tail, 8, &tx)) {
            sum_rx += rx;
            sum_tx += tx;
        }
    }
    now->v[COUNT_RX] = sum_rx;
    now->v[COUNT_TX] = sum_tx;
}

static void sample_machine(struct usage *u, int64_t took_ns, struct report_sample *s)
{
    struct counters now = { { -1, -1, -1, -1, -1 } };
    struct str text;
    for (size_t i = 0; i < REPORT_NODE_COUNT; i++)
        s->node[i] = REPORT_UNKNOWN;
    read_cpu(u, &now, s);
    read_memory(u, s);
    read_disk(u, s);
    read_disk_io(u, &now);
    if (read_proc(u, PROC_NET_OF_FIRST, &text) || read_proc(u, PROC_NET, &text))
        sum_net(u, text, is_card, &now);
    s->node[REPORT_NODE_CPU] = rate(u->was.v[COUNT_CPU_NS], now.v[COUNT_CPU_NS], took_ns);
    if (s->node[REPORT_NODE_CPU] >= 0) /* ns a second -> thousandths */
        s->node[REPORT_NODE_CPU] /= 1000000;
    s->node[REPORT_NODE_READ] = rate(u->was.v[COUNT_READ], now.v[COUNT_READ], took_ns);
    s->node[REPORT_NODE_WRITE] = rate(u->was.v[COUNT_WRITE], now.v[COUNT_WRITE], took_ns);
    s->node[REPORT_NODE_RX] = rate(u->was.v[COUNT_RX], now.v[COUNT_RX], took_ns);
    s->node[REPORT_NODE_TX] = rate(u->was.v[COUNT_TX], now.v[COUNT_TX], took_ns);
    u->was = now;
}

/* ---- tasks ---- */

/* A file of the task's group; `v1` has the controller in front. */
static bool read_group(struct usage *u, const char *task, const char *v2, const char *v1,
                       struct str *out)
{
    char path[PATH_BYTES];
    const char *file = u->v2 ? v2 : strchr(v1, '/') + 1;
    int controller = u->v2 ? 0 : (int)(strchr(v1, '/') - v1) + 1;
    snprintf(path, sizeof path, "%s/%.*s%s/%s/%s", u->at.cgroup_root, controller, v1, u->at.cgroup,
             task, file);
    return read_text(u, path, out);
}

/* "key number" on a line of its own. */
static bool keyed(struct str text, const char *key, int64_t *out)
{
    struct str line, word;
    while (str_next_line(&text, &line))
        if (str_next_word(&line, &word) && str_is(word, key))
            return number_at(line, 0, out);
    return false;
}

static void task_cpu(struct usage *u, const char *task, struct counters *now)
{
    struct str text;
    int64_t v;
    if (!read_group(u, task, "cpu.stat", "cpuacct/cpuacct.usage", &text))
        return;
    if (u->v2 ? keyed(text, "usage_usec", &v) : number_at(text, 0, &v))
        now->v[COUNT_CPU_NS] = u->v2 ? v * 1000 : v;
}

/* Without files that the kernel would drop at once. */
static void task_memory(struct usage *u, const char *task, int64_t *out)
{
    struct str text;
    int64_t bytes, cached = 0;
    if (!read_group(u, task, "memory.current", "memory/memory.usage_in_bytes", &text) ||
        !number_at(text, 0, &bytes))
        return;
    if (read_group(u, task, "memory.stat", "memory/memory.stat", &text))
        (void)keyed(text, u->v2 ? "inactive_file" : "total_inactive_file", &cached);
    *out = MAX(bytes - cached, 0) >> 20;
}

/* v2: "8:0 rbytes=1 wbytes=2 …"; v1: "8:0 Read 1", "8:0 Write 2". */
static void task_io(struct usage *u, const char *task, struct counters *now)
{
    struct str text, line, word, kind;
    struct err ignored;
    uint64_t v;
    int64_t n;
    if (!read_group(u, task, "io.stat", "blkio/blkio.throttle.io_service_bytes", &text))
        return;
    now->v[COUNT_READ] = now->v[COUNT_WRITE] = 0;
    while (str_next_line(&text, &line)) {
        if (!str_next_word(&line, &word))
            continue;
        if (!u->v2 && str_next_word(&line, &kind) && number_at(line, 0, &n))
            now->v[str_is(kind, "Read") ? COUNT_READ : COUNT_WRITE] +=
                str_is(kind, "Read") || str_is(kind, "Write") ? n : 0;
        while (u->v2 && str_next_word(&line, &word)) {
            struct str key, value;
            if (!str_cut(word, '=', &key, &value) || parse_u64(value, INT64_MAX, &v, &ignored) < 0)
                continue;
            if (str_is(key, "rbytes"))
                now->v[COUNT_READ] += (int64_t)v;
            else if (str_is(key, "wbytes"))
                now->v[COUNT_WRITE] += (int64_t)v;
        }
    }
}

size_t usage_task_pids(struct usage *u, const char *task, int32_t *out, size_t max)
{
    char path[PATH_BYTES];
    struct str text;
    int64_t pid;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s%s/%s/cgroup.procs", u->at.cgroup_root,
             u->v2 ? "" : "memory/", u->at.cgroup, task);
    if (!read_text(u, path, &text))
        return 0;
    while (n < max && next_number(&text, &pid))
        if (pid > 0 && pid <= INT32_MAX)
            out[n++] = (int32_t)pid;
    return n;
}

/* Only of a task that has a network of its own: the machine's is not its. */
static void task_net(struct usage *u, const char *task, struct counters *now)
{
    char path[PATH_BYTES], ours[64], its[64];
    struct str text;
    int32_t pid;
    if (usage_task_pids(u, task, &pid, 1) == 0)
        return;
    snprintf(path, sizeof path, "%s/proc/%d/ns/net", u->at.root, pid);
    ssize_t a = readlink(path, its, sizeof its);
    snprintf(path, sizeof path, "%s/proc/self/ns/net", u->at.root);
    ssize_t b = readlink(path, ours, sizeof ours);
    if (a <= 0 || b <= 0 || (a == b && memcmp(its, ours, (size_t)a) == 0))
        return;
    snprintf(path, sizeof path, "%s/proc/%d/net/dev", u->at.root, pid);
    if (read_text(u, path, &text))
        sum_net(u, text, any_name, now);
}

static struct known_task *find_task(struct usage *u, const char *task)
{
    for (uint32_t i = 0; i < u->tasks; i++)
        if (strcmp(u->task[i].task, task) == 0)
            return &u->task[i];
    if (u->tasks == REPORT_TASKS_MAX)
        return NULL;
    struct known_task *k = &u->task[u->tasks++];
    *k = (struct known_task){ .was = { { -1, -1, -1, -1, -1 } } };
    snprintf(k->task, sizeof k->task, "%s", task);
    return k;
}

static void sample_task(struct usage *u, const char *task, int64_t took_ns, struct report_sample *s)
{
    struct counters now = { { -1, -1, -1, -1, -1 } };
    struct known_task *k = find_task(u, task);
    struct str text;
    if (!k || s->tasks == REPORT_TASKS_MAX)
        return;
    struct report_task *t = &s->task[s->tasks++];
    snprintf(t->task, sizeof t->task, "%s", task);
    for (size_t i = 0; i < REPORT_TASK_COUNT; i++)
        t->v[i] = REPORT_UNKNOWN;
    task_cpu(u, task, &now);
    task_memory(u, task, &t->v[REPORT_TASK_MEM]);
    task_io(u, task, &now);
    task_net(u, task, &now);
    if (read_group(u, task, "pids.current", "pids/pids.current", &text))
        (void)number_at(text, 0, &t->v[REPORT_TASK_PROCESSES]);
    t->v[REPORT_TASK_CPU] = rate(k->was.v[COUNT_CPU_NS], now.v[COUNT_CPU_NS], took_ns);
    if (t->v[REPORT_TASK_CPU] >= 0)
        t->v[REPORT_TASK_CPU] /= 1000000;
    t->v[REPORT_TASK_READ] = rate(k->was.v[COUNT_READ], now.v[COUNT_READ], took_ns);
    t->v[REPORT_TASK_WRITE] = rate(k->was.v[COUNT_WRITE], now.v[COUNT_WRITE], took_ns);
    t->v[REPORT_TASK_RX] = rate(k->was.v[COUNT_RX], now.v[COUNT_RX], took_ns);
    t->v[REPORT_TASK_TX] = rate(k->was.v[COUNT_TX], now.v[COUNT_TX], took_ns);
    k->was = now;
    k->seen = true;
}

static void sample_tasks(struct usage *u, int64_t took_ns, struct report_sample *s)
{
    char path[PATH_BYTES], under[PATH_BYTES], task[64];
    uint32_t kept = 0;
    s->tasks = 0;
    for (uint32_t i = 0; i < u->tasks; i++)
        u->task[i].seen = false;
    snprintf(path, sizeof path, "%s/%s%s", u->at.cgroup_root, u->v2 ? "" : "memory/", u->at.cgroup);
    DIR *d = opendir(path);
    for (struct dirent *at; d && (at = readdir(d));) {
        snprintf(under, sizeof under, "/nightshift/%.100s", at->d_name);
        if (at->d_name[0] >= '0' && at->d_name[0] <= '9' && gpu_process_task(str_of(under), task) &&
            strlen(task) < sizeof s->task[0].task)
            sample_task(u, task, took_ns, s);
    }
    if (d)
        closedir(d);
    for (uint32_t i = 0; i < u->tasks; i++)
        if (u->task[i].seen)
            u->task[kept++] = u->task[i];
    u->tasks = kept;
}

void usage_sample(struct usage *u, int64_t mono_ns, struct report_sample *s)
{
    int64_t took_ns = u->was_ns ? mono_ns - u->was_ns : 0;
    if (mono_ns >= u->known_until_ns) {
        memset(u->known, 0, sizeof u->known);
        u->known_until_ns = mono_ns + KNOWN_NS;
    }
    sample_machine(u, took_ns, s);
    sample_tasks(u, took_ns, s);
    u->was_ns = mono_ns;
}
