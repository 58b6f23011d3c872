/* Folders, the disk and the store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "doctor/checks.h"
#include "doctor/look.h"
#include "sys/file.h"

#define DISK_LEAST (UINT64_C(1) << 30)
#define DISK_LEAST_PERCENT 5

/* ---- folders ---- */

struct folder {
    const char *path, *option;
};

/* The folder is not there: can the daemon make it? */
static void check_missing(const struct doctor_in *in, const struct folder *f,
                          struct doctor_result *r)
{
    char path[LOOK_PATH];
    look_nearest(in, f->path, path);
    if (access(path, W_OK | X_OK) == 0) {
        say_skip(r, "%s is not there yet: nightshiftd makes it", f->path);
        return;
    }
    say_bad(r, "%s is not there, and may not be made", f->path);
    say_fix(r, "run nightshiftd as root, or choose another: --%s DIR", f->option);
}

static void check_folder(const struct doctor_in *in, const struct folder *f,
                         struct doctor_result *r)
{
    char path[LOOK_PATH];
    struct stat st;
    uint32_t uid = in->facts.uid;
    look_path(in, path, "%s", f->path);
    if (stat(path, &st) < 0 && errno == ENOENT) {
        check_missing(in, f, r);
    } else if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        say_bad(r, "%s is no folder that we may look into", f->path);
        say_fix(r, "move it away, or choose another: --%s DIR", f->option);
    } else if (st.st_uid != uid && st.st_uid != 0) {
        say_bad(r, "%s belongs to uid %u, and we are uid %u", f->path, (unsigned)st.st_uid, uid);
        say_fix(r, "chown %u %s", uid, f->path);
    } else if (st.st_mode & S_IWOTH) {
        say_bad(r, "%s has mode %04o: anybody may put files into it", f->path, st.st_mode & 07777);
        say_fix(r, "chmod o-w %s", f->path);
    } else if ((st.st_mode & S_IWGRP) && !(st.st_mode & S_ISVTX)) {
        say_bad(r, "%s has mode %04o: its group may remove what is root's in it", f->path,
                st.st_mode & 07777);
        say_fix(r, "chmod +t %s", f->path);
    } else if (access(path, W_OK | X_OK) < 0) {
        say_bad(r, "%s may not be written", f->path);
        say_fix(r, "chown %u %s; when its file system is read-only, dmesg says why", uid, f->path);
    } else if (look_as_root(in) && !(st.st_mode & S_IXOTH)) {
        say_bad(r, "%s has mode %04o: users cannot pass through it", f->path, st.st_mode & 07777);
        say_fix(r, "chmod o+x %s", f->path);
    } else {
        say_good(r, "%s, mode %04o", f->path, st.st_mode & 07777);
    }
}

void check_state_folder(const struct doctor_in *in, struct doctor_result *r)
{
    check_folder(in, &(struct folder){ in->state, "state" }, r);
}

void check_run_folder(const struct doctor_in *in, struct doctor_result *r)
{
    check_folder(in, &(struct folder){ in->run, "run" }, r);
}

/* ---- disk ---- */

static unsigned percent(uint64_t part, uint64_t whole)
{
    return whole ? (unsigned)((double)part * 100 / (double)whole) : 100;
}

void check_disk(const struct doctor_in *in, struct doctor_result *r)
{
    const struct doctor_disk *d = &in->facts.disk;
    unsigned space = percent(d->free_bytes, d->bytes), files = percent(d->free_files, d->files);
    double gib = (double)d->free_bytes / (double)(1u << 30);
    if (!d->known) {
        say_skip(r, "the file system of %s does not tell its size", in->state);
    } else if (space < DISK_LEAST_PERCENT || d->free_bytes < DISK_LEAST) {
        say_bad(r, "%.1f GiB (%u %%) are free at %s", gib, space, in->state);
        say_fix(r,
                "du -xh --max-depth=2 %s | sort -h shows what fills it; a lower log_limit and "
                "fewer images help",
                in->state);
    } else if (files < DISK_LEAST_PERCENT) {
        say_bad(r, "%.1f GiB are free at %s, but only %u %% of the inodes", gib, in->state, files);
        say_fix(r, "du -x --inodes --max-depth=2 %s | sort -n shows what uses them", in->state);
    } else {
        say_good(r, "%.1f GiB (%u %%) are free at %s", gib, space, in->state);
    }
}

/* ---- the store ---- */

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The header of an SQLite file: 100 bytes, the format at 60, the program's mark at 68.  Closing the
 * file would drop SQLite's locks of the same process: this runs in one that has no store open. */
static void check_header(const struct doctor_in *in, const unsigned char *h,
                         struct doctor_result *r)
{
    uint32_t format = big_endian(h + 60), mark = big_endian(h + 68);
    if (memcmp(h, "SQLite format 3", 16) != 0) {
        say_bad(r, "%s/nightshift.db is no SQLite file: it is damaged", in->state);
        say_fix(r, "stop nightshiftd and put a copy from a backup there");
    } else if (mark == 0 && format == 0) {
        say_good(r, "it can be read, and is new: its format is still in nightshift.db-wal");
    } else if (mark != in->store_application) {
        say_bad(r, "%s/nightshift.db is the file of another program", in->state);
        say_fix(r, "move it away, or choose another folder: --state DIR");
    } else if (format > in->store_format) {
        say_bad(r, "its format is %u; this nightshiftd knows formats up to %u", format,
                in->store_format);
        say_fix(r, "start the newer nightshiftd, or use a copy from before the upgrade");
    } else {
        say_good(r, "format %u of %u", format, in->store_format);
    }
}

void check_store(const struct doctor_in *in, struct doctor_result *r)
{
    char path[LOOK_PATH];
    unsigned char header[100];
    if (in->store_damage && in->store_damage[0]) {
        say_bad(r, "%s", in->store_damage);
        say_fix(r, "it is not given to anybody, and the rest goes on; to have it again, stop "
                   "nightshiftd, keep a copy, and: nightshift restore BACKUP");
        return;
    }
    look_path(in, path, "%s/nightshift.db", in->state);
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int cause = errno;
    ssize_t n = fd < 0 ? -1 : read(fd, header, sizeof header);
    if (fd < 0 && cause == ENOENT) {
        say_skip(r, "there is none yet: nightshiftd makes it");
    } else if (n == 0) {
        say_good(r, "it can be read, and is new: its format is still in nightshift.db-wal");
    } else if (fd < 0 || n < 0) {
        say_bad(r, "%s/nightshift.db cannot be read: %s", in->state,
                strerror(fd < 0 ? cause : errno));
        say_fix(r, "chown %u %s/nightshift.db*", in->facts.uid, in->state);
    } else {
        memset(header + n, 0, sizeof header - (size_t)n);
        check_header(in, header, r);
    }
}

/* ---- what is kept ---- */

static uint64_t store_bytes(const struct doctor_in *in)
{
    static const char *const ends[] = { "", "-wal" };
    uint64_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[LOOK_PATH];
        struct stat st;
        look_path(in, path, "%s/nightshift.db%s", in->state, ends[i]);
        if (stat(path, &st) == 0)
            sum += (uint64_t)st.st_size;
    }
    return sum;
}

void check_kept(const struct doctor_in *in, struct doctor_result *r)
{
    const double mib = 1 << 20;
    double store = (double)store_bytes(in) / mib, most = (double)in->logs_max_bytes / mib;
    uint64_t logs = 0;
    struct err e;
    if (!in->logs_kept || parse_u64(str_of(in->logs_kept), UINT64_MAX, &logs, &e) < 0) {
        say_skip(r, "the store has %.1f MiB; how much output is kept a running daemon knows",
                 store);
        return;
    }
    if ((double)logs / mib > most * 1.1) { /* it is above it for a while after many have ended */
        say_bad(r, "output of jobs has %.1f MiB; keep_logs_total is %.1f MiB", (double)logs / mib,
                most);
        say_fix(r, "see the log of nightshiftd for what keeps it from removing some: "
                   "journalctl -u nightshiftd | grep keep");
        return;
    }
    say_good(r, "the store has %.1f MiB, output of jobs %.1f MiB of at most %.1f MiB", store,
             (double)logs / mib, most);
}

/* ---- the clock ---- */

void check_jump(const struct doctor_in *in, struct doctor_result *r)
{
    if (!in->clock) {
        say_skip(r, "a running daemon looks at it");
        return;
    }
    if (strcmp(in->clock, "ok") == 0) {
        say_good(r, "it goes evenly");
        return;
    }
    say_bad(r, "it is %s of where it should be: nothing is removed for its age meanwhile",
            in->clock);
    say_fix(r, "set it right (timedatectl); if it is right: nightshift doctor --confirm-clock");
}

/* ---- the audit ---- */

void check_audit(const struct doctor_in *in, struct doctor_result *r)
{
    static const char good[] = "ok ";
    if (!in->audit || !in->audit[0]) {
        say_skip(r, "a running daemon verifies it");
        return;
    }
    if (strncmp(in->audit, good, sizeof good - 1) == 0) {
        say_good(r, "%s rows, as they were written", in->audit + sizeof good - 1);
        return;
    }
    say_bad(r, "%s", in->audit);
    say_fix(r, "somebody has changed the store, or its disk has: keep a copy of it, see what is "
               "wrong with "
               "nightshift audit verify, and compare with an export or a backup");
}
