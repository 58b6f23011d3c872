#include "engine/local/saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/parse.h"
#include "sys/clock.h"
#include "sys/file.h"

#define TEXT_MAX (2u << 20)
#define PATH_BYTES 4200
#define NUMBERS "numbers"

/* What a copy says beside the job itself. */
struct run {
    uint64_t job;
    uint32_t run, replicas;
    int64_t made_ms;
    char *node;
    struct slot *slot;
};

struct saved {
    char *folder, *tasks;
    struct log *log;
    engine_sink_fn *sink;
    void *ctx;
    struct clock clock;
    struct run *run; /* in no order */
    size_t n, cap;
    struct map by_job; /* index into run */
    uint64_t *untold;  /* jobs on the disk that nobody has taken up yet, in order */
    size_t untolds, untold_cap;
    bool looked;
};

/* ---- a file's text ---- */

/* The digest is of what stands before it: a bit that fell over on the disk is no job. */
void saved_write(const struct saved_job *c, struct buf *out)
{
    struct json_out w = { .b = out };
    size_t from = out->n;
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "job", c->job);
    json_put_u64(&w, "run", c->run);
    json_put_i64(&w, "made_ms", c->made_ms);
    json_put_str(&w, "node", c->node);
    json_begin(&w, "slots", '[');
    for (uint32_t i = 0; i < c->replicas; i++) {
        json_begin(&w, NULL, '[');
        json_put_u64(&w, NULL, c->slot[i].gpu_mask);
        json_put_u64(&w, NULL, c->slot[i].milli);
        json_end(&w, ']');
    }
    json_end(&w, ']');
    json_put_str(&w, "record", c->record);
    json_end(&w, '}');
    struct str text = { out->p + from, out->n - from };
    uint64_t digest = str_hash(text);
    buf_printf(out, "\n%016llx\n", (unsigned long long)digest);
}

static int read_slots(const struct json *list, struct arena *a, struct saved_job *out,
                      struct err *e)
{
    uint32_t n = 0;
    if (!json_is_array(list) || json_len(list) == 0 || json_len(list) > REPLICAS_MAX)
        return err_set(e, ERR_INVALID, "field 'slots': a list is needed");
    struct slot *slot = arena_array(a, struct slot, json_len(list));
    for (const struct json *s = json_first(list); s; s = json_next(list, s), n++) {
        const struct json *mask = json_is_array(s) ? json_first(s) : NULL;
        const struct json *milli = mask ? json_next(s, mask) : NULL;
        uint64_t m = 0, k = 0;
        if (!milli || json_as_u64(mask, UINT16_MAX, &m, e) < 0 ||
            json_as_u64(milli, GPU_MILLI, &k, e) < 0)
            return err_set(e, ERR_INVALID, "field 'slots': two numbers are needed for each");
        slot[n] = (struct slot){ .gpu_mask = (uint16_t)m, .milli = (uint16_t)k };
    }
    out->slot = slot;
    out->replicas = n;
    return 0;
}

static int read_fields(const struct json *o, struct arena *a, struct saved_job *c, struct err *e)
{
    uint64_t run = 0;
    struct str node, record;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "an object is needed");
    if (json_need_u64(o, "job", INT64_MAX, &c->job, e) < 0 ||
        json_need_u64(o, "run", UINT32_MAX, &run, e) < 0 ||
        json_need_i64(o, "made_ms", 0, INT64_MAX, &c->made_ms, e) < 0 ||
        json_need_str(o, "node", NAME_MAX_BYTES, &node, e) < 0 ||
        json_need_str(o, "record", TEXT_MAX, &record, e) < 0 ||
        read_slots(json_find(o, "slots"), a, c, e) < 0)
        return -1;
    c->run = (uint32_t)run;
    c->node = (struct str){ arena_strndup(a, node.p, node.n), node.n };
    c->record = (struct str){ arena_strndup(a, record.p, record.n), record.n };
    return 0;
}

int saved_read(struct str text, struct arena *a, struct saved_job *out, struct err *e)
{
    struct str line, digest;
    struct saved_job c = { 0 };
    char want[24];
    if (!str_cut(text, '\n', &line, &digest))
        return err_set(e, ERR_INVALID, "it was cut off");
    snprintf(want, sizeof want, "%016llx\n", (unsigned long long)str_hash(line));
    if (!str_is(digest, want))
        return err_set(e, ERR_INVALID, "its checksum is wrong");
    AUTO(json_free_p) struct json_doc *d = json_read(line, e);
    if (!d || read_fields(json_root(d), a, &c, e) < 0)
        return -1;
    *out = c;
    return 0;
}

/* ---- files ---- */

static const char *path_of(const struct saved *c, const char *name, char out[static PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s/%s", c->folder, name);
    return out;
}

static const char *name_of(uint64_t job, char out[static 24])
{
    snprintf(out, 24, "%llu", (unsigned long long)job);
    return out;
}

static void complain(const struct saved *c, const char *name, const char *why)
{
    if (c->log)
        log_event(c->log, LOG_WARN_, "job.copy", "file=%s/%s why=%s", c->folder, name, why);
}

static bool write_whole(const char *path, struct str text)
{
    AUTO(file_close_p) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, text.p, text.n);
    if (n >= 0 && (size_t)n < text.n)
        errno = ENOSPC;
    return n >= 0 && (size_t)n == text.n;
}

static void put(struct saved *c, const char *name, struct str text)
{
    char path[PATH_BYTES], fresh[PATH_BYTES + 4];
    path_of(c, name, path);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    if (!write_whole(fresh, text) && errno == ENOENT && mkdir(c->folder, 0700) == 0)
        write_whole(fresh, text);
    else if (errno == ENOSPC)
        unlink(fresh);
    if (rename(fresh, path) < 0)
        complain(c, name, strerror(errno));
}

static void drop(struct saved *c, uint64_t job)
{
    char path[PATH_BYTES], name[24];
    if (unlink(path_of(c, name_of(job, name), path)) < 0 && errno != ENOENT)
        complain(c, name, strerror(errno));
}

/* ---- what is known of runs ---- */

static struct run *run_of(struct saved *c, uint64_t job)
{
    uint64_t at;
    return map_get(&c->by_job, job, &at) ? &c->run[at] : NULL;
}

static void run_clear(struct run *r)
{
    free(r->node);
    free(r->slot);
}

static void note_run(struct saved *c, const struct saved_job *of)
{
    struct run *r = run_of(c, of->job);
    if (r) {
        run_clear(r);
    } else {
        vec_grow(c->run, c->n, c->cap);
        map_set(&c->by_job, of->job, c->n);
        r = &c->run[c->n++];
    }
    *r = (struct run){ of->job,
                       of->run,
                       of->replicas,
                       of->made_ms,
                       .node = xcalloc(of->node.n + 1, 1),
                       .slot = xcalloc(of->replicas, sizeof *r->slot) };
    if (of->node.n)
        memcpy(r->node, of->node.p, of->node.n);
    if (of->replicas)
        memcpy(r->slot, of->slot, of->replicas * sizeof *r->slot);
}

static void forget_run(struct saved *c, uint64_t job)
{
    struct run *r = run_of(c, job);
    map_remove(&c->by_job, job);
    if (!r)
        return;
    run_clear(r);
    *r = c->run[--c->n]; /* the last one takes its place */
    if (r != &c->run[c->n])
        map_set(&c->by_job, r->job, (uint64_t)(r - c->run));
}

/* ---- writing ---- */

static void write_copy(struct saved *c, uint64_t job)
{
    AUTO(buf_free) struct buf text = BUF(TEXT_MAX), file = BUF(2 * TEXT_MAX);
    const struct run *r = run_of(c, job);
    struct engine_event ev = { .kind = ENGINE_RECORD, .task = { .job = job } };
    char name[24];
    bool over = false;
    ev.record = (struct engine_record){ .text = &text, .out_over = &over };
    c->sink(c->ctx, &ev);
    if (over) {
        drop(c, job);
        forget_run(c, job);
    } else if (text.n && !text.full) {
        saved_write(&(struct saved_job){ .job = job,
                                         .run = r->run,
                                         .replicas = r->replicas,
                                         .made_ms = r->made_ms,
                                         .node = str_of(r->node),
                                         .slot = r->slot,
                                         .record = buf_str(&text) },
                    &file);
        if (!file.full)
            put(c, name_of(job, name), buf_str(&file));
    }
}

void saved_begin(struct saved *c, const struct engine_start *s)
{
    const struct run *r = run_of(c, s->task.job);
    if (s->spec->observed.n || (r && r->run == s->task.run))
        return;
    note_run(c, &(struct saved_job){ .job = s->task.job,
                                     .run = s->task.run,
                                     .replicas = s->n_slots,
                                     .made_ms = clock_now_ms(&c->clock),
                                     .node = s->node,
                                     .slot = s->slots });
    write_copy(c, s->task.job);
}

static void write_numbers(struct saved *c)
{
    AUTO(buf_free) struct buf text = BUF(4096);
    struct engine_event ev = { .kind = ENGINE_RECORD };
    bool over = false;
    ev.record = (struct engine_record){ .text = &text, .out_over = &over };
    c->sink(c->ctx, &ev);
    if (text.n)
        put(c, NUMBERS, buf_str(&text));
}

void saved_keep(struct saved *c, uint64_t job)
{
    if (job == 0)
        write_numbers(c);
    else if (run_of(c, job))
        write_copy(c, job);
}

/* ---- telling ---- */

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* "17" of "17" and of "17.1.0"; 0: the name begins with no number. */
static uint64_t number_of(const char *name, bool *out_alone)
{
    struct str number, rest = { 0 };
    uint64_t job;
    struct err e;
    *out_alone = !str_cut(str_of(name), '.', &number, &rest);
    if (*out_alone)
        number = str_of(name);
    return parse_u64(number, INT64_MAX, &job, &e) < 0 ? 0 : job;
}

static uint64_t look_into(struct saved *c, const char *folder, bool copies)
{
    uint64_t largest = 0;
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d));) {
        bool alone;
        uint64_t job = number_of(f->d_name, &alone);
        largest = MAX(largest, job);
        if (!copies || !job || !alone)
            continue;
        vec_grow(c->untold, c->untolds, c->untold_cap);
        c->untold[c->untolds++] = job;
    }
    if (d)
        closedir(d);
    return largest;
}

/* Folders of tasks count as well: whoever got such a number again would be shown another's output. */
void saved_tell_numbers(struct saved *c)
{
    AUTO(buf_free) struct buf text = { 0 };
    char path[PATH_BYTES];
    struct err e;
    if (c->looked)
        return;
    c->looked = true;
    uint64_t seen = look_into(c, c->folder, true), logs = look_into(c, c->tasks, false);
    if (c->untolds)
        qsort(c->untold, c->untolds, sizeof *c->untold, by_number);
    struct engine_event ev = { .kind = ENGINE_KEPT };
    ev.kept.least = MAX(seen, logs);
    if (access(path_of(c, NUMBERS, path), F_OK) == 0 && file_read(path, 4096, &text, &e) < 0)
        complain(c, NUMBERS, e.msg);
    ev.kept.record = buf_str(&text);
    if (text.n || ev.kept.least)
        c->sink(c->ctx, &ev);
}

/* True: it is told again in the next sync. */
static bool tell_one(struct saved *c, uint64_t job)
{
    AUTO(buf_free) struct buf text = { 0 };
    AUTO(arena_free) struct arena a = { 0 };
    struct engine_event ev = { .kind = ENGINE_KEPT };
    struct saved_job of = { 0 };
    char path[PATH_BYTES], name[24];
    bool left = false;
    struct err e;
    if (file_read(path_of(c, name_of(job, name), path), 2 * TEXT_MAX, &text, &e) < 0 ||
        saved_read(buf_str(&text), &a, &of, &e) < 0 || of.job != job) {
        complain(c, name, of.job ? "it is of another job" : e.msg);
        return false;
    }
    note_run(c, &of);
    struct str *node = arena_array(&a, struct str, of.replicas);
    for (uint32_t i = 0; i < of.replicas; i++)
        node[i] = of.node;
    ev.task = (struct task_id){ job, of.run, 0 };
    ev.kept = (struct engine_kept){ .record = of.record,
                                    .node = node,
                                    .nodes = of.replicas,
                                    .slots = of.slot,
                                    .made_ms = of.made_ms,
                                    .out_left = &left };
    c->sink(c->ctx, &ev);
    return left;
}

void saved_tell(struct saved *c)
{
    size_t left = 0;
    for (size_t i = 0; i < c->untolds; i++)
        if (tell_one(c, c->untold[i]))
            c->untold[left++] = c->untold[i];
    c->untolds = left;
}

/* ---- life ---- */

struct saved *saved_new(const struct saved_config *config)
{
    struct saved *c = xcalloc(1, sizeof *c);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/jobs", config->state);
    c->folder = xstrdup(path);
    snprintf(path, sizeof path, "%s/tasks", config->state);
    c->tasks = xstrdup(path);
    c->log = config->log;
    c->clock = config->clock;
    c->sink = config->sink;
    c->ctx = config->ctx;
    return c;
}

struct saved *saved_free(struct saved *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->n; i++)
        run_clear(&c->run[i]);
    free(c->run);
    map_free(&c->by_job);
    free(c->untold);
    free(c->folder);
    free(c->tasks);
    free(c);
    return NULL;
}
