/* nightshift-keeper: runs tasks on this machine for nightshiftd, which needs no root itself. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/opts.h"
#include "keeper/keeper.h"
#include "sys/file.h"

struct options {
    struct keeper_config keeper;
    const char *log_level;
    bool log_json, help, version, foreground;
};

#define IN(field) offsetof(struct options, field)

static const struct opt table[] = {
    { "state", OPT_TEXT, IN(keeper.state), "DIR", "what outlives a restart (/var/lib/nightshift)",
      0, 0 },
    { "run", OPT_TEXT, IN(keeper.run), "DIR", "sockets and bundles (/run/nightshift)", 0, 0 },
    { "socket", OPT_TEXT, IN(keeper.socket), "PATH", "where the daemon connects (RUN/keeper.sock)",
      0, 0 },
    { "group", OPT_TEXT, IN(keeper.group), "NAME",
      "whose members may connect and read logs (our own)", 0, 0 },
    { "mode", OPT_CHOICE, IN(keeper.mode), "auto|root|rootless|plain",
      "with what power to run (auto)", 0, 0 },
    { "min-uid", OPT_NUMBER, IN(keeper.min_uid), "N", "no job runs as a lower uid (1000)", 1,
      4294967294u },
    { "init", OPT_TEXT, IN(keeper.init), "PATH", "nightshift-init (beside this program)", 0, 0 },
    { "crun", OPT_TEXT, IN(keeper.crun), "PATH", "crun (looked for in PATH)", 0, 0 },
    { "dev", OPT_TEXT, IN(keeper.dev), "DIR", "where device nodes are (/dev)", 0, 0 },
    { "cdi", OPT_TEXT, IN(keeper.cdi), "DIR",
      "CDI specs of the GPU driver (/etc/cdi and /var/run/cdi)", 0, 0 },
    { "cgroup-root", OPT_TEXT, IN(keeper.cgroup_root), "DIR",
      "the cgroup file system (/sys/fs/cgroup)", 0, 0 },
    { "cgroup", OPT_TEXT, IN(keeper.cgroup), "NAME", "our folder in it (nightshift-ID)", 0, 0 },
    { "start-limit", OPT_NUMBER, IN(keeper.start_limit_s), "SECONDS",
      "a start that takes longer has failed (120)", 1, 86400 },
    { "parallel", OPT_NUMBER, IN(keeper.parallel), "N", "starts at once (twice the processors)", 1,
      1000 },
    { "images-mib", OPT_NUMBER, IN(keeper.images_mib), "N",
      "all container images together: those not in use go, oldest first (204800)", 1, 1u << 30 },
    { "end-leftovers", OPT_FLAG, IN(keeper.end_leftovers), NULL,
      "end processes that belong to no living task", 0, 0 },
    { "tidy", OPT_FLAG, IN(keeper.tidy), NULL,
      "when it is stopped, end all tasks and remove networks and groups too", 0, 0 },
    { "no-network", OPT_FLAG, IN(keeper.no_network), NULL, "no networks for tenants", 0, 0 },
    { "net-range", OPT_TEXT, IN(keeper.net_range), "CIDR", "addresses of tasks (10.203.0.0/16)", 0,
      0 },
    { "net-prefix", OPT_TEXT, IN(keeper.net_prefix), "NAME", "bridges are called so (nsiID)", 0,
      0 },
    { "net-table", OPT_TEXT, IN(keeper.net_table), "NAME", "our table in nftables (nightshift_ID)",
      0, 0 },
    { "net-users", OPT_TEXT, IN(keeper.net_users), "NAMES",
      "accounts of this machine that may connect to tasks, besides root", 0, 0 },
    { "registries", OPT_TEXT, IN(keeper.registries), "NAMES",
      "registries of images that may be in local networks or on this machine", 0, 0 },
    { "node-name", OPT_TEXT, IN(keeper.node_name), "NAME", "this machine's name (the host's)", 0,
      0 },
    { "cpu-milli", OPT_NUMBER, IN(keeper.cpu_milli), "N",
      "thousandths of processors for jobs (all)", 1, 1000000000 },
    { "mem-mib", OPT_NUMBER, IN(keeper.mem_mib), "N", "memory for jobs (all)", 1, 1u << 30 },
    { "no-gpus", OPT_FLAG, IN(keeper.no_gpus), NULL, "do not look for GPUs", 0, 0 },
    { "nvml", OPT_TEXT, IN(keeper.nvml), "PATH", "the NVIDIA management library (searched)", 0, 0 },
    { "simulate-gpus", OPT_NUMBER, IN(keeper.simulate_gpus), "N",
      "pretend to have GPUs; jobs get none", 0, 64 },
    { "gpu-model", OPT_TEXT, IN(keeper.gpu_model), "NAME", "of simulated GPUs (A100-80GB)", 0, 0 },
    { "gpu-mem-mib", OPT_NUMBER, IN(keeper.gpu_mem_mib), "N", "of simulated GPUs (81920)", 1,
      1u << 30 },
    { "log-level", OPT_CHOICE, IN(log_level), "debug|info|warn|error", "what is logged (info)", 0,
      0 },
    { "log-json", OPT_FLAG, IN(log_json), NULL, "one JSON object an event", 0, 0 },
    { "foreground", OPT_FLAG, IN(foreground), NULL, "accepted; it always stays there", 0, 0 },
    { "help", OPT_FLAG, IN(help), NULL, "this list", 0, 0 },
    { "version", OPT_FLAG, IN(version), NULL, "which one this is", 0, 0 },
};

static int print_help(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    buf_addz(&b, "nightshift-keeper " NS_VERSION ": runs tasks on this machine for nightshiftd\n\n"
                 "usage: nightshift-keeper [--options]\n\noptions:\n");
    opts_help(table, ARRAY_LEN(table), &b);
    buf_addz(&b, "\nIt may be killed at any time: running jobs do not notice, and the next keeper\n"
                 "finds them again.\n");
    return fputs(b.p, stdout) < 0;
}

/* It may come before there is a keeper: what that makes meanwhile is not left behind. */
struct stopping {
    struct keeper *keeper;
    bool asked;
};

static void on_stop(void *ctx)
{
    struct stopping *s = ctx;
    s->asked = true;
    if (s->keeper)
        keeper_stop(s->keeper);
}

static int serve(const struct options *o, struct err *e)
{
    enum log_level least;
    if (!log_level_parse(o->log_level, &least))
        return err_set(e, ERR_INVALID, "--log-level: '%s' is not a level", o->log_level);
    uint64_t files; /* with too few of them, records of tasks that run could not be read */
    if (file_limit_raise(&files, e) < 0)
        return -1;
    AUTO(loop_free_p) struct loop *l = loop_new();
    AUTO(log_free_p)
    struct log *log = log_new(stderr, least, o->log_json ? LOG_JSON : LOG_TEXT, clock_wall());
    signal(SIGPIPE, SIG_IGN);
    umask(0022);
    struct stopping stop = { 0 };
    if (!loop_signal(l, SIGTERM, on_stop, &stop, e) || !loop_signal(l, SIGINT, on_stop, &stop, e))
        return -1;
    stop.keeper = keeper_new(&o->keeper, l, log, e);
    if (!stop.keeper)
        return -1;
    if (stop.asked)
        keeper_stop(stop.keeper);
    loop_run(l);
    log_plain(log, LOG_INFO_, "keeper.stopped");
    stop.keeper = keeper_free(stop.keeper); /* a second signal may come while the loop closes */
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    struct options o = {
        .keeper = { .state = "/var/lib/nightshift",
                    .run = "/run/nightshift",
                    .mode = "auto",
                    .dev = "/dev",
                    .cgroup_root = "/sys/fs/cgroup",
                    .min_uid = 1000,
                    .start_limit_s = 120,
                    .gpu_model = "A100-80GB",
                    .gpu_mem_mib = 81920 },
        .log_level = "info",
    };
    int rc = opts_parse(table, ARRAY_LEN(table), argc - 1, argv + 1, &o, &e);
    if (rc == 0 && o.help)
        return print_help();
    if (rc == 0 && o.version)
        return puts("nightshift-keeper " NS_VERSION) < 0;
    if (rc == 0 && serve(&o, &e) == 0)
        return 0;
    fprintf(stderr, "nightshift-keeper: %s%s%s\n", e.msg, e.hint[0] ? "\n  hint: " : "", e.hint);
    return err_info(e.code)->exit_code;
}
