#include "core/shape.h"

void shapes_init(struct shapes *s)
{
    *s = (struct shapes){ .unused = NONE };
}

void shapes_free(struct shapes *s)
{
    free(s->at);
    free(s->no_room);
    map_free(&s->by_hash);
}

static uint64_t request_hash(const struct request *r)
{
    return str_hash((struct str){ (const char *)r, sizeof *r });
}

uint32_t shapes_ref(struct shapes *s, const struct request *r)
{
    uint64_t hash = request_hash(r), hit = NONE;
    uint32_t first = map_get(&s->by_hash, hash, &hit) ? (uint32_t)hit : NONE;
    for (uint32_t i = first; i != NONE; i = s->at[i].next)
        if (memcmp(&s->at[i].request, r, sizeof *r) == 0) {
            s->at[i].refs++;
            return i;
        }
    uint32_t i = s->unused;
    if (i != NONE) {
        s->unused = s->at[i].next;
    } else {
        vec_grow(s->at, s->n, s->cap);
        s->no_room = xrealloc(s->no_room, s->cap, sizeof *s->no_room);
        i = s->n++;
    }
    s->at[i] = (struct shape){ .request = *r,
                               .size = history_size(r),
                               .weight = history_gpus_weight(r),
                               .refs = 1,
                               .next = first,
                               .groups = NONE };
    s->no_room[i] = false;
    map_set(&s->by_hash, hash, i);
    return i;
}

void shapes_unref(struct shapes *s, uint32_t shape)
{
    struct shape *sh = &s->at[shape];
    if (--sh->refs)
        return;
    uint64_t hash = request_hash(&sh->request), hit = NONE;
    map_get(&s->by_hash, hash, &hit);
    if (hit == shape && sh->next == NONE) {
        map_remove(&s->by_hash, hash);
    } else if (hit == shape) {
        map_set(&s->by_hash, hash, sh->next);
    } else {
        uint32_t i = (uint32_t)hit;
        while (s->at[i].next != shape)
            i = s->at[i].next;
        s->at[i].next = sh->next;
    }
    sh->next = s->unused;
    s->unused = shape;
}

struct amounts request_amounts(const struct request *r, uint32_t share_milli)
{
    uint64_t gpu = r->gpus ? (uint64_t)r->gpus * GPU_MILLI : share_milli;
    struct amounts a = { { 0 } };
    a.of[RES_GPU] = gpu * r->replicas;
    a.of[RES_CPU] = (uint64_t)r->cpu_milli * r->replicas;
    a.of[RES_MEM] = (uint64_t)r->mem_mib * r->replicas;
    a.of[RES_JOBS] = 1;
    a.of[RES_NOTEBOOKS] = r->notebook;
    a.of[RES_STORAGE] = (uint64_t)r->disk_mib * r->replicas;
    return a;
}
