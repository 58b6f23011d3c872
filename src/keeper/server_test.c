#include "keeper/server.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "sys/file.h"
#include "tests/lib/test.h"
#include "wire/keeper.h"

struct world {
    struct loop *loop;
    struct server *server;
    struct buf lines;
    int opened, stop_at; /* stop_at: lines after which the loop ends */
    int n_lines;
    char dir[64], path[80];
    struct loop_watch *timer;
};

static void on_opened(void *ctx)
{
    struct world *w = ctx;
    w->opened++;
    server_send(w->server, STR("hello\n"));
}

static void on_line(void *ctx, struct str line)
{
    struct world *w = ctx;
    buf_printf(&w->lines, "[%.*s]", STR_ARG(line));
    if (++w->n_lines == w->stop_at)
        loop_stop(w->loop);
}

static void on_late(void *ctx)
{
    struct world *w = ctx;
    loop_stop(w->loop);
}

static void world_init(struct world *w)
{
    struct err e;
    *w = (struct world){ .loop = loop_new(), .lines = BUF(1u << 20), .stop_at = -1 };
    snprintf(w->dir, sizeof w->dir, "/tmp/ns-server-XXXXXX");
    CHECK(mkdtemp(w->dir));
    snprintf(w->path, sizeof w->path, "%s/s", w->dir);
    struct server_config c = { .loop = w->loop,
                               .path = w->path,
                               .gid = getegid(),
                               .opened = on_opened,
                               .line = on_line,
                               .ctx = w };
    w->server = server_new(&c, &e);
    CHECK(w->server);
    w->timer = loop_timer(w->loop, on_late, w);
}

static void world_clear(struct world *w)
{
    w->server = server_free(w->server);
    CHECK(access(w->path, F_OK) < 0 && rmdir(w->dir) == 0);
    w->loop = loop_free(w->loop);
    buf_free(&w->lines);
}

static void run_until_lines(struct world *w, int lines)
{
    w->stop_at = lines;
    loop_timer_set(w->timer, 20000, 0);
    if (w->n_lines < lines)
        loop_run(w->loop);
    CHECK(w->n_lines == lines);
}

static void run_a_little(struct world *w)
{
    loop_timer_set(w->timer, 50, 0);
    loop_run(w->loop);
}

static int client(const struct world *w)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s", w->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static void lines_come_whole(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    AUTO(file_close_p) int fd = client(&w);
    CHECK(write(fd, "one\ntw", 6) == 6);
    run_until_lines(&w, 1);
    CHECK(write(fd, "o\n\nfour\nrest", 12) == 12);
    run_until_lines(&w, 4);
    CHECK_STR(w.lines.p, "[one][two][][four]");
    char text[16] = "";
    CHECK(read(fd, text, sizeof text - 1) == 6);
    CHECK_STR(text, "hello\n");
}

static void a_new_one_replaces_the_old(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    AUTO(file_close_p) int old = client(&w);
    CHECK(write(old, "a\nhalf", 6) == 6);
    run_until_lines(&w, 1);
    AUTO(file_close_p) int fresh = client(&w);
    CHECK(write(fresh, "b\n", 2) == 2);
    run_until_lines(&w, 2);
    CHECK_STR(w.lines.p, "[a][b]"); /* the old one's half line is not glued to it */
    char text[16];
    CHECK(w.opened == 2 && read(old, text, sizeof text) == 6 && read(old, text, sizeof text) == 0);
}

static void a_line_without_end_is_cut_off(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    AUTO(file_close_p) int fd = client(&w);
    AUTO(free_p) char *block = xmalloc(65536);
    memset(block, 'x', 65536);
    size_t sent = 0;
    run_a_little(&w);
    while (sent < 2 * KEEPER_LINE_MAX) {
        ssize_t n = send(fd, block, 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else
            run_a_little(&w);
        char gone;
        if (n < 0 && recv(fd, &gone, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
            break;
        if (n < 0 && sent > KEEPER_LINE_MAX)
            break;
    }
    run_a_little(&w);
    CHECK(w.n_lines == 0 && sent < 2 * KEEPER_LINE_MAX);
    AUTO(file_close_p) int next = client(&w);
    CHECK(write(next, "fine\n", 5) == 5);
    run_until_lines(&w, 1);
}

static void a_reader_that_sleeps_is_dropped(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    AUTO(file_close_p) int fd = client(&w);
    CHECK(write(fd, "x\n", 2) == 2);
    run_until_lines(&w, 1);
    AUTO(free_p) char *block = xmalloc(1u << 20);
    memset(block, 'y', 1u << 20);
    for (int i = 0; i < 80; i++)
        server_send(w.server, (struct str){ block, 1u << 20 });
    size_t got = 0;
    for (ssize_t n; (n = read(fd, block, 1u << 20)) > 0;)
        got += (size_t)n;
    CHECK(got < (64u << 20)); /* and the read ended: it was hung up on */
    server_send(w.server, STR("to nobody\n"));
}

static void the_socket_is_for_the_group(void)
{
    AUTO(world_clear) struct world w;
    struct stat st;
    world_init(&w);
    CHECK(stat(w.path, &st) == 0 && (st.st_mode & 0777) == 0660);
    struct err e;
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    struct server_config c = { .loop = w.loop, .path = longer };
    CHECK(!server_new(&c, &e) && strstr(e.msg, "too long"));
}

static const struct test tests[] = {
    { "lines come whole, however they are cut", lines_come_whole },
    { "a new connection replaces the old one", a_new_one_replaces_the_old },
    { "a line without an end is cut off", a_line_without_end_is_cut_off },
    { "a reader that sleeps is dropped", a_reader_that_sleeps_is_dropped },
    { "the socket is for the group and nobody else", the_socket_is_for_the_group },
};
TEST_CASES(tests)
