#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK 65536u
#define MORE_FILES                                                                                 \
    "raise the limit of open files: ulimit -n 4096, or LimitNOFILE= of its systemd unit"

void file_close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* What went wrong in words, for the few causes people can do something about. */
static int failed(const char *verb, const char *path, int cause, struct err *e)
{
    switch (cause) {
    case ENOENT:
    case ENOTDIR:
        err_set(e, ERR_NOT_FOUND, "cannot %s '%s': no such file or folder", verb, path);
        return err_hint(e, "check the spelling, and that the folder exists");
    case EACCES:
    case EPERM:
    case EROFS:
        err_set(e, ERR_DENIED, "cannot %s '%s': %s", verb, path, strerror(cause));
        return err_hint(e, "see who may with: ls -ld '%.120s'", path);
    case EISDIR:
        err_set(e, ERR_INVALID, "cannot %s '%s': it is a folder, not a file", verb, path);
        return err_hint(e, "name a file inside it");
    case ENOSPC:
    case EDQUOT:
        err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': %s", verb, path, strerror(cause));
        return err_hint(e, "make room: df -h '%.120s'", path);
    case EMFILE:
        err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': %s", verb, path, strerror(cause));
        return err_hint(e, MORE_FILES);
    default: return err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': %s", verb, path, strerror(cause));
    }
}

int file_limit_raise(uint64_t *out_most, struct err *e)
{
    struct rlimit files = { FILES_LEAST, FILES_LEAST };
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    *out_most = files.rlim_max;
    if (files.rlim_max >= FILES_LEAST)
        return 0;
    err_set(e, ERR_UNAVAILABLE, "%llu open files are allowed, and it takes %u at least",
            (unsigned long long)files.rlim_max, FILES_LEAST);
    return err_hint(e, MORE_FILES);
}

static int too_large(const char *path, size_t limit, struct err *e)
{
    return err_set(e, ERR_TOO_LARGE, "'%s' is larger than %zu bytes, the most accepted here", path,
                   limit);
}

static ssize_t read_some(int fd, char *p, size_t n)
{
    ssize_t got;
    do {
        got = read(fd, p, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* One file being read: plain until its first two bytes say gzip. */
struct reading {
    const char *path;
    size_t limit;
    struct buf out;
    z_stream z;
    bool gzip, ended; /* ended: the last gzip member is complete */
};

static void reading_clear(struct reading *r)
{
    if (r->gzip)
        inflateEnd(&r->z);
    buf_free(&r->out);
}

static int corrupt(const struct reading *r, const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, "'%s' is not a whole gzip file: %s", r->path, why);
    return err_hint(e, "fetch it again; check it with: gzip -t '%.120s'", r->path);
}

static int unpack(struct reading *r, char *in, size_t n, struct err *e)
{
    char piece[CHUNK];
    r->z.next_in = (Bytef *)in;
    r->z.avail_in = (uInt)n;
    do {
        /* A gzip file may be several members one after the other. */
        if (r->ended && r->z.avail_in && inflateReset(&r->z) != Z_OK)
            return corrupt(r, "it cannot be unpacked", e);
        r->z.next_out = (Bytef *)piece;
        r->z.avail_out = sizeof piece;
        int rc = inflate(&r->z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return corrupt(r, r->z.msg ? r->z.msg : "its data is damaged", e);
        r->ended = rc == Z_STREAM_END;
        buf_add(&r->out, (struct str){ piece, sizeof piece - r->z.avail_out });
        if (r->out.full)
            return too_large(r->path, r->limit, e);
    } while (r->z.avail_in || r->z.avail_out == 0);
    return 0;
}

static int take_chunk(struct reading *r, char *p, size_t n, bool first, struct err *e)
{
    if (first && n >= 2 && (unsigned char)p[0] == 0x1f && (unsigned char)p[1] == 0x8b) {
        if (inflateInit2(&r->z, 15 + 16) != Z_OK) /* 16: with gzip's header and checksum */
            abort();
        r->gzip = true;
    }
    if (r->gzip)
        return unpack(r, p, n, e);
    buf_add(&r->out, (struct str){ p, n });
    return r->out.full ? too_large(r->path, r->limit, e) : 0;
}

/* A pipe may give a single byte; the gzip mark needs two. */
static ssize_t read_chunk(int fd, char *p, size_t size)
{
    size_t n = 0;
    while (n < size) {
        ssize_t got = read_some(fd, p + n, size - n);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

int file_read(const char *path, size_t limit, struct buf *out, struct err *e)
{
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return failed("read", path, errno, e);
    if (S_ISDIR(st.st_mode))
        return failed("read", path, EISDIR, e);
    AUTO(reading_clear) struct reading r = { .path = path, .limit = limit, .out = BUF(limit) };
    AUTO(free_p) char *chunk = xmalloc(CHUNK);
    size_t packed = 0;
    for (bool first = true;; first = false) {
        ssize_t n = read_chunk(fd, chunk, CHUNK);
        if (n < 0)
            return failed("read", path, errno, e);
        if (n == 0)
            break;
        if (take_chunk(&r, chunk, (size_t)n, first, e) < 0)
            return -1;
        packed += (size_t)n;
        if (packed > limit && packed - limit > CHUNK) /* endless empty members unpack to nothing */
            return too_large(path, limit, e);
    }
    if (r.gzip && !r.ended)
        return corrupt(&r, "it ends too early", e);
    buf_free(out);
    *out = r.out;
    r.out = (struct buf){ 0 };
    return 0;
}

static int write_all(int fd, struct str data)
{
    while (data.n) {
        ssize_t n = write(fd, data.p, data.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data = (struct str){ data.p + n, data.n - (size_t)n };
    }
    return 0;
}

/* The rename is on the disk only once its folder is. */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    AUTO(free_p) char *folder = xstrdup(slash == path ? "/" : slash ? path : ".");
    if (slash && slash != path)
        folder[slash - path] = '\0';
    AUTO(file_close_p) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems cannot sync a folder and say EINVAL; there is nothing more to do there. */
    return fd < 0 || (fsync(fd) < 0 && errno != EINVAL) ? -1 : 0;
}

static int write_as(const char *path, struct str data, mode_t mode, struct err *e)
{
    AUTO(buf_free) struct buf tmp = BUF(4096);
    buf_printf(&tmp, "%s.%ld.tmp", path, (long)getpid());
    if (buf_check(&tmp, e) < 0)
        return -1;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return failed("write", path, EISDIR, e);
    unlink(tmp.p); /* what an earlier process of this number left behind */
    AUTO(file_close_p) int fd = open(tmp.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return failed("write", path, errno, e);
    if (write_all(fd, data) == 0 && fsync(fd) == 0 && rename(tmp.p, path) == 0 &&
        sync_folder(path) == 0)
        return 0;
    int cause = errno;
    unlink(tmp.p);
    return failed("write", path, cause, e);
}

int file_write(const char *path, struct str data, struct err *e)
{
    return write_as(path, data, 0644, e);
}

int file_write_private(const char *path, struct str data, struct err *e)
{
    return write_as(path, data, 0600, e);
}
