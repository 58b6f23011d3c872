#include "keeper/proctree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define PROCESSES_MAX 65536
#define KILL_ROUNDS 8
#define SMALL 4096

struct kin {
    pid_t pid, parent;
};

static bool read_small(const char *proc, pid_t pid, const char *name, char out[static SMALL])
{
    char path[300];
    snprintf(path, sizeof path, "%s/%d/%s", proc, (int)pid, name);
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, SMALL - 1);
    out[MAX(n, (ssize_t)0)] = '\0';
    return n > 0;
}

bool proctree_is_first(const char *proc, pid_t pid)
{
    char text[SMALL];
    if (!read_small(proc, pid, "status", text))
        return false;
    struct str rest = str_of(text), line, word = { 0 };
    size_t numbers = 0;
    while (str_next_line(&rest, &line)) {
        if (strncmp(line.p, "NSpid:", 6) != 0)
            continue;
        for (str_next_word(&line, &word); str_next_word(&line, &word);)
            numbers++;
        break;
    }
    return numbers > 1 && str_is(word, "1");
}

/* From "12 (name) S 7 …": the name may hold blanks and brackets, so the last bracket counts. */
static bool read_parent(const char *proc, pid_t pid, pid_t *out)
{
    char text[SMALL];
    const char *after = read_small(proc, pid, "stat", text) ? strrchr(text, ')') : NULL;
    struct str rest, word;
    uint64_t parent;
    struct err e;
    if (!after)
        return false;
    rest = str_of(after + 1);
    bool has_state = str_next_word(&rest, &word);
    if (!has_state || !str_next_word(&rest, &word) || parse_u64(word, INT32_MAX, &parent, &e) < 0)
        return false;
    *out = (pid_t)parent;
    return true;
}

static size_t read_all(const char *proc, struct kin *out, size_t cap)
{
    size_t n = 0;
    DIR *d = opendir(proc);
    if (!d)
        return 0;
    for (struct dirent *it; n < cap && (it = readdir(d));) {
        uint64_t pid;
        struct err e;
        if (it->d_name[0] < '1' || it->d_name[0] > '9' ||
            parse_u64(str_of(it->d_name), INT32_MAX, &pid, &e) < 0)
            continue;
        out[n].pid = (pid_t)pid;
        n += read_parent(proc, out[n].pid, &out[n].parent);
    }
    closedir(d);
    return n;
}

size_t proctree_list(const char *proc, pid_t root, pid_t *out, size_t cap)
{
    AUTO(free_p) struct kin *all = xcalloc(PROCESSES_MAX, sizeof *all);
    size_t n_all = read_all(proc, all, PROCESSES_MAX), n = 0;
    bool there = false;
    for (size_t i = 0; i < n_all; i++)
        there |= all[i].pid == root;
    if (!there || cap == 0)
        return 0;
    out[n++] = root;
    for (size_t at = 0; at < n; at++)
        for (size_t i = 0; i < n_all && n < cap; i++)
            if (all[i].parent == out[at])
                out[n++] = all[i].pid;
    return n;
}

void proctree_kill(const char *proc, pid_t root, bool spare_root)
{
    AUTO(free_p) pid_t *pids = xcalloc(PROCESSES_MAX, sizeof *pids);
    size_t n = 0, before;
    int rounds = 0;
    do {
        before = n;
        n = proctree_list(proc, root, pids, PROCESSES_MAX);
        for (size_t i = spare_root; i < n; i++)
            kill(pids[i], SIGSTOP);
    } while (n > before && ++rounds < KILL_ROUNDS);
    for (size_t i = n; i-- > (size_t)spare_root;)
        kill(pids[i], SIGKILL);
}
