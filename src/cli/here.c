#include "cli/here.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MAX (1u << 20)

/* Beside this program, in the folder for daemons beside its own, or where a system has it. */
static bool find_program(char out[static 4200])
{
    static const char *const beside[] = { "", "/../sbin" };
    static const char *const fixed[] = { "/usr/local/sbin/nightshiftd", "/usr/sbin/nightshiftd" };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    const char *folder = n > 0 ? dirname(self) : "/nowhere";
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        snprintf(out, 4200, "%s%s/nightshiftd", folder, beside[i]);
        if (access(out, X_OK) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        snprintf(out, 4200, "%s", fixed[i]);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

static pid_t start(const char *program, int out_fd)
{
    const char *argv[] = { program, "--check", "--json", NULL };
    posix_spawn_file_actions_t files;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out_fd, 1);
    if (posix_spawn(&pid, program, &files, NULL, (char **)(uintptr_t)argv, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

struct json_doc *here_check(struct err *e)
{
    char program[4200], part[4096];
    AUTO(buf_free) struct buf text = BUF(ANSWER_MAX);
    int ends[2];
    if (!find_program(program)) {
        err_set(e, ERR_NOT_FOUND, "nightshiftd is not installed on this machine");
        return NULL;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
        return NULL;
    }
    pid_t pid = start(program, ends[1]);
    close(ends[1]);
    for (ssize_t n; pid > 0 && (n = read(ends[0], part, sizeof part)) != 0;)
        if (n > 0)
            buf_add(&text, (struct str){ part, (size_t)n });
        else if (errno != EINTR)
            break;
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return json_read(buf_str(&text), e);
}

int here_daemon(char *const *argv, struct err *e)
{
    char program[4200];
    if (!find_program(program))
        return err_set(e, ERR_NOT_FOUND, "nightshiftd is not installed on this machine");
    (void)execv(program, argv);
    return err_set(e, ERR_UNAVAILABLE, "cannot start %s: %s", program, strerror(errno));
}

int here_exec(char *const *argv, struct err *e)
{
    char program[4200], self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (n > 0) {
        snprintf(program, sizeof program, "%s/%s", dirname(self), argv[0]);
        (void)execv(program, argv);
    }
    (void)execvp(argv[0], argv);
    err_set(e, ERR_NOT_FOUND, "cannot start %s: %s", argv[0], strerror(errno));
    return err_hint(e, "it belongs beside the nightshift program");
}
