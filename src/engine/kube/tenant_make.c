#include "engine/kube/tenant_make.h"

#include <sodium.h>
#include <stdio.h>

#define BODY_MAX (1u << 20) /* etcd keeps no object larger than 1.5 MiB */
#define HASH_BYTES 15       /* 24 letters */
#define HASH_TEXT 24
#define CUT "--z" /* z is no hex digit: what is cut never reads like what is not */
#define TENANT_LABEL "nightshift.dev/tenant"
#define TENANT_NOTE "nightshift.dev/tenant-name"
#define APPLY "?fieldManager=nightshift&force=true"

/* One object while it is written. */
struct maker {
    const struct tenant_site *site;
    const struct engine_tenant *tenant;
    struct arena *arena;
    char ns[KUBE_NAME];
    struct buf text;
    struct json_out w;
    struct tenant_object *out;
    size_t n;
};

/* ---- names ---- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* What the byte at i becomes.  A hyphen stays where it cannot be taken for part of "--". */
static size_t put_byte(struct str s, size_t i, char out[static 5])
{
    bool inside = i > 0 && i + 1 < s.n && s.p[i - 1] != '-' && is_plain(s.p[i + 1]);
    if (is_plain(s.p[i]) || (s.p[i] == '-' && inside)) {
        out[0] = s.p[i];
        out[1] = '\0';
        return 1;
    }
    return (size_t)snprintf(out, 5, "--%02x", (unsigned)(unsigned char)s.p[i]);
}

/* Writes whole bytes' worth of text up to `max`; false when not all of it fitted. */
static bool put_text(struct str s, size_t max, char *out)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < s.n; i++) {
        char one[5];
        size_t len = put_byte(s, i, one);
        if (n + len > max)
            return false;
        memcpy(out + n, one, len + 1);
        n += len;
    }
    return true;
}

static void put_hash(struct str s, char out[static HASH_TEXT + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char h[HASH_BYTES];
    crypto_generichash(h, sizeof h, (const unsigned char *)s.p, s.n, NULL, 0);
    for (size_t i = 0; i < HASH_TEXT; i++) {
        unsigned v = 0;
        for (size_t bit = i * 5; bit < i * 5 + 5; bit++)
            v = v << 1 | (h[bit / 8] >> (7 - bit % 8) & 1u);
        out[i] = letters[v];
    }
    out[HASH_TEXT] = '\0';
}

static void put_cut(struct str prefix, struct str text, char out[static KUBE_NAME])
{
    char hash[HASH_TEXT + 1];
    size_t n = prefix.n, most = KUBE_NAME - 1 - n - (sizeof CUT - 1) - HASH_TEXT;
    memcpy(out, prefix.p, n);
    put_text(text, most, out + n);
    n += strlen(out + n);
    while (n > prefix.n && out[n - 1] == '-') /* "---z" would read as an escape and a rest */
        n--;
    put_hash(text, hash);
    snprintf(out + n, KUBE_NAME - n, CUT "%s", hash);
}

void kube_name(struct str prefix, struct str text, char out[static KUBE_NAME])
{
    memcpy(out, prefix.p, prefix.n);
    if (!text.n || !put_text(text, KUBE_NAME - 1 - prefix.n, out + prefix.n))
        put_cut(prefix, text, out);
}

void tenant_namespace(const struct tenant_site *site, struct str tenant, char out[static KUBE_NAME])
{
    kube_name(site->prefix, tenant, out);
    if (str_is(site->own, out))
        put_cut(site->prefix, tenant, out);
}

/* As a label's value: with what cannot stand there escaped, so that it can be asked for. */
static void tenant_label(const struct maker *m, char out[static KUBE_NAME])
{
    const char *own = m->ns + m->site->prefix.n;
    /* A value begins with a letter or digit; three hyphens are in no name that does. */
    snprintf(out, KUBE_NAME, "%s%s", own[0] == '-' ? "x-" : "", own);
}

int tenant_site_check(const struct tenant_site *site, struct err *e)
{
    struct str p = site->prefix;
    bool good = p.n >= 2 && p.n <= KUBE_PREFIX_MAX && p.p[0] != '-';
    for (size_t i = 0; i < p.n; i++)
        good &= is_plain(p.p[i]) || (p.p[i] == '-' && (i == 0 || p.p[i - 1] != '-'));
    if (!good) {
        err_set(e, ERR_INVALID, "'%.*s' cannot begin the names of namespaces", STR_ARG(p));
        return err_hint(e, "2 to %d of a-z, 0-9 and single hyphens, e.g. nightshift-",
                        KUBE_PREFIX_MAX);
    }
    if (p.n >= 5 && memcmp(p.p, "kube-", 5) == 0)
        return err_set(e, ERR_INVALID, "namespaces that begin with kube- are the cluster's own");
    return 0;
}

bool tenant_has_namespace(const struct json *ns, struct str tenant)
{
    const struct json *meta = json_find(ns, "metadata");
    const struct json *notes = meta ? json_find(meta, "annotations") : NULL;
    struct str name = { "", 0 };
    struct err e;
    return notes && json_get_str(notes, TENANT_NOTE, NAME_MAX_BYTES, &name, &e) == 0 &&
           name.n > 0 && str_eq(name, tenant);
}

/* ---- objects ---- */

static const char *object_path(const struct maker *m, const char *base, const char *kinds,
                               const char *name, const char *query)
{
    return arena_printf(m->arena, "%s/namespaces/%s/%s/%s%s", base, m->ns, kinds, name, query);
}

static void open_object(struct maker *m, const char *version, const char *kind, const char *name)
{
    buf_truncate(&m->text, 0);
    m->w = (struct json_out){ .b = &m->text };
    json_begin(&m->w, NULL, '{');
    json_put_str(&m->w, "apiVersion", str_of(version));
    json_put_str(&m->w, "kind", str_of(kind));
    json_begin(&m->w, "metadata", '{');
    json_put_str(&m->w, "name", str_of(name));
}

static void put_managed(struct maker *m)
{
    char label[KUBE_NAME];
    tenant_label(m, label);
    json_put_str(&m->w, "app.kubernetes.io/managed-by", STR("nightshift"));
    json_put_str(&m->w, TENANT_LABEL, str_of(label));
}

/* The metadata of what stands in the namespace, closed. */
static void close_metadata(struct maker *m)
{
    json_put_str(&m->w, "namespace", str_of(m->ns));
    json_begin(&m->w, "labels", '{');
    put_managed(m);
    json_end(&m->w, '}');
    json_end(&m->w, '}');
}

static int close_object(struct maker *m, const char *path, struct err *e)
{
    json_end(&m->w, '}');
    if (buf_check(&m->text, e) < 0)
        return err_wrap(e, "tenant '%.*s' on Kubernetes", STR_ARG(m->tenant->name));
    const char *body = arena_strndup(m->arena, m->text.p, m->text.n);
    m->out[m->n++] = (struct tenant_object){ "PATCH", path, { body, m->text.n } };
    return 0;
}

static int make_namespace(struct maker *m, struct err *e)
{
    open_object(m, "v1", "Namespace", m->ns);
    json_begin(&m->w, "labels", '{');
    put_managed(m);
    json_put_str(&m->w, "pod-security.kubernetes.io/enforce", STR("restricted"));
    json_put_str(&m->w, "pod-security.kubernetes.io/warn", STR("restricted"));
    if (m->tenant->removed)
        json_put_str(&m->w, "nightshift.dev/removed", STR("true"));
    json_end(&m->w, '}');
    json_begin(&m->w, "annotations", '{');
    json_put_str(&m->w, TENANT_NOTE, m->tenant->name);
    json_end(&m->w, '}');
    json_end(&m->w, '}');
    return close_object(m, arena_printf(m->arena, "/api/v1/namespaces/%s" APPLY, m->ns), e);
}

static void put_hard(struct maker *m, const char *key, uint64_t amount, const char *unit)
{
    char text[48];
    snprintf(text, sizeof text, "%llu%s", (unsigned long long)amount, unit);
    json_put_str(&m->w, key, str_of(text));
}

/* The outer bound, which holds for pods of whoever; what may be borrowed within is the scheduler's. */
static int make_quota(struct maker *m, struct err *e)
{
    const uint64_t *of = m->tenant->limit.of;
    open_object(m, "v1", "ResourceQuota", "nightshift");
    close_metadata(m);
    json_begin(&m->w, "spec", '{');
    json_begin(&m->w, "hard", '{');
    if (m->tenant->removed)
        put_hard(m, "pods", 0, "");
    if (of[RES_GPU] != NO_LIMIT) /* whole ones: a share is a pod of its own kind */
        put_hard(m, arena_printf(m->arena, "requests.%.*s", STR_ARG(m->site->gpu)),
                 of[RES_GPU] / GPU_MILLI + (of[RES_GPU] % GPU_MILLI != 0), "");
    if (of[RES_CPU] != NO_LIMIT)
        put_hard(m, "requests.cpu", of[RES_CPU], "m");
    if (of[RES_MEM] != NO_LIMIT)
        put_hard(m, "requests.memory", of[RES_MEM], "Mi");
    if (of[RES_STORAGE] != NO_LIMIT)
        put_hard(m, "requests.ephemeral-storage", of[RES_STORAGE], "Mi");
    json_end(&m->w, '}');
    json_end(&m->w, '}');
    return close_object(m, object_path(m, "/api/v1", "resourcequotas", "nightshift", APPLY), e);
}

/* A quota refuses pods that do not say what they need.  Requests alone: a default limit would refuse
 * those that ask for more than it. */
static int make_limits(struct maker *m, struct err *e)
{
    open_object(m, "v1", "LimitRange", "nightshift");
    close_metadata(m);
    json_begin(&m->w, "spec", '{');
    json_begin(&m->w, "limits", '[');
    json_begin(&m->w, NULL, '{');
    json_put_str(&m->w, "type", STR("Container"));
    json_begin(&m->w, "defaultRequest", '{');
    json_put_str(&m->w, "cpu", STR("500m"));
    json_put_str(&m->w, "memory", STR("1Gi"));
    if (m->tenant->limit.of[RES_STORAGE] != NO_LIMIT)
        json_put_str(&m->w, "ephemeral-storage", STR("1Gi"));
    json_end(&m->w, '}');
    json_end(&m->w, '}');
    json_end(&m->w, ']');
    json_end(&m->w, '}');
    return close_object(m, object_path(m, "/api/v1", "limitranges", "nightshift", APPLY), e);
}

static int make_account(struct maker *m, struct err *e)
{
    open_object(m, "v1", "ServiceAccount", TENANT_JOB_ACCOUNT);
    close_metadata(m);
    json_put_bool(&m->w, "automountServiceAccountToken", false);
    return close_object(m, object_path(m, "/api/v1", "serviceaccounts", TENANT_JOB_ACCOUNT, APPLY),
                        e);
}

/* ---- who may ---- */

/* Nobody who signs in is called so; the cluster's own parts are. */
static bool is_clusters(struct str name)
{
    return name.n >= 7 && memcmp(name.p, "system:", 7) == 0;
}

static bool has_role(const struct engine_tenant *t, size_t i, enum engine_member_role role)
{
    return !t->removed && t->member[i].role == role && t->member[i].name.n > 0;
}

static void put_subjects(struct maker *m, enum engine_member_role role)
{
    json_begin(&m->w, "subjects", '[');
    for (size_t i = 0; i < m->tenant->members; i++) {
        struct str name = m->tenant->member[i].name;
        if (!has_role(m->tenant, i, role))
            continue;
        const char *full =
            arena_printf(m->arena, "%.*s%.*s", STR_ARG(m->site->user_prefix), STR_ARG(name));
        if (is_clusters(str_of(full)))
            continue;
        json_begin(&m->w, NULL, '{');
        json_put_str(&m->w, "kind", STR("User"));
        json_put_str(&m->w, "apiGroup", STR("rbac.authorization.k8s.io"));
        json_put_str(&m->w, "name", str_of(full));
        json_end(&m->w, '}');
    }
    json_end(&m->w, ']');
}

static int make_binding(struct maker *m, enum engine_member_role role, struct err *e)
{
    static const char *const names[] = {
#define X(id, name) "nightshift-tenant-" name,
        ENGINE_MEMBER_ROLES(X)
#undef X
    };
    static const char base[] = "/apis/rbac.authorization.k8s.io/v1";
    size_t i = 0;
    while (i < m->tenant->members && !has_role(m->tenant, i, role))
        i++;
    if (i == m->tenant->members) {
        const char *path = object_path(m, base, "rolebindings", names[role], "");
        m->out[m->n++] = (struct tenant_object){ "DELETE", path, { "", 0 } };
        return 0;
    }
    open_object(m, "rbac.authorization.k8s.io/v1", "RoleBinding", names[role]);
    close_metadata(m);
    json_begin(&m->w, "roleRef", '{');
    json_put_str(&m->w, "apiGroup", STR("rbac.authorization.k8s.io"));
    json_put_str(&m->w, "kind", STR("ClusterRole"));
    json_put_str(&m->w, "name", str_of(names[role]));
    json_end(&m->w, '}');
    put_subjects(m, role);
    return close_object(m, object_path(m, base, "rolebindings", names[role], APPLY), e);
}

/* ---- the network ---- */

/* Specs: all pods of the namespace reach nobody and are reached by nobody, but for the cluster's names
 * and one another.  More is for the site to allow, with a policy of its own beside these. */
static const struct policy_row {
    const char *name, *spec;
} policies[] = {
    { "nightshift-deny", "{\"podSelector\":{},\"policyTypes\":[\"Ingress\",\"Egress\"]}" },
    { "nightshift-dns",
      "{\"podSelector\":{},\"policyTypes\":[\"Egress\"],\"egress\":[{"
      "\"to\":[{\"namespaceSelector\":{\"matchLabels\":"
      "{\"kubernetes.io/metadata.name\":\"kube-system\"}}}],"
      "\"ports\":[{\"protocol\":\"UDP\",\"port\":53},{\"protocol\":\"TCP\",\"port\":53}]}]}" },
    { "nightshift-tenant", "{\"podSelector\":{},\"policyTypes\":[\"Ingress\",\"Egress\"],"
                           "\"ingress\":[{\"from\":[{\"podSelector\":{}}]}],"
                           "\"egress\":[{\"to\":[{\"podSelector\":{}}]}]}" },
};

static int make_policy(struct maker *m, const struct policy_row *p, struct err *e)
{
    open_object(m, "networking.k8s.io/v1", "NetworkPolicy", p->name);
    close_metadata(m);
    json_put_raw(&m->w, "spec", str_of(p->spec));
    return close_object(
        m, object_path(m, "/apis/networking.k8s.io/v1", "networkpolicies", p->name, APPLY), e);
}

/* ---- all of it ---- */

_Static_assert(4 + MEMBER_ROLE_COUNT + ARRAY_LEN(policies) == TENANT_OBJECTS,
               "every object has its place");

static int make_all(struct maker *m, struct err *e)
{
    /* Before anybody may start something: what bounds and closes it. */
    if (make_namespace(m, e) < 0 || make_quota(m, e) < 0 || make_limits(m, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (make_policy(m, &policies[i], e) < 0)
            return -1;
    if (make_account(m, e) < 0)
        return -1;
    for (int r = 0; r < MEMBER_ROLE_COUNT; r++)
        if (make_binding(m, (enum engine_member_role)r, e) < 0)
            return -1;
    return 0;
}

int tenant_make(const struct tenant_site *site, const struct engine_tenant *t, struct arena *a,
                struct tenant_object out[static TENANT_OBJECTS], size_t *out_n, struct err *e)
{
    struct maker m = { .site = site, .tenant = t, .arena = a, .text = BUF(BODY_MAX), .out = out };
    tenant_namespace(site, t->name, m.ns);
    int rc = make_all(&m, e);
    if (rc == 0)
        *out_n = m.n;
    buf_free(&m.text);
    return rc;
}

/* As people write it, where that is exact. */
static void put_size(uint64_t bytes, char out[static 32])
{
    static const char *const units[] = { "", "Ki", "Mi", "Gi", "Ti" };
    size_t u = 0;
    while (u + 1 < ARRAY_LEN(units) && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, 32, "%llu%s", (unsigned long long)bytes, units[u]);
}

void tenant_make_claim(const struct tenant_site *site, const struct tenant_claim *c,
                       struct arena *a, struct tenant_object *out)
{
    struct engine_tenant t = { .name = c->tenant };
    struct maker m = { .site = site, .tenant = &t, .arena = a, .text = BUF(BODY_MAX), .out = out };
    char name[KUBE_NAME], size[32];
    struct err e;
    tenant_namespace(site, c->tenant, m.ns);
    kube_name(STR("home-"), c->user, name);
    put_size(c->bytes, size);
    const char *called = c->name ? c->name : name;
    open_object(&m, "v1", "PersistentVolumeClaim", called);
    if (c->user.n) {
        json_begin(&m.w, "annotations", '{');
        json_put_str(&m.w, "nightshift.dev/user", c->user);
        json_end(&m.w, '}');
    }
    close_metadata(&m);
    json_begin(&m.w, "spec", '{');
    json_begin(&m.w, "accessModes", '[');
    json_put_str(&m.w, NULL, c->access);
    json_end(&m.w, ']');
    if (c->storage_class.n)
        json_put_str(&m.w, "storageClassName", c->storage_class);
    json_begin(&m.w, "resources", '{');
    json_begin(&m.w, "requests", '{');
    json_put_str(&m.w, "storage", str_of(size));
    json_end(&m.w, '}');
    json_end(&m.w, '}');
    json_end(&m.w, '}');
    if (close_object(&m, object_path(&m, "/api/v1", "persistentvolumeclaims", called, APPLY), &e) <
        0)
        abort(); /* every part of it is bounded */
    buf_free(&m.text);
}
