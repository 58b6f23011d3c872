#include "engine/end.h"

static const struct {
    const char *name, *text;
} ends[] = {
#define X(id, name, text) { name, text },
    TASK_ENDS(X)
#undef X
};

const char *task_end_name(enum task_end w)
{
    return (size_t)w < ARRAY_LEN(ends) ? ends[w].name : "?";
}

const char *task_end_text(enum task_end w)
{
    return (size_t)w < ARRAY_LEN(ends) ? ends[w].text : "?";
}

bool task_end_parse(struct str name, enum task_end *out)
{
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (str_is(name, ends[i].name)) {
            *out = (enum task_end)i;
            return true;
        }
    return false;
}
