#include "keeper/scratch_kind.h"

/* Before <linux/fs.h>: the other way round glibc before 2.36 does not compile. */
#include <sys/mount.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/quota.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/tool.h"
#include "sys/file.h"
#include "sys/weak.h"

#define MIB (UINT64_C(1) << 20)
#define MKFS_MS 30000
#define TEMPLATES_MAX 16
#define LOOP_TRIES 32
#define PATH_BYTES 512

bool scratch_is_mounted(const char *path)
{
    char parent[PATH_BYTES];
    struct stat here, above;
    snprintf(parent, sizeof parent, "%s/..", path);
    return lstat(path, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

/* So many files go with a size; 0 is no bound. */
static uint64_t files_max(uint64_t mib)
{
    return weak_or("scratch_files", mib * 64 + 1024, 0);
}

/* ---- project quotas ---- */

uint32_t scratch_project_of(const char *path)
{
    struct fsxattr x;
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && ioctl(fd, FS_IOC_FSGETXATTR, &x) == 0 ? x.fsx_projid : 0;
}

static int project_make(struct scratch_site *s, const char *path, uint64_t mib, struct err *e)
{
    struct fsxattr x;
    AUTO(file_close_p) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
        return err_set(e, ERR_UNAVAILABLE, "'%s' has no project: %s", path, strerror(errno));
    x.fsx_projid = s->next_project;
    x.fsx_xflags |= FS_XFLAG_PROJINHERIT; /* all that is made below belongs to it */
    uint64_t files = files_max(mib);
    struct if_dqblk limit = { .dqb_bhardlimit = mib * (MIB / QIF_DQBLKSIZE),
                              .dqb_bsoftlimit = mib * (MIB / QIF_DQBLKSIZE),
                              .dqb_ihardlimit = files,
                              .dqb_isoftlimit = files,
                              .dqb_valid = QIF_LIMITS };
    if (ioctl(fd, FS_IOC_FSSETXATTR, &x) < 0 ||
        syscall(SYS_quotactl_fd, fd, QCMD(Q_SETQUOTA, PRJQUOTA), x.fsx_projid, &limit) < 0)
        return err_set(e, ERR_UNAVAILABLE, "no project quota for '%s': %s", path, strerror(errno));
    s->next_project++;
    return 0;
}

/* Root may pass every quota, so somebody else has to try.  Async-signal-safe calls only. */
static void write_as_nobody(int fd)
{
    static const char block[65536];
    if (syscall(SYS_setresgid, 65534, 65534, 65534) < 0 ||
        syscall(SYS_setresuid, 65534, 65534, 65534) < 0)
        _exit(1);
    for (uint64_t n = 0; n < 2 * MIB; n += sizeof block)
        if (write(fd, block, sizeof block) < 0)
            _exit(errno == EDQUOT || errno == ENOSPC ? 0 : 1);
    _exit(1);
}

/* Some file systems take a quota and do not keep it (mounted without prjquota). */
static int project_probe(struct scratch_site *s, const char *path, struct err *e)
{
    char file[PATH_BYTES];
    int status = 1;
    if (project_make(s, path, 1, e) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/probe", path);
    AUTO(file_close_p) int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fchown(fd, 65534, 65534) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot write '%s': %s", file, strerror(errno));
    pid_t child = fork();
    if (child == 0)
        write_as_nobody(fd);
    if (child > 0)
        waitpid(child, &status, 0);
    unlink(file);
    if (child < 0 || status != 0)
        return err_set(e, ERR_UNAVAILABLE, "the file system does not keep to project quotas");
    return 0;
}

/* ---- tmpfs ---- */

static int tmpfs_make(struct scratch_site *s, const char *path, uint64_t mib, struct err *e)
{
    char options[96];
    (void)s;
    /* Without its own bound a tmpfs takes as many files as half of the machine's pages. */
    snprintf(options, sizeof options, "mode=0711,size=%llum,nr_inodes=%llu",
             (unsigned long long)mib, (unsigned long long)files_max(mib));
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot mount a tmpfs on '%s': %s", path,
                       strerror(errno));
    return 0;
}

static int tmpfs_probe(struct scratch_site *s, const char *path, struct err *e)
{
    return tmpfs_make(s, path, 1, e) < 0 ? -1 : scratch_unbind(s, path, e);
}

/* ---- ext4 in a file ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void loop_file(const struct scratch_site *s, const char *path, char out[static PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s/.loop/%s", s->dir, last_part(path));
}

uint64_t scratch_disk_bytes(const struct scratch_site *s, const char *path)
{
    char file[PATH_BYTES];
    struct stat st;
    loop_file(s, path, file);
    return stat(file, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* A file system is made once for each size, so there are few sizes. */
static uint64_t round_mib(uint64_t mib)
{
    uint64_t step = mib <= 1024 ? 64 : 1024;
    return (mib + step - 1) / step * step;
}

static bool is_template(const char *name)
{
    return strncmp(name, "t.", 2) == 0;
}

static void drop_templates(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    for (struct dirent *x; d && (x = readdir(d));)
        n += is_template(x->d_name);
    if (d && n >= TEMPLATES_MAX) {
        rewinddir(d);
        for (struct dirent *x; (x = readdir(d));)
            if (is_template(x->d_name))
                unlinkat(dirfd(d), x->d_name, 0);
    }
    if (d)
        closedir(d);
}

static int make_template(const struct scratch_site *s, const char *path, uint64_t mib,
                         struct err *e)
{
    char part[PATH_BYTES], dir[PATH_BYTES], size[32];
    AUTO(buf_free) struct buf out = BUF(0);
    struct process_exit how;
    snprintf(dir, sizeof dir, "%s/.loop", s->dir);
    snprintf(part, sizeof part, "%s/.loop/part", s->dir);
    snprintf(size, sizeof size, "%lluM", (unsigned long long)mib);
    unlink(part);
    drop_templates(dir);
    /* No journal: nobody needs it after a crash.  Tables are not zeroed: the file is new. */
    const char *argv[] = { s->mkfs,        "-q", "-F",
                           "-m",           "0",  "-O",
                           "^has_journal", "-E", "lazy_itable_init=1,nodiscard",
                           part,           size, NULL };
    if (tool_wait(argv, MKFS_MS, &out, &how, e) < 0)
        return -1;
    if (how.code || how.signal)
        return err_set(e, ERR_UNAVAILABLE, "'%s' failed: %.*s", s->mkfs,
                       (int)MIN(out.n, (size_t)150), out.p ? out.p : "");
    if (rename(part, path) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", path, strerror(errno));
    return 0;
}

static int copy_data(int from, int to, off_t size)
{
    if (ftruncate(to, size) < 0)
        return -1;
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    for (off_t at = 0; (at = lseek(from, at, SEEK_DATA)) >= 0;) {
        off_t end = lseek(from, at, SEEK_HOLE);
        while (at < end) {
            off_t out = at;
            ssize_t n = copy_file_range(from, &at, to, &out, (size_t)(end - at), 0);
            if (n <= 0)
                return -1;
        }
    }
    return errno == ENXIO ? 0 : -1; /* no data after this point */
}

static int copy_template(const char *from, const char *to, struct err *e)
{
    struct stat st;
    AUTO(file_close_p) int in = open(from, O_RDONLY | O_CLOEXEC);
    unlink(to);
    int out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in >= 0 && out >= 0 && fstat(in, &st) == 0 && copy_data(in, out, st.st_size) == 0)
        return out;
    err_set(e, ERR_UNAVAILABLE, "cannot copy '%s' to '%s': %s", from, to, strerror(errno));
    file_close_p(&out);
    unlink(to);
    return -1;
}

/* A free loop device with the file on it; it frees itself with its last user. */
static int attach(int file, char out_dev[static 32], struct err *e)
{
    AUTO(file_close_p) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config c = { .fd = (uint32_t)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR };
    for (int i = 0; control >= 0 && i < LOOP_TRIES; i++) {
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        if (n < 0)
            break;
        snprintf(out_dev, 32, "/dev/loop%d", n);
        if (access(out_dev, F_OK) < 0) /* where nothing else makes device files */
            (void)mknod(out_dev, S_IFBLK | 0600, makedev(7, (unsigned)n));
        int dev = open(out_dev, O_RDWR | O_CLOEXEC);
        if (dev >= 0 && ioctl(dev, LOOP_CONFIGURE, &c) == 0)
            return dev;
        bool taken = dev >= 0 && errno == EBUSY; /* somebody else was faster */
        file_close_p(&dev);
        if (!taken)
            break;
    }
    return err_set(e, ERR_UNAVAILABLE, "cannot get a loop device: %s", strerror(errno));
}

static int loop_make(struct scratch_site *s, const char *path, uint64_t asked_mib, struct err *e)
{
    char template[PATH_BYTES], file[PATH_BYTES], dev_path[32];
    uint64_t mib = round_mib(asked_mib);
    loop_file(s, path, file);
    snprintf(template, sizeof template, "%s/.loop/t.%llu", s->dir, (unsigned long long)mib);
    if (access(template, F_OK) < 0 && make_template(s, template, mib, e) < 0)
        return -1;
    AUTO(file_close_p) int fd = copy_template(template, file, e);
    if (fd < 0)
        return -1;
    AUTO(file_close_p) int dev = attach(fd, dev_path, e);
    if (dev < 0)
        return -1;
    if (mount(dev_path, path, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "noinit_itable") < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot mount '%s': %s", file, strerror(errno));
    char lost[PATH_BYTES];
    snprintf(lost, sizeof lost, "%s/lost+found", path);
    rmdir(lost);
    return 0;
}

static int loop_probe(struct scratch_site *s, const char *path, struct err *e)
{
    if (tool_find("mkfs.ext4", NULL, "e2fsprogs", s->mkfs, e) < 0 || loop_make(s, path, 64, e) < 0)
        return -1;
    return scratch_unbind(s, path, e);
}

/* ---- nothing ---- */

static int plain_probe(struct scratch_site *s, const char *path, struct err *e)
{
    (void)s, (void)path, (void)e;
    return 0;
}

static int plain_make(struct scratch_site *s, const char *path, uint64_t mib, struct err *e)
{
    (void)s, (void)path, (void)mib, (void)e;
    return 0;
}

/* By preference. */
const struct scratch_ops scratch_ops[SCRATCH_KIND_COUNT] = {
    [SCRATCH_PROJECT] = { project_probe, project_make, .costly = false },
    [SCRATCH_TMPFS] = { tmpfs_probe, tmpfs_make, .costly = false },
    [SCRATCH_LOOP] = { loop_probe, loop_make, .costly = true },
    [SCRATCH_PLAIN] = { plain_probe, plain_make, .costly = false },
};

int scratch_unbind(const struct scratch_site *s, const char *path, struct err *e)
{
    char file[PATH_BYTES];
    while (scratch_is_mounted(path))
        if (umount2(path, MNT_DETACH) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot unmount '%s': %s", path, strerror(errno));
    loop_file(s, path, file);
    unlink(file);
    return 0;
}
