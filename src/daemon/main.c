/* nightshiftd: puts the parts together, runs the loop, stops cleanly. */
#include <errno.h>
#include <libgen.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "control/jump.h"
#include "daemon/check.h"
#include "daemon/docs.h"
#include "daemon/engines.h"
#include "daemon/notify.h"
#include "daemon/numbers.h"
#include "daemon/saving.h"
#include "daemon/site.h"
#include "daemon/tenancy.h"
#include "sys/file.h"
#include "sys/zone.h"

#define STOP_WAIT_MS 20000
#define KEEPER_ARGS 64
#define DOCTOR_ARGS 256
#define LARGE_BYTES (128 << 10)

struct daemon {
    struct config config;
    struct site site;
    struct clock clock;
    struct steady steady;
    struct clock_shift turned[3]; /* for tests */
    char boot_id[40];
    struct log *log;
    struct loop *loop;
    struct store *store;
    struct auth *auth;
    struct nss *nss;
    struct history *history;
    struct ways *ways;
    const char *signin_argv[2], *send_argv[2];
    struct notices *notices;
    struct control *control;
    struct engine engine;
    struct tenancy *tenancy;
    struct vouch *vouch; /* NULL: no cluster */
    struct api *api;
    struct http_server *on_socket, *on_tcp;
    const char *keeper_argv[KEEPER_ARGS];
    size_t keeper_args;
    const char *doctor_argv[DOCTOR_ARGS];
    struct loop_watch *give_up, *poll;
    int stops; /* how often we were told to stop */
};

static int make_folder(const char *path, mode_t mode, struct err *e)
{
    char part[4096];
    if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
        return err_set(e, ERR_INVALID, "the path is too long: %.100s…", path);
    for (char *p = part + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(part, 0755) < 0 && errno != EEXIST)
                return err_set(e, ERR_UNAVAILABLE, "cannot make %s: %s", part, strerror(errno));
            *p = '/';
        }
    if (mkdir(path, mode) < 0 && errno != EEXIST) {
        err_set(e, ERR_UNAVAILABLE, "cannot make %s: %s", path, strerror(errno));
        return err_hint(e, "run as root, or choose folders with --state and --run");
    }
    return 0;
}

static int make_folders(struct daemon *d, struct err *e)
{
    /* Others pass through to the socket and to homes; what lies inside is closed on its own. */
    char path[4096];
    snprintf(path, sizeof path, "%s/homes", d->config.state);
    return make_folder(d->config.state, 0711, e) < 0 || make_folder(d->config.run, 0755, e) < 0 ||
                   make_folder(path, 0711, e) < 0
             ? -1
             : 0;
}

/* ---- the keeper's command line ---- */

static void keeper_arg(struct daemon *d, const char *name, const char *value)
{
    if (!value || d->keeper_args + 3 >= KEEPER_ARGS)
        return;
    d->keeper_argv[d->keeper_args++] = name;
    d->keeper_argv[d->keeper_args++] = value;
}

static void keeper_number(struct daemon *d, const char *name, uint64_t value)
{
    if (value)
        keeper_arg(d, name, arena_printf(&d->config.arena, "%llu", (unsigned long long)value));
}

static const char *libexec_folder(struct daemon *d)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (d->config.libexec || n <= 0)
        return d->config.libexec ? d->config.libexec : NS_LIBEXEC;
    self[n] = '\0';
    const char *here = arena_printf(&d->config.arena, "%s", dirname(self));
    const char *beside = arena_printf(&d->config.arena, "%s/nightshift-keeper", here);
    return access(beside, X_OK) == 0 ? here : NS_LIBEXEC;
}

static void keeper_command(struct daemon *d)
{
    const struct config *c = &d->config;
    struct arena *a = &d->config.arena;
    const char *libexec = libexec_folder(d);
    d->keeper_argv[d->keeper_args++] = arena_printf(a, "%s/nightshift-keeper", libexec);
    keeper_arg(d, "--state", c->state);
    keeper_arg(d, "--run", c->run);
    keeper_arg(d, "--init", arena_printf(a, "%s/nightshift-init", libexec));
    keeper_arg(d, "--mode", c->containment);
    keeper_arg(d, "--log-level", c->log_level);
    keeper_arg(d, "--node-name", c->node_name);
    keeper_arg(d, "--gpu-model", c->gpu_model);
    keeper_arg(d, "--dev", c->dev);
    keeper_arg(d, "--nvml", c->nvml);
    keeper_arg(d, "--cgroup", c->cgroup);
    keeper_arg(d, "--net-range", c->net_range);
    keeper_arg(d, "--net-prefix", c->net_prefix);
    keeper_arg(d, "--net-table", c->net_table);
    keeper_arg(d, "--net-users", c->net_users);
    keeper_arg(d, "--registries", c->registries);
    keeper_number(d, "--min-uid", c->uid_min);
    keeper_number(d, "--cpu-milli", c->cpus_milli);
    keeper_number(d, "--mem-mib", c->mem_bytes >> 20);
    keeper_number(d, "--simulate-gpus", c->simulate_gpus);
    keeper_number(d, "--gpu-mem-mib", c->gpu_mem_bytes >> 20);
    keeper_number(d, "--images-mib", c->images_bytes >> 20);
    if (!c->network)
        d->keeper_argv[d->keeper_args++] = "--no-network";
    if (strcmp(c->on_stop, "end") == 0)
        d->keeper_argv[d->keeper_args++] = "--tidy";
    if (c->end_leftovers)
        d->keeper_argv[d->keeper_args++] = "--end-leftovers";
    if (strcmp(c->log_format, "json") == 0)
        d->keeper_argv[d->keeper_args++] = "--log-json";
    d->keeper_argv[d->keeper_args] = NULL;
}

/* ---- the command line that checks this machine: our own, with our own settings ---- */

static void doctor_command(struct daemon *d, int argc, char *const *argv)
{
    size_t n = 0;
    d->doctor_argv[n++] = "/proc/self/exe"; /* also when an upgrade took its file away */
    for (int i = 1; i < argc && n + 3 < DOCTOR_ARGS; i++)
        d->doctor_argv[n++] = argv[i];
    d->doctor_argv[n++] = "--check";
    d->doctor_argv[n++] = "--json";
    d->doctor_argv[n] = NULL;
}

/* ---- parts ---- */

static int open_log(struct daemon *d)
{
    enum log_level level = LOG_INFO_;
    log_level_parse(d->config.log_level, &level);
    bool json = strcmp(d->config.log_format, "json") == 0;
    d->log = log_new(stderr, level, json ? LOG_JSON : LOG_TEXT, d->clock);
    return 0;
}

static bool trouble_of(void *ctx, struct str node, uint64_t gpu_mask, struct buf *out)
{
    struct daemon *d = ctx;
    return history_trouble(d->history, node, gpu_mask, out);
}

/* Two files turn it in tests: one lets time pass, the other sets the wall clock alone (tests/README.md). */
static int begin_clock(struct daemon *d, struct store *s, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    const char *shift = getenv("NIGHTSHIFT_TEST_CLOCK"), *wall = getenv("NIGHTSHIFT_TEST_WALL");
    struct steady_config sc = { clock_wall(), clock_boot(), steady_boot_id(d->boot_id) };
    struct str mark = STR("");
    if (s && store_meta(s, CONTROL_CLOCK_META, &a, &mark, e) < 0 && e->code != ERR_NOT_FOUND)
        return -1;
    if (shift) {
        sc.wall = clock_shifted(&d->turned[0], sc.wall, shift);
        sc.boot = clock_shifted(&d->turned[1], sc.boot, shift);
    }
    if (wall)
        sc.wall = clock_shifted(&d->turned[2], sc.wall, wall);
    steady_begin(&d->steady, &sc, mark);
    d->clock = steady_clock(&d->steady);
    return 0;
}

static int open_control(struct daemon *d, struct err *e)
{
    const struct config *c = &d->config;
    bool single = !engines_is_kube(c) && geteuid() != 0 && strcmp(c->keeper, "external") != 0;
    char path[4096], zone_name[ZONE_NAME_MAX + 1];
    struct tz zone = tz_utc();
    struct err why;
    if (zone_of_host("", zone_name, &why) < 0 ||
        zone_find("", str_of(zone_name), clock_now_ms(&d->clock), &zone, &why) < 0)
        log_event(d->log, LOG_WARN_, "zone.utc", "why=%s", why.msg);
    snprintf(path, sizeof path, "%s/nightshift.db", c->state);
    d->store = store_open(d->loop, path, d->log, e);
    if (!d->store || begin_clock(d, d->store, e) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/history", c->state);
    d->history = history_open(path, e);
    if (!d->history)
        return -1;
    d->send_argv[0] = arena_printf(&d->config.arena, "%s/nightshift-send", libexec_folder(d));
    struct notify_in in = { c, d->loop, d->log, d->clock, d->store, d->auth, d->send_argv };
    d->notices = notify_open(&in, e);
    if (!d->notices)
        return -1;
    struct control_config cc = { .ear = notify_ear(d->notices),
                                 .loop = d->loop,
                                 .store = d->store,
                                 .log = d->log,
                                 .clock = d->clock,
                                 .steady = &d->steady,
                                 .policy = d->site.policy,
                                 .tenant = d->site.tenant,
                                 .tenants = d->site.tenants,
                                 .pool = d->site.pool,
                                 .pools = d->site.pools,
                                 .zone = zone,
                                 .uid_base = (uint32_t)c->uid_base,
                                 .uid_min = (uint32_t)c->uid_min,
                                 .single_user = single,
                                 .nss = d->nss,
                                 .forget_tasks = c->forget_tasks,
                                 .trouble = trouble_of,
                                 .trouble_ctx = d,
                                 .scratch_mib = (uint32_t)(c->scratch_bytes >> 20),
                                 .keep = { .logs_ms = c->keep_logs_ms,
                                           .jobs_ms = c->keep_jobs_ms,
                                           .logs_bytes = c->keep_logs_bytes,
                                           .daily_percent = (uint32_t)c->keep_daily,
                                           .audit_ms = c->keep_audit_ms },
                                 .bounds = { .user_jobs = c->jobs_per_user,
                                             .tenant_jobs = c->jobs_per_tenant,
                                             .jobs = c->jobs_max } };
    snprintf(path, sizeof path, "%s/homes", c->state);
    cc.homes = path;
    d->control = control_new(&cc, e);
    if (single)
        auth_set_only_user(d->auth, geteuid());
    return d->control ? 0 : -1;
}

static int open_engine(struct daemon *d, struct err *e)
{
    keeper_command(d);
    struct engines_in in = { .config = &d->config,
                             .site = &d->site,
                             .loop = d->loop,
                             .log = d->log,
                             .clock = d->clock,
                             .keeper_argv = d->keeper_argv,
                             .sink = control_engine_event,
                             .ctx = d->control };
    if (engines_open(&in, &d->engine, e) < 0 || control_start(d->control, d->engine, e) < 0)
        return -1;
    d->tenancy = tenancy_new(d->loop, d->log, d->control, d->auth);
    d->vouch = engines_vouch(&in, e);
    return engines_is_kube(&d->config) && !d->vouch ? -1 : 0;
}

static const char *engine_mode(void *ctx)
{
    struct daemon *d = ctx;
    return engines_mode(&d->engine);
}

static int read_pem(struct daemon *d, const char *path, const char **out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(0);
    if (!path)
        return 0;
    if (file_read(path, 1 << 20, &text, e) < 0)
        return -1;
    *out = arena_strndup(&d->config.arena, text.p, text.n);
    return 0;
}

/* "127.0.0.1:7433", "[::1]:7433", ":7433" */
static int split_address(struct daemon *d, struct http_config *hc, struct err *e)
{
    const char *listen = d->config.listen, *colon = strrchr(listen, ':');
    uint64_t port = 0;
    if (!colon || parse_u64(str_of(colon + 1), 65535, &port, e) < 0) {
        err_set(e, ERR_INVALID, "listen: '%s' is not HOST:PORT", listen);
        return err_hint(e, "e.g. 127.0.0.1:7433, or none");
    }
    struct str host = { listen, (size_t)(colon - listen) };
    if (host.n > 1 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = (struct str){ host.p + 1, host.n - 2 };
    hc->host = host.n ? arena_strndup(&d->config.arena, host.p, host.n) : "127.0.0.1";
    hc->port = (uint16_t)port;
    return 0;
}

/* As people reach us, whatever stands before us. */
static bool is_https(const struct config *c)
{
    return c->tls_cert || (c->external_url && strncasecmp(c->external_url, "https:", 6) == 0);
}

static int open_http(struct daemon *d, struct err *e)
{
    const struct config *c = &d->config;
    struct api_config ac = { .loop = d->loop,
                             .log = d->log,
                             .clock = d->clock,
                             .store = d->store,
                             .control = d->control,
                             .auth = d->auth,
                             .nss = d->nss,
                             .history = d->history,
                             .notices = d->notices,
                             .notice_idle_ms = c->notice_idle_ms,
                             .mode = engine_mode,
                             .mode_ctx = d,
                             .machine_of = d->vouch ? vouch_machine : NULL,
                             .machine_ctx = d->vouch,
                             .doctor_argv = d->doctor_argv,
                             .signin_argv = d->signin_argv,
                             .signin_socket =
                                 arena_printf(&d->config.arena, "%s/signin.sock", c->run),
                             .ways = d->ways,
                             .state = c->state,
                             .notice = c->notice,
                             .session_ms = c->session_ms,
                             .secure_cookies = is_https(c),
                             .external_url = c->external_url,
                             .rate_per_s = (uint32_t)c->rate_user,
                             .rate_burst = (uint32_t)c->rate_user_burst,
                             .profile = d->site.profile,
                             .profiles = d->site.profiles };
    d->signin_argv[0] = arena_printf(&d->config.arena, "%s/nightshift-signin", libexec_folder(d));
    d->ways = ways_read(c->file ? json_find(c->file, "signin") : NULL, e);
    if (!d->ways)
        return err_wrap(e, "%s", c->file_path);
    ac.ways = d->ways;
    d->api = api_new(&ac, e);
    if (!d->api)
        return -1;
    struct http_config hc = { .unix_path = c->socket,
                              .unix_mode = 0666,
                              .body_max = c->body_max_bytes,
                              .connections_max = (uint32_t)c->connections_max,
                              .timeout_s = (uint32_t)(c->timeout_ms / 1000),
                              .stream_queue_max = 8u << 20,
                              .handler = api_handle,
                              .ctx = d->api,
                              .log = d->log };
    d->on_socket = http_new(d->loop, &hc, e);
    if (!d->on_socket)
        return -1;
    if (strcmp(c->listen, "none") == 0)
        return 0;
    hc.unix_path = NULL;
    hc.trusted_proxies = c->trusted_proxies;
    hc.rate_per_s = (uint32_t)c->rate_per_s;
    hc.rate_burst = (uint32_t)c->rate_burst;
    if (split_address(d, &hc, e) < 0 || read_pem(d, c->tls_cert, &hc.tls_cert, e) < 0 ||
        read_pem(d, c->tls_key, &hc.tls_key, e) < 0)
        return -1;
    d->on_tcp = http_new(d->loop, &hc, e);
    if (!d->on_tcp)
        return -1;
    if (!hc.tls_cert && strcmp(hc.host, "127.0.0.1") != 0 && strcmp(hc.host, "::1") != 0)
        log_event(d->log, LOG_WARN_, "listening.without_tls", "address=%s hint=%s", hc.host,
                  "tokens can be read on the network: set tls_cert and tls_key");
    log_event(d->log, LOG_INFO_, "listening", "socket=%s address=%s port=%u tls=%s", c->socket,
              hc.host, (unsigned)http_port(d->on_tcp), hc.tls_cert ? "yes" : "no");
    return 0;
}

/* ---- stopping ---- */

static void leave(void *ctx)
{
    struct daemon *d = ctx;
    loop_stop(d->loop);
}

/* Gone when nothing holds a GPU any more, or when it took too long. */
static void on_poll(void *ctx)
{
    struct daemon *d = ctx;
    if (control_holding(d->control) == 0)
        leave(d);
}

static void on_stop(void *ctx)
{
    struct daemon *d = ctx;
    bool end = strcmp(d->config.on_stop, "end") == 0;
    if (d->stops++ > 0) { /* again: now */
        leave(d);
        return;
    }
    log_event(d->log, LOG_INFO_, "stopping", "jobs=%s", end ? "end" : "keep");
    http_quiesce(d->on_socket);
    if (d->on_tcp)
        http_quiesce(d->on_tcp);
    api_stop(d->api);
    control_stop(d->control);
    if (!end || control_holding(d->control) == 0) {
        leave(d);
        return;
    }
    control_end_all(d->control);
    d->give_up = loop_timer(d->loop, leave, d);
    loop_timer_set(d->give_up, STOP_WAIT_MS, 0);
    d->poll = loop_timer(d->loop, on_poll, d);
    loop_timer_set(d->poll, 20, 20);
}

static void close_all(struct daemon *d)
{
    struct err e;
    bool end = strcmp(d->config.on_stop ? d->config.on_stop : "keep", "end") == 0;
    http_free(d->on_tcp);
    http_free(d->on_socket);
    api_free(d->api);
    vouch_free(d->vouch);
    if (d->store && store_flush(d->store, STOP_WAIT_MS, &e) < 0)
        log_event(d->log, LOG_ERROR_, "store.flush", "why=%s", e.msg);
    tenancy_free(d->tenancy);
    if (d->engine.ops && end)
        engines_end(&d->engine);
    if (d->engine.ops)
        d->engine.ops->free(d->engine.self);
    control_free(d->control);
    notices_free(d->notices);
    store_close(d->store);
    history_close(d->history);
    auth_free(d->auth);
    nss_free(d->nss);
    ways_free(d->ways);
    loop_free(d->loop);
    if (d->log)
        log_plain(d->log, LOG_INFO_, "stopped");
    log_free(d->log);
    config_clear(&d->config);
}

/* ---- starting ---- */

static int print_help(void)
{
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    buf_addz(&b, "nightshiftd " NS_VERSION ": the control plane of Nightshift\n\n"
                 "usage: nightshiftd [--options]\n\noptions:\n");
    config_print_help(&b);
    buf_addz(&b, "\nEvery option is also a key of the settings file (log_level: debug) and a\n"
                 "variable (NIGHTSHIFT_LOG_LEVEL=debug).\n");
    return fputs(b.p, stdout) < 0;
}

static int print_config(const struct config *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct policy policy;
    if (site_read_policy(c, &policy, e) < 0)
        return err_wrap(e, "%s", c->file_path);
    config_print(c, &b);
    numbers_print(&policy, &b);
    if (fputs(b.p, stdout) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot write to standard output");
    return 0;
}

static int start(struct daemon *d, struct err *e)
{
    uint64_t files;
    if (file_limit_raise(&files, e) < 0 || begin_clock(d, NULL, e) < 0)
        return -1;
    open_log(d);
    d->loop = loop_new();
    d->auth = auth_new();
    d->nss = nss_new(&(struct nss_config){ .loop = d->loop });
    if (site_read(&d->config, d->auth, clock_now_ms(&d->clock), &d->site, e) < 0 ||
        make_folders(d, e) < 0 || open_control(d, e) < 0 || open_engine(d, e) < 0 ||
        open_http(d, e) < 0)
        return -1;
    if (!loop_signal(d->loop, SIGTERM, on_stop, d, e) ||
        !loop_signal(d->loop, SIGINT, on_stop, d, e))
        return -1;
    log_event(d->log, LOG_INFO_, "started", "version=%s pid=%d", NS_VERSION, (int)getpid());
    return 0;
}

static int fail(const struct err *e)
{
    fprintf(stderr, "nightshiftd: %s%s%s\n", e->msg, e->hint[0] ? "\n  hint: " : "", e->hint);
    return err_info(e->code)->exit_code;
}

int main(int argc, char **argv)
{
    AUTO(close_all) struct daemon d = { 0 };
    struct err e = { 0 };
    umask(022);
    signal(SIGPIPE, SIG_IGN);
    /* Passwords pass through: no core, and no other process of our user looks inside.  Not by a limit, which
     * the keeper would have from us, and jobs from it. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* Bodies and batches go back to the system when they are freed: left to itself the bound grows,
     * and they end up below a hundred thousand small jobs. */
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    if (argc == 3 && strcmp(argv[1], "--docs") == 0) {
        if (docs_print(argv[2], &e) == 0)
            return 0;
    } else if (config_read(&d.config, argc - 1, argv + 1, &e) == 0) {
        if (d.config.help)
            return print_help();
        if (d.config.version)
            return printf("nightshiftd %s\n", NS_VERSION) < 0;
        if (d.config.check)
            return check_run(&d.config, libexec_folder(&d));
        if (saving_wanted(&d.config)) {
            if (saving_run(&d.config, &e) == 0)
                return 0;
            return fail(&e);
        }
        doctor_command(&d, argc, argv);
        if (d.config.print ? print_config(&d.config, &e) == 0 : start(&d, &e) == 0) {
            if (!d.config.print)
                loop_run(d.loop);
            return 0;
        }
    }
    return fail(&e);
}
