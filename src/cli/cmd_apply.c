/* apply, diff: tenants and people as a file says, all at once. */
#include <stdio.h>
#include <unistd.h>

#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/text.h"
#include "cli/words.h"
#include "sys/file.h"
#include "sys/term.h"

#define PATH "/v1/apply"
#define FILE_MAX (16u << 20)

struct apply_opts {
    struct common common;
    const char *file;
    bool prune, dry_run, export;
};

#define AT(field) offsetof(struct apply_opts, field)

static const struct opt apply_opts[] = {
    { "file,f", OPT_TEXT, AT(file), "FILE", "the document, YAML or JSON; -: standard input", 0, 0 },
    { "prune", OPT_FLAG, AT(prune), NULL, "remove what the document has not", 0, 0 },
    { "dry-run", OPT_FLAG, AT(dry_run), NULL, "say what would change, and change nothing", 0, 0 },
    { "export", OPT_FLAG, AT(export), NULL, "print what there is as such a document", 0, 0 },
    OPTS_OUTPUT(struct apply_opts),
    OPTS_COMMON(struct apply_opts),
};

static const struct opt diff_opts[] = {
    { "file,f", OPT_TEXT, AT(file), "FILE", "the document, YAML or JSON; -: standard input", 0, 0 },
    { "prune", OPT_FLAG, AT(prune), NULL, "as apply --prune would", 0, 0 },
    OPTS_OUTPUT(struct apply_opts),
    OPTS_COMMON(struct apply_opts),
};
#undef AT

/* ---- the document ---- */

/* The file, with what the options say beside it. */
static int put_body(const struct apply_opts *o, bool dry_run, struct buf *body, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(FILE_MAX);
    struct json_out w = { .b = body };
    if (!o->file) {
        err_set(e, ERR_INVALID, "which file? -f is needed");
        return err_hint(e, "nightshift apply --export prints what there is as such a file");
    }
    if (file_read(strcmp(o->file, "-") == 0 ? "/dev/stdin" : o->file, FILE_MAX, &text, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = yaml_read(buf_str(&text), e);
    if (!doc)
        return err_wrap(e, "%s", o->file);
    if (!json_is_object(json_root(doc))) {
        err_set(e, ERR_INVALID, "%s: it has no tenants and no users", o->file);
        return err_hint(e, "it begins with tenants: or users:");
    }
    json_begin(&w, NULL, '{');
    for (struct json_member m = { 0 }; json_next_member(json_root(doc), &m);)
        json_put(&w, m.key.p, m.value);
    if (o->prune)
        json_put_bool(&w, "prune", true);
    if (dry_run)
        json_put_bool(&w, "dry_run", true);
    json_end(&w, '}');
    return buf_check(body, e);
}

/* ---- what changed ---- */

static void add_value(struct buf *b, const struct json *v)
{
    struct err e;
    struct str s;
    bool yes = false;
    if (!v || json_is_null(v))
        buf_addc(b, '-');
    else if (json_is_object(v))
        words_add_pairs(b, v);
    else if (json_is_array(v))
        words_add(b, v);
    else if (json_is_number(v))
        words_add_number(b, v);
    else if (json_as_bool(v, &yes, &e) == 0)
        buf_addz(b, yes ? "yes" : "no");
    else if (json_as_str(v, 4096, &s, &e) == 0)
        text_add_clean(b, s);
}

static void add_change(struct buf *b, const struct json *ch)
{
    static const struct {
        const char *what;
        char sign;
        enum tint tint;
    } signs[] = { { "create", '+', TINT_GOOD },
                  { "change", '~', TINT_WAIT },
                  { "remove", '-', TINT_BAD } };
    bool colour = term_colour(STDOUT_FILENO);
    struct str what = field_str(ch, "what"), kind = field_str(ch, "kind");
    const struct json *fields = json_find(ch, "fields");
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (str_is(what, signs[i].what))
            buf_printf(b, "%s%c %.*s ", colour ? tint_begin(signs[i].tint) : "", signs[i].sign,
                       STR_ARG(kind));
    text_add_clean(b, field_str(ch, "name"));
    buf_printf(b, "%s\n", colour ? TINT_END : "");
    for (const struct json *f = json_is_array(fields) ? json_first(fields) : NULL;
         f && !str_is(what, "remove"); f = json_next(fields, f)) {
        buf_addz(b, "    ");
        text_add_clean(b, field_str(f, "field"));
        buf_addz(b, ": ");
        if (!json_is_null(json_find(f, "before"))) {
            add_value(b, json_find(f, "before"));
            buf_addz(b, " -> ");
        }
        add_value(b, json_find(f, "after"));
        buf_addc(b, '\n');
    }
}

static size_t add_changes(struct buf *b, const struct json *root)
{
    const struct json *list = json_find(root, "changes");
    size_t n[3] = { 0 };
    for (const struct json *ch = json_is_array(list) ? json_first(list) : NULL; ch;
         ch = json_next(list, ch)) {
        struct str what = field_str(ch, "what");
        n[str_is(what, "create") ? 0 : str_is(what, "remove") ? 2 : 1]++;
        add_change(b, ch);
    }
    if (n[0] + n[1] + n[2] == 0)
        buf_addz(b, "nothing to change\n");
    else
        buf_printf(b, "%zu to create, %zu to change, %zu to remove%s\n", n[0], n[1], n[2],
                   field_bool(root, "dry_run") ? "" : ": done");
    return n[0] + n[1] + n[2];
}

static int ask(struct cli *c, const struct apply_opts *o, bool dry_run, size_t *out_n,
               struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(buf_free) struct buf body = BUF(FILE_MAX + (1u << 20)), b = BUF(64u << 20);
    AUTO(answer_free) struct answer a = { 0 };
    struct call call = { .method = "POST", .path = PATH };
    if (put_body(o, dry_run, &body, e) < 0)
        return -1;
    call.body = buf_str(&body);
    if (cli_call(c, &call, &a, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *doc = json_read(buf_str(&a.body), e);
    if (!doc)
        return -1;
    *out_n = add_changes(&b, json_root(doc));
    if (form == OUT_JSON || form == OUT_YAML)
        return cli_print_raw(buf_str(&a.body), form, e);
    return cli_print(&b, e);
}

static int print_export(struct cli *c, const struct apply_opts *o, struct err *e)
{
    enum output form = cli_output(&o->common);
    AUTO(answer_free) struct answer a = { 0 };
    if (cli_call(c, &(struct call){ .path = PATH }, &a, e) < 0)
        return -1;
    return cli_print_raw(buf_str(&a.body), form == OUT_JSON ? OUT_JSON : OUT_YAML, e);
}

static int run_apply(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct apply_opts *o = opts_p;
    size_t n;
    (void)args;
    return o->export ? print_export(c, o, e) : ask(c, o, o->dry_run, &n, e);
}

const struct command command_apply = {
    .name = "apply",
    .args = "-f FILE",
    .help = "make tenants and people as a file says: all of it or nothing",
    .more = "    nightshift apply --export > lab.yaml      # what there is now\n"
            "    nightshift diff -f lab.yaml               # what would change\n"
            "    nightshift apply -f lab.yaml --prune      # do it; what the file has not goes\n",
    .group = GROUP_PEOPLE,
    COMMAND_OPTS(apply_opts, struct apply_opts),
    .run = run_apply,
};

/* As diff does: 1 when there is a difference. */
static int run_diff(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    size_t n = 0;
    (void)args;
    if (ask(c, opts_p, true, &n, e) < 0)
        return -1;
    c->exit_code = n ? 1 : 0;
    return 0;
}

const struct command command_diff = {
    .name = "diff",
    .args = "-f FILE",
    .help = "what apply would change; exits with 1 when there is something",
    .group = GROUP_PEOPLE,
    COMMAND_OPTS(diff_opts, struct apply_opts),
    .run = run_diff,
};
