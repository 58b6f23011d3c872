#include "engine/kube/where.h"

#include <stdio.h>

#include "base/parse.h"
#include "engine/kube/where_code.h"

static const char *const no_names[] = {
#define X(id, name) [WHERE_NO_##id] = name,
    WHERE_NOS(X)
#undef X
};

const char *where_no_name(enum where_no_kind k)
{
    return k < WHERE_NO_COUNT ? no_names[k] : "?";
}

size_t where_bytes(const struct where *w)
{
    return sizeof *w + w->n;
}

struct where *where_copy(const struct where *w)
{
    return w ? memcpy(xmalloc(where_bytes(w)), w, where_bytes(w)) : NULL;
}

bool where_eq(const struct where *a, const struct where *b)
{
    if (!a || !b)
        return a == b;
    return a->n == b->n && memcmp(a->code, b->code, a->n) == 0;
}

uint64_t where_hash(const struct where *w)
{
    return w ? str_hash((struct str){ w->code, w->n }) : 0;
}

const char *where_refusal(const struct where *w)
{
    return w && w->n && w->code[0] == 'R' ? w->code + 1 : NULL;
}

/* One part of the code.  Texts that it does not have are "". */
struct part {
    char kind, effect, op;
    const char *key, *value;
};

static const char *take_text(const char **at)
{
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

/* The part at *at, which lies before the end; *at goes on to the next. */
static struct part take_part(const char **at)
{
    struct part p = { .kind = *(*at)++, .key = "", .value = "" };
    switch (p.kind) {
    case 't':
        p.effect = *(*at)++;
        p.op = *(*at)++;
        p.key = take_text(at);
        p.value = take_text(at);
        break;
    case 'S':
        p.key = take_text(at);
        p.value = take_text(at);
        break;
    case 'E':
    case 'F':
        p.op = *(*at)++;
        p.key = take_text(at);
        break;
    case 'R':
    case '=': p.value = take_text(at); break;
    default: break; /* T, A, V are letters alone */
    }
    return p;
}

static bool tolerates(const struct part *t, const char *key, const char *value, char effect)
{
    if (t->effect != '*' && t->effect != effect)
        return false;
    if (t->key[0] ? strcmp(t->key, key) != 0 : t->op != 'x')
        return false;
    return t->op == 'x' || strcmp(t->value, value) == 0;
}

static bool is_tolerated(const struct where *w, const char *key, const char *value, char effect)
{
    if (!w)
        return false;
    for (const char *at = w->code, *end = at + w->n; at < end;) {
        struct part p = take_part(&at);
        if (p.kind == 't' && tolerates(&p, key, value, effect))
            return true;
    }
    return false;
}

static int64_t whole(const char *text, bool *ok)
{
    int64_t v = 0;
    struct err e;
    *ok &= parse_i64(str_of(text), INT64_MIN, INT64_MAX, &v, &e) == 0;
    return v;
}

/* `have` is NULL when the node has no such label.  Reads the values that follow; *at goes behind
 * them in any case. */
static bool expression_holds(char op, const char *have, const char **at, const char *end)
{
    bool among = false, numbers = have != NULL;
    int64_t mine = numbers ? whole(have, &numbers) : 0, other = 0;
    size_t n = 0;
    for (; *at < end && **at == '='; n++) {
        const char *value = take_part(at).value;
        among |= have && strcmp(have, value) == 0;
        if (op == WHERE_OP_GREATER || op == WHERE_OP_LESS)
            other = whole(value, &numbers);
    }
    switch ((enum where_op)op) {
    case WHERE_OP_IN: return among;
    case WHERE_OP_NOT_IN: return !among;
    case WHERE_OP_EXISTS: return have != NULL;
    case WHERE_OP_ABSENT: return have == NULL;
    case WHERE_OP_GREATER: return numbers && n == 1 && mine > other;
    case WHERE_OP_LESS: return numbers && n == 1 && mine < other;
    }
    return false;
}

/* The parts from `at` on, up to what does not belong to the terms; true when one term holds.
 * *out_key: what the first failure was about. */
static bool terms_hold(const char **at, const char *end, const struct kube_node *node,
                       const char **out_key)
{
    bool any = false, all = false, empty = true, asked = false;
    while (*at < end && strchr("TEF", **at)) {
        struct part p = take_part(at);
        if (p.kind == 'T') {
            any |= all && !empty;
            all = empty = true;
            continue;
        }
        const char *have = p.kind == 'F' ? node->name : kube_node_label(node, p.key);
        bool holds = expression_holds(p.op, have, at, end);
        if (!holds && !asked) {
            *out_key = p.key;
            asked = true;
        }
        all &= holds;
        empty = false;
    }
    return any || (all && !empty);
}

static bool places_match(const struct where *w, const struct kube_node *n, struct where_no *why)
{
    if (!w)
        return true;
    for (const char *at = w->code, *end = at + w->n; at < end;) {
        struct part p = take_part(&at);
        if (p.kind == 'S') {
            const char *have = kube_node_label(n, p.key);
            *why = (struct where_no){ WHERE_NO_LABEL, p.key, p.value, "" };
            if (!have || strcmp(have, p.value) != 0)
                return false;
        } else if (p.kind == 'A' || p.kind == 'V') {
            *why = (struct where_no){ p.kind == 'A' ? WHERE_NO_AFFINITY : WHERE_NO_VOLUME, "", "",
                                      "" };
            if (!terms_hold(&at, end, n, &why->key))
                return false;
        }
    }
    return true;
}

#define CORDON_KEY "node.kubernetes.io/unschedulable"

static bool taints_let(const struct where *w, const struct kube_node *n, struct where_no *why)
{
    *why = (struct where_no){ WHERE_NO_CORDON, "", "", "" };
    if (n->unschedulable && !is_tolerated(w, CORDON_KEY, "", 's'))
        return false;
    for (size_t i = 0; i < n->n_taints; i++) {
        const struct kube_taint *t = &n->taints[i];
        if (t->effect == TAINT_PREFER ||
            is_tolerated(w, t->key, t->value, t->effect == TAINT_NO_EXECUTE ? 'e' : 's'))
            continue;
        *why = (struct where_no){ WHERE_NO_TAINT, t->key, t->value, taint_effect_name(t->effect) };
        return false;
    }
    return true;
}

bool where_matches(const struct where *w, const struct kube_node *n, struct where_no *out_why)
{
    struct where_no why = { WHERE_NO_REFUSED, "", "", "" };
    const char *refusal = where_refusal(w);
    if (refusal)
        why.value = refusal;
    if (!refusal && places_match(w, n, &why) && taints_let(w, n, &why))
        return true;
    *out_why = why;
    return false;
}

const char *where_no_text(const struct where_no *no, char out[static 256])
{
    const char *eq = no->value[0] ? "=" : "";
    switch (no->kind) {
    case WHERE_NO_REFUSED: snprintf(out, 256, "%.200s", no->value); break;
    case WHERE_NO_LABEL:
        snprintf(out, 256, "it does not have the label %.120s=%.80s", no->key, no->value);
        break;
    case WHERE_NO_AFFINITY:
    case WHERE_NO_VOLUME:
        snprintf(out, 256, "%s does not allow it%s%.150s%s",
                 no->kind == WHERE_NO_AFFINITY ? "the pod's node affinity" : "a volume of the pod",
                 no->key[0] ? " (" : "", no->key, no->key[0] ? ")" : "");
        break;
    case WHERE_NO_CORDON: snprintf(out, 256, "it is cordoned"); break;
    case WHERE_NO_TAINT:
        snprintf(out, 256, "it has the taint %.120s%s%.60s:%s", no->key, eq, no->value, no->effect);
        break;
    case WHERE_NO_COUNT: abort();
    }
    return out;
}

bool where_keys_add(const struct where *w, struct label_keys *keys)
{
    size_t before = keys->keys.n;
    bool names = keys->names;
    if (!w)
        return false;
    for (const char *at = w->code, *end = at + w->n; at < end;) {
        struct part p = take_part(&at);
        if (p.kind == 'S' || p.kind == 'E')
            names_intern(&keys->keys, str_of(p.key));
        keys->names |= p.kind == 'F';
    }
    return keys->keys.n != before || keys->names != names;
}

void label_keys_free(struct label_keys *keys)
{
    names_free(&keys->keys);
    *keys = (struct label_keys){ 0 };
}

/* Tabs and line ends part the texts: a node's own texts have none (doc.h). */
void node_class_key(const struct kube_node *n, const struct label_keys *keys, struct buf *out)
{
    if (keys->names)
        buf_printf(out, "name\t%s\n", n->name);
    if (n->unschedulable)
        buf_addz(out, "cordon\n");
    for (size_t i = 0; i < n->n_labels; i++)
        if (names_find(&keys->keys, str_of(n->labels[i].key)) != NAME_NONE)
            buf_printf(out, "label\t%s\t%s\n", n->labels[i].key, n->labels[i].value);
    for (size_t i = 0; i < n->n_taints; i++)
        if (n->taints[i].effect != TAINT_PREFER)
            buf_printf(out, "taint\t%s\t%s\t%s\n", n->taints[i].key, n->taints[i].value,
                       taint_effect_name(n->taints[i].effect));
}
