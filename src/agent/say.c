#include "agent/say.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/opts.h"
#include "base/parse.h"
#include "sys/file.h"

#define WAIT_MS 10000

struct options {
    const char *control, *time, *reason;
};

#define IN(field) offsetof(struct options, field)
static const struct opt table[] = {
    { "for", OPT_TEXT, IN(time), "TIME", "hold: as long as that, e.g. 30m (until release)", 0, 0 },
    { "reason", OPT_TEXT, IN(reason), "TEXT", "hold: what people with jobs here read", 0, 0 },
    { "control", OPT_TEXT, IN(control), "PATH", "the agent's socket", 0, 0 },
};

void say_help(struct buf *out)
{
    buf_addz(out, "\nof hold, release and show:\n");
    opts_help(table, ARRAY_LEN(table), out);
}

static int failed(const char *what, struct err *e)
{
    err_set(e, ERR_UNAVAILABLE, "%s: %s", what, strerror(errno));
    return err_hint(e, "is nightshift-agent running, and may you use its socket?");
}

/* One line there, one line back. */
static int ask(const char *path, struct str line, char *out, size_t size, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    AUTO(file_close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t n = 0;
    if (strlen(path) >= sizeof to.sun_path)
        return err_set(e, ERR_INVALID, "%s: no socket has so long a path", path);
    memcpy(to.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ||
        send(fd, line.p, line.n, MSG_NOSIGNAL) != (ssize_t)line.n)
        return failed(path, e);
    for (ssize_t got = 1; got > 0 && n + 1 < size; n += (size_t)MAX(got, 0)) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, WAIT_MS) <= 0)
            return err_set(e, ERR_UNAVAILABLE, "the agent does not answer");
        got = read(fd, out + n, size - 1 - n);
        if (got < 0)
            return failed(path, e);
    }
    out[n] = '\0';
    return 0;
}

static int make_line(const char *verb, const struct options *o, struct buf *out, struct err *e)
{
    int64_t for_ms = 0;
    bool holds = strcmp(verb, "hold") == 0;
    if (!holds && strcmp(verb, "release") != 0 && strcmp(verb, "show") != 0) {
        err_set(e, ERR_INVALID, "'%.40s' is nothing that can be said", verb);
        return err_hint(e, "hold, release or show; nightshift-agent --help");
    }
    if (!holds && (o->time || o->reason))
        return err_set(e, ERR_INVALID, "--for and --reason are of hold");
    if (o->time && (parse_duration_ms(str_of(o->time), &for_ms, e) < 0 || for_ms <= 0))
        return err_set(e, ERR_INVALID, "--for: '%.40s' is no time, as 30m or 2h", o->time);
    if (o->reason && (strlen(o->reason) > 190 || strpbrk(o->reason, "\r\n")))
        return err_set(e, ERR_INVALID, "--reason is one line of 190 bytes at most");
    if (holds)
        buf_printf(out, "hold %lld %s\n", (long long)for_ms, o->reason ? o->reason : "");
    else
        buf_printf(out, "%s\n", verb);
    return buf_check(out, e);
}

int say_run(int argc, char **argv, const char *control)
{
    AUTO(buf_free) struct buf line = BUF(1024);
    struct options o = { .control = control };
    struct err e = { 0 };
    char answer[1024] = "";
    if (opts_parse(table, ARRAY_LEN(table), argc - 1, argv + 1, &o, &e) < 0 ||
        make_line(argv[0], &o, &line, &e) < 0 ||
        ask(o.control, buf_str(&line), answer, sizeof answer, &e) < 0) {
        fprintf(stderr, "nightshift-agent: %s%s%s\n", e.msg, e.hint[0] ? "\n  hint: " : "", e.hint);
        return err_info(e.code)->exit_code;
    }
    bool ok = strncmp(answer, "ok ", 3) == 0;
    fputs(ok          ? answer + 3
          : answer[0] ? answer
                      : "the agent closed the connection\n",
          ok ? stdout : stderr);
    return !ok;
}
