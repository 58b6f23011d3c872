#include "control/book.h"

struct entry *book_add(struct book *b, uint64_t id)
{
    struct entry *en = xcalloc(1, sizeof *en);
    en->id = id;
    vec_grow(b->at, b->n, b->cap);
    map_set(&b->by_id, id, b->n);
    b->at[b->n++] = en;
    return en;
}

struct entry *book_find(const struct book *b, uint64_t id)
{
    uint64_t i;
    return map_get(&b->by_id, id, &i) ? b->at[i] : NULL;
}

static void entry_free(struct entry *en)
{
    loop_unwatch(en->grace);
    loop_unwatch(en->again);
    book_set_text(&en->now.end, STR(""));
    book_set_text(&en->now.message, STR(""));
    book_set_text(&en->now.where, STR(""));
    free(en->name);
    free(en->ref);
    free(en->task);
    free(en);
}

/* One more, or one less. */
static void count(struct book *b, const struct entry *en, uint64_t by)
{
    if (en->observed || !en->tenant)
        return;
    b->count[en->tenant_number].of_tenant += by;
    b->count[en->user_number].of_user += by;
    b->ours += by;
}

void book_remove(struct book *b, struct entry *en)
{
    uint64_t i = 0;
    if (!map_get(&b->by_id, en->id, &i))
        abort();
    count(b, en, (uint64_t)-1);
    map_remove(&b->by_id, en->id);
    b->at[i] = b->at[--b->n];
    if (i < b->n)
        map_set(&b->by_id, b->at[i]->id, i);
    entry_free(en);
}

void book_free(struct book *b)
{
    for (size_t i = 0; i < b->n; i++)
        entry_free(b->at[i]);
    free(b->at);
    map_free(&b->by_id);
    names_free(&b->names);
    free(b->count);
}

const char *book_intern(struct book *b, struct str name)
{
    return names_get(&b->names, names_intern(&b->names, name));
}

void book_own(struct book *b, struct entry *en, struct str tenant, struct str user)
{
    en->tenant_number = names_intern(&b->names, tenant);
    en->user_number = names_intern(&b->names, user);
    en->tenant = names_get(&b->names, en->tenant_number);
    en->user = names_get(&b->names, en->user_number);
    while (b->counts < b->names.n) {
        vec_grow(b->count, b->counts, b->count_cap);
        b->count[b->counts++] = (struct book_count){ 0 };
    }
    count(b, en, 1);
}

uint64_t book_of_tenant(const struct book *b, struct str tenant)
{
    uint32_t i = names_find(&b->names, tenant);
    return i < b->counts ? b->count[i].of_tenant : 0;
}

uint64_t book_of_user(const struct book *b, struct str user)
{
    uint32_t i = names_find(&b->names, user);
    return i < b->counts ? b->count[i].of_user : 0;
}

void book_set_text(struct str *field, struct str text)
{
    char *copy = NULL;
    if (text.n) {
        copy = xmalloc(text.n + 1);
        memcpy(copy, text.p, text.n);
        copy[text.n] = '\0';
    }
    free((char *)(uintptr_t)field->p);
    *field = (struct str){ copy, text.n };
}

void entry_from_spec(struct entry *en, const struct spec *s)
{
    const struct request *r = &s->request;
    uint64_t each = r->gpus ? (uint64_t)r->gpus * GPU_MILLI : r->gpu_milli;
    en->replicas = r->replicas;
    en->gpu_milli = each * r->replicas;
    en->freeze = s->freeze;
    en->freeze_signal = s->freeze_signal;
    en->grace_ms = s->grace_ms;
    en->retries = s->retries;
    en->requeue = s->requeue;
    en->spec_known = true;
}
