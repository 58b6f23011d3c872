#include "node/gpu_process.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define FILE_LIMIT (256u << 10)

/* false when it is not there any more. */
static bool read_of(const char *proc, int32_t pid, const char *name, struct buf *out)
{
    char path[4096];
    struct err ignored;
    snprintf(path, sizeof path, "%s/%d/%s", proc, pid, name);
    return file_read(path, FILE_LIMIT, out, &ignored) == 0;
}

static bool parse_number(struct str s, uint64_t max, uint64_t *out)
{
    struct err ignored;
    return parse_u64(s, max, out, &ignored) == 0;
}

/* JOB.RUN.REPLICA, all digits. */
static bool is_task(struct str s)
{
    struct str part;
    uint64_t v;
    for (int i = 0; i < 3; i++) {
        bool more = str_cut(s, '.', &part, &s);
        if (!parse_number(part, i ? UINT32_MAX : UINT64_MAX, &v) || more != (i < 2))
            return false;
    }
    return true;
}

/* NULL: of any instance (instance.h), by its name. */
static bool is_folder(struct str part, const char *folder)
{
    static const char lead[] = "nightshift-";
    if (folder)
        return str_is(part, folder);
    return str_is(part, "nightshift") ||
           (part.n == sizeof lead - 1 + 5 && memcmp(part.p, lead, sizeof lead - 1) == 0);
}

static bool task_below(struct str path, const char *folder, char out[static 64])
{
    bool after = false, more = true;
    struct str part;
    while (more) {
        more = str_cut(path, '/', &part, &path);
        if (after && part.n < 64 && is_task(part)) {
            snprintf(out, 64, "%.*s", STR_ARG(part));
            return true;
        }
        after = is_folder(part, folder);
    }
    return false;
}

bool gpu_process_task(struct str path, char out[static 64])
{
    return task_below(path, NULL, out);
}

bool gpu_process_task_in(struct str path, const char *folder, char out[static 64])
{
    return task_below(path, folder, out);
}

/* The first path that has a task in it, else the longest: v1 has one line a controller. */
static void look_at_cgroup(const char *proc, struct gpu_process *p)
{
    AUTO(buf_free) struct buf text = BUF(0);
    if (!read_of(proc, p->pid, "cgroup", &text))
        return;
    struct str rest = buf_str(&text), line, number, list, path, best = STR("");
    while (!p->task[0] && str_next_line(&rest, &line)) {
        if (!str_cut(line, ':', &number, &list) || !str_cut(list, ':', &list, &path))
            continue;
        if (gpu_process_task(path, p->task) || path.n > best.n)
            best = path;
    }
    snprintf(p->cgroup, sizeof p->cgroup, "%.*s", STR_ARG(best));
}

void gpu_process_task_of(const char *proc, int32_t pid, const char *folder, char out[static 64])
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, line, number, list, path;
    out[0] = '\0';
    if (!read_of(proc, pid, "cgroup", &text))
        return;
    for (rest = buf_str(&text); str_next_line(&rest, &line);)
        if (str_cut(line, ':', &number, &list) && str_cut(list, ':', &list, &path) &&
            gpu_process_task_in(path, folder, out))
            return;
}

/* false: the process is gone. */
static bool look_at_owner(const char *proc, struct gpu_process *p)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, line, word;
    uint64_t uid = UINT64_MAX;
    if (!read_of(proc, p->pid, "status", &text))
        return false;
    rest = buf_str(&text);
    while (uid == UINT64_MAX && str_next_line(&rest, &line))
        if (str_next_word(&line, &word) && str_is(word, "Uid:") && str_next_word(&line, &word) &&
            !parse_number(word, UINT32_MAX, &uid))
            return false;
    if (uid == UINT64_MAX)
        return false;
    struct passwd entry, *found = NULL;
    char space[4096];
    p->uid = (uint32_t)uid;
    if (getpwuid_r(p->uid, &entry, space, sizeof space, &found) == 0 && found)
        snprintf(p->user, sizeof p->user, "%s", entry.pw_name);
    else
        snprintf(p->user, sizeof p->user, "%u", p->uid);
    return true;
}

/* When the system was started, in ms since 1970. */
static bool boot_time(const char *proc, int64_t *out_ms)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, line, word;
    struct err ignored;
    uint64_t seconds;
    char path[4096];
    snprintf(path, sizeof path, "%s/stat", proc);
    if (file_read(path, 4u << 20, &text, &ignored) < 0)
        return false;
    for (rest = buf_str(&text); str_next_line(&rest, &line);)
        if (str_next_word(&line, &word) && str_is(word, "btime") && str_next_word(&line, &word) &&
            parse_number(word, INT64_MAX / 2000, &seconds)) {
            *out_ms = (int64_t)seconds * 1000;
            return true;
        }
    return false;
}

/* /proc/<pid>/stat: "pid (name) state …", where the name may have anything in it; the start is the
 * 22nd value, in ticks since the boot. */
static void look_at_start(const char *proc, struct gpu_process *p, struct str stat)
{
    struct str word;
    uint64_t ticks;
    int64_t boot_ms;
    long hz = sysconf(_SC_CLK_TCK);
    const char *end = stat.n ? memrchr(stat.p, ')', stat.n) : NULL;
    if (!end || hz <= 0 || !boot_time(proc, &boot_ms))
        return;
    struct str rest = { end + 1, stat.n - (size_t)(end + 1 - stat.p) };
    for (int i = 3; i <= 22; i++)
        if (!str_next_word(&rest, &word))
            return;
    if (parse_number(word, INT64_MAX / 2000, &ticks))
        p->start_ms = boot_ms + (int64_t)(ticks * 1000 / (uint64_t)hz);
}

static void look_at_command(const char *proc, struct gpu_process *p, struct str stat)
{
    AUTO(buf_free) struct buf text = BUF(0);
    const char *from = stat.n ? memchr(stat.p, '(', stat.n) : NULL;
    const char *to = stat.n ? memrchr(stat.p, ')', stat.n) : NULL;
    if (read_of(proc, p->pid, "cmdline", &text) && text.n) {
        size_t n = MIN(text.n, sizeof p->command - 1);
        memcpy(p->command, text.p, n);
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)p->command[i] < ' ')
                p->command[i] = ' ';
        while (n && p->command[n - 1] == ' ')
            p->command[--n] = '\0';
    } else if (from && to && to > from) {
        snprintf(p->command, sizeof p->command, "[%.*s]", (int)MIN(to - from - 1, 64), from + 1);
    }
}

void gpu_process_look(const char *proc, int32_t pid, struct gpu_process *out)
{
    AUTO(buf_free) struct buf stat = BUF(0);
    *out = (struct gpu_process){ .pid = pid, .mem_mib = NVML_UNKNOWN };
    out->gone = !look_at_owner(proc, out) || !read_of(proc, pid, "stat", &stat);
    if (out->gone)
        return;
    look_at_command(proc, out, buf_str(&stat));
    look_at_start(proc, out, buf_str(&stat));
    look_at_cgroup(proc, out);
}

int gpu_process_list(struct nvml *n, uint32_t gpu, const char *proc, struct gpu_process **out_list,
                     size_t *out_n, struct err *e)
{
    AUTO(free_p) struct nvml_process *found = xcalloc(GPU_PROCESSES_MAX, sizeof *found);
    size_t count;
    if (nvml_processes(n, gpu, found, GPU_PROCESSES_MAX, &count, e) < 0)
        return -1;
    struct gpu_process *list = xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        gpu_process_look(proc, found[i].pid, &list[i]);
        list[i].gpu = gpu;
        list[i].mem_mib = found[i].mem_mib;
        list[i].graphics = found[i].graphics;
    }
    *out_list = list;
    *out_n = count;
    return 0;
}
