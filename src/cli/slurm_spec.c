/* From what Slurm was told to our job spec. */
#include <stdio.h>
#include <unistd.h>

#include "base/date.h"
#include "base/parse.h"
#include "cli/flags.h"
#include "cli/slurm.h"
#include "cli/when.h"
#include "sys/clock.h"

/* What has been worked out of the options. */
struct shape {
    uint64_t nodes, tasks, cpus, gpus, mem_mib, time_s;
    struct str gpu_type;
    uint64_t replicas; /* equal parts; gpus, cpus and mem are each one's */
};

static int in_option(int rc, const char *name, struct err *e)
{
    return rc < 0 ? err_wrap(e, "--%s", name) : 0;
}

static int count(const char *text, const char *name, uint64_t otherwise, uint64_t *out,
                 struct err *e)
{
    uint64_t v = otherwise;
    if (text && in_option(parse_u64(str_of(text), 4096, &v, e), name, e) < 0)
        return -1;
    *out = v ? v : 1;
    return 0;
}

static int memory(const char *text, const char *name, uint64_t times, uint64_t *out, struct err *e)
{
    uint64_t mib;
    if (!text)
        return 0;
    if (in_option(slurm_memory_mib(str_of(text), &mib, e), name, e) < 0)
        return -1;
    *out = mib * (times ? times : 1);
    return 0;
}

/* A list like gpu:2,shard:1 : only GPUs are known here. */
static int read_gres(const char *text, struct shape *s, struct err *e)
{
    struct str rest = str_of(text), one;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        if (one.n < 3 || memcmp(one.p, "gpu", 3) != 0) {
            err_set(e, ERR_INVALID, "--gres: '%.*s' is not known here", STR_ARG(one));
            return err_hint(e, "GPUs are: --gres=gpu:N or --gres=gpu:TYPE:N");
        }
        if (in_option(slurm_gpus(one, &s->gpu_type, &s->gpus, e), "gres", e) < 0)
            return -1;
    }
    return 0;
}

/* GPUs of each replica. */
static int read_gpus(const struct slurm_job *j, struct shape *s, struct err *e)
{
    uint64_t all;
    if (j->gres && read_gres(j->gres, s, e) < 0)
        return -1;
    if (j->gpus_per_node &&
        in_option(slurm_gpus(str_of(j->gpus_per_node), &s->gpu_type, &s->gpus, e), "gpus-per-node",
                  e) < 0)
        return -1;
    if (j->gpus_per_task) {
        if (in_option(slurm_gpus(str_of(j->gpus_per_task), &s->gpu_type, &s->gpus, e),
                      "gpus-per-task", e) < 0)
            return -1;
        s->gpus *= s->tasks > s->replicas ? s->tasks / s->replicas : 1;
    }
    if (!j->gpus)
        return 0;
    if (in_option(slurm_gpus(str_of(j->gpus), &s->gpu_type, &all, e), "gpus", e) < 0)
        return -1;
    if (all % s->replicas) {
        err_set(e, ERR_INVALID, "--gpus: %llu GPUs cannot be divided among %llu",
                (unsigned long long)all, (unsigned long long)s->replicas);
        return err_hint(e, "use --gpus-per-node, or a multiple");
    }
    s->gpus = all / s->replicas;
    return 0;
}

static int read_shape(const struct slurm_job *j, const struct slurm_program *p, struct shape *out,
                      struct err *e)
{
    struct shape s = { 0 };
    if (count(j->nodes, "nodes", 1, &s.nodes, e) < 0 ||
        count(j->ntasks, "ntasks", p->tasks ? s.nodes : 1, &s.tasks, e) < 0 ||
        count(j->cpus, "cpus-per-task", 1, &s.cpus, e) < 0)
        return -1;
    s.replicas = p->tasks ? MAX(s.tasks, s.nodes) : s.nodes;
    if (!p->tasks && s.tasks > s.replicas)
        s.cpus *= (s.tasks + s.replicas - 1) / s.replicas;
    if (read_gpus(j, &s, e) < 0 || memory(j->mem, "mem", 1, &s.mem_mib, e) < 0 ||
        memory(j->mem_per_cpu, "mem-per-cpu", s.cpus, &s.mem_mib, e) < 0 ||
        memory(j->mem_per_gpu, "mem-per-gpu", s.gpus, &s.mem_mib, e) < 0)
        return -1;
    if (j->time && in_option(slurm_time_seconds(str_of(j->time), &s.time_s, e), "time", e) < 0)
        return -1;
    *out = s;
    return 0;
}

static void put_resources(const struct slurm_job *j, const struct shape *s, struct json_out *w)
{
    char text[32];
    json_begin(w, "resources", '{');
    if (s->gpus)
        json_put_u64(w, "gpus", s->gpus);
    if (s->gpus && s->gpu_type.n)
        json_put_str(w, "gpu_type", s->gpu_type);
    if (j->cpus || j->ntasks)
        json_put_u64(w, "cpus", s->cpus);
    if (s->mem_mib) {
        snprintf(text, sizeof text, "%lluMi", (unsigned long long)s->mem_mib);
        json_put_str(w, "mem", str_of(text));
    }
    json_end(w, '}');
    if (s->time_s) {
        snprintf(text, sizeof text, "%llus", (unsigned long long)s->time_s);
        json_put_str(w, "max_time", str_of(text));
    }
    if (s->replicas > 1)
        json_put_u64(w, "replicas", s->replicas);
    if (s->nodes > 1 && s->nodes == s->replicas) {
        json_begin(w, "placement", '{');
        json_put_str(w, "layout", STR("spread"));
        json_end(w, '}');
    }
}

/* ---- variables ---- */

/* ALL (as Slurm has it by default), NONE, or a list, with ALL in it or not. */
static int put_env(const struct slurm_job *j, const char *const *env, bool tty, struct arena *a,
                   struct json_out *w, struct err *e)
{
    struct flags f = { .env_all = !j->export_, .tty = tty };
    struct str rest = j->export_ ? str_of(j->export_) : (struct str){ "", 0 }, one;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        if (str_is(one, "ALL"))
            f.env_all = true;
        else if (one.n && !str_is(one, "NONE") && f.env.n < OPT_LIST_MAX)
            f.env.item[f.env.n++] = arena_strndup(a, one.p, one.n);
    }
    return flags_put_env(&f, env, false, w, e);
}

/* ---- the command ---- */

/* "#!/bin/bash -l" -> the words of it. */
static bool take_interpreter(struct str script, struct str *out)
{
    struct str line;
    if (script.n < 3 || memcmp(script.p, "#!", 2) != 0 || !str_next_line(&script, &line))
        return false;
    *out = str_trim((struct str){ line.p + 2, line.n - 2 });
    return out->n > 0;
}

static void add_files(const struct slurm_job *j, struct buf *sh)
{
    const char *standard = j->array ? "slurm-%A_%a.out" : "slurm-%j.out";
    buf_addz(sh, "out=");
    slurm_file_expression(j->output ? j->output : standard, sh);
    buf_addz(sh, "\necho \"output goes to $out\"\nexec >\"$out\"");
    if (j->error) {
        buf_addz(sh, " 2>");
        slurm_file_expression(j->error, sh);
    } else {
        buf_addz(sh, " 2>&1");
    }
    buf_addc(sh, '\n');
}

/* The script travels as an argument, so that it may change or go after it was submitted. */
static int put_command(const struct slurm_job *j, const struct slurm_program *p, struct json_out *w,
                       struct err *e)
{
    AUTO(buf_free) struct buf sh = BUF(1u << 16);
    struct str interpreter = { "", 0 };
    bool files = p->write_file || j->output || j->error;
    if (p->script.n && !take_interpreter(p->script, &interpreter)) {
        err_set(e, ERR_INVALID, "this does not look like a batch script");
        return err_hint(e, "its first line must begin with #! and name a shell: #!/bin/bash");
    }
    if (files)
        add_files(j, &sh);
    if (p->script.n)
        buf_printf(&sh,
                   "f=$(mktemp \"${TMPDIR:-/tmp}/nightshift-XXXXXX\") && printf %%s \"$1\" >\"$f\" "
                   "|| exit 1\n"
                   "shift\nexec %.*s \"$f\" \"$@\"\n",
                   STR_ARG(interpreter));
    else if (files)
        buf_addz(&sh, "exec \"$@\"\n");
    json_begin(w, "command", '[');
    if (sh.n) {
        json_put_str(w, NULL, STR("/bin/sh"));
        json_put_str(w, NULL, STR("-c"));
        json_put_str(w, NULL, buf_str(&sh));
        json_put_str(w, NULL, STR("sbatch"));
    }
    if (p->script.n)
        json_put_str(w, NULL, p->script);
    for (size_t i = 0; i < p->n_args; i++)
        json_put_str(w, NULL, str_of(p->args[i]));
    json_end(w, ']');
    return buf_check(&sh, e);
}

/* ---- what is refused, what is ignored ---- */

static int refuse(const struct slurm_job *j, struct err *e)
{
    if (j->input)
        return err_set(e, ERR_INVALID, "--input is not supported");
    if (j->array && strchr(j->array, ',')) {
        err_set(e, ERR_INVALID, "--array: lists are not supported: '%s'", j->array);
        return err_hint(e, "write a range with a step: 0-9 or 1-99:2");
    }
    return 0;
}

/* Slurm also takes the next time that a clock shows. */
static int put_begin(const char *text, struct json_out *w, struct err *e)
{
    char date[32];
    struct clock wall = clock_wall();
    int64_t ms;
    const char *clock = !text                         ? ""
                      : strcmp(text, "midnight") == 0 ? "00:00"
                      : strcmp(text, "noon") == 0     ? "12:00"
                                                      : text;
    if (!when_next(clock, clock_now_ms(&wall), &ms))
        return in_option(flags_put_begin(w, text, e), "begin", e);
    json_put_str(w, "begin", str_of(date_format(ms, date)));
    return 0;
}

static void note_ignored(const struct slurm_job *j, struct buf *notes)
{
    const struct slurm_ignored *i = &j->ignored;
    const struct {
        const char *name, *given, *why;
    } rows[] = {
        { "partition", i->partition, "there is one queue for all machines" },
        { "qos", i->qos, "shares decide" },
        { "mail-type", i->mail_type, "no mail is sent" },
        { "constraint", i->constraint, "name the GPU in --gres=gpu:TYPE:N" },
        { "nodelist", i->nodelist, "the scheduler chooses the machine" },
        { "exclude", i->exclude, "the scheduler chooses the machine" },
        { "licenses", i->licenses, "licences are not counted" },
        { "exclusive", i->exclusive ? "" : NULL, "ask for all GPUs of a machine instead" },
        { "ntasks-per-node", i->ntasks_per_node, "use --nodes and --ntasks" },
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        if (rows[k].given)
            buf_printf(notes, "--%s is ignored: %s\n", rows[k].name, rows[k].why);
}

static void put_array(const struct slurm_job *j, struct json_out *w, struct buf *notes)
{
    struct str range, most;
    if (!j->array)
        return;
    if (str_cut(str_of(j->array), '%', &range, &most))
        buf_printf(notes, "--array: %%%.*s is ignored: shares decide how many run at once\n",
                   STR_ARG(most));
    AUTO(buf_free) struct buf text = BUF(256);
    buf_add(&text, range);
    if (range.n && !memchr(range.p, '-', range.n)) /* one index */
        buf_printf(&text, "-%.*s", STR_ARG(range));
    json_put_str(w, "array", buf_str(&text));
}

static void put_name(const struct slurm_job *j, const struct slurm_program *p, struct json_out *w)
{
    char name[64];
    flags_default_name(p->args, p->n_args, name);
    json_put_str(w, "name", str_of(j->name ? j->name : p->script.n ? "sbatch" : name));
}

int slurm_spec(const struct slurm_job *j, const struct slurm_program *p, const char *const *env,
               struct buf *out, struct buf *notes, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct json_out w = { .b = out };
    struct shape s;
    char folder[4096];
    if (refuse(j, e) < 0 || read_shape(j, p, &s, e) < 0)
        return -1;
    note_ignored(j, notes);
    if (!p->tasks && s.nodes > 1)
        buf_printf(notes,
                   "--nodes: the script runs on each of the %llu machines; see SLURM_PROCID\n",
                   (unsigned long long)s.nodes);
    json_begin(&w, NULL, '{');
    put_name(j, p, &w);
    if (put_command(j, p, &w, e) < 0)
        return -1;
    put_resources(j, &s, &w);
    const char *dir = j->chdir ? j->chdir : getcwd(folder, sizeof folder);
    if (dir)
        json_put_str(&w, j->chdir ? "workdir" : "cwd", str_of(dir));
    if (put_env(j, env, p->tty, &a, &w, e) < 0)
        return -1;
    if (j->account)
        json_put_str(&w, "tenant", str_of(j->account));
    put_array(j, &w, notes);
    flags_put_list(&w, "after", &j->after);
    if (put_begin(j->begin, &w, e) < 0)
        return -1;
    if (j->reservation)
        json_put_str(&w, "reservation", str_of(j->reservation));
    if (j->hold)
        json_put_bool(&w, "held", true);
    if (j->requeue)
        json_put_bool(&w, "requeue", true);
    if (p->tty)
        json_put_bool(&w, "tty", true);
    if (p->stdin_open && !p->tty)
        json_put_bool(&w, "stdin", true);
    json_end(&w, '}');
    return buf_check(out, e);
}
