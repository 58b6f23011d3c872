#include "keeper/image_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/weak.h"

#define LOOK_MS 500
#define TAG "image" /* inside a layout of ours */

struct image_fetch {
    const struct image_tools *tools;
    struct image_ref ref;
    struct buf label; /* the reference, for people */
    struct buf said;  /* what is done with it now, for people */
    struct image_fetch_calls calls;
    int source;
    unsigned number;
    const struct step *step;
    struct tool *tool;
    struct loop_watch *look;
    int64_t began_ms;
    uint64_t written; /* by the step at work */
    bool too_large, crowded;
    struct arena arena;
    struct image_manifest manifest;
    bool jailed;    /* with less power than ours */
    bool own_blobs; /* none of those that images from registries share */
    uint32_t uid;   /* who copies; 0: root */
    char *groups;   /* of a user whose file it is */
    char digest[IMAGE_DIGEST];
    char layout[IMAGE_PATH_MAX], part[IMAGE_PATH_MAX];
};

/* argv is built into `argv` (its texts live in f->arena). */
struct step {
    const char *text; /* what people are told */
    void (*build)(struct image_fetch *f, const char **argv);
    int (*check)(struct image_fetch *f, struct err *e); /* after it succeeded */
    void (*explain)(const struct image_fetch *f, struct str complaint, struct err *e);
};

static int64_t mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static int too_large(const struct image_fetch *f, struct err *e)
{
    char text[32];
    err_set(e, ERR_TOO_LARGE, "image '%s' is larger than %s", f->label.p,
            format_size(f->tools->max_bytes, text));
    return err_hint(e, "use a smaller one; an administrator can raise the limit");
}

/* ---- copying ---- */

/* A path of the store as the step sees it. */
static const char *seen(struct image_fetch *f, const char *path)
{
    const char *dir = f->tools->disk->dir;
    bool moved = f->jailed && strncmp(path, dir, strlen(dir)) == 0;
    return arena_printf(&f->arena, "%s%s", moved ? IMAGE_VIEW : "",
                        path + (moved ? strlen(dir) : 0));
}

static void build_copy(struct image_fetch *f, const char **argv)
{
    const struct image_tools *t = f->tools;
    char tmp[IMAGE_PATH_MAX];
    const char *from = f->label.p;
    if (f->source >= 0) {
        static const char *const kinds[] = {
#define X(id, name, lead) name,
            IMAGE_KINDS(X)
#undef X
        };
        from = arena_printf(&f->arena, "%s:/proc/self/fd/0%s%s", kinds[f->ref.kind],
                            f->ref.tag[0] ? ":" : "", f->ref.tag);
    }
    *argv++ = t->skopeo;
    /* Which signatures to ask for is the administrator's choice; without one there is none. */
    if (access("/etc/containers/policy.json", F_OK) < 0)
        *argv++ = "--insecure-policy";
    *argv++ = "--override-os=linux";
    *argv++ = "--tmpdir";
    *argv++ = seen(f, image_disk_path(t->disk, "tmp", "", "", tmp));
    *argv++ = "copy";
    if (t->authfile[0]) {
        *argv++ = "--src-authfile";
        *argv++ = t->authfile;
    }
    *argv++ = from;
    *argv++ = arena_printf(&f->arena, "oci:%s:" TAG, seen(f, f->layout));
    *argv = NULL;
}

static const struct complaint {
    const char *sign;
    enum err_code code;
    const char *means; /* with the image and the registry or path in it */
    const char *hint;
} complaints[] = {
    { "no space left on device", ERR_UNAVAILABLE, "no disk space for image '%s' from %s",
      "make room under the state folder, or let old images go" },
    { "no such host", ERR_UNAVAILABLE, "image '%s': cannot find %s on the network",
      "check this machine's network, DNS and proxy, or use a file: docker-archive:/image.tar" },
    { "connection refused", ERR_UNAVAILABLE, "image '%s': %s refuses connections",
      "check its address and this machine's proxy, or use a file: docker-archive:/image.tar" },
    { "timeout", ERR_UNAVAILABLE, "image '%s': %s does not answer",
      "check this machine's network and proxy, or use a file: docker-archive:/image.tar" },
    { "unreachable", ERR_UNAVAILABLE, "image '%s': there is no way to %s",
      "check this machine's network, or use a file: docker-archive:/image.tar" },
    { "no route to host", ERR_UNAVAILABLE, "image '%s': there is no way to %s",
      "check this machine's network; one in a local network has to be in the setting "
      "`registries`" },
    { "x509", ERR_UNAVAILABLE, "image '%s': the certificate of %s is not trusted here",
      "ask an administrator to install the registry's certificate authority" },
    { "manifest unknown", ERR_NOT_FOUND, "there is no image '%s' at %s", "check its name and tag" },
    { "name unknown", ERR_NOT_FOUND, "there is no image '%s' at %s", "check its name" },
    { "not found", ERR_NOT_FOUND, "there is no image '%s' at %s", "check its name and tag" },
    { "no descriptor found", ERR_NOT_FOUND, "there is no image '%s' in %s", "check its tag" },
    { "no image found", ERR_NOT_FOUND, "there is no image '%s' in %s", "check its tag" },
    { "not found in", ERR_NOT_FOUND, "there is no image '%s' in %s", "check its tag" },
    { "unauthorized", ERR_DENIED, "image '%s' needs a password at %s, or is not there",
      "check its name; an administrator can add passwords for registries" },
    { "denied", ERR_DENIED, "image '%s' needs a password at %s, or is not there",
      "check its name; an administrator can add passwords for registries" },
    { "manifest.json", ERR_INVALID, "image '%s': %s is not an archive of an image",
      "make one with: docker save -o image.tar NAME" },
    { "invalid tar header", ERR_INVALID, "image '%s': %s is not an archive of an image",
      "make one with: docker save -o image.tar NAME" },
};

/* The formats are all in the table above: two strings each. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void explain_copy(const struct image_fetch *f, struct str said, struct err *e)
{
    char where[600];
    bool remote = f->ref.kind == IMAGE_DOCKER;
    snprintf(where, sizeof where, "%s'%s'", remote ? "the registry " : "",
             remote ? f->ref.registry : f->ref.name);
    for (size_t i = 0; i < ARRAY_LEN(complaints); i++) {
        const struct complaint *c = &complaints[i];
        if (said.n < strlen(c->sign) || !memmem(said.p, said.n, c->sign, strlen(c->sign)))
            continue;
        err_set(e, c->code, c->means, f->label.p, where);
        err_hint(e, "%s", c->hint);
        return;
    }
    err_set(e, ERR_UNAVAILABLE, "cannot fetch image '%s': %.*s", f->label.p,
            (int)MIN(said.n, (size_t)200), said.p);
}
#pragma GCC diagnostic pop

static int read_blob(const struct image_fetch *f, const char *digest, struct buf *out,
                     struct err *e)
{
    char path[IMAGE_PATH_MAX + IMAGE_DIGEST + 16];
    snprintf(path, sizeof path, "%s/blobs/sha256/%s", f->layout, digest);
    return file_read(path, IMAGE_JSON_MAX, out, e);
}

static int keep_text(const struct image_fetch *f, const char *name, struct str text, struct err *e)
{
    char path[IMAGE_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", f->part, name);
    AUTO(file_close_p) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n)
        return err_set(e, ERR_UNAVAILABLE, "cannot write '%s': %s", path, strerror(errno));
    return 0;
}

/* What is unpacked is seen without anything of other images: their blobs are not for whoever made this one. */
static int link_blob(const struct image_fetch *f, const char *digest, struct err *e)
{
    char from[IMAGE_PATH_MAX], to[IMAGE_PATH_MAX + IMAGE_DIGEST + 24];
    image_disk_path(f->tools->disk, "blobs/sha256", digest, "", from);
    snprintf(to, sizeof to, "%s/blobs/sha256/%s", f->layout, digest);
    if (link(from, to) == 0 || errno == EEXIST) /* two layers may be the same */
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "cannot link '%s': %s", to, strerror(errno));
}

static int keep_own_blobs(const struct image_fetch *f, struct err *e)
{
    if (f->own_blobs)
        return 0;
    char blobs[IMAGE_PATH_MAX + 8], folder[IMAGE_PATH_MAX + 16];
    snprintf(blobs, sizeof blobs, "%s/blobs", f->layout);
    snprintf(folder, sizeof folder, "%s/sha256", blobs);
    if (unlink(blobs) < 0 || mkdir(blobs, 0700) < 0 || mkdir(folder, 0700) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", folder, strerror(errno));
    if (link_blob(f, f->digest, e) < 0 || link_blob(f, f->manifest.config, e) < 0)
        return -1;
    for (size_t i = 0; i < f->manifest.n_layers; i++)
        if (link_blob(f, f->manifest.layer[i], e) < 0)
            return -1;
    return 0;
}

/* Where it is unpacked to, beside what was kept of it. */
static int make_part(struct image_fetch *f, struct err *e)
{
    char name[96], root[IMAGE_PATH_MAX + 8];
    snprintf(name, sizeof name, "%s.%u", f->digest, f->number);
    image_disk_path(f->tools->disk, "rootfs", name, ".part", f->part);
    snprintf(root, sizeof root, "%s/root", f->part);
    if (mkdir(f->part, 0700) < 0 || mkdir(root, 0755) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", f->part, strerror(errno));
    return 0;
}

/* Everything that was fetched is checked before any of it is unpacked, and whoever fetched it can change
 * nothing any more. */
static int check_copy(struct image_fetch *f, struct err *e)
{
    char path[IMAGE_PATH_MAX + 32];
    AUTO(buf_free) struct buf index = BUF(IMAGE_JSON_MAX);
    AUTO(buf_free) struct buf manifest = BUF(IMAGE_JSON_MAX);
    AUTO(buf_free) struct buf config = BUF(IMAGE_JSON_MAX);
    struct image_run run;
    snprintf(path, sizeof path, "%s/index.json", f->layout);
    if (chown(f->layout, geteuid(), getegid()) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot take over '%s': %s", f->layout, strerror(errno));
    if (file_read(path, IMAGE_JSON_MAX, &index, e) < 0 ||
        image_index_parse(buf_str(&index), f->digest, e) < 0 ||
        read_blob(f, f->digest, &manifest, e) < 0 ||
        image_manifest_parse(buf_str(&manifest), &f->arena, &f->manifest, e) < 0 ||
        read_blob(f, f->manifest.config, &config, e) < 0 ||
        image_run_parse(buf_str(&config), &f->arena, &run, e) < 0)
        return -1;
    if (f->manifest.layer_bytes > f->tools->max_bytes)
        return too_large(f, e);
    if (image_disk_has(f->tools->disk, f->digest))
        return 0;
    if (make_part(f, e) < 0 || keep_own_blobs(f, e) < 0 ||
        keep_text(f, "config.json", buf_str(&config), e) < 0)
        return -1;
    return keep_text(f, "manifest.json", buf_str(&manifest), e);
}

/* ---- unpacking ---- */

/* Where the layout is, and the folder that is filled, for the one that is shut in. */
#define LAYOUT_THERE "/layout"
#define ROOT_THERE "/root"

static void build_unpack(struct image_fetch *f, const char **argv)
{
    bool shut = !weak_here("image_unpack");
    *argv++ = f->tools->umoci;
    *argv++ = "raw";
    *argv++ = "unpack";
    *argv++ = "--image";
    *argv++ = arena_printf(&f->arena, "%s:" TAG, shut ? LAYOUT_THERE : f->layout);
    *argv++ = shut ? ROOT_THERE : arena_printf(&f->arena, "%s/root", f->part);
    *argv = NULL;
}

static int check_unpack(struct image_fetch *f, struct err *e)
{
    (void)f, (void)e;
    return 0;
}

static void explain_unpack(const struct image_fetch *f, struct str said, struct err *e)
{
    if (said.n && memmem(said.p, said.n, "file too large", 14)) {
        too_large(f, e);
        return;
    }
    bool full = said.n && memmem(said.p, said.n, "no space left", 13);
    if (full || f->crowded) {
        err_set(e, ERR_UNAVAILABLE, "no disk space to unpack image '%s'", f->label.p);
        err_hint(e, "make room under the state folder, or let old images go");
        return;
    }
    err_set(e, ERR_UNAVAILABLE, "cannot unpack image '%s': %.*s", f->label.p,
            (int)MIN(said.n, (size_t)200), said.p);
}

/* ---- to the disk, then into use ---- */

static void build_sync(struct image_fetch *f, const char **argv)
{
    *argv++ = "/bin/sh";
    *argv++ = "-c";
    /* Device files do not work in jobs, so none are kept. */
    *argv++ = "find \"$1/root\" -xdev \\( -type b -o -type c \\) -delete &&"
              " du -s -B1 \"$1/root\" >\"$1/used\" && exec sync -f \"$1\"";
    *argv++ = "sh";
    *argv++ = f->part;
    *argv = NULL;
}

static int check_sync(struct image_fetch *f, struct err *e)
{
    char path[IMAGE_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/used", f->part);
    if (image_disk_bytes(path) > f->tools->max_bytes)
        return too_large(f, e);
    image_disk_path(f->tools->disk, "rootfs", f->digest, "", path);
    if (rename(f->part, path) == 0 || errno == EEXIST || errno == ENOTEMPTY)
        return 0; /* there already: another fetch was faster, and ours is thrown away */
    return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", path, strerror(errno));
}

static void explain_sync(const struct image_fetch *f, struct str said, struct err *e)
{
    err_set(e, ERR_UNAVAILABLE, "cannot write image '%s' to the disk: %.*s", f->label.p,
            (int)MIN(said.n, (size_t)200), said.p);
}

static const struct step steps[] = {
    { "fetching", build_copy, check_copy, explain_copy },
    { "unpacking", build_unpack, check_unpack, explain_unpack },
    { "storing", build_sync, check_sync, explain_sync },
};

/* ---- running them ---- */

static struct image_fetch *fetch_free(struct image_fetch *f)
{
    tool_stop(f->tool);
    if (f->layout[0])
        image_disk_throw(f->tools->disk, f->layout);
    if (f->part[0])
        image_disk_throw(f->tools->disk, f->part);
    loop_unwatch(f->look);
    file_close_p(&f->source);
    free(f->groups);
    buf_free(&f->label);
    buf_free(&f->said);
    arena_free(&f->arena);
    free(f);
    return NULL;
}

struct image_fetch *image_fetch_stop(struct image_fetch *f)
{
    return f ? fetch_free(f) : NULL;
}

static void finish(struct image_fetch *f, const struct err *e)
{
    struct image_fetch_calls calls = f->calls;
    char digest[IMAGE_DIGEST];
    memcpy(digest, f->digest, sizeof digest);
    fetch_free(f);
    calls.done(calls.ctx, e ? NULL : digest, e);
}

static void on_step_end(void *ctx, const struct tool_result *r);

/* skopeo keeps its passwords and settings by these; everything else of ours is none of its
 * business. */
static const char *const passed_on[] = { "HTTP_PROXY",  "HTTPS_PROXY", "NO_PROXY",     "http_proxy",
                                         "https_proxy", "no_proxy",    "SSL_CERT_FILE" };

/* "fetching image 'x:1' from the registry 'docker.io'" */
static void say_step(struct image_fetch *f)
{
    bool from = f->step == &steps[0] && f->ref.kind == IMAGE_DOCKER;
    f->said.n = 0;
    buf_printf(&f->said, "%s image '%.300s'", f->step->text, f->label.p);
    if (from)
        buf_printf(&f->said, " from the registry '%.200s'", f->ref.registry);
}

/* The copy reads what strangers send: it has an account of its own, or for a file the rights of whoever named it, and
 * then no network.  Storing goes through all folders, and needs nothing else of root. */
static void make_jail(const struct image_fetch *f, struct tool_jail *out)
{
    *out = (struct tool_jail){ .no_network = true };
    if (f->step == &steps[0])
        *out = (struct tool_jail){ .uid = f->uid,
                                   .gid = f->tools->disk->gid,
                                   .groups = f->groups,
                                   .from = f->tools->disk->dir,
                                   .onto = IMAGE_VIEW,
                                   .no_network = f->source >= 0 };
    else
        out->keep = "+dac_override,+fowner";
}

/* Of our settings, those that are for fetching: they may have passwords in them. */
static void make_env(struct image_fetch *f, const char **env)
{
    bool copies = f->step == &steps[0]; /* the others see the store where it is */
    const char *dir = f->tools->disk->dir, *at = copies ? seen(f, dir) : dir;
    *env++ = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    /* What a tool leaves in its home goes with the fetch. */
    *env++ = arena_printf(&f->arena, "HOME=%s", copies ? seen(f, f->layout) : f->layout);
    *env++ = arena_printf(&f->arena, "TMPDIR=%s/tmp", at);
    for (size_t i = 0; i < ARRAY_LEN(passed_on) && copies; i++) {
        const char *v = getenv(passed_on[i]);
        if (v && strlen(v) < 4096)
            *env++ = arena_printf(&f->arena, "%s=%s", passed_on[i], v);
    }
    *env = NULL;
}

static int run_step(struct image_fetch *f, struct err *e)
{
    static const char *const little[] = { "HOME=" ROOT_THERE, NULL };
    const char *argv[24], *env[ARRAY_LEN(passed_on) + 4], *root;
    bool unpacks = f->step == &steps[1];
    say_step(f);
    make_env(f, env);
    f->step->build(f, argv);
    struct tool_jail jail;
    make_jail(f, &jail);
    root = arena_printf(&f->arena, "%s/root", f->part);
    const struct confine confine = { .files = f->tools->umoci_files,
                                     .read = { f->layout, LAYOUT_THERE },
                                     .write = { root, ROOT_THERE },
                                     .cover = f->part,
                                     .max_file_bytes = f->tools->max_bytes };
    f->written = 0;
    int64_t left_ms = f->began_ms + (int64_t)f->tools->timeout_ms - mono_ms();
    /* One that wrote on without us would meet what the next keeper does here. */
    struct tool_spec spec = { .argv = argv,
                              .env = unpacks ? little : env,
                              .in_fd = f->source >= 0 ? f->source : PROCESS_NO_FD,
                              .timeout_ms = (uint64_t)MAX(left_ms, (int64_t)1),
                              .confine = unpacks ? &confine : NULL,
                              .jail = f->jailed && !unpacks ? &jail : NULL,
                              .ends_with_us = true };
    f->tool = tool_run(f->tools->loop, &spec, on_step_end, f, e);
    if (!f->tool)
        return -1;
    loop_timer_set(f->look, 0, LOOK_MS); /* at once: somebody waits for a sign */
    return 0;
}

/* Its files have no bound of their own, so those of all the disk are looked at: one in twenty stays free. */
static bool is_crowded(const struct image_fetch *f)
{
    struct statvfs v;
    return f->step == &steps[1] && statvfs(f->part, &v) == 0 && v.f_favail < v.f_files / 20;
}

/* What the child has read and written so far, as the kernel counts it. */
static void on_look(void *ctx)
{
    struct image_fetch *f = ctx;
    char path[64];
    AUTO(buf_free) struct buf text = BUF(1024);
    struct err ignored;
    struct str rest, word = { "", 0 };
    uint64_t number[2] = { 0 }; /* rchar and wchar come first */
    if (!f->tool)
        return;
    snprintf(path, sizeof path, "/proc/%d/io", tool_pid(f->tool));
    if (file_read(path, 1024, &text, &ignored) < 0)
        return;
    rest = buf_str(&text);
    for (size_t i = 0; i < ARRAY_LEN(number); i++) {
        bool has_name = str_next_word(&rest, &word);
        if (!has_name || !str_next_word(&rest, &word) ||
            parse_u64(word, UINT64_MAX, &number[i], &ignored) < 0)
            return;
    }
    f->written = number[1];
    f->too_large = f->written > f->tools->max_bytes;
    f->crowded = is_crowded(f);
    if (f->too_large || f->crowded)
        tool_kill(f->tool);
    bool unpacking = f->step == &steps[1];
    f->calls.progress(f->calls.ctx, f->said.p, unpacking ? number[0] : f->written,
                      unpacking ? f->manifest.layer_bytes : 0);
}

static void explain_end(const struct image_fetch *f, const struct tool_result *r, struct err *e)
{
    char text[32];
    if (f->too_large) {
        too_large(f, e);
        return;
    }
    if (r->late) {
        err_set(e, ERR_UNAVAILABLE, "%s image '%s' took longer than %s and was stopped",
                f->step->text, f->label.p, format_duration_ms((int64_t)f->tools->timeout_ms, text));
        return;
    }
    f->step->explain(f, image_complaint(r->err.n ? r->err : r->out), e);
}

/* What an account that fetched has written is root's from now on. */
static void own_blobs(const struct image_fetch *f)
{
    char path[IMAGE_PATH_MAX + 16];
    if (f->own_blobs)
        snprintf(path, sizeof path, "%s/blobs", f->layout);
    else
        image_disk_path(f->tools->disk, "blobs", "", "", path);
    image_disk_own(path);
}

static void on_step_end(void *ctx, const struct tool_result *r)
{
    struct image_fetch *f = ctx;
    struct err e = { 0 };
    f->tool = NULL;
    loop_timer_clear(f->look);
    if (f->uid && f->step == &steps[0])
        own_blobs(f);
    if (r->how.code || r->how.signal) {
        explain_end(f, r, &e);
        finish(f, &e);
        return;
    }
    if (f->step->check(f, &e) < 0) {
        finish(f, &e);
        return;
    }
    bool all = f->step == &steps[ARRAY_LEN(steps) - 1];
    if (all || image_disk_has(f->tools->disk, f->digest)) {
        finish(f, NULL);
        return;
    }
    file_close_p(&f->source);
    f->source = -1;
    f->step++;
    if (run_step(f, &e) < 0)
        finish(f, &e);
}

static int make_folder(const char *path, uint32_t uid, uint32_t gid)
{
    return mkdir(path, 0700) < 0 || (uid && chown(path, uid, gid) < 0) ? -1 : 0;
}

/* A layout of its own, as no two fetches write one index.  Images from registries share their blobs, since everybody may
 * fetch them.  One from a file has its own: what is there already is not read from the file, so whoever
 * knew the digest of a layer would be given it. */
static int make_layout(struct image_fetch *f, struct err *e)
{
    char name[32], blobs[IMAGE_PATH_MAX + 16], folder[IMAGE_PATH_MAX + 24];
    uint32_t gid = f->tools->disk->gid;
    snprintf(name, sizeof name, "%u", f->number);
    image_disk_path(f->tools->disk, "layout", name, ".part", f->layout);
    snprintf(blobs, sizeof blobs, "%s/blobs", f->layout);
    snprintf(folder, sizeof folder, "%s/sha256", blobs);
    f->own_blobs = weak_or("image_layers", f->source >= 0, false);
    if (make_folder(f->layout, f->uid, gid) == 0 &&
        (f->own_blobs
             ? make_folder(blobs, f->uid, gid) == 0 && make_folder(folder, f->uid, gid) == 0
             : symlink("../../blobs", blobs) == 0))
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", f->layout, strerror(errno));
}

static bool is_listed(const char *list, const char *name)
{
    struct str rest = str_of(list ? list : ""), one;
    bool found = false;
    while (rest.n > 0 && !found) {
        str_cut(rest, ',', &one, &rest);
        found = str_is(str_trim(one), name);
    }
    return found;
}

static void choose_account(struct image_fetch *f, const struct engine_user *user)
{
    const struct image_tools *t = f->tools;
    AUTO(buf_free) struct buf list = BUF(4000);
    f->jailed = t->uid[0] && !weak_here("image_account");
    if (!f->jailed)
        return;
    f->uid = t->uid[f->ref.kind == IMAGE_DOCKER && is_listed(t->registries, f->ref.registry)];
    if (f->source < 0)
        return;
    f->uid = user->uid;
    buf_printf(&list, "%u", user->gid);
    for (uint32_t i = 0; i < user->n_groups; i++)
        buf_printf(&list, ",%u", user->groups[i]);
    f->groups = xstrdup(list.full ? "" : list.p);
}

struct image_fetch *image_fetch_begin(const struct image_tools *t,
                                      const struct image_fetch_what *what,
                                      const struct image_fetch_calls *calls, struct err *e)
{
    struct image_fetch *f = xcalloc(1, sizeof *f);
    *f = (struct image_fetch){ .tools = t,
                               .ref = *what->ref,
                               .label = BUF(2048),
                               .said = BUF(2048),
                               .calls = *calls,
                               .source = what->source,
                               .number = what->number,
                               .step = &steps[0],
                               .began_ms = mono_ms() };
    image_ref_format(what->ref, &f->label);
    choose_account(f, what->user);
    f->look = loop_timer(t->loop, on_look, f);
    if (make_layout(f, e) < 0 || run_step(f, e) < 0)
        return fetch_free(f);
    return f;
}
