/* plugin - one run of a program that prints an ExecCredential, on the loop.
 *
 * It gets our environment, its own variables and KUBERNETES_EXEC_INFO, and /dev/null as input; nobody is
 * there to type a password.  It has a minute, 1 MiB to print and 300 bytes to complain.
 */
#ifndef NS_KUBE_PLUGIN_H
#define NS_KUBE_PLUGIN_H

#include "kube/config.h"
#include "sys/loop.h"

struct kube_plugin_run;

/* `failed` is NULL when it ended with 0.  The run is gone when this is called. */
typedef void kube_plugin_fn(void *ctx, struct str printed, const struct err *failed);

struct kube_plugin_run *kube_plugin_run(struct loop *l, const struct kube_plugin *plugin,
                                        kube_plugin_fn *fn, void *ctx, struct err *e);
void kube_plugin_stop(struct kube_plugin_run *r); /* NULL ok; fn never runs */

#endif
