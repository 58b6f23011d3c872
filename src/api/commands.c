#include "api/commands.h"

#include <stdio.h>

#include "api/audit.h"
#include "api/holds.h"
#include "api/load.h"
#include "store/directory.h"

#define PAUSED_SHOWN 4u
#define STALE_MS (24 * 3600 * INT64_C(1000)) /* nobody answered: another may have its place */

/* id, name */
#define WORDS(X)                                                                                   \
    X(PAUSE, "pause")                                                                              \
    X(RESUME, "resume")                                                                            \
    X(THROTTLE, "throttle")
enum word {
#define X(id, name) WORD_##id,
    WORDS(X)
#undef X
    WORD_COUNT
};
static const char *const word_names[] = {
#define X(id, name) name,
    WORDS(X)
#undef X
};

struct command {
    struct command *next; /* the newest first */
    uint64_t id, weight;  /* weight 0: none */
    uint64_t job;         /* whose task it is about */
    enum word what;
    char node[65], task[40], by[254];
    int64_t asked_ms, answered_ms; /* 0: not yet */
    uint64_t answer;               /* which commit has its answer; 0: one of an earlier daemon */
    bool done, durable;            /* what is not durable yet is not sent */
    char text[160];
};

struct commands {
    struct command *first;
    size_t n;
    uint64_t last;             /* number that was given */
    uint64_t answers, durable; /* commits with answers, and how many of them are on the disk */
};

static struct commands *commands_of(struct api *a)
{
    if (!a->commands) {
        a->commands = xcalloc(1, sizeof *a->commands);
        /* Never one that an agent has seen of the daemon before. */
        a->commands->last = (uint64_t)clock_now_ms(&a->config.clock) * 1000;
    }
    return a->commands;
}

void commands_free(struct api *a)
{
    struct command *c = a->commands ? a->commands->first : NULL;
    while (c) {
        struct command *next = c->next;
        free(c);
        c = next;
    }
    free(a->commands);
    a->commands = NULL;
}

/* ---- on the disk ---- */

static void put_command(struct json_out *w, const struct command *c, bool answered)
{
    json_begin(w, NULL, '{');
    json_put_u64(w, "id", c->id);
    json_put_str(w, "node", str_of(c->node));
    json_put_str(w, "what", str_of(word_names[c->what]));
    json_put_str(w, "task", str_of(c->task));
    put_known(w, "weight", c->weight ? (int64_t)c->weight : -1);
    json_put_str(w, "by", str_of(c->by));
    json_put_i64(w, "asked_ms", c->asked_ms);
    put_known(w, "answered_ms", answered ? c->answered_ms : -1);
    json_put_str(w, "state", !answered ? STR("sent") : c->done ? STR("done") : STR("refused"));
    if (answered)
        json_put_str(w, "text", str_of(c->text));
    else
        json_put_null(w, "text");
    json_end(w, '}');
}

/* Names in the order of numbers. */
#define NAME_BYTES 24
static struct str name_of(const struct command *c, char out[static NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%020llu", (unsigned long long)c->id);
    return str_of(out);
}

static void keep(struct api *a, const struct command *c)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    char name[NAME_BYTES];
    put_command(&w, c, c->answered_ms != 0);
    store_put_entry(control_batch(a->config.control), DIRECTORY_COMMAND,
                    &(struct store_entry){ name_of(c, name), buf_str(&b) });
}

static bool word_of(struct str name, enum word *out)
{
    for (int i = 0; i < WORD_COUNT; i++)
        if (str_is(name, word_names[i])) {
            *out = (enum word)i;
            return true;
        }
    return false;
}

static int read_kept(struct str body, struct command *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(body, e);
    const struct json *j = json_root(d);
    struct str node = { 0 }, what = { 0 }, task = { 0 }, by = { 0 }, now = { 0 }, text = { 0 };
    if (!d || json_need_u64(j, "id", UINT64_C(1) << 62, &out->id, e) < 0 ||
        json_need_str(j, "node", sizeof out->node - 1, &node, e) < 0 ||
        json_need_str(j, "what", 32, &what, e) < 0 ||
        json_need_str(j, "task", sizeof out->task - 1, &task, e) < 0 ||
        json_need_str(j, "by", sizeof out->by - 1, &by, e) < 0 ||
        json_need_str(j, "state", 16, &now, e) < 0 ||
        json_need_i64(j, "asked_ms", 0, INT64_MAX, &out->asked_ms, e) < 0)
        return -1;
    if (!word_of(what, &out->what))
        return err_set(e, ERR_INVALID, "'%.*s' is not known here", STR_ARG(what));
    if (out->what == WORD_THROTTLE && json_need_u64(j, "weight", 10000, &out->weight, e) < 0)
        return -1;
    if (!str_is(now, "sent") &&
        (json_need_i64(j, "answered_ms", 1, INT64_MAX, &out->answered_ms, e) < 0 ||
         json_need_str(j, "text", sizeof out->text - 1, &text, e) < 0))
        return -1;
    snprintf(out->node, sizeof out->node, "%.*s", STR_ARG(node));
    snprintf(out->task, sizeof out->task, "%.*s", STR_ARG(task));
    (void)report_who_job(out->task, &out->job);
    snprintf(out->by, sizeof out->by, "%.*s", STR_ARG(by));
    snprintf(out->text, sizeof out->text, "%.*s", STR_ARG(text));
    out->done = str_is(now, "done");
    out->durable = true;
    return 0;
}

int commands_load(struct api *a, struct err *e)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct commands *cs = commands_of(a);
    struct store_entry *row;
    size_t n;
    if (store_entries(a->config.store, DIRECTORY_COMMAND, &arena, &row, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) { /* the oldest first */
        AUTO(free_p) struct command *c = xcalloc(1, sizeof *c);
        if (read_kept(row[i].body, c, e) < 0)
            return err_wrap(e, "the store's command '%.*s'", STR_ARG(row[i].name));
        cs->last = MAX(cs->last, c->id);
        c->next = cs->first;
        cs->first = TAKE(c);
        cs->n++;
    }
    return 0;
}

/* Makes room for another: the oldest that is answered goes, or that nobody answered in a day.  False: all of them
 * wait. */
static bool forget_one(struct api *a)
{
    struct commands *cs = commands_of(a);
    int64_t now_ms = clock_now_ms(&a->config.clock);
    struct command **oldest = NULL;
    char name[NAME_BYTES];
    for (struct command **at = &cs->first; *at; at = &(*at)->next)
        if ((*at)->durable && ((*at)->answered_ms || now_ms - (*at)->asked_ms > STALE_MS))
            oldest = at; /* somebody waits for what is not durable yet */
    if (!oldest)
        return false;
    struct command *gone = *oldest;
    *oldest = gone->next;
    cs->n--;
    store_delete_entry(control_batch(a->config.control), DIRECTORY_COMMAND, name_of(gone, name));
    free(gone);
    return true;
}

/* What a report says is not told before it is on the disk: after a crash it would be untold. */
static bool is_answered(const struct api *a, const struct command *c)
{
    return c->answered_ms && c->answer <= a->commands->durable;
}

/* ---- what a report says ---- */

static void on_answers_kept(void *ctx)
{
    struct api *a = ctx;
    a->commands->durable++; /* one after the other */
}

static void note_answers(struct api *a, const struct history_node *n)
{
    int64_t now_ms = clock_now_ms(&a->config.clock);
    bool any = false;
    for (uint32_t i = 0; i < n->last->acks; i++)
        for (struct command *c = a->commands ? a->commands->first : NULL; c; c = c->next)
            if (c->id == n->last->ack[i].id && strcmp(c->node, n->head->node) == 0 &&
                !c->answered_ms) {
                c->answered_ms = now_ms;
                c->answer = a->commands->answers + 1;
                c->done = n->last->ack[i].done;
                memcpy(c->text, n->last->ack[i].text, sizeof c->text);
                keep(a, c);
                any = true;
            }
    if (!any)
        return;
    a->commands->answers++;
    control_commit(a->config.control, (struct control_done){ on_answers_kept, a });
}

void commands_reported(struct call *c, struct str node)
{
    struct history_node n;
    if (!history_find(c->api->config.history, node, &n))
        return;
    note_answers(c->api, &n);
    hold_reported(c, node, &n.last->hold);
}

void commands_put(struct api *a, struct str node, struct json_out *w)
{
    json_begin(w, "commands", '[');
    for (const struct command *c = a->commands ? a->commands->first : NULL; c; c = c->next) {
        if (c->answered_ms || !c->durable || !str_is(node, c->node))
            continue;
        json_begin(w, NULL, '{');
        json_put_u64(w, "id", c->id);
        json_put_str(w, "what", str_of(word_names[c->what]));
        json_put_str(w, "task", str_of(c->task));
        if (c->weight)
            json_put_u64(w, "weight", c->weight);
        json_end(w, '}');
    }
    json_end(w, ']');
}

/* ---- calls ---- */

static int read_command(struct call *c, struct command *out, struct str *reason, struct err *e)
{
    static const char *const keys[] = { "what", "task", "weight", "reason" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct str what = { 0 }, task = { 0 };
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    const struct json *root = json_root(d);
    c->field = "reason";
    if (json_get_str(root, "reason", 512, reason, e) < 0)
        return -1;
    *reason = (struct str){ arena_strndup(http_arena(c->rq), reason->p, reason->n), reason->n };
    c->field = "what";
    if (json_get_str(root, "what", 32, &what, e) < 0)
        return -1;
    if (!word_of(what, &out->what)) {
        err_set(e, ERR_INVALID, "what: pause, resume or throttle");
        return err_hint(e, "e.g. {\"what\":\"pause\",\"task\":\"17.1.0\"}");
    }
    c->field = "task";
    if (json_get_str(root, "task", sizeof out->task - 1, &task, e) < 0)
        return -1;
    snprintf(out->task, sizeof out->task, "%.*s", STR_ARG(task));
    c->field = "weight";
    bool has = json_find(root, "weight") != NULL;
    if (has && json_need_u64(root, "weight", 10000, &out->weight, e) < 0)
        return -1;
    if (has != (out->what == WORD_THROTTLE) || (has && out->weight == 0)) {
        err_set(e, ERR_INVALID, "weight: 1 to 10000, of throttle and of nothing else");
        return err_hint(e, "e.g. {\"what\":\"throttle\",\"task\":\"17.1.0\",\"weight\":100}");
    }
    c->field = NULL;
    return 0;
}

/* A task of a job that has something on this machine now. */
static int check_task(struct call *c, struct command *x, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    struct job_view v;
    struct node_view at;
    bool here = false;
    if (report_who_job(x->task, &x->job) && core_job(core, (job_id){ x->job }, &v))
        for (uint32_t i = 0; i < v.n && !here; i++)
            here =
                core_node(core, (node_id){ v.slots[i].node }, &at) && strcmp(at.name, x->node) == 0;
    if (here)
        return 0;
    c->field = "task";
    err_set(e, ERR_NOT_FOUND, "no task '%s' is on machine '%s'", x->task, x->node);
    return err_hint(e, "a task is JOB.RUN.REPLICA: see GET /v1/nodes/%s/load", x->node);
}

struct command_later {
    struct call call;
    uint64_t id;
};

static void on_kept(void *ctx)
{
    struct command_later *l = ctx;
    struct command *x = l->call.api->commands->first;
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    while (x->id != l->id) /* none is forgotten before */
        x = x->next;
    x->durable = true;
    put_command(&w, x, false);
    reply_json(&l->call, 202, &b);
}

static int check_room(struct call *c, const struct command *x, struct err *e)
{
    struct history_node n;
    uint32_t waits = 0;
    if (!load_of(c->api, c->param[0], &n) || !load_is_fresh(c->api, &n)) {
        err_set(e, ERR_CONFLICT, "the agent of '%s' is not heard of", x->node);
        return err_hint(e, "nobody would do it: start nightshift-agent there");
    }
    for (const struct command *at = commands_of(c->api)->first; at; at = at->next)
        waits += !at->answered_ms && strcmp(at->node, x->node) == 0;
    if (waits >= COMMANDS_WAIT_MAX) {
        err_set(e, ERR_CONFLICT, "%u commands wait for this machine already", waits);
        return err_hint(e, "see them: GET /v1/nodes/%s/commands", x->node);
    }
    if (commands_of(c->api)->n == COMMANDS_MAX && !forget_one(c->api)) {
        err_set(e, ERR_CONFLICT, "%d commands wait for machines that do not answer", COMMANDS_MAX);
        return err_hint(e, "see that their agents run; what is a day old makes room");
    }
    return 0;
}

int api_node_command(struct call *c, struct err *e)
{
    struct commands *cs = commands_of(c->api);
    AUTO(free_p) struct command *x = xcalloc(1, sizeof *x);
    struct command_later *l = arena_new(http_arena(c->rq), struct command_later);
    struct str reason = { 0 };
    AUTO(buf_free) struct buf after = BUF(1024);
    struct json_out w = { .b = &after };
    snprintf(x->node, sizeof x->node, "%.*s", STR_ARG(c->param[0]));
    snprintf(x->by, sizeof x->by, "%s", c->who.user);
    if (read_command(c, x, &reason, e) < 0 || check_task(c, x, e) < 0 || check_room(c, x, e) < 0)
        return -1;
    x->id = ++cs->last;
    x->asked_ms = clock_now_ms(&c->api->config.clock);
    x->next = cs->first;
    keep(c->api, x);
    put_command(&w, x, false);
    api_audit(c, &(struct audit_change){ .what = AUDIT_NODE_COMMAND,
                                         .subject = c->param[0],
                                         .after = buf_str(&after),
                                         .reason = reason });
    *l = (struct command_later){ *c, x->id };
    cs->first = TAKE(x);
    cs->n++;
    control_commit(c->api->config.control, (struct control_done){ on_kept, l });
    return 0;
}

int api_node_commands(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "commands", '[');
    for (const struct command *x = c->api->commands ? c->api->commands->first : NULL; x;
         x = x->next)
        if (str_is(c->param[0], x->node))
            put_command(&w, x, is_answered(c->api, x));
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- what stands still ---- */

/* The newest of what a task was told comes first, and only that counts. */
static bool is_last_word(const struct api *a, const struct command *x)
{
    const struct command *first = a->commands->first;
    while (first != x && !(is_answered(a, first) && first->done && first->what != WORD_THROTTLE &&
                           strcmp(first->task, x->task) == 0))
        first = first->next;
    return first == x;
}

bool commands_paused(const struct api *a, uint64_t job, uint32_t run, struct buf *out)
{
    const struct command *first = a->commands ? a->commands->first : NULL;
    char prefix[40];
    uint32_t shown = 0;
    snprintf(prefix, sizeof prefix, "%llu.%u.", (unsigned long long)job, run);
    for (const struct command *c = first; c && shown < PAUSED_SHOWN; c = c->next)
        if (c->job == job && c->what == WORD_PAUSE && is_answered(a, c) && c->done &&
            strncmp(c->task, prefix, strlen(prefix)) == 0 && is_last_word(a, c))
            buf_printf(out, "%sits processes on %s stand still: %s had them paused there",
                       shown++ ? "; " : "", c->node, c->by);
    return shown > 0;
}
