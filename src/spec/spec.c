#include "spec/spec.h"

#include "spec/value.h"

#define AT(member) offsetof(struct spec, member)

static const struct spec_field fields[] = {
    { NULL, "name", VALUE_NAME, AT(name), NAME_MAX_BYTES,
      "what people call it; by default the program's name", "resnet-50" },
    { NULL, "tenant", VALUE_NAME, AT(tenant), NAME_MAX_BYTES,
      "the tenant it counts for; by default the user's first one", "vision" },
    { NULL, "kind", VALUE_WORK_KIND, AT(kind), 0, "what it is; by default a batch job",
      "notebook" },
    { NULL, "profile", VALUE_NAME, AT(profile), NAME_MAX_BYTES,
      "a named bundle of resources of this site", "gpu-small" },
    { NULL, "command", VALUE_COMMAND, AT(argv), SPEC_ARGS_MAX,
      "the program and its arguments; a string is run by /bin/sh -c", "[python, train.py]" },
    { NULL, "workdir", VALUE_PATH, AT(workdir), 4095,
      "the folder it starts in; by default the user's home", "/home/ana/project" },
    { NULL, "cwd", VALUE_PATH, AT(cwd), 4095,
      "the folder it was submitted from: it starts there when it can, without a workdir",
      "/home/ana/project" },
    { NULL, "env", VALUE_ENV, AT(env), SPEC_ENV_MAX, "environment variables",
      "{OMP_NUM_THREADS: 4}" },
    { NULL, "image", VALUE_NAME, AT(image), 1024,
      "'host' for this machine's own system, or a container image", "docker://python:3.11" },
    { NULL, "volumes", VALUE_VOLUMES, AT(volume), SPEC_VOLUMES_MAX,
      "folders of the machine that it may use: from:to or from:to:ro", "[/data:/data:ro]" },
    { "resources", "gpus", VALUE_GPUS, AT(request.gpus), GPUS_PER_NODE_MAX,
      "whole GPUs of each replica; below 1 it is a share of one", "2" },
    { "resources", "gpu_share", VALUE_SHARE, AT(request.gpu_milli), 0,
      "a share of one GPU, instead of whole ones", "0.5" },
    { "resources", "gpu_mem", VALUE_SIZE, AT(request.gpu_mem_mib), 0,
      "GPU memory that a share must have at least", "8Gi" },
    { "resources", "gpu_type", VALUE_NAME, AT(gpu_type), 1024,
      "GPU models it may use, separated by |; by default any", "A100|H100" },
    { "resources", "devices", VALUE_DEVICES, AT(devices), DEVICES_EACH,
      "devices of each replica that are no GPUs of their own: slices of GPUs, network cards; the "
      "names are those of the machines",
      "{nvidia.com/mig-1g.5gb: 1}" },
    { "resources", "cpus", VALUE_CPUS, AT(request.cpu_milli), 0,
      "CPUs of each replica; by default the GPUs' part of the machine, or 1", "4" },
    { "resources", "mem", VALUE_SIZE, AT(request.mem_mib), 0,
      "memory of each replica; by default in step with its CPUs or GPUs", "16Gi" },
    { "resources", "scratch", VALUE_SIZE, AT(scratch_mib), 0,
      "private disk space in /tmp, gone at the end", "10Gi" },
    { NULL, "replicas", VALUE_POSITIVE, AT(request.replicas), REPLICAS_MAX,
      "how many equal processes start together", "4" },
    { "placement", "scope", VALUE_SCOPE, AT(request.scope), 0,
      "how close together the replicas must be", "node" },
    { "placement", "layout", VALUE_LAYOUT, AT(request.layout), 0,
      "on few machines, on the fewest possible, or each on its own", "pack" },
    { "placement", "linked", VALUE_BOOL, AT(request.linked), 0,
      "a replica's GPUs must be linked directly (NVLink)", "true" },
    { NULL, "max_time", VALUE_DURATION, AT(max_time_ms), 0,
      "it is ended when it has run this long; frozen time does not count", "8h" },
    { NULL, "begin", VALUE_TIME, AT(begin_ms), 0,
      "it does not start before: a time with its zone, or milliseconds since 1970",
      "2026-03-01T22:00:00+01:00" },
    { NULL, "after", VALUE_AFTER, AT(after), AFTER_MAX,
      "jobs it starts after, an array's number for all of it: 17 or ok:17 when that succeeded, "
      "bad:17 when it failed or was cancelled, any:17 when it ended",
      "[17, any:18]" },
    { NULL, "reservation", VALUE_NAME, AT(reservation), NAME_MAX_BYTES,
      "it runs in this reservation of its tenant: when that has begun, on its machines; once that "
      "has "
      "ended it is like any other job",
      "class" },
    { NULL, "priority", VALUE_PRIORITY, AT(priority), 0, "orders the user's own jobs", "high" },
    { "freeze", "mode", VALUE_FREEZE, AT(freeze), 0, "how it may be frozen", "signal" },
    { "freeze", "signal", VALUE_SIGNAL, AT(freeze_signal), 0,
      "the signal that tells it to save itself", "USR1" },
    { "freeze", "grace", VALUE_DURATION, AT(grace_ms), 0,
      "how long it may take to save itself, or to end when it is cancelled", "30s" },
    { NULL, "retries", VALUE_COUNT, AT(retries), 100, "how often it runs again when it fails",
      "2" },
    { NULL, "requeue", VALUE_BOOL, AT(requeue), 0,
      "it may run again from the start when its machine is lost", "true" },
    { NULL, "array", VALUE_ARRAY, AT(array_from), SPEC_ARRAY_MAX,
      "one job each index, which it finds in $NIGHTSHIFT_ARRAY_INDEX", "0-99" },
    { NULL, "network", VALUE_NETWORK, AT(network), 0, "what network it has", "none" },
    { NULL, "held", VALUE_BOOL, AT(held), 0, "it waits until it is released", "true" },
    { NULL, "tty", VALUE_BOOL, AT(tty), 0, "it runs on a terminal of its own", "true" },
    { NULL, "stdin", VALUE_BOOL, AT(has_stdin), 0,
      "its standard input is whoever attaches, instead of nothing", "true" },
};

/* What is kept with a job and is not for its user to say. */
static const struct spec_field kept[] = {
    { NULL, "observed", VALUE_NAME, AT(observed), 1024, "what the engine calls it", "uid" },
};

static const char *const sections[] = { NULL, "resources", "placement", "freeze" };

static bool same_section(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static struct spec defaults(void)
{
    return (struct spec){
        .image = STR("host"),
        .request.replicas = 1,
        .priority = PRIO_NORMAL,
        .freeze = FREEZE_PAUSE,
        .freeze_signal = 15,
        .grace_ms = 10000,
    };
}

/* A spec that is being read. */
struct reading {
    bool is_kept; /* what is not for users counts too */
    struct arena *a;
    struct spec into;
    const char *field; /* that is wrong */
};

/* Objects of which only known keys may be given: the whole, and each section. */
static int check_keys(struct reading *r, const struct json *obj, const char *section, struct err *e)
{
    const char *keys[ARRAY_LEN(fields) + ARRAY_LEN(kept) + ARRAY_LEN(sections)];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(kept) && r->is_kept && !section; i++)
        keys[n++] = kept[i].key;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (same_section(fields[i].section, section))
            keys[n++] = fields[i].key;
    for (size_t i = 1; i < ARRAY_LEN(sections) && !section; i++)
        keys[n++] = sections[i];
    if (json_only(obj, keys, n, e) == 0)
        return 0;
    struct str odd = json_odd_key(obj, keys, n);
    if (odd.p)
        r->field = arena_printf(r->a, "%s%s%.*s", section ? section : "", section ? "." : "",
                                (int)MIN(odd.n, (size_t)NAME_MAX_BYTES), odd.p);
    return -1;
}

static int read_section(struct reading *r, const struct json *obj, const char *section,
                        struct err *e)
{
    r->field = section;
    if (check_keys(r, obj, section, e) < 0)
        return section ? err_wrap(e, "field '%s'", section) : -1;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct spec_field *f = &fields[i];
        const struct json *v = same_section(f->section, section) ? json_find(obj, f->key) : NULL;
        if (!v || json_is_null(v))
            continue;
        r->field = section ? arena_printf(r->a, "%s.%s", section, f->key) : f->key;
        if (value_read(f, v, r->a, &r->into, e) < 0) {
            if (!e->hint[0])
                err_hint(e, "e.g. %s: %s", f->key, f->example);
            return err_wrap(e, "field '%s'", r->field);
        }
    }
    r->field = NULL;
    return 0;
}

/* What is wrong with fields that are each right. */
static int check_whole(const struct spec *s, const char **out_field, struct err *e)
{
    const struct request *r = &s->request;
    *out_field = "command";
    if (s->n_args == 0) {
        err_set(e, ERR_INVALID, "field 'command' is missing: what shall it run?");
        return err_hint(e, "give a list, e.g. \"command\": [\"python\", \"train.py\"]");
    }
    *out_field = "resources.gpu_share";
    if (r->gpus && r->gpu_milli) {
        err_set(e, ERR_INVALID,
                "fields 'resources.gpus' and 'resources.gpu_share' exclude each "
                "other");
        return err_hint(e, "leave one of them out");
    }
    *out_field = "resources.gpu_mem";
    if (r->gpus && r->gpu_mem_mib) {
        err_set(e, ERR_INVALID, "field 'resources.gpu_mem' is for a share of one GPU");
        return err_hint(e, "to have GPUs with enough memory, name them in gpu_type");
    }
    *out_field = "resources.gpu_type";
    if (s->gpu_type.n && !r->gpus && !r->gpu_milli && !r->gpu_mem_mib) {
        err_set(e, ERR_INVALID, "field 'resources.gpu_type' names GPUs, but none are asked for");
        return err_hint(e, "add \"gpus\": 1");
    }
    *out_field = "tty";
    if (s->tty && r->replicas > 1) {
        err_set(e, ERR_INVALID, "field 'tty': a job with a terminal has one replica");
        return err_hint(e, "leave out tty, or replicas");
    }
    *out_field = NULL;
    return 0;
}

static int read_kept(struct reading *r, const struct json *obj, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        const struct json *v = json_find(obj, kept[i].key);
        if (v && value_read(&kept[i], v, r->a, &r->into, e) < 0)
            return err_wrap(e, "field '%s'", kept[i].key);
    }
    return 0;
}

static int read_whole(struct reading *r, const struct json *obj, struct err *e)
{
    if (!json_is_object(obj)) {
        err_set(e, ERR_INVALID, "a job must be an object");
        return err_hint(e, "e.g. {\"command\": [\"nvidia-smi\"], \"resources\": {\"gpus\": 1}}");
    }
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const struct json *part = sections[i] ? json_find(obj, sections[i]) : obj;
        if (part && !json_is_null(part) && read_section(r, part, sections[i], e) < 0)
            return -1;
    }
    if (r->is_kept && read_kept(r, obj, e) < 0)
        return -1;
    return check_whole(&r->into, &r->field, e);
}

int spec_read(const struct json *obj, struct arena *a, struct spec *out, const char **out_field,
              struct err *e)
{
    struct reading r = { .a = a, .into = defaults() };
    int rc = read_whole(&r, obj, e);
    if (out_field)
        *out_field = r.field;
    if (rc == 0)
        *out = r.into;
    return rc;
}

int spec_read_kept(const struct json *obj, struct arena *a, struct spec *out, struct err *e)
{
    struct reading r = { .is_kept = true, .a = a, .into = defaults() };
    int rc = read_whole(&r, obj, e);
    if (rc == 0)
        *out = r.into;
    return rc;
}

static bool section_differs(const struct spec *s, const struct spec *dflt, const char *section)
{
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct json_out w = { .b = &b };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (same_section(fields[i].section, section))
            value_write(&fields[i], s, dflt, &w);
    return b.n > 0;
}

void spec_write(const struct spec *s, struct json_out *w, const char *key)
{
    struct spec dflt = defaults();
    json_begin(w, key, '{');
    for (size_t k = 0; k < ARRAY_LEN(sections); k++) {
        if (sections[k] && !section_differs(s, &dflt, sections[k]))
            continue;
        if (sections[k])
            json_begin(w, sections[k], '{');
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
            if (same_section(fields[i].section, sections[k]))
                value_write(&fields[i], s, &dflt, w);
        if (sections[k])
            json_end(w, '}');
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        value_write(&kept[i], s, &dflt, w);
    json_end(w, '}');
}

bool spec_field(size_t i, struct spec_field_info *out)
{
    if (i >= ARRAY_LEN(fields))
        return false;
    *out = (struct spec_field_info){ .section = fields[i].section,
                                     .key = fields[i].key,
                                     .help = fields[i].help,
                                     .example = fields[i].example };
    return true;
}

/* Null is as if it was not there, as an empty field of a YAML file. */
static void put_object_or_null(struct json_out *w)
{
    json_begin(w, "type", '[');
    json_put_str(w, NULL, STR("object"));
    json_put_str(w, NULL, STR("null"));
    json_end(w, ']');
}

void spec_print_schema(struct json_out *w, const char *key)
{
    json_begin(w, key, '{');
    json_put_str(w, "type", STR("object"));
    json_put_bool(w, "additionalProperties", false);
    json_begin(w, "required", '[');
    json_put_str(w, NULL, STR("command"));
    json_end(w, ']');
    json_begin(w, "properties", '{');
    for (size_t k = 0; k < ARRAY_LEN(sections); k++) {
        if (sections[k]) {
            json_begin(w, sections[k], '{');
            put_object_or_null(w);
            json_put_bool(w, "additionalProperties", false);
            json_begin(w, "properties", '{');
        }
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
            if (same_section(fields[i].section, sections[k]))
                value_schema(&fields[i], w);
        if (sections[k]) {
            json_end(w, '}');
            json_end(w, '}');
        }
    }
    json_end(w, '}');
    json_end(w, '}');
}

void spec_print_reference(struct buf *out)
{
    buf_addz(out, "| field | example | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct spec_field *f = &fields[i];
        buf_printf(out, "| `%s%s%s` | `", f->section ? f->section : "", f->section ? "." : "",
                   f->key);
        for (const char *c = f->example; *c; c++)
            buf_printf(out, *c == '|' ? "\\|" : "%c", *c);
        buf_printf(out, "` | %s", f->help);
        for (size_t k = 0; value_word(f->kind, k); k++)
            buf_printf(out, "%s`%s`", k ? ", " : ": ", value_word(f->kind, k));
        buf_addz(out, " |\n");
    }
}

const char *freeze_mode_name(enum freeze_mode m)
{
    return value_word(VALUE_FREEZE, m);
}

const char *spec_network_name(enum spec_network n)
{
    return value_word(VALUE_NETWORK, n);
}
