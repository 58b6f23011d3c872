#include "node/cdi.h"

#include <dirent.h>
#include <stdio.h>

#include "base/yaml.h"
#include "sys/file.h"

#define TEXT_MAX 4095 /* bytes of any string in a spec */

/* Reading one spec: where its values go. */
struct reading {
    struct arena *a;
    struct err *e;
};

static bool is_path(const char *p)
{
    if (p[0] != '/')
        return false;
    for (const char *part = p; part; part = strchr(part + 1, '/'))
        if (strncmp(part, "/..", 3) == 0 && (part[3] == '/' || !part[3]))
            return false;
    return true;
}

/* A string as C has them. */
static const char *own_text(const struct reading *r, const struct json *v)
{
    struct str s;
    if (json_as_str(v, TEXT_MAX, &s, r->e) < 0)
        return NULL;
    if (memchr(s.p, '\0', s.n)) {
        err_set(r->e, ERR_INVALID, "has a NUL character in it");
        return NULL;
    }
    return arena_strndup(r->a, s.p, s.n);
}

/* The text of a key; `otherwise` when it is absent, which is an error when that is NULL. */
static const char *text_of(const struct reading *r, const struct json *obj, const char *key,
                           const char *otherwise)
{
    const struct json *v = json_find(obj, key);
    if (!v && !otherwise) {
        err_set(r->e, ERR_INVALID, "field '%s' is missing", key);
        return NULL;
    }
    const char *text = v ? own_text(r, v) : otherwise;
    if (!text)
        err_wrap(r->e, "field '%s'", key);
    return text;
}

static const char *path_of(const struct reading *r, const struct json *obj, const char *key,
                           const char *otherwise)
{
    const char *path = text_of(r, obj, key, otherwise);
    if (!path || is_path(path))
        return path;
    err_set(r->e, ERR_INVALID, "field '%s': '%.100s' is not an absolute path without '..'", key,
            path);
    return NULL;
}

/* A list, and how an element of it is read. */
struct list_kind {
    const char *key;
    int (*read)(const struct reading *r, const struct json *v, void *out);
    size_t size; /* of what an element becomes */
};

/* NULL on failure.  One element of zeros follows the last, so a list of strings ends with NULL. */
static void *read_list(const struct reading *r, const struct json *obj, const struct list_kind *k,
                       size_t *out_n)
{
    const struct json *list = json_find(obj, k->key);
    size_t n = list ? json_len(list) : 0;
    if (list && !json_is_array(list)) {
        err_set(r->e, ERR_INVALID, "field '%s': must be a list", k->key);
        return NULL;
    }
    if (n > CDI_ITEMS_MAX) {
        err_set(r->e, ERR_INVALID, "field '%s': has %zu items; at most %d are allowed", k->key, n,
                CDI_ITEMS_MAX);
        return NULL;
    }
    char *items = arena_alloc(r->a, n + 1, k->size);
    const struct json *v = n ? json_first(list) : NULL;
    for (size_t i = 0; i < n; i++, v = json_next(list, v))
        if (k->read(r, v, items + i * k->size) < 0) {
            err_wrap(r->e, "%s, item %zu", k->key, i + 1);
            return NULL;
        }
    if (out_n)
        *out_n = n;
    return items;
}

static int read_text(const struct reading *r, const struct json *v, void *out)
{
    const char *text = own_text(r, v);
    *(const char **)out = text;
    return text ? 0 : -1;
}

static const struct list_kind option_list = { "options", read_text, sizeof(char *) };
static const struct list_kind arg_list = { "args", read_text, sizeof(char *) };
static const struct list_kind env_list = { "env", read_text, sizeof(char *) };

static int read_node(const struct reading *r, const struct json *v, void *out)
{
    struct cdi_node n = { .major = CDI_UNSET, .minor = CDI_UNSET, .mode = CDI_UNSET };
    const char *type;
    n.uid = n.gid = CDI_UNSET;
    if (!(n.path = path_of(r, v, "path", NULL)) ||
        !(n.host_path = path_of(r, v, "hostPath", n.path)) ||
        !(n.permissions = text_of(r, v, "permissions", "rwm")) ||
        !(type = text_of(r, v, "type", "")) ||
        json_get_i64(v, "major", 0, UINT32_MAX, &n.major, r->e) < 0 ||
        json_get_i64(v, "minor", 0, UINT32_MAX, &n.minor, r->e) < 0 ||
        json_get_i64(v, "fileMode", 0, UINT32_MAX, &n.mode, r->e) < 0 ||
        json_get_i64(v, "uid", 0, UINT32_MAX, &n.uid, r->e) < 0 ||
        json_get_i64(v, "gid", 0, UINT32_MAX, &n.gid, r->e) < 0)
        return -1;
    if (n.permissions[strspn(n.permissions, "rwm")])
        return err_set(r->e, ERR_INVALID, "permissions '%.20s' are not made of r, w and m",
                       n.permissions);
    if (strlen(type) > 1 || !strchr("bcup", type[0])) /* strchr finds the NUL of "" too */
        return err_set(r->e, ERR_INVALID, "device type '%.20s' is not b, c, u or p", type);
    n.type = type[0] == 'u' ? 'c' : type[0];
    *(struct cdi_node *)out = n;
    return 0;
}

static int read_mount(const struct reading *r, const struct json *v, void *out)
{
    struct cdi_mount *m = out;
    m->host_path = path_of(r, v, "hostPath", NULL);
    m->path = m->host_path ? path_of(r, v, "containerPath", NULL) : NULL;
    m->type = m->path ? text_of(r, v, "type", "") : NULL;
    m->options = m->type ? read_list(r, v, &option_list, NULL) : NULL;
    return m->options ? 0 : -1;
}

static int read_hook(const struct reading *r, const struct json *v, void *out)
{
    struct cdi_hook *h = out;
    h->name = text_of(r, v, "hookName", NULL);
    h->path = h->name ? path_of(r, v, "path", NULL) : NULL;
    h->args = h->path ? read_list(r, v, &arg_list, NULL) : NULL;
    h->env = h->args ? read_list(r, v, &env_list, NULL) : NULL;
    return h->env ? 0 : -1;
}

static int read_gid(const struct reading *r, const struct json *v, void *out)
{
    uint64_t gid;
    if (json_as_u64(v, UINT32_MAX - 1, &gid, r->e) < 0)
        return -1;
    *(uint32_t *)out = (uint32_t)gid;
    return 0;
}

static const struct list_kind node_list = { "deviceNodes", read_node, sizeof(struct cdi_node) };
static const struct list_kind mount_list = { "mounts", read_mount, sizeof(struct cdi_mount) };
static const struct list_kind hook_list = { "hooks", read_hook, sizeof(struct cdi_hook) };
static const struct list_kind gid_list = { "additionalGids", read_gid, sizeof(uint32_t) };

static int check_env(const struct reading *r, const struct cdi_edits *d)
{
    for (size_t i = 0; i < d->n_env; i++)
        if (d->env[i][0] == '=' || !strchr(d->env[i], '='))
            return err_set(r->e, ERR_INVALID, "env: '%.100s' is not NAME=value", d->env[i]);
    return 0;
}

static int read_edits(const struct reading *r, const struct json *owner, struct cdi_edits *out)
{
    const struct json *v = json_find(owner, "containerEdits");
    struct cdi_edits d = { 0 };
    *out = d;
    if (!v)
        return 0;
    if (!json_is_object(v))
        return err_set(r->e, ERR_INVALID, "field 'containerEdits': must be an object");
    if (!(d.nodes = read_list(r, v, &node_list, &d.n_nodes)) ||
        !(d.mounts = read_list(r, v, &mount_list, &d.n_mounts)) ||
        !(d.hooks = read_list(r, v, &hook_list, &d.n_hooks)) ||
        !(d.gids = read_list(r, v, &gid_list, &d.n_gids)) ||
        !(d.env = read_list(r, v, &env_list, &d.n_env)) || check_env(r, &d) < 0)
        return -1;
    *out = d;
    return 0;
}

static int read_device(const struct reading *r, const struct json *v, void *out)
{
    struct cdi_device d = { 0 };
    if (!(d.name = text_of(r, v, "name", NULL)))
        return -1;
    if (!d.name[0] || strchr(d.name, '='))
        return err_set(r->e, ERR_INVALID, "'%.60s' is not a name for a device", d.name);
    if (read_edits(r, v, &d.edits) < 0)
        return err_wrap(r->e, "device '%.60s'", d.name);
    *(struct cdi_device *)out = d;
    return 0;
}

static const struct list_kind device_list = { "devices", read_device, sizeof(struct cdi_device) };

int cdi_parse(struct str text, bool yaml, struct arena *a, struct cdi_spec *out, struct err *e)
{
    struct reading r = { a, e };
    struct cdi_spec s = { 0 };
    if (text.n > CDI_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, "the spec has %zu bytes; at most %u are allowed", text.n,
                       CDI_TEXT_MAX);
    AUTO(json_free_p) struct json_doc *doc = yaml ? yaml_read(text, e) : json_read(text, e);
    if (!doc)
        return -1;
    const struct json *root = json_root(doc);
    if (!json_is_object(root))
        return err_set(e, ERR_INVALID, "is not an object with cdiVersion, kind and devices");
    if (!text_of(&r, root, "cdiVersion", NULL) || !(s.kind = text_of(&r, root, "kind", NULL)))
        return -1;
    const char *slash = strchr(s.kind, '/');
    if (!slash || slash == s.kind || !slash[1] || strchr(s.kind, '='))
        return err_set(e, ERR_INVALID, "kind '%.60s' is not of the form vendor/class", s.kind);
    if (read_edits(&r, root, &s.common) < 0 ||
        !(s.devices = read_list(&r, root, &device_list, &s.n_devices)))
        return -1;
    *out = s;
    return 0;
}

struct cdi_file {
    struct cdi_spec spec;
    const char *path;
    size_t folder; /* which of the folders it came from */
};

struct cdi {
    struct arena a;
    struct cdi_file *files;
    size_t n_files, cap_files;
    size_t bytes; /* of text read so far */
    struct err *problems;
    size_t n_problems, cap_problems;
};

static void add_problem(struct cdi *c, const struct err *e)
{
    vec_grow(c->problems, c->n_problems, c->cap_problems);
    c->problems[c->n_problems++] = *e;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

static void read_spec(struct cdi *c, const char *path, size_t folder)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct cdi_file f = { .folder = folder };
    struct err e = { 0 };
    if (file_read(path, CDI_TEXT_MAX, &text, &e) < 0) {
        add_problem(c, &e);
        return;
    }
    c->bytes += text.n;
    if (c->bytes > CDI_TOTAL_MAX) {
        err_set(&e, ERR_TOO_LARGE, "%s: all CDI specs together have more than %u bytes", path,
                CDI_TOTAL_MAX);
        add_problem(c, &e);
        return;
    }
    if (cdi_parse(buf_str(&text), !ends_with(path, ".json"), &c->a, &f.spec, &e) < 0) {
        err_wrap(&e, "%s", path);
        add_problem(c, &e);
        return;
    }
    f.path = arena_printf(&c->a, "%s", path);
    vec_grow(c->files, c->n_files, c->cap_files);
    c->files[c->n_files++] = f;
}

static int is_spec(const struct dirent *d)
{
    return d->d_name[0] != '.' && (ends_with(d->d_name, ".json") || ends_with(d->d_name, ".yaml"));
}

static void read_folder(struct cdi *c, const char *folder, size_t number)
{
    struct dirent **entries = NULL;
    struct err e;
    int n = scandir(folder, &entries, is_spec, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (i < CDI_FILES_MAX)
            read_spec(c, path, number);
        free(entries[i]);
    }
    free(entries);
    if (n > CDI_FILES_MAX) {
        err_set(&e, ERR_TOO_LARGE, "folder '%s' has %d specs; the first %d are read", folder, n,
                CDI_FILES_MAX);
        add_problem(c, &e);
    }
}

struct cdi *cdi_open(const char *const *folders, size_t n)
{
    static const char *const usual[] = { "/etc/cdi", "/var/run/cdi" };
    struct cdi *c = xcalloc(1, sizeof *c);
    for (size_t i = 0; i < (folders ? n : ARRAY_LEN(usual)); i++)
        read_folder(c, folders ? folders[i] : usual[i], i);
    return c;
}

struct cdi *cdi_close(struct cdi *c)
{
    if (!c)
        return NULL;
    arena_free(&c->a);
    free(c->files);
    free(c->problems);
    free(c);
    return NULL;
}

void cdi_close_p(struct cdi **c)
{
    *c = cdi_close(*c);
}

const struct err *cdi_problem(const struct cdi *c, size_t i)
{
    return i < c->n_problems ? &c->problems[i] : NULL;
}

static const struct cdi_device *device_in(const struct cdi_file *f, const char *name)
{
    size_t n = strlen(f->spec.kind);
    if (strncmp(name, f->spec.kind, n) != 0 || name[n] != '=')
        return NULL;
    for (size_t i = 0; i < f->spec.n_devices; i++)
        if (strcmp(f->spec.devices[i].name, name + n + 1) == 0)
            return &f->spec.devices[i];
    return NULL;
}

/* The file whose device of that name counts; *out_rival is another of the same folder that has one
 * too. */
static const struct cdi_file *find_file(const struct cdi *c, const char *name,
                                        const struct cdi_file **out_rival)
{
    const struct cdi_file *best = NULL;
    *out_rival = NULL;
    for (size_t i = 0; i < c->n_files; i++) {
        const struct cdi_file *f = &c->files[i];
        if (!device_in(f, name))
            continue;
        *out_rival = best && best->folder == f->folder ? best : NULL;
        best = f;
    }
    return best;
}

bool cdi_has(const struct cdi *c, const char *name)
{
    const struct cdi_file *rival;
    return find_file(c, name, &rival) && !rival;
}

static void merge_nodes(struct cdi_edits *into, const struct cdi_edits *from)
{
    for (size_t i = 0; i < from->n_nodes; i++) {
        size_t j = 0;
        while (j < into->n_nodes && strcmp(into->nodes[j].path, from->nodes[i].path) != 0)
            j++;
        if (j == into->n_nodes)
            into->nodes[into->n_nodes++] = from->nodes[i];
    }
}

static void merge_mounts(struct cdi_edits *into, const struct cdi_edits *from)
{
    for (size_t i = 0; i < from->n_mounts; i++) {
        size_t j = 0;
        while (j < into->n_mounts && strcmp(into->mounts[j].path, from->mounts[i].path) != 0)
            j++;
        if (j == into->n_mounts)
            into->mounts[into->n_mounts++] = from->mounts[i];
    }
}

static void merge_rest(struct cdi_edits *into, const struct cdi_edits *from)
{
    for (size_t i = 0; i < from->n_env; i++) {
        size_t j = 0;
        while (j < into->n_env && strcmp(into->env[j], from->env[i]) != 0)
            j++;
        if (j == into->n_env)
            into->env[into->n_env++] = from->env[i];
    }
    for (size_t i = 0; i < from->n_gids; i++) {
        size_t j = 0;
        while (j < into->n_gids && into->gids[j] != from->gids[i])
            j++;
        if (j == into->n_gids)
            into->gids[into->n_gids++] = from->gids[i];
    }
    for (size_t i = 0; i < from->n_hooks; i++)
        into->hooks[into->n_hooks++] = from->hooks[i];
}

/* Room for all of `parts`. */
static void make_room(struct arena *a, const struct cdi_edits *const *parts, size_t n,
                      struct cdi_edits *out)
{
    struct cdi_edits sum = { 0 };
    for (size_t i = 0; i < n; i++) {
        sum.n_nodes += parts[i]->n_nodes;
        sum.n_mounts += parts[i]->n_mounts;
        sum.n_hooks += parts[i]->n_hooks;
        sum.n_env += parts[i]->n_env;
        sum.n_gids += parts[i]->n_gids;
    }
    *out = (struct cdi_edits){
        .nodes = arena_array(a, struct cdi_node, sum.n_nodes + 1),
        .mounts = arena_array(a, struct cdi_mount, sum.n_mounts + 1),
        .hooks = arena_array(a, struct cdi_hook, sum.n_hooks + 1),
        .env = arena_array(a, const char *, sum.n_env + 1),
        .gids = arena_array(a, uint32_t, sum.n_gids + 1),
    };
}

static const struct cdi_file *need_file(const struct cdi *c, const char *name, struct err *e)
{
    const struct cdi_file *rival;
    const struct cdi_file *f = find_file(c, name, &rival);
    if (f && !rival)
        return f;
    if (f) {
        err_set(e, ERR_CONFLICT, "device '%.100s' stands in two specs: %s and %s", name,
                rival->path, f->path);
        err_hint(e, "remove one of the two");
    } else {
        err_set(e, ERR_NOT_FOUND, "no CDI spec has the device '%.100s'", name);
        err_hint(e, "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml makes one");
    }
    return NULL;
}

int cdi_resolve(const struct cdi *c, const char *const *names, size_t n, struct arena *a,
                struct cdi_edits *out, struct err *e)
{
    const struct cdi_edits **parts = arena_array(a, const struct cdi_edits *, n * 2 + 1);
    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        const struct cdi_file *f = need_file(c, names[i], e);
        if (!f)
            return -1;
        size_t j = 0;
        while (j < n_parts && parts[j] != &f->spec.common)
            j++;
        if (j == n_parts)
            parts[n_parts++] = &f->spec.common;
        parts[n_parts++] = &device_in(f, names[i])->edits;
    }
    make_room(a, parts, n_parts, out);
    for (size_t i = 0; i < n_parts; i++) {
        merge_nodes(out, parts[i]);
        merge_mounts(out, parts[i]);
        merge_rest(out, parts[i]);
    }
    return 0;
}
