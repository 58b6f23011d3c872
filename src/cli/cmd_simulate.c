/* simulate: nightshift-sim with the same words; with --history, on the server's own journal. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/date.h"
#include "cli/commands.h"
#include "cli/here.h"
#include "cli/tty.h"
#include "cli/when.h"

#define ARGS_MAX (2 * OPT_LIST_MAX + 64)

struct simulate_opts {
    struct common common;
    bool history, json;
    const char *since, *until, *policy, *html, *starts, *write_journal;
    struct opt_list what_if, set;
};

#define AT(field) offsetof(struct simulate_opts, field)

static const struct opt simulate_opts[] = {
    { "history", OPT_FLAG, AT(history), NULL, "replay what happened here (administrators)", 0, 0 },
    { "since", OPT_TEXT, AT(since), "TIME", "from then on: 2026-03-01, 30d (ago)", 0, 0 },
    { "until", OPT_TEXT, AT(until), "TIME", "up to then", 0, 0 },
    { "what-if", OPT_LIST, AT(what_if), "CHANGE",
      "compare with a changed world: nodes+=2*rtx4090; more than once", 0, 0 },
    { "set", OPT_LIST, AT(set), "NAME=VALUE", "another number of the policy", 0, 0 },
    { "policy", OPT_TEXT, AT(policy), "P[,P]", "other policies, for example fifo,nightshift", 0,
      0 },
    { "html", OPT_TEXT, AT(html), "FILE", "also write the page with the charts", 0, 0 },
    { "starts", OPT_TEXT, AT(starts), "FILE", "also write each job's start and end", 0, 0 },
    { "write-journal", OPT_TEXT, AT(write_journal), "FILE", "also write what was decided", 0, 0 },
    { "json", OPT_FLAG, AT(json), NULL, "one JSON object", 0, 0 },
    OPTS_COMMON(struct simulate_opts),
};

/* The words of nightshift-sim; its argv is not ours to change, nor does it. */
struct line {
    char *argv[ARGS_MAX + 1];
    size_t n;
};

static void add_word(struct line *l, const char *word)
{
    if (l->n < ARGS_MAX)
        l->argv[l->n++] = (char *)(uintptr_t)word;
}

static void add_option(struct line *l, const char *option, const char *value)
{
    if (!value)
        return;
    add_word(l, option);
    add_word(l, value);
}

static int add_time(struct cli *c, struct line *l, const char *option, const char *text,
                    int64_t *out_ms, struct err *e)
{
    char when[32];
    if (!text)
        return 0;
    if (when_parse(text, cli_now_ms(), out_ms, e) < 0)
        return err_wrap(e, "%s", option);
    add_option(l, option, arena_printf(&c->arena, "%s", date_format(*out_ms, when)));
    return 0;
}

/* Into memory that the simulator opens by its descriptor: a file would have to be cleaned up. */
static int fetch_journal(struct cli *c, int64_t since_ms, int *out_fd, struct err *e)
{
    AUTO(answer_free) struct answer a = { 0 };
    const char *path =
        arena_printf(&c->arena, "/v1/journal?since_ms=%lld", (long long)MAX(since_ms, INT64_C(0)));
    if (cli_call(c, &(struct call){ .path = path }, &a, e) < 0)
        return -1;
    int fd = memfd_create("journal", 0);
    if (fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "no memory for the journal: %s", strerror(errno));
    if (tty_write(fd, buf_str(&a.body)) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot keep the journal: %s", strerror(errno));
        close(fd);
        return -1;
    }
    *out_fd = fd;
    return 0;
}

static int run_history(struct cli *c, const struct simulate_opts *o, struct line *l, struct err *e)
{
    int64_t since_ms = 0, until_ms = 0;
    int fd = -1;
    add_word(l, "replay");
    if (add_time(c, l, "--since", o->since, &since_ms, e) < 0 ||
        add_time(c, l, "--until", o->until, &until_ms, e) < 0 ||
        fetch_journal(c, since_ms, &fd, e) < 0)
        return -1;
    add_option(l, "--journal", arena_printf(&c->arena, "/proc/self/fd/%d", fd));
    add_option(l, "--name", "history");
    add_option(l, "--policy", o->policy);
    add_option(l, "--html", o->html);
    add_option(l, "--starts", o->starts);
    add_option(l, "--write-journal", o->write_journal);
    for (size_t i = 0; i < o->what_if.n; i++)
        add_option(l, "--what-if", o->what_if.item[i]);
    for (size_t i = 0; i < o->set.n; i++)
        add_option(l, "--set", o->set.item[i]);
    if (o->json)
        add_word(l, "--json");
    return here_exec(l->argv, e);
}

/* An option of the history before another command would go unheard. */
static int check_unheard(const struct simulate_opts *o, struct err *e)
{
    const struct {
        const char *option;
        bool given;
    } table[] = {
        { "--since", o->since != NULL },
        { "--until", o->until != NULL },
        { "--what-if", o->what_if.n > 0 },
        { "--set", o->set.n > 0 },
        { "--policy", o->policy != NULL },
        { "--html", o->html != NULL },
        { "--starts", o->starts != NULL },
        { "--write-journal", o->write_journal != NULL },
        { "--json", o->json },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].given) {
            err_set(e, ERR_INVALID, "%s needs --history, or a command before it", table[i].option);
            return err_hint(e,
                            "nightshift simulate --history %s …, or nightshift simulate lab %s …",
                            table[i].option, table[i].option);
        }
    return 0;
}

static int run_simulate(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct simulate_opts *o = opts_p;
    struct line l = { .argv = { (char[]){ "nightshift-sim" } }, .n = 1 };
    if (o->history && args.n) {
        err_set(e, ERR_INVALID, "--history is a replay of its own: '%s' does not go with it",
                args.v[0]);
        return err_hint(e, "nightshift simulate --history --what-if nodes+=1*rtx4090");
    }
    if (o->history)
        return run_history(c, o, &l, e);
    if (check_unheard(o, e) < 0)
        return -1;
    if (args.n == 0) {
        err_set(e, ERR_INVALID, "simulate needs --history or a command of nightshift-sim");
        return err_hint(e, "begin with: nightshift simulate lab");
    }
    if (args.n > ARGS_MAX - 1)
        return err_set(e, ERR_TOO_LARGE, "simulate takes at most %d words", ARGS_MAX - 1);
    for (size_t i = 0; i < args.n; i++)
        add_word(&l, args.v[i]);
    return here_exec(l.argv, e);
}

const struct command command_simulate = {
    .name = "simulate",
    .args = "[COMMAND [OPTIONS]]",
    .help = "what would two more GPUs change? the past, or a trace, replayed",
    .more = "    nightshift simulate --history --what-if nodes+=2*rtx4090 --html what-if.html\n"
            "    nightshift simulate --history --since 30d --what-if weight:vision=3\n"
            "    nightshift simulate lab --what-if load=1.2\n\n"
            "'nightshift simulate replay --help' lists the changes; see nightshift-sim(1).\n",
    .group = GROUP_CLUSTER,
    COMMAND_OPTS(simulate_opts, struct simulate_opts),
    .max_args = ARGS_MAX,
    .leading = true,
    .run = run_simulate,
};
