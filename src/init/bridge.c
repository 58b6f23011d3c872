#include "init/bridge.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/outlet.h"
#include "init/pod.h"
#include "init/times.h"

#define FAREWELL_MS 1000

enum {
    POLL_STDIN,
    POLL_SOCKET_IN,
    POLL_SOCKET_OUT,
    POLL_STDOUT,
    POLL_COUNT
};

struct bridge {
    int sock;
    bool stdin_over, told; /* and the supervisor was told so */
    bool socket_over;
    struct outlet to_socket, to_stdout;
    char chunk[OUTLET_PIECE_MAX];
};

/* Copies one piece; false at the end. */
static bool copy(struct bridge *b, int from, struct outlet *to)
{
    ssize_t n = read(from, b->chunk, sizeof b->chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0)
        outlet_write(to, (struct str){ b->chunk, (size_t)n });
    return n > 0; /* a supervisor that was killed resets the connection: its end too */
}

static void run_once(struct bridge *b)
{
    bool in = !b->stdin_over && !outlet_full(&b->to_socket);
    struct pollfd p[POLL_COUNT] = {
        [POLL_STDIN] = { in ? STDIN_FILENO : -1, POLLIN, 0 },
        [POLL_SOCKET_IN] = { outlet_full(&b->to_stdout) ? -1 : b->sock, POLLIN, 0 },
        [POLL_SOCKET_OUT] = outlet_poll(&b->to_socket),
        /* Also with nothing to say: whether somebody listens. */
        [POLL_STDOUT] = { STDOUT_FILENO, outlet_idle(&b->to_stdout) ? 0 : POLLOUT, 0 },
    };
    if (poll(p, POLL_COUNT, -1) < 0)
        return;
    if (p[POLL_SOCKET_OUT].revents)
        outlet_flush(&b->to_socket);
    if (p[POLL_STDOUT].revents && outlet_idle(&b->to_stdout))
        outlet_drop(&b->to_stdout);
    outlet_flush(&b->to_stdout);
    if (p[POLL_STDIN].revents)
        b->stdin_over = !copy(b, STDIN_FILENO, &b->to_socket);
    if (p[POLL_SOCKET_IN].revents)
        b->socket_over = !copy(b, b->sock, &b->to_stdout);
    if (b->stdin_over && !b->told && outlet_idle(&b->to_socket))
        b->told = shutdown(b->sock, SHUT_WR) == 0;
}

/* The last words are said, and our end would be the task's: whatever carries them is taken down with the container.
 * So it comes after whoever reads has left, or was given time to. */
static void wait_for_farewell(struct bridge *b)
{
    struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
    int64_t until_ms = mono_ms() + FAREWELL_MS;
    for (int64_t now_ms; !b->stdin_over && (now_ms = mono_ms()) < until_ms;) {
        if (poll(&p, 1, (int)(until_ms - now_ms)) <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, b->chunk, sizeof b->chunk);
        b->stdin_over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    }
}

int bridge_run(const char *dir, struct err *e)
{
    AUTO(free_p) struct bridge *b = xcalloc(1, sizeof *b);
    b->sock = pod_connect(dir, e);
    if (b->sock < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    outlet_open(&b->to_socket, b->sock);
    outlet_open(&b->to_stdout, STDOUT_FILENO);
    while (!b->socket_over && !b->to_stdout.gone)
        run_once(b);
    outlet_wait_idle(&b->to_stdout, INT64_MAX);
    bool is_read = !b->to_stdout.gone;
    outlet_close(&b->to_stdout);
    close(STDOUT_FILENO);
    if (is_read)
        wait_for_farewell(b);
    outlet_close(&b->to_socket);
    close(b->sock);
    return is_read ? 0 : err_set(e, ERR_UNAVAILABLE, "nobody reads what the task says");
}
