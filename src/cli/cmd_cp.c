/* cp: files into a running job and out of it, through tar on both sides. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/terminal.h"
#include "cli/tty.h"
#include "sys/file.h"
#include "sys/progress.h"

struct cp_opts {
    struct common common;
    uint64_t replica;
};

static const struct opt opts[] = {
    { "replica", OPT_NUMBER, offsetof(struct cp_opts, replica), "N", "of this replica", 0, 4095 },
    OPTS_COMMON(struct cp_opts),
};

/* Inside the job: into a folder of its own first, so that nothing is ever half there. */
static const char upload_script[] =
    "set -e\n"
    "to=$1 name=$2\n"
    "if [ -d \"$to\" ]; then to=${to%/}/$name; fi\n"
    "tmp=$(mktemp -d \"$(dirname -- \"$to\")/.nightshift-cp-XXXXXX\")\n"
    "trap 'rm -rf \"$tmp\"' EXIT\n"
    "tar -C \"$tmp\" -o -xf -\n"
    "mv -T -- \"$tmp/$name\" \"$to\"\n";
static const char download_script[] =
    "cd \"$(dirname -- \"$1\")\" && exec tar -cf - -- \"$(basename -- \"$1\")\"";

/* JOB:PATH; false: a path of this machine. */
static bool split_remote(struct cli *c, const char *arg, const char **job, const char **path)
{
    struct str head, tail;
    if (!str_cut(str_of(arg), ':', &head, &tail) || head.n == 0)
        return false;
    for (size_t i = 0; i < head.n; i++)
        if (!strchr("0123456789_", head.p[i]))
            return false;
    *job = arena_strndup(&c->arena, head.p, head.n);
    *path = tail.n ? tail.p : ".";
    return true;
}

/* "a/b/" -> folder "a", name "b"; in the arena. */
static void split_path(struct cli *c, const char *path, const char **folder, const char **name)
{
    struct str s = str_of(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    size_t n = s.n;
    while (n && s.p[n - 1] != '/')
        n--;
    *name = arena_strndup(&c->arena, s.p + n, s.n - n);
    while (n > 1 && s.p[n - 1] == '/')
        n--;
    *folder = n ? arena_strndup(&c->arena, s.p, n) : ".";
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- trees of files ---- */

static uint64_t tree_bytes(const char *path)
{
    char *roots[] = { (char *)(uintptr_t)path, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    uint64_t sum = 0;
    for (FTSENT *f; walk && (f = fts_read(walk));)
        if (f->fts_info == FTS_F)
            sum += (uint64_t)f->fts_statp->st_size + 512;
    if (walk)
        fts_close(walk);
    return sum;
}

static void tree_remove(const char *path)
{
    char *roots[] = { (char *)(uintptr_t)path, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *f; walk && (f = fts_read(walk));)
        if (f->fts_info != FTS_D)
            (void)remove(f->fts_accpath);
    if (walk)
        fts_close(walk);
}

/* What comes out of a job may be made to harm whoever copies it, who may be root: a device file would be
 * a way to the disk for all who can reach it. */
static int tree_check(const char *path, struct err *e)
{
    char *roots[] = { (char *)(uintptr_t)path, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int rc = 0;
    for (FTSENT *f; walk && rc == 0 && (f = fts_read(walk));)
        if (f->fts_info == FTS_DEFAULT)
            rc =
                err_set(e, ERR_DENIED,
                        "the job sent '%.100s', which is neither a file nor a folder", f->fts_name);
    if (walk)
        fts_close(walk);
    return rc;
}

/* ---- tar on this side ---- */

struct tar {
    pid_t pid;
    int fd; /* our end of its pipe */
};

/* `theirs`: which of its descriptors the pipe is (0: it reads, 1: it writes). */
static int tar_spawn(const char *const *argv, int theirs, struct tar *out, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    AUTO(file_close_p) int mine = ends[theirs == 0], other = ends[theirs];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, pipe_signal;
    sigemptyset(&none);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, other, theirs);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipe_signal);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc =
        posix_spawnp(&out->pid, "tar", &actions, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(other);
    if (rc != 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot run tar: %s", strerror(rc));
    out->fd = mine;
    mine = -1;
    return 0;
}

static int tar_wait(struct tar *t, struct err *e)
{
    int status;
    file_close_p(&t->fd);
    while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "tar failed on this machine");
}

/* ---- the copy ---- */

static int run_session(struct cli *c, struct session *s, const char *label, uint64_t total,
                       struct err *e)
{
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    AUTO(progress_done_p) struct progress *bar = progress_begin(label, total);
    enum session_is is = SESSION_OPEN;
    if (signals_open(&signals, e) < 0)
        return -1;
    while (is == SESSION_OPEN) {
        struct pollfd p[SESSION_POLLS + 1];
        session_poll(s, p);
        p[SESSION_POLLS] = (struct pollfd){ .fd = signals.fd, .events = POLLIN };
        if (poll(p, SESSION_POLLS + 1, -1) < 0 && errno != EINTR)
            return err_set(e, ERR_INTERNAL, "cannot wait: %s", strerror(errno));
        if (signals_end(&signals))
            return err_set(e, ERR_UNAVAILABLE, "interrupted; nothing was copied");
        is = session_step(s, p, e);
        /* what tar adds around the files is not counted */
        progress_set(bar, total ? MIN(session_bytes(s), total) : session_bytes(s));
    }
    if (is == SESSION_REFUSED)
        return -1;
    if (is == SESSION_CLOSED)
        return err_set(e, ERR_UNAVAILABLE, "tar failed on this machine");
    if (is != SESSION_EXITED)
        return terminal_lost(c, session_job(s), e);
    if (session_exit_code(s) != 0) {
        err_set(e, ERR_NOT_FOUND, "the copy failed inside the job (exit code %d)",
                session_exit_code(s));
        return err_hint(e, "check the path, and that tar is in the job's image");
    }
    return 0;
}

static int download(struct cli *c, const struct session_want *want, const char *from,
                    const char *to, struct err *e)
{
    const char *folder, *name, *to_folder, *to_name;
    struct tar tar = { .fd = -1 };
    split_path(c, from, &folder, &name);
    if (!name[0] || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        return err_set(e, ERR_INVALID, "'%s' has no name to copy it under", from);
    if (is_folder(to))
        to = arena_printf(&c->arena, "%s/%s", to, name);
    split_path(c, to, &to_folder, &to_name);
    char *tmp = arena_printf(&c->arena, "%s/.nightshift-cp-XXXXXX", to_folder);
    if (!mkdtemp(tmp))
        return err_set(e, ERR_DENIED, "cannot write into '%s': %s", to_folder, strerror(errno));
    /* Or root would make setuid programs of root's out of theirs. */
    const char *local[] = { "tar", "-C", tmp, "-o", "--no-same-permissions", "-xf", "-", NULL };
    const char *remote[] = { "/bin/sh", "-c", download_script, "sh", from, NULL };
    const struct stream_exec run = { .argv = remote };
    struct session_want with = *want, *w = &with;
    w->exec = &run;
    int rc = tar_spawn(local, 0, &tar, e);
    if (rc == 0) {
        w->out = tar.fd;
        AUTO(session_free_p) struct session *s = session_open(c->client, w, e);
        struct err why;
        rc = s ? run_session(c, s, name, 0, e) : -1;
        if (tar_wait(&tar, &why) < 0 && rc == 0)
            rc = (*e = why, -1);
    }
    const char *got = arena_printf(&c->arena, "%s/%s", tmp, name);
    if (rc == 0)
        rc = tree_check(got, e);
    if (rc == 0 && rename(got, to) < 0)
        rc = err_set(e, ERR_CONFLICT, "cannot put it at '%s': %s", to, strerror(errno));
    tree_remove(tmp);
    return rc;
}

static int upload(struct cli *c, const struct session_want *want, const char *from, const char *to,
                  struct err *e)
{
    const char *folder, *name;
    struct tar tar = { .fd = -1 };
    split_path(c, from, &folder, &name);
    if (access(from, R_OK) < 0)
        return err_set(e, ERR_NOT_FOUND, "cannot read '%s': %s", from, strerror(errno));
    if (!name[0] || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        return err_set(e, ERR_INVALID, "'%s' has no name to copy it under", from);
    const char *local[] = { "tar", "-C", folder, "-cf", "-", "--", name, NULL };
    const char *remote[] = { "/bin/sh", "-c", upload_script, "sh", to, name, NULL };
    const struct stream_exec run = { .argv = remote };
    struct session_want with = *want, *w = &with;
    w->exec = &run;
    if (tar_spawn(local, 1, &tar, e) < 0)
        return -1;
    w->in = tar.fd;
    w->input = true;
    AUTO(session_free_p) struct session *s = session_open(c->client, w, e);
    int rc = s ? run_session(c, s, name, tree_bytes(from), e) : -1;
    struct err why;
    if (tar_wait(&tar, &why) < 0 && rc == 0)
        rc = (*e = why, -1);
    return rc;
}

static int run_cp(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct cp_opts *o = opts_p;
    const char *job = NULL, *path = NULL;
    bool down = split_remote(c, args.v[0], &job, &path);
    bool up = !down && split_remote(c, args.v[1], &job, &path);
    const char *other_job, *other;
    if ((!up && !down) || (down && split_remote(c, args.v[1], &other_job, &other))) {
        err_set(e, ERR_INVALID, "one of the two must be inside a job, and one here");
        return err_hint(e, "nightshift cp 17:/tmp/model.pt .   or   nightshift cp data 17:/tmp/");
    }
    struct session_want w = {
        .replica = (uint32_t)o->replica, .in = -1, .out = STDOUT_FILENO, .err = STDERR_FILENO
    };
    signal(SIGPIPE, SIG_IGN);
    if (!cli_client(c, e) || jobs_resolve_one(c, job, &w.job, e) < 0)
        return -1;
    return down ? download(c, &w, path, args.v[1], e) : upload(c, &w, args.v[0], path, e);
}

const struct command command_cp = {
    .name = "cp",
    .args = "FROM TO",
    .help = "copy files and folders into a running job or out of it",
    .more = "One of the two is JOB:PATH.\n\n"
            "    nightshift cp 17:/tmp/model.pt .\n"
            "    nightshift cp data 17:/tmp/\n",
    .group = GROUP_INSIDE,
    .word = WORD_FILE,
    COMMAND_OPTS(opts, struct cp_opts),
    .min_args = 2,
    .max_args = 2,
    .run = run_cp,
};
