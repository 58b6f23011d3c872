#include "daemon/engines.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/kube/kube.h"
#include "engine/local/local.h"
#include "kube/config.h"

bool engines_is_kube(const struct config *c)
{
    return strcmp(c->engine, "kube") == 0;
}

static int open_local(const struct engines_in *in, struct engine *out)
{
    const struct config *c = in->config;
    char socket[4096];
    snprintf(socket, sizeof socket, "%s/keeper.sock", c->run);
    bool external = strcmp(c->keeper, "external") == 0;
    struct local_config lc = { .loop = in->loop,
                               .log = in->log,
                               .clock = in->clock,
                               .socket = socket,
                               .state = c->state,
                               .run = c->run,
                               .keeper_argv = external ? NULL : in->keeper_argv,
                               .log_bytes = c->log_bytes,
                               .scratch_mib = (uint32_t)(c->scratch_bytes >> 20),
                               .pids_max = (uint32_t)c->pids_max,
                               .volumes_allow = c->volumes_allow,
                               .volumes_deny = c->volumes_deny,
                               .sink = in->sink,
                               .ctx = in->ctx };
    *out = engine_local_new(&lc);
    return 0;
}

/* A daemon that comes back with its store, on its machine or in its pod of the same name, is the same one and
 * goes on at once; the lock on the store keeps two of them apart. */
static void identify(const struct config *c, char *out, size_t n)
{
    char host[256] = "nightshiftd";
    gethostname(host, sizeof host - 1);
    snprintf(out, n, "%s_%08llx", host,
             (unsigned long long)(str_hash(str_of(c->state)) & 0xffffffffu));
}

/* Whose pods they are: stays with the store wherever that is carried, and is the same again where a store was
 * lost. */
static void name_daemon(const struct config *c, const char *identity, char *out, size_t n)
{
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/kube-daemon", c->state);
    snprintf(out, n, "%s", identity);
    FILE *f = fopen(path, "r");
    bool known = f && fgets(out, (int)n, f) && out[0];
    if (f)
        fclose(f);
    if (known)
        return;
    snprintf(out, n, "%s", identity);
    f = fopen(path, "w");
    if (f) {
        fputs(identity, f);
        fclose(f);
    }
}

/* "0" is nothing. */
static const char *size_or_none(const char *text)
{
    return !text || strcmp(text, "0") == 0 ? "" : text;
}

static int open_kube(const struct engines_in *in, struct engine *out, struct err *e)
{
    const struct config *c = in->config;
    char who[320], whose[320], other[NAME_MAX_BYTES + 1];
    struct kube_config *server = kube_config_load(c->kube_config, c->kube_context, e);
    if (!server)
        return -1;
    identify(c, who, sizeof who);
    name_daemon(c, who, whose, sizeof whose);
    snprintf(other, sizeof other, "%.*s", STR_ARG(in->site->default_tenant));
    struct kube_engine_config kc = {
        .loop = in->loop,
        .log = in->log,
        .clock = in->clock,
        .server = server,
        .site = { .scheduler = c->kube_scheduler,
                  .image = c->kube_image,
                  .init_image = c->kube_init_image,
                  .init_path = c->kube_init_path,
                  .gpu = c->kube_gpu,
                  .state_size = size_or_none(c->kube_state_size),
                  .state_class = c->kube_storage_class,
                  .home_size = size_or_none(c->kube_home_size),
                  .home_access = c->kube_home_access,
                  .daemon = whose,
                  .scratch_mib = (uint32_t)(c->scratch_bytes >> 20) },
        .space = c->kube_namespace,
        .prefix = c->kube_namespace_prefix,
        .user_prefix = c->kube_user_prefix,
        .other_tenant = other,
        .state = c->state,
        .identity = who,
        .log_bytes = c->log_bytes,
        .lost_after_ms = c->kube_lost_after_ms,
        .sink = in->sink,
        .ctx = in->ctx,
    };
    return engine_kube_new(&kc, out, e);
}

int engines_open(const struct engines_in *in, struct engine *out, struct err *e)
{
    return engines_is_kube(in->config) ? open_kube(in, out, e) : open_local(in, out);
}

struct vouch *engines_vouch(const struct engines_in *in, struct err *e)
{
    const struct config *c = in->config;
    if (!engines_is_kube(c))
        return NULL;
    struct kube_config *server = kube_config_load(c->kube_config, c->kube_context, e);
    return server ? vouch_new(in->loop, in->log, server, c->kube_namespace, e) : NULL;
}

const char *engines_mode(const struct engine *en)
{
    return strcmp(en->ops->name, "kube") == 0 ? "kube" : engine_local_mode(en);
}

void engines_end(struct engine *en)
{
    if (strcmp(en->ops->name, "local") == 0)
        engine_local_end(en);
}
