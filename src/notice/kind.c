#include "notice/kind.h"

#include "base/buf.h"

static const char *const ways[] = {
#define X(id, name, help) name,
    NOTICE_WAYS(X)
#undef X
};

static const struct {
    const char *type, *subject;
} events[] = {
#define X(id, type, subject) { type, subject },
    NOTICE_EVENTS(X)
#undef X
};

static const struct notice_kind_row kinds[] = {
#define X(id, name, event, who, on, help) { name, who, help, EVENT_OF_##event, on },
    NOTICE_KINDS(X)
#undef X
};

const char *notice_way_name(enum notice_way w)
{
    return ways[w];
}

bool notice_way_parse(struct str name, enum notice_way *out)
{
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (str_is(name, ways[i])) {
            *out = (enum notice_way)i;
            return true;
        }
    return false;
}

const char *notice_event_type(enum notice_event v)
{
    return events[v].type;
}

const char *notice_event_subject(enum notice_event v)
{
    return events[v].subject;
}

const struct notice_kind_row *notice_kind(enum notice_kind k)
{
    return &kinds[k];
}

bool notice_kind_parse(struct str name, enum notice_kind *out)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_is(name, kinds[i].name)) {
            *out = (enum notice_kind)i;
            return true;
        }
    return false;
}

void notice_print_kinds(struct buf *out)
{
    buf_addz(out, "| kind | when | who hears of it | unless chosen otherwise | event |\n"
                  "|---|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        buf_printf(out, "| `%s` | %s | %s | %s | `%s` |\n", kinds[i].name, kinds[i].help,
                   kinds[i].who, kinds[i].on ? "on" : "off", events[kinds[i].event].type);
}

void notice_print_events(struct buf *out)
{
    buf_addz(out, "| `type` | `subject` |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        buf_printf(out, "| `%s` | e.g. `%s` |\n", events[i].type, events[i].subject);
}
