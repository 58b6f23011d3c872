#include "store/reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/file.h"
#include "sys/weak.h"

#define PATH_BYTES 4200
#define MOST (UINT64_C(8) << 20)
#define ROOM_TIMES 4u

static void name_of(const char *path, char out[static PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s.reserve", path);
}

bool reserve_release(const char *path)
{
    char name[PATH_BYTES];
    name_of(path, name);
    return weak_or("reserve", true, false) && unlink(name) == 0;
}

bool reserve_make(const char *path)
{
    char name[PATH_BYTES];
    struct statvfs fs;
    struct stat st;
    name_of(path, name);
    if (stat(name, &st) == 0 && st.st_blocks > 0)
        return true;
    if (statvfs(path, &fs) < 0)
        return false;
    uint64_t most = (uint64_t)fs.f_blocks * fs.f_frsize / 100, bytes = MIN(most, MOST);
    if (bytes == 0 || (uint64_t)fs.f_bavail * fs.f_frsize < ROOM_TIMES * bytes)
        return false;
    AUTO(file_close_p) int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)bytes) == 0)
        return true;
    unlink(name);
    return false;
}
