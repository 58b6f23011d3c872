/* A GPU as the API tells it: its figures, and whose its work is. */
#include "api/load.h"
#include "node/nvml.h"
#include "sys/weak.h"

/* ---- whose work it is ---- */

const struct holder *load_holder(const struct holder *list, uint64_t job)
{
    for (; list; list = list->next)
        if (list->id == job)
            return list;
    return NULL;
}

bool may_name(struct call *c, const struct holder *h)
{
    return h && (sees_tenant(c, h->tenant) || weak_here("holders"));
}

static void put_pod(struct json_out *w, const char *pod)
{
    struct str space = STR(""), name = STR(""), container = STR("");
    bool known = pod && report_who_pod(pod, &space, &name, &container);
    const struct {
        const char *key;
        struct str value;
    } rows[] = { { "namespace", space }, { "pod", name }, { "container", container } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (known)
            json_put_str(w, rows[i].key, rows[i].value);
        else
            json_put_null(w, rows[i].key);
}

static void put_nobody(struct json_out *w, const char *name)
{
    json_put_null(w, "id");
    if (name)
        json_put_str(w, "name", str_of(name));
    else
        json_put_null(w, "name");
    json_put_null(w, "user");
    json_put_null(w, "tenant");
}

/* Another tenant's work is there, and nobody's name; so is that of a job which ended just now, and that of a pod
 * which is no job's, for those who do not see everything. */
static void put_part(struct call *c, struct json_out *w, const struct report_sample *s,
                     const struct report_part *p, const struct holder *holders)
{
    uint64_t job;
    struct str space, pod, container;
    bool is_job = report_who_job(p->who, &job);
    bool is_pod = !is_job && report_who_pod(p->who, &space, &pod, &container);
    const struct holder *h = is_job ? load_holder(holders, job) : NULL;
    const struct report_given *given = is_job ? report_given_to(s, p->gpu, p->who) : NULL;
    const char *name = NULL;
    json_begin(w, NULL, '{');
    json_put_str(w, "kind", is_job ? STR("job") : is_pod ? STR("pod") : str_of(p->who));
    if (may_name(c, h)) {
        json_put_u64(w, "id", h->id);
        json_put_str(w, "name", h->name);
        json_put_str(w, "user", h->user);
        json_put_str(w, "tenant", h->tenant);
        name = given ? given->pod : NULL;
    } else if (is_pod && c->scope.everything) {
        put_nobody(w, p->who);
        name = p->who;
    } else {
        put_nobody(w, is_job   ? h ? "(another tenant)" : "(ended)"
                      : is_pod ? "(another pod)"
                               : NULL);
    }
    put_pod(w, name);
    put_scaled(w, "util_percent", p->permille, 10, 1);
    put_known(w, "mem_mib", p->mem_mib);
    put_known(w, "processes", p->processes);
    json_end(w, '}');
}

/* What the kubelet gave away of it, to those who may know. */
static void put_given(struct call *c, struct json_out *w, const struct report_sample *s,
                      uint32_t at, const struct holder *holders)
{
    uint64_t job;
    json_begin(w, "pods", '[');
    for (uint32_t i = 0; s && i < s->givens; i++) {
        const struct report_given *g = &s->given[i];
        const struct holder *h = report_who_job(g->task, &job) ? load_holder(holders, job) : NULL;
        if (g->gpu != at || !(h ? may_name(c, h) : c->scope.everything))
            continue;
        json_begin(w, NULL, '{');
        put_pod(w, g->pod);
        json_put_str(w, "device", str_of(g->device));
        put_known(w, "id", h ? (int64_t)h->id : -1);
        json_end(w, '}');
    }
    json_end(w, ']');
}

static void put_idle(struct json_out *w, const struct history_node *n, uint32_t at)
{
    const int64_t *v = n->last->gpu[at];
    json_begin(w, NULL, '{');
    json_put_str(w, "kind", STR("idle"));
    put_nobody(w, NULL);
    put_pod(w, NULL);
    put_scaled(w, "util_percent", v[REPORT_GPU_UTIL] < 0 ? -1 : 1000 - v[REPORT_GPU_UTIL], 10, 1);
    put_known(w, "mem_mib",
              v[REPORT_GPU_MEM_USED] < 0 ? -1 : n->head->gpu[at].mem_mib - v[REPORT_GPU_MEM_USED]);
    put_known(w, "processes", 0);
    json_end(w, '}');
}

static void put_parts(struct call *c, struct json_out *w, const struct history_node *n, uint32_t at,
                      const struct holder *holders)
{
    json_begin(w, "parts", '[');
    for (uint32_t i = 0; n && i < n->last->parts; i++)
        if (n->last->part[i].gpu == at)
            put_part(c, w, n->last, &n->last->part[i], holders);
    if (n && n->last->gpu[at][REPORT_GPU_UTIL] >= 0)
        put_idle(w, n, at);
    json_end(w, ']');
}

static void put_throttle(struct json_out *w, const int64_t *v)
{
    const char *name;
    json_begin(w, "throttle", '[');
    for (unsigned i = 0; v && v[REPORT_GPU_THROTTLE] > 0 && (name = nvml_throttle_name(i)); i++)
        if (v[REPORT_GPU_THROTTLE] >> i & 1)
            json_put_str(w, NULL, str_of(name));
    json_end(w, ']');
}

static void put_figures(struct json_out *w, const struct history_node *n, uint32_t at)
{
    const int64_t *v = n ? n->last->gpu[at] : NULL;
    const struct report_gpu *g = n ? &n->head->gpu[at] : NULL;
#define V(id) (v ? v[REPORT_GPU_##id] : -1)
    put_scaled(w, "util_percent", V(UTIL), 10, 1);
    put_scaled(w, "mem_util_percent", V(MEM_UTIL), 10, 1);
    put_known(w, "mem_used_mib", V(MEM_USED));
    put_known(w, "mem_mib", g ? g->mem_mib : -1);
    put_scaled(w, "power_w", V(POWER), 1000, 1);
    put_scaled(w, "power_limit_w", g ? g->power_limit_mw : -1, 1000, 1);
    put_known(w, "temp_c", V(TEMP));
    put_known(w, "sm_mhz", V(SM_CLOCK));
    put_known(w, "mem_mhz", V(MEM_CLOCK));
    put_throttle(w, v);
    put_known(w, "ecc_corrected", V(ECC_CORRECTED));
    put_known(w, "ecc_uncorrected", V(ECC_UNCORRECTED));
    put_known(w, "xid", V(XID) == 0 ? -1 : V(XID));
    put_known(w, "idle_since_ms", n && n->idle_since_ms[at] ? n->idle_since_ms[at] : -1);
#undef V
}

/* A GPU whole: `known` NULL when its machine is silent. */
void put_whole_gpu(struct call *c, struct json_out *w, const struct node_view *v, uint32_t g,
                   const struct history_node *known, const struct holder *holders)
{
    struct control_node cn = { 0 };
    uint32_t at = 0;
    control_node(c->api->config.control, str_of(v->name), &cn);
    const struct history_node *n =
        known && gpu_place(c->api, v, known, holders, g, &at) ? known : NULL;
    struct str uuid = str_of(n ? n->head->gpu[at].uuid : g < cn.gpus ? cn.gpu_uuid[g] : "");
    json_begin(w, NULL, '{');
    json_put_str(w, "node", str_of(v->name));
    json_put_str(w, "state", str_of(node_state_name(v->state)));
    json_put_u64(w, "index", g);
    json_put_str(w, "uuid", uuid);
    const char *model = v->model && v->model[0] ? v->model : n ? n->head->gpu[at].name : "";
    json_put_str(w, "model", str_of(model));
    json_put_bool(w, "simulated", cn.simulated);
    json_put_u64(w, "free_milli", g < v->gpus ? v->gpu_free[g] : 0);
    put_known(w, "seen_ms", n ? n->last->t_ms : -1);
    put_figures(w, n, at);
    put_parts(c, w, n, at, holders);
    put_given(c, w, n ? n->last : NULL, at, holders);
    json_begin(w, "jobs", '[');
    for (const struct holder *h = holders; h; h = h->next)
        if (h->slot.gpu_mask & (1u << g)) {
            json_begin(w, NULL, '{');
            put_holder(c, w, h);
            json_end(w, '}');
        }
    json_end(w, ']');
    json_end(w, '}');
}
