/* Who listens where, as /proc tells it: nothing is connected to.  (A connection to the keeper would
 * take the daemon's place.) */
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "doctor/checks.h"
#include "doctor/look.h"

#define TABLE_LIMIT (32u << 20) /* bytes of /proc/net/tcp */
#define PIDS_MAX 100000
#define FDS_MAX 100000 /* of one process */

/* The process behind a socket. */
struct holder {
    uint64_t inode;
    int32_t pid;   /* 0: not found */
    char name[32]; /* of the program */
    uint32_t uid;
};

/* ---- which process has it ---- */

static bool has_socket(const struct doctor_in *in, const char *pid, const char *link)
{
    char path[LOOK_PATH], to[64];
    look_path(in, path, "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    const struct dirent *f;
    bool found = false;
    for (int i = 0; d && !found && i < FDS_MAX && (f = readdir(d)); i++) {
        ssize_t n = readlinkat(dirfd(d), f->d_name, to, sizeof to - 1);
        to[n > 0 ? n : 0] = '\0';
        found = strcmp(to, link) == 0;
    }
    if (d)
        closedir(d);
    return found;
}

static void find_holder(const struct doctor_in *in, struct holder *h)
{
    AUTO(buf_free) struct buf name = BUF(0);
    struct err ignored;
    char path[LOOK_PATH], link[64];
    uint64_t pid = 0;
    snprintf(link, sizeof link, "socket:[%llu]", (unsigned long long)h->inode);
    look_path(in, path, "/proc");
    DIR *d = opendir(path);
    const struct dirent *f;
    for (int i = 0; d && h->pid == 0 && i < PIDS_MAX && (f = readdir(d)); i++)
        if (parse_u64(str_of(f->d_name), INT32_MAX, &pid, &ignored) == 0 &&
            has_socket(in, f->d_name, link))
            h->pid = (int32_t)pid;
    if (d)
        closedir(d);
    snprintf(path, sizeof path, "/proc/%d/comm", (int)h->pid);
    if (h->pid && look_read(in, path, 256, &name))
        snprintf(h->name, sizeof h->name, "%.*s", STR_ARG(str_trim(buf_str(&name))));
}

/* ---- the port ---- */

/* An address as /proc/net/tcp writes it; empty: none, by name. */
struct address {
    char v4[9], v6[33];
    bool any;
    uint16_t port;
};

static void put_words(const uint32_t *w, size_t n, char *out, size_t size)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 8 * i, size - 8 * i, "%08X", w[i]);
}

static bool read_address(const char *listen, struct address *out)
{
    struct err ignored;
    const char *colon = strrchr(listen, ':');
    struct str host = { listen, colon ? (size_t)(colon - listen) : 0 };
    char text[64];
    uint32_t w[4];
    uint64_t port;
    *out = (struct address){ 0 };
    if (!colon || parse_u64(str_of(colon + 1), 65535, &port, &ignored) < 0)
        return false;
    if (host.n > 1 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = (struct str){ host.p + 1, host.n - 2 };
    snprintf(text, sizeof text, "%.*s", STR_ARG(host.n ? host : STR("127.0.0.1")));
    out->port = (uint16_t)port;
    if (inet_pton(AF_INET, text, w) == 1)
        put_words(w, 1, out->v4, sizeof out->v4);
    else if (inet_pton(AF_INET6, text, w) == 1)
        put_words(w, 4, out->v6, sizeof out->v6);
    out->any =
        strspn(out->v4, "0") == 8 || strspn(out->v6, "0") == 32 || (!out->v4[0] && !out->v6[0]);
    return true;
}

/* Would binding `a` collide with this listener? */
static bool collides(const struct address *a, struct str local)
{
    struct str host, port;
    char wanted[8];
    snprintf(wanted, sizeof wanted, "%04X", a->port);
    if (!str_cut(local, ':', &host, &port) || !str_is(port, wanted))
        return false;
    bool theirs_any = host.n && strspn(host.p, "0") >= host.n;
    return a->any || theirs_any || str_is(host, a->v4) || str_is(host, a->v6);
}

static bool find_listener(const struct doctor_in *in, const char *table, const struct address *a,
                          struct holder *out)
{
    enum {
        LOCAL = 1,
        STATE = 3,
        UID = 7,
        INODE = 9,
        WORDS
    };
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest, line, word[WORDS];
    if (!look_read(in, table, TABLE_LIMIT, &text))
        return false;
    for (rest = buf_str(&text); str_next_line(&rest, &line);) {
        uint64_t uid;
        size_t n = 0;
        while (n < WORDS && str_next_word(&line, &word[n]))
            n++;
        if (n < WORDS || !str_is(word[STATE], "0A") || !collides(a, word[LOCAL]) ||
            parse_u64(word[UID], UINT32_MAX, &uid, &ignored) < 0 ||
            parse_u64(word[INODE], UINT64_MAX, &out->inode, &ignored) < 0)
            continue;
        out->uid = (uint32_t)uid;
        return true;
    }
    return false;
}

void check_port(const struct doctor_in *in, struct doctor_result *r)
{
    struct holder h = { 0 };
    struct address a;
    if (strcmp(in->listen, "none") == 0 || !read_address(in->listen, &a) || a.port == 0) {
        say_skip(r, "no fixed port (listen: %s)", in->listen);
        return;
    }
    if (!find_listener(in, "/proc/net/tcp", &a, &h) &&
        !find_listener(in, "/proc/net/tcp6", &a, &h)) {
        say_good(r, "port %u is free", a.port);
        return;
    }
    find_holder(in, &h);
    if (strcmp(h.name, "nightshiftd") == 0) {
        say_good(r, "nightshiftd listens at %s (process %d)", in->listen, (int)h.pid);
        return;
    }
    if (in->keeper_mode && !h.pid && h.uid == in->facts.uid) { /* nobody may look into it */
        say_good(r, "nightshiftd listens at %s", in->listen);
        return;
    }
    if (h.pid)
        say_bad(r, "port %u is taken by %s (process %d)", a.port, h.name, (int)h.pid);
    else
        say_bad(r, "port %u is taken by a process of uid %u", a.port, h.uid);
    say_fix(r, "stop it (%s%d shows it), or take another port: --listen HOST:PORT",
            h.pid ? "ps -fp " : "as root: ss -ltnp sport = :", h.pid ? (int)h.pid : (int)a.port);
}

/* ---- the keeper ---- */

/* `run` may be relative where the kernel has the whole path. */
static bool same_path(struct str bound, const char *run)
{
    char path[LOOK_PATH];
    int n = snprintf(path, sizeof path, "%s%s/keeper.sock", run[0] == '/' ? "" : "/", run);
    if (n < 0 || (size_t)n >= sizeof path || bound.n < (size_t)n)
        return false;
    bool whole = bound.n == (size_t)n || run[0] != '/';
    return whole && memcmp(bound.p + bound.n - (size_t)n, path, (size_t)n) == 0;
}

static bool find_keeper(const struct doctor_in *in, struct holder *out)
{
    enum {
        FLAGS = 3,
        INODE = 6,
        WORDS
    };
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest, line, word[WORDS];
    if (!look_read(in, "/proc/net/unix", TABLE_LIMIT, &text))
        return false;
    for (rest = buf_str(&text); str_next_line(&rest, &line);) {
        size_t n = 0;
        while (n < WORDS && str_next_word(&line, &word[n]))
            n++;
        if (n == WORDS && str_is(word[FLAGS], "00010000") && same_path(str_trim(line), in->run) &&
            parse_u64(word[INODE], UINT64_MAX, &out->inode, &ignored) == 0)
            return true;
    }
    return false;
}

static void keeper_missing(const struct doctor_in *in, struct doctor_result *r)
{
    if (!in->keeper_external && !in->keeper_mode) {
        say_skip(r, "it does not run: nightshiftd starts it");
        return;
    }
    say_bad(r, "nobody listens at %s/keeper.sock: no job can start", in->run);
    if (in->keeper_external)
        say_fix(r, "systemctl start nightshift-keeper; journalctl -u nightshift-keeper");
    else
        say_fix(r, "nightshiftd could not start it: see keeper.start in its log, and own-programs");
}

void check_keeper(const struct doctor_in *in, struct doctor_result *r)
{
    struct holder h = { 0 };
    char path[LOOK_PATH];
    look_path(in, path, "%s/keeper.sock", in->run);
    if (!find_keeper(in, &h)) {
        keeper_missing(in, r);
        return;
    }
    find_holder(in, &h);
    if (access(path, R_OK | W_OK) < 0) {
        say_bad(r, "%s/keeper.sock may not be opened by uid %u", in->run, in->facts.uid);
        say_fix(r, "run nightshiftd as a member of the socket's group: ls -l %s", in->run);
    } else if (in->keeper_silent && in->keeper_silent[0]) {
        say_bad(r, "%s", in->keeper_silent);
        say_fix(r,
                "what it waits for is in its log, or: cat /proc/$(pidof nightshift-keeper)/stack; "
                "running jobs go on, and it may be killed and started again");
    } else {
        const char *mode = in->keeper_mode ? in->keeper_mode : "";
        char who[32] = ""; /* root's descriptors are not shown to others */
        if (h.pid)
            snprintf(who, sizeof who, ", process %d", (int)h.pid);
        say_good(r, "it runs%s%s%s%s", who, mode[0] ? ", mode " : "", mode,
                 strcmp(mode, "plain") == 0 ? ": nothing contains or limits jobs" : "");
    }
}
