#include "store/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/inside.h"
#include "store/migrate.h"
#include "store/sum.h"
#include "sys/file.h"

#define PATH_BYTES 4200

static int cannot(const char *verb, const char *path, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': %s", verb, path, strerror(errno));
}

static int flush_file(const char *path, int flags, struct err *e)
{
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    return fd >= 0 && fsync(fd) == 0 ? 0 : cannot("flush", path, e);
}

static int flush_folder_of(const char *path, struct err *e)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return flush_file(slash ? folder : ".", O_DIRECTORY, e);
}

/* ---- verifying ---- */

struct store *store_open_verified(const char *path, struct err *e)
{
    AUTO(store_close_p) struct store *s = xcalloc(1, sizeof *s);
    int64_t version;
    s->path = xstrdup(path);
    s->lock = -1;
    if (access(path, R_OK) < 0) {
        cannot("read", path, e);
        return NULL;
    }
    if (db_log_check(path, e) < 0)
        return NULL;
    s->db = db_open(path, e);
    if (!s->db || migrate_check(s->db, path, e) < 0 || db_make_reader(s->db, path, e) < 0 ||
        db_sound(s->db, path, "PRAGMA integrity_check(1)", e) < 0 ||
        db_number(s->db, path, "PRAGMA user_version", &version, e) < 0)
        return NULL;
    if (version == 0) {
        err_set(e, ERR_INVALID, "'%s' is empty", path);
        return NULL;
    }
    if (version < (int64_t)migrations_n) {
        err_set(e, ERR_CONFLICT, "'%s' has format %lld, this program's is %zu", path,
                (long long)version, migrations_n);
        err_hint(e, "its pages are sound; a daemon that opens it brings it up to date");
        return NULL;
    }
    if (migrate_words(s->db, path, e) < 0 || sum_check(s->db, path, SUM_ALL, e) < 0 ||
        statements_prepare(&s->st, s->db, STMT_R, path, e) < 0)
        return NULL;
    return TAKE(s);
}

static int is_whole(const char *path, struct err *e)
{
    AUTO(store_close_p) struct store *s = store_open_verified(path, e);
    return s || e->code == ERR_CONFLICT ? 0 : -1;
}

/* ---- backup ---- */

static int copy_into(const char *path, const char *to, struct err *e)
{
    AUTO(db_close_p) sqlite3 *db = db_log_check(path, e) == 0 ? db_open(path, e) : NULL;
    sqlite3_stmt *q = NULL;
    if (!db || migrate_check(db, path, e) < 0)
        return -1;
    int rc = sqlite3_prepare_v2(db, "VACUUM INTO ?1", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(q, 1, to, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = db_step(q);
    if (rc != SQLITE_DONE)
        db_fail(db, to, "write", e);
    sqlite3_finalize(q);
    return rc == SQLITE_DONE ? 0 : -1;
}

int store_backup(const char *path, const char *to, struct err *e)
{
    char fresh[PATH_BYTES];
    if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", to) >= sizeof fresh)
        return err_set(e, ERR_INVALID, "the path is too long: %.100s…", to);
    if (access(path, R_OK) < 0)
        return cannot("read", path, e);
    unlink(fresh);
    int rc = copy_into(path, fresh, e);
    if (rc == 0)
        rc = is_whole(fresh, e);
    if (rc == 0)
        rc = flush_file(fresh, 0, e);
    if (rc == 0 && rename(fresh, to) < 0)
        rc = cannot("make", to, e);
    unlink(fresh);
    return rc < 0 ? -1 : flush_folder_of(to, e);
}

/* ---- restore ---- */

static int copy_file(const char *from, const char *to, struct err *e)
{
    AUTO(file_close_p) int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return cannot("read", from, e);
    AUTO(file_close_p) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char part[65536];
    ssize_t n = out < 0 ? -1 : 0;
    while (out >= 0 && (n = read(in, part, sizeof part)) > 0)
        if (write(out, part, (size_t)n) != n) {
            n = -1;
            break;
        }
    return n < 0 || fsync(out) < 0 ? cannot("write", to, e) : 0;
}

/* What was there, with its log: nothing is thrown away here. */
static int put_aside(const char *path, char old[static PATH_BYTES], struct err *e)
{
    static const char *const ends[] = { "-wal", "-shm", "" };
    char from[PATH_BYTES + 8], to[PATH_BYTES + 8];
    struct stat st;
    bool was = stat(path, &st) == 0 && st.st_size > 0;
    snprintf(old, PATH_BYTES, "%s%s", was ? path : "", was ? ".before-restore" : "");
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(from, sizeof from, "%s%s", path, ends[i]);
        snprintf(to, sizeof to, "%s%s", old, ends[i]);
        if (was ? rename(from, to) < 0 && errno != ENOENT : unlink(from) < 0 && errno != ENOENT)
            return cannot("move", from, e);
    }
    return 0;
}

int store_restore(const char *from, const char *path, char out_old[static 4200], struct err *e)
{
    char fresh[PATH_BYTES];
    struct stat owner;
    if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", path) >= sizeof fresh)
        return err_set(e, ERR_INVALID, "the path is too long: %.100s…", path);
    if (is_whole(from, e) < 0)
        return err_wrap(e, "nothing was changed");
    AUTO(file_close_p) int lock = db_claim(path, e);
    if (lock < 0)
        return -1;
    if (stat(path, &owner) < 0)
        return cannot("read", path, e);
    if (copy_file(from, fresh, e) < 0)
        return -1;
    if (geteuid() == 0 && chown(fresh, owner.st_uid, owner.st_gid) < 0)
        return cannot("change the owner of", fresh, e);
    if (put_aside(path, out_old, e) < 0)
        return -1;
    return rename(fresh, path) < 0 ? cannot("make", path, e) : flush_folder_of(path, e);
}
