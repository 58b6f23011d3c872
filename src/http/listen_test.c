#include "http/listen.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

struct place {
    char folder[32], path[48];
};

static struct place place_new(void)
{
    struct place p = { .folder = "/tmp/listen-XXXXXX" };
    CHECK(mkdtemp(p.folder));
    snprintf(p.path, sizeof p.path, "%s/s", p.folder);
    return p;
}

static bool answers(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    AUTO(file_close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static void a_socket_file_has_the_mode_it_was_given(void)
{
    struct place p = place_new();
    struct stat file, st;
    struct err e;
    mode_t before = umask(0077); /* which does not count */
    AUTO(file_close_p) int fd = listen_unix(p.path, 0666, &file, &e);
    umask(before);
    CHECK(fd >= 0 && stat(p.path, &st) == 0);
    CHECK(S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0666);
    CHECK(answers(p.path));
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_NONBLOCK));
    listen_unlink(p.path, &file);
    CHECK(rmdir(p.folder) == 0);
}

static void an_old_socket_is_replaced_and_a_living_one_is_not(void)
{
    struct place p = place_new();
    struct stat file, file2 = { .st_ino = 7 };
    struct err e;
    int dead = listen_unix(p.path, 0600, &file, &e);
    CHECK(dead >= 0);
    CHECK(listen_unix(p.path, 0600, &file2, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(strstr(e.msg, "already running") && strstr(e.msg, p.path) && e.hint[0]);
    CHECK(file2.st_ino == 7 && answers(p.path));
    close(dead); /* its file stays behind */
    CHECK(!answers(p.path));
    AUTO(file_close_p) int fd = listen_unix(p.path, 0600, &file2, &e);
    CHECK(fd >= 0 && answers(p.path));
    if (file2.st_ino != file.st_ino)
        listen_unlink(p.path, &file); /* not the one that was made first: left alone */
    CHECK(answers(p.path));
    listen_unlink(p.path, &file2);
    CHECK(rmdir(p.folder) == 0);
}

static void what_is_no_socket_is_left_alone(void)
{
    struct place p = place_new();
    struct stat file;
    struct err e;
    CHECK(file_write(p.path, STR("precious"), &e) == 0);
    CHECK(listen_unix(p.path, 0600, &file, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(strstr(e.msg, "no socket") && access(p.path, F_OK) == 0);
    CHECK(unlink(p.path) == 0 && rmdir(p.folder) == 0);
}

static void bad_paths_are_explained(void)
{
    char path[200];
    struct stat file;
    struct err e;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    CHECK(listen_unix(path, 0600, &file, &e) < 0 && e.code == ERR_INVALID);
    CHECK(strstr(e.msg, "199 characters; the limit is 107"));
    CHECK(listen_unix("/no/such/folder/s", 0600, &file, &e) < 0 && e.code == ERR_UNAVAILABLE);
    CHECK(strstr(e.msg, "/no/such/folder/s") && e.hint[0]);
}

static void a_port_is_found_or_the_taken_one_named(void)
{
    uint16_t port = 0, other = 7;
    struct err e;
    AUTO(file_close_p) int fd = listen_tcp("127.0.0.1", 0, &port, &e);
    CHECK(fd >= 0 && port > 0);
    CHECK(listen_tcp("127.0.0.1", port, &other, &e) < 0 && e.code == ERR_CONFLICT);
    char text[16];
    snprintf(text, sizeof text, "port %u", port);
    CHECK(strstr(e.msg, text) && strstr(e.hint, text) && strstr(e.hint, "ss -ltnp"));
    CHECK(other == 7);
}

static void addresses_are_checked(void)
{
    uint16_t port = 7;
    struct err e;
    CHECK(listen_tcp("not an address", 0, &port, &e) < 0 && e.code == ERR_INVALID && e.hint[0]);
    CHECK(listen_tcp("192.0.2.1", 0, &port, &e) < 0 && e.code == ERR_UNAVAILABLE);
    CHECK(strstr(e.msg, "192.0.2.1") && e.hint[0] && port == 7);
    AUTO(file_close_p) int fd = listen_tcp("::1", 0, &port, &e);
    if (fd < 0)
        SKIP("no IPv6 here: %s", e.msg);
    CHECK(port != 7);
}

static const struct test tests[] = {
    { "a socket file has the mode it was given", a_socket_file_has_the_mode_it_was_given },
    { "an old socket is replaced, a living one is not",
      an_old_socket_is_replaced_and_a_living_one_is_not },
    { "what is no socket is left alone", what_is_no_socket_is_left_alone },
    { "a bad path is explained", bad_paths_are_explained },
    { "a free port is found, a taken one is named", a_port_is_found_or_the_taken_one_named },
    { "addresses are checked", addresses_are_checked },
};
TEST_CASES(tests)
