/* Kubernetes: how the API server is spoken to, and whether it is.  Nothing is asked over the network: the daemon
 * that asks knows. */
#include "doctor/checks.h"
#include "doctor/look.h"

void check_kube_config(const struct doctor_in *in, struct doctor_result *r)
{
    const struct doctor_kube *k = in->kube;
    if (k->trouble.code) {
        say_bad(r, "%s", k->trouble.msg);
        say_fix(r, "%s",
                k->trouble.hint[0] ? k->trouble.hint
                                   : "see kube_config and kube_context in the settings");
    } else if (k->insecure) {
        say_bad(r, "%s: whoever answers at %s is believed to be the API server", k->source,
                k->server);
        say_fix(r, "have certificate-authority in the kubeconfig instead of "
                   "insecure-skip-tls-verify");
    } else {
        say_good(r, "%s, %s", k->server, k->source);
    }
}

void check_kube_server(const struct doctor_in *in, struct doctor_result *r)
{
    if (!in->engine_trouble)
        say_skip(r, "only a daemon that runs can tell: nightshift doctor");
    else if (in->engine_trouble[0]) {
        say_bad(r, "%s", in->engine_trouble);
        say_fix(r, "see kube.away and lease.waiting in the log of nightshiftd, and kubectl get "
                   "lease nightshift");
    } else {
        say_good(r, "the daemon follows its nodes and pods, and decides");
    }
}
