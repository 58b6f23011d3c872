#include "keeper/place.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/bundle.h"
#include "keeper/driver.h"
#include "keeper/layout.h"
#include "sys/failpoint.h"
#include "sys/file.h"
#include "sys/weak.h"

#define ETC_FILE_MAX (256u << 10)
#define PROCESSES_OF_OURS 4 /* crun, its helper and nightshift-init count too */

/* Nodes beside the GPUs' own; those that are there. */
static const char *const gpu_nodes[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "dxg" };

/* Inside, but not the machine's. */
static const char *const own_places[] = { "/tmp", "/var/tmp", "/dev/shm", "/run", "/proc", "/sys" };

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

int place_outside(const struct start *s, const struct rootfs_plan *host, const char *path,
                  struct arena *a, const char **out, struct err *e)
{
    *out = NULL;
    for (uint32_t i = s->n_volumes; i-- > 0;) { /* the last mounted is on top */
        const struct start_volume *v = &s->volume[i];
        if (!is_below(path, v->to))
            continue;
        size_t n = strlen(v->to);
        while (n > 1 && v->to[n - 1] == '/')
            n--;
        *out = arena_printf(a, "%s%s", v->from, path + n);
        return 0;
    }
    *out = path;
    if (is_below(path, s->user.home.p))
        return 0;
    bool ours = strcmp(path, "/") == 0 || !host; /* an image has what it has */
    for (size_t i = 0; i < ARRAY_LEN(own_places); i++)
        ours |= is_below(path, own_places[i]);
    for (size_t i = 0; host && i < host->n; i++)
        if (is_below(path, host->folder[i].path))
            return 0;
    *out = NULL;
    if (ours)
        return 0;
    err_set(e, ERR_NOT_FOUND, "the working folder '%s' is not there inside the job", path);
    return err_hint(e, "give it to the job as a volume, or work below the home folder");
}

/* --- devices --- */

#define NODES_MAX (REQUEST_GPUS_MAX + ARRAY_LEN(gpu_nodes) + 64)

struct nodes {
    const char *name[NODES_MAX + 1]; /* ends with NULL */
    dev_t device[NODES_MAX];
    size_t n, n_devices;
};

static bool add_node(struct nodes *out, const struct env *v, const char *name)
{
    char path[512];
    struct stat st;
    for (size_t i = 0; i < out->n; i++)
        if (strcmp(out->name[i], name) == 0)
            return true;
    snprintf(path, sizeof path, "%s/%s", v->dev, name);
    if (out->n == NODES_MAX || stat(path, &st) < 0)
        return false;
    out->name[out->n++] = name;
    if (S_ISCHR(st.st_mode))
        out->device[out->n_devices++] = st.st_rdev;
    return true;
}

static const struct gpu_info *gpu_of(const struct env *v, const struct start_gpu *want)
{
    for (uint32_t i = 0; i < v->node.gpus.n; i++)
        if (strcmp(v->node.gpus.gpu[i].uuid, want->uuid) == 0)
            return &v->node.gpus.gpu[i];
    return NULL;
}

/* What the driver's specs name beyond the usual, as the capabilities of parts of a GPU. */
static void add_driver_nodes(struct nodes *out, const struct env *v, const struct cdi_edits *driver)
{
    static const char dev[] = "/dev/";
    for (size_t i = 0; i < driver->n_nodes; i++)
        if (strncmp(driver->nodes[i].path, dev, sizeof dev - 1) == 0)
            add_node(out, v, driver->nodes[i].path + sizeof dev - 1);
}

static int find_nodes(struct task *t, struct nodes *out, struct err *e)
{
    const struct start *s = t->start;
    *out = (struct nodes){ 0 };
    for (uint32_t i = 0; i < s->n_gpus; i++) {
        const struct gpu_info *g = gpu_of(t->env, &s->gpu[i]);
        if (!g)
            return err_set(e, ERR_NOT_FOUND, "this machine has no GPU %s", s->gpu[i].uuid);
        if (g->minor < 0) /* simulated, or behind one common node */
            continue;
        const char *name = arena_printf(&t->arena, "nvidia%d", g->minor);
        if (!add_node(out, t->env, name))
            return err_set(e, ERR_NOT_FOUND, "the device '%s/%s' of GPU %u is not there",
                           t->env->dev, name, g->index);
    }
    for (uint32_t i = 0; weak_here("gpu_nodes") && i < t->env->node.gpus.n; i++)
        add_node(out, t->env, arena_printf(&t->arena, "nvidia%d", t->env->node.gpus.gpu[i].minor));
    for (size_t i = 0; s->n_gpus && i < ARRAY_LEN(gpu_nodes); i++)
        add_node(out, t->env, gpu_nodes[i]);
    return 0;
}

/* --- files below /etc --- */

static void add_host_file(struct buf *out, const char *path)
{
    AUTO(buf_free) struct buf text = { 0 };
    struct err e;
    if (file_read(path, ETC_FILE_MAX / 2, &text, &e) == 0)
        buf_add(out, buf_str(&text));
}

static void write_resolv(struct task *t, struct buf *out)
{
    struct net_place place;
    struct err e;
    if (t->netns[0] && net_find(t->env->net, t->netns, &place, &e) == 0)
        net_resolv_conf(t->env->net, &place, out);
    else if (t->env->mode != KEEPER_MODE_ROOT)
        add_host_file(out, "/etc/resolv.conf");
}

static void write_hosts(struct task *t, const char *hostname, struct buf *out)
{
    add_host_file(out, "/etc/hosts");
    if (out->n && out->p[out->n - 1] != '\n')
        buf_addc(out, '\n');
    if (out->n == 0)
        buf_addz(out, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
    buf_printf(out, "%s %s\n", t->address[0] ? t->address : "127.0.1.1", hostname);
}

/* Which of them there is a place for: on the host's own /etc nothing may be created. */
static unsigned covered(bool host_image)
{
    unsigned bits = 0;
    for (int f = 0; f < BUNDLE_FILE_COUNT; f++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof path, "/etc/%s", bundle_file_name((enum bundle_file)f));
        if (!host_image || lstat(path, &st) == 0)
            bits |= 1u << f;
    }
    return bits;
}

static int write_etc(struct task *t, struct err *e)
{
    char hostname[64];
    bundle_hostname(t->name, hostname);
    for (int f = 0; f < BUNDLE_FILE_COUNT; f++) {
        AUTO(buf_free) struct buf text = BUF(ETC_FILE_MAX);
        switch ((enum bundle_file)f) {
        case BUNDLE_RESOLV: write_resolv(t, &text); break;
        case BUNDLE_HOSTS: write_hosts(t, hostname, &text); break;
        case BUNDLE_HOSTNAME: buf_printf(&text, "%s\n", hostname); break;
        case BUNDLE_FILE_COUNT: break;
        }
        const char *name = bundle_file_name((enum bundle_file)f);
        char path[LIFE_PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/%s", t->run, name);
        if (task_file_put(t->run, name, buf_str(&text), e) < 0)
            return -1;
        chmod(path, 0644); /* every user inside reads them */
    }
    return 0;
}

/* --- all of it --- */

static void homes_path(const struct task *t, char out[static LIFE_PATH_MAX + 32])
{
    snprintf(out, LIFE_PATH_MAX + 32, "%s/homes", t->env->state);
}

static int make_root(struct task *t, struct err *e)
{
    char path[LIFE_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/rootfs", t->run);
    if (!t->digest[0] && t->env->mode == KEEPER_MODE_ROOT) { /* the child builds it */
        t->spawn->skeleton = rootfs_skeleton(&t->env->host, t->env->skeleton, &t->arena);
        return 0;
    }
    if (!t->digest[0] && rootfs_build(rootfs_skeleton(&t->env->host, path, &t->arena)) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", path, strerror(errno));
    if (!t->digest[0])
        return 0;
    if (!t->scratch[0])
        return err_set(e, ERR_UNAVAILABLE, "an image needs scratch space, and there is none here");
    if (image_mount(t->env->images, t->digest, t->scratch, path, e) < 0)
        return -1;
    t->own_rootfs = true;
    return 0;
}

static int make_scratch(struct task *t, struct err *e)
{
    const struct start *s = t->start;
    if (!t->env->scratch)
        return 0;
    struct scratch_want want = { .mib = weak_or("scratch_size",
                                                s->scratch_mib ? s->scratch_mib : 1024, 250),
                                 .uid = s->user.uid,
                                 .gid = s->user.gid };
    if (scratch_take(t->env->scratch, &want, t->scratch, e) < 0)
        return -1;
    return task_file_put(t->run, "scratch", str_of(t->scratch), e);
}

/* Without root it is the user who mounts, and the runtime has to be told. */
static const struct bundle_bind *own_volumes(const struct start *s, struct arena *a)
{
    struct bundle_bind *list = arena_array(a, struct bundle_bind, s->n_volumes + 1);
    for (uint32_t i = 0; i < s->n_volumes; i++) {
        struct stat st;
        const char *path = s->volume[i].from;
        list[i] = (struct bundle_bind){ path, stat(path, &st) == 0 && S_ISREG(st.st_mode) };
    }
    return list;
}

static int put_bundle(struct task *t, const struct bundle_place *p, const char *name,
                      const struct bundle_begin *b, struct err *e)
{
    char bundle[LIFE_PATH_MAX + 32];
    snprintf(bundle, sizeof bundle, "%s/bundle", t->run);
    AUTO(buf_free) struct buf text = BUF(BUNDLE_MAX);
    return bundle_write(t->start, p, b, &text, e) < 0
             ? -1
             : task_file_put(bundle, name, buf_str(&text), e);
}

static int write_bundle(struct task *t, const struct nodes *nodes, const struct cdi_edits *driver,
                        struct err *e)
{
    const struct start *s = t->start;
    char rootfs[LIFE_PATH_MAX + 32], bundle[LIFE_PATH_MAX + 32], homes[LIFE_PATH_MAX + 32];
    bool root = t->env->mode == KEEPER_MODE_ROOT;
    snprintf(rootfs, sizeof rootfs, "%s/rootfs", t->run);
    snprintf(bundle, sizeof bundle, "%s/bundle", t->run);
    homes_path(t, homes);
    if (mkdir(bundle, 0700) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", bundle, strerror(errno));
    bool copied = weak_or("sealed_init", launch_init_copy(t) >= 0, false);
    struct bundle_place p = {
        .mode = t->env->mode,
        .rootfs = root && !t->digest[0] ? t->env->skeleton : arena_printf(&t->arena, "%s", rootfs),
        .host = t->digest[0] ? NULL : &t->env->host,
        .netns = t->netns[0] ? t->netns : NULL,
        .scratch = t->scratch[0] ? t->scratch : NULL,
        .files = t->run,
        .cover = covered(!t->digest[0]),
        .init = copied ? NULL : t->env->init,
        .volume = root ? NULL : own_volumes(s, &t->arena),
        .dev = t->env->dev,
        .node = nodes->name,
        .driver = driver,
        .nofile_max = t->env->nofile_max,
        .core_max = t->env->core_max,
    };
    struct layout_from from = { .state = t->env->state,
                                .run = t->env->run,
                                .homes = arena_printf(&t->arena, "%s", homes),
                                .workdir = t->begin.folder,
                                .workdir_else = t->begin_else.folder };
    if (root)
        t->spawn->compose = layout_make(s, &p, &from, &t->arena);
    if (t->begin_else.folder && put_bundle(t, &p, "else.json", &t->begin_else, e) < 0)
        return -1;
    return put_bundle(t, &p, "config.json", &t->begin, e);
}

static int make_group(struct task *t, const struct nodes *nodes, struct err *e)
{
    const struct start *s = t->start;
    struct cgroup_limits l = {
        .cpu_milli = s->cpu_milli,
        .mem_mib = s->mem_mib,
        .pids_max = s->pids_max ? s->pids_max + PROCESSES_OF_OURS : 0,
        .devices = nodes->device,
        .n_devices = nodes->n_devices,
    };
    return cgroup_make(t->env->cgroups, t->name, &l, e);
}

/* Where its user was, when that is a folder inside the job too: the child looks, with the user's rights. */
static void choose_workdir(struct task *t, const struct rootfs_plan *host)
{
    const struct start *s = t->start;
    const char *outside = NULL;
    struct err e;
    t->begin = (struct bundle_begin){ .folder = s->workdir };
    if (s->workdir_given || !s->cwd || t->digest[0])
        return;
    const char *note =
        arena_printf(&t->arena, "the folder %s is not there inside the job: it begins in %s",
                     s->cwd, s->workdir);
    if (place_outside(s, host, s->cwd, &t->arena, &outside, &e) < 0 || !outside) {
        t->begin.note = note;
        return;
    }
    t->begin.folder = s->cwd;
    t->begin_else = (struct bundle_begin){ .folder = s->workdir, .note = note };
}

/* Where that is outside: without a root of its own the child can only look there. */
static int look_outside(struct task *t, const struct rootfs_plan *host, struct err *e)
{
    struct spawn_want *w = t->spawn;
    bool other = t->begin_else.folder;
    if (t->env->mode == KEEPER_MODE_PLAIN) {
        w->look = other ? t->begin.folder : NULL; /* else entering it tells */
        w->look_else = t->begin_else.folder;
        return 0;
    }
    const char *last = NULL, *first = NULL;
    if (place_outside(t->start, host, t->start->workdir, &t->arena, &last, e) < 0 ||
        (other && place_outside(t->start, host, t->begin.folder, &t->arena, &first, e) < 0))
        return -1;
    if (t->env->mode == KEEPER_MODE_ROOT)
        return 0;
    w->look = other ? first : last;
    w->look_else = other ? last : NULL;
    return 0;
}

int place_make(struct task *t, struct err *e)
{
    struct nodes nodes;
    struct cdi_edits driver;
    AUTO(cdi_close_p) struct cdi *specs = NULL;
    bool plain = t->env->mode == KEEPER_MODE_PLAIN;
    const struct rootfs_plan *host = t->digest[0] ? NULL : &t->env->host;
    choose_workdir(t, host);
    if (look_outside(t, host, e) < 0)
        return -1;
    if (find_nodes(t, &nodes, e) < 0 ||
        driver_find(t->env, t->start, &t->arena, &specs, &driver, e) < 0)
        return -1;
    add_driver_nodes(&nodes, t->env, &driver);
    start_add_env(t->start, driver.env, driver.n_env, &t->arena);
    if (make_group(t, &nodes, e) < 0)
        return -1;
    fail_point("keeper.after_cgroup");
    if (plain)
        return 0;
    if (make_scratch(t, e) < 0)
        return -1;
    fail_point("keeper.after_scratch");
    if (make_root(t, e) < 0)
        return -1;
    fail_point("keeper.after_rootfs");
    if (write_etc(t, e) < 0 || write_bundle(t, &nodes, &driver, e) < 0)
        return -1;
    fail_point("keeper.after_bundle");
    return 0;
}
