/* spec - a job as its user wrote it: text into checked values, once, and back.
 *
 * The fields are one table (spec.c), from which reading, writing, the OpenAPI schema and the
 * reference are made.  spec_read refuses what it does not know and names the field; a spec that was
 * read is complete and in range.  spec_write gives the canonical JSON, which the store keeps and
 * spec_read takes again.
 */
#ifndef NS_SPEC_SPEC_H
#define NS_SPEC_SPEC_H

#include "base/arena.h"
#include "base/json.h"
#include "core/event.h"

#define SPEC_TEXT_MAX (256u << 10) /* bytes of one job file */
#define SPEC_ARGS_MAX 4096
#define SPEC_ENV_MAX 1024
#define SPEC_VOLUMES_MAX 64
#define SPEC_ARRAY_MAX 100000

#define FREEZE_MODES(X)                                                                            \
    X(PAUSE, "pause", "stopped in memory; keeps its GPU memory")                                   \
    X(SIGNAL, "signal", "told to save itself; starts again and reads what it saved")               \
    X(REQUEUE, "requeue", "stopped; runs again from the start")                                    \
    X(NONE, "none", "it cannot be frozen")
enum freeze_mode {
#define X(id, name, help) FREEZE_##id,
    FREEZE_MODES(X)
#undef X
    FREEZE_MODE_COUNT
};
const char *freeze_mode_name(enum freeze_mode m);

#define NETWORKS(X)                                                                                \
    X(TENANT, "tenant", "an address of its own in the network of its tenant")                      \
    X(NONE, "none", "no network")
enum spec_network {
#define X(id, name, help) NETWORK_##id,
    NETWORKS(X)
#undef X
    NETWORK_COUNT
};
const char *spec_network_name(enum spec_network n);

#define SPEC_KINDS(X)                                                                              \
    X(BATCH, "batch", "a program that runs to its end")                                            \
    X(NOTEBOOK, "notebook", "counts against the limit of notebooks")                               \
    X(SHELL, "shell", "somebody works in it")
enum spec_kind {
#define X(id, name, help) SPEC_##id,
    SPEC_KINDS(X)
#undef X
    SPEC_KIND_COUNT
};

struct spec_volume {
    struct str from, to;
    bool read_only;
};

/* The jobs it starts after, as its user wrote them: an array's number means all of it. */
struct spec_after {
    uint64_t job;
    enum after_when when; /* not AFTER_NEVER */
};

struct spec {
    struct str name, tenant, profile, image, workdir, cwd;
    enum spec_kind kind;
    struct request request; /* models stay 0: see gpu_type; cpu and mem 0: not said */
    struct str gpu_type;    /* "A100|V100"; empty: any */
    struct str devices;     /* of each replica, as core/device.h has it; empty: none */
    enum priority priority;
    bool held, tty, has_stdin, requeue;
    const char *const *argv; /* ends with NULL */
    uint32_t n_args;
    const char *const *env; /* "KEY=value", ends with NULL */
    uint32_t n_env;
    const struct spec_volume *volume;
    uint32_t n_volumes;
    int64_t max_time_ms;    /* 0: no limit */
    int64_t begin_ms;       /* it does not start before; 0: at once */
    struct str reservation; /* empty: none */
    const struct spec_after *after;
    uint32_t n_after;
    enum freeze_mode freeze;
    int freeze_signal; /* signal number */
    int64_t grace_ms;  /* between asking a job to end and ending it */
    uint32_t retries;
    enum spec_network network;
    uint32_t scratch_mib; /* 0: the default of the site */
    bool is_array;        /* then one job each index */
    uint32_t array_from, array_to, array_step;
    uint32_t array_index; /* of a job that was made from an array */
    /* Of work that others made and that we only place: what the engine calls it.  Nobody can submit it. */
    struct str observed;
};

int spec_signal(struct str name); /* "USR1" or "SIGUSR1" -> 10; 0 when unknown */

/* Strings live in `a`.  On failure the error names the field; *out_field (may be NULL) is its name,
 * in `a`, or NULL when it is the whole that is wrong. */
int spec_read(const struct json *obj, struct arena *a, struct spec *out, const char **out_field,
              struct err *e) MUST_USE;
/* The same of what spec_write wrote: also what is not for users. */
int spec_read_kept(const struct json *obj, struct arena *a, struct spec *out, struct err *e)
    MUST_USE;
void spec_write(const struct spec *s, struct json_out *w, const char *key);

/* One field of the table, for schemas and docs; false past the last. */
struct spec_field_info {
    const char *section, *key, *help, *example; /* section NULL: at the top */
};
bool spec_field(size_t i, struct spec_field_info *out);
void spec_print_schema(struct json_out *w, const char *key);  /* JSON schema, for OpenAPI */
void spec_print_signals(struct json_out *w, const char *key); /* schema: their names */
void spec_print_reference(struct buf *out);                   /* Markdown */

#endif
