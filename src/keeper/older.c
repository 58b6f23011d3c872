#include "keeper/older.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "keeper/net_ns.h"
#include "keeper/net_rules.h"
#include "keeper/request.h"
#include "keeper/tool.h"
#include "sys/file.h"

#define PREFIX "nsb"
#define TABLE "nightshift"
#define CGROUP "nightshift"
#define BRIDGES_MAX 1024
#define PATH_BYTES 400
#define VANISH_TRIES 100 /* a namespace's cables go a moment after it */

bool older_lives(const char *run)
{
    char path[PATH_BYTES];
    bool found = false;
    snprintf(path, sizeof path, "%s/tasks", run);
    DIR *d = opendir(path);
    for (struct dirent *at; d && !found && (at = readdir(d));)
        found = task_name_valid(str_of(at->d_name));
    if (d)
        closedir(d);
    return found;
}

static bool is_slot(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strchr(name, '.');
}

static void note_bridge(const char *slot, bool *bridge)
{
    unsigned number = 0;
    if (sscanf(slot + strlen(PREFIX), "%4u.", &number) == 1 && number < BRIDGES_MAX)
        bridge[number] = true;
}

/* Of the slots that RUN knows: the namespace, and every file about it. */
static void clear_slots(const char *run, bool *bridge)
{
    static const char *const folders[] = { "netns", "net/ready", "net/conf" };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[PATH_BYTES], file[PATH_BYTES + 300];
        struct err ignored;
        snprintf(path, sizeof path, "%s/%s", run, folders[i]);
        DIR *d = opendir(path);
        for (struct dirent *at; d && (at = readdir(d));) {
            if (!is_slot(at->d_name))
                continue;
            note_bridge(at->d_name, bridge);
            snprintf(file, sizeof file, "%s/%s", path, at->d_name);
            if (net_ns_remove(file, &ignored) < 0)
                unlink(file);
        }
        if (d)
            closedir(d);
    }
}

static bool is_there(const char *bridge)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/class/net/%s", bridge);
    return access(path, F_OK) == 0;
}

static void clear_bridges(const bool *bridge)
{
    struct timespec a_bit = { .tv_nsec = 10000000 };
    for (unsigned i = 0; i < BRIDGES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, PREFIX "%u", i);
        for (int k = 0; bridge[i] && is_there(name) && k < VANISH_TRIES; k++) {
            if (k > 0)
                nanosleep(&a_bit, NULL);
            net_bridge_remove(name);
        }
    }
}

static bool any_bridge(void)
{
    bool found = false;
    DIR *d = opendir("/sys/class/net");
    for (struct dirent *at; d && (at = readdir(d));)
        found |= strncmp(at->d_name, PREFIX, strlen(PREFIX)) == 0;
    if (d)
        closedir(d);
    return found;
}

static bool had_rules(const char *run)
{
    char path[PATH_BYTES];
    AUTO(buf_free) struct buf text = BUF(1u << 20);
    struct err ignored;
    static const char head[] = "table inet " TABLE "\n";
    snprintf(path, sizeof path, "%s/net/rules.nft", run);
    bool ours = file_read(path, 1u << 20, &text, &ignored) == 0 && text.n >= sizeof head - 1 &&
                memcmp(text.p, head, sizeof head - 1) == 0;
    if (ours)
        unlink(path);
    return ours;
}

void older_clear(const char *run, const char *cgroup_root)
{
    bool bridge[BRIDGES_MAX] = { 0 };
    char path[PATH_BYTES], nft[TOOL_PATH_MAX];
    struct err ignored;
    if (!had_rules(run))
        return;
    clear_slots(run, bridge);
    clear_bridges(bridge);
    /* Another keeper of that version may have the rest: then it has bridges or tasks. */
    bool nobodys = !any_bridge() && tool_find("nft", NULL, "nftables", nft, &ignored) == 0 &&
                   net_rules_remove(TABLE, nft, &ignored) == 0;
    if (nobodys)
        net_rules_close_forward(PREFIX);
    static const char *const folders[] = { "",         "cpu/",     "cpuacct/", "memory/", "pids/",
                                           "freezer/", "devices/", "blkio/",   "cpuset/" };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        snprintf(path, sizeof path, "%s/%s" CGROUP, cgroup_root, folders[i]);
        (void)rmdir(path); /* not when a group is in it */
    }
}
