#include "daemon/config.h"

#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/opts.h"
#include "base/parse.h"
#include "base/url.h"
#include "base/yaml.h"
#include "http/http.h"
#include "sys/file.h"

#define PATHS_MAX 64 /* in a list of folders */
#define PATH_BYTES 1024

enum key_type {
    KEY_TEXT,
    KEY_NUMBER,
    KEY_BOOL,
    KEY_SIZE,
    KEY_CPUS,
    KEY_DURATION,
    KEY_CHOICE,
    KEY_URL,
    KEY_NETS,
    KEY_PATHS
};

static const struct key {
    const char *name;
    enum key_type type;
    size_t offset;
    const char *dflt; /* "": unset */
    const char *value, *help;
    uint64_t max;
} keys[] = {
#define AT(member) offsetof(struct config, member)
    { "state", KEY_TEXT, AT(state), "", "DIR",
      "what must not be lost (root: /var/lib/nightshift, else the user's state folder)", 0 },
    { "run", KEY_TEXT, AT(run), "", "DIR",
      "sockets (root: /run/nightshift, else the user's runtime folder)", 0 },
    { "listen", KEY_TEXT, AT(listen), "127.0.0.1:7433", "HOST:PORT",
      "where the web page and the API are; none: on the socket only", 0 },
    { "socket", KEY_TEXT, AT(socket), "", "PATH", "the API on this machine (RUN/api.sock)", 0 },
    { "tls_cert", KEY_TEXT, AT(tls_cert), "", "FILE", "certificate chain (PEM)", 0 },
    { "tls_key", KEY_TEXT, AT(tls_key), "", "FILE", "its private key (PEM)", 0 },
    { "external_url", KEY_URL, AT(external_url), "", "URL",
      "the address that people use, e.g. of a proxy before this server: https://gpu.lab.example",
      0 },
    { "trusted_proxies", KEY_NETS, AT(trusted_proxies), "", "LIST",
      "addresses and networks of proxies whose X-Forwarded-For and -Proto are believed", 0 },
    { "libexec", KEY_TEXT, AT(libexec), "", "DIR",
      "where nightshift-keeper and nightshift-init are (beside this program, or as installed)", 0 },
    { "session", KEY_DURATION, AT(session_ms), "12h", "TIME",
      "a browser stays signed in so long at most", 0 },
    { "notice", KEY_TEXT, AT(notice), "", "TEXT",
      "what people accept when they first sign in, e.g. \"alpha: keep your own backup\"", 0 },
    { "log_level", KEY_CHOICE, AT(log_level), "info", "debug|info|warn|error", "what is logged",
      0 },
    { "log_format", KEY_CHOICE, AT(log_format), "text", "text|json", "how it is logged", 0 },
    { "engine", KEY_CHOICE, AT(engine), "local", "local|kube",
      "what runs the jobs: this machine, or a Kubernetes cluster", 0 },
    { "containment", KEY_CHOICE, AT(containment), "auto", "auto|root|rootless|plain",
      "how jobs are kept apart: containers as root, in a user namespace, or not at all", 0 },
    { "keeper", KEY_CHOICE, AT(keeper), "auto", "auto|external",
      "who starts nightshift-keeper: the daemon, or somebody else (systemd)", 0 },
    { "node_name", KEY_TEXT, AT(node_name), "", "NAME", "this machine's name (the host's)", 0 },
    { "cpus", KEY_CPUS, AT(cpus_milli), "", "N", "CPUs for jobs (all)", 1000000000 },
    { "mem", KEY_SIZE, AT(mem_bytes), "", "SIZE", "memory for jobs (all)", 0 },
    { "simulate_gpus", KEY_NUMBER, AT(simulate_gpus), "0", "N",
      "pretend to have so many GPUs: for trying it out; jobs get none", 16 },
    { "gpu_model", KEY_TEXT, AT(gpu_model), "", "NAME", "model of simulated GPUs (A100-80GB)", 0 },
    { "gpu_mem", KEY_SIZE, AT(gpu_mem_bytes), "", "SIZE", "memory of simulated GPUs (80Gi)", 0 },
    { "dev", KEY_TEXT, AT(dev), "", "DIR", "where device nodes are (/dev)", 0 },
    { "nvml", KEY_TEXT, AT(nvml), "", "FILE", "NVIDIA's management library (searched)", 0 },
    { "cgroup", KEY_TEXT, AT(cgroup), "", "NAME", "folder of our cgroups (nightshift-ID)", 0 },
    { "network", KEY_BOOL, AT(network), "yes", "yes|no", "a network of its own for each tenant",
      0 },
    { "net_range", KEY_TEXT, AT(net_range), "", "CIDR", "addresses of jobs (10.203.0.0/16)", 0 },
    { "net_prefix", KEY_TEXT, AT(net_prefix), "", "NAME", "how our bridges are called (nsiID)", 0 },
    { "registries", KEY_TEXT, AT(registries), "", "HOST[:PORT],…",
      "registries of images that may be in local networks or on this machine", 0 },
    { "net_users", KEY_TEXT, AT(net_users), "", "NAME,…",
      "accounts of this machine that may connect to jobs, besides root: a proxy, a hub", 0 },
    { "net_table", KEY_TEXT, AT(net_table), "", "NAME", "our table in nftables (nightshift_ID)",
      0 },
    { "end_leftovers", KEY_BOOL, AT(end_leftovers), "no", "yes|no",
      "end processes on GPUs that belong to no living job", 0 },
    { "images_total", KEY_SIZE, AT(images_bytes), "", "SIZE",
      "all container images together: those not in use go, oldest first (200Gi)", 0 },
    { "forget_tasks", KEY_BOOL, AT(forget_tasks), "no", "yes|no",
      "end what runs of jobs that the store does not know: after it was lost, for one start", 0 },
    { "log_limit", KEY_SIZE, AT(log_bytes), "64Mi", "SIZE", "output kept of each replica", 0 },
    { "keep_logs", KEY_DURATION, AT(keep_logs_ms), "30d", "TIME",
      "output is removed so long after its job's end; 0: never", 0 },
    { "keep_logs_total", KEY_SIZE, AT(keep_logs_bytes), "", "SIZE",
      "all output together: the tenant with most lets go first (a tenth of the file system)", 0 },
    { "keep_jobs", KEY_DURATION, AT(keep_jobs_ms), "365d", "TIME",
      "jobs are forgotten so long after their end, usage never; 0: never", 0 },
    { "keep_daily", KEY_NUMBER, AT(keep_daily), "25", "PERCENT",
      "of what is kept goes in a day for its age, or twice what is usual; 0: all of it", 100 },
    { "keep_audit", KEY_DURATION, AT(keep_audit_ms), "730d", "TIME",
      "rows of the audit are removed so long after they were written; 0: never", 0 },
    { "jobs_per_user", KEY_NUMBER, AT(jobs_per_user), "25000", "N",
      "jobs of one user that have not ended; 0: without a bound", 100000000 },
    { "jobs_per_tenant", KEY_NUMBER, AT(jobs_per_tenant), "100000", "N", "likewise of one tenant",
      100000000 },
    { "jobs_max", KEY_NUMBER, AT(jobs_max), "250000", "N", "likewise of all together", 100000000 },
    { "scratch", KEY_SIZE, AT(scratch_bytes), "1Gi", "SIZE",
      "private disk space of a job that does not say", 0 },
    { "pids_max", KEY_NUMBER, AT(pids_max), "4096", "N", "processes of each replica", 1000000 },
    { "volumes_allow", KEY_PATHS, AT(volumes_allow), "", "LIST",
      "folders of this machine that jobs may be given as volumes, besides their user's own home",
      0 },
    { "volumes_deny", KEY_PATHS, AT(volumes_deny), "", "LIST",
      "folders that they are never given, with all that is above and below them", 0 },
    { "uid_min", KEY_NUMBER, AT(uid_min), "1000", "N",
      "accounts of the machine below it are not used for jobs", 4294967294u },
    { "uid_base", KEY_NUMBER, AT(uid_base), "700000000", "N",
      "people without an account here get uids from here on", 4294967294u },
    { "kube_config", KEY_TEXT, AT(kube_config), "", "FILE",
      "how to reach the cluster ($KUBECONFIG, the pod's own account, ~/.kube/config)", 0 },
    { "kube_context", KEY_TEXT, AT(kube_context), "", "NAME", "which context of it (the current)",
      0 },
    { "kube_namespace", KEY_TEXT, AT(kube_namespace), "nightshift", "NAME",
      "our own namespace, where the lease is", 0 },
    { "kube_namespace_prefix", KEY_TEXT, AT(kube_namespace_prefix), "nightshift-", "TEXT",
      "what the namespaces of tenants begin with", 0 },
    { "kube_user_prefix", KEY_TEXT, AT(kube_user_prefix), "", "TEXT",
      "what the cluster puts before people's names, e.g. \"oidc:\"", 0 },
    { "kube_scheduler", KEY_TEXT, AT(kube_scheduler), "nightshift", "NAME",
      "pods with this schedulerName are placed by us", 0 },
    { "kube_image", KEY_TEXT, AT(kube_image), "", "IMAGE", "of jobs that name none", 0 },
    { "kube_init_image", KEY_TEXT, AT(kube_init_image), "nightshift:" NS_VERSION, "IMAGE",
      "the image that brings nightshift-init into the pods of jobs", 0 },
    { "kube_init_path", KEY_TEXT, AT(kube_init_path), "/usr/libexec/nightshift/nightshift-init",
      "PATH", "where it is in that image", 0 },
    { "kube_gpu", KEY_TEXT, AT(kube_gpu), "nvidia.com/gpu", "NAME",
      "what a GPU is called in the cluster", 0 },
    { "kube_storage_class", KEY_TEXT, AT(kube_storage_class), "", "NAME",
      "of what jobs save, and of homes (the cluster's default)", 0 },
    { "kube_state_size", KEY_TEXT, AT(kube_state_size), "1Gi", "SIZE",
      "room for what a job saves when it is frozen; 0: nothing is kept", 0 },
    { "kube_home_size", KEY_TEXT, AT(kube_home_size), "0", "SIZE",
      "of a user's home in a tenant; 0: a home is gone with its pod", 0 },
    { "kube_home_access", KEY_CHOICE, AT(kube_home_access), "ReadWriteOnce",
      "ReadWriteOnce|ReadWriteMany", "how many machines may use a home at once", 0 },
    { "kube_lost_after", KEY_DURATION, AT(kube_lost_after_ms), "5m", "TIME",
      "what ran on a machine that is not ready for so long is lost", 0 },
    { "on_stop", KEY_CHOICE, AT(on_stop), "keep", "keep|end",
      "what happens to running jobs when the daemon is stopped", 0 },
    { "mail_server", KEY_TEXT, AT(mail_server), "", "URL",
      "sends mail: smtps://mail.lab.example, or smtp://mail.lab.example:587 with STARTTLS", 0 },
    { "mail_from", KEY_TEXT, AT(mail_from), "", "ADDRESS", "who mail is from", 0 },
    { "mail_login", KEY_TEXT, AT(mail_login), "", "NAME", "of the mail server; none: without one",
      0 },
    { "mail_password_file", KEY_TEXT, AT(mail_password_file), "", "FILE",
      "its password, on the first line; for the daemon's user alone", 0 },
    { "mail_tls", KEY_CHOICE, AT(mail_tls), "always", "always|never",
      "never: for a mail server on this machine that has none; then without a login", 0 },
    { "mail_ca", KEY_TEXT, AT(mail_ca), "", "FILE",
      "authorities that its certificate may be of (the machine's)", 0 },
    { "mail_domains", KEY_TEXT, AT(mail_domains), "", "LIST",
      "mail goes to addresses of these domains only, blanks between (all)", 0 },
    { "webhooks", KEY_CHOICE, AT(webhooks), "public", "none|public|network|any",
      "where people's webhooks may be: nowhere; on the Internet; also in local networks; also on "
      "this machine and its link",
      0 },
    { "webhook_ca", KEY_TEXT, AT(webhook_ca), "", "FILE",
      "authorities that their certificates may be of (the machine's)", 0 },
    { "notice_gather", KEY_DURATION, AT(notice_gather_ms), "1m", "TIME",
      "ends of one user's jobs within it are one notice", 0 },
    { "notice_retry", KEY_DURATION, AT(notice_retry_ms), "10s", "TIME",
      "a notice that could not be sent is tried again after it, then after twice that, up to 1h",
      0 },
    { "notice_give_up", KEY_DURATION, AT(notice_give_up_ms), "24h", "TIME",
      "and no more after so long", 0 },
    { "notice_timeout", KEY_DURATION, AT(notice_timeout_ms), "30s", "TIME",
      "a mail server or webhook has so long to answer; at most 2m", 0 },
    { "notice_idle", KEY_DURATION, AT(notice_idle_ms), "30m", "TIME",
      "a GPU that did nothing for so long while a job has it is told of; 0: never", 0 },
    { "rate", KEY_NUMBER, AT(rate_per_s), "500", "N", "requests a second of one caller over TCP",
      1000000 },
    { "rate_burst", KEY_NUMBER, AT(rate_burst), "2000", "N", "so many at once", 1000000 },
    { "rate_user", KEY_NUMBER, AT(rate_user), "500", "N",
      "requests a second of one user, with whatever token; root has no limit; 0: none has",
      1000000 },
    { "rate_user_burst", KEY_NUMBER, AT(rate_user_burst), "2000", "N", "so many at once", 1000000 },
    { "connections", KEY_NUMBER, AT(connections_max), "4000", "N", "open connections", 100000 },
    { "body_limit", KEY_SIZE, AT(body_max_bytes), "16Mi", "SIZE", "largest request", 0 },
    { "timeout", KEY_DURATION, AT(timeout_ms), "60s", "TIME", "idle connections are closed", 0 },
#undef AT
};

static const char *const sections[] = { "tenants", "profiles",       "admins", "policy",
                                        "pools",   "default_tenant", "signin" };

struct given {
    const char *text[ARRAY_LEN(keys)];
    const char *config, *backup, *restore, *verify, *keeper_mode, *logs_kept, *audit, *clock,
        *store_damage, *engine_trouble, *mail_trouble, *networks, *keeper_silent;
    bool help, version, print, check, json, list;
};

/* ---- values ---- */

static int is_word(const char *words, struct str s, struct err *e)
{
    struct str rest = str_of(words), word;
    while (rest.n) {
        str_cut(rest, '|', &word, &rest);
        if (str_eq(word, s))
            return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not known here", STR_ARG(s));
    return err_hint(e, "one of: %s", words);
}

/* Without a query, and without the slash at its end. */
static int read_url(struct config *c, struct str s, const char **out, struct err *e)
{
    struct url u;
    if (url_parse(s, &u, e) < 0)
        return -1;
    if (u.has_query) {
        err_set(e, ERR_INVALID, "'%.*s' has a query", STR_ARG(s));
        return err_hint(e, "e.g. https://gpu.lab.example, or with a path: https://lab.example/gpu");
    }
    while (s.p[s.n - 1] == '/')
        s.n--;
    *out = arena_strndup(&c->arena, s.p, s.n);
    return 0;
}

/* "/data, /scratch" as a list that ends with NULL. */
static int read_paths(struct config *c, struct str s, const char *const **out, struct err *e)
{
    const char **list = arena_array(&c->arena, const char *, PATHS_MAX + 1);
    size_t n = 0;
    struct str one;
    while (s.n) {
        str_cut(s, ',', &one, &s);
        one = str_trim(one);
        if (one.n == 0)
            continue;
        if (n == PATHS_MAX)
            return err_set(e, ERR_TOO_LARGE, "more than %d folders", PATHS_MAX);
        list[n] = arena_strndup(&c->arena, one.p, one.n);
        if (one.p[0] != '/' || one.n > PATH_BYTES || strstr(list[n], "/..")) {
            err_set(e, ERR_INVALID, "'%s' is not an absolute path", list[n]);
            return err_hint(e, "e.g. [/data, /scratch]");
        }
        n++;
    }
    *out = list;
    return 0;
}

static int set_value(struct config *c, const struct key *k, const char *text, struct err *e)
{
    void *at = (char *)c + k->offset;
    struct str s = str_of(text);
    if (s.n == 0 && k->type != KEY_TEXT)
        return 0;
    switch (k->type) {
    case KEY_TEXT: *(const char **)at = s.n ? arena_strndup(&c->arena, s.p, s.n) : NULL; return 0;
    case KEY_CHOICE:
        if (is_word(k->value, s, e) < 0)
            return -1;
        *(const char **)at = arena_strndup(&c->arena, s.p, s.n);
        return 0;
    case KEY_NUMBER: return parse_u64(s, k->max, at, e);
    case KEY_BOOL: return parse_bool(s, at, e);
    case KEY_SIZE: return parse_size_bytes(s, at, e);
    case KEY_CPUS: return parse_milli(s, k->max, at, e);
    case KEY_DURATION: return parse_duration_ms(s, at, e);
    case KEY_URL: return read_url(c, s, at, e);
    case KEY_PATHS: return read_paths(c, s, at, e);
    case KEY_NETS:
        if (http_check_proxies(s, e) < 0)
            return -1;
        *(const char **)at = arena_strndup(&c->arena, s.p, s.n);
        return 0;
    }
    abort();
}

static const char *env_name(const struct key *k, char out[static 64])
{
    int n = snprintf(out, 64, "NIGHTSHIFT_%s", k->name);
    for (int i = 0; i < n; i++)
        if (out[i] >= 'a' && out[i] <= 'z')
            out[i] = (char)(out[i] - 'a' + 'A');
    return out;
}

/* ---- sources ---- */

static const char *flag_name(const struct key *k, char out[static 64])
{
    snprintf(out, 64, "%s", k->name);
    for (char *p = out; *p; p++)
        if (*p == '_')
            *p = '-';
    return out;
}

/* What is no setting. */
#define AT(field) offsetof(struct given, field)
static const struct opt own_opts[] = {
    { "config", OPT_TEXT, AT(config), "FILE", "the settings file (/etc/nightshift/nightshift.yaml)",
      0, 0 },
    { "print-config", OPT_FLAG, AT(print), NULL, "print every setting as it is, and end", 0, 0 },
    { "backup", OPT_TEXT, AT(backup), "FILE",
      "save the store as FILE, also while a daemon runs, and end", 0, 0 },
    { "restore", OPT_TEXT, AT(restore), "FILE",
      "put such a file back in its place, while none runs, and end", 0, 0 },
    { "verify", OPT_TEXT, AT(verify), "FILE",
      "is it whole? -: the store of these settings; and end", 0, 0 },
    { "check", OPT_FLAG, AT(check), NULL,
      "say what is wrong with this machine and how to fix it, and end", 0, 0 },
    { "json", OPT_FLAG, AT(json), NULL, "with --check: as JSON", 0, 0 },
    { "list", OPT_FLAG, AT(list), NULL, "with --check: only what would be looked at", 0, 0 },
    { "keeper-mode", OPT_TEXT, AT(keeper_mode), "MODE",
      "with --check: how the keeper runs, as the daemon knows it", 0, 0 },
    { "logs-kept", OPT_TEXT, AT(logs_kept), "BYTES",
      "with --check: how large logs are, as the daemon knows it", 0, 0 },
    { "audit", OPT_TEXT, AT(audit), "TEXT", "with --check: what of it the daemon has found", 0, 0 },
    { "store-damage", OPT_TEXT, AT(store_damage), "TEXT",
      "with --check: what of the store the daemon found damaged", 0, 0 },
    { "clock", OPT_TEXT, AT(clock), "TEXT", "with --check: what the daemon thinks of it", 0, 0 },
    { "engine-trouble", OPT_TEXT, AT(engine_trouble), "TEXT",
      "with --check: why it takes no work, as the daemon knows it", 0, 0 },
    { "keeper-silent", OPT_TEXT, AT(keeper_silent), "TEXT",
      "with --check: that the keeper does not answer, as the daemon knows it", 0, 0 },
    { "networks", OPT_TEXT, AT(networks), "yes|yes N|lost|no",
      "with --check: whether the keeper can make networks, as the daemon knows it", 0, 0 },
    { "mail-trouble", OPT_TEXT, AT(mail_trouble), "TEXT",
      "with --check: why the last letter was not taken, as the daemon knows it", 0, 0 },
    { "help", OPT_FLAG, AT(help), NULL, "this list", 0, 0 },
    { "version", OPT_FLAG, AT(version), NULL, "which one this is", 0, 0 },
};
#undef AT

/* The table as options; names and rows live in `a`. */
static struct opt *make_opts(struct arena *a, size_t *out_n)
{
    size_t n = ARRAY_LEN(keys);
    struct opt *o = arena_array(a, struct opt, n + ARRAY_LEN(own_opts));
    for (size_t i = 0; i < n; i++) {
        char name[64];
        const char *help =
            keys[i].dflt[0] ? arena_printf(a, "%s (%s)", keys[i].help, keys[i].dflt) : keys[i].help;
        o[i] = (struct opt){ .name = arena_printf(a, "%s", flag_name(&keys[i], name)),
                             .type = OPT_TEXT,
                             .offset = offsetof(struct given, text) + i * sizeof(char *),
                             .value = keys[i].value,
                             .help = help };
    }
    memcpy(&o[n], own_opts, sizeof own_opts);
    *out_n = n + ARRAY_LEN(own_opts);
    return o;
}

static int in_file(const struct config *c, struct str text, const char *key, struct err *e)
{
    size_t line = yaml_line_of(text, key);
    return line ? err_wrap(e, "%s, line %zu: %s", c->file_path, line, key)
                : err_wrap(e, "%s: %s", c->file_path, key);
}

/* What the file says of a key, as a flag would say it: a list with commas between. */
static void key_text(const struct json *v, struct buf *out)
{
    struct json_out w = { .b = out };
    struct str s;
    struct err e;
    if (json_is_string(v) && json_as_str(v, 4096, &s, &e) == 0) {
        buf_add(out, s);
        return;
    }
    if (!json_is_array(v)) {
        json_put(&w, NULL, v);
        return;
    }
    for (const struct json *one = json_first(v); one; one = json_next(v, one)) {
        buf_addz(out, one == json_first(v) ? "" : ", ");
        key_text(one, out);
    }
}

static int read_file_keys(struct config *c, struct str text, struct err *e)
{
    const char *known[ARRAY_LEN(keys) + ARRAY_LEN(sections)];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        known[n++] = keys[i].name;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        known[n++] = sections[i];
    if (json_only(c->file, known, n, e) < 0)
        return err_wrap(e, "%s", c->file_path);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct json *v = json_find(c->file, keys[i].name);
        AUTO(buf_free) struct buf b = BUF(8192);
        if (!v || json_is_null(v))
            continue;
        key_text(v, &b);
        if (set_value(c, &keys[i], buf_str(&b).p ? buf_str(&b).p : "", e) < 0)
            return in_file(c, text, keys[i].name, e);
    }
    return 0;
}

static const char *default_file(struct arena *a)
{
    const char *home = getenv("XDG_CONFIG_HOME"), *user = getenv("HOME");
    const char *path = "/etc/nightshift/nightshift.yaml";
    if (geteuid() != 0 && (home || user))
        path = home ? arena_printf(a, "%s/nightshift/nightshift.yaml", home)
                    : arena_printf(a, "%s/.config/nightshift/nightshift.yaml", user);
    return access(path, F_OK) == 0 ? path : NULL;
}

static int read_file(struct config *c, const char *path, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(0);
    c->file_path = path ? path : getenv("NIGHTSHIFT_CONFIG");
    if (!c->file_path)
        c->file_path = default_file(&c->arena);
    if (!c->file_path)
        return 0;
    if (file_read(c->file_path, YAML_TEXT_MAX, &text, e) < 0)
        return -1;
    c->doc = yaml_read(buf_str(&text), e);
    if (!c->doc)
        return err_wrap(e, "%s", c->file_path);
    c->file = json_root(c->doc);
    return read_file_keys(c, buf_str(&text), e);
}

/* ---- what the defaults depend on ---- */

static void set_folders(struct config *c)
{
    const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");
    const char *run = getenv("XDG_RUNTIME_DIR");
    bool root = geteuid() == 0;
    if (!c->state)
        c->state = root  ? "/var/lib/nightshift"
                 : state ? arena_printf(&c->arena, "%s/nightshift", state)
                         : arena_printf(&c->arena, "%s/.local/state/nightshift", home ? home : "");
    if (!c->run)
        c->run = root ? "/run/nightshift"
               : run  ? arena_printf(&c->arena, "%s/nightshift", run)
                      : arena_printf(&c->arena, "%s/run", c->state);
    if (!c->socket)
        c->socket = arena_printf(&c->arena, "%s/api.sock", c->run);
}

/* A tenth of where they lie. */
static void set_logs_total(struct config *c)
{
    struct statvfs fs;
    AUTO(free_p) char *path = xstrdup(c->state);
    while (!c->keep_logs_bytes && *path) {
        if (statvfs(path, &fs) == 0)
            c->keep_logs_bytes = (uint64_t)fs.f_blocks * fs.f_frsize / 10;
        char *slash = strrchr(path, '/'); /* it may not be there yet: what it will lie in */
        *(slash ? slash : path) = '\0';
    }
}

static int check_whole(const struct config *c, struct err *e)
{
    if (!c->tls_cert != !c->tls_key)
        return err_set(e, ERR_INVALID, "tls_cert and tls_key: both or neither");
    if (strlen(c->socket) > 107 || strlen(c->run) > 70) {
        err_set(e, ERR_INVALID, "run: the path of a socket must not be longer than 107 bytes");
        return err_hint(e, "choose a shorter folder, e.g. run: /run/nightshift");
    }
    return 0;
}

int config_read(struct config *out, int argc, char *const *argv, struct err *e)
{
    struct given g = { 0 };
    size_t n;
    struct opt *o = make_opts(&out->arena, &n);
    if (opts_parse(o, n, argc, argv, &g, e) < 0)
        return -1;
    out->help = g.help;
    out->version = g.version;
    out->print = g.print;
    out->check = g.check;
    out->json = g.json;
    out->list = g.list;
    out->backup = g.backup;
    out->restore = g.restore;
    out->verify = g.verify;
    out->keeper_mode = g.keeper_mode;
    out->logs_kept = g.logs_kept;
    out->audit = g.audit;
    out->store_damage = g.store_damage;
    out->clock = g.clock;
    out->mail_trouble = g.mail_trouble;
    out->networks = g.networks;
    out->keeper_silent = g.keeper_silent;
    out->engine_trouble = g.engine_trouble;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (set_value(out, &keys[i], keys[i].dflt, e) < 0)
            return err_wrap(e, "%s", keys[i].name);
    if (out->help || out->version)
        return 0;
    if (read_file(out, g.config, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char name[64];
        const char *env = getenv(env_name(&keys[i], name));
        if (env && set_value(out, &keys[i], env, e) < 0)
            return err_wrap(e, "%s", name);
        if (g.text[i] && set_value(out, &keys[i], g.text[i], e) < 0)
            return err_wrap(e, "--%s", flag_name(&keys[i], name));
    }
    set_folders(out);
    set_logs_total(out);
    return check_whole(out, e);
}

void config_clear(struct config *c)
{
    c->doc = json_free(c->doc);
    arena_free(&c->arena);
}

/* ---- printing ---- */

void config_print_help(struct buf *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    size_t n;
    struct opt *o = make_opts(&a, &n);
    opts_help(o, n, out);
}

void config_print_reference(struct buf *out)
{
    buf_addz(out, "| key | value | default | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        buf_printf(out, "| `%s` | ", keys[i].name);
        for (const char *p = keys[i].value; *p; p++)
            buf_printf(out, *p == '|' ? "\\|" : "%c", *p);
        buf_printf(out, " | %s%s%s | %s |\n", keys[i].dflt[0] ? "`" : "", keys[i].dflt,
                   keys[i].dflt[0] ? "`" : "", keys[i].help);
    }
}

static void print_paths(const char *const *list, struct buf *out)
{
    for (size_t i = 0; list && list[i]; i++)
        buf_printf(out, "%s%s", i ? ", " : "", list[i]);
}

void config_print(const struct config *c, struct buf *out)
{
    buf_printf(out, "# file: %s\n", c->file_path ? c->file_path : "none");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const void *at = (const char *)c + keys[i].offset;
        char text[32];
        buf_printf(out, "%s: ", keys[i].name);
        switch (keys[i].type) {
        case KEY_TEXT:
        case KEY_CHOICE:
        case KEY_URL:
        case KEY_NETS:
            buf_addz(out, *(const char *const *)at ? *(const char *const *)at : "");
            break;
        case KEY_PATHS: print_paths(*(const char *const *const *)at, out); break;
        case KEY_NUMBER: buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at); break;
        case KEY_BOOL: buf_addz(out, *(const bool *)at ? "yes" : "no"); break;
        case KEY_SIZE:
            if (*(const uint64_t *)at)
                buf_addz(out, format_size(*(const uint64_t *)at, text));
            break;
        case KEY_CPUS:
            if (*(const uint64_t *)at)
                buf_printf(out, "%.3f", (double)*(const uint64_t *)at / 1e3);
            break;
        case KEY_DURATION: buf_addz(out, format_duration_ms(*(const int64_t *)at, text)); break;
        }
        buf_addc(out, '\n');
    }
}
