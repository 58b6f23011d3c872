/* tenant - a tenant as people write it: in the settings file, with the API, in a file that is applied.
 *
 * One table of fields (tenant.c) gives reading, writing, the OpenAPI schema and the reference.  What was read is
 * complete and in range; tenant_write gives the canonical JSON, which the store keeps and tenant_read takes
 * again.  Whether the parent, the pools and the profiles are there is for whoever knows them.
 */
#ifndef NS_SPEC_TENANT_H
#define NS_SPEC_TENANT_H

#include "base/arena.h"
#include "base/json.h"
#include "core/event.h"

#define TENANT_LIST_MAX 256         /* pools, profiles */
#define TENANT_GROUPS_MAX 256       /* of the identity provider */
#define TENANT_MODELS_MAX 8         /* limits by GPU model */
#define TENANT_TEXT_MAX (64u << 10) /* bytes of one as JSON */

/* id, name, meaning: what a tenant may use while machines are being rolled out, and how far a pool is; a tenant
 * has what is not beyond its own stage. */
#define STAGES(X)                                                                                  \
    X(ALL, "all", "what is for everybody")                                                         \
    X(BETA, "beta", "also what is tried with some")                                                \
    X(ALPHA, "alpha", "also what is tried with few, and may break")                                \
    X(ENROLLED, "enrolled", "of machines alone: nobody's yet")
enum stage {
#define X(id, name, help) STAGE_##id,
    STAGES(X)
#undef X
    STAGE_COUNT
};
const char *stage_name(enum stage s);
bool stage_parse(struct str name, enum stage *out);

#define PERIODS(X)                                                                                 \
    X(DAY, "day")                                                                                  \
    X(WEEK, "week") /* from Monday on */                                                           \
    X(MONTH, "month")                                                                              \
    X(QUARTER, "quarter")                                                                          \
    X(YEAR, "year")                                                                                \
    X(ONCE, "once") /* it is never filled again */
enum period {
#define X(id, name) PERIOD_##id,
    PERIODS(X)
#undef X
    PERIOD_COUNT
};
const char *period_name(enum period p);

/* The period in which a time lies, by the calendar of that zone; ONCE: from `begin_ms` on for ever. */
struct tz;
void period_around(enum period p, const struct tz *zone, int64_t begin_ms, int64_t now_ms,
                   int64_t *out_from_ms, int64_t *out_until_ms);

struct tenant_models {
    struct str models; /* "A100|H100" */
    uint64_t gpu_milli;
};

struct tenant_limit {
    struct amounts of;
    struct tenant_models by_model[TENANT_MODELS_MAX];
    uint32_t models;
};

struct tenant_group {
    struct str group, role; /* role: a word, which whoever knows roles has checked */
};

struct tenant_spec {
    struct str help, parent;
    uint32_t weight_milli;
    uint64_t guarantee_milli;
    struct tenant_limit limit, user_limit; /* user_limit: no models */
    uint64_t budget_hours_milli;           /* GPU-hours in thousandths; 0: none */
    enum period budget_period;
    struct str *pool; /* machines of these only; "-": of none; NULL: all */
    size_t pools;
    struct str *profile; /* jobs take one of these; NULL: they need none */
    size_t profiles;
    enum priority priority; /* the highest that its jobs may have */
    enum stage stage;
    int64_t expires_ms; /* from then on nothing of it runs; 0: never */
    struct tenant_group *group;
    size_t groups;
};

struct tenant_spec tenant_default(void);

/* What is to be read: fields that are not given are as in `base`, null makes them the default again.  So it is
 * with each limit, model and group inside of one. */
struct tenant_text {
    const struct json *object;
    const struct tenant_spec *base;
    const char *const *beside; /* other keys, which the caller reads; ends with NULL; may be NULL */
};
/* An error names its field in *out_field, which may be NULL. */
int tenant_read(const struct tenant_text *text, struct arena *a, struct tenant_spec *out,
                const char **out_field, struct err *e) MUST_USE;
void tenant_write(const struct tenant_spec *t,
                  struct json_out *w);        /* members, into an open object */
void tenant_print_schema(struct json_out *w); /* properties, into an open object */
void tenant_print_reference(struct buf *out); /* Markdown */

#endif
