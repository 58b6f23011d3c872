/* Any bytes as a kubeconfig: what is read has a server and a source; what is not is told in one line. */
#include "kube/config.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check_plugin(const struct kube_plugin *p)
{
    size_t n = 0;
    must(p->argv[0] && p->argv[0][0] && p->api_version);
    while (p->argv[n])
        must(++n <= KUBE_PLUGIN_WORDS_MAX + 1);
    for (n = 0; p->env[n]; n++)
        must(strchr(p->env[n], '=') > p->env[n]);
}

FUZZ_TARGET(data, size)
{
    /* Two files, so that merging is tried too: the second repeats the first. */
    struct kube_config_file files[] = { { "/a/config", { (const char *)data, size } },
                                        { "/b/config", { (const char *)data, size } } };
    struct err e = { 0 };
    AUTO(kube_config_free_p) struct kube_config *c = kube_config_parse(files, 2, NULL, &e);
    if (!c) {
        must(e.code != ERR_NONE && e.msg[0] && !strchr(e.msg, '\n'));
        return 0;
    }
    must(c->server && strncmp(c->server, "http", 4) == 0 && c->source && c->space);
    must(!c->token || c->token[0]);
    must(!c->cert.file || c->cert.file[0]);
    if (c->plugin)
        check_plugin(c->plugin);
    return 0;
}
