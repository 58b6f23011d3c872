/* Settings, manifest and index of an image: whatever parses keeps to what the header promises. */
#include "keeper/image_parse.h"
#include "tests/fuzz/target.h"

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void check_run(const struct image_run *r)
{
    need(r->workdir[0] == 0 || r->workdir[0] == '/');
    for (const char *const *v = r->env; *v; v++)
        need(strchr(*v, '=') && **v != '=');
    for (const char *const *v = r->entrypoint; *v; v++)
        need(strlen(*v) < 1u << 20);
    for (const char *const *v = r->cmd; *v; v++)
        need(strlen(*v) < 1u << 20);
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct image_run run;
    struct image_manifest m;
    char digest[IMAGE_DIGEST];
    struct err e = { 0 };
    struct str text = { size ? (const char *)data : "", size };
    if (image_run_parse(text, &a, &run, &e) == 0)
        check_run(&run);
    if (image_index_parse(text, digest, &e) == 0)
        need(strlen(digest) == 64 && strspn(digest, "0123456789abcdef") == 64);
    if (image_manifest_parse(text, &a, &m, &e) == 0)
        for (size_t i = 0; i < m.n_layers; i++)
            need(strspn(m.layer[i], "0123456789abcdef") == 64);
    struct str said = image_complaint(text);
    need(said.n == 0 || (said.p >= text.p && said.p + said.n <= text.p + text.n));
    return 0;
}
