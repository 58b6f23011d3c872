#include "node/gpu.h"

#include <stdio.h>
#include <strings.h>

#include "base/buf.h"

/* Words that every second card has: they tell nothing apart. */
static bool is_noise(struct str word)
{
    static const char *const words[] = {
        "NVIDIA", "Tesla", "GeForce", "Quadro", "Generation", "GPU",   "PCIe", "SXM",   "SXM2",
        "SXM3",   "SXM4",  "SXM5",    "SXM6",   "HBM2",       "HBM2e", "HBM3", "HBM3e", "Edition",
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (word.n == strlen(words[i]) && strncasecmp(word.p, words[i], word.n) == 0)
            return true;
    return false;
}

static bool word_is(struct str word, const char *z)
{
    return word.n == strlen(z) && strncasecmp(word.p, z, word.n) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_model_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_';
}

static bool next_word(struct str *rest, struct str *out)
{
    size_t from = 0, n = 0;
    while (from < rest->n && !is_model_char(rest->p[from]))
        from++;
    while (from + n < rest->n && is_model_char(rest->p[from + n]))
        n++;
    *out = (struct str){ rest->p + from, n };
    *rest = (struct str){ out->p + n, rest->n - from - n };
    return n > 0;
}

/* The next word that is no noise. */
static bool next_telling(struct str *rest, struct str *out)
{
    while (next_word(rest, out))
        if (!is_noise(*out))
            return true;
    return false;
}

const char *gpu_model(const char *name, char out[static 64])
{
    struct str rest = str_of(name), word, next;
    AUTO(buf_free) struct buf model = BUF(63);
    bool glue = true;
    for (bool more = next_telling(&rest, &word); more; word = next) {
        more = next_telling(&rest, &next);
        bool prefix = word_is(word, "RTX") || word_is(word, "GTX");
        bool before_a = prefix && more && next.n > 1 && next.p[0] == 'A' && is_digit(next.p[1]);
        if (before_a) /* "RTX A6000" is an A6000 */
            continue;
        if (!glue)
            buf_addc(&model, '-');
        buf_add(&model, word);
        glue = prefix && more && is_digit(next.p[0]); /* "RTX 4090" is an RTX4090 */
    }
    snprintf(out, 64, "%s", model.n ? model.p : "GPU");
    return out;
}

/* Gives all of group `from` the number `to`. */
static void merge_groups(struct gpu_list *l, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->gpu[i].link_group == from)
            l->gpu[i].link_group = to;
}

/* Numbers the groups from 0 in the order of the list. */
static void number_groups(struct gpu_list *l)
{
    uint8_t number[GPU_LIST_MAX], known = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t first = 0;
        while (l->gpu[first].link_group != l->gpu[i].link_group)
            first++;
        number[i] = first == i ? known++ : number[first];
    }
    for (uint32_t i = 0; i < l->n; i++)
        l->gpu[i].link_group = number[i];
}

/* How the two GPUs of each pair reach each other. */
struct links {
    struct nvml_link of[GPU_LIST_MAX][GPU_LIST_MAX];
    bool any_nvlink, numa_known;
};

static void read_links(struct nvml *n, const struct gpu_list *l, struct links *out)
{
    struct err ignored;
    *out = (struct links){ .numa_known = true };
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            struct nvml_link link = { NVML_UNKNOWN, NVML_UNKNOWN };
            if (nvml_link(n, l->gpu[i].index, l->gpu[j].index, &link, &ignored) < 0)
                link.same_numa = NVML_UNKNOWN;
            out->of[i][j] = link;
            out->any_nvlink |= link.nvlink == 1;
            out->numa_known &= link.same_numa != NVML_UNKNOWN;
        }
}

static void find_link_groups(struct nvml *n, struct gpu_list *l)
{
    struct links links;
    read_links(n, l, &links);
    for (uint32_t i = 0; i < l->n; i++)
        l->gpu[i].link_group = (uint8_t)i;
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct nvml_link *k = &links.of[i][j];
            bool linked =
                links.any_nvlink ? k->nvlink == 1 : !links.numa_known || k->same_numa == 1;
            if (linked)
                merge_groups(l, l->gpu[i].link_group, l->gpu[j].link_group);
        }
    number_groups(l);
}

static void add_device(struct gpu_list *l, const struct nvml_device *d)
{
    struct gpu_info *g = &l->gpu[l->n++];
    *g = (struct gpu_info){
        .index = d->index,
        .minor = d->minor,
        .mem_mib = d->mem_mib > 0 ? (uint32_t)MIN(d->mem_mib, (int64_t)UINT32_MAX) : 0,
        .mig = d->mig == 1,
    };
    memcpy(g->uuid, d->uuid, sizeof g->uuid);
    memcpy(g->name, d->name, sizeof g->name);
    memcpy(g->pci, d->pci, sizeof g->pci);
    gpu_model(g->name, g->model);
}

int gpu_list_read(struct nvml *n, struct gpu_list *out, struct err *e)
{
    struct gpu_list l = { 0 };
    uint32_t count;
    if (nvml_count(n, &count, e) < 0)
        return -1;
    if (count > GPU_LIST_MAX)
        return err_set(e, ERR_TOO_LARGE, "this machine has %u GPUs; at most %d can be used", count,
                       GPU_LIST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct nvml_device d;
        struct err why;
        if (nvml_device(n, i, &d, NULL, &why) == 0)
            add_device(&l, &d);
        else if (l.n_broken++ == 0)
            l.broken = why;
    }
    find_link_groups(n, &l);
    *out = l;
    return 0;
}

int gpu_list_simulate(const struct gpu_sim *want, const char *host, struct gpu_list *out,
                      struct err *e)
{
    struct gpu_list l = { .n = want->count };
    if (want->count > GPU_LIST_MAX) {
        err_set(e, ERR_INVALID, "%u simulated GPUs; at most %d are possible", want->count,
                GPU_LIST_MAX);
        return err_hint(e, "ask for 1 to %d", GPU_LIST_MAX);
    }
    uint64_t hash = str_hash(str_of(host));
    for (uint32_t i = 0; i < l.n; i++) {
        struct gpu_info *g = &l.gpu[i];
        *g = (struct gpu_info){ .index = i, .minor = -1, .mem_mib = want->mem_mib };
        g->simulated = true;
        g->link_group = want->link_size ? (uint8_t)(i / want->link_size) : 0;
        snprintf(g->uuid, sizeof g->uuid, "SIM-%08x-%04x-%u", (uint32_t)hash,
                 (uint32_t)(hash >> 32) & 0xffff, i);
        snprintf(g->name, sizeof g->name, "Simulated %s", want->model);
        gpu_model(want->model, g->model);
    }
    *out = l;
    return 0;
}
