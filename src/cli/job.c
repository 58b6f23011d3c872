#include "cli/job.h"

#include <stdio.h>

#include "base/parse.h"
#include "cli/field.h"
#include "cli/text.h"

const struct job_word_info *job_word_info(enum job_word w)
{
    static const struct job_word_info infos[] = {
#define X(id, name, letters, slurm, ended, colour) { name, letters, slurm, ended, TINT_##colour },
        JOB_WORDS(X)
#undef X
    };
    return &infos[(unsigned)w < JOB_WORD_COUNT ? w : JOB_IS_UNKNOWN];
}

static enum job_word word_of(struct str name)
{
    for (int i = 0; i < JOB_WORD_COUNT; i++)
        if (str_is(name, job_word_info((enum job_word)i)->name))
            return (enum job_word)i;
    return JOB_IS_UNKNOWN;
}

void job_read(const struct json *obj, struct job *out)
{
    *out = (struct job){
        .id = field_u64(obj, "id"),
        .run = field_u64(obj, "run"),
        .replicas = field_u64(obj, "replicas"),
        .gpu_milli = field_u64(obj, "gpu_milli"),
        .name = field_str(obj, "name"),
        .tenant = field_str(obj, "tenant"),
        .user = field_str(obj, "user"),
        .priority = field_str(obj, "priority"),
        .reason = field_str(obj, "reason"),
        .reason_text = field_str(obj, "reason_text"),
        .end = field_str(obj, "end"),
        .message = field_str(obj, "message"),
        .state = word_of(field_str(obj, "state")),
        .submitted_ms = field_i64(obj, "submitted_ms", 0),
        .started_ms = field_i64(obj, "started_ms", 0),
        .ended_ms = field_i64(obj, "ended_ms", 0),
        .exit_code = field_i64(obj, "exit_code", -1),
        .exit_signal = field_i64(obj, "exit_signal", 0),
        .array = field_u64(obj, "array"),
        .array_index = field_i64(obj, "array_index", -1),
        .where = json_find(obj, "where"),
    };
    if (!json_is_array(out->where))
        out->where = NULL;
}

const char *job_id_text(const struct job *j, char out[static 48])
{
    if (j->array && j->array_index >= 0)
        snprintf(out, 48, "%llu_%lld", (unsigned long long)j->array, (long long)j->array_index);
    else
        snprintf(out, 48, "%llu", (unsigned long long)j->id);
    return out;
}

int64_t job_elapsed_ms(const struct job *j, int64_t now_ms)
{
    if (j->started_ms <= 0)
        return 0;
    int64_t end = j->ended_ms > 0 ? j->ended_ms : now_ms;
    return MAX(end - j->started_ms, INT64_C(0));
}

void job_add_where(const struct job *j, struct buf *out)
{
    bool first = true;
    for (const struct json *w = j->where ? json_first(j->where) : NULL; w;
         w = json_next(j->where, w), first = false) {
        const struct json *gpus = json_find(w, "gpus");
        char sign = ':';
        struct str node = field_str(w, "node");
        buf_printf(out, "%s%.*s", first ? "" : " ", STR_ARG(node));
        for (const struct json *g = json_is_array(gpus) ? json_first(gpus) : NULL; g;
             g = json_next(gpus, g), sign = ',') {
            char number[40];
            json_number_text(g, number);
            buf_printf(out, "%c%s", sign, number);
        }
    }
}

void job_add_holder(const struct json *holder, struct buf *out)
{
    struct str user = field_str(holder, "user"), name = field_str(holder, "name");
    uint64_t milli = field_u64(holder, "milli");
    char share[24];
    if (field_known(holder, "id"))
        buf_printf(out, "%llu %.*s ", (unsigned long long)field_u64(holder, "id"), STR_ARG(user));
    buf_add(out, name);
    if (milli && milli < 1000)
        buf_printf(out, " (%s)", text_milli(milli, share));
}

const char *job_slurm_state(const struct job *j)
{
    static const struct {
        const char *end, *word;
    } ends[] = {
        { "time_limit", "TIMEOUT" },
        { "out_of_memory", "OUT_OF_MEMORY" },
        { "lost", "NODE_FAIL" },
    };
    if (j->state == JOB_IS_FAILED)
        for (size_t i = 0; i < ARRAY_LEN(ends); i++)
            if (str_is(j->end, ends[i].end))
                return ends[i].word;
    return job_word_info(j->state)->slurm;
}

int job_shell_code(const struct job *j)
{
    if (j->exit_signal > 0)
        return 128 + (int)MIN(j->exit_signal, INT64_C(127));
    if (j->exit_code >= 0)
        return (int)MIN(j->exit_code, INT64_C(255));
    return j->state == JOB_IS_SUCCEEDED ? 0 : 1;
}

/* ---- ids ---- */

static int bad_ref(const char *text, struct err *e)
{
    err_set(e, ERR_INVALID, "'%s' is no job", text);
    return err_hint(
        e, "write an id (17), a range (3-7), or an array's element (17_3, 17_[0-9], 17_*)");
}

static bool number_range(struct str s, uint64_t *from, uint64_t *to)
{
    struct str head, tail;
    struct err why;
    bool range = str_cut(s, '-', &head, &tail);
    if (parse_u64(head, INT64_MAX, from, &why) < 0)
        return false;
    *to = *from;
    return !range || (parse_u64(tail, INT64_MAX, to, &why) == 0 && *to >= *from);
}

int job_ref_parse(const char *text, struct job_ref *out, struct err *e)
{
    struct job_ref r = { 0 };
    struct str head, index;
    r.is_array = str_cut(str_of(text), '_', &head, &index);
    if (!number_range(head, &r.first, &r.last) || r.first == 0)
        return bad_ref(text, e);
    if (r.last - r.first >= JOB_RANGE_MAX)
        return err_set(e, ERR_TOO_LARGE, "'%s' names more than %d jobs", text, JOB_RANGE_MAX);
    if (r.is_array) {
        if (index.n > 2 && index.p[0] == '[' && index.p[index.n - 1] == ']')
            index = (struct str){ index.p + 1, index.n - 2 };
        r.all = str_is(index, "*");
        if (r.first != r.last || (!r.all && !number_range(index, &r.index_from, &r.index_to)))
            return bad_ref(text, e);
    }
    *out = r;
    return 0;
}
