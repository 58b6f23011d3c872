/* The journal: verified, and its reference. */
#include "core/policy.h"
#include "journal/journal.h"
#include "simulate/command.h"
#include "simulate/journal_trace.h"
#include "simulate/whatif.h"

/* ---- verify ---- */

struct verify_args {
    const char *journal;
    bool json;
};

static const struct opt verify_opts[] = {
    { "journal", OPT_TEXT, offsetof(struct verify_args, journal), "FILE",
      "a journal, plain or gzipped", 0, 0 },
    { "json", OPT_FLAG, offsetof(struct verify_args, json), NULL, "one JSON object", 0, 0 },
};

static int run_verify(int argc, char *const *argv, struct err *e)
{
    struct verify_args a = { 0 };
    struct journal_check c;
    AUTO(buf_free) struct buf b = BUF(4096);
    if (opts_parse(verify_opts, ARRAY_LEN(verify_opts), argc, argv, &a, e) < 0)
        return -1;
    if (!a.journal) {
        err_set(e, ERR_INVALID, "--journal is needed");
        return err_hint(e, "make one: nightshift-sim lab --write-journal lab.journal");
    }
    if (journal_verify(a.journal, &c, e) < 0)
        return -1;
    buf_printf(&b,
               a.json ? "{\"events\":%llu,\"passes\":%llu,\"decisions\":%llu,\"same\":true}\n"
                      : "%llu events, %llu passes, %llu decisions: every one is the same\n",
               (unsigned long long)c.events, (unsigned long long)c.passes,
               (unsigned long long)c.decisions);
    return command_print(&b, e);
}

const struct command command_verify = {
    .name = "verify",
    .help = "replay a journal and compare every decision",
    .opts = verify_opts,
    .opts_n = ARRAY_LEN(verify_opts),
    .run = run_verify,
};

/* ---- docs ---- */

struct docs_args {
    const char *page;
};

static const struct opt docs_opts[] = {
    { "page", OPT_CHOICE, offsetof(struct docs_args, page), "journal|policy|jobs|what-if|scene",
      "which reference to print", 0, 0 },
};

static void print_policy(struct buf *b)
{
    buf_addz(b, "| key | default | least | most | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; policy_key(i); i++) {
        const struct policy_key *k = policy_key(i);
        buf_printf(b, "| `%s` | %lld | %lld | %lld | %s |\n", k->name, (long long)k->dflt,
                   (long long)k->min, (long long)k->max, k->help);
    }
}

static void print_jobs(struct buf *b)
{
    enum job_state from, to;
    enum job_event on;
    buf_addz(b, "| from | event | to |\n|---|---|---|\n");
    for (size_t i = 0; job_edge(i, &from, &on, &to); i++)
        buf_printf(b, "| %s | `%s` | %s |\n", job_state_name(from), job_event_name(on),
                   job_state_name(to));
}

static int run_docs(int argc, char *const *argv, struct err *e)
{
    struct docs_args a = { .page = "journal" };
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    if (opts_parse(docs_opts, ARRAY_LEN(docs_opts), argc, argv, &a, e) < 0)
        return -1;
    if (strcmp(a.page, "policy") == 0)
        print_policy(&b);
    else if (strcmp(a.page, "jobs") == 0)
        print_jobs(&b);
    else if (strcmp(a.page, "what-if") == 0)
        whatif_print_reference(&b);
    else if (strcmp(a.page, "scene") == 0)
        scene_print_reference(&b);
    else
        journal_print_reference(&b);
    return command_print(&b, e);
}

const struct command command_docs = {
    .name = "docs",
    .help = "print the reference pages from the tables",
    .opts = docs_opts,
    .opts_n = ARRAY_LEN(docs_opts),
    .run = run_docs,
};
