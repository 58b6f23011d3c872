#include "keeper/image_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "sys/clock.h"
#include "sys/file.h"

#define REF_MAX 4096
#define MOUNTS_MAX (16u << 20)
#define IMAGES_MAX 4096

const char *image_disk_path(const struct image_disk *d, const char *folder, const char *name,
                            const char *tail, char out[static IMAGE_PATH_MAX])
{
    snprintf(out, IMAGE_PATH_MAX, "%s/%s/%s%s", d->dir, folder, name, tail);
    return out;
}

void image_disk_throw(const struct image_disk *d, const char *path)
{
    char name[32], to[IMAGE_PATH_MAX];
    snprintf(name, sizeof name, "%lld", (long long)clock_mono_ns());
    (void)rename(path, image_disk_path(d, "trash", name, "", to)); /* not there: nothing to do */
}

static void throw_parts(const struct image_disk *d, const char *folder)
{
    char path[IMAGE_PATH_MAX];
    DIR *dir = opendir(image_disk_path(d, folder, "", "", path));
    for (struct dirent *x; dir && (x = readdir(dir));) {
        size_t n = strlen(x->d_name);
        if (n > 5 && strcmp(x->d_name + n - 5, ".part") == 0)
            image_disk_throw(d, image_disk_path(d, folder, x->d_name, "", path));
    }
    if (dir)
        closedir(dir);
}

static int make_folder(const struct image_disk *d, const char *name, struct err *e)
{
    char path[IMAGE_PATH_MAX];
    image_disk_path(d, name, "", "", path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make folder '%s': %s", path, strerror(errno));
    return 0;
}

static int give_to(const char *path, gid_t gid, mode_t mode, struct err *e)
{
    if (chown(path, 0, gid) == 0 && chmod(path, mode) == 0)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "cannot open folder '%s' to image tools: %s", path,
                   strerror(errno));
}

/* They pass through to where they write; what is unpacked stays root's. */
static int open_to_fetchers(const struct image_disk *d, struct err *e)
{
    static const struct {
        const char *name;
        mode_t mode;
    } folders[] = { { "", 0710 }, { "layout", 0710 }, { "blobs", 0770 }, { "blobs/sha256", 0770 } };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[IMAGE_PATH_MAX];
        image_disk_path(d, folders[i].name, "", "", path);
        if (give_to(path, d->gid, folders[i].mode, e) < 0)
            return -1;
    }
    if (mkdir(IMAGE_VIEW, 0755) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make folder '%s': %s", IMAGE_VIEW,
                       strerror(errno));
    return 0;
}

int image_disk_open(const struct image_disk *d, struct err *e)
{
    static const char *const folders[] = { "",       "blobs", "blobs/sha256", "layout",
                                           "rootfs", "refs",  "trash" };
    char tmp[IMAGE_PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (make_folder(d, folders[i], e) < 0)
            return -1;
    if (d->gid && open_to_fetchers(d, e) < 0)
        return -1;
    throw_parts(d, "layout");
    throw_parts(d, "rootfs");
    snprintf(tmp, sizeof tmp, "%s/tmp", d->dir);
    image_disk_throw(d, tmp);
    if (make_folder(d, "tmp", e) < 0)
        return -1;
    return d->gid ? give_to(tmp, d->gid, 0770, e) : 0;
}

bool image_disk_has(const struct image_disk *d, const char *digest)
{
    char path[IMAGE_PATH_MAX];
    return access(image_disk_path(d, "rootfs", digest, "/root", path), F_OK) == 0;
}

void image_disk_touch(const struct image_disk *d, const char *digest)
{
    char path[IMAGE_PATH_MAX];
    (void)utimensat(AT_FDCWD, image_disk_path(d, "rootfs", digest, "/used", path), NULL, 0);
}

int image_disk_load(const struct image_disk *d, const char *digest, struct arena *a,
                    struct image *out, struct err *e)
{
    char path[IMAGE_PATH_MAX];
    AUTO(buf_free) struct buf text = BUF(IMAGE_JSON_MAX);
    struct image img = { 0 };
    if (file_read(image_disk_path(d, "rootfs", digest, "/config.json", path), IMAGE_JSON_MAX, &text,
                  e) < 0 ||
        image_run_parse(buf_str(&text), a, &img.run, e) < 0)
        return -1;
    img.digest = arena_strndup(a, digest, strlen(digest));
    image_disk_path(d, "rootfs", digest, "/root", path);
    img.rootfs = arena_strndup(a, path, strlen(path));
    *out = img;
    return 0;
}

static const char *ref_path(const struct image_disk *d, struct str ref,
                            char out[static IMAGE_PATH_MAX])
{
    char key[24];
    snprintf(key, sizeof key, "%016llx", (unsigned long long)str_hash(ref));
    return image_disk_path(d, "refs", key, "", out);
}

bool image_disk_lookup(const struct image_disk *d, struct str ref, const char *stamp,
                       char out_digest[static IMAGE_DIGEST])
{
    char path[IMAGE_PATH_MAX];
    AUTO(buf_free) struct buf text = BUF(REF_MAX);
    struct err ignored;
    struct str was = { 0 }, was_stamp = { 0 }, digest = { 0 };
    if (file_read(ref_path(d, ref, path), REF_MAX, &text, &ignored) < 0)
        return false;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&text), &ignored);
    if (!doc || json_need_str(json_root(doc), "ref", REF_MAX, &was, &ignored) < 0 ||
        json_need_str(json_root(doc), "stamp", REF_MAX, &was_stamp, &ignored) < 0 ||
        json_need_str(json_root(doc), "digest", REF_MAX, &digest, &ignored) < 0)
        return false;
    char found[IMAGE_DIGEST];
    if (!str_eq(was, ref) || !str_is(was_stamp, stamp) || !image_digest_parse(digest, found) ||
        !image_disk_has(d, found))
        return false;
    memcpy(out_digest, found, sizeof found);
    return true;
}

int image_disk_remember(const struct image_disk *d, struct str ref, const char *stamp,
                        const char *digest, struct err *e)
{
    char path[IMAGE_PATH_MAX], full[IMAGE_DIGEST + 8];
    AUTO(buf_free) struct buf text = BUF(REF_MAX);
    struct json_out w = { .b = &text };
    snprintf(full, sizeof full, "sha256:%s", digest);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "ref", ref);
    json_put_str(&w, "stamp", str_of(stamp));
    json_put_str(&w, "digest", str_of(full));
    json_end(&w, '}');
    if (buf_check(&text, e) < 0)
        return -1;
    return file_write(ref_path(d, ref, path), buf_str(&text), e);
}

/* ---- pruning ---- */

struct kept {
    char digest[IMAGE_DIGEST];
    uint64_t bytes;
    int64_t used_ms;
    bool spared;
};

uint64_t image_disk_bytes(const char *path)
{
    AUTO(buf_free) struct buf text = BUF(4096);
    struct err ignored;
    struct str rest, word = { "", 0 };
    uint64_t v = 0;
    if (file_read(path, 4096, &text, &ignored) < 0)
        return 0;
    rest = buf_str(&text);
    if (!str_next_word(&rest, &word) || parse_u64(word, UINT64_MAX, &v, &ignored) < 0)
        return 0;
    return v;
}

static size_t list_images(const struct image_disk *d, uint64_t grace_ms, struct kept *out)
{
    char path[IMAGE_PATH_MAX], name[96];
    AUTO(buf_free) struct buf mounts = BUF(MOUNTS_MAX);
    struct clock wall = clock_wall();
    struct err ignored;
    size_t n = 0;
    bool known = file_read("/proc/self/mountinfo", MOUNTS_MAX, &mounts, &ignored) == 0;
    DIR *dir = opendir(image_disk_path(d, "rootfs", "", "", path));
    for (struct dirent *x; dir && n < IMAGES_MAX && (x = readdir(dir));) {
        struct stat st;
        struct kept k = { 0 };
        snprintf(name, sizeof name, "sha256:%.80s", x->d_name);
        if (!image_digest_parse(str_of(name), k.digest))
            continue;
        image_disk_path(d, "rootfs", k.digest, "/used", path);
        k.bytes = image_disk_bytes(path);
        k.used_ms = stat(path, &st) == 0 ? (int64_t)st.st_mtime * 1000 : 0;
        k.spared = !known || strstr(mounts.p, k.digest) ||
                   clock_now_ms(&wall) - k.used_ms < (int64_t)grace_ms;
        out[n++] = k;
    }
    if (dir)
        closedir(dir);
    return n;
}

void image_disk_own(const char *blobs)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    char path[IMAGE_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/sha256", blobs);
    int folder = open(path, flags);
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    for (struct dirent *x; dir && (x = readdir(dir));) {
        struct stat st;
        AUTO(file_close_p) int fd = openat(folder, x->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (x->d_name[0] == '.' || fd < 0 || fstat(fd, &st) < 0 || st.st_uid == geteuid())
            continue;
        if (!S_ISREG(st.st_mode) ||
            fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH) < 0) /* no blob of ours */
            unlinkat(folder, x->d_name, 0);
    }
    if (dir)
        closedir(dir);
    else
        file_close_p(&folder);
}

static bool needs_blob(const struct image_manifest *m, const char *own, const char *blob)
{
    if (strcmp(m->config, blob) == 0 || strcmp(own, blob) == 0)
        return true;
    for (size_t i = 0; i < m->n_layers; i++)
        if (strcmp(m->layer[i], blob) == 0)
            return true;
    return false;
}

/* Blobs of images that are here are kept, as the next image may share them; so are new ones, which
 * a fetch may be about to use. */
static uint64_t tidy_blobs(const struct image_disk *d, const struct kept *k, size_t n,
                           uint64_t grace_ms)
{
    AUTO(arena_free) struct arena a = { .limit = 256u << 20 };
    struct image_manifest *m = arena_array(&a, struct image_manifest, n + 1);
    struct clock wall = clock_wall();
    char path[IMAGE_PATH_MAX];
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        AUTO(buf_free) struct buf text = BUF(IMAGE_JSON_MAX);
        struct err ignored;
        image_disk_path(d, "rootfs", k[i].digest, "/manifest.json", path);
        if (file_read(path, IMAGE_JSON_MAX, &text, &ignored) < 0 ||
            image_manifest_parse(buf_str(&text), &a, &m[i], &ignored) < 0)
            m[i] = (struct image_manifest){ 0 };
    }
    DIR *dir = opendir(image_disk_path(d, "blobs", "sha256", "", path));
    for (struct dirent *x; dir && (x = readdir(dir));) {
        struct stat st;
        bool needed = false;
        if (x->d_name[0] == '.' || fstatat(dirfd(dir), x->d_name, &st, 0) < 0)
            continue;
        for (size_t i = 0; i < n && !needed; i++)
            needed = needs_blob(&m[i], k[i].digest, x->d_name);
        bool old = clock_now_ms(&wall) - (int64_t)st.st_mtime * 1000 >= (int64_t)grace_ms;
        if (needed || !old)
            bytes += (uint64_t)st.st_size;
        else
            unlinkat(dirfd(dir), x->d_name, 0);
    }
    if (dir)
        closedir(dir);
    return bytes;
}

static struct kept *oldest(struct kept *k, size_t n)
{
    struct kept *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (!k[i].spared && (!best || k[i].used_ms < best->used_ms))
            best = &k[i];
    return best;
}

unsigned image_disk_prune(const struct image_disk *d, uint64_t keep_bytes, uint64_t grace_ms,
                          uint64_t *out_left)
{
    AUTO(free_p) struct kept *k = xcalloc(IMAGES_MAX, sizeof *k);
    size_t n = list_images(d, grace_ms, k);
    unsigned gone = 0;
    for (;;) {
        uint64_t total = tidy_blobs(d, k, n, grace_ms);
        for (size_t i = 0; i < n; i++)
            total += k[i].bytes;
        struct kept *old = total > keep_bytes ? oldest(k, n) : NULL;
        char path[IMAGE_PATH_MAX];
        *out_left = total;
        if (!old)
            return gone;
        image_disk_throw(d, image_disk_path(d, "rootfs", old->digest, "", path));
        *old = k[--n];
        gone++;
    }
}
