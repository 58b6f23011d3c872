#include "simulate/openb.h"

#include <math.h>
#include <stdio.h>

#include "base/map.h"
#include "base/parse.h"
#include "core/types.h"

#define TEXT_MAX ((size_t)128 << 20)
#define ARENA_MAX ((size_t)2 << 30)
#define NODES_MAX 100000
#define PODS_MAX 2000000
#define SEEDS_MAX 1000
#define RESULTS_MAX 100000
#define AMOUNT_MAX UINT32_MAX

void openb_free(struct openb *o)
{
    arena_free(&o->arena);
    *o = (struct openb){ 0 };
}

static char *copy(struct openb *o, struct str s)
{
    return arena_strndup(&o->arena, s.p, s.n);
}

static int check_name(const struct csv *c, size_t column, struct err *e)
{
    size_t n = csv_text(c, column).n;
    if (n <= NAME_MAX_BYTES)
        return 0;
    csv_fail(c, column, e, "a name of %zu bytes", n);
    return err_hint(e, "at most %d bytes", NAME_MAX_BYTES);
}

/* Reads every row with `row`; the array it fills was made for c->room rows. */
static int each_row(struct csv *c, struct openb *o, void *ctx,
                    int (*row)(struct openb *o, const struct csv *c, void *ctx, struct err *e),
                    struct err *e)
{
    int rc;
    while ((rc = csv_next(c, e)) > 0)
        if (row(o, c, ctx, e) < 0)
            return -1;
    return rc;
}

static int need_rows(const struct csv *c, uint32_t rows, struct err *e)
{
    if (rows)
        return 0;
    csv_fail(c, 0, e, "the table has no rows");
    return err_hint(e, "the file is cut off, or not the right one");
}

/* ---- nodes ---- */

static const struct csv_column node_columns[] = {
    { "sn", 0 }, { "cpu_milli", 0 }, { "memory_mib", 0 }, { "gpu", 0 }, { "model", CSV_EMPTY },
};
enum {
    NODE_SN,
    NODE_CPU,
    NODE_MEM,
    NODE_GPU,
    NODE_MODEL
};

static int read_node(struct openb *o, const struct csv *c, void *seen, struct err *e)
{
    struct openb_node n;
    struct str name = csv_text(c, NODE_SN), model = csv_text(c, NODE_MODEL);
    if (check_name(c, NODE_SN, e) < 0 || check_name(c, NODE_MODEL, e) < 0 ||
        csv_u32(c, NODE_CPU, 0, AMOUNT_MAX, &n.cpu_milli, e) < 0 ||
        csv_u32(c, NODE_MEM, 0, AMOUNT_MAX, &n.mem_mib, e) < 0 ||
        csv_u32(c, NODE_GPU, 0, GPUS_PER_NODE_MAX, &n.gpus, e) < 0)
        return -1;
    if (n.gpus && model.n == 0) {
        csv_fail(c, NODE_MODEL, e, "it is empty, and the node has %u GPUs", n.gpus);
        return err_hint(e, "name the model of its GPUs, like V100");
    }
    if (memchr(model.p, '|', model.n)) {
        csv_fail(c, NODE_MODEL, e, "'%.*s' names more than one model", (int)model.n, model.p);
        return err_hint(e, "'|' separates the models a pod allows; a node has one");
    }
    if (names_intern(seen, name) != o->nodes) {
        csv_fail(c, NODE_SN, e, "'%.*s' is there twice", (int)name.n, name.p);
        return err_hint(e, "give each node its own name");
    }
    n.name = copy(o, name);
    n.model = copy(o, model);
    o->node[o->nodes++] = n;
    return 0;
}

static int read_nodes(struct openb *o, const struct csv_source *from, struct err *e)
{
    const struct csv_table table = { node_columns, ARRAY_LEN(node_columns), NODES_MAX };
    AUTO(names_free) struct names seen = { 0 };
    struct csv c;
    if (csv_open(&c, from, &table, e) < 0)
        return -1;
    o->node = arena_array(&o->arena, struct openb_node, c.room);
    if (each_row(&c, o, &seen, read_node, e) < 0)
        return -1;
    return need_rows(&c, o->nodes, e);
}

/* ---- pods ---- */

static const struct csv_column pod_columns[] = {
    { "name", 0 },    { "cpu_milli", 0 }, { "memory_mib", 0 },
    { "num_gpu", 0 }, { "gpu_milli", 0 }, { "gpu_spec", CSV_OPTIONAL | CSV_EMPTY },
};
enum {
    POD_NAME,
    POD_CPU,
    POD_MEM,
    POD_GPUS,
    POD_MILLI,
    POD_SPEC
};

static int check_spec(const struct csv *c, struct err *e)
{
    struct str spec = csv_text(c, POD_SPEC), rest = spec, one;
    if (spec.n == 0)
        return 0;
    bool more;
    do {
        more = str_cut(rest, '|', &one, &rest);
        if (one.n == 0 || one.n > NAME_MAX_BYTES) {
            csv_fail(c, POD_SPEC, e, "'%.*s' is not a list of models", (int)MIN(spec.n, (size_t)60),
                     spec.p);
            return err_hint(e, "write models with '|' between them, like V100M16|V100M32");
        }
    } while (more);
    return 0;
}

static int read_pod(struct openb *o, const struct csv *c, void *ctx, struct err *e)
{
    struct openb_pod p;
    (void)ctx;
    if (check_name(c, POD_NAME, e) < 0 || check_spec(c, e) < 0 ||
        csv_u32(c, POD_CPU, 0, AMOUNT_MAX, &p.cpu_milli, e) < 0 ||
        csv_u32(c, POD_MEM, 0, AMOUNT_MAX, &p.mem_mib, e) < 0 ||
        csv_u32(c, POD_GPUS, 0, GPUS_PER_NODE_MAX, &p.num_gpu, e) < 0 ||
        csv_u32(c, POD_MILLI, p.num_gpu ? 1 : 0, p.num_gpu ? GPU_MILLI : 0, &p.gpu_milli, e) < 0)
        return -1;
    p.name = copy(o, csv_text(c, POD_NAME));
    p.spec = csv_text(c, POD_SPEC).n ? copy(o, csv_text(c, POD_SPEC)) : "";
    o->pod[o->pods++] = p;
    return 0;
}

static int read_pods(struct openb *o, const struct csv_source *from, struct err *e)
{
    const struct csv_table table = { pod_columns, ARRAY_LEN(pod_columns), PODS_MAX };
    struct csv c;
    if (csv_open(&c, from, &table, e) < 0)
        return -1;
    o->pod = arena_array(&o->arena, struct openb_pod, c.room);
    if (each_row(&c, o, NULL, read_pod, e) < 0)
        return -1;
    return need_rows(&c, o->pods, e);
}

/* ---- lines of numbers: "seed number number …" ---- */

struct numbers {
    struct csv_source from;
    const char *field; /* what the numbers are called */
    struct str rest;
    size_t line;
    uint64_t seed;
    uint32_t below; /* each number is smaller than this */
    uint32_t *value;
    uint32_t n;
};

static uint32_t count_words(struct str s)
{
    struct str word;
    uint32_t n = 0;
    while (str_next_word(&s, &word))
        n++;
    return n;
}

/* 1: a line, 0: the end, -1: broken. */
static int numbers_next(struct numbers *k, struct arena *a, struct err *e)
{
    struct str line, word;
    do {
        if (!str_next_line(&k->rest, &line))
            return 0;
        k->line++;
    } while (str_trim(line).n == 0);
    str_next_word(&line, &word);
    if (parse_u64(word, UINT64_MAX, &k->seed, e) < 0)
        return csv_wrap(k->from.file, k->line, "seed", e);
    k->value = arena_array(a, uint32_t, count_words(line));
    for (k->n = 0; str_next_word(&line, &word); k->n++) {
        uint64_t v;
        if (parse_u64(word, k->below - 1, &v, e) < 0)
            return csv_wrap(k->from.file, k->line, k->field, e);
        k->value[k->n] = (uint32_t)v;
    }
    return 1;
}

static int numbers_fail(const struct numbers *k, const char *field, struct err *e)
{
    err_hint(e, "a line is a seed and then the %ss; is the file whole, and of this workload?",
             k->field);
    return csv_wrap(k->from.file, MAX(k->line, (size_t)1), field, e);
}

static struct openb_seed *find_seed(const struct openb *o, uint64_t seed)
{
    for (uint32_t i = 0; i < o->seeds; i++)
        if (o->seed[i].seed == seed)
            return &o->seed[i];
    return NULL;
}

static int read_orders(struct openb *o, const struct csv_source *from, struct err *e)
{
    struct numbers k = { .from = *from, .field = "row", .rest = from->text, .below = o->pods };
    o->seed = arena_array(&o->arena, struct openb_seed, SEEDS_MAX);
    int rc;
    while ((rc = numbers_next(&k, &o->arena, e)) > 0) {
        unsigned long long seed = k.seed;
        if (find_seed(o, k.seed)) {
            err_set(e, ERR_INVALID, "%llu is there twice", seed);
            return numbers_fail(&k, "seed", e);
        }
        if (k.n == 0) {
            err_set(e, ERR_INVALID, "no pod arrives for seed %llu", seed);
            return numbers_fail(&k, "row", e);
        }
        if (o->seeds == SEEDS_MAX) {
            err_set(e, ERR_INVALID, "more than %d seeds", SEEDS_MAX);
            return numbers_fail(&k, "seed", e);
        }
        o->seed[o->seeds++] =
            (struct openb_seed){ .seed = k.seed, .order = k.value, .orders = k.n };
    }
    if (rc == 0 && o->seeds == 0) {
        err_set(e, ERR_INVALID, "the file is empty");
        return numbers_fail(&k, "seed", e);
    }
    return rc;
}

static int check_permutation(const struct numbers *k, uint8_t *seen, struct err *e)
{
    if (k->n != k->below) {
        err_set(e, ERR_INVALID, "%u ranks for %u nodes", k->n, k->below);
        return numbers_fail(k, "rank", e);
    }
    memset(seen, 0, k->below);
    for (uint32_t i = 0; i < k->n; i++)
        if (seen[k->value[i]]++) {
            err_set(e, ERR_INVALID, "%u is there twice: two nodes cannot have one rank",
                    k->value[i]);
            return numbers_fail(k, "rank", e);
        }
    return 0;
}

static int read_ranks(struct openb *o, const struct csv_source *from, struct err *e)
{
    struct numbers k = { .from = *from, .field = "rank", .rest = from->text, .below = o->nodes };
    uint8_t *seen = arena_array(&o->arena, uint8_t, o->nodes);
    int rc;
    while ((rc = numbers_next(&k, &o->arena, e)) > 0) {
        struct openb_seed *s = find_seed(o, k.seed);
        if (check_permutation(&k, seen, e) < 0)
            return -1;
        if (!s)
            continue;
        if (s->rank) {
            err_set(e, ERR_INVALID, "%llu is there twice", (unsigned long long)k.seed);
            return numbers_fail(&k, "seed", e);
        }
        s->rank = k.value;
    }
    for (uint32_t i = 0; i < o->seeds && rc == 0; i++)
        if (!o->seed[i].rank) {
            err_set(e, ERR_INVALID, "no line for seed %llu, which has an order of arrival",
                    (unsigned long long)o->seed[i].seed);
            return numbers_fail(&k, "seed", e);
        }
    return rc;
}

/* ---- published results ---- */

static const struct csv_column result_columns[] = {
    { "metric", 0 },
    { "workload", 0 },
    { "policy", 0 },
    { "seed", 0 },
};
enum {
    RES_METRIC,
    RES_WORKLOAD,
    RES_POLICY,
    RES_SEED
};

struct results {
    const char *workload;
    uint32_t demand[OPENB_DEMANDS];
    size_t column[OPENB_DEMANDS];
    uint32_t n;
};

/* "a85" holds what was allocated when 85 percent had arrived. */
static int find_demands(const struct csv *c, struct results *r, struct err *e)
{
    for (size_t i = 0; i < c->fields; i++) {
        struct str name = csv_name(c, c->columns + i);
        uint64_t percent;
        struct err none;
        if (name.n < 2 || name.p[0] != 'a' ||
            parse_u64((struct str){ name.p + 1, name.n - 1 }, 1000, &percent, &none) < 0)
            continue;
        if (r->n == OPENB_DEMANDS) {
            csv_fail(c, c->columns + i, e, "more than %d columns of results", OPENB_DEMANDS);
            return err_hint(e, "leave some of them out");
        }
        r->column[r->n] = c->columns + i;
        r->demand[r->n++] = (uint32_t)percent;
    }
    return 0;
}

static int read_result(struct openb *o, const struct csv *c, void *ctx, struct err *e)
{
    const struct results *r = ctx;
    int64_t seed;
    if (csv_i64(c, RES_SEED, 0, INT64_MAX, &seed, e) < 0)
        return -1;
    if (!str_is(csv_text(c, RES_METRIC), "alloc_pct") ||
        !str_is(csv_text(c, RES_WORKLOAD), r->workload))
        return 0;
    struct openb_published p = { .seed = (uint64_t)seed, .n = r->n };
    for (uint32_t i = 0; i < r->n; i++) {
        p.demand[i] = r->demand[i];
        p.alloc[i] = (double)NAN;
        if (csv_text(c, r->column[i]).n && csv_f64(c, r->column[i], 0, 100, &p.alloc[i], e) < 0)
            return -1;
    }
    p.policy = copy(o, csv_text(c, RES_POLICY));
    o->published[o->publisheds++] = p;
    return 0;
}

static int read_results(struct openb *o, const struct csv_source *from, const char *workload,
                        struct err *e)
{
    const struct csv_table table = { result_columns, ARRAY_LEN(result_columns), RESULTS_MAX };
    struct results r = { .workload = workload };
    struct csv c;
    if (!from->file)
        return 0;
    if (csv_open(&c, from, &table, e) < 0 || find_demands(&c, &r, e) < 0)
        return -1;
    o->published = arena_array(&o->arena, struct openb_published, c.room);
    return each_row(&c, o, &r, read_result, e);
}

int openb_parse(const struct openb_sources *from, const char *workload, struct openb *out,
                struct err *e)
{
    AUTO(openb_free) struct openb o = { .arena.limit = ARENA_MAX };
    if (read_nodes(&o, &from->nodes, e) < 0 || read_pods(&o, &from->pods, e) < 0 ||
        read_orders(&o, &from->seq, e) < 0 || read_ranks(&o, &from->ranks, e) < 0 ||
        read_results(&o, &from->published, workload, e) < 0)
        return -1;
    *out = o;
    o = (struct openb){ 0 };
    return 0;
}

/* ---- files ---- */

/* It becomes a part of file names: no way out of the folder. */
static int check_workload(const char *w, struct err *e)
{
    size_t n = strspn(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (n > 0 && n <= 64 && w[n] == '\0')
        return 0;
    err_set(e, ERR_INVALID, "'%.60s' is not the name of a workload", w);
    return err_hint(e, "use letters, digits, '_' and '-', like: default");
}

int openb_read(const char *dir, const char *workload, struct openb *out, struct err *e)
{
    const struct csv_folder in = { dir, "openb" };
    AUTO(csv_file_free) struct csv_file nodes = { 0 };
    AUTO(csv_file_free) struct csv_file pods = { 0 };
    AUTO(csv_file_free) struct csv_file seq = { 0 };
    AUTO(csv_file_free) struct csv_file ranks = { 0 };
    AUTO(csv_file_free) struct csv_file published = { 0 };
    char pods_name[128], seq_name[128], ranks_name[128];
    if (check_workload(workload, e) < 0)
        return -1;
    snprintf(pods_name, sizeof pods_name, "openb_pod_list_%s.csv", workload);
    snprintf(seq_name, sizeof seq_name, "seq_%s.txt", workload);
    snprintf(ranks_name, sizeof ranks_name, "noderank_%s.txt", workload);
    if (csv_load(&in, "openb_node_list_gpu_node.csv", TEXT_MAX, &nodes, e) < 0 ||
        csv_load(&in, pods_name, TEXT_MAX, &pods, e) < 0 ||
        csv_load(&in, seq_name, TEXT_MAX, &seq, e) < 0 ||
        csv_load(&in, ranks_name, TEXT_MAX, &ranks, e) < 0)
        return -1;
    struct err missing = { 0 };
    if (csv_load(&in, "published_results.csv", TEXT_MAX, &published, &missing) < 0 &&
        missing.code != ERR_NOT_FOUND) {
        *e = missing;
        return -1;
    }
    const struct openb_sources from = {
        csv_file_source(&nodes), csv_file_source(&pods),      csv_file_source(&seq),
        csv_file_source(&ranks), csv_file_source(&published),
    };
    return openb_parse(&from, workload, out, e);
}
