/* cli - what every command of nightshift shares: the program, its table, its ways to print.
 *
 * A command is a row: name, arguments, help, options, function.  Usage, `--help`, the manual page
 * and shell completion are printed from the rows.  main parses the options of the row into a struct
 * of the command's own (which begins with struct common) and calls the function; a command prints
 * its result and returns 0, or -1 with an error that main prints.
 */
#ifndef NS_CLI_CLI_H
#define NS_CLI_CLI_H

#include "base/arena.h"
#include "base/json.h"
#include "base/opts.h"
#include "cli/client.h"
#include "cli/table.h"

struct cli {
    const char *program; /* what messages begin with: nightshift, sbatch, … */
    struct arena arena;
    struct client *client; /* NULL until cli_client */
    const char *server;    /* from --server, or NULL */
    bool fresh;            /* without a token that one has from before */
    int exit_code;         /* of a command that succeeded */
};

/* What main reads of any command's options: they begin with one of these. */
struct common {
    const char *server;
    bool help;
    const char *output; /* table wide json yaml name; NULL: table */
    bool no_headers;
};

/* Arguments that are no options; behind the last of them is a NULL. */
struct words {
    const char *const *v;
    size_t n;
};

/* What an argument is, for completion. */
enum word_kind {
    WORD_NONE,
    WORD_JOB,
    WORD_NODE,
    WORD_POOL,        /* a verb of `pools`, or a pool */
    WORD_RESERVATION, /* likewise */
    WORD_TENANT,      /* likewise */
    WORD_USER,        /* likewise */
    WORD_FILE,
    WORD_PROGRAM, /* a command line to run */
    WORD_COMMAND  /* of nightshift */
};

enum command_group {
    GROUP_JOBS,
    GROUP_INSIDE,
    GROUP_CLUSTER,
    GROUP_PEOPLE,
    GROUP_OTHER,
    GROUP_SLURM,
    GROUP_COUNT
};

typedef int command_fn(struct cli *c, const void *opts, struct words args, struct err *e);

struct command {
    const char *name, *args, *help;
    const char *more; /* below the options in --help: examples; or NULL */
    enum command_group group;
    enum word_kind word;
    const struct opt *opts;
    size_t n_opts, opts_size;
    size_t min_args, max_args;
    bool leading; /* the first argument ends the options */
    command_fn *run;
};

#define COMMAND_OPTS(table, type)                                                                  \
    .opts = (table), .n_opts = ARRAY_LEN(table), .opts_size = sizeof(type)

/* The options that all have; and those of what prints lists. */
#define OPTS_COMMON(type)                                                                          \
    { "server",                                                                                    \
      OPT_TEXT,                                                                                    \
      offsetof(type, common.server),                                                               \
      "ADDRESS",                                                                                   \
      "unix:/path, http://host:port, https://host",                                                \
      0,                                                                                           \
      0 },                                                                                         \
    {                                                                                              \
        "help", OPT_FLAG, offsetof(type, common.help), NULL, "this text", 0, 0                     \
    }
#define OPTS_OUTPUT(type)                                                                          \
    { "output,o",                                                                                  \
      OPT_CHOICE,                                                                                  \
      offsetof(type, common.output),                                                               \
      "table|wide|json|yaml|name",                                                                 \
      "how to print",                                                                              \
      0,                                                                                           \
      0 },                                                                                         \
    {                                                                                              \
        "no-headers", OPT_FLAG, offsetof(type, common.no_headers), NULL, "no titles", 0, 0         \
    }

/* ---- the table (commands.c) ---- */

const struct command *command_at(size_t i); /* NULL past the last */
const struct command *command_find(const char *name);
const char *group_title(enum command_group g);
void command_print_help(const struct command *c, struct buf *out);
void command_print_usage(struct buf *out); /* of the whole program */

/* Runs the command of this name.  `argv` begins behind it. */
int command_call(struct cli *c, const struct command *cmd, int argc, char *const *argv,
                 struct err *e) MUST_USE;

/* ---- talking to the server (cli.c) ---- */

struct client *cli_client(struct cli *c, struct err *e); /* NULL on failure; stays the cli's */

/* One call; the document is the caller's to free. */
struct json_doc *cli_get(struct cli *c, const char *path, struct err *e);
struct json_doc *cli_post(struct cli *c, const char *path, struct str body, struct err *e);
int cli_call(struct cli *c, const struct call *call, struct answer *out, struct err *e) MUST_USE;
void answer_free(struct answer *a); /* for AUTO */

const char *cli_whoami(struct cli *c, struct err *e); /* our user's name; NULL on failure */

int64_t cli_now_ms(void);

/* ---- printing (cli.c) ---- */

enum output {
    OUT_TABLE,
    OUT_WIDE,
    OUT_JSON,
    OUT_YAML,
    OUT_NAME,
    OUT_CSV
};
enum output cli_output(const struct common *o);

int cli_print(const struct buf *b, struct err *e) MUST_USE; /* all of it, to standard output */
int cli_print_line(const char *text, struct err *e) MUST_USE;
int cli_print_table(const struct table *t, const struct common *o, struct err *e) MUST_USE;

/* JSON as it came, or as YAML. */
int cli_print_raw(struct str json, enum output form, struct err *e) MUST_USE;

/* One call and its answer: as it came, its name, or as `print` writes it, by -o. */
typedef void cli_print_fn(const struct json *root, struct buf *b);
int cli_ask(struct cli *c, const struct common *o, const struct call *call, cli_print_fn *print,
            struct err *e) MUST_USE;

/* A sentence on standard error: "nightshift: …". */
void cli_note(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The edge: what main and the Slurm words print of an error. */
void cli_print_error(const struct cli *c, const struct err *e);

#endif
