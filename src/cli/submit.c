#include "cli/submit.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/field.h"
#include "cli/jobs.h"
#include "cli/merge.h"
#include "cli/text.h"

int submit_spec(struct cli *c, struct str spec, struct submitted *out, const char **out_field,
                struct answer *answer, struct err *e)
{
    char key[CLIENT_KEY_BYTES]; /* sent again after a broken connection, it makes the same job */
    if (client_make_key(key, e) < 0)
        return -1;
    struct call call = { .method = "POST", .path = "/v1/jobs", .body = spec, .once = key };
    int rc = cli_call(c, &call, answer, e);
    if (out_field)
        *out_field = arena_printf(&c->arena, "%s", answer->field);
    if (rc < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&answer->body), e);
    uint64_t id, count = 1;
    if (!doc || json_need_u64(json_root(doc), "id", UINT64_MAX, &id, e) < 0 ||
        json_get_u64(json_root(doc), "count", UINT64_MAX, &count, e) < 0)
        return err_wrap(e, "the server's answer");
    *out = (struct submitted){ id, count };
    return 0;
}

int submit_run_spec(const struct flags *f, struct words argv, struct buf *out, struct err *e)
{
    AUTO(buf_free) struct buf patch = BUF(out->limit);
    struct json_out w = { .b = &patch }, whole = { .b = out };
    struct flags with = *f;
    char name[64], folder[4096];
    flags_default_name(argv.v, argv.n, name);
    with.name = f->name ? f->name : name;
    bool own_image = f->image && strcmp(f->image, "host") != 0;
    if (!f->workdir && !own_image)
        with.cwd = getcwd(folder, sizeof folder);
    json_begin(&w, NULL, '{');
    json_begin(&w, "command", '[');
    for (size_t i = 0; i < argv.n; i++)
        json_put_str(&w, NULL, str_of(argv.v[i]));
    json_end(&w, ']');
    if (flags_put(&with, &w, e) < 0 ||
        flags_put_env(&with, (const char *const *)environ, true, &w, e) < 0)
        return -1;
    json_end(&w, '}');
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&patch), e);
    if (buf_check(&patch, e) < 0 || !doc)
        return -1;
    merge_put(&whole, NULL, NULL, json_root(doc));
    return buf_check(out, e);
}

/* "it would start now", or why not and when. */
static const char *foreseen(struct cli *c, struct str body)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct err none;
    AUTO(json_free_p) struct json_doc *d = json_read(body, &none);
    const struct json *root = d ? json_root(d) : NULL;
    char half[24], most[24];
    if (!root || !field_known(root, "starts_now"))
        return "";
    if (field_bool(root, "starts_now"))
        return "it would start now";
    const struct json *reasons = json_find(root, "reasons"), *starts = json_find(root, "starts");
    buf_addz(&b, "it would wait");
    if (reasons && json_first(reasons)) {
        buf_addz(&b, ": ");
        text_add_clean(&b, field_str(json_first(reasons), "text"));
    }
    if (starts)
        buf_printf(&b, "; it would start in about %s, in nine of ten cases within %s",
                   text_duration(MAX(field_i64(starts, "p50_in_ms", 0), INT64_C(1000)), half),
                   text_duration(MAX(field_i64(starts, "p90_in_ms", 0), INT64_C(1000)), most));
    return arena_strndup(&c->arena, b.p, b.n);
}

int submit_check(struct cli *c, struct str spec, struct submit_checked *out, struct err *e)
{
    AUTO(answer_free) struct answer a = { 0 };
    struct call call = { .method = "POST", .path = "/v1/jobs/check", .body = spec };
    int rc = cli_call(c, &call, &a, e);
    *out = (struct submit_checked){ .field = arena_printf(&c->arena, "%s", a.field),
                                    .told = rc == 0 ? foreseen(c, buf_str(&a.body)) : "",
                                    .known = rc == 0 };
    if (rc < 0 && e->code == ERR_NOT_FOUND && !out->field[0]) /* a server without this call */
        return 0;
    return rc < 0 ? -1 : 0;
}

static int find_one_after(struct cli *c, struct str text, const char **out, struct err *e)
{
    struct str when, ref;
    struct job_ref r;
    uint64_t id;
    bool said = str_cut(text, ':', &when, &ref);
    if (!said)
        ref = text;
    const char *named = arena_strndup(&c->arena, ref.p, ref.n);
    if (job_ref_parse(named, &r, e) < 0)
        return -1;
    if (r.is_array && r.all)
        id = r.first;
    else if (jobs_resolve_one(c, named, &id, e) < 0)
        return -1;
    *out = arena_printf(&c->arena, "%.*s%s%llu", (int)(said ? when.n : 0), text.p, said ? ":" : "",
                        (unsigned long long)id);
    return 0;
}

int submit_find_after(struct cli *c, struct opt_list *after, struct err *e)
{
    struct opt_list found = { 0 };
    for (size_t i = 0; i < after->n; i++) {
        struct str rest = str_of(after->item[i]), one;
        do {
            str_cut(rest, ',', &one, &rest);
            if (found.n == OPT_LIST_MAX)
                return err_set(e, ERR_TOO_LARGE, "more than %d jobs to start after", OPT_LIST_MAX);
            if (find_one_after(c, one, &found.item[found.n++], e) < 0)
                return -1;
        } while (rest.n);
    }
    *after = found;
    return 0;
}
