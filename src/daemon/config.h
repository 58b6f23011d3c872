/* config - the settings of the daemon: one table of keys with their defaults and help.
 *
 * A key is set by a flag (--log-level), by the environment (NIGHTSHIFT_LOG_LEVEL), in the file
 * (log_level:) or by its default, in this order.  The file also has sections: tenants, profiles,
 * admins, policy and pools (site.h).  What is not known or out of range is refused by name, with its line.
 */
#ifndef NS_DAEMON_CONFIG_H
#define NS_DAEMON_CONFIG_H

#include "base/arena.h"
#include "base/json.h"

struct config {
    /* where */
    const char *state, *run, *listen, *socket;
    const char *tls_cert, *tls_key;
    const char *external_url, *trusted_proxies, *notice;
    int64_t session_ms;
    const char *libexec; /* folder of nightshift-keeper and nightshift-init */
    /* log */
    const char *log_level, *log_format;
    /* machine */
    const char *engine, *node_name, *gpu_model, *dev, *nvml;
    uint64_t cpus_milli, mem_bytes, simulate_gpus, gpu_mem_bytes;
    const char *keeper; /* how the keeper comes to be: auto, external */
    const char *containment;
    const char *cgroup, *net_range, *net_prefix, *net_table, *net_users, *registries;
    bool end_leftovers, forget_tasks, network;
    /* jobs */
    uint64_t images_bytes, log_bytes, scratch_bytes, pids_max, uid_min, uid_base;
    int64_t keep_logs_ms, keep_jobs_ms, keep_audit_ms;
    uint64_t keep_logs_bytes, keep_daily, jobs_per_user, jobs_per_tenant, jobs_max;
    const char *const *volumes_allow, *const *volumes_deny; /* end with NULL; NULL: none */
    const char *on_stop;
    /* Kubernetes */
    const char *kube_config, *kube_context, *kube_namespace, *kube_namespace_prefix;
    const char *kube_user_prefix, *kube_scheduler, *kube_image, *kube_init_image, *kube_init_path;
    const char *kube_gpu, *kube_storage_class, *kube_state_size, *kube_home_size, *kube_home_access;
    int64_t kube_lost_after_ms;
    /* notices */
    const char *mail_server, *mail_from, *mail_login, *mail_password_file, *mail_tls, *mail_ca;
    const char *mail_domains, *webhooks, *webhook_ca;
    int64_t notice_gather_ms, notice_retry_ms, notice_give_up_ms, notice_timeout_ms, notice_idle_ms;
    /* limits on people */
    uint64_t rate_per_s, rate_burst, rate_user, rate_user_burst, connections_max, body_max_bytes;
    int64_t timeout_ms;

    const struct json *file; /* the sections; NULL without a file */
    const char *file_path;   /* NULL without a file */
    struct json_doc *doc;
    struct arena arena;
    bool help, version, print;
    const char *backup, *restore, *verify; /* files; NULL: not asked for */
    bool check, json, list;                /* --check, and how it is told */
    const char *keeper_mode;    /* for --check: what the daemon heard; NULL: no daemon asks */
    const char *audit;          /* for --check: what the daemon has found of it; or NULL */
    const char *clock;          /* for --check: "ok", or how far it is off; or NULL */
    const char *engine_trouble; /* for --check: why it takes no work; "": it does; or NULL */
    const char *keeper_silent;  /* for --check: it does not answer; "": it does; or NULL */
    const char *networks;       /* for --check: see doctor.h; NULL: no daemon asks */
    const char *mail_trouble;   /* for --check: why a letter was not taken; "": none; or NULL */
    const char *store_damage;   /* for --check: likewise, of the store; or NULL */
    const char *logs_kept;      /* for --check: bytes of logs, as the daemon knows them; or NULL */
};

/* Reads flags, environment and file.  *out is cleared with config_clear in any case. */
int config_read(struct config *out, int argc, char *const *argv, struct err *e) MUST_USE;
void config_clear(struct config *c);

void config_print_help(struct buf *out);
void config_print_reference(struct buf *out);               /* Markdown */
void config_print(const struct config *c, struct buf *out); /* every key and what it is */

#endif
