#include "keeper/net_slot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "keeper/net_ns.h"
#include "sys/file.h"

#define READY_BYTES 64
#define GUARDED "guarded"
#define GUARD_BYTES (64u << 10)

struct net_slot_job {
    const struct net_site *site;
    struct net_slot slot;
    struct tool *tool;
    net_slot_fn *fn;
    void *ctx;
};

struct cidr net_site_subnet(const struct net_site *s, uint32_t number)
{
    return (struct cidr){ s->range.base + (number << (32 - s->subnet_bits)), s->subnet_bits };
}

uint32_t net_site_tenants(const struct net_site *s)
{
    return UINT32_C(1) << (s->subnet_bits - s->range.bits);
}

uint32_t net_site_slots(const struct net_site *s)
{
    return (UINT32_C(1) << (32 - s->subnet_bits)) - 3; /* network, broadcast, gateway */
}

const char *net_site_bridge(const struct net_site *s, uint32_t number, char out[static NET_DEV_MAX])
{
    snprintf(out, NET_DEV_MAX, "%.10s%u", s->prefix, number % 10000);
    return out;
}

static const char *path_of(const struct net_site *s, const char *folder, const char *slot,
                           char out[static NET_PATH_MAX])
{
    snprintf(out, NET_PATH_MAX, "%s/%s/%s", s->run_dir, folder, slot);
    return out;
}

const char *net_site_path(const struct net_site *s, const char *slot, char out[static NET_PATH_MAX])
{
    return path_of(s, "netns", slot, out);
}

int net_site_prepare(const struct net_site *s, struct err *e)
{
    static const char *const folders[] = { "",          "netns",     "net",     "net/conf",
                                           "net/guard", "net/ready", "net/ipam" };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[NET_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", s->run_dir, folders[i]);
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_set(e, ERR_UNAVAILABLE, "cannot make folder '%s': %s", path,
                           strerror(errno));
    }
    return 0;
}

bool net_slot_parse(const struct net_site *s, struct str name, struct net_slot *out)
{
    size_t lead = strlen(s->prefix);
    struct str number, k;
    uint64_t n, ignored;
    struct err e;
    if (name.n >= NET_SLOT_NAME || name.n <= lead || memcmp(name.p, s->prefix, lead) != 0)
        return false;
    bool ok = str_cut((struct str){ name.p + lead, name.n - lead }, '.', &number, &k) &&
              parse_u64(number, net_site_tenants(s) - 1, &n, &e) == 0 &&
              parse_u64(k, UINT32_MAX, &ignored, &e) == 0;
    if (!ok)
        return false;
    *out = (struct net_slot){ .number = (uint32_t)n };
    memcpy(out->name, name.p, name.n);
    return true;
}

bool net_slot_ready(const struct net_site *s, struct net_slot *slot)
{
    char path[NET_PATH_MAX];
    AUTO(buf_free) struct buf text = BUF(READY_BYTES);
    struct err ignored;
    struct str rest, line = { "", 0 };
    uint32_t ip;
    if (!net_ns_is_bound(net_site_path(s, slot->name, path)) ||
        file_read(path_of(s, "net/ready", slot->name, path), READY_BYTES, &text, &ignored) < 0)
        return false;
    rest = buf_str(&text);
    if (!str_next_line(&rest, &line) || !ip4_parse(str_trim(line), &ip))
        return false;
    ip4_format(ip, slot->address);
    slot->guarded = str_next_line(&rest, &line) && str_is(str_trim(line), GUARDED);
    return true;
}

/* A lock of the open file, so it goes with the descriptor to the plugin and lasts as long as the
 * plugin does, also when we are killed. */
static int lock(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_SETLK, &whole);
}

bool net_slot_busy(const struct net_site *s, const struct net_slot *slot)
{
    char path[NET_PATH_MAX];
    AUTO(file_close_p) int fd = open(path_of(s, "net/conf", slot->name, path), O_RDWR | O_CLOEXEC);
    return fd >= 0 && lock(fd) < 0 && (errno == EAGAIN || errno == EACCES);
}

void net_slot_conf(const struct net_site *s, const struct net_slot *slot, unsigned mtu,
                   struct buf *out)
{
    char bridge[NET_DEV_MAX], ip[IP4_TEXT], text[NET_PATH_MAX];
    struct cidr subnet = net_site_subnet(s, slot->number);
    struct json_out w = { .b = out };
    net_site_bridge(s, slot->number, bridge);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "cniVersion", STR("0.4.0")); /* the newest that Ubuntu 22.04's plugins know */
    json_put_str(&w, "name", str_of(bridge));
    json_put_str(&w, "type", STR("bridge"));
    json_put_str(&w, "bridge", str_of(bridge));
    json_put_bool(&w, "isGateway", true);
    json_put_bool(&w, "ipMasq", false); /* our own rules do it, without iptables */
    if (mtu > 0)
        json_put_u64(&w, "mtu", mtu);
    json_begin(&w, "ipam", '{');
    json_put_str(&w, "type", STR("host-local"));
    snprintf(text, sizeof text, "%s/net/ipam", s->run_dir);
    json_put_str(&w, "dataDir", str_of(text));
    json_begin(&w, "ranges", '[');
    json_begin(&w, NULL, '[');
    json_begin(&w, NULL, '{');
    snprintf(text, sizeof text, "%s/%u", ip4_format(subnet.base, ip), subnet.bits);
    json_put_str(&w, "subnet", str_of(text));
    json_put_str(&w, "gateway", str_of(ip4_format(subnet.base + 1, ip)));
    json_end(&w, '}');
    json_end(&w, ']');
    json_end(&w, ']');
    json_begin(&w, "routes", '[');
    json_begin(&w, NULL, '{');
    json_put_str(&w, "dst", STR("0.0.0.0/0"));
    json_end(&w, '}');
    json_end(&w, ']');
    json_end(&w, '}');
    json_end(&w, '}');
}

int net_slot_result(struct str text, char out_address[static IP4_TEXT], struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    if (!d)
        return err_wrap(e, "answer of the CNI plugin");
    const struct json *ips = json_find(json_root(d), "ips");
    const struct json *first = ips && json_is_array(ips) ? json_first(ips) : NULL;
    struct str address = { 0 }, bits;
    uint32_t ip;
    if (!first || json_need_str(first, "address", 64, &address, e) < 0)
        return err_set(e, ERR_INTERNAL, "the CNI plugin gave no address");
    if (!str_cut(address, '/', &address, &bits) || !ip4_parse(address, &ip))
        return err_set(e, ERR_INTERNAL, "the CNI plugin gave the address '%.*s'", STR_ARG(address));
    ip4_format(ip, out_address);
    return 0;
}

/* A failing plugin says why in JSON on its stdout. */
static void explain(const struct tool_result *r, const char *verb, struct err *e)
{
    struct err ignored;
    if (r->late) {
        err_set(e, ERR_UNAVAILABLE, "the CNI plugin took too long to %s", verb);
        return;
    }
    AUTO(json_free_p) struct json_doc *d = r->out.n ? json_read(r->out, &ignored) : NULL;
    struct str msg = str_trim(r->err.n ? r->err : r->out);
    if (d && json_get_str(json_root(d), "msg", 4096, &msg, &ignored) < 0)
        msg = STR("it did not say why");
    err_set(e, ERR_UNAVAILABLE, "the CNI plugin could not %s (exit %d, signal %d): %.*s", verb,
            r->how.code, r->how.signal, (int)MIN(msg.n, (size_t)200), msg.p);
}

static int write_small(const char *path, struct str text, struct err *e)
{
    AUTO(file_close_p) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n)
        return err_set(e, ERR_UNAVAILABLE, "cannot write '%s': %s", path, strerror(errno));
    return 0;
}

/* By rename, so that half a marker is never seen; RUN does not outlive the machine, so no fsync. */
static int mark_ready(const struct net_site *s, const struct net_slot *slot, struct err *e)
{
    char path[NET_PATH_MAX], part[NET_PATH_MAX];
    path_of(s, "net/ready", slot->name, path);
    char text[READY_BYTES];
    snprintf(part, sizeof part, "%s/net/part", s->run_dir);
    snprintf(text, sizeof text, "%s\n%s", slot->address, slot->guarded ? GUARDED "\n" : "");
    if (write_small(part, str_of(text), e) < 0)
        return -1;
    if (rename(part, path) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", path, strerror(errno));
    return 0;
}

static struct net_slot_job *job_free(struct net_slot_job *j)
{
    free(j);
    return NULL;
}

struct net_slot_job *net_slot_stop(struct net_slot_job *j)
{
    if (!j)
        return NULL;
    tool_stop(j->tool);
    return job_free(j);
}

static int start_plugin(struct net_slot_job *j, const char *verb, tool_done_fn *done, struct err *e)
{
    const struct net_site *s = j->site;
    char conf[NET_PATH_MAX], ns[NET_PATH_MAX];
    path_of(s, "net/conf", j->slot.name, conf);
    net_site_path(s, j->slot.name, ns);
    AUTO(file_close_p) int fd = open(conf, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot open '%s': %s", conf, strerror(errno));
    if (lock(fd) < 0)
        return err_set(e, ERR_CONFLICT, "a CNI plugin still works on '%s'", j->slot.name);
    char command[32], id[64], netns[NET_PATH_MAX + 16], path[TOOL_PATH_MAX + 16];
    snprintf(command, sizeof command, "CNI_COMMAND=%s", verb);
    snprintf(id, sizeof id, "CNI_CONTAINERID=%s", j->slot.name);
    snprintf(netns, sizeof netns, "CNI_NETNS=%s", net_ns_is_bound(ns) ? ns : "");
    snprintf(path, sizeof path, "CNI_PATH=%s", s->cni_path);
    const char *env[] = {
        command, id, netns, path, "CNI_IFNAME=eth0", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL
    };
    const char *argv[] = { s->bridge_plugin, NULL };
    struct tool_spec spec = { .argv = argv, .env = env, .in_fd = fd, .timeout_ms = s->plugin_ms };
    j->tool = tool_run(s->loop, &spec, done, j, e);
    return j->tool ? 0 : -1;
}

static void end_job(struct net_slot_job *j, const struct err *e)
{
    j->fn(j->ctx, &j->slot, e);
    job_free(j);
}

static void on_guarded(void *ctx, const struct tool_result *r)
{
    struct net_slot_job *j = ctx;
    struct err e = { 0 };
    struct str said = str_trim(r->err.n ? r->err : r->out);
    bool ok = r->how.code == 0 && r->how.signal == 0;
    j->tool = NULL;
    j->slot.guarded = ok;
    if (!ok)
        err_set(&e, ERR_UNAVAILABLE, "the rules inside a task's network could not be loaded: %.*s",
                (int)MIN(said.n, (size_t)200), said.p);
    end_job(j, ok && mark_ready(j->site, &j->slot, &e) == 0 ? NULL : &e);
}

static int start_guard(struct net_slot_job *j, struct err *e)
{
    const struct net_site *s = j->site;
    AUTO(buf_free) struct buf text = BUF(GUARD_BYTES);
    char path[NET_PATH_MAX], ns[NET_PATH_MAX], enter[NET_PATH_MAX + 8];
    if (net_guard_text(&s->guard, net_site_subnet(s, j->slot.number), &text, e) < 0 ||
        write_small(path_of(s, "net/guard", j->slot.name, path), buf_str(&text), e) < 0)
        return -1;
    snprintf(enter, sizeof enter, "--net=%s", net_site_path(s, j->slot.name, ns));
    const char *argv[] = { s->guard.nsenter, enter, s->guard.nft, "-f", path, NULL };
    struct tool_spec spec = { .argv = argv, .in_fd = PROCESS_NO_FD, .timeout_ms = s->plugin_ms };
    j->tool = tool_run(s->loop, &spec, on_guarded, j, e);
    return j->tool ? 0 : -1;
}

static void on_added(void *ctx, const struct tool_result *r)
{
    struct net_slot_job *j = ctx;
    struct err e = { 0 };
    int rc = -1;
    j->tool = NULL;
    if (r->how.code || r->how.signal)
        explain(r, "give a task its address", &e);
    else
        rc = net_slot_result(r->out, j->slot.address, &e);
    if (rc == 0 && j->site->guard.nsenter && start_guard(j, &e) == 0)
        return;
    if (rc == 0 && !j->site->guard.nsenter)
        rc = mark_ready(j->site, &j->slot, &e);
    else
        rc = -1;
    end_job(j, rc < 0 ? &e : NULL);
}

static struct net_slot_job *job_new(const struct net_site *s, const struct net_slot *slot,
                                    net_slot_fn *fn, void *ctx)
{
    struct net_slot_job *j = xcalloc(1, sizeof *j);
    *j = (struct net_slot_job){ .site = s, .slot = *slot, .fn = fn, .ctx = ctx };
    return j;
}

static int write_conf(const struct net_site *s, const struct net_slot *slot, unsigned mtu,
                      struct err *e)
{
    AUTO(buf_free) struct buf conf = BUF(4096);
    char path[NET_PATH_MAX];
    net_slot_conf(s, slot, mtu, &conf);
    if (buf_check(&conf, e) < 0)
        return -1;
    return write_small(path_of(s, "net/conf", slot->name, path), buf_str(&conf), e);
}

struct net_slot_job *net_slot_add(const struct net_site *s, const struct net_slot *slot,
                                  unsigned mtu, net_slot_fn *fn, void *ctx, struct err *e)
{
    struct net_slot_job *j = job_new(s, slot, fn, ctx);
    char path[NET_PATH_MAX];
    if (write_conf(s, slot, mtu, e) < 0 || net_ns_make(net_site_path(s, slot->name, path), e) < 0 ||
        start_plugin(j, "ADD", on_added, e) < 0)
        return job_free(j);
    return j;
}

struct net_slot_job *net_slot_guard(const struct net_site *s, const struct net_slot *slot,
                                    net_slot_fn *fn, void *ctx, struct err *e)
{
    struct net_slot_job *j = job_new(s, slot, fn, ctx);
    return start_guard(j, e) < 0 ? job_free(j) : j;
}

/* The first line of a lease is its slot. */
static bool lease_of(const char *path, char out_name[static NET_SLOT_NAME])
{
    AUTO(buf_free) struct buf text = BUF(256);
    struct err ignored;
    struct str rest, line = { "", 0 };
    if (file_read(path, 256, &text, &ignored) < 0)
        return false;
    rest = buf_str(&text);
    str_next_line(&rest, &line);
    line = str_trim(line);
    if (line.n == 0 || line.n >= NET_SLOT_NAME)
        return false;
    memcpy(out_name, line.p, line.n);
    out_name[line.n] = 0;
    return true;
}

/* Only files that are named like an address are leases. */
static void drop_leases_in(const struct net_site *s, const char *bridge)
{
    char folder[NET_PATH_MAX], path[NET_PATH_MAX + 32], conf[NET_PATH_MAX];
    path_of(s, "net/ipam", bridge, folder);
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *d; (d = readdir(dir));) {
        char slot[NET_SLOT_NAME];
        uint32_t ip;
        if (!ip4_parse(str_of(d->d_name), &ip))
            continue;
        snprintf(path, sizeof path, "%s/%.20s", folder, d->d_name);
        bool known = lease_of(path, slot) && !strchr(slot, '/') &&
                     access(path_of(s, "net/conf", slot, conf), F_OK) == 0;
        if (!known)
            unlink(path);
    }
    closedir(dir);
}

void net_slot_drop_leases(const struct net_site *s)
{
    char folder[NET_PATH_MAX];
    DIR *dir = opendir(path_of(s, "net", "ipam", folder));
    if (!dir)
        return;
    for (struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.' && strlen(d->d_name) < NET_DEV_MAX)
            drop_leases_in(s, d->d_name);
    closedir(dir);
}

int net_slot_force_delete(const struct net_site *s, const struct net_slot *slot, struct err *e)
{
    char path[NET_PATH_MAX], bridge[NET_DEV_MAX];
    unlink(path_of(s, "net/ready", slot->name, path));
    if (net_ns_remove(net_site_path(s, slot->name, path), e) < 0)
        return -1;
    unlink(path_of(s, "net/guard", slot->name, path));
    unlink(path_of(s, "net/conf", slot->name, path));
    drop_leases_in(s, net_site_bridge(s, slot->number, bridge));
    return 0;
}

static void on_deleted(void *ctx, const struct tool_result *r)
{
    struct net_slot_job *j = ctx;
    struct err e = { 0 };
    (void)r; /* without its namespace the interface is gone, whatever the plugin did */
    int rc = net_slot_force_delete(j->site, &j->slot, &e);
    j->fn(j->ctx, &j->slot, rc < 0 ? &e : NULL);
    job_free(j);
}

struct net_slot_job *net_slot_delete(const struct net_site *s, const struct net_slot *slot,
                                     net_slot_fn *fn, void *ctx, struct err *e)
{
    struct net_slot_job *j = job_new(s, slot, fn, ctx);
    char path[NET_PATH_MAX];
    unlink(path_of(s, "net/ready", slot->name, path));
    if (write_conf(s, slot, 0, e) < 0 || start_plugin(j, "DEL", on_deleted, e) < 0)
        return job_free(j);
    return j;
}

void net_slot_each(const struct net_site *s, void (*fn)(void *ctx, const struct net_slot *slot),
                   void *ctx)
{
    static const char *const folders[] = { "net/conf", "netns" };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char folder[NET_PATH_MAX], conf[NET_PATH_MAX];
        struct net_slot slot;
        snprintf(folder, sizeof folder, "%s/%s", s->run_dir, folders[i]);
        DIR *dir = opendir(folder);
        for (struct dirent *d; dir && (d = readdir(dir));) {
            if (!net_slot_parse(s, str_of(d->d_name), &slot))
                continue;
            bool told = i > 0 && access(path_of(s, "net/conf", slot.name, conf), F_OK) == 0;
            if (!told)
                fn(ctx, &slot);
        }
        if (dir)
            closedir(dir);
    }
}
