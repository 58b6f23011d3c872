#include "engine/kube/amounts.h"

#include "engine/kube/quantity.h"

/* Where the name is or would be. */
static size_t place_of(const struct amount_list *l, const char *name, bool *out_found)
{
    size_t i = 0;
    int order = 1;
    while (i < l->n && (order = strcmp(l->of[i].name, name)) < 0)
        i++;
    *out_found = i < l->n && order == 0;
    return i;
}

void amount_list_put(struct doc *d, struct amount_list *l, const char *name, int64_t milli)
{
    bool found;
    size_t i = place_of(l, name, &found);
    if (!found && l->n == ARRAY_LEN(l->of)) {
        doc_fail(d, "more than %zu kinds of resources", l->n);
        return;
    }
    if (!found) {
        memmove(&l->of[i + 1], &l->of[i], (l->n - i) * sizeof l->of[0]);
        l->n++;
    }
    l->of[i] = (struct amount){ name, milli };
}

int64_t amount_list_get(const struct amount_list *l, const char *name, int64_t when_absent)
{
    bool found;
    size_t i = place_of(l, name, &found);
    return found ? l->of[i].milli : when_absent;
}

void amount_list_read(struct doc *d, const struct json *resources, struct amount_list *out)
{
    for (struct json_member m = { 0 }; json_next_member(resources, &m);) {
        int64_t milli = 0;
        struct err e;
        if (quantity_read(m.value, &milli, &e) < 0)
            doc_fail(d, "resource '%.60s': %s", m.key.p, e.msg);
        else if (milli < 0)
            doc_fail(d, "resource '%.60s' is below zero", m.key.p);
        else if (m.key.n > DOC_TEXT_MAX || strlen(m.key.p) != m.key.n)
            doc_fail(d, "a resource has no proper name");
        else
            amount_list_put(d, out, m.key.p, milli);
    }
}

void amount_list_add(struct doc *d, struct amount_list *into, const struct amount_list *from)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct amount *x = &from->of[i];
        amount_list_put(d, into, x->name,
                        quantity_add(x->milli, amount_list_get(into, x->name, 0)));
    }
}

void amount_list_raise(struct doc *d, struct amount_list *into, const struct amount_list *from)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct amount *x = &from->of[i];
        if (x->milli > amount_list_get(into, x->name, -1))
            amount_list_put(d, into, x->name, x->milli);
    }
}

/* What the kubelet counts for others: names of a domain that is not Kubernetes' own. */
static bool is_extended(const char *name)
{
    if (strncmp(name, "hugepages-", 10) == 0)
        return true;
    return strchr(name, '/') && !strstr(name, "kubernetes.io/") &&
           strncmp(name, "requests.", 9) != 0;
}

static uint64_t mib(int64_t milli, bool asked)
{
    return asked ? quantity_mib_asked(milli) : quantity_mib_there(milli);
}

struct kube_amounts kube_amounts_of(struct doc *d, const struct amount_list *l, bool asked,
                                    struct arena *a)
{
    uint64_t pods = (uint64_t)amount_list_get(l, "pods", 0) / 1000;
    struct kube_amounts m = {
        .cpu_milli = (uint64_t)amount_list_get(l, "cpu", 0),
        .mem_mib = mib(amount_list_get(l, "memory", 0), asked),
        .disk_mib = mib(amount_list_get(l, "ephemeral-storage", 0), asked),
        .pods = (uint32_t)MIN(pods, (uint64_t)UINT32_MAX),
        .extended = arena_array(a, struct kube_count, EXTENDED_MAX),
    };
    for (size_t i = 0; i < l->n; i++) {
        int64_t milli = l->of[i].milli;
        uint64_t n = asked ? quantity_units(milli) : (uint64_t)milli / 1000;
        if (n == 0 || !is_extended(l->of[i].name))
            continue;
        if (m.n_extended == EXTENDED_MAX) {
            doc_fail(d, "more than %d extended resources", EXTENDED_MAX);
            break;
        }
        m.extended[m.n_extended++] = (struct kube_count){ l->of[i].name, n };
    }
    return m;
}

void kube_amounts_pack(struct kube_amounts *m, struct pack *k)
{
    pack_array(k, m->extended, m->n_extended);
    for (uint32_t i = 0; i < m->n_extended; i++)
        pack_text(k, &m->extended[i].name);
}

uint64_t kube_amounts_count(const struct kube_amounts *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_extended; i++)
        if (strcmp(m->extended[i].name, name) == 0)
            return m->extended[i].n;
    return 0;
}
