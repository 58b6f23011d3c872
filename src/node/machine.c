#include "node/machine.h"

#include <sched.h>
#include <stdio.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define FILE_LIMIT (64u << 10) /* of the small files of /proc and /sys */
#define PATH_BYTES 4096
#define CPUS_MAX 8192

static const char *const cgroup_names[] = {
#define X(id, name) [CGROUP_##id] = name,
    CGROUP_KINDS(X)
#undef X
};
_Static_assert(ARRAY_LEN(cgroup_names) == CGROUP_KIND_COUNT, "a kind was added without its name");

const char *cgroup_kind_name(enum cgroup_kind k)
{
    return cgroup_names[k];
}

static bool exists(const char *root, const char *path)
{
    char full[PATH_BYTES];
    snprintf(full, sizeof full, "%s%s", root, path);
    return access(full, F_OK) == 0;
}

/* false when it is not there; *out is replaced. */
static bool read_small(const char *root, const char *path, struct buf *out)
{
    char full[PATH_BYTES];
    struct err ignored;
    if ((size_t)snprintf(full, sizeof full, "%s%s", root, path) >= sizeof full)
        return false;
    return file_read(full, FILE_LIMIT, out, &ignored) == 0;
}

/* The word-th value of a file, from 0; false for "max", -1 and files that are not there. */
static bool read_number(const char *root, const char *path, int word, uint64_t *out)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest, value = STR("");
    if (!read_small(root, path, &text))
        return false;
    rest = buf_str(&text);
    for (int i = 0; i <= word; i++)
        if (!str_next_word(&rest, &value))
            return false;
    return parse_u64(value, UINT64_MAX, out, &ignored) == 0;
}

static enum cgroup_kind find_cgroup_kind(const char *root)
{
    if (exists(root, "/sys/fs/cgroup/cgroup.controllers"))
        return CGROUP_V2;
    if (!exists(root, "/sys/fs/cgroup/memory") && !exists(root, "/sys/fs/cgroup/cpu"))
        return CGROUP_NONE;
    return exists(root, "/sys/fs/cgroup/unified/cgroup.controllers") ? CGROUP_HYBRID : CGROUP_V1;
}

/* Is `name` one of the comma-separated controllers? */
static bool names_controller(struct str list, const char *name)
{
    struct str one;
    for (bool more = true; more;) {
        more = str_cut(list, ',', &one, &list);
        if (str_is(one, name))
            return true;
    }
    return false;
}

/* Our path in the hierarchy of `controller` (v2: of all).  "/" when that is not told. */
static void own_cgroup(const char *root, bool v2, const char *controller, char out[static 1024])
{
    AUTO(buf_free) struct buf text = BUF(0);
    snprintf(out, 1024, "/");
    if (!read_small(root, "/proc/self/cgroup", &text))
        return;
    struct str rest = buf_str(&text), line;
    while (str_next_line(&rest, &line)) {
        struct str number, list, path;
        if (!str_cut(line, ':', &number, &list) || !str_cut(list, ':', &list, &path))
            continue;
        bool ours = v2 ? str_is(number, "0") && list.n == 0 : names_controller(list, controller);
        if (ours && path.n && path.n < 1000 && path.p[0] == '/')
            snprintf(out, 1024, "%.*s", STR_ARG(path));
    }
}

/* What one cgroup allows; left alone when it says nothing. */
typedef void limit_fn(const char *root, const char *dir, bool v2, uint64_t *least);

static void lower(uint64_t v, uint64_t *least)
{
    *least = MIN(*least, v);
}

static void cpu_limit(const char *root, const char *dir, bool v2, uint64_t *least)
{
    char quota_path[PATH_BYTES], period_path[PATH_BYTES];
    uint64_t quota, period;
    /* v2 has "quota period" in one file. */
    snprintf(quota_path, sizeof quota_path, "%s/%s", dir, v2 ? "cpu.max" : "cpu.cfs_quota_us");
    snprintf(period_path, sizeof period_path, "%s/%s", dir, v2 ? "cpu.max" : "cpu.cfs_period_us");
    if (!read_number(root, quota_path, 0, &quota) || quota == 0 || quota > UINT64_MAX / 1000 ||
        !read_number(root, period_path, v2 ? 1 : 0, &period) || period == 0)
        return;
    lower(MAX(quota * 1000 / period, (uint64_t)1), least);
}

static void mem_limit(const char *root, const char *dir, bool v2, uint64_t *least)
{
    char path[PATH_BYTES];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (read_number(root, path, 0, &bytes) && bytes)
        lower(bytes >> 20, least);
}

/* The least that our cgroup and those above it allow.  In a container the path may be one of the
 * host, and only the top exists: what is not there limits nothing. */
static void limits_above(const char *root, enum cgroup_kind kind, const char *controller,
                         limit_fn *fn, uint64_t *least)
{
    bool v2 = kind == CGROUP_V2;
    char path[1024], dir[1200];
    if (kind == CGROUP_NONE)
        return;
    own_cgroup(root, v2, controller, path);
    for (;;) {
        snprintf(dir, sizeof dir, "/sys/fs/cgroup%s%s%s", v2 ? "" : "/", v2 ? "" : controller,
                 path);
        fn(root, dir, v2, least);
        char *slash = strrchr(path, '/');
        if (!slash || (slash == path && !path[1]))
            return;
        slash[slash == path ? 1 : 0] = '\0';
    }
}

static int read_cpus(const char *root, enum cgroup_kind kind, uint32_t *out, struct err *e)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    if (!set)
        abort();
    int rc = sched_getaffinity(0, size, set);
    uint64_t milli = rc == 0 ? (uint64_t)CPU_COUNT_S(size, set) * 1000 : 0;
    CPU_FREE(set);
    if (rc < 0)
        return err_set(e, ERR_INTERNAL, "cannot find out which processors may be used: %m");
    limits_above(root, kind, "cpu", cpu_limit, &milli);
    *out = (uint32_t)milli;
    return 0;
}

static int read_memory(const char *root, enum cgroup_kind kind, uint64_t *out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest = STR(""), line, word;
    uint64_t mib = 0;
    if (read_small(root, "/proc/meminfo", &text))
        rest = buf_str(&text);
    while (mib == 0 && str_next_line(&rest, &line)) {
        if (!str_next_word(&line, &word) || !str_is(word, "MemTotal:"))
            continue;
        if (str_next_word(&line, &word) && parse_u64(word, UINT64_MAX, &mib, &ignored) == 0)
            mib >>= 10;
    }
    if (mib == 0)
        return err_set(e, ERR_UNAVAILABLE, "%s/proc/meminfo does not tell how much memory there is",
                       root);
    limits_above(root, kind, "memory", mem_limit, &mib);
    *out = mib;
    return 0;
}

static void read_clock(struct machine *m)
{
    struct timex t = { .modes = 0 };
    int state = adjtimex(&t);
    m->clock_error_ms = state < 0 ? -1 : t.maxerror / 1000;
    m->clock_synced = state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
}

static void read_boot_id(const char *root, struct machine *m)
{
    AUTO(buf_free) struct buf text = BUF(0);
    if (!read_small(root, "/proc/sys/kernel/random/boot_id", &text))
        return;
    struct str id = str_trim(buf_str(&text));
    if (id.n < sizeof m->boot_id)
        snprintf(m->boot_id, sizeof m->boot_id, "%.*s", STR_ARG(id));
}

int machine_read(const char *root, struct machine *out, struct err *e)
{
    struct machine m = { .cgroup = find_cgroup_kind(root), .wsl = exists(root, "/dev/dxg") };
    struct utsname u;
    char host[256] = "";
    if (uname(&u) == 0)
        snprintf(m.kernel, sizeof m.kernel, "%.64s", u.release);
    if (gethostname(host, sizeof host - 1) < 0 || !host[0])
        return err_set(e, ERR_UNAVAILABLE, "this machine has no host name");
    snprintf(m.host, sizeof m.host, "%.*s", (int)strcspn(host, "."), host);
    read_boot_id(root, &m);
    read_clock(&m);
    if (read_cpus(root, m.cgroup, &m.cpu_milli, e) < 0 ||
        read_memory(root, m.cgroup, &m.mem_mib, e) < 0)
        return -1;
    *out = m;
    return 0;
}

#define CLOCK_ERROR_MS 1000

const char *machine_clock_trouble(const struct machine *m)
{
    if (m->clock_error_ms < 0)
        return NULL; /* a sandbox does not let us look */
    if (!m->clock_synced)
        return "the clock is not kept in time; run chrony or systemd-timesyncd";
    if (m->clock_error_ms > CLOCK_ERROR_MS)
        return "the clock may be off by more than a second; look at chronyc tracking";
    return NULL;
}
