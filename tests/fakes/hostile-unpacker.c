/* hostile-unpacker - stands in for umoci as it would be if an image had got hold of it.
 *
 * Static, since it brings what it needs into whatever root it is given.  What it is to try stands behind the
 * program in its own file, a line each, after a line "attack": `write PATH`, `read PATH`, `connect PORT`, `kill PID`,
 * `trace PID`, `device MAJOR MINOR`, `mount`, `fork`.  What came of each is written to FOLDER/result, the folder being its
 * last argument: "VERB ARGUMENT: got …" or "VERB ARGUMENT: no, WHY".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAIL_MAX 8192

static char got[200]; /* what there is to show of it */

static int try_write(const char *path, const char *folder)
{
    (void)folder;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    return fd < 0 || write(fd, "taken\n", 6) != 6 ? -1 : close(fd);
}

static int try_read(const char *path, const char *folder)
{
    (void)folder;
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
    got[strcspn(got, "\n")] = '\0';
    return n < 0 ? -1 : close(fd);
}

static int try_connect(const char *port, const char *folder)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
    (void)folder;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof to);
}

static int try_kill(const char *pid, const char *folder)
{
    (void)folder;
    return kill(atoi(pid), SIGKILL);
}

static int try_trace(const char *pid, const char *folder)
{
    (void)folder;
    return ptrace(PTRACE_SEIZE, atoi(pid), 0, 0) < 0 ? -1 : 0;
}

static int try_device(const char *numbers, const char *folder)
{
    char path[500], *end;
    unsigned major_of = (unsigned)strtoul(numbers, &end, 10),
             minor_of = (unsigned)strtoul(end, NULL, 10);
    snprintf(path, sizeof path, "%s/device", folder);
    if (mknod(path, S_IFCHR | 0666, makedev(major_of, minor_of)) < 0)
        return -1;
    return open(path, O_RDONLY);
}

static int try_mount(const char *argument, const char *folder)
{
    (void)argument;
    return mount("tmpfs", folder, "tmpfs", 0, NULL) < 0 ? -1 : umount(folder);
}

static int try_fork(const char *argument, const char *folder)
{
    (void)argument, (void)folder;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child < 0 ? -1 : waitpid(child, NULL, 0);
}

static const struct {
    const char *verb;
    int (*fn)(const char *argument, const char *folder);
} verbs[] = {
    { "write", try_write }, { "read", try_read },   { "connect", try_connect },
    { "kill", try_kill },   { "trace", try_trace }, { "device", try_device },
    { "mount", try_mount }, { "fork", try_fork },
};

static void try_line(const char *line, const char *folder, FILE *out)
{
    size_t n = strcspn(line, " ");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strncmp(line, verbs[i].verb, n) != 0 || verbs[i].verb[n])
            continue;
        memset(got, 0, sizeof got);
        errno = 0;
        int rc = verbs[i].fn(line + n + (line[n] == ' '), folder);
        if (rc < 0)
            fprintf(out, "%s: no, %s\n", line, strerror(errno));
        else
            fprintf(out, "%s: got %s\n", line, got);
    }
}

/* The last of this very file. */
static char *read_tail(const char *self)
{
    static char text[TAIL_MAX + 1];
    int fd = open(self, O_RDONLY);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    off_t from = size > TAIL_MAX ? size - TAIL_MAX : 0;
    ssize_t n = size < 0 ? -1 : pread(fd, text, TAIL_MAX, from);
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\0')
            text[i] = '\n'; /* of the program */
    char *at = n < 0 ? NULL : strstr(text, "\nattack\n");
    return at ? at + strlen("\nattack\n") : NULL;
}

int main(int argc, char **argv)
{
    char path[500];
    const char *folder = argv[argc - 1];
    char *tail = read_tail(argv[0]);
    snprintf(path, sizeof path, "%s/result", folder);
    FILE *out = tail ? fopen(path, "w") : NULL;
    if (!out)
        return 1;
    for (char *line = strtok(tail, "\n"); line; line = strtok(NULL, "\n"))
        try_line(line, folder, out);
    return fclose(out) ? 1 : 0;
}
