/* From a pod or a volume to the bytes of a where. */
#include <stdarg.h>
#include <stdio.h>

#include "engine/kube/where_code.h"

#define CODE_MAX ((size_t)8 << 20)

/* What is being written; refusals come in front at the end, the first one counts. */
struct writer {
    struct doc *d;
    struct buf code;
    char refusal[160];
};

static void writer_free(struct writer *w)
{
    buf_free(&w->code);
}

static void refuse(struct writer *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void refuse(struct writer *w, const char *fmt, ...)
{
    va_list ap;
    if (w->refusal[0])
        return;
    va_start(ap, fmt);
    vsnprintf(w->refusal, sizeof w->refusal, fmt, ap);
    va_end(ap);
}

static void put(struct writer *w, const char *text)
{
    buf_add(&w->code, (struct str){ text, strlen(text) + 1 });
}

static const struct where *where_made(struct str refusal, struct str code, struct arena *a)
{
    size_t front = refusal.n ? refusal.n + 2 : 0;
    struct where *out = arena_alloc(a, 1, sizeof *out + front + code.n);
    out->n = (uint32_t)(front + code.n);
    if (front) {
        out->code[0] = 'R';
        memcpy(out->code + 1, refusal.p, refusal.n + 1);
    }
    if (code.n)
        memcpy(out->code + front, code.p, code.n);
    return out;
}

static const struct where *finish(struct writer *w, struct arena *a)
{
    if (w->code.full)
        doc_fail(w->d, "its node affinity is too large");
    if (w->d->bad || (w->code.n == 0 && !w->refusal[0]))
        return NULL;
    return where_made(str_of(w->refusal), buf_str(&w->code), a);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Values in their order, so that the same set is the same bytes. */
static void put_values(struct writer *w, const struct json *values, struct arena *a)
{
    size_t n = 0;
    const char **sorted = arena_array(a, const char *, json_len(values) + 1);
    DOC_EACH(v, values)
    sorted[n++] = doc_as_text(w->d, v, "values");
    qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            continue;
        buf_addc(&w->code, '=');
        put(w, sorted[i]);
    }
}

static bool op_letter(const char *name, char *out)
{
    static const struct {
        char letter;
        const char *name;
    } ops[] = {
#define X(id, letter, name) { letter, name },
        WHERE_OPS(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (strcmp(ops[i].name, name) == 0) {
            *out = ops[i].letter;
            return true;
        }
    return false;
}

static void put_expressions(struct writer *w, const struct json *list, char kind, struct arena *a)
{
    DOC_EACH(v, list)
    {
        const char *key = doc_text(w->d, v, "key"), *op = doc_text(w->d, v, "operator");
        char letter = 0;
        if (!op_letter(op, &letter)) {
            refuse(w, "node affinity with the operator '%.40s' is not supported", op);
            continue;
        }
        if (kind == 'F' && strcmp(key, FIELD_NAME) != 0) {
            refuse(w, "node affinity on the field '%.40s' is not supported", key);
            continue;
        }
        buf_addc(&w->code, kind);
        buf_addc(&w->code, letter);
        put(w, key);
        put_values(w, doc_array(w->d, v, "values"), a);
    }
}

/* A NodeSelector; an empty list of terms is one that nothing matches. */
static void put_terms(struct writer *w, const struct json *selector, char kind, struct arena *a)
{
    const struct json *terms = doc_array(w->d, selector, "nodeSelectorTerms");
    if (!selector)
        return;
    buf_addc(&w->code, kind);
    DOC_EACH(term, terms)
    {
        buf_addc(&w->code, 'T');
        put_expressions(w, doc_array(w->d, term, "matchExpressions"), 'E', a);
        put_expressions(w, doc_array(w->d, term, "matchFields"), 'F', a);
    }
}

static int by_pair(const void *a, const void *b)
{
    const struct kube_label *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static void put_selector(struct writer *w, const struct json *selector, struct arena *a)
{
    size_t n = 0;
    if (json_members(selector) > DOC_LIST_MAX) {
        doc_fail(w->d, "more than %d labels in the node selector", DOC_LIST_MAX);
        return;
    }
    struct kube_label *pairs = arena_array(a, struct kube_label, json_members(selector) + 1);
    for (struct json_member m = { 0 }; json_next_member(selector, &m);)
        pairs[n++] = (struct kube_label){ m.key.p, doc_as_text(w->d, m.value, "nodeSelector") };
    qsort(pairs, n, sizeof *pairs, by_pair);
    for (size_t i = 0; i < n; i++) {
        buf_addc(&w->code, 'S');
        put(w, pairs[i].key);
        put(w, pairs[i].value);
    }
}

/* Admission gives every pod these two, for as long as a node may be away.  A node that is away takes
 * no pod anyway, and without them the where of a plain pod is NULL. */
static bool is_from_admission(const char *key, const char *op, char effect, bool timed)
{
    return timed && effect == 'e' && strcmp(op, "Exists") == 0 &&
           (strcmp(key, "node.kubernetes.io/not-ready") == 0 ||
            strcmp(key, "node.kubernetes.io/unreachable") == 0);
}

static void put_toleration(struct writer *w, const struct json *v)
{
    const char *key = doc_text(w->d, v, "key"), *value = doc_text(w->d, v, "value");
    const char *op = doc_text(w->d, v, "operator"), *effect = doc_text(w->d, v, "effect");
    enum taint_effect f = TAINT_NO_SCHEDULE;
    if (op[0] && strcmp(op, "Exists") != 0 && strcmp(op, "Equal") != 0) {
        refuse(w, "a toleration with the operator '%.40s' is not supported", op);
        return;
    }
    if (effect[0] && !taint_effect_parse(effect, &f)) {
        refuse(w, "a toleration of the effect '%.40s' is not supported", effect);
        return;
    }
    char letter = !effect[0] ? '*' : f == TAINT_NO_EXECUTE ? 'e' : 's';
    if (f == TAINT_PREFER || is_from_admission(key, op, letter, doc_has(v, "tolerationSeconds")))
        return;
    buf_addc(&w->code, 't');
    buf_addc(&w->code, letter);
    buf_addc(&w->code, strcmp(op, "Exists") == 0 ? 'x' : 'i');
    put(w, key);
    put(w, value);
}

static const struct json *required(struct doc *d, const struct json *affinity, const char *kind)
{
    const struct json *o = doc_object(d, affinity, kind);
    return json_find(o, "requiredDuringSchedulingIgnoredDuringExecution");
}

static void refuse_unsupported(struct writer *w, const struct json *spec)
{
    const struct json *affinity = doc_object(w->d, spec, "affinity");
    if (json_len(required(w->d, affinity, "podAffinity")) > 0)
        refuse(w, "required pod affinity is not supported");
    if (json_len(required(w->d, affinity, "podAntiAffinity")) > 0)
        refuse(w, "required pod anti-affinity is not supported");
    DOC_EACH(v, doc_array(w->d, spec, "topologySpreadConstraints"))
    if (strcmp(doc_text(w->d, v, "whenUnsatisfiable"), "ScheduleAnyway") != 0)
        refuse(w, "topology spread with DoNotSchedule is not supported");
    if (doc_has(spec, "resourceClaims"))
        refuse(w, "resource claims (DRA) are not supported");
}

const struct where *where_of_pod(struct doc *d, const struct json *pod_spec, struct arena *a)
{
    AUTO(writer_free) struct writer w = { .d = d, .code = BUF(CODE_MAX) };
    const struct json *affinity = doc_object(d, pod_spec, "affinity");
    const struct json *node = doc_object(d, affinity, "nodeAffinity");
    put_selector(&w, doc_object(d, pod_spec, "nodeSelector"), a);
    DOC_EACH(v, doc_array(d, pod_spec, "tolerations"))
    put_toleration(&w, v);
    put_terms(&w, doc_object(d, node, "requiredDuringSchedulingIgnoredDuringExecution"), 'A', a);
    refuse_unsupported(&w, pod_spec);
    return finish(&w, a);
}

const struct where *where_of_volume(struct doc *d, const struct json *volume, struct arena *a)
{
    AUTO(writer_free) struct writer w = { .d = d, .code = BUF(CODE_MAX) };
    const struct json *affinity = doc_object(d, doc_object(d, volume, "spec"), "nodeAffinity");
    put_terms(&w, doc_object(d, affinity, "required"), 'V', a);
    return finish(&w, a);
}

static void add_code(const struct where *w, struct str *refusal, struct buf *code)
{
    if (!w)
        return;
    const char *sentence = where_refusal(w);
    size_t skip = sentence ? strlen(sentence) + 2 : 0;
    if (sentence && refusal->n == 0)
        *refusal = str_of(sentence);
    buf_add(code, (struct str){ w->code + skip, w->n - skip });
}

const struct where *where_join(const struct where *pod, const struct where *const *volumes,
                               size_t n, struct arena *a)
{
    AUTO(buf_free) struct buf code = BUF((n + 1) * (CODE_MAX + 256));
    struct str refusal = { "", 0 };
    add_code(pod, &refusal, &code);
    for (size_t i = 0; i < n; i++)
        add_code(volumes[i], &refusal, &code);
    return code.n == 0 && refusal.n == 0 ? NULL : where_made(refusal, buf_str(&code), a);
}
