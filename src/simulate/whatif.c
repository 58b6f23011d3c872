#include "simulate/whatif.h"

#include "base/opts.h"
#include "base/parse.h"

#define NODES_ADDED_MAX 10000
#define WEIGHT_MAX_MILLI 1000000000u
#define GPUS_MAX_MILLI UINT64_C(1000000000)
#define AMOUNT_MAX UINT64_C(1000000000)
#define LOAD_MAX_MILLI 10000u
#define LOAD_SEED 1

/* ---- numbers of the policy ---- */

static bool is_duration(const struct policy_key *k)
{
    size_t n = strlen(k->name);
    return n > 3 && strcmp(k->name + n - 3, "_ms") == 0;
}

static int unknown_key(struct str name, struct err *e)
{
    const char *names[POLICY_KEYS_MAX];
    size_t n = 0;
    for (; policy_key(n); n++)
        names[n] = policy_key(n)->name;
    AUTO(buf_free) struct buf word = BUF(64);
    buf_add(&word, name);
    const char *near = opts_nearest(buf_str(&word).p, names, n);
    err_set(e, ERR_INVALID, "the policy has no number '%.*s'", STR_ARG(name));
    return near ? err_hint(e, "did you mean %s?", near)
                : err_hint(e, "nightshift-sim docs --page policy lists them");
}

static int parse_value(const struct policy_key *k, struct str text, int64_t *out, struct err *e)
{
    bool plain = true;
    for (size_t i = 0; i < text.n; i++)
        plain = plain && text.p[i] >= '0' && text.p[i] <= '9';
    int rc = is_duration(k) && !plain ? parse_duration_ms(text, out, e)
                                      : parse_i64(text, INT64_MIN, INT64_MAX, out, e);
    if (rc < 0)
        return err_wrap(e, "%s", k->name);
    if (*out >= k->min && *out <= k->max)
        return 0;
    err_set(e, ERR_INVALID, "%s is %lld; it must lie between %lld and %lld", k->name,
            (long long)*out, (long long)k->min, (long long)k->max);
    return err_hint(e, "%s; by default %lld", k->help, (long long)k->dflt);
}

static int set_number(struct trace *t, struct str name, struct str value, struct err *e)
{
    const struct policy_key *k = NULL;
    int64_t v;
    for (size_t i = 0; policy_key(i); i++)
        if (str_is(name, policy_key(i)->name))
            k = policy_key(i);
    if (!k)
        return unknown_key(name, e);
    if (parse_value(k, value, &v, e) < 0)
        return -1;
    for (uint32_t i = 0; i < t->sets; i++)
        if (t->set[i].key == k) {
            t->set[i].value = v;
            return 0;
        }
    t->set[t->sets++] = (struct policy_set){ k, v }; /* one a key, so there is room */
    return 0;
}

int policy_set_parse(struct trace *t, struct str text, struct err *e)
{
    struct str name, value;
    if (!str_cut(text, '=', &name, &value)) {
        err_set(e, ERR_INVALID, "'%.*s' is not NAME=VALUE", STR_ARG(text));
        return err_hint(e, "for example half_life_ms=3d");
    }
    return set_number(t, name, value, e);
}

static int change_half_life(struct trace *t, struct str arg, struct err *e)
{
    return set_number(t, STR("half_life_ms"), arg, e);
}

static int change_no_preemption(struct trace *t, struct str arg, struct err *e)
{
    (void)arg;
    return set_number(t, STR("take_back"), STR("0"), e);
}

/* ---- machines ---- */

/* "RTX 4090", "rtx4090" and "rtx-4090" are one model to people. */
static bool same_model(struct str a, struct str b)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a.n && strchr(" -_", a.p[i]))
            i++;
        while (k < b.n && strchr(" -_", b.p[k]))
            k++;
        if (i >= a.n || k >= b.n)
            return i >= a.n && k >= b.n;
        char x = a.p[i], y = b.p[k];
        x = x >= 'A' && x <= 'Z' ? (char)(x - 'A' + 'a') : x;
        y = y >= 'A' && y <= 'Z' ? (char)(y - 'A' + 'a') : y;
        if (x != y)
            return false;
    }
}

/* [N*]WHAT: a machine by its name, or those with a GPU model. */
struct which {
    uint64_t n;
    struct str what;
    bool by_name;
    uint32_t first; /* that it means */
};

static bool means(const struct which *w, const struct event_node *n)
{
    return w->by_name ? str_eq(w->what, n->name) : n->gpus && same_model(w->what, n->model);
}

static int unknown_machine(const struct trace *t, struct str what, struct err *e)
{
    AUTO(buf_free) struct buf seen = BUF(400);
    for (uint32_t i = 0; i < t->nodes; i++) {
        bool before = false;
        for (uint32_t k = 0; k < i && !before; k++)
            before = str_eq(t->node[k].model, t->node[i].model);
        if (!before && seen.n < 300)
            buf_printf(&seen, "%s%.*s (like %.*s)", seen.n ? ", " : "", STR_ARG(t->node[i].model),
                       STR_ARG(t->node[i].name));
    }
    err_set(e, ERR_INVALID, "there is no machine '%.*s' and no GPU of this model", STR_ARG(what));
    return err_hint(e, "there are: %s", buf_str(&seen).p);
}

static int find_machines(const struct trace *t, struct str arg, struct which *out, struct err *e)
{
    struct str n;
    *out = (struct which){ .n = 1, .what = arg, .first = NONE };
    if (memchr(arg.p, '*', arg.n)) {
        str_cut(arg, '*', &n, &out->what);
        if (parse_u64(n, NODES_ADDED_MAX, &out->n, e) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < t->nodes && !out->by_name; i++)
        out->by_name = str_eq(out->what, t->node[i].name);
    for (uint32_t i = t->nodes; i-- > 0;)
        out->first = means(out, &t->node[i]) ? i : out->first;
    return out->first == NONE ? unknown_machine(t, out->what, e) : 0;
}

static bool has_node(const struct trace *t, const char *name)
{
    for (uint32_t i = 0; i < t->nodes; i++)
        if (str_is(t->node[i].name, name))
            return true;
    return false;
}

/* A journal gets it as a line behind the machines it begins with. */
static void add_node_step(struct trace *t, const struct event_node *n)
{
    struct trace_step s = { .kind = STEP_EVENT, .number = NONE };
    for (uint32_t i = 0; i < t->steps; i++) {
        const struct trace_step *at = &t->step[i];
        if (at->kind == STEP_EVENT && at->ev.kind == EVENT_NODE &&
            (s.order == 0 || at->ev.t_ms == s.ev.t_ms)) {
            s.order = MAX(s.order, at->order);
            s.ev.t_ms = at->ev.t_ms;
        }
    }
    s.ev.kind = EVENT_NODE;
    s.ev.node = *n;
    t->step[t->steps++] = s;
}

/* For `more` machines, and their lines. */
static void make_room(struct trace *t, uint64_t more)
{
    struct event_node *node = arena_array(&t->arena, struct event_node, t->nodes + more + 1);
    struct trace_step *step = arena_array(&t->arena, struct trace_step, t->steps + more + 1);
    uint32_t *owner = arena_array(&t->arena, uint32_t, t->nodes + more + 1);
    memcpy(node, t->node, t->nodes * sizeof *node);
    if (t->steps)
        memcpy(step, t->step, t->steps * sizeof *step);
    if (t->node_tenant)
        memcpy(owner, t->node_tenant, t->nodes * sizeof *owner);
    t->node = node;
    t->step = t->steps ? step : NULL;
    t->node_tenant = t->node_tenant ? owner : NULL;
}

static int change_add_nodes(struct trace *t, struct str arg, struct err *e)
{
    struct which w;
    if (find_machines(t, arg, &w, e) < 0)
        return -1;
    struct event_node like = t->node[w.first];
    for (uint32_t i = 0; i < t->nodes; i++)
        if (means(&w, &t->node[i]) && t->node[i].gpus != like.gpus) {
            err_set(e, ERR_INVALID, "machines with %.*s differ: %.*s has %u, %.*s has %u GPUs",
                    STR_ARG(like.model), STR_ARG(like.name), like.gpus, STR_ARG(t->node[i].name),
                    t->node[i].gpus);
            return err_hint(e, "name the one that is meant: nodes+=%llu*%.*s",
                            (unsigned long long)w.n, STR_ARG(like.name));
        }
    if (t->nodes + w.n > TRACE_NODES_MAX)
        return err_set(e, ERR_TOO_LARGE, "there would be more than %u machines", TRACE_NODES_MAX);
    make_room(t, w.n);
    for (unsigned k = 1, made = 0; made < w.n; k++) {
        const char *name = arena_printf(&t->arena, "%.*s+%u", STR_ARG(like.name), k);
        if (has_node(t, name))
            continue;
        struct event_node *n = &t->node[t->nodes];
        *n = like;
        n->name = str_of(name);
        if (t->node_tenant)
            t->node_tenant[t->nodes] = t->node_tenant[w.first];
        t->nodes++;
        made++;
        if (t->steps)
            add_node_step(t, n);
    }
    return 0;
}

static void forget_steps(struct trace *t, struct str node)
{
    for (uint32_t i = 0; i < t->steps; i++) {
        struct trace_step *s = &t->step[i];
        bool event = s->kind == STEP_EVENT;
        bool enrols = event && (s->ev.kind == EVENT_NODE || s->ev.kind == EVENT_NODE_CHANGE);
        if ((enrols && str_eq(s->ev.node.name, node)) ||
            (event && s->ev.kind == EVENT_NODE_POOL && str_eq(s->ev.node_pool.name, node)) ||
            (event && s->ev.kind == EVENT_NODE_TRAITS && str_eq(s->ev.node_traits.name, node)) ||
            ((s->kind == STEP_LOST || (event && s->ev.kind == EVENT_NODE_STATE)) &&
             str_eq(s->ev.node_state.name, node)))
            s->kind = STEP_NONE;
    }
}

static int change_remove_nodes(struct trace *t, struct str arg, struct err *e)
{
    struct which w;
    uint64_t there = 0;
    if (find_machines(t, arg, &w, e) < 0)
        return -1;
    for (uint32_t i = 0; i < t->nodes; i++)
        there += means(&w, &t->node[i]);
    if (there < w.n)
        return err_set(e, ERR_INVALID, "there are only %llu machines '%.*s'",
                       (unsigned long long)there, STR_ARG(w.what));
    for (uint32_t i = t->nodes; i-- > 0 && w.n > 0;) {
        if (!means(&w, &t->node[i]))
            continue;
        forget_steps(t, t->node[i].name);
        memmove(&t->node[i], &t->node[i + 1], (t->nodes - i - 1) * sizeof *t->node);
        if (t->node_tenant)
            memmove(&t->node_tenant[i], &t->node_tenant[i + 1],
                    (t->nodes - i - 1) * sizeof *t->node_tenant);
        t->nodes--;
        w.n--;
    }
    return t->nodes ? 0 : err_set(e, ERR_INVALID, "no machine would be left");
}

/* ---- tenants ---- */

static int find_tenant(struct trace *t, struct str name, struct trace_tenant **out, struct err *e)
{
    AUTO(buf_free) struct buf names = BUF(300);
    for (uint32_t i = 0; i < t->tenants; i++) {
        if (str_is(name, t->tenant[i].name)) {
            *out = &t->tenant[i];
            return 0;
        }
        if (names.n < 200)
            buf_printf(&names, "%s%s", i ? ", " : "", t->tenant[i].name);
    }
    err_set(e, ERR_INVALID, "there is no tenant '%.*s'", STR_ARG(name));
    return err_hint(e, "there are: %s", buf_str(&names).p);
}

/* The lines of a journal that make or change it say the same from then on. */
static void alter_steps(struct trace *t, const struct trace_tenant *w)
{
    for (uint32_t i = 0; i < t->steps; i++) {
        struct trace_step *s = &t->step[i];
        if (s->kind != STEP_EVENT || s->ev.kind != EVENT_TENANT ||
            !str_is(s->ev.tenant.name, w->name))
            continue;
        s->ev.tenant.weight_milli = w->weight_milli;
        s->ev.tenant.guarantee_milli = w->guarantee_milli;
        s->ev.tenant.limit = w->limit;
    }
}

/* TENANT=VALUE */
static int cut_tenant(struct trace *t, struct str arg, struct trace_tenant **out, struct str *value,
                      struct err *e)
{
    struct str name;
    if (!str_cut(arg, '=', &name, value))
        return err_set(e, ERR_INVALID, "'%.*s' is not TENANT=VALUE", STR_ARG(arg));
    return find_tenant(t, name, out, e);
}

static int change_weight(struct trace *t, struct str arg, struct err *e)
{
    struct trace_tenant *w = NULL;
    struct str value;
    uint64_t milli;
    if (cut_tenant(t, arg, &w, &value, e) < 0 || !w ||
        parse_milli(value, WEIGHT_MAX_MILLI, &milli, e) < 0)
        return -1;
    if (milli == 0)
        return err_set(e, ERR_INVALID, "a weight is above 0");
    w->weight_milli = (uint32_t)milli;
    alter_steps(t, w);
    return 0;
}

static int change_guarantee(struct trace *t, struct str arg, struct err *e)
{
    struct trace_tenant *w = NULL;
    struct str value;
    uint64_t milli;
    if (cut_tenant(t, arg, &w, &value, e) < 0 || !w ||
        parse_milli(value, GPUS_MAX_MILLI, &milli, e) < 0)
        return -1;
    w->guarantee_milli = milli;
    alter_steps(t, w);
    return 0;
}

static int parse_amount(enum resource r, struct str text, uint64_t *out, struct err *e)
{
    uint64_t bytes;
    *out = NO_LIMIT;
    if (str_is(text, "none"))
        return 0;
    if (r == RES_JOBS || r == RES_NOTEBOOKS)
        return parse_u64(text, AMOUNT_MAX, out, e);
    if (r != RES_MEM && r != RES_STORAGE)
        return parse_milli(text, GPUS_MAX_MILLI, out, e);
    if (parse_size_bytes(text, &bytes, e) < 0)
        return -1;
    *out = bytes >> 20;
    return 0;
}

static int change_limit(struct trace *t, struct str arg, struct err *e)
{
    struct trace_tenant *w = NULL;
    struct str left, value;
    size_t dot = 0;
    if (!str_cut(arg, '=', &left, &value))
        return err_set(e, ERR_INVALID, "'%.*s' is not TENANT.RESOURCE=VALUE", STR_ARG(arg));
    for (size_t i = 0; i < left.n; i++)
        dot = left.p[i] == '.' ? i : dot; /* the last: a tenant's name may have one */
    struct str what = { left.p + dot + 1, dot ? left.n - dot - 1 : 0 };
    for (int r = 0; r < RES_COUNT; r++) {
        uint64_t amount;
        if (!str_is(what, resource_name((enum resource)r)))
            continue;
        if (find_tenant(t, (struct str){ left.p, dot }, &w, e) < 0 || !w ||
            parse_amount((enum resource)r, value, &amount, e) < 0)
            return -1;
        w->limit.of[r] = amount;
        alter_steps(t, w);
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' names no resource", STR_ARG(left));
    return err_hint(e,
                    "for example limit:guests.gpus=2; also cpus, memory, storage, jobs, notebooks; "
                    "none lifts it");
}

/* ---- jobs ---- */

static int change_load(struct trace *t, struct str arg, struct err *e)
{
    uint64_t milli;
    if (parse_milli(arg, LOAD_MAX_MILLI, &milli, e) < 0)
        return -1;
    return trace_load(t, (uint32_t)milli, LOAD_SEED, e);
}

/* ---- the table ---- */

static const struct change {
    const char *begin; /* what it begins with; the rest is its argument */
    const char *syntax, *help;
    const char *words; /* after "What if"; $1 and $2: the argument, split */
    char split;
    int (*apply)(struct trace *t, struct str arg, struct err *e);
} changes[] = {
    { "nodes+=", "nodes+=[N*]WHAT", "N more machines like WHAT: a machine's name, or a GPU model",
      "there were $1 more machines like $2", '*', change_add_nodes },
    { "nodes-=", "nodes-=[N*]WHAT", "machines less", "there were $1 fewer machines like $2", '*',
      change_remove_nodes },
    { "weight:", "weight:TENANT=X", "another weight", "$1 had the weight $2", '=', change_weight },
    { "guarantee:", "guarantee:TENANT=GPUS", "another guarantee", "$1 had $2 GPUs guaranteed", '=',
      change_guarantee },
    { "limit:", "limit:TENANT.RESOURCE=N", "another limit of gpus, cpus, memory or jobs, or none",
      "the limit of $1 were $2", '=', change_limit },
    { "half-life=", "half-life=TIME", "how soon use is forgotten", "use counted half after $2", '=',
      change_half_life },
    { "no-preemption", "no-preemption", "no job is frozen for another",
      "no job were frozen for another", 0, change_no_preemption },
    { "set:", "set:NAME=VALUE", "another number of the policy", "$1 were $2", '=',
      policy_set_parse },
    { "window:", "window:POOL=TEXT", "when the machines of POOL are lent; empty: always",
      "the machines of $1 were lent $2", '=', whatif_window },
    { "load=", "load=X", "X times as many jobs: some are repeated, or left out, at random",
      "there were $2 times as many jobs", '=', change_load },
};

static const struct change *find_change(const char *text, struct str *out_arg)
{
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        size_t n = strlen(changes[i].begin);
        bool open = strchr("=:", changes[i].begin[n - 1]);
        if (strncmp(text, changes[i].begin, n) != 0 || (!open && text[n]))
            continue;
        *out_arg = str_of(text + n);
        return &changes[i];
    }
    return NULL;
}

static int unknown_change(const char *text, struct err *e)
{
    AUTO(buf_free) struct buf all = BUF(1024);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        buf_printf(&all, "%s%s", i ? ", " : "", changes[i].syntax);
    err_set(e, ERR_INVALID, "'%s' is no change that is known", text);
    return err_hint(e, "there are: %s", buf_str(&all).p);
}

int whatif_apply(struct trace *t, const char *text, struct err *e)
{
    struct str arg;
    const struct change *c = find_change(text, &arg);
    if (!c)
        return unknown_change(text, e);
    t->changed = true;
    return c->apply(t, arg, e) < 0 ? err_wrap(e, "--what-if %s", text) : 0;
}

void whatif_words(const char *text, struct buf *out)
{
    struct str arg, first = STR("1"), second;
    const struct change *c = find_change(text, &arg);
    if (!c) {
        buf_addz(out, text);
        return;
    }
    second = arg; /* where nothing splits it: one machine; a value without a name */
    if (c->split && memchr(arg.p, c->split, arg.n))
        str_cut(arg, c->split, &first, &second);
    if (second.n == 0)
        second = STR("always"); /* of a window */
    for (const char *z = c->words; *z; z++)
        if (*z == '$')
            buf_add(out, *++z == '1' ? first : second);
        else
            buf_addc(out, *z);
}

void whatif_print(struct buf *out)
{
    buf_addz(out, "changes for --what-if, which may be given several times:\n");
    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        buf_printf(out, "    %-25s %s\n", changes[i].syntax, changes[i].help);
}

void whatif_print_reference(struct buf *out)
{
    buf_addz(out, "| change | |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        buf_printf(out, "| `%s` | %s |\n", changes[i].syntax, changes[i].help);
}
