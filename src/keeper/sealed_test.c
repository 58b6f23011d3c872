#include "keeper/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

#define LEAST 64

static void copy_program(const char *from, const char *to)
{
    AUTO(buf_free) struct buf text = { 0 };
    struct err e;
    CHECK(file_read(from, 64u << 20, &text, &e) == 0);
    CHECK(file_write(to, buf_str(&text), &e) == 0 && chmod(to, 0755) == 0);
}

static int exit_code_of(int fd)
{
    char name[] = "program", *const argv[] = { name, NULL }, *const env[] = { NULL };
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execveat(fd, "", argv, env, AT_EMPTY_PATH);
        _exit(99);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_copy_runs_and_cannot_be_written(void)
{
    AUTO(sealed_clear) struct sealed s = SEALED_NONE;
    int fd = sealed_program(&s, "/bin/false", LEAST);
    CHECK(fd >= LEAST);
    CHECK_INT(exit_code_of(fd), 1);
    CHECK(write(fd, "x", 1) < 0 && errno == EPERM);
    CHECK(ftruncate(fd, 0) < 0 && errno == EPERM);
    CHECK_INT(sealed_program(&s, "/bin/false", LEAST), fd);
}

static void an_upgraded_program_is_copied_again(void)
{
    char path[] = "/tmp/sealed.XXXXXX";
    int made = mkstemp(path);
    CHECK(made >= 0 && close(made) == 0);
    AUTO(sealed_clear) struct sealed s = SEALED_NONE;
    copy_program("/bin/false", path);
    CHECK_INT(exit_code_of(sealed_program(&s, path, LEAST)), 1);
    copy_program("/bin/true", path);
    CHECK_INT(exit_code_of(sealed_program(&s, path, LEAST)), 0);
    CHECK(unlink(path) == 0);
    CHECK_INT(sealed_program(&s, path, LEAST), -1);
}

static void scripts_and_absent_programs_are_left_to_their_path(void)
{
    AUTO(sealed_clear) struct sealed s = SEALED_NONE;
    CHECK_INT(sealed_program(&s, "/etc/passwd", LEAST), -1);
    CHECK_INT(sealed_program(&s, "/bin", LEAST), -1);
    CHECK_INT(sealed_program(&s, "/no/such/program", LEAST), -1);
}

static const struct test tests[] = {
    { "the copy runs and nobody can write to it", the_copy_runs_and_cannot_be_written },
    { "after an upgrade the new program runs", an_upgraded_program_is_copied_again },
    { "what is no program of the machine is left to its path",
      scripts_and_absent_programs_are_left_to_their_path },
};
TEST_CASES(tests)
