#include "cli/lent.h"

#include <stdio.h>

#include "cli/field.h"
#include "cli/job.h"
#include "cli/text.h"
#include "cli/when.h"

/* ---- printing ---- */

void lent_add_line(struct buf *b, const char *title, struct str text)
{
    buf_printf(b, "%-9s", title);
    text_add_clean(b, text);
    buf_addc(b, '\n');
}

void lent_add_nodes(struct buf *b, const struct json *nodes)
{
    const char *title = "machines";
    for (const struct json *n = json_is_array(nodes) ? json_first(nodes) : NULL; n;
         n = json_next(nodes, n), title = "") {
        char free_text[24];
        struct str state = field_str(n, "state"), model = field_str(n, "model");
        buf_printf(b, "%-9s", title);
        text_add_clean(b, field_str(n, "name"));
        if (str_is(state, "unknown")) {
            buf_addz(b, ": has not come yet\n");
            continue;
        }
        uint64_t gpus = field_u64(n, "gpus");
        buf_printf(b, ": %.*s, %llu GPU%s", STR_ARG(state), (unsigned long long)gpus,
                   gpus == 1 ? "" : "s");
        if (model.n) {
            buf_addz(b, " (");
            text_add_clean(b, model);
            buf_printf(b, "), %s free", text_milli(field_u64(n, "gpu_free_milli"), free_text));
        }
        buf_addc(b, '\n');
    }
}

/* What happens to a job there when the window ends, or the reservation begins. */
static void add_leave(struct buf *b, const struct json *j)
{
    static const struct {
        const char *how, *words;
    } ways[] = {
        { "never", "it need not leave" },
        { "ends", "ends by its limit, at the latest " },
        { "frozen", "is frozen " },
        { "anew", "is ended and starts anew later, " },
        { "stays", "goes on to its end: it cannot be frozen, and its limit is too long" },
    };
    char at[24];
    struct str how = field_str(j, "leaves");
    int64_t at_ms = field_i64(j, "leaves_ms", 0);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (!str_is(how, ways[i].how))
            continue;
        bool stays = str_is(how, "stays");
        if (stays && !at_ms)
            buf_addz(b, "goes on to its end: it cannot be frozen and has no limit");
        else
            buf_addz(b, ways[i].words);
        if (stays && at_ms)
            buf_printf(b, " (%s)", text_soon(at_ms, cli_now_ms(), at));
        else if (at_ms)
            buf_addz(b, text_soon(at_ms, cli_now_ms(), at));
    }
}

void lent_add_jobs(struct buf *b, const struct json *jobs, bool stay_only)
{
    const char *title = "jobs";
    for (const struct json *j = json_is_array(jobs) ? json_first(jobs) : NULL; j;
         j = json_next(jobs, j)) {
        if (stay_only && !str_is(field_str(j, "leaves"), "stays"))
            continue;
        AUTO(buf_free) struct buf who = BUF(1u << 16);
        job_add_holder(j, &who);
        buf_printf(b, "%-9s", title);
        text_add_clean(b, buf_str(&who));
        buf_addz(b, " on ");
        text_add_clean(b, field_str(j, "node"));
        buf_addz(b, ": ");
        add_leave(b, j);
        buf_addc(b, '\n');
        title = "";
    }
}

/* ---- calls ---- */

int lent_path(const char *of, const char *name, const char *verb, struct buf *path, struct err *e)
{
    buf_addz(path, of);
    path_add(path, name);
    if (verb)
        path_add(path, verb);
    return buf_check(path, e);
}

int lent_put_times(const struct lent_times *t, struct json_out *w, struct err *e)
{
    int64_t now_ms = cli_now_ms(), from_ms = now_ms, ms;
    if (t->until && t->for_time) {
        err_set(e, ERR_INVALID, "either --until or --for is needed, not both");
        return err_hint(e, "e.g. --for 3h");
    }
    if (t->from) {
        if (when_coming(t->from, now_ms, now_ms, &from_ms, e) < 0)
            return err_wrap(e, "--from");
        json_put_i64(w, "from_ms", from_ms);
    }
    if (t->until) {
        if (when_coming(t->until, now_ms, from_ms, &ms, e) < 0)
            return err_wrap(e, "--until");
        json_put_i64(w, "until_ms", ms);
    }
    if (t->for_time)
        json_put_str(w, "for", str_of(t->for_time));
    return 0;
}

int lent_remove(struct cli *c, const char *of, const char *name, const char *now, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(2048), b = BUF(2u << 20);
    AUTO(answer_free) struct answer a = { 0 };
    struct str node;
    if (lent_path(of, name, NULL, &path, e) < 0 ||
        cli_call(c, &(struct call){ .method = "DELETE", .path = path.p }, &a, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    const struct json *nodes = json_find(json_root(doc), "nodes");
    text_add_clean(&b, str_of(name));
    buf_addz(&b, ": removed");
    for (const struct json *n = json_is_array(nodes) ? json_first(nodes) : NULL; n;
         n = json_next(nodes, n)) {
        if (json_as_str(n, 4096, &node, e) < 0)
            return -1;
        if (n == json_first(nodes))
            buf_printf(&b, "; %s: ", now);
        else
            buf_addz(&b, ", ");
        text_add_clean(&b, node);
    }
    buf_addc(&b, '\n');
    return cli_print(&b, e);
}

void lent_add_held(struct buf *out, struct str node, const struct json *held)
{
    char at[24];
    int64_t since_ms = field_i64(held, "since_ms", 0), until_ms = field_i64(held, "until_ms", 0);
    text_add_clean(out, node);
    buf_addz(out, " is held by its owner");
    if (field_known(held, "by")) {
        buf_addz(out, " (");
        text_add_clean(out, field_str(held, "by"));
        buf_addc(out, ')');
    }
    if (since_ms)
        buf_printf(out, " since %s", text_time(since_ms, at));
    if (until_ms)
        buf_printf(out, ", until %s", text_time(until_ms, at));
    if (field_known(held, "reason")) {
        buf_addz(out, ": ");
        text_add_clean(out, field_str(held, "reason"));
    }
    buf_addc(out, '\n');
}
