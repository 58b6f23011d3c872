#include "keeper/layout.h"

#include "sys/weak.h"

static struct compose_mount *add(struct compose *c, enum compose_kind k, const char *from,
                                 const char *at)
{
    struct compose_mount *m = &c->mount[c->n++];
    m->kind = k;
    m->from = from;
    m->at = at;
    m->read_only = k == COMPOSE_SYSTEM;
    return m;
}

bool layout_is_own_home(const char *home, const char *homes)
{
    size_t n = strlen(homes);
    return strncmp(home, homes, n) == 0 && home[n] == '/' && home[n + 1] != '.' &&
           home[n + 1] != '\0' && !strchr(home + n + 1, '/');
}

static void add_system(struct compose *c, const struct bundle_place *p, struct arena *a)
{
    for (size_t i = 0; p->host && i < p->host->n; i++)
        if (!p->host->folder[i].link[0])
            add(c, COMPOSE_SYSTEM, p->host->folder[i].path, p->host->folder[i].path);
    if (weak_here("view"))
        add(c, COMPOSE_SYSTEM, "/run", "/run")->read_only = false;
    for (int f = 0; f < BUNDLE_FILE_COUNT; f++) {
        const char *name = bundle_file_name((enum bundle_file)f);
        if (p->cover & 1u << f)
            add(c, COMPOSE_SYSTEM, arena_printf(a, "%s/%s", p->files, name),
                arena_printf(a, "/etc/%s", name));
    }
    for (size_t i = 0; i < p->driver->n_mounts; i++)
        add(c, COMPOSE_SYSTEM, arena_printf(a, "%s", p->driver->mounts[i].host_path),
            arena_printf(a, "%s", p->driver->mounts[i].path)); /* the specs are closed before */
    if (p->init)
        add(c, COMPOSE_SYSTEM, p->init, BUNDLE_INIT);
}

static void add_tmp(struct compose *c, const struct start *s, const struct bundle_place *p,
                    struct arena *a)
{
    if (weak_here("private_tmp")) {
        add(c, COMPOSE_SCRATCH, "/tmp", "/tmp");
        return;
    }
    if (p->scratch) {
        add(c, COMPOSE_SCRATCH, arena_printf(a, "%s/tmp", p->scratch), "/tmp");
        add(c, COMPOSE_SCRATCH, arena_printf(a, "%s/var-tmp", p->scratch), "/var/tmp");
        return;
    }
    const char *options = arena_printf(
        a, "mode=1777,size=%llum", (unsigned long long)(s->scratch_mib ? s->scratch_mib : 1024));
    add(c, COMPOSE_TMPFS, options, "/tmp");
    add(c, COMPOSE_TMPFS, options, "/var/tmp");
}

struct compose *layout_make(const struct start *s, const struct bundle_place *p,
                            const struct layout_from *from, struct arena *a)
{
    struct compose *c = arena_new(a, struct compose);
    size_t most = ROOTFS_FOLDERS_MAX + BUNDLE_FILE_COUNT + REQUEST_VOLUMES_MAX + 8;
    c->mount = arena_array(a, struct compose_mount, most + p->driver->n_mounts);
    c->root = p->rootfs;
    c->homes = from->homes;
    c->workdir = from->workdir;
    c->workdir_else = from->workdir_else;
    c->is_image = !p->host;
    c->has_hooks = p->driver->n_hooks > 0;
    c->rules = (struct source_rules){ .state = from->state,
                                      .run = from->run,
                                      .allowed = s->volumes_allow,
                                      .denied = s->volumes_deny,
                                      .who = { .uid = s->user.uid,
                                               .gid = s->user.gid,
                                               .groups = s->user.groups,
                                               .n_groups = s->user.n_groups } };
    add_system(c, p, a);
    add_tmp(c, s, p, a);
    bool own = layout_is_own_home(s->user.home.p, from->homes);
    add(c, own ? COMPOSE_OWN_HOME : COMPOSE_HOME, s->user.home.p, s->user.home.p)->instead =
        s->home_else && layout_is_own_home(s->home_else, from->homes) ? s->home_else : NULL;
    for (uint32_t i = 0; i < s->n_volumes; i++)
        add(c, COMPOSE_VOLUME, s->volume[i].from, s->volume[i].to)->read_only =
            s->volume[i].read_only;
    return c;
}
