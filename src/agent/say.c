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
    bool help;
};

#define IN(field) offsetof(struct options, field)
static const struct opt table[] = {
    { "for", OPT_TEXT, IN(time), "TIME", "hold: as long as that, e.g. 30m (until release)", 0, 0 },
    { "reason", OPT_TEXT, IN(reason), "TEXT", "hold: what people with jobs here read", 0, 0 },
    { "control", OPT_TEXT, IN(control), "PATH",
      "the agent's socket (/run/nightshift-agent/control.sock)", 0, 0 },
    { "help", OPT_FLAG, IN(help), NULL, "this text", 0, 0 },
};
#define OPTS_OF_HOLD 2 /* the first so many are */

static const struct verb {
    const char *name, *args, *help;
    bool holds;
} verbs[] = {
    { "hold", "[--for 30m] [--reason TEXT]",
      "its owner wants this machine: jobs leave as at the end of a window, and none goes on",
      true },
    { "release", "", "the owner gives it back: jobs go on", false },
    { "show", "", "is it held, and what is paused here", false },
};

static const struct verb *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

void say_usage(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        buf_printf(out, "       nightshift-agent %s%s%s\n", verbs[i].name,
                   verbs[i].args[0] ? " " : "", verbs[i].args);
}

void say_help(struct buf *out)
{
    buf_addz(out, "\nof hold, release and show:\n");
    opts_help(table, ARRAY_LEN(table), out);
}

static int print_help(const struct verb *v)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    size_t skip = v->holds ? 0 : OPTS_OF_HOLD;
    buf_printf(&b, "nightshift-agent %s: %s\n\nusage: nightshift-agent %s %s%s[--control PATH]\n\n",
               v->name, v->help, v->name, v->args, v->args[0] ? " " : "");
    opts_help(table + skip, ARRAY_LEN(table) - skip, &b);
    return fputs(b.p, stdout) < 0;
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

static int make_line(const struct verb *v, const struct options *o, struct buf *out, struct err *e)
{
    int64_t for_ms = 0;
    if (!v->holds && (o->time || o->reason))
        return err_set(e, ERR_INVALID, "--for and --reason are of hold");
    if (o->time && (parse_duration_ms(str_of(o->time), &for_ms, e) < 0 || for_ms <= 0))
        return err_set(e, ERR_INVALID, "--for: '%.40s' is no time, as 30m or 2h", o->time);
    if (o->reason && (strlen(o->reason) > 190 || strpbrk(o->reason, "\r\n")))
        return err_set(e, ERR_INVALID, "--reason is one line of 190 bytes at most");
    if (v->holds)
        buf_printf(out, "hold %lld %s\n", (long long)for_ms, o->reason ? o->reason : "");
    else
        buf_printf(out, "%s\n", v->name);
    return buf_check(out, e);
}

static int parse(int argc, char **argv, const struct verb **out_verb, struct options *o,
                 struct err *e)
{
    const struct verb *v = find(argv[0]);
    if (!v) {
        err_set(e, ERR_INVALID, "'%.40s' is nothing that can be said", argv[0]);
        err_hint(e, "hold, release or show; nightshift-agent --help");
        return -1;
    }
    if (opts_parse(table, ARRAY_LEN(table), argc - 1, argv + 1, o, e) < 0)
        return -1;
    *out_verb = v;
    return 0;
}

int say_run(int argc, char **argv, const char *control)
{
    AUTO(buf_free) struct buf line = BUF(1024);
    struct options o = { .control = control };
    const struct verb *v = NULL;
    struct err e = { 0 };
    char answer[1024] = "";
    int rc = parse(argc, argv, &v, &o, &e);
    if (rc == 0 && o.help)
        return print_help(v);
    if (rc < 0 || make_line(v, &o, &line, &e) < 0 ||
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
