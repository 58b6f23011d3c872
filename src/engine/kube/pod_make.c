#include "engine/kube/pod_make.h"

#include <stdio.h>

#include "base/json.h"
#include "core/device.h"
#include "engine/kube/pod_read.h"

#define GRACE_LEAST_MS INT64_C(1000)
#define INIT_CPU "10m"
#define INIT_MEM "16Mi"

const char *pod_name(struct task_id t, char out[static POD_NAME_MAX])
{
    snprintf(out, POD_NAME_MAX, "nightshift-%llu-%u-%u", (unsigned long long)t.job, t.run,
             t.replica);
    return out;
}

const char *pod_job_name(uint64_t job, char out[static POD_NAME_MAX])
{
    snprintf(out, POD_NAME_MAX, "nightshift-%llu", (unsigned long long)job);
    return out;
}

/* A name of the cluster's kind: what it may not have is left out, and the hash keeps two apart. */
const char *pod_home_name(struct str user, char out[static POD_NAME_MAX])
{
    char clean[32];
    size_t n = 0;
    for (size_t i = 0; i < user.n && n + 1 < sizeof clean; i++) {
        char c = user.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            clean[n++] = c;
    }
    clean[n] = '\0';
    snprintf(out, POD_NAME_MAX, "home-%s%s%08llx", clean, n ? "-" : "",
             (unsigned long long)(str_hash(user) & 0xffffffffu));
    return out;
}

/* ---- what cannot be ---- */

static bool starts_with(struct str s, const char *z)
{
    size_t n = strlen(z);
    return s.n >= n && memcmp(s.p, z, n) == 0;
}

int pod_check(const struct pod_site *site, const struct spec *s, struct err *e)
{
    if (s->observed.n)
        return 0;
    if (str_is(s->image, "host") && !site->image[0]) {
        err_set(e, ERR_INVALID, "field 'image': a job on Kubernetes needs a container image");
        err_about(e, "image");
        return err_hint(e, "e.g. image: python:3.11; or have a default set: kube_image");
    }
    if (s->n_volumes) {
        err_set(e, ERR_UNAVAILABLE,
                "field 'volumes': pods cannot use folders of the machines they run on");
        err_about(e, "volumes");
        return err_hint(e, "what it saves goes to $NIGHTSHIFT_STATE_DIR, which stays");
    }
    return 0;
}

bool pod_keeps_state(const struct pod_site *site, const struct spec *s)
{
    return site->state_size[0] && s->freeze == FREEZE_SIGNAL;
}

/* ---- pieces ---- */

static void put_z(struct json_out *w, const char *key, const char *value)
{
    json_put_str(w, key, str_of(value));
}

/* As kube_pod_task reads it: labels of a pod of ours, annotations of one that we only placed. */
static void put_task(struct json_out *w, struct task_id t)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)t.job);
    put_z(w, POD_LABEL_JOB, text);
    snprintf(text, sizeof text, "%u", t.run);
    put_z(w, "nightshift.dev/run", text);
    snprintf(text, sizeof text, "%u", t.replica);
    put_z(w, "nightshift.dev/replica", text);
}

static void put_metadata(struct json_out *w, const struct pod_site *site,
                         const struct engine_start *s, const char *space)
{
    char name[POD_NAME_MAX];
    AUTO(buf_free) struct buf spec = BUF(4 * SPEC_TEXT_MAX);
    struct json_out inner = { .b = &spec };
    json_begin(w, "metadata", '{');
    put_z(w, "name", pod_name(s->task, name));
    put_z(w, "namespace", space);
    json_begin(w, "labels", '{');
    put_z(w, "app.kubernetes.io/managed-by", "nightshift");
    put_task(w, s->task);
    json_end(w, '}');
    json_begin(w, "annotations", '{');
    json_put_str(w, "nightshift.dev/tenant", s->tenant);
    json_put_str(w, "nightshift.dev/user", s->user.name);
    if (site->daemon && site->daemon[0])
        put_z(w, "nightshift.dev/daemon", site->daemon);
    if (s->spec->name.n)
        json_put_str(w, "nightshift.dev/name", s->spec->name);
    if (s->task.replica == 0) {
        spec_write(s->spec, &inner, NULL);
        json_put_str(w, "nightshift.dev/spec", buf_str(&spec));
    }
    json_end(w, '}');
    json_begin(w, "finalizers", '[');
    put_z(w, NULL, POD_FINALIZER);
    json_end(w, ']');
    json_end(w, '}');
}

/* As "restricted" wants it of every container. */
static void put_restrictions(struct json_out *w)
{
    json_begin(w, "securityContext", '{');
    json_put_bool(w, "allowPrivilegeEscalation", false);
    json_begin(w, "capabilities", '{');
    json_begin(w, "drop", '[');
    put_z(w, NULL, "ALL");
    json_end(w, ']');
    json_end(w, '}');
    json_end(w, '}');
}

static void put_mount(struct json_out *w, const char *name, const char *path, bool read_only)
{
    json_begin(w, NULL, '{');
    put_z(w, "name", name);
    put_z(w, "mountPath", path);
    if (read_only)
        json_put_bool(w, "readOnly", true);
    json_end(w, '}');
}

/* A dollar before a parenthesis would be replaced by the kubelet. */
static void put_literal(struct json_out *w, const char *key, struct str value)
{
    AUTO(buf_free) struct buf text = BUF(2 * SPEC_TEXT_MAX);
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '$' && i + 1 < value.n && value.p[i + 1] == '(')
            buf_addc(&text, '$');
        buf_addc(&text, value.p[i]);
    }
    json_put_str(w, key, buf_str(&text));
}

static void put_env(struct json_out *w, const char *key, struct str value)
{
    json_begin(w, NULL, '{');
    put_z(w, "name", key);
    put_literal(w, "value", value);
    json_end(w, '}');
}

static bool is_key(const char *pair, const char *key)
{
    size_t n = strlen(key);
    return strncmp(pair, key, n) == 0 && pair[n] == '=';
}

static bool list_has(const char *const *list, const char *key)
{
    for (; list && *list; list++)
        if (is_key(*list, key))
            return true;
    return false;
}

static void put_pairs(struct json_out *w, const char *const *list, const char *but)
{
    char key[300];
    for (; list && *list; list++) {
        const char *eq = strchr(*list, '=');
        if (!eq || (size_t)(eq - *list) >= sizeof key || (but && is_key(*list, but)))
            continue;
        snprintf(key, sizeof key, "%.*s", (int)(eq - *list), *list);
        put_env(w, key, str_of(eq + 1));
    }
}

static struct str home_of(const struct engine_start *s, char *out, size_t n)
{
    snprintf(out, n, "/home/%.*s", STR_ARG(s->user.name));
    return str_of(out);
}

static void put_environment(struct json_out *w, const struct engine_start *s, const char *space)
{
    const char *const *own = s->spec->env;
    char text[512], job[POD_NAME_MAX];
    bool gang = s->n_slots > 1 && !list_has(own, "MASTER_ADDR");
    json_begin(w, "env", '[');
    put_pairs(w, s->env, s->n_slots > 1 ? "MASTER_ADDR" : NULL);
    put_pairs(w, own, NULL);
    if (gang) {
        struct task_id first = { s->task.job, s->task.run, 0 };
        char pod[POD_NAME_MAX];
        snprintf(text, sizeof text, "%s.%s.%s.svc", pod_name(first, pod),
                 pod_job_name(s->task.job, job), space);
        put_env(w, "MASTER_ADDR", str_of(text));
    }
    if (!list_has(own, "HOME"))
        put_env(w, "HOME", home_of(s, text, sizeof text));
    if (!list_has(own, "USER"))
        put_env(w, "USER", s->user.name);
    put_env(w, "NIGHTSHIFT_STATE_DIR", STR(POD_STATE_DIR));
    json_end(w, ']');
}

static void put_amounts(struct json_out *w, const struct pod_site *site, const struct spec *s,
                        const char *key)
{
    const struct request *r = &s->request;
    struct str devices = s->devices;
    char text[32], name[NAME_MAX_BYTES + 1];
    json_begin(w, key, '{');
    snprintf(text, sizeof text, "%um", r->cpu_milli);
    put_z(w, "cpu", text);
    snprintf(text, sizeof text, "%uMi", r->mem_mib);
    put_z(w, "memory", text);
    if (r->gpus) {
        snprintf(text, sizeof text, "%u", r->gpus);
        put_z(w, site->gpu, text);
    }
    for (struct device d; devices_next(&devices, &d);) {
        snprintf(name, sizeof name, "%.*s", STR_ARG(d.name));
        snprintf(text, sizeof text, "%u", d.n);
        put_z(w, name, text);
    }
    json_end(w, '}');
}

/* What the image is called where pods are made: "docker://" is ours. */
static struct str image_of(const struct pod_site *site, const struct spec *s)
{
    struct str image = s->image;
    if (str_is(image, "host"))
        return str_of(site->image);
    if (starts_with(image, "docker://"))
        image = (struct str){ image.p + 9, image.n - 9 };
    return image;
}

static void put_command(struct json_out *w, const struct spec *s)
{
    char number[16];
    json_begin(w, "command", '[');
    put_z(w, NULL, POD_INIT);
    put_z(w, NULL, "--pod");
    put_z(w, NULL, POD_TASK_DIR);
    if (s->tty)
        put_z(w, NULL, "--tty");
    if (s->has_stdin)
        put_z(w, NULL, "--stdin");
    if (s->freeze == FREEZE_SIGNAL) {
        snprintf(number, sizeof number, "%d", s->freeze_signal);
        put_z(w, NULL, "--freeze-signal");
        put_z(w, NULL, number);
    }
    put_z(w, NULL, "--");
    json_end(w, ']');
    json_begin(w, "args", '[');
    for (uint32_t i = 0; i < s->n_args; i++)
        put_literal(w, NULL, str_of(s->argv[i]));
    json_end(w, ']');
}

static void put_job_container(struct json_out *w, const struct pod_site *site,
                              const struct engine_start *s, const char *space)
{
    char home[512];
    json_begin(w, NULL, '{');
    put_z(w, "name", POD_CONTAINER);
    json_put_str(w, "image", image_of(site, s->spec));
    put_z(w, "imagePullPolicy", "IfNotPresent");
    put_command(w, s->spec);
    home_of(s, home, sizeof home);
    json_put_str(w, "workingDir", s->spec->workdir.n ? s->spec->workdir : str_of(home));
    put_environment(w, s, space);
    json_begin(w, "resources", '{');
    put_amounts(w, site, s->spec, "requests");
    put_amounts(w, site, s->spec, "limits");
    json_end(w, '}');
    put_restrictions(w);
    json_begin(w, "volumeMounts", '[');
    put_mount(w, "nightshift", POD_DIR, false);
    put_mount(w, "state", POD_STATE_DIR, false);
    put_mount(w, "tmp", "/tmp", false);
    put_mount(w, "home", home, false);
    json_end(w, ']');
    json_end(w, '}');
}

static void put_init_container(struct json_out *w, const struct pod_site *site)
{
    json_begin(w, NULL, '{');
    put_z(w, "name", "nightshift");
    put_z(w, "image", site->init_image);
    put_z(w, "imagePullPolicy", "IfNotPresent");
    json_begin(w, "command", '[');
    put_z(w, NULL, site->init_path);
    put_z(w, NULL, "--install");
    put_z(w, NULL, POD_INIT);
    json_end(w, ']');
    json_begin(w, "resources", '{');
    json_begin(w, "requests", '{');
    put_z(w, "cpu", INIT_CPU);
    put_z(w, "memory", INIT_MEM);
    json_end(w, '}');
    json_begin(w, "limits", '{');
    put_z(w, "memory", INIT_MEM);
    json_end(w, '}');
    json_end(w, '}');
    put_restrictions(w);
    json_begin(w, "volumeMounts", '[');
    put_mount(w, "nightshift", POD_DIR, false);
    json_end(w, ']');
    json_end(w, '}');
}

static void put_empty_dir(struct json_out *w, const char *name, uint32_t mib)
{
    char text[32];
    json_begin(w, NULL, '{');
    put_z(w, "name", name);
    json_begin(w, "emptyDir", '{');
    if (mib) {
        snprintf(text, sizeof text, "%uMi", mib);
        put_z(w, "sizeLimit", text);
    }
    json_end(w, '}');
    json_end(w, '}');
}

static void put_claim(struct json_out *w, const char *name, const char *claim)
{
    json_begin(w, NULL, '{');
    put_z(w, "name", name);
    json_begin(w, "persistentVolumeClaim", '{');
    put_z(w, "claimName", claim);
    json_end(w, '}');
    json_end(w, '}');
}

static void put_volumes(struct json_out *w, const struct pod_site *site,
                        const struct engine_start *s)
{
    char name[POD_NAME_MAX];
    uint32_t scratch = s->spec->scratch_mib ? s->spec->scratch_mib : site->scratch_mib;
    json_begin(w, "volumes", '[');
    put_empty_dir(w, "nightshift", 0);
    put_empty_dir(w, "tmp", scratch);
    if (pod_keeps_state(site, s->spec))
        put_claim(w, "state", pod_job_name(s->task.job, name));
    else
        put_empty_dir(w, "state", scratch);
    if (site->home_size[0])
        put_claim(w, "home", pod_home_name(s->user.name, name));
    else
        put_empty_dir(w, "home", scratch);
    json_end(w, ']');
}

static void put_user(struct json_out *w, const struct engine_user *u)
{
    json_begin(w, "securityContext", '{');
    json_put_bool(w, "runAsNonRoot", true);
    json_put_u64(w, "runAsUser", u->uid);
    json_put_u64(w, "runAsGroup", u->gid);
    json_put_u64(w, "fsGroup", u->gid);
    json_begin(w, "supplementalGroups", '[');
    for (uint32_t i = 0; i < u->n_groups; i++)
        if (u->groups[i])
            json_put_u64(w, NULL, u->groups[i]);
    json_end(w, ']');
    json_begin(w, "seccompProfile", '{');
    put_z(w, "type", "RuntimeDefault");
    json_end(w, '}');
    json_end(w, '}');
}

/* Machines with GPUs are often tainted with their name, to keep others away. */
static void put_tolerations(struct json_out *w, const struct pod_site *site)
{
    json_begin(w, "tolerations", '[');
    json_begin(w, NULL, '{');
    put_z(w, "key", site->gpu);
    put_z(w, "operator", "Exists");
    put_z(w, "effect", "NoSchedule");
    json_end(w, '}');
    json_end(w, ']');
}

static uint64_t seconds_up(int64_t ms)
{
    return (uint64_t)((MAX(ms, GRACE_LEAST_MS) + 999) / 1000);
}

void pod_make(const struct pod_site *site, const struct engine_start *s, const char *space,
              struct buf *out)
{
    struct json_out w = { .b = out };
    char name[POD_NAME_MAX];
    json_begin(&w, NULL, '{');
    put_z(&w, "apiVersion", "v1");
    put_z(&w, "kind", "Pod");
    put_metadata(&w, site, s, space);
    json_begin(&w, "spec", '{');
    put_z(&w, "schedulerName", site->scheduler);
    put_z(&w, "restartPolicy", "Never");
    put_z(&w, "serviceAccountName", "nightshift-job");
    json_put_bool(&w, "automountServiceAccountToken", false);
    json_put_bool(&w, "enableServiceLinks", false);
    json_put_u64(&w, "terminationGracePeriodSeconds", seconds_up(s->spec->grace_ms));
    if (s->max_time_ms)
        json_put_u64(&w, "activeDeadlineSeconds", seconds_up(s->max_time_ms));
    if (s->n_slots > 1) {
        put_z(&w, "hostname", pod_name(s->task, name));
        put_z(&w, "subdomain", pod_job_name(s->task.job, name));
    }
    put_user(&w, &s->user);
    put_tolerations(&w, site);
    json_begin(&w, "initContainers", '[');
    put_init_container(&w, site);
    json_end(&w, ']');
    json_begin(&w, "containers", '[');
    put_job_container(&w, site, s, space);
    json_end(&w, ']');
    put_volumes(&w, site, s);
    json_end(&w, '}');
    json_end(&w, '}');
}

/* ---- the rest ---- */

void pod_make_binding(const struct pod_binding *b, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    put_z(&w, "apiVersion", "v1");
    put_z(&w, "kind", "Binding");
    json_begin(&w, "metadata", '{');
    put_z(&w, "name", b->pod);
    put_z(&w, "namespace", b->space);
    if (b->uid[0])
        put_z(&w, "uid", b->uid);
    json_begin(&w, "annotations", '{');
    put_task(&w, b->task);
    json_end(&w, '}');
    json_end(&w, '}');
    json_begin(&w, "target", '{');
    put_z(&w, "apiVersion", "v1");
    put_z(&w, "kind", "Node");
    json_put_str(&w, "name", b->node);
    json_end(&w, '}');
    json_end(&w, '}');
}

void pod_make_service(uint64_t job, const char *space, struct buf *out)
{
    struct json_out w = { .b = out };
    char name[POD_NAME_MAX], number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)job);
    json_begin(&w, NULL, '{');
    put_z(&w, "apiVersion", "v1");
    put_z(&w, "kind", "Service");
    json_begin(&w, "metadata", '{');
    put_z(&w, "name", pod_job_name(job, name));
    put_z(&w, "namespace", space);
    json_begin(&w, "labels", '{');
    put_z(&w, "app.kubernetes.io/managed-by", "nightshift");
    put_z(&w, POD_LABEL_JOB, number);
    json_end(&w, '}');
    json_end(&w, '}');
    json_begin(&w, "spec", '{');
    put_z(&w, "clusterIP", "None");
    /* The others look for the first before any of them is ready. */
    json_put_bool(&w, "publishNotReadyAddresses", true);
    json_begin(&w, "selector", '{');
    put_z(&w, POD_LABEL_JOB, number);
    json_end(&w, '}');
    json_end(&w, '}');
    json_end(&w, '}');
}

void pod_make_claim(const struct pod_claim *c, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    put_z(&w, "apiVersion", "v1");
    put_z(&w, "kind", "PersistentVolumeClaim");
    json_begin(&w, "metadata", '{');
    put_z(&w, "name", c->name);
    put_z(&w, "namespace", c->space);
    json_begin(&w, "labels", '{');
    put_z(&w, "app.kubernetes.io/managed-by", "nightshift");
    json_end(&w, '}');
    json_end(&w, '}');
    json_begin(&w, "spec", '{');
    json_begin(&w, "accessModes", '[');
    put_z(&w, NULL, c->access);
    json_end(&w, ']');
    if (c->storage_class[0])
        put_z(&w, "storageClassName", c->storage_class);
    json_begin(&w, "resources", '{');
    json_begin(&w, "requests", '{');
    put_z(&w, "storage", c->size);
    json_end(&w, '}');
    json_end(&w, '}');
    json_end(&w, '}');
    json_end(&w, '}');
}
