/* why: why a job waits, or waited at a time that is past. */
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/when.h"
#include "cli/why.h"

struct why_opts {
    struct common common;
    const char *at;
};
#define AT(member) offsetof(struct why_opts, member)

static const struct opt opts[] = {
    { "at", OPT_TEXT, AT(at), "TIME", "why it waited then: 14:30, '2h ago', 'yesterday 14:00'", 0,
      0 },
    OPTS_OUTPUT(struct why_opts),
    OPTS_COMMON(struct why_opts),
};
#undef AT

static int run_why(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct why_opts *o = opts_p;
    uint64_t id;
    int64_t at_ms = 0;
    if (o->at && when_parse(o->at, cli_now_ms(), &at_ms, e) < 0)
        return err_wrap(e, "--at");
    if (jobs_resolve_one(c, args.v[0], &id, e) < 0)
        return -1;
    const char *path = arena_printf(&c->arena, "/v1/jobs/%llu/why", (unsigned long long)id);
    if (o->at)
        path = arena_printf(&c->arena, "%s?at_ms=%lld", path, (long long)MAX(at_ms, INT64_C(1)));
    return cli_ask(c, &o->common, &(struct call){ .path = path }, why_print, e);
}

const struct command command_why = {
    .name = "why",
    .args = "JOB",
    .help = "why a job waits, or waited then",
    .group = GROUP_JOBS,
    .word = WORD_JOB,
    COMMAND_OPTS(opts, struct why_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_why,
};
