/* config - where the API server is and how to speak to it, from a kubeconfig or from inside a pod.
 *
 * A config is read once and never changes.  Certificates and keys are in memory as PEM text; a token
 * that lives in a file is named and not read, because it changes while we run (credential.h).
 * Errors name the file, the context and the way out, and never quote a secret.
 * Left out: user names with passwords and "auth-provider", which Kubernetes itself has dropped.
 */
#ifndef NS_KUBE_CONFIG_H
#define NS_KUBE_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"

#define KUBE_CONFIG_FILES_MAX 16        /* in $KUBECONFIG */
#define KUBE_CONFIG_TEXT_MAX (1u << 20) /* bytes of one file */
#define KUBE_PEM_MAX (1u << 20)
#define KUBE_TOKEN_MAX (64u << 10)
#define KUBE_PLUGIN_WORDS_MAX 256 /* arguments, and variables */

/* A program that prints a token, as "users[].user.exec" has it. */
struct kube_plugin {
    const char *const *argv; /* ends with NULL */
    const char *const *env;  /* NAME=value besides ours; ends with NULL */
    const char *api_version; /* client.authentication.k8s.io/v1 */
    const char *install_hint;
};

/* PEM text, or the file that has it; neither: p is NULL and file is NULL. */
struct kube_pem {
    struct str text;
    const char *file;
};

struct kube_config {
    struct arena arena; /* everything below lives here */
    const char *source; /* for messages: "context 'lab' of /root/.kube/config" */
    const char *server; /* https://host:port/path, without a slash at its end */
    const char *space;  /* the namespace of the context; "default" when it names none */
    const char *tls_server_name, *proxy; /* NULL: none said */
    bool insecure;                       /* any certificate will do */
    struct kube_pem ca, cert, key;
    const char *token, *token_file; /* NULL: none; the file counts when both are there */
    const struct kube_plugin *plugin;
};

/* path NULL or "": $KUBECONFIG (several files: the first that says something wins), then the pod's own
 * account when there is one, then ~/.kube/config.  context NULL or "": the current one. */
struct kube_config *kube_config_load(const char *path, const char *context, struct err *e);

/* $KUBERNETES_SERVICE_HOST and _PORT with the account in `folder`; NULL: where a pod finds it. */
struct kube_config *kube_config_in_cluster(const char *folder, struct err *e);

struct kube_config *kube_config_free(struct kube_config *c); /* NULL ok; returns NULL */
void kube_config_free_p(struct kube_config **c);

/* What load does between reading the kubeconfigs and reading the files they name.  Pure. */
struct kube_config_file {
    const char *path;
    struct str text;
};
struct kube_config *kube_config_parse(const struct kube_config_file *files, size_t n,
                                      const char *context, struct err *e);

/* The bytes of standard base64, with or without line ends; -1 when it is something else. */
int kube_base64(struct str text, struct arena *a, struct str *out) MUST_USE;

#endif
