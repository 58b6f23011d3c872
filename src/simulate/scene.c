/* A scene: a few machines, tenants and jobs in a text that is written by hand, one thing a line:
 *
 *     machines 2 gpus=8
 *     tenant vision weight=3
 *     job vision/anna at=9h gpus=1 run=2h count=4
 *
 * What follows a '#' is a remark.  Times are durations since a Monday's midnight. */
#include "base/map.h"
#include "base/parse.h"
#include "simulate/trace.h"
#include "sys/file.h"

#define TEXT_BYTES_MAX ((size_t)1 << 20)
#define ARENA_MAX ((size_t)256 << 20)
#define LINE_BYTES_MAX 1024
#define HINT_BYTES_MAX 256
#define JOBS_MAX 100000u
#define NODES_MAX 1000u
#define TENANTS_MAX 1000u
#define WEIGHT_MILLI_MAX 1000000
#define TIME_MS_MAX (INT64_C(3650) * 24 * 3600 * 1000)

enum thing {
    MACHINES = 1,
    TENANT = 2,
    JOB = 4
};

static const struct {
    const char *word, *syntax;
    enum thing thing;
} things[] = {
    { "machines", "machines N", MACHINES },
    { "tenant", "tenant NAME", TENANT },
    { "job", "job TENANT/USER", JOB },
};

/* All that a line can say; a line begins with the defaults. */
struct said {
    struct str name;
    int64_t gpus, replicas, count;
    int64_t weight_milli, guarantee_milli, limit_gpus_milli;
    int64_t at_ms, run_ms, every_ms, limit_ms, freeze_ms;
    int64_t priority;
    struct str in;
};

static const struct said defaults = {
    .gpus = 1,
    .replicas = 1,
    .count = 1,
    .weight_milli = 1000,
    .limit_gpus_milli = -1,
    .priority = PRIO_NORMAL,
};

enum value {
    NUMBER,
    MILLI,
    TIME,
    TIME_OR_NO, /* "no" is -1 */
    PRIORITY,
    NAME
};

static const struct key {
    const char *name;
    unsigned of, needed; /* things that have it, and must */
    enum value value;
    size_t offset;
    int64_t min, max;
    const char *help;
} keys[] = {
#define AT(field) offsetof(struct said, field)
    { "gpus", MACHINES, 0, NUMBER, AT(gpus), 1, GPUS_PER_NODE_MAX, "GPUs of each; without it 1" },
    { "weight", TENANT, 0, MILLI, AT(weight_milli), 1, WEIGHT_MILLI_MAX, "without it 1" },
    { "guarantee", TENANT, 0, MILLI, AT(guarantee_milli), 0, WEIGHT_MILLI_MAX,
      "GPUs it has before anything is shared" },
    { "max", TENANT, 0, MILLI, AT(limit_gpus_milli), 0, WEIGHT_MILLI_MAX,
      "GPUs it holds at a time, at most" },
    { "in", TENANT, 0, NAME, AT(in), 0, 0, "the tenant above it" },
    { "at", JOB, JOB, TIME, AT(at_ms), 0, TIME_MS_MAX, "when it comes: 9h, 1d12h; needed" },
    { "run", JOB, JOB, TIME, AT(run_ms), 1, TIME_MS_MAX, "how long it runs; needed" },
    { "gpus", JOB, 0, NUMBER, AT(gpus), 1, GPUS_PER_NODE_MAX, "of each replica; without it 1" },
    { "replicas", JOB, 0, NUMBER, AT(replicas), 1, REPLICAS_MAX, "that start together" },
    { "count", JOB, 0, NUMBER, AT(count), 1, JOBS_MAX, "so many jobs alike" },
    { "every", JOB, 0, TIME, AT(every_ms), 0, TIME_MS_MAX,
      "each so much later; without it at once" },
    { "limit", JOB, 0, TIME, AT(limit_ms), 1, TIME_MS_MAX, "how long it may run" },
    { "freeze", JOB, 0, TIME_OR_NO, AT(freeze_ms), 1, TIME_MS_MAX,
      "what a freeze costs it; no: it cannot be frozen" },
    { "priority", JOB, 0, PRIORITY, AT(priority), 0, 0, "low, normal, high or urgent" },
#undef AT
};
_Static_assert(ARRAY_LEN(keys) <= 32, "those of a line are a bit set");

struct reading {
    struct trace t;
    const char *file;
    size_t line;
    struct names tenants;
    struct trace_job *job; /* as they come */
    size_t jobs, jobs_cap;
};

static void reading_free(struct reading *r)
{
    trace_free(&r->t);
    names_free(&r->tenants);
    free(r->job);
}

static int fail(const struct reading *r, const char *field, struct err *e)
{
    return csv_wrap(r->file, r->line, field, e);
}

static int too_many(const struct reading *r, const char *what, uint32_t most, struct err *e)
{
    err_set(e, ERR_INVALID, "more than %u %s", most, what);
    fail(r, what, e);
    return err_hint(e, "a scene is small; larger things are traces");
}

/* ---- words ---- */

static int read_priority(struct str text, int64_t *out, struct err *e)
{
    for (int64_t p = 0; p < PRIO_COUNT; p++)
        if (str_is(text, priority_name((enum priority)p))) {
            *out = p;
            return 0;
        }
    err_set(e, ERR_INVALID, "'%.*s' is no priority", (int)MIN(text.n, (size_t)40), text.p);
    return err_hint(e, "low, normal, high or urgent");
}

static int read_time(const struct key *k, struct str text, int64_t *out, struct err *e)
{
    if (k->value == TIME_OR_NO && str_is(text, "no")) {
        *out = -1;
        return 0;
    }
    if (parse_duration_ms(text, out, e) < 0)
        return -1;
    if (*out >= k->min && *out <= k->max)
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is too short or too long", (int)MIN(text.n, (size_t)40),
            text.p);
    return err_hint(e, "above 0, at most ten years");
}

static int read_value(const struct key *k, struct str text, struct said *out, struct err *e)
{
    void *at = (char *)out + k->offset;
    int64_t *number = at;
    uint64_t milli;
    switch (k->value) {
    case NUMBER: return parse_i64(text, k->min, k->max, number, e);
    case MILLI:
        if (parse_milli(text, (uint64_t)k->max, &milli, e) < 0)
            return -1;
        *number = (int64_t)milli;
        if (*number >= k->min)
            return 0;
        err_set(e, ERR_INVALID, "it is 0");
        return err_hint(e, "write a number above 0");
    case TIME:
    case TIME_OR_NO: return read_time(k, text, number, e);
    case PRIORITY: return read_priority(text, number, e);
    case NAME: *(struct str *)at = text; return 0;
    }
    return 0;
}

static const struct key *find_key(const struct reading *r, enum thing thing, struct str name,
                                  struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if ((keys[i].of & thing) && str_is(name, keys[i].name))
            return &keys[i];
    AUTO(buf_free) struct buf known = BUF(HINT_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i].of & thing)
            buf_printf(&known, " %s=", keys[i].name);
    err_set(e, ERR_INVALID, "nothing of the line is called '%.*s'", (int)MIN(name.n, (size_t)40),
            name.p);
    fail(r, "key", e);
    err_hint(e, "known are:%s", buf_str(&known).p);
    return NULL;
}

/* "gpus=8 weight=2": each at most once. */
static int read_keys(const struct reading *r, enum thing thing, struct str rest, struct said *out,
                     struct err *e)
{
    struct str word, name, value;
    uint32_t given = 0;
    while (str_next_word(&rest, &word)) {
        str_cut(word, '=', &name, &value);
        const struct key *k = find_key(r, thing, name, e);
        if (!k)
            return -1;
        uint32_t bit = UINT32_C(1) << (k - keys);
        if (given & bit) {
            err_set(e, ERR_INVALID, "it is said twice");
            fail(r, k->name, e);
            return err_hint(e, "leave one of them out");
        }
        given |= bit;
        if (read_value(k, value, out, e) < 0)
            return fail(r, k->name, e);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if ((keys[i].needed & thing) && !(given >> i & 1)) {
            err_set(e, ERR_INVALID, "missing");
            fail(r, keys[i].name, e);
            return err_hint(e, "for example: job vision/anna at=9h run=2h gpus=1");
        }
    return 0;
}

/* ---- things ---- */

static int add_machines(struct reading *r, const struct said *s, struct err *e)
{
    int64_t n;
    if (parse_i64(s->name, 1, NODES_MAX, &n, e) < 0)
        return fail(r, "machines", e);
    for (; n > 0; n--) {
        if (r->t.nodes == NODES_MAX)
            return too_many(r, "machines", NODES_MAX, e);
        char *name = arena_printf(&r->t.arena, "machine-%u", r->t.nodes + 1);
        r->t.node[r->t.nodes++] = (struct event_node){
            .name = str_of(name),
            .model = STR("gpu"),
            .gpus = (uint32_t)s->gpus,
            .cpu_milli = 1,
            .mem_mib = 1,
        };
    }
    return 0;
}

static int find_tenant(const struct reading *r, const char *field, struct str name, uint32_t *out,
                       struct err *e)
{
    *out = names_find(&r->tenants, name);
    if (*out != NAME_NONE)
        return 0;
    err_set(e, ERR_INVALID, "no line above names a tenant '%.*s'",
            (int)MIN(name.n, (size_t)NAME_MAX_BYTES), name.p);
    fail(r, field, e);
    return err_hint(e, "write a line like: tenant vision weight=1");
}

static int check_name(const struct reading *r, const char *field, struct str name, struct err *e)
{
    if (name.n && name.n <= NAME_MAX_BYTES && !memchr(name.p, 0, name.n))
        return 0;
    err_set(e, ERR_INVALID, "a name has 1 to %d bytes", NAME_MAX_BYTES);
    fail(r, field, e);
    return err_hint(e, "for example: job vision/anna at=9h run=2h gpus=1");
}

static int add_tenant(struct reading *r, const struct said *s, struct err *e)
{
    uint32_t parent = NAME_NONE;
    if (r->t.tenants == TENANTS_MAX)
        return too_many(r, "tenants", TENANTS_MAX, e);
    if (check_name(r, "tenant", s->name, e) < 0 ||
        (s->in.n && find_tenant(r, "in", s->in, &parent, e) < 0))
        return -1;
    if (names_intern(&r->tenants, s->name) != r->t.tenants) {
        err_set(e, ERR_INVALID, "there is one of that name already");
        fail(r, "tenant", e);
        return err_hint(e, "give each tenant its own name");
    }
    struct trace_tenant *t = &r->t.tenant[r->t.tenants++];
    *t = (struct trace_tenant){
        .name = arena_strndup(&r->t.arena, s->name.p, s->name.n),
        .parent = s->in.n ? r->t.tenant[parent].name : "",
        .weight_milli = (uint32_t)s->weight_milli,
        .guarantee_milli = (uint64_t)s->guarantee_milli,
        .limit = AMOUNTS_NO_LIMIT,
    };
    if (s->limit_gpus_milli >= 0)
        t->limit.of[RES_GPU] = (uint64_t)s->limit_gpus_milli;
    return 0;
}

/* Replicas that the empty machines hold. */
static uint64_t room_for(const struct reading *r, int64_t gpus)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->t.nodes; i++)
        n += r->t.node[i].gpus / (uint64_t)gpus;
    return n;
}

static int add_jobs(struct reading *r, const struct said *s, struct err *e)
{
    struct str tenant, user;
    struct trace_job j = {
        .duration_ms = s->run_ms,
        .models = "",
        .gpus = (uint32_t)(s->gpus * s->replicas),
        .request = { .replicas = (uint32_t)s->replicas, .gpus = (uint16_t)s->gpus },
        .priority = (enum priority)s->priority,
        .thaw_cost_ms = s->freeze_ms,
        .limit_ms = s->limit_ms,
        .estimate_ms = s->limit_ms,
    };
    str_cut(s->name, '/', &tenant, &user);
    if (find_tenant(r, "job", tenant, &j.tenant, e) < 0 || check_name(r, "user", user, e) < 0)
        return -1;
    if (room_for(r, s->gpus) < (uint64_t)s->replicas) {
        err_set(e, ERR_INVALID, "the machines above do not hold %lld times %lld GPUs",
                (long long)s->replicas, (long long)s->gpus);
        fail(r, "gpus", e);
        return err_hint(e, "the job could never start: ask for less, or write machines before it");
    }
    if (s->every_ms > (TIME_MS_MAX - s->at_ms) / s->count) {
        err_set(e, ERR_INVALID, "the last of them comes too late");
        fail(r, "every", e);
        return err_hint(e, "within ten years");
    }
    if ((uint32_t)s->count > JOBS_MAX - (uint32_t)r->jobs)
        return too_many(r, "jobs", JOBS_MAX, e);
    j.user = arena_strndup(&r->t.arena, user.p, user.n);
    for (int64_t i = 0; i < s->count; i++) {
        vec_grow(r->job, r->jobs, r->jobs_cap);
        j.id = r->jobs + 1;
        j.submit_ms = s->at_ms + i * s->every_ms;
        r->job[r->jobs++] = j;
    }
    return 0;
}

static int add_thing(struct reading *r, enum thing thing, const struct said *s, struct err *e)
{
    switch (thing) {
    case MACHINES: return add_machines(r, s, e);
    case TENANT: return add_tenant(r, s, e);
    case JOB: return add_jobs(r, s, e);
    }
    return 0;
}

static int read_line(struct reading *r, struct str line, struct err *e)
{
    struct str rest, word, remark;
    struct said s = defaults;
    str_cut(line, '#', &rest, &remark);
    if (!str_next_word(&rest, &word))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(things); i++) {
        if (!str_is(word, things[i].word))
            continue;
        if (!str_next_word(&rest, &s.name))
            s.name = STR("");
        if (read_keys(r, things[i].thing, rest, &s, e) < 0)
            return -1;
        return add_thing(r, things[i].thing, &s, e);
    }
    err_set(e, ERR_INVALID, "'%.*s' begins no line", (int)MIN(word.n, (size_t)40), word.p);
    fail(r, "line", e);
    return err_hint(e, "a line begins with machines, tenant or job");
}

/* Ids in the order of submission: what the core takes. */
static int number_jobs(struct reading *r, struct err *e)
{
    r->t.job = arena_array(&r->t.arena, struct trace_job, r->jobs);
    r->t.jobs = (uint32_t)r->jobs;
    if (r->jobs)
        memcpy(r->t.job, r->job, r->jobs * sizeof *r->job);
    if (trace_finish(&r->t, e) < 0)
        return -1;
    for (uint32_t i = 0; i < r->t.jobs; i++)
        r->t.job[i].id = i + 1;
    return 0;
}

int trace_parse_scene(const struct csv_source *from, struct trace *out, struct err *e)
{
    AUTO(reading_free) struct reading r = { .file = from->file };
    const char *slash = strrchr(from->file, '/'), *base = slash ? slash + 1 : from->file;
    struct str text = from->text, line;
    r.t.arena.limit = ARENA_MAX;
    r.t.simulated = true;
    r.t.name = arena_strndup(&r.t.arena, base, strcspn(base, "."));
    r.t.node = arena_array(&r.t.arena, struct event_node, NODES_MAX);
    r.t.tenant = arena_array(&r.t.arena, struct trace_tenant, TENANTS_MAX);
    while (str_next_line(&text, &line)) {
        r.line++;
        if (line.n > LINE_BYTES_MAX) {
            err_set(e, ERR_INVALID, "longer than %d bytes", LINE_BYTES_MAX);
            fail(&r, "line", e);
            return err_hint(e, "one thing a line");
        }
        if (read_line(&r, line, e) < 0)
            return -1;
    }
    if (number_jobs(&r, e) < 0)
        return -1;
    *out = r.t;
    r.t = (struct trace){ 0 };
    return 0;
}

int trace_read_scene(const char *file, struct trace *out, struct err *e)
{
    AUTO(buf_free) struct buf text = { 0 };
    if (file_read(file, TEXT_BYTES_MAX, &text, e) < 0)
        return -1;
    const struct csv_source from = { file, buf_str(&text) };
    return trace_parse_scene(&from, out, e);
}

void scene_print_reference(struct buf *out)
{
    buf_addz(out, "| line | may say | |\n|---|---|---|\n");
    for (size_t t = 0; t < ARRAY_LEN(things); t++) {
        const char *first = things[t].syntax;
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            if (keys[i].of & things[t].thing) {
                buf_printf(out, "| %s%s%s | `%s=` | %s |\n", *first ? "`" : "", first,
                           *first ? "`" : "", keys[i].name, keys[i].help);
                first = "";
            }
    }
}
