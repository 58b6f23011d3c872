#include "engine/kube/owner.h"

static const struct owner_kind kinds[] = {
#define X(gang, object, api, plural, folder)                                                       \
    { GANG_##gang, GANG_OBJ_##object, api, plural, folder },
    OWNER_KINDS(X)
#undef X
};

const struct owner_kind *owner_kind_next(enum gang_kind gang, enum gang_object object,
                                         const struct owner_kind *after)
{
    for (const struct owner_kind *o = after ? after + 1 : kinds; o < kinds + ARRAY_LEN(kinds); o++)
        if (o->gang == gang && (object == GANG_OBJ_NONE || o->object == object))
            return o;
    return NULL;
}

static const struct json *folder_of(struct doc *d, const struct owner_kind *kind,
                                    const struct json *spec)
{
    return kind->folder[0] ? doc_object(d, spec, kind->folder) : spec;
}

/* The names of the conditions that say so differ from operator to operator. */
static bool has_ended(struct doc *d, const struct json *status)
{
    static const char *const ends[] = { "Complete", "Completed", "Failed", "Succeeded" };
    DOC_EACH(v, doc_array(d, status, "conditions"))
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (strcmp(doc_text(d, v, "type"), ends[i]) == 0 &&
            strcmp(doc_text(d, v, "status"), "True") == 0)
            return true;
    return false;
}

/* A Job makes only as many pods as it still needs ends. */
static uint32_t job_comes(struct doc *d, const struct json *spec, const struct json *status)
{
    int64_t at_once = doc_int(d, spec, "parallelism", 1);
    int64_t left = doc_int(d, spec, "completions", INT64_MAX) - doc_i32(d, status, "succeeded");
    int64_t n = MIN(at_once, left);
    return n <= 0 ? 0 : (uint32_t)MIN(n, INT64_C(1) << 30);
}

/* A CronJob leaves its Jobs as they are; any other sets right what differs from what it says. */
static bool is_controlled(struct doc *d, const struct json *meta)
{
    DOC_EACH(v, doc_array(d, meta, "ownerReferences"))
    if (doc_bool(d, v, "controller") && strcmp(doc_text(d, v, "kind"), "CronJob") != 0)
        return true;
    return false;
}

int owner_read(const struct owner_kind *kind, const struct json *object, struct owner *out,
               struct err *e)
{
    struct doc d = { .e = e };
    const struct json *meta = doc_object(&d, object, "metadata");
    const struct json *spec = doc_object(&d, object, "spec");
    const struct json *status = doc_object(&d, object, "status");
    struct owner o = { .version = doc_text(&d, meta, "resourceVersion"),
                       .suspended_by =
                           doc_said(doc_object(&d, meta, "annotations"), OWNER_SUSPENDED_BY),
                       .suspended = doc_bool(&d, folder_of(&d, kind, spec), "suspend"),
                       .over = has_ended(&d, status) || doc_has(meta, "deletionTimestamp"),
                       .controlled = is_controlled(&d, meta) };
    if (kind->object == GANG_OBJ_JOB)
        o.comes = job_comes(&d, spec, status);
    if (!d.bad && !o.version[0])
        doc_fail(&d, "it has no resourceVersion");
    if (d.bad)
        return err_wrap(e, "%s", gang_object_info(kind->object)->kind);
    *out = o;
    return 0;
}

void owner_patch(const struct owner_kind *kind, const struct owner *o, const char *by,
                 struct buf *out)
{
    struct json_out j = { .b = out };
    json_begin(&j, NULL, '{');
    json_begin(&j, "metadata", '{');
    json_put_str(&j, "resourceVersion", str_of(o->version));
    json_begin(&j, "annotations", '{');
    if (by)
        json_put_str(&j, OWNER_SUSPENDED_BY, str_of(by));
    else
        json_put_null(&j, OWNER_SUSPENDED_BY);
    json_end(&j, '}');
    json_end(&j, '}');
    json_begin(&j, "spec", '{');
    if (kind->folder[0])
        json_begin(&j, kind->folder, '{');
    json_put_bool(&j, "suspend", by != NULL);
    if (kind->folder[0])
        json_end(&j, '}');
    json_end(&j, '}');
    json_end(&j, '}');
}
