#include "node/pods.h"

#include <dirent.h>
#include <stdio.h>

#include "base/parse.h"
#include "node/kubelet.h"
#include "sys/file.h"
#include "wire/podres.h"

#define ASK_NS (INT64_C(5) * 1000000000)    /* between questions */
#define ALLOCATABLE_EVERY 12u               /* of them: what there is changes rarely */
#define AGAIN_NS (INT64_C(30) * 1000000000) /* after one without an answer */
#define KUBELET_WAIT_MS 2000
#define FILE_LIMIT (256u << 10)

struct given {
    char device[128], pod[REPORT_WHO_MAX], task[40];
};

struct pods {
    struct pods_places at;
    int64_t due_ns;
    bool here; /* the kubelet answered last time */
    struct given *given;
    size_t givens;
    uint32_t asked;
    int64_t value[REPORT_KUBELET_COUNT];
};

struct pods *pods_new(const struct pods_places *at)
{
    struct pods *p = xcalloc(1, sizeof *p);
    p->at = *at;
    p->due_ns = INT64_MIN;
    p->given = xcalloc(REPORT_GIVEN_MAX, sizeof *p->given);
    return p;
}

struct pods *pods_free(struct pods *p)
{
    if (!p)
        return NULL;
    free(p->given);
    free(p);
    return NULL;
}

/* ---- names ---- */

bool pods_task(struct str pod, char out[static 40])
{
    struct str head, part;
    uint64_t v[3];
    struct err ignored;
    if (!str_cut(pod, '-', &head, &pod) || !str_is(head, "nightshift"))
        return false;
    for (int i = 0; i < 3; i++) {
        bool more = str_cut(pod, '-', &part, &pod);
        if (more != (i < 2) || part.n == 0 || (part.n > 1 && part.p[0] == '0') ||
            parse_u64(part, i ? UINT32_MAX : UINT64_MAX, &v[i], &ignored) < 0)
            return false;
    }
    snprintf(out, 40, "%llu.%u.%u", (unsigned long long)v[0], (unsigned)v[1], (unsigned)v[2]);
    return strlen(out) < 40;
}

static bool starts_with(struct str s, struct str with)
{
    return s.n >= with.n && (with.n == 0 || memcmp(s.p, with.p, with.n) == 0);
}

/* Fills what it is called; task is empty for a pod of others. */
static bool name_it(const struct pods *p, const struct podres_device *d,
                    char pod[static REPORT_WHO_MAX], char task[static 40])
{
    task[0] = '\0';
    int n = snprintf(pod, REPORT_WHO_MAX, "%.*s/%.*s/%.*s", STR_ARG(d->space), STR_ARG(d->pod),
                     STR_ARG(d->container));
    if (n < 0 || (size_t)n >= REPORT_WHO_MAX)
        return false;
    if (str_is(d->container, "job") && starts_with(d->space, str_of(p->at.prefix)) &&
        !pods_task(d->pod, task))
        task[0] = '\0';
    return true;
}

/* ---- what the kubelet says ---- */

static void keep_device(void *ctx, const struct podres_device *d)
{
    struct pods *p = ctx;
    if (p->givens == REPORT_GIVEN_MAX)
        return;
    struct given *g = &p->given[p->givens];
    if (!name_it(p, d, g->pod, g->task))
        return;
    snprintf(g->device, sizeof g->device, "%.*s", STR_ARG(d->id));
    p->givens++;
}

static void pass_over(void *ctx, const struct podres_device *d)
{
    (void)ctx;
    (void)d;
}

static int ask(struct pods *p, struct err *e)
{
    AUTO(buf_free) struct buf list = BUF(PODRES_BYTES_MAX), all = BUF(PODRES_BYTES_MAX);
    struct podres_counts given, there;
    struct err ignored;
    if (kubelet_ask(p->at.socket, KUBELET_LIST, KUBELET_WAIT_MS, &list, e) < 0)
        return -1;
    p->givens = 0;
    if (podres_list(buf_str(&list), keep_device, p, &given, e) < 0)
        return -1;
    p->value[REPORT_KUBELET_PODS] = (int64_t)given.pods;
    p->value[REPORT_KUBELET_CONTAINERS] = (int64_t)given.containers;
    p->value[REPORT_KUBELET_GIVEN] = (int64_t)given.devices;
    if (p->asked++ % ALLOCATABLE_EVERY && p->here)
        return 0;
    p->value[REPORT_KUBELET_DEVICES] = REPORT_UNKNOWN; /* kubelets before 1.28 may not say */
    if (kubelet_ask(p->at.socket, KUBELET_ALLOCATABLE, KUBELET_WAIT_MS, &all, &ignored) == 0 &&
        podres_allocatable(buf_str(&all), pass_over, NULL, &there, &ignored) == 0)
        p->value[REPORT_KUBELET_DEVICES] = (int64_t)there.devices;
    return 0;
}

void pods_refresh(struct pods *p, int64_t mono_ns)
{
    struct err e = { 0 };
    if (!p->at.socket || !p->at.socket[0] || mono_ns < p->due_ns)
        return;
    p->here = ask(p, &e) == 0;
    if (!p->here)
        p->givens = 0;
    bool away = !p->here && e.code != ERR_NOT_FOUND; /* the socket costs nothing to look for */
    p->due_ns = mono_ns + (away ? AGAIN_NS : ASK_NS);
}

/* "GPU-…", with "::3" behind it where a plugin shares one; "MIG-GPU-…/1/0" of old drivers has the GPU in it. */
static bool is_of_gpu(const char *device, const char *uuid)
{
    size_t n = strlen(uuid);
    if (strncmp(device, "MIG-GPU-", 8) == 0)
        return strncmp(device + 4, uuid, n) == 0 && device[4 + n] == '/';
    return strncmp(device, uuid, n) == 0 && (!device[n] || strncmp(device + n, "::", 2) == 0);
}

static bool place_of(const struct report_head *h, struct nvml *n, const char *device, uint32_t *out)
{
    char mig[128], uuid[96];
    snprintf(mig, sizeof mig, "%s", device);
    char *shared = strstr(mig, "::");
    if (shared)
        *shared = '\0';
    bool part = strncmp(mig, "MIG-", 4) == 0 && n && nvml_mig_parent(n, mig, uuid);
    for (uint32_t i = 0; i < h->gpus; i++)
        if (part ? strcmp(uuid, h->gpu[i].uuid) == 0 : is_of_gpu(device, h->gpu[i].uuid)) {
            *out = i;
            return true;
        }
    return false;
}

void pods_add_given(struct pods *p, const struct report_head *h, struct nvml *n,
                    struct report_sample *out)
{
    for (size_t i = 0; i < REPORT_KUBELET_COUNT; i++)
        out->kubelet[i] = p->here ? p->value[i] : REPORT_UNKNOWN;
    out->givens = 0;
    for (size_t i = 0; i < p->givens; i++) {
        struct report_given *g = &out->given[out->givens];
        if (!place_of(h, n, p->given[i].device, &g->gpu))
            continue;
        memcpy(g->device, p->given[i].device, sizeof g->device);
        memcpy(g->task, p->given[i].task, sizeof g->task);
        memcpy(g->pod, p->given[i].pod, sizeof g->pod);
        out->givens++;
    }
}

/* ---- whose a process is ---- */

static bool all_of(struct str s, const char *bytes)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(bytes, s.p[i]) || !s.p[i])
            return false;
    return s.n > 0;
}

static struct str without_end(struct str s, const char *end)
{
    size_t n = strlen(end);
    return s.n > n && memcmp(s.p + s.n - n, end, n) == 0 ? (struct str){ s.p, s.n - n } : s;
}

/* What is behind the last of a byte; all of it when there is none. */
static struct str behind_last(struct str s, char c)
{
    const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;
    return at ? (struct str){ at + 1, s.n - (size_t)(at + 1 - s.p) } : s;
}

/* "pod<uid>", or "kubepods-burstable-pod<uid>.slice" with '_' for '-'. */
static bool pod_part(struct str part, char uid[static 40])
{
    part = without_end(part, ".slice");
    for (size_t i = part.n; i-- > 0;) {
        struct str at = { part.p + i, part.n - i };
        if (at.n < 3 + 32 || at.n > 3 + 36 || memcmp(at.p, "pod", 3) != 0)
            continue;
        if (i > 0 && part.p[i - 1] != '-')
            return false;
        at = (struct str){ at.p + 3, at.n - 3 };
        if (!all_of(at, "0123456789abcdef-_"))
            return false;
        for (size_t k = 0; k < at.n; k++)
            uid[k] = at.p[k] == '_' ? '-' : at.p[k];
        uid[at.n] = '\0';
        return true;
    }
    return false;
}

/* "<number>", "cri-containerd-<number>.scope", "crio-<number>.scope" */
static bool container_part(struct str part, char container[static 72])
{
    part = behind_last(without_end(part, ".scope"), '-');
    if (part.n < 32 || part.n > 64 || !all_of(part, "0123456789abcdef"))
        return false;
    snprintf(container, 72, "%.*s", STR_ARG(part));
    return true;
}

bool pods_cgroup(struct str path, char out_uid[static 40], char out_container[static 72])
{
    bool in_pods = false, in_pod = false, more = true;
    struct str part;
    while (more) {
        /* ':' as in kubepods-pod<uid>.slice:cri-containerd:<number>, of runtimes set up for the other driver */
        const char *slash = path.n ? memchr(path.p, '/', path.n) : NULL;
        const char *colon = path.n ? memchr(path.p, ':', path.n) : NULL;
        more = str_cut(path, colon && (!slash || colon < slash) ? ':' : '/', &part, &path);
        if (in_pod && container_part(part, out_container))
            return true;
        in_pods |= part.n >= 8 && memmem(part.p, part.n, "kubepods", 8);
        in_pod |= in_pods && pod_part(part, out_uid);
    }
    return false;
}

/* "web-1_default_nginx-<number>.log" */
static bool read_log_name(struct str name, const char *container, struct podres_device *out)
{
    struct str rest, number;
    name = without_end(name, ".log");
    number = behind_last(name, '-');
    if (!str_is(number, container) || number.n + 1 >= name.n)
        return false;
    name.n -= number.n + 1;
    return str_cut(name, '_', &out->pod, &rest) &&
           str_cut(rest, '_', &out->space, &out->container) && out->pod.n &&
           out->pod.n <= PODRES_NAME_MAX && out->space.n && out->space.n <= 63 &&
           out->container.n && out->container.n <= 63 &&
           !memchr(out->container.p, '_', out->container.n);
}

static bool find_name(const struct pods *p, const char *container, char out[static REPORT_WHO_MAX])
{
    struct podres_device d;
    char pod[REPORT_WHO_MAX], task[40];
    bool found = false;
    DIR *dir = opendir(p->at.logs);
    for (struct dirent *at; dir && !found && (at = readdir(dir));)
        found = read_log_name(str_of(at->d_name), container, &d) && name_it(p, &d, pod, task);
    if (found)
        snprintf(out, REPORT_WHO_MAX, "%s", task[0] ? task : pod);
    if (dir)
        closedir(dir);
    return found;
}

enum pods_found pods_of_process(struct pods *p, int32_t pid, char out[static REPORT_WHO_MAX])
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, line, number, list, path;
    char name[320], uid[40], container[72];
    struct err ignored;
    out[0] = '\0';
    snprintf(name, sizeof name, "%s/%d/cgroup", p->at.proc, pid);
    if (!p->here || file_read(name, FILE_LIMIT, &text, &ignored) < 0)
        return PODS_NONE;
    for (rest = buf_str(&text); str_next_line(&rest, &line);)
        if (str_cut(line, ':', &number, &list) && str_cut(list, ':', &list, &path) &&
            pods_cgroup(path, uid, container))
            return find_name(p, container, out) ? PODS_FOUND : PODS_UNKNOWN;
    return PODS_NONE;
}
