/* The part of config.h that reads files and variables. */
#include <stdio.h>

#include "kube/config.h"
#include "sys/file.h"

#define ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

struct loading {
    struct kube_config_file files[KUBE_CONFIG_FILES_MAX];
    struct buf texts[KUBE_CONFIG_FILES_MAX];
    size_t n;
    struct arena arena;
};

static void loading_end(struct loading *l)
{
    for (size_t i = 0; i < l->n; i++)
        buf_free(&l->texts[i]);
    arena_free(&l->arena);
}

static const char *variable(const char *name)
{
    const char *v = getenv(name);
    return v && v[0] ? v : NULL;
}

/* ---- the files a config names ---- */

static int read_pem(struct kube_config *c, const char *what, struct kube_pem *pem, struct err *e)
{
    AUTO(buf_free) struct buf text = { 0 };
    if (pem->file) {
        if (file_read(pem->file, KUBE_PEM_MAX, &text, e) < 0)
            return err_wrap(e, "%s: its %s", c->source, what);
        pem->text = (struct str){ arena_strndup(&c->arena, text.p ? text.p : "", text.n), text.n };
    }
    if (!pem->text.p || memmem(pem->text.p, pem->text.n, "-----BEGIN ", 11))
        return 0;
    err_set(e, ERR_INVALID, "%s: its %s is not PEM text", c->source, what);
    return err_hint(e,
                    "it begins with -----BEGIN; in a …-data field that is base64 once, not twice");
}

static struct kube_config *complete(struct kube_config *c, struct err *e)
{
    if (!c)
        return NULL;
    if (read_pem(c, "certificate-authority", &c->ca, e) < 0 ||
        read_pem(c, "client-certificate", &c->cert, e) < 0 ||
        read_pem(c, "client-key", &c->key, e) < 0)
        return kube_config_free(c);
    return c;
}

/* ---- which kubeconfigs ---- */

static int add_file(struct loading *l, const char *path, struct err *e)
{
    struct buf *text = &l->texts[l->n];
    if (l->n == KUBE_CONFIG_FILES_MAX)
        return err_set(e, ERR_TOO_LARGE, "KUBECONFIG names more than %d files",
                       KUBE_CONFIG_FILES_MAX);
    if (file_read(path, KUBE_CONFIG_TEXT_MAX, text, e) < 0)
        return -1;
    l->files[l->n++] = (struct kube_config_file){ path, buf_str(text) };
    return 0;
}

/* A file that is not there counts as empty, as kubectl has it, unless none is there. */
static int add_list(struct loading *l, struct str list, struct err *e)
{
    struct str one, rest = list;
    while (rest.n) {
        str_cut(rest, ':', &one, &rest);
        if (one.n && add_file(l, arena_strndup(&l->arena, one.p, one.n), e) < 0 &&
            e->code != ERR_NOT_FOUND)
            return err_wrap(e, "KUBECONFIG");
    }
    if (l->n)
        return 0;
    err_set(e, ERR_NOT_FOUND, "none of the files in KUBECONFIG is there: %.*s", STR_ARG(list));
    return err_hint(e, "set KUBECONFIG to your kubeconfig, or unset it for ~/.kube/config");
}

static int add_home(struct loading *l, struct err *e)
{
    const char *home = variable("HOME");
    if (home && add_file(l, arena_printf(&l->arena, "%s/.kube/config", home), e) == 0)
        return 0;
    if (home && e->code != ERR_NOT_FOUND)
        return -1;
    err_set(e, ERR_NOT_FOUND,
            "no kubeconfig: KUBECONFIG is not set, this is no pod, and "
            "~/.kube/config is not there");
    return err_hint(e, "name the file in KUBECONFIG, or copy it to ~/.kube/config");
}

struct kube_config *kube_config_load(const char *path, const char *context, struct err *e)
{
    AUTO(loading_end) struct loading l = { 0 };
    const char *list = variable("KUBECONFIG");
    if (path && path[0]) {
        if (add_file(&l, path, e) < 0)
            return NULL;
    } else if (list) {
        if (add_list(&l, str_of(list), e) < 0)
            return NULL;
    } else if (variable("KUBERNETES_SERVICE_HOST") && variable("KUBERNETES_SERVICE_PORT")) {
        return kube_config_in_cluster(NULL, e);
    } else if (add_home(&l, e) < 0) {
        return NULL;
    }
    return complete(kube_config_parse(l.files, l.n, context, e), e);
}

/* ---- inside a pod ---- */

static void read_space(struct kube_config *c, const char *folder)
{
    AUTO(buf_free) struct buf text = { 0 };
    struct err ignored;
    c->space = "default";
    if (file_read(arena_printf(&c->arena, "%s/namespace", folder), 256, &text, &ignored) < 0)
        return;
    struct str name = str_trim(buf_str(&text));
    if (name.n)
        c->space = arena_strndup(&c->arena, name.p, name.n);
}

struct kube_config *kube_config_in_cluster(const char *folder, struct err *e)
{
    const char *host = variable("KUBERNETES_SERVICE_HOST");
    const char *port = variable("KUBERNETES_SERVICE_PORT");
    if (!host || !port) {
        err_set(e, ERR_NOT_FOUND, "KUBERNETES_SERVICE_HOST and _PORT are not set: this is no pod");
        err_hint(e, "name a kubeconfig in KUBECONFIG");
        return NULL;
    }
    folder = folder ? folder : ACCOUNT_FOLDER;
    struct arena a = { 0 };
    struct kube_config *c = arena_new(&a, struct kube_config);
    c->arena = a;
    bool v6 = strchr(host, ':') && host[0] != '[';
    c->source = arena_printf(&c->arena, "the pod's account in %s", folder);
    c->server =
        arena_printf(&c->arena, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    c->ca.file = arena_printf(&c->arena, "%s/ca.crt", folder);
    c->token_file = arena_printf(&c->arena, "%s/token", folder);
    read_space(c, folder);
    AUTO(buf_free) struct buf token = { 0 };
    if (file_read(c->token_file, KUBE_TOKEN_MAX, &token, e) < 0) {
        err_wrap(e, "%s", c->source);
        err_hint(e, "let the pod have its account: automountServiceAccountToken: true");
        return kube_config_free(c);
    }
    return complete(c, e);
}
