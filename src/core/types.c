#include "core/event.h"

#define NAMES(list, fn, type)                                                                      \
    const char *fn(type v)                                                                         \
    {                                                                                              \
        static const char *const names[] = { list(ROW) };                                          \
        return (size_t)v < ARRAY_LEN(names) ? names[v] : "?";                                      \
    }

#define ROW(id, name) name,
NAMES(RESOURCES, resource_name, enum resource)
NAMES(PRIORITIES, priority_name, enum priority)
NAMES(SCOPES, scope_name, enum scope)
NAMES(LAYOUTS, layout_name, enum layout)
NAMES(EVENT_KINDS, event_kind_name, enum event_kind)
NAMES(NODE_STATES, node_state_name, enum node_state)
NAMES(AFTERS, after_name, enum after_when)
NAMES(TAKES, take_name, enum take_why)

static const struct {
    const char *words;
    double unit;
} resources[] = {
    [RES_GPU] = { "GPUs", GPU_MILLI },    [RES_CPU] = { "CPUs", 1000 },
    [RES_MEM] = { "MiB of memory", 1 },   [RES_JOBS] = { "jobs", 1 },
    [RES_NOTEBOOKS] = { "notebooks", 1 }, [RES_STORAGE] = { "MiB of scratch space", 1 },
};
_Static_assert(ARRAY_LEN(resources) == RES_COUNT, "each has its words");

const char *resource_words(enum resource r)
{
    return (size_t)r < ARRAY_LEN(resources) ? resources[r].words : "?";
}

double resource_unit(enum resource r)
{
    return (size_t)r < ARRAY_LEN(resources) ? resources[r].unit : 1;
}
