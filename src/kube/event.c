/* One line of a watch, for watch.h. */
#include "kube/watch.h"

#define VERSION_MAX 200

static int read_error(const struct json *status, struct kube_event *out, struct err *e)
{
    uint64_t code = 0;
    struct str message = STR("no message"), reason = STR("");
    struct err ignored;
    if (json_get_u64(status, "code", 1000, &code, &ignored) < 0 ||
        json_get_str(status, "reason", 256, &reason, &ignored) < 0 ||
        json_get_str(status, "message", KUBE_EVENT_MAX, &message, &ignored) < 0)
        message = STR("not understood");
    bool gone = code == 410 || str_is(reason, "Expired") || str_is(reason, "Gone");
    out->kind = gone ? KUBE_EVENT_GONE : KUBE_EVENT_ERROR;
    err_set(e, ERR_UNAVAILABLE, "the API server ended the watch with %u: %.*s", (unsigned)code,
            (int)MIN(message.n, (size_t)200), message.p);
    return 0;
}

static bool read_kind(struct str type, struct kube_event *out)
{
    static const struct {
        const char *type;
        enum kube_event_kind kind;
        enum kube_change change;
    } kinds[] = {
        { "ADDED", KUBE_EVENT_OBJECT, KUBE_ADDED },
        { "MODIFIED", KUBE_EVENT_OBJECT, KUBE_MODIFIED },
        { "DELETED", KUBE_EVENT_OBJECT, KUBE_DELETED },
        { "BOOKMARK", KUBE_EVENT_BOOKMARK, KUBE_MODIFIED },
        { "ERROR", KUBE_EVENT_ERROR, KUBE_MODIFIED },
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_is(type, kinds[i].type)) {
            out->kind = kinds[i].kind;
            out->change = kinds[i].change;
            return true;
        }
    return false;
}

static int read_root(const struct json *root, struct kube_event *out, struct err *e)
{
    struct str type = { 0 };
    const struct json *object = json_find(root, "object");
    if (!json_is_object(root) || json_need_str(root, "type", 32, &type, e) < 0 ||
        !read_kind(type, out) || !json_is_object(object))
        return err_set(e, ERR_INVALID, "the API server sent what is not an event");
    out->object = object;
    if (out->kind == KUBE_EVENT_ERROR)
        return read_error(object, out, e);
    const struct json *meta = json_find(object, "metadata");
    if (!json_is_object(meta) ||
        json_need_str(meta, "resourceVersion", VERSION_MAX, &out->version, e) < 0)
        return err_set(e, ERR_INVALID, "the API server sent an event without resourceVersion");
    return 0;
}

int kube_event_read(struct str line, struct kube_event *out, struct json_doc **out_doc,
                    struct err *e)
{
    struct kube_event ev = { 0 };
    AUTO(json_free_p) struct json_doc *doc = json_read(line, e);
    if (!doc || read_root(json_root(doc), &ev, e) < 0)
        return -1;
    *out = ev;
    *out_doc = TAKE(doc);
    return 0;
}
