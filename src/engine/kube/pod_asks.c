#include "engine/kube/pod_asks.h"

bool pod_is_sidecar(struct doc *d, const struct json *init_container)
{
    return strcmp(doc_text(d, init_container, "restartPolicy"), "Always") == 0;
}

/* A limit without a request is a request. */
static struct amount_list container_asks(struct doc *d, const struct json *container)
{
    const struct json *resources = doc_object(d, container, "resources");
    struct amount_list asks = { 0 }, limits = { 0 };
    amount_list_read(d, doc_object(d, resources, "requests"), &asks);
    amount_list_read(d, doc_object(d, resources, "limits"), &limits);
    for (size_t i = 0; i < limits.n; i++)
        if (amount_list_get(&asks, limits.of[i].name, -1) < 0)
            amount_list_put(d, &asks, limits.of[i].name, limits.of[i].milli);
    return asks;
}

static void replace_by_pod_level(struct doc *d, const struct json *spec, struct amount_list *sum)
{
    struct amount_list asks = { 0 };
    const struct json *resources = doc_object(d, spec, "resources");
    amount_list_read(d, doc_object(d, resources, "requests"), &asks);
    for (size_t i = 0; i < asks.n; i++) {
        const char *name = asks.of[i].name;
        if (strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
            strncmp(name, "hugepages-", 10) == 0)
            amount_list_put(d, sum, name, asks.of[i].milli);
    }
}

struct kube_amounts pod_asks(struct doc *d, const struct json *spec, struct arena *a)
{
    struct amount_list sum = { 0 }, sidecars = { 0 }, start = { 0 }, overhead = { 0 };
    DOC_EACH(c, doc_array(d, spec, "containers"))
    {
        struct amount_list one = container_asks(d, c);
        amount_list_add(d, &sum, &one);
    }
    DOC_EACH(c, doc_array(d, spec, "initContainers"))
    {
        struct amount_list one = container_asks(d, c);
        if (pod_is_sidecar(d, c)) {
            amount_list_add(d, &sum, &one);
            amount_list_add(d, &sidecars, &one);
            amount_list_raise(d, &start, &sidecars);
        } else {
            amount_list_add(d, &one, &sidecars);
            amount_list_raise(d, &start, &one);
        }
    }
    amount_list_raise(d, &sum, &start);
    replace_by_pod_level(d, spec, &sum);
    amount_list_read(d, doc_object(d, spec, "overhead"), &overhead);
    amount_list_add(d, &sum, &overhead);
    return kube_amounts_of(d, &sum, true, a);
}
