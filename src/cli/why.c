#include "cli/why.h"

#include "base/date.h"
#include "cli/field.h"
#include "cli/lent.h"
#include "cli/text.h"

static const struct json *first_of(const struct json *list)
{
    return json_is_array(list) ? json_first(list) : NULL;
}

/* Sentences of the server have times in UTC; people read the clock on their wall. */
static void add_sentence(struct buf *b, struct str text)
{
    const size_t n = strlen("2026-03-01T12:00:00Z");
    while (text.n) {
        size_t at = 0;
        int64_t ms;
        struct err e;
        char local[24];
        while (at + n <= text.n && (text.p[at + n - 1] != 'Z' ||
                                    date_parse((struct str){ text.p + at, n }, &ms, &e) < 0))
            at++;
        if (at + n > text.n) {
            text_add_clean(b, text);
            return;
        }
        text_add_clean(b, (struct str){ text.p, at });
        buf_addz(b, text_time_seconds(ms, local));
        text = (struct str){ text.p + at + n, text.n - at - n };
    }
}

static void add_item(struct buf *b, struct str text)
{
    buf_addz(b, "  - ");
    add_sentence(b, text);
    buf_addc(b, '\n');
}

/* "job 17 is queued and has waited 5m", "job 17 was running at ..., since ..., on n0, n1" */
static void add_head(const struct json *root, struct buf *b)
{
    char at[24], waited[24], since[24];
    int64_t at_ms = field_i64(root, "at_ms", 0), since_ms = field_i64(root, "since_ms", 0);
    int64_t waited_ms = field_i64(root, "waited_ms", 0);
    const struct json *nodes = json_find(root, "nodes");
    buf_printf(b, "job %llu %s ", (unsigned long long)field_u64(root, "job"), at_ms ? "was" : "is");
    text_add_clean(b, field_str(root, "state"));
    if (at_ms)
        buf_printf(b, " at %s", text_time_seconds(at_ms, at));
    if (waited_ms > 0)
        buf_printf(b, " and %s waited %s", at_ms ? "had" : "has", text_duration(waited_ms, waited));
    if (since_ms)
        buf_printf(b, ", since %s", text_time_seconds(since_ms, since));
    for (const struct json *n = first_of(nodes); n; n = json_next(nodes, n)) {
        struct str name;
        struct err e;
        buf_addz(b, n == first_of(nodes) ? ", on " : ", ");
        if (json_as_str(n, 256, &name, &e) == 0)
            text_add_clean(b, name);
    }
}

static void add_reasons(const struct json *root, struct buf *b)
{
    const struct json *reasons = json_find(root, "reasons"), *first = first_of(reasons);
    struct str message = field_str(root, "message"); /* how it ended, or how its start goes */
    buf_addz(b, first || message.n ? ":\n" : "\n");
    if (message.n)
        add_item(b, message);
    for (const struct json *r = first; r; r = json_next(reasons, r)) {
        struct str text = field_str(r, "text");
        add_item(b, text.n ? text : field_str(r, "code"));
    }
}

static void add_before(const struct json *root, struct buf *b)
{
    const struct json *before = json_find(root, "before");
    unsigned long long own = field_u64(before, "own"), users = field_u64(before, "users");
    if (!before || own + users == 0)
        return;
    buf_addz(b, field_i64(root, "at_ms", 0) ? "When room came it was first the turn of "
                                            : "When room comes it is first the turn of ");
    if (own)
        buf_printf(b, "%llu job%s of its user", own, own == 1 ? "" : "s");
    if (users)
        buf_printf(b, "%s%llu other user%s", own ? " and of " : "", users, users == 1 ? "" : "s");
    buf_addz(b, ".\n");
}

static void add_starts(const struct json *root, struct buf *b)
{
    char half[24], most[24];
    const struct json *starts = json_find(root, "starts");
    if (!starts)
        return;
    int64_t foreseen_ms = field_i64(starts, "foreseen_ms", 0);
    if (foreseen_ms && !field_i64(root, "at_ms", 0))
        buf_printf(b, "It was expected to start at about %s, which has passed.\n",
                   text_time(foreseen_ms, half));
    int64_t p50_ms = field_i64(starts, "p50_in_ms", 0), p90_ms = field_i64(starts, "p90_in_ms", 0);
    buf_printf(b, "%s in about %s, in nine of ten cases within %s.\n",
               field_i64(root, "at_ms", 0) ? "It was expected to start" : "It will start",
               text_duration(MAX(p50_ms, INT64_C(1000)), half),
               text_duration(MAX(p90_ms, INT64_C(1000)), most));
}

/* Machines that would be there, if their owners had not said that they want them. */
static void add_held(const struct json *root, struct buf *b)
{
    const struct json *held = json_find(root, "held");
    for (const struct json *h = first_of(held); h; h = json_next(held, h))
        lent_add_held(b, field_str(h, "node"), h);
}

static void add_helps(const struct json *root, struct buf *b)
{
    const struct json *helps = json_find(root, "helps");
    if (!first_of(helps))
        return;
    buf_addz(b, field_i64(root, "at_ms", 0) ? "It would have started then if you had said:\n"
                                            : "It would start now if you\n");
    for (const struct json *h = first_of(helps); h; h = json_next(helps, h))
        add_item(b, field_str(h, "text"));
}

/* "  - job 12 'train' of anna (vision), 2 GPUs" */
static void add_holder(const struct json *job, struct buf *b)
{
    char gpus[24];
    uint64_t milli = field_u64(job, "gpu_milli");
    buf_printf(b, "  - job %llu", (unsigned long long)field_u64(job, "id"));
    if (field_str(job, "name").n) {
        buf_addc(b, ' ');
        text_add_clean(b, field_str(job, "name"));
    }
    buf_addz(b, " of ");
    text_add_clean(b, field_str(job, "user"));
    buf_addz(b, " (");
    text_add_clean(b, field_str(job, "tenant"));
    buf_addc(b, ')');
    if (milli)
        buf_printf(b, ", %s GPU%s", text_milli(milli, gpus), milli == 1000 ? "" : "s");
    buf_addc(b, '\n');
}

static void add_instead(const struct json *root, struct buf *b)
{
    const struct json *instead = json_find(root, "instead");
    const struct json *jobs = instead ? json_find(instead, "jobs") : NULL;
    unsigned long long others = instead ? field_u64(instead, "others") : 0;
    if (!first_of(jobs) && others == 0)
        return;
    buf_addz(b, "On the machines that could run it were\n");
    for (const struct json *j = first_of(jobs); j; j = json_next(jobs, j))
        add_holder(j, b);
    if (others)
        buf_printf(b, "  - %llu %sjob%s\n", others, first_of(jobs) ? "other " : "",
                   others == 1 ? "" : "s");
}

void why_print(const struct json *answer, struct buf *out)
{
    add_head(answer, out);
    add_reasons(answer, out);
    add_before(answer, out);
    add_starts(answer, out);
    add_held(answer, out);
    add_helps(answer, out);
    add_instead(answer, out);
}
