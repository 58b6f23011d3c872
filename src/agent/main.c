/* nightshift-agent: tells the control plane what this machine does. */
#include <signal.h>
#include <stdio.h>

#include "agent/agent.h"
#include "agent/say.h"
#include "base/opts.h"

struct options {
    const char *server, *token_file, *state, *node_name, *cgroup_root, *cgroup, *nvml, *gpu_model;
    const char *ca_file, *root, *metrics, *control, *control_group, *keep;
    const char *log_level, *kubelet, *pod_logs, *kube_prefix;
    uint64_t simulate_gpus, gpu_mem_mib, interval_ms, report_ms, buffer_kib;
    bool no_gpus, log_json, help, version;
};

#define IN(field) offsetof(struct options, field)
#define CONTROL "/run/nightshift-agent/control.sock"

static const struct opt table[] = {
    { "server", OPT_TEXT, IN(server), "ADDRESS",
      "the control plane: unix:/path, http://… or https://… (unix:/run/nightshift/api.sock)", 0,
      0 },
    { "token-file", OPT_TEXT, IN(token_file), "PATH",
      "has the token that may report for this machine (over the socket root needs none)", 0, 0 },
    { "ca-file", OPT_TEXT, IN(ca_file), "PATH",
      "certificates that an https:// control plane must have one of (the system's, or "
      "NIGHTSHIFT_CA)",
      0, 0 },
    { "root", OPT_TEXT, IN(root), "DIR",
      "has the machine's proc and sys, for an agent in a container (/)", 0, 0 },
    { "node-name", OPT_TEXT, IN(node_name), "NAME", "this machine's name (the host's)", 0, 0 },
    { "metrics", OPT_TEXT, IN(metrics), "ADDRESS:PORT",
      "has the figures for Prometheus there, for everybody who asks (nowhere)", 0, 0 },
    { "control", OPT_TEXT, IN(control), "PATH",
      "the socket of `nightshift-agent hold` (/run/nightshift-agent/control.sock)", 0, 0 },
    { "control-group", OPT_TEXT, IN(control_group), "NAME",
      "the machine's owners, who may say hold as root may (nobody)", 0, 0 },
    { "keep", OPT_TEXT, IN(keep), "DIR",
      "what must outlive a restart: the hold, and what is paused (/var/lib/nightshift-agent)", 0,
      0 },
    { "interval-ms", OPT_NUMBER, IN(interval_ms), "N", "between samples (1000)", 100, 60000 },
    { "report-ms", OPT_NUMBER, IN(report_ms), "N", "between reports (1000)", 100, 600000 },
    { "buffer-kib", OPT_NUMBER, IN(buffer_kib), "N",
      "reports that are kept while the control plane is away, an hour at most (3072)", 64,
      1u << 20 },
    { "state", OPT_TEXT, IN(state), "DIR", "whose disk is watched (/var/lib/nightshift)", 0, 0 },
    { "cgroup-root", OPT_TEXT, IN(cgroup_root), "DIR", "the cgroup file system (/sys/fs/cgroup)", 0,
      0 },
    { "cgroup", OPT_TEXT, IN(cgroup), "NAME",
      "the keeper's folder in it (as STATE/instance names it)", 0, 0 },
    { "no-gpus", OPT_FLAG, IN(no_gpus), NULL, "do not look for GPUs", 0, 0 },
    { "nvml", OPT_TEXT, IN(nvml), "PATH", "the NVIDIA management library (searched)", 0, 0 },
    { "simulate-gpus", OPT_NUMBER, IN(simulate_gpus), "N",
      "as the keeper: report made-up figures of simulated GPUs, which say so", 0, 64 },
    { "gpu-model", OPT_TEXT, IN(gpu_model), "NAME", "of simulated GPUs (A100-80GB)", 0, 0 },
    { "gpu-mem-mib", OPT_NUMBER, IN(gpu_mem_mib), "N", "of simulated GPUs (81920)", 1, 1u << 30 },
    { "kubelet", OPT_TEXT, IN(kubelet), "PATH",
      "the kubelet's pod-resources socket, where there is one; empty: do not look "
      "(/var/lib/kubelet/pod-resources/kubelet.sock)",
      0, 0 },
    { "pod-logs", OPT_TEXT, IN(pod_logs), "DIR",
      "has the kubelet's links to logs, which name containers (/var/log/containers)", 0, 0 },
    { "kube-prefix", OPT_TEXT, IN(kube_prefix), "TEXT",
      "of the namespaces in which pods are runs of jobs (nightshift-)", 0, 0 },
    { "log-level", OPT_CHOICE, IN(log_level), "debug|info|warn|error", "what is logged (info)", 0,
      0 },
    { "log-json", OPT_FLAG, IN(log_json), NULL, "one JSON object an event", 0, 0 },
    { "help", OPT_FLAG, IN(help), NULL, "this list", 0, 0 },
    { "version", OPT_FLAG, IN(version), NULL, "which one this is", 0, 0 },
};

static int print_help(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    buf_addz(&b, "nightshift-agent " NS_VERSION ": tells the control plane what this machine does\n"
                 "\nusage: nightshift-agent [--options]\n");
    say_usage(&b);
    buf_addz(&b, "\noptions:\n");
    opts_help(table, ARRAY_LEN(table), &b);
    say_help(&b);
    buf_addz(&b, "\nIt looks, and changes nothing by itself.  When an operator asks for it, it "
                 "pauses, resumes "
                 "or throttles\na task of a job; while the owner holds the machine, nothing goes "
                 "on there.\n");
    return fputs(b.p, stdout) < 0;
}

static void on_stop(void *ctx)
{
    agent_stop(ctx);
}

static int serve(const struct options *o, struct err *e)
{
    enum log_level least;
    if (!log_level_parse(o->log_level, &least))
        return err_set(e, ERR_INVALID, "--log-level: '%s' is not a level", o->log_level);
    struct agent_config c = {
        .load = { .want = { .root = o->root,
                            .name = o->node_name,
                            .no_gpus = o->no_gpus,
                            .nvml_path = o->nvml,
                            .simulated = { .count = (uint32_t)o->simulate_gpus,
                                           .model = o->gpu_model,
                                           .mem_mib = (uint32_t)o->gpu_mem_mib } },
                  .cgroup_root = o->cgroup_root,
                  .cgroup = o->cgroup,
                  .state = o->state,
                  .kubelet = o->kubelet,
                  .pod_logs = o->pod_logs,
                  .kube_prefix = o->kube_prefix },
        .post = { .server = o->server,
                  .token = o->token_file ? NULL : getenv("NIGHTSHIFT_TOKEN"),
                  .token_file = o->token_file,
                  .timeout_ms = 10000 },
        .bounds = { .bytes = o->buffer_kib << 10, .age_ms = 3600000, .batch_samples = 60 },
        .interval_ms = o->interval_ms,
        .report_ms = o->report_ms,
        .clock = clock_wall(),
        .metrics = o->metrics,
        .control = o->control,
        .control_group = o->control_group,
        .keep = o->keep,
    };
    if (o->ca_file && setenv("NIGHTSHIFT_CA", o->ca_file, 1) < 0) /* as the command line has it */
        return err_set(e, ERR_INTERNAL, "no memory");
    const char *wall = getenv("NIGHTSHIFT_TEST_WALL");
    struct clock_shift turned;
    if (wall) /* tests/README.md */
        c.clock = clock_shifted(&turned, c.clock, wall);
    AUTO(loop_free_p) struct loop *l = loop_new();
    AUTO(log_free_p)
    struct log *log = log_new(stderr, least, o->log_json ? LOG_JSON : LOG_TEXT, clock_wall());
    signal(SIGPIPE, SIG_IGN);
    struct agent *a = agent_new(&c, l, log, e);
    if (!a)
        return -1;
    if (loop_signal(l, SIGTERM, on_stop, a, e) && loop_signal(l, SIGINT, on_stop, a, e))
        loop_run(l);
    agent_free(a);
    log_plain(log, LOG_INFO_, "agent.stopped");
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    if (argc > 1 && argv[1][0] != '-')
        return say_run(argc - 1, argv + 1, CONTROL);
    struct options o = { .server = "unix:/run/nightshift/api.sock",
                         .state = "/var/lib/nightshift",
                         .cgroup_root = "/sys/fs/cgroup",
                         .control = CONTROL,
                         .keep = "/var/lib/nightshift-agent",
                         .kubelet = "/var/lib/kubelet/pod-resources/kubelet.sock",
                         .pod_logs = "/var/log/containers",
                         .kube_prefix = "nightshift-",
                         .gpu_model = "A100-80GB",
                         .gpu_mem_mib = 81920,
                         .interval_ms = 1000,
                         .report_ms = 1000,
                         .buffer_kib = 3072,
                         .log_level = "info" };
    int rc = opts_parse(table, ARRAY_LEN(table), argc - 1, argv + 1, &o, &e);
    if (rc == 0 && o.help)
        return print_help();
    if (rc == 0 && o.version)
        return puts("nightshift-agent " NS_VERSION) < 0;
    if (rc == 0 && serve(&o, &e) == 0)
        return 0;
    fprintf(stderr, "nightshift-agent: %s%s%s\n", e.msg, e.hint[0] ? "\n  hint: " : "", e.hint);
    return err_info(e.code)->exit_code;
}
