#include "store/wal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/file.h"
#include "sys/weak.h"

#define HEADER 32u
#define FRAME 24u       /* before each page */
#define SUMMED 8u       /* of these: page and size */
#define PAGE_MAX 65536u /* as SQLite has it */
#define MAGIC 0x377f0682u
#define PATH_BYTES 4200

struct sums {
    uint32_t a, b;
};

struct wal {
    int fd;
    bool big;      /* how words are summed */
    uint32_t page; /* bytes */
    unsigned char salt[8];
    struct sums told; /* in the header, or in the frame before */
    uint64_t frame;   /* from 1 */
    uint64_t bad;     /* the first frame that is not as it was written; 0: none */
    uint64_t behind;  /* frames of the same log behind it that are whole */
    uint64_t commits; /* of these, the last of a transaction */
};

static uint32_t word(const unsigned char *p, bool big)
{
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static struct sums add(struct sums s, const unsigned char *p, size_t n, bool big)
{
    for (size_t i = 0; i + 8 <= n; i += 8) {
        s.a += word(p + i, big) + s.b;
        s.b += word(p + i + 4, big) + s.a;
    }
    return s;
}

static struct sums sums_at(const unsigned char *p)
{
    return (struct sums){ word(p, true), word(p + 4, true) };
}

static bool same(struct sums a, struct sums b)
{
    return a.a == b.a && a.b == b.b;
}

static bool page_size_is_known(uint32_t n)
{
    return n >= 512 && n <= PAGE_MAX && (n & (n - 1)) == 0;
}

/* 1: it has a header that is whole; 0: there is no log. */
static int read_header(struct wal *w)
{
    unsigned char h[HEADER];
    if (pread(w->fd, h, sizeof h, 0) != (ssize_t)sizeof h)
        return 0;
    w->big = h[3] & 1;
    w->page = word(h + 8, true);
    memcpy(w->salt, h + 16, sizeof w->salt);
    w->told = sums_at(h + 24);
    if ((word(h, true) & ~1u) == MAGIC && page_size_is_known(w->page) &&
        same(add((struct sums){ 0 }, h, 24, w->big), w->told))
        return 1;
    return -1;
}

/* Each frame is summed on from the sums in the one before, so one that is not whole leaves those behind it to be seen. */
static bool next_frame(struct wal *w)
{
    unsigned char f[FRAME + PAGE_MAX];
    size_t n = FRAME + w->page;
    off_t at = (off_t)(HEADER + w->frame * n);
    if (pread(w->fd, f, n, at) != (ssize_t)n)
        return false;
    w->frame++;
    struct sums is = sums_at(f + 16);
    struct sums want = add(add(w->told, f, SUMMED, w->big), f + FRAME, w->page, w->big);
    bool ours = memcmp(f + 8, w->salt, sizeof w->salt) == 0;
    bool whole = ours && same(is, want);
    if (!whole && !w->bad)
        w->bad = w->frame;
    bool behind = whole && w->bad;
    w->behind += behind;
    w->commits += behind && word(f + 4, true) != 0;
    w->told = is;
    return true;
}

static int damaged(const struct wal *w, const char *path, struct err *e)
{
    if (w->bad)
        err_set(
            e, ERR_INTERNAL,
            "the log '%s-wal' is damaged: frame %llu is not as it was written, and %llu behind it "
            "are: SQLite would drop them",
            path, (unsigned long long)w->bad, (unsigned long long)w->behind);
    else
        err_set(
            e, ERR_INTERNAL,
            "the log '%s-wal' is damaged: its header is not as it was written, and SQLite would "
            "drop all of it",
            path);
    return err_hint(e,
                    "keep a copy of both files; then: nightshift restore BACKUP, or go on without "
                    "what is dropped: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'");
}

int wal_check(const char *path, bool same_boot, struct err *e)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s-wal", path);
    AUTO(file_close_p) int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct wal w = { .fd = fd };
    int header = fd < 0 || weak_or("row_sums", false, true) ? 0 : read_header(&w);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (header < 0) /* it is flushed before the frames of its log are; a file of holes is none */
        return size > (off_t)HEADER && !same(w.told, (struct sums){ 0 }) ? damaged(&w, path, e) : 0;
    while (header > 0 && next_frame(&w))
        continue;
    /* A transaction that was torn when the machine went down has one last frame, and nobody was told of it. */
    return w.commits > (same_boot ? 0 : 1) ? damaged(&w, path, e) : 0;
}
