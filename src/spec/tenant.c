#include "spec/tenant.h"

#include "base/date.h"
#include "base/parse.h"
#include "base/tz.h"
#include "spec/start.h"

#define AT(member) offsetof(struct tenant_spec, member)

enum kind {
    KIND_TEXT,
    KIND_MILLI,
    KIND_GUARANTEE,
    KIND_LIMIT,
    KIND_USER_LIMIT,
    KIND_BUDGET,
    KIND_LIST,
    KIND_PRIORITY,
    KIND_STAGE,
    KIND_TIME,
    KIND_GROUPS
};

static const struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    size_t max;
    const char *help, *example;
} fields[] = {
    { "help", KIND_TEXT, AT(help), 400, "what it is, for people", "the vision group" },
    { "parent", KIND_TEXT, AT(parent), NAME_MAX_BYTES,
      "the tenant it is a part of; by default none", "physics" },
    { "weight", KIND_MILLI, AT(weight_milli), 0,
      "its part next to its siblings, when all want more than there is", "2" },
    { "guarantee", KIND_GUARANTEE, AT(guarantee_milli), 0,
      "GPUs that it comes first for, whatever others had less", "4" },
    { "limit", KIND_LIMIT, AT(limit), 0,
      "what it and all below it may hold at once: `gpus`, `cpus`, `memory`, `jobs`, `notebooks`, "
      "`storage` (scratch space), and `gpus_by_model`",
      "{gpus: 8, memory: 512Gi, gpus_by_model: {H100: 2}}" },
    { "user_limit", KIND_USER_LIMIT, AT(user_limit), 0, "likewise each of its users",
      "{gpus: 2, jobs: 10}" },
    { "budget", KIND_BUDGET, AT(budget_hours_milli), 0,
      "GPU-hours that it may use in each `day`, `week`, `month`, `quarter`, `year`, or `once`, "
      "counted from when it is set on: at 80 % it is warned, at 100 % it stops",
      "{gpu_hours: 1000, period: month}" },
    { "pools", KIND_LIST, AT(pool), TENANT_LIST_MAX,
      "pools whose machines it may use, `-` for machines in none; by default all",
      "[desks, \"-\"]" },
    { "profiles", KIND_LIST, AT(profile), TENANT_LIST_MAX,
      "its jobs take one of these profiles; by default they need none", "[gpu-small]" },
    { "priority", KIND_PRIORITY, AT(priority), 0, "the highest priority that its jobs may have",
      "high" },
    { "stage", KIND_STAGE, AT(stage), 0,
      "while machines are rolled out: `all` has those for everybody, `beta` also those that are "
      "tried "
      "with some, `alpha` also those that may break",
      "beta" },
    { "expires", KIND_TIME, AT(expires_ms), 0,
      "from then on it starts nothing, and what runs is frozen; a day counts whole (UTC)",
      "2027-02-28" },
    { "groups", KIND_GROUPS, AT(group), TENANT_GROUPS_MAX,
      "groups of the identity provider whose people are in it, each with a role",
      "{ml-students: member, ml-staff: lead}" },
};

static const struct {
    const char *key;
    enum resource of;
    enum {
        UNIT_MILLI,
        UNIT_SIZE,
        UNIT_COUNT
    } unit;
} amounts[] = {
    { "gpus", RES_GPU, UNIT_MILLI },
    { "cpus", RES_CPU, UNIT_MILLI },
    { "memory", RES_MEM, UNIT_SIZE },
    { "jobs", RES_JOBS, UNIT_COUNT },
    { "notebooks", RES_NOTEBOOKS, UNIT_COUNT },
    { "storage", RES_STORAGE, UNIT_SIZE },
};

static const char *const stages[] = {
#define X(id, name, help) name,
    STAGES(X)
#undef X
};

const char *stage_name(enum stage s)
{
    return (size_t)s < ARRAY_LEN(stages) ? stages[s] : "?";
}

bool stage_parse(struct str name, enum stage *out)
{
    for (size_t i = 0; i < ARRAY_LEN(stages); i++)
        if (str_is(name, stages[i])) {
            *out = (enum stage)i;
            return true;
        }
    return false;
}

static const char *const periods[] = {
#define X(id, name) name,
    PERIODS(X)
#undef X
};

const char *period_name(enum period p)
{
    return (size_t)p < ARRAY_LEN(periods) ? periods[p] : "?";
}

/* ---- periods ---- */

static int64_t month_begin(const struct tz *zone, int32_t months)
{
    struct date d = { months / 12, (uint8_t)(months % 12 + 1), 1 };
    return tz_first_ms(zone, date_days(d) * DAY_MS);
}

void period_around(enum period p, const struct tz *zone, int64_t begin_ms, int64_t now_ms,
                   int64_t *out_from_ms, int64_t *out_until_ms)
{
    int64_t days = floor_div(tz_local_ms(zone, now_ms), DAY_MS);
    struct date d = date_of_days(days);
    int32_t step = p == PERIOD_YEAR ? 12 : p == PERIOD_QUARTER ? 3 : 1;
    int32_t months = (d.year * 12 + d.month - 1) / step * step;
    int64_t first = days - (p == PERIOD_WEEK ? (date_weekday(days) + 6) % 7 : 0);
    switch (p) {
    case PERIOD_DAY:
    case PERIOD_WEEK:
        *out_from_ms = tz_first_ms(zone, first * DAY_MS);
        *out_until_ms = tz_first_ms(zone, (first + (p == PERIOD_WEEK ? 7 : 1)) * DAY_MS);
        return;
    case PERIOD_MONTH:
    case PERIOD_QUARTER:
    case PERIOD_YEAR:
        *out_from_ms = month_begin(zone, months);
        *out_until_ms = month_begin(zone, months + step);
        return;
    case PERIOD_ONCE:
    case PERIOD_COUNT: break;
    }
    *out_from_ms = begin_ms;
    *out_until_ms = INT64_MAX;
}

/* ---- reading ---- */

struct tenant_spec tenant_default(void)
{
    return (struct tenant_spec){ .weight_milli = 1000,
                                 .limit.of = AMOUNTS_NO_LIMIT,
                                 .user_limit.of = AMOUNTS_NO_LIMIT,
                                 .budget_period = PERIOD_MONTH,
                                 .priority = PRIO_URGENT };
}

static struct str keep(struct arena *a, struct str s)
{
    return (struct str){ arena_strndup(a, s.p, s.n), s.n };
}

static int read_number(const struct json *v, double min, double max, uint64_t *out, struct err *e)
{
    double x = 0;
    if (json_as_f64(v, min, max, &x, e) < 0)
        return -1;
    *out = (uint64_t)(x * 1000 + 0.5);
    return 0;
}

static int read_amount(const struct json *v, int unit, uint64_t *out, struct err *e)
{
    struct str s;
    uint64_t bytes;
    if (json_is_null(v)) {
        *out = NO_LIMIT;
        return 0;
    }
    if (unit == UNIT_MILLI)
        return read_number(v, 0, 1e6, out, e);
    if (unit == UNIT_COUNT)
        return json_as_u64(v, 1000000000, out, e);
    if (json_as_str(v, 32, &s, e) < 0 || parse_size_bytes(s, &bytes, e) < 0)
        return err_hint(e, "a size with its unit, e.g. 512Gi");
    *out = bytes >> 20;
    return 0;
}

static int read_model(const struct json_member *m, struct arena *a, struct tenant_limit *out,
                      struct err *e)
{
    uint32_t at = 0;
    if (m->key.n == 0 || m->key.n > 1024 || strlen(m->key.p) != m->key.n)
        return err_set(e, ERR_INVALID, "a model needs a name");
    while (at < out->models && !str_eq(out->by_model[at].models, m->key))
        at++;
    if (json_is_null(m->value)) {
        for (uint32_t i = at; i + 1 < out->models; i++)
            out->by_model[i] = out->by_model[i + 1];
        out->models -= at < out->models;
        return 0;
    }
    if (at == TENANT_MODELS_MAX)
        return err_set(e, ERR_INVALID, "at most %d models", TENANT_MODELS_MAX);
    if (read_number(m->value, 0, 1e6, &out->by_model[at].gpu_milli, e) < 0)
        return err_wrap(e, "%.*s", (int)MIN(m->key.n, (size_t)60), m->key.p);
    if (at == out->models)
        out->by_model[out->models++].models = keep(a, m->key);
    return 0;
}

static int read_models(const struct json *v, struct arena *a, struct tenant_limit *out,
                       struct err *e)
{
    if (json_is_null(v)) {
        out->models = 0;
        return 0;
    }
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "an object is needed: a number of GPUs each model");
    for (struct json_member m = { 0 }; json_next_member(v, &m);)
        if (read_model(&m, a, out, e) < 0)
            return -1;
    return 0;
}

static int read_limit(const struct json *v, bool of_user, struct arena *a, struct tenant_limit *out,
                      struct err *e)
{
    const char *keys[ARRAY_LEN(amounts) + 1];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
        keys[n++] = amounts[i].key;
    if (!of_user)
        keys[n++] = "gpus_by_model";
    if (json_only(v, keys, n, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        const struct json *x = json_find(v, amounts[i].key);
        if (x && read_amount(x, (int)amounts[i].unit, &out->of.of[amounts[i].of], e) < 0)
            return err_wrap(e, "%s", amounts[i].key);
    }
    const struct json *models = of_user ? NULL : json_find(v, "gpus_by_model");
    if (models && read_models(models, a, out, e) < 0)
        return err_wrap(e, "gpus_by_model");
    return 0;
}

static int read_budget(const struct json *v, struct tenant_spec *into, struct err *e)
{
    static const char *const keys[] = { "gpu_hours", "period" };
    struct str period = STR("month");
    const struct json *hours;
    if (json_only(v, keys, ARRAY_LEN(keys), e) < 0 || json_get_str(v, "period", 16, &period, e) < 0)
        return -1;
    hours = json_find(v, "gpu_hours");
    if (!hours) {
        err_set(e, ERR_INVALID, "gpu_hours is missing");
        return err_hint(e, "e.g. budget: {gpu_hours: 1000, period: month}");
    }
    if (read_number(hours, 0.001, 1e9, &into->budget_hours_milli, e) < 0)
        return err_wrap(e, "gpu_hours");
    for (size_t i = 0; i < ARRAY_LEN(periods); i++)
        if (str_is(period, periods[i])) {
            into->budget_period = (enum period)i;
            return 0;
        }
    err_set(e, ERR_INVALID, "period: '%.*s' is not known", STR_ARG(period));
    return err_hint(e, "day, week, month, quarter, year or once");
}

static int read_list(const struct json *v, size_t max, struct arena *a, struct str **out,
                     size_t *out_n, struct err *e)
{
    struct str s;
    if (!json_is_array(v) || json_len(v) > max)
        return err_set(e, ERR_INVALID, "a list of at most %zu names is needed", max);
    struct str *list = arena_array(a, struct str, json_len(v) + 1);
    size_t n = 0;
    for (const struct json *x = json_first(v); x; x = json_next(v, x)) {
        if (json_as_str(x, NAME_MAX_BYTES, &s, e) < 0)
            return -1;
        if (s.n == 0 || memchr(s.p, '|', s.n))
            return err_set(e, ERR_INVALID, "a name is empty, or has a | in it");
        list[n++] = keep(a, s);
    }
    *out = list;
    *out_n = n;
    return 0;
}

static int read_group(const struct json_member *m, struct arena *a, struct tenant_spec *into,
                      struct err *e)
{
    struct str role = STR("");
    size_t at = 0;
    if (m->key.n == 0 || m->key.n > 400 || strlen(m->key.p) != m->key.n)
        return err_set(e, ERR_INVALID, "a group needs a name, of at most 400 bytes");
    while (at < into->groups && !str_eq(into->group[at].group, m->key))
        at++;
    if (json_is_null(m->value)) {
        for (size_t i = at; i + 1 < into->groups; i++)
            into->group[i] = into->group[i + 1];
        into->groups -= at < into->groups;
        return 0;
    }
    if (json_as_str(m->value, 32, &role, e) < 0)
        return err_wrap(e, "%.*s", (int)MIN(m->key.n, (size_t)60), m->key.p);
    if (!str_is(role, "lead") && !str_is(role, "member") && !str_is(role, "viewer")) {
        err_set(e, ERR_INVALID, "'%.*s' is not a role in a tenant", STR_ARG(role));
        return err_hint(e, "lead, member or viewer");
    }
    if (at == TENANT_GROUPS_MAX)
        return err_set(e, ERR_INVALID, "at most %d groups", TENANT_GROUPS_MAX);
    into->group[at] = (struct tenant_group){ keep(a, m->key), keep(a, role) };
    into->groups += at == into->groups;
    return 0;
}

static int read_groups(const struct json *v, struct arena *a, struct tenant_spec *into,
                       struct err *e)
{
    struct tenant_group *was = into->group;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "an object is needed: a role for each group");
    into->group = arena_array(a, struct tenant_group, TENANT_GROUPS_MAX);
    for (size_t i = 0; i < into->groups; i++)
        into->group[i] = was[i];
    for (struct json_member m = { 0 }; json_next_member(v, &m);)
        if (read_group(&m, a, into, e) < 0)
            return -1;
    return 0;
}

/* A day counts whole: it ends with it. */
static int read_end(const struct json *v, int64_t *out, struct err *e)
{
    struct str s;
    struct err none;
    struct date d;
    if (json_is_string(v) && json_as_str(v, 64, &s, &none) == 0 && date_take(&s, &d) && s.n == 0) {
        if (d.year < 1970 || d.year > 9998) /* what could not be written and read again */
            return err_set(e, ERR_INVALID, "the year must be from 1970 to 9998");
        *out = (date_days(d) + 1) * DAY_MS;
        return 0;
    }
    if (start_read_time(v, out, e) == 0)
        return 0;
    return err_hint(e,
                    "a day, e.g. 2027-02-28, or a time with its zone: 2027-02-28T18:00:00+01:00");
}

static int read_choice(const struct json *v, const char *const *words, size_t n, uint64_t *out,
                       struct err *e)
{
    struct str s;
    if (json_as_str(v, 32, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (str_is(s, words[i])) {
            *out = i;
            return 0;
        }
    return err_set(e, ERR_INVALID, "'%.*s' is not known here", STR_ARG(s));
}

static const char *const priorities[] = {
#define X(id, name) name,
    PRIORITIES(X)
#undef X
};

static int read_field(const struct field *f, const struct json *v, struct arena *a,
                      struct tenant_spec *into, struct err *e)
{
    void *at = (char *)into + f->offset;
    struct str s;
    uint64_t x = 0;
    switch (f->kind) {
    case KIND_TEXT:
        if (json_as_str(v, f->max, &s, e) < 0)
            return -1;
        *(struct str *)at = keep(a, s);
        return 0;
    case KIND_MILLI:
        if (read_number(v, 0.001, 1e6, &x, e) < 0)
            return -1;
        *(uint32_t *)at = (uint32_t)x;
        return 0;
    case KIND_GUARANTEE: return read_number(v, 0, 1e6, at, e);
    case KIND_LIMIT:
    case KIND_USER_LIMIT: return read_limit(v, f->kind == KIND_USER_LIMIT, a, at, e);
    case KIND_BUDGET: return read_budget(v, into, e);
    case KIND_LIST:
        return f->offset == AT(pool) ? read_list(v, f->max, a, &into->pool, &into->pools, e)
                                     : read_list(v, f->max, a, &into->profile, &into->profiles, e);
    case KIND_PRIORITY:
        if (read_choice(v, priorities, ARRAY_LEN(priorities), &x, e) < 0)
            return -1;
        into->priority = (enum priority)x;
        return 0;
    case KIND_STAGE:
        if (read_choice(v, stages, STAGE_ENROLLED, &x, e) < 0)
            return -1;
        into->stage = (enum stage)x;
        return 0;
    case KIND_TIME: return read_end(v, at, e);
    case KIND_GROUPS: return read_groups(v, a, into, e);
    }
    abort();
}

static void set_default(const struct field *f, struct tenant_spec *into)
{
    struct tenant_spec d = tenant_default();
    switch (f->kind) {
    case KIND_TEXT: *(struct str *)((char *)into + f->offset) = STR(""); return;
    case KIND_MILLI: into->weight_milli = d.weight_milli; return;
    case KIND_GUARANTEE: into->guarantee_milli = 0; return;
    case KIND_LIMIT: into->limit = d.limit; return;
    case KIND_USER_LIMIT: into->user_limit = d.user_limit; return;
    case KIND_BUDGET: into->budget_hours_milli = 0; return;
    case KIND_LIST:
        *(struct str **)((char *)into + f->offset) = NULL;
        *(f->offset == AT(pool) ? &into->pools : &into->profiles) = 0;
        return;
    case KIND_PRIORITY: into->priority = d.priority; return;
    case KIND_STAGE: into->stage = d.stage; return;
    case KIND_TIME: into->expires_ms = 0; return;
    case KIND_GROUPS: into->groups = 0; return;
    }
    abort();
}

static int check_keys(const struct json *o, const char *const *beside, struct arena *a,
                      const char **out_field, struct err *e)
{
    const char *keys[ARRAY_LEN(fields) + 16];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        keys[n++] = fields[i].key;
    for (size_t i = 0; beside && beside[i] && i < 16; i++)
        keys[n++] = beside[i];
    if (json_only(o, keys, n, e) == 0)
        return 0;
    struct str odd = json_odd_key(o, keys, n);
    if (odd.p)
        *out_field = arena_printf(a, "%.*s", (int)MIN(odd.n, (size_t)60), odd.p);
    return -1;
}

int tenant_read(const struct tenant_text *text, struct arena *a, struct tenant_spec *out,
                const char **out_field, struct err *e)
{
    const struct json *o = text->object;
    struct tenant_spec t = *text->base;
    const char *unused;
    if (!out_field)
        out_field = &unused;
    *out_field = NULL;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "an object is needed");
    if (check_keys(o, text->beside, a, out_field, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct json *v = json_find(o, fields[i].key);
        if (!v)
            continue;
        *out_field = fields[i].key;
        if (json_is_null(v)) {
            set_default(&fields[i], &t);
        } else if (read_field(&fields[i], v, a, &t, e) < 0) {
            if (!e->hint[0])
                err_hint(e, "e.g. %s: %s", fields[i].key, fields[i].example);
            return err_wrap(e, "field '%s'", fields[i].key);
        }
    }
    *out_field = NULL;
    *out = t;
    return 0;
}

/* ---- writing ---- */

static void write_limit(const char *key, const struct tenant_limit *l, struct json_out *w)
{
    json_begin(w, key, '{');
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        uint64_t v = l->of.of[amounts[i].of];
        char size[32];
        if (v == NO_LIMIT)
            continue;
        if (amounts[i].unit == UNIT_MILLI)
            json_put_f64(w, amounts[i].key, (double)v / 1e3, 3);
        else if (amounts[i].unit == UNIT_SIZE)
            json_put_str(w, amounts[i].key, str_of(format_size(v << 20, size)));
        else
            json_put_u64(w, amounts[i].key, v);
    }
    if (l->models) {
        json_begin(w, "gpus_by_model", '{');
        for (uint32_t i = 0; i < l->models; i++)
            json_put_f64(w, l->by_model[i].models.p, (double)l->by_model[i].gpu_milli / 1e3, 3);
        json_end(w, '}');
    }
    json_end(w, '}');
}

static bool has_limit(const struct tenant_limit *l)
{
    for (int i = 0; i < RES_COUNT; i++)
        if (l->of.of[i] != NO_LIMIT)
            return true;
    return l->models > 0;
}

static void write_list(const char *key, const struct str *list, size_t n, struct json_out *w)
{
    json_begin(w, key, '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(w, NULL, list[i]);
    json_end(w, ']');
}

static void write_budget(const struct tenant_spec *t, struct json_out *w)
{
    json_begin(w, "budget", '{');
    json_put_f64(w, "gpu_hours", (double)t->budget_hours_milli / 1e3, 3);
    json_put_str(w, "period", str_of(period_name(t->budget_period)));
    json_end(w, '}');
}

void tenant_write(const struct tenant_spec *t, struct json_out *w)
{
    struct tenant_spec d = tenant_default();
    char when[32];
    if (t->help.n)
        json_put_str(w, "help", t->help);
    if (t->parent.n)
        json_put_str(w, "parent", t->parent);
    if (t->weight_milli != d.weight_milli)
        json_put_f64(w, "weight", t->weight_milli / 1e3, 3);
    if (t->guarantee_milli)
        json_put_f64(w, "guarantee", (double)t->guarantee_milli / 1e3, 3);
    if (has_limit(&t->limit))
        write_limit("limit", &t->limit, w);
    if (has_limit(&t->user_limit))
        write_limit("user_limit", &t->user_limit, w);
    if (t->budget_hours_milli)
        write_budget(t, w);
    if (t->pool)
        write_list("pools", t->pool, t->pools, w);
    if (t->profile)
        write_list("profiles", t->profile, t->profiles, w);
    if (t->priority != d.priority)
        json_put_str(w, "priority", str_of(priority_name(t->priority)));
    if (t->stage != d.stage)
        json_put_str(w, "stage", str_of(stage_name(t->stage)));
    if (t->expires_ms && t->expires_ms % DAY_MS == 0) { /* with a day: as people say it */
        date_format(t->expires_ms - DAY_MS, when);
        json_put_str(w, "expires", (struct str){ when, 10 });
    } else if (t->expires_ms) {
        json_put_str(w, "expires", str_of(date_format(t->expires_ms, when)));
    }
    if (t->groups) {
        json_begin(w, "groups", '{');
        for (size_t i = 0; i < t->groups; i++)
            json_put_str(w, t->group[i].group.p, t->group[i].role);
        json_end(w, '}');
    }
}

/* ---- the table as documents ---- */

static const char number_schema[] = "\"type\":[\"number\",\"null\"],\"minimum\":%s,\"maximum\":%s";

static void put_schema(const struct field *f, struct buf *b)
{
    switch (f->kind) {
    case KIND_TEXT:
        buf_printf(b, "\"type\":[\"string\",\"null\"],\"maxLength\":%zu", f->max);
        break;
    case KIND_MILLI: buf_printf(b, number_schema, "0.001", "1000000"); break;
    case KIND_GUARANTEE: buf_printf(b, number_schema, "0", "1000000"); break;
    case KIND_LIMIT:
    case KIND_USER_LIMIT:
        buf_printf(b, "\"$ref\":\"#/components/schemas/%s\"",
                   f->kind == KIND_LIMIT ? "TenantLimit" : "UserLimit");
        break;
    case KIND_BUDGET: buf_addz(b, "\"$ref\":\"#/components/schemas/Budget\""); break;
    case KIND_LIST:
        buf_printf(b,
                   "\"type\":[\"array\",\"null\"],\"maxItems\":%zu,\"items\":{\"type\":\"string\","
                   "\"pattern\":\"^[^|\\\\u0000]{1,%d}$\"}",
                   f->max, NAME_MAX_BYTES);
        break;
    case KIND_PRIORITY:
        buf_addz(b, "\"enum\":[\"low\",\"normal\",\"high\",\"urgent\",null]");
        break;
    case KIND_STAGE: buf_addz(b, "\"enum\":[\"all\",\"beta\",\"alpha\",null]"); break;
    case KIND_TIME:
        buf_addz(b, "\"anyOf\":[{\"type\":\"null\"},{\"type\":\"integer\",\"minimum\":100000000000,"
                    "\"maximum\":253402300799999},{\"type\":\"string\",\"pattern\":"
                    "\"^[2-8][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
                    "([Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$\"}]");
        break;
    case KIND_GROUPS:
        buf_printf(b,
                   "\"type\":[\"object\",\"null\"],\"maxProperties\":%zu,"
                   "\"additionalProperties\":{\"enum\":[\"lead\",\"member\",\"viewer\",null]}",
                   f->max);
        break;
    }
}

void tenant_print_schema(struct json_out *w)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        AUTO(buf_free) struct buf b = BUF(4096), help = BUF(4096);
        struct json_out text = { .b = &help };
        json_put_str(&text, NULL, str_of(fields[i].help));
        buf_addc(&b, '{');
        put_schema(&fields[i], &b);
        buf_printf(&b, ",\"description\":%s}", help.p);
        json_put_raw(w, fields[i].key, buf_str(&b));
    }
}

void tenant_print_reference(struct buf *out)
{
    buf_addz(out, "| field | example | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        buf_printf(out, "| `%s` | `%s` | %s |\n", fields[i].key, fields[i].example, fields[i].help);
}
