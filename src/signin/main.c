/* nightshift-signin: asks PAM, a directory or a provider whether somebody is who they say.
 *
 * One JSON object in, one out, and gone: what blocks or crashes in those libraries holds up nobody
 * but this one sign-in.  Secrets come on standard input only, and leave no trace in a core dump. */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "signin/verb.h"

static const char *const kind_names[] = {
    [FIELD_TEXT] = "text",       [FIELD_TEXT_OR_NULL] = "text or null", [FIELD_SECRET] = "secret",
    [FIELD_PASSWORD] = "secret", [FIELD_FLAG] = "true or false",        [FIELD_NUMBER] = "number",
};

static int print_help(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    buf_addz(
        &b, "nightshift-signin " NS_VERSION ": is somebody who they say? (for nightshiftd)\n\n"
            "usage: nightshift-signin [--machine] <request.json\n\n"
            "Reads one JSON object, {\"do\": VERB, ...}, and writes one.  * has to be there.\n"
            "With --machine only what is about this machine's accounts, for a socket of root's.\n");
    const struct verb *v;
    for (size_t i = 0; (v = verb_at(i)); i++) {
        buf_printf(&b, "\n%s: %s\n", v->name, v->help);
        for (size_t k = 0; k < v->n; k++)
            buf_printf(&b, "  %c%-18s %s, at most %zu\n", v->fields[k].needed ? '*' : ' ',
                       v->fields[k].name, kind_names[v->fields[k].kind], v->fields[k].max);
    }
    return fputs(b.p, stdout) < 0;
}

/* For the documentation. */
static int print_reasons(void)
{
    puts("| reason | code | what can be done |\n|---|---|---|");
    for (enum reason why = 0; why < REASON_COUNT; why++)
        printf("| `%s` | %s | %s |\n", reason_name(why), reason_kind(why), reason_hint(why));
    return 0;
}

static int print_verbs(void)
{
    const struct verb *v;
    puts("| verb | answers | fields (**needed**) |\n|---|---|---|");
    for (size_t i = 0; (v = verb_at(i)); i++) {
        printf("| `%s` | %s | ", v->name, v->help);
        for (size_t k = 0; k < v->n; k++) {
            const char *mark = v->fields[k].needed ? "**" : "";
            printf("%s%s%s%s", k ? ", " : "", mark, v->fields[k].name, mark);
        }
        puts(" |");
    }
    return 0;
}

static const struct {
    const char *name;
    int (*print)(void);
} pages[] = {
    { "--help", print_help },
    { "--verbs", print_verbs },
    { "--reasons", print_reasons },
};

static int print_page(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (str_is(str_of(name), pages[i].name))
            return pages[i].print();
    fprintf(stderr, "nightshift-signin: unknown option '%s'; see --help\n", name);
    return 2;
}

/* Nothing of the caller's surroundings steers a library here: no proxies, no other certificates. */
static void shut_in(void)
{
    struct rlimit none = { 0, 0 };
    /* Either is enough; a strict service manager may forbid the second. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 && setrlimit(RLIMIT_CORE, &none) < 0)
        abort();
    setrlimit(RLIMIT_CORE, &none);
    umask(0077);
    signal(SIGPIPE, SIG_IGN);
    clearenv();
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("LDAPNOINIT", "1", 1);
}

/* Returns the number of bytes, REQUEST_MAX + 1 when there are more, or -1. */
static ssize_t read_all(char *into)
{
    size_t n = 0;
    while (n <= REQUEST_MAX) {
        ssize_t got = read(STDIN_FILENO, into + n, REQUEST_MAX + 1 - n);
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

static int write_all(struct str s)
{
    while (s.n) {
        ssize_t put = write(STDOUT_FILENO, s.p, s.n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return 1;
        s.p += put;
        s.n -= (size_t)put;
    }
    return 0;
}

static int answer(bool only_machine)
{
    AUTO(buf_free) struct buf out = BUF(ANSWER_MAX + 4096);
    char *request = sodium_malloc(REQUEST_MAX + 1);
    if (!request)
        return 1;
    ssize_t n = read_all(request);
    if (n > (ssize_t)REQUEST_MAX)
        buf_addz(&out, "{\"ok\":false,\"code\":\"invalid\",\"reason\":\"bad_request\",\"message\":"
                       "\"the request is larger than 64 KiB\"}\n");
    else if (n >= 0)
        verb_answer((struct str){ request, (size_t)n }, only_machine, &out);
    sodium_free(request); /* wipes it */
    int rc = out.n ? write_all(buf_str(&out)) : 1;
    if (out.p)
        sodium_memzero(out.p, out.n);
    return rc;
}

int main(int argc, char **argv)
{
    shut_in();
    if (argc > 1 && str_is(str_of(argv[1]), "--version"))
        return puts("nightshift-signin " NS_VERSION) < 0;
    bool only_machine = argc == 2 && str_is(str_of(argv[1]), "--machine");
    if (argc > 1 && !only_machine)
        return print_page(argv[1]);
    if (sodium_init() < 0)
        return 1;
    return answer(only_machine);
}
