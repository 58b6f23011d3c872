#include "cli/audit_file.h"

#include <errno.h>

#include "base/json.h"
#include "cli/field.h"
#include "sys/progress.h"

#define LINE_MAX_BYTES (1u << 20)

struct reading {
    const struct audit_file *f;
    struct audit_chain *chain;
    struct audit_link head;
    uint64_t line;
};

static int not_one(const struct reading *r, const struct err *why, struct err *e)
{
    err_set(e, ERR_INVALID, "'%s' line %llu is not of an exported audit: %s", r->f->name,
            (unsigned long long)r->line, why->msg);
    return err_hint(e, "make one with: nightshift audit export > FILE");
}

static int read_hash(const struct json *v, struct audit_hash *out, struct err *e)
{
    struct str text;
    if (json_need_str(v, "hash", AUDIT_HASH_TEXT, &text, e) < 0)
        return -1;
    return audit_hash_parse(text, out) ? 0 : err_set(e, ERR_INVALID, "field 'hash' is no hash");
}

static int read_link(const struct json *root, const char *key, struct audit_link *out,
                     struct err *e)
{
    const struct json *v = json_is_object(root) ? json_find(root, key) : NULL;
    if (!v || !json_is_object(v))
        return err_set(e, ERR_INVALID, "field '%s' is missing", key);
    if (json_need_u64(v, "number", INT64_MAX, &out->number, e) < 0)
        return -1;
    return read_hash(v, &out->hash, e);
}

static int take_header(struct reading *r, const struct json *root, struct err *e)
{
    struct audit_link cut;
    uint64_t version = 0;
    if (!json_is_object(root) || json_need_u64(root, "audit", UINT32_MAX, &version, e) < 0)
        return e->code ? -1 : err_set(e, ERR_INVALID, "it is no object");
    if (version != 1)
        return err_set(e, ERR_INVALID, "its format is %llu; 1 is known here",
                       (unsigned long long)version);
    if (read_link(root, "cut", &cut, e) < 0 || read_link(root, "head", &r->head, e) < 0)
        return -1;
    audit_chain_begin(r->chain, &cut, r->f->noted);
    return 0;
}

static int take_row(struct reading *r, const struct json *root, struct err *e)
{
    struct audit_row row = { 0 };
    struct audit_hash hash;
    struct str failure = json_is_object(root) ? field_str(root, "error") : STR("");
    if (failure.n)
        return err_set(e, ERR_CONFLICT, "it ends before its end: %.*s", STR_ARG(failure));
    if (!json_is_object(root))
        return err_set(e, ERR_INVALID, "it is no object");
    if (json_need_u64(root, "number", INT64_MAX, &row.number, e) < 0 ||
        json_need_i64(root, "t_ms", INT64_MIN, INT64_MAX, &row.t_ms, e) < 0 ||
        read_hash(root, &hash, e) < 0)
        return -1;
#define X(name, max)                                                                               \
    if (json_need_str(root, #name, LINE_MAX_BYTES, &row.name, e) < 0)                              \
        return -1;
    AUDIT_TEXTS(X)
#undef X
    audit_chain_add(r->chain, &row, &hash);
    return 0;
}

static int take_line(struct reading *r, struct str line, struct err *e)
{
    struct err why = { 0 };
    AUTO(json_free_p)
    struct json_doc *doc = line.n <= LINE_MAX_BYTES ? json_read(line, &why) : NULL;
    if (line.n > LINE_MAX_BYTES)
        err_set(&why, ERR_TOO_LARGE, "it has %zu bytes", line.n);
    r->line++;
    if (!doc || (r->line == 1 ? take_header : take_row)(r, json_root(doc), &why) < 0)
        return not_one(r, &why, e);
    return 0;
}

int audit_file_verify(const struct audit_file *f, struct audit_chain *out, struct err *e)
{
    struct reading r = { .f = f, .chain = out };
    AUTO(free_p) char *line = NULL;
    AUTO(progress_done_p) struct progress *p = progress_begin("verifying", f->bytes);
    size_t cap = 0;
    uint64_t seen = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, f->from)) > 0) {
        struct str text = str_trim((struct str){ line, (size_t)n });
        if (take_line(&r, text, e) < 0)
            return -1;
        if (out->fault) /* what follows says no more */
            return 0;
        seen += (uint64_t)n;
        progress_set(p, seen);
    }
    if (ferror(f->from))
        return err_set(e, ERR_UNAVAILABLE, "cannot read '%s': %s", f->name, strerror(errno));
    if (r.line == 0) {
        err_set(e, ERR_INVALID, "'%s' is empty", f->name);
        return err_hint(e, "make one with: nightshift audit export > FILE");
    }
    audit_chain_end(out, &r.head);
    return 0;
}
