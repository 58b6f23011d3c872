#include "engine/kube/copy_doc.h"

#include <stdio.h>

#include "base/parse.h"

#define JOB_KEY "nightshift.dev/job"
#define DAEMON_KEY "nightshift.dev/daemon"
#define TEXT_MAX 1024

const char *copy_label(const char *daemon, char out[static COPY_LABEL_MAX])
{
    snprintf(out, COPY_LABEL_MAX, "%016llx", (unsigned long long)str_hash(str_of(daemon)));
    return out;
}

const char *copy_name(uint64_t job, const char *daemon, char out[static COPY_NAME_MAX])
{
    unsigned whose = (unsigned)str_hash(str_of(daemon));
    if (job)
        snprintf(out, COPY_NAME_MAX, "nightshift-job-%llu-%08x", (unsigned long long)job, whose);
    else
        snprintf(out, COPY_NAME_MAX, "nightshift-numbers-%08x", whose);
    return out;
}

void copy_make(const struct copy_doc *c, struct buf *out)
{
    struct json_out w = { .b = out };
    char name[COPY_NAME_MAX], label[COPY_LABEL_MAX], number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)c->job);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "apiVersion", STR("v1"));
    json_put_str(&w, "kind", STR("ConfigMap"));
    json_begin(&w, "metadata", '{');
    json_put_str(&w, "name", str_of(copy_name(c->job, c->daemon, name)));
    json_put_str(&w, "namespace", str_of(c->space));
    json_begin(&w, "labels", '{');
    json_put_str(&w, COPY_LABEL, str_of(copy_label(c->daemon, label)));
    json_end(&w, '}');
    json_begin(&w, "annotations", '{');
    json_put_str(&w, JOB_KEY, str_of(number));
    json_put_str(&w, DAEMON_KEY, str_of(c->daemon));
    json_end(&w, '}');
    json_end(&w, '}');
    json_begin(&w, "data", '{');
    json_put_str(&w, "record", c->record);
    json_end(&w, '}');
    json_end(&w, '}');
}

static const struct json *object_of(const struct json *o, const char *key)
{
    const struct json *v = o && json_is_object(o) ? json_find(o, key) : NULL;
    return v && json_is_object(v) ? v : NULL;
}

int copy_read(const struct json *o, const char *daemon, struct copy_doc *out, struct err *e)
{
    const struct json *meta = object_of(o, "metadata");
    const struct json *notes = object_of(meta, "annotations"), *data = object_of(o, "data");
    struct str name = STR(""), number = STR(""), whose = STR(""), record = STR("");
    char want[COPY_NAME_MAX];
    if (!meta || !notes || !data)
        return err_set(e, ERR_INVALID, "it is no copy of a job");
    if (json_need_str(meta, "name", TEXT_MAX, &name, e) < 0 ||
        json_need_str(notes, JOB_KEY, TEXT_MAX, &number, e) < 0 ||
        json_need_str(notes, DAEMON_KEY, TEXT_MAX, &whose, e) < 0 ||
        json_need_str(data, "record", COPY_RECORD_MAX, &record, e) < 0)
        return -1;
    *out = (struct copy_doc){ .daemon = daemon, .record = record };
    if (!str_is(whose, daemon))
        return err_set(e, ERR_INVALID, "it is the copy of another daemon, '%.*s'", STR_ARG(whose));
    if (parse_u64(number, UINT64_MAX, &out->job, e) < 0)
        return -1;
    if (!str_is(name, copy_name(out->job, daemon, want)))
        return err_set(e, ERR_INVALID, "it is called '%.*s', and the copy of job %llu is '%s'",
                       STR_ARG(name), (unsigned long long)out->job, want);
    return 0;
}
