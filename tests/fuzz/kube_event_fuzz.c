/* Any bytes as a line of a watch, and as the last word of an exec: what is taken has its parts, what is not is told. */
#include "kube/exec.h"
#include "kube/watch.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct str text = { size ? (const char *)data : "", size };
    struct kube_event ev;
    struct err e = { 0 };
    int code = -2;
    if (kube_event_read(text, &ev, &doc, &e) == 0) {
        bool changed = ev.kind == KUBE_EVENT_OBJECT || ev.kind == KUBE_EVENT_BOOKMARK;
        must(doc && ev.kind <= KUBE_EVENT_ERROR && json_is_object(ev.object));
        must(changed ? ev.version.p != NULL : e.msg[0] != '\0');
    } else {
        must(!doc && e.code != ERR_NONE && e.msg[0]);
    }
    e = (struct err){ 0 };
    if (kube_exec_status(text, &code, &e) == 0)
        must(code >= 0 && code <= 255 && (code == 0 || e.msg[0]));
    else
        must(code == -2 && e.msg[0]);
    return 0;
}
