#include "kube/config.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

#define PEM "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
/* the same in base64 */
#define PEM64 "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

static const char whole[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "current-context: lab\n"
    "clusters:\n"
    "- name: lab\n"
    "  cluster:\n"
    "    server: https://10.0.0.1:6443/\n"
    "    certificate-authority-data: " PEM64 "\n"
    "    tls-server-name: kubernetes\n"
    "- name: plain\n"
    "  cluster: {server: 'http://127.0.0.1:8001', insecure-skip-tls-verify: true}\n"
    "- name: open\n"
    "  cluster: {server: 'http://10.0.0.1:8001'}\n"
    "contexts:\n"
    "- name: lab\n"
    "  context: {cluster: lab, user: cert, namespace: jobs}\n"
    "- name: robot\n"
    "  context: {cluster: plain, user: robot}\n"
    "- name: file\n"
    "  context: {cluster: lab, user: file}\n"
    "- name: program\n"
    "  context: {cluster: lab, user: program}\n"
    "- name: nobody\n"
    "  context: {cluster: plain}\n"
    "- name: clear\n"
    "  context: {cluster: open, user: robot}\n"
    "- name: lost\n"
    "  context: {cluster: gone, user: robot}\n"
    "- name: half\n"
    "  context: {cluster: lab, user: half}\n"
    "- name: old\n"
    "  context: {cluster: lab, user: old}\n"
    "users:\n"
    "- name: cert\n"
    "  user: {client-certificate-data: " PEM64 ", client-key: keys/me.pem}\n"
    "- name: robot\n"
    "  user: {token: secret, tokenFile: null}\n"
    "- name: file\n"
    "  user: {tokenFile: token}\n"
    "- name: half\n"
    "  user: {client-certificate: me.pem}\n"
    "- name: old\n"
    "  user: {auth-provider: {name: gcp}}\n"
    "- name: program\n"
    "  user:\n"
    "    exec:\n"
    "      apiVersion: client.authentication.k8s.io/v1beta1\n"
    "      command: ./login\n"
    "      args: [token, --cluster, lab]\n"
    "      env:\n"
    "      - {name: REGION, value: north}\n"
    "      installHint: get it from the shop\n";

static struct kube_config *parse(const char *text, const char *context, struct err *e)
{
    struct kube_config_file f = { "/home/ana/.kube/config", str_of(text) };
    return kube_config_parse(&f, 1, context, e);
}

static void a_context_has_its_server_and_its_user(void)
{
    struct err e = { 0 };
    AUTO(kube_config_free_p) struct kube_config *c = parse(whole, NULL, &e);
    CHECK_STR(e.msg, "");
    CHECK(c);
    CHECK_STR(c->server, "https://10.0.0.1:6443");
    CHECK_STR(c->space, "jobs");
    CHECK_STR(c->tls_server_name, "kubernetes");
    CHECK_STR(c->ca.text.p, PEM);
    CHECK_STR(c->cert.text.p, PEM);
    CHECK_STR(c->key.file, "/home/ana/.kube/keys/me.pem");
    CHECK_STR(c->source, "context 'lab' of /home/ana/.kube/config");
    CHECK(!c->token && !c->token_file && !c->plugin && !c->insecure);
}

static void another_context_can_be_named(void)
{
    struct err e;
    AUTO(kube_config_free_p) struct kube_config *c = parse(whole, "robot", &e);
    CHECK(c && c->insecure);
    CHECK_STR(c->token, "secret");
    CHECK_STR(c->space, "default");
    AUTO(kube_config_free_p) struct kube_config *file = parse(whole, "file", &e);
    CHECK(file);
    CHECK_STR(file->token_file, "/home/ana/.kube/token");
    AUTO(kube_config_free_p) struct kube_config *nobody = parse(whole, "nobody", &e);
    CHECK(nobody && !nobody->token);
}

static void a_plugin_has_its_words(void)
{
    struct err e;
    AUTO(kube_config_free_p) struct kube_config *c = parse(whole, "program", &e);
    CHECK(c && c->plugin);
    CHECK_STR(c->plugin->argv[0], "/home/ana/.kube/./login");
    CHECK_STR(c->plugin->argv[3], "lab");
    CHECK_STR(c->plugin->argv[4], NULL);
    CHECK_STR(c->plugin->env[0], "REGION=north");
    CHECK_STR(c->plugin->env[1], NULL);
    CHECK_STR(c->plugin->api_version, "client.authentication.k8s.io/v1beta1");
    CHECK_STR(c->plugin->install_hint, "get it from the shop");
}

static void what_is_wrong_is_told_with_its_place(void)
{
    static const struct {
        const char *text, *context, *says;
    } cases[] = {
        { whole, "moon", "/home/ana/.kube/config has no context 'moon'" },
        { whole, "lost", "context 'lost': /home/ana/.kube/config has no cluster 'gone'" },
        { whole, "clear", "would send its token in the clear to http://10.0.0.1:8001" },
        { whole, "half", "user 'half': it has a client-certificate without its client-key" },
        { whole, "old", "user 'old': 'auth-provider' is not supported" },
        { "{}", NULL, "/home/ana/.kube/config names no current-context" },
        { "a: [", NULL, "/home/ana/.kube/config: " },
        { "[]", "x", "has no context 'x'" },
        { "contexts: [{name: x}]", "x", "context 'x': it has no 'context' inside" },
        { "contexts: [{name: x, context: {}}]", "x", "context 'x': it names no cluster" },
        { "contexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]", "x",
          "cluster 'c': it has no server" },
        { "contexts: [{name: x, context: {cluster: c}}]\n"
          "clusters: [{name: c, cluster: {server: 'ftp://x'}}]",
          "x", "cluster 'c': 'ftp://x' is not an address of the web" },
        { "contexts: [{name: x, context: {cluster: c}}]\n"
          "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority-data: '*'}}]",
          "x", "field 'certificate-authority-data' is not base64" },
        { "contexts: [{name: x, context: {cluster: c}}]\n"
          "clusters: [{name: c, cluster: {server: 7}}]",
          "x", "cluster 'c': field 'server'" },
        { "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
          "clusters: [{name: c, cluster: {server: 'https://x'}}]\n"
          "users: [{name: u, user: {exec: {args: [a]}}}]",
          "x", "user 'u': field 'exec' has no command" },
        { "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
          "clusters: [{name: c, cluster: {server: 'https://x'}}]\n"
          "users: [{name: u, user: {exec: {command: a, args: [1]}}}]",
          "x", "user 'u': field 'exec.args'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        CHECK_AT(i, parse(cases[i].text, cases[i].context, &e) == NULL);
        if (!strstr(e.msg, cases[i].says))
            CHECK_STR(e.msg, cases[i].says);
        CHECK_AT(i, !strstr(e.msg, "secret") && !strstr(e.hint, "secret"));
    }
    struct err e = { 0 };
    CHECK(!parse(whole, "moon", &e));
    CHECK_STR(e.hint, "it has: lab, robot, file, program, nobody, clear, lost, half, old");
}

static void several_files_are_one(void)
{
    struct kube_config_file files[] = {
        { "/a/one", STR("contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                        "users: [{name: u, user: {tokenFile: t}}]") },
        { "/b/two", STR("current-context: x\n"
                        "clusters: [{name: c, cluster: {server: 'https://b', "
                        "certificate-authority: ca.pem}}]\n"
                        "users: [{name: u, user: {tokenFile: other}}]") },
    };
    struct err e;
    AUTO(kube_config_free_p) struct kube_config *c = kube_config_parse(files, 2, "", &e);
    CHECK(c);
    CHECK_STR(c->server, "https://b");
    CHECK_STR(c->token_file, "/a/t"); /* the first that has it wins */
    CHECK_STR(c->ca.file, "/b/ca.pem");
}

static void base64_is_read_strictly(void)
{
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } cases[] = {
        { "", "" },        { "YQ==", "a" },       { "YWI=", "ab" },
        { "YWJj", "abc" }, { "YW\nJj\n", "abc" }, { "YQ", NULL },
        { "YQ=a", NULL },  { "Y===", NULL },      { "YQ==YQ==", NULL },
        { "Y*Jj", NULL },  { "YQ==\n", "a" },     { "=", NULL },
    };
    AUTO(arena_free) struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str out = { 0 };
        int rc = kube_base64(str_of(cases[i].text), &a, &out);
        CHECK_AT(i, (rc == 0) == (cases[i].bytes != NULL));
        if (rc == 0)
            CHECK_STR(out.p, cases[i].bytes);
    }
}

/* ---- files and variables ---- */

struct home {
    char folder[32];
};

static struct home home_new(void)
{
    struct home h = { "/tmp/kube-XXXXXX" };
    CHECK(mkdtemp(h.folder));
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", h.folder, 1);
    return h;
}

static const char *put(struct arena *a, const struct home *h, const char *name, const char *text)
{
    struct err e;
    char *path = arena_printf(a, "%s/%s", h->folder, name);
    CHECK(file_write(path, str_of(text), &e) == 0);
    return path;
}

static void home_end(const struct home *h)
{
    static const char *const names[] = { "one",       "two",          "ca.crt", "token",
                                         "namespace", ".kube/config", ".kube" };
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", h->folder, names[i]);
        remove(path);
    }
    CHECK(rmdir(h->folder) == 0);
}

#define SMALL(ca)                                                                                  \
    "current-context: x\n"                                                                         \
    "contexts: [{name: x, context: {cluster: c}}]\n"                                               \
    "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: " ca "}}]\n"

static void a_file_is_found_where_it_is_looked_for(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct home h = home_new();
    struct err e = { 0 };
    CHECK(!kube_config_load(NULL, NULL, &e) && strstr(e.hint, "KUBECONFIG"));
    mkdir(arena_printf(&a, "%s/.kube", h.folder), 0700);
    put(&a, &h, ".kube/config", SMALL("../ca.crt"));
    CHECK(!kube_config_load("", NULL, &e));
    CHECK(strstr(e.msg, "certificate-authority") && strstr(e.msg, ".kube/../ca.crt"));
    put(&a, &h, "ca.crt", "rubbish");
    CHECK(!kube_config_load("", NULL, &e) && strstr(e.msg, "is not PEM text"));
    put(&a, &h, "ca.crt", PEM);
    AUTO(kube_config_free_p) struct kube_config *home = kube_config_load("", NULL, &e);
    CHECK(home);
    CHECK_STR(home->ca.text.p, PEM);

    const char *one = put(&a, &h, "one", "current-context: x\n");
    const char *two = put(&a, &h, "two", SMALL("ca.crt"));
    setenv("KUBECONFIG", arena_printf(&a, "%s/none::%s:%s", h.folder, one, two), 1);
    AUTO(kube_config_free_p) struct kube_config *listed = kube_config_load(NULL, NULL, &e);
    CHECK(listed && strstr(listed->source, "/two"));
    setenv("KUBECONFIG", "/nowhere/at/all", 1);
    CHECK(!kube_config_load(NULL, NULL, &e) && strstr(e.msg, "/nowhere/at/all"));
    AUTO(kube_config_free_p) struct kube_config *named = kube_config_load(two, "x", &e);
    CHECK(named);
    CHECK(!kube_config_load("/nowhere", NULL, &e) && strstr(e.msg, "'/nowhere'"));
    home_end(&h);
}

static void a_pod_has_its_own_account(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct home h = home_new();
    struct err e = { 0 };
    CHECK(!kube_config_in_cluster(h.folder, &e) && strstr(e.msg, "this is no pod"));
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    CHECK(!kube_config_in_cluster(h.folder, &e));
    CHECK(strstr(e.msg, "/token") && strstr(e.hint, "automountServiceAccountToken"));
    put(&a, &h, "token", "t\n");
    put(&a, &h, "ca.crt", PEM);
    put(&a, &h, "namespace", "jobs\n");
    AUTO(kube_config_free_p) struct kube_config *c = kube_config_in_cluster(h.folder, &e);
    CHECK(c);
    CHECK_STR(c->server, "https://[fd00::1]:443");
    CHECK_STR(c->space, "jobs");
    CHECK(strstr(c->token_file, "/token") && !c->token);
    home_end(&h);
}

static const struct test tests[] = {
    { "a context has its server and its user", a_context_has_its_server_and_its_user },
    { "another context than the current one can be named", another_context_can_be_named },
    { "a plugin has its command, arguments and variables", a_plugin_has_its_words },
    { "what is wrong is told with file and part, and no secret",
      what_is_wrong_is_told_with_its_place },
    { "several files are one; the first that says it wins", several_files_are_one },
    { "base64 is read strictly, line ends are not looked at", base64_is_read_strictly },
    { "a kubeconfig is found by name, by variable and at home",
      a_file_is_found_where_it_is_looked_for },
    { "inside a pod the account of the pod is used", a_pod_has_its_own_account },
};
TEST_CASES(tests)
