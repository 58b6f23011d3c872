#include "core/queue.h"

static const struct {
    const char *slug, *text;
} reasons[] = {
#define X(id, slug, text) [WHY_##id] = { slug, text },
    REASONS(X)
#undef X
};

const char *reason_slug(enum reason r)
{
    return (size_t)r < ARRAY_LEN(reasons) ? reasons[r].slug : "?";
}

const char *reason_text(enum reason r)
{
    return (size_t)r < ARRAY_LEN(reasons) ? reasons[r].text : "?";
}

void queue_init(struct queue *q)
{
    *q = (struct queue){ .job_unused = NONE, .group_unused = NONE };
}

void queue_free(struct queue *q)
{
    for (uint32_t i = 0; i < q->jobs; i++)
        free(q->job[i].held);
    free(q->job);
    free(q->holder);
    free(q->group);
    map_free(&q->job_by_id);
    map_free(&q->group_by_hash);
}

uint32_t queue_new_job(struct queue *q, uint64_t id)
{
    uint32_t i = q->job_unused;
    if (i != NONE) {
        q->job_unused = q->job[i].next;
    } else {
        vec_grow(q->job, q->jobs, q->job_cap);
        i = q->jobs++;
    }
    q->job[i] = (struct job){ .id = id, .group = NONE, .prev = NONE, .next = NONE };
    map_set(&q->job_by_id, id, i);
    return i;
}

void queue_drop_job(struct queue *q, uint32_t job)
{
    struct job *j = &q->job[job];
    map_remove(&q->job_by_id, j->id);
    queue_let_go(q, job);
    j->next = q->job_unused;
    q->job_unused = job;
}

void queue_hold(struct queue *q, uint32_t job, struct held *held)
{
    q->job[job].held = held;
    held->at = q->holders;
    vec_grow(q->holder, q->holders, q->holder_cap);
    q->holder[q->holders++] = job;
}

void queue_let_go(struct queue *q, uint32_t job)
{
    struct held *h = q->job[job].held;
    if (!h)
        return;
    uint32_t last = q->holder[--q->holders];
    q->holder[h->at] = last;
    q->job[last].held->at = h->at;
    free(h);
    q->job[job].held = NULL;
}

uint32_t queue_find(const struct queue *q, uint64_t id)
{
    uint64_t i;
    return map_get(&q->job_by_id, id, &i) ? (uint32_t)i : NONE;
}

/* ---- groups ---- */

static uint64_t group_hash(const struct group *g)
{
    uint64_t plain = (uint64_t)g->leaf << 36 | (uint64_t)g->shape << 6 | (uint64_t)g->stage << 2;
    return (plain | g->priority) ^ (uint64_t)g->family << 24;
}

static bool is_same_group(const struct group *a, const struct group *b)
{
    return a->leaf == b->leaf && a->shape == b->shape && a->family == b->family &&
           a->stage == b->stage && a->priority == b->priority;
}

static uint32_t first_of_hash(const struct queue *q, uint64_t hash)
{
    uint64_t hit;
    return map_get(&q->group_by_hash, hash, &hit) ? (uint32_t)hit : NONE;
}

static void forget_group(struct queue *q, uint32_t group)
{
    uint64_t hash = group_hash(&q->group[group]);
    uint32_t i = first_of_hash(q, hash), next = q->group[group].same_next;
    if (i == group && next == NONE)
        map_remove(&q->group_by_hash, hash);
    else if (i == group)
        map_set(&q->group_by_hash, hash, next);
    for (; i != group && i != NONE; i = q->group[i].same_next)
        if (q->group[i].same_next == group)
            q->group[i].same_next = next;
}

static uint32_t group_alloc(struct queue *q)
{
    uint32_t i = q->group_unused;
    if (i != NONE) {
        q->group_unused = q->group[i].shape_next;
        return i;
    }
    vec_grow(q->group, q->groups, q->group_cap);
    return q->groups++;
}

static void user_groups_add(struct user_groups *u, struct user_group g)
{
    uint32_t cap = u->cap;
    vec_grow(u->at, u->n, u->cap);
    if (cap != u->cap)
        u->pos = xrealloc(u->pos, u->cap, sizeof *u->pos);
    if (cap != u->cap)
        u->key = xrealloc(u->key, u->cap, sizeof *u->key);
    u->pos[u->n] = HEAP_OUT;
    u->at[u->n++] = g;
}

/* The last one takes its place, also in the heap of a pass that is under way. */
static void user_groups_remove(struct queue *q, struct share *leaf, uint32_t at)
{
    struct user_groups *u = &leaf->groups;
    uint32_t last = --u->n;
    if (at == last)
        return;
    u->at[at] = u->at[last];
    u->key[at] = u->key[last];
    q->group[u->at[at].group].leaf_at = at;
    if (leaf->ready.n)
        heap_rename(&leaf->ready, last, at);
}

static uint32_t group_of(struct queue *q, struct shapes *sh, struct shares *s, const struct job *j)
{
    struct shape *shape = &sh->at[j->shape];
    struct share *leaf = &s->at[j->leaf];
    struct group made = {
        .leaf = j->leaf,
        .shape = j->shape,
        .family = j->family,
        .first = NONE,
        .last = NONE,
        .leaf_at = leaf->groups.n,
        .shape_prev = NONE,
        .shape_next = shape->groups,
        .blocked_on = NONE,
        .blocked_prev = NONE,
        .blocked_next = NONE,
        .priority = j->priority,
        .stage = (uint8_t)history_bin(j->ran_ms),
    };
    uint64_t hash = group_hash(&made);
    made.same_next = first_of_hash(q, hash);
    for (uint32_t i = made.same_next; i != NONE; i = q->group[i].same_next)
        if (is_same_group(&q->group[i], &made))
            return i;
    uint32_t i = group_alloc(q);
    q->group[i] = made;
    map_set(&q->group_by_hash, hash, i);
    if (shape->groups != NONE)
        q->group[shape->groups].shape_prev = i;
    shape->groups = i;
    user_groups_add(&leaf->groups, (struct user_group){ .group = i,
                                                        .shape = j->shape,
                                                        .family = j->family,
                                                        .priority = j->priority,
                                                        .stage = made.stage });
    leaf->touched = true;
    shape->open++;
    q->ready += !sh->no_room[j->shape];
    return i;
}

static void unblock(struct queue *q, struct shapes *sh, struct shares *s, uint32_t group)
{
    struct group *g = &q->group[group];
    if (g->blocked_on == NONE)
        return;
    if (g->blocked_prev != NONE)
        q->group[g->blocked_prev].blocked_next = g->blocked_next;
    else
        s->at[g->blocked_on].blocked = g->blocked_next;
    if (g->blocked_next != NONE)
        q->group[g->blocked_next].blocked_prev = g->blocked_prev;
    g->blocked_on = g->blocked_prev = g->blocked_next = NONE;
    s->at[g->leaf].touched = true;
    s->at[g->leaf].groups.at[g->leaf_at].shape = g->shape;
    sh->at[g->shape].open++;
    q->ready += !sh->no_room[g->shape];
}

static void drop_group(struct queue *q, struct shapes *sh, struct shares *s, uint32_t group)
{
    struct group *g = &q->group[group];
    struct shape *shape = &sh->at[g->shape];
    unblock(q, sh, s, group);
    *(g->shape_prev == NONE ? &shape->groups : &q->group[g->shape_prev].shape_next) = g->shape_next;
    if (g->shape_next != NONE)
        q->group[g->shape_next].shape_prev = g->shape_prev;
    user_groups_remove(q, &s->at[g->leaf], g->leaf_at);
    shape->open--;
    q->ready -= !sh->no_room[g->shape];
    forget_group(q, group);
    g->shape_next = q->group_unused;
    q->group_unused = group;
}

/* ---- waiting ---- */

static void group_note_first(const struct queue *q, struct shares *s, const struct group *g)
{
    struct user_group *u = &s->at[g->leaf].groups.at[g->leaf_at];
    u->first_id = q->job[g->first].id;
    u->first_wait_ms = q->job[g->first].wait_ms;
}

/* Who has waited longer goes first; a job that comes back keeps its turn. */
static bool is_before(const struct job *a, const struct job *b)
{
    return a->since_ms != b->since_ms ? a->since_ms < b->since_ms : a->id < b->id;
}

void queue_add(struct queue *q, struct shapes *sh, struct shares *s, uint32_t job)
{
    struct job *j = &q->job[job];
    uint32_t group = group_of(q, sh, s, j);
    struct group *g = &q->group[group];
    uint32_t after = g->last;
    while (after != NONE && is_before(j, &q->job[after]))
        after = q->job[after].prev;
    uint32_t before = after == NONE ? g->first : q->job[after].next;
    j->group = group;
    j->prev = after;
    j->next = before;
    *(after == NONE ? &g->first : &q->job[after].next) = job;
    *(before == NONE ? &g->last : &q->job[before].prev) = job;
    g->n++;
    group_note_first(q, s, g);
    q->waiting++;
    for (uint32_t i = j->leaf; i != NONE; i = s->at[i].parent)
        s->at[i].waiting++;
}

void queue_remove(struct queue *q, struct shapes *sh, struct shares *s, uint32_t job)
{
    struct job *j = &q->job[job];
    struct group *g = &q->group[j->group];
    *(j->prev == NONE ? &g->first : &q->job[j->prev].next) = j->next;
    *(j->next == NONE ? &g->last : &q->job[j->next].prev) = j->prev;
    q->waiting--;
    for (uint32_t i = j->leaf; i != NONE; i = s->at[i].parent)
        s->at[i].waiting--;
    if (--g->n == 0)
        drop_group(q, sh, s, j->group);
    else
        group_note_first(q, s, g);
    j->group = j->prev = j->next = NONE;
}

void queue_no_room(struct queue *q, struct shapes *sh, uint32_t shape)
{
    if (!sh->no_room[shape])
        q->ready -= sh->at[shape].open;
    sh->no_room[shape] = true;
}

void queue_room_came(struct queue *q, struct shapes *sh, uint32_t shape)
{
    if (!sh->no_room[shape])
        return;
    sh->no_room[shape] = false;
    q->ready += sh->at[shape].open;
    q->room_came = true;
}

void queue_block(struct queue *q, struct shapes *sh, struct shares *s, uint32_t group,
                 struct refusal by, bool narrow)
{
    struct group *g = &q->group[group];
    sh->at[g->shape].open--;
    q->ready -= !sh->no_room[g->shape];
    s->at[g->leaf].groups.at[g->leaf_at].shape = NONE;
    g->why = (uint8_t)by.why;
    g->narrow = narrow;
    g->blocked_on = by.share;
    g->blocked_prev = NONE;
    g->blocked_next = s->at[by.share].blocked;
    if (g->blocked_next != NONE)
        q->group[g->blocked_next].blocked_prev = group;
    s->at[by.share].blocked = group;
}

void queue_wake_share(struct queue *q, struct shapes *sh, struct shares *s, uint32_t share)
{
    while (s->at[share].blocked != NONE)
        unblock(q, sh, s, s->at[share].blocked);
}

void queue_wake_narrow(struct queue *q, struct shapes *sh, struct shares *s)
{
    for (uint32_t i = 0; i < s->n && s->ruled; i++)
        for (uint32_t g = s->at[i].blocked, next; g != NONE; g = next) {
            next = q->group[g].blocked_next;
            if (q->group[g].narrow)
                unblock(q, sh, s, g);
        }
}

void queue_wake_limit(struct queue *q, struct shapes *sh, struct shares *s, uint32_t leaf)
{
    for (uint32_t i = leaf; i != NONE; i = s->at[i].parent)
        queue_wake_share(q, sh, s, i);
}

void queue_wake_all(struct queue *q, struct shapes *sh, struct shares *s)
{
    for (uint32_t i = 0; i < sh->n; i++)
        if (sh->at[i].refs)
            queue_room_came(q, sh, i);
    for (uint32_t i = 0; i < s->n; i++)
        queue_wake_share(q, sh, s, i);
    q->room_came = true;
}

enum reason queue_why(const struct queue *q, const struct shapes *sh, uint32_t group)
{
    const struct group *g = &q->group[group];
    if (g->blocked_on != NONE)
        return (enum reason)g->why;
    return sh->no_room[g->shape] ? WHY_ROOM : WHY_NEW;
}

uint32_t queue_rank(const struct user_group *g, const struct policy *p, int64_t now_ms)
{
    int64_t waited_ms = now_ms > g->first_wait_ms ? now_ms - g->first_wait_ms : 0;
    return g->priority + (uint32_t)MIN(waited_ms / p->age_step_ms, p->age_max_steps);
}
