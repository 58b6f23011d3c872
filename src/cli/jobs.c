#include "cli/jobs.h"

#include <stdio.h>

#include "cli/field.h"

#define PAGE 1000u
#define ALL_MAX 1000000u

void jobs_clear(struct jobs *j)
{
    for (size_t i = 0; i < j->n_docs; i++)
        json_free(j->docs[i]);
    free(j->docs);
    free(j->v);
    *j = (struct jobs){ 0 };
}

static void add_number(struct buf *out, const char *key, uint64_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    query_add(out, key, text);
}

void jobs_path(const struct job_filter *f, uint64_t before, struct buf *out)
{
    buf_addz(out, "/v1/jobs");
    if (f->states)
        query_add(out, "state", f->states);
    if (f->user)
        query_add(out, "user", f->user);
    if (f->tenant)
        query_add(out, "tenant", f->tenant);
    if (f->name)
        query_add(out, "name", f->name);
    if (f->array)
        add_number(out, "array", f->array);
    if (f->since_ms > 0)
        add_number(out, "since_ms", (uint64_t)f->since_ms);
    add_number(out, "limit", f->limit && f->limit < PAGE ? f->limit : PAGE);
    if (before)
        add_number(out, "before", before);
}

static void add_page(struct jobs *j, struct json_doc *doc, size_t most)
{
    vec_grow(j->docs, j->n_docs, j->cap_docs);
    j->docs[j->n_docs++] = doc;
    const struct json *list = json_find(json_root(doc), "jobs");
    const struct json *o = json_is_array(list) ? json_first(list) : NULL;
    for (; o && j->n < most; o = json_next(list, o)) {
        vec_grow(j->v, j->n, j->cap);
        job_read(o, &j->v[j->n++]);
    }
    j->more = o != NULL;
}

int jobs_fetch(struct cli *c, const struct job_filter *f, struct jobs *out, struct err *e)
{
    AUTO(jobs_clear) struct jobs j = { 0 };
    size_t most = f->limit ? (size_t)MIN(f->limit, (uint64_t)ALL_MAX) : ALL_MAX;
    uint64_t before = f->before;
    do {
        AUTO(buf_free) struct buf path = BUF(8192);
        jobs_path(f, before, &path);
        if (buf_check(&path, e) < 0)
            return -1;
        struct json_doc *doc = cli_get(c, path.p, e);
        if (!doc)
            return -1;
        add_page(&j, doc, most);
        uint64_t next = field_u64(json_root(doc), "next");
        before = before && next >= before ? 0 : next; /* it only ever goes down */
    } while (before && j.n < most);
    j.more |= before != 0;
    *out = j;
    j = (struct jobs){ 0 };
    return 0;
}

/* Jobs of `from` with numbers in first … last go over, with what they borrow from. */
static void take_over(struct jobs *j, struct jobs *from, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->v[i].id >= first && from->v[i].id <= last) {
            vec_grow(j->v, j->n, j->cap);
            j->v[j->n++] = from->v[i];
        }
    for (size_t i = 0; i < from->n_docs; i++) {
        vec_grow(j->docs, j->n_docs, j->cap_docs);
        j->docs[j->n_docs++] = from->docs[i];
    }
    from->n_docs = 0;
    jobs_clear(from);
}

void jobs_add_older(struct jobs *j, struct jobs *from)
{
    take_over(j, from, 0, j->n ? j->v[j->n - 1].id - 1 : UINT64_MAX);
}

static int newest_first(const void *a, const void *b)
{
    uint64_t x = ((const struct job *)a)->id, y = ((const struct job *)b)->id;
    return (x < y) - (x > y);
}

static void in_order_once(struct jobs *j)
{
    size_t n = 0;
    if (j->n)
        qsort(j->v, j->n, sizeof *j->v, newest_first);
    for (size_t i = 0; i < j->n; i++)
        if (n == 0 || j->v[n - 1].id != j->v[i].id)
            j->v[n++] = j->v[i];
    j->n = n;
}

static int fetch_ref(struct cli *c, const struct job_filter *f, const struct job_ref *r,
                     struct jobs *j, struct err *e)
{
    AUTO(jobs_clear) struct jobs found = { 0 };
    struct job_filter of = *f;
    of.array = r->first;
    if (jobs_fetch(c, &of, &found, e) < 0)
        return -1;
    take_over(j, &found, 0, UINT64_MAX);
    if (r->is_array)
        return 0;
    of = *f;
    of.before = r->last + 1; /* the list goes down from there: it need not be read to its end */
    of.limit = r->last - r->first + 1;
    if (jobs_fetch(c, &of, &found, e) < 0)
        return -1;
    take_over(j, &found, r->first, r->last);
    return 0;
}

int jobs_fetch_named(struct cli *c, const struct job_filter *f, const struct words *refs,
                     struct jobs *out, struct err *e)
{
    AUTO(jobs_clear) struct jobs j = { 0 };
    if (refs->n == 0)
        return jobs_fetch(c, f, out, e);
    for (size_t i = 0; i < refs->n; i++) {
        struct job_ref r;
        if (job_ref_parse(refs->v[i], &r, e) < 0 || fetch_ref(c, f, &r, &j, e) < 0)
            return -1;
    }
    in_order_once(&j);
    *out = j;
    j = (struct jobs){ 0 };
    return 0;
}

int jobs_split_refs(struct cli *c, const char *list, struct words *out, struct err *e)
{
    const char **v = arena_array(&c->arena, const char *, strlen(list) / 2 + 2);
    struct str rest = str_of(list), one;
    size_t n = 0;
    while (rest.n) {
        str_cut(rest, ',', &one, &rest);
        if (one.n == 0)
            return err_set(e, ERR_INVALID, "'%s' is no list of jobs", list);
        v[n++] = arena_strndup(&c->arena, one.p, one.n);
    }
    *out = (struct words){ v, n };
    return 0;
}

/* ---- ids ---- */

static void add_id(struct cli *c, struct ids *ids, size_t *cap, uint64_t id)
{
    if (ids->n == *cap) {
        uint64_t *more = arena_array(&c->arena, uint64_t, *cap ? *cap * 2 : 64);
        if (ids->n)
            memcpy(more, ids->v, ids->n * sizeof *more);
        *cap = *cap ? *cap * 2 : 64;
        ids->v = more;
    }
    ids->v[ids->n++] = id;
}

static int add_elements(struct cli *c, const char *text, const struct job_ref *r, struct ids *ids,
                        size_t *cap, struct err *e)
{
    AUTO(jobs_clear) struct jobs j = { 0 };
    size_t before = ids->n;
    if (jobs_fetch(c, &(struct job_filter){ .states = "all", .array = r->first }, &j, e) < 0)
        return -1;
    for (size_t i = j.n; i-- > 0;) {
        uint64_t index = (uint64_t)MAX(j.v[i].array_index, INT64_C(0));
        if (r->all || (index >= r->index_from && index <= r->index_to))
            add_id(c, ids, cap, j.v[i].id);
    }
    if (ids->n > before)
        return 0;
    err_set(e, ERR_NOT_FOUND, "there is no job %s", text);
    return err_hint(e, "see those there are: nightshift ps --all");
}

int jobs_resolve(struct cli *c, struct words refs, struct ids *out, struct err *e)
{
    struct ids ids = { 0 };
    size_t cap = 0;
    for (size_t i = 0; i < refs.n; i++) {
        struct job_ref r;
        if (job_ref_parse(refs.v[i], &r, e) < 0)
            return -1;
        if (r.is_array && add_elements(c, refs.v[i], &r, &ids, &cap, e) < 0)
            return -1;
        for (uint64_t id = r.first; !r.is_array && id <= r.last; id++)
            add_id(c, &ids, &cap, id);
    }
    *out = ids;
    return 0;
}

int jobs_resolve_one(struct cli *c, const char *ref, uint64_t *out, struct err *e)
{
    struct ids ids;
    if (jobs_resolve(c, (struct words){ &ref, 1 }, &ids, e) < 0)
        return -1;
    if (ids.n != 1)
        return err_set(e, ERR_INVALID, "'%s' is more than one job; name one", ref);
    *out = ids.v[0];
    return 0;
}

/* ---- arrays ---- */

size_t jobs_array_run(const struct jobs *j, size_t i)
{
    size_t n = 1;
    const struct job *first = &j->v[i];
    if (!first->array || first->array_index < 0)
        return 1;
    while (i + n < j->n && j->v[i + n].array == first->array && j->v[i + n].state == first->state &&
           str_eq(j->v[i + n].reason, first->reason))
        n++;
    return n;
}

void jobs_add_array_text(const struct jobs *j, size_t i, size_t n, struct buf *out)
{
    buf_printf(out, "%llu_[", (unsigned long long)j->v[i].array);
    /* Newest first means the largest index first: walk backwards. */
    for (size_t k = n; k-- > 0;) {
        int64_t from = j->v[i + k].array_index, to = from;
        for (; k > 0 && j->v[i + k - 1].array_index == to + 1; k--)
            to++;
        buf_printf(out, "%lld", (long long)from);
        if (to > from)
            buf_printf(out, "-%lld", (long long)to);
        buf_addz(out, k ? "," : "");
    }
    buf_addc(out, ']');
}
