#include "kube/config.h"

#include <stdio.h>

#include "base/url.h"
#include "base/yaml.h"

#define NAME_MAX_BYTES 1024
#define HINT_NAMES_MAX 120

struct reading {
    const struct kube_config_file *files;
    struct json_doc *docs[KUBE_CONFIG_FILES_MAX];
    size_t n;
    const char *context;
    struct kube_config *c;
};

/* One part of a merged kubeconfig: the object, and the file it stands in. */
struct part {
    const struct json *obj;
    const char *path, *kind, *name;
};

struct kube_config *kube_config_free(struct kube_config *c)
{
    if (!c)
        return NULL;
    struct arena a = c->arena;
    arena_free(&a); /* the config itself lies in it */
    return NULL;
}

void kube_config_free_p(struct kube_config **c)
{
    *c = kube_config_free(*c);
}

static void reading_end(struct reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        r->docs[i] = json_free(r->docs[i]);
    r->c = kube_config_free(r->c);
}

/* ---- base64 ---- */

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int kube_base64(struct str text, struct arena *a, struct str *out)
{
    char *p = arena_alloc(a, text.n / 4 * 3 + 4, 1);
    size_t n = 0, signs = 0, pads = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\n' || c == '\r' || c == ' ')
            continue;
        int v = c == '=' ? 0 : sextet(c);
        pads += c == '=';
        if (v < 0 || pads > 2 || (pads > 0 && c != '='))
            return -1;
        bits = bits << 6 | (uint32_t)v;
        if (++signs % 4 != 0)
            continue;
        p[n++] = (char)(bits >> 16 & 0xff);
        p[n++] = (char)(bits >> 8 & 0xff);
        p[n++] = (char)(bits & 0xff);
        if (pads && i + 1 < text.n && str_trim((struct str){ text.p + i + 1, text.n - i - 1 }).n)
            return -1;
    }
    if (signs % 4 != 0)
        return -1;
    n -= pads;
    p[n] = '\0';
    *out = (struct str){ p, n };
    return 0;
}

/* ---- fields ---- */

static int wrong(const struct part *p, struct err *e)
{
    return err_wrap(e, "%s: %s '%.80s'", p->path, p->kind, p->name);
}

/* *out is NULL when the field is missing, null or empty. */
static int get_text(struct reading *r, const struct part *p, const char *key, size_t max,
                    const char **out, struct err *e)
{
    const struct json *v = json_find(p->obj, key);
    struct str s = { 0 };
    *out = NULL;
    if (!v || json_is_null(v))
        return 0;
    if (json_get_str(p->obj, key, max, &s, e) < 0)
        return wrong(p, e);
    if (s.n && memchr(s.p, '\0', s.n)) {
        err_set(e, ERR_INVALID, "field '%s' has a NUL in it", key);
        return wrong(p, e);
    }
    *out = s.n ? arena_strndup(&r->c->arena, s.p, s.n) : NULL;
    return 0;
}

/* A path in a kubeconfig is relative to the kubeconfig. */
static const char *beside(struct reading *r, const char *config, const char *path)
{
    const char *slash = config ? strrchr(config, '/') : NULL;
    if (path[0] == '/' || !slash)
        return path;
    return arena_printf(&r->c->arena, "%.*s/%s", (int)(slash - config), config, path);
}

/* "x-data" in base64 counts before the file "x". */
static int get_pem(struct reading *r, const struct part *p, const char *key, struct kube_pem *out,
                   struct err *e)
{
    char data_key[64];
    const char *data = NULL, *file = NULL;
    snprintf(data_key, sizeof data_key, "%s-data", key);
    if (get_text(r, p, data_key, KUBE_PEM_MAX, &data, e) < 0 ||
        get_text(r, p, key, NAME_MAX_BYTES, &file, e) < 0)
        return -1;
    if (data && kube_base64(str_of(data), &r->c->arena, &out->text) < 0) {
        err_set(e, ERR_INVALID, "field '%s' is not base64", data_key);
        err_hint(e, "give the file itself in '%s', or encode it: base64 -w0 FILE", key);
        return wrong(p, e);
    }
    if (!data && file)
        out->file = beside(r, p->path, file);
    return 0;
}

static int get_flag(const struct part *p, const char *key, bool *out, struct err *e)
{
    const struct json *v = json_find(p->obj, key);
    if (!v || json_is_null(v) || json_get_bool(p->obj, key, out, e) == 0)
        return 0;
    return wrong(p, e);
}

/* ---- parts by name: the first file that has one wins ---- */

static const struct json *named_in(const struct json *root, const char *list, struct str name)
{
    const struct json *all = json_find(root, list);
    struct err ignored;
    if (!json_is_array(all))
        return NULL;
    for (const struct json *v = json_first(all); v; v = json_next(all, v)) {
        struct str s = { 0 };
        if (json_is_object(v) && json_get_str(v, "name", NAME_MAX_BYTES, &s, &ignored) == 0 &&
            s.p && str_eq(s, name))
            return v;
    }
    return NULL;
}

static void list_names(const struct reading *r, const char *list, struct buf *out)
{
    struct err ignored;
    for (size_t i = 0; i < r->n; i++) {
        const struct json *all = json_find(json_root(r->docs[i]), list);
        if (!json_is_array(all))
            continue;
        for (const struct json *v = json_first(all); v; v = json_next(all, v)) {
            struct str s = { 0 };
            if (json_is_object(v) && json_get_str(v, "name", NAME_MAX_BYTES, &s, &ignored) == 0)
                buf_printf(out, "%s%.*s", out->n ? ", " : "", STR_ARG(s));
        }
    }
}

static int not_found(const struct reading *r, const struct part *want, const char *list,
                     struct err *e)
{
    AUTO(buf_free) struct buf names = BUF(HINT_NAMES_MAX);
    list_names(r, list, &names);
    err_set(e, ERR_NOT_FOUND, "%s%s has no %s '%.80s'", r->files[0].path,
            r->n > 1 ? " (and the other files)" : "", want->kind, want->name);
    return names.n ? err_hint(e, "it has: %s%s", names.p, names.full ? " …" : "")
                   : err_hint(e, "it has none at all; is it a kubeconfig?");
}

static int find_part(const struct reading *r, const char *list, struct part *io, struct err *e)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct json *v =
            named_in(json_root(r->docs[i]), list, str_of(io->name ? io->name : ""));
        if (!v)
            continue;
        io->path = r->files[i].path;
        io->obj = json_find(v, io->kind);
        if (json_is_object(io->obj))
            return 0;
        err_set(e, ERR_INVALID, "it has no '%s' inside", io->kind);
        return wrong(io, e);
    }
    return not_found(r, io, list, e);
}

/* ---- the three parts ---- */

static int choose_context(struct reading *r, struct err *e)
{
    AUTO(buf_free) struct buf names = BUF(HINT_NAMES_MAX);
    for (size_t i = 0; i < r->n && !r->context; i++) {
        struct part top = { json_root(r->docs[i]), r->files[i].path, "file", "kubeconfig" };
        if (get_text(r, &top, "current-context", NAME_MAX_BYTES, &r->context, e) < 0)
            return -1;
    }
    if (r->context)
        return 0;
    list_names(r, "contexts", &names);
    err_set(e, ERR_INVALID, "%s names no current-context", r->files[0].path);
    return names.n ? err_hint(e, "choose one of its contexts: %s", names.p)
                   : err_hint(e, "it has no contexts at all; is it a kubeconfig?");
}

static int check_server(struct kube_config *c, const struct part *p, struct err *e)
{
    struct url u;
    char *end = (char *)(uintptr_t)c->server + strlen(c->server);
    while (end > c->server && end[-1] == '/')
        *--end = '\0';
    if (url_parse(str_of(c->server), &u, e) < 0)
        return wrong(p, e);
    if (!u.has_query)
        return 0;
    err_set(e, ERR_INVALID, "its server has a query ('?')");
    err_hint(e, "e.g. server: https://10.0.0.1:6443");
    return wrong(p, e);
}

static int read_cluster(struct reading *r, struct part *p, struct err *e)
{
    struct kube_config *c = r->c;
    if (find_part(r, "clusters", p, e) < 0 ||
        get_text(r, p, "server", URL_MAX, &c->server, e) < 0 ||
        get_text(r, p, "tls-server-name", 253, &c->tls_server_name, e) < 0 ||
        get_text(r, p, "proxy-url", URL_MAX, &c->proxy, e) < 0 ||
        get_flag(p, "insecure-skip-tls-verify", &c->insecure, e) < 0 ||
        get_pem(r, p, "certificate-authority", &c->ca, e) < 0)
        return -1;
    if (!c->server) {
        err_set(e, ERR_INVALID, "it has no server");
        err_hint(e, "e.g. server: https://10.0.0.1:6443");
        return wrong(p, e);
    }
    return check_server(c, p, e);
}

static int plugin_list(const struct part *p, const char *key, const struct json **out,
                       struct err *e)
{
    const struct json *v = json_find(p->obj, key);
    *out = NULL;
    if (!v || json_is_null(v))
        return 0;
    *out = v;
    if (json_is_array(v) && json_len(v) <= KUBE_PLUGIN_WORDS_MAX)
        return 0;
    err_set(e, ERR_INVALID, "field 'exec.%s' is not a list of at most %d", key,
            KUBE_PLUGIN_WORDS_MAX);
    return wrong(p, e);
}

static const char *word_of(struct reading *r, const struct json *v, struct err *e)
{
    struct str s;
    if (json_as_str(v, KUBE_PEM_MAX, &s, e) < 0)
        return NULL;
    if (!memchr(s.p, '\0', s.n))
        return arena_strndup(&r->c->arena, s.p, s.n);
    err_set(e, ERR_INVALID, "a NUL in a word");
    return NULL;
}

static int plugin_argv(struct reading *r, const struct part *p, const char *command,
                       struct kube_plugin *out, struct err *e)
{
    const struct json *args;
    if (plugin_list(p, "args", &args, e) < 0)
        return -1;
    const char **argv = arena_array(&r->c->arena, const char *, (args ? json_len(args) : 0) + 2);
    size_t n = 0;
    argv[n++] = strchr(command, '/') ? beside(r, p->path, command) : command;
    for (const struct json *v = args ? json_first(args) : NULL; v; v = json_next(args, v)) {
        argv[n] = word_of(r, v, e);
        if (!argv[n++]) {
            err_wrap(e, "field 'exec.args'");
            return wrong(p, e);
        }
    }
    out->argv = argv;
    return 0;
}

static int plugin_env(struct reading *r, const struct part *p, struct kube_plugin *out,
                      struct err *e)
{
    const struct json *list;
    if (plugin_list(p, "env", &list, e) < 0)
        return -1;
    const char **env = arena_array(&r->c->arena, const char *, (list ? json_len(list) : 0) + 1);
    size_t n = 0;
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        struct part one = { v, p->path, p->kind, p->name };
        const char *name = NULL, *value = NULL;
        if (json_is_object(v) && (get_text(r, &one, "name", NAME_MAX_BYTES, &name, e) < 0 ||
                                  get_text(r, &one, "value", KUBE_PEM_MAX, &value, e) < 0))
            return -1;
        if (!name || strchr(name, '=')) {
            err_set(e, ERR_INVALID, "field 'exec.env' wants {name: …, value: …}");
            return wrong(p, e);
        }
        env[n++] = arena_printf(&r->c->arena, "%s=%s", name, value ? value : "");
    }
    out->env = env;
    return 0;
}

static int read_plugin(struct reading *r, const struct part *user, struct err *e)
{
    struct part p = { json_find(user->obj, "exec"), user->path, user->kind, user->name };
    const char *command = NULL;
    if (!p.obj || json_is_null(p.obj))
        return 0;
    if (json_is_object(p.obj) && get_text(r, &p, "command", NAME_MAX_BYTES, &command, e) < 0)
        return -1;
    if (!command) {
        err_set(e, ERR_INVALID, "field 'exec' has no command");
        return wrong(&p, e);
    }
    struct kube_plugin *out = arena_new(&r->c->arena, struct kube_plugin);
    if (plugin_argv(r, &p, command, out, e) < 0 || plugin_env(r, &p, out, e) < 0 ||
        get_text(r, &p, "apiVersion", NAME_MAX_BYTES, &out->api_version, e) < 0 ||
        get_text(r, &p, "installHint", NAME_MAX_BYTES, &out->install_hint, e) < 0)
        return -1;
    if (!out->api_version)
        out->api_version = "client.authentication.k8s.io/v1";
    r->c->plugin = out;
    return 0;
}

static int check_user(const struct kube_config *c, const struct part *p, struct err *e)
{
    const struct json *old = json_find(p->obj, "auth-provider");
    bool has_cert = c->cert.text.p || c->cert.file, has_key = c->key.text.p || c->key.file;
    if (has_cert != has_key) {
        err_set(e, ERR_INVALID, "it has a client-%s without its client-%s",
                has_cert ? "certificate" : "key", has_cert ? "key" : "certificate");
        return wrong(p, e);
    }
    if (old && !json_is_null(old) && !has_cert && !c->token && !c->token_file && !c->plugin) {
        err_set(e, ERR_INVALID, "'auth-provider' is not supported");
        err_hint(e, "Kubernetes dropped it in 1.26: use a token, a certificate or an exec plugin");
        return wrong(p, e);
    }
    return 0;
}

static int read_user(struct reading *r, struct part *p, struct err *e)
{
    struct kube_config *c = r->c;
    if (find_part(r, "users", p, e) < 0 || get_pem(r, p, "client-certificate", &c->cert, e) < 0 ||
        get_pem(r, p, "client-key", &c->key, e) < 0 ||
        get_text(r, p, "token", KUBE_TOKEN_MAX, &c->token, e) < 0 ||
        get_text(r, p, "tokenFile", NAME_MAX_BYTES, &c->token_file, e) < 0 ||
        read_plugin(r, p, e) < 0)
        return -1;
    if (c->token_file)
        c->token_file = beside(r, p->path, c->token_file);
    return check_user(c, p, e);
}

/* A secret is not sent where everybody can read it. */
static int check_secrecy(const struct kube_config *c, struct err *e)
{
    struct url u;
    if (url_parse(str_of(c->server), &u, e) < 0)
        return -1;
    if (u.https || url_is_loopback(&u) || (!c->token && !c->token_file && !c->plugin))
        return 0;
    err_set(e, ERR_INVALID, "%s would send its token in the clear to %s", c->source, c->server);
    return err_hint(e, "use https://, or a server on this machine");
}

static int read_parts(struct reading *r, struct err *e)
{
    struct part context = { .kind = "context", .name = r->context };
    struct part cluster = { .kind = "cluster" }, user = { .kind = "user" };
    if (find_part(r, "contexts", &context, e) < 0 ||
        get_text(r, &context, "cluster", NAME_MAX_BYTES, &cluster.name, e) < 0 ||
        get_text(r, &context, "user", NAME_MAX_BYTES, &user.name, e) < 0 ||
        get_text(r, &context, "namespace", 253, &r->c->space, e) < 0)
        return -1;
    r->c->source = arena_printf(&r->c->arena, "context '%.80s' of %s", r->context, context.path);
    if (!cluster.name) {
        err_set(e, ERR_INVALID, "it names no cluster");
        return wrong(&context, e);
    }
    if (!r->c->space)
        r->c->space = "default";
    if (read_cluster(r, &cluster, e) < 0 || (user.name && read_user(r, &user, e) < 0))
        return err_wrap(e, "context '%.80s'", r->context);
    return check_secrecy(r->c, e);
}

struct kube_config *kube_config_parse(const struct kube_config_file *files, size_t n,
                                      const char *context, struct err *e)
{
    struct arena a = { 0 };
    AUTO(reading_end) struct reading r = { .files = files };
    r.c = arena_new(&a, struct kube_config);
    r.c->arena = a;
    if (context && context[0])
        r.context = context;
    for (; r.n < n && r.n < KUBE_CONFIG_FILES_MAX; r.n++) {
        r.docs[r.n] = yaml_read(files[r.n].text, e);
        if (!r.docs[r.n]) {
            err_wrap(e, "%s", files[r.n].path);
            return NULL;
        }
    }
    if (choose_context(&r, e) < 0 || read_parts(&r, e) < 0)
        return NULL;
    return TAKE(r.c);
}
