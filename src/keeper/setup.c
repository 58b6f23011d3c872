#include "keeper/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/older.h"
#include "keeper/stray.h"
#include "keeper/taskfile.h"
#include "sys/file.h"
#include "sys/weak.h"

static int failed(const char *what, const char *path, struct err *e)
{
    enum err_code code = errno == EACCES || errno == EPERM ? ERR_DENIED : ERR_UNAVAILABLE;
    return err_set(e, code, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* With its parents.  The mode is that of the last one. */
static int make_folders(const char *path, mode_t mode, struct err *e)
{
    AUTO(free_p) char *part = xstrdup(path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return failed("make the folder", part, e);
        *p = '/';
    }
    return mkdir(path, mode) < 0 && errno != EEXIST ? failed("make the folder", path, e) : 0;
}

/* What is made in it belongs to the group too. */
static int make_shared(const char *parent, const char *name, gid_t gid, struct err *e)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", parent, name);
    if (make_folders(path, 0750, e) < 0)
        return -1;
    if (chown(path, (uid_t)-1, gid) < 0 || chmod(path, weak_or("folder_modes", 02750, 0755)) < 0)
        return failed("open to the group the folder", path, e);
    return 0;
}

static int absolute(const char *path, char out[static 256], struct err *e)
{
    char here[256] = "";
    if (path[0] != '/' && !getcwd(here, sizeof here - 2))
        return failed("find", ".", e);
    if (snprintf(out, 256, "%s%s%s", here, here[0] ? "/" : "", path) >= 256)
        return err_set(e, ERR_TOO_LARGE, "the path '%s' is too long", path);
    return 0;
}

static int find_group(const char *name, gid_t *out, struct err *e)
{
    *out = getegid();
    if (!name)
        return 0;
    const struct group *g = getgrnam(name);
    if (!g) {
        err_set(e, ERR_NOT_FOUND, "there is no group '%s'", name);
        return err_hint(e, "make it: groupadd --system %s", name);
    }
    *out = g->gr_gid;
    return 0;
}

/* A lock of the process, not of the descriptor: no child of a killed keeper holds it on. */
static int take_lock(struct setup *s, struct err *e)
{
    char path[300];
    snprintf(path, sizeof path, "%s/keeper.lock", s->state);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return failed("open", path, e);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(s->lock_fd, F_SETLK, &whole) == 0)
        return 0;
    if (fcntl(s->lock_fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK)
        err_set(e, ERR_CONFLICT, "another keeper serves '%s': process %d", s->state,
                (int)whole.l_pid);
    else
        err_set(e, ERR_CONFLICT, "another keeper served '%s' a moment ago", s->state);
    return err_hint(e, "stop it first, or give this one another --state and --run");
}

void setup_mark_clock(struct setup *s)
{
    AUTO(buf_free) struct buf mark = BUF(256);
    struct err ignored; /* without it the next keeper believes the wall clock */
    int64_t offset = s->steady.offset_ms;
    if (s->marked_ms == offset)
        return;
    steady_mark(&s->steady, &mark);
    if (task_file_put(s->run, "clock", buf_str(&mark), &ignored) == 0)
        s->marked_ms = offset;
}

/* What tasks are measured by: within one boot it goes on evenly, through every keeper. */
static void open_clock(struct setup *s, struct env *env)
{
    AUTO(buf_free) struct buf mark = BUF(256);
    char path[300];
    struct err ignored;
    const char *wall = getenv("NIGHTSHIFT_TEST_WALL");
    struct steady_config sc = { clock_wall(), clock_boot(), steady_boot_id(s->boot_id) };
    snprintf(path, sizeof path, "%s/clock", s->run);
    if (file_read(path, 256, &mark, &ignored) < 0)
        mark.n = 0;
    if (wall)
        sc.wall = clock_shifted(&s->turned, sc.wall, wall);
    steady_begin(&s->steady, &sc, buf_str(&mark));
    env->clock = steady_clock(&s->steady);
    setup_mark_clock(s);
}

static int find_init(struct setup *s, const char *given, struct err *e)
{
    if (given) {
        snprintf(s->init, sizeof s->init, "%s", given);
    } else {
        ssize_t n = readlink("/proc/self/exe", s->init, sizeof s->init - 32);
        s->init[MAX(n, (ssize_t)0)] = '\0';
        char *slash = strrchr(s->init, '/');
        snprintf(slash ? slash + 1 : s->init, 32, "nightshift-init");
    }
    if (access(s->init, X_OK) == 0 && s->init[0] == '/')
        return 0;
    err_set(e, ERR_NOT_FOUND, "cannot run '%s', which every job needs", s->init);
    return err_hint(e, "name it with --init, as an absolute path");
}

static void read_limits(struct env *env)
{
    struct rlimit files = { 1024, 1024 }, core = { 0, 0 };
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_CORE, &core);
    env->nofile_max = files.rlim_max;
    env->core_max = core.rlim_max;
}

/* Control groups of ours: as root, or where v2 was delegated to this account. */
static int open_groups(struct setup *s, const struct keeper_config *c, struct env *env,
                       struct err *e)
{
    enum cgroups_kind kind = cgroups_detect(c->cgroup_root);
    struct err refused;
    bool root = env->mode == KEEPER_MODE_ROOT;
    env->cgroups = root || kind == CGROUPS_V2
                     ? cgroups_open(c->cgroup_root, kind, s->cgroup, root ? e : &refused)
                     : NULL;
    if (!env->cgroups && root)
        return -1;
    if (!env->cgroups)
        env->cgroups = cgroups_open(c->cgroup_root, CGROUPS_NONE, s->cgroup, e);
    /* crun refuses a machine with both kinds: it gets to see the one that is in use, or, where we
     * may not take mounts away, none. */
    snprintf(s->hide, sizeof s->hide, "%.200s/unified", c->cgroup_root);
    bool both = kind == CGROUPS_V1 && access(s->hide, F_OK) == 0;
    if (!root)
        snprintf(s->hide, sizeof s->hide, "%.200s", c->cgroup_root);
    env->hide = both && env->mode != KEEPER_MODE_PLAIN ? s->hide : NULL;
    return env->cgroups ? 0 : -1;
}

bool setup_net(const struct setup *s, struct env *env)
{
    if (env->net || !s->wants_net)
        return env->net != NULL;
    env->net = net_new(&s->net, &env->no_net);
    env->gangs = gangnet_free(env->gangs);
    env->gangs = gangnet_new(env->net);
    if (env->net)
        env->no_net = (struct err){ 0 };
    else
        log_event(env->log, LOG_WARN_, "net.missing", "why=%s", env->no_net.msg);
    return env->net != NULL;
}

/* Their names to numbers, once: an account that is made later is not meant. */
static int find_accounts(struct setup *s, const char *names, struct err *e)
{
    struct str rest = str_of(names ? names : ""), one;
    while (rest.n > 0) {
        char name[64];
        str_cut(rest, ',', &one, &rest);
        one = str_trim(one);
        if (one.n >= sizeof name || s->accounts == ARRAY_LEN(s->account))
            return err_set(e, ERR_TOO_LARGE,
                           "--net-users: more than %zu accounts, or a name that is too long",
                           ARRAY_LEN(s->account));
        snprintf(name, sizeof name, "%.*s", STR_ARG(one));
        const struct passwd *p = one.n ? getpwnam(name) : NULL;
        if (one.n && !p) {
            err_set(e, ERR_NOT_FOUND, "--net-users: there is no account '%s' on this machine",
                    name);
            return err_hint(e, "make it, or take it out of the setting net_users");
        }
        if (p)
            s->account[s->accounts++] = p->pw_uid;
    }
    return 0;
}

static void open_net(struct setup *s, const struct keeper_config *c, struct env *env)
{
    s->net = (struct net_config){
        .loop = env->loop,
        .log = env->log,
        .run_dir = env->run,
        .state_dir = env->state,
        .range = c->net_range,
        .prefix = s->net_prefix,
        .table = s->net_table,
        .fetcher = { FETCHER_UID, FETCHER_UID + 1 },
        .account = s->account,
        .accounts = s->accounts,
        .walls_changed = env->walls_changed,
        .ctx = env->ctx,
    };
    s->wants_net = !c->no_network;
    if (!s->wants_net) {
        err_set(&env->no_net, ERR_UNAVAILABLE, "tenants' networks are switched off here");
        err_hint(&env->no_net, "ask for network: none, or start the keeper without --no-network");
    }
    (void)setup_net(s, env);
}

/* Without a place on disk a task's /tmp is a tmpfs, which counts as its memory. */
static void open_disks(const struct keeper_config *c, struct env *env)
{
    struct err e;
    char scratch[300], images[300];
    snprintf(scratch, sizeof scratch, "%s/scratch", env->state);
    snprintf(images, sizeof images, "%s/images", env->state);
    struct scratch_config want = { .loop = env->loop, .log = env->log, .dir = scratch };
    env->scratch = scratch_new(&want, &e);
    if (!env->scratch)
        log_event(env->log, LOG_WARN_, "scratch.missing", "why=%s", e.msg);
    struct image_config pictures = { .loop = env->loop,
                                     .log = env->log,
                                     .dir = images,
                                     .keep_bytes = c->images_mib << 20,
                                     .registries = c->registries,
                                     .fetcher = { FETCHER_UID, FETCHER_UID + 1 } };
    env->images = image_open(&pictures, &env->no_images);
    if (!env->images)
        log_event(env->log, LOG_INFO_, "images.missing", "why=%s", env->no_images.msg);
}

static int probe(const struct keeper_config *c, struct env *env, struct err *e)
{
    struct node_want want = {
        .name = c->node_name,
        .cpu_milli = (uint32_t)c->cpu_milli,
        .mem_mib = c->mem_mib,
        .no_gpus = c->no_gpus,
        .nvml_path = c->nvml,
        .simulated = { .count = (uint32_t)c->simulate_gpus,
                       .model = c->gpu_model,
                       .mem_mib = (uint32_t)c->gpu_mem_mib },
    };
    if (node_probe(&want, &env->node, e) < 0)
        return -1;
    if (env->node.gpu_trouble.code != ERR_NONE)
        log_event(env->log, LOG_WARN_, "gpu.trouble", "why=%s", env->node.gpu_trouble.msg);
    return 0;
}

static int open_folders(struct setup *s, const struct keeper_config *c, struct env *env,
                        struct err *e)
{
    if (absolute(c->state, s->state, e) < 0 || absolute(c->run, s->run, e) < 0 ||
        find_group(c->group, &env->gid, e) < 0 || make_folders(s->state, 0755, e) < 0 ||
        make_folders(s->run, 0755, e) < 0 || take_lock(s, e) < 0)
        return -1;
    env->state = s->state;
    env->run = s->run;
    snprintf(s->mnt, sizeof s->mnt, "%s/mnt", s->run);
    snprintf(s->skeleton, sizeof s->skeleton, "%s/rootfs", s->mnt);
    env->mnt = s->mnt;
    env->skeleton = s->skeleton;
    if (make_folders(s->mnt, 0700, e) < 0)
        return -1;
    open_clock(s, env);
    return make_shared(s->state, "tasks", env->gid, e) < 0
             ? -1
             : make_shared(s->run, "tasks", env->gid, e);
}

/* Where an older keeper's tasks live we go on as it was called; they end, and the next start has its own. */
static int choose_names(struct setup *s, const struct keeper_config *c, const struct env *env,
                        struct err *e)
{
    bool known = instance_read(env->state, &s->names);
    if (known || !older_lives(env->run)) {
        if (!known && env->mode == KEEPER_MODE_ROOT)
            older_clear(env->run, c->cgroup_root);
        if (instance_open(env->state, &s->names, e) < 0)
            return -1;
    }
    s->cgroup = c->cgroup ? c->cgroup : s->names.cgroup;
    s->net_prefix = c->net_prefix ? c->net_prefix : s->names.net_prefix;
    s->net_table = c->net_table ? c->net_table : s->names.net_table;
    log_event(env->log, LOG_INFO_, "keeper.names", "id=%s cgroup=%s bridges=%s table=%s",
              s->names.id, s->cgroup, s->net_prefix, s->net_table);
    return 0;
}

int setup_open(struct setup *s, const struct keeper_config *c, struct env *env, struct err *e)
{
    *s = (struct setup){ .lock_fd = -1 };
    env->crun_copy = env->init_copy = SEALED_NONE;
    if (find_init(s, c->init, e) < 0 || mode_choose(c->mode, c->crun, &env->mode, s->crun, e) < 0 ||
        find_accounts(s, c->net_users, e) < 0 || open_folders(s, c, env, e) < 0 ||
        choose_names(s, c, env, e) < 0 || open_groups(s, c, env, e) < 0 || probe(c, env, e) < 0)
        return -1;
    env->init = s->init;
    env->crun = s->crun;
    env->dev = c->dev;
    env->cdi = c->cdi;
    env->start_limit_ms = (int64_t)c->start_limit_s * 1000;
    env->strays = strays_new(env->loop);
    strays_groups(env->strays, env->cgroups);
    env->min_uid = (uint32_t)MAX(c->min_uid, UINT64_C(1));
    read_limits(env);
    rootfs_look("", &env->host);
    if (env->mode == KEEPER_MODE_ROOT) {
        open_net(s, c, env);
        open_disks(c, env);
        return 0;
    }
    err_set(&env->no_images, ERR_UNAVAILABLE, "without root only image: host can be run");
    return 0;
}

void setup_close(struct setup *s, struct env *env)
{
    env->gangs = gangnet_free(env->gangs);
    env->net = net_free(env->net);
    env->images = image_close(env->images);
    env->scratch = scratch_free(env->scratch);
    env->strays = strays_free(env->strays);
    env->cgroups = cgroups_free(env->cgroups);
    sealed_clear(&env->crun_copy);
    sealed_clear(&env->init_copy);
    file_close_p(&s->lock_fd);
}

void setup_caps(const struct env *env, bool out[ENGINE_CAP_COUNT])
{
    const bool caps[ENGINE_CAP_COUNT] = {
        [CAP_GPU_INDEX] = true,
        [CAP_GPU_SHARE] = true,
        [CAP_GANG] = true,
        [CAP_IMAGES] = env->images != NULL,
        [CAP_PAUSE] = cgroups_has(env->cgroups, CGROUPS_FREEZE),
        [CAP_SIGNAL] = true,
        [CAP_SNAPSHOT] = false,
        [CAP_ATTACH] = true,
        [CAP_EXEC] = true,
        [CAP_NETWORK] = env->net != NULL,
        [CAP_MULTI_USER] = env->mode == KEEPER_MODE_ROOT,
        [CAP_LIMITS] = cgroups_has(env->cgroups, CGROUPS_LIMITS),
        [CAP_QUOTA] = env->scratch && scratch_bounded(env->scratch),
    };
    memcpy(out, caps, sizeof caps);
}
