/* The words of #SBATCH lines hold no NUL and stay within the line; values are read or refused; what
 * becomes a spec is JSON. */
#include "cli/slurm.h"
#include "tests/fuzz/target.h"

static void try_values(const char *word)
{
    struct str s = str_of(word), type;
    struct err e;
    uint64_t v;
    AUTO(buf_free) struct buf name = BUF(1u << 20);
    if (slurm_time_seconds(s, &v, &e) == 0 && v > UINT64_C(1) << 50)
        abort();
    if (slurm_memory_mib(s, &v, &e) == 0 && v > UINT64_C(1) << 50)
        abort();
    if (slurm_gpus(s, &type, &v, &e) == 0 && v > 4096)
        abort();
    AUTO(arena_free) struct arena a = { 0 };
    struct opt_list after;
    if (slurm_dependency(word, &a, &after, &e) == 0 && after.n > strlen(word))
        abort();
    slurm_file_expression(word, &name);
    if (name.n < 2 || name.p[0] != '\'' || name.p[name.n - 1] != '\'')
        abort();
}

static void try_spec(struct str script, const char *word)
{
    static const char *const env[] = { "A=1", NULL };
    AUTO(buf_free) struct buf spec = BUF(4u << 20), notes = BUF(1u << 16);
    struct slurm_job j = { .name = word,
                           .gres = word,
                           .time = word,
                           .array = word,
                           .output = word,
                           .begin = word,
                           .chdir = "/" };
    struct slurm_program p = { .script = script };
    struct err e = { 0 };
    if (slurm_spec(&j, &p, env, &spec, &notes, &e) < 0) {
        if (e.code == ERR_NONE || !e.msg[0])
            abort();
        return;
    }
    struct json_doc *doc = json_read(buf_str(&spec), &e);
    if (!doc)
        abort();
    json_free(doc);
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str all = { (const char *)data, size };
    struct slurm_script s = { .rest = all };
    const char **words;
    size_t n;
    struct err e;
    if (size > 20000)
        return 0;
    while (slurm_next_line(&s, &a, &words, &n, &e) > 0) {
        for (size_t i = 0; i < n; i++) {
            if (strlen(words[i]) > size)
                abort();
            try_values(words[i]);
            if (i == 0)
                try_spec(all, words[i]);
        }
    }
    return 0;
}
