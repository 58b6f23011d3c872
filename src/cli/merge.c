#include "cli/merge.h"

#define DEPTH_MAX 64

void merge_put(struct json_out *w, const char *key, const struct json *base,
               const struct json *patch)
{
    if (!json_is_object(patch) || w->depth >= DEPTH_MAX) {
        json_put(w, key, patch);
        return;
    }
    json_begin(w, key, '{');
    if (json_is_object(base))
        for (struct json_member m = { 0 }; json_next_member(base, &m);)
            if (!json_find(patch, m.key.p))
                json_put(w, m.key.p, m.value);
    for (struct json_member m = { 0 }; json_next_member(patch, &m);)
        if (json_kind(m.value) != JSON_NULL)
            merge_put(w, m.key.p, json_is_object(base) ? json_find(base, m.key.p) : NULL, m.value);
    json_end(w, '}');
}
