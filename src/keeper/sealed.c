#include "keeper/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "sys/file.h"

#define MFD_RUN 0x10u /* MFD_EXEC: some machines make files in memory that cannot be run */
#define PROGRAM_MAX (64 << 20)
#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char elf_magic[] = { 0x7f, 'E', 'L', 'F' };

static bool is_elf(int fd)
{
    char head[sizeof elf_magic];
    return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
           memcmp(head, elf_magic, sizeof head) == 0;
}

static bool copy_all(int from, int to, off_t size)
{
    off_t at = 0;
    while (at < size && sendfile(to, from, &at, (size_t)(size - at)) > 0)
        ;
    return at == size;
}

/* The name is what people see in lists of processes. */
static int copy_sealed(const char *name, int from, off_t size, int least)
{
    AUTO(file_close_p) int copy = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_RUN);
    if (copy < 0 && errno == EINVAL) /* an older kernel runs them anyway */
        copy = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (copy < 0 || !copy_all(from, copy, size) || fcntl(copy, F_ADD_SEALS, ALL_SEALS) < 0)
        return -1;
    return fcntl(copy, F_DUPFD_CLOEXEC, least);
}

static bool is_same(const struct sealed *s, const struct stat *st)
{
    return s->fd >= 0 && s->device == st->st_dev && s->inode == st->st_ino &&
           s->changed.tv_sec == st->st_ctim.tv_sec && s->changed.tv_nsec == st->st_ctim.tv_nsec;
}

int sealed_program(struct sealed *s, const char *path, int least)
{
    struct stat st;
    if (stat(path, &st) == 0 && is_same(s, &st))
        return s->fd;
    sealed_clear(s);
    AUTO(file_close_p) int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > PROGRAM_MAX ||
        !is_elf(from))
        return -1;
    const char *slash = strrchr(path, '/');
    *s = (struct sealed){ .fd = copy_sealed(slash ? slash + 1 : path, from, st.st_size, least),
                          .device = st.st_dev,
                          .inode = st.st_ino,
                          .changed = st.st_ctim };
    return s->fd;
}

void sealed_clear(struct sealed *s)
{
    file_close_p(&s->fd);
    *s = SEALED_NONE;
}
