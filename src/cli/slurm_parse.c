/* The readers of slurm.h: lines of scripts, times, sizes, GPUs, file names. */
#include <stdio.h>

#include "base/parse.h"
#include "cli/slurm.h"

#define WORDS_MAX 64

/* ---- #SBATCH lines ---- */

static int unclosed(size_t line, struct err *e)
{
    return err_set(e, ERR_INVALID, "line %zu: a quote is not closed", line);
}

/* Takes one word off *s, as a shell would: quotes group, a backslash takes the next as it is. */
static int take_word(struct str *s, size_t line, struct buf *out, struct err *e)
{
    char quote = '\0';
    size_t i = 0;
    for (; i < s->n; i++) {
        char c = s->p[i];
        if (quote == '\0' && (c == ' ' || c == '\t'))
            break;
        if (quote && c == quote)
            quote = '\0';
        else if (!quote && (c == '"' || c == '\''))
            quote = c;
        else if (c == '\\' && quote != '\'' && i + 1 < s->n)
            buf_addc(out, s->p[++i]);
        else
            buf_addc(out, c);
    }
    *s = (struct str){ s->p + i, s->n - i };
    return quote ? unclosed(line, e) : buf_check(out, e);
}

static int split_line(struct slurm_script *sc, struct str s, struct arena *a,
                      const char ***out_words, size_t *out_n, struct err *e)
{
    const char **words = arena_array(a, const char *, WORDS_MAX + 1);
    size_t n = 0;
    for (;;) {
        AUTO(buf_free) struct buf word = BUF(8192);
        s = str_trim(s);
        if (s.n == 0 || s.p[0] == '#') /* a comment behind the options */
            break;
        if (n == WORDS_MAX)
            return err_set(e, ERR_TOO_LARGE, "line %zu: more than %d words", sc->line, WORDS_MAX);
        if (take_word(&s, sc->line, &word, e) < 0)
            return -1;
        struct str text = buf_str(&word);
        if (memchr(text.p, '\0', text.n))
            return err_set(e, ERR_INVALID, "line %zu: it holds a NUL", sc->line);
        words[n++] = arena_strndup(a, text.p, text.n);
    }
    *out_words = words;
    *out_n = n;
    return 1;
}

int slurm_next_line(struct slurm_script *s, struct arena *a, const char ***out_words, size_t *out_n,
                    struct err *e)
{
    static const char mark[] = "#SBATCH";
    struct str line;
    while (str_next_line(&s->rest, &line)) {
        s->line++;
        struct str text = str_trim(line);
        if (line.n >= sizeof mark - 1 && memcmp(line.p, mark, sizeof mark - 1) == 0) {
            struct str options = { line.p + sizeof mark - 1, line.n - (sizeof mark - 1) };
            if (options.n == 0 || options.p[0] == ' ' || options.p[0] == '\t')
                return split_line(s, options, a, out_words, out_n, e);
        }
        if (text.n && text.p[0] != '#') {
            s->rest.n = 0; /* as with Slurm: the first command ends the options */
            break;
        }
    }
    return 0;
}

/* ---- values ---- */

static int bad_time(struct str text, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is no time limit", STR_ARG(text));
    return err_hint(e, "write minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S");
}

int slurm_time_seconds(struct str text, uint64_t *out, struct err *e)
{
    struct str days, clock = text, part;
    uint64_t d = 0, v[3] = { 0 };
    size_t n = 0;
    struct err why;
    if (str_is(text, "UNLIMITED") || str_is(text, "INFINITE")) {
        *out = 0;
        return 0;
    }
    bool has_days = str_cut(text, '-', &days, &clock);
    if (!has_days)
        clock = text;
    else if (parse_u64(days, 100000, &d, &why) < 0)
        return bad_time(text, e);
    for (bool more = true; more; n++) {
        more = str_cut(clock, ':', &part, &clock);
        if (n == 3 || parse_u64(part, 100000000, &v[n], &why) < 0)
            return bad_time(text, e);
    }
    if (has_days)
        *out = ((d * 24 + v[0]) * 60 + v[1]) * 60 + v[2]; /* D-H[:M[:S]] */
    else if (n == 3)
        *out = (v[0] * 60 + v[1]) * 60 + v[2];
    else
        *out = v[0] * 60 + v[1]; /* M[:S] */
    return 0;
}

static int no_dependency(struct str kind, struct err *e)
{
    static const struct {
        const char *kind, *instead;
    } known[] = {
        { "after", "a job starts when another has ended, not when it has started" },
        { "singleton", "name the job before: afterany:17" },
        { "aftercorr", "an array starts when all of the other has ended: afterok:17" },
        { "afterburstbuffer", "there are no burst buffers" },
    };
    err_set(e, ERR_INVALID, "--dependency: '%.*s' is not supported", STR_ARG(kind));
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_is(kind, known[i].kind))
            return err_hint(e, "%s", known[i].instead);
    return err_hint(e, "write afterok:17:18, afterany:17 or afternotok:17, with commas between");
}

int slurm_dependency(const char *text, struct arena *a, struct opt_list *out, struct err *e)
{
    static const struct {
        const char *kind, *when;
    } kinds[] = { { "afterok", "ok" }, { "afterany", "any" }, { "afternotok", "bad" } };
    struct str rest = str_of(text), one, kind, jobs, job;
    struct opt_list list = { 0 };
    if (strchr(text, '?')) {
        err_set(e, ERR_INVALID, "--dependency: '?' is not supported: all of them have to be met");
        return err_hint(e, "separate them with commas");
    }
    while (rest.n) {
        const char *when = NULL;
        str_cut(rest, ',', &one, &rest);
        str_cut(one, ':', &kind, &jobs);
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
            when = str_is(kind, kinds[i].kind) ? kinds[i].when : when;
        if (!when || jobs.n == 0)
            return no_dependency(when ? one : kind, e);
        while (jobs.n) {
            str_cut(jobs, ':', &job, &jobs);
            if (list.n == OPT_LIST_MAX)
                return err_set(e, ERR_TOO_LARGE, "--dependency: more than %d jobs", OPT_LIST_MAX);
            list.item[list.n++] = arena_printf(a, "%s:%.*s", when, STR_ARG(job));
        }
    }
    *out = list;
    return 0;
}

int slurm_memory_mib(struct str text, uint64_t *out, struct err *e)
{
    static const struct {
        char letter;
        uint64_t kib;
    } units[] = { { 'K', 1 }, { 'M', 1024 }, { 'G', 1024 * 1024 }, { 'T', 1024 * 1024 * 1024 } };
    struct str number = text;
    uint64_t v, kib = 1024;
    struct err why;
    if (number.n && (number.p[number.n - 1] == 'B' || number.p[number.n - 1] == 'b'))
        number.n--;
    char last = number.n ? number.p[number.n - 1] : '\0';
    last = last >= 'a' && last <= 'z' ? (char)(last - 'a' + 'A') : last;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (last == units[i].letter) {
            kib = units[i].kib;
            number.n--;
            break;
        }
    if (parse_u64(number, 1000000000, &v, &why) < 0) {
        err_set(e, ERR_INVALID, "'%.*s' is no amount of memory", STR_ARG(text));
        return err_hint(e, "write 16G, 512M, or a number of megabytes");
    }
    *out = (v * kib + 1023) / 1024;
    return 0;
}

int slurm_gpus(struct str text, struct str *out_type, uint64_t *out_n, struct err *e)
{
    struct str first, rest, type = { "", 0 };
    struct err why;
    uint64_t n;
    struct str all = text;
    if (str_cut(text, ':', &first, &rest) && str_is(first, "gpu"))
        text = rest;
    else if (str_is(text, "gpu"))
        text = STR("1");
    if (str_cut(text, ':', &first, &rest)) {
        type = first;
        text = rest;
    }
    if (parse_u64(text, 4096, &n, &why) < 0) {
        err_set(e, ERR_INVALID, "'%.*s' is no number of GPUs", STR_ARG(all));
        return err_hint(e, "write --gres=gpu:2, --gres=gpu:a100:2, --gpus=2 or --gpus=a100:2");
    }
    *out_type = type;
    *out_n = n;
    return 0;
}

/* ---- file names ---- */

static void add_literal(struct buf *out, char c)
{
    if (c == '\'')
        buf_addz(out, "'\\''");
    else
        buf_addc(out, c);
}

void slurm_file_expression(const char *pattern, struct buf *out)
{
    static const struct {
        char letter;
        const char *expression;
    } parts[] = {
        { 'j', "${SLURM_JOB_ID:-0}" },
        { 'J', "${SLURM_JOB_ID:-0}" },
        { 'A', "${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-0}}" },
        { 'a', "${SLURM_ARRAY_TASK_ID:-0}" },
        { 'x', "${SLURM_JOB_NAME:-job}" },
        { 'u', "${USER:-user}" },
        { 'N', "$(hostname)" },
        { 'n', "${SLURM_NODEID:-0}" },
        { 't', "${SLURM_PROCID:-0}" },
    };
    buf_addc(out, '\'');
    for (const char *p = pattern; *p; p++) {
        const char *expression = NULL;
        size_t digits = *p == '%' ? strspn(p + 1, "0123456789") : 0; /* %4j: padding is dropped */
        for (size_t i = 0; *p == '%' && i < ARRAY_LEN(parts); i++)
            if (parts[i].letter == p[1 + digits])
                expression = parts[i].expression;
        if (expression) {
            buf_printf(out, "'\"%s\"'", expression);
            p += digits + 1;
        } else {
            add_literal(out, *p);
            p += *p == '%' && p[1] == '%';
        }
    }
    buf_addc(out, '\'');
}
