/* A source of accounts that stands for a directory: libnss_nsfake.so.2, named in nsswitch.conf as "nsfake".
 *
 * The file that NIGHTSHIFT_FAKE_NSS names says how it is, and is read at each look: "hangs" answers nothing until
 * another word stands there, "away" says at once that it cannot be asked, and "ana 60005" is all it knows.
 */
#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_US 20000

enum nss_status _nss_nsfake_getpwuid_r(uid_t uid, struct passwd *pw, char *space, size_t size,
                                       int *errnop);
enum nss_status _nss_nsfake_getpwnam_r(const char *name, struct passwd *pw, char *space,
                                       size_t size, int *errnop);

static bool is_it(const char *word)
{
    const char *path = getenv("NIGHTSHIFT_FAKE_NSS");
    FILE *f = path ? fopen(path, "re") : NULL;
    char said[64] = "";
    if (f) {
        size_t n = fread(said, 1, sizeof said - 1, f);
        said[n] = '\0';
        fclose(f);
    }
    return strcmp(said, word) == 0;
}

static enum nss_status answer(const char *name, uid_t uid, struct passwd *pw, char *space,
                              size_t size, int *errnop)
{
    while (is_it("hangs"))
        usleep(LOOK_US);
    if (is_it("away")) {
        *errnop = ETIMEDOUT;
        return NSS_STATUS_UNAVAIL;
    }
    if (!is_it("ana 60005") || (name ? strcmp(name, "ana") != 0 : uid != 60005))
        return NSS_STATUS_NOTFOUND;
    static const char text[] = "ana\0x\0\0/home/ana\0/bin/sh";
    if (size < sizeof text) {
        *errnop = ERANGE;
        return NSS_STATUS_TRYAGAIN;
    }
    memcpy(space, text, sizeof text);
    *pw = (struct passwd){ .pw_name = space,
                           .pw_passwd = space + 4,
                           .pw_uid = 60005,
                           .pw_gid = 60005,
                           .pw_gecos = space + 6,
                           .pw_dir = space + 7,
                           .pw_shell = space + 17 };
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_nsfake_getpwuid_r(uid_t uid, struct passwd *pw, char *space, size_t size,
                                       int *errnop)
{
    return answer(NULL, uid, pw, space, size, errnop);
}

enum nss_status _nss_nsfake_getpwnam_r(const char *name, struct passwd *pw, char *space,
                                       size_t size, int *errnop)
{
    return answer(name, 0, pw, space, size, errnop);
}
