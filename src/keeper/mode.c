#include "keeper/mode.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/tool.h"

static const char *const notes[] = {
    [KEEPER_MODE_ROOT] = NULL,
    [KEEPER_MODE_ROOTLESS] = "without root: serves one user, on the machine's own network",
    [KEEPER_MODE_PLAIN] = "jobs are ordinary processes: nothing contains or limits them",
};
_Static_assert(ARRAY_LEN(notes) == KEEPER_MODE_COUNT, "a mode without its note");

const char *mode_note(enum keeper_mode m)
{
    return notes[m];
}

/* 0, or the errno a child met. */
static int try_unshare(int flags)
{
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(flags) == 0 ? 0 : errno);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return EAGAIN;
    return WEXITSTATUS(status);
}

static int find_crun(const char *given, char out[static MODE_PATH_MAX], struct err *e)
{
    if (!given)
        return tool_find("crun", NULL, "crun", out, e);
    if (access(given, X_OK) < 0)
        return err_set(e, ERR_NOT_FOUND, "cannot run '%s': %s", given, strerror(errno));
    snprintf(out, MODE_PATH_MAX, "%s", given);
    return 0;
}
_Static_assert(MODE_PATH_MAX == TOOL_PATH_MAX, "tool_find fills it");

static int choose_root(const char *given, char crun[static MODE_PATH_MAX], struct err *e)
{
    if (geteuid() != 0) {
        err_set(e, ERR_DENIED, "mode root needs root");
        return err_hint(e, "start it with sudo, or with --mode rootless");
    }
    if (find_crun(given, crun, e) < 0)
        return err_wrap(e, "containers need crun");
    int cause = try_unshare(CLONE_NEWNS);
    if (cause == 0)
        return 0;
    err_set(e, ERR_DENIED, "root may not make mount namespaces here: %s", strerror(cause));
    return err_hint(e, "inside a container give it CAP_SYS_ADMIN (docker run --privileged)");
}

static int choose_rootless(const char *given, char crun[static MODE_PATH_MAX], struct err *e)
{
    if (geteuid() == 0)
        return err_set(e, ERR_INVALID, "mode rootless is for accounts other than root");
    if (find_crun(given, crun, e) < 0)
        return err_wrap(e, "containers need crun");
    int cause = try_unshare(CLONE_NEWUSER | CLONE_NEWNS);
    if (cause == 0)
        return 0;
    err_set(e, ERR_DENIED, "this account may not make user namespaces: %s", strerror(cause));
    return err_hint(e, "see sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, "
                       "kernel.apparmor_restrict_unprivileged_userns; or use --mode plain");
}

int mode_choose(const char *wanted, const char *crun, enum keeper_mode *out,
                char out_crun[static MODE_PATH_MAX], struct err *e)
{
    bool automatic = strcmp(wanted, "auto") == 0;
    enum keeper_mode m = geteuid() == 0 ? KEEPER_MODE_ROOT : KEEPER_MODE_ROOTLESS;
    struct err unused;
    if (!automatic && !keeper_mode_parse(str_of(wanted), &m))
        return err_set(e, ERR_INVALID, "'%s' is not a mode", wanted);
    out_crun[0] = '\0';
    if (automatic && m == KEEPER_MODE_ROOTLESS && choose_rootless(crun, out_crun, &unused) < 0)
        m = KEEPER_MODE_PLAIN;
    if (m == KEEPER_MODE_ROOT && choose_root(crun, out_crun, e) < 0)
        return -1;
    if (m == KEEPER_MODE_ROOTLESS && choose_rootless(crun, out_crun, e) < 0)
        return -1;
    if (m == KEEPER_MODE_PLAIN)
        out_crun[0] = '\0';
    *out = m;
    return 0;
}
