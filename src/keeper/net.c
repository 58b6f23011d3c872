#include "keeper/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "keeper/net_dns.h"
#include "keeper/net_host.h"
#include "keeper/net_pool.h"
#include "keeper/net_rules.h"
#include "keeper/net_tenants.h"
#include "keeper/net_wall.h"
#include "sys/file.h"

#define LOCK_WAIT_MS 10
#define LOCK_TRIES 50

struct net {
    struct net_site site;
    struct net_pool *pool;
    struct log *log;
    char state_file[256], rules_file[256];
    char table[32], resolv_conf[256];
    char **allow; /* ends with NULL */
    char nft[TOOL_PATH_MAX], nsenter[TOOL_PATH_MAX];
    int lock_fd;
    struct net_dns dns;
    struct net_rules rules;
    struct net_wall *wall;
    void (*walls_changed)(void *ctx);
    void *ctx;
    struct net_tenants names;
    void (*removed)(void *ctx, const struct err *e);
    void *removed_ctx;
};

static unsigned or_default(unsigned v, unsigned dflt)
{
    return v ? v : dflt;
}

/* On success *out is text, or dflt when that is NULL. */
static int copy_text(const char *text, const char *dflt, char *out, size_t size, struct err *e)
{
    const char *s = text ? text : dflt;
    if (strlen(s) >= size)
        return err_set(e, ERR_TOO_LARGE, "'%.40s…' is longer than %zu characters", s, size - 1);
    memcpy(out, s, strlen(s) + 1);
    return 0;
}

static int find_plugins(const struct net_config *c, struct net_site *s, struct err *e)
{
    static const char *const usual[] = { "/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni", NULL };
    const char *const *dirs = c->plugin_dirs ? c->plugin_dirs : usual;
    const char *package = "containernetworking-plugins";
    char host_local[TOOL_PATH_MAX];
    if (tool_find("bridge", dirs, package, s->bridge_plugin, e) < 0 ||
        tool_find("host-local", dirs, package, host_local, e) < 0)
        return err_wrap(e, "looking for CNI plugins");
    AUTO(buf_free) struct buf path = BUF(sizeof s->cni_path - 1);
    for (const char *const *d = dirs; *d; d++)
        buf_printf(&path, "%s%s", path.n ? ":" : "", *d);
    if (buf_check(&path, e) < 0)
        return err_wrap(e, "folders of CNI plugins");
    return copy_text(path.p, "", s->cni_path, sizeof s->cni_path, e);
}

static int check_range(const struct net_site *s, struct err *e)
{
    bool fits = s->subnet_bits >= s->range.bits && s->subnet_bits <= 29 && s->range.bits >= 8;
    if (!fits) {
        err_set(e, ERR_INVALID, "a /%u range cannot be cut into /%u subnets", s->range.bits,
                s->subnet_bits);
        return err_hint(e, "a subnet is between the range itself and /29");
    }
    if (net_site_tenants(s) > NET_TENANTS_MAX)
        return err_set(e, ERR_INVALID, "%u subnets are too many; at most %d", net_site_tenants(s),
                       NET_TENANTS_MAX);
    return 0;
}

static int fill_site(const struct net_config *c, struct net_site *s, struct err *e)
{
    s->loop = c->loop;
    s->subnet_bits = or_default(c->subnet_bits, 24);
    s->plugin_ms = c->plugin_ms ? c->plugin_ms : 20000;
    if (copy_text(c->run_dir, "", s->run_dir, sizeof s->run_dir, e) < 0 ||
        copy_text(c->prefix, "nsb", s->prefix, 11, e) < 0 ||
        cidr_parse(str_of(c->range ? c->range : "10.203.0.0/16"), &s->range, e) < 0 ||
        check_range(s, e) < 0)
        return -1;
    return find_plugins(c, s, e);
}

static void copy_allow(struct net *n, const char *const *allow)
{
    size_t count = 0;
    while (allow && allow[count])
        count++;
    n->allow = xcalloc(count + 1, sizeof *n->allow);
    for (size_t i = 0; i < count; i++)
        n->allow[i] = xstrdup(allow[i]);
}

/* Held as long as we live; a plugin never gets it. */
static int take_lock(struct net *n, struct err *e)
{
    char path[NET_PATH_MAX];
    snprintf(path, sizeof path, "%s/net/lock", n->site.run_dir);
    n->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (n->lock_fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot open '%s': %s", path, strerror(errno));
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct timespec a_bit = { .tv_nsec = LOCK_WAIT_MS * 1000000 };
    /* A child of a killed keeper has our descriptors too, until it has become its plugin. */
    int rc = -1;
    for (int i = 0; i < LOCK_TRIES && (rc = fcntl(n->lock_fd, F_OFD_SETLK, &whole)) < 0; i++)
        nanosleep(&a_bit, NULL);
    if (rc < 0)
        return err_set(e, ERR_CONFLICT, "another keeper has the networks in '%s'", n->site.run_dir);
    return 0;
}

static int load_tenants(struct net *n, const char *state_dir, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(NET_TENANTS_BYTES);
    char dir[256];
    if (strlen(state_dir) > 200)
        return err_set(e, ERR_TOO_LARGE, "'%.40s…' is too long for a folder of ours", state_dir);
    snprintf(dir, sizeof dir, "%s/net", state_dir);
    snprintf(n->state_file, sizeof n->state_file, "%s/net/tenants.json", state_dir);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make folder '%s': %s", dir, strerror(errno));
    if (access(n->state_file, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(n->state_file, NET_TENANTS_BYTES, &text, e) < 0 ||
        net_tenants_parse(buf_str(&text), &n->names, e) < 0)
        return err_wrap(e, "which tenant has which network ('%s')", n->state_file);
    return 0;
}

static void on_wall(void *ctx, bool holds)
{
    struct net *n = ctx;
    if (n->pool)
        net_pool_cut(n->pool, !holds);
    if (n->walls_changed)
        n->walls_changed(n->ctx);
}

static void on_moved(void *ctx)
{
    struct net *n = ctx;
    if (net_guard_look(&n->site.guard) && n->pool)
        net_pool_guard(n->pool);
}

static int open_wall(struct net *n, const struct net_config *c, struct err *e)
{
    n->rules = (struct net_rules){ .table = n->table,
                                   .prefix = n->site.prefix,
                                   .range = n->site.range,
                                   .tenants = net_site_tenants(&n->site),
                                   .allow = (const char *const *)n->allow,
                                   .dns = &n->dns,
                                   .account = c->account,
                                   .accounts = c->accounts };
    memcpy(n->rules.fetcher, c->fetcher, sizeof n->rules.fetcher);
    n->site.guard = (struct net_guard){ .nsenter = n->nsenter,
                                        .nft = n->nft,
                                        .range = n->site.range,
                                        .dns = &n->dns,
                                        .allow = (const char *const *)n->allow };
    net_guard_look(&n->site.guard);
    struct net_wall_config w = { .loop = c->loop,
                                 .log = c->log,
                                 .rules = &n->rules,
                                 .nft = n->nft,
                                 .file = n->rules_file,
                                 .changed = on_wall,
                                 .moved = on_moved,
                                 .ctx = n };
    n->wall = net_wall_new(&w, e);
    return n->wall ? 0 : -1;
}

static int prepare_host(struct net *n, const struct net_config *c, struct err *e)
{
    bool routes_now, opened;
    net_dns_read(n->resolv_conf, &n->dns);
    if (open_wall(n, c, e) < 0) /* before the machine routes anything */
        return -1;
    if (net_host_forward(&routes_now, e) < 0 ||
        net_rules_open_forward(n->site.prefix, &opened, e) < 0)
        return -1;
    if (routes_now)
        log_plain(n->log, LOG_INFO_, "net.ip_forward_enabled");
    if (opened)
        log_event(n->log, LOG_INFO_, "net.iptables_forward_opened", "bridges=%s+", n->site.prefix);
    return 0;
}

static int open_net(struct net *n, const struct net_config *c, struct err *e)
{
    if (geteuid() != 0) {
        err_set(e, ERR_DENIED, "networks for tenants need root");
        return err_hint(e, "run nightshift-keeper as root, or use network: none");
    }
    if (tool_find("nft", NULL, "nftables", n->nft, e) < 0 ||
        tool_find("nsenter", NULL, "util-linux", n->nsenter, e) < 0 ||
        fill_site(c, &n->site, e) < 0 ||
        copy_text(c->table, "nightshift", n->table, sizeof n->table, e) < 0 ||
        copy_text(c->resolv_conf, "/etc/resolv.conf", n->resolv_conf, sizeof n->resolv_conf, e) < 0)
        return -1;
    snprintf(n->rules_file, sizeof n->rules_file, "%s/net/rules.nft", n->site.run_dir);
    if (net_site_prepare(&n->site, e) < 0 || take_lock(n, e) < 0 ||
        load_tenants(n, c->state_dir, e) < 0 || prepare_host(n, c, e) < 0)
        return -1;
    struct net_pool_limits l = { .idle = or_default(c->idle, 2),
                                 .max_idle = or_default(c->max_idle, 16),
                                 .parallel = or_default(c->parallel, 4),
                                 .idle_ms = c->idle_ms ? c->idle_ms : 600000 };
    n->pool = net_pool_new(&n->site, &l, n->log);
    net_pool_set_loopback_dns(n->pool, n->dns.forward);
    return 0;
}

struct net *net_new(const struct net_config *c, struct err *e)
{
    AUTO(net_free_p) struct net *n = xcalloc(1, sizeof *n);
    n->lock_fd = -1;
    n->log = c->log;
    n->walls_changed = c->walls_changed;
    n->ctx = c->ctx;
    copy_allow(n, c->allow);
    if (open_net(n, c, e) < 0)
        return NULL;
    return TAKE(n);
}

struct net *net_free(struct net *n)
{
    if (!n)
        return NULL;
    n->wall = net_wall_free(n->wall);
    net_pool_free(n->pool);
    net_tenants_clear(&n->names);
    for (size_t i = 0; n->allow[i]; i++)
        free(n->allow[i]);
    free(n->allow);
    file_close_p(&n->lock_fd);
    free(n);
    return NULL;
}

void net_free_p(struct net **n)
{
    *n = net_free(*n);
}

int net_adopt(struct net *n, const char *path, struct err *e)
{
    return net_pool_adopt(n->pool, path, e);
}

void net_sweep(struct net *n)
{
    net_pool_sweep(n->pool);
}

static int free_number(struct net *n, uint32_t *out, struct err *e)
{
    uint32_t room = net_site_tenants(&n->site);
    for (uint32_t i = 0; i < room; i++)
        if (!net_tenants_number(&n->names, i) && net_pool_claim(n->pool, i, e) == 0) {
            *out = i;
            return 0;
        }
    if (n->names.n < room)
        return err_wrap(e, "no free subnet is left");
    err_set(e, ERR_QUOTA, "there are networks for %u tenants and all are given away", room);
    return err_hint(e, "use a larger range, or smaller subnets, for the tenants' networks");
}

static int save_tenants(const struct net *n, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(NET_TENANTS_BYTES);
    net_tenants_format(&n->names, &text);
    return buf_check(&text, e) == 0 ? file_write_private(n->state_file, buf_str(&text), e) : -1;
}

static int new_number(struct net *n, struct str tenant, uint32_t *out, struct err *e)
{
    if (tenant.n == 0 || tenant.n > NET_TENANT_NAME_MAX || memchr(tenant.p, 0, tenant.n))
        return err_set(e, ERR_INVALID, "a tenant's name has 1 to %d characters",
                       NET_TENANT_NAME_MAX);
    if (free_number(n, out, e) < 0)
        return -1;
    net_tenants_add(&n->names, tenant, *out);
    if (save_tenants(n, e) == 0)
        return 0;
    free(n->names.row[--n->names.n].name); /* not written down is not given */
    return err_wrap(e, "giving tenant '%.*s' a network", STR_ARG(tenant));
}

/* Its own, which nobody else uses by now; else it moves to one that is free. */
static int own_number(struct net *n, uint32_t at, uint32_t *out, struct err *e)
{
    uint32_t was = n->names.row[at].number;
    struct err taken;
    *out = was;
    if (was >= net_site_tenants(&n->site)) {
        err_set(e, ERR_CONFLICT, "tenant '%s' has network number %u, but the range has only %u",
                n->names.row[at].name, was, net_site_tenants(&n->site));
        return err_hint(e, "use the larger range again, or remove %s", n->state_file);
    }
    if (net_pool_claim(n->pool, was, &taken) == 0)
        return 0;
    if (taken.code != ERR_CONFLICT || free_number(n, out, e) < 0) {
        *e = taken;
        return -1;
    }
    n->names.row[at].number = *out;
    if (save_tenants(n, e) == 0) {
        log_event(n->log, LOG_WARN_, "net.moved", "tenant=%s from=%u to=%u why=%s",
                  n->names.row[at].name, was, *out, taken.msg);
        return 0;
    }
    n->names.row[at].number = was;
    return -1;
}

void net_take(struct net *n, struct str tenant, net_done_fn *fn, void *ctx)
{
    const struct net_tenant_row *row = net_tenants_find(&n->names, tenant);
    uint32_t number = 0;
    struct err e;
    if (!n->wall) {
        err_set(&e, ERR_UNAVAILABLE, "the networks are being removed");
        fn(ctx, NULL, &e);
        return;
    }
    bool ok = net_wall_check(n->wall, &e) == 0 &&
              (row ? own_number(n, (uint32_t)(row - n->names.row), &number, &e) == 0
                   : new_number(n, tenant, &number, &e) == 0);
    if (!ok) {
        fn(ctx, NULL, &e);
        return;
    }
    net_pool_take(n->pool, number, fn, ctx);
}

void net_give_back(struct net *n, const char *path)
{
    net_pool_give_back(n->pool, path);
}

int net_find(struct net *n, const char *path, struct net_place *out, struct err *e)
{
    return net_pool_find(n->pool, path, out, e);
}

void net_resolv_conf(struct net *n, const struct net_place *place, struct buf *out)
{
    struct net_dns now;
    struct err e;
    net_dns_read(n->resolv_conf, &now);
    bool same = net_dns_same_servers(&n->dns, &now);
    n->dns = now;
    if (!same) { /* this machine has moved to another network */
        net_pool_set_loopback_dns(n->pool, now.forward);
        net_pool_guard(n->pool);
        if (net_wall_load(n->wall, &e) < 0)
            log_event(n->log, LOG_WARN_, "net.rules_failed", "why=%s", e.msg);
    }
    net_dns_format(&n->dns, place->gateway, out);
}

static void on_emptied(void *ctx)
{
    struct net *n = ctx;
    struct err e;
    n->wall = net_wall_free(n->wall); /* from now on nobody is to put them back */
    net_rules_close_forward(n->site.prefix);
    int rc = net_rules_remove(n->table, n->nft, &e);
    n->removed(n->removed_ctx, rc < 0 ? &e : NULL);
}

void net_remove_all(struct net *n, void (*fn)(void *ctx, const struct err *e), void *ctx)
{
    struct err e;
    n->removed = fn;
    n->removed_ctx = ctx;
    if (net_pool_empty(n->pool, on_emptied, n, &e) < 0)
        fn(ctx, &e);
}

struct net_walls net_walls(const struct net *n)
{
    return n->wall ? (struct net_walls){ net_wall_holds(n->wall), net_wall_reloads(n->wall) }
                   : (struct net_walls){ 0 };
}

struct net_counts net_counts(const struct net *n)
{
    return net_pool_counts(n->pool);
}
