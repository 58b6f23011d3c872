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
    add_number(out, "limit", f->limit && f->limit < PAGE ? f->limit : PAGE);
    if (before)
        add_number(out, "before", before);
}

static void add_page(struct jobs *j, struct json_doc *doc, size_t most)
{
    vec_grow(j->docs, j->n_docs, j->cap_docs);
    j->docs[j->n_docs++] = doc;
    const struct json *list = json_find(json_root(doc), "jobs");
    for (const struct json *o = json_is_array(list) ? json_first(list) : NULL; o && j->n < most;
         o = json_next(list, o)) {
        vec_grow(j->v, j->n, j->cap);
        job_read(o, &j->v[j->n++]);
    }
}

int jobs_fetch(struct cli *c, const struct job_filter *f, struct jobs *out, struct err *e)
{
    AUTO(jobs_clear) struct jobs j = { 0 };
    size_t most = f->limit ? (size_t)MIN(f->limit, (uint64_t)ALL_MAX) : ALL_MAX;
    uint64_t before = 0;
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
    *out = j;
    j = (struct jobs){ 0 };
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
