#include "history/trail.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define FIRST_STEP_MS INT64_C(1000)
#define WRITE_MS INT64_C(60000)
#define SILENT_MS INT64_C(30000) /* a task that was not heard of for so long is over */
#define MEANING UINT64_C(0x316c696172547300)

struct trail {
    uint64_t meaning, sum;
    struct history_task who;
    int64_t first_ms, step_ms, last_ms, written_ms;
    uint32_t points;                    /* the last one goes on */
    uint32_t count[HISTORY_TASK_COUNT]; /* samples in it */
    float v[HISTORY_TASK_COUNT][TRAIL_POINTS];
};

struct trails {
    int fd;                       /* -1: none */
    struct trail *at[TRAILS_MAX]; /* NULL: free */
};

uint64_t trails_bytes(void)
{
    return TRAILS_MAX * sizeof(struct trail);
}

/* ---- the disk ---- */

static uint64_t sum_of(const struct trail *t)
{
    const size_t from = offsetof(struct trail, who);
    return str_hash((struct str){ (const char *)t + from, sizeof *t - from });
}

static bool is_whole(const struct trail *t)
{
    return t->meaning == MEANING && t->sum == sum_of(t) && t->points > 0 &&
           t->points <= TRAIL_POINTS && t->step_ms >= FIRST_STEP_MS && t->first_ms >= 0 &&
           t->last_ms >= t->first_ms;
}

static void write_trail(struct trails *all, size_t i)
{
    struct trail *t = all->at[i];
    t->written_ms = t->last_ms;
    t->meaning = MEANING;
    t->sum = sum_of(t);
    if (all->fd >= 0) /* a full disk costs what would have been kept, and no more */
        (void)!pwrite(all->fd, t, sizeof *t, (off_t)(i * sizeof *t));
}

static void load(struct trails *all)
{
    struct trail *t = xcalloc(1, sizeof *t);
    for (size_t i = 0; i < TRAILS_MAX; i++) {
        if (pread(all->fd, t, sizeof *t, (off_t)(i * sizeof *t)) != (ssize_t)sizeof *t)
            break;
        if (!is_whole(t))
            continue;
        all->at[i] = t;
        t = xcalloc(1, sizeof *t);
    }
    free(t);
}

struct trails *trails_open(const char *path)
{
    struct trails *all = xcalloc(1, sizeof *all);
    struct stat st;
    all->fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (all->fd < 0)
        return all;
    /* The length without the blocks, as a ring's. */
    if (fstat(all->fd, &st) == 0 && (uint64_t)st.st_size == trails_bytes())
        load(all);
    else if (ftruncate(all->fd, 0) < 0 || ftruncate(all->fd, (off_t)trails_bytes()) < 0)
        file_close_p(&all->fd);
    return all;
}

struct trails *trails_close(struct trails *all)
{
    if (!all)
        return NULL;
    for (size_t i = 0; i < TRAILS_MAX; i++) {
        if (all->at[i] && all->at[i]->written_ms != all->at[i]->last_ms)
            write_trail(all, i);
        free(all->at[i]);
    }
    file_close_p(&all->fd);
    free(all);
    return NULL;
}

/* ---- points ---- */

static float middle(float a, float b)
{
    if (!isfinite(a) || !isfinite(b))
        return isfinite(a) ? a : b;
    return (a + b) / 2;
}

/* Two points become one. */
static void thin_out(struct trail *t)
{
    for (size_t k = 0; k < HISTORY_TASK_COUNT; k++) {
        for (size_t i = 0; i < TRAIL_POINTS / 2; i++)
            t->v[k][i] = middle(t->v[k][2 * i], t->v[k][2 * i + 1]);
        t->count[k] = 0;
    }
    t->points = TRAIL_POINTS / 2;
    t->step_ms *= 2;
}

static void begin_point(struct trail *t, uint32_t place)
{
    for (; t->points <= place; t->points++)
        for (size_t k = 0; k < HISTORY_TASK_COUNT; k++) {
            t->v[k][t->points] = NAN;
            t->count[k] = 0;
        }
}

static void add(struct trail *t, int64_t t_ms, const float v[HISTORY_TASK_COUNT])
{
    int64_t place = (t_ms - t->first_ms) / t->step_ms;
    if (place < 0 || t_ms < t->last_ms)
        return;
    for (; place >= (int64_t)TRAIL_POINTS; place = (t_ms - t->first_ms) / t->step_ms) {
        begin_point(t, TRAIL_POINTS - 1);
        thin_out(t);
    }
    if (place >= (int64_t)t->points)
        begin_point(t, (uint32_t)place);
    for (size_t k = 0; k < HISTORY_TASK_COUNT; k++) {
        float *to = &t->v[k][place];
        if (!isfinite(v[k]))
            continue;
        *to = isfinite(*to) ? *to + (v[k] - *to) / (float)(t->count[k] + 1) : v[k];
        t->count[k]++;
    }
    t->last_ms = t_ms;
}

/* ---- tasks ---- */

static bool is_same(const struct history_task *a, const struct history_task *b)
{
    return a->job == b->job && a->run == b->run && a->replica == b->replica;
}

static bool read_task(const char *text, struct history_task *out)
{
    struct str rest = str_of(text), word[3];
    uint64_t n[3];
    struct err ignored;
    for (int i = 0; i < 3; i++) {
        str_cut(rest, '.', &word[i], &rest);
        if (parse_u64(word[i], i ? UINT32_MAX : UINT64_MAX, &n[i], &ignored) < 0)
            return false;
    }
    *out = (struct history_task){ n[0], (uint32_t)n[1], (uint32_t)n[2] };
    return rest.n == 0;
}

/* Where it is, or may begin; TRAILS_MAX: all the others run. */
static size_t place_for(const struct trails *all, const struct history_task *who, int64_t t_ms)
{
    size_t best = TRAILS_MAX;
    for (size_t i = 0; i < TRAILS_MAX; i++) {
        const struct trail *t = all->at[i];
        if (t && is_same(&t->who, who))
            return i;
        const struct trail *b = best < TRAILS_MAX ? all->at[best] : NULL;
        if (!t && (best == TRAILS_MAX || b))
            best = i;
        else if (t && t->last_ms < t_ms - SILENT_MS &&
                 (best == TRAILS_MAX || (b && t->last_ms < b->last_ms)))
            best = i;
    }
    return best;
}

static struct trail *begin(struct trails *all, size_t i, const struct history_task *who,
                           int64_t t_ms)
{
    struct trail *t = all->at[i];
    if (t && is_same(&t->who, who))
        return t;
    if (!t)
        t = all->at[i] = xcalloc(1, sizeof *t);
    memset(t, 0, sizeof *t);
    t->who = *who;
    t->step_ms = FIRST_STEP_MS;
    t->first_ms = t->last_ms = t_ms / FIRST_STEP_MS * FIRST_STEP_MS;
    return t;
}

static float known(int64_t v)
{
    return v < 0 ? NAN : (float)v;
}

/* Its part of all GPUs together.  None is told and none could be hidden: it does nothing there. */
static void add_gpus(const struct report_head *head, const struct report_sample *s,
                     const char *task, float v[HISTORY_TASK_COUNT])
{
    bool told = false, hidden = head->gpus == 0;
    int64_t permille = 0, mem_mib = 0;
    for (uint32_t g = 0; g < head->gpus; g++)
        hidden |= s->gpu[g][REPORT_GPU_UTIL] < 0;
    for (uint32_t i = 0; i < s->parts; i++) {
        const struct report_part *p = &s->part[i];
        hidden |= strcmp(p->who, REPORT_NOT_TOLD) == 0;
        if (strcmp(p->who, task) != 0)
            continue;
        told = true;
        permille += MAX(p->permille, INT64_C(0));
        mem_mib += MAX(p->mem_mib, INT64_C(0));
    }
    v[HISTORY_TASK_GPU] = told || !hidden ? (float)permille : NAN;
    v[HISTORY_TASK_GPU_MEM] = told || !hidden ? (float)mem_mib : NAN;
}

void trails_take(struct trails *all, const struct report_head *head, const struct report_sample *s)
{
    for (uint32_t i = 0; i < s->tasks; i++) {
        const struct report_task *r = &s->task[i];
        float v[HISTORY_TASK_COUNT] = { [HISTORY_TASK_CPU] = known(r->v[REPORT_TASK_CPU]),
                                        [HISTORY_TASK_MEM] = known(r->v[REPORT_TASK_MEM]) };
        struct history_task who;
        size_t at = read_task(r->task, &who) ? place_for(all, &who, s->t_ms) : TRAILS_MAX;
        if (at == TRAILS_MAX || s->t_ms < 0)
            continue;
        struct trail *t = begin(all, at, &who, s->t_ms);
        add_gpus(head, s, r->task, v);
        add(t, s->t_ms, v);
        if (t->last_ms - t->written_ms >= WRITE_MS)
            write_trail(all, at);
    }
}

bool trails_find(const struct trails *all, struct history_task which, struct history_trail *out)
{
    for (size_t i = 0; i < TRAILS_MAX; i++) {
        const struct trail *t = all->at[i];
        if (!t || !is_same(&t->who, &which))
            continue;
        *out = (struct history_trail){ .from_ms = t->first_ms,
                                       .step_ms = t->step_ms,
                                       .points = t->points };
        for (size_t k = 0; k < HISTORY_TASK_COUNT; k++)
            out->v[k] = t->v[k];
        return true;
    }
    return false;
}
