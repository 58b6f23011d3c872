#include "init/args.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "init/pod.h"

enum option {
    OPTION_POD,
    OPTION_BRIDGE,
    OPTION_INSTALL,
    OPTION_TTY,
    OPTION_STDIN,
    OPTION_LOG_BYTES,
    OPTION_FREEZE_SIGNAL,
    OPTION_CHDIR,
    OPTION_NOTE,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_COUNT
};

static const struct {
    const char *name, *value, *help;
} options[] = {
    [OPTION_POD] = { "--pod", "DIR", "without a keeper: make the task's files in DIR" },
    [OPTION_BRIDGE] = { "--bridge", "DIR", "connect stdin and stdout to the supervisor of DIR" },
    [OPTION_INSTALL] = { "--install", "FILE", "copy this program to FILE" },
    [OPTION_TTY] = { "--tty", NULL, "the job gets a terminal of its own" },
    [OPTION_STDIN] = { "--stdin", NULL,
                       "the job's stdin is open for attached clients; otherwise it is empty" },
    [OPTION_LOG_BYTES] = { "--log-bytes", "N",
                           "keep at most N bytes of output (67108864; with --pod 1048576)" },
    [OPTION_FREEZE_SIGNAL] = { "--freeze-signal", "N",
                               "with --pod: what the first SIGTERM becomes for the job (15)" },
    [OPTION_CHDIR] = { "--chdir", "DIR", "begin in DIR, or do not begin at all" },
    [OPTION_NOTE] = { "--note", "TEXT", "put this before its output, as a word of ours" },
    [OPTION_HELP] = { "--help", NULL, "show this" },
    [OPTION_VERSION] = { "--version", NULL, "show the version" },
};
_Static_assert(ARRAY_LEN(options) == OPTION_COUNT, "every option has its row");

static const char usage[] =
    "usage: nightshift-init [OPTION...] -- PROGRAM [ARGUMENT...]\n"
    "       nightshift-init --pod DIR [OPTION...] -- PROGRAM [ARGUMENT...]\n"
    "       nightshift-init --bridge DIR\n"
    "       nightshift-init --install FILE\n"
    "\n"
    "Runs PROGRAM as the job of a task and stays its supervisor.  The keeper starts it so and puts "
    "the\n"
    "task's files into descriptors 3 to 8 (control socket, status, four log segments).  In a pod "
    "of\n"
    "Kubernetes there is no keeper: an init container installs it into a volume, it makes those "
    "files\n"
    "itself, and its stdout and stderr are the job's.\n"
    "\n";

void args_help(void)
{
    fputs(usage, stdout);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const char *value = options[i].value ? options[i].value : "";
        int n = printf("  %s%s%s", options[i].name, value[0] ? " " : "", value);
        printf("%*s%s\n", n < 22 ? 22 - n : 1, "", options[i].help);
    }
}

/* Not base/parse: that one needs the JSON library, and we carry no library. */
static int parse_number(enum option what, const char *text, uint64_t min, uint64_t max,
                        uint64_t *out, struct err *e)
{
    uint64_t v = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && v <= max; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (*p || p == text || v < min || v > max)
        return err_set(e, ERR_INVALID, "%s '%s' is not a number from %llu to %llu",
                       options[what].name, text, (unsigned long long)min, (unsigned long long)max);
    *out = v;
    return 0;
}

static int set_mode(struct args *a, enum args_mode mode, const char *path, struct err *e)
{
    if (a->mode != ARGS_KEEPER)
        return err_set(e, ERR_INVALID, "--pod, --bridge and --install exclude each other");
    if (!path[0])
        return err_set(e, ERR_INVALID, "a path is empty");
    a->mode = mode;
    a->path = path;
    return 0;
}

static int set(struct args *a, enum option what, const char *value, struct err *e)
{
    uint64_t signo = 0;
    switch (what) {
    case OPTION_POD: return set_mode(a, ARGS_POD, value, e);
    case OPTION_BRIDGE: return set_mode(a, ARGS_BRIDGE, value, e);
    case OPTION_INSTALL: return set_mode(a, ARGS_INSTALL, value, e);
    case OPTION_TTY: a->run.tty = true; return 0;
    case OPTION_STDIN: a->run.input = true; return 0;
    case OPTION_LOG_BYTES:
        return parse_number(what, value, JOBLOG_BYTES_MIN, JOBLOG_BYTES_MAX, &a->run.log_bytes, e);
    case OPTION_FREEZE_SIGNAL:
        if (parse_number(what, value, 1, NSIG - 1, &signo, e) < 0)
            return -1;
        a->run.freeze_signal = (int)signo;
        return 0;
    case OPTION_CHDIR: a->chdir = value; return 0;
    case OPTION_NOTE: a->run.note = value; return 0;
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_COUNT: break;
    }
    abort(); /* these ask for no run */
}

static enum option find(const char *word)
{
    enum option i = 0;
    while (i < OPTION_COUNT && strcmp(options[i].name, word) != 0)
        i++;
    return i;
}

/* Do the words fit together?  `program` is what stands after "--", which ends with NULL. */
static int check(const struct args *a, const char *const *program, struct err *e)
{
    bool runs = a->mode == ARGS_KEEPER || a->mode == ARGS_POD;
    if (runs && (!program || !program[0]))
        return err_set(e, ERR_INVALID, "no program was given: write it after '--'");
    if (!runs && program)
        return err_set(e, ERR_INVALID, "--bridge and --install run no program");
    if (a->mode != ARGS_POD && a->run.freeze_signal)
        return err_set(e, ERR_INVALID, "--freeze-signal goes with --pod");
    return 0;
}

int args_parse(int argc, char **argv, struct args *out, struct err *e)
{
    struct args a = { 0 };
    const char *const *program = NULL;
    for (int i = 1; i < argc && !program; i++) {
        enum option what = find(argv[i]);
        if (strcmp(argv[i], "--") == 0) {
            program = (const char *const *)argv + i + 1;
            break;
        }
        if (what == OPTION_COUNT)
            return err_set(e, ERR_INVALID, "unknown option '%s'", argv[i]);
        if (what == OPTION_HELP || what == OPTION_VERSION) {
            out->mode = what == OPTION_HELP ? ARGS_HELP : ARGS_VERSION;
            return 0;
        }
        if (options[what].value && ++i == argc)
            return err_set(e, ERR_INVALID, "%s needs a value: %s", options[what].name,
                           options[what].value);
        if (set(&a, what, argv[i], e) < 0)
            return -1;
    }
    if (check(&a, program, e) < 0)
        return -1;
    a.run.pod = a.mode == ARGS_POD;
    a.run.argv = program;
    if (a.run.log_bytes == 0)
        a.run.log_bytes = a.run.pod ? POD_LOG_BYTES : JOBLOG_BYTES_DEFAULT;
    if (a.run.freeze_signal == 0)
        a.run.freeze_signal = SIGTERM;
    *out = a;
    return 0;
}
