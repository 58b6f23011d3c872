#include "sys/file.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/lib/test.h"

struct folder {
    char path[64];
};

static struct folder folder_new(void)
{
    struct folder f = { "/tmp/file_test.XXXXXX" };
    CHECK(mkdtemp(f.path) != NULL);
    return f;
}

static void folder_remove(struct folder *f)
{
    static const char *const names[] = { "a", "a.gz", "bomb.gz" };
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, names[i]);
        unlink(path);
    }
    rmdir(f->path);
}

static const char *in(const struct folder *f, const char *name, char out[static 128])
{
    snprintf(out, 128, "%s/%s", f->path, name);
    return out;
}

static void write_gzip(const char *path, const char *mode, size_t n)
{
    gzFile g = gzopen(path, mode);
    AUTO(free_p) char *zeros = xcalloc(n, 1);
    CHECK(g && gzwrite(g, zeros, (unsigned)n) == (int)n && gzclose(g) == Z_OK);
}

static void what_is_written_is_read(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(0);
    char path[128];
    struct err e;
    in(&f, "a", path);
    CHECK(file_write(path, STR("one"), &e) == 0 && file_read(path, 100, &b, &e) == 0);
    CHECK_STR(b.p, "one");
    CHECK(file_write(path, STR(""), &e) == 0 && file_read(path, 0, &b, &e) == 0 && b.n == 0);
    CHECK(file_write(path, STR("two\0x"), &e) == 0 && file_read(path, 5, &b, &e) == 0 && b.n == 5);
    struct stat st;
    CHECK(file_write_private(path, STR("secret"), &e) == 0 && stat(path, &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
}

static void too_large_is_refused(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(10);
    char path[128];
    struct err e;
    buf_addz(&b, "kept");
    in(&f, "a", path);
    CHECK(file_write(path, STR("123456"), &e) == 0);
    CHECK(file_read(path, 5, &b, &e) < 0 && e.code == ERR_TOO_LARGE && strstr(e.msg, path));
    CHECK_STR(b.p, "kept");
    CHECK(file_read("/dev/zero", 100000, &b, &e) < 0 && e.code == ERR_TOO_LARGE);
}

static void gzip_is_unpacked(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(0);
    char path[128];
    struct err e;
    in(&f, "a.gz", path);
    write_gzip(path, "wb", 300000);
    CHECK(file_read(path, 300000, &b, &e) == 0 && b.n == 300000);
    write_gzip(path, "ab", 5); /* a second member */
    CHECK(file_read(path, 300005, &b, &e) == 0 && b.n == 300005);
    CHECK(file_read(path, 300004, &b, &e) < 0 && e.code == ERR_TOO_LARGE);
}

static void a_bomb_is_refused(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(0);
    char path[128];
    struct err e;
    struct stat st;
    write_gzip(in(&f, "bomb.gz", path), "wb9", 100 << 20);
    CHECK(stat(path, &st) == 0 && st.st_size < 1 << 20);
    CHECK(file_read(path, 1 << 20, &b, &e) < 0 && e.code == ERR_TOO_LARGE && b.p == NULL);
}

static void broken_gzip_is_refused(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(0);
    char path[128];
    struct err e;
    struct stat st;
    write_gzip(in(&f, "a.gz", path), "wb", 300000);
    CHECK(stat(path, &st) == 0 && truncate(path, st.st_size - 3) == 0);
    CHECK(file_read(path, 1 << 20, &b, &e) < 0 && e.code == ERR_INVALID);
    CHECK(strstr(e.msg, "ends too early") && e.hint[0]);
    CHECK(file_write(path, STR("\x1f\x8b\x08garbage garbage garbage"), &e) == 0);
    CHECK(file_read(path, 1 << 20, &b, &e) < 0 && e.code == ERR_INVALID);
    CHECK(file_write(path, STR("\x1f\x8b"), &e) == 0);
    CHECK(file_read(path, 1 << 20, &b, &e) < 0 && e.code == ERR_INVALID);
}

static void the_cause_is_named(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(0);
    char path[128];
    struct err e;
    CHECK(file_read(in(&f, "none", path), 10, &b, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(strstr(e.msg, path) && e.hint[0]);
    CHECK(file_read(f.path, 10, &b, &e) < 0 && e.code == ERR_INVALID && strstr(e.msg, "folder"));
    CHECK(file_write(f.path, STR("x"), &e) < 0 && e.code == ERR_INVALID);
    CHECK(file_write(in(&f, "no/where", path), STR("x"), &e) < 0 && e.code == ERR_NOT_FOUND);
}

static void a_forbidden_file_is_told_from_a_missing_one(void)
{
    AUTO(folder_remove) struct folder f = folder_new();
    AUTO(buf_free) struct buf b = BUF(0);
    char path[128];
    struct err e;
    CHECK(file_write(in(&f, "a", path), STR("x"), &e) == 0 && chmod(path, 0) == 0);
    bool root = geteuid() == 0; /* who may read everything: ask as somebody who may not */
    CHECK(!root || seteuid(65534) == 0);
    int rc = file_read(path, 10, &b, &e);
    CHECK(!root || seteuid(0) == 0);
    CHECK(rc < 0 && e.code == ERR_DENIED && e.hint[0]);
}

/* As a process would find it that was started below such a limit. */
static bool starts_with(rlim_t soft, rlim_t hard)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit now = { soft, hard };
        uint64_t most = 0;
        struct err e = { 0 };
        bool good = setrlimit(RLIMIT_NOFILE, &now) == 0 && file_limit_raise(&most, &e) == 0;
        good = good ? most == hard && getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == hard
                    : !(strstr(e.msg, "open files are allowed") && strstr(e.hint, "ulimit -n"));
        _exit(good ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

static void a_low_limit_of_files_is_refused_with_the_way_out(void)
{
    CHECK(starts_with(16, FILES_LEAST));
    CHECK(!starts_with(16, FILES_LEAST - 1));
}

static const struct test tests[] = {
    { "what is written is read back", what_is_written_is_read },
    { "a file larger than the limit is refused, the output kept", too_large_is_refused },
    { "gzip is unpacked, also in several members", gzip_is_unpacked },
    { "a gzip bomb is refused", a_bomb_is_refused },
    { "a truncated or damaged gzip file is refused", broken_gzip_is_refused },
    { "an error names the path and the cause", the_cause_is_named },
    { "a low limit of files is refused with the way out",
      a_low_limit_of_files_is_refused_with_the_way_out },
    { "a forbidden file is told from a missing one", a_forbidden_file_is_told_from_a_missing_one },
};
TEST_CASES(tests)
