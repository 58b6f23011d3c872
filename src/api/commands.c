#include "api/commands.h"

#include <stdio.h>

#include "api/audit.h"
#include "api/load.h"

#define HELD_SHOWN 20

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
    enum word what;
    char node[65], task[40], by[254];
    int64_t asked_ms, answered_ms; /* 0: not yet */
    bool done;
    char text[160];
};

struct commands {
    struct command *first;
    size_t n;
    uint64_t last; /* number that was given */
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

static void forget_one(struct commands *cs)
{
    struct command **oldest = NULL;
    for (struct command **at = &cs->first; *at; at = &(*at)->next)
        if ((*at)->answered_ms || !oldest)
            oldest = at;
    if (!oldest)
        return;
    struct command *gone = *oldest;
    *oldest = gone->next;
    free(gone);
    cs->n--;
}

/* ---- what a report says ---- */

static void note_answers(struct api *a, const struct history_node *n)
{
    int64_t now_ms = clock_now_ms(&a->config.clock);
    for (uint32_t i = 0; i < n->last->acks; i++)
        for (struct command *c = a->commands ? a->commands->first : NULL; c; c = c->next)
            if (c->id == n->last->ack[i].id && strcmp(c->node, n->head->node) == 0 &&
                !c->answered_ms) {
                c->answered_ms = now_ms;
                c->done = n->last->ack[i].done;
                memcpy(c->text, n->last->ack[i].text, sizeof c->text);
            }
}

static void note_hold(struct call *c, struct str node, const struct report_hold *h)
{
    struct control *control = c->api->config.control;
    bool held = h->since_ms > 0;
    struct err e;
    if (held == control_held(control, node))
        return;
    if (control_hold(control, node, held, str_of(held ? h->by : "system"),
                     (struct control_done){ 0 }, &e) < 0) {
        log_event(c->api->config.log, LOG_ERROR_, "node.hold", "node=%.*s why=%s", STR_ARG(node),
                  e.msg);
        return;
    }
    struct audit_change ch = { .what = held ? AUDIT_NODE_HOLD : AUDIT_NODE_RELEASE,
                               .subject = node,
                               .before = held ? STR("{\"held\":false}") : STR("{\"held\":true}"),
                               .after = held ? STR("{\"held\":true}") : STR("{\"held\":false}"),
                               .reason =
                                   held ? str_of(arena_printf(http_arena(c->rq), "%s%s%s", h->by,
                                                              h->reason[0] ? ": " : "", h->reason))
                                        : STR("") };
    api_audit(c, &ch);
}

void commands_reported(struct call *c, struct str node)
{
    struct history_node n;
    if (!history_find(c->api->config.history, node, &n))
        return;
    note_answers(c->api, &n);
    note_hold(c, node, &n.last->hold);
}

void commands_put(struct api *a, struct str node, struct json_out *w)
{
    json_begin(w, "commands", '[');
    for (const struct command *c = a->commands ? a->commands->first : NULL; c; c = c->next) {
        if (c->answered_ms || !str_is(node, c->node))
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

static void put_command(struct json_out *w, const struct command *c)
{
    json_begin(w, NULL, '{');
    json_put_u64(w, "id", c->id);
    json_put_str(w, "node", str_of(c->node));
    json_put_str(w, "what", str_of(word_names[c->what]));
    json_put_str(w, "task", str_of(c->task));
    put_known(w, "weight", c->weight ? (int64_t)c->weight : -1);
    json_put_str(w, "by", str_of(c->by));
    json_put_i64(w, "asked_ms", c->asked_ms);
    put_known(w, "answered_ms", c->answered_ms ? c->answered_ms : -1);
    json_put_str(w, "state",
                 !c->answered_ms ? STR("sent")
                 : c->done       ? STR("done")
                                 : STR("refused"));
    if (c->answered_ms)
        json_put_str(w, "text", str_of(c->text));
    else
        json_put_null(w, "text");
    json_end(w, '}');
}

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
    out->what = WORD_COUNT;
    for (int i = 0; i < WORD_COUNT; i++)
        if (str_is(what, word_names[i]))
            out->what = (enum word)i;
    if (out->what == WORD_COUNT)
        return err_set(e, ERR_INVALID, "what: pause, resume or throttle");
    c->field = "task";
    if (json_get_str(root, "task", sizeof out->task - 1, &task, e) < 0)
        return -1;
    snprintf(out->task, sizeof out->task, "%.*s", STR_ARG(task));
    c->field = "weight";
    bool has = json_find(root, "weight") != NULL;
    if (has && json_need_u64(root, "weight", 10000, &out->weight, e) < 0)
        return -1;
    if (has != (out->what == WORD_THROTTLE) || (has && out->weight == 0))
        return err_set(e, ERR_INVALID, "weight: 1 to 10000, of throttle and of nothing else");
    c->field = NULL;
    return 0;
}

/* A task of a job that has something on this machine now. */
static int check_task(struct call *c, const struct command *x, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    struct job_view v;
    struct node_view at;
    uint64_t job;
    bool here = false;
    if (report_who_job(x->task, &job) && core_job(core, (job_id){ job }, &v))
        for (uint32_t i = 0; i < v.n && !here; i++)
            here =
                core_node(core, (node_id){ v.slots[i].node }, &at) && strcmp(at.name, x->node) == 0;
    if (here)
        return 0;
    c->field = "task";
    err_set(e, ERR_NOT_FOUND, "no task '%s' is on machine '%s'", x->task, x->node);
    return err_hint(e, "a task is JOB.RUN.REPLICA: see GET /v1/nodes/%s/load", x->node);
}

int api_node_command(struct call *c, struct err *e)
{
    struct commands *cs = commands_of(c->api);
    AUTO(free_p) struct command *x = xcalloc(1, sizeof *x);
    struct str reason = { 0 };
    struct history_node n;
    uint32_t waits = 0;
    AUTO(buf_free) struct buf b = BUF(4096), after = BUF(1024);
    struct json_out w = { .b = &b }, aw = { .b = &after };
    snprintf(x->node, sizeof x->node, "%.*s", STR_ARG(c->param[0]));
    snprintf(x->by, sizeof x->by, "%s", c->who.user);
    if (read_command(c, x, &reason, e) < 0 || check_task(c, x, e) < 0)
        return -1;
    if (!load_of(c->api, c->param[0], &n) || !load_is_fresh(c->api, &n)) {
        err_set(e, ERR_CONFLICT, "the agent of '%s' is not heard of", x->node);
        return err_hint(e, "nobody would do it: start nightshift-agent there");
    }
    for (const struct command *at = cs->first; at; at = at->next)
        waits += !at->answered_ms && strcmp(at->node, x->node) == 0;
    if (waits >= COMMANDS_WAIT_MAX)
        return err_set(e, ERR_CONFLICT, "%u commands wait for this machine already", waits);
    if (cs->n == COMMANDS_MAX)
        forget_one(cs);
    x->id = ++cs->last;
    x->asked_ms = clock_now_ms(&c->api->config.clock);
    x->next = cs->first;
    cs->first = x;
    cs->n++;
    put_command(&w, x);
    put_command(&aw, x);
    struct audit_change ch = { .what = AUDIT_NODE_COMMAND,
                               .subject = c->param[0],
                               .after = buf_str(&after),
                               .reason = reason };
    api_audit(c, &ch);
    x = NULL; /* it is in the list */
    reply_json(c, 202, &b);
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
            put_command(&w, x);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- what is held ---- */

static void put_hold(struct json_out *w, struct api *a, struct str node)
{
    struct history_node n;
    const struct report_hold *h =
        load_of(a, node, &n) && n.last->hold.since_ms > 0 ? &n.last->hold : NULL;
    put_known(w, "since_ms", h ? h->since_ms : -1);
    put_known(w, "until_ms", h ? h->until_ms : -1);
    if (h)
        json_put_str(w, "by", str_of(h->by));
    else
        json_put_null(w, "by");
    if (h && h->reason[0])
        json_put_str(w, "reason", str_of(h->reason));
    else
        json_put_null(w, "reason");
}

void put_held(struct json_out *w, struct api *a, struct str node)
{
    if (!control_held(a->config.control, node)) {
        json_put_null(w, "held");
        return;
    }
    json_begin(w, "held", '{');
    put_hold(w, a, node);
    json_end(w, '}');
}

void put_held_list(struct json_out *w, struct api *a)
{
    struct control_pool p;
    if (!control_pool_find(a->config.control, STR(POOL_HELD), &p) || p.nodes == 0)
        return;
    json_begin(w, "held", '[');
    for (size_t i = 0; i < MIN(p.nodes, (size_t)HELD_SHOWN); i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "node", str_of(p.node[i]));
        put_hold(w, a, str_of(p.node[i]));
        json_end(w, '}');
    }
    json_end(w, ']');
}
