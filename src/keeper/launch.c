/* launch - the way from a request to a process: files, image, network, scratch, bundle, child. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper/bundle.h"
#include "keeper/life.h"
#include "keeper/place.h"
#include "keeper/tell.h"
#include "sys/failpoint.h"
#include "sys/file.h"
#include "sys/weak.h"
#include "wire/joblog.h"

#define TURN_MS 1000 /* of a start, before the next may begin */
#define CTL_BACKLOG 64
#define STATUS_BYTES 4096

int launch_paths(struct task *t, struct err *e)
{
    struct sockaddr_un room;
    int a = snprintf(t->dir, sizeof t->dir, "%s/tasks/%s", t->env->state, t->name);
    int b = snprintf(t->run, sizeof t->run, "%s/tasks/%s", t->env->run, t->name);
    if (a >= (int)sizeof t->dir - 64 || b + (int)sizeof "/ctl.sock" > (int)sizeof room.sun_path)
        return err_set(e, ERR_TOO_LARGE, "the path '%s' is too long for a socket in it", t->run);
    return 0;
}

static int make_folder(const char *path, struct err *e)
{
    if (mkdir(path, weak_or("folder_modes", 0750, 0755)) == 0 || errno == EEXIST)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "cannot make the folder '%s': %s", path, strerror(errno));
}

static int open_file(const char *dir, const char *name, int flags, struct err *e)
{
    char path[LIFE_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, weak_or("file_modes", 0640, 0644));
    if (fd < 0)
        err_set(e, ERR_UNAVAILABLE, "cannot open '%s': %s", path, strerror(errno));
    return fd;
}

/* From the lock on, no other start of this task can get this far. */
int launch_write(struct task *t, struct err *e)
{
    if (make_folder(t->dir, e) < 0)
        return -1;
    fail_point("keeper.before_task_json");
    if (task_file_put(t->dir, "task.json", str_of(t->line), e) < 0)
        return -1;
    fail_point("keeper.after_task_json");
    t->status_fd = open_file(t->dir, "status", O_APPEND | O_TRUNC, e);
    if (t->status_fd < 0)
        return -1;
    if (!task_lock(t->status_fd))
        return err_set(e, ERR_CONFLICT, "task %s runs already: its status is locked", t->name);
    /* Room for how it ends: a disk that is full by then must not lose its exit code. */
    if (fallocate(t->status_fd, FALLOC_FL_KEEP_SIZE, 0, STATUS_BYTES) < 0 && errno == ENOSPC)
        return err_set(e, ERR_UNAVAILABLE, "cannot write '%s/status': %s", t->dir, strerror(errno));
    fail_point("keeper.after_lock");
    free(t->line);
    t->line = NULL;
    return make_folder(t->run, e);
}

/* --- the child --- */

static int listen_ctl(struct task *t, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%.90s/ctl.sock", t->run);
    unlink(at.sun_path);
    AUTO(file_close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        chmod(at.sun_path, weak_or("socket_modes", 0660, 0666)) < 0 || listen(fd, CTL_BACKLOG) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot listen on '%s': %s", at.sun_path,
                       strerror(errno));
    int taken = fd;
    fd = -1;
    return taken;
}

/* Descriptors the child gets, closed here once it has them. */
struct handover {
    int fd[SPAWN_FDS], out, join[CGROUP_JOIN_MAX], n_join;
};

static void handover_clear(struct handover *h)
{
    for (int i = 0; i < SPAWN_FDS; i++)
        file_close_p(&h->fd[i]);
    for (int i = 0; i < h->n_join; i++)
        file_close_p(&h->join[i]);
    file_close_p(&h->out);
}

static int handover_open(struct task *t, struct handover *h, struct err *e)
{
    char name[16];
    _Static_assert(SPAWN_FDS == 3 + JOBLOG_SEGMENTS, "socket, status, the log and nightshift-init");
    _Static_assert(BUNDLE_INIT_FD == 3 + SPAWN_FDS - 1, "the last of them");
    *h = (struct handover){ .out = -1 };
    for (int i = 0; i < SPAWN_FDS; i++)
        h->fd[i] = -1;
    h->fd[1] = t->status_fd;
    t->status_fd = -1;
    if ((h->fd[0] = listen_ctl(t, e)) < 0)
        return -1;
    for (int i = 0; i < JOBLOG_SEGMENTS; i++) {
        snprintf(name, sizeof name, "log.%d", i);
        if ((h->fd[2 + i] = open_file(t->dir, name, O_TRUNC, e)) < 0)
            return -1;
    }
    if ((h->out = open_file(t->run, "out.log", O_TRUNC | O_APPEND, e)) < 0)
        return -1;
    int n = cgroup_join_fds(t->env->cgroups, t->name, h->join, e);
    h->n_join = MAX(n, 0);
    return n < 0 ? -1 : 0;
}

int launch_init_copy(struct task *t)
{
    return sealed_program(&t->env->init_copy, t->env->init, SPAWN_HIGH_FD);
}

static const char *const *runtime_argv(struct task *t, const char *config)
{
    const struct env *v = t->env;
    const char **argv = arena_array(&t->arena, const char *, 20);
    size_t n = 0;
    argv[n++] = v->crun;
    argv[n++] = "--root";
    argv[n++] = arena_printf(&t->arena, "%s/crun", v->run);
    argv[n++] = "--cgroup-manager=disabled"; /* the control groups are ours */
    argv[n++] = "run";
    argv[n++] = arena_printf(&t->arena, "--preserve-fds=%d", SPAWN_FDS);
    argv[n++] = "--pid-file";
    argv[n++] = arena_printf(&t->arena, "%s/pid", t->run);
    argv[n++] = "--bundle";
    argv[n++] = arena_printf(&t->arena, "%s/bundle", t->run);
    argv[n++] = "--config";
    argv[n++] = arena_printf(&t->arena, "%s/bundle/%s", t->run, config);
    argv[n++] = t->name;
    return argv;
}

static const char *const *plain_argv(struct task *t, const struct bundle_begin *b)
{
    struct bundle_begin said = { .note = b->note };
    return bundle_argv(t->start, t->env->init, &said, &t->arena);
}

static void want_child(struct task *t, const struct handover *h)
{
    static const char *const runtime_env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    struct spawn_want *w = t->spawn;
    bool plain = t->env->mode == KEEPER_MODE_PLAIN, other = t->begin_else.folder;
    w->argv = plain ? plain_argv(t, &t->begin) : runtime_argv(t, "config.json");
    if (other)
        w->argv_else = plain ? plain_argv(t, &t->begin_else) : runtime_argv(t, "else.json");
    w->program = plain ? -1 : sealed_program(&t->env->crun_copy, t->env->crun, SPAWN_HIGH_FD);
    w->env = plain ? bundle_env(t->start, &t->arena) : runtime_env;
    w->cwd = plain ? t->begin.folder : NULL;
    w->hide = t->env->hide;
    w->mnt = t->env->mnt;
    w->out_fd = h->out;
    w->n_join = h->n_join;
    memcpy(w->fd, h->fd, sizeof w->fd);
    w->fd[SPAWN_FDS - 1] = plain ? -1 : launch_init_copy(t);
    memcpy(w->join_fd, h->join, sizeof w->join_fd);
}

static void note_pid(struct task *t)
{
    char text[16];
    struct err e;
    snprintf(text, sizeof text, "%d\n", (int)t->child.pid);
    if (task_file_put(t->run, "pid", str_of(text), &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.pid_lost", "task=%s why=%s", t->name, e.msg);
}

static int spawn(struct task *t, struct err *e)
{
    AUTO(handover_clear) struct handover h;
    if (handover_open(t, &h, e) < 0)
        return -1;
    want_child(t, &h);
    fail_point("keeper.before_spawn");
    if (spawn_child(t->spawn, &t->child, e) < 0)
        return -1;
    fail_point("keeper.after_spawn");
    if (t->env->mode == KEEPER_MODE_PLAIN) /* crun writes the file otherwise */
        note_pid(t);
    t->state = TASK_STARTING;
    t->began_ms = life_now(t);
    t->start_by_ms = life_now(t) + t->env->start_limit_ms;
    t->turn_until_ms = life_now(t) + TURN_MS;
    watch_child(t);
    watch_oom(t);
    return watch_connect(t, e);
}

/* --- the steps that may take time --- */

static void launch_place(struct task *t)
{
    struct err e = { 0 };
    t->spawn = arena_new(&t->arena, struct spawn_want);
    if (place_make(t, &e) < 0 || spawn(t, &e) < 0)
        finish_failed(t, &e);
    else
        life_arm(t);
}

static void on_net(void *ctx, const struct net_place *place, const struct err *cause)
{
    struct task *t = ctx;
    struct err e = { 0 };
    t->net_wanted = false;
    if (place) {
        snprintf(t->netns, sizeof t->netns, "%s", place->path);
        snprintf(t->address, sizeof t->address, "%s", place->address);
    }
    if (t->state != TASK_PREPARING) { /* it was stopped meanwhile, and waited for this */
        finish_step(t);
        return;
    }
    if (!place) {
        finish_failed(t, cause);
        return;
    }
    fail_point("keeper.after_net");
    if (task_file_put(t->run, "netns", str_of(t->netns), &e) < 0)
        finish_failed(t, &e);
    else
        launch_place(t);
}

static void launch_net(struct task *t)
{
    bool wanted = t->env->mode == KEEPER_MODE_ROOT && t->start->network == NETWORK_TENANT;
    if (wanted && !t->env->net && !t->env->net_again(t->env->ctx)) {
        finish_failed(t, &t->env->no_net);
        return;
    }
    if (!wanted) {
        launch_place(t);
        return;
    }
    t->net_wanted = true;
    gangnet_take(t->env->gangs, t->name, str_of(t->start->tenant), on_net, t);
}

static void on_image_progress(void *ctx, struct str text, uint64_t done, uint64_t total)
{
    struct task *t = ctx;
    tell_progress(t->env, t->name, &(struct tell_progress){ text, done, total });
}

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

/* Its entry point stays; its command is for those who gave none. */
static int take_command(struct start *s, const struct image_run *run, struct arena *a,
                        struct err *e)
{
    size_t n = 0;
    const char *const *rest = s->n_argv ? s->argv : run->cmd;
    const char **argv = arena_array(a, const char *, count(run->entrypoint) + count(rest) + 1);
    for (size_t i = 0; run->entrypoint[i]; i++)
        argv[n++] = arena_printf(a, "%s", run->entrypoint[i]);
    for (size_t i = 0; rest[i]; i++)
        argv[n++] = arena_printf(a, "%s", rest[i]);
    if (n == 0)
        return err_set(e, ERR_INVALID, "image '%s' has no command of its own, and none was given",
                       s->image);
    s->argv = argv;
    s->n_argv = (uint32_t)n;
    return 0;
}

/* An image says how it likes to be run; what the user said goes before it. */
static int take_image(struct task *t, const struct image *img, struct err *e)
{
    struct start *s = t->start;
    if (take_command(s, &img->run, &t->arena, e) < 0)
        return -1;
    start_add_env(s, img->run.env, count(img->run.env), &t->arena);
    if (!s->workdir_given && img->run.workdir[0])
        s->workdir = arena_printf(&t->arena, "%s", img->run.workdir);
    snprintf(t->digest, sizeof t->digest, "%s", img->digest);
    return 0;
}

static void on_image(void *ctx, const struct image *img, const struct err *cause)
{
    struct task *t = ctx;
    struct err e = { 0 };
    t->image_want = NULL;
    if (!img)
        finish_failed(t, cause);
    else if (take_image(t, img, &e) < 0)
        finish_failed(t, &e);
    else
        launch_net(t);
}

void launch_begin(struct task *t)
{
    struct err e = { 0 };
    t->state = TASK_PREPARING;
    if (launch_write(t, &e) < 0) {
        finish_failed(t, &e);
        return;
    }
    if (strcmp(t->start->image, "host") == 0) {
        launch_net(t);
        return;
    }
    if (!t->env->images) {
        finish_failed(t, &t->env->no_images);
        return;
    }
    t->image_want = image_rootfs(t->env->images, str_of(t->start->image), &t->start->user,
                                 on_image_progress, on_image, t);
}

void launch_cancel(struct task *t)
{
    if (t->image_want)
        image_cancel(t->image_want);
    t->image_want = NULL;
    file_close_p(&t->status_fd);
}
