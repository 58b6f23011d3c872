#include "kube/credential.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/date.h"
#include "base/json.h"
#include "kube/plugin.h"
#include "sys/clock.h"
#include "sys/file.h"

#define LOOK_EVERY_NS INT64_C(10000000000)
#define PLUGIN_REST_NS INT64_C(1000000000) /* between two runs */
#define EXPIRES_EARLY_MS 10000             /* a token is not used in its last seconds */

struct kube_credential {
    struct loop *loop;
    const struct kube_config *config;
    loop_fn *on_change;
    void *ctx;
    char *bearer;
    struct arena arena; /* a plugin's certificate and key */
    struct str cert, key;
    uint64_t version;
    int64_t looked_ns;    /* at the file; 0: never */
    struct timespec seen; /* the file's time, inode and size when it was read */
    ino_t inode;
    off_t size;
    struct kube_plugin_run *run;
    int64_t ran_ns;     /* when the plugin ended; 0: never */
    int64_t expires_ms; /* INT64_MAX: never */
    struct err failed;  /* code ERR_NONE: the last time went well */
};

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

/* A token is one word of visible signs; anything else would end the header. */
static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return s.n > 0;
}

static int set_token(struct kube_credential *c, struct str token, struct err *e)
{
    static const char head[] = "Authorization: Bearer ";
    if (!is_token(token)) {
        err_set(e, ERR_INVALID, "%s: its token is empty or not one word", c->config->source);
        return err_hint(e, "ask for a new one, e.g. kubectl create token ACCOUNT");
    }
    size_t n = sizeof head + token.n;
    char *bearer = xmalloc(n);
    snprintf(bearer, n, "%s%.*s", head, (int)token.n, token.p);
    if (c->bearer && strcmp(bearer, c->bearer) == 0) {
        wipe(&bearer);
        return 0;
    }
    wipe(&c->bearer);
    c->bearer = bearer;
    c->version++;
    return 0;
}

/* ---- a token in a file ---- */

static int read_file(struct kube_credential *c, struct err *e)
{
    AUTO(buf_free) struct buf text = { 0 };
    struct stat st;
    c->looked_ns = clock_mono_ns();
    bool known = stat(c->config->token_file, &st) == 0;
    if (file_read(c->config->token_file, KUBE_TOKEN_MAX, &text, e) < 0)
        return err_wrap(e, "%s: its token", c->config->source);
    c->seen = known ? st.st_mtim : (struct timespec){ 0 };
    c->inode = known ? st.st_ino : 0;
    c->size = known ? st.st_size : 0;
    int rc = set_token(c, str_trim(buf_str(&text)), e);
    if (text.p)
        explicit_bzero(text.p, text.n);
    return rc;
}

static bool file_changed(const struct kube_credential *c)
{
    struct stat st;
    return stat(c->config->token_file, &st) == 0 &&
           (st.st_mtim.tv_sec != c->seen.tv_sec || st.st_mtim.tv_nsec != c->seen.tv_nsec ||
            st.st_ino != c->inode || st.st_size != c->size);
}

static enum kube_credential_state get_from_file(struct kube_credential *c, struct err *e)
{
    struct err ignored;
    if (!c->bearer)
        return read_file(c, e) < 0 ? KUBE_CREDENTIAL_FAILED : KUBE_CREDENTIAL_READY;
    if (clock_mono_ns() - c->looked_ns < LOOK_EVERY_NS)
        return KUBE_CREDENTIAL_READY;
    c->looked_ns = clock_mono_ns();
    if (file_changed(c) && read_file(c, &ignored) < 0)
        c->seen.tv_nsec = -1; /* half written: the old one is good until the next look */
    return KUBE_CREDENTIAL_READY;
}

/* ---- a plugin's ---- */

static int take_certificate(struct kube_credential *c, const struct json *status, struct err *e)
{
    struct str cert = { 0 }, key = { 0 };
    if (json_get_str(status, "clientCertificateData", KUBE_PEM_MAX, &cert, e) < 0 ||
        json_get_str(status, "clientKeyData", KUBE_PEM_MAX, &key, e) < 0)
        return -1;
    arena_reset(&c->arena);
    c->cert = c->key = (struct str){ 0 };
    if (!cert.n || !key.n)
        return 0;
    c->cert = (struct str){ arena_strndup(&c->arena, cert.p, cert.n), cert.n };
    c->key = (struct str){ arena_strndup(&c->arena, key.p, key.n), key.n };
    c->version++;
    return 0;
}

static int take_status(struct kube_credential *c, const struct json *root, struct err *e)
{
    const struct json *status = json_find(root, "status");
    struct str token = { 0 }, until = { 0 };
    int64_t expires_ms = INT64_MAX;
    if (!json_is_object(status))
        return err_set(e, ERR_INVALID, "it printed no ExecCredential with a status");
    if (json_get_str(status, "token", KUBE_TOKEN_MAX, &token, e) < 0 ||
        json_get_str(status, "expirationTimestamp", 64, &until, e) < 0 ||
        (until.n && date_parse(until, &expires_ms, e) < 0) || take_certificate(c, status, e) < 0)
        return -1;
    if (!token.n && !c->cert.p)
        return err_set(e, ERR_INVALID, "it printed neither a token nor a certificate");
    if (token.n && set_token(c, token, e) < 0)
        return -1;
    if (!token.n)
        wipe(&c->bearer);
    c->expires_ms = expires_ms;
    return 0;
}

static void on_plugin(void *ctx, struct str printed, const struct err *failed)
{
    struct kube_credential *c = ctx;
    AUTO(json_free_p) struct json_doc *doc = NULL;
    c->run = NULL;
    c->ran_ns = clock_mono_ns();
    c->failed = failed ? *failed : (struct err){ 0 };
    if (!failed) {
        doc = json_read(printed, &c->failed);
        if (doc && take_status(c, json_root(doc), &c->failed) == 0)
            c->failed = (struct err){ 0 };
    }
    if (c->failed.code != ERR_NONE) {
        err_wrap(&c->failed, "%s: its plugin '%.80s'", c->config->source,
                 c->config->plugin->argv[0]);
        if (c->config->plugin->install_hint)
            err_hint(&c->failed, "%s", c->config->plugin->install_hint);
    }
    c->on_change(c->ctx);
}

static enum kube_credential_state run_plugin(struct kube_credential *c, struct err *e)
{
    if (!c->run)
        c->run = kube_plugin_run(c->loop, c->config->plugin, on_plugin, c, e);
    if (c->run)
        return KUBE_CREDENTIAL_COMING;
    err_wrap(e, "%s", c->config->source);
    if (c->config->plugin->install_hint)
        err_hint(e, "%s", c->config->plugin->install_hint);
    return KUBE_CREDENTIAL_FAILED;
}

static enum kube_credential_state get_from_plugin(struct kube_credential *c, struct err *e)
{
    struct clock wall = clock_wall();
    bool rests = c->ran_ns && clock_mono_ns() - c->ran_ns < PLUGIN_REST_NS;
    if (c->run)
        return KUBE_CREDENTIAL_COMING;
    if (rests && c->failed.code != ERR_NONE) {
        *e = c->failed;
        return KUBE_CREDENTIAL_FAILED;
    }
    bool has = c->ran_ns && c->failed.code == ERR_NONE;
    if (has && (rests || c->expires_ms == INT64_MAX ||
                clock_now_ms(&wall) < c->expires_ms - EXPIRES_EARLY_MS))
        return KUBE_CREDENTIAL_READY;
    return run_plugin(c, e);
}

/* ---- all three ---- */

struct kube_credential *kube_credential_new(struct loop *l, const struct kube_config *config,
                                            loop_fn *on_change, void *ctx)
{
    struct kube_credential *c = xcalloc(1, sizeof *c);
    c->loop = l;
    c->config = config;
    c->on_change = on_change;
    c->ctx = ctx;
    c->expires_ms = INT64_MAX;
    c->version = 1;
    return c;
}

struct kube_credential *kube_credential_free(struct kube_credential *c)
{
    if (!c)
        return NULL;
    kube_plugin_stop(c->run);
    wipe(&c->bearer);
    arena_free(&c->arena);
    free(c);
    return NULL;
}

static enum kube_credential_state get(struct kube_credential *c, struct err *e)
{
    if (c->config->token_file)
        return get_from_file(c, e);
    if (c->config->plugin && !c->config->token)
        return get_from_plugin(c, e);
    if (c->config->token && !c->bearer && set_token(c, str_of(c->config->token), e) < 0)
        return KUBE_CREDENTIAL_FAILED;
    return KUBE_CREDENTIAL_READY;
}

enum kube_credential_state kube_credential_get(struct kube_credential *c, struct kube_identity *out,
                                               struct err *e)
{
    enum kube_credential_state state = get(c, e);
    if (state == KUBE_CREDENTIAL_READY)
        *out = (struct kube_identity){ c->bearer, c->cert.p ? c->cert : c->config->cert.text,
                                       c->key.p ? c->key : c->config->key.text, c->version };
    return state;
}

bool kube_credential_refused(struct kube_credential *c, uint64_t version)
{
    struct err ignored;
    if (version != c->version || c->run)
        return true;
    if (c->config->token_file)
        return read_file(c, &ignored) == 0 && c->version != version;
    if (!c->config->plugin || c->config->token || clock_mono_ns() - c->ran_ns < PLUGIN_REST_NS)
        return false;
    return run_plugin(c, &ignored) == KUBE_CREDENTIAL_COMING;
}
