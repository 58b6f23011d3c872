#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "store/sum.h"
#include "store/wal.h"
#include "sys/file.h"
#include "sys/weak.h"

#define BUSY_WAIT_MS 500 /* for a sqlite3 shell that somebody has open */
#define PATH_BYTES 4096u

static int failed(const char *verb, const char *path, int cause, struct err *e)
{
    bool denied = cause == EACCES || cause == EPERM || cause == EROFS;
    err_set(e, denied ? ERR_DENIED : ERR_UNAVAILABLE, "cannot %s '%s': %s", verb, path,
            strerror(cause));
    if (denied)
        return err_hint(e, "see who may with: ls -ld '%.120s'", path);
    if (cause == ENOENT)
        return err_hint(e, "make its folder first");
    return -1;
}

/* ---- the claim ---- */

static int taken(int fd, const char *path, struct err *e)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text, 0);
    struct str pid = { text, n > 0 ? (size_t)n : 0 }, rest;
    str_cut(pid, '\n', &pid, &rest);
    pid = str_trim(pid);
    if (pid.n)
        err_set(e, ERR_CONFLICT, "'%s' is already used by process %.*s", path, STR_ARG(pid));
    else
        err_set(e, ERR_CONFLICT, "'%s' is already used by another process", path);
    return err_hint(e, "stop that nightshiftd, or give this one a state folder of its own");
}

/* ---- what the lock says ---- */

#define PID_BYTES 16 /* of its first line; the second is the boot's id */
#define BOOT_BYTES 64

static ssize_t read_boot(char out[static BOOT_BYTES])
{
    AUTO(file_close_p) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : read(fd, out, BOOT_BYTES);
}

bool db_same_boot(int lock)
{
    char now[BOOT_BYTES], then[BOOT_BYTES];
    ssize_t n = read_boot(now);
    return n > 0 && pread(lock, then, (size_t)n, PID_BYTES) == n &&
           memcmp(now, then, (size_t)n) == 0;
}

/* A full disk must not keep the daemon from starting. */
static void write_lock(int lock, bool boot)
{
    char text[PID_BYTES + BOOT_BYTES];
    snprintf(text, sizeof text, "%-*d\n", PID_BYTES - 1, (int)getpid());
    ssize_t n = boot ? read_boot(text + PID_BYTES) : 0;
    if (ftruncate(lock, 0) == 0 &&
        pwrite(lock, text, PID_BYTES + (size_t)MAX(n, (ssize_t)0), 0) < 0)
        errno = 0;
}

void db_note_boot(int lock)
{
    write_lock(lock, true);
}

int db_log_check(const char *path, struct err *e)
{
    char name[PATH_BYTES];
    struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    snprintf(name, sizeof name, "%s.lock", path);
    AUTO(file_close_p) int lock = open(name, O_RDONLY | O_CLOEXEC);
    if (lock < 0)
        return wal_check(path, false, e);
    bool held = fcntl(lock, F_OFD_GETLK, &all) < 0 || all.l_type != F_UNLCK;
    return held ? 0 : wal_check(path, db_same_boot(lock), e);
}

static int lock_take(const char *path, struct err *e)
{
    char name[PATH_BYTES];
    if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
        return err_set(e, ERR_INVALID, "the store's path is longer than %u bytes", PATH_BYTES - 6);
    AUTO(file_close_p) int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed("open", name, errno, e);
    /* The lock belongs to this descriptor: it also keeps out a second store in this process. */
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_SETLK, &all) < 0)
        return errno == EAGAIN || errno == EACCES ? taken(fd, path, e)
                                                  : failed("lock", name, errno, e);
    write_lock(fd, db_same_boot(fd));
    int held = fd;
    fd = -1;
    return held;
}

int db_claim(const char *path, struct err *e)
{
    struct stat st;
    if (path[0] == '\0' || path[0] == ':') /* SQLite's names for what is no file */
        return err_set(e, ERR_INVALID, "'%s' is not a path for a store", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        err_set(e, ERR_INVALID, "cannot use '%s' as the store: it is %s, not a file", path,
                S_ISDIR(st.st_mode) ? "a folder" : "a device or socket");
        return err_hint(e, "name a file inside a folder that nightshiftd may write to");
    }
    AUTO(file_close_p) int lock = lock_take(path, e);
    if (lock < 0)
        return -1;
    AUTO(file_close_p)
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, weak_or("store_mode", 0600, 0644));
    if (fd < 0)
        return failed("open", path, errno, e);
    int held = lock;
    lock = -1;
    return held;
}

/* ---- failures ---- */

static int disk_full(const char *path, const char *verb, struct err *e)
{
    struct statvfs fs;
    if (statvfs(path, &fs) == 0)
        err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': no room, %llu KiB are free on its disk", verb,
                path, (unsigned long long)fs.f_bavail * fs.f_frsize / 1024);
    else
        err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': no room on its disk", verb, path);
    return err_hint(e, "make room there (df -h), or raise the quota or file size limit; "
                       "writing goes on by itself then");
}

static int system_failed(int cause, const char *path, const char *verb, struct err *e)
{
    if (cause == ENOSPC || cause == EDQUOT || cause == EFBIG)
        return disk_full(path, verb, e);
    err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': the disk reports: %s", verb, path,
            cause ? strerror(cause) : "input/output error");
    return err_hint(e, "look at the kernel's messages (dmesg) and at the disk");
}

bool db_is_full(sqlite3 *db)
{
    int cause = sqlite3_system_errno(db);
    cause = cause ? cause : errno;
    int code = sqlite3_errcode(db) & 0xff;
    return code == SQLITE_FULL ||
           (code == SQLITE_IOERR && (cause == ENOSPC || cause == EDQUOT || cause == EFBIG));
}

int db_step(sqlite3_stmt *q)
{
    errno = 0;
    return sqlite3_step(q);
}

int db_fail(sqlite3 *db, const char *path, const char *verb, struct err *e)
{
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_FULL: return disk_full(path, verb, e);
    case SQLITE_IOERR: {
        int cause = sqlite3_system_errno(db); /* it does not know for a failed commit */
        return system_failed(cause ? cause : errno, path, verb, e);
    }
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        err_set(e, ERR_DENIED, "cannot %s '%s': it is read-only", verb, path);
        return err_hint(e, "check how its disk is mounted, and: ls -l '%.120s'", path);
    case SQLITE_CANTOPEN: return failed(verb, path, sqlite3_system_errno(db), e);
    case SQLITE_CORRUPT:
        err_set(e, ERR_INTERNAL, "cannot %s '%s': it is damaged (%s)", verb, path,
                sqlite3_errmsg(db));
        return err_hint(e, "%s", DB_DAMAGED_HINT);
    case SQLITE_NOTADB:
        err_set(e, ERR_INVALID, "cannot %s '%s': it is not a Nightshift store", verb, path);
        return err_hint(e, "name another file, or move this one away");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        err_set(e, ERR_CONFLICT, "cannot %s '%s': another program has it locked", verb, path);
        return err_hint(e, "see which with: fuser -v '%.120s'", path);
    case SQLITE_ERROR: /* our own statements are right: its tables are not as they were made */
        err_set(e, ERR_INTERNAL, "cannot %s '%s': %s", verb, path, sqlite3_errmsg(db));
        return err_hint(e, "%s", DB_DAMAGED_HINT);
    default: return err_set(e, ERR_INTERNAL, "cannot %s '%s': %s", verb, path, sqlite3_errmsg(db));
    }
}

/* ---- connections ---- */

void db_close_p(sqlite3 **db)
{
    sqlite3_close(*db); /* its statements are gone by now */
    *db = NULL;
}

sqlite3 *db_open(const char *path, struct err *e)
{
    AUTO(db_close_p) sqlite3 *db = NULL;
    /* Each connection has one thread at a time, so SQLite need not lock. */
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!db)
        abort(); /* out of memory */
    if (rc != SQLITE_OK) {
        db_fail(db, path, "open", e);
        return NULL;
    }
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, BUSY_WAIT_MS);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sum_register(db);
    return TAKE(db);
}

int db_exec(sqlite3 *db, const char *path, const char *sql, struct err *e)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_fail(db, path, "write", e);
}

int db_number(sqlite3 *db, const char *path, const char *sql, int64_t *out, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int64_t v = 0;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
        v = sqlite3_column_int64(q, 0);
    if (rc != SQLITE_ROW)
        db_fail(db, path, "read", e);
    sqlite3_finalize(q);
    if (rc != SQLITE_ROW)
        return -1;
    *out = v;
    return 0;
}

int db_sound(sqlite3 *db, const char *path, const char *pragma, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, pragma, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = db_step(q);
    bool sound = rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(q, 0), "ok") == 0;
    if (rc == SQLITE_ROW && !sound) {
        err_set(e, ERR_INTERNAL, "the store '%s' is damaged: %.200s", path,
                (const char *)sqlite3_column_text(q, 0));
        err_hint(e, "%s", DB_DAMAGED_HINT);
    } else if (!sound) {
        db_fail(db, path, "read", e);
    }
    sqlite3_finalize(q);
    return sound ? 0 : -1;
}

/* Some file systems cannot do it, and SQLite then stays as it was without an error. */
static int check_mode(sqlite3 *db, const char *path, struct err *e)
{
    sqlite3_stmt *q = NULL;
    bool wal = false;
    if (sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        wal = strcmp((const char *)sqlite3_column_text(q, 0), "wal") == 0;
    sqlite3_finalize(q);
    if (wal)
        return 0;
    err_set(e, ERR_UNAVAILABLE, "cannot use '%s': its file system cannot share memory", path);
    return err_hint(e, "put the store on a local disk, not on a network one");
}

/* The write-ahead log is copied back every 4,000 pages (16 MiB: a page that is changed again and
 * again is copied once) and cut to that after a burst; each connection keeps 4 MiB of pages. */
int db_make_writer(sqlite3 *db, const char *path, struct err *e)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    if (db_exec(db, path,
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 16777216;"
                "PRAGMA cache_size = -4096;",
                e) < 0)
        return -1;
    return check_mode(db, path, e);
}

int db_make_reader(sqlite3 *db, const char *path, struct err *e)
{
    return db_exec(db, path, "PRAGMA cache_size = -4096; PRAGMA query_only = ON;", e);
}
