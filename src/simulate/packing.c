#include "simulate/packing.h"

#include <math.h>
#include <strings.h>

#include "base/json.h"
#include "simulate/packer.h"
#include "sys/clock.h"
#include "sys/progress.h"

/* A pod as a request.  Models that no node has leave it without a node, as in the protocol. */
static struct request pod_request(const struct cluster *c, const struct openb_pod *p)
{
    struct request r = { .replicas = 1, .cpu_milli = p->cpu_milli, .mem_mib = p->mem_mib };
    if (p->num_gpu == 0)
        return r;
    if (p->num_gpu == 1 && p->gpu_milli < GPU_MILLI)
        r.gpu_milli = (uint16_t)p->gpu_milli;
    else
        r.gpus = (uint16_t)p->num_gpu;
    struct err ignored;
    if (p->spec[0] && cluster_parse_models(c, str_of(p->spec), &r.models, &ignored) < 0)
        r.models = UINT64_C(1) << (MODELS_MAX - 1);
    return r;
}

/* Nodes are enrolled by rank: the core takes the one enrolled first of equal ones. */
static int enrol(struct cluster *c, const struct openb *o, const struct openb_seed *s,
                 struct err *e)
{
    AUTO(free_p) uint32_t *at = xcalloc(o->nodes + 1, sizeof *at);
    for (uint32_t i = 0; i < o->nodes; i++)
        at[s->rank[i]] = i;
    for (uint32_t i = 0; i < o->nodes; i++) {
        const struct openb_node *n = &o->node[at[i]];
        struct event_node ev = { .name = str_of(n->name),
                                 .model = str_of(n->model),
                                 .gpus = n->gpus,
                                 .cpu_milli = n->cpu_milli,
                                 .mem_mib = n->mem_mib };
        if (cluster_add_node(c, &ev, e) < 0)
            return -1;
    }
    return 0;
}

struct curve {
    double sum[PACKING_PERCENT_MAX];
    uint32_t n[PACKING_PERCENT_MAX];
};

/* Every pod is a sample, placed or not; the mean of a bucket, of its neighbours where it is
 * empty. */
static void curve_add(struct curve *c, double arrived, double used)
{
    double percent = nearbyint(arrived * 100);
    if (percent >= PACKING_PERCENT_MAX)
        return;
    c->sum[(size_t)percent] += nearbyint(used * 1e4) / 100;
    c->n[(size_t)percent]++;
}

static void curve_read(const struct curve *c, double out[PACKING_PERCENT_MAX])
{
    for (int a = 0; a < PACKING_PERCENT_MAX; a++) {
        double sum = c->sum[a];
        uint32_t n = c->n[a];
        for (int near = a - 1; c->n[a] == 0 && near <= a + 1; near += 2)
            if (near >= 0 && near < PACKING_PERCENT_MAX) {
                sum += c->sum[near];
                n += c->n[near];
            }
        out[a] = n ? nearbyint(sum / n * 100) / 100 : NAN;
    }
}

/* Every pod of the seed in its order: learnt, placed or dropped, and counted. */
static void arrive_all(struct cluster *c, const struct openb *o, const struct openb_seed *s,
                       struct packer *p, const struct request *pod, struct packing_seed *out)
{
    AUTO(free_p) struct curve *curve = xcalloc(1, sizeof *curve);
    double arrived = 0, used = 0, total = (double)c->total.of[RES_GPU];
    int64_t begin = clock_mono_ns();
    for (uint32_t i = 0; i < s->orders; i++) {
        const struct request *r = &pod[s->order[i]];
        double milli = r->gpus ? r->gpus * (double)GPU_MILLI : r->gpu_milli;
        struct slot slot;
        packer_learn(p, c, r, o->pod[s->order[i]].spec);
        bool placed = packer_find(p, c, r, &slot);
        if (placed)
            cluster_take(c, r, &slot, 1);
        arrived += milli;
        used += placed ? milli : 0;
        out->placed += placed;
        out->dropped += !placed;
        curve_add(curve, arrived / total, used / total);
    }
    out->ns_per_placement = s->orders ? (double)(clock_mono_ns() - begin) / s->orders : 0;
    curve_read(curve, out->alloc);
}

static int run_seed(const struct openb *o, const struct openb_seed *s, struct packer *p,
                    bool prior_trace, struct packing_seed *out, struct err *e)
{
    struct cluster c;
    cluster_init(&c);
    AUTO(free_p) struct request *pod = xcalloc(o->pods + 1, sizeof *pod);
    int rc = enrol(&c, o, s, e);
    for (uint32_t i = 0; i < o->pods && rc == 0; i++) {
        pod[i] = pod_request(&c, &o->pod[i]);
        if (prior_trace)
            packer_learn(p, &c, &pod[i], o->pod[i].spec);
    }
    if (prior_trace)
        packer_seal(p);
    if (rc == 0)
        arrive_all(&c, o, s, p, pod, out);
    out->seed = s->seed;
    cluster_free(&c);
    return rc;
}

static double off_published(const struct openb *o, const char *policy, const struct packing_seed *s)
{
    double most = NAN;
    for (uint32_t i = 0; i < o->publisheds; i++) {
        const struct openb_published *p = &o->published[i];
        if (p->seed != s->seed || strcasecmp(p->policy, policy) != 0)
            continue;
        for (uint32_t k = 0; k < p->n; k++)
            if (!isnan(p->alloc[k]) && p->demand[k] < PACKING_PERCENT_MAX)
                most = fmax(most, fabs(p->alloc[k] - s->alloc[p->demand[k]]));
    }
    return most;
}

int packing_run(const struct openb *o, const char *workload, const char *policy, bool prior_trace,
                struct packing_result *out, struct err *e)
{
    struct packing_result r = {
        .workload = workload, .policy = policy, .seeds = o->seeds, .off_published = NAN
    };
    AUTO(progress_done_p) struct progress *bar = progress_begin(policy, o->seeds);
    AUTO(free_p) struct packing_seed *seed = xcalloc(o->seeds + 1, sizeof *seed);
    for (uint32_t i = 0; i < o->seeds; i++) {
        AUTO(packer_close) struct packer p = { 0 };
        if (!packer_open(policy, &p)) {
            err_set(e, ERR_INVALID, "--policy: '%s' is not a packer", policy);
            return err_hint(e, "choose nightshift, fgd or bestfit");
        }
        if (run_seed(o, &o->seed[i], &p, prior_trace, &seed[i], e) < 0)
            return -1;
        r.alloc_100 += seed[i].alloc[100] / o->seeds;
        r.alloc_130 += seed[i].alloc[130] / o->seeds;
        r.ns_per_placement += seed[i].ns_per_placement / o->seeds;
        r.off_published = fmax(r.off_published, off_published(o, policy, &seed[i]));
        progress_set(bar, i + 1);
    }
    r.seed = TAKE(seed);
    *out = r;
    return 0;
}

void packing_json(const struct packing_result *r, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "workload", str_of(r->workload));
    json_put_str(&w, "policy", str_of(r->policy));
    json_begin(&w, "seeds", '[');
    for (uint32_t i = 0; i < r->seeds; i++)
        json_put_u64(&w, NULL, r->seed[i].seed);
    json_end(&w, ']');
    json_put_f64(&w, "alloc_100", r->alloc_100, 4);
    json_put_f64(&w, "alloc_130", r->alloc_130, 4);
    json_put_f64(&w, "ns_per_placement", r->ns_per_placement, 1);
    json_put_f64(&w, "off_published", r->off_published, 4);
    json_end(&w, '}');
    buf_addc(out, '\n');
}
