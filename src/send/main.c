/* nightshift-send: hands one notice to a mail server or to a webhook.
 *
 * One JSON object in, one out, and gone: what hangs or crashes there holds up nobody but this one notice.  Secrets
 * come on standard input or in a file, never in arguments, and leave no trace in a core dump. */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "send/deliver.h"

static const char help[] =
    "nightshift-send " NS_VERSION
    ": hands one notice to a mail server or a webhook (for nightshiftd)\n\n"
    "usage: nightshift-send <question.json\n\n"
    "Reads one JSON object and writes one, {\"ok\": true} or why not.  * has to be there.\n\n"
    "  mail     *server *from *to *body  login password_file ca_file plain timeout_ms\n"
    "  webhook  *url *id *body  secret reach (any, network, public) ca_file timeout_ms\n";

static void shut_in(void)
{
    struct rlimit none = { 0, 0 };
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 && setrlimit(RLIMIT_CORE, &none) < 0)
        abort();
    setrlimit(RLIMIT_CORE, &none);
    umask(0077);
    signal(SIGPIPE, SIG_IGN);
    clearenv(); /* no proxies, no other certificates, no ~/.netrc */
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
}

/* Returns the number of bytes, QUESTION_MAX + 1 when there are more, or -1. */
static ssize_t read_all(char *into)
{
    size_t n = 0;
    while (n <= QUESTION_MAX) {
        ssize_t got = read(STDIN_FILENO, into + n, QUESTION_MAX + 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int send_it(struct str text, struct err *e)
{
    struct question q;
    AUTO(json_free_p) struct json_doc *d = json_read(text, e);
    if (!d || question_read(json_root(d), &q, e) < 0)
        return -1;
    return deliver(&q, e);
}

static int answer(const char *text, ssize_t n)
{
    AUTO(buf_free) struct buf out = BUF(4096);
    struct json_out w = { .b = &out };
    struct err e = { 0 };
    int rc = n > (ssize_t)QUESTION_MAX
               ? err_set(&e, ERR_TOO_LARGE, "the question is larger than %u bytes", QUESTION_MAX)
               : send_it((struct str){ text, (size_t)n }, &e);
    json_begin(&w, NULL, '{');
    json_put_bool(&w, "ok", rc == 0);
    if (rc < 0) {
        json_put_str(&w, "code", str_of(err_info(e.code)->slug));
        json_put_str(&w, "reason", str_of(err_info(e.code)->slug));
        json_put_str(&w, "message", str_of(e.msg));
        json_put_str(&w, "hint", str_of(e.hint));
    }
    json_end(&w, '}');
    return puts(out.p) < 0;
}

int main(int argc, char **argv)
{
    shut_in();
    if (argc > 1)
        return puts(strcmp(argv[1], "--version") == 0 ? "nightshift-send " NS_VERSION : help) < 0;
    if (sodium_init() < 0)
        return 1;
    char *text = sodium_malloc(QUESTION_MAX + 1);
    ssize_t n = text ? read_all(text) : -1;
    int rc = n < 0 ? 1 : answer(text, n);
    sodium_free(text); /* wipes it */
    return rc;
}
