/* Any bytes as a CDI spec (the first says JSON or YAML): what reads holds only absolute paths and
 * NAME=value; what does not is told in one line. */
#include "node/cdi.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check_path(const char *p)
{
    must(p[0] == '/' && !strstr(p, "/../"));
}

static void check_edits(const struct cdi_edits *d)
{
    for (size_t i = 0; i < d->n_nodes; i++) {
        const struct cdi_node *n = &d->nodes[i];
        check_path(n->path);
        check_path(n->host_path);
        must(n->major >= CDI_UNSET && n->minor >= CDI_UNSET && n->mode >= CDI_UNSET);
        must(strspn(n->permissions, "rwm") == strlen(n->permissions));
    }
    for (size_t i = 0; i < d->n_mounts; i++) {
        size_t n = 0;
        check_path(d->mounts[i].host_path);
        check_path(d->mounts[i].path);
        while (d->mounts[i].options[n])
            must(++n <= CDI_ITEMS_MAX);
    }
    for (size_t i = 0; i < d->n_hooks; i++)
        check_path(d->hooks[i].path);
    for (size_t i = 0; i < d->n_env; i++)
        must(strchr(d->env[i], '=') > d->env[i]);
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct cdi_spec s;
    struct err e = { 0 };
    if (size == 0)
        return 0;
    struct str text = { (const char *)data + 1, size - 1 };
    if (cdi_parse(text, data[0] != 'j', &a, &s, &e) < 0) {
        must(e.code != ERR_NONE && e.msg[0] && !strchr(e.msg, '\n'));
        return 0;
    }
    must(strchr(s.kind, '/') != NULL);
    check_edits(&s.common);
    for (size_t i = 0; i < s.n_devices; i++) {
        must(s.devices[i].name[0] != '\0');
        check_edits(&s.devices[i].edits);
    }
    return 0;
}
