#include "keeper/image_parse.h"

#include <stdio.h>

#include "base/json.h"

#define ENV_MAX 512
#define ARGS_MAX 512
#define TEXT_MAX (128u << 10)
#define RUN_TEXT_MAX (512u << 10) /* of all of them */

static const struct kind_row {
    const char *name, *lead;
} kinds[] = {
#define X(id, name, lead) { name, lead },
    IMAGE_KINDS(X)
#undef X
};

static bool only_of(struct str s, const char *set)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == 0 || !strchr(set, s.p[i]))
            return false;
    return true;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool image_digest_parse(struct str s, char out[static IMAGE_DIGEST])
{
    struct str algorithm, hex;
    if (!str_cut(s, ':', &algorithm, &hex) || !str_is(algorithm, "sha256") ||
        hex.n != IMAGE_DIGEST - 1 || !only_of(hex, DIGITS "abcdef"))
        return false;
    memcpy(out, hex.p, hex.n);
    out[hex.n] = 0;
    return true;
}

static int bad_ref(struct str text, const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is not an image: %s", (int)MIN(text.n, (size_t)120), text.p,
            why);
    return err_hint(e, "examples: python:3.11, docker://registry.example/team/image:tag, "
                       "oci:/folder:tag, docker-archive:/file.tar");
}

static bool keep(struct str s, char *out, size_t size)
{
    if (s.n >= size)
        return false;
    memcpy(out, s.p, s.n);
    out[s.n] = 0;
    return true;
}

/* One part of a repository's name: letters and digits, separators only between them. */
static bool good_part(struct str s)
{
    return s.n > 0 && only_of(s, LOWER DIGITS "._-") && strchr(LOWER DIGITS, s.p[0]) &&
           strchr(LOWER DIGITS, s.p[s.n - 1]);
}

static bool good_name(struct str name)
{
    struct str part;
    bool more = true;
    while (more) {
        more = str_cut(name, '/', &part, &name);
        if (!good_part(part))
            return false;
    }
    return true;
}

static bool good_registry(struct str s)
{
    struct str host, port;
    bool has_port = str_cut(s, ':', &host, &port);
    if (has_port && (port.n == 0 || port.n > 5 || !only_of(port, DIGITS)))
        return false;
    return host.n > 0 && only_of(host, LOWER UPPER DIGITS ".-") && host.p[0] != '-' &&
           host.p[0] != '.';
}

/* The first part is a registry when it could not be a name: docker's own rule. */
static bool is_registry(struct str head)
{
    return memchr(head.p, '.', head.n) || memchr(head.p, ':', head.n) || str_is(head, "localhost");
}

static bool good_tag(struct str s)
{
    return s.n > 0 && s.n <= 128 && only_of(s, LOWER UPPER DIGITS "._-") && s.p[0] != '.' &&
           s.p[0] != '-';
}

/* Cuts the tag off: the ':' after the last '/'. */
static bool cut_tag(struct str s, struct str *out_name, struct str *out_tag)
{
    for (size_t i = s.n; i > 0 && s.p[i - 1] != '/'; i--)
        if (s.p[i - 1] == ':') {
            *out_name = (struct str){ s.p, i - 1 };
            *out_tag = (struct str){ s.p + i, s.n - i };
            return true;
        }
    return false;
}

static int parse_docker(struct str text, struct str s, struct image_ref *r, struct err *e)
{
    struct str name, digest = { 0 }, tag = { 0 }, head, tail;
    char hex[IMAGE_DIGEST];
    r->pinned = str_cut(s, '@', &name, &digest);
    bool tagged = cut_tag(name, &name, &tag);
    if (r->pinned && !image_digest_parse(digest, hex))
        return bad_ref(text, "after '@' comes sha256: and 64 hex digits", e);
    if (tagged && !good_tag(tag))
        return bad_ref(text, "the tag after ':' has other characters than A-Z a-z 0-9 . _ -", e);
    bool several = str_cut(name, '/', &head, &tail);
    bool own = several && is_registry(head);
    struct str registry = own ? head : STR("docker.io");
    name = own ? tail : name;
    if (!good_registry(registry) || !good_name(name))
        return bad_ref(text, "its name has other characters than a-z 0-9 . _ - /", e);
    /* Official images of docker.io have a family name that nobody writes. */
    bool official = str_is(registry, "docker.io") && !memchr(name.p, '/', name.n);
    size_t lead = official ? strlen("library/") : 0;
    memcpy(r->name, "library/", lead);
    if (!keep(registry, r->registry, sizeof r->registry) ||
        !keep(name, r->name + lead, sizeof r->name - lead) ||
        !keep(r->pinned ? digest
              : tagged  ? tag
                        : STR("latest"),
              r->tag, sizeof r->tag))
        return bad_ref(text, "it is too long", e);
    return 0;
}

static int parse_file(struct str text, struct str s, struct image_ref *r, struct err *e)
{
    struct str path, tag;
    str_cut(s, ':', &path, &tag);
    if (path.n == 0 || path.p[0] != '/')
        return bad_ref(text, "the path must be absolute", e);
    for (size_t i = 0; i < path.n; i++)
        if ((unsigned char)path.p[i] < 32 || path.p[i] == 127)
            return bad_ref(text, "the path has control characters", e);
    if (!only_of(tag, LOWER UPPER DIGITS "._-/:@+"))
        return bad_ref(text, "the tag has other characters than A-Z a-z 0-9 . _ - / : @ +", e);
    if (!keep(path, r->name, sizeof r->name) || !keep(tag, r->tag, sizeof r->tag))
        return bad_ref(text, "it is too long", e);
    return 0;
}

static bool starts_with(struct str s, const char *lead, struct str *out_rest)
{
    size_t n = strlen(lead);
    if (s.n < n || memcmp(s.p, lead, n) != 0)
        return false;
    *out_rest = (struct str){ s.p + n, s.n - n };
    return true;
}

static bool has_scheme(struct str s)
{
    return s.n > 2 && memmem(s.p, s.n, "://", 3);
}

int image_ref_parse(struct str text, struct image_ref *out, struct err *e)
{
    struct image_ref r = { .kind = IMAGE_DOCKER };
    struct str rest = text, body = text;
    for (unsigned k = 0; k < IMAGE_KIND_COUNT; k++) {
        char lead[32];
        snprintf(lead, sizeof lead, "%s:%s", kinds[k].name, kinds[k].lead);
        if (!starts_with(text, lead, &rest))
            continue;
        r.kind = (enum image_kind)k;
        body = rest;
    }
    if (text.n == 0)
        return bad_ref(text, "it is empty", e);
    if (r.kind == IMAGE_DOCKER && has_scheme(body))
        return bad_ref(text, "this kind of source is not known", e);
    int rc =
        r.kind == IMAGE_DOCKER ? parse_docker(text, body, &r, e) : parse_file(text, body, &r, e);
    if (rc == 0)
        *out = r;
    return rc;
}

void image_ref_format(const struct image_ref *r, struct buf *out)
{
    buf_printf(out, "%s:%s", kinds[r->kind].name, kinds[r->kind].lead);
    if (r->kind == IMAGE_DOCKER)
        buf_printf(out, "%s/%s%c%s", r->registry, r->name, r->pinned ? '@' : ':', r->tag);
    else
        buf_printf(out, "%s%s%s", r->name, r->tag[0] ? ":" : "", r->tag);
}

/* ---- what an image says about being run ---- */

struct texts {
    struct arena *a;
    size_t left; /* bytes */
};

static int copy_text(struct texts *t, const struct json *v, const char **out, struct err *e)
{
    struct str s;
    if (json_as_str(v, TEXT_MAX, &s, e) < 0)
        return -1;
    if (s.n >= t->left)
        return err_set(e, ERR_TOO_LARGE, "its settings have more than %u bytes", RUN_TEXT_MAX);
    if (memchr(s.p, 0, s.n))
        return err_set(e, ERR_INVALID, "a text of its settings has a zero byte");
    t->left -= s.n + 1;
    *out = arena_strndup(t->a, s.p, s.n);
    return 0;
}

static int copy_list(struct texts *t, const struct json *obj, const char *key, size_t max,
                     const char *const **out, struct err *e)
{
    static const char *const none[] = { NULL };
    const struct json *list = obj ? json_find(obj, key) : NULL;
    *out = none;
    if (!list || !json_is_array(list)) /* absent and null are the same */
        return 0;
    size_t n = json_len(list), i = 0;
    if (n > max)
        return err_set(e, ERR_TOO_LARGE, "'%s' has %zu entries; at most %zu", key, n, max);
    const char **copy = arena_array(t->a, const char *, n + 1);
    for (const struct json *v = json_first(list); v; v = json_next(list, v))
        if (copy_text(t, v, &copy[i++], e) < 0)
            return err_wrap(e, "'%s'", key);
    *out = copy;
    return 0;
}

static bool good_env(const char *const *env)
{
    for (; *env; env++)
        if (**env == '=' || !strchr(*env, '='))
            return false;
    return true;
}

int image_run_parse(struct str text, struct arena *a, struct image_run *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    struct image_run r = { .workdir = "" };
    struct texts t = { a, RUN_TEXT_MAX };
    if (!d)
        return err_wrap(e, "settings of the image");
    if (!json_is_object(json_root(d)))
        return err_set(e, ERR_INVALID, "the settings of the image are not an object");
    const struct json *c = json_find(json_root(d), "config");
    c = c && json_is_object(c) ? c : NULL;
    if (copy_list(&t, c, "Env", ENV_MAX, &r.env, e) < 0 ||
        copy_list(&t, c, "Entrypoint", ARGS_MAX, &r.entrypoint, e) < 0 ||
        copy_list(&t, c, "Cmd", ARGS_MAX, &r.cmd, e) < 0)
        return err_wrap(e, "settings of the image");
    const struct json *w = c ? json_find(c, "WorkingDir") : NULL;
    if (w && copy_text(&t, w, &r.workdir, e) < 0)
        return err_wrap(e, "settings of the image: 'WorkingDir'");
    if (!good_env(r.env))
        return err_set(e, ERR_INVALID, "settings of the image: 'Env' has an entry without a name");
    if (r.workdir[0] && r.workdir[0] != '/')
        return err_set(e, ERR_INVALID, "settings of the image: 'WorkingDir' is not absolute");
    *out = r;
    return 0;
}

/* ---- index and manifest ---- */

static bool find_digest(const struct json *obj, char out[static IMAGE_DIGEST])
{
    struct str s = { 0 };
    struct err ignored;
    return obj && json_is_object(obj) && json_need_str(obj, "digest", 128, &s, &ignored) == 0 &&
           image_digest_parse(s, out);
}

int image_index_parse(struct str text, char out_digest[static IMAGE_DIGEST], struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    if (!d)
        return err_wrap(e, "index of the image");
    const struct json *root = json_root(d);
    const struct json *list = json_is_object(root) ? json_find(root, "manifests") : NULL;
    if (!list || !json_is_array(list) || json_len(list) != 1 ||
        !find_digest(json_first(list), out_digest))
        return err_set(e, ERR_INVALID, "the index of the image does not name one manifest");
    return 0;
}

int image_manifest_parse(struct str text, struct arena *a, struct image_manifest *out,
                         struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    struct image_manifest m = { 0 };
    if (!d)
        return err_wrap(e, "manifest of the image");
    const struct json *root = json_root(d);
    bool object = json_is_object(root);
    const struct json *layers = object ? json_find(root, "layers") : NULL;
    if (!object || !find_digest(json_find(root, "config"), m.config))
        return err_set(e, ERR_INVALID, "the manifest of the image names no settings");
    if (!layers || !json_is_array(layers) || json_len(layers) > IMAGE_LAYERS_MAX)
        return err_set(e, ERR_INVALID, "the manifest of the image has no list of at most %d layers",
                       IMAGE_LAYERS_MAX);
    m.layer = arena_alloc(a, json_len(layers) + 1, IMAGE_DIGEST);
    for (const struct json *v = json_first(layers); v; v = json_next(layers, v)) {
        uint64_t bytes = 0;
        if (!find_digest(v, m.layer[m.n_layers++]) ||
            json_need_u64(v, "size", UINT64_C(1) << 48, &bytes, e) < 0)
            return err_set(e, ERR_INVALID, "layer %zu of the image has no digest or size",
                           m.n_layers);
        m.layer_bytes += bytes;
    }
    *out = m;
    return 0;
}

/* skopeo: time="…" level=fatal msg="…"; umoci: "   ⨯ create rootfs: …". */
struct str image_complaint(struct str output)
{
    struct str line, last = { "", 0 }, rest;
    while (str_next_line(&output, &line))
        if (str_trim(line).n > 0)
            last = str_trim(line);
    const char *at = last.n > 5 ? memmem(last.p, last.n, "msg=\"", 5) : NULL;
    if (at) {
        last = (struct str){ at + 5, last.n - (size_t)(at + 5 - last.p) };
        last.n -= last.n > 0 && last.p[last.n - 1] == '"';
    }
    return starts_with(last, "\xe2\xa8\xaf ", &rest) ? rest : last;
}
