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
