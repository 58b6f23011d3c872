#include "wire/keeper.h"

#define X(id, name, help) [KEEPER_DO_##id] = (name),
static const char *const verbs[] = { KEEPER_VERBS(X) };
#undef X
#define X(id, name, help) [KEEPER_EV_##id] = (name),
static const char *const events[] = { KEEPER_EVENTS(X) };
#undef X
#define X(id, name, help) [KEEPER_MODE_##id] = (name),
static const char *const modes[] = { KEEPER_MODES(X) };
#undef X

/* The place of `name` in the table, or n. */
static size_t find(const char *const *table, size_t n, struct str name)
{
    size_t i = 0;
    while (i < n && !str_is(name, table[i]))
        i++;
    return i;
}

const char *keeper_verb_name(enum keeper_verb v)
{
    return verbs[v];
}

const char *keeper_event_name(enum keeper_event ev)
{
    return events[ev];
}

const char *keeper_mode_name(enum keeper_mode m)
{
    return modes[m];
}

bool keeper_verb_parse(struct str name, enum keeper_verb *out)
{
    size_t i = find(verbs, KEEPER_VERB_COUNT, name);
    if (i == KEEPER_VERB_COUNT)
        return false;
    *out = (enum keeper_verb)i;
    return true;
}

bool keeper_event_parse(struct str name, enum keeper_event *out)
{
    size_t i = find(events, KEEPER_EVENT_COUNT, name);
    if (i == KEEPER_EVENT_COUNT)
        return false;
    *out = (enum keeper_event)i;
    return true;
}

bool keeper_mode_parse(struct str name, enum keeper_mode *out)
{
    size_t i = find(modes, KEEPER_MODE_COUNT, name);
    if (i == KEEPER_MODE_COUNT)
        return false;
    *out = (enum keeper_mode)i;
    return true;
}
